"""What it costs to have hilbin: the wheel, a clean installation, the import."""

import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

import harness
from harness import claim, compare

ROOT = Path(__file__).parents[1]
BASE = "import sklearn.base"
IMPORTS = ("hilbin", "hilbin.kernels", "hilbin.maps")
LEFT_OUT = shutil.ignore_patterns(".*", "build", "dist", "__pycache__", "_build", "results")
TEXT = (
    "The import is the difference of the medians of fresh interpreters that import sklearn.base "
    "with and without hilbin. The installation is pip install of a copy of the source into an "
    "empty virtual environment, without a cache: it downloads the build tools and all "
    "dependencies, and compiles."
)


def run(*command: str | Path) -> None:
    """Run a command; its output is shown if it fails."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command} failed:\n{done.stdout}{done.stderr}")


def import_milliseconds(python: Path, repeats: int) -> dict[str, float]:
    """Milliseconds that each import adds to the base."""
    calls = {"base": lambda: run(python, "-c", BASE)}
    for module in IMPORTS:
        calls[module] = lambda m=module: run(python, "-c", f"{BASE}; import {m}")
    times = compare(calls, repeats)
    added = {f"import {m}": 1e3 * (times[m].median - times["base"].median) for m in IMPORTS}
    return {BASE: 1e3 * times["base"].median, **added}


def clean_source(folder: Path) -> Path:
    """A copy of the source without anything built, so that nothing is built before."""
    return Path(shutil.copytree(ROOT, folder / "source", ignore=LEFT_OUT))


def wheel_megabytes(source: Path, folder: Path) -> float:
    """Size of the wheel of this machine."""
    run(sys.executable, "-m", "pip", "wheel", source, "--no-deps", "--wheel-dir", folder / "wheel")
    return sum(wheel.stat().st_size for wheel in (folder / "wheel").glob("hilbin-*.whl")) / 1e6


def install_seconds(source: Path, folder: Path) -> tuple[float, Path]:
    """Seconds of ``pip install .`` into an empty environment, and its interpreter."""
    environment = folder / "environment"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    begin = time.perf_counter()
    run(python, "-m", "pip", "install", "--no-cache-dir", source)
    return time.perf_counter() - begin, python


def main() -> None:
    """Measure, claim and record."""
    args = harness.parser(__doc__).parse_args()
    figures: dict[str, Any] = {}
    claims = []
    with tempfile.TemporaryDirectory() as temporary:
        folder, python = Path(temporary), Path(sys.executable)
        if not args.quick:
            source = clean_source(folder)
            seconds, python = install_seconds(source, folder)
            size = wheel_megabytes(source, folder)
            figures |= {"wheel, MB": size, "clean installation, s": seconds}
            claims += [
                claim("wheel", size, 3, "<=", unit=" MB"),
                claim("clean pip install", seconds, 120, "<=", unit=" s"),
            ]
        milliseconds = import_milliseconds(python, 2 if args.quick else 15)
    figures["Import, ms"] = milliseconds
    slowest = max(milliseconds[f"import {m}"] for m in IMPORTS)
    claims.insert(0, claim("import adds", slowest, 150, "<=", against=BASE, unit=" ms"))
    harness.record("install", figures, claims, title="Installation", text=TEXT, quick=args.quick)


if __name__ == "__main__":
    main()
