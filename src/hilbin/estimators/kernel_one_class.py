r"""The one-class support vector machine with any kernel.

:math:`f(x) = \sum_i c_i k(x_i, x)` is high where training rows are, and a row is an outlier where
it is below :math:`\rho`: the plane that separates the training rows from the origin, at most a
share :math:`\nu` of them on the wrong side.
"""

from typing import Any, Self

import numpy as np

from hilbin._arrays import Array
from hilbin.estimators._kernel_outliers import OutlierMachine
from hilbin.estimators._progress import with_callbacks


class KernelOneClass(OutlierMachine):
    r"""One-class SVM with any kernel, given or computed, dense, sparse or row by row.

    Minimizes :math:`\tfrac12 \|w\|^2 - \rho + \frac{1}{\nu W} \sum_i w_i \max(0, \rho - f(x_i))`,
    where weights :math:`w` have the sum :math:`W`. It is the problem of
    :class:`sklearn.svm.OneClassSVM`, whose scores are :math:`\nu W` times these.

    Parameters
    ----------
    kernel : Kernel, callable, "precomputed" or None, default=None
        As in :class:`KernelSVC`.
    nu : float in (0, 1], default=0.1
        At most this share of the training rows are outliers, and at least this share are support
        vectors.
    tol : float, default=1e-3
        Tolerance on the gradient of the dual, over the size by which scores differ. Up to 256 rows
        are solved to rounding. Below 1e-3, kernel values are not rounded to single precision.
    max_iter : int, optional
        Most steps, by default 100 million.
    max_time : float, optional
        Seconds after which training stops, with a usable model.
    memory : float, default=2048
        MiB for the Gram matrix, as in :class:`KernelSVC`.
    n_jobs : int, optional
        Threads that compute kernel values. ``None`` is 1, -1 all processors.
    random_state : int, RandomState or None, default=0
        Of the sample of rules.
    verbose : int, default=0
        1 says how the fit ended, 2 tells of its course.

    Attributes
    ----------
    offset_ : float
        :math:`\rho`; ``decision_function`` is ``score_samples`` minus this.
    kernel_ : Kernel or "precomputed"
        With rules resolved.
    support_ : ndarray of shape (n_support,)
        Rows that count.
    support_vectors_ : ndarray or CSR array of shape (n_support, n_features)
        These rows; None if the kernel was precomputed.
    dual_coef_ : ndarray of shape (n_support, 1)
        Their coefficients, of sum 1.
    intercept_ : ndarray of shape (1,)
        Minus ``offset_``.
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

    def __init__(
        self,
        kernel: Any = None,
        nu: float = 0.1,
        *,
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_time: float | None = None,
        memory: float = 2048,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ):
        self.kernel = kernel
        self.nu = nu
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train. An interrupt (Ctrl-C) leaves a usable model, marked as not converged.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features) or (n_samples, n_samples)
            Rows, or their Gram matrix.
        y : None
            Not used.
        sample_weight : array-like of shape (n_samples,), optional
            How often a row counts; a weight of 2 is the row twice, one of 0 no row.

        Returns
        -------
        self : KernelOneClass
        """
        training, result, watch = self._enclose(X, sample_weight, np.zeros_like)
        self.offset_ = -float(result.bias)
        self._keep_single(training, result, watch)
        return self

    def decision_function(self, X: Any) -> Array:
        r""":math:`f(x) - \rho`, negative for outliers.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows, or the kernel between them and the training rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
        """
        return self._machine_scores(X)[:, 0]

    def score_samples(self, X: Any) -> Array:
        """:math:`f(x)`, the higher the more common.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows, or the kernel between them and the training rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
        """
        return self.decision_function(X) + self.offset_

    def predict(self, X: Any) -> Array:
        """1 for rows like those of the training, -1 for outliers.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows, or the kernel between them and the training rows.

        Returns
        -------
        signs : ndarray of shape (n_samples,)
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)
