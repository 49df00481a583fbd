"""``hilbin detect train``: a detector from boxes in images."""

import os
import shlex
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hilbin import persist
from hilbin.cache import ArrayCache
from hilbin.cli._console import Console
from hilbin.cli._outcome import one_line, require_output
from hilbin.cli.detect.files import computing, read_records, stages
from hilbin.cli.train import require_seed, seconds_of, size_of
from hilbin.detect import DeformableDetector, ImageBoxes
from hilbin.images import UnreadableImageWarning

LISTED = 10  # boxes that are named
SILENT = ("source", "output", "jobs", "cache", "keep_cache", "force")  # do not change the model


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
    cache : path, optional
        Folder for how far the training is, until the detector is written; beside the output by
        default.
    keep_cache : bool, default=False
        Whether to keep the cache afterwards.

    Examples
    --------
    >>> from hilbin.cli.detect.train import DetectOptions
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
    cache: str | os.PathLike[str] | None = None
    keep_cache: bool = False

    def cache_folder(self) -> Path:
        """Return the folder for how far the training is."""
        return Path(f"{os.fspath(self.output)}.cache" if self.cache is None else self.cache)

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
            cache=self.cache_folder(), random_state=self.seed,
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
    require_output(options.output, (options.source,), force=options.force)
    detector = options.detector()
    records = read_records(options.source, options.label)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with computing(options.jobs), stages(console) as callback:
            try:
                detector.fit(
                    [record.path for record in records],
                    [record.boxes for record in records],
                    [record.ignore for record in records],
                    callback=callback,
                )
            except KeyboardInterrupt:
                raise KeyboardInterrupt("run the same command again to continue") from None
    detector.set_params(cache=None)  # the file is the same wherever the cache was
    for one in caught:
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    unreadable = any(issubclass(one.category, UnreadableImageWarning) for one in caught)
    about = _about(options, records, detector)
    persist.save(detector, options.output, metadata=about)
    if not options.keep_cache:
        ArrayCache(options.cache_folder()).remove()
    output = Path(options.output)
    return TrainedDetector(output, os.path.getsize(output), detector, about, unreadable)


def _about(
    options: DetectOptions, records: Sequence[ImageBoxes], detector: DeformableDetector
) -> dict[str, Any]:
    labels = {str(one) for record in records for one in record.labels[~record.ignore]}
    return {
        "label": "" if len(labels) != 1 else labels.pop(),
        "boxes": int(sum(len(record.truths) for record in records)),
        "images": len(records),
        "images with boxes": sum(len(record.truths) > 0 for record in records),
        "cells": [[shape[0], shape[2]] for shape in (one.shape for one in detector.filters_)],
        "threshold": float(detector.threshold_),
        "unreachable": len(detector.unreachable_),
        "converged": bool(detector.converged_),
        "source": os.fspath(options.source),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": options.command(),
    }


def summary(trained: TrainedDetector) -> str:
    """Return what ``hilbin detect train`` prints."""
    about = trained.about
    left_out = about["images with boxes"] > 1
    reason = "best F1 in images that were left out" if left_out else "not calibrated: one image"
    cells = ", ".join(f"{rows} by {columns}" for rows, columns in about["cells"])
    what = about["label"] or "things"
    lines = [
        f"{trained.output}: a detector of {what}, {cells} cells, learned from {about['boxes']} "
        f"boxes in {about['images']} images, {size_of(trained.n_bytes)}",
        f"threshold {about['threshold']:.3g}, {reason}",
    ]
    unreachable = trained.detector.unreachable_
    for one in unreachable[:LISTED]:
        lines.append(
            f"not learned from: box {one['box']} of {one_line(str(one['image']))}, which no window "
            f"meets (IoU {int(100 * one['iou']) / 100:.2f})"  # below 0.5, and not rounded to it
        )
    if len(unreachable) > LISTED:
        lines.append(f"and {len(unreachable) - LISTED} more, which --json lists")
    if unreachable:
        lines.append("another --area, --upsample or --components may reach such boxes")
    if not about["converged"]:
        lines.append("training was cut short; a larger --budget may give a better detector")
    return "\n".join(lines)
