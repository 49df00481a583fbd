r"""Words in the cells of a grid, and the restriction kernel on the boxes of images.

**Definition.** An image is a grid of cells with words in them, and :math:`x|_y` is the part of an
image :math:`x` inside a box :math:`y`. A kernel on histograms makes one on pairs of images and
boxes, the restriction kernel,

.. math:: k\big((x, y), (x', y')\big) = k(h(x|_y), h(x'|_{y'})),

with :math:`h_j` the number of words :math:`j` in the box, or its share. It is positive definite
wherever :math:`k` is.

**Algorithm.** The histogram of any box is four rows of the integral histogram, whose entry
:math:`(y, x)` counts the words above and to the left.

**Reference.** M. Blaschko and C. Lampert, *Learning to Localize Objects with Structured Output
Regression*, ECCV 2008.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from hilbin._arrays import Array
from hilbin._core import core
from hilbin.detect.boxes import as_coordinates

MOST_WORDS = np.iinfo(np.int32).max
MOST_DIFFERENT = 1 << 20


class WordCells:
    """Counts of words in the cells of a grid; counts of any box are a look-up.

    Parameters
    ----------
    words : integer array of shape (rows, columns) or (rows, columns, n_words)
        The word in every cell, negative for none; or how often every word is in every cell.
    n_words : int, optional
        Number of different words, if ``words`` has one for every cell; by default as many as
        there are.

    Examples
    --------
    >>> from hilbin.detect import WordCells
    >>> cells = WordCells([[0, 1, 1], [2, 1, -1]])
    >>> cells.shape, cells.n_words
    ((2, 3), 3)
    >>> cells.histograms([[0, 0, 3, 2], [1, 0, 3, 1]])
    array([[1, 3, 1],
           [0, 2, 0]])
    """

    def __init__(self, words: Any, n_words: int | None = None) -> None:
        given = np.asarray(words)
        if given.ndim not in (2, 3) or given.dtype.kind not in "iub":
            raise ValueError(
                "words must be whole numbers of shape (rows, columns) or (rows, columns, n_words), "
                f"got {given.dtype} of shape {given.shape}"
            )
        if given.size == 0:
            raise ValueError(f"words has no cell: its shape is {given.shape}")
        self.shape = given.shape[:2]
        self.n_words = _number_of_words(given, n_words)
        self._words = np.ascontiguousarray(given, np.int32)

    @cached_property
    def counts(self) -> Array:
        """How often every word is in every cell, int32 (rows, columns, n_words)."""
        if self._words.ndim == 3:
            return self._words
        return (self._words[:, :, None] == np.arange(self.n_words)).astype(np.int32)

    @cached_property
    def integral(self) -> Array:
        """Counts of the boxes that begin in the first cell, int32 (rows + 1, columns + 1, j)."""
        sums = np.empty((self.shape[0] + 1, self.shape[1] + 1, self.n_words), np.int32)
        integrate = core.integrate_words if self._words.ndim == 2 else core.integrate_counts
        integrate(self._words, sums)
        return sums

    def histograms(self, boxes: Any) -> Array:
        """Count the words in boxes.

        Parameters
        ----------
        boxes : array-like of shape (n, 4)
            Boxes ``[x0, y0, x1, y1)`` in whole cells.

        Returns
        -------
        counts : int64 array of shape (n, n_words)
        """
        x0, y0, x1, y1 = self.checked(boxes).T
        sums = self.integral
        counts: Array = sums[y1, x1] - sums[y0, x1] - sums[y1, x0] + sums[y0, x0]
        return counts.astype(np.int64)

    def densities(self, boxes: Any) -> Array:
        """Return the counts of words per cell of the box.

        Parameters
        ----------
        boxes : array-like of shape (n, 4)
            Boxes ``[x0, y0, x1, y1)`` in whole cells.

        Returns
        -------
        densities : array of shape (n, n_words)
        """
        x0, y0, x1, y1 = self.checked(boxes).T
        return self.histograms(boxes) / ((x1 - x0) * (y1 - y0))[:, None]

    def checked(self, boxes: Any) -> Array:
        """Return boxes as whole numbers, if they are boxes of these cells that are not empty."""
        given = as_coordinates(boxes)
        whole = given.astype(np.int64)
        rows, columns = self.shape
        good = (whole == given).all(axis=1) & (whole[:, :2] >= 0).all(axis=1)
        good &= (whole[:, :2] < whole[:, 2:]).all(axis=1)
        good &= (whole[:, 2] <= columns) & (whole[:, 3] <= rows)
        if not good.all():
            at = int(np.argmin(good))
            raise ValueError(
                f"boxes[{at}] = {given[at].tolist()} is not a box of whole cells in a grid of "
                f"{columns} columns and {rows} rows"
            )
        return whole


def _number_of_words(words: Array, n_words: int | None) -> int:
    """Return the number of words, or raise an error if there are others."""
    if words.ndim == 2:
        most = int(words.max()) + 1
        if most > (MOST_DIFFERENT if n_words is None else n_words):
            raise ValueError(
                f"words has the word {most - 1}, but n_words={n_words or MOST_DIFFERENT}"
            )
        return max(most, 1) if n_words is None else int(n_words)
    if n_words not in (None, words.shape[2]):
        raise ValueError(f"words has counts of {words.shape[2]} words, but n_words={n_words}")
    if words.min() < 0 or words.sum(dtype=np.float64) > MOST_WORDS:
        raise ValueError("words has a count that is negative, or too many words")
    return int(words.shape[2])


def restriction_kernel(
    kernel: Any,
    examples: Sequence[tuple[WordCells, Any]],
    others: Sequence[tuple[WordCells, Any]] | None = None,
    *,
    normalized: bool = True,
) -> Array:
    """Compute a kernel between the parts of images inside boxes.

    Parameters
    ----------
    kernel : Kernel or callable
        Kernel on histograms: ``kernel(X, Y)`` is a Gram matrix.
    examples, others : sequences of (WordCells, box)
        Images and boxes ``[x0, y0, x1, y1)`` of them in whole cells; the examples with themselves
        without others.
    normalized : bool, default=True
        Whether histograms are divided by their sums, so that the size of a box does not count.

    Returns
    -------
    K : array of shape (n_examples, n_others)

    Examples
    --------
    >>> from hilbin.detect import WordCells, restriction_kernel
    >>> from hilbin.kernels import Intersection
    >>> image = WordCells([[0, 1, 1], [2, 1, 0]])
    >>> pairs = [(image, [0, 0, 3, 2]), (image, [1, 0, 2, 2])]
    >>> restriction_kernel(Intersection(), pairs)
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    def rows(pairs: Sequence[tuple[WordCells, Any]]) -> Array:
        found = np.vstack([cells.histograms([box]) for cells, box in pairs]).astype(np.float64)
        sums = found.sum(axis=1, keepdims=True)
        return found / np.maximum(sums, 1) if normalized else found

    gram: Array = kernel(rows(examples), rows(examples if others is None else others))
    return gram
