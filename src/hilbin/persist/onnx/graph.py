"""A graph under construction: operations by name, numbers as constants, all in float64.

This module imports onnx, and is imported only when a model is exported.
"""

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
    """Collect nodes and constants; operands are names of results, or numbers and arrays."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._bytes = 0

    def op(self, kind: str, *operands: Any, **attributes: Any) -> str:
        """Add an operation and return the name of its result."""
        inputs = [o if isinstance(o, str) else self._constant(o) for o in operands]
        name = f"r{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

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
        self._bytes += array.nbytes
        if self._bytes > MOST_BYTES:
            raise UnsupportedModelError("model has more than the 2 GiB that an ONNX file can hold")
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def model(self, n_features: int, outputs: "dict[str, Output]", **said: Any) -> bytes:
        """Return the bytes of the model from the input ``X`` to outputs by name."""
        renamed = [helper.make_node("Identity", [o.result], [n]) for n, o in outputs.items()]
        graph = helper.make_graph(
            self._nodes + renamed,
            "hilbin",
            [helper.make_tensor_value_info("X", TensorProto.DOUBLE, ["n", n_features])],
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


def _element(dtype: Any) -> int:
    if np.dtype(dtype).kind in "UO":
        return TensorProto.STRING
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
