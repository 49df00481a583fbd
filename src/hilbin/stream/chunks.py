"""Data as chunks of rows that are read when they are wanted, and what can go wrong with them.

``Chunks`` can be read again and again, from any chunk on. A chunk is checked as it is read (width,
type, finite values), and an error names its file and the rows of it.
"""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from hilbin._arrays import Array


class ChunkError(ValueError):
    """Rows that cannot be read, or cannot be learned from.

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
    """A checkpoint that is damaged, or that belongs to other data or to another sum."""


class LeftOutWarning(UserWarning):
    """Some rows could not be read and are not in the sum."""


class Chunk(NamedTuple):
    """Consecutive rows.

    Attributes
    ----------
    X : array or CSR array of shape (rows, n_features)
    y : array or None
        Targets.
    weight : array or None
        Weights of the rows.
    begin : int
        Number of its first row among all.
    source : str
        Where the rows come from, for messages.
    notes : tuple of str
        Rows that were left out, and why.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.stream import Chunk
    >>> Chunk(np.ones((2, 3)), None, None, begin=10, source="X.npy, rows 10 to 11").X.shape
    (2, 3)
    """

    X: Any
    y: Array | None
    weight: Array | None
    begin: int
    source: str
    notes: tuple[str, ...] = ()


class UnreadChunk(ABC):
    """A chunk that is not read yet; ``rows`` counts those that will be left out too."""

    rows: int

    @abstractmethod
    def read(self) -> Chunk:
        """Read the chunk."""


class Chunks(ABC):
    """Data as chunks of rows; made by :func:`hilbin.stream.as_chunks`.

    Iterating yields a :class:`Chunk` after another, and starts anew every time.

    Attributes
    ----------
    n_rows : int or None
        Number of rows; None if it is not known before the rows are read.
    n_features : int
    dtype : numpy.dtype
        Type of ``X`` in every chunk.
    sources : list of str
        Names of the files or arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.stream import as_chunks
    >>> chunks = as_chunks(np.arange(10.0).reshape(5, 2), rows=2)
    >>> [chunk.X.sum() for chunk in chunks]
    [np.float64(6.0), np.float64(22.0), np.float64(17.0)]
    """

    n_rows: int | None
    n_features: int
    dtype: np.dtype[Any]
    sources: list[str]

    def __iter__(self) -> Iterator[Chunk]:
        return (chunk.read() for chunk in self.unread())

    @abstractmethod
    def unread(self, skip: int = 0) -> Iterator[UnreadChunk]:
        """Yield the chunks, unread, from number ``skip`` on.

        Parameters
        ----------
        skip : int, default=0

        Yields
        ------
        chunk
            Its ``read()`` returns the :class:`Chunk`.
        """

    @abstractmethod
    def fingerprint(self, until: int | None = None) -> dict[str, Any]:
        """Return what tells that the data are the same, without reading them all.

        It has shapes, types, paths, sizes and times of files; for arrays in memory a digest of a
        sample of their values.

        Parameters
        ----------
        until : int, optional
            Only consider what holds the first so many rows.

        Returns
        -------
        fingerprint : dict
            Can be written as JSON.
        """

    @property
    def length(self) -> int | None:
        """Number of rows to go through, those that will be left out too; None if not known."""
        return self.n_rows


def optional(module: str, what: str) -> Any:
    """Import a module that hilbin does without, or say how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f'{what} needs {package}: pip install "hilbin[stream]"') from error
