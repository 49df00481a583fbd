r"""Ridge regression from sums, for one penalty or a path of them.

**Problem.** With the centered sums :math:`S, V` of :class:`~hilbin.stats.Moments`,

.. math::
    \min_{W, b} \sum_i w_i \|t_i - W^\top z_i - b\|^2 + \alpha \|W\|^2
    \quad\Longleftrightarrow\quad (S + \alpha I) W = V, \; b = \bar t - W^\top m .

The intercept is not penalized, and any number of targets shares one decomposition. On principal
components :math:`U` take ``moments.project(U)``, whose scatter :math:`U^\top S U` is diagonal only
if ``U`` belongs to the same rows, and :func:`unproject` the result.

**Stopping rule.** None: a Cholesky decomposition for one :math:`\alpha`, or an eigen-decomposition
:math:`S = Q \Lambda Q^\top` for all, after which each costs :math:`O(Dc)` to judge. With the
residual :math:`r = (S + \alpha I) W - V` the objective is :math:`r^\top (S + \alpha I)^{-1} r`
above its optimum, at most :math:`\|r\|^2 / \alpha`, which is ``gap``.

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
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh, lstsq

from hilbin.solvers._codes import Array
from hilbin.solvers._result import Result
from hilbin.stats import Moments

FEW_ROWS = 1024  # of a pass over rows
MOST_FREEDOM = 0.95  # of the rows: beyond, a few equal rows decide what cross-validation says


def ridge(moments: Moments, alpha: float) -> Result:
    """Ridge regression for one penalty; the module says what it solves.

    Parameters
    ----------
    moments : Moments
        Of rows and targets.
    alpha : float
        Penalty, at least 0; 0 is least squares, of least norm if there are several.

    Returns
    -------
    result : Result
        ``coef`` of shape (D, c), ``bias`` of shape (c,).

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import ridge
    >>> from hilbin.stats import Moments
    >>> result = ridge(Moments.of(np.array([[0.0], [1.0], [2.0]]), [1.0, 3.0, 5.0]), 0.0)
    >>> result.coef.round(12), result.bias.round(12)
    (array([[2.]]), array([1.]))
    """
    H = moments.scatter + 0.0
    H[np.diag_indices_from(H)] += alpha
    try:
        factor = cho_factor(H, lower=True, check_finite=False)
        # Pivots this much below the diagonal say that the matrix is singular to rounding.
        if np.any(np.diag(factor[0]) ** 2 <= len(H) * np.finfo(float).eps * np.diag(H)):
            raise LinAlgError
        W = cho_solve(factor, moments.cross, check_finite=False)
    except LinAlgError:
        W = lstsq(H, moments.cross, check_finite=False, cond=len(H) * np.finfo(float).eps)[0]
    return _certified(moments, alpha, W)


def _certified(moments: Moments, alpha: float, W: Array) -> Result:
    SW = moments.scatter @ W
    residual = SW + alpha * W - moments.cross
    loss = moments.target_squares.sum() - 2 * (W * moments.cross).sum() + (W * SW).sum()
    objective = max(float(loss), 0.0) + alpha * float((W * W).sum())
    squares = float((residual * residual).sum())
    gap = squares / alpha if alpha > 0 else squares  # no bound without a penalty: the gradient
    bias = moments.target_mean - moments.mean @ W
    return Result(W, np.empty(0), objective, gap, 1, True, bias)


def unproject(result: Result, components: Array) -> Result:
    """A result on components as one on the rows themselves, so that prediction never projects.

    Parameters
    ----------
    result : Result
        Of moments projected on ``components``.
    components : array of shape (k, D)

    Returns
    -------
    result : Result
        With ``coef`` of shape (D, c).

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import pca, ridge, unproject
    >>> from hilbin.stats import Moments
    >>> Z = np.random.default_rng(0).normal(size=(50, 4))
    >>> moments = Moments.of(Z, Z[:, 0])
    >>> U = pca(moments, 2).components
    >>> unproject(ridge(moments.project(U), 1.0), U).coef.shape
    (4, 1)
    """
    return replace(result, coef=components.T @ result.coef)


@dataclass(frozen=True)
class RidgePath:
    """Ridge regression for many penalties, from one eigen-decomposition.

    Parameters
    ----------
    moments : Moments
        Of rows and targets.
    alphas : array of shape (a,)
        Penalties, ascending.
    eigenvalues : array of shape (D,)
        Of the scatter.
    directions : array of shape (D, D)
        Its eigenvectors, as columns.
    gcv : array of shape (a, c)
        Generalized cross-validation error of every penalty and target.
    freedom : array of shape (a,)
        Effective degrees of freedom, the intercept's included.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import ridge_path
    >>> from hilbin.stats import Moments
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(size=(100, 3))
    >>> path = ridge_path(Moments.of(Z, Z[:, 0] + rng.normal(size=100)), [0.01, 1.0, 1e4])
    >>> path.best_alpha
    1.0
    >>> path.at(1.0).coef.shape
    (3, 1)
    """

    moments: Moments
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
        """The solution for one penalty, on the path or not."""
        loads = self.directions.T @ self.moments.cross
        return _certified(
            self.moments, alpha, self.directions @ (_inverse(self.eigenvalues, alpha) * loads)
        )

    def leave_one_out(self, Z: Any, T: Array, weight: Any = None) -> Array:
        """Squared errors on rows left out one by one, summed over these rows.

        Parameters
        ----------
        Z : array of shape (rows, D)
            Some of the rows of the moments.
        T : array of shape (rows, c)
            Their targets.
        weight : array of shape (rows,), optional
            Of a row of weight 2, one of two copies is left out.

        Returns
        -------
        errors : array of shape (a, c)
            For all rows of the data, add them up.
        """
        total = np.zeros((self.alphas.size, T.shape[1]))
        loads = self.directions.T @ self.moments.cross
        for begin in range(0, len(T), FEW_ROWS):
            part = slice(begin, begin + FEW_ROWS)
            rows = (Z[part] - self.moments.mean) @ self.directions
            targets = T[part] - self.moments.target_mean
            for a, alpha in enumerate(self.alphas):
                inverse = _inverse(self.eigenvalues, alpha)
                leverage = 1 / self.moments.n + np.square(rows) @ inverse[:, 0]
                # A row that alone decides its own fit says nothing about the others.
                free = np.maximum(1 - leverage, np.finfo(float).eps)
                errors = np.square((targets - rows @ (inverse * loads)) / free[:, None])
                total[a] += errors.sum(axis=0) if weight is None else weight[part] @ errors
        return total


def _inverse(eigenvalues: Array, alpha: float) -> Array:
    """``1 / (lambda + alpha)`` as a column, 0 where the rows say nothing."""
    shifted = eigenvalues + alpha
    least = len(shifted) * np.finfo(float).eps * shifted.max(initial=0)
    out = np.zeros_like(shifted)
    return np.divide(1, shifted, out=out, where=shifted > least)[:, None]


def ridge_path(moments: Moments, alphas: Any) -> RidgePath:
    """Ridge regression for many penalties at the cost of one eigen-decomposition.

    Parameters
    ----------
    moments : Moments
        Of rows and targets.
    alphas : array-like of float
        Penalties, at least 0.

    Returns
    -------
    path : RidgePath

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import ridge_path
    >>> from hilbin.stats import Moments
    >>> Z = np.array([[0.0], [1.0], [2.0]])
    >>> ridge_path(Moments.of(Z, Z[:, 0]), [0.0, 2.0]).freedom
    array([2. , 1.5])
    """
    alphas = np.unique(np.asarray(alphas, np.float64))
    lam, Q = eigh(moments.scatter, check_finite=False)
    lam = np.maximum(lam, 0)
    squares = np.square(Q.T @ moments.cross)
    n = moments.n
    gcv, freedom = np.empty((alphas.size, squares.shape[1])), np.empty(alphas.size)
    for a, alpha in enumerate(alphas):
        inverse = _inverse(lam, alpha)
        freedom[a] = 1 + lam @ inverse[:, 0]
        explained = ((lam[:, None] + 2 * alpha) * inverse**2 * squares).sum(axis=0)
        loss = np.maximum(moments.target_squares - explained, 0)
        left = 1 - freedom[a] / n
        gcv[a] = loss / n / left**2 if left > np.finfo(float).eps * n else np.inf
    return RidgePath(moments, alphas, lam, Q, gcv, freedom)


def ridge_grid(moments: Moments) -> Array:
    """Penalties worth trying, whatever the scale of the rows: around the mean eigenvalue.

    Parameters
    ----------
    moments : Moments
        Of the rows.

    Returns
    -------
    alphas : ndarray

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import ridge_grid
    >>> from hilbin.stats import Moments
    >>> ridge_grid(Moments.of(np.array([[0.0], [2.0]])))[[0, -1]]
    array([2.e-08, 2.e+02])
    """
    scale = float(np.trace(moments.scatter)) / max(moments.mean.size, 1)
    return (scale or 1.0) * np.logspace(-8, 2, 21)
