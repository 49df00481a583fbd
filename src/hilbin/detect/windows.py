"""All windows of all images as rows of a :class:`~hilbin.solvers.Risk`, none of them stored.

A window is a row of ``h * 32 * w`` numbers, its cells in the order of a filter. Scores of all
windows are the scores of the filter at all places, and the sum of the windows times their slopes is
the transpose of that, computed where slopes are not 0. So a solver sees a matrix of millions of
rows, while memory holds the cells alone, or a byte for each.

With mirror images every window is a row twice: ``<v, M x> = <M v, x>`` for the order ``M`` of the
numbers of a window that makes its mirror image, so the cells of mirrored images are not needed.
"""

from collections.abc import Callable, Sequence

import numpy as np

from hilbin._arrays import Array
from hilbin._core import core
from hilbin.detect.pyramid import (
    CHANNELS,
    CellPyramid,
    CodedPyramid,
    Levels,
    Shape,
    lookup_tables,
    mirror_order,
)
from hilbin.parallel import ranges, run, stream


class _Windows:
    """What rows of windows share: their numbers, and threads over images."""

    dtype = np.dtype(np.float32)

    def __init__(self, pyramids: Sequence[Levels], shape: Shape, n_jobs: int | None) -> None:
        self.window, self.n_jobs = shape, n_jobs
        counts = [pyramid.n_places(shape) for pyramid in pyramids]
        self.begins = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        self.shape = (int(self.begins[-1]), shape[0] * CHANNELS * shape[1])

    def _filters(self, V: Array) -> Array:
        rows, columns = self.window
        return np.ascontiguousarray(V, np.float32).reshape(-1, rows, CHANNELS, columns)

    def _each(self, task: Callable[[int, slice], None]) -> None:
        """Call ``task(image, rows)`` for every image."""

        def images(begin: int, end: int) -> None:
            for i in range(begin, end):
                task(i, slice(self.begins[i], self.begins[i + 1]))

        run(images, ranges(len(self.begins) - 1, 4), self.n_jobs)

    def _sum(self, task: Callable[[int, slice, Array], None], shape: tuple[int, ...]) -> Array:
        """Return the sum of what ``task(image, rows, sums)`` adds for every image."""

        def images(begin: int, end: int) -> Array:
            sums = np.zeros(shape, np.float32)
            for i in range(begin, end):
                task(i, slice(self.begins[i], self.begins[i + 1]), sums)
            return sums

        total = np.zeros(shape)
        for sums in stream(images, ranges(len(self.begins) - 1, 16), self.n_jobs):
            total += sums
        return total


class WindowRows(_Windows):
    """Windows of cells.

    Parameters
    ----------
    pyramids : sequence of CellPyramid
        One for every image.
    shape : (int, int)
        Rows and columns of cells of a window.
    n_jobs : int, optional
        Number of threads, as in joblib.

    Attributes
    ----------
    begins : int64 array of shape (n_images + 1,)
        Number of the first window of every image.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.detect import CellPyramid, WindowRows
    >>> image = np.random.default_rng(0).integers(0, 256, (80, 120, 3), np.uint8)
    >>> rows = WindowRows([CellPyramid.of(image, smallest=(6, 6))], (8, 8))
    >>> rows.shape
    (304, 2048)
    >>> rows.scores(np.ones((1, 2048), np.float32)).shape
    (304, 1)
    """

    def __init__(
        self, pyramids: Sequence[CellPyramid], shape: Shape, *, n_jobs: int | None = None
    ) -> None:
        super().__init__(pyramids, shape, n_jobs)
        self.pyramids = pyramids

    def scores(self, V: Array) -> Array:
        """Return the scores (n, k) of all windows for filters (k, size)."""
        filters = self._filters(V)
        out = np.empty((len(filters), self.shape[0]), np.float32)

        def score(i: int, some: slice) -> None:
            out[:, some] = self.pyramids[i].filter_scores(filters)

        self._each(score)
        return out.T

    def gradient(self, S: Array) -> Array:
        """Return the sums (k, size) of the windows times slopes (n, k)."""
        slopes = np.ascontiguousarray(S.T, np.float32)
        rows, columns = self.window

        def add(i: int, some: slice, sums: Array) -> None:
            for k in range(len(slopes)):
                of_image = slopes[k, some]
                core.filter_sums(self.pyramids[i].cells, self.pyramids[i].shapes, of_image, sums[k])

        total = self._sum(add, (len(slopes), rows, CHANNELS, columns))
        return total.reshape(len(slopes), -1).astype(np.float32)


class CodedWindowRows(_Windows):
    """Windows of codes, which have the scores of the words in the place of the cells.

    Parameters
    ----------
    pyramids : sequence of CodedPyramid
        One for every image, all of the same words.
    shape : (int, int)
        Rows and columns of cells of a window.
    n_jobs : int, optional
        Number of threads, as in joblib.
    """

    def __init__(
        self, pyramids: Sequence[CodedPyramid], shape: Shape, *, n_jobs: int | None = None
    ) -> None:
        super().__init__(pyramids, shape, n_jobs)
        self.pyramids, self.words = pyramids, pyramids[0].words

    def scores(self, V: Array) -> Array:
        """Return the scores (n, k) of all windows for filters (k, size)."""
        out = np.empty((self.shape[0], len(V)), np.float32)
        tables = lookup_tables(self._filters(V), self.words)

        def score(i: int, some: slice) -> None:
            for table, columns in tables:
                found = self.pyramids[i].lookup_scores(table)
                out[some, columns] = found[:, : columns.stop - columns.start]

        self._each(score)
        return out

    def gradient(self, S: Array) -> Array:
        """Return the sums (k, size) of the windows times slopes (n, k)."""
        slopes = np.ascontiguousarray(S.T, np.float32)
        rows, columns = self.window

        def add(i: int, some: slice, sums: Array) -> None:
            pyramid = self.pyramids[i]
            for k in range(len(slopes)):
                core.lookup_slopes(pyramid.codes, pyramid.shapes, slopes[k, some], sums[k])

        total = self._sum(add, (len(slopes), rows, columns, len(self.words)))
        sums = (total @ self.words.astype(np.float64)).swapaxes(2, 3)
        return sums.reshape(len(slopes), -1).astype(np.float32)


class MirroredRows:
    """Windows, and then the mirror images of all of them.

    Parameters
    ----------
    rows : WindowRows or CodedWindowRows
        The windows.
    """

    def __init__(self, rows: WindowRows | CodedWindowRows) -> None:
        self.rows, self.dtype = rows, rows.dtype
        self.shape = (2 * rows.shape[0], rows.shape[1])
        self.order = mirror_order(rows.window)

    def scores(self, V: Array) -> Array:
        """Return the scores (2n, k) of filters (k, size)."""
        both = self.rows.scores(np.concatenate([V, V[:, self.order]]))
        return np.concatenate([both[:, : len(V)], both[:, len(V) :]])

    def gradient(self, S: Array) -> Array:
        """Return the sums (k, size) of the windows and mirror images times slopes (2n, k)."""
        n = self.rows.shape[0]
        both = self.rows.gradient(np.concatenate([S[:n], S[n:]], axis=1))
        k = S.shape[1]
        return both[:k] + both[k:][:, self.order]
