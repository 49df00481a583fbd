"""Colors by compiled loops, and images and descriptors that several parts share."""

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pictures import drawn
from PIL import Image

from hilbin import ImageClassifier
from hilbin.images import BagOfWords, ColorHistogram, DenseSIFT, FisherVector, ImageFeatures
from hilbin.images import kept as kept_module
from hilbin.images._once import once, sharing
from hilbin.images.bag import distant_points
from hilbin.images.kept import KeptImage, file_of, keep_pixels
from hilbin.images.pixel_words import _lab

SIFT = DenseSIFT(4, (3, 4))
PARTS = [
    ("words", BagOfWords(SIFT, 8, random_state=0)),
    ("fisher", FisherVector(SIFT, 2, n_dimensions=4, random_state=0)),
    ("color", ColorHistogram()),
]


@pytest.fixture
def files(tmp_path):
    for i in range(5):
        Image.fromarray(drawn(i, (60, 70), color=True)).save(tmp_path / f"{i}.png")
    return sorted(tmp_path.iterdir())


@given(st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_lab_is_the_nearest_byte(seed, columns):
    rgb = np.random.default_rng(seed).integers(0, 256, (3, columns, 3), np.uint8)
    assert np.abs(_lab(rgb) - oracles.cie_lab(rgb)).max() <= 0.5 + 2e-3


def test_lab_of_grays_has_no_color():
    gray = np.repeat(np.arange(256, dtype=np.uint8)[None, :, None], 3, axis=2)
    assert (_lab(gray)[..., 1:] == 128).all()
    assert (np.diff(_lab(gray)[0, :, 0].astype(int)) >= 0).all()


@pytest.mark.parametrize("bins", [(8, 8, 8), (3, 256, 5), (1, 1, 1)])
def test_cells_are_counted_axis_by_axis(bins):
    image = drawn(1, color=True)
    cells = [image[..., i].astype(int) * b // 256 for i, b in enumerate(bins)]
    expected = (cells[0] * bins[1] + cells[1]) * bins[2] + cells[2]
    np.testing.assert_array_equal(ColorHistogram("rgb", bins).words(image)[0].ids, expected)


def test_seeds_are_those_of_scikit_learn():
    points = np.random.default_rng(0).normal(size=(300, 7)).astype(np.float32)
    drawn_by_us = distant_points(points, 40, np.random.RandomState(3))
    expected = oracles.k_means_plus_plus(points, 40, np.random.RandomState(3))
    np.testing.assert_array_equal(drawn_by_us, expected)


def test_seeds_of_equal_points():
    assert distant_points(np.ones((4, 2), np.float32), 3, np.random.RandomState(0)).max() < 4


def test_descriptors_are_computed_once_for_all_parts(monkeypatch):
    images = [drawn(i, (60, 70), color=True) for i in range(4)]
    features = ImageFeatures(PARTS).fit(images)
    alone = np.hstack([part.transform(images) for _, part in features.parts_])
    seen = []
    local = DenseSIFT.local
    monkeypatch.setattr(DenseSIFT, "local", lambda s, i: seen.append(1) or local(s, i))
    np.testing.assert_array_equal(features.transform(images), alone)
    assert len(seen) == len(images)


def test_nothing_is_shared_by_other_images_or_after_the_block():
    a, b = np.zeros((2, 2)), np.zeros((2, 2))
    with sharing(a):
        assert once(a, "k", lambda: 1) == 1
        assert once(a, "k", lambda: 2) == 1
        assert once(b, "k", lambda: 3) == 3
        with sharing(b):
            assert once(b, "k", lambda: 4) == 4
        assert once(a, "k", lambda: 5) == 1
    assert once(a, "k", lambda: 6) == 6


@pytest.mark.parametrize("most_bytes", [0, 30_000, 1 << 20])
def test_files_are_read_once_where_they_fit(files, monkeypatch, most_bytes):
    read, calls = kept_module.read_image, []
    monkeypatch.setattr(
        kept_module, "read_image", lambda *a, **k: calls.append(a[0]) or read(*a, **k)
    )
    kept = keep_pixels(files, 50, True, most_bytes)
    features = ImageFeatures(PARTS, max_side=50).fit(kept)
    rows = features.transform(kept)
    fits = min(len(files), most_bytes // (50 * 43 * 3))
    assert len(calls) == fits + 3 * (len(files) - fits)
    again = ImageFeatures(PARTS, max_side=50).fit(files)
    np.testing.assert_array_equal(again.transform(files), rows)


def test_kept_images_of_other_size_or_color_are_read_as_asked(files):
    image = keep_pixels(files, 50, False)[0]
    assert isinstance(image, KeptImage)
    assert image.read(50, False).ndim == 2
    assert image.read(50, True).shape[2] == 3
    assert max(image.read(20, False).shape) == 20
    assert file_of(image) == files[0]
    assert file_of(np.zeros(3)) is None
    assert keep_pixels([image], 1, True)[0] is image


def test_classifier_learns_the_same_whether_images_are_kept(files, monkeypatch):
    def rows(most):
        monkeypatch.setattr("hilbin.auto.describing.keep_pixels",
                            lambda i, m, c: keep_pixels(i, m, c, most))  # fmt: skip
        model = ImageClassifier("color+centrist", max_side=40, random_state=0)
        return model.fit(files * 2, [0, 1, 0, 1, 1] * 2).decision_function(files)

    np.testing.assert_array_equal(rows(0), rows(1 << 20))
