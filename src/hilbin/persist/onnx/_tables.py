r"""Models of tables as graphs.

Quantized values are looked up. Exact ones have tables that are lines between levels
:math:`v_1 < \dots < v_m`, constant after the last: :math:`T(x) = \sum_i w_i \min(x, v_i)` with
:math:`w_i` the slope before a level minus the slope after it.
"""

from typing import Any

import numpy as np

from hilbin.estimators._shapes import ShapeTables
from hilbin.estimators.binner import STRETCH, HistogramBinner
from hilbin.persist._container import Array
from hilbin.persist.onnx._graph import Graph

LARGEST = np.finfo(np.float64).max


def codes(graph: Graph, binner: HistogramBinner, x: str) -> str:
    """What ``binner`` makes of rows, as float64."""
    if binner.n_bins is None:
        above = graph.op("Max", graph.op("Sub", x, binner._origin), 0.0)
        return graph.op("Mul", above, np.minimum(binner._scale, LARGEST))
    if binner.strategy == "quantile" and not binner.integers_:
        edges = _padded(binner._edges, binner._offsets)
        reached = graph.op("GreaterOrEqual", graph.unsqueeze(x, 2), edges)
        return graph.sum(graph.cast(reached, np.float64), 2)
    scale = np.minimum(binner._scale * STRETCH, LARGEST)
    code = graph.op("Max", graph.op("Mul", graph.op("Sub", x, binner.low_), scale), 0.0)
    if binner.strategy == "sqrt" and not binner.integers_:
        code = graph.op("Sqrt", code)
    return graph.op("Floor", graph.op("Min", code, binner.last_.astype(np.float64)))


def scores(graph: Graph, model: Any, x: str) -> str:
    """The scores of an intersection SVM, one column for each."""
    tables: ShapeTables = model._tables
    coded = codes(graph, tables.binner, x)
    if tables.binner.n_bins is None:
        sums = _interpolated(graph, tables, coded)
    else:
        starts, table = _stepped(tables)
        place = graph.op("Add", graph.cast(coded, np.int64), starts)
        sums = graph.sum(graph.op("Gather", table, place), 1)
    return graph.op("Add", sums, model.intercept_)


def _padded(edges: Array, offsets: Array) -> Array:
    """Edges as features x most edges, filled up with infinity."""
    counts = np.diff(offsets)
    table = np.full((counts.size, max(1, int(counts.max(initial=0)))), np.inf)
    table[np.arange(table.shape[1]) < counts[:, None]] = edges
    return table


def _stepped(tables: ShapeTables) -> tuple[Array, Array]:
    """Where the table of each feature begins, and all of them, with a row for every code."""
    values = tables.table[:, : tables.n_outputs]
    if tables.levels is None:
        return tables.offsets[:-1], values
    binner = tables.binner
    parts = []
    for feature, last in enumerate(binner.last_):
        own = slice(*tables.offsets[feature : feature + 2])
        at = np.arange(int(last) + 1) * binner.step_
        columns = [np.interp(at, tables.levels[own], column) for column in values[own].T]
        parts.append(np.column_stack(columns))
    starts = np.concatenate(([0], np.cumsum(binner.last_ + 1)[:-1]))
    return starts, np.concatenate(parts)


def _interpolated(graph: Graph, tables: ShapeTables, measured: str) -> str:
    assert tables.levels is not None
    first = np.zeros(tables.levels.size, bool)
    first[tables.offsets[:-1]] = True  # level 0, where every table is 0
    values = tables.table[:, : tables.n_outputs]
    run, rise = np.diff(tables.levels, prepend=0.0), np.diff(values, axis=0, prepend=0.0)
    slope = np.divide(rise, run[:, None], out=np.zeros_like(rise), where=~first[:, None])
    last = np.append(first[1:], True)
    after = np.where(last[:, None], 0, np.roll(slope, -1, axis=0))
    feature = np.repeat(np.arange(tables.offsets.size - 1), np.diff(tables.offsets))
    kept = ~first
    if not kept.any():
        kept = first  # nothing but zeros: one of them keeps the graph a graph
    columns = graph.op("Gather", measured, feature[kept], axis=1)
    below = graph.op("Min", columns, tables.levels[kept])
    return graph.product(below, (slope - after)[kept])
