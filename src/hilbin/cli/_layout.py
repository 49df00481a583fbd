"""What the columns of a row of images stand for: a word of which features, in which cell."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hilbin.images import FHOG, ImageFeatures, OnnxFeatures, SpatialPyramid
from hilbin.images.words import WordSource

WHOLE = (1, 1)
HALVES = (("upper left", "upper right"), ("lower left", "lower right"))


@dataclass(frozen=True)
class Feature:
    """One column.

    Parameters
    ----------
    part : str
        Name of the features: sift, centrist, ...
    words : WordSource or None
        Where the words come from; None if it is no word.
    word : int
        Its number, or the number of the column within its features.
    cut, cell : (int, int) and int
        Into how many rows and columns of cells the image is cut, and which of them it is.
    weight : float, default=1
        What the share of the word in the image is multiplied by.
    """

    part: str
    words: Any
    word: int
    cut: tuple[int, int] = WHOLE
    cell: int = 0
    weight: float = 1.0

    def __str__(self) -> str:
        if self.words is None:
            return f"{self.part} {self.word}"
        return f"{self.part} word {self.word}, {cell_name(self.cut, self.cell)}"


def cell_name(cut: tuple[int, int], cell: int) -> str:
    """Where a cell is.

    Examples
    --------
    >>> from hilbin.cli._layout import cell_name
    >>> cell_name((1, 1), 0), cell_name((2, 2), 1), cell_name((4, 4), 7)
    ('whole image', 'upper right', 'row 2 of 4, column 4 of 4')
    """
    row, column = divmod(cell, cut[1])
    if cut == WHOLE:
        return "whole image"
    if cut == (2, 2):
        return HALVES[row][column]
    return f"row {row + 1} of {cut[0]}, column {column + 1} of {cut[1]}"


def feature(transformer: Any, column: int, name: str) -> Feature:
    """What a column of the rows of a transformer is.

    Parameters
    ----------
    transformer : ImageTransformer
        Fitted.
    column : int
    name : str
        Of the transformer.
    """
    if isinstance(transformer, ImageFeatures):
        for weight, (part_name, part) in zip(transformer.weights_, transformer.parts_, strict=True):
            if column < part._n_features_out:
                found = feature(part, column, part_name)
                return replace(found, weight=weight * found.weight)
            column -= part._n_features_out
    if isinstance(transformer, SpatialPyramid):
        words = transformer.words_
        for weight, cut in zip(transformer.weights_, transformer.cuts_, strict=True):
            here = cut[0] * cut[1] * words.n_words
            if column < here:
                cell, word = divmod(column, words.n_words)
                return Feature(name, words, word, cut, cell, float(weight))
            column -= here
    if isinstance(transformer, WordSource):
        return Feature(name, transformer, column)
    if isinstance(transformer, FHOG):
        across = transformer._grid_shape(transformer.size)[1]
        cell, direction = divmod(column, transformer.n_dimensions)
        row, place = divmod(cell, across)
        return Feature(f"{name} row {row + 1}, column {place + 1}, number", None, direction + 1)
    kind = "output" if isinstance(transformer, OnnxFeatures) else "feature"
    return Feature(f"{name} {kind}", None, column + 1)


def whole_image_words(transformer: Any) -> Any:
    """Which columns are words counted over the whole image, as a mask."""
    if isinstance(transformer, ImageFeatures):
        return np.concatenate([whole_image_words(part) for _, part in transformer.parts_])
    if isinstance(transformer, SpatialPyramid):
        n_words = transformer.words_.n_words
        return np.concatenate(
            [
                np.full(rows * columns * n_words, (rows, columns) == WHOLE)
                for rows, columns in transformer.cuts_
            ]
        )
    return np.full(transformer._n_features_out, isinstance(transformer, WordSource))


def by_word(transformer: Any, columns: Any, name: str) -> dict[str, float]:
    """Sums over all columns of the same word, whatever cell it is in; other columns as they are.

    Parameters
    ----------
    transformer : ImageTransformer
        Fitted.
    columns : array of shape (d,)
        A number for every column.
    name : str
        Of the transformer.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.cli._layout import by_word
    >>> from hilbin.images import ColorHistogram, SpatialPyramid
    >>> pyramid = SpatialPyramid(ColorHistogram(bins=1), levels=2).fit([])
    >>> by_word(pyramid, np.array([1.0, 0.1, 0.2, 0.3, 0.4]), "color")
    {'color word 0': 2.0}
    """
    if isinstance(transformer, ImageFeatures):
        found: dict[str, float] = {}
        for part_name, part in transformer.parts_:
            found |= by_word(part, columns[: part._n_features_out], part_name)
            columns = columns[part._n_features_out :]
        return found
    if isinstance(transformer, SpatialPyramid | WordSource):
        words = transformer.words_ if isinstance(transformer, SpatialPyramid) else transformer
        sums = columns.reshape(-1, words.n_words).sum(axis=0).tolist()
        return {f"{name} word {word}": value for word, value in enumerate(sums)}
    return {str(feature(transformer, j, name)): float(v) for j, v in enumerate(columns)}
