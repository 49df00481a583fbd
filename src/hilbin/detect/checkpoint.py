"""How far the training of a detector is, in a folder, so that a later one resumes.

Kept are a few hundred kilobytes that the rest is computed from: the weights and the working set of
a template after a pass, the rows of parts as windows and displacements, and what the folds have
found. Cells of images are read again. What is kept is known by the parameters, the boxes and the
names, sizes and times of the image files. A training that resumes gives the same detector, bit for
bit.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np

from hilbin.cache import ArrayCache, Arrays, digest, fingerprint, image_marks

VERSION = 1
EVERY = 2.0  # seconds between two states of a descent that are kept


class Checkpoint:
    """The stages of one training, in a folder.

    Parameters
    ----------
    folder : path or None
        Where they are kept; None keeps nothing.
    parameters : dict
        All that the detector depends on, but for images and boxes, as JSON can hold it.
    images : sequence of paths or arrays
    arrays : sequence of arrays
        Boxes, and which are ignored.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from hilbin.detect.checkpoint import Checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Checkpoint(folder, {"C": 1.0}, [], []).store("first", {"n": np.array(3)})
    ...     found = Checkpoint(folder, {"C": 1.0}, [], []).load("first")
    ...     found, Checkpoint(folder, {"C": 2.0}, [], []).load("first")
    ({'n': array(3)}, None)
    """

    def __init__(self, folder: Any, parameters: dict[str, Any], images: Any, arrays: Any) -> None:
        self._cache = None if folder is None else ArrayCache(folder)
        self._last = time.monotonic()
        if self._cache is not None:
            sources = [Path(i) if isinstance(i, str) else _source(i) for i in images]
            marks = [digest(np.asarray(array)) for array in arrays]
            self._key = fingerprint(VERSION, parameters, image_marks(sources), marks)

    def load(self, stage: str) -> Arrays | None:
        """Return what was kept of a stage, or None."""
        return None if self._cache is None else self._cache.load(fingerprint(self._key, stage))

    def store(self, stage: str, arrays: Arrays) -> None:
        """Keep how far a stage is."""
        if self._cache is not None:
            self._cache.store(fingerprint(self._key, stage), arrays)
            self._last = time.monotonic()

    def due(self) -> bool:
        """Tell whether it is time to keep a state again."""
        return self._cache is not None and time.monotonic() - self._last >= EVERY


def _source(image: Any) -> Any:
    return Path(image) if hasattr(image, "__fspath__") else np.asarray(image)
