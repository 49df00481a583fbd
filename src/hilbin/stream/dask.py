"""Dask: its collections as chunks, and sums as a tree of tasks. The only file that knows Dask.

Tasks go to the cluster in waves of a few for every thread, the next wave before the last one is
back. A wave reads its chunks where the workers are, adds them by eights, and sends one sum home. So
no more sums are alive than two waves have, and there is something to write down after every wave.
If a worker dies, the scheduler runs again what it held: tasks hold all they need, and never change
what they are given. A wave that the cluster drops, because it is restarted, is sent again. When the
last worker is gone for good, the scheduler would wait for another one forever: after some patience
waves are summed in this process, until there are workers again. A wave is added when its sum is
here, so nothing counts twice. Without a cluster Dask's own scheduler runs the same waves in this
process.
"""

import functools
import sys
import time
import warnings
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from hilbin import parallel
from hilbin.stream.chunks import Chunk, Chunks, UnreadChunk, optional
from hilbin.stream.iterables import Layout
from hilbin.stream.parts import Of, Part, added, joined, part_of
from hilbin.stream.sources import Columns, Kind, mark_of

ARITY = 8
CHUNKS_PER_THREAD = 8
TASKS_PER_THREAD = (
    1  # of a wave: every further task has a sum of its own to be sent to another worker
)
RETRIES = 2  # of a task that fails, for files on a network, and of a wave that is dropped
WAVES = 2
LOOK = 1.0  # seconds between two looks at the workers
PATIENCE = 30.0  # seconds without any worker, after there were some
# When each client last had workers; minus infinity since it was given up. A new cluster, whose
# workers are still to come, is not in it.
_SEEN: WeakKeyDictionary[Any, float] = WeakKeyDictionary()
WHAT = "a sum over Dask collections or on a cluster"


def is_collection(X: Any) -> bool:
    """Return whether ``X`` is a Dask array or data frame; Dask is not imported to find out."""
    return type(X).__module__.startswith("dask.") and hasattr(X, "__dask_graph__")


@dataclass(frozen=True)
class DaskChunk(UnreadChunk):
    """One chunk of Dask arrays; ``values`` are tasks until Dask has run them."""

    rows: int
    begin: int
    name: str
    layout: Layout
    values: tuple[Any, ...]

    def read(self) -> Chunk:
        """Let Dask compute the values."""
        return self.chunk(*optional("dask", WHAT).compute(*self.values))

    def chunk(self, *values: Any) -> Chunk:
        """Return the chunk of the values that Dask has computed."""
        rows = self.layout.checked(values, self.name)
        return Chunk(*rows[:3], self.begin, self.name)

    def bare(self) -> "DaskChunk":
        """Return the same without the tasks, to send beside their results."""
        return DaskChunk(self.rows, self.begin, self.name, self.layout, ())


class DaskChunks(Chunks):
    """Chunks of rows of a Dask array or data frame, as Dask has cut it.

    Parameters
    ----------
    X : Dask array or data frame
    columns : Columns
        Dask collections or arrays of targets and weights, or names of columns of a data frame.
    """

    def __init__(self, X: Any, columns: Columns):
        y, sample_weight, target, weight, features, _ = columns
        if hasattr(X, "columns"):
            y = X[target] if target is not None else y
            sample_weight = X[weight] if weight is not None else sample_weight
            used = [c for c in X.columns if c not in (target, weight)]
            X = X[used if features is None else list(features)]
        X = _known(X)
        if X.ndim != 2:
            raise ValueError(f"X must be two-dimensional, got shape {X.shape}")
        self._X = X.rechunk({1: -1})
        heights = self._X.chunks[0]
        self._arrays = [self._X]
        self._arrays += [None if v is None else _aligned(v, heights) for v in (y, sample_weight)]
        self.n_rows, self.n_features = (int(n) for n in X.shape)
        self.dtype, self.sources = np.dtype(X.dtype), [X.name]

    def unread(self, skip: int = 0) -> Iterator[UnreadChunk]:
        """Yield the chunks, unread, from number ``skip`` on."""
        columns = [_tasks(array, self._X.numblocks[0]) for array in self._arrays]
        layout = Layout(self.n_features, self.dtype, "the Dask array")
        heights = self._X.chunks[0]
        begins = accumulate(heights, initial=0)
        for number, (rows, begin, *values) in enumerate(
            zip(heights, begins, *columns, strict=False)
        ):
            if number >= skip:
                yield DaskChunk(rows, begin, f"Dask chunk {number}", layout, tuple(values))

    def fingerprint(self, until: int | None = None) -> dict[str, Any]:
        """Names of Dask's tasks may change from run to run; the first chunk stands for them."""
        ends = list(accumulate(self._X.chunks[0]))
        counted = [end for end in ends if until is None or end <= until]
        return {
            "ends of chunks": [int(end) for end in counted],
            "dtype": self.dtype.str,
            "n_features": self.n_features,
            "first chunk": self._first,
        }

    @functools.cached_property
    def _first(self) -> dict[str, Any]:
        return mark_of(next(self.unread()).read().X)


def _known(collection: Any) -> Any:
    """Return an array whose chunks have known numbers of rows; unknown ones are computed."""
    if hasattr(collection, "to_dask_array"):
        return collection.to_dask_array(lengths=True)
    if np.isnan(collection.shape[0]):
        collection = collection.copy()  # what the user holds stays as it is
        collection.compute_chunk_sizes()
    return collection


def _aligned(values: Any, heights: tuple[int, ...]) -> Any:
    """Cut targets or weights into chunks of the same rows."""
    if not is_collection(values):
        values = np.asarray(values)
        if values.shape[:1] != (sum(heights),):
            raise ValueError(f"{len(values)} targets or weights for {sum(heights)} rows")
        return optional("dask.array", WHAT).from_array(values, (heights, *values.shape[1:]))
    values = _known(values)
    if values.shape[0] != sum(heights):
        raise ValueError(f"{values.shape[0]} targets or weights for {sum(heights)} rows")
    return values.rechunk({0: heights, **dict.fromkeys(range(1, values.ndim), -1)})


def _tasks(array: Any, n_chunks: int) -> list[Any]:
    return [None] * n_chunks if array is None else array.to_delayed().ravel().tolist()


def sums(chunks: Chunks, of: Of, client: Any, skip: int) -> Generator[Part, None, None]:
    """Yield the sums of waves of chunks, in order; the next wave is under way meanwhile."""
    place = _Cluster(client or _current_client(), of)
    unread = chunks.unread(skip)
    pending: deque[tuple[Any, list[UnreadChunk]]] = deque()
    try:
        while wave := list(islice(unread, place.wave())):
            pending.append((place.tree(wave), wave))
            if len(pending) >= WAVES:
                yield place.result(*pending.popleft())
        while pending:
            yield place.result(*pending.popleft())
    finally:
        place.cancel([task for task, _ in pending])


def _current_client() -> Any:
    """Return the client that the program has made, if it has made one."""
    distributed = sys.modules.get("distributed")
    try:
        return None if distributed is None else distributed.default_client()
    except ValueError:
        return None


class _Cluster:
    """Where tasks run: at a client's workers, or in this process if there is no client."""

    def __init__(self, client: Any, of: Of, scheduler: str | None = None):
        self._dask, self._client, self._scheduler = optional("dask", WHAT), client, scheduler
        self._function = of
        if client is not None and _SEEN.get(client, -np.inf) > -np.inf:
            _SEEN[client] = time.monotonic()  # patience begins anew
        self._send()

    def _send(self) -> None:
        """Send the function once; unlike scattered data, the scheduler can make it again."""
        self._of = self._function
        if self._client is not None:
            self._of = self._client.submit(_same, self._function, pure=False)

    def wave(self) -> int:
        """Return the number of chunks of a wave."""
        return CHUNKS_PER_THREAD * self._threads()

    def _threads(self) -> int:
        if self._client is None:
            return 2
        threads = sum(self._client.nthreads().values())
        if threads:
            _SEEN[self._client] = time.monotonic()
        return max(2, threads)

    def tree(self, wave: Sequence[UnreadChunk]) -> Any:
        """Return a task whose result is the sum of some chunks."""
        tasks = self._leaves(wave)
        while len(tasks) > 1:
            groups = [tasks[i : i + ARITY] for i in range(0, len(tasks), ARITY)]
            tasks = [self._task(joined, group) for group in groups]
        return tasks[0]

    def _leaves(self, wave: Sequence[UnreadChunk]) -> list[Any]:
        if not isinstance(wave[0], DaskChunk):
            run = -(-len(wave) // (TASKS_PER_THREAD * self._threads()))
            runs = [wave[i : i + run] for i in range(0, len(wave), run)]
            return [self._task(_read_and_sum, self._of, chunks) for chunks in runs]
        values = [value for chunk in wave for value in chunk.values]  # type: ignore[attr-defined]
        if self._client is not None:  # one graph for the wave, so that chunks share what they can
            there = iter(self._client.compute([v for v in values if v is not None], **_OPTIONS))
            values = [None if v is None else next(there) for v in values]
        return [
            self._task(_sum, self._of, chunk.bare(), *values[3 * i : 3 * i + 3])  # type: ignore[attr-defined]
            for i, chunk in enumerate(wave)
        ]

    def _task(self, function: Any, *arguments: Any) -> Any:
        if self._client is None:
            return self._dask.delayed(function, pure=False)(*arguments)
        return self._client.submit(function, *arguments, pure=False, **_OPTIONS)

    def result(self, task: Any, wave: Sequence[UnreadChunk]) -> Part:
        """Wait for the task of a wave."""
        if self._client is None:
            part: Part
            with parallel.blas_threads(1):  # Dask has a thread for every processor
                (part,) = self._dask.compute(task, scheduler=self._scheduler)
            return part
        retries, patience = RETRIES, PATIENCE
        while not self._is_lost():
            try:
                if not task.done():
                    task.exception(timeout=LOOK)  # fetches nothing: that must not be cut short
                part = task.result(timeout=patience)
                return part
            except TimeoutError:  # it is under way, or was lost with its worker after its end
                if task.status == "error":
                    raise
                patience *= 2 if task.done() else 1  # or the result is large
                self._threads()
            # `distributed` has no error of its own for a fetch that was cancelled.
            except (CancelledError, UnboundLocalError):
                if not retries:
                    raise
                retries -= 1
                self._send()
                task = self.tree(wave)
        return self._here(task, wave)

    def _is_lost(self) -> bool:
        """Tell whether there have been no workers for long, after there were some."""
        if time.monotonic() - _SEEN.get(self._client, np.inf) <= PATIENCE:
            return False
        _SEEN[self._client] = -np.inf
        return True

    def _here(self, task: Any, wave: Sequence[UnreadChunk]) -> Part:
        self.cancel([task])
        warnings.warn(
            f"the Dask cluster has had no worker for {PATIENCE:g} seconds: {len(wave)} chunks are "
            "summed in this process",
            RuntimeWarning,
            stacklevel=2,
        )
        here = _Cluster(None, self._function, "threads")
        return here.result(here.tree(wave), wave)

    def cancel(self, tasks: Sequence[Any]) -> None:
        """Take back what is not wanted any more."""
        if self._client is not None and tasks:
            self._client.cancel(list(tasks), force=True)


_OPTIONS = {"retries": RETRIES}


def _same(value: Any) -> Any:
    return value


def _read_and_sum(of: Of, chunks: Sequence[UnreadChunk]) -> Part:
    total, n_rows = None, 0
    notes: list[str] = []
    for chunk in chunks:
        part = part_of(of, chunk, chunk.read())
        total, n_rows = added(total, part.total), n_rows + part.rows
        notes.extend(part.notes)
    return Part(total, len(chunks), n_rows, tuple(notes))


def _sum(of: Of, chunk: DaskChunk, *values: Any) -> Part:
    return part_of(of, chunk, chunk.chunk(*values))


DASK = Kind("a Dask array or data frame", DaskChunks, is_object=is_collection)
