r"""Graphs of neighbors under a kernel, and kernels of commute times and diffusion on a graph.

**Neighbors.** Squared distances are those in the exponent of a kernel that is an exponential
(:math:`\|x - y\|^2` of the Gaussian, half of chi-squared of ``Exponential(Chi2())``), and
:math:`k(x, x) + k(y, y) - 2 k(x, y)` of any other. Every row is joined with its nearest rows, and
the graph made symmetric by the larger weight. Weights are :math:`W_{ij} = \exp(-d_{ij}^2 / (s_i
s_j))`, where :math:`s_i` is the distance to the 7th neighbor: the scale adapts to the density.

**Components.** A graph of neighbors may fall apart. ``connected=True`` joins the components along
the shortest tree between them, by edges of the smallest weight there is.

**Commute times.** With :math:`D` the degrees, :math:`L = D - W` and :math:`L^+` its pseudo-inverse,
:math:`\mathrm{vol}(W) (L^+_{ii} + L^+_{jj} - 2 L^+_{ij})` is the mean number of steps of a random
walk from :math:`i` to :math:`j` and back. So :math:`L^+` is a Gram matrix whose distances know the
shape of the data: rows that many short paths join are near each other.

**Diffusion.** A random walk that leaves nodes at rate 1 for :math:`t` units of time has the kernel
:math:`\exp(-t (I - D^{-1/2} W D^{-1/2}))`, positive definite like every exponential of a symmetric
matrix. It is 0 between components; the longer the walk, the larger the neighborhoods it knows. As
the weights are no less than 0, the terms of :math:`e^{-t} \sum_k t^k S^k / k!`, :math:`S = D^{-1/2}
W D^{-1/2}`, are not either, and its sum loses no digits.

**References.** R. Kondor and J. Lafferty, *Diffusion Kernels on Graphs and Other Discrete
Structures*, 2002. L. Zelnik-Manor and P. Perona, *Self-Tuning Spectral Clustering*, 2004. F. Fouss,
A. Pirotte, J.-M. Renders and M. Saerens, *Random-Walk Computation of Similarities between Nodes of
a Graph*, 2007. C. Lampert, *Kernel Methods in Computer Vision*, section 8.1.
"""

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, laplacian, minimum_spanning_tree

from hilbin._arrays import Array, Matrix, check_rows
from hilbin._parameters import require_choice, require_positive, require_whole
from hilbin.kernels.base import Kernel
from hilbin.kernels.scaling import square

WEIGHTS = ("self_tuned", "binary")
SCALE_NEIGHBOR = 7  # the neighbor whose distance is the scale of a row
LEAST = 1e-12  # weight of an edge, so that far neighbors are neighbors still
ROUNDING = 4  # units in the last place of k(x, x) + k(y, y) that are no distance


def knn_graph(
    kernel: Any,
    X: object | None = None,
    *,
    n_neighbors: int = 10,
    weights: str = "self_tuned",
    connected: bool = False,
) -> Any:
    r"""Compute the graph of nearest neighbors under a kernel.

    Neighbors have the weight :math:`\exp(-d_{ij}^2 / (s_i s_j))`, :math:`s_i` the distance of row
    :math:`i` to its 7th neighbor, or 1.

    Parameters
    ----------
    kernel : Kernel or array-like of shape (n, n)
        A kernel with numbers for its parameters, or the Gram matrix itself.
    X : array-like or CSR of shape (n, d), optional
        The rows, if ``kernel`` is a kernel.
    n_neighbors : int, default 10
        Neighbors of every row; all others, if there are fewer.
    weights : {"self_tuned", "binary"}
        Weights of neighbors: by distance, or 1.
    connected : bool, default False
        Whether components are joined, where they are nearest, by edges of the smallest weight.

    Returns
    -------
    W : CSR array of shape (n, n)
        Symmetric, with an empty diagonal.

    Examples
    --------
    >>> from hilbin.kernels import Gaussian, knn_graph
    >>> W = knn_graph(Gaussian(), [[0.0], [1], [5], [6]], n_neighbors=1, weights="binary")
    >>> W.toarray().astype(int)
    array([[0, 1, 0, 0],
           [1, 0, 0, 0],
           [0, 0, 0, 1],
           [0, 0, 1, 0]])
    """
    require_whole("n_neighbors", n_neighbors, 1)
    require_choice("weights", weights, WEIGHTS)
    if not isinstance(kernel, Kernel):
        D = squared_distances(square(kernel, "kernel"))
    elif X is None:
        raise ValueError("X is missing: a graph is of rows")
    else:
        ready, rows, _ = kernel._ready(X)
        D = graph_distances(ready, rows, None)
    return neighbors_graph(D, n_neighbors, weights, connected=connected)


def commute_kernel(W: Any) -> Array:
    r"""Compute the kernel of commute times on a graph, the pseudo-inverse of its Laplacian.

    Parameters
    ----------
    W : array-like or sparse of shape (n, n)
        Symmetric weights of edges, >= 0, as of :func:`knn_graph`.

    Returns
    -------
    K : ndarray of shape (n, n)
        Gram matrix; the commute time of two nodes is ``W.sum() * (K_ii + K_jj - 2 K_ij)``. Between
        components of a graph that is not connected it is 0, which says nothing.

    Examples
    --------
    >>> from hilbin.kernels import commute_kernel
    >>> commute_kernel([[0, 1, 0], [1, 0, 1], [0, 1, 0]]).round(3)
    array([[ 0.556, -0.111, -0.444],
           [-0.111,  0.222, -0.111],
           [-0.444, -0.111,  0.556]])
    """
    W = _weights(W, "commute_kernel")
    _, labels = connected_components(sp.csr_array(W), directed=False)
    same = labels[:, None] == labels
    null = same / np.bincount(labels)[labels]  # onto what is constant on every component
    scale = max(float(W.sum(axis=1).max()), np.finfo(float).tiny)
    found: Array = scipy.linalg.inv(laplacian(W) + scale * null) - null / scale
    return np.where(same, (found + found.T) / 2, 0.0)


def diffusion_kernel(W: Any, time: float = 1.0) -> Array:
    r"""Compute the kernel of diffusion on a graph, :math:`\exp(-t (I - D^{-1/2} W D^{-1/2}))`.

    Parameters
    ----------
    W : array-like or sparse of shape (n, n)
        Symmetric weights of edges, >= 0, as of :func:`knn_graph`; :math:`D` are their sums.
    time : float > 0, default 1
        How long a random walk takes that leaves nodes at rate 1: :math:`t`.

    Returns
    -------
    K : ndarray of shape (n, n)
        Gram matrix. A node without edges has the kernel :math:`e^{-t}` with itself.

    Examples
    --------
    >>> from hilbin.kernels import diffusion_kernel
    >>> diffusion_kernel([[0, 1, 0], [1, 0, 0], [0, 0, 0]]).round(3)
    array([[0.568, 0.432, 0.   ],
           [0.432, 0.568, 0.   ],
           [0.   , 0.   , 0.368]])
    """
    require_positive("time", time)
    W = sp.csr_array(_weights(W, "diffusion_kernel"))
    degrees = np.asarray(W.sum(axis=1))
    roots = np.sqrt(np.divide(1, degrees, out=np.zeros_like(degrees), where=degrees > 0))
    S = sp.diags_array(roots) @ W @ sp.diags_array(roots)
    term = np.exp(-time) * np.eye(W.shape[0])
    found, k = term.copy(), 0
    while k < time or term.max(initial=0) > np.finfo(float).eps * found.max(initial=1):
        k += 1
        term = S @ term
        term *= time / k
        found += term
    return (found + found.T) / 2


def _weights(W: Any, name: str) -> Array:
    """Return the weights of a graph as a dense matrix; ``name`` is whose they are."""
    found = square(check_rows(W, "W", nonnegative=name), "W")
    if np.abs(found - found.T).max() > 1e-10 * max(1.0, found.max()):
        raise ValueError("W must be symmetric")
    return found


def squared_distances(K: Any) -> Array:
    """Return squared distances in feature space, exactly 0 where they are rounding."""
    K = np.asarray(K.toarray() if sp.issparse(K) else K)
    sums = np.add.outer(np.diag(K), np.diag(K))
    D: Array = sums - 2 * K
    D[ROUNDING * np.finfo(K.dtype).eps * sums >= D] = 0
    return D


def graph_distances(kernel: Kernel, X: Matrix, n_jobs: int | None) -> Array:
    """Return the squared distances of checked rows that a graph is made of."""
    if kernel._exponential:
        return np.asarray(kernel._distances(X, None, n_jobs))  # type: ignore[attr-defined]
    return squared_distances(kernel._gram(X, None, n_jobs))


def neighbors_graph(D: Array, n_neighbors: int, weights: str, *, connected: bool) -> Any:
    """Return the graph of nearest neighbors from the squared distances of all pairs."""
    n = len(D)
    count = min(n_neighbors, n - 1)
    if not count:
        return sp.csr_array((n, n))
    others = D.copy()
    np.fill_diagonal(others, np.inf)
    near = np.argpartition(others, count - 1, axis=1)[:, :count]
    squared = np.take_along_axis(others, near, axis=1)
    scale = np.sqrt(np.sort(squared, axis=1)[:, min(SCALE_NEIGHBOR, count) - 1])
    values = np.ones_like(squared)
    if weights == "self_tuned":
        scales = scale[:, None] * scale[near]
        ratio = np.divide(squared, scales, out=np.zeros_like(squared), where=squared > 0)
        values = np.maximum(np.exp(-ratio), LEAST)
    places = np.arange(0, n * count + 1, count)
    W = sp.csr_array((values.ravel(), near.ravel(), places), shape=(n, n))
    W = W.maximum(W.T).tocsr()
    return _joined(W, D) if connected else W


def _joined(W: Any, D: Array) -> Any:
    """Return the graph with its components joined along the shortest tree between them."""
    count, labels = connected_components(W, directed=False)
    if count == 1:
        return W
    members = [np.flatnonzero(labels == c) for c in range(count)]
    apart = np.array([[D[np.ix_(a, b)].min() for b in members] for a in members])
    tree = minimum_spanning_tree(1 + apart / max(apart.max(), np.finfo(float).tiny)).tocoo()
    ends = []
    for a, b in zip(*tree.coords, strict=True):
        between = D[np.ix_(members[a], members[b])]
        i, j = np.unravel_index(np.argmin(between), between.shape)
        ends.append((members[a][i], members[b][j]))
    i, j = np.array(ends).T
    links = sp.csr_array((np.full(len(ends), W.data.min()), (i, j)), shape=W.shape)
    return (W + links + links.T).tocsr()
