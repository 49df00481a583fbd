from unittest import mock

import numpy as np
import pytest

import hilbin.detect.learning as learning
from hilbin.detect.calibration import HARD, HardRows
from hilbin.detect.template import Template


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
