"""Scores of an ONNX graph over the scores of the model it was made of."""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import onnxruntime
from sklearn.datasets import load_digits

import hilbin
from hilbin.estimators import IntersectionSVC

X, y = load_digits(return_X_y=True)
model = IntersectionSVC().fit(X[:1000], y[:1000])
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "digits.onnx"
    hilbin.to_onnx(model, path)
    scores = onnxruntime.InferenceSession(path).run(["scores"], {"X": X[1000:]})[0]
figure, axes = plt.subplots(figsize=(4.2, 3.2))
axes.plot(model.decision_function(X[1000:]).ravel(), scores.ravel(), ".", ms=2)
axes.set(xlabel="scores of the model", ylabel="scores of the ONNX graph")
axes.set_title(f"{scores.size:,} scores of digits", fontsize=9)
