"""How a command ends: exit codes, one line instead of a traceback, results as lines and as CSV."""

import csv
import errno
import functools
import io
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import typer

from hilbin.files import require_writable, write_whole

DONE, SOME_UNREADABLE, FAILED, BUG, INTERRUPTED = 0, 1, 2, 70, 130
FileName = str | os.PathLike[str]
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet takes for a formula begins so


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
            except (typer.Exit, typer.Abort):
                raise
            except Exception as error:
                code = _report_bug(error)
        raise typer.Exit(code)

    return run


def require_output(
    output: FileName | None, inputs: Iterable[FileName | None], *, force: bool = True
) -> None:
    """Raise if a file cannot be written, is an input, or exists and may not be overwritten.

    Parameters
    ----------
    output : path or None
        The file to write, if any.
    inputs : iterable of path or None
        Files and folders that the command reads.
    force : bool, default=True
        Whether an existing file may be overwritten.
    """
    if output is None:
        return
    require_writable(output)
    for name in inputs:
        if name is None:
            continue
        if os.path.exists(output) and os.path.exists(name) and os.path.samefile(output, name):
            raise InputError(f"{os.fspath(output)}: is an input of this command; name another file")
    if not force and os.path.lexists(output):
        raise InputError(f"{os.fspath(output)}: exists already; --force overwrites it")


def complain(text: str) -> None:
    """One line on standard error."""
    print(f"hilbin: {' '.join(text.split())}", file=sys.stderr)


def complain_of(unreadable: Iterable[dict[str, str]]) -> None:
    """One line for each file that could not be read."""
    for file in unreadable:
        complain(f"cannot be read: {file['path']}: {file['reason']}")


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text in which names of files may hold bytes that are not valid text."""
    write_whole(path, text.encode(errors="surrogateescape"))


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


def _report_bug(error: Exception) -> int:
    """Say that it is not the user's fault, and where."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    complain(
        f"a bug in hilbin: {type(error).__name__}: {error} (in {place.name}, "
        f"{os.path.basename(place.filename)}:{place.lineno}); please report it, with what "
        "hilbin.show_versions() prints"
    )
    return BUG


def csv_text(heads: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a CSV file; texts that a spreadsheet would take for formulas get an apostrophe.

    Examples
    --------
    >>> from hilbin.cli._outcome import csv_text
    >>> print(csv_text(["path", "score"], [["=1+1.jpg", -0.5]]), end="")
    path,score
    '=1+1.jpg,-0.5
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heads)
    for row in rows:
        writer.writerow(
            [f"'{v}" if isinstance(v, str) and v.startswith(FORMULA) else v for v in row]
        )
    return text.getvalue()


def one_line(text: str) -> str:
    """Return a text without line breaks, tabs and other control characters, which are escaped.

    Examples
    --------
    >>> from hilbin.cli._outcome import one_line
    >>> print(one_line("two\\nlines.jpg"))
    two\\nlines.jpg
    """
    return "".join(
        c if c.isprintable() or _surrogate(c) else c.encode("unicode_escape").decode() for c in text
    )


def _surrogate(c: str) -> bool:
    """Tell whether a character stands for a byte of a file name that is not valid text."""
    return "\udc80" <= c <= "\udcff"


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    complain(f"warning: {message}")
