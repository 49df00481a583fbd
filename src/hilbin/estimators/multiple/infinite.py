r"""Support vector classification with the best of infinitely many kernels.

The kernels are families :math:`k_\gamma(x, y) = f(\gamma\, d(x, y))` with any :math:`\gamma > 0`,
and the model is the optimum over all their weighted sums with weights that sum to 1. It is found by
column generation: solve for the kernels so far (:mod:`hilbin.solvers.multiple`), look for the
kernel of the largest energy :math:`q(\gamma) = \sum_c a_c^\top K_\gamma a_c`, and add it, until
none has more than those in use. With the dual variables :math:`a` of the lower bound, of gain
:math:`s`, and the value :math:`J`,

.. math:: J - \Bigl(s - \tfrac12 \max_\gamma q(\gamma)\Bigr)

is how far the model can be above the optimum over the whole family, if the search has found the
largest energy: it tries :math:`\ln \gamma` on a grid about the median rule, and then between the
neighbors of the best (Brent's method).

**Reference.** P. Gehler and S. Nowozin, *Infinite Kernel Learning*, NIPS workshop on kernel
learning, 2008.
"""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from hilbin._arrays import Array, Matrix
from hilbin._parameters import estimator, require_positive, require_whole
from hilbin._state import require, require_attributes
from hilbin.estimators._fit import Fit, Pair
from hilbin.estimators.kernel.gram import resolved
from hilbin.estimators.kernel.machine import STEPS
from hilbin.estimators.multiple.base import Training
from hilbin.estimators.multiple.grams import TiledGrams, gram_of
from hilbin.estimators.multiple.svc import TOGETHER, MultipleSupportModel, Sums, exactly
from hilbin.kernels import Gaussian, Kernel, OnColumns
from hilbin.solvers import Problem, Result, smo
from hilbin.solvers.multiple import MultipleResult, Solve, Trial, multiple
from hilbin.solvers.multiple_machines import Grams, Machine, StoredGrams, svm_trials

GRID = np.linspace(-6.0, 6.0, 25)  # of ln gamma, about that of the median rule
FIRST = 0.1  # weight of a new kernel
LEAST = 1e-6  # weight of a kernel that is kept


def with_gamma(kernel: Any, gamma: Any) -> Any:
    """Return a kernel with another ``gamma``, its own or that of the kernel inside it."""
    if hasattr(kernel, "gamma"):
        return kernel.replace(gamma=gamma)
    if isinstance(getattr(kernel, "kernel", None), Kernel):
        return kernel.replace(kernel=with_gamma(kernel.kernel, gamma))
    raise ValueError(f"kernels: {kernel!r} has no gamma, so it is not a family of kernels")


def gamma_of(kernel: Any) -> float:
    """Return the ``gamma`` of a kernel, or of the kernel inside it."""
    return float(kernel.gamma) if hasattr(kernel, "gamma") else gamma_of(kernel.kernel)


@estimator
class InfiniteKernelSVC(MultipleSupportModel):
    r"""Support vector machine on the best weighted sum of all kernels from given families.

    It minimizes :math:`\tfrac12 \sum_j \|v_j\|^2 / \beta_j + \sum_i C_i \max(0, 1 - y_i f(x_i))`
    over :math:`f(x) = \sum_j \langle v_j, \phi_j(x) \rangle + b`, weights :math:`\beta \ge 0` that
    sum to 1, and the ``gamma`` of every kernel: no bandwidth has to be chosen.

    Parameters
    ----------
    kernels : list or dict of kernels, or None, default=None
        Families: kernels that have a ``gamma``, whose value does not count, such as ``Gaussian()``
        or ``Exponential(Chi2())``, or kernels around such ones. Several families, as on different
        columns, are one large family. ``None`` is ``[Gaussian()]``.
    kernel_tol : float, default=1e-3
        Share by which the energy of a new kernel must exceed those in use, to be added.
    max_kernels : int, default=50
        Largest number of kernels that are tried.
    tol : float, default=1e-4
        Duality gap over the objective to which weights are learned before a kernel is added.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
        Weights of the kernels in ``kernels_``, which were chosen.
    gammas_ : ndarray of shape (n_kernels,)
        Their ``gamma``.
    family_gap_ : float
        How far the objective can be above the optimum over the whole family.
    objectives_ : ndarray
        The objective before every new kernel, and the last.

    See Also
    --------
    MultipleKernelSVC : The kernels are given.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.estimators import InfiniteKernelSVC
    >>> X = np.random.default_rng(0).uniform(size=(150, 1))
    >>> y = np.sin(30 * X[:, 0]) > 0
    >>> model = InfiniteKernelSVC(C=10.0).fit(X, y)
    >>> bool(model.family_gap_ < 2e-3 * model.objective_[0])
    True
    >>> bool(np.all(np.diff(model.objectives_) < 0))
    True
    """

    _: KW_ONLY
    kernel_tol: float = 1e-3
    max_kernels: int = 50
    tol: float = 1e-4

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_positive("kernel_tol", self.kernel_tol)
        require_whole("max_kernels", self.max_kernels, 1)
        if self._precomputed:
            raise ValueError(
                'kernels="precomputed" is not a family: give kernels that have a gamma'
            )
        for _, kernel in self._named():
            with_gamma(kernel, 1.0)

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the arrays of a loaded model do not fit together."""
        if "support_" in vars(self):
            found = require_attributes(self, weights_="float[m]", gammas_="float[m]")
            require(found["m"] >= 1, "there are no kernels")

    def _resolve(self, rows: Matrix, random: Any) -> None:
        """Keep a kernel of every family, by the median rule."""
        families = [kernel for _, kernel in self._named()] or [Gaussian()]
        names = getattr(self, "feature_names_in_", None)
        self.kernels_ = [resolved(with_gamma(k, "median"), rows, random, names) for k in families]
        given = isinstance(self.kernels, dict)
        self.kernel_names_ = [str(n) for n, _ in self._named()] if given else [*map(str, families)]

    def _shapes(self, training: Training) -> list[tuple[int, ...]]:
        return [(training.index.size, columns) for columns in self._columns()]

    def _solve(self, training: Training, starts: Sequence[Any] | None, data: Pair) -> list[Array]:
        problems = self._problems(training)
        search = Search(self, training, problems)
        with Fit(self, *data, [TOGETHER], "round") as fit:
            results: Any = fit.solve(
                search.run, tol=self.tol, max_iter=self.max_iter, starts=starts, n_jobs=1
            )
            self._keep_family(search, results[0])
            self._keep(fit, training, [replace(results[0], weights=self.weights_)])
        if self.probability:
            again = replace(training, grams=search.grams)
            sums = Sums(again, search.weights)

            def solver(k: int, left_out: Array, **course: Any) -> Result:
                return sums.scored(smo(sums.rows, problems[k].without(left_out), **course))

            self._learn_probabilities(again, solver, [*results[0].coef.T])
        return [r.dual for r in results]

    def _keep_family(self, search: "Search", result: MultipleResult) -> None:
        """Keep the kernels that have a weight."""
        used = np.flatnonzero(result.weights >= LEAST)
        self.kernels_ = [search.kernels[j] for j in used]
        self.kernel_names_ = [self.kernel_names_[search.origins[j]] for j in used]
        self.weights_ = result.weights[used] / result.weights[used].sum()
        self.scales_ = np.ones(used.size)
        self.gammas_ = np.array([gamma_of(kernel) for kernel in self.kernels_])
        self.family_gap_ = float(search.family_gap)
        self.objectives_ = np.array(search.objectives)


def recorded(trials: Solve, tried: list[Trial]) -> Solve:
    """Return machines that are also put on a list."""

    def solve(weights: Array, last: Any, tol: float) -> Trial:
        tried.append(trials(weights, last, tol))
        return tried[-1]

    return solve


def energies(family: Any, X: Matrix, coef: Array, n_jobs: int | None) -> Callable[[float], float]:
    """Return the function of ``gamma`` that is the energy of a kernel of the family.

    The distances of an exponential are computed once, not for every ``gamma``.
    """
    D = distances_of(family, X, n_jobs)

    def energy(gamma: float) -> float:
        if D is None:
            K = with_gamma(family, gamma)._gram(X, None, n_jobs)
        else:
            K = np.multiply(D, -gamma)
            np.exp(K, out=K)
        return float(np.sum(coef * (K @ coef)))

    return energy


def distances_of(kernel: Any, X: Matrix, n_jobs: int | None) -> Array | None:
    """Return the distances of a kernel ``exp(-gamma d)``, maybe on columns; None for others."""
    if kernel._exponential:
        return np.asarray(kernel._distances(X, None, n_jobs))
    if isinstance(kernel, OnColumns):
        return distances_of(kernel.kernel, kernel._taken(X), n_jobs)
    return None


def largest(energy: Callable[[float], float], middle: float) -> tuple[float, float]:
    """Return the ``gamma`` of the largest energy, and that."""

    def minus(place: float) -> float:
        return -energy(middle * float(np.exp(place)))

    values = [minus(place) for place in GRID]
    k = int(np.argmin(values))
    ends = GRID[max(k - 1, 0)], GRID[min(k + 1, GRID.size - 1)]
    closer = minimize_scalar(minus, bounds=ends, method="bounded", options={"xatol": 1e-3})
    place, value = min([(closer.x, closer.fun), (GRID[k], values[k])], key=lambda p: p[1])
    return middle * float(np.exp(place)), -float(value)


class Search:
    """Column generation: kernels so far, and the best one to add."""

    def __init__(
        self, model: InfiniteKernelSVC, training: Training, problems: list[Problem]
    ) -> None:
        self.model, self.training, self.problems = model, training, problems
        self.grams: Grams = training.grams
        self.X = training.X[training.index]
        self.kernels: list[Any] = [*model.kernels_]
        self.families = [*model.kernels_]
        self.origins = [*range(len(self.families))]
        self.objectives: list[float] = []
        self.family_gap = np.inf
        self.weights = np.full(len(self.kernels), 1 / len(self.kernels))

    def run(
        self, _: int, *, tol: float, max_iter: int, start: Array | None, callback: Any
    ) -> MultipleResult:
        """Solve and add kernels, until no kernel is worth it."""
        machine = None if start is None else Machine(start, np.zeros(start.shape[1]))
        rounds, history, going = 0, [], True
        exact = exactly(self.training, STEPS)

        def watch(n_iter: int, gap: float) -> bool:
            nonlocal going
            going = callback is None or callback(rounds + n_iter, gap)
            return going

        while True:
            tried: list[Trial] = []
            jobs = self.model._threads(replace(self.training, grams=self.grams))
            trials = svm_trials(self.grams, self.problems, exact=exact, n_jobs=jobs)
            result = multiple(
                recorded(trials, tried), len(self.kernels), tol=tol, max_iter=max_iter,
                start=(self.weights, machine), callback=watch,
            )  # fmt: skip
            machine, self.weights = result.solution, result.weights
            rounds += result.n_iter
            history.append(result.history)
            self.objectives.append(float(result.objective))
            best, complete = self._look(result, tried)
            full = len(self.kernels) >= self.model.max_kernels
            if complete or full or not going or not result.converged:
                break
            self._add(*best)
        return replace(
            result, coef=machine.coef, intercept=machine.intercept, dual=machine.coef,
            n_iter=rounds, history=np.vstack(history), solution=None,
            converged=bool(result.converged and complete),
        )  # fmt: skip

    def _look(self, result: MultipleResult, tried: list[Trial]) -> tuple[tuple[int, Any], bool]:
        """Return the kernel of the largest energy, and whether those in use have as much."""
        pairs = [*zip(result.shares, tried, strict=False)]
        dual = sum(share * trial.solution.coef for share, trial in pairs)
        gain = sum(share * trial.gain for share, trial in pairs)
        some = np.flatnonzero(dual.any(axis=1))
        best, most, known = (0, self.kernels[0]), 0.0, 0.0
        for j, family in enumerate(self.families):
            energy = energies(family, self.X[some], dual[some], self.model.n_jobs)
            mine = [gamma_of(k) for k, i in zip(self.kernels, self.origins, strict=True) if i == j]
            known = max(known, *map(energy, mine))
            gamma, found = largest(energy, gamma_of(family))
            if found > most:
                best, most = (j, with_gamma(family, gamma)), found
        self.family_gap = result.objective - (gain - 0.5 * max(most, known))
        return best, most <= (1 + self.model.kernel_tol) * known

    def _add(self, family: int, kernel: Any) -> None:
        """Add a kernel, with some of the weight of the others."""
        self.kernels.append(kernel)
        self.origins.append(family)
        self.weights = np.append((1 - FIRST) * self.weights, FIRST)
        memory, n_jobs = int(self.model.memory * 2**20), self.model.n_jobs
        if isinstance(self.grams, StoredGrams):
            known = [rows.gram for rows in self.grams.rows]
            dtype = known[0].dtype
            if known[0].nbytes * (len(known) + 2) <= memory:
                self.grams = StoredGrams([*known, gram_of(kernel, self.X, dtype, n_jobs)])
                return
        else:
            dtype = self.grams.dtype  # type: ignore[attr-defined]
        self.grams = TiledGrams(self.kernels, self.X, dtype, memory, n_jobs)
