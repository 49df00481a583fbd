"""Estimators: scikit-learn shells around kernels, maps and solvers."""

from hilbin.estimators._shapes import ShapeFunction
from hilbin.estimators.binner import HistogramBinner
from hilbin.estimators.bundle_svc import MapSVC
from hilbin.estimators.bundle_svr import MapSVR
from hilbin.estimators.compare_with_linear import LinearComparison, compare_with_linear
from hilbin.estimators.feature_ridge import MapRidge
from hilbin.estimators.feature_ridge_classifier import MapRidgeClassifier
from hilbin.estimators.intersection_svc import IntersectionSVC
from hilbin.estimators.intersection_svr import IntersectionSVR
from hilbin.estimators.kernel_one_class import KernelOneClass
from hilbin.estimators.kernel_ridge import KernelRidge
from hilbin.estimators.kernel_svc import KernelSVC
from hilbin.estimators.kernel_svr import KernelSVR
from hilbin.estimators.stream_landmarks import stream_landmarks
from hilbin.estimators.stream_pca import StreamPCA
from hilbin.estimators.svdd import SVDD

__all__ = [
    "SVDD",
    "HistogramBinner",
    "IntersectionSVC",
    "IntersectionSVR",
    "KernelOneClass",
    "KernelRidge",
    "KernelSVC",
    "KernelSVR",
    "LinearComparison",
    "MapRidge",
    "MapRidgeClassifier",
    "MapSVC",
    "MapSVR",
    "ShapeFunction",
    "StreamPCA",
    "compare_with_linear",
    "stream_landmarks",
]
