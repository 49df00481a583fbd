"""What compression costs: Fisher vectors as codes, and sparse maps against dense ones."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness
import numpy as np
from fisher import Split, fisher_vectors
from harness import claim, compare, seconds
from images import clothes
from sets import labeled_sets, one_class
from sklearn.preprocessing import LabelBinarizer
from sklearn.svm import LinearSVC
from svms import Linear, liblinear_is_here

from hilbin.estimators import MapSVC
from hilbin.images import FHOG
from hilbin.kernels import Chi2, Intersection
from hilbin.maps import AdditiveMap, ProductQuantizer, SparseMap
from hilbin.solvers.coded import PairRows

FISHER_C, FISHER_TOL = 10.0, 1e-2
# components of a part -> words: bits per component are log2(words) / components
WORDS = {
    1: (2, 4, 16, 256),
    4: (2, 4, 16, 256),
    6: (2, 8, 64, 256),
    8: (2, 4, 16, 256),
    10: (256,),
    16: (256,),
}
FORTY = (10, 256)  # a byte for 10 numbers of 4 bytes
NODES = 20
GRAM_ROWS = 512  # rows of a kernel matrix
COMPONENTS = (3, 4, 5, 6, 8, 10, 12, 16, 20, 26, 32)
SPARSE_C = 0.1
# panels of Figure 2: title -> column of the codes, and of the plain rows
PANELS = {
    "accuracy, %": ("accuracy, %", "accuracy, %"),
    "training, delayed expansion, s": ("delayed, s", "delayed, s"),
    "MB of codes": ("MB", "MB"),
    "accuracy, test rows coded too, %": ("accuracy, test rows coded too, %", "accuracy, %"),
    "training, immediate expansion, s": ("immediate, s", "delayed, s"),
    "MB of codes and words": ("MB, both", "MB"),
}
TEXT = (
    "Fisher vectors: scene15, dense SIFT on a grid of 6 pixels reduced to 64 dimensions, 128 "
    "Gaussians, 16,384 numbers; 1500 images to train on, 2985 to test, 15 classes; MapSVC, "
    f"hinge loss, C={FISHER_C:g}, to a gap of 1 %, one thread. The training rows "
    "are compressed; test rows are scored as they are, and in a column of their own as codes. "
    "Memory is that of the training rows as stored, a byte for every code; fewer words than 256 "
    "make it no smaller. The words are the same for any number of rows, and counted in a column "
    "of their own: so few rows as these are smaller than 256 words. The quantizer is trained on "
    "the same rows; its time is a column of its own. Sparse "
    f"maps: {NODES} nodes, trained with their own inner product, against AdditiveMap with the "
    "least number of components whose root mean square kernel error is no larger, float32; the "
    "time is that of the fit from rows to the model. Reading features is in nanoseconds per value, "
    "zeros included, of a pass for scores or for sums; a kernel matrix of "
    f"{GRAM_ROWS} rows, per value and entry of its lower half. LIBLINEAR is train -s 3 on the "
    "dense features (float64, as it stores them; C the same, no bias) to its default tolerance; "
    "its objective is compared with ours on the same features."
)

Table = dict[str, dict[str, Any]]


def train(rows: Any, split: Split, **options: Any) -> tuple[MapSVC, float]:
    """A machine on rows, and its seconds."""
    model = MapSVC(C=FISHER_C, tol=FISHER_TOL, **options)
    return model, seconds(lambda: model.fit(rows, split.y))


def compressed(split: Split) -> Table:
    """Accuracy, memory and seconds for every size of a part and number of words."""
    model, took = train(split.X, split)
    plain = {
        "bits": 32.0,
        "accuracy, %": 100 * model.score(split.X_test, split.y_test),
        "MB": split.X.nbytes / 1e6,
        "delayed, s": took,
        "passes": model.n_iter_,
    }
    table: Table = {"plain": plain}
    for size, counts in WORDS.items():
        for words in counts:
            quantizer = ProductQuantizer(size, n_words=words, random_state=0)
            learning = seconds(lambda q=quantizer: q.fit(split.X))
            codes, test = quantizer.transform(split.X), quantizer.transform(split.X_test)
            model, delayed = train(codes, split)
            immediate = train(codes, split, expansion="immediate")[1]
            table[f"G={size}, {words} words"] = {
                "bits": float(np.log2(words) / size),
                "accuracy, %": 100 * model.score(split.X_test, split.y_test),
                "accuracy, test rows coded too, %": 100 * model.score(test, split.y_test),
                "MB": codes.nbytes / 1e6,
                "MB of words": codes.words.nbytes / 1e6,
                "MB, both": (codes.nbytes + codes.words.nbytes) / 1e6,
                "delayed, s": delayed,
                "immediate, s": immediate,
                "passes": model.n_iter_,
                "learning the words, s": learning,
                "error": float(quantizer.error_),
            }
            print(f"G={size}, {words} words", table[f"G={size}, {words} words"], flush=True)
    return table


def map_sets(folder: Path | None, quick: bool) -> dict[str, Split]:
    """Pixels of usps, from 0 on, and HOG of clothes."""
    found = {}
    sets = labeled_sets(folder)
    if "usps" in sets:
        s = sets["usps"].sample(300 if quick else None, 300 if quick else None)
        low = s.X.min()
        rows = [(X - low).astype(np.float32) for X in (s.X, s.X_test)]
        found["usps"] = Split(rows[0], s.y, rows[1], s.y_test)
    data = clothes(folder, None)
    if data is not None:
        rows = 300 if quick else 5000
        cells = FHOG(8, (56, 56), color=False, n_jobs=2)
        train, test = cells.fit_transform(data.train[:rows]), cells.transform(data.test[:rows])
        found["fashion_mnist HOG"] = Split(train, data.y[:rows], test, data.y_test[:rows])
    return found


def equal_map(kernel: Any, X: Any, error: float) -> AdditiveMap:
    """The dense map of fewest components whose error is no larger, or the largest there is."""
    for count in COMPONENTS:
        found = AdditiveMap(kernel, count)
        if found.fit(X).error_.expected <= error:
            break
    return found


def sparse_maps(name: str, split: Split, rounds: int) -> Table:
    """Sparse against dense, chi-squared and intersection."""
    table: Table = {}
    for kernel in (Chi2(), Intersection()):
        label = type(kernel).__name__.lower()
        sparse = SparseMap(kernel, NODES)
        error = sparse.fit(split.X).error_.expected
        dense = equal_map(kernel, split.X, error)
        models = {
            "sparse": MapSVC(sparse, SPARSE_C),
            "dense": MapSVC(dense, SPARSE_C),
        }
        calls: dict[str, Callable[[], object]] = {
            kind: lambda m=model: m.fit(split.X, split.y) for kind, model in models.items()
        }
        times = compare(calls, rounds, patience=60)
        row: dict[str, Any] = {
            "components": dense.n_components,
            "error, sparse": error,
            "error, dense": float(dense.error_.expected),
        }
        for kind, model in models.items():
            row[f"{kind}, accuracy, %"] = 100 * model.score(split.X_test, split.y_test)
            row[f"{kind}, s"] = times[kind].best
            row[f"{kind}, passes"] = model.n_iter_
        table[f"{name}, {label}"] = row | {"faster": times["dense"].best / times["sparse"].best}
        print(name, label, table[f"{name}, {label}"], flush=True)
    return table


def pass_costs(name: str, split: Split, rounds: int) -> Table:
    """What limits training: nanoseconds per value of the rows (zeros count) to read features."""
    table: Table = {}
    for kernel in (Chi2(), Intersection()):
        feature_map = SparseMap(kernel, NODES).fit(split.X)
        dense = equal_map(kernel, split.X, feature_map.error_.expected).fit_transform(split.X)
        rows = PairRows(feature_map.transform(split.X), n_nodes=NODES)
        few, inner = np.arange(min(GRAM_ROWS, len(split.X))), feature_map.inner_.matrix()
        calls: dict[str, Callable[[], object]] = {
            "kernel matrix of pairs, an entry": lambda f=few, r=rows, k=inner: r.gram(
                f, np.empty((0, 0)), k
            )
        }
        for tasks in (1, 10):
            V, S = (np.ones((tasks, r.shape[1]), np.float32) for r in (rows, dense))
            T, classes = (
                np.ones((len(split.X), tasks), np.float32),
                "1 class" if tasks == 1 else f"{tasks} classes",
            )
            calls[f"pairs, scores of {classes}"] = lambda r=rows, v=V: r.scores(v)
            calls[f"pairs, sums of {classes}"] = lambda r=rows, t=T: r.gradient(t)
            calls[f"dense, scores of {classes}"] = lambda z=dense, v=S: z @ v.T
            calls[f"dense, sums of {classes}"] = lambda z=dense, t=T: t.T @ z
        times = compare(calls, rounds, patience=30, clock=time.thread_time)
        row = {k: 1e9 * t.best / split.X.size for k, t in times.items()}
        row["kernel matrix of pairs, an entry"] *= 2 * len(split.X) / few.size**2
        table[f"{name}, {type(kernel).__name__.lower()}"] = row
        print(name, table, flush=True)
    return table


def against_liblinear(name: str, split: Split) -> Table:
    """The same problem on the same explicit features, binary."""
    Z = AdditiveMap(Chi2()).fit_transform(split.X).astype(np.float32)
    y = one_class(split.y)
    sign = LabelBinarizer(neg_label=-1).fit_transform(y).ravel()

    def objective(w: Any) -> float:
        return float(0.5 * w @ w + np.maximum(0, 1 - sign * (Z @ w)).sum())

    own = MapSVC(fit_intercept=False)
    contenders: dict[str, Callable[[], Any]] = {
        "MapSVC": lambda: own.fit(Z, y).coef_[0],
        "LinearSVC": lambda: LinearSVC(loss="hinge", fit_intercept=False, tol=0.01,
                                       max_iter=10_000).fit(Z, y).coef_[0],
    }  # fmt: skip
    if liblinear_is_here():
        peer = Linear(Z, y)

        def liblinear() -> Any:
            model = peer.train("-s 3")
            return model.weights[:, 0] * (1 if model.labels[0] == y.max() else -1)

        contenders["LIBLINEAR"] = liblinear
    kept: dict[str, Any] = {}
    calls = {k: lambda k=k, c=c: kept.update({k: c()}) for k, c in contenders.items()}
    times = compare(calls, 3, patience=60)
    values = {k: objective(np.asarray(w, np.float64).ravel()) for k, w in kept.items()}
    best = min(values.values())
    return {
        f"{name}, {kind}": {
            "s": t.best,
            "objective": values[kind],
            "above": values[kind] / best - 1,
        }
        for kind, t in times.items()
    }


def figure(table: Table) -> list[dict[str, Any]]:
    """Figure 2 of the paper: accuracy, training time and memory over bits per component."""
    rows = {k: row for k, row in table.items() if k != "plain"}
    bits = sorted({round(row["bits"], 4) for row in rows.values()})

    def curve(size: int, height: str) -> list[float | None]:
        found = {
            round(r["bits"], 4): r[height] for k, r in rows.items() if k.startswith(f"G={size},")
        }
        return [found.get(b) for b in bits]

    panels = {
        title: {
            "plain": [table["plain"][plain]] * len(bits),
            **{f"G={size}": curve(size, column) for size in (1, 4, 6, 8)},
        }
        for title, (column, plain) in PANELS.items()
    }
    return [
        {
            "name": "pq-bits",
            "title": "Fisher vectors of scene15 as codes",
            "axis": "bits per component",
            "height": "",
            "x": bits,
            "ticks": [0.125, 0.25, 0.5, 1, 2, 4, 8],
            "log": True,
            "linear": [title for title in PANELS if title.startswith("accuracy")],
            "alike": True,
            "bounds": ["plain"],
            "panels": panels,
        }
    ]


def main() -> None:
    """Measure, claim and record."""
    args = harness.parser(__doc__).parse_args()
    harness.keep_memory()
    figures: dict[str, Any] = {}
    claims: list[Any] = []
    plots: list[Any] = []
    with harness.threads(1):
        maps: Table = {}
        costs: Table = {}
        for name, split in map_sets(args.data, args.quick).items():
            maps |= sparse_maps(name, split, 1 if args.quick else 3)
            costs |= pass_costs(name, split, 1 if args.quick else 5)
            if name == "usps":
                figures["The same features"] = against_liblinear(name, split)
        if maps:
            figures["Sparse and dense maps"] = maps
            figures["Reading pairs and dense features, ns per value"] = costs
            claims += harness.by_set("Sparse map, 20 nodes, training",
                                     {k: row["faster"] for k, row in maps.items()}, 3,
                                     against="dense map of equal error", kind="tasks")  # fmt: skip
            worst = min(r["sparse, accuracy, %"] - r["dense, accuracy, %"] for r in maps.values())
            claims.append(claim("Sparse map, accuracy, worst of all", worst, -0.3, unit=" points",
                                against="dense map of equal error"))  # fmt: skip
            above = figures["The same features"]["usps, MapSVC"]["above"]
            claims.append(claim("MapSVC, objective above the best", above, 1e-3, "<=", unit="",
                                against="LIBLINEAR, LinearSVC"))  # fmt: skip
        split_ = fisher_vectors(args.data, 6 if args.quick else None)
        if split_ is not None:
            table = compressed(split_)
            figures["Fisher vectors of scene15"] = table
            forty = table["G={}, {} words".format(*FORTY)]
            lost = table["plain"]["accuracy, %"] - forty["accuracy, %"]
            claims.append(claim("Codes of Fisher vectors, 40 times smaller, accuracy lost", lost,
                                1, "<=", unit=" points", against="float32",
                                headline=True))  # fmt: skip
            plots = figure(table)
    harness.record("pq_accuracy", figures, claims, title="Product quantization: what it costs",
                   text=TEXT, plots=plots, quick=args.quick)  # fmt: skip


if __name__ == "__main__":
    main()
