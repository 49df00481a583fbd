"""Gram matrices written to given memory, or rounded, and quantiles of their entries."""

import numpy as np
import pytest
import scipy.sparse as sp
from catalogue import KERNELS
from hypothesis import given, settings
from hypothesis import strategies as st

from hilbin.kernels import GCS, Chi2, Exponential, Gaussian, Intersection, Laplace
from hilbin.kernels.bandwidth import quantile
from hilbin.kernels.pairwise import Op, fold_upper, pairwise_sum, unfold_upper, upper_sums

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


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 999),
    n=st.integers(1, 40) | st.integers(400, 30_000),
    q=st.floats(0, 1),
    distinct=st.sampled_from([1, 2, 5, 1000, 10**6]),
    size=st.sampled_from([1e-300, 1e-3, 1.0, 1e300]),
    shape=st.sampled_from(["random", "ascending", "descending", "skewed"]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_quantiles_are_those_of_numpy(seed, n, q, distinct, size, shape, dtype):
    values = np.random.default_rng(seed).integers(distinct, size=n).astype(np.float64)
    if shape in ("ascending", "descending"):
        values = np.sort(values)[:: 1 if shape == "ascending" else -1]
    elif shape == "skewed":
        values = values**4
    scale = size / distinct**4 if dtype == np.float64 else 1.0
    values = np.ascontiguousarray(values * scale, dtype)
    wanted = np.quantile(values.astype(np.float64), q)
    assert quantile(values, q) == pytest.approx(wanted, rel=1e-12, abs=0)


@pytest.mark.parametrize("period", [2, 3, 16, 500, 1024])
def test_an_unlucky_sample_changes_no_quantile(period):
    """Values that repeat with a period may look different to a sample than they are."""
    values = (np.arange(20_000) % period == 0).astype(float) + np.arange(20_000) * 1e-9
    for q in (0.01, 0.49, 0.5, 0.51, 0.99):
        assert quantile(values, q) == pytest.approx(np.quantile(values, q), rel=1e-12)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n", [3, 10_000])
def test_the_quantile_of_what_is_not_finite_is_none(value, n):
    values = np.linspace(0, 1, n)
    values[n // 2] = value
    assert np.isnan(quantile(values, 0.5))


@pytest.mark.parametrize("n", [1, 2, 5, 16, 96, 97, 250])
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    "op", [Op("squared", vanishes=False), Op("minimum")], ids=lambda op: op.name
)
def test_upper_halves(op, n, n_jobs):
    X = np.random.default_rng(n).gamma(0.5, size=(n, 7))
    above = np.triu_indices(n, 1)
    for rows in (X, X.astype(np.float32), np.asfortranarray(X), X[::-1], sp.csr_array(X)):
        K = pairwise_sum(op, rows, None, n_jobs)
        upper = upper_sums(op, rows, n_jobs)
        np.testing.assert_allclose(upper, K[above], rtol=1e-6, atol=1e-6)
        assert upper.dtype == K.dtype
        np.testing.assert_array_equal(fold_upper(K), K[above])
        np.testing.assert_array_equal(unfold_upper(K[above], np.diag(K).copy()), K)
