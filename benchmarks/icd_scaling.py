"""What the layout of the tables gains, and how the time of a sweep grows with rows and features.

One thread. Against the tables of the paper, which this benchmark compiles with the library's own
descent, and LIBLINEAR.
"""

from typing import Any, NamedTuple

import harness
import numpy as np
from data import Array
from harness import Timing, by_set, claim, compare
from native import OtherRows, library
from sets import bag_of_words, centrist, labeled_sets, one_class, over_dispersed
from svms import LIBLINEAR, ONE_PASS, SOLVER, Coded, Linear, liblinear_is_here

from hilbin.solvers import Hinge, icd
from hilbin.solvers.lookup import Levels, LookupRows

OWN, PAPER, PEER = "hilbin", "table of the paper", "LIBLINEAR"
MEANS = {15: 3.0, 100: 30.0}  # of counts, by the largest
TEXT = (
    "One thread, best of interleaved rounds, freed memory kept in the process. Layout: "
    "seconds from codes to a solution at the tolerance 0.1, packing and certificate included,"
    " with the layout that the data choose and with the paper's, one table of values per "
    "feature, as long as the feature has levels, for dense rows or lists of entries, "
    "whichever sweeps faster. Both run the same compiled descent, and the same sweeps up to "
    "rounding. Bag-of-words rows (20,000 of 1000 bins) and CENTRIST-like rows (8000 of 2000) "
    "are synthetic counts, not quantized; of the real sets, most frequent class against the "
    "rest, at most 10,000 rows are used. Values that are not quantized have tables over all "
    "of them, in blocks of blocks or, for comparison, Fenwick pairs. The gain over the "
    "paper's grows with the number of levels, as the plots show too. Growth: whole sweeps "
    "with the diagonal, over random labels, so that rows keep changing the tables; counts are"
    " Poisson with gamma intensities, cut off at 15 or 100. LIBLINEAR's is one pass (-e 1e10)"
    " over the same counts divided by the largest; it skips zeros. The time is proportional "
    "to the number of values as long as the caches hold: with many rows every code comes from"
    " memory once per sweep, in random order of rows, and with many features the tables, half"
    " a kilobyte each at 100 levels, outgrow the first and then the second cache. The "
    "exponent is the slope of a line through the points of log time over log size: start-up "
    "costs of short sweeps lower it, cache misses raise it."
)

Table = dict[str, dict[str, Any]]
Curves = dict[str, list[float]]


class Sizes(NamedTuple):
    """How much is measured."""

    words: tuple[int, int] = (20_000, 1000)
    centrist: tuple[int, int] = (8000, 2000)
    most_rows: int = 10_000
    features: int = 20
    most_exponent: int = 6  # rows up to 10 to the power of
    few_rows: int = 5000
    most_features: int = 1024
    sweeps: int = 5
    rounds: int = 5
    patience: float = 24.0
    exact: tuple[tuple[int, int, int], ...] = ((40_000, 9, 1), (40_000, 9, 9), (20_000, 50, 9))


QUICK = Sizes((300, 50), (200, 60), 200, 5, 4, 200, 32, 3, 1, exact=((300, 3, 1),))


def layouts(X: Any, y: Array, loss: str, rounds: int, patience: float) -> dict[str, Any]:
    """Seconds to the tolerance by layout."""
    coded = Coded(X, y, loss=loss)
    levels = coded.levels()
    plain = {d: OtherRows(levels, "plain", dense=d) for d in (True, False)}
    calls = {f"{d}": lambda given=rows: coded.sweep(given) for d, rows in plain.items()}
    sweeps = compare(calls, rounds, patience=patience / 10)
    dense = sweeps["True"].best < sweeps["False"].best
    last: dict[str, Any] = {}
    calls = {
        OWN: lambda: last.update(own=coded.solve(LookupRows(coded.levels()))),
        PAPER: lambda: coded.solve(OtherRows(coded.levels(), "plain", dense=dense)),
    }
    times = compare(calls, rounds, patience=patience)
    return {
        "rows": y.size,
        "most levels": int(np.diff(levels.offsets).max()),
        "sweeps": last["own"][0].n_iter,
        "hilbin, s": times[OWN].best,
        "paper, s": times[PAPER].best,
        "the paper's rows": "dense" if dense else "entries",
        "gain": times[PAPER].best / times[OWN].best,
    }


def exact(rows: int, features: int, decimals: int, rounds: int) -> dict[str, Any]:
    """Seconds to the tolerance on values that are not quantized, by blocks and by Fenwick pairs."""
    rng = np.random.default_rng(0)
    X = np.round(rng.gamma(2.0, 10.0, (rows, features)), decimals)
    y = np.where(np.sin(X[:, 0] / 10) + X[:, 1] / 40 + 0.2 * rng.standard_normal(rows) > 0.5, 1, -1)
    levels = Levels.from_values(X)
    problem = Hinge(squared=True).problem(y, 1e-3, constant=10.0)
    own, other = LookupRows(levels), OtherRows(levels, "fenwick")
    tables = {"blocks": own, "Fenwick": other}
    cells = {"blocks": own.layout.n_cells, "Fenwick": other.n_cells}
    times = compare({n: lambda t=t: icd(t, problem) for n, t in tables.items()}, rounds)
    return {
        "rows": rows,
        "features": features,
        "most levels": int(np.diff(levels.offsets).max()),
        **{f"{name}, s": t.best for name, t in times.items()},
        **{f"{name}, MB": 4e-6 * count for name, count in cells.items()},
        "gain": times["Fenwick"].best / times["blocks"].best,
    }


def sweep_times(X: Array, y: Array, sizes: Sizes) -> dict[str, Timing]:
    """Seconds of one sweep over counts, of every contender."""
    coded = Coded(X, y)
    levels = coded.levels()
    both: dict[str, LookupRows] = {OWN: LookupRows(levels)}
    if library():
        both[PAPER] = OtherRows(levels, "plain", dense=True)
    calls: dict[str, Any] = {
        name: lambda rows=rows: coded.sweep(rows, sizes.sweeps) for name, rows in both.items()
    }
    if LIBLINEAR:
        peer = Linear(X / X.max(), y)
        calls[PEER] = lambda: peer.train("-s 1", ONE_PASS)
    times = compare(calls, sizes.rounds, patience=sizes.patience)
    return {n: t if n == PEER else t.scaled(1 / sizes.sweeps) for n, t in times.items()}


def growth(shapes: list[tuple[int, int]], sizes: Sizes) -> dict[str, Curves]:
    """Seconds of one sweep at every shape, by kind of counts and contender."""
    found: dict[str, Curves] = {}
    most = tuple(np.max(shapes, axis=0))
    for largest, mean in MEANS.items():
        rng = np.random.default_rng(0)
        X = np.minimum(over_dispersed(np.full(most, mean), 1.5, rng), largest)
        y = rng.choice([-1, 1], most[0])
        curves = found[f"counts to {largest}"] = {}
        for n, d in shapes:
            for name, t in sweep_times(X[:n, :d], y[:n], sizes).items():
                curves.setdefault(name, []).append(t.best)
    return found


def exponents(lengths: list[int], seconds: dict[str, Curves]) -> Table:
    """Slope of log time over log length."""
    return {
        kind: {
            name: float(np.polyfit(np.log(lengths), np.log(each), 1)[0])
            for name, each in curves.items()
        }
        for kind, curves in seconds.items()
    }


def make_plot(
    what: str, shapes: list[tuple[int, int]], seconds: dict[str, Curves]
) -> dict[str, Any]:
    """Curves for :mod:`render`: nanoseconds per value over the number of rows or features."""
    at = 0 if what == "rows" else 1
    return {
        "name": f"icd-{what}",
        "title": f"One sweep over the data, by the number of {what}",
        "axis": what,
        "height": "ns per value",
        "x": [shape[at] for shape in shapes],
        "ticks": [shape[at] for shape in shapes][:: 2 if what == "rows" else 1],
        "log": True,
        "panels": {
            kind: {
                name: [1e9 * t / (n * d) for t, (n, d) in zip(each, shapes, strict=True)]
                for name, each in curves.items()
            }
            for kind, curves in seconds.items()
        },
    }


def table_of(plot: dict[str, Any]) -> Table:
    """What a plot shows, in numbers."""
    return {
        f"{kind}: {name}": {f"{x}": v for x, v in zip(plot["x"], values, strict=True)}
        for kind, curves in plot["panels"].items()
        for name, values in curves.items()
    }


def all_layouts(folder: Any, sizes: Sizes) -> tuple[Table, Table]:
    """The table of synthetic sets, and that of real ones."""
    if not library():
        return {}, {}
    made = {
        "bag of words": bag_of_words(*sizes.words),
        "CENTRIST-like": centrist(*sizes.centrist),
    }
    synthetic = {
        f"{name}, {loss}": layouts(X, y, loss, sizes.rounds, sizes.patience)
        for name, (X, y) in made.items()
        for loss in SOLVER
    }
    real: Table = {}
    for name, s in labeled_sets(folder).items():
        part = s.sample(sizes.most_rows)
        for loss in SOLVER:
            y = one_class(part.y)
            real[f"{name}, {loss}"] = layouts(part.X, y, loss, sizes.rounds, sizes.patience / 3)
    return synthetic, real


def main() -> None:
    """Measure, claim and record."""
    args = harness.parser(__doc__).parse_args()
    harness.keep_memory()
    sizes = QUICK if args.quick else Sizes()
    liblinear_is_here()
    rows = sorted(c * 10**e for e in range(3, sizes.most_exponent) for c in (1, 3))
    rows.append(10**sizes.most_exponent)
    by_rows = [(n, sizes.features) for n in rows]
    features = [2**k for k in range(3, sizes.most_features.bit_length())]
    by_features = [(sizes.few_rows, d) for d in features]
    with harness.threads(1):
        synthetic, real = all_layouts(args.data, sizes)
        unquantized = {
            f"{rows} rows, {features} features, {decimals} decimals": exact(
                rows, features, decimals, sizes.rounds
            )
            for rows, features, decimals in sizes.exact
            if library()
        }
        plots, slopes = [], {}
        for what, shapes, lengths in (
            ("rows", by_rows, rows),
            ("features", by_features, features),
        ):
            seconds = growth(shapes, sizes)
            plots.append(make_plot(what, shapes, seconds))
            slopes[what] = exponents(lengths, seconds)
    figures = {
        **sizes._asdict(),
        "liblinear": LIBLINEAR,
        "Layout, synthetic counts": synthetic,
        "Layout, real sets": real,
        "Layout, values that are not quantized": unquantized,
        **{f"One sweep, ns per value, by {plot['axis']}": table_of(plot) for plot in plots},
        **{f"Exponent of a sweep's time, by {what}": each for what, each in slopes.items()},
    }
    gains: dict[str, float] = {}
    for task, row in synthetic.items():
        name = task.split(", ")[0]
        gains[name] = min(row["gain"], gains.get(name, np.inf))
    claims = by_set(
        "ICD's layout, training", gains, 1.7, against="the paper's table", headline=False
    )
    for kind, each in slopes["rows"].items():
        what = f"time of a sweep, exponent in the number of rows, {kind}"
        for bound, relation in ((0.85, ">="), (1.15, "<=")):
            claims.append(claim(what, each[OWN], bound, relation, unit=""))
    harness.record(
        "icd_scaling",
        figures,
        claims,
        title="Intersection SVM: layout and growth",
        text=TEXT,
        plots=plots,
        quick=args.quick,
    )


if __name__ == "__main__":
    main()
