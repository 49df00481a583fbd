"""Structured outputs and the best box: passes with and without kept outputs, nodes, and times."""

import tarfile
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import harness
import numpy as np
from data import Array
from harness import by_set, claim, compare
from sklearn.datasets import load_digits
from sklearn.svm import LinearSVC

from hilbin._core import core
from hilbin.detect import BoxLocalizer, WordCells, best_box, iou, read_boxes
from hilbin.estimators import ChainModel, GridModel, StructuredSVM
from hilbin.estimators.structured.models import MulticlassModel
from hilbin.images import LBP, ColorHistogram
from hilbin.solvers import StructuredRisk, bundle

LETTERS, NOISE = 6, 0.35
MULTICLASS_LAM, CHAIN_LAM, GRID_LAM = 1e-3, 1e-2, 1e-3
GRIDS = {"30x40": (30, 40), "60x80": (60, 80), "120x160": (120, 160)}
SIGNALS = {"weak": 0.3, "strong": 2.0}
WORDS = ((64, "30x40"), (256, "30x40"), (256, "60x80"))
MOST_NODES = 10_000_000
TEXT = (
    "One thread. Structured SVMs: 900 digits as classes (lambda 1e-3, relative gap 1e-4), 250 "
    "chains of six noisy digits (1e-2, 1e-3), twelve noisy images of 24x32 pixels by cuts (1e-3, "
    "1e-3). A pass asks the oracle once for every example; outputs of the last 8 passes are kept, "
    "or none. The loss is the share of wrong letters, or pixels, on as many new examples; 'alone' "
    "is the same without pairs. Crammer and Singer's problem is also solved by LIBLINEAR "
    "(LinearSVC, tolerance 1e-6). Best box: cells of noise with a box in it whose mean is higher "
    "(weak by 0.3, strong by 2 standard deviations), by Kadane's algorithm and branch and bound; "
    "words in cells with concave functions of their counts, by branch and bound and by looking at "
    "all boxes with NumPy. Times are per call, the integral histogram included. BoxLocalizer: "
    "images of bccd (640x480) with one white blood cell, words of color and local binary patterns "
    "in cells of 8 pixels; the mean IoU on the test images, and that of the mean training box."
)


class Sizes(NamedTuple):
    """How much is measured."""

    rows: int = 900
    chains: int = 250
    images: int = 12
    repeats: int = 5


# structured SVMs
def digits() -> tuple[Array, Array]:
    """Digits from 0 to 1 with a constant, in random order."""
    X, y = load_digits(return_X_y=True)
    X = np.hstack([X / 16, np.ones((len(X), 1))])
    order = np.random.default_rng(0).permutation(len(X))
    return X[order], y[order]


def chains(X: Array, y: Array, count: int, seed: int) -> tuple[list[Array], list[Array]]:
    """Words of noisy digits: the next is one or three more, but for a tenth."""
    rng = np.random.default_rng(seed)
    by_label = [np.flatnonzero(y == k) for k in range(10)]
    noisy = np.append(np.ones(X.shape[1] - 1), 0)
    words, labels = [], []
    for _ in range(count):
        word = [int(rng.integers(10))]
        while len(word) < LETTERS:
            step = rng.choice([1, 3], p=[0.7, 0.3])
            word.append(int((word[-1] + step) % 10 if rng.random() < 0.9 else rng.integers(10)))
        rows = X[[rng.choice(by_label[k]) for k in word]]
        words.append(rows + noisy * rng.normal(0, NOISE, rows.shape))
        labels.append(np.array(word))
    return words, labels


def segments(count: int, seed: int, shape: tuple[int, int] = (24, 32)) -> tuple[Any, Any]:
    """Noisy images of two ellipses, with square and constant as features, and their pixels."""
    rng = np.random.default_rng(seed)
    ys, xs = np.mgrid[: shape[0], : shape[1]]
    images, masks = [], []
    for _ in range(count):
        mask = np.zeros(shape, int)
        for _ in range(2):
            cy, cx = rng.integers(4, shape[0] - 4), rng.integers(4, shape[1] - 4)
            ry, rx = rng.integers(3, 9, 2)
            mask |= ((ys - cy) / ry) ** 2 + ((xs - cx) / rx) ** 2 < 1
        gray = 0.8 * mask + rng.normal(0, 0.9, shape)
        images.append(np.stack([gray, gray**2, np.ones(shape)], axis=2))
        masks.append(mask)
    return images, masks


def trained(model: Any, X: Any, y: Any, lam: float, tol: float) -> dict[str, dict[str, float]]:
    """Passes and seconds with and without kept outputs; the machine is that with them."""
    model = model.for_data(X, y)
    rows = {}
    for name, cache in (("kept", 8), ("none kept", 0)):
        risk = StructuredRisk(
            model.best, model.joint, model.loss, X, y, weights=1 / len(X), cache=cache,
            nonnegative=getattr(model, "nonnegative", ()),
        )  # fmt: skip
        gaps: list[float] = []
        found: Any = None

        def solve(risk: Any = risk, gaps: list[float] = gaps) -> None:
            nonlocal found
            gaps.clear()
            found = bundle(risk, lam, tol=tol, callback=lambda _, g: gaps.append(g) or True)

        seconds = harness.seconds(solve)
        rows[name] = {
            "passes": found.n_iter,
            "passes to 10 %": next(i for i, gap in enumerate(gaps, 1) if gap <= 0.1),
            "objective": float(found.objective[0]),
            "relative gap": float(found.gap[0] / found.objective[0]),
            "seconds": seconds,
        }
    return rows


def error(model: Any, X: Any, y: Any, new: tuple[Any, Any], lam: float) -> float:
    """Mean loss on new examples."""
    machine = StructuredSVM(model, 1 / (lam * len(X))).fit(X, y)
    return -machine.score(*new)


def structured(sizes: Sizes) -> tuple[dict[str, Any], dict[str, float]]:
    """Tables of passes, and figures of accuracy."""
    X, y = digits()
    rows, labels = X[: sizes.rows], y[: sizes.rows]
    words = chains(rows, labels, sizes.chains, 0)
    new_words = chains(X[sizes.rows :], y[sizes.rows :], sizes.chains, 1)
    images, new_images = segments(sizes.images, 0), segments(20, 1)
    tables = {
        "classes": trained(MulticlassModel(), rows, labels, MULTICLASS_LAM, 1e-4),
        "chains": trained(ChainModel(), *words, CHAIN_LAM, 1e-3),
        "grids": trained(GridModel(), *images, GRID_LAM, 1e-3),
    }
    letters = np.concatenate(words[0]), np.concatenate(words[1])
    new_letters = np.concatenate(new_words[0]), np.concatenate(new_words[1])
    pixels = np.concatenate([x.reshape(-1, 3) for x in images[0]]), np.ravel(images[1])
    new_pixels = np.concatenate([x.reshape(-1, 3) for x in new_images[0]]), np.ravel(new_images[1])
    losses = {
        "chains": error(ChainModel(), *words, new_words, CHAIN_LAM),
        "chains, alone": error(None, *letters, new_letters, CHAIN_LAM),
        "grids": error(GridModel(), *images, new_images, GRID_LAM),
        "grids, alone": error(None, *pixels, new_pixels, GRID_LAM),
    }
    return tables, losses


def liblinear(sizes: Sizes) -> float:
    """The objective of Crammer and Singer's machine by LIBLINEAR."""
    X, y = digits()
    X, y = X[: sizes.rows], y[: sizes.rows]
    options: dict[str, Any] = {"fit_intercept": False, "tol": 1e-6, "max_iter": 200_000}
    machine = LinearSVC(C=1 / (MULTICLASS_LAM * len(X)), multi_class="crammer_singer", **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        W = machine.fit(X, y).coef_
    scores = X @ W.T
    margins = scores + (np.arange(10) != y[:, None]) - scores[np.arange(len(y)), y][:, None]
    return float(0.5 * MULTICLASS_LAM * np.sum(W**2) + margins.max(axis=1).mean())


# boxes
def noisy_cells(shape: tuple[int, int], signal: float) -> Array:
    """Scores of noise, below 0 on average, with a box of higher ones."""
    rng = np.random.default_rng(0)
    scores = rng.normal(-0.2, 1, shape)
    height, width = shape[0] // 3, shape[1] // 3
    scores[height : 2 * height, width : 2 * width] += signal
    return scores


def by_search(scores: Array) -> tuple[int, float]:
    """Nodes and score of the branch and bound search on a sum over cells."""
    boxes, values = np.zeros((1, 4), np.int32), np.zeros(1)
    _, nodes, _ = core.best_boxes(scores, np.empty(0), 0.0, MOST_NODES, boxes, values)
    return int(nodes), float(values[0])


def linear(sizes: Sizes) -> dict[str, dict[str, float]]:
    """Kadane's algorithm and the search, on sums over cells."""
    table = {}
    for name, shape in GRIDS.items():
        for strength, signal in SIGNALS.items():
            scores = noisy_cells(shape, signal)
            nodes, value = by_search(scores)
            found = best_box(scores).scores[0]
            if abs(found - value) > 1e-9 * abs(value):
                raise AssertionError(f"{name}: Kadane finds {found}, the search {value}")
            contenders: dict[str, Callable[[], object]] = {
                "Kadane": lambda s=scores: best_box(s),
                "search": lambda s=scores: by_search(s),
            }
            times = compare(contenders, sizes.repeats)
            table[f"{name}, {strength}"] = {
                "nodes": nodes,
                "search ms": 1e3 * times["search"].best,
                "Kadane ms": 1e3 * times["Kadane"].best,
            }
    return table


def word_cells(n_words: int, shape: tuple[int, int]) -> tuple[Array, Array]:
    """Random words, others inside a box, and concave functions of their counts."""
    rng = np.random.default_rng(0)
    words = rng.integers(0, n_words, shape)
    height, width = shape[0] // 3, shape[1] // 3
    inside = rng.integers(0, n_words // 4, (height, width))
    words[height : 2 * height, width : 2 * width] = inside
    weights = np.where(np.arange(n_words) < n_words // 4, 1.0, -1.0) * rng.uniform(0, 1, n_words)
    return words, weights[:, None] * np.sqrt(np.arange(shape[0] * shape[1] + 1))


def all_boxes(words: Array, tables: Array) -> float:
    """The best score of all boxes, by NumPy: all pairs of columns at once, for every two rows."""
    cells = WordCells(words, len(tables))
    rows, columns = cells.shape
    left, right = np.triu_indices(columns + 1, 1)
    every, best = np.arange(len(tables)), -np.inf
    for top in range(rows):
        for bottom in range(top + 1, rows + 1):
            band = cells.integral[bottom] - cells.integral[top]
            best = max(best, float(tables[every, band[right] - band[left]].sum(axis=1).max()))
    return best


def nonlinear(sizes: Sizes, *, quick: bool) -> dict[str, dict[str, float]]:
    """The search and all boxes, on functions of counts."""
    table = {}
    for n_words, name in WORDS[: 1 if quick else None]:
        words, tables = word_cells(n_words, (12, 16) if quick else GRIDS[name])
        found = best_box(words, tables)
        row = {"nodes": found.nodes}
        row["search ms"] = 1e3 * compare({"": lambda w=words, t=tables: best_box(w, t)},
                                         sizes.repeats)[""].best  # fmt: skip
        if name == "30x40":
            value = 0.0

            def enumerate_all(words: Array = words, tables: Array = tables) -> None:
                nonlocal value
                value = all_boxes(words, tables)

            row["all boxes ms"] = 1e3 * harness.seconds(enumerate_all)
            if abs(value - found.scores[0]) > 1e-9 * abs(value):
                raise AssertionError(f"{name}: {value} of all boxes, {found.scores[0]} found")
        table[f"{n_words} words, {name}"] = row
    return table


# one box per image
def blood_cells(data: Path | None, scratch: Path) -> dict[str, tuple[list[Path], Array]]:
    """Images with exactly one white blood cell and its box, of both splits; none without data."""
    path = (data or Path()) / "bccd" / "bccd.tar.gz"
    if data is None or not path.exists():
        print("bccd is not there: BoxLocalizer is not measured")
        return {}
    with tarfile.open(path) as archive:
        archive.extractall(scratch, filter="data")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two boxes are empty
        records = {Path(r.path).stem: r for r in read_boxes(scratch / "bccd" / "Annotations")}
    found = {}
    for split in ("train", "test"):
        names = (scratch / "bccd" / "ImageSets" / "Main" / f"{split}.txt").read_text().split()
        known = [records[name] for name in names if name in records]
        single = [r for r in known if list(r.labels).count("WBC") == 1]
        boxes = [np.asarray(r.boxes)[list(r.labels).index("WBC")] for r in single]
        found[split] = [Path(r.path) for r in single], np.array(boxes)
    return found


def localized(splits: dict[str, tuple[list[Path], Array]]) -> dict[str, float]:
    """Mean IoU of a localizer and of the mean box, and seconds."""
    if not splits:
        return {}
    (images, boxes), (new, truth) = splits["train"], splits["test"]
    model = BoxLocalizer([ColorHistogram(), LBP()])
    seconds = harness.seconds(lambda: model.fit(images, boxes))
    guess = iou([boxes.mean(axis=0)], truth).mean()
    return {
        "training images": len(images),
        "test images": len(new),
        "mean IoU": model.score(new, truth),
        "mean IoU of the mean box": float(guess),
        "passes": model.svm_.n_iter_,
        "relative gap": model.svm_.gap_ / model.svm_.objective_,
        "training seconds": seconds,
    }


def claims_of(
    tables: dict[str, Any],
    losses: dict[str, float],
    reference: float,
    cells: Any,
    words: Any,
    found: dict[str, float],
) -> list[dict[str, Any]]:
    """What must hold."""
    few = {name: rows["kept"]["passes"] / rows["none kept"]["passes"]
           for name, rows in tables.items()}  # fmt: skip
    above = tables["classes"]["kept"]["objective"] / reference - 1
    claims = by_set("passes with kept outputs", {k: few[k] for k in ("classes", "chains")}, 0.75,
                    "<=", against="none kept", headline=False, kind="models")  # fmt: skip
    claims += [
        claim("objective of classes, relative difference", abs(above), 2e-4, "<=",
              against="LIBLINEAR (LinearSVC)", unit=""),
        claim("wrong letters, chains", losses["chains"], losses["chains, alone"] / 2, "<=",
              against="half of those alone", unit=""),
        claim("wrong pixels, grids", losses["grids"], losses["grids, alone"] / 2, "<=",
              against="half of those alone", unit=""),
    ]  # fmt: skip
    kadane = {name: row["search ms"] / row["Kadane ms"] for name, row in cells.items()}
    claims += by_set("Kadane's algorithm, weak signal, times as fast",
                     {n: r for n, r in kadane.items() if "weak" in n}, 4,
                     against="branch and bound", headline=False, kind="grids")  # fmt: skip
    speed = {n: row["all boxes ms"] / row["search ms"] for n, row in words.items()
             if "all boxes ms" in row}  # fmt: skip
    claims += by_set("branch and bound on words, times as fast", speed, 50,
                     against="all boxes by NumPy", headline=False, kind="grids")  # fmt: skip
    if found:
        claims.append(claim("mean IoU of BoxLocalizer, bccd", found["mean IoU"],
                            found["mean IoU of the mean box"] + 0.3,
                            against="0.3 above the mean box", unit=""))  # fmt: skip
    return claims


def main() -> None:
    """Measure, claim and record."""
    args = harness.parser(__doc__).parse_args()
    harness.keep_memory()
    sizes = Sizes(100, 20, 3, 1) if args.quick else Sizes()
    with harness.threads(1):
        tables, losses = structured(sizes)
        reference = liblinear(sizes)
        cells, words = linear(sizes), nonlinear(sizes, quick=args.quick)
        with TemporaryDirectory() as scratch:
            found = localized(blood_cells(None if args.quick else args.data, Path(scratch)))
    figures = {
        **sizes._asdict(),
        **{f"Structured SVM, {name}": rows for name, rows in tables.items()},
        "Mean loss on new examples": {name: {"loss": value} for name, value in losses.items()},
        "objective of classes, LIBLINEAR": reference,
        "Best box, sums over cells": cells,
        "Best box, functions of counts": words,
        **({"BoxLocalizer, bccd": found} if found else {}),
    }
    harness.record(
        "structure",
        figures,
        claims_of(tables, losses, reference, cells, words, found),
        title="Structured outputs and the best box",
        text=TEXT,
        quick=args.quick,
    )


if __name__ == "__main__":
    main()
