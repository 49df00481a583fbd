"""All windows of all images as rows of a :class:`~hilbin.solvers.Risk`, none of them stored.

A window is a row of ``h * 32 * w`` numbers, its cells in the order of a filter. Scores of all
windows are the scores of the filter at all places, and the sum of the windows times their slopes is
the transpose of that, computed where slopes are not 0. So a solver sees a matrix of millions of
rows, while memory holds the cells alone, or a byte for each. ``chosen`` are rows of the same kind
of some windows only.

With mirror images every window is a row twice: ``<v, M x> = <M v, x>`` for the order ``M`` of the
numbers of a window that makes its mirror image, so the cells of mirrored images are not needed.
"""

from collections.abc import Callable, Sequence
from typing import Any

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

IMAGES_PER_TASK = 8


class _Windows:
    """What rows of windows share: their numbers, and threads over images.

    A subclass scores and sums the windows of one image, all of them or those at ``places``.
    """

    dtype = np.dtype(np.float32)

    def __init__(self, pyramids: Sequence[Levels], shape: Shape, n_jobs: int | None) -> None:
        self.window, self.n_jobs = shape, n_jobs
        counts = [pyramid.n_places(shape) for pyramid in pyramids]
        self.begins = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        self.shape = (int(self.begins[-1]), shape[0] * CHANNELS * shape[1])

    def scores(self, V: Array) -> Array:
        """Return the scores (n, k) of all windows for filters (k, size)."""
        prepared = self._prepared(self._filters(V))
        out = np.empty((len(V), self.shape[0]), np.float32)

        def score(i: int) -> None:
            out[:, self.begins[i] : self.begins[i + 1]] = self._scores(i, prepared, None)

        self._each(len(self.begins) - 1, score)
        return out.T

    def gradient(self, S: Array) -> Array:
        """Return the sums (k, size) of the windows times slopes (n, k)."""
        slopes = np.ascontiguousarray(S.T, np.float32)

        def add(i: int, sums: Array) -> None:
            own = slopes[:, self.begins[i] : self.begins[i + 1]]
            self._add(i, np.ascontiguousarray(own), None, sums)

        return self._gradient(len(self.begins) - 1, len(slopes), add)

    def chosen(self, windows: Array) -> "ChosenRows":
        """Return the rows of some windows, in the order given."""
        return ChosenRows(self, windows)

    def _filters(self, V: Array) -> Array:
        rows, columns = self.window
        return np.ascontiguousarray(V, np.float32).reshape(-1, rows, CHANNELS, columns)

    def _each(self, count: int, task: Callable[[int], None]) -> None:
        """Call ``task(i)`` for every image."""

        def images(begin: int, end: int) -> None:
            for i in range(begin, end):
                task(i)

        run(images, ranges(count, IMAGES_PER_TASK), self.n_jobs)

    def _gradient(self, count: int, tasks: int, add: Callable[[int, Array], None]) -> Array:
        """Return the sum of what ``add(i, sums)`` adds for every image."""
        shape = (tasks, *self._sums_shape)

        def images(begin: int, end: int) -> Array:
            sums = np.zeros(shape, np.float32)
            for i in range(begin, end):
                add(i, sums)
            return sums

        total = np.zeros(shape)
        for sums in stream(images, ranges(count, IMAGES_PER_TASK), self.n_jobs):
            total += sums
        return self._finished(total).reshape(tasks, -1).astype(np.float32)

    @property
    def _sums_shape(self) -> tuple[int, ...]:
        """The shape of what slopes are summed in."""
        raise NotImplementedError

    def _prepared(self, filters: Array) -> Any:
        """Return filters as :meth:`_scores` takes them."""
        raise NotImplementedError

    def _scores(self, i: int, prepared: Any, places: Array | None) -> Array:
        """Return the scores (k, n) of windows of an image."""
        raise NotImplementedError

    def _add(self, i: int, slopes: Array, places: Array | None, sums: Array) -> None:
        """Add windows of an image times slopes (k, n)."""
        raise NotImplementedError

    def _finished(self, total: Array) -> Array:
        """Return sums in the order of filters."""
        raise NotImplementedError


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
    >>> V = np.ones((1, 2048), np.float32)
    >>> scores = rows.scores(V)
    >>> scores.shape
    (304, 1)
    >>> np.allclose(rows.chosen(np.array([7, 5])).scores(V), scores[[7, 5]], rtol=1e-4)
    True
    """

    def __init__(
        self, pyramids: Sequence[CellPyramid], shape: Shape, *, n_jobs: int | None = None
    ) -> None:
        super().__init__(pyramids, shape, n_jobs)
        self.pyramids = pyramids

    @property
    def _sums_shape(self) -> tuple[int, ...]:
        return self.window[0], CHANNELS, self.window[1]

    def _prepared(self, filters: Array) -> Array:
        return filters

    def _scores(self, i: int, prepared: Array, places: Array | None) -> Array:
        pyramid = self.pyramids[i]
        if places is None:
            return pyramid.filter_scores(prepared)
        out = np.empty((len(prepared), len(places)), np.float32)
        core.filter_scores_at(pyramid.cells, pyramid.shapes, places, prepared, out)
        return out

    def _add(self, i: int, slopes: Array, places: Array | None, sums: Array) -> None:
        arrays = self.pyramids[i].cells, self.pyramids[i].shapes
        for own, out in zip(slopes, sums, strict=True):
            if places is None:
                core.filter_sums(*arrays, own, out)
            else:
                core.filter_sums_at(*arrays, places, own, out)

    def _finished(self, total: Array) -> Array:
        return total


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

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.detect import CellPyramid, CodedWindowRows
    >>> image = np.random.default_rng(0).integers(0, 256, (80, 120, 3), np.uint8)
    >>> words = np.random.default_rng(1).random((16, 32)).astype(np.float32)
    >>> pyramid = CellPyramid.of(image, smallest=(6, 6)).encoded(words)
    >>> rows = CodedWindowRows([pyramid], (8, 8))
    >>> rows.gradient(np.ones((304, 1))).shape
    (1, 2048)
    """

    def __init__(
        self, pyramids: Sequence[CodedPyramid], shape: Shape, *, n_jobs: int | None = None
    ) -> None:
        super().__init__(pyramids, shape, n_jobs)
        self.pyramids, self.words = pyramids, pyramids[0].words

    @property
    def _sums_shape(self) -> tuple[int, ...]:
        return *self.window, len(self.words)

    def _prepared(self, filters: Array) -> list[tuple[Array, slice]]:
        return lookup_tables(filters, self.words)

    def _scores(self, i: int, prepared: list[tuple[Array, slice]], places: Array | None) -> Array:
        pyramid = self.pyramids[i]
        found = []
        for tables, some in prepared:
            count = some.stop - some.start
            if places is None:
                found.append(pyramid.lookup_scores(tables)[:, :count].T)
                continue
            out = np.empty((count, len(places)), np.float32)
            for k in range(count):
                table = np.ascontiguousarray(tables[..., k])
                core.lookup_places_at(pyramid.codes, pyramid.shapes, places, table, out[k])
            found.append(out)
        return np.concatenate(found)

    def _add(self, i: int, slopes: Array, places: Array | None, sums: Array) -> None:
        arrays = self.pyramids[i].codes, self.pyramids[i].shapes
        for own, out in zip(slopes, sums, strict=True):
            if places is None:
                core.lookup_slopes(*arrays, own, out)
            else:
                core.lookup_slopes_at(*arrays, places, own, out)

    def _finished(self, total: Array) -> Array:
        return (total @ self.words.astype(np.float64)).swapaxes(2, 3)


class ChosenRows:
    """Some of the windows, in the order given.

    Parameters
    ----------
    rows : WindowRows or CodedWindowRows
        All windows.
    windows : int array of shape (n,)
        Numbers of the chosen ones.
    """

    def __init__(self, rows: _Windows, windows: Array) -> None:
        self.rows, self.dtype = rows, rows.dtype
        self.shape = (len(windows), rows.shape[1])
        image = np.searchsorted(rows.begins, windows, side="right") - 1
        order = np.argsort(image, kind="stable")
        cuts = np.flatnonzero(np.diff(image[order])) + 1
        # of every image that has any: its number, which rows are in it, and their places
        self._parts = [
            (int(image[part[0]]), part, (windows[part] - rows.begins[image[part[0]]]))
            for part in np.split(order, cuts)
            if part.size
        ]

    def scores(self, V: Array) -> Array:
        """Return the scores (n, k) of filters (k, size)."""
        prepared = self.rows._prepared(self.rows._filters(V))
        out = np.empty((len(V), self.shape[0]), np.float32)

        def score(i: int) -> None:
            image, part, places = self._parts[i]
            out[:, part] = self.rows._scores(image, prepared, places)

        self.rows._each(len(self._parts), score)
        return out.T

    def gradient(self, S: Array) -> Array:
        """Return the sums (k, size) of the windows times slopes (n, k)."""
        slopes = np.asarray(S.T, np.float32)

        def add(i: int, sums: Array) -> None:
            image, part, places = self._parts[i]
            self.rows._add(image, np.ascontiguousarray(slopes[:, part]), places, sums)

        return self.rows._gradient(len(self._parts), len(slopes), add)


class MirroredRows:
    """Windows, and then the mirror images of all of them.

    Parameters
    ----------
    rows : WindowRows or CodedWindowRows
        The windows.
    """

    def __init__(self, rows: _Windows) -> None:
        self.rows, self.dtype = rows, rows.dtype
        self.shape = (2 * rows.shape[0], rows.shape[1])
        self.order = mirror_order(rows.window)

    def scores(self, V: Array) -> Array:
        """Return the scores (2n, k) of filters (k, size)."""
        both = self.rows.scores(np.concatenate([V, V[:, self.order]]))
        return np.concatenate([both[:, : len(V)], both[:, len(V) :]])

    def gradient(self, S: Array) -> Array:
        """Return the sums (k, size) of the windows and mirror images times slopes (2n, k)."""
        n, k = self.rows.shape[0], S.shape[1]
        both = self.rows.gradient(np.concatenate([S[:n], S[n:]], axis=1))
        return both[:k] + both[k:][:, self.order]

    def chosen(self, windows: Array) -> "_ChosenMirrored":
        """Return the rows of some windows and mirror images, in the order given."""
        return _ChosenMirrored(self, windows)


class _ChosenMirrored:
    """Some of the windows and mirror images."""

    def __init__(self, rows: MirroredRows, windows: Array) -> None:
        n = rows.rows.shape[0]
        self.shape, self.dtype, self.order = (len(windows), rows.shape[1]), rows.dtype, rows.order
        self._places = np.flatnonzero(windows < n), np.flatnonzero(windows >= n)
        self._plain = ChosenRows(rows.rows, windows[self._places[0]])
        self._mirrored = ChosenRows(rows.rows, windows[self._places[1]] - n)

    def scores(self, V: Array) -> Array:
        """Return the scores (n, k) of filters (k, size)."""
        out = np.empty((self.shape[0], len(V)), np.float32)
        out[self._places[0]] = self._plain.scores(V)
        out[self._places[1]] = self._mirrored.scores(V[:, self.order])
        return out

    def gradient(self, S: Array) -> Array:
        """Return the sums (k, size) of the rows times slopes (n, k)."""
        plain = self._plain.gradient(S[self._places[0]])
        return plain + self._mirrored.gradient(S[self._places[1]])[:, self.order]
