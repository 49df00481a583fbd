r"""Ridge regression with any kernel.

:math:`f(x) = b + \sum_i c_i k(x_i, x)`, where :math:`c` and :math:`b` minimize :math:`\sum_i w_i
(t_i - f(x_i))^2 + \alpha\, c^\top K c` (chapter 6 of C. Lampert, *Kernel Methods in Computer
Vision*). One penalty takes a Cholesky decomposition of the Gram matrix; several take one
eigen-decomposition, which also tells how well every row is predicted by a fit without it. A sparse
Gram matrix, as kernels of compact support have, stays sparse: conjugate gradients multiply it.
"""

import warnings
from dataclasses import KW_ONLY
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from hilbin._arrays import Array
from hilbin._parameters import estimator, require_choice, require_positive, require_whole
from hilbin._state import require, require_attributes
from hilbin.estimators._fit import checked_weights, outer_level, warn_not_converged
from hilbin.estimators._sizes import (
    check_targets,
    finite_scores,
    require_finite,
    weighted_mean,
    without_warnings,
)
from hilbin.estimators.kernel.machine import KernelEstimator
from hilbin.kernels import Kernel, NotPositiveDefiniteWarning
from hilbin.parallel import blas_threads
from hilbin.solvers import Result
from hilbin.solvers.kernel_ridge import kernel_ridge, kernel_ridge_path

AUTO = np.logspace(-8, 4, 25)  # times the mean of k(x, x)


class Choice(NamedTuple):
    """The solution for the penalty in use, and what was learned about others."""

    result: Result
    alpha: Any
    alphas: Array | None = None
    errors: Array | None = None
    predictions: Array | None = None


@estimator
class KernelRidge(MultiOutputMixin, RegressorMixin, KernelEstimator):
    r"""Ridge regression with a kernel; the best penalty is found by leave-one-out.

    It minimizes :math:`\sum_i w_i (t_i - f(x_i))^2 + \alpha \|f\|^2`, exactly. The intercept is
    not penalized.

    Parameters
    ----------
    alpha : float, sequence of float, or "auto", default=1.0
        Penalty. Of several, or of a grid of its own ("auto"), the one of least leave-one-out error
        is taken; unlike in scikit-learn's ``KernelRidge``, a sequence is not one for every target.
        0 interpolates.
    fit_intercept : bool, default=True
        Whether there is a constant part.
    alpha_per_target : bool, default=False
        Whether the best of several penalties is found for every target by itself.
    tol, max_iter : float, int, default=1e-16, 10000
        Limits of conjugate gradients, for a sparse Gram matrix: duality gap over the objective, and
        products with the matrix.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
        Coefficients :math:`c` of the training rows.
    intercept_ : float or ndarray of shape (n_targets,)
        Constant part.
    X_fit_ : ndarray or CSR of shape (n_samples, n_features)
        The training rows, which prediction needs; None if the kernel is precomputed.
    alpha_ : float, or ndarray of shape (n_targets,)
        The penalty in use.
    alphas_ : ndarray of shape (n_alphas,)
        The penalties tried, ascending; this and the next two are None if there was one.
    loo_errors_ : ndarray of shape (n_alphas,) or (n_alphas, n_targets)
        Their mean squared leave-one-out errors.
    loo_predictions_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
        For every training row, what the fit without it predicts, with the penalty in use. Of a row
        of weight 2, one of the two copies is left out.
    objective_, gap_ : float, or ndarray of shape (n_targets,)
        Value of the problem, and how far it can be above the optimum.
    n_iter_ : int
        Products with a sparse Gram matrix; 1 for a dense one.
    converged_ : bool
        Whether the solution is the optimum, to the tolerance.

    Notes
    -----
    Dense Gram matrices take :math:`O(n^3)` time. Leaving rows out needs all eigenvalues, so for a
    sparse Gram matrix there is one penalty; search for it by ``GridSearchCV``.

    A given matrix is refused if it is not symmetric or has an empty diagonal. If a decomposition
    meets negative eigenvalues (with one penalty, only those below ``-alpha``) there is a warning:
    the equations are solved as they are, but the solution is not a minimum, and ``gap_`` is
    infinite. A sparse matrix is then refused.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.estimators import KernelRidge
    >>> from hilbin.kernels import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(200, 2))
    >>> y = np.sin(6 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=200)
    >>> model = KernelRidge(Gaussian(4.0), alpha=[1e-6, 1e-3, 0.1, 10.0]).fit(X, y)
    >>> model.alpha_
    0.1
    >>> model.loo_errors_.round(4)
    array([0.0174, 0.0108, 0.0101, 0.0477])
    """

    alpha: Any = 1.0
    _: KW_ONLY
    fit_intercept: bool = True
    alpha_per_target: bool = False
    tol: float = 1e-16
    max_iter: int = 10_000

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Samples, or the Gram matrix of shape (n_samples, n_samples).
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 is the sample twice, one of 0 no sample.

        Returns
        -------
        self : KernelRidge
        """
        rows, y = self._checked(X, y, multi_output=True, y_numeric=True)
        weights, targets = checked_weights(sample_weight, rows), np.asarray(y, np.float64)
        K = self._gram(rows, weights)
        check_targets(targets)
        with blas_threads(self.n_jobs), without_warnings():
            choice = self._solve(K, targets, weights)
        self._keep(choice, targets.shape)
        self.X_fit_ = None if self._precomputed else rows.copy()
        return self

    def predict(self, X: Any) -> Array:
        """Predict the targets of samples, in bands that fit into scikit-learn's ``working_memory``.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Samples, or the kernel between them and the training rows.

        Returns
        -------
        targets : ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        check_is_fitted(self, "dual_coef_")
        rows = self._new_rows(X)
        targets = np.empty((rows.shape[0], *self.dual_coef_.shape[1:]))
        with blas_threads(self.n_jobs), without_warnings():
            for part, K in self._bands(rows, self.X_fit_):
                targets[part] = K @ self.dual_coef_
        targets += self.intercept_
        return finite_scores(targets)

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the arrays of a loaded model do not fit together."""
        self._check_parameters()
        found = require_attributes(
            self,
            dual_coef_="float[n]|float[n, t]",
            intercept_="float|float[t]",
            X_fit_="matrix[n, d]?" if self._precomputed else "matrix[n, d]",
            n_features_in_="=n" if self._precomputed else "=d",
        )
        kernel = self._precomputed or isinstance(getattr(self, "kernel_", None), Kernel)
        require(not found or kernel, "kernel_ is no kernel")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.alpha, str):
            require_choice("alpha, if not numbers,", self.alpha, ("auto",))
        elif self._several():
            alphas = list(self.alpha)
            if not alphas:
                raise ValueError("alpha is empty")
            for alpha in alphas:
                require_positive("each of several alpha", alpha)
        else:
            require_positive("alpha", self.alpha, or_zero=True)
        require_positive("tol", self.tol)
        require_whole("max_iter", self.max_iter, 1)

    def _several(self) -> bool:
        return isinstance(self.alpha, str) or np.ndim(self.alpha) > 0

    def _solve(self, K: Any, targets: Array, weights: Array) -> Choice:
        options: dict[str, Any] = {"weight": weights, "fit_intercept": bool(self.fit_intercept)}
        if sp.issparse(K) and (self._several() or self.alpha == 0):
            raise ValueError(
                f"alpha={self.alpha!r} needs the eigenvalues of the Gram matrix, and this one is "
                "sparse: give one number > 0, search for it by GridSearchCV, or pass a dense "
                'matrix with kernel="precomputed"'
            )
        if not self._several():
            alpha = float(self.alpha)
            limits: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter}
            return Choice(kernel_ridge(K, targets, alpha, **limits, **options), alpha)
        alphas = self.alpha
        if isinstance(alphas, str):
            alphas = AUTO * (weighted_mean(np.abs(K.diagonal()), weights) or 1.0)
        path = kernel_ridge_path(K, targets, alphas, **options)
        per_target = self.alpha_per_target and targets.ndim == 2
        best: Any = path.best_alphas if per_target else path.best_alpha
        misses = path.leave_one_out(best).reshape(targets.shape)
        errors = path.errors.reshape(-1, *targets.shape[1:])
        return Choice(path.at(best), best, path.alphas, errors, targets - misses)

    def _keep(self, choice: Choice, shape: tuple[int, ...]) -> None:
        """Store the model, and warn if it is not the optimum."""
        result = choice.result
        self.dual_coef_ = result.coef.reshape(shape)
        for name in ("intercept", "objective", "gap"):
            values = getattr(result, name)
            setattr(self, f"{name}_", float(values[0]) if len(shape) == 1 else values)
        self.alpha_, self.alphas_, self.loo_errors_ = choice.alpha, choice.alphas, choice.errors
        self.loo_predictions_ = choice.predictions
        self.n_iter_, self.converged_ = result.n_iter, result.converged
        chosen = ("loo_errors_",) if choice.errors is not None else ()
        require_finite(self, "dual_coef_", "intercept_", "objective_", *chosen)
        if result.converged:
            return
        if np.isinf(self.gap_).any():
            warnings.warn(
                "the Gram matrix is not positive semi-definite: the solution is not a minimum; "
                "hilbin.kernels.repair_psd gives the nearest matrix that is positive definite",
                NotPositiveDefiniteWarning,
                stacklevel=outer_level(),
            )
        else:
            warn_not_converged(self, f"max_iter={self.max_iter} products did not suffice")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # a sparse Gram matrix has no eigenvalues to choose by
        tags.input_tags.sparse = not (self._precomputed and self._several())
        return tags
