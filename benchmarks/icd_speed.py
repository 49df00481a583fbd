"""How fast IntersectionSVC trains and predicts: against LIBLINEAR, LinearSVC and LIBSVM.

One thread, except where two are compared with one.
"""

from typing import Any, NamedTuple

import harness
from harness import Timing, by_set, compare
from sets import SPARSE, Labeled, labeled_sets, one_class, random_rows, tasks
from sklearn.svm import LinearSVC
from svms import (
    LIBLINEAR,
    ONE_PASS,
    SOLVER,
    Coded,
    Linear,
    intersection,
    liblinear_is_here,
    libsvm,
)

from hilbin.estimators import IntersectionSVC
from hilbin.solvers.lookup import LookupRows

BY_THREADS = ("usps", "shuttle")
BY_PREDICTION = ("usps", "fashion_mnist", "ijcnn1")
BY_GRAM = ("ijcnn1", "shuttle", "usps", "fashion_mnist")
TEXT = (
    "One thread, best of interleaved rounds, freed memory kept in the process; a task whose "
    "first round takes over twelve seconds has that round only. Binary tasks are the most "
    "frequent class against the rest. ICD is IntersectionSVC's solver at its defaults, from "
    "codes to coefficients: packing, descent to the tolerance 0.1, duality gap. LIBLINEAR is its "
    "train() on a problem already built, features scaled to [0, 1], C=1, tolerance 0.1, no bias, "
    "-s 1 for the squared hinge loss and -s 3 for the hinge. Both have their data at hand; a "
    "column has the whole fit of IntersectionSVC, which also checks and bins the rows and keeps "
    "the model. The two solve different problems to the same tolerance. LIBLINEAR gives up after "
    "300 sweeps; how many of its problems did is a column, and ICD is then compared with less "
    "than a solution. On few rows, and on sparse ones, packing (tables laid out for the data, or "
    "the Gram matrix, which few rows of many features get) is a large part of the time: a column "
    "has it. One sweep is the first, of tables, with the diagonal; LIBLINEAR's is -e 1e10. "
    "LIBSVM is scikit-learn's SVC on the Gram matrix of the quantized rows, C=0.001, against ICD "
    "with the hinge loss, 8000 random rows or all. It has a tolerance of 0.001 by default; a "
    "column has it at 0.1, as ICD. The Gram matrix is not in its time, except in the last "
    "column. Two threads train classes side by side, so the longest class bounds the gain. "
    "Prediction is decision_function of dense float64 rows, checks of them included: "
    "IntersectionSVC's on the rows as they are, LinearSVC's on scaled ones, both trained on at "
    "most 8000 rows. LIBSVM needs the kernel of the test rows with all training rows first, here "
    "by hilbin's compiled Gram matrix; a column leaves that out."
)

Table = dict[str, dict[str, Any]]


class Sizes(NamedTuple):
    """How much is measured."""

    most_rows: int = 1_000_000
    most_values: int = 100_000_000  # rows times features times classes, one class against the rest
    fewer_rows: int = 10_000  # for sets with more
    gram_rows: int = 8000
    gram_test_rows: int = 2000
    rounds: int = 7
    short_rounds: int = 25
    patience: float = 12.0


QUICK = Sizes(300, gram_rows=250, gram_test_rows=100, rounds=1, short_rounds=2)


def training(name: str, s: Labeled, sizes: Sizes) -> tuple[Table, float]:
    """Seconds to the tolerance, of all tasks and losses, and the worst ratio."""
    table: Table = {}
    for kind, task in tasks(s, sizes.most_values, sizes.fewer_rows).items():
        peer = Linear(task.scaled().X, task.y)
        for loss, solver in SOLVER.items():
            coded = Coded(task.X, task.y, loss=loss)
            last: dict[str, Any] = {}
            times = compare(
                {
                    "ICD": lambda c=coded, kept=last: kept.update(own=c.solve()),
                    "LIBLINEAR": lambda o=solver, kept=last, p=peer: kept.update(peer=p.train(o)),
                    "packing": coded.pack,
                    "fit": lambda t=task, k=loss: IntersectionSVC(loss=k).fit(t.X, t.y),
                },
                sizes.rounds,
                patience=sizes.patience,
            )
            table[f"{name}, {kind}, {loss}"] = {
                "rows": task.y.size,
                "ICD, s": times["ICD"].best,
                "packing in it, s": times["packing"].best,
                "LIBLINEAR, s": times["LIBLINEAR"].best,
                "fit, s": times["fit"].best,
                "ICD / LIBLINEAR": ratio(times, "ICD", "LIBLINEAR"),
                "fit / LIBLINEAR": ratio(times, "fit", "LIBLINEAR"),
                "most sweeps of ICD": max(result.n_iter for result in last["own"]),
                "problems": len(last["own"]),
                "LIBLINEAR gave up": last["peer"].capped,
            }
    return table, max(row["ICD / LIBLINEAR"] for row in table.values())


def one_sweep(name: str, s: Labeled, sizes: Sizes) -> tuple[Table, float]:
    """Seconds of one pass over the rows, and the worst ratio."""
    table: Table = {}
    y = one_class(s.y)
    peer = Linear(s.scaled().X, y)
    for loss, solver in SOLVER.items():
        coded = Coded(s.X, y, loss=loss)
        rows = LookupRows(coded.levels())
        times = compare(
            {
                "ICD": lambda c=coded, r=rows: c.sweep(r),
                "LIBLINEAR": lambda o=solver: peer.train(o, ONE_PASS),
            },
            sizes.short_rounds,
            patience=sizes.patience,
        )
        values = rows.levels.parts[0].size
        table[f"{name}, {loss}"] = {
            "ICD, s": times["ICD"].best,
            "LIBLINEAR, s": times["LIBLINEAR"].best,
            "ICD / LIBLINEAR": ratio(times, "ICD", "LIBLINEAR"),
            "ICD, ns / value": times["ICD"].best / values * 1e9,
        }
    return table, max(row["ICD / LIBLINEAR"] for row in table.values())


def against_libsvm(s: Labeled, sizes: Sizes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Training and prediction with the same kernel, loss and C, binary."""
    s = s._replace(y=one_class(s.y)).sample(sizes.gram_rows)
    test = s.X_test[random_rows(s.y_test.size, sizes.gram_test_rows)]
    coded = Coded(s.X, s.y, loss="hinge")
    K = intersection(coded)
    times = compare(
        {
            "ICD": coded.solve,
            "LIBSVM": lambda: libsvm(K, s.y),
            "LIBSVM, tol=0.1": lambda: libsvm(K, s.y, tol=0.1),
            "Gram matrix": lambda: intersection(coded),
        },
        sizes.rounds,
        patience=sizes.patience,
    )
    fit = {
        "rows": s.y.size,
        **{f"{name}, s": t.best for name, t in times.items()},
        "LIBSVM / ICD": ratio(times, "LIBSVM", "ICD"),
        "the same, tol=0.1": ratio(times, "LIBSVM, tol=0.1", "ICD"),
        "the same, with the Gram matrix": ratio(times, "LIBSVM", "ICD")
        + ratio(times, "Gram matrix", "ICD"),
    }
    own, peer = IntersectionSVC(loss="hinge").fit(s.X, s.y), libsvm(K, s.y)
    K = intersection(coded, test)
    times = compare(
        {
            "IntersectionSVC": lambda: own.decision_function(test),
            "LIBSVM": lambda: peer.decision_function(intersection(coded, test)),
            "LIBSVM without the Gram matrix": lambda: peer.decision_function(K),
        },
        sizes.short_rounds,
        patience=sizes.patience,
    )
    rates = {f"{name}, rows / s": len(test) / t.best for name, t in times.items()}
    predict = rates | {
        "faster": ratio(times, "LIBSVM", "IntersectionSVC"),
        "faster, without the Gram matrix": ratio(
            times, "LIBSVM without the Gram matrix", "IntersectionSVC"
        ),
    }
    return fit, predict


def prediction(name: str, s: Labeled, sizes: Sizes) -> Table:
    """Rows per second of IntersectionSVC and LinearSVC on dense rows."""
    table: Table = {}
    scaled = s.scaled()
    some = random_rows(s.y.size, sizes.gram_rows)
    for kind, y in {"binary": one_class(s.y), "all classes": s.y}.items():
        if kind != "binary" and s.classes == 2:
            continue
        own = IntersectionSVC().fit(s.X[some], y[some])
        peer = LinearSVC(tol=0.1, random_state=0).fit(scaled.X[some], y[some])
        times = compare(
            {
                "IntersectionSVC": lambda m=own: m.decision_function(s.X_test),
                "LinearSVC": lambda m=peer: m.decision_function(scaled.X_test),
            },
            sizes.short_rounds,
        )
        table[f"{name}, {kind}"] = {
            "IntersectionSVC, rows / s": len(s.X_test) / times["IntersectionSVC"].best,
            "LinearSVC, rows / s": len(s.X_test) / times["LinearSVC"].best,
            "IntersectionSVC / LinearSVC": ratio(times, "LinearSVC", "IntersectionSVC"),
        }
    return table


def two_threads(s: Labeled, sizes: Sizes) -> dict[str, Any]:
    """Wall seconds of a fit of all classes by threads."""
    times = compare(
        {f"{k}": lambda k=k: IntersectionSVC(n_jobs=k).fit(s.X, s.y) for k in (1, 2)}, sizes.rounds
    )
    return {f"n_jobs={k}, s": t.best for k, t in times.items()} | {"gain": ratio(times, "1", "2")}


def ratio(times: dict[str, Timing], one: str, other: str) -> float:
    """How many times as long."""
    return times[one].best / times[other].best


def against_liblinear(sets: dict[str, Labeled], sizes: Sizes) -> tuple[dict[str, Table], list[Any]]:
    """Figures and claims about training time."""
    whole: Table = {}
    sweeps: Table = {}
    trained: dict[str, dict[str, float]] = {"dense": {}, "sparse": {}}
    swept: dict[str, dict[str, float]] = {"dense": {}, "sparse": {}}
    for name, s in sets.items():
        kind = "sparse" if name == SPARSE else "dense"
        rows, trained[kind][name] = training(name, s, sizes)
        whole |= rows
        rows, swept[kind][name] = one_sweep(name, s, sizes)
        sweeps |= rows
    figures = {"Training to the tolerance": whole, "One sweep": sweeps}
    against = "LIBLINEAR, its solver"
    what, once = "ICD, training to the tolerance, time", "ICD, one sweep, time"
    claims = [
        *by_set(f"{what}, dense", trained["dense"], 1.0, "<=", against=against),
        *by_set(f"{what}, sparse", trained["sparse"], 1.0, "<=", against=against),
        *by_set(f"{once}, dense", swept["dense"], 1.6, "<=", against=against, headline=False),
        *by_set(f"{once}, sparse", swept["sparse"], 1.0, "<=", against=against, headline=False),
    ]
    return figures, claims


def column(table: Table, name: str) -> dict[str, float]:
    """One figure of every row."""
    return {row: figures[name] for row, figures in table.items()}


def main() -> None:
    """Measure, claim and record."""
    args = harness.parser(__doc__).parse_args()
    harness.keep_memory()
    sizes = QUICK if args.quick else Sizes()
    sets = {
        name: s.sample(sizes.most_rows, sizes.most_rows)
        for name, s in labeled_sets(args.data).items()
    }
    figures: dict[str, Any] = {**sizes._asdict(), "liblinear": LIBLINEAR}
    claims: list[Any] = []
    fits: Table = {}
    predictions: Table = {}
    rates: Table = {}
    with harness.threads(1):
        if liblinear_is_here():
            tables, claims = against_liblinear(sets, sizes)
            figures |= tables
        for name in [name for name in BY_GRAM if name in sets]:
            fits[name], predictions[name] = against_libsvm(sets[name], sizes)
        for name in [name for name in BY_PREDICTION if name in sets]:
            rates |= prediction(name, sets[name], sizes)
        threads = {name: two_threads(sets[name], sizes) for name in BY_THREADS if name in sets}
    tables = {
        "Training, hinge loss, against LIBSVM": fits,
        "Prediction against LIBSVM": predictions,
        "Prediction against LinearSVC": rates,
        "Two threads": threads,
    }
    figures |= {name: table for name, table in tables.items() if table}
    claims += [
        *by_set("ICD, training, hinge loss", column(fits, "LIBSVM / ICD"), 20,
                against="LIBSVM, precomputed kernel"),
        *by_set("IntersectionSVC, two threads, fit", column(threads, "gain"), 1.5,
                against="one thread", headline=False),
        *by_set("IntersectionSVC, prediction, rate", column(rates, "IntersectionSVC / LinearSVC"),
                0.5, against="scikit-learn LinearSVC", kind="tasks"),
        *by_set("IntersectionSVC, prediction, rate", column(predictions, "faster"), 100,
                against="LIBSVM and the Gram matrix it needs", headline=False),
    ]  # fmt: skip
    harness.record(
        "icd_speed",
        figures,
        claims,
        title="Intersection SVM: speed",
        text=TEXT,
        quick=args.quick,
    )


if __name__ == "__main__":
    main()
