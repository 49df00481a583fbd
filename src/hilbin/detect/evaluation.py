"""A detector on images that people drew boxes in: average precision, misses, false alarms, speed.

Detections are collected down to a low score, so that the curve of precision over recall is whole;
misses and false alarms are those at the detector's own threshold.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hilbin import parallel
from hilbin._arrays import Array
from hilbin.detect.boxes import Boxes, iou, sound_boxes
from hilbin.detect.finding import LOW
from hilbin.detect.formats.records import ImageBoxes
from hilbin.detect.matching import FALSE, Matches, match_boxes
from hilbin.images import ImageError, read_image

LIMIT = 0.5  # IoU of a match


@dataclass(frozen=True, eq=False)
class Detected:
    """The detections of one image, or why it could not be read.

    Parameters
    ----------
    path : Path
        The image file.
    boxes : Boxes
        Detections, by falling score.
    size : (int, int)
        Width and height of the image in pixels.
    seconds : float
        Time of one processor for the detection, without reading the file.
    error : str or None
        Why the image could not be read.

    Examples
    --------
    >>> from hilbin.detect import Boxes, Detected
    >>> Detected("a.jpg", Boxes([]), (0, 0), 0.0, "the file is empty").error
    'the file is empty'
    """

    path: Path
    boxes: Boxes
    size: tuple[int, int]
    seconds: float
    error: str | None = None


def detect_files(
    detector: Any,
    paths: Sequence[Any],
    *,
    threshold: float | None = None,
    n_jobs: int | None = None,
) -> Iterator[Detected]:
    """Read image files and detect things in each, one after the other; few are held at a time.

    Parameters
    ----------
    detector : DeformableDetector
        A fitted detector.
    paths : list of paths
        Image files. One that cannot be read is told in ``error``.
    threshold : float, optional
        Least score; that of the detector by default.
    n_jobs : int, optional
        Number of images that are searched at the same time, as in joblib.

    Yields
    ------
    detected : Detected

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.detect import DeformableDetector, detect_files
    >>> images = np.random.default_rng(0).integers(0, 80, (4, 64, 64), np.uint8)
    >>> images[:, 10:42, 20:52] += 120
    >>> detector = DeformableDetector(area=1024).fit(images, [[[20, 10, 52, 42]]] * 4)
    >>> [found.error for found in detect_files(detector, ["gone.jpg"])]
    ['there is no such file']
    """

    def task(begin: int, end: int) -> Detected:
        return _detected(detector, Path(paths[begin]), threshold)

    yield from parallel.stream(task, parallel.ranges(len(paths), 1), n_jobs)


def _detected(detector: Any, path: Path, threshold: float | None) -> Detected:
    try:
        image = read_image(path, color=True)
    except ImageError as error:
        return Detected(path, Boxes([], scores=[]), (0, 0), 0.0, error.reason)
    begin = time.thread_time()
    found = detector.predict([image], threshold=threshold)[0]
    seconds = time.thread_time() - begin
    return Detected(path, found, (image.shape[1], image.shape[0]), seconds)


@dataclass(frozen=True, eq=False)
class DetectorEvaluation:
    """What a detector found in images, and what it should have found.

    Parameters
    ----------
    records : list of ImageBoxes
        What was drawn, in the images that could be read.
    found : list of Detected
        What was found in each, down to a low score.
    threshold : float
        The score from which the detector reports a box.
    unreadable : list of dict
        ``path`` and ``reason`` of images that could not be read.

    Attributes
    ----------
    matches : Matches
        Detections by falling score, and the truths that they match.
    average_precision, precision, recall : float
        The area under the curve, and the point of it at the threshold.
    seconds : float
        Mean time of one processor for an image.

    Examples
    --------
    >>> from hilbin.detect import Boxes, Detected, DetectorEvaluation, ImageBoxes
    >>> drawn = [ImageBoxes("a.jpg", [[0, 0, 10, 10], [20, 0, 30, 10]])]
    >>> boxes = Boxes([[0, 0, 10, 10], [50, 0, 60, 10]], scores=[0.9, 0.2])
    >>> evaluation = DetectorEvaluation(drawn, [Detected("a.jpg", boxes, (80, 20), 0.01)], 0.5)
    >>> evaluation.average_precision, evaluation.precision, evaluation.recall
    (0.5, 1.0, 0.5)
    >>> [miss.box.tolist() for miss in evaluation.misses()]
    [[20.0, 0.0, 30.0, 10.0]]
    """

    records: list[ImageBoxes]
    found: list[Detected]
    threshold: float
    unreadable: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        truths = [record.truths for record in self.records]
        ignored = [record.ignored for record in self.records]
        boxes = [one.boxes for one in self.found]
        matches = match_boxes(boxes, truths, ignored, limit=LIMIT)
        object.__setattr__(self, "matches", matches)

    matches: Matches = field(init=False)

    @property
    def average_precision(self) -> float:
        """The area under the curve of precision over recall; NaN without truths."""
        return self.matches.average_precision

    @property
    def precision(self) -> float:
        """The share of correct boxes among those above the threshold; NaN if there are none."""
        return self.matches.at(self.threshold)[0]

    @property
    def recall(self) -> float:
        """The share of the truths that are found above the threshold; NaN without truths."""
        return self.matches.at(self.threshold)[1]

    @property
    def seconds(self) -> float:
        """Mean time of one processor for an image, without reading it; NaN without images."""
        return float(np.mean([one.seconds for one in self.found])) if self.found else np.nan

    def picture(self, i: int) -> Array:
        """Read image ``i`` in color."""
        return read_image(self.records[i].path, color=True)

    def misses(self) -> list["Miss"]:
        """Return the truths that are not found, the lowest scores first."""
        scores = {
            (int(i), int(t)): float(s)
            for i, t, s in zip(
                self.matches.image, self.matches.truth, self.matches.scores, strict=True
            )
            if t >= 0
        }
        missed = [
            Miss(i, box, scores.get((i, t)))
            for i, record in enumerate(self.records)
            for t, box in enumerate(record.truths)
            if scores.get((i, t), -np.inf) < self.threshold
        ]
        return sorted(missed, key=lambda one: -np.inf if one.score is None else one.score)

    def false_alarms(self) -> list["FalseAlarm"]:
        """Return the boxes above the threshold that match no truth, the highest scores first."""
        alarms = []
        m = self.matches
        for i, k, score, truth in zip(m.image, m.box, m.scores, m.truth, strict=True):
            if truth == FALSE and score >= self.threshold:
                box = self.found[i].boxes.coordinates[k]
                overlap = iou([box], self.records[i].truths).max(initial=0.0)
                alarms.append(FalseAlarm(int(i), box, float(score), float(overlap)))
        return alarms

    def summary(self) -> str:
        """Return the evaluation in a few lines."""
        boxes = f"{self.matches.n_truths} boxes in {len(self.records)} images"
        lines = [f"average precision {self.average_precision:.3f} on {boxes}"]
        count = len(self.false_alarms())
        lines.append(
            f"at the threshold {self.threshold:.3g}: recall {_percent(self.recall)}, "
            f"precision {_percent(self.precision)}, {len(self.misses())} missed, "
            f"{count} false {'alarm' if count == 1 else 'alarms'}"
        )
        return "\n".join([*lines, f"{1e3 * self.seconds:.1f} ms per image"])


def _percent(share: float) -> str:
    return "unknown" if np.isnan(share) else f"{share:.1%}"


@dataclass(frozen=True, eq=False)
class Miss:
    """A truth that is not found above the threshold.

    Parameters
    ----------
    image : int
        Which of the images.
    box : array of shape (4,)
        The truth.
    score : float or None
        The score of the detection that matches it; None if there is none at all.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.detect import Miss
    >>> Miss(0, np.array([0.0, 0.0, 9.0, 9.0]), None).score is None
    True
    """

    image: int
    box: Array
    score: float | None


@dataclass(frozen=True, eq=False)
class FalseAlarm:
    """A detection above the threshold that matches no truth.

    Parameters
    ----------
    image : int
        Which of the images.
    box : array of shape (4,)
        The detection.
    score : float
        Its score.
    overlap : float
        Its highest IoU with a truth, taken or not.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.detect import FalseAlarm
    >>> FalseAlarm(0, np.array([0.0, 0.0, 9.0, 9.0]), 0.7, 0.1).score
    0.7
    """

    image: int
    box: Array
    score: float
    overlap: float


def evaluate_detector(
    detector: Any,
    records: Sequence[ImageBoxes],
    *,
    lowest: float = LOW,
    n_jobs: int | None = None,
    callback: Callable[[str, int, int], None] | None = None,
) -> DetectorEvaluation:
    """Compare the detections of a detector with annotated boxes.

    Parameters
    ----------
    detector : DeformableDetector
        A fitted detector.
    records : list of ImageBoxes
        Images that it was not fitted to, and their boxes, as of :func:`read_boxes`.
    lowest : float, default=-1.5
        Score down to which detections are collected, or the threshold if that is lower.
    n_jobs : int, optional
        Number of images that are searched at the same time, as in joblib.
    callback : callable, optional
        Called with the name of the stage, the number of images done, and their number.

    Returns
    -------
    evaluation : DetectorEvaluation

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from PIL import Image
    >>> from hilbin.detect import DeformableDetector, ImageBoxes, evaluate_detector
    >>> images = np.random.default_rng(0).integers(0, 80, (5, 64, 64), np.uint8)
    >>> images[:, 10:42, 20:52] += 120
    >>> detector = DeformableDetector(area=1024).fit(images[:4], [[[20, 10, 52, 42]]] * 4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "new.png"
    ...     Image.fromarray(images[4]).save(path)
    ...     found = evaluate_detector(detector, [ImageBoxes(path, [[20, 10, 52, 42]])])
    >>> found.average_precision
    1.0
    """
    threshold = float(detector.threshold_)
    found: list[Detected] = []
    kept: list[ImageBoxes] = []
    unreadable = []
    paths = [record.path for record in records]
    low = min(lowest, threshold)
    stream = detect_files(detector, paths, threshold=low, n_jobs=n_jobs)
    tell = callback or (lambda name, done, total: None)
    tell("detecting", 0, len(records))
    for done, (record, one) in enumerate(zip(records, stream, strict=True), 1):
        if one.error is None:
            sound = sound_boxes(record.boxes, one.size, str(record.path))
            kept.append(record.only(sound))
            found.append(one)
        else:
            unreadable.append({"path": str(record.path), "reason": one.error})
        tell("detecting", done, len(records))
    return DetectorEvaluation(kept, found, threshold, unreadable)
