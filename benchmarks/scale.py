"""A cost model of learning from sums: fitted to its parts, checked on whole jobs.

One process on one core, the unit of a cluster; a worker is such a core.
"""

import itertools
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import harness
import numpy as np
import scipy.sparse as sp
from harness import claim
from scipy.optimize import nnls

from hilbin.estimators import CostEstimate, MapRidgeClassifier
from hilbin.estimators.linear.cost import NETWORK
from hilbin.kernels import Chi2, Exponential
from hilbin.maps import FourierMap
from hilbin.solvers.ridge import ridge, ridge_grid, ridge_path
from hilbin.stats import Moments
from hilbin.stream import Chunk, as_chunks, fold

MAP_ROWS = 10_000
TEXT = (
    "n rows of d columns (float32 in .npy files), D exp-chi2 Fourier features, c classes; "
    "MapRidgeClassifier(alpha='auto'), which reads the rows twice (a sample for the map and "
    "the classes, then the sums), maps them, adds up their products and decomposes one D x D "
    "matrix. Every part is measured by itself on a few sizes, and the coefficients of its terms "
    "are fitted by non-negative least squares on relative errors. The whole jobs were not used for "
    "the fit; `estimate_cost` looks at the first rows of each. One core, one thread of BLAS; files "
    "are in the page cache, so a slow disk is to be added. On several workers rows are divided, "
    "sums of 8 D^2 bytes are added along a tree over "
    f"a network of {NETWORK / 1e9:g} GB/s (assumed), and the decomposition stays on one core. "
    "ImageNet's size is 1.2 million rows of 10,000 columns, 10,000 features (or the columns "
    "themselves), 1000 classes: it is a prediction, not a run."
)


class Job(NamedTuple):
    """The size of a job."""

    n: int
    d: int
    D: int
    c: int


class Sizes(NamedTuple):
    """How much is measured."""

    columns: tuple[int, ...] = (32, 128, 512)
    features: tuple[int, ...] = (512, 1024, 2048, 4096)
    rows: int = 4096
    rounds: int = 3
    jobs: tuple[Job, ...] = (
        Job(10_000, 64, 1000, 10),
        Job(100_000, 64, 1000, 10),
        Job(1_000_000, 64, 512, 10),
        Job(1_000_000, 16, 256, 100),
        Job(100_000, 256, 2000, 100),
        Job(30_000, 256, 4000, 10),
        Job(10_000, 512, 3000, 1000),
    )


QUICK = Sizes((16, 32), (64, 128), 512, 1, (Job(2000, 16, 64, 3), Job(5000, 32, 128, 10)))

# What the time of every part is proportional to; the coefficients are seconds.
PARTS: dict[str, dict[str, Callable[[Job], float]]] = {
    "read": {"n d": lambda j: j.n * j.d},
    "start": {"1": lambda j: 1, "d D": lambda j: j.d * j.D},
    "map": {
        "n d": lambda j: j.n * j.d,
        "n D": lambda j: j.n * j.D,
        "n d D": lambda j: j.n * j.d * j.D,
    },
    "product": {
        "n D": lambda j: j.n * j.D,
        "n D^2": lambda j: j.n * j.D**2,
        "D c": lambda j: j.D * j.c,
    },
    "solve": {"D^2": lambda j: j.D**2, "D^3": lambda j: j.D**3, "D^2 c": lambda j: j.D**2 * j.c},
}
PARTS["one alpha"] = PARTS["solve"]  # instead of "solve", where the penalty is given
SHARED = ("read", "map", "product")

Readings = list[tuple[Job, float]]
Model = dict[str, dict[str, float]]


def feature_map(D: int) -> FourierMap:
    """The map of all jobs."""
    return FourierMap(Exponential(Chi2()), D, kind="gaussian", random_state=0)


def rows_of(n: int, d: int, seed: int = 0) -> Any:
    """Histograms of random counts."""
    X = np.random.default_rng(seed).gamma(0.5, size=(n, d)).astype(np.float32)
    return X / X.sum(axis=1, keepdims=True)


def best(call: Callable[[], object], rounds: int) -> float:
    """Least seconds of some calls after one that is not counted."""
    call()
    return min(harness.seconds(call) for _ in range(rounds))


def read_through(chunk: Chunk) -> Moments:
    """Touch every value, and next to nothing else."""
    return Moments.of(np.max(chunk.X, keepdims=True).astype(np.float64))


def measure_reading(sizes: Sizes, scratch: Path) -> Readings:
    """Of .npy files in the page cache."""
    readings = []
    for d in sizes.columns:
        job = Job(20 * sizes.rows, d, 0, 0)
        path = scratch / f"read_{d}.npy"
        np.save(path, rows_of(job.n, d))
        readings.append((job, best(lambda p=path: fold(as_chunks(p), read_through), sizes.rounds)))
        path.unlink()
    return readings


def measure_maps(sizes: Sizes) -> tuple[Readings, Readings]:
    """Fitting the map to a sample, and mapping rows."""
    starts, maps = [], []
    for d, D in itertools.product(sizes.columns, sizes.features):
        X = rows_of(min(MAP_ROWS, 20 * sizes.rows), d)
        made = feature_map(D).fit(X)
        starts.append((Job(len(X), d, D, 0), best(lambda D=D, X=X: feature_map(D).fit(X), 1)))
        X = X[: sizes.rows]
        seconds = best(lambda m=made, X=X: m.transform(X), sizes.rounds)
        maps.append((Job(len(X), d, D, 0), seconds))
    return starts, maps


def measure_sums(sizes: Sizes) -> tuple[Readings, Readings, Readings]:
    """Adding up products, and solving from them for the best of many penalties, and for one."""
    products, solutions, single = [], [], []
    rng = np.random.default_rng(0)
    for D, c in itertools.product(sizes.features, (10, 500)):
        Z = rng.normal(size=(sizes.rows, D)).astype(np.float32)
        labels = (np.ones(len(Z)), (np.arange(len(Z)), rng.integers(0, c, len(Z))))
        T = sp.csr_array(labels, (len(Z), c))
        total = Moments.of(Z, T)

        def add(Z: Any = Z, T: Any = T, total: Any = total) -> None:
            total.__iadd__(Moments.of(Z, T))

        def solve(total: Any = total) -> None:
            path = ridge_path(total, ridge_grid(total))
            path.at(path.best_alpha)

        job = Job(len(Z), 0, D, c)
        products.append((job, best(add, sizes.rounds)))
        solutions.append((job, best(solve, 1)))
        single.append((job, best(lambda total=total: ridge(total, 1.0), 1)))
    return products, solutions, single


def fitted(readings: dict[str, Readings]) -> Model:
    """Coefficients of every part."""
    model: Model = {}
    for part, terms in PARTS.items():
        times = np.array([seconds for _, seconds in readings[part]])
        A = np.array([[term(job) for term in terms.values()] for job, _ in readings[part]])
        scale = A.max(axis=0)
        found, _ = nnls(A / scale / times[:, None], np.ones(times.size))
        model[part] = dict(zip(terms, (found / scale).tolist(), strict=True))
    return model


def predicted(model: Model, job: Job, workers: int = 1) -> dict[str, float]:
    """Seconds of every part of a job."""
    seconds = {
        part: sum(model[part][name] * term(job) for name, term in terms.items())
        for part, terms in PARTS.items()
        if part != "one alpha"
    }
    seconds["read"] *= 2  # a sample first
    for part in SHARED:
        seconds[part] /= workers
    seconds["merge"] = math.ceil(math.log2(workers)) * 8 * job.D**2 / NETWORK
    return seconds


def run(job: Job, scratch: Path) -> tuple[CostEstimate, float]:
    """What the estimator expects of the job, from its first rows, and the seconds of the job."""
    folder = scratch / "job"
    folder.mkdir()
    files = max(1, job.n // 50_000)
    for i in range(files):
        rows = rows_of(job.n // files, job.d, seed=i)
        np.save(folder / f"X_{i:03}.npy", rows)
        # every class occurs
        np.save(folder / f"y_{i:03}.npy", (np.arange(len(rows)) + rows.argmax(axis=1)) % job.c)
    model = MapRidgeClassifier(feature_map(job.D), alpha="auto")
    estimate = model.estimate_cost(folder)
    seconds = harness.seconds(lambda: model.fit(folder))
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    return estimate, seconds


def imagenet(model: Model) -> dict[str, dict[str, float]]:
    """What 1.2 million rows of 10,000 features and 1000 classes would take."""
    job = Job(1_200_000, 10_000, 10_000, 1000)
    table = {}
    for kind, workers in itertools.product(("linear", "exp-chi2"), (1, 16, 256)):
        parts = predicted(model, job, workers)
        if kind == "linear":
            parts |= {"map": 0.0, "start": 0.0}
        row = {f"{part}, s": seconds for part, seconds in parts.items()}
        table[f"{kind}, {workers} workers"] = row | {"hours": sum(parts.values()) / 3600}
    return table


def main() -> None:
    """Measure, fit, check and record."""
    args = harness.parser(__doc__).parse_args()
    harness.keep_memory()
    sizes = QUICK if args.quick else Sizes()
    readings: dict[str, Readings] = {}
    checks: dict[str, dict[str, float]] = {}
    with harness.threads(1), tempfile.TemporaryDirectory() as scratch:
        readings["read"] = measure_reading(sizes, Path(scratch))
        readings["start"], readings["map"] = measure_maps(sizes)
        sums = measure_sums(sizes)
        readings["product"], readings["solve"], readings["one alpha"] = sums
        model = fitted(readings)
        for job in sizes.jobs:
            parts = predicted(model, job)
            estimate, took = run(job, Path(scratch))
            name = f"n={job.n:,}, d={job.d}, D={job.D}, c={job.c}"
            checks[name] = {f"{part}, s": s for part, s in parts.items() if part != "merge"}
            total = sum(parts.values())
            checks[name] |= {"predicted, s": total, "measured, s": took, "ratio": took / total}
            checks[name] |= {"estimate_cost, s": estimate.seconds}
            checks[name] |= {"measured over estimate_cost": took / estimate.seconds}
            print(name, {k: round(v, 3) for k, v in checks[name].items()}, flush=True)
    ratios = [row["ratio"] for row in checks.values()]
    estimates = [row["measured over estimate_cost"] for row in checks.values()]
    claims = [
        claim(f"Job, measured time, {which} of all", value, limit, relation, against=against)
        for against, found in (("predicted", ratios), ("estimate_cost", estimates))
        for which, value, limit, relation in (
            ("worst", max(found), 1.5, "<="),
            ("best", min(found), 1 / 1.5, ">="),
        )
    ]
    figures = {
        "Seconds per unit of every term": model,
        "Whole jobs": checks,
        "ImageNet's size, predicted": imagenet(model),
    }
    harness.record("scale", figures, claims, title="The cost of learning from sums", text=TEXT,
                   quick=args.quick)  # fmt: skip


if __name__ == "__main__":
    main()
