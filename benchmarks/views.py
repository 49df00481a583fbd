"""Sets of which every sample has several descriptions: histograms, measurements, channels."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from data import Array, arrays
from pictures import pictures

from hilbin.images import DESCRIPTORS
from hilbin.images.descriptors import ImageSample
from hilbin.kernels import Chi2, Exponential, Gaussian, OnColumns

PER_CLASS = {"leaves100": 8, "mfeat": 20}  # to train on, of every class; the others test
CHANNELS = ("sift", "centrist", "lbp", "hog", "color")


class Views(NamedTuple):
    """Rows with all descriptions side by side, a kernel for each, and splits into train and test.

    A split is two arrays of row numbers.
    """

    X: Array
    y: Array
    kernels: dict[str, Any]
    splits: list[tuple[Array, Array]]


def view_sets(folder: Path | None, seeds: int, cache: Path | None) -> Iterator[tuple[str, Views]]:
    """The sets that are in the folder; channels of photographs only with a cache for them."""
    for name in PER_CLASS:
        stored = _stored(folder, name, seeds, standardize=name == "mfeat")
        if stored is not None:
            yield name, stored
    if cache is None:
        print("scene15 and caltech101 are left out: no --cache for their channels")
        return
    for name in ("scene15", "caltech101"):
        channels = _channels(folder, name, cache)
        if channels is not None:
            yield name, channels


def joined(parts: dict[str, Array], y: Array, splits: Any, *, standardize: bool) -> Views:
    """Put descriptions side by side; each has an exponential kernel by the mean or median rule."""
    kernels, begin = {}, 0
    kernel = Gaussian("median") if standardize else Exponential(Chi2(), "mean")
    for name, rows in parts.items():
        kernels[name] = OnColumns(kernel, slice(begin, begin + rows.shape[1]))
        begin += rows.shape[1]
    if standardize:
        parts = {name: _standardized(rows) for name, rows in parts.items()}
    return Views(np.hstack([*parts.values()]), y, kernels, splits)


def _stored(folder: Path | None, name: str, seeds: int, *, standardize: bool) -> Views | None:
    z = arrays(folder, name)
    if not z:
        return None
    parts = {k.removeprefix("X_"): z[k].astype(np.float64) for k in z if k.startswith("X_")}
    y = z["y"]
    splits = [_split(y, PER_CLASS[name], seed) for seed in range(seeds)]
    return joined(parts, y, splits, standardize=standardize)


def _split(y: Array, per_class: int, seed: int) -> tuple[Array, Array]:
    """Random rows of every class to train on, class after class."""
    rng = np.random.default_rng(seed)
    drawn = [rng.permutation(np.flatnonzero(y == label)) for label in np.unique(y)]
    train, test = ([rows[part] for rows in drawn]
                   for part in (slice(per_class), slice(per_class, None)))  # fmt: skip
    return np.concatenate(train), np.concatenate(test)


def _standardized(rows: Array) -> Array:
    spread = rows.std(axis=0)
    return (rows - rows.mean(axis=0)) / np.where(spread > 0, spread, 1)


def _channels(folder: Path | None, name: str, cache: Path) -> Views | None:
    """The channels of photographs, on the usual split; computed once and kept in the cache."""
    cache.mkdir(parents=True, exist_ok=True)
    path = cache / f"{name}_channels.npz"
    if not path.exists():
        with tempfile.TemporaryDirectory() as scratch:
            data = pictures(folder, name, Path(scratch))
            if data is None:
                return None
            files, labels = [*data.train, *data.test], np.concatenate([data.y, data.y_test])
            sample = ImageSample.read(data.train)
            kept: dict[str, Any] = {"y": labels, "n_train": len(data.train)}
            for channel in CHANNELS:
                if channel == "color" and not sample.colorful:
                    continue
                features = DESCRIPTORS[channel].make(sample, 0).fit(data.train)
                kept[f"X_{channel}"] = features.transform(files)
        np.savez(path, **kept)
    with np.load(path) as z:
        parts = {k.removeprefix("X_"): z[k].astype(np.float32) for k in z if k.startswith("X_")}
        y, n = z["y"], int(z["n_train"])
    split = np.arange(n), np.arange(n, y.size)
    return joined(parts, y, [split], standardize=False)
