"""Run many small experiments in subprocesses: a crash or a hang is counted, and has a seed.

A target is a module with ``prepare(folder)``, which writes what all experiments need,
``opened(folder)``, which reads it in a worker, and ``attempt(state, seed)``, which does one
experiment and returns a word for how it ended, or raises :class:`FaultError`. A worker announces
every seed before it starts and every outcome after: so the main process knows which seed was under
way when a worker died or fell silent, and starts another one behind it.

Run one seed again by ``python tests/fuzz/fuzzing.py TARGET --first SEED --count 1``.
"""

import argparse
import importlib
import os
import re
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
TARGETS = ("models", "arrays", "images", "labels", "networks", "checkpoints", "annotations")
PATIENCE = 10.0  # seconds of the processor for one experiment
STILL = 6  # times as many seconds on the clock, for a machine that is busy
STARTING = 300.0  # seconds for a worker to import and open
MEMORY = 6 << 30  # bytes of address space of a worker, so that absurd sizes fail
GENERAL = {
    *("X", "Y", "y", "Input", "target", "images", "scores", "sample", "samples"),
    *("row", "rows", "column", "columns", "feature", "features"),
}


class FaultError(Exception):
    """An experiment ended as it must not."""


@dataclass
class Report:
    """What became of the experiments of a target."""

    target: str
    outcomes: Counter = field(default_factory=Counter)
    faults: list[tuple[int, str, str]] = field(default_factory=list)  # seed, kind, what was said
    seconds: float = 0.0

    @property
    def count(self):
        return sum(self.outcomes.values())

    def of_kind(self, kind):
        return sum(found == kind for _, found, _ in self.faults)


def names_something(error, words=()):
    """Whether a message names the argument, row, column or attribute it is about."""
    said = {*re.findall(r"\w+", str(error))}
    learned = isinstance(error, AttributeError) and any(word.endswith("_") for word in said)
    return learned or bool(({*words} | GENERAL) & said)


def run(target, seeds, folder, *, batch=2000, deadline=None, n_jobs=1):
    """Do the experiments of a range of seeds in workers, ``n_jobs`` at a time."""
    report, begin = Report(target), time.monotonic()

    def do(first):
        own, at, stop = Report(target), first, min(first + batch, seeds.stop)
        while at < stop and (deadline is None or time.monotonic() < deadline):
            at = _batch(own, at, stop, folder)
        return own

    with ThreadPoolExecutor(n_jobs) as pool:
        for own in pool.map(do, range(seeds.start, seeds.stop, batch)):
            report.outcomes += own.outcomes
            report.faults += own.faults
    report.seconds = time.monotonic() - begin
    return report


def prepared(target, folder):
    """Write what the workers of a target need, in a subprocess too."""
    command = [sys.executable, str(HERE / "fuzzing.py"), target, "--prepare", str(folder)]
    subprocess.run(command, check=True, env=_environment())


def _environment():
    single = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
    return {**os.environ, **single, "PYTHONFAULTHANDLER": "1"}


def _batch(report, first, stop, folder):
    """Do experiments in one worker; return the first seed that is left."""
    command = [sys.executable, *_no_site(), str(HERE / "fuzzing.py"), report.target, "--worker"]
    command += [str(folder), "--first", str(first), "--count", str(stop - first)]
    with tempfile.TemporaryFile() as errors:
        worker = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, env=_environment()
        )
        seed, kind = _follow(report, worker)
        if kind == "hang":
            worker.kill()
        code = worker.wait()
        worker.stdout.close()
        errors.seek(0)
        said = errors.read().decode(errors="replace")[-3000:]
    if kind is None and code == 0:
        return stop
    if seed is None:
        raise RuntimeError(f"a worker of {report.target} did not start:\n{said}")
    if kind is None:
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        kind, said = "crash", f"{name}\n{said}"
    report.outcomes[kind] += 1
    report.faults.append((seed, kind, said))
    return seed + 1


def _no_site():
    """The sanitized build is imported with -S, which this process got too."""
    return ["-S"] if sys.flags.no_site else []


def _follow(report, worker):
    """Read announcements until the end; return the seed under way, and "hang" if it takes long."""
    seed, text, begin, used, stream = None, b"", time.monotonic(), None, worker.stdout
    while True:
        ready, _, _ = select.select([stream], [], [], PATIENCE)
        if not ready:
            longest = STARTING if used is None else STILL * PATIENCE
            busy = used is not None and _processor_seconds(worker.pid) - used >= PATIENCE
            if busy or time.monotonic() - begin >= longest:
                return seed, "hang"
            continue
        more = os.read(stream.fileno(), 1 << 16)
        if not more:
            return seed, None
        *lines, text = (text + more).split(b"\n")
        begin, used = time.monotonic(), _processor_seconds(worker.pid)
        for line in lines:
            if line.startswith(b"?"):
                seed = int(line[1:])
            elif line.startswith(b"="):
                report.outcomes[line[1:].decode()] += 1
            elif line.startswith(b"!"):
                report.outcomes["fault"] += 1
                report.faults.append((seed, "fault", line[1:].decode(errors="replace")))


def _processor_seconds(process):
    """Seconds of the processor that a process has used, or 0 if it has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _work(target, folder, seeds):
    """Do experiments in this process, and announce them."""
    module = importlib.import_module(target)
    warnings.simplefilter("ignore")
    state = module.opened(Path(folder))
    if "asan" not in os.environ.get("LD_PRELOAD", ""):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    say = os.dup(1)
    os.dup2(2, 1)
    for seed in seeds:
        os.write(say, b"?%d\n" % seed)
        try:
            outcome = "=" + module.attempt(state, seed)
        except FaultError as fault:
            outcome = "!" + str(fault).replace("\n", " ")
        except BaseException:
            outcome = "!" + traceback.format_exc()[-1500:].replace("\n", " | ")
        os.write(say, outcome.encode(errors="replace") + b"\n")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("target", help=f"all, or one of {', '.join(TARGETS)}")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seconds", type=float, help="time for every target")
    parser.add_argument("--prepare", metavar="FOLDER", help="write what workers need, and end")
    parser.add_argument("--worker", metavar="FOLDER", help="do the experiments in this process")
    given = parser.parse_args()
    parts = ("fuzz", "persist", "kernels", "images", "detect", ".")
    sys.path[:0] = [str(TESTS / part) for part in parts]
    seeds = range(given.first, given.first + given.count)
    if given.prepare:
        warnings.simplefilter("ignore")
        importlib.import_module(given.target).prepare(Path(given.prepare))
    elif given.worker:
        _work(given.target, given.worker, seeds)
    else:
        targets = TARGETS if given.target == "all" else (given.target,)
        faults = [_reported(target, seeds, given.seconds) for target in targets]
        sys.exit(any(faults))


def _reported(target, seeds, seconds):
    """Run a target, print what became of it, and say whether there were faults."""
    with tempfile.TemporaryDirectory() as folder:
        prepared(target, folder)
        deadline = None if seconds is None else time.monotonic() + seconds
        report = run(target, seeds, folder, batch=500 if seconds else 2000, deadline=deadline)
    show(report)
    return bool(report.faults)


def show(report, most=20):
    """Print what became of the experiments."""
    rate = report.count / max(report.seconds, 1e-9)
    told = ", ".join(f"{n} {word}" for word, n in sorted(report.outcomes.items()))
    print(f"{report.target}: {report.count} experiments, {rate:.0f} per second: {told}")
    for seed, kind, said in report.faults[:most]:
        print(f"  seed {seed}: {kind}: {said.strip()[-700:]}")


if __name__ == "__main__":
    sys.modules["fuzzing"] = sys.modules["__main__"]  # targets raise its FaultError
    main()
