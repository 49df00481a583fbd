"""Histograms of oriented gradients, of square cells of pixels.

- :class:`HOG`: nine directions without sign per cell, blocks of 2 by 2 cells normalized together,
  clipped and normalized again; 36 numbers per block (Dalal & Triggs, CVPR 2005). A gradient is
  shared by the two directions and the four cells beside it, by distance, as in the paper.
- :class:`FHOG`: 18 directions with sign, 9 without, 4 amounts of texture; 31 numbers per cell
  (Felzenszwalb, Girshick, McAllester & Ramanan, PAMI 2010), in the form of VLFeat's ``vl_hog``. A
  gradient counts for the nearest direction.

As transformers they bring every image to one size and put all cells into one row; as local
descriptors they give the grid of cells of an image as it is.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Any, ClassVar, Self

import numpy as np

from hilbin._arrays import Array
from hilbin._core import core
from hilbin._parameters import estimator, require_whole
from hilbin.images._base import ImageTransformer
from hilbin.images.descriptors import ImageSample
from hilbin.images.local import LocalDescriptor, LocalGrid
from hilbin.images.read import MOST_SIDE, Pixels, gray, in_color, resized
from hilbin.images.words import WordGrid, paint


@estimator
class GradientCells(ImageTransformer, LocalDescriptor):
    """Base of HOG and FHOG: a row of all cells of an image, or a grid of them.

    Parameters
    ----------
    cell : int, default=8
        Side of a cell in pixels.
    size : (int, int), default=(64, 64)
        Height and width every image is brought to before it becomes a row.
    color : bool, default=True
        Whether to take the gradient of the channel where it is largest, or of the gray values.
    max_side : int, optional
        Larger images are reduced first; only for the grid of cells as a local descriptor.
    """

    _compute: ClassVar[Callable[..., Any]]  # the loop of the core
    _width = 1  # cells along the side of what one descriptor covers

    cell: int = 8
    size: tuple[int, int] = (64, 64)
    _: KW_ONLY
    color: bool = True
    max_side: int | None = None

    @classmethod
    def for_sample(cls, sample: ImageSample) -> Self:
        """Return a transformer to a size that suits the images."""
        side = 128 if sample.side >= 128 else 64 if sample.side >= 48 else 32
        return cls(cell=4 if side == 32 else 8, size=(side, side))

    def _cells(self, values: Array) -> Array:
        out = np.empty((*self._grid_shape(values.shape[:2]), self.n_dimensions), np.float32)
        if out.size:
            self._compute(values, self.cell, out)
        return out

    def _check(self) -> None:
        super()._check()
        require_whole("cell", self.cell, 2)
        sides = len(self.size) == 2 and all(isinstance(n, int | np.integer) for n in self.size)
        if not sides or min(self.size) < self._width * self.cell or max(self.size) > MOST_SIDE:
            raise ValueError(
                f"size must be (height, width) of at least {self._width} cells of "
                f"{self.cell} pixels each way, got {self.size!r}"
            )

    @property
    def _uses_color(self) -> bool:
        return bool(self.color)

    def _values(self, image: Pixels) -> Array:
        plain = in_color(image) if self.color else gray(image)
        return np.ascontiguousarray(plain, np.float32) / np.float32(255)

    def transform_image(self, image: Pixels) -> Array:
        """Return all cells of the image, brought to one size."""
        return self._cells(self._values(resized(image, self.size))).ravel()

    def local(self, image: Pixels) -> list[LocalGrid]:
        """Return the grid of cells of the image as it is."""
        features = self._cells(self._values(image))
        if features.size == 0:
            return []
        ys, xs = (self._centers(n) for n in features.shape[:2])
        return [LocalGrid(features, ys, xs, self._width * self.cell)]

    def _centers(self, count: int) -> Array:
        return (np.arange(count) + self._width / 2) * self.cell - 0.5

    def to_pixels(self, image: Pixels, contributions: Array) -> Array:
        """Spread the contributions of every cell evenly over its pixels."""
        height, width = self._grid_shape(self.size)
        share = np.asarray(contributions, np.float64).reshape(height, width, -1).sum(axis=2)
        scale = image.shape[0] / self.size[0], image.shape[1] / self.size[1]
        ys = (self._centers(height) + 0.5) * scale[0] - 0.5
        xs = (self._centers(width) + 0.5) * scale[1] - 0.5
        side = self._width * self.cell * max(scale)
        return paint(image.shape, [WordGrid(share, ys, xs, side)], [share])

    def _grid_shape(self, size: tuple[int, ...]) -> tuple[int, int]:
        """Return rows and columns of cells, or of blocks of cells, of an image."""
        rows, columns = core.hog_grid(size[0], size[1], self.cell)
        return max(0, rows + 1 - self._width), max(0, columns + 1 - self._width)

    @property
    def _n_features_out(self) -> int:
        height, width = self._grid_shape(self.size)
        return height * width * self.n_dimensions


@estimator
class FHOG(GradientCells):
    """Felzenszwalb's HOG: 31 non-negative numbers per cell.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images import FHOG
    >>> images = np.random.default_rng(0).integers(0, 256, (2, 64, 64), np.uint8)
    >>> FHOG(cell=8).fit_transform(images).shape  # 8 by 8 cells
    (2, 1984)
    """

    n_dimensions = 31
    _compute = staticmethod(core.fhog)


@estimator
class HOG(GradientCells):
    """Dalal and Triggs' HOG: 36 non-negative numbers per block of 2 by 2 cells.

    Gradients are interpolated between directions and between cells. Unlike in the paper, pixels
    near the border of a block weigh as much as others: there is no Gaussian window.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images import HOG
    >>> images = np.random.default_rng(0).integers(0, 256, (2, 128, 64), np.uint8)
    >>> HOG(cell=8, size=(128, 64)).fit_transform(images).shape  # 15 by 7 blocks
    (2, 3780)
    """

    n_dimensions = 36
    _width = 2
    _compute = staticmethod(core.hog)
