r"""Canonical correlations of two or more views, from their whitened covariances.

**Problem.** The view :math:`i` of :math:`V` has the scatter :math:`S_{ii} = W_i\,\mathrm{diag}(s_i)
\,W_i^\top`, the penalty :math:`\varepsilon_i = \mathrm{reg}_i \sum_k s_{ik}`, a share of all
variance, and with another one the cross-products :math:`S_{ij}`. Functions :math:`\langle w_i, x_i
\rangle` of all views are to go together,

.. math:: \max_w\; \rho = \frac{1}{V - 1} \sum_{i \ne j} w_i^\top S_{ij} w_j \quad \text{where}
    \quad \sum_i w_i^\top (S_{ii} + \varepsilon_i I)\, w_i = V ,

and further ones likewise, orthogonal to the first in that metric. Two views have :math:`2
w_1^\top S_{12} w_2`, whose maximum is the canonical correlation, with both terms of the constraint
equal to 1.

**Algorithm.** With :math:`w_i = W_i (\mathrm{diag}(s_i) + \varepsilon_i I)^{-1/2} v_i` the problem
is :math:`R v = (V - 1) \rho v`, where the block :math:`R_{ij}` is the whitened :math:`S_{ij}`, and
blocks on the diagonal are 0. Of two views, the eigenvectors are the pairs of singular vectors of
:math:`R_{12}`, which cost less; of more, LAPACK finds the largest.

**References.** J. Kettenring, *Canonical Analysis of Several Sets of Variables*, 1971. F. Bach and
M. Jordan, *Kernel Independent Component Analysis*, 2002.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh, svd

from hilbin._arrays import Array

Products = Mapping[tuple[int, int], Array]  # (i, j) with i < j -> R_ij


class Correlations(NamedTuple):
    """Correlations with the penalty and without, and the directions of every whitened view."""

    penalized: Array  # (count,), falling
    plain: Array  # (count,): the mean over all pairs of views
    directions: list[Array]  # (rank of the view, count)


def whitening(eigenvalues: Array, reg: float) -> tuple[Array, Array]:
    r"""Return :math:`\sqrt{s + \varepsilon}`, and the shrunk :math:`\sqrt{s / (s + \varepsilon)}`.

    Parameters
    ----------
    eigenvalues : array of shape (rank,)
        Those of the scatter of a view.
    reg : float
        The penalty as a share of their sum.
    """
    roots = np.sqrt(eigenvalues + reg * eigenvalues.sum())
    return roots, np.sqrt(eigenvalues) / roots


def correlations(products: Products, shrunk: Sequence[Array], count: int) -> Correlations:
    """Solve the problem.

    Parameters
    ----------
    products : mapping of pairs of views to arrays
        The whitened cross-products of all views, ``i < j``.
    shrunk : sequence of arrays
        What :func:`whitening` says of every view.
    count : int
        Number of correlations; at most the smallest rank.

    Returns
    -------
    found : Correlations
    """
    values, directions = joint_directions(products, [h.size for h in shrunk], count)
    pairs = zip(shrunk, directions, strict=True)
    norms = [np.linalg.norm(h[:, None] * v, axis=0) for h, v in pairs]
    plain = np.zeros(count)
    for (i, j), R in products.items():
        together = np.sum(directions[i] * (R @ directions[j]), axis=0)
        sizes = norms[i] * norms[j]
        plain += np.divide(together, sizes, out=np.zeros(count), where=sizes > 0)
    return Correlations(np.clip(values, 0.0, 1.0), plain / len(products), directions)


def joint_directions(
    products: Products, ranks: Sequence[int], count: int
) -> tuple[Array, list[Array]]:
    r"""Return the largest :math:`\rho`, and the directions of every view as columns."""
    if len(ranks) == 2:
        P, values, Qt = svd(products[0, 1], full_matrices=False)
        return values[:count], [P[:, :count], Qt[:count].T]
    V, ends = len(ranks), np.cumsum(ranks)
    R = np.zeros((ends[-1], ends[-1]))
    for (i, j), block in products.items():
        R[ends[i] - ranks[i] : ends[i], ends[j] - ranks[j] : ends[j]] = block
    chosen: Any = (len(R) - count, len(R) - 1)
    values, vectors = eigh(R, lower=False, subset_by_index=chosen)
    return values[::-1] / (V - 1), np.split(np.sqrt(V) * vectors[:, ::-1], ends[:-1])
