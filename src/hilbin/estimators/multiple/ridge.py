r"""Ridge regression and classification with several kernels, whose weights are learned.

:math:`f(x) = b + \sum_j \beta_j \sum_i a_i k_j(x_i, x)`, where weights and coefficients minimize
:math:`\sum_i w_i (t_i - f(x_i))^2 + \alpha \sum_j \|f_j\|^2 / \beta_j`, a convex problem whose
duality gap is known. All targets, or classes, share the weights. A round is a Cholesky
decomposition of the weighted sum of the Gram matrices.
"""

from dataclasses import KW_ONLY, replace
from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from hilbin._arrays import Array
from hilbin._parameters import estimator, require_positive
from hilbin._state import require, require_attributes
from hilbin.estimators._fit import (
    Fit,
    Pair,
    checked_weights,
    with_callbacks,
)
from hilbin.estimators._sizes import check_targets, without_warnings
from hilbin.estimators.kernel.multiclass import one_against_rest
from hilbin.estimators.multiple.base import MultipleKernelClassifier, NormedModel, Training
from hilbin.estimators.multiple.svc import TOGETHER, learned
from hilbin.parallel import blas_threads
from hilbin.solvers.kernel_ridge import kernel_ridge_path
from hilbin.solvers.multiple import MultipleResult
from hilbin.solvers.multiple_machines import ridge_trials


@estimator
class MultipleRidge(NormedModel):
    """Base of the ridge regressions with several kernels.

    Parameters
    ----------
    alpha : float, default=1.0
        Penalty, above 0.
    fit_intercept : bool, default=True
        Whether there is a constant part, which is not penalized.
    """

    alpha: float = 1.0
    _: KW_ONLY
    fit_intercept: bool = True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_positive("alpha", self.alpha)

    def _solve(self, training: Training, data: Pair) -> None:
        """Learn from targets of shape (n, c), and keep the model."""
        alpha = float(self.alpha)
        trials = ridge_trials(
            training.grams, training.targets, alpha,
            weight=training.weights, fit_intercept=bool(self.fit_intercept),
        )  # fmt: skip
        unit = 2 * alpha  # the solver's loss is the mean square over this

        def solver(_: int, **course: Any) -> MultipleResult:
            found = learned(trials, self.scales_.size, float(self.norm), **course)
            return replace(found, objective=unit * found.objective, gap=unit * found.gap)

        with Fit(self, *data, [TOGETHER], "round") as fit, blas_threads(self.n_jobs):
            results: Any = fit.solve(solver, tol=self.tol, max_iter=self.max_iter)
            self.weights_, self.history_ = results[0].weights, unit * results[0].history
            self._keep_machine(training, results[0].coef, results[0].intercept)
            fit.keep(results)


@estimator
class MultipleKernelRidge(MultiOutputMixin, RegressorMixin, MultipleRidge):
    r"""Ridge regression on a weighted sum of kernels, whose weights it learns too.

    It minimizes :math:`\sum_i w_i (t_i - f(x_i))^2 + \alpha \sum_j \|f_j\|^2 / \beta_j` over
    :math:`f = \sum_j f_j + b` and weights :math:`\beta \ge 0`, :math:`\|\beta\|_p \le 1`. All
    targets share the weights.

    See Also
    --------
    KernelRidge : One kernel, and the best penalty by leaving out rows.
    MapRidge : ``penalty="multiple"`` learns the weights of explicit maps, out of core.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.estimators import MultipleKernelRidge
    >>> from hilbin.kernels import Gaussian
    >>> X = np.random.default_rng(0).uniform(size=(100, 1))
    >>> y = np.sin(20 * X[:, 0])
    >>> model = MultipleKernelRidge([Gaussian(0.1), Gaussian(100.0)], alpha=0.01).fit(X, y)
    >>> model.weights_.round(1)
    array([0., 1.])
    """

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the model.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features), or list of matrices
            Samples, or their Gram matrices.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 is the sample twice, one of 0 no sample.

        Returns
        -------
        self : MultipleKernelRidge
        """
        rows, targets = self._checked(X, y, multi_output=True, y_numeric=True)
        weights = checked_weights(sample_weight, rows[0] if self._precomputed else rows)
        targets = check_targets(np.asarray(targets, np.float64))
        self._single = targets.ndim == 1
        some = targets.reshape(len(targets), -1)[weights > 0]
        training = self._train_on(rows, some, weights, normalize=bool(self.normalize))
        with without_warnings():
            self._solve(training, (X, y))
        return self

    def predict(self, X: Any) -> Array:
        """Predict the targets of samples.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features), or list of matrices
            Samples, or the kernels between them and the training rows.

        Returns
        -------
        targets : ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        scores = self._scores(X)
        return scores[:, 0] if self._single else scores

    def _check_state(self) -> None:
        """Raise ``ValueError`` if a loaded model has not one target though it says so."""
        if "support_" in vars(self):
            found = require_attributes(self, _single="bool", intercept_="float[s]")
            require(not self._single or found["s"] == 1, "intercept_ is not that of one target")


@estimator
class MultipleKernelRidgeClassifier(MultipleKernelClassifier, MultipleRidge):
    r"""Ridge classifier on a weighted sum of kernels, whose weights it learns too.

    It minimizes :math:`\sum_i w_i (t_i - f(x_i))^2 + \alpha \sum_j \|f_j\|^2 / \beta_j` for the
    targets :math:`t_i = \pm 1` of every class, one class against the rest, over weights
    :math:`\beta \ge 0`, :math:`\|\beta\|_p \le 1` that all classes share.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hilbin.estimators import MultipleKernelRidgeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MultipleKernelRidgeClassifier(norm=2).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    >>> model.contributions(X[:2]).shape
    (2, 3, 3)
    """

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the model.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features), or list of matrices
            Samples, or their Gram matrices.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 is the sample twice, one of 0 no sample.

        Returns
        -------
        self : MultipleKernelRidgeClassifier
        """
        labeled = self._labeled(X, y, sample_weight, normalize=bool(self.normalize))
        labels, weights = labeled.targets, self._weighted(labeled)
        targets = one_against_rest(self.classes_.size)[labels].astype(np.float64)
        training = replace(labeled, targets=targets, weights=weights)
        with without_warnings():
            self._solve(training, (X, y))
            if self.probability:
                self._learn_probabilities(training, labels, labeled.weights)
        return self

    def _learn_probabilities(self, training: Training, labels: Array, weights: Array) -> None:
        """Calibrate by rows that are left out one by one, with the weights of all."""
        K, alpha = training.grams.matrix(self.weights_), float(self.alpha)
        path = kernel_ridge_path(
            K, training.targets, [alpha],
            weight=training.weights, fit_intercept=bool(self.fit_intercept),
        )  # fmt: skip
        self._keep_calibration(training.targets - path.leave_one_out(alpha), labels, weights)
