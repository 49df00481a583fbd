"""Working sets of sparse maps: the optima of other solvers, with a certificate of all rows."""

import importlib

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilbin.estimators import MapSVC, MapSVR
from hilbin.kernels import Chi2, Intersection, JensenShannon
from hilbin.maps import SparseMap
from hilbin.solvers import EpsilonInsensitive, Hinge, Logistic, Risk, linear
from hilbin.solvers.coded import PairRows
from hilbin.solvers.risk import MatrixRows
from hilbin.solvers.working_sets import has_working_sets, working_sets

module = importlib.import_module("hilbin.solvers.working_sets")
LOSSES = [
    Hinge(),
    Hinge(squared=True),
    EpsilonInsensitive(0.6),
    EpsilonInsensitive(0.4, squared=True),
]


@pytest.fixture
def small_sets(monkeypatch):
    """Sets that begin with few rows and grow slowly."""
    for name, number in {"FIRST": 30, "LEAST_GROWTH": 10, "MOST_ENTRIES": 10_000}.items():
        monkeypatch.setattr(module, name, number)


def histograms(n=400, seed=0, tasks=3):
    """Histograms, some of them empty, and targets that are no function of them."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(0.5, size=(n, 8)) * (rng.random((n, 8)) < 0.7)
    X[::50] = 0
    means = np.sqrt(X) @ rng.normal(size=(8, tasks))
    return X, np.where(means + 0.3 * rng.normal(size=means.shape) > means.mean(axis=0), 1.0, -1.0)


def pair_rows(feature_map, X):
    return PairRows(feature_map.transform(X), n_nodes=feature_map.nodes_.size)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kernel", [Chi2(), Intersection(), JensenShannon()])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equals_orthonormal_features(small_sets, loss, kernel, dtype):
    X, T = histograms()
    X = X.astype(dtype)
    C = np.random.default_rng(1).integers(0, 3, len(X)) / 10
    feature_map = SparseMap(kernel, 9).fit(X)
    risk = Risk(pair_rows(feature_map, X), loss, T, C, constant=2.0)
    found = working_sets(risk, feature_map.inner_, 0.7, tol=5e-4)
    Z = SparseMap(kernel, 9, orthonormal=True).fit(X).transform(X).astype(np.float64)
    expected = linear(Risk(Z, loss, T, C, constant=2.0), 0.7, tol=1e-7)
    assert found.converged
    assert found.n_iter > 1
    assert (found.gap <= 5e-4 * found.objective).all()
    assert (found.objective >= expected.objective * (1 - 1e-4)).all()  # of rounded pairs
    assert (found.objective <= expected.objective + found.gap + 1e-4 * expected.objective).all()
    norm = np.linalg.norm(expected.coef, axis=1)
    inner = np.linalg.pinv(feature_map.inner_.matrix())
    V = found.coef[:, :-1].astype(float).reshape(3, 8, 9)
    own = np.einsum("kdi,ij,kdj->k", V, inner, V) + found.coef[:, -1] ** 2
    np.testing.assert_allclose(np.sqrt(own), norm, rtol=0.05)


@given(
    n=st.integers(1, 150),
    tasks=st.integers(1, 4),
    constant=st.sampled_from([0.0, 4.0]),
    loss=st.sampled_from(LOSSES),
    seed=st.integers(0, 1000),
)
@settings(max_examples=40, deadline=None)
def test_the_gap_is_that_of_the_kernel_matrix(n, tasks, constant, loss, seed):
    X, T = histograms(n, seed, tasks)
    feature_map = SparseMap(Chi2(), 5).fit(X)
    risk = Risk(pair_rows(feature_map, X), loss, T, 0.3, constant)
    found = working_sets(risk, feature_map.inner_, seed=seed)
    Z = feature_map.transform(X).toarray()
    K = oracles.pair_gram(Z, feature_map.inner_.matrix()) + constant
    scores = Z @ found.coef[:, : Z.shape[1]].T
    if constant:
        scores += 2 * found.coef[:, -1]
    for k, c in enumerate(found.dual):
        np.testing.assert_allclose(scores[:, k], K @ c, atol=2e-3 * np.sqrt(K.max()))
        problem = loss.problem(T[:, k], np.full(n, 0.3))
        value = 0.5 * c @ K @ c + problem.losses(scores[:, k]).sum()
        assert found.objective[k] == pytest.approx(value, rel=1e-3, abs=1e-6)
        lower = problem.linear @ c - problem.epsilon * np.abs(c).sum()
        lower -= 0.5 * (c @ K @ c + problem.diagonal @ c**2)
        assert found.gap[k] == pytest.approx(value - lower, abs=1e-3 * value + 1e-9)
    assert found.converged


def test_known_parts_of_kernel_matrices():
    X, _ = histograms()
    feature_map = SparseMap(Chi2(), 9).fit(X)
    rows, inner = pair_rows(feature_map, X), feature_map.inner_.matrix()
    which = np.random.default_rng(0).permutation(400)[:100]
    whole = rows.gram(which, np.empty((0, 0)), inner)
    Z = feature_map.transform(X[which]).toarray()
    np.testing.assert_allclose(whole, oracles.pair_gram(Z, inner), rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(
        rows.gram(which, whole[60:, 60:], inner)[60:, 60:], whole[60:, 60:]
    )
    np.testing.assert_allclose(rows.gram(which, whole[60:, 60:], inner), whole, rtol=1e-5)


def test_weights_are_repetitions(small_sets):
    X, T = histograms()
    weights = np.random.default_rng(3).integers(0, 4, len(X))
    feature_map = SparseMap(Intersection(), 9).fit(X)
    risk = Risk(pair_rows(feature_map, X), Hinge(), T, 0.1 * weights, 1.0)
    many, inner = np.repeat(np.arange(len(X)), weights), feature_map.inner_
    repeated = Risk(pair_rows(feature_map, X[many]), Hinge(), T[many], 0.1, 1.0)
    found, expected = (working_sets(r, inner, tol=2e-4) for r in (risk, repeated))
    np.testing.assert_allclose(found.objective, expected.objective, rtol=4e-4)
    assert not found.dual[:, weights == 0].any()


def test_threads_and_seeds(small_sets):
    X, T = histograms()
    feature_map = SparseMap(Chi2(), 9).fit(X)
    risk = Risk(pair_rows(feature_map, X), Hinge(), T, 1.0)
    one, two = (working_sets(risk, feature_map.inner_, n_jobs=jobs, seed=3) for jobs in (1, 2))
    np.testing.assert_array_equal(one.coef, two.coef)
    other = working_sets(risk, feature_map.inner_, seed=4)
    np.testing.assert_allclose(one.objective, other.objective, rtol=2e-3)


def test_what_has_no_working_sets(monkeypatch):
    X, T = histograms()
    feature_map = SparseMap(Chi2(), 9).fit(X)
    rows, inner = pair_rows(feature_map, X), feature_map.inner_
    risk = Risk(rows, Hinge(), T)
    assert has_working_sets(risk, inner)
    assert not has_working_sets(Risk(rows, Logistic(), T), inner)
    assert not has_working_sets(Risk(MatrixRows(feature_map.transform(X)), Hinge(), T), inner)
    assert not has_working_sets(Risk(PairRows(feature_map.transform(X)), Hinge(), T), inner)
    monkeypatch.setattr(module, "FIRST", 30)
    monkeypatch.setattr(module, "MOST_ENTRIES", 10)  # given up after the first pass
    assert working_sets(risk, inner) is None
    monkeypatch.setattr(module, "MOST_ENTRIES", 10_000)
    monkeypatch.setattr(module, "MOST_ROWS", 50)  # given up later
    assert working_sets(risk, inner) is None
    monkeypatch.setattr(module, "MOST_NODES", 8)
    assert not has_working_sets(risk, inner)


@pytest.mark.parametrize("most", [20, 5000])
def test_machines(small_sets, monkeypatch, most):
    monkeypatch.setattr(module, "MOST_ROWS", most)  # the smaller one leaves it to cutting planes
    X, T = histograms(tasks=2)
    y = T @ [1, 2]
    feature_map = SparseMap(Chi2(), 9)
    found = MapSVC(feature_map, C=0.3, intercept_scaling=2.0).fit(X.astype(np.float32), y)
    expected = MapSVC(feature_map, C=0.3, intercept_scaling=2.0, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(found.objective_, expected.objective_, rtol=2e-3)
    scores = expected.decision_function(X)
    np.testing.assert_allclose(found.decision_function(X), scores, atol=0.15)
    assert found.coef_.dtype == np.float32
    found = MapSVR(feature_map, epsilon=0.5, max_iter=1000).fit(X, y)
    expected = MapSVR(feature_map, epsilon=0.5, tol=1e-6, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(found.objective_, expected.objective_, rtol=2e-3)


def test_ends_early(small_sets, monkeypatch):
    X, T = histograms()
    feature_map = SparseMap(Chi2(), 9).fit(X)
    risk, inner = Risk(pair_rows(feature_map, X), Hinge(), T), feature_map.inner_
    first = working_sets(risk, inner, max_iter=1)
    assert not first.converged
    assert first.n_iter == 1
    calls = []
    stopped = working_sets(risk, inner, callback=lambda *call: calls.append(call))
    np.testing.assert_array_equal(stopped.coef, first.coef)
    gradient, passes = risk.gradient, []

    def interrupted(S):
        passes.append(S)
        if len(passes) == 2:
            raise KeyboardInterrupt
        return gradient(S)

    monkeypatch.setattr(risk, "gradient", interrupted)
    left = working_sets(risk, inner, callback=lambda *call: calls.append(call) or True)
    np.testing.assert_array_equal(left.coef, first.coef)
    assert not left.converged
    assert [n for n, _ in calls] == [1, 1, -1]
    passes[:] = [None]
    with pytest.raises(KeyboardInterrupt):
        working_sets(risk, inner, callback=lambda *call: True)
