"""Networks as features of the command line: what is wrong with one is a line and exit code 2."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

FLOAT = onnx.TensorProto.FLOAT
POOL = {"kernel_shape": [8, 8], "strides": [8, 8]}


def write(path, operation="Relu", shape=("n", 3, 32, 32)):
    """Write a graph: an operation on the image, and averages over squares of it."""
    helper = onnx.helper
    first = [helper.make_node("Sub", ["image", "half"], ["x"])]
    nodes = [helper.make_node(operation, ["x"], ["y"])]
    last = [helper.make_node("AveragePool", ["y"], ["map"], **POOL)] if len(shape) == 4 else []
    graph = helper.make_graph(
        [*first, *nodes, *last],
        "test",
        [helper.make_tensor_value_info("image", FLOAT, shape)],
        [helper.make_tensor_value_info("map" if last else "y", FLOAT, None)],
        [onnx.numpy_helper.from_array(np.float32(0.5), "half")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, path)
    return path


def complaint(result):
    """Return the one line of an error."""
    lines = [line for line in result.stderr.splitlines() if "warning" not in line]
    assert len(lines) == 1
    assert "Traceback" not in result.stderr
    return lines[0]


def test_options_after_the_file(photos, tmp_path, cli_json):
    features = f"onnx:{write(tmp_path / 'net.onnx')},outputs=map,levels=1,normalization=0..1"
    words = ("train", photos, "-o", tmp_path / "m.hilbin", "--features", features)
    assert features in cli_json(*words)["features"]
    (tmp_path / "net.onnx").unlink()
    assert cli_json("predict", tmp_path / "m.hilbin", photos)["predictions"]


def test_a_network_is_a_channel_of_a_collection(photos, tmp_path, cli, cli_json):
    net, index = write(tmp_path / "net.onnx"), tmp_path / "i.hilbin"
    options = ("--features", "centrist", "--network", net, "--jobs", "1", "--quiet")
    query = photos / "down" / "pic 1.png"
    found = cli_json("similar", photos, query, "-o", index, "--top", "3", *options)
    assert found["queries"][0]["neighbors"][0]["name"] == "down/pic 1.png"
    assert "onnx:" in cli("info", index).stdout
    net.unlink()  # the file has it
    again = cli_json("similar", index, query, "--top", "3", "--jobs", "1")
    assert again["queries"] == found["queries"]
    page = tmp_path / "c.html"
    cli("cluster", index, "--clusters", "2", "--report", page)
    assert "centrist word" in page.read_text()


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (",outputs=last", "no output 'last'; it has 'map'"),
        (",size=64", "takes images of 32 x 32 pixels"),
        (",normalization=caffe", "normalization must be one of"),
        (",color=red", "'color' is not an option of a network"),
    ],
)
def test_wrong_options(photos, tmp_path, cli, option, message):
    features = f"onnx:{write(tmp_path / 'net.onnx')}{option}"
    words = ("train", photos, "-o", tmp_path / "m.hilbin", "--features", features)
    assert message in complaint(cli(*words, code=2))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"shape": ("n", 3)}, "has the shape (n, 3)"),
        ({"shape": ("n", 4, 32, 32)}, "has the shape (n, 4, 32, 32)"),
        ({"operation": "Log"}, "output 'map' of"),
    ],
)
def test_networks_that_do_not_fit(photos, tmp_path, cli, wrong, message):
    features = f"onnx:{write(tmp_path / 'net.onnx', **wrong)}"
    words = ("train", photos, "-o", tmp_path / "m.hilbin", "--features", features)
    line = complaint(cli(*words, code=2))
    assert message in line
    assert "net.onnx" in line


def test_weights_in_another_file(photos, tmp_path, cli):
    """The message says how to put them into the network's file."""
    path = write(tmp_path / "net.onnx")
    model = onnx.load(path)
    apart = {"save_as_external_data": True, "location": "weights", "size_threshold": 0}
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.float32([0.5]), "half"))
    onnx.save(model, path, **apart)
    words = ("train", photos, "-o", tmp_path / "m.hilbin", "--features", f"onnx:{path},levels=1")
    assert f"onnx.save(onnx.load('{path}'), '{path}')" in complaint(cli(*words, code=2))
    onnx.save(onnx.load(path), path)
    cli(*words)


def test_a_network_that_is_cut_off(photos, tmp_path, cli):
    path = write(tmp_path / "net.onnx")
    path.write_bytes(path.read_bytes()[:100])
    words = ("train", photos, "-o", tmp_path / "m.hilbin", "--features", f"onnx:{path}")
    assert "is not a network" in complaint(cli(*words, code=2))
