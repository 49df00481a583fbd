"""Exported classifiers of tables and of the rows of images say what the models say."""

import numpy as np
import pytest
from graphs import check_export, run
from sklearn.pipeline import Pipeline

from hilbin import ImageClassifier, TableClassifier, to_onnx
from hilbin.auto import ChannelMap, ChannelWeights, DualRidgeClassifier, DualSVC
from hilbin.auto.candidates import Majority
from hilbin.kernels import Intersection
from hilbin.persist import UnsupportedModelError

KERNELS = ("intersection", "chi2", "js", "hellinger", "linear", "exp-chi2", "gaussian")
CHANNELS = [("words", 0, 7), ("colors", 7, 12)]


@pytest.fixture
def labeled():
    rng = np.random.default_rng(0)
    X = rng.gamma(0.5, size=(120, 6))
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    known = np.nan_to_num(X)
    return X, np.array(["ant", "bee", "cow"])[(known[:, 0] > 0.3) * 1 + (known[:, 1] > 0.5)]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("classes", [2, 3])
def test_tables_of_numbers(kernel, classes, labeled, tmp_path):
    """Missing values, also in columns that have had none, and a column that is left out."""
    X, y = labeled
    y = np.where(y == "cow", "bee", y) if classes == 2 else y
    X[:, 5] = np.nan_to_num(X[:, 5])
    X = np.column_stack([X, np.full(len(X), 7.0)])
    model = TableClassifier(kernel=kernel, n_folds=2).fit(X, y)
    assert "column 7" in model.metadata_["left_out"]
    X[0, 5], X[1, 6] = np.nan, 3.0
    check_export(model, X, tmp_path / "model.onnx")


def test_tables_like_words(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.poisson(0.2, (80, 30)).astype(float)
    model = TableClassifier(n_folds=2).fit(X, X[:, 0] + X[:, 1] > 0)
    check_export(model, X, tmp_path / "model.onnx")


def test_columns_of_texts_are_refused(labeled, tmp_path):
    X, y = labeled
    mixed = np.column_stack([X.astype(object), np.array(["red", "blue"])[np.arange(len(X)) % 2]])
    model = TableClassifier(n_folds=2, kernel="linear").fit(mixed, y)
    with pytest.raises(UnsupportedModelError, match=r"'column 7', which holds texts.*drop="):
        to_onnx(model, tmp_path / "model.onnx")


@pytest.mark.parametrize("kernel", ["chi2", "intersection", "exp-chi2", "linear"])
@pytest.mark.parametrize("classes", [2, 3])
def test_rows_of_images(kernel, classes, tmp_path):
    rng = np.random.default_rng(0)
    centers = np.linspace(40, 200, classes)[np.arange(24) % classes]
    images = [rng.normal(c, 25, (32, 32)).clip(0, 255).astype(np.uint8) for c in centers]
    names = np.array(["dark", "gray", "light"])[np.arange(24) % classes]
    model = ImageClassifier("centrist+lbp", kernel=kernel).fit(images, names)
    path = tmp_path / "model.onnx"
    with pytest.raises(UnsupportedModelError, match=r"\(centrist\+lbp\).*from_features=True"):
        to_onnx(model, path)
    to_onnx(model, path, from_features=True)
    rows = model.model_["features"].transform(images).astype(np.float64)
    found, scores = run(path, rows), model.model_["classifier"].decision_function(rows)
    np.testing.assert_allclose(found["scores"], scores, rtol=1e-9, atol=1e-9)
    both = np.column_stack([-scores, scores]) if classes == 2 else scores
    expected = model.class_probabilities(both)
    np.testing.assert_allclose(found["probabilities"], expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(found["label"], model.predict(images))


@pytest.mark.parametrize(
    "model",
    [
        Pipeline([("c", ChannelMap(CHANNELS)), ("m", DualSVC())]),
        Pipeline(
            [("c", ChannelMap(CHANNELS, kernel=Intersection())), ("m", DualRidgeClassifier())]
        ),
        Pipeline([("c", ChannelMap(CHANNELS, kernel=None)), ("m", DualRidgeClassifier())]),
        Pipeline([("c", ChannelWeights(CHANNELS)), ("m", DualSVC())]),
        Majority(),
    ],
    ids=lambda m: repr(m)[:60].replace("\n", ""),
)
@pytest.mark.parametrize("classes", [2, 3])
def test_channels(model, classes, tmp_path):
    X = np.random.default_rng(0).gamma(0.5, size=(60, 12))
    check_export(model.fit(X, np.arange(60) % classes), X, tmp_path / "model.onnx")
