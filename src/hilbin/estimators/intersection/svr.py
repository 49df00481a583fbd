"""Support vector regression with the histogram intersection kernel, by ICD."""

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from hilbin._arrays import Array
from hilbin._parameters import estimator, require_choice, require_positive
from hilbin.estimators._fit import Fit, Pair, standardized
from hilbin.estimators._sizes import MOST, checked_costs
from hilbin.estimators.intersection.model import IntersectionModel, Training
from hilbin.solvers import EpsilonInsensitive, Result

LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive")


@estimator
class IntersectionSVR(RegressorMixin, IntersectionModel):
    r"""Histogram intersection regression, trained and evaluated by look-ups.

    It minimizes :math:`\tfrac12 \|w\|^2 + \sum_i C_i \, \ell(y_i - f(x_i))` in the feature space of
    :math:`k(x, y) = B + \sum_j \min(x_j, y_j)`, with :math:`\ell(r) = \max(0, |r| - \epsilon)` or
    its square. Targets are measured from their mean in standard deviations, so neither shifting nor
    scaling them changes the fit.

    Parameters
    ----------
    C : float, "scale" or "auto", default="scale"
        Weight of the loss, with features in hundredths of their range and targets in standard
        deviations; "scale" and "auto" as in :class:`IntersectionSVC`.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        The loss.
    epsilon : float, default=0.0
        Errors up to this, in the unit of ``y``, cost nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.estimators import IntersectionSVR
    >>> X = np.random.default_rng(0).random((500, 2))
    >>> y = np.sin(6 * X[:, 0]) + X[:, 1] ** 2
    >>> IntersectionSVR().fit(X, y).score(X, y) > 0.99
    True
    """

    _: KW_ONLY
    loss: str = "epsilon_insensitive"
    epsilon: float = 0.0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_choice("loss", self.loss, LOSSES)
        require_positive("epsilon", self.epsilon, or_zero=True)

    @property
    def _bounded(self) -> bool:
        return self.loss == "epsilon_insensitive"

    def predict(self, X: Any) -> Array:
        """Predict targets: the sum of ``explain(X)`` over the features, plus ``intercept_``.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        values : ndarray of shape (n_samples,)
        """
        return self._scores(X)[:, 0]

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> Training:
        rows, y, weights = self._examples(X, y, sample_weight, y_numeric=True)
        return self._train_on(rows, y.astype(np.float64), weights, 1)

    def _shapes(self, training: Training) -> list[tuple[int, ...]]:
        return [training.targets.shape]

    def _solve(self, training: Training, starts: Sequence[Any] | None, data: Pair) -> list[Array]:
        targets, center, unit = standardized(training.targets, training.weights)
        loss = EpsilonInsensitive(min(self.epsilon / unit, MOST), squared=not self._bounded)

        def solver(
            _: int, left_out: Array | None = None, cost: float | None = None, **course: Any
        ) -> Result:
            C = checked_costs(self.C_ if cost is None else cost, training.weights)
            problem = loss.problem(targets, C, constant=training.constant)
            problem = problem if left_out is None else problem.without(left_out)
            return training.solve(problem, **course)

        self.C_ = self._cost(training, solver)
        with Fit(self, *data, ["fit"]) as fit:
            (result,) = fit.solve(solver, **self._course(starts))
            intercept = np.array([center + unit * float(result.intercept)])
            return self._keep(fit, training, unit * result.coef[:, None], intercept, [result])

    def _errors(self, training: Training, rows: Array, scores: Array) -> Array:
        targets, _, _ = standardized(training.targets, training.weights)
        return np.abs(scores[:, 0] - targets[rows])
