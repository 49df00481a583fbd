"""What a model on tables has learnt: for every feature, a function from value to score."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from hilbin import parallel
from hilbin._arrays import Array, Matrix
from hilbin._core import core
from hilbin.estimators.binner import HistogramBinner
from hilbin.solvers import Levels
from hilbin.solvers._codes import NO_INDICES, NO_INDPTR, whole_vectors

VALUES_PER_TASK = 1 << 23
LARGE = 1 << 24  # bytes, above which tables are halved
SINGLE = 1e30  # values below this fit single precision
MONOTONE = 0.02  # what goes the other way, as a share


@dataclass(frozen=True)
class ShapeFunction:
    """What one feature contributes to the score, as a function of its value.

    Parameters
    ----------
    name : str
        Of the feature.
    values : ndarray of shape (n_points,)
        Where the function changes, in the units of the data.
    contributions : ndarray of shape (n_points,) or (n_points, n_classes)
        The function there; constant before the first point and after the last.
    stepped : bool
        Whether it is constant between two points, or linear.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.estimators import ShapeFunction
    >>> shape = ShapeFunction("width", np.array([0.0, 1.0]), np.array([0.0, 2.0]), stepped=False)
    >>> float(shape(0.25)), shape.trend
    (0.5, 'rising')
    """

    name: str
    values: Array
    contributions: Array
    stepped: bool

    def __call__(self, x: Any) -> Any:
        """The contribution at the values ``x``."""
        x = np.asarray(x, np.float64)
        if self.stepped:
            at = np.searchsorted(self.values, x, side="right") - 1
            return self.contributions[np.maximum(at, 0)]
        if self.contributions.ndim == 1:
            return np.interp(x, self.values, self.contributions)
        return np.stack([np.interp(x, self.values, c) for c in self.contributions.T], axis=-1)

    @property
    def range(self) -> float:
        """Largest difference that the value of this feature can make to a score."""
        return float(np.ptp(self.contributions, axis=0).max(initial=0.0))

    @property
    def trend(self) -> str:
        """For the class it matters to most: flat, rising, falling or mixed, up to ripples."""
        c = self.contributions.reshape(self.values.size, -1)
        if self.range == 0:
            return "flat"
        steps = np.diff(c[:, int(np.ptp(c, axis=0).argmax())])
        rises, falls = steps[steps > 0].sum(), -steps[steps < 0].sum()
        if falls <= MONOTONE * rises:
            return "rising"
        return "falling" if rises <= MONOTONE * falls else "mixed"


class ShapeTables:
    """The tables of all features, and the way from rows to scores.

    Parameters
    ----------
    binner : HistogramBinner
        Makes codes, or measured values, of rows.
    codes : Levels
        Whose levels the tables are over.
    tables : array of shape (n_levels, n_outputs)
        From :meth:`Levels.tables`.
    """

    def __init__(self, binner: HistogramBinner, codes: Levels, tables: Array):
        self.binner = binner
        self.offsets = codes.offsets
        self.n_outputs = tables.shape[1]
        self.table = whole_vectors(tables)
        large = binner.n_bins is not None and self.table.nbytes > LARGE
        if large and np.abs(tables).max(initial=0) < SINGLE:
            # steps are coarser than single precision; small tables are read faster in double
            self.table = self.table.astype(np.float32)
        # a code is a place in a table, unless levels are missing
        self.levels = None if codes.step is not None else codes.levels

    @property
    def nbytes(self) -> int:
        """Bytes of all that scoring needs."""
        arrays = [self.table, self.offsets, self.binner.low_, self.binner._scale]
        arrays += [self.levels] if self.levels is not None else []
        arrays += [self.binner._edges] if hasattr(self.binner, "_edges") else []
        return sum(a.nbytes for a in arrays)

    def scores(self, X: Matrix, n_jobs: int | None) -> Array:
        """Sum of the shape functions at the values of every row."""
        out = np.empty((X.shape[0], self.table.shape[1]))
        values = X.nnz if sp.issparse(X) else X.size
        rows_per_task = max(1, VALUES_PER_TASK * X.shape[0] // max(1, values))

        def task(begin: int, end: int) -> None:
            given = self._given(X[begin:end], check=True)
            if self.levels is None:
                core.look_up(*given, self.offsets, self.table, out[begin:end], 0, end - begin)
            else:
                core.interpolate(
                    *given,
                    self.offsets,
                    self.levels,
                    self.table,
                    out[begin:end],
                    False,
                    0,
                    end - begin,
                )

        parallel.run(task, parallel.ranges(X.shape[0], rows_per_task), n_jobs)
        return out[:, : self.n_outputs]

    def contributions(self, X: Matrix) -> Array:
        """The shape functions at every value (every stored value), one row for each."""
        codes, indices, indptr = self._given(X)
        if self.levels is None:
            first = self.offsets[indices] if indptr.size else np.tile(self.offsets[:-1], X.shape[0])
            return self.table[first + codes, : self.n_outputs].astype(np.float64, copy=False)
        out = np.empty((codes.size, self.table.shape[1]))
        core.interpolate(
            codes, indices, indptr, self.offsets, self.levels, self.table, out, True, 0, X.shape[0]
        )
        return out[:, : self.n_outputs]

    def shape(self, feature: int, name: str) -> ShapeFunction:
        """The function of one feature."""
        part = slice(self.offsets[feature], self.offsets[feature + 1])
        table = self.table[part, : self.n_outputs].astype(np.float64, copy=False)
        binner = self.binner
        if self.levels is None:
            values, stepped = binner.boundaries(feature), True
        elif binner.n_bins is None:
            scale = binner._scale[feature]
            values = binner._origin[feature] + self.levels[part] / (scale if scale > 0 else 1)
            stepped = False
        else:  # levels that do not occur were dropped, but codes are still steps
            every = np.arange(int(binner.last_[feature]) + 1) * binner.step_
            shape = ShapeFunction(name, self.levels[part], table, stepped=False)
            values, table, stepped = binner.boundaries(feature), shape(every), True
        return ShapeFunction(name, values, table[:, 0] if self.n_outputs == 1 else table, stepped)

    def _given(self, X: Matrix, *, check: bool = False) -> tuple[Array, Array, Array]:
        """Codes or measured values of the rows, and where they are."""
        rows = self.binner._encode(X, check=check)
        values = rows.data if sp.issparse(rows) else rows.ravel()
        if self.levels is not None and self.binner.n_bins is not None:
            values = values * self.binner.step_
        if not sp.issparse(rows):
            return values, NO_INDICES, NO_INDPTR
        return values, rows.indices.astype(np.int32, copy=False), rows.indptr.astype(np.int64)
