"""``hilbin explain``: why a model gives an image, or a row of a table, its score."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib

from hilbin import parallel
from hilbin.auto import ImageClassifier, TableClassifier
from hilbin.auto.table_data import as_table
from hilbin.cli._models import known_class, load_model
from hilbin.cli._outcome import InputError, csv_text, write_text
from hilbin.cli._why_picture import why_picture
from hilbin.files import write_whole
from hilbin.images import read_image
from hilbin.inspection import Explanation
from hilbin.inspection.heat_maps import VersusError

Output = str | os.PathLike[str] | None

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
        The model file.
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
    if isinstance(loaded, ImageClassifier) and row is not None:
        raise InputError("--row is for tables; this model is of images")
    asked = {
        "class_": known_class(loaded, label, "--class"),
        "versus": known_class(loaded, versus, "--versus"),
    }
    with joblib.parallel_config(n_jobs=jobs), parallel.blas_threads(jobs):
        try:
            if isinstance(loaded, ImageClassifier):
                return _of_image(loaded, Path(path), asked, output)
            return _of_row(loaded, Path(path), row, asked, output)
        except VersusError as error:
            raise InputError(f"--{error}") from None


def _of_image(
    model: ImageClassifier, path: Path, asked: dict[str, Any], output: Output
) -> Explanation:
    why = model.explain(path, **asked)
    if output is not None and why.heat is not None:
        side = model.max_side
        shown = read_image(path, max_side=None if side is None else 2 * side, color=True)
        unit = "pixel" if why.exact else "cell"
        write_whole(output, why_picture(shown, why.heat, *why.caption(), unit))
    return why


def _of_row(
    model: TableClassifier, path: Path, row: int | None, asked: dict[str, Any], output: Output
) -> Explanation:
    if row is None:
        raise InputError("pass the number of the table row, from 1, with --row")
    table = as_table(path)
    if row > table.n_rows:
        raise InputError(f"--row {row}: {path} has {table.n_rows} rows")
    whole = model.model_[0].input_columns_.size
    why = model.explain(table, row - 1, **asked, top=SHOWN if output is None else whole)
    if output is not None:
        write_text(output, as_csv(why))
    return replace(why, name=f"{path}:{row}", features=why.features[:SHOWN])


def as_csv(why: Explanation) -> str:
    """Return what every feature adds to the score, as a CSV file."""
    heads = ["feature", "value", "adds"]
    return csv_text(heads, ([one[head] for head in heads] for one in why.features))
