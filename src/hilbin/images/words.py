"""Visual words: an image is a bag of words, each at its place, counted over cells.

Every kind of word sits on a regular grid of places: a pixel word of the census transform at every
pixel, a quantized SIFT descriptor every few pixels. So an image is a short list of grids of words,
and the histograms of all cells of a spatial pyramid are counts over parts of their rows and
columns.

Level ``l`` of the pyramid cuts the image into ``2^l`` by ``2^l`` cells; the row is the histograms
of all cells of all levels, each level times its weight. Since the intersection of histograms is
homogeneous, the intersection kernel of two rows is the spatial pyramid match ``sum_l w_l sum_cells
sum_j min(h_j, h'_j)``, with Lazebnik's weights ``w_0 = 2^-L`` and ``w_l = 2^(l-L-1)`` for ``L + 1``
levels (Lazebnik, Schmid & Ponce, *Beyond bags of features*, CVPR 2006).
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from hilbin._arrays import Array
from hilbin._core import core
from hilbin._parameters import estimator, require_whole
from hilbin._state import require, require_attributes
from hilbin.images._base import ImageTransformer
from hilbin.images.local import LocalGrid
from hilbin.images.read import Pixels

Cut = tuple[int, int]  # rows and columns of cells that an image is cut into
WHOLE = (1, 1)
MOST_CELLS = 1 << 10  # of a pyramid, along a side


@dataclass(frozen=True)
class WordGrid:
    """Words on a grid of places.

    Parameters
    ----------
    ids : integer array of shape (rows, columns), or (rows, columns, m) with weights
        The word at every place, or the ``m`` words that share it.
    ys, xs : arrays of shape (rows,) and (columns,)
        Centers in pixels; the middle of the first pixel is 0.
    size : float
        Side of the square that a word covers, in pixels.
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
        """Return the row of cells of every row of places, and the column of every column."""
        found = []
        for places, length, parts in zip((self.ys, self.xs), shape[:2], cut, strict=True):
            cell = ((np.asarray(places) + 0.5) * (parts / length)).astype(np.int32)
            found.append(np.clip(cell, 0, parts - 1))
        return found[0], found[1]

    def cell_numbers(self, shape: tuple[int, ...], cut: Cut) -> Array:
        """Return the number of the cell of every place; cells are numbered row by row."""
        rows, columns = self.cells(shape, cut)
        return rows[:, None] * cut[1] + columns[None, :]


class WordSource(ImageTransformer):
    """Base of what turns an image into words; as a transformer, a histogram of the whole image.

    A subclass gives :meth:`words` and ``n_words``.
    """

    @property
    def n_words(self) -> int:
        """Number of different words."""
        raise NotImplementedError

    def words(self, image: Pixels) -> list[WordGrid]:
        """Return the grids of words of one image, as :meth:`read` returns it."""
        raise NotImplementedError

    def transform_image(self, image: Pixels) -> Array:
        """Return the share of every word among the words of the image."""
        return histogram(self.words(image), image.shape, [WHOLE], [1.0], self.n_words)

    def to_pixels(self, image: Pixels, contributions: Array) -> Array:
        """Distribute the contributions of the words over the pixels where they occur."""
        return words_to_pixels(self.words(image), image.shape, [WHOLE], self.n_words, contributions)

    @property
    def _n_features_out(self) -> int:
        return self.n_words


@estimator
class SpatialPyramid(ImageTransformer):
    """Histograms of words over a pyramid of cells.

    Parameters
    ----------
    words : WordSource
        ``BagOfWords``, ``Centrist``, ``LBP`` or ``ColorHistogram``; a copy is fitted.
    levels : int or sequence of (int, int), default=3
        1 is the whole image, 3 adds 2 by 2 and 4 by 4 cells; or rows and columns of cells of every
        level, such as ``[(1, 1), (8, 4)]`` for images twice as high as wide.
    weights : sequence of float, optional
        Weights of the levels, coarse to fine. By default Lazebnik's, or 1 if the levels are listed.
    sparse_output : bool, default=False
        Whether to return a CSR matrix.

    Attributes
    ----------
    words_ : WordSource
        The fitted source of words.
    cuts_ : list of (int, int)
        Rows and columns of cells of every level.
    weights_ : ndarray of shape (n_levels,)

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images import Centrist, SpatialPyramid
    >>> images = np.random.default_rng(0).integers(0, 256, (4, 32, 32), np.uint8)
    >>> rows = SpatialPyramid(Centrist(), levels=2).fit_transform(images)
    >>> rows.shape  # 256 words, 1 + 4 cells
    (4, 1280)
    >>> rows[0].sum().round(3)  # words of the image, once per level, weighted
    np.float32(1.0)
    """

    words: Any = None
    levels: Any = 3
    _: KW_ONLY
    weights: Any = None
    sparse_output: bool = False

    def _learn(self, sources: Sequence[Any], y: Any) -> None:
        if not isinstance(self.words, WordSource):
            raise TypeError(
                f"words must be a source of words such as Centrist(), got {self.words!r}"
            )
        cuts = pyramid_cuts(self.levels)
        weights = self._weights(len(cuts))
        words = clone(self.words).set_params(max_side=self.max_side, n_jobs=self.n_jobs)
        self.words_: WordSource = words.fit(sources)
        self.cuts_, self.weights_ = cuts, weights

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the parts of a loaded pyramid do not fit together."""
        found = require_attributes(self, words_=WordSource, cuts_="list", weights_="float64[n]")
        if found:
            pairs = all(isinstance(cut, tuple) and len(cut) == 2 for cut in self.cuts_)
            require(pairs and len(self.cuts_) == found["n"], "cuts_ are not one for every weight")
            for number in (number for cut in self.cuts_ for number in cut):
                require_whole("cuts_", number, 1, MOST_CELLS)

    def _weights(self, levels: int) -> Array:
        if self.weights is None:
            return lazebnik_weights(levels) if isinstance(self.levels, int) else np.ones(levels)
        weights = np.asarray(self.weights, np.float64)
        if weights.shape != (levels,) or not (weights >= 0).all():
            raise ValueError(f"weights must be {levels} numbers >= 0, got {self.weights!r}")
        return weights

    @property
    def _uses_color(self) -> bool:
        return bool(getattr(self, "words_", self.words)._uses_color)

    def transform_image(self, image: Pixels) -> Array:
        """Return the weighted histograms of all cells of one image."""
        grids = self.words_.words(image)
        return histogram(grids, image.shape, self.cuts_, self.weights_, self.words_.n_words)

    def to_pixels(self, image: Pixels, contributions: Array) -> Array:
        """Distribute the contributions of words in cells over the pixels where they occur."""
        grids, n_words = self.words_.words(image), self.words_.n_words
        return words_to_pixels(grids, image.shape, self.cuts_, n_words, contributions)

    @property
    def _n_features_out(self) -> int:
        return sum(rows * columns for rows, columns in self.cuts_) * self.words_.n_words


def pyramid_cuts(levels: Any) -> list[Cut]:
    """Return the rows and columns of cells of every level, of a number or a list of levels.

    Examples
    --------
    >>> from hilbin.images.words import pyramid_cuts
    >>> pyramid_cuts(3), pyramid_cuts([(1, 1), (3, 1)])
    ([(1, 1), (2, 2), (4, 4)], [(1, 1), (3, 1)])
    """
    if isinstance(levels, int):
        if not 1 <= levels <= 8:
            raise ValueError(f"levels must be from 1 to 8, got {levels!r}")
        return [(2**level, 2**level) for level in range(levels)]
    if len(levels) == 0 or any(len(c) != 2 or min(c) < 1 for c in levels):
        raise ValueError(f"levels must be a number or pairs of numbers, got {levels!r}")
    return [(int(rows), int(columns)) for rows, columns in levels]


def lazebnik_weights(levels: int) -> Array:
    """Return the weights of the levels of a pyramid, coarse to fine.

    Examples
    --------
    >>> from hilbin.images.words import lazebnik_weights
    >>> lazebnik_weights(3)
    array([0.25, 0.25, 0.5 ])
    """
    finest = levels - 1
    return np.array([2.0**-finest, *(2.0 ** (level - finest - 1) for level in range(1, levels))])


def count(grids: Sequence[WordGrid], shape: tuple[int, ...], cut: Cut, n_words: int) -> Array:
    """Count every word in every cell: an array of shape (rows * columns of cells, n_words)."""
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


def histogram(
    grids: list[WordGrid],
    shape: tuple[int, ...],
    cuts: Sequence[Cut],
    weights: Sequence[float] | Array,
    n_words: int,
) -> Array:
    """Return the weighted histograms of all cells of all cuts, divided by the number of words."""
    total = sum(grid.ids.shape[0] * grid.ids.shape[1] for grid in grids)
    scale = 1 / total if total > 0 else 0.0
    parts = [
        float(weight) * scale * count(grids, shape, cut, n_words).ravel()
        for weight, cut in zip(weights, cuts, strict=True)
    ]
    return np.concatenate(parts).astype(np.float32, copy=False)


def words_to_pixels(
    grids: list[WordGrid],
    shape: tuple[int, ...],
    cuts: Sequence[Cut],
    n_words: int,
    contributions: Array,
) -> Array:
    """Distribute the contributions of (cell, word) features over the pixels.

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


def _over_cells(amounts: Array, shape: tuple[int, ...], cut: Cut) -> Array:
    """Spread the amount of every cell evenly over its pixels."""
    pixels = WordGrid(np.empty(shape[:2]), np.arange(shape[0]), np.arange(shape[1]), 1)
    cells = pixels.cell_numbers(shape, cut)
    sizes = np.bincount(cells.ravel(), minlength=amounts.size)
    empty = amounts[sizes == 0].sum()  # an image smaller than the cut has such cells
    spread: Array = (amounts / np.maximum(sizes, 1))[cells] + empty / cells.size
    return spread


def paint(
    shape: tuple[int, ...], grids: Sequence[WordGrid | LocalGrid], shares: Sequence[Array]
) -> Array:
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
    """Return the first pixel and the one after the last, at least one, within the image."""
    begin = np.clip(np.floor(np.asarray(centers) + 0.5 - size / 2 + 0.5), 0, length - 1)
    end = np.clip(np.floor(np.asarray(centers) + 0.5 + size / 2 + 0.5), begin + 1, length)
    return begin.astype(np.intp), end.astype(np.intp)
