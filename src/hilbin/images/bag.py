"""Bag of words: local descriptors quantized by a codebook.

Hard assignment gives every descriptor to its nearest word. Soft assignment (van Gemert et al.,
*Visual word ambiguity*, PAMI 2010) shares it among its ``m`` nearest words, ``w_j`` in proportion
to ``exp(-|x - c_j|^2 / (2 s^2))``, with ``s`` the median distance of a descriptor to its nearest
word.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from hilbin import parallel
from hilbin._core import core
from hilbin.images._grids import LocalGrid, WordGrid
from hilbin.images._local import LocalDescriptor
from hilbin.images._words import WordSource
from hilbin.images.codebook import Codebook, half_squares
from hilbin.images.read import ImageError, Pixels, as_sources, read_image
from hilbin.images.sift import DenseSIFT

POINTS_PER_WORD = 200


class BagOfWords(WordSource):
    """Histogram of quantized local descriptors.

    Parameters
    ----------
    descriptor : LocalDescriptor, optional
        ``DenseSIFT()`` by default; also ``FHOG`` and ``HOG``.
    n_words : int, default=512
        Size of the codebook.
    assignment : {"hard", "soft"}, default="hard"
        To the nearest word, or shared among the ``n_nearest``.
    n_nearest : int, default=5
        For soft assignment.
    n_samples : int, optional
        Descriptors the codebook is learnt from, drawn evenly from the images; 200 for every word
        by default.
    random_state : int, RandomState or None
        For the sample and the codebook.
    sparse_output : bool, default=False
        Whether to return a CSR matrix.
    max_side : int, optional
        Larger images are reduced so that the longer side is this long.
    n_jobs : int, optional
        Threads, as in joblib.

    Attributes
    ----------
    descriptor_ : LocalDescriptor
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

    def __init__(
        self,
        descriptor: Any = None,
        n_words: int = 512,
        *,
        assignment: str = "hard",
        n_nearest: int = 5,
        n_samples: int | None = None,
        random_state: Any = None,
        sparse_output: bool = False,
        max_side: int | None = 256,
        n_jobs: int | None = None,
    ):
        self.descriptor = descriptor
        self.n_words = n_words
        self.assignment = assignment
        self.n_nearest = n_nearest
        self.n_samples = n_samples
        self.random_state = random_state
        self.sparse_output = sparse_output
        self.max_side = max_side
        self.n_jobs = n_jobs

    def fit(self, images: Any, y: Any = None) -> Self:
        """Learn the codebook.

        Parameters
        ----------
        images : sequence of paths or arrays
        y : ignored

        Returns
        -------
        self
        """
        self._check()
        self.descriptor_ = checked_descriptor(self.descriptor)
        rng = check_random_state(self.random_state)
        wanted = self.n_samples or POINTS_PER_WORD * self.n_words
        points = sample_points(self, self.descriptor_, as_sources(images), wanted, rng)
        if points.shape[0] < self.n_words:
            raise ValueError(
                f"n_words={self.n_words} words need as many descriptors; the images give "
                f"{points.shape[0]} (images too small, or too few?)"
            )
        book = Codebook(self.n_words, random_state=rng, n_jobs=self.n_jobs).fit(points)
        gaps = points - book.words_[book.labels_]
        self.softness_ = float(np.sqrt(np.median(np.einsum("ij,ij->i", gaps, gaps))))
        self.codebook_ = book.words_
        self._half = half_squares(book.words_)
        return self

    def _check(self) -> None:
        super()._check()
        if self.assignment not in ("hard", "soft"):
            raise ValueError(f"assignment must be 'hard' or 'soft', got {self.assignment!r}")
        if self.assignment == "soft" and not 1 <= self.n_nearest <= min(16, self.n_words):
            raise ValueError(f"n_nearest must be from 1 to 16 words, got {self.n_nearest!r}")

    @property
    def _uses_color(self) -> bool:  # type: ignore[override]
        descriptor = getattr(self, "descriptor_", self.descriptor)
        return descriptor is not None and descriptor._uses_color

    def words(self, image: Pixels) -> list[WordGrid]:
        """The words of one image on the grids of its descriptors."""
        return [self._quantized(grid) for grid in self.descriptor_.local(image)]

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

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "codebook_")


def checked_descriptor(descriptor: Any) -> LocalDescriptor:
    """A copy of the descriptor, dense SIFT if there is none."""
    if descriptor is None:
        return DenseSIFT()
    if not isinstance(descriptor, LocalDescriptor):
        raise TypeError(
            f"descriptor must be a local descriptor such as DenseSIFT(), got {descriptor!r}"
        )
    copy: LocalDescriptor = clone(descriptor)
    return copy


def sample_points(
    transformer: Any, descriptor: LocalDescriptor, sources: Any, wanted: int, rng: Any
) -> NDArray[np.float32]:
    """Descriptors drawn evenly from the images that can be read, in an order that is no matter."""
    each = max(1, -(-wanted // max(1, len(sources))))
    seeds = rng.randint(0, 2**31 - 1, len(sources))
    most = min(len(sources), wanted)
    chosen = np.sort(rng.choice(len(sources), most, replace=False)) if most else np.empty(0, int)

    def task(begin: int, end: int) -> list[NDArray[np.float32]]:
        parts = []
        for i in chosen[begin:end]:
            try:
                image = read_image(
                    sources[i], max_side=transformer.max_side, color=descriptor._uses_color
                )
            except ImageError:
                continue
            points = descriptor.points(image)
            picked = np.random.RandomState(seeds[i]).permutation(len(points))[:each]
            parts.append(points[picked])
        return parts

    ranges = parallel.ranges(len(chosen), 8)
    parts = [p for group in parallel.stream(task, ranges, transformer.n_jobs) for p in group]
    if not parts:
        raise ValueError("no image could be read" if len(sources) else "images is empty")
    return np.concatenate(parts)
