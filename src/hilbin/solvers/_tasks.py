"""Tasks side by side: how many of them a pass over compressed rows serves at once.

The core looks up one number at a time, or up to three vectors of them. Two tasks are served one
after the other, more of them together.
"""

from typing import Any

import numpy as np

from hilbin._core import core
from hilbin.parallel import Range, ranges
from hilbin.solvers._codes import Array

FEW = 2  # tasks that are served one by one


def lanes(dtype: Any) -> int:
    """Numbers of a vector."""
    return int(core.vector_bytes // np.dtype(dtype).itemsize)


def side_by_side(tasks: int, dtype: Any) -> list[Range]:
    """Ranges of tasks to be served together."""
    return ranges(tasks, 1 if tasks <= FEW else core.most_vectors * lanes(dtype))


def whole_vectors(A: Array, dtype: Any) -> Array:
    """``A`` with its last axis, the tasks, filled up to whole vectors; one task stays one."""
    tasks = A.shape[-1]
    width = 1 if tasks == 1 else -(-tasks // lanes(dtype)) * lanes(dtype)
    padded = np.zeros((*A.shape[:-1], width), dtype)
    padded[..., :tasks] = A
    return padded
