r"""The choice of a model by cross-validation on the training rows.

Every candidate scores rows that it has not seen. All candidates do so on a small stratified sample
of the rows first; where there are more rows, the best few do so again on more of them. The highest
accuracy wins, except that an explainable (additive) candidate is preferred unless the winner is
better by more than one standard error of the paired difference,

.. math:: s = \sqrt{\frac{1}{n - 1} \Big(\frac{1}{n} \sum_i d_i^2 - \bar d^2\Big)}, \qquad
    d_i = [\text{the winner is right on row } i] - [\text{the other is right}].

The accuracy of few rows depends on how they are divided. So up to 1,000 rows are divided several
times, at most five, for candidates that are not far behind; :math:`d_i` is the mean over these
divisions, and parameters are settled by the first one.

A limit of time (``max_time``) leaves out the candidates for which none is left; where there is
time, the best few are compared again on three times as many rows, until all are used.

Plain candidates, such as a linear machine on standardized columns, take part like all others, so
that on the rows of the choice the result is never worse than they are. The held-out scores of the
chosen candidate are kept: probabilities are calibrated on them, and doubtful labels found by them,
without another fit.
"""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from hilbin._arrays import Array
from hilbin._parameters import require_choice, require_whole

PREFER = ("explainable", "accurate")
FINALISTS = 3
MORE_ROWS = 3  # times the rows of the first round, for the finalists
REPEATED_ROWS, MOST_REPEATS = 2000, 5  # rows that are left out in all, and times that one is
FAR = 2  # standard errors behind the best: such candidates are not compared again

Callback = Callable[[str, int, int], None]


class Candidate(Protocol):
    """A model that may be chosen.

    A candidate with a true attribute ``baseline`` is reported in ``Choice.baselines``.

    Parameters
    ----------
    name : str
        Its name, different from those of other candidates.
    explainable : bool
        Whether its scores are sums of contributions of single features.
    """

    name: str
    explainable: bool

    def held_out(self, rows: Any, y: Array, folds: Array, seed: int) -> Array:
        """Score every row by a model that has not seen it.

        Parameters that a candidate settles here, such as ``C``, are those of :meth:`make`.

        Parameters
        ----------
        rows : array, CSR or other object that is indexed by arrays of row numbers
            Rows.
        y : int array of shape (n_samples,)
            Numbers of classes, from 0 on; all occur.
        folds : int array of shape (n_samples,)
            Which fold leaves the row out; -1 for none.
        seed : int
            Random seed.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes)
            NaN in rows that no fold leaves out.
        """

    def make(self) -> Any:
        """Return the classifier to train on all rows."""


@dataclass
class Choice:
    """The outcome of :func:`choose`.

    Parameters
    ----------
    best : Candidate
        The chosen candidate.
    table : list of dict
        Every candidate, best first: ``name``, ``explainable``, ``mean`` (accuracy),
        ``standard_error``, ``n_rows`` that were left out, and ``seconds``.
    scores : ndarray of shape (n_samples, n_classes)
        Held-out scores of the best; NaN in rows that were not left out.
    correct : ndarray of shape (n_samples,)
        How often the best was right about a row, over all divisions into folds, from 0 to 1; NaN in
        rows that were not left out.
    baselines : dict
        Accuracy of the plain candidates, and of the largest class as ``"majority"``.
    cost_of_preference : float
        By how much the most accurate candidate was better than the chosen one.
    skipped : list of str
        Candidates that were not compared, for lack of time.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hilbin.auto import choose, row_candidates
    >>> X, y = load_iris(return_X_y=True)
    >>> choice = choose(row_candidates(X, y), X, y, prefer="accurate")
    >>> choice.table[0]["name"] == choice.best.name, choice.scores.shape
    (True, (150, 3))
    """

    best: Any
    table: list[dict[str, Any]]
    scores: Array
    correct: Array
    baselines: dict[str, float] = field(default_factory=dict)
    cost_of_preference: float = 0.0
    skipped: list[str] = field(default_factory=list)

    @property
    def tested(self) -> Array:
        """Numbers of the rows that have held-out scores."""
        return np.flatnonzero(~np.isnan(self.scores).any(axis=1))

    def expected_seconds(self, n_folds: int) -> float:
        """Guess the time to train the best candidate on all rows, by that of its folds.

        It grows with the rows if the candidate is additive, else with their square.
        """
        entry = next(row for row in self.table if row["name"] == self.best.name)
        known = max(1.0, entry["n_rows"] * (1 - 1 / n_folds))
        power = 1 if self.best.explainable else 2
        return float(entry["seconds"] / n_folds * (len(self.scores) / known) ** power)


@dataclass
class Trial:
    """A candidate, and how often it was right about the rows that were left out."""

    candidate: Any
    scores: Array
    correct: Array  # NaN in rows that were not left out
    weights: Array
    seconds: float

    @property
    def tested(self) -> Array:
        """Which rows were left out."""
        return ~np.isnan(self.correct)

    @property
    def mean(self) -> float:
        """Accuracy, 0 if no row was left out."""
        known = self.tested
        return (
            float(np.average(self.correct[known], weights=self.weights[known]))
            if any(known)
            else 0.0
        )

    def lead(self, other: "Trial") -> float:
        """Return by how much the accuracy is higher than that of another candidate."""
        return self.mean - other.mean

    def doubt(self, other: "Trial") -> float:
        """Return the standard error of the difference of two accuracies."""
        return _standard_error(self.correct - other.correct, self.weights)

    def entry(self) -> dict[str, Any]:
        """What the table of a choice says."""
        return {
            "name": self.candidate.name,
            "explainable": bool(self.candidate.explainable),
            "mean": self.mean,
            "standard_error": _standard_error(self.correct, self.weights),
            "n_rows": int(self.tested.sum()),
            "seconds": round(self.seconds, 3),
        }


def choose(
    candidates: Sequence[Any],
    rows: Any,
    y: Array,
    *,
    prefer: str = "explainable",
    seed: int = 0,
    max_rows: int | None = 2000,
    n_folds: int = 3,
    max_time: float | None = None,
    baselines: Sequence[Any] = (),
    sample_weight: Array | None = None,
    callback: Callback | None = None,
) -> Choice:
    """Choose a candidate by cross-validation.

    Parameters
    ----------
    candidates : sequence of Candidate
        The models to choose from; the first of equally good ones is taken.
    rows : array, CSR or other object that is indexed by arrays of row numbers
        Training rows.
    y : array of shape (n_samples,)
        Labels.
    prefer : {"explainable", "accurate"}, default="explainable"
        Whether an explainable candidate is taken unless another is better by more than one
        standard error of the difference.
    seed : int, default=0
        Random seed of the folds and the samples.
    max_rows : int or None, default=2000
        Rows of the first round. If there are more, the best three are compared again, on three
        times as many. None compares all candidates on all rows.
    n_folds : int, default=3
        Number of folds.
    max_time : float, optional
        Seconds. Candidates for which no time is left are skipped, except the first; while time is
        left, the best three are compared on ever more rows.
    baselines : sequence of Candidate
        Models that are compared, but not chosen.
    sample_weight : array of shape (n_samples,), optional
        How much a row counts in the accuracy.
    callback : callable, optional
        Called before every candidate with its name, how many are done, and how many there are.

    Returns
    -------
    choice : Choice

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from hilbin.auto.candidates import row_candidates
    >>> from hilbin.auto.choice import choose
    >>> X, y = load_wine(return_X_y=True)
    >>> choice = choose(row_candidates(X, y), X, y)
    >>> choice.table[0]["mean"] > choice.baselines["majority"]
    True
    """
    require_choice("prefer", prefer, PREFER)
    require_whole("n_folds", n_folds, 2)
    codes = np.unique(y, return_inverse=True)[1]
    weights = np.ones(codes.size) if sample_weight is None else np.asarray(sample_weight, float)
    contest = Contest(rows, codes, weights, n_folds, seed, callback, Clock(max_time))
    sample = stratified_sample(codes, max_rows, seed)
    first = contest.run([*candidates, *baselines], sample)
    eligible = {c.name for c in candidates}
    trials = [t for t in first if t.candidate.name in eligible]
    known = {t.candidate.name: t for t in first}
    skipped = [c.name for c in (*candidates, *baselines) if c.name not in known]
    n_rows, rounds = sample.size, 0
    while n_rows < codes.size and contest.clock.allows(trials, rounds):
        n_rows, rounds = MORE_ROWS * n_rows, rounds + 1
        sample = stratified_sample(codes, n_rows, seed)
        trials = contest.run([t.candidate for t in _finalists(trials)], sample)
        known |= {t.candidate.name: t for t in trials}
    contest.repeat(trials, sample)
    best, cost = preferred(trials, prefer)
    final = {t.candidate.name for t in trials}
    order = sorted(known.values(), key=lambda t: (t.candidate.name not in final, -t.mean))
    plain = {t.candidate.name: t.mean for t in first if getattr(t.candidate, "baseline", False)}
    plain["majority"] = float(np.bincount(codes, weights).max() / weights.sum())
    table = [t.entry() for t in order]
    return Choice(best.candidate, table, best.scores, best.correct, plain, cost, skipped)


class Clock:
    """The time that a choice may take."""

    def __init__(self, max_time: float | None):
        self.end = None if max_time is None else time.monotonic() + max_time

    @property
    def is_over(self) -> bool:
        """Whether no time is left."""
        return self.end is not None and time.monotonic() >= self.end

    def allows(self, trials: Sequence["Trial"], rounds: int) -> bool:
        """Tell whether there is another round: one without a limit, or those that fit in it."""
        if self.end is None:
            return rounds == 0
        expected = MORE_ROWS**2 * sum(t.seconds for t in _finalists(trials))
        return time.monotonic() + expected < self.end


@dataclass
class Contest:
    """Cross-validation of candidates on samples of the same rows."""

    rows: Any
    codes: Array
    weights: Array
    n_folds: int
    seed: int
    callback: Callback | None
    clock: Clock

    def run(self, candidates: Sequence[Any], sample: Array) -> list[Trial]:
        """Score the rows of ``sample`` by every candidate."""
        whole = sample.size == self.codes.size
        rows = self.rows if whole else self.rows[sample]
        trials: list[Trial] = []
        for i, candidate in enumerate(candidates):
            if trials and self.clock.is_over:
                break
            if self.callback is not None:
                self.callback(candidate.name, i, len(candidates))
            trials.append(self._trial(candidate, rows, sample))
        return trials

    def _held_out(self, candidate: Any, rows: Any, y: Array, division: int) -> Array:
        """Score rows by one candidate, each by a model without its fold."""
        folds = folds_of(y, self.seed + division, self.n_folds)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found: Array = candidate.held_out(rows, y, folds, self.seed)
        return found

    def _trial(self, candidate: Any, rows: Any, sample: Array) -> Trial:
        """Score the rows of ``sample`` by one candidate."""
        begin, y = time.monotonic(), self.codes[sample]
        found = self._held_out(candidate, rows, y, 0)
        scores = np.full((self.codes.size, found.shape[1]), np.nan)
        correct = np.full(self.codes.size, np.nan)
        scores[sample], correct[sample] = found, correct_rows(found, y)
        return Trial(candidate, scores, correct, self.weights, time.monotonic() - begin)

    def repeat(self, trials: Sequence[Trial], sample: Array) -> None:
        """Divide few rows again, for the candidates that may be the best."""
        rows, y = self.rows[sample], self.codes[sample]
        repeats = int(np.clip(REPEATED_ROWS // max(y.size, 1), 1, MOST_REPEATS))
        best = max(trials, key=lambda t: t.mean)
        close = [t for t in trials if best.lead(t) <= FAR * best.doubt(t)]
        for trial in close if len(close) > 1 else ():
            for division in range(1, repeats):
                if self.clock.is_over:
                    return
                again = correct_rows(self._held_out(trial.candidate, rows, y, division), y)
                trial.correct[sample] += (again - trial.correct[sample]) / (division + 1)


def preferred(trials: Sequence[Trial], prefer: str) -> tuple[Trial, float]:
    """Return the trial to take and by how much the most accurate one is better.

    Parameters
    ----------
    trials : sequence of Trial
        Trials on the same rows.
    prefer : {"explainable", "accurate"}
        As in :func:`choose`.
    """
    best = max(trials, key=lambda t: t.mean)
    plain = [t for t in trials if t.candidate.explainable]
    if prefer == "accurate" or best.candidate.explainable or not plain:
        return best, 0.0
    other = max(plain, key=lambda t: t.mean)
    cost = best.lead(other)
    if cost > best.doubt(other) + 1e-9:  # they are equal where a single row differs
        return best, 0.0
    return other, cost


def _finalists(trials: Sequence[Trial]) -> list[Trial]:
    """Return the best trials, the best explainable one among them, in their order."""
    order = sorted(trials, key=lambda t: -t.mean)
    found = order[:FINALISTS]
    plain = [t for t in order if t.candidate.explainable]
    if plain and plain[0] not in found:
        found = [*found[:-1], plain[0]]
    return [t for t in trials if t in found]


def _standard_error(values: Array, weights: Array) -> float:
    """Return the standard error of the weighted mean of the values that are not NaN."""
    known = ~np.isnan(values)
    values, weights = values[known], weights[known]
    if values.size < 2:
        return 0.0
    shares = weights / weights.sum()
    deviations = values - shares @ values
    return float(np.sqrt((shares**2 @ deviations**2) * values.size / (values.size - 1)))


def folds_of(labels: Array, seed: int, n_folds: int = 5) -> Array:
    """Say which fold leaves each row out.

    A class of ``m`` rows is spread over ``min(m, n_folds)`` folds, so that no fold lacks a class
    for training; the only row of a class is always trained on.

    Parameters
    ----------
    labels : array of shape (n_samples,)
        Labels.
    seed : int
        Random seed.
    n_folds : int, default=5
        Number of folds at most.

    Returns
    -------
    folds : int array of shape (n_samples,)
        -1 for the only row of a class.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.auto.choice import folds_of
    >>> folds_of(np.array(["a", "a", "a", "b", "b", "c"]), seed=0)
    array([ 1,  2,  0,  1,  0, -1])
    """
    rng = np.random.default_rng(seed)
    _, members = np.unique(labels, return_inverse=True)
    counts = np.bincount(members)
    k = min(n_folds, int(counts.max()))
    folds = np.full(len(labels), -1)
    begin = 0
    for label in np.flatnonzero(counts > 1):
        shuffled = rng.permutation(np.flatnonzero(members == label))
        folds[shuffled] = (begin + np.arange(shuffled.size)) % k
        begin += shuffled.size  # go on where the last class ended: folds of equal size
    return folds


@contextmanager
def few_per_class() -> Iterator[None]:
    """Ignore the warning of scikit-learn, in every fit, that many classes may be a regression."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        yield


def stratified_sample(codes: Array, max_rows: int | None, seed: int) -> Array:
    """Return sorted numbers of about ``max_rows`` rows, two at least of every class that has two.

    Parameters
    ----------
    codes : int array of shape (n_samples,)
        Numbers of classes, from 0 on.
    max_rows : int or None
        Number of rows; None for all.
    seed : int
        Random seed.
    """
    n = codes.size
    if max_rows is None or n <= max_rows:
        return np.arange(n)
    rng = np.random.default_rng(seed)
    order = rng.permutation(n)
    order = order[np.argsort(codes[order], kind="stable")]
    counts = np.bincount(codes)
    place = np.arange(n) - np.repeat(np.cumsum(counts) - counts, counts)
    share = (place + 0.5) / np.repeat(counts, counts)  # in every class evenly from 0 to 1
    return np.sort(order[(share < max_rows / n) | (place < 2)])


def held_out_scores(make: Callable[[], Any], rows: Any, y: Array, folds: Array) -> Array:
    """Score every row by a model that was trained on the other folds.

    Parameters
    ----------
    make : callable
        Returns a classifier that is not fitted.
    rows, y, folds
        As in :meth:`Candidate.held_out`.

    Returns
    -------
    scores : ndarray of shape (n_samples, n_classes)
        NaN in rows that no fold leaves out.
    """
    scores = np.full((y.size, int(y.max()) + 1), np.nan)
    for fold in range(folds.max() + 1):
        train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        scores[test] = class_scores(make().fit(rows[train], y[train]), rows[test])
    return scores


def class_scores(model: Any, rows: Any) -> Array:
    """Return the scores of all classes, also where a model of two classes has a single score."""
    scores = np.asarray(model.decision_function(rows), np.float64)
    return np.column_stack([-scores, scores]) if scores.ndim == 1 else scores


def correct_rows(scores: Array, y: Array) -> Array:
    """Return 1 where the highest score is that of class ``y``, else 0; NaN where there is none."""
    known = ~np.isnan(scores).any(axis=1)
    right = np.full(y.size, np.nan)
    right[known] = scores[known].argmax(axis=1) == y[known]
    return right
