"""Boxes learned from boxes: exact searches, certificates, drawn scenes, and bad input."""

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenes import scene
from sklearn.base import clone

from hilbin import load, save
from hilbin.detect import BoxLocalizer, BoxModel, BoxWarning, WordCells
from hilbin.estimators import StructuredSVM
from hilbin.images import LBP, BagOfWords, Centrist, ColorHistogram, UnreadableImageWarning
from hilbin.plot import localization
from hilbin.solvers import Bounded


def word_scenes(n, side=7, n_words=4, seed=0):
    """Grids of random words, with a box of other words in each."""
    rng = np.random.default_rng(seed)
    grids, boxes = [], []
    for _ in range(n):
        (w, h), (x, y) = rng.integers(2, 5, 2), rng.integers(0, 3, 2)
        words = rng.integers(0, n_words - 1, (side, side))
        w, h = min(w, side - x), min(h, side - y)
        inside = rng.choice(n_words, (h, w), p=[0.1, 0.1, 0.1, 0.7])
        words[y : y + h, x : x + w] = inside
        grids.append(WordCells(words, n_words))
        boxes.append([x, y, x + w, y + h])
    return grids, boxes


@pytest.fixture(scope="module")
def pictures():
    """Drawn pictures of one face each."""
    drawn = [scene(seed, (96, 80), n_faces=1, n_squares=0) for seed in range(16)]
    return [image for image, _, _ in drawn], np.array([faces[0] for _, faces, _ in drawn])


@given(st.booleans(), st.integers(2, 4), st.integers(0, 1000))
def test_best_boxes_equal_enumeration(normalized, n_nodes, seed):
    grids, boxes = word_scenes(2, side=4, seed=seed)
    model = BoxModel(normalized, n_nodes).for_data(grids, boxes)
    x, y = grids[0], boxes[0]
    w = 3 * np.random.default_rng(seed).normal(size=model.size)
    every = oracles.all_boxes(4, 4)
    scores = np.array([w @ model.joint(x, box) for box in every])
    losses = np.array([1 - oracles.box_iou(box, y) for box in every])
    values = [scores, scores + losses, losses * (1 + scores - w @ model.joint(x, y))]
    found = (model.best(x, w), model.best(x, w, y), model.best_slack(x, w, y))
    for box, value in zip(found, values, strict=True):
        np.testing.assert_allclose(value[every.index(tuple(box))], value.max(), atol=1e-9)
    searched = model.search(x, w)
    np.testing.assert_allclose(searched.scores[0], w @ model.joint(x, searched.boxes[0]))
    np.testing.assert_allclose(searched.scores[0], scores.max())


def test_a_search_that_is_cut_short_has_a_bound():
    grids, boxes = word_scenes(3)
    model = BoxModel(max_nodes=2).for_data(grids, boxes)
    w = np.random.default_rng(0).normal(size=model.size)
    output = model.best(grids[0], w, boxes[0])
    assert isinstance(output, Bounded)
    every = oracles.all_boxes(7, 7)
    value = max(model.loss(boxes[0], b) + w @ model.joint(grids[0], b) for b in every)
    assert value <= output.bound + 1e-9


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_boxes_are_learned(rescaling):
    grids, boxes = word_scenes(40)
    machine = StructuredSVM(BoxModel(), C=10.0, tol=0.01, rescaling=rescaling)
    machine.fit(grids[:25], boxes[:25])
    assert machine.converged_
    assert machine.score(grids[25:], boxes[25:]) > -0.35


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("normalized", [False, True])
def test_the_objective_is_that_of_all_boxes(normalized, rescaling):
    grids, boxes = word_scenes(6, side=5)
    machine = StructuredSVM(BoxModel(normalized, 3), C=2.0, tol=0.01, rescaling=rescaling)
    machine.fit(grids, boxes)
    model, w, total = machine.model_, machine.coef_, 0.0
    every = oracles.all_boxes(5, 5)
    for x, y in zip(grids, boxes, strict=True):
        losses = np.array([1 - oracles.box_iou(box, y) for box in every])
        scores = np.array([w @ (model.joint(x, box) - model.joint(x, y)) for box in every])
        total += max(losses + scores if rescaling == "margin" else losses * (1 + scores))
    np.testing.assert_allclose(machine.objective_, 0.5 * w @ w + 2 * total)
    assert machine.gap_ <= 0.01 * machine.objective_


def test_scale_is_found():
    grids, boxes = word_scenes(6)
    model = BoxModel().for_data(grids, boxes)
    squares = [np.sum(model.joint(x, y) ** 2) for x, y in zip(grids, boxes, strict=True)]
    np.testing.assert_allclose(np.mean(squares), 1)
    assert BoxModel(scale=2.0).for_data(grids, boxes).scale == 2


def test_bad_examples():
    grids, boxes = word_scenes(2)
    with pytest.raises(ValueError, match="example 1: boxes"):
        BoxModel().for_data(grids, [boxes[0], [0, 0, 9, 9]])
    with pytest.raises(ValueError, match="example 1: an image must be WordCells of 4 words"):
        BoxModel().for_data([grids[0], WordCells([[0]])], boxes)
    with pytest.raises(ValueError, match="n_nodes"):
        BoxModel(n_nodes=1).for_data(grids, boxes)


# images
@pytest.mark.parametrize("words", [LBP(), [LBP(), Centrist()]], ids=["one", "two"])
def test_faces_are_found(words, pictures):
    images, boxes = pictures
    model = BoxLocalizer(words).fit(images[:10], boxes[:10])
    assert model.score(images[10:], boxes[10:]) > 0.5
    assert model.predict(images[:2]).shape == (2, 4)
    assert model.svm_.gap_ <= 0.01 * model.svm_.objective_
    overlaps = [
        oracles.box_iou(a, b) for a, b in zip(model.predict(images[10:]), boxes[10:], strict=True)
    ]
    np.testing.assert_allclose(model.score(images[10:], boxes[10:]), np.mean(overlaps))


@pytest.mark.parametrize("normalized", [False, True])
def test_contributions_sum_up_to_the_score(normalized, pictures):
    images, boxes = pictures
    model = BoxLocalizer(LBP(), normalized=normalized, n_nodes=3).fit(images[:6], boxes[:6])
    (found,) = model.explain(images[8:9])
    rows, columns = found.cells.shape
    size = np.array([96 / columns, 80 / rows] * 2)
    x0, y0, x1, y1 = np.rint(found.box / size).astype(int)
    np.testing.assert_allclose(found.cells[y0:y1, x0:x1].sum(), found.score)
    np.testing.assert_allclose(found.score, model.decision_function(images[8:9])[0])
    np.testing.assert_allclose(found.box, model.predict(images[8:9])[0])
    if normalized:
        assert np.count_nonzero(found.cells) <= (y1 - y0) * (x1 - x0)


def test_the_picture(pictures):
    images, boxes = pictures
    (found,) = BoxLocalizer(LBP()).fit(images[:4], boxes[:4]).explain(images[5:6])
    ax = localization(found, truth=boxes[5])
    drawn = [patch.get_bbox().extents for patch in ax.patches]
    np.testing.assert_allclose(drawn, [found.box, boxes[5]])
    np.testing.assert_array_equal(ax.images[1].get_array(), found.cells)
    with pytest.raises(ValueError, match="opacity"):
        localization(found, opacity=2)


def test_sizes_of_images(pictures, tmp_path):
    """Large images are reduced for their words, and boxes are in pixels of the files."""
    images, boxes = pictures
    large = [np.kron(image, np.ones((4, 4), np.uint8)) for image in images]
    model = BoxLocalizer(LBP(max_side=96)).fit(large[:8], 4 * boxes[:8])
    assert model.score(large[10:], 4 * boxes[10:]) > 0.5
    small = BoxLocalizer(LBP(max_side=96)).fit(images[:8], boxes[:8])
    np.testing.assert_allclose(small.predict(images[:3]) * 4, model.predict(large[:3]), atol=40)


def test_saved(pictures, tmp_path):
    images, boxes = pictures
    words = [BagOfWords(n_words=8, random_state=0), ColorHistogram()]
    model = BoxLocalizer(words, random_state=0).fit(images[:4], boxes[:4])
    save(model, tmp_path / "model.hilbin")
    loaded = load(tmp_path / "model.hilbin")
    np.testing.assert_array_equal(loaded.predict(images), model.predict(images))
    again = clone(loaded).fit(images[:4], boxes[:4])
    np.testing.assert_array_equal(again.predict(images), model.predict(images))
    loaded.svm_.model_ = BoxModel(n_words=3)
    with pytest.raises(ValueError, match="not one of these words"):
        loaded._check_state()


def test_what_cannot_be_used_is_left_out(pictures, tmp_path):
    images, boxes = pictures
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"no image")
    given = [*images[:4], broken, images[5]]
    wrong = np.vstack([boxes[:5], [[200, 200, 220, 220]]]).astype(float)
    with (
        pytest.warns(UnreadableImageWarning, match="broken.png"),
        pytest.warns(BoxWarning, match="outside the image"),
    ):
        model = BoxLocalizer(LBP()).fit(given, wrong)
    expected = BoxLocalizer(LBP()).fit(images[:4], boxes[:4])
    np.testing.assert_array_equal(model.svm_.coef_, expected.svm_.coef_)
    with pytest.warns(UnreadableImageWarning):
        found = model.predict([broken, images[0]])
    assert np.isnan(found[0]).all()
    assert np.isfinite(found[1]).all()
    with pytest.warns(UnreadableImageWarning):
        assert model.score([broken], boxes[:1]) == 0


@pytest.mark.parametrize(
    ("given", "boxes", "error", "message"),
    [
        ({}, [[0, 0, 5, 5]], ValueError, "2 images, but 1 boxes"),
        ({"cell": 0}, [[0, 0, 5, 5]] * 2, ValueError, "cell must be"),
        ({"words": "sift"}, [[0, 0, 5, 5]] * 2, TypeError, "source of words"),
        (
            {"words": BagOfWords(assignment="soft")},
            [[0, 0, 5, 5]] * 2,
            TypeError,
            "hard assignment",
        ),
        ({"words": LBP(), "C": -1.0}, [[0, 0, 5, 5]] * 2, ValueError, "C must be"),
    ],
)
def test_bad_input(given, boxes, error, message, pictures):
    with pytest.raises(error, match=message):
        BoxLocalizer(**given).fit(pictures[0][:2], boxes)


def test_no_box_at_all(pictures):
    with (
        pytest.warns(BoxWarning, match="is empty"),
        pytest.raises(ValueError, match="no image can be read"),
    ):
        BoxLocalizer(LBP()).fit(pictures[0][:1], [[3, 3, 3, 3]])
