"""Ridge regression from sums is scikit-learn's from rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression, Ridge, RidgeCV
from sklearn.pipeline import make_pipeline

from hilbin.solvers.ridge import (
    CenteredRows,
    leverages,
    pca,
    ridge,
    ridge_grid,
    ridge_path,
    unproject,
)
from hilbin.stats import Moments


def data(seed=0, rows=60, width=8):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(rows, width)) @ rng.normal(size=(width, width)) + 50
    T = Z @ rng.normal(size=(width, 3)) + rng.normal(size=(rows, 3)) - 20
    return Z, T, rng.integers(0, 4, rows).astype(float)


@pytest.mark.parametrize("alpha", [1e-3, 1.0, 100.0])
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), rows=st.integers(5, 60))
def test_as_scikit_learn(alpha, seed, rows):
    Z, T, w = data(seed, rows)
    w[0] = 1
    moments = Moments.of(Z, T, w)
    theirs = Ridge(alpha, solver="svd").fit(Z, T, sample_weight=w)
    for found in (ridge(moments, alpha), ridge_path(moments, [1.0, 3.0]).at(alpha)):
        scores = Z @ found.coef + found.intercept
        np.testing.assert_allclose(scores, theirs.predict(Z), rtol=1e-8, atol=1e-8)
        loss = w @ np.square(T - scores).sum(axis=1) + alpha * np.square(found.coef).sum()
        assert found.objective == pytest.approx(loss, rel=1e-6, abs=1e-6)
        assert found.gap < 1e-8 * (1 + found.objective)


def test_no_penalty_is_least_squares():
    Z, T, _ = data()
    theirs = LinearRegression().fit(Z, T)
    for found in (ridge(Moments.of(Z, T), 0.0), ridge_path(Moments.of(Z, T), [0.0]).at(0.0)):
        np.testing.assert_allclose(found.coef.T, theirs.coef_, rtol=1e-7, atol=1e-9)


def test_a_singular_system_has_the_solution_of_least_norm():
    Z, T, _ = data(rows=5)
    expected = np.linalg.pinv(Z - Z.mean(axis=0), rcond=1e-10) @ (T - T.mean(axis=0))
    for found in (ridge(Moments.of(Z, T), 0.0), ridge_path(Moments.of(Z, T), [0.0]).at(0.0)):
        np.testing.assert_allclose(found.coef, expected, rtol=1e-6, atol=1e-6)


def test_columns_of_different_scale_all_count():
    Z, T, _ = data()
    Z = (Z - 50) * np.logspace(-9, 9, 8)
    T = T + Z[:, :1] * 1e9
    found = ridge(Moments.of(Z, T), 1e-22)
    expected = (
        LinearRegression().fit(Z / np.logspace(-9, 9, 8), T).predict(Z / np.logspace(-9, 9, 8))
    )
    np.testing.assert_allclose(Z @ found.coef + found.intercept, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("k", [2, 5])
def test_on_components(k):
    Z, T, _ = data()
    moments = Moments.of(Z, T)
    U = pca(moments, k).components
    found = unproject(ridge(moments.project(U), 2.0), U)
    theirs = make_pipeline(PCA(k, svd_solver="full"), Ridge(2.0)).fit(Z, T)
    np.testing.assert_allclose(Z @ found.coef + found.intercept, theirs.predict(Z), rtol=1e-8)


def test_components_of_more_rows_than_have_targets():
    """Then the Hessian on the components is not diagonal, and the shortcut would be wrong."""
    Z, T, _ = data()
    some = slice(0, 25)
    everything = PCA(4, svd_solver="full").fit(Z)
    theirs = Ridge(2.0).fit(everything.transform(Z[some]), T[some])
    moments = Moments.of(Z[some], T[some])
    U = pca(moments.without_targets() + Moments.of(Z[25:]), 4).components
    projected = moments.project(U)
    found = unproject(ridge(projected, 2.0), U)
    expected = theirs.predict(everything.transform(Z))
    np.testing.assert_allclose(Z @ found.coef + found.intercept, expected, rtol=1e-8)
    diagonal = np.diag(projected.scatter)
    assert np.abs(projected.scatter - np.diag(diagonal)).max() > 1e-3 * diagonal.max()


def test_cross_validation_from_sums():
    """By its definition: the trace of the hat matrix of a design with a column of ones."""
    Z, T, w = data()
    w += 1
    alphas = [0.1, 10.0, 1000.0]
    path = ridge_path(Moments.of(Z, T, w), alphas)
    repeated = np.repeat(np.arange(len(w)), w.astype(int))
    Zr, Tr = Z[repeated], T[repeated]
    n = len(Zr)
    for a, alpha in enumerate(alphas):
        A = Zr - Zr.mean(axis=0)
        hat = A @ np.linalg.solve(A.T @ A + alpha * np.eye(8), A.T) + 1 / n
        loss = np.square(Tr - hat @ Tr).sum(axis=0)
        freedom = np.trace(hat)
        assert path.freedom[a] == pytest.approx(freedom)
        np.testing.assert_allclose(path.gcv[a], loss / n / (1 - freedom / n) ** 2, rtol=1e-7)


def test_leaving_out_one_row_after_another():
    Z, T, _ = data(rows=30)
    alphas = np.array([0.1, 10.0, 1000.0])
    path = ridge_path(Moments.of(Z, T), alphas)
    found = path.leave_one_out(Z[:11], T[:11]) + path.leave_one_out(Z[11:], T[11:])
    for a, alpha in enumerate(alphas):
        errors = np.zeros(3)
        for i in range(30):
            rest = np.arange(30) != i
            errors += (Ridge(alpha).fit(Z[rest], T[rest]).predict(Z[i : i + 1])[0] - T[i]) ** 2
        np.testing.assert_allclose(found[a], errors, rtol=1e-8)
    theirs = RidgeCV(alphas).fit(Z, T)
    assert alphas[found.sum(axis=1).argmin()] == theirs.alpha_


def test_of_two_copies_one_is_left_out():
    Z, T, w = data()
    repeated = np.repeat(np.arange(len(w)), w.astype(int))
    path = ridge_path(Moments.of(Z, T, w), [1.0])
    np.testing.assert_allclose(
        path.leave_one_out(Z, T, w), path.leave_one_out(Z[repeated], T[repeated])
    )


def test_more_freedom_than_rows_is_never_chosen():
    Z, T, _ = data(rows=5)
    path = ridge_path(Moments.of(Z, T), [0.0, 10.0])
    assert np.isinf(path.gcv[0]).all()
    assert path.best_alpha == 10.0


def test_equal_rows_do_not_pass_for_a_good_fit():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(60, 100))
    Z[1] = Z[0]  # so that the freedom stays below the number of rows
    t = Z[:, 0] + rng.normal(size=60)
    t[1] = t[0]
    path = ridge_path(Moments.of(Z, t), np.logspace(-10, 3, 14))
    assert path.gcv[0, 0] < path.gcv.sum(axis=1)[path.alphas == path.best_alpha][0]
    assert path.best_alpha >= 1


def test_the_grid_follows_the_scale():
    Z, _, _ = data()
    np.testing.assert_allclose(
        ridge_grid(Moments.of(10 * Z)), 100 * ridge_grid(Moments.of(Z)), rtol=1e-9
    )
    assert (ridge_grid(Moments.of(np.ones((3, 2)))) > 0).all()


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), rows=st.integers(3, 30), weighted=st.booleans())
def test_few_rows_say_the_same_as_their_sums(seed, rows, weighted):
    """The dual: solutions, certificates, cross-validation and leaving out are those of sums."""
    rng = np.random.default_rng(seed)
    Z, T = rng.normal(size=(rows, 40)) + 5, rng.normal(size=(rows, 3)) + 7
    w = rng.integers(1, 3, rows).astype(float) if weighted else None
    sums, few = Moments.of(Z, T, w), CenteredRows.of(Z, T, w)
    alphas = ridge_grid(sums)[6:]
    np.testing.assert_allclose(ridge_grid(few)[6:], alphas, rtol=1e-12)
    a, b = ridge_path(sums, alphas), ridge_path(few, alphas)
    for alpha in alphas:
        expected = ridge(sums, alpha)
        for found in (ridge(few, alpha), b.at(alpha)):
            np.testing.assert_allclose(found.coef, expected.coef, rtol=1e-6, atol=1e-9)
            np.testing.assert_allclose(found.intercept, expected.intercept, rtol=1e-8)
            assert found.objective == pytest.approx(expected.objective, rel=1e-6)
            assert found.gap < 1e-10 * found.objective
    np.testing.assert_allclose(b.freedom, a.freedom, rtol=1e-8)
    np.testing.assert_allclose(b.gcv, a.gcv, rtol=1e-4)
    assert b.best_alpha == a.best_alpha
    np.testing.assert_allclose(b.leave_one_out(Z, T, w), a.leave_one_out(Z, T, w), rtol=1e-6)
    for alpha in alphas[::4]:  # of the rows that are kept, of given rows, and from the sums
        expected = leverages(sums, alpha, Z)
        np.testing.assert_allclose(leverages(few, alpha, Z), expected, rtol=1e-6)
        np.testing.assert_allclose(leverages(few, alpha), expected, rtol=1e-6)


def test_moments_have_no_rows_of_their_own():
    with pytest.raises(ValueError, match="Z must be given"):
        leverages(Moments.of(np.eye(3)), 1.0)


def test_a_row_of_no_weight_is_no_row():
    Z, T, w = data(rows=6)
    w[:2] = 0, 1
    found = ridge(CenteredRows.of(Z, T, w), 1.0)
    expected = ridge(CenteredRows.of(Z[w > 0], T[w > 0], w[w > 0]), 1.0)
    np.testing.assert_allclose(found.coef, expected.coef, rtol=1e-10)
