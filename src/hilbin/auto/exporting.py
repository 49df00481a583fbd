"""The classifiers that choose, and their steps, as ONNX graphs.

A table must be of numbers: the graph takes all columns of the table, in their order, as one matrix
in which NaN is a missing value. Columns that are left out may hold any number.
"""

from typing import Any

import numpy as np

from hilbin.auto.candidates import Majority
from hilbin.auto.channels import ChannelMap, ChannelWeights
from hilbin.auto.dual import DualRidgeClassifier, DualSVC
from hilbin.auto.image_classifier import ImageClassifier
from hilbin.auto.table_classifier import TableClassifier
from hilbin.auto.table_encoder import TableEncoder
from hilbin.persist.errors import UnsupportedModelError
from hilbin.persist.onnx.exporters import (
    CLASSIFIERS,
    OF_IMAGES,
    TRANSFORMERS,
    scores,
    transformed,
)


def _of_table(graph: Any, model: TableClassifier, x: str, where: str) -> str:
    return scores(graph, model.model_, x, f"{where}.model_")


def _of_features(graph: Any, model: ImageClassifier, x: str, where: str) -> str:
    return scores(graph, model.model_[1], x, f"{where}.model_")


def _affine(graph: Any, model: Any, x: str, where: str) -> str:
    return str(graph.product(x, model.coef_.T, model.intercept_))


def _channels(graph: Any, step: ChannelMap, x: str, where: str) -> str:
    parts = []
    for (name, begin, end), made, factor in zip(
        step.channels_, step.maps_, step.factors_, strict=True
    ):
        own = graph.op("Gather", x, np.arange(begin, end), axis=1)
        features = transformed(graph, made, own, f"{where}.maps_[{name!r}]")
        parts.append(graph.op("Mul", features, float(factor)))
    return str(graph.op("Concat", *parts, axis=1))


def _weights(graph: Any, step: ChannelWeights, x: str, where: str) -> str:
    return str(graph.op("Mul", x, step.column_factors_))


def _numbers(graph: Any, step: TableEncoder, x: str, where: str) -> str:
    """Return the columns of numbers, with what stands for those that are missing."""
    if step.columns_ is None:
        return str(graph.op("Gather", x, step.input_columns_, axis=1))
    texts = [column.name for column in step.columns_ if column.categories is not None]
    if texts:
        raise UnsupportedModelError(
            f"{where} has the column {texts[0]!r}, which holds texts, and the ONNX graph takes "
            "numbers: encode texts before training, or leave the column out by drop="
        )
    taken = graph.op("Gather", x, np.array([c.place for c in step.columns_]), axis=1)
    missing = graph.op("IsNaN", taken)
    filled = graph.op("Where", missing, np.array([c.fill for c in step.columns_]), taken)
    marks = graph.cast(missing, np.float64)
    both = graph.op("Concat", filled, marks, axis=1)
    n, order = len(step.columns_), []
    for place, column in enumerate(step.columns_):
        order += [place, n + place] if column.indicates else [place]
    return str(graph.op("Gather", both, np.array(order), axis=1))


CLASSIFIERS |= {
    DualRidgeClassifier: _affine,
    DualSVC: _affine,
    ImageClassifier: _of_features,
    Majority: _affine,
    TableClassifier: _of_table,
}
OF_IMAGES |= {ImageClassifier: lambda model: model.model_[1]}
TRANSFORMERS |= {ChannelMap: _channels, ChannelWeights: _weights, TableEncoder: _numbers}
