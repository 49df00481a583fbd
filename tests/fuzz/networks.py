"""ONNX files with damaged bytes: each gives features, or is refused by a message with its name."""

import os

import numpy as np
import onnx
from fuzzing import FaultError
from images import damaged
from onnx import TensorProto, helper, numpy_helper
from pictures import drawn

from hilbin.images import OnnxFeatures


def prepare(folder):
    """Write two small networks."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 16, 16])
    pool = helper.make_node("AveragePool", ["x"], ["p"], kernel_shape=[8, 8], strides=[8, 8])
    flat = helper.make_node("Flatten", ["p"], ["f"])
    weights = np.random.default_rng(0).normal(size=(12, 5)).astype(np.float32)
    product = helper.make_node("MatMul", ["f", "W"], ["y"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 5])
    p = helper.make_tensor_value_info("p", TensorProto.FLOAT, ["n", 3, 2, 2])
    given = [numpy_helper.from_array(weights, "W")]
    graphs = {
        "pool": helper.make_graph([pool], "pool", [x], [p]),
        "product": helper.make_graph([pool, flat, product], "product", [x], [y], given),
    }
    for name, graph in graphs.items():
        opset = [helper.make_opsetid("", 13)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=8)
        onnx.save(model, folder / f"{name}.onnx")


def opened(folder):
    """The bytes of the networks, and pictures."""
    files = [p.read_bytes() for p in sorted(folder.glob("p*.onnx"))]
    return files, [drawn(0, (16, 16), color=True)], folder / f"damaged-{os.getpid()}.onnx"


def attempt(state, seed):
    """Damage a network, and compute features by it."""
    files, pictures, path = state
    rng = np.random.default_rng(seed)
    path.write_bytes(damaged(files[int(rng.integers(len(files)))], rng))
    try:
        rows = OnnxFeatures(path, normalization="0..1").fit(pictures).transform(pictures)
    except (ValueError, ImportError) as error:
        if path.name not in str(error):
            raise FaultError(f"a refusal does not name the file: {error!r}") from error
        return "refused"
    if rows.ndim != 2 or len(rows) != 1:
        raise FaultError(f"a network gave features of shape {rows.shape}")
    return "answered"
