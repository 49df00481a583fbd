r"""The hinge loss of millions of rows, solved on the thousands that matter.

**Problem.** The same as that of :func:`~hilbin.solvers.bundle` with a
:class:`~hilbin.solvers.Risk`:

.. math:: \min_v \; J(v) = \tfrac12 \|v\|^2 + \sum_i w_i \max(0, 1 - t_i \langle v, x_i \rangle) .

**Algorithm.** The problem of a working set of rows is solved by cutting planes. Losses are not
below 0, so its least value, and the bound that the planes give for it, are no higher than
:math:`\min J`. One pass over all rows then gives :math:`J` at its solution, an upper bound, and
rows with a loss that are not in the set; those of largest loss join it. Most windows of images have
no loss at any time, and the set has a few thousand. This takes about ten passes over all rows where
cutting planes of all rows take fifty, and what is certified is the same: the gap between the value
for all rows and a lower bound of it.

**Stopping rule.** The gap is at most ``tol`` times the value.

**Reference.** P. Felzenszwalb et al., *Object Detection with Discriminatively Trained Part-Based
Models*, 2010, section 4.3, has the set; the bound is that of a relaxation.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hilbin._arrays import Array
from hilbin.solvers import Hinge, Result, Risk, bundle
from hilbin.solvers.problem import Callback

FIRST_ROWS = 2000  # negatives drawn at random that the set begins with
MOST_NEW = 5000  # rows that join it at once
LOOSE = 0.1  # largest tolerance of the solution of a working set


@dataclass(frozen=True, eq=False)
class Solved:
    """A solution, and what belongs to it.

    Parameters
    ----------
    result : Result
        ``n_iter`` counts passes over all rows.
    scores : array of shape (n,)
        Scores of all rows.
    working : int array
        The working set.
    """

    result: Result
    scores: Array
    working: Array


def first_rows(targets: Array, weights: Array, rng: np.random.RandomState) -> Array:
    """Return all positive rows, and some negative ones drawn at random."""
    negative = rng.randint(len(targets), size=FIRST_ROWS)
    chosen = np.concatenate([np.flatnonzero(targets > 0), negative])
    return np.unique(chosen[weights[chosen] > 0])


def minimize_hinge(
    rows: Any,
    targets: Array,
    weights: Array,
    working: Array,
    *,
    constant: float,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
) -> Solved:
    """Minimize the hinge loss of all rows; the module says how, and when it stops.

    Parameters
    ----------
    rows : WindowRows, CodedWindowRows or MirroredRows
        All rows; ``rows.chosen`` are some of them.
    targets : array of shape (n,)
        1 and -1.
    weights : array of shape (n,)
        Weight of every row.
    working : int array
        Rows to begin with.
    constant : float
        Square of the constant feature, the last.
    tol : float
        Largest gap relative to the value.
    max_iter : int
        Largest number of passes over all rows.
    callback : callable, optional
        Called after every pass with their number and the relative gap; false ends the descent.
    """
    value, bound, share = np.inf, 0.0, np.inf
    coef = scores = np.empty(0)
    going, n_iter, loss, root = True, 0, Hinge(), np.sqrt(constant)
    while going and share > tol and n_iter < max_iter:
        risk = Risk(rows.chosen(working), loss, targets[working], weights[working], constant)
        inner = bundle(risk, 1.0, tol=max(tol / 2, min(LOOSE, share / 8)))
        bound = max(bound, float(np.sum(inner.objective) - np.sum(inner.gap)))  # of one task
        found = rows.scores(inner.coef[:, :-1])[:, 0] + np.float32(root * inner.coef[0, -1])
        losses = loss.value(targets, found)
        total = 0.5 * float(np.square(inner.coef, dtype=np.float64).sum()) + float(weights @ losses)
        if total < value:
            value, coef, scores = total, inner.coef, found
        n_iter, share = n_iter + 1, (value - bound) / value
        working = _enlarged(working, losses * (weights > 0))
        going = callback is None or callback(n_iter, share)
    result = Result(coef, np.empty(0), value, value - bound, n_iter, bool(share <= tol))
    return Solved(result, scores, working)


def _enlarged(working: Array, losses: Array) -> Array:
    """Return the set with the rows of largest loss that it lacks."""
    losses[working] = 0
    lost = np.flatnonzero(losses)
    if lost.size > MOST_NEW:
        lost = lost[np.argpartition(-losses[lost], MOST_NEW)[:MOST_NEW]]
    return np.sort(np.concatenate([working, lost]))
