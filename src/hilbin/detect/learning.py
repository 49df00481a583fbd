r"""Learning a template from all windows of all images.

**Problem.** Every window is a row of a hinge loss, positive or negative, of weight :math:`C`:

.. math:: \min_v \; \tfrac12 \|v\|^2 + C \sum_i \max(0, 1 - t_i \langle v, x_i \rangle) .

No window is stored (:mod:`hilbin.detect.windows`), and the gap of the solution is one for all of
them (:mod:`hilbin.detect.working_set`).

**Template.** Its aspect is the median of that of the boxes, its area that of the parameter ``area``
or of the smallest boxes, and one cell of context lies around. Components are runs of boxes by
aspect, of at least 20 boxes each, and are learned by themselves.

**Positives.** A box has the windows of IoU 0.7 and more as candidates, or the best one; if that has
less than 0.5, the box cannot be reached and is ignored. First the candidate of best IoU is
the positive, then that of highest score. **Negatives** are all windows whose IoU with every box is
below 0.5, beside objects as well. Windows whose IoU with an ignored box is 0.3 or more do not
count.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from hilbin._arrays import Array
from hilbin.detect.boxes import areas, iou
from hilbin.detect.calibration import HARD, MOST_HARD, HardRows
from hilbin.detect.checkpoint import Checkpoint
from hilbin.detect.pyramid import PADDING, SIDE, Levels, Shape
from hilbin.detect.template import BIAS, CONTEXT, Template
from hilbin.detect.windows import CodedWindowRows, MirroredRows, WindowRows
from hilbin.detect.working_set import Descent, first_rows, minimize_hinge
from hilbin.solvers import Result

CANDIDATE, REACHED, COUNTS = 0.7, 0.5, 0.3  # IoU of positives, of what is no negative, of ignored
SMALL = 0.05  # quantile of the areas of boxes that a template must be able to find
SMALLER = 0.75  # area of such a box, as a share of that of the template
FOUND = 0.95  # share of the boxes that suppression must leave
LEAST_OVERLAP, MOST_OVERLAP = 0.3, 0.5
LEAST_BOXES = 20  # of a component
MOST_UPSAMPLE, LEAST_UPSAMPLE = 1, -5
ROUNDS = 2
FIRST_TOL = 0.1  # of the round that only chooses positives
FIRST_SHARE = 0.3  # of the time, about
MAX_ITER = 500


def choose_upsample(boxes: Array, area: float) -> int:
    """Return how often images are doubled so that small boxes are about as large as the template.

    It is negative if even small boxes are larger than the template after halving.
    """
    small = float(np.quantile(areas(boxes), SMALL))
    wanted = round(0.5 * np.log2(area / small))
    return min(max(wanted, LEAST_UPSAMPLE), MOST_UPSAMPLE)


def choose_overlap(truths: Sequence[Array]) -> float:
    """Return the largest IoU of two detections, so that nearly all true boxes can be found."""
    highest = [np.empty(0)]
    for boxes in truths:
        others = iou(boxes, boxes)
        np.fill_diagonal(others, 0)
        highest.append(others.max(axis=1, initial=0.0))
    needed = float(np.quantile(np.concatenate(highest), FOUND))
    return min(max(needed, LEAST_OVERLAP), MOST_OVERLAP)


def choose_components(boxes: Array, count: int) -> Array:
    """Return the component of every box: runs of equal length by aspect."""
    aspects = _aspects(boxes)
    count = max(1, min(count, len(boxes) // LEAST_BOXES))
    edges = np.quantile(aspects, np.arange(1, count) / count)
    return np.searchsorted(edges, aspects, side="right")


def choose_shape(boxes: Array, area: float, upsample: int) -> Shape:
    """Return rows and columns of cells of the template of some boxes, with context."""
    small = float(np.quantile(areas(boxes), SMALL)) * 4.0**upsample
    aspect = float(np.median(_aspects(boxes)))
    wanted = min(area, small / SMALLER)
    sides = np.sqrt([wanted / aspect, wanted * aspect]) / SIDE
    rows, columns = np.maximum(np.rint(sides), 1).astype(int) + 2 * CONTEXT
    return int(rows), int(columns)


def _aspects(boxes: Array) -> Array:
    width, height = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    return width / height


def overlaps(levels: Levels, shape: Shape, boxes: Array, least: float) -> list[tuple[Array, Array]]:
    """Return for every box the windows whose IoU with it is at least ``least``, and the IoU.

    Only levels on which windows have about the size of the box are looked at.
    """
    found: list[list[tuple[Array, Array]]] = [[] for _ in boxes]
    grids = levels.grids(shape)
    begins = np.concatenate([[0], np.cumsum(grids.prod(axis=1))])
    sides = (np.array(shape) - 2 * CONTEXT) * SIDE / levels.scales
    for number, box in enumerate(boxes):
        ratio = sides.prod(axis=1) / areas(box)
        for level in np.flatnonzero((ratio >= least) & (ratio <= 1 / least)):
            down, across = (
                _shared(grids[level, axis], levels.scales[level, axis], side, box[1 - axis :: 2])
                for axis, side in enumerate(sides[level])
            )
            ys, xs = np.flatnonzero(down), np.flatnonzero(across)
            common = down[ys, None] * across[xs]
            iou = common / (sides[level].prod() + areas(box) - common)
            y, x = np.nonzero(iou >= least)
            places = begins[level] + ys[y] * grids[level, 1] + xs[x]
            found[number].append((places, iou[y, x]))
    none = np.empty(0, np.int64), np.empty(0)
    return [
        tuple(np.concatenate(part) for part in zip(none, *parts, strict=True))  # type: ignore[misc]
        for parts in found
    ]


def _shared(count: int, scale: float, side: float, ends: Array) -> Array:
    """Return the length that windows along an axis have in common with a box."""
    first = (np.arange(count) - PADDING + CONTEXT) * SIDE / scale
    return np.maximum(np.minimum(first + side, ends[1]) - np.maximum(first, ends[0]), 0)


@dataclass(frozen=True)
class Candidates:
    """The windows that may be the positive of one box."""

    image: int
    box: int
    windows: Array
    iou: Array


class TrainingWindows:
    """Which windows of a template are positive, negative, or do not count.

    Parameters
    ----------
    pyramids : sequence of Levels
        One for every image.
    shape : (int, int)
        Rows and columns of cells of the template.
    boxes : sequence of arrays of shape (n_i, 4)
        All boxes of every image.
    own : sequence of bool arrays of shape (n_i,)
        Which of them this template is to find.
    ignored : sequence of bool arrays of shape (n_i,)
        Which of them do not count.

    Attributes
    ----------
    begins : array of shape (n_images + 1,)
        Number of the first window of every image.
    candidates : list of Candidates
        One for every box that can be reached.
    unreachable : list of Candidates
        Boxes that no window meets, with the best window there is.
    negative : bool array of shape (n_windows,)
    """

    def __init__(
        self,
        pyramids: Sequence[Levels],
        shape: Shape,
        boxes: Sequence[Array],
        own: Sequence[Array],
        ignored: Sequence[Array],
    ) -> None:
        counts = [pyramid.n_places(shape) for pyramid in pyramids]
        self.begins = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        self.candidates: list[Candidates] = []
        self.unreachable: list[Candidates] = []
        self.negative = np.ones(int(self.begins[-1]), bool)
        for image, pyramid in enumerate(pyramids):
            near = overlaps(pyramid, shape, boxes[image], COUNTS)
            for box, (places, shared) in enumerate(near):
                found = Candidates(image, box, places + self.begins[image], shared)
                self._enter(found, bool(own[image][box]), bool(ignored[image][box]))

    def _enter(self, found: Candidates, own: bool, ignored: bool) -> None:
        reached = found.iou.max(initial=0.0) >= REACHED
        limit = REACHED if reached and not ignored else COUNTS
        self.negative[found.windows[found.iou >= limit]] = False
        if not own or ignored:
            return
        if not reached:
            self.unreachable.append(found)
            return
        best = found.iou >= min(CANDIDATE, found.iou.max())
        taken = Candidates(found.image, found.box, found.windows[best], found.iou[best])
        self.candidates.append(taken)

    def image_of(self, windows: Array) -> Array:
        """Return the image of every window."""
        return np.searchsorted(self.begins, windows, side="right") - 1

    def best(self, values: Callable[[Candidates], Array]) -> Array:
        """Return the candidate of highest value of every box."""
        chosen = [found.windows[int(np.argmax(values(found)))] for found in self.candidates]
        return np.array(chosen, np.int64)


@dataclass(frozen=True, eq=False)
class Learned:
    """A template, its certificate, and the windows that made it.

    Parameters
    ----------
    template : Template
    result : Result
        Certificate of the solver.
    windows : TrainingWindows
    positive : sequence of int arrays
        Positive windows, and the same of mirror images, if they were used.
    scores : sequence of arrays of shape (n_windows,)
        Scores of all windows, and of their mirror images.
    """

    template: Template
    result: Result
    windows: TrainingWindows
    positive: Sequence[Array]
    scores: Sequence[Array]


def learn_root(
    rows: WindowRows | CodedWindowRows,
    windows: TrainingWindows,
    *,
    C: float,
    mirror: bool,
    tol: float,
    max_iter: int,
    seed: Sequence[int],
    callback: Callable[[int, int, float], bool],
    checkpoint: Checkpoint,
    stage: str,
) -> Learned:
    """Learn a template without parts; the second round has the positives of the first's scores.

    ``callback`` is called with the round, the passes and the gap, also of a state that was kept,
    and tells whether to go on.
    """
    seen: Any = MirroredRows(rows) if mirror else rows
    sides = 2 if mirror else 1
    positive = np.tile(windows.best(lambda found: found.iou), (sides, 1))
    begin, start, working = 0, None, np.empty(0, np.int64)
    known = checkpoint.load(stage)
    if known is not None:
        begin, positive, start = int(known["round"]), known["positive"], Descent.of(known)
        callback(begin, start.n_iter, start.share)
    for number in range(begin, ROUNDS):
        targets, weights = _targets(windows.negative, positive, C)
        if start is None:
            drawn = first_rows(targets, weights, np.random.RandomState([*seed, number]))
            start = Descent(np.union1d(working[weights[working] > 0], drawn))

        def keep(state: Descent, number: int = number, positive: Array = positive) -> None:
            if checkpoint.due():
                about = {"round": np.array(number), "positive": positive}
                checkpoint.store(stage, about | state.arrays())

        solved = minimize_hinge(
            seen,
            targets,
            weights,
            start,
            constant=BIAS**2,
            tol=max(FIRST_TOL, tol) if number == 0 else tol,
            max_iter=max_iter,
            callback=partial(callback, number),
            keep=keep,
        )
        scores, working, start = solved.scores.reshape(sides, -1), solved.working, None
        if number + 1 < ROUNDS:
            positive = np.stack([best_scored(windows, own) for own in scores])
    template = Template.rigid(solved.result.coef[0], rows.window)
    return Learned(template, solved.result, windows, [*positive], [*scores])


def _targets(negative: Array, positive: Array, C: float) -> tuple[Array, Array]:
    """Return targets and weights of all windows, those of mirror images after the others."""
    targets = np.full((len(positive), len(negative)), -1, np.float32)
    weights = np.tile(np.float32(C) * negative, (len(positive), 1))
    for side, chosen in enumerate(positive):
        targets[side, chosen], weights[side, chosen] = 1, C
    return targets.ravel(), weights.ravel()


def learned_share(number: int, gap: float, tol: float) -> float:
    """Return about how much of a template is learned, from the round and the gap it has reached."""
    least = max(FIRST_TOL, tol) if number == 0 else tol
    within = min(1.0, max(0.0, float(np.log(gap) / np.log(least)))) if least < 1 else 1.0
    return FIRST_SHARE * within if number == 0 else FIRST_SHARE + (1 - FIRST_SHARE) * within


def best_scored(windows: TrainingWindows, scores: Array) -> Array:
    """Return the candidate of highest score of every box."""
    return windows.best(lambda found: scores[found.windows])


def rescored(learned: Learned, pyramid_of: Callable[[int], Levels]) -> Learned:
    """Return what was learned from codes with scores, and positives, of the numbers."""
    template, windows = learned.template, learned.windows
    models = [template, template.mirrored()][: len(learned.scores)]
    parts = []
    for image in range(len(windows.begins) - 1):
        pyramid = pyramid_of(image)
        parts.append([model.scores(pyramid) for model in models])
    scores = [np.concatenate(own) for own in zip(*parts, strict=True)]
    positive = [best_scored(windows, own) for own in scores]
    return replace(learned, positive=positive, scores=scores)


def hard_rows(
    learned: Learned, pyramid_of: Callable[[int], Levels], *, also: Learned | None = None
) -> HardRows:
    """Return the features of the positives, and of negatives of high score.

    With ``also``, negatives that have a high score there are among them.
    """
    template, windows = learned.template, learned.windows
    hard = [_hard(windows.negative, scores) for scores in learned.scores]
    if also is not None:
        more = [_hard(windows.negative, scores)[0] for scores in also.scores]
        hard = [(np.union1d(own, o), weight) for (own, weight), o in zip(hard, more, strict=True)]
    chosen = [
        np.concatenate([positive, own])
        for positive, (own, _) in zip(learned.positive, hard, strict=True)
    ]
    images = [windows.image_of(own) for own in chosen]
    features, targets, weights, places = [], [], [], []
    for i in np.unique(np.concatenate(images)):
        pyramid = pyramid_of(int(i))
        for side, (own, image) in enumerate(zip(chosen, images, strict=True)):
            some = np.flatnonzero(image == i)
            found = template.features(pyramid, own[some] - windows.begins[i])
            positive = some < len(learned.positive[side])
            features.append(template.mirrored_features(found) if side else found)
            targets.append(np.where(positive, 1.0, -1.0))
            weights.append(np.where(positive, 1.0, hard[side][1]))
            places.append(np.full(some.size, i))
    return HardRows(*map(np.concatenate, (features, targets, weights, places)))


def _hard(negative: Array, scores: Array) -> tuple[Array, float]:
    """Return negatives of high score, evenly from all of them, and for how many each stands."""
    above = np.flatnonzero(negative & (scores > HARD))
    if len(above) <= MOST_HARD:
        return above, 1.0
    by_score = above[np.argsort(-scores[above], kind="stable")]
    taken = np.linspace(0, len(above) - 1, MOST_HARD).astype(np.int64)
    return by_score[taken], len(above) / MOST_HARD
