r"""Rows of product-quantised codes, scored and summed without being decoded.

A row is cut into blocks of :math:`G` components, and block :math:`b` is one of the words
:math:`z_{b1}, \dots, z_{bD}`: the row has the codes :math:`c_b`. Then

.. math:: \langle w, x \rangle = \sum_b T_b[c_b], \qquad T_b[j] = \langle w_b, z_{bj} \rangle,

one look-up per block in tables that are computed once for all rows; and the gradient
:math:`\sum_i g_i x_i` adds every :math:`g_i` to the tables at the codes of row :math:`i`, and
multiplies the tables by the words afterwards (*delayed expansion*, Vedaldi and Zisserman, *Sparse
Kernel Approximations for Efficient Classification and Detection*). The cost per row is
:math:`1 / G` of that of decoded rows, and tables cost as much as :math:`D` rows: for fewer rows
than that decode blocks of rows and multiply (*immediate expansion*).

Codes come in chunks of 32 blocks, each chunk row by row: while the rows of a chunk are scored, its
tables stay in the cache.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Literal

import numpy as np

from hilbin._core import core
from hilbin.parallel import ranges, run, stream
from hilbin.solvers._codes import Array
from hilbin.solvers._tasks import side_by_side, side_by_side_slopes, whole_vectors

CHUNK: int = core.chunk_blocks
CHUNKS_PER_TASK = 16
TABLE_BYTES = 1 << 20  # of tables that are computed together
ROWS_OF_VECTORS = 4096  # whose sums for several tasks stay in the cache
DECODED_ROWS = 512
EXPANSIONS = ("delayed", "immediate")


class WordRows:
    """Rows of codes, as a risk sees them.

    Parameters
    ----------
    chunks : array of shape (chunks, n, 32)
        Codes, as uint8 or uint16; block ``b`` of row ``i`` is ``chunks[b // 32, i, b % 32]``.
    words : array of shape (blocks, D, G)
        The words of every block.
    size : int, optional
        Components of a row; by default ``blocks * G``. The last block may have fewer than ``G``.
    expansion : {"delayed", "immediate"}, default="delayed"
        Whether words are expanded to tables, or rows are decoded.
    dtype : dtype, default=float32
        Of tables, scores and gradients.
    n_jobs : int, optional
        Threads, as in joblib.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import WordRows
    >>> chunks = np.zeros((1, 3, 32), np.uint8)
    >>> chunks[0, :, 0] = [0, 1, 1]
    >>> rows = WordRows(chunks, np.array([[[1.0, 2.0], [0.0, 3.0]]]))
    >>> rows.scores(np.array([[1.0, 1.0]]))
    array([[3.],
           [3.],
           [3.]], dtype=float32)
    >>> rows.gradient(np.array([[1.0], [1.0], [0.0]]))
    array([[1., 5.]], dtype=float32)
    """

    def __init__(
        self,
        chunks: Array,
        words: Array,
        size: int | None = None,
        *,
        expansion: Literal["delayed", "immediate"] = "delayed",
        dtype: Any = np.float32,
        n_jobs: int | None = None,
    ) -> None:
        blocks, count, length = words.shape
        size = blocks * length if size is None else size
        if chunks.ndim != 3 or chunks.shape[2] != CHUNK or chunks.shape[0] != -(-blocks // CHUNK):
            raise ValueError(f"chunks of shape {chunks.shape} do not hold {blocks} blocks")
        if not (blocks - 1) * length < size <= blocks * length:
            raise ValueError(f"size={size} is not {blocks} blocks of {length} components")
        if expansion not in EXPANSIONS:
            raise ValueError(f"expansion must be one of {EXPANSIONS}, got {expansion!r}")
        if count <= np.iinfo(chunks.dtype).max and chunks.size and chunks.max() >= count:
            raise ValueError(f"chunks has the code {chunks.max()}, but there are {count} words")
        self.chunks, self.words, self.expansion, self.n_jobs = chunks, words, expansion, n_jobs
        self.shape, self.dtype = (chunks.shape[1], size), np.dtype(dtype)

    def scores(self, V: Array) -> Array:
        """``X V^T`` of shape (n, k), for weights of shape (k, size)."""
        if self.expansion == "immediate":
            return self._decoded_scores(V)
        out = np.empty((self.shape[0], len(V)), self.dtype)
        for begin, end in side_by_side(len(V), self.dtype):
            out[:, begin:end] = self._look_up(V[begin:end])[:, : end - begin]
        return out

    def gradient(self, S: Array) -> Array:
        """``S^T X`` of shape (k, size), for slopes of shape (n, k)."""
        if self.expansion == "immediate":
            return self._decoded_gradient(S)
        out = np.empty((S.shape[1], self.shape[1]), self.dtype)
        overhead = self.words.shape[1] * self.words.shape[2] / 2
        for begin, end in side_by_side_slopes(S, self.dtype, overhead):
            out[begin:end] = self._sum_up(S[:, begin:end])[: end - begin]
        return out

    @cached_property
    def _columns(self) -> Array:
        """Blocks x components x words, as the core takes them."""
        return np.ascontiguousarray(self.words.swapaxes(1, 2), self.dtype)

    @cached_property
    def _rows_of_words(self) -> Array:
        return np.ascontiguousarray(self.words, self.dtype)

    def _blocks(self, begin: int, end: int) -> slice:
        """Of chunks."""
        return slice(begin * CHUNK, min(end * CHUNK, len(self.words)))

    def _tables(self, width: int) -> tuple[int, Array]:
        """How many chunks have their tables computed together, and room for these."""
        count = self.words.shape[1]
        few = max(1, TABLE_BYTES // (CHUNK * count * width * self.dtype.itemsize))
        few = min(few, CHUNKS_PER_TASK)
        return few, np.empty((min(few * CHUNK, len(self.words)), count, width), self.dtype)

    def _look_up(self, V: Array) -> Array:
        blocks, _, length = self.words.shape
        padded = np.zeros((len(V), blocks * length), self.dtype)
        padded[:, : self.shape[1]] = V
        weights = whole_vectors(padded.T.reshape(blocks, length, -1), self.dtype)
        width, n = weights.shape[2], self.shape[0]
        tiles = ranges(n, max(1, n) if width == 1 else ROWS_OF_VECTORS)

        def task(begin: int, end: int) -> Array:
            few, room = self._tables(width)
            sums = np.zeros((n, width), self.dtype)
            for first in range(begin, end, few):
                last = min(first + few, end)
                of = self._blocks(first, last)
                tables = room[: of.stop - of.start]
                core.expand_words(self._columns[of], weights[of], tables)
                for top, bottom in tiles:
                    codes = self.chunks[first:last, top:bottom]
                    core.word_scores(codes, tables, sums[top:bottom])
            return sums

        total = np.zeros((n, width))
        for sums in stream(task, ranges(len(self.chunks), CHUNKS_PER_TASK), self.n_jobs):
            total += sums
        return total

    def _sum_up(self, S: Array) -> Array:
        slopes = whole_vectors(S, self.dtype)
        (n, width), (blocks, _, length) = slopes.shape, self.words.shape
        out = np.empty((blocks, length, width), self.dtype)
        tiles = ranges(n, max(1, n) if width == 1 else ROWS_OF_VECTORS)

        def task(begin: int, end: int) -> None:
            few, room = self._tables(width)
            for first in range(begin, end, few):
                last = min(first + few, end)
                of = self._blocks(first, last)
                tables = room[: of.stop - of.start]
                tables.fill(0)
                for top, bottom in tiles:
                    codes = self.chunks[first:last, top:bottom]
                    core.word_sums(codes, slopes[top:bottom], tables)
                core.reduce_words(self._columns[of], tables, out[of])

        run(task, ranges(len(self.chunks), CHUNKS_PER_TASK), self.n_jobs)
        return out.reshape(blocks * length, width)[: self.shape[1]].T

    def _decoded_scores(self, V: Array) -> Array:
        V = V.astype(self.dtype, copy=False)

        def task(first: int, last: int) -> Array:
            sums = np.zeros((self.shape[0], len(V)), self.dtype)
            for begin, end, columns, rows in self._decoded(first, last):
                sums[begin:end] += rows @ V[:, columns].T
            return sums

        parts = ranges(len(self.chunks), CHUNKS_PER_TASK)
        total = np.zeros((self.shape[0], len(V)))
        for sums in stream(task, parts, self.n_jobs, calls_blas=True):
            total += sums
        return total.astype(self.dtype)

    def _decoded_gradient(self, S: Array) -> Array:
        S = np.ascontiguousarray(S.T, self.dtype)
        out = np.zeros((len(S), self.shape[1]), self.dtype)

        def task(first: int, last: int) -> None:
            for begin, end, columns, rows in self._decoded(first, last):
                out[:, columns] += S[:, begin:end] @ rows

        for _ in stream(
            task, ranges(len(self.chunks), CHUNKS_PER_TASK), self.n_jobs, calls_blas=True
        ):
            pass
        return out

    def _decoded(self, first: int, last: int) -> Iterator[tuple[int, int, slice, Array]]:
        """Rows of the components of chunks, a tile at a time: begin, end, components, numbers."""
        length = self.words.shape[2]
        for chunk in range(first, last):
            of = self._blocks(chunk, chunk + 1)
            columns = slice(of.start * length, min(of.stop * length, self.shape[1]))
            words, room = self._rows_of_words[of], np.empty(0, self.dtype)
            for begin, end in ranges(self.shape[0], DECODED_ROWS):
                if len(room) != end - begin:
                    room = np.empty((end - begin, (of.stop - of.start) * length), self.dtype)
                core.decode_words(self.chunks[chunk : chunk + 1, begin:end], words, room)
                yield begin, end, columns, room[:, : columns.stop - columns.start]
