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

**Algorithm.** A pass over the data looks along the way from the best point so far to the optimum of
the model. The best of a few points on it is the new best point, and a plane is taken a little
beyond the one that was best in the last pass. This takes about half the passes that planes at the
optimum of the model take. Tasks share the pass; one that has converged leaves it. Planes that have
not counted for 20 rounds are dropped.

**Stopping rule.** The best value is within ``tol`` of the bound, relative to the value.

**References.** C. H. Teo et al., *Bundle Methods for Regularized Risk Minimization*, JMLR 2010.
V. Franc and S. Sonnenburg, *Optimized Cutting Plane Algorithm for Large-Scale Risk Minimization*,
JMLR 2009. A. Vedaldi and A. Zisserman, *Sparse Kernel Approximations for Efficient Classification
and Detection*, CVPR 2012.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from hilbin.solvers._codes import Array
from hilbin.solvers._planes import Task
from hilbin.solvers._result import Result

Callback = Callable[[int, float], bool]

STEPS = np.geomspace(0.01, 1, 12)  # shares of the way that are looked at
LEAST_STEP = 0.005


class Way(Protocol):
    """The best points so far, and the risk on the way from there to others."""

    beyond: float  # where planes are taken, as a share of the way beyond the last best step

    def look(self, new: Array, which: Array, steps: Array) -> tuple[Array, Array]:
        """Values (k, g) at steps (k, g) towards ``new`` (k, size); gradients at the last step."""

    def go(self, steps: Array) -> None:
        """Move the best points of the tasks of the last look by these shares of the way."""


def bundle(
    oracle: Any,
    size: int,
    lam: float,
    *,
    tasks: int = 1,
    inner: Any = None,
    tol: float = 1e-3,
    max_iter: int = 1000,
    line_search: bool = True,
    keep_dual: bool = False,
    callback: Callback | None = None,
) -> Result:
    """Minimize regularized risks by cutting planes; the module says what, and when it stops.

    Parameters
    ----------
    oracle : callable
        ``oracle(V, which)`` takes points of shape (k, size) and the numbers of their tasks, and
        gives values of shape (k,) and subgradients of shape (k, size). Planes are kept in the dtype
        of the subgradients, all else is in float64. It may have an attribute ``least``, a number
        that no risk falls below, which saves passes.
    size : int
        Length of ``v``.
    lam : float
        Weight of the regularizer.
    tasks : int, default=1
        Problems to solve side by side.
    inner : LinearOperator, array or sparse array of shape (m, m), optional
        ``K``, symmetric and positive semi-definite. Coordinates from ``m`` on have the ordinary
        inner product; without it, all have.
    tol : float, default=1e-3
        Largest gap between the value and its lower bound, relative to the value.
    max_iter : int, default=1000
        Most passes.
    line_search : bool, default=True
        Look along the way to a new point, if the oracle can: it has a method ``start``, like
        :class:`Risk`.
    keep_dual : bool, default=False
        Return ``w`` with ``v = K w`` as well, for twice the memory.
    callback : callable, optional
        Called after every pass with their number and the largest relative gap; false ends the
        descent. A keyboard interrupt ends it as well: the best points so far are returned, not
        converged, after a last call with -1.

    Returns
    -------
    result : Result
        ``coef`` of shape (tasks, size) are the best points, ``dual`` the ``w`` if they are kept;
        ``objective`` and ``gap`` are arrays, a number for every task; ``n_iter`` counts passes.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import Hinge, MatrixRows, Risk, bundle
    >>> Z = np.array([[-2.0], [-1.0], [1.0], [3.0]])
    >>> risk = Risk(MatrixRows(Z), Hinge(), np.array([-1.0, -1.0, 1.0, 1.0]), 10.0)
    >>> result = bundle(risk, risk.size, 1.0)
    >>> result.coef.round(3), result.converged
    (array([[1.]]), True)

    Any convex function with a subgradient will do, such as the distance to 2:

    >>> bundle(lambda V, which: (abs(V[:, 0] - 2), np.sign(V - 2)), 1, 0.25, tol=1e-9).coef
    array([[2.]])
    """
    least = getattr(oracle, "least", -np.inf)
    problems = [Task(size, lam, least, keep_dual) for _ in range(tasks)]
    way: Way = oracle.start() if line_search and hasattr(oracle, "start") else _Jump(oracle)
    which = np.arange(tasks)
    new = np.zeros((tasks, size))
    n_iter, going = 0, True
    try:
        while going and which.size and n_iter < max_iter:
            steps = np.array([_points(problems[k].step, way.beyond) for k in which])
            values, gradients = way.look(new, which, steps)
            products = product(inner, gradients)
            for place, k in enumerate(which):
                problems[k].learn(values[place], steps[place], gradients[place], products[place])
            way.go(np.array([problems[k].step for k in which]))
            n_iter += 1
            going = callback is None or callback(n_iter, max(p.relative_gap for p in problems))
            which = np.array([k for k in which if problems[k].relative_gap > tol], int)
            if going and which.size:
                new = np.stack([problems[k].aim() for k in which])
    except KeyboardInterrupt:
        if callback is None or n_iter == 0:
            raise
        callback(-1, np.nan)
    return _certified(problems, n_iter, tol)


def _certified(problems: list[Task], n_iter: int, tol: float) -> Result:
    objective: Any = np.array([problem.value for problem in problems])
    gap: Any = np.maximum(objective - [problem.bound for problem in problems], 0)
    converged = all(problem.relative_gap <= tol for problem in problems)
    coef, *dual = np.stack([problem.best for problem in problems], axis=1)
    return Result(coef, dual[0] if dual else np.empty(0), objective, gap, n_iter, converged)


def _points(last: float, beyond: float) -> Array:
    """Shares of the way to look at; the plane is taken at the last of them."""
    if beyond >= 1:
        return np.ones(1)
    return np.append(STEPS, (1 - beyond) * max(last, LEAST_STEP) + beyond)


def product(inner: Any, rows: Array) -> Array:
    """``K`` times every row; the coordinates that it does not know stay as they are."""
    if inner is None:
        return rows
    m = inner.shape[0]
    known = (inner @ rows[:, :m].T).T
    return known if m == rows.shape[1] else np.hstack([known, rows[:, m:]])


class _Jump:
    """An oracle that knows nothing of the way: all of it is one step."""

    beyond = 1.0

    def __init__(self, oracle: Callable[[Array, Array], tuple[Array, Array]]) -> None:
        self._oracle = oracle

    def look(self, new: Array, which: Array, steps: Array) -> tuple[Array, Array]:
        """Values and gradients at the end of the way."""
        values, gradients = self._oracle(new, which)
        return np.asarray(values, np.float64)[:, None], np.asarray(gradients)

    def go(self, steps: Array) -> None:
        """The oracle need not know."""
