r"""Kernelized sorting to the cells of a grid, for up to tens of thousands of rows.

**Problem.** As in :mod:`hilbin.dependence.sorting`, with the cells of a grid for places, under

.. math:: L = \exp(-m \|u - v\|^2 / \mathrm{median}) ,

where the median is that of all squared distances of two cells. For small :math:`m` the problem is
smooth, for large :math:`m` it has detail and many optima: :math:`m = 1, 2, 4, 8, 16` one after the
other, each from the solution before.

**Algorithm.** Rows start in strips: by the first kernel component into columns of the grid, and by
the second within a column. A sweep divides the cells into parts of a few hundred and assigns the
rows of every part to its cells anew, by the linearized objective

.. math:: G_{ic} = \sum_k K_{ik} L(p_k, c) .

The objective is convex for positive definite kernels, and parts do not share cells, so that a sweep
never lowers it. Parts are windows of the grid, moved by half their side after every other sweep,
and in between, while :math:`L` is smooth, random sets of cells, which lets rows travel. Without the
term :math:`k = i`, which holds rows where they are, a sweep often gains more, but may lose: this is
tried first. Sweeps end where two gain less than a thousandth. At the end rows with a Gram matrix,
if they are not too many, trade places in pairs as long as that gains anything.

**Cost.** A product over the cells is one over rows and one over columns of the grid, as :math:`L`
is. So :math:`n` rows with :math:`q` features take :math:`O(n^{3/2} q)` per sweep, beside the
assignments, and memory for :math:`n q` numbers; rows with a Gram matrix take :math:`O(n^2)`.

**Reference.** N. Quadrianto, A. Smola, L. Song and T. Tuytelaars, *Kernelized Sorting*, 2010.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.signal import fftconvolve
from sklearn.utils import check_random_state

from hilbin._arrays import Array
from hilbin._parameters import require_positive
from hilbin.dependence.sorting import RISES, assign, components, require_room
from hilbin.dependence.swaps import swapped
from hilbin.dependence.views import View, as_view

SHARPNESS = (1, 2, 4, 8, 16)  # values of m, one after the other
SMOOTH = 8  # m below which parts are also random sets of cells
SIDE = 20  # cells of the side of a window
MOST_SWEEPS = 12
RISES_ON_GRID = 1e-3  # share of the objective that is worth another sweep
MOST_SWAPPED = 2500  # rows that trade places in pairs; fewer, if they have features
RATIO = 4 / 3  # width by height of a grid that was not given


@dataclass(frozen=True)
class GridSorting:
    """What :func:`sort_to_grid` found.

    Attributes
    ----------
    cells : ndarray of shape (n, 2)
        The row and the column of the grid where each row of ``X`` is; all differ.
    shape : (int, int)
        Height and width of the grid.
    objective, cka : float
        As in :class:`Sorting`, for the sharpest kernel of cells.

    Examples
    --------
    >>> from hilbin.dependence import sort_to_grid
    >>> sort_to_grid([[3.0], [1], [2]], (1, 3)).shape
    (1, 3)
    """

    cells: Array
    shape: tuple[int, int]
    objective: float
    cka: float


def sort_to_grid(
    X: Any,
    shape: Any = None,
    kernel: Any = None,
    *,
    start: Any = None,
    sharpness: Sequence[float] = SHARPNESS,
    random_state: Any = 0,
) -> GridSorting:
    r"""Place rows in the cells of a grid so that similar rows are near each other.

    It is :func:`kernelized_sorting` with the cells of the grid, under :math:`e^{-m \|u - v\|^2 /
    \mathrm{median}}` with :math:`m` = 1, 2, 4, 8 and 16, one after the other.

    Parameters
    ----------
    X : array-like or sparse of shape (n, d)
        Rows, or their Gram matrix if ``kernel`` is ``"precomputed"``.
    shape : (height, width) or array of bool of shape (height, width), optional
        The grid, or a mask of the cells that may be used. There may be more cells than rows. By
        default the smallest grid that is about 4 wide to 3 high.
    kernel
        Kernel of the rows, as in :func:`hsic`. With a map of :mod:`hilbin.maps`, or the linear
        kernel, nothing of the size of all pairs is computed: tens of thousands of rows can be
        sorted.
    start : array of shape (n, 2), optional
        Cells to start from, all different; by default rows are put into strips by their first two
        kernel components.
    sharpness : sequence of float, default (1, 2, 4, 8, 16)
        Values of :math:`m`.
    random_state : int, RandomState or None, default 0
        Random seed of the parts of the grid that are assigned together.

    Returns
    -------
    sorting : GridSorting
        :func:`hilbin.plot.montage` draws pictures at its ``cells``.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.dependence import sort_to_grid
    >>> X = np.random.default_rng(0).uniform(size=(20, 2))
    >>> sorting = sort_to_grid(X, (4, 5))
    >>> sorting.cells.shape, bool(sorting.cka > 0.5)
    ((20, 2), True)
    """
    x = as_view(X, kernel, "x")
    mask = _mask(shape, len(x))
    cells = np.argwhere(mask)
    require_room(len(x), len(cells), "shape")
    if not len(sharpness):
        raise ValueError("sharpness must have one value at least")
    for m in sharpness:
        require_positive("sharpness", m)
    random = check_random_state(random_state)
    median = median_distance(mask)
    places = _strips(x, cells) if start is None else _checked_cells(start, mask, len(x))
    for m in sharpness:
        grid = Grid(cells, mask.shape, m / median)
        places = _settled(x, grid, places, m < SMOOTH, random)
    if len(x) <= MOST_SWAPPED and (x.features is None or len(x) <= SIDE**2):
        places = swapped(x.gram, grid.near(np.arange(len(cells)), np.arange(len(cells))), places)
    height, width = mask.shape
    return GridSorting(cells[places], (height, width), *grid.alignment(x, places))


def grid_alignment(
    X: Any, cells: Any, shape: Any, kernel: Any = None, *, sharpness: float = SHARPNESS[-1]
) -> tuple[float, float]:
    """Return the objective and the centered alignment of rows and the cells that they are in.

    Parameters are those of :func:`sort_to_grid`; ``sharpness`` is one value of :math:`m`.
    """
    x, mask = as_view(X, kernel, "x"), _mask(shape, len(X))
    grid = Grid(np.argwhere(mask), mask.shape, sharpness / median_distance(mask))
    return grid.alignment(x, _checked_cells(cells, mask, len(x)))


@dataclass(frozen=True)
class Grid:
    """Cells under the kernel ``exp(-sharpness * ||u - v||^2)``, a product over both axes."""

    cells: Array
    shape: tuple[int, ...]
    sharpness: float

    @cached_property
    def factors(self) -> tuple[Array, Array]:
        """The kernel of the rows, and that of the columns of the grid."""
        rows, columns = (np.arange(size)[:, None] - np.arange(size) for size in self.shape)
        return np.exp(-self.sharpness * rows**2), np.exp(-self.sharpness * columns**2)

    @cached_property
    def windows(self) -> list[list[Array]]:
        """Windows of cells, as they are and moved by half their side."""
        return [_windows(self.cells, moved) for moved in (0, SIDE // 2)]

    def near(self, places: Array, others: Array) -> Array:
        """Return the kernel between the cells of some numbers and others."""
        (r, c), (s, d) = self.cells[places].T, self.cells[others].T
        rows, columns = self.factors
        found: Array = rows.take(s, axis=1).take(r, axis=0)
        found *= columns.take(d, axis=1).take(c, axis=0)
        return found

    def field(self, values: Array, places: Array, power: int = 1) -> Array:
        """Return the sum of values of rows, weighted by the kernel of their cells, at all cells."""
        height, width = self.shape
        rows, columns = (factor**power for factor in self.factors)
        placed = np.zeros((height, width, values.shape[1]))
        placed[tuple(self.cells[places].T)] = values
        summed = (rows @ placed.reshape(height, -1)).reshape(placed.shape)
        found: Array = np.matmul(columns, summed)[tuple(self.cells.T)]
        return found

    def value(self, x: View, places: Array) -> float:
        """Return the objective."""
        if x.features is not None:
            return float(np.vdot(x.features, self.field(x.features, places)[places]))
        return float(np.vdot(x.gram, self.near(places, places)))

    def alignment(self, x: View, places: Array) -> tuple[float, float]:
        """Return the objective, and the centered alignment of the rows and their places."""
        value = self.value(x, places)
        norms = x.product(x) * self.norm(places)
        return value, value / float(np.sqrt(norms)) if norms > 0 else 0.0

    def norm(self, places: Array) -> float:
        """Return the squared norm of the centered kernel of the cells that are used."""
        ones = np.ones((len(places), 1))
        squares = float(self.field(ones, places, 2)[places].sum())
        sums = self.field(ones, places)[places].ravel()
        return squares - 2 * float(sums @ sums) / len(places) + float(sums.mean()) ** 2


def _settled(x: View, grid: Grid, places: Array, smooth: bool, random: Any) -> Array:
    """Sweep over parts of the grid until two sweeps gain little; return the places."""
    value, idle = grid.value(x, places), 0
    whole = len(grid.windows[0]) == 1
    for sweep in range(MOST_SWEEPS):
        windows = grid.windows[sweep // 2 % 2] if smooth else grid.windows[sweep % 2]
        if whole:
            windows = grid.windows[0]
        elif smooth and sweep % 2 == 0:
            n = len(grid.cells)
            windows = np.array_split(random.permutation(n), max(1, n // SIDE**2))
        before = value
        for own in (False, True):
            proposed = _assigned(x, grid, places, windows, own)
            found = grid.value(x, proposed)
            if found > value + RISES * abs(value):
                places, value = proposed, found
                break
        idle = idle + 1 if value - before <= RISES_ON_GRID * abs(value) else 0
        if idle == (1 if whole else 2):
            break
    return places


def _assigned(x: View, grid: Grid, places: Array, parts: list[Array], own: bool) -> Array:
    """Return places after the rows of every part of the grid were assigned to its cells.

    ``own`` says whether what a row adds to its own surroundings counts.
    """
    places = places.copy()
    old = places.copy()
    rows_at = np.full(len(grid.cells), -1)
    rows_at[places] = np.arange(len(places))
    field = None if x.features is None else grid.field(x.features, old)
    for part in parts:
        rows = rows_at[part]
        rows = rows[rows >= 0]
        if rows.size == 0:
            continue
        if field is not None and x.features is not None:
            gains = x.features[rows] @ field[part].T
        else:
            gains = x.gram[rows] @ grid.near(old, part)
        if not own:
            gains -= x.diagonal[rows, None] * grid.near(old[rows], part)
        places[rows] = part[assign(gains)]
    return places


def _windows(cells: Array, moved: int) -> list[Array]:
    """Return the numbers of the cells in every window of the grid."""
    down, right = ((cells + moved) // SIDE).T
    keys = down * (int(right.max(initial=0)) + 1) + right
    order = np.argsort(keys, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)


def median_distance(mask: Array) -> float:
    """Return the median of the squared distances of two cells, from how often each occurs."""
    counts = np.rint(fftconvolve(mask.astype(float), mask[::-1, ::-1].astype(float)))
    height, width = mask.shape
    down, right = np.arange(1 - height, height), np.arange(1 - width, width)
    squares, where = np.unique(down[:, None] ** 2 + right**2, return_inverse=True)
    numbers = np.bincount(where.ravel(), counts.ravel())
    numbers[0] = 0  # a cell and itself
    ends = np.cumsum(numbers)
    if ends[-1] == 0:
        return 1.0
    # every pair is counted twice
    middle = np.searchsorted(ends, [ends[-1] / 2, ends[-1] / 2 + 1])
    return float(squares[middle].mean())


def _strips(x: View, cells: Array) -> Array:
    """Return places by the first component along the longer side, by the second across."""
    n = len(x)
    found = components(x.gram)[0] if x.features is None else _feature_components(x.features)
    longer = int(np.argmax(np.ptp(cells, axis=0)[::-1])) if n else 0  # 0: columns are strips
    along, across = cells[:, 1 - longer], cells[:, longer]
    order = np.lexsort((across, along))
    used = order[np.linspace(0, len(cells) - 1, n).round().astype(int)]
    strip = along[used]
    rows = np.argsort(found[:, 0], kind="stable")
    places = np.empty(n, np.intp)
    for begin, end in _runs(strip):
        inside = rows[begin:end]
        places[inside[np.argsort(found[inside, 1], kind="stable")]] = used[begin:end]
    return places


def _runs(values: Array) -> list[tuple[int, int]]:
    ends = [*(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
    return list(zip([0, *ends[:-1]], ends, strict=True))


def _feature_components(features: Array) -> Array:
    """Return the first two components of centered features, as those of a Gram matrix."""
    q = features.shape[1]
    vectors = eigh(features.T @ features, subset_by_index=[max(0, q - 2), q - 1])[1][:, ::-1]
    found = features @ vectors
    largest = found[np.argmax(np.abs(found), axis=0), np.arange(found.shape[1])]
    found = found * np.where(largest < 0, -1, 1)
    return np.hstack([found, np.zeros((len(found), 2 - found.shape[1]))])


def _checked_cells(start: Any, mask: Array, n: int) -> Array:
    """Return the numbers of given cells among those of the mask."""
    cells = np.asarray(start)
    fits = cells.shape == (n, 2) and cells.dtype.kind in "iu"
    if fits and n:
        fits = bool((cells >= 0).all() and (cells < mask.shape).all())
        fits = fits and bool(mask[tuple(cells.T)].all()) and len(np.unique(cells, axis=0)) == n
    if not fits:
        raise ValueError(f"start must be {n} different cells of the grid, as an array of ({n}, 2)")
    numbers = np.cumsum(mask).reshape(mask.shape) - 1
    found: Array = numbers[tuple(cells.T)]
    return found


def _mask(shape: Any, n: int) -> Array:
    """Return which cells may be used."""
    given = np.asarray(default_shape(n) if shape is None else shape)
    if given.ndim == 2 and given.dtype == bool:
        return given
    if given.shape != (2,) or given.dtype.kind not in "iu" or given.min() < 1:
        raise ValueError(
            f"shape must be (height, width), or a mask of bool of two dimensions, got {shape!r}"
        )
    return np.ones(given, bool)


def default_shape(n: int) -> tuple[int, int]:
    """Return the grid of n cells, or a few more, whose sides are nearest to 4 and 3."""
    height = max(1, round(np.sqrt(n / RATIO)))
    return height, -(-n // height)
