r"""k-means from a Gram matrix alone.

**Problem.** Rows with weights :math:`w_i` are split into clusters so that

.. math:: \sum_i w_i \|\phi(x_i) - c_{l_i}\|^2, \qquad c_l = \frac{1}{s_l} \sum_{l_j = l} w_j
    \phi(x_j), \quad s_l = \sum_{l_j = l} w_j ,

is small. Centers are known by their products with the rows alone,

.. math:: \|\phi(x_i) - c_l\|^2 = k_{ii} - \frac{2 G_{il}}{s_l} + \frac{Q_l}{s_l^2}, \quad
    G_{il} = \sum_{l_j = l} w_j k_{ij}, \quad Q_l = \sum_{l_i = l} w_i G_{il} .

**Algorithm.** Every row goes to the nearest center, then centers are computed again: :math:`G`
changes by the rows of :math:`K` of those that moved, which are few after some sweeps. An empty
cluster takes the row that adds most to the sum. The sum falls with every sweep if :math:`K` is
positive semi-definite. Sweeps end where no row moves, or the sum no longer falls.

**Start.** k-means++: rows are drawn with probabilities in proportion to their weighted squared
distances from those already drawn; of :math:`2 + \lfloor \ln k \rfloor` such rows the one is kept
that leaves the smallest sum.

**References.** B. Schölkopf, A. Smola and K.-R. Müller, *Nonlinear Component Analysis as a Kernel
Eigenvalue Problem*, 1998. I. Dhillon, Y. Guan and B. Kulis, *Kernel k-means, Spectral Clustering
and Normalized Cuts*, 2004. D. Arthur and S. Vassilvitskii, *k-means++: The Advantages of Careful
Seeding*, 2007.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hilbin._arrays import Array, to_dense

ROUNDING = 8  # units in the last place of k(x, x) + k(y, y) that are no distance
FALLS = 1e-12  # share of the sum that is not rounding


@dataclass(frozen=True)
class Partition:
    """Clusters of rows; ``center_norms`` are the squared norms of their centers."""

    labels: Array
    inertia: float
    sizes: Array
    center_norms: Array
    n_iter: int
    converged: bool


def spread_labels(K: Any, weights: Array, n_clusters: int, random: np.random.RandomState) -> Array:
    """Return the nearest of rows drawn far from each other; fewer, if there are no more places."""
    norms = np.asarray(K.diagonal(), np.float64)
    n_candidates = 2 + int(np.log(n_clusters))
    nearest = np.full(len(norms), np.inf)
    labels = np.zeros(len(norms), np.intp)
    chances = weights
    for cluster in range(n_clusters):
        if not chances.any():
            break
        sums = np.cumsum(chances)
        draws = random.uniform(size=n_candidates if cluster else 1) * sums[-1]
        candidates = np.searchsorted(sums, draws, side="right").clip(max=len(norms) - 1)
        distances = _squared_distances(K, norms, candidates)
        left = np.minimum(distances, nearest) @ weights
        best = distances[np.argmin(left)]
        labels[best < nearest] = cluster
        nearest = np.minimum(best, nearest)
        chances = weights * nearest
    return labels


def sweeps(K: Any, weights: Array, labels: Array, max_iter: int) -> Partition:
    """Move rows to the nearest center until none moves."""
    n, n_clusters = len(labels), int(labels.max()) + 1
    every, norms = np.arange(n), np.asarray(K.diagonal(), np.float64)
    G = np.zeros((n, n_clusters))
    proposed, labels = labels, np.full(n, -1)
    best: Partition | None = None
    for n_iter in range(1, max_iter + 1):
        G += _change(K, weights, labels, proposed, n_clusters)
        labels = proposed
        sizes = np.bincount(labels, weights, n_clusters)
        own = G[every, labels]
        center_norms = np.bincount(labels, weights * own, n_clusters) / sizes**2
        distances = norms[:, None] - 2 * G / sizes + center_norms
        inertia = max(0.0, float(weights @ distances[every, labels]))
        if best is not None and inertia >= best.inertia * (1 - FALLS):
            return best
        proposed = _filled(distances.argmin(axis=1), weights, distances, n_clusters)
        still = bool((proposed == labels).all())
        best = Partition(labels, inertia, sizes, center_norms, n_iter, converged=still)
        if still:
            break
    assert best is not None
    return best


def _squared_distances(K: Any, norms: Array, candidates: Array) -> Array:
    """Return those of some rows from all, exactly 0 where they are rounding."""
    sums = norms[candidates][:, None] + norms
    distances: Array = sums - 2 * to_dense(K[candidates])
    distances[distances <= ROUNDING * np.finfo(K.dtype).eps * sums] = 0
    return distances


def _change(K: Any, weights: Array, before: Array, after: Array, n_clusters: int) -> Any:
    """Return what the rows that moved change in the sums of kernel values of every cluster."""
    moved = np.flatnonzero(before != after)
    change = np.zeros((moved.size, n_clusters), K.dtype)
    here = np.arange(moved.size)
    change[here, after[moved]] = weights[moved]
    old = before[moved] >= 0
    change[here[old], before[moved[old]]] = -weights[moved[old]]
    if moved.size == len(before):
        return K @ change
    return K[moved].T @ change


def _filled(labels: Array, weights: Array, distances: Array, n_clusters: int) -> Array:
    """Give every empty cluster the row that adds most to the sum, from a cluster of several."""
    counts = np.bincount(labels, minlength=n_clusters)
    for cluster in np.flatnonzero(counts == 0):
        added = weights * distances[np.arange(len(labels)), labels]
        row = int(np.argmax(np.where(counts[labels] > 1, added, -np.inf)))
        counts[labels[row]] -= 1
        counts[cluster] = 1
        labels[row] = cluster
    return labels
