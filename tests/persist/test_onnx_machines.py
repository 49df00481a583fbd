"""Exported kernels, machines, probabilities and float32 inputs say what the models say."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from graphs import LABELS, assert_close, assert_refused, check_export, run
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, Normalizer, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.fixes import parse_version

from hilbin.estimators import (
    SVDD,
    InfiniteKernelSVC,
    IntersectionSVC,
    KernelDiscriminant,
    KernelOneClass,
    KernelPCA,
    KernelRidge,
    KernelSVC,
    KernelSVR,
    MapSVC,
    MapSVR,
    MultipleKernelRidge,
    MultipleKernelRidgeClassifier,
    MultipleKernelSVC,
    ScoreCalibration,
)
from hilbin.estimators._fit import agreeing
from hilbin.kernels import (
    GCS,
    Chi2,
    Exponential,
    Gaussian,
    Hellinger,
    Intersection,
    JensenShannon,
    Laplace,
    Linear,
    Normalized,
    NotPositiveDefiniteWarning,
    OnColumns,
    Polynomial,
    Power,
    PValue,
    SymmetricKL,
    WeightedSum,
    product_kernel,
)
from hilbin.maps import AdditiveMap, FourierMap, NystroemMap, ProductQuantizer, SparseMap
from hilbin.persist import to_onnx
from hilbin.persist.onnx.kernels import GRAMS

onnx = pytest.importorskip("onnx")
GROUPS = [slice(0, 7), [11, 7, 8]]
pytestmark = pytest.mark.filterwarnings("ignore::hilbin.kernels.NotPositiveDefiniteWarning")


def named(value):
    return re.sub(r"\s+", " ", repr(value))[:70]


def kernels():
    """Kernels of every kind that is exported, and of kernels inside each other."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPositiveDefiniteWarning)
        divergence = SymmetricKL(0.01)
    both = OnColumns(Chi2(), GROUPS[0]) + OnColumns(Gaussian(0.3), GROUPS[1])
    return [
        Chi2(),
        Gaussian(0.2),
        GCS(6.0),
        GCS("median"),
        Hellinger(),
        Intersection(),
        Intersection(beta=0.5),
        JensenShannon(),
        Laplace(0.1),
        Laplace("median", p=2),
        Linear(),
        Polynomial(degree=3, offset=0.5),
        divergence,
        Exponential(Chi2(), "mean"),
        Exponential(Intersection(beta=0.5)),
        Exponential(JensenShannon(), 0.5),
        Exponential(Hellinger(), 0.5),
        Exponential(Linear(), 0.01),
        Exponential(Polynomial(degree=2), 1e-3),
        Exponential(Gaussian(0.2)),
        Exponential(Normalized(both)),
        Exponential(both, "mean"),
        Exponential(WeightedSum([Chi2(), Linear(), Chi2()], [0.5, 0.1, 0.0]), 0.1),
        Exponential(Power(Chi2() * Gaussian(0.1), 0.5)),
        Exponential(2.5 * Hellinger(), 0.1),
        Normalized(Intersection()),
        Normalized(Linear()),
        Normalized(Exponential(Chi2())),
        Power(Laplace(0.5), 0.25),
        Power(Intersection(), 0.5),
        Power(GCS(4.0) * Laplace(0.5, p=2), 0.25),
        0.5 * Chi2(),
        Chi2() + Linear(),
        Chi2() * Gaussian(0.1),
        both,
        OnColumns(Power(Chi2(), 0.5), [-1, 3]),
        WeightedSum([Chi2(), Gaussian(0.2), Linear()], [0.5, 2.0, 0.0]),
    ]


def test_the_kernels_below_are_all_that_are_exported():
    def inner(kernel):
        parts = kernel._inner()
        return {type(kernel)}.union(*map(inner, parts))

    assert set().union(*map(inner, kernels())) == set(GRAMS)


@pytest.mark.parametrize("kernel", kernels(), ids=named)
def test_kernels(kernel, rows, tmp_path):
    """The scores of a ridge are sums of all kernel values; those of rows of the training, too."""
    train, test = rows
    test = np.concatenate([test[1:], train[:5]])
    model = KernelRidge(kernel, alpha=1.0).fit(train, train[:, :2])
    check_export(model, test, tmp_path / "model.onnx")


def test_products_of_exponentials(rows, tmp_path):
    train, test = rows
    parts = [OnColumns(Exponential(Chi2(), "mean"), g) for g in GROUPS]
    model = KernelSVC(product_kernel(parts, train)).fit(train, LABELS["three"])
    check_export(model, test, tmp_path / "model.onnx")


@pytest.mark.parametrize("labels", ["two", "names"])
@pytest.mark.parametrize(
    "model",
    [
        KernelSVC(),
        KernelSVC(Exponential(Chi2(), "mean"), C=10, probability=True),
        KernelSVC(Laplace("median"), multi_class="ovo", probability=True),
        KernelSVC(Chi2(), multi_class="dag"),
        KernelSVC(Gaussian("median"), multi_class="ecoc"),
        KernelSVC(Intersection(), multi_class="crammer_singer", probability=True),
        MultipleKernelSVC([Chi2(), Gaussian("median"), Linear()], probability=True),
        MultipleKernelSVC([Chi2(), Laplace("median")], norm=2, multi_class="crammer_singer"),
        MultipleKernelRidgeClassifier([Chi2(), Gaussian("median")], probability=True),
        InfiniteKernelSVC(max_iter=5),
        KernelDiscriminant(Exponential(Chi2()), probability=True),
        KernelDiscriminant(feature_map=AdditiveMap(Chi2())),
        MapSVC(),
        MapSVC(AdditiveMap(Chi2()), probability=True),
        MapSVC(SparseMap(Intersection(), 12), C=0.1),
        MapSVC(SparseMap(Chi2(), 9, orthonormal=True), loss="logistic"),
        MapSVC(make_pipeline(Normalizer("l1"), NystroemMap(Chi2(), 20)), fit_intercept=False),
        MapSVC(ProductQuantizer(n_words=8, part_size=4)),
        make_pipeline(MaxAbsScaler(), KernelSVC(Gaussian("median"))),
    ],
    ids=named,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_classifiers(model, labels, rows, tmp_path):
    train, test = rows
    check_export(model.fit(train, LABELS[labels]), test[1:], tmp_path / "model.onnx")


def test_many_classes(rows, tmp_path):
    """Of pairs, rounds and code books of more than three classes."""
    train, test = rows
    y = np.arange(90) % 9
    for way in ("ovr", "ovo", "dag", "ecoc"):
        model = KernelSVC(Gaussian("median"), multi_class=way).fit(train, y)
        check_export(model, test, tmp_path / "model.onnx")


def test_a_code_book_of_two_classes(rows, tmp_path):
    book = [[-1, 1, -1], [1, -1, 1]]
    model = KernelSVC(Gaussian("median"), multi_class="ecoc", code_book=book)
    check_export(model.fit(rows[0], LABELS["two"]), rows[1], tmp_path / "model.onnx")


@pytest.mark.parametrize(
    "model",
    [
        KernelSVR(Exponential(Chi2(), "mean"), C=10),
        KernelRidge(Laplace("median"), alpha="auto"),
        MultipleKernelRidge([Chi2(), Gaussian("median")]),
        MapSVR(),
        MapSVR(AdditiveMap(Intersection()), epsilon=0.1),
        MapSVR(SparseMap(Intersection()), loss="squared_epsilon_insensitive"),
    ],
    ids=named,
)
def test_regressors(model, rows, tmp_path):
    train, test = rows
    check_export(model.fit(train, train[:, 0] - train[:, 1]), test[1:], tmp_path / "model.onnx")
    if not isinstance(model, KernelSVR):
        for width in (1, 2):
            check_export(model.fit(train, train[:, :width]), test[1:], tmp_path / "model.onnx")


@pytest.mark.parametrize(
    "model",
    [
        KernelOneClass(),
        SVDD(Gaussian("median")),
        SVDD(Chi2(), nu=0.3),
        make_pipeline(MaxAbsScaler(), SVDD(Normalized(Linear()))),
    ],
    ids=named,
)
def test_detectors(model, rows, tmp_path):
    train, test = rows
    model.fit(train)
    signs = model.predict(test[1:])
    assert {*signs.tolist()} == {-1, 1}
    check_export(model, test[1:], tmp_path / "model.onnx")


@pytest.mark.parametrize(
    "step",
    [
        KernelPCA(Exponential(Chi2(), "mean"), n_components=4),
        KernelPCA(feature_map=FourierMap(Gaussian(0.1), 30, random_state=0), n_components=3),
        TfidfTransformer(),
        TfidfTransformer(sublinear_tf=True, norm="l1"),
        TfidfTransformer(use_idf=False, norm=None),
    ],
    ids=named,
)
def test_transformers(step, rows, tmp_path):
    train, test = rows
    check_export(step.fit(train), test[1:], tmp_path / "step.onnx")


def test_discriminants_as_features(rows, tmp_path):
    train, test = rows
    model = make_pipeline(KernelDiscriminant(Chi2(), n_components=1), LinearSVC())
    check_export(model.fit(train, LABELS["three"]), test[1:], tmp_path / "model.onnx")


def test_precomputed_kernels_are_columns(rows, tmp_path):
    train, test = rows
    K, L = Chi2().gram(train), Chi2().gram(test[1:], train)
    for model in (
        KernelSVC("precomputed"),
        KernelRidge("precomputed"),
        KernelPCA("precomputed", n_components=2),
        SVDD("precomputed"),
    ):
        if isinstance(model, SVDD):
            K, L = (Normalized(Chi2()).gram(*pair) for pair in ((train,), (test[1:], train)))
        check_export(model.fit(K, LABELS["three"]), L, tmp_path / "model.onnx")


def test_support_vectors_may_be_sparse_or_none(rows, tmp_path):
    train, test = rows
    sparse = sp.csr_array(np.where(train > 0.3, train, 0))
    model = KernelSVC(Chi2()).fit(sparse, LABELS["three"])
    check_export(model, test, tmp_path / "model.onnx")
    flat = KernelSVR(epsilon=10.0).fit(train, train[:, 0])
    assert not flat.support_.size
    check_export(flat, test, tmp_path / "model.onnx")


# probabilities
@pytest.mark.parametrize("labels", ["two", "names"])
@pytest.mark.parametrize(
    "model",
    [
        CalibratedClassifierCV(LinearSVC(), cv=3),
        CalibratedClassifierCV(IntersectionSVC(), cv=2, ensemble=False),
        CalibratedClassifierCV(KernelSVC(Chi2()), cv=2, method="isotonic"),
        CalibratedClassifierCV(make_pipeline(StandardScaler(), LogisticRegression()), cv=2),
        make_pipeline(MaxAbsScaler(), CalibratedClassifierCV(LinearSVC(), cv=2)),
    ],
    ids=named,
)
def test_calibrated_by_scikit_learn(model, labels, rows, tmp_path):
    train, test = rows
    check_export(model.fit(train, LABELS[labels]), test[1:], tmp_path / "model.onnx")


def test_frozen_classifiers(rows, tmp_path):
    train, test = rows
    ready = FrozenEstimator(LinearSVC().fit(train, LABELS["three"]))
    check_export(make_pipeline("passthrough", ready), test[1:], tmp_path / "model.onnx")
    model = CalibratedClassifierCV(ready).fit(train, LABELS["three"])
    check_export(model, test[1:], tmp_path / "model.onnx")


@pytest.mark.parametrize("labels", ["two", "three"])
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_score_calibrations(method, labels, rows, tmp_path):
    train, test = rows
    many = np.tile(train, (40, 1)) * np.random.default_rng(0).uniform(0.5, 1.5, (3600, 1))
    y = np.tile(LABELS[labels], 40)
    model = IntersectionSVC(probability=True).fit(train, LABELS[labels])
    model.calibration_ = ScoreCalibration(method).fit(model.decision_function(many), y)
    assert model.calibration_.method_ == method
    check_export(model, test, tmp_path / "model.onnx")


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_lines_between_points(tmp_path_factory, seed, n):
    """Scores at, between and beyond the points of an isotonic calibration."""
    rng = np.random.default_rng(seed)
    model = LinearSVC().fit([[0.0], [1.0]], [0, 1])
    model.coef_, model.intercept_ = np.ones((1, 1)), np.zeros(1)
    at = np.sort(rng.choice([-1.0, -1e-30, 0, 1e-9, 2, 5e5], n, replace=False))
    calibration = ScoreCalibration()
    calibration.classes_, calibration.method_ = np.array([0, 1]), "isotonic"
    calibration.scores_, calibration.offsets_ = at, np.array([0, n])
    calibration.probabilities_ = np.sort(rng.random(n))
    model.calibration_ = calibration
    X = np.concatenate([at, at + 0.1, at * 1.5, [-1e308, 1e308]])[:, None]
    path = tmp_path_factory.getbasetemp() / f"lines-{n}.onnx"
    to_onnx(model, path)
    found = run(path, X)["probabilities"]
    assert_close(found, agreeing(calibration.predict_proba(X[:, 0]), X[:, 0]))


# float32
@pytest.mark.parametrize(
    "model",
    [
        IntersectionSVC(probability=True),
        KernelSVC(Exponential(Chi2(), "mean")),
        make_pipeline(MaxAbsScaler(), MapSVC(AdditiveMap(Chi2()))),
    ],
    ids=named,
)
def test_float32_rows_are_widened(model, rows, tmp_path):
    train, test = rows
    path, wide = tmp_path / "model.onnx", test.astype(np.float32).astype(np.float64)
    model.fit(train, LABELS["three"])
    to_onnx(model, path, input_dtype="float32")
    found = run(path, test, np.float32)
    assert_close(found["scores"], model.decision_function(wide))
    np.testing.assert_array_equal(found["label"], model.predict(wide))
    with pytest.raises(Exception, match="Unexpected input data type"):
        run(path, test, np.float64)


def test_other_input_types_are_refused(rows, tmp_path):
    model = IntersectionSVC().fit(rows[0], LABELS["three"])
    with pytest.raises(ValueError, match="input_dtype must be one of"):
        to_onnx(model, tmp_path / "model.onnx", input_dtype="float16")
    with pytest.raises(ValueError, match="from_features=True is for classifiers of images"):
        to_onnx(model, tmp_path / "model.onnx", from_features=True)


# graphs
@pytest.mark.parametrize("way", ["ovr", "ovo", "dag", "ecoc"])
def test_graphs_are_valid(way, rows, tmp_path):
    """By the rules of ONNX and its inference of shapes; the same model gives the same bytes."""
    model = KernelSVC(Exponential(JensenShannon()), multi_class=way, probability=True)
    model.fit(rows[0], LABELS["names"])
    paths = [tmp_path / "a.onnx", tmp_path / "b.onnx"]
    for path in paths:
        to_onnx(model, path)
    onnx.checker.check_model(onnx.load(paths[0]), full_check=True)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_known_rows_are_stored_once(rows, tmp_path):
    """Kernels that look at the same support vectors share them."""
    train = np.random.default_rng(0).gamma(0.4, size=(90, 200))
    sizes = []
    for kernel in (Laplace(0.1), Laplace(0.1) + Gaussian(0.1) + Chi2()):
        to_onnx(KernelRidge(kernel).fit(train, train[:, 0]), tmp_path / "model.onnx")
        sizes.append((tmp_path / "model.onnx").stat().st_size)
    assert sizes[0] < train.nbytes + 10_000
    assert sizes[1] < 2 * train.nbytes + 20_000  # 2 Z of Chi2 is another constant


# what is refused
@pytest.mark.parametrize(
    ("model", "match"),
    [
        (KernelSVC(PValue()), r"model\.kernel_ is a PValue, .* train with one of Chi2, "),
        (KernelSVC(Chi2() + PValue()), r"model\.kernel_\.right is a PValue"),
        (KernelSVC(lambda X, Y: X @ Y.T), r"model\.kernel_ is a CallableKernel"),
        (
            MultipleKernelSVC([Chi2(), PValue()], norm=2),
            r"model\.kernels_\[1\] is a PValue",
        ),
        pytest.param(
            CalibratedClassifierCV(LinearSVC(), method="temperature", cv=2),
            r'calibrated by TemperatureScaling, .* take method="sigmoid"',
            marks=pytest.mark.skipif(
                parse_version(sklearn.__version__) < parse_version("1.8"), reason="no such method"
            ),
        ),
        (
            CalibratedClassifierCV(
                LinearSVC(), cv=PredefinedSplit(np.where(np.arange(90) % 3 == 2, 0, -1))
            ),
            "has not seen all classes.*StratifiedKFold",
        ),
    ],
    ids=["PValue", "sum", "function", "several kernels", "temperature", "classes"],
)
@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_exported_is_named(model, match, rows, tmp_path):
    assert_refused(model.fit(rows[0], LABELS["three"]), match, tmp_path / "model.onnx")


def test_matrices_that_a_graph_cannot_take_are_refused(rows, tmp_path):
    train = rows[0]
    K = [Chi2().gram(train), Linear().gram(train)]
    several = MultipleKernelSVC("precomputed").fit(K, LABELS["three"])
    ball = SVDD("precomputed").fit(K[0])
    for model, match in ((several, "give it kernels"), (ball, r"needs k\(x, x\)")):
        assert_refused(model, match, tmp_path / "model.onnx")
