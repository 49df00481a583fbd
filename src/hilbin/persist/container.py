"""The bytes of a model file: a preamble, a JSON header and arrays, each with a checksum.

======  =====  =======================================================================
Offset  Bytes  Content
======  =====  =======================================================================
0       8      ``89 48 49 4C 42 49 4E 0A``: a byte that is no text, ``HILBIN``, a line end
8       4      format version
12      4      zero
16      8      length of the header
24      8      length of the file
32      32     SHA-256 of the 32 bytes above and the header
64             header: JSON in ASCII, filled up with spaces to a multiple of 64 bytes
               arrays, each filled up with zeros to a multiple of 64 bytes
======  =====  =======================================================================

Numbers are little-endian. The header names the arrays in their order (dtype, shape, order of
storage), the length of all of them and their SHA-256, so that no byte of the file can change
unnoticed, and the header can be read alone. The preamble is the same in all versions of the format.
Format 1 has the bytes of arrays as they are in memory. In format 2, of compact files, they are
packed (:mod:`hilbin.persist.packing`), and the header also has the number of packed bytes and the
coding of each array.
"""

import hashlib
import json
import math
import os
import re
import struct
from collections.abc import Iterator, Sequence
from typing import IO, Any, NamedTuple, NoReturn

import numpy as np

from hilbin._arrays import Array
from hilbin.files import written_whole
from hilbin.persist import packing
from hilbin.persist.errors import ModelFileError

MAGIC = b"\x89HILBIN\n"
VERSION, COMPACT_VERSION = 1, 2
PREAMBLE = struct.Struct("<8sIIQQ")
START = PREAMBLE.size + hashlib.sha256().digest_size
ALIGN = 64
NUMBERS = {"|b1", "|i1", "|u1"} | {f"<{kind}{size}" for kind in "iu" for size in (2, 4, 8)}
NUMBERS |= {"<f2", "<f4", "<f8", "<c8", "<c16"}
TEXT = re.compile(r"<U[1-9][0-9]{0,8}|\|S[1-9][0-9]{0,8}")
LAST_CHARACTER = 0x10FFFF


def is_storable(dtype: str) -> bool:
    """Say whether arrays of this dtype, as NumPy writes it, can be in a file."""
    return dtype in NUMBERS or TEXT.fullmatch(dtype) is not None


def describe(array: Array) -> list[Any]:
    """Return what the header says about a contiguous array."""
    return [array.dtype.str, list(array.shape), "C" if array.flags.c_contiguous else "F"]


def write(
    path: str | os.PathLike[str],
    header: dict[str, Any],
    arrays: Sequence[Array],
    steps: dict[int, float] | None = None,
) -> None:
    """Write ``header`` and contiguous little-endian ``arrays``, whole or not at all.

    With ``steps`` the file is compact: they are those of the arrays that were rounded, by place.
    """
    version, described = VERSION, [describe(array) for array in arrays]
    stored: Sequence[Any] = [_raw(array) for array in arrays]
    if steps is not None:
        packed = [packing.pack(array, steps.get(i)) for i, array in enumerate(arrays)]
        if _may_unpack(sum(map(len, stored)), sum(len(content) for content, _ in packed)):
            version, stored = COMPACT_VERSION, [content for content, _ in packed]
            both = zip(described, packed, strict=True)
            described = [[*said, len(content), coding] for said, (content, coding) in both]
    digest, length = hashlib.sha256(), 0
    for piece in _pieces(stored):
        digest.update(piece)
        length += len(piece)
    header = {**header, "arrays": described, "data": [length, digest.hexdigest()]}
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    text += b" " * (-len(text) % ALIGN)
    preamble = PREAMBLE.pack(MAGIC, version, 0, len(text), START + len(text) + length)
    with written_whole(path) as file:
        file.write(preamble + hashlib.sha256(preamble + text).digest() + text)
        for piece in _pieces(stored):
            file.write(piece)


def _may_unpack(n_bytes: int, n_packed: int) -> bool:
    """Say whether so many bytes may come of so few: a small file must not take all memory."""
    return n_bytes <= packing.MOST_RATIO * n_packed + packing.ROOM


def _pieces(stored: Sequence[Any]) -> Iterator[Any]:
    for raw in stored:
        yield raw
        yield bytes(-len(raw) % ALIGN)


def _raw(array: Array) -> Any:
    """Return the bytes of a contiguous array, in the order of its storage, as a view."""
    if array.nbytes == 0:
        return memoryview(bytearray())
    flat = (array if array.flags.c_contiguous else array.T).reshape(-1)
    return flat.view(np.uint8).data


def read_header(file: IO[bytes]) -> dict[str, Any]:
    """Return the header after checking the preamble and the header's checksum."""
    size = os.fstat(file.fileno()).st_size
    start = file.read(START)
    _require_magic(file, start, size)
    *_, version, _, header_length, file_length = PREAMBLE.unpack(start[: PREAMBLE.size])
    if START + header_length > size:
        _refuse_length(file, size, file_length)
    text = file.read(header_length)
    expected = hashlib.sha256(start[: PREAMBLE.size] + text).digest()
    if expected != start[PREAMBLE.size :]:
        refuse(file, "is corrupted: its header does not have the checksum it should have")
    if version not in (VERSION, COMPACT_VERSION):
        reads = f"is of format {version}, and this hilbin reads {VERSION} and {COMPACT_VERSION}"
        refuse(file, f"{reads}; a newer hilbin reads it" if version else reads)
    if size != file_length:
        _refuse_length(file, size, file_length)
    try:
        header = json.loads(text, parse_constant=_no_constant)
        if not isinstance(header, dict):
            raise ValueError("the header is no object")
    except (ValueError, RecursionError) as error:
        refuse(file, f"is malformed: {error}")
    return {**header, "format": version}


class Stored(NamedTuple):
    """What the header says of an array; ``n_packed`` and ``coding`` are those of format 2."""

    dtype: str
    shape: list[int]
    order: Any
    n_packed: int | None = None
    coding: Any = None

    @property
    def n_unpacked(self) -> int:
        """Number of bytes in memory."""
        return int(np.dtype(self.dtype).itemsize * math.prod(self.shape))

    @property
    def n_bytes(self) -> int:
        """Number of bytes in the file, without those that fill up."""
        return self.n_unpacked if self.n_packed is None else self.n_packed

    def read(self, file: IO[bytes], digest: Any) -> Array:
        """Return the array, or its packed bytes, and add what was read to the digest."""
        packed = self.n_packed is not None
        shape, dtype = (self.n_packed, "|u1") if packed else (self.shape, self.dtype)
        array: Array = np.empty(shape, dtype, order=self.order)  # type: ignore[arg-type]
        raw = _raw(array)
        # A file that shrinks meanwhile leaves zeros or garbage, which the digest shows.
        file.readinto(raw)  # type: ignore[attr-defined]
        digest.update(raw)
        digest.update(file.read(-self.n_bytes % ALIGN))
        return array

    def unpacked(self, array: Array) -> Array:
        """Return the array that was read, unpacked if it was packed."""
        if self.n_packed is None:
            return array
        return packing.unpack(array.tobytes(), self.dtype, self.shape, self.order, self.coding)


def read_arrays(file: IO[bytes], header: dict[str, Any]) -> list[Array]:
    """Return the arrays after checking their checksum.

    Their sizes are compared with that of the file before any memory is taken.
    """
    there = os.fstat(file.fileno()).st_size - file.tell()
    length, expected = header["data"]
    stored = [_checked(Stored(*said), header["format"]) for said in header["arrays"]]
    total = sum(one.n_bytes + -one.n_bytes % ALIGN for one in stored)
    if not total == length == there:
        raise ValueError(f"its arrays take {total} bytes, but {there} follow the header")
    if not _may_unpack(sum(one.n_unpacked for one in stored), total):
        raise ValueError("its arrays would unpack to far more than the file holds")
    digest = hashlib.sha256()
    read = [one.read(file, digest) for one in stored]
    if digest.hexdigest() != expected:
        refuse(file, "is corrupted: its arrays do not have the checksum they should have")
    arrays = [one.unpacked(array) for one, array in zip(stored, read, strict=True)]
    for array in arrays:
        _require_values(array)
    return [array.astype(array.dtype.newbyteorder("="), copy=False) for array in arrays]


def refuse(file: IO[bytes], what: str) -> NoReturn:
    """Raise an error about the file."""
    raise ModelFileError(f"{file.name} {what}")


def _require_magic(file: IO[bytes], start: bytes, size: int) -> None:
    if size == 0:
        refuse(file, "is empty")
    if not start.startswith(MAGIC[:size]):
        if start[:1] == b"\x80" and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
            refuse(
                file,
                "is a pickle, not a hilbin model: loading a pickle can run any code, and hilbin "
                "does not do it",
            )
        refuse(file, "is not a hilbin model")
    if size < START:
        refuse(file, f"is truncated: at least {START - size} bytes are missing at its end")


def _refuse_length(file: IO[bytes], size: int, file_length: int) -> NoReturn:
    if size < file_length:
        missing = file_length - size
        refuse(file, f"is truncated: {missing} of {file_length} bytes are missing at its end")
    refuse(file, f"is corrupted: it has {size} bytes instead of {file_length}")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _checked(stored: Stored, version: int) -> Stored:
    """Return what the header says of an array, if it describes one of this version."""
    sizes = isinstance(stored.shape, list) and all(map(_is_size, stored.shape))
    known = isinstance(stored.dtype, str) and is_storable(stored.dtype)
    packed = version == COMPACT_VERSION
    fits = _is_size(stored.n_packed) if packed else stored.n_packed is stored.coding is None
    if not (known and sizes and stored.order in ("C", "F") and fits):
        raise ValueError(f"{[*stored]} is no array")
    return stored


def _is_size(n: Any) -> bool:
    return type(n) is int and 0 <= n < 2**63


def _require_values(array: Array) -> None:
    """Refuse bytes that are no value of their dtype: reading them is undefined behavior."""
    raw = np.frombuffer(_raw(array), np.uint8)
    if array.dtype.kind == "b" and raw.max(initial=0) > 1:
        raise ValueError("a truth value is neither 0 nor 1")
    if array.dtype.kind == "U" and raw.view("<u4").max(initial=0) > LAST_CHARACTER:
        raise ValueError("a text has a character beyond the last one")
