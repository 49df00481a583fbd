"""Labeled photographs: a folder for every class, or a table of paths and labels."""

import csv
import os
from pathlib import Path

from hilbin.files import require_regular

EXTENSIONS = frozenset(
    f".{name}"
    for name in (
        *("avif", "bmp", "gif", "jfif", "jp2", "jpeg", "jpg", "pbm", "pgm", "png", "pnm", "ppm"),
        *("tif", "tiff", "webp"),
    )
)


def find_images(folder: str | os.PathLike[str]) -> list[Path]:
    """Find all image files below a folder, by their extension, in the order of their names.

    Hidden files and folders are left out.

    Examples
    --------
    >>> import tempfile
    >>> from hilbin.images import find_images
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     find_images(folder)
    []
    """
    root = Path(folder)
    if not root.is_dir():
        raise NotADirectoryError(f"{root}: there is no such folder")
    found = []
    for parent, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += [
            Path(parent, name)
            for name in sorted(files)
            if not name.startswith(".") and Path(name).suffix.lower() in EXTENSIONS
        ]
    return found


def labeled_images(source: str | os.PathLike[str]) -> tuple[list[Path], list[str]]:
    """Find image files and their labels.

    Parameters
    ----------
    source : path
        A folder with a folder of images for every class, whose name is the label; or a CSV file
        with the columns ``path`` and ``label``, paths relative to the file.

    Returns
    -------
    paths, labels : lists of the same length

    Raises
    ------
    ValueError
        If there is nothing to learn from; it names the source.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hilbin.images import labeled_images
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder) / "labels.csv"
    ...     _ = table.write_text("path,label\\none.jpg,cat\\n")
    ...     paths, labels = labeled_images(table)
    >>> paths[0].name, labels
    ('one.jpg', ['cat'])
    """
    root = Path(source)
    if root.is_dir():
        return _from_folders(root)
    if not root.exists():
        raise FileNotFoundError(f"{root}: there is no such file or folder")
    require_regular(root)
    return _from_table(root)


def _from_folders(root: Path) -> tuple[list[Path], list[str]]:
    classes = [f for f in sorted(root.iterdir()) if f.is_dir() and not f.name.startswith(".")]
    paths: list[Path] = []
    labels: list[str] = []
    for folder in classes:
        found = find_images(folder)
        paths += found
        labels += [folder.name] * len(found)
    if not paths:
        loose = len(find_images(root))
        hint = f"; {loose} images lie in it without a folder for their class" if loose else ""
        raise ValueError(f"{root}: no image in any folder of it (one folder for each class){hint}")
    return paths, labels


class ImageListError(ValueError):
    """A CSV file that is no list of images."""


def _from_table(path: Path) -> tuple[list[Path], list[str]]:
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            names = reader.fieldnames
            rows = [(reader.line_num, row.get("path"), row.get("label")) for row in reader]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ImageListError(f"{path}: not a CSV file in UTF-8: {error}") from None
    if not {"path", "label"} <= set(names or ()):
        raise ImageListError(
            f"{path}: the first line must name the columns path and label, found {names}"
        )
    for line, name, label in rows:
        if not name or not label:
            raise ValueError(f"{path}, line {line}: a path or a label is missing")
    if not rows:
        raise ValueError(f"{path}: no line after the names of the columns")
    return [path.parent / str(name) for _, name, _ in rows], [str(label) for *_, label in rows]
