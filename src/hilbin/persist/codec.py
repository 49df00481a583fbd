"""A model as a list of nodes, and back.

A value is None, a truth value, a whole number, a finite float or a text, which JSON has as they
are; or ``[i]``, the node ``i``. A node is ``[kind, ...]``. As references go backwards only, a file
can have no cycle, and is read in one pass. An object that is met twice is one node.

An object is its attributes: none of its methods runs when it is saved, and only its check of what
was loaded afterwards.
"""

import math
import re
import types
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

from hilbin._arrays import Array, check_sparse
from hilbin.persist import packing
from hilbin.persist.container import is_storable
from hilbin.persist.errors import UnsupportedModelError
from hilbin.persist.foreign import listed
from hilbin.persist.registry import Registry, check_state, saved_attributes, why_not

SPARSE = {
    kind.__name__: kind for kind in (sp.csr_array, sp.csc_array, sp.csr_matrix, sp.csc_matrix)
}
SPARSE_NAMES = {kind: name for name, kind in SPARSE.items()}
MATRIX_OPERATOR = type(aslinearoperator(np.eye(1)))
FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, np.ufunc)
MOST_DEPTH = 1000
MOST_SHARED, FEW_VALUES = 1000, 1000
SCALARS = (str, int, float, np.generic, types.NoneType)


class Encoder:
    """Make ``nodes`` and ``arrays`` of the values it is given.

    If ``compact``, arrays that a class names in ``_rounded`` are rounded: ``steps`` has the steps
    of arrays by place, and ``rounded`` the largest change of a number by the name of the array.
    """

    def __init__(self, registry: Registry, *, compact: bool = False) -> None:
        self.registry, self.compact = registry, compact
        self.nodes: list[list[Any]] = []
        self.arrays: list[Array] = []
        self.steps: dict[int, float] = {}
        self.rounded: dict[str, float] = {}
        self._known: dict[int, tuple[int, Any]] = {}  # the object is kept, so its id stays its own
        self._open: set[int] = set()

    def value(self, x: Any, where: str) -> Any:
        """Return ``x`` as JSON; ``where`` is what errors call it."""
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
            raise UnsupportedModelError(_unsavable(x, where))
        state = saved_attributes(cls, vars(x))
        may_round = getattr(cls, "_rounded", ()) if self.compact else ()
        return [
            "object",
            name,
            *(
                [a, (self._rounded if a in may_round else self.value)(v, f"{where}.{a}")]
                for a, v in state.items()
            ),
        ]

    def _rounded(self, x: Any, where: str) -> Any:
        step = packing.step_of(x)
        if step is None:
            return self.value(x, where)
        reference = self.value(packing.rounded(x, step), where)
        _, place = self.nodes[reference[0]]
        self.steps[place], self.rounded[where] = step, step / 2
        return reference

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
                    raise UnsupportedModelError(_unsavable(v, f"{where}.flat[{i}]"))
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


def _unsavable(x: Any, where: str) -> str:
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
    if cls.__module__.startswith("sklearn."):
        return f"{where} is {name}, which cannot be saved; of scikit-learn can be: {listed()}"
    own = f"for a class of your own give classes=[{cls.__name__}] to save and to load"
    return f"{where} is {name}, which hilbin.save does not know; {own}"


class UnknownNameError(ValueError):
    """A file names a class that is not in the registry."""


class Decoder:
    """Make values of ``nodes``, one after the other, by the functions below and nothing else."""

    def __init__(self, registry: Registry, arrays: Sequence[Array]) -> None:
        self.registry, self.arrays = registry, arrays
        self.names: list[str] = []  # the classes, as they are met
        self._made: list[Any] = []
        self._depths: list[int] = []
        self._deepest = 0  # depth of the nodes that the present one refers to
        self._sizes: list[int] = []
        self._size, self._most = (
            0,
            0,
        )  # values of the present node, if nothing were shared

    def decode(self, nodes: Any, model: Any) -> Any:
        """Return the value ``model`` that refers to ``nodes``."""
        self._most = MOST_SHARED * (FEW_VALUES + sum(map(len, nodes)))
        for kind, *content in nodes:
            if not isinstance(kind, str) or kind not in KINDS:
                raise ValueError(f"there is no node of the kind {kind!r}")
            self._deepest, self._size = 0, 1
            self._made.append(KINDS[kind](self, *content))
            self._depths.append(self._deepest + 1)
            self._sizes.append(self._size)
        return self.value(model)

    def value(self, x: Any) -> Any:
        """Return what JSON has as it is, or the value of an earlier node."""
        if not isinstance(x, list):
            if isinstance(x, dict):
                raise ValueError("a value is a JSON object")
            self._size += 1
            return x
        (index,) = x
        if type(index) is not int or not 0 <= index < len(self._made):
            raise ValueError(f"{x} refers to no earlier node")
        self._deepest = max(self._deepest, self._depths[index])
        if self._deepest >= MOST_DEPTH:  # hashing deep tuples would end the process
            raise ValueError("it is nested too deeply")
        self._size += self._sizes[index]
        if self._size > self._most:  # hashing, comparing or copying would take for ever
            raise ValueError("it has values that contain each other too many times")
        return self._made[index]

    def values(self, *content: Any) -> list[Any]:
        """Return a list of values."""
        return [self.value(x) for x in content]

    def _dict(self, *content: Any) -> dict[Any, Any]:
        return {self.value(key): self.value(x) for key, x in content}

    def _array(self, index: int) -> Array:
        if type(index) is not int or not 0 <= index < len(self.arrays):
            raise ValueError(f"there is no array {index}")
        return self.arrays[index]

    def _objects(self, shape: list[int], *content: Any) -> Array:
        values = self.values(*content)
        if not all(isinstance(v, SCALARS) for v in values):
            raise ValueError("an array of objects holds more than numbers and texts")
        array = np.empty(len(values), object)
        array[:] = values
        return array.reshape(shape)

    def _scalar(self, dtype: str, content: str) -> Any:
        (scalar,) = np.frombuffer(bytes.fromhex(content), _dtype(dtype))
        return scalar

    def _sparse(self, name: str, shape: list[int], *parts: Any) -> Any:
        data, indices, indptr = arrays = self.values(*parts)
        vectors = all(isinstance(part, np.ndarray) and part.ndim == 1 for part in arrays)
        sides = isinstance(shape, list) and all(type(n) is int and 0 <= n < 2**62 for n in shape)
        if not (vectors and data.dtype.kind in "biufc" and sides and len(shape) == 2):
            raise ValueError("a sparse matrix is not made of three vectors and two sides")
        matrix = SPARSE[name]((1, 1))  # the constructor would look at arrays that are not checked
        matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
        matrix._shape = tuple(shape)
        check_sparse(matrix, "a sparse matrix")
        return matrix

    def _operator(self, matrix: Any) -> Any:
        matrix = self.value(matrix)
        if not isinstance(matrix, np.ndarray):
            raise ValueError("an operator has no matrix")
        return aslinearoperator(matrix)

    def _random_state(self, key: Any, pos: int, has_gauss: int, gauss: float) -> Any:
        state = np.random.RandomState(0)
        words = self.value(key)
        fits = isinstance(words, np.ndarray) and words.shape == (624,) and words.dtype == np.uint32
        if not fits or type(pos) is not int or not 0 <= pos <= words.size:
            raise ValueError("a random state is out of range")
        inner = {"key": words, "pos": pos}
        state.set_state(
            {"bit_generator": "MT19937", "state": inner, "has_gauss": has_gauss, "gauss": gauss}
        )
        return state

    def _object(self, name: Any, *attributes: Any) -> Any:
        cls = self.registry.class_of(name)
        if cls is None:
            raise UnknownNameError(_unknown(name))
        state = {attribute: self.value(x) for attribute, x in attributes}
        if not all(isinstance(attribute, str) for attribute in state):
            raise ValueError(f"an attribute of {name} has no name")
        self.names.append(name)
        value: Any = object.__new__(cls)
        value.__dict__.update(saved_attributes(cls, state))
        check_state(value)
        return value


def _dtype(name: Any) -> Any:
    if not isinstance(name, str) or not is_storable(name):
        raise ValueError(f"{name!r} is no dtype of a model file")
    return np.dtype(name).newbyteorder("=")


def _float(text: str) -> float:
    if text not in ("nan", "inf", "-inf"):
        raise ValueError(f"{text!r} is no float that JSON lacks")
    return float(text)


def _int(text: str) -> int:
    if not re.fullmatch("-?0x[0-9a-f]+", text):
        raise ValueError("a large number is not written in hexadecimal digits")
    return int(text, 16)


KINDS: dict[str, Callable[..., Any]] = {
    "int": lambda _, text: _int(text),
    "float": lambda _, text: _float(text),
    "bytes": lambda _, text: bytes.fromhex(text),
    "list": Decoder.values,
    "tuple": lambda self, *content: tuple(self.values(*content)),
    "set": lambda self, *content: set(self.values(*content)),
    "frozenset": lambda self, *content: frozenset(self.values(*content)),
    "dict": Decoder._dict,
    "path": lambda _, text: Path(text),
    "slice": lambda self, start, stop, step: slice(*self.values(start, stop, step)),
    "array": Decoder._array,
    "objects": Decoder._objects,
    "scalar": Decoder._scalar,
    "dtype": lambda _, name: _dtype(name),
    "scalar type": lambda _, name: _dtype(name).type,
    "sparse": Decoder._sparse,
    "operator": Decoder._operator,
    "random state": Decoder._random_state,
    "object": Decoder._object,
}


def _unknown(name: Any) -> str:
    own = ""
    if isinstance(name, str) and name.startswith("user."):
        own = f": give the class as classes=[{name.removeprefix('user.')}]"
    if isinstance(name, str) and name.startswith("sklearn."):
        own = f"; of scikit-learn it knows {listed()}"
    return f"it names the class {name!r}, which is not one that hilbin.load knows{own}"
