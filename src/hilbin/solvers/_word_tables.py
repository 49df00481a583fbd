"""Tables of words: weights expanded to them, look-ups in them, sums over them.

A table has a number for every word of a block and every task. The core makes those of a few blocks,
uses them for all rows, and forgets them, so that they stay in the cache.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from hilbin._core import core
from hilbin.parallel import ranges, run, stream
from hilbin.solvers._codes import Array
from hilbin.solvers._tasks import aligned_zeros, side_by_side, vectors_wide, whole_vectors

CHUNK: int = core.chunk_blocks
CHUNKS_PER_TASK = 16
ROWS_AT_ONCE = 1 << 15  # whose scores or slopes stay in the cache from a few blocks to the next


def blocks_of(begin: int, end: int, blocks: int) -> slice:
    """The blocks of the chunks ``begin .. end - 1``."""
    return slice(begin * CHUNK, min(end * CHUNK, blocks))


def columns_of(words: Array, dtype: Any) -> Array:
    """Words as the core takes them: blocks x components x words."""
    return np.ascontiguousarray(words.swapaxes(1, 2), dtype)


def coded_scores(chunks: Array, columns: Array, V: Array, n_jobs: int | None) -> Array:
    """``X V^T`` for weights of shape (k, size) and the rows ``X`` that are coded, in float64."""
    weights = _weights(columns, V)

    def add(codes: Array, of: slice, sums: Array) -> None:
        core.coded_scores(codes, columns[of], weights[of], sums)

    return _over_chunks(add, chunks, weights, n_jobs)[:, : len(V)]


def look_up(chunks: Array, tables: Array, n_jobs: int | None) -> Array:
    """Sums of the tables of all blocks at the codes of rows, in float64."""

    def add(codes: Array, of: slice, sums: Array) -> None:
        core.word_scores(codes, tables[of], sums)

    return _over_chunks(add, chunks, tables, n_jobs)


def coded_sums(chunks: Array, columns: Array, S: Array, n_jobs: int | None) -> Array:
    """``S^T X`` for slopes of shape (n, k) and the rows ``X`` that are coded; all components."""
    slopes = whole_vectors(S, columns.dtype)
    blocks, length, _ = columns.shape
    out = aligned_zeros((blocks, length, slopes.shape[1]), columns.dtype)

    def task(begin: int, end: int) -> None:
        of = blocks_of(begin, end, blocks)
        for top, bottom in ranges(len(S), ROWS_AT_ONCE):
            codes = chunks[begin:end, top:bottom]
            core.coded_sums(codes, slopes[top:bottom], columns[of], out[of])

    run(task, ranges(len(chunks), CHUNKS_PER_TASK), n_jobs)
    return out.reshape(blocks * length, -1)[:, : S.shape[1]].T


def _weights(columns: Array, V: Array) -> Array:
    """Weights as the core takes them: blocks x components x tasks."""
    blocks, length, _ = columns.shape
    width = vectors_wide(len(V), columns.dtype)
    weights = aligned_zeros((blocks * length, width), columns.dtype)
    weights[: V.shape[1], : len(V)] = V.T
    return weights.reshape(blocks, length, width)


def _over_chunks(
    add: Callable[[Array, slice, Array], None], chunks: Array, numbers: Array, n_jobs: int | None
) -> Array:
    """Scores that ``add(codes, blocks, sums)`` adds to; ``numbers`` has blocks and tasks."""
    shape = (chunks.shape[1], numbers.shape[2])

    def task(begin: int, end: int) -> Array:
        sums = aligned_zeros(shape, numbers.dtype)
        for top, bottom in ranges(len(sums), ROWS_AT_ONCE):
            of = blocks_of(begin, end, len(numbers))
            add(chunks[begin:end, top:bottom], of, sums[top:bottom])
        return sums

    total = np.zeros(shape)
    for sums in stream(task, ranges(len(chunks), CHUNKS_PER_TASK), n_jobs):
        total += sums
    return total


class WordTables:
    """Weights expanded to words once, so that scores of codes are look-ups alone.

    Parameters
    ----------
    words : array of shape (blocks, D, G)
        The words of every block.
    V : array of shape (k, size)
        Weights of every task.
    dtype : dtype, default=float32
        Of tables and scores.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import WordTables
    >>> tables = WordTables(np.array([[[1.0, 2.0], [0.0, 5.0]]]), np.array([[1.0, 1.0]]))
    >>> chunks = np.zeros((1, 3, 32), np.uint8)
    >>> chunks[0, :, 0] = [0, 1, 1]
    >>> tables.scores(chunks)
    array([[3.],
           [5.],
           [5.]], dtype=float32)
    """

    def __init__(self, words: Array, V: Array, dtype: Any = np.float32) -> None:
        columns = columns_of(words, dtype)
        self.tasks = side_by_side(len(V), dtype)
        self.tables = [_expanded(columns, V[begin:end]) for begin, end in self.tasks]

    def scores(self, chunks: Array, n_jobs: int | None = None) -> Array:
        """Scores (n, k) of codes in chunks, as :class:`WordRows` takes them."""
        found = [look_up(chunks, tables, n_jobs) for tables in self.tables]
        parts = zip(found, self.tasks, strict=True)
        scores = [sums[:, : end - begin] for sums, (begin, end) in parts]
        return np.concatenate(scores, axis=1, dtype=self.tables[0].dtype)


def _expanded(columns: Array, V: Array) -> Array:
    """The tables of all blocks."""
    weights = _weights(columns, V)
    tables = aligned_zeros((*columns.shape[::2], weights.shape[2]), columns.dtype)
    core.expand_words(columns, weights, tables)
    return tables
