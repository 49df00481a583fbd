"""Several descriptions of the same things: weights of kernels, against the plain average of all.

Accuracy and time of every rule to combine kernels, the weights they give, and the time of
multiple kernel learning against the same updates around LIBSVM.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import harness
import numpy as np
from data import Array
from harness import by_set, claim, compare
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from views import Views, view_sets

from hilbin.estimators import (
    AlignedKernel,
    InfiniteKernelSVC,
    KernelSVC,
    MultipleKernelRidgeClassifier,
    MultipleKernelSVC,
)
from hilbin.kernels import WeightedSum, kernel_scale, product_kernel
from hilbin.solvers.multiple import Trial, multiple

COST, ALPHA = 10.0, 0.1
AVERAGE, BEST, INFINITE, L1 = "average", "best single", "infinite", "L1"
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
    "usual split, if they are there. One class against the rest, C = 10, fits from rows, Gram "
    "matrices included. "
    "*Best single* is the one that tests best, which flatters it. *Average*: equal weights of "
    "kernels of unit variance in feature space; *product*: the exponential of the mean distance; "
    "*alignf*: weights by centered alignment; *L1* to *L4*: MultipleKernelSVC with that norm of "
    "the weights; *infinite*: InfiniteKernelSVC with a family for each description; *ridge*: "
    "MultipleKernelRidgeClassifier with alpha = 0.1. scikit-learn has all columns, standardized, "
    "and its defaults but for C = 10 of the RBF machine. "
    "**Weights do not beat the average** beyond the spread over splits: they are for reading, and "
    "for kernels that need not be computed.\n\n"
    "Speed: all 2000 rows of mfeat, six given matrices. The peer is the same loop over weights "
    "with the same tolerances, in which a round is scikit-learn's SVC on the sum of the matrices "
    "for every class, in double precision and from nothing, as it takes no start."
)


class Sizes(NamedTuple):
    """How much is measured."""

    seeds: int = 5
    repeats: int = 3


# rules
def average(views: Views, X: Array, y: Array) -> Any:
    """Equal weights of kernels of size 1."""
    kernels = [kernel.resolve(X, random_state=0) for kernel in views.kernels.values()]
    weights = [kernel_scale(kernel, X) / len(kernels) for kernel in kernels]
    return KernelSVC(WeightedSum(kernels, weights), COST).fit(X, y)


def product(views: Views, X: Array, y: Array) -> Any:
    """The exponential of the mean distance."""
    kernel = product_kernel([*views.kernels.values()], X, random_state=0)
    return KernelSVC(kernel, COST).fit(X, y)


def alignf(views: Views, X: Array, y: Array) -> Any:
    """Weights by alignment."""
    aligned = AlignedKernel([*views.kernels.values()]).fit(X, y)
    model = KernelSVC(aligned.kernel_, COST).fit(X, y)
    model.weights_ = aligned.weights_
    return model


def learned(norm: float) -> Callable[[Views, Array, Array], Any]:
    """Multiple kernel learning."""
    return lambda views, X, y: MultipleKernelSVC(views.kernels, COST, norm=norm).fit(X, y)


def ridge(norm: float) -> Callable[[Views, Array, Array], Any]:
    """The same with squared loss."""
    return lambda views, X, y: MultipleKernelRidgeClassifier(views.kernels, ALPHA, norm=norm).fit(
        X, y
    )


def infinite(views: Views, X: Array, y: Array) -> Any:
    """The best of all widths."""
    return InfiniteKernelSVC(views.kernels, COST, tol=1e-3, kernel_tol=1e-2).fit(X, y)


def rbf(views: Views, X: Array, y: Array) -> Any:
    """scikit-learn's, on all columns."""
    return make_pipeline(StandardScaler(), SVC(C=COST, cache_size=1000)).fit(X, y)


def linear(views: Views, X: Array, y: Array) -> Any:
    """scikit-learn's, on all columns."""
    return make_pipeline(StandardScaler(), LinearSVC()).fit(X, y)


RULES: dict[str, Callable[[Views, Array, Array], Any]] = {
    AVERAGE: average,
    "product": product,
    "alignf": alignf,
    L1: learned(1),
    "L2": learned(2),
    "L4": learned(4),
    INFINITE: infinite,
    "ridge, L1": ridge(1),
    "ridge, L2": ridge(2),
    "scikit-learn, RBF SVC": rbf,
    "scikit-learn, LinearSVC": linear,
}


def single(name: str) -> Callable[[Views, Array, Array], Any]:
    """One description."""
    return lambda views, X, y: KernelSVC(views.kernels[name], COST).fit(X, y)


# accuracy
def measured(views: Views, rule: Callable[..., Any]) -> tuple[dict[str, Any], list[Array]]:
    """Accuracy and time over the splits, and the weights if there are some."""
    accuracies, times, rounds, weights = [], [], [], []
    for train, test in views.splits:
        X, y = views.X[train], views.y[train]
        fitted: list[Any] = []
        times.append(harness.seconds(lambda: fitted.append(rule(views, X, y))))  # noqa: B023
        model = fitted[0]
        accuracies.append(100 * np.mean(model.predict(views.X[test]) == views.y[test]))
        if hasattr(model, "weights_") and not isinstance(model, InfiniteKernelSVC):
            weights.append(model.weights_)
        if hasattr(model, "history_"):
            rounds.append(model.n_iter_)
    row = {ACCURACY: float(np.mean(accuracies)), SPREAD: float(np.std(accuracies))}
    row |= {SECONDS: float(np.mean(times))}
    return row | ({ROUNDS: max(rounds)} if rounds else {}), weights


def compared(views: Views) -> tuple[dict[str, Any], dict[str, Any]]:
    """All rules on one set, and the mean weights of those that have weights."""
    table, weights = {}, {}
    for name in views.kernels:
        table[f"{name} alone"] = measured(views, single(name))[0]
    best = max(table, key=lambda name: table[name][ACCURACY])
    table[f"{BEST}: {best.removesuffix(' alone')}"] = table[best]
    for name, rule in RULES.items():
        table[name], found = measured(views, rule)
        print(f"{name}: {table[name]}", flush=True)
        if found:
            means = np.mean(found, axis=0)
            weights[name] = dict(zip(views.kernels, means.tolist(), strict=True))
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
        best = next(row for key, row in table.items() if key.startswith(BEST))[ACCURACY]
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


def main() -> None:
    """Measure, claim and record."""
    parser = harness.parser(__doc__)
    parser.add_argument("--cache", type=Path, help="folder for the channels of photographs")
    args = parser.parse_args()
    harness.keep_memory()
    sizes = Sizes(1, 1) if args.quick else Sizes()
    tables: dict[str, Any] = {"accuracy": {}, "weights": {}, "speed": {}}
    with harness.threads(1):
        for name, views in view_sets(args.data, sizes.seeds, args.cache).items():
            print(f"[{name}]", flush=True)
            tables["accuracy"][name], tables["weights"][name] = compared(views)
            if name == "mfeat":
                tables["speed"] = speed(views, sizes.repeats)
    figures = {f"{name}: accuracy": table for name, table in tables["accuracy"].items()}
    figures |= {f"{name}: weights": table for name, table in tables["weights"].items()}
    figures |= {"Speed": tables["speed"]} if tables["speed"] else {}
    harness.record(
        "mkl",
        {**sizes._asdict(), **figures},
        claims_of(tables),
        title="Several descriptions: learned weights of kernels",
        text=TEXT,
        quick=args.quick,
    )


if __name__ == "__main__":
    main()
