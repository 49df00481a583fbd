"""One-class machines and balls: LIBSVM's optimum, geometry, and what the share nu promises."""

import pickle

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.svm import OneClassSVM

from hilbin.estimators import SVDD, KernelOneClass
from hilbin.kernels import (
    GCS,
    Chi2,
    Exponential,
    Gaussian,
    Intersection,
    Laplace,
    Linear,
    Polynomial,
    Sparsity,
)
from hilbin.persist import load, save

N = 300  # more rows than are solved to rounding
RNG = np.random.default_rng(0)
X = RNG.gamma(1.0, size=(N, 5))
NEW = RNG.gamma(1.5, size=(60, 5))
WEIGHTS = RNG.integers(0, 4, N)
TIGHT = {"tol": 1e-8}
KERNELS = [
    Gaussian(0.2),
    Laplace(gamma="median"),
    Exponential(Chi2(), gamma="mean"),
    Intersection(),
    Polynomial(2, 1.0),
]
BOTH = pytest.mark.parametrize("estimator", [KernelOneClass, SVDD])


@pytest.mark.parametrize("nu", [0.033, 0.47])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_optimum_of_libsvm(kernel, nu):
    kernel = kernel.resolve(X)
    K, size = kernel.gram(X), nu * N
    model = KernelOneClass(kernel, nu, **TIGHT).fit(X)
    theirs = OneClassSVM(kernel="precomputed", nu=nu, tol=1e-8).fit(K)
    coef = np.zeros(N)
    coef[theirs.support_] = theirs.dual_coef_[0] / size
    scale = K.diagonal().mean()
    np.testing.assert_allclose(-model.objective_, 0.5 * coef @ K @ coef, rtol=1e-6)
    expected = theirs.decision_function(kernel.gram(NEW, X)) / size
    np.testing.assert_allclose(model.decision_function(NEW), expected, atol=1e-6 * scale)
    np.testing.assert_allclose(model.offset_, theirs.offset_[0] / size, atol=1e-6 * scale)


def smallest_ball(K, high):
    """By a general solver, from the dual."""
    n = len(K)
    found = scipy.optimize.minimize(
        lambda a: a @ K @ a - K.diagonal() @ a,
        np.full(n, 1 / n),
        jac=lambda a: 2 * K @ a - K.diagonal(),
        bounds=[(0, high)] * n,
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1, "jac": np.ones_like},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return found.x, -found.fun


@pytest.mark.parametrize("kernel", [Linear(), Intersection(), Polynomial(2, 1.0)], ids=repr)
def test_the_smallest_ball(kernel):
    rows, nu = X[:40], 0.2
    K = kernel.gram(rows)
    coef, value = smallest_ball(K, 1 / (nu * 40))
    ball = SVDD(kernel, nu).fit(rows)
    np.testing.assert_allclose(ball.objective_, value, rtol=1e-7)
    np.testing.assert_allclose(ball.center_norm_**2, coef @ K @ coef, rtol=1e-4)
    squared = kernel.diag(NEW) - 2 * kernel.gram(NEW, rows) @ coef + coef @ K @ coef
    np.testing.assert_allclose(-ball.score_samples(NEW), squared, rtol=1e-4)
    excess = np.maximum(-ball.decision_function(rows), 0)
    np.testing.assert_allclose(ball.radius_**2 + excess.sum() / (nu * 40), value, rtol=1e-6)


def test_the_ball_in_the_plane():
    corners = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 0.5], [1.0, 0.2], [1.0, -0.1]])
    ball = SVDD(Linear(), nu=0.01).fit(corners)
    np.testing.assert_allclose([ball.radius_, ball.center_norm_], [1, 1], atol=1e-9)
    np.testing.assert_allclose(ball.decision_function([[1.0, 3.0], [1.0, 0.0]]), [-8, 1], atol=1e-8)
    assert (ball.predict(corners) == 1).all()


@pytest.mark.parametrize("nu", [0.02, 0.3, 1.0])
@pytest.mark.parametrize("kernel", [Gaussian(0.2), Exponential(Chi2(), gamma=0.5)], ids=repr)
def test_ball_and_plane_agree_where_rows_are_of_one_length(kernel, nu):
    ball, plane = SVDD(kernel, nu, **TIGHT).fit(X), KernelOneClass(kernel, nu, **TIGHT).fit(X)
    np.testing.assert_allclose(
        ball.decision_function(NEW), 2 * plane.decision_function(NEW), atol=1e-7
    )
    np.testing.assert_array_equal(ball.predict(X), plane.predict(X))


@BOTH
@pytest.mark.parametrize("nu", [0.01, 0.1, 0.5, 0.99])
def test_what_nu_promises(estimator, nu):
    for tol in (1e-3, 1e-7):
        model = estimator(Laplace(gamma="median"), nu, tol=tol).fit(X)
        assert np.mean(model.predict(X) == -1) <= nu + 1e-12
        assert model.support_.size >= nu * N * (1 - 1e-12)
        np.testing.assert_allclose(model.dual_coef_.sum(), 1)
        decisions = model.decision_function(X)
        np.testing.assert_allclose(decisions, model.score_samples(X) - model.offset_)
        np.testing.assert_array_equal(model.predict(X), np.where(decisions >= 0, 1, -1))


@BOTH
def test_optimality_conditions(estimator):
    model = estimator(Polynomial(2, 1.0), 0.2, **TIGHT).fit(X)
    coef, decisions = np.zeros(N), model.decision_function(X)
    coef[model.support_] = model.dual_coef_[:, 0]
    scale = Polynomial(2, 1.0).diag(X).mean()
    high = 1 / (0.2 * N)
    assert (decisions[coef == 0] >= -1e-6 * scale).all()
    assert (decisions[np.isclose(coef, high, rtol=1e-12)] <= 1e-6 * scale).all()
    inside = (coef > 0) & (coef < high * (1 - 1e-9))
    assert inside.any()
    np.testing.assert_allclose(decisions[inside], 0, atol=1e-6 * scale)


@BOTH
@pytest.mark.parametrize("nu", [0.1, 1.0])
def test_a_weight_is_a_repetition(estimator, nu):
    model = estimator(Laplace(gamma="median"), nu, **TIGHT)
    weighted = clone(model).fit(X, sample_weight=WEIGHTS)
    repeated = clone(model).fit(np.repeat(X, WEIGHTS, axis=0))
    np.testing.assert_allclose(
        weighted.decision_function(NEW), repeated.decision_function(NEW), atol=1e-7
    )
    scaled = clone(model).fit(X, sample_weight=1e-5 * WEIGHTS)
    np.testing.assert_allclose(
        weighted.decision_function(NEW), scaled.decision_function(NEW), atol=1e-7
    )


@BOTH
def test_ways_to_give_the_kernel(estimator):
    kernel = Gaussian(0.2)
    model = estimator(kernel, **TIGHT).fit(X)
    expected = model.decision_function(NEW)
    for change in (np.asarray, sp.csr_array):
        given = clone(model).set_params(kernel="precomputed").fit(change(kernel.gram(X)))
        found = given.decision_function(change(kernel.gram(NEW, X)))
        np.testing.assert_allclose(found, expected, atol=1e-6)
        rows = clone(model).fit(change(X))
        np.testing.assert_allclose(rows.decision_function(change(NEW)), expected, atol=1e-6)
    called = clone(model).set_params(kernel=lambda A, B: kernel(A, B)).fit(X)
    np.testing.assert_allclose(called.decision_function(NEW), expected, atol=1e-6)
    lazy = clone(model).set_params(memory=0.2, tol=1e-4).fit(X)
    np.testing.assert_allclose(lazy.decision_function(NEW), expected, atol=1e-3)
    with pytest.raises(ValueError, match=f"X has 299 features, but {estimator.__name__}"):
        given.predict(kernel.gram(NEW, X)[:, 1:])


def test_given_matrices_of_rows_of_many_lengths():
    kernel = Intersection()
    model = SVDD(kernel).fit(X)
    K, cross = kernel.gram(X), kernel.gram(NEW, X)
    given = SVDD("precomputed").fit(K)
    found = given.decision_function(cross, diagonal=kernel.diag(NEW))
    np.testing.assert_allclose(found, model.decision_function(NEW), atol=1e-2)
    np.testing.assert_array_equal(given.fit_predict(K), given.predict(K, K.diagonal()))
    np.testing.assert_array_equal(given.fit_predict(sp.csr_array(K)), given.predict(K, np.diag(K)))
    with pytest.raises(ValueError, match="give that of the new rows as diagonal"):
        given.predict(cross)
    for wrong in (np.ones(3), np.full(60, np.nan)):
        with pytest.raises(ValueError, match="diagonal must be 60 numbers"):
            given.predict(cross, diagonal=wrong)
    with pytest.raises(ValueError, match='diagonal is for kernel="precomputed"'):
        model.predict(NEW, diagonal=kernel.diag(NEW))


@BOTH
def test_compact_kernels(estimator):
    kernel = GCS(radius=Sparsity(0.7)).resolve(X)
    sparse = estimator(kernel, **TIGHT).fit(X)
    dense = estimator("precomputed", **TIGHT).fit(kernel(X))
    np.testing.assert_allclose(
        sparse.decision_function(NEW), dense.decision_function(kernel(NEW, X)), atol=1e-6
    )


@BOTH
@pytest.mark.parametrize("nu", [0.1, 1.0])
def test_all_rows_alike(estimator, nu):
    model = estimator(nu=nu).fit(np.full((20, 2), 3.0))
    assert model.predict([[3.0, 3.0], [30.0, 3.0]]).tolist() == [1, -1]
    zeros = estimator(Linear(), nu=nu).fit(np.zeros((20, 2)))
    assert zeros.predict([[0.0, 0.0]]) == 1


@BOTH
@pytest.mark.parametrize("nu", [0, -0.1, 1.1, np.nan, "auto", True])
def test_bad_shares(estimator, nu):
    with pytest.raises(ValueError, match="nu must be a number > 0 and <= 1"):
        estimator(nu=nu).fit(X)


@BOTH
def test_one_row(estimator):
    model = estimator(Gaussian(), nu=0.5).fit(X[:1])
    assert model.predict(X[:2]).tolist() == [1, -1]


@BOTH
def test_models_are_values(estimator, tmp_path):
    model = estimator(Exponential(Chi2(), gamma="median")).fit(X)
    save(model, tmp_path / "model.hilbin")
    for copy in (load(tmp_path / "model.hilbin"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(model.decision_function(NEW), copy.decision_function(NEW))
