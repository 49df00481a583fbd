"""hilbin: learning with kernels on histograms and images."""

import importlib
from importlib.metadata import version
from typing import Any

from hilbin._versions import show_versions

__version__ = version("hilbin")

_MODULES = (
    *("estimators", "images", "kernels", "maps", "persist", "plot", "report"),
    *("solvers", "stats", "stream"),
)
_FUNCTIONS = ("load", "save", "to_onnx")

__all__ = ["__version__", *_MODULES, *_FUNCTIONS, "show_versions"]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"hilbin.{name}")
    if name in _FUNCTIONS:
        return getattr(importlib.import_module("hilbin.persist"), name)
    raise AttributeError(f"module 'hilbin' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
