"""Look-up tables of sums of minima: every way to store them gives the direct sum."""

from dataclasses import replace

import numpy as np
import oracles
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from hilbin.solvers import lookup
from hilbin.solvers.icd import SAMPLE, start_random
from hilbin.solvers.lookup import CAPACITY, DEEP4, HINGE, Levels, LookupRows, lay_out

LARGEST = {"FLAT8": 8, "FLAT16": 16, "FLAT32": 32, "TWO4": 64}
LARGEST |= {"TWO8": 128, "TWO16": 256, "DEEP2": 16**3, "DEEP3": 16**4, "DEEP4": 70_001}
LARGEST |= {"HINGE": 300}  # this has no limit
KINDS = list(LARGEST)
MANY = [1, 2, 7, 8, 9, 16, 30, 60, 100, 250, 1, 700, 5000]  # levels of features, of many kinds
RANK_TYPES = [np.uint8, np.uint16, np.uint32]


def random_levels(sizes, step=None, dtype=None, *, n=25, share=0.6, csr=False, seed=0):
    """Rows of ranks in features of these numbers of levels; the highest rank of each occurs."""
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.integers(0, m, n) for m in sizes])
    rows *= rng.random(rows.shape) < share
    rows[0] = np.array(sizes) - 1
    rows[1] = 0
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    levels = [
        np.arange(m) * step if step else np.append(0, rng.gamma(1, size=m - 1) + 1e-6).cumsum()
        for m in sizes
    ]
    rows = rows.astype(dtype or np.min_scalar_type(max(sizes) - 1))
    return Levels(sp.csr_array(rows) if csr else rows, offsets, np.concatenate(levels), step)


def values_of(levels):
    """The values whose ranks the rows are."""
    rows = levels.rows.toarray() if sp.issparse(levels.rows) else levels.rows
    return levels.levels[levels.offsets[:-1] + rows]


def kept_scores(rows, coef, dtype):
    """The score of every row, as a descent finds it in the tables."""
    n = coef.size
    sweep = rows.start(coef, dtype, None)
    samples = np.zeros(n, SAMPLE)
    samples["sign"], samples["low"], samples["high"] = 1, -np.inf, np.inf
    samples["curvature"] = 1e300  # so no visit changes anything
    samples = samples.view(np.float64).reshape(n, -1)
    scores = np.empty(n)
    for i in range(n):
        order = np.roll(np.arange(n, dtype=np.int32), -i)
        limits = (np.inf, -np.inf, 0.0, 0.0)
        scores[i] = sweep(samples, order, 1, *limits, np.zeros(3), start_random(0))[1]
    return scores


def assert_direct_sum(rows, coef, X, dtype):
    K = oracles.intersection(X)
    scale = np.max(K @ np.abs(coef))
    tolerance = (1e-12 if dtype == np.float64 else 3e-6) * scale
    np.testing.assert_allclose(kept_scores(rows, coef, dtype), K @ coef, rtol=0, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("step", [None, 0.37], ids=["listed", "even"])
@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_the_direct_sum(kind, dense, step, dtype):
    number = getattr(lookup, kind)
    levels = random_levels([2, LARGEST[kind] // 2 + 1, LARGEST[kind]], step)
    layout = lay_out(levels, kind=number, dense=dense)
    assert layout.sparse != dense
    assert layout.groups[:, 0].tolist() == [number]
    coef = np.random.default_rng(1).normal(size=levels.shape[0])
    assert_direct_sum(LookupRows(levels, layout), coef, values_of(levels), dtype)


@pytest.mark.parametrize("rank_type", RANK_TYPES)
@pytest.mark.parametrize("csr", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
def test_every_type_of_rank(rank_type, csr, dense):
    levels = random_levels([2, 7, 40, 200], dtype=rank_type, csr=csr)
    coef = np.random.default_rng(1).normal(size=levels.shape[0])
    assert_direct_sum(
        LookupRows(levels, lay_out(levels, dense=dense)), coef, values_of(levels), np.float64
    )


@pytest.mark.parametrize("step", [None, 0.37], ids=["listed", "even"])
@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
def testlookup_by_the_data(step, dense):
    """Features of all sizes at once: those of one kind form a group."""
    levels = random_levels(MANY, step, n=60)
    layout = lay_out(levels, dense=dense)
    assert len(set(layout.groups[:, 0])) == len(layout.groups) > 1
    coef = np.random.default_rng(1).normal(size=levels.shape[0])
    for dtype in (np.float64, np.float32):
        assert_direct_sum(LookupRows(levels, layout), coef, values_of(levels), dtype)


def test_small_ranks_get_hinge_tables():
    levels = random_levels([250] * 6, n=60)
    levels = Levels(np.minimum(levels.rows, 5), levels.offsets, levels.levels)
    layout = lay_out(levels, dense=False)
    assert layout.groups[:, 0].tolist() == [HINGE]
    coef = np.random.default_rng(1).normal(size=levels.shape[0])
    assert_direct_sum(LookupRows(levels, layout), coef, values_of(levels), np.float64)


def testlookup_follows_density():
    assert not lay_out(random_levels([20] * 30, share=0.9)).sparse
    assert lay_out(random_levels([20] * 30, share=0.1)).sparse


@pytest.mark.parametrize("csr", [False, True], ids=["dense", "csr"])
def test_features_that_say_nothing(csr):
    levels = random_levels([1, 1], csr=csr)
    coef = np.random.default_rng(1).normal(size=levels.shape[0])
    np.testing.assert_array_equal(kept_scores(LookupRows(levels), coef, np.float64), 0)


@settings(max_examples=30)
@given(
    sizes=st.lists(st.integers(1, 300), min_size=1, max_size=8),
    seed=st.integers(0, 1000),
    csr=st.booleans(),
    dense=st.booleans(),
    step=st.none() | st.floats(0.01, 10),
    share=st.sampled_from([0.05, 0.5, 1.0]),
)
def test_any_rows(sizes, seed, csr, dense, step, share):
    levels = random_levels(sizes, step, n=12, csr=csr, share=share, seed=seed)
    coef = np.random.default_rng(seed).normal(size=12)
    X = values_of(levels)
    assert_direct_sum(LookupRows(levels, lay_out(levels, dense=dense)), coef, X, np.float64)
    np.testing.assert_allclose(levels.norms, X.sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("rank_type", RANK_TYPES)
def test_norms_of_long_rows(rank_type):
    d, top = 70_000, np.iinfo(rank_type).max
    levels = Levels(np.full((1, d), top, rank_type), np.arange(d + 1), np.zeros(d), step=0.5)
    assert levels.norms[0] == 0.5 * d * int(top)


@pytest.mark.parametrize("csr", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("rank_type", RANK_TYPES)
def test_lookup_is_sums_of_minima(rank_type, csr):
    levels = random_levels([1, 2, 12, 100], dtype=rank_type, csr=csr)
    C = np.random.default_rng(1).normal(size=(levels.shape[0], 3))
    C[3] = 0
    found, X = levels.lookup(C), values_of(levels)
    for j, (begin, end) in enumerate(zip(levels.offsets, levels.offsets[1:], strict=False)):
        values = levels.levels[begin:end]
        for c, T in zip(C.T, found[begin:end].T, strict=True):
            tolerance = 1e-12 * max(np.abs(c) @ X[:, j], 1)
            expected = oracles.sums_of_minima(c, X[:, j], values)
            np.testing.assert_allclose(T, expected, rtol=0, atol=tolerance)
            H = oracles.sums_of_hinges(c, X[:, j], values)
            np.testing.assert_allclose(T, H[0] - H, rtol=0, atol=tolerance)
    assert levels.lookup(C.copy()) is found  # the last are remembered, by value
    C[3] = 1
    assert not np.array_equal(levels.lookup(C), found)
    np.testing.assert_array_equal(replace(levels).lookup(C), levels.lookup(C))


@pytest.mark.parametrize("columns", [1, 2, 4, 5, 16, 17])
@pytest.mark.parametrize("csr", [False, True], ids=["dense", "csr"])
def test_scores_of_many_columns(columns, csr):
    levels = random_levels([2, 12, 100, 5, 3, 3000, 20_000, 2000, 2000, 7], csr=csr, n=51)
    tables = np.random.default_rng(1).normal(size=(levels.levels.size, columns))
    tables[levels.offsets[:-1]] = 0  # what a CSR row does not store must not count
    rows = levels.rows.toarray() if csr else levels.rows
    expected = tables[levels.offsets[:-1] + rows].sum(axis=1)
    for n_jobs in (None, 2):
        found = levels.scores(tables, n_jobs)
        assert found.shape == (51, columns)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.startswith("FLAT")])
def test_tables_equal_fenwick_trees(kind):
    number = getattr(lookup, kind)
    levels = random_levels([min(LARGEST[kind], 500)])
    x, coef = values_of(levels)[:, 0], np.random.default_rng(1).normal(size=levels.shape[0])
    tree = oracles.FenwickPair(x)
    for value, c in zip(x, coef, strict=True):
        tree.add(value, c)
    expected = np.array([tree.at(value) for value in x])
    found = kept_scores(LookupRows(levels, lay_out(levels, kind=number)), coef, np.float64)
    tolerance = 1e-12 * x.max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
    direct = oracles.sums_of_minima(coef, x, x)
    np.testing.assert_allclose(expected, direct, rtol=0, atol=tolerance)


@pytest.mark.parametrize("csr", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("rank_type", RANK_TYPES)
def test_unused_levels_can_be_dropped(rank_type, csr):
    levels = random_levels([1, 3, 200, 250], 0.5, rank_type, n=9, csr=csr)
    fewer = levels.without_unused()
    assert fewer.step is None
    assert fewer.rows.dtype == rank_type
    assert fewer.levels.size <= 9 * 2 + 3 + 1
    np.testing.assert_array_equal(values_of(fewer), values_of(levels))
    C = np.random.default_rng(1).normal(size=(9, 2))
    np.testing.assert_allclose(
        fewer.scores(fewer.lookup(C)), levels.scores(levels.lookup(C)), atol=1e-11
    )
    assert_direct_sum(LookupRows(fewer), C[:, 0], values_of(levels), np.float64)


@settings(max_examples=30)
@given(
    seed=st.integers(0, 1000),
    distinct=st.sampled_from([2, 20, 10_000]),
    dtype=st.sampled_from([np.float32, np.float64]),
    csr=st.booleans(),
)
def test_ranks_keep_every_value(seed, distinct, dtype, csr):
    rng = np.random.default_rng(seed)
    X = rng.lognormal(0, 5, distinct)[rng.integers(0, distinct, (300, 3))].astype(dtype)
    X *= rng.random(X.shape) < rng.random(3)
    levels = Levels.from_values(sp.csr_array(X) if csr else X, n_jobs=2)
    assert levels.rows.dtype == np.min_scalar_type(np.diff(levels.offsets).max() - 1)
    np.testing.assert_array_equal(values_of(levels), X)
    for j in range(3):
        found = levels.levels[levels.offsets[j] : levels.offsets[j + 1]]
        np.testing.assert_array_equal(found, np.unique(np.append(X[:, j], 0)))


def test_ranks_of_stored_zeros_and_of_nothing():
    X = sp.csr_array((np.array([0.0, 2.0, 0.0]), np.array([0, 1, 1]), np.array([0, 2, 3])))
    np.testing.assert_array_equal(values_of(Levels.from_values(X)), [[0, 2], [0, 0]])
    for empty in (np.zeros((2, 3)), sp.csr_array((2, 3))):
        assert Levels.from_values(empty).levels.tolist() == [0, 0, 0]


def test_too_many_values_are_named(monkeypatch):
    assert CAPACITY[DEEP4] == lookup.MOST_LEVELS
    monkeypatch.setattr(lookup, "MOST_LEVELS", 10)
    X = np.column_stack([np.ones(12), np.arange(12.0)])
    with pytest.raises(ValueError, match=r"feature 1 has 11 distinct values.*number of bins"):
        Levels.from_values(X)
