"""How close random frequencies and landmarks come to the exponential of chi-squared.

Errors on rows not seen in ``fit``, by the number of features, mean over seeds. No times.
"""

from typing import Any, NamedTuple

import harness
import numpy as np
from data import Array, real_histograms
from maps import by_set, frobenius

from hilbin.kernels import Chi2, Exponential, Kernel
from hilbin.maps import AdditiveMap, FourierMap, NystroemMap

ROWS = {"digits": (897, 900), "leaves100 texture": (800, 800), "usps": (2000, 1000)}
KINDS = ("gaussian", "qmc", "structured", "orthogonal")
RULES = ("uniform", "kmeans++")
NARROW = "Error at {} features per row by kind of frequencies and features per value"
TEXT = (
    "The relative Frobenius error of the Gram matrix of Exponential(Chi2), gamma the inverse of "
    "the mean distance, on rows not seen in fit; mean of 5 seeds. Rows sum to 1. Frequencies are "
    "drawn for AdditiveMap's 5 features per value: independent (gaussian), orthogonal, structured "
    "and evenly spread (qmc) ones. Landmarks (NystroemMap) see the data, of which there must be as "
    "many rows (cells are empty where there are not); frequencies do not. Orthogonality gains in "
    "proportion to the share of the directions that the frequencies fill. On usps 512 frequencies "
    "are 40 % of 1280 inputs (bins times features per value); orthogonal in all of them they had "
    "0.87 times the error of independent ones at 1024 features. They are now orthogonal in as many "
    "principal directions of the data as they can fill, and independent across."
)

Errors = dict[str, dict[str, Array]]


class Sizes(NamedTuple):
    """How much is measured."""

    part: int = 1  # one row in so many
    seeds: int = 5
    dimensions: tuple[int, ...] = (512, 1024, 2048)


def make_map(name: str, kernel: Kernel, dimension: int, seed: int) -> Any:
    """A map by the kind of its frequencies or the rule for its landmarks."""
    if name in KINDS:
        return FourierMap(kernel, dimension, kind=name, random_state=seed)
    return NystroemMap(kernel, dimension, landmarks=name, random_state=seed)


def error(unfitted: Any, fit: Array, held: Array, K: Array) -> float:
    """Of a map, on rows it has not seen."""
    return frobenius(K, unfitted.fit(fit).transform(held))


def measure(fit: Array, held: Array, sizes: Sizes) -> Errors:
    """Frobenius errors by map and dimension, one for each seed."""
    kernel = Exponential(Chi2(), gamma="mean").resolve(fit, random_state=0)
    K = kernel.gram(held)
    found: Errors = {name: {} for name in (*KINDS, *RULES)}
    for name, by_dimension in found.items():
        for dimension in sizes.dimensions:
            if name in RULES and dimension > len(fit):
                continue
            maps = [make_map(name, kernel, dimension, seed) for seed in range(sizes.seeds)]
            by_dimension[str(dimension)] = np.array([error(m, fit, held, K) for m in maps])
    return found


def by_map(fit: Array, held: Array, sizes: Sizes) -> dict[str, float]:
    """Errors of both kinds at the second dimension, by features per value of the map."""
    kernel = Exponential(Chi2(), gamma="mean").resolve(fit, random_state=0)
    K, found = kernel.gram(held), {}
    for kind in ("gaussian", "orthogonal"):
        for n in (1, 2, 3, 5):
            additive = AdditiveMap(Chi2(), n)
            maps = [
                FourierMap(
                    kernel, sizes.dimensions[1], kind=kind, feature_map=additive, random_state=seed
                )
                for seed in range(sizes.seeds)
            ]
            found[f"{kind}, {n}"] = float(np.mean([error(m, fit, held, K) for m in maps]))
    return found


def ratios(errors: Errors, name: str) -> dict[str, float]:
    """Mean error over that of independent frequencies, by dimension."""
    return {d: e.mean() / errors["gaussian"][d].mean() for d, e in errors[name].items()}


def label(name: str) -> str:
    """As it is shown."""
    return f"{'frequencies' if name in KINDS else 'landmarks'}, {name}"


def make_tables(sets: dict[str, Errors]) -> dict[str, dict[str, Any]]:
    """Means, deviations and ratios, a row for each set and map."""
    rows = [(f"{s}: {label(m)}", errors, m) for s, errors in sets.items() for m in errors]
    return {
        "Error by features per row": {
            row: {d: float(e.mean()) for d, e in errors[m].items()} for row, errors, m in rows
        },
        "Its standard deviation over seeds": {
            row: {d: float(e.std()) for d, e in errors[m].items()} for row, errors, m in rows
        },
        "Over the error of independent frequencies": {
            row: ratios(errors, m) for row, errors, m in rows if m != "gaussian"
        },
    }


def make_plot(sets: dict[str, Errors], dimensions: tuple[int, ...]) -> dict[str, Any]:
    """Curves for :mod:`render`, one panel for each set."""
    return {
        "name": "maps-random",
        "title": "Exponential(Chi2) by explicit features: error on new rows",
        "axis": "features per row",
        "height": "relative Frobenius error",
        "x": list(dimensions),
        "panels": {
            s: {
                label(m): [float(e[str(d)].mean()) if str(d) in e else None for d in dimensions]
                for m, e in errors.items()
            }
            for s, errors in sets.items()
        },
        "strong": [label("orthogonal")],
        "log": True,
    }


def main() -> None:
    """Measure, claim and record."""
    args = harness.parser(__doc__).parse_args()
    sizes = Sizes(2, 1, (64, 128, 256)) if args.quick else Sizes()
    real = real_histograms(args.data)
    splits = {
        name: (real[name][: fit // sizes.part], real[name][fit : fit + held // sizes.part])
        for name, (fit, held) in ROWS.items()
        if name in real
    }
    sets = {name: measure(*split, sizes) for name, split in splits.items()}
    narrow = {name: by_map(*split, sizes) for name, split in splits.items()}
    later = [str(d) for d in sizes.dimensions[1:]]
    gains = {s: max(ratios(e, "orthogonal")[d] for d in later) for s, e in sets.items()}
    what = f"FourierMap, orthogonal, error at {' and '.join(later)} features"
    harness.record(
        "maps_random",
        {"seeds": sizes.seeds, **make_tables(sets), NARROW.format(sizes.dimensions[1]): narrow},
        by_set(what, gains, 0.75, "<=", against="independent frequencies"),
        title="Features of exponential kernels: accuracy",
        text=TEXT,
        plots=[make_plot(sets, sizes.dimensions)],
        quick=args.quick,
    )


if __name__ == "__main__":
    main()
