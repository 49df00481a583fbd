"""The two-neighbor map as a graph: dense columns, one for every node."""

from typing import Any

import numpy as np

from hilbin.maps._nodes import TwoNodes
from hilbin.persist.onnx._graph import Graph
from hilbin.persist.onnx._maps import cell_of, polynomials


def sparse(graph: Graph, step: Any, x: str, where: str) -> str:
    """The features of a ``SparseMap``."""
    two: TwoNodes = step._two
    count = two.nodes.size
    lower, pair = _coordinates(graph, two, x)
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
    return graph.flatten(columns, step.n_features_in_ * count)


def _coordinates(graph: Graph, two: TwoNodes, x: str) -> tuple[str, str]:
    """The lower node of every value, and its two coordinates along a third axis."""
    _, _, node, pairs, part_starts, per_width, _ = two.arguments(np.float64)
    n_cells = two.cells.start.size
    piece = cell_of(graph, two.cells, x)
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
    value = polynomials(graph, pairs.reshape(-1, 4, 2), piece, t)
    return graph.op("Gather", np.maximum(node, 0), piece), value
