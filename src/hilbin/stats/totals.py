"""Plain sums, the highest scores, and several statistics in one pass."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from hilbin._arrays import Array
from hilbin.stats._statistic import (
    Additive,
    State,
    Statistic,
    checked_weights,
    require_same_width,
)
from hilbin.stats.groups import ClassSums, ClusterSums
from hilbin.stats.moments import Moments
from hilbin.stats.sample import DistinctSample, RowSample


class Totals(Additive):
    """Named arrays that add up entry by entry.

    Parameters
    ----------
    **arrays : array-like
        They are copied as float64.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.stats import Totals
    >>> (Totals(rows=3.0) + Totals(rows=4.0))["rows"]
    array(7.)
    """

    def __init__(self, **arrays: Any) -> None:
        self.arrays = {name: np.array(value, np.float64) for name, value in arrays.items()}

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    def __iadd__(self, other: Self) -> Self:
        if not isinstance(other, Totals):
            return NotImplemented
        ours, theirs = ({n: a.shape for n, a in t.arrays.items()} for t in (self, other))
        require_same_width(ours, theirs, "arrays")
        for name, array in other.arrays.items():
            self.arrays[name] += array
        return self

    def state(self) -> State:
        """Return arrays from which :meth:`from_state` restores the sums."""
        return dict(self.arrays)

    @classmethod
    def from_state(cls, state: Mapping[str, Array]) -> Self:
        """Restore the sums from their :meth:`state`."""
        return cls(**state)


class TopScores(Additive):
    """The highest scores of every class, as many as a rank needs.

    Attributes
    ----------
    rank : float
        The weight of rows to keep.
    scores, weights : list of ndarray
        Scores and weights of every class, falling; as many as weigh ``rank``.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.stats import TopScores
    >>> scores = np.array([[1.0, 9.0], [3.0, 8.0], [2.0, 7.0]])
    >>> (TopScores.of(scores[:2], 2) + TopScores.of(scores[2:], 2)).at_rank()
    array([2., 8.])
    """

    def __init__(self, rank: float, scores: list[Array], weights: list[Array]) -> None:
        self.rank, self.scores, self.weights = rank, [], []
        for values, w in zip(scores, weights, strict=True):
            order = np.argsort(-values, kind="stable")
            values, w = values[order], w[order]
            enough = int(np.searchsorted(np.cumsum(w), rank)) + 1
            self.scores.append(values[:enough])
            self.weights.append(w[:enough])

    @classmethod
    def of(cls, scores: Array, rank: float, weight: Any = None) -> Self:
        """Return the highest of some scores.

        Parameters
        ----------
        scores : array of shape (rows, c)
        rank : float
            How many rows to keep, or what they weigh.
        weight : array of shape (rows,), optional
            Weights of the rows; those of weight 0 do not count.
        """
        w = checked_weights(weight, len(scores))
        w = np.ones(len(scores)) if w is None else w
        return cls(rank, [column[w > 0] for column in scores.T], [w[w > 0]] * scores.shape[1])

    def at_rank(self) -> Array:
        """Return the score of every class at the rank: the lowest of those kept.

        Returns
        -------
        scores : ndarray of shape (c,)
        """
        if any(w.sum() < self.rank for w in self.weights):
            raise ValueError(f"there are fewer rows than the rank, {self.rank:g}")
        return np.array([values[-1] for values in self.scores])

    def __iadd__(self, other: Self) -> Self:
        if not isinstance(other, TopScores):
            return NotImplemented
        require_same_width((self.rank, len(self.scores)), (other.rank, len(other.scores)), "scores")
        pairs = [
            zip(self.scores, other.scores, strict=True),
            zip(self.weights, other.weights, strict=True),
        ]
        joined = [[np.concatenate(pair) for pair in each] for each in pairs]
        self.__init__(self.rank, *joined)  # type: ignore[misc]
        return self

    def state(self) -> State:
        """Return arrays from which :meth:`from_state` restores the sums."""
        counts = np.array([values.size for values in self.scores])
        joined = (np.concatenate([np.empty(0), *each]) for each in (self.scores, self.weights))
        return dict(
            zip(
                ("rank", "counts", "scores", "weights"),
                (np.array(self.rank), counts, *joined),
                strict=True,
            )
        )

    @classmethod
    def from_state(cls, state: Mapping[str, Array]) -> Self:
        """Restore the scores from their :meth:`state`."""
        ends = np.cumsum(state["counts"])[:-1].astype(np.intp)
        parts = (np.split(np.array(state[name]), ends) for name in ("scores", "weights"))
        return cls(float(state["rank"]), *parts)


class StatisticTuple(Additive):
    """Several statistics of the same rows, in one pass.

    Parameters
    ----------
    *parts : statistics
        They become part of the sum: ``+=`` adds to them in place.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.stats import Moments, StatisticTuple, Totals
    >>> both = StatisticTuple(Moments.of(np.eye(2)), Totals(chunks=1))
    >>> (both + both)[1]["chunks"]
    array(2.)
    """

    def __init__(self, *parts: Any) -> None:
        self.parts: tuple[Statistic, ...] = parts

    def __getitem__(self, place: int) -> Any:
        return self.parts[place]

    def copy(self) -> Self:
        """Return an independent copy."""
        return type(self)(*(0 + part for part in self.parts))  # type: ignore[operator]

    def __iadd__(self, other: Self) -> Self:
        if not isinstance(other, StatisticTuple):
            return NotImplemented
        require_same_width(len(self.parts), len(other.parts), "statistics")
        for mine, theirs in zip(self.parts, other.parts, strict=True):
            mine += theirs
        return self

    def state(self) -> State:
        """Return arrays from which :meth:`from_state` restores the sums."""
        state = {"kinds": np.array([type(part).__name__ for part in self.parts])}
        for place, part in enumerate(self.parts):
            state |= {f"{place}.{name}": array for name, array in part.state().items()}
        return state

    @classmethod
    def from_state(cls, state: Mapping[str, Array]) -> Self:
        """Restore the statistics from their :meth:`state`."""
        parts = []
        for place, kind in enumerate(state["kinds"]):
            begin = f"{place}."
            mine = {n.removeprefix(begin): a for n, a in state.items() if n.startswith(begin)}
            parts.append(KINDS[str(kind)].from_state(mine))
        return cls(*parts)

    @property
    def nbytes(self) -> int:
        """Memory in use, in bytes."""
        return sum(part.nbytes for part in self.parts)


KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        ClassSums,
        ClusterSums,
        DistinctSample,
        Moments,
        RowSample,
        StatisticTuple,
        TopScores,
        Totals,
    )
}
