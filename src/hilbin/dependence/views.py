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
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import pdist, squareform
from sklearn.base import clone

from hilbin._arrays import Array, check_rows, to_dense
from hilbin.kernels import Gaussian, Kernel, Linear
from hilbin.kernels.bandwidth import SAMPLE_ROWS, Rule, of_pairs, upper
from hilbin.kernels.scaling import centered, square

SYMMETRIC = 1e-8  # largest difference of K and its transpose, in units of the largest entry
FEW_FACTORS = 8  # columns of one view times those of the other, over rows, that beat all pairs
AT_A_TIME = 1 << 20  # values of permuted columns
FEW_COLUMNS = 4  # for which SciPy's distances are as fast as ours, and there is no other half
CONSTANT = 1e-12  # trace of a centered matrix, in units of that of the matrix, that is rounding


@dataclass(frozen=True)
class View:
    """Rows under a kernel; ``features`` are centered, and None where only the matrix is known."""

    features: Array | None
    matrix: Array | None = None

    def __len__(self) -> int:
        return len(self.diagonal)

    @cached_property
    def gram(self) -> Array:
        """The centered Gram matrix."""
        if self.matrix is not None:
            return self.matrix
        assert self.features is not None
        return np.asarray(self.features @ self.features.T)

    @cached_property
    def diagonal(self) -> Array:
        """Squared distance of every row from the mean, in feature space."""
        if self.features is not None:
            return np.einsum("ij,ij->i", self.features, self.features)
        return np.diag(self.gram).copy()

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
        matrix = other.gram if order is None else other.gram[order][:, order]
        return float(np.vdot(self.gram, matrix))

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


@dataclass(frozen=True)
class HalfView(View):
    r"""Rows under a kernel that is 1 on the diagonal, by its values for all pairs of rows.

    With :math:`r` the sums of the rows of :math:`K`, and :math:`s` their sum, the centered matrix
    has the diagonal :math:`1 - 2 r_i / n + s / n^2`, and the product of two is :math:`\sum_{ij}
    K_{ij} L_{ij} - \frac{2}{n} r^\top r' + s s' / n^2`: half of each matrix is enough. This
    cancels a few digits, as a Gaussian of median width is far from constant.
    """

    half: Array | None = None

    @cached_property
    def square(self) -> Array:
        """The matrix, not centered."""
        found: Array = squareform(self.half, checks=False)
        np.fill_diagonal(found, 1)
        return found

    @cached_property
    def sums(self) -> Array:
        """Sums of the rows of the matrix."""
        return np.ones(len(self.square)) @ self.square

    @cached_property
    def gram(self) -> Array:
        """The centered Gram matrix."""
        matrix = of_gram(self.square).matrix
        assert matrix is not None
        return matrix

    @cached_property
    def diagonal(self) -> Array:
        """Squared distance of every row from the mean, in feature space."""
        n = len(self.sums)
        return 1 - (2 * self.sums - self.sums.mean()) / n

    def product(self, other: View, order: Array | None = None) -> float:
        """Return the sum of the products of the entries of both matrices."""
        if order is not None or not isinstance(other, HalfView):
            return super().product(other, order)
        n, r, q = len(self), self.sums, other.sums
        assert self.half is not None
        assert other.half is not None
        entries = n + 2 * float(self.half @ other.half)
        return entries - float(2 * (r @ q) / n - r.mean() * q.mean())


def as_views(X: Any, Y: Any, kernel_x: Any, kernel_y: Any, *, fewest: int) -> tuple[View, View]:
    """Return both views of the same rows, of which there must be a few."""
    x, y = as_view(X, kernel_x, "x"), as_view(Y, kernel_y, "y")
    if len(x) != len(y):
        raise ValueError(f"X and Y must be views of the same rows: they have {len(x)} and {len(y)}")
    if len(x) < fewest:
        raise ValueError(f"X has {len(x)} rows, but at least {fewest} are needed")
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
        return _by_default(check_rows(rows, name))
    if not isinstance(kernel, Kernel):
        return _of_map(kernel, rows, side)
    rows = check_rows(rows, name, nonnegative=kernel._demand())
    if type(kernel) is Linear and rows.shape[1] < rows.shape[0]:
        return _of_features(to_dense(rows))
    return of_gram(square(kernel.resolve(rows, random_state=0).gram(rows), name))


def of_gram(K: Array) -> View:
    """Return the view of a Gram matrix; a constant one has nothing but zeros."""
    A = centered(K)
    if np.trace(A) <= CONSTANT * np.trace(K):
        A = np.zeros_like(A)
    return View(None, A)


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


def _by_default(rows: Any) -> View:
    """Return a Gaussian of median width; of mean width, if most rows are equal; or any."""
    rules: tuple[Rule, ...] = ("median", "mean")
    pairs = _squared_distances(rows) if 1 < rows.shape[0] <= SAMPLE_ROWS else None
    for rule in rules:
        with suppress(ValueError):  # the distance is 0
            if pairs is not None:
                gamma = 1 / of_pairs(rule, pairs, "gamma")
                return HalfView(None, None, np.exp(np.multiply(pairs, -gamma, out=pairs)))
            kernel = Gaussian(rule).resolve(rows, random_state=0)
            return of_gram(square(kernel.gram(rows), "the Gram matrix"))
    return View(None, np.zeros((rows.shape[0], rows.shape[0])))


def _squared_distances(rows: Any) -> Array:
    """Return the squared distances of all pairs of rows."""
    if sp.issparse(rows) or rows.shape[1] > FEW_COLUMNS:
        return upper(Gaussian()._distances(rows, None, None))
    found: Array = pdist(rows, "sqeuclidean")
    return found
