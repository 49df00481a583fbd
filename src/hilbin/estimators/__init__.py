"""Estimators: scikit-learn shells around kernels, maps and solvers."""

from hilbin.estimators._shapes import ShapeFunction
from hilbin.estimators.binner import HistogramBinner
from hilbin.estimators.bundle_svc import BundleSVC
from hilbin.estimators.bundle_svr import BundleSVR
from hilbin.estimators.feature_ridge import FeatureRidge
from hilbin.estimators.feature_ridge_classifier import FeatureRidgeClassifier
from hilbin.estimators.intersection_svc import IntersectionSVC
from hilbin.estimators.intersection_svr import IntersectionSVR
from hilbin.estimators.kernel_one_class import KernelOneClass
from hilbin.estimators.kernel_ridge import KernelRidge
from hilbin.estimators.kernel_svc import KernelSVC
from hilbin.estimators.kernel_svr import KernelSVR
from hilbin.estimators.linear_gain import LinearGain, linear_gain
from hilbin.estimators.stream_landmarks import stream_landmarks
from hilbin.estimators.stream_pca import StreamPCA
from hilbin.estimators.svdd import SVDD

__all__ = [
    "SVDD",
    "BundleSVC",
    "BundleSVR",
    "FeatureRidge",
    "FeatureRidgeClassifier",
    "HistogramBinner",
    "IntersectionSVC",
    "IntersectionSVR",
    "KernelOneClass",
    "KernelRidge",
    "KernelSVC",
    "KernelSVR",
    "LinearGain",
    "ShapeFunction",
    "StreamPCA",
    "linear_gain",
    "stream_landmarks",
]
