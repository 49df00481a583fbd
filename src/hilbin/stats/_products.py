"""Arithmetic of :class:`~hilbin.stats.Moments`: one triangle, in place, in double precision."""

from collections import deque
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg.blas import dsyr, dsyrk

from hilbin.stats._statistic import Array, Matrix

STRIP = 1024  # rows of one product
FEW = 64  # rows whose copy stays in the cache
MOST_STEPS = 64  # of means, added to a triangle at once
_given_back: deque[Array] = deque(maxlen=2)
TILE = 512
THIN = 0.05  # share of entries up to which the product of sparse rows is faster than a dense one


def checked_targets(T: Any, rows: int) -> Matrix:
    """Targets as float64, one row for every row; none of them if ``T`` is None."""
    if T is None:
        return np.empty((rows, 0))
    T = sp.csr_array(T, dtype=np.float64) if sp.issparse(T) else np.asarray(T, np.float64)
    T = T[:, None] if T.ndim == 1 else T
    if T.ndim != 2 or T.shape[0] != rows:
        raise ValueError(f"T has shape {T.shape}, but Z has {rows} rows")
    if not np.isfinite(T.data if sp.issparse(T) else T).all():
        raise ValueError("T has values that are not finite")
    return T


def weighted_mean(Z: Matrix, w: Array | None, n: float) -> Array:
    """In double precision, whatever ``Z`` is."""
    if sp.issparse(Z):
        ones = np.ones(Z.shape[0]) if w is None else w
        return np.asarray(Z.T @ ones, np.float64) / n
    total = np.zeros(Z.shape[1])
    with np.errstate(invalid="ignore", over="ignore"):
        for begin in range(0, Z.shape[0], FEW):
            part = Z[begin : begin + FEW].astype(np.float64, copy=False)
            total += part.sum(axis=0) if w is None else w[begin : begin + FEW] @ part
        return total / n


def borrow(rows: int, width: int) -> Array:
    """Memory for rows that was given back, if there is enough: the first touch of new is slow."""
    while _given_back:
        try:
            memory = _given_back.pop()
        except IndexError:  # another thread took it
            break
        if memory.size >= rows * width:
            return memory[: rows * width].reshape(rows, width)
    return np.empty(rows * width).reshape(rows, width)


def give_back(rows: Array | None) -> None:
    """Let others borrow the memory of rows that are not needed any more."""
    if rows is not None and isinstance(rows.base, np.ndarray) and rows.base.ndim == 1:
        _given_back.append(rows.base)


def center(Z: Matrix, mean: Array, root: Array | None, out: Array) -> None:
    """Rows without their mean, times the roots of their weights, into ``out``."""
    np.subtract(Z.toarray() if sp.issparse(Z) else Z, mean, out=out)
    if root is not None:
        out *= root[:, None]


def add_products(triangle: Array, rows: Array) -> None:
    """``triangle += rows.T @ rows`` in place, the lower triangle alone."""
    dsyrk(1.0, rows.T, beta=1.0, c=triangle, lower=1, overwrite_c=1)


def add_lower(triangle: Array, other: Array) -> None:
    """``triangle += other`` in place, the lower triangle alone."""
    for begin in range(0, len(triangle), TILE):
        triangle[begin:, begin : begin + TILE] += other[begin:, begin : begin + TILE]


def mirror(triangle: Array) -> None:
    """Copy the lower triangle into the upper one, tile by tile."""
    size = len(triangle)
    for j in range(0, size, TILE):
        corner = triangle[j : j + TILE, j : j + TILE]
        corner[...] = np.tril(corner) + np.tril(corner, -1).T
        for i in range(j + TILE, size, TILE):
            triangle[j : j + TILE, i : i + TILE] = triangle[i : i + TILE, j : j + TILE].T


def is_thin(Z: Matrix, w: Array | None, n: float) -> bool:
    """Whether sparse rows are worth a sparse product, and means can be taken off afterwards.

    If a column is 0 in half of the rows, Cauchy and Schwarz have ``n m^2`` below half of its sum of
    squares, so that the difference loses no more than a bit.
    """
    if not sp.issparse(Z) or Z.nnz > THIN * Z.shape[0] * Z.shape[1]:
        return False
    each = None if w is None else np.repeat(w, np.diff(Z.indptr))
    return bool(2 * np.bincount(Z.indices, each).max(initial=0) <= n)


def sparse_scatter(Z: Matrix, w: Array | None, n: float, mean: Array) -> Array:
    """The centered scatter of sparse rows; its lower triangle counts."""
    rows = sp.csr_array(Z, dtype=np.float64)
    weighted = rows if w is None else sp.csr_array(rows.multiply(w[:, None]))
    triangle = (weighted.T @ rows).toarray(order="F")
    return np.asarray(dsyr(-n, mean, lower=1, a=triangle, overwrite_a=1))


def sparse_cross(
    Z: Matrix, targets: Matrix, w: Array | None, mean: Array, target_mean: Array
) -> Array:
    """The centered products of sparse rows and targets."""
    weight = np.ones(Z.shape[0]) if w is None else w
    if sp.issparse(targets):
        sums = (sp.csr_array(targets.multiply(weight[:, None])).T @ Z).toarray().T
        return np.asarray(sums - weight.sum() * np.outer(mean, target_mean))
    # what is centered on one side is centered
    return np.asarray(Z.T @ (weight[:, None] * (targets - target_mean)))
