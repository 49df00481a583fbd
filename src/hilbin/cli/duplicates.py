"""``hilbin duplicates``: images that are nearly the same, or equal rows of a table."""

from dataclasses import dataclass

import joblib

from hilbin.auto import duplicate_images
from hilbin.cli._collections import CollectionOptions, opened
from hilbin.cli._console import Console
from hilbin.cli._outcome import one_line


@dataclass(frozen=True)
class Duplicates:
    """What :func:`duplicates` found.

    Parameters
    ----------
    groups : list of lists of str
        Names of images, or rows, that belong together; the largest groups first.
    unreadable : list of dict
        Images that were left out: ``name`` and ``reason``.
    """

    groups: list[list[str]]
    unreadable: list[dict[str, str]]


def duplicates(options: CollectionOptions, console: Console | None = None) -> Duplicates:
    """Find duplicates in a folder, a table, or a collection that was saved.

    Parameters
    ----------
    options : CollectionOptions
        The collection; no features of images are computed.
    console : Console, optional
        Told of the progress.

    Returns
    -------
    duplicates : Duplicates

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hilbin.cli._collections import CollectionOptions
    >>> from hilbin.cli.duplicates import duplicates
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder) / "data.csv"
    ...     _ = table.write_text("width,height\\n1,1\\n9,7\\n1,1\\n")
    ...     duplicates(CollectionOptions(table)).groups
    [['row 1', 'row 3']]
    """
    console = Console(quiet=True) if console is None else console
    if not options.is_folder:
        with opened(options, console) as collection:
            return Duplicates(collection.duplicates(), [])
    options.check()
    with joblib.parallel_config(n_jobs=options.jobs), console.following() as callback:
        return Duplicates(*duplicate_images(options.source, callback=callback))


def as_lines(found: Duplicates) -> str:
    """Return a line for every group, names separated by tabs."""
    return "\n".join("\t".join(map(one_line, group)) for group in found.groups)
