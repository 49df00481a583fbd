"""HSIC, its tests and scores, against definitions and the spec's values."""

import hypothesis.strategies as st
import numpy as np
import oracles
import pytest
from hypothesis import given
from sklearn.datasets import load_digits, load_iris
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator

from hilbin.dependence import cka, hsic, hsic_scores, hsic_test
from hilbin.dependence.views import View, of_gram
from hilbin.kernels import Chi2, Gaussian, Hellinger, Linear, OnColumns, kernel_alignment
from hilbin.maps import AdditiveMap

X10 = np.arange(10) / 10
Y10 = np.abs(X10 - 0.45)
KERNEL = Gaussian(4.0)
seeds = st.integers(0, 1000)


def grams(seed, n=9):
    rng = np.random.default_rng(seed)
    return [Gaussian().gram(rng.normal(size=(n, d))) + (0 if d == 1 else 3) for d in (1, 2)]


def test_values():
    assert hsic(X10, Y10, KERNEL, KERNEL) == pytest.approx(0.012302699, abs=1e-9)
    assert hsic(X10, Y10, KERNEL, KERNEL, biased=False) == pytest.approx(0.005912733, abs=1e-9)
    test = hsic_test(X10, Y10, KERNEL, KERNEL, method="gamma")
    assert test.null_mean * 81 == pytest.approx(0.539414352, abs=1e-9)
    assert test.null_variance * 81**2 == pytest.approx(0.215745259, abs=1e-9)
    assert test.pvalue == pytest.approx(0.142524, abs=1e-6)


@pytest.mark.parametrize("biased", [True, False])
@given(seed=seeds)
def test_is_its_definition(biased, seed):
    K, L = grams(seed)
    found = hsic(K, L, "precomputed", "precomputed", biased=biased)
    assert found == pytest.approx(oracles.hsic(K, L, biased), abs=1e-13)
    expected = found / np.sqrt(oracles.hsic(K, K, biased) * oracles.hsic(L, L, biased))
    assert cka(K, L, "precomputed", "precomputed", biased=biased) == pytest.approx(expected)


@given(seed=seeds)
def test_unbiased_is_the_mean_over_draws(seed):
    """Leaving a row out of n gives, on average, the estimate of all n rows."""
    K, L = grams(seed)
    some = [np.delete(np.arange(9), i) for i in range(9)]
    each = [
        hsic(K[np.ix_(s, s)], L[np.ix_(s, s)], "precomputed", "precomputed", biased=False)
        for s in some
    ]
    whole = hsic(K, L, "precomputed", "precomputed", biased=False)
    assert np.mean(each) == pytest.approx(whole, abs=1e-12)


@pytest.mark.parametrize("biased", [True, False])
def test_features_are_the_kernel(biased):
    rng = np.random.default_rng(0)
    X, Y = rng.uniform(size=(40, 5)), rng.uniform(size=(40, 3)) + 1e3
    K, L = Hellinger().gram(X), Linear().gram(Y - Y.mean(axis=0))
    exact = hsic(K, L, "precomputed", "precomputed", biased=biased)
    feature_map = AdditiveMap(Hellinger())
    assert hsic(X, Y, feature_map, Linear(), biased=biased) == pytest.approx(exact, rel=1e-8)
    assert hsic(X, L, feature_map, "precomputed", biased=biased) == pytest.approx(exact, rel=1e-8)
    by_features = hsic_test(X, Y, feature_map, Linear(), n_permutations=99)
    by_grams = hsic_test(K, L, "precomputed", "precomputed", n_permutations=99)
    assert by_features.pvalue == by_grams.pvalue
    assert by_features.null_variance == pytest.approx(by_grams.null_variance, rel=1e-6)


@given(seed=seeds)
def test_moments_are_those_of_all_permutations(seed):
    K, L = grams(seed, 6)
    every = oracles.permuted_products(K, L)
    test = hsic_test(K, L, "precomputed", "precomputed", n_permutations=200)
    assert test.null_mean * 25 == pytest.approx(every.mean(), rel=1e-9)
    assert test.null_variance * 25**2 == pytest.approx(every.var(), rel=1e-7)
    share = np.mean(every >= every[0] * (1 - 1e-12))
    assert abs(test.pvalue - share) < 4 * np.sqrt(share * (1 - share) / 200) + 1 / 201


def test_level_and_power():
    rng = np.random.default_rng(0)
    normal = rng.normal(size=(100, 2, 60))
    assert 0 <= np.mean([hsic_test(x, y, method="gamma").pvalue < 0.05 for x, y in normal]) < 0.12
    angles = rng.uniform(0, 2 * np.pi, (20, 150))
    rings = [(np.cos(a), np.sin(a)) for a in angles]
    assert all(hsic_test(x, y).pvalue < 0.05 for x, y in rings)


def test_auto_chooses_by_the_number_of_rows():
    x = np.random.default_rng(0).normal(size=(501, 1))
    assert hsic_test(x[:20], x[:20], n_permutations=9).method == "permutation"
    assert hsic_test(x, x).method == "gamma"


def test_constant_descriptions_depend_on_nothing():
    constant = np.ones(10)
    for kernel in (None, Linear(), Gaussian(2.0), AdditiveMap(Chi2())):
        rows = constant.reshape(-1, 1)
        assert hsic(rows, Y10, kernel) == 0
        assert cka(rows, Y10, kernel) == 0
        for method in ("gamma", "permutation"):
            assert hsic_test(rows, Y10, kernel, method=method).pvalue == 1


def test_scores_are_alignments():
    X, y = load_iris(return_X_y=True)
    scores = hsic_scores(X, y)
    expected = [OnColumns(Gaussian("median"), [j]).resolve(X).gram(X) for j in range(4)]
    np.testing.assert_allclose(scores, [kernel_alignment(K, y) for K in expected], rtol=1e-10)
    assert hsic_scores(np.ones((150, 1)), y) == [0]
    assert SelectKBest(hsic_scores, k=2).fit(X, y).get_support(indices=True).tolist() == [2, 3]


def test_columns_with_many_equal_values():
    x = np.r_[np.zeros(30), 1, 2, 3.0]
    assert hsic(x, x) == hsic(x, x, Gaussian("mean"), Gaussian("mean")) > 0
    assert hsic_scores(x.reshape(-1, 1), x > 0)[0] > 0.5


def test_scores_see_more_than_correlation():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    assert np.argmax(hsic_scores(X, X[:, 1] ** 2)) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hsic(X10, Y10[:9]), "10 and 9"),
        (lambda: hsic(X10[:3], Y10[:3], biased=False), "at least 4"),
        (lambda: hsic_test(X10[:3], Y10[:3]), "at least 4 rows, got 3"),
        (lambda: hsic(np.triu(np.ones((3, 3))), X10[:3], "precomputed"), "X is not symmetric"),
        (lambda: hsic(X10, np.ones((3, 2)), None, "precomputed"), "Y must be square"),
        (lambda: hsic(X10, Y10, "gaussian"), "kernel_x must be a kernel"),
        (lambda: hsic(X10, Y10, None, Gaussian), "kernel_y must be a kernel"),
        (lambda: hsic([0.0, np.nan], [1, 2]), r"X\[1, 0\] = nan"),
        (lambda: hsic(-X10, Y10, Chi2()), r"X\[1, 0\] = -0.1 is negative"),
        (lambda: hsic_test(X10, Y10, method="guess"), "method must be one of"),
        (lambda: hsic_test(X10, Y10, n_permutations=0), "n_permutations must be"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# out of core
def halves(n=300):
    rows = load_digits().data[:n] / 16
    return rows[:, :32], rows[:, 32:]


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("biased", [True, False])
def test_chunks_give_the_same_numbers(biased, frozen, tmp_path):
    x, y = halves()
    maps = AdditiveMap(Hellinger()).fit(x), Linear()
    exact = Hellinger(), Linear()
    if frozen:
        maps = FrozenEstimator(maps[0]), maps[1]
    chunks = [(x[i:j], y[i:j]) for i, j in ((0, 1), (1, 120), (120, 300))]
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    for given_ in (
        (chunks, None),
        (tmp_path / "x.npy", tmp_path / "y.npy"),
        (tmp_path / "x.npy", y),
    ):
        assert hsic(*given_, *maps, biased=biased) == pytest.approx(
            hsic(x, y, *exact, biased=biased), rel=1e-8
        )
        assert cka(*given_, *maps, biased=biased) == pytest.approx(
            cka(x, y, *exact, biased=biased), rel=1e-8
        )
    ours, theirs = hsic_test(chunks, None, *maps), hsic_test(x, y, *exact, method="gamma")
    assert ours.method == "gamma"
    for name in ("statistic", "null_mean", "null_variance"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name), rel=1e-8)


@given(seed=seeds)
def test_chunks_far_from_zero(seed):
    """Means are subtracted before anything is squared."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(50, 3)) + 1e4, rng.normal(size=(50, 2)) - 1e4
    y[:, 0] += x[:, 0]
    cuts = np.sort(rng.integers(0, 51, 3))
    parts = [np.split(side, cuts) for side in (x, y)]
    chunks = [(a, b) for a, b in zip(*parts, strict=True) if len(a)]
    found = hsic_test(chunks, None, Linear(), Linear())
    exact = hsic_test(x - x.mean(0), y - y.mean(0), Linear(), Linear(), method="gamma")
    assert found.statistic == pytest.approx(exact.statistic, rel=1e-6)
    assert found.null_variance == pytest.approx(exact.null_variance, rel=1e-6)


def test_constant_chunks():
    x, _ = halves(50)
    test = hsic_test([(x, np.full(50, 3.0))], None, Linear(), Linear())
    assert (test.statistic, test.pvalue) == (0, 1)
    assert cka([(x, np.full(50, 3.0))], None, Linear(), Linear()) == 0


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda x, y: hsic([(x, y)], None), "kernel_x must be a map of hilbin.maps, or Linear()"),
        (lambda x, y: hsic([(x, y)], None, Linear(), Gaussian()), "kernel_y must be a map"),
        (lambda x, y: hsic(x, None, Linear(), Linear()), "Y is None: give a second"),
        (lambda x, y: hsic([x], None, Linear(), Linear()), "there is no second description"),
        (lambda x, y: hsic([(x[:1], y[:1])], None, Linear(), Linear()), "at least 2 rows, got 1"),
        (
            lambda x, y: hsic_test([(x, y)], None, Linear(), Linear(), method="permutation"),
            "needs rows in memory",
        ),
        (
            lambda x, y: hsic([(x, y, np.ones(len(x)))], None, Linear(), Linear()),
            "rows have weights",
        ),
    ],
)
def test_bad_chunks(call, complaint):
    with pytest.raises(ValueError, match=complaint):
        call(*halves(20))


@given(seed=seeds, kind=st.sampled_from(["smooth", "rough", "indefinite", "features"]))
def test_products_of_permuted_rows(seed, kind):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(40, 1)), rng.normal(size=(40, 2))
    K = {
        "smooth": lambda: Gaussian(0.1).gram(x),
        "rough": lambda: Gaussian(50.0).gram(x),
        "indefinite": lambda: np.tanh(2 * x @ x.T - 1),
        "features": lambda: x @ x.T,
    }[kind]()
    first = View(x - x.mean()) if kind == "features" else of_gram(K)
    second = of_gram(Gaussian(0.05).gram(y))
    orders = np.array([rng.permutation(40) for _ in range(7)])
    found = first.products(second, orders)
    A = first.gram
    wanted = [np.sum(A * second.gram[np.ix_(order, order)]) for order in orders]
    np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-10 * np.abs(wanted).max())


def test_all_shuffles_tie_with_equal_rows():
    """Two groups of equal rows: shuffles within groups change nothing, and count as reached."""
    x = np.repeat([0.0, 1.0], 3)
    permuted = hsic_test(x, x, method="permutation", n_permutations=2000)
    assert permuted.pvalue == pytest.approx(2 / 20, abs=0.03)  # of 20 ways to split 6 rows
