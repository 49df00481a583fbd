r"""Kernels that compare every point of one set with every point of the other.

Lampert, *Kernel Methods in Computer Vision*, (3.9) and (3.10). The sum over all pairs is the inner
product of the sums of the points' images, hence positive definite; divided by both sizes it is the
inner product of *mean* images, whose distance is the maximum mean discrepancy. The sum of best
matches is closer to what "similar" means, and not positive definite.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from hilbin._arrays import Array, to_dense
from hilbin.kernels.base import Kernel, warn_not_psd
from hilbin.kernels.linear import Linear
from hilbin.kernels.sets.base import SetKernel, Stack, stack
from hilbin.parallel import ranges

TILE = 2048  # points; no more than the square of this many kernel values are held


class PairwiseSetKernel(SetKernel):
    """A number made of the Gram matrix of the points of two sets, tile by tile."""

    kernel: Kernel

    def _stack(self, sets: Any, name: str) -> Stack:
        self.kernel._require_resolved()
        return stack(sets, name, nonnegative=self.kernel._demand())

    def _reduce(self, bands: Iterable[tuple[slice, Any]], X: Stack, Y: Stack) -> Array:
        """Return the values of all pairs of sets from bands of the Gram matrix of their points."""
        raise NotImplementedError

    def _gram(self, X: Stack, Y: Stack | None, n_jobs: int | None) -> Array:
        other = X if Y is None else Y
        K = np.zeros((len(X), len(other)))
        if len(X.points) and len(other.points):
            found = self._compare(
                X.without_empty(), None if Y is None else Y.without_empty(), n_jobs
            )
            K[np.ix_(X.sizes > 0, other.sizes > 0)] = found
        return K

    def _diag(self, X: Stack) -> Array:
        values = np.zeros(len(X))
        if len(X.points):
            values[X.sizes > 0] = self._own_values(X.without_empty())
        return values

    def _compare(self, X: Stack, Y: Stack | None, n_jobs: int | None) -> Array:
        other = X if Y is None else Y
        out = np.empty((len(X), len(other)))
        for rows in X.parts(TILE):
            for columns in other.parts(TILE):
                if Y is None and columns < rows:
                    continue
                tile = self._tile(X.part(*rows), other.part(*columns), n_jobs)
                if Y is None and columns == rows:
                    tile = (tile + tile.T) / 2
                out[slice(*rows), slice(*columns)] = tile
                if Y is None:
                    out[slice(*columns), slice(*rows)] = tile.T
        return out

    def _tile(self, X: Stack, Y: Stack, n_jobs: int | None) -> Array:
        x, y = X.points, Y.points
        if x.dtype != y.dtype:
            x, y = x.astype(np.float64), y.astype(np.float64)
        height = max(1, TILE**2 // len(y))
        parts = (slice(*part) for part in ranges(len(x), height))
        return self._reduce(((rows, self.kernel._gram(x[rows], y, n_jobs)) for rows in parts), X, Y)

    def _own_values(self, X: Stack) -> Array:
        each = (X.part(i, i + 1) for i in range(len(X)))
        return np.array([self._tile(s, s, None)[0, 0] for s in each])


@dataclass(frozen=True)
class SumMatch(PairwiseSetKernel):
    r"""Mean over all pairs of points, :math:`K(x, y) = \frac{1}{m m'} \sum_{i, j} k(x_i, y_j)`.

    Positive definite if ``kernel`` is. The cost is that of the Gram matrix of all points; with the
    linear kernel, or a map, it is linear in the number of points.

    Parameters
    ----------
    kernel : Kernel
        The kernel of two points.
    feature_map : transformer, optional
        A map of ``kernel``, fitted, as of :mod:`hilbin.maps`: the kernel is then the inner product
        of the mean features.

    Examples
    --------
    >>> from hilbin.kernels import Gaussian, SumMatch
    >>> SumMatch(Gaussian()).gram([[[0.0], [1.0]], [[0.0]]]).round(4)
    array([[0.6839, 0.6839],
           [0.6839, 1.    ]])
    """

    kernel: Kernel
    feature_map: Any = None

    @property
    def psd(self) -> bool:  # type: ignore[override]
        """Whether the kernel of points is positive definite."""
        return self.kernel.psd

    def features(self, sets: Any) -> Any:
        """Return the mean features of every set, for the linear kernel or with a map.

        Their inner products are this kernel, unless the map has an ``inner_`` of its own.

        Parameters
        ----------
        sets : sequence of arrays of shape (m_i, d)

        Returns
        -------
        Z : ndarray or CSR of shape (n, n_features)
        """
        if not self._explicit:
            raise ValueError(f"SumMatch has features with a map only; kernel is {self.kernel!r}")
        X = self._stack(sets, "sets")
        full = X.without_empty()
        if not len(full):
            raise ValueError("sets has no points at all")
        places = (np.flatnonzero(X.sizes), np.arange(len(full)))
        spread = sp.csr_array((np.ones(len(full)), places), (len(X), len(full)))
        return spread @ self._means(full)

    @property
    def _explicit(self) -> bool:
        return self.feature_map is not None or isinstance(self.kernel, Linear)

    def _means(self, X: Stack) -> Any:
        means = [self._mean(X.part(*part)) for part in X.parts(TILE)]
        return sp.vstack(means, "csr") if sp.issparse(means[0]) else np.vstack(means)

    def _mean(self, X: Stack) -> Any:
        features = X.points if self.feature_map is None else self.feature_map.transform(X.points)
        return X.averaging() @ features.astype(np.float64)

    def _compare(self, X: Stack, Y: Stack | None, n_jobs: int | None) -> Array:
        if not self._explicit:
            return super()._compare(X, Y, n_jobs)
        left = self._means(X)
        right = left if Y is None else self._means(Y)
        K = to_dense(left @ self._with_inner(right).T)
        return (K + K.T) / 2 if Y is None else K

    def _own_values(self, X: Stack) -> Array:
        if not self._explicit:
            return super()._own_values(X)
        Z = self._means(X)
        other = self._with_inner(Z)
        products = Z.multiply(other) if sp.issparse(Z) else Z * other
        return np.asarray(products.sum(axis=1)).ravel()

    def _with_inner(self, Z: Any) -> Any:
        """Multiply features by the inner product of the map's space, if it has one of its own."""
        inner = getattr(self.feature_map, "inner_", None)
        if inner is None or getattr(self.feature_map, "orthonormal", False):
            return Z
        return (inner @ to_dense(Z).T).T

    def _reduce(self, bands: Iterable[tuple[slice, Any]], X: Stack, Y: Stack) -> Array:
        average = Y.averaging().T
        values: Array = X.averaging() @ np.vstack([to_dense(K @ average) for _, K in bands])
        return values


@dataclass(frozen=True)
class MaxMatch(PairwiseSetKernel):
    r"""Mean of the best matches, :math:`K(x, y) = \frac1m \sum_i \max_j k(x_i, y_j)
    + \frac{1}{m'} \sum_j \max_i k(x_i, y_j)`.

    Not positive definite, whatever ``kernel`` is; :class:`SumMatch` and :class:`PyramidMatch` are.

    Parameters
    ----------
    kernel : Kernel
        The kernel of two points.

    Examples
    --------
    >>> import warnings
    >>> from hilbin.kernels import Gaussian, MaxMatch, NotPositiveDefiniteWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", NotPositiveDefiniteWarning)
    ...     kernel = MaxMatch(Gaussian())
    >>> kernel.gram([[[0.0], [1.0]], [[0.0]]]).round(4)
    array([[2.    , 1.6839],
           [1.6839, 2.    ]])
    """

    kernel: Kernel
    psd = False

    def __post_init__(self) -> None:
        warn_not_psd(
            cast(Kernel, self), "a maximum of kernels is not a kernel; SumMatch is the sound kin"
        )

    def _reduce(self, bands: Iterable[tuple[slice, Any]], X: Stack, Y: Stack) -> Array:
        of_rows = np.empty((len(X.points), len(Y)))
        of_columns = np.full((len(X), len(Y.points)), -np.inf)
        for rows, band in bands:
            K = to_dense(band)
            of_rows[rows] = np.maximum.reduceat(K, Y.ends[:-1], axis=1)
            owner = np.searchsorted(X.ends, np.arange(rows.start, rows.stop), side="right") - 1
            sets, starts = np.unique(owner, return_index=True)
            best = np.maximum.reduceat(K, starts, axis=0)
            of_columns[sets] = np.maximum(of_columns[sets], best)
        values: Array = X.averaging() @ of_rows + of_columns @ Y.averaging().T
        return values
