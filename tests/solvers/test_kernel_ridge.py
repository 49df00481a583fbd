"""Ridge regression with a Gram matrix against the augmented system and refits without a row."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeCV

from hilbin.kernels import GCS, Gaussian
from hilbin.solvers.kernel_ridge import kernel_ridge, kernel_ridge_path

both = pytest.mark.parametrize("fit_intercept", [False, True])


def data(seed=0, rows=40):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 2))
    T = np.column_stack([np.sin(2 * X[:, 0]) + 30, X[:, 1]]) + 0.1 * rng.normal(size=(rows, 2))
    weight = rng.integers(0, 4, rows).astype(float)
    weight[-1] = 2
    return X, T, weight


def augmented(K, T, alpha, weight, fit_intercept):
    """Solve the linear system of the module, rows without weight left out."""
    used = weight > 0
    n, coef = used.sum(), np.zeros_like(T)
    A = np.zeros((n + 1, n + 1))
    A[:n, :n] = K[np.ix_(used, used)] + alpha * np.diag(1 / weight[used])
    A[n, :n] = A[:n, n] = float(fit_intercept)
    A[n, n] = float(not fit_intercept)
    solved = np.linalg.solve(A, np.vstack([T[used], np.zeros((1, T.shape[1]))]))
    coef[used] = solved[:n]
    return coef, solved[n]


def solved_by_all(K, T, alpha, **options):
    path = kernel_ridge_path(K, T, [alpha, 3.0], **options)
    sparse = kernel_ridge(sp.csr_array(K), T, alpha, tol=1e-24, **options)
    return kernel_ridge(K, T, alpha, **options), path.at(alpha), sparse


@both
@pytest.mark.parametrize("alpha", [1e-2, 1.0, 100.0])
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1000), rows=st.integers(2, 40), scale=st.sampled_from([1e-3, 1.0, 1e4]))
def test_the_augmented_system(fit_intercept, alpha, seed, rows, scale):
    X, T, weight = data(seed, rows)
    T *= scale
    K = Gaussian().gram(X)
    coef, intercept = augmented(K, T, alpha, weight, fit_intercept)
    errors = T - K @ coef - intercept
    value = weight @ np.square(errors) + alpha * np.sum(coef * (K @ coef), axis=0)
    for found in solved_by_all(K, T, alpha, weight=weight, fit_intercept=fit_intercept):
        np.testing.assert_allclose(found.coef, coef, atol=1e-7 * scale, rtol=1e-6)
        np.testing.assert_allclose(found.intercept, intercept, atol=1e-7 * scale, rtol=1e-7)
        np.testing.assert_allclose(found.objective, value, rtol=1e-8, atol=1e-20 * scale)
        assert (found.gap <= 1e-15 * found.objective).all()
        assert found.converged


def test_without_intercept_as_scikit_learn():
    X, T, weight = data()
    theirs = KernelRidge(alpha=0.5, kernel="precomputed")
    K = Gaussian().gram(X)
    for found in solved_by_all(K, T, 0.5, weight=weight, fit_intercept=False):
        np.testing.assert_allclose(
            K @ found.coef, theirs.fit(K, T, weight).predict(K), rtol=1e-8, atol=1e-8
        )


def test_the_linear_kernel_is_ridge_regression():
    X, T, weight = data()
    theirs = Ridge(2.0).fit(X, T, weight).predict(X)
    for found in solved_by_all(X @ X.T, T, 2.0, weight=weight):
        np.testing.assert_allclose(X @ X.T @ found.coef + found.intercept, theirs, rtol=1e-9)


@both
def test_weights_are_repetitions(fit_intercept):
    X, T, weight = data()
    again = np.repeat(np.arange(len(X)), weight.astype(int))
    K = Gaussian().gram(X)
    wholes = solved_by_all(K[np.ix_(again, again)], T[again], 0.3, fit_intercept=fit_intercept)
    for found, whole in zip(
        solved_by_all(K, T, 0.3, weight=weight, fit_intercept=fit_intercept), wholes, strict=True
    ):
        np.testing.assert_allclose(
            K @ found.coef + found.intercept, K[:, again] @ whole.coef + whole.intercept, atol=1e-8
        )
        np.testing.assert_allclose(found.objective, whole.objective)


@both
@pytest.mark.parametrize("alpha", [1e-6, 0.1, 10.0])
def test_the_gap_is_primal_minus_dual(fit_intercept, alpha):
    """At a solution stopped early; the optimum lies between."""
    X, T, weight = data()
    K = Gaussian().gram(X)
    options = {"weight": weight, "fit_intercept": fit_intercept}
    early = kernel_ridge(sp.csr_array(K), T, alpha, max_iter=3, **options)
    assert not early.converged
    assert early.n_iter == 3
    best = kernel_ridge(K, T, alpha, **options).objective
    dual = (
        2 * alpha * np.sum(early.coef * T, axis=0)
        - alpha**2 * np.sum(np.square(early.dual), axis=0)
        - alpha * np.sum(early.coef * (K @ early.coef), axis=0)
    )
    np.testing.assert_allclose(early.gap, early.objective - dual, rtol=1e-6)
    assert (early.objective > best).all()
    assert (dual <= best * (1 + 1e-12)).all()


@both
@pytest.mark.parametrize("alpha", [1e-9, 1e-2, 10.0])
def test_leaving_out_one_row_after_another(fit_intercept, alpha):
    X, T, _ = data()
    K = Gaussian().gram(X)
    path = kernel_ridge_path(K, T, [alpha], fit_intercept=fit_intercept)
    found = path.leave_one_out(alpha)
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        other = kernel_ridge(K[np.ix_(rest, rest)], T[rest], alpha, fit_intercept=fit_intercept)
        miss = T[i] - K[i, rest] @ other.coef - other.intercept
        np.testing.assert_allclose(found[i], miss, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(path.errors[0], np.square(found).mean(axis=0))


@both
def test_of_two_copies_one_is_left_out(fit_intercept):
    X, T, weight = data()
    weight[-1] = 0
    again = np.repeat(np.arange(len(X)), weight.astype(int))
    K = Gaussian().gram(X)
    alphas = [0.01, 1.0]
    path = kernel_ridge_path(K, T, alphas, weight=weight, fit_intercept=fit_intercept)
    whole = kernel_ridge_path(
        K[np.ix_(again, again)], T[again], alphas, fit_intercept=fit_intercept
    )
    np.testing.assert_allclose(path.errors, whole.errors)
    np.testing.assert_allclose(path.leave_one_out(1.0)[again], whole.leave_one_out(1.0))
    absent = T[-1] - K[-1] @ path.at(1.0).coef - path.at(1.0).intercept
    np.testing.assert_allclose(path.leave_one_out(1.0)[-1], absent)


def test_a_light_row_is_left_out_whole():
    X, T, weight = data()
    weight = weight + 1
    weight[3] = 0.5
    K = Gaussian().gram(X)
    rest = np.arange(len(X)) != 3
    other = kernel_ridge(K[np.ix_(rest, rest)], T[rest], 0.2, weight=weight[rest])
    miss = T[3] - K[3, rest] @ other.coef - other.intercept
    path = kernel_ridge_path(K, T, [0.2], weight=weight)
    np.testing.assert_allclose(path.leave_one_out(0.2)[3], miss)


def test_the_best_penalty_as_scikit_learn():
    X, T, _ = data()
    alphas = np.logspace(-3, 3, 13)
    path = kernel_ridge_path(X @ X.T, T, alphas)
    one, each = (RidgeCV(alphas, alpha_per_target=e, store_cv_results=True).fit(X, T)
                 for e in (False, True))  # fmt: skip
    assert path.best_alpha == one.alpha_
    np.testing.assert_array_equal(path.best_alphas, each.alpha_)
    np.testing.assert_allclose(path.errors, one.cv_results_.mean(axis=0).T, rtol=1e-8)
    several = path.at(path.best_alphas)
    np.testing.assert_allclose(several.coef[:, 1], path.at(path.best_alphas[1]).coef[:, 1])
    assert (several.gap <= 1e-15 * several.objective).all()


@both
def test_no_penalty_is_interpolation_of_least_norm(fit_intercept):
    X, T, _ = data()
    K = X @ X.T  # of rank 2, so that Cholesky fails
    found = kernel_ridge(K, T, 0.0, fit_intercept=fit_intercept)
    A = np.column_stack([X, np.ones(len(X))]) if fit_intercept else X
    expected = A @ np.linalg.lstsq(A, T)[0]
    np.testing.assert_allclose(K @ found.coef + found.intercept, expected, atol=1e-8)
    K = Gaussian(3.0).gram(X)
    found = kernel_ridge(K, T, 0.0, fit_intercept=fit_intercept)
    np.testing.assert_allclose(K @ found.coef + found.intercept, T, atol=1e-6)


def test_an_intercept_needs_definiteness_among_differences_alone():
    """Minus the squared distance is conditionally positive definite: it is then linear."""
    X, T, _ = data()
    D = np.square(X[:, None] - X).sum(axis=2)
    found, linear = kernel_ridge(-D / 2, T, 1.5), kernel_ridge(X @ X.T, T, 1.5)
    np.testing.assert_allclose(
        -D / 2 @ found.coef + found.intercept, X @ X.T @ linear.coef + linear.intercept, atol=1e-8
    )


@both
def test_an_indefinite_matrix(fit_intercept):
    """The system is solved, but its solution is no minimum; conjugate gradients cannot go on."""
    X, T, weight = data()
    weight += 1
    K = Gaussian().gram(X) - 0.5 * np.eye(len(X))
    coef, intercept = augmented(K, T, 0.1, weight, fit_intercept)
    options = {"weight": weight, "fit_intercept": fit_intercept}
    path = kernel_ridge_path(K, T, [0.1], **options)
    for found in (kernel_ridge(K, T, 0.1, **options), path.at(0.1)):
        np.testing.assert_allclose(found.coef, coef, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(found.intercept, intercept, rtol=1e-6)
        assert not found.converged
        assert np.isinf(found.gap).all()
    rest = np.arange(1, len(X))
    other = kernel_ridge(K[1:, 1:], T[1:], 0.1, fit_intercept=fit_intercept)
    path = kernel_ridge_path(K, T, [0.1], fit_intercept=fit_intercept)
    np.testing.assert_allclose(
        path.leave_one_out(0.1)[0], T[0] - K[0, rest] @ other.coef - other.intercept, rtol=1e-6
    )
    for bad in (K, -K):
        with pytest.raises(ValueError, match="not positive semi-definite"):
            kernel_ridge(sp.csr_array(bad), T, 0.1)


def test_eigenvalues_that_are_rounding_do_not_count():
    X, T, _ = data()
    K = X @ X.T - 1e-9 * np.eye(len(X))
    assert kernel_ridge(K, T, 1e-10).converged
    assert kernel_ridge_path(K, T, [1e-3]).at(1e-3).converged


def test_single_precision_is_solved_in_double():
    X, T, _ = data(rows=1100)  # more than a band of products
    K = Gaussian().gram(X.astype(np.float32))
    for alpha in (1e-5, 0.1):
        found = kernel_ridge(K, T, alpha)
        wide = kernel_ridge(K.astype(np.float64), T, alpha)
        np.testing.assert_allclose(found.coef, wide.coef, rtol=1e-6, atol=1e-6 / alpha)
        assert found.coef.dtype == np.float64
    assert kernel_ridge_path(K, T, [0.1]).errors.shape == (1, 2)


def test_one_row():
    K = np.ones((1, 1))
    for found in (kernel_ridge(K, [3.0], 1.0), kernel_ridge(sp.csr_array(K), [3.0], 1.0)):
        assert found.coef[0, 0] == 0
        assert found.intercept[0] == 3
    with pytest.raises(ValueError, match="1 sample"):
        kernel_ridge_path(K, [3.0], [1.0])
    copies = kernel_ridge_path(K, [3.0], [1.0], weight=np.array([3.0]))
    assert copies.errors[0, 0] == 0
    assert copies.at(1.0).intercept[0] == 3
    with pytest.raises(ValueError, match="zero for every row"):
        kernel_ridge(K, [3.0], 1.0, weight=np.zeros(1))


def test_targets_that_never_change():
    K = Gaussian().gram(data()[0])
    for found in solved_by_all(K, np.full(40, 7.0), 0.1):
        np.testing.assert_allclose(found.coef, 0, atol=1e-12)
        np.testing.assert_allclose(found.intercept, 7)


@both
def test_a_compact_kernel_stays_sparse(fit_intercept, monkeypatch):
    X, T, weight = data(rows=500)
    K = GCS(0.3).gram(X)
    whole = kernel_ridge(K.toarray(), T, 0.01, weight=weight, fit_intercept=fit_intercept)
    monkeypatch.setattr(sp.csr_array, "toarray", None)
    found = kernel_ridge(K, T, 0.01, weight=weight, fit_intercept=fit_intercept, tol=1e-16)
    assert found.converged
    np.testing.assert_allclose(
        K @ found.coef + found.intercept, K @ whole.coef + whole.intercept, atol=1e-6
    )
