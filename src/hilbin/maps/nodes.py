r"""Nodes on the line: where they are, values as combinations of two of them, and their Gram matrix.

A value between two nodes has two coordinates :math:`\Phi(x)`, which are cubics on cells as in
:mod:`hilbin.maps.expansion`, and :math:`k(x, y) \approx \Phi(x)^T K_{ZZ} \Phi(y)`. The product
with :math:`K_{ZZ}`, the same matrix for every column, uses what is known of it:
:math:`\min(g_i, g_j)` is two cumulative sums; nodes at equal steps of the coordinate give a
Toeplitz matrix between two diagonal ones; chi-squared is of low rank to rounding, by its series;
small matrices are multiplied as they are (Vedaldi and Zisserman, *Sparse Kernel Approximations for
Efficient Classification and Detection*).
"""

from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy.linalg import matmul_toeplitz
from scipy.sparse.linalg import LinearOperator

from hilbin._arrays import Array
from hilbin._state import require, require_attributes, stored
from hilbin.kernels import AdditiveKernel, Chi2
from hilbin.maps.density import Density, one_dimensional
from hilbin.maps.expansion import Cells, cubics, make_cells
from hilbin.maps.series import terms, zolotarev

SMALL = 128  # nodes up to which the whole matrix is as fast as anything
LARGE = 2000  # nodes from which the Fourier transform is faster
STARTS = np.linspace(0, 0.6, 7)  # of log spacing, as shares of the range of the coordinate

Structure = Literal["cumulative", "toeplitz", "low rank", "dense"]


def place(values: Density, count: int, spacing: str) -> list[Array]:
    """Return candidates for ``count`` nodes up to the largest value; fewer for few values."""
    low, high = values.low, values.high
    if low == high:
        return [np.array([high / 2, high] if high > 0 else [high - 1.0, high])]
    if spacing == "log":  # by logarithms, as the ratio of the ends may be no float
        first = np.log(low) + STARTS * (np.log(high) - np.log(low))
        return [np.geomspace(np.exp(start), high, count) for start in first]
    if spacing == "quantile":
        share = np.append(0, np.cumsum(values.mass))
        at = np.append(values.u[0], (values.u + np.append(values.u[1:], values.u[-1])) / 2)
        nodes = values.kernel.value(np.interp(np.arange(1, count + 1) / count, share, at))
        return [_apart(np.append(nodes[:-1], high), high - low)]
    first = high / count if values.kernel.nonnegative else low
    return [np.linspace(first, high, count)]


def _apart(nodes: Array, span: float) -> Array:
    """Leave out nodes that are as good as equal."""
    kept = np.append(nodes[:-1][np.diff(nodes) > 1e-6 * np.minimum(span, nodes[1:])], nodes[-1])
    return kept if kept.size > 1 else np.array([nodes[-1] / 2, nodes[-1]])


def check_nodes(owner: Any) -> None:
    """Raise ``ValueError`` unless the loaded ``nodes`` are two or more, ascending."""
    require_attributes(owner, nodes="float64[n]")
    nodes = vars(owner).get("nodes", np.empty(0))
    rising = nodes.size >= 2 and np.isfinite(nodes).all() and (np.diff(nodes) > 0).all()
    require(rising, "nodes are not two or more ascending numbers")


@stored
class TwoNodes:
    """The coordinates of values on two neighboring nodes, as cubics on cells.

    Parameters
    ----------
    kernel : AdditiveKernel
    nodes : ndarray
        Ascending.
    low, high : float
        Ends of the values to serve.
    """

    def __init__(self, kernel: AdditiveKernel, nodes: Array, low: float, high: float) -> None:
        self.kernel, self.nodes = kernel, nodes
        low, high = min(low, float(nodes[0])), max(high, float(nodes[-1]))
        self.cells = make_cells(low, high, nonnegative=kernel.nonnegative)

    def _check_state(self) -> None:
        """Raise ``ValueError`` if loaded nodes are not what the core takes."""
        require(isinstance(vars(self).get("kernel"), AdditiveKernel), "kernel is not additive")
        require(isinstance(vars(self).get("cells"), Cells), "cells are missing")
        check_nodes(self)

    @cached_property
    def _arguments(self) -> dict[str, tuple[Any, ...]]:
        """Arguments of the core for every dtype; not saved, as they depend on the machine."""
        return {}

    @cached_property
    def _parts(self) -> tuple[Array, Array, Array]:
        """Starts and widths of the parts of cells that nodes divide, and the cell of each."""
        start, width = self.cells.start, self.cells.width
        cell = np.searchsorted(start, self.nodes, side="right") - 1
        divides = (self.nodes > start[cell]) & (self.nodes < start[cell] + width[cell])
        divided = np.unique(cell[divides])
        starts = np.union1d(start[divided], self.nodes[divides])
        of = np.searchsorted(start, starts, side="right") - 1
        ends = np.append(starts[1:], np.inf)
        return starts, np.minimum(ends, start[of] + width[of]) - starts, of

    def arguments(self, dtype: npt.DTypeLike) -> tuple[Any, ...]:
        """Return what the function of the core takes first."""
        name = np.dtype(dtype).name
        if name not in self._arguments:
            self._arguments[name] = self._make_arguments(dtype)
        return self._arguments[name]

    def _make_arguments(self, dtype: npt.DTypeLike) -> tuple[Any, ...]:
        starts, widths, of = self._parts
        node = self._lower(self.cells.start)
        pairs = self.cells.cubics(lambda x: self.exact(x, np.repeat(node, 4)))
        if starts.size:
            of_parts = self._lower(starts)
            more = cubics(lambda x: self.exact(x, np.repeat(of_parts, 4)), starts, widths)
            pairs = np.concatenate([pairs, more])
            divided, first = np.unique(of, return_index=True)
            node[divided] = -1 - first
            node = np.append(node, of_parts)
        start = np.append(starts, np.inf).astype(dtype)
        return (
            *self.cells.arguments(dtype),
            node.astype(np.int32),
            pairs.astype(dtype).ravel(),
            start,
            np.minimum(1 / widths, np.finfo(dtype).max).astype(dtype),
            self.nodes.size,
        )

    def _lower(self, x: Array) -> Array:
        """Return the lower of the two nodes of every value."""
        return np.clip(np.searchsorted(self.nodes, x, side="right") - 1, 0, self.nodes.size - 2)

    def exact(self, x: Array, node: Array) -> Array:
        """Return the coordinates on ``node`` and ``node + 1``: an array of values x 2."""
        kernel, z = self.kernel, self.nodes
        below, above = x < z[0], x > z[-1]
        u, r = kernel.coordinate(z), kernel.weight(z)
        a, b, ux = u[node], u[node + 1], kernel.coordinate(x)
        to_a, to_b = kernel.profile(np.abs(ux - a)), kernel.profile(np.abs(b - ux))
        at_0, across = kernel.profile(np.zeros(1))[0], kernel.profile(b - a)
        determinant = at_0**2 - across**2
        apart = determinant > 1e-12 * at_0**2
        safe = np.where(apart, determinant, 1)
        # where the two nodes are one direction, the least of all combinations
        total = at_0 * (r[node] ** 2 + r[node + 1] ** 2)
        on_a = np.where(
            apart, (at_0 * to_a - across * to_b) / safe / r[node], to_a * r[node] / total
        )
        on_b = np.where(
            apart, (at_0 * to_b - across * to_a) / safe / r[node + 1], to_b * r[node + 1] / total
        )
        on_a = np.where(below, to_a / at_0 / r[node], np.where(above, 0, on_a))
        on_b = np.where(above, to_b / at_0 / r[node + 1], np.where(below, 0, on_b))
        return kernel.weight(x)[:, None] * np.stack([on_a, on_b], axis=1)

    def kernel_matrix(self, x: Array, *, pairs: bool = True) -> Array:
        """Return ``Phi(x)^T K_ZZ Phi(y)`` between all values, or its diagonal alone."""
        node, rows = self._lower(x), np.arange(x.size)
        pair = self.exact(x, node)
        u, r = self.kernel.coordinate(self.nodes), self.kernel.weight(self.nodes)
        if not pairs:
            scaled = pair * np.stack([r[node], r[node + 1]], axis=1)
            at_0, across = (self.kernel.profile(t) for t in (np.zeros(1), u[node + 1] - u[node]))
            return at_0 * np.vecdot(scaled, scaled) + 2 * across * scaled[:, 0] * scaled[:, 1]
        used = np.union1d(node, node + 1)  # no others
        at = np.searchsorted(used, node)
        phi = np.zeros((x.size, used.size))
        phi[rows, at], phi[rows, at + 1] = pair[:, 0], pair[:, 1]
        return phi @ one_dimensional(self.kernel, u[used], r[used], u[used], r[used]) @ phi.T


class NodeInner(LinearOperator):
    """The operator ``K_ZZ`` of every column on coordinates of ``n_columns * nodes`` entries.

    Parameters
    ----------
    kernel : AdditiveKernel
    nodes : ndarray
        Ascending values.
    n_columns : int

    Attributes
    ----------
    structure : {"cumulative", "toeplitz", "low rank", "dense"}
        How products are computed.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.kernels import Intersection
    >>> from hilbin.maps import NodeInner
    >>> inner = NodeInner(Intersection(), np.array([1.0, 2.0, 4.0]), n_columns=1)
    >>> inner @ np.ones(3)
    array([3., 5., 7.])
    >>> inner.structure
    'cumulative'
    """

    def __init__(self, kernel: AdditiveKernel, nodes: Array, n_columns: int) -> None:
        self.kernel, self.nodes, self.n_columns = kernel, nodes, n_columns
        self._u, self._r = kernel.coordinate(nodes), kernel.weight(nodes)
        self._diagonal = float(kernel.profile(np.zeros(1))[0]) * self._r**2
        self.structure = self._recognize()
        if self.structure == "low rank":
            count = np.log(4 * nodes[-1] / nodes[0]) * np.log(4e16) / np.pi**2
            self._factor = terms(nodes, zolotarev(nodes[0], nodes[-1], int(count) + 1))
        elif self.structure == "dense":
            self._factor = self.matrix()
        size = nodes.size * n_columns
        super().__init__(np.dtype(np.float64), (size, size))

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the attributes of a loaded operator do not fit together."""
        check_nodes(self)
        require(isinstance(vars(self).get("kernel"), AdditiveKernel), "kernel is not additive")
        vectors = dict.fromkeys(("_u", "_r", "_diagonal", "nodes"), "float64[n]")
        require_attributes(self, **vectors, structure="str", n_columns="int", shape="tuple")
        require(self.structure in get_args(Structure), "structure is unknown")
        require(self.n_columns >= 1, "n_columns is not above 0")
        size = self.nodes.size * self.n_columns
        require(self.shape == (size, size) and self.dtype == np.float64, "shape is wrong")
        super().__init__(self.dtype, self.shape)  # attributes that some versions of SciPy add
        if self.structure in ("low rank", "dense"):
            require_attributes(self, nodes="float64[n]", _factor="float64[n, *]")
            square = self.structure == "low rank" or self._factor.shape[1] == self.nodes.size
            require(square, "_factor is not square")

    def matrix(self) -> Array:
        """Return ``K_ZZ`` of one column."""
        return one_dimensional(self.kernel, self._u, self._r, self._u, self._r)

    def root(self) -> Array:
        """Return ``F`` with ``F F^T = K_ZZ`` to rounding and no more columns than its rank.

        Weights are taken out first: rounding of ``k(x, y)`` is then relative to the norms of ``x``
        and ``y``, and not to the largest of all.
        """
        lam, U = np.linalg.eigh(self.kernel.profile(np.abs(self._u[:, None] - self._u)))
        kept = lam > lam[-1] * lam.size * np.finfo(float).eps
        return self._r[:, None] * (U[:, kept] * np.sqrt(lam[kept]))[:, ::-1]

    def _recognize(self) -> Structure:
        """Find how products with ``K_ZZ`` are computed best."""
        some = np.unique(np.linspace(0, self.nodes.size - 1, 16).astype(int))
        u, r, g = self._u[some], self._r[some], self._diagonal[some]
        K = one_dimensional(self.kernel, u, r, u, r)
        if np.all(np.diff(self._diagonal) > 0) and np.allclose(K, np.minimum.outer(g, g), 1e-12, 0):
            return "cumulative"
        if self.nodes.size > LARGE and np.ptp(np.diff(self._u)) <= 1e-10 * np.ptp(self._u):
            return "toeplitz"
        return "low rank" if isinstance(self.kernel, Chi2) and self.nodes.size > SMALL else "dense"

    def _matmat(self, C: Array) -> Array:
        # columns of the data and of C side by side: nodes x (n_columns * k)
        flat = C.reshape(self.n_columns, self.nodes.size, -1).transpose(1, 0, 2)
        product = self._product(flat.reshape(self.nodes.size, -1))
        return product.reshape(flat.shape).transpose(1, 0, 2).reshape(self.shape[0], -1)

    def _product(self, C: Array) -> Array:
        if self.structure == "cumulative":
            step = np.diff(self._diagonal, prepend=0.0)
            return np.cumsum(step[:, None] * np.cumsum(C[::-1], axis=0)[::-1], axis=0)
        if self.structure == "toeplitz":
            first = self.kernel.profile(np.abs(self._u - self._u[0]))
            return self._r[:, None] * matmul_toeplitz(first, self._r[:, None] * C)
        if self.structure == "low rank":
            return self._factor @ (self._factor.T @ C)
        return self._factor @ C

    def _matvec(self, c: Array) -> Array:
        return self._matmat(c.reshape(-1, 1)).ravel()

    def _adjoint(self) -> LinearOperator:
        return self
