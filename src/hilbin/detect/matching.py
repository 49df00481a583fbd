r"""How good detections are: which are true, precision and recall, and average precision.

**Matching.** Detections of all images are taken by falling score. Each takes the truth of its image
with the highest IoU among those not yet taken, if that IoU reaches a limit (0.5); it is true. Else,
if it reaches the limit with an ignored box, it does not count. Else it is false.

**Average precision.** After :math:`k` detections that count, of which :math:`t_k` are true, the
precision is :math:`p_k = t_k / k` and the recall :math:`r_k = t_k / n` for :math:`n` truths. The
average precision is the area under the precision made monotone from the right,

.. math:: \mathrm{AP} = \sum_k (r_k - r_{k-1}) \max_{j \ge k} p_j .

Among equal scores false detections count first, so that their order does not matter. Collect
detections from a low threshold: what is not found cannot count.

**Reference.** M. Everingham et al., *The PASCAL Visual Object Classes Challenge: A Retrospective*,
2015; this is its measure from 2010 on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hilbin._arrays import Array
from hilbin.detect.boxes import as_coordinates, iou

FALSE, IGNORED = -1, -2


@dataclass(frozen=True, eq=False)
class Matches:
    """Detections of several images, by falling score, and the truths that they match.

    Parameters
    ----------
    image, box : int arrays of shape (n,)
        The image of each detection, and its place among the boxes of that image.
    scores : array of shape (n,)
        Scores, falling.
    truth : int array of shape (n,)
        The truth of the image that it matches; -1 if it is false, -2 if it does not count.
    n_truths : int
        Number of truths in all images.

    Attributes
    ----------
    precision, recall : arrays of shape (m,)
        After each of the detections that count, by falling score.
    thresholds : array of shape (m,)
        Scores of the detections that count.
    average_precision : float
        Area under the curve; NaN if there is no truth.

    Examples
    --------
    >>> from hilbin.detect import Boxes, match_boxes
    >>> found = [Boxes([[0, 0, 10, 10], [50, 0, 60, 10]], scores=[0.9, 0.8])]
    >>> matches = match_boxes(found, [[[0, 0, 10, 10], [20, 0, 30, 10]]])
    >>> matches.truth, matches.precision, matches.recall
    (array([ 0, -1]), array([1. , 0.5]), array([0.5, 0.5]))
    """

    image: Array
    box: Array
    scores: Array
    truth: Array
    n_truths: int

    @cached_property
    def _counted(self) -> Array:
        """The detections that count; among equal scores the false ones first."""
        counted = np.flatnonzero(self.truth != IGNORED)
        return counted[np.lexsort((self.truth[counted] != FALSE, -self.scores[counted]))]

    @cached_property
    def _n_true(self) -> Array:
        return np.cumsum(self.truth[self._counted] != FALSE)

    @property
    def precision(self) -> Array:
        """The share of true detections among those that count, down to each score."""
        return self._n_true / np.arange(1, self._n_true.size + 1)

    @property
    def recall(self) -> Array:
        """The share of the truths that are found, down to each score; NaN without truths."""
        return self._n_true / (self.n_truths or np.nan)

    @property
    def thresholds(self) -> Array:
        """The scores of the detections that count."""
        return self.scores[self._counted]

    @property
    def average_precision(self) -> float:
        """The area under the curve of precision over recall, made monotone from the right."""
        highest = np.maximum.accumulate(self.precision[::-1])[::-1]
        steps = np.diff(self.recall, prepend=0.0)
        return float(steps @ highest) if self.n_truths else float("nan")

    def at(self, threshold: float) -> tuple[float, float]:
        """Return precision and recall of the detections with at least this score.

        The precision of no detection is NaN.
        """
        count = int((self.thresholds >= threshold).sum())
        if count == 0:
            return float("nan"), 0.0 if self.n_truths else float("nan")
        return float(self.precision[count - 1]), float(self.recall[count - 1])


def match_boxes(
    predicted: Sequence[Any], truths: Sequence[Any], ignored: Any = None, *, limit: float = 0.5
) -> Matches:
    """Match detections with the annotated boxes.

    Parameters
    ----------
    predicted : list of Boxes
        Detections of every image, with scores.
    truths : list of array-like of shape (n_i, 4)
        Boxes of every image that should be found.
    ignored : list of array-like of shape (m_i, 4), optional
        Boxes of every image that may be found or not.
    limit : float, default=0.5
        Least IoU of a match.

    Returns
    -------
    matches : Matches

    Examples
    --------
    >>> from hilbin.detect import Boxes, match_boxes
    >>> found = [Boxes([[1, 0, 11, 10]], scores=[0.9]), Boxes([])]
    >>> match_boxes(found, [[[0, 0, 10, 10]], [[0, 0, 10, 10]]]).at(0.5)
    (1.0, 0.5)
    """
    others = [[]] * len(truths) if ignored is None else ignored
    if not len(predicted) == len(truths) == len(others):
        raise ValueError(
            "predicted, truths and ignored must have one entry for each image, got "
            f"{len(predicted)}, {len(truths)} and {len(others)}"
        )
    drawn = [as_coordinates(boxes, f"truths[{i}]") for i, boxes in enumerate(truths)]
    may = [as_coordinates(boxes, f"ignored[{i}]") for i, boxes in enumerate(others)]
    found = [
        _match_image(boxes, drawn[i], may[i], limit, f"predicted[{i}]")
        for i, boxes in enumerate(predicted)
    ]
    image = np.repeat(np.arange(len(found)), [truth.size for truth, _ in found])
    box = np.concatenate([np.arange(truth.size) for truth, _ in found] or [np.empty(0, np.intp)])
    truth = np.concatenate([truth for truth, _ in found] or [np.empty(0, np.intp)])
    scores = np.concatenate([scores for _, scores in found] or [np.empty(0)])
    order = np.argsort(-scores, kind="stable")
    n_truths = sum(len(boxes) for boxes in drawn)
    return Matches(image[order], box[order], scores[order], truth[order], n_truths)


def _match_image(
    boxes: Any, truths: Array, ignored: Array, limit: float, name: str
) -> tuple[Array, Array]:
    """Return the truth of every detection of an image, and its score."""
    coordinates = as_coordinates(boxes, name)
    scores = np.asarray(getattr(boxes, "scores", None), np.float64)
    if scores.shape != (len(coordinates),):
        if len(coordinates):
            raise ValueError(f"{name} must be Boxes with scores")
        scores = np.empty(0)
    if np.isnan(scores).any():
        raise ValueError(f"the scores of {name} have NaN")
    meets_ignored = (iou(coordinates, ignored) >= limit).any(axis=1)
    matched = np.where(meets_ignored, IGNORED, FALSE)
    overlap = iou(coordinates, truths)
    for at in np.argsort(-scores, kind="stable") if len(truths) else ():
        best = int(overlap[at].argmax())
        if overlap[at, best] >= limit:
            matched[at] = best
            overlap[:, best] = -1  # taken
    return matched, scores


def average_precision(
    predicted: Sequence[Any], truths: Sequence[Any], ignored: Any = None, *, limit: float = 0.5
) -> float:
    r"""Compute the average precision of detections.

    It is :math:`\sum_k (r_k - r_{k-1}) \max_{j \ge k} p_j` with the precision :math:`p_k` and the
    recall :math:`r_k` after :math:`k` detections by falling score.

    Parameters
    ----------
    predicted : list of Boxes
        Detections of every image, with scores.
    truths : list of array-like of shape (n_i, 4)
        Boxes of every image that should be found.
    ignored : list of array-like of shape (m_i, 4), optional
        Boxes of every image that may be found or not.
    limit : float, default=0.5
        Least IoU of a detection and the truth that it matches.

    Returns
    -------
    score : float
        From 0 to 1; NaN if there is no truth.

    Examples
    --------
    >>> from hilbin.detect import Boxes, average_precision
    >>> boxes = [[60, 0, 70, 10], [0, 0, 10, 10], [100, 0, 110, 10], [20, 0, 30, 10]]
    >>> found = [Boxes(boxes, scores=[0.95, 0.9, 0.8, 0.7])]
    >>> truths = [[[0, 0, 10, 10], [20, 0, 30, 10], [40, 0, 50, 10]]]
    >>> round(average_precision(found, truths, ignored=[[[60, 0, 70, 10]]]), 4)
    0.5556
    """
    return match_boxes(predicted, truths, ignored, limit=limit).average_precision
