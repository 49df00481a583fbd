"""Parts of a sum: the sums of some chunks, computed on threads, and how two become one.

A thread reads the next chunks while this one is in work; results come in order and few are held.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Any, NamedTuple, TypeVar

import numpy as np
from joblib import effective_n_jobs

from hilbin import parallel
from hilbin.stream.chunks import Chunk, Chunks, UnreadChunk

Item = TypeVar("Item")
Result = TypeVar("Result")
Of = Callable[[Chunk], Any]


class Part(NamedTuple):
    """The sum of some chunks; ``total`` is None if they have no rows."""

    total: Any
    chunks: int
    rows: int
    notes: tuple[str, ...] = ()


def part_of(of: Of, unread: UnreadChunk, chunk: Chunk) -> Part:
    """Return what a chunk adds to the sum."""
    total = of(chunk) if chunk.X.shape[0] else None
    return Part(total, 1, unread.rows, chunk.notes)


def joined(parts: Sequence[Part]) -> Part:
    """Add parts, which stay as they are: a scheduler may want them again."""
    notes = tuple(note for part in parts for note in part.notes)
    totals = [part.total for part in parts if part.total is not None]
    total = totals[0] if totals else None
    if len(totals) > 1:
        total = totals[0] + totals[1]
        for other in totals[2:]:
            total += other
    return Part(total, sum(p.chunks for p in parts), sum(p.rows for p in parts), notes)


def added(total: Any, more: Any) -> Any:
    """Return ``total + more``, in the memory of ``total``."""
    if more is None:
        return total
    if total is None:
        return np.array(more) if isinstance(more, np.ndarray) else more
    total += more
    return total


def sums(chunks: Chunks, of: Of, n_jobs: int | None, skip: int) -> Generator[Part, None, None]:
    """Yield the sums of single chunks, in order, computed on threads of this process."""
    pairs = ((unread, unread.read()) for unread in chunks.unread(skip))
    threads = effective_n_jobs(n_jobs)

    def task(pair: tuple[UnreadChunk, Chunk]) -> Part:
        return part_of(of, *pair)

    with closing(read_ahead(pairs)) as read:
        if threads == 1:
            yield from map(task, read)
            return
        with parallel.blas_threads(1), closing(in_order(task, read, threads)) as parts:
            yield from parts


def read_ahead(items: Iterator[Item], depth: int = 2) -> Generator[Item, None, None]:
    """Yield the items of an iterator; a thread makes at most ``depth`` before they are wanted.

    Parameters
    ----------
    items : iterator
        Advanced in the thread alone.
    depth : int, default=2
    """

    def advance() -> list[Item]:
        return [item for _, item in zip(range(1), items, strict=False)]

    pool = ThreadPoolExecutor(1, "hilbin-reader")
    try:
        pending = deque(pool.submit(advance) for _ in range(depth))
        while item := pending.popleft().result():
            pending.append(pool.submit(advance))
            yield item.pop()  # so that nothing here holds it while the caller works
    finally:
        pool.shutdown(cancel_futures=True)


def in_order(
    task: Callable[[Item], Result], items: Iterator[Item], threads: int
) -> Generator[Result, None, None]:
    """Yield ``task(item)`` of every item, in order, on some threads; one more result may wait.

    An error of ``items`` is raised after the results of the items before it.
    """
    pool = ThreadPoolExecutor(threads, "hilbin-sum")
    pending: deque[Future[Result]] = deque()
    failed: list[Exception] = []
    try:
        for item in _until_error(items, failed):
            pending.append(pool.submit(task, item))
            if len(pending) > threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
        if failed:
            raise failed.pop()
    finally:
        pool.shutdown(cancel_futures=True)


def _until_error(items: Iterator[Item], failed: list[Exception]) -> Iterator[Item]:
    try:
        yield from items
    except Exception as error:
        failed.append(error)
