"""Model files: their size, what compact ones change, and how quickly models load and predict."""

import os
import tempfile
from pathlib import Path
from typing import Any

import harness
import joblib
import numpy as np
from data import Array, histograms
from harness import by_set
from pictures import pictures
from sklearn.pipeline import Pipeline, make_pipeline

import hilbin
from hilbin import ImageClassifier
from hilbin.auto import ChannelWeights
from hilbin.auto.image_data import channels_of
from hilbin.estimators import IntersectionSVC

FEATURES, BINS = "sift+centrist", 16
PER_CLASS = {"scene15": 30, "caltech101": 10}
PLAIN, COMPACT, PICKLE = "plain", "compact", "joblib, compressed"
PATIENCE, COPIES = 30.0, 3  # seconds of predictions, by so many copies of a model
TABLES, WEIGHTS = "look-up tables", "weights"
TEXT = (
    "hilbin.save(model, path, compact=True) beside a plain file and joblib.dump(compress=3). "
    "Photographs: ImageClassifier of SIFT and CENTRIST with 30 training images of each of 15 "
    "scenes, and 10 of each of 102 classes of Caltech-101. Its model of chi2 has float32 weights; "
    "the intersection SVM on the same weighted features, the other model that it chooses, has "
    "look-up tables. Drawn: IntersectionSVC with 31 bins on 500 rows of 4,000 bins, a "
    "tenth of which depend on the class. Changes are those of scores of test rows, over the "
    "standard deviation of the scores of their class: the root mean square, and the largest. "
    "Prediction is of rows of features, on one "
    "thread. Float32 weights cannot shrink to a quarter at this error: each needs about ten bits, "
    "and so they do even with the best step for every feature."
)


def drawn(classes: int, rows: int, bins: int) -> tuple[Any, Array]:
    """A model of drawn histograms, and rows to predict."""
    y = np.arange(rows) % classes
    own = np.random.default_rng(1).random((classes, bins)) < 0.1
    X = histograms(rows, bins, density=0.3) * np.where(own[y], 3, 1)
    X = (X / X.sum(axis=1, keepdims=True)).astype(np.float32)
    model = IntersectionSVC(n_bins=31).fit(X[: rows // 2], y[: rows // 2])
    return model, X[rows // 2 :]


def measure(model: Any, predict: Any, folder: Path) -> dict[str, float]:
    """Sizes, seconds and change of scores; ``predict`` scores rows by a model."""
    files = {name: folder / f"{name}.hilbin" for name in (PLAIN, COMPACT)}
    saving = harness.seconds(lambda: hilbin.save(model, files[COMPACT], compact=True))
    hilbin.save(model, files[PLAIN])
    joblib.dump(model, folder / "model.joblib", compress=3)
    sizes = {name: os.path.getsize(path) / 1e6 for name, path in files.items()}
    loaded = {name: hilbin.load(path) for name, path in files.items()}
    loading = harness.compare(
        {name: lambda p=path: hilbin.load(p) for name, path in files.items()}, 5
    )
    predicting = _predicting(files, predict)
    exact, rounded = (np.atleast_2d(predict(loaded[name]).T) for name in (PLAIN, COMPACT))
    change = (rounded - exact) / exact.std(axis=1, keepdims=True)
    return {
        "plain, MB": sizes[PLAIN],
        "compact, MB": sizes[COMPACT],
        f"{PICKLE}, MB": os.path.getsize(folder / "model.joblib") / 1e6,
        "smaller": sizes[PLAIN] / sizes[COMPACT],
        "typical change": float(np.sqrt(np.square(change).mean())),
        "largest change": float(np.abs(change).max()),
        "other labels": float(np.mean(_labels(rounded) != _labels(exact))),
        "save compact, s": saving,
        "load plain, s": loading[PLAIN].best,
        "load compact, s": loading[COMPACT].best,
        "predict compact / plain": predicting[COMPACT] / predicting[PLAIN],
    }


def _predicting(files: dict[str, Path], predict: Any) -> dict[str, float]:
    """Seconds of a prediction; the best of some copies, as some lie better in memory."""
    copies = {(name, i): hilbin.load(path) for i in range(COPIES) for name, path in files.items()}
    calls: Any = {key: lambda m=one: predict(m) for key, one in copies.items()}
    found: Any = harness.compare(calls, 100, patience=PATIENCE)
    return {name: min(found[name, i].best for i in range(COPIES)) for name in files}


def _labels(scores: Array) -> Array:
    return scores.argmax(axis=0) if len(scores) > 1 else scores[0] > 0


def photographs(data: Path | None, folder: Path, quick: bool) -> dict[str, dict[str, float]]:
    """What is measured of classifiers of images; nothing without the sets."""
    found = {}
    for name, per_class in PER_CLASS.items():
        images = pictures(data, name, folder)
        if images is None:
            continue
        some = images.sample(2 if quick else per_class)
        model = ImageClassifier(FEATURES, kernel="chi2").fit(some.train, some.y)
        features, title = model.model_[0], f"{name}, {len(model.classes_)} classes"
        A, B = features.transform(some.train), features.transform(some.test[:500])
        found[f"{title}, {WEIGHTS}"] = measure(
            model, lambda m, rows=B: m.model_[1].decision_function(rows), folder
        )
        weigh = ChannelWeights(channels_of(features))
        svm = make_pipeline(weigh, IntersectionSVC(n_bins=BINS, scope="all")).fit(A, some.y)
        both = Pipeline([("features", features), ("classifier", svm)])
        found[f"{title}, {TABLES}"] = measure(
            both, lambda m, rows=B: m[1].decision_function(rows), folder
        )
        print(title, found, flush=True)
    return found


def main() -> None:
    """Measure, claim, record."""
    args = harness.parser(__doc__).parse_args()
    sizes = [(15, 1000, 4000), (102, 1000, 4000)] if not args.quick else [(5, 200, 800)]
    found: dict[str, dict[str, float]] = {}
    with harness.threads(1), tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for classes, rows, bins in sizes:
            model, X = drawn(classes, rows, bins)
            found[f"drawn, {classes} classes, {TABLES}"] = measure(
                model, lambda m, X=X: m.decision_function(X), folder
            )
        found |= photographs(args.data, folder, args.quick)
    tables = {name: f for name, f in found.items() if name.endswith(TABLES)}
    weights = {name: f for name, f in found.items() if name.endswith(WEIGHTS)}

    def each(of: dict[str, dict[str, float]], figure: str) -> dict[str, float]:
        return {name: f[figure] for name, f in of.items()}

    claims = [
        *by_set("compact files of look-up tables are smaller", each(tables, "smaller"), 4,
                against="plain files", headline=False),
        *by_set("compact files of float32 weights are smaller", each(weights, "smaller"), 2.5,
                against="plain files", headline=False),
        *by_set("typical change of a score, in standard deviations",
                each(found, "typical change"), 1e-3, "<=", against="plain files", unit="",
                headline=False),
        *by_set("largest change of a score, in standard deviations",
                each(found, "largest change"), 1e-3, "<=", against="plain files", unit="",
                headline=False),
        *by_set("time to predict", each(found, "predict compact / plain"), 1.1, "<=",
                against="models of plain files", headline=False),
    ]  # fmt: skip
    record = {"title": "Model files", "text": TEXT, "quick": args.quick}
    harness.record("files", {"models": found}, claims, **record)


if __name__ == "__main__":
    harness.keep_memory()
    main()
