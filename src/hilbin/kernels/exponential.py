"""Kernels of a kernel's distance: the exponential and the p-value."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import gammaincc

from hilbin.kernels._arrays import Array, Matrix
from hilbin.kernels._rowwise import rowwise
from hilbin.kernels.bandwidth import Rule, is_rule, sample, statistic
from hilbin.kernels.base import Kernel, dense, require_positive, warn_not_psd
from hilbin.kernels.chi2 import Chi2


class DistanceKernel(Kernel):
    """``f(gamma d(x, y))`` of a kernel's half squared distance.

    ``d(x, y) = (k(x, x) + k(y, y)) / 2 - k(x, y) = |phi(x) - phi(y)|^2 / 2``.
    """

    gamma: float | Rule

    def __post_init__(self) -> None:
        if not is_rule(self.gamma):
            require_positive(self, "gamma")

    @property
    def _base(self) -> Kernel:
        raise NotImplementedError

    def _of_distance(self, t: Array) -> None:
        """Replace ``t = gamma d`` by ``f(t)``, in place."""
        raise NotImplementedError

    @property
    def nonnegative(self) -> bool:  # type: ignore[override]
        """As the inner kernel."""
        return self._base.nonnegative

    def _distances(self, X: Matrix, Y: Matrix | None, gamma: float, n_jobs: int | None) -> Array:
        K = dense(self._base._gram(X, Y, n_jobs))
        x = (0.5 * gamma * self._base._diag(X)).astype(K.dtype)
        y = x if Y is None else (0.5 * gamma * self._base._diag(Y)).astype(K.dtype)

        def subtract(block: Array, rows: slice) -> None:
            sums = x[rows, None] + y  # first: the result is symmetric to the last bit
            block *= gamma
            np.subtract(sums, block, out=block)
            np.maximum(block, 0, out=block)
            if Y is None:
                np.fill_diagonal(block[:, rows], 0)

        return rowwise(K, subtract, n_jobs)

    def _gram(self, X: Matrix, Y: Matrix | None, n_jobs: int | None) -> Array:
        D = self._distances(X, Y, float(self.gamma), n_jobs)  # type: ignore[arg-type]
        return rowwise(D, lambda block, _: self._of_distance(block), n_jobs)

    def _diag(self, X: Matrix) -> Array:
        return np.ones(X.shape[0])

    def _resolve_gamma(self, X: Matrix, random_state: Any) -> float:
        if not is_rule(self.gamma):
            return self.gamma  # type: ignore[return-value]
        distances = self._distances(sample(X, random_state), None, 1.0, None)
        return 1 / statistic(self.gamma, distances, "gamma")  # type: ignore[arg-type]


@dataclass(frozen=True, repr=False)
class Exponential(DistanceKernel):
    r"""Exponential of a kernel's distance, :math:`e^{-\gamma\,d(x, y)}` with
    :math:`d(x, y) = \tfrac12 (k(x, x) + k(y, y)) - k(x, y)`.

    For :class:`Chi2` the distance is :math:`\tfrac12 \sum_d (x_d - y_d)^2 / (x_d + y_d)`;
    scikit-learn's ``chi2_kernel(gamma=g)`` leaves out the half, so it is ``gamma = 2 g`` here. For
    :class:`JensenShannon` on rows that sum to 1 it is the Jensen-Shannon divergence. Positive
    definite if ``kernel`` is (Schoenberg).

    Parameters
    ----------
    kernel : Kernel
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

    @property
    def psd(self) -> bool:  # type: ignore[override]
        """As the inner kernel."""
        return self.kernel.psd

    @property
    def _base(self) -> Kernel:
        return self.kernel

    def _of_distance(self, t: Array) -> None:
        np.exp(np.negative(t, out=t), out=t)

    def _resolve(self, X: Matrix, random_state: Any) -> Self:
        resolved = self.replace(kernel=self.kernel._resolve(X, random_state))
        return resolved.replace(gamma=resolved._resolve_gamma(X, random_state))


@dataclass(frozen=True, repr=False)
class PValue(DistanceKernel):
    r"""p-value of the chi-squared test as a kernel,
    :math:`K(x, y) = Q(\nu / 2, \gamma\,\chi^2(x, y))`.

    :math:`Q` is the regularised upper incomplete gamma function and :math:`\chi^2` the distance of
    :class:`Chi2`. With 2 degrees of freedom it is ``Exponential(Chi2(), gamma)``, with 1 it is
    :math:`\mathrm{erfc}\sqrt{\gamma \chi^2}`; these are positive definite, more degrees are not.

    Parameters
    ----------
    dof : float > 0, default 1
        Degrees of freedom :math:`\nu`.
    gamma : float > 0, or "median", "mean", Quantile; default 1
        A rule takes :math:`1 / \gamma` from the distances.

    Examples
    --------
    >>> from hilbin.kernels import PValue
    >>> PValue(dof=1, gamma=1.95).gram([[0.5, 0.5]], [[1.0, 0.0]]).round(4)
    array([[0.2542]])
    """

    dof: float = 1.0
    gamma: float | Rule = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "dof")
        if not self.psd:
            warn_not_psd(
                self, f"Q(nu/2, t) is completely monotone for nu <= 2 only, and dof is {self.dof:g}"
            )

    @property
    def psd(self) -> bool:  # type: ignore[override]
        """Whether ``dof <= 2``."""
        return self.dof <= 2

    @property
    def _base(self) -> Kernel:
        return Chi2()

    def _of_distance(self, t: Array) -> None:
        gammaincc(self.dof / 2, t, out=t)

    def _resolve(self, X: Matrix, random_state: Any) -> Self:
        return self.replace(gamma=self._resolve_gamma(X, random_state))
