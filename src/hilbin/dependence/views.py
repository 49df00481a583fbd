r"""One side of a dependence: rows under a kernel, as a centered Gram matrix or centered features.

What measures of dependence ask of a side is the diagonal and the norm of its centered Gram matrix;
of two sides, the product of both matrices. Features give all of them without a matrix of all pairs
of rows, in time that grows with the number of rows.

**Permutations.** With :math:`A = F \mathrm{diag}(f) F^\top` and :math:`B = G \mathrm{diag}(g)
G^\top`, the product of :math:`A` and a permuted :math:`B` is :math:`\sum_{ab} f_a g_b (F^\top P
G)_{ab}^2`. Eigenvalues of a smooth kernel fall so fast that few columns have all but rounding; many
permutations are then one product of matrices.
"""

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from hilbin._arrays import Array, check_rows, to_dense
from hilbin._core import core
from hilbin.kernels import Gaussian, Kernel, Linear
from hilbin.kernels.pairwise import fold_upper, unfold_upper
from hilbin.kernels.scaling import square

SYMMETRIC = 1e-8  # largest difference of K and its transpose, in units of the largest entry
FEW_FACTORS = 8  # columns of one view times those of the other, over rows, that beat all pairs
AT_A_TIME = 1 << 20  # values of permuted columns
CONSTANT = 1e-12  # trace of a centered matrix, in units of that of the matrix, that is rounding


class Upper(NamedTuple):
    """A symmetric matrix: its entries above the diagonal, row by row, and its diagonal."""

    pairs: Array
    diagonal: Array


@dataclass(frozen=True)
class View:
    """Rows under a kernel: centered features, or the entries of the centered Gram matrix."""

    features: Array | None
    entries: Upper | None = None

    def __len__(self) -> int:
        return len(self.diagonal)

    @cached_property
    def gram(self) -> Array:
        """The centered Gram matrix."""
        if self.entries is not None:
            return unfold_upper(*self.entries)
        assert self.features is not None
        return np.asarray(self.features @ self.features.T)

    @property
    def upper(self) -> Upper:
        """Half of the centered Gram matrix."""
        return self.entries or self._folded

    @cached_property
    def _folded(self) -> Upper:
        return Upper(fold_upper(self.gram), self.diagonal)

    @cached_property
    def diagonal(self) -> Array:
        """Squared distance of every row from the mean, in feature space."""
        if self.entries is not None:
            return self.entries.diagonal
        assert self.features is not None
        return np.einsum("ij,ij->i", self.features, self.features)

    @cached_property
    def factors(self) -> tuple[Array, Array]:
        """Columns ``F`` and their weights ``f``: the matrix is ``F diag(f) F^T``, but for rounding.

        Smooth kernels of few columns need few.
        """
        if self.features is not None:
            return self.features, np.ones(self.features.shape[1])
        values, vectors = np.linalg.eigh(self.gram)
        sizes = np.abs(values)
        kept = sizes > len(values) * np.finfo(float).eps * sizes.max(initial=0)
        return vectors[:, kept], values[kept]

    def product(self, other: "View", order: Array | None = None) -> float:
        """Return the sum of the products of the entries of both matrices.

        ``order`` are the rows of the other view that go with the rows of this one.
        """
        if self.features is not None and other.features is not None:
            rows = other.features if order is None else other.features[order]
            return float(np.sum((self.features.T @ rows) ** 2))
        if order is not None:
            return float(np.vdot(self.gram, other.gram[order][:, order]))
        (pairs, diagonal), (others, own) = self.upper, other.upper
        return float(2 * (pairs @ others) + diagonal @ own)

    def products(self, other: "View", orders: Array) -> Array:
        """Return the products for several orders, each a row, of the rows of the other view."""
        (F, f), (G, g) = self.factors, other.factors
        if F.shape[1] * G.shape[1] > FEW_FACTORS * len(F):
            return np.array([self.product(other, order) for order in orders])
        found = np.empty(len(orders))
        height = max(1, AT_A_TIME // max(1, G.size))
        for begin in range(0, len(orders), height):
            some = orders[begin : begin + height]
            stacked = G[some.T].reshape(len(F), -1)
            inner = (F.T @ stacked).reshape(f.size, len(some), g.size)
            found[begin : begin + height] = np.einsum("a,aob,b->o", f, inner**2, g)
        return found


def as_views(X: Any, Y: Any, kernel_x: Any, kernel_y: Any, *, fewest: int) -> tuple[View, View]:
    """Return both views of the same rows, of which there must be a few."""
    x, y = as_view(X, kernel_x, "x"), as_view(Y, kernel_y, "y")
    if len(x) != len(y):
        raise ValueError(f"X and Y must be views of the same rows: they have {len(x)} and {len(y)}")
    if len(x) < fewest:
        raise ValueError(f"X must have at least {fewest} rows, got {len(x)}")
    return x, y


def as_view(X: Any, kernel: Any, side: str) -> View:
    """Return rows under a kernel; ``side`` is "x" or "y", for messages.

    A map gives features, and so does the linear kernel if there are fewer columns than rows.
    """
    name = side.upper()
    if isinstance(kernel, str) and kernel == "precomputed":
        return of_gram(symmetric(X, name))
    rows = _as_rows(X, name)
    if kernel is None:
        return _of_upper(_default_kernel(check_rows(rows, name)))
    if not isinstance(kernel, Kernel):
        return _of_map(kernel, rows, side)
    rows = check_rows(rows, name, nonnegative=kernel._demand())
    if type(kernel) is Linear and rows.shape[1] < rows.shape[0]:
        return _of_features(to_dense(rows))
    return of_gram(square(kernel.resolve(rows, random_state=0).gram(rows), name))


def of_gram(K: Array) -> View:
    """Return the view of a Gram matrix; a constant one has nothing but zeros."""
    K = K.astype(np.float64, copy=False)
    return _of_upper(Upper(fold_upper(K), np.diag(K).copy()))


def _of_upper(upper: Upper) -> View:
    """Return the view of a Gram matrix that is centered in place."""
    trace = upper.diagonal.sum()
    core.center_upper(*upper)
    if upper.diagonal.sum() <= CONSTANT * trace:
        for part in upper:
            part[:] = 0
    return View(None, upper)


def symmetric(K: Any, name: str) -> Array:
    """Return a Gram matrix in float64; one that is not symmetric is refused."""
    K = square(K, name)
    difference = np.abs(K - K.T)
    if difference.max() > SYMMETRIC * np.abs(K).max():
        i, j = np.unravel_index(np.argmax(difference), K.shape)
        raise ValueError(
            f"{name} is not symmetric: {name}[{i}, {j}] = {K[i, j]}, but {name}[{j}, {i}] = "
            f"{K[j, i]}"
        )
    return K


def _of_map(feature_map: Any, rows: Any, side: str) -> View:
    if not hasattr(feature_map, "fit_transform") or isinstance(feature_map, type):
        raise ValueError(
            f"kernel_{side} must be a kernel of hilbin.kernels, a map of hilbin.maps, "
            f"'precomputed' or None, got {feature_map!r}"
        )
    return _of_features(to_dense(clone(feature_map).fit_transform(rows)))


def _of_features(Z: Array) -> View:
    Z = np.asarray(Z, np.float64)
    features = Z - Z.mean(axis=0)
    if np.vdot(features, features) <= CONSTANT * np.vdot(Z, Z):
        features = np.zeros_like(features)
    return View(features)


def _as_rows(X: Any, name: str) -> Any:
    """Return a vector of numbers as a column, and anything else as it is."""
    if np.ndim(X) != 1 or hasattr(X, "toarray"):
        return X
    return np.asarray(X).reshape(-1, 1)


def _default_kernel(rows: Any) -> Upper:
    """Return a Gaussian of median width; of mean width, if most rows are equal; or any."""
    n = rows.shape[0]
    for rule in ("median", "mean"):
        with suppress(ValueError):  # the distance is 0
            pairs = Gaussian(rule)._resolved_pairs(rows, 0)
            return Upper(pairs.astype(np.float64, copy=False), np.ones(n))
    return Upper(np.ones(n * (n - 1) // 2), np.ones(n))
