r"""Two labels on the pixels of a grid, with equal neighbors: segmentation by minimum cuts.

**Model.** An example has a feature vector at every pixel, its output is 1 (foreground) or 0 at
every pixel. :math:`\Phi(x, y)` has the sum of the features of the foreground and minus the number
of pairs of neighbors, above or beside each other, whose labels differ, all divided by the number
of pixels. The loss is the share of wrong pixels.

**Algorithm.** With a weight of pairs that is not negative the best output is a minimum cut: every
pixel is joined to the source or the sink by the size of its score, and to its neighbors by the
weight of pairs. Capacities are whole numbers, so scores are rounded to :math:`10^{-9}` of the
largest. The structured SVM keeps the weight of pairs from being negative.

**Reference.** D. Greig, B. Porteous and A. Seheult, *Exact Maximum A Posteriori Estimation for
Binary Images*, 1989.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from hilbin._arrays import Array
from hilbin._state import require

FINEST = 1e9  # the largest capacity; twice of it is below 2^31


@dataclass(frozen=True, eq=False)
class GridModel:
    """Foreground and background of images as the outputs of a structured SVM.

    An example is an array of shape (rows, columns, n_features); let one of the features be
    constant. Its output is an array of shape (rows, columns) of 0 and 1.

    Parameters
    ----------
    n_features : int, optional
        Number of features of a pixel; ``fit`` finds it in ``X``.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.estimators import GridModel
    >>> model = GridModel(n_features=1)
    >>> x = np.array([[2.0, -0.5, 2.0], [-2.0, -2.0, -2.0]])[:, :, None]
    >>> model.best(x, np.array([1.0, 0.0]))  # pixel by pixel
    array([[1, 0, 1],
           [0, 0, 0]])
    >>> model.best(x, np.array([1.0, 0.8]))  # with a weight of equal neighbors
    array([[1, 1, 1],
           [0, 0, 0]])
    """

    n_features: int | None = None

    @property
    def size(self) -> int:
        """Number of weights."""
        return (self.n_features or 0) + 1

    @property
    def nonnegative(self) -> tuple[int]:
        """The number of the weight of pairs, which must not be negative."""
        return (self.n_features or 0,)

    def for_data(self, X: Any, y: Any) -> Self:
        """Return the model of the features of these examples."""
        n_features = np.shape(X[0])[-1] if self.n_features is None else self.n_features
        model = replace(self, n_features=n_features)
        for i, (x, labels) in enumerate(zip(X, y, strict=True)):
            try:
                model._grid(x)
                _labels(labels, np.shape(x)[:2])
            except ValueError as error:
                raise ValueError(f"example {i}: {error}") from error
        return model

    def joint(self, x: Any, y: Any) -> Array:
        """Return the features of the foreground and minus the unequal neighbors, by the pixels."""
        x, y = self._grid(x), np.asarray(y)
        unequal = np.count_nonzero(y[1:] != y[:-1]) + np.count_nonzero(y[:, 1:] != y[:, :-1])
        return np.append(x[y == 1].sum(axis=0), -unequal) / y.size

    def loss(self, y: Any, z: Any) -> float:
        """Return the share of wrong pixels."""
        return float(np.mean(np.asarray(y) != np.asarray(z)))

    def best(self, x: Any, w: Array, y: Any = None) -> Array:
        """Return the pixels of the highest score, with their loss added if ``y`` is given."""
        scores = self._grid(x) @ w[:-1]
        if y is None:
            return foreground(scores, float(w[-1]))
        z = foreground(scores + 1 - 2 * np.asarray(y), float(w[-1]))
        # rounded capacities may miss the right output by a little
        gain = w @ (self.joint(x, z) - self.joint(x, y)) + self.loss(y, z)
        return z if gain >= 0 else np.asarray(y)

    def _grid(self, x: Any) -> Array:
        x = np.asarray(x, np.float64)
        if x.ndim != 3 or x.size == 0 or x.shape[2] != self.n_features:
            raise ValueError(
                f"a grid must have the shape (rows, columns, {self.n_features}), got {x.shape}"
            )
        return x

    def _check_state(self) -> None:
        require(self.n_features is None or self.n_features >= 1, "n_features is below 1")


def _labels(labels: Any, shape: tuple[int, ...]) -> None:
    labels = np.asarray(labels)
    if labels.shape != shape or not np.isin(labels, (0, 1)).all():
        raise ValueError(f"its labels must be 0 and 1, of shape {shape}, got {labels.shape}")


def foreground(scores: Array, pair: float) -> Array:
    """Return the ``m`` of 0 and 1 that maximizes ``sum(scores * m) - pair * unequal neighbors``."""
    if not pair >= 0:
        raise ValueError(f"the weight of pairs is {pair}, but a cut needs one >= 0")
    largest = max(float(np.abs(scores).max()), pair)
    if largest == 0 or pair == 0:
        return (scores > 0).astype(np.int64)
    graph = _graph(scores * (FINEST / largest), pair * (FINEST / largest))
    source = scores.size
    left = graph - maximum_flow(graph, source, source + 1).flow
    left.data = np.maximum(left.data, 0)
    left.eliminate_zeros()
    reached = breadth_first_order(left, source, return_predecessors=False)
    found = np.zeros(scores.size + 2, np.int64)
    found[reached] = 1
    return found[:source].reshape(scores.shape)


def _graph(scores: Array, pair: float) -> Any:
    """Return the capacities between pixels, the source and the sink, as whole numbers."""
    n = scores.size
    numbers = np.arange(n).reshape(scores.shape)
    first = np.concatenate([numbers[1:].ravel(), numbers[:, 1:].ravel()])
    second = np.concatenate([numbers[:-1].ravel(), numbers[:, :-1].ravel()])
    ends = np.rint(scores).ravel().astype(np.int32)
    good, bad = np.flatnonzero(ends > 0), np.flatnonzero(ends < 0)
    begin = np.concatenate([np.full(good.size, n), bad, first, second])
    end = np.concatenate([good, np.full(bad.size, n + 1), second, first])
    between = np.full(2 * first.size, round(pair), np.int32)
    capacity = np.concatenate([ends[good], -ends[bad], between])
    return sp.csr_array((capacity, (begin, end)), shape=(n + 2, n + 2))
