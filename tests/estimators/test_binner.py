"""The quantizer: equation 13 repaired, one code for every value, and its manners."""

import pickle

import numpy as np
import oracles
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from hilbin.estimators import HistogramBinner

STRATEGIES = ["uniform", "sqrt", "quantile"]
SCOPES = ["feature", "all"]


@pytest.fixture(scope="module")
def values():
    """Skewed values of different scales, zeros in all but the last feature."""
    rng = np.random.default_rng(0)
    X = rng.lognormal(0, 1, (400, 4)) * [1, 10, 0.01, 3]
    X[:, :3] *= rng.random((400, 3)) < [0.9, 0.5, 0.1]
    return X


def test_equation_13_repaired(values):
    found = HistogramBinner().fit_transform(values)
    expected = np.column_stack([oracles.quantize(x, 100, 0.975) for x in values.T])
    np.testing.assert_array_equal(found, expected)
    assert found.max() == 100  # unclipped, it would be 737
    assert (found[values == 0] == 0).all()


def test_range_is_that_of_the_values_above_the_low_end(values):
    """So it exists where 97.5 % are zero, and zero is the low end wherever it is common."""
    rare = np.where(np.arange(400)[:, None] % 50 == 0, values[:, 3:], 0)
    binner = HistogramBinner().fit(np.column_stack([rare, values]))
    assert binner.low_[:4].tolist() == [0, 0, 0, 0]
    assert binner.low_[4] == oracles.quantile(values[:, 3], 0.025)
    expected = [oracles.quantile(x[x > 0], 0.975) for x in (rare[:, 0], *values.T[:3])]
    np.testing.assert_array_equal(binner.high_[:4], expected)
    assert binner.last_.tolist() == [100] * 5
    assert binner.step_ == 1


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("n_bins", [1, 4, 100, 255, 256, 5000])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_codes(values, strategy, n_bins, scope):
    binner = HistogramBinner(n_bins, strategy=strategy, scope=scope)
    codes = binner.fit_transform(values)
    assert codes.dtype == (np.uint8 if binner.last_.max() < 256 else np.uint16)
    assert codes.max() <= n_bins
    np.testing.assert_array_equal(codes.max(axis=0), binner.last_)
    assert (codes[values == 0] == 0).all()
    for x, code in zip(values.T, codes.T, strict=True):
        assert (np.diff(code[np.argsort(x)].astype(int)) >= 0).all()
    if scope == "all":
        assert len({*binner.low_}) == len({*binner.high_}) == 1
    assert binner.step_ * n_bins == pytest.approx(100)


def test_sqrt_is_finer_for_small_values_and_quantiles_are_even():
    x = np.random.default_rng(0).uniform(size=(1000, 1)) ** 3
    x[:100] = 0
    uniform, root, even = (
        HistogramBinner(10, strategy=s).fit_transform(x)[:, 0] for s in STRATEGIES
    )
    high = oracles.quantile(x[x > 0], 0.975)
    np.testing.assert_array_equal(root, np.minimum(10 * np.sqrt(x[:, 0] / high), 10).astype(int))
    assert (root >= uniform).all()
    np.testing.assert_allclose(np.bincount(even), [100] + [90] * 10, atol=1)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize(
    ("n_bins", "strategy"), [*((n, s) for n in (7, 100) for s in STRATEGIES), (None, "uniform")]
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_csr_equals_dense(values, strategy, scope, n_bins, dtype):
    X = values.astype(dtype)
    binner = HistogramBinner(n_bins, strategy=strategy, scope=scope)
    dense = binner.fit_transform(X)
    sparse = clone(binner).fit_transform(sp.csr_matrix(X))
    assert isinstance(sparse, sp.csr_array if n_bins else sp.csr_matrix)
    assert sparse.dtype == dense.dtype
    np.testing.assert_array_equal(sparse.toarray(), dense)
    np.testing.assert_array_equal(binner.transform(sp.csr_array(X)).toarray(), dense)
    np.testing.assert_array_equal(binner.set_params(n_jobs=2).transform(X), dense)
    np.testing.assert_array_equal(binner.transform(np.asfortranarray(X)), dense)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_pooled_csr_without_many_zeros_equals_dense(values, strategy):
    X = np.column_stack([values[:, 3], values[:, 3] + 1])
    X[0] = 0
    binner = HistogramBinner(scope="all", strategy=strategy)
    sparse = binner.fit_transform(sp.csr_array(X)).toarray()
    np.testing.assert_array_equal(sparse, binner.fit_transform(X))
    assert binner.low_[0] > 0


@pytest.mark.parametrize("n_bins", [100, None])
def test_csr_equals_dense_after_a_shifted_fit(n_bins):
    """Its zeros, stored or not, are not the least values: what comes out is dense."""
    binner = HistogramBinner(n_bins, negative="shift").fit([[-1.0], [0.0], [1.0]])
    rows = np.array([[0.0], [1.0]])
    np.testing.assert_array_equal(binner.transform(sp.csr_array(rows)), binner.transform(rows))


def test_single_precision(values):
    double, single = (HistogramBinner(50).fit_transform(values.astype(t)) for t in (float, "f4"))
    assert (double != single).mean() < 1e-3
    assert np.abs(double.astype(int) - single).max() <= 1


def test_whole_numbers_of_one_range_are_bins():
    counts = np.random.default_rng(0).integers(0, 1024, (300, 3)).astype(float)
    counts[:, 2] = counts[:, 2] % 7
    binner = HistogramBinner(10, scope="all").fit(counts)
    assert binner.integers_
    high = oracles.quantile(counts[counts > 0], 0.975)
    np.testing.assert_array_equal(binner.transform(counts), np.minimum(counts, high))
    assert binner.step_ == 100 / high
    np.testing.assert_array_equal(binner.boundaries(2), np.arange(7))
    np.testing.assert_array_equal(binner.transform([[2000.0, 3.7, 100.0]]), [[high, 3, 6]])
    for changed in ({"keep_integers": False}, {"strategy": "sqrt"}, {"scope": "feature"}):
        other = HistogramBinner(10, **{"scope": "all", **changed}).fit(counts)
        assert not other.integers_
        assert other.transform(counts).max() == 10
    for other in (counts + 0.5, 2 * counts):
        assert not HistogramBinner(10, scope="all").fit(other).integers_
    assert HistogramBinner(scope="all").fit(sp.csr_array(counts)).integers_


@pytest.mark.parametrize("cell", [0.5, 1023.0, 1024.0, 5000.0, 1e9])
def test_one_cell_changes_little(cell):
    """Neither a fraction nor a large value among counts makes other bins of all the rest."""
    counts = np.random.default_rng(0).poisson(3.0, (200, 30)).astype(float)
    changed = counts.copy()
    changed[17, 5] = cell
    a, b = (HistogramBinner().fit(rows) for rows in (counts, changed))
    assert a.scope_ == b.scope_ == "all"
    np.testing.assert_array_equal([a.low_, a.high_], [b.low_, b.high_])
    before, after = (m.transform(counts) * m.step_ for m in (a, b))
    np.testing.assert_allclose(after, before, atol=1)  # a bin


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("scope", SCOPES)
def test_whole_numbers_obey_scope_and_strategy(values, scope, strategy):
    whole = np.ceil(100 * values)
    fine = HistogramBinner(50, scope=scope, strategy=strategy)
    codes = {
        keep: clone(fine).set_params(keep_integers=keep).fit_transform(whole)
        for keep in (True, False)
    }
    assert clone(fine).fit(whole).scope_ == scope
    np.testing.assert_array_equal(codes[True], codes[False])


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("shift", [0.0, 5.0])
def test_boundaries(values, strategy, shift):
    binner = HistogramBinner(20, strategy=strategy, negative="shift").fit(values - shift)
    for j in range(4):
        edges = binner.boundaries(j)
        assert edges.size == binner.last_[j] + 1
        assert edges[0] == binner.low_[j]
        X = np.zeros((edges.size, 4))
        small = 1e-12 * max(np.ptp(edges), np.abs(edges).max())
        for move, code in ((small, 0), (-small, -1)):
            X[:, j] = edges + move
            expected = np.maximum(np.arange(edges.size) + code, 0)
            np.testing.assert_array_equal(binner.transform(X)[:, j], expected)


def assert_boundaries_get_their_codes(X, **parameters):
    binner = HistogramBinner(**parameters).fit(X)
    for j in range(X.shape[1]):
        edges = binner.boundaries(j)
        codes = binner.transform(np.repeat(edges[:, None], X.shape[1], axis=1))[:, j]
        np.testing.assert_array_equal(codes, np.arange(edges.size))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("n_bins", [10, 64, 100, 1000])
def test_every_boundary_gets_its_own_code(values, strategy, n_bins):
    assert_boundaries_get_their_codes(values[:, :3], n_bins=n_bins, strategy=strategy)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("shift", [0.1, 5.0, 1e3])
def test_every_boundary_of_shifted_values_gets_its_own_code(values, strategy, shift):
    assert_boundaries_get_their_codes(
        values[:, :2] - shift, strategy=strategy, negative="shift", quantile=1.0
    )


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_values_beyond_the_training_range(values, strategy, scope):
    binner = HistogramBinner(strategy=strategy, scope=scope).fit(values)
    beyond = np.array([values.max(axis=0) * 1e6, np.zeros(4)])
    np.testing.assert_array_equal(binner.transform(beyond), [binner.last_, np.zeros(4)])


def test_unbinned_values_are_measured(values):
    for scope in SCOPES:
        binner = HistogramBinner(None, scope=scope).fit(values)
        span = binner.high_ - binner.low_
        measured = np.clip(100 * (values - binner.low_) / span, 0, 100)
        np.testing.assert_allclose(binner.transform(values), measured, atol=1e-10)
    with pytest.raises(ValueError, match="n_bins=None makes no bins"):
        binner.boundaries(0)
    with pytest.raises(ValueError, match="strategy='sqrt' spaces bins, and n_bins=None makes none"):
        HistogramBinner(None, strategy="sqrt").fit(values)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 1000),
    scope=st.sampled_from(["auto", "feature", "all"]),
    kind=st.sampled_from(["counts", "frequencies", "numbers", "csr"]),
    n_bins=st.integers(1, 65535),
)
def test_values_without_bins_are_the_limit_of_bins(seed, scope, kind, n_bins):
    """A level times the width of a bin is at most a bin below the measured value."""
    rng = np.random.default_rng(seed)
    X = rng.lognormal(0, 1, (60, 9)) * rng.lognormal(0, 2, 9) * (rng.random((60, 9)) < 0.7)
    if kind == "counts":
        X = np.ceil(X)
    elif kind == "frequencies":
        X = X / np.maximum(X.sum(axis=1, keepdims=True), 1e-9)
    elif kind == "numbers":
        X = X - 1
    rows = sp.csr_array(X) if kind == "csr" else X
    binned, exact = (
        HistogramBinner(n, scope=scope, negative="shift").fit(rows) for n in (n_bins, None)
    )
    below = exact.transform(X) - binned.transform(X) * binned.step_
    assert below.min() >= -1e-9
    assert below.max() <= max(binned.step_, 100 / n_bins) + 1e-9


@pytest.mark.parametrize("n_bins", [100, None])
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("constant", [0.0, 3.5, -2.0])
def test_constant_features_are_zero(constant, scope, n_bins):
    X = np.full((5, 3), constant)
    binner = HistogramBinner(n_bins, scope=scope, negative="shift").fit(X)
    np.testing.assert_array_equal(binner.transform(X), 0)
    one = X.copy()
    one[:, 0] = np.arange(5) / 2
    kept = HistogramBinner(n_bins, negative="shift").fit_transform(one)
    np.testing.assert_array_equal(kept[:, 1:], 0)
    assert kept[:, 0].argmax() == 4


@pytest.mark.parametrize("n_bins", [100, None])
@pytest.mark.parametrize(("size", "dtype"), [(1e300, np.float64), (3e38, np.float32)])
def test_huge_values(size, dtype, n_bins):
    share = np.linspace(0, 1, 101)[:, None]
    X = (size * share).astype(dtype)
    binner = HistogramBinner(n_bins, quantile=1.0).fit(X)
    np.testing.assert_allclose(binner.transform(X), 100 * share, atol=1 if n_bins else 1e-3)
    wide = HistogramBinner(n_bins, quantile=1.0, negative="shift").fit(X - dtype(size / 2))
    assert np.isfinite(wide.transform(X - dtype(size / 2))).all()


@settings(max_examples=30)
@given(
    seed=st.integers(0, 1000),
    strategy=st.sampled_from(STRATEGIES),
    scope=st.sampled_from(SCOPES),
    csr=st.booleans(),
    n_bins=st.sampled_from([5, 100, None]),
)
def test_a_weight_is_repetition(seed, strategy, scope, csr, n_bins):
    strategy = "uniform" if n_bins is None else strategy
    rng = np.random.default_rng(seed)
    X = rng.lognormal(0, 1, (60, 3)) * (rng.random((60, 3)) < [0.5, 0.9, 0.98])
    weights = rng.integers(0, 4, 60)
    weights[0] = 1
    repeated = np.repeat(X, weights, axis=0)
    box = sp.csr_array if csr else np.asarray
    a, b = (HistogramBinner(n_bins, strategy=strategy, scope=scope) for _ in range(2))
    a.fit(box(X), sample_weight=weights)
    b.fit(box(repeated))
    np.testing.assert_allclose([a.low_, a.high_], [b.low_, b.high_], rtol=1e-15)
    np.testing.assert_array_equal(a.transform(X), b.transform(X))


@pytest.mark.parametrize("number", [np.float64, np.float32])
def test_numbers_of_any_type(values, number):
    found, same = (HistogramBinner(quantile=q).fit(values) for q in (number(0.75), 0.75))
    np.testing.assert_array_equal(found.high_, same.high_)


def test_names_and_pickle(values):
    frame = pd.DataFrame(values, columns=list("abcd"))
    binner = HistogramBinner(strategy="quantile").set_output(transform="pandas").fit(frame)
    assert list(binner.get_feature_names_out()) == list("abcd")
    out = binner.transform(frame)
    assert list(out.columns) == list("abcd")
    again = pickle.loads(pickle.dumps(binner)).transform(frame)
    pd.testing.assert_frame_equal(out, again)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_named(values, bad):
    X = values.copy()
    X[7, 1] = bad
    binner = HistogramBinner().fit(values)
    for call in (HistogramBinner().fit, binner.transform):
        for box in (np.asarray, sp.csr_array):
            with pytest.raises(ValueError, match=rf"X\[7, 1\] = {bad} is not finite"):
                call(box(X))


def test_negative_values_are_named(values):
    X = values.copy()
    X[7, 1] = -1
    with pytest.raises(ValueError, match=r"X\[7, 1\] = -1.0 is negative.*negative='shift'"):
        HistogramBinner().fit(X)
    with pytest.raises(ValueError, match=r"X\[7, 1\] = -1.0 is negative"):
        HistogramBinner().fit(values).transform(X)
    with pytest.raises(ValueError, match=r"sparse and has negative values.*pass a dense X"):
        HistogramBinner(negative="shift").fit(sp.csr_array(X))
    assert HistogramBinner(negative="shift").fit_transform(X)[7, 1] == 0


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("n_bins", bad) for bad in (0, 65_536, 2.5, "10", True)]
    + [("quantile", bad) for bad in (0, 1.5, -1, "high", np.nan)]
    + [(name, "other") for name in ("strategy", "scope", "negative")],
)
def test_bad_parameters(values, name, wrong):
    with pytest.raises(ValueError, match=f"^{name}"):
        HistogramBinner(**{name: wrong}).fit(values)


def test_weights_of_nothing(values):
    with pytest.raises(ValueError, match="zero"):
        HistogramBinner().fit(values, sample_weight=np.zeros(400))
