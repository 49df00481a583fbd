"""Gram matrices of histograms: against the machine's own limit, other libraries and itself.

One thread unless said. Rectangular matrices take Y as a copy of X, so that symmetry is not used.
Peers that take long get fewer rows of X, and their time is scaled by the number of pairs.
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import harness
import numpy as np
import peers
import scipy.sparse as sp
from data import Array, histograms
from harness import Timing, claim, compare
from native import library
from peers import Peer

from hilbin.kernels import (
    Chi2,
    Exponential,
    Gaussian,
    Intersection,
    JensenShannon,
    Kernel,
    Laplace,
    NotPositiveDefiniteWarning,
    SymmetricKL,
)

DENSITY = 0.05
BEST_FORM = 8  # times faster than the fastest form of Jensen-Shannon in NumPy or SciPy
PEAK = "min + add in registers"
ADDITIVE = {"Intersection": Intersection(), "Chi2": Chi2(), "JensenShannon": JensenShannon()}
TEXT = (
    "Rows are L1-normalized gamma(0.5) values in float32. Times are the best of interleaved "
    "rounds, matrices rectangular and on one thread unless said. Freed memory stays in the "
    "process, so that after the warm-up no contender meets new pages: these are the rates of the "
    "loops. What a first matrix takes with the allocator's defaults, fresh pages included, is "
    "measured by first_trial. SciPy computes in float64, its only type. SciPy, scikit-learn and "
    "NumPy get fewer rows of X than hilbin; their seconds are scaled by the number of pairs. "
    "JensenShannon is compared with the fastest form that NumPy and SciPy have, one logarithm per "
    "pair in cache blocks, and with the definition as one writes it, two logarithms per "
    "pair, a row at a time. From its profile alone Intersection is a polynomial of degree 2 in an "
    "exponential, Chi2 one of degree 10, and JensenShannon is read from a table."
)

Times = dict[str, Timing]
Table = dict[str, dict[str, Any]]


class Sizes(NamedTuple):
    """How much is measured."""

    rows: int = 4000
    bins: int = 512
    library_rows: int = 1000
    numpy_rows: int = 100
    rounds: int = 6
    peak_rounds: int = 60_000_000

    def share(self, peer: Peer) -> int:
        """How many rows of X the peer gets."""
        return self.numpy_rows if peer.numpy else self.library_rows


QUICK = Sizes(rows=400, bins=64, library_rows=100, numpy_rows=20, rounds=2, peak_rounds=1_000_000)


def bind(peer: Peer, sizes: Sizes, X: Array) -> Callable[[], Array]:
    """The peer's call on its share of the rows, after a check that it computes the same."""
    few, many = X[: sizes.share(peer)].astype(peer.dtype), X.astype(peer.dtype)
    ours = peer.kernel.gram(X[:16], X[-64:])
    theirs = peer.same(peer.call(few[:16], many[-64:]), few[:16], many[-64:])
    np.testing.assert_allclose(theirs, ours, rtol=1e-4, atol=1e-5, err_msg=peer.label)
    return lambda: peer.call(few, many)


def for_all_rows(times: Times, rivals: list[Peer], sizes: Sizes) -> Times:
    """The peers' times scaled to the whole matrix."""
    scale = {peer.label: sizes.rows / sizes.share(peer) for peer in rivals}
    return {label: t.scaled(scale.get(label, 1)) for label, t in times.items()}


def measure_rates(sizes: Sizes, dtype: type) -> Times:
    """Seconds of every kernel with a compiled loop, and of as many bare min + add."""
    X = histograms(sizes.rows, sizes.bins).astype(dtype)
    Y = X.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPositiveDefiniteWarning)
        others = {"Gaussian": Gaussian(), "Laplace": Laplace(), "SymmetricKL": SymmetricKL()}
    calls = {
        name: lambda k=kernel: k.gram(X, Y, n_jobs=1)
        for name, kernel in (ADDITIVE | others).items()
    }
    rivals = [peer._replace(dtype=dtype) for peer in peers.RADIAL]
    calls |= {peer.label: bind(peer, sizes, X) for peer in rivals}
    if native := library():
        calls[PEAK] = lambda: native.peak_minimum(sizes.peak_rounds)
    with harness.threads(1):
        times = for_all_rows(compare(calls, sizes.rounds), rivals, sizes)
    pairs = sizes.rows**2 * sizes.bins
    if native:
        times[PEAK] = times[PEAK].scaled(pairs / native.peak_minimum(sizes.peak_rounds))
    return times


def profile_only(kernel: Kernel) -> Kernel:
    """The kernel as a user writes it: a profile, no compiled loop of its own."""
    return type("ProfileOnly", (type(kernel),), {"_compiled": lambda self: None})()


def measure_additive(name: str, sizes: Sizes) -> Times:
    """Seconds of one additive kernel in all its forms, and of its peers."""
    kernel, by_profile = ADDITIVE[name], profile_only(ADDITIVE[name])
    X = histograms(sizes.rows, sizes.bins)
    S = histograms(sizes.rows, sizes.bins, density=DENSITY)
    Y, S_copy, csr, csr_copy = X.copy(), S.copy(), sp.csr_array(S), sp.csr_array(S)
    calls: dict[str, Callable[[], Any]] = {
        "full": lambda: kernel.gram(X, Y, n_jobs=1),
        "symmetric": lambda: kernel.gram(X, n_jobs=1),
        "full, 2 threads": lambda: kernel.gram(X, Y, n_jobs=2),
        "symmetric, 2 threads": lambda: kernel.gram(X, n_jobs=2),
        "profile only": lambda: by_profile.gram(X, Y, n_jobs=1),
        "sparse data, dense": lambda: kernel.gram(S, S_copy, n_jobs=1),
        "sparse data, CSR": lambda: kernel.gram(csr, csr_copy, n_jobs=1),
    }
    if name == "Chi2":
        calls["exponential"] = lambda: Exponential(Chi2()).gram(X, Y, n_jobs=1)
    rivals = peers.ADDITIVE[name]
    calls |= {peer.label: bind(peer, sizes, X) for peer in rivals}
    with harness.threads(1):
        return for_all_rows(compare(calls, sizes.rounds), rivals, sizes)


def rate_table(single: Times, double: Times, sizes: Sizes) -> Table:
    """Gpair/s by kernel and type, and the share of the peak in float32."""
    work = sizes.rows**2 * sizes.bins / 1e9
    table = {
        name: {
            "float32": work / single[name].best,
            "float64": work / double[name].best,
        }
        for name in single
    }
    if PEAK not in single:
        return table
    for name, row in table.items():
        row["float32, share of the peak"] = single[PEAK].best / single[name].best
    return table | {PEAK: {"float32": work / single[PEAK].best}}


def own_ratios(times: dict[str, Times]) -> Table:
    """By kernel, hilbin against hilbin."""
    return {
        name: {
            "symmetric over full": t["full"].best / t["symmetric"].best,
            "2 threads over 1, full": t["full"].best / t["full, 2 threads"].best,
            "2 threads over 1, symmetric": t["symmetric"].best / t["symmetric, 2 threads"].best,
            "CSR over dense at 5 %": t["sparse data, dense"].best / t["sparse data, CSR"].best,
            "profile only, times slower": t["profile only"].best / t["full"].best,
        }
        for name, t in times.items()
    }


def peer_rows(times: dict[str, Times], rates: Times) -> list[dict[str, Any]]:
    """For every peer, the seconds of both and their ratio."""
    rows = []
    for name, rivals in (peers.ADDITIVE | {"": peers.RADIAL}).items():
        measured = times.get(name, rates)
        for peer in rivals:
            own = {"": type(peer.kernel).__name__}.get(name, "full")
            if isinstance(peer.kernel, Exponential):
                own = "exponential"
            ours, theirs = measured[own].best, measured[peer.label].best
            rows.append(
                {
                    "kernel": repr(peer.kernel).replace("()", ""),
                    "peer": peer.label,
                    "hilbin, s": ours,
                    "peer, s": theirs,
                    "speed-up": theirs / ours,
                    "required": peer.required,
                }
            )
    return rows


def make_claims(share: list[float], rows: list[dict[str, Any]], own: Table) -> list[dict[str, Any]]:
    """What is promised, beside what was measured."""

    def least(*columns: str) -> float:
        return min(ratios[column] for ratios in own.values() for column in columns)

    def slower(name: str) -> float:
        return own[name]["profile only, times slower"]

    worst = "worst of Intersection, Chi2, JensenShannon"
    best = min((r for r in rows if r["kernel"] == "JensenShannon"), key=lambda r: r["peer, s"])
    both = ("2 threads over 1, full", "2 threads over 1, symmetric")
    return [
        *(claim("Intersection, rate", s, 0.85, against=PEAK, headline=True) for s in share),
        *(
            claim(
                r["kernel"],
                r["speed-up"],
                r["required"],
                against=r["peer"],
                headline="Chi2" in r["kernel"],
            )
            for r in rows
            if r["required"]
        ),
        claim(
            "JensenShannon",
            best["speed-up"],
            BEST_FORM,
            against=f"{best['peer']}, the fastest",
            headline=True,
        ),
        claim("symmetric matrix", least("symmetric over full"), 1.8, against=f"full, {worst}"),
        claim("2 threads", least(*both), 1.8, against=f"1 thread, {worst}"),
        claim("CSR at 5 % density", least("CSR over dense at 5 %"), 1, against=f"dense, {worst}"),
        *(
            claim(f"{name} by profile, slower", slower(name), 4, "<=", against="its compiled loop")
            for name in own
        ),
    ]


def make_plots(rates: Table, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Bars for :mod:`render`."""
    lines = {f"{PEAK}, float32": rates[PEAK]["float32"]} if PEAK in rates else {}
    kernels = [name for name in rates if "float64" in rates[name] and "scikit" not in name]
    return [
        {
            "name": "gram-speedup",
            "title": "Gram matrices on one thread: how many times faster",
            "axis": "speed-up (log scale)",
            "log": True,
            "labels": [f"{r['kernel']}\nvs {r['peer']}" for r in rows],
            "series": {"hilbin": [r["speed-up"] for r in rows]},
            "required": [r["required"] for r in rows],
            "unit": "×",
        },
        {
            "name": "gram-rate",
            "title": "Pairs of values per second, one thread",
            "axis": "Gpair/s",
            "labels": kernels,
            "series": {t: [rates[k][t] for k in kernels] for t in ("float32", "float64")},
            "lines": lines,
        },
    ]


def main() -> None:
    """Measure, claim and record."""
    args = harness.parser(__doc__).parse_args()
    harness.keep_memory()
    sizes = QUICK if args.quick else Sizes()
    single, double = (measure_rates(sizes, dtype) for dtype in (np.float32, np.float64))
    times = {name: measure_additive(name, sizes) for name in ADDITIVE}
    rates, own, rows = (
        rate_table(single, double, sizes),
        own_ratios(times),
        peer_rows(times, single),
    )
    seconds = times | {"all kernels, float32": single, "all kernels, float64": double}
    figures = {
        **sizes._asdict(),
        "Gpair/s": rates,
        "Times faster than peers": {
            f"{r['kernel']} / {r['peer']}": dict(list(r.items())[2:]) for r in rows
        },
        "hilbin against hilbin": own,
        "Seconds": {
            f"{group}: {label}": t._asdict()
            for group in seconds
            for label, t in seconds[group].items()
        },
    }
    share = [rates["Intersection"]["float32, share of the peak"]] if PEAK in rates else []
    harness.record(
        "gram",
        figures,
        make_claims(share, rows, own),
        title="Gram matrices",
        text=TEXT,
        plots=make_plots(rates, rows),
        quick=args.quick,
    )


if __name__ == "__main__":
    main()
