r"""ICD: dual coordinate descent for the histogram intersection kernel.

**Problem.** With :math:`K_{ij} = B + \sum_d \min(x_{id}, x_{jd})` and :math:`c_i = s_i a_i`,

.. math::
    \min_a \; \tfrac12 c^\top K c + \tfrac12 \sum_i D_i a_i^2 - \sum_i p_i a_i
    + \epsilon \sum_i |a_i|, \qquad l_i \le a_i \le u_i .

A classifier has :math:`s = y`, :math:`p = 1`, :math:`l = 0`; its hinge loss has
:math:`D = 0, u = C`, the squared hinge :math:`D = 1/2C, u = \infty`. A regression has
:math:`s = 1, p = y, l = -u`. ``B`` is a constant coordinate, whose weight is the bias.

**Algorithm.** One :math:`a_i` at a time is set to its best value. That takes the score
:math:`f(x_i) = \sum_j c_j K_{ij}`, one look-up per feature in tables that hold all of ``c``, and a
change of the tables: neither depends on the number of rows. Rows that will stay at a bound are left
out of the sweeps, more eagerly than in LIBLINEAR until all are checked for the first time, and all
are checked in the end.

**Stopping rule.** LIBLINEAR's: the projected gradients of a whole sweep lie within ``tol`` of each
other and of zero. The duality gap is computed afterwards from ``c`` alone, in float64.

**References.** J. Wu, *A Fast Dual Method for HIK SVM Learning*, ECCV 2010. C.-J. Hsieh et al.,
*A Dual Coordinate Descent Method for Large-scale Linear SVM*, ICML 2008. C.-H. Ho and C.-J. Lin,
*Large-scale Linear Support Vector Regression*, JMLR 2012.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from hilbin.solvers._codes import Array
from hilbin.solvers._result import Result
from hilbin.solvers._rows import Rows

SIGN, LINEAR, LOW, HIGH, DIAGONAL, CURVATURE, DUAL = range(7)
# Share of the largest violation at which rows are left out before the first check of all rows,
# which comes after so many sweeps at the latest.
EAGER, EAGER_SWEEPS = 0.3, 40
FLOAT32_TOL = 1e-3  # from here on the tables' rounding is far below the tolerance
Callback = Callable[[int, float], bool]


def start_random(seed: int) -> Array:
    """The state of the core's generator: any number but zero."""
    return np.array([(seed * 0x9E3779B97F4A7C15 + 0x2545F4914F6CDD1D) % 2**64 or 1], np.uint64)


def classification(y: Array, C: Array, loss: str) -> Array:
    """The problem of a classifier.

    Parameters
    ----------
    y : array of shape (n,)
        1 or -1.
    C : array of shape (n,)
        Weight of every row's loss.
    loss : {"hinge", "squared_hinge"}
        The loss.

    Returns
    -------
    problem : array of shape (n, 8)
        For every row ``s, p, l, u, D`` of the module's formula, and room for the solver.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import classification
    >>> classification(np.array([1, -1]), np.array([2.0, 3.0]), "hinge")[:, :4]
    array([[ 1.,  1.,  0.,  2.],
           [-1.,  1.,  0.,  3.]])
    """
    return _problem(y, np.ones(y.size), C, squared=loss == "squared_hinge")


def regression(y: Array, C: Array, loss: str) -> Array:
    """The problem of a regression.

    Parameters
    ----------
    y : array of shape (n,)
        Targets.
    C : array of shape (n,)
        Weight of every row's loss.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}
        The loss.

    Returns
    -------
    problem : array of shape (n, 8)
        As from :func:`classification`.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import regression
    >>> regression(np.array([0.5]), np.array([2.0]), "epsilon_insensitive")[:, :4]
    array([[ 1. ,  0.5, -2. ,  2. ]])
    """
    problem = _problem(np.ones(y.size), y, C, squared=loss == "squared_epsilon_insensitive")
    problem[:, LOW] = -problem[:, HIGH]
    return problem


def _problem(sign: Array, linear: Array, C: Array, *, squared: bool) -> Array:
    problem = np.zeros((sign.size, 8))
    problem[:, SIGN] = sign
    problem[:, LINEAR] = linear
    problem[:, HIGH] = np.inf if squared else C
    problem[:, DIAGONAL] = 0.5 / C if squared else 0
    return problem


def icd(
    rows: Rows,
    problem: Array,
    *,
    bias: float = 0.0,
    epsilon: float = 0.0,
    tol: float = 0.1,
    max_iter: int = 1000,
    dual: Array | None = None,
    seed: int = 0,
    callback: Callback | None = None,
    dtype: Any = None,
) -> Result:
    """Minimize by dual coordinate descent; the module says what, and when it stops.

    Parameters
    ----------
    rows : TableRows or GramRows
        The kernel without the bias.
    problem : array of shape (n, 8)
        From :func:`classification` or :func:`regression`.
    bias : float
        ``B``, added to the kernel; 0 is no bias.
    epsilon : float
        Of a regression; 0 for a classifier.
    tol : float
        Largest spread of the projected gradients of a sweep.
    max_iter : int
        Most sweeps.
    dual : array of shape (n,), optional
        Where to start; values outside the bounds are moved to them.
    seed : int
        Of the order in which rows are visited.
    callback : callable, optional
        Called after every sweep with the number of sweeps and the spread; false ends the descent.
        A keyboard interrupt ends it as well: what has been learnt is returned, not converged.
    dtype : dtype, optional
        Of the tables; by default float32 unless ``tol`` is below 1e-3.

    Returns
    -------
    result : Result

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import GramRows, classification, icd
    >>> K = np.minimum.outer([1.0, 2.0, 5.0, 6.0], [1.0, 2.0, 5.0, 6.0])
    >>> problem = classification(np.array([-1, -1, 1, 1]), np.full(4, 1.0), "hinge")
    >>> result = icd(GramRows(K), problem, bias=1.0, tol=1e-6)
    >>> np.sign(K @ result.coef + result.bias)
    array([-1., -1.,  1.,  1.])
    """
    problem = np.array(problem, np.float64, order="C")
    n = len(problem)
    problem[:, CURVATURE] = rows.norms + bias + problem[:, DIAGONAL]
    problem[:, DUAL] = np.clip(0 if dual is None else dual, problem[:, LOW], problem[:, HIGH])
    if dtype is None:
        dtype = np.float32 if tol >= FLOAT32_TOL else np.float64
    coef = problem[:, SIGN] * problem[:, DUAL]
    offset = np.array([coef.sum()])
    sweep = rows.start(coef, dtype)
    order = np.arange(n, dtype=np.int32)
    random = start_random(seed)
    active, above, below, share = n, np.inf, -np.inf, EAGER
    n_iter, converged = 0, False
    try:
        while n_iter < max_iter:
            active, highest, lowest, _ = sweep(
                problem, order, active, above, below, epsilon, bias, offset, random
            )
            n_iter += 1
            small = highest - lowest <= tol and highest <= tol and lowest >= -tol
            converged = small and active == n
            go_on = callback is None or callback(n_iter, highest - lowest)
            if converged or not go_on:
                break
            if small or (share < 1 and n_iter >= EAGER_SWEEPS):
                active, above, below, share = n, np.inf, -np.inf, 1.0
            else:
                above = share * highest if highest > 0 else np.inf
                below = share * lowest if lowest < 0 else -np.inf
    except KeyboardInterrupt:
        if callback is None:
            raise
        callback(-1, np.nan)
    return _certified(rows, problem, bias, epsilon, n_iter, converged)


def _certified(
    rows: Rows, problem: Array, bias: float, epsilon: float, n_iter: int, converged: bool
) -> Result:
    dual = problem[:, DUAL].copy()
    coef = problem[:, SIGN] * dual
    scores = rows.scores(coef) + bias * coef.sum()
    squared_norm = float(coef @ scores)
    lower = (
        problem[:, LINEAR] @ dual
        - epsilon * np.abs(dual).sum()
        - 0.5 * (squared_norm + problem[:, DIAGONAL] @ dual**2)
    )
    upper = 0.5 * squared_norm + losses(problem, scores, epsilon).sum()
    return Result(coef, dual, upper, upper - lower, n_iter, converged, bias * coef.sum())


def losses(problem: Array, scores: Array, epsilon: float) -> Array:
    """Loss of every row, ``max over a of (p - s f) a - D a^2 / 2 - eps |a|`` within the bounds."""
    slope = problem[:, LINEAR] - problem[:, SIGN] * scores
    beyond = np.sign(slope) * np.maximum(np.abs(slope) - epsilon, 0)
    D = problem[:, DIAGONAL]
    with np.errstate(divide="ignore", invalid="ignore"):
        best = np.where(beyond == 0, 0, beyond / D)
    best = np.clip(best, problem[:, LOW], problem[:, HIGH])
    return best * beyond - 0.5 * D * best**2
