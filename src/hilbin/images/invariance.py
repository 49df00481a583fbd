r"""Invariant features: rows that do not change with some changes of an image.

Lampert, *Kernel Methods in Computer Vision*, section 3.2.4.

- :class:`FourierMagnitude` does not see cyclic shifts.
- :class:`RadialProfile` does not see turns: the average of an image over all turns about its
  middle, :math:`\int R_\theta x\, d\theta`, is the same along every circle, so what is left is its
  radial profile.
- :class:`RotationIntegrated` averages other features over a finite number of turns, which keeps
  more.
- :class:`EdgeHistogram` does not see brightness, and normalized not contrast either: where edges
  are and how they run says more about an image than its gray values do. The derivative is that of a
  Gaussian, which is a derivative of the image freed from noise.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from scipy import ndimage
from sklearn.base import clone

from hilbin._arrays import Array
from hilbin._parameters import estimator, require_positive, require_whole
from hilbin._state import require_attributes
from hilbin.images._base import ImageTransformer
from hilbin.images.read import Pixels, gray, resized

FLAT = 1e-9  # a smaller magnitude is rounding, not a gradient


@estimator
class FourierMagnitude(ImageTransformer):
    """Magnitude of the two-dimensional Fourier transform, which is invariant to cyclic shifts.

    Images are brought to ``size`` by ``size`` pixels; the magnitudes of the non-redundant half of
    the frequencies follow, divided by the number of pixels, so that the first one is the mean gray
    value, white being 1. The phases, which hold the places of things, are lost.

    Parameters
    ----------
    size : int >= 1, default=32
        Side in pixels.
    max_side : int or None, default=None
        Larger images are reduced so that the longer side has this many pixels.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images import FourierMagnitude
    >>> image = np.random.default_rng(0).integers(0, 256, (16, 16), np.uint8)
    >>> rows = FourierMagnitude(size=16).fit_transform([image, np.roll(image, (3, 5), (0, 1))])
    >>> rows.shape, bool(np.allclose(rows[0], rows[1], atol=1e-6))
    ((2, 144), True)
    """

    size: int = 32
    _: KW_ONLY
    max_side: int | None = None

    def _check(self) -> None:
        super()._check()
        require_whole("size", self.size, 1, 1 << 13)

    def transform_image(self, image: Pixels) -> Array:
        """Return the magnitudes of one image."""
        values = resized(gray(image), (self.size, self.size)) / 255
        magnitudes: Array = np.abs(np.fft.rfft2(values)) / values.size
        return magnitudes.ravel().astype(np.float32)

    @property
    def _n_features_out(self) -> int:
        return self.size * (self.size // 2 + 1)


@estimator
class EdgeHistogram(ImageTransformer):
    r"""Histograms of gradient directions over the cells of a grid, weighted by magnitude.

    A pixel of magnitude :math:`|\nabla x|` is shared by the two nearest directions. The row is
    divided by the number of pixels: it sums to the mean magnitude, with white being 1. It does
    not change with the brightness of the image, and normalized not with the contrast either.

    Parameters
    ----------
    n_directions : int >= 1, default=8
        Number of bins per cell.
    cells : int >= 1, default=4
        The grid has ``cells`` by ``cells`` of them; 1 leaves places out.
    signed : bool, default=False
        Whether dark-to-light and light-to-dark are different directions.
    sigma : float > 0, default=1
        Standard deviation of the Gaussian, in pixels.
    threshold : float from 0 to 1, default=0
        Pixels with less than this part of the largest magnitude of the image are no edges.

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

    n_directions: int = 8
    _: KW_ONLY
    cells: int = 4
    signed: bool = False
    sigma: float = 1.0
    threshold: float = 0.0

    def _check(self) -> None:
        super()._check()
        require_whole("n_directions", self.n_directions, 1, 1 << 16)
        require_whole("cells", self.cells, 1, 1 << 10)
        require_positive("sigma", self.sigma, most=1000)
        if not (isinstance(self.threshold, (int, float)) and 0 <= self.threshold <= 1):
            raise ValueError(f"threshold must be a number from 0 to 1, got {self.threshold!r}")

    def transform_image(self, image: Pixels) -> Array:
        """Return the histograms of one image, cell by cell."""
        votes = self._votes(image)
        n = self._n_features_out
        row: Any = sum(np.bincount(bins.ravel(), weight.ravel(), n) for bins, weight in votes)
        return (row / votes[0][0].size).astype(np.float32)

    def to_pixels(self, image: Pixels, contributions: Array) -> Array:
        """Distribute the contribution of every bin over its pixels, by their weight in it.

        The contribution of an empty bin is spread evenly over the image.
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
        """Return bins and weights of all pixels, for the lower and the upper direction."""
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


@estimator
class RadialProfile(ImageTransformer):
    """Mean gray value along circles about the middle of the image, white being 1.

    Parameters
    ----------
    n_rings : int >= 1, default=16
        Number of rings of equal width, out to the nearer border.
    max_side : int or None, default=None
        Larger images are reduced so that the longer side has this many pixels.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images import RadialProfile
    >>> image = np.full((9, 9), 255, np.uint8)
    >>> image[4, 4] = 0
    >>> RadialProfile(n_rings=3).fit_transform([image]).round(2)
    array([[0.89, 1.  , 1.  ]], dtype=float32)
    """

    n_rings: int = 16
    _: KW_ONLY
    max_side: int | None = None

    def _check(self) -> None:
        super()._check()
        require_whole("n_rings", self.n_rings, 1, 1 << 20)

    def transform_image(self, image: Pixels) -> Array:
        """Return the mean of every ring of one image; 0 for a ring narrower than its pixels."""
        rings = self._rings(image)
        inside = rings < self.n_rings
        counts = np.bincount(rings[inside], minlength=self.n_rings)
        sums = np.bincount(rings[inside], gray(image)[inside] / 255, minlength=self.n_rings)
        return (sums / np.maximum(counts, 1)).astype(np.float32)

    def to_pixels(self, image: Pixels, contributions: Array) -> Array:
        """Distribute the contribution of a ring over its pixels, by brightness."""
        rings = self._rings(image)
        return _to_pixels(rings, gray(image).astype(np.float64), np.asarray(contributions))

    def _rings(self, image: Pixels) -> Array:
        """Return the number of the ring of every pixel; ``n_rings`` or more outside of all."""
        h, w = image.shape[:2]
        i, j = np.indices((h, w))
        # whole numbers, so that pixels that turn into each other are equally far
        squared = (2 * i - (h - 1)) ** 2 + (2 * j - (w - 1)) ** 2
        return np.floor(np.sqrt(squared) / min(h, w) * self.n_rings).astype(np.int64)

    @property
    def _n_features_out(self) -> int:
        return self.n_rings


@estimator
class RotationIntegrated(ImageTransformer):
    """Features of another transformer, averaged over turned versions of the image.

    With 2 or 4 rotations, half or quarter turns, whole images are turned and the features are the
    same for an image and its turned versions, exactly. With another number, what is turned is the
    largest disc about the middle, on a ground of its mean color, and the features are the same up
    to interpolation.

    Parameters
    ----------
    transformer : ImageTransformer
        Such as ``HOG()`` or ``FourierMagnitude()``; a copy is fitted.
    n_rotations : int >= 1, default=4
        Number of turns, evenly round the circle.
    max_side : int or None, default=None
        Larger images are reduced so that the longer side has this many pixels.

    Attributes
    ----------
    transformer_ : ImageTransformer
        The transformer, fitted to the images as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images import EdgeHistogram, RotationIntegrated
    >>> image = np.random.default_rng(0).integers(0, 256, (16, 24), np.uint8)
    >>> rows = RotationIntegrated(EdgeHistogram()).fit_transform([image, np.rot90(image)])
    >>> bool(np.allclose(rows[0], rows[1], atol=1e-6))
    True
    """

    transformer: Any = None
    n_rotations: int = 4
    _: KW_ONLY
    max_side: int | None = None

    def _check(self) -> None:
        super()._check()
        require_whole("n_rotations", self.n_rotations, 1, 360)

    def _learn(self, sources: Sequence[Any], y: Any) -> None:
        if not isinstance(self.transformer, ImageTransformer):
            raise TypeError(
                f"transformer must be one of images, such as HOG(), got {self.transformer!r}"
            )
        inner = clone(self.transformer).set_params(max_side=self.max_side, n_jobs=self.n_jobs)
        self.transformer_: ImageTransformer = inner.fit(sources)

    def _check_state(self) -> None:
        """Raise ``ValueError`` if a loaded transformer does not have the one that it turns."""
        require_attributes(self, transformer_=ImageTransformer)

    def transform_image(self, image: Pixels) -> Array:
        """Return the mean of the rows of all turned versions of one image."""
        rows = [self.transformer_.transform_image(turned) for turned in self._turned(image)]
        mean: Any = np.mean(rows, axis=0, dtype=np.float64)
        return mean.astype(np.float32)

    def to_pixels(self, image: Pixels, contributions: Array) -> Array:
        """Average the heat maps of the versions, turned back; only for 1, 2 or 4 rotations."""
        if self.n_rotations not in (1, 2, 4):
            raise NotImplementedError("only whole, half and quarter turns can be turned back")
        heat = np.zeros(image.shape[:2])
        for number, turned in enumerate(self._turned(image)):
            part = self.transformer_.to_pixels(turned, contributions)
            heat += np.rot90(part, -number * (4 // self.n_rotations))
        return heat / self.n_rotations

    def _turned(self, image: Pixels) -> list[Pixels]:
        if self.n_rotations in (1, 2, 4):
            quarters = range(0, 4, 4 // self.n_rotations)
            return [np.ascontiguousarray(np.rot90(image, q)) for q in quarters]
        square = _middle_square(image)
        outside = _outside_disc(square.shape[0])
        ground = square[~outside].mean(axis=0)
        angles = 360 / self.n_rotations * np.arange(self.n_rotations)
        versions = [
            ndimage.rotate(square, angle, reshape=False, order=1, mode="nearest")
            if angle
            else square
            for angle in angles
        ]
        mask = outside if image.ndim == 2 else outside[:, :, None]
        return [np.where(mask, np.rint(ground).astype(np.uint8), v) for v in versions]

    @property
    def _uses_color(self) -> bool:
        return bool(getattr(self, "transformer_", self.transformer)._uses_color)

    @property
    def _n_features_out(self) -> int:
        return self.transformer_._n_features_out


def _middle_square(image: Pixels) -> Pixels:
    side = min(image.shape[:2])
    top, left = ((length - side) // 2 for length in image.shape[:2])
    return image[top : top + side, left : left + side]


def _outside_disc(side: int) -> Array:
    i, j = np.indices((side, side))
    return (2 * i - (side - 1)) ** 2 + (2 * j - (side - 1)) ** 2 > side**2


def _to_pixels(bins: Array, weights: Array, contributions: Array) -> Array:
    """Distribute the contribution of every bin over the pixels in it, by weight.

    The share is even where all weights of a bin are 0; the contribution of a bin without pixels is
    spread evenly over the image.
    """
    n = len(contributions)
    inside = bins < n
    where, weight = bins[inside], weights[inside]
    totals, counts = np.bincount(where, weight, n), np.bincount(where, minlength=n)
    rate = np.where(totals > 0, contributions / np.where(totals > 0, totals, 1), 0)
    even = np.where((totals <= 0) & (counts > 0), contributions / np.maximum(counts, 1), 0)
    heat = np.full(bins.shape, contributions[counts == 0].sum() / bins.size)
    heat[inside] += weight * rate[where] + even[where]
    return heat
