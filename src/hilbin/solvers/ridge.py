r"""Ridge regression and principal components from sums, or from rows if they are few.

**Problem.** With the centered sums :math:`S, V` of :class:`~hilbin.stats.Moments`,

.. math::
    \min_{W, b} \sum_i w_i \|t_i - W^\top z_i - b\|^2 + \alpha \|W\|^2
    \quad\Longleftrightarrow\quad (S + \alpha I) W = V, \; b = \bar t - W^\top m .

The intercept is not penalized, and any number of targets shares one decomposition. Principal
components :math:`U` keep most of the variance of the rows,
:math:`\max_U \operatorname{tr} U^\top S U` over orthonormal :math:`U` of ``k`` columns: they are
the leading eigenvectors of :math:`S`. For a regression on them solve ``moments.project(U)``, whose
scatter :math:`U^\top S U` is diagonal only if ``U`` belongs to the same rows, and :func:`unproject`
the result.

**Algorithm.** A Cholesky decomposition for one :math:`\alpha`, or an eigen-decomposition
:math:`S = Q \Lambda Q^\top` for all, after which each costs :math:`O(Dc)` to evaluate. Of the
:math:`O(D^3)` of the eigen-decomposition the reduction to three diagonals is most; fewer components
make it up to three times faster.

**Fewer rows than features.** With the centered rows :math:`R`, times the roots of their weights,
:math:`S = R^\top R`, and the same solution is :math:`W = R^\top (R R^\top + \alpha I)^{-1} T`: a
problem of :math:`n` unknowns. If :math:`R R^\top = U \Lambda U^\top`, then
:math:`Q = R^\top U \Lambda^{-1/2}` are the directions of :math:`S` in which rows differ, and the
others change nothing. :class:`CenteredRows` stands in for the sums.

**Stopping rule.** None. With the residual :math:`r = (S + \alpha I) W - V` the objective is
:math:`r^\top (S + \alpha I)^{-1} r` above its optimum, at most :math:`\|r\|^2 / \alpha`, which is
``gap``. The ``residual`` of components is the largest :math:`\|S u - \lambda u\|` over the largest
eigenvalue, and bounds the error of every one.

**Choice of alpha.** Generalized cross-validation needs the sums alone:
:math:`\mathrm{GCV} = \frac{\mathrm{RSS} / n}{(1 - \mathrm{df} / n)^2}` with
:math:`\mathrm{RSS} = \sum t^2 - \sum_j v_j^2 (\lambda_j + 2 \alpha) / (\lambda_j + \alpha)^2`,
:math:`\mathrm{df} = 1 + \sum_j \lambda_j / (\lambda_j + \alpha)`. Leaving out one row after another
needs another pass over the rows: :math:`t_i - f_{-i}(z_i) = (t_i - f(z_i)) / (1 - h_i)` with the
leverage :math:`h_i = 1/n + (z_i - m)^\top (S + \alpha I)^{-1} (z_i - m)`.

**References.** G. Golub, M. Heath and G. Wahba, *Generalized Cross-Validation as a Method for
Choosing a Good Ridge Parameter*, 1979. Section 5 of F. Li, G. Lebanon and C. Sminchisescu, *A
Linear Approximation to the χ² Kernel with Geometric Convergence*.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.linalg import (
    LinAlgError,
    cho_factor,
    cho_solve,
    cholesky,
    eigh,
    lstsq,
    solve_triangular,
)
from scipy.linalg.lapack import dpotri
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from hilbin._arrays import Array
from hilbin.solvers.problem import Result
from hilbin.stats import Moments

TOO_LARGE = "the squares of the features do not add up to a finite number: scale X or the weights"
ROWS_AT_ONCE = 1024  # of a pass over rows
MOST_FREEDOM = 0.95  # of the rows: beyond, a few equal rows decide what cross-validation says


@dataclass(frozen=True)
class CenteredRows:
    """Rows and targets in place of their moments, for fewer rows than features.

    Parameters
    ----------
    n : float
        Sum of the weights.
    mean : array of shape (D,)
        Mean of the rows.
    target_mean : array of shape (c,)
        Mean of the targets.
    rows : array of shape (rows, D)
        Centered rows, times the roots of their weights.
    targets : array of shape (rows, c)
        The same of the targets.
    weight : array of shape (rows,)
        Weights of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers.ridge import CenteredRows, ridge
    >>> few = CenteredRows.of(np.array([[0.0, 1.0], [2.0, 1.0]]), np.array([[1.0], [5.0]]))
    >>> ridge(few, 0.0).coef.ravel()
    array([2., 0.])
    """

    n: float
    mean: Array
    target_mean: Array
    rows: Array
    targets: Array
    weight: Array

    @classmethod
    def of(cls, Z: Array, T: Array, weight: Array | None = None) -> Self:
        """Return the centered rows of a weight above 0.

        Parameters
        ----------
        Z : array of shape (rows, D)
            Rows.
        T : array of shape (rows, c)
            Targets.
        weight : array of shape (rows,), optional
            Weights; a weight of 2 is the row twice.

        Returns
        -------
        rows : CenteredRows
        """
        weight = np.ones(len(Z)) if weight is None else np.asarray(weight, np.float64)
        if not weight.all():
            Z, T, weight = Z[weight > 0], T[weight > 0], weight[weight > 0]
        n, root = float(weight.sum()), np.sqrt(weight)[:, None]
        mean, target_mean = weight @ Z / (n or 1.0), weight @ T / (n or 1.0)
        return cls(n, mean, target_mean, root * (Z - mean), root * (T - target_mean), weight)

    @cached_property
    def gram(self) -> Array:
        """The inner products of all rows."""
        return self.rows @ self.rows.T

    @property
    def scatter(self) -> LinearOperator:
        """The matrix ``S``, to be multiplied by."""
        return aslinearoperator(self.rows.T) @ aslinearoperator(self.rows)

    @property
    def cross(self) -> Array:
        """Centered sum of products of rows and targets, of shape (D, c)."""
        return self.rows.T @ self.targets

    @property
    def target_squares(self) -> Array:
        """Centered sum of squares of every target."""
        return np.square(self.targets).sum(axis=0)


Sums = Moments | CenteredRows


def ridge(moments: Sums, alpha: float) -> Result:
    """Solve ridge regression from sums, for one penalty.

    Parameters
    ----------
    moments : Moments or CenteredRows
        Moments of rows and targets.
    alpha : float
        Penalty, at least 0; 0 is least squares, of least norm if there are several solutions.

    Returns
    -------
    result : Result
        ``coef`` of shape (D, c), ``intercept`` of shape (c,).

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import ridge
    >>> from hilbin.stats import Moments
    >>> result = ridge(Moments.of(np.array([[0.0], [1.0], [2.0]]), [1.0, 3.0, 5.0]), 0.0)
    >>> result.coef.round(12), result.intercept.round(12)
    (array([[2.]]), array([1.]))
    """
    if isinstance(moments, CenteredRows):
        W = moments.rows.T @ _shifted_solve(moments.gram + 0.0, alpha, moments.targets)
    else:
        W = _shifted_solve(moments.scatter + 0.0, alpha, moments.cross)
    return _certified(moments, alpha, W)


def _shifted_solve(H: Array, alpha: float, right: Array) -> Array:
    """Solve ``(H + alpha I) X = right``, with the least norm if it is singular; changes ``H``."""
    H[np.diag_indices_from(H)] += alpha
    try:
        return solve_definite(H, right)
    except LinAlgError:
        if not np.isfinite(H).all():
            raise ValueError(TOO_LARGE) from None
        cond = len(H) * np.finfo(float).eps
        return np.asarray(lstsq(H, right, check_finite=False, cond=cond)[0])


def solve_definite(A: Array, B: Array, *, overwrite: bool = False) -> Array:
    """Solve ``A X = B`` by Cholesky; raise ``LinAlgError`` if ``A`` is singular to rounding."""
    diagonal = np.diag(A).copy()
    factor = cho_factor(A, lower=True, overwrite_a=overwrite, check_finite=False)
    # Pivots this much below the diagonal say that the matrix is singular to rounding.
    if np.any(np.diag(factor[0]) ** 2 <= len(A) * np.finfo(float).eps * diagonal):
        raise LinAlgError
    return cho_solve(factor, B, check_finite=False)


def _certified(moments: Sums, alpha: float, W: Array) -> Result:
    SW, cross = moments.scatter @ W, moments.cross
    residual = SW + alpha * W - cross
    loss = moments.target_squares.sum() - 2 * (W * cross).sum() + (W * SW).sum()
    objective = max(float(loss), 0.0) + alpha * float((W * W).sum())
    squares = float((residual * residual).sum())
    gap = squares / alpha if alpha > 0 else squares  # no bound without a penalty: the gradient
    intercept = moments.target_mean - moments.mean @ W
    return Result(W, np.empty(0), objective, gap, 1, True, intercept)


def ridge_path(moments: Sums, alphas: Any) -> "RidgePath":
    """Ridge regression for many penalties at the cost of one eigen-decomposition.

    Parameters
    ----------
    moments : Moments or CenteredRows
        Moments of rows and targets.
    alphas : array-like of float
        Penalties, at least 0.

    Returns
    -------
    path : RidgePath

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers.ridge import ridge_path
    >>> from hilbin.stats import Moments
    >>> Z = np.array([[0.0], [1.0], [2.0]])
    >>> ridge_path(Moments.of(Z, Z[:, 0]), [0.0, 2.0]).freedom
    array([2. , 1.5])
    """
    alphas = np.unique(np.asarray(alphas, np.float64))
    lam, Q = _spectrum(moments)
    squares = np.square(Q.T @ moments.cross)
    n = moments.n
    gcv, freedom = np.empty((alphas.size, squares.shape[1])), np.empty(alphas.size)
    for a, alpha in enumerate(alphas):
        inverse = shifted_inverse(lam, alpha)
        freedom[a] = 1 + lam @ inverse[:, 0]
        explained = ((lam[:, None] + 2 * alpha) * inverse**2 * squares).sum(axis=0)
        loss = np.maximum(moments.target_squares - explained, 0)
        left = 1 - freedom[a] / n
        gcv[a] = loss / n / left**2 if left > np.finfo(float).eps * n else np.inf
    return RidgePath(moments, alphas, lam, Q, gcv, freedom)


def _spectrum(moments: Sums) -> tuple[Array, Array]:
    """Return eigenvalues of the scatter and their directions, of rows the positive ones."""
    if not isinstance(moments, CenteredRows):
        lam, Q = eigh(moments.scatter, check_finite=False)
        return np.maximum(lam, 0), Q
    lam, U = eigh(moments.gram, check_finite=False)
    kept = lam > len(lam) * np.finfo(float).eps * lam.max(initial=0)
    lam = lam[kept]
    return lam, moments.rows.T @ (U[:, kept] / np.sqrt(lam))


@dataclass(frozen=True)
class RidgePath:
    """Ridge regression for many penalties, from one eigen-decomposition.

    Parameters
    ----------
    moments : Moments or CenteredRows
        Moments of rows and targets.
    alphas : array of shape (a,)
        Penalties, ascending.
    eigenvalues : array of shape (k,)
        Eigenvalues of the scatter: all, or the positive ones of few rows.
    directions : array of shape (D, k)
        Their eigenvectors, as columns.
    gcv : array of shape (a, c)
        Generalized cross-validation error of every penalty and target.
    freedom : array of shape (a,)
        Effective degrees of freedom, the intercept's included.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers.ridge import ridge_path
    >>> from hilbin.stats import Moments
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(size=(100, 3))
    >>> path = ridge_path(Moments.of(Z, Z[:, 0] + rng.normal(size=100)), [0.01, 1.0, 1e4])
    >>> path.best_alpha
    1.0
    >>> path.at(1.0).coef.shape
    (3, 1)
    """

    moments: Sums
    alphas: Array
    eigenvalues: Array
    directions: Array
    gcv: Array
    freedom: Array

    @property
    def best_alpha(self) -> float:
        """The penalty of least cross-validation error, summed over the targets.

        A fit that is nearly free to follow every row has an error of 0 / 0, and does not count.
        """
        errors = self.gcv.sum(axis=1)
        free = self.freedom > MOST_FREEDOM * self.moments.n
        if not free.all():
            errors = np.where(free, np.inf, errors)
        return float(self.alphas[np.argmin(errors)])

    def at(self, alpha: float) -> Result:
        """Return the solution for one penalty, on the path or not."""
        loads = self.directions.T @ self.moments.cross
        W = self.directions @ (shifted_inverse(self.eigenvalues, alpha) * loads)
        return _certified(self.moments, alpha, W)

    def leave_one_out(self, Z: Any, T: Array, weight: Any = None) -> Array:
        """Return the squared errors of rows that are left out one by one, summed over these rows.

        Parameters
        ----------
        Z : array of shape (rows, D)
            Some of the rows of the moments.
        T : array of shape (rows, c)
            Targets of these rows.
        weight : array of shape (rows,), optional
            Weights of these rows; of a row of weight 2, one of two copies is left out.

        Returns
        -------
        errors : array of shape (a, c)
            Sums that can be added up over all rows of the data.
        """
        total = np.zeros((self.alphas.size, T.shape[1]))
        loads = self.directions.T @ self.moments.cross
        for begin in range(0, len(T), ROWS_AT_ONCE):
            some = slice(begin, begin + ROWS_AT_ONCE)
            rows = (Z[some] - self.moments.mean) @ self.directions
            targets = T[some] - self.moments.target_mean
            for a, alpha in enumerate(self.alphas):
                inverse = shifted_inverse(self.eigenvalues, alpha)
                leverage = 1 / self.moments.n + np.square(rows) @ inverse[:, 0]
                # A row that alone decides its own fit says nothing about the others.
                free = np.maximum(1 - leverage, np.finfo(float).eps)
                errors = np.square((targets - rows @ (inverse * loads)) / free[:, None])
                total[a] += errors.sum(axis=0) if weight is None else weight[some] @ errors
        return total


def shifted_inverse(eigenvalues: Array, alpha: Any) -> Array:
    """Return ``1 / (lambda + alpha)``, a column for every penalty, 0 where the rows say nothing."""
    shifted = eigenvalues[:, None] + alpha
    least = len(shifted) * np.finfo(float).eps * np.abs(shifted).max(initial=0)
    return np.divide(1, shifted, out=np.zeros_like(shifted), where=np.abs(shifted) > least)


def leverages(
    moments: Sums, alpha: float, Z: Array | None = None, chosen: Array | None = None
) -> Array:
    """Return how much every row decides its own score, :math:`h_i` for a weight of 1.

    Parameters
    ----------
    moments : Moments or CenteredRows
        Moments of the rows.
    alpha : float
        Penalty.
    Z : array of shape (rows, D), optional
        Some of the rows; all of :class:`CenteredRows` by default.
    chosen : array of int, optional
        The features that count; all by default.

    Returns
    -------
    leverages : array of shape (rows,)

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers.ridge import leverages
    >>> from hilbin.stats import Moments
    >>> Z = np.array([[0.0], [1.0], [2.0]])
    >>> leverages(Moments.of(Z), 0.0, Z).round(3)
    array([0.833, 0.333, 0.833])
    """
    if Z is None:
        return _own_leverages(moments, alpha)
    rows = Z - moments.mean
    if isinstance(moments, CenteredRows):
        H, sides = moments.gram + 0.0, rows @ moments.rows.T
    elif chosen is None:
        H, sides = moments.scatter + 0.0, rows
    else:
        H, sides = moments.scatter[np.ix_(chosen, chosen)], rows[:, chosen]
    least = np.finfo(float).eps * len(H) * float(np.trace(H))
    alpha = max(alpha, least or 1.0)
    H[np.diag_indices_from(H)] += alpha
    factor = cholesky(H, lower=True, check_finite=False)
    solved = solve_triangular(factor, sides.T, lower=True, check_finite=False)
    squares = np.square(solved).sum(axis=0)
    if isinstance(moments, CenteredRows):
        squares = (np.square(rows).sum(axis=1) - squares) / alpha
    return 1 / moments.n + squares


def _own_leverages(moments: Sums, alpha: float) -> Array:
    """Return those of all rows, by the diagonal of ``alpha (R R^T + alpha I)^-1``."""
    if not isinstance(moments, CenteredRows):
        raise ValueError("Z must be given: moments have no rows")
    H = moments.gram + 0.0
    least = np.finfo(float).eps * len(H) * float(np.trace(H))
    alpha = max(alpha, least or 1.0)
    H[np.diag_indices_from(H)] += alpha
    factor = cholesky(H, lower=True, overwrite_a=True, check_finite=False)
    inverse, _ = dpotri(factor, lower=1, overwrite_c=1)
    return 1 / moments.n + (1 - alpha * np.diag(inverse)) / moments.weight


def ridge_grid(moments: Sums) -> Array:
    """Return penalties worth trying, whatever the scale of the rows: around the mean eigenvalue.

    The mean is over as many eigenvalues as can be positive.

    Parameters
    ----------
    moments : Moments or CenteredRows
        Moments of the rows.

    Returns
    -------
    alphas : ndarray

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers.ridge import ridge_grid
    >>> from hilbin.stats import Moments
    >>> ridge_grid(Moments.of(np.array([[0.0], [2.0]])))[[0, -1]]
    array([2.e-06, 2.e+03])
    """
    if isinstance(moments, CenteredRows):
        total = float(np.square(moments.rows).sum())
    else:
        total = float(np.trace(moments.scatter))
    scale = total / max(min(moments.mean.size, moments.n - 1), 1)
    return (scale or 1.0) * np.logspace(-6, 3, 19)


@dataclass(frozen=True)
class Components:
    """Principal components, as :func:`pca` finds them.

    Parameters
    ----------
    components : array of shape (k, D)
        Directions of falling variance, of length 1; the largest entry of each is positive.
    eigenvalues : array of shape (k,)
        Eigenvalues of the scatter: sums of squares along the components.
    mean : array of shape (D,)
        Mean of the rows, or 0 if they are not centered.
    total : float
        Sum of squares in all directions.
    n : float
        Weight of the rows.
    residual : float
        Distance of the components from eigenvectors, over the largest eigenvalue.
    """

    components: Array
    eigenvalues: Array
    mean: Array
    total: float
    n: float
    residual: float


def pca(moments: Moments, n_components: Any = None, *, center: bool = True) -> Components:
    """Compute the principal components of the rows whose moments are given.

    Parameters
    ----------
    moments : Moments
        Moments of the rows.
    n_components : int or float, optional
        Number of components, or, between 0 and 1, the share of the variance they must keep. By
        default all that have a variance above rounding; the others would be any directions at all.
    center : bool, default=True
        Whether to measure from the mean; from zero the components keep inner products best.

    Returns
    -------
    components : Components

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import pca
    >>> from hilbin.stats import Moments
    >>> found = pca(Moments.of(np.array([[0.0, 1.0], [2.0, 1.0], [4.0, 1.0]])), 1)
    >>> found.components, found.eigenvalues
    (array([[1., 0.]]), array([8.]))
    >>> Z = np.random.default_rng(0).normal(size=(100, 3)) * [1.0, 5.0, 2.0]
    >>> pca(Moments.of(Z), 0.9).components.shape
    (2, 3)
    """
    width = moments.mean.size
    scatter = moments.scatter
    if not np.isfinite(np.trace(scatter)):
        raise ValueError(TOO_LARGE)
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
    """Return the number of components, or None if it follows from the variances."""
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


def unproject(result: Result, components: Array) -> Result:
    """Turn a result on components into one on the rows, so that scores need no projection.

    Parameters
    ----------
    result : Result
        Result for moments projected on ``components``.
    components : array of shape (k, D)
        Orthonormal rows.

    Returns
    -------
    result : Result
        Result with ``coef`` of shape (D, c).

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers.ridge import pca, ridge, unproject
    >>> from hilbin.stats import Moments
    >>> Z = np.random.default_rng(0).normal(size=(50, 4))
    >>> moments = Moments.of(Z, Z[:, 0])
    >>> U = pca(moments, 2).components
    >>> unproject(ridge(moments.project(U), 1.0), U).coef.shape
    (4, 1)
    """
    return replace(result, coef=components.T @ result.coef)
