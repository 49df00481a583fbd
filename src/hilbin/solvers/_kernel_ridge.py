r"""Ridge regression with a Gram matrix: one penalty, or a path of them with leave-one-out errors.

**Problem.** With weights :math:`w_i` (2 is the row twice), targets :math:`t_i` and
:math:`f = Kc`,

.. math::
    \min_{c, b} \sum_i w_i (t_i - f_i - b)^2 + \alpha\, c^\top K c
    \quad\Longleftrightarrow\quad
    \begin{pmatrix} K + \alpha W^{-1} & 1 \\ 1^\top & 0 \end{pmatrix}
    \begin{pmatrix} c \\ b \end{pmatrix} = \begin{pmatrix} t \\ 0 \end{pmatrix} .

With :math:`c = S u`, :math:`S = W^{1/2}`, :math:`s = S 1` this is :math:`(SKS + \alpha I) u + b s =
S t`, :math:`s^\top u = 0`. A Householder reflection that takes :math:`s` to the first axis leaves a
system of :math:`n - 1` unknowns without :math:`b`: the centered Gram matrix, of which only the
directions orthogonal to :math:`s` are kept. So the intercept is not penalized, and a kernel need be
positive definite in those directions alone. If it is not, the linear system is solved all the same,
but its solution is no minimum: the result has not converged, and its gap is infinite.

**Stopping rule.** None: a Cholesky decomposition for one :math:`\alpha`, or an eigen-decomposition
:math:`Q \Lambda Q^\top` for all. With the residual :math:`\rho = S t - b s - (SKS + \alpha I) u`,
the primal minus the dual value is exactly :math:`\|\rho\|^2`, which is ``gap``.

**Leaving one out.** A fit without row :math:`i` misses its target by
:math:`\frac{\alpha u_i / s_i}{1 - \delta_i (1 - \alpha G_{ii}) / w_i}`, where :math:`G = Q
(\Lambda + \alpha)^{-1} Q^\top` and :math:`\delta_i = \min(1, w_i)` is the weight that is left out:
of a row of weight 2, one of two copies. For :math:`w_i \le 1` that is :math:`u_i / (s_i G_{ii})`,
in which nothing cancels, however small :math:`\alpha` is.

**References.** C. Saunders, A. Gammerman and V. Vovk, *Ridge Regression Learning Algorithm in Dual
Variables*, 1998. R. Rifkin and R. Lippert, *Notes on Regularized Least Squares*, 2007. Chapter 6 of
C. Lampert, *Kernel Methods in Computer Vision*, whose (6.2) has :math:`2 \lambda` for
:math:`\alpha`.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from hilbin.parallel import ranges
from hilbin.solvers._codes import Array
from hilbin.solvers._result import Result
from hilbin.solvers._ridge_system import RidgeSystem

ROWS = 1024  # squared at a time
ROUNDING = 1e-6  # eigenvalues this far below 0, over the largest, are those of rounded values


def kernel_ridge(
    gram: Array,
    targets: Array,
    alpha: float,
    *,
    weight: Array | None = None,
    intercept: bool = True,
) -> Result:
    """Ridge regression with a dense Gram matrix for one penalty; the module says what it solves.

    Parameters
    ----------
    gram : array of shape (n, n)
        Symmetric and positive semi-definite, float32 or float64; solved in float64.
    targets : array of shape (n,) or (n, c)
    alpha : float
        Penalty, at least 0; 0 is the solution of least norm among those of least squares, for which
        the gap says nothing: it is the objective.
    weight : array of shape (n,), optional
        Numbers of copies, at least 0.
    intercept : bool, default True
        Whether there is a bias.

    Returns
    -------
    result : Result
        ``coef`` of shape (n, c), ``bias``, ``objective`` and ``gap`` of shape (c,).

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import kernel_ridge
    >>> x = np.array([[0.0], [1.0], [2.0]])
    >>> result = kernel_ridge(x @ x.T, [1.0, 3.0, 5.0], 0.0)
    >>> (x.T @ result.coef).round(12), result.bias.round(12)
    (array([[2.]]), array([1.]))
    """
    system = RidgeSystem.of(gram, targets, weight, intercept)
    rhs = system.reduce(system.rhs)
    A = system.reduced()
    if not len(A):  # one row and a bias
        return system.certified(np.zeros_like(system.targets), alpha)
    A[np.diag_indices_from(A)] += alpha
    largest = np.diag(A).copy()
    try:
        factor = cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
        # Pivots this much below the diagonal say that the matrix is singular to rounding.
        if np.any(np.diag(factor[0]) ** 2 <= len(A) * np.finfo(float).eps * largest):
            raise LinAlgError
        return system.certified(system.expand(cho_solve(factor, rhs)), alpha)
    except LinAlgError:
        values, Q = _eigen(system)
        return _by_spectrum(system, values, system.expand(Q), alpha)


def _eigen(system: RidgeSystem) -> tuple[Array, Array]:
    """Eigenvalues, those that rounding made negative as 0, and eigenvectors."""
    A = system.reduced()
    if not len(A):
        return np.empty(0), A
    values, Q = eigh(A, lower=True, overwrite_a=True, check_finite=False, driver="evd")
    rounded = values >= -ROUNDING * values.max(initial=0)
    return np.where(rounded, np.maximum(values, 0), values), Q


def _by_spectrum(system: RidgeSystem, values: Array, directions: Array, alpha: Any) -> Result:
    """The solution from a decomposition, of least norm if the system is singular."""
    result = system.certified(_solution(system, values, directions, alpha), alpha)
    if values.min(initial=0) >= 0:
        return result
    gap: Any = np.full_like(result.gap, np.inf)
    return replace(result, gap=gap, converged=False)


def _solution(system: RidgeSystem, values: Array, directions: Array, alpha: Any) -> Array:
    shifted = values[:, None] + alpha
    least = len(values) * np.finfo(float).eps * np.abs(shifted).max(initial=0)
    inverse = np.divide(1, shifted, out=np.zeros_like(shifted), where=np.abs(shifted) > least)
    return directions @ (inverse * (directions.T @ system.rhs))


@dataclass(frozen=True)
class KernelRidgePath:
    """Ridge regression with a Gram matrix for many penalties, from one eigen-decomposition.

    Parameters
    ----------
    system : RidgeSystem
        Gram matrix, targets and weights.
    alphas : array of shape (a,)
        Penalties, ascending.
    eigenvalues : array of shape (m,)
        Of the centered Gram matrix; ``m`` is one less than the rows if there is an intercept.
    directions : array of shape (n, m)
        Its eigenvectors, as columns.
    errors : array of shape (a, c)
        Mean squared leave-one-out error of every penalty and target.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import kernel_ridge_path
    >>> x = np.linspace(0, 6, 50)
    >>> t = np.sin(x) + np.random.default_rng(0).normal(scale=0.2, size=50)
    >>> K = np.exp(-np.subtract.outer(x, x) ** 2)
    >>> path = kernel_ridge_path(K, t, [1e-4, 0.1, 100.0])
    >>> path.best_alpha
    0.1
    >>> path.at(0.1).coef.shape, path.leave_one_out(0.1).shape
    ((50, 1), (50, 1))
    """

    system: RidgeSystem
    alphas: Array
    eigenvalues: Array
    directions: Array
    errors: Array

    @property
    def best_alpha(self) -> float:
        """The penalty of least leave-one-out error, summed over the targets."""
        return float(self.alphas[np.argmin(self.errors.sum(axis=1))])

    @property
    def best_alphas(self) -> Array:
        """The penalty of least leave-one-out error of every target."""
        best: Array = self.alphas[np.argmin(self.errors, axis=0)]
        return best

    def at(self, alpha: Any) -> Result:
        """The solution for a penalty > 0, on the path or not, or one for every target."""
        return _by_spectrum(self.system, self.eigenvalues, self.directions, alpha)

    def leave_one_out(self, alpha: Any) -> Array:
        """Target minus prediction of every row by the fit without it, of shape (n, c)."""
        alphas = np.broadcast_to(np.asarray(alpha, np.float64), self.system.targets.shape[1:])
        G = np.empty(self.system.targets.shape)
        each, place = np.unique(alphas, return_inverse=True)
        G[:] = self._inverse_diagonal(each)[:, place]
        return self._misses(self._solution(alphas), alphas, G)

    def _solution(self, alpha: Any) -> Array:
        return _solution(self.system, self.eigenvalues, self.directions, alpha)

    def _inverse_diagonal(self, alphas: Array) -> Array:
        """``G_ii`` of every row and penalty."""
        inverse = 1 / (self.eigenvalues[:, None] + alphas)
        parts = ranges(len(self.directions), ROWS)
        return np.concatenate([np.square(self.directions[i:j]) @ inverse for i, j in parts])

    def _misses(self, U: Array, alpha: Any, G: Array) -> Array:
        weight, root = self.system.weight[:, None], self.system.root[:, None]
        heavy = weight > 1
        # numerator and denominator over alpha, where the row is left out whole
        above = np.where(heavy, alpha * U, U)
        below = np.where(heavy, root - (1 - alpha * G) / np.where(heavy, root, 1), root * G)
        light = weight == 0  # these rows were not there, so they miss as any other would
        if light.any():
            result = self.system.certified(U, alpha)
            plain = self.system.targets - self.system.product(result.coef) - result.bias
            above, below = np.where(light, plain, above), np.where(light, 1, below)
        return above / below


def kernel_ridge_path(
    gram: Array, targets: Array, alphas: Any, *, weight: Array | None = None, intercept: bool = True
) -> KernelRidgePath:
    """Ridge regression with a dense Gram matrix for many penalties, and its leave-one-out errors.

    Parameters
    ----------
    gram, targets, weight, intercept
        As in :func:`kernel_ridge`.
    alphas : array-like of float
        Penalties, above 0.

    Returns
    -------
    path : KernelRidgePath

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import kernel_ridge_path
    >>> path = kernel_ridge_path(np.eye(3), [0.0, 1.0, 2.0], [1.0, 3.0])
    >>> path.errors.ravel()
    array([1.5, 1.5])
    """
    system = RidgeSystem.of(gram, targets, weight, intercept)
    if intercept and np.count_nonzero(system.weight) == 1 and system.weight.sum() <= 1:
        raise ValueError("leaving out one row leaves none: there is only 1 sample")
    alphas = np.unique(np.asarray(alphas, np.float64))
    values, Q = _eigen(system)
    directions = system.expand(Q)
    path = KernelRidgePath(system, alphas, values, directions, np.empty(0))
    G = path._inverse_diagonal(alphas)
    misses = (path._misses(path._solution(a), a, G[:, [k]]) for k, a in enumerate(alphas))
    errors = [np.average(np.square(m), axis=0, weights=system.weight) for m in misses]
    return KernelRidgePath(system, alphas, values, directions, np.array(errors))
