"""The risk of a model on the features of rows, in memory or as a sum over chunks.

:func:`~hilbin.solvers.bundle` minimizes it. Features of rows in memory are computed once; those of
chunks are computed again in every pass.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline, make_pipeline

from hilbin._arrays import Array, to_dense
from hilbin.estimators.linear.passes import (
    Indicators,
    Numbers,
    Passes,
    is_left_out,
    required_targets,
)
from hilbin.maps import PQCodes, ProductQuantizer, SparseMap
from hilbin.solvers.coded import PairRows, PQRows
from hilbin.solvers.risk import Loss, MatrixRows, Risk, beyond
from hilbin.stats import Totals
from hilbin.stream import Chunk


# maps
def thawed(feature_map: Any) -> Any:
    """Return the map that is in a frozen one."""
    return feature_map.estimator if isinstance(feature_map, FrozenEstimator) else feature_map


def last_step(feature_map: Any) -> Any:
    """Return the last step of a pipeline, or the map itself."""
    whole = thawed(feature_map)
    return thawed(whole[-1]) if isinstance(whole, Pipeline) else whole


def uncoded(feature_map: Any) -> Any:
    """Return the map without its quantizer: rows lie in the space of the words, as weights do."""
    whole, last = thawed(feature_map), last_step(feature_map)
    if not isinstance(last, ProductQuantizer):
        return feature_map
    before = whole[:-1] if isinstance(whole, Pipeline) and len(whole) > 1 else None
    if last.metric is None:
        return before
    return last.feature_map_ if before is None else make_pipeline(before, last.feature_map_)


def inner_product(feature_map: Any) -> Any:
    """Return the inner product of a map's features; None is the ordinary one."""
    last = last_step(feature_map)
    return None if getattr(last, "orthonormal", False) else getattr(last, "inner_", None)


# features and risk
@dataclass(frozen=True)
class Features:
    """The features of rows, as a risk takes them.

    Attributes
    ----------
    feature_map : transformer or None
    expansion : {"delayed", "immediate"}
        How codes are scored.
    exact : bool
        Whether features are not rounded to compact kinds.
    n_jobs : int or None
    budget : float
        Bytes of the features of a slice of rows.
    """

    feature_map: Any
    expansion: Any
    exact: bool
    n_jobs: int | None
    budget: float

    @property
    def unrounded(self) -> Self:
        """The same features, of which none are rounded to compact kinds."""
        return replace(self, exact=True)

    def rows(self, X: Any) -> Any:
        """Return the features of rows, with ``scores`` and ``gradient``.

        Compact kinds are rounded by the largest of all rows, so they are for training alone.
        """
        coded = self.feature_map is None or isinstance(X, PQCodes)
        Z = X if coded else self.feature_map.transform(X)
        if isinstance(Z, PQCodes):
            dtype = np.float64 if self.exact else np.float32
            options: dict[str, Any] = {"expansion": self.expansion, "n_jobs": self.n_jobs}
            return PQRows(Z.groups, Z.words, Z.n_features, dtype=dtype, **options)
        last = last_step(self.feature_map)
        pairs = isinstance(last, SparseMap) and not last.orthonormal
        if pairs and sp.issparse(Z) and not self.exact:
            return PairRows(Z, n_nodes=last.nodes_.size, n_jobs=self.n_jobs)
        return MatrixRows(Z)

    def slices(self, chunk: Chunk, width: int) -> Iterator[Chunk]:
        """Yield runs of rows of a chunk, whose features take about ``budget`` bytes."""
        height = int(max(1, self.budget // (8 * max(width, 1))))
        n = chunk.X.shape[0]
        if n <= height or self.feature_map is None:
            yield chunk
            return
        for begin in range(0, n, height):
            yield run_of(chunk, slice(begin, min(begin + height, n)))


def run_of(chunk: Chunk, rows: slice) -> Chunk:
    """Return a run of the rows of a chunk."""
    y, weight = (None if each is None else each[rows] for each in (chunk.y, chunk.weight))
    return chunk._replace(X=chunk.X[rows], y=y, weight=weight)


@dataclass(frozen=True)
class ChunkRisk:
    """The risk of a chunk: features, targets, and the weight ``C`` of the loss.

    With ``partly``, the rows that are left out for probabilities have no weight.
    """

    features: Features
    targets: Numbers | Indicators
    loss: Loss
    C: float
    constant: float
    partly: bool = False

    def __call__(self, chunk: Chunk) -> Risk:
        """Return the risk of all rows of a chunk."""
        y = required_targets(chunk)
        weight = self.targets.weights(y, chunk.weight)
        if self.partly:
            weight = (1.0 if weight is None else weight) * ~is_left_out(chunk.X)
        T = to_dense(self.targets.targets(y))
        if isinstance(self.targets, Indicators):
            T = 2 * T - 1
        w = self.C if weight is None else self.C * weight
        return Risk(self.features.rows(chunk.X), self.loss, T, w, self.constant)


@dataclass(frozen=True)
class RiskOnLines:
    """What is summed in a pass: the risk on lines, see :meth:`hilbin.solvers.Risk.between`."""

    risk: ChunkRisk
    old: Array
    new: Array
    which: Array
    steps: Array

    def __call__(self, chunk: Chunk) -> Totals:
        """Return values at all steps, and gradients at the last."""
        total = Totals(values=np.zeros(self.steps.shape), gradients=np.zeros(self.new.shape))
        both = np.concatenate([self.old, self.new])
        for part in self.risk.features.slices(chunk, self.new.shape[1]):
            risk = self.risk(part)
            old, new = np.split(risk.scores(both), 2, axis=1)
            values, gradients = risk.between(old, new, self.which, self.steps)
            total += Totals(values=values, gradients=gradients)
        return total


class StreamedRisk:
    """The risk of chunks that are read again in every pass, as an oracle of ``bundle``.

    Nothing is kept of a chunk, so the best points are scored again beside the new ones.

    Parameters
    ----------
    risk : ChunkRisk
    passes : Passes
    """

    least = 0.0

    def __init__(self, risk: ChunkRisk, passes: Passes) -> None:
        one = risk(run_of(passes.first(), slice(0, 1)))
        self.size, self.tasks = one.size, one.tasks
        self.beyond = beyond(risk.loss)
        self._risk, self._passes = risk, passes

    def start(self) -> "StreamedRisk":
        """Begin lines at 0."""
        self._best = np.zeros((self.tasks, self.size))
        return self

    def look(self, new: Array, which: Array, steps: Array) -> tuple[Array, Array]:
        """Return values at steps towards ``new``, and gradients at the last step."""
        self._new, self._which = new, which
        of = RiskOnLines(self._risk, self._best[which], new, which, steps)
        total = self._passes.fold("risk", of)
        return total["values"], total["gradients"]

    def go(self, steps: Array) -> None:
        """Move the best point of every task by a share of its line."""
        best = self._best[self._which]
        self._best[self._which] = best + steps[:, None] * (self._new - best)
