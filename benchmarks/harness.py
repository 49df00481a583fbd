"""What every benchmark shares: fair timing, claims, and a record of both.

Contenders run in turn, round after round, so that a busy moment of the machine hits all of them.
Claims are ratios of times from one run; an absolute time says little about another machine.
"""

import argparse
import json
import math
import operator
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from threadpoolctl import threadpool_info, threadpool_limits

from hilbin._core import core

RESULTS = Path(__file__).parent / "results"
RELATIONS = {">=": operator.ge, "<=": operator.le, ">": operator.gt}
LOAD_BEFORE = os.getloadavg()
THREAD_COUNTS: list[int] = []  # that `threads` was asked for
KEPT_MEMORY = {  # glibc's allocator: take big arrays from the heap, and never give it back
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**40),
    "MALLOC_TOP_PAD_": str(2**28),
}


class Timing(NamedTuple):
    """Seconds of one contender over all rounds."""

    best: float
    median: float

    def scaled(self, factor: float) -> "Timing":
        """The time of ``factor`` times the work."""
        return Timing(self.best * factor, self.median * factor)


def compare(
    contenders: dict[str, Callable[[], object]],
    repeats: int,
    *,
    patience: float = math.inf,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Timing]:
    """Time each contender ``repeats`` times, in turn, after one warm-up of each.

    There are fewer rounds if all of them would take more than ``patience`` seconds; if not even
    one fits, the warm-up counts. Seconds are of the wall, or of another ``clock``:
    ``time.thread_time`` leaves out what other programs take, and other threads too.
    """
    warm_up = {name: seconds(contender, clock) for name, contender in contenders.items()}
    rounds = int(min(repeats, patience / max(sum(warm_up.values()), 1e-9)))
    readings: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, contender in contenders.items():
            readings[name].append(seconds(contender, clock))
    if not rounds:
        readings = {name: [once] for name, once in warm_up.items()}
    return {name: Timing(min(s), statistics.median(s)) for name, s in readings.items()}


def seconds(call: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds of one call, of the wall or of another clock."""
    begin = clock()
    call()
    return clock() - begin


def keep_memory() -> None:
    """Start this script again with an allocator that keeps what is freed.

    On a virtual machine the first touch of a page is slow and uneven: up to half the time of a
    Gram matrix, for whoever happens to allocate. After the warm-up no contender meets new pages.
    """
    if any(os.environ.get(name) != value for name, value in KEPT_MEMORY.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | KEPT_MEMORY)


@contextmanager
def threads(count: int) -> Iterator[int]:
    """Hold BLAS and OpenMP to ``count`` threads; yields the ``n_jobs`` that is fair to them."""
    THREAD_COUNTS.append(count)
    with threadpool_limits(limits=count):
        yield count


def claim(
    what: str,
    measured: float,
    required: float,
    relation: str = ">=",
    *,
    against: str = "",
    unit: str = "×",
    headline: bool = False,
) -> dict[str, Any]:
    """A statement that holds or not; a ``headline`` also appears in the README of the package."""
    return {
        "what": what,
        "against": against,
        "measured": float(measured),
        "required": float(required),
        "relation": relation,
        "unit": unit,
        "holds": bool(RELATIONS[relation](measured, required)),
        "headline": headline,
    }


def by_set(
    what: str,
    figures: dict[str, float],
    required: float,
    relation: str = ">=",
    *,
    against: str,
    unit: str = "×",
    headline: bool = True,
    kind: str = "sets",
) -> list[dict[str, Any]]:
    """A claim about the worst set, for the README, and one about each; none without sets."""
    if not figures:
        return []
    worst = max(figures.values()) if relation == "<=" else min(figures.values())
    sets = {f"worst of {len(figures)} {kind}": worst} | figures if len(figures) > 1 else figures
    return [
        claim(f"{what}, {name}", f, required, relation, against=against, unit=unit,
              headline=headline and i == 0)
        for i, (name, f) in enumerate(sets.items())
    ]  # fmt: skip


def record(
    name: str,
    figures: dict[str, Any],
    claims: list[dict[str, Any]],
    *,
    title: str,
    text: str = "",
    plots: list[dict[str, Any]] | None = None,
    quick: bool = False,
) -> None:
    """Print the claims and, unless ``quick``, write ``results/<name>.json``.

    ``figures`` holds numbers, or tables as dictionaries of rows; ``plots`` are what
    :mod:`render` draws.
    """
    for c in claims:
        verdict = "holds" if c["holds"] else "FAILS"
        what = f"{c['what']} against {c['against']}" if c["against"] else c["what"]
        print(f"{verdict}  {c['measured']:8.4g} {c['relation']} {c['required']:g}  {what}")
    if quick:
        print("quick run: nothing recorded, and too small for the claims to hold")
        return
    result = {
        "name": name,
        "title": title,
        "text": text,
        "claims": claims,
        "figures": figures,
        "plots": plots or [],
        "machine": machine(),
        "versions": versions(),
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(unfinished, path)


def machine() -> dict[str, Any]:
    """The date, processor, threads, instruction level of the core, and load (1, 5, 15 min)."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "threads": used_threads(),
        "level": core.level,
        "load_before": [round(x, 2) for x in LOAD_BEFORE],
        "load_after": [round(x, 2) for x in os.getloadavg()],
    }


def used_threads() -> str:
    """How many threads contenders had: those of `threads`, or else of BLAS and OpenMP."""
    pools = [int(pool["num_threads"]) for pool in threadpool_info()]
    counts = sorted(set(THREAD_COUNTS or [max(pools, default=1)]))
    return " or ".join(map(str, counts))


def versions() -> dict[str, str]:
    """Versions of what was measured."""
    packages = ("numpy", "scipy", "scikit-learn", "hilbin")
    return {
        "python": platform.python_version(),
        **{package: version(package) for package in packages},
        "compiler": core.compiler,
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def parser(description: str | None) -> argparse.ArgumentParser:
    """The arguments every benchmark takes."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--quick", action="store_true", help="small sizes; results are not recorded")
    made.add_argument("--data", type=Path, help="folder of data sets, for benchmarks that use them")
    return made
