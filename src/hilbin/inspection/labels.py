"""Suspicious labels: examples whose own class scores far below another.

The scores must come from models that were not trained on the example, by cross-validation: a model
that has seen a wrong label may have learned it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hilbin._arrays import Array
from hilbin.inspection.evidence import Suspicion
from hilbin.inspection.scores import both_classes, class_indices


def suspicious_labels(
    scores: Any,
    y: Any,
    classes: Any = None,
    *,
    names: Sequence[str] | None = None,
    threshold: float = 1.0,
    max_labels: int = 50,
) -> list[Suspicion]:
    """Find examples whose label scores far below another class.

    Parameters
    ----------
    scores : array-like of shape (n_samples, n_classes) or (n_samples,)
        Scores by models that were not trained on the example, as
        ``cross_val_predict(method="decision_function")`` returns them. Rows with NaN, which were
        never left out, are skipped.
    y : array-like of shape (n_samples,)
        Labels.
    classes : array-like of shape (n_classes,), optional
        Labels in the order of the columns of ``scores``; by default the sorted labels of ``y``.
    names : sequence of str, optional
        Names of the examples; by default ``row 1``, ``row 2``, ...
    threshold : float, default=1.0
        By how much another class must be ahead. The default suits scores that are trained to be +1
        and -1; for probabilities, 0.5 does.
    max_labels : int, default=50
        Largest number of suspicions.

    Returns
    -------
    suspicions : list of Suspicion
        The most suspicious first.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_val_predict
    >>> from hilbin.estimators import IntersectionSVC
    >>> from hilbin.inspection import suspicious_labels
    >>> X, y = load_iris(return_X_y=True)
    >>> y[7] = 2  # a mistake
    >>> scores = cross_val_predict(IntersectionSVC(), X, y, method="decision_function")
    >>> first = suspicious_labels(scores, y)[0]
    >>> first.name, first.given, first.suggested
    ('row 8', '2', '0')
    """
    scores = np.asarray(scores, np.float64)
    scores = both_classes(scores[:, None] if scores.ndim == 1 else scores)
    classes = np.unique(np.asarray(y)) if classes is None else np.asarray(classes)
    truth = class_indices(y, classes)
    if scores.shape != (truth.size, len(classes)):
        raise ValueError(
            f"scores must have the shape {(truth.size, len(classes))}, got {scores.shape}"
        )
    best, margins = _best_others(scores, truth)
    order = np.argsort(-margins, kind="stable")[:max_labels]
    return [
        Suspicion(
            f"row {i + 1}" if names is None else str(names[i]),
            str(classes[truth[i]]),
            str(classes[best[i]]),
            float(margins[i]),
            index=int(i),
        )
        for i in order
        if margins[i] >= threshold
    ]


def _best_others(scores: Array, truth: Array) -> tuple[Array, Array]:
    """Return the best of the other classes, and how far it is ahead; never where there is NaN."""
    rows = np.arange(truth.size)
    known = np.asarray(np.isfinite(scores).all(axis=1))
    others = np.where(known[:, None], scores, 0.0)
    own = others[rows, truth].copy()
    others[rows, truth] = -np.inf
    best = others.argmax(axis=1)
    return best, np.where(known, others[rows, best] - own, -np.inf)
