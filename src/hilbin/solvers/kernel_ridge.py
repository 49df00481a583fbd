r"""Ridge regression with a Gram matrix: one penalty, or a path of them with leave-one-out errors.

**Problem.** With weights :math:`w_i` (2 is the row twice), targets :math:`t_i` and
:math:`f = Kc`,

.. math::
    \min_{c, b} \sum_i w_i (t_i - f_i - b)^2 + \alpha\, c^\top K c
    \quad\Longleftrightarrow\quad
    \begin{pmatrix} K + \alpha W^{-1} & 1 \\ 1^\top & 0 \end{pmatrix}
    \begin{pmatrix} c \\ b \end{pmatrix} = \begin{pmatrix} t \\ 0 \end{pmatrix} .

With :math:`c = S u`, :math:`S = W^{1/2}`, :math:`s = S 1` this is :math:`(SKS + \alpha I) u + b s =
S t`, :math:`s^\top u = 0`, a symmetric system.

**Dense matrices.** A Householder reflection that takes :math:`s` to the first axis leaves a system
of :math:`n - 1` unknowns without :math:`b`: the centered Gram matrix, of which only the directions
orthogonal to :math:`s` are kept. So the intercept is not penalized, and a kernel need be positive
definite in those directions alone. If it is not, the linear system is solved all the same, but its
solution is no minimum: the result has not converged, and its gap is infinite. The system is solved
by a Cholesky decomposition for one :math:`\alpha`, or an eigen-decomposition
:math:`Q \Lambda Q^\top` for all; there is no stopping rule.

**Sparse matrices** are multiplied and never made dense. Two positive definite systems give the
solution, for all targets at once: :math:`(SKS + \alpha I) [u_0, v] = [S t, s]`, then
:math:`b = s^\top u_0 / s^\top v` and :math:`u = u_0 - b v`. They are solved by conjugate gradients,
preconditioned by the diagonal.

**Stopping rule.** With the residual :math:`\rho = S t - b s - (SKS + \alpha I) u`, the primal minus
the dual value is exactly :math:`\|\rho\|^2`, which is ``gap``. Conjugate gradients stop as soon as
it is below ``tol`` times the objective for every target. They follow the residuals for free; at the
end these are computed afresh, and the method restarts where it is if rounding had made them too
good.

**Leaving one out.** A fit without row :math:`i` misses its target by
:math:`\frac{\alpha u_i / s_i}{1 - \delta_i (1 - \alpha G_{ii}) / w_i}`, where :math:`G = Q
(\Lambda + \alpha)^{-1} Q^\top` and :math:`\delta_i = \min(1, w_i)` is the weight that is left out:
of a row of weight 2, one of two copies. For :math:`w_i \le 1` that is :math:`u_i / (s_i G_{ii})`,
in which nothing cancels, however small :math:`\alpha` is.

**How the error changes with the kernel.** Rows have weight 1 here. With :math:`u = Gt`,
:math:`g_i = G_{ii}` and the misses :math:`r_i = u_i / g_i`, the mean square :math:`E = \frac1n
\sum_i r_i^2` has, since :math:`dG = -G\,dK\,G`, the derivative

.. math:: \frac{\partial E}{\partial K} = \frac2n \Big( G\,\mathrm{diag}\big(r_i^2 / g_i\big) G
    - \tfrac12 (p u^\top + u p^\top) \Big), \qquad p = G (r / g),

summed over the targets, and :math:`\partial E / \partial \alpha` is its trace.

**References.** C. Saunders, A. Gammerman and V. Vovk, *Ridge Regression Learning Algorithm in Dual
Variables*, 1998. R. Rifkin and R. Lippert, *Notes on Regularized Least Squares*, 2007. M. Hestenes
and E. Stiefel, *Methods of Conjugate Gradients for Solving Linear Systems*, 1952. Chapter 6 of
C. Lampert, *Kernel Methods in Computer Vision*, whose (6.2) has :math:`2 \lambda` for
:math:`\alpha`.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, blas, eigh

from hilbin._arrays import Array
from hilbin.parallel import ranges
from hilbin.solvers.problem import Result
from hilbin.solvers.ridge import shifted_inverse, solve_definite

ROWS_AT_ONCE = 1024  # rows that are squared, or copied to float64, together
ROUNDING = 1e-6  # eigenvalues this far below 0, over the largest, are those of rounded values
RESTARTS = 10
INDEFINITE = (
    "the Gram matrix is not positive semi-definite: a combination of its rows has a negative square"
)


def kernel_ridge(
    gram: Any,
    targets: Any,
    alpha: float,
    *,
    weight: Array | None = None,
    fit_intercept: bool = True,
    tol: float = 1e-16,
    max_iter: int = 10_000,
) -> Result:
    """Solve ridge regression with a Gram matrix, for one penalty.

    Parameters
    ----------
    gram : array or CSR array of shape (n, n)
        Symmetric and positive semi-definite matrix, float32 or float64; solved in float64.
    targets : array of shape (n,) or (n, c)
        Targets of every row.
    alpha : float
        Penalty, at least 0, and above 0 for a sparse matrix. 0 is the solution of least norm among
        those of least squares, for which the gap says nothing: it is the objective.
    weight : array of shape (n,), optional
        Numbers of copies of every row, at least 0.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    tol : float, default=1e-16
        Duality gap over the objective at which to stop; for sparse matrices only.
    max_iter : int, default=10000
        Largest number of products with the matrix; for sparse matrices only.

    Returns
    -------
    result : Result
        ``coef`` of shape (n, c); ``intercept``, ``objective`` and ``gap`` of shape (c,).

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from hilbin.solvers import kernel_ridge
    >>> x = np.array([[0.0], [1.0], [2.0]])
    >>> result = kernel_ridge(x @ x.T, [1.0, 3.0, 5.0], 0.0)
    >>> (x.T @ result.coef).round(12), result.intercept.round(12)
    (array([[2.]]), array([1.]))
    >>> result = kernel_ridge(sp.eye_array(4, format="csr"), [1.0, 2.0, 3.0, 4.0], 1.0)
    >>> result.intercept.round(6), result.converged
    (array([2.5]), True)
    """
    system = RidgeSystem.of(gram, targets, weight, fit_intercept)
    if sp.issparse(gram):
        return _by_conjugate_gradients(system, alpha, tol, max_iter)
    rhs = system.reduce(system.rhs)
    A = system.reduced()
    if not len(A):  # one row and an intercept
        return system.certified(np.zeros_like(system.targets), alpha)
    A[np.diag_indices_from(A)] += alpha
    try:
        return system.certified(system.expand(solve_definite(A, rhs, overwrite=True)), alpha)
    except LinAlgError:
        values, Q = _eigen(system)
        return _by_spectrum(system, values, system.expand(Q), alpha)


@dataclass(frozen=True)
class RidgeSystem:
    """The equations in the symmetric form of the module."""

    gram: Any  # (n, n), dense or sparse
    targets: Array  # (n, c)
    weight: Array  # (n,)
    fit_intercept: bool

    @classmethod
    def of(cls, gram: Any, targets: Any, weight: Any, fit_intercept: bool) -> "RidgeSystem":
        """Make the system from targets of shape (n,) or (n, c), and weights or none."""
        targets = np.asarray(targets, np.float64).reshape(gram.shape[0], -1)
        weight = np.ones(len(targets)) if weight is None else np.asarray(weight, np.float64)
        if not weight.any():
            raise ValueError("weight is zero for every row")
        if sp.issparse(gram):
            gram = gram.astype(np.float64, copy=False)
        return cls(gram, targets, weight, fit_intercept)

    @cached_property
    def root(self) -> Array:
        """The vector ``s``."""
        return np.sqrt(self.weight)

    @cached_property
    def mean(self) -> Array:
        """The mean of every target, which the intercept contains; 0 without intercept."""
        if not self.fit_intercept:
            return np.zeros(self.targets.shape[1])
        return np.average(self.targets, axis=0, weights=self.weight)

    @cached_property
    def rhs(self) -> Array:
        """The right-hand side ``S t``, of targets from their mean."""
        return self.root[:, None] * (self.targets - self.mean)

    @cached_property
    def mirror(self) -> Array:
        """The unit normal of the reflection that takes ``s`` to the first axis."""
        normal = self.root / np.linalg.norm(self.root)
        normal[0] += 1
        normal /= np.linalg.norm(normal)
        return normal

    def product(self, V: Array) -> Array:
        """Return ``K @ V`` in float64, without a copy of all of ``K``."""
        if self.gram.dtype == np.float64:
            product: Array = self.gram @ V
            return product
        some = ranges(len(V), ROWS_AT_ONCE)
        return np.concatenate([self.gram[i:j].astype(np.float64) @ V for i, j in some])

    def reduced(self) -> Array:
        """Return the matrix of the unknowns, in Fortran order; only its lower triangle is right."""
        first = int(self.fit_intercept)
        A = np.array(self.gram[first:, first:], np.float64, order="F")
        if self.weight.min() != 1 or self.weight.max() != 1:
            A *= self.root[first:, None]
            A *= self.root[first:]
        if self.fit_intercept and len(A):
            v = self.mirror
            p = self.root * self.product(self.root * v)
            p = 2 * (p - (v @ p) * v)
            A = blas.dsyr2(-1.0, v[1:], p[1:], a=A, lower=1, overwrite_a=1)
        return A

    def reduce(self, U: Array) -> Array:
        """Return the coordinates of the unknowns in ``U``."""
        if not self.fit_intercept:
            return U
        return (U - 2 * np.outer(self.mirror, self.mirror @ U))[1:]

    def expand(self, U: Array) -> Array:
        """Return ``u`` for the unknowns ``U``."""
        if not self.fit_intercept:
            return U
        out = np.zeros((len(U) + 1, U.shape[1]), order="F")
        out[1:] = U
        v = self.mirror
        return out if not out.size else blas.dger(-2.0, v, v @ out, a=out, overwrite_a=1)

    def certified(
        self, U: Array, alpha: float | Array, *, n_iter: int = 1, converged: bool = True
    ) -> Result:
        """Return the solution ``u`` with its value and duality gap, one of each for a target."""
        coef = self.root[:, None] * U
        product = self.product(coef)
        shift = np.zeros(U.shape[1])
        if self.fit_intercept:
            shift = np.average(self.targets - self.mean - product, axis=0, weights=self.weight)
        errors = self.rhs - self.root[:, None] * (product + shift)
        gap = np.square(errors - alpha * U).sum(axis=0)
        values = np.square(errors).sum(axis=0) + alpha * np.sum(coef * product, axis=0)
        return Result(coef, U, values, gap, n_iter, converged, shift + self.mean)


def _eigen(system: RidgeSystem) -> tuple[Array, Array]:
    """Return eigenvalues, those that rounding made negative as 0, and eigenvectors."""
    A = system.reduced()
    if not len(A):
        return np.empty(0), A
    if not np.isfinite(A).all():
        raise ValueError("kernel values times weights are not finite: scale X or the weights")
    values, Q = eigh(A, lower=True, overwrite_a=True, check_finite=False, driver="evd")
    size = float((system.weight * system.gram.diagonal()).max(initial=0.0))  # rows may be alike
    rounded = values >= -ROUNDING * max(size, values.max(initial=0))
    return np.where(rounded, np.maximum(values, 0), values), Q


def _by_spectrum(system: RidgeSystem, values: Array, directions: Array, alpha: Any) -> Result:
    """Return the solution from a decomposition, of least norm if the system is singular."""
    result = system.certified(_solution(system, values, directions, alpha), alpha)
    if values.min(initial=0) >= 0:
        return result
    gap: Any = np.full_like(result.gap, np.inf)
    return replace(result, gap=gap, converged=False)


def _solution(system: RidgeSystem, values: Array, directions: Array, alpha: Any) -> Array:
    return directions @ (shifted_inverse(values, alpha) * (directions.T @ system.rhs))


def kernel_ridge_path(
    gram: Array,
    targets: Any,
    alphas: Any,
    *,
    weight: Array | None = None,
    fit_intercept: bool = True,
) -> "KernelRidgePath":
    """Ridge regression with a dense Gram matrix for many penalties, and its leave-one-out errors.

    Parameters
    ----------
    gram, targets, weight, fit_intercept
        As in :func:`kernel_ridge`.
    alphas : array-like of float
        Penalties, above 0.

    Returns
    -------
    path : KernelRidgePath

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers.kernel_ridge import kernel_ridge_path
    >>> path = kernel_ridge_path(np.eye(3), [0.0, 1.0, 2.0], [1.0, 3.0])
    >>> path.errors.ravel()
    array([1.5, 1.5])
    """
    system = RidgeSystem.of(gram, targets, weight, fit_intercept)
    if fit_intercept and np.count_nonzero(system.weight) == 1 and system.weight.sum() <= 1:
        raise ValueError("leaving out one row leaves none: there is only 1 sample")
    alphas = np.unique(np.asarray(alphas, np.float64))
    values, Q = _eigen(system)
    directions = system.expand(Q)
    path = KernelRidgePath(system, alphas, values, directions, np.empty(0))
    G = path._inverse_diagonal(alphas)
    misses = (path._misses(path._solution(a), a, G[:, [k]]) for k, a in enumerate(alphas))
    errors = [np.average(np.square(m), axis=0, weights=system.weight) for m in misses]
    return replace(path, errors=np.array(errors))


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
        Eigenvalues of the centered Gram matrix; with an intercept ``m`` is one less than the rows.
    directions : array of shape (n, m)
        Eigenvectors, as columns.
    errors : array of shape (a, c)
        Mean squared leave-one-out error of every penalty and target.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers.kernel_ridge import kernel_ridge_path
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
        """Return the solution for a penalty > 0, on the path or not, or one for every target."""
        return _by_spectrum(self.system, self.eigenvalues, self.directions, alpha)

    def leave_one_out(self, alpha: Any) -> Array:
        """Return target minus prediction of every row by the fit without it, of shape (n, c)."""
        alphas = np.broadcast_to(np.asarray(alpha, np.float64), self.system.targets.shape[1:])
        each, place = np.unique(alphas, return_inverse=True)
        return self._misses(self._solution(alphas), alphas, self._inverse_diagonal(each)[:, place])

    def _solution(self, alpha: Any) -> Array:
        return _solution(self.system, self.eigenvalues, self.directions, alpha)

    def _inverse_diagonal(self, alphas: Array) -> Array:
        """Return ``G_ii`` of every row and penalty."""
        inverse = 1 / (self.eigenvalues[:, None] + alphas)
        some = ranges(len(self.directions), ROWS_AT_ONCE)
        return np.concatenate([np.square(self.directions[i:j]) @ inverse for i, j in some])

    def _misses(self, U: Array, alpha: Any, G: Array) -> Array:
        weight, root = self.system.weight[:, None], self.system.root[:, None]
        heavy = weight > 1
        # numerator and denominator over alpha, where the row is left out whole
        above = np.where(heavy, alpha * U, U)
        below = np.where(heavy, root - (1 - alpha * G) / np.where(heavy, root, 1), root * G)
        light = weight == 0  # these rows were not there, so they miss as any other would
        if light.any():
            result = self.system.certified(U, alpha)
            plain = self.system.targets - self.system.product(result.coef) - result.intercept
            above, below = np.where(light, plain, above), np.where(light, 1, below)
        if not below.all():
            row = int(np.argmax((below == 0).any(axis=1)))
            raise ValueError(
                f"leaving out row {row} leaves none: the weights of the others are too small"
            )
        return above / below


def loo_error_gradient(gram: Array, targets: Any, alpha: float) -> tuple[float, Array]:
    """Compute the leave-one-out error of a penalty, with intercept, and how the kernel changes it.

    Parameters
    ----------
    gram : array of shape (n, n)
        Symmetric and positive semi-definite matrix.
    targets : array of shape (n,) or (n, c)
        Targets of every row.
    alpha : float
        Penalty, above 0.

    Returns
    -------
    error : float
        Mean squared error of the rows left out, summed over the targets.
    gradient : array of shape (n, n)
        Its derivative by the entries of the matrix; the one by ``alpha`` is the trace.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers.kernel_ridge import kernel_ridge_path, loo_error_gradient
    >>> error, gradient = loo_error_gradient(np.eye(3), [0.0, 1.0, 2.0], 1.0)
    >>> round(error, 12), bool(abs(np.trace(gradient)) < 1e-12)
    (1.5, True)
    """
    system, n = RidgeSystem.of(gram, targets, None, fit_intercept=True), len(gram)
    G = system.expand(system.expand(_inverse(system, alpha)).T)
    u, g = G @ system.rhs, np.diag(G)[:, None]
    misses = u / g
    p = G @ (misses / g)
    gradient = (G * (np.square(misses) / g).sum(axis=1)) @ G
    gradient -= (p @ u.T + u @ p.T) / 2
    gradient *= 2 / n
    return float(np.square(misses).sum() / n), gradient


def _inverse(system: RidgeSystem, alpha: float) -> Array:
    A = system.reduced()
    A[np.diag_indices_from(A)] += alpha
    try:
        return solve_definite(A, np.eye(len(A)), overwrite=True)
    except LinAlgError:
        values, Q = _eigen(system)
        if values.min() + alpha <= 0:
            raise ValueError(INDEFINITE) from None
        inverse: Array = (Q / (values + alpha)) @ Q.T
        return inverse


def _by_conjugate_gradients(system: RidgeSystem, alpha: float, tol: float, max_iter: int) -> Result:
    root = system.root[:, None]
    rhs = np.hstack([system.rhs, root]) if system.fit_intercept else system.rhs
    scale = system.weight * system.gram.diagonal() + alpha
    if (scale <= 0).any():
        raise ValueError(INDEFINITE)

    def product(U: Array) -> Array:
        return root * system.product(root * U) + alpha * U

    def good(U: Array, rho: Array) -> bool:
        """Return whether the duality gaps are small enough."""
        u, rho = _combined(system, U), _combined(system, rho, by=U)
        gap = np.square(rho).sum(axis=0)
        dual = alpha * np.sum(u * (system.rhs + rho), axis=0)
        return bool((gap <= tol * np.maximum(dual, 0)).all())

    U, left, converged = np.zeros_like(rhs), max_iter, False
    for _ in range(RESTARTS):
        rho = rhs - product(U) if left < max_iter else rhs.copy()
        if converged := good(U, rho):
            break
        if left <= 0:
            break
        left -= _descend(product, scale, U, rho, good, left)
    used = max_iter - left
    return system.certified(_combined(system, U), alpha, n_iter=used, converged=converged)


def _combined(system: RidgeSystem, A: Array, by: Array | None = None) -> Array:
    """Return ``A_0 - b A_v``, with the intercept ``b`` from the solution ``by``, here ``A``."""
    if not system.fit_intercept:
        return A
    sums = system.root @ (A if by is None else by)
    b = sums[:-1] / sums[-1] if sums[-1] > 0 else np.zeros(sums.size - 1)
    return A[:, :-1] - np.outer(A[:, -1], b)


def _descend(product: Any, scale: Array, U: Array, rho: Array, good: Any, most: int) -> int:
    """Improve the solution ``U`` and its residual ``rho`` in place; return the products used."""
    z = rho / scale[:, None]
    p = z.copy()
    size = np.sum(rho * z, axis=0)
    for step in range(1, most + 1):
        Ap = product(p)
        curvature = np.sum(p * Ap, axis=0)
        if (curvature < 0).any():
            raise ValueError(INDEFINITE)
        length = _ratio(size, curvature)
        U += length * p
        rho -= length * Ap
        if good(U, rho):
            return step
        np.divide(rho, scale[:, None], out=z)
        before, size = size, np.sum(rho * z, axis=0)
        p *= _ratio(size, before)
        p += z
    return most


def _ratio(above: Array, below: Array) -> Array:
    """Return the quotient, 0 for a column that is done."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)
