r"""Outlier detection with any kernel: a plane, or the smallest ball, in feature space.

Both are sums over support vectors with :math:`0 \le c_i \le w_i / (\nu W)` and
:math:`\sum_i c_i = 1`, with weights :math:`w` of sum :math:`W`: at most a share :math:`\nu` of the
rows lies outside, and at least that share has a coefficient.

- :class:`KernelOneClass`: :math:`f(x) = \sum_i c_i k(x_i, x)` is high where training rows are, and
  a row is an outlier where it is below :math:`\rho`: the plane that separates the training rows
  from the origin.
- :class:`SVDD`, support vector data description: the ball has the center
  :math:`c = \sum_i c_i \phi(x_i)` and the radius :math:`R`. Where :math:`k(x, x)` is the same for
  all rows, the ball cuts out of their sphere what the plane does; otherwise short rows and long
  ones are told apart.
"""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from hilbin._arrays import Array, check_rows
from hilbin._parameters import estimator, require_positive
from hilbin.estimators._fit import Fit, checked_weights, with_callbacks
from hilbin.estimators._sizes import weighted_mean
from hilbin.estimators.kernel.machine import STEPS, KernelMachine, Training
from hilbin.solvers import Problem, Result, smo

FEW = 0.2  # share of the rows that may be outside for which few are support vectors
ROUNDING = 4  # times the precision of kernel values
CONSTANT = 1e-6  # share by which k(x, x) may vary and count as constant


@estimator
class OutlierMachine(OutlierMixin, KernelMachine):
    """Base of the detectors.

    Parameters
    ----------
    nu : float in (0, 1], default=0.1
        At most this share of the training rows are outliers, and at least this share are support
        vectors.
    tol : float, default=1e-3
        Tolerance on the gradient of the dual, over the size by which scores differ. Problems of up
        to 256 rows are solved to machine precision. Below 1e-3, kernel values are not rounded to
        single precision.
    max_iter : int, optional
        Limit of the steps of the solver, by default 10 million or 100 times the rows.
    memory : float, default=2048
        MiB for the Gram matrix. One that does not fit is computed row by row, and as much of it
        kept.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_support, 1)
        Coefficients of the support vectors, of sum 1.
    """

    nu: float = 0.1

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_positive("nu", self.nu, most=1)

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train the model. An interrupt (Ctrl-C) leaves a usable one, marked as not converged.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features) or (n_samples, n_samples)
            Samples, or their Gram matrix.
        y : None
            Not used.
        sample_weight : array-like of shape (n_samples,), optional
            How often a sample counts; a weight of 2 is the sample twice, one of 0 no sample.

        Returns
        -------
        self : estimator
        """
        rows, _ = self._checked(X)
        weights = checked_weights(sample_weight, rows)
        training = self._train_on(rows, np.empty(0), weights, few=self.nu <= FEW)
        gram, weights = training.gram, training.weights
        linear = self._linear(gram.rows.norms)
        problem = Problem(linear, 0.0, weights / (self.nu * weights.sum()), total=1.0)
        scale = self._scale(training)

        def solver(_: int, *, tol: float, **course: Any) -> Result:
            return smo(gram.rows, problem, tol=tol * scale, **course)

        with Fit(self, X, None, ["fit"], "step") as fit:
            (result,) = fit.solve(solver, **self._course(gram, STEPS))
            self._keep_border(fit, training, _with_border_inside(training, problem, result))
        return self

    def _linear(self, norms: Array) -> Array:
        """Return the linear part of the problem, from :math:`k(x, x)` of the rows."""
        raise NotImplementedError

    def _keep_border(self, fit: Fit, training: Training, result: Result) -> None:
        """Store the model."""
        bias = np.array([float(result.intercept)])
        self._keep(fit, training, result.coef[:, None], bias, [result])

    def _scale(self, training: Training) -> float:
        """Return by what scores differ, the unit of violations; no less than where LIBSVM stops."""
        size = weighted_mean(training.gram.rows.norms, training.weights)
        mean = training.gram.mean(training.weights)
        count = float(training.weights.sum() / training.weights.max())
        least = size / max(1.0, self.nu * count)
        return max(min(abs(mean), size - mean), least) or 1.0


def _with_border_inside(training: Training, problem: Problem, result: Result) -> Result:
    """Raise the intercept so much that no row on the border is outside by rounding."""
    gram, coef = training.gram, result.coef
    free = np.flatnonzero((coef > 0) & (coef < problem.high))
    if not free.size:
        return result
    support = np.flatnonzero(coef)
    scores = gram.between(free, support) @ coef[support]
    deficit = max(0.0, float(np.max(problem.linear[free] - scores)) - float(result.intercept))
    rounding = ROUNDING * np.finfo(gram.dtype).eps * float(gram.rows.norms.max())
    return replace(result, intercept=float(result.intercept) + deficit + rounding)


@estimator
class KernelOneClass(OutlierMachine):
    r"""One-class SVM with any kernel, given or computed, dense, sparse or row by row.

    It minimizes :math:`\tfrac12 \|w\|^2 - \rho + \frac{1}{\nu W} \sum_i w_i \max(0, \rho -
    f(x_i))`, where weights :math:`w` have the sum :math:`W`. It is the problem of
    :class:`sklearn.svm.OneClassSVM`, whose scores are :math:`\nu W` times these.

    Attributes
    ----------
    offset_ : float
        :math:`\rho`; ``decision_function`` is ``score_samples`` minus this.
    intercept_ : ndarray of shape (1,)
        Minus ``offset_``.

    References
    ----------
    B. Schölkopf et al., *Estimating the Support of a High-Dimensional Distribution*, Neural
    Computation 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.estimators import KernelOneClass
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = KernelOneClass(nu=0.05).fit(X)
    >>> bool(np.mean(model.predict(X) == -1) <= 0.05)
    True
    >>> model.predict([[0.0, 0.0], [6.0, 6.0]])
    array([ 1, -1])
    """

    def _linear(self, norms: Array) -> Array:
        return np.zeros_like(norms)

    def _keep_border(self, fit: Fit, training: Training, result: Result) -> None:
        self.offset_ = -float(result.intercept)
        super()._keep_border(fit, training, result)

    def decision_function(self, X: Any) -> Array:
        r"""Compute :math:`f(x) - \rho`, which is negative for outliers.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Samples, or the kernel between them and the training rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
        """
        return self._machine_scores(X)[:, 0]

    def score_samples(self, X: Any) -> Array:
        """Compute :math:`f(x)`, the higher the more common.

        Parameters
        ----------
        X : as in ``decision_function``

        Returns
        -------
        scores : ndarray of shape (n_samples,)
        """
        return self.decision_function(X) + self.offset_

    def predict(self, X: Any) -> Array:
        """Predict 1 for rows like those of the training, -1 for outliers.

        Parameters
        ----------
        X : as in ``decision_function``

        Returns
        -------
        signs : ndarray of shape (n_samples,)
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)


@estimator
class SVDD(OutlierMachine):
    r"""Smallest ball around the data in the feature space of any kernel.

    It minimizes :math:`R^2 + \frac{1}{\nu W} \sum_i w_i \max(0, \|\phi(x_i) - c\|^2 - R^2)` over
    the center and the radius, where weights :math:`w` have the sum :math:`W`. :math:`k(x, x)` need
    not be constant.

    Attributes
    ----------
    radius_ : float
        :math:`R`. If no row lies on the sphere it is in the middle of what is possible.
    center_norm_ : float
        :math:`\|c\|`.
    offset_ : float
        :math:`-R^2`; ``decision_function`` is ``score_samples`` minus this.
    intercept_ : ndarray of shape (1,)
        :math:`(R^2 - \|c\|^2) / 2`.

    References
    ----------
    D. M. J. Tax and R. P. W. Duin, *Support Vector Data Description*, Machine Learning 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.estimators import SVDD
    >>> from hilbin.kernels import Linear
    >>> angles = np.linspace(0, 6, 50)
    >>> circle = 2 * np.column_stack([np.cos(angles), np.sin(angles)]) + [3, 4]
    >>> ball = SVDD(Linear(), nu=0.01).fit(circle)
    >>> round(ball.radius_, 2), round(ball.center_norm_, 2)
    (2.0, 5.0)
    >>> ball.predict([[3.0, 4.0], [0.0, 0.0]])
    array([ 1, -1])
    """

    def _linear(self, norms: Array) -> Array:
        return norms / 2

    def _keep_border(self, fit: Fit, training: Training, result: Result) -> None:
        norms = training.gram.rows.norms
        steady = np.ptp(norms) <= CONSTANT * norms.max()
        self._own_value = float(norms.mean()) if steady else None
        dual_value = float(result.objective - result.gap)  # t c - |center|^2 / 2
        squared = max(0.0, float(norms @ result.coef) - 2 * dual_value)
        self.center_norm_ = float(np.sqrt(squared))
        self.offset_ = -max(0.0, 2 * float(result.intercept) + squared)
        self.radius_ = float(np.sqrt(-self.offset_))
        twice = replace(result, objective=2 * result.objective, gap=2 * result.gap)
        super()._keep_border(fit, training, twice)

    def decision_function(self, X: Any, diagonal: Any = None) -> Array:
        r"""Compute :math:`R^2 - \|\phi(x) - c\|^2`, which is negative outside of the ball.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Samples, or the kernel between them and the training rows.
        diagonal : array-like of shape (n_samples,), optional
            :math:`k(x, x)` of the samples, with ``kernel="precomputed"``; not needed if it was the
            same for all training rows, and is for these.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
        """
        return self.score_samples(X, diagonal) - self.offset_

    def score_samples(self, X: Any, diagonal: Any = None) -> Array:
        """Compute minus the squared distance from the center.

        Parameters
        ----------
        X, diagonal : as in ``decision_function``

        Returns
        -------
        scores : ndarray of shape (n_samples,)
        """
        products = self._machine_scores(X)[:, 0] - self.intercept_
        own = self._own_values(X, products.size, diagonal)
        return 2 * products - own - self.center_norm_**2

    def predict(self, X: Any, diagonal: Any = None) -> Array:
        """Predict 1 for rows in the ball, -1 for outliers.

        Parameters
        ----------
        X, diagonal : as in ``decision_function``

        Returns
        -------
        signs : ndarray of shape (n_samples,)
        """
        return np.where(self.decision_function(X, diagonal) >= 0, 1, -1)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Train, and tell which training rows are outliers.

        Parameters
        ----------
        X, y, sample_weight : as in ``fit``

        Returns
        -------
        signs : ndarray of shape (n_samples,)
        """
        self.fit(X, y, sample_weight)
        return self.predict(X, check_rows(X, "X").diagonal() if self._precomputed else None)

    def _own_values(self, X: Any, n: int, diagonal: Any) -> Array:
        """Return :math:`k(x, x)` of new rows."""
        check_is_fitted(self, "support_")
        if not self._precomputed:
            if diagonal is not None:
                raise ValueError('diagonal is for kernel="precomputed" alone')
            return self.kernel_.diag(X)
        if diagonal is not None:
            own = np.asarray(diagonal, np.float64)
            if own.shape != (n,) or not np.isfinite(own).all():
                raise ValueError(f"diagonal must be {n} numbers, k(x, x) of every row of X")
            return own
        if self._own_value is None:
            raise ValueError(
                "k(x, x) is not the same for all training rows: give that of the new rows as "
                "diagonal"
            )
        return np.full(n, self._own_value)
