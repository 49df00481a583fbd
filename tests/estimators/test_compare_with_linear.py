"""Intersection or linear: the verdict on data whose answer is known."""

import numpy as np
import pytest
import scipy.sparse as sp

from hilbin.estimators import IntersectionSVC, LinearComparison, compare_with_linear
from hilbin.estimators.compare_with_linear import _sample


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).random((600, 4))


@pytest.fixture(scope="module")
def middle(rows):
    """Whether a feature is neither low nor high: no line tells."""
    return np.abs(rows[:, 0] - 0.5) < 0.25


def test_a_feature_that_is_not_monotone_needs_the_intersection(rows, middle):
    found = compare_with_linear(rows, middle)
    assert found.verdict == "intersection"
    assert found.intersection > 0.9 > 0.7 > found.linear
    assert found.gain == pytest.approx(found.intersection - found.linear)
    assert 0 < found.standard_error < 0.03
    assert found.n_rows == 600
    assert compare_with_linear(rows, middle) == found


def test_linear_data_do_not(rows):
    noise = 0.05 * np.random.default_rng(1).normal(size=600)
    found = compare_with_linear(rows, rows @ [1, -1, 1, -1] + noise > 0)
    assert found.linear > 0.9
    assert found.verdict != "intersection" or found.gain < 0.02


def test_verdicts():
    assert LinearComparison(0.9, 0.8, 0.1, 0.04, 100).verdict == "intersection"
    assert LinearComparison(0.8, 0.9, -0.1, 0.04, 100).verdict == "linear"
    assert LinearComparison(0.9, 0.8, 0.1, 0.06, 100).verdict == "either"
    assert LinearComparison(0.9, 0.9, 0.0, 0.0, 100).verdict == "either"


def test_sparse_rows_labels_and_models(rows, middle):
    names = np.where(middle, "middle", "end")
    sparse = compare_with_linear(sp.csr_array(rows), names)
    assert sparse.verdict == "intersection"
    model = IntersectionSVC(n_bins=1)
    coarse = compare_with_linear(rows, names, model=model, n_jobs=2)
    assert coarse.intersection < sparse.intersection
    assert model.n_jobs is None  # it is a clone that is trained
    assert not hasattr(model, "classes_")


def test_samples_keep_the_shares_of_the_classes():
    y = np.repeat([0, 1, 2, 3], [9000, 900, 98, 2])
    chosen = _sample(y, 1000, 5, np.random.RandomState(0))
    assert np.bincount(y[chosen]).tolist() == [900, 90, 10]  # of two rows no fold is left
    assert np.unique(chosen).size == chosen.size
    assert np.bincount(y[_sample(y, 100, 5, np.random.RandomState(0))]).tolist() == [90, 9, 5]


def test_many_rows_are_sampled(rows, middle):
    found = compare_with_linear(rows, middle, max_rows=200)
    assert abs(found.n_rows - 200) <= 1
    assert found.verdict == "intersection"
    assert compare_with_linear(rows, middle, max_rows=200, random_state=1) != found


def test_bad_input(rows, middle):
    bad = rows.copy()
    bad[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        compare_with_linear(bad, middle)
    with pytest.raises(ValueError, match="Unknown label type"):
        compare_with_linear(rows, rows[:, 0])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        compare_with_linear(rows, middle[:-1])
    with pytest.raises(ValueError, match="fewer than two classes have at least cv=3 rows"):
        compare_with_linear(rows, np.arange(600) < 2)
    with pytest.raises(ValueError, match="fewer than two classes"):
        compare_with_linear(rows, np.zeros(600))
