"""Arrays in a folder, so that long work that was interrupted resumes.

An entry has the digest of its content in front and is written whole or not at all; one that is
damaged or cut off is as good as none. Names are digests of all that the content depends on.
"""

import hashlib
import io
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from hilbin._arrays import Array
from hilbin.files import write_whole

DIGEST = hashlib.sha256().digest_size

Arrays = dict[str, Array]


def fingerprint(*things: Any) -> str:
    """Return the name of what depends on these values, which JSON can hold."""
    return hashlib.sha256(json.dumps(things).encode()).hexdigest()


class ArrayCache:
    """A folder of arrays.

    Parameters
    ----------
    folder : path
        Made when it is needed.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from hilbin.cache import ArrayCache, fingerprint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cache = ArrayCache(folder)
    ...     cache.store(fingerprint("squares", 3), {"found": np.arange(3) ** 2})
    ...     cache.load(fingerprint("squares", 3)), cache.load(fingerprint("cubes", 3))
    ({'found': array([0, 1, 4])}, None)
    """

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = Path(folder)

    def load(self, name: str) -> Arrays | None:
        """Return the arrays of an entry, or None if there is none that is whole."""
        try:
            content = (self.folder / f"hilbin-{name}.rows").read_bytes()
        except OSError:
            return None
        if hashlib.sha256(content[DIGEST:]).digest() != content[:DIGEST]:
            return None
        with np.load(io.BytesIO(content[DIGEST:]), allow_pickle=False) as arrays:
            return dict(arrays)

    def store(self, name: str, arrays: Arrays) -> None:
        """Keep arrays under a name."""
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)  # type: ignore[arg-type]
        content = buffer.getvalue()
        write_whole(
            self._made() / f"hilbin-{name}.rows", hashlib.sha256(content).digest() + content
        )

    def remove(self) -> None:
        """Delete the entries, and the folder if nothing else is in it."""
        for pattern in ("hilbin-*.rows", "hilbin-*.model", ".hilbin-*.part"):
            for entry in self.folder.glob(pattern):
                entry.unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()

    def _made(self) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder


def image_marks(images: Sequence[Any]) -> list[tuple[str, int, int]]:
    """Return what tells that an image is still the same: name, size and time, or its pixels."""
    marks = []
    for image in images:
        if not isinstance(image, os.PathLike):
            marks.append((digest(image), image.size, 0))
            continue
        file = Path(image)
        try:
            status = file.stat()
            marks.append((str(file.absolute()), status.st_size, status.st_mtime_ns))
        except OSError:
            marks.append((str(file.absolute()), -1, -1))
    return marks


def digest(image: Any) -> str:
    """Return the SHA-256 of a file, or of the pixels of an array."""
    if isinstance(image, os.PathLike):
        return hashlib.sha256(Path(image).read_bytes()).hexdigest()
    shape = f"{image.shape} {image.dtype} ".encode()
    return hashlib.sha256(shape + np.ascontiguousarray(image).tobytes()).hexdigest()
