"""The running sum on the disk.

One file holds the arrays of the sum and, as JSON, how far it has come, which data are in it and
what is summed. It is written whole or not at all, so that a job killed at any moment finds the last
one. A checkpoint of other data or of another sum is refused, with what differs; files that are not
in the sum yet may have changed: one that was found broken can be mended.
"""

import json
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np

from hilbin.files import written_whole
from hilbin.stream.chunks import CheckpointError

FILE = "sum.npz"
ABOUT = "about"
FORMAT = 1
SHARE = 0.05  # of the time, at most, goes into writing


class Progress(NamedTuple):
    """How far a sum has come."""

    chunks: int = 0
    rows: int = 0
    notes: tuple[str, ...] = ()
    done: bool = False


class Checkpoint:
    """Writes a running sum now and then, and finds it again.

    Parameters
    ----------
    folder : path
        The folder; made if it is not there.
    fingerprint : callable
        Maps a number of rows to the fingerprint of the data they are in.
    key : dict
        What is summed.
    every : float
        Seconds between two writings, more if writing is slow; 0 writes after every chunk.
    """

    def __init__(
        self, folder: Path, fingerprint: Callable[[int], dict[str, Any]], key: Any, every: float
    ):
        self.path = folder / FILE
        self._fingerprint, self._key, self._every = fingerprint, plain(key), every
        self._last = time.monotonic()
        self.written: Progress | None = None
        self.failed = False
        folder.mkdir(parents=True, exist_ok=True)
        for part in folder.glob(".hilbin-*.part"):  # of a job killed while it was writing
            part.unlink(missing_ok=True)

    def found(self) -> tuple[Progress, dict[str, Any]]:
        """Return how far the last job has come, and the state of its sum."""
        if not self.path.exists():
            return Progress(), {}
        try:
            with np.load(self.path, allow_pickle=False) as file:
                state = {name.removeprefix("="): file[name] for name in file.files if name != ABOUT}
                about = json.loads(file[ABOUT].tobytes())
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise CheckpointError(f"{self.path} is damaged ({error}): remove it") from error
        chunks, rows, notes = about["progress"]
        progress = Progress(chunks, rows, tuple(notes), about["done"])
        differing = differences(about["of"], self._about(progress.rows))
        if differing:
            raise CheckpointError(
                f"{self.path} is the checkpoint of another sum: {'; '.join(differing)}. Remove it, "
                "or give another folder"
            )
        self.written = progress
        return progress, state

    def _about(self, rows: int) -> dict[str, Any]:
        now = {"format": FORMAT, "data": self._fingerprint(rows), "key": self._key}
        about: dict[str, Any] = json.loads(json.dumps(now))
        return about

    @property
    def is_due(self) -> bool:
        """Whether it is time to write."""
        return time.monotonic() - self._last >= self._every

    def write(self, total: Any, progress: Progress) -> None:
        """Write the sum, if it is not what was written last."""
        if progress == self.written or total is None:
            return
        begin = time.monotonic()
        about = {
            "progress": [progress.chunks, progress.rows, progress.notes],
            "done": progress.done,
            "of": self._about(progress.rows),
        }
        text = np.frombuffer(json.dumps(about).encode(), np.uint8)
        # "=" before their names, so that no array of a state is taken for savez's own arguments
        arrays: dict[str, Any] = {f"={name}": array for name, array in state_of(total).items()}
        arrays[ABOUT] = text
        try:
            with written_whole(self.path) as file:
                np.savez(file, **arrays)
        except OSError as error:
            self.failed = True
            kept = f"that of {self.written.chunks} chunks is kept" if self.written else "none yet"
            reason = f"the checkpoint of {progress.chunks} chunks cannot be written ({kept})"
            raise OSError(
                error.errno, f"{reason}: {error.strerror or error}", str(self.path)
            ) from error
        self.written = progress
        self._last = time.monotonic()
        if self._every > 0:
            self._last += max(0.0, (self._last - begin) / SHARE - self._every)

    def remove(self) -> None:
        """Remove the file, and the folder if nothing else is in it."""
        self.path.unlink(missing_ok=True)
        if not any(self.path.parent.iterdir()):
            self.path.parent.rmdir()


def state_of(total: Any) -> dict[str, Any]:
    """Return the arrays of a statistic, or of a plain array or number."""
    if hasattr(total, "state"):
        state: dict[str, Any] = total.state()
        return state
    return {"sum": np.asarray(total)}


def restored(state: dict[str, Any], like: Any) -> Any:
    """Return the sum of a state; it is of the kind of ``like``."""
    if hasattr(like, "from_state"):
        return type(like).from_state(state)
    if isinstance(like, np.ndarray):
        return state["sum"]
    return state["sum"][()] if isinstance(like, np.generic) else state["sum"].item()


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it; what is no number, text or collection becomes a hash."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return f"{type(value).__name__} {joblib.hash(value)}"


def differences(then: Any, now: Any, where: str = "") -> list[str]:
    """Say what differs between two values of JSON."""
    if isinstance(then, dict) and isinstance(now, dict):
        names = [*then, *(name for name in now if name not in then)]
        return [
            text
            for name in names
            for text in differences(then.get(name), now.get(name), f"{where}.{name}".lstrip("."))
        ]
    if isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        pairs = enumerate(zip(then, now, strict=True))
        return [text for i, (a, b) in pairs for text in differences(a, b, f"{where}[{i}]")]
    return [] if then == now else [f"{where} was {then!r} and is {now!r}"]
