import pickle
from unittest import mock

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import hilbin.detect.boxes as module
from hilbin.detect import Boxes, BoxWarning, iou, sound_boxes, suppress
from hilbin.persist import ModelFileError, load, save

ROW = [[0, 0, 10, 10], [1, 0, 11, 10], [8, 0, 18, 10], [30, 0, 40, 10]]


def boxes(most=8):
    """Boxes with corners on a small grid, some of them empty."""
    corners = st.integers(0, most).flatmap(
        lambda n: arrays(np.float64, (n, 4), elements=st.integers(-4, 12).map(lambda v: v / 2))
    )
    return corners.map(
        lambda a: np.hstack([np.minimum(a[:, :2], a[:, 2:]), np.maximum(a[:, :2], a[:, 2:])])
    )


def test_iou_of_the_specification():
    assert iou([[0, 0, 10, 10]], [[5, 0, 15, 10]])[0, 0] == pytest.approx(1 / 3)


@given(boxes(), boxes())
def test_iou_counts_cells(a, b):
    np.testing.assert_allclose(iou(a, b), oracles.iou_by_counting(a, b), atol=1e-12)


@given(boxes(), st.floats(-50, 50), st.floats(0.1, 10))
def test_iou_keeps_when_boxes_move_or_grow(a, shift, factor):
    np.testing.assert_allclose(iou(a, a), iou(factor * a + shift, factor * a + shift), atol=1e-6)
    np.testing.assert_array_equal(iou(a, a), iou(a, a).T)


@pytest.mark.parametrize(("limit", "kept"), [(0.5, [0, 2, 3]), (0.05, [0, 3]), (1.0, [0, 1, 2, 3])])
def test_suppress_of_the_specification(limit, kept):
    np.testing.assert_array_equal(suppress(ROW, [4, 3, 2, 1], limit=limit), kept)
    np.testing.assert_array_equal(suppress(Boxes(ROW, scores=[4, 3, 2, 1]), limit=limit), kept)


@given(st.data(), boxes(12), st.sampled_from([0.0, 0.3, 0.5, 1.0]), st.sampled_from([1, 3, 128]))
def test_suppress_is_greedy_however_many_are_compared_at_once(data, a, limit, at_once):
    scores = data.draw(arrays(np.float64, len(a), elements=st.integers(0, 3)))
    with mock.patch.object(module, "AT_ONCE", at_once):
        kept = suppress(a, scores, limit=limit)
    assert kept.tolist() == oracles.suppress(a, scores, limit)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Boxes([[1, 2, 3]]), r"coordinates must have the shape \(n, 4\), got \(1, 3\)"),
        (lambda: Boxes([[1, 2, 3, np.nan]]), "coordinates must be finite, box 0"),
        (lambda: Boxes([["a", 2, 3, 4]]), "coordinates must be numbers"),
        (lambda: Boxes([[1, 2, 3, 4]], scores=[1, 2]), r"scores has shape \(2,\) for 1 boxes"),
        (lambda: Boxes([[1, 2, 3, 4]], labels="x"), r"labels has shape \(\) for 1 boxes"),
        (lambda: suppress(ROW), "scores must be 4 numbers"),
        (lambda: suppress(ROW, [1, 2, np.nan, 4]), "without NaN"),
        (lambda: suppress(ROW, [1, 2, 3, 4], limit=2), "limit must be from 0 to 1, got 2"),
        (lambda: iou([[0, 0, np.inf, 1]], ROW), "a must be finite"),
    ],
)
def test_wrong_boxes_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_boxes_are_indexed_clipped_and_joined():
    found = Boxes(ROW, scores=[1, 2, 3, 4], labels=list("abcd"))
    chosen = found[[3, 0]]
    assert chosen.labels.tolist() == ["d", "a"]
    assert chosen.scores.tolist() == [4, 1]
    assert found.clipped(35, 5).coordinates[3].tolist() == [30, 0, 35, 5]
    both = Boxes.concatenate([found, chosen])
    assert both.labels.tolist() == list("abcdda")
    assert both.probabilities is None
    assert Boxes.concatenate([found, Boxes(ROW)]).scores is None
    assert len(Boxes.concatenate([])) == 0
    np.testing.assert_array_equal(np.asarray(found), ROW)


def test_boxes_can_be_pickled():
    copy = pickle.loads(pickle.dumps(Boxes(ROW, scores=[1, 2, 3, 4])))
    np.testing.assert_array_equal(copy.coordinates, ROW)
    assert copy.scores.tolist() == [1, 2, 3, 4]


def test_boxes_can_be_saved(tmp_path):
    boxes = Boxes(ROW, scores=[4, 3, 2, 1], labels=list("abcd"))
    save(boxes, tmp_path / "boxes.hilbin")
    loaded = load(tmp_path / "boxes.hilbin")
    np.testing.assert_array_equal(loaded.coordinates, ROW)
    assert loaded.labels.tolist() == list("abcd")
    object.__setattr__(boxes, "scores", np.ones(3))
    save(boxes, tmp_path / "forged.hilbin")
    with pytest.raises(ModelFileError, match="scores has shape"):
        load(tmp_path / "forged.hilbin")


def test_unusable_boxes_are_named_and_left_out():
    nan = np.nan
    given = [[-3, -3, 4, 4], [5, 0, 5, 9], [nan, 0, 1, 1], [-9, 0, -1, 5], [90, 0, 99, 5]]
    with pytest.warns(BoxWarning) as caught:
        sound = sound_boxes(given, (80, 60), "cat.jpg")
    assert sound.tolist() == [True, False, False, False, False]
    assert [str(one.message) for one in caught] == [
        "cat.jpg: box 2, [nan, 0, 1, 1], is not finite; left out",
        "cat.jpg: box 1, [5, 0, 5, 9], is empty; left out",
        "cat.jpg: box 3, [-9, 0, -1, 5], is outside the image; left out",
        "cat.jpg: box 4, [90, 0, 99, 5], is outside the image; left out",
    ]
