"""What estimators without labels share: the Gram matrix of all rows."""

from typing import Any

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hilbin._arrays import Array, Matrix
from hilbin._parameters import estimator
from hilbin.estimators._sizes import check_kernel_values
from hilbin.estimators.kernel.gram import Gram, check_gram, resolved
from hilbin.estimators.kernel.machine import KernelEstimator

MOST_ROWS = 20_000  # of a matrix of all pairs
MOST_EXACT = 5_000  # rows whose matrix is in double precision


@estimator
class KernelClustering(ClusterMixin, KernelEstimator):
    """Base of the estimators that look at all pairs of rows.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of every training row, from 0.
    """

    def _rows(self, X: Any, n_clusters: int | None = None) -> Matrix:
        """Check parameters and rows, of which there must be as many as clusters, but not too many.

        A given matrix is read as a whole.
        """
        rows, _ = self._checked(X)
        n = rows.shape[0]
        if n_clusters is not None and n_clusters > n:
            raise ValueError(f"n_clusters={n_clusters} is more than the {n} rows (samples) of X")
        if n > MOST_ROWS:
            raise ValueError(
                f"X has {n} rows, but a matrix of all pairs is for {MOST_ROWS} at most: take "
                "StreamKMeans with a map of hilbin.maps"
            )
        if self._precomputed:
            check_gram(rows, most_whole=np.inf)
        return rows

    def _resolve_kernel(self, rows: Matrix) -> None:
        """Keep ``kernel_``, with rules resolved on the rows."""
        self.kernel_: Any = "precomputed"
        if not self._precomputed:
            random = check_random_state(self.random_state)
            self.kernel_ = resolved(self.kernel, rows, random, self._names)

    def _gram_of(self, rows: Matrix) -> Any:
        """Return the matrix of all pairs, in single precision if it is large; sparse if it is."""
        if self._precomputed:
            return rows
        dtype = np.float64 if rows.shape[0] <= MOST_EXACT else np.float32
        K = Gram.of_rows(self.kernel_, rows, dtype, 8 * MOST_ROWS**2, self.n_jobs).K
        check_kernel_values(K.diagonal())
        return K


@estimator
class CenterClustering(KernelClustering):
    """Base of the estimators that know the nearest center, or prototype, of new rows.

    Attributes
    ----------
    X_fit_ : ndarray or CSR array of shape (n_kept, n_features)
        Training rows that centers are made of; None if the kernel was precomputed.
    """

    def predict(self, X: Any) -> Array:
        """Find the clusters of new rows.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows, or the kernel between them and every row of ``fit`` if it was precomputed.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Number of the nearest center, or prototype, in feature space.
        """
        check_is_fitted(self, "labels_")
        return self._nearest(self._new_rows(X))

    def _nearest(self, rows: Matrix) -> Array:
        raise NotImplementedError
