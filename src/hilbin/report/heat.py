r"""Heat maps over photographs.

The score of an additive model on a bag of words is a sum over the image: each of the
:math:`h_j` patches of word ``j`` has the share :math:`g_j(h_j) / h_j`. What speaks for the class is
drawn red, what speaks against it blue, and zero leaves the photograph gray. Both ends of the scale
are equally far from zero.
"""

from typing import Any

import numpy as np

from hilbin.report._pictures import as_rgb, pillow
from hilbin.report.evidence import Array

FOR, AGAINST = (178, 24, 43), (33, 102, 172)  # of ColorBrewer's RdBu, safe for the color-blind
STRONGEST = 0.88  # opacity at the ends of the scale
GAMMA = 0.75  # below 1, weak parts are seen too
TAIL = 0.995  # pixels beyond this quantile have the color of the end
LIFT = 70  # black of the photograph becomes this gray, so that colors show on it


def heat_scale(*maps: Array) -> float:
    """End of a scale common to several maps: a high quantile of their absolute values."""
    values = np.concatenate([np.abs(np.asarray(m, np.float64)).ravel() for m in maps])
    values = values[values > 0]
    return float(np.quantile(values, TAIL)) if values.size else 1.0


def overlay(picture: Any, heat: Any, *, scale: float | None = None) -> Array:
    """Lay a heat map over a picture: red for, blue against, gray where it is zero.

    Parameters
    ----------
    picture : uint8 array of shape (h, w) or (h, w, 3)
        The photograph; it is drawn gray.
    heat : array-like of shape (h', w')
        What each part of it adds to a score; brought to the size of the picture.
    scale : float, optional
        The value with the full color; by default the 99.5th percentile of the absolute values.
        Two maps are comparable if they have the same.

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
