"""How good a classifier is on examples that it has not seen.

Examples of classes that the model does not know are left out and counted, and so are files that
cannot be read: neither is right or wrong.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hilbin._arrays import Array
from hilbin.report.measures import wilson

CROSS_VALIDATED = ("accuracy", "mean_class_accuracy", "linear_accuracy", "majority_accuracy")


@dataclass(frozen=True)
class Tested:
    """Labeled examples of classes that a model knows, and its scores.

    Parameters
    ----------
    examples : array, CSR, or list of images
        Rows as the classifier takes them, or the images.
    names, paths : list of str
        Names for a reader, and where the examples are: paths of images, or table and row.
    truth : int array of shape (n_samples,)
        Places of the labels in ``classes_``.
    scores : array of shape (n_samples, n_classes)
        Scores of all classes.
    source, sha256 : str
        Where the examples come from, and the digest of the data.
    unknown : dict from str to int
        Labels that the model does not know, and how many examples have them.
    hashes : list of str
        Difference hashes of images.
    unreadable : list of dict
        ``path`` and ``reason`` of files that cannot be read.
    ids : list of str, optional
        Names of rows, if a column of the table holds them.
    """

    examples: Any
    names: list[str]
    paths: list[str]
    truth: Array
    scores: Array
    source: str
    sha256: str
    unknown: dict[str, int]
    hashes: list[str] = field(default_factory=list)
    unreadable: list[dict[str, str]] = field(default_factory=list)
    ids: list[str] | None = None


@dataclass(frozen=True)
class Mistake:
    """An example that is misclassified.

    Parameters
    ----------
    path : str
        Path of the image, or table and number of the row: ``data.csv:1``.
    true, predicted : str
        Labels.
    margin : float
        By how much the score of the predicted class is higher.
    true_score, predicted_score : float
        Scores of both classes.
    id : str or None
        Name of the row, if a column of the table holds it.

    Examples
    --------
    >>> from hilbin.auto import Mistake
    >>> Mistake("new/1.jpg", "heron", "egret", 0.5, -0.25, 0.25).predicted
    'egret'
    """

    path: str
    true: str
    predicted: str
    margin: float
    true_score: float
    predicted_score: float
    id: str | None = None


@dataclass(frozen=True)
class Evaluation:
    """Accuracy of a classifier on test examples.

    Parameters
    ----------
    n, right : int
        Number of examples of classes that the model knows, and of right predictions.
    interval : (float, float)
        95 % confidence interval of the accuracy (Wilson).
    mean_class_accuracy : float
        Mean over the classes that have examples.
    majority_accuracy, majority_class : float, str
        Accuracy of always predicting the most frequent class, and this class.
    cv : dict or None
        Accuracies by cross-validation on the training data, of this model and of baselines.
    per_class : dict from str to dict
        ``n`` and ``right`` of every class of the model.
    mistakes : list of Mistake
        Misclassified examples, the largest margin first.
    unknown : dict from str to int
        Labels that the model does not know, and how many examples of them were left out.
    unreadable : list of dict
        ``path`` and ``reason`` of files that cannot be read.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from hilbin import TableClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> found = TableClassifier().fit(X[::2], y[::2]).evaluate(X[1::2], y[1::2])
    >>> found.n, found.n - found.right == len(found.mistakes), found.accuracy > 0.93
    (89, True, True)
    """

    n: int
    right: int
    interval: tuple[float, float]
    mean_class_accuracy: float
    majority_accuracy: float
    majority_class: str
    cv: dict[str, float] | None
    per_class: dict[str, dict[str, int]]
    mistakes: list[Mistake]
    unknown: dict[str, int] = field(default_factory=dict)
    unreadable: list[dict[str, str]] = field(default_factory=list)

    @property
    def accuracy(self) -> float:
        """Share of right predictions."""
        return self.right / self.n

    @property
    def absent(self) -> list[str]:
        """Classes of the model without an example."""
        return [name for name, counts in self.per_class.items() if counts["n"] == 0]

    def summary(self) -> str:
        """Return accuracy, interval and baselines, in words."""
        low, high = self.interval
        lines = [
            f"accuracy {self.accuracy:.1%} (95% interval {low:.1%} to {high:.1%}), "
            f"{self.right} of {self.n} right",
            f"mean per class {self.mean_class_accuracy:.1%}; always {self.majority_class} "
            f"{self.majority_accuracy:.1%}",
        ]
        if self.cv is not None:
            linear = self.cv["linear_accuracy"]
            lines.append(
                f"by cross-validation on the training data {self.cv['accuracy']:.1%}"
                + ("" if linear is None else f", linear {linear:.1%}")
            )
        return "\n".join(lines)


def evaluation(tested: Tested, classes: list[str], cv: dict[str, Any] | None) -> Evaluation:
    """Compare scores with labels.

    Parameters
    ----------
    tested : Tested
        The examples.
    classes : list of str
        Names of the classes, in the order of the scores.
    cv : dict or None
        What cross-validation said when the model was trained.
    """
    predicted = tested.scores.argmax(axis=1)
    is_right = predicted == tested.truth
    n, right = int(is_right.size), int(is_right.sum())
    counts = np.bincount(tested.truth, minlength=len(classes))
    hits = np.bincount(tested.truth[is_right], minlength=len(classes))
    low, high = wilson(right, n)
    return Evaluation(
        n,
        right,
        (float(low), float(high)),
        float(np.mean(hits[counts > 0] / counts[counts > 0])),
        float(counts.max() / n),
        classes[int(counts.argmax())],
        None if cv is None else {key: cv[key] for key in CROSS_VALIDATED},
        {
            name: {"n": int(c), "right": int(h)}
            for name, c, h in zip(classes, counts, hits, strict=True)
        },
        _mistakes(tested, classes, predicted),
        tested.unknown,
        tested.unreadable,
    )


def _mistakes(tested: Tested, classes: list[str], predicted: Array) -> list[Mistake]:
    found = []
    for i in np.flatnonzero(predicted != tested.truth):
        true, best = int(tested.truth[i]), int(predicted[i])
        own, other = float(tested.scores[i, true]), float(tested.scores[i, best])
        name = None if tested.ids is None else tested.ids[i]
        found.append(
            Mistake(tested.paths[i], classes[true], classes[best], other - own, own, other, name)
        )
    return sorted(found, key=lambda one: -one.margin)


def known_labels(labels: Any, classes: Array, source: str) -> tuple[Array, Array, dict[str, int]]:
    """Return which examples have a known class, its place in ``classes``, and the other labels.

    Parameters
    ----------
    labels : sequence
        Labels.
    classes : array of shape (n_classes,)
        Classes of the model.
    source : str
        Where the examples come from, for the error if no label is known.
    """
    places = {label: k for k, label in enumerate(classes.tolist())}
    texts = {str(label): k for label, k in places.items()}
    listed = np.asarray(labels).tolist()
    found = [places.get(label, texts.get(str(label))) for label in listed]
    kept = np.array([i for i, k in enumerate(found) if k is not None], int)
    unknown = Counter(str(label) for label, k in zip(listed, found, strict=True) if k is None)
    if not kept.size:
        raise ValueError(
            f"{source}: no example of a class that the model knows; it knows "
            f"{', '.join(map(str, classes))}, found were {', '.join(sorted(unknown))}"
        )
    return kept, np.array([found[i] for i in kept], int), dict(sorted(unknown.items()))
