"""Exact kernel machines against LIBSVM as scikit-learn has it: optimum, training, prediction.

One thread. Gram matrices are those of hilbin for both where the fit on a given matrix is measured;
from features on, each computes its own. Memory is measured in processes of their own.
"""

from typing import Any, NamedTuple

import harness
import numpy as np
from data import Array
from harness import claim, compare
from machines import CACHE, big_task, exp_chi2, fitting, sparse_rows, sparse_training
from peers import sklearn_intersection
from sets import Labeled, labeled_sets, one_class
from sklearn.metrics.pairwise import chi2_kernel
from sklearn.svm import SVC, SVR, OneClassSVM

from hilbin.estimators import KernelOneClass, KernelSVC, KernelSVR
from hilbin.kernels import (
    Chi2,
    Exponential,
    Gaussian,
    Intersection,
    JensenShannon,
)

LIBSVM = "scikit-learn's SVC"
SETS = ("usps", "fashion_mnist")
CS = (1.0, 10.0)
OBJECTIVE = "objective, relative difference"
GIVEN = "Fit on a given matrix"
TEXT = (
    "One thread; both stop at a violation of 1e-3, LIBSVM's default, unless the optimum is "
    "compared (1e-7). The fit on a given matrix includes the checks of the matrix that either "
    "makes. "
    "Features are scaled to [0, 1], float64. scikit-learn's exp-chi2 is its chi2_kernel; it "
    "has no intersection kernel, so that is made of its manhattan_distances. KernelSVC computes "
    "Gaussian and exp-chi2 values in float32 where a bound says that they change by less than "
    "1e-5; the kernels of scikit-learn stay in float64. The big task is "
    "the class 'shirt' of all 60,000 rows of fashion_mnist against the rest, exp-chi2, with 4 GiB "
    "for kernel rows; its peak is of the whole process."
)


class Sizes(NamedTuple):
    """How much is measured."""

    rows: int = 8000
    test_rows: int = 2000
    optimum_rows: int = 1500
    big_rows: int = 60_000
    rounds: int = 3
    patience: float = 90.0


def features(s: Labeled) -> Labeled:
    """Scaled, contiguous float64 rows."""
    X, X_test = (np.ascontiguousarray(part, np.float64) for part in (s.X, s.X_test))
    return s._replace(X=X, X_test=X_test)


# the optimum
def kernels_of(X: Array) -> dict[str, Any]:
    """Five of them."""
    return {
        "intersection": Intersection(),
        "chi2": Chi2(),
        "exp-chi2": exp_chi2(X),
        "Jensen-Shannon": JensenShannon(),
        "Gaussian": Gaussian(gamma="median").resolve(X, random_state=0),
    }


def optimum(s: Labeled) -> dict[str, dict[str, float]]:
    """How far objective and scores are from LIBSVM's, both solved to 1e-7, for five kernels."""
    y, table = one_class(s.y), {}
    for name, kernel in kernels_of(s.X).items():
        K = kernel.gram(s.X)
        ours = KernelSVC("precomputed", tol=1e-7).fit(K, y)
        peer = SVC(kernel="precomputed", tol=1e-7, cache_size=1000).fit(K, y)
        values = []
        for model in (ours, peer):
            c = np.zeros(y.size)
            dual = model.dual_coef_
            c[model.support_] = (dual.toarray() if hasattr(dual, "toarray") else dual).ravel()
            values.append(0.5 * c @ K @ c - y @ c)
        apart = np.abs(ours.decision_function(K) - peer.decision_function(K)).max()
        table[name] = {
            OBJECTIVE: abs(values[0] / values[1] - 1),
            "scores, largest difference": float(apart),
            "gap / objective": float(ours.gap_[0] / ours.objective_[0]),
        }
    return table


# training on a given matrix
def given_matrix(s: Labeled, sizes: Sizes) -> dict[str, dict[str, float]]:
    """Seconds of the fit alone, binary and all classes (one against one), for two values of C."""
    K, table = exp_chi2(s.X).gram(s.X), {}
    for C in CS:
        for task, y in (("binary", one_class(s.y)), ("one-vs-one", s.y)):
            ours = KernelSVC("precomputed", C, multi_class="ovo")
            peer = SVC(kernel="precomputed", C=C, cache_size=1000)
            times = compare(
                {"hilbin": fitting(ours, K, y), LIBSVM: fitting(peer, K, y)}, sizes.rounds
            )
            table[f"{task}, C = {C:g}"] = ratio(times, LIBSVM)
    return table


def ratio(times: dict[str, Any], peer: str) -> dict[str, float]:
    """Seconds of both and how many times faster hilbin is."""
    return {
        "hilbin, s": times["hilbin"].best,
        "peer, s": times[peer].best,
        "speed-up": times[peer].best / times["hilbin"].best,
    }


def end_to_end(s: Labeled, sizes: Sizes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Training and prediction from features, with two kernels."""
    gamma = float(exp_chi2(s.X).gamma)
    pairs = {
        "exp-chi2": (Exponential(Chi2(), gamma), lambda X, Y: chi2_kernel(X, Y, gamma=gamma / 2)),
        "intersection": (Intersection(), sklearn_intersection),
    }
    y, fits, predictions = one_class(s.y), {}, {}
    for name, (kernel, function) in pairs.items():
        ours, peer = KernelSVC(kernel, n_jobs=1), SVC(kernel=function, cache_size=1000)
        times = compare(
            {"hilbin": fitting(ours, s.X, y), LIBSVM: fitting(peer, s.X, y)},
            sizes.rounds,
            patience=sizes.patience,
        )
        fits[name] = ratio(times, LIBSVM)
        predictions[name] = predicting(ours, peer, s, sizes)
    return fits, predictions


def predicting(ours: Any, peer: Any, s: Labeled, sizes: Sizes) -> dict[str, float]:
    """Seconds of the scores of the test rows."""
    calls = {
        "hilbin": lambda: ours.decision_function(s.X_test),
        LIBSVM: lambda: peer.decision_function(s.X_test),
    }
    row = ratio(compare(calls, sizes.rounds, patience=sizes.patience), LIBSVM)
    return row | {"support vectors": len(ours.support_), "rows": len(s.X)}


def own_kernel_of_libsvm(s: Labeled, sizes: Sizes) -> tuple[dict[str, float], dict[str, float]]:
    """The Gaussian, which LIBSVM evaluates on support vectors only: training and prediction."""
    gamma = float(Gaussian(gamma="median").resolve(s.X, random_state=0).gamma)
    ours, peer = KernelSVC(Gaussian(gamma), n_jobs=1), SVC(gamma=gamma, cache_size=1000)
    y = one_class(s.y)
    times = compare(
        {"hilbin": fitting(ours, s.X, y), LIBSVM: fitting(peer, s.X, y)},
        sizes.rounds,
        patience=sizes.patience,
    )
    return ratio(times, LIBSVM), predicting(ours, peer, s, sizes)


def other_machines(s: Labeled, sizes: Sizes) -> dict[str, Any]:
    """Regression and one-class machines on a given matrix."""
    K, target = exp_chi2(s.X).gram(s.X), s.X[:, : s.X.shape[1] // 2].sum(axis=1)
    target = (target - target.mean()) / target.std()
    contenders = {
        "regression": (KernelSVR("precomputed"), SVR(kernel="precomputed", cache_size=1000)),
        "one-class": (
            KernelOneClass("precomputed", nu=0.1),
            OneClassSVM(kernel="precomputed", nu=0.1, cache_size=1000),
        ),
    }
    return {
        name: ratio(
            compare(
                {"hilbin": fitting(ours, K, target), LIBSVM: fitting(peer, K, target)}, sizes.rounds
            ),
            LIBSVM,
        )
        for name, (ours, peer) in contenders.items()
    }


def measure(args: Any, sizes: Sizes) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """All figures and claims."""
    tables: dict[str, Any] = {}
    optima, fits, trained, predicted = {}, {}, {}, {}
    for name, s in labeled_sets(args.data, SETS).items():
        few = features(s.sample(sizes.optimum_rows, 1).scaled())
        many = features(s.sample(sizes.rows, sizes.test_rows).scaled())
        optima |= {f"{name}, {k}": row for k, row in optimum(few).items()}
        fits |= {f"{name}, {k}": row for k, row in given_matrix(many, sizes).items()}
        training, prediction = end_to_end(many, sizes)
        gaussian = own_kernel_of_libsvm(many, sizes)
        trained |= {f"{name}, {k}": row for k, row in training.items()}
        predicted |= {f"{name}, {k}": row for k, row in prediction.items()}
        tables[f"Gaussian of LIBSVM's own, training, {name}"] = gaussian[0]
        predicted[f"{name}, Gaussian (LIBSVM's own)"] = gaussian[1]
        tables |= {f"Other machines, {name}": other_machines(many, sizes)}
    sparse = {
        name: sparse_training(X, y, sizes.rounds)
        for name, (X, y) in sparse_rows(args.data, sizes.rows).items()
    }
    big = big_task(args.data, sizes.big_rows)
    tables |= {
        "The optimum": optima,
        GIVEN: fits,
        "From features": trained,
        "Prediction": predicted,
        "GCS, 90 % zeros, sparse against dense": sparse,
    }
    if big is not None:
        tables["The big task"] = {"fashion_mnist, exp-chi2": big}
    return tables, claims_of(tables)


def column(table: dict[str, dict[str, float]], name: str) -> dict[str, float]:
    """One figure of every row."""
    return {key: row[name] for key, row in table.items()}


def claims_of(tables: dict[str, Any]) -> list[dict[str, Any]]:
    """What the figures say."""
    optima, sparse = tables["The optimum"], tables["GCS, 90 % zeros, sparse against dense"]
    claims = [
        *harness.by_set("objective apart from LIBSVM's", column(optima, OBJECTIVE),
                        1e-6, "<=", against=LIBSVM, unit="", headline=False, kind="tasks"),
        *harness.by_set("scores apart from LIBSVM's", column(optima, "scores, largest difference"),
                        1e-4, "<=", against=LIBSVM, unit="", headline=False, kind="tasks"),
        *harness.by_set("exact SVM, fit on a given matrix", column(tables[GIVEN], "speed-up"),
                        2, against=LIBSVM, kind="tasks"),
        *harness.by_set("exact SVM from features", column(tables["From features"], "speed-up"),
                        8, against=f"{LIBSVM} with its own kernels", kind="tasks"),
        *harness.by_set("prediction of an exact SVM", column(tables["Prediction"], "speed-up"),
                        5, against=LIBSVM, kind="tasks"),
        *harness.by_set("SVM on a sparse Gram matrix, 90 % zeros", column(sparse, "speed-up"),
                        4, against="the same matrix dense"),
        *harness.by_set("SVM on a sparse Gram matrix", column(sparse, "speed-up over LIBSVM"),
                        4, against=f"{LIBSVM} on the dense one", headline=False),
        *harness.by_set("sparse Gram matrix, bytes", column(sparse, "bytes / dense"),
                        0.15, "<=", against="the same matrix dense", headline=False),
    ]  # fmt: skip
    big = tables.get("The big task")
    if big:
        row = next(iter(big.values()))
        claims.append(
            claim("60,000 rows, exp-chi2, peak memory over the limit of 4 GiB",
                  row["peak above the data, GiB"] / (CACHE / 1024), 1, "<=", unit="×")
        )  # fmt: skip
    return claims


def plots_of(tables: dict[str, Any], sizes: Sizes) -> list[dict[str, Any]]:
    """Speed-ups as bars."""
    rows = {
        f"fit, given matrix\n{name}": (row["speed-up"], 2)
        for name, row in tables[GIVEN].items()
        if "one-vs-one" in name
    } | {
        f"from features\n{name}": (row["speed-up"], 8)
        for name, row in tables["From features"].items()
    }
    return [
        {
            "name": "kernel-machines",
            "title": f"Exact SVM, {sizes.rows} rows, one thread: how many times faster than LIBSVM",
            "axis": "speed-up",
            "labels": list(rows),
            "series": {"hilbin": [value for value, _ in rows.values()]},
            "required": [required for _, required in rows.values()],
            "unit": "×",
        }
    ]


def main() -> None:
    """Measure, claim and record."""
    parser = harness.parser(__doc__)
    args = parser.parse_args()
    harness.keep_memory()
    sizes = Sizes(1000, 300, 300, 2000, 1) if args.quick else Sizes()
    with harness.threads(1):
        tables, claims = measure(args, sizes)
    harness.record(
        "kernel_machines",
        {**sizes._asdict(), **tables},
        claims,
        title="Exact kernel machines",
        text=TEXT,
        plots=plots_of(tables, sizes),
        quick=args.quick,
    )


if __name__ == "__main__":
    main()
