r"""Support vector data description: the smallest ball around the training rows.

In the feature space of any kernel, the ball has the center :math:`c = \sum_i c_i \phi(x_i)` and the
radius :math:`R`; at most a share :math:`\nu` of the rows are outside. Where :math:`k(x, x)` is the
same for all rows, the ball cuts out of their sphere what the plane of
:class:`~hilbin.estimators.KernelOneClass` does; otherwise short rows and long ones are told apart.
"""

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hilbin._arrays import Array, check_rows
from hilbin.estimators._kernel_outliers import OutlierMachine
from hilbin.estimators._progress import with_callbacks

CONSTANT = 1e-6  # share by which k(x, x) may vary and count as constant


class SVDD(OutlierMachine):
    r"""Smallest ball around the data in the feature space of any kernel.

    Minimizes :math:`R^2 + \frac{1}{\nu W} \sum_i w_i \max(0, \|\phi(x_i) - c\|^2 - R^2)` over the
    center and the radius, where weights :math:`w` have the sum :math:`W`.

    Parameters
    ----------
    kernel : Kernel, callable, "precomputed" or None, default=None
        As in :class:`KernelSVC`; :math:`k(x, x)` need not be constant.
    nu : float in (0, 1], default=0.1
        At most this share of the training rows are outside of the ball, and at least this share are
        support vectors.
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
    radius_ : float
        :math:`R`. If no row lies on the sphere it is in the middle of what is possible.
    center_norm_ : float
        :math:`\|c\|`.
    offset_ : float
        :math:`-R^2`; ``decision_function`` is ``score_samples`` minus this.
    kernel_ : Kernel or "precomputed"
        With rules resolved.
    support_ : ndarray of shape (n_support,)
        Rows that count.
    support_vectors_ : ndarray or CSR array of shape (n_support, n_features)
        These rows; None if the kernel was precomputed.
    dual_coef_ : ndarray of shape (n_support, 1)
        Their coefficients, of sum 1.
    intercept_ : ndarray of shape (1,)
        :math:`(R^2 - \|c\|^2) / 2`.
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
        self : SVDD
        """
        training, result, watch = self._enclose(X, sample_weight, lambda norms: norms / 2)
        norms = training.gram.rows.norms
        steady = np.ptp(norms) <= CONSTANT * norms.max()
        self._own_value = float(norms.mean()) if steady else None
        dual_value = float(result.objective - result.gap)  # t c - |center|^2 / 2
        squared = max(0.0, float(norms @ result.coef) - 2 * dual_value)
        self.center_norm_ = float(np.sqrt(squared))
        self.offset_ = -max(0.0, 2 * float(result.bias) + squared)
        self.radius_ = float(np.sqrt(-self.offset_))
        self._keep_single(training, result, watch, times=2.0)
        return self

    def decision_function(self, X: Any, diagonal: Any = None) -> Array:
        r""":math:`R^2 - \|\phi(x) - c\|^2`, negative outside of the ball.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows, or the kernel between them and the training rows.
        diagonal : array-like of shape (n_samples,), optional
            :math:`k(x, x)` of the rows, with ``kernel="precomputed"``; not needed if it was the
            same for all training rows, and is for these.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
        """
        return self.score_samples(X, diagonal) - self.offset_

    def score_samples(self, X: Any, diagonal: Any = None) -> Array:
        """Minus the squared distance from the center.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows, or the kernel between them and the training rows.
        diagonal : array-like of shape (n_samples,), optional
            As in :meth:`decision_function`.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
        """
        products = self._machine_scores(X)[:, 0] - self.intercept_
        own = self._own_values(X, products.size, diagonal)
        return 2 * products - own - self.center_norm_**2

    def predict(self, X: Any, diagonal: Any = None) -> Array:
        """1 for rows in the ball, -1 for outliers.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows, or the kernel between them and the training rows.
        diagonal : array-like of shape (n_samples,), optional
            As in :meth:`decision_function`.

        Returns
        -------
        signs : ndarray of shape (n_samples,)
        """
        return np.where(self.decision_function(X, diagonal) >= 0, 1, -1)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Train, and tell which training rows are outliers.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`.

        Returns
        -------
        signs : ndarray of shape (n_samples,)
        """
        self.fit(X, y, sample_weight)
        return self.predict(X, check_rows(X, "X").diagonal() if self._precomputed else None)

    def _own_values(self, X: Any, n: int, diagonal: Any) -> Array:
        """:math:`k(x, x)` of new rows."""
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
