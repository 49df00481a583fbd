"""Estimators: scikit-learn shells around kernels, maps and solvers."""

from hilbin.estimators._shapes import ShapeFunction
from hilbin.estimators.binner import HistogramBinner
from hilbin.estimators.intersection_svc import IntersectionSVC
from hilbin.estimators.intersection_svr import IntersectionSVR
from hilbin.estimators.linear_gain import LinearGain, linear_gain

__all__ = [
    "HistogramBinner",
    "IntersectionSVC",
    "IntersectionSVR",
    "LinearGain",
    "ShapeFunction",
    "linear_gain",
]
