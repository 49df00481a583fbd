"""What is summed in every pass over the data: callables from a block to a statistic.

They are values, so that they can be sent to other processes and a checkpoint knows its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from hilbin._arrays import Array, Matrix
from hilbin.estimators._descriptors import (
    Descriptor,
    Projections,
    features_of,
    side_by_side,
    strips,
)
from hilbin.solvers import RidgePath
from hilbin.stats import ClassSums, Moments, RowSample, StatisticTuple, TopScores, Totals
from hilbin.stream import Chunk

UNLABELED = -1


@dataclass(frozen=True)
class Numbers:
    """Targets of a regression: the numbers themselves."""

    def weights(self, y: Array, weight: Array | None) -> Array | None:
        """Of the rows."""
        return weight

    def targets(self, y: Array) -> Matrix:
        """One column for every target."""
        return np.asarray(y, np.float64).reshape(len(y), -1)


@dataclass(frozen=True)
class Indicators:
    """Targets of a classifier: 1 for the class of the row, 0 for others, 0 everywhere if none.

    Attributes
    ----------
    classes : array
        Sorted labels; of two, the second has the only column.
    factors : array or None
        Weight of every class.
    partly : bool
        Whether rows labeled -1 have no label.
    """

    classes: Array
    factors: Array | None = None
    partly: bool = False

    def _places(self, y: Array) -> tuple[Array, Array]:
        places = np.minimum(np.searchsorted(self.classes, y), self.classes.size - 1)
        return places, self.classes[places] == y

    def weights(self, y: Array, weight: Array | None) -> Array | None:
        """Of the rows, by their classes; 0 without a label."""
        places, known = self._places(y)
        unknown = ~known if weight is None else ~known & (weight > 0)
        if self.partly:
            unknown &= y != UNLABELED
        if unknown.any():
            raise ValueError(f"y has the label {y[unknown][0]!r}, not one of {self.classes}")
        if self.factors is None and known.all():
            return weight
        own = known * (1.0 if self.factors is None else self.factors[places])
        return own if weight is None else own * weight

    def targets(self, y: Array) -> Matrix:
        """A column for every class, sparse."""
        places, known = self._places(y)
        if self.classes.size == 2:
            return (known & (places == 1)).astype(np.float64)[:, None]
        rows = np.flatnonzero(known)
        shape = (len(y), self.classes.size)
        return sp.csr_array((np.ones(rows.size), (rows, places[rows])), shape)


@dataclass(frozen=True)
class Survey:
    """A sample of the rows, and what classes there are; the first pass."""

    size: int
    seed: int
    classes: bool
    partly: bool

    def __call__(self, chunk: Chunk) -> StatisticTuple:
        """Of a block."""
        sample = RowSample.of(
            chunk.X, self.size, seed=self.seed, begin=chunk.begin, weight=chunk.weight
        )
        if not self.classes:
            return StatisticTuple(sample)
        y = required_targets(chunk)
        return StatisticTuple(sample, labels_in(y, chunk.weight, self.partly))


@dataclass(frozen=True)
class Learn:
    """Moments of features and targets; of rows without a label beside them, if there are some."""

    descriptors: Sequence[Descriptor]
    targets: Numbers | Indicators
    budget: float
    projections: Projections | None = None
    settle: bool = False

    def __call__(self, chunk: Chunk) -> Any:
        """Of a block."""
        y = required_targets(chunk)
        weight = self.targets.weights(y, chunk.weight)
        T = self.targets.targets(y)
        bare = bare_weights(self.targets, y, chunk.weight)
        total: Any = None
        for part in strips(self.descriptors, chunk.X, self.budget):
            Z = side_by_side(features_of(self.descriptors, chunk.X[part], self.projections))
            one: Any = Moments.of(Z, T[part], None if weight is None else weight[part])
            if bare is not None:
                one = StatisticTuple(one, Moments.of(Z, weight=bare[part]))
            total = one if total is None else total.__iadd__(one)
        return total.settle() if self.settle and isinstance(total, Moments) else total


@dataclass(frozen=True)
class Describe:
    """Moments of the features of every descriptor; rows weigh what they weigh in ``targets``."""

    descriptors: Sequence[Descriptor]
    budget: float
    targets: Numbers | Indicators | None = None
    settle: bool = False

    def __call__(self, chunk: Chunk) -> StatisticTuple:
        """Of a block."""
        weight = chunk.weight
        if self.targets is not None:
            y = required_targets(chunk)
            weight = self.targets.weights(y, weight)
            bare = bare_weights(self.targets, y, chunk.weight)
            weight = weight if bare is None or weight is None else weight + bare
        total: Any = None
        for part in strips(self.descriptors, chunk.X, self.budget):
            each = features_of(self.descriptors, chunk.X[part])
            own = None if weight is None else weight[part]
            one = StatisticTuple(*(Moments.of(Z, weight=own) for Z in each))
            total = one if total is None else total.__iadd__(one)
        for moments in total.parts if self.settle else ():
            moments.settle()
        return total


@dataclass(frozen=True)
class LeaveOneOut:
    """Errors on rows left out, for every penalty of a path."""

    learn: Learn
    path: RidgePath
    components: Array | None
    scale: float
    shift: float

    def __call__(self, chunk: Chunk) -> Totals:
        """Of a block."""
        learn, y = self.learn, required_targets(chunk)
        weight = learn.targets.weights(y, chunk.weight)
        T = learn.targets.targets(y)
        T = dense(T) * self.scale + self.shift
        errors = np.zeros((self.path.alphas.size, T.shape[1]))
        for part in strips(learn.descriptors, chunk.X, learn.budget):
            Z = side_by_side(features_of(learn.descriptors, chunk.X[part], learn.projections))
            Z = Z if self.components is None else Z @ self.components.T
            own = None if weight is None else weight[part]
            errors += self.path.leave_one_out(dense(Z), T[part], own)
        return Totals(errors=errors)


@dataclass(frozen=True)
class Rank:
    """The highest scores of every class."""

    descriptors: Sequence[Descriptor]
    budget: float
    coef: Array
    intercept: Array
    rank: int

    def __call__(self, chunk: Chunk) -> TopScores:
        """Of a block."""
        scores = scores_of(self.descriptors, chunk.X, self.coef, self.intercept, self.budget)
        if scores.shape[1] == 1:
            scores = np.hstack([-scores, scores])
        return TopScores.of(scores, self.rank, chunk.weight)


def dense(Z: Matrix) -> Array:
    """``Z`` as an array."""
    return Z.toarray() if sp.issparse(Z) else Z


def scores_of(
    descriptors: Sequence[Descriptor], X: Matrix, coef: Array, intercept: Array, budget: float
) -> Array:
    """Scores of rows; ``coef`` has a row for every score."""
    scores = np.empty((X.shape[0], len(coef)))
    for part in strips(descriptors, X, budget):
        scores[part] = side_by_side(features_of(descriptors, X[part])) @ coef.T
    return scores + intercept


def bare_weights(targets: Numbers | Indicators, y: Array, weight: Array | None) -> Array | None:
    """Weights of the rows without a label; None if all have one."""
    if not (isinstance(targets, Indicators) and targets.partly):
        return None
    bare = np.asarray(y == UNLABELED, np.float64)
    return bare if weight is None else bare * weight


def labels_in(y: Array, weight: Array | None, partly: bool) -> ClassSums:
    """How much of every class there is; -1 is none of them if ``partly``."""
    if partly:
        known = y != UNLABELED
        y, weight = y[known], None if weight is None else weight[known]
    return ClassSums.of(y, weight=weight)


def required_targets(chunk: Chunk) -> Array:
    """The targets of a block, which must have some."""
    if chunk.y is None:
        raise ValueError(f"{chunk.source}: there are no targets; give y, or blocks (X, y)")
    return chunk.y
