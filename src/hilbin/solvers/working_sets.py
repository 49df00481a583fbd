r"""Linear models on pairs of neighbors, with their inner product, by kernel matrices of few rows.

**Problem.** That of :func:`~hilbin.solvers.bundle` for every task, with a loss whose dual is
quadratic. With the rows :math:`\Phi` and the inner product :math:`K` of the nodes, the dual
:class:`~hilbin.solvers.Problem` has the kernel matrix :math:`\Phi K \Phi^\top`.

**Algorithm.** A step of a coordinate descent would change the weights of all nodes of every column.
But most rows have the coefficient 0, and those that have not are few for a task: its working set.
The kernel matrix of the set is computed, and the descent on it (:func:`~hilbin.solvers.icd`) costs
next to nothing. One pass over all rows and for all tasks then sums :math:`v = K \Phi^\top c` and
scores the rows. Rows of the set without a coefficient leave it, and those that violate their
conditions most join it, at most half as many as have a coefficient; of its kernel matrix only what
is new is computed. The first set is a sample of the rows, which the tasks share.

**Stopping rule.** The scores of all rows give the duality gap: it is at most ``tol`` of the
objective. If so many rows violate their conditions after the first pass that kernel matrices of
them would cost more than cutting planes do, there is no result.

**References.** E. Osuna, R. Freund and F. Girosi, *An Improved Training Algorithm for Support
Vector Machines*, NNSP 1997. T. Joachims, *Making Large-Scale SVM Learning Practical*, 1999.
A. Vedaldi and A. Zisserman, *Sparse Kernel Approximations for Efficient Classification and
Detection*, CVPR 2012.
"""

from typing import Any

import numpy as np

from hilbin import parallel
from hilbin._arrays import Array
from hilbin.solvers.bundle import inner_products
from hilbin.solvers.coded import PAIR_BYTES, PairRows
from hilbin.solvers.gram import GramRows
from hilbin.solvers.linear import Counted, descend
from hilbin.solvers.problem import Callback, Problem, Result
from hilbin.solvers.risk import LEAST_VALUE, Risk, require_finite

FIRST = 512  # rows of the first working set
GROWTH, LEAST_GROWTH = 0.5, 64  # rows that join a set: share of those with a coefficient, or more
SHARE, LAST_SHARE = 0.1, 0.3  # of the gap, and of the tolerance, to which a set is solved
MOST_SWEEPS = 1000  # of a set at a time, counted in visits of all its rows
MOST_NODES = 128  # of a column: a row has products with all of them
MOST_ROWS = 5000  # of a set
MOST_ENTRIES = 1000  # of kernel matrices for every row and task: about a hundred cutting planes
ENTRY, ROW = 600, 160  # pairs that take as long to read as all else for an entry, and for a plane
MOST_KEPT = 1 << 28  # bytes of the kernel matrices of all tasks


def has_working_sets(risk: Any, inner: Any) -> bool:
    """Tell whether :func:`working_sets` solves a problem, if its sets do not grow too large."""
    rows = getattr(risk, "rows", None)
    if not isinstance(rows, PairRows) or not risk.loss.quadratic:
        return False
    return bool(1 < rows.n_nodes == inner.nodes.size <= MOST_NODES)


def working_sets(
    risk: Risk,
    inner: Any,
    lam: float = 1.0,
    *,
    tol: float = 1e-3,
    max_iter: int = 1000,
    seed: int = 0,
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> Result | None:
    """Minimize regularized risks of pairs of neighbors by descents on working sets.

    Parameters
    ----------
    risk : Risk
        The risk of :class:`~hilbin.solvers.coded.PairRows`, with a loss whose dual is quadratic.
    inner : NodeInner
        Inner product of the features.
    lam : float, default=1.0
        Weight of the regularizer.
    tol : float, default=1e-3
        Largest gap, relative to the objective.
    max_iter : int, default=1000
        Largest number of passes over the rows.
    seed : int, default=0
        Random seed of the first set, and of the order of visits.
    n_jobs : int, optional
        Threads of the descents, each of which solves other tasks.
    callback : callable, optional
        Called after every pass with the number of passes and the largest relative gap; false ends
        the descent. A keyboard interrupt ends it as well: the weights of the last pass are
        returned, not converged, after a last call with -1.

    Returns
    -------
    result : Result or None
        As of :func:`~hilbin.solvers.bundle`, with the coefficients of the rows as ``dual``; None if
        the problem needs another solver.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.kernels import Intersection
    >>> from hilbin.maps import SparseMap
    >>> from hilbin.solvers import Hinge, Risk
    >>> from hilbin.solvers.coded import PairRows
    >>> from hilbin.solvers.working_sets import working_sets
    >>> X = np.array([[0.5], [1.0], [2.0], [3.0]])
    >>> feature_map = SparseMap(Intersection(), spacing=[1.0, 2.0, 3.0]).fit(X)
    >>> rows = PairRows(feature_map.transform(X), n_nodes=3)
    >>> risk = Risk(rows, Hinge(), np.array([-1.0, -1.0, 1.0, 1.0]), 10.0, constant=1.0)
    >>> working_sets(risk, feature_map.inner_).coef.round(1)
    array([[ 0.,  2.,  2., -1.]], dtype=float32)
    """
    return _WorkingSets(risk, inner, lam, tol, seed, n_jobs).minimize(max_iter, callback)


class _WorkingSets:
    """The tasks of a risk; ``V`` has the weights of the last pass, a row for each."""

    def __init__(
        self, risk: Risk, inner: Any, lam: float, tol: float, seed: int, n_jobs: int | None
    ) -> None:
        self.risk, self.inner, self.lam, self.tol = risk, inner, lam, tol
        self.seed, self.n_jobs = seed, n_jobs
        rows: Any = risk.rows
        self.rows = rows
        self.matrix = inner.matrix()
        used = np.flatnonzero(risk.weights)
        sample = used
        if used.size > 2 * FIRST:
            sample = np.random.default_rng(seed).choice(used, FIRST, replace=False)
        gram = self.rows.gram(sample, np.empty((0, 0)), self.matrix)
        self.tasks = [_Task(self._problem(k), sample, gram) for k in range(risk.tasks)]
        self.V = np.zeros((risk.tasks, risk.size), np.float32)

    def _problem(self, task: int) -> Problem:
        unused = self.risk.weights == 0
        weights = np.where(unused, 1.0, self.risk.weights) / self.lam
        targets, constant = self.risk.targets[:, task], self.risk.root**2
        problem = self.risk.loss.problem(targets, weights, constant=constant)
        return problem.without(unused) if unused.any() else problem

    def minimize(self, max_iter: int, callback: Callback | None) -> Result | None:
        """Solve sets and score all rows, until all tasks have converged."""
        n_iter, going, left = 0, True, list(range(len(self.tasks)))
        try:
            while going and left and n_iter < max_iter:
                self._solve(left)
                self._score(left)
                n_iter += 1
                gap = max(task.relative_gap for task in self.tasks)
                going = callback is None or callback(n_iter, gap)
                left = [k for k in left if self.tasks[k].relative_gap > self.tol]
                if going and n_iter < max_iter and not self._renew(left, n_iter):
                    return None
        except KeyboardInterrupt:
            if callback is None or n_iter == 0:
                raise
            callback(-1, np.nan)
        return self._result(n_iter, not left)

    def _solve(self, left: list[int]) -> None:
        def solve(begin: int, end: int) -> None:
            for k in left[begin:end]:
                self.tasks[k].solve(self.tol, self.seed)

        parallel.run(solve, parallel.ranges(len(left), 1), self.n_jobs)

    def _score(self, left: list[int]) -> None:
        """Find the weights of some tasks, and from the scores of all rows their gaps."""
        C = np.stack([self.tasks[k].coef for k in left], axis=1)
        V = inner_products(self.inner, self.risk.gradient(C.astype(np.float32)))
        require_finite(V)
        S = self.rows.scores(V[:, : self.rows.shape[1]])
        for k, v, scores in zip(left, V, S.T.astype(np.float64), strict=True):
            self.V[k] = v
            self.tasks[k].learn(scores)

    def _renew(self, left: list[int], n_iter: int) -> bool:
        """Make new sets of some tasks; tell whether all have one that pays."""
        tasks, n = [self.tasks[k] for k in left], self.rows.shape[0]
        pairs = self.rows.nbytes / (PAIR_BYTES * n)
        most = MOST_ENTRIES * n * len(self.tasks) * (ROW + pairs) / (ENTRY + pairs)
        if n_iter == 1 and sum(task.wanted**2 for task in tasks) > most:
            return False
        entries = 0
        for task in tasks:
            which, known = task.next_set()
            entries += which.size**2
            fits = 4 * entries <= max(MOST_KEPT, self.rows.nbytes)
            if not 0 < which.size <= MOST_ROWS or entries > most or not fits:
                return False
            task.which, task.gram = which, self.rows.gram(which, known, self.matrix)
        return True

    def _result(self, n_iter: int, converged: bool) -> Result:
        found = [task.found for task in self.tasks]
        values = self.lam * np.array([(f.objective, f.gap) for f in found])
        require_finite(values)
        objective: Any = values[:, 0]
        gap: Any = values[:, 1]
        duals = np.stack([f.coef for f in found])
        return Result(self.V, duals, objective, gap, n_iter, converged)


class _Task:
    """One task: the coefficients of all rows, and its working set with its kernel matrix."""

    found: Result  # the last certified one

    def __init__(self, problem: Problem, which: Array, gram: Array) -> None:
        self.problem, self.which, self.gram = problem, which, gram
        self.coef = np.zeros(problem.linear.size)
        self.relative_gap = np.inf

    def solve(self, tol: float, seed: int) -> None:
        """Descend on the working set."""
        all_rows = self.which.size == self.coef.size
        gap = 0.0 if all_rows else min(1.0, self.relative_gap)
        within = max(SHARE * gap, LAST_SHARE * tol)
        rows, problem = Counted(GramRows(self.gram)), self.problem.restricted(self.which)
        start = self.coef[self.which]
        found = descend(rows, problem, within, MOST_SWEEPS, seed, None, start)
        self.coef = np.zeros_like(self.coef)
        self.coef[self.which] = found.coef

    def learn(self, scores: Array) -> None:
        """Certify the coefficients by the scores of all rows, without the intercept."""
        intercept = self.problem.constant * float(self.coef.sum())
        self.found = self.problem.certified(self.coef, scores, intercept, 0, False)
        self.relative_gap = self.found.gap / max(abs(self.found.objective), LEAST_VALUE)
        gradient = scores + intercept - self.problem.linear + self.problem.diagonal * self.coef
        violations = np.maximum(*self.problem.gains(self.coef, gradient))
        violations[self.which] = -np.inf
        self.new = np.flatnonzero(violations > 0)
        self.violations = violations[self.new]
        self.wanted = self.new.size + np.count_nonzero(self.coef)

    def next_set(self) -> tuple[Array, Array]:
        """Return the next set, rows that are new first, and the kernel matrix of the others.

        The rows stay if no other violates its conditions.
        """
        place, new = np.flatnonzero(self.coef[self.which]), self.new
        most = max(LEAST_GROWTH, int(GROWTH * place.size))
        if new.size > most:
            new = new[np.argpartition(-self.violations, most)[:most]]
        if not new.size:
            place = np.arange(self.which.size)
        return np.concatenate([new, self.which[place]]), self.gram[np.ix_(place, place)]
