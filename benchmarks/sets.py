"""Rows with classes: real sets, split as they usually are, and counts like those of images."""

import gzip
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from data import Array, arrays
from pictures import pictures
from sklearn.datasets import load_digits

from hilbin.images import Centrist, SpatialPyramid

SPARSE = "reuters_money"
VIEWS = ("fac", "fou", "kar", "mor", "pix", "zer")


class Labeled(NamedTuple):
    """Rows to train on and rows to test on, with their classes."""

    X: Any
    y: Array
    X_test: Any
    y_test: Array

    @property
    def classes(self) -> int:
        """How many there are."""
        return np.unique(self.y).size

    def sample(self, rows: int | None, test_rows: int | None = None) -> "Labeled":
        """At most that many random rows of each part; all test rows if not said."""
        some, few = random_rows(self.y.size, rows), random_rows(self.y_test.size, test_rows)
        return Labeled(self.X[some], self.y[some], self.X_test[few], self.y_test[few])

    def affordable(self, values: int, rows: int) -> "Labeled":
        """Only ``rows`` rows to train on if rows times features times classes exceed ``values``."""
        return self.sample(rows if self.y.size * self.X.shape[1] * self.classes > values else None)

    def scaled(self) -> "Labeled":
        """Features in [0, 1] on the training rows; sparse ones all over the largest value."""
        if sp.issparse(self.X):
            top = self.X.max()
            return self._replace(X=self.X / top, X_test=self.X_test / top)
        low, high = self.X.min(axis=0), self.X.max(axis=0)
        span = np.where(high > low, high - low, 1)
        return self._replace(X=(self.X - low) / span, X_test=(self.X_test - low) / span)


def random_rows(n: int, rows: int | None, seed: int = 0) -> Any:
    """Indices of ``rows`` of ``n``, in ascending order, or all."""
    if rows is None or rows >= n:
        return slice(None)
    return np.sort(np.random.default_rng(seed).choice(n, rows, replace=False))


def one_class(y: Array) -> Array:
    """1 for the most frequent class, -1 for the rest."""
    values, counts = np.unique(y, return_counts=True)
    return np.where(y == values[counts.argmax()], 1, -1)


def tasks(s: Labeled, values: int, rows: int) -> dict[str, Labeled]:
    """The most frequent class against the rest and, of as many rows as is affordable, all."""
    found = {"binary": s._replace(y=one_class(s.y))}
    if s.classes > 2:
        found["one-vs-rest"] = s.affordable(values, rows)
    return found


def labeled_sets(folder: Path | None, names: tuple[str, ...] = ()) -> dict[str, Labeled]:
    """Those of the named sets (or all) that are in ``folder``; scikit-learn's digits if none is."""
    found = {}
    for name in names or tuple(LOADERS):
        stored = LOADERS[name](folder, name)
        if stored is not None:
            found[name] = stored
    return found or {"digits": digits()}


def _split(folder: Path | None, name: str) -> Labeled | None:
    z = arrays(folder, name)
    parts = ("X_train", "y_train", "X_test", "y_test")
    return (
        Labeled(*(_floats(z[part]) if part[0] == "X" else z[part] for part in parts)) if z else None
    )


def _reuters(folder: Path | None, name: str) -> Labeled | None:
    z = arrays(folder, name)
    if not z:
        return None
    X, X_test = (
        sp.csr_array(
            (_floats(z[f"{p}_data"]), z[f"{p}_indices"], z[f"{p}_indptr"]), z[f"{p}_shape"]
        )
        for p in ("train", "test")
    )
    return Labeled(X, z["y_train"], X_test, z["y_test"])


def _mfeat(folder: Path | None, name: str) -> Labeled | None:
    """All six views side by side; the first hundred rows of each class are to train on."""
    z = arrays(folder, name)
    if not z:
        return None
    X, y = np.hstack([_floats(z[f"X_{view}"]) for view in VIEWS]), z["y"]
    train = np.arange(y.size) % 200 < 100  # rows are sorted by class, 200 of each
    return Labeled(X[train], y[train], X[~train], y[~train])


def _fashion(folder: Path | None, name: str) -> Labeled | None:
    if folder is None or not (folder / name / "train-images-idx3-ubyte.gz").exists():
        print(f"{name} is left out: " + (f"not in {folder}" if folder else "no --data"))
        return None
    parts = []
    for part in ("train", "t10k"):
        images = _idx(folder / name / f"{part}-images-idx3-ubyte.gz", header=16)
        labels = _idx(folder / name / f"{part}-labels-idx1-ubyte.gz", header=8)
        parts += [_floats(images.reshape(labels.size, -1)), labels]
    return Labeled(*parts)


def _inria(folder: Path | None, name: str) -> Labeled | None:
    """Counts of CENTRIST words of the edges in the cells of a pyramid; people, and no people."""
    with tempfile.TemporaryDirectory() as scratch:
        windows = pictures(folder, name, Path(scratch))
        if windows is None:
            return None
        words = SpatialPyramid(Centrist(edges=True), 3, weights=[1, 1, 1], max_side=None)
        X, X_test = (words.fit_transform(part) for part in (windows.train, windows.test))
    pixels = 62 * 126  # of a window, without its border
    y, y_test = (np.where(y == "pos", 1, -1) for y in (windows.y, windows.y_test))
    return Labeled(_floats(np.rint(X * pixels)), y, _floats(np.rint(X_test * pixels)), y_test)


def digits() -> Labeled:
    X, y = load_digits(return_X_y=True)
    return Labeled(X[:1000], y[:1000], X[1000:], y[1000:])


def _idx(path: Path, *, header: int) -> Array:
    with gzip.open(path) as file:
        return np.frombuffer(file.read(), np.uint8, offset=header)


def _floats(X: Array) -> Array:
    return X.astype(np.float64)


LOADERS: dict[str, Callable[[Path | None, str], Labeled | None]] = {
    "shuttle": _split,
    "ijcnn1": _split,
    "usps": _split,
    SPARSE: _reuters,
    "fashion_mnist": _fashion,
    "mfeat": _mfeat,
    "inria_windows": _inria,
}


def bag_of_words(rows: int, bins: int, *, seed: int = 0) -> tuple[Array, Array]:
    """Counts of 500 words per row, frequent and rare ones as in language; classes are mixed topics.

    A fifth of the counts are not zero. Labels are 1 for half of ten topics, -1 for the others.
    """
    rng = np.random.default_rng(seed)
    frequency = rng.permutation(np.arange(1, bins + 1) ** -0.9)
    topics = frequency * rng.gamma(2.0, 0.5, (10, bins))
    topics /= topics.sum(axis=1, keepdims=True)
    own, other = rng.integers(10, size=(2, rows))
    mean = 500 * (0.55 * topics[own] + 0.45 * topics[other])
    return over_dispersed(mean, 1.5, rng), np.where(own < 5, 1, -1)


def centrist(rows: int, bins: int, *, seed: int = 0) -> tuple[Array, Array]:
    """Dense counts whose classes differ in the spread of some bins, and little in the mean."""
    rng = np.random.default_rng(seed)
    y = rng.choice([-1, 1], rows)
    positive = y[:, None] == 1
    mean, shape = rng.gamma(2.0, 6.5, bins), np.full(bins, 1.4)
    spread = np.where(rng.random(bins) < 0.25, 1.8, shape)
    shifted = mean * np.where(rng.random(bins) < 0.1, 1.06, 1.0)
    X = over_dispersed(np.where(positive, shifted, mean), np.where(positive, spread, shape), rng)
    return X, y


def over_dispersed(mean: Array, shape: Any, rng: np.random.Generator) -> Array:
    """Poisson counts of gamma intensities, as float64: whole numbers, as they come."""
    return _floats(rng.poisson(rng.gamma(shape, mean / shape)))
