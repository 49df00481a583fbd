"""State of fitted models: which private classes a model file may hold, and what is checked of them.

A model file holds the attributes of objects. Two things make a class fit for it, both written where
the class is defined:

- :func:`stored` on a private class lets files hold its objects. Public classes, which a package
  lists in ``__all__``, need nothing.
- A method ``_check_state(self)`` raises ``ValueError`` if the attributes do not fit together, such
  as an offset beyond the end of an array that compiled code reads. It is called on every loaded
  object, fitted or not. A checksum does not help here, as a forger can compute it.
  :func:`require_attributes` does most of it: it compares what ``fit`` leaves with a description.
  Parameters that are annotated fields are compared with their annotations without being asked.
"""

import functools
import re
import types
import typing
from dataclasses import MISSING, fields, is_dataclass
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from hilbin._arrays import Array

Class = TypeVar("Class", bound=type)
STORED: dict[str, type] = {}  # "hilbin.package.Class" -> private class


def stored(cls: Class) -> Class:
    """Let model files hold objects of a private class, under its package's name and its own."""
    package = ".".join(cls.__module__.split(".")[:2])
    name = f"{package}.{cls.__name__}"
    known = STORED.setdefault(name, cls)
    if known.__module__ != cls.__module__:
        raise TypeError(f"{name} is stored twice: {known.__module__} and {cls.__module__} have it")
    STORED[name] = cls
    return cls


def require(condition: Any, message: str) -> None:
    """Raise ``ValueError`` with the message unless the condition holds."""
    if not condition:
        raise ValueError(message)


def require_vector(array: Any, dtype: Any, name: str) -> Array:
    """Return ``array`` if it is a vector of exactly this dtype."""
    fits = isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype == dtype
    require(fits, f"{name} is not a vector of {np.dtype(dtype)}")
    return array


def require_offsets(offsets: Any, count: int, end: int, name: str = "offsets") -> None:
    """Check the starts of ``count`` runs that follow each other from 0 to ``end``."""
    starts = require_vector(offsets, np.int64, name)
    require(starts.size == count + 1 and starts[0] == 0, f"{name} is not {count} runs from 0")
    rising = bool((starts[1:] >= starts[:-1]).all())  # differences may wrap around
    require(rising and starts[-1] == end, f"{name} is out of range")


SCALARS: dict[str, tuple[type, ...]] = {
    "int": (Integral,),
    "float": (Real,),
    "bool": (bool, np.bool_),
    "str": (str,),
    "list": (list,),
    "dict": (dict,),
    "tuple": (tuple,),
}
DTYPE_KINDS = {"float": "f", "matrix": "f", "int": "iu", "labels": "biufcSUO"}
ARRAY = re.compile(r"(\w+)\[(.*)\]")


class Lengths(dict[str, int]):
    """The lengths of the axes of a fitted object, which may have none; always true."""

    def __bool__(self) -> bool:
        return True


def require_attributes(owner: Any, **described: str | type) -> dict[str, int]:
    """Compare the attributes that ``fit`` leaves on an object with their descriptions.

    An object that has none of them is not fitted, and passes.

    Parameters
    ----------
    owner : object
        The loaded object.
    **described : str or type
        What each attribute is: a class, or ``"int"``, ``"float"``, ``"bool"``, ``"str"``,
        ``"list"``, ``"dict"``, ``"tuple"``; ``"=d"``, the length of the axis ``d`` as a whole
        number; or an array such as ``"float64[d, 3]"``. An axis has a length, or a name, which
        means the same length everywhere, or ``*`` for any length. The type is a dtype, ``float``
        or ``int`` of any size, ``labels``, or ``matrix`` for finite floats that may be CSR. ``|``
        stands between alternatives; a ``?`` at the end allows None, or no attribute.

    Returns
    -------
    lengths : dict
        The length of every named axis; false if and only if the object is not fitted.
    """
    state = vars(owner)
    if not described.keys() & state.keys():
        return {}
    lengths = Lengths()
    # arrays first: they say how long axes are
    for name in sorted(described, key=lambda a: str(described[a]).startswith("=")):
        wanted = described[name]
        value = state.get(name)
        if value is None and isinstance(wanted, str) and wanted.endswith("?"):
            continue
        require(name in state, f"{name} of {type(owner).__name__} is missing")
        _require_one_of(name, value, wanted, lengths)
    return lengths


def _require_one_of(name: str, value: Any, wanted: str | type, lengths: dict[str, int]) -> None:
    if isinstance(wanted, type):
        require(isinstance(value, wanted), f"{name} is not a {wanted.__name__}")
        return
    for choice in wanted.rstrip("?").split("|"):
        found = _matched(value, choice, lengths)
        if found is not None:
            lengths.update(found)
            return
    known = ", ".join(f"{axis} = {length}" for axis, length in lengths.items())
    where = f", where {known}" if known else ""
    raise ValueError(f"{name} is {_shown(value)}, not {wanted.rstrip('?')}{where}")


def _matched(value: Any, wanted: str, lengths: dict[str, int]) -> dict[str, int] | None:
    """Return the axes that a value adds to ``lengths``, or None if it is not what is wanted."""
    if wanted.startswith("="):
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        return {} if whole and lengths.setdefault(wanted[1:], int(value)) == value else None
    described = ARRAY.fullmatch(wanted)
    if described is None:
        fits = isinstance(value, SCALARS[wanted])
        return {} if fits and (wanted == "bool" or not isinstance(value, bool)) else None
    kind, axes = described[1], described[2].split(", ")
    stored = isinstance(value, np.ndarray) or (kind == "matrix" and sp.issparse(value))
    if not stored or value.ndim != len(axes):
        return None
    if not (value.dtype.kind in DTYPE_KINDS[kind] if kind in DTYPE_KINDS else value.dtype == kind):
        return None
    if kind == "matrix" and not np.isfinite(value.data if sp.issparse(value) else value).all():
        return None
    added: dict[str, int] = {}
    for axis, length in zip(axes, value.shape, strict=True):
        if axis == "*":
            continue
        expected = int(axis) if axis.isdigit() else lengths.get(axis, added.get(axis, length))
        if expected != length:
            return None
        if not axis.isdigit():
            added[axis] = length
    return added


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    return f"a {type(value).__name__}"


def require_parameters(value: Any) -> None:
    """Compare the annotated fields of a loaded object with their annotations."""
    if not is_dataclass(value):
        return
    state = vars(value)
    cls: Any = type(value)
    for name, annotation, needed in _annotations(cls):
        require(name in state or not needed, f"{name} of {type(value).__name__} is missing")
        if name in state and not _is_a(state[name], annotation):
            raise ValueError(f"{name} of {type(value).__name__} is {_shown(state[name])}")


@functools.cache
def _annotations(cls: Any) -> list[tuple[str, Any, bool]]:
    hints = typing.get_type_hints(cls)
    return [
        (f.name, hints[f.name], f.default is MISSING and f.default_factory is MISSING)
        for f in fields(cls)
        if f.init
    ]


def _is_a(value: Any, annotation: Any) -> bool:
    """Say whether a value fits an annotation; what is not understood fits."""
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType):
        return any(_is_a(value, part) for part in typing.get_args(annotation))
    if origin is typing.Literal:
        choices = typing.get_args(annotation)
        return any(type(value) is type(part) and value == part for part in choices)
    kind = annotation if origin is None else origin
    if kind is None:
        return value is None
    if kind is float:
        return isinstance(value, Real) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    if kind is bool:
        return isinstance(value, bool | np.bool_)
    if kind is Any or not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
        return True
    return isinstance(value, kind)
