"""The exponential of a kernel's distance."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from hilbin._arrays import Array, Matrix, to_dense
from hilbin.kernels.bandwidth import Rule, is_rule, sample, statistic
from hilbin.kernels.base import Kernel, require_positive
from hilbin.kernels.pairwise import rowwise
from hilbin.kernels.wrap import WrapperKernel


@dataclass(frozen=True, repr=False)
class Exponential(WrapperKernel):
    r"""Exponential of a kernel's distance, :math:`e^{-\gamma\,d(x, y)}` with
    :math:`d(x, y) = \tfrac12 (k(x, x) + k(y, y)) - k(x, y)`.

    For :class:`Chi2` the distance is :math:`\tfrac12 \sum_d (x_d - y_d)^2 / (x_d + y_d)`;
    scikit-learn's ``chi2_kernel(gamma=g)`` leaves out the half, so it is ``gamma = 2 g`` here. For
    :class:`JensenShannon` on rows that sum to 1 it is the Jensen-Shannon divergence. Positive
    definite if ``kernel`` is (Schoenberg).

    Parameters
    ----------
    kernel : Kernel
        The kernel whose distance it is.
    gamma : float > 0, or "median", "mean", Quantile; default 1
        A rule takes :math:`1 / \gamma` from the distances.

    Examples
    --------
    >>> from hilbin.kernels import Chi2, Exponential
    >>> Exponential(Chi2(), gamma=2.0).gram([[0.5, 0.5], [1.0, 0.0]]).round(4)
    array([[1.    , 0.5134],
           [0.5134, 1.    ]])
    """

    kernel: Kernel
    gamma: float | Rule = 1.0
    compact = False

    def __post_init__(self) -> None:
        if not is_rule(self.gamma):
            require_positive(self, "gamma")

    def _gram(self, X: Matrix, Y: Matrix | None, n_jobs: int | None) -> Array:
        D = self._distances(X, Y, float(self.gamma), n_jobs)  # type: ignore[arg-type]
        return _falling(D, n_jobs)

    def _against(self, Y: Matrix, n_jobs: int | None) -> Callable[[Matrix], Array]:
        inner, gamma = self.kernel._against(Y, n_jobs), float(self.gamma)  # type: ignore[arg-type]
        y = self.kernel._diag(Y)

        def gram(X: Matrix) -> Array:
            D = _subtracted(to_dense(inner(X)), gamma, self.kernel._diag(X), y, n_jobs)
            return _falling(D, n_jobs)

        return gram

    def _distances(self, X: Matrix, Y: Matrix | None, gamma: float, n_jobs: int | None) -> Array:
        """Return ``gamma d``."""
        K, x = to_dense(self.kernel._gram(X, Y, n_jobs)), self.kernel._diag(X)
        return _subtracted(K, gamma, x, None if Y is None else self.kernel._diag(Y), n_jobs)

    def _diag(self, X: Matrix) -> Array:
        return np.ones(X.shape[0])

    def _resolve(self, X: Matrix, random_state: Any) -> Self:
        resolved = self.replace(kernel=self.kernel._resolve(X, random_state))
        if not is_rule(self.gamma):
            return resolved
        distances = resolved._distances(sample(X, random_state), None, 1.0, None)
        return resolved.replace(gamma=1 / statistic(self.gamma, distances, "gamma"))  # type: ignore[arg-type]


def _subtracted(K: Array, gamma: float, x: Array, y: Array | None, n_jobs: int | None) -> Array:
    """Replace ``K`` by ``gamma d``; ``x``, ``y`` are the diagonals, None for the same rows."""
    left = (0.5 * gamma * x).astype(K.dtype)
    right = left if y is None else (0.5 * gamma * y).astype(K.dtype)

    def subtract(part: Array, rows: slice) -> None:
        sums = left[rows, None] + right  # first: the result is symmetric to the last bit
        part *= gamma
        np.subtract(sums, part, out=part)
        np.maximum(part, 0, out=part)
        if y is None:
            np.fill_diagonal(part[:, rows], 0)

    return rowwise(K, subtract, n_jobs)


def _falling(D: Array, n_jobs: int | None) -> Array:
    """Replace ``D`` by ``exp(-D)``."""
    return rowwise(D, lambda part, _: np.exp(np.negative(part, out=part), out=part), n_jobs)
