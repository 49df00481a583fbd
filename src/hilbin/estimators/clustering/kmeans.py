"""k-means in the feature space of a kernel."""

import warnings
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from hilbin._arrays import Array, Matrix
from hilbin._parameters import estimator, require_whole
from hilbin._state import require, require_attributes
from hilbin.estimators._fit import checked_weights, outer_level
from hilbin.estimators.clustering.base import CenterClustering
from hilbin.estimators.clustering.sweeps import (
    Partition,
    cluster_sums,
    single_moves,
    spread_labels,
    sweeps,
)
from hilbin.estimators.probability import row_keys
from hilbin.kernels import Kernel
from hilbin.parallel import blas_threads


@estimator
class KernelKMeans(CenterClustering):
    r"""k-means clustering in the feature space of any kernel.

    It minimizes :math:`\sum_i w_i \|\phi(x_i) - c_{l_i}\|^2` over clusters :math:`l_i`, with
    centers :math:`c_l` that are weighted means of images :math:`\phi(x_i)`. Starts are drawn by
    k-means++ in feature space; rows go to their nearest centers in sweeps, and then one by one
    wherever that lowers the sum. A weight of 2 is the row twice: equal rows are taken as one with
    the sum of their weights. For more than 20 000 rows take :class:`StreamKMeans` with a map.

    A Gram matrix that is not positive semi-definite may end before an optimum;
    ``repair_psd(K, "shift")`` has the same best clusters without that.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_init : int, default=5
        Number of starts, of which the best is kept.
    max_iter : int, default=100
        Most sweeps over the rows from each start, and most rounds of single moves after them.

    Attributes
    ----------
    inertia_ : float
        Sum of weighted squared distances from the centers, in feature space.
    n_iter_ : int
        Sweeps and rounds from the best start.
    X_fit_ : ndarray or CSR array of shape (n_distinct, n_features)
        Different training rows of weight above 0; None if the kernel was precomputed.
    coef_ : ndarray of shape (n_distinct, n_clusters)
        Centers as weighted means of these rows, in feature space.
    center_norms_ : ndarray of shape (n_clusters,)
        Squared norms of the centers.

    References
    ----------
    I. Dhillon, Y. Guan and B. Kulis, *Kernel k-means, Spectral Clustering and Normalized Cuts*,
    2004.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hilbin.estimators import KernelKMeans
    >>> from hilbin.kernels import Linear
    >>> X = load_iris().data
    >>> clusters = KernelKMeans(3, kernel=Linear()).fit(X)
    >>> round(clusters.inertia_, 4)
    78.8514
    >>> bool((clusters.predict(X) == clusters.labels_).all())
    True
    """

    n_clusters: int = 8
    _: KW_ONLY
    kernel: Any = None
    n_init: int = 5
    max_iter: int = 100

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_whole("n_clusters", self.n_clusters, 1)
        require_whole("n_init", self.n_init, 1)
        require_whole("max_iter", self.max_iter, 1)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows, or their Gram matrix with ``kernel="precomputed"``.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows, >= 0.

        Returns
        -------
        self : KernelKMeans
        """
        rows = self._rows(X, self.n_clusters)
        weights = checked_weights(sample_weight, rows)
        present = np.flatnonzero(weights)
        first, inverse = self._distinct(rows[present])
        index = present[first]
        totals = np.bincount(inverse, weights[present])
        chosen = rows[index][:, index] if self._precomputed else rows[index]
        self._resolve_kernel(chosen)
        with blas_threads(self.n_jobs):
            found = self._best(self._gram_of(chosen), totals)
        self._keep(found, totals, index, chosen, rows.shape[0])
        self.labels_ = np.empty(rows.shape[0], np.int64)
        self.labels_[present] = found.labels[inverse]
        absent = np.flatnonzero(weights == 0)
        if absent.size:
            self.labels_[absent] = self._nearest(rows[absent])
        self._warn(found)
        return self

    def _nearest(self, rows: Matrix) -> Array:
        labels = np.empty(rows.shape[0], np.int64)
        for part, K in self._bands(rows, self.X_fit_):
            labels[part] = np.argmin(self.center_norms_ - 2 * (K @ self.coef_), axis=1)
        return labels

    def _distinct(self, rows: Matrix) -> tuple[Array, Array]:
        """Return where each different row is first, in any order of rows, and which one each is."""
        if self._precomputed:
            every = np.arange(rows.shape[0])
            return every, every
        _, first, inverse = np.unique(row_keys(rows), return_index=True, return_inverse=True)
        return first, inverse

    def _best(self, K: Any, weights: Array) -> Partition:
        random = check_random_state(self.random_state)
        n_clusters = min(self.n_clusters, len(weights))
        starts = [spread_labels(K, weights, n_clusters, random) for _ in range(self.n_init)]
        sums = cluster_sums(K, weights, starts)
        found = (
            single_moves(K, weights, sweeps(K, weights, labels, self.max_iter, G), self.max_iter)
            for labels, G in zip(starts, sums, strict=True)
        )
        return min(found, key=lambda partition: partition.inertia)

    def _keep(self, found: Partition, weights: Array, index: Array, rows: Matrix, n: int) -> None:
        self.inertia_, self.n_iter_ = found.inertia, found.n_iter
        self.center_norms_ = found.center_norms
        self.X_fit_ = None if self._precomputed else rows
        places = index if self._precomputed else np.arange(index.size)
        self.coef_ = np.zeros((n if self._precomputed else index.size, found.sizes.size))
        self.coef_[places, found.labels] = weights / found.sizes[found.labels]

    def _warn(self, found: Partition) -> None:
        if found.sizes.size < self.n_clusters:
            reason = f"there are fewer different rows of X: {found.sizes.size}"
        elif not found.converged and found.n_iter > self.max_iter:
            reason = f"rows still moved after max_iter={self.max_iter} rounds"
        else:
            return
        warnings.warn(
            f"KernelKMeans({self.n_clusters}): {reason}",
            ConvergenceWarning,
            stacklevel=outer_level(),
        )

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the arrays of a loaded model do not fit together."""
        self._check_parameters()
        found = require_attributes(
            self,
            labels_="int64[*]",
            inertia_="float",
            n_iter_="int",
            X_fit_="matrix[n, d]?" if self._precomputed else "matrix[n, d]",
            coef_="float64[d, k]" if self._precomputed else "float64[n, k]",
            center_norms_="float64[k]",
            n_features_in_="=d",
            feature_names_in_="labels[d]?",
        )
        if found and not self._precomputed:
            require(isinstance(self.kernel_, Kernel), "kernel_ is no kernel")
