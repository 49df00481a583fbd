"""Quantiles of columns, dense or CSR, weighted or not: what a binner learns from data."""

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs

from hilbin import parallel
from hilbin._arrays import Array, Matrix, apply
from hilbin._core import core
from hilbin.estimators.probability import row_keys

VALUES_AT_ONCE = 1 << 17
FEWEST_AT_ONCE = 8  # columns: a cache line of each row
VALUES_OF_ROWS, FEWEST_OF_ROWS = 1 << 21, 64  # the same without a copy of the columns
NO_WEIGHTS = np.empty(0)
# What makes columns comparable: so many of them, and sizes of rows that differ by no more than this
# share, so many zeros, or ranges that differ by no more than this factor.
FEWEST, SAME_SIZE, MOSTLY_ZERO, SAME_RANGE = 8, 0.05, 0.8, 5.0
ENOUGH_ROWS = 1000  # to find that out
USUAL_POWER = 30  # of 2: squares of such values are far from the ends of float32


def extremes(X: Matrix) -> tuple[Array, Array]:
    """Return the least and greatest value of every column; what CSR does not store is zero."""
    least, greatest = np.full((2, X.shape[1]), [[np.inf], [-np.inf]], X.dtype)
    if sp.issparse(X):
        indices = X.indices.astype(np.int32, copy=False)
        core.sparse_extremes(X.data, indices, X.shape[0], least, greatest)
    elif X.flags.c_contiguous:
        core.dense_extremes(X, least, greatest)
    else:
        return X.min(axis=0), X.max(axis=0)
    return least, greatest


def quantiles_above(
    X: Matrix, low: Array, q: float, weights: Array | None, n_jobs: int | None
) -> Array:
    """Return the ``q``-quantile of the values above ``low`` of every column, or ``low``.

    The ``q``-quantile is the least value that values of a share ``q`` of the weight do not exceed.
    If ``low`` has length 1, all values are one column.
    """
    out = np.empty(low.size, X.dtype)
    low = low.astype(X.dtype)
    if low.size == 1 and X.shape[1] > 1:
        values, w = _all_values(X, weights)
        core.column_quantiles(values, np.array([0, values.size]), w, low, q, out, 0, 1)
        return out

    def task(begin: int, end: int) -> None:
        values, indptr, w = _columns(X, begin, end, weights)
        core.column_quantiles(values, indptr, w, low[begin:end], q, out[begin:end], 0, end - begin)

    at_once = max(FEWEST_AT_ONCE, VALUES_AT_ONCE // X.shape[0])
    if sp.issparse(X):
        X, at_once = X.tocsc(), X.shape[1]
    parallel.run(task, parallel.ranges(X.shape[1], at_once), n_jobs)
    return out


def quantile_range(
    X: Matrix, least: Array, q: float, weights: Array | None, n_jobs: int | None
) -> tuple[Array, Array]:
    """Return the ``1 - q``-quantile of every column, and the ``q``-quantile of what is above it.

    ``least`` are the least values; if they are one, all values are one column.
    """
    share = round(1 - q, 12)
    if sp.issparse(X) or least.size < X.shape[1]:
        low = low_quantiles(X, least, share, weights, n_jobs)
        return low, quantiles_above(X, low, q, weights, n_jobs)
    low, high = np.empty((2, least.size), X.dtype)
    if weights is None and X.flags.c_contiguous:
        run = partial(core.column_ranges, X, share, q, low, high)
        part = -(-X.shape[1] // effective_n_jobs(n_jobs))
        most = max(FEWEST_OF_ROWS, VALUES_OF_ROWS // X.shape[0])
        at_once = min(most, max(FEWEST_AT_ONCE, part))
        parallel.run(run, parallel.ranges(X.shape[1], at_once), n_jobs)
        return low, high

    def task(begin: int, end: int) -> None:
        values, indptr, w = _columns(X, begin, end, weights)
        below = np.full(end - begin, -np.inf, X.dtype)
        core.column_quantiles(values, indptr, w, below, share, low[begin:end], 0, end - begin)
        given = (low[begin:end], q, high[begin:end])
        core.column_quantiles(values, indptr, w, *given, 0, end - begin)

    at_once = max(FEWEST_AT_ONCE, VALUES_AT_ONCE // X.shape[0])
    parallel.run(task, parallel.ranges(X.shape[1], at_once), n_jobs)
    return low, high


def low_quantiles(
    X: Matrix, least: Array, q: float, weights: Array | None, n_jobs: int | None
) -> Array:
    """Return the ``q``-quantile of every column; ``least`` are the least values."""
    if not sp.issparse(X):
        return quantiles_above(X, np.full(least.size, -np.inf), q, weights, n_jobs)
    w = np.ones(X.shape[0]) if weights is None else weights
    per_row, low = np.diff(X.indptr), least.copy()
    if least.size == 1 < X.shape[1]:
        total, present = w.sum() * X.shape[1], w @ per_row
        share = (q * total - (total - present)) / max(present, 1e-300)  # zeros come first
        return low if share <= 0 else quantiles_above(X, low - np.inf, share, weights, n_jobs)
    each = None if weights is None else np.repeat(w, per_row)
    stored = np.bincount(X.indices, each, minlength=X.shape[1])
    full = np.flatnonzero(stored > (1 - q) * w.sum() * (1 - 1e-12))  # zeros are too few to decide
    if full.size:
        low[full] = low_quantiles(X[:, full].toarray(), least[full], q, weights, n_jobs)
    return low


def quantile_edges(X: Matrix, low: Array, bins: int, weights: Array | None) -> tuple[Array, Array]:
    """Return the distinct quantiles of the values above ``low`` that begin the bins.

    They come column after column, with the place where each column begins.
    """
    if sp.issparse(X):
        X = X.tocsc()
    pooled = low.size == 1 and X.shape[1] > 1
    edges = []
    for j in range(low.size):
        values, w = _all_values(X, weights) if pooled else _columns(X, j, j + 1, weights)[::2]
        edges.append(_edges(values, w, low[j], bins))
    if pooled:
        edges = edges * X.shape[1]
    offsets = np.concatenate(([0], np.cumsum([e.size for e in edges])))
    return np.concatenate(edges).astype(np.float64), offsets.astype(np.int64)


def _edges(values: Array, weights: Array, low: Any, bins: int) -> Array:
    above = values > low
    values = values[above]
    if not values.size:
        return values
    if weights.size:
        order = np.argsort(values, kind="stable")
        values, reached = values[order], np.cumsum(weights[above][order])
    else:
        values, reached = np.sort(values), np.arange(1.0, values.size + 1)
    shares = np.arange(bins) / bins * reached[-1]
    return np.unique(values[np.searchsorted(reached, shares, side="left")])


def _columns(X: Matrix, begin: int, end: int, weights: Array | None) -> tuple[Array, Array, Array]:
    """Return values column after column, where each column begins, and their weights."""
    if sp.issparse(X):
        part = slice(X.indptr[begin], X.indptr[end])
        indptr = X.indptr[begin : end + 1].astype(np.int64) - X.indptr[begin]
        return X.data[part], indptr, NO_WEIGHTS if weights is None else weights[X.indices[part]]
    if X.flags.c_contiguous:
        columns = np.empty((end - begin, X.shape[0]), X.dtype)
        core.copy_columns(X, begin, end, columns)
    else:
        columns = np.ascontiguousarray(X[:, begin:end].T)
    indptr = np.arange(end - begin + 1) * X.shape[0]
    return columns.ravel(), indptr, NO_WEIGHTS if weights is None else np.tile(weights, end - begin)


def _all_values(X: Matrix, weights: Array | None) -> tuple[Array, Array]:
    if sp.issparse(X):
        X = X.tocsr()
        w = None if weights is None else np.repeat(weights, np.diff(X.indptr))
        return X.data, NO_WEIGHTS if w is None else w
    w = None if weights is None else np.repeat(weights, X.shape[1])
    return np.ascontiguousarray(X).ravel(), NO_WEIGHTS if w is None else w


def comparable(X: Matrix, least: Array, weights: Array | None, n_jobs: int | None) -> bool:
    """Tell whether the columns are bins of histograms or the like, by the rows alone.

    They are if no value is negative and one of these holds: rows have about the same sum or length,
    to which more than one column contributes; most values are zero, and no few columns are larger
    than all others; or most columns have about the same range, as pixels have. Quantiles decide,
    which no single value moves; where there are many rows, a thousand different ones are enough,
    drawn by what they hold, so that a weight of 2 is the row twice. ``least`` are the least values.
    """
    if X.shape[1] < FEWEST or least.min(initial=0) < 0:
        return False
    if X.shape[0] > ENOUGH_ROWS:
        keys = row_keys(X)
        some = np.flatnonzero(keys <= _nth_distinct(keys, ENOUGH_ROWS))
        X, weights = X[some], None if weights is None else weights[some]
    X = _of_size_one(X)
    zeros = np.zeros(X.shape[1])
    typical = quantiles_above(X, zeros, 0.5, weights, n_jobs).astype(np.float64)
    count = typical.sum() ** 2 / (float(typical @ typical) or 1.0)  # of columns that matter
    w = np.ones(X.shape[0]) if weights is None else weights
    present = X.count_nonzero(axis=1) if sp.issparse(X) else np.count_nonzero(X, axis=1)
    if count >= FEWEST and w @ present <= (1 - MOSTLY_ZERO) * w.sum() * X.shape[1]:
        return True
    squares = X.multiply(X).sum(axis=1) if sp.issparse(X) else np.einsum("ij,ij->i", X, X)
    sums, lengths = (np.asarray(a, np.float64).ravel() for a in (X.sum(axis=1), squares))
    if count >= 2 and min(_spread(a, weights) for a in (sums, np.sqrt(lengths))) <= SAME_SIZE:
        return True
    high = np.sort(quantiles_above(X, zeros, 0.975, weights, n_jobs))
    high = high[high > 0]
    tenth = high.size // 10
    return bool(high.size) and bool(SAME_RANGE * high[tenth] >= high[-1 - tenth])


def _nth_distinct(keys: Array, n: int) -> Any:
    """Return the ``n``-th smallest of the distinct keys, or the largest of fewer."""
    if keys.size > 2 * n and (some := np.unique(np.partition(keys, 2 * n)[: 2 * n])).size >= n:
        return some[n - 1]
    return np.unique(keys)[:n][-1]


def _of_size_one(X: Matrix) -> Matrix:
    """Return rows times a power of 2, if squares could be 0 or infinite without."""
    values = X.data if sp.issparse(X) else X
    power = -int(np.frexp(values.max(initial=0))[1])
    return X if abs(power) <= USUAL_POWER else apply(X, lambda x: np.ldexp(x, power))


def _spread(values: Array, weights: Array | None) -> float:
    """Return how far the 90th percentile is from the 10th, over the median."""
    below = np.full(1, -np.inf)
    low, middle, high = (
        float(quantiles_above(values[:, None], below, q, weights, 1)[0]) for q in (0.1, 0.5, 0.9)
    )
    return (high - low) / middle if middle > 0 else np.inf
