"""Progress on standard error: bars on a terminal, lines elsewhere, nothing if not wanted.

Stages that take more than two seconds show how much is done, and the time that is left.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext

Advance = Callable[[int], None]

FIRST = 2.0  # seconds before a stage is worth a line
NEXT = 10.0  # seconds between its lines


class Console:
    """Tells what is going on, and keeps how long every stage took.

    Parameters
    ----------
    quiet : bool, default=False
        Whether to say nothing.

    Attributes
    ----------
    seconds : dict from stage to float

    Examples
    --------
    >>> from hilbin.cli._console import Console
    >>> console = Console(quiet=True)
    >>> with console.stage("counting", 2) as advance:
    ...     advance(1)
    ...     advance(1)
    >>> list(console.seconds)
    ['counting']
    """

    def __init__(self, quiet: bool = False):
        self.quiet = quiet
        self.seconds: dict[str, float] = {}

    def say(self, text: str) -> None:
        """Print one line."""
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)

    @contextmanager
    def stage(self, name: str, total: int | None = None) -> Iterator[Advance]:
        """A stage of ``total`` steps; yields what is called with the number of steps just done."""
        begin = time.monotonic()
        with self._bar(name, total) as advance:
            yield advance
        took = time.monotonic() - begin
        self.seconds[name] = self.seconds.get(name, 0.0) + took
        self.say(f"{name}: {took:.1f} s")

    @contextmanager
    def following(self) -> Iterator[Callable[[str, int, int], None]]:
        """Yield a callback of ``fit`` that shows the stages as they come.

        It takes the name of a stage, how much is done, and how much there is; a stage that begins
        with something done is told in one line.
        """
        with ExitStack() as stack:
            now, ended, last = "", "", 0
            advance: Advance = lambda steps: None  # noqa: E731

            def follow(name: str, done: int, total: int) -> None:
                nonlocal now, ended, last, advance
                if name == ended and done == total:
                    return
                if name != now and done > 0:
                    self.say(f"{name}: {done} of {total} images")
                    return
                if name != now:
                    stack.close()
                    now, ended, last = name, "", 0
                    advance = stack.enter_context(self.stage(name, total if total > 1 else None))
                if total > 1:
                    advance(max(0, done - last))
                last = max(last, done)
                if done == total:
                    stack.close()
                    now, ended = "", name

            yield follow

    def _lines(self, name: str, total: int | None) -> Advance:
        """Return what prints a line now and then."""
        begin = last = time.monotonic()
        done = 0

        def advance(steps: int) -> None:
            nonlocal done, last
            done += steps
            now = time.monotonic()
            due = now - begin > FIRST and (last == begin or now - last > NEXT)
            if total and 0 < done < total and due:
                last = now
                left = time_left((now - begin) / done * (total - done))
                self.say(f"{name}: {done / total:.0%}, {left} left")

        return advance

    def _bar(self, name: str, total: int | None) -> AbstractContextManager[Advance]:
        if self.quiet or not sys.stderr.isatty():
            return nullcontext(self._lines(name, total))
        return _rich_bar(name, total)


def time_left(seconds: float) -> str:
    """Return a time in words.

    Examples
    --------
    >>> from hilbin.cli._console import time_left
    >>> time_left(7.2), time_left(150), time_left(7000)
    ('7 s', '2.5 min', '1.9 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


@contextmanager
def _rich_bar(name: str, total: int | None) -> Iterator[Advance]:
    from rich.console import Console as Terminal
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    text = TextColumn("{task.description}")
    columns = (
        (text, BarColumn(), TimeElapsedColumn())
        if total is None
        else (text, BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    )
    with Progress(*columns, console=Terminal(stderr=True), transient=True) as progress:
        task = progress.add_task(name, total=total)
        yield lambda steps: progress.advance(task, steps)
