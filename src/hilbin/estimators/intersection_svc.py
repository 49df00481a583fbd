r"""Support vector classification with the histogram intersection kernel, by ICD.

:math:`f(x) = b + \sum_j T_j(x_j)` with one table :math:`T_j` per feature: the kernel
:math:`\sum_j \min(x_j, y_j)` makes every feature contribute on its own, so a model is a sum of
functions of one value each, training and prediction are look-ups, and every score splits into
what each feature gave to it.
"""

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets

from hilbin._arrays import Array
from hilbin._parameters import require_choice
from hilbin.estimators._intersection import IntersectionModel, Training
from hilbin.estimators._parameters import class_factors
from hilbin.estimators._progress import with_callbacks
from hilbin.solvers import Result, classification, crammer_singer, icd

LOSSES = ("squared_hinge", "hinge")
MULTI_CLASS = ("ovr", "crammer_singer")


class IntersectionSVC(ClassifierMixin, IntersectionModel):
    r"""Histogram intersection SVM, trained and evaluated by tables.

    Minimizes :math:`\tfrac12 \|w\|^2 + \sum_i C_i \, \ell(y_i f(x_i))` in the feature space of
    :math:`k(x, y) = B + \sum_j \min(x_j, y_j)`, one class against the rest. A sweep over the data
    costs a few operations per value, whatever the number of rows: about as much as in a linear SVM.

    Parameters
    ----------
    C : float, default=1e-3
        Weight of the loss. Features are measured in hundredths of their range, so the same ``C``
        suits all numbers of bins, and no scaling of the data changes it.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        :math:`\max(0, 1 - yf)^2` or :math:`\max(0, 1 - yf)`. Crammer and Singer's machine has a
        loss of its own.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        One class against the rest, or all classes in one problem.
    n_bins : "auto", int or None, default="auto"
        Bins per feature; ``None`` trains on the values as they are. "auto" is 100, but 31 from 500
        features on and 15 from 2000, where rounding averages out and short tables are faster.
    strategy, scope : str, default="uniform", "feature"
        How bins are spaced, as in :class:`HistogramBinner`.
    negative : {"shift", "error"}, default="shift"
        What to do with negative values: measure every feature from its low end, or complain, as
        suits histograms. See :class:`HistogramBinner`.
    bias : "auto" or float, default="auto"
        ``B``, which lets the score have a constant part; 0 is none, "auto" a tenth of the mean
        :math:`k(x, x)`.
    class_weight : dict or "balanced", optional
        Factor of ``C`` for the rows of each class.
    solver : {"auto", "tables", "gram"}, default="auto"
        Train on tables, or on the Gram matrix, which is cheaper for few rows of many features. Both
        solve the same problem.
    tol : float, default=0.1
        Tolerance on the gradient of the dual, as in LIBLINEAR. Up to 256 rows are solved to
        rounding.
    max_iter : int, default=1000
        Most sweeps over the data.
    max_time : float, optional
        Seconds after which training stops, with a usable model.
    warm_start : bool, default=False
        Begin where the last ``fit`` ended, if it had as many rows and the same classes.
    n_jobs : int, optional
        Threads: classes are trained side by side. ``None`` is 1, -1 all processors.
    random_state : int, RandomState or None, default=0
        Of the order in which rows are visited.
    verbose : int, default=0
        1 says how each class ended, 2 tells of every sweep.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels.
    intercept_ : ndarray of shape (n_scores,)
        Constant part of the scores.
    shape_functions_ : list of ShapeFunction
        What every feature contributes, as a function of its value.
    binner_ : HistogramBinner
        How values become codes.
    n_iter_ : int
        Most sweeps of any class.
    converged_ : bool
        Whether every class reached the tolerance.
    objective_, gap_ : ndarray
        Value of the primal problem, and how far it can be above the optimum.
    model_bytes_ : int
        Bytes of what prediction needs.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if ``X`` has some.

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

    def __init__(
        self,
        C: float = 1e-3,
        *,
        loss: str = "squared_hinge",
        multi_class: str = "ovr",
        n_bins: int | str | None = "auto",
        strategy: str = "uniform",
        scope: str = "feature",
        negative: str = "shift",
        bias: Any = "auto",
        class_weight: Any = None,
        solver: str = "auto",
        tol: float = 0.1,
        max_iter: int = 1000,
        max_time: float | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ):
        self.C = C
        self.loss = loss
        self.multi_class = multi_class
        self.n_bins = n_bins
        self.strategy = strategy
        self.scope = scope
        self.negative = negative
        self.bias = bias
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train. An interrupt (Ctrl-C) leaves a usable model, marked as not converged.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows of non-negative values.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            Factor of ``C``; a weight of 2 is the row twice, one of 0 no row.

        Returns
        -------
        self : IntersectionSVC
        """
        training, labels = self._prepare(X, y, sample_weight)
        start = getattr(self, "_duals", None) if self.warm_start else None
        one = self.classes_.size == 2 and self.multi_class == "ovr"
        if start is not None and start.shape != (labels.size, 1 if one else self.classes_.size):
            start = None
        self._solve(training, labels, start, (X, y))
        return self

    def path(self, X: Any, y: Any, Cs: Any, sample_weight: Any = None) -> "list[IntersectionSVC]":
        """One model for every ``C``, each trained from where the next smaller one ended.

        Values become codes once, and a warm start saves most of the sweeps.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`.
        Cs : array-like of float
            Weights of the loss, in any order.

        Returns
        -------
        models : list of IntersectionSVC
            Fitted, in the order of ``Cs``.
        """
        first = clone(self)
        training, labels = first._prepare(X, y, sample_weight)
        squared = self.loss == "squared_hinge" and self.multi_class == "ovr"
        models: dict[float, IntersectionSVC] = {}
        duals: Array | None = None
        last = 1.0
        for C in np.unique(np.asarray(Cs, np.float64)):
            model = clone(self).set_params(C=float(C))
            model._check_parameters()
            for name in ("classes_", "n_features_in_", "feature_names_in_"):
                if hasattr(first, name):
                    setattr(model, name, getattr(first, name))
            start = duals if duals is None or squared else duals * (C / last)
            duals, last = model._solve(training, labels, start, (X, y)), C
            models[float(C)] = model
        return [models[float(C)] for C in Cs]

    def decision_function(self, X: Any) -> Array:
        """Scores: the sum of ``explain(X)`` over the features, plus ``intercept_``.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Of the second of two classes, or of every class.
        """
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Array:
        """The class of the highest score.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        best = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[best.astype(np.intp)]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_choice("loss", self.loss, LOSSES)
        require_choice("multi_class", self.multi_class, MULTI_CLASS)

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> tuple[Training, Array]:
        """What :meth:`_solve` needs, and the class of every row that counts."""
        self._check_parameters()
        rows, y = self._rows_and_targets(X, y)
        check_classification_targets(y)
        weights = self._weights(sample_weight, rows)
        used = weights > 0
        if not used.all():
            rows, y, weights = rows[used], y[used], weights[used]
        self.classes_, labels = np.unique(y, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError(
                f"a classifier needs at least two classes, but y has {self.classes_.size} class"
                + (" among the rows whose sample_weight is not 0" if not used.all() else "")
            )
        problems = 1 if self.classes_.size == 2 else self.classes_.size
        return self._train_on(rows, weights, problems), labels

    def _solve(self, training: Training, labels: Array, start: Array | None, data: Any) -> Array:
        """Train all classes, keep the model; returns the dual variables."""
        C = (
            self.C
            * training.weights
            * class_factors(self.class_weight, self.classes_, labels, training.weights)
        )
        n_classes = self.classes_.size
        common: dict[str, Any] = {"bias": training.bias, "seed": training.seed}

        def one_against_rest(k: int, *, dual: Array | None = None, **course: Any) -> Result:
            positive = k if n_classes > 2 else 1
            problem = classification(np.where(labels == positive, 1.0, -1.0), C, self.loss)
            if dual is None and start is not None:
                dual = start[:, k]
            return icd(training.rows, problem, dual=dual, **common, **course)

        def all_in_one(_: int, *, dual: Array | None = None, **course: Any) -> Result:
            dual = start if dual is None else dual
            return crammer_singer(
                training.rows, labels, C, n_classes=n_classes, dual=dual, **common, **course
            )

        if self.multi_class == "crammer_singer":
            results, watch = self._run(all_in_one, ["all classes"], data)
            coef = results[0].coef
        else:
            names = [str(c) for c in (self.classes_ if n_classes > 2 else self.classes_[1:])]
            results, watch = self._run(one_against_rest, names, data)
            coef = np.column_stack([r.coef for r in results])
        intercept = np.hstack([r.bias for r in results])
        if coef.shape[1] == 2:  # the difference of two scores is one score
            coef, intercept = coef[:, 1:] - coef[:, :1], intercept[1:] - intercept[:1]
        return self._keep(training, results, coef, intercept, watch)
