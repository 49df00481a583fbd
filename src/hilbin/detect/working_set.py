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

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from hilbin._arrays import Array
from hilbin.solvers import Hinge, Result, Risk, bundle
from hilbin.solvers.problem import Callback

FIRST_ROWS = 2000  # negatives drawn at random that the set begins with
MOST_NEW = 5000  # rows that join it at once
LOOSE = 0.1  # largest tolerance of the solution of a working set


@dataclass(frozen=True, eq=False)
class Descent:
    """How far a solution is: all that the next pass depends on.

    Parameters
    ----------
    working : int array
        The working set.
    coef : array of shape (1, n_weights)
        Weights of the least value so far.
    value : float
        That value.
    bound : float
        Lower bound of the least value.
    n_iter : int
        Passes over all rows.
    """

    working: Array
    coef: Array = field(default_factory=lambda: np.empty((1, 0), np.float32))
    value: float = np.inf
    bound: float = 0.0
    n_iter: int = 0

    def arrays(self) -> dict[str, Array]:
        """Return the fields as arrays."""
        return {one.name: np.asarray(getattr(self, one.name)) for one in fields(self)}

    @classmethod
    def of(cls, arrays: dict[str, Array]) -> "Descent":
        """Return what :meth:`arrays` was made of."""
        numbers = float(arrays["value"]), float(arrays["bound"]), int(arrays["n_iter"])
        return cls(arrays["working"], arrays["coef"], *numbers)

    @property
    def share(self) -> float:
        """The gap relative to the value."""
        return (self.value - self.bound) / self.value if self.n_iter else np.inf


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
    start: Descent,
    *,
    constant: float,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
    keep: Callable[[Descent], object] = lambda state: None,
) -> Solved:
    """Minimize the hinge loss of all rows, as described at the top of this module.

    Parameters
    ----------
    rows : WindowRows, CodedWindowRows or MirroredRows
        All rows; ``rows.chosen`` are some of them.
    targets : array of shape (n,)
        1 and -1.
    weights : array of shape (n,)
        Weight of every row.
    start : Descent
        Rows to begin with, or what ``keep`` was given: the result is the same bit for bit.
    constant : float
        Square of the constant feature, the last.
    tol : float
        Largest gap relative to the value.
    max_iter : int
        Largest number of passes over all rows.
    callback : callable, optional
        Called after every pass with their number and the relative gap; false ends the descent.
    keep : callable
        Called after every pass that does not end the descent before its time.
    """

    def scores_of(coef: Array) -> Array:
        bias = np.float32(np.sqrt(constant) * coef[0, -1])
        return np.asarray(rows.scores(coef[:, :-1])[:, 0] + bias)

    state, going, loss = start, True, Hinge()
    scores = scores_of(state.coef) if state.n_iter else np.empty(0)
    while going and state.share > tol and state.n_iter < max_iter:
        some, share = state.working, state.share
        risk = Risk(rows.chosen(some), loss, targets[some], weights[some], constant)
        inner = bundle(risk, 1.0, tol=max(tol / 2, min(LOOSE, share / 8)))
        bound = max(state.bound, float(np.sum(inner.objective) - np.sum(inner.gap)))  # of one task
        coef, found = inner.coef, scores_of(inner.coef)
        losses = loss.value(targets, found)
        value = 0.5 * float(np.square(coef, dtype=np.float64).sum()) + float(weights @ losses)
        if value < state.value:
            scores = found
        else:
            value, coef = state.value, state.coef
        working = _enlarged(some, losses * (weights > 0))
        state = Descent(working, coef, value, bound, state.n_iter + 1)
        going = callback is None or callback(state.n_iter, state.share)
        if going:
            keep(state)
    gap, done = state.value - state.bound, bool(state.share <= tol)
    result = Result(state.coef, np.empty(0), state.value, gap, state.n_iter, done)
    return Solved(result, scores, state.working)


def _enlarged(working: Array, losses: Array) -> Array:
    """Return the set with the rows of largest loss that it lacks."""
    losses[working] = 0
    lost = np.flatnonzero(losses)
    if lost.size > MOST_NEW:
        lost = lost[np.argpartition(-losses[lost], MOST_NEW)[:MOST_NEW]]
    return np.sort(np.concatenate([working, lost]))
