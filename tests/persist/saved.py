"""Models of every class that a file can hold, for the tests of saving and the fuzz of files."""

import importlib

import numpy as np
import scipy.sparse as sp
from pictures import drawn
from sklearn.base import BaseEstimator, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.feature_selection import VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    LogisticRegression,
    RidgeClassifier,
    RidgeClassifierCV,
    SGDClassifier,
)
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import LinearSVC

import hilbin.images as hi
from hilbin.estimators import (
    CorrelationalClustering,
    HistogramBinner,
    IntersectionSVC,
    IntersectionSVR,
    KernelCCA,
    KernelPCA,
    KernelSVC,
    MapRidgeClassifier,
    MapSVC,
    MultipleKernelRidgeClassifier,
    MultipleKernelSVC,
    StreamCCA,
    StructuredSVM,
)
from hilbin.kernels import (
    Chi2,
    Exponential,
    Gaussian,
    Hellinger,
    Intersection,
    JensenShannon,
    Laplace,
    Quantile,
)
from hilbin.maps import (
    AdditiveMap,
    FourierMap,
    KernelMap,
    NystroemMap,
    SparseMap,
    SparseProjectionMap,
)

PACKAGES = ("hilbin.estimators", "hilbin.maps")
VARIANTS = [
    HistogramBinner(n_bins=None),
    HistogramBinner(strategy="quantile"),
    HistogramBinner(strategy="sqrt", scope="all"),
    IntersectionSVC(n_bins=None),
    IntersectionSVC(strategy="quantile", warm_start=True),
    IntersectionSVC(multi_class="crammer_singer", n_bins=3, solver="lookup"),
    IntersectionSVR(n_bins=None, intercept_scaling=0.5),
    AdditiveMap(Intersection(beta=0.5)),
    AdditiveMap(Hellinger()),
    AdditiveMap(JensenShannon(), method="eigen"),
    AdditiveMap(Chi2(), parameters=np.array([0.1, 0.5])),
    FourierMap(Exponential(Chi2(), gamma="median"), 64, random_state=0),
    FourierMap(Gaussian(), 31, kind="structured", random_state=0),
    FourierMap(
        Exponential(Intersection()), 16, feature_map=SparseMap(Intersection(), orthonormal=True)
    ),
    NystroemMap(Exponential(Chi2(), gamma=Quantile(0.3)), 20, random_state=0),
    NystroemMap(Laplace(), landmarks=sp.csr_array(np.eye(33)[:9])),
    KernelPCA(Laplace(), 3),
    KernelPCA(n_components=2, feature_map=NystroemMap(Chi2(), 20, random_state=0)),
    SparseMap(Chi2(), orthonormal=True),
    SparseMap(Intersection(), spacing=[0.01, 0.1, 0.5]),
    SparseProjectionMap(Chi2(), 20, selection="pursuit", orthonormal=True, random_state=0),
    MapRidgeClassifier(FrozenEstimator(AdditiveMap(Chi2()).fit(np.eye(33)))),
    IntersectionSVC(probability=True),
    KernelSVC(Chi2(), probability=True),
    MapRidgeClassifier(probability=True),
    MapSVC(probability=True),
    MultipleKernelSVC({"a": Chi2(), "b": Gaussian("median")}, weights="per_class", warm_start=True),
    MultipleKernelRidgeClassifier([Chi2(), Intersection()], probability=True),
    StructuredSVM(rescaling="slack", warm_start=True),
    MapRidgeClassifier(
        column_groups=[("a", [0, 1], None), ("b", [2, 3], AdditiveMap(Chi2()))], penalty="multiple"
    ),
]


def takes_numbers(model):
    """Whether a model is fitted to numbers, not to labels."""
    return is_regressor(model) or isinstance(model, KernelCCA | StreamCCA | CorrelationalClustering)


def public_estimators():
    """One of every public class that can be fitted, its kernel given where it needs one."""
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            cls = getattr(module, name)
            if isinstance(cls, type) and issubclass(cls, BaseEstimator) and cls is not KernelMap:
                try:
                    yield cls()
                except TypeError:
                    kernel = Exponential(Chi2()) if name == "FourierMap" else Chi2()
                    yield cls(kernel)


PIPELINES = [
    make_pipeline(MinMaxScaler(), IntersectionSVC()),
    make_pipeline(StandardScaler(with_mean=False), AdditiveMap(Chi2()), LinearSVC()),
    make_pipeline(MaxAbsScaler(), FourierMap(Exponential(Chi2()), 32), RidgeClassifier()),
    make_pipeline(Normalizer("l1"), NystroemMap(Chi2(), 10), RidgeClassifierCV()),
    make_pipeline(TfidfTransformer(), TruncatedSVD(5), LogisticRegression()),
    make_pipeline(PCA(4), SGDClassifier(random_state=0)),
    make_pipeline(QuantileTransformer(n_quantiles=5), "passthrough", KernelSVC(Chi2())),
    make_pipeline(FunctionTransformer(), PowerTransformer(), LinearSVC()),
    make_pipeline(RobustScaler(), VarianceThreshold(), SimpleImputer(), LinearSVC()),
    Pipeline([("svm", LinearSVC()), ("unused", "passthrough")][:1]),
    make_pipeline(
        FeatureUnion([("a", AdditiveMap(Chi2(), 2)), ("b", PCA(2))], transformer_weights={"a": 2}),
        LinearSVC(),
    ),
    CalibratedClassifierCV(IntersectionSVC(), cv=2),
]


# images
PICTURES = [drawn(seed, (64, 72), color=True) for seed in range(6)]
ROWS = ("Codebook", "HistogramNormalizer")  # take rows, not images
SPECIAL = {
    "BagOfWords": lambda: hi.BagOfWords(n_words=7, random_state=0),
    "Codebook": lambda: hi.Codebook(4, random_state=0),
    "ImageFeatures": lambda: hi.ImageFeatures(
        [("a", hi.Centrist()), ("b", hi.LBP())], weights={"a": 2.0}
    ),
    "FisherVector": lambda: hi.FisherVector(n_components=3, n_dimensions=5, random_state=0),
    "RotationIntegrated": lambda: hi.RotationIntegrated(hi.HOG()),
    "SpatialPyramid": lambda: hi.SpatialPyramid(hi.BagOfWords(n_words=5, random_state=0), 2),
}
NAMES = [
    name
    for name in hi.__all__
    if isinstance(getattr(hi, name), type) and issubclass(getattr(hi, name), BaseEstimator)
]


def made(name):
    if name == "OnnxFeatures":
        return hi.OnnxFeatures("network.onnx", normalization=((0.5, 0.4, 0.3), 1.0))
    return SPECIAL.get(name, getattr(hi, name))()
