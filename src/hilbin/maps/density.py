"""How the values of a data set are spread along the coordinate of an additive kernel.

Maps are fitted to this histogram alone: 300 equal bins of ``u(x)`` between the smallest and the
largest value that counts (for histogram kernels ``u = log x`` and zeros do not count). A bin stands
at the mean coordinate of the values in it, so that data of few distinct values is met exactly. What
a map does between the values of the data, where bins are empty, is looked at as well: candidates
are compared ``everywhere``, and the worst error is that on a ``grid``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from hilbin._arrays import Array, Matrix
from hilbin.kernels import AdditiveKernel
from hilbin.maps.expansion import require_in_range

BINS = 300
GAPS = 1e-4  # share of the mass spread over all bins, for values that the data does not have
GOLDEN = (np.sqrt(5) - 1) / 2
VALUES_AT_A_TIME = 1 << 20


@dataclass(frozen=True)
class Density:
    """Masses of values: ``u`` ascending, ``x`` with ``u(x) = u``, ``r(x)`` and the share ``mass``.

    ``sample`` is one value of the data from each bin; ``edges`` holds the coordinates of the ends
    of the domain, ``low`` and ``high`` their values.
    """

    kernel: AdditiveKernel
    u: Array
    x: Array
    weight: Array
    mass: Array
    sample: Array
    edges: tuple[float, float]
    low: float
    high: float

    @cached_property
    def finer(self) -> "Density":
        """The mean and the sample of every bin, each with half of its mass.

        What is fitted to the means is measured on these: it tells if bins are too wide.
        """
        x = np.concatenate([self.x, self.sample])
        return self._at(self.kernel.coordinate(x), x, np.tile(self.mass, 2) / 2)

    @cached_property
    def everywhere(self) -> "Density":
        """The same, and the centers of the empty bins, with mass 0."""
        first, last = self.edges
        if first == last:
            return self
        empty = np.setdiff1d(np.arange(BINS), self._bins)
        u = np.append(self.u, first + (empty + 0.5) * (last - first) / BINS)
        x = np.append(self.x, self.kernel.value(u[self.u.size :]))
        return self._at(u, x, np.append(self.mass, np.zeros(empty.size)))

    def grid(self, count: int) -> "Density":
        """Return ``count`` values over the domain, its ends among them, with equal masses.

        Each is in a cell of its own of the coordinate, nowhere in step with nodes of a map.
        """
        first, last = self.edges
        cells = np.arange(count - 2)
        inner = (cells + GOLDEN * (cells + 1) % 1) / (count - 2)
        u = first + (last - first) * np.concatenate([[0], inner, [1]])
        x = np.concatenate([[self.low], self.kernel.value(u[1:-1]), [self.high]])
        return self._at(u, x, np.full(count, 1 / count))

    def _at(self, u: Array, x: Array, mass: Array) -> "Density":
        return replace(self, u=u, x=x, weight=self.kernel.weight(x), mass=mass)

    @property
    def _bins(self) -> Array:
        first, last = self.edges
        scale = BINS / (last - first) if last > first else 0.0
        return np.clip((self.u - first) * scale, 0, BINS - 1).astype(np.intp)

    def kernel_matrix(self) -> Array:
        """Return ``k(x, y)`` between all values; computed once."""
        return self._matrix

    @cached_property
    def _matrix(self) -> Array:
        return one_dimensional(self.kernel, self.u, self.weight, self.u, self.weight)

    def with_floor(self, share: float) -> Array:
        """Return the masses, mixed with ``share`` spread evenly over the bins there are."""
        values_in_bin = np.bincount(self._bins)
        even = 1 / (np.count_nonzero(values_in_bin) * values_in_bin[self._bins])
        return (1 - share) * self.mass + share * even


def one_dimensional(kernel: AdditiveKernel, u: Array, r: Array, v: Array, s: Array) -> Array:
    """Return ``r_i s_j P(|u_i - v_j|)``."""
    return kernel.profile(np.abs(u[:, None] - v)) * r[:, None] * s


def density(
    kernel: AdditiveKernel, X: Matrix, domain: tuple[float, float] | None = None
) -> Density:
    """Return the histogram of ``X``; ``domain`` gives its ends, where values beyond are counted."""
    low, high = _ends(kernel, X) if domain is None else domain
    if kernel.nonnegative:
        require_in_range(high, X.dtype)
        low = max(low, float(np.finfo(X.dtype).tiny))  # below it 1 / x may be no number
    first, last = (float(kernel.coordinate(np.array([v]))[0]) for v in (low, high))
    bins = BINS if last > first else 1
    scale = bins / (last - first) if last > first else 0.0
    counts, sums, sample = np.zeros(bins), np.zeros(bins), np.full(bins, low)
    for values, times in _counted(kernel, X):
        u = kernel.coordinate(values).astype(np.float64)
        at = np.clip((u - first) * scale, 0, bins - 1).astype(np.intp)
        sample[at] = np.clip(values, low, high)
        counts += times * np.bincount(at, minlength=bins)
        sums += times * np.bincount(at, np.clip(u, first, last), minlength=bins)
    if not counts.any():  # an empty data set: what there is to know is the domain
        counts += 1
        sums += first + (np.arange(bins) + 0.5) * (last - first) / bins
        sample = kernel.value(sums)
    seen = counts > 0
    u = sums[seen] / counts[seen]
    x = kernel.value(u)
    mass, edges = counts[seen] / counts.sum(), (first, last)
    return Density(kernel, u, x, kernel.weight(x), mass, sample[seen], edges, low, high)


def _ends(kernel: AdditiveKernel, X: Matrix) -> tuple[float, float]:
    """Return the smallest and the largest value that counts."""
    low, high = np.inf, -np.inf
    for values, _ in _counted(kernel, X):
        if values.size:
            low, high = min(low, float(values.min())), max(high, float(values.max()))
    return (low, high) if low <= high else (1.0, 1.0)


def _counted(kernel: AdditiveKernel, X: Matrix) -> Iterator[tuple[Array, float]]:
    """Yield the values that count, some at a time, and how often these are there."""
    values = X.data if sp.issparse(X) else X
    step = max(1, VALUES_AT_A_TIME // max(1, values.shape[-1] if values.ndim == 2 else 1))
    for begin in range(0, values.shape[0], step):
        some = values[begin : begin + step].ravel()
        yield some[kernel.weight(some) != 0], 1.0
    if sp.issparse(X) and not kernel.keeps_zero:
        yield np.zeros(1, X.dtype), float(X.shape[0] * X.shape[1] - X.nnz)
