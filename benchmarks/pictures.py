"""Labeled photographs: sets of image files, split as they usually are."""

import tarfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from data import Array

from hilbin.images import labeled_images


class Pictures(NamedTuple):
    """Images to train on and images to test on, with their classes."""

    train: list[Any]
    y: Array
    test: list[Any]
    y_test: Array

    def sample(self, per_class: int | None) -> "Pictures":
        """At most that many images of every class, of either part."""
        if per_class is None:
            return self
        parts: list[Any] = []
        for images, y in ((self.train, self.y), (self.test, self.y_test)):
            kept = np.sort(np.concatenate([np.flatnonzero(y == c)[:per_class] for c in set(y)]))
            parts += [[images[i] for i in kept], y[kept]]
        return Pictures(*parts)


def pictures(folder: Path | None, name: str, scratch: Path) -> Pictures | None:
    """The set ``name/name.tar.gz``, unpacked into ``scratch``; a line and None if it is missing."""
    path = (folder or Path()) / name / f"{name}.tar.gz"
    if folder is None or not path.exists():
        print(f"{name} is left out: " + (f"no {path}" if folder else "no --data"))
        return None
    with tarfile.open(path) as archive:
        archive.extractall(scratch, filter="data")
    parts: list[Any] = []
    for part in ("train", "test"):
        files, labels = labeled_images(scratch / name / part)
        parts += [files, np.array(labels)]
    return Pictures(*parts)
