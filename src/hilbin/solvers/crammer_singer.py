r"""Crammer and Singer's multi-class SVM by dual coordinate descent.

**Problem.** :math:`\min_w \tfrac12 \sum_k \|w_k\|^2 + \sum_i C_i \max_k (1[k \ne y_i] + f_k(x_i)
- f_{y_i}(x_i))`; in the dual every row has one coefficient per class, whose sum is zero, at most
``C_i`` for the class of the row and at most zero for the others.

**Algorithm.** All coefficients of one row at a time get their best value, as in :func:`icd`.

**Stopping rule.** No row of a whole sweep violates its conditions by more than ``tol``. The duality
gap is computed afterwards from the coefficients alone, in float64.

**Reference.** S. S. Keerthi et al., *A Sequential Dual Method for Large Scale Multi-Class Linear
SVMs*, KDD 2008.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from hilbin._arrays import Array
from hilbin.solvers.icd import ClassRows, repeat, start_random, table_dtype, visited
from hilbin.solvers.problem import ROUNDING, Callback, Result, unit_of


def crammer_singer(
    rows: ClassRows,
    labels: Array,
    weights: Array,
    *,
    n_classes: int,
    constant: float = 0.0,
    tol: float = 0.1,
    max_iter: int = 1000,
    start: Array | None = None,
    seed: int = 0,
    callback: Callback | None = None,
) -> Result:
    """Train Crammer and Singer's multi-class SVM by dual coordinate descent.

    Parameters
    ----------
    rows : LookupRows, or from gram_rows
        The kernel matrix, without the constant.
    labels : array of shape (n,)
        Classes, from 0 to ``n_classes - 1``.
    weights : array of shape (n,)
        Weight ``C_i`` of every row's loss.
    n_classes : int
        Number of classes.
    constant : float, default=0.0
        The number that is added to every kernel value: a penalized intercept.
    tol, max_iter, seed, callback
        As in :func:`icd`.
    start : array of shape (n, n_classes), optional
        Coefficients to start from; rows beyond their bound are scaled back to it.

    Returns
    -------
    result : Result
        ``coef`` has one column per class.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import crammer_singer, gram_rows
    >>> x = np.array([1.0, 2.0, 5.0, 6.0])
    >>> K = np.minimum.outer(x, x)
    >>> labels = np.array([0, 0, 1, 1])
    >>> result = crammer_singer(gram_rows(K), labels, np.ones(4), n_classes=2, tol=1e-6)
    >>> np.argmax(K @ result.coef + result.intercept, axis=1)
    array([0, 0, 1, 1])
    """
    if (unit := unit_of(rows.norms)) != 1:
        start = None if start is None else start * unit
        given: dict[str, Any] = {"n_classes": n_classes, "constant": constant / unit, "seed": seed}
        given |= {"tol": tol, "max_iter": max_iter, "callback": callback, "start": start}
        found = crammer_singer(rows.divided(unit), labels, np.asarray(weights) * unit, **given)
        names = ("coef", "dual", "objective", "gap")
        return replace(found, **{name: getattr(found, name) / unit for name in names})
    n, constant = labels.size, float(constant)
    coefs = np.zeros((n, n_classes)) if start is None else _within(start, labels, weights)
    core_sweep = rows.start_classes(coefs, table_dtype(tol))
    samples = (np.array(weights, np.float64), rows.norms + constant, labels.astype(np.int64))
    order, free = visited(np.asarray(weights) > 0)
    random = start_random(seed)
    offsets = coefs.sum(axis=0)

    def sweep(active: int, above: float, below: float) -> tuple[int, float, float, int]:
        return core_sweep(*samples, coefs, order, active, above, constant, offsets, random)

    course = repeat(sweep, coefs.copy, free, 1.0, tol, max_iter, callback)
    return _certified(rows, labels, weights, coefs, constant, *course)


def _within(start: Array, labels: Array, weights: Array) -> Array:
    """Return the start, rows beyond their bound scaled back to it, those of another class zero."""
    own = start[np.arange(labels.size), labels]
    shares = np.divide(weights, own, out=np.ones(labels.size), where=own > weights)
    shares[start.argmax(axis=1) != labels] = 0
    return np.ascontiguousarray(start * shares[:, None], np.float64)


def _certified(
    rows: ClassRows,
    labels: Array,
    weights: Array,
    coefs: Array,
    constant: float,
    n_iter: int,
    converged: bool,
    stalled: bool,
) -> Result:
    intercept = constant * coefs.sum(axis=0)
    scores = rows.scores(coefs) + intercept
    squared_norm = float(np.sum(coefs * scores))
    own = np.arange(labels.size), labels
    lower = float(coefs[own].sum()) - 0.5 * squared_norm
    margins = scores + 1
    margins[own] -= 1
    upper = 0.5 * squared_norm + float(weights @ (margins.max(axis=1) - scores[own]))
    gap = upper - lower
    converged = converged or gap <= ROUNDING * abs(upper)
    return Result(coefs, coefs, upper, gap, n_iter, converged, intercept, stalled)
