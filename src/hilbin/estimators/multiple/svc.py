r"""Support vector classification with several kernels, whose weights are learned.

:math:`f(x) = b + \sum_j \beta_j \sum_i a_i k_j(x_i, x)`, where the weights :math:`\beta` of the
kernels and the coefficients :math:`a` minimize one convex function,
:mod:`hilbin.solvers.multiple`. More than two classes are machines of one class against the rest,
which share the weights or have weights of their own, or Crammer and Singer's machine.
"""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from hilbin._arrays import Array
from hilbin._parameters import estimator, require_choice, require_positive
from hilbin.estimators._fit import (
    SMALL,
    CostPath,
    Fit,
    Pair,
    last_duals,
    solve_again,
    with_callbacks,
)
from hilbin.estimators._sizes import checked_costs
from hilbin.estimators.kernel.machine import EXACT_TOL, STEPS, SWEEPS
from hilbin.estimators.kernel.multiclass import machine_names, one_against_rest
from hilbin.estimators.multiple.base import MultipleKernelClassifier, NormedModel, Training
from hilbin.estimators.multiple.grams import TiledGrams
from hilbin.estimators.probability import row_keys, separate_keys
from hilbin.solvers import Hinge, Problem, Result, smo
from hilbin.solvers.multiple import MultipleResult, Solve, multiple
from hilbin.solvers.multiple_machines import Machine, crammer_singer_trials, svm_trials

TOL_AGAIN = 1e-2  # of the solution without some of the rows
TOGETHER = "all classes"


@estimator
class MultipleSupportModel(CostPath, MultipleKernelClassifier):
    """Base of the support vector machines with several kernels.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss.
    warm_start : bool, default=False
        Whether to start where the last ``fit`` ended, with whatever ``C`` and ``norm``, if it had
        as many rows and kernels.
    """

    C: float = 1.0
    _: KW_ONLY
    warm_start: bool = False

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_positive("C", self.C)

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the model. An interrupt (Ctrl-C) leaves a usable one, marked as not converged.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features), or list of matrices
            Samples, or their Gram matrices.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of ``C``; a weight of 2 is the sample twice, one of 0 no sample.

        Returns
        -------
        self : estimator
        """
        training = self._prepare(X, y, sample_weight)
        self._solve(training, last_duals(self, training), (X, y))
        return self

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> Training:
        return self._labeled(X, y, sample_weight, normalize=self._normalizes)

    @property
    def _normalizes(self) -> bool:
        return False

    def _shapes(self, training: Training) -> list[tuple[int, ...]]:
        """Return the shapes of what a fit starts from; see :func:`_joined`."""
        size = training.index.size + self.scales_.size
        return [(size, columns) for columns in self._columns()]

    def _columns(self) -> list[int]:
        """Return the number of scores of every problem."""
        return [one_against_rest(self.classes_.size).shape[1]]

    def _threads(self, training: Training) -> int | None:
        """Return the number of machines side by side: rows that come and go are for one."""
        return 1 if isinstance(training.grams, TiledGrams) else self.n_jobs

    def _costs(self, training: Training) -> Array:
        return checked_costs(self.C, self._weighted(training))

    def _problems(self, training: Training) -> list[Problem]:
        """Return the problem of every machine of one class against the rest."""
        signs = one_against_rest(self.classes_.size)[training.targets].astype(np.float64)
        costs = self._costs(training)
        return [Hinge().problem(column, costs, total=0.0) for column in signs.T]

    def _keep(self, fit: Fit, training: Training, results: list[MultipleResult]) -> None:
        """Store the model of one result with all scores, or of one for every score."""
        one = len(results) == 1
        self.weights_ = results[0].weights if one else np.array([r.weights for r in results])
        self.history_ = results[0].history if one else [r.history for r in results]
        coef = np.hstack([r.coef for r in results])
        intercept = np.hstack([r.intercept for r in results])
        if self.classes_.size == 2 and coef.shape[1] == 2:  # the difference of two scores
            coef, intercept = coef[:, 1:] - coef[:, :1], intercept[1:] - intercept[:1]
        self._keep_machine(training, coef, intercept)
        fit.keep(results)

    def _learn_probabilities(
        self, training: Training, solver: Callable[..., Result], duals: list[Array]
    ) -> None:
        """Solve again without some of the rows, with the weights of all, and keep a calibration."""

        def scores_without(left_out: Array) -> Array:
            again = solve_again(
                solver, duals, left_out, tol=TOL_AGAIN, max_iter=STEPS[0],
                n_jobs=self._threads(training),
            )  # fmt: skip
            return np.column_stack([r.products[left_out] for r in again])  # type: ignore[attr-defined]

        rows = training.X[training.index]
        keys = separate_keys(rows.shape[0]) if self._precomputed else row_keys(rows)
        self._learn_calibration(keys, training.targets, training.weights, scores_without)


@estimator
class MultipleKernelSVC(MultipleSupportModel, NormedModel):
    r"""Support vector machine on a weighted sum of kernels, whose weights it learns too.

    It minimizes
    :math:`\tfrac12 \sum_j \|v_j\|^2 / \beta_j + \sum_i C_i \max(0, 1 - y_i f(x_i))` over
    :math:`f(x) = \sum_j \langle v_j, \phi_j(x) \rangle + b` and weights
    :math:`\beta \ge 0`, :math:`\|\beta\|_p \le 1`, and tells by the duality gap how far the
    solution can be from the optimum.

    Parameters
    ----------
    weights : {"shared", "per_class"}, default="shared"
        Whether the machines of all classes share one set of weights, or each has its own.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        More than two classes: one class against the rest, or all classes in one problem, whose
        intercept is penalized like a weight.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,) or (n_classes, n_kernels)
        Weights of the kernels, after every kernel was divided by its scale; a row for every class
        with ``weights="per_class"``.

    See Also
    --------
    KernelSVC : One kernel; ``Sum`` of kernels is the plain average, and often as good.
    MapRidge : ``penalty="multiple"`` learns the weights of explicit maps, out of core.

    Notes
    -----
    Weights tell which kernels are used, not which are good: of two kernels that tell the same,
    one may get all the weight. Compare with the plain average of the normalized kernels
    (``norm=numpy.inf``): where every kernel is good, the benchmarks found no weights that beat it
    beyond noise; where some are much worse than others, sparse weights may. Few kernels of a
    weight above 0 (``norm=1``) make prediction faster.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.estimators import MultipleKernelSVC
    >>> from hilbin.kernels import Gaussian, Linear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = np.hypot(*X.T) > 1.2
    >>> model = MultipleKernelSVC({"line": Linear(), "bumps": Gaussian()}, C=10).fit(X, y)
    >>> dict(zip(model.kernel_names_, model.weights_.round(1).tolist()))
    {'line': 0.0, 'bumps': 1.0}
    >>> bool(model.gap_ < 1e-3 * model.objective_)
    True
    """

    _: KW_ONLY
    weights: str = "shared"
    multi_class: str = "ovr"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_choice("weights", self.weights, ("shared", "per_class"))
        require_choice("multi_class", self.multi_class, ("ovr", "crammer_singer"))
        if self._together and self.weights == "per_class":
            raise ValueError(
                'weights="per_class" needs a machine for every class: multi_class="crammer_singer" '
                "has one for all"
            )
        if self._together and self.probability:
            raise ValueError('probability=True is not for multi_class="crammer_singer"')

    @property
    def _normalizes(self) -> bool:
        return bool(self.normalize)

    @property
    def _together(self) -> bool:
        return self.multi_class == "crammer_singer"

    def _columns(self) -> list[int]:
        if self._together:
            return [self.classes_.size]
        return [1] * super()._columns()[0] if self.weights == "per_class" else super()._columns()

    def _solve(self, training: Training, starts: Sequence[Any] | None, data: Pair) -> list[Array]:
        if self._together:
            names, trials = [TOGETHER], [self._trials_together(training)]
        else:
            problems = self._problems(training)
            groups = [[p] for p in problems] if self.weights == "per_class" else [problems]
            book = one_against_rest(self.classes_.size)
            each = machine_names("ovr", book, self.classes_)
            names = each if len(groups) == len(each) else [TOGETHER]
            inner = self._threads(training) if len(groups) == 1 else 1
            exact = exactly(training, STEPS)
            trials = [
                svm_trials(training.grams, group, exact=exact, n_jobs=inner) for group in groups
            ]

        def solver(k: int, **course: Any) -> MultipleResult:
            return learned(trials[k], self.scales_.size, float(self.norm), **course)

        with Fit(self, *data, names, "round") as fit:
            jobs = self._threads(training) if len(names) > 1 else 1
            results: Any = fit.solve(
                solver, tol=self.tol, max_iter=self.max_iter, starts=starts, n_jobs=jobs
            )
            self._keep(fit, training, results)
        if self.probability:
            self._calibrate(training, results)
        return [r.dual for r in results]

    def _trials_together(self, training: Training) -> Solve:
        return crammer_singer_trials(
            training.grams, training.targets, self._costs(training),
            n_classes=self.classes_.size, seed=training.seed, exact=exactly(training, SWEEPS),
        )  # fmt: skip

    def _calibrate(self, training: Training, results: list[MultipleResult]) -> None:
        problems, duals = self._problems(training), [*np.hstack([r.coef for r in results]).T]
        machines = [Sums(training, w) for w in np.atleast_2d(self.weights_)]

        def solver(k: int, left_out: Array, **course: Any) -> Result:
            sums = machines[k if len(machines) > 1 else 0]
            return sums.scored(smo(sums.rows, problems[k].without(left_out), **course))

        self._learn_probabilities(training, solver, duals)


@dataclass(frozen=True)
class ScoredResult(Result):
    """A result with the scores of all rows."""

    products: Any = None


class Sums:
    """The weighted sum of the matrices of a fit, computed when it is first used."""

    def __init__(self, training: Training, weights: Array) -> None:
        self.training, self.weights = training, weights

    @cached_property
    def rows(self) -> Any:
        """The sum, as solvers take it."""
        return self.training.grams.combined(self.weights)

    def scored(self, result: Result) -> "ScoredResult":
        """Return a result with the scores of all rows."""
        products = self.rows.scores(result.coef) + result.intercept
        return ScoredResult(**vars(result), products=products)


def exactly(training: Training, limits: tuple[int, int]) -> tuple[float, int] | None:
    """Return the tolerance and limit of machines of few rows, which are solved to rounding."""
    return (EXACT_TOL, limits[1]) if training.index.size <= SMALL else None


def learned(
    trials: Solve, n_kernels: int, norm: float, *, start: Array | None, **course: Any
) -> MultipleResult:
    """Return the solution with its coefficients, and as its dual variables what to start from."""
    begin: tuple[Any, Any] = (None, None)
    if start is not None:
        coef, weights = start[:-n_kernels], start[-n_kernels:, 0]
        begin = weights, Machine(coef, np.zeros(coef.shape[1]))
    result = multiple(trials, n_kernels, norm=norm, start=begin, **course)
    machine: Machine = result.solution
    return replace(
        result, coef=machine.coef, intercept=machine.intercept, solution=None,
        dual=joined(machine.coef, result.weights),
    )  # fmt: skip


def joined(coef: Array, weights: Array) -> Array:
    """Return coefficients with the weights below them, of any norm: where a next fit starts."""
    return np.vstack([coef, np.tile(weights[:, None], coef.shape[1])])
