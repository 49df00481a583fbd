"""The words a model makes most use of, shown by patches of images.

How useful a word in a cell is to a class: by how much its contribution to the score of the class
differs between images, as a standard deviation over the held-out ones. Shown are words that speak
for the class, more so the more often they occur, every word once and no class too often. From every
image that has most of a word a patch is cut: where the descriptor is nearest to the word, or, for
pixel words, where the word is densest.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter

from hilbin.cli._contributions import Additive
from hilbin.cli._layout import Feature
from hilbin.images import BagOfWords

MOST_WORDS = 12
PATCHES = 16
SMALLEST_PATCH = 16  # pixels; a pixel word means little without its surroundings

Array = NDArray[Any]


@dataclass(frozen=True)
class Use:
    """What a model makes of its features, over some rows.

    Parameters
    ----------
    spread : array of shape (d, n_classes)
        Standard deviation of the contributions.
    rise : array of shape (d, n_classes)
        Contribution of the largest value less that of zero: above 0 if the feature speaks for the
        class.
    low, high : arrays of shape (d,)
        Smallest and largest value.
    """

    spread: Array
    rise: Array
    low: Array
    high: Array


def use(parts: Additive, rows: Any) -> Use:
    """How contributions differ between rows.

    Parameters
    ----------
    parts : Additive
    rows : array or CSR of shape (n, d)
    """
    n, d = rows.shape
    total = np.zeros((d, parts.intercept.size))
    squares = total.copy()
    low, high = np.full(d, np.inf), np.full(d, -np.inf)
    first: Any = None
    for i in range(n):
        row = rows[i : i + 1]
        value = (row.toarray() if hasattr(row, "toarray") else row)[0].astype(np.float64)
        given = parts.contributions(row)
        first = given if first is None else first
        given = given - first  # the same for all rows: no loss of digits
        total += given
        squares += given**2
        low, high = np.minimum(low, value), np.maximum(high, value)
    spread = np.sqrt(np.maximum(squares / n - (total / n) ** 2, 0))
    ends = [parts.contributions(end[None].astype(rows.dtype)) for end in (np.zeros(d), high)]
    return Use(spread, ends[1] - ends[0], low, high)


def most_useful_features(found: Use, most: int = MOST_WORDS) -> list[int]:
    """Features by the largest spread for any class; those without any are left out."""
    largest = found.spread.max(axis=1)
    order = np.argsort(-largest, kind="stable")[:most]
    return [int(j) for j in order if largest[j] > 0]


def most_useful_words(
    found: Use, candidates: Array, layout: Callable[[int], Feature], most: int = MOST_WORDS
) -> list[tuple[int, int]]:
    """Pairs of a feature and a class, the most useful first.

    Parameters
    ----------
    found : Use
    candidates : bool array of shape (d,)
        Which features are words.
    layout : callable
        What a feature is.
    most : int, default=12
    """
    worth = np.where(candidates[:, None] & (found.rise > 0), found.spread, 0.0)
    n_classes = worth.shape[1]
    per_class = max(1, -(-most // n_classes))
    counts = np.zeros(n_classes, int)
    seen: set[tuple[str, int]] = set()
    pairs: list[tuple[int, int]] = []
    order = np.argsort(-worth, axis=None, kind="stable")
    for j, k in zip(*np.unravel_index(order, worth.shape), strict=True):
        if worth[j, k] <= 0 or len(pairs) == most:
            break
        what = layout(int(j))
        if (what.part, what.word) in seen or counts[k] == per_class:
            continue
        seen.add((what.part, what.word))
        counts[k] += 1
        pairs.append((int(j), int(k)))
    return pairs


def patches(
    what: Feature,
    shares: Array,
    image: Callable[[int], Array],
    shown: Callable[[int], Array],
) -> list[Array]:
    """Parts of images with a word, one of each image, those with most of it first.

    Parameters
    ----------
    what : Feature
    shares : array of shape (n,)
        How much of the feature every image has.
    image : callable
        The images as the features read them.
    shown : callable
        The same in the same size, as they are shown.
    """
    best = np.argsort(-shares, kind="stable")[:PATCHES]
    found = []
    for i in best[shares[best] > 0]:
        place = best_place(what, image(int(i)))
        if place is not None:
            found.append(cut_out(shown(int(i)), *place))
    return found


Place = tuple[float, float, float]


def best_place(what: Feature, image: Array) -> Place | None:
    """Where a word is most itself within its cell: center y and x, and side of a patch."""
    best: tuple[float, Place] | None = None
    for grid, local in zip(what.words.words(image), _local(what.words, image), strict=True):
        if grid.ids.size == 0:
            continue
        ids = grid.ids if grid.ids.ndim == 2 else grid.ids[:, :, 0]
        here = (ids == what.word) & (grid.cell_numbers(image.shape, what.cut) == what.cell)
        if not here.any():
            continue
        if local is None:
            worth = uniform_filter(here.astype(np.float64), SMALLEST_PATCH)
        else:
            worth = -np.square(local.features - what.words.codebook_[what.word]).sum(axis=2)
        worth = np.where(here, worth, -np.inf)
        y, x = np.unravel_index(worth.argmax(), worth.shape)
        if best is None or worth[y, x] > best[0]:
            side = max(grid.size, SMALLEST_PATCH)
            best = float(worth[y, x]), (float(grid.ys[y]), float(grid.xs[x]), float(side))
    return None if best is None else best[1]


def _local(words: Any, image: Array) -> Any:
    """The descriptors that became words, or Nones if there are none."""
    if isinstance(words, BagOfWords):
        return words.descriptor_.local(image)
    return [None] * len(words.words(image))


def cut_out(picture: Array, y: float, x: float, side: float) -> Array:
    """A square part of a picture, moved inwards where it would reach beyond the border."""
    height, width = picture.shape[:2]
    size = min(round(side), height, width)
    top = int(np.clip(round(y + 0.5 - size / 2), 0, height - size))
    left = int(np.clip(round(x + 0.5 - size / 2), 0, width - size))
    return picture[top : top + size, left : left + size]


def cached(function: Callable[[int], Array], indices: Sequence[int]) -> Callable[[int], Array]:
    """The function of a place among some, its values kept."""
    return lru_cache(maxsize=None)(lambda at: function(indices[at]))
