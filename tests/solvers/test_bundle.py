"""Cutting planes: the optima of other solvers, a bound that never falls, and few passes."""

from types import SimpleNamespace

import numpy as np
import oracles
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC, LinearSVR

from hilbin.kernels import Chi2, Intersection
from hilbin.maps import SparseMap
from hilbin.solvers import (
    EpsilonInsensitive,
    Hinge,
    Logistic,
    Risk,
    bundle,
    gram_rows,
    icd,
)
from hilbin.solvers.bundle import Task
from hilbin.solvers.lookup import Levels, LookupRows
from hilbin.solvers.risk import MatrixRows

N = 150
LOSSES = [
    Hinge(),
    Hinge(squared=True),
    Logistic(),
    EpsilonInsensitive(0.3),
    EpsilonInsensitive(0.3, squared=True),
]
LIBLINEAR = {"fit_intercept": False, "tol": 1e-9, "max_iter": 1_000_000}


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(N, 7))


@pytest.fixture(scope="module")
def numbers(rows):
    return rows[:, 0] - 0.5 * rows[:, 1] ** 2 + 0.3 * np.random.default_rng(1).normal(size=N)


@pytest.fixture(scope="module")
def signs(numbers):
    return np.where(numbers > np.median(numbers), 1.0, -1.0)


@pytest.fixture(scope="module")
def histograms():
    """The data of the reference: 400 rows of 6 values, and signs."""
    rng = np.random.default_rng(0)
    X = rng.gamma(0.7, size=(400, 6)) + 1e-3
    X /= X.sum(axis=1, keepdims=True)
    noise = 0.1 * rng.normal(size=400)
    return X, np.where(np.sin(9 * X[:, 0]) + X[:, 1] + noise > 0.9, 1.0, -1.0)


def objective(Z, v, t, loss, C, inner=None):
    """``v K^+ v / 2 + C sum of losses``, the obvious way."""
    K = np.eye(v.size) if inner is None else inner @ np.eye(v.size)
    return 0.5 * v @ np.linalg.pinv(K) @ v + C * loss.value(t, Z @ v).sum()


@given(
    st.sampled_from(LOSSES),
    st.sampled_from([-1.0, 1.0]),
    st.floats(-50, 50),
    st.floats(-50, 50),
)
def test_slopes_support_the_loss(loss, target, score, other):
    t, s, o = (np.array([number]) for number in (target, score, other))
    below = loss.value(t, s) + loss.slope(t, s) * (o - s)
    assert loss.value(t, o) >= below - 1e-9
    step = 1e-6
    if loss.smooth:
        numeric = (loss.value(t, s + step) - loss.value(t, s - step)) / (2 * step)
        np.testing.assert_allclose(loss.slope(t, s), numeric, atol=1e-3)
    assert loss.value(np.float32(t), np.float32(s)).dtype == np.float32
    assert loss.slope(np.float32(t), np.float32(s)).dtype == np.float32


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss != Logistic()])
def test_the_dual_problem_has_the_same_losses(loss):
    rng = np.random.default_rng(0)
    t, C, scores = rng.choice([-1.0, 1.0], 40), rng.uniform(0.1, 3, 40), 3 * rng.normal(size=40)
    problem = loss.problem(t, C, constant=2.0, total=0.0)
    np.testing.assert_allclose(problem.losses(scores), C * loss.value(t, scores), atol=1e-12)
    assert (problem.constant, problem.total) == (2.0, 0.0)


def test_logistic_has_no_such_problem(signs):
    with pytest.raises(ValueError, match="not quadratic"):
        Logistic().problem(signs, 1.0)


@pytest.mark.parametrize("line_search", [True, False])
@pytest.mark.parametrize("C", [1e-3, 1e-1])
@pytest.mark.parametrize("loss", [Hinge(), Hinge(squared=True)])
def test_equals_liblinear(rows, signs, loss, C, line_search):
    risk = Risk(MatrixRows(rows), loss, signs, C)
    found = bundle(risk, tol=1e-6, line_search=line_search, max_iter=5000)
    name = "squared_" * loss.squared + "hinge"
    w = LinearSVC(C=C, loss=name, dual=True, **LIBLINEAR).fit(rows, signs).coef_[0]
    expected = objective(rows, w, signs, loss, C)
    assert found.converged
    np.testing.assert_allclose(found.objective, expected, rtol=1.1e-6)
    np.testing.assert_allclose(found.objective, objective(rows, found.coef[0], signs, loss, C))
    assert found.gap[0] <= 1e-6 * found.objective[0]
    assert expected >= found.objective[0] - found.gap[0] - 1e-8 * expected
    np.testing.assert_allclose(found.coef[0], w, atol=2e-3 * np.abs(w).max())


def test_equals_logistic_regression(rows, signs):
    risk = Risk(MatrixRows(rows), Logistic(), signs, 0.1)
    found = bundle(risk, tol=1e-8)
    theirs = LogisticRegression(C=0.1, fit_intercept=False, tol=1e-10).fit(rows, signs).coef_[0]
    expected = objective(rows, theirs, signs, Logistic(), 0.1)
    np.testing.assert_allclose(found.objective, expected, rtol=1e-8)
    np.testing.assert_allclose(found.coef[0], theirs, atol=1e-3)


@pytest.mark.parametrize("loss", [EpsilonInsensitive(0.3), EpsilonInsensitive(0.3, squared=True)])
def test_equals_linear_svr(rows, numbers, loss):
    found = bundle(Risk(MatrixRows(rows), loss, numbers, 0.1), tol=1e-6)
    kind = "squared_" * loss.squared + "epsilon_insensitive"
    model = LinearSVR(epsilon=0.3, C=0.1, loss=kind, dual=True, **LIBLINEAR).fit(rows, numbers)
    expected = objective(rows, model.coef_, numbers, loss, 0.1)
    np.testing.assert_allclose(found.objective, expected, rtol=1.1e-6)


@pytest.mark.parametrize("kernel", [Intersection(), Chi2()])
def test_equals_dual_descent_on_sparse_features(histograms, kernel):
    X, y = histograms
    feature_map = SparseMap(kernel, 20).fit(X)
    Z, lam = feature_map.transform(X), 1e-2
    risk = Risk(MatrixRows(Z), Hinge(), y, 1 / len(y))
    found = bundle(risk, lam, inner=feature_map.inner_, tol=1e-4)
    assert found.converged
    assert found.n_iter < 40
    C = 1 / (lam * len(y))
    K = Z @ (feature_map.inner_ @ Z.T.toarray())
    descent = icd(gram_rows(K), Hinge().problem(y, C), tol=1e-7)
    np.testing.assert_allclose(found.objective, lam * descent.objective, rtol=1e-4)
    orthonormal = SparseMap(
        kernel, feature_map.nodes_, orthonormal=True, spacing=feature_map.nodes_
    )
    explicit = orthonormal.fit_transform(X)
    w = LinearSVC(C=C, loss="hinge", **LIBLINEAR).fit(explicit, y).coef_[0]
    plain = bundle(Risk(MatrixRows(explicit), Hinge(), y, 1 / len(y)), lam, tol=1e-4)
    expected = lam * objective(explicit, w, y, Hinge(), C)
    np.testing.assert_allclose([found.objective[0], plain.objective[0]], expected, rtol=1e-4)
    np.testing.assert_allclose(Z @ found.coef[0], explicit @ w, atol=0.05)


def test_nodes_at_the_values_are_the_exact_intersection_machine():
    rng = np.random.default_rng(3)
    X = rng.integers(0, 9, (120, 4)).astype(float)
    y = np.where(np.sin(X[:, 0]) + X[:, 1] / 8 > 0.5, 1.0, -1.0)
    feature_map = SparseMap(Intersection(), spacing=np.arange(1.0, 9.0)).fit(X)
    Z = feature_map.transform(X)
    risk = Risk(MatrixRows(Z), Hinge(), y, 0.05)
    found = bundle(risk, inner=feature_map.inner_, tol=1e-6)
    rows = LookupRows(Levels.from_values(X))
    exact = icd(rows, Hinge().problem(y, 0.05), tol=1e-8, max_iter=50_000)
    np.testing.assert_allclose(found.objective, exact.objective, rtol=1.1e-6)
    scores = oracles.intersection(X) @ exact.coef
    np.testing.assert_allclose(Z @ found.coef[0], scores, atol=5e-3)


@pytest.mark.parametrize("structure", ["plain", "inner", "singular"])
@pytest.mark.parametrize("line_search", [True, False])
def test_every_plane_and_every_bound(rows, signs, structure, line_search, monkeypatch):
    """``b = L(v) + a^T v`` and ``H = A^T K A / lam`` at all times, and the bound never falls."""
    F = np.random.default_rng(5).normal(size=(7, 7 if structure == "inner" else 3))
    inner = None if structure == "plain" else F @ F.T
    K = np.eye(7) if inner is None else inner
    lam, seen, bounds = 0.7, [], [-np.inf]
    planes = [(np.zeros(7), 0.0)]  # no risk is below 0
    inside = Task.learn

    def learn(task, values, steps, gradient, product, height):
        v = task.best[0] + steps[-1] * (task.new[0] - task.best[0])
        loss = Hinge()
        np.testing.assert_allclose(values[-1], loss.value(signs, rows @ v).sum(), rtol=1e-12)
        assert height == values[-1]
        np.testing.assert_allclose(gradient, loss.slope(signs, rows @ v) @ rows, atol=1e-12)
        inside(task, values, steps, gradient, product, height)
        a = -gradient
        planes.append((a, values[-1] + a @ v))
        kept = task.count
        at = [
            int(np.argmin([np.abs(K @ p[0] - row).max() for p in planes]))
            for row in task.planes[0, :kept]
        ]
        A, b = np.array([planes[i][0] for i in at]), np.array([planes[i][1] for i in at])
        np.testing.assert_allclose(task.offset[:kept], b, atol=1e-10)
        np.testing.assert_allclose(task.H[:kept, :kept], A @ K @ A.T / lam, rtol=1e-10, atol=1e-9)
        np.testing.assert_allclose(task.on_best[:kept], A @ task.best[0], atol=1e-9)
        best = task.best[0]
        value = 0.5 * lam * best @ np.linalg.pinv(K) @ best + loss.value(signs, rows @ best).sum()
        np.testing.assert_allclose(task.value, value, rtol=1e-10)
        assert task.bound >= bounds[-1]
        bounds.append(task.bound)
        seen.append(value)

    monkeypatch.setattr(Task, "learn", learn)
    risk = Risk(MatrixRows(rows), Hinge(), signs)
    found = bundle(risk, lam, inner=inner, line_search=line_search, tol=1e-5)
    assert found.converged
    assert len(seen) == found.n_iter > 10
    assert (np.diff(seen) <= 0).all()
    assert bounds[-1] <= found.objective[0] <= bounds[-1] * (1 + 1.1e-5)


def test_weights_are_repetitions(rows, signs):
    counts = np.random.default_rng(0).integers(0, 4, N)
    weighted = bundle(Risk(MatrixRows(rows), Hinge(), signs, 0.1 * counts, constant=2.0))
    again = np.repeat(np.arange(N), counts)
    repeated = bundle(Risk(MatrixRows(rows[again]), Hinge(), signs[again], 0.1, constant=2.0))
    np.testing.assert_allclose(weighted.coef, repeated.coef, atol=1e-9)
    assert weighted.n_iter == repeated.n_iter


def test_the_constant_is_one_more_column(rows, signs):
    found = bundle(Risk(MatrixRows(rows), Hinge(), signs, 0.1, constant=4.0))
    wide = np.column_stack([rows, np.full(N, 2.0)])
    np.testing.assert_allclose(
        found.coef, bundle(Risk(MatrixRows(wide), Hinge(), signs, 0.1)).coef, atol=1e-9
    )


def test_tasks_share_passes_and_nothing_else(rows):
    T = np.sign(rows[:, :3] + np.random.default_rng(0).normal(size=(N, 3)) * [0.01, 0.5, 2])
    together = bundle(Risk(MatrixRows(rows), Hinge(), T))
    alone = [bundle(Risk(MatrixRows(rows), Hinge(), t)) for t in T.T]
    assert len({result.n_iter for result in alone}) > 1
    assert together.n_iter == max(result.n_iter for result in alone)
    np.testing.assert_allclose(together.coef, [r.coef[0] for r in alone], atol=1e-9)
    np.testing.assert_allclose(together.objective, [r.objective[0] for r in alone])
    np.testing.assert_allclose(together.gap, [r.gap[0] for r in alone], atol=1e-7)


@pytest.mark.parametrize("structure", ["plain", "inner"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_space_of_scores_has_the_same_optimum(structure, loss):
    rng = np.random.default_rng(0)
    Z, T = rng.normal(size=(30, 60)), rng.choice([-1.0, 1.0], (30, 2))
    F = rng.normal(size=(60, 40))
    inner = None if structure == "plain" else F @ F.T
    risk = Risk(MatrixRows(Z), loss, T, 0.01, constant=1.0)
    course = {"tol": 1e-6, "inner": inner}
    in_weights = SimpleNamespace(size=61, tasks=2, least=0.0, start=risk.start)
    weights = bundle(in_weights, keep_dual=True, **course)
    scores = bundle(risk, **course)
    np.testing.assert_allclose(scores.objective, weights.objective, rtol=2e-6)
    np.testing.assert_allclose(scores.coef, weights.coef, atol=5e-3)
    assert scores.dual.shape == (2, 30)
    K = np.eye(60) if inner is None else inner
    np.testing.assert_allclose(weights.dual[:, :60] @ K, weights.coef[:, :60], atol=1e-9)
    for k in range(2):  # its certificate is of the weights it returns
        v, w = scores.coef[k], weights.dual[k]
        reg = v[60] ** 2 + v[:60] @ np.linalg.pinv(K) @ v[:60]
        value = 0.5 * reg + 0.01 * loss.value(T[:, k], Z @ v[:60] + v[60]).sum()
        np.testing.assert_allclose(scores.objective[k], value, rtol=1e-8)
        np.testing.assert_allclose(w[60], weights.coef[k, 60], atol=1e-12)


def joint_hinge(Z, y, n_classes):
    """Crammer and Singer's loss as a structured argmax: one task, weights of all classes."""

    def oracle(V, which):
        W = V.reshape(n_classes, -1)
        each = np.arange(len(y))
        scores = Z @ W.T + 1
        scores[each, y] -= 1
        worst = scores.argmax(axis=1)
        value = (scores[each, worst] - scores[each, y]).sum()
        slopes = np.zeros_like(scores)
        slopes[each, worst] += 1
        slopes[each, y] -= 1
        return np.array([value]), (slopes.T @ Z).reshape(1, -1)

    return oracle


@pytest.mark.filterwarnings("ignore:Liblinear failed to converge")  # a number that is not set
def test_a_structured_oracle(rows):
    y = rows[:, :3].argmax(axis=1)
    found = bundle(joint_hinge(rows, y, 3), size=21, tol=1e-4)
    model = LinearSVC(multi_class="crammer_singer", C=1.0, **LIBLINEAR).fit(rows, y)
    value = joint_hinge(rows, y, 3)(model.coef_.reshape(1, -1), None)[0]
    np.testing.assert_allclose(found.objective, value + 0.5 * np.sum(model.coef_**2), rtol=1e-4)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, np.asfortranarray])
def test_single_precision_stays_single(rows, signs, make):
    Z = make(np.float32(rows))
    matrix = MatrixRows(Z)
    assert matrix.Z is Z or np.shares_memory(matrix.Z.data, Z.data)
    seen = []

    class Watched(MatrixRows):
        def scores(self, V):
            seen.append(V.dtype)
            return super().scores(V)

    found = bundle(Risk(Watched(Z), Hinge(), signs, 0.1))
    double = bundle(Risk(MatrixRows(rows), Hinge(), signs, 0.1))
    assert found.coef.dtype == np.float32
    assert {*seen} == {np.dtype(np.float32)}
    np.testing.assert_allclose(found.objective, double.objective, rtol=1e-3)
    value = objective(np.float64(np.float32(rows)), np.float64(found.coef[0]), signs, Hinge(), 0.1)
    np.testing.assert_allclose(found.objective, value, rtol=1e-5)


def test_a_pass_for_every_new_point_and_none_more(rows, signs):
    calls = {"scores": 0, "gradient": 0}

    class Counted(MatrixRows):
        def scores(self, V):
            calls["scores"] += 1
            return super().scores(V)

        def gradient(self, S):
            calls["gradient"] += 1
            return super().gradient(S)

    found = bundle(Risk(Counted(rows), Hinge(), signs))
    assert calls == {"scores": found.n_iter - 1, "gradient": found.n_iter}
    jumps = bundle(Risk(MatrixRows(rows), Hinge(), signs), line_search=False)
    assert found.n_iter < 0.7 * jumps.n_iter


def test_planes_that_do_not_count_are_dropped(rows, signs, monkeypatch):
    sizes = []
    inside = Task.aim

    def aim(task):
        sizes.append(task.count)
        return inside(task)

    monkeypatch.setattr(Task, "aim", aim)
    risk = Risk(MatrixRows(rows), Hinge(squared=True), signs)
    found = bundle(risk, tol=1e-9, line_search=False)
    assert found.converged
    assert max(sizes) < found.n_iter - 10
    assert found.gap[0] <= 1e-9 * found.objective[0]


def test_risks_may_be_negative():
    def bowl(V, which):
        return np.sum((V - 1) ** 2, axis=1) - 9, 2 * (V - 1)

    found = bundle(bowl, 2.0, size=2, tol=1e-6)
    assert found.converged
    np.testing.assert_allclose(found.objective, -8, rtol=1e-6)
    np.testing.assert_allclose(found.coef, [[0.5, 0.5]], atol=1e-2)


def test_nothing_to_learn():
    risk = Risk(MatrixRows(np.ones((4, 2))), EpsilonInsensitive(1.0), np.zeros(4))
    found = bundle(risk)
    assert found.converged
    np.testing.assert_array_equal(found.coef, np.zeros((1, 2)))
    blank = bundle(Risk(MatrixRows(np.zeros((4, 2))), Hinge(), np.ones(4)))
    assert blank.converged
    np.testing.assert_allclose(blank.objective, 4)


def test_limits_and_interrupts(rows, signs):
    risk = Risk(MatrixRows(rows), Hinge(), signs)
    short = bundle(risk, max_iter=5)
    assert (short.n_iter, short.converged) == (5, False)
    assert short.gap[0] > 1e-3 * short.objective[0]
    told = []

    def three(n_iter, gap):
        told.append((n_iter, gap))
        return n_iter < 3

    assert bundle(risk, callback=three).n_iter == 3
    assert [n for n, _ in told] == [1, 2, 3]
    np.testing.assert_allclose(
        told[-1][1],
        bundle(risk, max_iter=3).gap / (bundle(risk, max_iter=3).objective),
        rtol=1e-9,
    )

    class Interrupted(MatrixRows):
        def gradient(self, S):
            self.left = getattr(self, "left", 6) - 1
            if not self.left:
                raise KeyboardInterrupt
            return super().gradient(S)

    broken = Risk(Interrupted(rows), Hinge(), signs)
    last = []
    found = bundle(broken, callback=lambda n, gap: last.append(n) or True)
    assert last[-1] == -1
    assert not found.converged
    np.testing.assert_allclose(found.coef, short.coef)
    with pytest.raises(KeyboardInterrupt):
        bundle(Risk(Interrupted(rows), Hinge(), signs))


def test_bad_input(rows, signs):
    with pytest.raises(ValueError, match="targets has 3 rows, but there are 150"):
        Risk(MatrixRows(rows), Hinge(), signs[:3])
    with pytest.raises(ValueError, match=r"weights has shape \(2,\)"):
        Risk(MatrixRows(rows), Hinge(), signs, np.ones(2))
    with pytest.raises(ValueError, match="two-dimensional"):
        MatrixRows(signs)
    with pytest.raises(ValueError, match="size must be given"):
        bundle(lambda V, which: (V[:, 0], np.ones_like(V)))
    with pytest.raises(ValueError, match="not finite"):
        bundle(lambda V, which: (np.array([1.0]), np.full((1, 2), np.nan)), size=2)
