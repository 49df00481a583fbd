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

**Single moves.** A row may lower the sum by leaving for a center that is not the nearest, as both
centers then move, too: from cluster :math:`a` to :math:`b` the sum changes by

.. math:: \frac{s_b w_i}{s_b + w_i} \|\phi(x_i) - c_b\|^2
    - \frac{s_a w_i}{s_a - w_i} \|\phi(x_i) - c_a\|^2 .

After the sweeps, rows move one by one, those that gain most first, until none gains. Rows are then
with their nearest centers as well.

**Start.** k-means++: rows are drawn with probabilities in proportion to their weighted squared
distances from those already drawn; of :math:`2 + \lfloor \ln k \rfloor` such rows the one is kept
that leaves the smallest sum.

**References.** B. Schölkopf, A. Smola and K.-R. Müller, *Nonlinear Component Analysis as a Kernel
Eigenvalue Problem*, 1998. I. Dhillon, Y. Guan and B. Kulis, *Kernel k-means, Spectral Clustering
and Normalized Cuts*, 2004. D. Arthur and S. Vassilvitskii, *k-means++: The Advantages of Careful
Seeding*, 2007. J. Hartigan and M. Wong, *A k-Means Clustering Algorithm*, 1979.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

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
    sums: Array  # of the weighted kernel values of each row and every cluster
    n_iter: int
    converged: bool

    @classmethod
    def of(cls, labels: Array, weights: Array, norms: Array, sums: Array, n_iter: int) -> Self:
        """Return the partition that these clusters and sums make."""
        k = sums.shape[1]
        sizes = np.bincount(labels, weights, k)
        own = sums[np.arange(len(labels)), labels]
        center_norms = np.bincount(labels, weights * own, k) / sizes**2
        inertia = weights @ (norms - 2 * own / sizes[labels] + center_norms[labels])
        return cls(labels, max(0.0, float(inertia)), sizes, center_norms, sums, n_iter, False)

    def distances(self, norms: Array, rows: Any = slice(None)) -> Array:
        """Return the squared distances of rows from all centers."""
        found: Array = norms[rows, None] - 2 * self.sums[rows] / self.sizes + self.center_norms
        return found


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


def cluster_sums(K: Any, weights: Array, starts: Sequence[Array]) -> list[Array]:
    """Return the sums of every start, from one product with the matrix."""
    counts = [int(labels.max()) + 1 for labels in starts]
    begins = np.cumsum([0, *counts])
    rows = np.arange(len(weights))
    member = np.zeros((len(weights), begins[-1]), K.dtype)
    for labels, begin in zip(starts, begins[:-1], strict=True):
        member[rows, begin + labels] = weights
    found = np.asarray(K @ member, np.float64)
    return [part.copy() for part in np.split(found, begins[1:-1], axis=1)]


def sweeps(
    K: Any, weights: Array, labels: Array, max_iter: int, sums: Array | None = None
) -> Partition:
    """Move rows to the nearest center until none moves.

    ``sums`` are those of :func:`cluster_sums`, and are changed.
    """
    norms = np.asarray(K.diagonal(), np.float64)
    G = cluster_sums(K, weights, [labels])[0] if sums is None else sums
    found = Partition.of(labels, weights, norms, G, 1)
    for n_iter in range(2, max_iter + 2):
        distances = found.distances(norms)
        proposed = _filled(distances.argmin(axis=1), weights, distances, G.shape[1])
        if (proposed == found.labels).all():
            return replace(found, converged=True)
        if n_iter > max_iter:
            break
        G = found.sums + _change(K, weights, found.labels, proposed, G.shape[1])
        after = Partition.of(proposed, weights, norms, G, n_iter)
        if after.inertia >= found.inertia * (1 - FALLS):
            return found
        found = after
    return found


def single_moves(K: Any, weights: Array, found: Partition, max_iter: int) -> Partition:
    """Move rows one by one as long as that lowers the sum, in at most ``max_iter`` rounds."""
    moving = Moving(K, weights, found)
    least = ROUNDING * np.finfo(K.dtype).eps * weights * moving.norms
    rounds, moved = 0, True
    while moved and rounds < max_iter:
        gains, _ = moving.gains(np.arange(len(weights)))
        moved = False
        for row in np.argsort(-gains)[: np.count_nonzero(gains > least)]:
            gain, to = moving.gains(np.array([row]))
            if gain[0] > least[row]:
                moving.move(row, to[0])
                moved = True
        rounds += moved
    n_iter = found.n_iter + rounds
    after = Partition.of(moving.labels, weights, moving.norms, moving.sums, n_iter)
    if after.inertia > found.inertia:  # the matrix is indefinite, or all is rounding
        return found
    return replace(after, converged=not moved)


class Moving:
    """Clusters whose rows move one by one; ``squares`` are the squared norms of sums of images."""

    def __init__(self, K: Any, weights: Array, found: Partition) -> None:
        self.K, self.weights = K, weights
        self.norms = np.asarray(K.diagonal(), np.float64)
        self.labels, self.sizes = found.labels.copy(), found.sizes.copy()
        self.sums, self.squares = found.sums.copy(), found.center_norms * found.sizes**2

    def gains(self, rows: Array) -> tuple[Array, Array]:
        """Return by how much the sum falls if each row goes to the best other cluster; and that."""
        own, w, every = self.labels[rows], self.weights[rows], np.arange(len(rows))
        sizes = self.sizes
        distances = self.norms[rows, None] - 2 * self.sums[rows] / sizes + self.squares / sizes**2
        left = sizes[own] - w
        alone = left <= FALLS * sizes[own]
        freed = sizes[own] * w * distances[every, own] / np.where(alone, 1, left)
        added = sizes * w[:, None] / (sizes + w[:, None]) * distances
        added[every, own] = np.inf
        best = added.argmin(axis=1)
        return np.where(alone, -np.inf, freed) - added[every, best], best

    def move(self, row: int, to: int) -> None:
        """Move a row, and both centers with it."""
        values = np.asarray(to_dense(self.K[[row]]), np.float64)[0]
        w, norm = self.weights[row], self.norms[row]
        for cluster, sign in ((self.labels[row], -1.0), (to, 1.0)):
            self.squares[cluster] += w * (2 * sign * self.sums[row, cluster] + w * norm)
            self.sizes[cluster] += sign * w
            self.sums[:, cluster] += sign * w * values
        self.labels[row] = to


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
    change[here, before[moved]] = -weights[moved]
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
