"""Which function exports which class, and the way from a step to its function.

A function takes a graph, a fitted step, the name of its input and the place of the step in the
model, and returns the name of its result. This module does not import onnx: packages above this
one enter the functions of their own classes (:mod:`hilbin.auto.exporting`).
"""

from collections.abc import Callable
from typing import Any

from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from hilbin.persist.errors import UnsupportedModelError

Exporter = Callable[[Any, Any, str, str], str]

CLASSIFIERS: dict[type, Exporter] = {}  # to scores, one column for two classes
DETECTORS: dict[type, Exporter] = {}  # to scores, a column that is negative for outliers
REGRESSORS: dict[type, Exporter] = {}
TRANSFORMERS: dict[type, Exporter] = {}
# classifiers of images, to the classifier of the rows of their features
OF_IMAGES: dict[type, Callable[[Any], Any]] = {}


def transformed(graph: Any, step: Any, x: str, where: str) -> str:
    """Return the result of a transformer."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return x
    if type(step) is FunctionTransformer and step.func is None:
        return x
    if type(step) not in TRANSFORMERS:
        raise UnsupportedModelError(_refusal(step, where, TRANSFORMERS))
    return TRANSFORMERS[type(step)](graph, step, x, where)


def scores(graph: Any, model: Any, x: str, where: str) -> str:
    """Return the scores of a classifier, or of the last step of a pipeline."""
    x, model, where = last_step(graph, model, x, where)
    if type(model) not in CLASSIFIERS:
        raise UnsupportedModelError(_refusal(model, where, CLASSIFIERS))
    return CLASSIFIERS[type(model)](graph, model, x, where)


def last_step(graph: Any, model: Any, x: str, where: str) -> tuple[str, Any, str]:
    """Return the input of the last step of a pipeline, the step and its place."""
    if type(model) is FrozenEstimator:
        return last_step(graph, model.estimator, x, where)
    if type(model) is not Pipeline:
        return x, model, where
    *steps, (name, last) = model.steps
    for place, step in steps:
        x = transformed(graph, step, x, f"{where}.steps[{place!r}]")
    return last_step(graph, last, x, f"{where}.steps[{name!r}]")


def _refusal(step: Any, where: str, table: dict[type, Exporter]) -> str:
    known = ", ".join(sorted({cls.__name__ for cls in table if cls.__name__[0] != "_"}))
    return (
        f"{where} is a {type(step).__name__}, which cannot be exported to ONNX: hilbin.save keeps "
        f"it for Python; exported are {known}"
    )
