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
from harness import claim

ROOT = Path(__file__).parents[1]
BASE = "import sklearn.base"
IMPORTS = ("hilbin", "hilbin.kernels", "hilbin.maps")
LEFT_OUT = shutil.ignore_patterns(".*", "build", "dist", "__pycache__", "_build", "results")
TEXT = (
    "The import is the best time in fresh interpreters that have imported sklearn.base. The "
    "installation is pip install of a copy of the source into an "
    "empty virtual environment, without a cache: it downloads the build tools and all "
    "dependencies, and compiles."
)


def run(*command: str | Path) -> str:
    """What a command prints; it is shown if the command fails."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def import_milliseconds(python: Path, repeats: int) -> dict[str, float]:
    """Milliseconds that each import takes in a fresh interpreter after the base."""
    timer = "import time; begin = time.perf_counter(); {}; print(time.perf_counter() - begin)"
    codes = {BASE: timer.format(BASE)}
    for module in IMPORTS:
        codes[f"import {module}"] = f"{BASE}; " + timer.format(f"import {module}")
    rounds = [
        {name: float(run(python, "-c", c)) for name, c in codes.items()} for _ in range(repeats)
    ]
    return {name: 1e3 * min(r[name] for r in rounds) for name in codes}


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
