"""Clusters of a graph of neighbors."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import SpectralClustering
from sklearn.datasets import load_digits, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from hilbin.estimators import GraphClustering, KernelKMeans
from hilbin.estimators.clustering import spectral
from hilbin.kernels import Chi2, Exponential, Gaussian, commute_kernel, knn_graph

X, y = (part[:400] for part in load_digits(return_X_y=True))
CHI2 = Exponential(Chi2(), "mean")


@pytest.mark.parametrize("embedding", ["normalized", "commute"])
@pytest.mark.parametrize("weights", ["self_tuned", "binary"])
def test_two_moons(embedding, weights):
    points, moon = make_moons(300, noise=0.05, random_state=0)
    model = GraphClustering(2, embedding=embedding, weights=weights).fit(points)
    assert adjusted_rand_score(moon, model.labels_) == 1
    assert adjusted_rand_score(moon, KernelKMeans(2).fit(points).labels_) < 0.9


@pytest.mark.filterwarnings("ignore:Graph is not fully connected")
def test_is_spectral_clustering_of_its_graph():
    model = GraphClustering(10, kernel=CHI2).fit(X)
    W = knn_graph(CHI2.resolve(X), X)
    assert abs(model.affinity_matrix_ - W).max() < 1e-12
    peer = SpectralClustering(10, affinity="precomputed", random_state=0).fit(W.toarray())
    ours, theirs = (adjusted_rand_score(y, labels) for labels in (model.labels_, peer.labels_))
    assert ours > theirs - 0.02


def test_distances_of_the_embedding_are_commute_times():
    W = knn_graph(CHI2.resolve(X[:40]), X[:40], connected=True)
    embedding = spectral.commute_embedding(W, 39)
    K = commute_kernel(W)
    expected = np.add.outer(np.diag(K), np.diag(K)) - 2 * K
    found = ((embedding[:, None] - embedding) ** 2).sum(axis=2)
    np.testing.assert_allclose(found, expected, atol=1e-8 * expected.max())


@pytest.mark.parametrize("embed", [spectral.normalized_embedding, spectral.commute_embedding])
def test_lanczos_is_lapack(embed, monkeypatch):
    W = knn_graph(CHI2.resolve(X), X, connected=True)
    exact = embed(W, 6)
    monkeypatch.setattr(spectral, "MOST_DENSE", 100)
    np.testing.assert_allclose(np.abs(embed(W, 6)), np.abs(exact), atol=1e-6 * np.abs(exact).max())


def test_components_are_the_clusters():
    rng = np.random.default_rng(0)
    parts = np.repeat(np.arange(4), 15)
    points = rng.normal(size=(60, 2)) + 100 * parts[:, None]
    model = GraphClustering(4).fit(points)
    assert model.embedding_ is None
    assert adjusted_rand_score(parts, model.labels_) == 1
    with pytest.warns(UserWarning, match="4 components, which are the clusters"):
        assert np.unique(GraphClustering(2).fit(points).labels_).size == 4
    joined = GraphClustering(2, embedding="commute").fit(points).labels_
    assert np.unique(joined).size == 2
    assert np.unique(np.column_stack([parts, joined]), axis=0).shape[0] == 4  # none is cut


def test_precomputed_and_sparse_rows():
    K = Chi2().gram(X[:100])
    by_kernel = GraphClustering(5, kernel=Chi2()).fit(X[:100])
    by_matrix = GraphClustering(5, kernel="precomputed").fit(K)
    by_rows = GraphClustering(5, kernel=Chi2()).fit(sp.csr_array(X[:100]))
    np.testing.assert_array_equal(by_kernel.labels_, by_matrix.labels_)
    np.testing.assert_array_equal(by_kernel.labels_, by_rows.labels_)


def test_equal_rows():
    with pytest.warns(ConvergenceWarning, match="fewer different rows of X: 1"):
        assert not GraphClustering(2).fit(np.ones((30, 2))).labels_.any()
    rows = np.repeat([[0.0, 1.0], [5.0, 5.0]], 5, axis=0)
    for X, kernel in ((rows, Gaussian()), (Gaussian().gram(rows), "precomputed")):
        with pytest.warns(ConvergenceWarning, match="fewer different rows of X: 2"):
            model = GraphClustering(3, kernel=kernel).fit(X)
        assert model.labels_.tolist() == [0] * 5 + [1] * 5


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (GraphClustering(9), "n_clusters=9 is more than the 8 rows"),
        (GraphClustering(2, n_neighbors=0), "n_neighbors must be"),
        (GraphClustering(2, weights="heavy"), "weights must be one of"),
        (GraphClustering(2, embedding="flat"), "embedding must be one of"),
        (GraphClustering(2, kernel="precomputed"), "X must be square"),
        (GraphClustering(2, kernel=Gaussian), "make one"),
    ],
)
def test_bad_input(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X[:8])
