"""Scores and probabilities of all classes, for any fitted classifier.

A classifier of two classes has one score ``f``, that of the second class; here it is ``-f`` and
``f``, so that a row always has one score per class and the highest one is the prediction.
"""

from typing import Any

import numpy as np

from hilbin._arrays import Array


def class_scores(model: Any, X: Any) -> Array:
    """Return one score per class and row, the highest of which is the prediction.

    Parameters
    ----------
    model : fitted classifier
        With ``decision_function``, or else with ``predict_proba``, whose probabilities are then the
        scores.
    X : array-like, sparse or data frame of shape (n_samples, n_features)
        Samples, as the model takes them.

    Returns
    -------
    scores : ndarray of shape (n_samples, n_classes)
        For two classes ``-f`` and ``f``, with ``f`` the decision function.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from hilbin.inspection import class_scores
    >>> X = np.array([[0.0, 2.0], [1.0, 2.0]])
    >>> class_scores(RidgeClassifier(alpha=0.5).fit(X, ["no", "yes"]), X).round(3)
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """
    if not hasattr(model, "decision_function"):
        found = class_probabilities(model, X)
        if found is None:
            raise TypeError(
                f"{type(model).__name__} has neither decision_function nor predict_proba"
            )
        return found
    scores = np.asarray(model.decision_function(X), np.float64)
    scores = scores[:, None] if scores.ndim == 1 else scores
    scores = both_classes(scores)
    n_classes = len(getattr(model, "classes_", scores[:1].T))
    if scores.shape[1] != n_classes or getattr(model, "decision_function_shape", "") == "ovo":
        raise ValueError(
            f"decision_function of {type(model).__name__} has no score per class: it must have "
            f'{n_classes} columns, one class against the rest (decision_function_shape="ovr")'
        )
    return scores


def both_classes(values: Array) -> Array:
    """Return the values of both classes where the last axis has those of the second alone."""
    return np.concatenate([-values, values], axis=-1) if values.shape[-1] == 1 else values


def class_probabilities(model: Any, X: Any) -> Array | None:
    """Return the probability of every class, or None if the model has no ``predict_proba``.

    Parameters
    ----------
    model : fitted classifier
    X : array-like, sparse or data frame of shape (n_samples, n_features)
        Samples, as the model takes them.

    Returns
    -------
    probabilities : ndarray of shape (n_samples, n_classes), or None

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.svm import LinearSVC
    >>> from hilbin.inspection import class_probabilities
    >>> X, y = load_iris(return_X_y=True)
    >>> class_probabilities(LogisticRegression(max_iter=1000).fit(X, y), X[:1]).round(2)
    array([[0.98, 0.02, 0.  ]])
    >>> class_probabilities(LinearSVC().fit(X, y), X[:1]) is None
    True
    """
    if not hasattr(model, "predict_proba"):
        return None
    return np.asarray(model.predict_proba(X), np.float64)


def class_names(model: Any) -> list[str]:
    """Return the names of the classes, in the order of the scores."""
    return [str(label) for label in model.classes_]


def class_indices(y: Any, classes: Any) -> Array:
    """Return the place of every label among the classes; unknown labels raise an error."""
    places = {label: k for k, label in enumerate(np.asarray(classes).tolist())}
    labels = np.asarray(y).tolist()
    unknown = sorted({str(label) for label in labels if label not in places})
    if unknown:
        raise ValueError(f"y has labels that are not classes of the model: {', '.join(unknown)}")
    return np.array([places[label] for label in labels], dtype=np.int64)
