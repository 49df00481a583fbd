"""Kernels inside scikit-learn."""

import numpy as np
import pytest
from catalogue import KERNELS
from sklearn.datasets import load_digits
from sklearn.decomposition import KernelPCA
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.svm import SVC, SVR, OneClassSVM

from hilbin.kernels import GCS, Chi2, Exponential, Gaussian, Intersection, JensenShannon

# Values are what counts here, not whether one could learn from the matrix.
pytestmark = pytest.mark.filterwarnings("ignore:the Gram matrix of")


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X[:600], y[:600], random_state=0)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_svc(kernel, digits):
    X, X_test, y, _ = digits
    X, X_test, y = X[:90] / 100, X_test[:40] / 100, y[:90]
    model = SVC(kernel=kernel).fit(X, y)
    K, K_test = kernel(X), kernel(X_test, X)
    precomputed = SVC(kernel="precomputed").fit(K, y)
    np.testing.assert_allclose(
        model.decision_function(X_test), precomputed.decision_function(K_test), atol=1e-6
    )


def test_histogram_kernels_beat_linear(digits):
    X, X_test, y, y_test = digits
    linear = SVC(kernel="linear").fit(X, y).score(X_test, y_test)
    for kernel in (
        Intersection(),
        Chi2(),
        JensenShannon(),
        Exponential(Chi2(), "median").resolve(X),
    ):
        assert SVC(kernel=kernel).fit(X, y).score(X_test, y_test) >= linear


def test_search_over_kernels(digits):
    X, _, y, _ = digits
    grid = {"svc__kernel": [Intersection(), *(Exponential(Chi2(), g) for g in (0.1, 1.0))]}
    search = GridSearchCV(make_pipeline(Normalizer("l1"), SVC(C=10)), grid, cv=2).fit(X, y)
    assert search.best_score_ > 0.9
    assert search.best_params_["svc__kernel"] in grid["svc__kernel"]


def test_nested_parameters_say_how(digits):
    model = SVC(kernel=Exponential(Chi2()))
    assert model.get_params()["kernel__gamma"] == 1.0
    with pytest.raises(TypeError, match=r"immutable.*search whole kernels"):
        model.set_params(kernel__gamma=2.0)


def test_other_estimators(digits):
    X, _, y, _ = digits
    X, y = X[:80], y[:80]
    kernel = Chi2()
    K = kernel(X)
    assert KernelPCA(2, kernel="precomputed").fit_transform(K).shape == (80, 2)
    called = KernelRidge(kernel=kernel).fit(X, y).predict(X)  # one pair of rows at a time
    np.testing.assert_allclose(
        called, KernelRidge(kernel="precomputed").fit(K, y).predict(K), rtol=1e-8
    )
    for model in (SVR, OneClassSVM):
        assert model(kernel=GCS(radius=30.0)).fit(X, y).predict(X).shape == (80,)


def test_readable():
    assert (
        repr(2.0 * (Chi2() + Intersection()) * Gaussian(0.5))
        == "2.0 * (Chi2() + Intersection()) * Gaussian(gamma=0.5)"
    )
    assert repr(Exponential(Chi2(), "median")) == "Exponential(Chi2(), gamma='median')"
    assert repr(GCS(radius=2.0)) == "GCS(radius=2.0)"
