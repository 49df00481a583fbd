r"""Sums by group: how much of each there is, where it lies, and how it spreads.

The groups of :class:`ClassSums` are labels. They need not be known beforehand: the sum of two
statistics has the labels of both. Means and scatters of a class add up as in
:mod:`hilbin.stats.moments`.

The groups of :class:`ClusterSums` are the rows nearest to each of some centers :math:`c_j`: one
step of k-means as a sum, with the weight, the mean and the squared distances of each center's rows
(Lloyd, *Least Squares Quantization in PCM*, 1982). The means are the next centers.
"""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from hilbin._arrays import Array, Matrix
from hilbin.stats._statistic import (
    Additive,
    State,
    checked_rows,
    checked_weights,
    require_same_width,
)
from hilbin.stats.moments import Moments

VALUES_AT_A_TIME = 1 << 22  # of the distances between rows and centers
ROUNDING = 1e-13  # of a distance, relative to the squares that are subtracted


class ClassSums(Additive):
    """Weight, and optionally mean and scatter, of the rows of every class.

    Attributes
    ----------
    labels : ndarray of shape (c,)
        The labels, sorted.
    n : ndarray of shape (c,)
        Sum of the weights of every class.
    mean : ndarray of shape (c, D)
        Mean of every class; ``D`` is 0 if rows were not given.
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
        """Return the sums of some rows.

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
        if Z is None and weight is None:
            found, counts = np.unique(labels, return_counts=True)
            return cls(found, counts.astype(np.float64), np.empty((found.size, 0)), None)
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
        """Return the same sums among more labels."""
        at = np.searchsorted(labels, self.labels)

        def wide(values: Array) -> Array:
            out = np.zeros((labels.size, *values.shape[1:]))
            out[at] = values
            return out

        scatter = None if self.scatter is None else wide(self.scatter)
        return ClassSums(labels, wide(self.n), wide(self.mean), scatter)

    def state(self) -> State:
        """Return arrays from which :meth:`from_state` restores the sums."""
        state = {"labels": self.labels, "n": self.n, "mean": self.mean}
        return state if self.scatter is None else {**state, "scatter": self.scatter}

    @classmethod
    def from_state(cls, state: Mapping[str, Array]) -> Self:
        """Restore the sums from their :meth:`state`."""
        labels, n, mean = (np.array(state[name]) for name in ("labels", "n", "mean"))
        return cls(labels, n, mean, np.array(state["scatter"]) if "scatter" in state else None)


class ClusterSums(Additive):
    """Weight, mean and inertia of the rows nearest to every center.

    Attributes
    ----------
    n : ndarray of shape (k,)
        Sum of the weights of the rows of every center.
    mean : ndarray of shape (k, D)
        Means of these rows; for a center without rows the center.
    inertia : float
        Sum of the squared distances of rows to their centers.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.stats import ClusterSums
    >>> step = ClusterSums.of(np.array([[0.0], [1.0], [9.0]]), np.array([[0.0], [8.0]]))
    >>> step.n, step.mean.ravel(), step.inertia
    (array([2., 1.]), array([0.5, 9. ]), 2.0)
    """

    def __init__(self, n: Array, mean: Array, inertia: float) -> None:
        self.n, self.mean, self.inertia = n, mean, inertia

    @classmethod
    def of(cls, X: Matrix, centers: Array, weight: Any = None) -> Self:
        """Return the sums of some rows.

        Parameters
        ----------
        X : array or CSR of shape (rows, D)
        centers : array of shape (k, D)
        weight : array of shape (rows,), optional

        Returns
        -------
        sums : ClusterSums
        """
        X, centers = checked_rows(X, "X"), np.asarray(centers, np.float64)
        if centers.ndim != 2 or centers.shape[1] != X.shape[1]:
            raise ValueError(f"centers have shape {centers.shape}, rows {X.shape[1]} columns")
        w = checked_weights(weight, X.shape[0])
        w = np.ones(X.shape[0]) if w is None else w
        k = len(centers)
        n, shift, inertia = np.zeros(k), np.zeros(centers.shape), 0.0
        height = max(1, VALUES_AT_A_TIME // max(k, X.shape[1]))
        for begin in range(0, X.shape[0], height):
            part, weights = X[begin : begin + height], w[begin : begin + height]
            part = (part.toarray() if sp.issparse(part) else part).astype(np.float64, copy=False)
            nearest = nearest_centers(part, centers)
            step = part - centers[nearest]
            inertia += float(weights @ np.vecdot(step, step))
            member = sp.csr_array((weights, (nearest, np.arange(len(part)))), (k, len(part)))
            n += np.bincount(nearest, weights, k)
            shift += member @ step
        used = n > 0
        mean = centers.copy()
        mean[used] += shift[used] / n[used, None]
        return cls(n, mean, inertia)

    def __iadd__(self, other: Self) -> Self:
        if not isinstance(other, ClusterSums):
            return NotImplemented
        require_same_width(self.mean.shape, other.mean.shape, "centers and columns")
        n = self.n + other.n
        share = np.divide(other.n, n, out=np.zeros_like(n), where=n > 0)
        self.mean = self.mean + share[:, None] * (other.mean - self.mean)
        self.n, self.inertia = n, self.inertia + other.inertia
        return self

    def state(self) -> State:
        """Return arrays from which :meth:`from_state` restores the sums."""
        return {"n": self.n, "mean": self.mean, "inertia": np.array(self.inertia)}

    @classmethod
    def from_state(cls, state: Mapping[str, Array]) -> Self:
        """Restore the sums from their :meth:`state`."""
        return cls(np.array(state["n"]), np.array(state["mean"]), float(state["inertia"]))


def nearest_centers(X: Array, centers: Array) -> Array:
    """Return the nearest center of every row, the first of several that are equally near.

    Centers are measured from their middle, so that far from zero nothing cancels. A product of
    matrices rounds otherwise for other numbers of rows: where rounding could decide, the distances
    are computed from the differences.
    """
    middle = centers.mean(axis=0)
    rows, moved = X - middle, centers - middle
    squares = np.vecdot(moved, moved)
    distances = squares - 2 * (rows @ moved.T)
    nearest = np.argmin(distances, axis=1)
    doubt = ROUNDING * (np.vecdot(rows, rows) + squares.max())
    near = distances <= (distances[np.arange(len(X)), nearest] + doubt)[:, None]
    tied = np.flatnonzero(np.count_nonzero(near, axis=1) > 1)
    if tied.size:
        exact = [np.square(X[tied] - center).sum(axis=1) for center in centers]
        nearest[tied] = np.argmin(exact, axis=0)
    return nearest
