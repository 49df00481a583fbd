"""Where rows lie: a source is an array or a file of which any range of rows can be read.

Sources one after another are one long table (:class:`Joined`). Reading never spreads: a range of
rows is a few :class:`Piece` objects, each of which can be sent to another process, and in an error
names its file and the rows of it.
"""

import bisect
import hashlib
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hilbin.stream.errors import ChunkError

Array = NDArray[Any]
SAMPLED_VALUES = 1 << 16
NUMBERS = "biuf"
UNREADABLE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)


class Rows(NamedTuple):
    """What a source has in some of its rows; ``notes`` says which of them were left out."""

    X: Any
    y: Array | None = None
    weight: Array | None = None
    notes: tuple[str, ...] = ()


class Source(ABC):
    """Rows of numbers that are read by range; a subclass says what they are before any is read."""

    name: str
    n_rows: int
    width: int | None  # None: one value a row
    dtype: np.dtype[Any]
    row_bytes: float
    sparse: bool = False
    grain: int = 1  # ranges that begin at its multiples are cheapest to read

    @abstractmethod
    def read(self, begin: int, end: int) -> Rows:
        """The rows from ``begin`` to before ``end``."""

    @abstractmethod
    def mark(self) -> dict[str, Any]:
        """What tells that these are still the same rows, without reading them."""

    def cut(self, begin: int, end: int) -> "tuple[Source, int, int]":
        """A source and range for the same rows, as small as it can be sent."""
        return self, begin, end


class ArraySource(Source):
    """Rows of an array or a CSR matrix in memory."""

    def __init__(self, values: Any, name: str = "X"):
        self.values, self.name = values, name
        self.sparse = sp.issparse(values)
        self.n_rows = values.shape[0]
        self.width = values.shape[1] if values.ndim == 2 else None
        self.dtype = values.dtype
        nbytes = values.data.nbytes + values.indices.nbytes if self.sparse else values.nbytes
        self.row_bytes = nbytes / max(1, self.n_rows)

    def read(self, begin: int, end: int) -> Rows:
        part = self.values[begin:end]
        return Rows(np.array(part) if isinstance(part, np.memmap) else part)

    def mark(self) -> dict[str, Any]:
        return {"name": self.name, **mark_of(self.values)}

    def cut(self, begin: int, end: int) -> tuple[Source, int, int]:
        return ArraySource(self.read(begin, end).X, self.name), 0, end - begin


class Piece(NamedTuple):
    """A range of rows of one source."""

    source: Source
    begin: int
    end: int

    def __reduce__(self) -> Any:
        return Piece, self.source.cut(self.begin, self.end)

    @property
    def name(self) -> str:
        return f"{self.source.name}, rows {self.begin} to {self.end - 1}"

    def read(self) -> Rows:
        """The rows, found to be finite numbers of the expected shape."""
        try:
            rows = self.source.read(self.begin, self.end)
        except ChunkError:
            raise
        except UNREADABLE as error:
            raise ChunkError(self.name, f"cannot be read: {error}") from error
        self._check(rows)
        return rows

    def _check(self, rows: Rows) -> None:
        shape = (self.end - self.begin - len(rows.notes), self.source.width)
        if self.source.width is None:
            shape = shape[:1]  # type: ignore[assignment]
        if rows.X.shape != shape:
            raise ChunkError(self.name, f"has shape {rows.X.shape} instead of {shape}")
        if rows.X.dtype.kind != self.source.dtype.kind:
            raise ChunkError(self.name, f"has type {rows.X.dtype} instead of {self.source.dtype}")
        own = "value" if self.source.width is None else "feature"
        for values, what in ((rows.X, own), (rows.y, "target"), (rows.weight, "weight")):
            bad = None if values is None else first_not_finite(values)
            if bad is not None:
                row, column, value = bad
                which = what if column is None else f"{what} {column}"
                raise ChunkError(self.name, f"{which} of row {self.begin + row} is {value}")


class Joined:
    """Sources one after another, which must agree in width and kind.

    Parameters
    ----------
    sources : sequence of Source
        The first says what the others must be like.
    """

    def __init__(self, sources: Sequence[Source]):
        if not sources:
            raise ValueError("there are no data: no source of rows")
        self.sources = list(sources)
        self.ends = list(accumulate(source.n_rows for source in sources))
        self.n_rows = self.ends[-1]
        first = self.sources[0]
        for other in self.sources:
            _require_alike(first, other)
        self.width, self.sparse = first.width, first.sparse
        self.dtype = np.result_type(*{source.dtype for source in sources}).newbyteorder("=")
        total = sum(source.row_bytes * source.n_rows for source in sources)
        self.row_bytes = total / max(1, self.n_rows)
        grains = {source.grain for source in sources}
        self.grain = grains.pop() if len(grains) == 1 else 1

    def pieces(self, begin: int, end: int) -> tuple[Piece, ...]:
        """The ranges of sources that are the rows from ``begin`` to before ``end``."""
        found = []
        place = bisect.bisect_right(self.ends, begin)
        while begin < end:
            before = self.ends[place] - self.sources[place].n_rows
            stop = min(end, self.ends[place])
            if stop > begin:
                found.append(Piece(self.sources[place], begin - before, stop - before))
            begin, place = stop, place + 1
        return tuple(found)

    def marks(self, until: int) -> list[dict[str, Any]]:
        """Marks of the sources of the first rows."""
        touched = bisect.bisect_left(self.ends, until) + 1
        return [source.mark() for source in self.sources[:touched]]


def _require_alike(first: Source, other: Source) -> None:
    if other.width != first.width:
        raise ChunkError(
            other.name, f"has {_columns(other)}, while {first.name} has {_columns(first)}"
        )
    if other.dtype.kind != first.dtype.kind:
        raise ChunkError(
            other.name, f"has values of type {other.dtype}, while {first.name} has {first.dtype}"
        )
    if other.sparse != first.sparse:
        kind = {True: "sparse", False: "dense"}
        raise ChunkError(
            other.name, f"is {kind[other.sparse]}, while {first.name} is {kind[first.sparse]}"
        )


def _columns(source: Source) -> str:
    return "one value a row" if source.width is None else f"{source.width} columns"


def join(parts: Sequence[Rows]) -> Rows:
    """Rows one after another."""
    if len(parts) == 1:
        return parts[0]
    X = [part.X for part in parts]
    joined = sp.csr_array(sp.vstack(X)) if sp.issparse(X[0]) else np.concatenate(X)
    notes = tuple(note for part in parts for note in part.notes)
    y, weight = (_joined([part[place] for part in parts]) for place in (1, 2))
    return Rows(joined, y, weight, notes)


def _joined(values: Sequence[Any]) -> Array | None:
    return None if values[0] is None else np.concatenate(values)


def first_not_finite(values: Any) -> tuple[int, int | None, Any] | None:
    """Row, column and value of the first entry that is NaN or infinite."""
    stored = values.data if sp.issparse(values) else values
    if stored.dtype.kind != "f" or stored.size == 0:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(stored.sum()):  # no larger than one pass; a finite sum has no bad term
            return None
    bad = np.flatnonzero(~np.isfinite(stored))
    if not bad.size:
        return None
    place = int(bad[0])
    if sp.issparse(values):
        row = int(np.searchsorted(values.indptr, place, side="right")) - 1
        return row, int(values.indices[place]), stored[place]
    if values.ndim == 1:
        return place, None, values[place]
    row, column = divmod(place, values.shape[1])
    return row, column, values[row, column]


def mark_of(values: Any) -> dict[str, Any]:
    """Shape, type and a digest of at most ``SAMPLED_VALUES`` evenly chosen entries."""
    parts = [values.data, values.indices, values.indptr] if sp.issparse(values) else [values]
    digest = hashlib.sha256()
    for part in parts:
        size = part.size
        chosen = np.linspace(0, size - 1, min(size, SAMPLED_VALUES)).astype(np.intp)
        sample = part[np.unravel_index(chosen, part.shape)] if size else part
        digest.update(np.ascontiguousarray(sample).tobytes())
    return {
        "shape": list(values.shape),
        "dtype": np.dtype(values.dtype).str,
        "digest": digest.hexdigest(),
    }
