"""Heat maps: what the parts of an image add to a score.

Where scores are sums over the features, the contributions of the features are shared out over the
pixels they come from: every occurrence of a visual word takes an equal part of what the word adds.
Such heat maps sum to the score minus the intercept. They are smoothed, since words of single pixels
make specks: what a pixel gives away its neighbors get, and the sum stays.

Where scores are not sums, parts of the image are covered one after the other (M. D. Zeiler and
R. Fergus, *Visualizing and Understanding Convolutional Networks*, 2014): the image is cut into
cells, every cell in turn is painted with the mean color of the image, and what the scores lose by
that is the cell's. The losses do not sum to the score.
"""

from functools import cached_property
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter

from hilbin import parallel
from hilbin._arrays import Array
from hilbin.images import ImageFeatures
from hilbin.images._base import ImageTransformer
from hilbin.inspection.additive import additive
from hilbin.inspection.scores import class_scores
from hilbin.inspection.words import whole_image_words

CELLS = 8  # along a side
SMOOTHING = 1 / 40  # of the longer side
WORDS_NOTE = (
    "Each occurrence of a visual word gets an equal part of what the word adds; what its absence "
    "adds is spread over the cell it is absent from. Maps are smoothed without changing their sums."
)
CELLS_NOTE = "What a cell or an output adds is spread evenly over the pixels it describes."
OCCLUSION_NOTE = (
    "The scores of this model are not sums over the image. Shown is how much a score drops when "
    f"one of {CELLS} by {CELLS} cells is covered."
)


class VersusError(ValueError):
    """A class is compared with itself."""


class ImageExplainer:
    """Makes the heat maps of a model of images.

    Parameters
    ----------
    features : fitted image transformer
        From images to rows.
    model : fitted classifier
        Of these rows.

    Attributes
    ----------
    exact : bool
        Whether heat maps sum to the scores minus the intercept.
    intercept : ndarray of shape (n_classes,) or None
        What the scores have beside the sum of the heat map, if it is exact.
    note : str
        A sentence on how the heat maps are made.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.estimators import IntersectionSVC
    >>> from hilbin.images import ColorHistogram
    >>> from hilbin.inspection import ImageExplainer
    >>> images = np.random.default_rng(0).integers(0, 256, (6, 16, 16, 3), np.uint8)
    >>> features = ColorHistogram(bins=2).fit(images)
    >>> model = IntersectionSVC().fit(features.transform(images), [0, 1, 2] * 2)
    >>> explainer = ImageExplainer(features, model)
    >>> heat = explainer.of(images[0]).heat(np.array([1.0, 0, 0]))
    >>> explainer.exact, heat.shape
    (True, (16, 16))
    >>> score = model.decision_function(features.transform(images[:1]))[0, 0]
    >>> bool(np.isclose(heat.sum() + explainer.intercept[0], score))
    True
    """

    def __init__(self, features: Any, model: Any):
        self.features, self.model = features, model
        self.parts = additive(model)
        self.exact = self.parts is not None and _finds_pixels(features)
        self.intercept = self.parts.intercept if self.parts is not None and self.exact else None

    @property
    def note(self) -> str:
        """How the heat maps are made."""
        if not self.exact:
            return OCCLUSION_NOTE
        return WORDS_NOTE if whole_image_words(self.features).any() else CELLS_NOTE

    def scores(self, rows: Any) -> Array:
        """Return the scores of rows, in double precision where they are sums."""
        return class_scores(self.model, rows) if self.parts is None else self.parts.scores(rows)

    def of(self, image: Array) -> "ImageParts":
        """Return the parts of an image, as ``read`` of the features returns it."""
        return ImageParts(self, image)


def _finds_pixels(features: Any) -> bool:
    """Tell whether a transformer can share contributions out over pixels."""
    if isinstance(features, ImageFeatures):
        return all(_finds_pixels(part) for _, part in features.parts_)
    if isinstance(features, ImageTransformer):
        return type(features).to_pixels is not ImageTransformer.to_pixels
    return hasattr(features, "to_pixels")


class ImageParts:
    """What the parts of one image add to the scores.

    It is made by :meth:`ImageExplainer.of`.
    """

    def __init__(self, explainer: ImageExplainer, image: Array):
        self._explainer, self._image = explainer, image

    @cached_property
    def row(self) -> Array:
        """The features of the image, of shape (1, n_features)."""
        return np.asarray(self._explainer.features.transform_image(self._image))[None]

    @cached_property
    def contributions(self) -> Array:
        """What every feature adds to the scores, of shape (n_features, n_classes)."""
        assert self._explainer.parts is not None
        return np.asarray(self._explainer.parts.contributions(self.row)[0])

    @cached_property
    def _losses(self) -> Array:
        return occlusion(self._explainer.features, self._explainer.model, self._image)

    def heat(self, direction: Array) -> Array:
        """Return what the parts of the image add to a combination of the scores.

        Parameters
        ----------
        direction : array of shape (n_classes,)
            Weights of the scores: 1 for a class; 1 and -1 for the lead of a class over another.

        Returns
        -------
        heat : array of shape (h, w)
            As large as the image if it is exact, otherwise a value per covered cell.
        """
        if not self._explainer.exact:
            return np.asarray(self._losses @ direction)
        features = self._explainer.features
        heat = features.to_pixels(self._image, self.contributions @ direction)
        sigma = SMOOTHING * max(heat.shape)
        return np.asarray(gaussian_filter(heat, sigma, mode="reflect"))  # which keeps the sum


def heat_map(
    features: Any, model: Any, image: Any, *, class_: Any = None, versus: Any = None
) -> Array:
    """Compute what the parts of an image add to the score of a class.

    Parameters
    ----------
    features : fitted image transformer
        From images to rows.
    model : fitted classifier
        Of these rows.
    image : path or uint8 array
        The image.
    class_ : label, optional
        Class whose score is explained; the predicted one by default.
    versus : label, optional
        Class whose score is subtracted: why ``class_`` and not this one?

    Returns
    -------
    heat : ndarray of shape (h, w)
        For additive models as large as the image that the features see, and it sums to the score
        minus the intercept; for others a value per cell, by :func:`occlusion`.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.estimators import IntersectionSVC
    >>> from hilbin.images import ColorHistogram
    >>> from hilbin.inspection import heat_map
    >>> images = np.zeros((4, 8, 8, 3), np.uint8)
    >>> images[:2, :, :4, 0] = 255  # the left half is red
    >>> features = ColorHistogram(bins=2).fit(images)
    >>> model = IntersectionSVC().fit(features.transform(images), ["red", "red", "black", "black"])
    >>> heat = heat_map(features, model, images[0], class_="red")
    >>> bool(heat[:, :3].min() > heat[:, 5:].max())
    True
    """
    explainer = ImageExplainer(features, model)
    parts = explainer.of(features.read(image))
    return parts.heat(direction_of(model, explainer.scores(parts.row)[0], class_, versus)[0])


def direction_of(model: Any, scores: Array, class_: Any, versus: Any) -> tuple[Array, int]:
    """Return the weights of the scores that are explained, and the number of the class."""
    known = np.asarray(model.classes_).tolist()
    for name, label in (("class_", class_), ("versus", versus)):
        if label is not None and label not in known:
            listed = ", ".join(map(str, known))
            raise ValueError(f"{name}: the model does not know {label!r}; it knows {listed}")
    first = int(scores.argmax()) if class_ is None else known.index(class_)
    direction = np.zeros(len(known))
    direction[first] = 1
    if versus is not None:
        if known.index(versus) == first:
            raise ValueError(f"versus: {versus!r} is the class that is explained; name another one")
        direction[known.index(versus)] = -1
    return direction, first


def occlusion(features: Any, model: Any, image: Array, *, n_cells: int = CELLS) -> Array:
    """Compute how much the scores drop when each part of the image in turn is covered.

    Parameters
    ----------
    features : fitted image transformer
        From images to rows.
    model : fitted classifier
        Of these rows.
    image : uint8 array
        The image as ``features.read`` returns it.
    n_cells : int, default=8
        Number of cells along a side.

    Returns
    -------
    losses : ndarray of shape (n_cells, n_cells, n_classes)
        Fewer cells if the image has fewer pixels.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from hilbin.images import ColorHistogram
    >>> from hilbin.inspection import occlusion
    >>> images = np.random.default_rng(0).integers(0, 256, (6, 16, 16, 3), np.uint8)
    >>> features = ColorHistogram(bins=2).fit(images)
    >>> model = RandomForestClassifier(10, random_state=0)
    >>> model = model.fit(features.transform(images), [0, 1, 2] * 2)
    >>> occlusion(features, model, images[0], n_cells=4).shape
    (4, 4, 3)
    """
    edges = [np.linspace(0, side, min(n_cells, side) + 1).astype(int) for side in image.shape[:2]]
    shape = edges[0].size - 1, edges[1].size - 1
    blank = np.rint(image.mean(axis=(0, 1))).astype(np.uint8)
    rows: list[Any] = [None] * (1 + shape[0] * shape[1])

    def task(begin: int, end: int) -> None:
        for at in range(begin, end):
            covered = image.copy()
            if at > 0:
                y, x = divmod(at - 1, shape[1])
                covered[edges[0][y] : edges[0][y + 1], edges[1][x] : edges[1][x + 1]] = blank
            rows[at] = features.transform_image(covered)

    parallel.run(task, parallel.ranges(len(rows), 4), None)
    scores = class_scores(model, np.array(rows))
    return np.asarray((scores[0] - scores[1:]).reshape(*shape, -1))
