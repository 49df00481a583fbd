"""Close rows, huge and tiny values: rounding is that of the result, not of what cancels."""

import numpy as np
import oracles
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from hilbin.kernels import (
    Chi2,
    Exponential,
    Gaussian,
    Hellinger,
    Intersection,
    JensenShannon,
    Laplace,
    Linear,
    Normalized,
    Power,
    PValue,
)

FORMS = [np.asarray, np.asfortranarray, sp.csr_array]
INNER = [Chi2(), Intersection(), Intersection(0.5), JensenShannon(), Hellinger(), Linear()]
INNER += [Chi2() + Linear(), 2.0 * Chi2(), Power(Chi2(), 0.5)]
TERMS = {1: oracles.absolute, 2: oracles.squared}


def sparse_like(rng, n, columns, size):
    return size * rng.gamma(0.5, size=(n, columns)) * (rng.random((n, columns)) < 0.5)


@settings(deadline=None, max_examples=80)
@given(
    kernel=st.sampled_from(INNER),
    form=st.sampled_from(FORMS),
    dtype=st.sampled_from([np.float32, np.float64]),
    log_size=st.floats(-6, 8),
    columns=st.integers(1, 300),
    seed=st.integers(0, 999),
)
def test_exponentials_of_equal_rows_are_one(kernel, form, dtype, log_size, columns, seed):
    rng = np.random.default_rng(seed)
    X = sparse_like(rng, 9, columns, 10.0**log_size).astype(dtype)
    X[5], X[7] = X[2], X[2]
    K = Exponential(kernel, gamma=1.0)
    whole, pair = K.gram(form(X)), K.gram(form(X), form(X.copy()))
    known = K._against(form(X), None)(form(X.copy()))
    for G in (whole, pair, known):
        assert np.all(np.diag(G) == 1)
        assert G[5, 2] == G[2, 7] == 1
        assert np.all((G >= 0) & (G <= 1))
    assert np.array_equal(whole, whole.T)


@settings(deadline=None, max_examples=60)
@given(
    kernel=st.sampled_from([Chi2(), Intersection()]),
    log_size=st.floats(-3, 6),
    log_apart=st.floats(-7, 0),
    seed=st.integers(0, 999),
)
def test_exponentials_of_close_rows_of_float32(kernel, log_size, log_apart, seed):
    """The distance is right to a few units of float32, however large the norms are."""
    rng = np.random.default_rng(seed)
    X = (10.0**log_size * rng.gamma(1.0, size=(6, 50))).astype(np.float32)
    Y = (X * (1 + 10.0**log_apart * rng.uniform(-1, 1, X.shape))).astype(np.float32)
    x, y = (Z.astype(np.float64)[places] for Z, places in ((X, np.s_[:, None]), (Y, np.s_[None])))
    D = np.sum((x - y) ** 2 / (x + y) if kernel == Chi2() else np.abs(x - y), axis=2) / 2
    scale = float(np.median(np.diag(D)))  # that of the close rows
    K = Exponential(kernel, gamma=1 / scale).gram(X, Y)
    np.testing.assert_allclose(K, np.exp(-D / scale), atol=1e-5, rtol=0)


@settings(deadline=None, max_examples=80)
@given(
    kernel=st.sampled_from([Laplace(0.7, p=2), Laplace(0.7), Gaussian(0.7)]),
    log_size=st.floats(-2, 5),
    log_apart=st.floats(-12, 0),
    columns=st.integers(1, 200),
    seed=st.integers(0, 999),
)
def test_csr_distances_of_close_rows_are_as_exact_as_dense_ones(
    kernel, log_size, log_apart, columns, seed
):
    rng = np.random.default_rng(seed)
    X = sparse_like(rng, 12, columns, 10.0**log_size)
    X[3:6] = X[:3] * (1 + 10.0**log_apart * rng.uniform(-1, 1, (3, columns)))
    X[6:9, 0] += 10.0 ** (log_size + log_apart)
    X[9] = X[0]
    S = sp.csr_array(X)
    np.testing.assert_allclose(kernel.gram(S), kernel.gram(X), rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(kernel.gram(S, S.copy()), kernel.gram(X), rtol=1e-9, atol=1e-13)
    assert kernel.gram(S)[9, 0] == 1
    p = 1 if kernel == Laplace(0.7) else 2
    D = oracles.pairwise(TERMS[p], X)
    T = np.sqrt(D) if kernel == Laplace(0.7, p=2) else D
    np.testing.assert_allclose(kernel.gram(S), np.exp(-0.7 * T), rtol=1e-9, atol=1e-13)


@settings(deadline=None, max_examples=40)
@given(log_apart=st.floats(-9, 0), seed=st.integers(0, 999))
def test_csr_chi_squared_distances_of_close_rows(log_apart, seed):
    rng = np.random.default_rng(seed)
    X = sparse_like(rng, 6, 40, 1e4)
    Y = X * (1 + 10.0**log_apart * rng.uniform(-1, 1, X.shape))
    K = PValue(dof=1, gamma=1e-3)
    dense, csr = K.gram(X, Y), K.gram(sp.csr_array(X), sp.csr_array(Y))
    np.testing.assert_allclose(csr, dense, rtol=1e-9, atol=1e-13)


@settings(deadline=None, max_examples=80)
@given(
    kernel=st.sampled_from([*INNER, 1e-20 * Chi2()]),
    form=st.sampled_from(FORMS),
    dtype=st.sampled_from([np.float32, np.float64]),
    exponent=st.floats(-323, 2),
    seed=st.integers(0, 999),
)
def test_normalized_kernels_are_finite_for_denormals(kernel, form, dtype, exponent, seed):
    rng = np.random.default_rng(seed)
    X = (10.0**exponent * rng.uniform(1, 2, size=(6, 4))).astype(dtype)
    X[0] = 0
    K = Normalized(kernel)
    G = K.gram(form(X))
    assert np.isfinite(G).all()
    np.testing.assert_array_equal(np.diag(G), K.diag(X))
    assert np.array_equal(G, G.T)
    assert np.isfinite(K.gram(form(X), form(X[:2]))).all()


@pytest.mark.parametrize("form", FORMS)
def test_the_figures_of_the_issue(form):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1e4, size=(3, 64)).astype(np.float32)
    X[2] = X[0]
    assert Exponential(Chi2(), 1.0).gram(form(X))[0, 2] == 1
    tiny = Normalized(Linear()).gram(form([[1e-160, 0.0], [3e-160, 0.0]]))
    np.testing.assert_allclose(tiny, 1, rtol=1e-3)


@pytest.mark.parametrize("far", [0.0, 1e4, 1e8], ids=str)
@pytest.mark.parametrize("kernel", [Gaussian("median"), Exponential(Chi2(), "median")], ids=str)
def test_rules_are_those_of_rows_in_double_precision(kernel, far, monkeypatch):
    X = sparse_like(np.random.default_rng(0), 500, 12, 1.0) + far
    found = kernel.resolve(X)
    monkeypatch.setattr(type(kernel), "_single", lambda self, X: None)
    np.testing.assert_allclose(found.gamma, kernel.resolve(X).gamma, rtol=1e-4)
