r"""Sparse features of additive kernels: every value between its two neighboring nodes.

Nodes :math:`z_1 < \dots < z_D` on the line; a value :math:`a = z_i \le x < b = z_{i+1}` is
projected on the span of its two neighbors in feature space,

.. math:: \Phi_a = \frac{k_{bb} k_{ax} - k_{ab} k_{bx}}{k_{aa} k_{bb} - k_{ab}^2}, \qquad
          \Phi_b = \frac{k_{aa} k_{bx} - k_{ab} k_{ax}}{k_{aa} k_{bb} - k_{ab}^2},

and :math:`k(x, y) \approx \Phi(x)^T K_{ZZ} \Phi(y)`. For the intersection kernel this is linear
interpolation. More nodes make it more accurate and no denser (Vedaldi and Zisserman, *Sparse Kernel
Approximations for Efficient Classification and Detection*).
"""

from dataclasses import KW_ONLY, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from hilbin._arrays import Array, Matrix, to_dense
from hilbin._core import core
from hilbin._parameters import estimator, require_choice, require_whole
from hilbin._state import require, require_attributes, stored
from hilbin.kernels import AdditiveKernel
from hilbin.maps.base import MapError, ValueMap, measured, over_domain, root_mean_square
from hilbin.maps.density import GAPS, Density, density
from hilbin.maps.expansion import VALUES_PER_TASK, Fill, expand, require_in_range
from hilbin.maps.nodes import NodeInner, TwoNodes, place
from hilbin.parallel import blas_threads, ranges, run

SPACINGS = ("auto", "log", "uniform", "quantile")


@estimator
class SparseMap(ValueMap):
    r"""Two features per value out of ``n_nodes``, with an inner product of their own, ``inner_``.

    Column :math:`d` becomes a group of ``n_nodes`` columns, in which a value that is not 0 stores
    exactly two neighboring entries (one of them 0 where the value is a node or outside the nodes).
    :math:`K(x, y) \approx \Phi(x)^T` ``inner_`` :math:`\Phi(y)`.

    Parameters
    ----------
    n_nodes : int, default 20
        Nodes per column, at least 2; the cost of ``transform`` does not depend on it.
    spacing : {"auto", "log", "uniform", "quantile"} or array of floats, default "auto"
        Where the nodes are: at equal ratios, equal steps, equal shares of the values, or as given
        (ascending; ``n_nodes`` is then ignored). ``"auto"`` takes the one of least expected error,
        one value in 10,000 from anywhere in the domain and the others of the data. The last node is
        the largest value.
    orthonormal : bool, default False
        If True the features are those whose ordinary inner product approximates the kernel, for
        ordinary linear learners: ``Phi F`` with ``F F^T`` the Gram matrix of the nodes, as many for
        every value as its rank.
    domain : (low, high), optional
        Smallest and largest value to serve; by default those that count in the data. A value above
        is projected on the last node alone, one below on the first.

    Attributes
    ----------
    error_ : MapError
        The error: expected on the data, worst for a pair of values of ``domain_``, whether the data
        has them or not. The worst case is guaranteed for the intersection kernel.
    nodes_ : ndarray
        The nodes, ascending.
    spacing_ : str
        The spacing in use.
    inner_ : NodeInner
        The Gram matrix of the nodes for all columns, a SciPy ``LinearOperator``.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.kernels import Intersection
    >>> from hilbin.maps import SparseMap
    >>> X = np.array([[0.2, 0.0], [0.55, 0.45]])
    >>> feature_map = SparseMap(Intersection(), spacing=[0.25, 0.5, 0.75, 1.0]).fit(X)
    >>> Z = feature_map.transform(X)
    >>> Z.toarray().round(2)
    array([[0.8, 0. , 0. , 0. , 0. , 0. , 0. , 0. ],
           [0. , 0.8, 0.2, 0. , 0.2, 0.8, 0. , 0. ]])
    >>> (Z @ (feature_map.inner_ @ Z.T.toarray())).round(2)
    array([[0.16, 0.2 ],
           [0.2 , 0.92]])
    """

    n_nodes: int = 20
    spacing: Any = "auto"
    _: KW_ONLY
    orthonormal: bool = False

    def _fit(self, rows: Matrix) -> None:
        values = density(self._additive, rows, self.domain)
        if self._additive.nonnegative:
            require_in_range(values.high)
        candidates = self._candidates(values)
        with blas_threads(1):  # on small matrices more threads mostly wait
            found = [self._made(values.finer, nodes, name) for name, nodes in candidates]
            _, self._two, self.spacing_ = min(found, key=lambda made: made[0])
            error = self._measured_error(values)
        self.nodes_ = self._two.nodes
        self.inner_ = NodeInner(self._additive, self.nodes_, rows.shape[1])
        if self.inner_.structure == "cumulative" and self.nodes_[-1] >= values.high:
            error = _interpolation_error(error, self._additive, self.nodes_, values.low)
        self.error_ = error
        self.domain_ = (values.low, values.high)
        if self.orthonormal:
            self._expansion = OrthonormalNodes(self._two, self.inner_.root())

    def transform(self, X: object) -> Any:
        """Return the features of ``X`` as CSR; with ``orthonormal``, an array for an array."""
        check_is_fitted(self)
        return self._features(*self._rows_and_least(X))

    def _features(self, rows: Matrix, least: float = 0.0) -> Any:
        keeps_zero = self._additive.keeps_zero
        if self.orthonormal:
            return expand(rows, self._expansion, keeps_zero, self.n_jobs)
        if not keeps_zero:
            rows = to_dense(rows)
        return self._entries(rows, keeps_zero, _counts(rows, keeps_zero and least <= 0))

    @property
    def _features_per_value(self) -> int:
        return self._expansion.n_components if self.orthonormal else self.nodes_.size

    def _entries(self, X: Matrix, keeps_zero: bool, counts: Array) -> Any:
        """Return the coordinates on nodes as CSR; ``counts`` says how many values a row has."""
        sparse, (n, d) = sp.issparse(X), X.shape
        if d * self.nodes_.size > np.iinfo(np.int32).max:
            raise ValueError(f"{d} columns of {self.nodes_.size} nodes each are too many")
        indptr = np.zeros(n + 1, np.int64)
        np.cumsum(2 * counts, out=indptr[1:])
        indices, weights = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], X.dtype)
        values = X.data if sparse else np.ascontiguousarray(X).ravel()
        columns = X.indices.astype(np.int32, copy=False) if sparse else np.empty(0, np.int32)
        pieces = self._two.arguments(X.dtype)

        def task(begin: int, end: int) -> None:
            core.two_nodes(
                *pieces, values, columns, d, keeps_zero, indptr, indices, weights, begin, end
            )

        if indptr[-1]:
            run(task, ranges(n, max(1, VALUES_PER_TASK // d)), self.n_jobs)
        small = indptr[-1] <= np.iinfo(np.int32).max
        entries = (weights, indices, indptr.astype(np.int32) if small else indptr)
        kind = type(X) if sparse else sp.csr_array
        Z = kind(entries, shape=(n, d * self.nodes_.size))
        Z.has_sorted_indices = Z.has_canonical_format = True
        return Z

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the parts of a loaded map do not fit together."""
        found = require_attributes(
            self, nodes_="float64[n]", _two=TwoNodes, inner_=NodeInner, n_features_in_="int"
        )
        if found:
            same = self._two.nodes.size == self.inner_.nodes.size == found["n"]
            require(same, "nodes_ are not those of the features")
            columns = self.inner_.n_columns == self._columns.size
            require(columns, "n_features_in_ is not that of inner_")
            made = not self.orthonormal or isinstance(
                vars(self).get("_expansion"), OrthonormalNodes
            )
            require(made, "_expansion is missing")

    def _check_parameters(self) -> None:
        if not isinstance(self._additive, AdditiveKernel):
            raise TypeError(
                f"SparseMap takes an additive kernel, got {self.kernel!r}; SparseProjectionMap "
                "takes any kernel"
            )
        self._check_domain()
        if not isinstance(self.spacing, str):
            return
        require_choice("spacing", self.spacing, SPACINGS)
        require_whole("n_nodes", self.n_nodes, 2)
        if self.spacing == "log" and not self._additive.nonnegative:
            raise ValueError(f'spacing="log" is for values > 0, and {self.kernel!r} takes any')

    def _candidates(self, values: Density) -> list[tuple[str, Array]]:
        """Return the nodes of every spacing that is to be tried."""
        if not isinstance(self.spacing, str):
            nodes = np.asarray(self.spacing, np.float64)
            positive = not self._additive.nonnegative or (nodes > 0).all()
            if nodes.ndim != 1 or nodes.size < 2 or not (np.diff(nodes) > 0).all() or not positive:
                raise ValueError(
                    f"spacing must be two or more ascending numbers > 0, got {self.spacing!r}"
                )
            return [("given", nodes)]
        names = list(SPACINGS[1:]) if self.spacing == "auto" else [self.spacing]
        if not self._additive.nonnegative and "log" in names:
            names.remove("log")
        return [(name, nodes) for name in names for nodes in place(values, self.n_nodes, name)]

    def _made(self, values: Density, nodes: Array, name: str) -> tuple[float, TwoNodes, str]:
        """Return the expected error of nodes, coordinates on them, and the name of the spacing."""
        two, all_values = (
            TwoNodes(self._additive, nodes, values.low, values.high),
            values.everywhere,
        )
        K, mass = all_values.kernel_matrix(), all_values.with_floor(GAPS)
        return root_mean_square(K - two.kernel_matrix(all_values.x), mass), two, name

    def _measured_error(self, values: Density) -> MapError:
        finer, two = values.finer, self._two
        K = two.kernel_matrix(finer.x)
        error = measured(finer.kernel_matrix(), K, finer.mass, per="value")
        return over_domain(error, values, lambda x, pairs: two.kernel_matrix(x, pairs=pairs))


def _counts(X: Matrix, has_zeros: bool) -> Array:
    """Return how many values of every row make entries."""
    if sp.issparse(X):
        return np.diff(X.indptr)
    if has_zeros:
        return np.count_nonzero(X, axis=1)
    return np.full(X.shape[0], X.shape[1])


@stored
class OrthonormalNodes:
    """The features ``Phi(x)^T F``."""

    def __init__(self, two: TwoNodes, factor: Array) -> None:
        self.two, self.factor = two, factor

    def _check_state(self) -> None:
        """Raise ``ValueError`` if a loaded factor does not fit its nodes."""
        require(isinstance(vars(self).get("two"), TwoNodes), "two is missing")
        require_attributes(self, factor=f"float64[{self.two.nodes.size}, r]")
        require("factor" in vars(self), "factor is missing")

    @property
    def n_components(self) -> int:
        """The number of features of a value."""
        return int(self.factor.shape[1])

    def prepare(self, dtype: npt.DTypeLike) -> Fill:
        """Return the fill function; see :class:`hilbin.maps.expansion.Expansion`."""
        factor, arguments = self.factor.astype(dtype), self.two.arguments(dtype)

        def fill(x: Array, out: Array, begin: int, end: int) -> None:
            count = end - begin
            node, pair = np.empty(2 * count, np.int32), np.empty(2 * count, dtype)
            column, indptr = np.zeros(count, np.int32), np.array([0, 2 * count])
            core.two_nodes(*arguments, x[begin:end], column, 1, False, indptr, node, pair, 0, 1)
            features = out[begin * self.n_components : end * self.n_components].reshape(count, -1)
            np.multiply(pair[::2, None], factor[node[::2]], out=features)
            features += pair[1::2, None] * factor[node[1::2]]

        return fill


def _interpolation_error(
    error: MapError, kernel: AdditiveKernel, nodes: Array, low: float
) -> MapError:
    """Return the error of ``min(g(x), g(y))`` interpolated.

    It is largest for x = y, ``(g - a)(b - g) / (b - a)``.
    """
    at = np.append(0.0, float(kernel.profile(np.zeros(1))[0]) * kernel.weight(nodes) ** 2)
    root = np.sqrt(at[1:])
    relative = (root[1:] - root[:-1]) / (root[1:] + root[:-1])
    below = float(kernel.profile(np.zeros(1))[0] * kernel.weight(np.array([low]))[0] ** 2)
    worst_relative = max(float(relative.max()), 1 - below / at[1])
    worst = float(np.diff(at).max()) / 4
    return replace(error, worst=worst, worst_relative=float(worst_relative), kind="guaranteed")
