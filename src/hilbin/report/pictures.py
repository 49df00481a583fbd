r"""Pictures inside the page, and heat maps over them.

The score of an additive model on a bag of words is a sum over the image: each of the
:math:`h_j` patches of word ``j`` has the share :math:`g_j(h_j) / h_j`. What raises the score is
drawn red, what lowers it blue, and zero leaves the photograph gray. Both ends of the scale are
equally far from zero.
"""

import base64
import io
from collections.abc import Callable, Hashable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from hilbin._arrays import Array

QUALITY = 76
GAP = 2  # pixels between the tiles of a mosaic
FOR, AGAINST = (178, 24, 43), (33, 102, 172)  # of ColorBrewer's RdBu, safe for the color-blind
STRONGEST = 0.88  # opacity at the ends of the scale
GAMMA = 0.75  # below 1, weak parts are seen too
TAIL = 0.995  # pixels beyond this quantile have the color of the end
LIFT = 70  # black of the photograph becomes this gray, so that colors show on it


def pillow() -> ModuleType:
    """Return Pillow's module of images, or raise an error that says how to get it."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError('pictures need Pillow: pip install "hilbin[images]"') from error
    return Image


def as_rgb(picture: Any) -> Array:
    """Check a picture and return it as a uint8 array of shape (h, w, 3)."""
    picture = np.asarray(picture)
    color = picture.ndim == 3 and picture.shape[2] == 3
    if picture.dtype != np.uint8 or not (color or picture.ndim == 2) or picture.size == 0:
        raise ValueError(
            "picture must be a uint8 array of shape (h, w) or (h, w, 3), "
            f"got {picture.dtype} of shape {picture.shape}"
        )
    return picture if color else np.repeat(picture[:, :, None], 3, axis=2)


def shrink(picture: Any, side: int) -> Array:
    """Return the picture, made smaller if its longer side is more than ``side`` pixels."""
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
    """Return the picture as a JPEG in a ``data:`` URI."""
    buffer = io.BytesIO()
    image = pillow().fromarray(np.ascontiguousarray(rgb))
    image.save(buffer, "JPEG", quality=QUALITY, optimize=True)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()


def mosaic(patches: Sequence[Any], side: int, across: int) -> Array:
    """Return patches as equal squares, ``across`` in a row, on white."""
    image = pillow()
    rows = -(-len(patches) // across)
    pitch = side + GAP
    sheet = np.full((rows * pitch - GAP, across * pitch - GAP, 3), 255, np.uint8)
    for at, patch in enumerate(patches):
        tile = image.fromarray(np.ascontiguousarray(as_rgb(patch))).resize((side, side))
        y, x = divmod(at, across)
        sheet[y * pitch : y * pitch + side, x * pitch : x * pitch + side] = np.asarray(tile)
    return sheet


def heat_scale(*maps: Array) -> float:
    """Return a scale for several heat maps: a high quantile of their absolute values."""
    values = np.concatenate([np.abs(np.asarray(m, np.float64)).ravel() for m in maps])
    values = values[values > 0]
    return float(np.quantile(values, TAIL)) if values.size else 1.0


def overlay(picture: Any, heat: Any, *, scale: float | None = None) -> Array:
    """Draw a heat map over a picture: red above zero, blue below, gray at zero.

    Parameters
    ----------
    picture : uint8 array of shape (h, w) or (h, w, 3)
        The photograph; it is drawn gray.
    heat : array-like of shape (h', w')
        What each part of it adds to a score; resized to the picture.
    scale : float, optional
        Value that is drawn in full color; by default the 99.5th percentile of the absolute values.
        Two heat maps with the same scale can be compared.

    Returns
    -------
    image : uint8 array of shape (h, w, 3)

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.report import overlay
    >>> picture = np.full((2, 2), 128, np.uint8)
    >>> left_for_right_against = np.array([[1.0, -1.0], [0.0, 0.0]])
    >>> overlay(picture, left_for_right_against)
    array([[[176,  41,  57],
            [ 49, 109, 171]],
    <BLANKLINE>
           [[163, 163, 163],
            [163, 163, 163]]], dtype=uint8)
    """
    rgb = as_rgb(picture)
    heat = np.asarray(heat, np.float64)
    if heat.ndim != 2 or heat.size == 0:
        raise ValueError(f"heat must be a matrix, got the shape {heat.shape}")
    if not np.isfinite(heat).all():
        raise ValueError("heat must be finite")
    if scale is None:
        scale = heat_scale(heat)
    if not scale > 0:
        raise ValueError(f"scale must be positive, got {scale!r}")
    relative = _resized(np.clip(heat / scale, -1, 1), rgb.shape[:2])[:, :, None]
    gray = LIFT + (255 - LIFT) / 255 * (rgb @ np.array([0.299, 0.587, 0.114]))[:, :, None]
    opacity = STRONGEST * np.abs(relative) ** GAMMA
    color = np.where(relative > 0, np.array(FOR), np.array(AGAINST))
    return np.rint((1 - opacity) * gray + opacity * color).clip(0, 255).astype(np.uint8)


def _resized(values: Array, shape: tuple[int, int]) -> Array:
    if values.shape == shape:
        return values
    image = pillow()
    heat = image.fromarray(values.astype(np.float32))
    # no overshooting, which would draw the other sign
    return np.asarray(heat.resize(shape[::-1], image.Resampling.BILINEAR), np.float64)


class Pictures:
    """A cache of encoded pictures: each is made once, however often the page is laid out."""

    def __init__(self) -> None:
        self._made: dict[Hashable, Any] = {}

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return what ``make`` returns, or returned before for this key."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]
