"""Cross-validation: what the classifier says about images it has not seen.

Every image is held out once, with all distorted copies of it. A class of ``m`` images is spread
over ``min(m, folds)`` folds, so that no fold lacks a class for training; the only image of a class
is always trained on, never tested.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilbin.auto.choice import folds_of
from hilbin.cli._console import Advance
from hilbin.inspection import class_scores, suspicious_labels

FOLDS = 5

Array = NDArray[Any]


@dataclass(frozen=True)
class Examples:
    """What to learn from.

    Parameters
    ----------
    rows : array or CSR of shape (n_rows, n_features)
    labels : str array of shape (n_rows,)
    origin : int array of shape (n_rows,)
        Rows of the same origin are versions of one example.
    is_copy : bool array of shape (n_rows,)
        Rows to train on but not to test.
    """

    rows: Any
    labels: Array
    origin: Array
    is_copy: Array

    @classmethod
    def plain(cls, rows: Any, labels: Any) -> "Examples":
        """Every row an example of its own."""
        n = rows.shape[0]
        return cls(rows, np.asarray(labels), np.arange(n), np.zeros(n, bool))


@dataclass(frozen=True)
class HeldOut:
    """Scores of examples by classifiers that have not seen them.

    Parameters
    ----------
    tested : int array of shape (m,)
        Rows that were tested.
    scores : array of shape (m, n_classes)
    truth : int array of shape (m,)
        Indices of ``classes``.
    classes : str array
    """

    tested: Array
    scores: Array
    truth: Array
    classes: Array

    @property
    def correct(self) -> Array:
        """Which ones got the right label."""
        right: Array = self.scores.argmax(axis=1) == self.truth
        return right

    @property
    def accuracy(self) -> float:
        """Share of examples that got the right label."""
        return float(self.correct.mean())

    @property
    def class_accuracy(self) -> float:
        """The same per class, averaged."""
        shares = [self.correct[self.truth == k].mean() for k in np.unique(self.truth)]
        return float(np.mean(shares))

    @property
    def majority(self) -> float:
        """Accuracy of always answering the most frequent class."""
        return float(np.bincount(self.truth).max() / self.truth.size)

    def winning_quantiles(self) -> list[float] | None:
        """0th to 100th percentile of the highest score of examples that got the right label."""
        winning = self.scores.max(axis=1)[self.correct]
        return np.percentile(winning, np.arange(101)).tolist() if winning.size else None

    def suspicions(self) -> list[tuple[int, int, int, float]]:
        """Rows whose own class scores far below another: row, label, suggestion, margin."""
        places = {str(label): k for k, label in enumerate(self.classes)}
        labels = self.classes[self.truth]
        return [
            (int(self.tested[one.index]), places[one.given], places[one.suggested], one.margin)
            for one in suspicious_labels(self.scores, labels, self.classes)
            if one.index is not None
        ]


def cross_validate(
    make: Callable[[], Any], examples: Examples, seed: int, advance: Advance
) -> HeldOut | None:
    """Hold every example out once; None if every class has a single one.

    Parameters
    ----------
    make : callable
        Gives a classifier that is not fitted.
    examples : Examples
    seed : int
        Of the folds.
    advance : callable
        Called after every fold.
    """
    originals = np.flatnonzero(~examples.is_copy)
    folds = folds_of(examples.labels[originals], seed, FOLDS)
    fold_of = dict(zip(examples.origin[originals].tolist(), folds.tolist(), strict=True))
    fold = np.array([fold_of[o] for o in examples.origin.tolist()])
    classes = np.unique(examples.labels)
    tested, scores = [], []
    for f in range(folds.max() + 1):
        train, test = np.flatnonzero(fold != f), np.flatnonzero((fold == f) & ~examples.is_copy)
        model = make().fit(examples.rows[train], examples.labels[train])
        tested.append(test)
        scores.append(class_scores(model, examples.rows[test]))
        advance(1)
    if not tested:
        return None
    places = np.concatenate(tested)
    order = np.argsort(places)
    places = places[order]
    truth = np.searchsorted(classes, examples.labels[places])
    return HeldOut(places, np.concatenate(scores)[order], truth, classes)
