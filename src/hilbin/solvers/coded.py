r"""Compressed rows that are scored and summed as they are: product-quantized codes, pairs of nodes.

**Codes.** A product quantizer cuts a row into parts of :math:`G` components and replaces part
:math:`b` by one of the words :math:`z_{b1}, \dots, z_{bD}`: the row has the codes :math:`c_b`. Then

.. math:: \langle w, x \rangle = \sum_b T_b[c_b], \qquad T_b[j] = \langle w_b, z_{bj} \rangle,

which is one look-up per part, in arrays that are computed once for all rows. The gradient
:math:`\sum_i g_i x_i` adds every :math:`g_i` to such arrays at the codes of row :math:`i`, and
multiplies them by the words afterwards (*delayed expansion*). The cost per row is :math:`1 / G` of
that of decoded rows, and the products with the words cost as much as :math:`D` rows: for fewer rows
than that, decode some rows at a time and multiply (*immediate expansion*). Codes lie in groups of
32 parts, each group row by row: while the rows of a group are scored, its look-up arrays stay in
the cache.

**Pairs.** A two-neighbor map gives a value between the nodes :math:`a` and :math:`a + 1` of its
column the features :math:`\Phi_a, \Phi_{a+1}` and no others, so a score
:math:`\sum \Phi_a v_a + \Phi_{a+1} v_{a+1}` is two multiplications per value. The time goes into
reading: a CSR matrix takes 16 bytes for such a pair. Here it takes 6: the number of the first node
within a group of columns, and the two weights in units of :math:`2^{-15}` of the largest. A group
has so few nodes that their weights stay in the cache while all rows pass by.

**Tasks side by side.** The core looks up one number at a time, or up to three vectors of them. Two
tasks are served one after the other, more of them together.

**Reference.** A. Vedaldi and A. Zisserman, *Sparse Kernel Approximations for Efficient
Classification and Detection*, CVPR 2012.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from scipy.linalg import get_blas_funcs

from hilbin._arrays import Array
from hilbin._core import core
from hilbin.parallel import Range, ranges, run, stream
from hilbin.stats.moments import mirror

FEW = 2  # tasks that are served one by one
CACHE_LINE = 64  # bytes
GROUP: int = core.chunk_blocks  # parts whose codes lie together
GROUPS_PER_JOB = 16
ROWS_AT_ONCE = 1 << 15  # whose scores or slopes stay in the cache from a few parts to the next
GROUPS_AT_ONCE = 2  # whose parts are decoded for a kernel matrix
DECODED_ROWS = 512
EXPANSIONS = ("delayed", "immediate")
NODES = 2560  # nodes of a group of columns
ROWS_PER_JOB = 4096
UNITS = 32767
PAIR_BYTES = 6  # of a node and two weights


class PQRows:
    """Rows of product-quantized codes, as a risk sees them.

    Parameters
    ----------
    codes : array of shape (groups, n, 32)
        Codes as uint8 or uint16; that of part ``b`` of row ``i`` is ``codes[b // 32, i, b % 32]``.
    words : array of shape (parts, D, G)
        Words of every part.
    size : int, optional
        Number of components of a row, by default ``parts * G``. The last part may have fewer than
        ``G``.
    expansion : {"delayed", "immediate"}, default="delayed"
        Whether to look up products with the words, or to decode the rows.
    dtype : dtype, default=float32
        Type of look-ups, scores and gradients.
    n_jobs : int, optional
        Number of threads, as in joblib.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers.coded import PQRows
    >>> codes = np.zeros((1, 3, 32), np.uint8)
    >>> codes[0, :, 0] = [0, 1, 1]
    >>> rows = PQRows(codes, np.array([[[1.0, 2.0], [0.0, 3.0]]]))
    >>> rows.scores(np.array([[1.0, 1.0]]))
    array([[3.],
           [3.],
           [3.]], dtype=float32)
    >>> rows.gradient(np.array([[1.0], [1.0], [0.0]]))
    array([[1., 5.]], dtype=float32)
    """

    def __init__(
        self,
        codes: Array,
        words: Array,
        size: int | None = None,
        *,
        expansion: Literal["delayed", "immediate"] = "delayed",
        dtype: Any = np.float32,
        n_jobs: int | None = None,
    ) -> None:
        parts, count, length = words.shape
        size = parts * length if size is None else size
        if codes.ndim != 3 or codes.shape[2] != GROUP or codes.shape[0] != -(-parts // GROUP):
            raise ValueError(f"codes of shape {codes.shape} do not hold {parts} parts")
        if not (parts - 1) * length < size <= parts * length:
            raise ValueError(f"size={size} is not {parts} parts of {length} components")
        if expansion not in EXPANSIONS:
            raise ValueError(f"expansion must be one of {EXPANSIONS}, got {expansion!r}")
        if count <= np.iinfo(codes.dtype).max and codes.size and codes.max() >= count:
            raise ValueError(f"codes has the code {codes.max()}, but there are {count} words")
        self.codes, self.words, self.expansion, self.n_jobs = codes, words, expansion, n_jobs
        self.shape, self.dtype = (codes.shape[1], size), np.dtype(dtype)

    def scores(self, V: Array) -> Array:
        """Return ``X V^T`` of shape (n, k), for weights of shape (k, size).

        The look-ups of a few parts are made, used for all rows, and forgotten.
        """
        if self.expansion == "immediate":
            return self._decoded_scores(V)
        out = np.empty((self.shape[0], len(V)), self.dtype)
        for begin, end in side_by_side(len(V), self.dtype):
            arrays = self._columns, _weights_of(self._columns, V[begin:end])
            found = _sums_over_groups(core.coded_scores, self.codes, arrays, self.n_jobs)
            out[:, begin:end] = found[:, : end - begin]
        return out

    def gradient(self, S: Array) -> Array:
        """Return ``S^T X`` of shape (k, size), for slopes of shape (n, k)."""
        if self.expansion == "immediate":
            return self._decoded_gradient(S)
        out = np.empty((S.shape[1], self.shape[1]), self.dtype)
        for begin, end in side_by_side(S.shape[1], self.dtype):
            out[begin:end] = self._sums(S[:, begin:end])[: self.shape[1], : end - begin].T
        return out

    @cached_property
    def _columns(self) -> Array:
        return _columns_of(self.words, self.dtype)

    def _sums(self, S: Array) -> Array:
        codes, columns = self.codes, self._columns
        slopes = whole_vectors(S, self.dtype)
        parts, length, _ = columns.shape
        out = aligned_zeros((parts, length, slopes.shape[1]), self.dtype)

        def add(begin: int, end: int) -> None:
            own = _parts_of(begin, end, parts)
            for top, bottom in ranges(len(S), ROWS_AT_ONCE):
                some = codes[begin:end, top:bottom]
                core.coded_sums(some, slopes[top:bottom], columns[own], out[own])

        run(add, ranges(len(codes), GROUPS_PER_JOB), self.n_jobs)
        return out.reshape(parts * length, -1)

    def _decoded_scores(self, V: Array) -> Array:
        V = V.astype(self.dtype, copy=False)

        def add(first: int, last: int) -> Array:
            sums = np.zeros((self.shape[0], len(V)), self.dtype)
            for begin, end, columns, rows in self._decoded(first, last):
                sums[begin:end] += rows @ V[:, columns].T
            return sums

        total = np.zeros((self.shape[0], len(V)))
        jobs = ranges(len(self.codes), GROUPS_PER_JOB)
        for sums in stream(add, jobs, self.n_jobs, calls_blas=True):
            total += sums
        return total.astype(self.dtype)

    def _decoded_gradient(self, S: Array) -> Array:
        S = np.ascontiguousarray(S.T, self.dtype)
        out = np.zeros((len(S), self.shape[1]), self.dtype)

        def add(first: int, last: int) -> None:
            for begin, end, columns, rows in self._decoded(first, last):
                out[:, columns] += S[:, begin:end] @ rows

        jobs = ranges(len(self.codes), GROUPS_PER_JOB)
        for _ in stream(add, jobs, self.n_jobs, calls_blas=True):
            pass
        return out

    def gram(self) -> Array:
        """Return ``X X^T`` of shape (n, n); the rows are decoded a few parts at a time."""
        n, size = self.shape
        parts, _, length = self.words.shape
        (add,) = get_blas_funcs(("syrk",), dtype=self.dtype)
        K = np.zeros((n, n), self.dtype, order="F")
        for begin, end in ranges(len(self.codes), GROUPS_AT_ONCE):
            own = _parts_of(begin, end, parts)
            words = np.ascontiguousarray(self.words[own], self.dtype)
            rows = np.empty((n, len(words) * length), self.dtype)
            core.decode_words(self.codes[begin:end], words, rows)
            rows = np.ascontiguousarray(rows[:, : size - own.start * length])
            K = add(1.0, rows.T, beta=1.0, c=K, trans=1, lower=1, overwrite_c=True)
        mirror(K)
        return K.T

    def _decoded(self, first: int, last: int) -> Iterator[tuple[int, int, slice, Array]]:
        """Decode the parts of some groups, some rows at a time: begin, end, components, values."""
        length = self.words.shape[2]
        for group in range(first, last):
            parts = _parts_of(group, group + 1, len(self.words))
            columns = slice(parts.start * length, min(parts.stop * length, self.shape[1]))
            words = np.ascontiguousarray(self.words[parts], self.dtype)
            for begin, end in ranges(self.shape[0], DECODED_ROWS):
                rows = np.empty((end - begin, (parts.stop - parts.start) * length), self.dtype)
                core.decode_words(self.codes[group : group + 1, begin:end], words, rows)
                yield begin, end, columns, rows[:, : columns.stop - columns.start]


class PQLookup:
    """Weights multiplied by the words once, so that scores of codes are look-ups alone.

    Parameters
    ----------
    words : array of shape (parts, D, G)
        Words of every part.
    V : array of shape (k, size)
        Weights of every task.
    dtype : dtype, default=float32
        Type of look-ups and scores.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers.coded import PQLookup
    >>> lookup = PQLookup(np.array([[[1.0, 2.0], [0.0, 5.0]]]), np.array([[1.0, 1.0]]))
    >>> codes = np.zeros((1, 3, 32), np.uint8)
    >>> codes[0, :, 0] = [0, 1, 1]
    >>> lookup.scores(codes)
    array([[3.],
           [5.],
           [5.]], dtype=float32)
    """

    def __init__(self, words: Array, V: Array, dtype: Any = np.float32) -> None:
        columns = _columns_of(words, dtype)
        self.tasks = side_by_side(len(V), dtype)
        self.products = []  # parts x words x tasks, for every range of tasks
        for begin, end in self.tasks:
            weights = _weights_of(columns, V[begin:end])
            products = aligned_zeros((*columns.shape[::2], weights.shape[2]), dtype)
            core.expand_words(columns, weights, products)
            self.products.append(products)

    def scores(self, codes: Array, n_jobs: int | None = None) -> Array:
        """Return the scores (n, k) of codes as :class:`PQRows` takes them."""
        pairs = zip(self.products, self.tasks, strict=True)
        found = [
            _sums_over_groups(core.word_scores, codes, [A], n_jobs)[:, : end - begin]
            for A, (begin, end) in pairs
        ]
        return np.concatenate(found, axis=1, dtype=self.products[0].dtype)


def _parts_of(begin: int, end: int, parts: int) -> slice:
    """Return the parts of the groups ``begin .. end - 1``."""
    return slice(begin * GROUP, min(end * GROUP, parts))


def _columns_of(words: Array, dtype: Any) -> Array:
    """Return words as the core takes them: parts x components x words."""
    return np.ascontiguousarray(words.swapaxes(1, 2), dtype)


def _weights_of(columns: Array, V: Array) -> Array:
    """Return weights as the core takes them: parts x components x tasks."""
    parts, length, _ = columns.shape
    width = _whole_width(len(V), columns.dtype)
    weights = aligned_zeros((parts * length, width), columns.dtype)
    weights[: V.shape[1], : len(V)] = V.T
    return weights.reshape(parts, length, width)


def _sums_over_groups(
    add: Callable[..., None], codes: Array, arrays: Sequence[Array], n_jobs: int | None
) -> Array:
    """Return the scores that ``add(codes, *arrays, sums)`` of the core adds up.

    Those of many groups are added in float64.

    The arrays have the parts on their first axis, the last one the tasks on its third.
    """
    shape, dtype = (codes.shape[1], arrays[-1].shape[2]), arrays[-1].dtype

    def add_groups(begin: int, end: int) -> Array:
        sums = aligned_zeros(shape, dtype)
        parts = _parts_of(begin, end, len(arrays[0]))
        own = [array[parts] for array in arrays]
        for top, bottom in ranges(len(sums), ROWS_AT_ONCE):
            add(codes[begin:end, top:bottom], *own, sums[top:bottom])
        return sums

    jobs = ranges(len(codes), GROUPS_PER_JOB)
    if len(jobs) == 1:
        return add_groups(*jobs[0])
    total = np.zeros(shape)
    for sums in stream(add_groups, jobs, n_jobs):
        total += sums
    return total


@dataclass(frozen=True)
class _ColumnGroup:
    """The pairs whose first node is one of ``begin .. end - 1``, row by row, in fours."""

    begin: int
    end: int
    fours: Array
    nodes: Array
    weights: Array

    @property
    def arrays(self) -> tuple[Array, Array, Array]:
        """The arrays that the core takes."""
        return self.fours, self.nodes, self.weights


class PairRows:
    """Rows of pairs of neighboring entries, as a risk sees them.

    Parameters
    ----------
    Z : CSR of shape (n, D)
        Features of a :class:`~hilbin.maps.SparseMap`: entries in pairs, each in two columns that
        follow each other. Weights are rounded to ``2^-16`` of the largest; sums and scores are in
        float32.
    n_nodes : int, default=1
        Nodes of a column, in one of which both columns of ``Z`` of a pair are; for ``gram`` alone.
    n_jobs : int, optional
        Number of threads, as in joblib.

    Attributes
    ----------
    source_dtype : dtype
        Type of ``Z``.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from hilbin.solvers.coded import PairRows
    >>> Z = sp.csr_array([[0.5, 1.0, 0.0], [0.0, 0.25, 0.75]])
    >>> rows = PairRows(Z)
    >>> rows.scores(np.array([[1.0, 2.0, 4.0]])).round(3)
    array([[2.5],
           [3.5]], dtype=float32)
    >>> rows.gradient(np.array([[1.0], [1.0]])).round(3)
    array([[0.5 , 1.25, 0.75]], dtype=float32)
    """

    def __init__(self, Z: Any, *, n_nodes: int = 1, n_jobs: int | None = None) -> None:
        Z = sp.csr_array(Z)
        if not Z.has_sorted_indices:
            Z = Z.sorted_indices()
        if Z.dtype not in (np.float32, np.float64):
            Z = Z.astype(np.float64)
        _require_pairs(Z)
        self.n_jobs, self.shape, self.dtype = n_jobs, Z.shape, np.dtype(np.float32)
        self.source_dtype, self.n_nodes = Z.dtype, n_nodes
        largest = float(np.abs(Z.data).max(initial=0.0))
        if not np.isfinite(largest):
            raise ValueError("Z has entries that are not finite")
        self._unit = largest / UNITS or 1.0
        self._groups = _grouped(Z, 1 / self._unit, max(1, NODES // n_nodes) * n_nodes)

    @property
    def nbytes(self) -> int:
        """Number of bytes of the pairs."""
        return sum(array.nbytes for group in self._groups for array in group.arrays)

    def scores(self, V: Array) -> Array:
        """Return ``Z V^T`` of shape (n, k), for weights of shape (k, D)."""
        out = np.empty((self.shape[0], len(V)), self.dtype)
        for begin, end in side_by_side(len(V), self.dtype):
            out[:, begin:end] = self._scores(V[begin:end])[:, : end - begin]
        return out

    def gradient(self, S: Array) -> Array:
        """Return ``S^T Z`` of shape (k, D), for slopes of shape (n, k)."""
        out = np.empty((S.shape[1], self.shape[1]), self.dtype)
        for begin, end in side_by_side(S.shape[1], self.dtype):
            out[begin:end] = self._sums(S[:, begin:end])[:, : end - begin].T
        return out

    def gram(self, which: Array, known: Array, inner: Array) -> Array:
        """Return the kernel matrix of some rows, given that of the last ``len(known)`` of them.

        ``inner`` is that of the nodes of a column, all of which have the same.
        """
        fresh = which.size - len(known)
        K = np.zeros((which.size, which.size), np.float32)
        K[fresh:, fresh:] = known
        which, inner = which.astype(np.int64), (self._unit**2 * inner).astype(np.float32)
        for group in self._groups:
            core.pair_gram(*group.arrays, which, fresh, inner, group.end - group.begin, K)
        for begin, end in ranges(fresh, core.gram_rows):
            K[begin:end, begin:] = K[begin:, begin:end].T
        return K

    def _scores(self, V: Array) -> Array:
        values = whole_vectors(self._unit * V.T, self.dtype)
        out = np.zeros((self.shape[0], values.shape[1]), self.dtype)

        def add(begin: int, end: int) -> None:
            for group in self._groups:
                own = values[group.begin : group.end + 1]
                core.pair_scores(*group.arrays, own, out, begin, end)

        run(add, ranges(self.shape[0], ROWS_PER_JOB), self.n_jobs)
        return out

    def _sums(self, S: Array) -> Array:
        slopes = whole_vectors(self._unit * S, self.dtype)
        out = np.zeros((self.shape[1], slopes.shape[1]), self.dtype)

        def add(first: int, last: int) -> Array:
            group = self._groups[first]
            nodes = min(group.end + 1, self.shape[1]) - group.begin
            sums = aligned_zeros((nodes, slopes.shape[1]), self.dtype)
            core.pair_sums(*group.arrays, slopes, sums)
            return sums

        found = stream(add, ranges(len(self._groups), 1), self.n_jobs)
        for group, sums in zip(self._groups, found, strict=True):
            out[group.begin : group.end + 1] += sums  # a group shares a node with the next
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
        raise ValueError(f"Z[{row}] has entries that are not pairs of neighboring columns")


def _grouped(Z: Any, per_unit: float, size: int) -> list[_ColumnGroup]:
    """Return the pairs of all rows, one group of ``size`` columns after the other."""
    n, nodes = Z.shape
    indptr = Z.indptr.astype(np.int64)
    given = (Z.indices.astype(np.int32, copy=False), Z.data, indptr)
    cursor = indptr[:-1].copy()
    groups = []
    for begin, end in ranges(nodes, size):
        fours = np.empty(n + 1, np.int64)
        core.count_pairs(*given, cursor, end, fours)
        node, weights = np.empty(4 * fours[-1], np.uint16), np.empty((4 * fours[-1], 2), np.int16)
        core.take_pairs(*given, cursor, begin, end, per_unit, fours, node, weights)
        groups.append(_ColumnGroup(begin, end, fours, node, weights))
    return groups


def side_by_side(tasks: int, dtype: Any) -> list[Range]:
    """Return ranges of tasks to be served together."""
    return ranges(tasks, 1 if tasks <= FEW else core.most_vectors * _lanes(dtype))


def _lanes(dtype: Any) -> int:
    """Return the length of a vector of the core."""
    return int(core.vector_bytes // np.dtype(dtype).itemsize)


def _whole_width(tasks: int, dtype: Any) -> int:
    """Return ``tasks`` filled up to whole vectors; one task stays one."""
    return 1 if tasks == 1 else -(-tasks // _lanes(dtype)) * _lanes(dtype)


def whole_vectors(A: Array, dtype: Any) -> Array:
    """Return ``A`` with its last axis, the tasks, filled up to whole vectors."""
    tasks = A.shape[-1]
    padded = aligned_zeros((*A.shape[:-1], _whole_width(tasks, dtype)), dtype)
    padded[..., :tasks] = A
    return padded


def aligned_zeros(shape: tuple[int, ...], dtype: Any) -> Array:
    """Return zeros that begin with a line of the cache: vectors that lie on two are slow."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    room = np.zeros(size + CACHE_LINE, np.uint8)
    begin = -room.ctypes.data % CACHE_LINE
    return room[begin : begin + size].view(dtype).reshape(shape)
