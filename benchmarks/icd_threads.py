"""How much faster IntersectionSVC trains on two threads than on one."""

from typing import Any

import harness
from harness import by_set, compare
from sets import Labeled, labeled_sets, one_class

from hilbin.estimators import IntersectionSVC

SETS = ("shuttle", "usps", "mfeat", "fashion_mnist")
ROUNDS, PATIENCE, MOST_ROWS, QUICK_ROWS = 15, 8.0, 50_000, 300
MOST_VALUES = 4_000_000
TEXT = (
    "Wall seconds of a whole fit at defaults, n_jobs=1 and n_jobs=2, best of interleaved rounds, "
    "freed memory kept in the process; sets of many values have fewer random rows. Classes are "
    "trained side by side, the most frequent first, since they take longest; binning and the "
    "certificates are cut into ranges of columns and rows. One problem is one descent, which "
    "visits rows in turn and runs on one thread: two classes gain by the binning alone, which is "
    "a figure and no claim."
)


def gain(s: Labeled, labels: Any, rounds: int) -> dict[str, Any]:
    """Seconds by threads, and their ratio."""
    times = compare(
        {f"{k}": lambda k=k: IntersectionSVC(n_jobs=k).fit(s.X, labels) for k in (1, 2)},
        rounds,
        patience=PATIENCE,
    )
    seconds = {f"n_jobs={k}, s": t.best for k, t in times.items()}
    return {"rows": len(labels), **seconds, "gain": times["1"].best / times["2"].best}


def main() -> None:
    """Measure, claim and record."""
    args = harness.parser(__doc__).parse_args()
    harness.keep_memory()
    sets = {
        name: s.sample(QUICK_ROWS if args.quick else min(MOST_ROWS, MOST_VALUES // s.X.shape[1]))
        for name, s in labeled_sets(args.data, SETS).items()
    }
    rounds = 1 if args.quick else ROUNDS
    with harness.threads(1):
        every = {name: gain(s, s.y, rounds) for name, s in sets.items()}
        binary = {name: gain(s, one_class(s.y), rounds) for name, s in sets.items()}
    harness.record(
        "icd_threads",
        {"All classes": every, "Two classes": binary},
        by_set("IntersectionSVC, two threads, fit", {k: row["gain"] for k, row in every.items()},
               1.6, against="one thread", headline=False),
        title="Intersection SVM: two threads",
        text=TEXT,
        quick=args.quick,
    )  # fmt: skip


if __name__ == "__main__":
    main()
