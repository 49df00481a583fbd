"""The weights of classes."""

from typing import Any

import numpy as np

from hilbin._arrays import Array
from hilbin._parameters import require_choice, require_positive


def class_factors(class_weight: Any, classes: Array, labels: Array, weights: Array) -> Array:
    """Factor of every row by its class; ``labels`` are places in ``classes``."""
    if class_weight is None:
        return np.ones(labels.size)
    if isinstance(class_weight, str):
        require_choice("class_weight, if not a dict,", class_weight, ("balanced",))
        totals = np.bincount(labels, weights)
        return (weights.sum() / (totals.size * totals))[labels]
    known = classes.tolist()
    for label, factor in class_weight.items():
        if label not in known:
            raise ValueError(f"class_weight names {label!r}, which is not a class of y")
        require_positive(f"class_weight[{label!r}]", factor)
    return np.array([class_weight.get(label, 1.0) for label in known], np.float64)[labels]
