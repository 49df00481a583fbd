"""Bandwidths and weights by gradient steps: tune, and the derivatives that it takes."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris

from hilbin.estimators import KernelRidge, tune
from hilbin.estimators.multiple.differentiable import differentiable
from hilbin.estimators.multiple.tune import sample
from hilbin.kernels import (
    Chi2,
    Exponential,
    Gaussian,
    Intersection,
    Laplace,
    Linear,
    Normalized,
    OnColumns,
    Power,
    PValue,
    SymmetricKL,
    WeightedSum,
    kernel_alignment,
    product_kernel,
)
from hilbin.kernels.alignment import aligned
from hilbin.solvers.kernel_ridge import kernel_ridge_path, loo_error_gradient

X, Y = load_iris(return_X_y=True)
VIEWS = [
    OnColumns(Exponential(Chi2(), "mean"), slice(0, 2)),
    OnColumns(Gaussian("mean"), slice(2, 4)),
]
leaves = st.sampled_from(
    [
        Gaussian(0.4),
        Laplace(0.3, p=2),
        Exponential(Chi2(), 0.8),
        Exponential(Intersection(), 0.5),
        Chi2(),
        PValue(gamma=0.3),
        OnColumns(Gaussian(0.7), [1, 2]),
        OnColumns(Linear(), slice(2, 4)),
    ]
)
weights = st.floats(0.1, 3)


def around(inner):
    pairs = st.tuples(inner, inner)
    return st.one_of(
        pairs.map(lambda p: p[0] + p[1]),
        pairs.map(lambda p: p[0] * p[1]),
        st.tuples(inner, weights).map(lambda p: p[1] * p[0]),
        inner.map(Normalized),
        inner.map(lambda k: Power(k, 0.5)),
        st.tuples(inner, inner, weights).map(
            lambda p: WeightedSum((p[0], Linear(), p[1]), (p[2], 0.0, 0.7))
        ),
    )


kernels = st.recursive(leaves, around, max_leaves=4)


def difference(function, at, direction, h=1e-3):
    """The derivative along a direction, of fourth order."""
    values = [function(at + s * h * direction) for s in (-2, -1, 1, 2)]
    return (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * h)


@given(kernel=kernels, seed=st.integers(0, 1000))
@settings(deadline=None)
def test_slopes_are_those_of_differences(kernel, seed):
    rng = np.random.default_rng(seed)
    rows = rng.uniform(0.1, 2, size=(9, 4))
    node = differentiable(kernel, rows, None)
    np.testing.assert_allclose(node.gram(node.start), kernel(rows), rtol=1e-9)
    assert node.kernel(node.start).gram(rows) == pytest.approx(kernel.gram(rows), rel=1e-9)
    if not node.start.size:
        return
    G = rng.normal(size=(9, 9))
    G += G.T
    logs = node.start + rng.normal(scale=0.3, size=node.start.size)
    direction = rng.normal(size=logs.size)
    slope = difference(lambda at: np.sum(G * node.gram(at)), logs, direction)
    node.gram(logs)
    size = np.linalg.norm(G) * np.linalg.norm(node.K) * np.linalg.norm(direction)
    assert node.slopes(G) @ direction == pytest.approx(slope, abs=1e-8 * size)
    np.testing.assert_allclose(node.kernel(logs)(rows), node.gram(logs), rtol=1e-9)


@given(seed=st.integers(0, 1000), alpha=st.floats(0.05, 5), n_targets=st.integers(1, 3))
def test_gradient_of_the_leave_one_out_error(seed, alpha, n_targets):
    rng = np.random.default_rng(seed)
    rows, T = rng.normal(size=(12, 3)), rng.normal(size=(12, n_targets))
    K, direction = Gaussian(0.3).gram(rows), Laplace(0.5).gram(rows)
    error, gradient = loo_error_gradient(K, T, alpha)

    def by_path(K, alpha):
        return kernel_ridge_path(K, T, [alpha]).errors.sum()

    assert error == pytest.approx(by_path(K, alpha), rel=1e-9)
    slope = difference(lambda at: by_path(K + at * direction, alpha), 0.0, 1.0)
    assert np.sum(gradient * direction) == pytest.approx(slope, abs=1e-7 * error)
    slope = difference(lambda at: by_path(K, alpha + at), 0.0, 1.0, 1e-3 * alpha)
    assert np.trace(gradient) == pytest.approx(slope, rel=1e-6, abs=1e-7 * error)


@given(logs=st.tuples(st.floats(-2, 2), st.floats(-2, 2)))
def test_the_slope_of_the_product_kernel(logs):
    """d A / d ln gamma_v = -gamma_v <G, K * D_v>, as in the specification of alignment."""
    node = differentiable(product_kernel(VIEWS, X), X[::3], None)
    at, T = node.start + np.array(logs), np.eye(3)[Y[::3]]
    T -= T.mean(axis=0)
    K = node.gram(at)
    slopes = node.slopes(aligned(K, T)[1])
    for v in range(2):
        axis = np.eye(2)[v]
        expected = difference(lambda at: aligned(node.gram(at), T)[0], at, axis)
        assert slopes[v] == pytest.approx(expected, abs=1e-9)


# The search.
@pytest.mark.parametrize("by", ["alignment", "leave_one_out"])
@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian("median"),
        product_kernel(VIEWS, X),
        WeightedSum(VIEWS, (0.5, 0.5)),
        0.3 * VIEWS[0] + VIEWS[1],
    ],
    ids=["gaussian", "product", "weighted sum", "sum"],
)
@pytest.mark.parametrize("y", [Y, X[:, 0] * X[:, 1]], ids=["labels", "targets"])
def test_it_never_ends_below_its_start(by, kernel, y):
    found = tune(kernel, X, y, by=by)
    assert (found.after >= found.before) if by == "alignment" else (found.after <= found.before)
    assert found.converged
    assert type(found.kernel) is type(kernel)
    if by == "alignment":
        K = kernel.resolve(X, 0).gram(X)
        assert found.before == pytest.approx(kernel_alignment(K, y))
        assert found.after == pytest.approx(kernel_alignment(found.kernel.gram(X), y))
        assert found.alpha is None
    again = tune(kernel, X, y, by=by)
    assert again == found


def test_leave_one_out_is_that_of_kernel_ridge():
    y = X[:, 3] * X[:, 1]
    found = tune(Gaussian("median"), X[:, :3], y, by="leave_one_out")
    model = KernelRidge(found.kernel, alpha=[found.alpha, 1e3]).fit(X[:, :3], y)
    assert model.loo_errors_[0] == pytest.approx(found.after, rel=1e-6)
    for factor in (0.9, 1.1):
        other = found.kernel.replace(gamma=found.kernel.gamma * factor)
        errors = KernelRidge(other, alpha=[found.alpha, 1e3]).fit(X[:, :3], y).loo_errors_
        assert errors[0] >= found.after


@pytest.mark.parametrize("factor", [1e-8, 1.0, 1e12])
def test_kernels_of_any_size(factor):
    kernel = factor * Gaussian("median")
    found = tune(kernel, X, Y, by="leave_one_out")
    assert 0 < found.after <= found.before < 1
    assert tune(kernel, X, Y).after == pytest.approx(tune(Gaussian("median"), X, Y).after, abs=1e-4)


@pytest.mark.filterwarnings("ignore::hilbin.kernels.NotPositiveDefiniteWarning")
def test_leaving_out_needs_a_positive_definite_kernel():
    rows = np.random.default_rng(0).dirichlet(np.full(4, 0.05), 60)
    kernel = SymmetricKL(0.05, smoothing=1e-3)
    with pytest.raises(ValueError, match="the Gram matrix is not positive semi-definite"):
        tune(kernel, rows, np.arange(60) % 2, by="leave_one_out", alpha=1e-6)


def test_the_best_bandwidth_is_that_of_a_grid():
    found = tune(Gaussian("median"), X, Y)
    values = [kernel_alignment(Gaussian(g).gram(X), Y) for g in np.geomspace(0.05, 2, 200)]
    assert found.after >= max(values) - 1e-9


def test_a_column_of_noise_loses_its_weight():
    rng = np.random.default_rng(0)
    rows = np.c_[Y + 0.2 * rng.normal(size=150), rng.normal(size=150)]
    each = [OnColumns(Gaussian("mean"), [j]) for j in range(2)]
    found = tune(product_kernel(each, rows), rows, Y).kernel
    assert found.left.kernel.gamma > 20 * found.right.kernel.gamma


def test_names_and_sparse_rows():
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    named = tune(OnColumns(Gaussian("median"), ["c", "d"]), frame, Y)
    numbered = tune(OnColumns(Gaussian("median"), [2, 3]), X, Y)
    assert named == numbered
    sparse = tune(OnColumns(Gaussian("median"), [2, 3]), sp.csr_array(X), Y)
    assert sparse.after == pytest.approx(numbered.after)


def test_samples_keep_the_classes():
    chosen = sample(np.eye(3)[Y], 60, 0)
    assert np.bincount(Y[chosen]).tolist() == [20, 20, 20]
    assert np.array_equal(chosen, np.unique(chosen))
    assert sample(X[:, :1], 60, 0).size == 60
    assert np.array_equal(sample(X[:, :1], 150, 0), np.arange(150))
    found = tune(Gaussian("median"), X, Y, max_samples=60)
    assert found.after == pytest.approx(tune(Gaussian("median"), X, Y).after, abs=0.05)


def test_the_plain_product():
    kernel = product_kernel(VIEWS, X)
    D = [
        view.resolve(X).kernel._distances(X[:, s], None, None)
        for view, s in zip(VIEWS, (slice(0, 2), slice(2, 4)), strict=True)
    ]
    pairs = np.triu_indices(150, 1)
    expected = np.exp(-sum(d / d[pairs].mean() for d in D) / 2)
    np.testing.assert_allclose(kernel.gram(X), expected, rtol=1e-9)
    assert product_kernel([Gaussian(2.0)], X) == Gaussian(2.0)


@pytest.mark.parametrize(
    ("kernel", "options", "complaint"),
    [
        (Linear(), {}, "has no parameters that can be tuned"),
        (Gaussian(), {"by": "accuracy"}, "by must be one of"),
        (Gaussian(), {"alpha": 0}, 'alpha, if not "auto", must be a number > 0'),
        (Gaussian(), {"max_iter": 0}, "max_iter must be a whole number >= 1"),
        (Gaussian(), {"max_samples": 1}, "max_samples must be a whole number >= 2"),
        (Gaussian(), {"task": "ranking"}, "task must be one of"),
    ],
)
def test_bad_input(kernel, options, complaint):
    with pytest.raises(ValueError, match=complaint):
        tune(kernel, X, Y, **options)


def test_other_bad_input():
    with pytest.raises(TypeError, match=r"kernel must be a kernel of hilbin\.kernels"):
        tune("rbf", X, Y)
    with pytest.raises(ValueError, match="no kernel agrees with the labels"):
        tune(2.0 * Linear(), [[0.0], [1.0], [0.0], [1.0]], [0, 0, 1, 1])
    with pytest.raises(TypeError, match=r"product_kernel takes kernels exp\(-gamma d\)"):
        product_kernel([Gaussian(), Chi2()], X)
    with pytest.raises(ValueError, match="kernels must be one or more kernels"):
        product_kernel([], X)
