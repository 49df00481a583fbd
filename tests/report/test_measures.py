import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.metrics import (
    average_precision_score,
    confusion_matrix,
    precision_recall_fscore_support,
)

from hilbin.report.measures import Measures, turns, wilson


@given(n=st.integers(1, 500), data=st.data())
def test_wilson_is_scipys(n, data):
    right = data.draw(st.integers(0, n))
    low, high = wilson(right, n)
    other = binomtest(right, n).proportion_ci(0.95, method="wilson")
    assert low == pytest.approx(other.low, abs=1e-12)
    assert high == pytest.approx(other.high, abs=1e-12)
    assert 0 <= low <= right / n <= high <= 1


@pytest.mark.parametrize(("n", "c"), [(200, 5), (1, 2), (7, 4), (90, 30)])
def test_per_class_numbers_are_scikit_learns(evidence_of, n, c):
    evidence = evidence_of(n, c, images=False, right=1.0)
    m = Measures(evidence)
    np.testing.assert_array_equal(
        m.confusion, confusion_matrix(evidence.truth, m.predicted, labels=range(c))
    )
    precision, recall, f1, support = precision_recall_fscore_support(
        evidence.truth, m.predicted, labels=range(c), zero_division=np.nan
    )
    np.testing.assert_allclose(m.precision, precision)
    np.testing.assert_allclose(m.recall, recall)
    present = support > 0
    np.testing.assert_allclose(m.f1[present], f1[present])
    assert np.isnan(m.f1[~present]).all()
    assert np.isnan(m.average_precision[~present]).all()
    for k in np.flatnonzero(present):
        wanted = average_precision_score(evidence.truth == k, evidence.scores[:, k])
        assert m.average_precision[k] == pytest.approx(wanted)
    assert [curve is None for curve in m.curves] == (~present).tolist()
    assert m.balanced_accuracy == pytest.approx(recall[present].mean())


@given(
    margins=st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=1, max_size=12),
    seed=st.integers(0, 99),
)
def test_kept_part_by_counting(margins, seed):
    from hilbin.inspection import Evidence

    n = len(margins)
    truth = np.random.default_rng(seed).integers(0, 2, n)
    scores = np.stack([np.array(margins), np.zeros(n)], axis=1)
    evidence = Evidence(title="", classes="ab", truth=truth, scores=scores, names=["x"] * n)
    m = Measures(evidence)
    count, right = m.kept
    wanted = [
        (np.sum(m.margin >= cut), np.sum(m.right[m.margin >= cut]))
        for cut in sorted(set(margins), reverse=True)
    ]
    assert list(zip(count, right, strict=True)) == wanted
    assert count[-1] == n
    share, accuracy = m.accuracy_when_rejecting(0)
    assert (share, accuracy) == (0, m.accuracy)


@given(st.lists(st.integers(0, 4), max_size=30))
def test_turns_by_counting(values):
    wanted = [values[:at].count(value) for at, value in enumerate(values)]
    assert turns(np.array(values, int)).tolist() == wanted


def test_runner_up_and_margin(evidence_of):
    m = Measures(evidence_of(50, 6))
    ordered = np.argsort(m.evidence.scores, axis=1)
    np.testing.assert_array_equal(m.predicted, ordered[:, -1])
    np.testing.assert_array_equal(m.runner_up, ordered[:, -2])
    assert (m.margin >= 0).all()
    assert (m.lead_over_truth[m.right] == 0).all()
    assert (m.lead_over_truth[~m.right] > 0).all()
