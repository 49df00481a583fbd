r"""Support vector regression with any kernel.

:math:`f(x) = b + \sum_i c_i k(x_i, x)`, where rows that are predicted to within :math:`\epsilon`
have no coefficient.
"""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from hilbin._arrays import Array
from hilbin._parameters import require_positive
from hilbin.estimators._kernel_loss import LossMachine
from hilbin.estimators._kernel_machine import STEPS, SWEEPS, Training
from hilbin.estimators._progress import with_callbacks
from hilbin.solvers import Result, icd, regression, smo


class KernelSVR(RegressorMixin, LossMachine):
    r"""Support vector regression with any kernel, given or computed, dense, sparse or row by row.

    Minimizes :math:`\tfrac12 \|w\|^2 + \sum_i C_i \max(0, |y_i - f(x_i)| - \epsilon)`, the problem
    of :class:`sklearn.svm.SVR`, with a certificate of how far the solution can be from the optimum.

    Parameters
    ----------
    kernel : Kernel, callable, "precomputed" or None, default=None
        As in :class:`KernelSVC`.
    C : float, default=1.0
        Weight of the loss.
    epsilon : float, default=0.1
        Errors up to this cost nothing.
    bias : "free", "penalized" or float, default="free"
        As in :class:`KernelSVC`. A penalized bias is measured from the mean of the targets.
    tol : float, default=1e-3
        Tolerance on the gradient of the dual, in standard deviations of ``y``. Up to 256 rows are
        solved to rounding. Below 1e-3, kernel values are not rounded to single precision.
    max_iter : int, optional
        Most steps: pairs of rows, by default 100 million, or with a penalized bias sweeps over all
        rows, by default 100 000.
    max_time : float, optional
        Seconds after which training stops, with a usable model.
    warm_start : bool, default=False
        Begin where the last ``fit`` ended, also one that was interrupted, if it had as many rows.
    memory : float, default=2048
        MiB for the Gram matrix, as in :class:`KernelSVC`.
    n_jobs : int, optional
        Threads that compute kernel values. ``None`` is 1, -1 all processors.
    random_state : int, RandomState or None, default=0
        Of the order in which rows are visited, and of the sample of rules.
    verbose : int, default=0
        1 says how the fit ended, 2 tells of its course.

    Attributes
    ----------
    kernel_ : Kernel or "precomputed"
        With rules resolved.
    support_ : ndarray of shape (n_support,)
        Rows that count.
    support_vectors_ : ndarray or CSR array of shape (n_support, n_features)
        These rows; None if the kernel was precomputed.
    dual_coef_ : ndarray of shape (n_support, 1)
        Their coefficients.
    intercept_ : ndarray of shape (1,)
        The bias.
    n_iter_ : int
        Steps.
    converged_ : bool
        Whether the tolerance was reached.
    objective_, gap_ : ndarray of shape (1,)
        Value of the primal problem, and how far it can be above the optimum.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray
        Their names, if ``X`` has some.

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

    def __init__(
        self,
        kernel: Any = None,
        C: float = 1.0,
        epsilon: float = 0.1,
        *,
        bias: Any = "free",
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_time: float | None = None,
        warm_start: bool = False,
        memory: float = 2048,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ):
        self.kernel = kernel
        self.C = C
        self.epsilon = epsilon
        self.bias = bias
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train. An interrupt (Ctrl-C) leaves a usable model, marked as not converged.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features) or (n_samples, n_samples)
            Rows, or their Gram matrix.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Factor of ``C``; a weight of 2 is the row twice, one of 0 no row.

        Returns
        -------
        self : KernelSVR
        """
        training = self._prepare(X, y, sample_weight)
        self._solve(training, self._last([training.targets.shape]), (X, y))
        return self

    def predict(self, X: Any) -> Array:
        """Predicted values.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows, or the kernel between them and the training rows.

        Returns
        -------
        values : ndarray of shape (n_samples,)
        """
        return self._machine_scores(X)[:, 0]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_positive("epsilon", self.epsilon, or_zero=True)

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> Training:
        rows, y, weights, index = self._examples(X, y, sample_weight, y_numeric=True)
        return self._train_on(rows, y.astype(np.float64), weights, index)

    def _solve(self, training: Training, start: list[Array] | None, data: Any) -> list[Array]:
        gram, weights = training.gram, training.weights
        center = float(np.average(training.targets, weights=weights))
        targets = training.targets - center
        most = float(np.abs(targets).max()) or 1.0  # squares of huge values are not finite
        unit = most * float(np.sqrt(np.average((targets / most) ** 2, weights=weights))) or 1.0
        targets, C = targets / unit, self.C / unit * weights
        constant = None if self._is_free else self._constant(training)

        def solve(
            _: int, *, dual: Array | None = start[0] if start else None, **course: Any
        ) -> Result:
            course |= {"epsilon": self.epsilon / unit, "dual": dual}
            if constant is None:
                return smo(gram.rows, targets, -C, C, **course)
            problem = regression(targets, C, "epsilon_insensitive")
            return icd(gram.rows, problem, bias=constant, seed=training.seed, **course)

        limits = STEPS if constant is None else SWEEPS
        (found,), watch = self._run(solve, ["fit"], data, limits, gram)
        value, gap = (unit * float(part) * unit for part in (found.objective, found.gap))
        intercept = np.array([center + unit * float(found.bias)])
        result = replace(found, objective=value, gap=gap)
        self._keep(training, unit * found.coef[:, None], intercept, [result], watch)
        return [found.dual]
