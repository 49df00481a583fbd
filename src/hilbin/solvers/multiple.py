r"""Multiple kernel learning: a kernel machine, and the weights of the kernels that it is made of.

**Problem.** For kernels :math:`K_1, \dots, K_m` and weights :math:`\beta`,

.. math::
    \min_{\beta \ge 0,\, \|\beta\|_p \le 1} J(\beta), \qquad
    J(\beta) = \min_{v, b} \tfrac12 \sum_j \frac{\|v_j\|^2}{\beta_j} + \ell\Bigl(\sum_j \langle v_j,
    \phi_j(x_i) \rangle + b\Bigr),

a machine with the kernel :math:`K_\beta = \sum_j \beta_j K_j`, and :math:`J` is convex. Any dual
variables :math:`a` of the machine, of gain :math:`s` (the dual value without its quadratic term),
have the energies :math:`q_j = a^\top K_j a`, summed over classes, and give a plane below
:math:`J` and a lower bound of its minimum,

.. math:: J(\beta) \ge s - \tfrac12 \beta \cdot q \ge s - \tfrac12 \|q\|_{p^*}, \qquad
    p^* = p / (p - 1) .

**Algorithm.** :math:`p > 1`: the machine for given weights, then the best weights for the norms
:math:`\|v_j\| = \beta_j \sqrt{q_j}` that it has,
:math:`\beta_j = \|v_j\|^{2/(p+1)} / (\sum_l \|v_l\|^{2p/(p+1)})^{1/p}`, in turn.
:math:`p = \infty`: all weights are 1. :math:`p = 1`: the level method. A linear program finds the
lower bound of :math:`J` by all planes so far; the next weights are the projection of the last ones
on the set where no plane is above a level between that and the best value. The projection is a
problem of least distance, which is one of non-negative least squares (Lawson and Hanson).

At the end, a last machine is tried without the kernels of small weights, and kept if it keeps to
the tolerance.

**Stopping rule.** The best value of :math:`J` is above the best lower bound by at most ``tol``
times itself. For :math:`p = 1` the bound is that of the convex combination of dual variables that
the linear program gives, so it holds whatever the program was solved to. The machine is solved more
exactly where its own gap is what is left.

**References.** F. Bach, G. Lanckriet and M. Jordan, *Multiple Kernel Learning, Conic Duality, and
the SMO Algorithm*, ICML 2004. Z. Xu, R. Jin, I. King and M. Lyu, *An Extended Level Method for
Efficient Multiple Kernel Learning*, NIPS 2008. M. Kloft et al., *lp-Norm Multiple Kernel Learning*,
JMLR 2011. C. Lawson and R. Hanson, *Solving Least Squares Problems*, 1974, chapter 23.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import linprog, nnls

from hilbin._arrays import Array
from hilbin.solvers.problem import ROUNDING, Callback, Result

LEVEL = 0.67  # between the lower bound (0) and the best value (1)
INNER = 0.1  # accuracy asked of the machines, over that of the weights
OWN = 0.3  # share of the gap from which on machines are solved more exactly
SHARPER = 0.1  # how much more exactly
FINEST = 1e-13  # accuracy beyond which rounding decides
SMALL = 0.01  # weights for p = 1 without which a last machine is tried
NOTHING = 1e-10  # weights below this are rounding
FLOOR = 1e-3  # smallest weight to start from, over the largest: one of 0 would stay 0 for p > 1


class Trial(NamedTuple):
    """A machine for given weights of the kernels.

    Parameters
    ----------
    gain : float
        Its dual value without the quadratic term.
    loss : float
        Its primal value without the quadratic term.
    energies : array of shape (m,)
        The numbers ``q``.
    solution : object
        What the caller wants back, and to start the next machine from.
    """

    gain: float
    loss: float
    energies: Array
    solution: Any


Solve = Callable[[Array, Any, float], Trial]


@dataclass(frozen=True)
class MultipleResult(Result):
    """A solution with the weights of the kernels.

    Parameters
    ----------
    weights : array of shape (m,)
        The weights.
    history : array of shape (n_iter, 2)
        After every round, the best value and the best lower bound so far; in the end, maybe, the
        value without kernels of small weights.
    solution : object
        The solution of the best ``Trial``.
    shares : array
        For ``p = 1``, the shares of the first machines in the dual variables of the lower bound.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers.multiple import MultipleResult
    >>> a = np.zeros(2)
    >>> MultipleResult(a, a, 1.0, 0.0, 1, True, weights=np.ones(1)).weights
    array([1.])
    """

    weights: Array = field(default_factory=lambda: np.empty(0))
    history: Array = field(default_factory=lambda: np.empty((0, 2)))
    solution: Any = None
    shares: Array = field(default_factory=lambda: np.empty(0))


def multiple(
    solve: Solve,
    n_kernels: int,
    *,
    norm: float = 1.0,
    tol: float = 1e-3,
    max_iter: int = 100,
    start: tuple[Array | None, Any] = (None, None),
    callback: Callback | None = None,
) -> MultipleResult:
    """Learn a kernel machine together with the weights of its kernels.

    Parameters
    ----------
    solve : callable
        ``solve(weights, last, tol)`` is the ``Trial`` of these weights. It may start from the
        ``last`` solution, None at first, and has a gap of about ``tol`` times its value.
    n_kernels : int
        The number of kernels.
    norm : float, default=1.0
        The number ``p``, at least 1; ``inf`` for a plain sum.
    tol : float, default=1e-3
        Duality gap over the value at which to stop.
    max_iter : int, default=100
        Largest number of rounds, each a machine.
    start : (array of shape (m,) or None, object), optional
        Weights to start from, of any norm, and a solution.
    callback : callable, optional
        Called after every round with its number and the gap over the value; false ends it.

    Returns
    -------
    result : MultipleResult
        ``n_iter`` counts rounds; ``coef``, ``dual`` and ``intercept`` are left to the caller.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers.multiple import multiple
    >>> from hilbin.solvers.multiple_machines import StoredGrams, ridge_trials
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(size=(2, 40, 2))  # two groups of features; the second is noise
    >>> targets = a @ [[1.0], [2.0]]
    >>> grams = StoredGrams([a @ a.T, b @ b.T])
    >>> result = multiple(ridge_trials(grams, targets, 0.1), 2)
    >>> result.weights.round(2), result.converged
    (array([1., 0.]), True)
    """
    course = _Levels(n_kernels) if norm == 1 else _Wrapper(norm)
    weights, last = _normalized(start[0], n_kernels, norm), start[1]
    state, inner, going = _Best(tol), INNER * tol, True
    while going and len(state.history) < max_iter:
        trial = solve(weights, last, inner)
        last = trial.solution
        own = state.add(weights, trial, course.bound(trial))
        going = callback is None or callback(len(state.history), state.gap)
        if state.converged or inner < FINEST or not np.isfinite(state.gap):
            break
        if own > OWN * max(tol, state.gap * INNER) * abs(state.primal):
            inner *= SHARPER
        before, weights = weights, course.following(weights, state.primal, state.dual, trial)
        if np.array_equal(before, weights):
            inner *= SHARPER
    if norm == 1 and state.converged and going and len(state.history) < max_iter:
        state.clean(solve, inner)
    return state.result(course.shares, stalled=inner < FINEST)


@dataclass
class _Best:
    """The best machine so far, and the best lower bound."""

    tol: float
    weights: Array = field(default_factory=lambda: np.empty(0))
    trial: Trial | None = None
    primal: float = np.inf
    dual: float = -np.inf
    history: list[tuple[float, float]] = field(default_factory=list)

    @property
    def gap(self) -> float:
        """The gap over the value."""
        return (self.primal - self.dual) / max(abs(self.primal), np.finfo(float).tiny)

    @property
    def converged(self) -> bool:
        """Whether the gap is small enough."""
        return self.gap <= self.tol or self.primal == self.dual

    def add(self, weights: Array, trial: Trial, bound: float) -> float:
        """Take a machine and a lower bound; return the gap of the machine for its own weights."""
        half = 0.5 * float(weights @ trial.energies)
        value = half + trial.loss
        if self.trial is None or value < self.primal:
            self.trial, self.weights, self.primal = trial, weights, value
        self.dual = max(self.dual, bound)
        if self.primal < self.dual <= self.primal + ROUNDING * abs(self.primal):
            self.dual = self.primal
        self.history.append((self.primal, self.dual))
        return 2 * half + trial.loss - trial.gain

    def clean(self, solve: Solve, tol: float) -> None:
        """Try the weights without those that are small, and keep them if they are good enough."""
        assert self.trial is not None
        kept = np.where(self.weights < SMALL, 0.0, self.weights)
        kept /= kept.sum()
        if np.count_nonzero(kept) == np.count_nonzero(self.weights):
            return
        trial = solve(kept, self.trial.solution, tol)
        value = 0.5 * float(kept @ trial.energies) + trial.loss
        if value - self.dual <= self.tol * abs(value):
            self.trial, self.weights = trial, kept
            self.primal = max(value, self.dual)
            self.history.append((self.primal, self.dual))

    def result(self, shares: Array, *, stalled: bool) -> MultipleResult:
        """Return what was found."""
        assert self.trial is not None
        empty = np.empty(0)
        return MultipleResult(
            empty, empty, self.primal, self.primal - self.dual, len(self.history), self.converged,
            stalled=stalled, weights=self.weights, history=np.array(self.history),
            solution=self.trial.solution, shares=shares,
        )  # fmt: skip


def _normalized(weights: Array | None, n_kernels: int, norm: float) -> Array:
    """Return weights of norm 1, equal ones if there are none."""
    if weights is None or norm == np.inf or not weights.any():
        weights = np.ones(n_kernels)
    elif norm > 1:
        weights = np.maximum(weights, FLOOR * weights.max())
    return np.asarray(weights / np.linalg.norm(weights, norm), np.float64)


class _Wrapper:
    """Best weights for the norms of the last machine."""

    def __init__(self, norm: float) -> None:
        self.norm, self.shares = norm, np.empty(0)
        self.conjugate = 1.0 if norm == np.inf else norm / (norm - 1)

    def bound(self, trial: Trial) -> float:
        """Return the lower bound by a machine."""
        return trial.gain - 0.5 * float(np.linalg.norm(trial.energies, self.conjugate))

    def following(self, weights: Array, primal: float, dual: float, trial: Trial) -> Array:
        """Return the next weights."""
        if self.norm == np.inf:
            return weights
        sizes = (weights * np.sqrt(np.maximum(trial.energies, 0))) ** (2 / (self.norm + 1))
        total = np.linalg.norm(sizes, self.norm)
        return np.asarray(sizes / total) if total > 0 else weights


class _Levels:
    """The level method on the simplex."""

    def __init__(self, n_kernels: int) -> None:
        self.gains: list[float] = []
        self.energies: list[Array] = []
        self.best, self.shares = -np.inf, np.empty(0)
        self.along = null_space(np.ones((1, n_kernels)))  # directions that keep the sum

    def bound(self, trial: Trial) -> float:
        """Add the plane of a machine; return the lower bound by the best combination of all."""
        self.gains.append(trial.gain)
        self.energies.append(trial.energies)
        gains, energies = np.array(self.gains), np.array(self.energies)
        unit = max(float(np.abs(gains).max()), float(np.abs(energies).max()), 1e-300)
        t, m = energies.shape
        found = linprog(
            np.append(np.zeros(m), 1.0),
            A_ub=np.hstack([-energies / (2 * unit), -np.ones((t, 1))]),
            b_ub=-gains / unit,
            A_eq=np.append(np.ones(m), 0.0)[None],
            b_eq=[1.0],
            bounds=[(0, None)] * m + [(None, None)],
            method="highs",
        )
        shares = np.zeros(t)
        shares[-1] = 1.0
        if found.status == 0 and (marginals := -found.ineqlin.marginals).max() > 0:
            shares = np.maximum(marginals, 0) / np.maximum(marginals, 0).sum()
        value = float(shares @ gains - 0.5 * (shares @ energies).max())
        if value > self.best:
            self.best, self.shares = value, shares
        return value

    def following(self, weights: Array, primal: float, dual: float, trial: Trial) -> Array:
        """Return the weights nearest to the last ones where no plane is above the level."""
        level = dual + LEVEL * (primal - dual)
        slopes = 0.5 * np.array(self.energies)
        sides = np.vstack([slopes @ self.along, self.along])
        least = np.append(np.array(self.gains) - slopes @ weights - level, -weights)
        units = np.linalg.norm(sides, axis=1)
        kept = units > 1e-12 * units.max(initial=0.0)
        step = least_distance(sides[kept] / units[kept, None], least[kept] / units[kept])
        moved = weights + self.along @ step
        moved[moved < NOTHING] = 0
        return np.asarray(moved / moved.sum())


def least_distance(sides: Array, least: Array) -> Array:
    """Return the shortest ``z`` with ``sides @ z >= least``, 0 if there is none.

    Parameters
    ----------
    sides : array of shape (k, d)
        Normals of the half-spaces.
    least : array of shape (k,)
        Their distances.

    Returns
    -------
    z : array of shape (d,)

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers.multiple import least_distance
    >>> least_distance(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([3.0, -1.0]))
    array([3., 0.])
    """
    d = sides.shape[1]
    unit = float(np.abs(least).max(initial=0.0))
    if not d or unit == 0:
        return np.zeros(d)
    both = np.column_stack([sides, least / unit]).T
    target = np.append(np.zeros(d), 1.0)
    try:
        rest = both @ nnls(both, target)[0] - target
    except RuntimeError:  # too many steps: stay, and ask for more exact machines
        return np.zeros(d)
    if -rest[-1] <= 1e-14:
        return np.zeros(d)
    return np.asarray(rest[:-1] / -rest[-1] * unit)
