r"""Cutting planes for regularized risks, with any inner product.

**Problem.** For every task, over :math:`v` in the range of :math:`K`,

.. math:: \min_v \; J(v) = \frac\lambda2 v^\top K^+ v + L(v), \qquad L \text{ convex.}

An oracle gives the value of :math:`L` and a subgradient :math:`-a` at a point. Each is a plane
:math:`b - a^\top v` below :math:`L` that touches it there, so :math:`b = L(v) + a^\top v`. The
highest of the planes :math:`A = (a_1, \dots, a_t)` is a model of :math:`L`, and the least value of
the model with the regularizer is a lower bound:

.. math:: \min J \ge
          \max_{\alpha \ge 0, \, \sum \alpha = 1} b^\top \alpha - \tfrac12 \alpha^\top H \alpha,
          \qquad H = A^\top K A / \lambda, \qquad v = K A \alpha / \lambda .

There :math:`\lambda v^\top K^+ v = \alpha^\top H \alpha`, so the inverse of :math:`K` is never
needed, and of the planes only :math:`K A`: one product with :math:`K` for each.

**Algorithm.** A pass over the data evaluates the risk along the line from the best point so far to
the optimum of the model. The best of a few points on the line is the new best point, and a plane is
taken a little beyond the one that was best in the last pass. This takes about half the passes that
planes at the optimum of the model take. Tasks share the pass; one that has converged leaves it.
Planes that have not counted for 20 rounds are dropped. Lines may also choose their steps from an
estimate of the risk that costs no pass, as :class:`~hilbin.solvers.StructuredRisk` does.

**Bounds instead of values.** An oracle may know the risk only between two numbers. The upper one is
its value; the lower one is the height of its plane at the point, which must be below the risk
everywhere. The gap is then right, and counts what the oracle does not know.

The dual problem of the planes is solved by an active set method
(:func:`~hilbin.solvers.simplex.maximize_on_simplex`), from where it ended in the last pass.

**The smaller space.** With :math:`n` rows :math:`Z` of :math:`D > n` features,
:math:`v = K Z^\top w` has the scores :math:`s = G w` with :math:`G = Z K Z^\top`, and
:math:`v^\top K^+ v = w^\top G w = s^\top G^+ s`. So the scores solve a problem of the same form,
with :math:`G` for :math:`K` and a risk that costs no pass. A product with :math:`G` is one pass for
the gradient and one for scores, as many as before, but planes have :math:`n` numbers instead of
:math:`D`.

**Stopping rule.** The best value is within ``tol`` of the bound, relative to the value. A task is
stalled, and leaves, if neither has changed for 50 passes.

**References.** C. H. Teo et al., *Bundle Methods for Regularized Risk Minimization*, JMLR 2010.
V. Franc and S. Sonnenburg, *Optimized Cutting Plane Algorithm for Large-Scale Risk Minimization*,
JMLR 2009. A. Vedaldi and A. Zisserman, *Sparse Kernel Approximations for Efficient Classification
and Detection*, CVPR 2012.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from hilbin._arrays import Array
from hilbin.solvers.problem import Callback, Result
from hilbin.solvers.risk import LEAST_VALUE, Risk, require_finite
from hilbin.solvers.simplex import maximize_on_simplex

STEPS = np.geomspace(0.01, 1, 12)  # shares of the line that are evaluated
LEAST_STEP = 0.005
STILL = 50  # passes without a change after which a task is given up
IDLE = 20  # rounds after which a plane that does not count is dropped
SHARE = 1e-2  # of the gap, to which the dual problem of the planes is solved
FIRST_PLANES = 16  # planes that memory is taken for at the start
CONVERTED = 1 << 13  # numbers of a row that are converted to float64 at a time


class Lines(Protocol):
    """The best points so far, and the risk on the lines from there to others."""

    beyond: float  # how far beyond the best step planes are taken, as a share of the line

    def look(self, new: Array, which: Array, steps: Array) -> tuple[Array, ...]:
        """Return values (k, g) at steps (k, g) towards ``new``, and gradients at the last step.

        A third array (k,) has the heights of the planes there, if they may be below the values.
        """

    def go(self, steps: Array) -> None:
        """Move the best points of the tasks of the last look by these shares of their lines."""


class ChosenLines(Lines, Protocol):
    """Lines that choose their own steps instead of evaluating many fixed ones."""

    def choose(self, new: Array, which: Array, parabolas: Array) -> Array:
        """Return steps (k, g) towards ``new``; the last is where a plane is taken.

        The regularizer at a step ``s`` is ``c_0 + c_1 s + c_2 s^2``, with ``parabolas`` (k, 3).
        """


def bundle(
    oracle: Any,
    lam: float = 1.0,
    *,
    size: int | None = None,
    tasks: int | None = None,
    inner: Any = None,
    tol: float = 1e-3,
    max_iter: int = 1000,
    line_search: bool = True,
    keep_dual: bool = False,
    start: Array | None = None,
    callback: Callback | None = None,
) -> Result:
    """Minimize regularized risks by cutting planes, with any inner product.

    Parameters
    ----------
    oracle : Risk or callable
        ``oracle(V, which)`` takes points of shape (k, size) and the numbers of their tasks, and
        returns values of shape (k,) and subgradients of shape (k, size). Planes are kept in the
        dtype of the subgradients, all else is in float64. An attribute ``least``, a number that no
        risk falls below, saves passes. An oracle that knows bounds alone returns the upper ones as
        values, and the heights of its planes at the points, of shape (k,), as a third array.
    lam : float, default=1.0
        Weight of the regularizer.
    size : int, optional
        Length of ``v``, by default ``oracle.size``.
    tasks : int, optional
        Number of problems to solve side by side, by default ``oracle.tasks``, or 1.
    inner : LinearOperator, array or sparse array of shape (m, m), optional
        ``K``, symmetric and positive semi-definite. Coordinates from ``m`` on have the ordinary
        inner product; without ``inner``, all have.
    tol : float, default=1e-3
        Largest gap between the value and its lower bound, relative to the value.
    max_iter : int, default=1000
        Largest number of passes.
    line_search : bool, default=True
        Whether to search along the line to a new point, if the oracle can: it has a method
        ``start``, like :class:`Risk`.
    keep_dual : bool, default=False
        Whether to return ``w`` with ``v = K w`` as well, for twice the memory.
    start : array of shape (tasks, size), optional
        First points, instead of 0; not with ``inner``, whose inverse their norms would need.
    callback : callable, optional
        Function that is called after every pass with the number of passes and the largest relative
        gap; false ends the descent. A keyboard interrupt ends it as well: the best points so far
        are returned, not converged, after a last call with -1.

    Returns
    -------
    result : Result
        ``coef`` of shape (tasks, size) are the best points; ``objective`` and ``gap`` have a number
        for every task; ``n_iter`` counts passes. ``dual`` has the ``w`` if they are kept; for a
        :class:`Risk` of fewer rows than weights, always those with ``v = K Z^T w``.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import Hinge, Risk, bundle
    >>> Z = np.array([[-2.0], [-1.0], [1.0], [3.0]])
    >>> risk = Risk(Z, Hinge(), np.array([-1.0, -1.0, 1.0, 1.0]), 10.0)
    >>> result = bundle(risk)
    >>> result.coef.round(3), result.converged
    (array([[1.]]), True)

    Any convex function with a subgradient will do, such as the distance to 2:

    >>> distance = lambda V, which: (abs(V[:, 0] - 2), np.sign(V - 2))
    >>> bundle(distance, 0.25, size=1, tol=1e-9).coef
    array([[2.]])
    """
    course: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "callback": callback}
    if start is None and isinstance(oracle, Risk) and oracle.size > oracle.rows.shape[0]:
        return _bundle_in_scores(oracle, lam, inner, line_search=line_search, **course)
    size = getattr(oracle, "size", None) if size is None else size
    if size is None:
        raise ValueError("size must be given: the oracle has no attribute size")
    tasks = getattr(oracle, "tasks", 1) if tasks is None else tasks
    least = getattr(oracle, "least", -np.inf)
    problems = [Task(size, lam, least, keep_dual) for _ in range(tasks)]
    if start is not None:
        _start_at(problems, start, size, inner)
    lines: Lines = oracle.start() if line_search and hasattr(oracle, "start") else _Jumps(oracle)
    return _descend(problems, lines, inner, **course)


def _start_at(problems: list["Task"], start: Array, size: int, inner: Any) -> None:
    """Set the first points of all tasks."""
    points = np.asarray(start, np.float64)
    if inner is not None:
        raise ValueError("start needs the ordinary inner product: it cannot be given with inner")
    if points.shape != (len(problems), size) or not np.isfinite(points).all():
        raise ValueError(
            f"start must be finite numbers of shape {(len(problems), size)}, got {points.shape}"
        )
    for problem, point in zip(problems, points, strict=True):
        problem.start(point)


def _descend(
    problems: list["Task"],
    lines: Lines,
    inner: Any,
    tol: float,
    max_iter: int,
    callback: Callback | None,
) -> Result:
    which = np.arange(len(problems))
    new = np.stack([problem.best[0] for problem in problems])
    n_iter, going = 0, True
    try:
        while going and which.size and n_iter < max_iter:
            steps = _chosen_steps(lines, [problems[k] for k in which], new, which)
            values, gradients, *heights = lines.look(new, which, steps)
            planes = heights[0] if heights else values[:, -1]
            learned = zip(
                values, steps, gradients, inner_products(inner, gradients), planes, strict=True
            )
            for k, seen in zip(which, learned, strict=True):
                problems[k].learn(*seen)
            lines.go(np.array([problems[k].step for k in which]))
            n_iter += 1
            going = callback is None or callback(n_iter, max(p.relative_gap for p in problems))
            going_on = (k for k in which if problems[k].relative_gap > tol)
            which = np.array([k for k in going_on if problems[k].still < STILL], int)
            if going and which.size:
                new = np.stack([problems[k].aim() for k in which])
    except KeyboardInterrupt:
        if callback is None or n_iter == 0:
            raise
        callback(-1, np.nan)
    objective: Any = np.array([problem.value for problem in problems])
    gap: Any = np.maximum(objective - [problem.bound for problem in problems], 0)
    converged = all(problem.relative_gap <= tol for problem in problems)
    coef, *dual = np.stack([problem.best for problem in problems], axis=1)
    stalled = any(problem.still >= STILL for problem in problems)
    duals = dual[0] if dual else np.empty(0)
    return Result(coef, duals, objective, gap, n_iter, converged, stalled=stalled)


def _chosen_steps(lines: Lines, tasks: list["Task"], new: Array, which: Array) -> Array:
    """Return the steps that the lines choose, or the fixed ones."""
    choose = getattr(lines, "choose", None)
    if choose is None:
        return np.array([_steps(task.step, lines.beyond) for task in tasks])
    steps: Array = choose(new, which, np.array([task.parabola for task in tasks]))
    return steps


def _steps(last: float, beyond: float) -> Array:
    """Return the shares of the line to evaluate; the plane is taken at the last of them."""
    if beyond >= 1:
        return np.ones(1)
    return np.append(STEPS, (1 - beyond) * max(last, LEAST_STEP) + beyond)


def inner_products(inner: Any, rows: Array) -> Array:
    """Return ``K`` times every row; coordinates that ``K`` does not have stay as they are."""
    if inner is None:
        return rows
    m = inner.shape[0]
    known = (inner @ rows[:, :m].T).T
    return known if m == rows.shape[1] else np.hstack([known, rows[:, m:]])


class _Jumps:
    """An oracle that cannot search along lines: every line is one step."""

    beyond = 1.0

    def __init__(self, oracle: Callable[[Array, Array], tuple[Array, ...]]) -> None:
        self._oracle = oracle

    def look(self, new: Array, which: Array, steps: Array) -> tuple[Array, ...]:
        """Return values and gradients at the ends of the lines."""
        values, gradients, *heights = self._oracle(new, which)
        return np.asarray(values, np.float64)[:, None], np.asarray(gradients), *heights

    def go(self, steps: Array) -> None:
        """Do nothing: the oracle remembers no points."""


class Task:
    """The planes of one task, its best point so far, and the bound that they give.

    A plane is one row of a growing array; everything else that is kept of it is a few numbers, in
    float64. With ``v`` the best point and ``u`` the optimum of the planes, ``on_best`` is ``a^T v``
    of every plane, and ``square``, ``cross`` and ``new_square`` are ``lam`` times the products of
    ``v`` and ``u`` with themselves and each other in the inner product of the regularizer.

    Parameters
    ----------
    size : int
        Length of ``v``.
    lam : float
        Weight of the regularizer.
    least : float
        Lower bound of the risk: a plane from the beginning, unless it is -inf.
    keep_dual : bool
        Whether the ``a`` are kept beside the ``K a``, for ``w`` with ``v = K w``.
    """

    def __init__(self, size: int, lam: float, least: float, keep_dual: bool) -> None:
        self.lam, self.least, self.count, self.step = lam, least, 0, 1.0
        self.value, self.bound, self.still = np.inf, -np.inf, 0
        self.square = self.cross = self.new_square = 0.0
        # v, u and the planes K a; beside them, if they are kept, w of v and u, and a
        self.best = self.new = np.zeros((2 if keep_dual else 1, size))
        self.planes = np.empty((len(self.best), 0, size))
        self.H = np.empty((0, 0))
        self.offset, self.alpha, self.on_best, self.idle = np.empty((4, 0))

    @property
    def relative_gap(self) -> float:
        """The gap between the value and its bound, relative to the value."""
        return (self.value - self.bound) / max(abs(self.value), LEAST_VALUE)

    @property
    def parabola(self) -> tuple[float, float, float]:
        """The regularizer on the line to the optimum of the planes, by powers of the step."""
        curvature = self.square - 2 * self.cross + self.new_square
        return 0.5 * self.square, self.cross - self.square, 0.5 * curvature

    def start(self, point: Array) -> None:
        """Begin at a point instead of 0, with the ordinary inner product."""
        self.best = self.new = np.stack([point] * len(self.best))
        self.square = self.cross = self.new_square = self.lam * float(point @ point)

    def aim(self) -> Array:
        """Return the optimum of the planes."""
        weights = self.alpha[: self.count] / self.lam
        used = np.flatnonzero(weights)
        self.new = np.stack([_weighted_sum(weights[used], rows, used) for rows in self.planes])
        return self.new[0]

    def learn(
        self, values: Array, steps: Array, gradient: Array, product: Array, height: float
    ) -> None:
        """Take the best point on the line and the plane at its last step; find the new bound.

        Parameters
        ----------
        values : array of shape (g,)
            Risk on the line from the best point to the optimum of the planes.
        steps : array of shape (g,)
            Places of these values on the line.
        gradient, product : array of shape (size,)
            Gradient of the risk at the last step, and ``K`` times it.
        height : float
            Height of the plane at the last step, at most the value.
        """
        require_finite(values, height, gradient)
        a_best, a_new = (-float(_dots(point[:1], gradient)[0]) for point in (self.best, self.new))
        at = steps[-1]
        offset = height + (1 - at) * a_best + at * a_new
        before = self.value, self.bound
        self._move(values, steps)
        if not self.count and self.least > -np.inf:
            self._add(np.zeros_like(gradient), np.zeros_like(gradient), self.least, 0.0)
        self._add(gradient, product, offset, (1 - self.step) * a_best + self.step * a_new)
        self._solve()
        self.still = self.still + 1 if before == (self.value, self.bound) else 0

    def _move(self, values: Array, steps: Array) -> None:
        t, first = self.count, self.count == 0
        constant, slope, half_curvature = self.parabola
        J = values + constant + slope * steps + half_curvature * steps**2
        place = -1 if first else int(np.argmin(J))
        if not J[place] < self.value:
            self.step = 0.0
            return
        step = 1.0 if first else float(steps[place])
        self.on_best[:t] += step * (self.H[:t, :t] @ self.alpha[:t] - self.on_best[:t])
        self.square += 2 * (step * slope + step**2 * half_curvature)
        moved = self.best + step * (self.new - self.best)
        self.best, self.value, self.step = moved, float(J[place]), step

    def _add(self, gradient: Array, product: Array, offset: float, on_best: float) -> None:
        t = self.count
        if t == self.offset.size:
            self._grow(gradient.dtype)
        for kept, vector in zip(self.planes, (product, gradient), strict=False):
            np.negative(vector, out=kept[t], casting="same_kind")
        row = _dots(self.planes[0, : t + 1], gradient) / -self.lam
        if not (np.isfinite(row).all() and np.isfinite(offset)):
            raise ValueError(
                "the square of a gradient of the risk is not finite: features, targets or weights "
                "are too large to compute with; scale them"
            )
        self.H[t, : t + 1] = self.H[: t + 1, t] = row
        self.offset[t], self.on_best[t], self.idle[t] = offset, on_best, 0
        self.alpha[t] = 0.0 if t else 1.0
        self.count += 1

    def _grow(self, dtype: Any) -> None:
        t, room = self.count, max(FIRST_PLANES, 2 * self.count)
        planes = np.empty((len(self.best), room, self.best.shape[1]), dtype)
        H = np.zeros((room, room))
        planes[:, :t], H[:t, :t] = self.planes, self.H
        self.planes, self.H, self.best = planes, H, self.best.astype(dtype, copy=False)
        for name in ("offset", "alpha", "on_best", "idle"):
            setattr(self, name, np.append(getattr(self, name), np.zeros(room - t)))

    def _solve(self) -> None:
        t = self.count
        H, b = self.H[:t, :t], self.offset[:t]
        gap = min(self.value - self.bound, abs(self.value))
        alpha = maximize_on_simplex(H, b, self.alpha[:t], SHARE * gap)
        self.alpha[:t] = alpha
        self.new_square = float(alpha @ H @ alpha)
        self.cross = float(self.on_best[:t] @ alpha)
        self.bound = max(self.bound, float(b @ alpha) - 0.5 * self.new_square)
        self.idle[:t] = np.where(alpha > 0, 0, self.idle[:t] + 1)
        self.idle[0] = 0  # the lower bound of the risk may count again
        for place in np.flatnonzero(self.idle[:t] >= IDLE)[::-1]:
            self._drop(int(place))

    def _drop(self, place: int) -> None:
        """Put the last plane in the place of one that is not needed."""
        self.count -= 1
        last = self.count
        for values in (*self.planes, self.H, self.offset, self.alpha, self.on_best, self.idle):
            values[place] = values[last]
        self.H[:, place] = self.H[:, last]


def _dots(rows: Array, vector: Array) -> Array:
    """Return ``rows @ vector`` with sums in float64, without a float64 copy of the rows."""
    if rows.dtype == np.float64:
        return rows @ vector.astype(np.float64, copy=False)
    total = np.zeros(len(rows))
    for begin in range(0, vector.size, CONVERTED):
        part = slice(begin, begin + CONVERTED)
        total += rows[:, part].astype(np.float64) @ vector[part].astype(np.float64)
    return total


def _weighted_sum(weights: Array, rows: Array, used: Array) -> Array:
    """Return ``weights @ rows[used]`` in the dtype of the rows, with sums in float64.

    Large planes cancel, so sums of lower precision would not do.
    """
    total = np.empty(rows.shape[1], rows.dtype)
    for begin in range(0, total.size, CONVERTED):
        part = slice(begin, begin + CONVERTED)
        total[part] = weights @ rows[used, part].astype(np.float64, copy=False)
    return total


def _bundle_in_scores(risk: Risk, lam: float, inner: Any, **course: Any) -> Result:
    """Minimize a risk of fewer rows than weights in the space of its scores."""
    gram = _Gram(risk, inner)
    scored = Risk(_Scores(gram.shape, risk.rows.dtype), risk.loss, risk.targets, risk.weights)
    result = bundle(scored, lam, inner=gram, keep_dual=True, **course)
    return replace(result, coef=gram.weights(result.dual.T))


class _Scores:
    """Rows whose weights are the scores themselves."""

    def __init__(self, shape: tuple[int, int], dtype: Any) -> None:
        self.shape, self.dtype = shape, dtype

    def scores(self, V: Array) -> Array:
        """Return the scores, one column for every task."""
        return np.ascontiguousarray(V.T, self.dtype)

    def gradient(self, S: Array) -> Array:
        """Return the slopes, one row for every task."""
        return np.ascontiguousarray(S.T)


class _Gram:
    """The matrix ``G`` of the scores; a product with it is two passes."""

    def __init__(self, risk: Risk, inner: Any) -> None:
        self.risk, self.inner = risk, inner
        n = risk.rows.shape[0]
        self.shape = (n, n)

    def weights(self, W: Array) -> Array:
        """Return ``K Z^T w`` for every column ``w``."""
        return inner_products(self.inner, self.risk.gradient(W))

    def __matmul__(self, W: Array) -> Array:
        return self.risk.scores(self.weights(W))
