"""Kernel ridge regression on a folder of files, in little memory: python run.py [FOLDER]."""

import sys
from pathlib import Path

import numpy as np

from hilbin.estimators import MapRidgeClassifier
from hilbin.kernels import Chi2, Exponential
from hilbin.maps import FourierMap

CLASSES, COLUMNS, COUNTS = 20, 50, 60


def draw(rows: int, rng: np.random.Generator, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Draw histograms of some counts, of classes that have three centers each."""
    which = rng.integers(0, len(centers), rows)
    return rng.multinomial(COUNTS, centers[which]).astype(np.float32) / COUNTS, which % CLASSES


def main(folder: Path, shards: int = 20, rows: int = 10_000, features: int = 500) -> float:
    """Write shards, estimate the cost, train from the folder, and return the accuracy."""
    rng = np.random.default_rng(0)
    centers = rng.dirichlet(np.full(COLUMNS, 2.0), 3 * CLASSES)
    data = folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    for shard in range(shards):
        X, y = draw(rows, rng, centers)
        np.save(data / f"X_{shard:03}.npy", X)
        np.save(data / f"y_{shard:03}.npy", y)
    X_test, y_test = draw(5_000, rng, centers)

    feature_map = FourierMap(Exponential(Chi2(), "mean"), n_components=features, random_state=0)
    model = MapRidgeClassifier(feature_map, checkpoint=folder / "checkpoint")
    print(model.estimate_cost(data))
    model.fit(data)
    accuracy = model.score(X_test, y_test)
    plain = MapRidgeClassifier().fit(data).score(X_test, y_test)
    print(f"{shards * rows:,} rows: accuracy {accuracy:.1%}, without a kernel {plain:.1%}")
    return accuracy


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results"))
