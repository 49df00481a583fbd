"""Sums and products of kernels: ``a + b``, ``a * b``, and sums of many with weights."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from hilbin._arrays import Array, Matrix, to_dense
from hilbin._parameters import require_positive
from hilbin.kernels.base import Kernel
from hilbin.kernels.columns import OnColumns
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
        return _added(left, right) if self.compact else _added(to_dense(left), to_dense(right))

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


@dataclass(frozen=True, repr=False)
class WeightedSum(Kernel):
    r"""Weighted sum, :math:`K(x, y) = \sum_j w_j k_j(x, y)`, the result of kernel learning.

    Kernels of weight 0 are kept, but not computed.

    Parameters
    ----------
    kernels : tuple of Kernel
        :math:`k_j`.
    weights : tuple of float >= 0
        :math:`w_j`, of which at least one is not 0.

    Examples
    --------
    >>> from hilbin.kernels import Chi2, Linear, WeightedSum
    >>> WeightedSum([Chi2(), Linear()], weights=[0.5, 2]).gram([[1, 3]])
    array([[22.]])
    """

    kernels: tuple[Kernel, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        for name in ("kernels", "weights"):
            given = getattr(self, name)
            if not isinstance(given, Iterable):
                raise ValueError(f"{name} of WeightedSum must be a list, got {given!r}")
            if not isinstance(given, tuple):  # one that is, a clone must keep
                plain = given.tolist() if isinstance(given, np.ndarray) else given
                object.__setattr__(self, name, tuple(plain))
        strange = [kernel for kernel in self.kernels if not isinstance(kernel, Kernel)]
        if strange or not self.kernels:
            what = repr(strange[0]) if strange else "none"
            raise ValueError(f"kernels of WeightedSum must be one or more kernels, got {what}")
        if len(self.weights) != len(self.kernels):
            raise ValueError(
                f"WeightedSum has {len(self.kernels)} kernels, but {len(self.weights)} weights"
            )
        for j, weight in enumerate(self.weights):
            require_positive(f"weights[{j}] of WeightedSum", weight, or_zero=True)
        if not any(self.weights):
            raise ValueError("weights of WeightedSum are all 0: one at least must be above 0")

    @property
    def _counted(self) -> list[tuple[Kernel, float]]:
        """The kernels whose weight is not 0."""
        both = zip(self.kernels, self.weights, strict=True)
        return [(kernel, weight) for kernel, weight in both if weight]

    @property
    def psd(self) -> bool:  # type: ignore[override]
        """Whether all with a weight above 0 are positive definite."""
        return all(kernel.psd for kernel, _ in self._counted)

    @property
    def nonnegative(self) -> bool:  # type: ignore[override]
        """Whether any with a weight above 0 needs values >= 0."""
        return any(kernel.nonnegative for kernel, _ in self._counted)

    @property
    def compact(self) -> bool:  # type: ignore[override]
        """Whether all with a weight above 0 have compact support."""
        return all(kernel.compact for kernel, _ in self._counted)

    def _gram(self, X: Matrix, Y: Matrix | None, n_jobs: int | None) -> Any:
        total: Any = None
        for kernel, weight in self._counted:
            K = kernel._gram(X, Y, n_jobs)
            K = K if self.compact else to_dense(K)
            K *= K.dtype.type(weight)
            total = K if total is None else _added(total, K)
        return total

    def _diag(self, X: Matrix) -> Array:
        return np.sum([weight * kernel._diag(X) for kernel, weight in self._counted], axis=0)

    def _resolve(self, X: Matrix, random_state: Any) -> Self:
        return self.replace(kernels=tuple(k._resolve(X, random_state) for k in self.kernels))


def product_kernel(kernels: Sequence[Kernel], X: object, random_state: Any = None) -> Kernel:
    r"""Make the plain product of kernels, :math:`K(x, y) = \prod_j k_j(x, y)^{1/m}`.

    For :math:`k_j = e^{-\gamma_j d_j}` it is :math:`e^{-\frac1m \sum_j \gamma_j d_j}`: the
    exponential of the mean of the distances. With ``gamma="mean"`` every distance counts as much as
    any other. A pair of rows is similar only if it is similar in every description; in the sum of
    kernels, it is enough that it is in one.

    Parameters
    ----------
    kernels : sequence of Kernel
        :math:`m` kernels :math:`e^{-\gamma d}` (:class:`Gaussian`, :class:`Laplace`,
        :class:`Exponential`, ...), which may be on columns.
    X : array-like or CSR of shape (n, d)
        Rows, usually the training set, on which rules such as ``gamma="mean"`` become numbers.
    random_state : int, RandomState or None
        Random seed of the rows that rules look at, if there are more than 2000.

    Returns
    -------
    kernel : Kernel
        A kernel with numbers for its parameters.

    Examples
    --------
    >>> from hilbin.kernels import Chi2, Exponential, Gaussian, OnColumns, product_kernel
    >>> X = [[1.0, 0.0, 3.0], [0.5, 0.5, 1.0], [0.0, 1.0, 0.0]]
    >>> words = OnColumns(Exponential(Chi2(), "mean"), [0, 1])
    >>> size = OnColumns(Gaussian("mean"), [2])
    >>> product_kernel([words, size], X).gram(X).round(3)
    array([[1.   , 0.483, 0.155],
           [0.483, 1.   , 0.666],
           [0.155, 0.666, 1.   ]])
    """
    if not kernels:
        raise ValueError("kernels must be one or more kernels, got none")
    made = [_root(kernel.resolve(X, random_state), len(kernels)) for kernel in kernels]
    return reduce(Product, made)


def _root(kernel: Kernel, count: int) -> Kernel:
    """Return the root of a kernel that is an exponential, maybe on columns."""
    if kernel._exponential:
        return kernel.replace(gamma=kernel.get_params()["gamma"] / count)
    if isinstance(kernel, OnColumns):
        return kernel.replace(kernel=_root(kernel.kernel, count))
    raise TypeError(
        f"product_kernel takes kernels exp(-gamma d), such as Gaussian and Exponential, got "
        f"{kernel!r}"
    )


def _added(left: Any, right: Any) -> Any:
    """Return the sum of two matrices, in place if they are dense."""
    if sp.issparse(left):
        return left + right
    left += right
    return left
