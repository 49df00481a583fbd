"""Imports go downward only: a package may use the packages below it and its own modules."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import hilbin

SOURCE = Path(hilbin.__file__).parent
BOTTOM = {"_arrays", "_core", "_parameters", "_state", "cache", "files", "parallel"}
# package -> the packages it may import; all may import what is at the bottom
ALLOWED = {
    "": {"_versions", "auto", "persist"},
    "__main__": {"cli"},
    "_versions": {"_core"},
    "_core": set(),
    "_arrays": {"_core"},
    "_parameters": set(),
    "_state": {"_arrays"},
    "cache": {"_arrays", "files"},
    "files": set(),
    "parallel": set(),
    "kernels": BOTTOM,
    "maps": BOTTOM | {"kernels"},
    "stats": BOTTOM,
    "solvers": BOTTOM | {"stats"},
    "stream": BOTTOM,
    "estimators": BOTTOM | {"kernels", "maps", "solvers", "stats", "stream"},
    "dependence": BOTTOM | {"kernels", "maps", "stats", "stream"},
    "images": BOTTOM,
    "detect": BOTTOM | {"estimators", "images", "maps", "solvers"},
    "plot": BOTTOM | {"kernels"},
    "inspection": BOTTOM | {"estimators", "images", "kernels", "maps"},
    "report": BOTTOM | {"detect", "inspection"},
    "persist": BOTTOM | {"detect", "estimators", "images", "kernels", "maps"},
    "auto": BOTTOM
    | {"dependence", "estimators", "images", "inspection", "kernels", "maps", "persist", "report"}
    | {"solvers"},
    "cli": BOTTOM | {"auto", "detect", "images", "inspection", "persist", "report"},
}


def package(path):
    first = path.relative_to(SOURCE).parts[0]
    return "" if first == "__init__.py" else first.removesuffix(".py")


def imported_packages(path):
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
    here = package(path)
    assert here in ALLOWED, f"{here} is new: say in this test what it may import"
    assert set(imported_packages(path)) - {here} <= ALLOWED[here]


@pytest.mark.parametrize(
    ("imported", "heavy"),
    [("hilbin", "numpy scipy sklearn"), ("hilbin.kernels", "matplotlib dask PIL")],
)
def test_heavy_packages_are_imported_only_when_used(imported, heavy):
    code = f"import sys, {imported}; print({{*{heavy.split()}}} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_public_names():
    assert set(hilbin.__all__) <= {*dir(hilbin)}
    assert hilbin.kernels.Chi2
    assert hilbin.plot.kernel_matrix
    with pytest.raises(AttributeError, match="nothing"):
        _ = hilbin.nothing
