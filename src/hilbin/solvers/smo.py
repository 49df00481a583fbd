r"""Sequential minimal optimization: the dual of a kernel machine with a free intercept.

**Problem.** A :class:`Problem` whose coefficients have a given sum, with neither ``diagonal`` nor
``constant``:

.. math::
    \min_c \; \tfrac12 c^\top K c - t^\top c + \epsilon \|c\|_1, \qquad
    l_i \le c_i \le u_i, \quad \textstyle\sum_i c_i = s .

A classifier has :math:`t = y`, :math:`c_i` between 0 and :math:`y_i C_i`, and :math:`s = 0`; a
regression :math:`t = y`, :math:`-C_i \le c_i \le C_i`; a one-class machine :math:`t = 0`,
:math:`0 \le c_i \le 1 / \nu n`, :math:`s = 1`; the smallest ball around the data (SVDD) the same
with :math:`t_i = K_{ii} / 2`. The multiplier of the sum is the intercept.

**Algorithm.** Two coefficients at a time, chosen by second-order information (Fan, Chen and Lin).
Rows that will stay at a bound are left out: once they are many, and as many steps have been made as
take as long as that, the matrix of the others is taken out and solved on its own, and all rows are
checked in the end.

**Stopping rule.** LIBSVM's: no pair of rows violates its conditions by more than ``tol``. The
duality gap is computed in float64, from the last gradient if the rounding of all steps is below a
thousandth of ``tol``, else from ``c`` alone. A descent is stalled, and ends, if
the violation is below the rounding of the largest :math:`K_{ii} c_i`, so that no step can reduce
it. Kernel values far from 1 are divided by a power of 2 first.

**References.** J. Platt, *Fast Training of Support Vector Machines using Sequential Minimal
Optimization*, 1999. R.-E. Fan, P.-H. Chen and C.-J. Lin, *Working Set Selection Using Second Order
Information for Training SVM*, JMLR 2005.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
from joblib import effective_n_jobs

from hilbin._arrays import Array
from hilbin._core import core
from hilbin.parallel import ranges, run
from hilbin.solvers.gram import GramRows
from hilbin.solvers.problem import Callback, Problem, Result, interruptible, unit_of

ROUND = 1000  # steps between two calls of the callback
SHRUNK = 0.5  # share of the rows at which their matrix is taken out
ROUNDING = 1e-12
DRIFT = 1e-3  # share of the tolerance that the rounding of a gradient may be
EPSILON = float(np.finfo(np.float64).eps)
FEW = 500  # rows that are not worth it
ROUNDS_OF_FEW = 20  # of so few rows, before anybody is asked whether to go on
PARTS_PER_THREAD = 4  # of many problems


@dataclass(frozen=True)
class State:
    """Coefficients and the gradient ``K c - t`` of a problem, which the compiled steps change."""

    problem: Problem
    norms: Array
    coef: Array
    gradient: Array

    @cached_property
    def arguments(self) -> tuple[Any, ...]:
        """The arguments of a compiled step that do not describe the matrix."""
        low, high, epsilon = self.problem.low, self.problem.high, float(self.problem.epsilon)
        scratch = np.empty((2, self.coef.size), np.float32)
        return self.coef, self.gradient, low, high, self.norms, scratch, epsilon

    def gains(self) -> tuple[Array, Array]:
        """Return how much a change up, and a change down, gains in every row."""
        return self.problem.gains(self.coef, self.gradient)

    def restricted(self, which: Array) -> Self:
        """Return a copy of the state of some of the rows."""
        arrays = (array[which] for array in (self.norms, self.coef, self.gradient))
        return type(self)(self.problem.restricted(which), *arrays)


class StepRows(Protocol):
    """A Gram matrix on which :func:`smo` works."""

    norms: Array

    def steps(self, state: State, most: int, tol: float) -> tuple[int, float]:
        """Make at most so many steps; return their number and the violation before the last."""

    def scores(self, coef: Array) -> Array:
        """Return ``K @ coef`` in float64, for a vector or columns of coefficients."""

    def price(self, size: int) -> float:
        """Return how many steps take as long as taking out the matrix of so many rows."""

    def restricted(self, which: Array) -> "StepRows":
        """Return the matrix of some of the rows."""

    def divided(self, unit: float) -> "StepRows":
        """Return the matrix over a number."""


@dataclass
class _Course:
    """How far a descent has come, and whether it goes on."""

    tol: float
    max_iter: int
    callback: Callback | None
    n_iter: int = 0
    stopped: bool = False
    stalled: bool = False

    def count(self, steps: int, violation: float) -> None:
        """Count steps, and ask whether to go on."""
        self.n_iter += steps
        if self.n_iter >= self.max_iter:
            self.stopped = True
        if self.callback is not None and not self.callback(self.n_iter, violation):
            self.stopped = True

    def stop_if_stalled(self, steps: int, violation: float, state: State) -> None:
        """Stop where steps change nothing, or what they change is rounding."""
        size = float(np.max(state.norms, initial=0.0)) * float(np.abs(state.coef).max(initial=0.0))
        if not steps or not violation > EPSILON * size:
            self.stalled = self.stopped = True


def smo(
    rows: StepRows,
    problem: Problem,
    *,
    tol: float = 1e-3,
    max_iter: int = 100_000_000,
    start: Array | None = None,
    shrinking: bool = True,
    callback: Callback | None = None,
) -> Result:
    """Solve the dual of a kernel machine by sequential minimal optimization.

    Parameters
    ----------
    rows : LazyRows, or from gram_rows
        The Gram matrix.
    problem : Problem
        The problem; it has a ``total``, and no ``diagonal`` and ``constant``.
    tol : float, default=1e-3
        Largest violation of a pair of rows.
    max_iter : int, default=100_000_000
        Largest number of steps.
    start : array of shape (n,), optional
        Coefficients to start from; moved into the bounds and to the right sum.
    shrinking : bool, default=True
        Whether rows that will stay at a bound are left out for a time.
    callback : callable, optional
        Called every so many steps with their number and the violation; false ends the descent. A
        keyboard interrupt ends it as well: the coefficients so far are returned, not converged,
        after a last call with -1.

    Returns
    -------
    result : Result
        ``n_iter`` counts steps.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import Problem, gram_rows, smo
    >>> x, y = np.array([1.0, 2.0, 5.0, 6.0]), np.array([-1.0, -1.0, 1.0, 1.0])
    >>> K = np.minimum.outer(x, x)
    >>> problem = Problem(y, np.minimum(0, y), np.maximum(0, y), total=0.0)
    >>> result = smo(gram_rows(K), problem, tol=1e-6)
    >>> np.round(K @ result.coef + result.intercept, 4)
    array([-1., -1.,  1.,  1.])
    """
    if problem.total is None or problem.diagonal.any() or problem.constant:
        raise ValueError("smo needs a problem with a total, without diagonal and constant")
    if (unit := unit_of(rows.norms)) != 1:
        start = start if start is None or problem.total else start * unit
        limit = tol / unit if problem.total else tol
        parts = rows.divided(unit), problem.divided(unit)
        given: dict[str, Any] = {"max_iter": max_iter, "shrinking": shrinking, "start": start}
        return problem.multiplied(smo(*parts, tol=limit, callback=callback, **given), unit)
    coef = feasible(np.zeros(problem.linear.size) if start is None else start, problem)
    gradient = -problem.linear + (rows.scores(coef) if coef.any() else 0)
    state = State(problem, rows.norms, coef, gradient)
    course = _Course(tol, max_iter, callback)
    converged = False
    with interruptible(callback):
        converged = _descend(rows, state, course, shrinking)
    off = _rounding(problem, rows.norms, coef, gradient, course.n_iter)
    exact = converged and off <= DRIFT * tol  # an interrupt leaves a gradient behind
    products = state.gradient + problem.linear if exact else rows.scores(coef)
    intercept = float(_intercepts(problem, coef, products - problem.linear, np.zeros(1, int))[0])
    return problem.certified(coef, products, intercept, course.n_iter, converged, course.stalled)


def _rounding(problem: Problem, norms: Array, coef: Array, gradient: Array, steps: int) -> float:
    """Return how far a gradient can be from that of the coefficients after so many steps."""
    largest = float(np.max(norms, initial=0.0)) * float(np.abs(coef).max(initial=0.0))
    sizes = (float(np.abs(part).max(initial=0.0)) for part in (problem.linear, gradient))
    return 4 * EPSILON * steps * max(largest, *sizes)


def feasible(coef: Array, problem: Problem) -> Array:
    """Move coefficients into their bounds, then the first of them until the sum is right."""
    low, high, total = problem.low, problem.high, float(problem.total or 0.0)
    coef = np.clip(np.asarray(coef, np.float64), low, high)
    missing = total - coef.sum()
    if abs(missing) <= ROUNDING * np.abs(coef).sum():
        return coef  # to move a coefficient off its bound by so little helps nobody
    room = high - coef if missing > 0 else coef - low
    if abs(missing) > room.sum() * (1 + 1e-9):
        raise ValueError(f"no coefficients within the bounds have the sum {problem.total}")
    before = np.cumsum(room) - room
    moved = coef + np.sign(missing) * np.clip(abs(missing) - before, 0, room)
    return np.clip(moved, low, high)


def _descend(rows: StepRows, state: State, course: _Course, shrinking: bool) -> bool:
    """Make steps until the tolerance is reached (true) or the course is stopped."""
    n = state.coef.size
    since, patience = 0, 1
    while not course.stopped:
        most = min(ROUND, course.max_iter - course.n_iter)
        done, violation = rows.steps(state, most, course.tol)
        course.count(done, violation)
        if violation <= course.tol:
            return True
        course.stop_if_stalled(done, violation, state)
        since += done
        if not shrinking or n < FEW or since < ROUND:
            continue
        part = np.flatnonzero(_moving(state))
        if part.size <= SHRUNK * n and since >= patience * rows.price(part.size):
            _descend_part(rows, part, state, course)
            since, patience = 0, 2 * patience
    return False


def _descend_part(rows: StepRows, part: Array, state: State, course: _Course) -> None:
    """Make steps with some of the rows, on their own matrix."""
    inner = state.restricted(part)
    change = np.zeros(state.coef.size)
    try:
        _descend(rows.restricted(part), inner, course, True)
    finally:  # an interrupt loses nothing
        change[part] = inner.coef - state.coef[part]
        state.coef[part] = inner.coef
    state.gradient[:] += rows.scores(change)


def _moving(state: State) -> Array:
    """Return which rows can take part in a step, unless the gradients change a lot."""
    up, down = state.gains()
    return (up >= -down.max()) | (down >= -up.max())


def smo_blocks(
    rows: GramRows,
    problem: Problem,
    which: Array,
    offsets: Array,
    *,
    tol: float = 1e-3,
    max_iter: int = 100_000_000,
    exact: tuple[float, int, int] | None = None,
    n_jobs: int | None = None,
) -> list[Result] | None:
    """Solve many problems of few rows, each on a part of one Gram matrix, in compiled calls.

    Block ``k`` is the problem of the rows ``which[offsets[k]:offsets[k + 1]]``, whose numbers stand
    there in the arrays of ``problem``. What has not converged after some thousand steps, which
    take milliseconds, is returned as it is, so that :func:`smo` can go on from there.

    Parameters
    ----------
    rows : GramRows
        The Gram matrix, dense.
    problem : Problem
        All problems one after the other; the total of every one is 0.
    which : array of int
        Rows of the matrix.
    offsets : array of int
        Where blocks begin, and where the last one ends; none is empty.
    tol, max_iter : float, int
        As in :func:`smo`.
    exact : (float, int, int), optional
        Tolerance and limit of a second descent of what has converged, and the most rows for it.
    n_jobs : int, optional
        Threads, which share the blocks.

    Returns
    -------
    results : list of Result, or None
        None if kernel values are so far from 1 that :func:`smo` must divide them.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import Problem, gram_rows
    >>> from hilbin.solvers.smo import smo_blocks
    >>> x, which = np.array([1.0, 2.0, 5.0]), np.array([0, 2, 1, 2])
    >>> y = np.array([-1.0, 1.0, -1.0, 1.0])
    >>> problem = Problem(y, np.minimum(0, y), np.maximum(0, y), total=0.0)
    >>> first, second = smo_blocks(
    ...     gram_rows(np.minimum.outer(x, x)), problem, which, np.array([0, 2, 4])
    ... )
    >>> first.coef, second.coef
    (array([-0.5,  0.5]), array([-0.66666667,  0.66666667]))
    """
    if problem.total != 0 or problem.diagonal.any() or problem.constant:
        raise ValueError("smo_blocks needs problems of total 0, without diagonal and constant")
    if unit_of(rows.norms) != 1:
        return None
    which, offsets = np.ascontiguousarray(which, np.int32), np.ascontiguousarray(offsets, np.int64)
    sizes = np.diff(offsets)
    coef, gradient = np.zeros(which.size), -problem.linear
    # as many for more rows as take as long; who goes on with the whole matrix loses no copies
    most = np.clip(ROUNDS_OF_FEW * ROUND * FEW // sizes, ROUND, ROUNDS_OF_FEW * ROUND)
    limits = np.minimum(np.where(sizes < max(FEW, len(rows.gram)), most, ROUND), max_iter)
    bounds = np.maximum(np.abs(problem.low), np.abs(problem.high))
    off = _rounding(problem, rows.norms, bounds, gradient, int(limits.max(initial=0)))
    summed = exact is not None or not off <= DRIFT * tol
    products = np.zeros(which.size if summed else 0)
    steps, violations = np.zeros(sizes.size, np.int64), np.full(sizes.size, np.inf)

    def descend(limits: Array, least: float, steps: Array, violations: Array) -> None:
        state = coef, gradient, products, problem.low, problem.high, steps, violations
        given = rows.gram, which, offsets, limits, *state, float(problem.epsilon), least
        some = max(1, -(-sizes.size // (PARTS_PER_THREAD * effective_n_jobs(n_jobs))))
        run(lambda b, e: core.smo_blocks(*given, b, e), ranges(sizes.size, some), n_jobs)

    descend(limits, tol, steps, violations)
    converged = violations <= tol
    if exact is not None and (again := converged & (sizes <= exact[2])).any():
        np.subtract(products, problem.linear, out=gradient)
        descend(np.where(again, exact[1], 0), exact[0], np.empty_like(steps), violations)
    products = products if summed else gradient + problem.linear
    intercepts = _intercepts(problem, coef, products - problem.linear, offsets[:-1])
    return problem.certified_blocks(coef, products, intercepts, steps, converged, offsets)


def _intercepts(problem: Problem, coef: Array, gradient: Array, begins: Array) -> Array:
    """Return the multipliers of the sums of blocks: the means of the free rows', else the middles
    of the rest."""
    up, down = problem.gains(coef, gradient)
    free = up == -down
    count = np.add.reduceat(free, begins, dtype=np.intp)
    sums = np.add.reduceat(np.where(free, up, 0.0), begins)
    highest, lowest = np.maximum.reduceat(up, begins), -np.maximum.reduceat(down, begins)
    with np.errstate(invalid="ignore"):
        middles = (
            np.where(np.isfinite(highest), highest, lowest)
            + np.where(np.isfinite(lowest), lowest, highest)
        ) / 2
    for k in np.flatnonzero(~np.isfinite(middles)):  # without ends nothing can move
        middles[k] = np.median(-np.split(gradient, begins[1:])[k])
    return np.where(count > 0, sums / np.maximum(count, 1), middles)
