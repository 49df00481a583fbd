"""``hilbin detect``: a detector from files of boxes, what it finds in images, and how good it is.

The commands are :class:`~hilbin.detect.DeformableDetector`, :func:`~hilbin.detect.detect_files` and
:func:`~hilbin.detect.evaluate_detector` with files.
"""

import os
import shlex
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

import joblib
import numpy as np

from hilbin import parallel, persist
from hilbin.cli._console import Console
from hilbin.cli._drawing import copy_path, draw_boxes
from hilbin.cli._models import require_file
from hilbin.cli._outcome import InputError, csv_text, one_line, require_new
from hilbin.cli.predict import listed_images
from hilbin.cli.train import require_seed, seconds_of, size_of
from hilbin.detect import (
    DeformableDetector,
    DetectorEvaluation,
    ImageBoxes,
    detect_files,
    evaluate_detector,
    read_boxes,
)
from hilbin.files import require_writable
from hilbin.images import UnreadableImageWarning
from hilbin.report import write_detector_report

SILENT = ("source", "output", "jobs", "force")  # do not change the model


@dataclass(frozen=True)
class DetectOptions:
    """Arguments of :func:`train_detector`.

    Parameters
    ----------
    source : path
        A file or a folder of boxes, as :func:`~hilbin.detect.read_boxes` takes it.
    output : path
        Where the detector goes.
    label : str, optional
        Which boxes to learn from, if they have several labels.
    components, parts, words, area, upsample, mirror
        As ``n_components``, ``n_parts``, ``n_words`` and the others of
        :class:`~hilbin.detect.DeformableDetector`.
    budget : str, optional
        Time limit of the training, such as ``90s``, ``5m``, ``1h``.
    seed : int, default=0
        Random seed.
    jobs : int, default=-1
        Threads; -1 is all processors.
    force : bool, default=False
        Whether to overwrite the output.

    Examples
    --------
    >>> from hilbin.cli.detect import DetectOptions
    >>> DetectOptions("boxes.xml", "m.hilbin", label="cat", parts=6).command()
    'hilbin detect train boxes.xml -o m.hilbin --label cat --parts 6'
    """

    source: str | os.PathLike[str]
    output: str | os.PathLike[str]
    label: str | None = None
    components: int = 1
    parts: int = 0
    words: int | None = None
    area: float = 6400.0
    upsample: int | None = None
    mirror: bool = True
    budget: str | None = None
    seed: int = 0
    jobs: int = -1
    force: bool = False

    def command(self) -> str:
        """Return the command line that asks for the same detector."""
        words = ["hilbin", "detect", "train", os.fspath(self.source), "-o", os.fspath(self.output)]
        for option in fields(self):
            value = getattr(self, option.name)
            if option.name in SILENT or value == option.default:
                continue
            words += (
                ["--no-mirror"] if option.name == "mirror" else [f"--{option.name}", f"{value}"]
            )
        return shlex.join(words)

    def detector(self) -> DeformableDetector:
        """Return the detector, not fitted."""
        return DeformableDetector(
            n_components=self.components, n_parts=self.parts, n_words=self.words, area=self.area,
            upsample="auto" if self.upsample is None else self.upsample, mirror=self.mirror,
            max_time=None if self.budget is None else seconds_of(self.budget),
            random_state=self.seed,
        )  # fmt: skip


@dataclass(frozen=True)
class TrainedDetector:
    """A detector and its file.

    Parameters
    ----------
    output : Path
        The file.
    n_bytes : int
        Its size.
    detector : DeformableDetector
        The detector.
    about : dict
        How it was made, as the file says it.
    unreadable : bool
        Whether some images could not be read.
    """

    output: Path
    n_bytes: int
    detector: DeformableDetector
    about: dict[str, Any]
    unreadable: bool


def train_detector(options: DetectOptions, console: Console | None = None) -> TrainedDetector:
    """Learn a detector from boxes and write it to a file.

    Parameters
    ----------
    options : DetectOptions
        What to learn, and from what.
    console : Console, optional
        Told of the progress; nobody by default.

    Returns
    -------
    trained : TrainedDetector
    """
    console = Console(quiet=True) if console is None else console
    require_seed(options.seed)
    require_writable(options.output)
    require_new(options.output, options.force)
    detector = options.detector()
    records = read_records(options.source, options.label)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with _computing(options.jobs), _stages(console) as callback:
            detector.fit(
                [record.path for record in records],
                [record.boxes for record in records],
                [record.ignore for record in records],
                callback=callback,
            )
    for one in caught:
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    unreadable = any(issubclass(one.category, UnreadableImageWarning) for one in caught)
    about = _about(options, records, detector)
    persist.save(detector, options.output, metadata=about)
    output = Path(options.output)
    return TrainedDetector(output, os.path.getsize(output), detector, about, unreadable)


def read_records(source: str | os.PathLike[str], label: str | None) -> list[ImageBoxes]:
    """Return the boxes of a label, or of the only one there is.

    Parameters
    ----------
    source : path
        A file or a folder of boxes.
    label : str or None
        The label; None if there is but one.
    """
    records = read_boxes(source, labels=label)
    counts = Counter(str(one) for record in records for one in record.labels[~record.ignore])
    if not counts:
        raise InputError(f"{os.fspath(source)}: there is no box in it")
    if label is None and len(counts) > 1:
        listed = ", ".join(f"{name or 'no label'} ({n})" for name, n in counts.most_common())
        raise InputError(f"{os.fspath(source)}: has several labels, choose by --label: {listed}")
    return records


def _about(
    options: DetectOptions, records: Sequence[ImageBoxes], detector: DeformableDetector
) -> dict[str, Any]:
    labels = {str(one) for record in records for one in record.labels[~record.ignore]}
    return {
        "label": "" if len(labels) != 1 else labels.pop(),
        "boxes": int(sum(len(record.truths) for record in records)),
        "images": len(records),
        "cells": [[shape[0], shape[2]] for shape in (one.shape for one in detector.filters_)],
        "threshold": float(detector.threshold_),
        "unreachable": len(detector.unreachable_),
        "converged": bool(detector.converged_),
        "source": os.fspath(options.source),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": options.command(),
    }


@contextmanager
def _computing(jobs: int) -> Iterator[None]:
    with joblib.parallel_config(n_jobs=jobs), parallel.blas_threads(jobs):
        yield


@contextmanager
def _stages(console: Console) -> Iterator[Callable[[str, int, int], None]]:
    """Yield a callback for a fit, which begins every stage at 0 and may be called by threads."""
    lock, seen = Lock(), set[str]()
    with console.following() as follow:

        def callback(name: str, done: int, total: int) -> None:
            with lock:
                if name not in seen:
                    seen.add(name)
                    follow(name, 0, total)
                follow(name, done, total)

        yield callback


def summary(trained: TrainedDetector) -> str:
    """Return what ``hilbin detect train`` prints."""
    about = trained.about
    cells = ", ".join(f"{rows} by {columns}" for rows, columns in about["cells"])
    what = about["label"] or "things"
    lines = [
        f"{trained.output}: a detector of {what}, {cells} cells, learned from {about['boxes']} "
        f"boxes in {about['images']} images, {size_of(trained.n_bytes)}",
        f"threshold {about['threshold']:.3g}, the one of best F1 in images that were left out",
    ]
    for one in trained.detector.unreachable_:
        lines.append(
            f"not learned from: box {one['box']} of {one_line(str(one['image']))}, which no window "
            f"meets (IoU {one['iou']:.2f}); --area or --upsample may help"
        )
    if not about["converged"]:
        lines.append("training was cut short; a larger --budget may give a better detector")
    return "\n".join(lines)


def load_detector(path: str | os.PathLike[str]) -> tuple[DeformableDetector, dict[str, Any]]:
    """Load a fitted detector, and what its file says about it."""
    require_file(os.fspath(path))
    detector = persist.load(path)
    if not isinstance(detector, DeformableDetector) or not hasattr(detector, "templates_"):
        raise InputError(
            f"{os.fspath(path)}: holds {type(detector).__name__}, not a fitted "
            "DeformableDetector, which hilbin detect train writes"
        )
    return detector, persist.info(path).metadata


@dataclass
class DetectedThings:
    """What was found in all images.

    Parameters
    ----------
    images : list of ImageBoxes
        Boxes, labels and scores of every image that could be read.
    probabilities : list of arrays or None
        Probabilities of the boxes of every image.
    unreadable : list of dict
        ``path`` and ``reason`` of images that could not be read.
    """

    images: list[ImageBoxes] = field(default_factory=list)
    probabilities: list[Any] = field(default_factory=list)
    unreadable: list[dict[str, str]] = field(default_factory=list)


def run_detector(
    model: str | os.PathLike[str],
    paths: Sequence[str | os.PathLike[str]],
    *,
    threshold: float | None = None,
    draw: str | os.PathLike[str] | None = None,
    jobs: int = -1,
    console: Console | None = None,
) -> DetectedThings:
    """Find things in images.

    Parameters
    ----------
    model : path
        The file of a detector.
    paths : sequence of paths
        Images, and folders of images.
    threshold : float, optional
        Least score; that of the detector by default.
    draw : path, optional
        Folder for copies of the images with the boxes drawn in.
    jobs : int, default=-1
        Threads; -1 is all processors.
    console : Console, optional
        Told of the progress.

    Returns
    -------
    found : DetectedThings
    """
    console = Console(quiet=True) if console is None else console
    if threshold is not None and not np.isfinite(threshold):
        raise InputError(f"--threshold must be a finite number, got {threshold}")
    detector, about = load_detector(model)
    images = listed_images([Path(path) for path in paths])
    found, taken = DetectedThings(), set[Path]()
    with _computing(jobs), console.stage("detecting", len(images)) as advance:
        for one in detect_files(detector, images, threshold=threshold):
            if one.error is not None:
                found.unreadable.append({"path": str(one.path), "reason": one.error})
            else:
                labels = [str(about.get("label", ""))] * len(one.boxes)
                record = ImageBoxes(one.path, one.boxes.coordinates, labels, None, one.boxes.scores)
                found.images.append(record)
                found.probabilities.append(one.boxes.probabilities)
                if draw is not None:
                    draw_boxes(
                        record, one.boxes.probabilities, copy_path(Path(draw), one.path, taken)
                    )
            advance(1)
    return found


def _rows(found: DetectedThings) -> Iterator[tuple[str, Any, str, float, float | None]]:
    """Yield path, box, label, score and probability of everything that was found."""
    for record, shares in zip(found.images, found.probabilities, strict=True):
        scores = np.empty(0) if record.scores is None else record.scores
        for k, box in enumerate(record.boxes):
            share = None if shares is None else float(shares[k])
            yield str(record.path), box, str(record.labels[k]), float(scores[k]), share


def as_lines(found: DetectedThings) -> str:
    """Return what was found as lines, by tabs: path, corners, label, probability or score."""
    lines = []
    for path, box, label, score, share in _rows(found):
        worth = f"{score:.3f}" if share is None else f"{share:.1%}"
        corners = [f"{value:.1f}" for value in box]
        lines.append("\t".join([one_line(path), *corners, one_line(label), worth]))
    empty = (record for record in found.images if not len(record.boxes))
    lines += [f"{one_line(str(record.path))}\tnothing found" for record in empty]
    return "\n".join(lines)


def as_csv(found: DetectedThings) -> str:
    """Return what was found as a CSV file, a line for each box."""
    heads = ["path", "xmin", "ymin", "xmax", "ymax", "label", "score", "probability"]
    return csv_text(
        heads,
        (
            [path, *box.tolist(), label, score, share]
            for path, box, label, score, share in _rows(found)
        ),
    )


def as_json(found: DetectedThings) -> dict[str, Any]:
    """Return what was found as JSON can hold it."""
    boxes: dict[str, list[Any]] = {str(record.path): [] for record in found.images}
    for path, box, *told in _rows(found):
        about = dict(zip(("label", "score", "probability"), told, strict=True))
        boxes[path].append({"box": box.tolist(), **about})
    images = [{"path": path, "boxes": listed} for path, listed in boxes.items()]
    return {"images": images, "unreadable": found.unreadable}


def evaluate(
    model: str | os.PathLike[str],
    source: str | os.PathLike[str],
    *,
    label: str | None = None,
    report: str | os.PathLike[str] | None = None,
    jobs: int = -1,
    console: Console | None = None,
) -> DetectorEvaluation:
    """Compare what a detector finds with boxes that people drew.

    Parameters
    ----------
    model : path
        The file of a detector.
    source : path
        A file or a folder of boxes of images that it has not seen.
    label : str, optional
        Which boxes to find; those of the label that the detector has learned by default.
    report : path, optional
        Where to write a page about the detector.
    jobs : int, default=-1
        Threads; -1 is all processors.
    console : Console, optional
        Told of the progress.

    Returns
    -------
    evaluation : DetectorEvaluation
    """
    console = Console(quiet=True) if console is None else console
    if report is not None:
        require_writable(report)
    detector, about = load_detector(model)
    records = read_records(source, label or _learned_label(source, about))
    with _computing(jobs), _stages(console) as callback:
        found = evaluate_detector(detector, records, callback=callback)
    if not found.found:
        raise InputError(f"{os.fspath(source)}: none of its {len(records)} images can be read")
    if report is not None:
        write_detector_report(
            found,
            report,
            title=f"{Path(model).stem}: {about.get('label') or 'detector'}",
            filters=[one.transpose(0, 2, 1) for one in detector.filters_],
            about=about,
        )
    return found


def _learned_label(source: str | os.PathLike[str], about: dict[str, Any]) -> str | None:
    """Return the label that the detector has learned, or None if the boxes have no labels."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are told when the boxes are read for good
        known = {str(one) for record in read_boxes(source) for one in record.labels}
    return None if known <= {""} else about.get("label") or None


def evaluation_json(found: DetectorEvaluation) -> dict[str, Any]:
    """Return an evaluation as JSON can hold it."""
    numbers = {
        "average_precision": found.average_precision,
        "threshold": found.threshold,
        "precision": found.precision,
        "recall": found.recall,
        "seconds_per_image": found.seconds,
    }
    return {
        **{name: float(value) if np.isfinite(value) else None for name, value in numbers.items()},
        "images": len(found.records),
        "boxes": found.matches.n_truths,
        "mistakes": [dict(zip(MISTAKES, row, strict=True)) for row in mistakes(found)],
        "unreadable": found.unreadable,
    }


MISTAKES = ("kind", "path", "xmin", "ymin", "xmax", "ymax", "score", "overlap")


def mistakes(found: DetectorEvaluation) -> list[list[Any]]:
    """Return a row for each miss and each false alarm."""
    paths = [str(record.path) for record in found.records]
    missed = [
        ["miss", paths[one.image], *one.box.tolist(), one.score, None] for one in found.misses()
    ]
    alarms = [
        ["false alarm", paths[one.image], *one.box.tolist(), one.score, one.overlap]
        for one in found.false_alarms()
    ]
    return missed + alarms


def mistakes_csv(found: DetectorEvaluation) -> str:
    """Return misses and false alarms as a CSV file."""
    return csv_text(MISTAKES, mistakes(found))
