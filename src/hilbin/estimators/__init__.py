"""Estimators: scikit-learn shells around kernels, maps and solvers.

The families are sub-packages: :mod:`~hilbin.estimators.intersection` (one function per feature),
:mod:`~hilbin.estimators.kernel` (any kernel, by support vectors),
:mod:`~hilbin.estimators.multiple` (several kernels: their weights and parameters),
:mod:`~hilbin.estimators.clustering` (any kernel, without labels),
:mod:`~hilbin.estimators.reduction` (few coordinates, by kernels or explicit features),
:mod:`~hilbin.estimators.structured` (outputs that are structures) and
:mod:`~hilbin.estimators.linear` (explicit features, out of core). A new estimator is entered here;
persistence, the reference and the tests take it from this list.
"""

from hilbin.estimators.clustering.coordinates import (
    CorrelationalClustering,
    KernelPCAClustering,
)
from hilbin.estimators.clustering.kmeans import KernelKMeans
from hilbin.estimators.clustering.quantizer import KernelQuantizer
from hilbin.estimators.clustering.spectral import GraphClustering
from hilbin.estimators.clustering.support import SupportVectorClustering
from hilbin.estimators.compare_with_linear import LinearComparison, compare_with_linear
from hilbin.estimators.intersection.binner import HistogramBinner
from hilbin.estimators.intersection.shapes import ShapeFunction
from hilbin.estimators.intersection.svc import IntersectionSVC
from hilbin.estimators.intersection.svr import IntersectionSVR
from hilbin.estimators.kernel.outliers import SVDD, KernelOneClass
from hilbin.estimators.kernel.ridge import KernelRidge
from hilbin.estimators.kernel.svc import KernelSVC
from hilbin.estimators.kernel.svr import KernelSVR
from hilbin.estimators.linear.cca import StreamCCA
from hilbin.estimators.linear.cost import CostEstimate
from hilbin.estimators.linear.kmeans import StreamKMeans
from hilbin.estimators.linear.landmarks import stream_landmarks
from hilbin.estimators.linear.pca import StreamPCA
from hilbin.estimators.linear.ridge import MapRidge, MapRidgeClassifier
from hilbin.estimators.linear.svm import MapSVC, MapSVR
from hilbin.estimators.multiple.aligned import AlignedKernel
from hilbin.estimators.multiple.infinite import InfiniteKernelSVC
from hilbin.estimators.multiple.ridge import MultipleKernelRidge, MultipleKernelRidgeClassifier
from hilbin.estimators.multiple.svc import MultipleKernelSVC
from hilbin.estimators.multiple.tune import Tuning, tune
from hilbin.estimators.probability import ScoreCalibration
from hilbin.estimators.reduction.cca import KernelCCA
from hilbin.estimators.reduction.discriminant import KernelDiscriminant
from hilbin.estimators.reduction.pca import KernelPCA
from hilbin.estimators.structured.grid import GridModel
from hilbin.estimators.structured.models import ChainModel, MulticlassModel
from hilbin.estimators.structured.svm import StructuredSVM

__all__ = [
    "SVDD",
    "AlignedKernel",
    "ChainModel",
    "CorrelationalClustering",
    "CostEstimate",
    "GraphClustering",
    "GridModel",
    "HistogramBinner",
    "InfiniteKernelSVC",
    "IntersectionSVC",
    "IntersectionSVR",
    "KernelCCA",
    "KernelDiscriminant",
    "KernelKMeans",
    "KernelOneClass",
    "KernelPCA",
    "KernelPCAClustering",
    "KernelQuantizer",
    "KernelRidge",
    "KernelSVC",
    "KernelSVR",
    "LinearComparison",
    "MapRidge",
    "MapRidgeClassifier",
    "MapSVC",
    "MapSVR",
    "MulticlassModel",
    "MultipleKernelRidge",
    "MultipleKernelRidgeClassifier",
    "MultipleKernelSVC",
    "ScoreCalibration",
    "ShapeFunction",
    "StreamCCA",
    "StreamKMeans",
    "StreamPCA",
    "StructuredSVM",
    "SupportVectorClustering",
    "Tuning",
    "compare_with_linear",
    "stream_landmarks",
    "tune",
]
