"""Learning with kernels on histograms and images, in the style of scikit-learn.

Packages are imported when they are first used, so that ``import hilbin`` is quick.
"""

import importlib
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from hilbin._versions import show_versions

if TYPE_CHECKING:
    from hilbin.auto import ImageClassifier, ImageCollection, TableClassifier, TableCollection
    from hilbin.persist import load, save, to_onnx

__version__ = version("hilbin")

__all__ = [
    "ImageClassifier",
    "ImageCollection",
    "TableClassifier",
    "TableCollection",
    "__version__",
    "auto",
    "dependence",
    "detect",
    "estimators",
    "images",
    "inspection",
    "kernels",
    "load",
    "maps",
    "persist",
    "plot",
    "report",
    "save",
    "show_versions",
    "solvers",
    "stats",
    "stream",
    "to_onnx",
]


PACKAGE_OF = {
    "ImageClassifier": "auto",
    "ImageCollection": "auto",
    "TableClassifier": "auto",
    "TableCollection": "auto",
    "load": "persist",
    "save": "persist",
    "to_onnx": "persist",
}


def __getattr__(name: str) -> Any:
    if name in PACKAGE_OF:
        return getattr(importlib.import_module(f"hilbin.{PACKAGE_OF[name]}"), name)
    if name in __all__:
        return importlib.import_module(f"hilbin.{name}")
    raise AttributeError(f"module 'hilbin' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
