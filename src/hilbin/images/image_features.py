"""Rows of several image transformers side by side; every image is read once."""

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from sklearn.base import clone

from hilbin._arrays import Array
from hilbin._parameters import estimator
from hilbin.images._base import ImageTransformer
from hilbin.images.read import Pixels


@estimator
class ImageFeatures(ImageTransformer):
    """Rows of several image transformers, side by side.

    The intersection kernel of the rows, or any other homogeneous kernel, is the weighted sum of the
    kernels of the parts.

    Parameters
    ----------
    parts : list of (str, ImageTransformer)
        Names and transformers; copies are fitted. ``max_side`` and ``n_jobs`` hold for all parts.
    weights : dict from name to float, optional
        Factors that the rows of the parts are multiplied by; 1 by default.
    sparse_output : bool, default=False
        Whether to return a CSR matrix.

    Attributes
    ----------
    parts_ : list of (str, ImageTransformer)
        Names and fitted transformers.
    weights_ : list of float
        Factors of the parts.

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

    parts: Any
    weights: dict[str, float] | None = None
    _: KW_ONLY
    sparse_output: bool = False

    def _learn(self, sources: Sequence[Any], y: Any) -> None:
        weights = dict(self.weights or {})
        names = [name for name, _ in self.parts]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"parts must have different names, at least one, got {names}")
        if unknown := sorted(set(weights) - set(names)):
            raise ValueError(f"weights names parts that do not exist: {', '.join(unknown)}")
        if bad := [name for name, w in weights.items() if not w >= 0]:
            raise ValueError(f"weights must be >= 0; not so for {', '.join(bad)}")
        self.parts_ = [(name, self._fitted(part, sources, y)) for name, part in self.parts]
        self.weights_ = [float(weights.get(name, 1.0)) for name in names]

    def _fitted(self, part: Any, sources: Any, y: Any) -> ImageTransformer:
        copy: ImageTransformer = clone(part)
        if not isinstance(copy, ImageTransformer):
            raise TypeError(f"parts must be image transformers, got {part!r}")
        return copy.set_params(max_side=self.max_side, n_jobs=self.n_jobs).fit(sources, y)

    @property
    def _uses_color(self) -> bool:
        return any(part._uses_color for _, part in getattr(self, "parts_", self.parts))

    def transform_image(self, image: Pixels) -> Array:
        """Return the weighted rows of all parts."""
        rows = [
            np.float32(weight) * part.transform_image(image)
            for weight, (_, part) in zip(self.weights_, self.parts_, strict=True)
        ]
        return np.concatenate(rows)

    def to_pixels(self, image: Pixels, contributions: Array) -> Array:
        """Distribute the contributions of all parts over the pixels."""
        ends = np.cumsum([part._n_features_out for _, part in self.parts_])
        shares = np.split(np.asarray(contributions), ends[:-1])
        heat = np.zeros(image.shape[:2])
        for (_, part), share in zip(self.parts_, shares, strict=True):
            heat += part.to_pixels(image, share)
        return heat

    @property
    def _n_features_out(self) -> int:
        return sum(part._n_features_out for _, part in self.parts_)
