r"""Rows of product-quantized codes, scored and summed without being decoded.

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
from hilbin.parallel import ranges, stream
from hilbin.solvers._codes import Array
from hilbin.solvers._tasks import side_by_side
from hilbin.solvers._word_tables import (
    CHUNK,
    CHUNKS_PER_TASK,
    blocks_of,
    coded_scores,
    coded_sums,
    columns_of,
)

DECODED_ROWS = 512
EXPANSIONS = ("delayed", "immediate")


class WordRows:
    """Rows of codes, as a risk sees them.

    Parameters
    ----------
    chunks : array of shape (chunks, n, 32)
        Levels, as uint8 or uint16; block ``b`` of row ``i`` is ``chunks[b // 32, i, b % 32]``.
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
            out[:, begin:end] = coded_scores(self.chunks, self._columns, V[begin:end], self.n_jobs)
        return out

    def gradient(self, S: Array) -> Array:
        """``S^T X`` of shape (k, size), for slopes of shape (n, k)."""
        if self.expansion == "immediate":
            return self._decoded_gradient(S)
        out = np.empty((S.shape[1], self.shape[1]), self.dtype)
        for begin, end in side_by_side(S.shape[1], self.dtype):
            whole = coded_sums(self.chunks, self._columns, S[:, begin:end], self.n_jobs)
            out[begin:end] = whole[:, : self.shape[1]]
        return out

    @cached_property
    def _columns(self) -> Array:
        return columns_of(self.words, self.dtype)

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
            of = blocks_of(chunk, chunk + 1, len(self.words))
            columns = slice(of.start * length, min(of.stop * length, self.shape[1]))
            words = np.ascontiguousarray(self.words[of], self.dtype)
            for begin, end in ranges(self.shape[0], DECODED_ROWS):
                rows = np.empty((end - begin, (of.stop - of.start) * length), self.dtype)
                core.decode_words(self.chunks[chunk : chunk + 1, begin:end], words, rows)
                yield begin, end, columns, rows[:, : columns.stop - columns.start]
