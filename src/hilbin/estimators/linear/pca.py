r"""Principal components of data of any size, or of its kernel features, from one pass.

With a map :math:`z` of a kernel the components of :math:`z(x)` are those of kernel PCA, as far as
the map goes (B. Schölkopf, A. Smola and K.-R. Müller, *Nonlinear Component Analysis as a Kernel
Eigenvalue Problem*, 1998); the Gram matrix is never made.
"""

from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from hilbin._arrays import Array
from hilbin._parameters import estimator
from hilbin._state import require_attributes
from hilbin.estimators._callbacks import available_where
from hilbin.estimators._sizes import require_finite, without_warnings
from hilbin.estimators.linear.base import SumsModel, keeps_sums
from hilbin.estimators.linear.cost import FirstRows, Plan, number_kept
from hilbin.estimators.linear.passes import FeatureMoments, Passes
from hilbin.estimators.linear.transformers import group_features, row_slices
from hilbin.solvers.ridge import pca
from hilbin.stats import Moments


@estimator
class StreamPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SumsModel):
    """Principal component analysis from sums: exact, out of core, and of kernel features.

    The components equal those of :class:`sklearn.decomposition.PCA` on the same rows, up to their
    signs: the largest entry of a component is positive.

    Parameters
    ----------
    n_components : int or float, optional
        Number of components to keep, or the share of the variance they must have; by default all
        that have any variance.
    whiten : bool, default=False
        Whether components are scaled to variance 1.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Directions of falling variance.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
        Variance along them, and its share of all variance.
    singular_values_ : ndarray of shape (n_components,)
        Singular values of the centered rows.
    mean_ : ndarray of shape (n_features,)
        Mean of the features.
    n_components_ : int
        Number of components.
    n_samples_seen_ : float
        Weight of the rows.
    residual_ : float
        How far the components are from eigenvectors, over the largest eigenvalue.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.estimators import StreamPCA
    >>> chunks = [np.random.default_rng(i).normal(size=(50, 3)) * [1, 9, 3] for i in range(4)]
    >>> model = StreamPCA(2).fit(chunks)
    >>> model.explained_variance_ratio_.round(1)
    array([0.9, 0.1])
    >>> model.transform(chunks[0]).shape
    (50, 2)
    """

    n_components: Any = None
    _: KW_ONLY
    whiten: bool = False

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        client: Any = None,
        callback: Any = None,
    ) -> Self:
        """Find the components.

        Parameters
        ----------
        X : array-like, sparse, or anything that :func:`hilbin.stream.as_chunks` takes
            Rows.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice.
        client : distributed.Client, optional
            The Dask cluster to compute on.
        callback : callable, optional
            Function that is called with the name of the pass, the rows done, and all rows or None.

        Returns
        -------
        self : StreamPCA
        """
        self._check_parameters()
        chunks = self._open(X, None, sample_weight, reset=True)
        with self._passes(chunks, client, callback) as passes:
            self._fit_maps(passes)
            self._decompose(self._moments(passes))
        return self

    @available_where(keeps_sums)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to those of earlier calls; needs ``keep_sums=True``.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`; the map is fitted at the first call.

        Returns
        -------
        self : StreamPCA
        """
        self._check_parameters()
        first = self._is_first()
        with self._passes(self._open(X, None, sample_weight, reset=first)) as passes:
            if first:
                self._fit_maps(passes)
            self._decompose(self._with_earlier(self._moments(passes)))
        return self

    def _plan(self, widths: tuple[int, ...], rows: FirstRows, n_workers: int) -> Plan:
        count = number_kept(self.n_components, widths[0])
        return Plan(0, (widths,), (), "eigen", widths[0], count)

    @without_warnings()
    def _moments(self, passes: Passes) -> Moments:
        moments: Moments = passes.fold("sums", FeatureMoments(self.transformers_, self._budget))[0]
        return moments

    @without_warnings()
    def _decompose(self, moments: Moments) -> None:
        if moments.n == 0:
            raise ValueError("sample_weight is zero for every row")
        self._keep_sums(moments)
        if self.verbose:
            print(f"[solution] components of {moments.mean.size:,} features", flush=True)
        found = pca(moments, self.n_components)
        self.components_, self.mean_ = found.components, found.mean
        self.explained_variance_ = found.eigenvalues / max(found.n - 1, np.finfo(float).tiny)
        self.explained_variance_ratio_ = found.eigenvalues / (found.total or 1.0)
        self.singular_values_ = np.sqrt(found.eigenvalues)
        self.n_components_ = len(found.components)
        self.n_samples_seen_, self.residual_ = found.n, found.residual
        require_finite(self, "mean_", "components_", "explained_variance_", "residual_")

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the arrays of a loaded model do not fit together."""
        require_attributes(
            self,
            components_="float[c, p]",
            mean_="float[p]",
            explained_variance_="float[c]",
            n_components_="=c",
            n_features_in_="int",
        )

    def transform(self, X: Any) -> Array:
        """Compute the coordinates of rows in the components.

        Parameters
        ----------
        X : array-like, sparse, or anything that :func:`hilbin.stream.as_chunks` takes
            Rows.

        Returns
        -------
        coordinates : ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self, "components_")
        directions = self.components_ / self._scale()[:, None]
        parts = []
        for chunk in self._chunks(X):
            dtype = chunk.X.dtype if chunk.X.dtype.kind == "f" else np.float64
            out = np.empty((chunk.X.shape[0], self.n_components_), dtype)
            for rows in row_slices(self.transformers_, chunk.X, self._budget):
                Z = group_features(self.transformers_, chunk.X[rows])[0]
                out[rows] = Z @ directions.T - self.mean_ @ directions.T
            parts.append(out)
        return np.concatenate(parts) if parts else np.empty((0, self.n_components_))

    def inverse_transform(self, X: Any) -> Array:
        """Turn coordinates back into rows; this takes a model without a map.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Coordinates.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self, "components_")
        if self.feature_map is not None:
            raise ValueError("features of a map cannot be turned back: feature_map must be None")
        return (np.asarray(X) * self._scale()) @ self.components_ + self.mean_

    def _scale(self) -> Array:
        """Return what coordinates are divided by, 1 where there is next to no variance."""
        variance = self.explained_variance_
        if not self.whiten:
            return np.ones_like(variance)
        least = variance.size * np.finfo(float).eps * variance.max(initial=0)
        return np.where(variance > least, np.sqrt(variance), 1.0)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
