"""Progress of a pass over the rows: a line now and then, with the time left."""

import time
from collections.abc import Callable

AFTER = 2.0  # seconds until the first line, and between two


class Progress:
    """Prints how far one pass has come; nothing if it takes less than two seconds.

    Parameters
    ----------
    name : str
        Name of the pass.
    clock : callable, optional
        Returns the time in seconds.

    Examples
    --------
    >>> from hilbin.estimators.linear.progress import Progress
    >>> times = iter([0.0, 1.0, 5.0, 8.0])
    >>> progress = Progress("sums", clock=lambda: next(times))
    >>> progress(100, 1000)  # after a second
    >>> progress(500, 1000)
    [sums] 50% of 1,000 rows, 5 s left
    >>> progress.end()
    [sums] 500 rows in 8 s
    """

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.name, self._clock = name, clock
        self._begin = self._last = clock()
        self._first: tuple[int, float] | None = None
        self._done = 0

    def __call__(self, done: int, rows: int | None) -> None:
        """Print a line if it is time; ``rows`` is None if their number is not known.

        Rows that an earlier job has counted come with the first call, at once: speed is measured
        from there.
        """
        now, self._done = self._clock(), done
        early = now - self._last < AFTER
        since, begin = self._first or (0, self._begin)
        self._first = self._first or (done, now)
        if early or done == rows:
            return
        self._last = now
        if rows is None or done <= since:
            print(f"[{self.name}] {done:,} rows after {duration(now - self._begin)}", flush=True)
            return
        left = duration((now - begin) / (done - since) * (rows - done))
        print(f"[{self.name}] {done / rows:.0%} of {rows:,} rows, {left} left", flush=True)

    def end(self) -> None:
        """Print what the pass took."""
        took = self._clock() - self._begin
        if took >= AFTER:
            print(f"[{self.name}] {self._done:,} rows in {duration(took)}", flush=True)


def duration(seconds: float) -> str:
    """Return a time in words.

    Examples
    --------
    >>> from hilbin.estimators.linear.progress import duration
    >>> duration(0.123), duration(7.2), duration(150), duration(7000)
    ('0.12 s', '7 s', '2.5 min', '1.9 h')
    """
    if seconds < 100:
        return f"{seconds:.2g} s" if seconds < 1 else f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
