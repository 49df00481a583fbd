"""Product quantization: words, codes, the error stated, and manners."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from hilbin.kernels import Chi2, Exponential, Hellinger, Intersection
from hilbin.maps import PQCodes, ProductQuantizer


def normal(n, d, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(dtype)


def parts_of(X, size):
    """Rows cut into parts, the last filled up with 0: (n, parts, size)."""
    n, d = X.shape
    parts = -(-d // size)
    padded = np.zeros((n, parts * size))
    padded[:, :d] = X
    return padded.reshape(n, parts, size)


def distances(X, words):
    """Squared distances of the parts of all rows from all their words, plainly."""
    return np.square(parts_of(X, words.shape[2])[:, :, None] - words).sum(axis=3)


@given(
    n=st.integers(5, 40),
    d=st.integers(1, 21),
    size=st.integers(1, 9),
    words=st.integers(1, 5),
    offset=st.sampled_from([0.0, 50.0]),
    seed=st.integers(0, 99),
)
def test_rows_decode_to_the_nearest_word_of_every_part(n, d, size, words, offset, seed):
    X = normal(n, d, seed) + np.float32(offset)
    fitted = ProductQuantizer(size, n_words=words, random_state=seed).fit(X)
    Z = fitted.decode(fitted.transform(X))
    assert Z.dtype == np.float32
    assert Z.shape == X.shape
    from_decoded = np.square(parts_of(X, size) - parts_of(Z, size)).sum(axis=2)
    nearest = distances(X, fitted.codebooks_).min(axis=2)
    np.testing.assert_allclose(from_decoded, nearest, rtol=1e-3, atol=1e-4)


def test_error_is_that_of_decoded_rows():
    X = normal(400, 19) @ normal(19, 19, 1)
    fitted = ProductQuantizer(4, n_words=20, random_state=0).fit(X)
    Z = fitted.inverse_transform(fitted.transform(X))
    expected = np.square(X - Z).sum() / np.square(X - X.mean(axis=0)).sum()
    assert fitted.error_ == pytest.approx(expected, rel=1e-3)
    finer = ProductQuantizer(2, n_words=20, random_state=0).fit(X)
    assert finer.error_ < fitted.error_


def test_words_are_as_good_as_those_of_scikit_learn():
    X = normal(1500, 8)
    ours = ProductQuantizer(8, n_words=32, random_state=0).fit(X).error_
    reference = KMeans(32, n_init=1, random_state=0).fit(X)
    theirs = reference.inertia_ / np.square(X - X.mean(axis=0)).sum()
    assert ours < 1.05 * theirs


@pytest.mark.parametrize(
    ("given", "words", "kind"),
    [
        ({"part_size": 8, "bits": 0.125}, 2, np.uint8),
        ({"part_size": 4, "bits": 1.0}, 16, np.uint8),
        ({"part_size": 1, "bits": 8}, 256, np.uint8),
        ({"part_size": 6, "bits": 0.5}, 8, np.uint8),
        ({"part_size": 3, "bits": 2.8}, 338, np.uint16),
        ({"part_size": 5, "n_words": 7}, 7, np.uint8),
    ],
)
def test_number_of_words(given, words, kind):
    X = normal(400, 6)
    fitted = ProductQuantizer(**given, max_iter=1, random_state=0).fit(X)
    assert fitted.codebooks_.shape == (-(-6 // given["part_size"]), words, given["part_size"])
    assert fitted.transform(X).groups.dtype == kind


def test_one_bit_per_component_is_32_times_smaller():
    X = normal(300, 256)
    codes = ProductQuantizer(random_state=0, max_iter=1).fit_transform(X)
    assert codes.nbytes * 32 == X.nbytes
    codes = ProductQuantizer(10, n_words=256, random_state=0, max_iter=1).fit_transform(
        normal(300, 320)
    )
    assert codes.nbytes * 40 == 300 * 320 * 4


def test_constant_parts_and_columns():
    X = normal(50, 6)
    X[:, :3] = 7
    fitted = ProductQuantizer(3, n_words=4, random_state=0).fit(X)
    np.testing.assert_array_equal(fitted.decode(fitted.transform(X))[:, :3], X[:, :3])
    constant = ProductQuantizer(3, n_words=4, random_state=0).fit(np.full((50, 5), -2.5))
    assert constant.error_ == 0
    np.testing.assert_array_equal(constant.transform(np.ones((3, 5))).decode(), -2.5)


def test_few_distinct_rows_are_kept_exactly():
    distinct = normal(6, 10)
    X = distinct[np.random.default_rng(1).integers(0, 6, 300)]
    fitted = ProductQuantizer(5, n_words=12, random_state=0).fit(X)
    np.testing.assert_allclose(fitted.decode(fitted.transform(X)), X, atol=1e-5)


def test_fewer_rows_than_words():
    X = normal(5, 12)
    with pytest.warns(UserWarning, match=r"256 words .*n_samples=5\): every row is a word"):
        fitted = ProductQuantizer(8, random_state=0).fit(X)
    assert fitted.codebooks_.shape == (2, 5, 8)
    np.testing.assert_allclose(fitted.decode(fitted.transform(X)), X, atol=1e-6)
    with pytest.warns(UserWarning, match="n_samples=3"):
        fitted = ProductQuantizer(8, n_words=4, max_samples=3, random_state=0).fit(X)
    assert fitted.codebooks_.shape[1] == 3


def test_sample_of_rows():
    X = normal(500, 9)
    few = ProductQuantizer(3, n_words=4, max_samples=20, random_state=0).fit(X)
    all_rows = ProductQuantizer(3, n_words=4, random_state=0).fit(X)
    assert not np.array_equal(few.codebooks_, all_rows.codebooks_)
    dense, sparse = (
        ProductQuantizer(3, n_words=4, max_samples=20, random_state=0).fit(Y)
        for Y in (X, sp.csr_array(X))
    )
    np.testing.assert_array_equal(dense.codebooks_, sparse.codebooks_)


@pytest.mark.parametrize("metric", [Chi2(), Intersection(), Hellinger()])
def test_words_in_the_space_of_a_kernel(metric):
    X = np.random.default_rng(0).dirichlet(np.full(12, 0.5), 300)
    fitted = ProductQuantizer(2, n_words=120, metric=metric, random_state=0).fit(X)
    features = fitted.feature_map_.n_components_
    assert fitted.codebooks_.shape == (6, 120, 2 * features)
    codes = fitted.transform(X)
    Z = codes.decode()
    assert codes.shape == Z.shape == (300, 12 * features)
    K = metric.gram(X)
    assert np.linalg.norm(Z @ Z.T - K) < 0.06 * np.linalg.norm(K)
    mapped = fitted.feature_map_.transform(X)
    nearest = distances(mapped, fitted.codebooks_).min(axis=2).sum(axis=1)
    np.testing.assert_allclose(np.square(mapped - Z).sum(axis=1), nearest, rtol=1e-3, atol=1e-6)
    assert not hasattr(fitted, "inverse_transform")


def test_a_kernel_moves_the_words():
    """Means of square roots are not square roots of means."""
    X = np.random.default_rng(0).gamma(0.3, size=(400, 4))
    fitted = ProductQuantizer(4, n_words=8, metric=Hellinger(), random_state=0).fit(X)
    plain = ProductQuantizer(4, n_words=8, random_state=0).fit(np.sqrt(X))
    np.testing.assert_allclose(fitted.codebooks_, plain.codebooks_, atol=1e-5)


@pytest.mark.parametrize("kind", ["float64", "fortran", "csr", "list", "strided", "int"])
def test_rows_of_any_kind(kind, monkeypatch):
    monkeypatch.setattr("hilbin.maps.pq.BAND_BYTES", 4 * 11 * 7)
    X = np.round(4 * normal(60, 11))
    X[np.abs(X) < 3] = 0
    wide = np.zeros((120, 22), np.float32)
    wide[::2, ::2] = X
    other = {
        "float64": X.astype(np.float64),
        "fortran": np.asfortranarray(X),
        "csr": sp.csr_array(X),
        "list": X.tolist(),
        "strided": wide[::2, ::2],
        "int": X.astype(np.int64),
    }[kind]
    first = ProductQuantizer(3, n_words=6, random_state=0).fit(X)
    second = ProductQuantizer(3, n_words=6, random_state=0).fit(other)
    np.testing.assert_array_equal(first.codebooks_, second.codebooks_)
    np.testing.assert_array_equal(first.transform(X).groups, second.transform(other).groups)


def test_threads_and_seeds():
    X = normal(200, 700)
    one, two = (
        ProductQuantizer(2, n_words=5, random_state=3, n_jobs=jobs).fit(X) for jobs in (1, 2)
    )
    assert one.fingerprint_ == two.fingerprint_
    np.testing.assert_array_equal(one.transform(X).groups, two.transform(X).groups)
    other = ProductQuantizer(2, n_words=5, random_state=4).fit(X)
    assert other.fingerprint_ != one.fingerprint_


def test_codes_of_new_rows_do_not_depend_on_their_company():
    fitted = ProductQuantizer(3, n_words=6, random_state=0).fit(normal(60, 10))
    X = normal(41, 10, 1)
    whole = fitted.transform(X).decode()
    parts = [fitted.transform(X[i : i + 1]).decode() for i in range(len(X))]
    np.testing.assert_array_equal(whole, np.concatenate(parts))


def test_learning_on_decoded_rows():
    X = normal(600, 16)
    y = X[:, :8].sum(axis=1) > 0
    model = make_pipeline(ProductQuantizer(2, bits=2.0, random_state=0), LinearSVC())
    assert model.fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite(value):
    X = normal(30, 5)
    fitted = ProductQuantizer(2, n_words=3, random_state=0).fit(X)
    X[7, 2] = value
    for act in (fitted.fit, fitted.transform):
        with pytest.raises(ValueError, match=r"X\[7, 2\] .* is not finite"):
            act(X)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"part_size": 0}, ValueError, "part_size must be a whole number"),
        ({"part_size": 2.5, "n_words": 3}, ValueError, "part_size must be a whole number"),
        ({"bits": 0}, ValueError, "bits"),
        ({"bits": 3.0}, ValueError, "at most 16"),
        ({"bits": None}, ValueError, "bits"),
        ({"n_words": 0}, ValueError, "n_words must be a whole number"),
        ({"n_words": 1 << 17}, ValueError, "n_words must be a whole number >= 1 and <= 65536"),
        ({"max_samples": 0}, ValueError, "max_samples"),
        ({"max_iter": 0}, ValueError, "max_iter"),
        ({"metric": "chi2"}, TypeError, "metric must be an additive kernel"),
        ({"metric": Exponential(Chi2())}, TypeError, "metric must be an additive kernel"),
    ],
)
def test_bad_parameters(given, error, message):
    with pytest.raises(error, match=message):
        ProductQuantizer(**given).fit(normal(300, 8))


def test_bad_rows():
    fitted = ProductQuantizer(2, n_words=3, random_state=0).fit(normal(30, 5))
    with pytest.raises(ValueError, match="has 4 features"):
        fitted.transform(normal(3, 4))
    with pytest.raises(ValueError, match="Negative values in data"):
        ProductQuantizer(2, n_words=3, metric=Chi2()).fit(normal(30, 5))
    with pytest.raises(ValueError, match="squares are beyond float32"):
        ProductQuantizer(2, n_words=3).fit(1e25 * normal(30, 5))
    for act in (fitted.fit, fitted.transform):
        with pytest.raises(ValueError, match="beyond the range of float32"):
            act(np.full((30, 5), 1e200))


def test_codes_of_another_quantizer():
    X = normal(60, 8)
    one, two = (ProductQuantizer(4, n_words=6, random_state=s).fit(X) for s in (0, 1))
    codes = two.transform(X)
    for act in (one.decode, one.inverse_transform):
        with pytest.raises(ValueError, match="codes from another quantizer"):
            act(codes)
        with pytest.raises(TypeError, match="codes must be PQCodes"):
            act(X)


def test_pickling_and_cloning():
    X = normal(60, 8)
    fitted = ProductQuantizer(4, n_words=6, metric=None, random_state=0).fit(X)
    again = pickle.loads(pickle.dumps(fitted))
    codes = again.transform(X)
    assert isinstance(codes, PQCodes)
    np.testing.assert_array_equal(fitted.decode(codes), fitted.decode(fitted.transform(X)))
    assert clone(fitted).fit(X).fingerprint_ == fitted.fingerprint_


@parametrize_with_checks(
    [
        ProductQuantizer(n_words=4),
        ProductQuantizer(part_size=1, bits=1.0),
        ProductQuantizer(2, n_words=3, metric=Chi2()),
    ]
)
@pytest.mark.filterwarnings("ignore:.*every row is a word")
def test_scikit_learn(estimator, check):
    check(estimator)
