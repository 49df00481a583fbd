"""Models as ONNX graphs, to run where Python does not."""

from hilbin.persist.onnx._export import to_onnx

__all__ = ["to_onnx"]
