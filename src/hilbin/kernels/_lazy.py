"""A Gram matrix that is only ever multiplied."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from hilbin._arrays import Array, Matrix


class LazyGram(LinearOperator):
    """``K @ v`` and ``K.T @ v`` by bands of rows; see :meth:`hilbin.kernels.Kernel.lazy`."""

    def __init__(
        self, kernel: Any, X: Matrix, Y: Matrix, memory: float | None, n_jobs: int | None
    ) -> None:
        super().__init__(dtype=X.dtype, shape=(X.shape[0], Y.shape[0]))
        self._bands: Callable[[], Iterator[tuple[slice, Any]]] = lambda: kernel.tiles(
            X, Y, memory=memory, n_jobs=n_jobs
        )

    def _matmat(self, V: Array) -> Array:
        return np.concatenate([K @ V for _, K in self._bands()])

    def _rmatmat(self, V: Array) -> Array:
        out = np.zeros((self.shape[1], V.shape[1]), dtype=np.result_type(self.dtype, V))
        for rows, K in self._bands():
            out += K.T @ V[rows]
        return out

    def _matvec(self, v: Array) -> Array:
        return self._matmat(v.reshape(-1, 1))

    def _rmatvec(self, v: Array) -> Array:
        return self._rmatmat(v.reshape(-1, 1))
