"""Codebook: the words of a bag of words, by k-means.

Lloyd's algorithm: ``c_j`` is the mean of the points nearest to it, ``min sum_i min_j |x_i -
c_j|^2``. It starts from k-means++ seeds of a sample (Arthur & Vassilvitskii, 2007), puts a center
that lost all its points onto the points worst served, and stops when the sum falls by less than
``tol`` of itself. The nearest center is found by a matrix product fused with the maximum
``<x, c> - |c|^2 / 2``, exact for any number of words.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import kmeans_plusplus
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from hilbin import parallel
from hilbin._core import core

POINTS_PER_TASK = 4096
SEED_POINTS_PER_WORD = 16

Array = NDArray[Any]


class Codebook(ClusterMixin, BaseEstimator):
    """k-means on many points, for many words.

    Parameters
    ----------
    n_words : int, default=512
        How many.
    max_iter : int, default=30
        Most rounds.
    tol : float, default=1e-3
        Stop when a round makes the sum of squares smaller by less than this part of it.
    random_state : int, RandomState or None
        For the seeds.
    n_jobs : int, optional
        Threads, as in joblib.

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

    def __init__(
        self,
        n_words: int = 512,
        *,
        max_iter: int = 30,
        tol: float = 1e-3,
        random_state: Any = None,
        n_jobs: int | None = None,
    ):
        self.n_words = n_words
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

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

    def _seeds(self, points: Array, rng: Any) -> Array:
        wanted = min(points.shape[0], SEED_POINTS_PER_WORD * self.n_words)
        sample = points[rng.choice(points.shape[0], wanted, replace=False)]
        with parallel.blas_threads(self.n_jobs):
            seeds, _ = kmeans_plusplus(sample, self.n_words, random_state=rng, n_local_trials=1)
        return np.ascontiguousarray(seeds, np.float32)

    def predict(self, X: Any) -> NDArray[np.int32]:
        """The word nearest to every point.

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


def nearest(
    points: Array, words: Array, n_jobs: int | None
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The nearest word ``c`` of every point ``x``, and ``<x, c> - |c|^2 / 2``."""
    half = half_squares(words)
    found = np.empty(points.shape[0], np.int32)
    scores = np.empty(points.shape[0], np.float32)

    def task(begin: int, end: int) -> None:
        part = slice(begin, end)
        core.nearest(points[part], words, half, found[part], scores[part])

    parallel.run(task, parallel.ranges(points.shape[0], POINTS_PER_TASK), n_jobs)
    return found, scores


def half_squares(words: Array) -> NDArray[np.float32]:
    """``|c|^2 / 2`` of every word."""
    return (np.einsum("ij,ij->i", words, words, dtype=np.float64) / 2).astype(np.float32)


def _means(points: Array, labels: Array, scores: Array, words: Array) -> NDArray[np.float32]:
    """Mean of the points of every word; a word without points moves to one that is far from its."""
    order = np.argsort(labels, kind="stable")
    counts = np.bincount(labels, minlength=len(words))
    used = np.flatnonzero(counts)
    begins = (np.cumsum(counts) - counts)[used]
    new = words.copy()
    new[used] = np.add.reduceat(points[order], begins, axis=0) / counts[used, None]
    if used.size < len(words):
        far = np.einsum("ij,ij->i", points, points) - 2 * scores
        new[counts == 0] = points[np.argsort(-far, kind="stable")[: len(words) - used.size]]
    return new
