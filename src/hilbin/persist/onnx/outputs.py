"""The outputs of a model: labels, scores, probabilities, values or features, by name."""

from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV, _SigmoidCalibration
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.pipeline import Pipeline

from hilbin._arrays import Array
from hilbin.estimators import ScoreCalibration
from hilbin.estimators._fit import AHEAD
from hilbin.persist.errors import UnsupportedModelError
from hilbin.persist.onnx import exporters
from hilbin.persist.onnx.exporters import (
    CLASSIFIERS,
    DETECTORS,
    OF_IMAGES,
    REGRESSORS,
    transformed,
)
from hilbin.persist.onnx.graph import Graph, Output

Outputs = dict[str, Output]
TINY = np.finfo(np.float64).tiny


def outputs_of(graph: Graph, model: Any, x: str, where: str) -> Outputs:
    """Return the outputs of the last step of a model, by name."""
    x, model, where = exporters.last_step(graph, model, x, where)
    if type(model) is CalibratedClassifierCV:
        return _calibrated(graph, model, x, where)
    if type(model) in CLASSIFIERS:
        return _labeled(graph, model, exporters.scores(graph, model, x, where), where)
    if type(model) in DETECTORS:
        scores = graph.op("Squeeze", DETECTORS[type(model)](graph, model, x, where), np.array([1]))
        inside = graph.op("GreaterOrEqual", scores, 0.0)
        signs = graph.op("Where", inside, np.array(1), np.array(-1))
        return {"label": Output(signs, np.int64, 1), "scores": Output(scores, np.float64, 1)}
    if type(model) in REGRESSORS:
        result = REGRESSORS[type(model)](graph, model, x, where)
        return {"value": Output(result, np.float64, _n_axes(model))}
    return {"features": Output(transformed(graph, model, x, where), np.float64, 2)}


def _n_axes(model: Any) -> int:
    """Return the number of axes of the predictions of a regressor."""
    if hasattr(model, "_single"):
        return 1 if model._single else 2
    coef = getattr(model, "dual_coef_", getattr(model, "coef_", None))
    return 1 if coef is None or hasattr(model, "support_") else np.ndim(coef)


def n_features_of(model: Any) -> int:
    """Return the number of features a model takes; its first step may be ``"passthrough"``."""
    if type(model) is Pipeline:
        return n_features_of(next(step for _, step in model.steps if not isinstance(step, str)))
    if type(model) is CalibratedClassifierCV:
        return n_features_of(model.calibrated_classifiers_[0].estimator)
    if type(model) is FrozenEstimator:
        return n_features_of(model.estimator)
    if type(model) in OF_IMAGES:
        return n_features_of(OF_IMAGES[type(model)](model))
    return int(model.n_features_in_)


def _labeled(graph: Graph, model: Any, scores: str, where: str) -> Outputs:
    classes = _classes(model, where)
    if classes.size == 2:
        scores = graph.op("Squeeze", scores, np.array([1]))
        best = graph.cast(graph.op("Greater", scores, 0.0), np.int64)
    else:
        best = graph.op("ArgMax", scores, axis=1, keepdims=0)
    outputs = {
        "label": _label(graph, classes, best),
        "scores": Output(scores, np.float64, 1 if classes.size == 2 else 2),
    }
    calibration = getattr(model, "calibration_", None)
    if isinstance(calibration, ScoreCalibration):
        probabilities = _probabilities(graph, calibration, scores, best)
        outputs["probabilities"] = Output(probabilities, np.float64, 2)
    return outputs


def _classes(model: Any, where: str) -> Array:
    classes = np.asarray(model.classes_) if not isinstance(model.classes_, list) else None
    if classes is None or classes.dtype.kind not in "iufbUO":
        raise UnsupportedModelError(f"{where} has labels that cannot be exported to ONNX")
    if classes.dtype == object and not all(isinstance(label, str) for label in classes):
        raise UnsupportedModelError(f"{where} has labels that are neither numbers nor texts")
    return classes


def _label(graph: Graph, classes: Array, best: str) -> Output:
    kind = {"i": np.int64, "u": np.int64, "f": np.float64}.get(classes.dtype.kind, classes.dtype)
    return Output(graph.op("Gather", classes, best), kind, 1)


# probabilities
def _probabilities(graph: Graph, calibration: ScoreCalibration, scores: str, best: str) -> str:
    """Return the probabilities that belong to scores; ``best`` is the class of the highest."""
    K = calibration.classes_.size
    columns = graph.unsqueeze(scores, 1) if K == 2 else scores
    if calibration.method_ == "isotonic":
        P = _isotonic(graph, calibration, columns)
    else:
        P = _logistic(graph, calibration, columns)
    # as in hilbin.estimators._fit.agreeing, but for the calibration's own sums
    P = _shares(graph, P, K)
    best = graph.unsqueeze(best, 1)
    own = graph.op("Equal", best, np.arange(K))
    above = graph.op("Greater", P, graph.op("GatherElements", P, best, axis=1))
    shared = graph.cast(graph.op("Or", own, above), np.float64)
    count = graph.sum(shared, 1, keepdims=True)
    mean = graph.op("Div", graph.sum(graph.op("Mul", P, shared), 1, keepdims=True), count)
    P = graph.op("Where", graph.op("Or", own, above), mean, P)
    P = graph.op("Mul", P, graph.op("Where", own, 1 + AHEAD, 1.0))
    return graph.op("Div", P, graph.sum(P, 1, keepdims=True))


def _logistic(graph: Graph, calibration: ScoreCalibration, scores: str) -> str:
    logits = graph.op("Add", graph.op("Mul", scores, calibration.coef_), calibration.intercept_)
    if calibration.method_ == "softmax":
        return graph.op("Softmax", logits, axis=1)
    if calibration.classes_.size == 2:  # 1 - p would lose the digits of a small probability
        logits = graph.op("Concat", graph.op("Neg", logits), logits, axis=1)
    return graph.op("Sigmoid", logits)


def _isotonic(graph: Graph, calibration: ScoreCalibration, scores: str) -> str:
    ends = zip(calibration.offsets_[:-1], calibration.offsets_[1:], strict=True)
    parts = [
        _between(
            graph,
            graph.op("Gather", scores, np.array([column]), axis=1),
            calibration.scores_[begin:end],
            calibration.probabilities_[begin:end],
        )
        for column, (begin, end) in enumerate(ends)
    ]
    if calibration.classes_.size == 2:
        parts.insert(0, graph.op("Sub", 1.0, parts[0]))
    return graph.op("Concat", *parts, axis=1)


def _between(graph: Graph, column: str, at: Array, values: Array) -> str:
    """Return the lines between ``values`` at the points ``at``, constant beyond the ends."""
    if at.size == 1:
        return graph.product(column, np.zeros((1, 1)), values)
    width = np.maximum(np.diff(at), TINY)
    share = graph.op("Div", graph.op("Sub", column, at[:-1]), width)
    share = graph.op("Clip", share, 0.0, 1.0)
    return graph.product(share, np.diff(values)[:, None], values[:1])


def _shares(graph: Graph, P: str, K: int) -> str:
    """Return numbers over the sum of their row, or all the same if that is 0."""
    total = graph.sum(P, 1, keepdims=True)
    some = graph.op("Greater", total, 0.0)
    return graph.op("Where", some, graph.op("Div", P, graph.op("Where", some, total, 1.0)), 1 / K)


def _calibrated(graph: Graph, model: CalibratedClassifierCV, x: str, where: str) -> Outputs:
    """Return the mean of the probabilities of all copies of a calibrated classifier."""
    parts = [
        _of_copy(graph, part, x, f"{where}.calibrated_classifiers_[{i}]")
        for i, part in enumerate(model.calibrated_classifiers_)
    ]
    total = parts[0]
    for part in parts[1:]:
        total = graph.op("Add", total, part)
    mean = graph.op("Div", total, float(len(parts)))
    best = graph.op("ArgMax", mean, axis=1, keepdims=0)
    label = _label(graph, _classes(model, where), best)
    return {"label": label, "probabilities": Output(mean, np.float64, 2)}


def _of_copy(graph: Graph, part: Any, x: str, where: str) -> str:
    estimator, K = part.estimator, len(part.classes)
    if not np.array_equal(estimator.classes_, part.classes):
        raise UnsupportedModelError(
            f"{where} has not seen all classes, which is not exported: give CalibratedClassifierCV "
            "folds that have all of them, such as StratifiedKFold"
        )
    scores = exporters.scores(graph, estimator, x, f"{where}.estimator")
    columns = [
        _of_score(graph, c, graph.op("Gather", scores, np.array([k]), axis=1), where)
        for k, c in enumerate(part.calibrators)
    ]
    if K == 2:
        return graph.op("Concat", graph.op("Sub", 1.0, columns[0]), columns[0], axis=1)
    return _shares(graph, graph.op("Concat", *columns, axis=1), K)


def _of_score(graph: Graph, calibrator: Any, column: str, where: str) -> str:
    if isinstance(calibrator, _SigmoidCalibration):
        logits = graph.op("Mul", column, -float(calibrator.a_))
        return graph.op("Sigmoid", graph.op("Sub", logits, float(calibrator.b_)))
    if isinstance(calibrator, IsotonicRegression):
        return _between(graph, column, calibrator.X_thresholds_, calibrator.y_thresholds_)
    name = type(calibrator).__name__.lstrip("_")
    raise UnsupportedModelError(
        f"{where} is calibrated by {name}, which is not exported to ONNX: take "
        'method="sigmoid" or "isotonic"'
    )
