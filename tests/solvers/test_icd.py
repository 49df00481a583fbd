"""Dual coordinate descent: the optimum of LIBLINEAR on the unary map, and a certificate."""

from itertools import count

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import LinearSVC, LinearSVR

from hilbin.solvers import EpsilonInsensitive, Hinge, crammer_singer, gram_rows, icd
from hilbin.solvers.lookup import Levels, LookupRows, lay_out

N, MOST = 150, 12
TUBES = [EpsilonInsensitive(0.1), EpsilonInsensitive(0.1, squared=True)]
POWER = {"hinge": 1, "squared_hinge": 2}
LOSSES = {"hinge": Hinge(), "squared_hinge": Hinge(squared=True)}
TIGHT = {"tol": 1e-8, "max_iter": 50_000}
LIBLINEAR = {"fit_intercept": False, "tol": 1e-8, "max_iter": 500_000, "dual": True}


@pytest.fixture(scope="module")
def counts():
    """Small whole numbers, many of them zero."""
    rng = np.random.default_rng(0)
    return rng.integers(0, MOST + 1, (N, 6)) * (rng.random((N, 6)) < 0.6).astype(float)


@pytest.fixture(scope="module")
def signs(counts):
    noise = 0.3 * np.random.default_rng(1).normal(size=N)
    return np.where(np.sin(counts[:, 0] / 3) + counts[:, 1] / 10 + noise > 0.7, 1.0, -1.0)


@pytest.fixture(scope="module")
def labels(counts):
    first = np.argmax(counts[:, :3] + np.random.default_rng(2).normal(size=(N, 3)), axis=1)
    return np.where(counts[:, 3] > 8, 3, first)


@pytest.fixture(scope="module")
def rows(counts):
    return LookupRows(Levels.from_values(counts))


def primal(K, y, coef, C, loss):
    f = K @ coef
    return oracles.hinge_objective(coef @ f, y * f, C, POWER[loss])


def test_unary_map_is_exact(counts):
    B = oracles.unary(counts, MOST)
    np.testing.assert_array_equal(B @ B.T, oracles.intersection(counts))


@pytest.mark.parametrize("C", [1e-3, 1e-1])
@pytest.mark.parametrize(("loss", "rtol"), [("squared_hinge", 1e-8), ("hinge", 1e-7)])
def test_equals_liblinear_on_the_unary_map(counts, signs, rows, loss, rtol, C):
    found = icd(rows, LOSSES[loss].problem(signs, C), **TIGHT)
    assert found.converged
    assert abs(found.gap) < 1e-7
    B = oracles.unary(counts, MOST)
    w = LinearSVC(C=C, loss=loss, **LIBLINEAR).fit(B, signs).coef_[0]
    expected = oracles.hinge_objective(w @ w, signs * (B @ w), C, POWER[loss])
    np.testing.assert_allclose(found.objective, expected, rtol=rtol)
    by_hand = primal(B @ B.T, signs, found.coef, C, loss)
    np.testing.assert_allclose(found.objective, by_hand, rtol=1e-12)


@pytest.mark.parametrize("loss", POWER)
def test_the_constant_is_one_more_unary_column(counts, signs, rows, loss):
    found = icd(rows, LOSSES[loss].problem(signs, 0.1, constant=7.0), **TIGHT)
    B = np.column_stack([oracles.unary(counts, MOST), np.full(N, np.sqrt(7.0))])
    w = LinearSVC(C=0.1, loss=loss, **LIBLINEAR).fit(B, signs).coef_[0]
    scores = oracles.intersection(counts) @ found.coef + found.intercept
    np.testing.assert_allclose(scores, B @ w, rtol=0, atol=1e-7)
    assert found.intercept == pytest.approx(7 * found.coef.sum())


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize("power", [1, 2])
def test_regression_equals_liblinear(counts, rows, power, epsilon):
    loss = "squared_" * (power - 1) + "epsilon_insensitive"
    y = np.sin(counts[:, 0] / 3) + 0.1 * counts[:, 1]
    problem = EpsilonInsensitive(epsilon, squared=power == 2).problem(y, 0.05)
    found = icd(rows, problem, **TIGHT)
    B = oracles.unary(counts, MOST)
    w = LinearSVR(C=0.05, loss=loss, epsilon=epsilon, **LIBLINEAR).fit(B, y).coef_
    expected = oracles.insensitive_objective(w @ w, y - B @ w, 0.05, epsilon, power)
    np.testing.assert_allclose(found.objective, expected, rtol=1e-7)
    assert -1e-9 < found.gap < 1e-7
    assert np.abs(found.coef).max() <= (0.05 if power == 1 else np.inf)


# LIBLINEAR leaves its number of iterations unset here: scikit-learn warns if it happens to be large
@pytest.mark.filterwarnings("ignore:Liblinear failed to converge")
def test_crammer_singer_equals_liblinear(counts, labels, rows):
    found = crammer_singer(rows, labels, np.full(N, 0.05), n_classes=4, **TIGHT)
    assert np.abs(found.coef.sum(axis=1)).max() < 1e-15
    own = labels[:, None] == np.arange(4)
    assert (found.coef <= 0.05 * own).all()
    B = oracles.unary(counts, MOST)
    given = LIBLINEAR | {"random_state": 0}
    machine = LinearSVC(C=0.05, multi_class="crammer_singer", **given).fit(B, labels)
    W = machine.coef_
    expected = oracles.crammer_singer_objective(np.sum(W**2), B @ W.T, labels, 0.05)
    np.testing.assert_allclose(found.objective, expected, rtol=1e-7)
    assert -1e-9 < found.gap < 1e-7


def test_crammer_singer_of_two_classes_is_the_hinge(counts, signs, rows):
    C, K = np.full(N, 0.02), oracles.intersection(counts)
    two = crammer_singer(rows, (signs > 0).astype(int), C, n_classes=2, constant=2.0, **TIGHT)
    one = icd(rows, Hinge().problem(signs, 2 * C, constant=2.0), **TIGHT)
    scores = K @ two.coef + two.intercept
    np.testing.assert_allclose(
        scores[:, 1] - scores[:, 0], K @ one.coef + one.intercept, rtol=0, atol=1e-7
    )
    np.testing.assert_allclose(2 * two.objective, one.objective, rtol=1e-7)


@pytest.mark.parametrize("loss", POWER)
def test_any_order_and_shrinking_find_the_optimum(counts, signs, rows, loss):
    C = 0.01
    problem = LOSSES[loss].problem(signs, C)
    expected = icd(rows, problem, **TIGHT).objective
    for seed in range(5):
        found = icd(rows, problem, seed=seed, tol=1e-6, max_iter=50_000)
        np.testing.assert_allclose(found.objective, expected, rtol=1e-6)
    K = oracles.intersection(counts)
    plain = oracles.coordinate_descent(K, signs, C, POWER[loss])
    np.testing.assert_allclose(primal(K, signs, plain, C, loss), expected, rtol=1e-6)


def test_seeds_and_repetition(signs, rows):
    problem = Hinge().problem(signs, 0.01)
    one, same, other = (icd(rows, problem, seed=seed, max_iter=3) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.coef, same.coef)
    assert (one.coef != other.coef).any()


@pytest.mark.parametrize("loss", POWER)
def test_warm_start_from_the_optimum(signs, rows, loss):
    problem = LOSSES[loss].problem(signs, 0.01, constant=1.0)
    cold = icd(rows, problem, tol=1e-6, max_iter=50_000)
    warm = icd(rows, problem, tol=1e-5, start=cold.coef)
    assert warm.n_iter <= 2 < cold.n_iter
    assert warm.converged
    np.testing.assert_allclose(warm.objective, cold.objective, rtol=1e-9)
    beyond = icd(rows, problem, **TIGHT, start=cold.coef * 3 - 0.01)
    np.testing.assert_allclose(beyond.objective, cold.objective, rtol=1e-6)


def test_crammer_singer_warm_start(labels, rows):
    C = np.full(N, 0.01)
    cold = crammer_singer(rows, labels, C, n_classes=4, constant=1.0, tol=1e-6, max_iter=50_000)
    warm = crammer_singer(rows, labels, C, n_classes=4, constant=1.0, tol=1e-5, start=cold.coef)
    assert warm.n_iter <= 2 < cold.n_iter
    np.testing.assert_allclose(warm.objective, cold.objective, rtol=1e-7)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 1000),
    loss=st.sampled_from([*LOSSES.values(), *TUBES]),
    sweeps=st.integers(1, 6),
    scale=st.sampled_from([1e-4, 1e-2, 1.0]),
    constant=st.sampled_from([0.0, 3.0]),
)
def test_the_gap_is_a_certificate(seed, loss, sweeps, scale, constant):
    """After any number of sweeps: the bounds hold, and the optimum is within the gap."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 8, (40, 3)) * (rng.random((40, 3)) < 0.7).astype(float)
    C, rows = scale * rng.uniform(0.5, 2, 40), LookupRows(Levels.from_values(X))
    y = rng.choice([-1.0, 1.0], 40) if isinstance(loss, Hinge) else rng.normal(size=40)
    problem = loss.problem(y, C, constant=constant)
    early = icd(rows, problem, tol=1e-9, max_iter=sweeps)
    best = icd(rows, problem, tol=1e-7, max_iter=100_000)
    assert best.converged
    slack = 1e-9 * max(best.objective, 1)
    assert -slack <= early.objective - best.objective <= early.gap + slack
    assert early.gap >= -1e-9
    high = np.inf if loss.squared else C
    for result in (early, best):
        sizes = y * result.coef if isinstance(loss, Hinge) else np.abs(result.coef)
        assert (sizes >= 0).all()
        assert (sizes <= high).all()


@settings(max_examples=30)
@given(
    seed=st.integers(0, 1000),
    loss=st.sampled_from([*LOSSES.values(), *TUBES]),
    share=st.sampled_from([0.1, 1e-2, 1e-4]),
    constant=st.sampled_from([0.0, 2.0]),
    warm=st.booleans(),
)
def test_a_descent_ends_by_its_gap(seed, loss, share, constant, warm):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 9, (60, 4)).astype(float)
    y = np.where(X[:, 0] + rng.normal(size=60) > 4, 1.0, -1.0)
    kernel, problem = LookupRows(Levels.from_values(X)), loss.problem(y, 0.1, constant=constant)
    start = icd(kernel, problem, tol=1e-12, max_iter=2).coef if warm else None
    given = {"tol": 1e-9, "max_iter": 5000, "start": start}
    early = icd(kernel, problem, gap_tol=share, **given)
    best = icd(kernel, problem, gap_tol=0.0, **given)
    assert early.converged
    assert early.gap <= share * early.objective
    assert early.n_iter <= best.n_iter
    products, intercept = oracles.intersection(X) @ early.coef, constant * early.coef.sum()
    exact = problem.certified(early.coef, products, intercept, 0, True)
    np.testing.assert_allclose(early.objective, exact.objective, rtol=1e-9)


def test_empty_rows_go_to_their_bound(counts, signs):
    X = counts.copy()
    X[[3, 9]] = 0
    rows, C = LookupRows(Levels.from_values(X)), np.linspace(0.01, 0.02, N)
    found = icd(rows, Hinge().problem(signs, C), **TIGHT)
    assert found.converged
    np.testing.assert_array_equal(found.coef[[3, 9]], (signs * C)[[3, 9]])
    assert -1e-9 <= found.gap < 1e-7
    squared = icd(rows, Hinge(squared=True).problem(signs, C), **TIGHT)
    np.testing.assert_allclose(
        squared.coef[[3, 9]], 2 * (signs * C)[[3, 9]]
    )  # only the diagonal acts
    nothing = LookupRows(Levels.from_values(np.zeros((N, 2))))
    np.testing.assert_array_equal(icd(nothing, Hinge().problem(signs, C)).coef, signs * C)


def test_crammer_singer_with_an_empty_row(counts, labels):
    X = counts.copy()
    X[3] = 0
    rows = LookupRows(Levels.from_values(X))
    found = crammer_singer(rows, labels, np.full(N, 0.01), n_classes=4, **TIGHT)
    assert found.converged
    assert -1e-9 <= found.gap < 1e-7
    assert abs(found.coef[3].sum()) < 1e-15


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", POWER)
def test_gram_rows_equal_lookup_rows(counts, signs, rows, loss, dtype):
    gram = gram_rows(oracles.intersection(counts).astype(dtype))
    np.testing.assert_array_equal(gram.norms, rows.norms)
    problem = LOSSES[loss].problem(signs, 0.01, constant=2.0)
    tol = 1e-7 if dtype == np.float64 else 1e-3
    a, b = (icd(r, problem, tol=tol, max_iter=50_000) for r in (gram, rows))
    np.testing.assert_allclose(a.objective, b.objective, rtol=1e-8 if tol < 1e-3 else 1e-4)
    np.testing.assert_allclose(gram.scores(b.coef), rows.scores(b.coef), atol=1e-10)


@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
def test_gram_rows_equal_lookup_rows_in_all_classes(counts, labels, rows, dense):
    C, gram = np.full(N, 0.01), gram_rows(oracles.intersection(counts))
    tables = LookupRows(rows.levels, lay_out(rows.levels, dense=dense))
    for tol, rtol in ((1e-8, 1e-9), (1e-3, 1e-4)):  # float64 and float32 tables
        given = {"n_classes": 4, "constant": 2.0, "tol": tol, "max_iter": 50_000}
        a, b = (crammer_singer(r, labels, C, **given) for r in (gram, tables))
        np.testing.assert_allclose(a.objective, b.objective, rtol=rtol)


@pytest.mark.parametrize("number", [np.float64, np.float32, int])
def test_numbers_of_any_type(signs, labels, rows, number):
    for several in (False, True):
        found, same = (solve(rows, signs, labels, several, b) for b in (number(2), 2.0))
        np.testing.assert_array_equal(found.coef, same.coef)


def solve(rows, signs, labels, several, constant=0.0, **course):
    """One class against the rest, or all in one."""
    course["tol"] = 1e-6
    if several:
        given = {"n_classes": 4, "constant": constant}
        return crammer_singer(rows, labels, np.full(N, 1.0), **given, **course)
    return icd(rows, Hinge().problem(signs, 1.0, constant=constant), **course)


@pytest.mark.parametrize("several", [False, True], ids=["one", "all_classes"])
def test_stopping_between_sweeps(signs, labels, rows, several):
    seen = []

    def callback(sweeps, spread):
        seen.append((sweeps, spread))
        return sweeps < 3

    found = solve(rows, signs, labels, several, callback=callback)
    assert (found.n_iter, found.converged) == (3, False)
    assert [sweeps for sweeps, _ in seen] == [1, 2, 3]
    assert all(spread > 1e-6 for _, spread in seen)
    limited = solve(rows, signs, labels, several, max_iter=3)
    np.testing.assert_array_equal(found.coef, limited.coef)
    assert not limited.converged


class Interrupted(LookupRows):
    """Rows whose third sweep is interrupted."""

    def start(self, *given, name="start"):
        sweep, sweeps = getattr(super(), name)(*given), count()

        def interrupted(*course):
            if next(sweeps) == 2:
                raise KeyboardInterrupt
            return sweep(*course)

        return interrupted

    def start_classes(self, *given):
        return self.start(*given, name="start_classes")


@pytest.mark.parametrize("several", [False, True], ids=["one", "all_classes"])
def test_interrupted_in_a_sweep(signs, labels, rows, several):
    given, asked = (Interrupted(rows.levels), signs, labels, several), []
    found = solve(*given, callback=lambda sweeps, spread: not asked.append(sweeps))
    assert (found.n_iter, found.converged) == (2, False)
    assert asked == [1, 2, -1]
    assert np.isfinite(found.coef).all()
    assert found.gap > 0
    with pytest.raises(KeyboardInterrupt):
        solve(*given)


def test_a_given_sum_is_refused(signs, rows):
    with pytest.raises(ValueError, match="total must be None"):
        icd(rows, Hinge().problem(signs, 1.0, total=0.0))
