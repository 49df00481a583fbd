"""What all image transformers share: many images to rows, side by side, in bounded memory."""

import warnings
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from hilbin import parallel
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

Array = NDArray[Any]
Row = NDArray[np.float32]


class ImageTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of the transformers from images to rows.

    A subclass has the parameters ``max_side`` and ``n_jobs`` and says by :meth:`describe` what the
    row of one image is and by ``_n_features_out`` how long; learning, if any, is its :meth:`fit`.
    """

    # images are what others call X, not metadata to be routed
    __metadata_request__fit: ClassVar[dict[str, str]] = {"images": UNUSED}
    __metadata_request__transform: ClassVar[dict[str, str]] = {"images": UNUSED}

    max_side: int | None = None
    n_jobs: int | None = None
    sparse_output: bool = False

    # what a subclass says
    _uses_color: bool = False

    def describe(self, image: Pixels) -> Row:
        """The row of one image, as :func:`read_image` gives it."""
        raise NotImplementedError

    def to_pixels(self, image: Pixels, contributions: Array) -> NDArray[np.float64]:
        """Share contributions of the features out over the pixels.

        Parameters
        ----------
        image : uint8 array
            As :meth:`read` gives it.
        contributions : array of shape (n_features,)
            What every feature of this image's row adds to a score.

        Returns
        -------
        heat : array of shape (height, width)
            Sums to the sum of the contributions.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot say where its features come from")

    # what everyone uses
    def fit(self, images: Any, y: Any = None) -> Self:
        """Check the parameters; nothing is learnt.

        Parameters
        ----------
        images : sequence of paths or arrays
        y : ignored

        Returns
        -------
        self
        """
        as_sources(images)
        self._check()
        return self

    def _check(self) -> None:
        if self.max_side is not None and not self.max_side >= 1:
            raise ValueError(f"max_side must be at least 1 or None, got {self.max_side!r}")

    def read(self, source: Any) -> Pixels:
        """One image, in the size and the colors that this transformer takes."""
        return read_image(source, max_side=self.max_side, color=self._uses_color)

    def transform(self, images: Any) -> Any:
        """One row for every image.

        An image that cannot be read gets a row of zeros, and a warning names it;
        :meth:`describe_all` returns the unreadable ones instead.

        Parameters
        ----------
        images : sequence of paths or arrays

        Returns
        -------
        rows : float32 array or CSR of shape (n_images, n_features)
        """
        rows, unreadable = self.describe_all(images)
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

    def describe_all(
        self, images: Any, *, callback: Callable[[int], object] | None = None
    ) -> tuple[Any, dict[int, ImageError]]:
        """Rows of all images, and which images cannot be read.

        Parameters
        ----------
        images : sequence of paths or arrays
        callback : callable, optional
            Called with the number of images just done, from any thread.

        Returns
        -------
        rows : float32 array or CSR of shape (n_images, n_features)
            Zero for images that cannot be read.
        unreadable : dict from place to ImageError
        """
        check_is_fitted(self)
        sources = as_sources(images)
        unreadable: dict[int, ImageError] = {}
        dense = None if self.sparse_output else np.zeros(self._shape(len(sources)), np.float32)
        blocks: dict[int, Any] = {}

        def task(begin: int, end: int) -> None:
            here = self._shape(end - begin)
            rows = np.zeros(here, np.float32) if dense is None else dense[begin:end]
            for i in range(begin, end):
                try:
                    rows[i - begin] = self.describe(self.read(sources[i]))
                except ImageError as error:
                    unreadable[i] = ImageError(source_name(sources[i], i), error.reason)
            if dense is None:
                blocks[begin] = sp.csr_array(rows)
            if callback is not None:
                callback(end - begin)

        parallel.run(task, parallel.ranges(len(sources), IMAGES_PER_TASK), self.n_jobs)
        found = dict(sorted(unreadable.items()))
        if dense is not None:
            return dense, found
        parts = [blocks[begin] for begin in sorted(blocks)]
        return (sp.vstack(parts, "csr") if parts else sp.csr_array(self._shape(0))), found

    def _shape(self, n_images: int) -> tuple[int, int]:
        return n_images, self._n_features_out

    @property
    def _n_features_out(self) -> int:
        raise NotImplementedError

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.input_tags.string = True
        tags.requires_fit = False
        tags.no_validation = True
        tags.transformer_tags.preserves_dtype = []
        return tags
