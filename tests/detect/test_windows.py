"""Pyramids, windows as rows of a risk, templates with parts, and the working set."""

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilbin.detect import CellPyramid, CodedWindowRows, Template, WindowRows
from hilbin.detect.learning import TrainingWindows, overlaps
from hilbin.detect.pyramid import SLACK, mirror_order
from hilbin.detect.template import CONTEXT
from hilbin.detect.windows import MirroredRows
from hilbin.detect.working_set import Descent, first_rows, minimize_hinge
from hilbin.solvers import Hinge, Risk, bundle

SHAPE = (4, 5)


def noise(seed, size=(60, 84)):
    """An image without ties between orientations: these are not the same in a mirror."""
    return np.random.default_rng(seed).random((*size, 3), np.float32)


PYRAMIDS = [CellPyramid.of(noise(seed), smallest=(3, 3), nodes=True) for seed in range(3)]
WORDS = np.random.default_rng(0).random((20, 32)).astype(np.float32) / 5
CODED = [pyramid.encoded(WORDS) for pyramid in PYRAMIDS]
ROWS = {
    "cells": WindowRows(PYRAMIDS, SHAPE),
    "codes": CodedWindowRows(CODED, SHAPE),
    "mirrored": MirroredRows(WindowRows(PYRAMIDS, SHAPE)),
    "mirrored codes": MirroredRows(CodedWindowRows(CODED, SHAPE)),
    "some": WindowRows(PYRAMIDS, SHAPE).chosen(np.array([700, 3, 4, 900, 3])),
    "some codes": CodedWindowRows(CODED, SHAPE).chosen(np.array([700, 3, 4, 900, 3])),
    "some mirrored": MirroredRows(WindowRows(PYRAMIDS, SHAPE)).chosen(np.array([2000, 3, 4, 900])),
}


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_gradient_is_the_transpose_of_scores(kind, tasks):
    rows, rng = ROWS[kind], np.random.default_rng(0)
    V = rng.normal(size=(tasks, rows.shape[1])).astype(np.float32)
    S = rng.normal(size=(rows.shape[0], tasks)).astype(np.float32)
    scores, gradient = rows.scores(V), rows.gradient(S)
    assert scores.shape == S.shape
    assert gradient.shape == V.shape
    left, right = (S * scores).sum(dtype=float), (gradient * V).sum(dtype=float)
    assert abs(left - right) < 1e-5 * np.abs(S * scores).sum()


def test_windows_are_rows_of_cells():
    rows = ROWS["cells"]
    V = np.random.default_rng(0).normal(size=(1, rows.shape[1])).astype(np.float32)
    which = np.array([0, 5, 450])
    windows = [
        PYRAMIDS[0].window(*(int(v) for v in place), SHAPE).ravel()
        for place in zip(*PYRAMIDS[0].places(which, SHAPE), strict=True)
    ]
    np.testing.assert_allclose(rows.scores(V)[which, 0], windows @ V[0], rtol=1e-4, atol=1e-4)


def test_mirror_rows_are_windows_of_mirrored_images():
    size = (64, 96)  # whole cells, so that the grids of both fit
    image = noise(7, size)
    plain = CellPyramid.of(image, smallest=(8, 12))
    mirror = CellPyramid.of(np.ascontiguousarray(image[:, ::-1]), smallest=(8, 12))
    V = np.random.default_rng(0).normal(size=(1, 4 * 32 * 5)).astype(np.float32)
    both = MirroredRows(WindowRows([plain], SHAPE)).scores(V)[:, 0]
    grid = plain.grids(SHAPE)[0]
    seen = both[plain.n_places(SHAPE) :][: grid.prod()].reshape(grid)[:, ::-1]
    expected = WindowRows([mirror], SHAPE).scores(V)[: grid.prod(), 0].reshape(grid)
    np.testing.assert_allclose(seen, expected, atol=1e-4)


def test_codes_score_like_their_words():
    V = np.random.default_rng(0).normal(size=(2, 4 * 32 * 5)).astype(np.float32)
    decoded = [
        CellPyramid(c.size, c.shapes, c.scales, c.nodes, np.concatenate([
            *(c.window(k, 0, 0, tuple(s)).ravel() for k, s in enumerate(c.shapes)),
            np.zeros(SLACK, np.float32),
        ]))
        for c in CODED
    ]  # fmt: skip
    expected = WindowRows(decoded, SHAPE).scores(V)
    np.testing.assert_allclose(ROWS["codes"].scores(V), expected, atol=1e-4)


@settings(max_examples=20, deadline=None)
@given(st.floats(0, 50), st.floats(0, 30), st.floats(12, 60), st.floats(12, 60))
def test_overlaps_are_those_of_all_windows(x, y, width, height):
    box = np.array([[x, y, x + width, y + height]])
    found, values = overlaps(PYRAMIDS[0], SHAPE, box, 0.3)[0]
    boxes = PYRAMIDS[0].boxes(np.arange(PYRAMIDS[0].n_places(SHAPE)), SHAPE, CONTEXT)
    low, high = np.maximum(boxes[:, :2], box[0, :2]), np.minimum(boxes[:, 2:], box[0, 2:])
    common = np.maximum(high - low, 0).prod(axis=1)
    area = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1) + width * height
    iou = common / (area - common)
    clear = np.abs(iou - 0.3) > 1e-9
    assert set(found[clear[found]]) == set(np.flatnonzero((iou >= 0.3) & clear))
    np.testing.assert_allclose(values, iou[found], rtol=1e-6)


def template_with_parts(seed=0, n_parts=3):
    rng = np.random.default_rng(seed)
    return Template(
        root=rng.normal(size=(4, 32, 5)).astype(np.float32),
        bias=0.5,
        parts=rng.normal(size=(n_parts, 6, 32, 6)).astype(np.float32),
        anchors=np.array([[0, 0], [3, 5], [1, 2]], np.int32)[:n_parts],
        deformation=rng.normal(size=(n_parts, 4)).astype(np.float32) / 5,
    )


def test_scores_with_parts_are_those_of_all_places():
    template, pyramid = template_with_parts(), PYRAMIDS[0]
    scores = template.scores(pyramid)
    begin = 0
    for level in range(len(pyramid.shapes)):
        expected = oracles.template_scores(
            template, pyramid.level(level), pyramid.node_level(level)
        )
        own = scores[begin : begin + expected.size].reshape(expected.shape)
        np.testing.assert_allclose(own, expected, atol=1e-3)
        begin += expected.size
    assert begin == scores.size


@pytest.mark.parametrize("quantile", [0.0, 0.5, 0.9, 0.999])
def test_parts_only_where_the_root_allows(quantile):
    template, pyramid = template_with_parts(), PYRAMIDS[1]
    roots = pyramid.filter_scores(template.root[None])[0] + np.float32(template.bias)
    least = float(np.quantile(roots, quantile))
    lazy = Template(**{**vars(template), "least": least})
    exact = lazy.scores(pyramid, exact=True)
    expected = np.where(roots >= np.float32(least), exact, -np.inf)
    np.testing.assert_allclose(lazy.scores(pyramid), expected, atol=1e-4)


def test_score_is_the_product_of_weights_and_features():
    template, pyramid = template_with_parts(), PYRAMIDS[2]
    which = np.array([0, 17, 333, pyramid.n_places(template.shape) - 1])
    features = template.features(pyramid, which)
    np.testing.assert_allclose(
        features @ template.weights, template.scores(pyramid)[which], rtol=1e-4, atol=1e-3
    )
    again = template.with_weights(template.weights)
    np.testing.assert_array_equal(again.weights, template.weights)
    np.testing.assert_allclose(again.scores(pyramid), template.scores(pyramid), atol=1e-4)


def test_the_mirrored_template_finds_the_mirror_image():
    size = (64, 96)
    image = noise(3, size)
    plain = CellPyramid.of(image, smallest=(8, 12), nodes=True)
    mirror = CellPyramid.of(np.ascontiguousarray(image[:, ::-1]), smallest=(8, 12), nodes=True)
    template = template_with_parts()
    grid = plain.grids(template.shape)[0]
    here = template.mirrored().scores(plain)[: grid.prod()].reshape(grid)[:, ::-1]
    there = template.scores(mirror)[: grid.prod()].reshape(grid)
    np.testing.assert_allclose(here, there, atol=1e-3)
    which = np.array([5, 40])
    model = template.mirrored()
    features = template.mirrored_features(model.features(plain, which))
    np.testing.assert_allclose(
        features @ template.weights, model.scores(plain)[which], rtol=1e-4, atol=1e-3
    )


def test_a_template_without_parts_is_mirrored():
    template = Template.rigid(np.random.default_rng(0).normal(size=8 * 32 * 8 + 1), (8, 8))
    mirrored = template.mirrored()
    np.testing.assert_array_equal(
        mirrored.root.ravel(), template.root.ravel()[mirror_order((8, 8))]
    )
    np.testing.assert_array_equal(mirrored.mirrored().weights, template.weights)


def test_the_working_set_has_the_optimum_of_all_rows():
    rng = np.random.RandomState(0)
    rows = MirroredRows(WindowRows(PYRAMIDS, SHAPE))
    n = rows.shape[0]
    targets = np.full(n, -1, np.float32)
    targets[[10, 700, 1500]] = 1
    weights = np.full(n, 0.02, np.float32)
    weights[50:80] = 0
    solved = minimize_hinge(
        rows, targets, weights, Descent(first_rows(targets, weights, rng)),
        constant=100.0, tol=1e-3, max_iter=100,
    )  # fmt: skip
    all_rows = bundle(Risk(rows, Hinge(), targets, weights, constant=100.0), 1.0, tol=1e-3)
    value = float(all_rows.objective[0])
    assert solved.result.converged
    assert solved.result.objective == pytest.approx(value, rel=3e-3)
    assert solved.result.objective - solved.result.gap <= value * (1 + 1e-6)
    coef = solved.result.coef
    expected = rows.scores(coef[:, :-1])[:, 0] + 10 * coef[0, -1]
    np.testing.assert_allclose(solved.scores, expected, atol=1e-4)


def test_windows_beside_objects_are_negative_and_ignored_ones_do_not_count():
    truth = np.array([[20.0, 16, 44, 32], [50, 30, 74, 46]])
    flags = [np.array([True, True])], [np.array([False, True])]
    windows = TrainingWindows(PYRAMIDS[:1], SHAPE, [truth], *flags)
    (_, first), (places, second) = overlaps(PYRAMIDS[0], SHAPE, truth, 0.3)
    assert len(windows.candidates) == 1
    assert windows.candidates[0].iou.min() >= min(0.7, first.max())
    assert not windows.negative[places[second >= 0.3]].any()
    assert windows.negative.sum() > 0.8 * windows.negative.size
