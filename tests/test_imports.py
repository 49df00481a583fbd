"""Imports go downward only: a room may use the rooms below it and its own."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import hilbin

SOURCE = Path(hilbin.__file__).parent
BOTTOM = {"_arrays", "_core", "_parameters", "files", "parallel"}
# package -> the packages it may import; all may import what is at the bottom
ALLOWED = {
    "": {"_versions", "persist"},
    "_versions": {"_core"},
    "_core": set(),
    "_arrays": {"_core"},
    "_parameters": set(),
    "files": set(),
    "parallel": set(),
    "kernels": BOTTOM,
    "maps": BOTTOM | {"kernels"},
    "stats": BOTTOM,
    "solvers": BOTTOM | {"stats"},
    "stream": BOTTOM,
    "estimators": BOTTOM | {"kernels", "maps", "solvers", "stats", "stream"},
    "images": BOTTOM | {"kernels"},
    "plot": BOTTOM | {"kernels"},
    "report": BOTTOM,
    "persist": BOTTOM | {"estimators", "images", "kernels", "maps"},
    "cli": BOTTOM | {"estimators", "images", "kernels", "maps", "persist", "report"},
}


def room(path):
    first = path.relative_to(SOURCE).parts[0]
    return "" if first == "__init__.py" else first.removesuffix(".py")


def imported_rooms(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: write imports from the root"
            names = [node.module] if node.module != "hilbin" else []
            names += [f"hilbin.{a.name}" for a in node.names] if node.module == "hilbin" else []
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        yield from (n.split(".")[1] for n in names if n.startswith("hilbin."))


@pytest.mark.parametrize(
    "path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE))
)
def test_imports_go_downward(path):
    here = room(path)
    assert here in ALLOWED, f"{here} is a new room: say in this test what it may import"
    assert set(imported_rooms(path)) - {here} <= ALLOWED[here]


def test_the_public_module_imports_nothing_heavy():
    code = "import sys, hilbin.kernels; print({'matplotlib', 'dask', 'PIL'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_public_names():
    assert set(hilbin.__all__) <= {*dir(hilbin)}
    assert hilbin.kernels.Chi2
    assert hilbin.plot.kernel_matrix
    with pytest.raises(AttributeError, match="nothing"):
        _ = hilbin.nothing
