"""Which rows become landmarks."""

import numpy as np
import oracles_rows
import pytest
import scipy.sparse as sp

from hilbin.kernels import GCS, Chi2, Exponential, Gaussian, Linear
from hilbin.maps.landmarks import choose_landmarks, leverage_scores, spectrum

STRATEGIES = ["uniform", "kmeans++", "leverage"]


def choose(X, how, count, seed=0, kernel=None):
    return choose_landmarks(kernel or Chi2(), X, how, count, seed, None)


def rows_of(X, Z):
    """Where each row of Z stands in X, whose rows all differ."""
    return [int(np.flatnonzero((z == X).all(axis=1))[0]) for z in Z]


@pytest.fixture
def distinct():
    return np.random.default_rng(0).gamma(1.0, size=(120, 7))


@pytest.mark.parametrize("how", STRATEGIES)
@pytest.mark.parametrize("kernel", [Chi2(), GCS(radius=3.0), Gaussian(0.5)], ids=repr)
def test_different_rows_of_the_data(distinct, how, kernel):
    Z = choose(distinct, how, 30, kernel=kernel)
    assert Z.shape == (30, 7)
    assert len(set(rows_of(distinct, Z))) == 30


@pytest.mark.parametrize("how", STRATEGIES)
def test_seed_decides(distinct, how):
    np.testing.assert_array_equal(choose(distinct, how, 9, 3), choose(distinct, how, 9, 3))
    assert not np.array_equal(choose(distinct, how, 9, 3), choose(distinct, how, 9, 4))


@pytest.mark.parametrize("how", STRATEGIES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_stays_sparse(distinct, how, dtype):
    X = (distinct * (distinct > 0.5)).astype(dtype)
    sparse = choose(sp.csr_array(X), how, 9)
    assert sp.issparse(sparse)
    assert sparse.dtype == dtype
    np.testing.assert_array_equal(sparse.toarray(), choose(X, how, 9))


@pytest.mark.parametrize("how", STRATEGIES)
def test_more_than_there_are(distinct, how):
    few = distinct[:6]
    assert sorted(rows_of(few, choose(few, how, 50))) == [*range(6)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_farthest_sampling_stops_at_duplicates(distinct, dtype):
    X = np.repeat(distinct[:5], 8, axis=0).astype(dtype)
    X[11:14] = 0  # the origin adds nothing
    Z = choose(X, "kmeans++", 20, kernel=Exponential(Chi2()) * Linear())
    assert len(Z) == len(np.unique(Z, axis=0)) == 5
    assert (Z > 0).any(axis=1).all()


def test_farthest_sampling_finds_small_clusters():
    centers = np.array([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]])
    of = np.repeat([0, 1, 2], [400, 400, 2])
    X = centers[of] + np.random.default_rng(0).normal(size=(802, 2), scale=1e-4)
    for seed in range(5):
        Z = choose(X, "kmeans++", 3, seed, Gaussian(0.1))
        assert sorted(of[rows_of(X, Z)]) == [0, 1, 2]


def test_farthest_sampling_is_by_squared_distance():
    X = np.array([[1.0, 0.0], [2.0, 0.0]])
    first = [choose(X, "kmeans++", 1, seed, Linear())[0, 0] for seed in range(600)]
    assert np.mean(np.equal(first, 2.0)) == pytest.approx(4 / 5, abs=0.05)
    X = np.array([[9.0, 0.0], [8.0, 0.0], [9.0, 3.0]])  # from the first: 0, 1, 9
    pairs = [choose(X, "kmeans++", 2, seed, Linear()) for seed in range(900)]
    second = [Z[1, 1] for Z in pairs if np.array_equal(Z[0], X[0])]
    assert np.mean(np.equal(second, 3.0)) == pytest.approx(9 / 10, abs=0.06)


def test_farthest_sampling_never_repeats_a_row(distinct, monkeypatch):
    gram = Linear._gram  # rounding in long sums makes a row seem far from itself
    monkeypatch.setattr(Linear, "_gram", lambda *given: 0.99 * gram(*given))
    for seed in range(5):
        rows = rows_of(distinct, choose(distinct[:9], "kmeans++", 9, seed, Linear()))
        assert sorted(rows) == [*range(9)]


@pytest.mark.parametrize("kernel", [Chi2(), Gaussian(0.5), 100 * Chi2()], ids=repr)
def test_leverage_scores(distinct, kernel):
    rng = np.random.RandomState(0)
    scores = leverage_scores(kernel, distinct, 60, rng, None)  # the pilot is everything
    assert scores.sum() == pytest.approx(60, rel=1e-6)
    np.testing.assert_allclose(
        scores, oracles_rows.leverage_scores(kernel(distinct), 60), rtol=1e-4
    )


def test_leverage_scores_from_a_small_pilot(distinct):
    kernel = Gaussian(0.05)
    scores = leverage_scores(kernel, distinct, 10, np.random.RandomState(0), None)
    assert scores.sum() == pytest.approx(10, rel=1e-6)
    exact = oracles_rows.leverage_scores(kernel(distinct), 10)
    np.testing.assert_allclose(scores, exact, rtol=0.4)  # the largest is ten times the smallest
    assert np.corrcoef(scores, exact)[0, 1] > 0.95


def test_leverage_prefers_what_is_rare():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2), scale=0.05)
    X[:5] += 10 * np.arange(1, 6)[:, None]
    rare = [np.sum(choose(X, "leverage", 10, seed, Gaussian(1.0)) > 5) // 2 for seed in range(20)]
    assert np.mean(rare) > 4  # of five; uniform sampling finds a tenth of one


def test_leverage_with_few_rows_that_count(distinct):
    X = np.zeros((300, 7))
    X[::100] = distinct[:3]
    assert len(choose(X, "leverage", 2)) == 2
    assert sorted(rows_of(distinct, choose(X, "leverage", 9))) == [0, 1, 2]


@pytest.mark.parametrize("how", ["kmeans++", "leverage"])
def test_candidates_are_bounded(distinct, how, monkeypatch):
    monkeypatch.setattr("hilbin.maps.landmarks.CANDIDATES", 40)
    seen = []
    monkeypatch.setattr(Chi2, "_diag", lambda self, X: seen.append(len(X)) or X.sum(axis=1))
    choose(distinct, how, 2)
    choose(distinct, how, 5)
    assert seen == [40, 100]


def test_given_rows(distinct):
    Z = choose(distinct.astype(np.float32), distinct[:3].tolist(), 99)
    assert Z.dtype == np.float32
    np.testing.assert_array_equal(Z, distinct[:3].astype(np.float32))
    Z = choose(sp.csr_array(distinct), distinct[:3], 99)
    assert sp.issparse(Z)
    np.testing.assert_array_equal(Z.toarray(), distinct[:3])
    np.testing.assert_array_equal(choose(distinct, sp.csr_matrix(distinct[:3]), 1), distinct[:3])


def test_given_rows_are_not_shared(distinct):
    given = distinct[:3].copy()
    Z = choose(distinct, given, 3)
    given[:] = 0
    assert (Z > 0).all()


@pytest.mark.parametrize(
    ("landmarks", "message"),
    [
        ("k-means", r'landmarks must be one of "uniform", "kmeans\+\+", "leverage", or rows, got'),
        (7, "landmarks must be one of .* got 7"),
        (None, "landmarks must be one of .* got None"),
        ([[1.0, 2.0]], "landmarks has 2 columns, but X has 7"),
        ([[np.nan] * 7], r"landmarks\[0, 0\] = nan is not finite"),
        ([[1, 1, 1, -1, 1, 1, 1]], r"landmarks\[0, 3\] = -1.* Chi2 needs values >= 0"),
    ],
)
def test_errors(distinct, landmarks, message):
    with pytest.raises(ValueError, match=message):
        choose(distinct, landmarks, 5)


@pytest.mark.parametrize("how", ["kmeans++", "leverage"])
def test_nothing_to_choose_from(how):
    with pytest.raises(ValueError, match=r"k\(x, x\) of Chi2\(\) is 0 for all 4 rows"):
        choose(np.zeros((4, 3)), how, 2)


def test_spectrum_drops_rounding():
    U = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
    K = (U * [1e3, 1.0, 1e-3, 1e-5, 1e-16, -1e-14]) @ U.T
    values, vectors = spectrum((K + K.T) / 2)
    np.testing.assert_allclose(values, [1e3, 1.0, 1e-3, 1e-5], rtol=1e-6)
    np.testing.assert_allclose((vectors * values) @ vectors.T, K, atol=1e-12)
    assert len(spectrum(K, np.float32)[0]) == 3
