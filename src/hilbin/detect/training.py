"""The stages of the training of a detector, from images and boxes to templates and a threshold.

1. **Read.** Size and shapes of the templates from the boxes, words of cells if they are wanted, and
   the cells of all images.
2. **Learn.** A template of every shape (:mod:`hilbin.detect.learning`).
3. **Refine.** Parts (:mod:`hilbin.detect.part_learning`), or templates from numbers instead of
   words.
4. **Calibrate.** Threshold and probabilities by folds over images
   (:mod:`hilbin.detect.calibration`).

What is done is kept as it goes, if there is a cache (:mod:`hilbin.detect.checkpoint`). All that is
drawn at random depends on one seed and on the stage alone.
"""

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hilbin._arrays import Array
from hilbin.detect.calibration import (
    HardRows,
    calibrate,
    folds_of,
    left_out_boxes,
    with_least,
)
from hilbin.detect.checkpoint import Checkpoint
from hilbin.detect.learning import (
    Learned,
    TrainingWindows,
    choose_components,
    choose_overlap,
    choose_shape,
    choose_upsample,
    hard_rows,
    learn_root,
    learned_share,
    rescored,
)
from hilbin.detect.matching import match_boxes
from hilbin.detect.part_learning import ROUNDS, learn_parts
from hilbin.detect.template import Template, smallest_object
from hilbin.detect.training_images import (
    Pyramid,
    TrainingImages,
    learn_words,
    read_all,
    warn_unreadable,
)
from hilbin.detect.windows import CodedWindowRows, WindowRows
from hilbin.estimators import ScoreCalibration
from hilbin.estimators._fit import Fit, outer_level, random_seed

Callback = Callable[[str, int, int], object]
SILENT = ("cache", "max_time", "n_jobs", "random_state", "verbose")  # do not change the result
WORDS, READING, LEARNING = "choosing words", "reading images", "learning"  # names of stages
PARTS, CALIBRATING = "learning parts", "calibrating"
WORDS_SEED, ROOT_SEED, FOLDS_SEED = range(3)


class Training:
    """The training of one detector.

    Parameters
    ----------
    model : DeformableDetector
        Its parameters count, and :class:`~hilbin.estimators._fit.Fit` keeps in it what the solver
        certifies.
    data : TrainingImages
        Images and boxes.
    tell : callable
        Called with the name of a stage, how much of it is done, and how much there is; a stage that
        resumes begins with something done.

    Attributes
    ----------
    upsample : int
    overlap : float
        Largest IoU of two windows that are both kept.
    shapes : list of (int, int)
        Shapes of the templates.
    words : array or None
    memory : int
        Bytes of the cells of all images.
    unreachable : list of dict
        Boxes that no window meets.
    """

    def __init__(self, model: Any, data: TrainingImages, tell: Callback) -> None:
        self.model, self.data, self.tell = model, data, tell
        wanted = np.concatenate([np.empty((0, 4)), *data.truths()])
        if not len(wanted):
            raise ValueError("there is no box to learn from in any image")
        self.seed = random_seed(model.random_state)
        known = {n: v for n, v in model.get_params().items() if n not in SILENT}
        given = {name: v if isinstance(v, str | None) else float(v) for name, v in known.items()}
        arrays = [*data.boxes, *data.ignored]
        seeded = {**given, "seed": self.seed}
        self.checkpoint = Checkpoint(model.cache, seeded, data.sources, arrays)
        automatic = model.upsample == "auto"
        self.upsample = choose_upsample(wanted, model.area) if automatic else int(model.upsample)
        chosen = choose_overlap(data.truths()) if model.overlap == "auto" else model.overlap
        self.overlap = float(chosen)
        component = choose_components(wanted, model.n_components)
        self.shapes = [
            choose_shape(wanted[component == k], model.area, self.upsample)
            for k in range(int(component.max()) + 1)
        ]
        data.assign(component)
        self.words: Array | None = None
        self.memory = 0
        self.unreachable: list[dict[str, Any]] = []

    def read(self) -> None:
        """Find the words, and read the images; those that cannot be read are forgotten."""
        model, data, count = self.model, self.data, len(self.data.sources)
        if model.n_words is not None:
            self.words = self._words()
        self.tell(READING, 0, count)
        smallest = smallest_object(self.shapes)
        made, errors = read_all(
            count,
            lambda place: data.pyramid(place, smallest, self.upsample, self.words),
            n_jobs=model.n_jobs,
            tell=lambda done: self.tell(READING, done, count),
        )
        warn_unreadable(errors, count, outer_level())
        data.keep([*made])
        self.pyramids = [*made.values()]
        data.leave_out_boxes_outside(self.pyramids)
        self.memory = sum(pyramid.nbytes for pyramid in self.pyramids)

    def _words(self) -> Array:
        known = self.checkpoint.load("words")
        if known is None:
            self.tell(WORDS, 0, 1)
            rng = np.random.RandomState([self.seed, WORDS_SEED])
            smallest = smallest_object(self.shapes)
            found = learn_words(self.data, self.model.n_words, smallest, self.upsample, rng)
            known = {"words": found}
            self.checkpoint.store("words", known)
        self.tell(WORDS, 1, 1)
        return known["words"]

    def learn(self) -> list[Learned]:
        """Learn a template for every shape."""
        count = len(self.shapes)
        learned = []
        names = [f"template {k}" for k in range(count)]
        self._begin(LEARNING, 100 * count, names[0])
        with Fit(self.model, self.data.sources, None, names, "pass") as fit:
            fit.max_iter = self.model.max_iter
            for k in range(count):
                one = self._learn_one(k, fit)
                if one is not None:
                    learned.append(one)
                    fit.say(k, one.result)
            if not learned:
                raise ValueError("no window meets any box at an IoU of 0.5: see unreachable_")
            fit.keep([one.result for one in learned])
        self.tell(LEARNING, 100 * count, 100 * count)
        return learned

    def _learn_one(self, k: int, fit: Fit) -> Learned | None:
        model, data, total = self.model, self.data, 100 * len(self.shapes)
        own = [component == k for component in data.component]
        windows = TrainingWindows(self.pyramids, self.shapes[k], data.boxes, own, data.ignored)
        self._note_unreachable(windows)
        if not windows.candidates:
            return None
        rows: Any = WindowRows if self.words is None else CodedWindowRows
        with fit.problem(k) as callback:

            def watch(number: int, n_iter: int, gap: float) -> bool:
                share = learned_share(number, gap, model.tol)
                self.tell(LEARNING, min(total - 1, round(100 * (k + share))), total)
                return callback(n_iter, gap)

            return learn_root(
                rows(self.pyramids, self.shapes[k], n_jobs=model.n_jobs),
                windows,
                C=model.C,
                mirror=model.mirror,
                tol=model.tol,
                max_iter=model.max_iter,
                seed=(self.seed, ROOT_SEED, k),
                callback=watch,
                checkpoint=self.checkpoint,
                stage=f"template {k}",
            )

    def _begin(self, name: str, total: int, kept: str) -> None:
        """Tell that a stage begins, unless something of it is kept, which is told then."""
        if self.checkpoint.load(kept) is None:
            self.tell(name, 0, total)

    def _note_unreachable(self, windows: TrainingWindows) -> None:
        for found in windows.unreachable:
            box = int(self.data.numbers[found.image][found.box])
            iou = float(found.iou.max(initial=0.0))
            entry = {"image": self.data.names[found.image], "box": box, "iou": iou}
            self.unreachable.append(entry)

    def pyramid_of(self, place: int) -> Pyramid:
        """Return the cells of an image as numbers, and its nodes if there are parts."""
        parts = self.model.n_parts > 0
        if self.words is None and not parts:
            return self.pyramids[place]
        smallest = smallest_object(self.shapes)
        return self.data.pyramid(place, smallest, self.upsample, None, parts)

    def refine(self, learned: Sequence[Learned]) -> tuple[list[Template], list[HardRows]]:
        """Learn the parts, or learn again from numbers instead of codes; return the hard rows."""
        templates, hard = [], []
        begin = time.monotonic()
        for k, one in enumerate(learned):
            if self.model.n_parts:
                template, rows = self._learn_parts(k, one, len(learned), begin)
            else:
                template, rows = one.template, hard_rows(one, self.pyramid_of)
                if self.words is not None:
                    if rows.weights.max() == 1:  # all hard windows, not a sample of them
                        by_numbers = rescored(one, self.pyramid_of)
                        rows = hard_rows(by_numbers, self.pyramid_of, also=one)
                    template = rows.learned(template, self.model.C, self.model.tol)
            templates.append(template)
            hard.append(rows)
        return templates, hard

    def _learn_parts(
        self, k: int, learned: Learned, count: int, begin: float
    ) -> tuple[Template, HardRows]:
        model = self.model
        limit = np.inf if model.max_time is None else model.max_time

        def go_on(rounds: int) -> bool:
            self.tell(PARTS, k * ROUNDS + rounds, count * ROUNDS)
            return time.monotonic() - begin < limit

        if k == 0:
            self._begin(PARTS, count * ROUNDS, f"parts {k}")
        return learn_parts(
            learned,
            model.n_parts,
            self.pyramid_of,
            C=model.C,
            tol=model.tol,
            checkpoint=self.checkpoint,
            stage=f"parts {k}",
            n_jobs=model.n_jobs,
            go_on=go_on,
        )

    def calibrate(
        self, templates: list[Template], hard: Sequence[HardRows]
    ) -> tuple[list[Template], float, ScoreCalibration | None]:
        """Find the threshold and the probabilities by folds over images."""
        data, model = self.data, self.model
        rng = np.random.RandomState([self.seed, FOLDS_SEED])
        folds = folds_of(data.boxes, data.ignored, rng)
        given = 0.0 if model.threshold == "auto" else float(model.threshold)
        if folds.max() == 0:
            self.tell(CALIBRATING, 1, 1)
            if model.threshold == "auto":
                warnings.warn(
                    "boxes are in one image only: threshold_ is 0 and there are no probabilities, "
                    "as nothing can be left out to find them",
                    stacklevel=outer_level(),
                )
            return templates, given, None
        self._begin(CALIBRATING, int(folds.max()) + 1, "fold 0")
        found = left_out_boxes(
            templates,
            hard,
            folds,
            self.pyramid_of,
            C=model.C,
            limit=self.overlap,
            checkpoint=self.checkpoint,
            tell=lambda done, count: self.tell(CALIBRATING, done, count),
        )
        matches = match_boxes(found.boxes, data.truths(), data.others())
        threshold, calibration = calibrate(matches)
        threshold = threshold if model.threshold == "auto" else given
        return with_least(templates, found, matches, threshold), threshold, calibration
