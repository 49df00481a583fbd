"""From files to arrays of gray or color values.

Pillow decodes. A JPEG that is much larger than wanted is decoded at a half, a quarter or an eighth
of its size (the decoder leaves the high frequencies out), the rest of the way is an area average.
The orientation that a camera wrote into the file is applied, transparency becomes white, 16-bit
values are brought to 8 bits. What cannot be read is an :class:`ImageError` that names the file.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hilbin._arrays import Array
from hilbin.files import require_regular
from hilbin.images._once import once

Pixels = NDArray[np.uint8]
Source = str | os.PathLike[str] | Array

MAX_PIXELS = 100_000_000
MOST_SIDE = 1 << 15  # pixels of what descriptors work on
ORIENTATION, TURNED = 0x0112, (5, 6, 7, 8)  # of EXIF; width and height are swapped
_WHITE = (255, 255, 255, 255)


class ImageError(ValueError):
    """An image that cannot be read.

    Parameters
    ----------
    source : str
        File name, or the place of the array among the images.
    reason : str
        What is wrong with it.

    Examples
    --------
    >>> from hilbin.images import ImageError
    >>> print(ImageError("cat.jpg", "the file is empty"))
    cat.jpg: the file is empty
    """

    def __init__(self, source: str, reason: str):
        super().__init__(source, reason)
        self.source = source
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.source}: {self.reason}"


class UnreadableImageWarning(UserWarning):
    """Some images could not be read; their rows are zero."""


def pillow() -> Any:
    """Return Pillow's module ``Image``, or raise an error that says how to install it."""
    try:
        from PIL import Image
    except ImportError as error:
        needs = 'images need Pillow: pip install "hilbin[images]"'
        raise ImportError(needs, name="PIL") from error
    return Image


def read_image(
    source: Any,
    *,
    max_side: int | None = None,
    color: bool = False,
    max_pixels: int = MAX_PIXELS,
) -> Pixels:
    """Read one image as an array of 8-bit values.

    Parameters
    ----------
    source : path or array
        A file of any format Pillow reads, or an array of shape (height, width), or (height,
        width, channels) with 1, 3 or 4 channels: 8 or 16-bit integers, booleans, or floats within
        [0, 1].
    max_side : int, optional
        Larger images are reduced so that the longer side has this many pixels.
    color : bool, default=False
        Whether to return red, green and blue, or gray values.
    max_pixels : int, default=100_000_000
        Files that claim more are refused before they are decoded.

    Returns
    -------
    image : uint8 array of shape (height, width), or (height, width, 3) with ``color``

    Raises
    ------
    ImageError
        If the image cannot be read; it names the file and what is wrong with it.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images import read_image
    >>> read_image(np.ones((40, 20, 3)), max_side=10).shape
    (10, 5)
    """
    if isinstance(source, str | os.PathLike):
        picture = _open(os.fspath(source), max_side, color, max_pixels)
    else:
        picture = _from_array(source, color, max_pixels)
    if max_side is not None and max(picture.size) > max_side:
        Image = pillow()
        picture.thumbnail((max_side, max_side), Image.Resampling.BOX, reducing_gap=None)
    return np.array(picture)


def gray(image: Pixels) -> Pixels:
    """Convert a color image to gray values (ITU-R 601-2 luma, as Pillow's).

    A gray image is returned as it is.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images import gray
    >>> gray(np.full((1, 2, 3), 9, np.uint8))
    array([[9, 9]], dtype=uint8)
    """
    if image.ndim == 2:
        return image
    Image = pillow()
    return once(image, "gray", lambda: np.array(Image.fromarray(image).convert("L")))


def in_color(image: Pixels) -> Pixels:
    """Give a gray image three equal channels; a color image is returned as it is.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images import in_color
    >>> in_color(np.full((1, 2), 9, np.uint8)).shape
    (1, 2, 3)
    """
    return image if image.ndim == 3 else np.repeat(image[:, :, None], 3, axis=2)


def resized(image: Pixels, size: tuple[int, int]) -> Pixels:
    """Resize an image to (height, width): area averages to shrink, bilinear to grow.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images import resized
    >>> resized(np.zeros((8, 8), np.uint8), (4, 6)).shape
    (4, 6)
    """
    if image.shape[:2] == tuple(size):
        return image
    Image = pillow()
    return np.array(Image.fromarray(image).resize(size[::-1], Image.Resampling.BILINEAR))


def as_sources(images: Any, name: str = "images") -> Sequence[Source]:
    """Check that these are many images, not one."""
    if isinstance(images, str | os.PathLike):
        raise ValueError(f"{name} must be a list of files or arrays, got one file: {images!r}")
    if isinstance(images, np.ndarray):
        if images.ndim < 3 and images.dtype.kind not in "OUS":
            raise ValueError(
                f"{name} must be a list of files or of arrays of shape (height, width[, 3]), "
                f"got one array of shape {images.shape}"
            )
        return cast(Sequence[Source], images)
    try:
        return list(images)
    except TypeError:
        raise ValueError(f"{name} must be a list of files or arrays, got {images!r}") from None


def source_name(source: Any, place: int) -> str:
    """Return the name of an image for messages."""
    return os.fspath(source) if isinstance(source, str | os.PathLike) else f"images[{place}]"


def image_size(path: str | os.PathLike[str]) -> tuple[int, int]:
    """Return (width, height) of an image file after the rotation it asks for, without decoding it.

    Raises :class:`ImageError` as :func:`read_image` does.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from hilbin.images.read import image_size
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("L", (30, 20)).save(Path(folder) / "a.png")
    ...     image_size(Path(folder) / "a.png")
    (30, 20)
    """
    with _opened(os.fspath(path)) as picture:
        width, height = picture.size
        turned = picture.getexif().get(ORIENTATION) in TURNED
        return (height, width) if turned else (width, height)


def _open(path: str, max_side: int | None, color: bool, max_pixels: int) -> Any:
    with _opened(path) as picture:
        from PIL import ImageOps

        width, height = picture.size
        _refuse_bomb(path, height, width, max_pixels)
        if max_side is not None:
            picture.draft(None, (max_side, max_side))
        picture.load()
        return _plain(ImageOps.exif_transpose(picture), color)


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    """Open an image file; whatever goes wrong with it is an ``ImageError``."""
    Image = pillow()
    from PIL import UnidentifiedImageError

    try:
        require_regular(path)
        with Image.open(path) as picture:
            yield picture
    except ImageError:
        raise
    except UnidentifiedImageError:
        empty = os.path.getsize(path) == 0
        reason = "the file is empty" if empty else "not an image, or of a format that is not known"
        raise ImageError(path, reason) from None
    except FileNotFoundError:
        raise ImageError(path, "there is no such file") from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ImageError(path, f"too large: {error}") from None
    except MemoryError:
        raise ImageError(path, "does not fit in memory") from None
    except OSError as error:
        if not str(error).startswith(path):
            raise ImageError(path, f"cannot be decoded: {error}") from error
        raise ImageError(path, str(error).removeprefix(f"{path}: ")) from None
    except Exception as error:  # decoders raise whatever a broken file makes them stumble over
        raise ImageError(path, f"cannot be decoded: {error}") from error


def _refuse_bomb(name: str, height: int, width: int, max_pixels: int) -> None:
    if height * width > max_pixels:
        raise ImageError(
            name, f"{width} x {height} pixels are more than max_pixels={max_pixels}; not decoded"
        )


def _plain(picture: Any, color: bool) -> Any:
    """Convert to 8-bit gray or color, whatever the mode of the file."""
    Image = pillow()
    if picture.mode in ("I", "F") or picture.mode.startswith("I;16"):
        values = np.asarray(picture).astype(np.float64)
        deep = picture.mode != "F" and values.max(initial=0) > 255
        picture = Image.fromarray(np.clip(values / (257 if deep else 1), 0, 255).astype(np.uint8))
    if picture.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in picture.info:
        page = Image.new("RGBA", picture.size, _WHITE)
        picture = Image.alpha_composite(page, picture.convert("RGBA"))
    wanted = "RGB" if color else "L"
    if picture.mode not in ("L", "RGB", wanted):  # one way for every mode: through color
        picture = picture.convert("RGB")
    return picture if picture.mode == wanted else picture.convert(wanted)


def _from_array(array: Any, color: bool, max_pixels: int) -> Any:
    Image = pillow()
    name = "the array"
    values = np.asarray(array)
    if values.ndim == 3 and values.shape[2] == 1:
        values = values[:, :, 0]
    if not (values.ndim == 2 or (values.ndim == 3 and values.shape[2] in (3, 4))):
        raise ImageError(name, f"has shape {values.shape}, not (height, width[, 1, 3 or 4])")
    if 0 in values.shape:
        raise ImageError(name, f"is empty: shape {values.shape}")
    _refuse_bomb(name, values.shape[0], values.shape[1], max_pixels)
    return _plain(Image.fromarray(np.ascontiguousarray(_bytes(values, name))), color)


def _bytes(values: Array, name: str) -> Pixels:
    if values.dtype == np.uint8:
        return values
    if values.dtype.kind == "b":
        return values.astype(np.uint8) * np.uint8(255)
    if values.dtype.kind not in "uif":
        raise ImageError(name, f"holds {values.dtype}, not numbers")
    low, high = values.min(), values.max()
    if values.dtype.kind == "f":
        if not (low >= 0 and high <= 1):  # also NaN
            raise ImageError(
                name, f"floats must be within [0, 1], found [{low:g}, {high:g}]; uint8 is 0 to 255"
            )
        return (values * 255 + 0.5).astype(np.uint8)
    if low < 0 or high > 65535:
        raise ImageError(name, f"integers must be within [0, 65535], found [{low}, {high}]")
    return (values // 257 if high > 255 else values).astype(np.uint8)
