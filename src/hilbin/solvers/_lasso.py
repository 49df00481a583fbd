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
eigenvalues of its block :math:`A`.

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

from hilbin.solvers._codes import Array
from hilbin.solvers._penalties import Entries, Groups
from hilbin.solvers._result import Result
from hilbin.stats import Moments

SWEEPS = 100  # over the active entries before all are looked at again
INNER = 0.1  # share of the largest change of a round at which its sweeps end


def lasso(
    moments: Moments,
    alpha: float,
    *,
    tol: float = 1e-6,
    max_iter: int = 1000,
    coef: Array | None = None,
) -> Result:
    """Least squares with few weights; the module says what, and when it stops.

    Parameters
    ----------
    moments : Moments
        Of rows and targets.
    alpha : float
        Penalty, above 0, in scikit-learn's units: the loss is a mean over rows.
    tol : float
        Largest duality gap, over the mean square of the targets.
    max_iter : int
        Most rounds of finding what is missing.
    coef : array of shape (D, c), optional
        Where to start.

    Returns
    -------
    result : Result
        ``coef`` of shape (D, c), ``bias`` of shape (c,).

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import lasso
    >>> from hilbin.stats import Moments
    >>> Z = np.random.default_rng(0).normal(size=(200, 5))
    >>> result = lasso(Moments.of(Z, 3 * Z[:, 1]), 0.1)
    >>> np.flatnonzero(result.coef), result.converged
    (array([1]), True)
    """
    G = moments.scatter / moments.n
    return _descend(moments, G, Entries(G, alpha), coef, tol, max_iter)


def group_lasso(
    moments: Moments,
    alpha: float,
    groups: Sequence[Any],
    *,
    tol: float = 1e-6,
    max_iter: int = 1000,
    coef: Array | None = None,
) -> Result:
    """Least squares on few groups of features; the module says what, and when it stops.

    Parameters
    ----------
    moments : Moments
        Of rows and targets.
    alpha : float
        Penalty, above 0; the loss is a mean over rows.
    groups : sequence of arrays of int
        The features of every group; together all features, each once.
    tol, max_iter, coef
        As in :func:`lasso`.

    Returns
    -------
    result : Result
        ``coef`` of shape (D, c), ``bias`` of shape (c,).

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import group_lasso
    >>> from hilbin.stats import Moments
    >>> Z = np.random.default_rng(0).normal(size=(200, 4))
    >>> result = group_lasso(Moments.of(Z, Z[:, :2]), 0.1, [[0, 1], [2, 3]])
    >>> result.coef.any(axis=1)
    array([ True,  True, False, False])
    """
    G = moments.scatter / moments.n
    return _descend(moments, G, Groups(G, alpha, groups), coef, tol, max_iter)


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
        Of rows and targets.
    alphas : array-like of float
        Penalties, in any order.
    groups : sequence of arrays of int, optional
        As in :func:`group_lasso`; none is :func:`lasso`.
    tol, max_iter
        As in :func:`lasso`.

    Returns
    -------
    results : list of Result
        In the order of ``alphas``.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import lasso_path
    >>> from hilbin.stats import Moments
    >>> Z = np.random.default_rng(0).normal(size=(200, 3))
    >>> path = lasso_path(Moments.of(Z, Z @ [3.0, 1.0, 0.3]), [0.1, 0.5, 2.0])
    >>> [int(np.count_nonzero(result.coef)) for result in path]
    [3, 2, 1]
    """
    G = moments.scatter / moments.n
    alphas = np.asarray(alphas, np.float64)
    results: dict[int, Result] = {}
    coef = None
    for place in np.argsort(-alphas):
        alpha = float(alphas[place])
        penalty = Entries(G, alpha) if groups is None else Groups(G, alpha, groups)
        results[int(place)] = _descend(moments, G, penalty, coef, tol, max_iter)
        coef = results[int(place)].coef
    return [results[place] for place in range(alphas.size)]


def _gap(
    penalty: Entries | Groups, c: Array, squares: Array, W: Array, q: Array
) -> tuple[float, float]:
    """Objective and duality gap of ``W`` with gradient ``q``, summed over the problems."""
    fitted = penalty.each(c * W)
    loss = np.maximum(squares - fitted - penalty.each(q * W), 0)  # <W, G W> = <W, c - q>
    primal = loss / 2 + penalty.alpha * penalty.norm(W)
    with np.errstate(divide="ignore", invalid="ignore"):
        most = penalty.alpha / penalty.dual_norm(q)
        best = (squares - fitted) / loss
    scale = np.where(loss > 0, np.clip(np.nan_to_num(best), -most, most), 0)
    dual = scale * (squares - fitted) - scale**2 * loss / 2
    return float(primal.sum()), float(np.maximum(primal - dual, 0).sum())


def _descend(
    moments: Moments,
    G: Array,
    penalty: Entries | Groups,
    start: Array | None,
    tol: float,
    max_iter: int,
) -> Result:
    """Rounds of sweeps over what is active, until the gap is small."""
    c = moments.cross / moments.n
    squares = penalty.each(moments.target_squares[None] / moments.n)
    W = np.zeros_like(c) if start is None else np.array(start, np.float64)
    limit = tol * float(squares.sum())
    for n_iter in range(max_iter + 1):
        q = c - G @ W
        objective, gap = _gap(penalty, c, squares, W, q)
        if gap <= limit or n_iter == max_iter:
            break
        active = penalty.active(W, q)
        part, gradient = W[active], q[active]
        block = np.asfortranarray(G[np.ix_(active, active)])
        first = penalty.sweep(part, gradient, active, block)
        for _ in range(SWEEPS - 1):
            if penalty.sweep(part, gradient, active, block) <= INNER * first:
                break
        W[active] = part
    bias = moments.target_mean - moments.mean @ W
    return Result(W, np.empty(0), objective, gap, n_iter, gap <= limit, bias)
