"""An image is a bag of words, each at its place: grids of words, counted and painted.

Every kind of word sits on a regular grid of places: a code of the census transform at every pixel,
a quantized SIFT descriptor every few pixels. So an image is a short list of grids, and the
histograms of all cells of a spatial pyramid are counts over parts of their rows and columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilbin._core import core

Array = NDArray[Any]
Cut = tuple[int, int]  # rows and columns of cells that an image is cut into


@dataclass(frozen=True)
class LocalGrid:
    """Descriptors on a grid of places.

    Parameters
    ----------
    features : float32 array of shape (rows, columns, d)
    ys, xs : arrays of shape (rows,) and (columns,)
        Centers, in pixels; the middle of the first pixel is 0.
    size : float
        Side of the square that a descriptor covers.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images import LocalGrid
    >>> grid = LocalGrid(np.zeros((2, 3, 128)), np.array([6, 14]), np.array([6, 14, 22]), 16)
    """

    features: Array
    ys: Array
    xs: Array
    size: float


@dataclass(frozen=True)
class WordGrid:
    """Words on a grid of places.

    Parameters
    ----------
    ids : integer array of shape (rows, columns), or (rows, columns, m) with weights
        The word at every place, or the ``m`` words that share it.
    ys, xs : arrays of shape (rows,) and (columns,)
        Centers, in pixels; the middle of the first pixel is 0.
    size : float
        Side of the square that a word covers.
    weights : float array of the shape of ``ids``, optional
        The shares of the words.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images import WordGrid
    >>> grid = WordGrid(np.zeros((2, 3), np.int32), np.arange(2), np.arange(3), 1)
    >>> grid.cell_numbers((2, 3), (1, 3))
    array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)
    """

    ids: Array
    ys: Array
    xs: Array
    size: float
    weights: Array | None = None

    def cells(self, shape: tuple[int, ...], cut: Cut) -> tuple[Array, Array]:
        """In which rows and columns of cells of the image its own rows and columns lie."""
        found = []
        for places, length, parts in zip((self.ys, self.xs), shape[:2], cut, strict=True):
            cell = ((np.asarray(places) + 0.5) * (parts / length)).astype(np.int32)
            found.append(np.clip(cell, 0, parts - 1))
        return found[0], found[1]

    def cell_numbers(self, shape: tuple[int, ...], cut: Cut) -> Array:
        """Number of the cell of every place, row by row."""
        rows, columns = self.cells(shape, cut)
        return rows[:, None] * cut[1] + columns[None, :]


def count(grids: Sequence[WordGrid], shape: tuple[int, ...], cut: Cut, n_words: int) -> Array:
    """How often every word occurs in every cell: shape (rows * columns of cells, n_words)."""
    whole = all(grid.weights is None for grid in grids)
    counts = np.zeros((cut[0] * cut[1], n_words), np.float32 if whole else np.float64)
    for grid in grids:
        if grid.weights is None:
            rows, columns = grid.cells(shape, cut)
            core.count_cells(np.ascontiguousarray(grid.ids), rows, columns, cut[1], n_words, counts)
        else:
            place = grid.cell_numbers(shape, cut)[:, :, None] * n_words + grid.ids
            shares = np.bincount(place.ravel(), grid.weights.ravel(), counts.size)
            counts += shares.reshape(counts.shape)
    return counts


def paint(
    shape: tuple[int, ...], grids: Sequence[WordGrid], shares: Sequence[Array]
) -> NDArray[np.float64]:
    """Spread the share of every place evenly over the square that it covers, within the image."""
    corners = np.zeros((shape[0] + 1, shape[1] + 1))
    for grid, share in zip(grids, shares, strict=True):
        top, bottom = _extent(grid.ys, grid.size, shape[0])
        left, right = _extent(grid.xs, grid.size, shape[1])
        density = share / ((bottom - top)[:, None] * (right - left)[None, :])
        for rows, columns, sign in (
            (top, left, 1),
            (bottom, left, -1),
            (top, right, -1),
            (bottom, right, 1),
        ):
            np.add.at(corners, (rows[:, None], columns[None, :]), sign * density)
    return corners.cumsum(axis=0).cumsum(axis=1)[:-1, :-1]


def _extent(centers: Array, size: float, length: int) -> tuple[Array, Array]:
    """First pixel and the one after the last, at least one, within the image."""
    begin = np.clip(np.floor(np.asarray(centers) + 0.5 - size / 2 + 0.5), 0, length - 1)
    end = np.clip(np.floor(np.asarray(centers) + 0.5 + size / 2 + 0.5), begin + 1, length)
    return begin.astype(np.intp), end.astype(np.intp)
