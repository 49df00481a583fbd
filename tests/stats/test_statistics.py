"""Every statistic is a sum: pieces, their order and weights for copies change rounding alone."""

import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from hilbin.stats import (
    ClassSums,
    ClusterSums,
    DistinctSample,
    Moments,
    RowSample,
    Statistic,
    StatisticTuple,
    TopScores,
    Totals,
)

CENTRES = np.array([[0.0, 1.0, 2.0], [3.0, 0.0, -1.0], [1.0, 1.0, 1.0]])


def moments_of(X, labels, weight, begin):
    return Moments.of(X, np.column_stack([labels, labels**2]), weight)


def moments_with_sparse_targets_of(X, labels, weight, begin):
    return Moments.of(X, sp.csr_array(labels[:, None] == np.arange(4)), weight)


def class_sums_of(X, labels, weight, begin):
    return ClassSums.of(labels, X, weight, scatter=True)


def cluster_sums_of(X, labels, weight, begin):
    return ClusterSums.of(X, CENTRES, weight)


def sample_of(X, labels, weight, begin):
    return RowSample.of(X, 5, seed=3, begin=begin, weight=weight)


def top_scores_of(X, labels, weight, begin):
    return TopScores.of(X.toarray() if sp.issparse(X) else X, 3, weight)


def totals_of(X, labels, weight, begin):
    w = np.ones(len(labels)) if weight is None else weight
    return Totals(n=w.sum(), total=w @ X)


def together_of(X, labels, weight, begin):
    return StatisticTuple(
        moments_of(X, labels, weight, begin),
        StatisticTuple(
            class_sums_of(X, labels, weight, begin), sample_of(X, labels, weight, begin)
        ),
    )


MAKERS = [
    moments_of,
    moments_with_sparse_targets_of,
    class_sums_of,
    cluster_sums_of,
    sample_of,
    top_scores_of,
    totals_of,
    together_of,
]
SUMS = [maker for maker in MAKERS if maker not in (sample_of, together_of)]  # not of row numbers


def data(seed, rows):
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, (rows, 3)) * rng.random((rows, 3))
    return X, rng.integers(0, 4, rows).astype(float), rng.integers(0, 4, rows).astype(float)


def cuts_of(rows, random):
    cuts = sorted({0, rows, *(random.randrange(rows + 1) for _ in range(random.randrange(6)))})
    return list(itertools.pairwise(cuts))


def assert_same(one, other, rtol=1e-8):
    a, b = one.state(), other.state()
    assert a.keys() == b.keys()
    for name in a:
        if a[name].dtype.kind in "US":
            assert a[name].tolist() == b[name].tolist()
            continue
        size = max(1.0, float(np.abs(a[name]).max(initial=0)))
        np.testing.assert_allclose(a[name], b[name], rtol=rtol, atol=rtol * size, err_msg=name)


@pytest.mark.parametrize("maker", MAKERS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("weighted", [False, True])
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**16), rows=st.integers(6, 40), random=st.randoms())
def test_pieces_in_any_order_are_the_whole(maker, weighted, seed, rows, random):
    X, labels, weight = data(seed, rows)
    weight[:6] = 1  # some rows count
    weight = weight if weighted else None

    def piece(begin, end):
        some = None if weight is None else weight[begin:end]
        return maker(X[begin:end], labels[begin:end], some, begin)

    pieces = cuts_of(rows, random)
    random.shuffle(pieces)
    assert_same(sum(piece(*cut) for cut in pieces), piece(0, rows))


@pytest.mark.parametrize("maker", SUMS, ids=lambda f: f.__name__)
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**16), rows=st.integers(6, 30))
def test_a_weight_is_a_number_of_copies(maker, seed, rows):
    X, labels, weight = data(seed, rows)
    weight[:6] = 1
    repeated = np.repeat(np.arange(rows), weight.astype(int))
    found = maker(X, labels, weight, 0)
    expected = maker(X[repeated], labels[repeated], None, 0)
    if maker is top_scores_of:
        np.testing.assert_array_equal(found.at_rank(), expected.at_rank())
    else:
        assert_same(found, expected)


@pytest.mark.parametrize("maker", MAKERS, ids=lambda f: f.__name__)
def test_manners(maker):
    X, labels, _ = data(0, 20)
    a, b = maker(X[:12], labels[:12], None, 0), maker(X[12:], labels[12:], None, 12)
    assert isinstance(a, Statistic)
    before = pickle.dumps(a.state()), pickle.dumps(b.state())
    total = a + b
    assert (pickle.dumps(a.state()), pickle.dumps(b.state())) == before
    assert_same(total, b + a)
    assert_same(type(a).from_state(total.state()), total)
    assert_same(pickle.loads(pickle.dumps(total)), total)
    rebuilt = type(a).from_state(a.state())
    rebuilt += b
    assert_same(rebuilt, total)
    assert total.nbytes > 0
    with pytest.raises(TypeError):
        a + 1
    with pytest.raises(TypeError):
        1 + a


@pytest.mark.parametrize(
    "maker", [m for m in MAKERS if m not in (top_scores_of, totals_of)], ids=lambda f: f.__name__
)
def test_sparse_rows_are_rows(maker):
    X, labels, weight = data(1, 30)
    weight[0] = 1
    dense = maker(X, labels, weight, 0)
    halves = [
        maker(sp.csr_array(X[part]), labels[part], weight[part], part.start)
        for part in (slice(0, 14), slice(14, 30))
    ]
    if maker is sample_of:
        assert sp.issparse(sum(halves).rows)
        np.testing.assert_array_equal(sum(halves).rows.toarray(), dense.rows)
        again = RowSample.from_state(sum(halves).state())
        np.testing.assert_array_equal(again.rows.toarray(), dense.rows)
    elif maker is together_of:
        assert_same(sum(halves)[0], dense[0])
    else:
        assert_same(sum(halves), dense)


def test_class_sums_join_labels():
    one, other = ClassSums.of(["b", "a", "b"]), ClassSums.of(["c", "b"], weight=[2.0, 0.5])
    both = one + other
    assert both.labels.tolist() == ["a", "b", "c"]
    assert both.n.tolist() == [1, 2.5, 2]
    assert ClassSums.of([1, 2], weight=[1, 0]).labels.tolist() == [1]


def test_class_scatters_make_up_the_scatter_within():
    X, labels, _ = data(2, 60)
    sums = ClassSums.of(labels, X, scatter=True)
    within = sum(np.cov(X[labels == k].T, bias=True) * (labels == k).sum() for k in range(4))
    np.testing.assert_allclose(sums.scatter.sum(axis=0), within)


def test_cluster_sums_are_a_step_of_k_means():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3)) + 1e6
    centers = CENTRES + 1e6
    sums = ClusterSums.of(X, centers)
    distances = np.square(X[:, None] - centers).sum(axis=2)
    nearest = distances.argmin(axis=1)
    np.testing.assert_array_equal(sums.n, np.bincount(nearest, minlength=3))
    np.testing.assert_allclose(sums.inertia, distances.min(axis=1).sum(), rtol=1e-9)
    for k in range(3):
        np.testing.assert_allclose(sums.mean[k], X[nearest == k].mean(axis=0), rtol=1e-14)
    alone = ClusterSums.of(X, np.vstack([centers, np.full(3, 9e9)]))
    assert alone.n[3] == 0
    np.testing.assert_array_equal(alone.mean[3], 9e9)


def test_samples_are_drawn_evenly():
    X = np.arange(40.0)[:, None]
    counts = np.zeros(40)
    for seed in range(2000):
        counts[RowSample.of(X, 10, seed=seed).numbers] += 1
    assert abs(counts / 2000 - 0.25).max() < 0.05  # five standard deviations


def test_samples_follow_the_weights():
    X, w = np.arange(3.0)[:, None], np.array([1.0, 3.0, 0.0])
    drawn = [int(RowSample.of(X, 1, seed=s, weight=w).numbers[0]) for s in range(3000)]
    share = np.bincount(drawn, minlength=3) / 3000
    np.testing.assert_allclose(share, [0.25, 0.75, 0], atol=0.04)


def test_all_rows_are_the_sample_of_few():
    X = np.arange(4.0)[:, None]
    np.testing.assert_array_equal(RowSample.of(X, 10, seed=5).rows, X)


def test_rank_beyond_the_rows():
    with pytest.raises(ValueError, match="fewer rows than the rank, 4"):
        TopScores.of(np.ones((3, 1)), 4).at_rank()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ClassSums.of([[1]]), "one-dimensional"),
        (lambda: ClassSums.of([1, 2], np.ones((3, 1))), "2 labels for 3 rows"),
        (lambda: ClassSums.of([1]) + ClassSums.of([1], np.ones((1, 2))), "0 and 2 columns"),
        (
            lambda: ClassSums.of([1], np.eye(1)) + ClassSums.of([1], np.eye(1), scatter=True),
            "without scatter",
        ),
        (lambda: ClusterSums.of(np.eye(2), np.eye(3)), "centers"),
        (lambda: RowSample.of(np.eye(2), 1) + RowSample.of(np.eye(2), 2), "1 and 2 rows"),
        (lambda: RowSample.of(np.eye(2), 1) + RowSample.of(np.eye(3), 1), "2 and 3 columns"),
        (lambda: RowSample.of(np.eye(2), 1, weight=[1, -1]), "is -1.0 at row 1"),
        (lambda: Totals(a=1) + Totals(b=1), "arrays"),
        (lambda: StatisticTuple(Totals(a=1)) + StatisticTuple(), "1 and 0 statistics"),
    ],
)
def test_what_cannot_be_added_or_made(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@given(seed=st.integers(0, 1000), size=st.integers(1, 20), cuts=st.integers(1, 5))
def test_a_sample_of_different_rows_counts_copies(seed, size, cuts):
    """Neither the order of rows, nor chunks, nor copies in place of weights change it."""
    rng = np.random.default_rng(seed)
    X, weight = rng.normal(size=(15, 2)), rng.integers(0, 4, 15).astype(float)
    numbers, many = np.arange(15), rng.permutation(np.repeat(np.arange(15), weight.astype(int)))
    whole = DistinctSample.of(X, size, numbers=numbers, seed=seed, weight=weight)
    parts = [
        DistinctSample.of(X[part], size, numbers=numbers[part], seed=seed)
        for part in np.array_split(many, cuts)
    ]
    found = DistinctSample.from_state(sum(parts).state())
    np.testing.assert_array_equal(found.rows, whole.rows)
    np.testing.assert_array_equal(found.weight, whole.weight)
    np.testing.assert_array_equal(found.weight, weight[found.numbers])
    assert len(found.rows) == min(size, np.count_nonzero(weight))
