r"""Models of structured outputs whose best output is found exactly: classes and chains.

**Classes.** :math:`\Phi(x, y) = e_y \otimes x`, the features of the example in the block of its
class; the loss is 0 or 1, or a matrix of costs. This is Crammer and Singer's machine.

**Chains.** An example is a sequence of :math:`L` feature vectors, its output a label for each.
:math:`\Phi(x, y)` has the sums of the vectors of every label and the number of times each label
follows each other, all divided by :math:`L`; the loss is the share of wrong labels. The best output
is found by Viterbi's recursion in :math:`O(L K^2)` for :math:`K` labels: the best score of a
beginning that ends in label :math:`c` needs only those that end one place earlier. The loss is
added to the scores of places. With slack rescaling the recursion also keeps the number of errors,
which takes :math:`O(L^2 K^2)`.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from hilbin._arrays import Array
from hilbin._state import require, require_attributes


@dataclass(frozen=True, eq=False)
class MulticlassModel:
    r"""Classes as the outputs of a structured SVM, as in Crammer and Singer's SVM.

    The scores of an example are linear in its features, without an intercept; add a constant
    column to have one.

    Parameters
    ----------
    cost : array-like of shape (n_classes, n_classes), optional
        ``cost[i, j]`` is the loss of the class ``classes[j]`` if ``classes[i]`` is right, >= 0, and
        0 for ``i = j``. By default every error costs 1.
    classes : array-like of shape (n_classes,), optional
        Labels, ascending; ``fit`` finds them in ``y``.
    n_features : int, optional
        Number of features; ``fit`` finds it in ``X``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hilbin.estimators import MulticlassModel, StructuredSVM
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = StructuredSVM(MulticlassModel()).fit(X, y)
    >>> machine.score(X, y) > -0.05
    True
    """

    cost: Any = None
    classes: Any = None
    n_features: int | None = None

    rows: ClassVar[bool] = True

    @property
    def size(self) -> int:
        """Number of weights."""
        return np.size(self.classes) * (self.n_features or 0)

    def for_data(self, X: Any, y: Any) -> Self:
        """Return the model of the classes and the features of these examples."""
        classes = np.unique(np.asarray(y) if self.classes is None else np.asarray(self.classes))
        cost = 1.0 - np.eye(classes.size) if self.cost is None else np.array(self.cost, np.float64)
        if cost.shape != (classes.size, classes.size):
            raise ValueError(
                f"cost must have the shape {(classes.size, classes.size)}, a row for each class, "
                f"got {cost.shape}"
            )
        if not (np.isfinite(cost).all() and (cost >= 0).all() and not cost.diagonal().any()):
            raise ValueError("cost must have numbers >= 0, with 0 on the diagonal")
        return replace(self, cost=cost, classes=classes, n_features=len(X[0]))

    def joint(self, x: Array, y: Any) -> Array:
        """Return the features in the block of the class."""
        features = np.zeros((len(self.classes), len(x)))
        features[self._place(y)] = x
        return features.ravel()

    def loss(self, y: Any, z: Any) -> float:
        """Return the cost of ``z`` if ``y`` is right."""
        return float(self.cost[self._place(y), self._place(z)])

    def best(self, x: Array, w: Array, y: Any = None) -> Any:
        """Return the class of the highest score, with its cost added if ``y`` is given."""
        scores = self._scores(x, w)
        if y is not None:
            scores = scores + self.cost[self._place(y)]
        return self.classes[int(np.argmax(scores))]

    def best_slack(self, x: Array, w: Array, y: Any) -> Any:
        """Return the class of the highest cost times one plus the difference of scores."""
        scores, right = self._scores(x, w), self._place(y)
        return self.classes[int(np.argmax(self.cost[right] * (1 + scores - scores[right])))]

    def _scores(self, x: Array, w: Array) -> Array:
        return w.reshape(len(self.classes), -1) @ x

    def _place(self, y: Any) -> int:
        place = int(np.searchsorted(self.classes, y))
        if place == len(self.classes) or self.classes[place] != y:
            raise ValueError(f"{y!r} is not one of the classes {list(self.classes)}")
        return place

    def _check_state(self) -> None:
        """Raise ``ValueError`` if loaded classes and costs do not fit together."""
        if self.n_features is None:
            return
        require_attributes(self, classes="labels[k]", cost="float64[k, k]")
        require(self.classes.size > 0 and self.n_features >= 1, "there are no classes or features")
        require(np.isfinite(self.cost).all(), "cost is not finite")


@dataclass(frozen=True, eq=False)
class ChainModel:
    r"""Sequences of labels as the outputs of a structured SVM.

    An example is an array of shape (length, n_features), its output an array of ``length`` labels,
    whole numbers from 0. The score is the sum of the scores of all places and of all pairs of
    neighbors, divided by the length; the loss is the share of wrong labels.

    Parameters
    ----------
    n_labels : int, optional
        Number of labels; ``fit`` finds it in ``y``.
    n_features : int, optional
        Number of features of a place; ``fit`` finds it in ``X``.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.estimators import ChainModel
    >>> model = ChainModel(n_labels=2, n_features=1)
    >>> x = np.array([[1.0], [-1.0], [1.0]])
    >>> weights = np.array([-1.0, 1.0, 0.0, -3.0, -3.0, 0.0])  # of labels 0, 1; of pairs
    >>> model.best(x, weights)
    array([1, 1, 1])
    """

    n_labels: int | None = None
    n_features: int | None = None

    @property
    def size(self) -> int:
        """Number of weights."""
        labels = self.n_labels or 0
        return labels * (self.n_features or 0) + labels**2

    def for_data(self, X: Any, y: Any) -> Self:
        """Return the model of the labels and the features of these examples."""
        n_features = np.shape(X[0])[-1] if self.n_features is None else self.n_features
        model = replace(self, n_features=n_features, n_labels=self.n_labels or 1)
        for i, (x, labels) in enumerate(zip(X, y, strict=True)):
            try:
                model = model._with_labels(model._sequence(x), labels)
            except ValueError as error:
                raise ValueError(f"example {i}: {error}") from error
        return model

    def joint(self, x: Any, y: Array) -> Array:
        """Return the sums of the features of every label, and counts of pairs, by the length."""
        K = self.n_labels or 0
        x, y = self._sequence(x), np.asarray(y)
        sums, pairs = np.zeros((K, x.shape[1])), np.zeros((K, K))
        np.add.at(sums, y, x)
        np.add.at(pairs, (y[:-1], y[1:]), 1.0)
        return np.concatenate([sums.ravel(), pairs.ravel()]) / len(y)

    def loss(self, y: Any, z: Any) -> float:
        """Return the share of wrong labels."""
        return float(np.mean(np.asarray(y) != np.asarray(z)))

    def best(self, x: Any, w: Array, y: Any = None) -> Array:
        """Return the labels of the highest score, with their loss added if ``y`` is given."""
        places, pairs = self._scores(x, w)
        if y is not None:
            wrong = np.arange(places.shape[1]) != np.asarray(y)[:, None]
            places = places + wrong / len(places)
        return viterbi(places, pairs)

    def best_slack(self, x: Any, w: Array, y: Any) -> Array:
        """Return the labels of the highest loss times one plus the difference of scores."""
        places, pairs = self._scores(x, w)
        y = np.asarray(y)
        right = places[np.arange(len(y)), y].sum() + pairs[y[:-1], y[1:]].sum()
        scores, labels = viterbi_by_errors(places, pairs, y)
        losses = np.arange(len(y) + 1) / len(y)
        with np.errstate(invalid="ignore"):  # no errors, and no score: 0 times minus infinity
            h = np.where(losses > 0, losses * (1 + scores - right), 0.0)
        return labels(int(np.argmax(h)))

    def _scores(self, x: Any, w: Array) -> tuple[Array, Array]:
        """Return the scores of labels at every place, and of pairs, by the length."""
        x, K = self._sequence(x), self.n_labels or 0
        split = K * x.shape[1]
        return x @ w[:split].reshape(K, -1).T / len(x), w[split:].reshape(K, K) / len(x)

    def _sequence(self, x: Any) -> Array:
        x = np.asarray(x, np.float64)
        if x.ndim != 2 or len(x) == 0 or x.shape[1] != self.n_features:
            raise ValueError(
                f"a chain must have the shape (length, {self.n_features}), length >= 1, got "
                f"{x.shape}"
            )
        return x

    def _with_labels(self, x: Array, labels: Any) -> Self:
        labels = np.asarray(labels)
        if labels.shape != (len(x),) or labels.dtype.kind not in "iu" or labels.min() < 0:
            raise ValueError(f"its labels must be {len(x)} whole numbers >= 0, got {labels!r}")
        most = int(labels.max()) + 1
        return self if most <= (self.n_labels or 0) else replace(self, n_labels=most)

    def _check_state(self) -> None:
        for name in ("n_labels", "n_features"):
            require(getattr(self, name) is None or getattr(self, name) >= 1, f"{name} is below 1")


def viterbi(places: Array, pairs: Array) -> Array:
    """Return the labels ``z`` that maximize ``sum_t places[t, z_t] + pairs[z_t, z_t+1]``."""
    score, came_from = places[0], []
    for here in places[1:]:
        ways = score[:, None] + pairs
        came_from.append(ways.argmax(axis=0))
        score = ways.max(axis=0) + here
    labels = [int(score.argmax())]
    for before in reversed(came_from):
        labels.append(int(before[labels[-1]]))
    return np.array(labels[::-1])


def viterbi_by_errors(places: Array, pairs: Array, y: Array) -> tuple[Array, Any]:
    """Return the best score of each number of errors, and a function that gives its labels."""
    n, K = places.shape
    wrong = np.arange(K) != y[:, None]
    score = np.full((n + 1, K), -np.inf)  # errors so far, last label
    score[wrong[0].astype(int), np.arange(K)] = places[0]
    came_from = []
    for t in range(1, n):
        ways = score[:, :, None] + pairs
        before, best = ways.argmax(axis=1), ways.max(axis=1)
        later = np.vstack([np.full((1, K), -np.inf), best[:-1]])
        score = np.where(wrong[t], later, best) + places[t]
        came_from.append(before)

    def labels(errors: int) -> Array:
        found = [int(score[errors].argmax())]
        for t in range(n - 1, 0, -1):
            errors -= int(wrong[t, found[-1]])
            found.append(int(came_from[t - 1][errors, found[-1]]))
        return np.array(found[::-1])

    return score.max(axis=1), labels
