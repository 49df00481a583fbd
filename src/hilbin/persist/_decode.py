"""Nodes back to values. Nothing but the functions below runs, on values that were checked."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse.linalg import aslinearoperator

from hilbin.persist._checks import check
from hilbin.persist._container import Array, is_storable
from hilbin.persist._encode import MOST_DEPTH, SCALARS, SPARSE
from hilbin.persist._registry import Registry
from hilbin.persist._state import rebuild


class UnknownNameError(ValueError):
    """A file names a class that is not in the registry."""


class Decoder:
    """Makes values of ``nodes``, one after the other."""

    def __init__(self, registry: Registry, arrays: Sequence[Array]) -> None:
        self.registry, self.arrays = registry, arrays
        self.names: list[str] = []  # of classes, as they are met
        self._made: list[Any] = []
        self._depths: list[int] = []
        self._deepest = 0  # of the nodes that the present one refers to

    def decode(self, nodes: Any, model: Any) -> Any:
        """The value ``model`` over ``nodes``."""
        for kind, *content in nodes:
            if not isinstance(kind, str) or kind not in KINDS:
                raise ValueError(f"there is no node of the kind {kind!r}")
            self._deepest = 0
            self._made.append(KINDS[kind](self, *content))
            self._depths.append(self._deepest + 1)
        return self.value(model)

    def value(self, x: Any) -> Any:
        """What JSON has as it is, or an earlier node."""
        if not isinstance(x, list):
            if isinstance(x, dict):
                raise ValueError("a value is a JSON object")
            return x
        (index,) = x
        if type(index) is not int or not 0 <= index < len(self._made):
            raise ValueError(f"{x} refers to no earlier node")
        self._deepest = max(self._deepest, self._depths[index])
        if self._deepest >= MOST_DEPTH:  # hashing deep tuples would end the process
            raise ValueError("it is nested too deeply")
        return self._made[index]

    def values(self, *content: Any) -> list[Any]:
        """A list."""
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
        matrix = SPARSE[name](tuple(self.values(*parts)), shape=tuple(shape))
        matrix.check_format(full_check=True)
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
            raise UnknownNameError(_complaint(name))
        state = {attribute: self.value(x) for attribute, x in attributes}
        if not all(isinstance(attribute, str) for attribute in state):
            raise ValueError(f"an attribute of {name} has no name")
        self.names.append(name)
        value = rebuild(cls, name, state)
        check(value)
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


def _complaint(name: Any) -> str:
    own = ""
    if isinstance(name, str) and name.startswith("user."):
        own = f": give the class as classes=[{name.removeprefix('user.')}]"
    return f"it names the class {name!r}, which is not one that hilbin.load knows{own}"
