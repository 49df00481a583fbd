r"""The threshold of a detector and its probabilities, by folds over images.

At the optimum of the hinge loss training objects have scores near 1, new ones lower, by how much is
not known. So templates are learned again without the images of a fold, three times, and what they
find in these images is compared with the boxes. The threshold is the one of highest
:math:`F_1 = 2 p r / (p + r)` of precision and recall, half way to the next score below, and a
logistic map of scores to probabilities is fitted to the same detections
(:class:`~hilbin.estimators.ScoreCalibration`).

A fold is learned from the hard windows alone: positives, and negatives above -1.2 at the optimum of
all images. Others hardly move a template, and few windows are solved in a second. Where there are
very many, some of them stand for all, with so much more weight each.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hilbin._arrays import Array
from hilbin.detect.boxes import Boxes
from hilbin.detect.finding import LOW, all_scores, find
from hilbin.detect.matching import FALSE, IGNORED, Matches, match_boxes
from hilbin.detect.pyramid import Levels
from hilbin.detect.template import Template
from hilbin.estimators import ScoreCalibration
from hilbin.solvers import Hinge, Risk, bundle

FOLDS = 3
TOL = 0.05
HARD = -1.2  # score above which a negative window is hard
MOST_HARD = 3000  # of them that are taken, and of those in mirror images


@dataclass(frozen=True, eq=False)
class HardRows:
    """Features of the windows that matter to one template.

    Parameters
    ----------
    features : float32 array of shape (n, n_weights)
        The last is the constant of the bias.
    targets : array of shape (n,)
        1 of positives and -1 of negatives.
    weights : array of shape (n,)
        For how many windows each stands.
    image : int array of shape (n,)
        Where each window is.
    """

    features: Array
    targets: Array
    weights: Array
    image: Array

    def learned(
        self, template: Template, C: float, tol: float = TOL, *, without: Array | None = None
    ) -> Template:
        """Return the template learned from these rows, without those of some images."""
        kept = np.isin(self.image, [] if without is None else without, invert=True)
        if not (self.targets[kept] > 0).any():
            return template
        risk = Risk(self.features[kept], Hinge(), self.targets[kept], C * self.weights[kept])
        return template.with_weights(bundle(risk, 1.0, tol=tol).coef[0])


def folds_of(boxes: Sequence[Array], ignored: Sequence[Array], rng: np.random.RandomState) -> Array:
    """Return the fold of every image; images with boxes are shared out evenly.

    There is one fold if fewer than two images have boxes.
    """
    with_boxes = np.array([not skip.all() for skip in ignored], bool)
    with_boxes &= np.array([len(b) > 0 for b in boxes], bool)
    count = min(FOLDS, int(with_boxes.sum()))
    order = rng.permutation(len(boxes))
    order = order[np.argsort(~with_boxes[order], kind="stable")]
    folds = np.empty(len(boxes), np.int64)
    folds[order] = np.arange(len(boxes)) % max(count, 1)
    return folds


def left_out_boxes(
    templates: Sequence[Template],
    hard: Sequence[HardRows],
    folds: Array,
    pyramid_of: Callable[[int], Levels],
    *,
    C: float,
    limit: float,
) -> list[Boxes]:
    """Return what templates find in images that they were not learned from."""
    found: dict[int, Boxes] = {}
    for fold in range(int(folds.max()) + 1):
        images = np.flatnonzero(folds == fold)
        own = [
            rows.learned(template, C, without=images)
            for rows, template in zip(hard, templates, strict=True)
        ]
        for image in images:
            pyramid = pyramid_of(int(image))
            scores = all_scores(own, pyramid, exact=True)
            found[int(image)] = find(scores, own, pyramid, LOW, limit).boxes
    return [found[image] for image in range(len(folds))]


def calibrate(
    found: Sequence[Boxes], boxes: Sequence[Array], ignored: Sequence[Array]
) -> tuple[float, ScoreCalibration | None]:
    """Return the threshold of best F1, and the map of scores to probabilities, if there is one."""
    truths = [b[~skip] for b, skip in zip(boxes, ignored, strict=True)]
    others = [b[skip] for b, skip in zip(boxes, ignored, strict=True)]
    matches = match_boxes(found, truths, others)
    true = matches.truth != FALSE
    counted = matches.truth != IGNORED
    calibration = None
    if 0 < true[counted].sum() < counted.sum():
        calibration = ScoreCalibration("sigmoid").fit(matches.scores[counted], true[counted])
    return best_threshold(matches), calibration


def best_threshold(matches: Matches) -> float:
    """Return the threshold of highest F1, half way to the next score below; 0 without a match."""
    precision, recall, scores = matches.precision, matches.recall, matches.thresholds
    if not (recall > 0).any():
        return 0.0
    last = np.append(np.diff(scores) < 0, True)  # after all detections of an equal score
    f1 = np.where(last, 2 * precision * recall / np.maximum(precision + recall, 1e-12), -1)
    best = int(np.argmax(f1))
    below = scores[best + 1] if best + 1 < len(scores) else scores[best] - 0.1
    return float(0.5 * (scores[best] + below))
