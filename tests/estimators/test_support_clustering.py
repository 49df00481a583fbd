"""Clusters as parts of a region around the rows."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from hilbin.estimators import KernelOneClass, SupportVectorClustering
from hilbin.estimators.clustering.support import _steadiest
from hilbin.kernels import Gaussian

SHAPES = {
    "moons": make_moons(300, noise=0.06, random_state=0),
    "rings": make_circles(300, noise=0.05, factor=0.35, random_state=0),
    "blobs": make_blobs(300, centers=[[0, 0], [0, 9], [9, 0], [9, 9]], random_state=0),
    "one": make_blobs(300, centers=1, random_state=0),
}


@pytest.mark.parametrize(("shape", "count"), [("moons", 2), ("rings", 2), ("blobs", 4), ("one", 1)])
def test_the_number_of_clusters_is_found(shape, count):
    X, y = SHAPES[shape]
    model = SupportVectorClustering(min_size=3).fit(X)
    inside = model.labels_ >= 0
    assert model.n_clusters_ == count
    assert inside.mean() >= 0.8
    assert adjusted_rand_score(y[inside], model.labels_[inside]) == 1


def test_clusters_are_joined_by_segments_inside():
    X, _ = SHAPES["moons"]
    X = X[::4]
    gamma, nu = 6.0, 0.2
    model = SupportVectorClustering(nu, gamma, n_neighbors=74).fit(X)
    region = KernelOneClass(Gaussian(gamma), nu=nu).fit(X)
    least = -1e-4 * region.offset_
    inside = region.decision_function(X) >= least
    np.testing.assert_array_equal(model.labels_ >= 0, inside)
    shares = np.arange(1, 11)[:, None] / 11
    for i in np.flatnonzero(inside):
        for j in np.flatnonzero(inside)[:20]:
            points = X[i] + shares * (X[j] - X[i])
            if (region.decision_function(points) >= least).all():
                assert model.labels_[i] == model.labels_[j]


def test_small_clusters_are_outliers():
    X = np.vstack([SHAPES["one"][0][:60], [[50.0, 50.0], [50.1, 50.0]]])
    whole = SupportVectorClustering(0.01, 1.0).fit(X)
    assert whole.labels_[-1] == whole.labels_[-2] == whole.n_clusters_ - 1
    large = SupportVectorClustering(0.01, 1.0, min_size=3).fit(X)
    assert large.labels_[-1] == large.labels_[-2] == -1
    assert (np.bincount(large.labels_[large.labels_ >= 0]) >= 3).all()


def test_equal_rows_are_one_cluster():
    assert SupportVectorClustering().fit(np.ones((20, 2))).labels_.tolist() == [0] * 20
    mostly = np.r_[np.zeros(30), np.arange(1.0, 6)].reshape(-1, 1)
    assert SupportVectorClustering().fit(mostly).labels_.size == 35


@pytest.mark.parametrize(
    ("counts", "place"),
    [([1, 2, 2, 2, 5], 2), ([1, 1, 0], 0), ([3, 3, 4, 4], 0), ([1, 1, 4, 0], 2), ([2, 0, 5, 5], 2)],
)
def test_the_longest_run(counts, place):
    assert _steadiest(counts) == place


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SupportVectorClustering(nu=0), "nu must be"),
        (SupportVectorClustering(nu=1.5), "nu must be"),
        (SupportVectorClustering(gamma=-1.0), "gamma, if not 'auto', must be"),
        (SupportVectorClustering(gamma="median"), "gamma, if not 'auto', must be"),
        (SupportVectorClustering(n_neighbors=0), "n_neighbors must be"),
        (SupportVectorClustering(min_size=0), "min_size must be"),
    ],
)
def test_bad_input(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(np.eye(5))
    with pytest.raises(ValueError, match=r"X\[1, 0\] = nan"):
        SupportVectorClustering().fit([[0.0], [np.nan], [1.0]])
