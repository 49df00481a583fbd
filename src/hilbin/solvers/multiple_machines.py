r"""Machines with a weighted sum of kernels, as :func:`~hilbin.solvers.multiple.multiple` asks for.

Every function here returns ``solve(weights, last, tol)``, the machine of given weights. All are
certified alike, from their dual variables :math:`A` (a column per class or target) alone: the
products :math:`P_j = K_j A` give the energies :math:`q_j = \langle A, P_j \rangle` and the scores
:math:`\sum_j \beta_j P_j + b`, in float64 whatever the matrices are stored in.

- **Support vector machines**, one against the rest: :math:`s = \sum_{ic} y_{ic} a_{ic}`, by
  :func:`~hilbin.solvers.smo`, from the dual variables of the last weights: these are feasible for
  any weights, as the constraints do not contain the kernel.
- **Crammer and Singer's machine**: :math:`s = \sum_i a_{i y_i}`, with a penalized intercept, which
  is a kernel of constant value :math:`B` and fixed weight 1.
- **Least squares** :math:`\tfrac1{2\alpha} \sum_i w_i r_i^2` of the residuals :math:`r`:
  :math:`s = \langle A, T \rangle - \tfrac\alpha2 \sum_i a_i^2 / w_i`, by a Cholesky decomposition.
  From explicit features :math:`Z_j` the centered sums :math:`S = Z^\top Z`,
  :math:`V = Z^\top T` and :math:`T^\top T` are enough: with the coefficients :math:`W` it is
  :math:`Z_j^\top A = (V - S W)_j / \alpha` and :math:`q_j = \|Z_j^\top A\|^2`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from scipy.linalg import get_blas_funcs

from hilbin import parallel
from hilbin._arrays import Array
from hilbin.solvers.crammer_singer import crammer_singer
from hilbin.solvers.gram import LazyRows, gram_rows
from hilbin.solvers.kernel_ridge import kernel_ridge
from hilbin.solvers.multiple import Solve, Trial
from hilbin.solvers.problem import Problem
from hilbin.solvers.ridge import ridge
from hilbin.solvers.smo import smo
from hilbin.stats import Moments

CACHED = 1 << 17  # bytes of a sum that is added up at a time
FEWEST, MANY = 500, 0.4  # rows of a matrix, and share of them, that are added up at once
BATCH = 32  # rows that are added up together if they were not expected
MOST_SWEEPS, MOST_STEPS = 10_000, 100_000_000  # of Crammer and Singer's machine; of others


class Grams(Protocol):
    """Several Gram matrices of the same rows."""

    def matrix(self, weights: Array) -> Array:
        """Return their weighted sum."""

    def combined(self, weights: Array, few: Array | None = None) -> Any:
        """Return their weighted sum, as :func:`~hilbin.solvers.smo` takes it.

        ``few`` says that maybe few rows of it are needed, these among them.
        """

    def products(self, coef: Array) -> Array:
        """Return all ``K_j @ coef`` in float64, of shape (m, n, c)."""


class StoredGrams:
    """Gram matrices in memory.

    Parameters
    ----------
    matrices : sequence of arrays of shape (n, n)
        Symmetric matrices, float32 or float64.
    factors : array of shape (m,), optional
        Numbers that the matrices are multiplied by, 1 by default; they stay as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers.multiple_machines import StoredGrams
    >>> grams = StoredGrams([np.eye(2), np.ones((2, 2))])
    >>> grams.matrix(np.array([0.5, 0.5]))
    array([[1. , 0.5],
           [0.5, 1. ]])
    >>> grams.products(np.array([[1.0], [0.0]]))[1].ravel()
    array([1., 1.])
    """

    def __init__(self, matrices: Sequence[Array], factors: Array | None = None) -> None:
        self.rows = [gram_rows(K) for K in matrices]
        self.factors = np.ones(len(self.rows)) if factors is None else factors
        self.axpy = get_blas_funcs("axpy", [self.rows[0].gram])

    def matrix(self, weights: Array) -> Array:
        """Return the weighted sum."""
        first, terms = self.rows[0].gram, self._terms(weights)
        K = np.empty_like(first)
        for b, e in parallel.ranges(len(K), max(1, CACHED // max(1, first[:1].nbytes))):
            self._add(terms, slice(b, e), K[b:e].reshape(-1))
        return K

    def _terms(self, weights: Array) -> list[tuple[float, Array]]:
        """Return the weights that are not 0, times their factors, and their matrices."""
        weights = weights * self.factors
        used = np.flatnonzero(weights).tolist() or [0]
        return [(float(weights[j]), self.rows[j].gram) for j in used]

    def _add(self, terms: list[tuple[float, Array]], rows: Any, out: Array) -> None:
        """Put the weighted sum of some rows, one after another, into ``out``."""
        weight, K = terms[0]
        np.multiply(K[rows].reshape(-1), weight, out=out)
        for weight, K in terms[1:]:
            self.axpy(K[rows].reshape(-1), out, a=weight)

    def combined(self, weights: Array, few: Array | None = None) -> Any:
        """Return the weighted sum, as solvers take it."""
        n = len(self.rows[0].norms)
        if few is None or few.size > MANY * n or n < FEWEST:
            return gram_rows(self.matrix(weights))

        terms = self._terms(weights)

        def compute(rows: Array) -> Array:
            out = np.empty((rows.size, n), terms[0][1].dtype)
            for row, i in zip(out, rows.tolist(), strict=True):
                self._add(terms, i, row)
            return out

        diagonal = np.array([rows.norms for rows in self.rows]).T @ (weights * self.factors)
        lazy = LazyRows(compute, diagonal, 4 * n * (n + 3 * BATCH), BATCH)
        if few.size:
            lazy.fetch(few)
        return lazy

    def products(self, coef: Array) -> Array:
        """Return all ``K_j @ coef`` in float64."""
        pairs = zip(self.factors, self.rows, strict=True)
        return np.array([factor * rows.scores(coef) for factor, rows in pairs])


class Machine(NamedTuple):
    """The dual variables of a machine, of shape (n, c), and its intercepts."""

    coef: Array
    intercept: Array


def svm_trials(
    grams: Grams,
    problems: Sequence[Problem],
    *,
    exact: tuple[float, int] | None = None,
    n_jobs: int | None = None,
) -> Solve:
    """Return the machines with a free intercept of several problems with the same kernel.

    Parameters
    ----------
    grams : StoredGrams, or alike
        The Gram matrices.
    problems : sequence of Problem
        As :func:`~hilbin.solvers.smo` takes them.
    exact : (float, int), optional
        Tolerance and limit of the steps to solve them to, whatever is asked for.
    n_jobs : int, optional
        Threads, each with a problem.

    Returns
    -------
    solve : callable

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import Hinge
    >>> from hilbin.solvers.multiple import multiple
    >>> from hilbin.solvers.multiple_machines import StoredGrams, svm_trials
    >>> y = np.array([1.0, 1.0, -1.0, -1.0])
    >>> grams = StoredGrams([np.outer(y, y), np.eye(4)])
    >>> problem = Hinge().problem(y, np.ones(4), total=0.0)
    >>> multiple(svm_trials(grams, [problem]), 2).weights.round(2)
    array([1., 0.])
    """

    jobs, limits = min(effective_n_jobs(n_jobs), len(problems)), _limits(exact, MOST_STEPS)

    def expected(last: Machine | None) -> Array | None:
        if jobs > 1 or (last is None and len(problems) > 1):
            return None  # rows that come and go are for one thread
        return np.flatnonzero(np.zeros(0) if last is None else last.coef.any(axis=1))

    def solve(weights: Array, last: Machine | None, tol: float) -> Trial:
        rows = grams.combined(weights, expected(last))
        found: dict[int, Any] = {}

        def task(k: int, _: int) -> None:
            start = None if last is None else np.ascontiguousarray(last.coef[:, k])
            found[k] = smo(rows, problems[k], start=start, **limits(tol))

        parallel.run(task, parallel.ranges(len(problems), 1), jobs)
        results = [found[k] for k in range(len(problems))]
        coef = np.column_stack([r.coef for r in results])
        machine = Machine(coef, np.array([r.intercept for r in results], np.float64))
        energies, scores = certificate(grams, weights, machine)
        columns = zip(problems, coef.T, scores.T, strict=True)
        gain = loss = 0.0
        for problem, a, f in columns:
            gain += float(problem.linear @ a)
            loss += float(problem.losses(f).sum())
        return Trial(gain, loss, energies, machine)

    return solve


def _limits(exact: tuple[float, int] | None, max_iter: int) -> Callable[[float], dict[str, Any]]:
    """Return the function from a tolerance that is asked for to the options of a solver."""
    if exact is None:
        return lambda tol: {"tol": tol, "max_iter": max_iter}
    return lambda tol: {"tol": exact[0], "max_iter": exact[1]}


def certificate(grams: Grams, weights: Array, machine: Machine) -> tuple[Array, Array]:
    """Return the energies of dual variables, and the scores of all rows.

    Parameters
    ----------
    grams : StoredGrams, or alike
        The Gram matrices.
    weights : array of shape (m,)
        Their weights.
    machine : Machine
        Dual variables and intercepts.

    Returns
    -------
    energies, scores : arrays of shape (m,) and (n, c)
    """
    products = grams.products(machine.coef)
    energies = np.einsum("mnc,nc->m", products, machine.coef)
    return energies, np.tensordot(weights, products, 1) + machine.intercept


def crammer_singer_trials(
    grams: Grams,
    labels: Array,
    costs: Array,
    *,
    n_classes: int,
    constant: float = 1.0,
    exact: tuple[float, int] | None = None,
    seed: int = 0,
) -> Solve:
    """Return Crammer and Singer's machines of all classes.

    Parameters
    ----------
    grams : StoredGrams, or alike
        The Gram matrices.
    labels, costs, n_classes, constant, seed
        As in :func:`~hilbin.solvers.crammer_singer`.
    exact : (float, int), optional
        Tolerance and limit of the sweeps to solve them to, whatever is asked for.

    Returns
    -------
    solve : callable
    """
    every = np.arange(labels.size)
    limits = _limits(exact, MOST_SWEEPS)

    def solve(weights: Array, last: Machine | None, tol: float) -> Trial:
        rows, start = grams.combined(weights), None if last is None else last.coef
        result = crammer_singer(
            rows, labels, costs, n_classes=n_classes, constant=constant,
            start=start, seed=seed, **limits(tol),
        )  # fmt: skip
        sums = result.coef.sum(axis=0)
        machine = Machine(result.coef, constant * sums)
        energies, scores = certificate(grams, weights, machine)
        fixed = 0.5 * constant * float(sums @ sums)
        above = scores - scores[every, labels][:, None] + 1
        above[every, labels] -= 1
        loss = float(costs @ above.max(axis=1))
        gain = float(result.coef[every, labels].sum())
        return Trial(gain - fixed, loss + fixed, energies, machine)

    return solve


def ridge_trials(
    grams: Grams,
    targets: Array,
    alpha: float,
    *,
    weight: Array | None = None,
    fit_intercept: bool = True,
) -> Solve:
    """Return ridge regressions with Gram matrices.

    Parameters
    ----------
    grams : StoredGrams, or alike
        The Gram matrices.
    targets : array of shape (n, c)
        Targets.
    alpha : float
        Penalty, above 0.
    weight : array of shape (n,), optional
        Numbers of copies of every row, above 0.
    fit_intercept : bool, default=True
        Whether there is an intercept.

    Returns
    -------
    solve : callable
    """
    weight = np.ones(len(targets)) if weight is None else weight
    once = weight[:, None]

    def solve(weights: Array, last: Any, tol: float) -> Trial:
        result = kernel_ridge(
            grams.matrix(weights), targets, alpha, weight=weight, fit_intercept=fit_intercept
        )
        machine = Machine(result.coef, np.asarray(result.intercept))
        energies, scores = certificate(grams, weights, machine)
        loss = float((once * np.square(targets - scores)).sum()) / (2 * alpha)
        curved = 0.5 * alpha * float((np.square(result.coef) / once).sum())
        return Trial(float((result.coef * targets).sum()) - curved, loss, energies, machine)

    return solve


@dataclass(frozen=True)
class GroupedSums:
    """Centered sums of features in groups and of targets.

    Parameters
    ----------
    moments : Moments
        The sums.
    groups : sequence of arrays of int
        The features of every group.
    scales : array of shape (m,)
        What the kernel of every group is divided by.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers.multiple import multiple
    >>> from hilbin.solvers.multiple_machines import GroupedSums
    >>> from hilbin.stats import Moments
    >>> Z = np.random.default_rng(0).normal(size=(50, 3))
    >>> sums = GroupedSums.of(Moments.of(Z, Z[:, :1]), [np.array([0, 1]), np.array([2])])
    >>> multiple(sums.trials(0.1), 2).weights.round(2)
    array([1., 0.])
    """

    moments: Moments
    groups: Sequence[Array]
    scales: Array

    @classmethod
    def of(cls, moments: Moments, groups: Sequence[Array], *, normalize: bool = True) -> Self:
        """Return the sums, with every kernel over its variance in feature space if asked for."""
        diagonal = np.diag(moments.scatter)
        spread = np.array([diagonal[g].sum() for g in groups]) / moments.n
        return cls(moments, groups, spread if normalize else np.ones(len(groups)))

    def factors(self, weights: Array) -> Array:
        """Return what every feature is multiplied by so that its kernel has its weight."""
        found = np.zeros(self.moments.mean.size)
        for group, weight, scale in zip(self.groups, weights, self.scales, strict=True):
            found[group] = np.sqrt(weight / scale)
        return found

    def scaled(self, weights: Array) -> Moments:
        """Return the moments of the features that have a weight, times their factors."""
        factors = self.factors(weights)
        return self.moments.project(sp.diags_array(factors).tocsr()[np.flatnonzero(factors)])

    def trials(self, alpha: float) -> Solve:
        """Return ridge regressions on the features of all groups.

        Parameters
        ----------
        alpha : float
            Penalty, above 0.

        Returns
        -------
        solve : callable
            Its solutions are coefficients of the features, and intercepts.
        """
        return partial(self._solve, alpha)

    def _solve(self, alpha: float, weights: Array, last: Any, tol: float) -> Trial:
        m, factors = self.moments, self.factors(weights)
        used = np.flatnonzero(factors)
        W = np.zeros_like(m.cross)
        W[used] = factors[used, None] * ridge(self.scaled(weights), alpha).coef
        SW = m.scatter @ W
        pull = (m.cross - SW) / alpha  # Z' A
        energies = np.array([np.square(pull[g]).sum() for g in self.groups]) / self.scales
        squares, fitted = float(m.target_squares.sum()), float((W * m.cross).sum())
        errors = squares - 2 * fitted + float((W * SW).sum())
        gain = (squares - fitted) / alpha - errors / (2 * alpha)
        machine = Machine(W, m.target_mean - m.mean @ W)
        return Trial(gain, errors / (2 * alpha), energies, machine)
