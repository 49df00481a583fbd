"""Cells at two sizes, filters and their transposes, look-ups, and parts that move."""

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilbin._core import core

SLACK = core.cell_slack


def flat(grids, dtype=np.float32):
    """Grids one after the other as the core takes them, and their shapes."""
    shapes = np.array([(g.shape[0], g.shape[-1]) for g in grids], np.int64).reshape(-1, 2)
    room = np.zeros(SLACK, dtype)
    return np.concatenate([*(g.ravel() for g in grids), room]).astype(dtype), shapes


def level_of(image, nodes=False, pad=3):
    height, width = image.shape[:2]
    rows, columns = (height + 4) // 8 + 2 * pad, (width + 4) // 8 + 2 * pad
    cells = np.zeros(rows * 32 * columns, np.float32)
    inner = np.zeros((2 * rows + 1) * 32 * (2 * columns + 1) * nodes, np.float32)
    core.cell_pyramid(image, np.array([[height, width]]), pad, cells, inner)
    cells = cells.reshape(rows, 32, columns)
    return (cells, inner.reshape(2 * rows + 1, 32, 2 * columns + 1)) if nodes else cells


def fhog_of(image, side):
    out = np.empty((*core.hog_grid(*image.shape[:2], side), 31), np.float32)
    core.fhog(image, side, out)
    return out.swapaxes(1, 2)


@pytest.mark.parametrize("size", [(160, 240), (61, 83), (12, 9), (4, 4), (3, 40)])
@pytest.mark.parametrize("nodes", [False, True])
def test_cells_of_8_pixels_are_those_of_fhog(size, nodes):
    image = np.random.default_rng(0).random((*size, 3)).astype(np.float32)
    cells = level_of(image, nodes)[0] if nodes else level_of(image)
    np.testing.assert_allclose(cells[3:-3, :31, 3:-3], fhog_of(image, 8), atol=1e-6)
    assert not cells[3:-3, 31, 3:-3].any()
    outside = cells.copy()
    outside[3:-3, :, 3:-3] = np.eye(32)[31][:, None]
    np.testing.assert_array_equal(outside, np.broadcast_to(np.eye(32)[31][:, None], cells.shape))


def test_nodes_are_cells_of_4_pixels_half_a_cell_off():
    image = np.random.default_rng(0).random((64, 96, 3)).astype(np.float32)
    nodes = level_of(image, nodes=True)[1][6:-6, :31, 6:-6]
    assert nodes.shape == (17, 31, 25)
    # with the first two rows and columns gone, nodes are centers of the cells of what is left;
    # only those whose blocks are not at a border compare
    moved = fhog_of(np.ascontiguousarray(image[2:, 2:]), 4)
    np.testing.assert_allclose(nodes[3:-3, :, 3:-3], moved[2:-3, :, 2:-3][:11, :, :19], atol=1e-5)


def test_bytes_are_values_over_255():
    pixels = np.random.default_rng(1).integers(0, 256, (40, 48, 3), np.uint8)
    values = (pixels / np.float32(255)).astype(np.float32)
    np.testing.assert_allclose(level_of(pixels), level_of(values), atol=1e-4)


@pytest.mark.parametrize("size", [(10, 14), (24, 34), (6, 9), (1, 1), (12, 17)])
def test_resize_is_bilinear(size):
    image = np.random.default_rng(0).random((3, 12, 17)).astype(np.float32)
    out = np.empty((3, *size), np.float32)
    core.resize_planes(image, out)
    np.testing.assert_allclose(out, oracles.resized(image, size), atol=1e-5)


shapes = st.tuples(st.integers(1, 9), st.integers(1, 40))


@settings(max_examples=30, deadline=None)
@given(st.lists(shapes, max_size=3), st.tuples(st.integers(1, 4), st.integers(1, 9)),
       st.integers(1, 5), st.integers(0, 99))  # fmt: skip
def test_scores_of_filters_and_their_transposes(grids, filter_shape, count, seed):
    rng = np.random.default_rng(seed)
    levels = [rng.normal(size=(rows, 32, columns)).astype(np.float32) for rows, columns in grids]
    cells, shapes = flat(levels)
    filters = rng.normal(size=(count, filter_shape[0], 32, filter_shape[1])).astype(np.float32)
    expected = [oracles.filter_scores(level, filters).reshape(count, -1) for level in levels]
    expected = np.concatenate([np.empty((count, 0)), *expected], axis=1)
    scores = np.empty(expected.shape, np.float32)
    core.filter_scores(cells, shapes, filters, scores)
    np.testing.assert_allclose(scores, expected, atol=2e-3)
    slopes = rng.normal(size=scores.shape[1]).astype(np.float32) * (
        rng.random(scores.shape[1]) < 0.5
    )
    sums = np.zeros(filters.shape[1:], np.float32)
    core.filter_sums(cells, shapes, slopes, sums)
    left = (slopes.astype(np.float64) * expected).sum()
    right = (sums.astype(np.float64) * filters).sum()
    scale = 1 + np.abs(slopes * expected).sum()
    assert abs(left - right) < 1e-4 * scale
    places = rng.integers(0, max(scores.shape[1], 1), min(scores.shape[1], 7))
    some = np.empty((count, len(places)), np.float32)
    core.filter_scores_at(cells, shapes, places, filters, some)
    np.testing.assert_allclose(some, expected[:, places], atol=2e-3)
    again = np.zeros_like(sums)
    all_places = np.arange(scores.shape[1])
    core.filter_sums_at(cells, shapes, all_places, slopes, again)
    np.testing.assert_allclose(again, sums, atol=1e-3)


@settings(max_examples=30, deadline=None)
@given(st.lists(shapes, min_size=1, max_size=3), st.tuples(st.integers(1, 4), st.integers(1, 9)),
       st.sampled_from([1, 2, 8]), st.integers(0, 99))  # fmt: skip
def test_look_ups_are_filters_on_words(grids, filter_shape, count, seed):
    rng = np.random.default_rng(seed)
    words = rng.normal(size=(12, 32)).astype(np.float32)
    codes = [rng.integers(0, 12, grid).astype(np.uint8) for grid in grids]
    shapes = np.array(grids, np.int64)
    flat_codes = np.concatenate([c.ravel() for c in codes])
    filters = rng.normal(size=(count, filter_shape[0], 32, filter_shape[1])).astype(np.float32)
    decoded = [words[c].swapaxes(1, 2) for c in codes]
    expected = [oracles.filter_scores(level, filters).reshape(count, -1) for level in decoded]
    expected = np.concatenate(expected, axis=1).T
    tables = np.ascontiguousarray(np.einsum("fych,wc->yhwf", filters, words), np.float32)
    scores = np.empty(expected.shape, np.float32)
    core.lookup_places(flat_codes, shapes, tables, scores)
    np.testing.assert_allclose(scores, expected, atol=1e-3)
    places = np.arange(len(scores))[::-1].copy()
    some = np.empty(len(scores), np.float32)
    core.lookup_places_at(flat_codes, shapes, places, np.ascontiguousarray(tables[..., 0]), some)
    np.testing.assert_allclose(some[::-1], expected[:, 0], atol=1e-3)
    slopes = rng.normal(size=len(scores)).astype(np.float32)
    sums, again = np.zeros((2, *tables.shape[:3]), np.float32)
    core.lookup_slopes(flat_codes, shapes, slopes, sums)
    core.lookup_slopes_at(flat_codes, shapes, places, slopes[places], again)
    np.testing.assert_allclose(sums, again, atol=1e-4)
    scale = 1 + np.abs(slopes * expected[:, 0]).sum()
    assert abs((sums * tables[..., 0]).sum() - (slopes * expected[:, 0]).sum()) < 1e-4 * scale


def test_codes_are_nearest_words():
    rng = np.random.default_rng(0)
    cells, shapes = flat([rng.random((5, 32, 29)).astype(np.float32)])
    words = rng.random((20, 32)).astype(np.float32)
    codes = np.empty(5 * 29, np.uint8)
    half = (0.5 * (words**2).sum(axis=1)).astype(np.float32)
    core.encode_cells(cells, shapes, np.ascontiguousarray(words.T), half, codes)
    points = cells[:-SLACK].reshape(5, 32, 29).swapaxes(1, 2).reshape(-1, 32)
    gaps = ((points[:, None] - words) ** 2).sum(axis=2)
    np.testing.assert_array_equal(codes, gaps.argmin(axis=1))


def deform(scores, d, reach):
    scores = np.ascontiguousarray(scores, np.float32)
    best = np.empty_like(scores)
    down, across = np.empty((2, *scores.shape), np.int8)
    core.deform(scores, np.array(d, np.float32), reach, best, down, across)
    return best, down, across


def test_deformation_of_the_specification():
    bump = np.zeros((3, 3))
    bump[1, 1] = 5
    best = deform(bump, (1, 0, 1, 0), 2)[0]
    np.testing.assert_array_equal(best, [[3, 4, 3], [4, 5, 4], [3, 4, 3]])
    best, _, across = deform([[0, 3, 0, 0, 1]], (0.5, 0.25, 0, 0), 2)
    np.testing.assert_allclose(best, [[2.25, 3, 2.75, 1.5, 1]])
    np.testing.assert_array_equal(across, [[1, 0, -1, -2, 0]])


@settings(max_examples=30, deadline=None)
@given(st.tuples(st.integers(1, 7), st.integers(1, 7)), st.integers(0, 4), st.integers(0, 99))
def test_deformation_is_the_best_of_all_places(shape, reach, seed):
    rng = np.random.default_rng(seed)
    scores, d = rng.normal(size=shape).astype(np.float32), rng.normal(size=4).astype(np.float32)
    best, down, across = deform(scores, d, reach)
    expected, way = oracles.deformed(scores, d, reach)
    np.testing.assert_allclose(best, expected, atol=1e-5)
    np.testing.assert_array_equal(np.stack([down, across], axis=2), way)
    np.testing.assert_array_equal(deform(scores, d, 0)[0], scores)
    np.testing.assert_array_equal(deform(scores, (1e6, 0, 1e6, 0), reach)[0], scores)


def test_bad_arrays_are_refused():
    cells, shapes = flat([np.zeros((3, 32, 3), np.float32)])
    filters = np.zeros((1, 2, 32, 2), np.float32)
    with pytest.raises(ValueError, match="out has the wrong shape"):
        core.filter_scores(cells, shapes, filters, np.empty((1, 3), np.float32))
    with pytest.raises(ValueError, match="larger than the array"):
        core.filter_scores(cells, shapes + 1, filters, np.empty((1, 9), np.float32))
    out = np.empty((1, 1), np.float32)
    with pytest.raises(ValueError, match="place is out of range"):
        core.filter_scores_at(cells, shapes, np.array([4]), filters, out)
    codes = np.full(9, 7, np.uint8)
    tables = np.zeros((2, 2, 7, 1), np.float32)
    with pytest.raises(ValueError, match="code is out of range"):
        core.lookup_places(codes, shapes, tables, np.empty((4, 1), np.float32))
