"""Why a model gives an image its scores: heat maps over its pixels.

The contributions of the features are shared out over the pixels they come from: every occurrence
of a word takes an equal part of what the word adds. Pixel words make a heat map of specks, so it is
smoothed: what a pixel gives away its neighbors get, and the sum stays. Where scores are no sums,
the heat map says what covering a part would cost instead; see :mod:`hilbin.cli._occlusion`.
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from hilbin.cli._contributions import additive
from hilbin.cli._layout import whole_image_words
from hilbin.cli._models import Model
from hilbin.cli._occlusion import NOTE, losses

EXACT_NOTE = (
    "Each occurrence of a visual word takes an equal part of what the word adds; what its absence "
    "adds is spread over the cell it is absent from. The maps are smoothed, which keeps the sums."
)
EXACT_NOTE_OTHERWISE = (
    "What a cell or an output adds is spread evenly over the pixels it describes."
)
SMOOTHING = 1 / 40  # of the longer side

Array = NDArray[Any]


class Explainer:
    """Explains the scores of a model.

    Parameters
    ----------
    model : Model
    """

    def __init__(self, model: Model):
        self.model = model
        self.parts = additive(model.classifier)

    @property
    def exact(self) -> bool:
        """Whether the parts of an explanation sum to the score."""
        return self.parts is not None

    @property
    def intercept(self) -> Array | None:
        """What the scores have beside that sum, shape (n_classes,)."""
        return None if self.parts is None else self.parts.intercept

    @property
    def note(self) -> str:
        """How the maps are made."""
        if not self.exact:
            return NOTE
        model = self.model
        of_words = model.of_images and whole_image_words(model.features).any()
        return EXACT_NOTE if of_words else EXACT_NOTE_OTHERWISE

    def of(self, image: Array) -> "ImageExplanation":
        """The explanation of an image, as the features of the model read it."""
        return ImageExplanation(self, image)


class ImageExplanation:
    """Explains the scores of one image.

    Parameters
    ----------
    explainer : Explainer
    image : uint8 array
    """

    def __init__(self, explainer: Explainer, image: Array):
        self._explainer = explainer
        self._image = image

    @cached_property
    def row(self) -> Array:
        """What the features say about the image, shape (1, d)."""
        return self._explainer.model.features.transform_image(self._image)[None]

    @cached_property
    def contributions(self) -> Array:
        """What every feature adds to the scores, shape (d, n_classes)."""
        assert self._explainer.parts is not None
        return self._explainer.parts.contributions(self.row)

    @cached_property
    def _losses(self) -> Array:
        model = self._explainer.model
        return losses(model.features, model.classifier, self._image)

    def heat(self, direction: Array) -> Array:
        """What the parts of the image add to a combination of the scores.

        Parameters
        ----------
        direction : array of shape (n_classes,)
            Weights of the scores: 1 for a class; 1 and -1 for the lead of a class over another.

        Returns
        -------
        heat : array of shape (h, w)
            Of the size of the image if it is exact, smaller otherwise.
        """
        if not self._explainer.exact:
            return self._losses @ direction
        features = self._explainer.model.features
        heat = features.to_pixels(self._image, self.contributions @ direction)
        sigma = SMOOTHING * max(heat.shape)
        return np.asarray(gaussian_filter(heat, sigma, mode="reflect"))  # which keeps the sum
