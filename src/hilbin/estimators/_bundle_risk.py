"""The risk of a model on features, in memory or as a sum over blocks, for the bundle solver."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline, make_pipeline

from hilbin._arrays import Array
from hilbin.estimators._passes import Indicators, Numbers, dense, required_targets
from hilbin.maps import PQCodes, ProductQuantizer, SparseMap
from hilbin.solvers import MatrixRows, NodeRows, Risk, WordRows
from hilbin.solvers._risk import beyond
from hilbin.stats import Totals
from hilbin.stream import Chunk

EXPANSIONS = ("delayed", "immediate")


def thawed(feature_map: Any) -> Any:
    """A frozen map itself."""
    return feature_map.estimator if isinstance(feature_map, FrozenEstimator) else feature_map


def last_step(feature_map: Any) -> Any:
    """The map itself, or the last of a pipeline."""
    whole = thawed(feature_map)
    return thawed(whole[-1]) if isinstance(whole, Pipeline) else whole


def uncoded(feature_map: Any) -> Any:
    """The map without its quantizer: weights are those of the words' space, where all rows lie."""
    whole, last = thawed(feature_map), last_step(feature_map)
    if not isinstance(last, ProductQuantizer):
        return feature_map
    before = whole[:-1] if isinstance(whole, Pipeline) and len(whole) > 1 else None
    if last.metric is None:
        return before
    return last.feature_map_ if before is None else make_pipeline(before, last.feature_map_)


def inner_of(feature_map: Any) -> Any:
    """The inner product of a map's features; None is the ordinary one."""
    last = last_step(feature_map)
    return None if getattr(last, "orthonormal", False) else getattr(last, "inner_", None)


@dataclass(frozen=True)
class Model:
    """What makes a risk of rows: their features, and what is asked of the scores."""

    feature_map: Any
    expansion: str
    targets: Numbers | Indicators
    loss: Any
    C: float
    bias: float
    budget: float
    exact: bool = False
    n_jobs: int | None = None

    def rows(self, X: Any) -> Any:
        """Features of rows, as a risk sees them: the compact kinds unless ``exact``."""
        coded = self.feature_map is None or isinstance(X, PQCodes)
        Z = X if coded else self.feature_map.transform(X)
        if isinstance(Z, PQCodes):
            dtype = np.float64 if self.exact else np.float32
            options: dict[str, Any] = {"expansion": self.expansion, "n_jobs": self.n_jobs}
            return WordRows(Z.chunks, Z.words, Z.n_features, dtype=dtype, **options)
        last = last_step(self.feature_map)
        if isinstance(last, SparseMap) and sp.issparse(Z) and not self.exact:
            return NodeRows(Z, n_jobs=self.n_jobs)
        return MatrixRows(Z)

    def risk(self, chunk: Chunk) -> Risk:
        """Of all rows of a block."""
        y = required_targets(chunk)
        weight = self.targets.weights(y, chunk.weight)
        T = dense(self.targets.targets(y))
        if isinstance(self.targets, Indicators):
            T = 2 * T - 1
        w = self.C if weight is None else self.C * weight
        return Risk(self.rows(chunk.X), self.loss, T, w, self.bias)

    def strips(self, chunk: Chunk, width: int) -> Iterator[Chunk]:
        """A block, cut so that the features of a part take about ``budget`` bytes."""
        height = int(max(1, self.budget // (8 * max(width, 1))))
        n = chunk.X.shape[0]
        if n <= height or self.feature_map is None:
            yield chunk
            return
        for begin in range(0, n, height):
            part = slice(begin, min(begin + height, n))
            y, w = (None if each is None else each[part] for each in (chunk.y, chunk.weight))
            yield chunk._replace(X=chunk.X[part], y=y, weight=w)


@dataclass(frozen=True)
class Look:
    """The risk of a block on the way from points to others; see ``Risk.between``."""

    model: Model
    best: Array
    new: Array
    which: Array
    steps: Array

    def __call__(self, chunk: Chunk) -> Totals:
        """Values at all steps, gradients at the last."""
        total = Totals(values=np.zeros(self.steps.shape), gradients=np.zeros(self.new.shape))
        both = np.concatenate([self.best, self.new])
        for part in self.model.strips(chunk, self.new.shape[1]):
            risk = self.model.risk(part)
            old, new = np.split(risk.scores(both), 2, axis=1)
            values, gradients = risk.between(old, new, self.which, self.steps)
            total += Totals(values=values, gradients=gradients)
        return total


class StreamedRisk:
    """The risk of blocks that are read again in every pass: the sum of :class:`Look` over them.

    Nothing is kept of a block, so the best points are scored again beside the new ones.

    Parameters
    ----------
    model : Model
    fold : callable
        From a function of blocks to its sum over all of them.
    size, tasks : int
        Number of weights and of tasks.
    """

    least = 0.0

    def __init__(self, model: Model, fold: Callable[[Any], Any], size: int, tasks: int) -> None:
        self.model, self._fold, self._shape = model, fold, (tasks, size)

    def start(self) -> "StreamedWay":
        """From 0."""
        return StreamedWay(self.model, self._fold, np.zeros(self._shape))


class StreamedWay:
    """The best points so far, and the risk on the way from there."""

    def __init__(self, model: Model, fold: Callable[[Any], Any], best: Array) -> None:
        self.model, self._fold, self._best = model, fold, best
        self.beyond = beyond(model.loss)

    def look(self, new: Array, which: Array, steps: Array) -> tuple[Array, Array]:
        """See :class:`hilbin.solvers._bundle.Way`."""
        self._new, self._which = new, which
        total = self._fold(Look(self.model, self._best[which], new, which, steps))
        return total["values"], total["gradients"]

    def go(self, steps: Array) -> None:
        """See :class:`hilbin.solvers._bundle.Way`."""
        best = self._best[self._which]
        self._best[self._which] = best + steps[:, None] * (self._new - best)
