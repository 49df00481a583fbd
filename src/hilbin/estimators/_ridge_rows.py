"""Rows and weights to the Gram matrix of :class:`KernelRidge`, and bands of kernel values."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight

from hilbin._arrays import Array, Matrix, check_rows
from hilbin.estimators._kernel_checks import check_gram
from hilbin.estimators._kernel_gram import CallableKernel, resolved
from hilbin.parallel import ranges

SHARE = 1 / 3  # of the working memory for a band of float32, and two for its copy in float64


def is_precomputed(kernel: Any) -> bool:
    """Whether the matrix itself is given."""
    return isinstance(kernel, str) and kernel == "precomputed"


def checked_weights(sample_weight: Any, X: Matrix) -> Array:
    """Weights as numbers >= 0, not all of them 0."""
    weights: Array = _check_sample_weight(sample_weight, X, dtype=np.float64)
    bad = ~np.isfinite(weights) | (weights < 0)
    if bad.any():
        i = int(np.argmax(bad))
        raise ValueError(f"sample_weight[{i}] = {weights[i]} is not a number >= 0")
    if not weights.any():
        raise ValueError("sample_weight is zero for every row")
    return weights


def training_gram(
    kernel: Any, X: Matrix, weights: Array, random_state: Any, n_jobs: int | None
) -> tuple[Any, Any]:
    """The kernel without rules, and its matrix of the rows."""
    if is_precomputed(kernel):
        check_gram(check_rows(X, "X"))
        return kernel, X
    counted = X if weights.all() else X[weights > 0]
    kernel = resolved(kernel, counted, check_random_state(random_state))
    K = kernel.gram(X, n_jobs=n_jobs)
    if isinstance(kernel, CallableKernel):
        check_gram(K)
    return kernel, K


def bands(kernel: Any, X: Matrix, known: Matrix, n_jobs: int | None) -> Iterator[tuple[slice, Any]]:
    """Kernel values between new and training rows; a precomputed ``X`` has them."""
    memory = SHARE * get_config()["working_memory"]
    if not is_precomputed(kernel):
        values: Iterator[tuple[slice, Any]] = kernel.tiles(X, known, memory=memory, n_jobs=n_jobs)
        return values
    height = max(1, int(memory * 2**20 / 8 / X.shape[1]))
    return ((slice(i, j), X[i:j]) for i, j in ranges(X.shape[0], height))
