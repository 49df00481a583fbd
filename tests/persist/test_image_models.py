"""Every public image transformer comes back from its file, and pipelines from pixels to labels."""

import numpy as np
import pytest
import scipy.sparse as sp
from saved import NAMES, PICTURES, ROWS, made
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import hilbin.images as hi
from hilbin.estimators import IntersectionSVC
from hilbin.persist import load, save

pytest.importorskip("PIL")


@pytest.mark.parametrize("name", NAMES)
def test_unfitted(name, tmp_path):
    model = made(name)
    save(model, tmp_path / "model.hilbin")
    loaded = load(tmp_path / "model.hilbin")
    assert type(loaded) is type(model)
    assert repr(loaded) == repr(model)


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name not in ("DenseSIFT", "OnnxFeatures")]
)
def test_fitted(name, tmp_path):
    model = made(name)
    given = np.random.default_rng(0).uniform(size=(30, 8)) if name in ROWS else PICTURES
    model.fit(given)
    say = "transform" if hasattr(model, "transform") else "predict"
    expected = getattr(model, say)(given)
    save(model, tmp_path / "model.hilbin")
    first = (tmp_path / "model.hilbin").read_bytes()
    loaded = load(tmp_path / "model.hilbin")
    found = getattr(loaded, say)(given)
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype
    dense = sp.csr_array.toarray if sp.issparse(found) else np.asarray
    np.testing.assert_array_equal(dense(found), dense(expected))
    save(loaded, tmp_path / "model.hilbin")
    assert (tmp_path / "model.hilbin").read_bytes() == first
    clone(loaded).fit(given)


def test_from_pixels_to_labels(tmp_path):
    labels = ["ape", "bee"] * 3
    words = hi.SpatialPyramid(hi.BagOfWords(n_words=5, random_state=0), levels=2)
    model = make_pipeline(hi.ImageFeatures([("a", words), ("b", hi.Centrist())]), IntersectionSVC())
    model.fit(PICTURES, labels)
    save(model, tmp_path / "model.hilbin", metadata={"classes": ["ape", "bee"]})
    loaded = load(tmp_path / "model.hilbin")
    np.testing.assert_array_equal(
        loaded.decision_function(PICTURES), model.decision_function(PICTURES)
    )
    np.testing.assert_array_equal(loaded.predict(PICTURES), model.predict(PICTURES))


def test_a_network_is_in_the_file(tmp_path):
    """The model needs the network's file no more."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[4, 4], strides=[4, 4])],
        "pool",
        [helper.make_tensor_value_info("x", kind, ["n", 3, 16, 16])],
        [helper.make_tensor_value_info("y", kind, ["n", 3, 4, 4])],
    )
    network = tmp_path / "network.onnx"
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), network
    )
    model = hi.OnnxFeatures(network, normalization="0..1").fit(PICTURES)
    expected = model.transform(PICTURES)
    save(model, tmp_path / "model.hilbin")
    network.unlink()
    loaded = load(tmp_path / "model.hilbin")
    assert loaded.path == network
    np.testing.assert_array_equal(loaded.transform(PICTURES), expected)
