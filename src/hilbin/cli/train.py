"""``hilbin train``: labeled images or a table to a model file."""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
from sklearn.pipeline import Pipeline

from hilbin import parallel, persist
from hilbin.auto.image_data import Cache
from hilbin.cli._classifiers import LINEAR, check_kernel_name
from hilbin.cli._console import Console
from hilbin.cli._features import check_features
from hilbin.cli._material import ImageMaterial, TableMaterial
from hilbin.cli._metadata import about_model, accuracy_line
from hilbin.cli._options import AUTO, BALANCED, TrainOptions, seconds_of
from hilbin.cli._outcome import InputError, counted, require_new
from hilbin.cli._search import Material, attempt, make, search
from hilbin.cli._sources import open_source
from hilbin.cli._tables import Table
from hilbin.images.augment import parse_transforms


@dataclass(frozen=True)
class Trained:
    """What training gave.

    Parameters
    ----------
    output : Path
        The model file.
    n_bytes : int
        Its size.
    metadata : dict
        What it says about itself, as :func:`hilbin.persist.info` gives it.
    """

    output: Path
    n_bytes: int
    metadata: dict[str, Any]

    @property
    def unreadable(self) -> list[dict[str, str]]:
        """Names of files that could not be read, and reasons."""
        found: list[dict[str, str]] = self.metadata["unreadable"]
        return found


def train(options: TrainOptions, console: Console | None = None) -> Trained:
    """Train a classifier and write it to a file.

    Parameters
    ----------
    options : TrainOptions
    console : Console, optional
        Told of the progress; nobody by default.

    Returns
    -------
    trained : Trained

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hilbin.cli.train import TrainOptions, train
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder) / "data.csv"
    ...     _ = table.write_text("width,y\\n1,thin\\n2,thin\\n8,thick\\n9,thick\\n")
    ...     trained = train(TrainOptions(table, Path(folder) / "m.hilbin", target="y"))
    >>> trained.metadata["classes"], trained.metadata["data"]["n"]
    (['thick', 'thin'], 4)
    """
    console = Console(quiet=True) if console is None else console
    end = time.monotonic() + (seconds_of(options.budget) if options.budget else 0)
    check(options)
    data = open_source(options.source, options.target, id=options.id, drop=options.drop)
    cache = Cache(options.cache_folder())
    with joblib.parallel_config(n_jobs=options.jobs), parallel.blas_threads(options.jobs):
        try:
            material: Material = (
                TableMaterial(options, data)
                if isinstance(data, Table)
                else ImageMaterial(options, data, cache, console)
            )
            trained = _train(options, material, console, end)
        except KeyboardInterrupt:
            hint = () if isinstance(data, Table) else ("run the same command again to continue",)
            raise KeyboardInterrupt(*hint) from None
    if not options.keep_cache:
        cache.remove()
    return trained


def check(options: TrainOptions) -> None:
    """Complain about options that are wrong before any work is done."""
    if options.features != AUTO:
        check_features(options.features)
    if options.kernel != AUTO:
        check_kernel_name(options.kernel)
    if options.class_weight not in (None, BALANCED):
        raise InputError(f"--class-weight: {options.class_weight!r} is not {BALANCED!r}")
    if options.virtual is not None:
        try:
            parse_transforms(options.virtual)
        except ValueError as error:
            raise InputError(f"--virtual: {error}") from None
    if options.seed < 0 or options.seed >= 2**32:
        raise InputError(f"--seed must be from 0 to 4294967295, got {options.seed}")
    output = Path(options.output)
    if output.is_dir():
        raise InputError(f"{output}: is a folder, not a file to write the model to")
    require_new(output, options.force)
    if not output.parent.is_dir():
        raise InputError(f"{output.parent}: there is no such folder to write the model to")
    if not os.access(output.parent, os.W_OK):
        raise InputError(f"{output.parent}: not allowed to write there")


def _train(options: TrainOptions, material: Material, console: Console, end: float) -> Trained:
    best, tried = search(options, material, console, lambda: end - time.monotonic())
    trial = best.trial
    linear = best
    if trial.kernel != LINEAR and best.held_out is not None:
        plain = type(trial)(trial.features, LINEAR)
        linear = attempt(plain, material, options, console, "linear baseline")
    examples = material.examples(trial.features)
    with console.stage("training"):
        made = make(trial, material, options.seed, options.class_weight)
        model = made().fit(examples.rows, examples.labels)
    pipeline = Pipeline([*material.steps(trial.features), ("classifier", model)])
    metadata = about_model(options, material, best, linear, tried, console.seconds)
    metadata["classes"] = [str(c) for c in model.classes_]
    persist.save(pipeline, options.output, metadata=metadata)
    return Trained(Path(options.output), os.path.getsize(options.output), metadata)


def summary(trained: Trained) -> str:
    """What the command prints."""
    about = trained.metadata
    thing = "image" if about["kind"] == "images" else "row"
    used = ", ".join(filter(None, (about["features"], about["kernel"])))
    lines = [
        f"{trained.output}: {counted(len(about['classes']), 'class')}, "
        f"{counted(about['data']['n'], thing)}, "
        f"{used}, {trained.n_bytes / 1e6:.1f} MB"
    ]
    lines.append(accuracy_line(about["cv"]))
    if len(about["tried"]) > 1:
        lines += [f"tried: {_outcome(one)}" for one in about["tried"]]
    if about["suspicious"]:
        count = len(about["suspicious"])
        look = "1 label looks" if count == 1 else f"{count} labels look"
        lines.append(f"{look} wrong; hilbin info lists {'it' if count == 1 else 'them'}")
    return "\n".join(lines)


def _outcome(tried: dict[str, Any]) -> str:
    accuracy = tried["accuracy"]
    told = "not, for lack of time" if accuracy is None else f"{accuracy:.1%}"
    return f"{tried['configuration']}: {told}"
