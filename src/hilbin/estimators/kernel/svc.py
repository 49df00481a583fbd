r"""Support vector classification with any kernel.

:math:`f(x) = b + \sum_i c_i k(x_i, x)`, a sum over the training rows near the border between the
classes, the support vectors. Two classes are one machine; more are several machines, or one problem
for all, Crammer and Singer's. All machines of a fit, all values of ``C`` of a path and all folds of
a cross-validation share one Gram matrix.
"""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import accuracy_score
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from hilbin._arrays import Array
from hilbin._parameters import estimator, require_choice
from hilbin._state import require, require_attributes
from hilbin.estimators._fit import (
    SMALL,
    Fit,
    Pair,
    check_classes,
    check_labels,
    checked_weights,
    class_factors,
    class_numbers,
    labels_of,
    solve_again,
)
from hilbin.estimators._sizes import checked_costs
from hilbin.estimators.kernel.machine import BAND, STEPS, SWEEPS, LossMachine, Training
from hilbin.estimators.kernel.multiclass import (
    MULTI_CLASS,
    class_scores,
    code_book,
    machine_names,
)
from hilbin.estimators.probability import ProbabilityClassifier, row_keys, separate_keys
from hilbin.parallel import ranges
from hilbin.solvers import Hinge, Result, crammer_singer, icd, smo
from hilbin.solvers.smo import smo_blocks

TOL_AGAIN = 1e-2  # of the solution without some of the rows
MOST_TOGETHER = 2048  # rows of a machine: of more, what has not converged costs more than it saves
MANY_AGAIN = 4000  # rows of a matrix of which not all are computed, if it is solved again


@estimator
class KernelSVC(ProbabilityClassifier, LossMachine):
    r"""Support vector machine with any kernel, given or computed, dense, sparse or row by row.

    It minimizes :math:`\tfrac12 \|w\|^2 + \sum_i C_i \max(0, 1 - y_i f(x_i))`, the problem of
    :class:`sklearn.svm.SVC`, with a certificate of how far the solution can be from the optimum.

    Parameters
    ----------
    multi_class : {"ovr", "ovo", "dag", "ecoc", "crammer_singer"}, default="ovr"
        Method for more than two classes: one class against the rest; all pairs by vote, with ties
        broken by the sum of the scores; the same pairs, eliminating the loser until one class is
        left; error-correcting codes, predicting the class with the least loss; or all classes in
        one problem, whose intercept is always penalized.
    code_book : array-like of shape (n_classes, n_machines), optional
        For ``"ecoc"``: how every binary machine treats the classes, as -1 or 1, or 0 to ignore
        them. By default all ways to split up to 7 classes in two, and a random selection for more.
    class_weight : dict or "balanced", optional
        Factor of ``C`` for the rows of each class.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels.
    code_book_ : ndarray of shape (n_classes, n_machines)
        How every binary machine treats the classes (-1, 0 or 1); None for Crammer and Singer's
        method.

    Notes
    -----
    A precomputed matrix is refused if it is not symmetric or has an empty diagonal. If
    it is not positive definite, training continues until no step improves, as in LIBSVM; a warning
    is given if two rows suffice to detect this.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hilbin.estimators import KernelSVC
    >>> from hilbin.kernels import Chi2, Exponential
    >>> X, y = load_digits(return_X_y=True)
    >>> model = KernelSVC(Exponential(Chi2(), gamma="mean"), C=10).fit(X[:500], y[:500])
    >>> bool(model.score(X[500:], y[500:]) > 0.92)
    True
    >>> model.cross_validate(X[:500], y[:500], cv=3, Cs=[0.1, 10]).shape
    (3, 2)
    """

    _: KW_ONLY
    multi_class: str = "ovr"
    code_book: Any = None
    class_weight: Any = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_choice("multi_class", self.multi_class, MULTI_CLASS)

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the arrays of a loaded classifier do not fit together."""
        book = "int[k, s]?" if self.multi_class == "crammer_singer" else "int[k, s]"
        if "support_" in vars(self):
            found = require_attributes(
                self, classes_="labels[k]", intercept_="float[s]", code_book_=book
            )
            right = getattr(self, "code_book_", None) is not None or found["s"] in (1, found["k"])
            require(right, "intercept_ is not one for every class")

    def _prepare(self, X: Any, y: Any, sample_weight: Any, *, once: bool = False) -> Training:
        rows, y = self._checked(X, y)
        check_labels(y)
        weights = checked_weights(sample_weight, rows)
        labels = self._encode(y[weights > 0], sample_weight)
        book = self.code_book_
        few = once and self._is_free and book is not None and book.shape[1] == 1
        # solving again for probabilities asks for more rows
        few = few and not (self.probability and rows.shape[0] < MANY_AGAIN)
        return self._train_on(rows, labels, weights, few=few)

    def _encode(self, y: Array, sample_weight: Any = None) -> Array:
        """Return labels as numbers; keep ``classes_`` and ``code_book_``."""
        classes, labels = class_numbers(y)
        self.classes_ = check_classes(classes, sample_weight)
        self._forget_calibration()
        random = check_random_state(self.random_state)
        self.code_book_ = code_book(self.multi_class, self.code_book, classes, random)
        return labels

    def _shapes(self, training: Training) -> list[tuple[int, ...]]:
        if self.code_book_ is None:
            return [(training.targets.size, self.classes_.size)]
        return [(int(n),) for n in np.count_nonzero(self.code_book_[training.targets], axis=0)]

    def _solve(self, training: Training, starts: Sequence[Any] | None, data: Pair) -> list[Array]:
        labels, weights = training.targets, training.weights
        factors = class_factors(self.class_weight, self.classes_, labels, weights)
        C = checked_costs(self.C, weights * factors)
        if self.code_book_ is None:
            return self._solve_together(training, C, starts, data)
        machines = self.code_book_.T
        seen = [np.flatnonzero(machine[labels]) for machine in machines]
        intercept = self._intercept(training)

        def solver(k: int, left_out: Array | None = None, **course: Any) -> Result:
            rows = seen[k]
            gram = training.gram if rows.size == labels.size else training.gram.subset(rows)
            signs = machines[k][labels[rows]].astype(np.float64)
            problem = Hinge().problem(signs, C[rows], **intercept)
            problem = problem if left_out is None else problem.without(left_out[rows])
            if self._is_free:
                return smo(gram.rows, problem, **course)
            return icd(gram.rows, problem, seed=training.seed, **course)

        names = machine_names(self.multi_class, self.code_book_, self.classes_)
        unit, limits = ("step", STEPS) if self._is_free else ("sweep", SWEEPS)
        with Fit(self, *data, names, unit) as fit:
            course = self._course(training.gram, limits)
            begin = partial(self._begin, training, C, seen) if self._is_free else None
            results = fit.solve(solver, starts=starts, begin=begin, **course)
            columns = _by_machine(seen, results, labels.size)
            self._keep(fit, training, *columns, results)
        duals = [r.dual for r in results]
        if self.probability:
            combined = partial(_by_machine, seen, n=labels.size)
            self._learn_probabilities(training, solver, duals, combined, course)
        return duals

    def _begin(
        self,
        training: Training,
        C: Array,
        seen: list[Array],
        *,
        exact: tuple[float, int] | None,
        **course: Any,
    ) -> list[Result] | None:
        """Make the first steps of all machines in one compiled call, if their matrix is dense."""
        gram = training.gram.dense_rows
        sizes = [part.size for part in seen]
        targets, book = training.targets, self.code_book_
        assert targets is not None
        assert book is not None
        if gram is None or max(sizes) > MOST_TOGETHER:
            return None
        rows = np.concatenate(seen)
        machine = np.repeat(np.arange(len(seen)), sizes)
        signs = book[targets[rows], machine]
        problem = Hinge().problem(signs, C[rows], total=0.0)
        which, offsets = training.gram.places(rows), np.cumsum([0, *sizes])
        limits = None if exact is None else (*exact, SMALL)
        return smo_blocks(gram, problem, which, offsets, exact=limits, **course)

    def _solve_together(
        self, training: Training, C: Array, starts: Sequence[Any] | None, data: Pair
    ) -> list[Array]:
        """Train all classes in one problem."""
        gram, constant = training.gram, self._constant(training)
        if gram.is_lazy:
            megabytes = np.dtype(gram.dtype).itemsize * training.index.size**2 / 2**20
            raise ValueError(
                'multi_class="crammer_singer" needs the whole Gram matrix, '
                f"{megabytes:.1f} MiB: memory={self.memory} is less"
            )

        def solver(_: int, left_out: Array | None = None, **course: Any) -> Result:
            weights = C if left_out is None else np.where(left_out, 0.0, C)
            return crammer_singer(
                gram.rows, training.targets, weights, n_classes=self.classes_.size,
                constant=constant, seed=training.seed, **course,
            )  # fmt: skip

        with Fit(self, *data, ["all classes"]) as fit:
            course = self._course(gram, SWEEPS)
            results = fit.solve(solver, starts=starts, **course)
            self._keep(fit, training, *_by_class(results), results)
        duals = [r.dual for r in results]
        if self.probability:
            self._learn_probabilities(training, solver, duals, _by_class, course)
        return duals

    def _learn_probabilities(
        self,
        training: Training,
        solver: Callable[..., Result],
        duals: list[Array],
        combined: Callable[[list[Result]], tuple[Any, Array]],
        course: dict[str, Any],
    ) -> None:
        """Solve again without some of the rows, and keep a calibration of their scores."""
        looser = course | {"tol": max(self.tol, TOL_AGAIN)}

        def scores_without(left_out: Array) -> Array:
            coef, intercept = combined(solve_again(solver, duals, left_out, **looser))
            sums = _products(training, np.flatnonzero(left_out), coef) + intercept
            return class_scores(self.multi_class, self.code_book_, sums)

        labels = training.targets
        # columns of a given matrix change with the rows, so these have no numbers of their own
        keys = separate_keys(labels.size) if self._precomputed else row_keys(training.gram.X)
        self._learn_calibration(keys, labels, training.weights, scores_without)

    def _scores(self, X: Any) -> Array:
        machines = self.machine_scores(X)
        scores = class_scores(self.multi_class, self.code_book_, machines)
        return scores[:, None] if scores.ndim == 1 else scores

    def machine_scores(self, X: Any) -> Array:
        """Compute the score of every machine; ``code_book_`` tells their classes.

        With ``"ovo"`` the scores of classes, ``decision_function``, are the votes of machines and
        with ``"dag"`` the round in which a class leaves, and a fraction that grows with the sum of
        its scores; with ``"ecoc"`` they are minus the loss.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Samples, or the kernel between them and the training rows.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_machines)
        """
        return self._machine_scores(X)

    def cross_validate(
        self, X: Any, y: Any, cv: Any = 5, *, Cs: Any = None, sample_weight: Any = None
    ) -> Array:
        """Measure the accuracy on rows that were left out, from one Gram matrix for all folds.

        Rules of the kernel are resolved on all rows, without their labels.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``; weights count in the accuracy, too.
        cv : int, splitter or iterable of (train, test), default=5
            The folds, as in :func:`sklearn.model_selection.cross_validate`.
        Cs : array-like of float, optional
            Weights of the loss to try instead of ``C``.

        Returns
        -------
        scores : ndarray of shape (n_folds,), or (n_folds, len(Cs)) if ``Cs`` are given
        """
        whole = clone(self).set_params(probability=False)
        training = whole._prepare(X, y, sample_weight)
        folds = check_cv(cv, y, classifier=True).split(np.zeros((len(y), 1)), y)
        tried = [self.C] if Cs is None else Cs
        scores = np.array([whole._fold_scores(training, fold, tried) for fold in folds])
        return scores[:, 0] if Cs is None else scores

    def _fold_scores(self, training: Training, fold: tuple[Array, Array], Cs: Any) -> list[float]:
        """Return the accuracy on one part of the rows of models of the other, for every ``C``."""
        place = np.full(training.X.shape[0], -1)
        place[training.index] = np.arange(training.index.size)
        train, test = (place[rows][place[rows] >= 0] for rows in fold)
        labels, weights = self.classes_[training.targets], training.weights
        first = clone(self)
        vars(first).update({name: v for name, v in vars(self).items() if name.endswith("_")})
        part = replace(
            training,
            gram=training.gram.subset(train),
            index=training.index[train],
            targets=first._encode(labels[train]),
            weights=weights[train],
        )
        accuracies = []
        for model in self._along(first, part, Cs, (training.X, labels)):
            support = place[model.support_]
            height = max(1, BAND * 2**20 // (8 * max(1, support.size)))
            parts = (slice(b, e) for b, e in ranges(test.size, height))
            bands = ((part, training.gram.between(test[part], support)) for part in parts)
            scores = class_scores(self.multi_class, model.code_book_, model._sums(bands, test.size))
            found = labels_of(model.classes_, scores)
            accuracies.append(accuracy_score(labels[test], found, sample_weight=weights[test]))
        return accuracies


def _products(training: Training, test: Array, coef: Any) -> Array:
    """Return the sums of kernel values between some rows and those that have a coefficient."""
    coef = sp.csr_array(coef)
    support = np.flatnonzero(np.diff(coef.indptr))
    coef = coef[support]
    out = np.zeros((test.size, coef.shape[1]))
    height = max(1, BAND * 2**20 // (8 * max(1, support.size)))
    for b, e in ranges(test.size, height):
        if support.size:
            out[b:e] = training.gram.between(test[b:e], support) @ coef
    return out


def _by_class(results: list[Result]) -> tuple[Array, Array]:
    """Return the coefficients of the only result, a column per score, and the intercepts."""
    coef, intercept = results[0].coef, np.asarray(results[0].intercept)
    if coef.shape[1] == 2:  # the difference of two scores
        return coef[:, 1:] - coef[:, :1], intercept[1:] - intercept[:1]
    return coef, intercept


def _by_machine(seen: list[Array], results: list[Result], n: int) -> tuple[Any, Array]:
    """Return the coefficients as a CSR array with a column per machine, and the intercepts."""
    values, rows = np.concatenate([r.coef for r in results]), np.concatenate(seen)
    kept = np.flatnonzero(values)
    ends = np.searchsorted(kept, np.cumsum([0, *(part.size for part in seen)]))
    columns = sp.csc_array((values[kept], rows[kept], ends), (n, len(seen)))
    return columns.tocsr(), np.hstack([r.intercept for r in results])
