"""Gram matrices written to given memory, or rounded, and quantiles of their entries."""

import numpy as np
import pytest
import scipy.sparse as sp
from catalogue import KERNELS
from hypothesis import given, settings
from hypothesis import strategies as st

from hilbin.kernels import GCS, Chi2, Exponential, Gaussian, Intersection, Laplace
from hilbin.kernels.bandwidth import quantile_above

pytestmark = pytest.mark.filterwarnings("ignore:the Gram matrix of")
DENSE = [kernel for kernel in KERNELS if not kernel.compact]


@pytest.mark.parametrize("kernel", DENSE, ids=repr)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_out_is_filled_with_the_same_matrix(kernel, form, dtype, histograms):
    rows = histograms.astype(dtype)
    X, Y = form(rows), form(rows[:9])
    for others in (None, Y):
        expected = kernel.gram(X, others)
        out = np.full(expected.shape, np.nan, dtype)
        assert kernel.gram(X, others, out=out) is out
        np.testing.assert_array_equal(out, expected)
        assert kernel(X, others, out=np.empty_like(out)) == pytest.approx(expected)


def test_out_of_a_compact_kernel_is_for_the_call_alone(histograms):
    kernel, out = GCS(1.0), np.empty((len(histograms), len(histograms)))
    with pytest.raises(ValueError, match=r"out is dense, but the Gram matrix of GCS"):
        kernel.gram(histograms, out=out)
    np.testing.assert_array_equal(kernel(histograms, out=out), kernel(histograms))


@pytest.mark.parametrize(
    ("out", "match"),
    [
        (np.empty((3, 2)), r"out must be an array of float64 of shape \(3, 3\)"),
        (np.empty((3, 3), np.float32), "got float32"),
        ([[0.0] * 3] * 3, "got <class 'list'>"),
        (np.empty((3, 3), order="F"), "C-contiguous"),
    ],
)
def test_a_wrong_out_is_refused(out, match):
    with pytest.raises(ValueError, match=match):
        Intersection().gram(np.ones((3, 2)), out=out)


def test_an_out_that_is_the_rows_is_refused():
    X = np.ones((3, 3))
    with pytest.raises(ValueError, match="shares memory"):
        Intersection().gram(X, out=X)
    X.flags.writeable = False
    with pytest.raises(ValueError, match="writeable"):
        Intersection().gram(np.ones((3, 2)), out=X)


@pytest.mark.parametrize("n", [1, 5, 96, 97, 250])
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    "kernel",
    [Gaussian(0.3), Laplace(0.5), Laplace(0.5, p=2), Exponential(Chi2()), Chi2()],
    ids=repr,
)
def test_symmetric_matrices_are_those_of_two_sides(kernel, n, n_jobs):
    X = np.random.default_rng(n).gamma(0.5, size=(n, 7))
    for rows in (X, X.astype(np.float32), np.asfortranarray(X)):
        K = kernel.gram(rows, n_jobs=n_jobs)
        np.testing.assert_array_equal(K, K.T)
        np.testing.assert_allclose(K, kernel.gram(rows, rows.copy()), rtol=1e-6)
    rounded = kernel._gram_as(X, np.float32, n_jobs)
    np.testing.assert_array_equal(rounded, kernel.gram(X).astype(np.float32))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 999),
    n=st.integers(2, 40),
    q=st.floats(0.001, 0.999),
    distinct=st.sampled_from([1, 2, 5, 10**6]),
    size=st.sampled_from([1e-300, 1e-3, 1.0, 1e300]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_quantiles_are_those_of_numpy(seed, n, q, distinct, size, dtype):
    rng = np.random.default_rng(seed)
    values = (rng.integers(distinct, size=(n, n)) * (size if dtype == np.float64 else 1.0)).astype(
        dtype
    )
    pairs = values[np.triu_indices(n, 1)].astype(np.float64)
    assert quantile_above(values, q) == pytest.approx(np.quantile(pairs, q), rel=1e-12)


def test_the_quantile_of_what_is_not_finite_is_none():
    assert np.isnan(quantile_above(np.full((3, 3), np.inf), 0.5))
    assert np.isnan(quantile_above(np.full((3, 3), np.nan), 0.5))
