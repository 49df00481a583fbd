"""What is learned about parts: its bounds, where they are computed, and how it resumes."""

import numpy as np
import pytest
from scenes import scene

from hilbin.detect import DeformableDetector, checkpoint
from hilbin.detect.boxes import Boxes
from hilbin.detect.calibration import LeftOut, with_least
from hilbin.detect.matching import match_boxes
from hilbin.detect.training import Training
from hilbin.detect.training_images import TrainingImages
from hilbin.solvers import Hinge, Risk, bundle

SCENES = [scene(seed) for seed in range(5)]
IMAGES = [picture for picture, _, _ in SCENES]
BOXES = [faces for _, faces, _ in SCENES]


@pytest.fixture(scope="module")
def trained():
    """The detector, its training, the root, and the template with its rows."""
    model = DeformableDetector(area=1600, n_parts=1, random_state=0)
    training = Training(model, TrainingImages(IMAGES, BOXES), lambda *stage: None)
    training.read()
    (learned,) = training.learn()
    (template,), (rows,) = training.refine([learned])
    return model, training, learned, template, rows


def hinge(scores, targets):
    return np.maximum(0, 1 - targets * scores).sum(dtype=np.float64)


def test_rows_of_parts_bound_the_objective_of_all_windows(trained):
    model, training, learned, template, rows = trained
    weights = template.weights.astype(np.float64)
    risk = Risk(rows.features, Hinge(), rows.targets, model.C * rows.weights)
    exact = bundle(risk, 1.0, tol=1e-4)
    least = float(exact.objective[0] - exact.gap[0])
    square = 0.5 * float(weights @ weights)
    of_rows = square + model.C * hinge(rows.features @ template.weights, rows.targets)
    assert least <= of_rows <= least * (1 + 2 * model.tol)  # certified while places are fixed
    positive = rows.features[rows.targets > 0] @ template.weights
    of_all = square + model.C * hinge(positive, 1)
    for image in range(len(IMAGES)):
        begin, end = learned.windows.begins[image : image + 2]
        negative = learned.windows.negative[begin:end]
        for own in (template, template.mirrored()):
            scores = own.scores(training.pyramid_of(image), exact=True)
            of_all += model.C * hinge(scores[negative], -1)
    assert of_all >= least * (1 - 1e-6)  # and a lower bound for all windows


def test_given_places_give_the_same_features(trained):
    _, training, _, template, _ = trained
    pyramid, which = training.pyramid_of(0), np.array([3, 77])
    moved = template.placements(pyramid, which)
    np.testing.assert_array_equal(
        template.features(pyramid, which), template.features(pyramid, which, moved)
    )
    other = template.features(pyramid, which, np.zeros_like(moved))
    best = template.features(pyramid, which) @ template.weights
    assert (other @ template.weights <= best + 1e-4).all()


def test_parts_are_computed_where_new_objects_need_them(trained):
    _, _, _, template, _ = trained
    found = LeftOut(
        [Boxes([[0, 0, 10, 10], [50, 0, 60, 10], [90, 0, 99, 9]], scores=[0.9, 0.2, -0.7])],
        [np.zeros(3, int)],
        [np.array([-0.1, -7.0, -9.0])],
    )
    truths = [np.array([[0.0, 0, 10, 10], [50, 0, 60, 10], [90, 0, 99, 9]])]
    matches = match_boxes(found.boxes, truths)
    (changed,) = with_least([template], found, matches, 0.5)
    assert changed.least == -7
    (changed,) = with_least([template], found, matches, -1.0)
    assert changed.least == -9
    nothing = match_boxes(found.boxes, [truths[0] + 500])
    (changed,) = with_least([template], found, nothing, 0.5)
    assert changed.least == template.least


@pytest.mark.parametrize("parameters", [{"n_parts": 1}, {"n_words": 16}, {}])
def test_a_fit_resumes_with_the_same_detector(tmp_path, monkeypatch, parameters):
    monkeypatch.setattr(checkpoint, "EVERY", 0.0)
    model = DeformableDetector(area=1600, random_state=0, **parameters)
    plain = model.fit(IMAGES, BOXES).templates_[0]
    told = []

    def interrupting(stage, done, total):
        told.append((stage, done))
        if stage == "calibrating" and done == 2:
            raise KeyboardInterrupt

    model.set_params(cache=tmp_path / "kept")
    with pytest.raises(KeyboardInterrupt):
        model.fit(IMAGES, BOXES, callback=interrupting)
    told.clear()
    again = model.fit(IMAGES, BOXES, callback=lambda *stage: told.append(stage)).templates_[0]
    assert next(done for stage, done, _ in told if stage == "learning") > 0
    assert next(done for stage, done, _ in told if stage == "calibrating") > 0
    np.testing.assert_array_equal(again.weights, plain.weights)
    assert again.least == plain.least
