"""Kernelized sorting, against all assignments, the spec's values and its laws."""

import hypothesis.strategies as st
import numpy as np
import oracles
import pytest
from hypothesis import given
from scipy.spatial.distance import cdist, pdist

from hilbin.dependence import cka, kernelized_sorting, sort_to_grid
from hilbin.dependence.grid import Grid, _assigned, _windows, grid_alignment, median_distance
from hilbin.dependence.swaps import pair_gains, swapped
from hilbin.dependence.views import as_view
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


@given(seed=st.integers(0, 1000), shape=st.sampled_from([(4, 4), (5, 5), (3, 4), (8, 8)]))
def test_a_shuffled_grid_is_found_again(seed, shape):
    """Both components of a square grid have the same variance: solvers may turn them at will."""
    K = Gaussian(0.5).gram(grid(*shape))
    order = np.random.default_rng(seed).permutation(len(K))
    sorting = kernelized_sorting(K[np.ix_(order, order)], K, **both)
    assert sorting.cka == pytest.approx(1)
    if shape == (4, 4):
        assert sorting.objective == pytest.approx(20.257015, abs=1e-6)


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


def masks(seed):
    rng = np.random.default_rng(seed)
    mask = rng.uniform(size=rng.integers(1, 9, 2)) < 0.7
    mask[0, 0] = True
    return mask


@given(seed=st.integers(0, 1000))
def test_the_median_distance_is_that_of_all_pairs_of_cells(seed):
    mask = masks(seed)
    apart = pdist(np.argwhere(mask), "sqeuclidean")
    assert median_distance(mask) == (np.median(apart) if apart.size else 1)


@given(seed=st.integers(0, 1000))
def test_sums_over_the_grid_are_those_of_its_kernel(seed):
    mask, rng = masks(seed), np.random.default_rng(seed)
    cells = np.argwhere(mask)
    places = rng.permutation(len(cells))[: rng.integers(1, len(cells) + 1)]
    grid = Grid(cells, mask.shape, 0.2)
    L = np.exp(-0.2 * cdist(cells, cells, "sqeuclidean"))
    np.testing.assert_allclose(grid.near(places, np.arange(len(cells))), L[places])
    values = rng.normal(size=(places.size, 3))
    np.testing.assert_allclose(grid.field(values, places), L[:, places] @ values, atol=1e-12)
    H = oracles.centering(places.size)
    used = L[np.ix_(places, places)]
    assert grid.norm(places) == pytest.approx(np.sum((H @ used @ H) ** 2), abs=1e-10)
    if places.size > 1:
        x = as_view(values, Linear(), "x")
        assert grid.value(x, places) == pytest.approx(np.sum(used * x.gram))


@given(seed=st.integers(0, 1000), wide=st.booleans())
def test_a_sweep_over_parts_never_lowers_the_objective(seed, wide):
    rng = np.random.default_rng(seed)
    cells = grid(6, 7).astype(int)
    X = rng.normal(size=(40, 50 if wide else 3))  # with fewer columns the view has features
    x, lattice = as_view(X, Linear(), "x"), Grid(cells, (6, 7), 0.1)
    assert (x.features is None) == wide
    places = rng.permutation(42)[:40]
    parts = np.array_split(rng.permutation(42), 5)
    after = _assigned(x, lattice, places, parts, own=True)
    assert np.unique(after).size == 40
    for part in parts:
        assert np.isin(after, part).sum() == np.isin(places, part).sum()
    assert lattice.value(x, after) >= lattice.value(x, places) * (1 - 1e-12)


def test_windows_divide_the_cells():
    cells = np.argwhere(np.ones((47, 33), bool))
    for moved in (0, 10):
        windows = _windows(cells, moved)
        assert sorted(np.concatenate(windows)) == [*range(len(cells))]
        for window in windows:
            assert np.ptp(cells[window], axis=0).max() < 20


def test_features_and_their_gram_matrix_sort_alike():
    X = np.random.default_rng(1).normal(size=(700, 3))  # several windows
    one = sort_to_grid(X, (25, 29), Linear())
    two = sort_to_grid(X @ X.T, (25, 29), "precomputed")
    assert one.cka == pytest.approx(two.cka, rel=0.02)
    assert one.cka > 0.4
    matched = one.cells[:, None] - one.cells
    L = np.exp(-16 * np.sum(matched**2, axis=2) / median_distance(np.ones((25, 29), bool)))
    assert one.cka == pytest.approx(cka(X, L, Linear(), "precomputed"))
    assert grid_alignment(X, one.cells, (25, 29), Linear())[1] == pytest.approx(one.cka)


def test_more_rows_than_a_window_are_sorted_about_as_well_as_at_once(monkeypatch):
    X = np.random.default_rng(0).uniform(size=(450, 2))
    parts = sort_to_grid(X, (15, 30), Linear())
    monkeypatch.setattr("hilbin.dependence.grid.SIDE", 30)
    whole = sort_to_grid(X, (15, 30), Linear())
    assert parts.objective > 0.97 * whole.objective


def test_a_start_is_improved_on():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    cells = grid(5, 6).astype(int)[rng.permutation(30)]
    before = grid_alignment(X, cells, (5, 6))[1]
    assert sort_to_grid(X, (5, 6), start=cells, sharpness=(16,)).cka > before


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
        (lambda: sort_to_grid(np.eye(2), (1, 2), start=[[0, 0], [0, 0]]), "2 different cells"),
        (lambda: sort_to_grid(np.eye(2), (1, 2), start=[[0, 0], [0, 2]]), "2 different cells"),
        (lambda: sort_to_grid(np.eye(2), (1, 2), sharpness=()), "sharpness must have one"),
        (lambda: sort_to_grid(np.eye(2), (1, 2), sharpness=(0,)), "sharpness must be"),
        (lambda: kernelized_sorting(np.eye(3), np.eye(3), n_init=0), "n_init must be"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
