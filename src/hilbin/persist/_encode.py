"""A model as a list of nodes, each of plain values and references to earlier nodes.

A value is None, a truth value, a whole number, a finite float or a text, which JSON has as they
are; or ``[i]``, the node ``i``. A node is ``[kind, ...]``. As references go backwards only, a file
can have no cycle, and is read in one pass. An object that is met twice is one node.
"""

import math
import types
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

from hilbin.persist._container import Array, is_storable
from hilbin.persist._errors import UnsupportedModelError
from hilbin.persist._registry import Registry, why_not
from hilbin.persist._state import state_of

SPARSE = {
    kind.__name__: kind for kind in (sp.csr_array, sp.csc_array, sp.csr_matrix, sp.csc_matrix)
}
SPARSE_NAMES = {kind: name for name, kind in SPARSE.items()}
MATRIX_OPERATOR = type(aslinearoperator(np.eye(1)))
FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, np.ufunc)
MOST_DEPTH = 1000
SCALARS = (str, int, float, np.generic, types.NoneType)


class Encoder:
    """Makes ``nodes`` and ``arrays`` of the values it is given."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.nodes: list[list[Any]] = []
        self.arrays: list[Array] = []
        self._known: dict[int, tuple[int, Any]] = {}  # the object is kept, so its id stays its own
        self._open: set[int] = set()

    def value(self, x: Any, where: str) -> Any:
        """``x`` as JSON; ``where`` is what errors call it."""
        kind = type(x)
        if x is None or kind in (bool, str):
            return x
        if kind is int:
            return x if -(2**63) <= x < 2**63 else self._add(["int", hex(x)])
        if kind is float:
            return x if math.isfinite(x) else self._add(["float", repr(x)])
        if id(x) in self._known:
            return [self._known[id(x)][0]]
        if id(x) in self._open:
            raise UnsupportedModelError(f"{where} contains itself, which cannot be saved")
        if len(self._open) >= MOST_DEPTH - 1:
            raise UnsupportedModelError("model is nested too deeply to be saved")
        self._open.add(id(x))
        reference = self._add(self._node(x, where))
        self._open.remove(id(x))
        self._known[id(x)] = (reference[0], x)
        return reference

    def _add(self, node: list[Any]) -> list[int]:
        self.nodes.append(node)
        return [len(self.nodes) - 1]

    def _node(self, x: Any, where: str) -> list[Any]:
        kind = type(x)
        if kind in PLAIN:
            return PLAIN[kind](self, x, where)
        if kind in SPARSE_NAMES:
            parts = [
                self.value(getattr(x, n), f"{where}.{n}") for n in ("data", "indices", "indptr")
            ]
            return ["sparse", SPARSE_NAMES[kind], [int(n) for n in x.shape], *parts]
        if kind is MATRIX_OPERATOR:
            return ["operator", self.value(x.A, f"{where}.A")]
        if isinstance(x, np.generic):
            return ["scalar", self._dtype(x.dtype, where), np.asarray(x).tobytes().hex()]
        if isinstance(x, PurePath):
            return ["path", str(x)]
        if isinstance(x, np.dtype):
            return ["dtype", self._dtype(x, where)]
        if isinstance(x, type) and issubclass(x, np.generic):
            return ["scalar type", self._dtype(np.dtype(x), where)]
        return self._object(x, where)

    def _object(self, x: Any, where: str) -> list[Any]:
        cls = type(x)
        name = self.registry.name_of(cls)
        if name is None:
            raise UnsupportedModelError(_complaint(x, where))
        state = state_of(x, name)
        return ["object", name, *([a, self.value(v, f"{where}.{a}")] for a, v in state.items())]

    def _sequence(self, x: Any, where: str) -> list[Any]:
        return [type(x).__name__, *(self.value(v, f"{where}[{i}]") for i, v in enumerate(x))]

    def _set(self, x: Any, where: str) -> list[Any]:
        ordered = sorted(x, key=lambda v: (type(v).__name__, repr(v)))
        return [type(x).__name__, *(self.value(v, f"{where}{{...}}") for v in ordered)]

    def _dict(self, x: Any, where: str) -> list[Any]:
        keys = [self.value(key, f"a key of {where}") for key in x]
        values = [self.value(v, f"{where}[{key!r}]") for key, v in x.items()]
        return ["dict", *([key, v] for key, v in zip(keys, values, strict=True))]

    def _slice(self, x: Any, where: str) -> list[Any]:
        parts = (x.start, x.stop, x.step)
        return ["slice", *(self.value(part, f"{where}.part") for part in parts)]

    def _bytes(self, x: Any, where: str) -> list[Any]:
        return ["bytes", x.hex()]

    def _array(self, x: Any, where: str) -> list[Any]:
        if x.dtype == object:
            for i, v in enumerate(x.flat):
                if not isinstance(v, SCALARS):
                    raise UnsupportedModelError(_complaint(v, f"{where}.flat[{i}]"))
            values = (self.value(v, f"{where}.flat[{i}]") for i, v in enumerate(x.flat))
            return ["objects", list(x.shape), *values]
        dtype = self._dtype(x.dtype, where)
        array = np.asarray(x).astype(dtype, copy=False)
        if not (array.flags.c_contiguous or array.flags.f_contiguous):
            array = array.copy(order="K")
        if not (array.flags.c_contiguous or array.flags.f_contiguous):
            array = np.ascontiguousarray(array)
        self.arrays.append(array)
        return ["array", len(self.arrays) - 1]

    def _random_state(self, x: Any, where: str) -> list[Any]:
        state = x.get_state(legacy=False)
        if state["bit_generator"] != "MT19937":
            raise UnsupportedModelError(f"{where} is a {state['bit_generator']}, not an MT19937")
        key = self.value(state["state"]["key"], where)
        return ["random state", key, state["state"]["pos"], state["has_gauss"], state["gauss"]]

    def _dtype(self, dtype: Any, where: str) -> str:
        name: str = dtype.newbyteorder("<").str
        if not is_storable(name):
            raise UnsupportedModelError(f"{where} has the dtype {dtype}, which cannot be saved")
        return name


PLAIN: dict[type, Callable[[Encoder, Any, str], list[Any]]] = {
    list: Encoder._sequence,
    tuple: Encoder._sequence,
    set: Encoder._set,
    frozenset: Encoder._set,
    dict: Encoder._dict,
    slice: Encoder._slice,
    bytes: Encoder._bytes,
    np.ndarray: Encoder._array,
    np.memmap: Encoder._array,
    np.random.RandomState: Encoder._random_state,
}


def _complaint(x: Any, where: str) -> str:
    cls = type(x)
    if isinstance(x, FUNCTIONS):
        what = f"the function {getattr(x, '__qualname__', getattr(x, '__name__', x))}"
        return f"{where} is {what}, which cannot be saved: a model file holds no code"
    if isinstance(x, type):
        return f"{where} is the class {x.__qualname__}, which cannot be saved"
    name = f"a {cls.__module__}.{cls.__qualname__}"
    reason = why_not(cls)
    if reason or cls.__module__ == "builtins":
        return f"{where} is {name}, {reason or 'which cannot be saved'}"
    own = f"for a class of your own give classes=[{cls.__name__}] to save and to load"
    return f"{where} is {name}, which hilbin.save does not know; {own}"
