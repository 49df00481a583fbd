"""Work for the next blocks while this one is in hand, in order and bounded."""

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def read_ahead(items: Iterator[Item], depth: int = 2) -> Generator[Item, None, None]:
    """The items of an iterator, at most ``depth`` of which a thread makes before they are wanted.

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
    """``task(item)`` of every item, in order, on some threads; one result more than those waits.

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
