"""Rows that are few enough to be kept: their sum is all of them, one below another."""

from collections.abc import Mapping
from typing import Self

import numpy as np

from hilbin._arrays import Array, Matrix, to_dense
from hilbin.stats._statistic import Additive, State, require_same_width


class StackedRows(Additive):
    """Rows, targets and weights of all chunks.

    Make them by :meth:`of` and add them. Fewer rows than columns take less memory than a scatter
    of the columns, and say more.

    Parameters
    ----------
    parts : list of tuples of arrays (Z, T, weight)
        Rows of shape (rows, D), targets of shape (rows, c) and weights, chunk by chunk.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.stats.stacked import StackedRows
    >>> some, more = (StackedRows.of(np.ones((1, 3)), np.array([[t]])) for t in (1.0, 2.0))
    >>> (some + more).stacked()[1].ravel()
    array([1., 2.])
    """

    def __init__(self, parts: list[tuple[Array, Array, Array]]) -> None:
        self.parts = parts

    @classmethod
    def of(cls, Z: Matrix, T: Matrix, weight: Array | None = None) -> Self:
        """Return some rows, in double precision.

        Parameters
        ----------
        Z : array or CSR of shape (rows, D)
        T : array or CSR of shape (rows, c)
            Targets.
        weight : array of shape (rows,), optional
            Weights; a weight of 2 is the row twice.
        """
        rows, targets = (np.asarray(to_dense(A), np.float64) for A in (Z, T))
        weight = np.ones(len(rows)) if weight is None else np.asarray(weight, np.float64)
        return cls([(rows, targets, weight)])

    def stacked(self) -> tuple[Array, Array, Array]:
        """Return rows, targets and weights of all chunks, in the order of addition."""
        if len(self.parts) > 1:
            Z, T, weight = (np.concatenate(arrays) for arrays in zip(*self.parts, strict=True))
            self.parts = [(Z, T, weight)]
        return self.parts[0]

    def __iadd__(self, other: Self) -> Self:
        if not isinstance(other, StackedRows):
            return NotImplemented
        require_same_width(self.parts[0][0].shape[1], other.parts[0][0].shape[1], "columns")
        self.parts = [*self.parts, *other.parts]
        return self

    def copy(self) -> Self:
        """Return an independent copy: nothing is ever written into the arrays."""
        return type(self)([*self.parts])

    def state(self) -> State:
        """Return arrays from which :meth:`from_state` restores the rows."""
        return dict(zip(("Z", "T", "weight"), self.stacked(), strict=True))

    @classmethod
    def from_state(cls, state: Mapping[str, Array]) -> Self:
        """Restore the rows from their :meth:`state`."""
        return cls([(np.array(state["Z"]), np.array(state["T"]), np.array(state["weight"]))])
