"""The words a model makes most use of, shown by patches of images.

How useful a word in a cell is to a class: by how much its contribution to the score of the class
differs between images, as a standard deviation over the held-out ones. Shown are words that speak
for the class, more so the more often they occur, every word once and no class too often. Patches
are cut where the word is densest, one from every image that has most of it.
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

MOST_WORDS = 12
PATCHES = 16
SMALLEST_PATCH = 16  # pixels; a code of a pixel means little without its surroundings

Array = NDArray[Any]


@dataclass(frozen=True)
class Use:
    """What a model makes of its features, over some rows.

    Parameters
    ----------
    spread : array of shape (d, n_classes)
        Standard deviation of the contributions.
    slope : array of shape (d, n_classes)
        Covariance of value and contribution: above 0 if more of the feature speaks for the class.
    low, high : arrays of shape (d,)
        Smallest and largest value.
    """

    spread: Array
    slope: Array
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
    total = np.zeros((d, parts.bias.size))
    squares, products, values = total.copy(), total.copy(), np.zeros(d)
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
        products += value[:, None] * given
        values += value
        low, high = np.minimum(low, value), np.maximum(high, value)
    spread = np.sqrt(np.maximum(squares / n - (total / n) ** 2, 0))
    return Use(spread, products / n - (values / n)[:, None] * total / n, low, high)


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
    worth = np.where(candidates[:, None] & (found.slope > 0), found.spread, 0.0)
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
        place = densest(what, image(int(i)))
        if place is not None:
            found.append(cut_out(shown(int(i)), *place))
    return found


def densest(what: Feature, image: Array) -> tuple[float, float, float] | None:
    """Where a word occurs most densely within its cell: centre y and x, and side of a patch."""
    best: tuple[float, tuple[float, float, float]] | None = None
    for grid in what.words.words(image):
        if grid.ids.size == 0:
            continue
        ids = grid.ids if grid.ids.ndim == 2 else grid.ids[:, :, 0]
        here = (ids == what.word) & (grid.cell_numbers(image.shape, what.cut) == what.cell)
        if not here.any():
            continue
        side = max(grid.size, SMALLEST_PATCH)
        steps = [np.diff(c).min(initial=side) for c in (grid.ys, grid.xs)]
        window = [max(1, int(side / 2 / step)) for step in steps]
        density = np.where(here, uniform_filter(here.astype(np.float64), window), 0)
        y, x = np.unravel_index(density.argmax(), density.shape)
        place = (float(grid.ys[y]), float(grid.xs[x]), float(side))
        if best is None or density[y, x] > best[0]:
            best = float(density[y, x]), place
    return None if best is None else best[1]


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
