"""k-means on kernel principal components, and on what two views share."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import hilbin
from hilbin.estimators import CorrelationalClustering, KernelCCA, KernelPCA, KernelPCAClustering
from hilbin.kernels import Chi2, Gaussian, Hellinger, Linear
from hilbin.maps import AdditiveMap

IRIS = load_iris().data
SEPALS, PETALS = IRIS[:, :2], IRIS[:, 2:]
DIGITS = load_digits().data[:300]


def same(a, b):
    """Assert that labels agree but for their numbers."""
    assert adjusted_rand_score(a, b) == 1


def test_it_is_kmeans_on_components():
    model = KernelPCAClustering(5, kernel=Chi2(), n_init=10).fit(DIGITS)
    T = KernelPCA(Chi2(), 5).fit_transform(DIGITS)
    peer = KMeans(5, n_init=10, random_state=0).fit(T)
    assert model.inertia_ <= 1.02 * peer.inertia_
    again = KMeans(5, init=model.cluster_centers_, n_init=1).fit(T)
    np.testing.assert_array_equal(again.labels_, model.labels_)
    np.testing.assert_array_equal(model.predict(DIGITS), model.labels_)
    squares = np.square(T - model.cluster_centers_[model.labels_]).sum()
    assert model.inertia_ == pytest.approx(squares)


def test_given_matrices_maps_and_sparse_rows():
    exact = KernelPCAClustering(4, kernel=Hellinger()).fit(DIGITS)
    K = Hellinger().gram(DIGITS)
    given_ = KernelPCAClustering(4, kernel="precomputed", n_init=20).fit(K)
    assert given_.inertia_ <= 1.05 * exact.inertia_
    np.testing.assert_array_equal(given_.predict(K), given_.labels_)
    mapped = KernelPCAClustering(4, feature_map=AdditiveMap(Hellinger())).fit(DIGITS)
    assert mapped.inertia_ == pytest.approx(exact.inertia_)
    same(mapped.labels_, exact.labels_)
    sparse = KernelPCAClustering(4, kernel=Hellinger()).fit(sp.csr_array(DIGITS))
    assert sparse.inertia_ <= 1.05 * exact.inertia_


def test_few_components_are_enough():
    model = KernelPCAClustering(3, kernel=Linear()).fit(SEPALS)  # of rank 2
    assert model.cluster_centers_.shape == (3, 2)
    peer = KMeans(3, n_init=10, random_state=0).fit(SEPALS)
    assert model.inertia_ == pytest.approx(peer.inertia_, rel=0.02)
    with pytest.raises(ValueError, match="n_components=3 is more than 2"):
        KernelPCAClustering(3, kernel=Linear(), n_components=3).fit(SEPALS)


@given(seed=st.integers(0, 10**6), two=st.booleans())
@settings(max_examples=15)
def test_weights_are_copies(seed, two):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(40, 3)).round(2) + 4 * (np.arange(40) % 3)[:, None]
    other = rows @ rng.normal(size=(3, 2)) + rng.normal(size=(40, 2)).round(2)
    weights = rng.integers(0, 4, 40)
    weights[:9] = 1, 2, 3, 1, 2, 3, 1, 2, 3
    many = rng.permutation(np.repeat(np.arange(40), weights))
    model = CorrelationalClustering(3, n_components=1) if two else KernelPCAClustering(3)
    views = [rows, other] if two else [rows]
    a = clone(model).fit(*views, sample_weight=weights)
    b = clone(model).fit(*(view[many] for view in views))
    assert a.inertia_ == pytest.approx(b.inertia_, rel=1e-5, abs=1e-9)
    np.testing.assert_array_equal(a.predict(rows), b.predict(rows))


@pytest.mark.parametrize("view", ["X", "y", "both"])
def test_it_is_kmeans_on_what_views_share(view, tmp_path):
    model = CorrelationalClustering(3, view=view, reg=0.01, n_components=2, n_init=10)
    model.fit(SEPALS, PETALS)
    x, y = KernelCCA(n_components=2, reg=0.01).fit(SEPALS, PETALS).transform(SEPALS, PETALS)
    T = {"X": x, "y": y, "both": np.hstack([x, y])}[view]
    again = KMeans(3, init=model.cluster_centers_, n_init=1).fit(T)
    np.testing.assert_array_equal(again.labels_, model.labels_)
    new = {"X": (SEPALS,), "y": (PETALS,), "both": (SEPALS, PETALS)}[view]
    np.testing.assert_array_equal(model.predict(*new), model.labels_)
    hilbin.save(model, tmp_path / "model")
    np.testing.assert_array_equal(hilbin.load(tmp_path / "model").predict(*new), model.labels_)
    with pytest.raises(ValueError, match=r"needs (X and y|one view)"):
        model.predict(*((SEPALS,) if view == "both" else (SEPALS, PETALS)))


def test_the_other_view_helps_the_weak_one():
    """The other view tells what of the large variance of this one means nothing."""
    rng = np.random.default_rng(0)
    hidden = rng.integers(0, 2, 200)
    weak = np.column_stack([hidden + 0.2 * rng.normal(size=200), 5 * rng.normal(size=(200, 3))])
    strong = hidden[:, None] + 0.2 * rng.normal(size=(200, 2))
    alone = KernelPCAClustering(2, kernel=Linear()).fit(weak)
    helped = CorrelationalClustering(2, kernel=Linear(), n_components=1).fit(weak, strong)
    found = [adjusted_rand_score(hidden, model.labels_) for model in (alone, helped)]
    assert found[0] < 0.2
    assert found[1] > 0.8


def test_forged_files(tmp_path):
    model = KernelPCAClustering(3).fit(SEPALS)
    model.cluster_centers_ = model.cluster_centers_[:, :1]
    hilbin.save(model, tmp_path / "forged")
    with pytest.raises(ValueError, match="another number of components"):
        hilbin.load(tmp_path / "forged")


@pytest.mark.parametrize(
    ("model", "rows", "complaint"),
    [
        (KernelPCAClustering(4), (IRIS[:3],), "n_clusters=4 is more than the 3 rows"),
        (KernelPCAClustering(0), (IRIS,), "n_clusters must be"),
        (KernelPCAClustering(n_init=0), (IRIS,), "n_init must be"),
        (KernelPCAClustering(2), (np.ones((9, 2)),), "no variance"),
        (CorrelationalClustering(2), (SEPALS, PETALS[:9]), "X has 150 rows, but y has 9"),
        (CorrelationalClustering(2), (SEPALS, None), "requires y to be passed"),
        (CorrelationalClustering(2, view="z"), (SEPALS, PETALS), "view must be one of"),
        (CorrelationalClustering(200), (SEPALS, PETALS), "n_clusters=200 is more than the 150"),
    ],
)
def test_bad_input(model, rows, complaint):
    with pytest.raises(ValueError, match=complaint):
        model.fit(*rows)


def test_fewer_different_rows_than_clusters():
    rows = np.repeat([[0.0, 1.0], [1.0, 0.0], [3.0, 3.0]], 4, axis=0)
    with pytest.warns(ConvergenceWarning, match="fewer different rows of X: 3"):
        model = KernelPCAClustering(5, kernel=Gaussian(0.5)).fit(rows)
    assert np.unique(model.labels_).size == 3
