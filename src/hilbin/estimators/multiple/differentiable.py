r"""A kernel on fixed rows as a differentiable function of the logarithms of its parameters.

The parameters are the :math:`\gamma` of every :math:`e^{-\gamma d}` in the kernel, the weights of
its sums and its factors. For a function of the Gram matrix with derivatives :math:`G` by the
entries, the derivatives by the parameters are found from the outside in: a sum hands :math:`G` on
with the weight, a product times the other factor, and :math:`K = e^{-\gamma D}` ends with
:math:`-\gamma \langle G, K \circ D \rangle`, the derivative by :math:`\ln \gamma`. A kernel of
another kind is a constant. Distances are computed once.
"""

from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import Any

import numpy as np

from hilbin._arrays import Array, Matrix, to_dense
from hilbin.kernels import Kernel, Normalized, OnColumns, Power, Product, Scaled, Sum, WeightedSum

BELOW, ABOVE = 12.0, 5.0  # bounds of ln gamma around the median rule; of weights around the start


class Node:
    """A kernel on fixed rows, with parameters of its own and of the kernels it is made of.

    ``gram(logs)`` computes the matrix; ``slopes(G)`` then the derivatives of a function of it by
    the logarithms, from those by its entries; ``kernel(logs)`` makes the kernel. A subclass says
    how the matrices of the parts are ``combined``, what ``G`` is for each (``handed``), and what
    the derivatives by its own parameters are (``own_slopes``).
    """

    def __init__(
        self,
        make: Callable[[Array, list[Kernel]], Kernel],
        parts: Sequence["Node"] = (),
        own: Sequence[float] = (),
        bounds: Sequence[tuple[float, float]] | None = None,
    ) -> None:
        logs = np.log(np.asarray(own, np.float64))
        self.make, self.parts = make, parts
        self.start: Array = np.concatenate([logs, *(part.start for part in parts)])
        around = [(log - BELOW, log + ABOVE) for log in logs.tolist()]
        self.bounds = [*(around if bounds is None else bounds)]
        self.bounds += [pair for part in parts for pair in part.bounds]
        self._ends = np.cumsum([logs.size, *(part.start.size for part in parts)])

    def gram(self, logs: Array) -> Array:
        """Return the matrix."""
        own, *inner = self._split(logs)
        self.theta = np.exp(own)
        self.grams = [part.gram(some) for part, some in zip(self.parts, inner, strict=True)]
        self.K = self.combined()
        return self.K

    def slopes(self, G: Array) -> Array:
        """Return the derivatives at the parameters of the last matrix."""
        inner = [part.slopes(g) for part, g in zip(self.parts, self.handed(G), strict=True)]
        return np.concatenate([self.own_slopes(G), *inner])

    def kernel(self, logs: Array) -> Kernel:
        """Return the kernel."""
        own, *inner = self._split(logs)
        kernels = [part.kernel(some) for part, some in zip(self.parts, inner, strict=True)]
        return self.make(np.exp(own), kernels)

    def _split(self, logs: Array) -> list[Array]:
        return np.split(logs, self._ends)[:-1]

    def combined(self) -> Array:
        """Return the matrix; that of the only part, unless a subclass knows better."""
        return self.grams[0]

    def handed(self, G: Array) -> list[Array]:
        """Return the derivatives by the entries of every part."""
        return [G for _ in self.parts]

    def own_slopes(self, G: Array) -> Array:
        """Return the derivatives by the own parameters."""
        return np.empty(0)


class FixedNode(Node):
    """A kernel without parameters that are known."""

    def __init__(self, kernel: Kernel, K: Array) -> None:
        super().__init__(lambda own, kernels: kernel)
        self.matrix = K

    def combined(self) -> Array:
        """Return the matrix."""
        return self.matrix


class BandwidthNode(Node):
    """A kernel ``exp(-gamma D)``."""

    def __init__(self, kernel: Any, D: Array) -> None:
        gamma = float(kernel.gamma)
        pairs = D[np.triu_indices_from(D, k=1)]
        typical = float(np.median(pairs) or pairs.mean() or 1 / gamma)
        low, high = -np.log(typical) - BELOW, -np.log(typical) + ABOVE
        bounds = (min(low, np.log(gamma)), max(high, np.log(gamma)))
        super().__init__(
            lambda own, kernels: kernel.replace(gamma=float(own[0])), (), [gamma], [bounds]
        )
        self.D = D

    def combined(self) -> Array:
        """Return the matrix."""
        return np.exp(-self.theta[0] * self.D)

    def own_slopes(self, G: Array) -> Array:
        """Return the derivative by ``ln gamma``."""
        return np.array([-self.theta[0] * np.vdot(G, self.K * self.D)])


class SumNode(Node):
    """A sum of kernels, with weights that are the parameters, or without."""

    def combined(self) -> Array:
        """Return the sum."""
        total = np.zeros_like(self.grams[0])
        for weight, K in zip(self._weights(), self.grams, strict=True):
            total += weight * K
        return total

    def handed(self, G: Array) -> list[Array]:
        """Return the weights times ``G``."""
        return [w * G for w in self._weights()]

    def own_slopes(self, G: Array) -> Array:
        """Return the derivatives by the logarithms of the weights."""
        if not self.theta.size:
            return self.theta
        return self.theta * [np.vdot(G, K) for K in self.grams]

    def _weights(self) -> Array:
        return self.theta if self.theta.size else np.ones(len(self.parts))


class ProductNode(Node):
    """A product of two kernels."""

    def combined(self) -> Array:
        """Return the product."""
        return self.grams[0] * self.grams[1]

    def handed(self, G: Array) -> list[Array]:
        """Return ``G`` times the other factor."""
        return [G * self.grams[1], G * self.grams[0]]


class NormalizedNode(Node):
    """A kernel divided by the norms of its images."""

    def combined(self) -> Array:
        """Return the cosines."""
        norms = np.sqrt(np.diag(self.grams[0]))
        self.factors = np.divide(1, norms, out=np.zeros_like(norms), where=norms > 0)
        return self.factors[:, None] * self.grams[0] * self.factors

    def handed(self, G: Array) -> list[Array]:
        """Return ``G``, whose part along the norms is taken off the diagonal."""
        inner = self.factors[:, None] * G * self.factors
        inner[np.diag_indices_from(inner)] -= np.sum(G * self.K, axis=1) * self.factors**2
        return [inner]


@singledispatch
def differentiable(kernel: Any, X: Matrix, n_jobs: int | None) -> Node:
    """Return a kernel on rows as a function of its parameters."""
    if kernel._exponential:
        return BandwidthNode(kernel, kernel._distances(X, None, n_jobs))
    return FixedNode(kernel, to_dense(kernel._gram(X, None, n_jobs)))


@differentiable.register
def _(kernel: Sum, X: Matrix, n_jobs: int | None) -> Node:
    return SumNode(lambda own, kernels: Sum(*kernels), _pair(kernel, X, n_jobs))


@differentiable.register
def _(kernel: Product, X: Matrix, n_jobs: int | None) -> Node:
    return ProductNode(lambda own, kernels: Product(*kernels), _pair(kernel, X, n_jobs))


@differentiable.register
def _(kernel: WeightedSum, X: Matrix, n_jobs: int | None) -> Node:
    places = np.flatnonzero(kernel.weights)

    def make(own: Array, kernels: list[Kernel]) -> Kernel:
        made, weights = [*kernel.kernels], [0.0] * len(kernel.weights)
        for place, weight, inner in zip(places, own.tolist(), kernels, strict=True):
            made[place], weights[place] = inner, weight
        return WeightedSum(tuple(made), tuple(weights))

    parts = [differentiable(kernel.kernels[j], X, n_jobs) for j in places]
    return SumNode(make, parts, [kernel.weights[j] for j in places])


@differentiable.register
def _(kernel: Scaled, X: Matrix, n_jobs: int | None) -> Node:
    parts = [differentiable(kernel.kernel, X, n_jobs)]
    return SumNode(lambda own, kernels: Scaled(kernels[0], float(own[0])), parts, [kernel.factor])


@differentiable.register
def _(kernel: Normalized, X: Matrix, n_jobs: int | None) -> Node:
    parts = [differentiable(kernel.kernel, X, n_jobs)]
    return NormalizedNode(lambda own, kernels: Normalized(kernels[0]), parts)


@differentiable.register
def _(kernel: OnColumns, X: Matrix, n_jobs: int | None) -> Node:
    return _around(kernel, kernel._taken(X), n_jobs)


@differentiable.register
def _(kernel: Power, X: Matrix, n_jobs: int | None) -> Node:
    return _around(kernel, kernel._powers(X), n_jobs)


def _around(kernel: Any, X: Matrix, n_jobs: int | None) -> Node:
    """Return a kernel that is another one on other rows."""
    parts = [differentiable(kernel.kernel, X, n_jobs)]
    return Node(lambda own, kernels: kernel.replace(kernel=kernels[0]), parts)


def _pair(kernel: Any, X: Matrix, n_jobs: int | None) -> list[Node]:
    return [differentiable(inner, X, n_jobs) for inner in (kernel.left, kernel.right)]
