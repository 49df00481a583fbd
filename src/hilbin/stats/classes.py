r"""Sums by class: how much of each there is, where it lies, and how it spreads.

Labels need not be known beforehand: the sum of two statistics has the labels of both. Means and
scatters of a class add up as in :mod:`hilbin.stats.moments`.
"""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from hilbin.stats._statistic import (
    Additive,
    Array,
    State,
    checked_rows,
    checked_weights,
    require_same_width,
)
from hilbin.stats.moments import Moments


class ClassSums(Additive):
    """Weight, and optionally mean and scatter, of the rows of every class.

    Attributes
    ----------
    labels : ndarray of shape (c,)
        Sorted.
    n : ndarray of shape (c,)
        Sum of the weights of every class.
    mean : ndarray of shape (c, D)
        Of every class; ``D`` is 0 if rows were not given.
    scatter : ndarray of shape (c, D, D) or None
        Centered at the mean of the class, if asked for; their sum is the scatter within classes.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.stats import ClassSums
    >>> sums = ClassSums.of(["cat", "dog", "cat"], np.array([[1.0], [5.0], [3.0]]))
    >>> sums.labels, sums.n
    (array(['cat', 'dog'], dtype='<U3'), array([2., 1.]))
    >>> sums.mean
    array([[2.],
           [5.]])
    """

    def __init__(self, labels: Array, n: Array, mean: Array, scatter: Array | None = None) -> None:
        self.labels, self.n, self.mean, self.scatter = labels, n, mean, scatter

    @classmethod
    def of(cls, labels: Any, Z: Any = None, weight: Any = None, *, scatter: bool = False) -> Self:
        """The sums of some rows.

        Parameters
        ----------
        labels : array-like of shape (rows,)
            Numbers or strings.
        Z : array or CSR of shape (rows, D), optional
            The rows; without them classes are counted alone.
        weight : array of shape (rows,), optional
            Weights; a class whose weights are all 0 is left out.
        scatter : bool, default False
            Whether to keep the scatter of every class, ``D * D`` numbers each.

        Returns
        -------
        sums : ClassSums
        """
        labels = np.asarray(labels)
        if labels.ndim != 1:
            raise ValueError(f"labels must be one-dimensional, got shape {labels.shape}")
        Z = checked_rows(np.empty((labels.size, 0)) if Z is None else Z)
        if Z.shape[0] != labels.size:
            raise ValueError(f"there are {labels.size} labels for {Z.shape[0]} rows")
        w = checked_weights(weight, labels.size)
        if w is not None:
            Z, labels, w = Z[w > 0], labels[w > 0], w[w > 0]
        found, which = np.unique(labels, return_inverse=True)
        w = np.ones(labels.size) if w is None else w
        n = np.bincount(which, w, found.size)
        if scatter:
            each = [Moments.of(Z[which == k], weight=w[which == k]) for k in range(found.size)]
            width = Z.shape[1]
            means = np.array([m.mean for m in each]).reshape(found.size, width)
            return cls(
                found, n, means, np.array([m.scatter for m in each]).reshape(-1, width, width)
            )
        indicator = sp.csr_array((w, (which, np.arange(which.size))), (found.size, which.size))
        total = indicator @ Z
        return cls(found, n, (total.toarray() if sp.issparse(total) else total) / n[:, None])

    def copy(self) -> Self:
        """An independent copy."""
        scatter = None if self.scatter is None else self.scatter.copy()
        return type(self)(self.labels.copy(), self.n.copy(), self.mean.copy(), scatter)

    def __iadd__(self, other: Self) -> Self:
        if not isinstance(other, ClassSums):
            return NotImplemented
        require_same_width(self.mean.shape[1], other.mean.shape[1], "columns")
        kinds = ("without scatter", "with scatter")
        require_same_width(
            kinds[self.scatter is not None], kinds[other.scatter is not None], "together"
        )
        labels = np.union1d(self.labels, other.labels)
        a, b = self._spread(labels), other._spread(labels)
        n = a.n + b.n
        share = b.n / n
        step = b.mean - a.mean
        self.labels, self.n, self.mean = labels, n, a.mean + share[:, None] * step
        if a.scatter is not None and b.scatter is not None:
            between = (a.n * share)[:, None, None] * step[:, :, None] * step[:, None, :]
            self.scatter = a.scatter + b.scatter + between
        return self

    def _spread(self, labels: Array) -> "ClassSums":
        """The same sums among more labels."""
        at = np.searchsorted(labels, self.labels)

        def wide(values: Array) -> Array:
            out = np.zeros((labels.size, *values.shape[1:]))
            out[at] = values
            return out

        scatter = None if self.scatter is None else wide(self.scatter)
        return ClassSums(labels, wide(self.n), wide(self.mean), scatter)

    def state(self) -> State:
        """Arrays that say all, for :meth:`from_state`."""
        state = {"labels": self.labels, "n": self.n, "mean": self.mean}
        return state if self.scatter is None else {**state, "scatter": self.scatter}

    @classmethod
    def from_state(cls, state: Mapping[str, Array]) -> Self:
        """The sums of a :meth:`state`."""
        labels, n, mean = (np.array(state[name]) for name in ("labels", "n", "mean"))
        return cls(labels, n, mean, np.array(state["scatter"]) if "scatter" in state else None)

    @property
    def nbytes(self) -> int:
        """Memory in use."""
        scatter = 0 if self.scatter is None else self.scatter.nbytes
        return self.n.nbytes + self.mean.nbytes + scatter
