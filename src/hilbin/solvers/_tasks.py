"""Tasks side by side: how many of them a pass over compressed rows serves at once.

The core looks up one number at a time, or up to three vectors of them. Two tasks are served one
after the other, more of them together. A gradient of slopes that are mostly 0 (rows beyond the
margin have none) is summed task by task, over the rows that count for it.
"""

from typing import Any

import numpy as np

from hilbin._core import core
from hilbin.parallel import Range, ranges
from hilbin.solvers._codes import Array

FEW = 2  # tasks that are served one by one
SINGLY = 2.2  # sums of one number that take as long as one of a vector


def lanes(dtype: Any) -> int:
    """Numbers of a vector."""
    return int(core.vector_bytes // np.dtype(dtype).itemsize)


def side_by_side(tasks: int, dtype: Any) -> list[Range]:
    """Ranges of tasks to be served together."""
    return ranges(tasks, 1 if tasks <= FEW else core.most_vectors * lanes(dtype))


def side_by_side_slopes(S: Array, dtype: Any, overhead: float) -> list[Range]:
    """The same for slopes of shape (n, k); ``overhead`` is what a pass costs besides its rows."""
    tasks = S.shape[1]
    together = side_by_side(tasks, dtype)
    if tasks <= FEW:
        return together
    vectors = sum(-(-(end - begin) // lanes(dtype)) for begin, end in together)
    singly = np.count_nonzero(S) + tasks * overhead
    return ranges(tasks, 1) if singly < SINGLY * vectors * (len(S) + overhead) else together


def whole_vectors(A: Array, dtype: Any) -> Array:
    """``A`` with its last axis, the tasks, filled up to whole vectors; one task stays one."""
    tasks = A.shape[-1]
    width = 1 if tasks == 1 else -(-tasks // lanes(dtype)) * lanes(dtype)
    padded = np.zeros((*A.shape[:-1], width), dtype)
    padded[..., :tasks] = A
    return padded
