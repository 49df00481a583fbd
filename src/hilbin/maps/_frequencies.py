"""Random frequencies of the Gaussian spectrum, and products with them.

``exp(-|x - y|^2 / 2)`` is the mean of ``cos(w (x - y))`` over ``w`` from N(0, I) (Bochner). The
rows of a frequency matrix are such ``w``, drawn independently or, for a smaller error, not:

- gaussian: independent;
- orthogonal: ``S Q^T``, the columns of ``Q`` a uniformly random orthonormal system, ``S`` diagonal
  with lengths of Gaussian vectors. Every row is still N(0, I), but no two repeat each other. The
  gain is that of the share of all directions that a block of rows fills, and in few directions
  most of the data differs: rows are orthogonal within ``r`` principal directions of the data,
  ``r`` such that blocks are full, and independent across them;
- qmc: normal quantiles of a scrambled Sobol sequence, which fills the unit cube evenly;
- structured: ``sqrt(p) H D_1 H D_2 H D_3``, ``H`` the orthonormal Walsh-Hadamard matrix of a size
  ``p`` that is a power of two, ``D_r`` diagonals of random signs. Orthogonal rows that are never
  stored, and ``O(p log p)`` additions per product. All rows have length ``sqrt(p)``: the mean is
  off by up to ``0.55 / p``.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtri
from scipy.stats import qmc

from hilbin._arrays import Array, Matrix
from hilbin._core import core

Projection: TypeAlias = Callable[[Matrix], Array]

SPARSE_DENSITY = 0.1  # from here on a dense product is faster than a sparse one
ROUNDS = 3
LEAST_WIDTHS = (64, 256)
LEAST_SAMPLE = 64  # rows from which principal directions can be told


def gaussian(count: int, width: int, rng: np.random.RandomState) -> Array:
    """Independent rows, of shape (count, width)."""
    return rng.standard_normal((count, width))


def orthogonal(count: int, width: int, rng: np.random.RandomState) -> Array:
    """Rows that are orthogonal within blocks of ``width``."""
    blocks = []
    for begin in range(0, count, width):
        size = min(width, count - begin)
        Q, R = np.linalg.qr(rng.standard_normal((width, size)))
        # QR leaves signs open; this choice makes Q uniform.
        lengths = np.copysign(np.sqrt(rng.chisquare(width, size)), np.diag(R))
        blocks.append((Q * lengths).T)
    return np.concatenate(blocks)


def orthogonal_along(sample: Array, count: int, rng: np.random.RandomState) -> Array:
    """Rows that are orthogonal within leading principal directions of ``sample``."""
    n, width = sample.shape
    blocks = -(-count // max(1, min(width, n - 1)))
    rank = -(-count // blocks)
    if rank == width or n < LEAST_SAMPLE:
        return orthogonal(count, width, rng)
    V = np.linalg.svd(sample - sample.mean(axis=0), full_matrices=False)[2][:rank]
    across = gaussian(count, width, rng)
    return orthogonal(count, rank, rng) @ V + (across - (across @ V.T) @ V)


def sobol(count: int, width: int, rng: np.random.RandomState) -> Array:
    """Rows whose quantiles fill the unit cube evenly."""
    if width > qmc.Sobol.MAXDIM:
        raise ValueError(
            f'kind="qmc" takes rows of at most {qmc.Sobol.MAXDIM} values after the map, got '
            f'{width}; take kind="structured"'
        )
    sequence = qmc.Sobol(
        width, scramble=True, seed=np.random.default_rng(rng.randint(2**31, size=4))
    )
    # The sequence is even over powers of two.
    points = sequence.random_base2((count - 1).bit_length())[:count]
    half_step = 2.0 ** -(sequence.bits + 1)
    return ndtri(np.clip(points, half_step, 1 - half_step))


KINDS = ("orthogonal", "gaussian", "qmc", "structured")


def structured(count: int, width: int, rng: np.random.RandomState) -> tuple[Array, Array]:
    """Signs of shape (blocks, ROUNDS, p), and which ``count`` rows of the blocks are kept."""
    # A matrix as narrow as few inputs has too few signs to be random, one much wider than there
    # are rows to keep has few orthogonal ones among them.
    least, enough = LEAST_WIDTHS
    p = max(least, min(1 << count.bit_length() - 1, enough), 1 << (width - 1).bit_length())
    blocks = -(-count // p)
    signs = rng.choice(np.array([-1, 1], np.int8), (blocks, ROUNDS, p))
    last = np.sort(rng.choice(p, count - (blocks - 1) * p, replace=False))
    return signs, np.concatenate([*[np.arange(p)] * (blocks - 1), last])


def dense_projection(frequencies: Array, dtype: Any) -> Projection:
    """The product of rows with a matrix of frequencies."""
    # Stored in Fortran order, the transpose is what sparse rows are multiplied by without a copy.
    W = frequencies.astype(dtype, order="F", copy=False).T

    def project(rows: Matrix) -> Array:
        if sp.issparse(rows) and rows.nnz >= SPARSE_DENSITY * rows.shape[0] * rows.shape[1]:
            rows = rows.toarray()
        product: Array = rows @ W
        return product

    return project


def structured_projection(signs: Array, kept: Array, scale: float, dtype: Any) -> Projection:
    """The product of rows, padded with zeros, with ``scale`` times the structured frequencies."""
    p = signs.shape[-1]
    # sqrt(p) and the norms of three Hadamard matrices leave 1 / p.
    factors = signs * np.array([scale, p**-0.5, p**-0.5])[:, None]
    factors = factors.astype(dtype)

    def project(rows: Matrix) -> Array:
        rows = rows.toarray() if sp.issparse(rows) else rows
        n, width = rows.shape
        padded = np.empty((n, p), dtype)
        products = np.empty((n, len(kept)), dtype)
        for block, block_factors in enumerate(factors):
            padded[:, :width] = rows
            padded[:, width:] = 0
            core.hadamard(padded, block_factors, 0, n)
            columns = slice(block * p, (block + 1) * p)
            np.take(padded, kept[columns], axis=1, out=products[:, columns], mode="clip")
        return products

    return project
