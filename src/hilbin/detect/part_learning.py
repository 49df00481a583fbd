r"""Learning the parts of a template, and where they are.

**Problem.** The hinge loss of all windows, as of the root alone (:mod:`hilbin.detect.learning`), of
the scores with parts at their best places. For negatives the maximum over places is convex; for
positives it is not, so their places are fixed, and chosen anew in every round.

**Start.** Parts of 6 by 6 nodes are placed one after the other where the positive weights of the
root have the most energy, which counts little below a part that is there already. A part begins
without weights and with the deformation (0.05, 0, 0.05, 0), so that it is at rest and the first
scores are those of the root, whose objective is the least without parts.

**Rounds.** The first has negatives drawn at random, which stay, or the score of plain background
would be free to rise, and hard windows of the root. Then all windows are scored, parts everywhere,
and negatives above -1 join, hard and less hard ones, about 4,000 in a round, each once with its
newest places; if there are more than 8,000, the easiest go. Positives have the best places of their
parts. The rows are solved by :func:`~hilbin.solvers.bundle`.

**What is certified.** ``gap_`` of the detector is that of the root alone. With parts the problem is
not convex, and nothing is known about its least value. With the places of the positives' parts
fixed it is convex. Every row of a negative is a window once, at some places of its parts, and has
no more loss than the window at the best ones; windows without a row have none. So the least value
for the rows, which the bundle bounds to ``tol``, is a lower bound of the least value for all
windows and all places of negatives, and the value at the template an upper one. How far they are
apart is not computed, as that takes one more pass over all windows.

Afterwards parts are computed only where the root has at least the least score that it has at a
positive whose whole score is not below 0, in training or in images that were left out
(:mod:`hilbin.detect.calibration`).

**Reference.** P. Felzenszwalb, R. Girshick, D. McAllester and D. Ramanan, *Object Detection with
Discriminatively Trained Part-Based Models*, 2010, sections 4 and 5.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hilbin._arrays import Array
from hilbin.detect.calibration import HardRows
from hilbin.detect.checkpoint import Checkpoint
from hilbin.detect.learning import Learned
from hilbin.detect.pyramid import CHANNELS, Levels
from hilbin.detect.template import PART_SIDE, Template
from hilbin.parallel import ranges, run

ROUNDS = 6
HIDDEN = 0.05  # what is left of the energy below a part
BEND = (0.05, 0.0, 0.05, 0.0)
MOST_NEGATIVES, MOST_NEW, AT_RANDOM = 8000, 4000, 2000
MARGIN = -1.0


def place_parts(template: Template, count: int) -> Template:
    """Return the template with parts where its positive weights are."""
    rows, columns = template.shape
    down = np.minimum(np.arange(2 * rows + 1) // 2, rows - 1)
    across = np.minimum(np.arange(2 * columns + 1) // 2, columns - 1)
    near = template.root[down][:, :, across]  # of every node the nearest cell
    energy = np.square(np.maximum(near, 0)).sum(axis=1)
    anchors = []
    for _ in range(count):
        windows = np.lib.stride_tricks.sliding_window_view(energy, (PART_SIDE, PART_SIDE))
        best = windows.sum(axis=(2, 3))
        y, x = np.unravel_index(int(best.argmax()), best.shape)
        energy[y : y + PART_SIDE, x : x + PART_SIDE] *= HIDDEN
        anchors.append((y, x))
    return replace(
        template,
        parts=np.zeros((count, PART_SIDE, CHANNELS, PART_SIDE), np.float32),
        anchors=np.array(anchors, np.int32),
        deformation=np.tile(np.array(BEND, np.float32), (count, 1)),
    )


def learn_parts(
    learned: Learned,
    n_parts: int,
    pyramid_of: Callable[[int], Levels],
    *,
    C: float,
    tol: float,
    checkpoint: Checkpoint,
    stage: str,
    n_jobs: int | None = None,
    go_on: Callable[[int], bool] = lambda n_round: True,
) -> tuple[Template, HardRows]:
    """Learn a template with parts.

    Parameters
    ----------
    learned : Learned
        The template without parts.
    n_parts : int
        Number of parts.
    pyramid_of : callable
        The pyramid of an image, with nodes.
    C, tol : float
        Weight of the loss of a row, and the gap of the solution.
    checkpoint : Checkpoint
        Where finished rounds are kept.
    stage : str
        The name that they have there.
    n_jobs : int, optional
        Threads.
    go_on : callable
        Called with the number of rounds that are done; tells whether there is time for one more.

    Returns
    -------
    template : Template
    rows : HardRows
        The rows of the last round.
    """
    template, cache, begin = place_parts(learned.template, n_parts), _Cache(), 0
    known = checkpoint.load(stage)
    if known is not None:
        begin, template = int(known["rounds"]), template.with_weights(known["weights"])
        cache.restore(known, template, learned.windows.begins, pyramid_of, n_jobs)
        go_on(begin)
    for number in range(begin, ROUNDS):
        cache.take(_scanned(template, learned, pyramid_of, number == 0, n_jobs), template)
        solved = cache.rows().learned(template, C, tol)
        # while all parts are at rest, their rows say nothing about what it costs to move
        template = replace(solved, deformation=template.deformation) if number == 0 else solved
        about = {"rounds": np.array(number + 1), "weights": template.weights}
        checkpoint.store(stage, about | cache.arrays())
        if not go_on(number + 1):
            break
    rows = cache.rows()
    return replace(template, least=_least(template, rows)), rows


class Entry(NamedTuple):
    """A window, where its parts are, and its features."""

    side: int
    window: int
    image: int
    target: float
    moved: Array
    features: Array


def _scanned(
    template: Template,
    learned: Learned,
    pyramid_of: Callable[[int], Levels],
    first: bool,
    n_jobs: int | None,
) -> list[Entry]:
    """Return the positives and hard negatives of all images, first those that the root has."""
    windows, sides = learned.windows, len(learned.positive)
    models = [template, template.mirrored()][:sides]
    share = max(8, 2 * MOST_NEW // (sides * len(windows.begins)))

    def scan(image: int) -> list[Entry]:
        pyramid = pyramid_of(image)
        begin, end = windows.begins[image : image + 2]
        entries: list[Entry] = []
        for side, model in enumerate(models):
            own_scores = learned.scores[side][begin:end]
            scores = own_scores if first else model.scores(pyramid, exact=True)
            own = [c.windows - begin for c in windows.candidates if c.image == image]
            positive = [int(places[np.argmax(scores[places])]) for places in own]
            negative = np.flatnonzero(windows.negative[begin:end])
            chosen = _spread(negative[scores[negative] > MARGIN], scores, share)
            if first:
                step = max(1, len(negative) * sides * len(windows.begins) // AT_RANDOM)
                chosen = np.union1d(chosen, negative[side::step])
            places = np.array([*positive, *chosen], np.int64)
            moved = model.placements(pyramid, places)
            rows = _features(template, side, pyramid, places, moved)
            targets = np.where(np.arange(len(places)) < len(positive), 1.0, -1.0)
            entries += [
                Entry(side, int(place + begin), image, float(target), at, row)
                for place, target, at, row in zip(places, targets, moved, rows, strict=True)
            ]
        return entries

    return _each_image(range(len(windows.begins) - 1), scan, n_jobs)


def _features(template: Template, side: int, pyramid: Levels, places: Array, moved: Array) -> Array:
    """Return the features of windows, as those of their mirror images if ``side`` is 1."""
    if not side:
        return template.features(pyramid, places, moved)
    return template.mirrored_features(template.mirrored().features(pyramid, places, moved))


def _each_image(
    images: Sequence[int], entries: Callable[[int], list[Entry]], n_jobs: int | None
) -> list[Entry]:
    """Return the entries of all images."""
    found: dict[int, list[Entry]] = {}

    def task(low: int, high: int) -> None:
        for place in range(low, high):
            found[place] = entries(images[place])

    run(task, ranges(len(images), 1), n_jobs)
    return [entry for place in sorted(found) for entry in found[place]]


def _spread(windows: Array, scores: Array, count: int) -> Array:
    """Return at most ``count`` windows, evenly from the highest score to the lowest."""
    order = windows[np.argsort(-scores[windows], kind="stable")]
    if len(order) <= count:
        return order
    return order[np.linspace(0, len(order) - 1, count).astype(np.int64)]


class _Cache:
    """Negatives of all rounds, each once, and the positives of the last."""

    def __init__(self) -> None:
        self.entries: dict[tuple[int, int], Entry] = {}

    def take(self, entries: list[Entry], template: Template) -> None:
        """Take new positives, and add negatives; if these are too many, the easiest go."""
        kept = {key: entry for key, entry in self.entries.items() if entry.target < 0}
        self.entries = kept | {entry[:2]: entry for entry in entries}
        weights = template.weights
        negative = [key for key, entry in self.entries.items() if entry.target < 0]
        scores = [float(weights @ self.entries[key].features) for key in negative]
        for i in np.argsort(scores)[: max(0, len(negative) - MOST_NEGATIVES)]:
            del self.entries[negative[i]]

    def arrays(self) -> dict[str, Array]:
        """Return all that the entries are computed from, in their order."""
        columns = [*zip(*self.entries.values(), strict=True)]
        return dict(zip(Entry._fields[:-1], map(np.array, columns), strict=False))

    def restore(
        self,
        arrays: dict[str, Array],
        template: Template,
        begins: Array,
        pyramid_of: Callable[[int], Levels],
        n_jobs: int | None,
    ) -> None:
        """Enter the entries that :meth:`arrays` was made of."""
        side, window, image, target, moved = (arrays[name] for name in Entry._fields[:-1])

        def entries(place: int) -> list[Entry]:
            pyramid = pyramid_of(place)
            found = []
            for k in np.unique(side[image == place]):
                own = np.flatnonzero((image == place) & (side == k))
                places = window[own] - begins[place]
                rows = _features(template, int(k), pyramid, places, moved[own])
                found += [
                    Entry(int(k), int(window[i]), place, float(target[i]), moved[i], row)
                    for i, row in zip(own, rows, strict=True)
                ]
            return found

        made = _each_image([int(place) for place in np.unique(image)], entries, n_jobs)
        by_key = {entry[:2]: entry for entry in made}
        order = [(int(k), int(place)) for k, place in zip(side, window, strict=True)]
        self.entries = {key: by_key[key] for key in order}

    def rows(self) -> HardRows:
        """Return all entries."""
        entries = [*self.entries.values()]
        features = np.stack([entry.features for entry in entries])
        targets = np.array([entry.target for entry in entries])
        image = np.array([entry.image for entry in entries])
        return HardRows(features, targets, np.ones(len(targets)), image)


def _least(template: Template, rows: HardRows) -> float:
    """Return the least score of the root at a positive that the template finds, if it finds any.

    One that has a score below 0 with its parts would let them be computed nearly everywhere.
    """
    positive = rows.features[rows.targets > 0]
    found = positive[positive @ template.weights >= 0]
    chosen = found if len(found) else positive
    roots = chosen[:, : template.root.size] @ template.root.ravel() + np.float32(template.bias)
    return float(roots.min())
