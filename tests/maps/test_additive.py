"""The additive map: every method against the Gram matrix, its stated error, and its manners."""

import pickle
from dataclasses import dataclass

import numpy as np
import oracles
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from hilbin.kernels import (
    AdditiveKernel,
    Chi2,
    Gaussian,
    Hellinger,
    Intersection,
    JensenShannon,
    StationaryKernel,
    check_kernel,
)
from hilbin.maps import AdditiveMap, SparseMap
from hilbin.maps.additive import spectrum_of
from hilbin.maps.density import density

HOMOGENEOUS = [Chi2(), JensenShannon(), Intersection(), Intersection(beta=0.5), Hellinger()]
PARAMETERS = ["fit", "universal", "zolotarev", "greedy", "greedy-density"]


@dataclass(frozen=True, repr=False)
class Bell(StationaryKernel):
    """exp(-(a - b)^2 / 2), coordinate by coordinate."""

    def profile(self, t):
        return np.exp(-(t**2) / 2)


@dataclass(frozen=True, repr=False)
class Shifted(AdditiveKernel):
    """A kernel of neither family: u = log(1 + x), r = x, P = exp(-t)."""

    nonnegative = True

    def coordinate(self, x):
        return np.log1p(x)

    def value(self, u):
        return np.expm1(u)

    def weight(self, x):
        return x

    def profile(self, t):
        return np.exp(-t)


def methods(kernel):
    named = ["auto", "nystroem", "eigen"] + ["harmonic"] * (not isinstance(kernel, Hellinger))
    return named + ["series", "chebyshev"] * isinstance(kernel, Chi2)


def relative(Z, K):
    return np.linalg.norm(Z @ Z.T - K) / np.linalg.norm(K)


@pytest.mark.parametrize("kernel", HOMOGENEOUS, ids=repr)
def test_every_method_converges_to_the_kernel(kernel, histograms):
    K = kernel.gram(histograms)
    for method in methods(kernel):
        if isinstance(kernel, Hellinger) and method != "auto":
            continue
        few, many = (
            relative(AdditiveMap(kernel, n, method=method).fit_transform(histograms), K)
            for n in (2, 12)
        )
        slow = isinstance(kernel, Intersection) or method == "chebyshev"
        assert many < (0.1 if slow else 1e-2)
        assert many < 0.5 * few or few < 1e-12


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_parameters_of_the_series(parameters, histograms):
    feature_map = AdditiveMap(Chi2(), 7, parameters=parameters).fit(histograms)
    assert feature_map.method_ == "series"
    assert feature_map.error_.kind == "guaranteed"
    assert feature_map.parameters_.size == 7
    K = Chi2().gram(histograms)
    E = np.abs(feature_map.transform(histograms) @ feature_map.transform(histograms).T - K)
    assert E.max() <= histograms.shape[1] * feature_map.error_.worst


@pytest.mark.parametrize("kernel", [*HOMOGENEOUS, Shifted()], ids=repr)
def test_the_law_of_kernels_with_their_map(kernel):
    check_kernel(kernel, feature_map=AdditiveMap(kernel, 9))


def test_the_law_finds_a_map_that_promises_too_much(histograms):
    class Boaster(AdditiveMap):
        def fit(self, X, y=None):
            super().fit(X)
            self.error_ = AdditiveMap(Hellinger()).fit(X).error_
            return self

    with pytest.raises(AssertionError, match="states an error of 0"):
        check_kernel(Chi2(), histograms, feature_map=Boaster(Chi2(), 2))


@given(
    st.integers(0, 10_000),
    st.floats(-8, 4),
    st.floats(0.1, 6),
    st.integers(1, 9),
    st.sampled_from(PARAMETERS),
)
def test_guaranteed_errors_are(seed, exponent, decades, n, parameters):
    rng = np.random.default_rng(seed)
    x = 10 ** (exponent + decades * rng.uniform(size=(60, 1)))
    feature_map = AdditiveMap(Chi2(), n, method="series", parameters=parameters).fit(x)
    error, (low, high) = feature_map.error_, feature_map.domain_
    inside = low * (high / low) ** rng.uniform(size=(80, 1))
    y = np.concatenate([x, inside, [[low], [high]]])
    Z, K = feature_map.transform(y), oracles.harmonic(y, y.T)
    E = np.abs(Z @ Z.T - K)
    assert E.max() <= error.worst * (1 + 1e-9) + 1e-14 * high
    assert np.max(E / np.sqrt(y * y.T)) <= error.worst_relative * (1 + 1e-9) + 1e-13
    below = high * 10.0 ** rng.uniform(-12, 0, size=(80, 1))  # the absolute one holds down to 0
    Z, K = feature_map.transform(below), oracles.harmonic(below, below.T)
    assert np.max(np.abs(Z @ Z.T - K)) <= error.worst * (1 + 1e-9) + 1e-14 * high


@pytest.mark.parametrize("kernel", HOMOGENEOUS[:4], ids=repr)
def test_values_beyond_the_range_keep_to_the_stated_bound(kernel):
    x = np.geomspace(1e-3, 1, 200)[:, None]
    beyond = np.concatenate([np.geomspace(1e-9, 1e-3, 40), np.geomspace(1, 1e6, 40)])[:, None]
    K, size = kernel.gram(beyond), np.sqrt(np.outer(kernel.diag(beyond), kernel.diag(beyond)))
    for method in ("nystroem", "eigen", "series")[: 2 + isinstance(kernel, Chi2)]:
        Z = AdditiveMap(kernel, 5, method=method).fit(x).transform(beyond)
        assert np.isfinite(Z).all()
        assert np.all(np.abs(Z @ Z.T - K) <= size * (1 + 1e-6))


def test_domain_widens_the_guarantee(histograms):
    wide = AdditiveMap(Chi2(), domain=(1e-3, 50.0), parameters="universal").fit(histograms)
    assert wide.domain_ == (1e-3, 50.0)
    assert wide.error_.worst == pytest.approx(50 * 3.0339e-4, rel=1e-3)


@pytest.mark.parametrize("n", [1, 4, 5])
@pytest.mark.parametrize("kernel", HOMOGENEOUS[:4], ids=repr)
def test_eigen_meets_the_eigenvalue_bound(kernel, n, histograms):
    values = density(kernel, histograms)
    root = np.sqrt(values.mass)
    lam = np.linalg.eigvalsh(root[:, None] * values.kernel_matrix() * root)
    bound = np.sqrt(np.sum(lam[:-n] ** 2))
    found = AdditiveMap(kernel, n, method="eigen").fit(histograms).error_.expected
    assert bound * (1 - 0.02) <= found <= 1.1 * bound + 1e-12
    default = AdditiveMap(kernel, n).fit(histograms).error_.expected
    assert default <= 1.3 * bound + 1e-12


def test_harmonic_is_scikit_learns_sampler_at_its_step(histograms):
    from hilbin.maps import additive

    waves = additive._waves(Chi2(), spectrum_of(Chi2()), 0.4, 5)(histograms[histograms > 0])
    x = histograms[histograms > 0][:, None]
    peer = AdditiveChi2Sampler(sample_steps=3, sample_interval=0.4).fit_transform(x)
    np.testing.assert_allclose(waves @ waves.T, peer @ peer.T, atol=1e-9)


@pytest.mark.parametrize(
    ("kernel", "spectrum"),
    [
        (Chi2(), lambda w: 1 / np.cosh(np.pi * w)),
        (Intersection(), lambda w: 2 / np.pi / (1 + 4 * w**2)),
        (JensenShannon(), lambda w: 2 / np.cosh(np.pi * w) / (np.log(4) * (1 + 4 * w**2))),
        (Bell(), lambda w: np.exp(-(w**2) / 2) / np.sqrt(2 * np.pi)),
    ],
    ids=["chi2", "intersection", "jensen-shannon", "bell"],
)
def test_spectra(kernel, spectrum):
    w = np.linspace(0, 6, 25)
    np.testing.assert_allclose(spectrum_of(kernel)(w), spectrum(w), atol=1e-8)


def test_default_is_far_below_the_harmonic_map():
    X = load_digits().data[:300]
    X = X / X.sum(axis=1, keepdims=True)
    for kernel in (Chi2(), JensenShannon()):
        K = kernel.gram(X)
        harmonic = relative(AdditiveMap(kernel, method="harmonic").fit_transform(X), K)
        assert relative(AdditiveMap(kernel).fit_transform(X), K) < harmonic / 20


@pytest.mark.parametrize("kernel", [Chi2(), JensenShannon()], ids=repr)
@pytest.mark.parametrize("tol", [0.1, 1e-3])
def test_tolerance_chooses_the_fewest_components(kernel, tol, histograms):
    chosen = AdditiveMap(kernel, tol=tol).fit(histograms)
    assert chosen.error_.expected_relative <= tol
    n = chosen.n_components_
    if n > 1:
        assert AdditiveMap(kernel, n - 1).fit(histograms).error_.expected_relative > tol


def test_tolerance_out_of_reach(histograms):
    with pytest.raises(ValueError, match=r"tol=1e-05 needs more than 64 .* Intersection\(\)"):
        AdditiveMap(Intersection(), tol=1e-5).fit(histograms)


def test_hellinger_is_exact(histograms):
    feature_map = AdditiveMap(Hellinger()).fit(histograms)
    assert feature_map.method_ == "exact"
    np.testing.assert_array_equal(feature_map.transform(histograms), np.sqrt(histograms))


@pytest.mark.parametrize("kernel", [*HOMOGENEOUS, Shifted()], ids=repr)
def test_dense_csr_float32_rows_and_threads(kernel, histograms):
    feature_map = AdditiveMap(kernel, 6).fit(histograms)
    Z = feature_map.transform(histograms)
    assert Z.shape == (70, 33 * feature_map.n_components_)
    S = feature_map.transform(sp.csr_matrix(histograms))
    assert sp.isspmatrix_csr(S)
    assert S.nnz == feature_map.n_components_ * np.count_nonzero(histograms)
    assert S.has_canonical_format
    np.testing.assert_array_equal(S.toarray(), Z)
    np.testing.assert_array_equal(feature_map.transform(np.asfortranarray(histograms)), Z)
    np.testing.assert_array_equal(feature_map.transform(histograms[3:11]), Z[3:11])
    threaded = clone(feature_map).set_params(n_jobs=2).fit(histograms)
    many = np.tile(histograms, (40, 1))
    np.testing.assert_array_equal(threaded.transform(many), np.tile(Z, (40, 1)))
    single = feature_map.transform(histograms.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, Z, atol=2e-6 * np.abs(Z).max())
    assert feature_map.transform(sp.csr_array(histograms.astype(np.float32))).dtype == np.float32


def test_a_kernel_of_neither_sign():
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[:, 2] = 0
    for method in ("nystroem", "eigen", "harmonic"):
        feature_map = AdditiveMap(Bell(), 8, method=method).fit(X)
        Z = feature_map.transform(X)
        assert relative(Z, Bell().gram(X)) < 1e-2
        from_csr = feature_map.transform(sp.csr_array(X))
        assert isinstance(from_csr, np.ndarray)  # the features of 0 are not 0
        np.testing.assert_array_equal(from_csr, Z)
    check_kernel(Bell(), feature_map=AdditiveMap(Bell(), 8))


def test_few_distinct_values():
    binary = np.array([[0.0, 1, 1], [1, 0, 1]])
    for kernel in (Chi2(), JensenShannon()):
        feature_map = AdditiveMap(kernel, 5).fit(binary)
        Z = feature_map.transform(binary)
        np.testing.assert_allclose(Z @ Z.T, kernel.gram(binary), atol=1e-9)
        other = 1 + binary  # and others are served too
        Z = feature_map.transform(other)
        np.testing.assert_allclose(Z @ Z.T, kernel.gram(other), rtol=0.1)


@pytest.mark.parametrize("kernel", HOMOGENEOUS, ids=repr)
def test_poor_data(kernel):
    for X in (
        np.zeros((3, 2)),
        np.array([[0.0, 2.0]]),
        np.full((4, 1), 1e-30),
        sp.csr_array((2, 3)),
    ):
        Z = AdditiveMap(kernel).fit_transform(X)
        K = kernel.gram(X)
        np.testing.assert_allclose((Z @ Z.T).toarray() if sp.issparse(Z) else Z @ Z.T, K, rtol=2e-3)


def test_extreme_ranges():
    X = 10.0 ** np.linspace(-300, 300, 40)[:, None]
    Z = AdditiveMap(Chi2(), 9, method="series").fit_transform(X)
    assert np.isfinite(Z).all()
    small = (10.0 ** np.linspace(-37, 37, 40)[:, None]).astype(np.float32)
    for kernel in (Chi2(), JensenShannon(), Intersection()):
        assert np.isfinite(AdditiveMap(kernel).fit_transform(small)).all()


@pytest.mark.parametrize("size", [1e-60, 1e60])
def test_values_beyond_float32(size):
    x = size * np.array([[1.0], [2.0], [3.0]])
    Z = AdditiveMap(Chi2()).fit_transform(x)  # in closed form
    np.testing.assert_allclose(Z @ Z.T, Chi2().gram(x), rtol=1e-6)
    for feature_map in (AdditiveMap(JensenShannon()), SparseMap(Chi2(), 5)):
        with pytest.raises(ValueError, match=r"outside the range of float32.*scale the data"):
            feature_map.fit(x)


def test_more_components_than_rank():
    x = np.linspace(1, 2, 50)[:, None]
    with pytest.warns(UserWarning, match=r"n_components=40 is more than the rank \d+ of JensenSh"):
        feature_map = AdditiveMap(JensenShannon(), 40).fit(x)
    assert feature_map.n_components_ < 40
    assert relative(feature_map.transform(x), JensenShannon().gram(x)) < 1e-7


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"kernel": Gaussian()}, TypeError, "takes an additive kernel, got Gaussian.*NystroemMap"),
        ({"kernel": "chi2"}, TypeError, "takes an additive kernel, got 'chi2'"),
        ({"n_components": 0}, ValueError, "n_components must be a whole number >= 1, got 0"),
        ({"n_components": 65}, ValueError, "n_components must be at most 64, got 65"),
        ({"method": "taylor"}, ValueError, "method must be one of .*, got 'taylor'"),
        ({"parameters": "best"}, ValueError, "parameters must be one of .*, got 'best'"),
        ({"parameters": [1.0, -1.0]}, ValueError, "parameters must be 1 to 64 numbers > 0"),
        ({"tol": 0.0}, ValueError, "tol must be a number > 0"),
        ({"domain": (0.0, 1.0)}, ValueError, "domain must be"),
        ({"domain": (1.0,)}, ValueError, "domain must be"),
        ({"domain": (1.0, np.inf)}, ValueError, "domain must be"),
        ({"domain": ("a", "b")}, ValueError, "domain must be"),
        ({"kernel": Intersection(), "method": "series"}, ValueError, "is for Chi2 alone"),
        ({"kernel": Hellinger(), "method": "chebyshev"}, ValueError, "is for Chi2 alone"),
    ],
)
def test_bad_parameters(parameters, error, message, histograms):
    with pytest.raises(error, match=message):
        AdditiveMap(**({"kernel": Chi2()} | parameters)).fit(histograms)


def test_bad_data(histograms):
    feature_map = AdditiveMap(Chi2()).fit(histograms)
    bad = histograms.copy()
    bad[3, 4] = -0.5
    with pytest.raises(ValueError, match=r"Negative values in data: X\[3, 4\] = -0.5.*Chi2"):
        feature_map.transform(bad)
    bad[3, 4] = np.nan
    with pytest.raises(ValueError, match=r"X\[3, 4\] = nan is not finite"):
        AdditiveMap(Chi2()).fit(sp.csr_array(bad))
    with pytest.raises(ValueError, match="32 features, but AdditiveMap is expecting 33"):
        feature_map.transform(histograms[:, :-1])


def test_the_harmonic_method_needs_a_profile_that_falls():
    @dataclass(frozen=True, repr=False)
    class Slow(StationaryKernel):
        def profile(self, t):
            return 1 / (1 + t) ** 0.5

    with pytest.raises(ValueError, match="needs a profile that falls to 0"):
        AdditiveMap(Slow(), method="harmonic").fit([[1.0], [2.0]])


def test_names_pandas_and_pickle(histograms):
    frame = pd.DataFrame(histograms[:, :3], columns=["a", "b", "c"])
    feature_map = AdditiveMap(Chi2(), 2).fit(frame)
    assert list(feature_map.get_feature_names_out()) == ["a_0", "a_1", "b_0", "b_1", "c_0", "c_1"]
    out = feature_map.set_output(transform="pandas").transform(frame)
    assert list(out.columns) == list(feature_map.get_feature_names_out())
    again = pickle.loads(pickle.dumps(feature_map))
    np.testing.assert_array_equal(again.transform(frame), out)


def test_grid_over_kernels_and_sizes():
    X, y = load_digits(return_X_y=True)
    model = make_pipeline(AdditiveMap(Chi2()), LinearSVC(C=0.01))
    grid = {
        "additivemap__kernel": [Chi2(), JensenShannon(), Hellinger()],
        "additivemap__n_components": [1, 3],
    }
    search = GridSearchCV(model, grid, cv=2).fit(X[:400], y[:400])
    assert search.best_score_ > 0.9


@given(st.integers(0, 1000), st.sampled_from([Chi2(), JensenShannon(), Intersection()]))
def test_the_error_is_positive_definite(seed, kernel):
    """Features of projections never exceed the kernel: k(x, x) >= |f(x)|^2."""
    x = np.random.default_rng(seed).gamma(0.3, size=(40, 1))
    assume(x.min() > 1e-12)
    for method in ("nystroem", "eigen"):
        Z = AdditiveMap(kernel, 4, method=method).fit(x).transform(x)
        E = kernel.gram(x) - Z @ Z.T
        assert np.linalg.eigvalsh(E)[0] >= -2e-3 * kernel.diag(x).max()


@parametrize_with_checks(
    [
        AdditiveMap(Chi2(), 3),
        AdditiveMap(Chi2(), 3, method="series"),
        AdditiveMap(JensenShannon(), 2, method="nystroem"),
        AdditiveMap(Intersection(), 2),
        AdditiveMap(Hellinger()),
        AdditiveMap(Bell(), 3),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)
