"""Rows of codes and rows of node pairs against the matrices they stand for."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from hilbin.kernels import Chi2, Intersection
from hilbin.maps import ProductQuantizer, SparseMap
from hilbin.solvers import coded
from hilbin.solvers.coded import PairRows, PQLookup, PQRows, side_by_side, whole_vectors

TASKS = [1, 2, 3, 8, 9, 24, 25, 50]


def made(n, parts, words, size, short=0, kind=np.uint8, seed=0):
    """Return codes in groups of 32 parts, words, and the matrix they decode to."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, words, (n, parts)).astype(kind)
    codes = np.zeros((-(-parts // 32), n, 32), kind)
    for b in range(parts):
        codes[b // 32, :, b % 32] = numbers[:, b]
    book = rng.normal(size=(parts, words, size)).astype(np.float32)
    X = book[np.arange(parts), numbers].reshape(n, -1)[:, : parts * size - short]
    return codes, book, X.astype(np.float64)


def assert_same(rows, X, tasks, tolerance, seed=0, share=1.0):
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(tasks, X.shape[1]))
    S = rng.normal(size=(len(X), tasks)) * (rng.random((len(X), tasks)) < share)
    for found, expected in ((rows.scores(V), X @ V.T), (rows.gradient(S), S.T @ X)):
        assert found.dtype == rows.dtype
        scale = np.abs(expected).max(initial=1.0)
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("expansion", ["delayed", "immediate"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 5e-6), (np.float64, 1e-13)])
@pytest.mark.parametrize("tasks", TASKS)
def test_words_are_the_decoded_matrix(expansion, dtype, tolerance, tasks):
    codes, book, X = made(90, 70, 40, 5, short=3)
    rows = PQRows(codes, book, X.shape[1], expansion=expansion, dtype=dtype)
    assert rows.shape == X.shape
    assert_same(rows, X, tasks, tolerance)


@given(
    n=st.integers(1, 30),
    parts=st.integers(1, 70),
    words=st.sampled_from([1, 2, 255, 256, 257, 600]),
    size=st.integers(1, 12),
    tasks=st.sampled_from([1, 4, 20]),
    expansion=st.sampled_from(["delayed", "immediate"]),
)
def test_words_of_any_shape(n, parts, words, size, tasks, expansion):
    kind = np.uint8 if words <= 256 else np.uint16
    codes, book, X = made(n, parts, words, size, short=size // 2, kind=kind)
    rows = PQRows(codes, book, X.shape[1], expansion=expansion, dtype=np.float64)
    assert_same(rows, X, tasks, 1e-12)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5])
@pytest.mark.parametrize("tasks", [1, 20])
def test_slopes_that_are_mostly_zero(share, tasks):
    codes, book, X = made(3000, 33, 16, 2)
    assert_same(PQRows(codes, book), X, tasks, 1e-5, share=share)


def test_many_rows_groups_and_threads(monkeypatch):
    monkeypatch.setattr(coded, "DECODED_ROWS", 16)
    monkeypatch.setattr(coded, "GROUPS_PER_JOB", 2)
    monkeypatch.setattr(coded, "ROWS_AT_ONCE", 16)
    codes, book, X = made(70, 230, 9, 3)
    for expansion in ("delayed", "immediate"):
        one, two = (PQRows(codes, book, expansion=expansion, n_jobs=jobs) for jobs in (1, 2))
        assert_same(two, X, 1, 1e-5)
        assert_same(two, X, 11, 1e-5)
        V = np.random.default_rng(1).normal(size=(5, X.shape[1]))
        np.testing.assert_array_equal(one.scores(V), two.scores(V))
        np.testing.assert_array_equal(one.gradient(X[:, :5]), two.gradient(X[:, :5]))


@pytest.mark.parametrize("tasks", TASKS)
def test_look_ups_made_once(tasks):
    codes, book, X = made(90, 70, 40, 5, short=3)
    V = np.random.default_rng(1).normal(size=(tasks, X.shape[1]))
    lookup = PQLookup(book, V, np.float64)
    np.testing.assert_allclose(lookup.scores(codes, n_jobs=2), X @ V.T, atol=1e-11)
    np.testing.assert_allclose(lookup.scores(codes[:, 5:6]), X[5:6] @ V.T, atol=1e-11)
    assert PQLookup(book, V).scores(codes).dtype == np.float32


def test_some_of_the_rows_of_codes():
    codes = ProductQuantizer(3, n_words=9, random_state=0).fit_transform(
        np.random.default_rng(0).normal(size=(80, 100))
    )
    part = codes[20:50]
    assert part.groups.base is not None  # a view
    rows = PQRows(part.groups, part.words, part.n_features)
    assert_same(rows, part.decode().astype(float), 3, 1e-5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"codes": np.zeros((2, 5, 32), np.uint8)}, "do not hold 3 parts"),
        ({"codes": np.zeros((1, 5, 16), np.uint8)}, "do not hold 3 parts"),
        ({"size": 4}, "size=4"),
        ({"size": 7}, "size=7"),
        ({"expansion": "late"}, "expansion must be one of"),
        ({"codes": np.full((1, 5, 32), 4, np.uint8)}, "has the code 4"),
    ],
)
def test_parts_that_do_not_fit(given, message):
    fitting = {"codes": np.zeros((1, 5, 32), np.uint8), "words": np.zeros((3, 4, 2))}
    with pytest.raises(ValueError, match=message):
        PQRows(**(fitting | given))


@pytest.mark.parametrize("kernel", [Chi2(), Intersection()])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("tasks", [1, 3, 10, 30])
def test_pairs_are_the_features_of_the_sparse_map(kernel, dtype, tasks, histograms):
    Z = SparseMap(kernel, 9).fit_transform(histograms.astype(dtype))
    rows = PairRows(Z)
    assert rows.shape == Z.shape
    assert_same(rows, Z.toarray().astype(float), tasks, 1e-4)
    assert rows.nbytes < 0.6 * (Z.data.astype(np.float32).nbytes + Z.indices.nbytes)


@pytest.mark.parametrize("jobs", [1, 2])
def test_pairs_across_groups(monkeypatch, jobs):
    monkeypatch.setattr(coded, "NODES", 7)  # 5 nodes each: pairs lie in two groups
    monkeypatch.setattr(coded, "ROWS_PER_JOB", 20)
    X = np.random.default_rng(0).dirichlet(np.ones(13), 70)
    Z = SparseMap(Intersection(), 5).fit_transform(X)
    assert len(PairRows(Z)._groups) == 10
    for tasks in (1, 7):
        assert_same(PairRows(Z, n_jobs=jobs), Z.toarray(), tasks, 1e-4)


@given(
    n=st.integers(1, 20),
    columns=st.integers(1, 9),
    density=st.sampled_from([0.0, 0.3, 1.0]),
    tasks=st.sampled_from([1, 5]),
    seed=st.integers(0, 50),
)
def test_pairs_of_any_rows(n, columns, density, tasks, seed):
    rng = np.random.default_rng(seed)
    Z = np.zeros((n, columns, 4))
    for i, j in zip(*np.nonzero(rng.random((n, columns)) < density), strict=True):
        first = rng.integers(0, 3)
        Z[i, j, first : first + 2] = rng.normal(size=2)
    Z = Z.reshape(n, -1)
    assert_same(PairRows(sp.csr_array(Z)), Z, tasks, 2e-4, seed)


def test_columns_in_any_order():
    Z = sp.csr_array(([3.0, 2.0, 1.0, 5.0], [3, 0, 1, 2], [0, 4]), shape=(1, 4))
    np.testing.assert_allclose(PairRows(Z).scores(np.eye(4))[0], [2, 1, 5, 3], rtol=1e-4)
    assert not Z.has_sorted_indices


@pytest.mark.parametrize(
    ("Z", "message"),
    [
        ([[1.0, 2.0], [0.0, 3.0]], r"Z\[1\] has an odd number"),
        ([[0.0, 0.0, 0.0], [1.0, 0.0, 2.0]], r"Z\[1\] has entries that are not pairs"),
        ([[1.0, np.nan]], "not finite"),
        ([[1.0, np.inf]], "not finite"),
    ],
)
def test_rows_that_are_no_pairs(Z, message):
    with pytest.raises(ValueError, match=message):
        PairRows(sp.csr_array(np.array(Z)))


def test_a_broken_matrix():
    Z = sp.csr_array(np.ones((1, 2)))
    Z.indices[:] = [7, 8]
    with pytest.raises(ValueError, match="out of range"):
        PairRows(Z)


def test_tasks_side_by_side():
    assert side_by_side(1, np.float32) == [(0, 1)]
    assert side_by_side(2, np.float32) == [(0, 1), (1, 2)]
    together = side_by_side(100, np.float64)
    assert together[0][0] == 0
    assert together[-1][1] == 100
    assert len(together) < 100
    padded = whole_vectors(np.ones((2, 3, 5)), np.float32)
    assert padded.dtype == np.float32
    assert padded.shape[2] % 4 == 0
    assert padded.sum() == 30
    assert padded.ctypes.data % 64 == 0
