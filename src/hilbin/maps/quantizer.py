r"""Product quantization: rows as codes, 32 times smaller and more.

A row is cut into blocks of :math:`G` components, and every block is replaced by the nearest of
:math:`D = 2^{bG}` words of its own, which k-means finds: :math:`b` bits per component instead of
32. Learning on codes is then cheaper than on the numbers: see
:class:`~hilbin.solvers.WordRows`. With a kernel the blocks are clustered in its explicit feature
space, where the distance is the kernel's (Jegou, Douze and Schmid, *Product Quantization for
Nearest Neighbor Search*, 2011; Vedaldi and Zisserman, *Sparse Kernel Approximations for Efficient
Classification and Detection*).

k-means is Lloyd's algorithm from random rows; a word that loses all its points goes to a point that
is far from its word. Blocks are trained one after the other on a sample of the rows, so that memory
is bounded by the columns of a few blocks.
"""

import warnings
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from hilbin._arrays import Array, Matrix, check_rows
from hilbin._core import core
from hilbin.kernels import AdditiveKernel
from hilbin.maps._base import require_count
from hilbin.maps._expand import expand
from hilbin.maps.additive import AdditiveMap
from hilbin.maps.codes import CHUNK, PQCodes, fingerprint_of, require_same_words
from hilbin.parallel import ranges, run

MOST_WORDS = 1 << 16
ROWS_PER_WORD = 40
BAND_BYTES = 1 << 26  # of rows that have to be converted before they are encoded


class ProductQuantizer(TransformerMixin, BaseEstimator):
    r"""Blocks of components to the numbers of their nearest words.

    Parameters
    ----------
    block_size : int, default=8
        Components of a block, :math:`G`. If it does not divide their number, the last block has
        fewer.
    bits : float, default=1.0
        Per component, :math:`b`: a block has :math:`2^{bG}` words, rounded, from 2 to 65536. A code
        takes one byte up to 256 words and two beyond, so that 8 or 16 bits per block waste none.
    n_words : int, optional
        Words of a block; then ``bits`` is ignored. If there are fewer rows there are as many words
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
        For the sample and the first words.
    n_jobs : int, optional
        Threads, as in joblib.

    Attributes
    ----------
    codebooks_ : float32 array of shape (blocks, words, components)
        The words; with ``metric`` they have features for components. What the last block lacks in
        components is 0.
    error_ : float
        Mean squared distance of the rows trained on from what their codes decode to, divided by
        that from their mean: 0 is perfect, 1 is one word.
    fingerprint_ : str
        Of the words: codes carry it.
    feature_map_ : AdditiveMap
        Of the ``metric``, if there is one.
    n_iter_ : int
        Most rounds of a block.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.maps import ProductQuantizer
    >>> X = np.random.default_rng(0).normal(size=(2000, 64)).astype(np.float32)
    >>> quantizer = ProductQuantizer(block_size=4, bits=2.0, random_state=0).fit(X)
    >>> quantizer.codebooks_.shape
    (16, 256, 4)
    >>> codes = quantizer.transform(X)
    >>> Z = quantizer.decode(codes)
    >>> bool(np.mean((Z - X) ** 2) < 0.1)
    True
    """

    def __init__(
        self,
        block_size: int = 8,
        bits: float = 1.0,
        *,
        n_words: int | None = None,
        metric: AdditiveKernel | None = None,
        max_samples: int | None = None,
        max_iter: int = 20,
        tol: float = 1e-3,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.block_size = block_size
        self.bits = bits
        self.n_words = n_words
        self.metric = metric
        self.max_samples = max_samples
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

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
        size, count = require_count("block_size", self.block_size), self._checked_count()
        rounds = require_count("max_iter", self.max_iter)
        rows = self._rows(X, reset=True)
        rng = check_random_state(self.random_state)
        chosen: Any = self._sample(rows.shape[0], count, rng)
        count = min(count, len(chosen))
        if self.metric is not None:
            self.feature_map_ = AdditiveMap(self.metric).fit(rows[chosen])
        if sp.issparse(rows):
            rows, chosen = rows[chosen].tocsc(), slice(None)
        blocks = -(-rows.shape[1] // size)
        words = np.zeros((blocks, count, size * self._features), np.float32)
        course = np.empty((blocks, 3))
        seeds = rng.randint(np.iinfo(np.int32).max, size=blocks)

        def task(begin: int, end: int) -> None:
            part = self._numbers(rows[chosen, begin * size : end * size])
            starts = [_distinct(len(part), count, seed) for seed in seeds[begin:end]]
            few = slice(begin, end)
            core.train_words(
                part, np.array(starts), rounds, float(self.tol), words[few], course[few]
            )

        run(task, ranges(blocks, CHUNK), self.n_jobs)
        inertia, variation, _ = course.sum(axis=0)
        if not np.isfinite(variation):
            raise ValueError("X has values whose squares are beyond float32: scale the data")
        self.codebooks_, self.fingerprint_ = words, fingerprint_of(words)
        self.n_iter_ = int(course[:, 2].max())
        self.error_ = float(inertia / variation) if variation > 0 else 0.0
        return self

    def transform(self, X: object) -> PQCodes:
        """Codes of rows.

        Parameters
        ----------
        X : array-like or CSR of shape (n, d)

        Returns
        -------
        codes : PQCodes
        """
        check_is_fitted(self)
        rows = self._rows(X)
        blocks, count, size = self.codebooks_.shape
        kind = np.uint8 if count <= 256 else np.uint16
        chunks = np.zeros((-(-blocks // CHUNK), rows.shape[0], CHUNK), kind)
        as_it_is = not sp.issparse(rows) and rows.dtype == np.float32 and self.metric is None
        width = 4 * self._features * rows.shape[1]
        band_rows = rows.shape[0] if as_it_is else max(1, BAND_BYTES // width)
        for top, bottom in ranges(rows.shape[0], band_rows):
            band = self._numbers(rows[top:bottom])

            def task(begin: int, end: int, band: Array = band, top: int = top) -> None:
                few = slice(begin * CHUNK, end * CHUNK)
                part = band[:, few.start * size : few.stop * size]
                codes = chunks[begin:end, top : top + len(band)]
                core.encode_words(part, self.codebooks_[few], codes)

            run(task, ranges(len(chunks), 1), self.n_jobs)
        n_features = self._features * rows.shape[1]
        return PQCodes(chunks, self.codebooks_, n_features, self.fingerprint_)

    def decode(self, codes: PQCodes) -> npt.NDArray[np.float32]:
        """Rows in the space of the words: of numbers or, with a ``metric``, of features.

        Parameters
        ----------
        codes : PQCodes
            Of this quantizer.

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
        """The same as :meth:`decode`; features of a ``metric`` do not lead back to numbers.

        Parameters
        ----------
        X : PQCodes
            Of this quantizer.

        Returns
        -------
        rows : float32 array of shape (n, d)
        """
        return self.decode(X)

    @property
    def _features(self) -> int:
        """Per component."""
        return 1 if self.metric is None else self.feature_map_.n_components_

    def _rows(self, X: object, *, reset: bool = False) -> Matrix:
        checks = {"accept_sparse": "csr", "dtype": (np.float64, np.float32)}
        rows = validate_data(self, X, reset=reset, ensure_all_finite=False, **checks)
        demand = None if self.metric is None else self.metric._demand()
        return check_rows(rows, "X", nonnegative=demand)

    def _checked_count(self) -> int:
        """The number of words of a block."""
        if self.metric is not None and not isinstance(self.metric, AdditiveKernel):
            raise TypeError(f"metric must be an additive kernel or None, got {self.metric!r}")
        if self.n_words is not None:
            count = require_count("n_words", self.n_words)
        else:
            if self.bits is None or not 0 < self.bits * self.block_size <= 16:
                raise ValueError(
                    f"bits * block_size must be above 0 and at most 16, got bits={self.bits!r} "
                    f"and block_size={self.block_size!r}"
                )
            count = max(2, round(2 ** float(self.bits * self.block_size)))
        if count > MOST_WORDS:
            raise ValueError(f"n_words must be at most {MOST_WORDS}, got {count}")
        return count

    def _sample(self, n: int, count: int, rng: Any) -> Array:
        """Numbers of the rows to learn from."""
        most = ROWS_PER_WORD * count
        if self.max_samples is not None:
            most = require_count("max_samples", self.max_samples)
        if min(n, most) < count:
            warnings.warn(
                f"{count} words per block are more than the rows to learn them from "
                f"(n_samples={min(n, most)}): every row is a word, and error_ says nothing; give "
                "n_words or fewer bits",
                UserWarning,
                stacklevel=3,
            )
        return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))

    def _numbers(self, X: Matrix) -> npt.NDArray[np.float32]:
        """Columns of rows, as float32 numbers or features."""
        dense = X.toarray() if sp.issparse(X) else X
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


def _distinct(n: int, count: int, seed: int) -> Array:
    """``count`` of ``n`` numbers, at random."""
    return np.random.default_rng(seed).choice(n, count, replace=False, shuffle=False)
