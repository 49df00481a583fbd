"""Gram matrices as solvers see them: dense, sparse, or with rows computed when they are needed.

All have the diagonal as ``norms``, ``scores(coef)``, that is ``K @ coef`` in float64, and steps of
sequential minimal optimization; ``restricted`` is the same matrix of some of the rows. Coordinate
descent works on them as well: it keeps the scores of all rows, and adds a multiple of a row of the
matrix to them when the coefficient of that row changes.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp

from hilbin._arrays import Array
from hilbin._core import core

if TYPE_CHECKING:
    from hilbin.solvers.icd import CoreSweep
    from hilbin.solvers.smo import State

AHEAD = 3  # rows computed with a missing one though others are thrown out for them
Gains = Callable[[Array], tuple[Array, Array]]


def gram_rows(K: Any, norms: Array | None = None) -> "GramRows | SparseGramRows":
    """Return a Gram matrix in memory as solvers take it.

    Parameters
    ----------
    K : array or CSR array of shape (n, n)
        Symmetric and positive semi-definite; float32 and float64 stay as they are.
    norms : array of shape (n,), optional
        Its diagonal, in float64; to find it in a sparse matrix takes a while.

    Returns
    -------
    rows : GramRows or SparseGramRows

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import gram_rows
    >>> gram_rows(np.array([[3.0, 1.0], [1.0, 3.0]])).scores(np.array([1.0, 0.0]))
    array([3., 1.])
    """
    if K.dtype not in (np.float32, np.float64):
        K = K.astype(np.float64)
    return SparseGramRows(K, norms) if sp.issparse(K) else GramRows(K)


class _StoredRows:
    """What the matrices in memory share: ``_kind`` names the functions of the core that work on
    the arrays ``_arrays``."""

    _kind: str
    gram: Any
    norms: Array
    _arrays: tuple[Array, ...]

    def start(self, coef: Array, dtype: Any, gains: Gains) -> "CoreSweep":
        """Return a function that runs one sweep, from the scores of ``coef``."""
        scores = self.gram @ coef.astype(self.gram.dtype)
        return partial(self._core("sweep"), *self._arrays, scores)

    def start_classes(self, coef: Array, dtype: Any) -> "CoreSweep":
        """Return the same for the scores of every column of ``coef``."""
        scores = np.ascontiguousarray((self.gram @ coef.astype(self.gram.dtype)).T)
        return partial(self._core("sweep_classes"), *self._arrays, scores)

    def steps(self, state: "State", most: int, tol: float) -> tuple[int, float]:
        """Make steps of sequential minimal optimization."""
        done, violation, _ = self._core("smo")(*self._arrays, *state.arguments, most, tol)
        return done, violation

    def scores(self, coef: Array) -> Array:
        """Return ``K @ coef`` in float64, reading the rows of non-zero coefficients."""
        return _by_columns(coef, partial(self._core("add"), *self._arrays))

    def divided(self, unit: float) -> "GramRows | SparseGramRows":
        """Return the matrix over a number."""
        return gram_rows(self.gram / self.gram.dtype.type(unit))

    def _core(self, name: str) -> Any:
        return getattr(core, f"{name}_{self._kind}")


class GramRows(_StoredRows):
    """A dense Gram matrix.

    Parameters
    ----------
    gram : array of shape (n, n)
        Symmetric and positive semi-definite, float32 or float64.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers.gram import GramRows
    >>> GramRows(np.array([[3.0, 1.0], [1.0, 3.0]])).norms
    array([3., 3.])
    """

    _kind = "gram"

    def __init__(self, gram: Array):
        self.gram = np.ascontiguousarray(gram)
        self.norms = np.diag(gram).astype(np.float64)
        self._arrays = (self.gram,)

    def price(self, size: int) -> float:
        """Return how many steps take as long as taking out the matrix of so many rows."""
        return size

    def restricted(self, which: Array) -> "PartRows":
        """Return the matrix of some of the rows."""
        return PartRows(self.gram, which)


class BegunRows(GramRows):
    """A dense Gram matrix whose scores of the start of one descent are known.

    Many descents share one matrix product this way, which is faster than one for each.

    Parameters
    ----------
    rows : GramRows
        The matrix.
    scores : array of shape (n,)
        Its product with the coefficients of the start.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers.gram import BegunRows, GramRows
    >>> K = GramRows(np.array([[3.0, 1.0], [1.0, 3.0]]))
    >>> BegunRows(K, K.scores(np.array([1.0, 0.0]))).norms
    array([3., 3.])
    """

    def __init__(self, rows: GramRows, scores: Array):
        self.gram, self.norms, self._arrays = rows.gram, rows.norms, rows._arrays
        self._begun = scores

    def start(self, coef: Array, dtype: Any, gains: Gains) -> "CoreSweep":
        """Return a function that runs one sweep, from the known scores."""
        scores = np.array(self._begun, self.gram.dtype)
        return partial(self._core("sweep"), *self._arrays, scores)


class SparseGramRows(_StoredRows):
    """A sparse Gram matrix.

    Parameters
    ----------
    gram : CSR array of shape (n, n)
        Symmetric and positive semi-definite, float32 or float64.
    norms : array of shape (n,), optional
        Its diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from hilbin.solvers.gram import SparseGramRows
    >>> SparseGramRows(sp.csr_array(np.diag([3.0, 2.0]))).scores(np.array([1.0, 0.0]))
    array([3., 0.])
    """

    _kind = "sparse_gram"

    def __init__(self, gram: Any, norms: Array | None = None):
        self.gram = canonical(gram)
        self._arrays = csr_parts(self.gram)
        if norms is None:
            every = np.arange(self.gram.shape[0])
            norms = sparse_entries(self.gram, every, every).astype(np.float64)
        self.norms = norms

    def price(self, size: int) -> float:
        """Return how many steps take as long as taking out the matrix of so many rows."""
        return 3 * len(self.norms)

    def restricted(self, which: Array) -> Self:
        """Return the matrix of some of the rows."""
        return type(self)(self.gram[which][:, which])


class PartRows:
    """Some rows and columns of a dense Gram matrix, a row copied when it is first used.

    Parameters
    ----------
    gram : array of shape (n, n)
        The whole matrix, float32 or float64.
    which : array of int
        The rows and columns.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers.gram import PartRows
    >>> K = np.array([[3.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
    >>> PartRows(K, np.array([0, 2])).scores(np.array([1.0, 0.0]))
    array([3. , 0.5])
    """

    def __init__(self, gram: Array, which: Array):
        self.gram, self.which = gram, np.ascontiguousarray(which, np.int32)
        n = self.which.size
        self.norms = gram[self.which, self.which].astype(np.float64)
        self._copies = np.empty((n, n), gram.dtype)  # rows that are not used take no memory
        self._arrays = self.gram, self.which, self._copies, np.zeros(n, np.uint8)

    def start(self, coef: Array, dtype: Any, gains: Gains) -> "CoreSweep":
        """Return a function that runs one sweep, from the scores of ``coef``."""
        return self._whole().start(coef, dtype, gains)

    def start_classes(self, coef: Array, dtype: Any) -> "CoreSweep":
        """Return the same for the scores of every column of ``coef``."""
        return self._whole().start_classes(coef, dtype)

    def steps(self, state: "State", most: int, tol: float) -> tuple[int, float]:
        """Make steps of sequential minimal optimization."""
        done, violation, _ = core.smo_part(*self._arrays, *state.arguments, most, tol)
        return done, violation

    def scores(self, coef: Array) -> Array:
        """Return ``K @ coef`` in float64, reading the rows of non-zero coefficients."""
        core.copy_part(*self._arrays, coef.reshape(len(coef), -1).any(axis=1))
        return _by_columns(coef, partial(core.add_gram, self._copies))

    def price(self, size: int) -> float:
        """Return how many steps take as long as taking out the matrix of so many rows."""
        return size

    def restricted(self, which: Array) -> "PartRows":
        """Return the matrix of some of the rows."""
        return PartRows(self.gram, self.which[which])

    def divided(self, unit: float) -> GramRows | SparseGramRows:
        """Return the matrix over a number."""
        return self._whole().divided(unit)

    def _whole(self) -> GramRows:
        core.copy_part(*self._arrays, np.ones(self.which.size, bool))
        return GramRows(self._copies)


class LazyRows:
    """Rows computed when they are needed; the ones used last are kept, as many as fit.

    Parameters
    ----------
    compute : callable
        ``compute(indices)`` is the array ``K[indices]`` of shape (len(indices), n).
    diagonal : array of shape (n,)
        The diagonal of the matrix.
    memory : float
        Bytes for the rows that are kept, in float32; at least two rows and what computes them.
    batch : int, default=8
        Number of rows that are computed in one go.
    square : callable, optional
        ``square(indices)`` is ``K[indices][:, indices]``: if all rows fit and a third of them was
        asked for, the rest are computed with their symmetry.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers.gram import LazyRows
    >>> K = np.array([[3.0, 1.0], [1.0, 3.0]])
    >>> LazyRows(lambda i: K[i], np.diag(K), memory=1e6).scores(np.array([1.0, 0.0]))
    array([3., 1.])
    """

    def __init__(
        self,
        compute: Callable[[Array], Array],
        diagonal: Array,
        memory: float,
        batch: int = 8,
        square: Callable[[Array], Array] | None = None,
    ):
        self.compute, self.square = compute, square
        self.norms = np.ascontiguousarray(diagonal, np.float64)
        n = self.norms.size
        fits = int(memory // (4 * n)) - 3 * batch  # a batch in float64, and its copy
        self.batch = min(batch, max(1, fits // 4))
        self.cache = np.empty((min(n, max(2, fits)), n), np.float32)
        self.slots = np.full(n, -1, np.int32)
        self.owners = np.full(len(self.cache), -1, np.int64)
        self.stamps = np.zeros(len(self.cache), np.int64)
        self.clock = np.zeros(1, np.int64)
        self.computed = self.filled = 0

    def steps(self, state: "State", most: int, tol: float) -> tuple[int, float]:
        """Make steps of sequential minimal optimization, until a row is missing."""
        given = (*state.arguments, most, tol)
        while True:
            done, violation, missing = core.smo_cached_gram(*self._arrays, *given)
            if missing >= 0:
                self._fetch(missing, *state.gains())
            if done or missing < 0:
                return done, violation

    def start(self, coef: Array, dtype: Any, gains: Gains) -> "CoreSweep":
        """Return a function that runs one sweep, from the scores of ``coef``."""
        scores = self.scores(coef)

        def sweep(
            samples: Array, order: Array, active: int, *course: Any
        ) -> tuple[int, float, float, int]:
            while True:  # what was done before a row was missing is not done again
                active, highest, lowest, missing = core.sweep_cached_gram(
                    *self._arrays, scores, samples, order, active, *course
                )
                if missing < 0:
                    return active, highest, lowest, missing
                self._fetch(missing, *gains(scores))

        return sweep

    def start_classes(self, coef: Array, dtype: Any) -> "CoreSweep":
        """Raise an error: several classes are not for rows that come and go."""
        raise NotImplementedError

    @property
    def _arrays(self) -> tuple[Array, Array, Array, Array]:
        return self.cache, self.slots, self.stamps, self.clock

    def _fetch(self, missing: int, up: Array, down: Array) -> None:
        """Compute a row, and with it those that gain most by a change up or down."""
        if self.square is not None and len(self.cache) == self.norms.size <= 3 * self.computed:
            self._complete(self.square)
            return
        room = max(int(np.count_nonzero(self.owners < 0)), AHEAD)
        few = min((self.batch - 1) // 2, room // 2, self.norms.size - 1)
        wanted = [np.array([missing])]
        for gain in (up, down) if few else ():
            gain[self.slots >= 0] = -np.inf
            best = np.argpartition(-gain, few)[:few]
            wanted.append(best[np.isfinite(gain[best])])
        self.fetch(np.unique(np.concatenate(wanted)))

    def fetch(self, rows: Array) -> None:
        """Compute rows and keep them in place of those not used for longest."""
        end = self.filled + rows.size
        if end <= len(self.cache):  # side by side, so that few new pages are touched
            free = np.arange(self.filled, end)
            self.cache[self.filled : end] = self.compute(rows)
        else:
            free = np.argpartition(self.stamps, rows.size - 1)[: rows.size]
            self.slots[self.owners[free][self.owners[free] >= 0]] = -1
            self.cache[free] = self.compute(rows)
        self.filled = min(end, len(self.cache))
        self.slots[rows], self.owners[free] = free, rows
        self.clock += 1
        self.stamps[free] = self.clock
        self.computed += rows.size

    def _complete(self, square: Callable[[Array], Array]) -> None:
        """Compute all rows that are not here."""
        rest, here = np.flatnonzero(self.slots < 0), np.flatnonzero(self.slots >= 0)
        free = np.flatnonzero(self.owners < 0)
        self.cache[np.ix_(free, rest)] = square(rest)
        self.cache[np.ix_(free, here)] = self.cache[np.ix_(self.slots[here], rest)].T
        self.slots[rest], self.owners[free] = free, rest
        self.computed += rest.size
        self.filled = len(self.cache)

    def scores(self, coef: Array) -> Array:
        """Return ``K @ coef`` in float64, from rows that are here where they are."""
        return _by_columns(coef, self._add)

    def _add(self, coef: Array, out: Array) -> None:
        here = np.flatnonzero((coef != 0) & (self.slots >= 0))
        by_slot = np.zeros(len(self.cache))
        by_slot[self.slots[here]] = coef[here]
        core.add_gram(self.cache, by_slot, out)
        missing = np.flatnonzero((coef != 0) & (self.slots < 0))
        for begin in range(0, missing.size, self.batch):
            rows = missing[begin : begin + self.batch]
            core.add_gram(np.ascontiguousarray(self.compute(rows)), coef[rows], out)

    def price(self, size: int) -> float:
        """Return infinity: computing rows is what takes time, and those here are whole."""
        return np.inf

    def restricted(self, which: Array) -> Self:
        """Raise an error: this is not worth it, see :meth:`price`."""
        raise NotImplementedError

    def divided(self, unit: float) -> Self:
        """Raise an error: the rows are kept in float32, which has no room for such values."""
        raise ValueError(
            f"k(x, x) is up to {self.norms.max():.3g}, too far from 1 for rows that are computed "
            "as they are needed: scale X, or give memory for the whole matrix"
        )


def canonical(K: Any) -> Any:
    """Return CSR with the columns of a row in ascending order, each once."""
    K = K if isinstance(K, sp.csr_array) else sp.csr_array(K)  # which remembers that it is
    if not K.has_canonical_format:
        K = K.copy()
        K.sum_duplicates()
    return K


def csr_parts(K: Any) -> tuple[Array, Array, Array]:
    """Return values, columns and row pointers, as the core takes them."""
    return K.data, K.indices.astype(np.int32, copy=False), K.indptr


def sparse_entries(K: Any, rows: Array, columns: Array) -> Array:
    """Return ``K[rows, columns]`` of a canonical CSR matrix."""
    found = np.empty(len(rows), K.dtype)
    places = (np.ascontiguousarray(index, np.int64) for index in (rows, columns))
    core.sparse_entries(*csr_parts(K), *places, found)
    return found


def _by_columns(coef: Array, add: Callable[[Array, Array], None]) -> Array:
    """Return sums for every column of ``coef``; ``add(column, out)`` adds them up."""
    columns = np.atleast_2d(coef.T)
    sums = np.zeros(columns.shape)
    for column, out in zip(columns, sums, strict=True):
        add(np.ascontiguousarray(column, np.float64), out)
    return sums[0] if coef.ndim == 1 else sums.T
