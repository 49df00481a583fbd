"""Kernelized sorting, against all assignments, the spec's values and its laws."""

import hypothesis.strategies as st
import numpy as np
import oracles
import pytest
from hypothesis import given

from hilbin.dependence import cka, kernelized_sorting, sort_to_grid
from hilbin.dependence.swaps import pair_gains, swapped
from hilbin.kernels import Gaussian, Linear

H7 = oracles.centering(7)
both = {"kernel_x": "precomputed", "kernel_y": "precomputed"}


def grid(height, width):
    return np.argwhere(np.ones((height, width), bool)).astype(float)


def test_values():
    x = np.array([0.3, 2, 1.1, 5, 4.2, 3.3, 0.9])
    K, L = (-H7 @ (v[:, None] - v) ** 2 @ H7 for v in (x, np.arange(7.0)))
    sorting = kernelized_sorting(K, L, **both, start=np.arange(7))
    assert sorting.places.tolist() == [0, 3, 2, 6, 5, 4, 1]


def test_a_shuffled_grid_is_found_again():
    cells = grid(4, 4)
    K = Gaussian(0.5).gram(cells)
    order = np.random.default_rng(0).permutation(16)
    sorting = kernelized_sorting(K[np.ix_(order, order)], K, **both, n_init=200)
    assert sorting.objective == pytest.approx(20.257015, abs=1e-6)
    assert sorting.cka == pytest.approx(1)


@given(seed=st.integers(0, 1000), extra=st.integers(0, 2))
def test_steps_rise_to_no_more_than_the_optimum(seed, extra):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(5, 2)), rng.normal(size=(5 + extra, 3))
    K, L = Gaussian(0.5).gram(X), Gaussian(0.2).gram(Y)
    sorting = kernelized_sorting(K, L, **both, n_init=20)
    assert (np.diff(sorting.path) > 0).all()
    assert np.unique(sorting.places).size == 5
    best = oracles.best_sorting(K, L)
    assert sorting.path[-1] == sorting.objective <= best + 1e-10
    one = kernelized_sorting(K, L, **both)
    assert one.objective <= sorting.objective
    matched = L[np.ix_(sorting.places, sorting.places)]
    assert sorting.cka == pytest.approx(cka(K, matched, "precomputed", "precomputed"))


def test_numbers_are_sorted():
    x = np.random.default_rng(0).permutation(30).reshape(-1, 1)
    places = kernelized_sorting(x, np.arange(30.0).reshape(-1, 1), Linear(), Linear()).places
    assert places.tolist() in (x[:, 0].tolist(), (29 - x[:, 0]).tolist())


@given(seed=st.integers(0, 1000))
def test_swaps_end_where_no_pair_gains(seed):
    rng = np.random.default_rng(seed)
    K, L = (rng.normal(size=(6, 6)) for _ in range(2))
    K, L = K + K.T, L + L.T

    def value(places):
        return np.sum(K * L[np.ix_(places, places)])

    def traded(places, i, j):
        other = places.copy()
        other[[i, j]] = places[[j, i]]
        return value(other) - value(places)

    start = rng.permutation(6)
    gains = pair_gains(K, L[np.ix_(start, start)])
    expected = [[traded(start, i, j) for j in range(6)] for i in range(6)]
    np.testing.assert_allclose(gains, expected, atol=1e-11)
    places = swapped(K, L, start)
    assert sorted(places) == [*range(6)]
    assert value(places) >= value(start)
    assert max(traded(places, i, j) for i in range(6) for j in range(i)) <= 1e-7


def test_a_grid_keeps_neighbors_together():
    rng = np.random.default_rng(0)
    cells = grid(6, 8)
    X = cells[rng.permutation(48)]
    sorting = sort_to_grid(X, (6, 8))
    near = np.abs(sorting.cells[:, None] - sorting.cells).sum(axis=2) == 1
    apart = np.linalg.norm(X[:, None] - X, axis=2)
    assert apart[near].mean() < 0.5 * apart.mean()


def test_masks_and_more_cells_than_rows():
    X = np.random.default_rng(0).normal(size=(20, 2))
    mask = np.hypot(*(np.indices((7, 7)) - 3)) < 3.2
    sorting = sort_to_grid(X, mask)
    assert mask.sum() > 20
    assert sorting.shape == (7, 7)
    assert mask[tuple(sorting.cells.T)].all()
    assert len(np.unique(sorting.cells, axis=0)) == 20
    K = Gaussian("median").resolve(X).gram(X)
    np.testing.assert_array_equal(sort_to_grid(K, mask, "precomputed").cells, sorting.cells)


@pytest.mark.parametrize(("n", "shape"), [(1, (1, 1)), (12, (3, 4)), (13, (3, 5)), (48, (6, 8))])
def test_default_shape(n, shape):
    X = np.random.default_rng(0).normal(size=(n, 2))
    sorting = sort_to_grid(X, kernel=Gaussian())
    assert sorting.shape == shape
    assert (sorting.cells < shape).all()


def test_equal_rows_go_anywhere():
    sorting = sort_to_grid(np.ones((6, 2)), (2, 3))
    assert len(np.unique(sorting.cells, axis=0)) == 6
    assert sorting.objective == sorting.cka == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kernelized_sorting(np.eye(4), np.eye(3)), "4 rows, but Y has only 3"),
        (lambda: sort_to_grid(np.eye(5), (2, 2)), "5 rows, but shape has only 4"),
        (lambda: sort_to_grid(np.eye(5), (2.5, 2)), r"shape must be \(height, width\)"),
        (lambda: sort_to_grid(np.eye(5), np.zeros((5, 5), bool)), "only 0 places"),
        (lambda: kernelized_sorting(np.eye(3), np.eye(3), start=[0, 0, 1]), "start must be 3"),
        (lambda: kernelized_sorting(np.eye(3), np.eye(3), n_init=0), "n_init must be"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
