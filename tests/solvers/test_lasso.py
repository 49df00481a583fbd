"""Lasso and group lasso from sums, against scikit-learn and by their optimality conditions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.linear_model import Lasso, MultiTaskLasso

from hilbin.solvers.lasso import lasso, lasso_path
from hilbin.stats import Moments


def data(seed=0, rows=60, width=12, targets=3):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(rows, width)) + 3
    Z[:, 1] += Z[:, 0]
    W = rng.normal(size=(width, targets)) * (rng.random((width, 1)) < 0.4)
    return Z, Z @ W + 0.3 * rng.normal(size=(rows, targets)) + 7


@pytest.mark.parametrize("alpha", [0.003, 0.1, 1.0])
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1000), rows=st.integers(6, 60))
def test_lasso_as_scikit_learn(alpha, seed, rows):
    Z, T = data(seed, rows)
    w = np.random.default_rng(seed).integers(0, 3, rows).astype(float)
    w[:3] = 1
    found = lasso(Moments.of(Z, T, w), alpha, tol=1e-13)
    assert found.converged
    for k in range(3):
        theirs = Lasso(alpha, tol=1e-14, max_iter=200_000).fit(Z, T[:, k], sample_weight=w)
        ours = Z @ found.coef[:, k] + found.intercept[k]
        np.testing.assert_allclose(ours[w > 0], theirs.predict(Z)[w > 0], atol=1e-5)
        if rows > 24:  # then it has one solution
            np.testing.assert_allclose(found.coef[:, k], theirs.coef_, atol=1e-5)


@pytest.mark.parametrize("alpha", [0.01, 0.3])
def test_lasso_to_six_digits(alpha):
    Z, T = data()
    found = lasso(Moments.of(Z, T), alpha, tol=1e-15)
    theirs = np.array([Lasso(alpha, tol=1e-15).fit(Z, t).coef_ for t in T.T])
    np.testing.assert_allclose(found.coef.T, theirs, atol=1e-6)
    assert np.count_nonzero(found.coef) == np.count_nonzero(theirs)


@pytest.mark.parametrize("alpha", [0.01, 0.3])
def test_groups_of_one_feature_are_the_multi_task_lasso(alpha):
    Z, T = data()
    found = lasso(Moments.of(Z, T), alpha, [[j] for j in range(12)], tol=1e-15)
    theirs = MultiTaskLasso(alpha, tol=1e-15, max_iter=100_000).fit(Z, T)
    np.testing.assert_allclose(found.coef.T, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(found.intercept, theirs.intercept_, atol=1e-5)


GROUPS = [[0, 5, 7], [1], [2, 3, 4, 6], [8, 9, 10, 11]]


def group_objective(W, Z, T, alpha):
    A, B = Z - Z.mean(axis=0), T - T.mean(axis=0)
    penalty = sum(np.sqrt(len(g)) * np.linalg.norm(W[g]) for g in GROUPS)
    return np.square(B - A @ W).sum() / (2 * len(Z)) + alpha * penalty


@pytest.mark.parametrize("alpha", [0.01, 0.2, 1.0])
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000))
def test_group_lasso_is_optimal(alpha, seed):
    Z, T = data(seed)
    found = lasso(Moments.of(Z, T), alpha, GROUPS, tol=1e-12)
    assert found.converged
    assert found.objective == pytest.approx(group_objective(found.coef, Z, T, alpha), rel=1e-9)
    A, B = Z - Z.mean(axis=0), T - T.mean(axis=0)
    q = A.T @ (B - A @ found.coef) / len(Z)
    for g in GROUPS:
        W, limit = found.coef[g], alpha * np.sqrt(len(g))
        if W.any():
            np.testing.assert_allclose(q[g], limit * W / np.linalg.norm(W), atol=1e-5)
        else:
            assert np.linalg.norm(q[g]) <= limit * (1 + 1e-6)


def test_group_lasso_beats_a_general_optimizer():
    Z, T = data(width=12)
    found = lasso(Moments.of(Z, T), 0.1, GROUPS, tol=1e-10)
    general = minimize(
        lambda w: group_objective(w.reshape(12, 3), Z, T, 0.1), found.coef.ravel() + 0.01
    )
    assert found.objective <= general.fun + 1e-9


@pytest.mark.parametrize("groups", [None, GROUPS])
def test_the_gap_bounds_the_distance_from_the_optimum(groups):
    Z, T = data()
    moments = Moments.of(Z, T)
    best = lasso_path(moments, [0.05], groups, tol=1e-14)[0]
    for rounds in (0, 1, 2):
        early = lasso_path(moments, [0.05], groups, tol=1e-14, max_iter=rounds)[0]
        assert early.objective - best.objective <= early.gap + 1e-12
        assert not early.converged or early.gap <= 1e-13 * best.objective


@pytest.mark.parametrize("groups", [None, GROUPS])
def test_paths_start_where_the_last_ended(groups):
    Z, T = data()
    moments = Moments.of(Z, T)
    alphas = [0.1, 1.0, 0.01, 100.0]
    path = lasso_path(moments, alphas, groups, tol=1e-12)
    for alpha, found in zip(alphas, path, strict=True):
        alone = lasso(moments, alpha, groups, tol=1e-12)
        np.testing.assert_allclose(found.coef, alone.coef, atol=1e-5)
    assert not path[3].coef.any()
    again = lasso(moments, 0.1, tol=1e-9, coef=lasso(moments, 0.1, tol=1e-12).coef)
    assert again.n_iter == 0


def test_constant_features_and_targets():
    Z, T = data()
    Z[:, 4] = 1
    T[:, 1] = 2
    for found in (
        lasso(Moments.of(Z, T), 0.01),
        lasso(Moments.of(Z, T), 0.01, [[4], [*range(4), *range(5, 12)]]),
    ):
        assert found.converged
        assert not found.coef[4].any()
    constant = lasso(Moments.of(Z, T[:, 1]), 0.01)
    assert constant.converged
    assert constant.intercept == pytest.approx([2])


@pytest.mark.parametrize("groups", [[[0, 1]], [[0, 1, 2], [2]], [[0, 1, 5]], [[0, 1, -1]]])
def test_groups_that_are_none(groups):
    with pytest.raises(ValueError, match="groups must name each of the 3 features once"):
        lasso(Moments.of(np.eye(3), [1.0, 2.0, 3.0]), 0.1, groups)
