r"""Numbers on the page: accuracy, per class and on the part that is kept.

The interval for an accuracy of ``r`` right among ``n`` is Wilson's, which stays between 0 and 1 and
is not empty when all are right:

.. math:: \frac{p + z^2/2n \pm z \sqrt{p(1-p)/n + z^2/4n^2}}{1 + z^2/n}, \quad p = r/n.

The margin of a decision is the highest score less the second.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sklearn.metrics import precision_recall_curve

from hilbin._arrays import Array
from hilbin.report.evidence import Evidence

Z = 1.959963984540054  # 95 % of a normal distribution lie within


def wilson(right: Array | float, n: Array | float) -> tuple[Array, Array]:
    """Ends of the 95 % interval for a probability, when ``right`` of ``n`` came out right."""
    right, n = np.asarray(right, np.float64), np.asarray(n, np.float64)
    p = right / n
    middle = p + Z**2 / (2 * n)
    half = Z * np.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))
    scale = 1 + Z**2 / n
    low = np.where(right == 0, 0.0, (middle - half) / scale)
    return low, np.where(right == n, 1.0, (middle + half) / scale)


@dataclass(frozen=True, eq=False)
class Measures:
    """What follows from the truth and the scores."""

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
        """Highest score less the second."""
        scores, rows = self.evidence.scores, np.arange(self.n)
        return scores[rows, self.predicted] - scores[rows, self.runner_up]

    @cached_property
    def right(self) -> Array:
        """Whether the prediction is true."""
        return self.predicted == self.evidence.truth

    @cached_property
    def lead_over_truth(self) -> Array:
        """Score of the predicted class less that of the true one: zero where it is right."""
        scores, rows = self.evidence.scores, np.arange(self.n)
        return scores[rows, self.predicted] - scores[rows, self.evidence.truth]

    @property
    def accuracy(self) -> float:
        """Share that is right."""
        return float(self.right.mean())

    @cached_property
    def confusion(self) -> Array:
        """Counts: a row per true class, a column per predicted one."""
        c = len(self.evidence.classes)
        cells = self.evidence.truth * c + self.predicted
        return np.bincount(cells, minlength=c * c).reshape(c, c)

    @cached_property
    def recall(self) -> Array:
        """Share of a class that is found; nan for a class without test examples."""
        return _ratio(self.confusion.diagonal(), self.confusion.sum(axis=1))

    @cached_property
    def precision(self) -> Array:
        """Share of what is taken for a class that is of it; nan if nothing is."""
        return _ratio(self.confusion.diagonal(), self.confusion.sum(axis=0))

    @cached_property
    def f1(self) -> Array:
        """Harmonic mean of precision and recall; nan for a class without test examples."""
        confusion = self.confusion
        found = 2 * confusion.diagonal()
        f1 = _ratio(found, confusion.sum(axis=0) + confusion.sum(axis=1))
        return np.where(confusion.sum(axis=1) > 0, f1, np.nan)

    @property
    def mean_recall(self) -> float:
        """Mean accuracy per class, over the classes with test examples."""
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
        """Recall and precision at every threshold on the score of a class, by rising recall."""
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
        """How many have at least a margin, and how many of these are right: all cuts, rising.

        Equal margins cannot be parted, so there is no cut between them.
        """
        order = np.argsort(-self.margin, kind="stable")
        margins = self.margin[order]
        last = np.flatnonzero(np.append(margins[1:] < margins[:-1], True))
        return last + 1, np.cumsum(self.right[order])[last]

    def accuracy_when_rejecting(self, share: float) -> tuple[float, float]:
        """Share rejected (at least ``share`` if ties allow) and accuracy on the rest."""
        count, right = self.kept
        allowed = np.flatnonzero(count <= (1 - share) * self.n + 1e-9)
        at = int(allowed[-1]) if allowed.size else 0
        return 1 - float(count[at]) / self.n, float(right[at] / count[at])


def turns(values: Array) -> Array:
    """For each value, how many equal ones stand before it."""
    order = np.argsort(values, kind="stable")
    first = np.searchsorted(values[order], values[order])
    turn = np.empty(values.size, np.int64)
    turn[order] = np.arange(values.size) - first
    return turn


def _ratio(part: Array, whole: Array) -> Array:
    return np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0)
