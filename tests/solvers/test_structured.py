"""The structured risk: known optima, planes below the risk, certificates, and fewer passes."""

import itertools

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.datasets import load_digits

from hilbin.solvers import Bounded, StructuredRisk, bundle, crammer_singer, gram_rows
from hilbin.solvers.structured import CachedLines, least_on_line

LAM = 1e-3


def joint_of(n_classes):
    def joint(x, y):
        features = np.zeros((n_classes, x.size))
        features[y] = x
        return features.ravel()

    return joint


def zero_one(y, z):
    return float(y != z)


def worst_class(n_classes):
    def worst(x, v, y):
        return int(np.argmax(v.reshape(n_classes, -1) @ x + (np.arange(n_classes) != y)))

    return worst


def multiclass(X, y, n_classes, **options):
    options = {"weights": 1 / len(X)} | options
    return StructuredRisk(worst_class(n_classes), joint_of(n_classes), zero_one, X, y, **options)


@pytest.fixture(scope="module")
def digits():
    """The rows of the check values: scaled, with a constant, in random order."""
    X, y = load_digits(return_X_y=True)
    X = np.hstack([X / 16, np.ones((len(X), 1))])
    order = np.random.default_rng(0).permutation(len(X))[:900]
    return X[order], y[order]


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 30)
    return rng.normal(size=(30, 4)) + np.eye(3, 4)[y], y


def objective(X, y, v, n_classes, lam):
    scores = X @ v.reshape(n_classes, -1).T
    return oracles.crammer_singer_objective(lam * v @ v, scores, y, 1 / len(X))


def test_two_classes():
    X, y = np.array([[1.0], [-1.0]]), [0, 1]
    found = bundle(multiclass(X, y, 2), 0.5, tol=1e-9)
    np.testing.assert_allclose(found.coef[0], [0.5, -0.5], atol=1e-9)
    np.testing.assert_allclose(found.objective, 0.125, atol=1e-9)
    assert found.n_iter == 2


def test_digits_have_the_known_optimum(digits):
    X, y = digits
    found = bundle(multiclass(X, y, 10), LAM, tol=1e-4)
    assert found.converged
    np.testing.assert_allclose(found.objective, 0.07553, atol=1e-5)
    np.testing.assert_allclose(found.objective[0], objective(X, y, found.coef[0], 10, LAM))


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("lam", [0.3, 0.01])
def test_equals_crammer_singer(points, lam, rescaling):
    """With a loss of 0 or 1 both ways of rescaling are the same problem."""
    X, y = points
    worst = worst_class(3)

    def worst_product(x, v, label):  # 1 + difference for a wrong class, 0 for the right one
        scores = v.reshape(3, -1) @ x
        return int(np.argmax(np.where(np.arange(3) != label, 1 + scores - scores[label], 0)))

    oracle = worst if rescaling == "margin" else worst_product
    parts = (oracle, joint_of(3), zero_one, X, y)
    found = bundle(StructuredRisk(*parts, weights=1 / 30, rescaling=rescaling), lam, tol=1e-6)
    other = crammer_singer(
        gram_rows(X @ X.T), y, np.full(30, 1 / (lam * 30)), n_classes=3, tol=1e-8, max_iter=10**5
    )
    low, high = other.objective - other.gap, other.objective
    assert found.objective[0] - found.gap[0] <= lam * high + 1e-12
    assert found.objective[0] >= lam * low - 1e-12
    np.testing.assert_allclose(found.coef[0].reshape(3, -1), other.coef.T @ X, atol=5e-3)


def test_answers_that_are_kept_save_passes(digits):
    X, y = digits[0][:150], digits[1][:150]
    passes = [bundle(multiclass(X, y, 10, cache=c), 0.01, tol=1e-3).n_iter for c in (8, 0)]
    assert passes[0] < passes[1]
    plain = bundle(multiclass(X, y, 10), 0.01, tol=1e-3, line_search=False)
    assert plain.n_iter == passes[1]


@given(st.integers(0, 10_000))
def test_planes_support_the_risk(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(5, 2)), rng.integers(0, 3, 5)
    costs = rng.uniform(0.1, 2, (3, 3)) * (1 - np.eye(3))
    for rescaling in ("margin", "slack"):

        def h(x, v, label, z, rescaling=rescaling):
            score = (v.reshape(3, -1)[z] - v.reshape(3, -1)[label]) @ x
            cost = costs[label, z]
            return cost * (1 + score) if rescaling == "slack" else cost + score

        def worst(x, v, label, h=h):
            return int(np.argmax([h(x, v, label, z) for z in range(3)]))

        def cost(label, z):
            return costs[label, z]

        risk = StructuredRisk(worst, joint_of(3), cost, X, y, rescaling=rescaling)
        here, there = rng.normal(size=(2, 6))
        found = risk.at(here)
        exact = sum(max(h(x, here, t, z) for z in range(3)) for x, t in zip(X, y, strict=True))
        np.testing.assert_allclose([found.value, found.height], exact)
        assert risk.at(there).value >= found.height + found.gradient @ (there - here) - 1e-9


def test_the_estimate_on_a_line_is_below_the_risk(points):
    X, y = points
    risk = multiclass(X, y, 3)
    lines = CachedLines(risk)
    rng = np.random.default_rng(0)
    for _ in range(12):
        lines.look(rng.normal(size=(1, risk.size)), np.array([0]), np.ones((1, 1)))
    old, new = rng.normal(size=(2, risk.size))
    heights, slopes = lines.estimates(old, new)
    assert heights.shape == slopes.shape == (8, 30)
    for t in np.linspace(0, 1, 7):
        tops = (heights + t * slopes).max(axis=0)
        estimate = risk.weights @ np.maximum(tops, 0)
        assert estimate <= risk.at(old + t * (new - old)).value + 1e-9


@given(st.integers(0, 10_000))
def test_least_on_line(seed):
    rng = np.random.default_rng(seed)
    heights, slopes = rng.normal(size=(2, 4, 3))
    weights = rng.uniform(size=3)
    parabola = np.array([0.0, rng.normal(), rng.uniform(0, 2)])

    def value(t):
        tops = (heights + slopes * t).max(axis=0)
        return weights @ np.maximum(tops, 0) + parabola[1] * t + parabola[2] * t**2

    best = least_on_line(heights, slopes, weights, parabola)
    assert value(best) <= min(value(t) for t in np.linspace(0, 1, 201)) + 1e-9


def test_bounds_keep_the_certificate():
    """An oracle that looks at half of the outputs: the bound is right, the gap says so."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), rng.integers(0, 4, 20)
    exact = worst_class(4)

    def hasty(x, v, label):
        best = exact(x, v, label)
        value = v.reshape(4, -1)[best] @ x + (best != label)
        seen = [z for z in range(4) if z in (label, (label + 1) % 4)]
        found = max(seen, key=lambda z: v.reshape(4, -1)[z] @ x + (z != label))
        return Bounded(found, value)

    parts = (joint_of(4), zero_one, X, y)
    optimum = bundle(StructuredRisk(exact, *parts, weights=0.05), 0.1, tol=1e-8).objective[0]
    found = bundle(StructuredRisk(hasty, *parts, weights=0.05), 0.1, tol=1e-3, max_iter=200)
    assert not found.converged
    assert found.objective[0] - found.gap[0] <= optimum <= found.objective[0]
    np.testing.assert_allclose(
        found.objective[0], objective(X, y, found.coef[0], 4, 0.1), rtol=1e-9
    )


def test_a_raised_value_alone_would_lie():
    """|v - 2|, its value raised by 0.3: as one number it claims a bound above the optimum."""

    def one(V, which):
        return abs(V[:, 0] - 2) + 0.3, np.sign(V - 2)

    def two(V, which):
        return abs(V[:, 0] - 2) + 0.3, np.sign(V - 2), abs(V[:, 0] - 2)

    optimum = 0.5  # at v = 2, with lam = 0.25
    lied, honest = (bundle(f, 0.25, size=1, tol=1e-9, max_iter=60) for f in (one, two))
    np.testing.assert_allclose(lied.objective - lied.gap, 0.8)
    assert honest.objective[0] - honest.gap[0] <= optimum + 1e-9
    assert not honest.converged


def test_a_penalty_keeps_a_weight_positive():
    """lam / 2 v^2 + |v + 1| + M max(0, -v): a small M is not enough."""

    def penalized(M):
        def risk(V, which):
            v = V[:, 0]
            value = abs(v + 1) + M * np.maximum(0, -v)
            return value, (np.sign(v + 1) - M * (v < 0))[:, None]

        return bundle(risk, 0.5, size=1, tol=1e-9)

    np.testing.assert_allclose(penalized(0.5).coef, -1, atol=1e-6)
    np.testing.assert_allclose(penalized(2.0).coef, 0, atol=1e-6)
    np.testing.assert_allclose(penalized(2.0).objective, 1, atol=1e-6)


@pytest.mark.parametrize("cache", [8, 0])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_weights_that_must_not_be_negative(points, sign, cache):
    X, y = points
    X = X * [sign, 1, 1, 1]
    held = [0, 5]
    risk = multiclass(X, y, 3, nonnegative=held, cache=cache)
    found = bundle(risk, 0.1, tol=1e-6, max_iter=5000)
    assert found.converged
    v = risk.allowed(found.coef[0])
    assert (v[held] >= 0).all()
    value = objective(X, y, v, 3, 0.1)
    assert value <= found.objective[0] + 1e-12

    # the same as a smooth problem: slacks are unknowns
    n, size = len(X), risk.size
    rows = [
        (i, joint_of(3)(X[i], z) - joint_of(3)(X[i], y[i]), float(z != y[i]))
        for i, z in itertools.product(range(n), range(3))
    ]
    A = np.array([d for _, d, _ in rows])
    which, costs = np.array([i for i, _, _ in rows]), np.array([c for _, _, c in rows])
    optimum = minimize(
        lambda u: 0.05 * u[:size] @ u[:size] + u[size:].mean(),
        np.concatenate([np.zeros(size), np.full(n, 1.0)]),
        jac=lambda u: np.concatenate([0.1 * u[:size], np.full(n, 1 / n)]),
        method="SLSQP",
        bounds=[(0 if k in held else None, None) for k in range(size)] + [(None, None)] * n,
        constraints={
            "type": "ineq",
            "fun": lambda u: u[size:][which] - costs - A @ u[:size],
            "jac": lambda u: np.hstack([-A, np.eye(n)[which]]),
        },
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert optimum.success
    np.testing.assert_allclose(value, optimum.fun, rtol=1e-4)
    assert found.objective[0] - found.gap[0] <= optimum.fun + 1e-8


def test_start(points):
    X, y = points
    risk = multiclass(X, y, 3)
    first = bundle(risk, 0.1, tol=1e-6)
    again = bundle(risk, 0.1, tol=1e-6, start=first.coef)
    assert again.n_iter < first.n_iter
    np.testing.assert_allclose(again.objective, first.objective, rtol=2e-6)
    once = bundle(risk, 0.1, start=first.coef, max_iter=1)
    np.testing.assert_allclose(once.objective, first.objective, rtol=1e-12)
    np.testing.assert_array_equal(once.coef, first.coef)
    assert once.objective[0] - once.gap[0] <= first.objective[0]
    with pytest.raises(ValueError, match="start must be finite"):
        bundle(risk, 0.1, start=np.zeros((1, 2)))
    with pytest.raises(ValueError, match="inner"):
        bundle(risk, 0.1, start=first.coef, inner=np.eye(risk.size))


def test_threads_change_nothing(points):
    X, y = points
    one, two = (bundle(multiclass(X, y, 3, n_jobs=n), 0.1) for n in (1, 2))
    np.testing.assert_array_equal(one.coef, two.coef)


def test_weights_are_repetitions(points):
    X, y = points
    counts = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = bundle(multiclass(X, y, 3, weights=0.1 * counts), tol=1e-8)
    repeated = np.repeat(np.arange(len(X)), counts)
    again = bundle(multiclass(X[repeated], y[repeated], 3, weights=0.1), tol=1e-8)
    np.testing.assert_allclose(weighted.objective, again.objective, rtol=2e-8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": lambda y, z: -1.0}, r"example 0: the loss of an output is -1\.0"),
        ({"loss": lambda y, z: np.nan}, "example 0: the loss of an output is nan"),
        (
            {"joint": lambda x, y: np.zeros(2 if x[0] < 1 else 3)},
            r"example 1: .*\(3,\), not \(2,\)",
        ),
        ({"joint": lambda x, y: np.array([x[0], np.inf])}, "example 0: joint .* is not finite"),
        ({"oracle": lambda x, v, y: 1 - y}, "example 0: the oracle .* not the worst"),
        ({"oracle": lambda x, v, y: Bounded(y, -5.0)}, "example 0: the bound -5 is below"),
    ],
)
def test_errors_name_the_example(change, message):
    parts = {"oracle": worst_class(2), "joint": joint_of(2), "loss": zero_one} | change

    def evaluate():
        StructuredRisk(**parts, X=np.array([[0.5], [2.0]]), Y=[0, 1]).at(np.array([3.0, -3.0]))

    with pytest.raises(ValueError, match=message):
        evaluate()


def test_bad_arguments():
    parts = worst_class(2), joint_of(2), zero_one
    with pytest.raises(ValueError, match="2 examples and 1 outputs"):
        StructuredRisk(*parts, np.ones((2, 1)), [0])
    with pytest.raises(ValueError, match="rescaling must be one of"):
        StructuredRisk(*parts, np.ones((1, 1)), [0], rescaling="other")
