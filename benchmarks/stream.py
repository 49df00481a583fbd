"""Learning from sums: the cost of a fold beside BLAS, memory, a cluster, and a million rows.

Every part runs in a process of its own where memory or threads are measured.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import harness
import numpy as np
from harness import claim
from scipy.linalg.blas import dsyrk

from hilbin.estimators import MapRidge
from hilbin.stats import Moments
from hilbin.stream import Chunk, as_chunks, fold

BLOCK_ROWS = 1024
MEMORY = 64  # MiB, of a fold whose peak is measured
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
TEXT = (
    "The fold is that of Moments (n, means, centered scatter) over blocks of 1024 rows that lie in "
    "memory; the peer is dsyrk, beta=1, one triangle, in place, on the same blocks in float64. "
    "Peak memory is the resident size of a process that folds a folder of .npy files of 256 "
    "float32 columns with memory=64 MiB. The cluster is Dask's LocalCluster of processes with one "
    "thread each, BLAS included, and Moments of shards on disk; the time is that of the fold, "
    "without starting the workers. What two processes of bare dsyrk gain over one, on this "
    "machine, bounds what two workers can; processor time of one fold says what sending and adding "
    "sums takes beside the products. The million rows are 2000 float32 columns in 20 "
    "files, with 5 targets; MapRidge reads them once."
)


class Sizes(NamedTuple):
    """How much is measured."""

    width: int = 4096
    rows: int = 40_960
    rounds: int = 3
    few_rows: int = 100_000
    many_rows: int = 1_000_000
    cluster_rows: int = 100_000
    cluster_width: int = 2048
    long_rows: int = 1_000_000
    long_width: int = 2000


QUICK = Sizes(256, 2048, 2, 2000, 20_000, 4000, 128, 5000, 64)


def moments_of(chunk: Chunk) -> Moments:
    """What is added up."""
    return Moments.of(chunk.X)


def measure_fold(sizes: Sizes, dtype: Any) -> dict[str, Any]:
    """Seconds of the fold and of bare rank-k updates."""
    X = np.random.default_rng(0).random((sizes.rows, sizes.width), np.float32).astype(dtype)
    blocks = [X[i : i + BLOCK_ROWS].astype(np.float64) for i in range(0, sizes.rows, BLOCK_ROWS)]
    total = np.zeros((sizes.width, sizes.width), order="F")

    def bare() -> None:
        for block in blocks:
            dsyrk(1.0, block.T, beta=1.0, c=total, overwrite_c=True)

    def folded() -> None:
        fold(as_chunks(X, rows=BLOCK_ROWS), moments_of)

    times = harness.compare({"fold": folded, "dsyrk": bare}, sizes.rounds, patience=120)
    return {
        "fold, s": times["fold"].best,
        "dsyrk, s": times["dsyrk"].best,
        "ratio": times["fold"].best / times["dsyrk"].best,
    }


def write_shards(folder: Path, rows: int, width: int, files: int, targets: int = 0) -> None:
    """Random rows, and targets that depend on them, in .npy files."""
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(width, targets)).astype(np.float32)
    for i in range(files):
        X = rng.random((rows // files, width), np.float32)
        np.save(folder / f"X_{i:03}.npy", X)
        if targets:
            np.save(folder / f"y_{i:03}.npy", X @ weights + rng.normal(size=(len(X), targets)))


def in_process(part: str, *arguments: Any, **environment: str) -> Any:
    """What a part of this script prints, run by itself."""
    command = [sys.executable, __file__, "--part", part, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | environment)
    if done.returncode:
        raise RuntimeError(f"{part} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def peak() -> float:
    """Resident MiB of this process at most (what getrusage says includes the parent's)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def peak_memory(folder: str) -> float:
    """Resident MiB of this process after a fold."""
    fold(as_chunks(folder, memory=MEMORY), moments_of)
    return peak()


def cluster_seconds(folder: str, workers: str) -> dict[str, float]:
    """Seconds of a fold on Dask workers that are there already, and processor time of one fold."""
    from dask.distributed import Client, LocalCluster

    chunks = as_chunks(folder, rows=4 * BLOCK_ROWS)
    with (
        LocalCluster(
            n_workers=int(workers), threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        fold(as_chunks(np.eye(8)), moments_of, client=client)

        def busy() -> dict[str, float]:
            there = sum(client.run(time.process_time).values())
            return {"workers": there, "client and scheduler": time.process_time()}

        before, rounds = busy(), 3
        times = [
            harness.seconds(lambda: fold(chunks, moments_of, client=client)) for _ in range(rounds)
        ]
        after = busy()
        used = {f"processor s of {k}": (after[k] - before[k]) / rounds for k in after}
        return {"s": min(times), **used}


def bare_seconds(rows: str, width: str) -> float:
    """Seconds of bare rank-k updates on one thread."""
    block = np.random.default_rng(0).random((BLOCK_ROWS, int(width)))
    total = np.zeros((int(width), int(width)), order="F")
    count = int(rows) // BLOCK_ROWS

    def bare(times: int) -> None:
        for _ in range(times):
            dsyrk(1.0, block.T, beta=1.0, c=total, overwrite_c=True)

    bare(2)
    return harness.seconds(lambda: bare(count))


def bare_gain(sizes: Sizes) -> float:
    """What two processes of bare updates gain over one: all that two workers can gain."""
    alone = in_process("bare", sizes.cluster_rows, sizes.cluster_width, **ONE_THREAD)
    half = ("bare", sizes.cluster_rows // 2, sizes.cluster_width)
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: in_process(*half, **ONE_THREAD), range(2)))
    return float(alone / max(both))


def long_seconds(folder: str) -> dict[str, float]:
    """A ridge on all rows of the folder: seconds, memory and the share of variance explained."""
    model = MapRidge(alpha=1.0)
    took = harness.seconds(lambda: model.fit(folder))
    X, y = (np.load(Path(folder) / f"{name}_000.npy", mmap_mode="r")[:2000] for name in "Xy")
    return {"s": took, "peak, MiB": peak(), "R2": model.score(X, y)}


PARTS: dict[str, Callable[..., Any]] = {
    "memory": peak_memory,
    "cluster": cluster_seconds,
    "bare": bare_seconds,
    "long": long_seconds,
}


def on_disk(sizes: Sizes, scratch: Path) -> dict[str, Any]:
    """Memory, cluster and the million rows."""
    found: dict[str, Any] = {}
    for name, rows in (("few", sizes.few_rows), ("many", sizes.many_rows)):
        folder = scratch / name
        folder.mkdir()
        write_shards(folder, rows, 256, 10)
        found[f"peak at {rows} rows, MiB"] = in_process("memory", folder)
    cluster = scratch / "cluster"
    cluster.mkdir()
    write_shards(cluster, sizes.cluster_rows, sizes.cluster_width, 8)
    for workers in (1, 2):
        times = in_process("cluster", cluster, workers, **ONE_THREAD)
        found |= {f"{workers} workers, {k}": v for k, v in times.items()}
    found["two processes of bare dsyrk gain"] = bare_gain(sizes)
    for name in ("few", "many", "cluster"):
        for file in (scratch / name).iterdir():
            file.unlink()
    long = scratch / "long"
    long.mkdir()
    write_shards(long, sizes.long_rows, sizes.long_width, 20, targets=5)
    found |= {f"{sizes.long_rows} rows, {k}": v for k, v in in_process("long", long).items()}
    return found


def main() -> None:
    """Measure, claim and record."""
    parser = harness.parser(__doc__)
    parser.add_argument("--part", nargs="+", help="run one part and print what it found")
    args = parser.parse_args()
    if args.part:
        name, *arguments = args.part
        print(json.dumps(PARTS[name](*arguments)))
        return
    sizes = QUICK if args.quick else Sizes()
    folds = {str(np.dtype(t)): measure_fold(sizes, t) for t in (np.float32, np.float64)}
    with tempfile.TemporaryDirectory() as scratch:
        found = on_disk(sizes, Path(scratch))

    def busy(workers: int) -> float:
        parts = ("workers", "client and scheduler")
        return sum(found[f"{workers} workers, processor s of {part}"] for part in parts)

    peaks = [found[f"peak at {rows} rows, MiB"] for rows in (sizes.few_rows, sizes.many_rows)]
    claims = [
        *harness.by_set("Fold of moments, time", {k: v["ratio"] for k, v in folds.items()}, 1.2,
                        "<=", against="bare dsyrk", kind="types"),
        claim("Peak memory, ten times the rows", peaks[1] / peaks[0], 1.1, "<=", against="once"),
        claim("Two Dask workers", found["1 workers, s"] / found["2 workers, s"], 1.8,
              against="one"),
        claim("Two Dask workers, processor time of all processes", busy(2) / busy(1), 1.1, "<=",
              against="one"),
    ]  # fmt: skip
    harness.record("stream", {**sizes._asdict(), "Fold": folds, "On disk": {"measured": found}},
                   claims, title="Bigger than memory", text=TEXT, quick=args.quick)  # fmt: skip


if __name__ == "__main__":
    main()
