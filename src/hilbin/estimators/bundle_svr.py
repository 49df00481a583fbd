"""Support vector regression on the features of a kernel map, by cutting planes."""

from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from hilbin._arrays import Array
from hilbin._parameters import require_choice, require_positive
from hilbin.estimators._bundle_model import BundleModel
from hilbin.estimators._passes import Numbers
from hilbin.estimators._progress import with_callbacks
from hilbin.estimators._streamed import lies_in_memory
from hilbin.solvers import EpsilonInsensitive, Result, SquaredEpsilonInsensitive

LOSSES = {
    "epsilon_insensitive": EpsilonInsensitive,
    "squared_epsilon_insensitive": SquaredEpsilonInsensitive,
}


class MapSVR(MultiOutputMixin, RegressorMixin, BundleModel):
    r"""Linear regression on the features of a kernel map, in memory or out of core.

    Minimizes :math:`\tfrac12 v^\top K^+ v + \tfrac12 (b / s)^2 + C \sum_i w_i \ell(y_i - f(x_i))`
    with :math:`\ell(r) = \max(0, |r| - \epsilon)` or its square: the problem of
    :class:`sklearn.svm.LinearSVR` on orthonormal features. Several targets share the passes over
    the data.

    Parameters
    ----------
    feature_map : transformer, optional
        As in :class:`MapSVC`.
    C : float, default=1.0
        Weight of the loss.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        The loss.
    epsilon : float, default=0.0
        Errors up to this cost nothing.
    intercept_scaling : float, default=1.0
        :math:`s`: the larger, the less is the constant part :math:`b` penalized; 0 is none.
    tol, max_iter, max_time, expansion, n_fit_samples, n_jobs, memory, random_state, verbose
        As in :class:`MapSVC`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_out,) or (n_targets, n_features_out)
        Weights :math:`v` of the features.
    intercept_ : float or ndarray of shape (n_targets,)
        Constant part.
    feature_map_ : transformer or None
        The fitted map.
    objective_, gap_ : ndarray of shape (n_targets,)
        Value of the problem, and how far it can be above the optimum.
    n_iter_ : int
        Passes over the data.
    converged_ : bool
        Whether every target reached the tolerance.
    n_features_in_ : int
        Columns of ``X``.
    feature_names_in_ : ndarray
        Their names, if ``X`` has some.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.estimators import MapSVR
    >>> from hilbin.kernels import Intersection
    >>> from hilbin.maps import SparseMap
    >>> X = np.random.default_rng(0).random((500, 2))
    >>> y = np.sin(6 * X[:, 0]) + X[:, 1] ** 2
    >>> MapSVR(SparseMap(Intersection()), C=10.0).fit(X, y).score(X, y) > 0.99
    True
    """

    def __init__(
        self,
        feature_map: Any = None,
        C: float = 1.0,
        *,
        loss: str = "epsilon_insensitive",
        epsilon: float = 0.0,
        intercept_scaling: float = 1.0,
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_time: float | None = None,
        expansion: str = "delayed",
        n_fit_samples: int = 10_000,
        n_jobs: int | None = None,
        memory: float | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ):
        self.feature_map = feature_map
        self.C = C
        self.loss = loss
        self.epsilon = epsilon
        self.intercept_scaling = intercept_scaling
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.expansion = expansion
        self.n_fit_samples = n_fit_samples
        self.n_jobs = n_jobs
        self.memory = memory
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, client: Any = None) -> Self:
        """Train. An interrupt (Ctrl-C) leaves a usable model, marked as not converged.

        Parameters
        ----------
        X : array-like, sparse, PQCodes, or anything that :func:`hilbin.stream.as_chunks` takes
            Rows. Features of rows in memory are kept in memory, and so are codes; others are
            computed again in every pass.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets, unless the blocks of ``X`` bring them along.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 is the row twice, one of 0 no row.
        client : distributed.Client, optional
            The Dask cluster to compute on.

        Returns
        -------
        self : MapSVR
        """
        self._check_parameters()
        data = self._data(X, y, sample_weight, client, numbers=True)
        self._single = np.asarray(y).ndim == 1 if lies_in_memory(X) else None
        self._prepare(data, classes=False)
        self._train(data, Numbers(), LOSSES[self.loss](float(self.epsilon)), (X, y))
        return self

    def predict(self, X: Any) -> Array:
        """The targets of rows.

        Parameters
        ----------
        X : array-like, sparse, PQCodes, or anything that :func:`hilbin.stream.as_chunks` takes
            Rows.

        Returns
        -------
        targets : ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        check_is_fitted(self, "coef_")
        scores = self._scores(X)
        return scores[:, 0] if self.coef_.ndim == 1 else scores

    def _keep(self, result: Result) -> None:
        super()._keep(result)
        if self._single if self._single is not None else len(self.coef_) == 1:
            self.coef_, self.intercept_ = self.coef_[0], float(self.intercept_[0])

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_choice("loss", self.loss, tuple(LOSSES))
        require_positive("epsilon", self.epsilon, or_zero=True)
