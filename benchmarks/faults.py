"""Bad luck: jobs killed at random moments, full disks, and whether promises of memory are kept.

Every job runs in a process of its own. A killed one is started again; its result must be that of a
job that nobody disturbed, its output absent or complete after the kill, and nothing may be left
behind. A disk is filled for real, a file system in memory of a given size; the old file must
survive. A promise of memory is compared with the peak of the process above what it held before.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import harness
import numpy as np
from harness import claim
from PIL import Image

import hilbin
from hilbin.estimators import MapRidgeClassifier
from hilbin.persist import ModelFileError

KILLS = 30
SHARDS, ROWS, COLUMNS = 24, 2000, 48
HANG = 60  # seconds
CHANCE = random.Random(0)
MIB = 2**20
TEXT = (
    "Killed with SIGKILL at random moments, then started again: `hilbin train` on 60 small images, "
    "MapRidgeClassifier and StreamPCA on shards with checkpoints after every chunk. Killed and not "
    "started again: one of two workers of a local Dask cluster (MapRidgeClassifier), which Dask "
    "replaces, and the last worker of a cluster that nobody replaces: after 30 seconds without "
    "workers the rest is summed in the process of the fit. Equal means bit for bit; Dask adds in "
    "another order, so there it means 1e-9 relative. Full disks: a tmpfs too small for what is "
    "written. Memory: peak resident memory above that before the call, over the MiB that "
    "`memory=` names."
)
STREAMED = """
import functools, sys
import hilbin
from hilbin.estimators import MapRidgeClassifier, StreamPCA
from hilbin.estimators.linear import passes
from hilbin.kernels import Chi2
from hilbin.maps import AdditiveMap
passes.fold = functools.partial(passes.fold, every=0)
folder, output = sys.argv[1:]
model = {model}
model.fit(folder)
hilbin.save(model.set_params(checkpoint=None), output)
"""
COMMON = "feature_map=AdditiveMap(Chi2(), 3), memory=2, checkpoint=output + '.checkpoint'"
MODELS = {
    "MapRidgeClassifier": f"MapRidgeClassifier(alpha=1.0, {COMMON})",
    "StreamPCA": f"StreamPCA(n_components=5, {COMMON})",
}
PARTS = ("hilbin train", *MODELS, "Dask", "disks", "memory")
MEASURED = """
import sys
import numpy as np
sys.path.insert(0, {here!r})
from gcs import peak, reset_peak
from hilbin.estimators import KernelSVC, MapRidgeClassifier
from hilbin.kernels import Chi2, Exponential, Intersection
from hilbin.maps import AdditiveMap
X = np.random.default_rng(0).random((12000, 64), np.float32)
y = np.arange(12000) % 2
Intersection().gram(X[:64])  # what is loaded once
MapRidgeClassifier(AdditiveMap(Chi2(), 3)).fit(X[:200], y[:200])
KernelSVC(Exponential(Chi2(), 1.0), max_iter=10, memory=1).fit(X[:2100], y[:2100])
reset_peak()
before = peak()
{call}
print(peak() - before)
"""
PROMISES = {  # MiB promised, and the call
    "tiles of a Gram matrix": (64, "for rows, K in Intersection().tiles(X, memory=64): pass"),
    "rows of a kernel machine": (
        100, "KernelSVC(Exponential(Chi2(), 1.0), memory=100, max_iter=3000).fit(X, y)",
    ),
    "chunks of a streaming ridge": (
        64, "MapRidgeClassifier(AdditiveMap(Chi2(), 3), memory=64).fit(sys.argv[1])",
    ),
}  # fmt: skip


def images(folder: Path) -> Path:
    """Stripes of three directions, 20 images each."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:64, :64]
    for kind, phase in {"across": y, "along": x, "slanted": x + y}.items():
        (folder / kind).mkdir(parents=True)
        for i in range(20):
            gray = 128 + 80 * np.sin(phase * rng.uniform(0.3, 0.9)) + rng.normal(0, 25, (64, 64))
            picture = np.clip(gray[..., None] * rng.uniform(0.4, 1, 3), 0, 255).astype(np.uint8)
            Image.fromarray(picture).save(folder / kind / f"{i}.png")
    return folder


def shards(folder: Path) -> Path:
    """Histograms of two classes in many files."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    for i in range(SHARDS):
        labels = rng.integers(0, 2, ROWS)
        np.save(folder / f"X_{i:02}.npy", rng.dirichlet(np.ones(COLUMNS), ROWS) + labels[:, None])
        np.save(folder / f"y_{i:02}.npy", labels)
    return folder


def content(path: Path) -> bytes:
    """All that a model file holds, but when and how quickly it was made."""
    model = hilbin.load(path)
    if hasattr(model, "metadata_"):
        model.metadata_ = {}
        for one in model.choice_.table:
            one["seconds"] = 0
    plain = path.with_suffix(".plain")
    hilbin.save(model, plain)
    found = plain.read_bytes()
    plain.unlink()
    return found


# kills
def killed(command: list[str], seconds: float) -> bool:
    """Start a command and kill it after some time; whether it was still running."""
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    job = subprocess.Popen(command, start_new_session=True, **quiet)
    try:
        job.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
        return True
    return False


def kills(command: Callable[[Path], list[str]], folder: Path, n: int) -> dict[str, float]:
    """Kill a job n times, each time let it finish afterwards, and look at what it leaves."""
    reference, output = folder / "reference.model", folder / "out.model"
    begin = time.monotonic()
    subprocess.run(command(reference), check=True, capture_output=True)
    took, wanted = time.monotonic() - begin, content(reference)
    chance = random.Random(0)
    found = dict.fromkeys(("kills", "too late", "half an output", "other result", "stray files"), 0)
    while found["kills"] < n:
        begin = time.monotonic()
        if not killed(command(output), chance.uniform(0.3, 1.0) * took):
            found["too late"] += 1
            took = time.monotonic() - begin  # the machine is less busy than it was
            output.unlink()
            continue
        found["kills"] += 1
        if output.exists():
            with suppress(ModelFileError):
                hilbin.load(output)
                found["half an output"] -= 1
            found["half an output"] += 1
            output.unlink()
        subprocess.run(command(output), check=True, capture_output=True)
        found["other result"] += content(output) != wanted
        output.unlink()
        left = [p for p in folder.iterdir() if p != reference]
        found["stray files"] += len(left)
    return dict(found)


def dask_kills(data: Path, n: int, cluster: Callable[[], Any]) -> dict[str, float]:
    """Kill a worker in the middle of n fits; one that does not end is a hang.

    Every kill has a cluster of its own: a local cluster gives a worker up for good that is dead
    15 seconds after an earlier death, so that one cluster does not outlive many kills.
    """
    wanted = MapRidgeClassifier(alpha=1.0, memory=2).fit(data).coef_
    found = {"kills": 0, "hangs": 0, "other result": 0}
    while found["kills"] < n:
        with cluster() as client:
            apart = disturbed(data, wanted, client, found)
        found["hangs"] += apart is None
        found["other result"] += apart is not None and bool(apart > 1e-9)
    return dict(found)


@contextmanager
def two_workers(n: int = 2) -> Iterator[Any]:
    """The client of a local cluster, which starts dead workers again."""
    from distributed import Client, LocalCluster

    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with LocalCluster(n_workers=n, **options) as cluster, Client(cluster) as client:
        yield client


@contextmanager
def last_worker() -> Iterator[Any]:
    """The client of a cluster with one worker that nobody starts again."""
    with two_workers(0) as client:
        start = [sys.executable, "-m", "distributed.cli.dask_worker", client.scheduler.address]
        worker = subprocess.Popen(
            [*start, "--no-nanny", "--nthreads", "1"], stderr=subprocess.DEVNULL
        )
        try:
            client.wait_for_workers(1, timeout=HANG)
            yield client
        finally:
            worker.kill()
            worker.wait()


def disturbed(data: Path, wanted: Any, client: Any, found: dict[str, int]) -> float | None:
    """Fit while a worker dies; how far the coefficients are off, None if it does not end."""
    left, at = sorted(client.run(os.getpid).values())[:1], CHANCE.uniform(0.05, 0.9)

    def kill_one(_: str, rows: int, n_rows: int) -> None:
        if left and rows > at * n_rows:
            os.kill(left.pop(), signal.SIGKILL)
            found["kills"] += 1

    model = MapRidgeClassifier(alpha=1.0, memory=2)
    fits: list[Any] = []
    options = {"client": client, "callback": kill_one}
    fit = threading.Thread(target=lambda: fits.append(model.fit(data, **options)), daemon=True)
    fit.start()
    fit.join(HANG)
    if not fits:
        return None
    return float(np.abs(model.coef_ - wanted).max() / np.abs(wanted).max())


# full disks
@contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[Path | None]:
    """A file system of a given size; None if it cannot be made."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def full_checkpoint(folder: Path, streamed: Path) -> dict[str, float]:
    """The first checkpoint fills the disk, the second cannot be written, and a fit resumes.

    It resumes from a copy on a larger disk; the result must be that of a fit that nobody disturbed.
    """
    command, reference = streamer(streamed, MODELS["MapRidgeClassifier"]), folder / "r.model"
    subprocess.run(command(reference), check=True, capture_output=True)
    with small_disk(folder / "disk of checkpoint", 1536) as disk:
        if disk is None:
            return {}
        done = subprocess.run(command(disk / "o.model"), capture_output=True, text=True)
        kept = disk / "o.model.checkpoint"
        said = done.stderr.splitlines()[-1] if done.stderr else ""
        row: dict[str, float] = {
            "clear error": int("checkpoint" in said and "No space left on device" in said),
            "old file intact": len(list(kept.rglob("*.npz"))),
            "half-written files left": len(list(disk.rglob(".hilbin-*.part"))),
        }
        shutil.copytree(kept, folder / "o.model.checkpoint")
    again = subprocess.run(command(folder / "o.model"), capture_output=True)
    equal = again.returncode == 0 and content(folder / "o.model") == content(reference)
    row["old file intact"] = int(row["old file intact"] == 1 and equal)
    return row


def full_disks(folder: Path, data: Path, streamed: Path) -> dict[str, dict[str, float]]:
    """Write to disks that are too small: a clear error, and the old file as it was."""
    model, image = folder / "m.hilbin", str(next(data.rglob("*.png")))
    train = [sys.executable, "-m", "hilbin", "train", str(data), "--quiet", "--force", "-o"]
    subprocess.run([*train, str(model)], check=True, capture_output=True)
    use = [sys.executable, "-m", "hilbin"]
    jobs = {
        "model": lambda disk: [*train, f"{disk}/old", "--cache", str(folder / "cache")],
        "cache": lambda disk: [*train, str(folder / "n.hilbin"), "--cache", str(disk)],
        "report": lambda disk: [*use, "eval", str(model), str(data), "--report", f"{disk}/old"],
        "CSV": lambda disk: [*use, "predict", str(model), str(data), "--csv", f"{disk}/old"],
        "picture": lambda disk: [
            *use,
            "explain",
            str(model),
            image,
            "--force",
            "-o",
            f"{disk}/old",
        ],
    }
    table = {"checkpoint": full_checkpoint(folder, streamed)}
    for name, command in jobs.items():
        with small_disk(folder / f"disk of {name}", 64 if name != "CSV" else 8) as disk:
            if disk is None:
                return {}
            (disk / "old").write_text("the old one")
            (disk / "ballast").write_bytes(bytes(4096 if name != "CSV" else 0))
            done = subprocess.run(command(disk), capture_output=True, text=True)
            lines = [line for line in done.stderr.splitlines() if line.startswith("hilbin: ")]
            table[name] = {
                "clear error": int(done.returncode == 2 and "disk is full" in lines[-1]),
                "old file intact": int((disk / "old").read_text() == "the old one"),
                "half-written files left": len(list(disk.glob(".hilbin-*.part"))),
            }
    return table


# memory
def promises(data: Path) -> dict[str, dict[str, float]]:
    """Peak above what was held before, over what was promised."""
    table = {}
    here = str(Path(__file__).parent)
    for name, (promised, call) in PROMISES.items():
        script = MEASURED.format(here=here, call=call)
        command = [sys.executable, "-c", script, str(data)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        used = int(done.stdout) / MIB
        table[name] = {"promised, MiB": promised, "peak, MiB": used, "ratio": used / promised}
    return table


def measured(n: int, root: Path, parts: list[str]) -> Iterator[tuple[str, str, Any]]:
    """Yield the table, the row and the figures of all that is asked for."""
    pictures, streamed = images(root / "images"), shards(root / "shards")
    jobs = {"hilbin train": trainer(pictures)}
    jobs |= {name: streamer(streamed, model) for name, model in MODELS.items()}
    for name in [job for job in jobs if job in parts]:
        (root / name).mkdir()
        yield "Kills", name, kills(jobs[name], root / name, n)
    if "Dask" in parts:
        yield "Kills", "Dask worker", dask_kills(streamed, n, two_workers)
        yield "Kills", "last Dask worker", dask_kills(streamed, max(1, n // 10), last_worker)
    if "disks" in parts:
        for name, row in full_disks(root, pictures, streamed).items():
            yield "Full disks", name, row
    if "memory" in parts:
        for name, row in promises(streamed).items():
            yield "Memory", name, row


def known() -> dict[str, dict[str, Any]]:
    """The figures that are recorded."""
    path = harness.RESULTS / "faults.json"
    found = json.loads(path.read_text(encoding="utf-8"))["figures"] if path.exists() else {}
    rows = ("hilbin train", *MODELS, "Dask worker", "last Dask worker")
    table = {name: row for name, row in found.get("Kills", {}).items() if name in rows}
    return {**found, "Kills": table}


def claims_of(found: dict[str, Any], n: int) -> list[dict[str, Any]]:
    """What the figures say."""
    table, disks, memory = (found.get(k, {}) for k in ("Kills", "Full disks", "Memory"))
    bad = sum(v for row in table.values() for k, v in row.items() if k not in ("kills", "too late"))
    return [
        claim("Kills after which something was wrong", bad, 0, "<=", unit="", headline=True),
        claim("Kills", sum(row["kills"] for row in table.values()), 4 * n, unit=""),
        *(
            claim(f"Full disk, {name}: clear error and the old file intact",
                  row["clear error"] * row["old file intact"], 1, unit="")
            for name, row in disks.items()
        ),
        *(
            claim(f"Memory, {name}, over the promise", row["ratio"], 1.1, "<=", unit="×")
            for name, row in memory.items()
        ),
    ]  # fmt: skip


def trainer(data: Path) -> Callable[[Path], list[str]]:
    """The command line, with few features."""
    start = [sys.executable, "-m", "hilbin", "train", str(data), "--features", "centrist+color"]
    return lambda output: [*start, "--quiet", "--force", "-o", str(output)]


def streamer(data: Path, model: str) -> Callable[[Path], list[str]]:
    """A streaming estimator with checkpoints."""
    return lambda output: [
        sys.executable, "-c", STREAMED.format(model=model), str(data), str(output),
    ]  # fmt: skip


def main() -> None:
    """Measure; record after every row, so that what is done is kept."""
    parser = harness.parser(__doc__)
    parser.add_argument("--only", nargs="*", default=PARTS, choices=PARTS,
                        help="parts; the figures of the others stay")  # fmt: skip
    args = parser.parse_args()
    n = 2 if args.quick else KILLS
    with tempfile.TemporaryDirectory() as root:
        for table, name, row in measured(n, Path(root), [*args.only]):
            print(table, name, row, flush=True)
            figures = known()
            figures.setdefault(table, {})[name] = row
            about = {"title": "Bad luck", "text": TEXT, "quick": args.quick}
            harness.record("faults", figures, claims_of(figures, n), **about)


if __name__ == "__main__":
    main()
