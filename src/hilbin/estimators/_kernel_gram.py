"""The Gram matrix of the rows of a fit: whole, sparse, or row by row, whatever memory allows.

It is computed once. Machines that see a part of the rows, and folds of a cross-validation, take
their part of it; kernels of compact support give a sparse matrix that is never made dense; where
the matrix would not fit, the solver asks for rows and keeps as many as it may.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs

from hilbin._arrays import Array, Matrix, check_rows
from hilbin.kernels import Gaussian, Kernel
from hilbin.kernels.bandwidth import sample
from hilbin.kernels.base import dense
from hilbin.parallel import ranges
from hilbin.solvers import GramRows, LazyRows, SparseGramRows

BLOCK = 2048  # rows and columns that are computed together where the matrix is rounded
MANY = 2000  # rows of a matrix of which not all are computed if few may be needed
BATCH = 8  # rows computed at a time, for every thread
SAMPLE = 256  # rows from which a typical value is taken


@dataclass(frozen=True, repr=False)
class CallableKernel(Kernel):
    """A function ``(X, Y) -> matrix`` as a kernel."""

    function: Callable[[Matrix, Matrix], Any]

    def _gram(self, X: Matrix, Y: Matrix | None, n_jobs: int | None) -> Any:
        Y = X if Y is None else Y
        K = check_rows(self.function(X, Y), "the matrix that kernel returned")
        if K.shape != (X.shape[0], Y.shape[0]):
            raise ValueError(
                f"kernel returned a matrix of shape {K.shape} for {X.shape[0]} and {Y.shape[0]} "
                "rows"
            )
        return K

    def _diag(self, X: Matrix) -> Array:
        blocks = [dense(self._gram(X[b:e], None, None)) for b, e in ranges(X.shape[0], 64)]
        return np.concatenate([np.diag(block) for block in blocks]).astype(np.float64)


@dataclass(frozen=True)
class Gram:
    """Kernel values between the rows of a fit.

    Parameters
    ----------
    K : array, CSR matrix or None
        All of them; None if they do not fit.
    kernel : Kernel, optional
        Computes them; None if they were given.
    X : matrix, optional
        The rows.
    dtype : dtype
        Of the values.
    memory : int
        Bytes for them.
    n_jobs : int, optional
        Threads that compute them.
    which : array of int, optional
        The rows and columns of ``K`` that count; all by default.
    """

    K: Any
    kernel: Kernel | None
    X: Matrix
    dtype: Any
    memory: int
    n_jobs: int | None
    which: Array | None = None

    @classmethod
    def of_rows(
        cls,
        kernel: Kernel,
        X: Matrix,
        dtype: Any,
        memory: int,
        n_jobs: int | None,
        *,
        few: bool = False,
    ) -> "Gram":
        """Computed here and now, if it fits and not ``few`` of many rows will be asked for."""
        n = X.shape[0]
        some = few and n >= MANY and dtype == np.float32 and not isinstance(kernel, CallableKernel)
        if not kernel.compact and (some or n * n * np.dtype(dtype).itemsize > memory):
            K = None
        elif kernel.compact or isinstance(kernel, CallableKernel) or X.dtype == dtype:
            K = kernel._gram(X, None, n_jobs).astype(dtype, copy=False)
        else:
            K = _rounded_gram(kernel, X, dtype, n_jobs)
        return cls(K, kernel, X, dtype, memory, n_jobs)

    @classmethod
    def of_matrix(cls, K: Matrix, dtype: Any) -> "Gram":
        """As it was given, which is symmetric: Fortran order is C order."""
        K = K.T if not sp.issparse(K) and K.flags.f_contiguous else K
        return cls(K.astype(dtype, copy=False), None, None, dtype, 0, None)

    @property
    def is_lazy(self) -> bool:
        """Whether rows are computed when they are asked for."""
        return self.K is None

    @cached_property
    def rows(self) -> Any:
        """What solvers take; all that share it share its cache."""
        if self.kernel is not None and self.K is None:
            return LazyRows(
                self._compute,
                self.kernel._diag(self.X),
                self.memory,
                batch=BATCH * effective_n_jobs(self.n_jobs),
                square=self._square,
            )
        whole = SparseGramRows(self.K) if sp.issparse(self.K) else GramRows(self.K)
        return whole if self.which is None else whole.restricted(self.which)

    def subset(self, index: Array) -> "Gram":
        """Between some of the rows."""
        if self.K is not None:
            return replace(self, which=self._places(index))
        assert self.kernel is not None
        return Gram.of_rows(self.kernel, self.X[index], self.dtype, self.memory, self.n_jobs)

    def between(self, some: Array, others: Array) -> Any:
        """Between some rows and others."""
        if self.K is not None:
            some, others = self._places(some), self._places(others)
            sparse = sp.issparse(self.K)
            return self.K[some][:, others] if sparse else self.K[np.ix_(some, others)]
        assert self.kernel is not None
        return self.kernel._gram(self.X[some], self.X[others], self.n_jobs)

    def mean(self, weights: Array) -> float:
        """Of all values, by the weights of both rows; of some of the rows, if there are many."""
        index = np.unique(np.linspace(0, weights.size - 1, SAMPLE).astype(np.intp))
        every = np.arange(weights.size)
        rows = self._compute(index) if self.K is None else self.between(index, every)
        return float(np.average(rows @ weights, weights=weights[index])) / float(weights.sum())

    def _places(self, index: Array) -> Array:
        return index if self.which is None else self.which[index]

    def _compute(self, index: Array) -> Array:
        return np.ascontiguousarray(dense(self._against(self.X[index])), self.dtype)

    def _square(self, index: Array) -> Array:
        assert self.kernel is not None
        return _rounded_gram(self.kernel, self.X[index], self.dtype, self.n_jobs)

    @cached_property
    def _against(self) -> Callable[[Matrix], Any]:
        assert self.kernel is not None
        return self.kernel._against(self.X, self.n_jobs)


def resolved(kernel: Any, X: Matrix, random: Any) -> Kernel:
    """The kernel to use, with rules resolved; None is a Gaussian of median width.

    Rules look at different rows only, so that a weight of 2 is the row twice for them, too.
    """
    if kernel is not None and not isinstance(kernel, Kernel):
        return CallableKernel(kernel)
    rows = _different(sample(X, random))
    if kernel is None:
        kernel = Gaussian(gamma="median") if rows.shape[0] > 1 else Gaussian()
    kernel = kernel._resolve(rows, random)
    kernel._require_resolved()
    return kernel


def _different(X: Matrix) -> Matrix:
    """Every row once."""
    if sp.issparse(X):
        parts = [slice(b, e) for b, e in itertools.pairwise(X.indptr)]
        keys = [(X.indices[part].tobytes(), X.data[part].tobytes()) for part in parts]
    else:
        keys = [row.tobytes() for row in X]
    return X[np.sort([*{key: i for i, key in enumerate(keys)}.values()])]


def _rounded_gram(kernel: Kernel, X: Matrix, dtype: Any, n_jobs: int | None) -> Array:
    """The symmetric matrix in another dtype, each value computed once, in that of ``X``."""
    parts = ranges(X.shape[0], BLOCK)
    K = np.empty((X.shape[0], X.shape[0]), dtype)
    for b, e in parts:
        K[b:e, b:e] = kernel._gram(X[b:e], None, n_jobs)
        for c, f in parts[: b // BLOCK]:
            block = kernel._gram(X[b:e], X[c:f], n_jobs)
            K[b:e, c:f], K[c:f, b:e] = block, block.T
    return K
