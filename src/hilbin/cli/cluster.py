"""``hilbin cluster``: images or table rows in groups, on a page and in folders."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hilbin.auto import Clustering, ImageCollection
from hilbin.cli._collections import CollectionOptions, opened, unreadable_of
from hilbin.cli._console import Console
from hilbin.cli._outcome import InputError, csv_text, one_line, require_output
from hilbin.cli._sorting import copy_into

SHOWN = 3  # typical examples, and differences, of a line


@dataclass(frozen=True)
class Clustered:
    """What :func:`cluster` found.

    Parameters
    ----------
    clusters : Clustering
        The clusters.
    unreadable : list of dict
        Images that were left out: ``name`` and ``reason``.
    thing : str
        What an example is.
    """

    clusters: Clustering
    unreadable: list[dict[str, str]]
    thing: str


def cluster(
    options: CollectionOptions,
    *,
    n_clusters: int | None = None,
    report: str | os.PathLike[str] | None = None,
    sort_into: str | os.PathLike[str] | None = None,
    console: Console | None = None,
) -> Clustered:
    """Divide a collection into clusters.

    Parameters
    ----------
    options : CollectionOptions
        The collection.
    n_clusters : int, optional
        Number of clusters; by default it grows with the square root of the number of examples.
    report : path, optional
        Where to write a page about the clusters.
    sort_into : path, optional
        Folder into which images are copied, by cluster.
    console : Console, optional
        Told of the progress.

    Returns
    -------
    clustered : Clustered

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hilbin.cli._collections import CollectionOptions
    >>> from hilbin.cli.cluster import cluster
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder) / "data.csv"
    ...     _ = table.write_text("width,height\\n1,1\\n9,7\\n1,2\\n")
    ...     found = cluster(CollectionOptions(table), n_clusters=2)
    >>> found.clusters.labels.tolist()
    [0, 1, 0]
    """
    console = Console(quiet=True) if console is None else console
    require_output(report, (options.source,))
    with opened(options, console, report or sort_into) as collection:
        of_images = isinstance(collection, ImageCollection)
        if sort_into is not None and not of_images:
            raise InputError(f"--sort-into copies images; {options.source} holds rows")
        with console.following() as callback:
            found = collection.cluster(n_clusters, report=report, callback=callback)
        if sort_into is not None:
            _copy(found, collection.path_of, Path(sort_into), console)
    return Clustered(found, unreadable_of(collection, options), "image" if of_images else "row")


def _copy(
    found: Clustering, path_of: Callable[[int], Path | None], folder: Path, console: Console
) -> None:
    with console.stage("copying images", len(found.names)) as advance:
        for k, members in enumerate(found.members, 1):
            for i in members:
                path = path_of(i)
                if path is None:
                    raise InputError("--sort-into copies files; these images were arrays")
                copy_into(folder / f"cluster {k}", path)
                advance(1)


def as_lines(found: Clustered) -> str:
    """Return a line for every cluster: its size, typical examples, and what sets it apart."""
    lines = []
    for k, members in enumerate(found.clusters.members):
        typical = ", ".join(found.clusters.typical(k, SHOWN))
        apart = ", ".join(
            f"{one.name} ({one.effect:+.1f} sd)" for one in found.clusters.differences[k][:SHOWN]
        )
        ending = "" if len(members) == 1 else "s"
        line = f"cluster {k + 1}: {len(members)} {found.thing}{ending}, such as {typical}"
        lines.append(one_line(line + (f"; distinguished by {apart}" if apart else "")))
    return "\n".join(lines)


def as_csv(found: Clustered) -> str:
    """Return the cluster of every example as a CSV file."""
    numbers = (found.clusters.labels + 1).tolist()
    return csv_text(["name", "cluster"], zip(found.clusters.names, numbers, strict=True))


def as_json(found: Clustered) -> dict[str, Any]:
    """Return the clusters for JSON."""
    clusters = found.clusters
    return {
        "clusters": [
            {
                "size": len(members),
                "members": [clusters.names[i] for i in members],
                "differences": [vars(one) for one in clusters.differences[k]],
            }
            for k, members in enumerate(clusters.members)
        ],
        "unreadable": found.unreadable,
    }
