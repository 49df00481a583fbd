r"""Linear models on rows in memory, by dual coordinate descent or Newton's method.

**Problem.** That of :func:`~hilbin.solvers.bundle` with the ordinary inner product, for every task:

.. math:: \min_v \; J(v) = \frac\lambda2 \|v\|^2 + \sum_i w_i \, \ell(t_i, z_i^\top v) .

**Losses with a quadratic dual** (hinge, epsilon-insensitive, their squares): coordinate descent on
the dual :class:`~hilbin.solvers.Problem` of every task (:func:`~hilbin.solvers.icd`) with the
kernel matrix :math:`Z Z^\top`, which is known by :math:`v = Z^\top c`: a score is a product of a
row with :math:`v`, a change adds a multiple of the row to it. A descent ends when the gap is small;
should its violations be small before, others with lower tolerances follow. For fewer rows than
weights, and for several tasks, the kernel matrix itself is cheaper: it is computed once for all of
them. Compressed rows (:class:`~hilbin.solvers.coded.PQRows`) are solved so as well, if they are
few.

**Other smooth losses** (logistic): Newton's method. A step solves
:math:`(\lambda + Z^\top D Z) \, d = -\nabla J`, :math:`D_i = w_i \ell''(t_i, s_i)`, by conjugate
gradients, as precisely as pays: two products with the rows for every product with the matrix, in
one pass over sparse rows where there is one task. All tasks share them, so that rows are read once
for all classes. Along the step the scores are linear, so its best length costs no product.

**Stopping rule.** The gap is at most ``tol`` of the objective. For dual descent it is the duality
gap. For Newton's method it is :math:`\|\nabla J(v)\|^2 / 2 \lambda`, by which a function of this
curvature can be above its minimum at most; this is the duality gap, too, at
:math:`c_i = -w_i \ell'(t_i, s_i)`.

**References.** C.-J. Lin, R. C. Weng and S. S. Keerthi, *Trust Region Newton Method for Large-Scale
Logistic Regression*, JMLR 2008. C.-J. Hsieh et al., *A Dual Coordinate Descent Method for
Large-scale Linear SVM*, ICML 2008.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from hilbin import parallel
from hilbin._arrays import Array
from hilbin._core import core
from hilbin.solvers.gram import GramRows
from hilbin.solvers.icd import CoreSweep, icd
from hilbin.solvers.problem import Callback, Problem, Result, interruptible
from hilbin.solvers.risk import LEAST_VALUE, MatrixRows, Risk, csr_arrays, require_finite

FORCING = 0.2  # share of the gradient that conjugate gradients may leave
SLOPE_LEFT = 0.2  # share of the slope along a step that may be left at its end
HALVINGS = 30
FIRST_TOL, LEAST_TOL = 0.01, 1e-11  # of the violations of dual descents
MOST_SWEEPS = 1 << 30  # passes are counted here
SINGLE_TOL = 1e-4  # relative gap from which on single precision is enough
MOST_ROWS, ROWS_PER_TASK = 5000, 200  # for which a kernel matrix pays, if it is no larger than Z
BLOCK = 1 << 18  # numbers that are converted to float64 at a time


def linear(
    risk: Risk,
    lam: float = 1.0,
    *,
    tol: float = 1e-3,
    max_iter: int = 1000,
    seed: int = 0,
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> Result:
    """Minimize a regularized risk of rows in memory by dual descent or Newton's method.

    Parameters
    ----------
    risk : Risk
        The risk of the rows of a matrix, or of few rows that have a kernel matrix (``gram``).
    lam : float, default=1.0
        Weight of the regularizer.
    tol : float, default=1e-3
        Largest gap, relative to the objective.
    max_iter : int, default=1000
        Largest number of passes over the rows: of sweeps for a task, of which those over a part of
        the rows count as that part, or of products for all.
    seed : int, default=0
        Random seed of the order in which dual descent visits rows.
    n_jobs : int, optional
        Threads of dual descent, each of which solves other tasks.
    callback : callable, optional
        Called after every product or sweep with their number and the relative gap or the
        violation; false ends the descent. A keyboard interrupt ends it as well: the best points so
        far are returned, not converged, after a last call with -1.

    Returns
    -------
    result : Result
        ``coef`` of shape (tasks, size); ``objective`` and ``gap`` have a number for every task.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import Hinge, Risk, linear
    >>> Z = np.array([[-2.0], [-1.0], [1.0], [3.0]])
    >>> y = np.array([-1.0, -1.0, 1.0, 1.0])
    >>> linear(Risk(Z, Hinge(), y, 10.0)).coef.round(3)
    array([[1.]])
    >>> linear(Risk(Z, Hinge(squared=True), y, 10.0), tol=1e-8).coef.round(3)
    array([[0.976]])
    """
    if not suits(risk):
        raise ValueError("linear needs the rows of a matrix, or few rows; bundle takes any")
    if not risk.loss.quadratic:
        return _Newton(risk, lam, tol, callback).minimize(max_iter)
    return _descents(risk, lam, tol, max_iter, seed, n_jobs, callback)


def suits(risk: Any) -> bool:
    """Tell whether :func:`linear` solves a problem, and not cutting planes."""
    rows = getattr(risk, "rows", None)
    if isinstance(rows, MatrixRows):
        return True
    return hasattr(rows, "gram") and risk.loss.quadratic and _has_few_rows(risk, MOST_ROWS)


def _has_few_rows(risk: Risk, most: int) -> bool:
    n, size = risk.rows.shape
    return n <= min(size, most, MOST_ROWS)


# losses without a quadratic dual
class _Newton:
    """Newton's method for all tasks of a risk side by side; ``V`` and ``G`` have a row for each."""

    def __init__(self, risk: Risk, lam: float, tol: float, callback: Callback | None) -> None:
        self.risk, self.lam, self.tol, self.callback = risk, lam, tol, callback
        self.n_iter, self.going = 0, True
        self.V = np.zeros((risk.tasks, risk.size))
        self.S = np.zeros((risk.rows.shape[0], risk.tasks), risk.rows.dtype)
        self.G = np.empty_like(self.V)
        self.value, self.gap = np.full((2, risk.tasks), np.inf)

    def minimize(self, max_iter: int) -> Result:
        """Make steps until all tasks have converged, or none gains."""
        which, stalled = np.arange(self.risk.tasks), False
        self._evaluate(which)
        with interruptible(self.callback):
            while self.going and self.n_iter < max_iter and not stalled:
                which = np.flatnonzero(self.gap > self.tol * self.value)
                if not which.size:
                    break
                before = self.value[which], self.gap[which]
                self._step(which, max_iter)
                gained = (self.value[which] < before[0]) | (self.gap[which] < before[1])
                stalled = not gained.any()
        converged = bool((self.gap <= self.tol * self.value).all())
        coef = self.V.astype(self.S.dtype, copy=False)
        value: Any = self.value
        gap: Any = self.gap
        stalled = stalled and not converged
        return Result(coef, np.empty(0), value, gap, self.n_iter, converged, stalled=stalled)

    def _evaluate(self, which: Array) -> None:
        """Find the values and gradients of some tasks from their scores."""
        S, V = self.S[:, which], self.V[which]
        losses, slopes = self.risk.at(S, which)
        require_finite(losses, slopes)
        self.G[which] = G = self.lam * V + slopes
        self.value[which] = 0.5 * self.lam * _squares(V) + losses
        self.gap[which] = _squares(G) / (2 * self.lam)

    def _step(self, which: Array, max_iter: int) -> None:
        D, change = self._direction(which, max_iter)
        lengths = self._lengths(which, D, change)
        self.V[which] += lengths[:, None] * D
        self.S[:, which] += lengths.astype(change.dtype) * change
        self._evaluate(which)

    def _direction(self, which: Array, max_iter: int) -> tuple[Array, Array]:
        """Solve for the steps of some tasks, and their scores, by conjugate gradients.

        A task that is solved leaves.
        """
        risk = self.risk
        curvature = risk.loss.curvature(risk.targets[:, which], self.S[:, which])
        curvature *= risk.weights[:, None].astype(curvature.dtype)
        R = -self.G[which]
        D, P, square = np.zeros_like(R), R.copy(), _squares(R)
        enough = np.maximum(FORCING**2 * square, 0.5 * self.lam * self.tol * self.value[which])
        left, change = np.arange(which.size), np.zeros_like(curvature)
        while left.size and self.going and self.n_iter < max_iter:
            some: Any = left if left.size < which.size else slice(None)  # all without a copy
            p = P[some]
            scores, products = risk.curved(p, curvature[:, some])
            Q = self.lam * p + products
            require_finite(Q)
            step = (square[some] / np.einsum("kd,kd->k", p, Q))[:, None]
            D[some] += step * p
            change[:, some] += step[:, 0].astype(change.dtype) * scores
            R[some] -= step * Q
            new = _squares(R[some])
            P[some] = R[some] + (new / square[some])[:, None] * p
            square[some] = new
            left = left[new > enough[left]]
            self.n_iter += 1
            gap = float((self.gap / np.maximum(self.value, LEAST_VALUE)).max())
            self.going = self.callback is None or self.callback(self.n_iter, gap)
        return D, change

    def _lengths(self, which: Array, D: Array, change: Array) -> Array:
        """Return how long the steps are best, at most 1: where the objective falls no further."""
        V = self.V[which]
        slope, rise = self.lam * np.einsum("kd,kd->k", V, D), self.lam * _squares(D)
        S, T, weights = self.S[:, which], self.risk.targets[:, which], self.risk.weights

        def slopes(lengths: Array) -> Array:
            at = self.risk.loss.slope(T, S + lengths.astype(S.dtype) * change)
            return slope + lengths * rise + weights @ (at * change)

        low, high = np.zeros(which.size), np.ones(which.size)
        least = SLOPE_LEFT * np.abs(slopes(low))
        lengths, at = high, slopes(high)
        for _ in range(HALVINGS):
            if (at <= least).all() and ((at >= -least) | (lengths == 1)).all():
                break
            low, high = np.where(at < 0, lengths, low), np.where(at < 0, high, lengths)
            lengths = np.where(np.abs(at) > least, 0.5 * (low + high), lengths)
            at = slopes(lengths)
        return lengths


def _squares(rows: Array) -> Array:
    return np.asarray(np.einsum("kd,kd->k", rows, rows))


# losses with a quadratic dual
class LinearRows:
    """The kernel matrix ``Z Z^T`` of the rows of a matrix, for :func:`~hilbin.solvers.icd`.

    Parameters
    ----------
    Z : array or CSR of shape (n, D)
        The rows, float32 or float64.
    exact : bool, default=True
        Whether products with rows of float32 are computed in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers.linear import LinearRows
    >>> rows = LinearRows(np.array([[1.0, 2.0], [0.0, 3.0]]))
    >>> rows.norms, rows.scores(np.array([1.0, 0.0]))
    (array([5., 9.]), array([5., 6.]))
    """

    def __init__(self, Z: Any, exact: bool = True) -> None:
        self.exact = exact
        self._last: tuple[Array, Array] | None = None  # coefficients and their weights
        if sp.issparse(Z):
            self.Z = Z if Z.has_canonical_format else sp.csr_array(Z).copy()
            self.Z.sum_duplicates()
            self._arrays: tuple[Array, ...] = csr_arrays(self.Z)
            self.norms = np.empty(Z.shape[0])
            core.sparse_norms(self._arrays[0], self._arrays[2], self.norms)
        else:
            self.Z = np.ascontiguousarray(Z)
            self._arrays = (self.Z,)
            self.norms = np.concatenate([_squares(part) for part in self._parts()])

    def _parts(self) -> Any:
        """Yield runs of rows, in float64 if products are exact."""
        size = max(1, BLOCK // max(1, self.Z.shape[1]))
        for begin, end in parallel.ranges(self.Z.shape[0], size):
            yield self.Z[begin:end].astype(np.float64, copy=False)

    def start(self, coef: Array, dtype: Any, gains: Any) -> CoreSweep:
        """Return a function that runs one sweep, from the weights of ``coef``."""
        # look-ups of single numbers are no faster in float32
        dtype = np.float64 if self.exact or sp.issparse(self.Z) else self.Z.dtype
        memory = self.weights(coef).astype(dtype)  # a copy, which sweeps change
        sweep = core.sweep_sparse_rows if sp.issparse(self.Z) else core.sweep_rows
        return partial(sweep, *self._arrays, memory)

    def weights(self, coef: Array) -> Array:
        """Return ``Z^T c`` in float64; those of the last coefficients are remembered."""
        known = self._last
        if known is None or not np.array_equal(known[0], coef):
            self._last = known = coef.copy(), self._weights(coef)
        return known[1]

    def _weights(self, coef: Array) -> Array:
        """Return ``Z^T c`` in float64; rows whose coefficient is 0 are not read."""
        total = np.zeros(self.Z.shape[1])
        if sp.issparse(self.Z):
            core.add_sparse_rows(*self._arrays, total, np.ascontiguousarray(coef, np.float64))
            return total
        used = np.flatnonzero(coef)
        size = max(1, BLOCK // max(1, self.Z.shape[1]))
        for begin, end in parallel.ranges(used.size, size):
            some = used[begin:end]
            total += self.Z[some].T.astype(np.float64) @ coef[some]
        return total

    def scores(self, coef: Array) -> Array:
        """Return ``Z Z^T c`` in float64."""
        v = self.weights(coef)
        if sp.issparse(self.Z):
            out = np.empty(self.Z.shape[0])
            core.score_sparse_rows(*self._arrays, v, out)
            return out
        if not self.exact:
            return (self.Z @ v.astype(self.Z.dtype)).astype(np.float64)
        return np.concatenate([part @ v for part in self._parts()])

    def divided(self, unit: float) -> "LinearRows":
        """Return the matrix over a number."""
        return LinearRows(self.Z / self.Z.dtype.type(np.sqrt(unit)), self.exact)


def _descents(
    risk: Risk,
    lam: float,
    tol: float,
    max_iter: int,
    seed: int,
    n_jobs: int | None,
    callback: Callback | None,
) -> Result:
    """Solve the tasks of a risk by dual descent, ``n_jobs`` of them side by side."""
    rows = _kernel_rows(risk, tol < SINGLE_TOL)
    found: dict[int, Result] = {}
    unused = risk.weights == 0

    def task(k: int, _: int) -> None:
        weights = np.where(unused, 1.0, risk.weights) / lam
        problem = risk.loss.problem(risk.targets[:, k], weights, constant=risk.root**2)
        problem = problem.without(unused) if unused.any() else problem
        found[k] = descend(Counted(rows), problem, tol, max_iter, seed, callback)

    parallel.run(task, parallel.ranges(risk.tasks, 1), n_jobs)
    results = [found[k] for k in range(risk.tasks)]
    values = lam * np.array([(r.objective, r.gap) for r in results])
    require_finite(values)
    duals = np.stack([r.coef for r in results])
    coef = risk.gradient(duals.T) if isinstance(rows, GramRows) else _weights(rows, duals, risk)
    converged = bool((values[:, 1] <= tol * values[:, 0]).all())
    objective: Any = values[:, 0]
    gap: Any = values[:, 1]
    n_iter, stalled = max(r.n_iter for r in results), any(r.stalled for r in results)
    return Result(coef, duals, objective, gap, n_iter, converged, stalled=stalled)


def _kernel_rows(risk: Risk, exact: bool) -> "GramRows | LinearRows":
    """Return the kernel matrix of the rows, or the rows themselves, whichever is cheaper."""
    source: Any = risk.rows
    if isinstance(source, MatrixRows):
        if sp.issparse(source.Z) or not _has_few_rows(risk, ROWS_PER_TASK * risk.tasks):
            return LinearRows(source.Z, exact)
        if exact:
            source = MatrixRows(source.Z.astype(np.float64, copy=False))
    return GramRows(source.gram())


def _weights(rows: LinearRows, duals: Array, risk: Risk) -> Array:
    """Return the weights of all tasks, those of the constant feature included."""
    V = np.stack([rows.weights(dual) for dual in duals])
    if risk.root > 0:
        V = np.column_stack([V, risk.root * duals.sum(axis=1)])
    return V.astype(risk.rows.dtype, copy=False)


class Counted:
    """A kernel matrix that counts how many rows sweeps visit."""

    def __init__(self, rows: Any, visits: list[int] | None = None) -> None:
        self.rows, self.norms, self.scores = rows, rows.norms, rows.scores
        self._visits = [0] if visits is None else visits

    @property
    def passes(self) -> int:
        """The number of visits in multiples of the number of rows."""
        return -(-self._visits[0] // max(1, self.norms.size))

    def start(self, coef: Array, dtype: Any, gains: Any) -> CoreSweep:
        """Return a function that runs one sweep."""
        run = self.rows.start(coef, dtype, gains)

        def counted(lines: Array, order: Array, active: int, *given: Any) -> Any:
            self._visits[0] += active
            return run(lines, order, active, *given)

        return counted

    def divided(self, unit: float) -> "Counted":
        """Return the matrix over a number."""
        return Counted(self.rows.divided(unit), self._visits)


def descend(
    rows: Counted,
    problem: Problem,
    tol: float,
    max_iter: int,
    seed: int,
    callback: Callback | None,
    start: Array | None = None,
) -> Result:
    """Descend with lower and lower tolerances, until the gap is small."""
    level, going, coef = FIRST_TOL, True, start

    def watch(sweep: int, violation: float) -> bool:
        nonlocal going
        if callback is not None:
            going = callback(rows.passes if sweep > 0 else sweep, violation)
        elif sweep < 0:
            raise KeyboardInterrupt
        return going and rows.passes < max_iter

    while True:
        options: dict[str, Any] = {"max_iter": MOST_SWEEPS, "seed": seed, "callback": watch}
        result = icd(rows, problem, tol=level, gap_tol=tol, start=coef, **options)
        coef, share = result.coef, result.gap / max(result.objective, LEAST_VALUE)
        ended = not going or result.stalled or rows.passes >= max_iter or level < LEAST_TOL
        if share <= tol or ended:
            return replace(result, n_iter=rows.passes)
        level *= min(0.5, max(0.1, tol / share))
