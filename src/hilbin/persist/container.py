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
"""

import hashlib
import json
import math
import os
import re
import struct
from collections.abc import Iterator, Sequence
from typing import IO, Any, NoReturn

import numpy as np

from hilbin._arrays import Array
from hilbin.files import written_whole
from hilbin.persist.errors import ModelFileError

MAGIC = b"\x89HILBIN\n"
VERSION = 1
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


def write(path: str | os.PathLike[str], header: dict[str, Any], arrays: Sequence[Array]) -> None:
    """Write ``header`` and contiguous little-endian ``arrays``, whole or not at all."""
    digest, length = hashlib.sha256(), 0
    for piece in _pieces(arrays):
        digest.update(piece)
        length += len(piece)
    described = [describe(array) for array in arrays]
    header = {**header, "arrays": described, "data": [length, digest.hexdigest()]}
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    text += b" " * (-len(text) % ALIGN)
    preamble = PREAMBLE.pack(MAGIC, VERSION, 0, len(text), START + len(text) + length)
    with written_whole(path) as file:
        file.write(preamble + hashlib.sha256(preamble + text).digest() + text)
        for piece in _pieces(arrays):
            file.write(piece)


def _pieces(arrays: Sequence[Array]) -> Iterator[Any]:
    for array in arrays:
        raw = _raw(array)
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
    if version != VERSION:
        reads = f"is of format {version}, and this hilbin reads format {VERSION} alone"
        refuse(file, f"{reads}; a newer hilbin reads it" if version > VERSION else reads)
    if size != file_length:
        _refuse_length(file, size, file_length)
    try:
        header = json.loads(text, parse_constant=_no_constant)
        if not isinstance(header, dict):
            raise ValueError("the header is no object")
    except (ValueError, RecursionError) as error:
        refuse(file, f"is malformed: {error}")
    return header


def read_arrays(file: IO[bytes], header: dict[str, Any]) -> list[Array]:
    """Return the arrays after checking their checksum.

    Their sizes are compared with that of the file before any memory is taken.
    """
    there = os.fstat(file.fileno()).st_size - file.tell()
    length, expected = header["data"]
    sizes = [_checked_bytes(*described) for described in header["arrays"]]
    total = sum(size + -size % ALIGN for size in sizes)
    if not total == length == there:
        raise ValueError(f"its arrays take {total} bytes, but {there} follow the header")
    digest = hashlib.sha256()
    arrays = []
    for (dtype, shape, order), size in zip(header["arrays"], sizes, strict=True):
        array = np.empty(shape, dtype, order=order)
        raw = _raw(array)
        padding = bytes(-size % ALIGN)
        # A file that shrinks meanwhile leaves zeros or garbage, which the digest shows.
        file.readinto(raw)  # type: ignore[attr-defined]
        digest.update(raw)
        digest.update(file.read(len(padding)))
        arrays.append(array)
    if digest.hexdigest() != expected:
        refuse(file, "is corrupted: its arrays do not have the checksum they should have")
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


def _checked_bytes(dtype: Any, shape: Any, order: Any) -> int:
    """Return the number of bytes of an array that the header describes."""
    sizes = isinstance(shape, list) and all(type(n) is int and 0 <= n < 2**63 for n in shape)
    if not (isinstance(dtype, str) and is_storable(dtype) and sizes and order in ("C", "F")):
        raise ValueError(f"{[dtype, shape, order]} is no array")
    return np.dtype(dtype).itemsize * math.prod(shape)


def _require_values(array: Array) -> None:
    """Refuse bytes that are no value of their dtype: reading them is undefined behavior."""
    raw = np.frombuffer(_raw(array), np.uint8)
    if array.dtype.kind == "b" and raw.max(initial=0) > 1:
        raise ValueError("a truth value is neither 0 nor 1")
    if array.dtype.kind == "U" and raw.view("<u4").max(initial=0) > LAST_CHARACTER:
        raise ValueError("a text has a character beyond the last one")
