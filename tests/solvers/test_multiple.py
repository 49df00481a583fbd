"""Weights of kernels: duality, independent optima, and the laws of the weights."""

import itertools

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from hilbin.solvers import Hinge, gram_rows
from hilbin.solvers.multiple import least_distance, multiple
from hilbin.solvers.multiple_machines import (
    GroupedSums,
    StoredGrams,
    crammer_singer_trials,
    ridge_trials,
    svm_trials,
)
from hilbin.stats import Moments

NORMS = [1.0, 1.3, 2.0, 4.0, np.inf]


def views(seed, n=40, classes=2, widths=(2, 3, 4)):
    """Features of several descriptions, of which the last is noise, and labels."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    centers = [rng.normal(size=(classes, w)) for w in widths]
    rows = [c[labels] + rng.normal(size=(n, w)) for c, w in zip(centers, widths, strict=True)]
    rows[-1] = rng.normal(size=(n, widths[-1]))
    return rows, labels


def grams_of(features):
    return StoredGrams([z @ z.T for z in features])


def signs_of(labels):
    classes = np.unique(labels)
    return np.where(labels[:, None] == (classes[1:] if classes.size == 2 else classes), 1.0, -1.0)


def machines(features, labels, C=1.0):
    costs = np.full(labels.size, C)
    problems = [Hinge().problem(s, costs, total=0.0) for s in signs_of(labels).T]
    return svm_trials(grams_of(features), problems)


def ridges(features, labels, alpha=1.0):
    return ridge_trials(grams_of(features), signs_of(labels), alpha)


def together(features, labels, C=1.0):
    costs = np.full(labels.size, C)
    n_classes = np.unique(labels).size
    return crammer_singer_trials(grams_of(features), labels, costs, n_classes=n_classes)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", [machines, ridges, together])
@settings(max_examples=8)
@given(seed=st.integers(0, 10_000), classes=st.integers(2, 4), size=st.sampled_from([0.1, 1, 30]))
def test_the_lower_bound_is_below_the_value_in_every_round(kind, norm, seed, classes, size):
    features, labels = views(seed, classes=classes)
    found = multiple(kind(features, labels, size), 3, norm=norm)
    primal, dual = found.history.T
    assert (dual <= primal).all()
    assert (np.diff(primal)[:-1] <= 0).all()  # the last may be without small weights
    assert primal[-1] == found.objective
    assert (np.diff(dual) >= 0).all()
    assert found.converged
    assert found.gap <= 1e-3 * found.objective
    assert np.linalg.norm(found.weights, norm) == pytest.approx(1)
    assert (found.weights >= 0).all()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("alpha", [0.1, 10.0])
def test_least_squares_is_the_block_norm_of_explicit_features(norm, alpha):
    features, labels = views(3, classes=3)
    T = signs_of(labels)
    value, coef = oracles.block_norm_optimum(features, T, alpha, norm)
    found = multiple(ridge_trials(grams_of(features), T, alpha), 3, norm=norm, tol=1e-6)
    assert found.objective == pytest.approx(value, rel=3e-6)
    dual = found.solution.coef
    parts = np.split(coef, np.cumsum([z.shape[1] for z in features])[:-1])
    for z, weight, part in zip(features, found.weights, parts, strict=True):
        np.testing.assert_allclose(weight * z.T @ dual, part, atol=3e-3)


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_two_kernels_are_as_good_as_a_search_over_their_weights(norm):
    features, labels = views(1, n=30, widths=(2, 2))
    matrices = [z @ z.T for z in features]
    signs = signs_of(labels)[:, 0]
    found = multiple(machines(features, labels, 2.0), 2, norm=norm, tol=1e-5)
    first = np.linspace(0, 1, 41)
    second = (1 - first**norm) ** (1 / norm)
    tried = [
        oracles.svm_optimum(a * matrices[0] + b * matrices[1], signs, 2.0)
        for a, b in zip(first, second, strict=True)
    ]
    assert found.objective <= min(tried) * (1 + 1e-4)
    assert found.objective >= min(tried) * (1 - 2e-2)


def test_equal_kernels_share_the_weight_of_one():
    features, labels = views(5)
    one = multiple(machines(features, labels), 3, tol=1e-6)
    twice = multiple(machines([*features, features[0]], labels), 4, tol=1e-6)
    assert twice.objective == pytest.approx(one.objective, rel=1e-5)
    assert twice.weights[0] + twice.weights[3] == pytest.approx(one.weights[0], abs=5e-3)


def test_two_equal_runs_are_equal():
    features, labels = views(6, classes=3)
    runs = [multiple(machines(features, labels), 3) for _ in range(2)]
    np.testing.assert_array_equal(runs[0].weights, runs[1].weights)
    np.testing.assert_array_equal(runs[0].history, runs[1].history)


def test_six_views_of_ten_classes_take_few_rounds():
    features, labels = views(0, n=200, classes=10, widths=(8, 7, 6, 5, 4, 3))
    matrices = []
    for z in features:
        squares = np.square(z[:, None] - z).sum(axis=2)
        matrices.append(np.exp(-squares / np.median(squares)))
    problems = [Hinge().problem(s, np.full(200, 10.0), total=0.0) for s in signs_of(labels).T]
    found = multiple(svm_trials(StoredGrams(matrices), problems), 6)
    assert found.converged
    assert found.n_iter <= 15


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_a_start_at_the_solution_is_as_good(norm):
    features, labels = views(8, classes=3)
    first = multiple(machines(features, labels), 3, norm=norm)
    begin = 7 * first.weights, first.solution  # of any norm
    again = multiple(machines(features, labels), 3, norm=norm, start=begin)
    assert again.history[0, 0] == pytest.approx(first.objective, rel=1e-3)
    assert again.objective == pytest.approx(first.objective, rel=1e-3)
    assert norm == 1 or again.n_iter == 1  # for 1, planes have to be found again


def test_sums_say_the_same_as_gram_matrices():
    features, labels = views(9, classes=3)
    T = signs_of(labels)
    ends = np.cumsum([0, 2, 3, 4])
    groups = [np.arange(b, e) for b, e in itertools.pairwise(ends)]
    sums = GroupedSums.of(Moments.of(np.hstack(features), T), groups, normalize=False)
    for norm in NORMS:
        ours = multiple(sums.trials(0.5), 3, norm=norm, tol=1e-6)
        theirs = multiple(ridge_trials(grams_of(features), T, 0.5), 3, norm=norm, tol=1e-6)
        assert ours.objective == pytest.approx(theirs.objective, rel=1e-9)
        np.testing.assert_allclose(ours.weights, theirs.weights, atol=1e-6)


def test_weights_of_rows_are_copies():
    features, labels = views(10)
    T, copies = signs_of(labels), np.arange(labels.size) % 3 + 1
    weighted = ridge_trials(grams_of(features), T, 1.0, weight=copies.astype(float))
    repeated = [np.repeat(z, copies, axis=0) for z in features]
    one = multiple(weighted, 3, tol=1e-6)
    other = multiple(
        ridge_trials(grams_of(repeated), np.repeat(T, copies, axis=0), 1.0), 3, tol=1e-6
    )
    assert one.objective == pytest.approx(other.objective, rel=1e-9)


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), d=st.integers(1, 5), k=st.integers(1, 8))
def test_least_distance(seed, d, k):
    rng = np.random.default_rng(seed)
    sides, inside = rng.normal(size=(k, d)), rng.normal(size=d)
    least = sides @ inside - rng.exponential(size=k)
    found = least_distance(sides, least)
    assert (sides @ found >= least - 1e-8).all()
    peer = minimize(
        lambda z: z @ z,
        inside,
        jac=lambda z: 2 * z,
        constraints={"type": "ineq", "fun": lambda z: sides @ z - least},
        method="SLSQP",
    )
    assert found @ found <= peer.fun + 1e-6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_a_sum_that_are_added_up_later(dtype):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(3, 600, 4)).astype(dtype)
    grams = grams_of(features)
    weights = np.array([0.5, 0.0, 2.0])
    whole = grams.combined(weights)
    lazy = grams.combined(weights, np.array([3, 100]))
    coef = np.zeros(600)
    coef[[1, 3, 599]] = 1.0, -2.0, 0.5
    np.testing.assert_allclose(lazy.scores(coef), whole.scores(coef), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(lazy.norms, whole.norms, rtol=1e-5)
    np.testing.assert_allclose(
        grams.products(coef[:, None])[2][:, 0], gram_rows(features[2] @ features[2].T).scores(coef)
    )


def test_factors_are_multiplied_matrices():
    features, labels = views(12, classes=3)
    matrices, factors = [z @ z.T for z in features], np.array([0.5, 2.0, 7.0])
    given = StoredGrams(matrices, factors)
    made = StoredGrams([f * K for f, K in zip(factors, matrices, strict=True)])
    weights, coef = np.array([0.2, 0.0, 0.8]), signs_of(labels)
    np.testing.assert_allclose(given.matrix(weights), made.matrix(weights))
    np.testing.assert_allclose(given.products(coef), made.products(coef))


def test_a_callback_ends_it():
    features, labels = views(11)
    seen = []

    def stop(n_iter, gap):
        seen.append((n_iter, gap))
        return n_iter < 2

    found = multiple(machines(features, labels), 3, tol=1e-8, callback=stop)
    assert [n for n, _ in seen] == [1, 2]
    assert not found.converged
    assert found.gap > 0
