"""The life of a fit, once for all estimators.

1. **Check.** ``_check_parameters`` of the estimator, scikit-learn's checks of ``X`` and ``y``, and
   :func:`checked_weights`.
2. **Prepare.** What the solver works on; :func:`random_seed` makes a seed of ``random_state``.
3. **Solve.** :class:`Fit` solves the problems of the fit side by side and watches them: after every
   sweep it prints (``verbose``), calls scikit-learn's callbacks where the installed version has
   them, and ends the solver once ``max_time`` is over, a callback asks for it, or the user has
   pressed Ctrl-C. Problems of few rows are solved again, to rounding.
4. **Keep.** :meth:`Fit.keep` stores ``n_iter_``, ``converged_``, ``objective_``, ``gap_`` and, for
   ``warm_start``, the dual variables; the estimator stores its arrays.
5. **Tell.** At the end of the ``with`` block an interrupt is raised again, and a model that is not
   the optimum gives a ``ConvergenceWarning``. The model is usable in both cases.

:class:`ScoreClassifier` makes labels of scores; :class:`CostPath` fits one model for every ``C``.
"""

import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from hilbin import parallel
from hilbin._arrays import Array, Matrix
from hilbin._parameters import require_choice, require_positive
from hilbin.estimators._callbacks import CallbackSupportMixin, available_where, with_callbacks
from hilbin.estimators._sizes import MOST, check_targets, weighted_mean
from hilbin.solvers import Result

Callback = Callable[[int, float], bool]
Pair = tuple[Any, Any]  # X and y
STALLED = (
    "steps no longer change anything but rounding, as C, the weights or the values of X are too "
    "far from 1"
)
PLURAL = {"sweep": "sweeps", "step": "steps", "pass": "passes", "round": "rounds"}
AHEAD = 1e-9  # share by which a class is above others of the same probability
SMALL = 256  # rows: so few are solved to rounding, which takes no time

__all__ = ["CallbackSupportMixin", "with_callbacks"]


# check
def checked_weights(sample_weight: Any, X: Matrix) -> Array:
    """Return the weight of every row, numbers >= 0 that are not all 0."""
    try:
        weights: Array = _check_sample_weight(sample_weight, X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        named = "sample_weight" in str(error)
        raise error if named else ValueError(f"sample_weight is not numbers: {error}") from error
    bad = ~np.isfinite(weights) | (weights < 0)
    if bad.any():
        i = int(np.argmax(bad))
        raise ValueError(f"sample_weight[{i}] = {weights[i]} is not a number >= 0")
    if not weights.any():
        raise ValueError("sample_weight is zero for every row")
    if weights.max() > MOST / weights.size:
        raise ValueError(
            f"sample_weight is up to {weights.max():.3g}, too large to add up: divide it by that"
        )
    return weights


def check_labels(y: Any) -> None:
    """Refuse targets that are not labels, as scikit-learn does, which sorts whole numbers first."""
    if not _are_few(y):
        check_classification_targets(y)


def class_numbers(y: Array) -> tuple[Array, Array]:
    """Return the distinct labels, in order, and which of them every label is."""
    if not _are_few(y):
        return np.unique(y, return_inverse=True)
    least = y.min()
    places = (y - least).astype(np.intp) if y.dtype.kind == "u" else y.astype(np.intp) - int(least)
    present = np.bincount(places) > 0
    numbers = np.cumsum(present) - 1
    return np.flatnonzero(present).astype(y.dtype) + least, numbers[places]


def _are_few(y: Any) -> bool:
    """Tell whether whole numbers have so small a range that they are certainly classes."""
    if type(y) is not np.ndarray or y.ndim != 1 or y.dtype.kind not in "iu" or not y.size:
        return False
    return 2 * (int(y.max()) - int(y.min()) + 1) <= y.size


def check_classes(classes: Array, sample_weight: Any = None) -> Array:
    """Return the classes, of which there must be two; ``sample_weight`` as ``fit`` was given it."""
    if classes.size < 2:
        where = "" if sample_weight is None else "among the rows whose sample_weight is not 0 "
        raise ValueError(
            f"a classifier needs at least two classes, but {where}y has {classes.size} class: "
            f"{classes.tolist()}"
        )
    return classes


def class_factors(class_weight: Any, classes: Array, labels: Array, weights: Array) -> Array:
    """Return the factor of every row by its class; ``labels`` are places in ``classes``."""
    if class_weight is None:
        return np.ones(labels.size)
    if isinstance(class_weight, str):
        require_choice("class_weight, if not a dict,", class_weight, ("balanced",))
        totals = np.bincount(labels, weights)
        return (weights.sum() / (totals.size * totals))[labels]
    known = classes.tolist()
    for label, factor in class_weight.items():
        if label not in known:
            raise ValueError(f"class_weight names {label!r}, which is not a class of y")
        require_positive(f"class_weight[{label!r}]", factor)
    return np.array([class_weight.get(label, 1.0) for label in known], np.float64)[labels]


def standardized(targets: Array, weights: Array) -> tuple[Array, float, float]:
    """Return targets from their mean in standard deviations, the mean, and the deviation."""
    center = weighted_mean(check_targets(targets), weights)
    targets = targets - center
    most = float(np.abs(targets).max()) or 1.0  # squares of tiny values are 0
    unit = most * float(np.sqrt(weighted_mean((targets / most) ** 2, weights))) or 1.0
    return targets / unit, center, unit


def random_seed(random_state: Any) -> int:
    """Return a number drawn by ``random_state``."""
    if type(random_state) is int:
        return _first_number(random_state)
    return _drawn(check_random_state(random_state))


@lru_cache
def _first_number(seed: int) -> int:
    return _drawn(check_random_state(seed))


def _drawn(random: Any) -> int:
    return int(random.randint(np.iinfo(np.int32).max))


# solve, keep, tell
class Fit:
    """The problems of one fit, watched from the first sweep to the warning.

    Parameters
    ----------
    estimator : estimator
        Its ``verbose``, ``max_time``, ``warm_start`` and callbacks count, if it has them.
    X, y : arrays
        What callbacks are told the estimator is fitted to.
    names : sequence of str
        The name of every problem.
    unit : {"sweep", "step", "pass", "round"}
        What the solver counts.
    """

    def __init__(
        self, estimator: Any, X: Any, y: Any, names: Sequence[str], unit: str = "sweep"
    ) -> None:
        self.estimator, self.names, self.unit = estimator, list(names), unit
        self.reason, self.interrupted, self.stalled = "", False, False
        self._begin, self._lock = time.monotonic(), threading.Lock()
        self._data = {"X": X, "y": y}
        self._context: Any = None
        self._parts: dict[int, Any] = {}
        if getattr(estimator, "_skl_callbacks", None):
            self._context = estimator._init_callback_context(
                max_subtasks=len(self.names), sequential_subtasks=False
            )
            self._context.call_on_fit_task_begin(estimator=estimator, **self._data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if kind is None:
            self._finish()
            self._tell()

    def solve(
        self,
        solver: Callable[..., Result],
        *,
        tol: float,
        max_iter: int,
        starts: Sequence[Any] | None = None,
        begin: Callable[..., list[Result] | None] | None = None,
        exact: tuple[float, int] | None = None,
        n_jobs: int | None = None,
        sizes: Sequence[float] | Array | None = None,
    ) -> list[Result]:
        """Solve all problems, ``n_jobs`` of them side by side.

        Parameters
        ----------
        solver : callable
            ``solver(k, tol=, max_iter=, start=, callback=)`` is the result of problem ``k``.
        tol, max_iter : float, int
            Its tolerance, and the limit of its sweeps, steps or passes.
        starts : sequence, optional
            Where every problem starts.
        begin : callable, optional
            ``begin(tol=, max_iter=, exact=, n_jobs=)`` makes the first steps of all problems in one
            go; ``solver`` goes on where they did not suffice. Nobody watches it: where somebody
            does it is not called. It can return None.
        exact : (float, int), optional
            Tolerance and limit of the second solution of problems of few rows, to rounding.
        n_jobs : int, optional
            Threads.
        sizes : sequence of float, optional
            What the time of every problem grows with: of several side by side the largest begin.

        Notes
        -----
        After an interrupt, problems that have not begun are solved as far as one sweep takes them.
        """
        self.max_iter = max_iter
        course: dict[str, Any] = {"tol": tol, "max_iter": max_iter}
        begun = self._begun(begin, starts, **course, exact=exact, n_jobs=n_jobs)
        results = {k: r for k, r in enumerate(begun) if r.converged or r.n_iter >= max_iter}

        def task(k: int, _: int = 0) -> None:
            start, done = (starts[k], 0) if starts else (None, 0)
            if begun:
                start, done = begun[k].dual, begun[k].n_iter
            left = course | {"max_iter": max_iter - done, "start": start}
            with self.problem(k) as callback:
                result = solver(k, **left, callback=callback)
            result = replace(result, n_iter=result.n_iter + done) if done else result
            if exact is not None and result.converged and len(result.coef) <= SMALL:
                again = solver(k, tol=exact[0], max_iter=exact[1], start=result.dual, callback=None)
                result = replace(again, converged=True, n_iter=result.n_iter)
            results[k] = result
            self.say(k, result)

        parts = [(k, k + 1) for k in range(len(self.names)) if k not in results]
        jobs = min(effective_n_jobs(n_jobs), len(parts))
        if sizes is not None and jobs > 1:  # the last to begin should be short
            parts.sort(key=lambda part: -sizes[part[0]])
        with parallel.blas_threads(1 if jobs > 1 else None):
            try:
                if jobs > 1:
                    parallel.run(task, parts, jobs, cancel=self._interrupt)
                else:  # no layer between fit and the solver
                    for k, _ in parts:
                        task(k)
            except KeyboardInterrupt:
                self._interrupt()
                parallel.run(task, [part for part in parts if part[0] not in results], jobs)
        return [results[k] for k in range(len(self.names))]

    def _begun(
        self, begin: Callable[..., list[Result] | None] | None, starts: Any, **course: Any
    ) -> list[Result]:
        """Return what ``begin`` has solved, or nothing where it is not called."""
        model = self.estimator
        watched = self._context is not None or model.verbose > 0 or model.max_time is not None
        if begin is None or starts or watched:
            return []
        try:
            return begin(**course) or []
        except KeyboardInterrupt:
            self._interrupt()
            return []

    @contextmanager
    def problem(self, number: int) -> Iterator[Callback]:
        """Give the callback that the solver of one problem calls after every sweep."""
        part = None
        if self._context is not None:
            with self._lock:
                part = self._parts.get(number)
                if part is None:
                    name = self.names[number]
                    part = self._context.subcontext(name, task_id=number, max_subtasks=None)
                    self._parts[number] = part
                    part.call_on_fit_task_begin(estimator=self.estimator, **self._data)

        def callback(n_iter: int, violation: float) -> bool:
            if n_iter < 0:
                self._interrupt()
                return False
            if part is not None:
                self._call_back(part)
            if self.estimator.verbose > 1:
                print(f"[{self.names[number]}] {self.unit} {n_iter}: violation {violation:.3g}")
            limit = self.estimator.max_time
            if limit is not None and time.monotonic() - self._begin > limit:
                self.reason = self.reason or f"max_time={limit} seconds are over"
            return not self.reason

        yield callback
        if part is not None:
            with self._lock:
                part.call_on_fit_task_end(estimator=self.estimator, **self._data)

    def keep(self, results: Sequence[Result]) -> None:
        """Store what the solver certifies of every problem, and the start of a next fit."""
        model = self.estimator
        self.stalled = any(r.stalled and not r.converged for r in results)
        model.n_iter_ = max(r.n_iter for r in results)
        model.converged_ = all(r.converged for r in results)
        model.objective_ = np.hstack([r.objective for r in results])
        model.gap_ = np.hstack([r.gap for r in results])
        if getattr(model, "warm_start", False):
            model._duals = [r.dual for r in results]

    def say(self, k: int, result: Result) -> None:
        """Print how one problem ended, if the estimator is verbose."""
        if self.estimator.verbose:
            share = relative_gap(result.objective, result.gap)
            print(
                f"[{self.names[k]}] {self.unit} {result.n_iter}: objective "
                f"{np.sum(result.objective):.6g}, duality gap {share:.2g} of it"
            )

    def _call_back(self, part: Any) -> None:
        with self._lock:
            sweep = part.subcontext(self.unit)
            sweep.call_on_fit_task_begin(estimator=self.estimator, **self._data)
            if sweep.call_on_fit_task_end(estimator=self.estimator, **self._data):
                self.reason = self.reason or "a callback asked to stop"

    def _interrupt(self) -> None:
        """Stop everything after the sweeps that are running."""
        self.interrupted, self.reason = True, "the fit was interrupted"

    def _finish(self) -> None:
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self.estimator, **self._data)

    def _tell(self) -> None:
        """Raise an interrupt again, or warn, if the model is not the optimum."""
        if self.interrupted:
            raise KeyboardInterrupt
        model = self.estimator
        if not model.converged_:
            limit = f"max_iter={self.max_iter} {PLURAL[self.unit]} did not suffice"
            warn_not_converged(model, self.reason or (STALLED if self.stalled else limit))


def solve_again(
    solver: Callable[..., Result],
    duals: Sequence[Array],
    left_out: Array,
    *,
    tol: float,
    max_iter: int,
    exact: tuple[float, int] | None = None,
    n_jobs: int | None = None,
) -> list[Result]:
    """Solve the problems of a fit from their solutions, without the marked rows.

    Like :meth:`Fit.solve`, but nobody watches: ``solver`` takes ``left_out`` as well.
    """
    results: dict[int, Result] = {}

    def task(k: int, _: int) -> None:
        dual, limits = duals[k], [(tol, max_iter)]
        if exact is not None and len(dual) <= SMALL:
            limits.append(exact)
        for least, most in limits:
            given = {"tol": least, "max_iter": most, "start": dual, "callback": None}
            results[k] = solver(k, left_out=left_out, **given)
            dual = results[k].dual

    jobs = min(effective_n_jobs(n_jobs), len(duals))
    with parallel.blas_threads(1 if jobs > 1 else None):
        parallel.run(task, parallel.ranges(len(duals), 1), jobs)
    return [results[k] for k in range(len(duals))]


def last_duals(estimator: Any, training: Any) -> list[Array] | None:
    """Return the dual variables of the last fit, if they are to be used and of the right shapes."""
    duals = getattr(estimator, "_duals", None) if estimator.warm_start else None
    if duals is None or [d.shape for d in duals] != [*estimator._shapes(training)]:
        return None
    return duals


def relative_gap(objective: Any, gap: Any) -> float:
    """Return the largest share of an objective that its gap is."""
    return float(np.max(np.asarray(gap) / np.maximum(np.abs(objective), 1e-300)))


def warn_not_converged(model: Any, reason: str) -> None:
    """Warn of a model that is not the optimum, at the line that called ``fit``."""
    warnings.warn(
        f"{type(model).__name__} has not converged: {reason}. The model is usable; its duality gap "
        f"is {relative_gap(model.objective_, model.gap_):.2g} of the objective.",
        ConvergenceWarning,
        stacklevel=outer_level(),
    )


def outer_level() -> int:
    """Return the ``stacklevel``, for a warning of the caller, of the first frame of a user."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    return level


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in ("hilbin", "sklearn", "contextlib")


# labels from scores, and paths
def has_probabilities(model: Any) -> bool:
    """Tell whether a model has ``predict_proba``."""
    if not (hasattr(model, "calibration_") or getattr(model, "probability", False)):
        raise AttributeError(
            f"{type(model).__name__} has learned no probabilities: set probability=True before fit"
        )
    return True


class ScoreClassifier(ClassifierMixin):
    """A classifier by the scores of its classes.

    Another base has ``_scores(X)`` of shape (n_samples, n_classes), or (n_samples, 1) for two. What
    has a ``calibration_``, which turns scores into probabilities, has ``predict_proba``.
    """

    classes_: Array
    _scores: Callable[[Any], Array]

    def decision_function(self, X: Any) -> Array:
        """Compute the scores of samples.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Samples, or whatever else ``fit`` takes.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Score of ``classes_[1]`` for two classes, else of every class.
        """
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Array:
        """Predict the class of the highest score.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Samples, or whatever else ``fit`` takes.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        return labels_of(self.classes_, scores)

    @available_where(has_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Compute the probabilities of classes. Needs ``probability=True``.

        The class that ``predict`` gives has the highest probability: where another one would have
        it, in close cases, they share theirs.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Samples, or whatever else ``fit`` takes.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``; they sum to 1 in every row.
        """
        check_is_fitted(self, "calibration_")
        calibration: Any = getattr(self, "calibration_")  # noqa: B009
        scores = self.decision_function(X)
        return agreeing(calibration.predict_proba(scores), scores)

    @available_where(has_probabilities)
    def predict_log_proba(self, X: Any) -> Array:
        """Compute the logarithms of ``predict_proba``.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Samples, or whatever else ``fit`` takes.

        Returns
        -------
        logarithms : ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


def labels_of(classes: Array, scores: Array) -> Array:
    """Return the class of the highest score, or of the sign of a single one."""
    best = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
    return classes[best.astype(np.intp)]


def agreeing(probabilities: Array, scores: Array) -> Array:
    """Return probabilities whose highest is that of the class of the highest score.

    Classes that would be above it share their probabilities with it.
    """
    best = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
    own = np.arange(probabilities.shape[1]) == best[:, None]
    shared = own | (probabilities > probabilities[own][:, None])
    mean = (probabilities * shared).sum(axis=1) / shared.sum(axis=1)
    P = np.where(shared, mean[:, None], probabilities) * np.where(own, 1 + AHEAD, 1.0)
    return np.asarray(P / P.sum(axis=1, keepdims=True))


class CostPath:
    """An estimator with a parameter ``C``; a subclass has ``_prepare`` and ``_solve``."""

    C: float

    @property
    def _bounded(self) -> bool:
        """Whether C bounds the dual variables, so that they grow with it."""
        return True

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Check and prepare the rows, and keep what does not depend on ``C``."""
        raise NotImplementedError

    def _solve(self, training: Any, starts: Sequence[Any] | None, data: Pair) -> list[Array]:
        """Train and keep the model; return the dual variables of every problem."""
        raise NotImplementedError

    def path(self, X: Any, y: Any, Cs: Any, sample_weight: Any = None) -> list[Self]:
        """Fit one model for every ``C``, each from where the next smaller one ended.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``; they are prepared once.
        Cs : array-like of float
            Weights of the loss, in any order.

        Returns
        -------
        models : list of estimators
            Fitted models, in the order of ``Cs``.
        """
        first = clone(self)
        return self._along(first, first._prepare(X, y, sample_weight), Cs, (X, y))

    def _along(self, first: Self, training: Any, Cs: Any, data: Pair) -> list[Self]:
        """Return models for every ``C``, from what ``first`` has prepared."""
        known = {name: value for name, value in vars(first).items() if name.endswith("_")}
        models: dict[float, Self] = {}
        duals: list[Array] | None = None
        last = 1.0
        for C in np.unique(np.asarray(Cs, np.float64)):
            model: Any = clone(self).set_params(C=float(C))
            model._check_parameters()
            vars(model).update(known)
            if duals is not None and self._bounded:
                duals = [dual * (C / last) for dual in duals]
            duals, last = model._solve(training, duals, data), C
            models[float(C)] = model
        return [models[float(C)] for C in Cs]
