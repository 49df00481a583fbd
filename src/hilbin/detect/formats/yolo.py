"""Boxes of YOLO: a text file for each image, with a line ``class cx cy w h`` for each box.

The numbers are fractions of the image, so that its size is needed, after the rotation that the file
asks for. A line of seven numbers or more is a polygon, which stands for its bounds; a sixth number
is a score. The text of ``images/a.jpg`` is ``labels/a.txt``, or ``a.txt`` beside it; none, or an
empty one, means that there is nothing to see. Names of classes are in ``data.yaml``,
``classes.txt`` or ``obj.names``, in the folder or above it; without them the number is the label.
"""

import os
import re
import warnings
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from hilbin.detect.boxes import BoxWarning
from hilbin.detect.formats.records import (
    Entry,
    ImageBoxes,
    as_number,
    find_by_stem,
    find_image,
    size_or_none,
)
from hilbin.detect.formats.xml import files_by_stem
from hilbin.images import find_images
from hilbin.images.folders import EXTENSIONS
from hilbin.images.read import image_size

NAME_FILES = ("data.yaml", "data.yml", "dataset.yaml", "classes.txt", "obj.names")
LEVELS = 4  # folders above the texts that are searched for names
ITEM = re.compile(r"""\s*(?:(\d+)\s*:\s*)?(?:'([^']*)'|"([^"]*)"|([^,\[\]{}#\n]+))""")


def label_file(image: Path) -> Path:
    """Return the text file of an image, whether it exists or not."""
    beside = image.parent / f"{image.stem}.txt"
    swapped = _swapped(beside, "images", "labels")
    return beside if swapped is None or os.path.isfile(beside) else swapped


def _swapped(path: Path, old: str, new: str) -> Path | None:
    """Return the path with the last folder of one name replaced by another; None without it."""
    parts = list(path.absolute().parts)
    for k in range(len(parts) - 2, 0, -1):
        if parts[k] == old:
            return Path(*parts[:k], new, *parts[k + 1 :])
    return None


def read_yolo(path: Path) -> Iterator[tuple[Path, list[Entry]]]:
    """Read the images of a folder, of a list, or of one text file."""
    for image, file in _pairs(path):
        yield image, _entries(image, file) if os.path.isfile(file) else []


def _pairs(path: Path) -> list[tuple[Path, Path]]:
    """Return images and their text files."""
    if path.is_dir():
        images = [image for folder in _image_folders(path) for image in find_images(folder)]
    elif is_list(lines := read_lines(path)):
        images = [find_image(path.parent, line) for line in lines]
    else:
        image = find_by_stem(_image_folders(path.parent), path.stem)
        return [(image or path.with_suffix(".jpg"), path)]
    return [(image, label_file(image)) for image in images]


def _image_folders(folder: Path) -> list[Path]:
    """Return a folder, and the folder of images that belongs to it if it is one of texts."""
    images = _swapped(folder / "any", "labels", "images")
    return [folder] if images is None or not images.parent.is_dir() else [folder, images.parent]


def has_yolo(path: Path) -> bool:
    """Tell whether a folder has images with text files."""
    folders = _image_folders(path)
    return any(label_file(image).is_file() for folder in folders for image in find_images(folder))


def is_list(lines: Sequence[str]) -> bool:
    """Tell whether lines of a text are names of images."""
    return bool(lines) and Path(lines[0]).suffix.lower() in EXTENSIONS


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text that are not empty."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not a text in UTF-8: {error}") from None
    return [line.strip() for line in text.splitlines() if line.strip()]


def _entries(image: Path, file: Path) -> list[Entry]:
    lines = read_lines(file)
    size = size_or_none(image) if lines else (1, 1)
    if size is None:
        message = f"{file}: its boxes are left out, for the image {image} cannot be read"
        warnings.warn(message, BoxWarning, stacklevel=2)
        return []
    names = _names(image, file)
    return [_entry(line, f"{file}, line {k}", size, names) for k, line in enumerate(lines, 1)]


def _entry(line: str, where: str, size: tuple[int, int], names: dict[int, str]) -> Entry:
    first, *numbers = [as_number(word, where) for word in line.split()]
    if not first.is_integer() or first < 0:
        raise ValueError(f"{where}: the first number must be the number of a class, got {first:g}")
    label = names.get(int(first), str(int(first)))
    score = numbers.pop() if len(numbers) == 5 else None
    if len(numbers) == 4:
        center, sides = np.array(numbers[:2]), np.array(numbers[2:])
        low, high = center - sides / 2, center + sides / 2
    elif len(numbers) >= 6 and len(numbers) % 2 == 0:
        points = np.array(numbers).reshape(-1, 2)
        low, high = points.min(axis=0), points.max(axis=0)
    else:
        raise ValueError(f"{where}: {len(numbers)} numbers after the class; a box has 4")
    return Entry((*(low * size), *(high * size)), label, score=score)


def _names(image: Path, file: Path) -> dict[int, str]:
    """Return the names of classes of the first file that has some, from the texts upward."""
    for start in (file.absolute().parent, image.absolute().parent):
        for folder in (start, *start.parents[: LEVELS - 1]):
            for name in NAME_FILES:
                if (folder / name).is_file():
                    return _names_in(folder / name)
    return {}


@lru_cache(maxsize=8)
def _names_in(path: Path) -> dict[int, str]:
    if path.suffix in (".yaml", ".yml"):
        return names_of_yaml(path.read_text(encoding="utf-8-sig", errors="replace"))
    return dict(enumerate(read_lines(path)))


def names_of_yaml(text: str) -> dict[int, str]:
    """Return the names of a ``data.yaml``: a list or numbered names, in one line or in several.

    Examples
    --------
    >>> from hilbin.detect.formats.yolo import names_of_yaml
    >>> names_of_yaml("nc: 2\\nnames: ['cat', dog]\\n")
    {0: 'cat', 1: 'dog'}
    >>> names_of_yaml("names:\\n  3: cat\\n  7: dog  # or wolf\\n")
    {3: 'cat', 7: 'dog'}
    """
    found = re.search(r"^names\s*:[ \t]*(.*(?:\n(?:[ \t\]}-].*)?$)*)", text, re.M)
    if found is None:
        return {}
    lines = re.sub(r"(^|\s)#.*$", "", found[1], flags=re.M)
    inner = lines.strip().strip("[]{}")
    parts = re.sub(r"^\s*-\s+", "", inner, flags=re.M)
    items = (item for item in ITEM.finditer(parts) if item[0].strip())
    named = [(item[1], (item[2] or item[3] or item[4] or "").strip()) for item in items]
    return {k if number is None else int(number): name for k, (number, name) in enumerate(named)}


def write_yolo(records: Sequence[ImageBoxes], path: Path) -> dict[Path, bytes]:
    """Return text files in a folder, one for each image, and the names of the classes."""
    names = sorted({label for record in records for label in record.labels})
    odd = [name for name in names if name != name.strip() or len(name.splitlines()) != 1]
    if odd:
        raise ValueError(f"{path}: a class of YOLO needs a name of one line, got {odd[0]!r}")
    files = {path / "classes.txt": "".join(f"{name}\n" for name in names)}
    for file, record in zip(files_by_stem(records, path, ".txt"), records, strict=True):
        if file.name == "classes.txt":
            raise ValueError(f"{record.path}: YOLO needs the name classes.txt for itself")
        if record.ignore.any():
            message = f"{file}: YOLO has no ignored boxes; {record.ignore.sum()} left out"
            warnings.warn(message, BoxWarning, stacklevel=3)
        kept = record.only(~record.ignore)
        size = np.array(image_size(record.path) if len(kept.boxes) else (1, 1))
        files[file] = "".join(_line(kept, k, size, names) for k in range(len(kept.boxes)))
    return {file: text.encode() for file, text in files.items()}


def _line(record: ImageBoxes, k: int, size: np.ndarray, names: list[str]) -> str:
    low, high = record.boxes[k, :2], record.boxes[k, 2:]
    numbers = [*((low + high) / 2 / size), *((high - low) / size)]
    numbers += [] if record.scores is None else [record.scores[k]]
    return " ".join([str(names.index(record.labels[k])), *(f"{v:.9g}" for v in numbers)]) + "\n"
