r"""Sums over chunks: :math:`\sum_c f(c)`, exact, in one pass, resumable.

Chunks are added one after another in their order, by whichever threads they were computed, so the
sum does not depend on timing. A thread reads the next chunks while this one is in work. There are
three ways to compute them:

- one at a time in the calling thread, whose BLAS uses its own threads: the best for sums whose work
  is a matrix product;
- several at a time on ``n_jobs`` threads, BLAS held to one thread in each: for work that BLAS does
  not do, such as feature maps;
- on a Dask cluster, as a tree of sums.
"""

import os
import signal
import threading
import warnings
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from hilbin.stream import dask, parts
from hilbin.stream.checkpoint import Checkpoint, Progress, restored
from hilbin.stream.chunks import Chunks, LeftOutWarning
from hilbin.stream.opening import as_chunks
from hilbin.stream.parts import Of, Part, added

NOTES_SHOWN = 5


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
                self._total, self._state = restored(self._state, part.total), {}
            self._total = added(self._total, part.total)
            self.so_far = Progress(
                self.so_far.chunks + part.chunks,
                self.so_far.rows + part.rows,
                self.so_far.notes + part.notes,
            )
        if self._checkpoint is not None and self._checkpoint.is_due:
            self._checkpoint.write(self._total, self.so_far)

    def total(self) -> Any:
        """Return the sum; one finished before gets the type of the sum of the first chunk."""
        if self._state:
            first = next(iter(self._data))
            self._total, self._state = restored(self._state, self._of(first)), {}
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
    """Hold Ctrl-C back until the ``with`` ends: half an addition is no sum to write down."""
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
