"""Pictures; needs matplotlib (``pip install hilbin[plot]``)."""

from hilbin.plot.matrix import kernel_matrix

__all__ = ["kernel_matrix"]
