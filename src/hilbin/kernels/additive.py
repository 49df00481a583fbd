"""Additive kernels: one even function of one variable, the profile.

``K(x, y) = sum_d k(x_d, y_d)`` with ``k(a, b) = r(a) r(b) P(|u(a) - u(b)|)``: coordinate ``u``,
weight ``r``, profile ``P``. Homogeneous kernels, ``k(ca, cb) = c^h k(a, b)``, have ``u = log``,
``r = a^(h/2)``; stationary ones have ``u = a``, ``r = 1`` (Vedaldi and Zisserman, *Efficient
Additive Kernels via Explicit Feature Maps*, 2012).

From the profile alone the Gram matrix runs compiled: ``P`` is tabulated over the span of the data.
A kernel may name a compiled function of its own (``op``), which
:func:`hilbin.kernels.check_kernel` compares with the profile.
"""

from collections.abc import Callable
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from hilbin._arrays import Array, Matrix, row_sums
from hilbin.kernels._pairwise import Op, pairwise_sum, sums_against
from hilbin.kernels._profile import profile_op
from hilbin.kernels.base import Kernel


class AdditiveKernel(Kernel):
    """A sum over bins; a subclass gives ``coordinate``, ``weight`` and ``profile``.

    Most derive from :class:`HomogeneousKernel` or :class:`StationaryKernel` and give the profile
    alone.
    """

    op: ClassVar[Op | None] = None

    def coordinate(self, x: Array) -> Array:
        """``u(x)``, finite wherever the weight is not 0."""
        raise NotImplementedError

    def value(self, u: Array) -> Array:
        """The ``x`` with ``u(x) = u``; explicit maps need it, Gram matrices do not."""
        raise NotImplementedError

    def weight(self, x: Array) -> Array:
        """``r(x)``."""
        raise NotImplementedError

    def profile(self, t: Array) -> Array:
        """``P(t)`` for ``t >= 0``."""
        raise NotImplementedError

    def _compiled(self) -> Op | None:
        return self.op

    def _gram(self, X: Matrix, Y: Matrix | None, n_jobs: int | None) -> Array:
        return pairwise_sum(self._compiled() or self.tabulated(X, Y), X, Y, n_jobs)

    def _against(self, Y: Matrix, n_jobs: int | None) -> Callable[[Matrix], Array]:
        op = self._compiled()  # a table spans the values of both sides
        return super()._against(Y, n_jobs) if op is None else sums_against(op, Y, n_jobs)

    def _diag(self, X: Matrix) -> Array:
        at_zero = float(self.profile(np.zeros(1))[0])
        return at_zero * row_sums(X, lambda x: np.square(self.weight(x)))

    def tabulated(self, X: Matrix, Y: Matrix | None = None) -> Op:
        """The op that computes the profile by numbers found over the span of the coordinates."""
        spans = [self._span(Z) for Z in (X, Y) if Z is not None]
        low, high = min(s[0] for s in spans), max(s[1] for s in spans)
        middle = (low + high) / 2

        def parts(x: Array) -> tuple[Array, Array]:
            weight = self.weight(x)
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(weight == 0, 0, self.coordinate(x) - middle), weight

        vanishes = bool(self.weight(np.zeros(1))[0] == 0)
        return profile_op(self.profile, parts, high - low, X.dtype, vanishes)

    def _span(self, X: Matrix) -> tuple[float, float]:
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
    """``k(ca, cb) = c^h k(a, b)`` for ``a, b, c >= 0``; a subclass gives the profile.

    ``P(t) = k(e^(t/2), e^(-t/2))``, so that ``k(a, b) = (ab)^(h/2) P(|log a - log b|)``.
    """

    nonnegative = True

    @property
    def degree(self) -> float:
        """``h``."""
        return 1.0

    def coordinate(self, x: Array) -> Array:
        """``log x``."""
        return np.log(x)

    def value(self, u: Array) -> Array:
        """``e^u``."""
        return np.exp(u)

    def weight(self, x: Array) -> Array:
        """``x^(h/2)``."""
        return np.sqrt(x) if self.degree == 1 else np.power(x, self.degree / 2)


class StationaryKernel(AdditiveKernel):
    """``k(a, b) = P(|a - b|)``; a subclass gives the profile."""

    def coordinate(self, x: Array) -> Array:
        """``x``."""
        return x

    def value(self, u: Array) -> Array:
        """``u``."""
        return u

    def weight(self, x: Array) -> Array:
        """1."""
        return np.ones_like(x)
