"""Run every benchmark, each in a process of its own, then write the page of results.

With ``--quick`` nothing is recorded, so scripts run side by side, one for every core; otherwise one
after the other.
"""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import harness
import render

SCRIPTS = (
    *("roofline", "costs", "gram", "gcs", "maps", "maps_random", "maps_speed"),
    *("icd_accuracy", "icd_speed", "icd_threads", "icd_scaling"),
    *("first_trial", "kernel_machines", "gcs_band", "gcs_photos", "outliers", "probabilities"),
    *("images", "images_speed", "images_pipeline", "images_tables"),
    *("stream", "stream_accuracy", "scale"),
    *("pq", "pq_accuracy", "codes_whole", "linear_speed"),
    *("mkl", "reduction", "clustering", "dependence", "unlabeled"),
    *("structure", "detect", "defaults", "files", "fuzz", "faults", "install"),
)
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Run(NamedTuple):
    """A script that has ended."""

    name: str
    seconds: float
    ended_well: bool


def run(name: str, options: list[str], quiet: bool) -> Run:
    """Run one script; a ``quiet`` one prints only if it breaks."""
    command = [sys.executable, str(Path(__file__).with_name(f"{name}.py")), *options]
    ended: list[subprocess.CompletedProcess[str]] = []
    if quiet:
        environment = os.environ | ONE_THREAD
        given = {"env": environment, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        took = harness.seconds(lambda: ended.append(subprocess.run(command, text=True, **given)))
        if ended[0].returncode:
            print(ended[0].stdout)
    else:
        took = harness.seconds(lambda: ended.append(subprocess.run(command, text=True)))
    return Run(name, took, not ended[0].returncode)


def run_all(options: list[str], quick: bool) -> list[Run]:
    """Run all scripts, and tell when each has ended; several at once if they are quick."""
    with ThreadPoolExecutor((os.cpu_count() or 1) if quick else 1) as pool:
        return list(pool.map(lambda name: _told(run(name, options, quick)), SCRIPTS))


def _told(ended: Run) -> Run:
    verdict = "" if ended.ended_well else ", BROKEN"
    print(f"--- {ended.name}: {ended.seconds:.0f} s{verdict}", flush=True)
    return ended


def show_misses() -> None:
    """Name the claims that do not hold."""
    for path in sorted(harness.RESULTS.glob("*.json")):
        for c in json.loads(path.read_text(encoding="utf-8"))["claims"]:
            if not c["holds"]:
                print(f"does not hold: {path.stem}: {c['what']}")


def main() -> int:
    """Run, render, and name the claims that do not hold; 1 if a benchmark broke."""
    parser = harness.parser(__doc__)
    parser.add_argument("--render-only", action="store_true", help="measure nothing")
    args = parser.parse_args()
    options = ["--quick"] * args.quick + (["--data", str(args.data)] if args.data else [])
    done: list[Run] = []
    took = 0.0
    if not args.render_only:
        took = harness.seconds(lambda: done.extend(run_all(options, args.quick)))
    if not args.quick:
        render.main()
        show_misses()
    broken = [ended.name for ended in done if not ended.ended_well]
    print(f"{len(done)} scripts in {took / 60:.1f} minutes")
    if broken:
        print(f"broken: {', '.join(broken)}")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
