"""Reliability of probabilities, and suspicious labels."""

import numpy as np
import pytest
from sklearn.metrics import log_loss

from hilbin.inspection import reliability, suspicious_labels


def test_bins_by_hand():
    p = np.array([[0.95, 0.05], [0.91, 0.09], [0.4, 0.6], [0.35, 0.65], [0.5, 0.5], [0.0, 1.0]])
    y = np.array([0, 1, 1, 0, 0, 1])
    found = reliability(p, y)
    assert found.count.tolist() == [1, 2, 3]
    assert found.confidence == pytest.approx([0.5, 0.625, (0.95 + 0.91 + 1) / 3])
    assert found.accuracy == pytest.approx([1, 0.5, 2 / 3])
    distances = np.abs(found.accuracy - found.confidence)
    assert found.expected_calibration_error == pytest.approx((distances * [1, 2, 3]).sum() / 6)
    assert found.log_loss == pytest.approx(log_loss(y, p))


def test_honest_probabilities_have_a_small_error():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), 20000)
    y = (p.cumsum(axis=1) < rng.uniform(size=(20000, 1))).sum(axis=1)
    assert reliability(p, y).expected_calibration_error < 0.015
    sure = p**4 / (p**4).sum(axis=1, keepdims=True)
    assert reliability(sure, y).expected_calibration_error > 0.1


def test_labels_of_any_kind_and_bad_input():
    p = [[0.9, 0.1], [0.2, 0.8]]
    assert reliability(p, ["no", "yes"]).accuracy.tolist() == [1, 1]
    assert reliability(p, ["no", "no"], classes=["no", "yes"]).accuracy.tolist() == [0, 1]
    with pytest.raises(ValueError, match="not classes of the model: maybe"):
        reliability(p, ["no", "maybe"], classes=["no", "yes"])
    with pytest.raises(ValueError, match=r"shape \(2, 1\)"):
        reliability(p, ["no", "no"])
    with pytest.raises(ValueError, match="between 0 and 1"):
        reliability([[1.5, -0.5], [0.5, 0.5]], ["no", "yes"])


def test_suspicious_labels():
    scores = np.array([[2.0, 0.5, 0.0], [0.0, 3.0, 1.0], [1.0, 1.2, 0.0], [np.nan] * 3])
    found = suspicious_labels(scores, ["b", "c", "a", "a"], ["a", "b", "c"])
    assert [(s.index, s.given, s.suggested, s.margin) for s in found] == [
        (1, "c", "b", 2.0),
        (0, "b", "a", 1.5),
    ]
    assert [s.name for s in found] == ["row 2", "row 1"]
    more = suspicious_labels(scores, ["b", "c", "a", "a"], ["a", "b", "c"], threshold=0.1)
    assert len(more) == 3
    one = suspicious_labels(scores, ["b", "c", "a", "a"], names=list("wxyz"), max_labels=1)
    assert [s.name for s in one] == ["x"]


def test_suspicious_labels_of_one_score():
    found = suspicious_labels([2.0, -2.0, 0.1], [False, False, True])
    assert [(s.given, s.suggested, s.margin) for s in found] == [("False", "True", 4.0)]
    with pytest.raises(ValueError, match=r"shape \(3, 2\)"):
        suspicious_labels(np.zeros((3, 4)), [0, 1, 1])
