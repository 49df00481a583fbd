import re

import numpy as np
import pytest
from scenes import scene, write_scenes

from hilbin.detect import Boxes, DeformableDetector, Detected, DetectorEvaluation, ImageBoxes
from hilbin.images import FHOG
from hilbin.report import write_detector_report
from hilbin.report.glyphs import glyphs


@pytest.fixture
def evaluation(tmp_path):
    records = write_scenes(tmp_path / "<b>photos", 3)
    found = []
    for record in records:
        wrong = [[0, 60, 40, 100], [150, 100, 160, 112]]
        boxes = Boxes([record.boxes[0], *wrong, record.boxes[1]], scores=[2.0, 1.4, 0.9, 0.1])
        found.append(Detected(record.path, boxes, (160, 112), 0.02))
    return DetectorEvaluation(records, found, 0.5, [{"path": "x<i>.jpg", "reason": "is empty"}])


@pytest.fixture(scope="module")
def detector():
    images, boxes = zip(*[scene(seed)[:2] for seed in range(6)], strict=True)
    return DeformableDetector(area=1600, random_state=0).fit(images, boxes)


def test_the_page_tells_what_is_wrong(evaluation, detector, tmp_path):
    page = write_detector_report(
        evaluation, tmp_path / "p.html", title="<faces>", detector=detector, about={"seed": 3}
    )
    text = page.read_text(encoding="utf-8")
    assert f"{evaluation.average_precision:.3f}" in text
    for anchor in ("headline", "curves", "misses", "alarms", "filters", "unreadable", "provenance"):
        assert f'id="{anchor}"' in text
        assert f'href="#{anchor}"' in text
    assert len(re.findall("no detection near it|score \\+0.1", text)) == len(evaluation.misses())
    assert text.count(" with a box") == len(evaluation.false_alarms())
    assert "7 by 7 cells" in text
    assert text.count("reasons</figcaption>") >= len(evaluation.misses())
    assert "<faces>" not in text
    assert "x<i>.jpg" not in text


def test_nothing_is_loaded_from_outside(evaluation, tmp_path):
    text = write_detector_report(evaluation, tmp_path / "p.html").read_text(encoding="utf-8")
    assert not re.search(r'(src|href)="(?!data:|#)', text)


def test_fewer_pictures_make_a_smaller_page(evaluation, tmp_path):
    whole = write_detector_report(evaluation, tmp_path / "a.html").stat().st_size
    small = write_detector_report(evaluation, tmp_path / "b.html", max_bytes=whole - 5000)
    assert small.stat().st_size <= whole - 5000
    with pytest.raises(ValueError, match="max_bytes=1000: the page has"):
        write_detector_report(evaluation, tmp_path / "c.html", max_bytes=1000)


def test_pages_about_nothing(tmp_path):
    drawn = [ImageBoxes("gone.jpg", [[0, 0, 10, 10]])]
    none = [Detected("gone.jpg", Boxes([], scores=[]), (80, 20), 0.01)]
    for records, found in (([], []), (drawn, none), ([ImageBoxes("gone.jpg", [])], none)):
        page = write_detector_report(DetectorEvaluation(records, found, 0.0), tmp_path / "p.html")
        assert "nothing was found" in page.read_text(encoding="utf-8")


def test_glyphs_are_strokes_along_edges():
    """A vertical edge has horizontal gradients, and its stroke is vertical."""
    picture = np.zeros((96, 96), np.uint8)
    picture[:, 48:] = 255
    drawn = glyphs(FHOG(cell=8).local(picture)[0].features, side=21)[:, :, 0].astype(float)
    middle = drawn[5 * 21 : 7 * 21, 5 * 21 : 7 * 21]
    across, down = middle.mean(axis=0), middle.mean(axis=1)
    assert across.max() > 3 * down.max()
    assert drawn[:42, :42].max() == 0


def test_glyphs_show_positive_weights_alone():
    weights = np.zeros((2, 3, 32))
    assert glyphs(weights, side=9).shape == (18, 27, 3)
    assert glyphs(weights).max() == 0
    weights[0, 0, 18], weights[1, 2, 4] = 1.0, -1.0
    drawn = glyphs(weights, side=9)
    assert drawn[:9, :9].max() == 255
    assert drawn[9:, 18:].max() == 0
