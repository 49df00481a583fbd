"""In-place arithmetic on a big matrix, in blocks that stay in the cache, over threads."""

from collections.abc import Callable

from hilbin._arrays import Array
from hilbin.parallel import ranges, run

BLOCK_BYTES = 1 << 18


def rowwise(K: Array, change: Callable[[Array, slice], object], n_jobs: int | None) -> Array:
    """Call ``change(K[rows], rows)`` for blocks of rows, and return ``K``."""
    height = max(1, BLOCK_BYTES // max(1, K.shape[1] * K.itemsize))
    per_task = max(height, K.shape[0] // 64)

    def task(begin: int, end: int) -> None:
        for b in range(begin, end, height):
            rows = slice(b, min(b + height, end))
            change(K[rows], rows)

    run(task, ranges(K.shape[0], per_task), n_jobs)
    return K
