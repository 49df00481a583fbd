"""Rules for the radius of a compact kernel follow the dimension; near-identity matrices warn."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from hilbin.estimators import KernelRidge, KernelSVC
from hilbin.kernels import GCS, Gaussian, Laplace, Power, Quantile, Sparsity, geometric_profile

STATISTICS = {
    "median": np.median,
    "mean": np.mean,
    Quantile(0.2): lambda d: np.quantile(d, 0.2),
}


def normal_rows(seed, n, columns, size=1.0):
    return size * np.random.default_rng(seed).normal(size=(n, columns))


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 99),
    columns=st.integers(1, 200),
    size=st.sampled_from([1e-3, 1.0, 1e3]),
    rule=st.sampled_from(list(STATISTICS)),
    sparse=st.booleans(),
)
def test_the_kernel_is_one_over_e_at_the_distance_of_a_rule(seed, columns, size, rule, sparse):
    X = normal_rows(seed, 40, columns, size)
    radius = GCS(rule).resolve(sp.csr_array(X) if sparse else X).radius
    u = STATISTICS[rule](pdist(X)) / (2 * radius)
    assert geometric_profile(u, columns) == pytest.approx(np.exp(-1), rel=1e-9)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 99), columns=st.integers(2, 300))
def test_rules_of_compact_and_gaussian_kernels_agree(seed, columns):
    """One rule leaves rows about as similar under both kernels, in any dimension."""
    X = normal_rows(seed, 120, columns)
    compact = GCS("median").resolve(X).gram(X).toarray()
    gaussian = Gaussian("median").resolve(X).gram(X)
    off = ~np.eye(120, dtype=bool)
    assert np.median(compact[off]) == pytest.approx(np.median(gaussian[off]), rel=1e-6)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 99), columns=st.integers(1, 30), zeros=st.floats(0.1, 0.95))
def test_sparsity_is_the_share_of_zeros(seed, columns, zeros):
    X = normal_rows(seed, 150, columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        K = GCS(Sparsity(zeros)).resolve(X).gram(X)
    assert 1 - (K.nnz - 150) / (150 * 149) == pytest.approx(zeros, abs=1e-3)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 99),
    n=st.integers(20, 300),
    columns=st.integers(1, 60),
    share=st.floats(0.01, 3.0),
    wrap=st.sampled_from([lambda k: k, lambda k: 0.5 * k, lambda k: k * Laplace(0.1, p=2)]),
)
def test_near_identity_matrices_warn_and_no_others(seed, n, columns, share, wrap):
    X = normal_rows(seed, n, columns)
    kernel = wrap(GCS(share * float(np.median(pdist(X)))))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        K = kernel.gram(X).toarray()
    others = np.median(K.sum(axis=1) / np.diag(K)) - 1
    if not 0.05 < others < 0.2:  # near the limit the rows that are looked at decide
        assert bool(caught) == (others < 0.1)
    if caught:
        message = str(caught[0].message)
        assert f"on {n} rows is close to the identity" in message
        assert 'radius="median"' in message
        assert "PCA" in message


@pytest.mark.parametrize(
    "model", [KernelSVC(GCS(1e-3)), KernelRidge(GCS(1e-3)), SVC(kernel=GCS(1e-3))], ids=repr
)
def test_fits_warn_too(model):
    X = normal_rows(0, 60, 3)
    with pytest.warns(UserWarning, match="close to the identity"):
        model.fit(X, X[:, 0] > 0)


def test_few_rows_do_not_warn():
    assert GCS(1e-3).gram(normal_rows(0, 19, 3)).nnz == 19


def test_digits_are_learned_by_the_rule():
    X, y = load_digits(return_X_y=True)
    right = {
        kernel: KernelSVC(kernel, C=10).fit(X[:1000], y[:1000]).score(X[1000:], y[1000:])
        for kernel in (GCS("median"), GCS("mean"), GCS(Quantile(0.1)), Gaussian("median"))
    }
    assert min(right.values()) > right[Gaussian("median")] - 0.01


def test_rules_see_the_dimension_that_is_given():
    X = np.random.default_rng(0).dirichlet(np.ones(5), 30)
    assert GCS("median", dim=4).resolve(X).radius < GCS("median").resolve(X).radius
    with pytest.raises(ValueError, match="too small"):
        GCS("median", dim=3).resolve(X)


def test_powers_resolve_rules_on_powers():
    X = np.random.default_rng(0).uniform(size=(30, 4))
    assert Power(GCS("median"), 0.25).resolve(X).kernel == GCS("median").resolve(X**0.25)


def test_sparsity_is_for_compact_kernels_alone():
    with pytest.raises(ValueError, match="gamma of Gaussian must be a number > 0"):
        Gaussian(Sparsity(0.9))
    with pytest.raises(ValueError, match="zeros of Sparsity must be in"):
        Sparsity(1.0)
    with pytest.raises(ValueError, match="is a rule, not a number"):
        GCS(Sparsity(0.9)).gram(normal_rows(0, 5, 2))
