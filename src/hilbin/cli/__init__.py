"""The command line: photographs or tables in, a model file and answers out.

Every verb is a module with a function of plain arguments that returns a result;
:mod:`hilbin.cli.app` has a thin command around each. Standard output carries the result and nothing
else, progress and complaints go to standard error. Exit codes: 0 done, 1 done but some files could
not be read (they are listed), 2 nothing could be done, 130 interrupted. Nothing is ever downloaded.
"""

import sys

NEEDED = ("typer", "rich")


def main() -> None:
    """Run the command line; what the ``hilbin`` command calls."""
    try:
        from hilbin.cli.app import app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in NEEDED:
            raise
        print(
            f'hilbin: the command line needs {error.name}: pip install "hilbin[cli]"',
            file=sys.stderr,
        )
        sys.exit(2)
    for stream in (sys.stdout, sys.stderr):  # file names need not be valid text
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="hilbin")
