"""A network as features, on graphs built here."""

import numpy as np
import pytest
from pictures import drawn

from hilbin.images import OnnxFeatures

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


def network(path, *, pooled=False, channels_last=False):
    """Two channels: red minus blue, and a constant minus green, over blocks of 4 by 4 pixels."""
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    weights = np.zeros((2, 3, 4, 4), np.float32)
    weights[0, 0], weights[0, 2], weights[1, 1] = 1 / 16, -1 / 16, -1 / 16
    arrays = [
        onnx.numpy_helper.from_array(weights, "w"),
        onnx.numpy_helper.from_array(np.array([0, 0.5], np.float32), "b"),
    ]
    shape = ["n", 16, 24, 3] if channels_last else ["n", 3, 16, 24]
    nodes = []
    if channels_last:
        nodes.append(helper.make_node("Transpose", ["image"], ["x"], perm=[0, 3, 1, 2]))
    given = "x" if channels_last else "image"
    nodes.append(helper.make_node("Conv", [given, "w", "b"], ["map"], strides=[4, 4]))
    out = "map"
    if channels_last:
        nodes.append(helper.make_node("Transpose", ["map"], ["last"], perm=[0, 2, 3, 1]))
        out = "last"
    if pooled:
        nodes.append(helper.make_node("GlobalAveragePool", ["map"], ["mean"]))
        nodes.append(helper.make_node("Flatten", ["mean"], ["row"]))
        out = "row"
    graph = helper.make_graph(
        nodes,
        "two",
        [helper.make_tensor_value_info("image", kind, shape)],
        [helper.make_tensor_value_info(out, kind, None)],
        arrays,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, path)
    return path


def expected_map(picture):
    blocks = (picture / np.float32(255)).reshape(4, 4, 6, 4, 3).mean(axis=(1, 3))
    return np.maximum(np.stack([blocks[:, :, 0] - blocks[:, :, 2], 0.5 - blocks[:, :, 1]]), 0)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("pool", ["avg", "max"])
def test_rows_and_places(tmp_path, channels_last, pool):
    picture = drawn(3, (16, 24), color=True)
    features = OnnxFeatures(
        network(tmp_path / "n.onnx", channels_last=channels_last), size=(16, 24), pool=pool
    ).fit([picture])
    expected = expected_map(picture)
    row = getattr(expected, "mean" if pool == "avg" else "max")(axis=(1, 2))
    np.testing.assert_allclose(features.transform([picture])[0], row, atol=1e-5)
    heat = features.to_pixels(picture, np.array([2.0, -1.0]))
    assert heat.shape == (16, 24)
    assert heat.sum() == pytest.approx(1, abs=1e-9)
    if pool == "avg":
        share = 2 * expected[0] / expected[0].sum() - expected[1] / expected[1].sum()
        np.testing.assert_allclose(heat[::4, ::4] * 16, share, atol=1e-5)


def test_a_network_that_pools_itself(tmp_path):
    picture = drawn(3, (16, 24), color=True)
    features = OnnxFeatures(network(tmp_path / "n.onnx", pooled=True), size=(16, 24))
    rows = features.fit_transform([picture])
    assert rows.shape == (1, 2)
    assert features.to_pixels(picture, np.array([0.5, 1.5])).sum() == pytest.approx(2)


def test_the_file_is_needed_only_to_fit(tmp_path):
    path = network(tmp_path / "n.onnx")
    picture = drawn(3, (16, 24), color=True)
    features = OnnxFeatures(path, size=(16, 24)).fit([picture])
    before = features.transform([picture])
    path.unlink()
    np.testing.assert_array_equal(features.transform([picture]), before)
    with pytest.raises(FileNotFoundError):
        features.fit([picture])


def test_bad_pool(tmp_path):
    with pytest.raises(ValueError, match="pool"):
        OnnxFeatures(network(tmp_path / "n.onnx"), pool="sum").fit([])
