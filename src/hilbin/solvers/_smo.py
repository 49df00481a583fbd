r"""Sequential minimal optimization: the dual of a kernel machine with a free bias.

**Problem.** In signed coefficients, with a Gram matrix :math:`K`,

.. math::
    \min_c \; \tfrac12 c^\top K c - t^\top c + \epsilon \|c\|_1, \qquad
    l_i \le c_i \le u_i, \quad \textstyle\sum_i c_i = s .

A classifier has :math:`t = y`, :math:`c_i` between 0 and :math:`y_i C_i`, and :math:`s = 0`; a
regression :math:`t = y`, :math:`-C_i \le c_i \le C_i`; a one-class machine :math:`t = 0`,
:math:`0 \le c_i \le 1 / \nu n`, :math:`s = 1`; the smallest ball around the data (SVDD) the same
with :math:`t_i = K_{ii} / 2`. The multiplier of the sum is the bias :math:`b`, and the primal
problem :math:`\min_{w, b} \tfrac12 \|w\|^2 + \sum_i \ell_i(f(x_i) + b) + s b` with
:math:`\ell_i(z) = \max_{l_i \le c \le u_i} (t_i - z) c - \epsilon |c|`.

**Algorithm.** Two coefficients at a time, chosen by second-order information (Fan, Chen and Lin).
Rows that will stay at a bound are left out: once they are many, and as many steps have been made as
take as long as that, the matrix of the others is taken out and solved on its own, and all rows are
checked in the end.

**Stopping rule.** LIBSVM's: no pair of rows violates its conditions by more than ``tol``. The
duality gap is computed afterwards from ``c`` alone, in float64.

**References.** J. Platt, *Fast Training of Support Vector Machines using Sequential Minimal
Optimization*, 1999. R.-E. Fan, P.-H. Chen and C.-J. Lin, *Working Set Selection Using Second Order
Information for Training SVM*, JMLR 2005.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hilbin.solvers._codes import Array
from hilbin.solvers._gram_rows import COEF, DIAGONAL, GRADIENT, HIGH, LOW, STATE, StepRows, gains
from hilbin.solvers._result import Result

Callback = Callable[[int, float], bool]
ROUND = 1000  # steps between two looks at the clock
SHRUNK = 0.5  # share of the rows at which their matrix is taken out
ROUNDING = 1e-12
FEW = 500  # rows that are not worth it


@dataclass
class Course:
    """How far a descent has come, and whether it goes on."""

    epsilon: float
    tol: float
    max_iter: int
    callback: Callback | None
    n_iter: int = 0
    stopped: bool = False

    def count(self, steps: int, violation: float) -> None:
        """Count steps, and ask whether to go on."""
        self.n_iter += steps
        if self.n_iter >= self.max_iter:
            self.stopped = True
        if self.callback is not None and not self.callback(self.n_iter, violation):
            self.stopped = True


def smo(
    rows: StepRows,
    linear: Array,
    low: Array,
    high: Array,
    *,
    total: float = 0.0,
    epsilon: float = 0.0,
    tol: float = 1e-3,
    max_iter: int = 100_000_000,
    dual: Array | None = None,
    shrinking: bool = True,
    callback: Callback | None = None,
) -> Result:
    """Minimize; the module says what, how, and when it stops.

    Parameters
    ----------
    rows : GramRows, SparseGramRows or LazyRows
        The Gram matrix.
    linear : array of shape (n,)
        ``t``.
    low, high : array of shape (n,)
        Bounds of the coefficients.
    total : float
        ``s``, the sum of the coefficients.
    epsilon : float
        Of a regression.
    tol : float
        Largest violation of a pair of rows.
    max_iter : int
        Most steps.
    dual : array of shape (n,), optional
        Where to start; moved into the bounds and to the right sum.
    shrinking : bool
        Whether rows that will stay at a bound are left out for a time.
    callback : callable, optional
        Called every so many steps with their number and the violation; false ends the descent. A
        keyboard interrupt ends it as well: what has been learnt is returned, not converged.

    Returns
    -------
    result : Result
        ``coef`` and ``dual`` are ``c``, ``n_iter`` counts steps.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import GramRows, smo
    >>> x, y = np.array([1.0, 2.0, 5.0, 6.0]), np.array([-1.0, -1.0, 1.0, 1.0])
    >>> K = np.minimum.outer(x, x)
    >>> result = smo(GramRows(K), y, np.minimum(0, y), np.maximum(0, y), tol=1e-6)
    >>> np.round(K @ result.coef + result.bias, 4)
    array([-1., -1.,  1.,  1.])
    """
    state = np.zeros((STATE, linear.size))
    state[LOW], state[HIGH], state[DIAGONAL] = low, high, rows.norms
    state[COEF] = feasible(np.zeros(linear.size) if dual is None else dual, low, high, total)
    state[GRADIENT] = -linear
    if state[COEF].any():
        state[GRADIENT] += rows.scores(state[COEF])
    course = Course(epsilon, tol, max_iter, callback)
    converged = False
    try:
        converged = _descend(rows, state, course, shrinking)
    except KeyboardInterrupt:
        if callback is None:
            raise
        callback(-1, np.nan)
    return _certified(rows, linear, state, total, course, converged)


def feasible(coef: Array, low: Array, high: Array, total: float) -> Array:
    """Coefficients moved into their bounds, then the first of them until the sum is right."""
    coef = np.clip(np.asarray(coef, np.float64), low, high)
    missing = total - coef.sum()
    if abs(missing) <= ROUNDING * np.abs(coef).sum():
        return coef  # to move a coefficient off its bound by so little helps nobody
    room = high - coef if missing > 0 else coef - low
    if abs(missing) > room.sum() * (1 + 1e-9):
        raise ValueError(f"no coefficients within the bounds have the sum {total}")
    before = np.cumsum(room) - room
    moved = coef + np.sign(missing) * np.clip(abs(missing) - before, 0, room)
    return np.clip(moved, low, high)


def _descend(rows: StepRows, state: Array, course: Course, shrinking: bool) -> bool:
    """Steps until the tolerance is reached (true) or the course is stopped."""
    n = state.shape[1]
    since, patience = 0, 1
    while not course.stopped:
        most = min(ROUND, course.max_iter - course.n_iter)
        done, violation = rows.steps(state, course.epsilon, most, course.tol)
        course.count(done, violation)
        if violation <= course.tol:
            return True
        since += done
        if not shrinking or n < FEW or since < ROUND:
            continue
        part = np.flatnonzero(_moving(state, course.epsilon))
        if part.size <= SHRUNK * n and since >= patience * rows.price(part.size):
            _descend_part(rows, part, state, course)
            since, patience = 0, 2 * patience
    return False


def _descend_part(rows: StepRows, part: Array, state: Array, course: Course) -> None:
    """Steps with some of the rows, on their own matrix."""
    inner = np.ascontiguousarray(state[:, part])
    change = np.zeros(state.shape[1])
    try:
        _descend(rows.restricted(part), inner, course, True)
    finally:  # an interrupt loses nothing
        change[part] = inner[COEF] - state[COEF, part]
        state[COEF, part] = inner[COEF]
    state[GRADIENT] += rows.scores(change)


def _moving(state: Array, epsilon: float) -> Array:
    """Rows that can take part in a step, unless the gradients change a lot."""
    up, down = gains(state, epsilon)
    return (up >= down.min()) | (down <= up.max())


def bias_of(state: Array, epsilon: float) -> float:
    """The multiplier of the sum: the mean of the free rows', else the middle of what is left."""
    up, down = gains(state, epsilon)
    free = up == down
    if free.any():
        return float(up[free].mean())
    ends = [end for end in (up.max(), down.min()) if np.isfinite(end)]
    return float(np.mean(ends))


def _certified(
    rows: StepRows, linear: Array, state: Array, total: float, course: Course, converged: bool
) -> Result:
    coef = state[COEF].copy()
    scores = rows.scores(coef)
    state[GRADIENT] = scores - linear
    bias = bias_of(state, course.epsilon)
    squared_norm = float(coef @ scores)
    lower = float(linear @ coef) - course.epsilon * float(np.abs(coef).sum()) - 0.5 * squared_norm
    slope = linear - scores - bias
    beyond = np.sign(slope) * np.maximum(np.abs(slope) - course.epsilon, 0)
    worst = np.where(beyond > 0, state[HIGH], state[LOW])
    upper = 0.5 * squared_norm + float(worst @ beyond) + total * bias
    return Result(coef, coef, upper, upper - lower, course.n_iter, converged, bias)
