"""Matrices over all pairs of rows, computed by threads.

:func:`pairwise_sum` computes ``out[i, j] = sum_d op(x_id, y_jd)`` in the compiled core;
:func:`rowwise` then changes such a matrix in place, a few rows at a time. :func:`finished_sums`
does both, and for the symmetric matrix of dense rows half of it: bands of rows are computed,
changed and rounded while they are in the cache, so that memory is touched once. :func:`upper_sums`
are the entries above the diagonal alone, in half the memory, as SciPy's ``pdist`` has them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from joblib import effective_n_jobs

from hilbin._arrays import Array, Matrix
from hilbin._core import core
from hilbin.parallel import ranges, run

ROWS_PER_TASK = 96  # the rows that the core takes at a time, and a multiple of every panel's rows
FEWEST_ROWS = 8  # fewer leave a panel half used
ROWS_PER_PACKING = 85 * ROWS_PER_TASK  # packing fewer takes less time than starting threads
CACHED_BYTES = 1 << 18  # of the rows that are changed in place at a time


Change: TypeAlias = Callable[[Array, slice], object]  # of some rows of a matrix, and which


@dataclass(frozen=True)
class Op:
    """A compiled function of two values.

    ``prepare`` gives the one to three numbers ("planes") per value that the function reads; None is
    the value itself. ``vanishes`` says that the function is 0 where either value is, so that sparse
    rows need only their stored values. ``numbers`` serve the functions made from a profile.
    """

    name: str
    prepare: Callable[[Array], Sequence[Array]] | None = None
    vanishes: bool = True
    numbers: Array = field(default_factory=lambda: np.empty(0))

    def planes(self, values: Array, dtype: npt.DTypeLike) -> list[Array]:
        """Return what the compiled function reads of ``values``."""
        prepared = [values] if self.prepare is None else self.prepare(values)
        return [np.asarray(plane, dtype=dtype) for plane in prepared]


def pairwise_sum(
    op: Op, X: Matrix, Y: Matrix | None, n_jobs: int | None, out: Array | None = None
) -> Array:
    """Return the matrix of sums, symmetric and at half the work if ``Y`` is None.

    It is written to ``out``, if that is given.
    """
    if sp.issparse(X):
        sums = _sparse_sum(op, X, Y, n_jobs)
        return sums if out is None else _copied(sums, out)
    x = _prepared(op, X, n_jobs)
    y = x if Y is None else _prepared(op, Y, n_jobs)
    out = np.empty((len(x[0]), len(y[0])), x[0].dtype) if out is None else out
    return _Panels(op, y, n_jobs).sums(x, n_jobs, out, symmetric=Y is None)


def finished_sums(
    op: Op,
    X: Matrix,
    Y: Matrix | None,
    finish: Change,
    n_jobs: int | None,
    *,
    out: Array | None = None,
    dtype: npt.DTypeLike | None = None,
) -> Array:
    """Return the matrix of sums after ``finish(K[rows], rows)``, which changes rows in place.

    It is written to ``out``, or rounded to ``dtype``, if that is given.
    """
    if Y is not None or sp.issparse(X):
        K = rowwise(pairwise_sum(op, X, Y, n_jobs, out), finish, n_jobs)
        return K if dtype is None else K.astype(dtype, copy=False)
    x = _prepared(op, X, n_jobs)
    panels, n = _Panels(op, x, n_jobs), len(x[0])
    whole = np.empty((n, n), x[0].dtype if dtype is None else dtype) if out is None else out

    def task(begin: int, end: int) -> None:
        band = np.empty((end - begin, n - begin), x[0].dtype)
        panels.sums([plane[begin:end] for plane in x], 1, band, first=begin)
        core.spread(rowwise(band, finish, 1), whole, begin)

    run(task, ranges(n, ROWS_PER_TASK), n_jobs)
    return whole


def upper_sums(op: Op, X: Matrix, n_jobs: int | None) -> Array:
    """Return the sums above the diagonal of the symmetric matrix, row by row."""
    if sp.issparse(X):
        return fold_upper(_sparse_sum(op, X, None, n_jobs))
    x = _prepared(op, X, n_jobs)
    n = len(x[0])
    upper = np.empty(n * (n - 1) // 2, x[0].dtype)
    numbers = op.numbers.astype(upper.dtype, copy=False)

    def task(begin: int, end: int) -> None:
        core.upper_sums(op.name, numbers, x, upper, begin, end)

    run(task, ranges(n, 2 * ROWS_PER_TASK), n_jobs)
    return upper


def fold_upper(K: Array) -> Array:
    """Return the entries above the diagonal of a square matrix, row by row."""
    upper = np.empty(len(K) * (len(K) - 1) // 2, K.dtype)
    core.fold_upper(np.ascontiguousarray(K), upper)
    return upper


def unfold_upper(upper: Array, diagonal: Array) -> Array:
    """Return the symmetric matrix that has these entries above its diagonal."""
    K = np.empty((len(diagonal), len(diagonal)), upper.dtype)
    core.unfold_upper(upper, diagonal, K)
    return K


def sums_against(op: Op, Y: Matrix, n_jobs: int | None) -> Callable[[Matrix], Array]:
    """Return ``X -> pairwise_sum(op, X, Y)``, which prepares ``Y`` once."""
    if sp.issparse(Y):
        return lambda X: _sparse_sum(op, X, Y, n_jobs)
    panels = _Panels(op, _prepared(op, Y, n_jobs), n_jobs)

    def sums(X: Matrix) -> Array:
        x = _prepared(op, X, n_jobs)
        return panels.sums(x, n_jobs, np.empty((len(x[0]), Y.shape[0]), x[0].dtype))

    return sums


class _Panels:
    """Dense rows laid out as the core reads the right side: in panels of a few rows."""

    def __init__(self, op: Op, y: list[Array], n_jobs: int | None):
        self.op, (self.n_rows, n_features) = op, y[0].shape
        self.per_row = n_features * len(y)
        dtype = y[0].dtype
        width = getattr(core, f"panel_rows_{dtype.name}")(op.name)
        size = -(-self.n_rows // width) * width * n_features * len(y)
        self.packed = np.empty(size, dtype=dtype)

        def pack(begin: int, end: int) -> None:
            core.pack(op.name, y, self.packed, begin, end)

        run(pack, ranges(self.n_rows, ROWS_PER_PACKING), n_jobs)

    def sums(
        self,
        x: list[Array],
        n_jobs: int | None,
        out: Array,
        *,
        symmetric: bool = False,
        first: int = 0,
    ) -> Array:
        """Write the sums of prepared rows with these, from the row ``first`` on, to ``out``.

        With themselves it is half the work. ``first`` begins a panel.
        """
        packed = self.packed[first * self.per_row :]
        numbers = self.op.numbers.astype(out.dtype, copy=False)

        def band(begin: int, end: int) -> None:
            core.band(self.op.name, numbers, x, packed, out, begin, end, symmetric)

        height = ROWS_PER_TASK
        if not symmetric:  # few rows are shared out as well
            share = -(-len(out) // effective_n_jobs(n_jobs))
            height = min(height, max(FEWEST_ROWS, share))
        run(band, ranges(len(out), height), n_jobs)
        return out


def _sparse_sum(op: Op, X: Matrix, Y: Matrix | None, n_jobs: int | None) -> Array:
    """Compute the sums of CSR rows, column by column of the matrix."""
    dtype = X.dtype
    if not op.vanishes:  # sums start from those of an empty row: in float64, against cancellation
        X, Y = X.astype(np.float64), None if Y is None else Y.astype(np.float64)
    x = (op.planes(X.data, X.dtype), *csr_structure(X))
    y = x if Y is None else (op.planes(Y.data, X.dtype), *csr_structure(Y))
    zero = np.concatenate(op.planes(np.zeros(1, X.dtype), X.dtype))
    n_columns = (X if Y is None else Y).shape[0]
    out = np.empty((X.shape[0], n_columns), dtype=X.dtype)
    numbers = op.numbers.astype(X.dtype, copy=False)

    def task(begin: int, end: int) -> None:
        core.columns(
            op.name, numbers, zero, X.shape[1], *x, *y, op.vanishes, out, begin, end, Y is None
        )

    # Late columns of the triangle cost most: they go first, so that no thread is left with them.
    parts = ranges(n_columns, ROWS_PER_TASK)
    run(task, parts[::-1], n_jobs)
    if Y is None:
        run(lambda begin, end: core.mirror(out, begin, end), parts, n_jobs)
    return out.astype(dtype, copy=False)


def _prepared(op: Op, X: Array, n_jobs: int | None) -> list[Array]:
    """Return the planes of dense rows."""
    if op.prepare is None:
        return [X]
    count = len(op.planes(X[:1], X.dtype))
    planes = [np.empty(X.shape, X.dtype) for _ in range(count)]

    def prepare(begin: int, end: int) -> None:
        for plane, part in zip(planes, op.planes(X[begin:end], X.dtype), strict=True):
            plane[begin:end] = part

    run(prepare, ranges(X.shape[0], ROWS_PER_TASK), n_jobs)
    return planes


def csr_structure(X: Matrix) -> tuple[Array, Array]:
    """Return column indices and row pointers as the core takes them."""
    return X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False)


def _copied(K: Array, out: Array) -> Array:
    np.copyto(out, K)
    return out


def rowwise(K: Array, change: Change, n_jobs: int | None) -> Array:
    """Call ``change(K[rows], rows)`` for a few rows at a time, and return ``K``."""
    height = max(1, CACHED_BYTES // max(1, K.shape[1] * K.itemsize))
    per_task = max(height, K.shape[0] // 64)

    def task(begin: int, end: int) -> None:
        for b in range(begin, end, height):
            rows = slice(b, min(b + height, end))
            change(K[rows], rows)

    run(task, ranges(K.shape[0], per_task), n_jobs)
    return K
