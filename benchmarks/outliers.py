"""Outliers and one-class ranking on real data (Lampert, chapter 5).

Three tasks: flights of the shuttle's radiators that are not the normal ones; digits of USPS among
which some are mislabeled; and photographs like a few given ones. Figures are areas under the ROC
curve, or mean average precision. Peers are scikit-learn's detectors as they are.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import harness
import numpy as np
from data import Array
from pictures import pictures
from sets import Labeled, labeled_sets, random_rows
from sklearn.ensemble import IsolationForest
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from hilbin.estimators import SVDD, KernelOneClass
from hilbin.images import Centrist, SpatialPyramid
from hilbin.kernels import Chi2, Exponential, Gaussian, Intersection, Laplace

NU = 0.1
TEXT = (
    "Shuttle: trained on 5,000 rows of class 1 alone, scored on the test rows, standardized. "
    "USPS: all rows of a digit and a tenth of rows of other digits, unlabeled; who is found? Mean "
    "over the digits. Photographs: scene15, ten given photographs of a class rank all others; mean "
    "over 15 classes and 5 draws; CENTRIST words in a pyramid. Areas under the ROC curve, mean "
    "average precision for the photographs; 0.5 is chance for the areas."
)


class Sizes(NamedTuple):
    """How much is measured."""

    rows: int = 5000
    digits: int = 10
    draws: int = 5
    pictures: int | None = None


def detectors() -> dict[str, Callable[[], Any]]:
    """Ours with several kernels, and those of scikit-learn."""
    return {
        "one-class, Gaussian": lambda: KernelOneClass(Gaussian(gamma="median"), nu=NU),
        "one-class, Laplace": lambda: KernelOneClass(Laplace(gamma="median"), nu=NU),
        "SVDD, Laplace": lambda: SVDD(Laplace(gamma="median"), nu=NU),
        "OneClassSVM": lambda: OneClassSVM(nu=NU),
        "IsolationForest": lambda: IsolationForest(random_state=0),
        "LocalOutlierFactor": lambda: LocalOutlierFactor(novelty=True),
    }


def histogram_detectors() -> dict[str, Callable[[], Any]]:
    """The same for histograms."""
    return {
        "one-class, exp-chi2": lambda: KernelOneClass(Exponential(Chi2(), "median"), nu=NU),
        "one-class, intersection": lambda: KernelOneClass(Intersection(), nu=NU),
        "SVDD, intersection": lambda: SVDD(Intersection(), nu=NU),
        "OneClassSVM": lambda: OneClassSVM(nu=NU),
        "IsolationForest": lambda: IsolationForest(random_state=0),
    }


def normal_flights(s: Labeled, rows: int) -> dict[str, dict[str, float]]:
    """Area under the curve of every detector that saw normal rows only."""
    normal = s.X[s.y == 1]
    X = normal[random_rows(len(normal), rows)]
    scale = StandardScaler().fit(X)
    table = {}
    for name, make in detectors().items():
        model = make()
        seconds = harness.seconds(lambda model=model: model.fit(scale.transform(X)))
        scores = model.decision_function(scale.transform(s.X_test))
        table[name] = {
            "area": float(roc_auc_score(s.y_test == 1, scores)),
            "training, s": seconds,
        }
    return table


def mislabeled_digits(s: Labeled, digits: int) -> dict[str, dict[str, float]]:
    """Mean area under the curve of finding the rows of other digits among those of one."""
    areas: dict[str, list[float]] = {}
    for digit in np.unique(s.y)[:digits]:
        own, others = np.flatnonzero(s.y == digit), np.flatnonzero(s.y != digit)
        wrong = others[random_rows(others.size, own.size // 10, seed=int(digit))]
        X, good = np.vstack([s.X[own], s.X[wrong]]), np.repeat([1, 0], [own.size, wrong.size])
        for name, make in histogram_detectors().items():
            scores = make().fit(X).decision_function(X)
            areas.setdefault(name, []).append(float(roc_auc_score(good, scores)))
    return {name: {"area": float(np.mean(found))} for name, found in areas.items()}


def photographs(folder: Path | None, most: int | None) -> tuple[Array, Array] | None:
    """Histograms of all photographs, and their classes."""
    with tempfile.TemporaryDirectory() as scratch:
        found = pictures(folder, "scene15", Path(scratch))
        if found is None:
            return None
        files, y = [*found.train, *found.test], np.concatenate([found.y, found.y_test])
        some = random_rows(len(files), most)
        files = list(np.asarray(files, dtype=object)[some])
        return SpatialPyramid(Centrist(), 2).fit_transform(files), y[some]


def ranking(X: Array, y: Array, draws: int, given: int = 10) -> dict[str, dict[str, float]]:
    """Mean average precision of photographs ranked by a few given ones."""
    kernel = Exponential(Chi2(), "median").resolve(X, random_state=0)
    K, linear = kernel.gram(X), X @ X.T
    found: dict[str, list[float]] = {}
    for c in np.unique(y):
        for draw in range(draws):
            own = np.flatnonzero(y == c)
            query = own[random_rows(own.size, given, seed=draw)]
            rest = np.setdiff1d(np.arange(y.size), query)
            machine = KernelOneClass("precomputed", nu=0.5).fit(K[np.ix_(query, query)])
            scores = {
                "one-class, exp-chi2": machine.decision_function(K[np.ix_(rest, query)]),
                "mean similarity, exp-chi2": K[np.ix_(rest, query)].mean(axis=1),
                "OneClassSVM": OneClassSVM(nu=0.5).fit(X[query]).decision_function(X[rest]),
                "mean inner product": linear[np.ix_(rest, query)].mean(axis=1),
            }
            for name, s in scores.items():
                precision = average_precision_score(y[rest] == c, s)
                found.setdefault(name, []).append(float(precision))
    return {name: {"precision": float(np.mean(values))} for name, values in found.items()}


def main() -> None:
    """Measure and record."""
    args = harness.parser(__doc__).parse_args()
    sizes = Sizes(500, 2, 1, 300) if args.quick else Sizes()
    tables: dict[str, Any] = {}
    with harness.threads(1):
        sets = labeled_sets(args.data, ("shuttle", "usps"))
        if "shuttle" in sets:
            tables["Shuttle, area"] = normal_flights(sets["shuttle"], sizes.rows)
        if "usps" in sets:
            tables["Mislabeled digits, area"] = mislabeled_digits(
                sets["usps"].scaled(), sizes.digits
            )
        rows = photographs(args.data, sizes.pictures)
        if rows is not None:
            tables["Photographs, mean average precision"] = ranking(*rows, sizes.draws)
    for title, table in tables.items():
        print(title, *(f"  {k}: {v}" for k, v in table.items()), sep="\n")
    harness.record(
        "outliers",
        {**{k: v for k, v in sizes._asdict().items() if v is not None}, **tables},
        [],
        title="Outliers and one-class ranking",
        text=TEXT,
        quick=args.quick,
    )


if __name__ == "__main__":
    main()
