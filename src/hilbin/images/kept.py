"""Image files that are read once for several passes, as long as their pixels fit in memory.

Learning a codebook, learning a mixture and computing rows are passes over the same files.
"""

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hilbin.images.read import Pixels, gray, read_image

MOST_BYTES = 1 << 29


class _Room:
    """Bytes that are left for pixels."""

    def __init__(self, most: int):
        self.left = most
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        with self._lock:
            if size > self.left:
                return False
            self.left -= size
            return True


class KeptImage(os.PathLike[str]):
    """An image file, and its pixels once it was read, if there was room for them.

    Parameters
    ----------
    file : Path
        The file.
    max_side : int or None
        Size that is kept.
    color : bool
        Whether color is kept; gray values are then made from the colors.
    room : _Room
        Room for the pixels of all images.
    """

    def __init__(self, file: Path, max_side: int | None, color: bool, room: _Room):
        self.file, self.max_side, self.color = file, max_side, color
        self._room = room
        self._pixels: Pixels | None = None

    def __fspath__(self) -> str:
        return str(self.file)

    def __str__(self) -> str:
        return str(self.file)

    def read(self, max_side: int | None, color: bool) -> Pixels:
        """Read the image, or return the pixels that were kept; nobody may change them."""
        if max_side != self.max_side or (color and not self.color):
            return read_image(self.file, max_side=max_side, color=color)
        pixels = self._pixels
        if pixels is None:
            pixels = read_image(self.file, max_side=max_side, color=self.color)
            if self._room.take(pixels.nbytes):
                pixels.flags.writeable = False
                self._pixels = pixels
        return pixels if color else gray(pixels)


def keep_pixels(
    images: Sequence[Any], max_side: int | None, color: bool, most_bytes: int = MOST_BYTES
) -> list[Any]:
    """Return the images; files among them keep their pixels after they are read first.

    Examples
    --------
    >>> from hilbin.images.kept import keep_pixels
    >>> str(keep_pixels(["a.jpg"], 256, True)[0])
    'a.jpg'
    """
    room = _Room(most_bytes)
    return [
        KeptImage(Path(image), max_side, color, room)
        if isinstance(image, str | os.PathLike) and not isinstance(image, KeptImage)
        else image
        for image in images
    ]


def file_of(image: Any) -> Path | None:
    """Return the file of an image, or None for an array."""
    if isinstance(image, KeptImage):
        return image.file
    return image if isinstance(image, Path) else None
