"""``hilbin explain``: why a model gives an image, or a row of a table, its score."""

import os
from pathlib import Path
from typing import Annotated, Any, cast

import joblib
import typer

from hilbin import parallel
from hilbin.cli._models import Model, load_model
from hilbin.cli._outcome import InputError
from hilbin.cli._why_picture import why_picture
from hilbin.files import write_whole
from hilbin.images import read_image
from hilbin.inspection import Explanation, explain_image, explain_row
from hilbin.inspection.heat_maps import VersusError

Example = Annotated[Path, typer.Argument(help="Image, or table for a model of tables.")]
PictureFile = Annotated[Path | None, typer.Option("--output", "-o", help="Picture (PNG) to write.")]
ClassName = Annotated[
    str | None,
    typer.Option("--class", help="Class whose score is explained; the predicted one by default."),
]
Versus = Annotated[str | None, typer.Option(help="Explain the lead over this class.")]
RowNumber = Annotated[
    int | None, typer.Option("--row", min=1, help="Number of the table row, from 1.")
]


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
        Where a picture of the heat map goes.
    jobs : int, default=-1
        Threads; -1 is all processors.

    Returns
    -------
    why : Explanation
    """
    loaded = load_model(Path(model))
    if loaded.of_images and row is not None:
        raise InputError("--row is for tables; this model is of images")
    if not loaded.of_images and output is not None:
        raise InputError("--output is for images; this model is of tables")
    for name, value in (("--class", label), ("--versus", versus)):
        if value is not None and value not in loaded.classes:
            raise InputError(
                f"{name}: the model does not know {value!r}; it knows {', '.join(loaded.classes)}"
            )
    with joblib.parallel_config(n_jobs=jobs), parallel.blas_threads(jobs):
        why = _explained(loaded, Path(path), row, label, versus)
        if output is not None and why.heat is not None:
            side = loaded.features.max_side
            shown = read_image(path, max_side=None if side is None else 2 * side, color=True)
            unit = "pixel" if why.exact else "cell"
            write_whole(output, why_picture(shown, why.heat, *why.caption(), unit))
    return why


def _explained(
    model: Model, path: Path, row: int | None, label: str | None, versus: str | None
) -> Explanation:
    try:
        if model.of_images:
            return explain_image(
                model.features,
                model.classifier,
                path,
                class_=label,
                versus=versus,
                feature_name=model.metadata["features"],
            )
        rows, columns = _table(model, path, row)
        return explain_row(
            model.classifier,
            rows,
            cast(int, row) - 1,
            class_=label,
            versus=versus,
            feature_names=columns,
            name=f"{path}:{row}",
        )
    except VersusError as error:
        raise InputError(f"--{error}") from None


def _table(model: Model, path: Path, row: int | None) -> tuple[Any, list[str]]:
    """The rows of a table that has the one asked for, and the names of its columns."""
    if row is None:
        raise InputError("say by --row which row of the table, from 1")
    rows = model.table(path).rows
    if row > rows.shape[0]:
        raise InputError(f"--row {row}: {path} has {rows.shape[0]} rows")
    return rows, model.columns(rows.shape[1])
