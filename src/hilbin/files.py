"""Atomic writing: a file is written whole or not at all.

The bytes go to a new file beside the wanted one, are flushed to the disk, and take its name in one
step of the file system. A full disk, an error or a killed process leaves the old file as it was.
What a symbolic link points to is written, not the link; devices, pipes and sockets are refused, for
writing and for reading.
"""

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

PART: dict[str, Any] = {"prefix": ".hilbin-", "suffix": ".part"}  # names of unfinished files


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file for writing bytes; it appears at ``path`` when the ``with`` ends without error.

    Parameters
    ----------
    path : path-like
        Path of the file, or of a link to it. Its folder must exist.

    Yields
    ------
    file : binary file

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hilbin.files import written_whole
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with written_whole(Path(folder) / "note.txt") as file:
    ...         _ = file.write(b"whole")
    ...     (Path(folder) / "note.txt").read_text()
    'whole'
    """
    target = _target(path)
    handle, temporary = tempfile.mkstemp(dir=target.parent, **PART)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _target(path: str | os.PathLike[str]) -> Path:
    """Return the file that is written for ``path``; raise for a device, a pipe or a folder."""
    target = Path(os.path.realpath(path))
    if target.exists():
        require_regular(target)
    return target


def require_writable(path: str | os.PathLike[str]) -> None:
    """Raise ``OSError`` if :func:`written_whole` could not write to ``path``.

    Permissions alone do not tell: an empty file is made in the folder, and removed. Long work calls
    it first, so that it does not fail at its end.

    Parameters
    ----------
    path : path-like
        Path of a file, which may exist.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hilbin.files import require_writable
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     require_writable(Path(folder) / "model.hilbin")
    ...     list(Path(folder).iterdir())
    []
    """
    folder = _target(path).parent
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder to write to", str(folder))
    try:
        with tempfile.NamedTemporaryFile(dir=folder, **PART):
            pass
    except OSError as error:
        raise OSError(error.errno, f"cannot write there: {error.strerror}", str(folder)) from error


def require_regular(path: str | os.PathLike[str]) -> None:
    """Raise ``OSError`` if there is something else than a regular file, such as a device or a pipe.

    Opening a pipe would wait for somebody to write to it, and replacing a device destroys it.

    Parameters
    ----------
    path : path-like
        Path of a file that exists.

    Examples
    --------
    >>> import tempfile
    >>> from hilbin.files import require_regular
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     require_regular(file.name)
    """
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode):
        kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
        kind = kinds.get(stat.S_IFMT(mode), "a device")
        wrong = IsADirectoryError if stat.S_ISDIR(mode) else OSError
        raise wrong(f"{os.fspath(path)}: is {kind}, not a file")


def _umask() -> int:
    """Return the permissions that new files lack; to ask is to set, so it is set back at once."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def write_whole(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Write bytes, or text as UTF-8, to ``path``: whole or not at all.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hilbin.files import write_whole
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder) / "note.txt", "whole")
    ...     (Path(folder) / "note.txt").read_text()
    'whole'
    """
    data: Any = content.encode() if isinstance(content, str) else content
    with written_whole(path) as file:
        file.write(data)
