"""The steps of a model as graphs: those of scikit-learn, and hilbin's models and binner.

Maps are in :mod:`hilbin.persist.onnx.maps`, machines with any kernel in
:mod:`hilbin.persist.onnx.machines`.
"""

from typing import Any

import numpy as np
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    Ridge,
    RidgeClassifier,
    RidgeClassifierCV,
    RidgeCV,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    StandardScaler,
)
from sklearn.svm import LinearSVC, LinearSVR

from hilbin._arrays import Array
from hilbin.estimators import (
    HistogramBinner,
    IntersectionSVC,
    IntersectionSVR,
    MapRidge,
    MapRidgeClassifier,
    MapSVC,
    MapSVR,
    StreamPCA,
)
from hilbin.estimators.intersection.binner import STRETCH
from hilbin.estimators.intersection.shapes import ShapeLookup
from hilbin.estimators.linear.risk import uncoded
from hilbin.persist.errors import UnsupportedModelError
from hilbin.persist.onnx.exporters import CLASSIFIERS, REGRESSORS, TRANSFORMERS, transformed
from hilbin.persist.onnx.graph import Graph

LARGEST = np.finfo(np.float64).max


def _affine(graph: Graph, model: Any, x: str, where: str) -> str:
    multilabel = getattr(getattr(model, "_label_binarizer", None), "y_type_", "")
    if multilabel.startswith("multilabel"):
        raise UnsupportedModelError(f"{where} has several labels per row, which is not exported")
    coef = np.atleast_2d(model.coef_)
    result = graph.product(x, coef.T, np.atleast_1d(model.intercept_))
    return result if model.coef_.ndim == 2 else graph.op("Squeeze", result, np.array([1]))


def _of_features(graph: Graph, model: Any, x: str, where: str) -> str:
    return _affine(graph, model, _features(graph, model, x, where), where)


def _of_map(graph: Graph, model: Any, x: str, where: str) -> str:
    """Return the scores of a machine on the features of one map."""
    x = transformed(graph, uncoded(model.feature_map_), x, f"{where}.feature_map_")
    return _affine(graph, model, x, where)


def _features(graph: Graph, model: Any, x: str, where: str) -> str:
    """Return the features of all column groups of a model that learns from sums."""
    parts = []
    for name, columns, feature_map in model.transformers_:
        place = f"{where}.feature_map" if columns is None else f"{where}.transformers_[{name!r}]"
        own = x if columns is None else graph.op("Gather", x, columns, axis=1)
        parts.append(transformed(graph, feature_map, own, place))
    return parts[0] if len(parts) == 1 else graph.op("Concat", *parts, axis=1)


def _stream_pca(graph: Graph, step: Any, x: str, where: str) -> str:
    directions = (step.components_ / step._scale()[:, None]).T
    features = _features(graph, step, x, where)
    return graph.product(features, directions, -step.mean_ @ directions)


def _pipeline(graph: Graph, step: Any, x: str, where: str) -> str:
    for name, part in step.steps:
        x = transformed(graph, part, x, f"{where}.steps[{name!r}]")
    return x


def _union(graph: Graph, step: Any, x: str, where: str) -> str:
    parts = []
    for name, part in step.transformer_list:
        if isinstance(part, str) and part == "drop":
            continue
        one = transformed(graph, part, x, f"{where}.transformer_list[{name!r}]")
        weight = (step.transformer_weights or {}).get(name)
        parts.append(one if weight is None else graph.op("Mul", one, float(weight)))
    return graph.op("Concat", *parts, axis=1)


def _standard(graph: Graph, step: Any, x: str, where: str) -> str:
    if step.with_mean:
        x = graph.op("Sub", x, step.mean_)
    return graph.op("Div", x, step.scale_) if step.with_std else x


def _min_max(graph: Graph, step: Any, x: str, where: str) -> str:
    x = graph.op("Add", graph.op("Mul", x, step.scale_), step.min_)
    low, high = (float(end) for end in step.feature_range)
    return graph.op("Clip", x, low, high) if step.clip else x


def _max_abs(graph: Graph, step: Any, x: str, where: str) -> str:
    x = graph.op("Div", x, step.scale_)
    return graph.op("Clip", x, -1.0, 1.0) if getattr(step, "clip", False) else x


def _normalizer(graph: Graph, step: Any, x: str, where: str) -> str:
    kind = {"l1": "ReduceL1", "l2": "ReduceL2", "max": "ReduceMax"}[step.norm]
    of = graph.op("Abs", x) if step.norm == "max" else x
    norm = graph.op(kind, of, np.array([1]), keepdims=1)
    empty = graph.op("Equal", norm, 0.0)
    return graph.op("Div", x, graph.op("Where", empty, 1.0, norm))


def _pca(graph: Graph, step: Any, x: str, where: str) -> str:
    components = step.components_
    if step.whiten:
        scale = np.sqrt(step.explained_variance_)
        scale = np.maximum(scale, np.finfo(scale.dtype).eps)
        components = components / scale[:, None]
    return graph.product(graph.op("Sub", x, step.mean_), components.T)


def _svd(graph: Graph, step: Any, x: str, where: str) -> str:
    return graph.product(x, step.components_.T)


def _binned(graph: Graph, binner: HistogramBinner, x: str, where: str) -> str:
    """Return the bins of rows, or their measured values, as float64."""
    if binner.n_bins is None:
        inside = graph.op("Min", graph.op("Max", x, binner.low_), binner.high_)
        return graph.op("Mul", graph.op("Sub", inside, binner.low_), binner.scale_)
    if binner.strategy == "quantile" and not binner.integers_:
        edges = _padded(binner.edges_, binner.offsets_)
        reached = graph.op("GreaterOrEqual", graph.unsqueeze(x, 2), edges)
        return graph.sum(graph.cast(reached, np.float64), 2)
    scale = np.minimum(binner.scale_ * STRETCH, LARGEST)
    level = graph.op("Max", graph.op("Mul", graph.op("Sub", x, binner.low_), scale), 0.0)
    if binner.strategy == "sqrt" and not binner.integers_:
        level = graph.op("Sqrt", level)
    return graph.op("Floor", graph.op("Min", level, binner.last_.astype(np.float64)))


def _additive_scores(graph: Graph, model: Any, x: str, where: str) -> str:
    r"""Return the scores of an intersection SVM, one column for each.

    Binned values are looked up. Of exact ones, a shape function is made of lines between levels
    :math:`v_1 < \dots < v_m` and constant after the last:
    :math:`f(x) = \sum_i w_i \min(x, v_i)` with :math:`w_i` the slope before a level minus the
    slope after it.
    """
    shapes: ShapeLookup = model._lookup
    levels = _binned(graph, shapes.binner, x, where)
    if shapes.binner.n_bins is None:
        sums = _interpolated(graph, shapes, levels)
    else:
        starts, lookup = _stepped(shapes)
        place = graph.op("Add", graph.cast(levels, np.int64), starts)
        sums = graph.sum(graph.op("Gather", lookup, place), 1)
    return graph.op("Add", sums, model.intercept_)


def _additive_values(graph: Graph, model: Any, x: str, where: str) -> str:
    return graph.op("Squeeze", _additive_scores(graph, model, x, where), np.array([1]))


def _padded(edges: Array, offsets: Array) -> Array:
    """Return edges as features x most edges, filled up with infinity."""
    counts = np.diff(offsets)
    filled = np.full((counts.size, max(1, int(counts.max(initial=0)))), np.inf)
    filled[np.arange(filled.shape[1]) < counts[:, None]] = edges
    return filled


def _stepped(shapes: ShapeLookup) -> tuple[Array, Array]:
    """Return where the scores of each feature begin, and the scores of every bin."""
    values = shapes.lookup[:, : shapes.n_outputs]
    if shapes.levels is None:
        return shapes.offsets[:-1], values
    binner = shapes.binner
    parts = []
    for feature, last in enumerate(binner.last_):
        own = slice(*shapes.offsets[feature : feature + 2])
        at = np.arange(int(last) + 1) * binner.step_
        columns = [np.interp(at, shapes.levels[own], column) for column in values[own].T]
        parts.append(np.column_stack(columns))
    starts = np.concatenate(([0], np.cumsum(binner.last_ + 1)[:-1]))
    return starts, np.concatenate(parts)


def _interpolated(graph: Graph, shapes: ShapeLookup, measured: str) -> str:
    """Return the sums of shape functions that are lines between levels."""
    assert shapes.levels is not None
    first = np.zeros(shapes.levels.size, bool)
    first[shapes.offsets[:-1]] = True  # level 0, where every function is 0
    values = shapes.lookup[:, : shapes.n_outputs]
    run, rise = np.diff(shapes.levels, prepend=0.0), np.diff(values, axis=0, prepend=0.0)
    slope = np.divide(rise, run[:, None], out=np.zeros_like(rise), where=~first[:, None])
    last = np.append(first[1:], True)
    after = np.where(last[:, None], 0, np.roll(slope, -1, axis=0))
    feature = np.repeat(np.arange(shapes.offsets.size - 1), np.diff(shapes.offsets))
    kept = ~first
    if not kept.any():
        kept = first  # nothing but zeros: one of them keeps the graph a graph
    columns = graph.op("Gather", measured, feature[kept], axis=1)
    below = graph.op("Min", columns, shapes.levels[kept])
    return graph.product(below, (slope - after)[kept])


def _tfidf(graph: Graph, step: TfidfTransformer, x: str, where: str) -> str:
    if step.sublinear_tf:
        there = graph.op("Greater", x, 0.0)
        logs = graph.op("Log", graph.op("Where", there, x, 1.0))
        x = graph.op("Where", there, graph.op("Add", logs, 1.0), 0.0)
    if hasattr(step, "idf_"):
        x = graph.op("Mul", x, step.idf_)
    return x if step.norm is None else _normalizer(graph, step, x, where)


def _frozen(graph: Graph, step: FrozenEstimator, x: str, where: str) -> str:
    return transformed(graph, step.estimator, x, where)


LINEAR_CLASSIFIERS = (
    LinearSVC,
    LogisticRegression,
    LogisticRegressionCV,
    RidgeClassifier,
    RidgeClassifierCV,
    SGDClassifier,
)
LINEAR_REGRESSORS = (LinearRegression, LinearSVR, Ridge, RidgeCV, SGDRegressor)
CLASSIFIERS |= {
    IntersectionSVC: _additive_scores,
    MapRidgeClassifier: _of_features,
    MapSVC: _of_map,
    **dict.fromkeys(LINEAR_CLASSIFIERS, _affine),
}
REGRESSORS |= {
    IntersectionSVR: _additive_values,
    MapRidge: _of_features,
    MapSVR: _of_map,
    **dict.fromkeys(LINEAR_REGRESSORS, _affine),
}
TRANSFORMERS |= {
    FeatureUnion: _union,
    FrozenEstimator: _frozen,
    HistogramBinner: _binned,
    MaxAbsScaler: _max_abs,
    MinMaxScaler: _min_max,
    Normalizer: _normalizer,
    PCA: _pca,
    Pipeline: _pipeline,
    StandardScaler: _standard,
    StreamPCA: _stream_pca,
    TfidfTransformer: _tfidf,
    TruncatedSVD: _svd,
}
