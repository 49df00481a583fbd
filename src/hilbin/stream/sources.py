"""Where rows lie: a source is an array or a file of which any range of rows can be read.

Sources one after another are one long table (:class:`Joined`), which is cut into chunks of the same
number of rows, whatever files it lies in: one large file and many small ones give the same chunks,
and so the same sums to the last bit. Reading never spreads: a range of rows is a few :class:`Piece`
objects, each of which can be sent to another process, and in an error names its file and the rows
of it.

A :class:`Kind` says how a kind of data is recognized and opened; ``hilbin.stream.opening.KINDS``
lists them all.
"""

import bisect
import hashlib
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn import get_config

from hilbin._arrays import Array
from hilbin.stream.chunks import Chunk, ChunkError, Chunks, UnreadChunk

HELD = 4  # chunks in memory at a time: one in work, one waiting, one being read, one to spare
MEBIBYTE = 1 << 20
SAMPLED_VALUES = 1 << 16
WEIGHTS = ("weight", "sample_weight")  # names of the array of weights in a file
NUMBERS = "biuf"
UNREADABLE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)


class Rows(NamedTuple):
    """The content of some rows of a source; ``notes`` says which of them were left out."""

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
        """Return the rows from ``begin`` to before ``end``."""

    @abstractmethod
    def mark(self) -> dict[str, Any]:
        """Return what tells that these are still the same rows, without reading them."""

    def cut(self, begin: int, end: int) -> "tuple[Source, int, int]":
        """Return a source and range for the same rows, as small as it can be sent."""
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
        """Return a part of the array; a memory map is copied."""
        part = self.values[begin:end]
        return Rows(np.array(part) if isinstance(part, np.memmap) else part)

    def mark(self) -> dict[str, Any]:
        """Return a digest of a sample of the values."""
        return {"name": self.name, **mark_of(self.values)}

    def cut(self, begin: int, end: int) -> tuple[Source, int, int]:
        """Return the part of the array alone."""
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
        """The source and the rows of it, for messages."""
        return f"{self.source.name}, rows {self.begin} to {self.end - 1}"

    def read(self) -> Rows:
        """Read the rows and check that they are finite numbers of the expected shape."""
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
        """Return the ranges of sources that are the rows from ``begin`` to before ``end``."""
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
        """Return the marks of the sources of the first rows."""
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
    """Join rows one after another."""
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
    """Return row, column and value of the first entry that is NaN or infinite, or None."""
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
    """Return shape, type and a digest of at most ``SAMPLED_VALUES`` evenly chosen entries."""
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


def file_mark(path: Path) -> dict[str, Any]:
    """Return path, size and time of a file."""
    status = path.stat()
    return {"file": str(path.absolute()), "size": status.st_size, "time": status.st_mtime_ns}


def require_numbers(source: Source) -> Source:
    """Refuse rows that are no numbers; targets may be text."""
    if source.dtype.kind not in NUMBERS:
        raise ChunkError(source.name, f"has values of type {source.dtype}, not numbers")
    return source


@dataclass(frozen=True)
class RangeChunk(UnreadChunk):
    """A range of rows of joined sources."""

    begin: int
    rows: int
    dtype: np.dtype[Any]
    X: tuple[Piece, ...]
    y: tuple[Piece, ...]
    weight: tuple[Piece, ...]

    def read(self) -> Chunk:
        """Read the rows, their targets and weights."""
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


class SourceChunks(Chunks):
    """Chunks of rows that lie in sources that can be read by range."""

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

    def unread(self, skip: int = 0) -> Iterator[UnreadChunk]:
        """Yield the chunks, unread, from number ``skip`` on."""
        for begin in range(skip * self._rows, self._X.n_rows, self._rows):
            end = min(begin + self._rows, self._X.n_rows)
            X, y, weight = (
                table.pieces(begin, end) if table else ()
                for table in (self._X, self._y, self._weight)
            )
            yield RangeChunk(begin, end - begin, self.dtype, X, y, weight)

    def fingerprint(self, until: int | None = None) -> dict[str, Any]:
        """Return the marks of the sources, and how they are cut."""
        rows = self._X.n_rows if until is None else until
        tables = {"X": self._X, "y": self._y, "weight": self._weight}
        return {
            "rows per chunk": self._rows,
            "n_features": self.n_features,
            "dtype": self.dtype.str,
            **{name: table.marks(rows) if table else None for name, table in tables.items()},
        }

    @property
    def length(self) -> int:
        """Number of rows to go through, those that will be left out too."""
        return self._X.n_rows


def checked_weight(weight: Array, where: str) -> Array:
    """Return the weights if they are one number >= 0 for every row."""
    if weight.ndim != 1 or weight.dtype.kind not in NUMBERS:
        raise ChunkError(where, "weights must be one number a row")
    if weight.size and weight.min() < 0:
        bad = int(np.argmax(weight < 0))
        raise ChunkError(where, f"the weight of its row {bad} is {weight[bad]}, not >= 0")
    return weight


def rows_per_chunk(row_bytes: float, memory: float | None, grain: int = 1) -> int:
    """Return how many rows a chunk has so that ``HELD`` chunks take ``memory`` MiB."""
    budget = get_config()["working_memory"] if memory is None else memory
    if not budget > 0:
        raise ValueError(f"memory must be positive, got {memory!r}")
    rows = max(1, int(budget * MEBIBYTE / HELD / max(row_bytes, 1)))
    return rows - rows % grain if rows >= grain else rows


class Sources(NamedTuple):
    """Sources of rows, and of their targets and weights if they have some; files side by side."""

    rows: Sequence[Source]
    targets: Sequence[Source] = ()
    weights: Sequence[Source] = ()


class Columns(NamedTuple):
    """Targets and weights that were given beside ``X``, and names of columns within it."""

    y: Any = None
    sample_weight: Any = None
    target: str | None = None
    weight: str | None = None
    features: Sequence[str] | None = None
    n_features: int | None = None


class Kind(NamedTuple):
    """A kind of data that can be opened as chunks.

    Parameters
    ----------
    name : str
        Its name in messages, such as the endings of its files.
    open : callable
        ``open(found, columns)`` returns :class:`Sources`, which are then cut into chunks, or
        :class:`Chunks`. ``found`` is the object, a list of files, or what ``in_folder`` found.
    is_object : callable, optional
        ``is_object(X)`` says whether an object in memory is of this kind.
    is_file : callable, optional
        ``is_file(path)`` says whether a file, or a folder that stands for one, is of this kind.
    in_folder : callable, optional
        ``in_folder(folder)`` finds the files of this kind in a folder; None if there are none.
    """

    name: str
    open: Callable[[Any, Columns], Sources | Chunks]
    is_object: Callable[[Any], bool] | None = None
    is_file: Callable[[Path], bool] | None = None
    in_folder: Callable[[Path], Any] | None = None


def concatenated(each: Sequence[tuple[Source, Source | None, Source | None]]) -> Sources:
    """Put the rows, targets and weights of several files side by side; all files have the same."""
    columns = [[source for source in column if source] for column in zip(*each, strict=True)]
    for place, what in ((1, "y"), (2, "weight")):
        if columns[place] and len(columns[place]) != len(each):
            lacking = next(file[0] for file in each if file[place] is None)
            there = columns[place][0].name
            raise ChunkError(lacking.name, f"has no {what}, while {there} is there")
    return Sources(*columns)
