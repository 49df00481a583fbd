"""Rows as ranks: what a row of a histogram is to the table solvers.

A feature has levels ``v_0 = 0 < v_1 < ... < v_m``; a row holds, for every feature, the rank of its
value among them. Quantized data have evenly spaced levels, exact data all the values that occur.
The intersection of two rows is ``sum_j min(v[x_j], v[y_j])``, and a table over the levels,
``T_j(r) = sum_i c_i min(v[x_ij], v_r)``, holds all that rows ``i`` say about any other row.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from hilbin import parallel
from hilbin._core import core

Array = npt.NDArray[Any]

NO_INDICES = np.empty(0, np.int32)
NO_INDPTR = np.empty(0, np.int64)
VALUES_PER_TASK = 1 << 20
MOST_LEVELS = 16**5


@dataclass(frozen=True)
class Levels:
    """Ranks of rows in the levels of their features.

    Parameters
    ----------
    rows : array of shape (n, d) or CSR array
        Ranks, as uint8, uint16 or uint32. What a CSR array does not store has rank 0.
    offsets : array of shape (d + 1,)
        Feature ``j`` has the levels ``levels[offsets[j]:offsets[j + 1]]``, the first of them 0.
    levels : array
        Levels of all features, ascending in each.
    step : float, optional
        Set if level ``r`` of every feature is ``r * step``.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import Levels
    >>> rows = np.array([[0, 2], [1, 1]], np.uint8)
    >>> codes = Levels(rows, np.array([0, 2, 5]), np.array([0.0, 1, 0, 1, 2]), step=1.0)
    >>> codes.norms
    array([2., 2.])
    """

    rows: Any
    offsets: Array
    levels: Array
    step: float | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and features."""
        return self.rows.shape

    @cached_property
    def parts(self) -> tuple[Array, Array, Array]:
        """Codes, column indices and row pointers; the last two empty if the rows are dense."""
        if not sp.issparse(self.rows):
            return np.ascontiguousarray(self.rows).ravel(), NO_INDICES, NO_INDPTR
        rows = self.rows
        return rows.data, rows.indices.astype(np.int32, copy=False), rows.indptr.astype(np.int64)

    @cached_property
    def norms(self) -> Array:
        """``k(x, x)``, the sum of the levels of every row."""
        if self.step is None:
            return self.scores(self.levels[:, None])[:, 0]
        sums = np.empty(self.shape[0], np.uint64)
        core.sum_codes(*self.parts, self.shape[1], sums)
        return self.step * sums

    def values(self) -> Any:
        """The rows in levels instead of ranks."""
        data, indices, indptr = self.parts
        if not indptr.size:
            return self.levels[self.offsets[:-1] + self.rows]
        return sp.csr_array(
            (self.levels[self.offsets[indices] + data], indices, indptr), self.shape
        )

    def tables(self, coefficients: Array) -> Array:
        """``T`` of every feature for every column of coefficients, level by level."""
        sums = np.zeros((self.levels.size, coefficients.shape[1]))
        core.level_sums(*self.parts, self.offsets, np.ascontiguousarray(coefficients), sums)
        core.level_tables(sums, self.offsets, self.levels)
        return sums

    def scores(self, tables: Array, n_jobs: int | None = None) -> Array:
        """``sum_j T_j`` at the ranks of every row, for every column of tables."""
        outputs = tables.shape[1]
        padded = whole_vectors(tables)
        out = np.empty((self.shape[0], padded.shape[1]))
        rows_per_task = max(1, VALUES_PER_TASK // max(1, self.parts[0].size // self.shape[0]))

        def task(begin: int, end: int) -> None:
            core.look_up(*self.parts, self.offsets, padded, out, begin, end)

        parallel.run(task, parallel.ranges(self.shape[0], rows_per_task), n_jobs)
        return out[:, :outputs]


def whole_vectors(tables: Array) -> Array:
    """One column, or columns filled up to a number the core reads at once."""
    columns = tables.shape[1]
    width = 1 if columns == 1 else -(-columns // 4) * 4
    if width == columns:
        return np.ascontiguousarray(tables)
    padded = np.zeros((tables.shape[0], width))
    padded[:, :columns] = tables
    return padded


def drop_unused(codes: Levels) -> Levels:
    """The same rows over the levels that occur: shorter tables where most levels are unused.

    Parameters
    ----------
    codes : Levels
        The rows.

    Returns
    -------
    codes : Levels
        With the same norms and scores, and without a ``step``.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import Levels, drop_unused
    >>> rows = np.array([[3], [0]], np.uint8)
    >>> drop_unused(Levels(rows, np.array([0, 4]), np.arange(4.0))).levels
    array([0., 3.])
    """
    data, indices, indptr = codes.parts
    nth, ranks = np.empty(codes.levels.size, np.int32), np.empty_like(data)
    used = core.rank_used(data, indices, indptr, codes.offsets, nth, ranks, codes.shape[0])
    offsets = np.append(nth[codes.offsets[:-1]], used).astype(np.int64)
    if indptr.size:
        rows = sp.csr_array((ranks, indices, indptr), shape=codes.shape)
    else:
        rows = ranks.reshape(codes.shape)
    return Levels(rows, offsets, codes.levels[nth >= 0])


def rank_values(values: Any, n_jobs: int | None = None) -> Levels:
    """Non-negative values as ranks among the distinct ones of their feature: nothing is lost.

    Parameters
    ----------
    values : array or CSR array of shape (n, d)
        Rows, finite and not negative.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    codes : Levels

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import rank_values
    >>> rank_values(np.array([[0.5], [0.0], [2.5]])).rows.ravel()
    array([1, 0, 2], dtype=uint8)
    """
    n, d = values.shape
    if sp.issparse(values):
        columns = values.tocsc()
        data, indptr = columns.data, columns.indptr.astype(np.int64)
    else:
        data, indptr = np.ascontiguousarray(values.T).ravel(), np.arange(d + 1) * n
    sorted_values, counts = np.empty_like(data), np.empty(d, np.int64)
    ranks = np.empty(data.size, np.uint32)
    parallel.run(
        lambda begin, end: core.rank_columns(
            data, indptr, sorted_values, counts, ranks, begin, end
        ),
        parallel.ranges(d, max(1, VALUES_PER_TASK // max(1, n))),
        n_jobs,
    )
    most = int(counts.max(initial=0))
    if most >= MOST_LEVELS:
        raise ValueError(
            f"feature {int(counts.argmax())} has {most} distinct values, and at most "
            f"{MOST_LEVELS - 1} are kept apart; give a number of bins"
        )
    ranks = ranks.astype(np.min_scalar_type(most))
    if sp.issparse(values):
        rows = sp.csc_array((ranks, columns.indices, columns.indptr), shape=(n, d)).tocsr()
    else:
        rows = np.ascontiguousarray(ranks.reshape(d, n).T)
    offsets = np.concatenate(([0], np.cumsum(counts + 1)))
    levels = np.zeros(offsets[-1])
    feature = np.repeat(np.arange(d), counts)
    nth = np.arange(feature.size) - (offsets[:-1] - np.arange(d))[feature]
    levels[offsets[feature] + 1 + nth] = sorted_values[indptr[feature] + nth]
    return Levels(rows, offsets, levels)
