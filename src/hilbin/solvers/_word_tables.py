"""Tables of words: weights expanded to them, look-ups in them, sums over them.

A table has a number for every word of a block and every task. Those of a few chunks of blocks are
computed, used for all rows, and forgotten, so that they stay in the cache.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from hilbin._core import core
from hilbin.parallel import Range, ranges, run, stream
from hilbin.solvers._codes import Array
from hilbin.solvers._tasks import side_by_side, whole_vectors

CHUNK: int = core.chunk_blocks
CHUNKS_PER_TASK = 16
TABLE_BYTES = 1 << 20  # of tables that are computed together
ROWS_OF_VECTORS = 8192  # whose sums for several tasks stay in the cache


def blocks_of(begin: int, end: int, blocks: int) -> slice:
    """The blocks of the chunks ``begin .. end - 1``."""
    return slice(begin * CHUNK, min(end * CHUNK, blocks))


def columns_of(words: Array, dtype: Any) -> Array:
    """Words as the core takes them: blocks x components x words."""
    return np.ascontiguousarray(words.swapaxes(1, 2), dtype)


def expand(columns: Array, V: Array) -> Callable[[slice], Array]:
    """A function that makes the tables of some blocks, for weights of shape (k, size)."""
    blocks, length, count = columns.shape
    whole = np.zeros((blocks * length, len(V)), columns.dtype)
    whole[: V.shape[1]] = V.T
    weights = whole_vectors(whole.reshape(blocks, length, -1), columns.dtype)

    def tables(of: slice) -> Array:
        room = np.empty((of.stop - of.start, count, weights.shape[2]), columns.dtype)
        core.expand_words(columns[of], weights[of], room)
        return room

    return tables


def look_up(
    chunks: Array, tables: Callable[[slice], Array], shape: tuple[int, int, int], n_jobs: int | None
) -> Array:
    """Sums of the tables of all blocks at the codes of rows, in float64.

    ``tables`` gives those of some blocks, and ``shape`` is that of all: blocks, words, tasks.
    """
    (blocks, _, width), n = shape, chunks.shape[1]
    dtype = tables(slice(0, 0)).dtype

    def task(begin: int, end: int) -> Array:
        sums = np.zeros((n, width), dtype)
        for first, last in _few_chunks(begin, end, shape):
            some = tables(blocks_of(first, last, blocks))
            for top, bottom in _tiles(n, width):
                core.word_scores(chunks[first:last, top:bottom], some, sums[top:bottom])
        return sums

    total = np.zeros((n, width))
    for sums in stream(task, ranges(len(chunks), CHUNKS_PER_TASK), n_jobs):
        total += sums
    return total


def sum_up(chunks: Array, columns: Array, S: Array, n_jobs: int | None) -> Array:
    """``S^T X`` for slopes of shape (n, k) and the rows ``X`` that are coded; all components."""
    slopes = whole_vectors(S, columns.dtype)
    (n, width), (blocks, length, count) = slopes.shape, columns.shape
    out = np.empty((blocks, length, width), columns.dtype)

    def task(begin: int, end: int) -> None:
        steps = _few_chunks(begin, end, (blocks, count, width))
        room = np.empty(((steps[0][1] - begin) * CHUNK, count, width), columns.dtype)
        for first, last in steps:
            of = blocks_of(first, last, blocks)
            tables = room[: of.stop - of.start]
            tables.fill(0)  # the same memory again: that of new zeros is not in the cache
            for top, bottom in _tiles(n, width):
                core.word_sums(chunks[first:last, top:bottom], slopes[top:bottom], tables)
            core.reduce_words(columns[of], tables, out[of])

    run(task, ranges(len(chunks), CHUNKS_PER_TASK), n_jobs)
    return out.reshape(blocks * length, width)[:, : S.shape[1]].T


def _few_chunks(begin: int, end: int, shape: tuple[int, int, int]) -> list[Range]:
    """Ranges of chunks whose tables are used together."""
    few = max(1, TABLE_BYTES // (4 * CHUNK * shape[1] * shape[2]))
    return [(begin + a, begin + b) for a, b in ranges(end - begin, few)]


def _tiles(n: int, width: int) -> list[Range]:
    """Ranges of rows that use a few tables after each other."""
    return ranges(n, max(1, n) if width == 1 else ROWS_OF_VECTORS)


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
        everything = slice(0, len(words))
        self.tables = [expand(columns, V[begin:end])(everything) for begin, end in self.tasks]

    def scores(self, chunks: Array, n_jobs: int | None = None) -> Array:
        """Scores (n, k) of codes in chunks, as :class:`WordRows` takes them."""
        found = [look_up(chunks, t.__getitem__, t.shape, n_jobs) for t in self.tables]
        parts = zip(found, self.tasks, strict=True)
        scores = [sums[:, : end - begin] for sums, (begin, end) in parts]
        return np.concatenate(scores, axis=1, dtype=self.tables[0].dtype)
