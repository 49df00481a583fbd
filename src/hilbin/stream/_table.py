"""A table cut into blocks of the same number of rows, whatever files it lies in.

One large file and many small ones give the same blocks, and so the same sums to the last bit.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import get_config

from hilbin.stream._sources import NUMBERS, Array, Joined, Piece, join
from hilbin.stream.chunks import HELD, MEBIBYTE, Block, Chunk, Chunks
from hilbin.stream.errors import ChunkError


@dataclass(frozen=True)
class TableBlock(Block):
    """A range of rows of a table."""

    begin: int
    rows: int
    dtype: np.dtype[Any]
    X: tuple[Piece, ...]
    y: tuple[Piece, ...]
    weight: tuple[Piece, ...]

    def read(self) -> Chunk:
        parts = [piece.read() for piece in self.X]
        joined = join(parts)
        y, weight = (
            join([piece.read() for piece in pieces]).X if pieces else own
            for pieces, own in ((self.y, joined.y), (self.weight, joined.weight))
        )
        where = "; ".join(piece.name for piece in self.X[:3])
        where += f"; and {len(self.X) - 3} more" if len(self.X) > 3 else ""
        if weight is not None:
            weight = checked_weight(weight, where)
        X = joined.X.astype(self.dtype, copy=False)
        return Chunk(X, y, weight, self.begin, where, joined.notes)


class TableChunks(Chunks):
    """Blocks of a table whose rows lie in sources that can be read by range."""

    def __init__(self, X: Joined, y: Joined | None, weight: Joined | None, rows: int):
        self._X, self._y, self._weight, self._rows = X, y, weight, rows
        self.n_rows = X.n_rows
        self.n_features = int(X.width or 0)
        self.dtype = X.dtype
        self.sources = [source.name for source in X.sources]
        for labels, what in ((y, "targets"), (weight, "weights")):
            if labels is not None and labels.n_rows != X.n_rows:
                where = labels.sources[0].name
                raise ValueError(f"{where}: {labels.n_rows} {what} for {X.n_rows} rows")

    def blocks(self, skip: int = 0) -> Iterator[Block]:
        for begin in range(skip * self._rows, self._X.n_rows, self._rows):
            end = min(begin + self._rows, self._X.n_rows)
            X, y, weight = (
                table.pieces(begin, end) if table else ()
                for table in (self._X, self._y, self._weight)
            )
            yield TableBlock(begin, end - begin, self.dtype, X, y, weight)

    def fingerprint(self, until: int | None = None) -> dict[str, Any]:
        rows = self._X.n_rows if until is None else until
        tables = {"X": self._X, "y": self._y, "weight": self._weight}
        return {
            "rows per block": self._rows,
            "n_features": self.n_features,
            "dtype": self.dtype.str,
            **{name: table.marks(rows) if table else None for name, table in tables.items()},
        }

    @property
    def length(self) -> int:
        return self._X.n_rows


def checked_weight(weight: Array, where: str) -> Array:
    """Weights, if they are one number >= 0 for every row."""
    if weight.ndim != 1 or weight.dtype.kind not in NUMBERS:
        raise ChunkError(where, "weights must be one number a row")
    if weight.size and weight.min() < 0:
        bad = int(np.argmax(weight < 0))
        raise ChunkError(where, f"the weight of its row {bad} is {weight[bad]}, not >= 0")
    return weight


def rows_per_block(row_bytes: float, memory: float | None, grain: int = 1) -> int:
    """How many rows a block has, so that ``HELD`` blocks take ``memory`` MiB."""
    budget = get_config()["working_memory"] if memory is None else memory
    if not budget > 0:
        raise ValueError(f"memory must be positive, got {memory!r}")
    rows = max(1, int(budget * MEBIBYTE / HELD / max(row_bytes, 1)))
    return rows - rows % grain if rows >= grain else rows
