r"""Kernels of images that do not see transformations: shifts, mirrors, turns.

Rows are images of one shape, value by value. A transformation :math:`J` is a permutation of the
values (:mod:`hilbin.kernels.permutations`). Lampert, *Kernel Methods in Computer Vision*, section
3.2.3:

- integration (3.8): the average of :math:`k(Jx, J'y)` over all :math:`J, J'`. Positive definite for
  every set, since it is the inner product of averaged images; invariant if the set is a group;
- the best match (3.5) and its linear approximation, the tangent distance (3.6), as
  :math:`e^{-\gamma d}` with the distance made symmetric by the mean of both directions. (3.7) has
  the sum: its :math:`\gamma` is half of this one. A minimum of distances is not conditionally
  negative definite, so these two are not positive definite, and warn.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse as sp

from hilbin._arrays import Array, Matrix, row_sums, to_dense
from hilbin.kernels.additive import AdditiveKernel
from hilbin.kernels.bandwidth import Rule
from hilbin.kernels.base import Kernel, warn_not_psd
from hilbin.kernels.combine import Product, Sum
from hilbin.kernels.exponential import Exponential
from hilbin.kernels.gcs import GCS
from hilbin.kernels.linear import Linear, Polynomial
from hilbin.kernels.pairwise import pairwise_sum
from hilbin.kernels.radial import SQUARED, Gaussian, Laplace, PValue, RadialKernel
from hilbin.kernels.symmetric_kl import SymmetricKL
from hilbin.kernels.wrap import Normalized, Power, Scaled, WrapperKernel

# Kernels that do not care in which order both rows have their columns, if the inner ones do not.
ORDERLESS = {Linear, Polynomial, Gaussian, Laplace, PValue, SymmetricKL, GCS}
ORDERLESS |= {Scaled, Normalized, Power, Exponential, Sum, Product}


class PermutedKernel(Kernel):
    """The base class of kernels with a set of permutations, kept as tuples: kernels are values."""

    transforms: Any

    def _freeze(self) -> None:
        given = np.asarray(self.transforms)
        if given.ndim != 2 or given.dtype.kind not in "iu" or not given.size:
            raise ValueError(
                f"transforms of {type(self).__name__} must be a whole-number array of shape (g, d),"
                f" one permutation of the d columns in a row; got {given.dtype} of {given.shape}"
            )
        strange = np.flatnonzero((np.sort(given, axis=1) != np.arange(given.shape[1])).any(axis=1))
        if strange.size:
            raise ValueError(
                f"transforms[{strange[0]}] of {type(self).__name__} is not a permutation of "
                f"0, ..., {given.shape[1] - 1}"
            )
        rows = self.transforms if isinstance(self.transforms, tuple) else ()
        if not rows or not all(type(row) is tuple and type(row[0]) is int for row in rows):
            object.__setattr__(self, "transforms", tuple(map(tuple, given.tolist())))
        # else as made here: a clone must keep the very same object

    def _permutations(self, X: Matrix) -> Array:
        J = np.array(self.transforms)
        if X.shape[1] != J.shape[1]:
            raise ValueError(f"X has {X.shape[1]} columns, but transforms permute {J.shape[1]}")
        return J

    def __repr__(self) -> str:
        size = f"transforms=<{len(self.transforms)} of {len(self.transforms[0])} values>"
        others = {k: v for k, v in self.get_params(deep=False).items() if k != "transforms"}
        shown = [repr(v) if isinstance(v, Kernel) else f"{k}={v!r}" for k, v in others.items()]
        return f"{type(self).__name__}({', '.join([*shown, size])})"


@dataclass(frozen=True, repr=False)
class TransformIntegration(PermutedKernel, WrapperKernel):
    r"""Average over transformations, :math:`K(x, y) = \frac{1}{g^2} \sum_{J, J'} k(Jx, J'y)`.

    Positive definite if ``kernel`` is. If ``transforms`` is a group, :math:`K(Jx, y) = K(x, y)`
    exactly (Haasdonk and Burkhardt, 2007).

    The linear kernel averages rows, at the cost of ``g`` transformed rows. A kernel that does not
    care for the order of columns, as all of this library, needs one Gram matrix for every
    *relative* transformation :math:`J^{-1}J'`: ``g`` of them for a group. Others need
    :math:`g^2`. With an explicit map, :meth:`features` is linear again.

    Parameters
    ----------
    kernel : Kernel
    transforms : array-like of int, shape (g, d)
        Permutations of the columns, from :func:`shifts`, :func:`flips`, :func:`rotations90` or
        anywhere.

    Examples
    --------
    >>> from hilbin.kernels import Gaussian, TransformIntegration, flips
    >>> mirrored = TransformIntegration(Gaussian(), flips((1, 3)))
    >>> mirrored.gram([[1, 0, 0]], [[1, 0, 0], [0, 0, 1], [0, 1, 0]]).round(4)
    array([[0.5677, 0.5677, 0.1353]])
    """

    kernel: Kernel
    transforms: Any

    def __post_init__(self) -> None:
        self._freeze()

    def features(self, X: Any, feature_map: Any) -> Any:
        """Average the features of a map over the transformations.

        Their inner products approximate this kernel.

        Parameters
        ----------
        X : array-like or CSR of shape (n, d)
        feature_map : transformer
            A map of ``kernel``, fitted.

        Returns
        -------
        Z : ndarray or CSR of shape (n, n_features)
        """
        X = X if sp.issparse(X) else np.asarray(X)
        J = self._permutations(X)
        return sum(feature_map.transform(_moved(X, j)) for j in J) / len(J)

    def _gram(self, X: Matrix, Y: Matrix | None, n_jobs: int | None) -> Any:
        J = self._permutations(X)
        if isinstance(self.kernel, Linear):
            y = None if Y is None else _averaged(Y, J)
            return self.kernel._gram(_averaged(X, J), y, n_jobs)
        y = X if Y is None else Y
        total: Any = 0
        for left, right, weight in _pairs(J, self.kernel):
            K = self.kernel._gram(_moved(X, left), _moved(y, right), n_jobs)
            total = total + weight * K.astype(np.float64)
        if Y is None:
            total = (total + total.T) / 2
        return total.astype(X.dtype)

    def _diag(self, X: Matrix) -> Array:
        J = self._permutations(X)
        if isinstance(self.kernel, Linear):
            return row_sums(_averaged(X, J), np.square)
        return np.array([self._own_value(X[i : i + 1], J) for i in range(X.shape[0])])

    def _own_value(self, x: Matrix, J: Array) -> float:
        versions = to_dense(x)[0][J]
        return float(self.kernel._gram(versions, None, None).astype(np.float64).mean())


@dataclass(frozen=True, repr=False)
class MatchDistance(PermutedKernel, RadialKernel):
    r"""Distance of the best match, :math:`K(x, y) = e^{-\frac{\gamma}{2} (d(x, y) + d(y, x))}` with
    :math:`d(x, y) = \min_J \|x - Jy\|^2`.

    Not positive definite; :class:`TransformIntegration` is. Invariant if ``transforms`` is a group.

    Parameters
    ----------
    transforms : array-like of int, shape (g, d)
        Permutations of the columns, the identity among them.
    gamma : float > 0, or "median", "mean", Quantile; default 1
        A rule takes :math:`1 / \gamma` from the distances.

    Examples
    --------
    >>> import warnings
    >>> from hilbin.kernels import MatchDistance, NotPositiveDefiniteWarning, flips
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", NotPositiveDefiniteWarning)
    ...     mirrored = MatchDistance(flips((1, 3)))
    >>> mirrored.gram([[1, 0, 0]], [[1, 0, 0], [0, 0, 1], [0, 1, 0]]).round(4)
    array([[1.    , 1.    , 0.1353]])
    """

    transforms: Any
    gamma: float | Rule = 1.0
    psd = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._freeze()
        if tuple(range(len(self.transforms[0]))) not in self.transforms:
            raise ValueError("transforms of MatchDistance must hold the identity 0, 1, ...")
        warn_not_psd(self, "a minimum of distances fails Schoenberg's condition")

    def _distances(self, X: Matrix, Y: Matrix | None, n_jobs: int | None) -> Array:
        J = self._permutations(X)
        y = X if Y is None else Y
        there = reduce(np.minimum, (pairwise_sum(SQUARED, X, _moved(y, j), n_jobs) for j in J))
        if Y is None:
            back = there.T
        else:
            back = reduce(np.minimum, (pairwise_sum(SQUARED, _moved(X, j), y, n_jobs) for j in J))
        return np.maximum((there + back) / 2, 0)


def _moved(X: Matrix, permutation: Array | None) -> Matrix:
    """Permute the columns of ``X``; None leaves them."""
    if permutation is None:
        return X
    moved = X[:, permutation]
    if sp.issparse(moved):
        moved.sum_duplicates()  # sorts the columns of a row, as the compiled core needs them
    return moved


def _averaged(X: Matrix, J: Array) -> Matrix:
    """Return the mean of all permuted versions of every row, by a product with a sparse matrix."""
    g, d = J.shape
    places = (J.ravel(), np.tile(np.arange(d), g))
    average = sp.csr_array((np.full(J.size, 1 / g), places), shape=(d, d)).astype(X.dtype)
    rows = X @ average
    if sp.issparse(rows):
        rows.sum_duplicates()
    return rows


def _pairs(J: Array, kernel: Kernel) -> Iterator[tuple[Array | None, Array, float]]:
    """Yield permutations of x and of y, and the weight of the pair in the average."""
    g = len(J)
    if not _orderless(kernel):
        yield from ((left, right, 1 / g**2) for left in J for right in J)
        return
    counts: Counter[bytes] = Counter()
    for inverse in np.argsort(J, axis=1):  # k(Jx, J'y) = k(x, J'J^-1 y): the columns of both moved
        counts.update(relative.tobytes() for relative in J[:, inverse])
    for relative, count in counts.items():
        yield None, np.frombuffer(relative, J.dtype), count / g**2


def _orderless(kernel: Kernel) -> bool:
    inner = [v for v in kernel.get_params(deep=False).values() if isinstance(v, Kernel)]
    known = type(kernel) in ORDERLESS or isinstance(kernel, AdditiveKernel)
    return known and all(map(_orderless, inner))
