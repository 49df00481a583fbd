"""Counts of words in boxes, and kernels between boxes."""

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilbin.detect import WordCells, restriction_kernel
from hilbin.kernels import Chi2, Intersection, Linear, check_kernel


@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 1000))
def test_histograms_of_all_boxes(rows, columns, seed):
    counts = np.random.default_rng(seed).integers(0, 4, (rows, columns, 3))
    cells = WordCells(counts)
    boxes = oracles.all_boxes(rows, columns)
    expected = [counts[y0:y1, x0:x1].sum(axis=(0, 1)) for x0, y0, x1, y1 in boxes]
    np.testing.assert_array_equal(cells.histograms(boxes), expected)
    areas = [(x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in boxes]
    np.testing.assert_allclose(
        cells.densities(boxes), np.array(expected) / np.array(areas)[:, None]
    )


@pytest.mark.parametrize("kernel", [Intersection(), Chi2(), Linear()], ids=repr)
@pytest.mark.parametrize("normalized", [True, False])
def test_restriction_kernel(kernel, normalized):
    rng = np.random.default_rng(0)
    images = [WordCells(rng.integers(0, 4, (5, 6)), 4) for _ in range(3)]
    pairs = [(image, box) for image in images for box in ([0, 0, 6, 5], [1, 1, 3, 4])]
    rows = []
    for image, (x0, y0, x1, y1) in pairs:
        histogram = image.counts[y0:y1, x0:x1].sum(axis=(0, 1)).astype(float)
        rows.append(histogram / histogram.sum() if normalized else histogram)
    K = restriction_kernel(kernel, pairs, normalized=normalized)
    np.testing.assert_allclose(K, kernel(np.array(rows)))
    np.testing.assert_allclose(
        restriction_kernel(kernel, pairs[:2], pairs, normalized=normalized), K[:2]
    )
    assert np.linalg.eigvalsh(K).min() > -1e-9
    check_kernel(kernel)


@pytest.mark.parametrize("box", [[0, 0, 4, 2], [0, 0, 0, 1], [0.5, 0, 1, 1], [-1, 0, 1, 1]])
def test_boxes_that_are_not_of_these_cells(box):
    with pytest.raises(ValueError, match=r"boxes\[1\]"):
        WordCells([[0, 1, 1], [2, 1, 0]]).histograms([[0, 0, 1, 1], box])


def test_bad_words():
    with pytest.raises(ValueError, match="n_words=5"):
        WordCells(np.ones((2, 2, 3), int), 5)
    with pytest.raises(ValueError, match="whole numbers"):
        WordCells([0, 1])
