r"""Whether a given matrix can be the Gram matrix of a kernel; if not, which entry says so.

A matrix is symmetric if :math:`Kv = K^\top v` for a random :math:`v`: two products find the rows of
entries that differ, without a second matrix, and whether all are finite. Reading a large matrix
takes longer than to train on it, which reads the rows of few support vectors: there, pairs of
entries are compared, and what is not finite is found if training reads it. Positive definiteness
would take the eigenvalues; seen are entries with :math:`K_{ij}^2 > K_{ii} K_{jj}` in some of the
rows.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from hilbin._arrays import Array, Matrix, check_rows
from hilbin.kernels import NotPositiveDefiniteWarning
from hilbin.solvers._gram_rows import canonical, sparse_entries

MOST_WHOLE = 2048  # rows of a matrix that is read as a whole
PAIRS = 3000  # of entries that are compared in a larger one
MOST_ROWS = 64  # that are looked at entry by entry
ADVICE = (
    "Training ends where no step improves, which need not be the optimum; "
    "hilbin.kernels.repair_psd gives the nearest matrix that is positive definite"
)


def check_gram(K: Matrix, name: str = "X") -> None:
    """Refuse a matrix that is not symmetric, or has no diagonal; warn of one that is indefinite."""
    if K.shape[0] != K.shape[1]:
        check_rows(K, name)
        raise ValueError(
            f"{name} must be square, the kernel between all pairs of training rows; got shape "
            f"{K.shape}"
        )
    K = canonical(K) if sp.issparse(K) else K
    every = np.arange(K.shape[0])
    diagonal = _entries(K, every, every).astype(np.float64)
    if K.shape[0] <= MOST_WHOLE or not np.isfinite(diagonal).all():
        check_rows(K, name)
    if (diagonal < 0).any():
        i = int(np.argmin(diagonal))
        raise ValueError(f"{name}[{i}, {i}] = {diagonal[i]} is negative: {name} is no Gram matrix")
    _refuse_empty_diagonal(K, diagonal, name)
    tolerance = float(np.sqrt(np.finfo(K.dtype).eps)) * diagonal.max()
    for i, j in _suspects(K, tolerance):
        if not abs(K[i, j] - K[j, i]) <= tolerance:
            raise ValueError(
                f"{name} is not symmetric: {name}[{i}, {j}] = {K[i, j]}, but {name}[{j}, {i}] = "
                f"{K[j, i]}"
            )
    excess = _excess(K, np.sqrt(diagonal), tolerance)
    if excess is not None:
        i, j = excess
        warnings.warn(
            f"{name} is not positive definite: {name}[{i}, {j}] = {K[i, j]}, but {name}[{i}, {i}] "
            f"= {diagonal[i]} and {name}[{j}, {j}] = {diagonal[j]}. {ADVICE}",
            NotPositiveDefiniteWarning,
            stacklevel=5,
        )


def _refuse_empty_diagonal(K: Matrix, diagonal: Array, name: str) -> None:
    empty = np.flatnonzero(diagonal == 0)
    if not empty.size:
        return
    rows = abs(K[empty]).max(axis=1)
    sizes = rows.toarray().ravel() if sp.issparse(rows) else np.asarray(rows)
    if not sizes.any():
        return
    i = int(empty[np.argmax(sizes > 0)])
    raise ValueError(
        f"{name}[{i}, {i}] is 0, or not stored, but row {i} is not empty: {name} is no Gram "
        "matrix. Are these distances, or neighbors without the row itself?"
    )


def _entries(K: Any, i: Array, j: Array) -> Array:
    found: Array = sparse_entries(K, i, j) if sp.issparse(K) else K[i, j]
    return found


def _suspects(K: Any, tolerance: float) -> Iterator[tuple[int, int]]:
    """Places where the matrix may differ from its transpose; rounding is suspected as well."""
    random = np.random.default_rng(0)
    n = K.shape[0]
    if n > MOST_WHOLE:
        i, j = random.integers(n, size=(2, PAIRS))
        if sp.issparse(K) and K.nnz:
            place = random.integers(K.nnz, size=PAIRS)
            i, j = np.searchsorted(K.indptr, place, side="right") - 1, K.indices[place]
        apart = np.flatnonzero(~(np.abs(_entries(K, i, j) - _entries(K, j, i)) <= tolerance))
        yield from ((int(i[k]), int(j[k])) for k in apart)
        return
    v = random.normal(size=n).astype(K.dtype)
    for i in np.flatnonzero(np.abs(K @ v - K.T @ v) > tolerance):
        row, column = (line.toarray() if sp.issparse(line) else line for line in (K[i], K[:, i]))
        yield int(i), int(np.argmax(np.abs(np.ravel(row) - np.ravel(column))))


def _excess(K: Any, norms: Array, tolerance: float) -> tuple[int, int] | None:
    """An entry that is larger than two rows of these norms can have; some rows are looked at."""
    some = np.unique(np.linspace(0, K.shape[0] - 1, MOST_ROWS).astype(np.intp))
    rows = K[some]
    if sp.issparse(K):
        i, j = np.repeat(np.arange(some.size), np.diff(rows.indptr)), rows.indices
        beyond = np.abs(rows.data) > norms[some[i]] * norms[j] + tolerance
        i, j = i[beyond], j[beyond]
    else:
        i, j = np.nonzero(np.abs(rows) > norms[some, None] * norms + tolerance)
    return (int(some[i[0]]), int(j[0])) if i.size else None
