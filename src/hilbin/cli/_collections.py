"""A collection in use: made from a folder or a table, or read from the file that keeps it."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import joblib

from hilbin import parallel, persist
from hilbin.auto import ImageClassifier, ImageCollection, TableClassifier, TableCollection
from hilbin.auto.image_data import Cache
from hilbin.auto.table_data import SUFFIXES
from hilbin.cli._console import Console
from hilbin.cli._outcome import InputError
from hilbin.images import UnreadableImageWarning

FOR_IMAGES = ("features", "network", "max_side", "cache", "keep_cache")
FOR_TABLES = ("id", "drop")
OF_A_MODEL = ("features", "network", "max_side", "drop")


@dataclass(frozen=True)
class CollectionOptions:
    """Where a collection comes from.

    Parameters
    ----------
    source : path
        A folder of images, a table, a collection that was saved, or a classifier.
    features, network, max_side
        As in :class:`~hilbin.auto.ImageCollection`.
    id, drop
        Columns of a table: names of rows, and those to leave out.
    seed : int, default=0
        Random seed.
    jobs : int, default=-1
        Threads; -1 is all processors.
    among : path, optional
        The folder or table to search, if ``source`` is a classifier, whose features are taken.
    cache : path, optional
        Cache folder for extracted features until the result is written.
    keep_cache : bool, default=False
        Whether to keep the cache afterwards.

    Examples
    --------
    >>> from hilbin.cli._collections import CollectionOptions
    >>> CollectionOptions("photos").seed
    0
    """

    source: str | os.PathLike[str]
    features: str = "auto"
    network: str | os.PathLike[str] | None = None
    max_side: int = 256
    cache: str | os.PathLike[str] | None = None
    keep_cache: bool = False
    id: str | None = None
    drop: tuple[str, ...] = ()
    seed: int = 0
    jobs: int = -1
    among: str | os.PathLike[str] | None = None

    @property
    def examples(self) -> str | os.PathLike[str]:
        """Where the examples are: the source, unless that is a classifier."""
        return self.source if self.among is None else self.among

    @property
    def is_folder(self) -> bool:
        """Whether the examples are a folder of images."""
        return Path(self.examples).is_dir()

    @property
    def is_table(self) -> bool:
        """Whether the examples are a table."""
        name = Path(self.examples).name.lower().removesuffix(".gz")
        return not self.is_folder and Path(name).suffix in SUFFIXES

    def check(self) -> None:
        """Raise for a source that is not there, and for options that are not for it."""
        for path in (self.source, self.examples):
            if not Path(path).exists():
                raise InputError(f"{path}: there is no such file or folder")
        if self.among is not None and not (self.is_folder or self.is_table):
            raise InputError(f"--among: {self.among} is neither a folder of images nor a table")
        if not 0 <= self.seed < 2**32:
            raise InputError(f"--seed must be from 0 to 4294967295, got {self.seed}")
        self._check_options()

    def _check_options(self) -> None:
        kind = "a table" if self.is_table else "a saved collection"
        found = "a folder of images" if self.is_folder else kind
        defaults = {option.name: option.default for option in fields(self)}
        for name in (*FOR_IMAGES, *FOR_TABLES):
            if getattr(self, name) == defaults[name]:
                continue
            option = name.replace("_", "-")
            if not (self.is_folder if name in FOR_IMAGES else self.is_table):
                what = "folders of images" if name in FOR_IMAGES else "tables"
                raise InputError(f"--{option} is for {what}; {self.examples} is {found}")
            if self.among is not None and name in OF_A_MODEL:
                raise InputError(f"--{option}: features are those of {self.source}")


@contextmanager
def opened(
    options: CollectionOptions, console: Console, output: str | os.PathLike[str] | None = None
) -> Iterator[Any]:
    """Yield the collection; when all is done, the cache folder, beside the output, is removed."""
    options.check()
    folder = options.cache
    if folder is None and output is not None:
        folder = f"{os.fspath(output)}.cache"
    with joblib.parallel_config(n_jobs=options.jobs), parallel.blas_threads(options.jobs):
        try:
            yield _made(options, console, folder)
        except KeyboardInterrupt:
            resumes = options.is_folder and folder is not None
            hint = ("run the same command again to continue",) if resumes else ()
            raise KeyboardInterrupt(*hint) from None
    if options.is_folder and folder is not None and not options.keep_cache:
        Cache(folder).remove()


def _made(options: CollectionOptions, console: Console, folder: Any) -> Any:
    model = None if options.among is None else _classifier(options)
    if options.is_folder:
        images = ImageCollection(
            options.features, network=options.network, max_side=options.max_side, cache=folder,
            random_state=options.seed,
        )  # fmt: skip
        with warnings.catch_warnings(), console.following() as callback:
            warnings.simplefilter("ignore", UnreadableImageWarning)  # they are listed at the end
            return images.fit(options.examples, model=model, callback=callback).set_params(
                cache=None
            )
    if options.is_table:
        table = TableCollection(options.id, drop=list(options.drop) or None)
        with console.following() as callback:
            return table.set_params(random_state=options.seed).fit(
                options.examples, model=model, callback=callback
            )
    return load_collection(options.source)


def _classifier(options: CollectionOptions) -> Any:
    """Return the classifier whose features are taken."""
    found = persist.load(options.source)
    wanted = ImageClassifier if options.is_folder else TableClassifier
    if not isinstance(found, wanted):
        raise InputError(
            f"{options.source}: holds {type(found).__name__}, but {options.among} needs the "
            f"features of {wanted.__name__}"
        )
    return found


def load_collection(path: str | os.PathLike[str]) -> ImageCollection | TableCollection:
    """Load a collection of images or table rows.

    Parameters
    ----------
    path : path
        The file that ``hilbin similar -o``, or ``save`` in Python, has written.
    """
    try:
        found = persist.load(path)
    except persist.ModelFileError as error:
        sources = "a folder of images, a table, or what hilbin similar FOLDER -o FILE writes"
        raise InputError(f"{error}; needed is {sources}") from error
    if isinstance(found, ImageClassifier | TableClassifier):
        raise InputError(f"{path}: a classifier; pass the folder or table to search with --among")
    if not isinstance(found, ImageCollection | TableCollection) or not hasattr(found, "index_"):
        raise InputError(
            f"{path}: holds {type(found).__name__}, not a collection, which hilbin similar FOLDER "
            "-o FILE writes"
        )
    return found


def unreadable_of(collection: Any, options: CollectionOptions) -> list[dict[str, str]]:
    """Return the images of a folder that cannot be read: ``name`` and ``reason``.

    Those that were left out when a collection was saved were told then.
    """
    found: list[dict[str, str]] = collection.unreadable_ if options.is_folder else []
    return found
