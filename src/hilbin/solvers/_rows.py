"""The kernel as a descent sees it: rows whose scores can be read, and changed by a coefficient."""

from typing import Any, Protocol

import numpy as np

from hilbin._core import core
from hilbin.solvers._codes import Array, Levels
from hilbin.solvers._layout import ALIGN, Layout, lay_out


class Rows(Protocol):
    """Rows that a descent can score: tables or a Gram matrix."""

    norms: Array

    def start(self, coef: Array, dtype: Any) -> Any:
        """A function that runs one sweep, from a state that holds ``coef``."""

    def start_classes(self, coef: Array, dtype: Any) -> Any:
        """The same for one state per column of ``coef``."""

    def scores(self, coef: Array) -> Array:
        """``K @ coef`` in float64, for a vector or columns of coefficients."""


class TableRows:
    """Rows of ranks; the state of a descent is a table per feature.

    Parameters
    ----------
    codes : Levels
        The rows.
    layout : Layout, optional
        How the tables lie in memory; chosen by the data if not given.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import TableRows, rank_values
    >>> rows = TableRows(rank_values(np.array([[1.0, 2.0], [3.0, 0.0]])))
    >>> rows.scores(np.array([1.0, 0.0]))
    array([3., 1.])
    """

    def __init__(self, codes: Levels, layout: Layout | None = None):
        self.codes = codes
        self.layout = lay_out(codes) if layout is None else layout
        self.norms = codes.norms
        kind = "sparse" if self.layout.sparse else "dense"
        self._sweep, self._sweep_classes, self._add = (
            getattr(core, f"{name}_{kind}") for name in ("sweep", "sweep_classes", "add")
        )

    def start(self, coef: Array, dtype: Any) -> Any:
        """A function that runs one sweep, from tables that hold ``coef``."""
        given, cells = self._given(coef[:, None], dtype)
        cells = cells[0]
        return lambda *course: self._sweep(*given[:-2], cells, *given[-2:], *course)

    def start_classes(self, coef: Array, dtype: Any) -> Any:
        """The same for one set of tables per column of ``coef``."""
        given, cells = self._given(coef, dtype)
        return lambda *course: self._sweep_classes(*given[:-2], cells, *given[-2:], *course)

    def _given(self, coef: Array, dtype: Any) -> tuple[tuple[Any, ...], Array]:
        """What the core takes, without the cells, and the cells of every column."""
        layout = self.layout
        levels = _aligned_zeros(layout.levels.size, dtype)
        levels[:] = layout.levels
        cells = _aligned_zeros(layout.n_cells * coef.shape[1], dtype).reshape(coef.shape[1], -1)
        given = (*layout.rows, layout.groups, levels, layout.places)
        for column, part in zip(coef.T, cells, strict=True):
            if column.any():
                self._add(*given[:-2], part, *given[-2:], np.ascontiguousarray(column))
        return given, cells

    def scores(self, coef: Array) -> Array:
        """``K @ coef`` in float64, by exact tables."""
        columns = coef.reshape(len(coef), -1)
        return self.codes.scores(self.codes.tables(columns)).reshape(coef.shape)


def _aligned_zeros(n: int, dtype: Any) -> Array:
    zeros = np.zeros(n + ALIGN * 2, dtype)
    skip = -zeros.ctypes.data % 64 // zeros.itemsize
    return zeros[skip : skip + n]
