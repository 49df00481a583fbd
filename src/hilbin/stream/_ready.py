"""Blocks that come ready: from an iterable of the user, or from Dask."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from hilbin.stream._sources import NUMBERS, Array, ArraySource, Piece, Rows, mark_of
from hilbin.stream._table import checked_weight
from hilbin.stream.chunks import Block, Chunk, Chunks
from hilbin.stream.errors import ChunkError


@dataclass(frozen=True)
class ReadBlock(Block):
    """A block that is in memory already."""

    chunk: Chunk

    @property
    def rows(self) -> int:  # type: ignore[override]
        return int(self.chunk.X.shape[0])

    def read(self) -> Chunk:
        return self.chunk


class Layout(NamedTuple):
    """What blocks that come ready must be like, and which of them said so."""

    n_features: int
    dtype: np.dtype[Any]
    said_by: str

    def checked(self, block: Any, name: str) -> Rows:
        """A block of this layout: ``X``, ``(X, y)`` or ``(X, y, weight)``."""
        rows = rows_of(block, name)
        width, dtype = rows.X.shape[1], rows.X.dtype
        if width != self.n_features:
            raise ChunkError(
                name, f"has {width} columns, while {self.said_by} has {self.n_features}"
            )
        if dtype.kind != self.dtype.kind:
            raise ChunkError(
                name, f"has values of type {dtype}, while {self.said_by} has {self.dtype}"
            )
        for values in rows[:3]:
            if values is not None:
                Piece(ArraySource(values, name), 0, rows.X.shape[0]).read()
        if rows.weight is not None:
            checked_weight(rows.weight, name)
        return rows._replace(X=rows.X.astype(self.dtype, copy=False))


class IterableChunks(Chunks):
    """Blocks as an iterable gives them: ``X``, ``(X, y)`` or ``(X, y, weight)``.

    Parameters
    ----------
    blocks : iterable
        Read anew for every pass.
    """

    def __init__(self, blocks: Iterable[Any]):
        if iter(blocks) is iter(blocks):
            raise ValueError(
                "X can be read only once, like a generator: give a list of blocks, or an object "
                "whose __iter__ begins anew"
            )
        self._blocks = blocks
        first = next(iter(blocks), None)
        if first is None:
            raise ValueError("X has no blocks")
        rows = rows_of(first, "block 0")
        self.n_rows = None
        self.n_features, self.dtype = rows.X.shape[1], rows.X.dtype
        self.sources = [type(blocks).__name__]
        self._first = mark_of(rows.X)

    def blocks(self, skip: int = 0) -> Iterator[Block]:
        layout = Layout(self.n_features, self.dtype, "block 0")
        begin = 0
        for number, block in enumerate(self._blocks):
            name = f"block {number}"
            if number < skip:
                begin += rows_of(block, name).X.shape[0]
                continue
            rows = layout.checked(block, name)
            yield ReadBlock(Chunk(*rows[:3], begin, name))
            begin += rows.X.shape[0]

    def fingerprint(self, until: int | None = None) -> dict[str, Any]:
        return {"first block": self._first, "dtype": self.dtype.str}


def rows_of(block: Any, name: str) -> Rows:
    """``X``, ``(X, y)`` or ``(X, y, weight)`` as arrays of the same number of rows."""
    parts = block if isinstance(block, tuple) else (block,)
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
