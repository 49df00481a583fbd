"""Sequential minimal optimization: the optimum of LIBSVM and of an oracle, and a certificate."""

import numpy as np
import oracles
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC, SVR, OneClassSVM

from hilbin._core import core
from hilbin.kernels import GCS, Chi2, Exponential, Gaussian, Intersection, Laplace
from hilbin.solvers import (
    EpsilonInsensitive,
    Hinge,
    Problem,
    crammer_singer,
    gram_rows,
    icd,
    smo,
)
from hilbin.solvers.gram import LazyRows, PartRows
from hilbin.solvers.smo import feasible, smo_blocks

N, C = 120, 2.0
KERNELS = [
    Intersection(),
    Chi2(),
    Exponential(Chi2(), 1.0),
    Gaussian(0.5),
    Laplace(1.0),
    GCS(radius=1.2),
]
TIGHT = 1e-7


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(0).gamma(0.7, size=(N, 4))


@pytest.fixture(scope="module")
def y(points):
    noise = 0.4 * np.random.default_rng(1).normal(size=N)
    return np.where(np.sin(2 * points[:, 0]) + points[:, 1] + noise > 1.2, 1.0, -1.0)


@pytest.fixture(scope="module", params=KERNELS, ids=lambda k: type(k).__name__)
def gram(request, points):
    K = request.param.gram(points)
    return K.toarray() if sp.issparse(K) else K


def classifier(y, C):
    return Hinge().problem(y, C, total=0.0)


def rows_of(kind, K, kept=30):
    if kind == "dense":
        return gram_rows(K)
    if kind == "float32":
        return gram_rows(K.astype(np.float32))
    if kind == "sparse":
        return gram_rows(sp.csr_array(K))
    if kind == "part":  # among others, in another order
        rng = np.random.default_rng(0)
        which = rng.permutation(2 * len(K))[: len(K)]
        larger = rng.normal(size=(2 * len(K), 2 * len(K)))
        larger[np.ix_(which, which)] = K
        return PartRows(larger, which)
    return LazyRows(lambda i: K[i], np.diag(K), memory=kept * 4 * len(K))


def violation(K, c, problem):
    """By how much a pair of rows violates its conditions."""
    low, high, epsilon = problem.low, problem.high, problem.epsilon
    g = K @ c - problem.linear
    up = np.where(c < high, -g - np.where(c >= 0, epsilon, -epsilon), -np.inf)
    down = np.where(c > low, -g - np.where(c > 0, epsilon, -epsilon), np.inf)
    return up.max() - down.min()


@pytest.mark.parametrize("kind", ["dense", "sparse", "lazy", "part"])
def test_classifier_is_libsvms(gram, y, kind):
    problem = classifier(y, C)
    tight = TIGHT if kind != "lazy" else 1e-5
    result = smo(rows_of(kind, gram), problem, tol=tight)
    peer = SVC(kernel="precomputed", C=C, tol=1e-8).fit(gram, y)
    theirs = np.zeros(N)
    theirs[peer.support_] = peer.dual_coef_[0]
    ours = oracles.machine_objective(gram, result.coef, y)
    assert ours == pytest.approx(oracles.machine_objective(gram, theirs, y), rel=1e-6)
    scores = gram @ result.coef + result.intercept
    np.testing.assert_allclose(scores, peer.decision_function(gram), atol=1e-4)
    assert result.converged
    assert violation(gram, result.coef, problem) <= 2 * tight
    assert abs(result.coef.sum()) < 1e-9


def test_regression_is_libsvms(gram, points):
    t = np.sin(points[:, 0]) + points[:, 2]
    problem = EpsilonInsensitive(0.1).problem(t, C, total=0.0)
    result = smo(gram_rows(gram), problem, tol=TIGHT)
    peer = SVR(kernel="precomputed", C=C, epsilon=0.1, tol=1e-8).fit(gram, t)
    np.testing.assert_allclose(gram @ result.coef + result.intercept, peer.predict(gram), atol=1e-4)
    assert violation(gram, result.coef, problem) <= 2 * TIGHT


def test_one_class_is_libsvms(gram):
    nu = 0.2
    problem = Problem(np.zeros(N), 0.0, 1 / (nu * N), total=1)
    result = smo(gram_rows(gram), problem, tol=1e-9)
    peer = OneClassSVM(kernel="precomputed", nu=nu, tol=1e-9).fit(gram)
    ours = (gram @ result.coef + result.intercept) * nu * N
    np.testing.assert_allclose(ours, peer.decision_function(gram), atol=1e-4)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    epsilon=st.sampled_from([0.0, 0.05, 0.5]),
    total=st.sampled_from([0.0, 1.0]),
    kind=st.sampled_from(["dense", "sparse", "lazy", "float32", "part"]),
)
def test_optimum_of_the_oracle_and_certificate(seed, epsilon, total, kind):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    Z = rng.normal(size=(n, 3)) * (rng.random((n, 3)) < 0.5)
    K = Z @ Z.T + 0.1 * np.eye(n)
    t, high = rng.normal(size=n), rng.uniform(0.1, 2, n) + total
    low = -high if epsilon else np.zeros(n)
    high[rng.random(n) < 0.1] = 0  # rows that are fixed
    if high.sum() < total:
        high[0] = total
    given_tol = 1e-6 if kind in ("dense", "sparse", "part") else 1e-4
    problem = Problem(t, low, high, epsilon=epsilon, total=total)
    result = smo(rows_of(kind, K), problem, tol=given_tol)
    slow = oracles.pair_descent(K, t, low, high, total, epsilon)
    best = oracles.machine_objective(K, slow, t, epsilon)
    ours = oracles.machine_objective(K, result.coef, t, epsilon)
    assert ours == pytest.approx(best, abs=1e-3 if given_tol == 1e-4 else 1e-5)
    assert (result.coef >= low).all()
    assert (result.coef <= high).all()
    assert result.coef.sum() == pytest.approx(total, abs=1e-9)
    assert result.gap >= -1e-9 - 1e-5 * (kind in ("lazy", "float32"))
    assert ours - best <= result.gap + 1e-9 + 1e-5 * (kind in ("lazy", "float32"))
    assert result.gap <= 2 * given_tol * np.abs(np.maximum(high, -low)).sum() + 1e-5


def test_rows_left_out_change_nothing():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(1500, 2))
    y = np.where(np.hypot(*Z.T) + 0.1 * rng.normal(size=1500) > 1, 1.0, -1.0)
    K = Gaussian(1.0).gram(Z)
    problem = classifier(y, 50.0)
    for kind in ("dense", "sparse"):
        sizes = []
        rows = rows_of(kind, K)
        whole = smo(rows, problem, tol=1e-5, shrinking=False)
        taken = rows.restricted
        rows.price = lambda size: 0
        rows.restricted = lambda part, taken=taken, sizes=sizes: (
            sizes.append(part.size),
            taken(part),
        )[1]
        part = smo(rows, problem, tol=1e-5)
        assert sizes
        assert min(sizes) <= 750
        assert part.converged
        assert part.objective == pytest.approx(whole.objective, rel=1e-6)
        assert violation(K, part.coef, problem) <= 2e-5


def test_warm_start_needs_no_steps(gram, y):
    problem = classifier(y, C)
    first = smo(gram_rows(gram), problem, tol=1e-6)
    again = smo(gram_rows(gram), problem, tol=2e-6, start=first.coef)
    assert again.n_iter == 0
    assert again.objective == pytest.approx(first.objective, rel=1e-12)


@given(seed=st.integers(0, 10**6))
def test_start_is_feasible(seed):
    rng = np.random.default_rng(seed)
    low, high = -rng.random(9), rng.random(9)
    total = rng.uniform(low.sum(), high.sum())
    c = feasible(rng.normal(size=9), Problem(np.zeros(9), low, high, total=total))
    assert (c >= low).all()
    assert (c <= high).all()
    assert c.sum() == pytest.approx(total, abs=1e-12)


def test_sum_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match="sum 3"):
        smo(gram_rows(np.eye(2)), Problem(np.zeros(2), 0.0, 1.0, total=3))


@pytest.mark.parametrize(
    "wrong", [{}, {"total": 0.0, "constant": 1.0}, {"total": 0.0, "diagonal": 1.0}]
)
def test_problem_of_another_kind_is_refused(wrong):
    with pytest.raises(ValueError, match="smo needs a problem with a total"):
        smo(gram_rows(np.eye(2)), Problem(np.zeros(2), 0.0, 1.0, **wrong))


@pytest.mark.parametrize("name", ["low", "high", "diagonal"])
def test_problem_of_wrong_lengths_is_refused(name):
    given = {"linear": np.zeros(3), "low": 0.0, "high": 1.0, name: np.ones(2)}
    with pytest.raises(ValueError, match=rf"{name} has the shape \(2,\), but there are 3 rows"):
        Problem(**given)


def test_stops_when_told(gram, y):
    problem = classifier(y, C)
    told = []
    result = smo(
        gram_rows(gram),
        problem,
        tol=1e-9,
        max_iter=3,
        callback=lambda *a: told.append(a) or True,
    )
    assert not result.converged
    assert result.n_iter == 3
    assert told[-1][0] == 3
    assert result.gap > 0


def test_interrupt_keeps_what_was_learned(gram, y):
    problem = classifier(y, C)
    told = []

    def callback(steps, _):
        told.append(steps)
        if steps > 0:
            raise KeyboardInterrupt
        return False

    result = smo(gram_rows(gram), problem, tol=1e-9, max_iter=20, callback=callback)
    assert told[-1] == -1
    assert not result.converged
    assert np.count_nonzero(result.coef) > 0


def test_lazy_rows_stay_within_their_memory(gram, y):
    problem = classifier(y, C)
    asked = []

    def compute(rows):
        asked.append(rows.size)
        return gram[rows]

    rows = LazyRows(compute, np.diag(gram), memory=40 * 4 * N)
    assert rows.cache.nbytes <= 40 * 4 * N
    result = smo(rows, problem, tol=1e-4)
    assert result.converged
    assert rows.computed > len(rows.cache)  # rows were thrown out
    assert max(asked) <= 9
    held = np.flatnonzero(rows.slots >= 0)
    np.testing.assert_allclose(rows.cache[rows.slots[held]], gram[held], rtol=1e-6)
    np.testing.assert_array_equal(rows.owners[rows.slots[held]], held)


def test_a_part_of_a_part():
    K = np.arange(36.0).reshape(6, 6)
    K += K.T
    part = gram_rows(K).restricted(np.array([5, 0, 3, 2])).restricted(np.array([2, 0]))
    np.testing.assert_array_equal(part.norms, np.diag(K)[[3, 5]])
    np.testing.assert_array_equal(part.scores(np.array([0.0, 1.0])), K[[3, 5], 5])


def test_lazy_rows_are_completed_once_many_were_asked_for(gram, y):
    problem = classifier(y, C)
    squares = []

    def square(rows):
        squares.append(rows)
        return gram[np.ix_(rows, rows)]

    rows = LazyRows(lambda i: gram[i], np.diag(gram), memory=1e6, square=square)
    result = smo(rows, problem, tol=1e-5)
    expected = smo(gram_rows(gram), problem, tol=1e-5)
    assert result.objective == pytest.approx(expected.objective, rel=1e-5)
    assert len(squares) == 1
    assert rows.computed == N
    np.testing.assert_allclose(rows.cache[rows.slots], gram, rtol=1e-6)


def test_equal_rows_and_no_curvature():
    K = np.ones((6, 6))
    y = np.array([1.0, 1, 1, -1, -1, -1])
    result = smo(gram_rows(K), classifier(y, 1.0))
    assert result.converged
    assert result.intercept == pytest.approx(0)
    assert result.objective == pytest.approx(6)  # nothing can be told apart


@pytest.mark.parametrize("kind", ["dense", "float32", "sparse", "lazy", "part"])
def test_scores_of_columns(gram, kind):
    coef = np.random.default_rng(0).normal(size=(N, 3)) * (np.arange(N) % 3 > 0)[:, None]
    rows = rows_of(kind, gram)
    np.testing.assert_allclose(rows.scores(coef), gram @ coef, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(rows.scores(coef[:, 1]), gram @ coef[:, 1], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(rows.norms, np.diag(gram), rtol=1e-6)


def assert_certified(result, optimum):
    """The optimum lies within the gap, and the gap is small."""
    slack = 1e-5 * optimum
    assert result.objective - result.gap - slack <= optimum <= result.objective + slack
    assert result.gap <= 0.02 * optimum


@pytest.mark.parametrize("kind", ["sparse", "lazy", "part"])
@pytest.mark.parametrize("squared", [False, True], ids=["hinge", "squared_hinge"])
def test_descent_with_a_penalized_intercept(gram, y, kind, squared):
    problem = Hinge(squared).problem(y, C, constant=0.5)
    expected = icd(gram_rows(gram), problem, tol=1e-8, max_iter=20_000)
    tol = 1e-3 if kind == "lazy" else 1e-8
    found = icd(rows_of(kind, gram, 130), problem, tol=tol, max_iter=20_000)
    assert found.converged
    assert_certified(found, expected.objective)
    scores = [gram @ r.coef + r.intercept for r in (found, expected)]
    np.testing.assert_allclose(*scores, atol=2e-2 if kind == "lazy" else 1e-5)


def test_lazy_descent_of_a_regression(gram, points):
    t = np.sin(points[:, 0])
    problem = EpsilonInsensitive(0.1).problem(t, C, constant=1.0)
    expected = icd(gram_rows(gram), problem, tol=1e-8, max_iter=20_000)
    rows = rows_of("lazy", gram, 120)
    found = icd(rows, problem, tol=1e-3, max_iter=20_000)
    assert rows.computed > len(rows.cache)
    assert_certified(found, expected.objective)


def test_crammer_and_singer_on_a_sparse_matrix(gram, points):
    labels = np.digitize(points[:, 0] + points[:, 1], [0.8, 1.6])
    course = {"n_classes": 3, "constant": 0.5, "tol": 1e-7, "max_iter": 20_000}
    results = [
        crammer_singer(rows_of(kind, gram), labels, np.full(N, C), **course)
        for kind in ("dense", "sparse", "part")
    ]
    assert results[0].objective == pytest.approx(results[2].objective, rel=1e-8)
    assert results[0].objective == pytest.approx(results[1].objective, rel=1e-8)
    np.testing.assert_allclose(results[0].coef, results[1].coef, atol=1e-3)


def blocks_of(n, rng):
    """Some rows of a matrix, overlapping, in any order; the last block is all of them."""
    parts = [rng.permutation(n)[:size] for size in (2, 7, 40)] + [np.arange(n)]
    return np.concatenate(parts), np.cumsum([0, *map(len, parts)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("exact", [None, (1e-12, 100_000, 50)])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_blocks_are_the_problems_one_by_one(gram, dtype, exact, n_jobs):
    K, rng = gram.astype(dtype), np.random.default_rng(0)
    which, offsets = blocks_of(N, rng)
    signs = np.where(rng.random(which.size) < 0.5, -1.0, 1.0)
    signs[offsets[:-1]], signs[offsets[:-1] + 1] = 1, -1
    costs = rng.uniform(0.5, 3, which.size)
    found = smo_blocks(
        gram_rows(K), classifier(signs, costs), which, offsets, tol=1e-9, exact=exact, n_jobs=n_jobs
    )
    for result, b, e in zip(found, offsets[:-1], offsets[1:], strict=True):
        part = classifier(signs[b:e], costs[b:e])
        alone = smo(gram_rows(K[np.ix_(which[b:e], which[b:e])]), part, tol=1e-9)
        assert result.converged
        assert result.n_iter == alone.n_iter
        assert result.objective == pytest.approx(alone.objective, rel=1e-7)
        assert abs(result.gap) <= 1e-6 * result.objective
        assert result.coef.sum() == pytest.approx(0, abs=1e-9)
        inner = K.astype(np.float64)[np.ix_(which[b:e], which[b:e])]
        least = 1e-10 if exact and e - b <= exact[2] else 1e-8
        assert violation(inner, result.coef, part) < least
        np.testing.assert_allclose(inner @ result.coef + result.intercept,
                                   inner @ alone.coef + alone.intercept, atol=1e-5)  # fmt: skip


def test_blocks_go_on_where_steps_did_not_suffice(gram, y):
    problem, which, offsets = classifier(y, C), np.arange(N), np.array([0, N])
    (begun,) = smo_blocks(gram_rows(gram), problem, which, offsets, tol=TIGHT, max_iter=3)
    assert begun.n_iter == 3
    assert not begun.converged
    assert begun.gap > 0
    after = smo(gram_rows(gram), problem, tol=TIGHT, start=begun.dual)
    whole = smo(gram_rows(gram), problem, tol=TIGHT)
    assert after.objective == pytest.approx(whole.objective, rel=1e-6)


def test_blocks_of_values_far_from_1_are_left_to_others():
    problem = classifier(np.array([1.0, -1.0]), C)
    assert smo_blocks(gram_rows(1e40 * np.eye(2)), problem, [0, 1], [0, 2]) is None
    with pytest.raises(ValueError, match="total 0"):
        smo_blocks(gram_rows(np.eye(2)), Problem(np.ones(2), -1, 1), [0, 1], [0, 2])


@pytest.mark.parametrize(
    ("which", "offsets"), [([0, 2], [0, 2]), ([0, -1], [0, 2]), ([0, 1], [0, 3]), ([0, 1], [1, 0])]
)
def test_blocks_of_rows_that_are_not_there_are_refused(which, offsets):
    with pytest.raises(ValueError, match="out of range"):
        smo_blocks(gram_rows(np.eye(2)), classifier(np.array([1.0, -1.0]), C), which, offsets)


@pytest.mark.parametrize("kind", ["dense", "float32"])
@pytest.mark.parametrize("kernel", [Gaussian(0.5), Intersection()], ids=["equal norms", "others"])
def test_more_rows_than_are_compared_at_a_time(kernel, kind):
    X = np.random.default_rng(0).gamma(0.7, size=(517, 4))
    y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] > 1.2, 1.0, -1.0)
    K = kernel.gram(X)
    result = smo(rows_of(kind, K), classifier(y, C), tol=1e-5)
    theirs = SVC(kernel="precomputed", C=C, tol=1e-5).fit(K, y)
    coef = np.zeros(517)
    coef[theirs.support_] = theirs.dual_coef_[0]
    assert result.converged
    np.testing.assert_allclose(result.objective, y @ coef - 0.5 * coef @ K @ coef, rtol=1e-5)
    products = K @ result.coef if kind == "dense" else K.astype(np.float32) @ result.coef
    problem = classifier(y, C)
    certified = problem.certified(result.coef, products, result.intercept, 0, True)
    np.testing.assert_allclose(result.objective, certified.objective, rtol=1e-10)
    np.testing.assert_allclose(result.gap, certified.gap, rtol=1e-6)


@pytest.mark.parametrize("n", [1, 3, 130, 400])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_first_entry_beyond_the_norms(n, dtype):
    norms = np.random.default_rng(n).uniform(0.5, 2, n)
    K = np.asarray(np.outer(norms, norms), dtype)
    which = np.arange(n)[::-1].astype(np.int64)
    assert core.first_beyond(K, which, norms, 1e-5) == (-1, -1)
    K[n // 2, n - 1] *= -1.1
    assert core.first_beyond(K, which, norms, 1e-5) == (n // 2, n - 1)
