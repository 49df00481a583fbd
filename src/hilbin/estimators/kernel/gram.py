r"""The Gram matrix of the rows of a fit: whole, sparse, or row by row, whatever memory allows.

It is computed once. Machines that see a part of the rows, and folds of a cross-validation, take
their part of it; kernels of compact support give a sparse matrix that is never made dense; where
the matrix would not fit, the solver asks for rows and keeps as many as it may.

:func:`check_gram` refuses a given matrix that cannot be one, and names the entry that says so. A
matrix is symmetric if :math:`Kv = K^\top v` for a random :math:`v`: two products find the rows of
entries that differ, without a second matrix, and whether all are finite. Reading a large matrix
takes longer than to train on it, which reads the rows of few support vectors: there, pairs of
entries are compared, and what is not finite is found if training reads it. Positive definiteness
would take the eigenvalues; seen are entries with :math:`K_{ij}^2 > K_{ii} K_{jj}` in some of the
rows.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs

from hilbin._arrays import Array, Matrix, check_rows, to_dense
from hilbin._core import core
from hilbin.estimators._fit import outer_level
from hilbin.estimators._sizes import weighted_mean
from hilbin.estimators.probability import row_keys
from hilbin.kernels import Gaussian, Kernel, NotPositiveDefiniteWarning
from hilbin.kernels.bandwidth import SAMPLE_ROWS
from hilbin.kernels.base import warn_near_identity
from hilbin.parallel import ranges
from hilbin.solvers.gram import GramRows, LazyRows, canonical, gram_rows, sparse_entries
from hilbin.stats.sample import uniform_of

MANY = 2000  # rows of a matrix of which not all are computed if few may be needed
NARROW, MANY_NARROW = 64, 5000  # with fewer columns, all rows are soon computed: as many rows
WIDE = 4096  # bytes of a row above which a few rows of the matrix wait for memory, and all do not
BATCH = 8  # rows computed at a time, for every thread
SAMPLE = 256  # rows from which a typical value is taken
MOST_WHOLE = 2048  # rows of a given matrix that is read as a whole
PAIRS = 3000  # entries that are compared in a larger one
MOST_ROWS = 64  # rows that are looked at entry by entry
ADVICE = (
    "Training ends where no step improves, which need not be the optimum; "
    "hilbin.kernels.repair_psd gives the nearest matrix that is positive definite"
)


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
        blocks = [to_dense(self._gram(X[b:e], None, None)) for b, e in ranges(X.shape[0], 64)]
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
        Type of the values.
    memory : int
        Bytes for them.
    n_jobs : int, optional
        Threads that compute them.
    which : array of int, optional
        The rows and columns of ``K`` that count; all by default.
    diagonal : array, optional
        That of ``K``, if it is known.
    source : matrix, optional
        The rows that kernel values are computed from: ``X``, or the same in single precision.
    """

    K: Any
    kernel: Kernel | None
    X: Matrix
    dtype: Any
    memory: int
    n_jobs: int | None
    which: Array | None = None
    diagonal: Array | None = None
    source: Matrix = None

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
        """Compute the matrix, if it fits and not ``few`` of many rows will be asked for."""
        n, given = X.shape[0], X
        if dtype == np.float32 and X.dtype == np.float64 and not sp.issparse(X):
            single = kernel._single(X)
            X = X if single is None else single
        near = sp.issparse(X) or X.shape[1] * X.itemsize <= WIDE
        many = MANY if sp.issparse(X) or X.shape[1] >= NARROW else MANY_NARROW
        some = few and n >= many and near and dtype == np.float32
        some = some and not isinstance(kernel, CallableKernel)
        if not kernel.compact and (some or n * n * np.dtype(dtype).itemsize > memory):
            K = None
        elif kernel.compact or isinstance(kernel, CallableKernel) or X.dtype == dtype:
            K = kernel._gram(X, None, n_jobs).astype(dtype, copy=False)
            warn_near_identity(kernel, K)
        else:
            K = kernel._gram_as(X, dtype, n_jobs)
        return cls(K, kernel, given, dtype, memory, n_jobs, source=X)

    @classmethod
    def of_matrix(cls, K: Matrix, dtype: Any, diagonal: Array | None = None) -> "Gram":
        """Take a matrix as it was given; it is symmetric, so Fortran order is C order."""
        K = K.T if not sp.issparse(K) and K.flags.f_contiguous else K
        return cls(K.astype(dtype, copy=False), None, None, dtype, 0, None, diagonal=diagonal)

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
        whole = gram_rows(self.K, self.diagonal)
        return whole if self.which is None else whole.restricted(self.which)

    @property
    def dense_rows(self) -> GramRows | None:
        """The whole matrix, without regard to ``which``, if it is in memory and dense."""
        if self.K is None or sp.issparse(self.K):
            return None
        return self.rows if self.which is None else GramRows(self.K)

    def subset(self, index: Array) -> "Gram":
        """Return the matrix of some of the rows."""
        if self.K is not None:
            return replace(self, which=self.places(index))
        assert self.kernel is not None
        return Gram.of_rows(self.kernel, self.X[index], self.dtype, self.memory, self.n_jobs)

    def between(self, some: Array, others: Array) -> Any:
        """Return the values between some rows and others."""
        if self.K is not None:
            some, others = self.places(some), self.places(others)
            if some.size <= others.size or sp.issparse(self.K):
                return self.K[some][:, others]
            return self.K[others][:, some].T  # copies of whole rows are cheap if they are few
        assert self.kernel is not None
        return self.kernel._gram(self.X[some], self.X[others], self.n_jobs)

    def mean(self, weights: Array) -> float:
        """Return the mean of all values, weighted by both rows; some rows stand for many."""
        index = np.unique(np.linspace(0, weights.size - 1, SAMPLE).astype(np.intp))
        every = np.arange(weights.size)
        rows = self._compute(index) if self.K is None else self.between(index, every)
        share = weights / weights.sum()
        return weighted_mean(rows @ share, weights[index])

    def places(self, index: Array) -> Array:
        """Return the rows of ``K`` that some rows are."""
        return index if self.which is None else self.which[index]

    def _compute(self, index: Array) -> Array:
        return np.ascontiguousarray(to_dense(self._against(self.source[index])), self.dtype)

    def _square(self, index: Array) -> Array:
        assert self.kernel is not None
        return self.kernel._gram_as(self.source[index], self.dtype, self.n_jobs)

    @cached_property
    def _against(self) -> Callable[[Matrix], Any]:
        assert self.kernel is not None
        return self.kernel._against(self.source, self.n_jobs)


def resolved(kernel: Any, X: Matrix, random: Any, names: Any = None) -> Kernel:
    """Return the kernel to use, with rules resolved; None is a Gaussian of median width.

    ``names`` are those of the columns, if they have some.

    Rules look at different rows only, which are drawn by what they hold, so that a weight of 2 is
    the row twice for them, too.
    """
    if kernel is not None and not isinstance(kernel, Kernel):
        return CallableKernel(kernel)
    if kernel is not None and not kernel._has_rules:
        return kernel._with_names(names)
    rows = _different(X, random)
    if kernel is None:
        kernel = Gaussian(gamma="median") if rows.shape[0] > 1 else Gaussian()
    kernel = kernel._with_names(names)._resolve(rows, random)
    kernel._require_resolved()
    return kernel


def _different(X: Matrix, random: np.random.RandomState) -> Matrix:
    """Return every row once, or ``SAMPLE_ROWS`` of them, in any order and number of copies."""
    numbers, first = np.unique(row_keys(X), return_index=True)
    if numbers.size > SAMPLE_ROWS:
        keys = uniform_of(numbers, int(random.randint(np.iinfo(np.int32).max)))
        first = first[np.argsort(keys, kind="stable")[:SAMPLE_ROWS]]
    return X[np.sort(first)]


def check_gram(K: Matrix, name: str = "X", most_whole: float = MOST_WHOLE) -> Array:
    """Refuse a matrix that is not symmetric or has no diagonal; warn of an indefinite one.

    Returns the diagonal, in float64.
    One of more than ``most_whole`` rows is not read as a whole.
    """
    if K.shape[0] != K.shape[1]:
        check_rows(K, name)
        raise ValueError(
            f"{name} must be square, the kernel between all pairs of training rows; got shape "
            f"{K.shape}"
        )
    K = canonical(K) if sp.issparse(K) else K
    every = np.arange(K.shape[0])
    diagonal = _entries(K, every, every).astype(np.float64)
    whole = K.shape[0] <= most_whole
    if whole or not np.isfinite(diagonal).all():
        check_rows(K, name)
    if (diagonal < 0).any():
        i = int(np.argmin(diagonal))
        raise ValueError(
            f"{name}[{i}, {i}] = {diagonal[i]} is negative: {name} is not a Gram matrix"
        )
    _refuse_empty_diagonal(K, diagonal, name)
    tolerance = float(np.sqrt(np.finfo(K.dtype).eps)) * diagonal.max()
    for i, j in _suspects(K, tolerance, whole):
        if not abs(K[i, j] - K[j, i]) <= tolerance:
            raise ValueError(
                f"{name} is not symmetric: {name}[{i}, {j}] = {K[i, j]}, but {name}[{j}, {i}] = "
                f"{K[j, i]}"
            )
    excess = _excess(K, np.sqrt(diagonal), tolerance)
    if excess is not None:
        i, j = excess
        warnings.warn(
            f"{name} is not positive definite: {name}[{i}, {j}] = {K[i, j]}, but {name}[{i}, {i}] "
            f"= {diagonal[i]} and {name}[{j}, {j}] = {diagonal[j]}. {ADVICE}",
            NotPositiveDefiniteWarning,
            stacklevel=outer_level(),
        )
    return diagonal


def _refuse_empty_diagonal(K: Matrix, diagonal: Array, name: str) -> None:
    empty = np.flatnonzero(diagonal == 0)
    if not empty.size:
        return
    rows = abs(K[empty]).max(axis=1)
    sizes = rows.toarray().ravel() if sp.issparse(rows) else np.asarray(rows)
    if not sizes.any():
        return
    i = int(empty[np.argmax(sizes > 0)])
    raise ValueError(
        f"{name}[{i}, {i}] is 0, or not stored, but row {i} is not empty: {name} is not a Gram "
        "matrix. Are these distances, or neighbors without the row itself?"
    )


def _entries(K: Any, i: Array, j: Array) -> Array:
    found: Array = sparse_entries(K, i, j) if sp.issparse(K) else K[i, j]
    return found


def _suspects(K: Any, tolerance: float, whole: bool) -> Iterator[tuple[int, int]]:
    """Give places where the matrix may differ from its transpose; rounding is suspected, too."""
    random = np.random.default_rng(0)
    n = K.shape[0]
    if not whole:
        i, j = random.integers(n, size=(2, PAIRS))
        if sp.issparse(K) and K.nnz:
            place = random.integers(K.nnz, size=PAIRS)
            i, j = np.searchsorted(K.indptr, place, side="right") - 1, K.indices[place]
        apart = np.flatnonzero(~(np.abs(_entries(K, i, j) - _entries(K, j, i)) <= tolerance))
        yield from ((int(i[k]), int(j[k])) for k in apart)
        return
    v = random.normal(size=n).astype(K.dtype)
    for i in np.flatnonzero(np.abs(K @ v - K.T @ v) > tolerance):
        row, column = (to_dense(line) for line in (K[i], K[:, i]))
        yield int(i), int(np.argmax(np.abs(np.ravel(row) - np.ravel(column))))


def _excess(K: Any, norms: Array, tolerance: float) -> tuple[int, int] | None:
    """Find an entry larger than two rows of these norms can have; some rows are looked at."""
    some = np.unique(np.linspace(0, K.shape[0] - 1, MOST_ROWS).astype(np.int64))
    if not sp.issparse(K) and K.flags.c_contiguous:
        found = core.first_beyond(K, some, norms, tolerance)
        return found if found[0] >= 0 else None
    rows = K[some]
    if sp.issparse(K):
        i, j = np.repeat(np.arange(some.size), np.diff(rows.indptr)), rows.indices
        beyond = np.abs(rows.data) > norms[some[i]] * norms[j] + tolerance
        i, j = i[beyond], j[beyond]
    else:
        i, j = np.nonzero(np.abs(rows) > norms[some, None] * norms + tolerance)
    return (int(some[i[0]]), int(j[0])) if i.size else None
