"""Statistics can be added, and saved as arrays: the protocol, and what implementations share."""

from collections.abc import Mapping
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import scipy.sparse as sp

from hilbin._arrays import Array, Matrix

State = dict[str, Array]


@runtime_checkable
class Statistic(Protocol):
    """A sum over rows: a commutative monoid whose order of addition changes rounding alone.

    ``a + b`` leaves both as they are, ``a += b`` saves memory, and ``0 + a`` is a copy of ``a`` so
    that ``sum`` works. ``state`` returns arrays from which ``from_state`` restores the statistic.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.stats import Moments, Statistic
    >>> isinstance(Moments.of(np.eye(2)), Statistic)
    True
    """

    def __add__(self, other: Self) -> Self:
        """Return the statistic of the rows of both."""

    def __iadd__(self, other: Self) -> Self:
        """Add the rows of ``other`` to this statistic."""

    def state(self) -> State:
        """Return arrays from which :meth:`from_state` restores the statistic."""

    @classmethod
    def from_state(cls, state: Mapping[str, Array]) -> Self:
        """Restore the statistic from its :meth:`state`."""

    @property
    def nbytes(self) -> int:
        """Memory in use, in bytes."""


class Additive:
    """``a + b``, ``sum`` and copies for a class with ``__iadd__``, ``state`` and ``from_state``.

    ``from_state`` must not keep the arrays that it is given.
    """

    def state(self) -> State:
        """Return arrays from which :meth:`from_state` restores the statistic."""
        raise NotImplementedError

    @classmethod
    def from_state(cls, state: Mapping[str, Array]) -> Self:
        """Restore the statistic from its :meth:`state`."""
        raise NotImplementedError

    def copy(self) -> Self:
        """Return an independent copy."""
        return type(self).from_state(self.state())

    @property
    def nbytes(self) -> int:
        """Memory in use, in bytes."""
        return sum(array.nbytes for array in self.state().values())

    def __iadd__(self, other: Self) -> Self:
        raise NotImplementedError

    def __add__(self, other: Self) -> Self:
        if not isinstance(other, type(self)):
            return NotImplemented
        total = self.copy()
        total += other
        return total

    def __radd__(self, other: object) -> Self:
        return self.copy() if isinstance(other, int) and other == 0 else NotImplemented


def checked_weights(weight: object, rows: int) -> Array | None:
    """Return the weights as float64, one >= 0 for every row; None stands for 1."""
    if weight is None:
        return None
    w = np.asarray(weight, np.float64)
    if w.shape != (rows,):
        raise ValueError(f"weight has shape {w.shape}, but there are {rows} rows")
    if not (np.isfinite(w).all() and (w >= 0).all()):
        bad = int(np.argmin(np.isfinite(w) & (w >= 0)))
        raise ValueError(f"weight must be finite and >= 0, but is {w[bad]} at row {bad}")
    return w


def checked_rows(Z: Any, name: str = "Z") -> Matrix:
    """Return ``Z`` as a two-dimensional array or a CSR array of floats."""
    Z = sp.csr_array(Z) if sp.issparse(Z) else np.asarray(Z)
    if Z.ndim != 2:
        raise ValueError(f"{name} must be two-dimensional, got shape {Z.shape}")
    return Z if Z.dtype in (np.float32, np.float64) else Z.astype(np.float64)


def require_same_width(ours: Any, theirs: Any, what: str) -> None:
    """Refuse to add statistics of different shapes."""
    if ours != theirs:
        raise ValueError(f"cannot add statistics of {ours} and {theirs} {what}")
