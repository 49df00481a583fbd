r"""Rows of two-neighbor maps, which are pairs of weights on neighboring nodes.

A value between the nodes :math:`a` and :math:`a + 1` of its column has the features
:math:`\Phi_a, \Phi_{a+1}` and no others, so a score :math:`\sum \Phi_a v_a + \Phi_{a+1} v_{a+1}`
is two multiplications per value. The time goes into reading: a CSR matrix takes 16 bytes for such
a pair. Here it takes 6: the number of the first node among those of a slab of columns, and the two
weights in units of :math:`2^{-15}` of the largest. The slabs are few enough nodes that their
weights stay in the cache while all rows pass by.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from hilbin._core import core
from hilbin.parallel import ranges, run, stream
from hilbin.solvers._codes import Array
from hilbin.solvers._tasks import aligned_zeros, side_by_side, whole_vectors

SLAB = 2560  # nodes
ROWS_PER_TASK = 4096
UNITS = 32767


@dataclass(frozen=True)
class Slab:
    """The pairs whose first node is one of ``begin .. end - 1``: rows of groups of 4."""

    begin: int
    end: int
    groups: Array
    nodes: Array
    weights: Array

    @property
    def parts(self) -> tuple[Array, Array, Array]:
        """What the core takes."""
        return self.groups, self.nodes, self.weights


class NodeRows:
    """Rows of pairs of neighboring entries, as a risk sees them.

    Parameters
    ----------
    Z : CSR of shape (n, D)
        What :class:`~hilbin.maps.SparseMap` makes of rows: entries in pairs, each in two columns
        that follow each other. Weights are rounded to ``2^-16`` of the largest; sums and scores
        are in float32.
    n_jobs : int, optional
        Threads, as in joblib.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from hilbin.solvers import NodeRows
    >>> Z = sp.csr_array([[0.5, 1.0, 0.0], [0.0, 0.25, 0.75]])
    >>> rows = NodeRows(Z)
    >>> rows.scores(np.array([[1.0, 2.0, 4.0]])).round(3)
    array([[2.5],
           [3.5]], dtype=float32)
    >>> rows.gradient(np.array([[1.0], [1.0]])).round(3)
    array([[0.5 , 1.25, 0.75]], dtype=float32)
    """

    def __init__(self, Z: Any, *, n_jobs: int | None = None) -> None:
        Z = sp.csr_array(Z)
        if not Z.has_sorted_indices:
            Z = Z.sorted_indices()
        if Z.dtype not in (np.float32, np.float64):
            Z = Z.astype(np.float64)
        _require_pairs(Z)
        self.n_jobs, self.shape, self.dtype = n_jobs, Z.shape, np.dtype(np.float32)
        largest = float(np.abs(Z.data).max(initial=0.0))
        if not np.isfinite(largest):
            raise ValueError("Z has entries that are not finite")
        self._unit = largest / UNITS or 1.0
        self._slabs = _cut(Z, 1 / self._unit)

    @property
    def nbytes(self) -> int:
        """Of the pairs."""
        return sum(part.nbytes for slab in self._slabs for part in slab.parts)

    def scores(self, V: Array) -> Array:
        """``Z V^T`` of shape (n, k), for weights of shape (k, D)."""
        out = np.empty((self.shape[0], len(V)), self.dtype)
        for begin, end in side_by_side(len(V), self.dtype):
            out[:, begin:end] = self._scores(V[begin:end])[:, : end - begin]
        return out

    def gradient(self, S: Array) -> Array:
        """``S^T Z`` of shape (k, D), for slopes of shape (n, k)."""
        out = np.empty((S.shape[1], self.shape[1]), self.dtype)
        for begin, end in side_by_side(S.shape[1], self.dtype):
            out[begin:end] = self._sums(S[:, begin:end])[:, : end - begin].T
        return out

    def _scores(self, V: Array) -> Array:
        table = whole_vectors(self._unit * V.T, self.dtype)
        out = np.zeros((self.shape[0], table.shape[1]), self.dtype)

        def task(begin: int, end: int) -> None:
            for slab in self._slabs:
                nodes = table[slab.begin : slab.end + 1]
                core.pair_scores(*slab.parts, nodes, out, begin, end)

        run(task, ranges(self.shape[0], ROWS_PER_TASK), self.n_jobs)
        return out

    def _sums(self, S: Array) -> Array:
        slopes = whole_vectors(self._unit * S, self.dtype)
        out = np.zeros((self.shape[1], slopes.shape[1]), self.dtype)

        def task(first: int, last: int) -> Array:
            slab = self._slabs[first]
            nodes = min(slab.end + 1, self.shape[1]) - slab.begin
            table = aligned_zeros((nodes, slopes.shape[1]), self.dtype)
            core.pair_sums(*slab.parts, slopes, table)
            return table

        tables = stream(task, ranges(len(self._slabs), 1), self.n_jobs)
        for slab, table in zip(self._slabs, tables, strict=True):
            out[slab.begin : slab.end + 1] += table  # slabs share a node with the next
        return out


def _require_pairs(Z: Any) -> None:
    odd = np.flatnonzero(np.diff(Z.indptr) % 2)
    if odd.size:
        raise ValueError(f"Z[{odd[0]}] has an odd number of entries, which are no pairs")
    if Z.nnz and not (Z.indices.min() >= 0 and Z.indices.max() < Z.shape[1]):
        raise ValueError("Z is a broken CSR matrix: a column index is out of range")
    apart = np.flatnonzero(Z.indices[1::2] != Z.indices[::2] + 1)
    if apart.size:
        row = int(np.searchsorted(Z.indptr, 2 * apart[0], side="right")) - 1
        raise ValueError(f"Z[{row}] has entries that are no pairs of neighboring columns")


def _cut(Z: Any, per_unit: float) -> list[Slab]:
    """The pairs of all rows, slab by slab."""
    n, nodes = Z.shape
    indptr = Z.indptr.astype(np.int64)
    given = (Z.indices.astype(np.int32, copy=False), Z.data, indptr)
    cursor = indptr[:-1].copy()
    slabs = []
    for begin, end in ranges(nodes, SLAB):
        groups = np.empty(n + 1, np.int64)
        core.count_pairs(*given, cursor, end, groups)
        node, weights = np.empty(4 * groups[-1], np.uint16), np.empty((4 * groups[-1], 2), np.int16)
        core.take_pairs(*given, cursor, begin, end, per_unit, groups, node, weights)
        slabs.append(Slab(begin, end, groups, node, weights))
    return slabs
