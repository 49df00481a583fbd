"""Bag of words: local descriptors quantized by a codebook.

The words of the codebook are the centers of k-means, ``min sum_i min_j |x_i - c_j|^2``, by Lloyd's
algorithm: ``c_j`` is the mean of the points nearest to it. It starts from k-means++ seeds of a
sample (Arthur & Vassilvitskii, 2007), puts a center that lost all its points onto the points worst
served, and stops when the sum falls by less than ``tol`` of itself. The nearest center is found by
a matrix product fused with the maximum ``<x, c> - |c|^2 / 2``, exact for any number of words.

Hard assignment gives every descriptor to its nearest word. Soft assignment (van Gemert et al.,
*Visual word ambiguity*, PAMI 2010) shares it among its ``m`` nearest words, ``w_j`` in proportion
to ``exp(-|x - c_j|^2 / (2 s^2))``, with ``s`` the median distance of a descriptor to its nearest
word.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hilbin import parallel
from hilbin._arrays import Array, validate_data
from hilbin._core import core
from hilbin._parameters import estimator, require_choice
from hilbin._state import require, require_attributes
from hilbin.images._base import ImageTransformer
from hilbin.images.descriptors import ImageSample
from hilbin.images.local import LocalDescriptor, LocalGrid
from hilbin.images.read import ImageError, Pixels
from hilbin.images.sift import DenseSIFT
from hilbin.images.words import WordGrid, WordSource

POINTS_PER_TASK = 4096
POINTS_PER_WORD = 200
SEED_POINTS_PER_WORD = 16
MOST_WORDS = 512  # in a codebook that suits the images,
LEAST_POINTS_PER_WORD = 20  # which has to have so many descriptors for each


@estimator
class Codebook(ClusterMixin, BaseEstimator):
    """k-means on many points, for many words.

    Parameters
    ----------
    n_words : int, default=512
        Number of words.
    max_iter : int, default=30
        Maximum number of rounds.
    tol : float, default=1e-3
        Stop when a round makes the sum of squares smaller by less than this part of it.
    random_state : int, RandomState or None
        Random seed.
    n_jobs : int, optional
        Number of threads, as in joblib.

    Attributes
    ----------
    words_ : float32 array of shape (n_words, d)
    inertia_ : float
        Sum of squared distances of the points to their words.
    labels_ : int32 array
        Words of the points it was fitted to.
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images import Codebook
    >>> points = np.array([[0.0], [0.1], [5.0], [5.2]])
    >>> book = Codebook(2, random_state=0).fit(points)
    >>> sorted(round(float(word), 2) for (word,) in book.words_)
    [0.05, 5.1]
    """

    n_words: int = 512
    _: KW_ONLY
    max_iter: int = 30
    tol: float = 1e-3
    random_state: Any = None
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the words.

        Parameters
        ----------
        X : array of shape (n, d)
        y : ignored

        Returns
        -------
        self
        """
        X = validate_data(self, X, dtype=np.float32, order="C")
        if not 1 <= self.n_words <= X.shape[0]:
            raise ValueError(f"n_words={self.n_words} must be from 1 to n_samples={X.shape[0]}")
        rng = check_random_state(self.random_state)
        shift = X.mean(axis=0, dtype=np.float64).astype(np.float32)
        points = X - shift  # |c|^2 loses digits far from the origin
        words, before = self._seeds(points, rng), np.inf
        squares = np.einsum("ij,ij->", points, points, dtype=np.float64)
        for rounds in range(1, self.max_iter + 1):  # noqa: B007
            labels, scores = nearest(points, words, self.n_jobs)
            inertia = max(0.0, float(squares - 2 * scores.sum(dtype=np.float64)))
            if before - inertia <= self.tol * inertia:
                break
            words, before = _means(points, labels, scores, words), inertia
        self.words_, self.labels_ = words + shift, labels
        self.inertia_, self.n_iter_ = inertia, rounds
        return self

    def _check_state(self) -> None:
        """Raise ``ValueError`` if loaded words are not what the core takes."""
        found = require_attributes(self, words_="float32[w, d]", n_features_in_="=d")
        stored = not found or (self.words_.flags.c_contiguous and found["w"] >= 1)
        require(stored and (not found or np.isfinite(self.words_).all()), "words_ are no words")

    def _seeds(self, points: Array, rng: Any) -> Array:
        wanted = min(points.shape[0], SEED_POINTS_PER_WORD * self.n_words)
        sample = points[rng.choice(points.shape[0], wanted, replace=False)]
        with parallel.blas_threads(self.n_jobs):
            return sample[distant_points(sample, self.n_words, rng)]

    def predict(self, X: Any) -> Array:
        """Return the word nearest to every point.

        Parameters
        ----------
        X : array of shape (n, d)

        Returns
        -------
        words : int32 array of shape (n,)
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float32, order="C", reset=False)
        shift = self.words_.mean(axis=0)
        return nearest(X - shift, self.words_ - shift, self.n_jobs)[0]


def distant_points(points: Array, n: int, rng: Any) -> Array:
    """Draw points as k-means++ does: each in proportion to its squared distance to those drawn.

    The draws are those of scikit-learn's ``kmeans_plusplus`` with one trial, which converts the
    points to double precision again for every one of them.
    """
    chosen = np.empty(n, np.intp)
    chosen[0] = rng.choice(len(points), p=np.full(len(points), 1 / len(points)))
    exact = points.astype(np.float64)
    squares = np.einsum("ij,ij->i", exact, exact)
    ones = np.ones(len(points), np.float32)
    closest = np.full(len(points), np.inf, np.float32)
    for i in range(1, n):
        last = chosen[i - 1]
        squared = -2 * (exact @ exact[last]) + squares[last] + squares
        np.minimum(closest, np.maximum(squared.astype(np.float32), 0), out=closest)
        at = np.searchsorted(np.cumsum(closest), rng.uniform(size=1) * (closest @ ones))
        chosen[i] = min(int(at[0]), len(points) - 1)
    return chosen


def nearest(points: Array, words: Array, n_jobs: int | None) -> tuple[Array, Array]:
    """Return the nearest word ``c`` of every point ``x``, and ``<x, c> - |c|^2 / 2``."""
    half = half_squares(words)
    found = np.empty(points.shape[0], np.int32)
    scores = np.empty(points.shape[0], np.float32)

    def task(begin: int, end: int) -> None:
        part = slice(begin, end)
        core.nearest(points[part], words, half, found[part], scores[part])

    parallel.run(task, parallel.ranges(points.shape[0], POINTS_PER_TASK), n_jobs)
    return found, scores


def half_squares(words: Array) -> Array:
    """Return ``|c|^2 / 2`` of every word."""
    half: Array = np.einsum("ij,ij->i", words, words, dtype=np.float64) / 2
    return half.astype(np.float32)


def _means(points: Array, labels: Array, scores: Array, words: Array) -> Array:
    """Average the points of every word; a word without points moves to a point that is far off."""
    counts = np.bincount(labels, minlength=len(words))
    used = np.flatnonzero(counts)
    order, ends = np.argsort(labels, kind="stable"), np.concatenate([[0], np.cumsum(counts)])
    ones = np.ones(len(labels), np.float32)
    members = sp.csr_array((ones, order, ends), (len(words), len(labels)))
    new = words.copy()
    new[used] = (members @ points)[used] / counts[used, None]
    if used.size < len(words):
        far = np.einsum("ij,ij->i", points, points) - 2 * scores
        new[counts == 0] = points[np.argsort(-far, kind="stable")[: len(words) - used.size]]
    return new


def count_points(descriptor: LocalDescriptor, sample: ImageSample) -> float:
    """Return about how many descriptors all images have that a sample was drawn from."""
    each = [len(descriptor.points(image)) for image in sample.images]
    return float(np.mean(each)) * sample.n_images


@estimator
class DescriptorTransformer(ImageTransformer):
    """Base of the transformers that learn from a sample of local descriptors.

    Parameters
    ----------
    descriptor : LocalDescriptor, optional
        ``DenseSIFT()`` by default; also ``FHOG`` and ``HOG``.
    n_samples : int, optional
        Number of descriptors to learn from, drawn evenly from the images.
    random_state : int, RandomState or None
        Random seed.

    Attributes
    ----------
    descriptor_ : LocalDescriptor
    """

    descriptor: Any = None
    _: KW_ONLY
    n_samples: int | None = None
    random_state: Any = None

    @property
    def _uses_color(self) -> bool:
        descriptor = getattr(self, "descriptor_", self.descriptor)
        return descriptor is not None and bool(descriptor._uses_color)

    def _draw(
        self, descriptor: LocalDescriptor, sources: Sequence[Any], usual: int, rng: Any
    ) -> Array:
        """Draw ``n_samples``, or ``usual``, descriptors evenly from the images that can be read."""
        wanted = self.n_samples or usual
        each = max(1, -(-wanted // max(1, len(sources))))
        seeds = rng.randint(0, 2**31 - 1, len(sources))
        most = min(len(sources), wanted)
        chosen: Array = np.empty(0, int)
        if most:
            chosen = np.sort(rng.choice(len(sources), most, replace=False))

        def task(begin: int, end: int) -> list[Array]:
            parts = []
            for i in chosen[begin:end]:
                try:
                    image = self.read(sources[i])
                except ImageError:
                    continue
                points = descriptor.points(image)
                picked = np.random.RandomState(seeds[i]).permutation(len(points))[:each]
                parts.append(points[picked])
            return parts

        ranges = parallel.ranges(len(chosen), 8)
        parts = [p for group in parallel.stream(task, ranges, self.n_jobs) for p in group]
        if not parts:
            raise ValueError("no image could be read" if len(sources) else "images is empty")
        return np.concatenate(parts)

    def _descriptor(self) -> LocalDescriptor:
        if self.descriptor is None:
            return DenseSIFT()
        if not isinstance(self.descriptor, LocalDescriptor):
            raise TypeError(
                "descriptor must be a local descriptor such as DenseSIFT(), "
                f"got {self.descriptor!r}"
            )
        copy: LocalDescriptor = clone(self.descriptor)
        return copy


@estimator
class BagOfWords(DescriptorTransformer, WordSource):
    """Histogram of quantized local descriptors.

    Parameters
    ----------
    n_words : int, default=512
        Size of the codebook.
    assignment : {"hard", "soft"}, default="hard"
        Whether a descriptor goes to its nearest word or is shared among the ``n_nearest``.
    n_nearest : int, default=5
        Number of words that share a descriptor in soft assignment.
    n_samples : int, optional
        Number of descriptors the codebook is learned from, drawn evenly from the images; 200 for
        every word by default.
    sparse_output : bool, default=False
        Whether to return a CSR matrix.

    Attributes
    ----------
    codebook_ : float32 array of shape (n_words, d)
        The words.
    softness_ : float
        The ``s`` of soft assignment.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images import BagOfWords, DenseSIFT
    >>> images = np.random.default_rng(0).integers(0, 256, (6, 64, 64), np.uint8)
    >>> rows = BagOfWords(DenseSIFT(4), n_words=20, random_state=0).fit_transform(images)
    >>> rows.shape, rows.sum(axis=1).round(3)[:2]
    ((6, 20), array([1., 1.], dtype=float32))
    """

    n_words: int = 512
    _: KW_ONLY
    assignment: str = "hard"
    n_nearest: int = 5
    sparse_output: bool = False

    @staticmethod
    def n_words_for(sample: ImageSample) -> int:
        """Return the number of words of SIFT that the images suffice for."""
        found = count_points(DenseSIFT.for_sample(sample), sample) / LEAST_POINTS_PER_WORD
        return min(MOST_WORDS, int(found))

    @classmethod
    def for_sample(cls, sample: ImageSample, random_state: Any = None) -> Self:
        """Return a bag of SIFT words that suits the size and the number of the images."""
        n_words = cls.n_words_for(sample)
        if n_words < 2:
            raise ValueError("the images are too small for sift; try centrist or hog instead")
        return cls(DenseSIFT.for_sample(sample), n_words, random_state=random_state)

    def _learn(self, sources: Sequence[Any], y: Any) -> None:
        rng = check_random_state(self.random_state)
        descriptor = self._descriptor()
        points = self._draw(descriptor, sources, POINTS_PER_WORD * self.n_words, rng)
        if points.shape[0] < self.n_words:
            raise ValueError(
                f"n_words={self.n_words} words need as many descriptors; the images give "
                f"{points.shape[0]} (images too small, or too few?)"
            )
        book = Codebook(self.n_words, random_state=rng, n_jobs=self.n_jobs).fit(points)
        gaps = points - book.words_[book.labels_]
        self.descriptor_ = descriptor
        self.softness_ = float(np.sqrt(np.median(np.einsum("ij,ij->i", gaps, gaps))))
        self.codebook_ = book.words_
        self._half = half_squares(book.words_)

    def _check(self) -> None:
        super()._check()
        require_choice("assignment", self.assignment, ("hard", "soft"))
        if self.assignment == "soft" and not 1 <= self.n_nearest <= min(16, self.n_words):
            raise ValueError(f"n_nearest must be from 1 to 16 words, got {self.n_nearest!r}")

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the words of a loaded transformer are not those it looks for."""
        found = require_attributes(
            self, codebook_="float32[w, f]", _half="float32[w]", softness_="float"
        )
        if found:
            require(isinstance(vars(self).get("descriptor_"), LocalDescriptor), "no descriptor_")
            right = (
                found["f"] == self.descriptor_.n_dimensions and self.codebook_.flags.c_contiguous
            )
            require(right, "codebook_ is not one of these descriptors")
            require(found["w"] == self.n_words, "codebook_ has not n_words words")
            require(found["w"] >= max(1, self.n_nearest * (self.assignment == "soft")), "no words")
            finite = np.isfinite(self.codebook_).all() and np.isfinite(self._half).all()
            require(finite, "codebook_ is not finite")

    def words(self, image: Pixels) -> list[WordGrid]:
        """Return the words of one image on the grids of its descriptors."""
        return [self._quantized(grid) for grid in self.descriptor_.grids(image)]

    def _quantized(self, grid: LocalGrid) -> WordGrid:
        rows, columns, d = grid.features.shape
        points, words = grid.features.reshape(-1, d), self.codebook_
        if self.assignment == "hard":
            ids = np.empty(len(points), np.int32)
            scores = np.empty(len(points), np.float32)
            core.nearest(points, words, self._half, ids, scores)
            return WordGrid(ids.reshape(rows, columns), grid.ys, grid.xs, grid.size)
        ids = np.empty((len(points), self.n_nearest), np.int32)
        scores = np.empty(ids.shape, np.float32)
        core.nearest_few(points, words, self._half, self.n_nearest, ids, scores)
        # the scores are -|x - c|^2 / 2 up to a constant of the point
        weights = np.exp((scores - scores[:, :1]) / np.float32(max(self.softness_**2, 1e-30)))
        weights /= weights.sum(axis=1, keepdims=True)
        shape = (rows, columns, self.n_nearest)
        return WordGrid(ids.reshape(shape), grid.ys, grid.xs, grid.size, weights.reshape(shape))
