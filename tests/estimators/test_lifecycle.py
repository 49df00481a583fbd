"""What is left of an estimator when a fit fails, is interrupted, or is one of many."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from hilbin.estimators import HistogramBinner, IntersectionSVC, IntersectionSVR
from hilbin.estimators._fit import class_numbers

X, Y = load_iris(return_X_y=True)


def test_a_failed_fit_is_no_fit():
    model = IntersectionSVC()
    with pytest.raises(ValueError, match="two classes"):
        model.fit(X, np.zeros(150))
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint64, bool, str])
def test_numbers_of_classes(dtype):
    """Counting finds what sorting does."""
    few = np.random.default_rng(0).integers(0, 3, 999)
    for y in (few, 250 * few - 128, few + few.max(), few // 9, np.append(few, 2**40)):
        y = y.astype(dtype)
        y = y + y.dtype.type(2**63) if dtype is np.uint64 else y
        classes, numbers = class_numbers(y)
        expected = np.unique(y, return_inverse=True)
        assert classes.dtype == y.dtype
        np.testing.assert_array_equal(classes, expected[0])
        np.testing.assert_array_equal(numbers, expected[1])


def test_path_leaves_the_estimator_as_it_was():
    model = IntersectionSVC()
    model.path(X, Y, [1e-4, 1e-3])
    assert vars(model) == vars(IntersectionSVC())


class Interrupt:
    """Presses Ctrl-C when the second problem begins."""

    def setup(self, estimator, context): ...
    def teardown(self, estimator, context): ...
    def on_fit_task_end(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context):
        if context.task_name == "1":
            raise KeyboardInterrupt


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_between_sweeps_keeps_what_was_learned(n_jobs):
    pytest.importorskip("sklearn.callback")
    model = IntersectionSVC(n_jobs=n_jobs, warm_start=True).set_callbacks(Interrupt())
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert not model.converged_
    assert model.score(X, Y) > 0.5
    resumed = model.set_callbacks().fit(X, Y)
    assert resumed.converged_
    np.testing.assert_allclose(
        resumed.decision_function(X), IntersectionSVC().fit(X, Y).decision_function(X), atol=1e-6
    )


def test_epsilon_may_be_any_number():
    one, same = (IntersectionSVR(epsilon=e).fit(X, Y) for e in (0.1, np.float64(0.1)))
    np.testing.assert_array_equal(one.predict(X), same.predict(X))


def test_huge_targets():
    large, small = (IntersectionSVR().fit(X, Y * size).predict(X) for size in (1e200, 1.0))
    np.testing.assert_allclose(large / 1e200, small, atol=1e-7)


def test_the_binner_refuses_negative_weights():
    with pytest.raises(ValueError, match=r"sample_weight\[1\] = -1"):
        HistogramBinner().fit(X[:3], sample_weight=[1, -1, 1])


def test_constant_features_leave_the_common_class():
    y = np.array([0] + [1] * 9)
    assert IntersectionSVC().fit(np.full((10, 2), 0.5), y).predict([[0.5, 0.5]]) == 1
