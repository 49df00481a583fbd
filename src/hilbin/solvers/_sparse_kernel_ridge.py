r"""Ridge regression with a sparse Gram matrix, which is multiplied and never made dense.

**Problem.** That of :mod:`hilbin.solvers._kernel_ridge`: :math:`(SKS + \alpha I) u + b s = S t`,
:math:`s^\top u = 0`. Two positive definite systems give it, for all targets at once:
:math:`(SKS + \alpha I) [u_0, v] = [S t, s]`, then :math:`b = s^\top u_0 / s^\top v` and
:math:`u = u_0 - b v`.

**Stopping rule.** Conjugate gradients, preconditioned by the diagonal, until the duality gap
:math:`\|\rho\|^2` is below ``tol`` times the objective for every target. It follows the residuals
of the method for free; at the end they are computed afresh, and the method begins again where it is
if rounding had made them too good.

**Reference.** M. Hestenes and E. Stiefel, *Methods of Conjugate Gradients for Solving Linear
Systems*, 1952.
"""

from typing import Any

import numpy as np

from hilbin.solvers._codes import Array
from hilbin.solvers._result import Result
from hilbin.solvers._ridge_system import RidgeSystem

RESTARTS = 10
INDEFINITE = (
    "the Gram matrix is not positive semi-definite: a combination of its rows has a negative square"
)


def sparse_kernel_ridge(
    gram: Any,
    targets: Array,
    alpha: float,
    *,
    weight: Array | None = None,
    intercept: bool = True,
    tol: float = 1e-16,
    max_iter: int = 10_000,
) -> Result:
    """Ridge regression with a CSR Gram matrix for one penalty; the module says how.

    Parameters
    ----------
    gram : CSR array of shape (n, n)
        Symmetric and positive semi-definite.
    targets : array of shape (n,) or (n, c)
    alpha : float
        Penalty, above 0.
    weight : array of shape (n,), optional
        Numbers of copies, at least 0.
    intercept : bool, default True
        Whether there is a bias.
    tol : float, default 1e-16
        Duality gap over the objective at which to stop.
    max_iter : int, default 10000
        Most products with the matrix.

    Returns
    -------
    result : Result
        ``coef`` of shape (n, c), ``bias``, ``objective`` and ``gap`` of shape (c,).

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from hilbin.solvers import sparse_kernel_ridge
    >>> result = sparse_kernel_ridge(sp.eye_array(4, format="csr"), [1.0, 2.0, 3.0, 4.0], 1.0)
    >>> result.bias.round(6), result.converged
    (array([2.5]), True)
    """
    gram = gram.astype(np.float64, copy=False)
    system = RidgeSystem.of(gram, targets, weight, intercept)
    root = system.root[:, None]
    rhs = np.hstack([system.rhs, root]) if intercept else system.rhs
    scale = system.weight * gram.diagonal() + alpha
    if (scale <= 0).any():
        raise ValueError(INDEFINITE)

    def product(U: Array) -> Array:
        applied: Array = root * (gram @ (root * U)) + alpha * U
        return applied

    def good(U: Array, rho: Array) -> bool:
        """Whether the duality gaps are small enough."""
        u, rho = _without_bias(system, U), _without_bias(system, rho, by=U)
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
    return system.certified(_without_bias(system, U), alpha, n_iter=used, converged=converged)


def _without_bias(system: RidgeSystem, A: Array, by: Array | None = None) -> Array:
    """The columns of the targets minus ``b`` times the last, ``b`` from the solution ``by``."""
    if not system.intercept:
        return A
    by = A if by is None else by
    sums = system.root @ by
    b = sums[:-1] / sums[-1] if sums[-1] > 0 else np.zeros(sums.size - 1)
    return A[:, :-1] - np.outer(A[:, -1], b)


def _descend(product: Any, scale: Array, U: Array, rho: Array, good: Any, most: int) -> int:
    """Change the solution ``U`` and its residual ``rho`` in place until good; returns products."""
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
    """Their quotient, 0 for a column that is done."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)
