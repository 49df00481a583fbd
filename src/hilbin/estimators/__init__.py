"""Estimators: scikit-learn shells around kernels, maps and solvers."""

from hilbin.estimators._shapes import ShapeFunction
from hilbin.estimators.binner import HistogramBinner
from hilbin.estimators.bundle_svc import BundleSVC
from hilbin.estimators.bundle_svr import BundleSVR
from hilbin.estimators.feature_ridge import FeatureRidge
from hilbin.estimators.feature_ridge_classifier import FeatureRidgeClassifier
from hilbin.estimators.intersection_svc import IntersectionSVC
from hilbin.estimators.intersection_svr import IntersectionSVR
from hilbin.estimators.linear_gain import LinearGain, linear_gain
from hilbin.estimators.stream_landmarks import stream_landmarks
from hilbin.estimators.stream_pca import StreamPCA

__all__ = [
    "BundleSVC",
    "BundleSVR",
    "FeatureRidge",
    "FeatureRidgeClassifier",
    "HistogramBinner",
    "IntersectionSVC",
    "IntersectionSVR",
    "LinearGain",
    "ShapeFunction",
    "StreamPCA",
    "linear_gain",
    "stream_landmarks",
]
