"""Several descriptions of an image side by side, each image read once."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from hilbin.images._base import ImageTransformer, Row
from hilbin.images._grids import Array
from hilbin.images.read import Pixels, as_sources


class ImageFeatures(ImageTransformer):
    """Rows of several image transformers, side by side.

    The intersection kernel of the rows, or any other homogeneous kernel, is the weighted sum of the
    kernels of the parts.

    Parameters
    ----------
    parts : list of (str, ImageTransformer)
        Copies are fitted.
    weights : dict from name to float, optional
        What the rows of a part are multiplied by; 1 by default.
    sparse_output : bool, default=False
        Whether to return a CSR matrix.
    max_side : int, optional
        Larger images are reduced so that the longer side is this long; stands for all parts.
    n_jobs : int, optional
        Threads, as in joblib; stands for all parts.

    Attributes
    ----------
    parts_ : list of (str, ImageTransformer)
        Fitted.
    weights_ : list of float
        Of the parts.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images import Centrist, ColorHistogram, ImageFeatures
    >>> images = np.random.default_rng(0).integers(0, 256, (2, 16, 16, 3), np.uint8)
    >>> parts = [("texture", Centrist()), ("color", ColorHistogram())]
    >>> both = ImageFeatures(parts, weights={"color": 0.5})
    >>> both.fit_transform(images).shape
    (2, 768)
    """

    def __init__(
        self,
        parts: Any,
        weights: dict[str, float] | None = None,
        *,
        sparse_output: bool = False,
        max_side: int | None = 256,
        n_jobs: int | None = None,
    ):
        self.parts = parts
        self.weights = weights
        self.sparse_output = sparse_output
        self.max_side = max_side
        self.n_jobs = n_jobs

    def fit(self, images: Any, y: Any = None) -> Self:
        """Fit the parts, one after the other.

        Parameters
        ----------
        images : sequence of paths or arrays
        y : passed on to the parts

        Returns
        -------
        self
        """
        self._check()
        sources = as_sources(images)
        weights = dict(self.weights or {})
        names = [name for name, _ in self.parts]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"parts must have different names, and be at least one, got {names}")
        if unknown := sorted(set(weights) - set(names)):
            raise ValueError(f"weights of parts that are not there: {', '.join(unknown)}")
        if bad := [name for name, w in weights.items() if not w >= 0]:
            raise ValueError(f"weights must be >= 0; not so for {', '.join(bad)}")
        self.weights_ = [float(weights.get(name, 1.0)) for name in names]
        self.parts_ = [(name, self._fitted(part, sources, y)) for name, part in self.parts]
        return self

    def _fitted(self, part: Any, sources: Any, y: Any) -> ImageTransformer:
        copy: ImageTransformer = clone(part)
        if not isinstance(copy, ImageTransformer):
            raise TypeError(f"parts must be image transformers, got {part!r}")
        return copy.set_params(max_side=self.max_side, n_jobs=self.n_jobs).fit(sources, y)

    @property
    def _uses_color(self) -> bool:  # type: ignore[override]
        return any(part._uses_color for _, part in getattr(self, "parts_", self.parts))

    def describe(self, image: Pixels) -> Row:
        """The weighted rows of all parts."""
        rows = [
            np.float32(weight) * part.describe(image)
            for weight, (_, part) in zip(self.weights_, self.parts_, strict=True)
        ]
        return np.concatenate(rows)

    def to_pixels(self, image: Pixels, contributions: Array) -> NDArray[np.float64]:
        """Share the contributions of all parts out over the pixels."""
        ends = np.cumsum([part._n_features_out for _, part in self.parts_])
        shares = np.split(np.asarray(contributions), ends[:-1])
        heat = np.zeros(image.shape[:2])
        for (_, part), share in zip(self.parts_, shares, strict=True):
            heat += part.to_pixels(image, share)
        return heat

    @property
    def _n_features_out(self) -> int:
        return sum(part._n_features_out for _, part in self.parts_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "parts_")
