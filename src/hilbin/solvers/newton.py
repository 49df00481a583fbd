r"""Newton's method for kernel machines with squared losses: few rows, and any ``C``.

**Problem.** That of :mod:`hilbin.solvers.icd` with :math:`D > 0`, :math:`\epsilon = 0`, seen from
the primal side:

.. math::
    \min_\beta \; \tfrac12 \beta^\top (K + B 1 1^\top) \beta + \sum_i \ell_i(f_i), \qquad
    f = (K + B 1 1^\top) \beta,

with losses :math:`\ell_i` whose slope is :math:`-c_i(f_i)`: :math:`c_i(z) = (t_i - z) / D_i`, cut
off at the bounds.

**Algorithm.** A descent along coordinates takes a number of sweeps that grows with ``C`` if no
function separates the rows. Newton's method does not. With the rows ``A`` that are not cut off, a
step solves :math:`(K_{AA} + B + D_A)\, \beta_A = t_A - f^{cut}_A`, where the others, at their
bounds, give :math:`f^{cut}`. Scores change in proportion to the length of a step, and the objective
is a convex parabola from piece to piece, so the best length is found by its slope. The sets repeat
after some ten steps, and then the solution is exact. A step costs :math:`O(|A|^3)`.

**Stopping rule.** :math:`D_i (\beta_i - c_i(f_i))`, which is in units of the scores, is at most
``tol`` for every row. The last step is exact, so this may be next to rounding. The duality gap is
computed from the coefficients alone.

**References.** O. Chapelle, *Training a Support Vector Machine in the Primal*, Neural Computation
2007. O. Mangasarian, *A Finite Newton Method for Classification*, 2002.
"""

import numpy as np

from hilbin._arrays import Array
from hilbin.solvers.problem import Callback, Problem, Result, interruptible
from hilbin.solvers.ridge import solve_definite

HALVINGS = 50  # of the interval in which the length of a step lies


def newton(
    K: Array,
    problem: Problem,
    *,
    tol: float = 1e-9,
    max_iter: int = 100,
    start: Array | None = None,
    callback: Callback | None = None,
) -> Result:
    """Minimize by Newton steps, as described at the top of this module.

    Parameters
    ----------
    K : array of shape (n, n)
        The kernel matrix in float64, without ``problem.constant``.
    problem : Problem
        The problem; its ``diagonal`` must be positive, its ``total`` ``None``, its ``epsilon`` 0.
    tol : float, default=1e-9
        Largest violation.
    max_iter : int, default=100
        Largest number of steps.
    start : array of shape (n,), optional
        Coefficients to start from; values outside the bounds are moved to them.
    callback : callable, optional
        Called after every step with its number and the violation; false ends the iteration.

    Returns
    -------
    result : Result
        ``n_iter`` counts steps.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import Hinge
    >>> from hilbin.solvers.newton import newton
    >>> K = np.minimum.outer([1.0, 2.0, 5.0, 6.0], [1.0, 2.0, 5.0, 6.0])
    >>> y = np.array([-1.0, 1.0, -1.0, 1.0])
    >>> problem = Hinge(squared=True).problem(y, np.full(4, 1e3), constant=1.0)
    >>> newton(K, problem).gap < 1e-9
    True
    """
    if problem.total is not None or problem.epsilon or not (problem.diagonal > 0).all():
        raise ValueError("newton is for squared losses without epsilon or a free intercept")
    beta = np.clip(np.zeros(len(K)) if start is None else start, problem.low, problem.high)
    scores = K @ beta + problem.constant * beta.sum()
    n_iter, converged, go_on = 0, False, True
    with interruptible(callback):
        while not converged and go_on and n_iter < max_iter:
            step = _newton_point(K, problem, scores) - beta
            slope = K @ step + problem.constant * step.sum()
            length = _best_length(problem, beta, scores, step, slope)
            beta, scores, n_iter = beta + length * step, scores + length * slope, n_iter + 1
            off = problem.diagonal * (beta - _cut(problem, scores))
            violation = float(np.abs(off).max(initial=0))
            converged = violation <= tol
            go_on = callback is None or callback(n_iter, violation)
    coef = np.clip(beta, problem.low, problem.high)
    return problem.certified(coef, K @ coef, problem.constant * coef.sum(), n_iter, converged)


def _cut(problem: Problem, scores: Array) -> Array:
    """Return the coefficients that the losses ask for at these scores."""
    return np.clip((problem.linear - scores) / problem.diagonal, problem.low, problem.high)


def _newton_point(K: Array, problem: Problem, scores: Array) -> Array:
    """Return the minimum of the parabola that the objective is at these scores."""
    wanted = (problem.linear - scores) / problem.diagonal
    free = np.flatnonzero((problem.low < wanted) & (wanted < problem.high))
    point = np.clip(wanted, problem.low, problem.high)
    point[free] = 0.0
    held = K[free] @ point + problem.constant * point.sum()
    H = K[np.ix_(free, free)] + problem.constant
    H[np.diag_indices_from(H)] += problem.diagonal[free]
    point[free] = solve_definite(H, problem.linear[free] - held, overwrite=True)
    return point


def _best_length(problem: Problem, beta: Array, scores: Array, step: Array, slope: Array) -> float:
    """Return the length of the step, up to 1, at which the objective is least."""

    def rise(length: float) -> float:
        """Return the derivative of the objective by the length."""
        at = beta + length * step - _cut(problem, scores + length * slope)
        return float(at @ slope)

    low, high = 0.0, 1.0
    if rise(1.0) <= 0:
        return 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if rise(middle) <= 0 else (low, middle)
    return low or high
