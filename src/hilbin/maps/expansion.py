"""Rows of values into rows of features, value by value.

The features of a value stand side by side: value ``d`` becomes columns ``d n .. d n + n - 1``.
Dense rows and the stored values of CSR rows are both flat arrays here, so that one loop serves
both. An :class:`Expansion` knows the features of a single value: the chi-squared series, the only
feature of a kernel of rank one, or any function, as cubics on cells of the line.

Values that are never negative have 64 cells per octave, from 2^-10 of the smallest value to 2^4 of
the largest, so that the leading bits of a value are the number of its cell, and one cell down to 0,
where functions are lines; all cells are within the range of float32. Other values have 2048 equal
cells between the ends. A cubic goes through Chebyshev's points of its cell. Beyond the last cell
functions stay as they are at the end.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from hilbin._arrays import Array, Function, Matrix
from hilbin._core import core
from hilbin._state import require, require_attributes, stored
from hilbin.kernels import AdditiveKernel
from hilbin.parallel import ranges, run

VALUES_PER_TASK = 1 << 15
PER_OCTAVE = 64
OCTAVES_BELOW, OCTAVES_ABOVE = 10, 4
LOWEST, HIGHEST = -126, 126  # octaves of float32
EVEN = 2048
MOST_FUNCTIONS = 128  # of a value, in the core
POINTS = (1 - np.cos(np.pi * (np.arange(4) + 0.5) / 4)) / 2
TO_POWERS = np.linalg.inv(np.vander(POINTS, 4, increasing=True))

Fill = Callable[[Array, Array, int, int], object]


class Expansion(Protocol):
    """The features of single values."""

    @property
    def n_components(self) -> int:
        """The number of features of a value."""
        ...

    def prepare(self, dtype: npt.DTypeLike) -> Fill:
        """Return a function ``fill(x, out, begin, end)`` on flat arrays of ``dtype``."""
        ...


def expand(X: Matrix, expansion: Expansion, keeps_zero: bool, n_jobs: int | None) -> Any:
    """Return the features of all values of ``X``; CSR stays CSR if the features of 0 are 0."""
    n = expansion.n_components
    if X.shape[1] * n > np.iinfo(np.int32).max:
        raise ValueError(f"{X.shape[1]} columns of {n} features each are too many")
    fill = expansion.prepare(X.dtype)
    if not sp.issparse(X):
        return _dense(X, fill, n, n_jobs)
    if keeps_zero:
        return _sparse(X, fill, n, n_jobs)
    out = np.empty((X.shape[0], X.shape[1] * n), X.dtype)
    for begin, end in ranges(X.shape[0], max(1, (1 << 22) // max(1, X.shape[1]))):
        out[begin:end] = _dense(X[begin:end].toarray(), fill, n, n_jobs)
    return out


def _dense(X: Array, fill: Fill, n: int, n_jobs: int | None) -> Array:
    out = np.empty((X.shape[0], X.shape[1] * n), X.dtype)

    def task(begin: int, end: int) -> None:
        rows = np.ascontiguousarray(X[begin:end]).ravel()
        fill(rows, out[begin:end].ravel(), 0, rows.size)  # contiguous: ravel is a view

    run(task, ranges(X.shape[0], max(1, VALUES_PER_TASK // max(1, X.shape[1]))), n_jobs)
    return out


def _sparse(X: Any, fill: Fill, n: int, n_jobs: int | None) -> Any:
    data = np.empty(X.nnz * n, X.dtype)
    indices = np.empty(X.nnz * n, np.int32)
    columns = X.indices.astype(np.int32, copy=False)

    def task(begin: int, end: int) -> None:
        fill(X.data, data, begin, end)
        core.spread_indices(columns, n, indices, begin, end)

    run(task, ranges(X.nnz, VALUES_PER_TASK), n_jobs)
    indptr = X.indptr.astype(np.int64) * n
    if X.nnz * n <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    Z = type(X)((data, indices, indptr), shape=(X.shape[0], X.shape[1] * n))
    Z.has_sorted_indices = Z.has_canonical_format = True  # as X has
    return Z


@stored
class SeriesTerms:
    """The terms of the chi-squared series with parameters ``k``."""

    def __init__(self, k: Array) -> None:
        self.k = k
        self.n_components = k.size

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the loaded terms are not what the core takes."""
        found = require_attributes(self, k="float64[c]", n_components="=c")
        require(found.get("c", 0) >= 1, "k is missing")

    def prepare(self, dtype: npt.DTypeLike) -> Fill:
        """Return the fill function; see :class:`Expansion`."""
        k, twice_root = self.k.astype(dtype), (2 * np.sqrt(self.k)).astype(dtype)
        return lambda x, out, begin, end: core.series(x, k, twice_root, out, begin, end)


@stored
class RankOne:
    """The feature ``r(x) sqrt(P(0))``: all there is of a kernel whose profile is constant."""

    n_components = 1

    def __init__(self, kernel: AdditiveKernel) -> None:
        self.kernel = kernel

    def _check_state(self) -> None:
        """Raise ``ValueError`` if a loaded feature has no kernel."""
        kernel = vars(self).get("kernel")
        require(isinstance(kernel, AdditiveKernel), "kernel is not additive")

    def prepare(self, dtype: npt.DTypeLike) -> Fill:
        """Return the fill function; see :class:`Expansion`."""
        size = np.asarray(np.sqrt(self.kernel.profile(np.zeros(1))[0]), dtype)

        def fill(x: Array, out: Array, begin: int, end: int) -> None:
            np.multiply(self.kernel.weight(x[begin:end]), size, out=out[begin:end])

        return fill


def expand_values(expansion: Expansion, x: Array) -> Array:
    """Return values x features, in float64."""
    out = np.empty(x.size * expansion.n_components)
    expansion.prepare(np.float64)(np.ascontiguousarray(x, np.float64), out, 0, x.size)
    return out.reshape(x.size, -1)


def cubics(features: Function, start: Array, width: Array) -> Array:
    """Return the coefficients of the cubics on the cells: cells x powers x features."""
    at = start[:, None] + width[:, None] * POINTS
    values = features(at.ravel()).reshape(*at.shape, -1)
    return np.einsum("pn,inf->ipf", TO_POWERS, values)


@stored
@dataclass(frozen=True)
class Cells:
    """Starts and widths of cells; ``by_bits`` if leading bits lead to them, else equal steps."""

    start: Array
    width: Array
    by_bits: bool

    def _check_state(self) -> None:
        """Raise ``ValueError`` if loaded cells do not follow each other."""
        found = require_attributes(self, start="float64[n]", width="float64[n]", by_bits="bool")
        require(found.get("n", 0) >= 2, "start has fewer than two cells")
        finite = np.isfinite(self.start).all() and np.isfinite(self.width).all()
        rising = (np.diff(self.start) > 0).all() and (self.width > 0).all()
        require(finite and rising, "start is not ascending, or width not above 0")
        if self.by_bits:
            low, high = 2.0**LOWEST, 2.0 ** (HIGHEST + 1)
            inside = self.start[0] == 0 and low <= self.start[1] and self.start[-1] <= high
            require(inside, "start is out of the range of float32")

    def cubics(self, features: Function) -> Array:
        """Return the coefficients; the first cell of values >= 0 has a line to 0."""
        coefficients = cubics(features, self.start, self.width)
        if self.by_bits:
            coefficients[0] = 0
            coefficients[0, 1] = coefficients[1, 0]
        return coefficients

    def arguments(self, dtype: npt.DTypeLike) -> tuple[bool, Array]:
        """Return what the functions of the core take first."""
        if not self.by_bits:
            return False, np.array([self.start[0], 1 / self.width[0], 0.0])
        integer, mantissa = ("int32", 23) if dtype == np.float32 else ("int64", 52)
        shift = mantissa - int(np.log2(PER_OCTAVE))
        bits = int(self.start[1:2].astype(dtype).view(integer)[0]) >> shift
        return True, np.array([shift, bits, self.start[1]], np.float64)


def require_in_range(high: float, dtype: npt.DTypeLike = np.float32) -> None:
    """Raise ``ValueError`` if the largest of values >= 0 has few normal numbers around it.

    Features are tabulated within the range of float32; those of closed form have that of the data.
    """
    limits = np.finfo(dtype)
    if not limits.minexp < np.floor(np.log2(high)) <= limits.maxexp - 2 - OCTAVES_ABOVE:
        raise ValueError(
            f"the largest value, {high:g}, is outside the range of {limits.dtype}, within which "
            "features are computed: scale the data"
        )


def make_cells(low: float, high: float, *, nonnegative: bool) -> Cells:
    """Return cells for values between the ends."""
    if not nonnegative:
        step = (high - low) / EVEN or 1.0
        return Cells(low + step * np.arange(EVEN), np.full(EVEN, step), False)
    require_in_range(high)
    last = np.floor(np.log2(high)) + OCTAVES_ABOVE
    first = max(np.floor(np.log2(low)) - OCTAVES_BELOW, LOWEST)
    powers = 2.0 ** np.arange(first, last + 1)
    start = np.multiply.outer(powers, 1 + np.arange(PER_OCTAVE) / PER_OCTAVE).ravel()
    width = np.repeat(powers / PER_OCTAVE, PER_OCTAVE)
    return Cells(np.append(0, start), np.append(start[0], width), True)


@stored
class Cubics:
    """Features that are cubics on cells.

    Parameters
    ----------
    cells : Cells
    coefficients : ndarray
        Cells x powers x features.
    """

    def __init__(self, cells: Cells, coefficients: Array) -> None:
        self.cells = cells
        self.coefficients = coefficients

    def _check_state(self) -> None:
        """Raise ``ValueError`` if loaded coefficients do not fit their cells."""
        require(isinstance(vars(self).get("cells"), Cells), "cells are missing")
        n = self.cells.start.size
        found = require_attributes(self, coefficients=f"float64[{n}, 4, f]")
        require(1 <= found.get("f", 0) <= MOST_FUNCTIONS, "coefficients are out of range")

    @cached_property
    def _arguments(self) -> dict[str, tuple[Any, ...]]:
        """Arguments of the core for every dtype; not saved, as they depend on the machine."""
        return {}

    @property
    def n_components(self) -> int:
        """The number of features of a value."""
        return int(self.coefficients.shape[2])

    def prepare(self, dtype: npt.DTypeLike) -> Fill:
        """Return the fill function; see :class:`Expansion`."""
        name = np.dtype(dtype).name
        if name not in self._arguments:
            n = self.n_components
            lanes = core.short_vector_bytes // np.dtype(dtype).itemsize
            padded = np.pad(self.coefficients, ((0, 0), (0, 0), (0, -n % lanes)))
            self._arguments[name] = (*self.cells.arguments(dtype), padded.astype(dtype).ravel(), n)
        return partial(core.cubics, *self._arguments[name])
