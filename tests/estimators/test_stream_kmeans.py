"""k-means by passes: scikit-learn's, whatever the chunks; of features it is kernel k-means."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import hilbin
from hilbin.estimators import KernelKMeans, StreamKMeans
from hilbin.kernels import Chi2, Gaussian, Hellinger
from hilbin.maps import AdditiveMap, FourierMap, SparseMap

DIGITS = load_digits().data
IRIS = load_iris().data


def test_it_is_scikit_learns():
    model = StreamKMeans(3, tol=0).fit(IRIS)
    assert model.inertia_ == pytest.approx(78.851441, abs=1e-5)
    again = KMeans(3, init=model.cluster_centers_, n_init=1).fit(IRIS)
    np.testing.assert_array_equal(again.labels_, model.labels_)
    np.testing.assert_allclose(again.cluster_centers_, model.cluster_centers_)
    np.testing.assert_array_equal(np.bincount(model.labels_), model.counts_)


@pytest.mark.parametrize("feature_map", [None, AdditiveMap(Hellinger())], ids=repr)
def test_chunks_do_not_matter(feature_map, tmp_path):
    whole = StreamKMeans(8, feature_map=feature_map, random_state=3).fit(DIGITS)
    parts = np.array_split(DIGITS, [10, 500, 501, 1200])
    chunks = StreamKMeans(8, feature_map=feature_map, random_state=3).fit(parts)
    np.testing.assert_allclose(chunks.cluster_centers_, whole.cluster_centers_, atol=1e-9)
    np.testing.assert_array_equal(chunks.labels_, whole.labels_)
    np.testing.assert_array_equal(chunks.predict(parts), whole.labels_)
    assert chunks.n_iter_ == whole.n_iter_
    np.save(tmp_path / "X.npy", DIGITS)
    read = StreamKMeans(
        8, feature_map=feature_map, random_state=3, memory=1, checkpoint=tmp_path / "sums"
    ).fit(tmp_path / "X.npy")
    np.testing.assert_allclose(read.cluster_centers_, whole.cluster_centers_, atol=1e-9)
    assert not (tmp_path / "sums").exists()
    hilbin.save(read, tmp_path / "model")
    np.testing.assert_array_equal(hilbin.load(tmp_path / "model").predict(DIGITS), whole.labels_)


def test_of_features_it_is_kernel_kmeans():
    X = DIGITS[:400]
    exact = KernelKMeans(5, kernel=Hellinger(), n_init=20).fit(X)
    model = StreamKMeans(5, feature_map=AdditiveMap(Hellinger()), n_init=20, tol=0).fit(X)
    assert exact.inertia_ * (1 - 1e-9) <= model.inertia_ <= 1.02 * exact.inertia_
    sparse = StreamKMeans(5, feature_map=AdditiveMap(Hellinger()), tol=0).fit(sp.csr_array(X))
    dense = StreamKMeans(5, feature_map=AdditiveMap(Hellinger()), tol=0).fit(X)
    assert sparse.inertia_ == pytest.approx(dense.inertia_, rel=0.05)


def test_starts_are_what_they_are_one_by_one():
    """Side by side, every start goes its own way, and the best is kept."""
    many = StreamKMeans(8, n_init=4, n_fit_samples=100, tol=0).fit(DIGITS)
    few = StreamKMeans(8, n_init=1, n_fit_samples=100, tol=0).fit(DIGITS)
    assert many.inertia_ <= few.inertia_ * (1 + 1e-12)
    sums = np.square(DIGITS - many.cluster_centers_[many.labels_]).sum()
    assert many.inertia_ == pytest.approx(sums)


@given(seed=st.integers(0, 10**6), mapped=st.booleans())
@settings(max_examples=15)
def test_weights_are_copies(seed, mapped):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3)).round(2)
    weights = rng.integers(0, 4, 60)
    weights[:6] = 1, 2, 3, 1, 2, 3
    many = rng.permutation(np.repeat(np.arange(60), weights))
    feature_map = FourierMap(Gaussian("median"), 20) if mapped else None
    a = StreamKMeans(4, feature_map=feature_map).fit(X, sample_weight=weights)
    b = StreamKMeans(4, feature_map=feature_map).fit(np.array_split(X[many], 3))
    assert a.inertia_ == pytest.approx(b.inertia_)
    np.testing.assert_array_equal(a.predict(X), b.predict(X))


def test_mini_batches():
    rng = np.random.default_rng(0)
    X = rng.permutation(DIGITS)
    model = StreamKMeans(10, feature_map=AdditiveMap(Chi2(), 1))
    for _ in range(3):
        for batch in np.array_split(X, 10):
            model.partial_fit(batch)
    assert model.counts_.sum() == 3 * len(X)
    full = StreamKMeans(10, feature_map=AdditiveMap(Chi2(), 1)).fit(X)
    Z = AdditiveMap(Chi2(), 1).fit(X).transform(X)
    labels = model.predict(X)
    batches = np.square(Z - model.cluster_centers_[labels]).sum()
    assert batches < 1.1 * full.inertia_
    assert adjusted_rand_score(labels, full.labels_) > 0.5
    step = StreamKMeans(2).fit(IRIS)
    before, counts = step.cluster_centers_.copy(), step.counts_.copy()
    step.partial_fit(before[:1] + 1)  # one row, near the first center
    near = step.labels_[0]
    moved = before[near] + (before[0] + 1 - before[near]) / (counts[near] + 1)
    np.testing.assert_allclose(step.cluster_centers_[near], moved)
    np.testing.assert_array_equal(step.cluster_centers_[1 - near], before[1 - near])


def test_limits():
    with pytest.warns(ConvergenceWarning, match="after max_iter=1 rounds"):
        StreamKMeans(8, n_init=1, max_iter=1, n_fit_samples=20).fit(DIGITS)
    rows = np.repeat([[0.0], [1.0]], 5, axis=0)
    with pytest.warns(ConvergenceWarning, match="fewer different rows: 2"):
        model = StreamKMeans(3).fit(rows)
    assert model.inertia_ == 0


@pytest.mark.parametrize(
    ("given_", "rows", "weights", "complaint"),
    [
        ({"n_clusters": 4}, IRIS[:3], None, "n_clusters=4 is more than the n_samples=3"),
        ({"n_clusters": 0}, IRIS, None, "n_clusters must be"),
        ({"tol": -1}, IRIS, None, "tol must be"),
        ({"max_iter": 0}, IRIS, None, "max_iter must be"),
        ({}, IRIS, np.zeros(150), "sample_weight.*zero"),
        ({"feature_map": SparseMap(Chi2(), 5)}, IRIS, None, "orthonormal=True"),
    ],
)
def test_bad_input(given_, rows, weights, complaint):
    with pytest.raises(ValueError, match=complaint):
        StreamKMeans(**given_).fit(rows, sample_weight=weights)
