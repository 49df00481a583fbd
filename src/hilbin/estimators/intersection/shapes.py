"""What a model has learned of every feature: a function from its value to a score."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from hilbin import parallel
from hilbin._arrays import Array, Matrix
from hilbin._core import core
from hilbin._state import (
    require,
    require_attributes,
    require_offsets,
    require_vector,
    stored,
)
from hilbin.estimators.intersection.binner import HistogramBinner
from hilbin.solvers.lookup import NO_INDICES, NO_INDPTR, Levels, whole_vectors

# values per task: their levels stay in the cache, unless look-ups that do not are to be read seldom
VALUES_PER_TASK, OF_MANY_BYTES, MANY_BYTES = 1 << 20, 1 << 23, 1 << 21
LARGE = 1 << 24  # bytes, above which tables are halved
SINGLE = 1e30  # values below this fit single precision
MONOTONE = 0.02  # what goes the other way, as a share


@dataclass(frozen=True)
class ShapeFunction:
    """What one feature contributes to the score, as a function of its value.

    Parameters
    ----------
    name : str
        Name of the feature.
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
        """Return the contribution at the values ``x``."""
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


@stored
class ShapeLookup:
    """The look-up tables of all shape functions, and the way from rows to scores.

    Parameters
    ----------
    binner : HistogramBinner
        Makes levels, or measured values, of rows.
    levels : Levels
        The levels of the training rows.
    lookup : array of shape (n_levels, n_outputs)
        The functions at these levels, from :meth:`Levels.lookup`.
    """

    _rounded = ("lookup",)  # in compact files

    def __init__(self, binner: HistogramBinner, levels: Levels, lookup: Array):
        self.binner = binner
        self.offsets = levels.offsets
        self.n_outputs = lookup.shape[1]
        self.lookup = whole_vectors(lookup)
        large = binner.n_bins is not None and self.lookup.nbytes > LARGE
        if large and np.abs(lookup).max(initial=0) < SINGLE:
            # steps are coarser than single precision; short look-ups are faster in double
            self.lookup = self.lookup.astype(np.float32)
        # a level is a place in the look-up, unless some are missing
        self.levels = None if levels.step is not None else levels.levels

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the loaded arrays do not fit together."""
        lookup, binner = self.lookup, self.binner
        require(isinstance(binner, HistogramBinner), "the binner is missing")
        require_attributes(self, lookup="float32[n, w]|float64[n, w]", n_outputs="int")
        require(lookup.flags.c_contiguous, "lookup is not stored row by row")
        width = 1 if self.n_outputs == 1 else -(-self.n_outputs // 4) * 4
        require(width >= 1 and width == lookup.shape[1], "n_outputs is not that of the look-up")
        require(hasattr(binner, "low_"), "the binner is not fitted")
        require_offsets(self.offsets, binner.low_.size, lookup.shape[0])
        sizes = np.diff(self.offsets)
        require((sizes >= 1).all(), "a feature has no values in the look-up")
        if self.levels is not None:
            levels = require_vector(self.levels, np.float64, "levels")
            require(levels.size == lookup.shape[0], "levels are not as many as rows of the look-up")
            inside = np.ones(max(0, levels.size - 1), bool)
            inside[self.offsets[1:-1] - 1] = False
            rising = (np.diff(levels)[inside] > 0).all()
            require(rising and np.isfinite(levels).all(), "the levels of a feature do not rise")
        else:
            require(binner.n_bins is not None, "a look-up without levels needs bins")
            require((binner.last_ < sizes).all(), "a bin is beyond the values of its feature")

    @property
    def nbytes(self) -> int:
        """Number of bytes that scoring needs."""
        arrays = [self.lookup, self.offsets, self.binner.low_, self.binner.scale_]
        arrays += [self.levels] if self.levels is not None else []
        arrays += [self.binner.edges_] if hasattr(self.binner, "edges_") else []
        return sum(a.nbytes for a in arrays)

    def scores(self, X: Matrix, n_jobs: int | None) -> Array:
        """Return the sum of the shape functions at the values of every row."""
        out = np.empty((X.shape[0], self.lookup.shape[1]))
        values = X.nnz if sp.issparse(X) else X.size
        per_task = VALUES_PER_TASK if self.lookup.nbytes <= MANY_BYTES else OF_MANY_BYTES
        rows_per_task = max(1, per_task * X.shape[0] // max(1, values))

        def task(begin: int, end: int) -> None:
            given = self._given(X[begin:end], check=True)
            if self.levels is None:
                core.look_up(*given, self.offsets, self.lookup, out[begin:end], 0, end - begin)
            else:
                core.interpolate(
                    *given,
                    self.offsets,
                    self.levels,
                    self.lookup,
                    out[begin:end],
                    False,
                    0,
                    end - begin,
                )

        parallel.run(task, parallel.ranges(X.shape[0], rows_per_task), n_jobs)
        return out[:, : self.n_outputs]

    def contributions(self, X: Matrix) -> Array:
        """Return the shape functions at every value (every stored value), one row for each."""
        values, indices, indptr = self._given(X)
        if self.levels is None:
            first = self.offsets[indices] if indptr.size else np.tile(self.offsets[:-1], X.shape[0])
            return self.lookup[first + values, : self.n_outputs].astype(np.float64, copy=False)
        out = np.empty((values.size, self.lookup.shape[1]))
        core.interpolate(
            values,
            indices,
            indptr,
            self.offsets,
            self.levels,
            self.lookup,
            out,
            True,
            0,
            X.shape[0],
        )
        return out[:, : self.n_outputs]

    def shape(self, feature: int, name: str) -> ShapeFunction:
        """Return the function of one feature."""
        part = slice(self.offsets[feature], self.offsets[feature + 1])
        found = self.lookup[part, : self.n_outputs].astype(np.float64, copy=False)
        binner = self.binner
        if self.levels is None:
            values, stepped = binner.boundaries(feature), True
        elif binner.n_bins is None:
            scale = binner.scale_[feature]
            values = binner.low_[feature] + self.levels[part] / (scale if scale > 0 else 1)
            stepped = False
        else:  # levels that do not occur were dropped, but the function still has steps
            every = np.arange(int(binner.last_[feature]) + 1) * binner.step_
            shape = ShapeFunction(name, self.levels[part], found, stepped=False)
            values, found, stepped = binner.boundaries(feature), shape(every), True
        return ShapeFunction(name, values, found[:, 0] if self.n_outputs == 1 else found, stepped)

    def _given(self, X: Matrix, *, check: bool = False) -> tuple[Array, Array, Array]:
        """Return levels or measured values of the rows, and where they are."""
        rows = self.binner.encode(X, check=check)
        values = rows.data if sp.issparse(rows) else rows.ravel()
        if self.levels is not None and self.binner.n_bins is not None:
            values = values * self.binner.step_
        if not sp.issparse(rows):
            return values, NO_INDICES, NO_INDPTR
        return values, rows.indices.astype(np.int32, copy=False), rows.indptr.astype(np.int64)
