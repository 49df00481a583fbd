"""Moments against the plain formulas, where it is hard."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from hilbin.stats import Moments
from hilbin.stats.moments import STRIP, is_thin


def plain(Z, T, w):
    """The definition, in extended precision."""
    Z, T, w = (np.asarray(a, np.longdouble) for a in (Z, T, w))
    n = w.sum()
    mean, target_mean = w @ Z / n, w @ T / n
    A, B = Z - mean, T - target_mean
    W = w[:, None]
    return n, mean, target_mean, (W * A).T @ A, (W * A).T @ B, (W * B * B).sum(axis=0)


def assert_moments(found, Z, T, w, tol=1e-8):
    n, mean, target_mean, scatter, cross, squares = plain(Z, T, w)
    assert found.n == pytest.approx(float(n))
    np.testing.assert_allclose(found.mean, mean.astype(float), rtol=1e-12)
    np.testing.assert_allclose(found.target_mean, target_mean.astype(float), rtol=1e-12)
    spread = np.sqrt(np.diag(scatter).astype(float))
    assert np.abs((found.scatter - scatter) / np.outer(spread, spread)).max() < tol
    assert np.abs((found.cross - cross) / np.outer(spread, np.sqrt(squares))).max() < tol
    np.testing.assert_allclose(found.target_squares, squares.astype(float), rtol=tol)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [5, 60])
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**16), size=st.integers(1, 40))
def test_means_far_from_zero(dtype, width, seed, size):
    """Blocks of fewer rows than columns and of more; ``S - n m m^T`` would lose every digit."""
    rng = np.random.default_rng(seed)
    far = 1e3 if dtype is np.float32 else 1e6
    Z = (rng.normal(size=(120, width)) + far * rng.normal(size=width)).astype(dtype)
    T = rng.normal(size=(120, 2)) + 1e5
    w = rng.random(120)
    total = sum(
        Moments.of(Z[i : i + size], T[i : i + size], w[i : i + size]) for i in range(0, 120, size)
    )
    assert_moments(total, Z, T, w)


def test_single_precision_is_summed_in_double():
    Z = np.random.default_rng(0).random((3000, 30)).astype(np.float32)
    found = sum(Moments.of(Z[i : i + 100]) for i in range(0, 3000, 100))
    exact = plain(Z, np.empty((3000, 0)), np.ones(3000))[3].astype(float)
    np.testing.assert_allclose(found.scatter, exact, rtol=1e-12, atol=1e-12 * exact.max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**16))
def test_thin_rows(weighted, dtype, seed):
    """By sparse products; their values are far from zero, and all columns are mostly zero."""
    rng = np.random.default_rng(seed)
    Z = ((rng.random((400, 40)) < 0.03) * (rng.normal(size=(400, 40)) + 1e3)).astype(dtype)
    Z[:2] = np.eye(2, 40) + 7  # so that no column is empty
    T = rng.normal(size=(400, 2)) + 50
    labels = sp.csr_array(rng.integers(0, 3, 400)[:, None] == np.arange(3))
    w = rng.integers(0, 3, 400).astype(float) if weighted else None
    weight = np.ones(400) if w is None else w
    weight[:2] = 1
    parts = [slice(0, 150), slice(150, 400)]
    for targets in (T, labels):
        found = sum(
            Moments.of(sp.csr_array(Z[p]), targets[p], None if w is None else w[p]) for p in parts
        )
        dense = targets.toarray() if sp.issparse(targets) else targets
        assert_moments(found, Z, dense, weight)
    assert is_thin(sp.csr_array(Z), w, weight.sum())
    Z[:, 3] = 1e6 + rng.normal(size=400)
    assert not is_thin(sp.csr_array(Z), w, weight.sum())
    assert_moments(Moments.of(sp.csr_array(Z), T, w), Z, T, weight, 1e-6)


def test_chunks_longer_than_a_strip():
    rng = np.random.default_rng(0)
    Z, T, w = rng.normal(size=(2 * STRIP + 7, 4)), rng.normal(size=2 * STRIP + 7), None
    assert_moments(Moments.of(Z, T, w), Z, T[:, None], np.ones(len(Z)), 1e-12)
    w = rng.random(len(Z))
    assert_moments(Moments.of(sp.csr_array(Z), T, w), Z, T[:, None], w, 1e-12)


def test_matrices_larger_than_a_tile():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(40, 1100))
    total = Moments.of(Z[:20]) + Moments.of(Z[20:])
    one_by_one = Moments.from_state(Moments.of(Z[:20]).state())
    one_by_one += Moments.from_state(Moments.of(Z[20:]).state())
    expected = np.cov(Z.T, bias=True) * 40
    for found in (total, one_by_one):
        np.testing.assert_allclose(found.scatter, expected, atol=1e-12 * expected.max())
        np.testing.assert_array_equal(found.scatter, found.scatter.T)


def test_adding_works_in_place():
    rng = np.random.default_rng(0)
    total = Moments.of(rng.random((50, 20)))
    held = total._triangle
    for rows in (5, 50):
        total += Moments.of(rng.random((rows, 20)))
    assert total._triangle is held
    assert not total.scatter.flags.writeable


def test_a_low_chunk_is_kept_as_rows():
    Z = np.random.default_rng(0).random((10, 200))
    assert Moments.of(Z).nbytes < 200 * 200 * 8 / 10


def test_nothing_is_neutral():
    Z = np.random.default_rng(0).random((10, 3))
    some = Moments.of(Z, Z[:, 0])
    for nothing in (Moments(3, 1), Moments.of(Z, Z[:, 0], np.zeros(10)), Moments.of(Z[:0], [])):
        for total in (some + nothing, nothing + some):
            for name, array in some.state().items():
                np.testing.assert_allclose(total.state()[name], array)


@pytest.mark.parametrize("rows", [3, 30])
def test_added_to_itself(rows):
    Z = np.random.default_rng(0).random((rows, 10))
    twice = Moments.of(Z, Z[:, :1])
    twice += twice
    assert_moments(twice, Z, Z[:, :1], np.full(rows, 2.0), 1e-12)


def test_targets_turned():
    rng = np.random.default_rng(0)
    Z, T = rng.random((20, 3)), rng.random((20, 2))
    assert_moments(
        Moments.of(Z, T).with_targets(scale=2, shift=-1), Z, 2 * T - 1, np.ones(20), 1e-12
    )
    bare = Moments.of(Z, T).without_targets() + Moments.of(Z)
    assert bare.n == 40
    assert bare.cross.shape == (3, 0)


def test_projected_sums_are_the_sums_of_projected_rows():
    rng = np.random.default_rng(0)
    Z, T, U = rng.random((20, 5)), rng.random((20, 2)), rng.normal(size=(3, 5))
    assert_moments(Moments.of(Z, T).project(U), Z @ U.T, T, np.ones(20), 1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Moments.of(np.ones(3)), "Z must be two-dimensional"),
        (lambda: Moments.of(np.ones((3, 2)), np.ones(4)), "T has shape"),
        (lambda: Moments.of(np.ones((3, 2)), [1, np.nan, 1]), "T has values that are not finite"),
        (lambda: Moments.of(np.ones((3, 2)), weight=[1, 1]), "weight has shape"),
        (lambda: Moments.of(np.ones((3, 2)), weight=[1, 1, np.inf]), "is inf at row 2"),
        (lambda: Moments.of([[1, np.nan]]), "not finite or too large, in column 1"),
        (lambda: Moments.of([[np.inf, 1], [-np.inf, 1]]), "in column 0"),
        (lambda: Moments(3) + Moments(4), "3 and 4 columns"),
        (lambda: Moments(3, 1) + Moments(3, 2), "1 and 2 targets"),
    ],
)
def test_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()
