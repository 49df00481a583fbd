"""The histogram intersection kernel by look-up tables.

A feature has levels ``v_0 = 0 < v_1 < ... < v_m``; a row holds, for every feature, the rank of its
value among them. Quantized data have evenly spaced levels, exact data all the values that occur.
The intersection of two rows is ``sum_j min(v[x_j], v[y_j])``, and a look-up table over the levels,
``T_j(r) = sum_i c_i min(v[x_ij], v_r)``, holds all that rows ``i`` with coefficients ``c_i`` say
about any other row: its score is ``sum_j T_j(x_j)``.

A descent reads the table of a feature at one rank and changes it by one row, over and over. How
that is done best depends on the number of levels and on the ranks that occur (``_core/lookup.hpp``
has the kinds): the more levels, the deeper the tree; where ranks are small beside the number of
levels, the hinge table. Features of one kind form a group, so that each loop has a fixed length.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp

from hilbin import parallel
from hilbin._arrays import Array, to_dense
from hilbin._core import core

if TYPE_CHECKING:
    from hilbin.solvers.icd import CoreSweep

NO_INDICES = np.empty(0, np.int32)
NO_INDPTR = np.empty(0, np.int64)
VALUES_PER_TASK = 1 << 20
MOST_LEVELS = 16**5


@dataclass(frozen=True)
class Levels:
    """Rows as ranks in the levels of their features.

    Parameters
    ----------
    rows : array of shape (n, d) or CSR array
        Ranks, as uint8, uint16 or uint32. What a CSR array does not store has rank 0.
    offsets : array of shape (d + 1,)
        Feature ``j`` has the levels ``levels[offsets[j]:offsets[j + 1]]``, the first of them 0.
    levels : array
        Levels of all features, ascending in each.
    step : float, optional
        Set if level ``r`` of every feature is ``r * step``.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers.lookup import Levels
    >>> rows = np.array([[0, 2], [1, 1]], np.uint8)
    >>> levels = Levels(rows, np.array([0, 2, 5]), np.array([0.0, 1, 0, 1, 2]), step=1.0)
    >>> levels.norms
    array([2., 2.])
    """

    rows: Any
    offsets: Array
    levels: Array
    step: float | None = None
    _last: list[tuple[Array, Array]] = field(
        default_factory=list, init=False, repr=False, compare=False
    )

    @classmethod
    def from_values(cls, X: Any, n_jobs: int | None = None) -> Self:
        """Rank non-negative values among the distinct ones of their feature: nothing is lost.

        Parameters
        ----------
        X : array or CSR array of shape (n, d)
            Rows, finite and not negative.
        n_jobs : int, optional
            Number of threads.

        Returns
        -------
        levels : Levels

        Examples
        --------
        >>> import numpy as np
        >>> from hilbin.solvers.lookup import Levels
        >>> Levels.from_values(np.array([[0.5], [0.0], [2.5]])).rows.ravel()
        array([1, 0, 2], dtype=uint8)
        """
        n, d = X.shape
        columns = X.tocsc() if sp.issparse(X) else None
        if columns is not None:
            data, indptr = columns.data, columns.indptr.astype(np.int64)
        else:
            data, indptr = np.ascontiguousarray(X.T).ravel(), np.arange(d + 1) * n
        distinct, counts, ranks = _ranked(data, indptr, max(1, n), n_jobs)
        if columns is not None:
            rows = sp.csc_array((ranks, columns.indices, columns.indptr), shape=(n, d)).tocsr()
        else:
            rows = np.ascontiguousarray(ranks.reshape(d, n).T)
        offsets = np.concatenate(([0], np.cumsum(counts + 1)))
        levels = np.zeros(offsets[-1])
        feature = np.repeat(np.arange(d), counts)
        nth = np.arange(feature.size) - (offsets[:-1] - np.arange(d))[feature]
        levels[offsets[feature] + 1 + nth] = distinct[indptr[feature] + nth]
        return cls(rows, offsets, levels)

    def without_unused(self) -> Self:
        """Return the same rows over the levels that occur: shorter tables if most do not.

        Norms and scores stay the same; there is no ``step``.

        Examples
        --------
        >>> import numpy as np
        >>> from hilbin.solvers.lookup import Levels
        >>> rows = np.array([[3], [0]], np.uint8)
        >>> Levels(rows, np.array([0, 4]), np.arange(4.0)).without_unused().levels
        array([0., 3.])
        """
        data, indices, indptr = self.parts
        nth, ranks = np.empty(self.levels.size, np.int32), np.empty_like(data)
        used = core.rank_used(data, indices, indptr, self.offsets, nth, ranks, self.shape[0])
        offsets = np.append(nth[self.offsets[:-1]], used).astype(np.int64)
        if indptr.size:
            rows = sp.csr_array((ranks, indices, indptr), shape=self.shape)
        else:
            rows = ranks.reshape(self.shape)
        return type(self)(rows, offsets, self.levels[nth >= 0])

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and features."""
        return self.rows.shape

    @cached_property
    def parts(self) -> tuple[Array, Array, Array]:
        """Ranks, column indices and row pointers; the last two empty if the rows are dense."""
        if not sp.issparse(self.rows):
            return np.ascontiguousarray(self.rows).ravel(), NO_INDICES, NO_INDPTR
        rows = self.rows
        return rows.data, rows.indices.astype(np.int32, copy=False), rows.indptr.astype(np.int64)

    @cached_property
    def norms(self) -> Array:
        """``k(x, x)``, the sum of the levels of every row."""
        if self.step is None:
            return self.scores(self.levels[:, None])[:, 0]
        sums = np.empty(self.shape[0], np.uint64)
        core.sum_codes(*self.parts, self.shape[1], sums)
        return self.step * sums

    def values(self) -> Any:
        """Return the rows in levels instead of ranks."""
        data, indices, indptr = self.parts
        if not indptr.size:
            return self.levels[self.offsets[:-1] + self.rows]
        return sp.csr_array(
            (self.levels[self.offsets[indices] + data], indices, indptr), self.shape
        )

    def lookup(self, coef: Array) -> Array:
        """Return ``T`` of every feature for every column of coefficients, level by level.

        Those of the last coefficients are remembered: a certificate and a model ask for the same.
        """
        for known, sums in tuple(self._last):  # threads share it
            if np.array_equal(known, coef):
                return sums
        sums = np.zeros((self.levels.size, coef.shape[1]))
        core.level_sums(*self.parts, self.offsets, np.ascontiguousarray(coef), sums)
        core.level_lookup(sums, self.offsets, self.levels)
        self._last[:] = [(coef.copy(), sums)]
        return sums

    def scores(self, lookup: Array, n_jobs: int | None = None) -> Array:
        """Return ``sum_j T_j`` at the ranks of every row, for every column of ``lookup``."""
        outputs = lookup.shape[1]
        padded = whole_vectors(lookup)
        out = np.empty((self.shape[0], padded.shape[1]))
        rows_per_task = max(1, VALUES_PER_TASK // max(1, self.parts[0].size // self.shape[0]))

        def task(begin: int, end: int) -> None:
            core.look_up(*self.parts, self.offsets, padded, out, begin, end)

        parallel.run(task, parallel.ranges(self.shape[0], rows_per_task), n_jobs)
        return out[:, :outputs]


def _ranked(data: Array, indptr: Array, n: int, n_jobs: int | None) -> tuple[Array, Array, Array]:
    """Return the distinct positive values of every column, their number, and all ranks."""
    distinct, counts = np.empty_like(data), np.empty(indptr.size - 1, np.int64)
    ranks = np.empty(data.size, np.uint32)
    parallel.run(
        lambda begin, end: core.rank_columns(data, indptr, distinct, counts, ranks, begin, end),
        parallel.ranges(counts.size, max(1, VALUES_PER_TASK // n)),
        n_jobs,
    )
    most = int(counts.max(initial=0))
    if most >= MOST_LEVELS:
        raise ValueError(
            f"feature {int(counts.argmax())} has {most} distinct values, and at most "
            f"{MOST_LEVELS - 1} are kept apart; give a number of bins"
        )
    return distinct, counts, ranks.astype(np.min_scalar_type(most))


def whole_vectors(lookup: Array) -> Array:
    """Return one column, or columns filled up to a number the core reads at once."""
    columns = lookup.shape[1]
    width = 1 if columns == 1 else -(-columns // 4) * 4
    if width == columns:
        return np.ascontiguousarray(lookup)
    padded = np.zeros((lookup.shape[0], width))
    padded[:, :columns] = lookup
    return padded


class LookupRows:
    """Rows of ranks as a kernel matrix; the state of a descent is a look-up table per feature.

    Parameters
    ----------
    levels : Levels
        The rows.
    layout : Layout, optional
        How the look-up tables lie in memory; chosen by the data if not given.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers.lookup import Levels, LookupRows
    >>> rows = LookupRows(Levels.from_values(np.array([[1.0, 2.0], [3.0, 0.0]])))
    >>> rows.scores(np.array([1.0, 0.0]))
    array([3., 1.])
    """

    def __init__(self, levels: Levels, layout: "Layout | None" = None):
        self.levels = levels
        self.layout = lay_out(levels) if layout is None else layout
        self.norms = levels.norms

    def start(self, coef: Array, dtype: Any, gains: Callable[[Array], Any]) -> "CoreSweep":
        """Return a function that runs one sweep, from tables that hold ``coef``."""
        given, cells = self._given(coef[:, None], dtype)
        return partial(self._core("sweep"), *given, cells[0])

    def start_classes(self, coef: Array, dtype: Any) -> "CoreSweep":
        """Return the same for one set of tables per column of ``coef``."""
        given, cells = self._given(coef, dtype)
        return partial(self._core("sweep_classes"), *given, cells)

    def _core(self, name: str) -> Any:
        return getattr(core, f"{name}_{'sparse' if self.layout.sparse else 'dense'}")

    def _given(self, coef: Array, dtype: Any) -> tuple[tuple[Any, ...], Array]:
        """Return what the core takes, and the cells of every column of coefficients."""
        layout = self.layout
        levels = _aligned_zeros(layout.levels.size, dtype)
        levels[:] = layout.levels
        cells = _aligned_zeros(layout.n_cells * coef.shape[1], dtype).reshape(coef.shape[1], -1)
        given = (*layout.rows, layout.groups, levels, layout.places)
        for column, part in zip(coef.T, cells, strict=True):
            if column.any():
                self._core("add")(*given, part, np.ascontiguousarray(column))
        return given, cells

    def divided(self, unit: float) -> "LookupRows":
        """Return the matrix over a number."""
        step = None if self.levels.step is None else self.levels.step / unit
        return LookupRows(replace(self.levels, levels=self.levels.levels / unit, step=step))

    def scores(self, coef: Array) -> Array:
        """Return ``K @ coef`` in float64, by exact tables."""
        columns = coef.reshape(len(coef), -1)
        return self.levels.scores(self.levels.lookup(columns)).reshape(coef.shape)


def _aligned_zeros(n: int, dtype: Any) -> Array:
    zeros = np.zeros(n + ALIGN * 2, dtype)
    skip = -zeros.ctypes.data % 64 // zeros.itemsize
    return zeros[skip : skip + n]


# The kinds of look-up tables, as the core numbers them.
FLAT8, FLAT16, FLAT32, TWO4, TWO8, TWO16, DEEP2, DEEP3, DEEP4, HINGE = range(10)
CAPACITY = np.array([8, 16, 32, 64, 128, 256, 16**3, 16**4, 16**5])  # levels
STRIDE = np.array([8, 16, 32, 72, 144, 288])  # cells
HINGE_ABOVE = FLAT32  # kinds whose tables have so many cells to change that few may be better
HINGE_VECTORS = 1.25  # that a row changes on average; loops of other lengths are mispredicted
BLOCK = 16
DENSE_ABOVE = 0.5  # share of non-zero ranks from which rows are kept dense
RARE = 0.2  # a group with a smaller share of the ranks joins the next larger kind
STATISTIC_ROWS = 512
ALIGN = 16  # cells: a cache line of float32


@dataclass(frozen=True)
class Layout:
    """Where every feature's look-up table lies, and the rows in that order.

    Parameters
    ----------
    rows : tuple of arrays
        What the core takes to walk over rows: ranks and the first slots of the groups, or entries
        and their pointers.
    groups : array of shape (groups, 5)
        Kind, first cell, first level, step from one slot's levels to the next, first place.
    places : array
        For kinds without a fixed stride.
    levels : array
        Padded levels.
    n_cells : int
        Length of the array of cells.
    """

    rows: tuple[Any, ...]
    groups: Array
    places: Array
    levels: Array
    n_cells: int

    @property
    def sparse(self) -> bool:
        """Whether the rows are entries."""
        return self.rows[0].ndim == 1


def lay_out(levels: Levels, *, kind: int | None = None, dense: bool | None = None) -> Layout:
    """Return the layout that suits the data, or one of a given kind or with dense rows."""
    sizes = np.diff(levels.offsets)
    if dense is None:
        dense = _density(levels) > DENSE_ABOVE
    kinds = _kinds(levels, sizes, dense) if kind is None else np.full(sizes.size, kind, np.int64)
    kinds[sizes < 2] = -1  # a feature without a second level says nothing
    order = np.argsort(kinds, kind="stable")[np.count_nonzero(kinds < 0) :]
    used, first = np.unique(kinds[order], return_index=True)
    first = np.append(first, order.size)
    places: list[Array] = [np.zeros(0, np.int64)]
    padded: list[Array] = [_ramp(levels.step, sizes)] if levels.step is not None else []
    groups = np.zeros((used.size, 5), np.int64)
    n_cells = n_places = n_levels = 0
    for g, one in enumerate(used):
        features = order[first[g] : first[g + 1]]
        space = _space(int(one), sizes[features])
        groups[g] = one, n_cells, 0, 0, n_places
        begin = np.zeros(features.size, np.int64)
        if levels.step is None:
            padded.append(_padded_levels(levels, features, space.levels))
            begin = np.cumsum(space.levels) - space.levels
            groups[g, 2], groups[g, 3] = n_levels, space.levels[0]
            n_levels += padded[-1].size
        if one >= DEEP2:
            places.append(np.column_stack([*space.places, begin]).astype(np.int64).ravel())
            n_places += places[-1].size
        n_cells += -(-space.cells // ALIGN) * ALIGN
    dense = dense or not used.size
    rows = _dense_rows(levels, order, first) if dense else _entries(levels, order, first)
    all_levels = np.concatenate([*padded, np.zeros(0)])
    return Layout(rows, groups, np.concatenate(places), all_levels, n_cells)


@dataclass(frozen=True)
class _Space:
    cells: int
    levels: Array  # padded number of levels of every slot
    places: list[Array]


def _space(kind: int, sizes: Array) -> _Space:
    """Return the cells of a group whose features have ``sizes`` levels."""
    if kind < DEEP2:
        return _Space(int(STRIDE[kind]) * sizes.size, np.full(sizes.size, CAPACITY[kind]), [])
    depth = kind - DEEP2 + 2 if kind <= DEEP4 else 0
    nodes = [_up(-(-sizes // BLOCK ** (depth - d)), BLOCK) * 2 for d in range(depth)]
    leaves = _up(sizes, BLOCK)
    parts = np.column_stack([*nodes, leaves])
    starts = np.cumsum(parts.ravel()) - parts.ravel()
    return _Space(int(parts.sum()), leaves, list(starts.reshape(parts.shape).T))


def _up(n: Array, multiple: int) -> Array:
    return -(-n // multiple) * multiple


def _ramp(step: float, sizes: Array) -> Array:
    longest = max(int(sizes.max(initial=1)), int(CAPACITY[TWO16]))
    return step * np.arange(-(-longest // BLOCK) * BLOCK)


def _padded_levels(levels: Levels, features: Array, room: Array) -> Array:
    """Return the levels of the features, each filled up to its room."""
    out = np.empty(room.sum())
    core.pad_levels(levels.levels, levels.offsets, features, room, out)
    return out


def _density(levels: Levels) -> float:
    sample = levels.rows[:STATISTIC_ROWS]
    nonzero = np.count_nonzero(sample.data if sp.issparse(sample) else sample)
    return float(nonzero / max(1, sample.shape[0] * sample.shape[1]))


def _kinds(levels: Levels, sizes: Array, dense: bool) -> Array:
    """Return the kind of every feature's look-up table."""
    kinds = np.searchsorted(CAPACITY, sizes)
    if dense or ((kinds == kinds[0]).all() and kinds[0] < HINGE_ABOVE):
        return kinds
    kinds[kinds == TWO4] = TWO8  # one group less
    visits, vectors = _visits(levels)
    few = RARE * visits.sum()
    hinge = (kinds >= HINGE_ABOVE) & (vectors < HINGE_VECTORS * visits)
    hinge &= visits[hinge].sum() >= few
    share = np.bincount(kinds, visits * ~hinge, minlength=CAPACITY.size)
    for small in np.flatnonzero((share > 0) & (share < few)):
        larger = small + 1 + np.flatnonzero(share[small + 1 :])
        if larger.size:
            kinds[(kinds == small) & ~hinge] = larger[0]
            share[larger[0]] += share[small]
    kinds[hinge] = HINGE
    return kinds


def _visits(levels: Levels) -> tuple[Array, Array]:
    """Return, per feature of a sample, ranks that are not 0 and vectors a hinge table changes."""
    sample = sp.csr_array(levels.rows[:STATISTIC_ROWS])
    vectors = -(-sample.data.astype(np.int64) // 8)
    d = levels.shape[1]
    return (
        np.bincount(sample.indices, vectors > 0, minlength=d),
        np.bincount(sample.indices, vectors, minlength=d),
    )


def _dense_rows(levels: Levels, order: Array, first: Array) -> tuple[Any, ...]:
    rows = to_dense(levels.rows)
    if not np.array_equal(order, np.arange(levels.shape[1])):
        rows = np.take(rows, order, axis=1)
    return np.ascontiguousarray(rows), first.astype(np.int64)


def _entries(levels: Levels, order: Array, first: Array) -> tuple[Any, ...]:
    slots = np.full(levels.shape[1], -1, np.int32)
    group = np.zeros(levels.shape[1], np.int32)
    for g in range(first.size - 1):
        features = order[first[g] : first[g + 1]]
        slots[features] = np.arange(features.size)
        group[features] = g
    data, indices, indptr = levels.parts
    groups = max(1, first.size - 1)
    narrow = data.dtype == np.uint8 and order.size < 2**24
    entry: Any = np.uint32 if narrow else np.uint64
    if indptr.size and groups == 1 and order.size == slots.size and data.all():
        return slots[indices].astype(entry) << (8 if narrow else 32) | data, indptr
    entries = np.empty(np.count_nonzero(data) + 1, entry)  # the core writes one in advance
    indptr_out = np.empty(levels.shape[0] * groups + 1, np.int64)
    core.pack_entries(data, indices, indptr, slots, group, groups, entries, indptr_out)
    return entries[: indptr_out[-1]], indptr_out
