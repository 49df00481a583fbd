"""Halves of symmetric matrices, and order statistics, at every instruction level."""

import importlib

import numpy as np
import oracles
import pytest

from hilbin._core import LEVELS


@pytest.fixture(params=LEVELS)
def core(request):
    return importlib.import_module(f"hilbin._core._{request.param}")


def upper_sums(core, X):
    n = len(X)
    upper = np.full(n * (n - 1) // 2, np.nan, X.dtype)
    for begin, end in ((n // 3, n), (0, n // 3)):
        core.upper_sums("squared", np.empty(0, X.dtype), [X], upper, begin, end)
    return upper


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d"), [(1, 2), (2, 1), (40, 0), (97, 1), (200, 5), (305, 3)])
def test_upper_sums(core, n, d, dtype):
    X = np.random.default_rng(n).normal(size=(n, d)).astype(dtype)
    expected = oracles.pairwise(oracles.squared, X)[np.triu_indices(n, 1)]
    for rows in (X, np.asfortranarray(X), np.ascontiguousarray(X[::-1])[::-1]):
        np.testing.assert_allclose(upper_sums(core, rows), expected, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 3, 33, 100])
def test_centering(core, n):
    K = np.random.default_rng(n).normal(size=(n, n))
    K += K.T
    H = np.eye(n) - 1 / n
    upper, diagonal = K[np.triu_indices(n, 1)], np.diag(K).copy()
    core.center_upper(upper, diagonal)
    np.testing.assert_allclose(upper, (H @ K @ H)[np.triu_indices(n, 1)], atol=1e-13)
    np.testing.assert_allclose(diagonal, np.diag(H @ K @ H), atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_halves(core, dtype):
    for n in (0, 1, 2, 5, 70):
        K = np.arange(n * n, dtype=dtype).reshape(n, n)
        upper = np.empty(n * max(0, n - 1) // 2, dtype)
        core.fold_upper(K, upper)
        np.testing.assert_array_equal(upper, K[np.triu_indices(n, 1)])
        out = np.full((n, n), np.nan, dtype)
        core.unfold_upper(upper, np.diag(K).copy(), out)
        np.testing.assert_array_equal(out, np.triu(K) + np.triu(K, 1).T)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 512, 513, 3000, 50_000])
def test_ranks(core, n, dtype):
    rng = np.random.default_rng(n)
    for values in (rng.normal(size=n), rng.integers(3, size=n), np.arange(n), np.zeros(n)):
        values = np.ascontiguousarray(values, dtype)
        order = np.sort(values)
        for k in {0, n // 7, n // 2, n - 1}:
            assert core.ranked(values, k) == (order[k], order[min(k + 1, n - 1)])


def test_bad_arguments_are_refused(core):
    X, upper = np.ones((4, 3)), np.empty(6)
    numbers = np.empty(0)
    for wrong in (np.empty(5), np.empty(7)):
        with pytest.raises(ValueError, match="upper has the wrong length"):
            core.upper_sums("squared", numbers, [X], wrong, 0, 4)
        with pytest.raises(ValueError, match="upper has the wrong length"):
            core.fold_upper(np.ones((4, 4)), wrong)
        with pytest.raises(ValueError, match="upper has the wrong length"):
            core.unfold_upper(wrong, np.ones(4), np.empty((4, 4)))
        with pytest.raises(ValueError, match="upper has the wrong length"):
            core.center_upper(wrong, np.ones(4))
    with pytest.raises(ValueError, match="out of bounds"):
        core.upper_sums("squared", numbers, [X], upper, 0, 5)
    with pytest.raises(ValueError, match="not square"):
        core.fold_upper(np.ones((4, 3)), upper)
    with pytest.raises(ValueError, match="out has the wrong shape"):
        core.unfold_upper(upper, np.ones(4), np.empty((4, 5)))
    for rank in (-1, 6):
        with pytest.raises(ValueError, match="rank is out of range"):
            core.ranked(upper, rank)
