r"""k-means in few coordinates: kernel principal components, or those that two views share.

**Kernel PCA clustering.** Rows are replaced by their first :math:`k` kernel principal components
:math:`\sqrt{\mu_j} U_{ij}`, by default as many as there are clusters. The optimum of kernel k-means
over all real indicators, instead of those of 0 and 1, spans the same space, so that little is lost
but noise (C. Ding and X. He, *K-Means Clustering via Principal Component Analysis*, 2004).

**Correlational clustering.** Of two views of the same things, rows are replaced by their kernel
canonical coordinates: what one view cannot tell about the other does not count. It helps the
weaker view (M. Blaschko and C. Lampert, *Correlational Spectral Clustering*, 2008).

New rows have coordinates, and go to the nearest center.
"""

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from hilbin._arrays import Array
from hilbin._parameters import estimator, require_choice, require_whole
from hilbin._state import require, require_attributes
from hilbin.estimators._fit import checked_weights, outer_level, random_seed
from hilbin.estimators.probability import row_keys
from hilbin.estimators.reduction.base import KernelProjection
from hilbin.estimators.reduction.cca import KernelCCA, as_columns
from hilbin.estimators.reduction.pca import KernelPCA
from hilbin.parallel import blas_threads
from hilbin.stats.groups import nearest_centers

VIEWS = ("X", "y", "both")


@estimator
class CoordinateClustering(ClusterMixin, BaseEstimator):
    """Base of the estimators that find clusters in few coordinates.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_init : int, default=5
        Number of starts of k-means, of which the best is kept.
    n_jobs : int, optional
        Number of threads that compute kernel values.
    random_state : int, RandomState or None, default=0
        Random seed of the samples that rules look at, and of the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of every training row, from 0.
    cluster_centers_ : ndarray of shape (n_clusters, n_components)
        Centers of the clusters in the coordinates.
    inertia_ : float
        Sum of weighted squared distances from the centers there.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray
        Their names, if ``X`` has some.
    """

    n_clusters: int = 8
    _: KW_ONLY
    n_components: int | None = None
    n_init: int = 5
    n_jobs: int | None = None
    random_state: Any = 0

    def _check_parameters(self) -> None:
        require_whole("n_clusters", self.n_clusters, 1)
        require_whole("n_init", self.n_init, 1)
        if self.n_components is not None:
            require_whole("n_components, if not None,", self.n_components, 1)

    def _keep_names(self, fitted: Any) -> None:
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(fitted, name):
                setattr(self, name, getattr(fitted, name))
            elif hasattr(self, name):
                delattr(self, name)

    def _cluster(self, T: Array, keys: Array, sample_weight: Any) -> None:
        """Keep the clusters of rows of coordinates.

        Rows of equal ``keys`` are one with the sum of their weights.
        """
        if len(T) < self.n_clusters:
            raise ValueError(
                f"n_clusters={self.n_clusters} is more than the {len(T)} rows (samples) of X"
            )
        weights = checked_weights(sample_weight, T)
        present = np.flatnonzero(weights)
        _, first, inverse = np.unique(keys[present], axis=0, return_index=True, return_inverse=True)
        count = min(self.n_clusters, first.size)
        model = KMeans(count, n_init=self.n_init, random_state=random_seed(self.random_state))
        with blas_threads(self.n_jobs):
            totals = np.bincount(inverse.ravel(), weights[present])
            model.fit(T[present[first]], sample_weight=totals)
        self.cluster_centers_, self.inertia_ = model.cluster_centers_, float(model.inertia_)
        self.labels_ = nearest_centers(T, self.cluster_centers_).astype(np.int64)
        if count < self.n_clusters:
            warnings.warn(
                f"{type(self).__name__}({self.n_clusters}): there are fewer different rows of X: "
                f"{count}",
                ConvergenceWarning,
                stacklevel=outer_level(),
            )

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the arrays of a loaded model do not fit together."""
        self._check_parameters()
        require_attributes(
            self,
            cluster_centers_="float64[k, m]",
            labels_="int64[*]",
            inertia_="float",
            n_features_in_="=d",
            feature_names_in_="labels[d]?",
        )


@estimator
class KernelPCAClustering(CoordinateClustering):
    """k-means on the first kernel principal components.

    It is within little of :class:`KernelKMeans`, or better as components leave out noise, and
    faster where clusters are few.

    Parameters
    ----------
    n_components : int, optional
        Number of components; by default as many as clusters, or as there are.
    kernel : Kernel, callable, "precomputed" or None, default=None
        As in :class:`KernelPCA`.
    feature_map : transformer, optional
        An explicit map in place of the kernel, for more rows.

    Attributes
    ----------
    pca_ : KernelPCA
        The components.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hilbin.estimators import KernelPCAClustering
    >>> from hilbin.kernels import Chi2, Exponential
    >>> X = load_digits().data
    >>> model = KernelPCAClustering(10, kernel=Exponential(Chi2(), "mean")).fit(X[:1500])
    >>> model.predict(X[1500:]).shape
    (297,)
    """

    _: KW_ONLY
    kernel: Any = None
    feature_map: Any = None

    def _unfitted(self, n_components: int | None = None) -> KernelPCA:
        return KernelPCA(
            self.kernel,
            n_components,
            feature_map=self.feature_map,
            preimage=None,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows, or their Gram matrix with ``kernel="precomputed"``.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice.

        Returns
        -------
        self : KernelPCAClustering
        """
        self._check_parameters()
        count = self.n_clusters if self.n_components is None else self.n_components
        self.pca_ = self._unfitted(count)
        T = self.pca_._fit(X, sample_weight, fewer=self.n_components is None)
        T = T if sample_weight is None else self.pca_.transform(X)
        self._keep_names(self.pca_)
        self._cluster(T, keys_of([self.pca_], [X]), sample_weight)
        return self

    def predict(self, X: Any) -> Array:
        """Find the clusters of new rows.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows, or the kernel between them and every row of ``fit`` if it was precomputed.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Number of the nearest center.
        """
        check_is_fitted(self, "labels_")
        return nearest_centers(self.pca_.transform(X), self.cluster_centers_).astype(np.int64)

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the arrays of a loaded model do not fit together."""
        super()._check_state()
        found = require_attributes(self, cluster_centers_="float64[k, m]", pca_=KernelPCA)
        if found:
            count = vars(self.pca_).get("n_components_")
            require(count == found["m"], "pca_ has another number of components")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = self._unfitted().__sklearn_tags__().input_tags
        return tags


@estimator
class CorrelationalClustering(CoordinateClustering):
    """k-means on what two views of the same things have in common.

    Coordinates are those of :class:`KernelCCA`. Clusters of a weak view, as pictures beside their
    texts, are better for it; a strong view alone is as good.

    Parameters
    ----------
    n_components : int, optional
        Number of coordinates of each view; by default 10, or as many as there are.
    kernel : Kernel, callable, "precomputed" or None, or a pair of these, default=None
        The kernel of both views, or of each.
    view : {"X", "y", "both"}
        View whose coordinates are clustered, or both side by side.
    reg : float or pair of float, default=3e-3
        Penalty of :class:`KernelCCA`.
    feature_map : transformer or None, or a pair of these
        Explicit maps in place of the kernels.

    Attributes
    ----------
    cca_ : KernelCCA
        The coordinates.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hilbin.estimators import CorrelationalClustering
    >>> X = load_iris().data
    >>> model = CorrelationalClustering(3, reg=0.01).fit(X[:, :2], X[:, 2:])
    >>> model.predict(X[:5, :2]).shape
    (5,)
    """

    _: KW_ONLY
    kernel: Any = None
    view: str = "X"
    reg: Any = 3e-3
    feature_map: Any = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_choice("view", self.view, VIEWS)

    def _unfitted(self) -> KernelCCA:
        return KernelCCA(
            self.kernel,
            self.n_components,
            reg=self.reg,
            feature_map=self.feature_map,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the clusters.

        Parameters
        ----------
        X, y : array-like or sparse of shape (n_samples, n_features)
            Rows of the two views, of the same things, or their Gram matrices.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice.

        Returns
        -------
        self : CorrelationalClustering
        """
        self._check_parameters()
        if y is None:
            raise ValueError(
                "CorrelationalClustering requires y to be passed, but the target y is None: it is "
                "the second view"
            )
        self.cca_ = self._unfitted().fit(X, y, sample_weight)
        self._keep_names(self.cca_)
        keys = keys_of(self.cca_.views_, [X, as_columns(y)])
        self._cluster(self._coordinates(X, y), keys, sample_weight)
        return self

    def fit_predict(self, X: Any, y: Any = None, **fit_params: Any) -> Array:
        """Find the clusters, and return those of the training rows.

        Parameters
        ----------
        X, y, **fit_params : as in ``fit``

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        return self.fit(X, y, **fit_params).labels_

    def predict(self, X: Any, y: Any = None) -> Array:
        """Find the clusters of new rows.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows of the view that was clustered, or of the first of both.
        y : array-like or sparse of shape (n_samples, n_features), optional
            Rows of the second view, if both were clustered.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Number of the nearest center.
        """
        check_is_fitted(self, "labels_")
        if (y is None) == (self.view == "both"):
            needed = "X and y" if self.view == "both" else "one view, as X,"
            raise ValueError(f'view="{self.view}" needs {needed} to predict')
        given = (X, y) if self.view == "both" else (X, X)
        T = self._coordinates(*given)
        return nearest_centers(T, self.cluster_centers_).astype(np.int64)

    def _coordinates(self, X: Any, y: Any) -> Array:
        if self.view == "both":
            return np.hstack(self.cca_.transform(X, y))
        found: Array = self.cca_.transform(*((X,) if self.view == "X" else (None, as_columns(y))))
        return found

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the arrays of a loaded model do not fit together."""
        super()._check_state()
        found = require_attributes(self, cluster_centers_="float64[k, m]", cca_=KernelCCA)
        if found:
            count = getattr(self.cca_, "n_components_", 0) * (2 if self.view == "both" else 1)
            require(count == found["m"], "cca_ has another number of components")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = self._unfitted().__sklearn_tags__().input_tags
        tags.target_tags.required = True
        return tags


def keys_of(views: Sequence[KernelProjection], given: Sequence[Any]) -> Array:
    """Return numbers that are equal for equal rows; those of a Gram matrix all differ."""
    found = []
    for view, X in zip(views, given, strict=True):
        rows = view._new_rows(X)
        every = np.arange(rows.shape[0], dtype=np.uint64)
        found.append(every if view._precomputed else row_keys(rows))
    return np.column_stack(found)
