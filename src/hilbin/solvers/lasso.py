r"""Lasso and group lasso from sums.

**Problem.** With :math:`G = S / n`, :math:`c = V / n` of :class:`~hilbin.stats.Moments` and the
residual :math:`R = T - Z W - b`,

.. math::
    \min_{W, b} \tfrac{1}{2n} \sum_i w_i \|R_i\|^2 + \alpha \sum_g \rho_g \|W_g\|, \qquad
    \tfrac1n \|R\|^2 = \bar s - 2 \langle c, W \rangle + \langle W, G W \rangle ,

where :math:`\bar s` is the mean of the centered squares of the targets. In the lasso every entry of
``W`` is a group with :math:`\rho = 1`, so targets are independent problems. In the group lasso a
group is some rows of ``W``, all targets together, with the Frobenius norm and :math:`\rho_g` the
root of the number of features of the group: features, or descriptors, are chosen for all targets
alike.

**Algorithm.** Coordinate descent on the entries, or groups, that are not 0 or should not be;
these are found anew until none is missing. One coordinate has a closed form; a group
:math:`\min \tfrac12 \langle W, A W \rangle - \langle r, W \rangle + \lambda \|W\|` is
:math:`W = (A + \tfrac{\lambda}{\nu} I)^{-1} r` with the norm :math:`\nu` found by bisection on the
eigenvalues of its matrix :math:`A`.

**Stopping rule.** The duality gap, from the sums alone, is at most ``tol`` :math:`\bar s`. With the
gradient :math:`q = c - G W`, :math:`\theta = s R` is feasible for
:math:`|s| \max_g \|q_g\| / \rho_g \le \alpha`, and the dual value is
:math:`s (\bar s - \langle c, W \rangle) - \tfrac12 s^2 \|R\|^2 / n`.

**References.** J. Friedman, T. Hastie and R. Tibshirani, *Regularization Paths for Generalized
Linear Models via Coordinate Descent*, 2010. M. Yuan and Y. Lin, *Model Selection and Estimation in
Regression with Grouped Variables*, 2006.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import brentq

from hilbin._arrays import Array
from hilbin.solvers.problem import Result
from hilbin.stats import Moments

SWEEPS = 100  # over the active entries before all are looked at again
INNER = 0.1  # share of the largest change of a round at which its sweeps end


def lasso(
    moments: Moments,
    alpha: float,
    groups: Sequence[Any] | None = None,
    *,
    tol: float = 1e-6,
    max_iter: int = 1000,
    coef: Array | None = None,
) -> Result:
    """Solve the lasso or group lasso: least squares on few features, or few groups of them.

    Parameters
    ----------
    moments : Moments
        Moments of rows and targets.
    alpha : float
        Penalty, above 0, in scikit-learn's units: the loss is a mean over rows.
    groups : sequence of arrays of int, optional
        Features of every group, for the group lasso; together all features, each once.
    tol : float, default=1e-6
        Largest duality gap, over the mean square of the targets.
    max_iter : int, default=1000
        Largest number of searches for what is missing.
    coef : array of shape (D, c), optional
        Weights to start from.

    Returns
    -------
    result : Result
        ``coef`` of shape (D, c), ``intercept`` of shape (c,).

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import lasso
    >>> from hilbin.stats import Moments
    >>> Z = np.random.default_rng(0).normal(size=(200, 4))
    >>> result = lasso(Moments.of(Z, 3 * Z[:, 1]), 0.1)
    >>> np.flatnonzero(result.coef), result.converged
    (array([1]), True)
    >>> result = lasso(Moments.of(Z, Z[:, :2]), 0.1, groups=[[0, 1], [2, 3]])
    >>> result.coef.any(axis=1)
    array([ True,  True, False, False])
    """
    G = moments.scatter / moments.n
    penalty = Entries(G, alpha) if groups is None else Groups(G, alpha, groups)
    c = moments.cross / moments.n
    squares = penalty.each(moments.target_squares[None] / moments.n)
    W = np.zeros_like(c) if coef is None else np.array(coef, np.float64)
    limit = tol * float(squares.sum())
    for n_iter in range(max_iter + 1):
        q = c - G @ W
        objective, gap = _gap(penalty, c, squares, W, q)
        if gap <= limit or n_iter == max_iter:
            break
        active = penalty.active(W, q)
        some, gradient = W[active], q[active]
        H = np.asfortranarray(G[np.ix_(active, active)])
        first = penalty.sweep(some, gradient, active, H)
        for _ in range(SWEEPS - 1):
            if penalty.sweep(some, gradient, active, H) <= INNER * first:
                break
        W[active] = some
    intercept = moments.target_mean - moments.mean @ W
    return Result(W, np.empty(0), objective, gap, n_iter, gap <= limit, intercept)


def lasso_path(
    moments: Moments,
    alphas: Any,
    groups: Sequence[Any] | None = None,
    *,
    tol: float = 1e-6,
    max_iter: int = 1000,
) -> list[Result]:
    """Lasso or group lasso for many penalties, each from where the next larger one ended.

    Parameters
    ----------
    moments : Moments
        Moments of rows and targets.
    alphas : array-like of float
        Penalties, in any order.
    groups, tol, max_iter
        As in :func:`lasso`.

    Returns
    -------
    results : list of Result
        Results in the order of ``alphas``.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers.lasso import lasso_path
    >>> from hilbin.stats import Moments
    >>> Z = np.random.default_rng(0).normal(size=(200, 3))
    >>> path = lasso_path(Moments.of(Z, Z @ [3.0, 1.0, 0.3]), [0.1, 0.5, 2.0])
    >>> [int(np.count_nonzero(result.coef)) for result in path]
    [3, 2, 1]
    """
    alphas = np.asarray(alphas, np.float64)
    results: dict[int, Result] = {}
    coef = None
    for place in np.argsort(-alphas):
        alpha = float(alphas[place])
        result = lasso(moments, alpha, groups, tol=tol, max_iter=max_iter, coef=coef)
        results[int(place)], coef = result, result.coef
    return [results[place] for place in range(alphas.size)]


def _gap(
    penalty: "Entries | Groups", c: Array, squares: Array, W: Array, q: Array
) -> tuple[float, float]:
    """Return objective and duality gap of ``W`` with gradient ``q``, summed over the problems."""
    fitted = penalty.each(c * W)
    loss = np.maximum(squares - fitted - penalty.each(q * W), 0)  # <W, G W> = <W, c - q>
    primal = loss / 2 + penalty.alpha * penalty.norm(W)
    with np.errstate(divide="ignore", invalid="ignore"):
        most = penalty.alpha / penalty.dual_norm(q)
        best = (squares - fitted) / loss
    scale = np.where(loss > 0, np.clip(np.nan_to_num(best), -most, most), 0)
    dual = scale * (squares - fitted) - scale**2 * loss / 2
    return float(primal.sum()), float(np.maximum(primal - dual, 0).sum())


class Entries:
    """The penalty of the lasso: every entry of the weights, every target a problem of its own."""

    def __init__(self, G: Array, alpha: float) -> None:
        self.alpha, self.curvature = alpha, np.diag(G)

    def sweep(self, W: Array, q: Array, active: Array, H: Array) -> float:
        """Descend along the active features, which ``W``, ``q`` and ``H`` have alone."""
        largest = 0.0
        for place, j in enumerate(active):
            curvature = self.curvature[j]
            if curvature <= 0:
                continue
            pull = q[place] + curvature * W[place]
            new = np.sign(pull) * np.maximum(np.abs(pull) - self.alpha, 0) / curvature
            change = new - W[place]
            if change.any():
                W[place] = new
                q -= H[:, place, None] * change
                largest = max(largest, float(np.abs(change).max() * np.sqrt(curvature)))
        return largest

    def active(self, W: Array, q: Array) -> Array:
        """Return the features that are used, or that the gradient asks for."""
        return np.flatnonzero((W != 0).any(axis=1) | (np.abs(q) > self.alpha).any(axis=1))

    def norm(self, W: Array) -> Array:
        """Return the norm of the weights of every problem."""
        return np.abs(W).sum(axis=0)

    def dual_norm(self, q: Array) -> Array:
        """Return the dual norm of the gradient of every problem."""
        return np.abs(q).max(axis=0)

    def each(self, values: Array) -> Array:
        """Return the sums over what belongs to one problem."""
        return values.sum(axis=0)


class Groups:
    """The penalty of the group lasso: groups of features, all targets together."""

    def __init__(self, G: Array, alpha: float, groups: Sequence[Any]) -> None:
        members = _checked_groups(groups, len(G))
        self.alpha = alpha
        self.roots = np.sqrt([member.size for member in members])
        self.of_feature = np.repeat(np.arange(len(members)), [m.size for m in members])
        self.of_feature = self.of_feature[np.argsort(np.concatenate(members))]
        self.eigen = [np.linalg.eigh(G[np.ix_(m, m)]) for m in members]

    def sweep(self, W: Array, q: Array, active: Array, H: Array) -> float:
        """Descend along the active groups, whose features ``W``, ``q`` and ``H`` have alone."""
        largest = 0.0
        here = self.of_feature[active]
        for g in np.unique(here):
            at = np.flatnonzero(here == g)
            lam, U = self.eigen[g]
            pull = U.T @ (q[at] + H[np.ix_(at, at)] @ W[at])
            new = U @ _shrunk(np.maximum(lam, 0), pull, self.alpha * self.roots[g])
            change = new - W[at]
            if change.any():
                W[at] = new
                q -= H[:, at] @ change
                largest = max(largest, float(np.abs(change).max() * np.sqrt(max(lam[-1], 0))))
        return largest

    def _norms(self, W: Array) -> Array:
        squares = np.square(W).sum(axis=1)
        return np.sqrt(np.bincount(self.of_feature, squares, self.roots.size))

    def active(self, W: Array, q: Array) -> Array:
        """Return the features of groups that are used, or that the gradient asks for."""
        used = (self._norms(W) > 0) | (self._norms(q) > self.alpha * self.roots)
        return np.flatnonzero(used[self.of_feature])

    def norm(self, W: Array) -> Array:
        """Return the norm of the weights, which are all one problem."""
        return self.roots @ self._norms(W)[:, None]

    def dual_norm(self, q: Array) -> Array:
        """Return the dual norm of the gradient."""
        return np.max(self._norms(q) / self.roots, keepdims=True)

    def each(self, values: Array) -> Array:
        """Return the sum of all values, which belong to one problem."""
        return values.sum(keepdims=True).ravel()


def _shrunk(lam: Array, pull: Array, limit: float) -> Array:
    """Return the best group in the eigenbasis of its matrix: ``pull / (lam + limit / norm)``."""
    squares = np.square(pull).sum(axis=1)
    if np.sqrt(squares.sum()) <= limit:
        return np.zeros_like(pull)

    def excess(ratio: float) -> float:
        """Return the excess of the norm over ``limit / ratio``, times ``ratio``."""
        return float(np.sqrt(np.sum(squares * (ratio / (lam + ratio)) ** 2)) - limit)

    high = max(float(lam.max()), np.finfo(float).tiny)
    while excess(high) < 0:
        high *= 2
    low = high
    while excess(low) > 0 and low > np.finfo(float).tiny:
        low /= 16
    if excess(low) > 0:  # directions without curvature: the data does not bound the group
        return np.zeros_like(pull)
    ratio = brentq(excess, low, high, xtol=1e-300, rtol=8.9e-16)
    return pull / (lam + ratio)[:, None]


def _checked_groups(groups: Sequence[Any], width: int) -> list[Array]:
    members = [np.unique(np.asarray(group, np.intp)) for group in groups]
    named = np.concatenate(members) if members else np.empty(0, np.intp)
    counts = np.bincount(named[(named >= 0) & (named < width)], minlength=width)
    if named.size != width or not (counts == 1).all():
        bad = int(np.argmax(counts != 1))
        raise ValueError(
            f"groups must name each of the {width} features once, "
            f"but feature {bad} is named {counts[bad]} times"
        )
    return members
