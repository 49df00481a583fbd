"""Pictures; needs matplotlib (``pip install hilbin[plot]``)."""

from hilbin.plot.explanation import explanation
from hilbin.plot.matrix import kernel_matrix
from hilbin.plot.shapes import shapes
from hilbin.plot.sparsity import reordering

__all__ = ["explanation", "kernel_matrix", "reordering", "shapes"]
