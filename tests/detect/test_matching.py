import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilbin.detect import Boxes, average_precision, match_boxes


def square(x, height=10):
    return [x, 0, x + 10, height]


TRUTHS = [[square(0), square(20), square(40)]]
IGNORED = [[square(60)]]
FOUND = [
    Boxes(
        [square(60), square(0), square(100), square(20), square(0, height=9)],
        scores=[0.95, 0.9, 0.8, 0.7, 0.6],
    )
]


def test_average_precision_of_the_specification():
    matches = match_boxes(FOUND, TRUTHS, IGNORED)
    assert matches.average_precision == pytest.approx(5 / 9)
    assert average_precision(FOUND, TRUTHS, IGNORED) == matches.average_precision
    assert matches.at(0) == pytest.approx((0.5, 2 / 3))
    assert matches.truth.tolist() == [-2, 0, -1, 1, -1]
    assert matches.thresholds.tolist() == [0.9, 0.8, 0.7, 0.6]


places = st.lists(st.integers(0, 8).map(lambda x: square(4 * x)), max_size=4)
images = st.lists(st.tuples(places, places, places), min_size=1, max_size=3)


@given(images, st.data())
def test_average_precision_is_the_area_under_the_curve(drawn, data):
    found = [
        Boxes(
            boxes,
            scores=data.draw(st.lists(st.integers(0, 5), min_size=len(boxes), max_size=len(boxes))),
        )
        for boxes, _, _ in drawn
    ]
    truths, ignored = [t for _, t, _ in drawn], [i for _, _, i in drawn]
    expected = oracles.average_precision(found, truths, ignored)
    np.testing.assert_allclose(average_precision(found, truths, ignored), expected, atol=1e-12)


@given(images, st.randoms())
def test_the_order_of_images_does_not_matter(drawn, random):
    found = [Boxes(b, scores=np.arange(len(b)) % 3) for b, _, _ in drawn]
    order = list(range(len(drawn)))
    random.shuffle(order)
    truths = [t for _, t, _ in drawn]
    first = average_precision(found, truths)
    second = average_precision([found[i] for i in order], [truths[i] for i in order])
    np.testing.assert_allclose(first, second)


def test_equal_scores_count_false_ones_first():
    found = [Boxes([square(0), square(100)], scores=[1, 1])]
    assert average_precision(found, [[square(0)]]) == 0.5


def test_nothing_found_and_nothing_to_find():
    assert average_precision([Boxes([])], TRUTHS) == 0
    assert np.isnan(average_precision(FOUND, [[]]))
    assert match_boxes([Boxes([])], TRUTHS).at(0)[1] == 0
    assert np.isnan(average_precision([], []))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((FOUND, []), "one entry for each image, got 1, 0 and 0"),
        (([Boxes([square(0)])], TRUTHS), r"predicted\[0\] must be Boxes with scores"),
        (([Boxes([square(0)], scores=[np.nan])], TRUTHS), r"scores of predicted\[0\] have NaN"),
        ((FOUND, [[[1, 2, 3]]]), r"truths\[0\] must have the shape"),
        ((FOUND, TRUTHS, [[[1, 2, 3, np.inf]]]), r"ignored\[0\] must be finite"),
    ],
)
def test_wrong_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        average_precision(*arguments)
