r"""The candidates for rows of numbers.

Additive ones, whose reasons are exact:

- the histogram intersection SVM, with the range of a bin per feature, per group of columns or for
  all, and bins of equal width or equal on the square root;
- linear machines on the features of :math:`\chi^2`, on square roots (Hellinger), on standardized
  columns and, for sparse counts, on tf-idf weights.

Others: support vector machines with :math:`e^{-\gamma \chi^2}` and with a Gaussian. Their distances
are computed once for all folds, :math:`C` and :math:`\gamma`. Where the Gram matrix of all rows
would not be cheap, random Fourier features and ridge regression take their place.

A candidate settles its parameters when it is first asked for held-out scores, by going up or down
a grid as long as that helps; asked again, on more rows, it keeps them, and only the width of an
exponential may change. ``C`` is counted in units of
:math:`1 / \overline{k(x, x)}`, so that one grid suits rows of any scale.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.metrics import euclidean_distances
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.validation import validate_data

from hilbin._arrays import ACCEPTED, Array, Matrix, to_dense
from hilbin._state import stored
from hilbin.auto.channels import Channel, ChannelWeights
from hilbin.auto.choice import class_scores, correct_rows, held_out_scores
from hilbin.estimators import HistogramBinner, IntersectionSVC, KernelSVC, MapRidgeClassifier
from hilbin.estimators._fit import class_factors
from hilbin.kernels import Chi2, Exponential, Gaussian, Hellinger, JensenShannon
from hilbin.maps import AdditiveMap, FourierMap

LINEAR = "scaled LinearSVC"
KERNELS = ("auto", "intersection", "chi2", "js", "hellinger", "linear", "exp-chi2", "gaussian")
# parts of the mean of k(x, x), from which the searches start in the middle
LINEAR_GRID = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
INTERSECTION_GRID = (0.3, 3.0, 30.0, 300.0)
KERNEL_GRID = (1.0, 10.0, 100.0, 1000.0)
GAMMA_GRID = tuple(4.0**k for k in range(-2, 5))  # of 1 / the mean distance
ALPHA_GRID = (1e-3, 1e-2, 1e-1, 1.0)
COMPONENTS = 3  # features per value
MOST_SWEEPS = 100  # of an intersection SVM that is only compared
EXACT_ROWS = 12_000  # rows whose Gram matrix is cheap
MOST_ROWS, EXACT_COST = 100_000, 4_000_000  # rows, and rows x features x classes, of machines that
# compute the Gram matrix row by row, as they need few rows of it
FOURIER_COMPONENTS = 4096
SPARSE_SHARE = 0.3  # of values that are not zero, at most, in rows that are like counts of words


@stored
@dataclass(frozen=True)
class Task:
    """What the candidates of one choice share.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
        As given, by label.
    factors : array of shape (n_classes,)
        Factor of every class, by number.
    exact : bool
        Whether kernel machines on all training rows are cheap.
    n_jobs : int or None
        Threads.
    """

    class_weight: Any
    factors: Array
    exact: bool
    n_jobs: int | None

    @property
    def number_weight(self) -> Any:
        """Class weights by number."""
        if isinstance(self.class_weight, dict):
            return dict(enumerate(self.factors.tolist()))
        return self.class_weight

    def accuracy(self, scores: Array, y: Array) -> float:
        """Return the weighted share of rows whose highest score is that of class ``y``."""
        correct = correct_rows(scores, y)
        known = ~np.isnan(correct)
        return (
            float(np.average(correct[known], weights=self.factors[y[known]])) if any(known) else 0.0
        )


def climb(
    grid: Sequence[float], start: int, evaluate: Callable[[float], tuple[float, Any]]
) -> tuple[float, Any]:
    """Go up or down a grid from ``start`` as long as what ``evaluate`` returns first rises.

    Parameters
    ----------
    grid : sequence of float
        Values in rising order.
    start : int
        Place of the first value.
    evaluate : callable
        Returns how good a value is, and what belongs to it.

    Returns
    -------
    value : float
        The best value.
    found : object
        What belongs to it.

    Examples
    --------
    >>> from hilbin.auto.candidates import climb
    >>> climb([1, 2, 4, 8], 1, lambda x: (-abs(x - 7), f"at {x}"))
    (8, 'at 8')
    """
    best, place = evaluate(grid[start]), start
    for step in (1, -1):
        moved = False
        while 0 <= place + step < len(grid):
            other = evaluate(grid[place + step])
            if other[0] <= best[0]:
                break
            best, place, moved = other, place + step, True
        if moved:
            break
    return grid[place], best[1]


# rows to rows; every one is a list of steps of a pipeline
PREPARATIONS: dict[str, Callable[[], list[tuple[str, Any]]]] = {
    "raw": list,
    "to 0..1": lambda: [("scale", MinMaxScaler(clip=True))],
    "largest 1": lambda: [("scale", MaxAbsScaler())],
    "standardized": lambda: [("scale", StandardScaler())],
    "square roots": lambda: [("root", AdditiveMap(Hellinger(), 1)), ("scale", StandardScaler())],
    "sum 1": lambda: [("normalize", Normalizer("l1"))],
    "tf-idf": lambda: [("weigh", TfidfTransformer(sublinear_tf=True))],
}
MAPS: dict[str, Callable[[], list[tuple[str, Any]]]] = {
    "": list,
    "chi2": lambda: [("map", AdditiveMap(Chi2(), COMPONENTS))],
    "js": lambda: [("map", AdditiveMap(JensenShannon(), COMPONENTS))],
    "hellinger": lambda: [("map", AdditiveMap(Hellinger(), 1))],
}


@stored
@dataclass
class LinearCandidate:
    """A ``LinearSVC`` on prepared, maybe mapped rows.

    Parameters
    ----------
    name : str
        Name of the candidate.
    task : Task
        What the candidates share.
    preparation, feature_map : str
        Names of ``PREPARATIONS`` and ``MAPS``.
    baseline : bool, default=False
        Whether it is reported as a plain baseline.
    """

    name: str
    task: Task
    preparation: str
    feature_map: str = ""
    baseline: bool = False
    explainable: bool = True
    C: float | None = None

    @property
    def kernel(self) -> str:
        """Name of the kernel."""
        return self.feature_map or "linear"

    def held_out(self, rows: Any, y: Array, folds: Array, seed: int) -> Array:
        """Score every row by a model that has not seen it, as ``Candidate`` says."""
        steps = self._steps()
        prepared = Pipeline(steps).fit_transform(rows) if steps else rows

        def evaluate(C: float) -> tuple[float, Array]:
            scores = held_out_scores(
                lambda: LinearSVC(C=C, class_weight=self.task.number_weight, random_state=0),
                prepared, y, folds,
            )  # fmt: skip
            return self.task.accuracy(scores, y), scores

        if self.C is not None:
            return evaluate(self.C)[1]
        unit = _mean_square(prepared)
        grid = [c / unit for c in LINEAR_GRID]
        self.C, scores = climb(grid, len(grid) // 2 - 1, evaluate)
        return scores

    def make(self) -> Any:
        """Return the classifier to train on all rows."""
        C = 1.0 if self.C is None else self.C
        machine = LinearSVC(C=C, class_weight=self.task.class_weight, random_state=0)
        return Pipeline([*self._steps(), ("classifier", machine)])

    def _steps(self) -> list[tuple[str, Any]]:
        return [*PREPARATIONS[self.preparation](), *MAPS[self.feature_map]()]


@stored
@dataclass
class IntersectionCandidate:
    """An :class:`~hilbin.estimators.IntersectionSVC`.

    Parameters
    ----------
    name : str
        Name of the candidate.
    task : Task
        What the candidates share.
    scope, strategy : str
        As in :class:`~hilbin.estimators.HistogramBinner`.
    groups : list of (str, int, int), optional
        Groups of columns that get the same mean sum first.
    """

    name: str
    task: Task
    scope: str
    strategy: str
    groups: list[Channel] | None = None
    explainable: bool = True
    C: float | None = None
    kernel: ClassVar[str] = "intersection"

    def held_out(self, rows: Any, y: Array, folds: Array, seed: int) -> Array:
        """Score every row by a model that has not seen it, as ``Candidate`` says."""
        steps = self._steps()
        rows = Pipeline(steps).fit_transform(rows) if steps else rows
        if self.C is not None:
            return held_out_scores(lambda: self._machine(self.task.number_weight), rows, y, folds)
        binner = HistogramBinner(None, scope=self.scope, negative="shift")
        unit = float(np.mean(np.asarray(binner.fit_transform(rows).sum(axis=1)))) or 1.0
        Cs = [c / unit for c in INTERSECTION_GRID]
        machine = self._machine(self.task.number_weight).set_params(max_iter=MOST_SWEEPS)
        scores = np.full((len(Cs), y.size, int(y.max()) + 1), np.nan)
        for fold in range(folds.max() + 1):
            train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            for i, model in enumerate(machine.path(rows[train], y[train], Cs)):
                scores[i, test] = class_scores(model, rows[test])
        best = int(np.argmax([self.task.accuracy(s, y) for s in scores]))
        self.C = Cs[best]
        return scores[best]

    def make(self) -> Any:
        """Return the classifier to train on all rows."""
        return Pipeline([*self._steps(), ("classifier", self._machine(self.task.class_weight))])

    def _steps(self) -> list[tuple[str, Any]]:
        return _same_sums(self.groups)

    def _machine(self, class_weight: Any) -> IntersectionSVC:
        return IntersectionSVC(
            1e-3 if self.C is None else self.C,
            scope=self.scope, strategy=self.strategy, class_weight=class_weight,
            n_jobs=self.task.n_jobs,
        )  # fmt: skip


@stored
@dataclass
class KernelCandidate:
    """A support vector machine with the exponential of a distance, or its Fourier features.

    Parameters
    ----------
    name : str
        Name of the candidate.
    task : Task
        What the candidates share.
    preparation : str
        Name of ``PREPARATIONS``.
    distance : {"chi2", "euclidean"}
        The distance in the exponent; the Euclidean one is squared.
    groups : list of (str, int, int), optional
        Groups of columns that get the same mean sum first: the kernel is then a product over the
        groups, in which every one has its own width.
    """

    name: str
    task: Task
    preparation: str
    distance: str
    groups: list[Channel] | None = None
    explainable: bool = False
    gamma: float | None = None
    C: float | None = None

    @property
    def kernel(self) -> str:
        """Name of the kernel."""
        return "gaussian" if self.distance == "euclidean" else "exp-chi2"

    def held_out(self, rows: Any, y: Array, folds: Array, seed: int) -> Array:
        """Score every row by a model that has not seen it, as ``Candidate`` says."""
        if self.C is not None and not self.task.exact:
            return held_out_scores(lambda: self._make(self.task.number_weight), rows, y, folds)
        steps = self._steps()
        D = self._distances(Pipeline(steps).fit_transform(rows) if steps else rows)
        mean = float(D.mean()) * D.shape[0] / max(1, D.shape[0] - 1)
        mean = mean if np.isfinite(mean) and mean > 0 else 1.0
        Cs: list[float] = [*(KERNEL_GRID if self.task.exact else ALPHA_GRID)]

        known: dict[float, tuple[float, tuple[float, Array]]] = {}

        def evaluate(gamma: float) -> tuple[float, tuple[float, Array]]:
            if gamma not in known:
                tried = Cs if self.C is None else [self.C]
                found = self._scores(D, gamma, tried, y, folds)
                accuracies = [self.task.accuracy(s, y) for s in found]
                best = int(np.argmax(accuracies))
                self.C = tried[best]  # other widths are tried with the best of the first
                known[gamma] = accuracies[best], (tried[best], found[best])
            return known[gamma]

        gamma = self.gamma
        if gamma is None:
            grid = [factor / mean for factor in GAMMA_GRID]
            gamma, _ = climb(grid, GAMMA_GRID.index(1.0), evaluate)
        finer = [gamma / 2, gamma, 2 * gamma, 4 * gamma]  # more rows allow for more detail
        self.gamma, (self.C, scores) = climb(finer, 1, evaluate)
        return scores

    def make(self) -> Any:
        """Return the classifier to train on all rows."""
        return self._make(self.task.class_weight)

    def _make(self, class_weight: Any) -> Pipeline:
        gamma: Any = "mean" if self.gamma is None else self.gamma
        kernel: Any = (
            Gaussian(gamma) if self.distance == "euclidean" else Exponential(Chi2(), gamma)
        )
        steps = self._steps()
        common: dict[str, Any] = {"class_weight": class_weight, "n_jobs": self.task.n_jobs}
        C = 1.0 if self.C is None else self.C
        if self.task.exact:
            return Pipeline([*steps, ("classifier", KernelSVC(kernel, C=C, **common))])
        features = FourierMap(kernel, FOURIER_COMPONENTS, kind="structured", random_state=0)
        return Pipeline([*steps, ("classifier", MapRidgeClassifier(features, C, **common))])

    def _steps(self) -> list[tuple[str, Any]]:
        return [*_same_sums(self.groups), *PREPARATIONS[self.preparation]()]

    def _distances(self, rows: Matrix) -> Array:
        """Return the distances of all pairs of rows."""
        if self.distance == "euclidean":
            return np.asarray(euclidean_distances(rows, squared=True), np.float64)
        K = to_dense(Chi2().gram(rows, n_jobs=self.task.n_jobs))
        norms = K.diagonal() / 2
        return np.maximum(norms[:, None] + norms - K, 0)

    def _scores(
        self, D: Array, gamma: float, Cs: list[float], y: Array, folds: Array
    ) -> list[Array]:
        """Return the held-out scores for every ``C``, or penalty of the ridge."""
        K = np.exp(-gamma * D).astype(np.float32 if self.task.exact else np.float64)
        scores = [np.full((y.size, int(y.max()) + 1), np.nan) for _ in Cs]
        learn = self._machines if self.task.exact else self._ridges
        for fold in range(folds.max() + 1):
            train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            found = learn(K[np.ix_(train, train)], K[np.ix_(test, train)], y[train], Cs)
            for one, part in zip(scores, found, strict=True):
                one[test] = part
        return scores

    def _machines(self, K: Array, K_test: Array, y: Array, Cs: list[float]) -> list[Array]:
        common: dict[str, Any] = {
            "class_weight": self.task.number_weight,
            "n_jobs": self.task.n_jobs,
        }
        models = KernelSVC("precomputed", **common).path(K, y, Cs)
        return [class_scores(model, K_test) for model in models]

    def _ridges(self, K: Array, K_test: Array, y: Array, Cs: list[float]) -> list[Array]:
        """Return the scores of ridge regressions."""
        weights = class_factors(self.task.number_weight, np.unique(y), y, np.ones(y.size))
        targets = np.where(y[:, None] == np.arange(int(y.max()) + 1), 1.0, -1.0)
        means = np.average(targets, axis=0, weights=weights)
        found = []
        for alpha in Cs:
            factor = cho_factor(K + np.diag(alpha / weights), lower=True, overwrite_a=True)
            found.append(K_test @ cho_solve(factor, targets - means) + means)
        return found


@stored
class Majority(LinearClassifierMixin, BaseEstimator):
    """A classifier that always predicts the largest class."""

    def __init__(self, class_weight: Any = None) -> None:
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any) -> Self:
        """Count the classes."""
        rows, y = validate_data(self, X, y, **ACCEPTED)
        self.classes_, labels = np.unique(y, return_inverse=True)
        weights = np.ones(labels.size)
        weights = weights * class_factors(self.class_weight, self.classes_, labels, weights)
        shares = np.bincount(labels, weights) / weights.sum()
        scores = shares if shares.size > 2 else shares[1:] - shares[:1]
        self.coef_ = np.zeros((scores.size, rows.shape[1]))
        self.intercept_ = scores
        return self


@stored
@dataclass
class MajorityCandidate:
    """The largest class, whatever the row is.

    Parameters
    ----------
    task : Task
        What the candidates share.
    """

    task: Task
    name: str = "majority"
    explainable: bool = True
    kernel: ClassVar[str] = "none"

    def held_out(self, rows: Any, y: Array, folds: Array, seed: int) -> Array:
        """Score every row by a model that has not seen it, as ``Candidate`` says."""
        return held_out_scores(lambda: Majority(self.task.number_weight), rows, y, folds)

    def make(self) -> Any:
        """Return the classifier to train on all rows."""
        return Pipeline([("classifier", Majority(self.task.class_weight))])


def row_candidates(
    rows: Any,
    y: Any,
    *,
    kernel: str = "auto",
    groups: Any = None,
    class_weight: Any = None,
    n_jobs: int | None = None,
) -> list[Any]:
    """Return the candidates that suit rows of numbers, the additive ones first.

    Parameters
    ----------
    rows : array or CSR of shape (n_samples, n_features)
        Training rows.
    y : array of shape (n_samples,)
        Labels.
    kernel : str, default="auto"
        Kernel that candidates must have: ``"intersection"``, ``"chi2"``, ``"js"``, ``"hellinger"``,
        ``"linear"``, ``"exp-chi2"`` or ``"gaussian"``.
    groups : list of (str, int, int), optional
        Groups of columns, such as the bins of one histogram: name, first column, one past the
        last; they follow each other over all columns.
    class_weight : dict or "balanced", optional
        Factor of the weight of the rows of each class, in training and in accuracies.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    candidates : list of Candidate

    Examples
    --------
    >>> from hilbin.auto.candidates import row_candidates
    >>> [c.name for c in row_candidates([[-1.0, 2.0], [3.0, 4.0]], [0, 1]) if not c.explainable]
    ['exp-chi2, to 0..1', 'Gaussian, standardized', 'Gaussian, to 0..1']
    >>> [c.name for c in row_candidates([[1.0, 2.0], [3.0, 4.0]], [0, 1], kernel="js")]
    ['js map + LinearSVC']
    """
    rows = rows if sp.issparse(rows) else np.asarray(rows)
    classes, codes = np.unique(y, return_inverse=True)
    each = class_factors(class_weight, classes, codes, np.ones(codes.size))
    factors = np.array([each[codes == k][0] for k in range(classes.size)])
    cost = rows.shape[0] * rows.shape[1] * classes.size
    exact = codes.size <= EXACT_ROWS or (codes.size <= MOST_ROWS and cost <= EXACT_COST)
    task = Task(class_weight, factors, exact, n_jobs)
    if sp.issparse(rows) or not _is_nonnegative(rows):
        groups = None
    found = [*_additive_candidates(rows, task, groups), *_other_candidates(rows, task, groups)]
    if kernel == "auto":
        return [*(c for c in found if c.kernel != "js"), MajorityCandidate(task)]
    found = [c for c in found if c.kernel == kernel]
    if not found:
        raise ValueError(
            f"kernel={kernel!r} takes no negative values in a sparse table; 'linear' and "
            "'gaussian' do"
        )
    return found


def _additive_candidates(rows: Matrix, task: Task, groups: Any) -> list[Any]:
    sparse, nonnegative = sp.issparse(rows), _is_nonnegative(rows)
    found: list[Any] = [
        IntersectionCandidate(f"intersection, {scope}, {strategy} bins", task, scope, strategy)
        for scope in ("feature", "all")
        for strategy in ("uniform", "sqrt")
        if nonnegative or (scope == "feature" and not sparse)
    ]
    if groups is not None:
        found += [
            IntersectionCandidate(
                f"intersection, group, {strategy} bins", task, "all", strategy, groups
            )
            for strategy in ("uniform", "sqrt")
        ]
    scaled = "largest 1" if sparse else "to 0..1"
    if nonnegative or not sparse:
        plain = "raw" if nonnegative else scaled
        found += [
            LinearCandidate("chi2 map + LinearSVC", task, scaled, "chi2"),
            LinearCandidate("js map + LinearSVC", task, scaled, "js"),
            LinearCandidate("square roots + LinearSVC", task, plain, "hellinger", baseline=True),
        ]
    standard = "largest 1" if sparse else "standardized"
    found.append(LinearCandidate(LINEAR, task, standard, baseline=True))
    if nonnegative and not sparse:
        found.append(LinearCandidate("standardized square roots + LinearSVC", task, "square roots"))
    if nonnegative and _is_like_words(rows):
        found.append(LinearCandidate("tf-idf + LinearSVC", task, "tf-idf", baseline=True))
    return found


def _other_candidates(rows: Matrix, task: Task, groups: Any) -> list[Any]:
    sparse, nonnegative = sp.issparse(rows), _is_nonnegative(rows)
    scaled = "largest 1" if sparse else "to 0..1"
    found: list[Any] = []
    if nonnegative or not sparse:
        ways = ("raw", scaled, "sum 1") if nonnegative else (scaled,)
        found += [KernelCandidate(f"exp-chi2, {way}", task, way, "chi2") for way in ways]
    if groups is not None:
        found.append(KernelCandidate("exp-chi2, product of groups", task, "raw", "chi2", groups))
    standard = "largest 1" if sparse else "standardized"
    return found + [
        KernelCandidate(f"Gaussian, {way}", task, way, "euclidean")
        for way in dict.fromkeys((standard, scaled))
    ]


def _same_sums(groups: list[Channel] | None) -> list[tuple[str, Any]]:
    """Return the step that gives groups of columns the same mean sum, if there are groups."""
    return [] if groups is None else [("groups", ChannelWeights(groups))]


def _is_nonnegative(rows: Matrix) -> bool:
    values = rows.data if sp.issparse(rows) else rows
    return bool(values.min(initial=0) >= 0)


def _mean_square(rows: Matrix) -> float:
    """Return the mean of the squared lengths of rows, or 1."""
    values = rows.data if sp.issparse(rows) else rows
    mean = float(np.square(values, dtype=np.float64).sum() / max(1, rows.shape[0]))
    return mean if np.isfinite(mean) and mean > 0 else 1.0


def _is_like_words(rows: Matrix) -> bool:
    """Tell whether rows are mostly zeros, as counts of words are."""
    stored = rows.nnz if sp.issparse(rows) else np.count_nonzero(rows)
    return bool(stored <= SPARSE_SHARE * rows.shape[0] * rows.shape[1])
