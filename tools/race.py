"""A race on purpose: two threads let the core fill one array. The thread sanitizer must find it."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from hilbin._core import core

ROWS, FEATURES, LEVELS = 2000, 50, 4
rng = np.random.default_rng(0)
codes = rng.integers(0, LEVELS, ROWS * FEATURES).astype(np.uint8)
dense = np.empty(0, np.int32), np.empty(0, np.int64)  # no indices and no row pointers
offsets, table = np.arange(0, LEVELS * FEATURES + 1, LEVELS), rng.random((LEVELS * FEATURES, 1))
out = np.empty((ROWS, 1))
with ThreadPoolExecutor(2) as pool:
    list(pool.map(lambda _: core.look_up(codes, *dense, offsets, table, out, 0, ROWS), range(8)))
