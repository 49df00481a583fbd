"""Histogram of the directions of edges.

Where edges are and how they run says more about an image than its gray values do, and does not
depend on the light (Lampert, *Kernel Methods in Computer Vision*, section 3.2.4.2). The derivative
is that of a Gaussian, which is a derivative of the image freed from noise.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from hilbin.images._base import Array, ImageTransformer, Row
from hilbin.images.read import Pixels, gray

FLAT = 1e-9  # a smaller magnitude is rounding, not a gradient


class EdgeHistogram(ImageTransformer):
    r"""Histograms of gradient directions over the cells of a grid, weighted by magnitude.

    A pixel of magnitude :math:`|\nabla x|` is shared by the two nearest directions. The row is
    divided by the number of pixels: it sums to the mean magnitude, with white being 1. It does
    not change with the brightness of the image, and normalized not with the contrast either.

    Parameters
    ----------
    n_directions : int >= 1, default=8
        Bins per cell.
    cells : int >= 1, default=4
        The grid has ``cells`` by ``cells`` of them; 1 leaves places out.
    signed : bool, default=False
        Whether dark-to-light and light-to-dark are different directions.
    sigma : float > 0, default=1
        Standard deviation of the Gaussian, in pixels.
    threshold : float from 0 to 1, default=0
        Pixels with less than this part of the largest magnitude of the image are no edges.
    max_side : int, optional
        Larger images are reduced so that the longer side is this long.
    n_jobs : int, optional
        Threads, as in joblib.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images import EdgeHistogram
    >>> upright = np.zeros((16, 16), np.uint8)
    >>> upright[:, 8:] = 255
    >>> EdgeHistogram(4, cells=1).fit_transform([upright, upright.T]).round(4)
    array([[0.0625, 0.    , 0.    , 0.    ],
           [0.    , 0.    , 0.0625, 0.    ]], dtype=float32)
    """

    def __init__(
        self,
        n_directions: int = 8,
        *,
        cells: int = 4,
        signed: bool = False,
        sigma: float = 1.0,
        threshold: float = 0.0,
        max_side: int | None = 256,
        n_jobs: int | None = None,
    ):
        self.n_directions = n_directions
        self.cells = cells
        self.signed = signed
        self.sigma = sigma
        self.threshold = threshold
        self.max_side = max_side
        self.n_jobs = n_jobs

    def _check(self) -> None:
        super()._check()
        for name in ("n_directions", "cells"):
            value = getattr(self, name)
            if not (isinstance(value, (int, np.integer)) and value >= 1):
                raise ValueError(f"{name} must be a whole number >= 1, got {value!r}")
        if not (isinstance(self.sigma, (int, float)) and 0 < self.sigma < np.inf):
            raise ValueError(f"sigma must be a number > 0, got {self.sigma!r}")
        if not (isinstance(self.threshold, (int, float)) and 0 <= self.threshold <= 1):
            raise ValueError(f"threshold must be a number from 0 to 1, got {self.threshold!r}")

    def describe(self, image: Pixels) -> Row:
        """The histograms of one image, cell by cell."""
        votes = self._votes(image)
        n = self._n_features_out
        row: Any = sum(np.bincount(bins.ravel(), weight.ravel(), n) for bins, weight in votes)
        return (row / votes[0][0].size).astype(np.float32)

    def to_pixels(self, image: Pixels, contributions: Array) -> NDArray[np.float64]:
        """Share the contribution of every bin out over its pixels, by their weight in it.

        What an empty bin contributes is spread evenly over the image.
        """
        votes = self._votes(image)
        given = np.asarray(contributions, np.float64)
        n = self._n_features_out
        totals: Any = sum(np.bincount(bins.ravel(), weight.ravel(), n) for bins, weight in votes)
        rate = np.divide(given, totals, out=np.zeros(n), where=totals > 0)
        heat = np.full(image.shape[:2], given[totals <= 0].sum() / votes[0][0].size)
        for bins, weight in votes:
            heat += rate[bins] * weight
        return heat

    def _votes(self, image: Pixels) -> list[tuple[Array, Array]]:
        """Bins of all pixels and the weight they give, for the lower and the upper direction."""
        values = gray(image) / 255
        down, across = (
            ndimage.gaussian_filter(values, self.sigma, order=order, mode="nearest")
            for order in ((1, 0), (0, 1))
        )
        magnitude = np.hypot(down, across)
        magnitude[magnitude < max(self.threshold * magnitude.max(), FLAT)] = 0
        period = 2 * np.pi if self.signed else np.pi
        direction = np.arctan2(down, across) % period / period * self.n_directions
        lower = np.floor(direction)
        share = direction - lower
        i, j = (np.arange(side) * self.cells // side for side in values.shape)
        first = (i[:, None] * self.cells + j) * self.n_directions
        lower = lower.astype(np.int64)
        return [
            (first + lower % self.n_directions, magnitude * (1 - share)),
            (first + (lower + 1) % self.n_directions, magnitude * share),
        ]

    @property
    def _n_features_out(self) -> int:
        return self.cells**2 * self.n_directions
