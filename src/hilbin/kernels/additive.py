"""Additive kernels: one even function of one variable, the profile.

``K(x, y) = sum_d k(x_d, y_d)`` with ``k(a, b) = r(a) r(b) P(|u(a) - u(b)|)``: coordinate ``u``,
weight ``r``, profile ``P``. Homogeneous kernels, ``k(ca, cb) = c^h k(a, b)``, have ``u = log``,
``r = a^(h/2)``; stationary ones have ``u = a``, ``r = 1`` (Vedaldi and Zisserman, *Efficient
Additive Kernels via Explicit Feature Maps*, 2012).

From the profile alone the Gram matrix runs compiled: ``P`` is made into numbers over the span of
the data, in one of two forms. A profile that falls off like ``exp(-rate t)``, as those of
homogeneous kernels do, is often a polynomial of low degree in ``q = exp(-rate t)``; then no lookup
is needed, since for two values ``q`` is the smaller of ``exp(rate (u - v))`` and ``exp(rate (v -
u))``. Any other profile is tabulated: with ``v = 1 + scale * t`` every octave of ``v`` has the same
number of cells, so that cells are fine near 0 and widen with the distance. A kernel may name a
compiled function of its own (``op``), which :func:`hilbin.kernels.check_kernel` compares with the
profile.
"""

import warnings
from collections.abc import Callable
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from numpy.polynomial import Chebyshev, Polynomial

from hilbin._arrays import Array, Function, Matrix, row_sums
from hilbin._core import core
from hilbin.kernels.base import Kernel
from hilbin.kernels.pairwise import Op, pairwise_sum, sums_against

DEGREES = (2, 6, 10)  # of the polynomials that are compiled
MOST_OCTAVES = 14
TINY = np.finfo(np.float64).tiny
TOLERANCE = {"float32": 1e-6, "float64": 1e-12}  # of a polynomial; that of cells is like it


class AdditiveKernel(Kernel):
    """A kernel that is a sum over bins; a subclass gives ``coordinate``, ``weight``, ``profile``.

    Most derive from :class:`HomogeneousKernel` or :class:`StationaryKernel` and give the profile
    alone.
    """

    op: ClassVar[Op | None] = None

    def coordinate(self, x: Array) -> Array:
        """Return ``u(x)``, finite wherever the weight is not 0."""
        raise NotImplementedError

    def value(self, u: Array) -> Array:
        """Return the ``x`` with ``u(x) = u``; explicit maps need it, Gram matrices do not."""
        raise NotImplementedError

    def weight(self, x: Array) -> Array:
        """Return ``r(x)``."""
        raise NotImplementedError

    def profile(self, t: Array) -> Array:
        """Return ``P(t)`` for ``t >= 0``."""
        raise NotImplementedError

    @property
    def keeps_zero(self) -> bool:
        """Whether ``k(0, y)`` is 0 for every ``y``, so that zeros of sparse rows do not count."""
        return bool(self.weight(np.zeros(1))[0] == 0)

    def _compiled(self) -> Op | None:
        """Return the compiled function of this kernel; None leaves it to the profile."""
        return self.op

    def _gram(self, X: Matrix, Y: Matrix | None, n_jobs: int | None) -> Array:
        return pairwise_sum(self._compiled() or self.tabulated(X, Y), X, Y, n_jobs)

    def _gram_into(self, X: Matrix, Y: Matrix | None, n_jobs: int | None, out: Array) -> None:
        if type(self)._gram is AdditiveKernel._gram:
            pairwise_sum(self._compiled() or self.tabulated(X, Y), X, Y, n_jobs, out)
        else:
            super()._gram_into(X, Y, n_jobs, out)

    def _against(self, Y: Matrix, n_jobs: int | None) -> Callable[[Matrix], Array]:
        op = self._compiled()  # a tabulated one spans the values of both sides
        return super()._against(Y, n_jobs) if op is None else sums_against(op, Y, n_jobs)

    def _diag(self, X: Matrix) -> Array:
        at_zero = float(self.profile(np.zeros(1))[0])
        return at_zero * row_sums(X, lambda x: np.square(self.weight(x)))

    def tabulated(self, X: Matrix, Y: Matrix | None = None) -> Op:
        """Return the op that computes the profile from numbers found over the span of the data."""
        spans = [self._span(Z) for Z in (X, Y) if Z is not None]
        low, high = min(s[0] for s in spans), max(s[1] for s in spans)
        middle = (low + high) / 2

        def parts(x: Array) -> tuple[Array, Array]:
            weight = self.weight(x)
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(weight == 0, 0, self.coordinate(x) - middle), weight

        return profile_op(self.profile, parts, high - low, X.dtype, self.keeps_zero)

    def _span(self, X: Matrix) -> tuple[float, float]:
        """Return the ends of the coordinates of the values that count."""
        values = X.data if sp.issparse(X) else X
        if sp.issparse(X) and X.nnz < X.shape[0] * X.shape[1]:
            values = np.append(values, values.dtype.type(0))
        counted = self.weight(values) != 0
        with np.errstate(divide="ignore", invalid="ignore"):
            u = self.coordinate(values)
        low = float(np.min(u, initial=np.inf, where=counted))
        high = float(np.max(u, initial=-np.inf, where=counted))
        if low > high:  # nothing counts
            return 0.0, 0.0
        if not np.isfinite(high - low):
            raise ValueError(f"the coordinate of {self!r} is not finite where its weight is not 0")
        return low, high


class HomogeneousKernel(AdditiveKernel):
    """A kernel with ``k(ca, cb) = c^h k(a, b)`` for ``a, b, c >= 0``; a subclass gives the profile.

    ``P(t) = k(e^(t/2), e^(-t/2))``, so that ``k(a, b) = (ab)^(h/2) P(|log a - log b|)``.
    """

    nonnegative = True

    @property
    def degree(self) -> float:
        """The degree ``h``."""
        return 1.0

    def coordinate(self, x: Array) -> Array:
        """Return ``log x``."""
        return np.log(x)

    def value(self, u: Array) -> Array:
        """Return ``e^u``."""
        return np.exp(u)

    def weight(self, x: Array) -> Array:
        """Return ``x^(h/2)``."""
        return np.sqrt(x) if self.degree == 1 else np.power(x, self.degree / 2)


class StationaryKernel(AdditiveKernel):
    """A kernel ``k(a, b) = P(|a - b|)``; a subclass gives the profile."""

    def coordinate(self, x: Array) -> Array:
        """Return ``x``."""
        return x

    def value(self, u: Array) -> Array:
        """Return ``u``."""
        return u

    def weight(self, x: Array) -> Array:
        """Return 1."""
        return np.ones_like(x)


def profile_op(
    profile: Function,
    parts: Callable[[Array], tuple[Array, Array]],
    span: float,
    dtype: npt.DTypeLike,
    vanishes: bool,
) -> Op:
    """Return the op for ``r(x) r(y) P(|u(x) - u(y)|)``; ``parts`` gives ``u`` and ``r``."""
    powers = fit_powers(profile, span, np.dtype(dtype))
    if powers is None:
        scale, cells = tabulate(profile, span, np.dtype(dtype))

        def positions(x: Array) -> tuple[Array, Array]:
            u, r = parts(x)
            return scale * u, r

        return Op("table", positions, vanishes, cells)
    rate, coefficients = powers

    def exponentials(x: Array) -> tuple[Array, Array, Array]:
        u, r = parts(x)
        rise = np.exp(rate * u)
        return rise, 1 / rise, r

    return Op(f"powers{coefficients.size - 1}", exponentials, vanishes, coefficients)


def fit_powers(profile: Function, span: float, dtype: np.dtype) -> tuple[float, Array] | None:
    """Return rate and coefficients of the polynomial in ``exp(-rate t)``, or None for none.

    The rate is that at which the profile falls off at the far end. The error is measured with the
    arithmetic of ``dtype``.
    """
    near, far = profile(np.array([0.9 * span, span]))
    rate = np.log(near / far) / (0.1 * span) if near > far > 0 else 0.0
    if not 1 < rate * span < np.log(np.finfo(dtype).max):
        return None  # over so short a span coefficients grow huge, over so long a one exp overflows
    t = np.linspace(0, span, 4096)
    exact, q = profile(t), np.exp(-rate * t).astype(dtype)
    for degree in DEGREES:
        domain = [np.exp(-rate * span), 1]
        series = Chebyshev.interpolate(lambda q: profile(-np.log(q) / rate), degree, domain)
        coefficients = series.convert(kind=Polynomial).coef.astype(dtype)
        fitted = np.polynomial.polynomial.polyval(q, coefficients)
        if np.max(np.abs(fitted - exact)) <= TOLERANCE[dtype.name] * np.max(np.abs(exact)):
            return rate, np.pad(coefficients, (0, degree + 1 - coefficients.size))
    return None


def tabulate(profile: Function, span: float, dtype: np.dtype) -> tuple[float, Array]:
    """Return the scale of the coordinate and the coefficients of the cells on ``[0, span]``.

    A cell is a line in ``v`` (float32) or a cubic in ``v - start`` (float64) through values inside
    it; the number of octaves is the one with the least error measured between those values. A
    profile with a kink, or very narrow for the span, warns of the error that is left.
    """
    candidates = [_cells(profile, span, octaves, dtype) for octaves in range(1, MOST_OCTAVES + 1)]
    error, scale, cells = min(candidates, key=lambda candidate: candidate[0])
    if not np.isfinite(error):
        raise ValueError(f"the profile is not finite on [0, {span:g}]")
    if error > 10 * TOLERANCE[dtype.name]:
        warnings.warn(
            f"the profile is tabulated with an error of {error:.1e} on [0, {span:g}]: it has a "
            "kink or is narrow there; a compiled op of its own would be exact",
            UserWarning,
            stacklevel=2,
        )
    return scale, cells


def _cells(
    profile: Function, span: float, octaves: int, dtype: np.dtype
) -> tuple[float, float, Array]:
    """Return the error of this number of octaves, the scale and the coefficients."""
    # The last cell begins at 2^octaves, so that rounding at the far end stays inside the cells.
    scale = (2.0**octaves - 1) / span if span > 0 else 1.0
    per_octave = core.table_cells_per_octave
    steps = np.arange(octaves * per_octave + 1)
    size = 2.0 ** (steps // per_octave) / per_octave
    start = 2.0 ** (steps // per_octave) + (steps % per_octave) * size

    degree = 1 if dtype == np.float32 else 3
    nodes = (1 - np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))) / 2  # Chebyshev's
    between = np.linspace(0, 1, 2 * degree + 1)

    def values(at: Array) -> Array:
        return profile((start[:, None] + size[:, None] * at - 1) / scale).astype(np.float64)

    cells = values(nodes) @ np.linalg.inv(np.vander(nodes, increasing=True)).T
    fitted = cells @ np.vander(between, degree + 1, increasing=True).T
    exact = values(between)
    error = float(np.max(np.abs(fitted - exact)) / max(np.max(np.abs(exact)), TINY))
    cells /= size[:, None] ** np.arange(degree + 1)
    if degree == 1:
        cells[:, 0] -= cells[:, 1] * start
    return error, scale, cells.ravel()
