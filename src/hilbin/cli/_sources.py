"""What there is to learn from: labeled images, or a table."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hilbin.cli._outcome import InputError
from hilbin.cli._tables import SUFFIXES, SVMLIGHT, Table, read_table
from hilbin.images import labeled_images


@dataclass(frozen=True)
class Images:
    """Labeled image files.

    Parameters
    ----------
    paths : list of Path
    names : list of str
        What to call them: paths below the folder, or as the list of images has them.
    labels : list of str
    """

    paths: list[Path]
    names: list[str]
    labels: list[str]


def open_source(
    source: str | os.PathLike[str],
    target: str | None = None,
    *,
    id: str | None = None,
    drop: Sequence[str] = (),
) -> Images | Table:
    """Labeled images, or a table with labels.

    Parameters
    ----------
    source : path
        A folder with a folder for every class; a CSV file with the columns ``path`` and ``label``;
        or a table: ``.csv`` with a ``target``, ``.npz``, ``.parquet``, ``.svmlight``, ``.libsvm``
        or ``.txt``.
    target : str, optional
        Column of a table that holds the labels.
    id : str, optional
        Column of a table that names the rows.
    drop : sequence of str
        Columns of a table to leave out.
    """
    path = Path(source)
    suffix = path.suffix.lower()
    if not path.exists():
        raise InputError(f"{path}: there is no such file or folder")
    if path.is_dir() or (suffix == ".csv" and target is None):
        if target is not None:
            raise InputError(f"--target is for tables; {path} is a folder")
        if id or drop:
            raise InputError(f"--id and --drop are for tables; {path} has images")
        return _images(path)
    if suffix not in SUFFIXES:
        raise InputError(f"{path}: neither a folder nor a table ({', '.join(SUFFIXES)})")
    if target is None and suffix not in SVMLIGHT:
        raise InputError(f"{path}: say by --target where the labels are")
    table = read_table(path, target, id=id, drop=drop)
    _check_labels(path, table.labels or [])
    return table


def _images(path: Path) -> Images:
    try:
        paths, labels = labeled_images(path)
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a CSV file in UTF-8") from None
    except ValueError as error:
        hint = "" if path.is_dir() else "; of a table, say by --target where the labels are"
        raise InputError(f"{error}{hint}") from None
    require_two_classes(path, labels)
    root = path if path.is_dir() else path.parent
    return Images(paths, [_name(p, root) for p in paths], labels)


def _name(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def require_two_classes(source: object, labels: list[str]) -> None:
    """Complain unless there are two classes at least."""
    classes = sorted(set(labels))
    if len(classes) < 2:
        found = f"only the class {classes[0]!r}" if classes else "no class"
        raise InputError(f"{source}: {found}; a classifier needs two")


def _check_labels(path: Path, labels: list[str]) -> None:
    require_two_classes(path, labels)
    try:
        fractions = any(not float(label).is_integer() for label in set(labels))
    except (ValueError, OverflowError):  # texts, or infinite
        return
    if fractions:
        raise InputError(
            f"{path}: the labels are fractions such as {labels[0]}; train learns classes"
        )
