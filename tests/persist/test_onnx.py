"""Exported graphs, run by onnxruntime, say what the models say."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from graphs import LABELS, assert_refused, check_export, run
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier, SGDClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC, LinearSVR

from hilbin.estimators import (
    HistogramBinner,
    IntersectionSVC,
    IntersectionSVR,
    MapRidge,
    MapRidgeClassifier,
    StreamPCA,
)
from hilbin.kernels import (
    Chi2,
    Exponential,
    Gaussian,
    Hellinger,
    Intersection,
    JensenShannon,
    Linear,
    OnColumns,
    Polynomial,
    PValue,
)
from hilbin.maps import AdditiveMap, FourierMap, NystroemMap, SparseMap, SparseProjectionMap
from hilbin.persist import to_onnx

onnx = pytest.importorskip("onnx")


GROUPS = [
    ("some", slice(0, 7), AdditiveMap(Chi2())),
    ("others", [11, 7, 8], None),
    ("again", [2, 3, 9], FourierMap(Gaussian(0.1), 20)),
]


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize(
    "model",
    [
        IntersectionSVC(),
        IntersectionSVC(n_bins=3, solver="lookup"),
        IntersectionSVC(n_bins=None),
        IntersectionSVC(strategy="sqrt", scope="all"),
        IntersectionSVC(strategy="quantile", n_bins=9),
        IntersectionSVC(multi_class="crammer_singer"),
        IntersectionSVC(probability=True),
        MapRidgeClassifier(AdditiveMap(Chi2()), calibrate_rank=5),
        MapRidgeClassifier(AdditiveMap(Chi2()), calibrate_rank=5, probability=True),
        MapRidgeClassifier(column_groups=GROUPS, n_components={"some": 3, "again": 5}),
        make_pipeline(AdditiveMap(Chi2()), LinearSVC()),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=lambda m: repr(m)[:70].replace("\n", ""),
)
def test_classifiers(model, labels, rows, tmp_path):
    train, test = rows
    check_export(model.fit(train, LABELS[labels]), test, tmp_path / "model.onnx")


def test_values_below_the_range(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 5))
    for n_bins in (20, None):
        model = IntersectionSVC(n_bins=n_bins).fit(X, X[:, 0] > 0)
        check_export(model, 3 * rng.normal(size=(90, 5)), tmp_path / "model.onnx")


@pytest.mark.parametrize("strategy", ["uniform", "sqrt", "quantile"])
def test_no_value_falls_into_another_bin(strategy, tmp_path):
    """Values at, just below and just above every edge of every bin."""
    X = np.random.default_rng(0).gamma(0.5, size=(500, 4))
    binner = HistogramBinner(strategy=strategy, quantile=1.0).fit(X)
    edges = [binner.boundaries(j) for j in range(4)]
    most = max(e.size for e in edges)
    at = np.column_stack([np.resize(e, most) for e in edges])
    near = np.concatenate([at, np.nextafter(at, -1).clip(0), np.nextafter(at, np.inf)])
    to_onnx(binner, tmp_path / "binner.onnx")
    found = run(tmp_path / "binner.onnx", near)["features"]
    np.testing.assert_array_equal(found, binner.transform(near))


def test_counts(tmp_path):
    X = np.random.default_rng(0).poisson(3, (80, 6))
    model = IntersectionSVC(scope="all").fit(X, X[:, 0] > 2)
    assert model.binner_.integers_
    check_export(model, X, tmp_path / "model.onnx")


@pytest.mark.parametrize(
    "model",
    [
        IntersectionSVR(),
        IntersectionSVR(n_bins=None),
        MapRidge(),
        MapRidge(FourierMap(Exponential(Chi2(), gamma="median"), 31), n_components=9),
        MapRidge(NystroemMap(Exponential(Chi2()), 20), alpha="auto"),
        MapRidge(SparseMap(Intersection(), orthonormal=True), alpha=0.1, penalty="lasso"),
        MapRidge(make_pipeline(Normalizer("l1"), AdditiveMap(Hellinger()))),
        MapRidge(column_groups=GROUPS[:1]),
        make_pipeline(MaxAbsScaler(), MapRidge(column_groups=GROUPS, penalty="group_lasso")),
        Ridge(),
        LinearSVR(),
        make_pipeline(MaxAbsScaler(), SparseMap(Chi2()), Ridge()),
    ],
    ids=lambda m: repr(m)[:40].replace("\n", ""),
)
def test_regressors(model, rows, tmp_path):
    train, test = rows
    check_export(model.fit(train, train[:, 0] - train[:, 1]), test, tmp_path / "model.onnx")


def test_several_targets(rows, tmp_path):
    train, test = rows
    for model in (Ridge(), MapRidge(), MapRidge(column_groups=GROUPS)):
        for width in (1, 2):
            check_export(model.fit(train, train[:, :width]), test, tmp_path / "model.onnx")


def test_a_frozen_map(rows, tmp_path):
    train, test = rows
    ready = FrozenEstimator(FourierMap(Gaussian(0.1), 16, random_state=0).fit(train))
    model = MapRidgeClassifier(ready).fit(train, LABELS["three"])
    check_export(model, test, tmp_path / "model.onnx")


@pytest.mark.parametrize(
    "step",
    [
        AdditiveMap(Chi2()),
        AdditiveMap(Chi2(), 12),
        AdditiveMap(Chi2(), method="eigen"),
        AdditiveMap(Intersection()),
        AdditiveMap(Intersection(beta=0.5)),
        AdditiveMap(JensenShannon()),
        AdditiveMap(Hellinger()),
        AdditiveMap(OnColumns(Hellinger(), [5, 2])),
        AdditiveMap(OnColumns(Chi2(), slice(1, 6))),
        AdditiveMap(OnColumns(Intersection(), slice(None, None, -1))),
        SparseMap(OnColumns(Intersection(), slice(2, None)), 9),
        SparseMap(OnColumns(Chi2(), [3, 0]), 9, orthonormal=True),
        FourierMap(Gaussian(gamma=0.1), 64),
        FourierMap(Gaussian(), 1),
        FourierMap(Exponential(Chi2(), gamma="median"), 63),
        FourierMap(Exponential(Intersection()), 64, kind="structured"),
        FourierMap(
            Exponential(Intersection()), 8, feature_map=SparseMap(Intersection(), orthonormal=True)
        ),
        NystroemMap(Chi2(), 20),
        NystroemMap(Linear(), 5),
        NystroemMap(Polynomial(degree=2), 9),
        NystroemMap(Hellinger(), 5),
        NystroemMap(Intersection(beta=0.5), 20),
        NystroemMap(Gaussian(gamma=0.1), 20),
        NystroemMap(Exponential(Chi2(), gamma="median"), 20),
        NystroemMap(Exponential(Linear(), gamma=0.1), 20),
        SparseMap(Chi2()),
        SparseMap(JensenShannon(), orthonormal=True),
        SparseMap(Intersection(), spacing=[0.25, 0.26, 0.5, 1.0, 2.3]),
        HistogramBinner(),
        HistogramBinner(n_bins=None),
        StandardScaler(),
        StandardScaler(with_mean=False, with_std=False),
        MinMaxScaler((-1, 2), clip=True),
        MaxAbsScaler(),
        Normalizer("l1"),
        Normalizer("l2"),
        Normalizer("max"),
        PCA(3),
        PCA(3, whiten=True),
        StreamPCA(3),
        StreamPCA(whiten=True, feature_map=AdditiveMap(Chi2())),
        TruncatedSVD(3),
        FeatureUnion(
            [("a", PCA(2)), ("b", AdditiveMap(Chi2())), ("c", "drop"), ("d", "passthrough")],
            transformer_weights={"a": 2.0},
        ),
        make_pipeline("passthrough", MaxAbsScaler(), make_pipeline(AdditiveMap(Chi2()))),
    ],
    ids=lambda m: repr(m)[:70].replace("\n", ""),
)
def test_transformers(step, rows, tmp_path):
    train, test = rows
    if hasattr(step, "random_state"):
        step.set_params(random_state=0)
    test = test[1:]  # polynomials of 1e6 are no test of anything else
    check_export(step.fit(train), test, tmp_path / "step.onnx")


@pytest.mark.parametrize("last", [RidgeClassifier(), SGDClassifier(random_state=0)], ids=repr)
def test_kernel_pipelines(last, rows, tmp_path):
    train, test = rows
    model = make_pipeline(
        Normalizer("l1"), FourierMap(Exponential(Chi2()), 128, random_state=0), last
    )
    check_export(model.fit(train, LABELS["names"]), test, tmp_path / "model.onnx")


@pytest.mark.parametrize("width", [1, 12])
@pytest.mark.parametrize(
    "step", [FourierMap(Gaussian(0.1), 14), MaxAbsScaler(), HistogramBinner(n_bins=None)], ids=repr
)
def test_factors_before_a_product_are_not_rounded(step, width, rows, tmp_path):
    """A runtime that joins a factor with the product after it may round it to float32."""
    train, test = (X[1:, :width] for X in rows)
    model = make_pipeline(step, RidgeClassifier()).fit(train, LABELS["three"][1:])
    to_onnx(model, tmp_path / "model.onnx")
    found, expected = run(tmp_path / "model.onnx", test)["scores"], model.decision_function(test)
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)


def test_models_fitted_in_single_precision(rows, tmp_path):
    train, test = (X.astype(np.float32) for X in rows)
    for model in (IntersectionSVC(), make_pipeline(FourierMap(Gaussian(), 8), LinearSVC())):
        model.fit(train, LABELS["three"])
        check_export(model, test.astype(np.float64), tmp_path / "model.onnx")


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(2, 40))
def test_cubics_find_their_cells(tmp_path_factory, seed, d, n):
    """Powers of two and their neighbors, where a rounded logarithm may err."""
    rng = np.random.default_rng(seed)
    X = 2.0 ** rng.integers(-9, 9, (n, d)) * rng.choice([1, 1 + 2**-52, 1 - 2**-53, 1.3], (n, d))
    step = AdditiveMap(Intersection(), 2, method="nystroem", domain=(2.0**-9, 2.0**9)).fit(X)
    check_export(step, X, tmp_path_factory.getbasetemp() / f"cubics-{n}.onnx")


def test_the_same_model_gives_the_same_bytes(rows, tmp_path):
    model = IntersectionSVC().fit(rows[0], LABELS["three"])
    to_onnx(model, tmp_path / "a.onnx")
    to_onnx(model, tmp_path / "b.onnx")
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
    onnx.checker.check_model(onnx.load(tmp_path / "a.onnx"), full_check=True)


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (SVC(), r"model is a SVC, .*: hilbin\.save keeps it .*; exported are AdditiveMap, "),
        (SparseProjectionMap(Chi2(), 5), "model is a SparseProjectionMap"),
        (NystroemMap(PValue(), 5), r"model\.kernel_ is a PValue.* train with one of Chi2, "),
        (
            MapRidgeClassifier(SparseProjectionMap(Chi2(), 5, orthonormal=True)),
            r"model\.feature_map is a SparseProjectionMap",
        ),
        (
            MapRidge(column_groups=[("a", [0, 1], NystroemMap(PValue(), 5))]),
            r"model\.transformers_\['a'\]\.kernel_ is a PValue",
        ),
        (
            StreamPCA(2, feature_map=FunctionTransformer(np.sqrt)),
            r"model\.feature_map is a FunctionTransformer",
        ),
        (NystroemMap(Exponential(PValue()), 5), r"model\.kernel_\.kernel is a PValue"),
        (
            make_pipeline(FunctionTransformer(np.sqrt), LinearSVC()),
            r"model\.steps\['functiontransformer'\] is a FunctionTransformer",
        ),
        (
            make_pipeline(make_pipeline(FunctionTransformer(np.sqrt)), LinearSVC()),
            r"model\.steps\['pipeline'\]\.steps\['functiontransformer'\]",
        ),
    ],
    ids=lambda m: repr(m)[:50].replace("\n", ""),
)
def test_what_cannot_be_exported_is_named(model, match, rows, tmp_path):
    assert_refused(model.fit(rows[0], LABELS["three"]), match, tmp_path / "model.onnx")


def test_several_labels_per_row_are_refused(rows, tmp_path):
    model = RidgeClassifier().fit(rows[0], np.eye(3, dtype=int)[LABELS["three"]])
    assert_refused(model, "several labels per row", tmp_path / "model.onnx")


def test_models_too_large_for_onnx_are_refused(rows, tmp_path, monkeypatch):
    from hilbin.persist.onnx import graph

    model = IntersectionSVC().fit(rows[0], LABELS["three"])
    monkeypatch.setattr(graph, "MOST_BYTES", 1000)
    assert_refused(model, "2 GiB", tmp_path / "model.onnx")


def test_unfitted_models_are_refused(tmp_path):
    with pytest.raises(NotFittedError):
        to_onnx(IntersectionSVC(), tmp_path / "model.onnx")


def test_onnx_is_imported_only_to_export():
    code = """
import sys
import hilbin.persist
assert not {"onnx", "onnxruntime"} & {*sys.modules}
sys.modules["onnx"] = None
from hilbin.estimators import HistogramBinner
try:
    hilbin.persist.to_onnx(HistogramBinner().fit([[1.0], [2.0]]), "unused.onnx")
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == 'to_onnx needs onnx: pip install "hilbin[onnx]"'


def test_the_guide_lists_what_is_exported():
    """All classes of the tables, and all kernels."""
    import hilbin.auto  # noqa: F401 - enters its classes
    from hilbin.persist.onnx import exporters, machines, maps, steps  # noqa: F401
    from hilbin.persist.onnx.kernels import GRAMS

    guide = (Path(__file__).parents[2] / "docs" / "saving.rst").read_text(encoding="utf-8")
    tables = ("CLASSIFIERS", "DETECTORS", "REGRESSORS", "TRANSFORMERS")
    classes = {cls for table in tables for cls in getattr(exporters, table)} | {*GRAMS}
    missing = {c.__name__ for c in classes if f"``{c.__name__}``" not in guide}
    assert missing == {"Majority", "TableEncoder"}  # steps of a TableClassifier
