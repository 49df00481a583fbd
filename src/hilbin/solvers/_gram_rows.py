r"""Gram matrices as solvers see them: dense, sparse, or rows computed when they are needed.

All have the diagonal as ``norms``, ``scores(coef)``, that is :math:`Kc`, in float64, and steps of
sequential minimal optimization; ``restricted`` is the same matrix of some of the rows. The state of
the steps is one array with a line per quantity and a column per row: coefficients, gradient, two
lines of the core's own, lower and upper bounds and the diagonal.
"""

from collections.abc import Callable
from typing import Any, Protocol, Self

import numpy as np
import scipy.sparse as sp

from hilbin._core import core
from hilbin.solvers._codes import Array

COEF, GRADIENT, LOW, HIGH, DIAGONAL, STATE = 0, 1, 4, 5, 6, 7
Report = tuple[int, float]


class StepRows(Protocol):
    """A Gram matrix on which :func:`smo` works."""

    norms: Array

    def steps(self, state: Array, epsilon: float, most: int, tol: float) -> Report:
        """At most so many steps; returns their number and the violation before the last."""

    def scores(self, coef: Array) -> Array:
        """``K @ coef`` in float64, for a vector or columns of coefficients."""

    def price(self, size: int) -> float:
        """How many steps take as long as taking out the matrix of so many rows."""

    def restricted(self, which: Array) -> "StepRows":
        """The matrix of some of the rows."""


class GramRows:
    """Rows of a Gram matrix; the state of a descent is the score of every row.

    Parameters
    ----------
    gram : array of shape (n, n)
        Symmetric and positive semi-definite, float32 or float64.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import GramRows
    >>> GramRows(np.array([[3.0, 1.0], [1.0, 3.0]])).scores(np.array([1.0, 0.0]))
    array([3., 1.])
    """

    def __init__(self, gram: Array):
        self.gram = np.ascontiguousarray(gram)
        self.norms = np.diag(gram).astype(np.float64)

    def start(self, coef: Array, dtype: Any) -> Any:
        """A function that runs one sweep, from the scores of ``coef``."""
        scores = self.gram @ coef.astype(self.gram.dtype)
        return lambda *course: core.sweep_gram(self.gram, scores, *course)

    def start_classes(self, coef: Array, dtype: Any) -> Any:
        """The same for the scores of every column of ``coef``."""
        scores = np.ascontiguousarray((self.gram @ coef.astype(self.gram.dtype)).T)
        return lambda *course: core.sweep_classes_gram(self.gram, scores, *course)

    def steps(self, state: Array, epsilon: float, most: int, tol: float) -> Report:
        """Steps of sequential minimal optimization."""
        done, violation, _ = core.smo_dense(self.gram, state, epsilon, most, tol)
        return done, violation

    def scores(self, coef: Array) -> Array:
        """``K @ coef`` in float64, reading the rows of non-zero coefficients."""
        return by_columns(coef, lambda column, out: core.add_rows(self.gram, column, out))

    def price(self, size: int) -> float:
        """How many steps take as long as taking out the matrix of so many rows."""
        return size

    def restricted(self, which: Array) -> "PartRows":
        """The matrix of some of the rows."""
        return PartRows(self.gram, which)


class PartRows:
    """Some rows and columns of a Gram matrix, a row copied when it is first used.

    Parameters
    ----------
    gram : array of shape (n, n)
        The whole matrix, float32 or float64.
    which : array of int
        The rows and columns.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import GramRows
    >>> K = np.array([[3.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
    >>> GramRows(K).restricted(np.array([0, 2])).scores(np.array([1.0, 0.0]))
    array([3. , 0.5])
    """

    def __init__(self, gram: Array, which: Array):
        self.gram, self.which = gram, np.ascontiguousarray(which, np.int32)
        n = self.which.size
        self.norms = gram[self.which, self.which].astype(np.float64)
        self._copies = np.empty((n, n), gram.dtype)  # rows that are not used take no memory
        self._copied = np.zeros(n, np.uint8)
        self._part = self.gram, self.which, self._copies, self._copied

    def start(self, coef: Array, dtype: Any) -> Any:
        """A function that runs one sweep, from the scores of ``coef``."""
        return self._whole().start(coef, dtype)

    def start_classes(self, coef: Array, dtype: Any) -> Any:
        """The same for the scores of every column of ``coef``."""
        return self._whole().start_classes(coef, dtype)

    def steps(self, state: Array, epsilon: float, most: int, tol: float) -> Report:
        """Steps of sequential minimal optimization."""
        done, violation, _ = core.smo_part(*self._part, state, epsilon, most, tol)
        return done, violation

    def scores(self, coef: Array) -> Array:
        """``K @ coef`` in float64, reading the rows of non-zero coefficients."""
        core.copy_part(*self._part, coef.reshape(len(coef), -1).any(axis=1))
        return by_columns(coef, lambda column, out: core.add_rows(self._copies, column, out))

    def price(self, size: int) -> float:
        """How many steps take as long as taking out the matrix of so many rows."""
        return size

    def restricted(self, which: Array) -> "PartRows":
        """The matrix of some of the rows."""
        return PartRows(self.gram, self.which[which])

    def _whole(self) -> GramRows:
        core.copy_part(*self._part, np.ones(self.which.size, bool))
        return GramRows(self._copies)


class SparseGramRows:
    """Rows of a sparse Gram matrix.

    Parameters
    ----------
    gram : CSR array of shape (n, n)
        Symmetric and positive semi-definite, float32 or float64.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from hilbin.solvers import SparseGramRows
    >>> SparseGramRows(sp.csr_array(np.diag([3.0, 2.0]))).scores(np.array([1.0, 0.0]))
    array([3., 0.])
    """

    def __init__(self, gram: Any):
        self.gram = canonical(gram)
        self._parts = csr_parts(self.gram)
        every = np.arange(self.gram.shape[0])
        self.norms = sparse_entries(self.gram, every, every).astype(np.float64)

    def start(self, coef: Array, dtype: Any) -> Any:
        """A function that runs one sweep, from the scores of ``coef``."""
        scores = self.gram @ coef.astype(self.gram.dtype)
        return lambda *course: core.sweep_sparse_gram(*self._parts, scores, *course)

    def start_classes(self, coef: Array, dtype: Any) -> Any:
        """The same for the scores of every column of ``coef``."""
        scores = np.ascontiguousarray((self.gram @ coef.astype(self.gram.dtype)).T)
        return lambda *course: core.sweep_classes_sparse_gram(*self._parts, scores, *course)

    def steps(self, state: Array, epsilon: float, most: int, tol: float) -> Report:
        """Steps of sequential minimal optimization."""
        done, violation, _ = core.smo_sparse(*self._parts, state, epsilon, most, tol)
        return done, violation

    def scores(self, coef: Array) -> Array:
        """``K @ coef`` in float64, reading the rows of non-zero coefficients."""
        return by_columns(coef, lambda column, out: core.add_sparse_rows(*self._parts, column, out))

    def price(self, size: int) -> float:
        """How many steps take as long as taking out the matrix of so many rows."""
        return 3 * len(self.norms)

    def restricted(self, which: Array) -> Self:
        """The matrix of some of the rows."""
        return type(self)(self.gram[which][:, which])


def canonical(K: Any) -> Any:
    """CSR with the columns of a row in ascending order, each once."""
    K = K if isinstance(K, sp.csr_array) else sp.csr_array(K)  # which remembers that it is
    if not K.has_canonical_format:
        K = K.copy()
        K.sum_duplicates()
    return K


def csr_parts(K: Any) -> tuple[Array, Array, Array]:
    """Values, columns and row pointers, as the core takes them."""
    return K.data, K.indices.astype(np.int32, copy=False), K.indptr


def sparse_entries(K: Any, rows: Array, columns: Array) -> Array:
    """``K[rows, columns]`` of a canonical CSR matrix."""
    found = np.empty(len(rows), K.dtype)
    places = (np.ascontiguousarray(index, np.int64) for index in (rows, columns))
    core.sparse_entries(*csr_parts(K), *places, found)
    return found


def gains(state: Array, epsilon: float) -> tuple[Array, Array]:
    """What ``-g`` is at most where a row may go up, and at least where it may go down."""
    coef, gradient = state[COEF], state[GRADIENT]
    up = np.where(coef >= 0, epsilon, -epsilon)
    down = np.where(coef > 0, epsilon, -epsilon)
    return (
        np.where(coef < state[HIGH], -gradient - up, -np.inf),
        np.where(coef > state[LOW], -gradient - down, np.inf),
    )


def by_columns(coef: Array, add: Callable[[Array, Array], None]) -> Array:
    """Sums for every column of ``coef``; ``add(column, out)`` adds them up."""
    columns = np.atleast_2d(coef.T)
    sums = np.zeros(columns.shape)
    for column, out in zip(columns, sums, strict=True):
        add(np.ascontiguousarray(column, np.float64), out)
    return sums[0] if coef.ndim == 1 else sums.T
