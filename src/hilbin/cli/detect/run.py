"""``hilbin detect run``: find things in images."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hilbin.cli._console import Console
from hilbin.cli._outcome import InputError, csv_text, one_line
from hilbin.cli.detect.drawing import copy_path, draw_boxes
from hilbin.cli.detect.files import computing, load_detector
from hilbin.cli.predict import listed_images
from hilbin.detect import ImageBoxes, detect_files

NOTHING = {"box": [None] * 4, "label": None, "score": None, "probability": None}


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
    with computing(jobs), console.stage("detecting", len(images)) as advance:
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


def _told(found: DetectedThings) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the path of every image and what was found in it."""
    for record, shares in zip(found.images, found.probabilities, strict=True):
        scores = np.empty(0) if record.scores is None else record.scores
        yield (
            str(record.path),
            [
                {
                    "box": box.tolist(),
                    "label": str(record.labels[k]),
                    "score": float(scores[k]),
                    "probability": None if shares is None else float(shares[k]),
                }
                for k, box in enumerate(record.boxes)
            ],
        )


def as_lines(found: DetectedThings) -> str:
    """Return what was found as lines, by tabs: path, corners, label, probability or score."""
    lines = []
    for path, things in _told(found):
        for one in things:
            share, score = one["probability"], one["score"]
            worth = f"{score:.3f}" if share is None else f"{share:.1%}"
            corners = [f"{value:.1f}" for value in one["box"]]
            lines.append("\t".join([one_line(path), *corners, one_line(one["label"]), worth]))
        if not things:
            lines.append(f"{one_line(path)}\tnothing found")
    return "\n".join(lines)


def as_csv(found: DetectedThings) -> str:
    """Return what was found as a CSV file: a line for each box, or for an image without any."""
    heads = ["path", "xmin", "ymin", "xmax", "ymax", "label", "score", "probability"]
    rows = (
        [path, *one["box"], one["label"], one["score"], one["probability"]]
        for path, things in _told(found)
        for one in things or [NOTHING]
    )
    return csv_text(heads, rows)


def as_values(found: DetectedThings) -> dict[str, Any]:
    """Return what was found as JSON can hold it."""
    images = [{"path": path, "boxes": things} for path, things in _told(found)]
    return {"images": images, "unreadable": found.unreadable}
