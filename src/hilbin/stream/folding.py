r"""Sums over chunks: :math:`\sum_c f(c)`, exact, in one pass, resumable.

Chunks are added one after another in their order, by whichever threads they were computed, so the
sum does not depend on timing. A thread reads the next chunks while this one is in work. There are
three ways to compute them:

- one at a time in the calling thread, whose BLAS uses its own threads: the best for sums whose work
  is a matrix product;
- several at a time on ``n_jobs`` threads, BLAS held to one thread in each: for work that BLAS does
  not do, such as feature maps;
- on a Dask cluster, as a tree of sums.

A checkpoint is the running sum on the disk. One file holds the arrays of the sum and, as JSON, how
far it has come, which data are in it and what is summed. It is written whole or not at all, so that
a job killed at any moment finds the last one. A checkpoint of other data or of another sum is
refused, with what differs; files that are not in the sum yet may have changed: one that was found
broken can be mended.
"""

import json
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np

from hilbin.files import written_whole
from hilbin.stream import dask, parts
from hilbin.stream.chunks import CheckpointError, Chunks, LeftOutWarning
from hilbin.stream.opening import as_chunks
from hilbin.stream.parts import Of, Part, added

NOTES_SHOWN = 5
FILE = "sum.npz"
ABOUT = "about"
FORMAT = 1
SHARE = 0.05  # of the time, at most, goes into writing


def fold(
    chunks: Any,
    of: Of,
    *,
    n_jobs: int | None = None,
    client: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
    key: dict[str, Any] | None = None,
    every: float = 60.0,
    keep: bool = False,
    callback: Callable[[int, int | None], object] | None = None,
) -> Any:
    """Return the sum of ``of(chunk)`` over all chunks.

    Parameters
    ----------
    chunks : Chunks, or what :func:`as_chunks` takes
    of : callable
        Maps a :class:`Chunk` to something that can be added: a number, an array, or an object with
        ``+`` and ``+=``, of which the first is used on a cluster, where it must leave both as they
        are. For checkpoints such an object has ``state()``, a dict of arrays, and the class method
        ``from_state``.
    n_jobs : int, optional
        Number of chunks to compute at a time. With 1, the default, BLAS keeps its threads. Every
        one more holds a chunk and its sum more in memory. Not used with Dask.
    client : distributed.Client, optional
        The cluster to compute on. Dask collections go to the client in use, if any, and else to
        Dask's own scheduler.
    checkpoint : path, optional
        A folder for the running sum. If it holds one, the sum resumes from there. It is written
        every so often and when the sum is interrupted by an error or by Ctrl-C, and removed when
        the sum is done.
    key : dict, optional
        What is summed, as names and values of parameters, compared on resumption. Values that JSON
        does not know are replaced by a hash of their content. The name of ``of`` by default.
    every : float, default=60
        Seconds between checkpoints; more if writing would take over a twentieth of the time. 0
        writes after every chunk.
    keep : bool, default=False
        Whether to leave the finished sum in the folder: the next call returns it without reading
        the data.
    callback : callable, optional
        Called with the number of rows done and of all rows, or None if that is not known.

    Returns
    -------
    total
        The sum.

    Raises
    ------
    ChunkError
        If rows cannot be read or are not finite; it names them.
    CheckpointError
        If the folder holds the checkpoint of another sum, or a damaged one.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.stream import as_chunks, fold
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> fold(as_chunks(X, rows=4), lambda chunk: chunk.X.T @ chunk.X)
    array([[220., 250.],
           [250., 286.]])
    """
    data = as_chunks(chunks)
    running = _Running(data, of, checkpoint, key, every)
    if callback is not None and running.so_far.chunks:
        callback(running.so_far.rows, data.length)
    if running.so_far.done:
        return running.total()
    on_dask = client is not None or isinstance(data, dask.DaskChunks)
    skip = running.so_far.chunks
    found = dask.sums(data, of, client, skip) if on_dask else parts.sums(data, of, n_jobs, skip)
    try:
        for part in found:
            running.add(part)
            if callback is not None:
                callback(running.so_far.rows, data.length)
    except BaseException:
        found.close()  # nothing runs on while the last checkpoint is written
        running.interrupted()
        raise
    return running.finished(keep)


class _Running:
    """A sum on its way, and its checkpoint if there is one."""

    def __init__(
        self,
        data: Chunks,
        of: Of,
        folder: str | os.PathLike[str] | None,
        key: dict[str, Any] | None,
        every: float,
    ):
        self._data, self._of = data, of
        self._total: Any = None
        self._state: dict[str, Any] = {}
        self._checkpoint: Checkpoint | None = None
        self.so_far = Progress()
        if folder is not None:
            name = getattr(of, "__qualname__", type(of).__qualname__)
            key = {"of": name} if key is None else key
            self._checkpoint = Checkpoint(Path(folder), data.fingerprint, key, every)
            self.so_far, self._state = self._checkpoint.found()

    def add(self, part: Part) -> None:
        """Add the sum of the next chunks, and write a checkpoint if it is time."""
        with _not_interrupted():
            if self._state and part.total is not None:
                self._total = self._resumed(part.total, part.total)
            else:
                self._total = added(self._total, part.total)
            self.so_far = Progress(
                self.so_far.chunks + part.chunks,
                self.so_far.rows + part.rows,
                self.so_far.notes + part.notes,
            )
        if self._checkpoint is not None and self._checkpoint.is_due:
            self._checkpoint.write(self._total, self.so_far)

    def _resumed(self, like: Any, more: Any) -> Any:
        """Return the sum of the checkpoint, which is of the kind of ``like``, and ``more``."""
        state, self._state = self._state, {}
        try:
            return added(restored(state, like), more)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            assert self._checkpoint is not None
            self._checkpoint.failed = True  # what is on disk is not to be written over
            raise self._checkpoint.damaged(error) from error

    def total(self) -> Any:
        """Return the sum; one finished before gets the type of the sum of the first chunk."""
        if self._state:
            first = next(iter(self._data))
            self._total = self._resumed(self._of(first), None)
        if self._total is None:
            raise ValueError(f"{', '.join(self._data.sources[:3])}: there are no rows to sum")
        return self._total

    def interrupted(self) -> None:
        """Write a checkpoint, unless it was writing that failed."""
        if self._checkpoint is not None and not self._checkpoint.failed:
            self._checkpoint.write(self._total, self.so_far)

    def finished(self, keep: bool) -> Any:
        """Return the sum; its checkpoint is removed, or stays as one that is done."""
        total = self.total()
        if self._checkpoint is not None and keep:
            self._checkpoint.write(total, self.so_far._replace(done=True))
        elif self._checkpoint is not None:
            self._checkpoint.remove()
        notes = self.so_far.notes
        if notes:
            more = f"; and {len(notes) - NOTES_SHOWN} more" if len(notes) > NOTES_SHOWN else ""
            warnings.warn(
                f"{len(notes)} of {self.so_far.rows} rows are not in the sum: "
                f"{'; '.join(notes[:NOTES_SHOWN])}{more}",
                LeftOutWarning,
                stacklevel=3,
            )
        return total


def _not_interrupted() -> AbstractContextManager[None]:
    """Hold Ctrl-C back until the ``with`` ends: half an addition is not a sum to write down."""
    here = threading.current_thread() is threading.main_thread()
    return _held_signal() if here and callable(signal.getsignal(signal.SIGINT)) else nullcontext()


@contextmanager
def _held_signal() -> Generator[None, None, None]:
    came: list[Any] = []
    handler: Any = signal.signal(signal.SIGINT, lambda *arguments: came.append(arguments))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            handler(*came[0])


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
            progress = _progress(about)
        except Exception as error:  # whatever damaged bytes make readers stumble over
            raise self.damaged(error) from error
        differing = differences(about.get("of"), self._about(progress.rows))
        if differing:
            raise CheckpointError(
                f"{self.path} is the checkpoint of another sum: {'; '.join(differing)}. Remove it, "
                "or give another folder"
            )
        self.written = progress
        return progress, state

    def damaged(self, error: Exception) -> CheckpointError:
        """Return an error that names the file."""
        return CheckpointError(f"{self.path} is damaged ({error}): remove it")

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


def _progress(about: Any) -> Progress:
    """Return how far a sum has come by its checkpoint."""
    (chunks, rows, notes), done = about["progress"], about["done"]
    whole = all(type(n) is int and n >= 0 for n in (chunks, rows))
    if not whole or not isinstance(done, bool) or not all(isinstance(n, str) for n in notes):
        raise ValueError("it does not say how far the sum has come")
    return Progress(chunks, rows, tuple(notes), done)


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
    found, wanted = state["sum"], np.asarray(like)
    if found.shape != wanted.shape or found.dtype.kind != wanted.dtype.kind:
        raise ValueError(f"the sum is {found.dtype}{list(found.shape)}, not {wanted.dtype}")
    if isinstance(like, np.ndarray):
        return found
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
