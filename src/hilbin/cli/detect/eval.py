"""``hilbin detect eval``: how good a detector is on boxes that it has not seen."""

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from hilbin.cli._console import Console
from hilbin.cli._outcome import InputError, csv_text, require_output
from hilbin.cli.detect.files import computing, load_detector, read_records, stages
from hilbin.detect import DetectorEvaluation, evaluate_detector, read_boxes
from hilbin.report import write_detector_report

MISTAKES = ("kind", "path", "xmin", "ymin", "xmax", "ymax", "score", "overlap")


def evaluate(
    model: str | os.PathLike[str],
    source: str | os.PathLike[str],
    *,
    label: str | None = None,
    report: str | os.PathLike[str] | None = None,
    jobs: int = -1,
    console: Console | None = None,
) -> DetectorEvaluation:
    """Compare the detections of a detector with annotated boxes.

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
    require_output(report, (model, source))
    detector, about = load_detector(model)
    records = read_records(source, label or _learned_label(source, about))
    with computing(jobs), stages(console) as callback:
        found = evaluate_detector(detector, records, callback=callback)
    if not found.found:
        raise InputError(f"{os.fspath(source)}: none of its {len(records)} images can be read")
    if report is not None:
        write_detector_report(
            found,
            report,
            title=f"{Path(model).stem}: {about.get('label') or 'detector'}",
            detector=detector,
            about=about,
        )
    return found


def _learned_label(source: str | os.PathLike[str], about: dict[str, Any]) -> str | None:
    """Return the label that the detector has learned, or None if the boxes have no labels."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are told when the boxes are read for good
        known = {str(one) for record in read_boxes(source) for one in record.labels}
    return None if known <= {""} else about.get("label") or None


def as_values(found: DetectorEvaluation) -> dict[str, Any]:
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


def as_csv(found: DetectorEvaluation) -> str:
    """Return misses and false alarms as a CSV file."""
    return csv_text(MISTAKES, mistakes(found))
