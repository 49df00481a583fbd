"""Sources of words, and their histogram over the cells of a pyramid."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hilbin.images._base import ImageTransformer, Row
from hilbin.images._grids import Array, Cut, WordGrid, count, paint
from hilbin.images.read import Pixels

WHOLE = (1, 1)


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
        return histogram(self.words(image), image.shape, [WHOLE], [1.0], self.n_words)

    def to_pixels(self, image: Pixels, contributions: Array) -> NDArray[np.float64]:
        """Share contributions of the words out over the pixels where they occur."""
        return spread_words(self.words(image), image.shape, [WHOLE], self.n_words, contributions)

    @property
    def _n_features_out(self) -> int:
        return self.n_words


def histogram(
    grids: list[WordGrid],
    shape: tuple[int, ...],
    cuts: Sequence[Cut],
    weights: Sequence[float] | Array,
    n_words: int,
) -> NDArray[np.float32]:
    """Weighted histograms of all cells of all cuts of the image, divided by the number of words."""
    total = sum(grid.ids.shape[0] * grid.ids.shape[1] for grid in grids)
    scale = 1 / total if total > 0 else 0.0
    parts = [
        float(weight) * scale * count(grids, shape, cut, n_words).ravel()
        for weight, cut in zip(weights, cuts, strict=True)
    ]
    return np.concatenate(parts).astype(np.float32, copy=False)


def spread_words(
    grids: list[WordGrid],
    shape: tuple[int, ...],
    cuts: Sequence[Cut],
    n_words: int,
    contributions: Array,
) -> NDArray[np.float64]:
    """Share contributions of (cell, word) features out over the pixels.

    Every occurrence of a word in a cell takes an equal part of what the word contributes there;
    what a word contributes by being absent from a cell is spread evenly over the cell.
    """
    heat = np.zeros(shape[:2])
    shares = [np.zeros(grid.ids.shape) for grid in grids]
    ends = np.cumsum([rows * columns * n_words for rows, columns in cuts])
    parts = np.split(np.asarray(contributions, np.float64), ends[:-1])
    for cut, part in zip(cuts, parts, strict=True):
        here = part.reshape(-1, n_words)
        counted = count(grids, shape, cut, n_words)
        present = counted > 0
        rate = np.divide(here, counted, out=np.zeros(here.shape), where=present)
        heat += _over_cells(np.where(present, 0.0, here).sum(axis=1), shape, cut)
        for grid, share in zip(grids, shares, strict=True):
            cells = grid.cell_numbers(shape, cut)
            share += rate[cells if grid.ids.ndim == 2 else cells[:, :, None], grid.ids]
    whole = [
        share if grid.weights is None else (share * grid.weights).sum(axis=2)
        for grid, share in zip(grids, shares, strict=True)
    ]
    return heat + paint(shape, grids, whole)


def _over_cells(amounts: Array, shape: tuple[int, ...], cut: Cut) -> NDArray[np.float64]:
    """Every cell's amount, spread evenly over its pixels."""
    pixels = WordGrid(np.empty(shape[:2]), np.arange(shape[0]), np.arange(shape[1]), 1)
    cells = pixels.cell_numbers(shape, cut)
    sizes = np.bincount(cells.ravel(), minlength=amounts.size)
    empty = amounts[sizes == 0].sum()  # an image smaller than the cut has such cells
    return (amounts / np.maximum(sizes, 1))[cells] + empty / cells.size
