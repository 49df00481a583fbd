"""Save and load models as files that hold no code, and export them to ONNX."""

from hilbin.persist.api import ModelInfo, info, load, save
from hilbin.persist.errors import ModelFileError, UnsupportedModelError
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
