"""Arrays kept on the disk between two runs.

An entry has the digest of its content in front and is written whole or not at all; one that is
damaged or cut off is as good as none. Names are digests of all that the content depends on.
"""

import hashlib
import io
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilbin import persist
from hilbin.files import write_whole

Arrays = dict[str, NDArray[Any]]
DIGEST = hashlib.sha256().digest_size


def fingerprint(*things: Any) -> str:
    """Name of what depends on these values, which JSON can hold."""
    return hashlib.sha256(json.dumps(things).encode()).hexdigest()


class Cache:
    """A folder of arrays and models.

    Parameters
    ----------
    folder : path
        Made when it is needed.
    """

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = Path(folder)

    def load(self, name: str) -> Arrays | None:
        """The arrays of an entry, or None if there is none that is whole."""
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

    def load_model(self, name: str) -> Any:
        """A model, or None if there is none that is whole."""
        try:
            return persist.load(self.folder / f"hilbin-{name}.model")
        except (OSError, persist.ModelFileError):
            return None

    def store_model(self, name: str, model: Any) -> None:
        """Keep a model under a name."""
        persist.save(model, self._made() / f"hilbin-{name}.model")

    def fingerprint_of(self, model: Any) -> str:
        """Name of what depends on this model, its parameters and what it has learned."""
        scratch = self._made() / f"hilbin-{os.getpid()}.model"
        persist.save(model, scratch)
        found = hashlib.sha256(scratch.read_bytes()).hexdigest()
        scratch.unlink()
        return found

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
