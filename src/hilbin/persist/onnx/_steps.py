"""Which step of a model is exported how; scikit-learn's own steps."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.decomposition import PCA, TruncatedSVD
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
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    StandardScaler,
)
from sklearn.svm import LinearSVC, LinearSVR

from hilbin.estimators import (
    HistogramBinner,
    IntersectionSVC,
    IntersectionSVR,
    MapRidge,
    MapRidgeClassifier,
    StreamPCA,
)
from hilbin.maps import AdditiveMap, FourierMap, NystroemMap, SparseMap
from hilbin.persist._errors import UnsupportedModelError
from hilbin.persist.onnx import _maps, _nodes, _tables
from hilbin.persist.onnx._graph import Graph, Output

Outputs = dict[str, Output]
Step = Callable[[Graph, Any, str, str], str]  # of a graph, a fitted step, its input, its place


def outputs_of(graph: Graph, model: Any, x: str, where: str) -> Outputs:
    """The outputs of the last step of a model, by name."""
    if type(model) is Pipeline:
        *steps, (name, last) = model.steps
        for place, step in steps:
            x = transformed(graph, step, x, f"{where}.steps[{place!r}]")
        return outputs_of(graph, last, x, f"{where}.steps[{name!r}]")
    if type(model) in CLASSIFIERS:
        return _labeled(graph, model, CLASSIFIERS[type(model)](graph, model, x, where), where)
    if type(model) in REGRESSORS:
        result = REGRESSORS[type(model)](graph, model, x, where)
        return {"value": Output(result, np.float64, np.ndim(getattr(model, "coef_", 0)) or 1)}
    return {"features": Output(transformed(graph, model, x, where), np.float64, 2)}


def n_features_of(model: Any) -> int:
    """The width of the rows that a model takes; its first step may be ``"passthrough"``."""
    if type(model) is Pipeline:
        return n_features_of(next(step for _, step in model.steps if not isinstance(step, str)))
    return int(model.n_features_in_)


def transformed(graph: Graph, step: Any, x: str, where: str) -> str:
    """The result of a transformer."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return x
    if type(step) is FunctionTransformer and step.func is None:
        return x
    if type(step) not in TRANSFORMERS:
        raise UnsupportedModelError(
            f"{where} is a {type(step).__name__}, which cannot be exported to ONNX"
        )
    return TRANSFORMERS[type(step)](graph, step, x, where)


def _labeled(graph: Graph, model: Any, scores: str, where: str) -> Outputs:
    classes = np.asarray(model.classes_) if not isinstance(model.classes_, list) else None
    texts = classes is not None and classes.dtype == object
    if classes is None or classes.dtype.kind not in "iufbUO":
        raise UnsupportedModelError(f"{where} has labels that cannot be exported to ONNX")
    if texts and not all(isinstance(label, str) for label in classes):
        raise UnsupportedModelError(f"{where} has labels that are neither numbers nor texts")
    if classes.size == 2:
        scores = graph.op("Squeeze", scores, np.array([1]))
        best = graph.cast(graph.op("Greater", scores, 0.0), np.int64)
    else:
        best = graph.op("ArgMax", scores, axis=1, keepdims=0)
    kind = {"i": np.int64, "u": np.int64, "f": np.float64}.get(classes.dtype.kind, classes.dtype)
    return {
        "label": Output(graph.op("Gather", classes, best), kind, 1),
        "scores": Output(scores, np.float64, 1 if classes.size == 2 else 2),
    }


def _affine(graph: Graph, model: Any, x: str, where: str) -> str:
    multilabel = getattr(getattr(model, "_label_binarizer", None), "y_type_", "")
    if multilabel.startswith("multilabel"):
        raise UnsupportedModelError(f"{where} has several labels per row, which is not exported")
    coef = np.atleast_2d(model.coef_)
    result = graph.product(x, coef.T, np.atleast_1d(model.intercept_))
    return result if model.coef_.ndim == 2 else graph.op("Squeeze", result, np.array([1]))


def _of_features(graph: Graph, model: Any, x: str, where: str) -> str:
    return _affine(graph, model, _features(graph, model, x, where), where)


def _features(graph: Graph, model: Any, x: str, where: str) -> str:
    """The features of all descriptors of a model that learns from sums, side by side."""
    parts = []
    for name, columns, feature_map in model.transformers_:
        place = f"{where}.map" if columns is None else f"{where}.blocks[{name!r}]"
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


def _codes(graph: Graph, step: Any, x: str, where: str) -> str:
    return _tables.codes(graph, step, x)


def _table_scores(graph: Graph, model: Any, x: str, where: str) -> str:
    return _tables.scores(graph, model, x)


def _table_values(graph: Graph, model: Any, x: str, where: str) -> str:
    return graph.op("Squeeze", _tables.scores(graph, model, x), np.array([1]))


CLASSIFIERS: dict[type, Step] = {
    MapRidgeClassifier: _of_features,
    IntersectionSVC: _table_scores,
    LinearSVC: _affine,
    LogisticRegression: _affine,
    LogisticRegressionCV: _affine,
    RidgeClassifier: _affine,
    RidgeClassifierCV: _affine,
    SGDClassifier: _affine,
}
REGRESSORS: dict[type, Step] = {
    MapRidge: _of_features,
    IntersectionSVR: _table_values,
    LinearRegression: _affine,
    LinearSVR: _affine,
    Ridge: _affine,
    RidgeCV: _affine,
    SGDRegressor: _affine,
}
TRANSFORMERS: dict[type, Step] = {
    AdditiveMap: _maps.additive,
    FeatureUnion: _union,
    FourierMap: lambda graph, step, x, where: _maps.fourier(graph, step, x, where, transformed),
    FrozenEstimator: lambda graph, step, x, where: transformed(graph, step.estimator, x, where),
    HistogramBinner: _codes,
    MaxAbsScaler: _max_abs,
    MinMaxScaler: _min_max,
    Normalizer: _normalizer,
    NystroemMap: _maps.nystroem,
    PCA: _pca,
    Pipeline: _pipeline,
    SparseMap: _nodes.sparse,
    StandardScaler: _standard,
    StreamPCA: _stream_pca,
    TruncatedSVD: _svd,
}
