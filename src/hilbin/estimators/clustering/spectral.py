r"""Clusters of a graph of neighbors.

**Graph.** Rows are nodes, joined with their nearest rows under the kernel
(:func:`~hilbin.kernels.knn_graph`), with weights :math:`W` and degrees :math:`D`. Clusters may have
any shape, as long as paths of neighbors stay inside.

**Embedding.** ``"normalized"``: the :math:`k` lowest eigenvectors of :math:`I - D^{-1/2} W
D^{-1/2}` as columns, rows brought to length 1. ``"commute"``: the eigenvectors :math:`u_j` of
:math:`D - W` with the :math:`k` lowest eigenvalues :math:`\mu_j > 0`, divided by
:math:`\sqrt{\mu_j}`; distances are commute times
(:func:`~hilbin.kernels.commute_kernel`). Components are joined first, as nothing would tell them
apart. k-means finds the clusters in either embedding.

Eigenvectors are computed by LAPACK, or for many rows by Lanczos iterations, with matrices that
have an entry for every pair of neighbors only.

**References.** A. Ng, M. Jordan and Y. Weiss, *On Spectral Clustering*, 2001. C. Lampert, *Kernel
Methods in Computer Vision*, section 8.1.
"""

import warnings
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.sparse.csgraph import connected_components, laplacian
from scipy.sparse.linalg import eigsh
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize

from hilbin._arrays import Array
from hilbin._parameters import estimator, require_choice, require_whole
from hilbin._state import require_attributes
from hilbin.estimators._fit import outer_level, random_seed
from hilbin.estimators.clustering.base import KernelClustering
from hilbin.kernels.graph import WEIGHTS, graph_distances, neighbors_graph, squared_distances
from hilbin.parallel import blas_threads

EMBEDDINGS = ("normalized", "commute")
MOST_DENSE = 3000  # rows whose eigenvectors LAPACK computes
ZERO = 1e-9  # eigenvalue, in units of the largest, that is 0
N_INIT = 5  # starts of k-means in few dimensions


@estimator
class GraphClustering(KernelClustering):
    r"""Spectral clustering of the graph of nearest neighbors under any kernel.

    Clusters may have any shape. The distance decides: for histograms take
    ``Exponential(Chi2())``. New rows have no place in the graph, so there is no ``predict``.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters. If the graph falls apart into more components, and the embedding is
        ``"normalized"``, these are the clusters, with a warning.
    n_neighbors : int, default=10
        Neighbors of every row.
    weights : {"self_tuned", "binary"}
        Weights of neighbors: by their distance, in units that adapt to the density, or 1.
    embedding : {"normalized", "commute"}
        Columns in which k-means finds the clusters: eigenvectors of the normalized Laplacian, or
        those whose distances are commute times.

    Attributes
    ----------
    affinity_matrix_ : CSR array of shape (n_samples, n_samples)
        Weights of the graph.
    embedding_ : ndarray of shape (n_samples, n_components)
        Rows in which k-means found the clusters; None if these are components of the graph.

    References
    ----------
    A. Ng, M. Jordan and Y. Weiss, *On Spectral Clustering*, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.estimators import GraphClustering
    >>> angles = np.linspace(0, 2 * np.pi, 100)
    >>> ring = np.column_stack([np.cos(angles), np.sin(angles)])
    >>> labels = GraphClustering(2).fit_predict(np.vstack([ring, 3 * ring]))
    >>> np.unique(labels[:100]).size, np.unique(labels[100:]).size, np.unique(labels).size
    (1, 1, 2)
    """

    n_clusters: int = 8
    _: KW_ONLY
    kernel: Any = None
    n_neighbors: int = 10
    weights: str = "self_tuned"
    embedding: str = "normalized"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_whole("n_clusters", self.n_clusters, 1)
        require_whole("n_neighbors", self.n_neighbors, 1)
        require_choice("weights", self.weights, WEIGHTS)
        require_choice("embedding", self.embedding, EMBEDDINGS)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the clusters.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows, or their Gram matrix with ``kernel="precomputed"``.
        y : ignored

        Returns
        -------
        self : GraphClustering
        """
        rows = self._rows(X, self.n_clusters)
        self._resolve_kernel(rows)
        if self._precomputed:
            D = squared_distances(rows)
        else:
            D = graph_distances(self.kernel_, rows, self.n_jobs)
        distinct, groups = connected_components(sp.csr_array(D <= 0), directed=False)
        commute = self.embedding == "commute"
        W = neighbors_graph(D, self.n_neighbors, self.weights, connected=commute)
        self.affinity_matrix_, self.embedding_ = W, None
        count, components = connected_components(W, directed=False)
        if distinct < self.n_clusters or count >= self.n_clusters:
            self.labels_ = (groups if distinct < self.n_clusters else components).astype(np.int64)
            self._warn(distinct, count)
            return self
        with blas_threads(self.n_jobs):
            embed = commute_embedding if commute else normalized_embedding
            self.embedding_ = embed(W, self.n_clusters)
            seed = random_seed(self.random_state)
            found = KMeans(self.n_clusters, n_init=N_INIT, random_state=seed).fit(self.embedding_)
        self.labels_ = found.labels_.astype(np.int64)
        return self

    def _warn(self, distinct: int, count: int) -> None:
        if distinct < self.n_clusters:
            reason, kind = f"there are fewer different rows of X: {distinct}", ConvergenceWarning
        elif count > self.n_clusters:
            reason = f"the graph has {count} components, which are the clusters: take a larger "
            reason, kind = reason + "n_neighbors", UserWarning
        else:
            return
        name = f"{type(self).__name__}({self.n_clusters})"
        warnings.warn(f"{name}: {reason}", kind, stacklevel=outer_level())

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the arrays of a loaded object do not fit together."""
        self._check_parameters()
        require_attributes(
            self,
            labels_="int64[n]",
            affinity_matrix_="matrix[n, n]",
            embedding_="float64[n, *]?",
            n_features_in_="=d",
            feature_names_in_="labels[d]?",
        )


def normalized_embedding(W: Any, count: int) -> Array:
    """Return rows of unit length of the lowest eigenvectors of the normalized Laplacian."""
    vectors = lowest_eigenpairs(laplacian(W, normed=True), count)[1]
    found: Array = normalize(vectors)
    return found


def commute_embedding(W: Any, count: int) -> Array:
    """Return rows whose squared distances are commute times, but for a factor and high ones."""
    L = laplacian(W)
    count = min(count, W.shape[0] - 1)
    values, vectors = lowest_eigenpairs(L, count + 1)
    kept = values > ZERO * L.diagonal().max()
    found: Array = vectors[:, kept] / np.sqrt(values[kept])
    return found


def lowest_eigenpairs(L: Any, count: int) -> tuple[Array, Array]:
    """Return the lowest eigenvalues of a Laplacian, ascending, and their vectors as columns."""
    n = L.shape[0]
    if n <= MOST_DENSE:
        dense: tuple[Array, Array] = eigh(L.toarray(), subset_by_index=[0, count - 1])
        return dense
    bound = 2 * L.diagonal().max()  # of all eigenvalues: the lowest are the largest below it
    turned = sp.csr_array(bound * sp.eye_array(n) - L)
    start = np.random.default_rng(0).uniform(size=n)
    values, vectors = eigsh(turned, count, which="LA", v0=start, ncv=min(n, 4 * count + 20))
    order = np.argsort(-values)
    return bound - values[order], vectors[:, order]
