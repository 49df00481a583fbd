"""How the tables of a descent lie in memory, chosen by the data.

A table of a feature must be read at one rank and changed by one row, over and over. How that is
done best depends on the number of levels and on the ranks that occur (``_core/tables.hpp`` has the
kinds): the more levels, the deeper the tree of blocks; where ranks are small beside the number of
levels, the hinge table. Features of one kind form a group, so that each loop has a fixed length.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from hilbin._core import core
from hilbin.solvers._codes import Array, Levels

# The kinds, as the core numbers them. PLAIN and FENWICK are never chosen.
FLAT8, FLAT16, FLAT32, TWO4, TWO8, TWO16, DEEP2, DEEP3, DEEP4, HINGE, PLAIN, FENWICK = range(12)
CAPACITY = np.array([8, 16, 32, 64, 128, 256, 16**3, 16**4, 16**5])  # levels
STRIDE = np.array([8, 16, 32, 72, 144, 288])  # cells
HINGE_ABOVE = FLAT32  # kinds whose tables have so many cells to change that few may be better
HINGE_VECTORS = 1.25  # that a row changes on average; loops of other lengths are mispredicted
BLOCK = 16
DENSE_ABOVE = 0.5  # share of non-zero codes from which rows are kept dense
RARE = 0.2  # a group with a smaller share of the codes joins the next larger kind
STATISTIC_ROWS = 512
ALIGN = 16  # cells: a cache line of float32


@dataclass(frozen=True)
class Layout:
    """Where every feature's table lies, and the rows in that order.

    Parameters
    ----------
    rows : tuple of arrays
        What the core takes to walk over rows: codes and the first slots of the groups, or entries
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


def lay_out(codes: Levels, *, kind: int | None = None, dense: bool | None = None) -> Layout:
    """The layout that suits the data; ``kind`` puts all tables into one, ``dense`` the rows."""
    sizes = np.diff(codes.offsets)
    if dense is None:
        dense = _density(codes) > DENSE_ABOVE
    kinds = _kinds(codes, sizes, dense) if kind is None else np.full(sizes.size, kind, np.int64)
    kinds[sizes < 2] = -1  # a feature without a second level says nothing
    order = np.argsort(kinds, kind="stable")[np.count_nonzero(kinds < 0) :]
    used, first = np.unique(kinds[order], return_index=True)
    first = np.append(first, order.size)
    places: list[Array] = [np.zeros(0, np.int64)]
    levels: list[Array] = [_ramp(codes.step, sizes)] if codes.step is not None else []
    groups = np.zeros((used.size, 5), np.int64)
    cells = n_places = n_levels = 0
    for g, one in enumerate(used):
        features = order[first[g] : first[g + 1]]
        room = _room(int(one), sizes[features])
        groups[g] = one, cells, 0, 0, n_places
        if codes.step is None:
            padded, begin = _padded_levels(codes, features, room.levels)
            groups[g, 2], groups[g, 3] = n_levels, room.levels[0]
            levels.append(padded)
            n_levels += padded.size
        else:
            begin = np.zeros(features.size, np.int64)
        if one >= DEEP2:
            lengths = {PLAIN: [room.levels], FENWICK: [sizes[features]]}.get(int(one), [])
            table = np.column_stack([*room.places, begin, *lengths])
            places.append(table.astype(np.int64).ravel())
            n_places += table.size
        cells += -(-room.cells // ALIGN) * ALIGN
    dense = dense or not used.size
    rows = _dense_rows(codes, order, first) if dense else _entries(codes, order, first)
    return Layout(
        rows, groups, np.concatenate(places), np.concatenate([*levels, np.zeros(0)]), cells
    )


@dataclass(frozen=True)
class _Room:
    cells: int
    levels: Array  # padded number of levels of every slot
    places: list[Array]


def _room(kind: int, sizes: Array) -> _Room:
    """The cells of a group whose features have ``sizes`` levels."""
    if kind < DEEP2:
        return _Room(int(STRIDE[kind]) * sizes.size, np.full(sizes.size, CAPACITY[kind]), [])
    depth = kind - DEEP2 + 2 if kind <= DEEP4 else 0
    nodes = [_up(-(-sizes // BLOCK ** (depth - d)), BLOCK) * 2 for d in range(depth)]
    leaves = _up(sizes, BLOCK)
    parts = np.column_stack([*nodes, leaves * 2 if kind == FENWICK else leaves])
    starts = np.cumsum(parts.ravel()) - parts.ravel()
    places = list(starts.reshape(parts.shape).T)
    return _Room(int(parts.sum()), leaves, places)


def _up(n: Array, multiple: int) -> Array:
    return -(-n // multiple) * multiple


def _ramp(step: float, sizes: Array) -> Array:
    longest = max(int(sizes.max(initial=1)), int(CAPACITY[TWO16]))
    return step * np.arange(-(-longest // BLOCK) * BLOCK)


def _padded_levels(codes: Levels, features: Array, room: Array) -> tuple[Array, Array]:
    """Levels of the features, each filled up to its room, and where each begins."""
    out = np.empty(room.sum())
    core.pad_levels(codes.levels, codes.offsets, features, room, out)
    return out, np.cumsum(room) - room


def _density(codes: Levels) -> float:
    sample = codes.rows[:STATISTIC_ROWS]
    nonzero = np.count_nonzero(sample.data if sp.issparse(sample) else sample)
    return float(nonzero / max(1, sample.shape[0] * sample.shape[1]))


def _kinds(codes: Levels, sizes: Array, dense: bool) -> Array:
    """The kind of every feature's table."""
    kinds = np.searchsorted(CAPACITY, sizes)
    if dense or ((kinds == kinds[0]).all() and kinds[0] < HINGE_ABOVE):
        return kinds
    kinds[kinds == TWO4] = TWO8  # one group less
    visits, vectors = _visits(codes)
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


def _visits(codes: Levels) -> tuple[Array, Array]:
    """Per feature, in a sample: codes that are not 0, and the vectors a hinge table changes."""
    sample = sp.csr_array(codes.rows[:STATISTIC_ROWS])
    vectors = -(-sample.data.astype(np.int64) // 8)
    d = codes.shape[1]
    return (
        np.bincount(sample.indices, vectors > 0, minlength=d),
        np.bincount(sample.indices, vectors, minlength=d),
    )


def _dense_rows(codes: Levels, order: Array, first: Array) -> tuple[Any, ...]:
    rows = codes.rows.toarray() if sp.issparse(codes.rows) else codes.rows
    if not np.array_equal(order, np.arange(codes.shape[1])):
        rows = rows[:, order]
    return np.ascontiguousarray(rows), first.astype(np.int64)


def _entries(codes: Levels, order: Array, first: Array) -> tuple[Any, ...]:
    slots = np.full(codes.shape[1], -1, np.int32)
    group = np.zeros(codes.shape[1], np.int32)
    for g in range(first.size - 1):
        features = order[first[g] : first[g + 1]]
        slots[features] = np.arange(features.size)
        group[features] = g
    data, indices, indptr = codes.parts
    groups = max(1, first.size - 1)
    narrow = data.dtype == np.uint8 and order.size < 2**24
    entry: Any = np.uint32 if narrow else np.uint64
    if indptr.size and groups == 1 and order.size == slots.size and data.all():
        return slots[indices].astype(entry) << (8 if narrow else 32) | data, indptr
    entries = np.empty(np.count_nonzero(data), entry)
    indptr_out = np.empty(codes.shape[0] * groups + 1, np.int64)
    core.pack_entries(data, indices, indptr, slots, group, groups, entries, indptr_out)
    return entries[: indptr_out[-1]], indptr_out
