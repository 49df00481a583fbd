r"""Principal components of data of any size, or of its kernel features, from one pass.

With a map :math:`z` of a kernel the components of :math:`z(x)` are those of kernel PCA, as far as
the map goes (B. Schölkopf, A. Smola and K.-R. Müller, *Nonlinear Component Analysis as a Kernel
Eigenvalue Problem*, 1998); the Gram matrix is never made.
"""

from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from hilbin._arrays import Array
from hilbin.estimators._descriptors import features_of, strips
from hilbin.estimators._passes import Describe
from hilbin.estimators._streamed import Passes, StreamedModel, keeps_sums
from hilbin.solvers import pca
from hilbin.stats import Moments


class StreamPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, StreamedModel):
    """Principal component analysis from sums: exact, out of core, and of kernel features.

    Equal to :class:`sklearn.decomposition.PCA` on the same rows, up to the signs of components,
    whose largest entry is positive.

    Parameters
    ----------
    n_components : int or float, optional
        Components to keep, or the share of the variance they must have; by default all that have
        any variance.
    feature_map : transformer, optional
        Map of a kernel, for components of its features; as in :class:`MapRidge`.
    whiten : bool, default=False
        Whether components are scaled to variance 1.
    n_fit_samples, keep_sums, n_jobs, checkpoint, memory, random_state
        As in :class:`MapRidge`.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Directions of falling variance.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
        Variance along them, and its share of all variance.
    singular_values_ : ndarray of shape (n_components,)
        Of the centered rows.
    mean_ : ndarray of shape (n_features,)
        Of the features.
    n_components_ : int
        Number of components.
    n_samples_seen_ : float
        Weight of the rows.
    residual_ : float
        How far the components are from eigenvectors, over the largest eigenvalue.
    transformers_ : list of tuples (name, columns, map)
        The fitted map.
    n_features_in_ : int
        Columns of ``X``.
    feature_names_in_ : ndarray
        Their names, if ``X`` has some.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.estimators import StreamPCA
    >>> blocks = [np.random.default_rng(i).normal(size=(50, 3)) * [1, 9, 3] for i in range(4)]
    >>> model = StreamPCA(2).fit(blocks)
    >>> model.explained_variance_ratio_.round(1)
    array([0.9, 0.1])
    >>> model.transform(blocks[0]).shape
    (50, 2)
    """

    def __init__(
        self,
        n_components: Any = None,
        *,
        feature_map: Any = None,
        whiten: bool = False,
        n_fit_samples: int = 10_000,
        keep_sums: bool = False,
        n_jobs: int | None = None,
        checkpoint: Any = None,
        memory: float | None = None,
        random_state: Any = 0,
    ):
        self.n_components = n_components
        self.feature_map = feature_map
        self.whiten = whiten
        self.n_fit_samples = n_fit_samples
        self.keep_sums = keep_sums
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.memory = memory
        self.random_state = random_state

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
            A weight of 2 is the row twice.
        client, callback
            As in :meth:`MapRidge.fit`.

        Returns
        -------
        self : StreamPCA
        """
        self._check_streaming()
        chunks = self._open(X, None, sample_weight, reset=True)
        passes = Passes(self.checkpoint, self.n_jobs, client, callback)
        self._survey(chunks, passes)
        self._decompose(passes.fold("sums", chunks, Describe(self.transformers_, self._budget))[0])
        passes.finish()
        return self

    @available_if(keeps_sums)  # type: ignore[untyped-decorator]
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
        self._check_streaming()
        first = self._is_first()
        chunks = self._open(X, None, sample_weight, reset=first)
        passes = Passes(self.checkpoint, self.n_jobs)
        if first:
            self._survey(chunks, passes)
        sums = passes.fold("sums", chunks, Describe(self.transformers_, self._budget))[0]
        if hasattr(self, "_sums"):
            sums += Moments.from_state(self._sums)
        self._decompose(sums)
        passes.finish()
        return self

    def _decompose(self, moments: Moments) -> None:
        if moments.n == 0:
            raise ValueError("no row has a weight above 0")
        self._sums = moments.state() if self.keep_sums else None
        found = pca(moments, self.n_components)
        self.components_, self.mean_ = found.components, found.mean
        self.explained_variance_ = found.eigenvalues / max(found.n - 1, np.finfo(float).tiny)
        shares = found.eigenvalues / (found.total or 1.0)
        self.explained_variance_ratio_ = shares
        self.singular_values_ = np.sqrt(found.eigenvalues)
        self.n_components_ = len(found.components)
        self.n_samples_seen_, self.residual_ = found.n, found.residual

    def transform(self, X: Any) -> Array:
        """Coordinates of rows in the components.

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
        for chunk in self._open(X, reset=False):
            dtype = chunk.X.dtype if chunk.X.dtype.kind == "f" else np.float64
            out = np.empty((chunk.X.shape[0], self.n_components_), dtype)
            for rows in strips(self.transformers_, chunk.X, self._budget):
                Z = features_of(self.transformers_, chunk.X[rows])[0]
                out[rows] = Z @ directions.T - self.mean_ @ directions.T
            parts.append(out)
        return np.concatenate(parts) if parts else np.empty((0, self.n_components_))

    def inverse_transform(self, X: Any) -> Array:
        """Rows of coordinates; only without a map.

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
            raise ValueError("features of a map cannot be turned back into rows: map must be None")
        return (np.asarray(X) * self._scale()) @ self.components_ + self.mean_

    def _scale(self) -> Array:
        """What coordinates are divided by; 1 where there is no variance to speak of."""
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
