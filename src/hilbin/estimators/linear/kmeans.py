r"""k-means of data of any size, or of their kernel features.

With a map :math:`z` of a kernel, k-means of :math:`z(x)` is kernel k-means, as far as the map goes:
centers are rows of features, and a round costs :math:`O(nDk)` instead of :math:`O(n^2 k)`.

**Algorithm.** A round moves every center to the mean of the rows nearest to it (S. Lloyd, *Least
Squares Quantization in PCM*, 1982). It is a sum over rows, :class:`~hilbin.stats.ClusterSums`, so
centers do not depend on how rows are cut into chunks. Starts are those of k-means++ on a sample of
the different rows, improved on that sample; all of them are moved side by side, in the same pass.
A center without rows stays where it is.

**Stopping rule.** A start is done when a round lowers its sum of squares by no more than ``tol`` of
it; the centers are those before that round, whose sum is known.

**Mini-batches.** ``partial_fit`` moves centers to the means of all rows that were ever nearest to
them when they came (D. Sculley, *Web-Scale k-Means Clustering*, 2010).
"""

import warnings
from dataclasses import KW_ONLY, dataclass, replace
from functools import reduce
from operator import iadd
from typing import Any, Self

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hilbin._arrays import Array, Matrix, to_dense
from hilbin._parameters import estimator, require_positive, require_whole
from hilbin._state import require, require_attributes
from hilbin.estimators._fit import outer_level, random_seed
from hilbin.estimators.linear.base import MapModel
from hilbin.estimators.linear.passes import Passes, Survey
from hilbin.estimators.linear.transformers import (
    fitted,
    joint_features,
    require_plain_inner_product,
    row_slices,
)
from hilbin.parallel import blas_threads
from hilbin.stats import ClusterSums, StatisticTuple
from hilbin.stats.groups import nearest_centers
from hilbin.stream import Chunk, Chunks, as_chunks


@estimator
class StreamKMeans(ClusterMixin, MapModel):
    """k-means clustering of rows, or of their kernel features, in memory or out of core.

    With a map of a kernel it is :class:`KernelKMeans` for any number of rows; without one it is
    :class:`sklearn.cluster.KMeans` from passes over the data.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_init : int, default=5
        Number of starts, of which the best is kept. All are moved in the same passes.
    max_iter : int, default=100
        Most rounds, a pass over the rows each.
    tol : float, default=1e-4
        A start ends with a round that lowers its inertia by no more than this share; 0 goes on
        until nothing changes.
    n_fit_samples : int, default=10000
        Number of different rows in the sample to which maps are fitted, and in which starts are
        drawn.
    checkpoint : path, optional
        Folder for the running sums, from which a job that was killed resumes. It is removed at the
        end of the fit.
    verbose : int, default=0
        1 prints how far a pass over the rows has come, if it takes over two seconds.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_map_features)
        Centers in the features of the map.
    counts_ : ndarray of shape (n_clusters,)
        Weight of the rows of every cluster.
    inertia_ : float
        Sum of weighted squared distances from the centers; after ``partial_fit`` that of all
        batches, each when it came.
    labels_ : ndarray of shape (n_samples,)
        The cluster of every row of ``fit``, or of the last batch.
    n_iter_ : int
        Rounds of the start that was kept.
    transformers_ : list of tuples (name, columns, map)
        The fitted map.

    See Also
    --------
    KernelKMeans : exact, for as many rows as a Gram matrix has room for.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hilbin.estimators import StreamKMeans
    >>> from hilbin.kernels import Chi2
    >>> from hilbin.maps import AdditiveMap
    >>> X = load_digits().data
    >>> chunks = [X[i : i + 300] for i in range(0, 1797, 300)]
    >>> model = StreamKMeans(10, feature_map=AdditiveMap(Chi2())).fit(chunks)
    >>> model.predict(X[:5]).shape
    (5,)
    """

    n_clusters: int = 8
    _: KW_ONLY
    n_init: int = 5
    max_iter: int = 100
    tol: float = 1e-4
    checkpoint: Any = None
    verbose: int = 0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_whole("n_clusters", self.n_clusters, 1)
        require_whole("n_init", self.n_init, 1)
        require_whole("max_iter", self.max_iter, 1)
        require_positive("tol", self.tol, or_zero=True)

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        client: Any = None,
        callback: Any = None,
    ) -> Self:
        """Find the clusters.

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
        self : StreamKMeans
        """
        self._check_parameters()
        chunks = self._open(X, sample_weight, reset=True)
        told: Any = (self.n_jobs, client, self.checkpoint, callback, self.verbose)
        with Passes(chunks, *told) as passes:
            starts = self._starts(passes)
            found = self._rounds(passes, starts)
        self._keep(found.sums, found.centers)
        self.n_iter_ = found.n_iter
        self.labels_ = self.predict(X)
        if not found.done:
            self._warn(f"centers still moved after max_iter={self.max_iter} rounds")
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Move the centers by a batch of rows; the first one fits the map and finds a start.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`.

        Returns
        -------
        self : StreamKMeans
        """
        self._check_parameters()
        first = not hasattr(self, "cluster_centers_")
        passes = Passes(self._open(X, sample_weight, reset=first), self.n_jobs)
        if first:
            centers = self._starts(passes)[0]
            self._keep(ClusterSums(np.zeros(len(centers)), centers, 0.0), centers)
        step = passes.fold("batch", self._assignment((self.cluster_centers_,)))[0]
        sums = ClusterSums(self.counts_, self.cluster_centers_, self.inertia_) + step
        self._keep(sums, sums.mean)
        self.n_iter_ = 1
        self.labels_ = self.predict(X)
        return self

    def _open(self, X: Any, weight: Any, *, reset: bool) -> Chunks:
        """Return checked rows, cut into chunks in memory as well."""
        rows = self._rows(X, None, weight, reset=reset)
        if isinstance(rows, Chunk):
            if reset and rows.X.shape[0] < self.n_clusters:
                raise ValueError(
                    f"n_clusters={self.n_clusters} is more than the n_samples={rows.X.shape[0]} "
                    "rows of X"
                )
            return as_chunks(rows.X, None, rows.weight, memory=self.memory)
        return rows

    def _starts(self, passes: Passes) -> list[Array]:
        """Keep the fitted map; return centers of each start, found on a sample of the rows."""
        seed = random_seed(self.random_state)
        sample = passes.fold("survey", Survey(max(self.n_fit_samples, self.n_clusters), seed))[0]
        if not sample.rows.shape[0]:
            raise ValueError("sample_weight is zero for every row")
        self.transformers_ = fitted(self._transformers(), sample, seed)
        require_plain_inner_product(self.transformers_[0][2])
        Z = features_of(self.transformers_, sample.rows)
        count = min(self.n_clusters, len(np.unique(Z, axis=0)))
        if count < self.n_clusters:
            self._warn(f"there are fewer different rows: {count}")
        random = check_random_state(seed)
        seeds = random.randint(np.iinfo(np.int32).max, size=self.n_init)
        with blas_threads(self.n_jobs):
            return [
                KMeans(count, n_init=1, random_state=int(s))
                .fit(Z, sample_weight=sample.weight)
                .cluster_centers_
                for s in seeds
            ]

    def _rounds(self, passes: Passes, starts: list[Array]) -> "Start":
        """Move all starts until each is done, or rounds are over; return the best."""
        moving, done = [Start(centers) for centers in starts], []
        for number in range(1, self.max_iter + 1):
            centers = tuple(start.centers for start in moving)
            sums = passes.fold(f"round {number}", self._assignment(centers)).parts
            moved = [start.after(step, self.tol) for start, step in zip(moving, sums, strict=True)]
            done += [start for start in moved if start.done]
            moving = [start for start in moved if not start.done]
            if not moving:
                break
        return min(done or moving, key=lambda start: start.sums.inertia)

    def _assignment(self, starts: tuple[Array, ...]) -> "Assignment":
        return Assignment(self.transformers_, self._budget, starts)

    def _keep(self, sums: ClusterSums, centers: Array) -> None:
        self.cluster_centers_, self.counts_, self.inertia_ = centers, sums.n, float(sums.inertia)

    def _warn(self, reason: str) -> None:
        warnings.warn(
            f"StreamKMeans({self.n_clusters}): {reason}",
            ConvergenceWarning,
            stacklevel=outer_level(),
        )

    def predict(self, X: Any) -> Array:
        """Find the clusters of rows.

        Parameters
        ----------
        X : array-like, sparse, or anything that :func:`hilbin.stream.as_chunks` takes
            Rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Number of the nearest center.
        """
        check_is_fitted(self, "cluster_centers_")
        parts = [np.empty(0, np.int64)]
        for chunk in self._chunks(X):
            for rows in row_slices(self.transformers_, chunk.X, self._budget):
                Z = features_of(self.transformers_, chunk.X[rows])
                require(Z.shape[1] == self.cluster_centers_.shape[1],
                        "cluster_centers_ has other columns than the features")  # fmt: skip
                parts.append(nearest_centers(Z, self.cluster_centers_).astype(np.int64))
        return np.concatenate(parts)

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the arrays of a loaded model do not fit together."""
        self._check_parameters()
        self._check_transformers()
        require_attributes(
            self,
            cluster_centers_="float64[k, p]",
            counts_="float64[k]",
            inertia_="float",
            labels_="int64[*]",
            n_iter_="int",
            n_features_in_="int",
        )


@dataclass(frozen=True)
class Start:
    """Centers, the sums that the last round found for them, and whether they stay."""

    centers: Array
    sums: Any = None
    n_iter: int = 0
    done: bool = False

    def after(self, step: ClusterSums, tol: float) -> "Start":
        """Return the start after a round, which said what its centers are worth."""
        fallen = np.inf if self.sums is None else self.sums.inertia - step.inertia
        still = np.array_equal(step.mean, self.centers)
        if still or fallen <= tol * step.inertia:
            return replace(self, sums=step, n_iter=self.n_iter + 1, done=True)
        return replace(self, centers=step.mean, sums=step, n_iter=self.n_iter + 1)


@dataclass(frozen=True)
class Assignment:
    """The sums of the rows that are nearest to every center, of each start."""

    transformers: Any
    budget: float
    starts: tuple[Array, ...]

    def __call__(self, chunk: Chunk) -> StatisticTuple:
        """Return the sums of a chunk."""
        slices = row_slices(self.transformers, chunk.X, self.budget)
        return reduce(iadd, (self._of(chunk, rows) for rows in slices))

    def _of(self, chunk: Chunk, rows: slice) -> StatisticTuple:
        Z = features_of(self.transformers, chunk.X[rows])
        weight = None if chunk.weight is None else chunk.weight[rows]
        return StatisticTuple(*(ClusterSums.of(Z, c, weight) for c in self.starts))


def features_of(transformers: Any, X: Matrix) -> Array:
    """Return dense features in double precision."""
    return to_dense(joint_features(transformers, X)).astype(np.float64, copy=False)
