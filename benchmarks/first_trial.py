"""What a first trial gets: whole fits on few rows and first Gram matrices, as a user calls them.

One thread, and the allocator as it is: pages of a new matrix are fresh. Peers get their best
reasonable setting, which is tried beside the default.
"""

from typing import Any, NamedTuple

import harness
import numpy as np
import peers
from data import Array, histograms
from harness import Timing, claim, compare
from machines import exp_chi2, fitting
from peers import Peer
from sets import labeled_sets, one_class
from sklearn import config_context
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import chi2_kernel
from sklearn.svm import SVC

from hilbin.estimators import KernelSVC
from hilbin.kernels import Chi2, Exponential, Gaussian, Intersection

FEW = {100: 0.5, 300: 1.0, 1000: 1.0, 1797: 1.0}  # rows, and how many times faster is required
CLASSES, PER_CLASS = 17, 60
LIBSVM = "scikit-learn's SVC"
FINITE = "SVC, assume_finite"
TEXT = (
    "One thread; the allocator is not tuned, so that fresh pages count for everybody. Whole fits "
    "of KernelSVC and of scikit-learn's SVC, best of interleaved rounds: checks, kernel, training, "
    "and for hilbin the duality gap. Digits are those of scikit-learn, in random order, with a "
    "Gaussian of the same width for both, one-vs-one as SVC does it; one-vs-rest, which is "
    "KernelSVC's default, and the default width, the median of distances, are listed beside it "
    f"and not required. {CLASSES} classes of {PER_CLASS} rows are histograms around random ones. "
    "From features, scikit-learn computes exp-chi2 by its chi2_kernel and the intersection by its "
    "Manhattan distances; the Gaussian is LIBSVM's own and evaluates rows as they are needed. On a "
    "given matrix SVC is timed as it is and with assume_finite=True, which leaves out its look for "
    "NaN; the faster counts. Gram matrices are those of new arrays unless out= is said. "
    "Jensen-Shannon's peer is the fastest of NumPy's forms and SciPy's cdist."
)


class Sizes(NamedTuple):
    """How much is measured."""

    rounds: int = 7
    feature_rows: int = 2000
    given_rows: int = 4000
    gram: tuple[int, int, int] = (2500, 2400, 400)
    peer_rows: int = 2500
    numpy_rows: int = 60


QUICK = Sizes(1, 300, 300, (250, 240, 40), 50, 20)


def faster(times: dict[str, Timing], peer: str, ours: str = "hilbin") -> dict[str, float]:
    """Milliseconds of both and how many times faster hilbin is."""
    return {
        "hilbin, ms": 1e3 * times[ours].best,
        "peer, ms": 1e3 * times[peer].best,
        "speed-up": times[peer].best / times[ours].best,
    }


# few rows
def few_rows(sizes: Sizes) -> dict[str, dict[str, float]]:
    """Digits: the same problem as SVC's, and what the defaults solve."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(y.size)
    gamma = float(Gaussian("median").resolve(X, random_state=0).gamma)
    table = {}
    for n in FEW:
        A, b = X[order[:n]], y[order[:n]]
        calls = {
            "hilbin": fitting(KernelSVC(Gaussian(gamma), multi_class="ovo"), A, b),
            LIBSVM: fitting(SVC(gamma=gamma), A, b),
            "one-vs-rest": fitting(KernelSVC(Gaussian(gamma)), A, b),
            "defaults": fitting(KernelSVC(), A, b),
            "defaults of SVC": fitting(SVC(), A, b),
        }
        times = compare(calls, sizes.rounds * max(1, 3000 // n))
        table[f"{n} rows"] = faster(times, LIBSVM) | {
            "one-vs-rest, speed-up": times[LIBSVM].best / times["one-vs-rest"].best,
            "defaults of both, speed-up": times["defaults of SVC"].best / times["defaults"].best,
        }
    return table


def many_classes(sizes: Sizes) -> dict[str, dict[str, float]]:
    """One-vs-one of many classes of few rows: from features, and on a given matrix."""
    rng = np.random.default_rng(0)
    centers = rng.dirichlet(np.full(200, 0.5), CLASSES)
    y = np.repeat(np.arange(CLASSES), PER_CLASS)
    X = rng.gamma(20 * centers[y] + 0.02)
    X /= X.sum(axis=1, keepdims=True)
    kernel = exp_chi2(X)
    K, gamma = kernel.gram(X), float(Gaussian("median").resolve(X, random_state=0).gamma)
    table = {}
    for name, ours, peer, rows in (
        ("Gaussian", KernelSVC(Gaussian(gamma), 10, multi_class="ovo"), SVC(gamma=gamma, C=10), X),
        ("given matrix", KernelSVC("precomputed", 10, multi_class="ovo"),
         SVC(kernel="precomputed", C=10), K),
    ):  # fmt: skip
        calls = {"hilbin": fitting(ours, rows, y), LIBSVM: fitting(peer, rows, y)}
        table[name] = faster(compare(calls, 3 * sizes.rounds), LIBSVM)
    return table


def from_features(args: Any, sizes: Sizes) -> dict[str, dict[str, float]]:
    """Whole fits of the most frequent class against the rest and of all pairs of classes."""
    table = {}
    for name, s in labeled_sets(args.data, ("usps", "fashion_mnist")).items():
        some = s.sample(sizes.feature_rows).scaled()
        X = np.ascontiguousarray(some.X, np.float64)
        rate = float(exp_chi2(X).gamma)
        gamma = float(Gaussian("median").resolve(X, random_state=0).gamma)
        pairs = {
            "exp-chi2": (Exponential(Chi2(), rate),
                         {"kernel": lambda X, Y, g=rate: chi2_kernel(X, Y, gamma=g / 2)}),
            "intersection": (Intersection(), {"kernel": peers.sklearn_intersection}),
            "Gaussian": (Gaussian(gamma), {"gamma": gamma}),
        }  # fmt: skip
        for kernel, (ours, theirs) in pairs.items():
            for task, y in (("binary", one_class(some.y)), ("one-vs-one", some.y)):
                calls = {
                    "hilbin": fitting(KernelSVC(ours, multi_class="ovo"), X, y),
                    LIBSVM: fitting(SVC(**theirs, cache_size=1000), X, y),
                }
                times = compare(calls, sizes.rounds, patience=8.0)
                table[f"{name}, {kernel}, {task}"] = faster(times, LIBSVM)
    return table


def given_matrix(args: Any, sizes: Sizes) -> dict[str, dict[str, float]]:
    """A given matrix, with and without scikit-learn's look for NaN."""
    table = {}
    for name, s in labeled_sets(args.data, ("usps", "fashion_mnist")).items():
        some = s.sample(sizes.given_rows).scaled()
        K = exp_chi2(some.X).gram(np.ascontiguousarray(some.X, np.float64))
        for task, y in (("binary", one_class(some.y)), ("one-vs-one", some.y)):
            for C in (1.0, 10.0):
                peer = SVC(kernel="precomputed", C=C, cache_size=1000)
                calls = {
                    "hilbin": fitting(KernelSVC("precomputed", C, multi_class="ovo"), K, y),
                    LIBSVM: fitting(peer, K, y),
                    FINITE: lambda peer=peer, y=y, K=K: assuming_finite(peer, K, y),
                }
                times = compare(calls, sizes.rounds)
                best = min((LIBSVM, FINITE), key=lambda label: times[label].best)
                table[f"{name}, {task}, C = {C:g}"] = faster(times, best) | {
                    "over the default": times[LIBSVM].best / times["hilbin"].best,
                    "over assume_finite": times[FINITE].best / times["hilbin"].best,
                }
    return table


def assuming_finite(peer: Any, K: Array, y: Array) -> None:
    """A fit without scikit-learn's look for NaN and infinities."""
    with config_context(assume_finite=True):
        peer.fit(K, y)


# Gram matrices
def gram_matrices(sizes: Sizes) -> dict[str, dict[str, Any]]:
    """New matrices, and the same into an array that is there; forms in NumPy get fewer rows."""
    n, m, bins = sizes.gram
    X, Y, reused = histograms(n, bins), histograms(m, bins, seed=1), np.empty((n, m), np.float32)
    table = {}
    for name, rivals in peers.ADDITIVE.items():
        kernel = rivals[0].kernel
        calls = {
            "hilbin": lambda k=kernel: k.gram(X, Y, n_jobs=1),
            "out": lambda k=kernel: k.gram(X, Y, n_jobs=1, out=reused),
        }
        same = [peer for peer in rivals if peer.kernel == kernel]
        for peer in same:
            few, many = X[: share(peer, sizes)].astype(peer.dtype), Y.astype(peer.dtype)
            calls[peer.label] = lambda p=peer, x=few, y=many: p.call(x, y)
        times = compare(calls, sizes.rounds)
        scaled = {p.label: times[p.label].scaled(n / share(p, sizes)) for p in same}
        best = min(scaled, key=lambda label: scaled[label].best)
        table[name] = faster(times | scaled, best) | {
            "with out=, speed-up": scaled[best].best / times["out"].best,
            "peer": best,
        }
    return table


def share(peer: Peer, sizes: Sizes) -> int:
    """How many rows of X the peer gets; its time is scaled by the number of pairs."""
    return min(sizes.gram[0], sizes.numpy_rows if peer.numpy else sizes.peer_rows)


def claims_of(tables: dict[str, Any]) -> list[dict[str, Any]]:
    """What the figures say."""

    def column(name: str) -> dict[str, float]:
        return {key: row["speed-up"] for key, row in tables[name].items()}

    few, grams = column("Few rows"), tables["First Gram matrices"]
    features = column("From features")
    evaluated = {k: v for k, v in features.items() if "Gaussian" not in k}
    own = {k: v for k, v in features.items() if "Gaussian" in k}
    required = {"Intersection": 14, "Chi2": 12, "JensenShannon": 8}
    return [
        *(claim(f"whole fit, Gaussian, digits, {n} rows", few[f"{n} rows"], least, against=LIBSVM,
                headline=n == 300) for n, least in FEW.items()),
        *(claim(f"whole fit, {CLASSES} classes of {PER_CLASS} rows, one-vs-one, {name}", f, 1.5,
                against=LIBSVM) for name, f in column("Many classes").items()),
        *harness.by_set("whole fit from features", evaluated, 3, kind="tasks", headline=False,
                        against=f"{LIBSVM} with scikit-learn's kernels"),
        *harness.by_set("whole fit from features", own, 3, kind="tasks", headline=False,
                        against=f"{LIBSVM} with its own kernel"),
        *harness.by_set("fit on a given matrix", column("Given matrix"), 2, kind="tasks",
                        against=f"{LIBSVM}, the faster of default and assume_finite=True"),
        *(claim(f"first Gram matrix, {name}", row["speed-up"], required[name], against=row["peer"],
                headline=name == "JensenShannon") for name, row in grams.items()),
        *(claim(f"Gram matrix into out=, {name}", row["with out=, speed-up"], required[name],
                against=row["peer"]) for name, row in grams.items()),
    ]  # fmt: skip


def main() -> None:
    """Measure, claim and record."""
    args = harness.parser(__doc__).parse_args()
    sizes = QUICK if args.quick else Sizes()
    with harness.threads(1):
        tables: dict[str, Any] = {
            "Few rows": few_rows(sizes),
            "Many classes": many_classes(sizes),
            "First Gram matrices": gram_matrices(sizes),
            "Given matrix": given_matrix(args, sizes),
            "From features": from_features(args, sizes),
        }
    harness.record(
        "first_trial",
        {**sizes._asdict(), **tables},
        claims_of(tables),
        title="What a first trial gets",
        text=TEXT,
        quick=args.quick,
    )


if __name__ == "__main__":
    main()
