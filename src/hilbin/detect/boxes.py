r"""Boxes, how much they overlap, and the best of those that overlap.

**Definition.** A box is ``[x0, y0, x1, y1)`` in pixels, float64, half-open: the pixel in column
:math:`i` covers :math:`[i, i + 1)`, and the width of a box is :math:`x_1 - x_0`. Two boxes overlap
by their intersection over union,

.. math:: \mathrm{IoU}(a, b) = \frac{|a \cap b|}{|a| + |b| - |a \cap b|} ,

which is 1 for equal boxes and 0 for boxes that share no area; an empty box has 0 with all.

**Suppression.** A detector gives many boxes around one thing. Greedy non-maximum suppression takes
them by falling score, equal scores in the order given, and keeps a box unless its IoU with one
that is kept is above a limit. It takes :math:`O(n k)` for :math:`k` of :math:`n` boxes kept.

**Reference.** P. Felzenszwalb, R. Girshick, D. McAllester and D. Ramanan, *Object Detection with
Discriminatively Trained Part-Based Models*, 2010, section 7.2.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from hilbin._arrays import Array
from hilbin._state import require

AT_ONCE = 128  # boxes of which all pairs are compared by one call of NumPy


class BoxWarning(UserWarning):
    """A box that cannot be used is left out; the warning names its file and the box."""


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes of one image, with their scores, labels and probabilities if known.

    They are indexed like an array: ``boxes[mask]`` and ``boxes[indices]`` are boxes again.

    Parameters
    ----------
    coordinates : array-like of shape (n, 4)
        ``[x0, y0, x1, y1)`` of every box, in pixels.
    scores : array-like of shape (n,), optional
        Scores of a detector.
    labels : array-like of shape (n,), optional
        What each box shows.
    probabilities : array-like of shape (n,), optional
        Probabilities that the boxes show what the detector looks for.

    Examples
    --------
    >>> from hilbin.detect import Boxes
    >>> boxes = Boxes([[0, 0, 10, 10], [5, 0, 15, 10]], scores=[0.5, 2.0])
    >>> len(boxes), boxes.areas
    (2, array([100., 100.]))
    >>> boxes[boxes.scores > 1].coordinates
    array([[ 5.,  0., 15., 10.]])
    """

    coordinates: Any  # arrays, whatever they are made of
    scores: Any = None
    labels: Any = None
    probabilities: Any = None

    def __post_init__(self) -> None:
        set_field = object.__setattr__  # the dataclass is frozen
        set_field(self, "coordinates", as_coordinates(self.coordinates, "coordinates"))
        for name, dtype in (("scores", float), ("labels", None), ("probabilities", float)):
            value = getattr(self, name)
            if value is not None:
                set_field(self, name, np.asarray(value, dtype))
        self._check_state()

    def _check_state(self) -> None:
        require(isinstance(self.coordinates, np.ndarray), "coordinates is not an array")
        as_coordinates(self.coordinates, "coordinates")
        for name, value in self._of_each().items():
            shape = getattr(value, "shape", ())
            fits = value is None or shape == (len(self.coordinates),)
            require(fits, f"{name} has shape {shape} for {len(self.coordinates)} boxes")

    def _of_each(self) -> dict[str, Any]:
        """Return the fields that have one value per box."""
        names = [field.name for field in fields(self)]
        return {name: getattr(self, name) for name in names if name != "coordinates"}

    def __len__(self) -> int:
        return len(self.coordinates)

    def __getitem__(self, which: Any) -> "Boxes":
        chosen = {k: None if v is None else v[which] for k, v in self._of_each().items()}
        return type(self)(self.coordinates[which], **chosen)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.coordinates, dtype, copy=copy)

    @property
    def areas(self) -> Array:
        """Return the area of every box in square pixels; 0 if it is empty."""
        return areas(self.coordinates)

    def clipped(self, width: float, height: float) -> "Boxes":
        """Return the boxes cut at the edges of an image.

        Parameters
        ----------
        width, height : float
            Size of the image in pixels.
        """
        cut = np.clip(self.coordinates, 0, [width, height, width, height])
        return type(self)(cut, **self._of_each())

    @classmethod
    def concatenate(cls, parts: Sequence["Boxes"]) -> "Boxes":
        """Return the boxes of several parts, one after the other.

        A field that some part lacks is None.
        """
        if not parts:
            return cls(np.empty((0, 4)))
        joined = {}
        for name in parts[0]._of_each():
            values = [getattr(part, name) for part in parts]
            lacks = any(value is None for value in values)
            joined[name] = None if lacks else np.concatenate(values)
        return cls(np.concatenate([part.coordinates for part in parts]), **joined)


def as_coordinates(boxes: Any, name: str = "boxes") -> Array:
    """Return boxes as a finite float64 array of shape (n, 4).

    Parameters
    ----------
    boxes : Boxes or array-like of shape (n, 4)
        The boxes. An empty list is no box.
    name : str, default="boxes"
        What errors call them.
    """
    coordinates = as_raw_coordinates(boxes, name)
    wrong = ~np.isfinite(coordinates).all(axis=1)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise ValueError(f"{name} must be finite, box {at} is {coordinates[at].tolist()}")
    return coordinates


def as_raw_coordinates(boxes: Any, name: str = "boxes") -> Array:
    """Return boxes as a float64 array of shape (n, 4) of any values."""
    try:
        coordinates = np.asarray(boxes, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers of shape (n, 4): {error}") from None
    if coordinates.size == 0 and coordinates.ndim <= 2:
        return np.empty((0, 4))
    if coordinates.ndim != 2 or coordinates.shape[1] != 4:
        raise ValueError(f"{name} must have the shape (n, 4), got {coordinates.shape}")
    return coordinates


def areas(coordinates: Array) -> Array:
    """Return the area of every box in square pixels; 0 if it is empty."""
    sides = np.maximum(coordinates[..., 2:] - coordinates[..., :2], 0)
    return sides[..., 0] * sides[..., 1]


def iou(a: Any, b: Any) -> Array:
    """Compute the intersection over union of all pairs of boxes.

    Parameters
    ----------
    a, b : Boxes, or array-like of shape (n, 4) and (m, 4)
        Boxes ``[x0, y0, x1, y1)``.

    Returns
    -------
    overlap : array of shape (n, m)
        The area of ``a[i]`` and ``b[j]`` in common over the area that they cover together; 0 if
        they share none.

    Examples
    --------
    >>> from hilbin.detect import iou
    >>> iou([[0, 0, 10, 10]], [[5, 0, 15, 10], [0, 0, 10, 10]]).round(3)
    array([[0.333, 1.   ]])
    """
    return _overlaps(as_coordinates(a, "a"), as_coordinates(b, "b"))


def _overlaps(a: Array, b: Array) -> Array:
    common = _shared(a, b, 0)
    common *= _shared(a, b, 1)
    union = areas(a)[:, None] + areas(b) - common
    return np.divide(common, union, out=np.zeros_like(common), where=common > 0)


def _shared(a: Array, b: Array, axis: int) -> Array:
    """Return the length that all pairs of boxes share along an axis."""
    shared = np.minimum(a[:, None, 2 + axis], b[:, 2 + axis])
    shared -= np.maximum(a[:, None, axis], b[:, axis])
    return np.maximum(shared, 0, out=shared)


def suppress(boxes: Any, scores: Any = None, *, limit: float = 0.5) -> Array:
    """Keep the boxes that no better one overlaps: greedy non-maximum suppression.

    Parameters
    ----------
    boxes : Boxes, or array-like of shape (n, 4)
        Boxes ``[x0, y0, x1, y1)``.
    scores : array-like of shape (n,), optional
        Their scores; those of ``boxes`` by default. Equal scores count in the order given.
    limit : float, default=0.5
        A box is dropped if its IoU with a kept box is above it.

    Returns
    -------
    kept : int array
        Indices of the kept boxes, by falling score.

    Examples
    --------
    >>> from hilbin.detect import suppress
    >>> boxes = [[0, 0, 10, 10], [1, 0, 11, 10], [8, 0, 18, 10], [30, 0, 40, 10]]
    >>> suppress(boxes, [0.9, 0.8, 0.7, 0.6])
    array([0, 2, 3])
    >>> suppress(boxes, [0.9, 0.8, 0.7, 0.6], limit=0.05)
    array([0, 3])
    """
    coordinates = as_coordinates(boxes)
    values = np.asarray(getattr(boxes, "scores", None) if scores is None else scores, np.float64)
    if values.shape != (len(coordinates),) or np.isnan(values).any():
        raise ValueError(
            f"scores must be {len(coordinates)} numbers, one for each box, without NaN"
        )
    if not 0 <= limit <= 1:
        raise ValueError(f"limit must be from 0 to 1, got {limit!r}")
    left = np.argsort(-values, kind="stable")
    kept = [left[:0]]
    while left.size:
        head, left = left[:AT_ONCE], left[AT_ONCE:]
        best = head[_best_of(coordinates[head], limit)]
        kept.append(best)
        if left.size:
            overlap = _overlaps(coordinates[best], coordinates[left])
            left = left[(overlap <= limit).all(axis=0)]
    return np.concatenate(kept)


def _best_of(coordinates: Array, limit: float) -> Array:
    """Tell which boxes are kept, of some that are sorted by falling score."""
    apart = _overlaps(coordinates, coordinates) <= limit
    kept = np.ones(len(coordinates), bool)
    for at in range(len(coordinates)):
        if kept[at]:
            kept[at + 1 :] &= apart[at, at + 1 :]
    return kept


def sound_boxes(boxes: Any, size: tuple[float, float] | None = None, name: str = "boxes") -> Array:
    """Tell which boxes can be used, and warn about each of the others.

    A box cannot be used if it has NaN or infinities, is empty (``x1 <= x0`` or ``y1 <= y0``), or
    lies wholly outside the image. A box that is partly outside can.

    Parameters
    ----------
    boxes : Boxes, or array-like of shape (n, 4)
        Boxes ``[x0, y0, x1, y1)``.
    size : (width, height), optional
        Size of the image in pixels. Without it only boxes left of the image, or above it, are
        known to be outside.
    name : str, default="boxes"
        What warnings call them, as the name of the image file.

    Returns
    -------
    sound : bool array of shape (n,)

    Examples
    --------
    >>> import warnings
    >>> from hilbin.detect import sound_boxes
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     sound_boxes([[0, 0, 5, 5], [3, 3, 3, 8]], name="cat.jpg")
    array([ True, False])
    >>> str(caught[0].message)
    'cat.jpg: box 1, [3, 3, 3, 8], is empty; left out'
    """
    coordinates = as_raw_coordinates(boxes, name)
    width, height = (np.inf, np.inf) if size is None else size
    x0, y0, x1, y1 = coordinates.T
    reasons = {
        "is not finite": ~np.isfinite(coordinates).all(axis=1),
        "is empty": (x1 <= x0) | (y1 <= y0),
        "is outside the image": (x1 <= 0) | (y1 <= 0) | (x0 >= width) | (y0 >= height),
    }
    sound = np.ones(len(coordinates), bool)
    for reason, wrong in reasons.items():
        for at in np.flatnonzero(wrong & sound):
            shown = ", ".join(f"{value:g}" for value in coordinates[at])
            message = f"{name}: box {at}, [{shown}], {reason}; left out"
            warnings.warn(message, BoxWarning, stacklevel=3)
        sound &= ~wrong
    return sound
