"""Imports go downward only: a room may use the rooms below it and its own."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import hilbin

SOURCE = Path(hilbin.__file__).parent
# room -> the rooms it may import; later rooms are added here as they are built
ALLOWED = {
    "": {"_versions", "persist"},
    "_versions": {"_core"},
    "_core": set(),
    "parallel": set(),
    "kernels": {"_core", "parallel"},
    "maps": {"_core", "files", "kernels", "parallel"},
    "solvers": {"_core", "parallel", "stats"},
    "estimators": {"_core", "kernels", "maps", "parallel", "solvers", "stats", "stream"},
    "plot": {"kernels"},
    "files": set(),
    "images": {"_core", "kernels", "parallel"},
    "report": {"files"},
    "stats": {"_core", "parallel"},
    "stream": {"files", "parallel"},
    "persist": {"estimators", "files", "images", "kernels", "maps"},
    "cli": {"estimators", "files", "images", "kernels", "maps", "parallel", "persist", "report"},
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
