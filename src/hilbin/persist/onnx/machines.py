"""Machines and projections that are sums over known rows, as graphs.

Their scores are products of kernel values with coefficients. A machine that was trained with
``kernel="precomputed"`` takes the kernel values of all training rows as its columns.
"""

from typing import Any

import numpy as np

from hilbin._arrays import Array, to_dense
from hilbin.estimators import (
    SVDD,
    InfiniteKernelSVC,
    KernelDiscriminant,
    KernelOneClass,
    KernelPCA,
    KernelRidge,
    KernelSVC,
    KernelSVR,
    MultipleKernelRidge,
    MultipleKernelRidgeClassifier,
    MultipleKernelSVC,
)
from hilbin.persist.errors import UnsupportedModelError
from hilbin.persist.onnx.exporters import (
    CLASSIFIERS,
    DETECTORS,
    REGRESSORS,
    TRANSFORMERS,
    transformed,
)
from hilbin.persist.onnx.graph import Graph
from hilbin.persist.onnx.kernels import diagonal, gram


def _sums(graph: Graph, model: Any, x: str, where: str) -> str:
    """Return the score of every machine, a column for each."""
    coef = to_dense(model.dual_coef_)
    if not model.support_.size:  # a product with zeros has the number of rows
        coef = np.zeros((model.n_features_in_, coef.shape[1]))
        return graph.product(x, coef, model.intercept_)
    if model._precomputed:
        values = graph.op("Gather", x, model.support_, axis=1)
    else:
        known = _dense(model.support_vectors_)
        values = gram(graph, model.kernel_, x, known, f"{where}.kernel_")
    return graph.product(values, coef, model.intercept_)


def _dense(rows: Any) -> Array:
    return np.asarray(to_dense(rows), np.float64)


# many classes
def _class_scores(graph: Graph, model: KernelSVC, x: str, where: str) -> str:
    """Return the scores of classes, by the rules of :mod:`hilbin.estimators.kernel.multiclass`."""
    sums, book = _sums(graph, model, x, where), model.code_book_
    if model.intercept_.size == 1 or book is None or model.multi_class == "ovr":
        return sums
    found = {"ovo": _votes, "dag": _rounds, "ecoc": _losses}[model.multi_class](graph, sums, book)
    if len(book) > 2:
        return found
    return graph.product(found, np.array([[-1.0], [1.0]]))


def _votes(graph: Graph, sums: str, book: Array) -> str:
    sides = graph.op("Where", graph.op("Greater", sums, 0.0), 0.5, -0.5)
    votes = graph.product(sides, book.T.astype(np.float64), np.array([(len(book) - 1) / 2]))
    return graph.op("Add", votes, _fractions(graph, sums, book))


def _rounds(graph: Graph, sums: str, book: Array) -> str:
    """Return the rounds in which classes leave: the first and the last that are left meet."""
    n = len(book)
    machine = np.zeros((n, n), int)
    machine[np.triu_indices(n, 1)] = np.arange(book.shape[1])
    one = graph.op("Gather", sums, np.array([0]), axis=1)  # a column, of which the shape is used
    first = graph.cast(graph.op("Mul", one, 0.0), np.int64)
    last = graph.op("Add", first, n - 1)
    rounds: Any = n - 1.0
    for k in range(n - 1):
        which = graph.op("Add", graph.op("Mul", first, n), last)
        score = graph.op("GatherElements", sums, graph.op("Gather", machine.ravel(), which), axis=1)
        wins = graph.op("Greater", score, 0.0)
        loser = graph.op("Where", wins, first, last)
        leaves = graph.op("Equal", loser, np.arange(n))
        rounds = graph.op("Where", leaves, float(k), rounds)
        won = graph.cast(wins, np.int64)
        first, last = graph.op("Add", first, won), graph.op("Sub", last, graph.op("Sub", 1, won))
    return graph.op("Add", rounds, _fractions(graph, sums, book))


def _losses(graph: Graph, sums: str, book: Array) -> str:
    each = graph.op("Mul", graph.unsqueeze(sums, 1), book.astype(np.float64))
    losses = graph.op("Max", graph.op("Sub", 1.0, each), 0.0)
    return graph.op("Neg", graph.sum(losses, 2))


def _fractions(graph: Graph, sums: str, book: Array) -> str:
    totals = graph.product(sums, book.T.astype(np.float64))
    size = graph.op("Mul", graph.op("Add", graph.op("Abs", totals), 1.0), 3.0)
    return graph.op("Div", totals, size)


# one class, and numbers
def _distance_inside(graph: Graph, model: SVDD, x: str, where: str) -> str:
    """Return ``R^2 - |phi(x) - c|^2``."""
    products = graph.op("Sub", _sums(graph, model, x, where), model.intercept_)
    if not model._precomputed:
        own = diagonal(graph, model.kernel_, x, model.n_features_in_, f"{where}.kernel_")
    elif model._own_value is None:
        raise UnsupportedModelError(
            f"{where} needs k(x, x) of every row beside its precomputed kernel values, which an "
            "ONNX graph of one input does not take: train with a kernel"
        )
    else:
        own = model._own_value
    constant = model.center_norm_**2 + model.offset_
    return graph.op("Sub", graph.op("Sub", graph.op("Mul", products, 2.0), own), constant)


def _first(graph: Graph, model: Any, x: str, where: str) -> str:
    return graph.op("Squeeze", _sums(graph, model, x, where), np.array([1]))


def _ridge(graph: Graph, model: KernelRidge, x: str, where: str) -> str:
    values = (
        x
        if model._precomputed
        else gram(graph, model.kernel_, x, _dense(model.X_fit_), f"{where}.kernel_")
    )
    coef = model.dual_coef_.reshape(len(model.dual_coef_), -1)
    sums = graph.product(values, coef, np.atleast_1d(model.intercept_))
    return sums if model.dual_coef_.ndim == 2 else graph.op("Squeeze", sums, np.array([1]))


# several kernels
def _shares(graph: Graph, model: Any, x: str, where: str) -> str:
    """Return the scores: what every kernel adds, and the intercept."""
    if model._precomputed:
        raise UnsupportedModelError(
            f"{where} takes a list of precomputed matrices, and an ONNX graph one: give it kernels"
        )
    known, factors = _dense(model.support_vectors_), np.atleast_2d(model.weights_ / model.scales_)
    used = np.flatnonzero(factors.any(axis=0) & (model.support_.size > 0))
    total = graph.product(x, np.zeros((model.n_features_in_, model.intercept_.size)))
    for j in used:
        values = gram(graph, model.kernels_[j], x, known, f"{where}.kernels_[{j}]")
        total = graph.op("Add", total, graph.product(values, model.dual_coef_ * factors[:, j]))
    return graph.op("Add", total, model.intercept_)


def _targets(graph: Graph, model: MultipleKernelRidge, x: str, where: str) -> str:
    found = _shares(graph, model, x, where)
    return graph.op("Squeeze", found, np.array([1])) if model._single else found


# coordinates
def _projected(graph: Graph, model: Any, x: str, where: str) -> str:
    if model._explicit:
        values = transformed(graph, model.feature_map_, x, f"{where}.feature_map_")
    elif model._precomputed:
        values = x
    else:
        values = gram(graph, model.kernel_, x, _dense(model.X_fit_), f"{where}.kernel_")
    return graph.product(values, model.coef_, model.intercept_)


def _discriminant_scores(graph: Graph, model: KernelDiscriminant, x: str, where: str) -> str:
    own = np.log(model.priors_) - np.square(model.means_).sum(axis=1) / 2
    means = model.means_
    if len(means) == 2:
        means, own = means[1:] - means[:1], own[1:] - own[:1]
    return graph.product(_projected(graph, model, x, where), means.T, own)


def _discriminants(graph: Graph, model: KernelDiscriminant, x: str, where: str) -> str:
    kept = np.arange(model._n_features_out)
    return graph.op("Gather", _projected(graph, model, x, where), kept, axis=1)


CLASSIFIERS |= {
    InfiniteKernelSVC: _shares,
    KernelDiscriminant: _discriminant_scores,
    KernelSVC: _class_scores,
    MultipleKernelRidgeClassifier: _shares,
    MultipleKernelSVC: _shares,
}
DETECTORS |= {KernelOneClass: _sums, SVDD: _distance_inside}
REGRESSORS |= {KernelRidge: _ridge, KernelSVR: _first, MultipleKernelRidge: _targets}
TRANSFORMERS[KernelDiscriminant] = _discriminants
TRANSFORMERS[KernelPCA] = _projected
