"""Synthetic rows that stand in for histograms."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def histograms(rows: int, bins: int, *, density: float = 1.0, seed: int = 0) -> Array:
    """Rows of gamma(0.5) values that sum to 1, in float32; below density 1 most bins are 0."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(0.5, size=(rows, bins))
    if density < 1:
        X *= rng.random(X.shape) < density
    sums = X.sum(axis=1, keepdims=True)
    return (X / np.where(sums > 0, sums, 1)).astype(np.float32)


def colour_histograms(rows: int, *, bins: int = 64, clusters: int = 6, seed: int = 0) -> Array:
    """Fourth roots of peaked histograms in a few clusters, as colours of images make them."""
    rng = np.random.default_rng(seed)
    centres = rng.dirichlet(np.full(bins, 0.25), clusters)
    X = rng.gamma(12 * centres[rng.integers(clusters, size=rows)] + 0.03)
    return (X / X.sum(axis=1, keepdims=True)) ** 0.25
