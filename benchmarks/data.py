"""Rows of histograms: synthetic ones that stand in for them, and real ones."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits

Array = npt.NDArray[Any]


def histograms(rows: int, bins: int, *, density: float = 1.0, seed: int = 0) -> Array:
    """Rows of gamma(0.5) values that sum to 1, in float32; below density 1 most bins are 0."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(0.5, size=(rows, bins))
    if density < 1:
        X *= rng.random(X.shape) < density
    sums = X.sum(axis=1, keepdims=True)
    return (X / np.where(sums > 0, sums, 1)).astype(np.float32)


def color_histograms(rows: int, *, bins: int = 64, clusters: int = 6, seed: int = 0) -> Array:
    """Fourth roots of peaked histograms in a few clusters, as colors of images make them."""
    rng = np.random.default_rng(seed)
    centers = rng.dirichlet(np.full(bins, 0.25), clusters)
    X = rng.gamma(12 * centers[rng.integers(clusters, size=rows)] + 0.03)
    return (X / X.sum(axis=1, keepdims=True)) ** 0.25


def real_histograms(folder: Path | None, *, seed: int = 0) -> dict[str, Array]:
    """Rows of real sets in random order, summing to 1, in float64.

    Scikit-learn's digits and, if in ``folder``, the margin, texture and shape of 100 species of
    leaves, and the pixels of USPS.
    """
    sets = {"digits": load_digits(return_X_y=True)[0]}
    leaves, usps = arrays(folder, "leaves100"), arrays(folder, "usps")
    for view in ("margin", "texture", "shape") if leaves else ():
        sets[f"leaves100 {view}"] = leaves[f"X_{view}"]
    if usps:
        sets["usps"] = usps["X_train"] + 1  # from -1 .. 1
    rng = np.random.default_rng(seed)
    return {name: rng.permutation(_to_sum_one(X), axis=0) for name, X in sets.items()}


def arrays(folder: Path | None, name: str) -> dict[str, Array]:
    """What is stored as ``name/name.npz``; nothing, and a line that says so, if it is missing."""
    path = (folder or Path()) / name / f"{name}.npz"
    if folder is None or not path.exists():
        print(f"{name} is left out: " + (f"no {path}" if folder else "no --data"))
        return {}
    with np.load(path) as stored:
        return dict(stored)


def _to_sum_one(X: Array) -> Array:
    X = X.astype(np.float64)
    sums = X.sum(axis=1, keepdims=True)
    return X / np.where(sums > 0, sums, 1)
