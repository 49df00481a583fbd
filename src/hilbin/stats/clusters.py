r"""One step of k-means as a sum: what falls to every center.

Given centers :math:`c_j`, every row goes to its nearest one; the step's sums are the weight, the
mean and the squared distances of each center's rows (Lloyd, *Least Squares Quantization in PCM*,
1982). The means are the next centers.
"""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from hilbin.stats._statistic import (
    Additive,
    Array,
    Matrix,
    State,
    checked_rows,
    checked_weights,
    require_same_width,
)

BLOCK_VALUES = 1 << 22  # distances at a time
ROUNDING = 1e-13  # of a distance, relative to the squares that are subtracted


class ClusterSums(Additive):
    """Weight, mean and inertia of the rows nearest to every center.

    Attributes
    ----------
    n : ndarray of shape (k,)
        Sum of the weights of the rows of every center.
    mean : ndarray of shape (k, D)
        Their means; for a center without rows the center.
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
        """The sums of some rows.

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
        height = max(1, BLOCK_VALUES // max(k, X.shape[1]))
        for begin in range(0, X.shape[0], height):
            part, weights = X[begin : begin + height], w[begin : begin + height]
            part = (part.toarray() if sp.issparse(part) else part).astype(np.float64, copy=False)
            nearest = _nearest(part, centers)
            step = part - centers[nearest]
            inertia += float(weights @ np.vecdot(step, step))
            member = sp.csr_array((weights, (nearest, np.arange(len(part)))), (k, len(part)))
            n += np.bincount(nearest, weights, k)
            shift += member @ step
        used = n > 0
        mean = centers.copy()
        mean[used] += shift[used] / n[used, None]
        return cls(n, mean, inertia)

    def copy(self) -> Self:
        """An independent copy."""
        return type(self)(self.n.copy(), self.mean.copy(), self.inertia)

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
        """Arrays that say all, for :meth:`from_state`."""
        return {"n": self.n, "mean": self.mean, "inertia": np.array(self.inertia)}

    @classmethod
    def from_state(cls, state: Mapping[str, Array]) -> Self:
        """The sums of a :meth:`state`."""
        return cls(np.array(state["n"]), np.array(state["mean"]), float(state["inertia"]))

    @property
    def nbytes(self) -> int:
        """Memory in use."""
        return self.n.nbytes + self.mean.nbytes


def _nearest(X: Array, centers: Array) -> Array:
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
