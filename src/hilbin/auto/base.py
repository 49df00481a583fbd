"""What the classifiers that choose share: stages of a fit, metadata, evaluation, report, files.

A fitted classifier says in ``metadata_`` how it was made, as JSON can hold it:

==========================  ====================================================================
``kind``                    ``"images"`` or ``"table"``
``classes``                 names, in the order of the scores
``command``, ``seed``       what asks for the same model again
``model``, ``explainable``  name of the chosen candidate, and whether it is additive
``features``                images: names joined by ``+``
``max_side``, ``virtual``   images: as given
``choice``                  list of candidates: ``name``, ``explainable``, ``mean`` (accuracy),
                            ``standard_error``, ``n_rows``, ``seconds``
``skipped``                 names of candidates for which no time was left
``baselines``               accuracies of plain candidates, and of the largest class
``prefer``, ``cost_of_preference``  the preference, and what it costs in accuracy
``cv``                      None, or ``n``, ``accuracy``, ``mean_class_accuracy``,
                            ``linear_accuracy``, ``majority_accuracy``, ``winning_quantiles``
                            (101 scores of right predictions), ``single`` (places of the classes
                            that have a single example)
``suspicious``              list of ``name``, ``label``, ``suggested``, ``margin``
``unreadable``              list of ``name``, ``reason``
``data``                    ``source``, ``n``, ``per_class``, ``sha256``
``train``                   images: ``names``, ``labels``, ``hashes`` of those that were read
``table``                   tables: ``columns``, ``target``, ``id``, ``n_features``
``left_out``                tables: columns that are not learned from, and why
``versions``, ``created``, ``seconds``  of packages; in UTC; per stage
==========================  ====================================================================
"""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from hilbin import persist
from hilbin._arrays import Array
from hilbin._parameters import estimator, require_choice, require_positive
from hilbin.auto.choice import PREFER, Choice
from hilbin.auto.evaluation import Evaluation, Tested, evaluation
from hilbin.estimators._fit import ScoreClassifier, agreeing
from hilbin.inspection import Evidence, Suspicion, collect_evidence, suspicious_labels
from hilbin.report import write_report

TICK, ALMOST = 0.5, 0.99  # seconds between two looks at the clock; most that it can say
NAMED = 5  # classes that a message names
PACKAGES = ("hilbin", "numpy", "scipy", "scikit-learn", "Pillow")

# name of the stage, how much is done, how much there is
Callback = Callable[[str, int, int], object]


class Stopwatch:
    """Stages of a fit: they are told to a callback, timed, and printed if ``verbose``."""

    def __init__(self, callback: Callback | None = None, verbose: int = 0):
        self.callback, self.verbose = callback, verbose
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str, total: int = 1) -> Iterator[Callable[[int], None]]:
        """Time a stage; what is yielded takes how much of ``total`` is done."""

        def tell(done: int) -> None:
            if self.callback is not None:
                self.callback(name, done, total)

        begin = time.monotonic()
        tell(0)
        yield tell
        tell(total)
        took = self.seconds.get(name, 0.0) + time.monotonic() - begin
        self.seconds[name] = round(took, 3)
        self.say(f"{name}: {took:.1f} s")

    @contextmanager
    def timed_stage(self, name: str, expected: float) -> Iterator[None]:
        """Time a stage that cannot say how much is done: the clock says it, in per cent."""
        ended = threading.Event()
        with self.stage(name, 100) as tell:

            def tick() -> None:
                begin = time.monotonic()
                while not ended.wait(TICK):
                    share = (time.monotonic() - begin) / max(expected, TICK)
                    tell(int(100 * min(share, ALMOST)))

            ticking = threading.Thread(target=tick, daemon=True)
            ticking.start()
            try:
                yield
            finally:
                ended.set()
                ticking.join()

    def say(self, line: str) -> None:
        """Print a line if it is wanted."""
        if self.verbose:
            print(line, flush=True)


@estimator
class AutoClassifier(ScoreClassifier, BaseEstimator):
    """Base of the classifiers that choose their model.

    Parameters
    ----------
    prefer : {"explainable", "accurate"}, default="explainable"
        ``"explainable"`` takes an additive model, which can be explained exactly, unless another is
        better by more than one standard error of the difference; ``"accurate"`` always takes the
        most accurate model.
    class_weight : dict or "balanced", optional
        Factor of the weight of each class, in training and in accuracies.
    max_time : float, optional
        Time limit in seconds for choosing the model. Candidates are skipped when time runs out; if
        time is left, the best are compared on more rows. With a limit, the choice depends on the
        speed of the computer.
    random_state : int, RandomState or None, default=0
        Random seed of features, folds and samples.
    n_jobs : int, optional
        Threads; ``None`` is 1 unless in a ``joblib.parallel_config``, -1 all processors.
    verbose : int, default=0
        1 prints the budget for choosing the model, every stage, and the outcome.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels.
    choice_ : Choice
        The models compared, their accuracies, and the held-out scores of the best.
    calibration_ : ScoreCalibration
        The conversion of scores to probabilities, learned from the held-out scores.
    metadata_ : dict
        How the model was made; this is saved with the model.
    """

    _: KW_ONLY
    prefer: str = "explainable"
    class_weight: Any = None
    max_time: float | None = None
    random_state: Any = 0
    n_jobs: int | None = None
    verbose: int = 0

    def evaluate(
        self,
        X: Any,
        y: Any = None,
        *,
        report: str | os.PathLike[str] | None = None,
        baselines: Mapping[str, float] | None = None,
        title: str | None = None,
        callback: Callback | None = None,
    ) -> Evaluation:
        """Compare predictions with labels.

        Parameters
        ----------
        X, y
            Labeled examples that the model was not trained on, as in :meth:`fit`. Those of classes
            that the model does not know are left out and counted.
        report : path, optional
            Where to write a page about the results.
        baselines : mapping of str to float, optional
            Accuracies of other models on the same examples, for the page.
        title : str, optional
            Title of the page; the features and the model by default.
        callback : callable, optional
            Called with the name of a stage, how much of it is done, and how much there is.

        Returns
        -------
        evaluation : Evaluation
        """
        watch = Stopwatch(callback)
        tested = self._tested(X, y, watch)
        found = evaluation(tested, self._names, self.metadata_["cv"])
        if report is not None:
            evidence = self._evidence(tested, self._baselines(found, baselines), watch, title)
            with watch.stage("writing the report"):
                write_report(evidence, report)
        return found

    def evidence(self, X: Any, y: Any = None, *, callback: Callback | None = None) -> Evidence:
        """Collect what :meth:`report` shows.

        Parameters
        ----------
        X, y, callback
            As in :meth:`evaluate`.

        Returns
        -------
        evidence : hilbin.inspection.Evidence
        """
        watch = Stopwatch(callback)
        tested = self._tested(X, y, watch)
        found = evaluation(tested, self._names, self.metadata_["cv"])
        return self._evidence(tested, self._baselines(found, None), watch)

    def report(
        self,
        X: Any,
        y: Any = None,
        path: str | os.PathLike[str] = "report.html",
        *,
        callback: Callback | None = None,
    ) -> Path:
        """Write a page on how good the model is on test examples, and why it decides so.

        Parameters
        ----------
        X, y
            Labeled examples that the model was not trained on, as in :meth:`fit`.
        path : path, default="report.html"
            The HTML file; it is written whole or not at all.
        callback : callable, optional
            As in :meth:`evaluate`.

        Returns
        -------
        path : Path
        """
        self.evaluate(X, y, report=path, callback=callback)
        return Path(path)

    def save(self, path: str | os.PathLike[str], *, compact: bool = False) -> None:
        """Write the model to a file, whole or not at all; :func:`hilbin.load` reads it.

        Parameters
        ----------
        path : path
            The file, conventionally ``*.hilbin``.
        compact : bool, default=False
            Whether to write a file of about a quarter of the size, with rounded scores; see
            :func:`hilbin.save`.
        """
        check_is_fitted(self)
        persist.save(self, path, metadata=self.metadata_, compact=compact)

    def summary(self) -> str:
        """Return the choice, the runners-up, the baselines and doubts about the data, in words."""
        check_is_fitted(self)
        about = self.metadata_
        kind = "row" if about["kind"] == "table" else "image"
        parts = [counted(len(about["classes"]), "class"), counted(about["data"]["n"], kind)]
        lines = [
            f"{about['model']}: {', '.join([*parts, self._input])}",
            *accuracy_lines(about),
            *_channel_lines(about.get("channels")),
            *(_candidate_line(one, kind) for one in about["choice"]),
            *(f"not compared, for lack of time: {name}" for name in about["skipped"]),
        ]
        lines += [f"left out: {k!r}: {v}" for k, v in about.get("left_out", {}).items()]
        count = len(about["suspicious"])
        if count:
            lines.append("1 label looks wrong" if count == 1 else f"{count} labels look wrong")
        return "\n".join(lines)

    def score_threshold(self, share: float) -> float:
        """Return the score below which few right predictions lie, to reject unknown examples.

        Parameters
        ----------
        share : float from 0 to 1
            Share of the right predictions of held-out training examples that lie below.

        Returns
        -------
        threshold : float
        """
        check_is_fitted(self)
        quantiles = (self.metadata_["cv"] or {}).get("winning_quantiles")
        if quantiles is None:
            raise ValueError("no threshold is known: no training example could be held out")
        return float(np.interp(100 * share, np.arange(101), quantiles))

    def class_probabilities(self, scores: Array) -> Array:
        """Return the probabilities that belong to scores of all classes.

        Parameters
        ----------
        scores : array of shape (n_samples, n_classes)
            Scores; for two classes, ``-f`` and ``f`` of the decision function.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
        """
        plain = scores[:, 1] if scores.shape[1] == 2 else scores
        return agreeing(self.calibration_.predict_proba(plain), plain)

    # for the subclasses
    def _tested(self, X: Any, y: Any, watch: Stopwatch) -> Tested:
        raise NotImplementedError

    def _shown(self, tested: Tested) -> dict[str, Any]:
        """Return what :func:`collect_evidence` takes beside what all classifiers have."""
        raise NotImplementedError

    @property
    def _classifier(self) -> Any:
        """The classifier of rows."""
        raise NotImplementedError

    @property
    def _input(self) -> str:
        """What the model takes, in words."""
        raise NotImplementedError

    def _suspicions(self) -> list[Suspicion]:
        return [
            Suspicion(one["name"], one["label"], one["suggested"], one["margin"])
            for one in self.metadata_["suspicious"]
        ]

    @property
    def _names(self) -> list[str]:
        """Names of the classes."""
        return [str(c) for c in self.classes_]

    def _check_choice(self, kernels: Sequence[str], kernel: str) -> None:
        """Raise for parameters of the choice that are not valid."""
        require_choice("kernel", kernel, kernels)
        require_choice("prefer", self.prefer, PREFER)
        if self.max_time is not None:
            require_positive("max_time, if not None,", self.max_time)

    def _evidence(
        self,
        tested: Tested,
        baselines: Mapping[str, float],
        watch: Stopwatch,
        title: str | None = None,
    ) -> Evidence:
        about = self.metadata_
        with watch.stage("collecting evidence"):
            return collect_evidence(
                self._classifier,
                tested.examples,
                self.classes_[tested.truth],
                title=f"{self._input}, {about['model']}" if title is None else title,
                names=tested.names,
                scores=tested.scores,
                probabilities=self.class_probabilities(tested.scores),
                baselines=baselines,
                suspicious=self._suspicions(),
                candidates=about["choice"],
                candidates_note=_preference_note(about),
                provenance=self._provenance(tested),
                timings={f"train, {k}": v for k, v in about["seconds"].items()}
                | {f"test, {k}": v for k, v in watch.seconds.items()},
                **self._shown(tested),
            )

    def _baselines(self, found: Evaluation, others: Mapping[str, float] | None) -> dict[str, float]:
        """Return accuracies to compare with; without others, those of cross-validation."""
        shown = {f"always {found.majority_class}": found.majority_accuracy}
        if others is not None:
            return shown | dict(others)
        if found.cv is not None:
            shown["this model, cross-validated"] = found.cv["accuracy"]
        plain = self.metadata_["baselines"].items()
        return shown | {f"{k}, cross-validated": v for k, v in plain if k != "majority"}

    def _provenance(self, tested: Tested) -> dict[str, str]:
        about = self.metadata_
        data = about["data"]
        return {
            "trained by": about["command"],
            "made": about["created"],
            "seed": str(about["seed"]),
            "training data": f"{data['n']} of {data['source']}, sha256 {data['sha256']}",
            "test data": f"{tested.truth.size} of {tested.source}, sha256 {tested.sha256}",
            "versions": ", ".join(f"{k} {v}" for k, v in about["versions"].items()),
        }

    def _about(
        self, kind: str, labels: Array, scores: Array, names: Sequence[str] | None,
        data: dict[str, Any], watch: Stopwatch, **own: Any,
    ) -> dict[str, Any]:  # fmt: skip
        """Return the metadata; ``scores`` are those of training examples that were held out."""
        choice = self.choice_
        per_class = Counter(str(label) for label in labels.tolist())
        data = {**data, "n": labels.size, "per_class": dict(sorted(per_class.items()))}
        found = suspicious_labels(scores, labels, self.classes_, names=names)
        return {
            "kind": kind,
            "classes": self._names,
            "command": " ".join(repr(self).split()),
            "seed": self.random_state if isinstance(self.random_state, int) else None,
            "model": choice.best.name,
            "explainable": bool(choice.best.explainable),
            "choice": choice.table,
            "skipped": choice.skipped,
            "baselines": choice.baselines,
            "prefer": self.prefer,
            "cost_of_preference": choice.cost_of_preference,
            "cv": cross_validated(choice, scores, np.searchsorted(self.classes_, labels)),
            "suspicious": [
                {"name": s.name, "label": s.given, "suggested": s.suggested, "margin": s.margin}
                for s in found
            ],
            "unreadable": [],
            "data": data,
            **own,
            "versions": versions(),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": watch.seconds,
        }


def cross_validated(choice: Choice, scores: Array, truth: Array) -> dict[str, Any] | None:
    """Return what held-out scores say about the chosen model; None if there are none.

    Parameters
    ----------
    choice : Choice
        The choice, which has the baselines.
    scores : array of shape (n_samples, n_classes)
        Scores; rows with NaN were not held out.
    truth : int array of shape (n_samples,)
        Places of the labels among the classes.
    """
    known = ~np.isnan(scores).any(axis=1)
    if not known.any():
        return None
    ours = scores is choice.scores  # of the first division; a ridge's own are leave-one-out
    single = sorted(set(truth.tolist()) - set(truth[known].tolist()))
    scores, truth = scores[known], truth[known]
    right = scores.argmax(axis=1) == truth
    share = choice.correct[known] if ours else right
    winning = scores.max(axis=1)[right]
    plain = [v for name, v in choice.baselines.items() if name != "majority"]
    quantiles = np.percentile(winning, np.arange(101)).tolist() if winning.size else None
    return {
        "n": int(truth.size),
        "accuracy": float(share.mean()),
        "mean_class_accuracy": float(np.mean([share[truth == k].mean() for k in set(truth)])),
        "linear_accuracy": max(plain, default=None),
        "majority_accuracy": choice.baselines["majority"],
        "winning_quantiles": quantiles,
        "single": single,
    }


def accuracy_lines(about: Mapping[str, Any]) -> list[str]:
    """Return what cross-validation says, in words.

    Parameters
    ----------
    about : mapping
        Metadata of a classifier.
    """
    cv = about["cv"]
    if cv is None:
        return ["accuracy not known: every class has a single example"]
    baselines = ", ".join(f"{name} {value:.1%}" for name, value in about["baselines"].items())
    lines = [
        f"accuracy {cv['accuracy']:.1%} by cross-validation (mean per class "
        f"{cv['mean_class_accuracy']:.1%}); baselines: {baselines}"
    ]
    if cv.get("single"):
        lines.append(_single_note([about["classes"][place] for place in cv["single"]]))
    note = _preference_note(about)
    return [*lines, note] if about["cost_of_preference"] > 0 else lines


def _single_note(classes: Sequence[Any]) -> str:
    """Say which classes no accuracy is known of."""
    names = ", ".join(repr(str(name)) for name in classes[:NAMED])
    more = f" and {len(classes) - NAMED} more" if len(classes) > NAMED else ""
    which = (
        f"the class {names}, with" if len(classes) == 1 else f"the classes {names}{more}, each with"
    )
    return f"The accuracy does not count {which} a single example."


def counted(n: int, one: str) -> str:
    """Return a number of things.

    Examples
    --------
    >>> from hilbin.auto.base import counted
    >>> counted(1, "image"), counted(2, "class"), counted(1200, "row")
    ('1 image', '2 classes', '1,200 rows')
    """
    plural = f"{one}es" if one.endswith("s") else f"{one}s"
    return f"{n:,} {one if n == 1 else plural}"


def _candidate_line(one: Mapping[str, Any], kind: str) -> str:
    exact = "additive" if one["explainable"] else "not additive"
    accuracy = f"{one['mean']:6.1%} ± {one['standard_error']:.1%}"
    return f"  {accuracy}  {one['name']} ({exact}, {counted(one['n_rows'], kind)})"


def _channel_lines(channels: Mapping[str, Any] | None) -> list[str]:
    """Say what several features are worth, alone and together."""
    if channels is None:
        return []
    each = sorted(channels["each"], key=lambda one: -one["weight"])
    alone = ", ".join(f"{one['name']} {one['accuracy']:.1%}" for one in each)
    together = ", ".join(
        f"{'plain average' if rule == 'average' else f'weights by {rule}'} {accuracy:.1%}"
        for rule, accuracy in channels["rules"].items()
    )
    return [f"features alone: {alone}", f"features together: {together}"]


def _preference_note(about: Mapping[str, Any]) -> str:
    """Say what the preference for additive models costs."""
    cost = about["cost_of_preference"]
    if about["prefer"] != "explainable":
        return "The most accurate model was taken."
    if cost > 0:
        return (
            "A model with exact reasons was preferred; the most accurate one is "
            f"{100 * cost:.1f} points better, less than its standard error."
        )
    return "The preference for models with exact reasons cost nothing."


def versions() -> dict[str, str]:
    """Return the versions of hilbin and of what it stands on, as far as it is installed."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
