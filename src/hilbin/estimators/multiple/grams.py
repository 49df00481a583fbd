"""The Gram matrices of several kernels on the rows of a fit, stored or computed in bands.

All matrices of a fit are kept if they and their sum fit into the memory. Otherwise their sum is
computed for every machine, and kept as far as it fits, and the energies of every kernel are
computed band by band: each round then computes every kernel once between all rows and the support
vectors.

A kernel is divided by its **scale**, the variance of the training rows in its feature space,
:math:`\\operatorname{tr}(HKH) / n`, so that weights of different kernels can be compared, and no
factor of a kernel changes the model.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigvalsh

from hilbin._arrays import Array, Matrix, to_dense
from hilbin.estimators._fit import outer_level
from hilbin.estimators.kernel.gram import ADVICE, Gram
from hilbin.kernels import Kernel, NotPositiveDefiniteWarning, WeightedSum
from hilbin.solvers.multiple_machines import Grams, StoredGrams

BAND = 32  # MiB of kernel values at a time
LEAST_SPREAD = 1e-10  # variance of rows over their mean square that is more than rounding
MOST_TESTED = 1024  # rows of a given matrix whose definiteness is tested
INDEFINITE = 1e-6  # eigenvalue below minus this, over the largest diagonal: float32 loses as much


def weighted_sum(kernels: Sequence[Kernel], weights: Array) -> Kernel:
    """Return the kernel of weights, of which some are above 0; the others are left out."""
    used = np.flatnonzero(weights).tolist()
    return WeightedSum(tuple(kernels[j] for j in used), tuple(float(weights[j]) for j in used))


@dataclass(frozen=True)
class TiledGrams:
    """Gram matrices that are computed when they are asked for.

    Parameters
    ----------
    kernels : sequence of Kernel
        The kernels.
    X : matrix
        The rows.
    dtype : dtype
        Type of the sum of the matrices.
    memory : int
        Bytes for it.
    n_jobs : int, optional
        Threads.
    """

    kernels: Sequence[Kernel]
    X: Matrix
    dtype: Any
    memory: int
    n_jobs: int | None

    def matrix(self, weights: Array) -> Array:
        """Return the weighted sum, whole."""
        kernel = weighted_sum(self.kernels, weights)
        return to_dense(kernel._gram(self.X, None, self.n_jobs))

    def combined(self, weights: Array, few: Array | None = None) -> Any:
        """Return the weighted sum, as solvers take it."""
        kernel = weighted_sum(self.kernels, weights)
        return Gram.of_rows(kernel, self.X, self.dtype, self.memory, self.n_jobs).rows

    def products(self, coef: Array) -> Array:
        """Return all ``K_j @ coef`` in float64."""
        some = np.flatnonzero(coef.any(axis=1))
        found = np.zeros((len(self.kernels), *coef.shape))
        memory = min(BAND, self.memory / 2**20)
        for kernel, product in zip(self.kernels, found, strict=True):
            if some.size:
                rows = self.X[some]
                for part, K in kernel.tiles(self.X, rows, memory=memory, n_jobs=self.n_jobs):
                    product[part] = K @ coef[some]
        return found


def grams_of(
    kernels: Sequence[Kernel], X: Matrix, dtype: Any, memory: int, n_jobs: int | None
) -> Grams:
    """Return the matrices of all kernels, stored if they fit with their sum."""
    n = X.shape[0]
    if n * n * np.dtype(dtype).itemsize * (len(kernels) + 1) > memory:
        return TiledGrams(kernels, X, dtype, memory, n_jobs)
    return StoredGrams([gram_of(kernel, X, dtype, n_jobs) for kernel in kernels])


def gram_of(kernel: Kernel, X: Matrix, dtype: Any, n_jobs: int | None) -> Array:
    """Return the whole matrix of a kernel, dense."""
    return to_dense(Gram.of_rows(kernel, X, dtype, 2**62, n_jobs).K)


def variances(grams: Grams, diagonals: Sequence[Array], weight: Array) -> Array:
    """Return the variance of the rows in the feature space of every kernel; 0 if it is rounding.

    Parameters
    ----------
    grams : Grams
        The matrices.
    diagonals : sequence of arrays
        Their diagonals.
    weight : array
        Weights of the rows.
    """
    share = weight / weight.sum()
    squares = np.array([share @ diagonal for diagonal in diagonals])
    means = np.array([share @ product[:, 0] for product in grams.products(share[:, None])])
    return np.where(squares - means > LEAST_SPREAD * squares, squares - means, 0.0)


def warn_if_indefinite(K: Array, name: str) -> None:
    """Warn of a given matrix of few rows that is not positive semi-definite."""
    if len(K) > MOST_TESTED:
        return
    K = np.array(K, np.float64)
    size = float(K.diagonal().max(initial=0.0))
    K[np.diag_indices_from(K)] += INDEFINITE * size
    try:
        cholesky(K, lower=True, check_finite=False)
    except LinAlgError:
        least = float(eigvalsh(K, subset_by_index=[0, 0])[0]) - INDEFINITE * size
        if least < -INDEFINITE * size:
            warnings.warn(
                f"{name} is not positive definite: its smallest eigenvalue is {least:.3g}. "
                f"{ADVICE}",
                NotPositiveDefiniteWarning,
                stacklevel=outer_level(),
            )
