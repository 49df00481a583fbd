"""State of fitted models: which private classes a model file may hold, and what is checked of them.

A model file holds the attributes of objects. Two things make a class fit for it, both written where
the class is defined:

- :func:`stored` on a private class lets files hold its objects. Public classes, which a package
  lists in ``__all__``, need nothing.
- A method ``_check_state(self)`` raises ``ValueError`` if the attributes do not fit together, such
  as an offset beyond the end of an array that compiled code reads. It is called on every loaded
  object, fitted or not. A checksum does not help here, as a forger can compute it.
"""

from typing import Any, TypeVar

import numpy as np

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
    rising = bool((np.diff(starts) >= 0).all())
    require(rising and starts[-1] == end, f"{name} is out of range")
