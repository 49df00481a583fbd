"""Nodes of the two-neighbor map: where they are, and values as combinations of two of them."""

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hilbin._arrays import Array
from hilbin._state import stored
from hilbin.kernels import AdditiveKernel
from hilbin.maps._cells import cubics, make_cells
from hilbin.maps._density import Density, one_dimensional

STARTS = np.linspace(0, 0.6, 7)  # of log spacing, as shares of the range of the coordinate


def place(values: Density, count: int, spacing: str) -> list[Array]:
    """Candidates for ``count`` nodes up to the largest value; fewer if the values are few."""
    low, high = values.low, values.high
    if low == high:
        return [np.array([high / 2, high] if high > 0 else [high - 1.0, high])]
    if spacing == "log":
        return [np.geomspace(low * (high / low) ** s, high, count) for s in STARTS]
    if spacing == "quantile":
        share = np.append(0, np.cumsum(values.mass))
        at = np.append(values.u[0], (values.u + np.append(values.u[1:], values.u[-1])) / 2)
        nodes = values.kernel.value(np.interp(np.arange(1, count + 1) / count, share, at))
        return [_apart(np.append(nodes[:-1], high), high - low)]
    first = high / count if values.kernel.nonnegative else low
    return [np.linspace(first, high, count)]


def _apart(nodes: Array, span: float) -> Array:
    """Nodes without those that are as good as equal."""
    kept = np.append(nodes[:-1][np.diff(nodes) > 1e-6 * np.minimum(span, nodes[1:])], nodes[-1])
    return kept if kept.size > 1 else np.array([nodes[-1] / 2, nodes[-1]])


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
        """What the core's function takes first."""
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
            (1 / widths).astype(dtype),
            self.nodes.size,
        )

    def _lower(self, x: Array) -> Array:
        """The lower of the two nodes of every value."""
        return np.clip(np.searchsorted(self.nodes, x, side="right") - 1, 0, self.nodes.size - 2)

    def exact(self, x: Array, node: Array) -> Array:
        """Coordinates on ``node`` and ``node + 1``: an array of values x 2."""
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

    def kernel_matrix(self, x: Array) -> Array:
        """``Phi(x)^T K_ZZ Phi(y)`` between all values, through the nodes they use alone."""
        node, rows = self._lower(x), np.arange(x.size)
        used = np.union1d(node, node + 1)
        at = np.searchsorted(used, node)
        phi, pair = np.zeros((x.size, used.size)), self.exact(x, node)
        phi[rows, at], phi[rows, at + 1] = pair[:, 0], pair[:, 1]
        u, r = self.kernel.coordinate(self.nodes[used]), self.kernel.weight(self.nodes[used])
        return phi @ one_dimensional(self.kernel, u, r, u, r) @ phi.T
