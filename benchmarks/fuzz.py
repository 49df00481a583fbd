"""How often damaged or forged input crashes, hangs or is refused without a name.

``--target`` runs one target alone, and leaves the figures of the others as they are; ``--minutes``
ends it early, and ``--more`` does what is left of its experiments and adds them to the figures.
"""

import importlib.util
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import harness
from harness import claim

PLACE = Path(__file__).parents[1] / "tests" / "fuzz" / "fuzzing.py"
COUNTS = {
    "models": 100_000,
    "arrays": 100_000,
    "images": 10_000,
    "labels": 5_000,
    "networks": 1_000,
    "checkpoints": 5_000,
    "annotations": 5_000,
}
BATCH = 5000  # a worker takes as long to start as for 1,000 experiments
REQUIRED = {"models": 100_000, "arrays": 100_000, "images": 10_000}
TEXT = (
    "Every experiment changes something and gives it to the library, in a subprocess: model files "
    "with redone checksums, sparse and dense rows, image files, targets and weights, ONNX files, "
    "checkpoints, files of boxes. A hang takes more than 10 seconds; a refusal has a name if it "
    "says which file, argument, attribute, row or column is meant. "
    "The revision is that of the sources when a target began."
)


def loaded() -> Any:
    """The module of the fuzz, which has the same name as that of the benchmarks."""
    spec = importlib.util.spec_from_file_location("fuzz_harness", PLACE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measured(targets: list[str], given: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """What became of the experiments of every target."""
    fuzz, scale = loaded(), 0.002 if given.quick else 1.0
    for target in targets:
        with tempfile.TemporaryDirectory() as folder:
            fuzz.prepared(target, folder)
            revision = current_revision()
            done = known().get(target, {}).get("experiments", 0) if given.more else 0
            seeds = range(done, int(scale * COUNTS[target]))
            deadline = None if given.minutes is None else time.monotonic() + 60 * given.minutes
            report = fuzz.run(
                target, seeds, folder, batch=BATCH, n_jobs=given.jobs, deadline=deadline
            )
        fuzz.show(report)
        kinds = {"crashes": "crash", "hangs": "hang", "other faults": "fault"}
        found = {name: report.of_kind(kind) for name, kind in kinds.items()}
        yield (
            target,
            {
                "experiments": report.count,
                "refused": report.outcomes["refused"] + report.outcomes["declined"],
                **found,
                "seeds of faults": ", ".join(str(seed) for seed, _, _ in report.faults[:20]),
                "seconds": round(report.seconds),
                "revision": revision,
            },
        )


def current_revision() -> str:
    """The commit of the package and of the experiments, or what is known of it."""
    say = ["git", "-C", str(PLACE.parent), "describe", "--always", "--dirty=+", "--abbrev=10"]
    done = subprocess.run(say, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def known() -> dict[str, dict[str, Any]]:
    """The figures that are recorded."""
    path = harness.RESULTS / "fuzz.json"
    if not path.exists():
        return {}
    table: dict[str, dict[str, Any]] = json.loads(path.read_text())["figures"]["targets"]
    return table


def added(before: Any, more: Any) -> Any:
    """The sum of two figures, or both texts if they differ."""
    if isinstance(more, str):
        return ", ".join(dict.fromkeys(filter(None, (before, more))))
    return before + more


def claims(table: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """There were enough experiments, and none ended as it must not."""
    made = []
    for target, row in table.items():
        for kind in ("crashes", "hangs", "other faults"):
            made.append(claim(f"{kind}, {target}", row[kind], 0, "<=", unit=""))
        if target in REQUIRED:
            made.append(
                claim(f"experiments, {target}", row["experiments"], REQUIRED[target], unit="")
            )
    return made


def main() -> None:
    """Run the targets; record after each, so that what is done is kept."""
    parser = harness.parser(__doc__)
    parser.add_argument("--target", action="append", choices=list(COUNTS), help="this one alone")
    parser.add_argument("--minutes", type=float, help="time for every target")
    parser.add_argument("--more", action="store_true", help="add to what is recorded")
    parser.add_argument("--jobs", type=int, default=2, help="workers at a time")
    given = parser.parse_args()
    for target, row in measured(given.target or list(COUNTS), given):
        table = known()
        if given.more and target in table:
            row = {name: added(table[target][name], value) for name, value in row.items()}
        table[target] = row
        ordered = {name: table[name] for name in COUNTS if name in table}
        harness.record(
            "fuzz",
            {"targets": ordered},
            claims(ordered),
            title="Damaged and forged input",
            text=TEXT,
            quick=given.quick,
        )


if __name__ == "__main__":
    main()
