"""Parquet files as sources, read by row groups.

The row group that a chunk ends in is kept for the next chunk, so that none is decoded twice.
"""

from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from hilbin._arrays import Array
from hilbin.stream.chunks import ChunkError, optional
from hilbin.stream.sources import NUMBERS, Columns, Kind, Rows, Source, Sources, join

SUFFIXES = (".parquet", ".pq")


class ParquetSource(Source):
    """Rows of one Parquet file of a data set."""

    def __init__(self, fragment: Any, schema: Any, columns: dict[str, list[str]]):
        self.name = fragment.path
        self._fragment, self._schema, self._columns = fragment, schema, columns
        self.own = {field.name: field.type.to_pandas_dtype() for field in fragment.physical_schema}
        self._groups = [group.num_rows for group in fragment.row_groups]
        self._ends = list(accumulate(self._groups))
        self.n_rows = self._ends[-1] if self._ends else 0
        self.width = len(columns["X"])
        types = [schema.field(name).type.to_pandas_dtype() for name in columns["X"]]
        self.dtype = np.result_type(*types)
        self.row_bytes = self.dtype.itemsize * self.width
        self._held: tuple[int, Rows] | None = None

    def read(self, begin: int, end: int) -> Rows:
        """Read the row groups that the rows lie in."""
        parts = []
        for number, stop in enumerate(self._ends):
            start = stop - self._groups[number]
            if start < end and stop > begin:
                whole = self._group(number)
                low, high = max(begin - start, 0), min(end, stop) - start
                X, y, weight = (None if v is None else v[low:high] for v in whole[:3])
                parts.append(Rows(X, y, weight))
        return join(parts)

    def _group(self, number: int) -> Rows:
        held = self._held
        if held is None or held[0] != number:
            columns = [name for names in self._columns.values() for name in names]
            part = self._fragment.subset(row_group_ids=[number])
            table = part.to_table(columns=columns, schema=self._schema)
            X = np.empty((table.num_rows, len(self._columns["X"])), self.dtype)
            for place, name in enumerate(self._columns["X"]):
                X[:, place] = self._numbers(table[name], name, number)
            y, weight = (
                _values(table[names[0]]) if names else None
                for names in (self._columns["y"], self._columns["weight"])
            )
            held = number, Rows(X, y, weight)
            self._held = held
        return held[1]

    def _numbers(self, column: Any, name: str, group: int) -> Array:
        if column.null_count:
            row = int(np.argmax(column.is_null().to_numpy()))
            row += self._ends[group] - self._groups[group]
            raise ChunkError(self.name, f"column {name} of row {row} has no value")
        return _values(column)

    def mark(self) -> dict[str, Any]:
        """Return the columns, and size and time of the file if it is on this machine."""
        path = Path(self.name)
        here = path.stat() if path.is_file() else None
        return {
            "file": self.name,
            "size": here.st_size if here else None,
            "time": here.st_mtime_ns if here else None,
            "columns": self._columns,
        }

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_held": None}


def _values(column: Any) -> Array:
    values = column.to_numpy()
    return np.array(values.tolist()) if values.dtype == object else values


def open_parquet(where: Path | list[Path], given: Columns) -> Sources:
    """Open the files of a data set; features are all other columns of numbers by default."""
    target, weight, features = given.target, given.weight, given.features
    dataset = optional("pyarrow.dataset", "reading Parquet files")
    paths = [str(p) for p in where] if isinstance(where, list) else str(where)
    try:
        table = dataset.dataset(paths, format="parquet", partitioning="hive")
    except (OSError, ValueError) as error:
        raise ChunkError(str(paths), f"is no Parquet data set: {error}") from error
    names = [field.name for field in table.schema]
    for name in (*(features or ()), *filter(None, (target, weight))):
        if name not in names:
            raise ChunkError(str(where), f"has no column {name!r}; it has {', '.join(names)}")
    others = [name for name in names if name not in (target, weight)]
    columns = {
        "X": list(features) if features is not None else others,
        "y": [target] if target else [],
        "weight": [weight] if weight else [],
    }
    _require_numbers(table.schema, columns["X"], str(where))
    sources = [_parquet_source(each, table.schema, columns) for each in table.get_fragments()]
    for source in sources:
        _require_columns(source, sources[0], columns["X"], whole=features is None)
    return Sources(sources)


def _require_numbers(schema: Any, names: list[str], where: str) -> None:
    for name in names:
        kind = schema.field(name).type
        try:
            numbers = np.dtype(kind.to_pandas_dtype()).kind in NUMBERS
        except (TypeError, NotImplementedError):
            numbers = False
        if not numbers:
            raise ChunkError(
                where,
                f"column {name} holds {kind}, not numbers: name the target by target=, or the "
                "columns to learn from by features=",
            )


def _parquet_source(fragment: Any, schema: Any, columns: dict[str, list[str]]) -> ParquetSource:
    try:
        return ParquetSource(fragment, schema, columns)
    except (OSError, ValueError) as error:
        raise ChunkError(fragment.path, f"is no whole Parquet file: {error}") from error


def _require_columns(
    source: ParquetSource, first: ParquetSource, names: list[str], *, whole: bool
) -> None:
    """Check that a file has the columns of the first one, and no others if ``whole``."""
    own, wanted = source.own, first.own
    for name in set(names) & set(wanted):
        if name not in own:
            raise ChunkError(source.name, f"has no column {name}, while {first.name} has")
        if np.dtype(own[name]).kind != np.dtype(wanted[name]).kind:
            raise ChunkError(
                source.name,
                f"column {name} has values of type {np.dtype(own[name])}, while {first.name} has "
                f"{np.dtype(wanted[name])}",
            )
    extra = [name for name in own if name not in wanted]
    if whole and extra:
        raise ChunkError(source.name, f"has a column {extra[0]}, while {first.name} has not")


def _folder_of_files(folder: Path) -> Path | None:
    """Return the folder itself: names of folders in it may be columns."""
    return folder if any(path.suffix in SUFFIXES for path in folder.rglob("*")) else None


PARQUET = Kind(
    ", ".join(SUFFIXES),
    open_parquet,
    is_file=lambda path: path.suffix in SUFFIXES,
    in_folder=_folder_of_files,
)
