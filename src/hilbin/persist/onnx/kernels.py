"""Kernels as graphs, by the formulas of their modules.

A kernel of rows and known rows ``Z`` (support vectors, landmarks, training rows) is a matrix with a
column for every row of ``Z``. Kernels that are sums over the columns of a function of two values
are computed for one row of the input after the other: all pairs at once would take memory for
rows times known rows times columns.

``GRAMS`` has the function of every kernel that is exported, ``DIAGONALS`` that of ``k(x, x)``, and
``DISTANCES`` that of ``(k(x, x) + k(y, y)) / 2 - k(x, y)`` where it is not computed by subtraction.
"""

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from hilbin._arrays import Array
from hilbin.kernels import (
    GCS,
    Chi2,
    Exponential,
    Gaussian,
    Hellinger,
    HomogeneousKernel,
    Intersection,
    JensenShannon,
    Laplace,
    Linear,
    Normalized,
    OnColumns,
    Polynomial,
    Power,
    Product,
    Scaled,
    Sum,
    SymmetricKL,
    WeightedSum,
)
from hilbin.kernels.gcs import CELLS, _profile_cells
from hilbin.persist.errors import UnsupportedModelError
from hilbin.persist.onnx.graph import Graph

TINY = np.finfo(np.float64).tiny
Operand = str | float


def gram(graph: Graph, kernel: Any, x: str, Z: Array, where: str) -> str:
    """Return ``k(x, z)`` of every row and every row of ``Z``."""
    return _of(GRAMS, kernel, where)(graph, kernel, x, Z, where)


def diagonal(graph: Graph, kernel: Any, x: str, width: int, where: str) -> Operand:
    """Return ``k(x, x)`` of rows of so many columns, as a column, or a number that all share."""
    if isinstance(kernel, HomogeneousKernel) and type(kernel) not in DIAGONALS:
        return _homogeneous_diagonal(graph, kernel, x, width, where)
    return _of(DIAGONALS, kernel, where)(graph, kernel, x, width, where)


def power(graph: Graph, x: str, exponent: float) -> str:
    """Return powers of values >= 0."""
    if exponent == 1:
        return x
    return graph.op("Sqrt", x) if exponent == 0.5 else graph.op("Pow", x, float(exponent))


def degree_of(kernel: Any, where: str) -> float:
    """Return the degree of a homogeneous kernel whose weight is a power."""
    homogeneous = isinstance(kernel, HomogeneousKernel)
    if not homogeneous or type(kernel).weight is not HomogeneousKernel.weight:
        raise UnsupportedModelError(f"{where} is {kernel!r}, whose norms are not exported to ONNX")
    return float(kernel.degree)


def _of(table: dict[type, Any], kernel: Any, where: str) -> Any:
    if type(kernel) not in table:
        known = ", ".join(sorted(cls.__name__ for cls in GRAMS))
        raise UnsupportedModelError(
            f"{where} is a {type(kernel).__name__}, which is not exported to ONNX: train with one "
            f"of {known}, or a linear model on the features of an AdditiveMap of this kernel"
        )
    return table[type(kernel)]


# sums over the columns
def _summed(graph: Graph, x: str, terms: Callable[[str], str]) -> str:
    """Return the sums of ``terms``, a matrix of known rows x columns for a row of values."""
    return graph.row_by_row(x, lambda row: graph.sum(terms(row), 1))


def _squared(graph: Graph, x: str, Z: Array) -> str:
    def terms(row: str) -> str:
        apart = graph.op("Sub", row, Z)
        return graph.op("Mul", apart, apart)

    return _summed(graph, x, terms)


def _absolute(graph: Graph, x: str, Z: Array) -> str:
    return _summed(graph, x, lambda row: graph.op("Abs", graph.op("Sub", row, Z)))


def _falling(graph: Graph, distances: str, gamma: Any) -> str:
    """Return ``exp(-gamma d)``."""
    return graph.op("Exp", graph.op("Mul", distances, -float(gamma)))


def _linear(graph: Graph, kernel: Linear, x: str, Z: Array, where: str) -> str:
    return graph.product(x, Z.T)


def _polynomial(graph: Graph, kernel: Polynomial, x: str, Z: Array, where: str) -> str:
    inner = graph.op("Add", graph.product(x, Z.T), float(kernel.offset))
    return graph.op("Pow", inner, float(kernel.degree))


def _hellinger(graph: Graph, kernel: Hellinger, x: str, Z: Array, where: str) -> str:
    return graph.product(graph.op("Sqrt", x), np.sqrt(Z).T)


def _intersection(graph: Graph, kernel: Intersection, x: str, Z: Array, where: str) -> str:
    powers = Z**kernel.beta
    raised = power(graph, x, kernel.beta)
    return _summed(graph, raised, lambda row: graph.op("Min", row, powers))


def _chi2(graph: Graph, kernel: Chi2, x: str, Z: Array, where: str) -> str:
    def terms(row: str) -> str:
        sums = graph.op("Max", graph.op("Add", row, Z), TINY)
        return graph.op("Div", graph.op("Mul", row, 2 * Z), sums)

    return _summed(graph, x, terms)


def _jensen_shannon(graph: Graph, kernel: JensenShannon, x: str, Z: Array, where: str) -> str:
    """Return the sums of ``x (log s - log x) + z (log s - log z)``, with ``s = x + z``."""
    logs = np.log(np.maximum(Z, TINY))

    def terms(row: str) -> str:
        of_sum = graph.op("Log", graph.op("Max", graph.op("Add", row, Z), TINY))
        own = graph.op("Sub", of_sum, graph.op("Log", graph.op("Max", row, TINY)))
        others = graph.op("Mul", graph.op("Sub", of_sum, logs), Z)
        return graph.op("Add", graph.op("Mul", own, row), others)

    return graph.op("Mul", _summed(graph, x, terms), 0.5 / np.log(2))


def _gaussian(graph: Graph, kernel: Gaussian, x: str, Z: Array, where: str) -> str:
    return _falling(graph, _squared(graph, x, Z), kernel.gamma)


def _laplace(graph: Graph, kernel: Laplace, x: str, Z: Array, where: str) -> str:
    if kernel.p == 1:
        return _falling(graph, _absolute(graph, x, Z), kernel.gamma)
    return _falling(graph, graph.op("Sqrt", _squared(graph, x, Z)), kernel.gamma)


def _symmetric_kl(graph: Graph, kernel: SymmetricKL, x: str, Z: Array, where: str) -> str:
    smooth = Z + kernel.smoothing

    def terms(row: str) -> str:
        own = graph.op("Add", row, float(kernel.smoothing))
        apart = graph.op("Sub", graph.op("Log", own), np.log(smooth))
        return graph.op("Mul", graph.op("Sub", own, smooth), apart)

    distances = graph.op("Mul", _summed(graph, x, terms), 0.5)
    return _falling(graph, graph.op("Max", distances, 0.0), kernel.gamma)


def _gcs(graph: Graph, kernel: GCS, x: str, Z: Array, where: str) -> str:
    """Return the profile of distances over the diameter, from the cubics that hilbin has."""
    width = float(Z.shape[1] if kernel.dim is None else kernel.dim)
    pieces = _profile_cells(width).reshape(CELLS, 4)
    u = graph.op("Div", graph.op("Sqrt", _squared(graph, x, Z)), 2 * float(kernel.radius))  # type: ignore[arg-type]
    start = graph.op("Floor", graph.op("Mul", graph.op("Min", u, 1 - 0.5 / CELLS), float(CELLS)))
    cell = graph.cast(start, np.int64)
    beyond = graph.op("Sub", u, graph.op("Div", start, float(CELLS)))
    value = graph.op("Gather", pieces[:, 3], cell)
    for column in pieces[:, 2::-1].T:
        value = graph.op("Add", graph.op("Mul", value, beyond), graph.op("Gather", column, cell))
    return graph.op("Where", graph.op("Less", u, 1.0), value, 0.0)


# kernels of kernels
def _exponential(graph: Graph, kernel: Exponential, x: str, Z: Array, where: str) -> str:
    inner, place = kernel.kernel, f"{where}.kernel"
    direct = DISTANCES.get(type(inner))
    if direct is not None:
        return _falling(graph, direct(graph, inner, x, Z), kernel.gamma)
    own = diagonal(graph, inner, x, Z.shape[1], place)
    norms = graph.op("Add", own, inner._diag(Z)[None])
    products = gram(graph, inner, x, Z, place)
    distances = graph.op("Sub", graph.op("Mul", norms, 0.5), products)
    return _falling(graph, graph.op("Max", distances, 0.0), kernel.gamma)


def _chi2_distance(graph: Graph, kernel: Chi2, x: str, Z: Array) -> str:
    def terms(row: str) -> str:
        apart = graph.op("Sub", row, Z)
        sums = graph.op("Max", graph.op("Add", row, Z), TINY)
        return graph.op("Div", graph.op("Mul", apart, apart), sums)

    return graph.op("Mul", _summed(graph, x, terms), 0.5)


def _intersection_distance(graph: Graph, kernel: Intersection, x: str, Z: Array) -> str:
    apart = _absolute(graph, power(graph, x, kernel.beta), Z**kernel.beta)
    return graph.op("Mul", apart, 0.5)


def _sum(graph: Graph, kernel: Sum, x: str, Z: Array, where: str) -> str:
    return graph.op("Add", *_both(graph, kernel, x, Z, where))


def _product(graph: Graph, kernel: Product, x: str, Z: Array, where: str) -> str:
    return graph.op("Mul", *_both(graph, kernel, x, Z, where))


def _both(graph: Graph, kernel: Sum | Product, x: str, Z: Array, where: str) -> list[str]:
    sides = (("left", kernel.left), ("right", kernel.right))
    return [gram(graph, side, x, Z, f"{where}.{name}") for name, side in sides]


def _weighted_sum(graph: Graph, kernel: WeightedSum, x: str, Z: Array, where: str) -> str:
    parts = [
        graph.op("Mul", gram(graph, inner, x, Z, f"{where}.kernels"), float(weight))
        for inner, weight in kernel._counted
    ]
    return reduce(lambda a, b: graph.op("Add", a, b), parts)


def _scaled(graph: Graph, kernel: Scaled, x: str, Z: Array, where: str) -> str:
    return graph.op("Mul", gram(graph, kernel.kernel, x, Z, f"{where}.kernel"), kernel.factor)


def _normalized(graph: Graph, kernel: Normalized, x: str, Z: Array, where: str) -> str:
    inner, place = kernel.kernel, f"{where}.kernel"
    own = diagonal(graph, inner, x, Z.shape[1], place)
    inverse = graph.op("Div", 1.0, graph.op("Sqrt", graph.op("Max", own, TINY)))
    factors = graph.op("Where", graph.op("Greater", own, 0.0), inverse, 0.0)
    values = graph.op("Mul", gram(graph, inner, x, Z, place), kernel._factors(Z)[None])
    return graph.op("Mul", values, factors)


def _power(graph: Graph, kernel: Power, x: str, Z: Array, where: str) -> str:
    raised = power(graph, x, kernel.exponent)
    return gram(graph, kernel.kernel, raised, Z**kernel.exponent, f"{where}.kernel")


def _on_columns(graph: Graph, kernel: OnColumns, x: str, Z: Array, where: str) -> str:
    columns = kernel.numbers(Z.shape[1])
    taken = graph.op("Gather", x, columns, axis=1)
    return gram(graph, kernel.kernel, taken, Z[:, columns], f"{where}.kernel")


GRAMS: dict[type, Callable[[Graph, Any, str, Array, str], str]] = {
    Chi2: _chi2,
    Exponential: _exponential,
    GCS: _gcs,
    Gaussian: _gaussian,
    Hellinger: _hellinger,
    Intersection: _intersection,
    JensenShannon: _jensen_shannon,
    Laplace: _laplace,
    Linear: _linear,
    Normalized: _normalized,
    OnColumns: _on_columns,
    Polynomial: _polynomial,
    Power: _power,
    Product: _product,
    Scaled: _scaled,
    Sum: _sum,
    SymmetricKL: _symmetric_kl,
    WeightedSum: _weighted_sum,
}
DISTANCES: dict[type, Callable[[Graph, Any, str, Array], str]] = {
    Chi2: _chi2_distance,
    Intersection: _intersection_distance,
}


# k(x, x)
def _one(graph: Graph, kernel: Any, x: str, width: int, where: str) -> Operand:
    return 1.0


def _squares(graph: Graph, kernel: Any, x: str, width: int, where: str) -> Operand:
    return graph.sum(graph.op("Mul", x, x), 1, keepdims=True)


def _polynomial_diagonal(
    graph: Graph, kernel: Polynomial, x: str, width: int, where: str
) -> Operand:
    inner = graph.op("Add", _squares(graph, kernel, x, width, where), float(kernel.offset))
    return graph.op("Pow", inner, float(kernel.degree))


def _homogeneous_diagonal(graph: Graph, kernel: Any, x: str, width: int, where: str) -> Operand:
    powers = power(graph, x, degree_of(kernel, where))
    at_zero = float(kernel.profile(np.zeros(1))[0])
    return graph.op("Mul", graph.sum(powers, 1, keepdims=True), at_zero)


def _pair_diagonal(graph: Graph, kernel: Sum | Product, x: str, width: int, where: str) -> Operand:
    sides = (("left", kernel.left), ("right", kernel.right))
    both = [diagonal(graph, side, x, width, f"{where}.{name}") for name, side in sides]
    return graph.op("Add" if isinstance(kernel, Sum) else "Mul", *both)


def _weighted_diagonal(
    graph: Graph, kernel: WeightedSum, x: str, width: int, where: str
) -> Operand:
    parts = [
        graph.op("Mul", diagonal(graph, inner, x, width, f"{where}.kernels"), float(weight))
        for inner, weight in kernel._counted
    ]
    return reduce(lambda a, b: graph.op("Add", a, b), parts)


def _scaled_diagonal(graph: Graph, kernel: Scaled, x: str, width: int, where: str) -> Operand:
    return graph.op("Mul", diagonal(graph, kernel.kernel, x, width, where), kernel.factor)


def _normalized_diagonal(
    graph: Graph, kernel: Normalized, x: str, width: int, where: str
) -> Operand:
    own = diagonal(graph, kernel.kernel, x, width, where)
    return graph.cast(graph.op("Greater", own, 0.0), np.float64)


def _power_diagonal(graph: Graph, kernel: Power, x: str, width: int, where: str) -> Operand:
    return diagonal(graph, kernel.kernel, power(graph, x, kernel.exponent), width, where)


def _on_columns_diagonal(
    graph: Graph, kernel: OnColumns, x: str, width: int, where: str
) -> Operand:
    columns = kernel.numbers(width)
    taken = graph.op("Gather", x, columns, axis=1)
    return diagonal(graph, kernel.kernel, taken, columns.size, where)


DIAGONALS: dict[type, Callable[[Graph, Any, str, int, str], Operand]] = {
    **dict.fromkeys((Exponential, Gaussian, GCS, Laplace, SymmetricKL), _one),
    Linear: _squares,
    Normalized: _normalized_diagonal,
    OnColumns: _on_columns_diagonal,
    Polynomial: _polynomial_diagonal,
    Power: _power_diagonal,
    Product: _pair_diagonal,
    Scaled: _scaled_diagonal,
    Sum: _pair_diagonal,
    WeightedSum: _weighted_diagonal,
}
