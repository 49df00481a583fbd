"""Rows of values into rows of features, value by value.

The features of a value stand side by side: value ``d`` becomes columns ``d n .. d n + n - 1``.
Dense rows and the stored values of CSR rows are both flat arrays here, so that one loop serves
both.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from hilbin._arrays import Array, Matrix
from hilbin._core import core
from hilbin._state import stored
from hilbin.kernels import AdditiveKernel
from hilbin.parallel import ranges, run

BLOCK = 1 << 15  # values

Fill = Callable[[Array, Array, int, int], object]


class Expansion(Protocol):
    """Features of single values."""

    @property
    def n_components(self) -> int:
        """Features per value."""
        ...

    def prepare(self, dtype: npt.DTypeLike) -> Fill:
        """A function ``fill(x, out, begin, end)`` on flat arrays of ``dtype``."""
        ...


def expand(X: Matrix, expansion: Expansion, keeps_zero: bool, n_jobs: int | None) -> Any:
    """The features of all values of ``X``; CSR stays CSR if the features of 0 are 0."""
    n = expansion.n_components
    if X.shape[1] * n > np.iinfo(np.int32).max:
        raise ValueError(f"{X.shape[1]} columns of {n} features each are too many")
    fill = expansion.prepare(X.dtype)
    if not sp.issparse(X):
        return _dense(X, fill, n, n_jobs)
    if keeps_zero:
        return _sparse(X, fill, n, n_jobs)
    out = np.empty((X.shape[0], X.shape[1] * n), X.dtype)
    for begin, end in ranges(X.shape[0], max(1, (1 << 22) // max(1, X.shape[1]))):
        out[begin:end] = _dense(X[begin:end].toarray(), fill, n, n_jobs)
    return out


def _dense(X: Array, fill: Fill, n: int, n_jobs: int | None) -> Array:
    out = np.empty((X.shape[0], X.shape[1] * n), X.dtype)

    def task(begin: int, end: int) -> None:
        rows = np.ascontiguousarray(X[begin:end]).ravel()
        fill(rows, out[begin:end].ravel(), 0, rows.size)  # contiguous: ravel is a view

    run(task, ranges(X.shape[0], max(1, BLOCK // max(1, X.shape[1]))), n_jobs)
    return out


def _sparse(X: Any, fill: Fill, n: int, n_jobs: int | None) -> Any:
    data = np.empty(X.nnz * n, X.dtype)
    indices = np.empty(X.nnz * n, np.int32)
    columns = X.indices.astype(np.int32, copy=False)

    def task(begin: int, end: int) -> None:
        fill(X.data, data, begin, end)
        core.spread_indices(columns, n, indices, begin, end)

    run(task, ranges(X.nnz, BLOCK), n_jobs)
    indptr = X.indptr.astype(np.int64) * n
    if X.nnz * n <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    Z = type(X)((data, indices, indptr), shape=(X.shape[0], X.shape[1] * n))
    Z.has_sorted_indices = Z.has_canonical_format = True  # as X has
    return Z


@stored
class SeriesTerms:
    """The chi-squared series with parameters ``k``."""

    def __init__(self, k: Array) -> None:
        self.k = k
        self.n_components = k.size

    def prepare(self, dtype: npt.DTypeLike) -> Fill:
        """See :class:`Expansion`."""
        k, twice_root = self.k.astype(dtype), (2 * np.sqrt(self.k)).astype(dtype)
        return lambda x, out, begin, end: core.series(x, k, twice_root, out, begin, end)


@stored
class RankOne:
    """``r(x) sqrt(P(0))``: all there is of a kernel whose profile is constant."""

    n_components = 1

    def __init__(self, kernel: AdditiveKernel) -> None:
        self.kernel = kernel

    def prepare(self, dtype: npt.DTypeLike) -> Fill:
        """See :class:`Expansion`."""
        size = np.asarray(np.sqrt(self.kernel.profile(np.zeros(1))[0]), dtype)

        def fill(x: Array, out: Array, begin: int, end: int) -> None:
            np.multiply(self.kernel.weight(x[begin:end]), size, out=out[begin:end])

        return fill


def expand_values(expansion: Expansion, x: Array) -> Array:
    """Values x features, in float64."""
    out = np.empty(x.size * expansion.n_components)
    expansion.prepare(np.float64)(np.ascontiguousarray(x, np.float64), out, 0, x.size)
    return out.reshape(x.size, -1)
