r"""The geometric compactly supported kernel.

The volume of the intersection of two balls of radius :math:`r` in :math:`\mathbb R^n`, divided by
the volume of one: with :math:`u = \|x - y\| / (2r)`

.. math:: \kappa_n(u) = I_{1 - u^2}\left(\tfrac{n + 1}{2}, \tfrac12\right),
          \qquad \kappa_n(u \ge 1) = 0,

:math:`I` the regularized incomplete beta function (Boughorbel, Tarel, Fleuret and Boujemaa, *The
GCS Kernel for SVM-Based Image Recognition*, 2005; the paper's recursion for even :math:`n` lacks a
factor 1/2 and is not positive definite). Most entries of a Gram matrix are exactly 0, so it is CSR:
a matrix product in float32 finds the pairs that may be close, and only their distances are computed
exactly, by subtraction.
"""

import functools
import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import beta, betainc, betaincc, betaincinv

from hilbin._arrays import Array, Matrix, apply, row_sums
from hilbin._core import core
from hilbin.kernels.bandwidth import Rule, Sparsity, is_rule, sample, statistic
from hilbin.kernels.base import Kernel, require_positive
from hilbin.kernels.linear import inner_products
from hilbin.kernels.pairwise import csr_structure, pairwise_sum, upper_sums
from hilbin.kernels.radial import SQUARED
from hilbin.parallel import ranges, stream

CELLS = 8192  # cubic: absolute error below 1e-14 for n = 64, 1e-11 for n = 4096
MOST_DIAMETER = 1e150
BAND_ENTRIES = 1 << 21
STEEPEST = 16  # slope of a factor of the profile that cells still resolve
SAMPLE = 100  # rows counted to guess the size of the matrix


def geometric_profile(u: Array, dim: float) -> Array:
    r"""Compute :math:`\kappa_n(u)`, to a relative 1e-12.

    Parameters
    ----------
    u : array of numbers >= 0
    dim : float >= 1
        :math:`n`.

    Examples
    --------
    >>> from hilbin.kernels import geometric_profile
    >>> geometric_profile([0.0, 0.5, 1.0], 3)
    array([1.    , 0.3125, 0.    ])
    """
    u = np.minimum(np.asarray(u, dtype=np.float64), 1)
    a = (dim + 1) / 2
    # 1 - u^2 rounds where u is small, so the complement is taken there.
    return np.where(u < 0.5, betaincc(0.5, a, u * u), betainc(a, 0.5, (1 - u) * (1 + u)))


@dataclass(frozen=True, repr=False)
class GCS(Kernel):
    r"""Geometric compactly supported kernel, :math:`K(x, y) = \kappa_n(\|x - y\| / (2r))`.

    The share of the volume that two balls of radius :math:`r` around ``x`` and ``y`` have in
    common, :math:`\kappa_n(u) = I_{1 - u^2}(\tfrac{n + 1}{2}, \tfrac12)`. Exactly 0 from the
    distance :math:`2r` on: Gram matrices are CSR.

    The kernel falls off over a length of about :math:`2r / \sqrt n`, well inside its support when
    there are many columns: a radius that makes most entries 0 then makes the others tiny, and the
    matrix close to the identity, of which ``gram`` warns. Sparse matrices that still learn need few
    dimensions.

    Parameters
    ----------
    radius : float > 0, or "median", "mean", Quantile, Sparsity
        :math:`r`. A rule takes the distance at which the kernel is :math:`1 / e`, so that
        :math:`r` grows with :math:`\sqrt n`; in many dimensions no entry is then 0.
        ``Sparsity(0.9)`` sets the diameter :math:`2r` such that nine entries in ten are 0.
    dim : float >= 1, optional
        :math:`n`; the number of columns by default. The kernel is positive definite for rows in at
        most :math:`n` dimensions, so fewer than the columns is an error, except one fewer for rows
        that all have the same sum.

    Examples
    --------
    >>> from hilbin.kernels import GCS
    >>> K = GCS(radius=1.0, dim=1).gram([[0.0], [1.0], [5.0]])
    >>> K.nnz
    5
    >>> K.toarray()
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0. ],
           [0. , 0. , 1. ]])
    """

    radius: float | Rule | Sparsity
    dim: float | None = None
    compact = True

    def __post_init__(self) -> None:
        if not self._has_rule:
            require_positive(self, "radius")
        if self.dim is None:
            return
        if not self.dim >= 1:
            raise ValueError(f"dim of GCS must be >= 1, got {self.dim!r}")
        if self.dim != int(self.dim):
            warnings.warn(
                f"GCS is proven positive definite for whole dimensions only, and dim is {self.dim}",
                UserWarning,
                stacklevel=3,
            )

    def _gram(self, X: Matrix, Y: Matrix | None, n_jobs: int | None) -> sp.csr_array:
        return self._filled(X, Y, n_jobs, _profile_cells(self._dimension(X, Y)))

    def _gram_times(self, other: Kernel, X: Matrix, Y: Matrix | None, n_jobs: int | None) -> Any:
        """Return the matrix of the product with a kernel of the same distance, or None.

        Profiles are multiplied instead of matrices: it costs no more than this kernel alone.
        """
        at_distances = getattr(other, "_of_euclidean", None)
        nodes = _nodes()
        found = None if at_distances is None else at_distances(self._diameter * nodes)
        if found is None:
            return None
        g, dg = found[0], self._diameter * found[1]
        if np.abs(dg).max() > STEEPEST:
            return None
        f, df = _profile_and_slope(nodes, self._dimension(X, Y))
        return self._filled(X, Y, n_jobs, _cubics(f * g, df * g + f * dg))

    @property
    def _diameter(self) -> float:
        return 2 * float(self.radius)  # type: ignore[arg-type]

    def _filled(
        self, X: Matrix, Y: Matrix | None, n_jobs: int | None, cubics: Array
    ) -> sp.csr_array:
        """Return the matrix of the kernel whose profile is tabulated in ``cubics``."""
        if not self._diameter < MOST_DIAMETER:
            raise ValueError(f"radius of GCS is too large: the square of {self.radius!r} overflows")
        support = self._diameter**2
        Y = X if Y is None else Y
        cross, x_norms, y_norms, slack = _products(X, Y)
        if sp.issparse(X):
            rows = [X.shape[1], X.data, *csr_structure(X), Y.data, *csr_structure(Y)]
            fill = core.fill_csr
        else:
            rows, fill = [np.ascontiguousarray(X), np.ascontiguousarray(Y)], core.fill_dense

        def band(begin: int, end: int) -> tuple[Array, Array, Array]:
            near = (cross(begin, end), x_norms[begin:end], y_norms, support, slack)
            room = (end - begin) * Y.shape[0]
            indices, values = np.empty(room, np.int32), np.empty(room, X.dtype)
            counts = np.empty(end - begin, np.int64)
            filled = fill(*near, cubics, *rows, begin, indices, values, counts)
            return indices[:filled], values[:filled], counts

        height = max(1, BAND_ENTRIES // max(1, Y.shape[0]))
        bands = stream(band, ranges(X.shape[0], height), n_jobs, calls_blas=True)
        return _stack(bands, (X.shape[0], Y.shape[0]), X.dtype, _expected_entries(X, Y, support))

    def _diag(self, X: Matrix) -> Array:
        self._dimension(X, None)
        return np.ones(X.shape[0])

    @property
    def _has_rule(self) -> bool:
        return is_rule(self.radius) or isinstance(self.radius, Sparsity)

    def _resolve(self, X: Matrix, random_state: Any) -> Self:
        if not self._has_rule:
            return self
        D = np.sqrt(np.maximum(upper_sums(SQUARED, sample(X, random_state), None), 0))
        u = 1.0  # the distance over the diameter
        if is_rule(self.radius):
            u = float(np.sqrt(betaincinv(0.5, (self._dimension(X, None) + 1) / 2, 1 - np.exp(-1))))
        return self.replace(radius=statistic(self.radius, D, "radius") / (2 * u))  # type: ignore[arg-type]

    def _dimension(self, X: Matrix, Y: Matrix | None) -> float:
        """Return ``n``, or raise if rows have more dimensions."""
        columns = X.shape[1]
        if self.dim is None:
            return float(columns)
        if self.dim >= columns:
            return float(self.dim)
        if self.dim >= columns - 1:
            sums = np.concatenate([row_sums(Z, lambda x: x) for Z in (X, Y) if Z is not None])
            if np.ptp(sums) <= 1e-5 * np.max(np.abs(sums)):
                return float(self.dim)
        raise ValueError(
            f"dim={self.dim} of GCS is too small for {columns} columns: the kernel is positive "
            "definite in at most dim dimensions. Leave dim out, or give "
            f"dim={columns - 1} for rows that all have the same sum"
        )


def _products(X: Matrix, Y: Matrix) -> tuple[Any, Array, Array, float]:
    """Return inner products by bands and squared norms in float32, and a bound of their rounding.

    Dense rows are centered first, which changes no distance and makes the norms, and with them the
    rounding, small.
    """
    center = 0 if sp.issparse(X) else X.mean(axis=0, dtype=np.float64)

    def cross(begin: int, end: int) -> Array:
        with np.errstate(all="ignore"):
            return np.ascontiguousarray(inner_products(x[begin:end], y, None))

    # What overflows float32 counts as close, and the exact distances decide.
    with np.errstate(all="ignore"):
        x = apply(X, lambda v: v - center).astype(np.float32)
        y = x if Y is X else apply(Y, lambda v: v - center).astype(np.float32)
        norms = [row_sums(Z, np.square).astype(np.float32) for Z in (x, y)]
    return cross, *norms, 2 * (X.shape[1] + 16) * float(np.finfo(np.float32).eps)


@functools.lru_cache(maxsize=8)
def _profile_cells(dim: float) -> Array:
    return _cubics(*_profile_and_slope(_nodes(), dim))


def _nodes() -> Array:
    return np.linspace(0, 1, CELLS + 1)


def _profile_and_slope(u: Array, dim: float) -> tuple[Array, Array]:
    with np.errstate(under="ignore"):
        slope = -2 / beta((dim + 1) / 2, 0.5) * ((1 - u) * (1 + u)) ** ((dim - 1) / 2)
    return geometric_profile(u, dim), slope


def _cubics(f: Array, df: Array) -> Array:
    """Return cubic Hermite pieces of a profile: four coefficients in ``u - start`` per cell."""
    h = 1 / CELLS
    step, d0, d1 = (f[1:] - f[:-1]) / h, df[:-1], df[1:]
    pieces = np.stack([f[:-1], d0, (3 * step - 2 * d0 - d1) / h, (d0 + d1 - 2 * step) / h**2], 1)
    pieces.setflags(write=False)
    return pieces.ravel()


def _expected_entries(X: Matrix, Y: Matrix, support: float) -> int:
    """Estimate the number of entries closer than the support from a few rows."""
    few = X[:: max(1, X.shape[0] // SAMPLE)]
    near = np.count_nonzero(pairwise_sum(SQUARED, few, Y, None) < support)
    return int(near / few.shape[0] * X.shape[0])


def _stack(bands: Any, shape: tuple[int, int], dtype: Any, expected: int) -> sp.csr_array:
    """Stack bands of CSR rows, written once: pages that are not yet written take no memory."""
    indptr = np.zeros(shape[0] + 1, dtype=np.int64)
    indices, values = (np.empty(int(1.1 * expected), dtype=d) for d in (np.int32, dtype))
    row = used = 0
    for band_indices, band_values, counts in bands:
        need = used + band_indices.size
        if need > indices.size:
            for array in (indices, values):
                array.resize(int(1.2 * need), refcheck=False)
        indices[used:need], values[used:need] = band_indices, band_values
        indptr[row + 1 : row + 1 + counts.size] = used + np.cumsum(counts)
        row, used = row + counts.size, need
    for array in (indices, values):
        array.resize(used, refcheck=False)
    if used < np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    return sp.csr_array((values, indices, indptr), shape=shape)
