"""Passes over the data, and what is summed in each: functions of a chunk that give a statistic.

The functions are frozen values, so that they can be sent to other processes, and so that a
checkpoint can tell whether it belongs to the same sum.
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs

from hilbin._arrays import Array, Matrix, to_dense
from hilbin.estimators.linear.progress import Progress
from hilbin.estimators.linear.transformers import (
    Projections,
    Transformer,
    group_features,
    joint_features,
    row_slices,
)
from hilbin.estimators.probability import row_keys
from hilbin.solvers.ridge import RidgePath
from hilbin.stats import (
    ClassSums,
    DistinctSample,
    Moments,
    RowSample,
    StatisticTuple,
    TopScores,
    Totals,
)
from hilbin.stats.stacked import StackedRows
from hilbin.stream import Chunk, Chunks, fold

UNLABELED = -1
PARTS = 10  # of the rows of chunks, of which one is left out for probabilities


class Passes:
    """The passes of one fit: each is a sum over all chunks, with a checkpoint of its own.

    In a ``with`` statement, checkpoints are removed at the end, unless an error ends it.

    Parameters
    ----------
    data : Chunk or Chunks
        Rows in memory are one chunk.
    n_jobs : int, optional
        Chunks computed side by side.
    client : distributed.Client, optional
        The Dask cluster to compute on.
    checkpoint : path, optional
        Folder of the checkpoints.
    callback : callable, optional
        Called with the name of the pass, the rows done, and all rows or None.
    verbose : int, default=0
        1 prints how far a pass has come, if it takes over two seconds.
    """

    def __init__(
        self,
        data: Chunk | Chunks,
        n_jobs: int | None = None,
        client: Any = None,
        checkpoint: Any = None,
        callback: Callable[[str, int, int | None], object] | None = None,
        verbose: int = 0,
    ) -> None:
        self.data, self.n_jobs, self.client = data, n_jobs, client
        self.callback, self.verbose = callback, verbose
        self.folder = None if checkpoint is None else Path(checkpoint)
        self._made: list[Path] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if kind is not None:
            return
        for place in self._made:
            shutil.rmtree(place, ignore_errors=True)
        if self.folder is not None and self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()

    def first(self) -> Chunk:
        """Return the first chunk."""
        return self.data if isinstance(self.data, Chunk) else next(iter(self.data))

    def fold(self, name: str, of: Any, data: Chunks | None = None) -> Any:
        """Return the sum of ``of(chunk)`` over all chunks; a finished sum is kept until the end."""
        chunks = self.data if data is None else data
        if isinstance(chunks, Chunk):
            return of(chunks)
        key = {"pass": name, **{f.name: getattr(of, f.name) for f in fields(of)}}
        key.pop("settle", None)
        if effective_n_jobs(self.n_jobs) > 1 and hasattr(of, "settle"):
            of = replace(of, settle=True)
        place = None if self.folder is None else self.folder / name
        if place is not None:
            self._made.append(place)
        progress = Progress(name) if self.verbose else None

        def tell(done: int, rows: int | None) -> None:
            if progress is not None:
                progress(done, rows)
            if self.callback is not None:
                self.callback(name, done, rows)

        total = fold(
            chunks,
            of,
            n_jobs=self.n_jobs,
            client=self.client,
            checkpoint=place,
            key=key,
            keep=True,
            callback=tell,
        )
        if progress is not None:
            progress.end()
        return total


# targets
@dataclass(frozen=True)
class Numbers:
    """Targets of a regression: the numbers themselves."""

    def weights(self, y: Array, weight: Array | None) -> Array | None:
        """Return the weights of rows."""
        return weight

    def targets(self, y: Array) -> Matrix:
        """Return one column for every target."""
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

    def places(self, y: Array) -> Array:
        """Return the place of every label among the classes."""
        return self._places(y)[0]

    def _places(self, y: Array) -> tuple[Array, Array]:
        places = np.minimum(np.searchsorted(self.classes, y), self.classes.size - 1)
        return places, self.classes[places] == y

    def weights(self, y: Array, weight: Array | None) -> Array | None:
        """Return the weights of rows, times those of their classes; 0 without a label."""
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
        """Return a column for every class, sparse."""
        places, known = self._places(y)
        if self.classes.size == 2:
            return (known & (places == 1)).astype(np.float64)[:, None]
        rows = np.flatnonzero(known)
        shape = (len(y), self.classes.size)
        return sp.csr_array((np.ones(rows.size), (rows, places[rows])), shape)


def required_targets(chunk: Chunk) -> Array:
    """Return the targets of a chunk, which must have some."""
    if chunk.y is None:
        raise ValueError(f"{chunk.source}: there are no targets; give y, or chunks (X, y)")
    return chunk.y


def labels_in(y: Array, weight: Array | None, partly: bool) -> ClassSums:
    """Return the classes and the weight of each; -1 is none of them if ``partly``."""
    if partly:
        known = y != UNLABELED
        y, weight = y[known], None if weight is None else weight[known]
    return ClassSums.of(y, weight=weight)


def unlabeled_weights(
    targets: Numbers | Indicators, y: Array, weight: Array | None
) -> Array | None:
    """Return the weights of the rows without a label, or None if all rows must have one."""
    if not (isinstance(targets, Indicators) and targets.partly):
        return None
    unlabeled = np.asarray(y == UNLABELED, np.float64)
    return unlabeled if weight is None else unlabeled * weight


# sums
@dataclass(frozen=True)
class Survey:
    """A sample of at most ``size`` different rows, and the classes if they are asked for."""

    size: int
    seed: int
    classes: bool = False
    partly: bool = False

    def __call__(self, chunk: Chunk) -> StatisticTuple:
        """Return the sample of a chunk unless ``size`` is 0, then its classes."""
        found: list[Any] = []
        if self.size:
            options: dict[str, Any] = {"seed": self.seed, "weight": chunk.weight}
            found.append(
                DistinctSample.of(chunk.X, self.size, numbers=row_keys(chunk.X), **options)
            )
        if self.classes:
            found.append(labels_in(required_targets(chunk), chunk.weight, self.partly))
        return StatisticTuple(*found)


@dataclass(frozen=True)
class LabeledSample:
    """A random sample of at most ``size`` rows, with the places of their classes and weights.

    With ``left_out``, it is drawn from the rows that are left out of training alone.
    """

    targets: Indicators
    size: int
    seed: int
    left_out: bool = False

    def __call__(self, chunk: Chunk) -> StatisticTuple:
        """Return the sample of a chunk: rows, and a column of places and one of weights."""
        y = required_targets(chunk)
        places, known = self.targets._places(y)
        weight = np.ones(len(y)) if chunk.weight is None else chunk.weight
        drawn = (known & (weight > 0)).astype(np.float64)
        if self.left_out:
            drawn *= is_left_out(chunk.X)
        both = chunk.X, np.column_stack([places, weight]).astype(np.float64)
        options: dict[str, Any] = {"seed": self.seed, "begin": chunk.begin, "weight": drawn}
        return StatisticTuple(*(RowSample.of(part, self.size, **options) for part in both))


def is_left_out(X: Matrix) -> Array:
    """Return which rows of a chunk are left out, by what they hold."""
    return row_keys(X) % PARTS == 0


@dataclass(frozen=True)
class TargetMoments:
    """Moments of features and targets, and of features without a label beside them."""

    transformers: Sequence[Transformer]
    targets: Numbers | Indicators
    budget: float
    projections: Projections | None = None
    settle: bool = False

    def __call__(self, chunk: Chunk) -> Any:
        """Return the moments of a chunk; of both kinds of rows if some may have no label."""
        y = required_targets(chunk)
        weight = self.targets.weights(y, chunk.weight)
        T = self.targets.targets(y)
        unlabeled = unlabeled_weights(self.targets, y, chunk.weight)
        total: Any = None
        for rows in row_slices(self.transformers, chunk.X, self.budget):
            Z = joint_features(self.transformers, chunk.X[rows], self.projections)
            one: Any = Moments.of(Z, T[rows], None if weight is None else weight[rows])
            if unlabeled is not None:
                one = StatisticTuple(one, Moments.of(Z, weight=unlabeled[rows]))
            total = one if total is None else total.__iadd__(one)
        return total.settle() if self.settle and isinstance(total, Moments) else total


@dataclass(frozen=True)
class TargetRows:
    """The features and targets of all rows, where rows are fewer than features."""

    transformers: Sequence[Transformer]
    targets: Numbers | Indicators

    def __call__(self, chunk: Chunk) -> StackedRows:
        """Return those of a chunk."""
        y = required_targets(chunk)
        Z = joint_features(self.transformers, chunk.X)
        weight = self.targets.weights(y, chunk.weight)
        return StackedRows.of(Z, self.targets.targets(y), weight)


@dataclass(frozen=True)
class FeatureMoments:
    """Moments of the features of every group; rows weigh what they weigh in ``targets``."""

    transformers: Sequence[Transformer]
    budget: float
    targets: Numbers | Indicators | None = None
    settle: bool = False

    def __call__(self, chunk: Chunk) -> StatisticTuple:
        """Return the moments of a chunk."""
        weight = chunk.weight
        if self.targets is not None:
            y = required_targets(chunk)
            weight = self.targets.weights(y, weight)
            unlabeled = unlabeled_weights(self.targets, y, chunk.weight)
            weight = weight if unlabeled is None or weight is None else weight + unlabeled
        total: Any = None
        for rows in row_slices(self.transformers, chunk.X, self.budget):
            each = group_features(self.transformers, chunk.X[rows])
            own = None if weight is None else weight[rows]
            one = StatisticTuple(*(Moments.of(Z, weight=own) for Z in each))
            total = one if total is None else total.__iadd__(one)
        for moments in total.parts if self.settle else ():
            moments.settle()
        return total


@dataclass(frozen=True)
class LeaveOneOut:
    """Errors on rows left out, for every penalty of a path."""

    moments: TargetMoments
    path: RidgePath
    components: Array | None
    scale: float
    shift: float

    def __call__(self, chunk: Chunk) -> Totals:
        """Return the sums of the squared errors of a chunk."""
        sums, y = self.moments, required_targets(chunk)
        weight = sums.targets.weights(y, chunk.weight)
        T = to_dense(sums.targets.targets(y)) * self.scale + self.shift
        errors = np.zeros((self.path.alphas.size, T.shape[1]))
        for rows in row_slices(sums.transformers, chunk.X, sums.budget):
            Z = joint_features(sums.transformers, chunk.X[rows], sums.projections)
            Z = Z if self.components is None else Z @ self.components.T
            own = None if weight is None else weight[rows]
            errors += self.path.leave_one_out(to_dense(Z), T[rows], own)
        return Totals(errors=errors)


@dataclass(frozen=True)
class HighestScores:
    """The ``rank`` highest scores of every class."""

    transformers: Sequence[Transformer]
    budget: float
    coef: Array
    intercept: Array
    rank: int

    def __call__(self, chunk: Chunk) -> TopScores:
        """Return those of a chunk."""
        scores = scores_of(self.transformers, chunk.X, self.coef, self.intercept, self.budget)
        if scores.shape[1] == 1:
            scores = np.hstack([-scores, scores])
        return TopScores.of(scores, self.rank, chunk.weight)


def scores_of(
    transformers: Sequence[Transformer], X: Matrix, coef: Array, intercept: Array, budget: float
) -> Array:
    """Return the scores of rows; ``coef`` has a row for every score."""
    scores = np.empty((X.shape[0], len(coef)))
    for rows in row_slices(transformers, X, budget):
        Z = joint_features(transformers, X[rows])
        if Z.shape[1] != coef.shape[1]:
            raise ValueError(f"coef_ has {coef.shape[1]} columns for {Z.shape[1]} features")
        scores[rows] = Z @ coef.T
    return scores + intercept
