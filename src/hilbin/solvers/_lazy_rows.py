"""A Gram matrix whose rows are computed when a solver asks for them."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from hilbin._core import core
from hilbin.solvers._codes import Array
from hilbin.solvers._gram_rows import Report, by_columns, gains
from hilbin.solvers._icd import DIAGONAL, DUAL, HIGH, LINEAR, LOW, SIGN

AHEAD = 3  # rows computed with a missing one though others are thrown out for them


class LazyRows:
    """Rows computed when they are needed; the ones used last are kept, as many as fit.

    Parameters
    ----------
    compute : callable
        ``compute(indices)`` is the array ``K[indices]`` of shape (len(indices), n).
    diagonal : array of shape (n,)
        The diagonal of the matrix.
    memory : float
        Bytes for the rows that are kept, in float32; at least two rows and what computes them.
    batch : int
        How many rows are computed in one go.
    square : callable, optional
        ``square(indices)`` is ``K[indices][:, indices]``: if all rows fit and a third of them was
        asked for, the rest are computed with their symmetry.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import LazyRows
    >>> K = np.array([[3.0, 1.0], [1.0, 3.0]])
    >>> LazyRows(lambda i: K[i], np.diag(K), memory=1e6).scores(np.array([1.0, 0.0]))
    array([3., 1.])
    """

    def __init__(
        self,
        compute: Callable[[Array], Array],
        diagonal: Array,
        memory: float,
        batch: int = 8,
        square: Callable[[Array], Array] | None = None,
    ):
        self.compute, self.square = compute, square
        self.norms = np.asarray(diagonal, np.float64)
        n = self.norms.size
        fits = int(memory // (4 * n)) - 3 * batch  # a batch in float64, and its copy
        self.batch = min(batch, max(1, fits // 4))
        self.cache = np.empty((min(n, max(2, fits)), n), np.float32)
        self.slots = np.full(n, -1, np.int32)
        self.owners = np.full(len(self.cache), -1, np.int64)
        self.stamps = np.zeros(len(self.cache), np.int64)
        self.clock = np.zeros(1, np.int64)
        self.computed = 0

    def steps(self, state: Array, epsilon: float, most: int, tol: float) -> Report:
        """Steps of sequential minimal optimization, until they are done or a row was missing."""
        done, violation, missing = core.smo_cached(*self._rows, state, epsilon, most, tol)
        if missing >= 0:
            up, down = gains(state, epsilon)
            self._fetch(missing, up, -down)
        return done, violation

    def start(self, coef: Array, dtype: Any) -> Any:
        """A function that runs one sweep, from the scores of ``coef``."""
        scores = self.scores(coef)

        def sweep(problem: Array, order: Array, active: int, *course: Any) -> tuple[Any, ...]:
            while True:  # what was done before a row was missing is not done again
                *done, missing = core.sweep_cached_gram(
                    *self._rows, scores, problem, order, active, *course
                )
                if missing < 0:
                    return tuple(done)
                active = done[0]
                bias, offset = course[3:5]
                self._fetch(missing, *_slopes(problem, scores + bias * offset))

        return sweep

    def start_classes(self, coef: Array, dtype: Any) -> Any:
        """Not for rows that come and go."""
        raise NotImplementedError

    @property
    def _rows(self) -> tuple[Array, Array, Array, Array]:
        return self.cache, self.slots, self.stamps, self.clock

    def _fetch(self, missing: int, up: Array, down: Array) -> None:
        """Compute a row, and with it those that gain most by a change up or down."""
        if self.square is not None and len(self.cache) == self.norms.size <= 3 * self.computed:
            self._complete(self.square)
            return
        room = max(int(np.count_nonzero(self.owners < 0)), AHEAD)
        few = min((self.batch - 1) // 2, room // 2, self.norms.size - 1)
        wanted = [np.array([missing])]
        for gain in (up, down) if few else ():
            gain[self.slots >= 0] = -np.inf
            best = np.argpartition(-gain, few)[:few]
            wanted.append(best[np.isfinite(gain[best])])
        self._put(np.unique(np.concatenate(wanted)))

    def _put(self, rows: Array) -> None:
        """Compute rows and keep them in place of those not used for longest."""
        free = np.argpartition(self.stamps, rows.size - 1)[: rows.size]
        self.slots[self.owners[free][self.owners[free] >= 0]] = -1
        self.cache[free] = self.compute(rows)
        self.slots[rows], self.owners[free] = free, rows
        self.clock += 1
        self.stamps[free] = self.clock
        self.computed += rows.size

    def _complete(self, square: Callable[[Array], Array]) -> None:
        """Compute all rows that are not here."""
        rest, here = np.flatnonzero(self.slots < 0), np.flatnonzero(self.slots >= 0)
        free = np.flatnonzero(self.owners < 0)
        self.cache[np.ix_(free, rest)] = square(rest)
        self.cache[np.ix_(free, here)] = self.cache[np.ix_(self.slots[here], rest)].T
        self.slots[rest], self.owners[free] = free, rest
        self.computed += rest.size

    def scores(self, coef: Array) -> Array:
        """``K @ coef`` in float64, from rows that are here where they are."""
        return by_columns(coef, self._add)

    def _add(self, coef: Array, out: Array) -> None:
        here = np.flatnonzero((coef != 0) & (self.slots >= 0))
        by_slot = np.zeros(len(self.cache))
        by_slot[self.slots[here]] = coef[here]
        core.add_rows(self.cache, by_slot, out)
        missing = np.flatnonzero((coef != 0) & (self.slots < 0))
        for begin in range(0, missing.size, self.batch):
            rows = missing[begin : begin + self.batch]
            core.add_rows(np.ascontiguousarray(self.compute(rows)), coef[rows], out)

    def price(self, size: int) -> float:
        """No number: it is the computing of rows that takes time, and those here are whole."""
        return np.inf

    def restricted(self, which: Array) -> Self:
        """Not worth it, see :meth:`price`."""
        raise NotImplementedError


def _slopes(problem: Array, scores: Array) -> tuple[Array, Array]:
    """What every row of a coordinate descent gains by a change up, and by one down."""
    sign, dual = problem[:, SIGN], problem[:, DUAL]
    gradient = sign * scores - problem[:, LINEAR] + problem[:, DIAGONAL] * dual
    up = np.where(dual < problem[:, HIGH], -gradient, -np.inf)
    return up, np.where(dual > problem[:, LOW], gradient, -np.inf)
