r"""A random sample of rows that does not depend on how they come.

Row :math:`i` has the number :math:`u_i`, a hash of the seed and of :math:`i`, and the key
:math:`-\ln(u_i) / w_i`; the :math:`k` rows of the smallest keys are the sample. Keys of weighted
rows are exponential clocks, so it is drawn without replacement with chances that go with the
weights (Efraimidis and Spirakis, *Weighted Random Sampling with a Reservoir*, 2006). As a key
depends on the row's number alone, chunks and their order change nothing.

:class:`DistinctSample` gives equal rows the same number, which depends on what they hold: every
different row is drawn once, with the total weight of its copies. So a weight of 2 is the row twice
for all that is learned from the sample, and the order of the rows changes nothing.
"""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from hilbin._arrays import Array, Matrix, check_sparse
from hilbin.stats._statistic import (
    Additive,
    State,
    checked_rows,
    checked_weights,
    require_same_width,
)


class RowSample(Additive):
    """At most ``size`` rows drawn at random, in the order in which they are in the data.

    Attributes
    ----------
    size : int
        Maximum number of rows.
    rows : ndarray or CSR of shape (at most size, D)
        The rows drawn.
    numbers : ndarray
        Places of these rows in the data.
    keys : ndarray
        Keys they were drawn by.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.stats import RowSample
    >>> X = np.arange(10.0)[:, None]
    >>> whole = RowSample.of(X, 3, seed=1)
    >>> parts = RowSample.of(X[6:], 3, seed=1, begin=6) + RowSample.of(X[:6], 3, seed=1)
    >>> np.array_equal(whole.rows, parts.rows)
    True
    """

    def __init__(self, size: int, rows: Matrix, numbers: Array, keys: Array) -> None:
        self.size = size
        kept = np.flatnonzero(np.isfinite(keys))
        if kept.size > size:
            order = np.lexsort((numbers[kept], keys[kept]))  # by key, then by number
            kept = kept[order[:size]]
        kept = kept[np.argsort(numbers[kept], kind="stable")]
        self.rows, self.numbers, self.keys = rows[kept], numbers[kept], keys[kept]

    @classmethod
    def of(cls, X: Matrix, size: int, *, seed: int = 0, begin: int = 0, weight: Any = None) -> Self:
        """Return the sample of some rows.

        Parameters
        ----------
        X : array or CSR of shape (rows, D)
        size : int
            Maximum number of rows to draw.
        seed : int
            Random seed.
        begin : int
            Number of the first row in the whole data.
        weight : array of shape (rows,), optional
            Rows of weight 0 are never drawn.

        Returns
        -------
        sample : RowSample
        """
        X = checked_rows(X, "X")
        w = checked_weights(weight, X.shape[0])
        numbers = np.arange(begin, begin + X.shape[0], dtype=np.int64)
        keys = -np.log(uniform_of(numbers, seed))
        if w is not None:
            keys = np.divide(keys, w, out=np.full(keys.shape, np.inf), where=w > 0)
        return cls(size, X, numbers, keys)

    def __iadd__(self, other: Self) -> Self:
        if not isinstance(other, RowSample):
            return NotImplemented
        require_same_width(self.size, other.size, "rows")
        require_same_width(self.rows.shape[1], other.rows.shape[1], "columns")
        both = _stacked(self.rows, other.rows)
        joined = (
            np.concatenate([a, b])
            for a, b in [(self.numbers, other.numbers), (self.keys, other.keys)]
        )
        self.__init__(self.size, both, *joined)  # type: ignore[misc]
        return self

    def state(self) -> State:
        """Return arrays from which :meth:`from_state` restores the sums."""
        state = {"size": np.array(self.size), "numbers": self.numbers, "keys": self.keys}
        return {**state, **_state_of(self.rows)}

    @classmethod
    def from_state(cls, state: Mapping[str, Array]) -> Self:
        """Restore the sample from its :meth:`state`."""
        numbers, keys = np.array(state["numbers"]), np.array(state["keys"])
        return cls(int(state["size"]), _rows_from(state), numbers, keys)


class DistinctSample(Additive):
    """At most ``size`` different rows drawn at random, each with the total weight of its copies.

    Their order is random as well, and depends on the seed and on the rows alone.

    Attributes
    ----------
    size : int
        Maximum number of rows.
    rows : ndarray or CSR of shape (at most size, D)
        The rows drawn.
    weight : ndarray
        Sum of the weights of all rows that are equal to each of them.
    numbers : ndarray
        Numbers they were told apart by.
    keys : ndarray
        Keys they were drawn by, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.stats import DistinctSample
    >>> X = np.array([[1.0], [2.0], [1.0]])
    >>> sample = DistinctSample.of(X, 5, numbers=np.array([7, 8, 7]))
    >>> order = np.argsort(sample.rows[:, 0])
    >>> sample.rows[order].ravel(), sample.weight[order]
    (array([1., 2.]), array([2., 1.]))
    """

    def __init__(self, size: int, rows: Matrix, numbers: Array, keys: Array, weight: Array) -> None:
        _, first, place = np.unique(numbers, return_index=True, return_inverse=True)
        total = np.bincount(place, weight, minlength=first.size)
        order = np.lexsort((numbers[first], keys[first]))[:size]
        kept = first[order]
        self.size, self.rows, self.weight = size, rows[kept], total[order]
        self.numbers, self.keys = numbers[kept], keys[kept]

    @classmethod
    def of(cls, X: Matrix, size: int, *, numbers: Array, seed: int = 0, weight: Any = None) -> Self:
        """Return the sample of some rows.

        Parameters
        ----------
        X : array or CSR of shape (rows, D)
        size : int
            Maximum number of rows to draw.
        numbers : array of int of shape (rows,)
            Numbers that are the same for equal rows, and only for these.
        seed : int
            Random seed.
        weight : array of shape (rows,), optional
            Rows of weight 0 are never drawn.

        Returns
        -------
        sample : DistinctSample
        """
        X = checked_rows(X, "X")
        w = checked_weights(weight, X.shape[0])
        w = np.ones(X.shape[0]) if w is None else w
        if not w.all():
            X, numbers, w = X[w > 0], numbers[w > 0], w[w > 0]
        return cls(size, X, numbers, uniform_of(numbers, seed), w)

    def __iadd__(self, other: Self) -> Self:
        if not isinstance(other, DistinctSample):
            return NotImplemented
        require_same_width(self.size, other.size, "rows")
        require_same_width(self.rows.shape[1], other.rows.shape[1], "columns")
        names = ("numbers", "keys", "weight")
        joined = (np.concatenate([getattr(self, n), getattr(other, n)]) for n in names)
        self.__init__(self.size, _stacked(self.rows, other.rows), *joined)  # type: ignore[misc]
        return self

    def state(self) -> State:
        """Return arrays from which :meth:`from_state` restores the sample."""
        own = {name: getattr(self, name) for name in ("numbers", "keys", "weight")}
        return {"size": np.array(self.size), **own, **_state_of(self.rows)}

    @classmethod
    def from_state(cls, state: Mapping[str, Array]) -> Self:
        """Restore the sample from its :meth:`state`."""
        own = (np.array(state[name]) for name in ("numbers", "keys", "weight"))
        return cls(int(state["size"]), _rows_from(state), *own)


def _stacked(ours: Matrix, theirs: Matrix) -> Matrix:
    if sp.issparse(ours) or sp.issparse(theirs):
        return sp.csr_array(sp.vstack([sp.csr_array(ours), sp.csr_array(theirs)]))
    return np.concatenate([ours, theirs])


def _state_of(rows: Matrix) -> State:
    if not sp.issparse(rows):
        return {"rows": rows}
    parts = {name: getattr(rows, name) for name in ("data", "indices", "indptr")}
    return {**parts, "shape": np.array(rows.shape)}


def _rows_from(state: Mapping[str, Array]) -> Matrix:
    if "rows" in state:
        return np.array(state["rows"])
    parts = tuple(np.array(state[name]) for name in ("data", "indices", "indptr"))
    rows = sp.csr_array(parts, shape=tuple(int(side) for side in state["shape"]))
    check_sparse(rows, "the sample")
    return rows


def uniform_of(numbers: Array, seed: int) -> Array:
    """Return a number in (0, 1) for every whole number, by Steele's SplitMix64."""
    with np.errstate(over="ignore"):
        start = np.uint64((seed * 0xD1342543DE82EF95 + 0x2545F4914F6CDD1D) % 2**64)
        x = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + start
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
    return ((x >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53
