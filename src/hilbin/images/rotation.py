r"""Features that do not see how an image is turned: averages over its turned versions.

Lampert, *Kernel Methods in Computer Vision*, section 3.2.4.1. The average of an image over all
turns about its middle, :math:`\int R_\theta x\, d\theta`, is the same along every circle; what is
left is its radial profile. The average of other features over a finite number of turns keeps more.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from sklearn.base import clone

from hilbin.images._base import Array, ImageTransformer, Row
from hilbin.images.read import Pixels, as_sources, gray


class RadialProfile(ImageTransformer):
    """Mean gray value along circles about the middle of the image, white being 1.

    Parameters
    ----------
    n_rings : int >= 1, default=16
        Number of rings of equal width, out to the nearer border.
    max_side : int, optional
        Larger images are reduced so that the longer side is this long.
    n_jobs : int, optional
        Threads, as in joblib.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images import RadialProfile
    >>> image = np.full((9, 9), 255, np.uint8)
    >>> image[4, 4] = 0
    >>> RadialProfile(n_rings=3).fit_transform([image]).round(2)
    array([[0.89, 1.  , 1.  ]], dtype=float32)
    """

    def __init__(
        self, n_rings: int = 16, *, max_side: int | None = None, n_jobs: int | None = None
    ):
        self.n_rings = n_rings
        self.max_side = max_side
        self.n_jobs = n_jobs

    def _check(self) -> None:
        super()._check()
        _require_count("n_rings", self.n_rings)

    def describe(self, image: Pixels) -> Row:
        """The mean of every ring of one image; 0 for a ring narrower than its pixels."""
        rings = self._rings(image)
        inside = rings < self.n_rings
        counts = np.bincount(rings[inside], minlength=self.n_rings)
        sums = np.bincount(rings[inside], gray(image)[inside] / 255, minlength=self.n_rings)
        return (sums / np.maximum(counts, 1)).astype(np.float32)

    def to_pixels(self, image: Pixels, contributions: Array) -> NDArray[np.float64]:
        """Share the contribution of a ring out over its pixels, by brightness."""
        rings = self._rings(image)
        return share_out(rings, gray(image).astype(np.float64), np.asarray(contributions))

    def _rings(self, image: Pixels) -> Array:
        """Number of the ring of every pixel; ``n_rings`` or more outside of all."""
        h, w = image.shape[:2]
        i, j = np.indices((h, w))
        # whole numbers, so that pixels that turn into each other are equally far
        squared = (2 * i - (h - 1)) ** 2 + (2 * j - (w - 1)) ** 2
        return np.floor(np.sqrt(squared) / min(h, w) * self.n_rings).astype(np.int64)

    @property
    def _n_features_out(self) -> int:
        return self.n_rings


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
    max_side : int, optional
        Larger images are reduced so that the longer side is this long.
    n_jobs : int, optional
        Threads, as in joblib.

    Attributes
    ----------
    transformer_ : ImageTransformer
        Fitted, to the images as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images import EdgeHistogram, RotationIntegrated
    >>> image = np.random.default_rng(0).integers(0, 256, (16, 24), np.uint8)
    >>> rows = RotationIntegrated(EdgeHistogram()).fit_transform([image, np.rot90(image)])
    >>> bool(np.allclose(rows[0], rows[1], atol=1e-6))
    True
    """

    def __init__(
        self,
        transformer: Any = None,
        n_rotations: int = 4,
        *,
        max_side: int | None = None,
        n_jobs: int | None = None,
    ):
        self.transformer = transformer
        self.n_rotations = n_rotations
        self.max_side = max_side
        self.n_jobs = n_jobs

    def fit(self, images: Any, y: Any = None) -> Self:
        """Fit the transformer.

        Parameters
        ----------
        images : sequence of paths or arrays
        y : ignored

        Returns
        -------
        self
        """
        self._check()
        _require_count("n_rotations", self.n_rotations)
        if not isinstance(self.transformer, ImageTransformer):
            raise TypeError(
                f"transformer must be one of images, such as HOG(), got {self.transformer!r}"
            )
        inner = clone(self.transformer).set_params(max_side=self.max_side, n_jobs=self.n_jobs)
        self.transformer_ = inner.fit(as_sources(images))
        return self

    def describe(self, image: Pixels) -> Row:
        """The mean of the rows of all turned versions of one image."""
        rows = [self.transformer_.describe(turned) for turned in self._turned(image)]
        mean: Any = np.mean(rows, axis=0, dtype=np.float64)
        return mean.astype(np.float32)

    def to_pixels(self, image: Pixels, contributions: Array) -> NDArray[np.float64]:
        """The mean of what the versions say, turned back; only for 1, 2 or 4 rotations."""
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
    def _uses_color(self) -> bool:  # type: ignore[override]
        return getattr(self, "transformer_", self.transformer)._uses_color

    @property
    def _n_features_out(self) -> int:
        return self.transformer_._n_features_out

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "transformer_")


def _middle_square(image: Pixels) -> Pixels:
    side = min(image.shape[:2])
    top, left = ((length - side) // 2 for length in image.shape[:2])
    return image[top : top + side, left : left + side]


def _outside_disc(side: int) -> NDArray[np.bool_]:
    i, j = np.indices((side, side))
    return (2 * i - (side - 1)) ** 2 + (2 * j - (side - 1)) ** 2 > side**2


def share_out(bins: Array, weights: Array, contributions: Array) -> NDArray[np.float64]:
    """What every bin contributes, over the pixels in it, by weight.

    Evenly where all weights of a bin are 0, and evenly over the image where a bin has no pixels.
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


def _require_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{name} must be a whole number >= 1, got {value!r}")
