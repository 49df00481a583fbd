"""Duplicates among images, without any features: from small hashes of them alone."""

from typing import Any

from hilbin import parallel
from hilbin.auto.base import Callback, Stopwatch
from hilbin.auto.describing import unlabeled_images
from hilbin.cache import digest
from hilbin.images import ImageError, read_image
from hilbin.inspection import difference_hash, duplicate_groups
from hilbin.inspection.duplicates import READ_SIDE

CHUNK = 16


def duplicate_images(
    images: Any, *, n_jobs: int | None = None, callback: Callback | None = None
) -> tuple[list[list[str]], list[dict[str, str]]]:
    """Find identical and nearly identical images.

    Parameters
    ----------
    images : path, or sequence of paths or arrays
        A folder, all images below which are taken, or the images themselves.
    n_jobs : int, optional
        Threads, as in joblib.
    callback : callable, optional
        Called with the name of the stage, how many images are done, and how many there are.

    Returns
    -------
    groups : list of lists of str
        Names of images that belong together, as :func:`hilbin.inspection.duplicate_groups` finds
        them; the largest groups first.
    unreadable : list of dict
        ``name`` and ``reason`` of images that cannot be read.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.auto import duplicate_images
    >>> images = np.random.default_rng(0).integers(0, 256, (4, 17, 17), np.uint8)
    >>> duplicate_images([*images, (0.8 * images[2]).astype(np.uint8)])
    ([['image 3', 'image 5']], [])
    """
    data, _ = unlabeled_images(images)
    if not data.images:
        raise ValueError(f"{data.source}: there is no image")
    known: dict[int, tuple[str, str]] = {}
    wrong: dict[int, str] = {}

    def task(begin: int, end: int) -> None:
        for i in range(begin, end):
            try:
                small = read_image(data.images[i], max_side=READ_SIDE)
                known[i] = difference_hash(small), digest(data.images[i])
            except ImageError as error:
                wrong[i] = error.reason

    with Stopwatch(callback).stage("comparing images", len(data.images)) as tell:
        for begin, end in parallel.ranges(len(data.images), 16 * CHUNK):
            parts = [(begin + b, begin + e) for b, e in parallel.ranges(end - begin, CHUNK)]
            parallel.run(task, parts, n_jobs)
            tell(end)
    good = sorted(known)
    groups = duplicate_groups([known[i][0] for i in good], [known[i][1] for i in good])
    unreadable = [{"name": data.names[i], "reason": wrong[i]} for i in sorted(wrong)]
    return [[data.names[good[i]] for i in group] for group in groups], unreadable
