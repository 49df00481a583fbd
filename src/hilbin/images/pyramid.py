"""Spatial pyramid: histograms of words over ever finer grids of cells.

Level ``l`` cuts the image into ``2^l`` by ``2^l`` cells; the row is the histograms of all cells of
all levels, each level times its weight. Since the intersection of histograms is homogeneous, the
intersection kernel of two rows is the spatial pyramid match ``sum_l w_l sum_cells sum_j
min(h_j, h'_j)``, with Lazebnik's weights ``w_0 = 2^-L`` and ``w_l = 2^(l-L-1)`` for ``L + 1``
levels (Lazebnik, Schmid & Ponce, *Beyond bags of features*, CVPR 2006).
"""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from hilbin.images._base import ImageTransformer, Row
from hilbin.images._grids import Array, Cut
from hilbin.images._words import WordSource, histogram, spread_words
from hilbin.images.read import Pixels, as_sources


def lazebnik_weights(levels: int) -> Array:
    """Weights of the levels of a pyramid, coarse to fine.

    Examples
    --------
    >>> from hilbin.images.pyramid import lazebnik_weights
    >>> lazebnik_weights(3)
    array([0.25, 0.25, 0.5 ])
    """
    finest = levels - 1
    return np.array([2.0**-finest, *(2.0 ** (level - finest - 1) for level in range(1, levels))])


class SpatialPyramid(ImageTransformer):
    """Histograms of words over a pyramid of cells.

    Parameters
    ----------
    words : WordSource
        ``BagOfWords``, ``Centrist``, ``LBP`` or ``ColorHistogram``; a copy is fitted.
    levels : int or sequence of (int, int), default=3
        1 is the whole image, 3 adds 2 by 2 and 4 by 4 cells; or rows and columns of cells of every
        level, such as ``[(1, 1), (8, 4)]`` for images twice as high as wide.
    weights : sequence of float, optional
        Of the levels, coarse to fine. By default Lazebnik's, or 1 if the levels are listed.
    sparse_output : bool, default=False
        Whether to return a CSR matrix.
    max_side : int, optional
        Larger images are reduced so that the longer side is this long.
    n_jobs : int, optional
        Threads, as in joblib.

    Attributes
    ----------
    words_ : WordSource
        Fitted.
    cuts_ : list of (int, int)
        Rows and columns of cells of every level.
    weights_ : ndarray of shape (n_levels,)

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images import Centrist, SpatialPyramid
    >>> images = np.random.default_rng(0).integers(0, 256, (4, 32, 32), np.uint8)
    >>> rows = SpatialPyramid(Centrist(), levels=2).fit_transform(images)
    >>> rows.shape  # 256 words, 1 + 4 cells
    (4, 1280)
    >>> rows[0].sum().round(3)  # words of the image, once per level, weighted
    np.float32(1.0)
    """

    def __init__(
        self,
        words: Any = None,
        levels: Any = 3,
        *,
        weights: Any = None,
        sparse_output: bool = False,
        max_side: int | None = 256,
        n_jobs: int | None = None,
    ):
        self.words = words
        self.levels = levels
        self.weights = weights
        self.sparse_output = sparse_output
        self.max_side = max_side
        self.n_jobs = n_jobs

    def fit(self, images: Any, y: Any = None) -> Self:
        """Fit the source of words.

        Parameters
        ----------
        images : sequence of paths or arrays
        y : ignored

        Returns
        -------
        self
        """
        self._check()
        if not isinstance(self.words, WordSource):
            raise TypeError(
                f"words must be a source of words such as Centrist(), got {self.words!r}"
            )
        self.cuts_ = self._cuts()
        self.weights_ = self._weights(len(self.cuts_))
        words = clone(self.words).set_params(max_side=self.max_side, n_jobs=self.n_jobs)
        self.words_ = words.fit(as_sources(images))
        return self

    def _cuts(self) -> list[Cut]:
        if isinstance(self.levels, int):
            if not 1 <= self.levels <= 8:
                raise ValueError(f"levels must be from 1 to 8, got {self.levels!r}")
            return [(2**level, 2**level) for level in range(self.levels)]
        if len(self.levels) == 0 or any(len(c) != 2 or min(c) < 1 for c in self.levels):
            raise ValueError(f"levels must be a number or pairs of numbers, got {self.levels!r}")
        return [(int(rows), int(columns)) for rows, columns in self.levels]

    def _weights(self, levels: int) -> Array:
        if self.weights is None:
            return lazebnik_weights(levels) if isinstance(self.levels, int) else np.ones(levels)
        weights = np.asarray(self.weights, np.float64)
        if weights.shape != (levels,) or not (weights >= 0).all():
            raise ValueError(f"weights must be {levels} numbers >= 0, got {self.weights!r}")
        return weights

    @property
    def _uses_color(self) -> bool:  # type: ignore[override]
        return getattr(self, "words_", self.words)._uses_color

    def describe(self, image: Pixels) -> Row:
        """The weighted histograms of all cells of one image."""
        grids = self.words_.words(image)
        return histogram(grids, image.shape, self.cuts_, self.weights_, self.words_.n_words)

    def to_pixels(self, image: Pixels, contributions: Array) -> NDArray[np.float64]:
        """Share contributions of words in cells out over the pixels where they occur."""
        grids = self.words_.words(image)
        return spread_words(grids, image.shape, self.cuts_, self.words_.n_words, contributions)

    @property
    def _n_features_out(self) -> int:
        return sum(rows * columns for rows, columns in self.cuts_) * self.words_.n_words

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "words_")
