"""Base of the image transformers: many images to rows, on several threads, in bounded memory."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from hilbin import parallel
from hilbin._arrays import Array
from hilbin._parameters import estimator
from hilbin.images.kept import KeptImage
from hilbin.images.read import (
    ImageError,
    Pixels,
    UnreadableImageWarning,
    as_sources,
    read_image,
    source_name,
)

IMAGES_PER_TASK = 8
NAMES_SHOWN = 5
MOST_FEATURES = 1 << 26


class FeatureError(ValueError):
    """Features that come out wrong for one image, such as NaN.

    Parameters
    ----------
    place : int
        Which of the images it is.
    reason : str
        What is wrong.
    name : str, optional
        Name of the image.
    """

    def __init__(self, place: int, reason: str, name: str | None = None):
        super().__init__(place, reason, name)
        self.place, self.reason, self.name = place, reason, name

    def __str__(self) -> str:
        return self.reason if self.name is None else f"{self.name}: {self.reason}"

    def named(self, name: str) -> "FeatureError":
        """Return the error with the name of the image."""
        return FeatureError(self.place, self.reason, name)


@estimator
class ImageTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of the transformers from images to rows.

    A subclass computes the row of one image in :meth:`transform_image` and gives its length as
    ``_n_features_out``. One that learns from images does so in :meth:`_learn` and keeps what it has
    learned in attributes that end with an underscore.

    Parameters
    ----------
    max_side : int or None, default=256
        Larger images are reduced so that the longer side has this many pixels.
    n_jobs : int, optional
        Number of threads, as in joblib.
    """

    # images are what others call X, not metadata to be routed
    __metadata_request__fit: ClassVar[dict[str, str]] = {"images": UNUSED}
    __metadata_request__transform: ClassVar[dict[str, str]] = {"images": UNUSED}
    sparse_output = False  # a parameter of some subclasses

    _: KW_ONLY
    max_side: int | None = 256
    n_jobs: int | None = None

    def transform_image(self, image: Pixels) -> Array:
        """Return the row of one image.

        Parameters
        ----------
        image : uint8 array
            The image as :meth:`read` returns it.

        Returns
        -------
        row : float32 array of shape (n_features,)
        """
        raise NotImplementedError

    def transform_images(self, images: Sequence[Pixels]) -> Array:
        """Return the rows of several images.

        Parameters
        ----------
        images : sequence of uint8 arrays
            Images as :meth:`read` returns them.

        Returns
        -------
        rows : float32 array of shape (n_images, n_features)
        """
        return np.stack([self.transform_image(image) for image in images])

    def to_pixels(self, image: Pixels, contributions: Array) -> Array:
        """Distribute the contributions of the features over the pixels they come from.

        Parameters
        ----------
        image : uint8 array
            The image as :meth:`read` returns it.
        contributions : array of shape (n_features,)
            Contribution of every feature of this image's row to a score.

        Returns
        -------
        heat : array of shape (height, width)
            It sums to the sum of the contributions.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot say where its features come from")

    def _learn(self, sources: Sequence[Any], y: Any) -> None:
        """Learn from images; most transformers have nothing to learn."""

    def _check(self) -> None:
        """Raise ``ValueError`` for a parameter that is not valid."""
        if self.max_side is not None and not self.max_side >= 1:
            raise ValueError(f"max_side must be at least 1 or None, got {self.max_side!r}")

    def _check_state(self) -> None:
        """Raise ``ValueError`` for parameters of a loaded transformer that are not valid."""
        self._check()

    @property
    def _uses_color(self) -> bool:
        """Whether images are read in color."""
        return False

    @property
    def _images_per_batch(self) -> int:
        """Number of images that :meth:`transform_images` takes best."""
        return 1

    @property
    def _n_features_out(self) -> int:
        raise NotImplementedError

    def fit(self, images: Any, y: Any = None) -> Self:
        """Check the parameters and learn what there is to learn.

        Parameters
        ----------
        images : sequence of paths or arrays
        y : ignored
            Only :class:`ImageFeatures` passes it on, to its parts.

        Returns
        -------
        self
        """
        sources = as_sources(images)
        self._check()
        self._learn(sources, y)
        return self

    def read(self, source: Any) -> Pixels:
        """Read one image in the size and the colors that this transformer takes."""
        if isinstance(source, KeptImage):
            return source.read(self.max_side, self._uses_color)
        return read_image(source, max_side=self.max_side, color=self._uses_color)

    def transform(self, images: Any) -> Any:
        """Return one row for every image.

        An image that cannot be read gets a row of zeros, and a warning names it;
        :meth:`transform_with_errors` returns the errors instead.

        Parameters
        ----------
        images : sequence of paths or arrays

        Returns
        -------
        rows : float32 array or CSR of shape (n_images, n_features)
        """
        rows, unreadable = self.transform_with_errors(images)
        if unreadable:
            listed = "; ".join(str(e) for e in list(unreadable.values())[:NAMES_SHOWN])
            more = len(unreadable) - NAMES_SHOWN
            warnings.warn(
                f"{len(unreadable)} of {rows.shape[0]} images cannot be read, their rows are zero: "
                f"{listed}{f'; and {more} more' if more > 0 else ''}",
                UnreadableImageWarning,
                stacklevel=2,
            )
        return rows

    def transform_with_errors(
        self, images: Any, *, callback: Callable[[int], object] | None = None
    ) -> tuple[Any, dict[int, ImageError]]:
        """Return the rows of all images, and the errors of those that cannot be read.

        Parameters
        ----------
        images : sequence of paths or arrays
        callback : callable, optional
            Called with the number of images just done, from any thread.

        Returns
        -------
        rows : float32 array or CSR of shape (n_images, n_features)
            Rows of images that cannot be read are zero.
        unreadable : dict from place to ImageError
        """
        check_is_fitted(self)
        sources = as_sources(images)
        width = self._n_features_out
        if not 0 <= width <= MOST_FEATURES:
            raise ValueError(f"an image has {width} features, and may have {MOST_FEATURES}")
        unreadable: dict[int, ImageError] = {}
        dense = None if self.sparse_output else np.zeros((len(sources), width), np.float32)
        sparse: dict[int, Any] = {}

        def task(begin: int, end: int) -> None:
            rows = np.zeros((end - begin, width), np.float32) if dense is None else dense[begin:end]
            for first, last in parallel.ranges(end - begin, batch):
                chunk = range(begin + first, begin + last)
                images = self._read_chunk(sources, chunk, unreadable)
                for i, row in zip(images, self._rows_of(sources, images), strict=True):
                    rows[i - begin] = row
            if dense is None:
                sparse[begin] = sp.csr_array(rows)
            if callback is not None:
                callback(end - begin)

        batch = self._images_per_batch
        size = batch * -(-IMAGES_PER_TASK // batch)  # whole batches
        with parallel.blas_threads(1):  # rows depend on no number of threads
            parallel.run(task, parallel.ranges(len(sources), size), self.n_jobs)
        found = dict(sorted(unreadable.items()))
        if dense is not None:
            return dense, found
        parts = [sparse[begin] for begin in sorted(sparse)]
        return (sp.vstack(parts, "csr") if parts else sp.csr_array((0, width))), found

    def _read_chunk(
        self, sources: Sequence[Any], chunk: range, unreadable: dict[int, ImageError]
    ) -> dict[int, Pixels]:
        """Read some of the images; errors go into ``unreadable``."""
        images = {}
        for i in chunk:
            try:
                images[i] = self.read(sources[i])
            except ImageError as error:
                unreadable[i] = ImageError(source_name(sources[i], i), error.reason)
        return images

    def _rows_of(self, sources: Sequence[Any], images: dict[int, Pixels]) -> Any:
        """Return the rows of some of the images; an error names the image."""
        try:
            return self.transform_images([*images.values()]) if images else []
        except FeatureError as error:
            i = [*images][error.place]
            raise error.named(source_name(sources[i], i)) from None

    def __sklearn_is_fitted__(self) -> bool:
        learns = type(self)._learn is not ImageTransformer._learn
        return not learns or any(name.endswith("_") for name in vars(self))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.input_tags.string = True
        tags.requires_fit = False
        tags.no_validation = True
        tags.transformer_tags.preserves_dtype = []
        return tags
