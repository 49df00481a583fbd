"""The compiled loops over images and words, at every instruction level."""

import importlib
from pathlib import Path

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilbin._core import LEVELS
from hilbin.images import pixel_words

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


@pytest.mark.parametrize("shape", SHAPES)
def test_lab(core, shape):
    rgb = random_image((*shape, 3))
    out = np.full(rgb.shape, 77, np.uint8)
    core.lab(rgb, pixel_words._LINEAR, pixel_words._TO_XYZ, out)
    assert (np.abs(out - oracles.cie_lab(rgb)) <= 0.5 + 2e-3).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_color_cells(core, shape):
    values = random_image((*shape, 3))
    tables = np.random.default_rng(0).integers(0, 1000, (3, 256)).astype(np.int32)
    out = np.full(shape, -1, np.int32)
    core.color_cells(values, tables, out)
    np.testing.assert_array_equal(out, sum(tables[c][values[..., c]] for c in range(3)))


def test_colors_refuse_what_does_not_fit(core):
    rgb, linear = random_image((4, 5, 3)), pixel_words._LINEAR
    with pytest.raises(ValueError, match="wrong shape"):
        core.lab(rgb, linear[:9], pixel_words._TO_XYZ, np.empty_like(rgb))
    with pytest.raises(ValueError, match="out has the wrong shape"):
        core.lab(rgb, linear, pixel_words._TO_XYZ, np.empty((4, 4, 3), np.uint8))
    with pytest.raises(ValueError, match="tables has the wrong shape"):
        core.color_cells(rgb, np.zeros((3, 255), np.int32), np.empty((4, 5), np.int32))
    with pytest.raises(ValueError, match="out has the wrong shape"):
        core.color_cells(rgb, np.zeros((3, 256), np.int32), np.empty((5, 4), np.int32))


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


def half_norms(centers):
    return (0.5 * (centers.astype(float) ** 2).sum(axis=1)).astype(np.float32)


def check_nearest(core, points, centers, m):
    n = len(points)
    scores = oracles.nearest_scores(points, centers, half_norms(centers))
    slack = 1e-5 * (1 + np.abs(scores).max(initial=0) + half_norms(centers).max())
    words, found = np.full((n, m), -1, np.int32), np.empty((n, m), np.float32)
    core.nearest_few(points, centers, half_norms(centers), m, words, found)
    best = -np.sort(-scores, axis=1)[:, :m]
    np.testing.assert_allclose(found, best, atol=slack)
    np.testing.assert_allclose(np.take_along_axis(scores, words, axis=1), best, atol=slack)
    assert all(len(set(row)) == m for row in words.tolist())
    word, score = np.full(n, -1, np.int32), np.empty(n, np.float32)
    core.nearest(points, centers, half_norms(centers), word, score)
    np.testing.assert_array_equal(word, words[:, 0])
    np.testing.assert_array_equal(score, found[:, 0])


@pytest.mark.parametrize("count", [0, 1, 5, 6, 7, 97])
@pytest.mark.parametrize("dimension", [1, 3, 128])
@pytest.mark.parametrize(("n_centers", "m"), [(1, 1), (15, 15), (16, 3), (17, 16), (300, 5)])
def test_nearest(core, count, dimension, n_centers, m):
    rng = np.random.default_rng(dimension)
    points = rng.random((count, dimension), np.float32)
    check_nearest(core, points, rng.random((n_centers, dimension), np.float32), m)


@given(data=st.data())
def test_nearest_of_any_shape(data):
    count, dimension = data.draw(st.integers(0, 20)), data.draw(st.integers(1, 9))
    n_centers = data.draw(st.integers(1, 150))
    m = data.draw(st.integers(1, min(16, n_centers)))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    points = rng.normal(size=(count, dimension)).astype(np.float32)
    centers = rng.normal(size=(n_centers, dimension)).astype(np.float32)
    for core in CORES:
        check_nearest(core, points, centers, m)


def test_ties_go_to_the_first_center(core):
    rng = np.random.default_rng(0)
    centers = np.tile(rng.integers(-3, 4, (5, 4)).astype(np.float32), (60, 1))
    points = rng.integers(-3, 4, (13, 4)).astype(np.float32)
    scores = oracles.nearest_scores(points, centers, half_norms(centers))  # exact
    words, found = np.empty((13, 9), np.int32), np.empty((13, 9), np.float32)
    core.nearest_few(points, centers, half_norms(centers), 9, words, found)
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
            {"centers": np.zeros((1, 4), np.float32), "half_norms": np.zeros(1, np.float32)},
            "m is out of range",
        ),
    ],
)
def test_nearest_checks(core, change, message):
    arguments = {
        "points": np.zeros((3, 4), np.float32),
        "centers": np.zeros((8, 4), np.float32),
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


def smooth_image(shape, seed=0):
    rng = np.random.default_rng([seed, *shape])
    return (40 * rng.normal(size=shape).cumsum(axis=1)).astype(np.float32)


def sift(core, image, bin_size, step):
    frames = np.prod(core.dense_sift_grid(*image.shape, bin_size, step))
    descriptors, norms = np.full((frames, 128), 7, np.float32), np.full(frames, 7, np.float32)
    core.dense_sift(image, bin_size, step, descriptors, norms)
    return descriptors, norms


@pytest.mark.parametrize("shape", [(0, 0), (1, 1), (4, 4), (7, 9), (13, 12), (13, 13), (25, 34)])
@pytest.mark.parametrize(("bin_size", "step"), [(1, 1), (2, 3), (4, 8), (4, 2), (5, 1)])
def test_dense_sift(core, shape, bin_size, step):
    image = smooth_image(shape)
    descriptors, norms = sift(core, image, bin_size, step)
    expected, expected_norms = oracles.dense_sift(image, bin_size, step)
    assert descriptors.shape == expected.shape
    np.testing.assert_allclose(descriptors, expected, atol=2e-6)
    np.testing.assert_allclose(norms, expected_norms, rtol=1e-5)


@pytest.mark.parametrize(
    ("shape", "grid"), [((12, 40), (0, 4)), ((13, 21), (1, 2)), ((21, 20), (2, 1))]
)
def test_the_grid_of_dense_sift_begins_at_the_border(core, shape, grid):
    assert core.dense_sift_grid(*shape, 4, 8) == grid


@pytest.mark.parametrize("angle", range(8))
def test_orientations_of_dense_sift(core, angle):
    """A slope in direction 45 degrees times k, rows downwards, fills orientation k alone."""
    y, x = np.mgrid[:13, :13]
    slope = np.cos(angle * np.pi / 4) * x + np.sin(angle * np.pi / 4) * y
    descriptor = sift(core, slope.astype(np.float32), 4, 8)[0].reshape(4, 4, 8)
    np.testing.assert_allclose(descriptor[..., angle], 0.25, atol=0.08)
    np.testing.assert_allclose(np.delete(descriptor, angle, axis=2), 0, atol=1e-5)


def test_dense_sift_of_a_flat_image(core):
    descriptors, norms = sift(core, np.full((20, 20), 9, np.float32), 4, 2)
    assert not descriptors.any()
    assert not norms.any()


@given(contrast=st.floats(1e-3, 1e3), shift=st.floats(-100, 100), seed=st.integers(0, 9))
def test_dense_sift_knows_no_contrast(contrast, shift, seed):
    image = smooth_image((17, 19), seed)
    changed = (contrast * (image + np.float32(shift))).astype(np.float32)
    for core in CORES:
        descriptors, norms = sift(core, image, 4, 2)
        others, other_norms = sift(core, changed, 4, 2)
        np.testing.assert_allclose(others, descriptors, atol=1e-4)
        np.testing.assert_allclose(other_norms, contrast * norms, rtol=1e-3)
        np.testing.assert_allclose(np.linalg.norm(descriptors, axis=1), 1, atol=1e-6)


def test_dense_sift_checks(core):
    image, norms = np.zeros((20, 20), np.float32), np.zeros(1, np.float32)
    with pytest.raises(ValueError, match="descriptors has the wrong shape"):
        core.dense_sift(image, 4, 8, np.zeros((2, 128), np.float32), norms)
    with pytest.raises(ValueError, match="descriptors has the wrong shape"):
        core.dense_sift(image, 4, 8, np.zeros((1, 64), np.float32), norms)
    with pytest.raises(ValueError, match="norms has the wrong length"):
        core.dense_sift(image, 4, 8, np.zeros((1, 128), np.float32), np.zeros(2, np.float32))
    for bin_size, step in ((0, 8), (4, 0), (-1, 1)):
        with pytest.raises(ValueError, match="at least 1"):
            core.dense_sift(image, bin_size, step, np.zeros((1, 128), np.float32), norms)
        with pytest.raises(ValueError, match="at least 1"):
            core.dense_sift_grid(20, 20, bin_size, step)
    huge = 2**62
    assert core.dense_sift_grid(20, 20, huge, 1) == (0, 0)


def hogs(core, image, cell):
    rows, columns = core.hog_grid(*image.shape[:2], cell)
    cells = np.full((rows, columns, 31), 7, np.float32)
    blocks = np.full((max(rows - 1, 0), max(columns - 1, 0), 36), 7, np.float32)
    core.fhog(image, cell, cells)
    core.hog(image, cell, blocks)
    return cells, blocks


@pytest.mark.parametrize(
    "shape", [(0, 0), (1, 9), (2, 2), (3, 3), (8, 7), (13, 10), (16, 23), (9, 11, 1), (10, 9, 3)]
)
@pytest.mark.parametrize("cell", [1, 3, 4, 8])
def test_hogs(core, shape, cell):
    image = random_image(shape).astype(np.float32)
    cells, blocks = hogs(core, image, cell)
    np.testing.assert_allclose(cells, oracles.fhog(image, cell), atol=2e-6)
    np.testing.assert_allclose(blocks, oracles.hog(image, cell), atol=2e-6)


@given(
    rows=st.integers(0, 30),
    columns=st.integers(0, 30),
    cell=st.integers(1, 9),
    scale=st.floats(1, 100),
)
def test_hogs_are_not_negative_and_know_little_contrast(rows, columns, cell, scale):
    image = random_image((rows, columns)).astype(np.float32)
    for core in CORES:
        cells, blocks = hogs(core, image, cell)
        scaled, scaled_blocks = hogs(core, np.float32(scale) * image, cell)
        for made in (cells, blocks):
            assert made.min(initial=0) >= 0
            assert made.max(initial=0) <= 1 + 1e-6
        np.testing.assert_allclose(scaled, cells, atol=1e-3)
        np.testing.assert_allclose(scaled_blocks, blocks, atol=1e-3)


def test_hog_checks(core):
    image, room = np.zeros((16, 24), np.float32), np.zeros((2, 3, 31), np.float32)
    core.fhog(image, 8, room)
    for wrong in ((2, 2, 31), (3, 3, 31), (2, 3, 36)):
        with pytest.raises(ValueError, match="out has the wrong shape"):
            core.fhog(image, 8, np.zeros(wrong, np.float32))
    with pytest.raises(ValueError, match="out has the wrong shape"):
        core.hog(image, 8, np.zeros((2, 3, 36), np.float32))
    for cell in (0, -3):
        with pytest.raises(ValueError, match="cell is at least 1"):
            core.fhog(image, cell, room)
        with pytest.raises(ValueError, match="cell is at least 1"):
            core.hog_grid(16, 24, cell)
    for wrong in (np.zeros(16, np.float32), np.zeros((16, 24, 0), np.float32)):
        with pytest.raises(ValueError, match="image is not"):
            core.fhog(wrong, 8, room)


@pytest.fixture(scope="module")
def frozen():
    """What VLFeat 0.9.21 and scikit-image 0.26 made of one image."""
    with np.load(Path(__file__).with_name("fixtures") / "vlfeat.npz") as arrays:
        return dict(arrays)


@pytest.mark.parametrize(("bin_size", "step"), [(4, 8), (5, 11)])
def test_dense_sift_is_that_of_vlfeat(core, frozen, bin_size, step):
    descriptors, norms = sift(core, frozen["image"].astype(np.float32), bin_size, step)
    theirs = frozen[f"sift_{bin_size}_{step}"] / 2048
    cosine = (descriptors * theirs).sum(axis=1) / np.linalg.norm(theirs, axis=1)
    assert cosine.min() > 0.9999
    np.testing.assert_allclose(descriptors, theirs, atol=0.01)  # VLFeat's angles are to 0.01
    np.testing.assert_allclose(norms, frozen[f"norms_{bin_size}_{step}"], rtol=1e-5)


@pytest.mark.parametrize(
    ("image", "cell", "name"),
    [("image", 8, "fhog_8"), ("image", 5, "fhog_5"), ("color", 8, "fhog_color_8")],
)
def test_fhog_is_that_of_vlfeat(core, frozen, image, cell, name):
    cells, _ = hogs(core, frozen[image].astype(np.float32), cell)
    np.testing.assert_allclose(cells, frozen[name], atol=3e-4)  # kept in float16


def test_lbp_is_that_of_scikit_image(core, frozen):
    for uniform, method in ((False, "default"), (True, "nri_uniform")):
        out = inner(frozen["image"])
        core.lbp(frozen["image"], out, uniform)
        np.testing.assert_array_equal(out, frozen[f"lbp_{method}"])
