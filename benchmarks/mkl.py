"""Several descriptions of the same things: weights of kernels, against the plain average of all.

Accuracy and time of every rule to combine kernels, the weights they give, and the time of
multiple kernel learning against the same updates around LIBSVM.
"""

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import harness
import numpy as np
from data import Array
from harness import by_set, claim, compare
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from views import Views, view_sets

from hilbin.estimators import (
    InfiniteKernelSVC,
    KernelSVC,
    MultipleKernelRidgeClassifier,
    MultipleKernelSVC,
)
from hilbin.kernels import align_weights, kernel_scale
from hilbin.solvers.multiple import Trial, multiple

COST, ALPHA = 10.0, 0.1
AVERAGE, INFINITE, L1, RBF = "average", "infinite", "L1", "scikit-learn, RBF SVC"
GRAMS = "(kernel matrices of the training rows)"
LIBSVM = "the same updates around scikit-learn's SVC"
ACCURACY, SPREAD, SECONDS, ROUNDS = "accuracy, %", "± over splits", "fit, s", "rounds"
MARGINS = {"leaves100": 12.8, "mfeat": 2.2}  # points above the best single description
TOLERATED = 0.5  # points below the average
MOST_ROUNDS = 15
SPEED = {"binary": "one class against the rest", "ten": "ten classes"}
TEXT = (
    "One thread. leaves100: three histograms, exponential chi-squared kernels by the mean rule, 8 "
    "random rows of every class to train on and 8 to test on. mfeat: six descriptions, Gaussian "
    "kernels by the median rule on standardized columns, 20 of every class to train on and 180 to "
    "test on. scene15 and caltech101: the channels that ImageClassifier knows by name, on the "
    "usual split, if they are there. One class against the rest, C = 10; fits are on given "
    "matrices, whose seconds stand in a row of their own, but those of *infinite* and of "
    "scikit-learn are from rows. "
    "The best description alone is the one that tests best, which flatters it. *Average*: equal "
    "weights of kernels of unit variance in feature space; *product*: the exponential of the mean "
    "distance; *alignf*: weights by centered alignment; *L1* to *L4*: MultipleKernelSVC with that "
    "norm of the weights, shown with a sum of 1; *infinite*: InfiniteKernelSVC with a family for "
    "each description; *ridge*: MultipleKernelRidgeClassifier with alpha = 0.1. scikit-learn has "
    "all columns, standardized, and its defaults but for C = 10 of the RBF machine; LinearSVC is "
    "left out where columns are thousands. "
    "**Look at the average first.** On leaves100 and mfeat, where every description is good, no "
    "weights beat it beyond the spread over splits: they are for reading, and for kernels that "
    "need not be computed. On photographs, whose channels differ more, sparse weights (L1) can; "
    "these are single splits.\n\n"
    "Speed: all 2000 rows of mfeat, six given matrices. The peer is the same loop over weights "
    "with the same tolerances, in which a round is scikit-learn's SVC on the sum of the matrices "
    "for every class, in double precision and from nothing, as it takes no start."
)

Readings = dict[str, dict[str, list[float]]]
Weights = dict[str, list[Array]]


class Sizes(NamedTuple):
    """How much is measured."""

    seeds: int = 5
    repeats: int = 5


class Fold:
    """One split: rows, and the matrices of all kernels, which are computed once."""

    def __init__(self, views: Views, split: tuple[Array, Array]) -> None:
        train, test = split
        self.X, self.y = views.X[train], views.y[train]
        self.X_test, self.y_test = views.X[test], views.y[test]
        self.families = views.kernels
        kernels = [kernel.resolve(self.X, random_state=0) for kernel in views.kernels.values()]
        begin = time.perf_counter()
        self.train = [kernel.gram(self.X) for kernel in kernels]
        self.seconds = time.perf_counter() - begin
        self.test = [kernel.gram(self.X_test, self.X) for kernel in kernels]
        self.factors = [kernel_scale(K) for K in self.train]

    def machine(self, weights: Any) -> tuple[Any, Array]:
        """A machine with given weights of kernels of size 1, and its matrix of the test rows."""
        each = [w * f for w, f in zip(weights, self.factors, strict=True)]
        K, test = (sum(w * one for w, one in zip(each, known, strict=True))
                   for known in (self.train, self.test))  # fmt: skip
        return KernelSVC("precomputed", COST).fit(K, self.y), test


Rule = Callable[[Fold], tuple[Any, Any]]  # a fitted model, and what it predicts


# rules
def single(number: int) -> Rule:
    """One description."""
    return lambda fold: fold.machine(np.eye(len(fold.train))[number])


def average(fold: Fold) -> tuple[Any, Any]:
    """Equal weights of kernels of size 1."""
    m = len(fold.train)
    return fold.machine(np.full(m, 1 / m))


def product(fold: Fold) -> tuple[Any, Any]:
    """The exponential of the mean distance."""
    m = len(fold.train)
    K, test = (np.prod([one ** (1 / m) for one in known], axis=0)
               for known in (fold.train, fold.test))  # fmt: skip
    return KernelSVC("precomputed", COST).fit(K, fold.y), test


def alignf(fold: Fold) -> tuple[Any, Any]:
    """Weights by alignment."""
    sized = [f * K for f, K in zip(fold.factors, fold.train, strict=True)]
    weights = align_weights(sized, fold.y)
    model, test = fold.machine(weights)
    model.weights_ = weights
    return model, test


def learned(norm: float) -> Rule:
    """Multiple kernel learning."""
    model = MultipleKernelSVC("precomputed", COST, norm=norm)
    return lambda fold: (clone(model).fit(fold.train, fold.y), fold.test)


def ridge(norm: float) -> Rule:
    """The same with squared loss."""
    model = MultipleKernelRidgeClassifier("precomputed", ALPHA, norm=norm)
    return lambda fold: (clone(model).fit(fold.train, fold.y), fold.test)


def infinite(fold: Fold) -> tuple[Any, Any]:
    """The best of all widths."""
    model = InfiniteKernelSVC(fold.families, COST, tol=1e-3, kernel_tol=1e-2)
    return model.fit(fold.X, fold.y), fold.X_test


def rbf(fold: Fold) -> tuple[Any, Any]:
    """scikit-learn's SVC on all columns, standardized; its own kernel, as a matrix."""
    scaler = StandardScaler()
    X = scaler.fit_transform(fold.X)
    gamma = 1 / (X.shape[1] * X.var())  # gamma="scale"
    K = rbf_kernel(X, gamma=gamma)
    model = SVC(kernel="precomputed", C=COST, cache_size=1000).fit(K, fold.y)
    return model, rbf_kernel(scaler.transform(fold.X_test), X, gamma=gamma)


def linear(fold: Fold) -> tuple[Any, Any]:
    """scikit-learn's LinearSVC on all columns, standardized."""
    return make_pipeline(StandardScaler(), LinearSVC()).fit(fold.X, fold.y), fold.X_test


RULES: dict[str, Rule] = {
    AVERAGE: average,
    "product": product,
    "alignf": alignf,
    L1: learned(1),
    "L2": learned(2),
    "L4": learned(4),
    "ridge, L1": ridge(1),
    "ridge, L2": ridge(2),
    INFINITE: infinite,
    RBF: rbf,
}


LINEAR = "scikit-learn, LinearSVC"
MANY_COLUMNS = 2000  # with which it takes many minutes


# accuracy
def measured(folds: Iterable[Fold], rules: dict[str, Rule]) -> tuple[Readings, Weights]:
    """Accuracy, seconds and rounds of every rule on every split, and the weights it gave."""
    readings: Readings = defaultdict(lambda: defaultdict(list))
    weights: Weights = defaultdict(list)
    for fold in folds:
        for name, rule in rules.items():
            begin = time.perf_counter()
            model, rows = rule(fold)
            row = readings[name]
            row[SECONDS].append(time.perf_counter() - begin)
            row[ACCURACY].append(100 * np.mean(model.predict(rows) == fold.y_test))
            if hasattr(model, "history_"):
                row[ROUNDS].append(model.n_iter_)
            if hasattr(model, "weights_") and not isinstance(model, InfiniteKernelSVC):
                weights[name].append(model.weights_ / np.sum(model.weights_))
            print(f"{name}: {row[ACCURACY][-1]:.2f} %, {row[SECONDS][-1]:.2f} s", flush=True)
        readings[GRAMS][SECONDS].append(fold.seconds)
    return readings, weights


def compared(views: Views) -> tuple[dict[str, Any], dict[str, Any]]:
    """All rules on one set, and the mean weights of those that have weights."""
    rules = {f"{name} alone": single(j) for j, name in enumerate(views.kernels)} | RULES
    rules |= {LINEAR: linear} if views.X.shape[1] < MANY_COLUMNS else {}
    readings, found = measured((Fold(views, split) for split in views.splits), rules)
    table = {}
    for name, row in readings.items():
        table[name] = {SECONDS: float(np.mean(row[SECONDS]))}
        if row[ACCURACY]:
            table[name] |= {ACCURACY: float(np.mean(row[ACCURACY]))}
            table[name] |= {SPREAD: float(np.std(row[ACCURACY]))}
        if row[ROUNDS]:
            table[name] |= {ROUNDS: max(row[ROUNDS])}
    weights = {
        name: dict(zip(views.kernels, np.mean(each, axis=0).tolist(), strict=True))
        for name, each in found.items()
    }
    return table, weights


# speed
def libsvm_trials(matrices: Array, signs: Array) -> Any:
    """Machines of scikit-learn for given weights, with the certificate that ours have."""

    def solve(weights: Array, last: Any, tol: float) -> Trial:
        K = np.tensordot(weights, matrices, 1)
        coef, scores = np.zeros(signs.shape), np.zeros(signs.shape)
        for k, y in enumerate(signs.T):
            machine = SVC(kernel="precomputed", C=COST, tol=tol, cache_size=1000).fit(K, y)
            coef[machine.support_, k] = machine.dual_coef_[0]
            scores[:, k] = K[:, machine.support_] @ machine.dual_coef_[0] + machine.intercept_[0]
        energies = np.array([np.sum(coef * (one @ coef)) for one in matrices])
        loss = COST * float(np.maximum(1 - signs * scores, 0).sum())
        return Trial(float((signs * coef).sum()), loss, energies, None)

    return solve


def speed(views: Views, repeats: int) -> dict[str, dict[str, float]]:
    """Seconds on given matrices of all rows, ours and LIBSVM's."""
    kernels = [kernel.resolve(views.X, random_state=0) for kernel in views.kernels.values()]
    matrices = np.array([kernel.gram(views.X) for kernel in kernels])
    classes = np.unique(views.y)
    labels = {"binary": views.y == classes[0], "ten": views.y}
    table = {}
    for task, y in labels.items():
        known = np.unique(y)
        each = known[1:] if known.size == 2 else known
        signs = np.where(y[:, None] == each, 1.0, -1.0)
        for norm in (1.0, 2.0, 4.0):
            model = MultipleKernelSVC("precomputed", COST, norm=norm, normalize=False)
            found: list[Any] = []
            calls = {
                "hilbin": lambda m=model, y=y: m.fit([*matrices], y),
                LIBSVM: lambda s=signs, p=norm, f=found: f.append(
                    multiple(libsvm_trials(matrices, s), len(matrices), norm=p)
                ),
            }
            times = compare(calls, repeats)
            ours, peer = times["hilbin"].best, times[LIBSVM].best
            table[f"{SPEED[task]}, L{norm:g}"] = {
                "hilbin, s": ours,
                "peer, s": peer,
                "speed-up": peer / ours,
                ROUNDS: model.n_iter_,
                "peer's rounds": found[-1].n_iter,
                "objective over the peer's": float(model.objective_[0] / found[-1].objective),
            }
    return table


def claims_of(tables: dict[str, Any]) -> list[dict[str, Any]]:
    """What the figures say."""
    claims, above, rounds = [], {}, {}
    for name, table in tables["accuracy"].items():
        plain = table[AVERAGE][ACCURACY]
        best = max(row[ACCURACY] for key, row in table.items() if key.endswith(" alone"))
        for rule in (L1, "L2", "L4"):
            above[f"{name}, {rule}"] = table[rule][ACCURACY] - plain
            if name in MARGINS:
                claims.append(
                    claim(f"{name}, {rule} above the best single description",
                          table[rule][ACCURACY] - best, MARGINS[name], unit=" points")
                )  # fmt: skip
        rounds[name] = table[L1][ROUNDS]
    faster = {key: row["speed-up"] for key, row in tables["speed"].items()}
    return [
        *claims,
        *by_set("learned weights above the plain average", above, -TOLERATED,
                against="equal weights", unit=" points", headline=False, kind="rules"),
        *by_set("rounds at L1", rounds, MOST_ROUNDS, "<=", against="", unit="", headline=False),
        *by_set("multiple kernel learning, 2000 rows, 6 kernels", faster, 3, against=LIBSVM,
                kind="tasks"),
    ]  # fmt: skip


def recorded() -> dict[str, Any]:
    """The tables of the last run."""
    path = harness.RESULTS / "mkl.json"
    return json.loads(path.read_text(encoding="utf-8"))["figures"] if path.exists() else {}


def split(figures: dict[str, Any]) -> dict[str, Any]:
    """The same tables by kind: accuracy and weights by set, and speed."""
    tables: dict[str, Any] = {"speed": figures.get("Speed", {})}
    for kind in ("accuracy", "weights"):
        names = [key for key in figures if key.endswith(f": {kind}")]
        tables[kind] = {name.removesuffix(f": {kind}"): figures[name] for name in names}
    return tables


def main() -> None:
    """Measure, claim and record."""
    parser = harness.parser(__doc__)
    parser.add_argument("--cache", type=Path, help="folder for the channels of photographs")
    parser.add_argument("--part", choices=("accuracy", "speed"), help="only this one; keeps others")
    parser.add_argument("--only", nargs="*", default=(), help="only these sets; keeps others")
    args = parser.parse_args()
    harness.keep_memory()
    sizes = Sizes(1, 1) if args.quick else Sizes()
    figures: dict[str, Any] = recorded() if args.part or args.only else {}
    with harness.threads(1):
        for name, views in view_sets(args.data, sizes.seeds, args.cache):
            if args.only and name not in args.only:
                continue
            print(f"[{name}]", flush=True)
            if args.part != "speed":
                found = compared(views)
                figures |= {f"{name}: accuracy": found[0], f"{name}: weights": found[1]}
            if name == "mfeat" and args.part != "accuracy":
                figures["Speed"] = speed(views, sizes.repeats)
            record({**sizes._asdict(), **figures}, quick=args.quick)


def record(figures: dict[str, Any], *, quick: bool) -> None:
    """Record what there is, so that a run that is stopped keeps it."""
    harness.record(
        "mkl",
        figures,
        claims_of(split(figures)),
        title="Several descriptions: learned weights of kernels",
        text=TEXT,
        quick=quick,
    )


if __name__ == "__main__":
    main()
