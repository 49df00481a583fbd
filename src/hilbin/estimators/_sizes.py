"""Numbers far from 1: means that cannot overflow, and errors that name what is too large.

Training multiplies kernel values, costs and targets with each other, and adds up their squares.
What cannot be computed with is refused by name; what is merely odd is scaled.
"""

from typing import Any

import numpy as np

from hilbin._arrays import Array

LEAST, MOST = 1e-250, 1e250  # costs, sums of weights, kernel values
MOST_TARGET = 1e300


def weighted_mean(values: Array, weights: Array) -> float:
    """Return the mean of values; neither weights nor sums of large values overflow."""
    size = float(np.abs(values).max(initial=0.0)) or 1.0
    return size * float(np.average(values / size, weights=weights / weights.max()))


def checked_costs(C: float, weights: Array, what: str = "C times sample_weight") -> Array:
    """Return the weight of the loss of every row; ``what`` names the product in errors."""
    with np.errstate(over="ignore", under="ignore"):
        costs = np.asarray(C * weights, np.float64)
    for bad, word in ((costs > MOST, "large"), ((costs < LEAST) & (weights > 0), "small")):
        if bad.any():
            raise ValueError(
                f"{what} is {costs[np.argmax(bad)]:.3g} for some row, too {word} to compute with: "
                "scale C or the weights"
            )
    return costs


def check_targets(y: Array) -> Array:
    """Return targets, whose sum must be finite."""
    sizes = np.abs(np.asarray(y, np.float64)).reshape(len(y), -1).max(axis=1, initial=0.0)
    if sizes.max(initial=0.0) > MOST_TARGET:
        i = int(sizes.argmax())
        raise ValueError(f"y[{i}] is of size {sizes[i]:.3g}, too large to add up: scale y")
    return y


def check_kernel_values(norms: Array) -> None:
    """Refuse kernel values that are too large to be added up."""
    most = float(np.max(norms, initial=0.0))
    if not most <= MOST:
        raise ValueError(
            f"k(x, x) is {most:.3g} for some row, too large to compute with: scale X or the kernel"
        )


def finite_scores(scores: Array) -> Array:
    """Return scores, which must be finite."""
    bad = ~np.isfinite(scores.reshape(len(scores), -1)).all(axis=1)
    if bad.any():
        raise ValueError(
            f"the score of row {int(np.argmax(bad))} of X is not finite: its values are too large "
            "for this model"
        )
    return scores


def without_warnings() -> np.errstate:
    """Return a context, or decorator, for what ends with a check of the result."""
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


def require_finite(model: Any, *names: str) -> None:
    """Refuse a model whose learned numbers are not finite."""
    for name in names:
        if not np.isfinite(getattr(model, name)).all():
            raise ValueError(
                f"{type(model).__name__}: {name} is not finite. Values of X, y or sample_weight, "
                "or parameters, are too far from 1 to compute with: scale them"
            )
