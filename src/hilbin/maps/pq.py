r"""Product quantization: rows as codes, 32 times smaller and more.

A row is cut into parts of :math:`G` components, and every part is replaced by the nearest of
:math:`D = 2^{bG}` words of its own, which k-means finds: :math:`b` bits per component instead of
32. A code is the number of a word. Learning on codes is then cheaper than on the numbers: see
:class:`~hilbin.solvers.coded.PQRows`. With a kernel the parts are clustered in its explicit feature
space, where the distance is the kernel's (Jegou, Douze and Schmid, *Product Quantization for
Nearest Neighbor Search*, 2011; Vedaldi and Zisserman, *Sparse Kernel Approximations for Efficient
Classification and Detection*).

k-means is Lloyd's algorithm from random rows; a word that loses all its points goes to a point that
is far from its word. Parts are trained one after the other on a sample of the rows, so that memory
is bounded by the columns of a few parts. Codes are kept for 32 parts at a time, and for these row
by row, so that what is learned about a few parts stays in the cache while all rows use it.
"""

import hashlib
import os
import warnings
import zipfile
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from hilbin._arrays import ACCEPTED, Array, Matrix, check_rows, to_dense, validate_data
from hilbin._core import core
from hilbin._parameters import estimator, require_whole
from hilbin._state import require, require_attributes
from hilbin.files import written_whole
from hilbin.kernels import AdditiveKernel
from hilbin.maps.additive import AdditiveMap
from hilbin.maps.expansion import expand
from hilbin.parallel import ranges, run

GROUP: int = core.chunk_blocks
FORMAT = "hilbin codes 1"
FILE_ENTRIES = ("format", "groups", "words", "n_features", "fingerprint")
DECODED_ROWS = 256
MOST_WORDS = 1 << 16
ROWS_PER_WORD = 40
BAND_BYTES = 1 << 26  # of rows that have to be converted before they are encoded


class PQCodes:
    """Rows of numbers, each part of a row stored as the number of its word.

    To NumPy this is an array of shape ``(n, d)``: ``np.asarray`` decodes it, and an index of rows
    gives what it gives for an array, as codes again unless it is one row. Rows cannot be changed.

    Parameters
    ----------
    groups : array of shape (ceil(parts / 32), n, 32)
        Codes, as uint8 or uint16; part ``p`` of row ``i`` has ``groups[p // 32, i, p % 32]``, and
        what there is beyond the last part is 0.
    words : float32 array of shape (parts, n_words, part size)
        The words of every part; the last part may have fewer components, filled up with 0.
    n_features : int
        Number of components of a row.
    fingerprint : str, optional
        Fingerprint of ``words``, if it is known already.

    Attributes
    ----------
    groups, words, n_features
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
    PQCodes(500 rows of 64 numbers: 8 parts of 16 words, 16.0 kB)
    >>> codes[:100].shape
    (100, 64)
    >>> codes[:100].append(codes[100:]).decode().shape
    (500, 64)
    """

    ndim = 2
    dtype = np.dtype(np.float32)

    def __init__(
        self, groups: Array, words: Array, n_features: int, fingerprint: str | None = None
    ) -> None:
        _require_fitting(groups, words, n_features)
        self.groups, self.words, self.n_features = groups, words, n_features
        self.fingerprint = fingerprint_of(words) if fingerprint is None else fingerprint

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the arrays of loaded codes do not fit together."""
        require_attributes(
            self,
            groups="uint8[*, *, *]|uint16[*, *, *]",
            words="float32[*, *, *]",
            n_features="int",
            fingerprint="str",
        )
        require(vars(self).keys() >= {"groups", "words"}, "groups or words are missing")
        _require_fitting(self.groups, self.words, self.n_features)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of components."""
        return self.groups.shape[1], self.n_features

    @property
    def nbytes(self) -> int:
        """The bytes of the codes; the words, however many rows there are, take ``words.nbytes``."""
        return int(self.groups.nbytes)

    def __len__(self) -> int:
        return self.groups.shape[1]

    def __repr__(self) -> str:
        parts, n_words, _ = self.words.shape
        size = f"{self.nbytes / 1e3:.1f} kB" if self.nbytes < 1e6 else f"{self.nbytes / 1e6:.1f} MB"
        rows = f"{len(self)} rows of {self.n_features} numbers"
        return f"PQCodes({rows}: {parts} part{'s' * (parts > 1)} of {n_words} words, {size})"

    def __getitem__(self, rows: Any) -> Any:
        """Return some rows, by a slice, numbers or a mask; one row, by its number, is decoded."""
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
        some = self.groups[:, rows]
        return self._of(some if _is_rows_of_codes(some) else np.ascontiguousarray(some))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("codes cannot be an array without a copy: they are decoded")
        return self.decode().astype(self.dtype if dtype is None else dtype, copy=False)

    def decode(self) -> npt.NDArray[np.float32]:
        """Return the rows in numbers.

        Returns
        -------
        rows : float32 array of shape (n, d)
        """
        parts, _, size = self.words.shape
        whole = np.empty((len(self), parts * size), np.float32)
        for begin, end in ranges(len(self), DECODED_ROWS):
            core.decode_words(self.groups[:, begin:end], self.words, whole[begin:end])
        return whole if parts * size == self.n_features else whole[:, : self.n_features].copy()

    def append(self, *others: "PQCodes") -> "PQCodes":
        """Return these rows and those of others, in a new object.

        Parameters
        ----------
        *others : PQCodes
            Codes of the same quantizer.

        Returns
        -------
        codes : PQCodes
        """
        for other in others:
            if not isinstance(other, PQCodes):
                raise TypeError(f"others must be PQCodes, got {type(other).__name__}")
            require_same_words(self.fingerprint, other)
        groups = [self.groups, *(other.groups for other in others)]
        return self._of(np.concatenate(groups, axis=1))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write codes and words to one file, whole or not at all.

        Parameters
        ----------
        path : path-like
            The ``.npz`` file to write, of arrays alone.
        """
        values = (FORMAT, self.groups, self.words, self.n_features, self.fingerprint)
        entries: dict[str, Any] = dict(zip(FILE_ENTRIES, values, strict=True))
        with written_whole(path) as file:
            np.savez(file, **entries)

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
                entries = {name: file[name] for name in FILE_ENTRIES}
            if entries.pop("format") != FORMAT:
                raise ValueError("it has another format")
            n_features, stated = int(entries["n_features"]), str(entries["fingerprint"])
            codes = cls(entries["groups"], entries["words"], n_features)
        except (ValueError, KeyError, TypeError, zipfile.BadZipFile, EOFError) as error:
            raise ValueError(f"{os.fspath(path)} is no file of codes: {error}") from error
        if codes.fingerprint != stated:
            raise ValueError(
                f"{os.fspath(path)} is damaged: its words are not those it was made of"
            )
        return codes

    def _of(self, groups: Array) -> "PQCodes":
        """Return other rows, already known to be codes of these words."""
        codes = object.__new__(type(self))
        codes.__dict__.update(vars(self), groups=groups)
        return codes


@estimator
class ProductQuantizer(TransformerMixin, BaseEstimator):
    r"""Replaces every part of a row by the number of its nearest word.

    Parameters
    ----------
    part_size : int, default=8
        Components of a part, :math:`G`. If it does not divide their number, the last part has
        fewer.
    bits : float, default=1.0
        Bits per component, :math:`b`: a part has :math:`2^{bG}` words, rounded, from 2 to 65536. A
        code takes one byte up to 256 words and two beyond, so that 8 or 16 bits per part waste
        none.
    n_words : int, optional
        Words of a part; then ``bits`` is ignored. If there are fewer rows there are as many words
        as rows, and a warning.
    metric : AdditiveKernel, optional
        If given, words are means in the explicit feature space of this kernel
        (:class:`AdditiveMap`, 5 features per component or 1 if that is exact), and so are decoded
        rows: their inner products approximate the kernel.
    max_samples : int, optional
        Rows to train on, at random if there are more; by default 40 for every word.
    max_iter : int, default=20
        Most rounds of k-means.
    tol : float, default=1e-3
        Rounds end when one makes the sum of squares smaller by less than this part of it.
    random_state : int, RandomState or None
        Random seed of the sample and the first words.
    n_jobs : int, optional
        Threads, as in joblib.

    Attributes
    ----------
    codebooks_ : float32 array of shape (parts, words, components)
        The words; with ``metric`` they have features for components. What the last part lacks in
        components is 0.
    error_ : float
        Mean squared distance of the rows trained on from what their codes decode to, divided by
        that from their mean: 0 is perfect, 1 is one word.
    fingerprint_ : str
        What tells words apart; codes carry it.
    feature_map_ : AdditiveMap
        The map of the ``metric``, if there is one.
    n_iter_ : int
        Most rounds of a part.
    n_features_in_ : int
        Number of columns of the data of ``fit``.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.maps import ProductQuantizer
    >>> X = np.random.default_rng(0).normal(size=(2000, 64)).astype(np.float32)
    >>> quantizer = ProductQuantizer(part_size=4, bits=2.0, random_state=0).fit(X)
    >>> quantizer.codebooks_.shape
    (16, 256, 4)
    >>> codes = quantizer.transform(X)
    >>> Z = quantizer.decode(codes)
    >>> bool(np.mean((Z - X) ** 2) < 0.1)
    True
    """

    part_size: int = 8
    bits: float = 1.0
    _: KW_ONLY
    n_words: int | None = None
    metric: AdditiveKernel | None = None
    max_samples: int | None = None
    max_iter: int = 20
    tol: float = 1e-3
    random_state: Any = None
    n_jobs: int | None = None

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the words of a loaded quantizer are not those of its columns."""
        self._checked_count()
        found = require_attributes(
            self, codebooks_="float32[p, w, g]", fingerprint_="str", n_features_in_="int"
        )
        if not found:
            return
        own = self.metric is None or isinstance(vars(self).get("feature_map_"), AdditiveMap)
        require(own, "feature_map_ is missing")
        size, (p, w, g) = int(self.part_size), self.codebooks_.shape
        require(self.codebooks_.flags.c_contiguous, "codebooks_ are not stored word by word")
        require(1 <= w <= MOST_WORDS and g == size * self._features, "codebooks_ are out of range")
        require(p == -(-self.n_features_in_ // size), "codebooks_ are not those of the columns")

    def fit(self, X: object, y: object = None) -> Self:
        """Learn the words.

        Parameters
        ----------
        X : array-like or CSR of shape (n, d)
        y : ignored

        Returns
        -------
        self : ProductQuantizer
        """
        count = self._checked_count()
        size, rounds = int(self.part_size), int(self.max_iter)
        rows = self._rows(X, reset=True)
        rng = check_random_state(self.random_state)
        chosen: Any = self._sample(rows.shape[0], count, rng)
        count = min(count, len(chosen))
        if self.metric is not None:
            self.feature_map_ = AdditiveMap(self.metric).fit(rows[chosen])
        if sp.issparse(rows):
            rows, chosen = rows[chosen].tocsc(), slice(None)
        parts = -(-rows.shape[1] // size)
        words = np.zeros((parts, count, size * self._features), np.float32)
        course = np.empty((parts, 3))
        seeds = rng.randint(np.iinfo(np.int32).max, size=parts)

        def task(begin: int, end: int) -> None:
            columns = self._numbers(rows[chosen, begin * size : end * size])
            starts = [_distinct(len(columns), count, seed) for seed in seeds[begin:end]]
            few = slice(begin, end)
            core.train_words(
                columns, np.array(starts), rounds, float(self.tol), words[few], course[few]
            )

        run(task, ranges(parts, GROUP), self.n_jobs)
        inertia, variation, _ = course.sum(axis=0)
        if not np.isfinite(variation):
            raise ValueError("X has values whose squares are beyond float32: scale the data")
        self.codebooks_, self.fingerprint_ = words, fingerprint_of(words)
        self.n_iter_ = int(course[:, 2].max())
        self.error_ = float(inertia / variation) if variation > 0 else 0.0
        return self

    def transform(self, X: object) -> PQCodes:
        """Return the codes of rows.

        Parameters
        ----------
        X : array-like or CSR of shape (n, d)

        Returns
        -------
        codes : PQCodes
        """
        check_is_fitted(self)
        rows = self._rows(X)
        parts, count, size = self.codebooks_.shape
        kind = np.uint8 if count <= 256 else np.uint16
        groups = np.zeros((-(-parts // GROUP), rows.shape[0], GROUP), kind)
        as_it_is = not sp.issparse(rows) and rows.dtype == np.float32 and self.metric is None
        width = 4 * self._features * rows.shape[1]
        band_rows = rows.shape[0] if as_it_is else max(1, BAND_BYTES // width)
        for top, bottom in ranges(rows.shape[0], band_rows):
            band = self._numbers(rows[top:bottom])

            def task(begin: int, end: int, band: Array = band, top: int = top) -> None:
                few = slice(begin * GROUP, end * GROUP)
                columns = band[:, few.start * size : few.stop * size]
                codes = groups[begin:end, top : top + len(band)]
                core.encode_words(columns, self.codebooks_[few], codes)

            run(task, ranges(len(groups), 1), self.n_jobs)
        n_features = self._features * rows.shape[1]
        return PQCodes(groups, self.codebooks_, n_features, self.fingerprint_)

    def decode(self, codes: PQCodes) -> npt.NDArray[np.float32]:
        """Return rows in the space of the words: of numbers or, with a ``metric``, of features.

        Parameters
        ----------
        codes : PQCodes
            Codes of this quantizer.

        Returns
        -------
        rows : float32 array of shape (n, d) or (n, d * features)
        """
        check_is_fitted(self)
        if not isinstance(codes, PQCodes):
            raise TypeError(f"codes must be PQCodes, got {type(codes).__name__}")
        require_same_words(self.fingerprint_, codes)
        return codes.decode()

    @available_if(lambda self: self.metric is None)  # type: ignore[untyped-decorator]
    def inverse_transform(self, X: PQCodes) -> npt.NDArray[np.float32]:
        """Return what :meth:`decode` does; features of a ``metric`` do not lead back to numbers."""
        return self.decode(X)

    @property
    def _features(self) -> int:
        """The number of features of a component."""
        return 1 if self.metric is None else self.feature_map_.n_components_

    def _rows(self, X: object, *, reset: bool = False) -> Matrix:
        rows = validate_data(self, X, reset=reset, **ACCEPTED)
        demand = None if self.metric is None else self.metric._demand()
        return check_rows(rows, "X", nonnegative=demand)

    def _checked_count(self) -> int:
        """Check the parameters and return the number of words of a part."""
        require_whole("part_size", self.part_size, 1)
        require_whole("max_iter", self.max_iter, 1)
        if self.max_samples is not None:
            require_whole("max_samples", self.max_samples, 1)
        if self.metric is not None and not isinstance(self.metric, AdditiveKernel):
            raise TypeError(f"metric must be an additive kernel or None, got {self.metric!r}")
        if self.n_words is not None:
            require_whole("n_words", self.n_words, 1, MOST_WORDS)
            return int(self.n_words)
        if self.bits is None or not 0 < self.bits * self.part_size <= 16:
            raise ValueError(
                f"bits * part_size must be above 0 and at most 16, got bits={self.bits!r} "
                f"and part_size={self.part_size!r}"
            )
        return max(2, round(2 ** float(self.bits * self.part_size)))

    def _sample(self, n: int, count: int, rng: Any) -> Array:
        """Return the numbers of the rows to learn from."""
        most = ROWS_PER_WORD * count if self.max_samples is None else int(self.max_samples)
        if min(n, most) < count:
            warnings.warn(
                f"{count} words per part are more than the rows to learn them from "
                f"(n_samples={min(n, most)}): every row is a word, and error_ says nothing; give "
                "n_words or fewer bits",
                UserWarning,
                stacklevel=3,
            )
        return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))

    def _numbers(self, X: Matrix) -> npt.NDArray[np.float32]:
        """Return columns of rows as float32 numbers or features."""
        dense = to_dense(X)
        if self.metric is not None:
            dense = expand(np.ascontiguousarray(dense), self.feature_map_._expansion, True, 1)
        with np.errstate(over="ignore"):
            rows = dense.astype(np.float32, copy=False)
        if rows is not dense and not np.isfinite(rows).all():
            raise ValueError("X has values beyond the range of float32: scale the data")
        return rows if rows.strides[1] == rows.itemsize else np.ascontiguousarray(rows)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = getattr(self.metric, "nonnegative", False)
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def fingerprint_of(words: Array) -> str:
    """Return what tells words apart."""
    digest = hashlib.blake2b(str(words.shape).encode(), digest_size=16)
    digest.update(np.ascontiguousarray(words, "<f4").data)
    return digest.hexdigest()


def require_same_words(fingerprint: str, codes: PQCodes) -> None:
    """Raise if codes have other words."""
    if codes.fingerprint != fingerprint:
        raise ValueError("these are codes from another quantizer: their words are others")


def _is_everything(index: Any) -> bool:
    return index is Ellipsis or (isinstance(index, slice) and index == slice(None))


def _is_rows_of_codes(groups: Array) -> bool:
    """Return whether the core takes the array as it is."""
    item = groups.itemsize
    return groups.strides[2] == item and (len(groups[0]) < 2 or groups.strides[1] == GROUP * item)


def _require_fitting(groups: Array, words: Array, n_features: int) -> None:
    if words.ndim != 3 or words.dtype != np.float32 or not words.flags.c_contiguous:
        raise ValueError("words must be a contiguous float32 array of parts x words x components")
    parts, n_words, size = words.shape
    if groups.dtype not in (np.uint8, np.uint16):
        raise ValueError(f"groups must be uint8 or uint16, got {groups.dtype}")
    if groups.ndim != 3 or groups.shape[2] != GROUP or len(groups) != -(-parts // GROUP):
        raise ValueError(f"groups of shape {groups.shape} do not hold {parts} parts")
    if not _is_rows_of_codes(groups):
        raise ValueError("the rows of a chunk must follow each other in memory")
    if not (parts - 1) * size < n_features <= parts * size:
        raise ValueError(f"n_features={n_features} is not {parts} parts of {size} components")
    if n_words <= np.iinfo(groups.dtype).max and groups.size and groups.max() >= n_words:
        raise ValueError(f"groups has the code {groups.max()}, but there are {n_words} words")


def _distinct(n: int, count: int, seed: int) -> Array:
    """Return ``count`` of ``n`` numbers, at random."""
    return np.random.default_rng(seed).choice(n, count, replace=False, shuffle=False)
