"""Kernel regression: LIBSVM's optimum, however the Gram matrix is held."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVR

from hilbin.estimators import KernelSVR
from hilbin.kernels import (
    GCS,
    Chi2,
    Exponential,
    Gaussian,
    Intersection,
    Laplace,
    Polynomial,
    Sparsity,
)
from hilbin.persist import load, save

INTERCEPT = {
    "free": {},
    "penalized": {"penalize_intercept": True},
    0.5: {"penalize_intercept": True, "intercept_scaling": np.sqrt(0.5)},
    0.3: {"penalize_intercept": True, "intercept_scaling": np.sqrt(0.3)},
    0: {"fit_intercept": False},
}

N = 300  # more rows than are solved to rounding
RNG = np.random.default_rng(0)
X = RNG.gamma(1.0, size=(N, 5))
X /= X.sum(axis=1, keepdims=True)
NEW = RNG.dirichlet(np.ones(5), 50)
Y = np.sin(8 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=N)
WEIGHTS = RNG.integers(0, 4, N)
KERNEL = Laplace(3.0)
TIGHT = {"tol": 1e-7}
KERNELS = [
    Gaussian(20.0),
    Laplace(gamma="median"),
    Exponential(Chi2(), gamma="mean"),
    20.0 * Intersection(),
    Polynomial(2, 1.0),
]


@pytest.mark.parametrize(("C", "epsilon"), [(1.0, 0.1), (20.0, 0.0)])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_optimum_of_libsvm(kernel, C, epsilon):
    kernel = kernel.resolve(X)
    K = kernel.gram(X).astype(np.float32).astype(np.float64)  # as LIBSVM rounds it
    model = KernelSVR("precomputed", C, epsilon, tol=1e-9).fit(K, Y)
    theirs = SVR(kernel="precomputed", C=C, epsilon=epsilon, tol=1e-9).fit(K, Y)
    coef = np.zeros(N)
    coef[theirs.support_] = theirs.dual_coef_[0]
    optimum = Y @ coef - epsilon * np.abs(coef).sum() - 0.5 * coef @ K @ coef
    np.testing.assert_allclose(model.objective_, optimum, rtol=1e-6)
    new = kernel.gram(NEW, X)
    np.testing.assert_allclose(model.predict(new), theirs.predict(new), atol=1e-4)


@pytest.mark.parametrize("intercept", ["free", "penalized", 0.5])
def test_optimality_conditions(intercept):
    model = KernelSVR(KERNEL, 2.0, 0.05, **INTERCEPT[intercept], **TIGHT).fit(X, Y)
    coef = np.zeros(N)
    coef[model.support_] = model.dual_coef_[:, 0]
    errors = Y - model.predict(X)
    assert (np.abs(errors[coef == 0]) <= 0.05 + 1e-5).all()
    assert (errors[coef == 2.0] >= 0.05 - 1e-5).all()
    assert (errors[coef == -2.0] <= -0.05 + 1e-5).all()
    inside = (np.abs(coef) < 2.0) & (coef != 0)
    assert inside.any()
    np.testing.assert_allclose(errors[inside], 0.05 * np.sign(coef[inside]), atol=1e-5)
    value = 0.5 * coef @ (KERNEL.gram(X) @ coef) + 2.0 * np.maximum(np.abs(errors) - 0.05, 0).sum()
    constant = {"free": 0, "penalized": 1.0}.get(intercept, intercept)
    value += 0.5 * constant * coef.sum() ** 2
    np.testing.assert_allclose(model.objective_, value, rtol=1e-6)


@pytest.mark.parametrize("intercept", ["free", "penalized"])
def test_a_weight_is_a_repetition(intercept):
    model = KernelSVR(Laplace(gamma="median"), **INTERCEPT[intercept], **TIGHT)
    weighted = clone(model).fit(X, Y, sample_weight=WEIGHTS)
    repeated = clone(model).fit(np.repeat(X, WEIGHTS, axis=0), np.repeat(Y, WEIGHTS))
    np.testing.assert_allclose(weighted.predict(NEW), repeated.predict(NEW), atol=1e-5)


@pytest.mark.parametrize("intercept", ["free", "penalized"])
def test_ways_to_give_the_kernel(intercept):
    model = KernelSVR(KERNEL, **INTERCEPT[intercept], **TIGHT).fit(X, Y)
    expected = model.predict(NEW)
    for change in (np.asarray, sp.csr_array):
        given = clone(model).set_params(kernel="precomputed").fit(change(KERNEL.gram(X)), Y)
        found = given.predict(change(KERNEL.gram(NEW, X)))
        np.testing.assert_allclose(found, expected, atol=1e-5)
        rows = clone(model).fit(change(X), Y)
        np.testing.assert_allclose(rows.predict(change(NEW)), expected, atol=1e-5)
    called = clone(model).set_params(kernel=lambda A, B: KERNEL(A, B)).fit(X, Y)
    np.testing.assert_allclose(called.predict(NEW), expected, atol=1e-5)


@pytest.mark.parametrize("intercept", ["free", "penalized"])
def test_rows_on_demand_equal_the_whole_matrix(intercept):
    model = KernelSVR(KERNEL, **INTERCEPT[intercept])
    whole, by_rows = clone(model).fit(X, Y), clone(model).set_params(memory=0.3).fit(X, Y)
    np.testing.assert_allclose(by_rows.predict(NEW), whole.predict(NEW), atol=0.01)


def test_compact_kernels():
    kernel = GCS(radius=Sparsity(0.7)).resolve(X)
    sparse = KernelSVR(kernel, **TIGHT).fit(X, Y)
    dense = KernelSVR("precomputed", **TIGHT).fit(kernel(X), Y)
    np.testing.assert_allclose(sparse.predict(NEW), dense.predict(kernel(NEW, X)), atol=1e-5)


@pytest.mark.parametrize("intercept", ["free", "penalized"])
def test_path(intercept):
    model = KernelSVR(KERNEL, **INTERCEPT[intercept], **TIGHT)
    for C, found in zip([5.0, 0.2], model.path(X, Y, [5.0, 0.2], WEIGHTS), strict=True):
        alone = clone(model).set_params(C=C).fit(X, Y, WEIGHTS)
        np.testing.assert_allclose(found.objective_, alone.objective_, rtol=1e-6)
        np.testing.assert_allclose(found.predict(NEW), alone.predict(NEW), atol=1e-5)


def test_targets_of_any_size():
    small = KernelSVR(KERNEL, epsilon=0.0).fit(X, Y).predict(X)
    for size in (1e-100, 1e6, 1e200):
        model = KernelSVR(KERNEL, C=size, epsilon=0.0).fit(X, size * Y)
        np.testing.assert_allclose(model.predict(X) / size, small, atol=0.01)


def test_nothing_beyond_epsilon():
    for intercept in ("free", "penalized"):
        model = KernelSVR(KERNEL, epsilon=10.0, **INTERCEPT[intercept]).fit(X, Y)
        assert model.support_.size == 0
        assert np.ptp(model.predict(NEW)) == 0
        assert abs(model.predict(NEW)[0] - Y.mean()) < 10
    given = KernelSVR("precomputed", epsilon=10.0).fit(KERNEL.gram(X), Y)
    assert np.ptp(given.predict(KERNEL.gram(NEW, X))) == 0


def test_all_rows_alike():
    y = np.array([0.0, 1.0, 1.0, 5.0])
    model = KernelSVR(epsilon=0.0).fit(np.ones((4, 3)), y)
    np.testing.assert_allclose(model.predict(np.ones((1, 3))), 1.0, atol=1e-9)
    model = KernelSVR(epsilon=0.0).fit(np.arange(4.0)[:, None], np.full(4, 7.0))
    np.testing.assert_allclose(model.predict([[9.0]]), 7.0)


@pytest.mark.parametrize(
    ("given", "match"),
    [({"epsilon": -1}, "epsilon must be a number >= 0"), ({"C": -1}, "C must be")],
)
def test_bad_parameters(given, match):
    with pytest.raises(ValueError, match=match):
        KernelSVR(**given).fit(X, Y)


def test_limits_leave_a_usable_model():
    with pytest.warns(ConvergenceWarning, match="5 steps"):
        model = KernelSVR(KERNEL, max_iter=5).fit(X, Y)
    assert not model.converged_
    assert np.isfinite(model.predict(X)).all()


def test_models_are_values(tmp_path):
    model = KernelSVR(Exponential(Chi2(), gamma="median")).fit(X, Y)
    save(model, tmp_path / "model.hilbin")
    for copy in (load(tmp_path / "model.hilbin"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(model.predict(NEW), copy.predict(NEW))
