r"""Where in an image is the thing: one box, learned from boxes by a structured SVM.

**Problem.** Every image has one thing in it. Words of the image (:mod:`hilbin.images`) are counted
in cells of some pixels; the score of a box of cells is that of the words inside, and
:math:`1 - \mathrm{IoU}` is the loss of a box (:class:`BoxModel`). All boxes are rivals of the true
one, so nothing is drawn as a negative example, and the weights are the optimum within ``tol``.

**Algorithm.** Cutting planes (:class:`~hilbin.estimators.StructuredSVM`) with a branch and bound
search for the worst box of every image; the best box of a new image is exact.

**Reference.** M. Blaschko and C. Lampert, *Learning to Localize Objects with Structured Output
Regression*, ECCV 2008.
"""

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from hilbin import parallel
from hilbin._arrays import Array
from hilbin._parameters import estimator, require_whole
from hilbin._state import require
from hilbin.detect.box_model import BoxModel
from hilbin.detect.boxes import as_raw_coordinates, iou, sound_boxes
from hilbin.detect.cells import WordCells
from hilbin.estimators import StructuredSVM
from hilbin.images import BagOfWords, ImageError, UnreadableImageWarning, read_image
from hilbin.images.read import Pixels, as_sources, source_name
from hilbin.images.words import WordSource, count

N_WORDS = 256  # of the usual codebook


@dataclass(frozen=True, eq=False)
class BoxExplanation:
    """The best box of an image, and what every cell of the image contributes to its score.

    Parameters
    ----------
    box : array of shape (4,)
        The box ``[x0, y0, x1, y1)`` in pixels.
    score : float
        Its score.
    cells : array of shape (rows, columns)
        Contributions of the cells, which cut the image evenly. Those inside the box sum up to the
        score; those outside say what a larger box would gain.
    image : uint8 array of shape (height, width, 3) or (height, width)
        The image.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.detect import BoxExplanation
    >>> image, cells = np.zeros((8, 16), np.uint8), np.array([[2.0, -1.0]])
    >>> BoxExplanation(np.array([0.0, 0.0, 8.0, 8.0]), 2.0, cells, image).score
    2.0
    """

    box: Array
    score: float
    cells: Array
    image: Array


@dataclass(frozen=True, eq=False)
class _Grid:
    """The words of an image in cells, and the image."""

    cells: WordCells
    image: Pixels

    @property
    def cell_size(self) -> Array:
        """Width and height of a cell in pixels, twice, as the edges of a box."""
        (rows, columns), (height, width) = self.cells.shape, self.image.shape[:2]
        return np.array([width / columns, height / rows] * 2)

    def to_cells(self, box: Array) -> Array:
        """Return the nearest box of whole cells."""
        rows, columns = self.cells.shape
        low, high = np.split(np.rint(box / self.cell_size).astype(np.int64), 2)
        most = np.array([columns, rows])
        low = np.clip(low, 0, most - 1)
        return np.concatenate([low, np.clip(high, low + 1, most)])


@estimator
class BoxLocalizer(BaseEstimator):
    r"""Finds one object in every image: the box with the highest score among all boxes.

    Parameters
    ----------
    words : word source or list of them, optional
        What is counted in cells: ``BagOfWords``, ``Centrist``, ``LBP`` or ``ColorHistogram`` of
        :mod:`hilbin.images`; ``BagOfWords(n_words=256)`` by default. Copies are fitted. Their
        ``max_side`` is how far large images are reduced.
    C : float, default=1.0
        Weight of the losses.
    cell : int, default=8
        Side of a cell in pixels, of images as far as they are reduced.
    normalized : bool, default=False
        Whether scores are functions of the densities of words in the box, or sums over its cells.
        The best density is often that of one cell: give functions of several nodes then.
    n_nodes : int, default=2
        Number of nodes of the functions of densities; 2 is linear.
    rescaling : {"margin", "slack"}, default="margin"
        As in :class:`hilbin.estimators.StructuredSVM`.
    max_nodes : int, default=100_000
        Largest number of sets of boxes that a search with the loss looks at.
    tol : float, default=0.01
        Largest gap between the objective and its lower bound, relative to it.
    max_iter : int, default=1000
        Largest number of passes over the images.
    max_time : float, optional
        Seconds after which training stops, with a usable model.
    random_state : int, RandomState or None
        Random seed of the usual words.
    n_jobs : int, optional
        Number of threads.
    verbose : int, default=0
        1 prints how the fit ended, 2 every pass as well.

    Attributes
    ----------
    words_ : list of word sources
        The fitted sources of words.
    svm_ : StructuredSVM
        The machine on cells, with its ``gap_``, ``n_iter_`` and ``coef_``.

    See Also
    --------
    DeformableDetector : Finds any number of things, also where there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.detect import BoxLocalizer
    >>> from hilbin.images import LBP
    >>> rng = np.random.default_rng(0)
    >>> images, boxes = [], []
    >>> for _ in range(12):
    ...     image = rng.integers(0, 256, (64, 80), np.uint8)
    ...     x, y = rng.integers(0, 40, 2)
    ...     image[y : y + 24, x : x + 32] = np.arange(24)[:, None] * 8  # a ramp on noise
    ...     images.append(image)
    ...     boxes.append([x, y, x + 32, y + 24])
    >>> model = BoxLocalizer(LBP(), cell=4).fit(images[:8], boxes[:8])
    >>> model.score(images[8:], boxes[8:]) > 0.7  # mean IoU
    True
    """

    words: Any = None
    C: float = 1.0
    _: KW_ONLY
    cell: int = 8
    normalized: bool = False
    n_nodes: int = 2
    rescaling: str = "margin"
    max_nodes: int = 100_000
    tol: float = 0.01
    max_iter: int = 1000
    max_time: float | None = None
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0

    def fit(self, images: Any, boxes: Any = None) -> Self:
        """Train. An interrupt (Ctrl-C) leaves a usable model, marked as not converged.

        Parameters
        ----------
        images : sequence of paths or arrays
            Images that can be read; others are left out with a warning.
        boxes : array-like of shape (n_images, 4)
            The box ``[x0, y0, x1, y1)`` of the thing in every image, in pixels. Images whose box
            cannot be used are left out with a warning.

        Returns
        -------
        self : BoxLocalizer
        """
        require_whole("cell", self.cell, 1)
        sources, given = as_sources(images), as_raw_coordinates(boxes)
        if len(sources) != len(given) or not len(given):
            raise ValueError(f"there are {len(sources)} images, but {len(given)} boxes")
        self.words_ = [clone(words).fit(sources) for words in self._sources()]
        grids = self._grids(sources)
        used, outputs = [], []
        for i, grid in enumerate(grids):
            if grid is not None:
                size, name = grid.image.shape[1::-1], source_name(sources[i], i)
                if sound_boxes(given[i : i + 1], size, name)[0]:
                    used.append(grid.cells)
                    outputs.append(grid.to_cells(given[i]))
        if not used:
            raise ValueError("no image can be read and has a box that can be used")
        self.svm_ = self._machine().fit(used, outputs)
        return self

    def _sources(self) -> list[WordSource]:
        """Return the sources of words that are asked for."""
        words = self.words
        if words is None:
            words = BagOfWords(n_words=N_WORDS, random_state=self.random_state)
        sources = [*words] if isinstance(words, Sequence) else [words]
        for source in sources:
            hard = getattr(source, "assignment", "hard") == "hard"
            if not (isinstance(source, WordSource) and hard):
                raise TypeError(
                    "words must be a source of words such as LBP(), with hard assignment, got "
                    f"{source!r}"
                )
        return sources

    def _machine(self) -> StructuredSVM:
        return StructuredSVM(
            BoxModel(self.normalized, self.n_nodes, self.max_nodes),
            self.C,
            rescaling=self.rescaling,
            tol=self.tol,
            max_iter=self.max_iter,
            max_time=self.max_time,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )

    def _grids(self, sources: Sequence[Any]) -> list[_Grid | None]:
        """Return the words of all images in cells; None, and a warning, for an unreadable one."""
        grids: list[_Grid | None] = [None] * len(sources)
        unreadable: dict[int, str] = {}

        def task(begin: int, end: int) -> None:
            for i in range(begin, end):
                try:
                    grids[i] = self._grid(sources[i])
                except ImageError as error:
                    unreadable[i] = f"{source_name(sources[i], i)}: {error.reason}"

        with parallel.blas_threads(1):
            parallel.run(task, parallel.ranges(len(sources), 1), self.n_jobs)
        for i in sorted(unreadable):
            warnings.warn(
                f"an image cannot be read: {unreadable[i]}", UnreadableImageWarning, stacklevel=3
            )
        return grids

    def _grid(self, source: Any) -> _Grid:
        whole: Pixels = read_image(source, color=True)
        parts, cut = [], None
        for words in self.words_:
            image = words.read(whole)
            shape = image.shape
            cut = cut or (max(1, round(shape[0] / self.cell)), max(1, round(shape[1] / self.cell)))
            parts.append(count(words.words(image), shape, cut, words.n_words).reshape(*cut, -1))
        counts = np.concatenate(parts, axis=2).astype(np.int32)
        return _Grid(WordCells(counts), whole)

    def _found(self, images: Any) -> tuple[Array, Array]:
        """Return the best boxes of images and their scores; NaN for those that are unreadable."""
        check_is_fitted(self, "svm_")
        grids = self._grids(as_sources(images))
        boxes, scores = np.full((len(grids), 4), np.nan), np.full(len(grids), np.nan)
        for i, grid in enumerate(grids):
            if grid is not None:
                found = self.svm_.model_.search(grid.cells, self.svm_.coef_)
                boxes[i], scores[i] = found.boxes[0] * grid.cell_size, found.scores[0]
        return boxes, scores

    def predict(self, images: Any) -> Array:
        """Find the box of the highest score in every image.

        Parameters
        ----------
        images : sequence of paths or arrays

        Returns
        -------
        boxes : array of shape (n_images, 4)
            Boxes ``[x0, y0, x1, y1)`` in pixels; NaN, with a warning, for an unreadable image.
        """
        return self._found(images)[0]

    def decision_function(self, images: Any) -> Array:
        """Return the scores of the best boxes.

        Parameters
        ----------
        images : sequence of paths or arrays

        Returns
        -------
        scores : array of shape (n_images,)
        """
        return self._found(images)[1]

    def score(self, images: Any, boxes: Any) -> float:
        """Return the mean intersection over union of the boxes found with the true ones.

        Parameters
        ----------
        images : sequence of paths or arrays
            Those that cannot be read count as 0.
        boxes : array-like of shape (n_images, 4)
            True boxes in pixels.

        Returns
        -------
        score : float
        """
        found = self.predict(images)
        if len(found) != len(boxes):
            raise ValueError(f"there are {len(found)} images, but {len(boxes)} boxes")
        pairs = zip(np.nan_to_num(found), boxes, strict=True)
        return float(np.mean([iou([one], [other])[0, 0] for one, other in pairs]))

    def explain(self, images: Any) -> list[BoxExplanation]:
        """Say which parts of images won: what cells contribute to the scores of the best boxes.

        Parameters
        ----------
        images : sequence of paths or arrays
            Images that can be read.

        Returns
        -------
        explanations : list of BoxExplanation
        """
        check_is_fitted(self, "svm_")
        return [self._explained(self._grid(source)) for source in as_sources(images)]

    def _explained(self, grid: _Grid) -> BoxExplanation:
        model, coef = self.svm_.model_, self.svm_.coef_
        found = model.search(grid.cells, coef)
        cells = model.contributions(grid.cells, coef, found.boxes[0])
        box = found.boxes[0] * grid.cell_size
        return BoxExplanation(box, float(found.scores[0]), cells, grid.image)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.input_tags.string = True
        tags.target_tags.required = True
        tags.no_validation = True
        return tags

    def _check_state(self) -> None:
        """Raise ``ValueError`` if words and weights of a loaded model do not fit together."""
        require_whole("cell", self.cell, 1)
        state = vars(self)
        if not {"words_", "svm_"} & state.keys():
            return
        words = state.get("words_")
        known = isinstance(words, list) and all(isinstance(w, WordSource) for w in words)
        require(known and words, "words_ are not sources of words")
        machine = state.get("svm_")
        require(isinstance(machine, StructuredSVM), "svm_ is no structured SVM")
        model = vars(machine).get("model_")
        fits = isinstance(model, BoxModel) and model.n_words == sum(w.n_words for w in words or ())
        require(fits and "coef_" in vars(machine), "svm_ is not one of these words")
