"""Pictures of kernels and models; they need matplotlib (``pip install "hilbin[plot]"``)."""

from hilbin.plot.detector import detection_heat, detector_filters
from hilbin.plot.explanation import explanation
from hilbin.plot.inspection import importances, reliability
from hilbin.plot.localization import localization
from hilbin.plot.matrix import kernel_matrix, reordering
from hilbin.plot.pictures import montage
from hilbin.plot.scatter import clusters
from hilbin.plot.shapes import shapes
from hilbin.plot.weights import kernel_weights

__all__ = [
    "clusters",
    "detection_heat",
    "detector_filters",
    "explanation",
    "importances",
    "kernel_matrix",
    "kernel_weights",
    "localization",
    "montage",
    "reliability",
    "reordering",
    "shapes",
]
