r"""Crammer and Singer's multi-class SVM by dual coordinate descent.

**Problem.** :math:`\min_w \tfrac12 \sum_k \|w_k\|^2 + \sum_i C_i \max_k (1[k \ne y_i] + f_k(x_i)
- f_{y_i}(x_i))`; in the dual every row has one coefficient per class, whose sum is zero, at most
``C_i`` for the class of the row and at most zero for the others.

**Algorithm.** All coefficients of one row at a time get their best value (Keerthi et al., KDD
2008).

**Stopping rule.** No row of a whole sweep violates its conditions by more than ``tol``.
"""

from typing import Any

import numpy as np

from hilbin.solvers._codes import Array
from hilbin.solvers._icd import FLOAT32_TOL, Callback, start_random
from hilbin.solvers._result import Result
from hilbin.solvers._rows import Rows


def crammer_singer(
    rows: Rows,
    labels: Array,
    C: Array,
    *,
    n_classes: int,
    bias: float = 0.0,
    tol: float = 0.1,
    max_iter: int = 1000,
    dual: Array | None = None,
    seed: int = 0,
    callback: Callback | None = None,
) -> Result:
    """Minimize by dual coordinate descent; the module says what, and when it stops.

    Parameters
    ----------
    rows : TableRows or GramRows
        The kernel without the bias.
    labels : array of shape (n,)
        Classes, from 0 to ``n_classes - 1``.
    C : array of shape (n,)
        Weight of every row's loss.
    n_classes : int
        Number of classes.
    bias, tol, max_iter, seed, callback
        As in :func:`icd`.
    dual : array of shape (n, n_classes), optional
        Where to start; rows beyond their bound are scaled back to it.

    Returns
    -------
    result : Result
        ``coef`` has one column per class.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import GramRows, crammer_singer
    >>> x = np.array([1.0, 2.0, 5.0, 6.0])
    >>> K = np.minimum.outer(x, x)
    >>> labels = np.array([0, 0, 1, 1])
    >>> result = crammer_singer(GramRows(K), labels, np.ones(4), n_classes=2, tol=1e-6)
    >>> np.argmax(K @ result.coef + result.bias, axis=1)
    array([0, 0, 1, 1])
    """
    n = labels.size
    samples = np.column_stack([C, rows.norms + bias, labels]).astype(np.float64)
    duals = np.zeros((n, n_classes)) if dual is None else _within(dual, labels, C)
    offsets = duals.sum(axis=0)
    dtype = np.float32 if tol >= FLOAT32_TOL else np.float64
    sweep = rows.start_classes(duals, dtype)
    order, random = np.arange(n, dtype=np.int32), start_random(seed)
    active, above, n_iter, converged = n, np.inf, 0, False
    try:
        while n_iter < max_iter:
            active, worst, _ = sweep(samples, duals, order, active, above, bias, offsets, random)
            n_iter += 1
            converged = worst <= tol and active == n
            go_on = callback is None or callback(n_iter, worst)
            if converged or not go_on:
                break
            if worst <= tol:
                active, above = n, np.inf
            else:
                above = worst
    except KeyboardInterrupt:
        if callback is None:
            raise
        callback(-1, np.nan)
    return _certified(rows, labels, C, duals, bias, n_iter, converged)


def _within(dual: Array, labels: Array, C: Array) -> Array:
    """Rows beyond their bound scaled back to it; those of another class start from zero."""
    rows = np.arange(labels.size)
    own = dual[rows, labels]
    shares = np.divide(C, own, out=np.ones(labels.size), where=own > C)
    shares[dual.argmax(axis=1) != labels] = 0
    return np.ascontiguousarray(dual * shares[:, None], np.float64)


def _certified(
    rows: Rows, labels: Array, C: Array, duals: Array, bias: float, n_iter: int, converged: Any
) -> Result:
    offset = bias * duals.sum(axis=0)
    scores = rows.scores(duals) + offset
    squared_norm = float(np.sum(duals * scores))
    own = np.arange(labels.size), labels
    lower = float(duals[own].sum()) - 0.5 * squared_norm
    margins = scores + 1
    margins[own] -= 1
    upper = 0.5 * squared_norm + float(C @ (margins.max(axis=1) - scores[own]))
    return Result(duals, duals, upper, upper - lower, n_iter, converged, offset)
