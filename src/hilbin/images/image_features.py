"""Rows of several image transformers side by side; every image is read once."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.metadata_routing import UNUSED

from hilbin._arrays import Array
from hilbin._parameters import estimator
from hilbin._state import require, require_attributes
from hilbin.images._base import ImageTransformer
from hilbin.images._once import sharing
from hilbin.images.kept import keep_pixels
from hilbin.images.read import Pixels, as_sources


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
    column_groups_ : dict from str to slice
        Columns of every part. A part that has several groups itself, such as the outputs of
        :class:`OnnxFeatures`, has one entry for each: ``"part__output"``.

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

    __metadata_request__fit: ClassVar[dict[str, str]] = {"images": UNUSED, "callback": UNUSED}

    def fit(
        self, images: Any, y: Any = None, *, callback: Callable[[int], None] | None = None
    ) -> Self:
        """Fit all parts.

        Parameters
        ----------
        images : sequence of paths or arrays
        y : array-like, optional
            Passed on to the parts.
        callback : callable, optional
            Called with the number of parts that are fitted, after each.

        Returns
        -------
        self
        """
        self._check()
        sources = keep_pixels(as_sources(images), self.max_side, self._uses_color)
        fitted: list[tuple[str, ImageTransformer]] = []
        for name, part in self.parts:
            fitted.append((name, self._fitted(part, sources, y)))
            if callback is not None:
                callback(len(fitted))
        weights = self.weights or {}
        self.parts_ = fitted
        self.weights_ = [float(weights.get(name, 1.0)) for name, _ in fitted]
        return self

    def _check(self) -> None:
        super()._check()
        names, weights = [name for name, _ in self.parts], self.weights or {}
        if not names or len(set(names)) < len(names):
            raise ValueError(f"parts must have different names, at least one, got {names}")
        if unknown := sorted(set(weights) - set(names)):
            raise ValueError(f"weights names parts that do not exist: {', '.join(unknown)}")
        if bad := [name for name, w in weights.items() if not w >= 0]:
            raise ValueError(f"weights must be >= 0; not so for {', '.join(bad)}")

    def _fitted(self, part: Any, sources: Any, y: Any) -> ImageTransformer:
        copy: ImageTransformer = clone(part)
        if not isinstance(copy, ImageTransformer):
            raise TypeError(f"parts must be image transformers, got {part!r}")
        return copy.set_params(max_side=self.max_side, n_jobs=self.n_jobs).fit(sources, y)

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the parts of loaded features do not fit together."""
        if not require_attributes(self, parts_="list", weights_="list") and "parts_" not in vars(
            self
        ):
            return
        pairs = all(isinstance(part, tuple) and len(part) == 2 for part in self.parts_)
        known = pairs and all(isinstance(part, ImageTransformer) for _, part in self.parts_)
        require(known and len(self.parts_) > 0, "parts_ are not image transformers")
        names = {name for name, _ in self.parts_ if isinstance(name, str)}
        require(len(names) == len(self.parts_), "parts_ have no names of their own")
        numbers = all(isinstance(w, float) for w in self.weights_)
        require(
            numbers and len(self.weights_) == len(self.parts_), "weights_ are not those of parts_"
        )

    @property
    def _uses_color(self) -> bool:
        return any(part._uses_color for _, part in getattr(self, "parts_", self.parts))

    def transform_images(self, images: Sequence[Pixels]) -> Array:
        """Return the weighted rows of all parts."""
        rows = np.empty((len(images), self._n_features_out), np.float32)
        weights = map(np.float32, self.weights_)
        parts = [(*where, w) for where, w in zip(self._columns(), weights, strict=True)]
        for part, columns, weight in parts:
            if part._images_per_batch > 1:
                rows[:, columns] = weight * part.transform_images(images)
        for i, image in enumerate(images):
            with sharing(image):
                for part, columns, weight in parts:
                    if part._images_per_batch == 1:
                        rows[i, columns] = weight * part.transform_images([image])[0]
        return rows

    def transform_image(self, image: Pixels) -> Array:
        """Return the weighted rows of all parts for one image."""
        row: Array = self.transform_images([image])[0]
        return row

    def to_pixels(self, image: Pixels, contributions: Array) -> Array:
        """Distribute the contributions of all parts over the pixels."""
        amounts = np.asarray(contributions)
        heat = np.zeros(image.shape[:2])
        with sharing(image):
            for part, columns in self._columns():
                heat += part.to_pixels(image, amounts[columns])
        return heat

    def _columns(self) -> Iterator[tuple[ImageTransformer, slice]]:
        """Yield every part and its columns."""
        start = 0
        for _, part in self.parts_:
            yield part, slice(start, start + part._n_features_out)
            start += part._n_features_out

    @property
    def column_groups_(self) -> dict[str, slice]:
        """Columns of every part."""
        groups = {}
        for (name, _), (part, columns) in zip(self.parts_, self._columns(), strict=True):
            inner = getattr(part, "column_groups_", {})
            if len(inner) <= 1:
                groups[name] = columns
            else:
                for key, inside in inner.items():
                    start, stop = columns.start + inside.start, columns.start + inside.stop
                    groups[f"{name}__{key}"] = slice(start, stop)
        return groups

    @property
    def _images_per_batch(self) -> int:
        return max(part._images_per_batch for _, part in self.parts_)

    @property
    def _n_features_out(self) -> int:
        return sum(part._n_features_out for _, part in self.parts_)
