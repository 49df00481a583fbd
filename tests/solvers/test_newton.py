"""Newton's method finds what a long descent finds, for any C."""

import numpy as np
import oracles
import pytest

from hilbin.solvers import EpsilonInsensitive, Hinge, Problem, gram_rows, icd
from hilbin.solvers.newton import newton


def rows_that_nothing_separates(n=120, d=3):
    rng = np.random.default_rng(0)
    X = np.floor(100 * rng.random((n, d)))
    y = np.where(X[:, 0] + 40 * rng.normal(size=n) > 50, 1.0, -1.0)
    return oracles.intersection(X, X), y


@pytest.mark.parametrize("C", [1e-4, 1e-2, 1.0, 1e2, 1e4])
def test_the_optimum_for_any_c(C):
    K, y = rows_that_nothing_separates()
    problem = Hinge(squared=True).problem(y, np.full(len(y), C), constant=10.0)
    found = newton(K, problem)
    assert found.converged
    assert found.n_iter < 40
    assert abs(found.gap) < 1e-8 * found.objective
    assert (found.coef * y >= 0).all()
    if C <= 1e-2:
        descent = icd(gram_rows(K), problem, tol=1e-9, max_iter=100_000)
        np.testing.assert_allclose(found.coef, descent.coef, rtol=1e-6, atol=1e-9)


def test_starts_weights_and_rows_left_out():
    K, y = rows_that_nothing_separates()
    rng = np.random.default_rng(0)
    problem = Hinge(squared=True).problem(y, rng.uniform(0.1, 10, len(y)), constant=10.0)
    whole = newton(K, problem)
    again = newton(K, problem, start=whole.coef)
    assert again.n_iter == 1
    np.testing.assert_allclose(again.coef, whole.coef, rtol=1e-8, atol=1e-12)
    left_out = np.arange(len(y)) % 3 == 0
    some = newton(K, problem.without(left_out), start=whole.coef)
    assert not some.coef[left_out].any()
    alone = newton(K[np.ix_(~left_out, ~left_out)], problem.restricted(~left_out))
    np.testing.assert_allclose(some.coef[~left_out], alone.coef, rtol=1e-6, atol=1e-10)


def test_squares_without_bounds_are_a_ridge():
    K, t = rows_that_nothing_separates()
    problem = EpsilonInsensitive(0.0, squared=True).problem(t, np.full(len(t), 2.0), constant=1.0)
    expected = np.linalg.solve(K + 1 + np.diag(problem.diagonal), t)
    np.testing.assert_allclose(newton(K, problem).coef, expected, rtol=1e-6, atol=1e-10)


def test_callbacks_and_limits_end_it():
    K, y = rows_that_nothing_separates()
    problem = Hinge(squared=True).problem(y, np.full(len(y), 1e4), constant=10.0)
    for given in ({"max_iter": 2}, {"callback": lambda n_iter, _: n_iter < 2}):
        found = newton(K, problem, **given)
        assert (found.n_iter, found.converged) == (2, False)
        assert found.gap > 0


def test_what_it_is_not_for():
    K, y = rows_that_nothing_separates()
    for problem in (Problem(y, -1.0, 1.0), Problem(y, -1.0, 1.0, 1.0, epsilon=0.1)):
        with pytest.raises(ValueError, match="newton is for squared losses"):
            newton(K, problem)
