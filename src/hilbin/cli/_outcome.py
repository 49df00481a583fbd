"""How a command ends: exit codes, and one line instead of a traceback."""

import errno
import functools
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

import typer

DONE, SOME_UNREADABLE, FAILED, INTERRUPTED = 0, 1, 2, 130


class InputError(Exception):
    """What was given leaves nothing to do; the message says why, in one line."""


def command(function: Callable[..., int]) -> Callable[..., None]:
    """A typer command of a function that returns an exit code; errors become one line and 2."""

    @functools.wraps(function)
    def run(*arguments: Any, **options: Any) -> None:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                code = function(*arguments, **options)
                sys.stdout.flush()
            except (InputError, ValueError) as error:
                code = _fail(str(error))
            except ImportError as error:
                pillow = 'images need Pillow: pip install "hilbin[images]"'
                code = _fail(pillow if error.name == "PIL" else str(error))
            except BrokenPipeError:  # whoever reads has enough
                raise
            except OSError as error:
                code = _fail(describe(error))
            except MemoryError:
                code = _fail("out of memory; fewer images, a smaller --max-side or fewer features")
            except KeyboardInterrupt as error:
                complain(": ".join(["interrupted", *map(str, error.args)]))
                code = INTERRUPTED
        raise typer.Exit(code)

    return run


def require_new(output: str | os.PathLike[str], force: bool) -> None:
    """Raise if a file to write exists, unless it may be overwritten."""
    if not force and os.path.lexists(output):
        raise InputError(f"{os.fspath(output)}: exists already; --force overwrites it")


def complain(text: str) -> None:
    """One line on standard error."""
    print(f"hilbin: {' '.join(text.split())}", file=sys.stderr)


def describe(error: OSError) -> str:
    """What went wrong with which file."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "the disk is full; make room and run the same command again"
    if error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def _fail(text: str) -> int:
    complain(text)
    return FAILED


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    complain(f"warning: {message}")
