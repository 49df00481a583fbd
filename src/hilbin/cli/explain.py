"""``hilbin explain``: why a model gives an image, or a row of a table, its score."""

import csv
import io
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import joblib

from hilbin import parallel
from hilbin._arrays import Array
from hilbin.cli._models import Model, load_model
from hilbin.cli._outcome import InputError
from hilbin.cli._why_picture import why_picture
from hilbin.files import write_whole
from hilbin.images import read_image
from hilbin.inspection import Explanation, explain_image, explain_row
from hilbin.inspection.heat_maps import VersusError

SHOWN = 8  # features that are printed


def explain(
    model: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    label: str | None = None,
    versus: str | None = None,
    row: int | None = None,
    output: str | os.PathLike[str] | None = None,
    jobs: int = -1,
) -> Explanation:
    """Explain a score of an image, or of a row of a table.

    Parameters
    ----------
    model : path
        A file that ``hilbin train`` wrote.
    path : path
        The image or the table.
    label : str, optional
        The class whose score is explained; the predicted one by default.
    versus : str, optional
        Explain by how much that score is higher than this class's.
    row : int, optional
        Which row of the table, from 1.
    output : path, optional
        Where a picture of the heat map goes, or a CSV file of what every feature of a row adds.
    jobs : int, default=-1
        Threads; -1 is all processors.

    Returns
    -------
    why : Explanation
    """
    loaded = load_model(Path(model))
    if loaded.of_images and row is not None:
        raise InputError("--row is for tables; this model is of images")
    for name, value in (("--class", label), ("--versus", versus)):
        if value is not None and value not in loaded.classes:
            raise InputError(
                f"{name}: the model does not know {value!r}; it knows {', '.join(loaded.classes)}"
            )
    with joblib.parallel_config(n_jobs=jobs), parallel.blas_threads(jobs):
        why = _explained(loaded, Path(path), row, label, versus, whole=output is not None)
        if output is not None and not loaded.of_images:
            write_whole(output, as_csv(why).encode(errors="surrogateescape"))
            why = replace(why, features=why.features[:SHOWN])
        if output is not None and why.heat is not None:
            side = loaded.features.max_side
            shown = read_image(path, max_side=None if side is None else 2 * side, color=True)
            unit = "pixel" if why.exact else "cell"
            write_whole(output, why_picture(shown, why.heat, *why.caption(), unit))
    return why


def _explained(
    model: Model,
    path: Path,
    row: int | None,
    label: str | None,
    versus: str | None,
    whole: bool,
) -> Explanation:
    try:
        if model.of_images:
            known = model.calibration is not None
            scores = model.image_scores([path])[0] if known else None
            return explain_image(
                model.features,
                model.classifier,
                path,
                class_=label,
                versus=versus,
                feature_name=model.metadata["features"],
                probabilities=_first(model, scores),
            )
        rows, columns = _table(model, path, row)
        number = cast(int, row) - 1
        return explain_row(
            model.classifier,
            rows,
            number,
            class_=label,
            versus=versus,
            feature_names=columns,
            name=f"{path}:{row}",
            top=len(columns) if whole else SHOWN,
            probabilities=_first(model, model.scores(rows[number : number + 1])),
        )
    except VersusError as error:
        raise InputError(f"--{error}") from None


def _first(model: Model, scores: Array | None) -> Array | None:
    """Return the probabilities of the first row, if the model has some."""
    found = None if scores is None else model.probabilities(scores)
    return None if found is None else found[0]


def as_csv(why: Explanation) -> str:
    """Return what every feature adds to the score, as a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["feature", "value", "adds"])
    for one in why.features:
        writer.writerow([one["feature"], one["value"], one["adds"]])
    return text.getvalue()


def _table(model: Model, path: Path, row: int | None) -> tuple[Any, list[str]]:
    """The rows of a table that has the one asked for, and the names of its columns."""
    if row is None:
        raise InputError("say by --row which row of the table, from 1")
    rows = model.table(path).rows
    if row > rows.shape[0]:
        raise InputError(f"--row {row}: {path} has {rows.shape[0]} rows")
    return rows, model.columns(rows.shape[1])
