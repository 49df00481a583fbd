"""Parameters are checked in ``fit``, by complaints that name them."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from hilbin.kernels._arrays import Array


def require_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """``value`` is one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {tuple(choices)}, got {value!r}")


def require_positive(name: str, value: Any, *, or_zero: bool = False) -> None:
    """``value`` is a finite number above zero."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not (number and (0 < value < float("inf") or (or_zero and value == 0))):
        raise ValueError(f"{name} must be a number {'>= 0' if or_zero else '> 0'}, got {value!r}")


def require_whole(name: str, value: Any, least: int, most: int | None = None) -> None:
    """``value`` is a whole number from ``least`` to ``most``."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not (whole and least <= value and (most is None or value <= most)):
        upto = "" if most is None else f" and <= {most}"
        raise ValueError(f"{name} must be a whole number >= {least}{upto}, got {value!r}")


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
