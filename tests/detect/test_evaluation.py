import numpy as np
import pytest
from scenes import write_scenes

from hilbin.detect import (
    Boxes,
    BoxWarning,
    DeformableDetector,
    Detected,
    DetectorEvaluation,
    ImageBoxes,
    detect_files,
    evaluate_detector,
)


class Eye:
    """Stands for a detector: it finds what it was told, in every image."""

    threshold_ = 0.5

    def __init__(self, boxes, scores):
        self.boxes = Boxes(boxes, scores=scores)

    def predict(self, images, threshold=None):
        least = self.threshold_ if threshold is None else threshold
        return [self.boxes[self.boxes.scores >= least] for _ in images]


@pytest.fixture
def records(tmp_path):
    return write_scenes(tmp_path, 3)


def square(x):
    return [x, 0, x + 10, 10]


def test_the_mistakes_of_an_evaluation():
    drawn = [
        ImageBoxes("a.jpg", [square(0), square(20)]),
        ImageBoxes("b.jpg", [square(0), square(40), square(60)], ignore=[0, 0, 1]),
    ]
    found = [
        Boxes([square(0), square(100), square(21)], scores=[2.0, 1.0, 0.2]),
        Boxes([square(60), square(3), square(5)], scores=[3.0, 1.5, 1.2]),
    ]
    seen = [Detected("x", one, (200, 20), 0.5) for one in found]
    evaluation = DetectorEvaluation(drawn, seen, 0.5)
    misses = [(one.image, one.box.tolist(), one.score) for one in evaluation.misses()]
    assert misses == [(1, square(40), None), (0, square(20), 0.2)]
    alarms = [(one.image, one.box.tolist(), one.score) for one in evaluation.false_alarms()]
    assert alarms == [(1, square(5), 1.2), (0, square(100), 1.0)]
    assert evaluation.false_alarms()[0].overlap == pytest.approx(1 / 3)
    assert evaluation.precision == 0.5
    assert evaluation.recall == 0.5
    assert evaluation.seconds == 0.5
    assert "2 missed, 2 false alarms" in evaluation.summary()


def test_images_that_cannot_be_read_are_listed(records):
    bad = records[1].path
    bad.write_text("no image")
    told = []
    found = evaluate_detector(
        Eye([records[0].boxes[0]], [1.0]), records, callback=lambda *one: told.append(one)
    )
    assert [one["path"] for one in found.unreadable] == [str(bad)]
    assert [one.path for one in found.records] == [records[0].path, records[2].path]
    assert [one.path for one in found.found] == [records[0].path, records[2].path]
    assert told == [("detecting", k, 3) for k in range(4)]


def test_boxes_outside_of_their_image_do_not_count(records):
    record = ImageBoxes(records[0].path, [[500, 0, 510, 10], *records[0].boxes])
    with pytest.warns(BoxWarning, match=r"scene 0\.png: box 0, .* is outside the image"):
        found = evaluate_detector(Eye(records[0].boxes, [1.0, 2.0]), [record])
    assert found.average_precision == 1


def test_detections_are_collected_below_the_threshold(records):
    found = evaluate_detector(Eye(records[0].boxes, [-1.0, 0.1]), records[:1])
    assert (found.average_precision, found.recall) == (1, 0)
    assert np.isnan(found.precision)
    assert "recall 0.0%, precision unknown, 2 missed" in found.summary()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_files_are_searched_in_order(tmp_path, n_jobs):
    records = write_scenes(tmp_path, 5)
    paths = [one.path for one in records]
    eye = Eye([square(0)], [1.0])
    found = list(detect_files(eye, [*paths, "gone"], n_jobs=n_jobs))
    assert [one.path for one in found[:5]] == paths
    assert [one.size for one in found[:5]] == [(160, 112)] * 5
    assert [one.error for one in found] == [None] * 5 + ["there is no such file"]


def test_a_detector_of_drawn_faces(tmp_path):
    train, test = write_scenes(tmp_path, 8), write_scenes(tmp_path, 4, first=100)
    detector = DeformableDetector(area=1600, random_state=0)
    detector.fit([r.path for r in train], [r.boxes for r in train])
    found = evaluate_detector(detector, test)
    assert found.average_precision == 1
    assert found.average_precision == detector.score(
        [r.path for r in test], [r.boxes for r in test]
    )
