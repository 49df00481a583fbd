"""``hilbin explain``: why a model gives an image, or a row of a table, its score."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import joblib
import numpy as np
import typer
from numpy.typing import NDArray

from hilbin import parallel
from hilbin.cli import _arguments as arguments
from hilbin.cli._classifiers import class_scores
from hilbin.cli._explanations import Explainer
from hilbin.cli._layout import by_word
from hilbin.cli._leave_out import changes_without
from hilbin.cli._models import load_model
from hilbin.cli._outcome import DONE, FAILED, InputError, command, complain
from hilbin.cli._tables import SUFFIXES, read_table
from hilbin.cli._why import Why, caption, summary
from hilbin.cli._why_picture import why_picture
from hilbin.files import write_whole
from hilbin.images import ImageError, read_image

TOP = 8
GRID = 8  # cells along a side among which the strongest are named

Array = NDArray[Any]

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
) -> Why:
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
    why : Why
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
        if not loaded.of_images:
            return _of_row(Explainer(loaded), Path(path), row, label, versus)
        why = _of_image(Explainer(loaded), Path(path), label, versus)
        if output is not None and why.heat is not None:
            side = loaded.features.max_side
            shown = read_image(path, max_side=None if side is None else 2 * side, color=True)
            unit = "pixel" if why.exact else "cell"
            write_whole(output, why_picture(shown, why.heat, *caption(why), unit))
    return why


def _of_image(explainer: Explainer, path: Path, label: str | None, versus: str | None) -> Why:
    model = explainer.model
    image = model.features.read(path)
    explained = explainer.of(image)
    scores = _scores(explainer, explained.row)
    basic, direction = _asked(explainer, str(path), scores, label, versus)
    heat = explained.heat(direction)
    features: list[dict[str, Any]] = []
    if explainer.exact:
        name = model.metadata["features"]
        adds = by_word(model.features, explained.contributions @ direction, name)
        values = by_word(model.features, explained.row[0], name)
        features = _largest(list(adds), list(values.values()), np.array(list(adds.values())))
        basic["shares"] = float(heat.sum())
    return Why(**basic, features=features, places=_places(heat, image.shape), heat=heat)


def _of_row(
    explainer: Explainer, path: Path, number: int | None, label: str | None, versus: str | None
) -> Why:
    if number is None:
        raise InputError("say by --row which row of the table, from 1")
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: not a table ({', '.join(SUFFIXES)}); this model is of tables")
    about = explainer.model.metadata["table"]
    columns = about["columns"]
    rows = read_table(path, about["target"], columns=columns, n_features=about["n_features"]).rows
    if number > rows.shape[0]:
        raise InputError(f"--row {number}: {path} has {rows.shape[0]} rows")
    row = rows[number - 1 : number]
    scores = _scores(explainer, row)
    basic, direction = _asked(explainer, f"{path}:{number}", scores, label, versus)
    if explainer.parts is not None:
        adds = explainer.parts.contributions(row) @ direction
        basic["shares"] = float(adds.sum())
    else:
        adds = changes_without(explainer.model.classifier, rows, number - 1) @ direction
    values = row.toarray()[0] if hasattr(row, "toarray") else row[0]
    names = columns or [f"column {j + 1}" for j in range(rows.shape[1])]
    features = _largest(names, values, adds)
    return Why(**basic, features=features, places=[])


def _scores(explainer: Explainer, row: Any) -> Array:
    if explainer.parts is None:
        return class_scores(explainer.model.classifier, row)[0]
    return explainer.parts.scores(row)[0]


def _asked(
    explainer: Explainer, path: str, scores: Array, label: str | None, versus: str | None
) -> tuple[dict[str, Any], Array]:
    """What is known before the parts are, and the weights of the scores that are explained."""
    classes = explainer.model.classes
    best = int(scores.argmax())
    first = best if label is None else classes.index(label)
    direction = np.zeros(len(classes))
    direction[first] = 1
    if versus is not None:
        if versus == classes[first]:
            raise InputError(f"--versus: {versus!r} is the class that is explained; name another")
        direction[classes.index(versus)] = -1
    basic = {
        "path": path,
        "predicted": classes[best],
        "label": classes[first],
        "versus": versus,
        "score": float(scores @ direction),
        "intercept": None
        if explainer.intercept is None
        else float(explainer.intercept @ direction),
        "shares": None,
        "exact": explainer.exact,
        "note": explainer.note if explainer.model.of_images else _table_note(explainer),
        "scores": {name: float(s) for name, s in zip(classes, scores, strict=True)},
    }
    return basic, direction


def _table_note(explainer: Explainer) -> str:
    if explainer.exact:
        return "Every column adds by itself."
    return (
        "The kernel is an exponential, whose scores are no sums over the columns. Shown is what "
        "the score loses when one column takes its median in this table."
    )


def _largest(names: Any, values: Any, adds: Array) -> list[dict[str, Any]]:
    order = np.argsort(-np.abs(adds), kind="stable")[:TOP]
    return [
        {"feature": names[j], "value": float(values[j]), "adds": float(adds[j])}
        for j in order
        if adds[j] != 0
    ]


def _places(heat: Array, shape: tuple[int, ...]) -> list[dict[str, Any]]:
    """Cells of the image that add or take most."""
    rows, columns = (min(GRID, side) for side in heat.shape)
    cells = [
        (y, x, float(part.sum()))
        for y, band in enumerate(np.array_split(heat, rows, axis=0))
        for x, part in enumerate(np.array_split(band, columns, axis=1))
    ]
    height, width = shape[0] / rows, shape[1] / columns
    return [
        {
            "x": round(x * width),
            "y": round(y * height),
            "width": round(width),
            "height": round(height),
            "adds": adds,
        }
        for y, x, adds in sorted(cells, key=lambda cell: -abs(cell[2]))[:TOP]
    ]


@command
def explain_command(
    model: arguments.ModelFile,
    example: Example,
    output: PictureFile = None,
    label: ClassName = None,
    versus: Versus = None,
    row: RowNumber = None,
    jobs: arguments.Jobs = -1,
    as_json: arguments.AsJson = False,
) -> int:
    """Explain the predicted label of an image or a table row."""
    try:
        why = explain(model, example, label=label, versus=versus, row=row, output=output, jobs=jobs)
    except ImageError as error:
        complain(f"cannot be read: {error}")
        return FAILED
    if as_json:
        told = {k: v for k, v in asdict(why).items() if k != "heat"}
        print(json.dumps(told | {"picture": None if output is None else str(output)}))
    else:
        print("\n".join([summary(why), *([] if output is None else [str(output)])]))
    return DONE
