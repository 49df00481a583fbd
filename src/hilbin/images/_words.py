"""Sources of words, and their histogram over the cells of a pyramid."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilbin.images._base import ImageTransformer, Row
from hilbin.images._grids import Array, WordGrid, cell_of, count, paint
from hilbin.images.read import Pixels


class WordSource(ImageTransformer):
    """Base of what makes words of an image; as a transformer, the histogram of the whole image.

    A subclass gives :meth:`words` and ``n_words``.
    """

    n_words: int

    def words(self, image: Pixels) -> list[WordGrid]:
        """Grids of words of one image, as :meth:`read` gives it."""
        raise NotImplementedError

    def describe(self, image: Pixels) -> Row:
        """The share of every word among the words of the image."""
        return histogram(self.words(image), image.shape, (1.0,), self.n_words)

    def spread(self, image: Pixels, contributions: Array) -> NDArray[np.float64]:
        """Share contributions of the words out over the pixels where they occur."""
        return spread_words(self.words(image), image.shape, 1, self.n_words, contributions)

    @property
    def _n_features_out(self) -> int:
        return self.n_words


def histogram(
    grids: list[WordGrid], shape: tuple[int, ...], weights: Any, n_words: int
) -> NDArray[np.float32]:
    """Histograms of all cells of all levels, coarse to fine, divided by the number of words."""
    counts = pyramid_counts(grids, shape, len(weights), n_words)
    total = counts[0].sum()
    scale = 1 / total if total > 0 else 0.0
    return np.concatenate(
        [np.float32(w * scale) * c.ravel() for w, c in zip(weights, counts, strict=True)]
    )


def pyramid_counts(
    grids: list[WordGrid], shape: tuple[int, ...], levels: int, n_words: int
) -> list[NDArray[np.float32]]:
    """Counts per cell of every level, coarse to fine; a cell is the sum of its four parts."""
    counts = [count(grids, shape, 2 ** (levels - 1), n_words)]
    for _ in range(levels - 1):
        fine = counts[0]
        half = fine.shape[0] // 2
        counts.insert(0, fine.reshape(half, 2, half, 2, n_words).sum(axis=(1, 3)))
    return counts


def spread_words(
    grids: list[WordGrid],
    shape: tuple[int, ...],
    levels: int,
    n_words: int,
    contributions: Array,
) -> NDArray[np.float64]:
    """Share contributions of (cell, word) features out over the pixels.

    Every occurrence of a word in a cell takes an equal part of what the word contributes there;
    what a word contributes by being absent from a cell is spread evenly over the cell.
    """
    rates, absent = [], []
    counts = pyramid_counts(grids, shape, levels, n_words)
    parts = np.split(np.asarray(contributions, np.float64), _ends(levels, n_words)[:-1])
    for counted, part in zip(counts, parts, strict=True):
        here = part.reshape(counted.shape)
        present = counted > 0
        rates.append(np.divide(here, counted, out=np.zeros(here.shape), where=present))
        absent.append(np.where(present, 0.0, here).sum(axis=2))
    shares = []
    for grid in grids:
        share = np.zeros(grid.ids.shape)
        for level, rate in enumerate(rates):
            cells = cell_of(*grid.cells(shape, 2**level), 2**level)
            cells = cells if grid.ids.ndim == 2 else cells[:, :, None]
            share += rate.reshape(-1, n_words)[cells, grid.ids]
        if grid.weights is not None:
            share = (share * grid.weights).sum(axis=2)
        shares.append(share)
    return paint(shape, grids, shares) + sum(_over_cells(a, shape) for a in absent)


def _ends(levels: int, n_words: int) -> Array:
    return np.cumsum([4**level * n_words for level in range(levels)])


def _over_cells(amounts: Array, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Every cell's amount, spread evenly over its pixels."""
    side = amounts.shape[0]
    whole = WordGrid(np.empty(shape[:2]), np.arange(shape[0]), np.arange(shape[1]), 1)
    cells = cell_of(*whole.cells(shape, side), side)
    pixels = np.bincount(cells.ravel(), minlength=side * side)
    empty = amounts.ravel()[pixels == 0].sum()  # an image smaller than the grid has such cells
    density = amounts.ravel() / np.maximum(pixels, 1)
    return density[cells] + empty / cells.size
