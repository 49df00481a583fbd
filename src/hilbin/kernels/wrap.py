"""One kernel around another: multiples, cosine normalization, powers of the values."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from hilbin._arrays import Array, Matrix, apply
from hilbin.kernels.base import Kernel, require_positive
from hilbin.kernels.pairwise import rowwise


class WrapperKernel(Kernel):
    """The base class of kernels made of another one, whose properties they have."""

    kernel: Kernel

    @property
    def psd(self) -> bool:  # type: ignore[override]
        """Whether the inner kernel is positive definite."""
        return self.kernel.psd

    @property
    def compact(self) -> bool:  # type: ignore[override]
        """Whether the inner kernel has compact support."""
        return self.kernel.compact

    @property
    def nonnegative(self) -> bool:  # type: ignore[override]
        """Whether the inner kernel needs values >= 0."""
        return self.kernel.nonnegative

    def _resolve(self, X: Matrix, random_state: Any) -> Self:
        return self.replace(kernel=self.kernel._resolve(X, random_state))


@dataclass(frozen=True, repr=False)
class Scaled(WrapperKernel):
    r"""Multiple, :math:`K(x, y) = c\,k(x, y)`; written ``c * k``.

    Parameters
    ----------
    kernel : Kernel
    factor : float > 0

    Examples
    --------
    >>> from hilbin.kernels import Linear
    >>> (0.5 * Linear()).gram([[2, 2]])
    array([[4.]])
    """

    kernel: Kernel
    factor: float

    def __post_init__(self) -> None:
        require_positive(self, "factor")

    def _gram(self, X: Matrix, Y: Matrix | None, n_jobs: int | None) -> Any:
        K = self.kernel._gram(X, Y, n_jobs)
        K *= K.dtype.type(self.factor)
        return K

    def _diag(self, X: Matrix) -> Array:
        return self.factor * self.kernel._diag(X)

    def __repr__(self) -> str:
        inner = f"({self.kernel!r})" if " + " in repr(self.kernel) else repr(self.kernel)
        return f"{self.factor!r} * {inner}"


@dataclass(frozen=True, repr=False)
class Normalized(WrapperKernel):
    r"""Cosine of the angle between the images,
    :math:`K(x, y) = k(x, y) / \sqrt{k(x, x)\,k(y, y)}`.

    A row whose own value :math:`k(x, x)` is 0 has the image 0, and stays 0.

    Parameters
    ----------
    kernel : Kernel

    Examples
    --------
    >>> from hilbin.kernels import Linear, Normalized
    >>> Normalized(Linear()).gram([[1, 0], [3, 4]])
    array([[1. , 0.6],
           [0.6, 1. ]])
    """

    kernel: Kernel

    def _gram(self, X: Matrix, Y: Matrix | None, n_jobs: int | None) -> Any:
        K = self.kernel._gram(X, Y, n_jobs)
        x = self._factors(X).astype(K.dtype)
        y = x if Y is None else self._factors(Y).astype(K.dtype)
        if sp.issparse(K):
            _multiply(K.data, np.repeat(x, np.diff(K.indptr)), y[K.indices])
            return K

        def scale(part: Array, rows: slice) -> None:
            _multiply(part, x[rows, None], y)
            if Y is None:
                at = np.arange(len(part))
                part[at, rows.start + at] = x[rows] > 0

        return rowwise(K, scale, n_jobs)

    def _factors(self, X: Matrix) -> Array:
        norms = np.sqrt(self.kernel._diag(X))
        return np.divide(1, norms, out=np.zeros_like(norms), where=norms > 0)

    def _diag(self, X: Matrix) -> Array:
        return (self.kernel._diag(X) > 0).astype(np.float64)


def _multiply(K: Array, x: Array, y: Array) -> None:
    """Multiply ``K`` by ``x y``, symmetric to the last bit, where the product may overflow too."""
    largest = [float(np.max(v, initial=0)) for v in (x, y)]
    if largest[0] * largest[1] < np.finfo(K.dtype).max:
        K *= x * y
    else:
        K *= np.minimum(x, y)
        K *= np.maximum(x, y)


@dataclass(frozen=True, repr=False)
class Power(WrapperKernel):
    r"""A kernel on powers of the values, :math:`K(x, y) = k(x^a, y^a)`.

    Parameters
    ----------
    kernel : Kernel
    exponent : float > 0
        :math:`a`; small powers even out histograms of very different counts.

    Examples
    --------
    >>> from hilbin.kernels import Laplace, Power
    >>> Power(Laplace(gamma=0.1), 0.25).gram([[16, 81]], [[0, 1]]).round(4)
    array([[0.6703]])
    """

    kernel: Kernel
    exponent: float

    def __post_init__(self) -> None:
        require_positive(self, "exponent")

    @property
    def nonnegative(self) -> bool:  # type: ignore[override]
        """True unless the exponent is 1."""
        return self.exponent != 1 or self.kernel.nonnegative

    def _gram(self, X: Matrix, Y: Matrix | None, n_jobs: int | None) -> Any:
        return self.kernel._gram(self._powers(X), None if Y is None else self._powers(Y), n_jobs)

    def _diag(self, X: Matrix) -> Array:
        return self.kernel._diag(self._powers(X))

    def _powers(self, X: Matrix) -> Matrix:
        return apply(X, lambda x: np.power(x, self.exponent))

    def _resolve(self, X: Matrix, random_state: Any) -> Self:
        return self.replace(kernel=self.kernel._resolve(self._powers(X), random_state))
