r"""Support vector classification with the histogram intersection kernel, by ICD.

:math:`f(x) = b + \sum_j T_j(x_j)` with one function :math:`T_j` per feature: the kernel
:math:`\sum_j \min(x_j, y_j)` makes every feature contribute on its own, so a model is a sum of
functions of one value each, training and prediction are look-ups, and every score splits into
what each feature gave to it.
"""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, replace
from functools import partial
from typing import Any

import numpy as np

from hilbin._arrays import Array
from hilbin._parameters import estimator, require_choice
from hilbin.estimators._fit import (
    SMALL,
    Fit,
    Pair,
    check_classes,
    check_labels,
    class_factors,
    class_numbers,
    solve_again,
)
from hilbin.estimators._sizes import checked_costs
from hilbin.estimators.intersection.model import EXACT, IntersectionModel, Training, columns
from hilbin.estimators.probability import ProbabilityClassifier, row_keys
from hilbin.solvers import Hinge, Result, crammer_singer
from hilbin.solvers.gram import BegunRows, GramRows

LOSSES = {"squared_hinge": Hinge(squared=True), "hinge": Hinge()}
MULTI_CLASS = ("ovr", "crammer_singer")
SWEEPS_AGAIN = 3  # from the solution of all rows to that of some


@estimator
class IntersectionSVC(ProbabilityClassifier, IntersectionModel):
    r"""Histogram intersection SVM, trained and evaluated by look-ups.

    It minimizes :math:`\tfrac12 \|w\|^2 + \sum_i C_i \, \ell(y_i f(x_i))` in the feature space of
    :math:`k(x, y) = B + \sum_j \min(x_j, y_j)`, one class against the rest. A sweep over the data
    costs a few operations per value, whatever the number of rows: about as much as in a linear SVM.

    Parameters
    ----------
    C : float, "scale" or "auto", default="scale"
        Weight of the loss. Features are measured in hundredths of their range, so the same ``C``
        suits all numbers of bins, and no scaling of the data changes it. "scale" is 2 over the mean
        :math:`k(x, x)`, which grows with the number of features, but at least 1e-3. "auto" tries
        six values, from 0.3 to 100 over that mean, by cross-validation.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        :math:`\max(0, 1 - yf)^2` or :math:`\max(0, 1 - yf)`. Crammer and Singer's machine has a
        loss of its own.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        One class against the rest, or all classes in one problem.
    class_weight : dict or "balanced", optional
        Factor of ``C`` for the rows of each class.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels.

    References
    ----------
    J. Wu, *A Fast Dual Method for HIK SVM Learning*, ECCV 2010.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hilbin.estimators import IntersectionSVC
    >>> X, y = load_digits(return_X_y=True)
    >>> model = IntersectionSVC().fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.92
    True
    >>> contributions = model.explain(X[1000:1001])
    >>> contributions.shape
    (1, 64, 10)
    """

    _: KW_ONLY
    loss: str = "squared_hinge"
    multi_class: str = "ovr"
    class_weight: Any = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_choice("loss", self.loss, tuple(LOSSES))
        require_choice("multi_class", self.multi_class, MULTI_CLASS)

    @property
    def _together(self) -> bool:
        return self.multi_class == "crammer_singer"

    @property
    def _bounded(self) -> bool:
        return self._together or self.loss == "hinge"

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> Training:
        rows, y, weights = self._examples(X, y, sample_weight)
        check_labels(y)
        classes, labels = class_numbers(y)
        self.classes_ = check_classes(classes, sample_weight)
        self._forget_calibration()
        return self._train_on(rows, labels, weights, 1 if classes.size == 2 else classes.size)

    def _shapes(self, training: Training) -> list[tuple[int, ...]]:
        n, classes = training.targets.size, self.classes_.size
        return [(n, classes)] if self._together else [(n,)] * (1 if classes == 2 else classes)

    def _solve(self, training: Training, starts: Sequence[Any] | None, data: Pair) -> list[Array]:
        labels, weights, classes = training.targets, training.weights, self.classes_
        weights = weights * class_factors(self.class_weight, classes, labels, weights)

        def one_against_rest(
            k: int, left_out: Array | None = None, cost: float | None = None, **course: Any
        ) -> Result:
            positive = k if classes.size > 2 else 1
            signs = np.where(labels == positive, 1.0, -1.0)
            C = checked_costs(self.C_ if cost is None else cost, weights)
            problem = LOSSES[self.loss].problem(signs, C, constant=training.constant)
            problem = problem if left_out is None else problem.without(left_out)
            return training.solve(problem, **course)

        def all_in_one(
            _: int,
            left_out: Array | None = None,
            cost: float | None = None,
            certify: bool = True,
            **course: Any,
        ) -> Result:
            options: dict[str, Any] = {"n_classes": classes.size, "constant": training.constant}
            C = checked_costs(self.C_ if cost is None else cost, weights)
            C = C if left_out is None else np.where(left_out, 0.0, C)
            return crammer_singer(training.rows, labels, C, seed=training.seed, **options, **course)

        names = [str(c) for c in (classes if classes.size > 2 else classes[1:])]
        solver, names = (
            (all_in_one, ["all classes"]) if self._together else (one_against_rest, names)
        )
        self.C_ = self._cost(training, solver)
        with Fit(self, *data, names) as fit:
            sizes = None if len(names) == 1 else np.bincount(labels).tolist()
            results = fit.solve(solver, **self._course(starts), sizes=sizes)
            duals = self._keep(fit, training, *columns(results), results)
        if self.probability:
            self._learn_probabilities(training, solver, duals)
        return duals

    def _errors(self, training: Training, rows: Array, scores: Array) -> Array:
        found = scores[:, 0] > 0 if scores.shape[1] == 1 else scores.argmax(axis=1)
        return np.asarray(found != training.targets[rows], np.float64)

    def _learn_probabilities(
        self, training: Training, solver: Callable[..., Result], duals: list[Array]
    ) -> None:
        """Solve again without some of the rows, and keep a calibration of their scores."""
        course: dict[str, Any] = {"tol": self.tol, "max_iter": SWEEPS_AGAIN, "exact": EXACT}

        def scores_without(left_out: Array) -> Array:
            again = self._solver_again(training, solver, duals, left_out)
            results = solve_again(again, duals, left_out, n_jobs=self.n_jobs, **course)
            coef, intercept = columns(results)
            if isinstance(training.rows, GramRows):
                gram = training.rows.gram
                return gram[left_out] @ coef.astype(gram.dtype) + intercept
            levels = replace(training.levels, rows=training.levels.rows[left_out])
            return levels.scores(training.levels.lookup(coef), self.n_jobs) + intercept

        keys = row_keys(training.levels.rows)
        self._learn_calibration(keys, training.targets, training.weights, scores_without)

    def _solver_again(
        self,
        training: Training,
        solver: Callable[..., Result],
        duals: list[Array],
        left_out: Array,
    ) -> Callable[..., Result]:
        """Return the solver of the problems without some of the rows, from their solutions.

        Rows that are no support vectors stay none, as most would: the sweeps do not visit them.
        Not so with the hinge loss, which has few, and in problems that are solved to rounding.
        """
        if left_out.size <= SMALL or self.loss == "hinge":
            return partial(solver, certify=False)
        scores: Any = None
        if isinstance(training.rows, GramRows) and not self._together:
            starts = np.column_stack(duals) * ~left_out[:, None]
            scores = (training.rows.gram @ starts.astype(training.rows.gram.dtype)).T

        def again(k: int, left_out: Array, **course: Any) -> Result:
            idle = ~duals[k].reshape(left_out.size, -1).any(axis=1)
            if scores is not None:
                course["rows"] = BegunRows(training.rows, scores[k])
            return solver(k, left_out=left_out | idle, certify=False, **course)

        return again
