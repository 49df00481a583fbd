"""Feature maps as graphs, by the formulas of their modules.

The features are dense: a ``SparseMap`` has a column for every node.
"""

import math
from typing import Any

import numpy as np

from hilbin._arrays import Array, to_dense
from hilbin.maps import AdditiveMap, FourierMap, NystroemMap, SparseMap
from hilbin.maps.expansion import PER_OCTAVE, Cells, Cubics, RankOne, SeriesTerms
from hilbin.maps.fourier import structured_projection
from hilbin.maps.nodes import TwoNodes
from hilbin.persist.onnx.exporters import TRANSFORMERS, transformed
from hilbin.persist.onnx.graph import Graph
from hilbin.persist.onnx.kernels import TINY, degree_of, diagonal, gram, power


def additive(graph: Graph, step: Any, x: str, where: str) -> str:
    """Return the features of an ``AdditiveMap``."""
    expansion = step._expansion
    x, width = _taken(graph, step, x), step._columns.size * expansion.n_components
    if isinstance(expansion, SeriesTerms):
        return graph.flatten(_series(graph, expansion.k, graph.unsqueeze(x, 2)), width)
    if isinstance(expansion, Cubics):
        return graph.flatten(_cubics(graph, expansion, x), width)
    assert isinstance(expansion, RankOne)
    at_zero = float(expansion.kernel.profile(np.zeros(1))[0])
    weight = power(graph, x, degree_of(expansion.kernel, where) / 2)
    return graph.op("Mul", weight, math.sqrt(at_zero))


def _taken(graph: Graph, step: Any, x: str) -> str:
    """Return the columns that a map has features of."""
    columns = step._columns
    whole = np.array_equal(columns, np.arange(step.n_features_in_))
    return x if whole else graph.op("Gather", x, columns, axis=1)


def _series(graph: Graph, k: Array, x: str) -> str:
    terms, before = [], None
    for parameter in k:
        above = graph.op("Add", x, float(parameter))
        term = graph.op("Mul", graph.op("Div", x, above), 2 * math.sqrt(parameter))
        terms.append(term if before is None else graph.op("Mul", term, before))
        factor = graph.op("Div", graph.op("Sub", x, float(parameter)), above)
        before = factor if before is None else graph.op("Mul", before, factor)
    return graph.op("Concat", *terms, axis=2)


def _cubics(graph: Graph, expansion: Cubics, x: str) -> str:
    cells = expansion.cells
    cell = _cell_of(graph, cells, x)
    start, width = (graph.op("Gather", part, cell) for part in (cells.start, cells.width))
    t = graph.op("Clip", graph.op("Div", graph.op("Sub", x, start), width), 0.0, 1.0)
    return _polynomials(graph, expansion.coefficients, cell, t)


def _polynomials(graph: Graph, coefficients: Array, cell: str, t: str) -> str:
    """Return cubics in ``t``, along a third axis; coefficients are cells x powers x functions."""
    powers, t = coefficients.transpose(1, 0, 2), graph.unsqueeze(t, 2)
    value = graph.op("Gather", powers[3], cell)
    for exponent in (2, 1, 0):
        lower = graph.op("Gather", powers[exponent], cell)
        value = graph.op("Add", graph.op("Mul", value, t), lower)
    return value


def _cell_of(graph: Graph, cells: Cells, x: str) -> str:
    """Return the cell of every value; a rounded logarithm leads to the same cell."""
    last = float(cells.start.size - 1)
    if not cells.by_bits:
        steps = graph.op("Div", graph.op("Sub", x, float(cells.start[0])), float(cells.width[0]))
        return graph.cast(graph.op("Clip", graph.op("Floor", steps), 0.0, last), np.int64)
    first = float(cells.start[1])
    inside = graph.op("Max", x, first)
    octave = graph.op("Floor", graph.op("Div", graph.op("Log", inside), math.log(2)))
    beyond = graph.op("Sub", graph.op("Div", inside, graph.op("Pow", 2.0, octave)), 1.0)
    within = graph.op("Floor", graph.op("Mul", beyond, float(PER_OCTAVE)))
    whole = graph.op("Mul", graph.op("Sub", octave, math.log2(first)), float(PER_OCTAVE))
    cell = graph.op("Add", graph.op("Add", whole, within), 1.0)
    cell = graph.op("Where", graph.op("Less", x, first), 0.0, cell)
    return graph.cast(graph.op("Clip", cell, 0.0, last), np.int64)


def sparse(graph: Graph, step: Any, x: str, where: str) -> str:
    """Return the features of a ``SparseMap``."""
    two: TwoNodes = step._two
    count = two.nodes.size
    lower, pair = _coordinates(graph, two, _taken(graph, step, x))
    lower = graph.unsqueeze(lower, 2)
    features = []
    for neighbor in (0, 1):
        at = graph.op("Equal", lower, np.arange(count) - neighbor)
        one = graph.op("Gather", pair, np.array([neighbor]), axis=2)
        features.append(graph.op("Where", at, one, 0.0))
    columns = graph.op("Add", *features)
    if step.orthonormal:
        factor = step._expansion.factor
        columns, count = graph.op("MatMul", columns, factor), factor.shape[1]
    return graph.flatten(columns, step._columns.size * count)


def _coordinates(graph: Graph, two: TwoNodes, x: str) -> tuple[str, str]:
    """Return the lower node of every value, and its two coordinates along a third axis."""
    _, _, node, pairs, part_starts, per_width, _ = two.arguments(np.float64)
    n_cells = two.cells.start.size
    piece = _cell_of(graph, two.cells, x)
    if per_width.size:  # cells that nodes divide have parts
        reached = graph.op("GreaterOrEqual", graph.unsqueeze(x, 2), part_starts[:-1])
        part = graph.sum(graph.cast(reached, np.int64), 2)
        part = graph.op("Add", graph.op("Max", part, 1), n_cells - 1)
        divided = graph.op("Less", graph.op("Gather", node[:n_cells], piece), 0)
        piece = graph.op("Where", divided, part, piece)
    start = np.append(two.cells.start, part_starts[:-1])
    width = np.append(two.cells.width, 1 / per_width)
    t = graph.op("Sub", x, graph.op("Gather", start, piece))
    t = graph.op("Clip", graph.op("Div", t, graph.op("Gather", width, piece)), 0.0, 1.0)
    value = _polynomials(graph, pairs.reshape(-1, 4, 2), piece, t)
    return graph.op("Gather", np.maximum(node, 0), piece), value


def fourier(graph: Graph, step: FourierMap, x: str, where: str) -> str:
    """Return the features of a ``FourierMap``."""
    mapped, stretch = x, None
    if step.feature_map_ is not None:
        mapped = transformed(graph, step.feature_map_, x, f"{where}.feature_map_")
        norms = graph.sum(graph.op("Mul", mapped, mapped), 1, keepdims=True)
        width = step.n_features_in_
        exact = diagonal(graph, step.kernel_.kernel, x, width, f"{where}.kernel_")
        ratio = graph.op("Div", exact, graph.op("Max", norms, TINY))
        stretch = graph.op("Sqrt", graph.op("Where", graph.op("Greater", norms, 0.0), ratio, 1.0))
    products = graph.product(mapped, _frequencies(step).T)
    if stretch is not None:
        products = graph.op("Mul", products, stretch)
    pairs = (step._n_features_out + 1) // 2
    size = math.sqrt(1 / pairs)
    if step._n_features_out % 2 == 0:
        cosines, sines = (graph.op(wave, products) for wave in ("Cos", "Sin"))
        return graph.op("Mul", graph.op("Concat", cosines, sines, axis=1), size)
    # The last frequency has one feature, sqrt(2) cos(angle + phase).
    shifts, sizes = np.zeros(pairs), np.full(pairs, size)
    shifts[-1], sizes[-1] = step._phase, size * math.sqrt(2)
    cosines = graph.op("Mul", graph.op("Cos", graph.op("Add", products, shifts)), sizes)
    if pairs == 1:
        return cosines
    sines = graph.op("Mul", graph.op("Sin", products), size)
    kept = graph.op("Gather", sines, np.arange(pairs - 1), axis=1)
    return graph.op("Concat", cosines, kept, axis=1)


def _frequencies(step: Any) -> Array:
    if step.frequencies_ is not None:
        return step.frequencies_
    columns = (
        step.n_features_in_
        if step.feature_map_ is None
        else step.feature_map_.transform(np.zeros((1, step.n_features_in_))).shape[1]
    )
    project = structured_projection(step.signs_, step.rows_, step._scale(), np.dtype(np.float64))
    return project(np.eye(columns)).T


def nystroem(graph: Graph, step: NystroemMap, x: str, where: str) -> str:
    """Return the features of a ``NystroemMap``."""
    Z = np.asarray(to_dense(step.landmarks_), np.float64)
    values = gram(graph, step.kernel_, x, Z, f"{where}.kernel_")
    return graph.product(values, step.projection_)


TRANSFORMERS |= {
    AdditiveMap: additive,
    FourierMap: fourier,
    NystroemMap: nystroem,
    SparseMap: sparse,
}
