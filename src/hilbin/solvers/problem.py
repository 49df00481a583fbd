r"""The dual problem of a kernel machine, and the certified result of solving it.

A kernel machine scores a row by :math:`f(x) = \sum_j c_j k(x_j, x) + b`. Its *signed* coefficients
solve

.. math::
    \min_c \; \tfrac12 c^\top (K + B 1 1^\top) c + \tfrac12 \sum_i D_i c_i^2 - t^\top c
    + \epsilon \|c\|_1, \qquad l_i \le c_i \le u_i,

where the sum of the coefficients may be given as well, :math:`\sum_i c_i = s`. The problem is the
dual of :math:`\min_f \tfrac12 \|f\|^2 + \sum_i \ell_i(f(x_i))` with the losses

.. math:: \ell_i(z) = \max_{l_i \le c \le u_i} (t_i - z) c - \tfrac12 D_i c^2 - \epsilon |c| .

A classifier has :math:`t = y` and :math:`c_i` between 0 and :math:`y_i C_i` (hinge loss), or no
bound and :math:`D_i = 1 / 2 C_i` (squared hinge loss). A regression has :math:`t = y` and
:math:`|c_i| \le C_i`. The intercept :math:`b` is either penalized, :math:`b = B \sum_i c_i`, or
free: then it is the multiplier of the given sum, and the primal problem has the term :math:`s b`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Self

import numpy as np

from hilbin._arrays import Array
from hilbin._core import core

Callback = Callable[[int, float], bool]
ROUNDING = 1e-12  # share of an objective; look-up tables drift by as much
FAR = 1e30  # kernel values beyond this, or below its inverse, are divided by a power of 2


@dataclass(frozen=True)
class Result:
    """A solution and its certificate.

    Parameters
    ----------
    coef : array
        Coefficient of every row (and class): the score of ``x`` is ``sum_i coef_i k(x_i, x)``.
    dual : array
        The dual variables.
    objective : float, or array with a number for every task
        Value of the primal problem at this solution.
    gap : float or array
        How far the objective can be above the optimum: primal minus dual value, in float64.
    n_iter : int
        Number of iterations; the solver says of what.
    converged : bool
        Whether the tolerance was reached.
    intercept : float or array
        The number that is added to every score.
    stalled : bool
        Whether the descent ended because its steps no longer changed anything but rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers.gram import gram_rows
    >>> from hilbin.solvers.icd import icd
    >>> from hilbin.solvers.problem import Problem
    >>> problem = Problem(np.array([1.0, -1.0]), low=np.array([0, -1]), high=np.array([1, 0]))
    >>> result = icd(gram_rows(np.eye(2)), problem)
    >>> result.converged, bool(result.gap < 1e-9)
    (True, True)
    """

    coef: Array
    dual: Array
    objective: float
    gap: float
    n_iter: int
    converged: bool
    intercept: float | Array = 0.0
    stalled: bool = False


@dataclass(frozen=True)
class Problem:
    """The dual problem of a kernel machine, in signed coefficients.

    Parameters
    ----------
    linear : array of shape (n,)
        The linear term ``t``: labels 1 and -1, or the targets of a regression.
    low, high : float or array of shape (n,)
        Bounds of the coefficients.
    diagonal : float or array of shape (n,), default=0.0
        The numbers ``D``, which are added to the diagonal of the kernel.
    epsilon : float, default=0.0
        Half the width of the tube in which a regression has no loss.
    constant : float, default=0.0
        The number ``B``, which is added to every kernel value: a penalized intercept.
    total : float, optional
        The sum of the coefficients; its multiplier is a free intercept.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import Problem
    >>> y, C = np.array([1.0, -1.0]), 2.0  # a classifier with hinge loss
    >>> problem = Problem(y, np.minimum(0, C * y), np.maximum(0, C * y))
    >>> problem.losses(np.array([0.5, 0.5]))
    array([1., 3.])
    """

    linear: Array
    low: Any  # this and the others are arrays of shape (n,) from here on
    high: Any
    diagonal: Any = 0.0
    epsilon: float = 0.0
    constant: float = 0.0
    total: float | None = None

    def __post_init__(self) -> None:
        n = np.size(self.linear)
        for name in ("linear", "low", "high", "diagonal"):
            value = np.asarray(getattr(self, name), np.float64)
            if value.shape not in ((), (n,)):
                raise ValueError(f"{name} has the shape {value.shape}, but there are {n} rows")
            whole = value if value.shape else np.full(n, value)
            object.__setattr__(self, name, np.ascontiguousarray(whole))

    @property
    def arrays(self) -> tuple[Array, Array, Array, Array]:
        """Linear terms, bounds and diagonal, as the core takes them."""
        return self.linear, self.low, self.high, self.diagonal

    def restricted(self, which: Array) -> Self:
        """Return the problem of some of the rows; the total is that of all rows."""
        names = ("linear", "low", "high", "diagonal")
        return replace(self, **{name: getattr(self, name)[which] for name in names})

    def without(self, left_out: Array) -> Self:
        """Return the problem in which the marked rows have no coefficient; they stay in place."""
        low, high = (np.where(left_out, 0.0, bound) for bound in (self.low, self.high))
        return replace(self, low=low, high=high)

    def gains(self, coef: Array, gradient: Array) -> tuple[Array, Array]:
        """Return how much a unit of change up, and of change down, gains in every row.

        The gradient is that of the objective without ``epsilon |c|``. A change that the bounds
        forbid gains minus infinity.
        """
        slope_up = gradient + np.where(coef >= 0, self.epsilon, -self.epsilon)
        slope_down = gradient + np.where(coef > 0, self.epsilon, -self.epsilon)
        return (
            np.where(coef < self.high, -slope_up, -np.inf),
            np.where(coef > self.low, slope_down, -np.inf),
        )

    def losses(self, scores: Array) -> Array:
        """Return the loss of every row at these scores."""
        out = np.empty(self.linear.size)
        scores = np.ascontiguousarray(scores, np.float64)
        core.losses(*self.arrays, scores, float(self.epsilon), out)
        return out

    def certified(
        self,
        coef: Array,
        products: Array,
        intercept: float,
        n_iter: int,
        converged: bool,
        stalled: bool = False,
    ) -> Result:
        """Return the result for coefficients, ``products = K @ coef``, and its duality gap.

        A gap that is rounding makes any solution one that has converged.
        """
        upper, gap = self._values(coef, products, intercept, np.sum)
        of_total = (self.total or 0.0) * intercept
        upper, gap = upper + of_total, gap + of_total
        reached = converged or gap <= ROUNDING * abs(upper)
        found = float(upper), float(gap), n_iter, bool(reached), float(intercept), stalled
        return Result(coef, coef, *found)

    def certified_blocks(
        self, coef: Array, products: Array, intercepts: Array, n_iter: Array, converged: Array,
        offsets: Array,
    ) -> list[Result]:  # fmt: skip
        """Return the results of problems that stand one after the other in the arrays of this one.

        Problem ``k`` has the rows from ``offsets[k]`` to ``offsets[k + 1]``; totals are 0.
        """
        by_row, sums = (
            np.repeat(intercepts, np.diff(offsets)),
            partial(np.add.reduceat, indices=offsets[:-1]),
        )
        upper, gap = self._values(coef, products, by_row, sums)
        reached = converged | (gap <= ROUNDING * np.abs(upper))
        columns = upper, gap, n_iter, reached, intercepts
        rows = zip(*(column.tolist() for column in columns), strict=True)
        parts = (coef[b:e] for b, e in pairwise(offsets.tolist()))
        return [Result(part, part, *row) for part, row in zip(parts, rows, strict=True)]

    def _values(
        self, coef: Array, products: Array, intercept: Any, total: Callable[[Array], Any]
    ) -> tuple[Any, Any]:
        """Return the primal value and the gap, without the term of a given total.

        ``total`` adds up numbers of rows.
        """
        sums = total(coef)
        squared_norm = total(coef * products) + self.constant * sums * sums
        quadratic = squared_norm + total(self.diagonal * coef * coef)
        lower = total(self.linear * coef - self.epsilon * np.abs(coef)) - 0.5 * quadratic
        losses = self.losses(products + intercept)
        upper = 0.5 * squared_norm + total(losses)
        return upper, upper - lower

    def divided(self, unit: float) -> Self:
        """Return the problem for a kernel whose values are divided by ``unit``.

        Its coefficients are ``unit`` times as large, unless they have a given sum; then all else is
        divided by the unit.
        """
        if self.total:
            return replace(self, linear=self.linear / unit, epsilon=self.epsilon / unit)
        with np.errstate(over="ignore"):  # an infinite bound is none
            bounds = {"low": self.low * unit, "high": self.high * unit}
        constant = self.constant / unit
        return replace(self, **bounds, diagonal=self.diagonal / unit, constant=constant)

    def multiplied(self, result: Result, unit: float) -> Result:
        """Return the solution of this problem from that of the divided one."""
        if self.total:
            names = ("objective", "gap", "intercept")
            return replace(result, **{name: getattr(result, name) * unit for name in names})
        by_unit = {n: getattr(result, n) / unit for n in ("coef", "dual", "objective", "gap")}
        return replace(result, **by_unit)


def unit_of(norms: Array) -> float:
    """Return what kernel values are divided by: 1, or a power of 2 if they are far from 1."""
    most = float(np.max(norms, initial=0.0))
    if most == 0 or 1 / FAR <= most <= FAR:
        return 1.0
    wanted = FAR if most > FAR else 1 / FAR
    return float(2.0 ** (np.frexp(most)[1] - np.frexp(wanted)[1]))


@contextmanager
def interruptible(callback: Callback | None) -> Iterator[None]:
    """Turn a keyboard interrupt into the call ``callback(-1, nan)``, if there is a callback."""
    try:
        yield
    except KeyboardInterrupt:
        if callback is None:
            raise
        callback(-1, np.nan)
