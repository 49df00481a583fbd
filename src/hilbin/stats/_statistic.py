"""What every statistic promises: it can be added, and written down as arrays."""

from collections.abc import Mapping
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Array = npt.NDArray[Any]
Matrix = Any  # an array or a CSR array of rows
State = dict[str, Array]


@runtime_checkable
class Statistic(Protocol):
    """A sum over rows: a commutative monoid whose order of addition changes rounding alone.

    ``a + b`` leaves both as they are, ``a += b`` saves memory, and ``0 + a`` is a copy of ``a`` so
    that ``sum`` works. ``state`` gives arrays from which ``from_state`` makes the same statistic.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.stats import Moments, Statistic
    >>> isinstance(Moments.of(np.eye(2)), Statistic)
    True
    """

    def __add__(self, other: Self) -> Self:
        """The statistic of the rows of both."""

    def __iadd__(self, other: Self) -> Self:
        """Add the rows of ``other`` to this statistic."""

    def state(self) -> State:
        """Arrays that say all."""

    @classmethod
    def from_state(cls, state: Mapping[str, Array]) -> Self:
        """The statistic of a ``state``."""

    @property
    def nbytes(self) -> int:
        """Memory in use."""


class Additive:
    """``a + b`` and ``sum`` for a class that has ``copy`` and ``__iadd__``."""

    def copy(self) -> Self:
        """An independent copy."""
        raise NotImplementedError

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
    """Weights as float64, one for every row and none negative; None is 1 for all."""
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
    """``Z`` as a two-dimensional array or a CSR array of floats."""
    Z = sp.csr_array(Z) if sp.issparse(Z) else np.asarray(Z)
    if Z.ndim != 2:
        raise ValueError(f"{name} must be two-dimensional, got shape {Z.shape}")
    return Z if Z.dtype in (np.float32, np.float64) else Z.astype(np.float64)


def require_same_width(ours: Any, theirs: Any, what: str) -> None:
    """Statistics of rows of different width have no sum."""
    if ours != theirs:
        raise ValueError(f"cannot add statistics of {ours} and {theirs} {what}")
