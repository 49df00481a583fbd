"""Codebooks with a guarantee, against the smallest of all covers."""

import hypothesis.strategies as st
import numpy as np
import oracles
import pytest
from hypothesis import given
from sklearn.datasets import load_digits

from hilbin.estimators import KernelQuantizer
from hilbin.estimators.clustering import cover
from hilbin.kernels import GCS, Chi2, Gaussian, Linear, Quantile

DIGITS = load_digits().data[:1000]
LINE = np.arange(10.0).reshape(-1, 1)


def distances(kernel, X):
    K = kernel.gram(X)
    return np.sqrt(np.maximum(np.add.outer(np.diag(K), np.diag(K)) - 2 * K, 0))


def test_points_on_a_line():
    model = KernelQuantizer(1.5, kernel=Linear()).fit(LINE)
    assert model.prototypes_.size == model.bound_ == 4
    assert np.abs(LINE[model.prototypes_][model.labels_] - LINE).max() <= 1.5


@pytest.mark.parametrize(
    ("q", "theta", "size", "bound"), [(0.02, 0.723, 105, 102), (0.05, 0.863, 38, 34)]
)
def test_values_of_digits(q, theta, size, bound):
    model = KernelQuantizer(Quantile(q)).fit(DIGITS)
    assert model.theta_ == pytest.approx(theta, abs=5e-4)
    assert model.bound_ == bound
    assert bound <= model.prototypes_.size <= size + 1


@given(seed=st.integers(0, 1000), theta=st.floats(0.1, 1.3))
def test_every_row_is_near_and_the_bound_holds(seed, theta):
    X = np.random.default_rng(seed).normal(size=(9, 2))
    D = distances(Gaussian(), X)
    model = KernelQuantizer(theta, kernel=Gaussian()).fit(X)
    assert D[np.arange(9), model.prototypes_[model.labels_]].max() <= theta * (1 + 1e-9)
    best = oracles.cover_size(theta * (1 + 1e-12) >= D)
    assert model.bound_ <= best <= model.prototypes_.size <= best + 1
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_without_the_program(monkeypatch):
    X = DIGITS[:200]
    best = KernelQuantizer(Quantile(0.1)).fit(X)
    monkeypatch.setattr(cover, "MOST_PAIRS", 1)
    greedy = KernelQuantizer(Quantile(0.1)).fit(X)
    assert greedy.bound_ <= best.bound_ <= best.prototypes_.size <= greedy.prototypes_.size


def test_zero_keeps_different_rows():
    X = np.repeat(LINE, 3, axis=0)
    for kernel in (Gaussian(), Linear(), Chi2()):
        model = KernelQuantizer(0, kernel=kernel).fit(X + 1)
        assert model.prototypes_.size == model.bound_ == 10
    assert KernelQuantizer().fit(np.ones((5, 2))).prototypes_.size == 1


@pytest.mark.parametrize("n_clusters", [1, 4, 10])
def test_number_of_prototypes(n_clusters):
    model = KernelQuantizer(n_clusters=n_clusters, kernel=Linear()).fit(LINE)
    assert model.prototypes_.size <= n_clusters
    fewest = -(-10 // n_clusters) // 2  # a prototype covers theta on both sides
    assert model.theta_ == fewest
    again = KernelQuantizer(model.theta_, kernel=Linear()).fit(LINE)
    np.testing.assert_array_equal(again.prototypes_, model.prototypes_)


def test_precomputed_and_sparse_matrices():
    X = DIGITS[:60]
    model = KernelQuantizer(Quantile(0.2), kernel=Chi2()).fit(X)
    given_matrix = KernelQuantizer(Quantile(0.2), kernel="precomputed").fit(Chi2().gram(X))
    np.testing.assert_array_equal(given_matrix.prototypes_, model.prototypes_)
    K = Chi2().gram(DIGITS[60:80], X)
    np.testing.assert_array_equal(given_matrix.predict(K), model.predict(DIGITS[60:80]))
    compact = KernelQuantizer(0.5, kernel=GCS(4.0)).fit(LINE)
    np.testing.assert_array_equal(compact.predict(LINE), compact.labels_)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (KernelQuantizer(-1.0), "theta, if not None or a Quantile, must be a number >= 0"),
        (KernelQuantizer("all"), "theta, if not None"),
        (KernelQuantizer(1.0, 3), "exclude each other"),
        (KernelQuantizer(n_clusters=0), "n_clusters, if not None, must be"),
        (KernelQuantizer(n_clusters=11), "n_clusters=11 is more than the 10 rows"),
        (KernelQuantizer(kernel="precomputed"), "X must be square"),
    ],
)
def test_bad_input(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(LINE)
