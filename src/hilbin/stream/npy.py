"""NumPy's files as sources: ``.npy``, ``.npz`` and folders of them.

Rows of a ``.npy`` file are read at their place, not mapped: mapped pages count as memory in use
until the system wants them back, and a mapped file that shrinks ends the process. Arrays that
``np.savez`` stored are read the same way inside their ``.npz``; compressed ones, and CSR matrices
of ``scipy.sparse.save_npz``, are read whole, once, and cut from memory.
"""

import math
import re
import struct
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from hilbin._arrays import Array
from hilbin.stream.chunks import ChunkError
from hilbin.stream.sources import (
    WEIGHTS,
    Columns,
    Kind,
    Rows,
    Source,
    Sources,
    concatenated,
    file_mark,
)

SUFFIXES = (".npy", ".npz")
LOCAL_HEADER = struct.Struct("<26xHH")


class NpySource(Source):
    """Rows of an array in NumPy's format, from some place of a file on."""

    def __init__(self, path: Path, *, name: str = "", at: int = 0, room: int | None = None):
        self.path, self.name = path, name or str(path)
        self._mark = file_mark(path)
        with open(path, "rb") as file:
            file.seek(at)
            try:
                shape, self.fortran, self.dtype = _header(file)
            except ValueError as error:
                raise ChunkError(self.name, f"is no array of NumPy: {error}") from error
            self.start = file.tell()
        self.n_rows, self.width = _rows_and_width(shape, self.dtype, self.name)
        self.row_bytes = self.dtype.itemsize * (1 if self.width is None else self.width)
        needed = self.start - at + self.dtype.itemsize * math.prod(shape)
        there = self._mark["size"] - at if room is None else room
        if there < needed:
            raise ChunkError(
                self.name, f"is truncated: {needed - there} of {needed} bytes are missing"
            )

    def read(self, begin: int, end: int) -> Rows:
        """Read rows at their place in the file."""
        if self.fortran:
            shape = (self.n_rows,) if self.width is None else (self.n_rows, self.width)
            mapped = np.memmap(self.path, self.dtype, "r", self.start, shape, order="F")
            return Rows(np.array(mapped[begin:end], order="C"))
        shape = (end - begin,) if self.width is None else (end - begin, self.width)
        values = np.empty(shape, self.dtype)
        with open(self.path, "rb", buffering=0) as file:
            file.seek(self.start + begin * int(self.row_bytes))
            _fill(file, values)
        return Rows(values)

    def mark(self) -> dict[str, Any]:
        """Return path, size and time of the file when it was opened."""
        return self._mark


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise ValueError(f"version {version} of the format is not read")
    return readers[version](file)


def _rows_and_width(
    shape: tuple[int, ...], dtype: np.dtype[Any], name: str
) -> tuple[int, int | None]:
    if dtype.hasobject:
        raise ChunkError(name, "holds Python objects, not numbers")
    if len(shape) not in (1, 2):
        raise ChunkError(name, f"has shape {shape}, not rows of features")
    return shape[0], shape[1] if len(shape) == 2 else None


def _fill(file: IO[bytes], values: Array) -> None:
    wanted: Any = values.reshape(-1).view(np.uint8).data
    while len(wanted):
        count = file.readinto(wanted)  # type: ignore[attr-defined]
        if not count:
            raise EOFError(f"the file ends {len(wanted)} bytes too early")
        wanted = wanted[count:]


class WholeSource(Source):
    """An array or a CSR matrix that is read all at once and kept until its last row is read.

    Parameters
    ----------
    path : Path
    member : str or None
        Name of the array; None for a CSR matrix.
    shape, dtype, nbytes
        As the headers in the file have them.
    """

    def __init__(
        self,
        path: Path,
        member: str | None,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        nbytes: int,
    ):
        self.path, self.member = path, member
        self.name = f"{path}[{member}]" if member else str(path)
        self.n_rows, self.width = _rows_and_width(shape, dtype, self.name)
        self.dtype, self.sparse = dtype, member is None
        self.row_bytes = nbytes / max(1, self.n_rows)
        self._mark = file_mark(path)
        self._held: Any = None

    def read(self, begin: int, end: int) -> Rows:
        """Return a part of the whole, which is read if it is not in memory."""
        values = self._held
        if values is None and self.member is None:
            values = sp.csr_array(sp.load_npz(self.path))
        elif values is None:
            with np.load(self.path, allow_pickle=False) as arrays:
                values = arrays[self.member]
        self._held = None if end == self.n_rows else values
        return Rows(values[begin:end])

    def mark(self) -> dict[str, Any]:
        """Return path, size and time of the file when it was opened."""
        return self._mark

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_held": None}


def npz_sources(path: Path) -> tuple[Source, Source | None, Source | None]:
    """Return rows, targets and weights of a ``.npz`` file."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = {Path(m.filename).stem: m for m in archive.infolist()}
            if "indptr" in members:
                return _csr(path, archive), None, None
            named = [name for name in members if name not in ("y", *WEIGHTS)]
            if "X" not in members and len(named) != 1:
                there = ", ".join(members) or "none"
                raise ChunkError(str(path), f"has no array X; it has {there}")
            rows = "X" if "X" in members else named[0]
            others = (name for name in ("y", *WEIGHTS) if name in members)
            found = {name: _member(path, archive, members[name]) for name in (rows, *others)}
    except (zipfile.BadZipFile, OSError, KeyError, EOFError, zlib.error) as error:
        raise ChunkError(str(path), f"is no whole .npz file: {error}") from error
    weight = next((found[name] for name in WEIGHTS if name in found), None)
    return found[rows], found.get("y"), weight


def _csr(path: Path, archive: zipfile.ZipFile) -> Source:
    with archive.open("shape.npy") as file:
        shape = tuple(int(side) for side in np.lib.format.read_array(file))
    with archive.open("data.npy") as file:
        (n_values,), _, dtype = _header(file)
    return WholeSource(path, None, shape, dtype, n_values * (dtype.itemsize + 4))


def _member(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Source:
    name = Path(member.filename).stem
    if member.compress_type != zipfile.ZIP_STORED:
        with archive.open(member) as stream:
            shape, _, dtype = _header(stream)
        return WholeSource(path, name, shape, dtype, math.prod(shape) * dtype.itemsize)
    with open(path, "rb") as file:
        file.seek(member.header_offset)
        lengths = LOCAL_HEADER.unpack(file.read(LOCAL_HEADER.size))
    at = member.header_offset + LOCAL_HEADER.size + sum(lengths)
    return NpySource(path, name=f"{path}[{name}]", at=at, room=member.file_size)


def file_sources(path: Path) -> tuple[Source, Source | None, Source | None]:
    """Return rows, targets and weights of one file."""
    if path.suffix == ".npz":
        return npz_sources(path)
    return NpySource(path), None, None


class Shards(NamedTuple):
    """Files of rows, targets and weights of a folder, each in the order of their names."""

    rows: list[Path]
    targets: list[Path]
    weights: list[Path]


def shards(folder: Path) -> Shards | None:
    """Find the files of rows, targets and weights in a folder.

    Targets are in files whose name begins with ``y``, weights with ``weight`` or
    ``sample_weight``; numbers in names are compared as numbers.
    """
    rest = re.compile(r"(?:[^A-Za-z].*)?\.np[yz]")
    found = Shards([], [], [])
    for path in array_files(folder):
        column = found.rows
        for word in ("y", *WEIGHTS):
            if path.name.startswith(word) and rest.fullmatch(path.name[len(word) :]):
                column = found.targets if word == "y" else found.weights
        column.append(path)
    for files in found[1:]:
        if files and found.rows and len(files) not in (1, len(found.rows)):
            raise ChunkError(
                str(folder), f"has {len(found.rows)} files of rows and {len(files)} of targets"
            )
    return found if found.rows else None


def array_files(folder: Path) -> list[Path]:
    """Find all files of arrays in a folder, in the order of their names."""
    found = [path for path in folder.iterdir() if path.suffix in SUFFIXES and path.name[0] != "."]
    return sorted(found, key=_natural)


def _natural(path: Path) -> list[Any]:
    parts = re.split(r"(\d+)", path.name)
    return [(int(p), "") if p.isdigit() else (-1, p) for p in parts]


def open_npy(found: list[Path] | Shards, columns: Columns) -> Sources:
    """Open files, or the shards of a folder with their targets and weights."""
    files = found if isinstance(found, Shards) else Shards(found, [], [])
    sources = concatenated([file_sources(path) for path in files.rows])
    beside = [[file_sources(path)[0] for path in column] for column in files[1:]]
    return Sources(sources.rows, sources.targets or beside[0], sources.weights or beside[1])


NPY = Kind(".npy, .npz", open_npy, is_file=lambda path: path.suffix in SUFFIXES, in_folder=shards)
