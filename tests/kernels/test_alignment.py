"""Alignment with labels and targets, its gradient, and weights of kernels."""

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.datasets import load_iris

from hilbin.kernels import (
    Gaussian,
    Linear,
    OnColumns,
    align_weights,
    alignment_gradient,
    kernel_alignment,
)

seeds = st.integers(0, 2**32 - 1)


def random_problem(seed, n=20, m=4):
    """Gram matrices of m random views, labels of 3 classes, and targets of regression."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % 3)
    views = [rng.normal(size=(n, 2)) + 0.5 * y[:, None] * (j % 2) for j in range(m)]
    return [Gaussian(0.5).gram(view) for view in views], y, rng.normal(size=n) + y


# Alignment.
@given(seed=seeds)
def test_alignment_with_labels_is_that_of_the_definition(seed):
    (K, *_), y, _ = random_problem(seed)
    assert kernel_alignment(K, y) == pytest.approx(oracles.centered_alignment(K, y), abs=1e-12)
    names = np.array(["b", "c", "a"])[y]
    assert kernel_alignment(K, names) == pytest.approx(kernel_alignment(K, y), abs=1e-12)


@given(seed=seeds)
def test_alignment_that_is_not_centered(seed):
    (K, *_), y, _ = random_problem(seed)
    signs = np.where(y == 0, -1.0, 1.0)
    expected = signs @ K @ signs / (20 * np.linalg.norm(K))
    assert kernel_alignment(K, y == 0, centered=False) == pytest.approx(expected, abs=1e-12)
    by_matrices = np.sum(K * np.outer(signs, signs)) / np.linalg.norm(K)
    by_matrices /= np.linalg.norm(np.outer(signs, signs))
    assert expected == pytest.approx(by_matrices, abs=1e-12)


@given(seed=seeds, factor=st.floats(1e-3, 1e3), shift=st.floats(-10, 10))
def test_alignment_with_targets_of_regression(seed, factor, shift):
    (K, *_), _, t = random_problem(seed)
    H = np.eye(20) - 1 / 20
    Kc, L = H @ K @ H, H @ np.outer(t, t) @ H
    expected = np.sum(Kc * L) / np.linalg.norm(Kc) / np.linalg.norm(L)
    assert kernel_alignment(K, t) == pytest.approx(expected, abs=1e-10)
    assert kernel_alignment(factor * K + shift, factor * t + shift) == pytest.approx(expected)
    two = np.c_[t, t**2]
    L = H @ two @ two.T @ H
    expected = np.sum(Kc * L) / np.linalg.norm(Kc) / np.linalg.norm(L)
    assert kernel_alignment(K, two) == pytest.approx(expected, abs=1e-10)


def test_whole_numbers_are_labels_unless_said_otherwise():
    K = Linear().gram(np.arange(6.0)[:, None])
    assert kernel_alignment(K, np.arange(6), task="regression") == pytest.approx(1)
    assert kernel_alignment(K, np.arange(6)) < 0.9
    labels = [0.5, 0.5, 1.5, 1.5, 2.5, 2.5]
    found = kernel_alignment(K, labels, task="classification")
    assert found == pytest.approx(kernel_alignment(K, [0, 0, 1, 1, 2, 2]))


def test_a_constant_matrix_agrees_with_nothing():
    assert kernel_alignment(np.full((6, 6), 0.1), [0, 1] * 3) == 0
    with pytest.raises(ValueError, match="K is constant"):
        alignment_gradient(np.full((6, 6), 0.1), [0, 1] * 3)
    with pytest.raises(ValueError, match=r"grams\[1\] is constant"):
        align_weights([np.eye(6), np.full((6, 6), 0.1)], [0, 1] * 3)


@given(seed=seeds, regression=st.booleans())
def test_gradient_is_that_of_differences(seed, regression):
    (K, other, *_), y, t = random_problem(seed)
    y, h = t if regression else y, 1e-4
    slope = np.sum(alignment_gradient(K, y) * other)
    values = [kernel_alignment(K + s * h * other, y) for s in (-2, -1, 1, 2)]
    difference = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * h)
    assert slope == pytest.approx(difference, abs=1e-9)


# Weights.
def iris_grams():
    X, y = load_iris(return_X_y=True)
    kernels = [OnColumns(Gaussian("median"), [j]).resolve(X) for j in range(4)]
    return [kernel.gram(X) for kernel in kernels], y


def test_iris():
    grams, y = iris_grams()
    singles = [kernel_alignment(K, y) for K in grams]
    np.testing.assert_allclose(singles, [0.4376, 0.2235, 0.8064, 0.8357], atol=5e-5)
    assert kernel_alignment(sum(grams), y) == pytest.approx(0.753844, abs=1e-6)
    weights = align_weights(grams, y)
    np.testing.assert_allclose(weights, [0, 0, 0.276897, 0.723103], atol=1e-6)
    best = sum(w * K for w, K in zip(weights, grams, strict=True))
    assert kernel_alignment(best, y) == pytest.approx(0.841087, abs=1e-6)
    independent = align_weights(grams, y, method="independent")
    np.testing.assert_allclose(independent, np.array(singles) / sum(singles), rtol=1e-12)


@given(seed=seeds, regression=st.booleans())
def test_no_other_weights_are_aligned_better(seed, regression):
    grams, y, t = random_problem(seed)
    y = t if regression else y
    weights = align_weights(grams, y)
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1)

    def misses(u):
        return -kernel_alignment(np.tensordot(u, grams, 1), y)

    found = -misses(weights)
    for start in np.random.default_rng(seed).uniform(0.1, 1, size=(3, len(grams))):
        other = minimize(misses, start, method="L-BFGS-B", bounds=[(0, None)] * len(grams))
        assert -other.fun <= found + 1e-7


@given(seed=seeds, factor=st.floats(1e-4, 1e4))
def test_scaling_a_kernel_changes_nothing_but_its_weight(seed, factor):
    grams, y, _ = random_problem(seed)
    weights = align_weights(grams, y)
    other = align_weights([factor * grams[0], *grams[1:]], y) * np.r_[factor, 1, 1, 1]
    np.testing.assert_allclose(other / other.sum(), weights, atol=1e-7)


@given(seed=seeds)
def test_equal_kernels_share(seed):
    grams, y, _ = random_problem(seed)
    alone = align_weights(grams, y)
    shared = align_weights([grams[1], *grams], y)
    assert shared[0] == pytest.approx(shared[2], abs=1e-6)
    np.testing.assert_allclose(
        np.r_[shared[1], shared[0] + shared[2], shared[3:]], alone, atol=1e-6
    )
    assert np.array_equal(shared, align_weights([grams[1], *grams], y))


def test_kernels_that_disagree():
    K = np.where(np.equal.outer([0, 0, 1, 1], [0, 0, 1, 1]), 0.0, 1.0) + np.eye(4)
    with pytest.raises(ValueError, match="no kernel agrees with the labels"):
        align_weights([K, K], [0, 0, 1, 1])
    with pytest.raises(ValueError, match="no kernel agrees with the labels"):
        align_weights([K], [0, 0, 1, 1], method="independent")
    weights = align_weights([K, np.outer([-1, -1, 1, 1], [-1, -1, 1, 1])], [0, 0, 1, 1])
    assert weights == pytest.approx([0, 1])


@pytest.mark.parametrize(
    ("grams", "y", "options", "complaint"),
    [
        ([], [0, 1], {}, "grams must be one or more Gram matrices, got none"),
        ([np.eye(3), np.eye(2)], [0, 1, 1], {}, r"grams\[1\] has 2 rows, but grams\[0\] has 3"),
        ([np.eye(3), np.ones((3, 2))], [0, 1, 1], {}, r"grams\[1\] must be square"),
        ([np.diag([1, np.nan])], [0, 1], {}, r"grams\[0\]\[1, 1\] = nan is not finite"),
        ([np.eye(2)], [1, 1], {}, "one class only"),
        ([np.eye(2)], [0.5, 0.5], {}, "y is the same for all rows"),
        ([np.eye(2)], [0, 1], {"method": "best"}, "method must be one of"),
        ([np.eye(2)], [0, 1], {"task": "ranking"}, "task must be one of"),
        ([np.eye(3)], [0, 1], {}, "inconsistent"),
    ],
)
def test_bad_input(grams, y, options, complaint):
    with pytest.raises(ValueError, match=complaint):
        align_weights(grams, y, **options)


def test_many_classes_need_centering():
    with pytest.raises(ValueError, match="y has 3 classes: alignment that is not centered"):
        kernel_alignment(np.eye(3), [0, 1, 2], centered=False)
