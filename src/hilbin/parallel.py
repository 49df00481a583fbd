"""The one place that knows threads.

Work is cut into ranges of rows; each range is a call into the compiled core, which releases the
GIL, so a pool of threads runs them side by side. ``n_jobs`` follows joblib: ``None`` is 1 unless a
``joblib.parallel_config`` says otherwise, -1 is all processors. The pool is Python's own: joblib's
takes tens of milliseconds to start and stop, as long as a small Gram matrix. The core calls no
BLAS; a task that does says so, and BLAS is held to one thread while several run, so that threads
are never multiplied.
"""

import functools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController, threadpool_limits

Result = TypeVar("Result")
Range = tuple[int, int]


def ranges(n: int, size: int) -> list[Range]:
    """Cut ``range(n)`` into ranges of ``size``, the last one shorter.

    Examples
    --------
    >>> from hilbin.parallel import ranges
    >>> ranges(5, 2)
    [(0, 2), (2, 4), (4, 5)]
    """
    return [(begin, min(begin + size, n)) for begin in range(0, n, size)]


def run(
    task: Callable[[int, int], object],
    parts: Sequence[Range],
    n_jobs: int | None,
    *,
    cancel: Callable[[], object] | None = None,
) -> None:
    """Call ``task(begin, end)`` for every range, on ``n_jobs`` threads, the caller's among them.

    After an error or an interrupt ``cancel`` is called, which should make running tasks end early.
    """
    alone = n_jobs is None and len(parts) <= 1  # asking joblib takes longer than a small task
    helpers = 0 if alone else min(effective_n_jobs(n_jobs), len(parts)) - 1
    if helpers < 1:
        for part in parts:
            task(*part)
        return
    waiting = deque(parts)

    def next_part() -> Range | None:
        try:
            return waiting.popleft()
        except IndexError:
            return None

    def work() -> None:
        try:
            while part := next_part():
                task(*part)
        finally:  # after an error or an interrupt, what has not begun never does
            waiting.clear()

    with ThreadPoolExecutor(helpers) as pool:
        others = [pool.submit(work) for _ in range(helpers)]
        try:
            work()
            for other in others:
                other.result()
        except BaseException:
            if cancel is not None:
                cancel()
            raise


def stream(
    task: Callable[[int, int], Result],
    parts: Sequence[Range],
    n_jobs: int | None,
    *,
    calls_blas: bool = False,
) -> Iterator[Result]:
    """Yield ``task(begin, end)`` of every range in order; few results are held at a time."""
    jobs = min(effective_n_jobs(n_jobs), len(parts))
    if jobs <= 1:
        for part in parts:
            yield task(*part)
        return
    pool = ThreadPoolExecutor(jobs)
    pending: deque[Future[Result]] = deque()
    try:
        with blas_threads(1 if calls_blas else None):
            for part in parts:
                pending.append(pool.submit(task, *part))
                if len(pending) > 2 * jobs:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
    finally:  # after an error or an interrupt, what has not begun never does
        pool.shutdown(cancel_futures=True)


def blas_threads(n_jobs: int | None) -> AbstractContextManager[Any]:
    """Hold BLAS to ``n_jobs`` threads; ``None`` leaves it as it is set."""
    if n_jobs is None:
        return nullcontext()
    limits: AbstractContextManager[Any] = _controller().limit(
        limits=effective_n_jobs(n_jobs), user_api="blas"
    )
    return limits


def single_thread() -> AbstractContextManager[Any]:
    """Hold BLAS and OpenMP to one thread, so that sums are always added in the same order."""
    limits: AbstractContextManager[Any] = threadpool_limits(1)
    return limits


@functools.cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
