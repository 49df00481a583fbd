r"""Measures of a classifier: accuracy, precision and recall, and accuracy with a reject option.

The 95 % interval of an accuracy, ``r`` of ``n`` being correct, is Wilson's: it stays between 0 and
1 and is not empty when all are correct:

.. math:: \frac{p + z^2/2n \pm z \sqrt{p(1-p)/n + z^2/4n^2}}{1 + z^2/n}, \quad p = r/n.

The margin of a prediction is the highest score minus the second highest.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sklearn.metrics import precision_recall_curve

from hilbin._arrays import Array
from hilbin.inspection import Evidence, Reliability, reliability

Z = 1.959963984540054  # 95 % of a normal distribution lie within so many standard deviations


def wilson(right: Array | float, n: Array | float) -> tuple[Array, Array]:
    """Return the ends of the 95 % interval of a probability, ``right`` of ``n`` being correct."""
    right, n = np.asarray(right, np.float64), np.asarray(n, np.float64)
    p = right / n
    middle = p + Z**2 / (2 * n)
    half = Z * np.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))
    scale = 1 + Z**2 / n
    low = np.where(right == 0, 0.0, (middle - half) / scale)
    return low, np.where(right == n, 1.0, (middle + half) / scale)


@dataclass(frozen=True, eq=False)
class Measures:
    """What follows from the true classes and the scores."""

    evidence: Evidence

    @property
    def n(self) -> int:
        """Number of test examples."""
        return int(self.evidence.truth.size)

    @cached_property
    def predicted(self) -> Array:
        """Class with the highest score."""
        return self.evidence.scores.argmax(axis=1)

    @cached_property
    def runner_up(self) -> Array:
        """Class with the second highest score."""
        rest = self.evidence.scores.copy()
        rest[np.arange(self.n), self.predicted] = -np.inf
        return rest.argmax(axis=1)

    @cached_property
    def margin(self) -> Array:
        """Highest score minus the second highest."""
        scores, rows = self.evidence.scores, np.arange(self.n)
        return scores[rows, self.predicted] - scores[rows, self.runner_up]

    @cached_property
    def right(self) -> Array:
        """Whether the prediction is correct."""
        return self.predicted == self.evidence.truth

    @cached_property
    def lead_over_truth(self) -> Array:
        """Score of the predicted class minus that of the true one: zero where it is correct."""
        scores, rows = self.evidence.scores, np.arange(self.n)
        return scores[rows, self.predicted] - scores[rows, self.evidence.truth]

    @property
    def accuracy(self) -> float:
        """Share of the predictions that is correct."""
        return float(self.right.mean())

    @cached_property
    def reliability(self) -> Reliability | None:
        """How far the probabilities can be trusted; None if there are none."""
        probabilities = self.evidence.probabilities
        if probabilities is None:
            return None
        return reliability(probabilities, self.evidence.truth, np.arange(probabilities.shape[1]))

    def accuracy_without(self, names: set[str]) -> tuple[int, float]:
        """Return how many test examples are left without these, and the accuracy on them."""
        kept = np.array([name not in names for name in self.evidence.names])
        count = int(kept.sum())
        return count, float(self.right[kept].mean()) if count else float("nan")

    @cached_property
    def confusion(self) -> Array:
        """Counts with a row for each true class and a column for each predicted one."""
        c = len(self.evidence.classes)
        cells = self.evidence.truth * c + self.predicted
        return np.bincount(cells, minlength=c * c).reshape(c, c)

    @cached_property
    def recall(self) -> Array:
        """Share of a class that is predicted as such; nan for a class without test examples."""
        return _ratio(self.confusion.diagonal(), self.confusion.sum(axis=1))

    @cached_property
    def precision(self) -> Array:
        """Share of the predictions of a class that is correct; nan if it is never predicted."""
        return _ratio(self.confusion.diagonal(), self.confusion.sum(axis=0))

    @cached_property
    def f1(self) -> Array:
        """Harmonic mean of precision and recall; nan for a class without test examples."""
        confusion = self.confusion
        found = 2 * confusion.diagonal()
        f1 = _ratio(found, confusion.sum(axis=0) + confusion.sum(axis=1))
        return np.where(confusion.sum(axis=1) > 0, f1, np.nan)

    @property
    def balanced_accuracy(self) -> float:
        """Mean recall of the classes with test examples."""
        return float(np.nanmean(self.recall))

    @cached_property
    def average_precision(self) -> Array:
        """Area under the precision-recall curve; nan for a class without test examples."""
        areas = [
            np.nan if curve is None else float(np.diff(curve[0]) @ curve[1][1:])
            for curve in self.curves
        ]
        return np.array(areas)

    @cached_property
    def curves(self) -> list[tuple[Array, Array] | None]:
        """Recall and precision at every threshold on the score of a class, sorted by recall."""
        return [self._curve(k) for k in range(len(self.evidence.classes))]

    def _curve(self, label: int) -> tuple[Array, Array] | None:
        positive = self.evidence.truth == label
        if not positive.any():
            return None
        precision, recall, _ = precision_recall_curve(
            positive, self.evidence.scores[:, label], drop_intermediate=True
        )
        return recall[::-1], precision[::-1]

    @cached_property
    def kept(self) -> tuple[Array, Array]:
        """Number of predictions kept at every threshold on the margin, and how many are correct.

        No threshold parts equal margins.
        """
        order = np.argsort(-self.margin, kind="stable")
        margins = self.margin[order]
        last = np.flatnonzero(np.append(margins[1:] < margins[:-1], True))
        return last + 1, np.cumsum(self.right[order])[last]

    def accuracy_when_rejecting(self, share: float) -> tuple[float, float]:
        """Return the share rejected (at least ``share`` if ties allow) and accuracy on the rest."""
        count, right = self.kept
        allowed = np.flatnonzero(count <= (1 - share) * self.n + 1e-9)
        at = int(allowed[-1]) if allowed.size else 0
        return 1 - float(count[at]) / self.n, float(right[at] / count[at])


def turns(values: Array) -> Array:
    """Return for each value how many equal ones come before it."""
    order = np.argsort(values, kind="stable")
    first = np.searchsorted(values[order], values[order])
    turn = np.empty(values.size, np.int64)
    turn[order] = np.arange(values.size) - first
    return turn


def _ratio(part: Array, whole: Array) -> Array:
    return np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0)
