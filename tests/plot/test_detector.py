"""Pictures of the filters of detectors, and of what cells add to a score."""

import numpy as np
import pytest

from hilbin.detect import DeformableDetector, explain_box
from hilbin.plot import detection_heat, detector_filters

pyplot = pytest.importorskip("matplotlib.pyplot")

IMAGES = np.random.default_rng(0).integers(0, 80, (4, 96, 128), np.uint8)
IMAGES[:, 20:60, 30:70] += 120
BOXES = [[[30, 20, 70, 60]]] * 4


@pytest.fixture(scope="module")
def detector():
    return DeformableDetector(area=1600, n_parts=2, random_state=0).fit(IMAGES, BOXES)


def test_filters_are_drawn_as_strokes(detector):
    axes = detector_filters(detector)
    rows, columns = detector.templates_[0].shape
    assert axes.shape == (1, 2)
    for ax in axes[0]:
        (strokes,) = ax.collections
        assert len(strokes.get_segments()) == 9 * rows * columns
        assert len(ax.patches) == 2
        assert ax.get_xlim() == (0, columns)
    # the darkest stroke for the left edge of a square is upright
    root = np.maximum(detector.templates_[0].root, 0)
    strength = root[:, :9] + root[:, 9:18] + root[:, 18:27]
    y, k, x = np.unravel_index(strength.argmax(), strength.shape)
    darkest = axes[0, 0].collections[0].get_segments()[-1]
    np.testing.assert_allclose(darkest.mean(axis=0), [x + 0.5, y + 0.5])
    direction = darkest[1] - darkest[0]
    gradient = np.array([np.cos(np.pi * k / 9), np.sin(np.pi * k / 9)])
    assert abs(direction @ gradient) < 1e-9
    with pytest.raises(ValueError, match="two for each of 1"):
        detector_filters(detector, axes=pyplot.subplots(2, 2)[1])
    pyplot.close("all")


def test_heat_lies_over_the_window(detector):
    reasons = explain_box(detector, IMAGES[0], BOXES[0][0])
    ax = detection_heat(IMAGES[0], reasons)
    heat = ax.images[1]
    x0, y0, x1, y1 = reasons.window
    assert heat.get_extent() == [x0, x1, y1, y0]
    np.testing.assert_array_equal(heat.get_array(), reasons.contributions)
    pyplot.close("all")
