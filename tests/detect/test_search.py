"""The best box: equal to enumeration for every kind of score, and honest if it is cut short."""

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilbin._core import core
from hilbin.detect import WordCells, best_box, iou

EXAMPLE = [[1, -2, 3], [-1, 4, -5], [2, 1, -1]]


@st.composite
def grids(draw, side=6):
    """Scores of cells; a third of the grids are all negative."""
    shape = draw(st.integers(1, side)), draw(st.integers(1, side))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    scores = rng.normal(size=shape)
    if draw(st.integers(0, 2)) == 0:
        return -np.abs(scores) - 0.1
    return np.round(scores, 1) if draw(st.booleans()) else scores


@st.composite
def word_problems(draw, side=5):
    """Counts of words, tables, and a box that is not of whole cells."""
    shape = draw(st.integers(1, side)), draw(st.integers(1, side))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    n_words, length = draw(st.integers(1, 4)), draw(st.integers(2, 7))
    counts = rng.integers(0, draw(st.integers(2, 4)), (*shape, n_words))
    tables = rng.normal(size=(n_words, length))
    x0, y0 = rng.uniform(-1, shape[1] - 1), rng.uniform(-1, shape[0] - 1)
    truth = [x0, y0, x0 + rng.uniform(0.1, 4), y0 + rng.uniform(0.1, 4)]
    return counts, tables, truth


def check(found, cells, k=1, limit=0.0, **score):
    """The boxes have the scores that they are said to have, which are the best ones."""
    expected = oracles.best_boxes(cells, k, limit, **score)
    own = [oracles.augmented_score(cells, box, **score) for box in found.boxes]
    np.testing.assert_allclose(found.scores, own, atol=1e-12)
    np.testing.assert_allclose(found.scores[0], expected[0][0], atol=1e-12)
    assert found.gap == 0
    return expected


def test_known_box():
    found = best_box(EXAMPLE)
    np.testing.assert_array_equal(found.boxes, [[0, 1, 2, 3]])
    np.testing.assert_array_equal(found.scores, [6])
    boxes, scores = np.zeros((1, 4), np.int32), np.zeros(1)
    searched = core.best_boxes(np.array(EXAMPLE, float), np.empty(0), 0.0, 1000, boxes, scores)
    assert searched[0] == 1
    assert searched[1] <= 14
    assert searched[2] == 0
    np.testing.assert_array_equal(boxes, [[1, 3, 0, 2]])  # top, bottom, left, right
    assert scores[0] == 6


def test_all_negative_is_the_largest_cell():
    scores = -np.arange(1.0, 13).reshape(3, 4)[::-1]
    found = best_box(scores)
    np.testing.assert_array_equal(found.boxes, [[0, 2, 1, 3]])
    assert found.scores[0] == -1


@given(grids())
def test_linear(scores):
    check(best_box(scores), scores)
    boxes, values = np.zeros((1, 4), np.int32), np.zeros(1)
    core.best_boxes(scores, np.empty(0), 0.0, 10**6, boxes, values)
    np.testing.assert_allclose(values[0], best_box(scores).scores[0], atol=1e-12)


@given(grids(), st.integers(0, 1000))
def test_linear_with_a_loss(scores, seed):
    rng = np.random.default_rng(seed)
    low = rng.uniform(-1, scores.shape[::-1], 2)
    truth = [*low, *(low + rng.uniform(0.2, 4, 2))]
    check(best_box(scores, truth=truth), scores, truth=truth)
    reference = rng.normal()
    found = best_box(scores, truth=truth, reference=reference)
    check(found, scores, truth=truth, reference=reference)


@given(word_problems())
def test_tables_of_counts(problem):
    counts, tables, truth = problem
    cells = WordCells(counts)
    check(best_box(cells, tables), counts, tables=tables)
    check(best_box(cells, tables, truth=truth), counts, tables=tables, truth=truth)
    found = best_box(counts, tables, truth=truth, reference=0.3)
    check(found, counts, tables=tables, truth=truth, reference=0.3)


@given(word_problems(), st.floats(0.5, 3))
def test_tables_of_densities(problem, most):
    counts, tables, truth = problem
    given = {"tables": tables, "max_density": most}
    check(best_box(counts, **given), counts, **given)
    check(best_box(counts, **given, truth=truth), counts, **given, truth=truth)


@given(word_problems(), st.integers(2, 3), st.sampled_from([None, 1.5]))
def test_spatial_pyramids(problem, levels, max_density):
    counts, tables, truth = problem
    n_parts = (4**levels - 1) // 3
    tables = np.random.default_rng(0).permuted(np.tile(tables, (n_parts, 1)), axis=0)
    given = {"tables": tables, "levels": levels, "max_density": max_density}
    check(best_box(counts, **given), counts, **given)
    check(best_box(counts, **given, truth=truth), counts, **given, truth=truth)


def test_a_pyramid_sees_where_words_are():
    words = [[0, 0, 0, 0], [0, 1, 2, 0], [0, 2, 1, 0], [0, 0, 0, 0]]
    tables = np.zeros((5, 3, 2))
    tables[[1, 4], 1] = tables[[2, 3], 2] = [0, 1]  # word 1 top left and bottom right, 2 elsewhere
    found = best_box(words, tables.reshape(15, 2), levels=2)
    assert found.scores[0] == 4
    turned = np.rot90(words)
    assert best_box(turned, tables.reshape(15, 2), levels=2).scores[0] < 4


@given(grids(side=4), st.integers(1, 5), st.sampled_from([0.0, 0.2, 0.5, 1.0]))
def test_several_boxes(scores, k, limit):
    scores = scores + 1e-3 * np.random.default_rng(0).normal(size=scores.shape)  # no ties
    found = best_box(scores, k=k, limit=limit)
    expected = check(found, scores, k, limit)
    np.testing.assert_allclose(found.scores, [value for value, _ in expected], atol=1e-12)
    np.testing.assert_array_equal(found.boxes, [box for _, box in expected])
    overlaps = iou(found.boxes, found.boxes) - 2 * np.eye(len(found.boxes))
    assert overlaps.max() <= limit + 1e-12


@given(grids(), st.integers(1, 40))
def test_a_search_that_is_cut_short(scores, max_nodes):
    truth = [0.5, 0.5, 1.5, 2.5]
    found = best_box(scores, truth=truth, max_nodes=max_nodes)
    best = oracles.best_boxes(scores, truth=truth)[0][0]
    own = oracles.augmented_score(scores, found.boxes[0], truth=truth)
    np.testing.assert_allclose(found.scores[0], own, atol=1e-12)
    assert found.nodes <= max_nodes
    assert found.scores[0] - 1e-12 <= best <= found.scores[0] + found.gap + 1e-12


def test_equal_scores_do_not_make_it_slow():
    assert best_box(np.zeros((40, 40)), truth=[3, 3, 9, 9]).nodes < 500
    assert best_box(np.zeros((40, 40), int), np.zeros((1, 2))).nodes < 500


def test_fewer_boxes_than_asked():
    assert len(best_box([[1.0, 2.0]], k=5).boxes) == 1
    assert len(best_box([[1.0, -2.0, 1.0]], k=5).boxes) == 3
    assert len(best_box([[1.0, -2.0, 1.0]], k=9, limit=1.0).boxes) == 6


def test_words_and_counts_are_the_same():
    rng = np.random.default_rng(0)
    words = rng.integers(-1, 3, (6, 7))
    tables = rng.normal(size=(3, 5))
    counts = (words[:, :, None] == np.arange(3)).astype(int)
    one, other = best_box(words, tables), best_box(counts, tables)
    np.testing.assert_array_equal(one.boxes, other.boxes)
    np.testing.assert_array_equal(one.scores, other.scores)


def test_a_large_grid_agrees_with_the_sum():
    scores = np.random.default_rng(0).normal(size=(60, 90))
    found = best_box(scores)
    x0, y0, x1, y1 = found.boxes[0]
    np.testing.assert_allclose(scores[y0:y1, x0:x1].sum(), found.scores[0])
    turned = best_box(scores.T)
    np.testing.assert_allclose(turned.scores, found.scores)
    np.testing.assert_array_equal(turned.boxes[0], [y0, x0, y1, x1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1.0, np.nan]],), r"cells\[0, 1\] = nan"),
        ((np.empty((0, 3)),), "one cell at least"),
        ((np.zeros(3),), r"shape \(rows, columns\)"),
        ((np.zeros((0, 3), int), [[0.0, 1.0]]), "no cell"),
        (([[0.5]], [[0.0, 1.0]]), "whole numbers"),
        (([[3]], [[0.0, 1.0]]), "the word 3, but n_words=1"),
        (([[0]], [[0.0, np.inf]]), "tables is not finite"),
        ((WordCells([[0, 1]]), [[0.0, 1.0]]), "for each of 2 words"),
        (([[[-1]]], [[0.0, 1.0]]), "count that is negative"),
    ],
)
def test_bad_cells(arguments, message):
    with pytest.raises(ValueError, match=message):
        best_box(*arguments)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"k": 0}, "k must be"),
        ({"limit": 2}, "limit must be"),
        ({"max_nodes": 0}, "max_nodes must be"),
        ({"truth": [0, 0, 0, 1]}, "is empty"),
        ({"truth": [0, 0, np.nan, 1]}, "truth must be finite"),
        ({"reference": 1.0}, "reference needs truth"),
    ],
)
def test_bad_parameters(given, message):
    with pytest.raises(ValueError, match=message):
        best_box([[1.0]], **given)
    with pytest.raises(ValueError, match="for each of 2 words in each of 5 parts"):
        best_box(WordCells([[0, 1]]), [[0.0, 1.0]] * 2, levels=2)
    with pytest.raises(ValueError, match="levels must be"):
        best_box([[0]], [[0.0, 1.0]], levels=0)
    with pytest.raises(ValueError, match="max_density"):
        best_box([[0]], [[0.0, 1.0]], max_density=-1.0)


@pytest.mark.parametrize("side", [(1, 32768), (32768, 1)])
def test_too_many_cells(side):
    with pytest.raises(ValueError, match="32767"):
        best_box(np.zeros(side))
