"""A network as features, on graphs built here."""

import sys
import warnings

import numpy as np
import pytest
from pictures import drawn
from sklearn.base import clone

from hilbin.images import Centrist, ImageFeatures, OnnxFeatures
from hilbin.images.words import lazebnik_weights
from hilbin.persist import load, save

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

FLOAT = onnx.TensorProto.FLOAT
SIZE = (16, 24)
SHAPE = ("n", 3, *SIZE)


def write(path, nodes, outputs, *, arrays=None, shape=SHAPE, kind=FLOAT, metadata=None):
    """Write a graph of ``image`` of this shape; the names of ``arrays`` are its constants."""
    helper = onnx.helper
    graph = helper.make_graph(
        [helper.make_node(*words, **more) for *words, more in nodes],
        "test",
        [helper.make_tensor_value_info("image", kind, shape)],
        [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs],
        [onnx.numpy_helper.from_array(np.asarray(a), n) for n, a in (arrays or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    helper.set_model_props(model, metadata or {})
    onnx.save(model, path)
    return path


def network(path, *, outputs=("map",), channels_last=False, shape=SHAPE, steps=(), **more):
    """Two channels: red minus blue, and a constant minus green, over blocks of 4 by 4 pixels.

    ``map`` is what the convolution gives, ``relu`` its positive part, ``row`` the mean.
    """
    weights = np.zeros((2, 3, 4, 4), np.float32)
    weights[0, 0], weights[0, 2], weights[1, 1] = 1 / 16, -1 / 16, -1 / 16
    arrays = {"w": weights, "b": np.array([0, 0.5], np.float32)}
    nodes = [(kind, [a, b], [out], {}) for kind, a, b, out, _ in steps]
    arrays |= {b: np.float32(value) for _, _, b, _, value in steps}
    x = nodes[-1][2][0] if nodes else "image"
    if channels_last:
        nodes.append(("Transpose", [x], ["first"], {"perm": [0, 3, 1, 2]}))
        x, shape = "first", (shape[0], *shape[2:], shape[1])
    conv = "conv" if channels_last else "map"
    nodes.append(("Conv", [x, "w", "b"], [conv], {"strides": [4, 4]}))
    if channels_last:
        nodes.append(("Transpose", ["conv"], ["map"], {"perm": [0, 2, 3, 1]}))
    nodes.append(("Relu", ["map"], ["relu"], {}))
    nodes.append(("GlobalAveragePool", [conv], ["mean"], {}))
    nodes.append(("Flatten", ["mean"], ["row"], {}))
    return write(path, nodes, outputs, arrays=arrays, shape=shape, **more)


def expected_map(picture):
    blocks = (picture / np.float32(255)).reshape(4, 4, 6, 4, 3).mean(axis=(1, 3))
    return np.stack([blocks[:, :, 0] - blocks[:, :, 2], 0.5 - blocks[:, :, 1]])


def parts_of(values):
    return np.concatenate([np.maximum(values, 0), np.maximum(-values, 0)])


@pytest.fixture
def picture():
    return drawn(3, SIZE, color=True)


def features(path, **more):
    return OnnxFeatures(path, **({"normalization": "0..1"} | more))


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("pool", ["avg", "max"])
@pytest.mark.parametrize("output", ["map", "relu"])
def test_rows_and_places(tmp_path, picture, channels_last, pool, output):
    """A ReLU is as it is; an output with negative values is split into two parts."""
    path = network(tmp_path / "n.onnx", outputs=["map", "relu"], channels_last=channels_last)
    model = features(path, outputs=output, levels=1, pool=pool).fit([picture])
    expected = expected_map(picture)
    expected = parts_of(expected) if output == "map" else np.maximum(expected, 0)
    row = getattr(expected, "mean" if pool == "avg" else "max")(axis=(1, 2))
    np.testing.assert_allclose(model.transform([picture])[0], row, atol=1e-5)
    assert model.outputs_[0].signed == (output == "map")
    given = np.array([2.0, -1.0, 3.0, 0.5])[: len(row)]
    heat = model.to_pixels(picture, given)
    assert heat.shape == SIZE
    assert heat.sum() == pytest.approx(given.sum(), abs=1e-9)
    if pool == "avg":
        share = sum(g * e / e.sum() for g, e in zip(given, expected, strict=True))
    else:
        share = sum(g * (e == e.max()) for g, e in zip(given, expected, strict=True))
    np.testing.assert_allclose(heat[::4, ::4] * 16, share, atol=1e-5)


def test_a_pyramid(tmp_path, picture):
    model = features(network(tmp_path / "n.onnx", outputs=["relu"]), levels=2).fit([picture])
    expected = np.maximum(expected_map(picture), 0)
    whole, quarters = lazebnik_weights(2)
    cells = [expected[:, i : i + 2, j : j + 3].mean(axis=(1, 2)) for i in (0, 2) for j in (0, 3)]
    row = np.concatenate([whole * expected.mean(axis=(1, 2)), *(quarters / 4 * c for c in cells)])
    np.testing.assert_allclose(model.transform([picture])[0], row, atol=1e-6)
    names = model.get_feature_names_out()
    assert len(names) == len(row) == 10
    assert names[1] == "relu 1"
    assert names[5] == "relu 1, row 1 of 2, column 2 of 2"
    heat = model.to_pixels(picture, np.arange(10.0) - 3)
    assert heat.sum() == pytest.approx(15)
    corner = model.to_pixels(picture, np.eye(10)[9])  # the last cell is the lower right quarter
    assert corner[8:, 12:].sum() == pytest.approx(1)


def test_cells_that_cut_places_are_symmetric(tmp_path, picture):
    """Three cells over four rows: a place between two cells is shared by them."""
    path = network(tmp_path / "n.onnx", outputs=["relu"])
    model = features(path, levels=[(3, 1)]).fit([picture])
    row, flipped = model.transform([picture, picture[::-1]]).reshape(2, 3, 2)
    expected = np.maximum(expected_map(picture), 0).mean(axis=2)
    first = (expected[:, 0] + expected[:, 1] / 3) / (4 / 3) / 3
    np.testing.assert_allclose(row[0], first, atol=1e-6)
    np.testing.assert_allclose(flipped, row[::-1], atol=1e-6)
    np.testing.assert_allclose(row.sum(axis=0), expected.mean(axis=1), atol=1e-6)


def test_a_constant_zero_feature_is_spread_over_its_cell(tmp_path):
    black = np.zeros((*SIZE, 3), np.uint8)
    for pool in ("avg", "max"):
        path = network(tmp_path / "n.onnx", outputs=["relu"])
        model = features(path, levels=2, pool=pool).fit([black])
        heat = model.to_pixels(black, 4 * np.eye(10)[2])  # red minus blue, upper left
        np.testing.assert_allclose(heat[:8, :12], 4 / 96)
        assert heat.sum() == pytest.approx(4)


def test_several_outputs_are_groups_of_columns(tmp_path, picture):
    path = network(tmp_path / "n.onnx", outputs=["row", "map", "relu"])
    model = features(path, outputs=("relu", "row"), levels=2).fit([picture])
    assert model.column_groups_ == {"relu": slice(0, 10), "row": slice(10, 14)}
    rows = model.transform([picture])
    alone = features(path, outputs="row").fit_transform([picture])
    np.testing.assert_array_equal(rows[:, model.column_groups_["row"]], alone)
    assert model.to_pixels(picture, np.arange(14.0)).sum() == pytest.approx(91)
    parts = [("words", Centrist()), ("net", features(path, outputs=("relu", "row")))]
    both = ImageFeatures(parts, {"net": 2.0}).fit([picture])
    assert both.column_groups_ == {
        "words": slice(0, 256),
        "net__relu": slice(256, 266),
        "net__row": slice(266, 270),
    }
    np.testing.assert_array_equal(both.transform([picture])[:, 256:], 2 * rows)
    one = ImageFeatures([("net", features(path, outputs="row"))]).fit([picture])
    assert one.column_groups_ == {"net": slice(0, 4)}


@pytest.mark.parametrize(
    ("outputs", "taken"),
    [
        (["row", "map", "mean", "relu"], ["map", "relu"]),
        (["row"], ["row"]),
        (["mean", "row"], ["mean"]),
    ],
)
def test_maps_are_taken_by_default(tmp_path, picture, outputs, taken):
    model = features(network(tmp_path / "n.onnx", outputs=outputs)).fit([picture])
    assert [output.name for output in model.outputs_] == taken


def test_a_network_that_pools_itself(tmp_path, picture):
    model = features(network(tmp_path / "n.onnx", outputs=["row"]))
    rows = model.fit_transform([picture])
    mean = expected_map(picture).mean(axis=(1, 2))
    np.testing.assert_allclose(rows[0], parts_of(mean), atol=1e-6)
    heat = model.to_pixels(picture, np.array([0.5, 1.5, 0, 0]))
    np.testing.assert_allclose(heat, 2 / heat.size)


NORMALIZATIONS = {
    "0..1": (0, 1),
    "-1..1": (0.5, 0.5),
    "0..255": (0, 1 / 255),
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
}


@pytest.mark.parametrize("normalization", [*NORMALIZATIONS, ((0.5, 0.4, 0.3), 2.0)])
def test_normalization(tmp_path, picture, normalization):
    """The network is the mean of what it gets."""
    path = write(tmp_path / "n.onnx", [("GlobalAveragePool", ["image"], ["z"], {})], ["z"])
    model = features(path, normalization=normalization).fit([picture])
    mean, std = np.array(NORMALIZATIONS.get(normalization, normalization), dtype=object)
    expected = (picture.mean(axis=(0, 1)) / 255 - np.asarray(mean, float)) / np.asarray(std, float)
    row = model.transform([picture])[0]
    found = row[:3] - row[3:] if model.outputs_[0].signed else row
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bad", ["caffe", (0.5, 0.0), (0.5,), ((1, 2), 1), (np.nan, 1), 3.0])
def test_bad_normalization(tmp_path, bad):
    with pytest.raises(ValueError, match="normalization must be"):
        features(network(tmp_path / "n.onnx"), normalization=bad).fit([])


CENTERED = ("Sub", "image", "c", "centered", [[[0.485]], [[0.456]], [[0.406]]])


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([CENTERED], "0..1"),
        ([("Mul", "image", "a", "y", 2), ("Add", "y", "b2", "z", -1)], "0..1"),
        ([("Div", "image", "a", "y", 127.5), ("Sub", "y", "b2", "z", 1)], "0..255"),
        ([("Div", "image", "a", "y", 255)], "0..255"),
        ([("Mul", "image", "a", "y", 3)], None),
        ([], None),
    ],
)
def test_a_graph_that_centers_its_input_tells_the_range(tmp_path, picture, steps, expected):
    path = network(tmp_path / "n.onnx", steps=steps)
    if expected is None:
        with pytest.warns(UserWarning, match="does not say which values its input takes"):
            found = OnnxFeatures(path).fit([picture])
        expected = "0..1"
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = OnnxFeatures(path).fit([picture])
    told = features(path, normalization=expected).fit([picture])
    np.testing.assert_array_equal(found.transform([picture]), told.transform([picture]))


def test_metadata_tells_range_and_order_of_channels(tmp_path, picture):
    metadata = {"Image.NominalPixelRange": "Normalized_1_1", "Image.BitmapPixelFormat": "Bgr8"}
    told = OnnxFeatures(network(tmp_path / "told.onnx", metadata=metadata)).fit([picture])
    plain = features(network(tmp_path / "n.onnx"), normalization="-1..1").fit([picture])
    np.testing.assert_array_equal(told.transform([picture]), plain.transform([picture[:, :, ::-1]]))


def test_bytes_as_input(tmp_path, picture):
    nodes = [
        ("Cast", ["image"], ["x"], {"to": FLOAT}),
        ("GlobalAveragePool", ["x"], ["z"], {}),
    ]
    path = write(tmp_path / "n.onnx", nodes, ["z"], kind=onnx.TensorProto.UINT8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = OnnxFeatures(path).fit([picture])
    np.testing.assert_allclose(model.transform([picture])[0], picture.mean(axis=(0, 1)), rtol=1e-4)


@pytest.mark.parametrize("n", [1, 3, "n"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_batches(tmp_path, n, n_jobs):
    """Rows are the same in any batches, and for a network that takes three images at a time."""
    pictures = [drawn(seed, SIZE, color=True) for seed in range(11)]
    expected = features(network(tmp_path / "one.onnx")).fit_transform(pictures)
    path = network(tmp_path / "n.onnx", shape=(n, *SHAPE[1:]))
    model = features(path, batch_size=4, n_jobs=n_jobs).fit(pictures)
    np.testing.assert_allclose(model.transform(pictures), expected, rtol=1e-6)
    np.testing.assert_allclose(model.transform_image(pictures[5]), expected[5], rtol=1e-6)
    rows, unreadable = model.transform_with_errors([*pictures[:5], "none.png", *pictures[5:]])
    assert list(unreadable) == [5]
    np.testing.assert_allclose(np.delete(rows, 5, axis=0), expected, rtol=1e-6)
    parts = [("a", Centrist()), ("b", model)]
    np.testing.assert_allclose(
        ImageFeatures(parts).fit(pictures).transform(pictures)[:, 256:], expected, rtol=1e-6
    )


def test_sizes(tmp_path, picture):
    fixed = network(tmp_path / "fixed.onnx")
    assert features(fixed).fit([]).size_ == SIZE
    free = network(tmp_path / "free.onnx", shape=("n", 3, "h", "w"))
    assert features(free).fit([]).size_ == (224, 224)
    assert features(free, size=(32, 48)).fit([picture]).size_ == (32, 48)
    with pytest.raises(ValueError, match="16 x 24 pixels, not size=\\(32, 48\\)"):
        features(fixed, size=(32, 48)).fit([])
    with pytest.raises(ValueError, match="size must be"):
        features(free, size=(0, 5)).fit([])


def test_the_file_is_needed_only_to_fit(tmp_path, picture):
    path = network(tmp_path / "n.onnx")
    model = features(path).fit([picture])
    before = model.transform([picture])
    path.unlink()
    np.testing.assert_array_equal(model.transform([picture]), before)
    with pytest.raises(FileNotFoundError):
        model.fit([picture])


def test_saved_and_loaded(tmp_path, picture):
    path = network(tmp_path / "n.onnx", outputs=["map", "relu"])
    model = features(path, batch_size=2).fit([picture])
    save(model, tmp_path / "m.hilbin")
    path.unlink()
    loaded = load(tmp_path / "m.hilbin")
    assert loaded.column_groups_ == model.column_groups_
    np.testing.assert_array_equal(loaded.transform([picture]), model.transform([picture]))
    given = np.arange(30.0)
    np.testing.assert_array_equal(loaded.to_pixels(picture, given), model.to_pixels(picture, given))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("network_", np.zeros(3)),
        ("outputs_", ["map"]),
        ("normalization_", np.ones(3)),
        ("size_", (16, -24)),
    ],
)
def test_a_state_that_does_not_fit_is_refused(tmp_path, picture, name, value):
    model = features(network(tmp_path / "n.onnx")).fit([picture])
    setattr(model, name, value)
    save(model, tmp_path / "m.hilbin")
    with pytest.raises(ValueError, match=name):
        load(tmp_path / "m.hilbin")


@pytest.mark.parametrize(
    ("name", "value"),
    [("name", 3), ("n_channels", 0), ("cuts", [(1, 1)]), ("cuts", ((0, 1),)), ("weights", ())],
)
def test_an_output_that_does_not_fit_is_refused(tmp_path, picture, name, value):
    model = features(network(tmp_path / "n.onnx"), levels=1).fit([picture])
    vars(model.outputs_[0])[name] = value
    save(model, tmp_path / "m.hilbin")
    with pytest.raises(ValueError, match="output"):
        load(tmp_path / "m.hilbin")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"pool": "sum"}, "pool"),
        ({"levels": 0}, "levels"),
        ({"batch_size": 0}, "batch_size"),
        ({"outputs": "last"}, "no output 'last'; it has 'map', 'row'"),
        ({"outputs": []}, "at least one"),
        ({"outputs": ["map", "map"]}, "different names"),
    ],
)
def test_bad_parameters(tmp_path, picture, wrong, message):
    path = network(tmp_path / "n.onnx", outputs=["map", "row"])
    with pytest.raises(ValueError, match=message):
        features(path, **wrong).fit([picture])


@pytest.mark.parametrize("shape", [("n", 4, 16, 24), ("n", 3, 16), ("n", 16, 24, 1), (16, 24)])
def test_an_input_that_is_no_image(tmp_path, shape):
    path = write(tmp_path / "n.onnx", [("Relu", ["image"], ["z"], {})], ["z"], shape=shape)
    with pytest.raises(ValueError, match=r"n\.onnx has the shape .*height, width"):
        features(path).fit([])


def test_an_input_that_is_text(tmp_path):
    nodes = [("Identity", ["image"], ["z"], {})]
    path = write(tmp_path / "n.onnx", nodes, ["z"], kind=onnx.TensorProto.INT64)
    with pytest.raises(ValueError, match=r"tensor\(int64\)"):
        features(path).fit([])


def test_two_inputs(tmp_path):
    helper = onnx.helper
    inputs = [helper.make_tensor_value_info(name, FLOAT, SHAPE) for name in ("left", "right")]
    outputs = [helper.make_tensor_value_info("z", FLOAT, None)]
    node = helper.make_node("Add", ["left", "right"], ["z"])
    graph = helper.make_graph([node], "two", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, tmp_path / "n.onnx")
    with pytest.raises(ValueError, match="2 inputs \\('left', 'right'\\)"):
        features(tmp_path / "n.onnx").fit([])


def test_outputs_that_are_no_features(tmp_path, picture):
    shape = {"s": np.array([-1, 3, 24], np.int64)}
    nodes = [("Reshape", ["image", "s"], ["z"], {})]
    path = write(tmp_path / "n.onnx", nodes, ["z"], arrays=shape)
    with pytest.raises(ValueError, match=r"output 'z' of .*has the shape \(\d+, 3, 24\)"):
        features(path).fit([picture])


def test_a_network_that_does_not_take_the_size(tmp_path, picture):
    shape = {"s": np.array([1, 3, 7, 7], np.int64)}
    nodes = [("Reshape", ["image", "s"], ["z"], {})]
    path = write(tmp_path / "n.onnx", nodes, ["z"], arrays=shape, shape=("n", 3, "h", "w"))
    with pytest.raises(ValueError, match="cannot be run on an input of the shape"):
        features(path).fit([picture])


@pytest.mark.parametrize("damage", ["empty", "cut off", "text"])
def test_a_file_that_is_no_network(tmp_path, damage):
    path = network(tmp_path / "n.onnx")
    content = path.read_bytes()
    path.write_bytes({"empty": b"", "cut off": content[: len(content) // 2], "text": b"hi"}[damage])
    with pytest.raises(ValueError, match=r"n\.onnx is not a network .*cut off"):
        features(path).fit([])


def test_nan_names_image_and_output(tmp_path, picture):
    """The root of one half plus the mean color: NaN if that is below zero."""
    nodes = [
        ("GlobalAveragePool", ["image"], ["mean"], {}),
        ("Add", ["mean", "half"], ["x"], {}),
        ("Sqrt", ["x"], ["root"], {}),
    ]
    path = write(tmp_path / "n.onnx", nodes, ["root"], arrays={"half": np.float32(0.5)})
    model = features(path, normalization=(0.0, 1.0)).fit([picture])
    model.normalization_[0] = 0.9  # now dark images are too dark
    dark = tmp_path / "dark.png"
    from PIL import Image

    Image.fromarray(np.zeros((*SIZE, 3), np.uint8)).save(dark)
    bright = np.full((*SIZE, 3), 255, np.uint8)
    with pytest.raises(ValueError, match=r"dark\.png: output 'root' of .*n\.onnx has NaN"):
        model.transform([bright, dark])
    with pytest.raises(ValueError, match=r"images\[2\]: output 'root'"):
        model.transform([bright, bright, np.zeros((*SIZE, 3), np.uint8)])
    with pytest.raises(ValueError, match=r"^output 'root'"):
        model.transform_image(np.zeros((*SIZE, 3), np.uint8))
    both = ImageFeatures([("words", Centrist()), ("net", clone(model))]).fit([picture])
    both.parts_[1][1].normalization_[0] = 0.9
    with pytest.raises(ValueError, match=r"dark\.png: output 'root'"):
        both.transform([bright, dark])
    with pytest.raises(ValueError, match=r"black image: output 'root'"):
        features(path, normalization=(0.9, 1.0)).fit([picture])


def test_onnxruntime_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match=r"hilbin\[onnx\]"):
        features(network(tmp_path / "n.onnx")).fit([])


def test_without_onnx_the_range_is_unknown(tmp_path, picture, monkeypatch):
    path = network(tmp_path / "n.onnx", steps=[CENTERED])
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.warns(UserWarning, match="does not say"):
        OnnxFeatures(path).fit([picture])


def test_from_text():
    text = "a,b/net.onnx,outputs=map,outputs=mid,levels=1,size=192x256,normalization=imagenet"
    model = OnnxFeatures.from_text(text)
    assert model.path == "a,b/net.onnx"
    assert (model.outputs, model.levels, model.size) == (["map", "mid"], 1, (192, 256))
    assert model.normalization == "imagenet"
    assert OnnxFeatures.from_text("net.onnx,size=96").size == (96, 96)


@pytest.mark.parametrize("option", ["colour=red", "levels=two", "levels=2x2", "size=1x2x3"])
def test_bad_texts(option):
    with pytest.raises(ValueError, match=option.split("=")[0]):
        OnnxFeatures.from_text(f"net.onnx,{option}")
