r"""Rows in the cells of a grid, near each other if they are alike: kernelized sorting, twice.

First all rows are sorted by the linear kernel of their components, from smooth to as sharp as a
neighborhood of some hundred cells: this gives the large regions. Then rows are sorted within blocks
of at most :data:`BLOCK` cells, by the kernel of diffusion on the graph of their ten nearest
neighbors (:func:`hilbin.kernels.diffusion_kernel`), from where they are: this puts equals side by
side, and follows clusters whatever their size and shape. The kernel of cells is sharpened until it
is that of a cell and those around it. Up to :data:`BLOCK` rows there is one block. Nothing is
computed for all pairs of more rows than a block has.
"""

from collections.abc import Callable

import numpy as np

from hilbin._arrays import Array
from hilbin.dependence import GridSorting, sort_to_grid
from hilbin.dependence.grid import default_shape, grid_alignment, median_distance
from hilbin.kernels import Gaussian, Linear, diffusion_kernel, knn_graph

BLOCK = 2500
REGIONS = 4  # sharpness at which regions end, for a block
AROUND = 0.5  # largest exponent of the kernel of two cells side by side
NEIGHBORS = 10  # of a row in the graph
TIME = 5  # of the diffusion on it


def arrange(
    rows: Array, *, seed: int = 0, callback: Callable[[int, int], object] | None = None
) -> GridSorting:
    """Put rows into the cells of a grid of about 4 to 3.

    Parameters
    ----------
    rows : array of shape (n, q)
        Components.
    seed : int, default=0
        Random seed.
    callback : callable, optional
        Called with the number of rows that are in their cells, and with ``n``.

    Returns
    -------
    sorting : GridSorting
        ``objective`` and ``cka`` are for the linear kernel of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.auto.arrangement import arrange
    >>> arrange(np.random.default_rng(0).normal(size=(48, 3))).shape
    (6, 8)
    """
    n = len(rows)
    shape = default_shape(n)
    blocks = _blocks(shape)
    sharpness = [1.0]
    while sharpness[-1] < REGIONS * len(blocks):
        sharpness.append(2 * sharpness[-1])
    first = sort_to_grid(rows, shape, Linear(), sharpness=sharpness, random_state=seed)
    cells, done = first.cells.copy(), 0
    for begin, end in blocks:
        inside = np.flatnonzero(((cells >= begin) & (cells < end)).all(axis=1))
        if inside.size > 1:
            cells[inside] = begin + _detailed(
                rows[inside], cells[inside] - begin, end - begin, seed
            )
        done += inside.size
        if callback is not None:
            callback(done, n)
    return GridSorting(cells, shape, *grid_alignment(rows, cells, shape, Linear()))


def _detailed(rows: Array, cells: Array, shape: Array, seed: int) -> Array:
    """Return cells of a block, sorted from where they are."""
    graph = knn_graph(Gaussian(), rows, n_neighbors=NEIGHBORS)
    sharpness, median = [float(REGIONS)], median_distance(np.ones(shape, bool))
    while 2 * sharpness[-1] <= AROUND * median:
        sharpness.append(2 * sharpness[-1])
    return sort_to_grid(
        diffusion_kernel(graph, TIME), tuple(map(int, shape)), "precomputed",
        start=cells, sharpness=sharpness, random_state=seed,
    ).cells  # fmt: skip


def _blocks(shape: tuple[int, int]) -> list[tuple[Array, Array]]:
    """Return the first cell and the one past the last of every block of the grid."""
    side = int(np.sqrt(BLOCK))
    if shape[0] * shape[1] <= BLOCK:
        return [(np.zeros(2, int), np.array(shape))]
    edges = [np.linspace(0, size, -(-size // side) + 1).round().astype(int) for size in shape]
    return [
        (np.array([top, left]), np.array([bottom, right]))
        for top, bottom in zip(edges[0], edges[0][1:], strict=False)
        for left, right in zip(edges[1], edges[1][1:], strict=False)
    ]
