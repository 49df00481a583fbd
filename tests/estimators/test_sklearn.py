"""scikit-learn's own checks, on every estimator with its defaults and on others with more."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, is_clusterer
from sklearn.utils.estimator_checks import parametrize_with_checks

import hilbin.estimators
from hilbin.estimators import (
    SVDD,
    CorrelationalClustering,
    GraphClustering,
    HistogramBinner,
    IntersectionSVC,
    IntersectionSVR,
    KernelCCA,
    KernelDiscriminant,
    KernelKMeans,
    KernelOneClass,
    KernelPCA,
    KernelPCAClustering,
    KernelQuantizer,
    KernelRidge,
    KernelSVC,
    KernelSVR,
    MultipleKernelRidge,
    MultipleKernelSVC,
    StreamKMeans,
    StructuredSVM,
)
from hilbin.kernels import GCS, Gaussian, Laplace, Linear
from hilbin.maps import FourierMap, NystroemMap

PUBLIC = [getattr(hilbin.estimators, name) for name in hilbin.estimators.__all__]
DEFAULT = [c() for c in PUBLIC if isinstance(c, type) and issubclass(c, BaseEstimator)]
OTHERS = [
    HistogramBinner(strategy="sqrt", negative="shift"),
    HistogramBinner(strategy="quantile", scope="all"),
    HistogramBinner(n_bins=None, negative="shift"),
    IntersectionSVC(fit_intercept=False),
    IntersectionSVC(loss="hinge", C=1e-2, solver="lookup"),
    IntersectionSVC(n_bins=None, solver="lookup"),
    IntersectionSVC(multi_class="crammer_singer"),
    IntersectionSVC(strategy="quantile", scope="all", solver="gram"),
    IntersectionSVC("auto"),
    IntersectionSVR(C=1e-2, solver="lookup"),
    IntersectionSVR(n_bins=None, loss="squared_epsilon_insensitive"),
    KernelSVC(Laplace(gamma="median"), multi_class="ovo"),
    KernelSVC(GCS(radius=100.0), multi_class="dag"),
    KernelSVC(multi_class="ecoc", penalize_intercept=True),
    KernelSVC(multi_class="crammer_singer"),
    KernelSVC("precomputed"),
    KernelSVR(penalize_intercept=True),
    KernelSVR("precomputed"),
    KernelRidge(alpha="auto"),
    KernelRidge(GCS(radius=100.0), alpha=0.1),
    KernelRidge("precomputed"),
    KernelKMeans(3, kernel="precomputed"),
    KernelQuantizer(kernel="precomputed"),
    KernelQuantizer(n_clusters=3),
    GraphClustering(3, embedding="commute"),
    GraphClustering(3, kernel="precomputed"),
    KernelPCAClustering(3, n_components=1, kernel=Laplace(gamma="median")),
    CorrelationalClustering(2, n_components=1),
    StreamKMeans(2, feature_map=FourierMap(Gaussian("median"), 8)),
    KernelOneClass("precomputed"),
    KernelPCA(Laplace(gamma="median"), 1),
    KernelPCA(n_components=1, feature_map=NystroemMap(Laplace(gamma="median"), 4, random_state=0)),
    KernelPCA("precomputed"),
    KernelCCA(
        reg=(0.1, 1.0), feature_map=[NystroemMap(Laplace(gamma="median"), 4, random_state=0), None]
    ),
    KernelDiscriminant(
        reg=0.1, feature_map=NystroemMap(Laplace(gamma="median"), 4, random_state=0)
    ),
    KernelDiscriminant("precomputed", n_components=1),
    SVDD(Linear()),
    MultipleKernelSVC([Linear(), Laplace(gamma="median")], norm=2, weights="per_class"),
    MultipleKernelSVC(norm=np.inf, multi_class="crammer_singer"),
    MultipleKernelRidge([Linear(), Laplace(gamma="median")], norm=4.0, fit_intercept=False),
    StructuredSVM(rescaling="slack", cache=0),
]


def expected_failures(estimator):
    if isinstance(estimator, CorrelationalClustering):
        checks = ("check_clustering", "check_clustering(readonly_memmap=True)")
        return dict.fromkeys(checks, "the second view is missing")
    if getattr(estimator, "kernel", None) != "precomputed":
        return {}
    failures = {
        "check_positive_only_tag_during_fit": "a matrix minus its mean is not a Gram matrix"
    }
    if isinstance(estimator, KernelOneClass):
        checks = ("check_outliers_train", "check_outliers_fit_predict")
        failures |= dict.fromkeys(checks, "rows are given instead of a Gram matrix")
    if is_clusterer(estimator):
        checks = ("check_clustering", "check_clustering(readonly_memmap=True)")
        failures |= dict.fromkeys(checks, "rows are given instead of a Gram matrix")
    return failures


@pytest.mark.filterwarnings("ignore:.*different rows")
@parametrize_with_checks(DEFAULT + OTHERS, expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
