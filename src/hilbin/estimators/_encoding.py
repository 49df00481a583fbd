"""Values to codes, in blocks that stay in the cache between looking at them and encoding them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from hilbin import parallel
from hilbin._arrays import Array, Matrix, apply
from hilbin._core import core

VALUES_PER_TASK = 1 << 20
VALUES_AT_ONCE = 1 << 15


class BadValueError(ValueError):
    """A value that is not finite, or smaller than it may be."""


def encode(
    X: Matrix,
    run: Callable[..., None],
    given: list[Any],
    dtype: Any,
    n_jobs: int | None,
    least_allowed: float | None,
) -> Any:
    """Codes of the values of ``X``, as ``run`` of the core makes them with what is ``given``.

    With ``least_allowed``, a value below it or one that is not finite raises ``BadValueError``.
    """
    stored = sp.issparse(X)
    values = X.data if stored else np.ascontiguousarray(X).ravel()
    indices = X.indices.astype(np.int32, copy=False) if stored else np.empty(0, np.int32)
    codes = np.empty(values.size, dtype)
    width = 1 if stored else X.shape[1]
    at_once = max(1, VALUES_AT_ONCE // width) * width

    def task(begin: int, end: int) -> None:
        for part in range(begin, end, at_once):
            upto = min(part + at_once, end)
            if least_allowed is not None:
                least, finite = core.least_and_finite(values[part:upto])
                if not finite or least < least_allowed:
                    raise BadValueError
            run(values, indices, *given, codes, part, upto)

    per_task = max(1, VALUES_PER_TASK // at_once) * at_once
    parallel.run(task, parallel.ranges(values.size, per_task), n_jobs)
    if stored:
        return sp.csr_array((codes, X.indices, X.indptr), shape=X.shape)
    return codes.reshape(X.shape)


def measure(X: Matrix, origin: Array, scale: Array) -> Any:
    """Values from ``origin`` on, in units of ``1 / scale``."""
    if sp.issparse(X):
        origin, scale = origin[X.indices], scale[X.indices]
    with np.errstate(over="ignore"):
        measured = apply(X, lambda x: np.maximum(x - origin, 0) * scale)
    if not np.isfinite(measured.data if sp.issparse(measured) else measured).all():
        raise ValueError("X has values too far beyond the range of their feature to be measured")
    return measured
