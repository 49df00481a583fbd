"""The dual problem of a bundle: the optimum of pairwise exchanges, feasible to the last bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilbin.solvers.simplex import maximize_on_simplex


def value(H, b, alpha):
    return b @ alpha - 0.5 * alpha @ H @ alpha


def left(H, b, alpha):
    """What is left to gain, at most."""
    gradient = b - H @ alpha
    return gradient.max() - gradient @ alpha


def by_exchanges(H, b, tol):
    """Mass moves from the worst used corner to the best, until nothing is left to gain."""
    alpha = np.eye(len(b))[0]
    while left(H, b, alpha) > tol:
        gradient = b - H @ alpha
        i, j = gradient.argmax(), np.where(alpha > 0, gradient, np.inf).argmin()
        bend = H[i, i] + H[j, j] - 2 * H[i, j]
        move = min(alpha[j], (gradient[i] - gradient[j]) / bend if bend > 0 else np.inf)
        alpha[i] += move
        alpha[j] -= move
    return alpha


def problem(size, rank, seed, scale=1.0):
    rng = np.random.default_rng(seed)
    A = scale * rng.normal(size=(size, rank))
    A[size // 2] = A[0]
    return A @ A.T, rng.normal(size=size)


@given(
    st.integers(1, 12), st.integers(1, 8), st.integers(0, 10**6), st.sampled_from([1e-6, 1, 1e4])
)
def test_equals_pairwise_exchanges(size, rank, seed, scale):
    H, b = problem(size, rank, seed, scale)
    tol = 1e-9 * max(1, H.max())
    found = maximize_on_simplex(H, b, np.eye(size)[0], tol)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1, abs=1e-14)
    assert left(H, b, found) <= tol * (1 + 1e-6)
    slow = by_exchanges(H, b, 1e-6 * max(1, H.max()))
    assert value(H, b, found) >= value(H, b, slow) - tol


@settings(max_examples=20)
@given(st.integers(0, 10**6))
def test_a_warm_start_never_falls(seed):
    rng = np.random.default_rng(seed)
    H, b = problem(10, 4, seed)
    start = rng.dirichlet(np.ones(10)) * (rng.random(10) < 0.5)
    start = start / start.sum() if start.any() else np.eye(10)[3]
    for tol in (1e3, 1e-2, 1e-10):
        found = maximize_on_simplex(H, b, start, tol)
        assert value(H, b, found) >= value(H, b, start)
    assert left(H, b, found) <= 1e-9


def test_the_start_is_left_alone():
    H, b = problem(5, 5, 0)
    start = np.eye(5)[0]
    maximize_on_simplex(H, b, start, 1e-9)
    np.testing.assert_array_equal(start, np.eye(5)[0])


def test_planes_that_are_all_the_same():
    found = maximize_on_simplex(np.full((4, 4), 2.0), np.full(4, 3.0), np.eye(4)[1], 0.0)
    assert value(np.full((4, 4), 2.0), np.full(4, 3.0), found) == pytest.approx(2)


def test_no_curvature_takes_the_best_corner():
    found = maximize_on_simplex(np.zeros((3, 3)), np.array([1.0, 5.0, 2.0]), np.eye(3)[0], 0.0)
    np.testing.assert_allclose(found, [0, 1, 0])
