"""Dense SIFT: histograms of gradient directions around the points of a grid.

A descriptor covers 4 by 4 square bins of ``b`` pixels and counts the gradients of its surroundings
by eight directions, weighted by their size and shared linearly between neighboring directions and
bins; it is scaled to length 1, clipped at 0.2 and scaled again (Lowe, IJCV 2004). On a grid all
descriptors of one size are samples of eight filtered images, so that their cost hardly depends on
how many there are. The window over the descriptor is flat, as in VLFeat's fast ``dsift``, and the
image is smoothed by ``sigma^2 = (b / 6)^2 - 1/4`` first, as in its ``phow``.
"""

from dataclasses import KW_ONLY
from typing import Self

import numpy as np
from scipy.ndimage import gaussian_filter

from hilbin._arrays import Array
from hilbin._core import core
from hilbin._parameters import estimator, require_whole
from hilbin.images.descriptors import ImageSample
from hilbin.images.local import LocalDescriptor, LocalGrid
from hilbin.images.read import MOST_SIDE, Pixels, gray

POINTS_ALONG_A_SIDE = 32  # in grids that suit the images
PIXEL_SMOOTHING = 0.25  # the square of the blur that a pixel has by itself


@estimator
class DenseSIFT(LocalDescriptor):
    """SIFT descriptors on regular grids, one grid for each size.

    Parameters
    ----------
    step : int, default=8
        Pixels between neighboring descriptors.
    bin_sizes : sequence of int, default=(4, 8)
        Side of one of the 4 by 4 bins in pixels, for every size of descriptor.
    smoothing : float, default=6
        A bin is this many times as wide as the blur of the image; 0 leaves the image as it is.
    contrast : float, default=0.005
        Descriptors whose gradients are shorter than this are zero: their direction is noise.
    root : bool, default=False
        Take the square root of the L1-normalized descriptor (RootSIFT), whose Euclidean distance
        is the Hellinger distance of the SIFT histograms.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images import DenseSIFT
    >>> image = np.random.default_rng(0).integers(0, 256, (64, 64), np.uint8)
    >>> [grid.features.shape for grid in DenseSIFT(8, (4, 8)).local(image)]
    [(7, 7, 128), (5, 5, 128)]
    """

    n_dimensions = 128

    step: int = 8
    bin_sizes: tuple[int, ...] = (4, 8)
    _: KW_ONLY
    smoothing: float = 6.0
    contrast: float = 0.005
    root: bool = False

    @classmethod
    def for_sample(cls, sample: ImageSample) -> Self:
        """Return descriptors on grids that suit the size of the images."""
        step = int(np.clip(round(sample.side / POINTS_ALONG_A_SIDE), 2, 8))
        return cls(step, (4, 8) if sample.side >= 64 else (2, 4))

    def _check_state(self) -> None:
        """Raise ``ValueError`` if a loaded descriptor has sizes that no image has."""
        require_whole("step", self.step, 1, MOST_SIDE)
        for size in self.bin_sizes:
            require_whole("bin_sizes", size, 1, MOST_SIDE)

    def local(self, image: Pixels) -> list[LocalGrid]:
        """Return the grids of descriptors of one image, one grid for each bin size."""
        if not self.step >= 1 or not self.bin_sizes or min(self.bin_sizes) < 1:
            raise ValueError(
                f"step and bin_sizes must be whole numbers >= 1, got {self.step!r} and "
                f"{self.bin_sizes!r}"
            )
        values = np.ascontiguousarray(gray(image), np.float32) / np.float32(255)
        return [grid for size in self.bin_sizes if (grid := self._grid(values, int(size)))]

    def _grid(self, values: Array, size: int) -> LocalGrid | None:
        rows, columns = core.dense_sift_grid(*values.shape, size, self.step)
        if rows * columns == 0:
            return None
        if self.smoothing > 0 and (variance := (size / self.smoothing) ** 2 - PIXEL_SMOOTHING) > 0:
            values = gaussian_filter(values, variance**0.5, mode="nearest", truncate=3)
        features = np.empty((rows * columns, self.n_dimensions), np.float32)
        norms = np.empty(rows * columns, np.float32)
        core.dense_sift(values, size, self.step, features, norms)
        features[norms < self.contrast] = 0
        if self.root:
            total = np.abs(features).sum(axis=1, keepdims=True)
            features = np.sqrt(features / np.where(total > 0, total, 1))
        first = 1.5 * size
        return LocalGrid(
            features.reshape(rows, columns, -1),
            first + self.step * np.arange(rows),
            first + self.step * np.arange(columns),
            4.0 * size,
        )
