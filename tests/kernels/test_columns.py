"""Kernels on some of the columns, sums with weights, and the size of kernels."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import hilbin
from hilbin.estimators import KernelRidge, KernelSVC, MapSVC
from hilbin.inspection import additive
from hilbin.kernels import (
    GCS,
    Chi2,
    Exponential,
    Gaussian,
    Hellinger,
    Intersection,
    JensenShannon,
    Laplace,
    Linear,
    Normalized,
    OnColumns,
    Power,
    WeightedSum,
    check_kernel,
    kernel_scale,
)
from hilbin.maps import AdditiveMap, NystroemMap, SparseMap

RNG = np.random.default_rng(0)
X = RNG.gamma(0.5, size=(30, 12)) * (RNG.uniform(size=(30, 12)) < 0.7)
KERNELS = [
    OnColumns(Chi2(), slice(2, 9)),
    OnColumns(Exponential(Chi2()), slice(None, None, -3)),
    OnColumns(GCS(radius=1.0), [7, 0, -1]),
    OnColumns(OnColumns(Linear(), [3, 1]), slice(1, 6)),
    OnColumns(Chi2(), np.arange(6)) + OnColumns(Gaussian(0.3), slice(4, None)),
    OnColumns(Exponential(JensenShannon()), [1, 2, 5]) * OnColumns(Laplace(0.2), [0, 3, 4]),
    Normalized(OnColumns(Linear(), [3, 1]) + OnColumns(Intersection(), slice(-4, None))),
    WeightedSum([OnColumns(Chi2(), [1, 2]), GCS(radius=1.0)], [0.5, 1.5]),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_law(kernel, tmp_path):
    check_kernel(kernel)
    assert pickle.loads(pickle.dumps(kernel)) == kernel == clone(kernel)
    assert hash(pickle.loads(pickle.dumps(kernel))) == hash(kernel) == hash(clone(kernel))
    model = KernelRidge(kernel).fit(X, X[:, 0])
    hilbin.save(model, tmp_path / "model")
    again = hilbin.load(tmp_path / "model")
    assert again.kernel_ == model.kernel_
    assert np.array_equal(again.predict(X), model.predict(X))


@given(
    columns=st.lists(st.integers(0, 11), min_size=1, max_size=12, unique=True),
    kernel=st.sampled_from([Chi2(), Gaussian(0.5), Exponential(JensenShannon()), Linear()]),
    form=st.sampled_from([np.asarray, sp.csr_array, sp.csr_matrix, np.float32]),
)
def test_it_is_the_kernel_of_the_columns(columns, kernel, form):
    expected = kernel.gram(form(X[:, columns]))
    found = OnColumns(kernel, columns).gram(form(X))
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(OnColumns(kernel, columns).diag(form(X)), np.diag(expected), 1e-5)


@pytest.mark.parametrize("ends", [(0, 4), (None, 4), (3, None), (-5, -1), (8, 2, -2), (None,) * 3])
def test_slices(ends):
    kernel = OnColumns(Chi2(), slice(*ends))
    np.testing.assert_allclose(kernel.gram(X), Chi2().gram(X[:, slice(*ends)]), rtol=1e-12)


@pytest.mark.parametrize("columns", [slice(2, 8), [2, 3, 4, 5, 6, 7]])
def test_neighboring_columns_are_not_copied(columns):
    rows = OnColumns(Chi2(), columns)._taken(X)
    assert np.shares_memory(rows, X)
    assert rows.shape == (30, 6)


def test_rules_see_the_columns_alone():
    scaled = X * np.r_[np.ones(6), np.full(6, 1000.0)]
    kernel = OnColumns(Gaussian("median"), slice(0, 6)) + OnColumns(Gaussian("mean"), [6, 7])
    found = kernel.resolve(scaled)
    assert found.left.kernel == Gaussian("median").resolve(X[:, :6])
    assert found.right.kernel == Gaussian("mean").resolve(scaled[:, [6, 7]])


def test_other_columns_may_be_negative():
    rows = np.c_[X[:, :4], RNG.normal(size=(30, 3))]
    kernel = OnColumns(Chi2(), slice(0, 4)) + OnColumns(Gaussian(), slice(4, 7))
    assert np.isfinite(kernel.gram(rows)).all()
    assert KernelSVC(kernel).fit(rows, np.arange(30) % 2).predict(rows).shape == (30,)
    rows[3, 2] = -1.5
    for form in (np.asarray, sp.csr_array):
        with pytest.raises(ValueError, match=r"X\[3, 2\] = -1.5 is negative, but Chi2 needs"):
            kernel.gram(form(rows))
        with pytest.raises(ValueError, match=r"X\[3, 2\] = -1.5 is negative, but Chi2 needs"):
            OnColumns(Chi2(), [2, 0]).gram(form(rows))


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ([0, 12], "has column 12, but X has 12 columns"),
        ([-13], "has column -13, but X has 12 columns"),
        (slice(8, 13), "has column 12, but X has 12 columns"),
        (slice(12, None), "has column 12, but X has 12 columns"),
        (slice(3, 3), "is none of the 12 of X"),
        (["a"], "are names, .*'a'.*, but X has none"),
    ],
)
def test_columns_that_are_not_there(columns, complaint):
    kernel = OnColumns(Linear(), columns)
    for use in (
        kernel.gram,
        kernel.diag,
        kernel.resolve,
        AdditiveMap(kernel.replace(kernel=Chi2())).fit,
    ):
        with pytest.raises(ValueError, match=complaint):
            use(X)


@pytest.mark.parametrize(
    "columns",
    [
        "ab",
        [],
        3,
        [0.5],
        [True],
        [0, "a"],
        None,
        slice(0.0, 3),
        slice(0, 3, 0),
        [[1]],
        [[1], [2, 3]],
        {1},
    ],
)
def test_columns_that_are_none(columns):
    with pytest.raises(ValueError, match="columns of OnColumns must be"):
        OnColumns(Linear(), columns)


def test_columns_twice():
    with pytest.raises(ValueError, match="columns of OnColumns has 3 2 times"):
        OnColumns(Linear(), [3, 1, 3])


FRAME = pd.DataFrame(X, columns=[f"c{j}" for j in range(12)])
NAMED = OnColumns(Chi2(), ["c4", "c1"]) + 2.0 * OnColumns(Gaussian("median"), ["c1", "c2"])
NUMBERED = OnColumns(Chi2(), [4, 1]) + 2.0 * OnColumns(Gaussian("median"), [1, 2])


def test_names():
    kernel = OnColumns(Chi2(), ["c4", "c1"])
    np.testing.assert_array_equal(kernel.gram(FRAME), OnColumns(Chi2(), [4, 1]).gram(X))
    np.testing.assert_array_equal(
        kernel.gram(FRAME, X[:5]), OnColumns(Chi2(), [4, 1]).gram(X, X[:5])
    )
    assert NAMED.resolve(FRAME) == NUMBERED.resolve(X)
    weighted = WeightedSum((kernel, Linear()), (1.0, 0.0))
    np.testing.assert_array_equal(weighted.gram(FRAME), kernel.gram(FRAME))
    with pytest.raises(ValueError, match="has 'd', which is not among the 12 columns of X"):
        OnColumns(Chi2(), ["d"]).gram(FRAME)
    with pytest.raises(ValueError, match="Y has other columns than X"):
        kernel.gram(FRAME, FRAME[FRAME.columns[::-1]])


@pytest.mark.parametrize(
    "make", [KernelRidge, KernelSVC, lambda k: NystroemMap(k, 10, random_state=0)]
)
def test_estimators_look_names_up_in_fit(make, tmp_path):
    y = np.arange(30) % 3
    named, numbered = make(NAMED).fit(FRAME, y), make(NUMBERED).fit(X, y)
    assert named.kernel_ == numbered.kernel_
    hilbin.save(named, tmp_path / "model")
    use = "predict" if hasattr(named, "predict") else "transform"
    found = getattr(hilbin.load(tmp_path / "model"), use)(FRAME)
    np.testing.assert_array_equal(found, getattr(numbered, use)(X))


# Maps of additive kernels.
MAPS = [
    lambda k: AdditiveMap(k),
    lambda k: AdditiveMap(k, method="eigen"),
    lambda k: SparseMap(k),
    lambda k: SparseMap(k, orthonormal=True),
]


@pytest.mark.parametrize("make", MAPS)
@pytest.mark.parametrize("kernel", [Chi2(), Hellinger(), Intersection()], ids=repr)
@pytest.mark.parametrize("columns", [slice(3, 8), [5, 2]])
def test_maps_have_features_of_the_columns_alone(make, kernel, columns, tmp_path):
    on_columns = make(OnColumns(kernel, columns)).fit(X)
    whole = make(kernel).fit(X[:, columns])
    Z = on_columns.transform(X)
    expected = whole.transform(X[:, columns])
    dense = getattr(Z, "toarray", lambda: Z)()
    np.testing.assert_array_equal(dense, getattr(expected, "toarray", lambda: expected)())
    assert on_columns.error_ == whole.error_
    assert on_columns.n_features_in_ == 12
    assert on_columns.get_feature_names_out().size == Z.shape[1]
    width = Z.shape[1] // on_columns._columns.size
    np.testing.assert_array_equal(
        on_columns.input_columns_, np.repeat(np.arange(12)[columns], width)
    )
    check_kernel(on_columns.kernel, X, feature_map=on_columns)
    hilbin.save(on_columns, tmp_path / "map")
    again = hilbin.load(tmp_path / "map").transform(X)
    np.testing.assert_array_equal(getattr(again, "toarray", lambda: again)(), dense)


def test_maps_know_names():
    named = AdditiveMap(OnColumns(Chi2(), ["c5", "c2"]), 2).fit(FRAME)
    assert list(named.get_feature_names_out()) == ["c5_0", "c5_1", "c2_0", "c2_1"]
    numbered = AdditiveMap(OnColumns(Chi2(), [5, 2]), 2).fit(X)
    np.testing.assert_array_equal(named.transform(FRAME), numbered.transform(X))


def test_contributions_of_a_map_on_columns():
    y = (X[:, 3] > X[:, 4]).astype(int)
    model = MapSVC(AdditiveMap(OnColumns(Chi2(), slice(2, 6)))).fit(X, y)
    parts = additive(model)
    contributions = parts.contributions(X)
    assert contributions.shape == (30, 12, 2)
    assert (contributions[:, [0, 1, *range(6, 12)]] == 0).all()
    np.testing.assert_allclose(
        contributions.sum(axis=1) + parts.intercept, parts.scores(X), atol=1e-9
    )


# Sums with weights.
def test_weighted_sum_is_the_sum():
    kernels, weights = (Chi2(), Gaussian(0.5), Linear()), (0.3, 0.0, 2.0)
    found = WeightedSum(kernels, weights)
    np.testing.assert_allclose(found.gram(X), (0.3 * Chi2() + 2.0 * Linear()).gram(X), rtol=1e-12)
    np.testing.assert_allclose(found.diag(X), np.diag(found.gram(X)), rtol=1e-12)
    assert found.nonnegative
    assert not WeightedSum(kernels, (0, 1, 1)).nonnegative
    assert WeightedSum(list(kernels), np.array(weights)) == found
    assert eval(repr(found)) == found


class Forbidden(Linear):
    def _gram(self, X, Y, n_jobs):
        raise AssertionError("computed")

    _diag = _gram


def test_a_weight_of_zero_costs_nothing():
    kernel = WeightedSum((Forbidden(), Linear()), (0.0, 1.0))
    np.testing.assert_array_equal(kernel.gram(X), Linear().gram(X))
    np.testing.assert_array_equal(kernel.diag(X), Linear().diag(X))


def test_a_weighted_sum_of_compact_kernels_is_sparse():
    kernel = WeightedSum((GCS(2.0), GCS(4.0), Chi2()), (1.0, 2.0, 0.0))
    assert kernel.compact
    assert sp.issparse(kernel.gram(X))
    assert not WeightedSum(kernel.kernels, (1.0, 2.0, 3.0)).compact


def test_rules_inside_a_weighted_sum():
    kernel = WeightedSum((Gaussian("median"), OnColumns(Gaussian("mean"), [1, 2])), (1.0, 1.0))
    with pytest.raises(ValueError, match=r"gamma='median' .* is a rule"):
        kernel.gram(X)
    assert kernel.resolve(X).kernels[1] == OnColumns(Gaussian("mean"), [1, 2]).resolve(X)


@pytest.mark.parametrize(
    ("kernels", "weights", "complaint"),
    [
        ([], [], "one or more kernels, got none"),
        ([Linear(), 3], [1, 1], "one or more kernels, got 3"),
        (Linear(), [1], "kernels of WeightedSum must be a list"),
        ([Linear()], 1.0, "weights of WeightedSum must be a list"),
        ([Linear()], [1, 1], "has 1 kernels, but 2 weights"),
        ([Linear(), Chi2()], [1, -1], r"weights\[1\] of WeightedSum must be a number >= 0"),
        ([Linear(), Chi2()], [1, np.nan], r"weights\[1\] of WeightedSum must be a number >= 0"),
        ([Linear(), Chi2()], [0, 0], "weights of WeightedSum are all 0"),
    ],
)
def test_bad_sums(kernels, weights, complaint):
    with pytest.raises(ValueError, match=complaint):
        WeightedSum(kernels, weights)


# The size of kernels.
@given(factor=st.floats(1e-6, 1e6), rule=st.sampled_from(["diagonal", "variance", "norm"]))
def test_scale(factor, rule):
    kernel = factor * Power(Gaussian(0.7), 0.5)
    scaled = kernel_scale(kernel, X, rule) * kernel.gram(X)
    H = np.eye(30) - 1 / 30
    centered = H @ scaled @ H
    size = {
        "diagonal": np.trace(scaled) / 30,
        "variance": np.trace(centered) / 30,
        "norm": np.linalg.norm(centered),
    }
    assert size[rule] == pytest.approx(1, rel=1e-9)
    assert kernel_scale(kernel.gram(X), rule=rule) == pytest.approx(kernel_scale(kernel, X, rule))


def test_kernels_without_size():
    for rule in ("variance", "norm"):
        with pytest.raises(ValueError, match="has no variance"):
            kernel_scale(np.ones((4, 4)), rule=rule)
    with pytest.raises(ValueError, match=r"mean of k\(x, x\) must be above 0"):
        kernel_scale(Linear(), np.zeros((3, 2)), "diagonal")
    with pytest.raises(ValueError, match="rule must be one of"):
        kernel_scale(np.eye(3), rule="trace")
    with pytest.raises(ValueError, match="X is missing"):
        kernel_scale(Linear())
    with pytest.raises(ValueError, match="K must be square"):
        kernel_scale(np.ones((4, 3)))


@pytest.mark.parametrize(
    ("kernel", "name", "value"),
    [
        (OnColumns(Linear(), [1, 2]), "columns", "ab"),
        (OnColumns(Linear(), [1, 2]), "columns", (1, 1)),
        (OnColumns(Linear(), [1, 2]), "columns", slice(0.5, 2)),
        (WeightedSum((Linear(), Chi2()), (1.0, 2.0)), "weights", (1.0,)),
        (WeightedSum((Linear(), Chi2()), (1.0, 2.0)), "weights", (-1.0, 1.0)),
        (WeightedSum((Linear(), Chi2()), (1.0, 2.0)), "kernels", (Linear(), 3)),
    ],
)
def test_forged_kernels(kernel, name, value, tmp_path):
    hilbin.save(kernel, tmp_path / "kernel")
    assert hilbin.load(tmp_path / "kernel") == kernel
    forged = kernel.replace()
    object.__setattr__(forged, name, value)
    hilbin.save(forged, tmp_path / "kernel")
    with pytest.raises(hilbin.persist.ModelFileError, match=rf"{name}|kernels"):
        hilbin.load(tmp_path / "kernel")
