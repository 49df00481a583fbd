"""What can go wrong with data that are read in blocks."""

import importlib
from typing import Any


class ChunkError(ValueError):
    """Rows that cannot be read, or that are no rows to learn from.

    Parameters
    ----------
    source : str
        The file and the rows of it.
    reason : str
        What is wrong with them.

    Examples
    --------
    >>> from hilbin.stream import ChunkError
    >>> print(ChunkError("X_003.npy, rows 0 to 99", "feature 7 of row 12 is nan"))
    X_003.npy, rows 0 to 99: feature 7 of row 12 is nan
    """

    def __init__(self, source: str, reason: str):
        super().__init__(source, reason)
        self.source = source
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.source}: {self.reason}"


class CheckpointError(ValueError):
    """A checkpoint that is of other data or of another sum, or that is damaged."""


class LeftOutWarning(UserWarning):
    """Some rows could not be read and are not in the sum."""


def optional(module: str, what: str) -> Any:
    """Import a module that hilbin does without, or say how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f'{what} needs {package}: pip install "hilbin[stream]"') from error
