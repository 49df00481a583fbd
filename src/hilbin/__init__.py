"""hilbin: learning with kernels on histograms and images."""

import importlib
from importlib.metadata import version
from types import ModuleType

from hilbin._versions import show_versions

__version__ = version("hilbin")

_MODULES = ("estimators", "images", "kernels", "maps", "plot", "solvers")

__all__ = ["__version__", *_MODULES, "show_versions"]


def __getattr__(name: str) -> ModuleType:
    if name in _MODULES:
        return importlib.import_module(f"hilbin.{name}")
    raise AttributeError(f"module 'hilbin' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
