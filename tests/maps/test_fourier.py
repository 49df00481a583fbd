"""Random Fourier features: what they mean, and that they are drawn and computed right."""

import pickle

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from oracles_fourier import exact_map, features, short_map, structured_matrix
from scipy.stats import kstest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from hilbin.kernels import (
    Chi2,
    Exponential,
    Gaussian,
    Hellinger,
    Intersection,
    JensenShannon,
    Laplace,
    Linear,
)
from hilbin.maps import fourier
from hilbin.maps.additive import AdditiveMap
from hilbin.maps.fourier import FourierMap

KINDS = ["orthogonal", "gaussian", "qmc", "structured"]
EXPONENTIAL = Exponential(Hellinger(), 2.0)


@pytest.fixture
def points():
    return np.random.default_rng(3).standard_normal((40, 6))


def both(points, histograms):
    """A map of each family and rows for it."""
    return [
        (FourierMap(Gaussian(0.1), 64, random_state=0), points),
        (FourierMap(EXPONENTIAL, 64, feature_map=exact_map(), random_state=0), histograms),
    ]


# what the features mean


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", ["gaussian", "exponential"])
def test_the_mean_over_draws_is_the_kernel(kind, family, points, histograms):
    if family == "gaussian":
        X, feature_map_ = points[:12], FourierMap(Gaussian(0.2), 16, kind=kind)
    else:
        X, feature_map_ = (
            histograms[:12],
            FourierMap(EXPONENTIAL, 16, kind=kind, feature_map=exact_map()),
        )
    products = []
    for seed in range(200):
        Z = feature_map_.set_params(random_state=seed).fit_transform(X)
        products.append(Z @ Z.T)
    deviation = np.abs(np.mean(products, axis=0) - feature_map_.kernel.gram(X))
    bias = 0.55 / 64 if kind == "structured" else 0
    assert np.all(deviation <= 4.5 * np.std(products, axis=0) / np.sqrt(200) + bias + 1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [1, 2, 9])
def test_few_inputs(kind, width):
    X = np.random.default_rng(0).standard_normal((60, width))
    assert FourierMap(Gaussian(0.5), 2048, kind=kind, random_state=0).fit(X).error_.worst < 0.12


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_has_length_1(kind, points, histograms):
    for feature_map_, X in both(points, histograms):
        for dtype in (np.float32, np.float64):
            Z = feature_map_.set_params(kind=kind).fit_transform(X.astype(dtype))
            lengths = np.square(Z.astype(np.float64)).sum(axis=1)
            np.testing.assert_allclose(lengths, 1, rtol=4 * np.finfo(dtype).eps)


def test_orthogonal_frequencies_err_least_of_random_ones():
    X = load_digits().data[:200]
    kernel = Gaussian("median").resolve(X)

    def error(kind):
        maps = [FourierMap(kernel, 128, kind=kind, random_state=s).fit(X) for s in range(10)]
        return np.mean([m.error_.expected for m in maps])

    plain = error("gaussian")
    assert error("orthogonal") < 0.7 * plain
    assert error("structured") < 0.7 * plain


def test_evenly_spread_frequencies_err_least_for_few_inputs():
    X = np.random.default_rng(0).standard_normal((200, 3))

    def error(kind):
        maps = [FourierMap(Gaussian(0.3), 512, kind=kind, random_state=s).fit(X) for s in range(5)]
        return np.mean([m.error_.expected for m in maps])

    assert error("qmc") < 0.5 * error("orthogonal")


@pytest.mark.parametrize("kernel", [Chi2(), JensenShannon(), Hellinger()], ids=repr)
@pytest.mark.parametrize("kind", KINDS)
def test_through_the_additive_map(kernel, kind, histograms):
    feature_map_ = FourierMap(Exponential(kernel, "mean"), 4096, kind=kind, random_state=0)
    assert feature_map_.fit(histograms).error_.worst < 0.06
    Z, sparse = feature_map_.transform(histograms), feature_map_.transform(sp.csr_array(histograms))
    np.testing.assert_allclose(sparse, Z, atol=1e-12)
    assert isinstance(feature_map_.feature_map_, AdditiveMap)


def test_a_better_map_of_the_additive_kernel_is_a_better_map(histograms):
    def error(components):
        feature_map_ = FourierMap(Exponential(Intersection()), 4096, random_state=0)
        feature_map_.set_params(feature_map=AdditiveMap(Intersection(), components))
        return feature_map_.fit(histograms).error_.expected

    assert error(15) < 0.7 * error(5)


def test_error_is_that_of_the_products(points):
    feature_map_ = FourierMap(Gaussian(0.1), 64, random_state=0).fit(points)
    E = np.abs(feature_map_.kernel_.gram(points) - (Z := feature_map_.transform(points)) @ Z.T)
    assert feature_map_.error_.worst == pytest.approx(E.max())
    assert feature_map_.error_.expected == pytest.approx(np.sqrt(np.mean(E**2)))
    assert (feature_map_.error_.kind, feature_map_.error_.per) == ("measured", "row")


def test_error_is_measured_on_some_rows_only():
    X = np.random.default_rng(0).standard_normal((2000, 3))
    a, b = (FourierMap(Gaussian("median"), 32, random_state=1).fit(X).error_ for _ in range(2))
    assert a == b
    assert a.expected > 0


def test_learns_digits():
    X, y = load_digits(return_X_y=True)
    X = X / X.sum(axis=1, keepdims=True)
    features = FourierMap(Exponential(Chi2(), "mean"), 512, random_state=0)
    model = make_pipeline(features, LogisticRegression(C=100, max_iter=500))
    assert model.fit(X[:1200], y[:1200]).score(X[1200:], y[1200:]) > 0.94


# how frequencies are drawn


@pytest.mark.parametrize("kind", ["orthogonal", "gaussian", "qmc"])
@pytest.mark.parametrize("pairs", [3, 64, 500])
def test_frequencies_are_gaussian(kind, pairs, points):
    X = np.tile(points, 4)  # 24 columns
    W = FourierMap(Gaussian(0.5), 2 * pairs, kind=kind, random_state=0).fit(X).frequencies_
    assert W.shape == (pairs, 24)
    assert kstest(W.ravel(), "norm").pvalue > 1e-3
    W = FourierMap(Gaussian(2.0), 2 * pairs, kind=kind, random_state=0).fit(X).frequencies_
    assert kstest(W.ravel() / 2, "norm").pvalue > 1e-3


def test_orthogonal_within_blocks(points):
    W = FourierMap(Gaussian(0.5), 2 * 15, random_state=0).fit(points).frequencies_
    for block in (W[:6], W[6:12], W[12:]):
        products = block @ block.T
        np.testing.assert_allclose(products, np.diag(np.diag(products)), atol=1e-12)
    assert np.abs(W[:6] @ W[6:12].T).min() > 1e-6
    assert len(np.unique(np.linalg.norm(W, axis=1).round(9))) == 15


def test_orthogonal_along_the_directions_of_the_data():
    rng = np.random.RandomState(0)
    V = np.linalg.qr(rng.standard_normal((40, 8)))[0].T
    X = 5 + rng.standard_normal((100, 8)) @ V + 1e-6 * rng.standard_normal((100, 40))
    W = fourier.orthogonal_along(X, 8, rng)
    within = W @ V.T
    products = within @ within.T
    np.testing.assert_allclose(products, np.diag(np.diag(products)), atol=1e-4)
    draws = [fourier.orthogonal_along(X, 12, rng) for _ in range(50)]
    assert kstest(np.ravel(draws), "norm").pvalue > 1e-3
    squares = np.square(draws).sum(axis=2).ravel()
    assert kstest(squares, "chi2", args=(40,)).pvalue > 1e-3


def test_orthogonal_directions_are_uniform():
    rng = np.random.RandomState(0)
    W = np.array([fourier.orthogonal(2, 2, rng) for _ in range(500)])
    for row in (0, 1):
        angles = np.arctan2(W[:, row, 1], W[:, row, 0])
        assert kstest(angles, "uniform", args=(-np.pi, 2 * np.pi)).pvalue > 1e-3


@pytest.mark.parametrize("pairs", [1, 5, 256, 300, 512])
@pytest.mark.parametrize("width", [1, 6, 257])
def test_structured_is_the_explicit_matrix(pairs, width):
    X = np.random.default_rng(0).standard_normal((9, width))
    feature_map_ = FourierMap(Gaussian(0.02), 2 * pairs, kind="structured", random_state=0).fit(X)
    assert feature_map_.frequencies_ is None
    assert feature_map_.rows_.shape == (pairs,)
    W = structured_matrix(feature_map_.signs_, feature_map_.rows_, width, scale=0.2)
    np.testing.assert_allclose(feature_map_.transform(X), features(X @ W.T), atol=1e-12)
    np.testing.assert_allclose(
        feature_map_.transform(sp.csr_array(X)), features(X @ W.T), atol=1e-12
    )
    single = feature_map_.transform(X.astype(np.float32))
    np.testing.assert_allclose(single, features(X @ W.T), atol=1e-5)


@pytest.mark.parametrize("kind", ["orthogonal", "gaussian", "qmc"])
def test_dense_kinds_are_the_formula(kind, points, histograms):
    for feature_map_, X in both(points, histograms):
        Z = feature_map_.set_params(kind=kind).fit_transform(X)
        mapped = X if feature_map_.feature_map_ is None else np.sqrt(X)
        np.testing.assert_allclose(Z, features(mapped @ feature_map_.frequencies_.T), atol=1e-12)


def test_mapped_rows_get_their_exact_length(histograms):
    X = 7 * histograms
    exact, short = (
        FourierMap(EXPONENTIAL, 64, feature_map=m, random_state=0).fit_transform(X)
        for m in (exact_map(), short_map())
    )
    np.testing.assert_allclose(short, exact, atol=1e-12)
    empty = exact[6]
    np.testing.assert_allclose(empty, np.repeat([1, 0], 32) / np.sqrt(32), rtol=1e-15)


# how they are computed


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_storage_and_blocks_do_not_matter(kind, dtype, points, histograms):
    tolerance = 64 * np.finfo(dtype).eps
    for feature_map_, X in both(points, histograms):
        X = np.tile(X, (30, 1)).astype(dtype)
        feature_map_.set_params(kind=kind).fit(X)
        Z = feature_map_.transform(X)
        assert Z.dtype == dtype
        chunks = np.vstack([feature_map_.transform(chunk) for chunk in np.array_split(X, 7)])
        np.testing.assert_allclose(chunks, Z, atol=tolerance)
        for other in (sp.csr_array(X), sp.csr_matrix(X), np.asfortranarray(X), X[:, ::-1][:, ::-1]):
            np.testing.assert_allclose(feature_map_.transform(other), Z, atol=tolerance)
        for n_jobs in (1, 2):
            threaded = feature_map_.set_params(n_jobs=n_jobs).transform(X)
            np.testing.assert_allclose(threaded, Z, atol=tolerance)
        with joblib.parallel_config(n_jobs=2):
            threaded = feature_map_.set_params(n_jobs=None).transform(X)
        np.testing.assert_allclose(threaded, Z, atol=tolerance)


@pytest.mark.parametrize("density", [0.02, 0.5])
@pytest.mark.parametrize("kind", ["orthogonal", "structured"])
def test_sparse_rows(kind, density):
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.uniform(size=(700, 120)) * (rng.uniform(size=(700, 120)) < density))
    for feature_map_ in (
        FourierMap(Gaussian(0.1), 64, kind=kind, random_state=0),
        FourierMap(EXPONENTIAL, 64, kind=kind, feature_map=exact_map(), random_state=0),
    ):
        Z = feature_map_.fit_transform(X)
        assert isinstance(Z, np.ndarray)
        np.testing.assert_allclose(feature_map_.transform(X.toarray()), Z, atol=1e-12)
        np.testing.assert_allclose(clone(feature_map_).fit_transform(X.toarray()), Z, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_fitted_in_one_precision_used_in_the_other(kind, points):
    double = FourierMap(Gaussian(0.1), 64, kind=kind, random_state=0).fit(points)
    single = clone(double).fit(points.astype(np.float32))
    if kind != "structured":
        assert single.frequencies_.dtype == np.float32
    Z = double.transform(points)
    for feature_map_ in (double, single):
        for dtype in (np.float32, np.float64):
            out = feature_map_.transform(points.astype(dtype))
            assert out.dtype == dtype
            np.testing.assert_allclose(out, Z, atol=2e-6)


# as an estimator


@pytest.mark.parametrize("kind", KINDS)
def test_reproducible(kind, points, histograms):
    for feature_map_, X in both(points, histograms):
        feature_map_.set_params(kind=kind)
        Z = feature_map_.fit_transform(X)
        np.testing.assert_array_equal(clone(feature_map_).fit_transform(X), Z)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(feature_map_)).transform(X), Z)
        other = clone(feature_map_).set_params(random_state=1).fit_transform(X)
        assert np.abs(other - Z).max() > 0.01
        generator = clone(feature_map_).set_params(random_state=np.random.RandomState(0))
        np.testing.assert_array_equal(generator.fit_transform(X), Z)


def test_the_given_map_is_left_alone(histograms):
    given = exact_map()
    feature_map_ = FourierMap(EXPONENTIAL, 8, feature_map=given).fit(histograms)
    assert feature_map_.feature_map_ is not given
    assert feature_map_.kernel_ == EXPONENTIAL
    assert not hasattr(given, "n_features_in_")


def test_rules_become_numbers(points):
    feature_map_ = FourierMap(Gaussian("median"), 8, random_state=0).fit(points)
    assert feature_map_.kernel_ == Gaussian("median").resolve(points)
    assert feature_map_.feature_map_ is None


def test_names(points):
    feature_map_ = FourierMap(Gaussian(), 4, random_state=0).fit(points)
    assert list(feature_map_.get_feature_names_out()) == [f"fouriermap{i}" for i in range(4)]
    frame = feature_map_.set_output(transform="pandas").transform(points)
    assert list(frame.columns) == list(feature_map_.get_feature_names_out())


@pytest.mark.parametrize("kernel", [Laplace(), Linear(), Exponential(Linear()), 2.0 * Gaussian()])
def test_other_kernels_are_refused(kernel, points):
    with pytest.raises(TypeError, match=r"takes Gaussian or Exp.*, got .*; NystroemMap takes any"):
        FourierMap(kernel).fit(points)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components must be a whole number >= 1"),
        ({"n_components": 8.0}, "n_components must be a whole number >= 1"),
        ({"kind": "halton"}, r"kind must be one of \('orthogonal', .*\), got 'halton'"),
        ({"feature_map": exact_map()}, "feature_map is for Exponential"),
    ],
)
def test_bad_parameters(parameters, message, points):
    with pytest.raises(ValueError, match=message):
        FourierMap(Gaussian(), **parameters).fit(points)


def test_bad_data(points):
    with pytest.raises(TypeError, match="must be a kernel"):
        FourierMap("rbf").fit(points)
    with pytest.raises(ValueError, match="needs values >= 0"):
        FourierMap(EXPONENTIAL, feature_map=exact_map()).fit(points)
    wide = sp.csr_array((2, 21202))
    with pytest.raises(ValueError, match=r'at most 21201 .* got 21202; take kind="structured"'):
        FourierMap(Gaussian(), kind="qmc").fit(wide)


@parametrize_with_checks(
    [
        *(FourierMap(Gaussian(), n_components=4, kind=kind, random_state=0) for kind in KINDS),
        FourierMap(Exponential(Chi2()), n_components=4),
        FourierMap(Exponential(Hellinger()), n_components=4, kind="structured"),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)
