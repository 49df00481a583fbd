"""Histograms of oriented gradients, of square cells of pixels.

- :class:`HOG`: nine directions without sign per cell, blocks of 2 by 2 cells normalized together,
  clipped and normalized again; 36 numbers per block (Dalal & Triggs, CVPR 2005).
- :class:`FHOG`: 18 directions with sign, 9 without, 4 amounts of texture; 31 numbers per cell
  (Felzenszwalb, Girshick, McAllester & Ramanan, PAMI 2010), in the form of VLFeat's ``vl_hog``.

As transformers they bring every image to one size and put all cells into one row; as local
descriptors they give the grid of cells of an image as it is.
"""

import numpy as np
from numpy.typing import NDArray

from hilbin._core import core
from hilbin.images._base import ImageTransformer, Row
from hilbin.images._grids import Array, LocalGrid, WordGrid, paint
from hilbin.images._local import LocalDescriptor
from hilbin.images.read import Pixels, gray, in_color, resized


class _Cells(ImageTransformer, LocalDescriptor):
    """Cells of gradients: a row of all cells, or a grid of them."""

    _width = 1  # of what one number describes, in cells

    def __init__(
        self,
        cell: int = 8,
        size: tuple[int, int] = (64, 64),
        *,
        color: bool = True,
        max_side: int | None = None,
        n_jobs: int | None = None,
    ):
        self.cell = cell
        self.size = size
        self.color = color
        self.max_side = max_side
        self.n_jobs = n_jobs

    def _cells(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        raise NotImplementedError

    def _check(self) -> None:
        super()._check()
        if not self.cell >= 2:
            raise ValueError(f"cell must be at least 2 pixels, got {self.cell!r}")
        if len(self.size) != 2 or min(self.size) < self._width * self.cell:
            raise ValueError(
                f"size must be (height, width) of at least {self._width} cells of "
                f"{self.cell} pixels each way, got {self.size!r}"
            )

    @property
    def _uses_color(self) -> bool:  # type: ignore[override]
        return bool(self.color)

    def _values(self, image: Pixels) -> NDArray[np.float32]:
        plain = in_color(image) if self.color else gray(image)
        return np.ascontiguousarray(plain, np.float32) / np.float32(255)

    def describe(self, image: Pixels) -> Row:
        """All cells of the image, brought to one size."""
        return self._cells(self._values(resized(image, self.size))).ravel()

    def local(self, image: Pixels) -> list[LocalGrid]:
        """The grid of cells of the image as it is."""
        features = self._cells(self._values(image))
        if features.size == 0:
            return []
        ys, xs = (self._centers(n) for n in features.shape[:2])
        return [LocalGrid(features, ys, xs, self._width * self.cell)]

    def _centers(self, count: int) -> Array:
        return (np.arange(count) + self._width / 2) * self.cell - 0.5

    def to_pixels(self, image: Pixels, contributions: Array) -> NDArray[np.float64]:
        """Spread the contributions of every cell evenly over its pixels."""
        height, width = self._grid_shape(self.size)
        share = np.asarray(contributions, np.float64).reshape(height, width, -1).sum(axis=2)
        scale = image.shape[0] / self.size[0], image.shape[1] / self.size[1]
        ys = (self._centers(height) + 0.5) * scale[0] - 0.5
        xs = (self._centers(width) + 0.5) * scale[1] - 0.5
        side = self._width * self.cell * max(scale)
        return paint(image.shape, [WordGrid(share, ys, xs, side)], [share])

    def _grid_shape(self, size: tuple[int, ...]) -> tuple[int, int]:
        """Rows and columns of cells, or of blocks of cells, of an image."""
        rows, columns = core.hog_grid(size[0], size[1], self.cell)
        return max(0, rows + 1 - self._width), max(0, columns + 1 - self._width)

    @property
    def _n_features_out(self) -> int:
        height, width = self._grid_shape(self.size)
        return height * width * self.n_dimensions


class FHOG(_Cells):
    """Felzenszwalb's HOG: 31 non-negative numbers per cell.

    Parameters
    ----------
    cell : int, default=8
        Side of a cell in pixels.
    size : (int, int), default=(64, 64)
        Height and width every image is brought to before it becomes a row.
    color : bool, default=True
        Take the gradient of the channel where it is largest, or of the gray values.
    max_side : int, optional
        Larger images are reduced first; only for the grid of cells as a local descriptor.
    n_jobs : int, optional
        Threads, as in joblib.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images import FHOG
    >>> images = np.random.default_rng(0).integers(0, 256, (2, 64, 64), np.uint8)
    >>> FHOG(cell=8).fit_transform(images).shape  # 8 by 8 cells
    (2, 1984)
    """

    n_dimensions = 31

    def _cells(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        out = np.empty((*self._grid_shape(values.shape[:2]), self.n_dimensions), np.float32)
        if out.size:
            core.fhog(values, self.cell, out)
        return out


class HOG(_Cells):
    """Dalal and Triggs' HOG: 36 non-negative numbers per block of 2 by 2 cells.

    Parameters
    ----------
    cell : int, default=8
        Side of a cell in pixels.
    size : (int, int), default=(64, 64)
        Height and width every image is brought to before it becomes a row.
    color : bool, default=True
        Take the gradient of the channel where it is largest, or of the gray values.
    max_side : int, optional
        Larger images are reduced first; only for the grid of cells as a local descriptor.
    n_jobs : int, optional
        Threads, as in joblib.

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

    def _cells(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        out = np.empty((*self._grid_shape(values.shape[:2]), self.n_dimensions), np.float32)
        if out.size:
            core.hog(values, self.cell, out)
        return out
