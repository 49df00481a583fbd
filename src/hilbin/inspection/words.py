"""Visual words: what the columns of image rows stand for, and the words a model uses most.

A column is a word of some features in a cell of the image. How much a word matters to a class is
its importance, the mean absolute contribution to the score over the images. Shown are words that
speak for the class, more so the more often they occur; every word once and no class too often. From
every image that has most of a word a patch is cut: where the descriptor is nearest to the word, or,
for words of single pixels, where the word is densest.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.ndimage import uniform_filter

from hilbin._arrays import Array, to_dense
from hilbin.images import FHOG, BagOfWords, ImageFeatures, OnnxFeatures, SpatialPyramid
from hilbin.images.words import WordSource
from hilbin.inspection.additive import AdditiveModel, additive, shape_functions
from hilbin.inspection.evidence import VisualWord
from hilbin.inspection.importances import Importances, importances

WHOLE = (1, 1)
HALVES = (("upper left", "upper right"), ("lower left", "lower right"))
MOST_WORDS = 12
PATCHES = 16
SMALLEST_PATCH = 16  # pixels; a word of one pixel means little without its surroundings


# columns
@dataclass(frozen=True)
class ImageColumn:
    """Description of one column of the rows of images.

    Parameters
    ----------
    part : str
        Name of the features: sift, centrist, ...
    words : WordSource or None
        Where the words come from; None if it is no word.
    word : int
        Number of the word, of the channel of a network's output, or of the column within its
        features.
    cut, cell : (int, int) and int
        Into how many rows and columns of cells the image is cut, and which of them it is.
    weight : float, default=1
        What the share of the word in the image is multiplied by.

    Examples
    --------
    >>> from hilbin.images import ColorHistogram, SpatialPyramid
    >>> from hilbin.inspection import image_column
    >>> pyramid = SpatialPyramid(ColorHistogram(bins=2), levels=2).fit([])
    >>> str(image_column(pyramid, 9, "color"))
    'color word 1, upper left'
    """

    part: str
    words: Any
    word: int
    cut: tuple[int, int] = WHOLE
    cell: int = 0
    weight: float = 1.0

    def __str__(self) -> str:
        place = f", {cell_name(self.cut, self.cell)}"
        if self.words is None:
            return f"{self.part} {self.word}{place if self.cut != WHOLE else ''}"
        return f"{self.part} word {self.word}{place}"


def cell_name(cut: tuple[int, int], cell: int) -> str:
    """Return where a cell is, in words.

    Examples
    --------
    >>> from hilbin.inspection.words import cell_name
    >>> cell_name((1, 1), 0), cell_name((2, 2), 1), cell_name((4, 4), 7)
    ('whole image', 'upper right', 'row 2 of 4, column 4 of 4')
    """
    row, column = divmod(cell, cut[1])
    if cut == WHOLE:
        return "whole image"
    if cut == (2, 2):
        return HALVES[row][column]
    return f"row {row + 1} of {cut[0]}, column {column + 1} of {cut[1]}"


def image_column(features: Any, column: int, name: str = "feature") -> ImageColumn:
    """Describe a column of the rows of an image transformer.

    Parameters
    ----------
    features : fitted image transformer
    column : int
        Number of the column.
    name : str, default="feature"
        Name of the transformer; parts of ``ImageFeatures`` have names of their own.

    Returns
    -------
    column : ImageColumn

    Examples
    --------
    >>> from hilbin.images import ColorHistogram
    >>> from hilbin.inspection import image_column
    >>> str(image_column(ColorHistogram(bins=2).fit([]), 7, "color"))
    'color word 7, whole image'
    """
    if isinstance(features, ImageFeatures):
        for weight, (part_name, part) in zip(features.weights_, features.parts_, strict=True):
            if column < part._n_features_out:
                found = image_column(part, column, part_name)
                return replace(found, weight=weight * found.weight)
            column -= part._n_features_out
    if isinstance(features, SpatialPyramid):
        words = features.words_
        for weight, cut in zip(features.weights_, features.cuts_, strict=True):
            here = cut[0] * cut[1] * words.n_words
            if column < here:
                cell, word = divmod(column, words.n_words)
                return ImageColumn(name, words, word, cut, cell, float(weight))
            column -= here
    if isinstance(features, WordSource):
        return ImageColumn(name, features, column)
    if isinstance(features, FHOG):
        across = features._grid_shape(features.size)[1]
        cell, direction = divmod(column, features.n_dimensions)
        row, place = divmod(cell, across)
        return ImageColumn(f"{name} row {row + 1}, column {place + 1}, number", None, direction + 1)
    if isinstance(features, OnnxFeatures):
        return _channel(features, column, name)
    return ImageColumn(f"{name} feature", None, column + 1)


def _channel(features: OnnxFeatures, column: int, name: str) -> ImageColumn:
    """Say which channel of which output of a network a column is, and where."""
    ends = np.cumsum([output.n_features for output in features.outputs_])
    at = int(np.searchsorted(ends, column, side="right"))
    output = features.outputs_[at]
    of_cell = output.n_channels * (2 if output.signed else 1)
    cell, channel = divmod(column - int(ends[at]) + output.n_features, of_cell)
    sizes = [rows * columns for rows, columns in output.cuts]
    level = int(np.searchsorted(np.cumsum(sizes), cell, side="right"))
    negative, channel = divmod(channel, output.n_channels)
    part = f"{name} {output.name}{' negative' if negative else ''}"
    return ImageColumn(part, None, channel, output.cuts[level], cell - sum(sizes[:level]))


def whole_image_words(features: Any) -> Array:
    """Return which columns are words counted over the whole image, as a mask."""
    if isinstance(features, ImageFeatures):
        return np.concatenate([whole_image_words(part) for _, part in features.parts_])
    if isinstance(features, SpatialPyramid):
        n_words = features.words_.n_words
        return np.concatenate(
            [
                np.full(rows * columns * n_words, (rows, columns) == WHOLE)
                for rows, columns in features.cuts_
            ]
        )
    n_columns = getattr(features, "_n_features_out", 0)
    return np.full(n_columns, isinstance(features, WordSource))


def sum_by_word(features: Any, values: Array, name: str = "feature") -> dict[str, float]:
    """Sum the values of all columns of the same word, or channel, whatever cell it is in.

    Other columns stay as they are.

    Parameters
    ----------
    features : fitted image transformer
    values : array of shape (n_features,)
        A number for every column, such as a contribution.
    name : str, default="feature"
        Name of the transformer; parts of ``ImageFeatures`` have names of their own.

    Returns
    -------
    sums : dict from str to float

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images import ColorHistogram, SpatialPyramid
    >>> from hilbin.inspection import sum_by_word
    >>> pyramid = SpatialPyramid(ColorHistogram(bins=1), levels=2).fit([])
    >>> sum_by_word(pyramid, np.array([1.0, 0.1, 0.2, 0.3, 0.4]), "color")
    {'color word 0': 2.0}
    """
    if isinstance(features, ImageFeatures):
        found: dict[str, float] = {}
        for part_name, part in features.parts_:
            found |= sum_by_word(part, values[: part._n_features_out], part_name)
            values = values[part._n_features_out :]
        return found
    if isinstance(features, SpatialPyramid | WordSource):
        words = features.words_ if isinstance(features, SpatialPyramid) else features
        sums = values.reshape(-1, words.n_words).sum(axis=0).tolist()
        return {f"{name} word {word}": value for word, value in enumerate(sums)}
    found = {}
    for j, value in enumerate(values.tolist()):
        column = str(replace(image_column(features, j, name), cut=WHOLE, cell=0))
        found[column] = found.get(column, 0.0) + value
    return found


# the most important words
def visual_words(
    features: Any,
    model: Any,
    images: Sequence[Any],
    *,
    name: str = "feature",
    max_words: int = MOST_WORDS,
    pictures: Callable[[int], Array] | None = None,
) -> list[VisualWord]:
    """Find the visual words that an additive model of images uses most, with patches of images.

    Parameters
    ----------
    features : fitted image transformer
        From images to rows.
    model : fitted classifier
        Classifier of these rows. If it is not additive, or the features are not words, the result
        is empty.
    images : sequence of paths or uint8 arrays
        Images to learn the importances from, and to cut patches from; a few hundred suffice.
    name : str, default="feature"
        Name of the transformer; parts of ``ImageFeatures`` have names of their own.
    max_words : int, default=12
        Largest number of words.
    pictures : callable, optional
        ``pictures(i)`` is image ``i`` as it is shown, of the size in which the features see it;
        by default the image as the features see it.

    Returns
    -------
    words : list of VisualWord
        The most important first.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.estimators import IntersectionSVC
    >>> from hilbin.images import ColorHistogram
    >>> from hilbin.inspection import visual_words
    >>> images = np.zeros((4, 8, 8, 3), np.uint8)
    >>> images[:2, :, :4, 0] = 255  # the left half is red
    >>> features = ColorHistogram(bins=2).fit(images)
    >>> model = IntersectionSVC().fit(features.transform(images), ["red", "red", "black", "black"])
    >>> sorted(word.shape.name for word in visual_words(features, model, images, name="color"))
    ['color word 3, whole image', 'color word 7, whole image']
    """
    parts, candidates = additive(model), whole_image_words(features)
    if parts is None or not parts.has_shapes or not candidates.any():
        return []
    rows, gone = features.transform_with_errors(images)
    kept = [at for at in range(len(images)) if at not in gone]
    if not kept:
        return []
    rows = rows[kept]
    used = importances(parts, rows)
    assert used.low is not None
    assert used.high is not None
    pairs = most_important_words(
        used, rise(parts, used), candidates, lambda j: image_column(features, j, name), max_words
    )
    what = [image_column(features, j, name) for j, _ in pairs]
    numbers, names = [j for j, _ in pairs], [str(w) for w in what]
    curves = shape_functions(parts, numbers, names, 0 * used.low, used.high)
    image = lru_cache(maxsize=None)(lambda at: features.read(images[kept[at]]))
    shown = image
    if pictures is not None:
        shown = lru_cache(maxsize=None)(lambda at: pictures(kept[at]))
    return [
        VisualWord(
            replace(curve, values=curve.values / word.weight),  # the share of the image
            k,
            patches(word, to_dense(rows[:, [j]]).ravel(), image, shown),
        )
        for (j, k), word, curve in zip(pairs, what, curves, strict=True)
    ]


def rise(parts: AdditiveModel, used: Importances) -> Array:
    """Return what the largest value of each column adds more than zero does, for every class."""
    assert used.high is not None
    ends = [parts.contributions(end[None])[0] for end in (0 * used.high, used.high)]
    return np.asarray(ends[1] - ends[0])


def most_important_words(
    used: Importances,
    rises: Array,
    candidates: Array,
    column: Callable[[int], ImageColumn],
    most: int = MOST_WORDS,
) -> list[tuple[int, int]]:
    """Return pairs of a column and a class, the most important first.

    ``candidates`` is a mask of the columns that are words, ``rises`` is positive where a word
    speaks for the class, and ``column(j)`` says what a column is.
    """
    worth = np.where(candidates[:, None] & (rises > 0), used.by_class, 0.0)
    n_classes = worth.shape[1]
    per_class = max(1, -(-most // n_classes))
    counts = np.zeros(n_classes, int)
    seen: set[tuple[str, int]] = set()
    pairs: list[tuple[int, int]] = []
    order = np.argsort(-worth, axis=None, kind="stable")
    for j, k in zip(*np.unravel_index(order, worth.shape), strict=True):
        if worth[j, k] <= 0 or len(pairs) == most:
            break
        what = column(int(j))
        if (what.part, what.word) in seen or counts[k] == per_class:
            continue
        seen.add((what.part, what.word))
        counts[k] += 1
        pairs.append((int(j), int(k)))
    return pairs


# patches
Place = tuple[float, float, float]


def patches(
    what: ImageColumn,
    shares: Array,
    image: Callable[[int], Array],
    shown: Callable[[int], Array],
) -> list[Array]:
    """Cut patches with a word, one from each image, from those with most of it first.

    ``shares`` says how much of the word every image has, ``image(i)`` is an image as the features
    see it and ``shown(i)`` the same as it is shown.
    """
    best = np.argsort(-shares, kind="stable")[:PATCHES]
    found = []
    for i in best[shares[best] > 0]:
        place = best_place(what, image(int(i)))
        if place is not None:
            found.append(cut_out(shown(int(i)), *place))
    return found


def best_place(what: ImageColumn, image: Array) -> Place | None:
    """Return where a word fits best within its cell: center y and x, and side of a patch."""
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
    """Return the descriptors that became words, or Nones if there are none."""
    if isinstance(words, BagOfWords):
        return words.descriptor_.local(image)
    return [None] * len(words.words(image))


def cut_out(picture: Array, y: float, x: float, side: float) -> Array:
    """Return a square part of a picture, moved inwards where it would reach beyond the border."""
    height, width = picture.shape[:2]
    size = min(round(side), height, width)
    top = int(np.clip(round(y + 0.5 - size / 2), 0, height - size))
    left = int(np.clip(round(x + 0.5 - size / 2), 0, width - size))
    return picture[top : top + size, left : left + size]
