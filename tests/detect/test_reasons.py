import numpy as np
import pytest
from scenes import scene

from hilbin.detect import DeformableDetector, explain_box, iou

IMAGES, BOXES = zip(*[scene(seed)[:2] for seed in range(6)], strict=True)


@pytest.fixture(
    scope="module", params=[{}, {"n_words": 64}, {"n_parts": 2}], ids=["floats", "words", "parts"]
)
def detector(request):
    model = DeformableDetector(area=1600, random_state=0, **request.param)
    return model.fit(IMAGES, BOXES)


def test_reasons_sum_to_the_score(detector):
    found = detector.predict(IMAGES[:2], threshold=-1.0)
    for image, boxes in zip(IMAGES, found, strict=False):
        for box, score in zip(boxes.coordinates, boxes.scores, strict=True):
            reasons = explain_box(detector, image, box)
            total = reasons.bias + reasons.contributions.sum() + reasons.parts
            assert total == pytest.approx(reasons.score, abs=1e-3)
            assert reasons.score >= score - 1e-5  # of the windows that meet it, the best
            assert reasons.cells.shape == (*reasons.contributions.shape, 32)


def test_the_window_meets_the_box(detector):
    reasons = explain_box(detector, IMAGES[0], BOXES[0][0])
    cell = (reasons.window[2] - reasons.window[0]) / reasons.contributions.shape[1]
    inner = reasons.window + cell * np.array([1, 1, -1, -1])
    assert iou([inner], [BOXES[0][0]])[0, 0] == pytest.approx(reasons.overlap, abs=0.05)
    assert reasons.overlap > 0.5


def test_a_box_that_no_window_meets(detector):
    assert explain_box(detector, IMAGES[0], [0, 0, 2, 2]) is None


def test_wrong_boxes_are_named(detector):
    with pytest.raises(ValueError, match="box must have the shape"):
        explain_box(detector, IMAGES[0], [1, 2, 3])
