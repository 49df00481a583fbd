"""Tasks side by side: how many of them a pass over compressed rows serves at once.

The core looks up one number at a time, or up to three vectors of them. Two tasks are served one
after the other, more of them together.
"""

import math
from typing import Any

import numpy as np

from hilbin._core import core
from hilbin.parallel import Range, ranges
from hilbin.solvers._codes import Array

FEW = 2  # tasks that are served one by one
CACHE_LINE = 64  # bytes


def lanes(dtype: Any) -> int:
    """Numbers of a vector."""
    return int(core.vector_bytes // np.dtype(dtype).itemsize)


def side_by_side(tasks: int, dtype: Any) -> list[Range]:
    """Ranges of tasks to be served together."""
    return ranges(tasks, 1 if tasks <= FEW else core.most_vectors * lanes(dtype))


def vectors_wide(tasks: int, dtype: Any) -> int:
    """``tasks`` filled up to whole vectors; one task stays one."""
    return 1 if tasks == 1 else -(-tasks // lanes(dtype)) * lanes(dtype)


def whole_vectors(A: Array, dtype: Any) -> Array:
    """``A`` with its last axis, the tasks, filled up to whole vectors."""
    tasks = A.shape[-1]
    padded = aligned_zeros((*A.shape[:-1], vectors_wide(tasks, dtype)), dtype)
    padded[..., :tasks] = A
    return padded


def aligned_zeros(shape: tuple[int, ...], dtype: Any) -> Array:
    """Zeros that begin with a line of the cache: vectors that lie on two are slow."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    room = np.zeros(size + CACHE_LINE, np.uint8)
    begin = -room.ctypes.data % CACHE_LINE
    return room[begin : begin + size].view(dtype).reshape(shape)
