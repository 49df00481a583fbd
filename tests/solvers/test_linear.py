"""Linear models in memory: the optima of cutting planes and of LIBLINEAR, with a certificate."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from hilbin.solvers import EpsilonInsensitive, Hinge, Logistic, Risk, bundle, icd, linear
from hilbin.solvers.coded import PQRows
from hilbin.solvers.gram import gram_rows
from hilbin.solvers.linear import LinearRows, suits
from hilbin.solvers.risk import MatrixRows

LOSSES = [
    Hinge(),
    Hinge(squared=True),
    Logistic(),
    EpsilonInsensitive(0.3),
    EpsilonInsensitive(0.3, squared=True),
]


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(150, 7))


@pytest.fixture(scope="module")
def targets(rows):
    noise = 0.3 * np.random.default_rng(1).normal(size=(150, 3))
    numbers = rows[:, :3] - 0.5 * rows[:, 1:4] ** 2 + noise
    return np.where(numbers > np.median(numbers, axis=0), 1.0, -1.0)


def value(Z, V, T, loss, C, lam, constant=0.0):
    """Objectives of all tasks, the obvious way."""
    if constant:
        Z = np.column_stack([Z, np.full(len(Z), np.sqrt(constant))])
    C = np.broadcast_to(C, len(Z))
    return 0.5 * lam * (V * V).sum(axis=1) + C @ loss.value(T, Z @ V.T)


@pytest.mark.parametrize("kind", ["dense", "float32", "csr", "columns"])
@pytest.mark.parametrize("loss", LOSSES)
def test_equals_cutting_planes(rows, targets, loss, kind):
    make = {
        "dense": np.asarray,
        "float32": np.float32,
        "csr": sp.csr_array,
        "columns": np.asfortranarray,
    }
    C = np.random.default_rng(2).integers(0, 3, 150) / 10
    risk = Risk(make[kind](rows), loss, targets, C, constant=2.0)
    rows = np.float32(rows).astype(float) if kind == "float32" else rows
    found = linear(risk, 0.7, tol=1e-6)
    expected = bundle(Risk(rows, loss, targets, C, constant=2.0), 0.7, tol=1e-7, max_iter=5000)
    assert found.converged
    assert found.coef.dtype == risk.rows.dtype
    assert found.coef.shape == (3, 8)
    assert (found.gap <= 1e-6 * found.objective).all()
    np.testing.assert_allclose(found.objective, expected.objective, rtol=2e-6)
    assert (found.objective - found.gap <= expected.objective * (1 + 1e-9)).all()
    reached = value(rows, found.coef, targets, loss, C, 0.7, 2.0)
    np.testing.assert_allclose(found.objective, reached, rtol=1e-5 if kind == "float32" else 1e-9)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_equals_liblinear(rows, targets, loss):
    y = targets[:, 0]
    tight = {"C": 0.1, "fit_intercept": False, "tol": 1e-9, "max_iter": 1_000_000}
    if loss == "logistic":
        own: Logistic | Hinge = Logistic()
        theirs = LogisticRegression(**tight).fit(rows, y).coef_[0]
    else:
        own = Hinge(squared=loss != "hinge")
        theirs = LinearSVC(loss=loss, dual=True, **tight).fit(rows, y).coef_[0]
    found = linear(Risk(rows, own, y, 0.1), tol=1e-9)
    np.testing.assert_allclose(found.coef[0], theirs, atol=2e-4)


@given(
    st.sampled_from(LOSSES),
    st.sampled_from([np.float32, np.float64]),
    st.integers(1, 40),
    st.integers(1, 20),
    st.floats(-6, 4),
    st.integers(0, 5),
)
@settings(max_examples=30)
def test_the_gap_is_one(loss, dtype, n, size, log_lam, seed):
    """No point is better than the objective less the gap, whatever the sizes."""
    rng = np.random.default_rng(seed)
    Z, t, lam = rng.normal(size=(n, size)).astype(dtype), rng.choice([-1.0, 1.0], n), 2.0**log_lam
    found = linear(Risk(Z, loss, t), lam, tol=1e-3, max_iter=50)
    lower = found.objective - found.gap
    other = bundle(Risk(Z.astype(np.float64), loss, t), lam, tol=1e-6, max_iter=300)
    assert (lower <= other.objective * (1 + 1e-5) + 1e-9).all()
    assert (value(Z, found.coef, t[:, None], loss, 1.0, lam) >= lower * (1 - 1e-5) - 1e-9).all()


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss.quadratic])
@pytest.mark.parametrize("kind", [np.float32, np.float64, sp.csr_array, "codes"])
def test_fewer_rows_than_weights(targets, loss, kind):
    """The kernel matrix gives what the rows give, for codes as well."""
    rng = np.random.default_rng(0)
    words, codes = rng.normal(size=(40, 9, 5)), np.zeros((2, 150, 32), np.uint8)
    codes[0], codes[1, :, :8] = rng.integers(0, 9, (150, 32)), rng.integers(0, 9, (150, 8))
    coded = PQRows(codes, words, 198, dtype=np.float64)
    Z = coded.gradient(np.eye(150))
    np.testing.assert_allclose(coded.gram(), Z @ Z.T, atol=1e-10)
    C = rng.integers(0, 3, 150) / 10
    rows = coded if kind == "codes" else kind(Z)
    risk = Risk(rows, loss, targets, C, constant=1.0)
    found = linear(risk, 0.5, tol=1e-6)
    expected = bundle(Risk(Z, loss, targets, C, constant=1.0), 0.5, tol=1e-7, max_iter=5000)
    assert suits(risk)
    assert found.converged
    rtol = 5e-5 if kind is np.float32 else 5e-6
    np.testing.assert_allclose(found.objective, expected.objective, rtol=rtol)
    reached = value(Z, found.coef, targets, loss, C, 0.5, 1.0)
    np.testing.assert_allclose(reached, expected.objective, rtol=rtol)


def test_rows_are_a_kernel_matrix(rows):
    K, y = rows @ rows.T, np.where(rows[:, 0] > 0, 1.0, -1.0)
    for Z in (rows, sp.csr_array(rows), np.float32(rows)):
        own = LinearRows(Z)
        np.testing.assert_allclose(own.norms, np.diag(K), rtol=1e-6)
        np.testing.assert_allclose(own.scores(y), K @ y, rtol=1e-5, atol=1e-4)
        problem = Hinge().problem(y, 0.1, constant=1.0)
        found, expected = (icd(r, problem, tol=1e-8) for r in (own, gram_rows(K)))
        np.testing.assert_allclose(found.coef, expected.coef, atol=1e-5)
        np.testing.assert_allclose(own.divided(4.0).norms, own.norms / 4)


def test_duplicate_entries_of_a_sparse_row_are_added():
    twice = sp.csr_array((np.ones(3), np.array([0, 0, 1]), np.array([0, 3])), shape=(1, 2))
    np.testing.assert_array_equal(LinearRows(twice).norms, [5.0])
    assert twice.nnz == 3  # the caller's matrix stays


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_products_of_sparse_rows(dtype, index):
    rng = np.random.default_rng(3)
    Z = rng.normal(size=(40, 13)).astype(dtype) * (rng.random((40, 13)) < 0.3)
    Z[7], Z[:, 5] = 0, 0
    sparse = sp.csr_array(Z)
    sparse.indices, sparse.indptr = sparse.indices.astype(index), sparse.indptr.astype(index)
    rows, own = MatrixRows(sparse), LinearRows(sparse)
    np.testing.assert_allclose(own.norms, np.square(Z, dtype=np.float64).sum(axis=1), rtol=1e-14)
    for k in (1, 3):
        V, S = rng.normal(size=(k, 13)), rng.normal(size=(40, k))
        assert rows.scores(V).dtype == rows.gradient(S).dtype == dtype
        np.testing.assert_allclose(rows.scores(V), Z @ V.T, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(rows.gradient(S), S.T @ Z, rtol=1e-5, atol=1e-5)
        for constant in (0.0, 4.0):
            features = np.column_stack([Z, np.full(40, 2.0)]) if constant else Z
            risk = Risk(sparse, Logistic(), np.ones((40, k)), constant=constant)
            V, D = rng.normal(size=(k, risk.size)).astype(dtype), rng.random((40, k)).astype(dtype)
            scores, products = risk.curved(V, D)
            assert scores.dtype == products.dtype == dtype
            expected = features @ V.T
            np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(products, (D * expected).T @ features, rtol=1e-4, atol=1e-4)
    for coef in (S[:, 0], S[:, 1], S[:, 1] + 1):  # the last weights are remembered
        exact = Z.astype(np.float64)
        np.testing.assert_allclose(own.weights(coef), exact.T @ coef, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(own.scores(coef), exact @ (exact.T @ coef), atol=1e-12)
        coef[0] = 9.0
        np.testing.assert_allclose(own.weights(coef), exact.T @ coef, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_risk_at_scores(rows, targets, loss):
    risk = Risk(rows, loss, targets, np.linspace(0, 2, len(rows)), 0.5)
    V, which = np.random.default_rng(0).normal(size=(2, 8)), np.array([2, 0])
    found, expected = risk.at(risk.scores(V), which), risk(V, which)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_risk_on_lines(rows, targets, loss, dtype):
    weights = 1e30 * np.linspace(0, 2, len(rows))
    risk = Risk(rows.astype(dtype), loss, targets, weights, 0.5)
    rng, which = np.random.default_rng(0), np.array([2, 0])
    old, new = risk.scores(rng.normal(size=(2, 8))), risk.scores(rng.normal(size=(2, 8)))
    for steps in (rng.random((2, 1)), rng.random((2, 11)), np.array([[0.0, 1.0], [1.0, 0.0]])):
        values, gradients = risk.between(old, new, which, steps)
        for g in range(steps.shape[1]):
            at = old + steps[:, g] * (new - old)
            expected = weights @ loss.value(targets[:, which], at)
            np.testing.assert_allclose(values[:, g], expected, rtol=2e-6)
        slopes = weights[:, None] * loss.slope(targets[:, which], at)
        exact = np.column_stack([slopes.T @ rows, np.sqrt(0.5) * slopes.sum(axis=0)])
        if dtype == np.float64:
            np.testing.assert_allclose(gradients, exact, rtol=1e-9, atol=1e20)


def test_scores_that_are_not_finite_are_seen_on_lines(rows, targets):
    for dtype in (np.float32, np.float64):
        old, new = np.zeros((2, 5, 1), dtype)
        new[3] = np.nan
        ones, steps = np.ones((5, 1), dtype), np.array([[0.0, 0.5, 1.0]])
        assert np.isnan(Hinge().on_lines(ones, old, new, np.ones(5), steps)).all()


def test_threads_and_seeds(rows, targets):
    risk = Risk(rows, Hinge(), targets, 1.0)
    one, two = linear(risk, tol=1e-4), linear(risk, tol=1e-4, n_jobs=2)
    np.testing.assert_array_equal(one.coef, two.coef)
    np.testing.assert_allclose(linear(risk, tol=1e-4, seed=3).objective, one.objective, rtol=1e-4)


@pytest.mark.parametrize("loss", [Hinge(), Logistic()])
def test_callbacks_end_it(rows, targets, loss):
    risk = Risk(rows, loss, targets, 10.0)
    calls = []
    stopped = linear(risk, tol=1e-12, callback=lambda n, gap: calls.append(n) or len(calls) < 3)
    assert not stopped.converged
    assert calls[0] == 1
    assert np.isfinite(stopped.coef).all()
    assert linear(risk, tol=1e-12, max_iter=2).n_iter <= 2

    def interrupt(n, gap):
        if n > 0:
            raise KeyboardInterrupt
        told.append(n)
        return False

    told: list[int] = []
    found = linear(risk, tol=1e-12, callback=interrupt)
    assert told
    assert set(told) == {-1}
    assert np.isfinite(found.objective).all()


def test_refusals(rows, targets):
    risk = Risk(rows, Hinge(), targets)
    risk.rows = object()
    with pytest.raises(ValueError, match="needs the rows of a matrix, or few rows"):
        linear(risk)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="not finite"):
        linear(Risk(1e200 * rows, Logistic(), targets))
