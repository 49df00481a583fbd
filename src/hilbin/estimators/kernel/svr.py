r"""Support vector regression with any kernel.

:math:`f(x) = b + \sum_i c_i k(x_i, x)`, where rows that are predicted to within :math:`\epsilon`
have no coefficient.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from hilbin._arrays import Array
from hilbin._parameters import estimator, require_positive
from hilbin.estimators._fit import Fit, Pair, checked_weights, standardized
from hilbin.estimators._sizes import MOST, checked_costs
from hilbin.estimators.kernel.machine import STEPS, SWEEPS, LossMachine, Training
from hilbin.solvers import EpsilonInsensitive, Result, icd, smo


@estimator
class KernelSVR(RegressorMixin, LossMachine):
    r"""Support vector regression with any kernel, given or computed, dense, sparse or row by row.

    It minimizes :math:`\tfrac12 \|w\|^2 + \sum_i C_i \max(0, |y_i - f(x_i)| - \epsilon)`, the
    problem of :class:`sklearn.svm.SVR`, with a certificate of how far the solution can be from the
    optimum. A penalized intercept is measured from the mean of the targets, and the tolerance in
    their standard deviations.

    Parameters
    ----------
    epsilon : float, default=0.1
        Errors up to this cost nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.estimators import KernelSVR
    >>> from hilbin.kernels import Laplace
    >>> X = np.random.default_rng(0).random((500, 2))
    >>> y = np.sin(5 * X[:, 0]) * X[:, 1]
    >>> model = KernelSVR(Laplace(gamma="median"), C=10, epsilon=0.01).fit(X, y)
    >>> bool(model.score(X, y) > 0.99)
    True
    """

    epsilon: float = 0.1

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_positive("epsilon", self.epsilon, or_zero=True)

    def predict(self, X: Any) -> Array:
        """Predict the targets of samples.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Samples, or the kernel between them and the training rows.

        Returns
        -------
        values : ndarray of shape (n_samples,)
        """
        return self._machine_scores(X)[:, 0]

    def _prepare(self, X: Any, y: Any, sample_weight: Any, *, once: bool = False) -> Training:
        rows, y = self._checked(X, y, y_numeric=True)
        weights = checked_weights(sample_weight, rows)
        return self._train_on(rows, y[weights > 0].astype(np.float64), weights)

    def _shapes(self, training: Training) -> list[tuple[int, ...]]:
        return [training.targets.shape]

    def _solve(self, training: Training, starts: Sequence[Any] | None, data: Pair) -> list[Array]:
        gram, weights = training.gram, training.weights
        targets, center, unit = standardized(training.targets, weights)
        name = "C times sample_weight over the standard deviation of y"
        costs = checked_costs(self.C / unit, weights, name)
        loss = EpsilonInsensitive(min(self.epsilon / unit, MOST))
        problem = loss.problem(targets, costs, **self._intercept(training))

        def solver(_: int, **course: Any) -> Result:
            if self._is_free:
                return smo(gram.rows, problem, **course)
            return icd(gram.rows, problem, seed=training.seed, **course)

        unit_of_work, limits = ("step", STEPS) if self._is_free else ("sweep", SWEEPS)
        with Fit(self, *data, ["fit"], unit_of_work) as fit:
            (found,) = fit.solve(solver, starts=starts, **self._course(gram, limits))
            largest = float(np.finfo(np.float64).max)
            parts = float(found.objective), float(found.gap)
            value, gap = (min(unit * part * unit, largest) for part in parts)
            result = replace(found, objective=value, gap=gap)
            intercept = np.array([center + unit * float(found.intercept)])
            self._keep(fit, training, unit * found.coef[:, None], intercept, [result])
        return [found.dual]
