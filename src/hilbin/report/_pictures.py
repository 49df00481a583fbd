"""Pictures inside the page: small JPEGs, as text."""

import base64
import io
from collections.abc import Callable, Hashable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from hilbin.report.evidence import Array

QUALITY = 76
GAP = 2  # pixels between the tiles of a mosaic


def pillow() -> ModuleType:
    """Pillow's module of images, or an error that says how to get it."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError('pictures need Pillow: pip install "hilbin[images]"') from error
    return Image


def as_rgb(picture: Any) -> Array:
    """A checked picture as a uint8 array of shape (h, w, 3)."""
    picture = np.asarray(picture)
    color = picture.ndim == 3 and picture.shape[2] == 3
    if picture.dtype != np.uint8 or not (color or picture.ndim == 2) or picture.size == 0:
        raise ValueError(
            "picture must be a uint8 array of shape (h, w) or (h, w, 3), "
            f"got {picture.dtype} of shape {picture.shape}"
        )
    return picture if color else np.repeat(picture[:, :, None], 3, axis=2)


def shrink(picture: Any, side: int) -> Array:
    """The picture, made smaller if its longer side is more than ``side`` pixels."""
    rgb = as_rgb(picture)
    factor = side / max(rgb.shape[:2])
    if factor >= 1:
        return rgb
    height, width = (max(1, round(s * factor)) for s in rgb.shape[:2])
    image = pillow()
    return np.asarray(
        image.fromarray(rgb).resize((width, height), image.Resampling.LANCZOS, reducing_gap=2.0)
    )


def data_uri(rgb: Array) -> str:
    """The picture as a JPEG in an address."""
    buffer = io.BytesIO()
    image = pillow().fromarray(np.ascontiguousarray(rgb))
    image.save(buffer, "JPEG", quality=QUALITY, optimize=True)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()


def mosaic(patches: Sequence[Any], side: int, across: int) -> Array:
    """Patches as equal squares, ``across`` in a row, on white."""
    image = pillow()
    rows = -(-len(patches) // across)
    pitch = side + GAP
    sheet = np.full((rows * pitch - GAP, across * pitch - GAP, 3), 255, np.uint8)
    for at, patch in enumerate(patches):
        tile = image.fromarray(np.ascontiguousarray(as_rgb(patch))).resize((side, side))
        y, x = divmod(at, across)
        sheet[y * pitch : y * pitch + side, x * pitch : x * pitch + side] = np.asarray(tile)
    return sheet


class Pictures:
    """Encoded pictures, each made once, however often the page is laid out anew."""

    def __init__(self) -> None:
        self._made: dict[Hashable, Any] = {}

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What ``make`` gives, or gave before for this key."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]
