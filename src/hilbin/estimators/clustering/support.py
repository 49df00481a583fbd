r"""Clusters as the parts of a region around the data: support vector clustering.

**Region.** The one-class machine (:class:`~hilbin.estimators.KernelOneClass`) with a Gaussian
kernel of width :math:`\gamma` leaves a share :math:`\nu` of the rows, at most, out of the region
:math:`f(x) = \sum_i \alpha_i k(x_i, x) - \rho \ge 0`.

**Clusters.** Two rows inside are joined if the segment between them is inside, at 10 points of it.
Only the 10 nearest rows of each are tried. Clusters are the components of that graph; rows outside
have no cluster.

**Width.** A small :math:`\gamma` gives one region, a large one a region for every row. ``"auto"``
tries :math:`2, 4, \dots, 256` over the median of the squared distances and takes the middle of the
longest run with the same number of clusters, above one, where clusters of less than 2 % of the
rows do not count: what persists over many scales is in the data. Widths that leave less than a
quarter of :math:`\nu` outside are not taken: there, the region is around each row by itself.
Without such a run the first is taken.

**Reference.** A. Ben-Hur, D. Horn, H. Siegelmann and V. Vapnik, *Support Vector Clustering*, 2001.
C. Lampert, *Kernel Methods in Computer Vision*, section 8.3.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY
from itertools import groupby
from numbers import Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import pdist
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.neighbors import NearestNeighbors

from hilbin._arrays import Array, check_rows, validate_data
from hilbin._parameters import estimator, require_positive, require_whole
from hilbin._state import require_attributes
from hilbin.estimators.kernel.outliers import KernelOneClass
from hilbin.kernels import Gaussian
from hilbin.kernels.bandwidth import sample

FACTORS = tuple(2.0**power for power in range(1, 9))
SMALL_SHARE = 0.02  # of the rows, in a cluster that does not count for the choice of the width
N_POINTS = 10  # of a segment
OUTSIDE = 0.25  # share of nu that must be outside, or the region is the rows and no more
INSIDE = 1e-4  # share of rho by which a score may be below 0


@estimator
class SupportVectorClustering(ClusterMixin, BaseEstimator):
    r"""Clusters of any shape and number, as the parts of a region around most of the rows.

    Rows belong together if a path between them stays inside the region of a one-class machine. The
    number of clusters follows from the width of the kernel; rows outside are outliers.

    Parameters
    ----------
    nu : float in (0, 1], default=0.2
        Largest share of outliers. Clusters that touch need room between them: below 0.1 they merge.
    gamma : "auto" or float > 0, default="auto"
        Width of the kernel :math:`e^{-\gamma \|x - y\|^2}`. ``"auto"`` takes what gives the same
        number of clusters over the longest range of widths.
    n_neighbors : int, default=10
        Nearest rows with which a row may be joined.
    min_size : int, default=1
        Rows of smaller clusters are outliers.
    random_state : int, RandomState or None, default=0
        Random seed of the rows whose distances are looked at, if there are more than 2000.
    n_jobs : int, optional
        Threads, as in joblib.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of every row, from 0, or -1 for outliers.
    gamma_ : float
        The width that was taken.
    n_clusters_ : int
        Number of clusters.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray
        Their names, if ``X`` has some.

    References
    ----------
    A. Ben-Hur, D. Horn, H. Siegelmann and V. Vapnik, *Support Vector Clustering*, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_blobs
    >>> from hilbin.estimators import SupportVectorClustering
    >>> X, y = make_blobs(120, centers=[[0, 0], [0, 8], [8, 0]], random_state=0)
    >>> SupportVectorClustering(min_size=5).fit(X).n_clusters_
    3
    """

    nu: float = 0.2
    gamma: Any = "auto"
    _: KW_ONLY
    n_neighbors: int = 10
    min_size: int = 1
    random_state: Any = 0
    n_jobs: int | None = None

    def _check_parameters(self) -> None:
        require_positive("nu", self.nu, most=1)
        require_whole("n_neighbors", self.n_neighbors, 1)
        require_whole("min_size", self.min_size, 1)
        if isinstance(self.gamma, Real) or self.gamma != "auto":
            require_positive("gamma, if not 'auto',", self.gamma)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the clusters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : ignored

        Returns
        -------
        self : SupportVectorClustering
        """
        self._check_parameters()
        rows = validate_data(self, X, dtype=np.float64, ensure_all_finite=False)
        rows = check_rows(rows, "X")
        if self.gamma == "auto":
            gammas = np.array(FACTORS) / self._scale(rows)
            tried = [self._labels(rows, gamma) for gamma in gammas]
            best = _steadiest([_count_large(labels, self.nu) for labels in tried])
            self.gamma_, labels = float(gammas[best]), tried[best]
        else:
            self.gamma_, labels = float(self.gamma), self._labels(rows, self.gamma)
        self.labels_ = _renumbered(labels, self.min_size)
        self.n_clusters_ = int(self.labels_.max()) + 1
        return self

    def _scale(self, rows: Array) -> float:
        """Return the median of the squared distances, or their mean if that is 0, or 1."""
        distances = pdist(sample(rows, self.random_state), "sqeuclidean")
        if not distances.any():
            return 1.0
        return float(np.median(distances)) or float(distances.mean())

    def _labels(self, rows: Array, gamma: float) -> Array:
        """Return the clusters for one width, whatever their size."""
        kernel = Gaussian(float(gamma))
        region = KernelOneClass(kernel, nu=self.nu, n_jobs=self.n_jobs).fit(rows)
        least = -INSIDE * abs(region.offset_)
        inside = np.flatnonzero(region.decision_function(rows) >= least)
        labels = np.full(len(rows), -1, np.int64)
        if not inside.size:
            return labels
        pairs = _near_pairs(rows[inside], self.n_neighbors)
        first, second = rows[inside][pairs.T]
        joined = np.ones(len(pairs), bool)
        for share in np.arange(1, N_POINTS + 1) / (N_POINTS + 1):
            tried = np.flatnonzero(joined)
            if tried.size:
                points = first[tried] + share * (second[tried] - first[tried])
                joined[tried] = region.decision_function(points) >= least
        i, j = pairs[joined].T
        graph = sp.csr_array((np.ones(i.size), (i, j)), shape=(inside.size, inside.size))
        labels[inside] = connected_components(graph, directed=False)[1]
        return labels

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the attributes of a loaded object do not fit together."""
        self._check_parameters()
        require_attributes(
            self,
            labels_="int64[*]",
            gamma_="float",
            n_clusters_="int",
            n_features_in_="=d",
            feature_names_in_="labels[d]?",
        )


def _near_pairs(rows: Array, n_neighbors: int) -> Array:
    """Return the pairs of rows of which one is among the nearest of the other, each once."""
    count = min(n_neighbors, len(rows) - 1)
    if not count:
        return np.empty((0, 2), np.intp)
    near = NearestNeighbors(n_neighbors=count).fit(rows).kneighbors(return_distance=False)
    pairs = np.column_stack([np.repeat(np.arange(len(rows)), count), near.ravel()])
    found: Array = np.unique(np.sort(pairs, axis=1), axis=0)
    return found


def _renumbered(labels: Array, min_size: int) -> Array:
    """Return clusters numbered in the order of their first rows; small ones are outliers."""
    found, first, inverse, counts = np.unique(
        labels, return_index=True, return_inverse=True, return_counts=True
    )
    kept = np.flatnonzero((found >= 0) & (counts >= min_size))
    numbers = np.full(found.size, -1, np.int64)
    numbers[kept[np.argsort(first[kept])]] = np.arange(kept.size)
    renumbered: Array = numbers[inverse]
    return renumbered


def _count_large(labels: Array, nu: float) -> int:
    """Return how many clusters are not too small to count; 0 if nearly no row is outside."""
    if np.mean(labels < 0) < OUTSIDE * nu:
        return 0
    counts = np.bincount(labels[labels >= 0])
    return int(np.count_nonzero(counts >= max(1, SMALL_SHARE * len(labels))))


def _steadiest(counts: Sequence[int]) -> int:
    """Return the middle of the longest run of one count above 1; the first if there is none."""
    runs = [list(run) for _, run in groupby(range(len(counts)), counts.__getitem__)]
    runs = [run for run in runs if counts[run[0]] > 1]
    longest = max(runs, key=len, default=[0])
    return longest[(len(longest) - 1) // 2]
