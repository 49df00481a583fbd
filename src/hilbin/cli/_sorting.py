"""Copies of files in a folder for every label.

Labels may be any text, so they are made into names of folders that cannot lead elsewhere; a file
that is there already is kept, and one of the same name but other content gets a number.
"""

import filecmp
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from hilbin.files import written_whole

LONGEST = 200  # bytes of a name; file systems take 255
FORBIDDEN = set('/\\:*?"<>|')


def folder_names(labels: Iterable[str]) -> dict[str, str]:
    """A name of a folder for every label, all different.

    Examples
    --------
    >>> from hilbin.cli._sorting import folder_names
    >>> folder_names(["cat", "../cat", ".._cat", ".."])
    {'cat': 'cat', '../cat': '_._cat', '.._cat': '_._cat-2', '..': '_.'}
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for label in labels:
        plain = _plain(label)
        name = next(n for n in _numbered(plain, "") if n.casefold() not in taken)
        taken.add(name.casefold())
        names[label] = name
    return names


def _plain(label: str) -> str:
    kept = "".join("_" if c in FORBIDDEN or not c.isprintable() else c for c in label.strip())
    kept = _shortened(kept, LONGEST)
    return f"_{kept[1:]}" if kept[:1] in ("", ".") else kept


def _shortened(text: str, most: int) -> str:
    return os.fsencode(text)[:most].decode(errors="ignore").strip()


def _numbered(stem: str, suffix: str) -> Iterator[str]:
    yield stem + suffix
    n = 2
    while True:
        end = f"-{n}{suffix}"
        yield _shortened(stem, LONGEST - len(os.fsencode(end))) + end
        n += 1


def copy_into(folder: Path, source: Path) -> Path:
    """Copy a file into a folder, never over another one.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    source : Path

    Returns
    -------
    copy : Path
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in _numbered(source.stem, source.suffix):
        target = folder / name
        if not os.path.lexists(target):
            with open(source, "rb") as original, written_whole(target) as copy:
                shutil.copyfileobj(original, copy)
            shutil.copystat(source, target)
            return target
        if target.is_file() and filecmp.cmp(source, target, shallow=False):
            return target
    raise AssertionError  # names do not run out
