"""What the commands share: boxes and detectors from files, threads, progress."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import joblib

from hilbin import parallel, persist
from hilbin.cli._console import Console
from hilbin.cli._models import require_file
from hilbin.cli._outcome import InputError
from hilbin.detect import DeformableDetector, ImageBoxes, read_boxes


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


@contextmanager
def computing(jobs: int) -> Iterator[None]:
    """Use so many threads for all that is computed inside."""
    with joblib.parallel_config(n_jobs=jobs), parallel.blas_threads(jobs):
        yield


@contextmanager
def stages(console: Console) -> Iterator[Callable[[str, int, int], None]]:
    """Yield a callback for a fit, which begins every stage at 0 and may be called by threads.

    A stage of a fit that begins with something done resumes, which is said.
    """
    lock, seen = Lock(), set[str]()
    with console.following() as follow:

        def callback(name: str, done: int, total: int) -> None:
            with lock:
                if name not in seen:
                    seen.add(name)
                    if done:
                        console.say(f"{name}: resumed at {done / total:.0%}")
                    follow(name, 0, total)
                follow(name, done, total)

        yield callback
