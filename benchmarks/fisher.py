"""Fisher vectors of photographs: scene15."""

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from pictures import pictures

from hilbin.images import DenseSIFT, FisherVector


class Split(NamedTuple):
    """Rows to train on and to test on."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any


def fisher_vectors(folder: Path | None, few: int | None) -> Split | None:
    """Of all images, or of a few of every class and shorter ones; None without the set."""
    with tempfile.TemporaryDirectory() as scratch:
        images = pictures(folder, "scene15", Path(scratch))
        if images is None:
            return None
        images = images.sample(few)
        gaussians, dimensions = (128, 64) if few is None else (8, 16)
        made = FisherVector(
            DenseSIFT(6, (4, 6, 8)),
            gaussians,
            n_dimensions=dimensions,
            n_samples=60_000,
            random_state=0,
            n_jobs=2,
        ).fit(images.train)
        return Split(
            made.transform(images.train), images.y, made.transform(images.test), images.y_test
        )
