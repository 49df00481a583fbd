r"""Principal components from sums.

**Problem.** Orthonormal :math:`U` of ``k`` columns that keeps most of the variance of the rows,
:math:`\max_U \operatorname{tr} U^\top S U` with the scatter :math:`S` of
:class:`~hilbin.stats.Moments`: its leading eigenvectors.

**Stopping rule.** None: a symmetric eigen-decomposition, :math:`O(D^3)`, of which the reduction to
three diagonals is most; fewer components make it up to three times faster. ``residual`` is the
largest :math:`\|S u - \lambda u\|` over the largest eigenvalue, and bounds the error of every one.

**Reference.** Section 5 of F. Li, G. Lebanon and C. Sminchisescu, *A Linear Approximation to the
χ² Kernel with Geometric Convergence*.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh

from hilbin.solvers._codes import Array
from hilbin.stats import Moments


@dataclass(frozen=True)
class Components:
    """Principal components.

    Parameters
    ----------
    components : array of shape (k, D)
        Directions of falling variance, of length 1; the largest entry of each is positive.
    eigenvalues : array of shape (k,)
        Of the scatter: sums of squares along the components.
    mean : array of shape (D,)
        Of the rows, or 0 if they are not centered.
    total : float
        Sum of squares in all directions.
    n : float
        Weight of the rows.
    residual : float
        How far the components are from eigenvectors, over the largest eigenvalue.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import pca
    >>> from hilbin.stats import Moments
    >>> found = pca(Moments.of(np.array([[0.0, 1.0], [2.0, 1.0], [4.0, 1.0]])), 1)
    >>> found.components, found.eigenvalues
    (array([[1., 0.]]), array([8.]))
    """

    components: Array
    eigenvalues: Array
    mean: Array
    total: float
    n: float
    residual: float


def pca(moments: Moments, n_components: Any = None, *, center: bool = True) -> Components:
    """Principal components of the rows whose moments are given; the module says how.

    Parameters
    ----------
    moments : Moments
        Of the rows.
    n_components : int or float, optional
        How many, or, between 0 and 1, the share of the variance they must keep. By default all
        that have a variance above rounding; the others would be any directions at all.
    center : bool, default True
        Whether to measure from the mean; from zero the components keep inner products best.

    Returns
    -------
    components : Components

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import pca
    >>> from hilbin.stats import Moments
    >>> Z = np.random.default_rng(0).normal(size=(100, 3)) * [1.0, 5.0, 2.0]
    >>> pca(Moments.of(Z), 0.9).components.shape
    (2, 3)
    """
    width = moments.mean.size
    scatter = moments.scatter
    if not center:
        scatter = scatter + moments.n * np.outer(moments.mean, moments.mean)
    total = float(np.trace(scatter))
    count = _count(n_components, width)
    subset = None if count is None else (width - count, width - 1)
    lam, U = eigh(scatter, subset_by_index=subset, check_finite=False)
    lam, U = np.maximum(lam[::-1], 0), U[:, ::-1]
    if count is None and n_components is None:
        count = int(np.count_nonzero(lam > width * np.finfo(float).eps * lam[0])) or 1
    elif count is None:
        count = 1 + int(np.searchsorted(np.cumsum(lam), float(n_components) * total * (1 - 1e-15)))
    lam, U = lam[:count], U[:, :count]
    U = U * np.where(U[np.abs(U).argmax(axis=0), np.arange(lam.size)] < 0, -1.0, 1.0)
    error = np.linalg.norm(scatter @ U - U * lam, axis=0).max(initial=0)
    mean = moments.mean if center else np.zeros(width)
    residual = float(error / lam[0]) if lam[0] > 0 else 0.0
    return Components(np.ascontiguousarray(U.T), lam, mean.copy(), total, moments.n, residual)


def _count(n_components: Any, width: int) -> int | None:
    """The number of components; None if it follows from the variances."""
    if n_components is None:
        return None
    share = isinstance(n_components, (float, np.floating))
    if share and 0 < n_components < 1:
        return None
    whole = isinstance(n_components, (int, np.integer)) and not isinstance(n_components, bool)
    if not (whole and 1 <= n_components <= width):
        raise ValueError(
            f"n_components must be a whole number from 1 to {width}, the number of features, "
            f"a share of the variance between 0 and 1, or None, got {n_components!r}"
        )
    return int(n_components)
