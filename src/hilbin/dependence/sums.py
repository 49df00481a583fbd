r"""What measures of dependence need of two descriptions: a few sums, in memory or over chunks.

With centered Gram matrices :math:`A, B` and their diagonals :math:`a, b` these are
:math:`\langle A, B \rangle`, :math:`\mathrm{tr} A`, :math:`\|A\|^2`, :math:`a^\top a`,
:math:`a^\top b`, and those of :math:`B`. Of features :math:`z` with the scatter :math:`S` of both
descriptions side by side they are

.. math:: \langle A, B \rangle = \|S_{xy}\|^2, \quad \mathrm{tr} A = \mathrm{tr} S_{xx}, \quad
    \|A\|^2 = \|S_{xx}\|^2, \quad a_i = \|z_i - \bar z\|^2 ,

so that one pass over the rows finds the scatter and the means, and a second one the sums of squared
and multiplied :math:`a_i, b_i`, from centered features, so that nothing cancels.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import iadd
from typing import Any, NamedTuple, Protocol

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import FunctionTransformer

from hilbin._arrays import Array, Matrix, check_rows, to_dense
from hilbin.dependence.views import CONSTANT, View, as_views
from hilbin.kernels import Linear
from hilbin.parallel import ranges
from hilbin.stats import Moments, RowSample, StatisticTuple, Totals
from hilbin.stream import Chunk, Chunks, as_chunks, fold
from hilbin.stream.opening import lies_in_memory

SLICE = 4096  # rows whose features are computed at a time
N_FIT_SAMPLES = 10_000  # rows to which a map is fitted, if they come in chunks


class PairSums(Protocol):
    """The sums of two descriptions of ``n`` rows."""

    @property
    def n(self) -> int:
        """Number of rows."""

    @property
    def product(self) -> float:
        """Sum of the products of the entries of both matrices."""

    @property
    def traces(self) -> tuple[float, float]:
        """Traces of both."""

    @property
    def squares(self) -> tuple[float, float]:
        """Squared norms of both."""

    @property
    def diagonals(self) -> tuple[float, float, float]:
        """Products of the diagonals: of the first with itself, the second with itself, and both."""


@dataclass(frozen=True)
class ViewSums:
    """The sums of two views in memory, each computed when it is asked for."""

    x: View
    y: View

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.x)

    @cached_property
    def product(self) -> float:
        """Sum of the products of the entries of both matrices."""
        return self.x.product(self.y)

    @property
    def traces(self) -> tuple[float, float]:
        """Traces of both."""
        return float(self.x.diagonal.sum()), float(self.y.diagonal.sum())

    @cached_property
    def squares(self) -> tuple[float, float]:
        """Squared norms of both."""
        return self.x.product(self.x), self.y.product(self.y)

    @property
    def diagonals(self) -> tuple[float, float, float]:
        """Products of the diagonals: of the first with itself, the second with itself, and both."""
        a, b = self.x.diagonal, self.y.diagonal
        return float(a @ a), float(b @ b), float(a @ b)


class StreamSums(NamedTuple):
    """The sums of descriptions that came in chunks."""

    n: int
    product: float
    traces: tuple[float, float]
    squares: tuple[float, float]
    diagonals: tuple[float, float, float]


def as_sums(X: Any, Y: Any, kernel_x: Any, kernel_y: Any, *, fewest: int) -> PairSums:
    """Return the sums of two descriptions of the same rows, of which there must be a few."""
    if Y is not None and lies_in_memory(X) and lies_in_memory(Y):
        return ViewSums(*as_views(X, Y, kernel_x, kernel_y, fewest=fewest))
    if Y is None and lies_in_memory(X):
        raise ValueError("Y is None: give a second description, or chunks (X, Y)")
    found = _streamed(as_chunks(X, Y), _as_map(kernel_x, "x"), _as_map(kernel_y, "y"))
    if found.n < fewest:
        raise ValueError(f"X must have at least {fewest} rows, got {found.n}")
    return found


def _as_map(kernel: Any, side: str) -> Any:
    """Return a map that is not fitted yet; the linear kernel has the columns themselves."""
    if type(kernel) is Linear:
        return FrozenEstimator(FunctionTransformer())
    if not hasattr(kernel, "transform") or isinstance(kernel, type):
        raise ValueError(
            f"kernel_{side} must be a map of hilbin.maps, or Linear(), for rows that come in "
            f"chunks, got {kernel!r}"
        )
    return kernel


def _streamed(chunks: Chunks, map_x: Any, map_y: Any) -> StreamSums:
    """Return the sums from two passes, and one more to fit the maps."""
    maps = _fitted(chunks, [map_x, map_y])
    width = features_of(next(iter(chunks)), maps, slice(1))[0].shape[1]
    moments: Moments = fold(chunks, PairMoments(maps))
    S, mean, n = moments.scatter, moments.mean, moments.n
    x, y = slice(width), slice(width, None)
    traces = []
    for side in (x, y):
        trace = float(np.trace(S[side, side]))
        constant = trace <= CONSTANT * (trace + n * float(mean[side] @ mean[side]))
        traces.append(0.0 if constant else trace)
    if min(traces) == 0:  # a description is the same for all rows
        return StreamSums(round(n), 0.0, (traces[0], traces[1]), (0.0, 0.0), (0.0, 0.0, 0.0))
    a, b, both = fold(chunks, DiagonalSums(maps, mean))["products"]
    squares = float(np.sum(S[x, x] ** 2)), float(np.sum(S[y, y] ** 2))
    product = float(np.sum(S[x, y] ** 2))
    return StreamSums(round(n), product, (traces[0], traces[1]), squares, (a, b, both))


def _fitted(chunks: Chunks, maps: list[Any]) -> list[Any]:
    """Return clones of the maps, fitted to the same random rows; frozen ones as they are."""
    maps = [clone(each) for each in maps]
    if all(isinstance(each, FrozenEstimator) for each in maps):
        return maps
    sample = fold(chunks, PairSample())
    return [each.fit(part.rows, None) for each, part in zip(maps, sample.parts, strict=True)]


@dataclass(frozen=True)
class PairSample:
    """Random rows of both descriptions, at the same places."""

    def __call__(self, chunk: Chunk) -> StatisticTuple:
        """Return the rows of a chunk."""
        return StatisticTuple(
            *(RowSample.of(rows, N_FIT_SAMPLES, begin=chunk.begin) for rows in sides_of(chunk))
        )


@dataclass(frozen=True)
class PairMoments:
    """Moments of the features of both descriptions, side by side."""

    maps: list[Any]

    def __call__(self, chunk: Chunk) -> Moments:
        """Return the moments of a chunk."""
        parts = (np.hstack(features_of(chunk, self.maps, rows)) for rows in slices_of(chunk))
        return reduce(iadd, (Moments.of(Z) for Z in parts))


@dataclass(frozen=True)
class DiagonalSums:
    """Sums of the products of squared distances from the mean."""

    maps: list[Any]
    mean: Array

    def __call__(self, chunk: Chunk) -> Totals:
        """Return the sums of a chunk."""
        return reduce(iadd, (self._of(chunk, rows) for rows in slices_of(chunk)))

    def _of(self, chunk: Chunk, rows: slice) -> Totals:
        Z, W = features_of(chunk, self.maps, rows)
        Z, W = Z - self.mean[: Z.shape[1]], W - self.mean[Z.shape[1] :]
        a, b = np.vecdot(Z, Z), np.vecdot(W, W)
        return Totals(products=[a @ a, b @ b, a @ b])


def sides_of(chunk: Chunk) -> tuple[Matrix, Matrix]:
    """Return the rows of both descriptions."""
    if chunk.y is None:
        raise ValueError(
            f"{chunk.source}: there is no second description; give Y, or chunks (X, Y)"
        )
    if chunk.weight is not None:
        raise ValueError(f"{chunk.source}: rows have weights, which dependence does not know")
    targets = check_rows(np.reshape(chunk.y, (len(chunk.y), -1)), "Y")
    return chunk.X, targets


def slices_of(chunk: Chunk) -> Iterator[slice]:
    """Return slices of so many rows that features of them take little memory."""
    return (slice(b, e) for b, e in ranges(chunk.X.shape[0], SLICE))


def features_of(chunk: Chunk, maps: list[Any], rows: slice) -> list[Array]:
    """Return the features of both descriptions, dense and in double precision."""
    return [
        to_dense(feature_map.transform(side[rows])).astype(np.float64, copy=False)
        for feature_map, side in zip(maps, sides_of(chunk), strict=True)
    ]
