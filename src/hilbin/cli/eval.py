"""``hilbin eval``: how good a model is on images, or rows, that it has not seen."""

import csv
import io
import os
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from hilbin import parallel
from hilbin.cli._answers import Answers, answers
from hilbin.cli._classifiers import LINEAR
from hilbin.cli._console import Console
from hilbin.cli._models import Model, load_model
from hilbin.cli._outcome import InputError
from hilbin.inspection import (
    Duplicate,
    Evidence,
    Suspicion,
    additive,
    collect_evidence,
    find_duplicates,
)
from hilbin.inspection.duplicates import MOST_PICTURES, shown_picture
from hilbin.report import write_report
from hilbin.report.measures import wilson


@dataclass(frozen=True)
class Mistake:
    """An example that got a wrong label.

    Parameters
    ----------
    path : str
        Of the image, or of the table with the number of the row: ``data.csv:1``.
    true, predicted : str
        Labels.
    margin : float
        By how much the wrong class is ahead.
    true_score, predicted_score : float
    """

    path: str
    true: str
    predicted: str
    margin: float
    true_score: float
    predicted_score: float


@dataclass(frozen=True)
class Evaluated:
    """How good a model is.

    Parameters
    ----------
    n, right : int
        Examples of classes that the model knows, and how many got the right label.
    interval : (float, float)
        Wilson's 95 % interval of the accuracy.
    mean_class_accuracy : float
        Over the classes that have examples.
    majority_accuracy, majority_class : float, str
        Of always answering the class with most examples, which is this one.
    cv : dict or None
        Cross-validation when the model was trained, of it and of a linear one.
    per_class : dict from str to dict
        ``n`` and ``right`` of every class of the model.
    mistakes : list of Mistake
        Those with the largest margin first.
    unknown : dict from str to int
        Classes that the model does not know, and how many examples of them were left out.
    unreadable : list of dict
        ``path`` and ``reason`` of files that could not be read.
    """

    n: int
    right: int
    interval: tuple[float, float]
    mean_class_accuracy: float
    majority_accuracy: float
    majority_class: str
    cv: dict[str, float] | None
    per_class: dict[str, dict[str, int]]
    mistakes: list[Mistake]
    unknown: dict[str, int] = field(default_factory=dict)
    unreadable: list[dict[str, str]] = field(default_factory=list)

    @property
    def accuracy(self) -> float:
        """Share that got the right label."""
        return self.right / self.n

    @property
    def absent(self) -> list[str]:
        """Classes of the model without an example."""
        return [name for name, counts in self.per_class.items() if counts["n"] == 0]


def evaluate(
    model: str | os.PathLike[str],
    source: str | os.PathLike[str],
    *,
    report: str | os.PathLike[str] | None = None,
    baselines: Mapping[str, float] | None = None,
    jobs: int = -1,
    console: Console | None = None,
) -> Evaluated:
    """Compare what a model says about examples with their labels.

    Parameters
    ----------
    model : path
        A file that ``hilbin train`` wrote.
    source : path
        As in training: a folder with a folder for every class, a CSV file with the columns
        ``path`` and ``label``, or a table. Examples of classes that the model does not know are
        left out.
    report : path, optional
        Where to write a page about the model.
    baselines : mapping of str to float, optional
        Accuracies of other models on the same examples, for the page.
    jobs : int, default=-1
        Threads; -1 is all processors.
    console : Console, optional
        Told of the progress.

    Returns
    -------
    evaluated : Evaluated
    """
    console = Console(quiet=True) if console is None else console
    if report is not None and not Path(report).absolute().parent.is_dir():
        raise InputError(f"{Path(report).parent}: there is no such folder to write the report to")
    loaded = load_model(Path(model))
    parts = additive(loaded.classifier)
    with joblib.parallel_config(n_jobs=jobs), parallel.blas_threads(jobs):
        found = answers(loaded, parts, source, console)
        outcome = measured(loaded, found)
        if report is not None:
            shown = _baselines(loaded, outcome, baselines)
            collected = evidence(loaded, found, str(source), shown, console)
            with console.stage("writing the report"):
                write_report(collected, report)
    return outcome


def measured(model: Model, found: Answers) -> Evaluated:
    """What follows from the truth and the scores."""
    predicted = found.scores.argmax(axis=1)
    is_right = predicted == found.truth
    n, right = int(is_right.size), int(is_right.sum())
    counts = np.bincount(found.truth, minlength=len(model.classes))
    hits = np.bincount(found.truth[is_right], minlength=len(model.classes))
    low, high = wilson(right, n)
    cv = model.metadata["cv"]
    wanted = ("accuracy", "mean_class_accuracy", "linear_accuracy", "majority_accuracy")
    return Evaluated(
        n,
        right,
        (float(low), float(high)),
        float(np.mean(hits[counts > 0] / counts[counts > 0])),
        float(counts.max() / n),
        model.classes[int(counts.argmax())],
        None if cv is None else {key: cv[key] for key in wanted},
        {
            name: {"n": int(c), "right": int(h)}
            for name, c, h in zip(model.classes, counts, hits, strict=True)
        },
        _mistakes(model, found, predicted),
        found.unknown,
        found.unreadable,
    )


def _mistakes(model: Model, found: Answers, predicted: Any) -> list[Mistake]:
    wrong = np.flatnonzero(predicted != found.truth)
    listed = []
    for i in wrong:
        true, best = int(found.truth[i]), int(predicted[i])
        own, other = float(found.scores[i, true]), float(found.scores[i, best])
        name = str(found.paths[i]) if model.of_images else found.names[i]
        listed.append(
            Mistake(name, model.classes[true], model.classes[best], other - own, own, other)
        )
    return sorted(listed, key=lambda one: -one.margin)


def _baselines(
    model: Model, outcome: Evaluated, others: Mapping[str, float] | None
) -> dict[str, float]:
    """Accuracies to compare with; without others, those of cross-validation."""
    found = {f"always {outcome.majority_class}": outcome.majority_accuracy}
    if others is None and outcome.cv is not None:
        found["this model, cross-validated"] = outcome.cv["accuracy"]
        if model.metadata["kernel"] != LINEAR and outcome.cv["linear_accuracy"] is not None:
            found["linear, cross-validated"] = outcome.cv["linear_accuracy"]
    return found | dict(others or {})


def evidence(
    model: Model, found: Answers, source: str, baselines: Mapping[str, float], console: Console
) -> Evidence:
    """Collect all that the report shows.

    Parameters
    ----------
    model : Model
    found : Answers
        What the model says about the held-out examples.
    source : str
        Where they come from.
    baselines : mapping of str to float
        Accuracies of simpler models.
    console : Console
    """
    about = model.metadata
    columns = None if model.of_images else model.columns(found.rows.shape[1])
    with console.stage("looking for duplicates"):
        pairs = _duplicates(model, found) if model.of_images else None
        odd = _suspicions(model)
    with console.stage("looking for important features"):
        return collect_evidence(
            model.classifier,
            found.paths if model.of_images else found.rows,
            model.classifier.classes_[found.truth],
            features=model.features if model.of_images else None,
            title=f"{model.path.stem}: {about['features'] or 'table'}, {about['kernel']} kernel",
            names=found.names,
            feature_names=columns,
            feature_name=about["features"] or "",
            scores=found.scores,
            probabilities=model.probabilities(found.scores),
            baselines=baselines,
            suspicious=odd,
            duplicates=pairs,
            unreadable=_unreadable(model, found) if model.of_images else None,
            provenance=_provenance(model, found, source),
            timings=_timings(model, console),
        )


def _duplicates(model: Model, found: Answers) -> list[Duplicate]:
    """Held-out images that are nearly training images, the nearest first."""
    train = model.metadata["train"]
    return find_duplicates(
        found.paths,
        [model.classes[k] for k in found.truth],
        [_training_path(model, name) for name in train["names"]],
        train["labels"],
        test_names=found.names,
        train_names=train["names"],
        hashes=(found.hashes, train["hashes"]),
    )


def _training_path(model: Model, name: str) -> Path:
    source = Path(model.metadata["data"]["source"])
    return (source if source.is_dir() else source.parent) / name


def _suspicions(model: Model) -> list[Suspicion]:
    """Training examples whose labels looked wrong when the model was made."""
    return [
        Suspicion(
            one["name"],
            one["label"],
            one["suggested"],
            one["margin"],
            shown_picture(_training_path(model, one["name"]))
            if model.of_images and at < MOST_PICTURES
            else None,
        )
        for at, one in enumerate(model.metadata["suspicious"])
    ]


def _unreadable(model: Model, found: Answers) -> list[tuple[str, str]]:
    left_out = [(f["path"], f["reason"]) for f in found.unreadable]
    return left_out + [(f["name"], f["reason"]) for f in model.metadata["unreadable"]]


def _provenance(model: Model, found: Answers, source: str) -> dict[str, str]:
    about = model.metadata
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    return {
        "trained by": about["command"],
        "evaluated by": shlex.join(["hilbin", "eval", str(model.path), source]),
        "model": f"{model.path}, made {about['created']}",
        "seed": str(about["seed"]),
        "training data": f"{about['data']['n']} of {about['data']['source']}, "
        f"sha256 {about['data']['sha256']}",
        "held-out data": f"{found.truth.size} of {source}, sha256 {found.sha256}",
        "versions": versions,
    }


def _timings(model: Model, console: Console) -> dict[str, float]:
    trained = {f"train, {stage}": took for stage, took in model.metadata["seconds"].items()}
    return trained | {f"eval, {stage}": took for stage, took in console.seconds.items()}


def as_csv(mistakes: list[Mistake]) -> str:
    """The mistakes as a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["path", "true", "predicted", "margin", "true_score", "predicted_score"])
    for one in mistakes:
        writer.writerow(asdict(one).values())
    return text.getvalue()


def summary(outcome: Evaluated) -> str:
    """What the command prints."""
    low, high = outcome.interval
    lines = [
        f"accuracy {outcome.accuracy:.1%} (95% interval {low:.1%} to {high:.1%}), "
        f"{outcome.right} of {outcome.n} right",
        f"mean per class {outcome.mean_class_accuracy:.1%}; always {outcome.majority_class} "
        f"{outcome.majority_accuracy:.1%}",
    ]
    if outcome.cv is not None:
        linear = outcome.cv["linear_accuracy"]
        lines.append(
            f"by cross-validation when it was trained {outcome.cv['accuracy']:.1%}"
            + ("" if linear is None else f", linear {linear:.1%}")
        )
    return "\n".join(lines)


def complaints(outcome: Evaluated) -> list[str]:
    """What to say about the data."""
    lines = [f"cannot be read: {file['path']}: {file['reason']}" for file in outcome.unreadable]
    if outcome.unknown:
        listed = ", ".join(f"{name} ({n})" for name, n in outcome.unknown.items())
        lines.append(f"left out, for the model does not know these classes: {listed}")
    if outcome.absent:
        lines.append(f"no examples of these classes: {', '.join(outcome.absent)}")
    return lines
