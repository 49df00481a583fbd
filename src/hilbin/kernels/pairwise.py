"""Matrices over all pairs of rows, computed by threads.

:func:`pairwise_sum` computes ``out[i, j] = sum_d op(x_id, y_jd)`` in the compiled core;
:func:`rowwise` then changes such a matrix in place, a few rows at a time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from joblib import effective_n_jobs

from hilbin._arrays import Array, Matrix
from hilbin._core import core
from hilbin.parallel import ranges, run

ROWS_PER_TASK = 96  # the rows that the core takes at a time, and a multiple of every panel's rows
FEWEST_ROWS = 8  # fewer leave a panel half used
ROWS_PER_PACKING = 8192  # packing fewer takes less time than starting threads
CACHED_BYTES = 1 << 18  # of the rows that are changed in place at a time


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


def pairwise_sum(op: Op, X: Matrix, Y: Matrix | None, n_jobs: int | None) -> Array:
    """Return the matrix of sums, symmetric and at half the work if ``Y`` is None."""
    if sp.issparse(X):
        return _sparse_sum(op, X, Y, n_jobs)
    x = _prepared(op, X, n_jobs)
    y = x if Y is None else _prepared(op, Y, n_jobs)
    return _Panels(op, y, n_jobs).sums(x, n_jobs, symmetric=Y is None)


def sums_against(op: Op, Y: Matrix, n_jobs: int | None) -> Callable[[Matrix], Array]:
    """Return ``X -> pairwise_sum(op, X, Y)``, which prepares ``Y`` once."""
    if sp.issparse(Y):
        return lambda X: _sparse_sum(op, X, Y, n_jobs)
    panels = _Panels(op, _prepared(op, Y, n_jobs), n_jobs)
    return lambda X: panels.sums(_prepared(op, X, n_jobs), n_jobs)


class _Panels:
    """Dense rows laid out as the core reads the right side: in panels of a few rows."""

    def __init__(self, op: Op, y: list[Array], n_jobs: int | None):
        self.op, (self.n_rows, n_features) = op, y[0].shape
        dtype = y[0].dtype
        width = getattr(core, f"panel_rows_{dtype.name}")(op.name)
        size = -(-self.n_rows // width) * width * n_features * len(y)
        self.packed = np.empty(size, dtype=dtype)

        def pack(begin: int, end: int) -> None:
            core.pack(op.name, y, self.packed, begin, end)

        run(pack, ranges(self.n_rows, ROWS_PER_PACKING), n_jobs)

    def sums(self, x: list[Array], n_jobs: int | None, *, symmetric: bool = False) -> Array:
        """Return the sums of prepared rows with these; with themselves at half the work."""
        out = np.empty((len(x[0]), self.n_rows), dtype=self.packed.dtype)
        numbers = self.op.numbers.astype(out.dtype, copy=False)

        def band(begin: int, end: int) -> None:
            core.band(self.op.name, numbers, x, self.packed, out, begin, end, symmetric)

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


def rowwise(K: Array, change: Callable[[Array, slice], object], n_jobs: int | None) -> Array:
    """Call ``change(K[rows], rows)`` for a few rows at a time, and return ``K``."""
    height = max(1, CACHED_BYTES // max(1, K.shape[1] * K.itemsize))
    per_task = max(height, K.shape[0] // 64)

    def task(begin: int, end: int) -> None:
        for b in range(begin, end, height):
            rows = slice(b, min(b + height, end))
            change(K[rows], rows)

    run(task, ranges(K.shape[0], per_task), n_jobs)
    return K
