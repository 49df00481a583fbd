r"""A random sample of rows that does not depend on how they come.

Row :math:`i` has the number :math:`u_i`, a hash of the seed and of :math:`i`, and the key
:math:`-\ln(u_i) / w_i`; the :math:`k` rows of the smallest keys are the sample. Keys of weighted
rows are exponential clocks, so it is drawn without replacement with chances that go with the
weights (Efraimidis and Spirakis, *Weighted Random Sampling with a Reservoir*, 2006). As a key
depends on the row's number alone, chunks and their order change nothing.
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
        rows = [self.rows, other.rows]
        if any(sp.issparse(part) for part in rows):
            both: Matrix = sp.csr_array(sp.vstack([sp.csr_array(part) for part in rows]))
        else:
            both = np.concatenate(rows)
        joined = (
            np.concatenate([a, b])
            for a, b in [(self.numbers, other.numbers), (self.keys, other.keys)]
        )
        self.__init__(self.size, both, *joined)  # type: ignore[misc]
        return self

    def state(self) -> State:
        """Return arrays from which :meth:`from_state` restores the sums."""
        state = {"size": np.array(self.size), "numbers": self.numbers, "keys": self.keys}
        if not sp.issparse(self.rows):
            return {**state, "rows": self.rows}
        parts = {name: getattr(self.rows, name) for name in ("data", "indices", "indptr")}
        return {**state, **parts, "shape": np.array(self.rows.shape)}

    @classmethod
    def from_state(cls, state: Mapping[str, Array]) -> Self:
        """Restore the sample from its :meth:`state`."""
        if "rows" in state:
            rows: Matrix = np.array(state["rows"])
        else:
            parts = tuple(np.array(state[name]) for name in ("data", "indices", "indptr"))
            rows = sp.csr_array(parts, shape=tuple(int(side) for side in state["shape"]))
            check_sparse(rows, "the sample")
        return cls(int(state["size"]), rows, np.array(state["numbers"]), np.array(state["keys"]))


def uniform_of(numbers: Array, seed: int) -> Array:
    """Return a number in (0, 1) for every whole number, by Steele's SplitMix64."""
    with np.errstate(over="ignore"):
        start = np.uint64((seed * 0xD1342543DE82EF95 + 0x2545F4914F6CDD1D) % 2**64)
        x = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + start
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
    return ((x >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53
