"""A client that is checked by ``mypy --strict`` sees what methods of estimators take and return."""

import subprocess
import sys
from pathlib import Path

import hilbin

SOURCE = Path(hilbin.__file__).resolve().parents[1]
LEARNERS = [
    "IntersectionSVC",
    "IntersectionSVR",
    "KernelRidge",
    "KernelSVC",
    "KernelSVR",
    "MapRidge",
    "MapRidgeClassifier",
    "MapSVC",
    "MapSVR",
]
OUTLIERS = ["KernelOneClass", "SVDD"]
CLASSIFIERS = [name for name in LEARNERS if name.endswith(("SVC", "Classifier"))]


def errors_of(tmp_path, lines):
    """Return what mypy says about a client of these lines."""
    names = ", ".join(LEARNERS + OUTLIERS)
    head = [
        "from typing import Any, assert_type",
        "from numpy.typing import NDArray",
        f"from hilbin.estimators import {names}",
        "def client(X: NDArray[Any], y: NDArray[Any]) -> None:",
    ]
    file = tmp_path / "client.py"
    file.write_text("\n".join(head + [f"    {line}" for line in lines]) + "\n")
    cache = tmp_path.parent / "mypy_cache"
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"]
    command += [f"--cache-dir={cache}", "--config-file=", str(file)]
    environment = {"MYPYPATH": str(SOURCE), "PATH": ""}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return [line for line in done.stdout.splitlines() if ": error: " in line]


def test_a_strict_client_knows_the_types(tmp_path):
    lines = [f"assert_type({name}().fit(X, y), {name})" for name in LEARNERS]
    lines += [f"assert_type({name}().fit(X), {name})" for name in OUTLIERS]
    lines += [f"assert_type({name}().predict_proba(X), NDArray[Any])" for name in CLASSIFIERS]
    lines += [f"assert_type({n}().partial_fit(X, y), {n})" for n in LEARNERS[5:7]]
    assert errors_of(tmp_path, lines) == []
    lines = [f"{name}().fit(X, y, no_such_argument=1)" for name in LEARNERS + OUTLIERS]
    found = errors_of(tmp_path, lines)
    assert len(found) == len(lines)
    assert all("no_such_argument" in line for line in found)
