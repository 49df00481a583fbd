"""Pixel words: visual words that need no learning, one at every pixel.

- :class:`Centrist`: the census transform (Wu & Rehg, *CENTRIST: a visual descriptor for scene
  categorization*, PAMI 2011). Bit ``b`` of the word of a pixel says whether it is at least as
  bright as its ``b``-th neighbor; 256 words.
- :class:`LBP`: local binary patterns (Ojala, Pietikäinen & Mäenpää, PAMI 2002), eight neighbors on
  a circle of radius 1; the 58 patterns with at most two changes along the circle are words of their
  own, the rest share one.
- :class:`ColorHistogram`: the cell of a color space that the color of a pixel lies in.

The histogram of the words of an image is its row.
"""

import numpy as np
from scipy.ndimage import sobel

from hilbin._arrays import Array
from hilbin._core import core
from hilbin._parameters import estimator, require_choice
from hilbin.images.read import Pixels, gray, in_color, pillow
from hilbin.images.words import WordGrid, WordSource

SPACES = ("lab", "rgb", "hsv")


def _without_border(ids: Array) -> list[WordGrid]:
    """Return the grid of the words of all pixels but those at the border."""
    rows, columns = ids.shape
    return [WordGrid(ids, np.arange(1, rows + 1), np.arange(1, columns + 1), 3)]


def _edges(image: Pixels) -> Pixels:
    """Return the length of Sobel's gradient, a quarter of it, to stay within 8 bits."""
    values = image.astype(np.float32)
    length = np.hypot(sobel(values, axis=0), sobel(values, axis=1))
    return np.minimum(length / 4, 255).astype(np.uint8)


def _inner(image: Pixels) -> Pixels:
    height, width = image.shape
    return np.empty((max(0, height - 2), max(0, width - 2)), np.uint8)


@estimator
class Centrist(WordSource):
    """Histogram of the census transform.

    Parameters
    ----------
    edges : bool, default=False
        Transform the strength of edges (Sobel's) instead of the gray values: outlines without
        textures, which suits people and things, where gray values suit scenes.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images import Centrist
    >>> flat = np.full((16, 16), 7, np.uint8)
    >>> row = Centrist().fit_transform([flat])[0]
    >>> row.shape, int(row.argmax())  # as bright as all its neighbors
    ((256,), 255)
    """

    n_words = 256
    edges: bool = False

    def words(self, image: Pixels) -> list[WordGrid]:
        """Return the word of every pixel but those at the border."""
        values = np.ascontiguousarray(gray(image))
        if self.edges:
            values = _edges(values)
        ids = _inner(values)
        if ids.size:
            core.census(values, ids)
        return _without_border(ids)


@estimator
class LBP(WordSource):
    """Histogram of local binary patterns.

    Parameters
    ----------
    uniform : bool, default=True
        Whether patterns that change more than twice along the circle share one word, which leaves
        59 words; 256 otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images import LBP
    >>> LBP().fit_transform([np.eye(16)]).shape
    (1, 59)
    """

    uniform: bool = True

    @property
    def n_words(self) -> int:
        """Number of patterns that are told apart."""
        return 59 if self.uniform else 256

    def words(self, image: Pixels) -> list[WordGrid]:
        """Return the pattern of every pixel but those at the border."""
        values = np.ascontiguousarray(gray(image))
        ids = _inner(values)
        if ids.size:
            core.lbp(values, ids, bool(self.uniform))
        return _without_border(ids)


@estimator
class ColorHistogram(WordSource):
    """Histogram of colors.

    Parameters
    ----------
    space : {"lab", "rgb", "hsv"}, default="lab"
        The color space whose three axes are cut into bins. Lab is CIE L*a*b*, where equal steps
        look equal.
    bins : int or three ints, default=(8, 8, 8)
        Number of bins of each axis; every axis of Lab is cut over its whole 8-bit range.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images import ColorHistogram
    >>> red = np.zeros((4, 4, 3), np.uint8)
    >>> red[:, :, 0] = 255
    >>> ColorHistogram("rgb", 2).fit_transform([red])
    array([[0., 0., 0., 0., 1., 0., 0., 0.]], dtype=float32)
    """

    _uses_color = True
    space: str = "lab"
    bins: int | tuple[int, int, int] = (8, 8, 8)

    def _check(self) -> None:
        super()._check()
        require_choice("space", self.space, SPACES)
        if any(not 1 <= b <= 256 for b in self._bins()):
            raise ValueError(f"bins must be three numbers from 1 to 256, got {self.bins!r}")

    def _bins(self) -> tuple[int, int, int]:
        bins = (self.bins,) * 3 if isinstance(self.bins, int) else self.bins
        if np.shape(bins) != (3,) or not all(isinstance(b, int | np.integer) for b in bins):
            raise ValueError(f"bins must be one number or three, got {self.bins!r}")
        return int(bins[0]), int(bins[1]), int(bins[2])

    @property
    def n_words(self) -> int:
        """Number of cells of the color space."""
        return int(np.prod(self._bins()))

    def words(self, image: Pixels) -> list[WordGrid]:
        """Return the cell of the color of every pixel."""
        values = _in_space(np.ascontiguousarray(in_color(image)), self.space)
        ids: Array = np.empty(values.shape[:2], np.int32)
        core.color_cells(values, _cell_tables(self._bins()), ids)
        return [WordGrid(ids, np.arange(ids.shape[0]), np.arange(ids.shape[1]), 1)]


def _cell_tables(bins: tuple[int, int, int]) -> Array:
    """Return what the value of each axis adds to the number of a color's cell."""
    steps = (bins[1] * bins[2], bins[2], 1)
    tables = [np.arange(256) * b // 256 * step for b, step in zip(bins, steps, strict=True)]
    return np.array(tables, np.int32)


def _in_space(image: Pixels, space: str) -> Pixels:
    if space == "hsv":
        return np.array(pillow().fromarray(image).convert("HSV"))
    return _lab(image) if space == "lab" else image


# sRGB to CIE XYZ under D65, each divided by the white point (IEC 61966-2-1)
_TO_XYZ = np.array(
    [
        [0.4124564 / 0.95047, 0.3575761 / 0.95047, 0.1804375 / 0.95047],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339 / 1.08883, 0.1191920 / 1.08883, 0.9503041 / 1.08883],
    ],
    np.float32,
)
_COMPAND = np.linspace(0, 1, 256)
_LINEAR = np.where(
    _COMPAND <= 0.04045, _COMPAND / 12.92, ((_COMPAND + 0.055) / 1.055) ** 2.4
).astype(np.float32)


def _lab(image: Pixels) -> Pixels:
    """Convert to CIE L*a*b* with L* over 0..255 and a*, b* shifted by 128."""
    values = np.empty(image.shape, np.uint8)
    core.lab(image, _LINEAR, _TO_XYZ, values)
    return values
