"""``hilbin montage``: all images of a folder on one page, alike near each other."""

import os
from dataclasses import dataclass

from hilbin.auto import ImageCollection
from hilbin.cli._collections import CollectionOptions, opened, unreadable_of
from hilbin.cli._console import Console
from hilbin.cli._outcome import InputError, require_output


@dataclass(frozen=True)
class Mounted:
    """What :func:`montage` has written.

    Parameters
    ----------
    output : str
        The page.
    n_images : int
        Number of its images.
    shape : (int, int)
        Height and width of the grid.
    cka : float
        Alignment of the images and their cells: 1 if distances on the grid are those of the images.
    n_bytes : int
        Size of the page.
    unreadable : list of dict
        Images that were left out: ``name`` and ``reason``.
    """

    output: str
    n_images: int
    shape: tuple[int, int]
    cka: float
    n_bytes: int
    unreadable: list[dict[str, str]]


def montage(
    options: CollectionOptions,
    output: str | os.PathLike[str],
    *,
    force: bool = False,
    console: Console | None = None,
) -> Mounted:
    """Write a page with all images of a collection, sorted so that neighbors are alike.

    Parameters
    ----------
    options : CollectionOptions
        The collection.
    output : path
        The page to write.
    force : bool, default=False
        Whether to overwrite it.
    console : Console, optional
        Told of the progress.

    Returns
    -------
    mounted : Mounted
    """
    console = Console(quiet=True) if console is None else console
    require_output(output, (options.source,), force=force)
    if options.is_table:
        raise InputError(f"{options.source}: a montage is of images, not of table rows")
    with opened(options, console, output) as collection:
        if not isinstance(collection, ImageCollection):
            raise InputError(f"{options.source}: a montage is of images, not of table rows")
        with console.following() as callback:
            sorting = collection.montage(output, callback=callback)
    size = os.path.getsize(output)
    n, unreadable = len(collection.names_), unreadable_of(collection, options)
    return Mounted(os.fspath(output), n, sorting.shape, sorting.cka, size, unreadable)


def summary(found: Mounted) -> str:
    """Return what the command prints."""
    height, width = found.shape
    size = f"{found.n_bytes / 1e6:.1f} MB"
    return f"{found.output}: {found.n_images:,} images on a grid of {width} by {height}, {size}"
