"""A graph under construction: operations by name, numbers as constants, all in float64.

This module imports onnx, and is imported only when a model is exported.
"""

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper

from hilbin.persist.errors import UnsupportedModelError

OPSET, IR_VERSION = 18, 9
MOST_BYTES = 2**31 - 2**20  # protocol buffers end at 2 GiB


class Output(NamedTuple):
    """Name a result that is an output of the graph, with its NumPy dtype and number of axes."""

    result: str
    dtype: Any
    ndim: int


class Graph:
    """Collect nodes and constants; operands are names of results, or numbers and arrays.

    Parameters
    ----------
    input_dtype : {"float64", "float32"}, default="float64"
        Type of the input ``X``; ``rows`` is the input in float64.
    """

    def __init__(self, input_dtype: str = "float64") -> None:
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._known: dict[bytes, str] = {}
        self._bytes = self._results = 0
        self._input = np.dtype(input_dtype)
        self.rows = "X" if self._input == np.float64 else self.cast("X", np.float64)

    def op(self, kind: str, *operands: Any, **attributes: Any) -> str:
        """Add an operation and return the name of its result."""
        inputs = [o if isinstance(o, str) else self._constant(o) for o in operands]
        name = self._result()
        self._nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def row_by_row(self, x: str, of_row: Callable[[str], str]) -> str:
        """Return ``of_row`` of every row, a vector of float64, as the rows of a matrix.

        One row is computed after the other, so that what lies between takes the memory of one.
        ``of_row`` adds operations to this graph, and may use results from outside of the row.
        """
        outside, self._nodes = self._nodes, []
        row = self._result()
        result = of_row(row)
        inside, self._nodes = self._nodes, outside
        body = helper.make_graph(inside, "row", [_vector(row)], [_vector(result)])
        return self.op("Scan", x, body=body, num_scan_inputs=1)

    def _result(self) -> str:
        self._results += 1
        return f"r{self._results - 1}"

    def cast(self, x: str, dtype: Any) -> str:
        """Convert ``x`` to int64 or float64."""
        to = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.op("Cast", x, to=to)

    def product(self, x: str, matrix: Any, *shift: Any) -> str:
        """Return ``x @ matrix + shift`` of rows.

        This is a Gemm: onnxruntime joins MatMul and a factor before it, and rounds the factor to
        float32.
        """
        return self.op("Gemm", x, matrix, *shift)

    def sum(self, x: str, axis: int, *, keepdims: bool = False) -> str:
        """Sum along an axis."""
        return self.op("ReduceSum", x, np.array([axis]), keepdims=int(keepdims))

    def unsqueeze(self, x: str, axis: int) -> str:
        """Add an axis of length 1."""
        return self.op("Unsqueeze", x, np.array([axis]))

    def flatten(self, x: str, width: int) -> str:
        """Reshape to rows of ``width`` values."""
        return self.op("Reshape", x, np.array([-1, width]))

    def _constant(self, value: Any) -> str:
        array = np.asarray(value)
        if array.dtype.kind not in "UOb":
            array = array.astype(np.int64 if array.dtype.kind in "iu" else np.float64)
        if array.dtype.kind == "U":
            array = array.astype(object)
        content = array.tolist() if array.dtype == object else array.tobytes()
        key = hashlib.sha256(f"{array.dtype} {array.shape} ".encode())
        key.update(repr(content).encode() if isinstance(content, list) else content)
        if key.digest() in self._known:
            return self._known[key.digest()]
        self._bytes += array.nbytes
        if self._bytes > MOST_BYTES:
            raise UnsupportedModelError("model has more than the 2 GiB that an ONNX file can hold")
        name = self._known[key.digest()] = f"c{len(self._constants)}"
        whole = array if array.flags.c_contiguous else array.copy()
        self._constants.append(numpy_helper.from_array(whole, name))
        return name

    def model(self, n_features: int, outputs: "dict[str, Output]", **said: Any) -> bytes:
        """Return the bytes of the model from the input ``X`` to outputs by name."""
        renamed = [helper.make_node("Identity", [o.result], [n]) for n, o in outputs.items()]
        graph = helper.make_graph(
            self._nodes + renamed,
            "hilbin",
            [helper.make_tensor_value_info("X", _element(self._input), ["n", n_features])],
            [
                helper.make_tensor_value_info(name, _element(o.dtype), ["n", None][: o.ndim])
                for name, o in outputs.items()
            ],
            self._constants,
        )
        opset = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION, **said)
        checker.check_model(model)
        return model.SerializeToString(deterministic=True)


def _vector(name: str) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.DOUBLE, [None])


def _element(dtype: Any) -> int:
    if np.dtype(dtype).kind in "UO":
        return TensorProto.STRING
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
