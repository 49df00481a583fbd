"""Photographs of waves in three folders, and features fitted to them."""

import numpy as np
import pytest
from PIL import Image

from hilbin.images import BagOfWords, ColorHistogram, DenseSIFT, ImageFeatures, SpatialPyramid

CLASSES = {"across": (0.0, 0.9), "down": (0.9, 0.0), "dotted": (0.7, 0.7)}


def draw(label, seed, shape=(40, 44)):
    """Waves across, down, or both, and some noise."""
    rng = np.random.default_rng([seed, len(label)])
    y, x = np.mgrid[: shape[0], : shape[1]]
    a, b = CLASSES[label]
    waves = np.sin(a * x + rng.uniform(0, 6)) + np.sin(b * y + rng.uniform(0, 6))
    waves = np.clip((waves + 0.3 * rng.normal(size=shape)) / 5 + 0.5, 0, 1)
    gray = (255 * waves).astype(np.uint8)
    return np.stack([gray, gray // 2, 255 - gray], axis=2)


@pytest.fixture(scope="session")
def photos(tmp_path_factory):
    """A folder with three folders of six small images; not to be changed."""
    root = tmp_path_factory.mktemp("inspection") / "photos"
    for label in CLASSES:
        (root / label).mkdir(parents=True)
        for i in range(6):
            Image.fromarray(draw(label, i)).save(root / label / f"pic {i}.png")
    return root


@pytest.fixture(scope="session")
def features(photos):
    """Words of SIFT in a pyramid, and colors."""
    sift = BagOfWords(DenseSIFT(4, (2, 4)), 12, random_state=0)
    parts = [("sift", SpatialPyramid(sift, 2)), ("color", ColorHistogram(bins=3))]
    return ImageFeatures(parts, {"color": 0.5}).fit(sorted(photos.rglob("*.png")))
