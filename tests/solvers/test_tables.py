"""Tables of sums of minima: every way to store them gives the direct sum."""

import numpy as np
import oracles
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from hilbin.solvers import Levels, TableRows, _codes, _layout, drop_unused, rank_values
from hilbin.solvers._icd import CURVATURE, HIGH, LOW, SIGN, start_random
from hilbin.solvers._layout import CAPACITY, DEEP4, HINGE, lay_out

LARGEST = {"FLAT8": 8, "FLAT16": 16, "FLAT32": 32, "TWO4": 64}
LARGEST |= {"TWO8": 128, "TWO16": 256, "DEEP2": 16**3, "DEEP3": 16**4, "DEEP4": 70_001}
LARGEST |= {"HINGE": 300, "PLAIN": 300, "FENWICK": 300}  # these have no limit
KINDS = [kind for kind in LARGEST if hasattr(_layout, kind)]
MANY = [1, 2, 7, 8, 9, 16, 30, 60, 100, 250, 1, 700, 5000]  # levels of features, of many kinds
CODE_TYPES = [np.uint8, np.uint16, np.uint32]


def random_codes(sizes, step=None, dtype=None, *, n=25, share=0.6, csr=False, seed=0):
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


def values_of(codes):
    """The values whose ranks the codes are."""
    rows = codes.rows.toarray() if sp.issparse(codes.rows) else codes.rows
    return codes.levels[codes.offsets[:-1] + rows]


def kept_scores(rows, coef, dtype):
    """The score of every row, as a descent finds it in the tables."""
    n = coef.size
    sweep = rows.start(coef, dtype)
    problem = np.zeros((n, 8))
    problem[:, SIGN], problem[:, LOW], problem[:, HIGH] = 1, -np.inf, np.inf
    problem[:, CURVATURE] = 1e300  # so no visit changes anything
    scores = np.empty(n)
    for i in range(n):
        order = np.roll(np.arange(n, dtype=np.int32), -i)
        limits = (np.inf, -np.inf, 0.0, 0.0)
        scores[i] = sweep(problem, order, 1, *limits, np.zeros(1), start_random(0))[1]
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
    number = getattr(_layout, kind)
    codes = random_codes([2, LARGEST[kind] // 2 + 1, LARGEST[kind]], step)
    layout = lay_out(codes, kind=number, dense=dense)
    assert layout.sparse != dense
    assert layout.groups[:, 0].tolist() == [number]
    coef = np.random.default_rng(1).normal(size=codes.shape[0])
    assert_direct_sum(TableRows(codes, layout), coef, values_of(codes), dtype)


@pytest.mark.parametrize("code_type", CODE_TYPES)
@pytest.mark.parametrize("csr", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
def test_every_type_of_code(code_type, csr, dense):
    codes = random_codes([2, 7, 40, 200], dtype=code_type, csr=csr)
    coef = np.random.default_rng(1).normal(size=codes.shape[0])
    assert_direct_sum(
        TableRows(codes, lay_out(codes, dense=dense)), coef, values_of(codes), np.float64
    )


@pytest.mark.parametrize("step", [None, 0.37], ids=["listed", "even"])
@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
def test_layout_by_the_data(step, dense):
    """Features of all sizes at once: those of one kind form a group."""
    codes = random_codes(MANY, step, n=60)
    layout = lay_out(codes, dense=dense)
    assert len(set(layout.groups[:, 0])) == len(layout.groups) > 1
    coef = np.random.default_rng(1).normal(size=codes.shape[0])
    for dtype in (np.float64, np.float32):
        assert_direct_sum(TableRows(codes, layout), coef, values_of(codes), dtype)


def test_small_ranks_get_hinge_tables():
    codes = random_codes([250] * 6, n=60)
    codes = Levels(np.minimum(codes.rows, 5), codes.offsets, codes.levels)
    layout = lay_out(codes, dense=False)
    assert layout.groups[:, 0].tolist() == [HINGE]
    coef = np.random.default_rng(1).normal(size=codes.shape[0])
    assert_direct_sum(TableRows(codes, layout), coef, values_of(codes), np.float64)


def test_layout_follows_density():
    assert not lay_out(random_codes([20] * 30, share=0.9)).sparse
    assert lay_out(random_codes([20] * 30, share=0.1)).sparse


@pytest.mark.parametrize("csr", [False, True], ids=["dense", "csr"])
def test_features_that_say_nothing(csr):
    codes = random_codes([1, 1], csr=csr)
    coef = np.random.default_rng(1).normal(size=codes.shape[0])
    np.testing.assert_array_equal(kept_scores(TableRows(codes), coef, np.float64), 0)


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
    codes = random_codes(sizes, step, n=12, csr=csr, share=share, seed=seed)
    coef = np.random.default_rng(seed).normal(size=12)
    X = values_of(codes)
    assert_direct_sum(TableRows(codes, lay_out(codes, dense=dense)), coef, X, np.float64)
    np.testing.assert_allclose(codes.norms, X.sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("code_type", CODE_TYPES)
def test_norms_of_long_rows(code_type):
    d, top = 70_000, np.iinfo(code_type).max
    codes = Levels(np.full((1, d), top, code_type), np.arange(d + 1), np.zeros(d), step=0.5)
    assert codes.norms[0] == 0.5 * d * int(top)


@pytest.mark.parametrize("csr", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("code_type", CODE_TYPES)
def test_tables_are_sums_of_minima(code_type, csr):
    codes = random_codes([1, 2, 12, 100], dtype=code_type, csr=csr)
    C = np.random.default_rng(1).normal(size=(codes.shape[0], 3))
    C[3] = 0
    found, X = codes.tables(C), values_of(codes)
    for j, (begin, end) in enumerate(zip(codes.offsets, codes.offsets[1:], strict=False)):
        levels = codes.levels[begin:end]
        for c, T in zip(C.T, found[begin:end].T, strict=True):
            tolerance = 1e-12 * max(np.abs(c) @ X[:, j], 1)
            expected = oracles.sums_of_minima(c, X[:, j], levels)
            np.testing.assert_allclose(T, expected, rtol=0, atol=tolerance)
            H = oracles.sums_of_hinges(c, X[:, j], levels)
            np.testing.assert_allclose(T, H[0] - H, rtol=0, atol=tolerance)


@pytest.mark.parametrize("columns", [1, 2, 4, 5, 16, 17])
@pytest.mark.parametrize("csr", [False, True], ids=["dense", "csr"])
def test_scores_of_many_columns(columns, csr):
    codes = random_codes([2, 12, 100, 5, 3, 3000, 20_000, 2000, 2000, 7], csr=csr, n=51)
    tables = np.random.default_rng(1).normal(size=(codes.levels.size, columns))
    tables[codes.offsets[:-1]] = 0  # what a CSR row does not store must not count
    rows = codes.rows.toarray() if csr else codes.rows
    expected = tables[codes.offsets[:-1] + rows].sum(axis=1)
    for n_jobs in (None, 2):
        found = codes.scores(tables, n_jobs)
        assert found.shape == (51, columns)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.startswith("FLAT")])
def test_tables_equal_fenwick_trees(kind):
    number = getattr(_layout, kind)
    codes = random_codes([min(LARGEST[kind], 500)])
    x, coef = values_of(codes)[:, 0], np.random.default_rng(1).normal(size=codes.shape[0])
    tree = oracles.FenwickPair(x)
    for value, c in zip(x, coef, strict=True):
        tree.add(value, c)
    expected = np.array([tree.at(value) for value in x])
    found = kept_scores(TableRows(codes, lay_out(codes, kind=number)), coef, np.float64)
    tolerance = 1e-12 * x.max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
    direct = oracles.sums_of_minima(coef, x, x)
    np.testing.assert_allclose(expected, direct, rtol=0, atol=tolerance)


@pytest.mark.parametrize("csr", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("code_type", CODE_TYPES)
def test_unused_levels_can_be_dropped(code_type, csr):
    codes = random_codes([1, 3, 200, 250], 0.5, code_type, n=9, csr=csr)
    fewer = drop_unused(codes)
    assert fewer.step is None
    assert fewer.rows.dtype == code_type
    assert fewer.levels.size <= 9 * 2 + 3 + 1
    np.testing.assert_array_equal(values_of(fewer), values_of(codes))
    C = np.random.default_rng(1).normal(size=(9, 2))
    np.testing.assert_allclose(
        fewer.scores(fewer.tables(C)), codes.scores(codes.tables(C)), atol=1e-11
    )
    assert_direct_sum(TableRows(fewer), C[:, 0], values_of(codes), np.float64)


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
    codes = rank_values(sp.csr_array(X) if csr else X, n_jobs=2)
    assert codes.rows.dtype == np.min_scalar_type(np.diff(codes.offsets).max() - 1)
    np.testing.assert_array_equal(values_of(codes), X)
    for j in range(3):
        levels = codes.levels[codes.offsets[j] : codes.offsets[j + 1]]
        np.testing.assert_array_equal(levels, np.unique(np.append(X[:, j], 0)))


def test_ranks_of_stored_zeros_and_of_nothing():
    X = sp.csr_array((np.array([0.0, 2.0, 0.0]), np.array([0, 1, 1]), np.array([0, 2, 3])))
    np.testing.assert_array_equal(values_of(rank_values(X)), [[0, 2], [0, 0]])
    for empty in (np.zeros((2, 3)), sp.csr_array((2, 3))):
        assert rank_values(empty).levels.tolist() == [0, 0, 0]


def test_too_many_values_are_named(monkeypatch):
    assert CAPACITY[DEEP4] == _codes.MOST_LEVELS
    monkeypatch.setattr(_codes, "MOST_LEVELS", 10)
    X = np.column_stack([np.ones(12), np.arange(12.0)])
    with pytest.raises(ValueError, match=r"feature 1 has 11 distinct values.*number of bins"):
        rank_values(X)
