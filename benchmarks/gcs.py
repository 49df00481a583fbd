"""The sparse Gram matrix of the geometric compactly supported kernel: time and memory.

The peer is scikit-learn's graph of distances below the same radius: the same pairs, without the
kernel. One thread. Memory is measured in a process of its own.
"""

import contextlib
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import harness
from data import Array, color_histograms
from harness import Timing, claim, compare
from sklearn.neighbors import NearestNeighbors

from hilbin.kernels import GCS, Sparsity

PEER = "scikit-learn radius_neighbors_graph"
DENSITIES = {"90 % zeros": 0.1, "99.9 % zeros": 0.001}
TEXT = (
    "Rows are fourth roots of color-like histograms in 64 bins, float64. The peer, brute-force "
    "radius_neighbors_graph with distances, finds the same pairs and evaluates no kernel. Peak "
    "memory is what the process grows by while it computes the matrix, over the bytes of the CSR "
    "matrix it returns."
)


class Sizes(NamedTuple):
    """How much is measured."""

    rows: int = 20_000
    rounds: int = 5


def peer_graph(X: Array, radius: float) -> Any:
    """Distances below ``2 radius`` as a CSR matrix."""
    search = NearestNeighbors(algorithm="brute").fit(X)
    return search.radius_neighbors_graph(X, 2 * radius, mode="distance")


def measure_time(X: Array, kernel: GCS, rounds: int) -> dict[str, Timing]:
    """Seconds of both."""
    calls = {
        "hilbin": lambda: kernel.gram(X, n_jobs=1),
        PEER: lambda: peer_graph(X, kernel.radius),
    }
    with harness.threads(1):
        return compare(calls, rounds)


def measure_memory(rows: int, radius: float) -> dict[str, int]:
    """Bytes of the matrix and of the peak above what was there before, from a new process."""
    command = [sys.executable, __file__, "--memory-of", str(rows), str(radius)]
    usual = {name: value for name, value in os.environ.items() if name not in harness.KEPT_MEMORY}
    answer = subprocess.run(command, check=True, capture_output=True, text=True, env=usual)
    return json.loads(answer.stdout)


def report_memory(rows: int, radius: float) -> None:
    """What the new process does."""
    X, kernel = color_histograms(rows), GCS(radius)
    with harness.threads(1):
        kernel.gram(X[:256], n_jobs=1)  # libraries take their buffers at the first call
        before = reset_peak()
        K = kernel.gram(X, n_jobs=1)
        grown = peak() - before
    print(
        json.dumps({"output": sum(a.nbytes for a in (K.data, K.indices, K.indptr)), "peak": grown})
    )


def reset_peak() -> int:
    """Forget the peak where the system lets us, and return it."""
    with contextlib.suppress(OSError):  # then earlier peaks stay; the preparation is small
        Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peak() -> int:
    """The most memory this process has held, in bytes."""
    try:
        status = Path("/proc/self/status").read_text()
        return 1024 * int(status.split("VmHWM:")[1].split()[0])
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measure(X: Array, density: float, rounds: int) -> dict[str, Any]:
    """All figures at one density."""
    kernel = GCS(Sparsity(1 - density)).resolve(X, random_state=0)
    times = measure_time(X, kernel, rounds)
    K, graph = kernel.gram(X), peer_graph(X, kernel.radius)
    if abs(K.nnz - graph.nnz) > 1e-6 * K.nnz:
        raise RuntimeError(f"{K.nnz} pairs, but {PEER} finds {graph.nnz}")
    memory = measure_memory(len(X), kernel.radius)
    return {
        "zeros": 1 - K.nnz / len(X) ** 2,
        "hilbin, s (best)": times["hilbin"].best,
        "hilbin, s (median)": times["hilbin"].median,
        "peer, s (best)": times[PEER].best,
        "peer, s (median)": times[PEER].median,
        "speed-up": times[PEER].best / times["hilbin"].best,
        "output, MB": memory["output"] / 1e6,
        "peak, MB": memory["peak"] / 1e6,
        "peak / output": memory["peak"] / memory["output"],
    }


def main() -> None:
    """Measure, claim and record."""
    parser = harness.parser(__doc__)
    parser.add_argument("--memory-of", nargs=2, metavar=("ROWS", "RADIUS"), help="internal")
    args = parser.parse_args()
    if args.memory_of:
        report_memory(int(args.memory_of[0]), float(args.memory_of[1]))
        return
    harness.keep_memory()
    sizes = Sizes(rows=2000, rounds=2) if args.quick else Sizes()
    X = color_histograms(sizes.rows)
    table = {name: measure(X, density, sizes.rounds) for name, density in DENSITIES.items()}
    dense = table["90 % zeros"]
    claims = [
        claim("GCS, 90 % zeros", dense["speed-up"], 1, against=PEER),
        claim("GCS, 90 % zeros, peak memory", dense["peak / output"], 1.5, "<=",
              against="the matrix"),
    ]  # fmt: skip
    plot = {
        "name": "gcs-speedup",
        "title": f"Sparse Gram matrix of GCS, {sizes.rows} rows, one thread: how many times faster",
        "axis": "speed-up",
        "labels": [f"{name}\nvs {PEER}" for name in table],
        "series": {"hilbin": [row["speed-up"] for row in table.values()]},
        "required": [1, None],
        "unit": "×",
    }
    harness.record(
        "gcs",
        {**sizes._asdict(), "By share of zeros": table},
        claims,
        title="Sparse Gram matrices (GCS)",
        text=TEXT,
        plots=[plot],
        quick=args.quick,
    )


if __name__ == "__main__":
    main()
