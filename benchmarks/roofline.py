"""What limits the loops, and how near they are: arithmetic, memory, caches and look-ups.

The ceilings are measured by loops that do nothing else (``roofline.cpp``), in the same run.
"""

import ctypes
import math
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import harness
import numpy as np
from data import histograms
from harness import claim, compare
from images_speed import scenes
from native import compiled, library
from sklearn.exceptions import ConvergenceWarning

from hilbin._core import core
from hilbin.estimators import IntersectionSVC
from hilbin.kernels import Chi2, Gaussian, Intersection
from hilbin.maps import PQCodes
from hilbin.solvers import Problem, gram_rows, smo
from hilbin.solvers.coded import PQRows

SOURCE = Path(__file__).with_name("roofline.cpp")
WORDS, DIMENSION = 1024, 128
BIN, STEP, SWEEPS = 4, 8, 20
TEXT = (
    "One thread, and its processor time: what other programs take does not count. "
    "The ceilings are loops without anything else: multiplications and additions in "
    "registers, reading an array of a size that fits the first cache (16 kB), the second (512 kB) "
    "or neither (256 MB), and look-ups in tables of 16 kB. For every loop of the package the "
    "operations of its formula are counted, and the bytes that have to come from memory at least "
    "once: a minimum and an addition are two operations, a subtraction, a product and a sum three, "
    "a term of chi-squared four, a look-up one. Their quotient says which ceiling is the lower "
    "one. A loop that moves more than it has to, or computes more than its formula, is below its "
    "ceiling: chi-squared divides, which takes several instructions. Minima and additions have a "
    "ceiling of their own, since they cannot be fused as products and sums are."
)


class Sizes(NamedTuple):
    """How much is measured."""

    rows: int = 1500
    bins: int = 512
    points: int = 4096
    side: int = 256
    many_rows: int = 20_000
    smo_rows: int = 6000
    steps: int = 2000
    rounds: int = 5
    peak_rounds: int = 2_000_000
    big_bytes: int = 1 << 28


QUICK = Sizes(200, 64, 200, 64, 500, 300, 50, 1, 100_000, 1 << 24)


class Loop(NamedTuple):
    """A call, the operations of its formula, the bytes it has to move, and what limits it."""

    call: Callable[[], object]
    operations: float
    bytes: float
    limit: str


def roofs(sizes: Sizes) -> dict[str, float]:
    """Billions of operations, bytes or look-ups a second that the processor does at best."""
    made = compiled(SOURCE)
    if made is None:
        return {}
    pointer = ctypes.c_void_p
    made.peak_multiply_add.restype = made.read_all.restype = ctypes.c_double
    made.peak_look_ups.restype = ctypes.c_double
    made.peak_multiply_add.argtypes = [ctypes.c_int64]
    made.read_all.argtypes = [pointer, ctypes.c_int64, ctypes.c_int64]
    made.peak_look_ups.argtypes = [pointer, pointer, ctypes.c_int64, ctypes.c_int64, pointer]
    numbers = np.ones(sizes.big_bytes // 4, np.float32)
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 256, (4096, 16)).astype(np.uint8)
    tables, out = rng.random((16, 256), np.float32), np.empty(4096, np.float32)

    def reading(size: int) -> Callable[[], float]:
        count = size // 4
        return lambda: made.read_all(numbers.ctypes.data, count, max(1, sizes.big_bytes // size))

    calls: dict[str, Callable[[], float]] = {
        "multiply and add, Gop/s": lambda: made.peak_multiply_add(sizes.peak_rounds),
        "minimum and add, Gop/s": lambda: 2 * library().peak_minimum(sizes.peak_rounds),
        "memory, GB/s": reading(sizes.big_bytes),
        "second cache, GB/s": reading(1 << 19),
        "first cache, GB/s": reading(1 << 14),
        "look-ups, G/s": lambda: made.peak_look_ups(
            codes.ctypes.data, tables.ctypes.data, 4096, 100, out.ctypes.data
        ),
    }
    times = compare(calls, 3 * sizes.rounds, clock=time.thread_time)
    return {name: call() / times[name].best / 1e9 for name, call in calls.items()}


def gram_loops(sizes: Sizes) -> dict[str, Loop]:
    """Gram matrices of dense float32 rows, and BLAS beside them."""
    n, d = sizes.rows, sizes.bins
    X, Y = histograms(n, d), histograms(n, d, seed=1)
    moved = 4.0 * (2 * n * d + n * n)
    kernels = {
        "Gram, intersection": (Intersection(), 2, "minimum and add"),
        "Gram, chi-squared": (Chi2(), 4, "divisions"),
        "Gram, Gaussian": (Gaussian(), 3, "arithmetic"),
    }
    made = {
        name: Loop(lambda k=kernel: k.gram(X, Y, n_jobs=1), per * n * n * d, moved, limit)
        for name, (kernel, per, limit) in kernels.items()
    }
    made["matrix product (BLAS)"] = Loop(lambda: X @ Y.T, 2.0 * n * n * d, moved, "arithmetic")
    return made


def image_loops(sizes: Sizes) -> dict[str, Loop]:
    """Dense SIFT of one image, and the nearest words of descriptors."""
    rng = np.random.default_rng(0)
    P = rng.random((sizes.points, DIMENSION), np.float32)
    C = rng.random((WORDS, DIMENSION), np.float32)
    half = (np.vecdot(C, C) / 2).astype(np.float32)
    words, scores = np.empty(sizes.points, np.int32), np.empty(sizes.points, np.float32)
    image = scenes(1, sizes.side)[0].astype(np.float32) / 255
    frames = int(np.prod(core.dense_sift_grid(*image.shape, BIN, STEP)))
    found, norms = np.empty((frames, 128), np.float32), np.empty(frames, np.float32)
    across = len({f * STEP + b * BIN for f in range(math.isqrt(frames)) for b in range(4)})
    filters = 2.0 * 8 * (2 * BIN - 1) * (across * sizes.side + across**2)
    operations = 30.0 * sizes.side**2 + filters + 128 * 8 * frames
    return {
        "nearest of 1024 words": Loop(
            lambda: core.nearest(P, C, half, words, scores),
            2.0 * sizes.points * WORDS * DIMENSION, 4.0 * (P.size + C.size), "arithmetic",
        ),
        "dense SIFT": Loop(
            lambda: core.dense_sift(image, BIN, STEP, found, norms),
            operations, 4.0 * (image.size + found.size), "arithmetic",
        ),
    }  # fmt: skip


def look_up_loops(sizes: Sizes) -> dict[str, Loop]:
    """Scores by look-ups: shape functions of an intersection SVM, and product-quantized codes."""
    n, d = sizes.many_rows, 128
    X = histograms(n, d)
    y = X[:, : d // 2].sum(axis=1) > np.median(X[:, : d // 2].sum(axis=1))
    model = IntersectionSVC(tol=0.1).fit(X, y)
    rng = np.random.default_rng(0)
    blocks = 1024
    codes = rng.integers(0, 256, (blocks // 32, n, 32)).astype(np.uint8)
    words = rng.normal(size=(blocks, 256, 8)).astype(np.float32)
    rows = PQRows(PQCodes(codes, words, 8 * blocks).groups, words, 8 * blocks, expansion="delayed")
    V = rng.normal(size=(1, 8 * blocks)).astype(np.float32)
    return {
        "intersection SVM, scores": Loop(
            lambda: model.decision_function(X), float(n * d), 4.0 * n * d, "look-ups"
        ),
        "codes, scores": Loop(
            lambda: rows.scores(V), float(n * blocks),
            float(n * blocks + 4 * words.size), "look-ups",
        ),
    }  # fmt: skip


def solver_loops(sizes: Sizes) -> dict[str, Loop]:
    """Steps of SMO on a stored matrix, and sweeps of the intersection SVM."""
    n, d = sizes.smo_rows, 64
    X = histograms(n, d)
    rng = np.random.default_rng(1)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)  # noise: all rows become support vectors
    K = np.ascontiguousarray(Gaussian(gamma=20.0).gram(X))
    rows, problem = (
        gram_rows(K),
        Problem(y, np.minimum(0, 10 * y), np.maximum(0, 10 * y), total=0.0),
    )

    def steps() -> None:
        smo(rows, problem, tol=1e-9, max_iter=sizes.steps, shrinking=False)

    many = histograms(sizes.many_rows, d)
    labels = rng.random(sizes.many_rows) < 0.5

    def sweeps() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            IntersectionSVC(tol=1e-9, max_iter=SWEEPS).fit(many, labels)

    return {
        "SMO, steps": Loop(steps, 10.0 * n * sizes.steps, 8.0 * n * sizes.steps, "memory"),
        "intersection SVM, sweeps": Loop(
            sweeps, 2.0 * SWEEPS * many.size, float(SWEEPS * many.size), "look-ups"
        ),
    }


def measured(loops: dict[str, Loop], roof: dict[str, float], rounds: int) -> dict[str, Any]:
    """Rate, intensity, the lower ceiling at that intensity, and how near it is."""
    times = compare(
        {name: loop.call for name, loop in loops.items()},
        rounds,
        patience=90,
        clock=time.thread_time,
    )
    table: dict[str, Any] = {}
    for name, loop in loops.items():
        rate, intensity = loop.operations / times[name].best / 1e9, loop.operations / loop.bytes
        row: dict[str, Any] = {"Gop/s": rate, "operations per byte": intensity}
        if roof:
            row |= {"ceiling, Gop/s": ceiling(loop, roof), "limit": loop.limit}
            row["share of it, %"] = 100 * rate / row["ceiling, Gop/s"]
        table[name] = row
    return table


def ceiling(loop: Loop, roof: dict[str, float]) -> float:
    """The lowest of the ceilings that a loop is under."""
    peak = next(
        (rate for name, rate in roof.items() if name.startswith(loop.limit)),
        roof["multiply and add, Gop/s"],
    )
    if loop.limit == "memory":
        peak = math.inf
    return min(peak, roof["memory, GB/s"] * loop.operations / loop.bytes)


def plot_of(table: dict[str, Any], roof: dict[str, float]) -> list[dict[str, Any]]:
    """What render.py draws."""
    if not roof:
        return []
    points = {name: [row["operations per byte"], row["Gop/s"]] for name, row in table.items()}
    return [
        {
            "name": "roofline",
            "title": "What limits the loops, and how near they are (one thread)",
            "points": points,
            "slopes": {name: roof[f"{name}, GB/s"] for name in ("memory", "first cache")},
            "tops": {k.split(",")[0]: v for k, v in roof.items() if "GB/s" not in k},
        }
    ]


def main() -> None:
    """Measure, claim and record."""
    args = harness.parser(__doc__).parse_args()
    harness.keep_memory()
    sizes = QUICK if args.quick else Sizes()
    with harness.threads(1):
        roof = roofs(sizes)
        loops = gram_loops(sizes) | image_loops(sizes)
        table = measured(loops | look_up_loops(sizes) | solver_loops(sizes), roof, sizes.rounds)
    claims = [
        claim(f"{name}, share of what limits it", table[name]["share of it, %"], required,
              against=f"{table[name]['limit']}, measured", unit=" %")
        for name, required in (("Gram, intersection", 60), ("nearest of 1024 words", 60))
        if roof
    ]  # fmt: skip
    figures = {**sizes._asdict(), "Ceilings": roof, "Loops": table}
    harness.record(
        "roofline", figures, claims, title="What limits the loops", text=TEXT,
        plots=plot_of(table, roof), quick=args.quick,
    )  # fmt: skip
    for name, row in table.items():
        print(name, {k: v if isinstance(v, str) else round(v, 2) for k, v in row.items()})


if __name__ == "__main__":
    main()
