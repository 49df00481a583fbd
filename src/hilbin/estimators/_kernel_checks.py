r"""Whether a given matrix can be the Gram matrix of a kernel; if not, which entry says so.

A matrix is symmetric if :math:`Kv = K^\top v` for a random :math:`v`: both products, in one pass,
find the rows of entries that differ, without a second matrix, and whether all are finite. Positive
definiteness would take the eigenvalues, longer than to train; seen are entries with
:math:`K_{ij}^2 > K_{ii} K_{jj}` in some of the rows.
"""

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from hilbin._core import core
from hilbin.kernels import NotPositiveDefiniteWarning
from hilbin.kernels._arrays import Array, Matrix, check_rows

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
    right, left = _products(K, np.random.default_rng(0).normal(size=K.shape[0]))
    if not np.isfinite(right).all():
        check_rows(K, name)  # which names the entry
    diagonal = K.diagonal().astype(np.float64)
    if (diagonal < 0).any():
        i = int(np.argmin(diagonal))
        raise ValueError(f"{name}[{i}, {i}] = {diagonal[i]} is negative: {name} is no Gram matrix")
    _refuse_empty_diagonal(K, diagonal, name)
    tolerance = float(np.sqrt(np.finfo(K.dtype).eps)) * diagonal.max()
    _refuse_asymmetric(K, np.abs(right - left), tolerance, name)
    excess = _excess(K, np.sqrt(diagonal), tolerance)
    if excess is not None:
        i, j = excess
        warnings.warn(
            f"{name} is not positive definite: {name}[{i}, {j}] = {K[i, j]}, but {name}[{i}, {i}] "
            f"= {diagonal[i]} and {name}[{j}, {j}] = {diagonal[j]}. {ADVICE}",
            NotPositiveDefiniteWarning,
            stacklevel=5,
        )


def _products(K: Matrix, v: Array) -> tuple[Array, Array]:
    """``K v`` and ``v' K``."""
    if sp.issparse(K) or not K.flags.forc:
        with np.errstate(invalid="ignore", over="ignore"):
            return K @ v, K.T @ v
    right, left = np.empty(v.size), np.empty(v.size)
    core.both_products(K if K.flags.c_contiguous else K.T, v, right, left)
    return right, left


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
        "matrix. Are these distances, or neighbours without the row itself?"
    )


def _refuse_asymmetric(K: Any, differences: Array, tolerance: float, name: str) -> None:
    """``differences`` are those of the products; rounding alone leaves the entries as they are."""
    for i in np.flatnonzero(differences > tolerance):
        row, column = (line.toarray() if sp.issparse(line) else line for line in (K[i], K[:, i]))
        apart = np.abs(np.ravel(row) - np.ravel(column))
        j = int(np.argmax(apart))
        if apart[j] > tolerance:
            raise ValueError(
                f"{name} is not symmetric: {name}[{i}, {j}] = {K[i, j]}, but {name}[{j}, {i}] = "
                f"{K[j, i]}"
            )


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
