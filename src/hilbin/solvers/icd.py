r"""ICD: dual coordinate descent for kernel machines with a penalized intercept.

**Problem.** A :class:`Problem` without a given sum of the coefficients:

.. math::
    \min_c \; \tfrac12 c^\top (K + B 1 1^\top) c + \tfrac12 \sum_i D_i c_i^2 - t^\top c
    + \epsilon \|c\|_1, \qquad l_i \le c_i \le u_i .

**Algorithm.** One :math:`c_i` at a time is set to its best value. That takes the score
:math:`f(x_i) = \sum_j c_j K_{ij}` and a change of what scores are read from. For the histogram
intersection kernel these are look-up tables that hold all of ``c``: both take a few steps per
feature, whatever the number of rows. Rows that will stay at a bound are left out of the sweeps,
more eagerly than in LIBLINEAR until all are checked for the first time, and all are checked in the
end.

**Stopping rules.** LIBLINEAR's: the projected gradients of a whole sweep lie within ``tol`` of each
other and of zero. They are those of :math:`|c_i|` in rows whose :math:`c_i` cannot be positive. Or
the duality gap is at most the share ``gap_tol`` of the objective. It is a sum over the rows,

.. math:: \sum_i \; \max_{l_i \le a \le u_i} g_i(a) - g_i(c_i), \qquad
    g_i(a) = (t_i - f(x_i)) a - \tfrac12 D_i a^2 - \epsilon |a|,

in which a row that is at its best adds nothing. A sweep adds up the terms of the rows that it
visits; once their sum is small enough, the gap of all rows is computed from ``c`` alone, in
float64, and the sweeps go on with all rows if it is too large. A descent is stalled, and ends, if a
sweep over all rows changes no coefficient. Kernel values far from 1 are divided by a power of 2
first.

**References.** J. Wu, *A Fast Dual Method for HIK SVM Learning*, ECCV 2010. C.-J. Hsieh et al.,
*A Dual Coordinate Descent Method for Large-scale Linear SVM*, ICML 2008. C.-H. Ho and C.-J. Lin,
*Large-scale Linear Support Vector Regression*, JMLR 2012.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from hilbin._arrays import Array
from hilbin._core import core
from hilbin.solvers.problem import Callback, Problem, Result, interruptible, unit_of

# Share of the largest violation at which rows are left out before the first check of all rows,
# which comes after so many sweeps at the latest.
EAGER, EAGER_SWEEPS = 0.3, 40
FLOAT32_TOL = 1e-3  # from here on the rounding of float32 is far below the tolerance
# A row as the compiled sweep reads it: a cache line, because the order of visits is random. Rows
# whose coefficient cannot be positive have the sign -1, and come with their numbers times it.
NAMES = ("sign", "linear", "low", "high", "diagonal", "curvature", "coef", "unused")
SAMPLE = np.dtype([(name, np.float64) for name in NAMES])
COEF = NAMES.index("coef")
# The core's sweep: takes its arrays and limits, and returns the number of rows that are still
# active, the highest and the lowest projected gradient, and the row that is missing or -1.
CoreSweep = Callable[..., tuple[int, float, float, int]]


class Rows(Protocol):
    """A kernel matrix on which a descent works: look-up tables or a Gram matrix."""

    norms: Array

    def start(self, coef: Array, dtype: Any, gains: Callable[[Array], Any]) -> CoreSweep:
        """Return a function that runs one sweep, from a state that holds ``coef``.

        ``gains(scores)`` tells how much every row gains if its coefficient grows, and if it
        shrinks: rows that are computed as they are needed ask which will be next.
        """

    def scores(self, coef: Array) -> Array:
        """Return ``K @ coef`` in float64, for a vector or columns of coefficients."""

    def divided(self, unit: float) -> "Rows":
        """Return the matrix over a number."""


class ClassRows(Rows, Protocol):
    """A kernel matrix on which a descent can have a state for every class."""

    def start_classes(self, coef: Array, dtype: Any) -> CoreSweep:
        """Return a function that runs one sweep, with one state per column of ``coef``."""

    def divided(self, unit: float) -> "ClassRows":
        """Return the matrix over a number."""


def icd(
    rows: Rows,
    problem: Problem,
    *,
    tol: float = 0.1,
    gap_tol: float | None = None,
    max_iter: int = 1000,
    start: Array | None = None,
    seed: int = 0,
    callback: Callback | None = None,
    dtype: Any = None,
    certify: bool = True,
) -> Result:
    """Solve the dual of a machine with a penalized intercept by coordinate descent.

    Parameters
    ----------
    rows : LookupRows, or from gram_rows
        The kernel matrix, without ``problem.constant``.
    problem : Problem
        The problem; its ``total`` must be ``None``.
    tol : float, default=0.1
        Largest spread of the projected gradients of a sweep.
    gap_tol : float, optional
        Largest share of the duality gap in the objective. By default it is the square of ``tol``,
        and none for a ``tol`` below 1e-3, where rounding would decide.
    max_iter : int, default=1000
        Largest number of sweeps.
    start : array of shape (n,), optional
        Coefficients to start from; values outside the bounds are moved to them.
    seed : int, default=0
        Random seed of the order in which rows are visited.
    callback : callable, optional
        Called after every sweep with the number of sweeps and the spread; false ends the descent.
        A keyboard interrupt ends it as well: the coefficients so far are returned, not converged,
        after a last call with -1.
    dtype : dtype, optional
        Type of the look-up tables; by default float32 unless ``tol`` is below 1e-3.
    certify : bool, default=True
        Whether to compute the objective and the gap, which takes about as long as a sweep; else
        they are NaN, and no descent ends by its gap.

    Returns
    -------
    result : Result
        ``n_iter`` counts sweeps.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import Problem, gram_rows, icd
    >>> K = np.minimum.outer([1.0, 2.0, 5.0, 6.0], [1.0, 2.0, 5.0, 6.0])
    >>> y = np.array([-1.0, -1.0, 1.0, 1.0])
    >>> problem = Problem(y, np.minimum(0, y), np.maximum(0, y), constant=1.0)
    >>> result = icd(gram_rows(K), problem, tol=1e-6)
    >>> np.sign(K @ result.coef + result.intercept)
    array([-1., -1.,  1.,  1.])
    """
    if problem.total is not None:
        raise ValueError("icd has no free intercept: problem.total must be None")
    if (unit := unit_of(rows.norms)) != 1:
        start = None if start is None else start * unit
        parts = rows.divided(unit), problem.divided(unit)
        given: dict[str, Any] = {"tol": tol, "gap_tol": gap_tol, "max_iter": max_iter}
        given |= {"start": start, "seed": seed, "callback": callback, "dtype": dtype}
        return problem.multiplied(icd(*parts, certify=certify, **given), unit)
    if gap_tol is None:
        gap_tol = tol**2 if tol >= FLOAT32_TOL else 0.0
    gap_tol = gap_tol if certify else 0.0
    dtype = table_dtype(tol) if dtype is None else dtype
    descent = _Descent(rows, problem, start, seed, dtype, gap_tol)
    given = {"callback": callback, "near": descent.is_near if gap_tol > 0 else None}
    course = repeat(descent.sweep, descent.coefs, descent.free, EAGER, tol, max_iter, **given)
    return descent.result(certify, *course)


class _Descent:
    """The state of a descent."""

    def __init__(
        self,
        rows: Rows,
        problem: Problem,
        start: Array | None,
        seed: int,
        dtype: Any,
        gap_tol: float,
    ) -> None:
        self.rows, self.problem, self.gap_tol = rows, problem, gap_tol
        self.lines = packed(problem, rows.norms, start)
        coef = unpacked(self.lines)
        self.totals = np.array([coef.sum(), np.inf, 0.0])  # as the core has them
        self.known: Result | None = None
        self.smallest = np.inf  # gap of a sweep after which that of all rows was too large
        self.lower = 0.0  # dual value of the start
        if gap_tol > 0 and coef.any():
            found = self._certified(coef, 0, False)
            self.lower = found.objective - found.gap
        self.core_sweep = rows.start(coef, dtype, self._gains)
        self.order, self.free = visited(problem.low < problem.high)
        self.random = start_random(seed)

    def sweep(self, active: int, above: float, below: float) -> tuple[int, float, float, int]:
        """Visit the active rows."""
        epsilon, constant = float(self.problem.epsilon), float(self.problem.constant)
        limits = active, above, below, epsilon, constant
        return self.core_sweep(self.lines, self.order, *limits, self.totals, self.random)

    def coefs(self) -> Array:
        """Return a copy of the coefficients, with the signs of the compiled sweep."""
        return self.lines[:, COEF].copy()

    def is_near(self) -> bool | None:
        """Tell whether the gap is small enough; None, if that was not worth a look."""
        _, gap, gain = self.totals
        if not gap <= min(self.gap_tol * (self.lower + gain), 0.5 * self.smallest):
            return None
        self.known, self.smallest = self._certified(unpacked(self.lines), 0, False), gap
        return bool(self.known.gap <= self.gap_tol * self.known.objective)

    def result(self, certify: bool, n_iter: int, converged: bool, stalled: bool) -> Result:
        """Return the coefficients as they are now, with their certificate."""
        coef = unpacked(self.lines)
        if not certify:
            intercept = float(self.problem.constant) * float(coef.sum())
            return Result(coef, coef, np.nan, np.nan, n_iter, converged, intercept, stalled)
        if self.known is not None and np.array_equal(self.known.coef, coef):
            return replace(self.known, n_iter=n_iter, converged=converged, stalled=stalled)
        return self._certified(coef, n_iter, converged, stalled)

    def _certified(self, coef: Array, *course: Any) -> Result:
        intercept = float(self.problem.constant) * float(coef.sum())
        return self.problem.certified(coef, self.rows.scores(coef), intercept, *course)

    def _gains(self, scores: Array) -> tuple[Array, Array]:
        problem, coef = self.problem, unpacked(self.lines)
        constant = float(problem.constant) * self.totals[0]
        gradient = scores + constant - problem.linear + problem.diagonal * coef
        up, down = problem.gains(coef, gradient)
        turned = problem.high <= 0  # a change down lets these coefficients grow
        return np.where(turned, down, up), np.where(turned, up, down)


def visited(free: Array) -> tuple[Array, int]:
    """Return an order of the rows that begins with those that can change, and their number."""
    if free.all():
        return np.arange(free.size, dtype=np.int32), free.size
    order = np.concatenate([np.flatnonzero(free), np.flatnonzero(~free)])
    return order.astype(np.int32), int(np.count_nonzero(free))


def packed(problem: Problem, norms: Array, start: Array | None = None) -> Array:
    """Return the rows of the problem as the compiled sweep reads and changes them, in lines."""
    lines = np.empty((problem.linear.size, len(NAMES)))
    first = np.empty(0) if start is None else np.ascontiguousarray(start, np.float64)
    norms = np.ascontiguousarray(norms, np.float64)
    core.pack_samples(*problem.arrays, norms, float(problem.constant), first, lines)
    return lines


def unpacked(lines: Array) -> Array:
    """Return the coefficients of packed rows."""
    samples = lines.view(SAMPLE)[:, 0]
    return samples["sign"] * samples["coef"]


def repeat(
    sweep: Callable[[int, float, float], tuple[int, float, float, int]],
    coefs: Callable[[], Array],
    n: int,
    share: float,
    tol: float,
    max_iter: int,
    callback: Callback | None,
    near: Callable[[], bool | None] | None = None,
) -> tuple[int, bool, bool]:
    """Run sweeps until they converge; return their number, whether they did, and if they stalled.

    ``sweep(active, above, below)`` visits the active rows, leaves out those whose gradient lies
    beyond the limits, and returns how many are left and the highest and lowest gradient. The
    limits are the ``share`` of those of the sweep before. ``coefs()`` are the coefficients.
    ``near()`` tells whether the solution is good enough; all rows are visited if it is not, but may
    seem so.
    """
    active, above, below = n, np.inf, -np.inf
    n_iter, converged, stalled = 0, False, False
    with interruptible(callback):
        while n_iter < max_iter:
            before = coefs() if above == np.inf and below == -np.inf else None
            active, highest, lowest, _ = sweep(active, above, below)
            n_iter += 1
            small = highest - lowest <= tol and highest <= tol and lowest >= -tol
            converged = small and active == n
            stalled = not converged and before is not None and np.array_equal(before, coefs())
            go_on = callback is None or callback(n_iter, highest - lowest)
            seems = None if near is None or converged or not go_on else near()
            converged = converged or seems is True
            if converged or stalled or not go_on:
                break
            if small or seems is False or (share < 1 and n_iter >= EAGER_SWEEPS):
                active, above, below, share = n, np.inf, -np.inf, 1.0
            else:
                above = share * highest if highest > 0 else np.inf
                below = share * lowest if lowest < 0 else -np.inf
    return n_iter, converged, stalled


def table_dtype(tol: float) -> Any:
    """Return the type of look-up tables that is precise enough for the tolerance."""
    return np.float32 if tol >= FLOAT32_TOL else np.float64


def start_random(seed: int) -> Array:
    """Return the state of the core's generator: any number but zero."""
    return np.array([(seed * 0x9E3779B97F4A7C15 + 0x2545F4914F6CDD1D) % 2**64 or 1], np.uint64)
