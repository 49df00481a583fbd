"""``hilbin similar``: the images, or table rows, that are most like others."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hilbin.auto import ImageCollection, Neighbor, TableCollection
from hilbin.auto.table_data import as_table
from hilbin.cli._collections import CollectionOptions, opened, unreadable_of
from hilbin.cli._console import Console
from hilbin.cli._outcome import InputError, one_line
from hilbin.images import ImageError


@dataclass(frozen=True)
class Query:
    """An image or row, and what is like it.

    Parameters
    ----------
    path : str
        Path of the image, or of the table with the number of the row: ``data.csv:1``.
    neighbors : list of Neighbor
        The nearest first.
    paths : list of str
        Their files; those of rows are their names.
    """

    path: str
    neighbors: list[Neighbor]
    paths: list[str]


@dataclass
class Similar:
    """What :func:`similar` found.

    Parameters
    ----------
    queries : list of Query
        One for every image or row that was asked about.
    unreadable : list of dict
        Images of the collection that were left out: ``name`` and ``reason``.
    refused : list of dict
        Images that were asked about and cannot be read.
    index : str or None
        The file that the collection was saved to.
    """

    queries: list[Query] = field(default_factory=list)
    unreadable: list[dict[str, str]] = field(default_factory=list)
    refused: list[dict[str, str]] = field(default_factory=list)
    index: str | None = None


def similar(
    options: CollectionOptions,
    examples: Sequence[str | os.PathLike[str]],
    *,
    top: int = 10,
    row: int | None = None,
    approximate: bool = False,
    output: str | os.PathLike[str] | None = None,
    console: Console | None = None,
) -> Similar:
    """Find what is most like some images, or rows.

    Parameters
    ----------
    options : CollectionOptions
        The collection to search.
    examples : sequence of paths
        Images, or tables; without any, ``row`` is one of the collection's own table.
    top : int, default=10
        Number of neighbors.
    row : int, optional
        Number of the row of a table, from 1; all rows by default.
    approximate : bool, default=False
        Whether distances are left as the codes tell them.
    output : path, optional
        Where to save the collection, for the next time.
    console : Console, optional
        Told of the progress.

    Returns
    -------
    similar : Similar

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hilbin.cli._collections import CollectionOptions
    >>> from hilbin.cli.similar import similar
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder) / "data.csv"
    ...     _ = table.write_text("width,height\\n1,1\\n9,7\\n1,2\\n")
    ...     found = similar(CollectionOptions(table), [], row=1, top=2)
    >>> [one.name for one in found.queries[0].neighbors]
    ['row 1', 'row 3']
    """
    console = Console(quiet=True) if console is None else console
    with opened(options, console, output) as collection:
        if output is not None:
            collection.save(output)
        saved = None if output is None else os.fspath(output)
        found = Similar(unreadable=unreadable_of(collection, options), index=saved)
        ask = _of_images if isinstance(collection, ImageCollection) else _of_rows
        ask(collection, options, [Path(one) for one in examples], row, found, top, not approximate)
    return found


def _of_images(
    collection: ImageCollection, options: CollectionOptions, examples: list[Path],
    row: int | None, found: Similar, top: int, exact: bool,
) -> None:  # fmt: skip
    if row is not None:
        raise InputError(f"--row is for tables; {options.examples} holds images")
    if not examples and found.index is None:
        raise InputError("pass images to compare with, or a file to save the collection to with -o")
    for path in examples:
        try:
            (neighbors,) = collection.similar([path], top, exact=exact)
        except ImageError as error:
            found.refused.append({"name": str(path), "reason": error.reason})
            continue
        files = [str(collection.path_of(one.number) or one.name) for one in neighbors]
        found.queries.append(Query(str(path), neighbors, files))


def _of_rows(
    collection: TableCollection, options: CollectionOptions, examples: list[Path],
    row: int | None, found: Similar, top: int, exact: bool,
) -> None:  # fmt: skip
    if not examples and (row is None or not options.is_table):
        raise InputError("pass the number of the row to compare with by --row, or another table")
    for path in examples or [Path(options.examples)]:
        table = as_table(path)
        numbers = range(table.n_rows) if row is None else [row - 1]
        if row is not None and row > table.n_rows:
            raise InputError(f"--row: {path} has {table.n_rows} rows, not {row}")
        neighbors = collection.similar(table.take(numbers), top, exact=exact)
        for number, near in zip(numbers, neighbors, strict=True):
            names = [one.name for one in near]
            found.queries.append(Query(f"{path}:{number + 1}", near, names))


def as_lines(found: Similar) -> str:
    """Return a line for every neighbor, by tabs: what was asked about, distance, neighbor."""
    return "\n".join(
        "\t".join(map(one_line, (query.path, f"{one.distance:.3f}", path)))
        for query in found.queries
        for one, path in zip(query.neighbors, query.paths, strict=True)
    )


def as_json(found: Similar) -> dict[str, Any]:
    """Return the same for JSON."""
    return {
        "queries": [
            {
                "path": query.path,
                "neighbors": [
                    {"name": one.name, "path": path, "distance": one.distance}
                    for one, path in zip(query.neighbors, query.paths, strict=True)
                ],
            }
            for query in found.queries
        ],
        "unreadable": [*found.unreadable, *found.refused],
        "index": found.index,
    }
