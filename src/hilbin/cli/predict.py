"""``hilbin predict``: labels and scores of images, or of the rows of tables."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from hilbin import parallel
from hilbin.auto import ImageClassifier, TableClassifier
from hilbin.cli._console import Console
from hilbin.cli._models import Model, load_model
from hilbin.cli._outcome import InputError, csv_text, one_line
from hilbin.cli._sorting import copy_into, folder_names
from hilbin.images import find_images
from hilbin.inspection import class_scores

BLOCK = 64
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Prediction:
    """What the model says about one image or row.

    Parameters
    ----------
    path : str
        Path of the image, or of the table with the number of the row: ``data.csv:1``.
    label : str
        Label of the highest score; "unknown" if it is rejected.
    score : float
        The highest score.
    rejected : bool
        Whether the score is too low.
    top : list of (str, float)
        The best labels and their scores.
    probabilities : list of float
        Probabilities of the labels of ``top``.
    copy : str or None
        Where the image was copied to.
    id : str or None
        Name of the row, if a column of the table holds it.
    """

    path: str
    label: str
    score: float
    rejected: bool
    top: list[tuple[str, float]]
    probabilities: list[float]
    copy: str | None = None
    id: str | None = None


@dataclass
class Predicted:
    """What came of all files.

    Parameters
    ----------
    predictions : list of Prediction
    unreadable : list of dict
        ``path`` and ``reason`` of files that could not be read.
    """

    predictions: list[Prediction] = field(default_factory=list)
    unreadable: list[dict[str, str]] = field(default_factory=list)


def predict(
    model: str | os.PathLike[str],
    paths: Sequence[str | os.PathLike[str]],
    *,
    top: int = 1,
    reject: float | None = None,
    sort_into: str | os.PathLike[str] | None = None,
    jobs: int = -1,
    console: Console | None = None,
) -> Predicted:
    """Predict the labels of images, or of the rows of tables.

    Parameters
    ----------
    model : path
        The model file.
    paths : sequence of paths
        Images and folders of images; tables, if the model is of tables.
    top : int, default=1
        How many labels to give.
    reject : float from 0 to 1, optional
        Answer "unknown" where the highest score is lower than it was for all but this share of
        the held-out training examples that were classified correctly.
    sort_into : path, optional
        Copy every image into a folder of its label in this folder.
    jobs : int, default=-1
        Threads; -1 is all processors.
    console : Console, optional
        Told of the progress.

    Returns
    -------
    predicted : Predicted

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hilbin.cli.predict import predict
    >>> from hilbin.cli.train import TrainOptions, train
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table, model = Path(folder) / "data.csv", Path(folder) / "m.hilbin"
    ...     _ = table.write_text("width,y\\n" + "1,thin\\n2,thin\\n8,thick\\n9,thick\\n" * 3)
    ...     _ = train(TrainOptions(table, model, target="y"))
    ...     predicted = predict(model, [table])
    >>> [one.label for one in predicted.predictions[:4]]
    ['thin', 'thin', 'thick', 'thick']
    """
    console = Console(quiet=True) if console is None else console
    loaded = load_model(Path(model))
    if reject is not None and not 0 <= reject <= 1:
        raise InputError(f"--reject must be from 0 to 1, got {reject}")
    threshold = -np.inf if reject is None else loaded.score_threshold(reject)
    decide = _decider(loaded, top, threshold)
    with joblib.parallel_config(n_jobs=jobs), parallel.blas_threads(jobs):
        if isinstance(loaded, TableClassifier):
            if sort_into is not None:
                raise InputError("--sort-into copies images; this model is of tables")
            return _of_tables(loaded, [Path(p) for p in paths], decide)
        images = listed_images([Path(p) for p in paths])
        folder = None if sort_into is None else Path(sort_into)
        return _of_images(loaded, images, decide, folder, console)


Decide = Callable[[str, Any], Prediction]


def _decider(model: Model, top: int, threshold: float) -> Decide:
    classes = [str(c) for c in model.classes_]

    def decide(path: str, scores: Any) -> Prediction:
        order = np.argsort(-scores, kind="stable")[: max(1, top)]
        best = [(classes[k], float(scores[k])) for k in order]
        label, score = best[0]
        rejected = bool(score < threshold)
        shares = model.class_probabilities(scores[None])[0]
        return Prediction(
            path, UNKNOWN if rejected else label, score, rejected, best,
            [float(shares[k]) for k in order],
        )  # fmt: skip

    return decide


def listed_images(paths: Sequence[Path]) -> list[Path]:
    """Return image files, and those of folders."""
    images: list[Path] = []
    for path in paths:
        images += find_images(path) if path.is_dir() else [path]
    if not images:
        raise InputError(f"{', '.join(map(str, paths))}: there is no image")
    return images


def _of_images(
    model: ImageClassifier,
    images: list[Path],
    decide: Decide,
    folder: Path | None,
    console: Console,
) -> Predicted:
    folders = folder_names(dict.fromkeys([*map(str, model.classes_), UNKNOWN]))
    found = Predicted()
    with console.stage("predicting", len(images)) as advance:
        for begin, end in parallel.ranges(len(images), BLOCK):
            scores, unreadable = model.scores_with_errors(images[begin:end])
            for i, path in enumerate(images[begin:end]):
                if i in unreadable:
                    reason = unreadable[i].reason
                    found.unreadable.append({"path": str(path), "reason": reason})
                    continue
                one = decide(str(path), scores[i])
                if folder is not None:
                    copy = copy_into(folder / folders[one.label], path)
                    one = replace(one, copy=str(copy))
                found.predictions.append(one)
            advance(end - begin)
    return found


def _of_tables(model: TableClassifier, paths: Sequence[Path], decide: Decide) -> Predicted:
    found = Predicted()
    for path in paths:
        names = model.row_names(path)
        for i, scores in enumerate(class_scores(model, path)):
            one = decide(f"{path}:{i + 1}", scores)
            found.predictions.append(replace(one, id=None if names is None else names[i]))
    return found


def as_csv(found: Predicted) -> str:
    """Return the predictions as a CSV file, a line for each.

    Columns are the path, the ID if there is one, and label, score and probability of the best
    classes.
    """
    most = max((len(p.top) for p in found.predictions), default=1)
    named = any(p.id is not None for p in found.predictions)
    ends = ["", *(f"_{k}" for k in range(2, most + 1))]
    heads = [what + end for end in ends for what in ("label", "score", "probability")]
    rows = (
        [one.path, *([one.id] if named else []), *(v for values in _told(one) for v in values)]
        for one in found.predictions
    )
    return csv_text(["path", *(["id"] if named else []), *heads], rows)


def as_lines(found: Predicted) -> str:
    """Return the predictions as lines, by tabs: path, ID if there is one, labels, percentages."""
    lines = []
    for one in found.predictions:
        words = [one.path, *([] if one.id is None else [one.id])]
        for label, _, probability in _told(one):
            words += [label, f"{probability:.1%}"]
        lines.append("\t".join(map(one_line, words)))
    return "\n".join(lines)


def _told(one: Prediction) -> list[tuple[str, float, float]]:
    """Return label, score and probability of the best classes."""
    labels = [one.label, *(label for label, _ in one.top[1:])]
    scores = [score for _, score in one.top]
    return list(zip(labels, scores, one.probabilities, strict=True))
