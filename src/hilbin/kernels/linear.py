"""The linear and the polynomial kernel."""

from dataclasses import dataclass

import numpy as np
from sklearn.utils.extmath import safe_sparse_dot

from hilbin._arrays import Array, Matrix, row_sums
from hilbin.kernels.base import Kernel
from hilbin.parallel import blas_threads


def inner_products(X: Matrix, Y: Matrix | None, n_jobs: int | None) -> Array:
    """Return ``X @ Y.T`` as a fresh dense array."""
    with blas_threads(n_jobs):
        products: Array = safe_sparse_dot(X, (X if Y is None else Y).T, dense_output=True)
        return products


@dataclass(frozen=True, repr=False)
class Linear(Kernel):
    r"""Linear kernel, :math:`K(x, y) = \langle x, y \rangle`.

    Examples
    --------
    >>> from hilbin.kernels import Linear
    >>> Linear().gram([[1, 2]], [[3, 4]])
    array([[11.]])
    """

    def _gram(self, X: Matrix, Y: Matrix | None, n_jobs: int | None) -> Array:
        return inner_products(X, Y, n_jobs)

    def _diag(self, X: Matrix) -> Array:
        return row_sums(X, np.square)


@dataclass(frozen=True, repr=False)
class Polynomial(Kernel):
    r"""Polynomial kernel, :math:`K(x, y) = (c + \langle x, y \rangle)^m`.

    Parameters
    ----------
    degree : int >= 1, default 2
        :math:`m`; positive definite for whole numbers only.
    offset : float >= 0, default 1
        :math:`c`.

    Examples
    --------
    >>> from hilbin.kernels import Polynomial
    >>> Polynomial(degree=2).gram([[1, 2]], [[3, 4]])
    array([[144.]])
    """

    degree: int = 2
    offset: float = 1.0

    def __post_init__(self) -> None:
        if self.degree != int(self.degree) or self.degree < 1:
            raise ValueError(f"degree of Polynomial must be a whole number >= 1, got {self.degree}")
        if not self.offset >= 0:
            raise ValueError(f"offset of Polynomial must be a number >= 0, got {self.offset}")

    def _gram(self, X: Matrix, Y: Matrix | None, n_jobs: int | None) -> Array:
        K = inner_products(X, Y, n_jobs)
        K += self.offset
        return np.power(K, self.degree, out=K)

    def _diag(self, X: Matrix) -> Array:
        return (row_sums(X, np.square) + self.offset) ** self.degree
