"""Boxes of image files: what every format is read into, and written from."""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hilbin._arrays import Array
from hilbin.detect.boxes import as_coordinates, sound_boxes
from hilbin.images import ImageError
from hilbin.images.folders import EXTENSIONS
from hilbin.images.read import image_size

NO_BOX = (float("nan"),) * 4
YES = ("1", "true", "yes")


@dataclass(frozen=True, eq=False)
class ImageBoxes:
    """The boxes that are drawn in one image file.

    Parameters
    ----------
    path : path
        The image file.
    boxes : array-like of shape (n, 4)
        ``[x0, y0, x1, y1)`` of every box in pixels, after the rotation that the file asks for.
    labels : list of str, optional
        What each box shows; ``""`` where the file does not say.
    ignore : array-like of bool, optional
        Which boxes a detector may find or not, and does not learn from.
    scores : array-like of float, optional
        Scores, if the boxes are those of a detector.

    Attributes
    ----------
    truths, ignored : arrays of shape (n_i, 4)
        The boxes that count, and those to ignore.

    Examples
    --------
    >>> from hilbin.detect import ImageBoxes
    >>> drawn = ImageBoxes("a.jpg", [[0, 0, 9, 9], [5, 5, 8, 8]], ["cat", "dog"], [False, True])
    >>> drawn.truths
    array([[0., 0., 9., 9.]])
    """

    path: Any  # a Path, and arrays, whatever they are made of
    boxes: Any
    labels: Any = None
    ignore: Any = None
    scores: Any = None

    def __post_init__(self) -> None:
        set_field = object.__setattr__  # the dataclass is frozen
        set_field(self, "path", Path(self.path))
        set_field(self, "boxes", as_coordinates(self.boxes))
        n = len(self.boxes)
        labels = [""] * n if self.labels is None else [str(label) for label in self.labels]
        set_field(self, "labels", np.array(labels, object))
        ignore = np.zeros(n) if self.ignore is None else self.ignore
        set_field(self, "ignore", np.asarray(ignore, bool))
        if self.scores is not None:
            set_field(self, "scores", np.asarray(self.scores, np.float64))
        for name in ("labels", "ignore", "scores"):
            value = getattr(self, name)
            if value is not None and value.shape != (n,):
                raise ValueError(f"{self.path}: {name} has shape {value.shape} for {n} boxes")

    @property
    def truths(self) -> Array:
        """The boxes that count."""
        return self.boxes[~self.ignore]

    @property
    def ignored(self) -> Array:
        """The boxes to ignore."""
        return self.boxes[self.ignore]

    def only(self, which: Any) -> "ImageBoxes":
        """Return the same image with some of its boxes: a mask, or indices."""
        scores = None if self.scores is None else self.scores[which]
        return ImageBoxes(
            self.path, self.boxes[which], self.labels[which], self.ignore[which], scores
        )


class Entry(NamedTuple):
    """One box as a file has it."""

    box: Sequence[float]
    label: str = ""
    ignore: bool = False
    score: float | None = None


def as_records(source: Path, drawn: Iterable[tuple[Path, Sequence[Entry]]]) -> list[ImageBoxes]:
    """Return a record for every image, without the boxes that cannot be used.

    Parameters
    ----------
    source : Path
        The file of boxes, for warnings.
    drawn : pairs of an image file and its boxes
        An image that comes twice has the boxes of both.
    """
    images: dict[Path, list[Entry]] = {}
    for path, entries in drawn:
        images.setdefault(path, []).extend(entries)
    return [_record(source, path, entries) for path, entries in images.items()]


def _record(source: Path, path: Path, entries: list[Entry]) -> ImageBoxes:
    sound = sound_boxes([one.box for one in entries], name=f"{source}, {path.name}")
    kept = [one for one, fine in zip(entries, sound, strict=True) if fine]
    scores = [one.score for one in kept]
    return ImageBoxes(
        path,
        np.array([one.box for one in kept]),
        [one.label for one in kept],
        np.array([one.ignore for one in kept], bool),
        None if not scores or None in scores else np.array(scores, np.float64),
    )


def as_number(value: Any, where: str) -> float:
    """Return a number that a file has as text or as JSON; raise an error that names the place."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{where}: {_shown(value)} is not a number") from None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 40 else f"{text[:37]}..."


def find_image(folder: Path, name: str) -> Path:
    """Return the file of a name that may have another encoding, or slashes of Windows."""
    names = [name, name.replace("\\", "/")]
    with suppress(UnicodeError):  # imglab calls its bytes ISO-8859-1 whatever they are
        names.append(name.encode("latin-1").decode())
    return next((folder / n for n in names if os.path.exists(folder / n)), folder / name)


def find_by_stem(folders: Sequence[Path], stem: str) -> Path | None:
    """Return the first image file of a stem, with any extension, or None."""
    for folder in folders:
        for extension in sorted(EXTENSIONS):
            for name in (f"{stem}{extension}", f"{stem}{extension.upper()}"):
                if os.path.isfile(folder / name):
                    return folder / name
    return None


def size_or_none(path: Path) -> tuple[int, int] | None:
    """Return (width, height) of an image after its rotation; None if it cannot be read."""
    try:
        return image_size(path)
    except ImageError:
        return None


def relative(path: Path, folder: Path) -> str:
    """Return how a file in a folder names an image."""
    return Path(os.path.relpath(path, folder)).as_posix()


def whole_or_float(value: float) -> str:
    """Return a number as text, without a fraction if it has none."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))
