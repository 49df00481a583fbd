"""Files of lines ``target index:value index:value ...`` as sources of CSR rows.

One pass over the file finds the places of the lines, the least and the largest index; after that
any range of lines is read alone. Indices begin at 0 if some line has a 0, and at 1 otherwise.
"""

import io
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from hilbin.stream.chunks import ChunkError
from hilbin.stream.sources import Columns, Kind, Rows, Source, Sources, file_mark

SUFFIXES = (".svm", ".svmlight", ".libsvm")
STRIDE = 256  # lines between places that are remembered
LINE = re.compile(rb"\s*[^\s:]+(\s+qid:\d+)?(\s+\d+:\S+)*\s*(#.*)?\s*")
FIRST, LAST = re.compile(rb"\s(\d+):"), re.compile(rb".*\s(\d+):", re.DOTALL)
ENTRY_BYTES = 12


class Scan(NamedTuple):
    """The result of one pass over a file."""

    path: Path
    offsets: list[int]
    end: int
    n_rows: int
    n_values: int
    least: int | None
    largest: int


def looks_like_svmlight(path: Path) -> bool:
    """Return whether the first line that is no comment is of this format."""
    with open(path, "rb") as file:
        for line in file:
            if line.partition(b"#")[0].strip():
                return LINE.fullmatch(line) is not None
    return False


def scan(path: Path) -> Scan:
    """Find the lines of a file."""
    offsets: list[int] = []
    place = rows = values = 0
    least: int | None = None
    largest = -1
    with open(path, "rb") as file:
        for line in file:
            said = line.partition(b"#")[0]
            if said.strip():
                if rows % STRIDE == 0:
                    offsets.append(place)
                rows += 1
                first, last = FIRST.search(said), LAST.match(said)
                if first and last:
                    low = int(first[1])
                    least = low if least is None else min(least, low)
                    largest = max(largest, int(last[1]))
                    values += said.count(b":")
            place += len(line)
    return Scan(path, offsets, place, rows, values, least, largest)


def open_svmlight(paths: list[Path], columns: Columns) -> Sources:
    """Open files of one data set: they share where indices begin, and the number of features."""
    n_features = columns.n_features
    scans = [scan(path) for path in paths]
    zero_based = any(found.least == 0 for found in scans)
    for found in scans:
        width = found.largest + zero_based
        if n_features is not None and width > n_features:
            raise ChunkError(
                str(found.path), f"has {width} features, but n_features is {n_features}"
            )
    if n_features is None:
        n_features = max(found.largest for found in scans) + zero_based
    return Sources([SvmlightSource(found, n_features, zero_based) for found in scans])


class SvmlightSource(Source):
    """Lines of a file in the format of SVMlight and LIBSVM."""

    sparse = True

    def __init__(self, found: Scan, n_features: int, zero_based: bool):
        self.name, self.n_rows, self.width = str(found.path), found.n_rows, n_features
        self.dtype = np.dtype(np.float64)
        self.row_bytes = ENTRY_BYTES * max(1.0, found.n_values / max(1, found.n_rows))
        self._found, self._zero_based = found, zero_based
        self._mark = file_mark(found.path)

    def read(self, begin: int, end: int) -> Rows:
        """Read lines, from the nearest place that is remembered."""
        offsets = self._found.offsets
        first, after = begin // STRIDE, -(-end // STRIDE)
        start = offsets[first]
        stop = offsets[after] if after < len(offsets) else self._found.end
        with open(self._found.path, "rb") as file:
            file.seek(start)
            text = file.read(stop - start)
        if len(text) < stop - start:
            raise EOFError(f"the file ends {stop - start - len(text)} bytes too early")
        lines = [line for line in text.splitlines(True) if line.partition(b"#")[0].strip()]
        wanted = lines[begin - first * STRIDE : end - first * STRIDE]
        X, y = load_svmlight_file(
            io.BytesIO(b"".join(wanted)), n_features=self.width, zero_based=self._zero_based
        )[:2]
        return Rows(sp.csr_array(X), y)

    def mark(self) -> dict[str, Any]:
        """Return path, size and time of the file when it was opened."""
        return self._mark


def _is_svmlight(path: Path) -> bool:
    return path.suffix in SUFFIXES or (path.is_file() and looks_like_svmlight(path))


def _files(folder: Path) -> list[Path] | None:
    return sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES) or None


SVMLIGHT = Kind(
    f"{', '.join(SUFFIXES)} (lines of 'target index:value ...')",
    open_svmlight,
    is_file=_is_svmlight,
    in_folder=_files,
)
