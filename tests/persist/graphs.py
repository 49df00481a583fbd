"""Exported graphs, run by onnxruntime and compared with their models."""

import numpy as np
import pytest

from hilbin.persist import UnsupportedModelError, to_onnx

pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

LABELS = {
    "three": np.arange(90) % 3,
    "two": np.arange(90) % 2 == 0,
    "names": np.array(["ape", "bee", "löwe"])[np.arange(90) % 3],
    "objects": np.array(["ape", "bee"], object)[np.arange(90) % 2],
    "floats": (np.arange(90) % 3).astype(float),
}


def run(path, X, dtype=np.float64):
    """The outputs of a graph by name."""
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    values = session.run(None, {"X": np.ascontiguousarray(X, dtype)})
    return {o.name: v for o, v in zip(session.get_outputs(), values, strict=True)}


def assert_close(found, expected, tolerance=1e-9):
    assert found.shape == expected.shape
    assert found.dtype == np.float64
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * scale)


def check_export(model, X, path, tolerance=1e-9, **options):
    """Compare all outputs of the graph of a model with what the model says."""
    to_onnx(model, path, **options)
    found = run(path, X, options.get("input_dtype", np.float64))
    names = {"label": "predict", "scores": "decision_function", "probabilities": "predict_proba"}
    if hasattr(model, "predict") and ("label" in found or hasattr(model, "classes_")):
        said = {name for name, method in names.items() if hasattr(model, method)}
        if hasattr(model, "classes_") and not hasattr(model, "calibration_"):
            said -= {"probabilities"} if "scores" in said else set()
        assert set(found) == said
        for name in said - {"label"}:
            assert_close(found[name], getattr(model, names[name])(X), tolerance)
        np.testing.assert_array_equal(found["label"], model.predict(X))
    elif hasattr(model, "predict"):
        assert set(found) == {"value"}
        assert_close(found["value"], model.predict(X), tolerance)
    else:
        assert set(found) == {"features"}
        expected = model.transform(X)
        expected = expected.toarray() if hasattr(expected, "toarray") else expected
        assert_close(found["features"], np.asarray(expected, np.float64), tolerance)


def assert_refused(model, match, path):
    """A model is not exported, by a message that names the part and what to do; nor is a file."""
    with pytest.raises(UnsupportedModelError, match=match):
        to_onnx(model, path)
    assert not path.exists()
