"""Rows as codes of words: what a product quantizer makes of rows.

A row of ``d`` numbers is cut into blocks, and every block is one of a few words; a code is the
number of the word. Codes are kept in chunks of 32 blocks, chunk by chunk and in a chunk row by row,
so that what is learnt about a few blocks stays in the cache while all rows use it.
"""

import hashlib
import os
import zipfile
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from hilbin._arrays import Array
from hilbin._core import core
from hilbin.files import written_whole
from hilbin.parallel import ranges

CHUNK: int = core.chunk_blocks
FORMAT = "hilbin codes 1"
FILE_PARTS = ("format", "chunks", "words", "n_features", "fingerprint")
DECODED_ROWS = 256


class PQCodes:
    """Rows of numbers, each block of a row stored as the number of its word.

    To NumPy this is an array of shape ``(n, d)``: ``np.asarray`` decodes it, and an index of rows
    gives what it gives for an array, as codes again unless it is one row. Rows cannot be changed.

    Parameters
    ----------
    chunks : array of shape (ceil(blocks / 32), n, 32)
        PQCodes, as uint8 or uint16; block ``b`` of row ``i`` is ``chunks[b // 32, i, b % 32]``, and
        what there is beyond the last block is 0.
    words : float32 array of shape (blocks, n_words, block size)
        The words of every block; the last block may have fewer components, filled up with 0.
    n_features : int
        ``d``, the number of components of a row.
    fingerprint : str, optional
        That of ``words`` if it is known already.

    Attributes
    ----------
    chunks, words, n_features
        As given.
    fingerprint : str
        Tells words apart: codes of different fingerprint do not belong together.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.maps import ProductQuantizer
    >>> X = np.random.default_rng(0).normal(size=(500, 64)).astype(np.float32)
    >>> codes = ProductQuantizer(n_words=16, random_state=0).fit_transform(X)
    >>> codes
    PQCodes(500 rows of 64 numbers: 8 blocks of 16 words, 16.0 kB)
    >>> codes[:100].shape
    (100, 64)
    >>> codes[:100].append(codes[100:]).decode().shape
    (500, 64)
    """

    ndim = 2
    dtype = np.dtype(np.float32)

    def __init__(
        self, chunks: Array, words: Array, n_features: int, fingerprint: str | None = None
    ) -> None:
        _require_fitting(chunks, words, n_features)
        self.chunks, self.words, self.n_features = chunks, words, n_features
        self.fingerprint = fingerprint_of(words) if fingerprint is None else fingerprint

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and components."""
        return self.chunks.shape[1], self.n_features

    @property
    def nbytes(self) -> int:
        """Bytes of the codes; the words, however many rows there are, take ``words.nbytes``."""
        return int(self.chunks.nbytes)

    def __len__(self) -> int:
        return self.chunks.shape[1]

    def __repr__(self) -> str:
        blocks, n_words, _ = self.words.shape
        size = f"{self.nbytes / 1e3:.1f} kB" if self.nbytes < 1e6 else f"{self.nbytes / 1e6:.1f} MB"
        rows = f"{len(self)} rows of {self.n_features} numbers"
        return f"PQCodes({rows}: {blocks} blocks of {n_words} words, {size})"

    def __getitem__(self, rows: Any) -> Any:
        """Some rows, by a slice, numbers or a mask; one row, by its number, is decoded."""
        if isinstance(rows, tuple):
            if len(rows) != 2 or not _is_everything(rows[1]):
                raise IndexError("codes are indexed by rows alone: decode() them to take columns")
            rows = rows[0]
        if isinstance(rows, (int, np.integer)) and not isinstance(rows, (bool, np.bool_)):
            number = range(len(self))[rows]
            return self[number : number + 1].decode()[0]
        if not isinstance(rows, slice):
            rows = np.asarray(rows)
            rows = rows.astype(np.intp) if rows.size == 0 and rows.dtype != bool else rows
            if rows.ndim != 1:
                raise IndexError(f"codes are indexed by numbers of rows, got {rows.ndim} axes")
        some = self.chunks[:, rows]
        return self._of(some if _is_rows_of_codes(some) else np.ascontiguousarray(some))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("codes cannot be an array without a copy: they are decoded")
        return self.decode().astype(self.dtype if dtype is None else dtype, copy=False)

    def decode(self) -> npt.NDArray[np.float32]:
        """The rows in numbers.

        Returns
        -------
        rows : float32 array of shape (n, d)
        """
        blocks, _, size = self.words.shape
        whole = np.empty((len(self), blocks * size), np.float32)
        for begin, end in ranges(len(self), DECODED_ROWS):
            core.decode_words(self.chunks[:, begin:end], self.words, whole[begin:end])
        return whole if blocks * size == self.n_features else whole[:, : self.n_features].copy()

    def append(self, *others: "PQCodes") -> "PQCodes":
        """The rows of all, in a new object.

        Parameters
        ----------
        *others : PQCodes
            Of the same quantizer.

        Returns
        -------
        codes : PQCodes
        """
        for other in others:
            if not isinstance(other, PQCodes):
                raise TypeError(f"others must be PQCodes, got {type(other).__name__}")
            require_same_words(self.fingerprint, other)
        chunks = [self.chunks, *(other.chunks for other in others)]
        return self._of(np.concatenate(chunks, axis=1))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write codes and words to one file, whole or not at all.

        Parameters
        ----------
        path : path-like
            Where to; an ``.npz`` file, of arrays alone.
        """
        given = (FORMAT, self.chunks, self.words, self.n_features, self.fingerprint)
        parts: dict[str, Any] = dict(zip(FILE_PARTS, given, strict=True))
        with written_whole(path) as file:
            np.savez(file, **parts)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what :meth:`save` wrote.

        Parameters
        ----------
        path : path-like
            The file.

        Returns
        -------
        codes : PQCodes
        """
        try:
            with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
                parts = {name: file[name] for name in FILE_PARTS}
            if parts.pop("format") != FORMAT:
                raise ValueError("it has another format")
            n_features, stated = int(parts["n_features"]), str(parts["fingerprint"])
            codes = cls(parts["chunks"], parts["words"], n_features)
        except (ValueError, KeyError, TypeError, zipfile.BadZipFile, EOFError) as error:
            raise ValueError(f"{os.fspath(path)} is no file of codes: {error}") from error
        if codes.fingerprint != stated:
            raise ValueError(
                f"{os.fspath(path)} is damaged: its words are not those it was made of"
            )
        return codes

    def _of(self, chunks: Array) -> "PQCodes":
        """Other rows, already known to be codes of these words."""
        codes = object.__new__(type(self))
        codes.__dict__.update(vars(self), chunks=chunks)
        return codes


def fingerprint_of(words: Array) -> str:
    """What tells words apart."""
    digest = hashlib.blake2b(str(words.shape).encode(), digest_size=16)
    digest.update(np.ascontiguousarray(words, "<f4").data)
    return digest.hexdigest()


def require_same_words(fingerprint: str, codes: PQCodes) -> None:
    """Refuse codes whose words are others."""
    if codes.fingerprint != fingerprint:
        raise ValueError("these are codes from another quantizer: their words are others")


def _is_everything(index: Any) -> bool:
    return index is Ellipsis or (isinstance(index, slice) and index == slice(None))


def _is_rows_of_codes(chunks: Array) -> bool:
    """Whether the core takes the array as it is."""
    item = chunks.itemsize
    return chunks.strides[2] == item and (len(chunks[0]) < 2 or chunks.strides[1] == CHUNK * item)


def _require_fitting(chunks: Array, words: Array, n_features: int) -> None:
    if words.ndim != 3 or words.dtype != np.float32 or not words.flags.c_contiguous:
        raise ValueError("words must be a contiguous float32 array of blocks x words x components")
    blocks, n_words, size = words.shape
    if chunks.dtype not in (np.uint8, np.uint16):
        raise ValueError(f"chunks must be uint8 or uint16, got {chunks.dtype}")
    if chunks.ndim != 3 or chunks.shape[2] != CHUNK or len(chunks) != -(-blocks // CHUNK):
        raise ValueError(f"chunks of shape {chunks.shape} do not hold {blocks} blocks")
    if not _is_rows_of_codes(chunks):
        raise ValueError("the rows of a chunk must follow each other in memory")
    if not (blocks - 1) * size < n_features <= blocks * size:
        raise ValueError(f"n_features={n_features} is not {blocks} blocks of {size} components")
    if n_words <= np.iinfo(chunks.dtype).max and chunks.size and chunks.max() >= n_words:
        raise ValueError(f"chunks has the code {chunks.max()}, but there are {n_words} words")
