"""k-means in feature space: definitions, the best of all partitions, weights, new rows."""

import warnings

import hypothesis.strategies as st
import numpy as np
import oracles
import pytest
import scipy.sparse as sp
from hypothesis import given
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning

from hilbin.estimators import KernelKMeans
from hilbin.estimators.clustering.sweeps import cluster_sums, single_moves, sweeps
from hilbin.kernels import GCS, Chi2, Gaussian, Linear, NotPositiveDefiniteWarning

IRIS = load_iris().data
seeds = st.integers(0, 1000)


def test_values():
    assert KernelKMeans(3, kernel=Linear()).fit(IRIS).inertia_ == pytest.approx(78.851441, abs=1e-6)
    K = np.kron(np.eye(2), [[2, 1], [1, 2]])
    model = KernelKMeans(2, kernel="precomputed").fit(K)
    assert model.inertia_ == pytest.approx(2)
    assert model.labels_[0] == model.labels_[1] != model.labels_[2] == model.labels_[3]


def test_linear_kernel_is_kmeans():
    X = load_digits().data[:300]
    ours = KernelKMeans(10, kernel=Linear(), n_init=20).fit(X)
    theirs = KMeans(10, n_init=20, random_state=0).fit(X)
    assert ours.inertia_ <= 1.01 * theirs.inertia_
    again = KMeans(10, init=ours.coef_.T @ ours.X_fit_, n_init=1).fit(X)
    assert again.inertia_ == pytest.approx(ours.inertia_)  # centers are a fixed point of theirs
    np.testing.assert_array_equal(again.labels_, ours.labels_)


@given(seed=seeds, n_clusters=st.integers(1, 3))
def test_inertia_is_its_definition_and_near_the_best(seed, n_clusters):
    rng = np.random.default_rng(seed)
    X, weights = rng.normal(size=(7, 2)), rng.uniform(0.5, 2, size=7)
    K = Gaussian(0.5).gram(X)
    model = KernelKMeans(n_clusters, kernel=Gaussian(0.5), n_init=20).fit(X, sample_weight=weights)
    assert model.inertia_ == pytest.approx(oracles.kmeans_inertia(K, model.labels_, weights))
    best = oracles.best_kmeans(K, n_clusters, weights)
    assert best * (1 - 1e-9) <= model.inertia_ <= 1.2 * best
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@given(seed=seeds, n_clusters=st.integers(2, 6))
def test_sweeps_lower_the_inertia(seed, n_clusters):
    rng = np.random.default_rng(seed)
    K = Gaussian(0.3).gram(rng.normal(size=(40, 2)))
    weights = rng.uniform(size=40) + 0.1
    start = np.concatenate([np.arange(n_clusters), rng.integers(n_clusters, size=40 - n_clusters)])
    path = [sweeps(K, weights, start, max_iter).inertia for max_iter in range(1, 12)]
    assert (np.diff(path) <= 0).all()
    found = sweeps(K, weights, start, 100)
    assert found.converged
    assert found.inertia == pytest.approx(oracles.kmeans_inertia(K, found.labels, weights))
    assert np.unique(found.labels).size == n_clusters


@given(seed=seeds, n_clusters=st.integers(1, 5))
def test_no_single_row_can_move_and_gain(seed, n_clusters):
    rng = np.random.default_rng(seed)
    K = Gaussian(0.3).gram(rng.normal(size=(18, 2)))
    weights = rng.uniform(size=18) + 0.1
    start = np.concatenate([np.arange(n_clusters), rng.integers(n_clusters, size=18 - n_clusters)])
    swept = sweeps(K, weights, start, 100)
    found = single_moves(K, weights, swept, 100)
    assert found.converged
    assert found.inertia <= swept.inertia
    inertia = oracles.kmeans_inertia(K, found.labels, weights)
    assert found.inertia == pytest.approx(inertia)
    member = found.labels[:, None] == np.arange(n_clusters)
    np.testing.assert_allclose(found.sums, K @ (weights[:, None] * member), atol=1e-12)
    for row in range(18):
        for cluster in range(n_clusters):
            other = found.labels.copy()
            other[row] = cluster
            if np.unique(other).size == n_clusters:
                assert oracles.kmeans_inertia(K, other, weights) >= inertia * (1 - 1e-10)


def test_starts_share_one_product():
    rng = np.random.default_rng(0)
    K, weights = Gaussian(0.3).gram(rng.normal(size=(30, 2))), rng.uniform(size=30)
    starts = [np.arange(30) % 3, np.arange(30) % 5]
    for labels, sums in zip(starts, cluster_sums(K, weights, starts), strict=True):
        k = labels.max() + 1
        np.testing.assert_allclose(sums, K @ (weights[:, None] * (labels[:, None] == np.arange(k))))


def test_empty_clusters_are_filled():
    X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    K = Linear().gram(X - X.mean())
    start = np.array([0, 1, 0, 0, 1, 0])  # both centers are in the middle, as is that of all
    found = sweeps(K, np.ones(6), np.append(start[:5], 2), 100)
    assert np.unique(found.labels).size == 3


@given(seed=seeds)
def test_weights_are_repetitions(seed):
    rng = np.random.default_rng(seed)
    X, weights = rng.uniform(size=(25, 3)), rng.integers(0, 4, size=25)
    order = rng.permutation(weights.sum())
    repeated = np.repeat(X, weights, axis=0)[order]
    model = KernelKMeans(4).fit(X, sample_weight=weights)
    other = KernelKMeans(4).fit(repeated)
    assert model.inertia_ == pytest.approx(other.inertia_, rel=1e-12)
    np.testing.assert_array_equal(model.predict(X), other.predict(X))
    np.testing.assert_array_equal(np.repeat(model.labels_, weights)[order], other.labels_)


def test_precomputed_is_the_kernel():
    rng = np.random.default_rng(0)
    X, new = rng.uniform(size=(60, 4)), rng.uniform(size=(9, 4))
    weights = rng.integers(0, 3, size=60)
    given_matrix = KernelKMeans(3, kernel="precomputed", n_init=100)
    given_matrix.fit(Chi2().gram(X), sample_weight=weights)
    model = KernelKMeans(3, kernel=Chi2(), n_init=100).fit(X, sample_weight=weights)
    assert given_matrix.inertia_ == pytest.approx(model.inertia_)
    same = model.predict(new)[:, None] == model.predict(new)
    labels = given_matrix.predict(Chi2().gram(new, X))
    np.testing.assert_array_equal(labels[:, None] == labels, same)


def test_sparse_matrices_and_rows():
    X = load_digits().data[:80]
    dense = KernelKMeans(5, kernel=Linear()).fit(X)
    assert KernelKMeans(5, kernel=Linear()).fit(sp.csr_array(X)).inertia_ == pytest.approx(
        dense.inertia_
    )
    x = np.sort(np.random.default_rng(0).uniform(0, 20, size=(80, 1)), axis=0)
    K = GCS(4.0).gram(x)
    assert sp.issparse(K)
    compact = KernelKMeans(5, kernel=GCS(4.0)).fit(x)
    weights = np.ones(80)
    assert compact.inertia_ == pytest.approx(
        oracles.kmeans_inertia(K.toarray(), compact.labels_, weights)
    )


def test_normalized_cut():
    """With weights d and K = D^-1 W D^-1 + sigma D^-1, the inertia is a normalized cut."""
    rng = np.random.default_rng(0)
    W = Gaussian().gram(rng.normal(size=(12, 2)))
    np.fill_diagonal(W, 0)
    d = W.sum(axis=1)
    K, sigma = W / np.outer(d, d), 2.0
    model = KernelKMeans(3, kernel="precomputed", n_init=10)
    model.fit(K + np.diag(sigma / d), sample_weight=d)
    masks = [model.labels_ == c for c in range(3)]
    cut = sum(W[np.ix_(m, ~m)].sum() / d[m].sum() for m in masks)
    expected = d @ np.diag(K) - 3 + cut + sigma * (12 - 3)
    assert model.inertia_ == pytest.approx(expected, rel=1e-12)


def test_indefinite_matrices_end():
    K = np.array([[1.0, 2, 0], [2, 1, 0], [0, 0, 1]])
    with pytest.warns(NotPositiveDefiniteWarning):
        model = KernelKMeans(2, kernel="precomputed").fit(K)
    assert np.unique(model.labels_).size == 2


def test_fewer_places_than_clusters():
    X = np.repeat([[0.0], [1.0]], 5, axis=0)
    with pytest.warns(ConvergenceWarning, match="fewer different rows of X: 2"):
        model = KernelKMeans(4).fit(X)
    assert model.coef_.shape == (2, 2)
    assert model.inertia_ == 0
    with pytest.warns(ConvergenceWarning, match="fewer different rows of X: 1"):
        KernelKMeans(2).fit(np.ones((5, 2)))


def test_max_iter():
    X = load_digits().data[:300]
    with pytest.warns(ConvergenceWarning, match="max_iter=1 "):
        KernelKMeans(10, max_iter=1).fit(X)


def test_single_precision_of_many_rows(monkeypatch):
    X = load_digits().data[:300]
    exact = KernelKMeans(5).fit(X)
    monkeypatch.setattr("hilbin.estimators.clustering.base.MOST_EXACT", 100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rounded = KernelKMeans(5).fit(X)
    assert rounded.inertia_ == pytest.approx(exact.inertia_, rel=1e-4)
    monkeypatch.setattr("hilbin.estimators.clustering.base.MOST_ROWS", 200)
    with pytest.raises(ValueError, match="300 rows, but a matrix of all pairs is for 200 at most"):
        KernelKMeans(5).fit(X)


@pytest.mark.parametrize(
    ("model", "X", "message"),
    [
        (KernelKMeans(4), np.eye(3), "n_clusters=4 is more than the 3 rows"),
        (KernelKMeans(0), np.eye(3), "n_clusters must be"),
        (KernelKMeans(2, n_init=0), np.eye(3), "n_init must be"),
        (KernelKMeans(2, max_iter=0), np.eye(3), "max_iter must be"),
        (KernelKMeans(2, kernel="rbf"), np.eye(3), "kernel must be"),
        (KernelKMeans(2, kernel="precomputed"), np.ones((2, 3)), "X must be square"),
        (KernelKMeans(2, kernel="precomputed"), np.eye(3) + np.eye(3, k=1), "X is not symmetric"),
        (KernelKMeans(2, kernel=Chi2()), -np.eye(3), "is negative"),
    ],
)
def test_bad_input(model, X, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X)
