"""Data as blocks of rows that are read when they are wanted.

``Chunks`` can be read again and again, from any block on. A block is checked as it is read (width,
type, finite values), and what is wrong with it is said with the name of its file.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from hilbin.stream._sources import Array

HELD = 4  # blocks in memory at a time: one in work, one waiting, one being read, one to spare
MEBIBYTE = 1 << 20


class Chunk(NamedTuple):
    """A block of rows.

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


class Block(ABC):
    """A block not read yet; ``rows`` counts those that will be left out too."""

    rows: int

    @abstractmethod
    def read(self) -> Chunk:
        """Read it."""


class Chunks(ABC):
    """Data as blocks of rows; made by :func:`hilbin.stream.as_chunks`.

    Iterating yields a :class:`Chunk` after another, and starts anew every time.

    Attributes
    ----------
    n_rows : int or None
        None if it is not known before the rows are read.
    n_features : int
    dtype : numpy.dtype
        Of ``X`` in every block.
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
        return (block.read() for block in self.blocks())

    @abstractmethod
    def blocks(self, skip: int = 0) -> Iterator[Block]:
        """The blocks, unread, from number ``skip`` on.

        Parameters
        ----------
        skip : int, default=0

        Yields
        ------
        block
            Its ``read()`` gives the chunk.
        """

    @abstractmethod
    def fingerprint(self, until: int | None = None) -> dict[str, Any]:
        """What tells that the data are the same, without reading them all.

        Shapes, types, paths, sizes and times of files; of arrays in memory a digest of a sample of
        their values.

        Parameters
        ----------
        until : int, optional
            Only of what holds the first so many rows.

        Returns
        -------
        fingerprint : dict
            Can be written as JSON.
        """

    @property
    def length(self) -> int | None:
        """Rows to go through, those that will be left out too; None if not known."""
        return self.n_rows
