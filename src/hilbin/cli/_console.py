"""Progress on standard error: bars on a terminal, lines elsewhere, nothing if not wanted."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

Advance = Callable[[int], None]


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
        """One line."""
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)

    @contextmanager
    def stage(self, name: str, total: int | None = None) -> Iterator[Advance]:
        """A stage of ``total`` steps; yields what is called with the number of steps just done."""
        begin, steps = time.monotonic(), 0

        def count(done: int) -> None:
            nonlocal steps
            steps += done
            advance(done)

        with self._bar(name, total) as advance:
            yield count
        took = time.monotonic() - begin
        self.seconds[name] = self.seconds.get(name, 0.0) + took
        self.say(f"{name}: {f'{steps}, ' if steps else ''}{took:.1f} s")

    def _bar(self, name: str, total: int | None) -> AbstractContextManager[Advance]:
        if self.quiet or not sys.stderr.isatty():
            return nullcontext(lambda _: None)
        return _rich_bar(name, total)


@contextmanager
def _rich_bar(name: str, total: int | None) -> Iterator[Advance]:
    from rich.console import Console as Terminal
    from rich.progress import Progress

    with Progress(console=Terminal(stderr=True), transient=True) as progress:
        task = progress.add_task(name, total=total)
        yield lambda steps: progress.advance(task, steps)
