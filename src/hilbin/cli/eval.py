"""``hilbin eval``: how good a model is on images, or rows, that it has not seen."""

import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import joblib

from hilbin import parallel
from hilbin.auto import Evaluation, Mistake
from hilbin.cli._console import Console
from hilbin.cli._models import load_model, of_images
from hilbin.cli._outcome import InputError, csv_text, require_output


def evaluate(
    model: str | os.PathLike[str],
    source: str | os.PathLike[str],
    *,
    report: str | os.PathLike[str] | None = None,
    baselines: Mapping[str, float] | None = None,
    jobs: int = -1,
    console: Console | None = None,
) -> Evaluation:
    """Compare the predictions of a model with labels.

    Parameters
    ----------
    model : path
        The model file.
    source : path
        As in training: a folder with a folder for every class, a CSV file with the columns
        ``path`` and ``label``, or a table.
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
    evaluation : Evaluation
    """
    console = Console(quiet=True) if console is None else console
    require_output(report, (model, source))
    loaded = load_model(Path(model))
    if not Path(source).exists():
        raise InputError(f"{source}: there is no such file or folder")
    with (
        joblib.parallel_config(n_jobs=jobs),
        parallel.blas_threads(jobs),
        console.following() as callback,
    ):
        try:
            return loaded.evaluate(
                source, report=report, baselines=baselines,
                title=f"{Path(model).stem}: {loaded.metadata_['model']}", callback=callback,
            )  # fmt: skip
        except ValueError as error:
            if Path(source).is_dir() == of_images(loaded):
                raise
            kind = "images" if of_images(loaded) else "tables"
            raise InputError(f"{error}; this model is of {kind}") from None


def as_csv(mistakes: list[Mistake]) -> str:
    """Return the mistakes as a CSV file, with a column of IDs if there are some."""
    named = any(one.id is not None for one in mistakes)
    heads = [field.name for field in fields(Mistake) if named or field.name != "id"]
    return csv_text(heads, ([getattr(one, head) for head in heads] for one in mistakes))


def complaints(found: Evaluation) -> list[str]:
    """Return what to say about the data."""
    lines = [f"cannot be read: {file['path']}: {file['reason']}" for file in found.unreadable]
    if found.unknown:
        listed = ", ".join(f"{name} ({n})" for name, n in found.unknown.items())
        lines.append(f"left out, because the model does not know these classes: {listed}")
    if found.absent:
        lines.append(f"no examples of these classes: {', '.join(found.absent)}")
    return lines
