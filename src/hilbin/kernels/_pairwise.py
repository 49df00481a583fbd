"""Pairwise sums ``out[i, j] = sum_d op(x_id, y_jd)`` by the compiled core, over threads.

An op reads one or two prepared numbers ("planes") per value, given here as functions of the value;
``None`` is the value itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from hilbin._core import core
from hilbin.kernels._arrays import Array, Function, Matrix, apply, at_zero
from hilbin.parallel import ranges, run

ROWS_PER_TASK = 192  # two row blocks of the core: fine enough to balance the triangle over threads


@dataclass(frozen=True)
class Op:
    """A compiled function of two values.

    ``vanishes`` says that it is 0 where either value is, so that sparse rows need only their
    stored values. ``table`` serves the op named ``"table"``.
    """

    name: str
    planes: Sequence[Function | None] = (None,)
    vanishes: bool = True
    table: Array = field(default_factory=lambda: np.empty(0))


def pairwise_sum(op: Op, X: Matrix, Y: Matrix | None, n_jobs: int | None) -> Array:
    """The matrix of sums; symmetric, at half the work, if ``Y`` is None."""
    if sp.issparse(X):
        return _sparse_sum(op, X, Y, n_jobs)
    x = [X if f is None else apply(X, f) for f in op.planes]
    y = x if Y is None else [Y if f is None else apply(Y, f) for f in op.planes]
    n_columns, n_features = y[0].shape
    out = np.empty((X.shape[0], n_columns), dtype=X.dtype)
    table = op.table.astype(X.dtype, copy=False)

    width = getattr(core, f"panel_rows_{X.dtype.name}")(op.name)
    packed = np.empty(-(-n_columns // width) * width * n_features * len(y), dtype=X.dtype)
    run(lambda b, e: core.pack(op.name, y, packed, b, e), ranges(n_columns, 32 * width), n_jobs)
    run(
        lambda b, e: core.band(op.name, table, x, packed, out, b, e, Y is None),
        ranges(X.shape[0], ROWS_PER_TASK),
        n_jobs,
    )
    return _mirrored(out, n_jobs) if Y is None else out


def _sparse_sum(op: Op, X: Matrix, Y: Matrix | None, n_jobs: int | None) -> Array:
    dtype = X.dtype
    if not op.vanishes:  # sums start from those of an empty row: in float64, against cancellation
        X, Y = X.astype(np.float64), None if Y is None else Y.astype(np.float64)
    x = csr_parts(X, op.planes)
    y = x if Y is None else csr_parts(Y, op.planes)
    zero = np.array([0.0 if f is None else at_zero(f, X.dtype) for f in op.planes], dtype=X.dtype)
    n_columns = (X if Y is None else Y).shape[0]
    out = np.empty((X.shape[0], n_columns), dtype=X.dtype)
    table = op.table.astype(X.dtype, copy=False)

    def task(begin: int, end: int) -> None:
        core.columns(
            op.name, table, zero, X.shape[1], *x, *y, op.vanishes, out, begin, end, Y is None
        )  # fmt: skip

    # Late columns of the triangle cost most: they go first, so that no thread is left with them.
    run(task, ranges(n_columns, ROWS_PER_TASK)[::-1], n_jobs)
    return (_mirrored(out, n_jobs) if Y is None else out).astype(dtype, copy=False)


def csr_parts(
    X: Matrix, planes: Sequence[Function | None] = (None,)
) -> tuple[list[Array], Array, Array]:
    """Stored values per plane, column indices and row pointers, as the core takes them."""
    values = [X.data if f is None else apply(X, f).data for f in planes]
    return values, X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False)


def _mirrored(out: Array, n_jobs: int | None) -> Array:
    run(lambda b, e: core.mirror(out, b, e), ranges(out.shape[0], ROWS_PER_TASK), n_jobs)
    return out
