"""Kernels of a distance: Gaussian, Laplace and the p-value of the chi-squared test."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaincc

from hilbin._arrays import Array, Matrix
from hilbin.kernels.bandwidth import SAMPLE_ROWS, Rule, is_rule, sample, statistic
from hilbin.kernels.base import Kernel, require_positive, warn_not_psd
from hilbin.kernels.pairwise import (
    Op,
    finished_sums,
    fold_upper,
    rowwise,
    sums_against,
    upper_sums,
)

SQUARED = Op("squared", vanishes=False)
ABSOLUTE = Op("absolute", vanishes=False)
CHI2_DISTANCE = Op("harmonic_difference", vanishes=False)
MANY, FEW = 500, 100  # rows of which all pairs take time, and hardly any
SINGLE_ERROR = 1e-5  # of kernel values from rows in single precision
HALF_UNIT = 2.0**-24  # rounding to single precision, relative

K = TypeVar("K", bound=Kernel)


def by_rule(resolve: Callable[[Matrix], K], X: Matrix) -> K:
    """Return ``resolve(X)``, from rows in single precision if they are many and good enough."""
    if X.shape[0] >= MANY and not sp.issparse(X) and X.dtype == np.float64:
        with np.errstate(over="ignore", invalid="ignore"), suppress(ValueError):
            single = X.astype(np.float32)
            if resolve(single[:FEW])._single(X) is not None:  # else all pairs would be for nothing
                found = resolve(single)
                if found._single(X) is not None:
                    return found
    return resolve(X)


class RadialKernel(Kernel):
    """A kernel ``f(gamma d(x, y))`` of a distance, with ``f(t) = exp(-t)`` by default.

    A subclass gives ``d``, as a sum over the columns (``_terms``), its root, or otherwise.
    """

    gamma: float | Rule
    _root = False
    _exponential = True

    def __post_init__(self) -> None:
        if not is_rule(self.gamma):
            require_positive(self, "gamma")

    @property
    def _terms(self) -> Op | None:
        """The terms whose sum over the columns is the distance, or its square."""
        return None

    def _distances(self, X: Matrix, Y: Matrix | None, n_jobs: int | None) -> Array:
        assert self._terms is not None
        return finished_sums(self._terms, X, Y, lambda part, _: self._of_sums(part), n_jobs)

    def _of_sums(self, D: Array) -> Array:
        np.maximum(D, 0, out=D)
        return np.sqrt(D, out=D) if self._root else D

    def _of_distance(self, t: Array) -> None:
        """Replace ``t`` by ``f(t)``, in place."""
        np.exp(np.negative(t, out=t), out=t)

    def _of_euclidean(self, r: Array) -> tuple[Array, Array] | None:
        """Return the kernel and its derivative at Euclidean distances, if it is their function."""
        return None

    def _gram(self, X: Matrix, Y: Matrix | None, n_jobs: int | None) -> Array:
        if self._terms is None:
            return rowwise(self._distances(X, Y, n_jobs), self._finish, n_jobs)
        return finished_sums(self._terms, X, Y, self._finish_sums, n_jobs)

    def _gram_into(self, X: Matrix, Y: Matrix | None, n_jobs: int | None, out: Array) -> None:
        if self._terms is None:
            super()._gram_into(X, Y, n_jobs, out)
        else:
            finished_sums(self._terms, X, Y, self._finish_sums, n_jobs, out=out)

    def _gram_as(self, X: Matrix, dtype: Any, n_jobs: int | None) -> Array:
        if self._terms is None:
            return super()._gram_as(X, dtype, n_jobs)
        return finished_sums(self._terms, X, None, self._finish_sums, n_jobs, dtype=dtype)

    def _against(self, Y: Matrix, n_jobs: int | None) -> Callable[[Matrix], Array]:
        if self._terms is None:
            return super()._against(Y, n_jobs)
        sums = sums_against(self._terms, Y, n_jobs)
        return lambda X: rowwise(sums(X), self._finish_sums, n_jobs)

    def _finish_sums(self, part: Array, rows: slice) -> None:
        self._finish(self._of_sums(part), rows)

    def _finish(self, part: Array, _: slice) -> None:
        part *= self.gamma
        self._of_distance(part)

    def _diag(self, X: Matrix) -> Array:
        return np.ones(X.shape[0])

    def _resolve(self, X: Matrix, random_state: Any) -> Self:
        if not is_rule(self.gamma):
            return self
        return by_rule(lambda X: self._by_rule(self._pair_distances(X)), sample(X, random_state))

    def _pair_distances(self, X: Matrix) -> Array:
        """Return the distances of all pairs of rows."""
        if self._terms is None:
            return fold_upper(self._distances(X, None, None))
        return self._of_sums(upper_sums(self._terms, X, None))

    def _by_rule(self, distances: Array) -> Self:
        return self.replace(gamma=self._ruled(distances))

    def _ruled(self, distances: Array) -> float:
        return 1 / statistic(self.gamma, distances, "gamma")  # type: ignore[arg-type]

    def _resolved_pairs(self, X: Matrix, random_state: Any) -> Array:
        """Return the kernel of all pairs of rows, by a rule; distances are computed once."""
        distances = self._pair_distances(X)
        some = distances
        if X.shape[0] > SAMPLE_ROWS:
            some = self._pair_distances(sample(X, random_state))
        distances *= self._ruled(some)
        self._of_distance(distances)
        return distances


@dataclass(frozen=True, repr=False)
class Gaussian(RadialKernel):
    r"""Gaussian kernel, :math:`K(x, y) = e^{-\gamma \|x - y\|^2}`.

    Distances are sums of squared differences, not expanded products: exact for near-duplicates,
    wherever the origin is.

    Parameters
    ----------
    gamma : float > 0, or "median", "mean", Quantile; default 1
        A rule takes :math:`1 / \gamma` from the squared distances.

    Examples
    --------
    >>> from hilbin.kernels import Gaussian
    >>> Gaussian(gamma=0.5).gram([[0.0], [1.0]]).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    gamma: float | Rule = 1.0

    @property
    def _terms(self) -> Op:
        return SQUARED

    def _single(self, X: Array) -> Array | None:
        r"""Return the rows in single precision, if that changes kernel values by less than 1e-5.

        Rounded rows of norms up to :math:`R` change a distance :math:`r` by up to :math:`2uR`,
        :math:`u = 2^{-24}`, and the kernel by up to :math:`4 u \gamma R r e^{-\gamma r^2} \le
        1.72\,u \sqrt\gamma R`. A sum of :math:`d` squares is off by some :math:`\sqrt d\,u` of
        itself, four times as much at most, and the kernel by :math:`4 \sqrt d\,u t e^{-t} \le
        1.48 \sqrt d\,u`.
        """
        with np.errstate(over="ignore"):
            norm = np.sqrt(self.gamma * np.max(np.vecdot(X, X), initial=0.0))
            error = HALF_UNIT * (1.72 * norm + 1.48 * np.sqrt(X.shape[1]))
        return X.astype(np.float32) if error < SINGLE_ERROR else None

    def _of_euclidean(self, r: Array) -> tuple[Array, Array] | None:
        gamma = float(self.gamma)  # type: ignore[arg-type]
        values = np.exp(-gamma * np.square(r))
        return values, -2 * gamma * r * values


@dataclass(frozen=True, repr=False)
class Laplace(RadialKernel):
    r"""Laplace kernel, :math:`K(x, y) = e^{-\gamma \|x - y\|_p}`, :math:`p` 1 or 2.

    Positive definite for both norms. ``Power(Laplace(gamma), 0.25)`` is the Laplace kernel on
    :math:`x^{1/4}` of Chapelle, Haffner and Vapnik (1999).

    Parameters
    ----------
    gamma : float > 0, or "median", "mean", Quantile; default 1
        A rule takes :math:`1 / \gamma` from the distances.
    p : {1, 2}, default 1
        Norm.

    Examples
    --------
    >>> from hilbin.kernels import Laplace
    >>> Laplace(gamma=0.1, p=2).gram([[0, 0]], [[3, 4]]).round(4)
    array([[0.6065]])
    """

    gamma: float | Rule = 1.0
    p: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.p not in (1, 2):
            raise ValueError(f"p of Laplace must be 1 or 2, got {self.p!r}")

    @property
    def _terms(self) -> Op:
        return ABSOLUTE if self.p == 1 else SQUARED

    @property
    def _root(self) -> bool:  # type: ignore[override]
        return self.p == 2

    def _of_euclidean(self, r: Array) -> tuple[Array, Array] | None:
        if self.p == 1:
            return None
        gamma = float(self.gamma)  # type: ignore[arg-type]
        values = np.exp(-gamma * r)
        return values, -gamma * values


@dataclass(frozen=True, repr=False)
class PValue(RadialKernel):
    r"""p-value of the chi-squared test as a kernel,
    :math:`K(x, y) = Q(\nu / 2, \gamma\,\chi^2(x, y))`.

    :math:`Q` is the regularized upper incomplete gamma function and :math:`\chi^2` the distance of
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
    nonnegative = True
    _exponential = False

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
    def _terms(self) -> Op:
        return CHI2_DISTANCE

    def _of_distance(self, t: Array) -> None:
        gammaincc(self.dof / 2, t, out=t)
