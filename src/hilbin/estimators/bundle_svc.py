r"""Linear classification on the features of a kernel map, with the map's own inner product.

:math:`f(x) = b + v^\top \Phi(x)`. Where the features of a map are sparse, their inner product is
not the ordinary one: :math:`k(x, y) \approx \Phi(x)^\top K \Phi(y)`. Making them orthonormal would
fill them; the bundle solver needs only products with :math:`K`, one after every pass over the data
(A. Vedaldi and A. Zisserman, *Sparse Kernel Approximations for Efficient Classification and
Detection*, CVPR 2012).
"""

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from hilbin._arrays import Array
from hilbin._parameters import require_choice
from hilbin.estimators._bundle_model import BundleModel
from hilbin.estimators._parameters import class_factors
from hilbin.estimators._passes import Indicators
from hilbin.estimators._progress import with_callbacks
from hilbin.estimators._streamed import lies_in_memory
from hilbin.solvers import Hinge, Logistic, SquaredHinge

LOSSES = {"hinge": Hinge(), "squared_hinge": SquaredHinge(), "logistic": Logistic()}


class MapSVC(ClassifierMixin, BundleModel):
    r"""Linear machine on the features of a kernel map, by cutting planes, in memory or out of core.

    Minimizes :math:`\tfrac12 v^\top K^+ v + \tfrac12 (b / s)^2 + C \sum_i w_i \ell(y_i f(x_i))` for
    every class against the rest, with :math:`K` the inner product of the map's features: the
    problem of :class:`sklearn.svm.LinearSVC` on orthonormal features. All classes share the passes
    over the data. The result is within ``tol`` of the optimum, by a certificate (``gap_``).

    Parameters
    ----------
    feature_map : transformer, optional
        A map of :mod:`hilbin.maps`, or any transformer; none learns on the columns themselves. It
        is cloned and fitted to a sample of the rows. One in
        :class:`sklearn.frozen.FrozenEstimator` is used as it is. Sparse maps (``SparseMap``,
        ``SparseProjectionMap``) train with their own inner product, and need not be orthonormal;
        a :class:`~hilbin.maps.ProductQuantizer` trains on codes, also of data that do not lie in
        memory. Rows to predict are then scored as they are, unless they are codes.
    C : float, default=1.0
        Weight of the loss.
    loss : {"hinge", "squared_hinge", "logistic"}, default="hinge"
        :math:`\max(0, 1 - yf)`, its square, or :math:`\log(1 + e^{-yf})`.
    intercept_scaling : float, default=1.0
        :math:`s`: scores have a constant part, the weight of a constant feature of this value; the
        larger, the less is it penalized. 0 is no constant part.
    class_weight : dict or "balanced", optional
        Factor of ``C`` for the rows of each class.
    tol : float, default=1e-3
        Largest gap between the objective of a class and its lower bound, relative to it.
    max_iter : int, default=1000
        Most passes over the data.
    max_time : float, optional
        Seconds after which training stops, with a usable model.
    expansion : {"delayed", "immediate"}, default="delayed"
        How codes of a product quantizer are scored: weights are multiplied with the codewords
        first, so that rows are sums of looked-up numbers; or rows are decoded again in every pass.
        Other features know no difference.
    n_fit_samples : int, default=10000
        Rows in the sample to which the map is fitted, drawn at random from all.
    n_jobs : int, optional
        Threads of BLAS if the data lie in memory, else blocks computed side by side.
    memory : float, optional
        MiB for rows and features in memory at a time, if the data do not lie in memory;
        scikit-learn's ``working_memory`` by default.
    random_state : int, RandomState or None, default=0
        Draws the sample, and seeds maps that have no ``random_state``.
    verbose : int, default=0
        1 says how it ended, 2 tells of every pass.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels.
    coef_ : ndarray of shape (n_scores, n_features_out)
        Weights :math:`v` of the features: float32 if these are.
    intercept_ : ndarray of shape (n_scores,)
        Constant part of the scores.
    feature_map_ : transformer or None
        The fitted map.
    objective_, gap_ : ndarray of shape (n_scores,)
        Value of the problem, and how far it can be above the optimum.
    n_iter_ : int
        Passes over the data.
    converged_ : bool
        Whether every class reached the tolerance.
    n_features_in_ : int
        Columns of ``X``.
    feature_names_in_ : ndarray
        Their names, if ``X`` has some.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hilbin.estimators import MapSVC
    >>> from hilbin.kernels import Chi2
    >>> from hilbin.maps import SparseMap
    >>> X, y = load_digits(return_X_y=True)
    >>> model = MapSVC(SparseMap(Chi2(), 12), C=0.01).fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.92
    True
    """

    def __init__(
        self,
        feature_map: Any = None,
        C: float = 1.0,
        *,
        loss: str = "hinge",
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
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
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
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
        y : array-like of shape (n_samples,)
            Labels, unless the blocks of ``X`` bring them along.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 is the row twice, one of 0 no row.
        client : distributed.Client, optional
            The Dask cluster to compute on.

        Returns
        -------
        self : MapSVC
        """
        self._check_parameters()
        data = self._data(X, y, sample_weight, client, numbers=False)
        if lies_in_memory(X):
            check_classification_targets(y)
        counts = self._prepare(data, classes=True)
        assert counts is not None
        if counts.labels.size < 2:
            raise ValueError(
                "a classifier needs at least two classes, but the rows that count have "
                f"{counts.labels.size} class: {counts.labels.tolist()}"
            )
        self.classes_ = counts.labels
        factors = None
        if self.class_weight is not None:
            places = np.arange(counts.labels.size)
            factors = class_factors(self.class_weight, counts.labels, places, counts.n)
        self._train(data, Indicators(self.classes_, factors), LOSSES[self.loss], (X, y))
        return self

    def decision_function(self, X: Any) -> Array:
        """Scores of rows.

        Parameters
        ----------
        X : array-like, sparse, PQCodes, or anything that :func:`hilbin.stream.as_chunks` takes
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
        X : array-like, sparse, PQCodes, or anything that :func:`hilbin.stream.as_chunks` takes
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
        require_choice("loss", self.loss, tuple(LOSSES))
