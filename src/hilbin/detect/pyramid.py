r"""Cells of gradients of an image at many scales.

**Definition.** Level :math:`l` of a pyramid is the image scaled by :math:`(5/6)^l`, each resized
from the one before by bilinear interpolation; its scale is the true ratio of the sizes, per axis.
A cell covers 8 by 8 pixels of a level and has 32 numbers: the 31 of
:class:`~hilbin.images.FHOG`, and one that is 1 outside the image. Three cells of the outside lie
around every level, so that a window may reach beyond the border. Levels end where the smallest
template no longer fits in the image.

**Nodes** are cells at half the distance, of the same level: the parts of a template lie on them.
Pixels are given to nodes 4 pixels apart by hats, which refine, so the histogram of a cell is a sum
of those of 3 by 3 nodes. One pass over the pixels gives both. The window of cells
:math:`[Y, Y + h)` covers the nodes :math:`2Y, \dots, 2(Y + h)`.

**Windows.** A template of :math:`h \times w` cells has a window at every place of every level where
it fits. Places are counted level after level, row by row.

**Codes.** A cell may be stored as the number of the nearest of up to 256 words: one byte instead of
128.

**Reference.** P. Felzenszwalb, R. Girshick, D. McAllester and D. Ramanan, *Object Detection with
Discriminatively Trained Part-Based Models*, 2010.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hilbin._arrays import Array
from hilbin._core import core
from hilbin._state import require, require_attributes
from hilbin.images.read import MOST_SIDE, Pixels
from hilbin.parallel import ranges

SIDE: int = core.cell_side
CHANNELS: int = core.cell_channels
SLACK: int = core.cell_slack  # numbers behind the last cell that the core may read
STEP = 5 / 6
PADDING = 3  # cells of the outside around every level
Shape = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Levels:
    """The grids of cells of one image.

    Parameters
    ----------
    size : (int, int)
        Height and width of the image in pixels.
    shapes : int64 array of shape (levels, 2)
        Rows and columns of cells of every level, the outside included.
    scales : array of shape (levels, 2)
        Pixels of the level per pixel of the image, down and across.
    nodes : float32 array
        Nodes, of which a level has ``2 * shapes + 1``, in the layout of cells; empty if there are
        none.
    """

    size: Shape
    shapes: Array
    scales: Array
    nodes: Array

    def _check_state(self) -> None:
        arrays = {"shapes": "int64[l, 2]", "scales": "float64[l, 2]", "nodes": "float32[*]"}
        require_attributes(self, size="tuple", **arrays)
        sides = self.shapes
        fits = sides.size == 0 or (sides.min() > 0 and sides.max() <= MOST_SIDE)
        require(fits and (self.scales > 0).all(), "shapes or scales are out of range")

    @cached_property
    def node_shapes(self) -> Array:
        """Rows and columns of the nodes of every level."""
        return 2 * self.shapes + 1

    @property
    def inner_shapes(self) -> Array:
        """Rows and columns of cells of every level within the image."""
        return self.shapes - 2 * PADDING

    @cached_property
    def n_cells(self) -> int:
        """The number of cells of all levels."""
        return int(self.shapes.prod(axis=1).sum())

    def grids(self, shape: Shape) -> Array:
        """Return the rows and columns of places that windows of a shape have on every level."""
        fits = np.all(self.shapes >= shape, axis=1, keepdims=True)
        return fits * (self.shapes - np.array(shape) + 1)

    def n_places(self, shape: Shape) -> int:
        """Return the number of windows of ``shape`` cells."""
        return int(self.grids(shape).prod(axis=1).sum())

    def places(self, which: Array, shape: Shape) -> tuple[Array, Array, Array]:
        """Return the level, the row and the column of windows by their number."""
        grids = self.grids(shape)
        sizes = grids.prod(axis=1)
        ends = np.cumsum(sizes)
        level = np.searchsorted(ends, which, side="right")
        rest = which - (ends - sizes)[level]
        return level, rest // grids[level, 1], rest % grids[level, 1]

    def boxes(self, which: Array, shape: Shape, context: int = 0) -> Array:
        """Return the boxes of windows, without ``context`` cells on every side, in the image.

        Parameters
        ----------
        which : int array of shape (n,)
            Numbers of windows.
        shape : (int, int)
            Rows and columns of cells of a window.
        context : int, default=0
            Number of cells on every side that do not belong to the object.

        Returns
        -------
        boxes : array of shape (n, 4)
            ``[x0, y0, x1, y1)`` in pixels of the image, beyond its border where windows are.
        """
        level, y, x = self.places(which, shape)
        corner = np.stack([x, y], axis=1) - PADDING + context
        sides = np.array(shape[::-1]) - 2 * context
        scale = self.scales[level][:, ::-1]
        return np.hstack([corner * SIDE / scale, (corner + sides) * SIDE / scale])

    def node_level(self, number: int) -> Array:
        """Return the nodes of one level: rows, channels, columns."""
        return _level(self.nodes, self.node_shapes, number)

    def filter_scores(self, filters: Array) -> Array:
        """Return the scores (k, n_places) of filters (k, rows, 32, columns)."""
        raise NotImplementedError

    def window(self, level: int, y: int, x: int, shape: Shape) -> Array:
        """Return the cells of one window: rows, channels, columns."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class CodedPyramid(Levels):
    """A pyramid whose cells are compressed to the numbers of their nearest words.

    Parameters
    ----------
    size : (int, int)
        Height and width of the image in pixels.
    shapes : int64 array of shape (levels, 2)
        Rows and columns of cells of every level, the outside included.
    scales : array of shape (levels, 2)
        Pixels of the level per pixel of the image, down and across.
    nodes : float32 array
        Nodes, of which a level has ``2 * shapes + 1``, in the layout of cells; empty if there are
        none.
    codes : uint8 array of shape (n_cells,)
        Number of the word of every cell, level after level, row by row.
    words : float32 array of shape (n_words, 32)
        What the codes stand for.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.detect import CellPyramid
    >>> image = np.random.default_rng(0).integers(0, 256, (80, 120, 3), np.uint8)
    >>> pyramid = CellPyramid.of(image, smallest=(6, 6))
    >>> words = np.eye(32, dtype=np.float32)
    >>> coded = pyramid.encoded(words)
    >>> coded.codes.dtype, len(coded.codes) == coded.n_cells
    (dtype('uint8'), True)
    """

    codes: Array
    words: Array

    def _check_state(self) -> None:
        arrays = {"codes": "uint8[cells]", "words": "float32[words, 32]"}
        lengths = require_attributes(self, **arrays)
        require(self.n_cells <= lengths["cells"], "the levels are larger than codes")
        require(0 < lengths["words"] <= 256, "there are no words, or too many")
        fits = int(self.codes.max(initial=0)) < lengths["words"]
        require(fits, "a code is no number of a word")

    @property
    def nbytes(self) -> int:
        """The number of bytes of codes and nodes."""
        return int(self.codes.nbytes + self.nodes.nbytes)

    def filter_scores(self, filters: Array) -> Array:
        """Return the scores (k, n_places) of filters (k, rows, 32, columns)."""
        shape = filters.shape[1], filters.shape[3]
        out = np.empty((len(filters), self.n_places(shape)), np.float32)
        for tables, some in lookup_tables(filters, self.words):
            out[some] = self.lookup_scores(tables)[:, : some.stop - some.start].T
        return out

    def lookup_scores(self, tables: Array) -> Array:
        """Return the scores (n_places, k) of the filters of a table."""
        out = np.empty((self.n_places(tables.shape[:2]), tables.shape[3]), np.float32)
        core.lookup_places(self.codes, self.shapes, tables, out)
        return out

    def window(self, level: int, y: int, x: int, shape: Shape) -> Array:
        """Return the words of one window: rows, channels, columns."""
        begin = int(self.shapes[:level].prod(axis=1).sum())
        rows, columns = self.shapes[level]
        codes = self.codes[begin : begin + rows * columns].reshape(rows, columns)
        return self.words[codes[y : y + shape[0], x : x + shape[1]]].swapaxes(1, 2)


@dataclass(frozen=True, eq=False)
class CellPyramid(Levels):
    """The cells of oriented gradients of an image at many scales.

    Parameters
    ----------
    size : (int, int)
        Height and width of the image in pixels.
    shapes : int64 array of shape (levels, 2)
        Rows and columns of cells of every level, the outside included.
    scales : array of shape (levels, 2)
        Pixels of the level per pixel of the image, down and across.
    nodes : float32 array
        Nodes, of which a level has ``2 * shapes + 1``, in the layout of cells; empty if there are
        none.
    cells : float32 array
        Level after level, row after row, 32 planes of the width of the level; then some zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.detect import CellPyramid
    >>> image = np.random.default_rng(0).integers(0, 256, (80, 120, 3), np.uint8)
    >>> pyramid = CellPyramid.of(image, smallest=(6, 6))
    >>> pyramid.shapes.tolist()
    [[16, 21], [14, 19], [13, 16], [12, 15]]
    >>> pyramid.level(0).shape  # rows, channels, columns
    (16, 32, 21)
    >>> pyramid.n_places((8, 8))
    304
    """

    cells: Array

    def _check_state(self) -> None:
        require_attributes(self, cells="float32[*]")
        fits = CHANNELS * self.n_cells + SLACK <= self.cells.size
        require(fits, "the levels are larger than cells")

    @classmethod
    def of(
        cls, image: Pixels, *, smallest: Shape = (1, 1), upsample: int = 0, nodes: bool = False
    ) -> "CellPyramid":
        """Compute the pyramid of one image.

        Parameters
        ----------
        image : uint8 array of shape (height, width) or (height, width, 3)
            The image, as :func:`~hilbin.images.read_image` returns it.
        smallest : (int, int), default=(1, 1)
            Rows and columns of cells that the last level has at least.
        upsample : int, default=0
            The first level is the image scaled by ``2 ** upsample``.
        nodes : bool, default=False
            Whether to compute nodes, too.
        """
        image = image[:, :, None] if image.ndim == 2 else image
        size = image.shape[:2]
        sizes = _sizes(size, smallest, upsample)
        shapes = (sizes + SIDE // 2) // SIDE + 2 * PADDING
        scales = sizes / np.array(size)
        cells = _room(shapes)
        inner = _room(2 * shapes + 1) if nodes else np.empty(0, np.float32)
        core.cell_pyramid(np.ascontiguousarray(image), sizes, PADDING, cells, inner)
        return cls(size, shapes, scales, inner, cells)

    @property
    def nbytes(self) -> int:
        """The number of bytes of cells and nodes."""
        return int(self.cells.nbytes + self.nodes.nbytes)

    def level(self, number: int) -> Array:
        """Return the cells of one level: rows, channels, columns."""
        return _level(self.cells, self.shapes, number)

    def filter_scores(self, filters: Array) -> Array:
        """Return the scores (k, n_places) of filters (k, rows, 32, columns)."""
        shape = filters.shape[1], filters.shape[3]
        out = np.empty((len(filters), self.n_places(shape)), np.float32)
        core.filter_scores(self.cells, self.shapes, filters, out)
        return out

    def window(self, level: int, y: int, x: int, shape: Shape) -> Array:
        """Return the cells of one window: rows, channels, columns."""
        return self.level(level)[y : y + shape[0], :, x : x + shape[1]]

    def encoded(self, words: Array) -> CodedPyramid:
        """Return the pyramid with the number of the nearest word instead of every cell.

        Parameters
        ----------
        words : float32 array of shape (n_words, 32)
            At most 256 words.
        """
        missing = -len(words) % 4  # the core takes fours; these are never the nearest
        columns = np.ascontiguousarray(np.pad(words.T, ((0, 0), (0, missing))), np.float32)
        half = np.full(columns.shape[1], np.inf, np.float32)
        half[: len(words)] = 0.5 * np.einsum("ij,ij->i", words, words)
        codes = np.empty(self.n_cells, np.uint8)
        core.encode_cells(self.cells, self.shapes, columns, half, codes)
        return CodedPyramid(self.size, self.shapes, self.scales, self.nodes, codes, words)


def _level(values: Array, shapes: Array, number: int) -> Array:
    begin = CHANNELS * int(shapes[:number].prod(axis=1).sum())
    rows, columns = shapes[number]
    return values[begin : begin + rows * CHANNELS * columns].reshape(rows, CHANNELS, columns)


def lookup_tables(filters: Array, words: Array) -> list[tuple[Array, slice]]:
    """Return the products of words and filters (k, rows, 32, columns), and whose they are.

    A table (rows, columns, words, filters) has 1, 2 or 8 filters side by side; the last ones may be
    0.
    """
    products = np.einsum("fych,wc->yhwf", filters, words, optimize=True)
    count = len(filters)
    width = count if count <= 2 else 8
    tables = []
    for begin, end in ranges(count, width):
        table = np.zeros((*products.shape[:3], width), np.float32)
        table[..., : end - begin] = products[..., begin:end]
        tables.append((table, slice(begin, end)))
    return tables


def _sizes(size: Shape, smallest: Shape, upsample: int) -> Array:
    """Return height and width of every level in pixels."""
    least = np.maximum(np.array(smallest), 1) * SIDE - SIDE // 2  # the last cell is half inside
    exact = np.array(size) * 2.0**upsample
    sizes: list[Array] = []
    while np.all(np.rint(exact) >= least) and len(sizes) < 64:
        if max(exact) <= MOST_SIDE:
            sizes.append(np.rint(exact).astype(np.int64))
        exact = exact * STEP
    return np.array(sizes, np.int64).reshape(-1, 2)


def _room(shapes: Array) -> Array:
    return np.zeros(CHANNELS * int(shapes.prod(axis=1).sum()) + SLACK, np.float32)


def mirror_order(shape: Shape) -> Array:
    """Return the order of the numbers of a window in which they are those of its mirror image.

    Directed orientation ``k`` becomes ``9 - k`` of 18, undirected ``-k`` of 9, and the blocks left
    of a cell those right of it.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns of the window.
    """
    rows, columns = shape
    k = np.arange(18)
    channels = np.concatenate([(9 - k) % 18, 18 + (-k[:9]) % 9, [28, 27, 30, 29, 31]])
    order = np.arange(rows * CHANNELS * columns).reshape(rows, CHANNELS, columns)
    return order[:, channels, ::-1].ravel()
