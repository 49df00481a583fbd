"""Statistics of columns, and what a descent reads of a problem, against plain NumPy."""

import importlib

import numpy as np
import oracles
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from hilbin._core import LEVELS
from hilbin._core import core as chosen
from hilbin.estimators.intersection.quantiles import extremes, quantile_range
from hilbin.estimators.probability import row_keys
from hilbin.solvers import Problem
from hilbin.solvers.icd import packed, unpacked

NONE = np.empty(0)


@pytest.fixture(params=LEVELS)
def core(request):
    return importlib.import_module(f"hilbin._core._{request.param}")


def drawn(kind, n, seed=0):
    """Values without ties, with many, with outliers, in order, and mostly zero."""
    rng = np.random.default_rng(seed)
    return {
        "normal": lambda: rng.normal(size=n),
        "few": lambda: rng.integers(0, 3, n).astype(float),
        "constant": lambda: np.full(n, 2.0),
        "far": lambda: np.exp(15 * rng.normal(size=n)),
        "sorted": lambda: np.sort(rng.random(n)),
        "zeros": lambda: np.where(rng.random(n) < 0.9, 0, rng.random(n)),
    }[kind]()


@pytest.mark.parametrize("kind", ["normal", "few", "constant", "far", "sorted", "zeros"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_quantiles(core, kind, dtype):
    """They are the values that sorting finds, also of more than a sample."""
    for n in (1, 600, 5000, 70000):
        values, out = drawn(kind, n).astype(dtype), np.empty(1, dtype)
        for low in (-np.inf, 0.0, np.median(values)):
            for q in (1e-9, 0.025, 0.5, 0.975, 1.0):
                bound = np.array([low], dtype)
                core.column_quantiles(values, np.array([0, n]), NONE, bound, q, out, 0, 1)
                above = values[values > bound]
                assert out[0] == (oracles.quantile(above, q) if above.size else bound[0])


@given(st.lists(st.integers(-3, 3), min_size=513, max_size=600), st.floats(0, 1))
@settings(max_examples=20, deadline=None)
def test_quantiles_of_ties(values, q):
    """Ties at the ends of a bracket are counted once."""
    values, out = np.array(values, np.float64), np.empty(1)
    below = np.array([-np.inf])
    chosen.column_quantiles(values, np.array([0, values.size]), NONE, below, q, out, 0, 1)
    assert out[0] == oracles.quantile(values, q)


def check_ranges(core, X, q):
    """Compare the ends of the ranges of all columns with those of sorting."""
    share = round(1 - q, 12)
    low, high = np.empty((2, X.shape[1]), X.dtype)
    core.column_ranges(X, share, q, low, high, 0, X.shape[1])
    np.testing.assert_array_equal(low, [oracles.quantile(x, share) for x in X.T])
    above = [x[x > a] for x, a in zip(X.T, low, strict=True)]
    expected = [oracles.quantile(x, q) if x.size else a for x, a in zip(above, low, strict=True)]
    np.testing.assert_array_equal(high, expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [1, 5, 300, 2000, 20000])
def test_ranges_in_one_pass(core, n, dtype):
    """They are the quantiles of every column, whatever its values are, and however many columns."""
    kinds = ["normal", "few", "constant", "far", "sorted", "zeros"]
    X = np.column_stack([drawn(kinds[j % 6], n, seed=j) for j in range(71)]).astype(dtype)
    for q in (1.0, 0.975, 0.9, 0.5, 0.2):
        check_ranges(core, X, q)
    part = np.full((2, 71), -7, dtype)
    core.column_ranges(X, 0.025, 0.975, *part, 3, 70)
    assert (part[:, [0, 1, 2, 70]] == -7).all()
    whole = quantile_range(np.asfortranarray(X), X.min(axis=0), 0.975, None, None)
    np.testing.assert_array_equal(part[:, 3:70], np.stack(whole)[:, 3:70])


@given(st.lists(st.integers(-2, 2), min_size=400, max_size=420), st.floats(0.5, 1))
@settings(max_examples=20, deadline=None)
def test_ranges_of_ties(values, q):
    """Ties at the limits are counted once."""
    check_ranges(chosen, np.column_stack([values, np.sort(values)]).astype(np.float64), q)


def test_ranges_of_columns_that_mislead(core):
    """The rows that are looked at first are unlike all others."""
    n, step = 20000, 0x9E3779B97F4A7C15
    looked_at = [(k * step % 2**64 >> 32) * n >> 32 for k in range(1, 1025)]
    X = np.random.default_rng(0).normal(5, 1, (n, 3))
    X[looked_at, 0] = 0
    X[looked_at, 1] = 100
    check_ranges(core, X, 0.975)


@pytest.mark.parametrize("order", ["C", "F"])
def test_ranges_of_columns(order):
    """Extremes and quantiles do not depend on how rows are stored."""
    X = np.random.default_rng(0).poisson(0.3, (700, 19)).astype(float) - 0.5
    least, greatest = extremes(np.asarray(X, order=order))
    np.testing.assert_array_equal([least, greatest], [X.min(axis=0), X.max(axis=0)])
    low, high = quantile_range(np.asarray(X, order=order), least, 0.975, None, 2)
    np.testing.assert_array_equal(low, [oracles.quantile(x, 0.025) for x in X.T])
    expected = [oracles.quantile(x[x > a], 0.975) for x, a in zip(X.T, low, strict=True)]
    np.testing.assert_array_equal(high, expected)


def test_extremes_of_sparse_columns():
    """What is not stored is zero, except in a column that is full."""
    X = np.array([[1.0, 0, 3], [2, 0, -1], [4, -2, 0]])
    least, greatest = extremes(sp.csr_array(X))
    np.testing.assert_array_equal([least, greatest], [X.min(axis=0), X.max(axis=0)])


def test_whole_numbers(core):
    """One value that is not whole is found wherever it is."""
    values = np.arange(10000.0)
    assert core.all_whole(values)
    for k in (0, 5000, 9999):
        broken = values.copy()
        broken[k] += 0.5
        assert not core.all_whole(broken)
        assert not core.all_whole(-broken.astype(np.float32))


def test_whole_numbers_of_any_size(core):
    """Numbers so large that they have no fraction are whole."""
    for dtype in (np.float32, np.float64):
        sizes = np.concatenate([2.0 ** np.arange(-3, 120), [0, 1.5, 2**22 + 0.5, 2**51 + 0.5]])
        for value in np.concatenate([sizes, -sizes]).astype(dtype):
            assert core.all_whole(np.full(9, value)) == (value == np.floor(value))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_keys_of_rows(dtype):
    """Equal rows have equal keys, dense or sparse, and others do not."""
    X = np.random.default_rng(0).poisson(1.0, (300, 7)).astype(dtype)
    keys = row_keys(X)
    np.testing.assert_array_equal(keys, row_keys(sp.csr_array(X)))
    np.testing.assert_array_equal(keys, row_keys(X.astype(np.float64)))
    assert np.unique(keys).size == np.unique(X, axis=0).shape[0]


def test_bad_values_are_found_in_any_place(core):
    """NaN, infinities and values below the least allowed, in whole vectors and behind them."""
    given = [np.zeros(7), np.ones(7), np.full(7, 9.0), False]
    for k in range(21):
        for bad in (np.nan, np.inf, -np.inf, -1.0):
            x, out = np.ones(21), np.empty(21, np.uint8)
            x[k] = bad
            run = (x, np.empty(0, np.int32), *given, out, 0, 21)
            assert not core.bin_even(*run, 0.0)
            assert core.bin_even(*run, -np.inf) == (bad == -1)
            assert core.bin_even(*run, np.nan)


def test_losses_and_packed_rows():
    """Losses are the maxima that define them; packed rows hold the start within the bounds."""
    rng = np.random.default_rng(0)
    n = 50
    y = rng.choice([-1.0, 1.0], n)
    low, high = np.minimum(0, 2 * y), np.maximum(0, 2 * y)
    scores, start = rng.normal(0, 2, (2, n))
    for diagonal, epsilon in ((0.0, 0.0), (0.5, 0.0), (rng.random(n), 0.1)):
        problem = Problem(y, low, high, diagonal, epsilon)
        c = np.linspace(low, high, 20001)
        value = (y - scores) * c - 0.5 * problem.diagonal * c**2 - epsilon * np.abs(c)
        np.testing.assert_allclose(problem.losses(scores), value.max(axis=0), atol=1e-6)
        lines = packed(problem, np.ones(n), start)
        np.testing.assert_array_equal(unpacked(lines), np.clip(start, low, high))
