"""Sums and products of kernels: ``a + b``, ``a * b``."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from hilbin._arrays import Array, Matrix, to_dense
from hilbin.kernels.base import Kernel
from hilbin.kernels.gcs import GCS
from hilbin.parallel import ranges


@dataclass(frozen=True, repr=False)
class PairKernel(Kernel):
    """The base class of kernels made of two."""

    left: Kernel
    right: Kernel

    @property
    def psd(self) -> bool:  # type: ignore[override]
        """Whether both are positive definite."""
        return self.left.psd and self.right.psd

    @property
    def nonnegative(self) -> bool:  # type: ignore[override]
        """Whether either needs values >= 0."""
        return self.left.nonnegative or self.right.nonnegative

    def _resolve(self, X: Matrix, random_state: Any) -> Self:
        return self.replace(
            left=self.left._resolve(X, random_state), right=self.right._resolve(X, random_state)
        )


@dataclass(frozen=True, repr=False)
class Sum(PairKernel):
    r"""Sum, :math:`K(x, y) = k_1(x, y) + k_2(x, y)`; written ``k1 + k2``.

    Parameters
    ----------
    left, right : Kernel

    Examples
    --------
    >>> from hilbin.kernels import Chi2, Linear
    >>> (Chi2() + Linear()).gram([[1, 3]])
    array([[14.]])
    """

    @property
    def compact(self) -> bool:  # type: ignore[override]
        """Whether both have compact support."""
        return self.left.compact and self.right.compact

    def _gram(self, X: Matrix, Y: Matrix | None, n_jobs: int | None) -> Any:
        left, right = self.left._gram(X, Y, n_jobs), self.right._gram(X, Y, n_jobs)
        if self.compact:
            return left + right
        left = to_dense(left)
        left += to_dense(right)
        return left

    def _diag(self, X: Matrix) -> Array:
        return self.left._diag(X) + self.right._diag(X)

    def __repr__(self) -> str:
        return f"{self.left!r} + {self.right!r}"


@dataclass(frozen=True, repr=False)
class Product(PairKernel):
    r"""Product, :math:`K(x, y) = k_1(x, y)\,k_2(x, y)`; written ``k1 * k2``.

    If either kernel has compact support so has the product, and the other kernel is kept only
    where the first is not 0. The kernel of Boughorbel et al. for color histograms is
    ``Power(GCS(radius) * Laplace(gamma, p=2), 0.25)``.

    Parameters
    ----------
    left, right : Kernel

    Examples
    --------
    >>> from hilbin.kernels import Chi2, Linear
    >>> (Chi2() * Linear()).gram([[1, 3]])
    array([[40.]])
    """

    @property
    def compact(self) -> bool:  # type: ignore[override]
        """Whether either has compact support."""
        return self.left.compact or self.right.compact

    def _gram(self, X: Matrix, Y: Matrix | None, n_jobs: int | None) -> Any:
        if not self.compact:
            K = self.left._gram(X, Y, n_jobs)
            K *= self.right._gram(X, Y, n_jobs)
            return K
        sparse, other = self.left, self.right
        if not sparse.compact:
            sparse, other = other, sparse
        if isinstance(sparse, GCS) and (K := sparse._gram_times(other, X, Y, n_jobs)) is not None:
            return K
        K = sparse._gram(X, Y, n_jobs)
        if other.compact:
            return sp.csr_array(K.multiply(other._gram(X, Y, n_jobs)))
        # Bands of the other kernel, as high as keeps them small beside K.
        height = max(1, (1 << 24) // max(1, K.shape[1] * K.dtype.itemsize))
        for begin, end in ranges(X.shape[0], height):
            span = slice(K.indptr[begin], K.indptr[end])
            rows = np.repeat(np.arange(end - begin), np.diff(K.indptr[begin : end + 1]))
            band = other._gram(X[begin:end], X if Y is None else Y, n_jobs)
            K.data[span] *= band[rows, K.indices[span]]
        return K

    def _diag(self, X: Matrix) -> Array:
        return self.left._diag(X) * self.right._diag(X)

    def __repr__(self) -> str:
        return " * ".join(
            f"({k!r})" if isinstance(k, Sum) else repr(k) for k in (self.left, self.right)
        )
