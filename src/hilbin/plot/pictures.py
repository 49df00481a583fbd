"""Pictures side by side in the cells of a grid, as kernelized sorting places them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hilbin._arrays import Array
from hilbin.plot.matrix import pyplot_or_error

MOST_INCHES = 8.0  # of the longer side of a new figure


def montage(
    images: Sequence[Any], cells: Any, *, size: int = 64, gap: int = 1, ax: Any = None
) -> Any:
    """Draw pictures in the cells of a grid, as of :func:`hilbin.dependence.sort_to_grid`.

    Parameters
    ----------
    images : sequence of arrays of shape (height, width) or (height, width, 3)
        Pictures. Gray ones may have any range of values, colors are whole numbers from 0 to 255 or
        numbers from 0 to 1. Shapes may differ.
    cells : array-like of shape (n_images, 2)
        Row and column of each; all differ.
    size : int, default 64
        Most pixels of the height and the width of a picture; of larger ones some are left out.
    gap : int, default 1
        Pixels between pictures.
    ax : matplotlib Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_digits
    >>> from hilbin.dependence import sort_to_grid
    >>> from hilbin.plot import montage
    >>> digits = load_digits()
    >>> sorting = sort_to_grid(digits.data[:48])
    >>> ax = montage(digits.images[:48], sorting.cells)
    >>> ax.images[0].get_array().shape
    (55, 73)
    """
    pyplot = pyplot_or_error()
    pictures = [_shrunk(_picture(image, i), size) for i, image in enumerate(images)]
    places = _checked_cells(cells, len(pictures))
    canvas = _canvas(pictures, places, gap)
    if ax is None:
        height, width = canvas.shape[:2]
        inches = MOST_INCHES * np.array([width, height]) / max(height, width)
        _, ax = pyplot.subplots(figsize=inches, layout="constrained")
    ax.imshow(canvas, cmap="gray", interpolation="nearest")
    ax.set_axis_off()
    return ax


def _picture(image: Any, number: int) -> Array:
    """Return gray values as they are, and colors from 0 to 1."""
    pixels = np.asarray(image)
    if pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[2] != 3) or not pixels.size:
        raise ValueError(
            f"images[{number}] must be of shape (height, width) or (height, width, 3), got "
            f"{pixels.shape}"
        )
    scale = 255 if pixels.ndim == 3 and pixels.dtype.kind in "iu" else 1
    return pixels.astype(np.float64) / scale


def _shrunk(pixels: Array, size: int) -> Array:
    """Return so few rows and columns of a picture, in proportion."""
    step = max(1.0, max(pixels.shape[:2]) / size)
    rows, columns = (np.arange(0, side, step).astype(int) for side in pixels.shape[:2])
    found: Array = pixels[rows][:, columns]
    return found


def _checked_cells(cells: Any, n: int) -> Array:
    places = np.asarray(cells)
    if places.shape != (n, 2) or places.dtype.kind not in "iu" or not n or places.min() < 0:
        raise ValueError(f"cells must be whole numbers >= 0 of shape ({n}, 2), one row per image")
    if len(np.unique(places, axis=0)) < n:
        raise ValueError("cells must differ: two images are in the same one")
    return places


def _canvas(pictures: list[Array], places: Array, gap: int) -> Array:
    """Return all pictures in one, each in the middle of its cell; what is empty is not drawn."""
    colored = any(picture.ndim == 3 for picture in pictures)
    sides = np.max([picture.shape[:2] for picture in pictures], axis=0)
    shape = (places.max(axis=0) + 1) * (sides + gap) + gap
    canvas = np.full((*shape, 3) if colored else shape, 1.0 if colored else np.nan)
    for picture, place in zip(pictures, places, strict=True):
        if colored and picture.ndim == 2:
            picture = np.repeat(_stretched(picture)[:, :, None], 3, axis=2)
        height, width = picture.shape[:2]
        top, left = place * (sides + gap) + gap + (sides - (height, width)) // 2
        canvas[top : top + height, left : left + width] = picture
    return canvas


def _stretched(gray: Array) -> Array:
    """Return gray values from 0 to 1, for a place among colors."""
    low, high = gray.min(), gray.max()
    return (gray - low) / (high - low if high > low else 1)
