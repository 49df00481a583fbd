"""Chunks that are in memory already: from an iterable of the user, or from Dask."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from hilbin._arrays import Array
from hilbin.stream.chunks import Chunk, ChunkError, Chunks, UnreadChunk
from hilbin.stream.sources import (
    NUMBERS,
    ArraySource,
    Columns,
    Kind,
    Piece,
    Rows,
    checked_weight,
    mark_of,
)


@dataclass(frozen=True)
class ReadyChunk(UnreadChunk):
    """A chunk that is in memory already."""

    chunk: Chunk

    @property
    def rows(self) -> int:  # type: ignore[override]
        """Number of rows."""
        return int(self.chunk.X.shape[0])

    def read(self) -> Chunk:
        """Return the chunk."""
        return self.chunk


class Layout(NamedTuple):
    """Width and type that all chunks must have, and which of them set it."""

    n_features: int
    dtype: np.dtype[Any]
    set_by: str

    def checked(self, chunk: Any, name: str) -> Rows:
        """Check a chunk ``X``, ``(X, y)`` or ``(X, y, weight)`` and return its rows."""
        rows = rows_of(chunk, name)
        width, dtype = rows.X.shape[1], rows.X.dtype
        if width != self.n_features:
            raise ChunkError(
                name, f"has {width} columns, while {self.set_by} has {self.n_features}"
            )
        if dtype.kind != self.dtype.kind:
            raise ChunkError(
                name, f"has values of type {dtype}, while {self.set_by} has {self.dtype}"
            )
        for values in rows[:3]:
            if values is not None:
                Piece(ArraySource(values, name), 0, rows.X.shape[0]).read()
        if rows.weight is not None:
            checked_weight(rows.weight, name)
        return rows._replace(X=rows.X.astype(self.dtype, copy=False))


class IterableChunks(Chunks):
    """Chunks as an iterable gives them: ``X``, ``(X, y)`` or ``(X, y, weight)``.

    Parameters
    ----------
    chunks : iterable
        Read anew for every pass.
    """

    def __init__(self, chunks: Iterable[Any]):
        if iter(chunks) is iter(chunks):
            raise ValueError(
                "X can be read only once, like a generator: give a list of chunks, or an object "
                "whose __iter__ begins anew"
            )
        self._chunks = chunks
        first = next(iter(chunks), None)
        if first is None:
            raise ValueError("X has no chunks")
        rows = rows_of(first, "chunk 0")
        self.n_rows = None
        self.n_features, self.dtype = rows.X.shape[1], rows.X.dtype
        self.sources = [type(chunks).__name__]
        self._first = mark_of(rows.X)

    def unread(self, skip: int = 0) -> Iterator[UnreadChunk]:
        """Yield the chunks from number ``skip`` on."""
        layout = Layout(self.n_features, self.dtype, "chunk 0")
        begin = 0
        for number, chunk in enumerate(self._chunks):
            name = f"chunk {number}"
            if number < skip:
                begin += rows_of(chunk, name).X.shape[0]
                continue
            rows = layout.checked(chunk, name)
            yield ReadyChunk(Chunk(*rows[:3], begin, name))
            begin += rows.X.shape[0]

    def fingerprint(self, until: int | None = None) -> dict[str, Any]:
        """Return a digest of the first chunk; more would have to be read."""
        return {"first chunk": self._first, "dtype": self.dtype.str}


def rows_of(chunk: Any, name: str) -> Rows:
    """Return ``X``, ``(X, y)`` or ``(X, y, weight)`` as arrays of the same number of rows."""
    parts = chunk if isinstance(chunk, tuple) else (chunk,)
    if not 1 <= len(parts) <= 3:
        raise ChunkError(name, f"is a tuple of {len(parts)}, not X, (X, y) or (X, y, weight)")
    X = sp.csr_array(parts[0]) if sp.issparse(parts[0]) else np.asarray(parts[0])
    if X.ndim != 2 or X.dtype.kind not in NUMBERS:
        raise ChunkError(name, f"has shape {X.shape} and type {X.dtype}, not rows of numbers")
    others = [None if values is None else _labels(values) for values in parts[1:]]
    for values, what in zip(others, ("targets", "weights"), strict=False):
        if values is not None and len(values) != X.shape[0]:
            raise ChunkError(name, f"has {X.shape[0]} rows and {len(values)} {what}")
    y, weight = (*others, None, None)[:2]
    return Rows(X, y, weight)


def _labels(values: Any) -> Array:
    labels = np.asarray(values)
    return np.array(labels.tolist()) if labels.dtype == object else labels


def open_iterable(X: Iterable[Any], columns: Columns) -> Chunks:
    """Open an iterable of chunks, which have their own targets and weights."""
    if columns.y is not None or columns.sample_weight is not None:
        raise ValueError("chunks bring their targets along: yield (X, y) or (X, y, weight)")
    return IterableChunks(X)


def _is_iterable_of_chunks(X: Any) -> bool:
    """Return whether ``X`` is an iterable of chunks, not an array or a list of rows."""
    if hasattr(X, "__array__") or hasattr(X, "shape"):
        return False
    if isinstance(X, list | tuple):
        first: Any = X[0] if X else None
        return isinstance(first, tuple) or sp.issparse(first) or np.ndim(first) == 2
    return isinstance(X, Iterable)


ITERABLE = Kind("an iterable of chunks", open_iterable, is_object=_is_iterable_of_chunks)
