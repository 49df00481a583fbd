"""Reordering a Gram matrix: a permutation, and the band it leaves."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from hilbin.kernels import GCS, Sparsity, reorder


def slow_bandwidth(A):
    i, j = np.nonzero(A)
    return max(np.abs(i - j), default=0)


def random_symmetric(seed, n, density):
    rng = np.random.default_rng(seed)
    A = (rng.uniform(size=(n, n)) < density) * rng.normal(size=(n, n))
    return A + A.T


@given(seed=st.integers(0, 10_000), n=st.integers(1, 30), density=st.floats(0, 0.4))
def test_it_is_a_permutation_and_says_its_band(seed, n, density):
    A = random_symmetric(seed, n, density)
    found = reorder(A)
    assert sorted(found.order) == list(range(n))
    moved = A[np.ix_(found.order, found.order)]
    np.testing.assert_array_equal(found.apply(A).toarray(), moved)
    assert found.bandwidth == slow_bandwidth(moved)
    assert found.bandwidth_before == slow_bandwidth(A)
    i, j = np.indices((n, n))
    assert found.coverage == pytest.approx(np.mean(np.abs(i - j) <= found.bandwidth))
    assert found.density == pytest.approx(np.mean(A != 0))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_array, sp.csr_matrix])
def test_a_path_gets_a_band_of_one(form):
    n = 40
    path = sp.diags_array([np.ones(n - 1), np.ones(n), np.ones(n - 1)], offsets=[-1, 0, 1])
    mixed = np.random.default_rng(0).permutation(n)
    found = reorder(form(path.toarray()[np.ix_(mixed, mixed)]))
    assert found.bandwidth == 1
    assert found.bandwidth_before > 10


def test_points_on_a_line_come_in_their_order():
    x = np.random.default_rng(0).uniform(0, 9, size=(300, 1))
    found = reorder(GCS(Sparsity(0.95)).resolve(x).gram(x))
    assert found.coverage < 3 * found.density
    ranks = np.argsort(np.argsort(x[found.order, 0]))
    assert abs(np.corrcoef(ranks, np.arange(300))[0, 1]) > 0.999


def test_stored_zeros_do_not_count():
    K = sp.csr_array(np.eye(5) + np.eye(5)[::-1])
    K.data[K.indices != np.repeat(np.arange(5), np.diff(K.indptr))] = 0
    assert reorder(K).bandwidth_before == 0


def test_bad_matrices():
    with pytest.raises(ValueError, match=r"square, got shape \(2, 3\)"):
        reorder(np.ones((2, 3)))
    with pytest.raises(ValueError, match="symmetric"):
        reorder(np.triu(np.ones((3, 3))))
