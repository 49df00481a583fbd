from statistics import NormalDist
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scenes import scene

import hilbin.detect.learning as learning
from hilbin.detect import DeformableDetector, WindowRows
from hilbin.detect.calibration import HARD, HardRows, best_threshold
from hilbin.detect.matching import Matches
from hilbin.detect.template import Template
from hilbin.detect.training import Training
from hilbin.detect.training_images import TrainingImages


def test_some_hard_windows_stand_for_all():
    scores = np.random.default_rng(0).normal(-1.0, 0.5, 1000)
    negative = np.arange(1000) % 7 > 0
    hard = np.flatnonzero(negative & (scores > HARD))
    with mock.patch.object(learning, "MOST_HARD", 50):
        taken, weight = learning._hard(negative, scores)
    assert len(taken) == 50
    assert set(taken) <= set(hard)
    assert 50 * weight == pytest.approx(len(hard))
    assert np.mean(scores[taken]) == pytest.approx(np.mean(scores[hard]), abs=0.03)
    everything, weight = learning._hard(negative, scores)
    np.testing.assert_array_equal(everything, hard)
    assert weight == 1


def test_weight_is_repetition():
    rng = np.random.default_rng(1)
    weights = rng.normal(size=2 * 2 * 32 + 1).astype(np.float32)
    template = Template.rigid(weights, (2, 2))
    features = rng.normal(size=(40, weights.size)).astype(np.float32)
    targets = np.where(features[:, 0] + rng.normal(size=40) > 0, 1.0, -1.0)
    counts = rng.integers(1, 4, 40)
    image = np.arange(40) % 5
    once = HardRows(features, targets, counts.astype(float), image)
    rows = (np.repeat(values, counts, axis=0) for values in (features, targets))
    often = HardRows(*rows, np.ones(counts.sum()), np.repeat(image, counts))
    without = np.array([0, 3])
    first, second = (one.learned(template, 0.1, 1e-6, without=without) for one in (once, often))
    np.testing.assert_allclose(first.root, second.root, atol=1e-3)


def matches_of(true, false, n_truths):
    scores = np.concatenate([true, false])
    order = np.argsort(-scores, kind="stable")
    truth = np.where(np.arange(len(scores)) < len(true), np.arange(len(scores)), -1)
    none = np.zeros(len(scores), int)
    return Matches(none, np.arange(len(scores)), scores[order], truth[order], n_truths)


def test_the_threshold_lies_between_what_is_true_and_what_is_false():
    threshold = best_threshold(matches_of([0.8, 0.9, 1.0], [-0.9, -0.7], 3))
    assert -0.5 < threshold < 0.6
    assert best_threshold(matches_of([], [0.3, 0.2], 3)) == 0
    assert best_threshold(matches_of([0.4], [], 1)) < 0.4


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 30), st.integers(0, 40))
def test_the_threshold_is_nearly_that_of_the_best_f1(seed, n_true, n_false):
    rng = np.random.default_rng(seed)
    matches = matches_of(rng.normal(0.5, 0.3, n_true), rng.normal(-1, 0.5, n_false), n_true + 2)
    threshold = best_threshold(matches)
    scores, true = matches.scores, matches.truth >= 0
    width = max(0.02, 1.06 * scores[true].std() * n_true**-0.2)

    def smoothed(t):  # slow and obvious
        above = [NormalDist(s, width).cdf(t) for s in scores]
        total = sum(1 - share for share in above)
        return (
            2
            * sum(1 - a for a, yes in zip(above, true, strict=True) if yes)
            / (total + matches.n_truths)
        )

    best = max(smoothed(t) for t in np.linspace(scores.min() - 1, scores.max() + 1, 150))
    assert smoothed(threshold) > best - 0.01
    moved = Matches(matches.image, matches.box, scores + 3, matches.truth, matches.n_truths)
    assert best_threshold(moved) == pytest.approx(threshold + 3, abs=1e-6)


def test_hard_windows_of_numbers_join_those_of_codes():
    images, boxes, _ = zip(*(scene(seed) for seed in range(3)), strict=True)
    model = DeformableDetector(area=900, n_words=8, random_state=0)
    training = Training(model, TrainingImages(images, boxes), lambda *stage: None)
    training.read()
    (learned,) = training.learn()
    again = learning.rescored(learned, training.pyramid_of)
    pyramids = [training.pyramid_of(i) for i in range(3)]
    numbers = WindowRows(pyramids, learned.template.shape)
    expected = numbers.scores(learned.template.root.reshape(1, -1))[:, 0] + learned.template.bias
    np.testing.assert_allclose(again.scores[0], expected, atol=1e-4)
    codes, both = (
        learning.hard_rows(one, training.pyramid_of, also=also)
        for one, also in ((learned, None), (again, learned))
    )
    hard = [(one.scores[0] > HARD) & one.windows.negative for one in (learned, again)]
    assert 0 < hard[0].sum() < (hard[0] | hard[1]).sum()
    assert (both.targets < 0).sum() > (codes.targets < 0).sum()
    for rows in (codes, both):
        assert (rows.targets > 0).sum() == 2 * len(learned.windows.candidates)
