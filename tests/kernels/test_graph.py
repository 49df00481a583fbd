"""Graphs of neighbors, commute times and diffusion."""

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from hypothesis import given
from scipy.sparse.csgraph import connected_components

from hilbin.kernels import (
    Chi2,
    Exponential,
    Gaussian,
    Hellinger,
    commute_kernel,
    diffusion_kernel,
    knn_graph,
)

PATH = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
seeds = st.integers(0, 1000)


def squared(X):
    return ((X[:, None] - X) ** 2).sum(axis=2)


def slow_graph(D, n_neighbors):
    W = np.zeros_like(D)
    near = [np.argsort(np.where(np.arange(len(D)) == i, np.inf, D[i])) for i in range(len(D))]
    scale = [np.sqrt(D[i, near[i][min(7, n_neighbors) - 1]]) for i in range(len(D))]
    for i in range(len(D)):
        for j in near[i][:n_neighbors]:
            W[i, j] = W[j, i] = np.exp(-D[i, j] / (scale[i] * scale[j]))
    return W


@given(seed=seeds, n_neighbors=st.integers(1, 9))
def test_graph_is_its_definition(seed, n_neighbors):
    X = np.random.default_rng(seed).uniform(size=(12, 3))
    W = knn_graph(Gaussian(3.0), X, n_neighbors=n_neighbors)
    np.testing.assert_allclose(W.toarray(), slow_graph(squared(X), n_neighbors), atol=1e-12)
    binary = knn_graph(Gaussian(3.0), X, n_neighbors=n_neighbors, weights="binary")
    np.testing.assert_array_equal(binary.toarray(), W.toarray() > 0)


def test_distances_of_kernels():
    X = np.random.default_rng(0).uniform(size=(15, 4))
    chi2 = knn_graph(Exponential(Chi2(), 7.0), X, n_neighbors=4)
    np.testing.assert_allclose(
        chi2.toarray(), knn_graph(Chi2(), X, n_neighbors=4).toarray(), atol=1e-12
    )
    roots = knn_graph(Gaussian(), np.sqrt(X), n_neighbors=4)
    for same in (knn_graph(Hellinger(), X, n_neighbors=4),
                 knn_graph(Hellinger().gram(X), n_neighbors=4)):  # fmt: skip
        np.testing.assert_allclose(same.toarray(), roots.toarray(), atol=1e-9)


@given(seed=seeds)
def test_components_are_joined(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 2)) + 20 * rng.integers(4, size=(30, 1))
    W = knn_graph(Gaussian(), X, n_neighbors=2)
    joined = knn_graph(Gaussian(), X, n_neighbors=2, connected=True)
    count, labels = connected_components(W)
    assert connected_components(joined)[0] == 1
    added = (joined - W).toarray()
    assert np.count_nonzero(added) == 2 * (count - 1)
    assert (added == added.T).all()
    if count > 1:
        assert added[added > 0] == pytest.approx(W.data.min())
        D = squared(X)
        apart = labels[:, None] != labels
        assert D[added > 0].min() == D[apart].min()  # the shortest tree has the shortest edge


def test_duplicates_and_few_rows():
    X = np.repeat([[0.0], [1.0]], 12, axis=0)
    W = knn_graph(Gaussian(), X, n_neighbors=3)
    assert set(W.data) == {1.0}
    two = knn_graph(Gaussian(), [[0.0], [3.0]]).toarray()
    np.testing.assert_allclose(two, [[0, np.exp(-1)], [np.exp(-1), 0]])
    assert knn_graph(Gaussian(), [[0.0]]).nnz == 0


def test_commute_times_of_a_path():
    K = commute_kernel(PATH)
    np.testing.assert_allclose(9 * K, [[5, -1, -4], [-1, 2, -1], [-4, -1, 5]], atol=1e-12)
    assert 4 * (K[0, 0] + K[2, 2] - 2 * K[0, 2]) == pytest.approx(8)
    np.testing.assert_allclose(commute_kernel(sp.csr_array(PATH)), K)


@given(seed=seeds, connected=st.booleans())
def test_commute_kernel_is_the_pseudo_inverse(seed, connected):
    X = np.random.default_rng(seed).normal(size=(12, 2))
    W = knn_graph(Gaussian(), X, n_neighbors=2, connected=connected).toarray()
    L = np.diag(W.sum(axis=1)) - W
    expected = np.linalg.pinv(L, rcond=1e-12, hermitian=True)
    np.testing.assert_allclose(commute_kernel(W), expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: knn_graph(Gaussian()), "X is missing"),
        (lambda: knn_graph(np.ones((2, 3))), "kernel must be square"),
        (lambda: knn_graph(np.eye(3), n_neighbors=0), "n_neighbors must be"),
        (lambda: knn_graph(np.eye(3), weights="heavy"), "weights must be one of"),
        (lambda: knn_graph(Gaussian("median"), np.eye(3)), "is a rule"),
        (lambda: commute_kernel(-np.ones((2, 2))), "commute_kernel needs values >= 0"),
        (lambda: commute_kernel([[0, 1], [0, 0]]), "W must be symmetric"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@given(seed=seeds, time=st.floats(0.1, 30))
def test_diffusion_is_the_exponential(seed, time):
    X = np.random.default_rng(seed).normal(size=(20, 2))
    W = knn_graph(Gaussian(), X, n_neighbors=2).toarray()
    roots = np.sqrt(W.sum(axis=1))
    expected = scipy.linalg.expm(-time * (np.eye(20) - W / np.outer(roots, roots)))
    np.testing.assert_allclose(diffusion_kernel(W, time), expected, atol=1e-12)
    both = diffusion_kernel(W, time / 2)
    np.testing.assert_allclose(both @ both, expected, atol=1e-12)


def test_diffusion_of_bad_graphs():
    with pytest.raises(ValueError, match="W must be symmetric"):
        diffusion_kernel([[0, 1], [0, 0]])
    with pytest.raises(ValueError, match="time"):
        diffusion_kernel(PATH, 0)
    np.testing.assert_allclose(diffusion_kernel(np.zeros((2, 2)), 1.0), np.exp(-1) * np.eye(2))
