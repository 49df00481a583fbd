"""The compiled loops over images and words, at every instruction level."""

import importlib

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

baseline = importlib.import_module("hilbin._core._baseline")
LEVELS = ["baseline"] + (["avx2"] if baseline.supports_avx2() else [])
CORES = [importlib.import_module(f"hilbin._core._{level}") for level in LEVELS]
SHAPES = [(0, 0), (1, 5), (2, 2), (3, 3), (5, 4), (4, 19), (3, 34), (6, 37), (5, 70)]


@pytest.fixture(params=CORES, ids=LEVELS)
def core(request):
    return request.param


def random_image(shape, levels=256, seed=0):
    rng = np.random.default_rng([seed, *shape])
    return rng.integers(0, levels, shape).astype(np.uint8)


def inner(image):
    return np.full(np.maximum(np.subtract(image.shape, 2), 0), 77, np.uint8)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("levels", [2, 5, 256])
def test_census(core, shape, levels):
    image = random_image(shape, levels)
    out = inner(image)
    core.census(image, out)
    np.testing.assert_array_equal(out, oracles.census(image))


def test_census_reads_from_the_upper_left(core):
    image = np.array([[9, 9, 9], [9, 5, 9], [9, 9, 5]], np.uint8)
    out = inner(image)
    core.census(image, out)
    assert out == 1
    image[0, 0] = 4
    core.census(image, out)
    assert out == 129


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("levels", [2, 5, 256])
def test_lbp(core, shape, levels):
    image = random_image(shape, levels)
    patterns, numbers = inner(image), inner(image)
    core.lbp(image, patterns, False)
    core.lbp(image, numbers, True)
    expected = oracles.local_binary_pattern(image)
    np.testing.assert_array_equal(patterns, expected)
    numbered = [oracles.uniform_pattern(p) for p in expected.ravel().tolist()]
    np.testing.assert_array_equal(numbers.ravel(), numbered)


def test_lbp_compares_diagonals_exactly(core):
    """915 / 379 is as good as 1 + sqrt(2) for every difference of bytes."""
    diagonal, beside = np.arange(-255, 256)[:, None], np.arange(-510, 511)
    exact = diagonal * (1 + np.sqrt(2)) + beside
    assert np.abs(exact[(diagonal != 0) | (beside != 0)]).min() > 1e-4
    np.testing.assert_array_equal(915 * diagonal + 379 * beside >= 0, exact >= 0)
    image = np.zeros((3, 3), np.uint8)
    image[1, 1], image[0, 1], out = 70, 70, inner(image)
    for corner, pattern in ((99, 0b110), (98, 0b100)):  # 29 above outweigh 70 below, 28 do not
        image[0, 2] = corner
        core.lbp(image, out, False)
        assert out == pattern


def test_numbers_of_uniform_patterns():
    numbers = [oracles.uniform_pattern(p) for p in range(256)]
    assert sorted(set(numbers)) == list(range(59))
    assert numbers.count(58) == 256 - 58


@pytest.mark.parametrize("name", ["census", "lbp"])
@pytest.mark.parametrize("shape", [(4, 6), (3, 6), (4, 5), (2, 4)])
def test_codes_need_room_for_the_inner_pixels(core, name, shape):
    image = random_image((5, 6))
    more = (True,) if name == "lbp" else ()
    with pytest.raises(ValueError, match="out has the wrong shape"):
        getattr(core, name)(image, np.empty(shape, np.uint8), *more)
    with pytest.raises(TypeError):
        getattr(core, name)(image.astype(np.int32), inner(image), *more)


def grid_of(size, cells):
    return (np.arange(size) * cells // max(size, 1)).astype(np.int32)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32])
@pytest.mark.parametrize("out_dtype", [np.float32, np.int32])
@pytest.mark.parametrize(
    ("shape", "grid", "n_words"),
    [
        ((0, 0), (1, 1), 3),
        ((1, 1), (2, 3), 4),
        ((7, 9), (3, 2), 5),
        ((40, 31), (2, 2), 200),
        ((40, 31), (2, 1), 9),
    ],
)
def test_count_cells(core, dtype, out_dtype, shape, grid, n_words):
    words = np.random.default_rng(1).integers(0, n_words, shape).astype(dtype)
    rows, columns = grid_of(shape[0], grid[0]), grid_of(shape[1], grid[1])
    out = np.ones((grid[0] * grid[1], n_words), out_dtype)
    core.count_cells(words, rows, columns, grid[1], n_words, out)
    expected = oracles.count_cells(words, rows, columns, grid[1], n_words, len(out))
    np.testing.assert_array_equal(out - 1, expected)


@given(data=st.data())
def test_counts_of_any_grid(data):
    """Cells need not be in order, and every word is counted once."""
    rows, columns = data.draw(st.integers(0, 30)), data.draw(st.integers(0, 30))
    grid = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    n_words = data.draw(st.sampled_from([1, 2, 7, 256]))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    words = rng.integers(0, n_words, (rows, columns)).astype(np.uint8)
    row_cell = rng.integers(0, grid[0], rows).astype(np.int32)
    col_cell = rng.integers(0, grid[1], columns).astype(np.int32)
    expected = oracles.count_cells(words, row_cell, col_cell, grid[1], n_words, grid[0] * grid[1])
    for core in CORES:
        out = np.zeros((grid[0] * grid[1], n_words), np.float32)
        core.count_cells(words, row_cell, col_cell, grid[1], n_words, out)
        np.testing.assert_array_equal(out, expected)
        assert out.sum() == words.size


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"words": np.full((3, 4), 5, np.uint8)}, "word out of range"),
        ({"words": np.full((3, 4), -1, np.int32)}, "word out of range"),
        ({"row_cell": np.array([0, 1, 2], np.int32)}, "cell out of range"),
        ({"col_cell": np.array([0, 0, 1, -1], np.int32)}, "cell out of range"),
        ({"col_cell": np.zeros(3, np.int32)}, "cells and words differ"),
        ({"n_words": 4}, "out has the wrong shape"),
        ({"grid_cols": 3}, "whole number of rows of cells"),
        ({"grid_cols": 0}, "whole number of rows of cells"),
    ],
)
def test_count_cells_checks(core, change, message):
    arguments = {
        "words": np.zeros((3, 4), np.uint8),
        "row_cell": np.array([0, 1, 1], np.int32),
        "col_cell": np.array([0, 0, 1, 1], np.int32),
        "grid_cols": 2,
        "n_words": 5,
        "out": np.zeros((4, 5), np.int32),
    }
    core.count_cells(**arguments)
    with pytest.raises(ValueError, match=message):
        core.count_cells(**arguments | change)


def half_norms(centres):
    return (0.5 * (centres.astype(float) ** 2).sum(axis=1)).astype(np.float32)


def check_nearest(core, points, centres, m):
    n = len(points)
    scores = oracles.nearest_scores(points, centres, half_norms(centres))
    slack = 1e-5 * (1 + np.abs(scores).max(initial=0) + half_norms(centres).max())
    words, found = np.full((n, m), -1, np.int32), np.empty((n, m), np.float32)
    core.nearest_few(points, centres, half_norms(centres), m, words, found)
    best = -np.sort(-scores, axis=1)[:, :m]
    np.testing.assert_allclose(found, best, atol=slack)
    np.testing.assert_allclose(np.take_along_axis(scores, words, axis=1), best, atol=slack)
    assert all(len(set(row)) == m for row in words.tolist())
    word, score = np.full(n, -1, np.int32), np.empty(n, np.float32)
    core.nearest(points, centres, half_norms(centres), word, score)
    np.testing.assert_array_equal(word, words[:, 0])
    np.testing.assert_array_equal(score, found[:, 0])


@pytest.mark.parametrize("count", [0, 1, 5, 6, 7, 97])
@pytest.mark.parametrize("dimension", [1, 3, 128])
@pytest.mark.parametrize(("n_centres", "m"), [(1, 1), (15, 15), (16, 3), (17, 16), (300, 5)])
def test_nearest(core, count, dimension, n_centres, m):
    rng = np.random.default_rng(dimension)
    points = rng.random((count, dimension), np.float32)
    check_nearest(core, points, rng.random((n_centres, dimension), np.float32), m)


@given(data=st.data())
def test_nearest_of_any_shape(data):
    count, dimension = data.draw(st.integers(0, 20)), data.draw(st.integers(1, 9))
    n_centres = data.draw(st.integers(1, 150))
    m = data.draw(st.integers(1, min(16, n_centres)))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    points = rng.normal(size=(count, dimension)).astype(np.float32)
    centres = rng.normal(size=(n_centres, dimension)).astype(np.float32)
    for core in CORES:
        check_nearest(core, points, centres, m)


def test_ties_go_to_the_first_centre(core):
    rng = np.random.default_rng(0)
    centres = np.tile(rng.integers(-3, 4, (5, 4)).astype(np.float32), (60, 1))
    points = rng.integers(-3, 4, (13, 4)).astype(np.float32)
    scores = oracles.nearest_scores(points, centres, half_norms(centres))  # exact
    words, found = np.empty((13, 9), np.int32), np.empty((13, 9), np.float32)
    core.nearest_few(points, centres, half_norms(centres), 9, words, found)
    np.testing.assert_array_equal(words, np.argsort(-scores, axis=1, kind="stable")[:, :9])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"points": np.zeros((3, 5), np.float32)}, "differ in dimension"),
        ({"half_norms": np.zeros(9, np.float32)}, "half_norms has the wrong length"),
        ({"m": 0, "words": np.zeros((3, 0), np.int32)}, "out has the wrong shape"),
        ({"m": 3}, "out has the wrong shape"),
        ({"words": np.zeros((4, 2), np.int32)}, "out has the wrong shape"),
        (
            {"centres": np.zeros((1, 4), np.float32), "half_norms": np.zeros(1, np.float32)},
            "m is out of range",
        ),
    ],
)
def test_nearest_checks(core, change, message):
    arguments = {
        "points": np.zeros((3, 4), np.float32),
        "centres": np.zeros((8, 4), np.float32),
        "half_norms": np.zeros(8, np.float32),
        "m": 2,
        "words": np.zeros((3, 2), np.int32),
        "scores": np.zeros((3, 2), np.float32),
    }
    core.nearest_few(**arguments)
    with pytest.raises(ValueError, match=message):
        core.nearest_few(**arguments | change)
    short = np.zeros(2, np.int32)
    with pytest.raises(ValueError, match="out has the wrong length"):
        core.nearest(*list(arguments.values())[:3], short, np.zeros(3, np.float32))
