"""How fast rows become features: against scikit-learn, and against what bounds it.

One thread, float32. Two features per value are bounded by writing them, dense random features by
the matrix product they contain.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import harness
import numpy as np
import scipy.sparse as sp
from data import Array, histograms
from harness import Timing, claim, compare
from sklearn.kernel_approximation import AdditiveChi2Sampler

from hilbin.kernels import Chi2, Gaussian, Intersection, JensenShannon
from hilbin.maps import AdditiveMap, FourierMap, SparseMap

PEER = "scikit-learn AdditiveChi2Sampler"
DEFAULT = "Chi2"
KERNELS = {"Chi2": Chi2(), "JensenShannon": JensenShannon(), "Intersection": Intersection()}
DENSITY = 0.05
TEXT = (
    "One thread, float32, best of interleaved rounds, freed memory kept in the process. Rows are "
    "L1-normalized gamma(0.5) values, dense or CSR with 5 % of the bins filled. AdditiveMap and "
    "AdditiveChi2Sampler (sample_steps=3) both make 5 features per value; accuracy is compared "
    "elsewhere. SparseMap (20 nodes) is compared with a copy of the CSR matrix it returns, which "
    "reads as much as it writes; FourierMap of a Gaussian with the one product X @ W.T in it, of "
    "the same arrays. Structured frequencies are compared with dense ones of kind gaussian, whose "
    "transform is that of orthogonal ones without their QR in fit. What is written bounds all maps "
    "of single values; the tables compare the rate with that of a copy. SparseMap's loop is bound "
    "by its two dozen instructions per value rather than by memory, and a check of the rows for "
    "negative and non-finite values is in its time. With other work on the machine it took up to "
    "2.3 times as long as a copy; alone, 1.76 to 1.85 times in three more runs."
)

Times = dict[str, Timing]
Table = dict[str, dict[str, Any]]


class Sizes(NamedTuple):
    """How much is measured."""

    rows: int = 20_000
    bins: int = 256
    sparse_rows: int = 50_000
    sparse_bins: int = 1000
    fourier_rows: int = 4000
    inputs: int = 1024
    features: int = 2048
    structured_rows: int = 256
    structured_inputs: int = 8192
    rounds: int = 25


QUICK = Sizes(1000, 64, 2000, 200, 500, 128, 256, 32, 512, 2)


def sparse_histograms(rows: int, bins: int) -> Any:
    """CSR, made piece by piece: dense it would take much memory."""
    pieces = np.array_split(np.arange(rows), 10)
    return sp.vstack(
        [
            sp.csr_array(histograms(piece.size, bins, density=DENSITY, seed=seed))
            for seed, piece in enumerate(pieces)
        ],
        format="csr",
    )


def bytes_of(Z: Any) -> int:
    """What is stored."""
    arrays = (Z.data, Z.indices, Z.indptr) if sp.issparse(Z) else (Z,)
    return sum(a.nbytes for a in arrays)


def measure_additive(X: Any, rounds: int) -> tuple[Times, Table]:
    """Seconds of all maps of five features on ``X`` and of a copy; what they write."""
    maps: dict[str, Any] = {k: AdditiveMap(kernel, n_jobs=1) for k, kernel in KERNELS.items()}
    maps["Chi2, series"] = AdditiveMap(Chi2(), method="series", n_jobs=1)
    maps["Chi2, eigen"] = AdditiveMap(Chi2(), method="eigen", n_jobs=1)
    fitted = {name: made.fit(X) for name, made in maps.items()}
    fitted[PEER] = AdditiveChi2Sampler(sample_steps=3).fit(X)
    Z = fitted[DEFAULT].transform(X)
    if fitted[PEER].transform(X[:10]).dtype != X.dtype or Z.dtype != X.dtype:
        raise RuntimeError("both must compute in the type of the data")
    calls: dict[str, Callable[[], object]] = {
        name: lambda m=made: m.transform(X) for name, made in fitted.items()
    }
    times = compare(calls | {"copy of the features": Z.copy}, rounds)
    values = X.nnz if sp.issparse(X) else X.size
    rows = {
        name: times_row(t, bytes_of(Z), values, times["copy of the features"])
        | {"method": getattr(fitted.get(name), "method_", "")}
        for name, t in times.items()
    }
    return times, rows


def times_row(time: Timing, written: int, values: int, copy: Timing) -> dict[str, Any]:
    """Where the time of one contender goes."""
    return {
        "s (best)": time.best,
        "s (median)": time.median,
        "ns / value": time.best / values * 1e9,
        "bytes written / value": written / values,
        "GB/s written": written / time.best / 1e9,
        "over a copy": time.best / copy.best,
    }


def measure_sparse_map(X: Array, rounds: int) -> Table:
    """SparseMap of every kernel against a copy of what it returns."""
    rows: Table = {}
    for name, kernel in KERNELS.items():
        fitted = SparseMap(kernel, n_nodes=20, n_jobs=1).fit(X)
        Z = fitted.transform(X)
        if Z.nnz != 2 * X.size:
            raise RuntimeError("there should be no zeros among the values")
        calls = {"map": lambda m=fitted: m.transform(X), "copy": Z.copy}
        times = compare(calls, rounds)
        for contender, t in times.items():
            rows[f"{name}: {contender}"] = times_row(t, bytes_of(Z), X.size, times["copy"])
    return rows


def measure_fourier(sizes: Sizes) -> Times:
    """FourierMap of a Gaussian against the product in it."""
    X = np.random.default_rng(0).standard_normal((sizes.fourier_rows, sizes.inputs), np.float32)
    kernel = Gaussian(gamma=1 / sizes.inputs)
    fitted = FourierMap(kernel, sizes.features, kind="gaussian", n_jobs=1, random_state=0).fit(X)
    W = fitted.frequencies_
    return compare({"map": lambda: fitted.transform(X), "product": lambda: X @ W.T}, sizes.rounds)


def measure_structured(sizes: Sizes) -> Times:
    """Structured against dense frequencies, as many features as inputs."""
    width = sizes.structured_inputs
    X = np.random.default_rng(0).standard_normal((sizes.structured_rows, width), np.float32)
    kernel = Gaussian(gamma=1 / width)
    maps = {
        kind: FourierMap(kernel, width, kind=kind, n_jobs=1, random_state=0).fit(X)
        for kind in ("structured", "gaussian")
    }
    calls = {kind: lambda m=fitted: m.transform(X) for kind, fitted in maps.items()}
    return compare(calls, sizes.rounds)


def make_claims(dense: Times, csr: Times, nodes: Table, fourier: Times, fast: Times) -> Any:
    """What is promised, beside what was measured."""

    def over(times: Times, one: str, other: str) -> float:
        return times[one].best / times[other].best

    copies = [row["over a copy"] for name, row in nodes.items() if name.endswith("map")]
    return [
        claim("AdditiveMap(Chi2), dense", over(dense, PEER, DEFAULT), 3,
              against=PEER, headline=True),
        claim("AdditiveMap(Chi2), CSR", over(csr, PEER, DEFAULT), 3, against=PEER),
        claim("SparseMap, time, worst of 3 kernels", max(copies), 2, "<=",
              against="a copy of its features"),
        claim("FourierMap(Gaussian), time", over(fourier, "map", "product"), 1.25, "<=",
              against="the matrix product in it"),
        claim("FourierMap, structured", over(fast, "gaussian", "structured"), 5,
              against="dense frequencies, 8192 inputs and features"),
    ]  # fmt: skip


def make_plot(dense: Times, csr: Times) -> dict[str, Any]:
    """Bars for :mod:`render`."""
    names = [name for name in dense if name not in (PEER, "copy of the features")]
    return {
        "name": "maps-speed",
        "title": f"5 features per value, one thread: how many times faster than {PEER}",
        "axis": "speed-up",
        "labels": names,
        "series": {
            kind: [times[PEER].best / times[name].best for name in names]
            for kind, times in (("dense", dense), ("CSR, 5 % filled", csr))
        },
        "lines": {"required of the default": 3},
    }


def main() -> None:
    """Measure, claim and record."""
    args = harness.parser(__doc__).parse_args()
    harness.keep_memory()
    sizes = QUICK if args.quick else Sizes()
    X = histograms(sizes.rows, sizes.bins)
    S = sparse_histograms(sizes.sparse_rows, sizes.sparse_bins)
    with harness.threads(1):
        dense, dense_rows = measure_additive(X, sizes.rounds)
        csr, csr_rows = measure_additive(S, sizes.rounds)
        nodes = measure_sparse_map(X, 4 * sizes.rounds)
        fourier, fast = measure_fourier(sizes), measure_structured(sizes)
    flops = 2 * sizes.fourier_rows * sizes.inputs * sizes.features / 2
    random = {f"Gaussian: {name}": t for name, t in fourier.items()}
    random |= {f"8192 inputs: {name}": t for name, t in fast.items()}
    figures = {
        **sizes._asdict(),
        "non-zeros of the CSR rows": S.nnz,
        "Gflop/s of the product": flops / fourier["product"].best / 1e9,
        "5 features per value, dense": dense_rows,
        "5 features per value, CSR": csr_rows,
        "SparseMap, 20 nodes, dense rows": nodes,
        "FourierMap, seconds": {name: t._asdict() for name, t in random.items()},
    }
    harness.record(
        "maps_speed",
        figures,
        make_claims(dense, csr, nodes, fourier, fast),
        title="Features of kernels: speed",
        text=TEXT,
        plots=[make_plot(dense, csr)],
        quick=args.quick,
    )


if __name__ == "__main__":
    main()
