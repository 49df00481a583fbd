"""Splits of labeled sets into trials, and what a contender gets right on them."""

import hashlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from data import Array, arrays
from pictures import Pictures
from sets import VIEWS, Labeled, labeled_sets
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

from hilbin.images import FHOG

FASHION_ROWS = 10_000  # of 60,000 to train on
REPEATS, TEST_SHARE = 10, 0.3  # of the small sets
FOLDS = 4  # of the leaves
LEAVES = ("margin", "shape", "texture")
FRESH, FRESH_SEED = "fresh split", 2027
UNSEEN = ("leaves100", "fashion_mnist")  # whose usual splits the rule had not been tried on


class Trial(NamedTuple):
    """One split, and which rows of the set its test rows are."""

    data: Labeled
    tested: Array


class Task(NamedTuple):
    """A set with its splits; ``per_class`` if every class counts the same, however frequent."""

    name: str
    trials: list[Trial]
    per_class: bool = False
    fresh: bool = False

    @property
    def title(self) -> str:
        """The name, and whether the splits are fresh."""
        return f"{self.name}, {FRESH}" if self.fresh else self.name

    @property
    def digest(self) -> str:
        """A fingerprint of rows, labels and splits."""
        found = hashlib.sha1(self.name.encode())
        for trial in self.trials:
            for part in (*trial.data, trial.tested):
                for values in (part.data, part.indices) if sp.issparse(part) else (part,):
                    found.update(np.ascontiguousarray(values).data)
        return found.hexdigest()

    def weights(self) -> Array:
        """What every row that is tested counts; they sum to 1."""
        labels: dict[int, Any] = {}
        for trial in self.trials:
            labels |= dict(zip(trial.tested.tolist(), trial.data.y_test.tolist(), strict=True))
        if not self.per_class:
            return np.full(len(labels), 1 / len(labels))
        count = Counter(labels.values())
        return np.array([1 / (count[labels[i]] * len(count)) for i in sorted(labels)])


class Outcome(NamedTuple):
    """How often each tested row was right, the seconds of fits and predictions, what was chosen."""

    right: Array
    fit: float
    predict: float
    chosen: str
    choosing: float = 0.0  # seconds of the fits, if known

    def accuracy(self, weights: Array) -> float:
        """Per cent."""
        return 100 * float(weights @ self.right)


def paired(own: Outcome, other: Outcome, weights: Array) -> tuple[float, float]:
    """Points gained, and their standard error over the tested rows."""
    gained = 100 * (own.right - other.right)
    mean = float(weights @ gained)
    n = gained.size
    return mean, float(np.sqrt(weights**2 @ (gained - mean) ** 2 * n / (n - 1)))


def by_row(trials: list[Trial], hits: list[Array]) -> Array:
    """Share of the tests that each row passed, in the order of the rows in the set."""
    tested = np.concatenate([trial.tested for trial in trials])
    rows, place = np.unique(tested, return_inverse=True)
    return np.bincount(place, np.concatenate(hits), rows.size) / np.bincount(place)


def listed(choices: list[str]) -> str:
    """What was chosen, and how often."""
    counts = Counter(choices)
    if len(counts) == 1:
        return choices[0]
    return "; ".join(f"{name} ({n} of {len(choices)})" for name, n in counts.most_common())


def single(data: Labeled) -> list[Trial]:
    """The one split there is."""
    return [Trial(data, np.arange(data.y_test.size))]


def split(X: Array, y: Array, splits: Any) -> list[Trial]:
    """Several splits of the same rows."""
    return [Trial(Labeled(X[train], y[train], X[test], y[test]), test) for train, test in splits]


def redrawn(trials: list[Trial]) -> list[Trial]:
    """As many fresh splits of all rows, with the sizes that every class has in the first one."""
    first, rng = trials[0].data, np.random.default_rng(FRESH_SEED)
    pooled = (sp.vstack if sp.issparse(first.X) else np.vstack)([first.X, first.X_test])
    y = np.concatenate([first.y, first.y_test])
    return split(pooled.tocsr() if sp.issparse(pooled) else pooled, y,
                 [_draw(first.y, y, rng) for _ in trials])  # fmt: skip


def redrawn_pictures(data: Pictures) -> Pictures:
    """A fresh split of all images, with the same sizes of every class."""
    files, y = [*data.train, *data.test], np.concatenate([data.y, data.y_test])
    train, test = _draw(data.y, y, np.random.default_rng(FRESH_SEED))
    return Pictures([files[i] for i in train], y[train], [files[i] for i in test], y[test])


def _draw(y_train: Array, y: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Rows to train on, classes in turn and each in random order, and the rest."""
    sizes = zip(*np.unique(y_train, return_counts=True), strict=True)
    train = np.concatenate([rng.permutation(np.flatnonzero(y == c))[:n] for c, n in sizes])
    return train, np.setdiff1d(np.arange(y.size), train)


def stored(folder: Path | None, name: str) -> Labeled | None:
    """A set of the folder, or None and a line that says so."""
    return labeled_sets(folder, (name,)).get(name)


def _usps(folder: Path | None) -> list[Trial] | None:
    s = stored(folder, "usps")
    return single(s._replace(X=s.X + 1, X_test=s.X_test + 1)) if s else None


def _whole(name: str) -> Callable[[Path | None], list[Trial] | None]:
    def load(folder: Path | None) -> list[Trial] | None:
        s = stored(folder, name)
        return single(s) if s else None

    return load


def _mfeat(view: str) -> Callable[[Path | None], list[Trial] | None]:
    def load(folder: Path | None) -> list[Trial] | None:
        z = arrays(folder, "mfeat")
        if not z:
            return None
        X = np.hstack([z[f"X_{v}"] for v in (VIEWS if view == "all" else (view,))])
        train = np.arange(z["y"].size) % 200 < 100  # rows are sorted by class, 200 of each
        return split(X.astype(float), z["y"], [(np.flatnonzero(train), np.flatnonzero(~train))])

    return load


def _leaves(view: str) -> Callable[[Path | None], list[Trial] | None]:
    def load(folder: Path | None) -> list[Trial] | None:
        z = arrays(folder, "leaves100")
        if not z:
            return None
        X = np.hstack([z[f"X_{v}"] for v in (LEAVES if view == "all" else (view,))])
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(z["y"], z["y"])
        return split(X.astype(float), z["y"], folds)

    return load


def _small(loader: Callable[..., Any]) -> Callable[[Path | None], list[Trial]]:
    def load(folder: Path | None) -> list[Trial]:
        X, y = loader(return_X_y=True)
        splits = StratifiedShuffleSplit(REPEATS, test_size=TEST_SHARE, random_state=0)
        return split(X, y, splits.split(X, y))

    return load


def _digits(folder: Path | None) -> list[Trial]:
    X, y = load_digits(return_X_y=True)
    return single(Labeled(X[:1000], y[:1000], X[1000:], y[1000:]))


def _pixels(folder: Path | None) -> list[Trial] | None:
    s = stored(folder, "fashion_mnist")
    return single(s.sample(FASHION_ROWS)) if s else None


def _hog(folder: Path | None) -> list[Trial] | None:
    trials = _pixels(folder)
    if trials is None:
        return None
    cells, data = FHOG(8, (56, 56), color=False), trials[0].data
    X, X_test = (
        cells.fit_transform(list(rows.reshape(-1, 28, 28).astype(np.uint8)))
        for rows in (data.X, data.X_test)
    )
    return single(data._replace(X=X.astype(float), X_test=X_test.astype(float)))


TABLES: dict[str, Callable[[Path | None], list[Trial] | None]] = {  # quick ones first
    "wine": _small(load_wine),
    "breast cancer": _small(load_breast_cancer),
    **{f"mfeat {view}": _mfeat(view) for view in (*VIEWS, "all")},
    "digits": _digits,
    "reuters_money": _whole("reuters_money"),
    **{f"leaves100 {view}": _leaves(view) for view in (*LEAVES, "all")},
    "usps": _usps,
    "shuttle": _whole("shuttle"),
    "ijcnn1": _whole("ijcnn1"),
    "fashion_mnist HOG": _hog,
    "fashion_mnist pixels": _pixels,
}
