"""Train a classifier of the digits, and write it as a model file and as an ONNX graph.

python train.py FOLDER writes digits.hilbin, digits.onnx and rows.json into the folder.
"""

import json
import sys
from pathlib import Path

from sklearn.datasets import load_digits

import hilbin
from hilbin.estimators import IntersectionSVC


def main(folder: Path) -> None:
    """Write the model and some rows with their labels."""
    X, y = load_digits(return_X_y=True)
    model = IntersectionSVC(probability=True).fit(X[:1000], y[:1000])
    hilbin.save(model, folder / "digits.hilbin")
    hilbin.to_onnx(model, folder / "digits.onnx", input_dtype="float32")
    rows = {"rows": X[1000:1005].tolist(), "labels": model.predict(X[1000:1005]).tolist()}
    (folder / "rows.json").write_text(json.dumps(rows), encoding="utf-8")
    print(f"accuracy {model.score(X[1000:], y[1000:]):.1%}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
