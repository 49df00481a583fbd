"""Oriented gradients as pictures: every cell is a star of strokes along the edges that it holds.

A cell of FHOG has 18 signed directions, 9 without a sign, and 4 numbers of texture. The stroke of
direction :math:`k` lies along an edge, at right angles to the gradient, and its brightness is the
sum of the three numbers of that direction.
"""

from functools import cache

import numpy as np

from hilbin._arrays import Array
from hilbin.report.pictures import as_rgb

DIRECTIONS = 9


def glyphs(cells: Array, side: int = 20) -> Array:
    """Draw cells of oriented gradients, or the weights of a filter on them.

    Parameters
    ----------
    cells : array of shape (rows, columns, channels)
        At least the 27 channels of directions of FHOG. Negative numbers count as 0.
    side : int, default=20
        Pixels of a cell.

    Returns
    -------
    picture : uint8 array of shape (rows * side, columns * side, 3)
    """
    positive = np.maximum(np.asarray(cells, np.float64)[:, :, : 3 * DIRECTIONS], 0)
    strength = positive.reshape(*positive.shape[:2], 3, DIRECTIONS).sum(axis=2)
    drawn = np.einsum("yxk,kij->yixj", strength, _strokes(side))
    picture = drawn.reshape(len(cells) * side, -1)
    highest = picture.max(initial=0.0) or 1.0
    return as_rgb((255 * picture / highest).astype(np.uint8))


@cache
def _strokes(side: int) -> Array:
    """Return a stroke for every direction, as a picture of one cell."""
    middle = (side - 1) / 2
    y, x = np.mgrid[:side, :side] - middle
    angles = np.arange(DIRECTIONS) * np.pi / DIRECTIONS
    along = x * np.cos(angles)[:, None, None] + y * np.sin(angles)[:, None, None]
    length = -x * np.sin(angles)[:, None, None] + y * np.cos(angles)[:, None, None]
    thin = np.clip(side / 12 + 0.5 - np.abs(along), 0, 1)
    return thin * (np.abs(length) <= middle)
