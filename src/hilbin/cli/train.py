"""``hilbin train``: labeled images or a table to a model file.

The command is :class:`~hilbin.auto.ImageClassifier` or :class:`~hilbin.auto.TableClassifier` with
the same parameters, and gives the same model.
"""

import os
import re
import shlex
import warnings
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import joblib

from hilbin import parallel
from hilbin.auto import ImageClassifier, TableClassifier
from hilbin.auto.image_data import Cache
from hilbin.auto.table_data import SUFFIXES, SVMLIGHT
from hilbin.cli._console import Console
from hilbin.cli._outcome import InputError, require_output
from hilbin.images import UnreadableImageWarning
from hilbin.images.folders import ImageListError

AUTO = "auto"
UNITS = {"s": 1, "m": 60, "h": 3600}
# do not change the model
SILENT = ("source", "output", "jobs", "cache", "keep_cache", "force")
FOR_IMAGES = ("features", "network", "combine", "virtual", "max_side")
FOR_TABLES = ("target", "id", "drop")


@dataclass(frozen=True)
class TrainOptions:
    """Arguments of :func:`train`.

    Parameters
    ----------
    source : path
        A folder with a folder for every class, a CSV file with the columns ``path`` and ``label``,
        or a table.
    output : path
        Where the model goes.
    target, id, drop
        Columns of a table: labels, names of rows, and those to leave out.
    features, network, combine, virtual, max_side
        As in :class:`~hilbin.auto.ImageClassifier`.
    kernel, prefer, class_weight
        As in the classifiers.
    budget : str, optional
        Time limit of the choice, such as ``90s``, ``5m``, ``1h``.
    seed : int, default=0
        Random seed.
    jobs : int, default=-1
        Threads; -1 is all processors.
    cache : path, optional
        Cache folder for extracted features until the model is written; beside the output by
        default.
    keep_cache : bool, default=False
        Whether to keep the cache afterwards.
    force : bool, default=False
        Whether to overwrite the output.
    compact : bool, default=False
        Whether to write a file of about a quarter of the size, as in :func:`hilbin.save`.

    Examples
    --------
    >>> from hilbin.cli.train import TrainOptions
    >>> TrainOptions("photos", "m.hilbin", seed=3).command()
    'hilbin train photos -o m.hilbin --seed 3'
    """

    source: str | os.PathLike[str]
    output: str | os.PathLike[str]
    target: str | None = None
    features: str = AUTO
    network: str | os.PathLike[str] | None = None
    combine: str = "accuracy"
    kernel: str = AUTO
    prefer: str = "explainable"
    budget: str | None = None
    virtual: str | None = None
    seed: int = 0
    jobs: int = -1
    max_side: int = 256
    cache: str | os.PathLike[str] | None = None
    keep_cache: bool = False
    force: bool = False
    id: str | None = None
    drop: tuple[str, ...] = ()
    class_weight: str | None = None
    compact: bool = False

    def command(self) -> str:
        """Return the command line that asks for the same model."""
        words = ["hilbin", "train", os.fspath(self.source), "-o", os.fspath(self.output)]
        for option in fields(self):
            value = getattr(self, option.name)
            if option.name not in SILENT and value != option.default:
                for one in value if isinstance(value, tuple) else (value,):
                    flag = f"--{option.name.replace('_', '-')}"
                    words += [flag] if one is True else [flag, str(one)]
        return shlex.join(words)

    def cache_folder(self) -> Path:
        """Return the cache folder for extracted features."""
        return Path(f"{os.fspath(self.output)}.cache" if self.cache is None else self.cache)

    def given(self, names: tuple[str, ...]) -> list[str]:
        """Return those of the options that are not at their default."""
        defaults = {option.name: option.default for option in fields(self)}
        return [name for name in names if getattr(self, name) != defaults[name]]


@dataclass(frozen=True)
class Trained:
    """A model and its file.

    Parameters
    ----------
    output : Path
        The model file.
    n_bytes : int
        Its size.
    model : ImageClassifier or TableClassifier
        The model.
    """

    output: Path
    n_bytes: int
    model: Any

    @property
    def metadata(self) -> dict[str, Any]:
        """How the model was made."""
        found: dict[str, Any] = self.model.metadata_
        return found


def train(options: TrainOptions, console: Console | None = None) -> Trained:
    """Train a classifier and write it to a file.

    Parameters
    ----------
    options : TrainOptions
        What to train, and from what.
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
    check(options)
    images = is_of_images(options)
    fit = _fit_images if images else _fit_table
    with joblib.parallel_config(n_jobs=options.jobs), parallel.blas_threads(options.jobs):
        try:
            model = fit(options, console)
        except KeyboardInterrupt:
            hint = ("run the same command again to continue",) if images else ()
            raise KeyboardInterrupt(*hint) from None
    model.metadata_["command"] = options.command()
    model.save(options.output, compact=options.compact)
    if images and not options.keep_cache:
        Cache(options.cache_folder()).remove()
    return Trained(Path(options.output), os.path.getsize(options.output), model)


def _fit_images(options: TrainOptions, console: Console) -> ImageClassifier:
    model = ImageClassifier(
        options.features, network=options.network, combine=options.combine,
        virtual=options.virtual, max_side=options.max_side, cache=options.cache_folder(),
        **_common(options),
    )  # fmt: skip
    with warnings.catch_warnings(), console.following() as callback:
        warnings.simplefilter("ignore", UnreadableImageWarning)  # they are listed at the end
        try:
            model.fit(options.source, callback=callback)
        except ImageListError as error:
            raise InputError(
                f"{error}; for a table, name the column of labels with --target"
            ) from None
    return model.set_params(cache=None)  # the file is the same wherever the cache was


def _fit_table(options: TrainOptions, console: Console) -> TableClassifier:
    drop = list(options.drop) or None
    model = TableClassifier(id=options.id, drop=drop, **_common(options))
    with console.following() as callback:
        return model.fit(options.source, target=options.target, callback=callback)


def _common(options: TrainOptions) -> dict[str, Any]:
    return {
        "kernel": options.kernel,
        "prefer": options.prefer,
        "class_weight": options.class_weight,
        "max_time": None if options.budget is None else seconds_of(options.budget),
        "random_state": options.seed,
    }


def is_of_images(options: TrainOptions) -> bool:
    """Tell whether the source is of images, or else a table; raise for what does not fit it."""
    path = Path(options.source)
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if not path.exists():
        raise InputError(f"{path}: there is no such file or folder")
    images = path.is_dir() or (suffix == ".csv" and options.target is None)
    for name in options.given(FOR_TABLES if images else FOR_IMAGES):
        raise InputError(
            f"--{name.replace('_', '-')} is for {'tables' if images else 'images'}; "
            f"{path} is {'a folder or list of images' if images else 'a table'}"
        )
    if not images and suffix not in SUFFIXES:
        raise InputError(f"{path}: neither a folder nor a table ({', '.join(SUFFIXES)})")
    if not images and options.target is None and suffix not in SVMLIGHT:
        raise InputError(f"{path}: name the column of labels with --target")
    return images


def check(options: TrainOptions) -> None:
    """Raise for options that are wrong before any work is done."""
    if options.class_weight not in (None, "balanced"):
        raise InputError(f"--class-weight: {options.class_weight!r} is not 'balanced'")
    if options.budget is not None:
        seconds_of(options.budget)
    require_seed(options.seed)
    inputs = options.source, options.network
    require_output(options.output, inputs, force=options.force)


def require_seed(seed: int) -> None:
    """Raise unless this is a seed that NumPy takes."""
    if seed < 0 or seed >= 2**32:
        raise InputError(f"--seed must be from 0 to 4294967295, got {seed}")


def seconds_of(budget: str) -> float:
    """Return the seconds of a budget.

    Examples
    --------
    >>> from hilbin.cli.train import seconds_of
    >>> seconds_of("90s"), seconds_of("1.5m"), seconds_of("1h")
    (90.0, 90.0, 3600.0)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smh])\s*", budget)
    if match is None or float(match[1]) == 0:
        raise InputError(f"--budget: {budget!r} is not a time such as 90s, 5m or 1h")
    return float(match[1]) * UNITS[match[2]]


def size_of(n_bytes: int) -> str:
    """Return the size of a file in words.

    Examples
    --------
    >>> from hilbin.cli.train import size_of
    >>> size_of(4_200), size_of(4_200_000)
    ('4 kB', '4.2 MB')
    """
    return f"{n_bytes / 1e6:.1f} MB" if n_bytes > 1e5 else f"{n_bytes / 1e3:.0f} kB"


def summary(trained: Trained) -> str:
    """Return what the command prints."""
    about = trained.metadata
    size = size_of(trained.n_bytes)
    first, *rest = trained.model.summary().splitlines()
    lines = [f"{trained.output}: {first}, {size}", *rest]
    if about["suspicious"]:
        count = len(about["suspicious"])
        lines[-1] += f"; hilbin info lists {'it' if count == 1 else 'them'}"
    return "\n".join(lines)
