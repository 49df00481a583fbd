"""How fast IntersectionSVC trains and predicts: against LIBLINEAR, LinearSVC and LIBSVM.

One thread.
"""

from typing import Any, NamedTuple

import harness
from harness import Timing, by_set, compare
from sets import SPARSE, Labeled, labeled_sets, one_class, random_rows, tasks
from sklearn.svm import LinearSVC
from svms import (
    EXACT,
    LIBLINEAR,
    ONE_PASS,
    SOLVER,
    SOLVERS,
    TOLERANCE,
    Coded,
    Linear,
    intersection,
    liblinear_is_here,
    libsvm,
)

from hilbin.estimators import IntersectionSVC
from hilbin.solvers.lookup import LookupRows

BY_PREDICTION = ("usps", "fashion_mnist", "ijcnn1")
NEAR = 0.01  # of the optimum
END_TO_END = "the same, with the Gram matrix"
BY_GRAM = ("ijcnn1", "shuttle", "usps", "fashion_mnist")
TEXT = (
    "One thread, best of interleaved rounds, freed memory kept in the process; a task whose "
    "first round takes over six seconds has that round only. fashion_mnist has 10,000 random rows "
    "of its 60,000. Binary tasks are the most frequent class against the rest. A whole "
    "fit is IntersectionSVC's at its defaults: it checks and bins the rows, packs them, descends "
    "to the tolerance 0.1, certifies and keeps the model. "
    "ICD is the part of it from bins to coefficients, at the paper's C. LIBLINEAR is its train() "
    "on a problem already built, features scaled to [0, 1] before, C=1, no bias, and the faster "
    "of what it offers at its own tolerances: for the squared hinge loss -s 1 (dual, 0.1; after "
    "300 sweeps it goes on in the primal, which counts) and -s 2 (primal, 0.01), for the hinge "
    "-s 3, which stops after 300 sweeps; a column counts the problems where that happened. "
    "LIBLINEAR from arrays includes the building of its problem from the scaled rows, as a fit "
    "starts from arrays. LinearSVC is scikit-learn's fit with dual='auto' at LIBLINEAR's "
    "tolerances. The two methods solve different problems; how far each objective is above that of "
    "a far smaller tolerance is in columns, with IntersectionSVC's relative duality gap, which is "
    "at least as large. LIBLINEAR as near its optimum is the fastest of its solvers, each with the "
    "largest of its own tolerance, a tenth and a hundredth of it at which it is above its optimum "
    "by no more than IntersectionSVC or a hundredth, or the nearest. On few "
    "rows, and on sparse ones, packing (tables laid out for the data, or the Gram matrix, which "
    "few rows of many features get) is a large part of the time: a column has it. One sweep is "
    "the first, of tables, with the diagonal; LIBLINEAR's is -e 1e10. "
    "LIBSVM is scikit-learn's SVC on the Gram matrix of the quantized rows, C=0.001, against ICD "
    "with the hinge loss, 8000 random rows or all. It has a tolerance of 0.001 by default; a "
    "column has it at 0.1, as ICD. Its time without the Gram matrix does not depend on the number "
    "of features, ICD's is proportional to it: with hundreds of dense features and n of the same "
    "order ICD cannot be 20 times as fast. End to end the matrix, here by hilbin's compiled "
    "function, is part of its time. "
    "Prediction is decision_function of dense float64 rows, checks of them included: "
    "IntersectionSVC's on the rows as they are, LinearSVC's on scaled ones, both trained on at "
    "most 8000 rows. LIBSVM needs the kernel of the test rows with all training rows first, here "
    "by hilbin's compiled Gram matrix; a column leaves that out."
)

Table = dict[str, dict[str, Any]]


class Sizes(NamedTuple):
    """How much is measured."""

    most_rows: int = 1_000_000
    most_values: int = 20_000_000  # rows times features
    fewer_rows: int = 10_000  # for sets with more
    gram_rows: int = 8000
    gram_test_rows: int = 2000
    rounds: int = 7
    short_rounds: int = 15
    patience: float = 6.0


QUICK = Sizes(300, gram_rows=250, gram_test_rows=100, rounds=1, short_rounds=2)


def training(name: str, s: Labeled, sizes: Sizes) -> Table:
    """Seconds to the tolerance, of all tasks and losses."""
    table: Table = {}
    for kind, task in tasks(s, sizes.most_values * s.classes, sizes.fewer_rows).items():
        scaled = task.scaled().X
        peer = Linear(scaled, task.y)
        for loss, solvers in SOLVERS.items():
            coded = Coded(task.X, task.y, loss=loss)
            last: dict[str, Any] = {}
            contenders = trained_by(task, loss, coded, last)
            for solver in solvers:
                contenders[solver] = lambda o=solver, kept=last, p=peer: kept.update(
                    {o: p.train(o)}
                )
            own = above_own_optimum(task, loss)
            near = near_options(peer, scaled, task.y, loss, max(own, NEAR))
            for options in set(near) - set(solvers):
                contenders[options] = lambda o=options, p=peer: p.train(o)
            contenders["building"] = lambda x=scaled, y=task.y: Linear(x, y)
            if loss == "squared_hinge":
                contenders["LinearSVC"] = lambda x=scaled, y=task.y: linear_svc(x, y)
            times = compare(contenders, sizes.rounds, patience=sizes.patience)
            above = above_optimum(peer, scaled, task.y, loss, last)
            row = figures_of(task, above, last, times, near)
            table[f"{name}, {kind}, {loss}"] = row | {"fit, above optimum": own}
    return table


def trained_by(task: Labeled, loss: str, coded: Coded, kept: dict[str, Any]) -> dict[str, Any]:
    """Our contenders."""
    return {
        "ICD": lambda: kept.update(own=coded.solve()),
        "packing": coded.pack,
        "fit": lambda: kept.update(fit=IntersectionSVC(loss=loss).fit(task.X, task.y)),
    }


def linear_svc(X: Any, y: Any) -> LinearSVC:
    """scikit-learn's, at LIBLINEAR's tolerance of the problem that it chooses."""
    tol = 0.1 if X.shape[0] < X.shape[1] else 0.01
    return LinearSVC(dual="auto", tol=tol, random_state=0).fit(X, y)


def figures_of(
    task: Labeled,
    above: dict[str, float],
    last: dict[str, Any],
    times: dict[str, Timing],
    near: list[str],
) -> dict[str, Any]:
    """One row of the table: seconds, ratios, sweeps."""
    solvers = list(above)
    best = min(solvers, key=lambda o: times[o].best)
    gap = float((last["fit"].gap_ / last["fit"].objective_).max())
    nearest = min(near, key=lambda o: times[o].best)
    arrays = times[best].best + times["building"].best
    row = {
        "rows": task.y.size,
        "fit, s": times["fit"].best,
        "ICD in it, s": times["ICD"].best,
        "packing in that, s": times["packing"].best,
        **{f"LIBLINEAR {o}, s": times[o].best for o in solvers},
        "LIBLINEAR's better": best,
        "fit / LIBLINEAR": ratio(times, "fit", best),
        "LIBLINEAR as near": nearest,
        "fit / LIBLINEAR as near": ratio(times, "fit", nearest),
        "ICD / LIBLINEAR": ratio(times, "ICD", best),
        "fit / LIBLINEAR from arrays": times["fit"].best / arrays,
        "most sweeps of ICD": max(result.n_iter for result in last["own"]),
        "problems": len(last["own"]),
        "problems LIBLINEAR's dual left": last[solvers[0]].capped,
        "gap of fit": gap,
        **{f"LIBLINEAR {o}, above optimum": share for o, share in above.items()},
    }
    if "LinearSVC" in times:
        row["LinearSVC, s"] = times["LinearSVC"].best
        row["fit / LinearSVC"] = ratio(times, "fit", "LinearSVC")
    return row


def above_optimum(
    peer: Linear, X: Any, y: Any, loss: str, last: dict[str, Any]
) -> dict[str, float]:
    """How far the objectives of LIBLINEAR are above that of a smaller tolerance, relatively."""
    squared = loss == "squared_hinge"
    found = {o: last[o].objective(X, y, squared=squared) for o in SOLVERS[loss]}
    least = min(peer.train(EXACT[loss]).objective(X, y, squared=squared), *found.values())
    return {o: f / least - 1 for o, f in found.items()}


def above_own_optimum(task: Labeled, loss: str) -> float:
    """How far the objective of a fit can be above that of a smaller tolerance, relatively."""
    found = IntersectionSVC(loss=loss).fit(task.X, task.y)
    nearer = IntersectionSVC(loss=loss, tol=0.01).fit(task.X, task.y)
    return float(found.objective_.sum() / (nearer.objective_ - nearer.gap_).sum()) - 1


def near_options(peer: Linear, X: Any, y: Any, loss: str, most: float) -> list[str]:
    """LIBLINEAR's solvers with the largest tolerance that ends so near the optimum, or nearest."""
    squared = loss == "squared_hinge"
    found = {}
    for solver in SOLVERS[loss]:
        tried = [solver] + [f"{solver} -e {TOLERANCE[solver] * f:g}" for f in (0.1, 0.01)]
        found |= {o: peer.train(o).objective(X, y, squared=squared) for o in tried}
    least = min(peer.train(EXACT[loss]).objective(X, y, squared=squared), *found.values())
    near = [o for o, objective in found.items() if objective <= (1 + most) * least]
    loosest = {o.partition(" -e")[0]: o for o in reversed(near)}
    return [*loosest.values()] or [min(found, key=found.__getitem__)]


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
        END_TO_END: ratio(times, "LIBSVM", "ICD") + ratio(times, "Gram matrix", "ICD"),
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


def ratio(times: dict[str, Timing], one: str, other: str) -> float:
    """How many times as long."""
    return times[one].best / times[other].best


def against_liblinear(sets: dict[str, Labeled], sizes: Sizes) -> tuple[dict[str, Table], list[Any]]:
    """Figures and claims about training time."""
    whole: dict[str, Table] = {"dense": {}, "sparse": {}}
    sweeps: Table = {}
    swept: dict[str, dict[str, float]] = {"dense": {}, "sparse": {}}
    for name, s in sets.items():
        kind = "sparse" if name == SPARSE else "dense"
        whole[kind][name] = training(name, s, sizes)
        rows, swept[kind][name] = one_sweep(name, s, sizes)
        sweeps |= rows
    every = {k: row for of in whole.values() for rows in of.values() for k, row in rows.items()}
    figures = {"Training to the tolerance": every, "One sweep": sweeps}
    best, alone = "LIBLINEAR, its better solver", "LIBLINEAR, its solver"
    what, once = "ICD, training to the tolerance, time", "ICD, one sweep, time"
    claims = []
    for kind, tables in whole.items():
        for start, against, measured in (
            ("IntersectionSVC, whole fit, time", best, "fit / LIBLINEAR"),
            ("IntersectionSVC, whole fit, equal objectives, time", "LIBLINEAR, as near its optimum",
             "fit / LIBLINEAR as near"),
            (what, best, "ICD / LIBLINEAR"),
            ("IntersectionSVC, whole fit from arrays, time", "LIBLINEAR from arrays",
             "fit / LIBLINEAR from arrays"),
            ("IntersectionSVC, whole fit, squared hinge loss, time",
             "scikit-learn LinearSVC(dual='auto')", "fit / LinearSVC"),
        ):  # fmt: skip
            worst = {name: most(rows, measured) for name, rows in tables.items()}
            headline = measured == "fit / LIBLINEAR"
            claims += by_set(
                f"{start}, {kind}", worst, 1.0, "<=", against=against, headline=headline
            )
    claims += [
        *by_set(f"{once}, dense", swept["dense"], 1.6, "<=", against=alone, headline=False),
        *by_set(f"{once}, sparse", swept["sparse"], 1.0, "<=", against=alone, headline=False),
    ]
    return figures, claims


def most(table: Table, name: str) -> float:
    """The largest figure of a column."""
    return max(row[name] for row in table.values() if name in row)


def few(s: Labeled, sizes: Sizes) -> int:
    """How many rows of a set are trained on."""
    return sizes.fewer_rows if s.X.shape[0] * s.X.shape[1] > sizes.most_values else s.y.size


def column(table: Table, name: str) -> dict[str, float]:
    """One figure of every row."""
    return {row: figures[name] for row, figures in table.items()}


def main() -> None:
    """Measure, claim and record."""
    args = harness.parser(__doc__).parse_args()
    harness.keep_memory()
    sizes = QUICK if args.quick else Sizes()
    sets = {
        name: s.sample(min(sizes.most_rows, few(s, sizes)), sizes.most_rows)
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
    tables = {
        "Training, hinge loss, against LIBSVM": fits,
        "Prediction against LIBSVM": predictions,
        "Prediction against LinearSVC": rates,
    }
    figures |= {name: table for name, table in tables.items() if table}
    claims += [
        *by_set("ICD, training, hinge loss", column(fits, "LIBSVM / ICD"), 20,
                against="LIBSVM, precomputed kernel"),
        *by_set("ICD, training, hinge loss, end to end", column(fits, END_TO_END), 1,
                against="LIBSVM and its Gram matrix", headline=False),
        *by_set("IntersectionSVC, prediction, rate", column(rates, "IntersectionSVC / LinearSVC"),
                0.7, against="scikit-learn LinearSVC", kind="tasks"),
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
