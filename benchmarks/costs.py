"""What a fit and a prediction cost, by rows, features, classes and support vectors.

Four ways to learn from histograms, on data drawn alike at every size; one thread.
"""

import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import harness
import numpy as np
from data import Array
from sklearn.exceptions import ConvergenceWarning

from hilbin.estimators import IntersectionSVC, KernelSVC, MapRidgeClassifier, MapSVC
from hilbin.kernels import Chi2, Exponential
from hilbin.maps import AdditiveMap, FourierMap

TEXT = (
    "Rows are histograms of d bins, drawn around three centers of each class, half of every row "
    "being noise. One thread and its processor time, default parameters, best of rounds. The "
    "exact machine has the exponential chi-squared kernel; the map of MapSVC has "
    "3 features for every bin, that of MapRidgeClassifier 1000 random features of the same kernel. "
    "An estimator that took longer than the limit is not tried on more rows. "
    "Growth is the time of twice as many rows, features or classes over the time of the size in "
    "the middle: 2 is linear, 4 quadratic, 1 means that it costs nothing. Support vectors "
    "are as many as the exact machine has found; the other models have none."
)
Made = Callable[[], Any]
Table = dict[str, dict[str, float]]


def exp_chi2() -> Exponential:
    return Exponential(Chi2(), gamma="median")


ESTIMATORS: dict[str, Made] = {
    "KernelSVC, exp-chi2": lambda: KernelSVC(exp_chi2(), C=10.0),
    "IntersectionSVC": IntersectionSVC,
    "MapSVC, chi2 map": lambda: MapSVC(AdditiveMap(Chi2(), 3)),
    "MapRidgeClassifier, 1000 features": lambda: MapRidgeClassifier(
        FourierMap(Exponential(Chi2()), 1000, random_state=0)
    ),
}


class Size(NamedTuple):
    """The size of a problem."""

    rows: int
    bins: int
    classes: int


class Sizes(NamedTuple):
    """How much is measured."""

    rows: tuple[int, ...] = (250, 500, 1000, 2000, 4000, 8000, 16_000)
    bins: int = 64
    classes: int = 5
    growth_rows: int = 2000
    limit: float = 12.0
    test_rows: int = 1000
    rounds: int = 2


QUICK = Sizes((100, 200), 16, 3, 200, 5.0, 50, 1)


def drawn(size: Size, seed: int = 0) -> tuple[Array, Array]:
    """Rows around three centers of each class, and the classes; centers are the same for all n."""
    rng = np.random.default_rng(0)
    centers = rng.dirichlet(np.full(size.bins, 0.3), (size.classes, 3))
    rng = np.random.default_rng(seed)
    y = rng.integers(size.classes, size=size.rows)
    own = centers[y, rng.integers(3, size=size.rows)]
    noise = rng.dirichlet(np.full(size.bins, 0.3), size.rows)
    return (0.5 * own + 0.5 * noise).astype(np.float32), y


def timed(make: Made, size: Size, sizes: Sizes) -> dict[str, float]:
    """Seconds of a fit, and of the scores of some rows."""
    X, y = drawn(size)
    test, _ = drawn(size._replace(rows=sizes.test_rows), seed=1)
    fits: list[float] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for _ in range(sizes.rounds):
            model = make()
            fits.append(harness.seconds(lambda m=model: m.fit(X, y), time.thread_time))
            if fits[-1] > sizes.limit / 2:
                break
    asked = min(
        harness.seconds(lambda: model.decision_function(test), time.thread_time) for _ in range(5)
    )
    support = getattr(model, "support_", np.empty(0))
    return {"fit": min(fits), "predict": asked / len(test), "vectors": float(len(support))}


def by_rows(sizes: Sizes) -> dict[str, dict[int, dict[str, float]]]:
    """Times of every estimator by the number of rows, until it takes too long."""
    found: dict[str, dict[int, dict[str, float]]] = {name: {} for name in ESTIMATORS}
    for name, make in ESTIMATORS.items():
        for rows in sizes.rows:
            times = timed(make, Size(rows, sizes.bins, sizes.classes), sizes)
            found[name][rows] = times
            print(name, rows, {k: round(v, 6) for k, v in times.items()}, flush=True)
            if times["fit"] > sizes.limit:
                break
    return found


def growth(sizes: Sizes) -> tuple[Table, Table]:
    """What doubling rows, features or classes does to the time of a fit, and of a prediction."""
    middle = Size(sizes.growth_rows, sizes.bins, sizes.classes)
    larger = {
        "rows": middle._replace(rows=2 * middle.rows),
        "features": middle._replace(bins=2 * middle.bins),
        "classes": middle._replace(classes=2 * middle.classes),
    }
    fits: Table = {}
    scores: Table = {}
    for name, make in ESTIMATORS.items():
        base = timed(make, middle, sizes)
        fits[name] = {"fit, s": base["fit"]}
        scores[name] = {"scores of a row, µs": 1e6 * base["predict"]}
        for what, size in larger.items():
            times = timed(make, size, sizes)
            fits[name][f"twice the {what}"] = times["fit"] / base["fit"]
            scores[name][f"twice the {what}"] = times["predict"] / base["predict"]
        if base["vectors"]:
            scores[name]["support vectors"] = base["vectors"]
    return fits, scores


def per_unit(table: Table, sizes: Sizes) -> Table:
    """Nanoseconds of a prediction per feature, class and support vector."""
    units = {}
    for name, row in table.items():
        ns = 1e3 * row["scores of a row, µs"]
        units[name] = {"per row and feature, ns": ns / sizes.bins}
        units[name] |= {"per row, feature and class, ns": ns / sizes.bins / sizes.classes}
        if vectors := row.get("support vectors"):
            units[name]["per row, feature and support vector, ns"] = ns / sizes.bins / vectors
    return units


def panels(found: dict[str, dict[int, dict[str, float]]], sizes: Sizes) -> list[dict[str, Any]]:
    """Curves over rows."""
    shown = {"time of a fit, s": ("fit", 1.0), "scores of 1000 rows, s": ("predict", 1000.0)}
    return [
        {
            "name": "costs",
            "title": f"{sizes.bins} features, {sizes.classes} classes, one thread",
            "axis": "rows to learn from",
            "height": "seconds",
            "x": list(sizes.rows),
            "log": True,
            "panels": {
                title: {
                    name: [factor * times[n][key] if n in times else None for n in sizes.rows]
                    for name, times in found.items()
                }
                for title, (key, factor) in shown.items()
            },
        }
    ]


def main() -> None:
    """Measure and record."""
    args = harness.parser(__doc__).parse_args()
    harness.keep_memory()
    sizes = QUICK if args.quick else Sizes()
    with harness.threads(1):
        found, (fits, scores) = by_rows(sizes), growth(sizes)
    figures = {
        **sizes._asdict(),
        "Growth of fits": fits,
        "Growth of scores": scores,
        "Scores, per unit": per_unit(scores, sizes),
        "Fits by rows, s": {
            name: {str(n): t["fit"] for n, t in times.items()} for name, times in found.items()
        },
    }
    harness.record(
        "costs", figures, [], title="What a fit and a prediction cost", text=TEXT,
        plots=panels(found, sizes), quick=args.quick,
    )  # fmt: skip


if __name__ == "__main__":
    main()
