"""Models in files: saved and loaded without running code, and exported to ONNX."""

from hilbin.persist._api import ModelInfo, info, load, save
from hilbin.persist._errors import ModelFileError, UnsupportedModelError
from hilbin.persist.onnx import to_onnx

__all__ = [
    "ModelFileError",
    "ModelInfo",
    "UnsupportedModelError",
    "info",
    "load",
    "save",
    "to_onnx",
]
