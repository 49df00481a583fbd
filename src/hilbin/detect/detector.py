r"""A detector that is learned from images with boxes.

**Model.** One or more templates of gradient cells (:mod:`hilbin.detect.template`), compared with
all windows of an image at many scales (:mod:`hilbin.detect.pyramid`). Windows at or above the
threshold that no better window overlaps are what it finds (:mod:`hilbin.detect.finding`).

**Learning.** The hinge loss of all windows of all images, to a certified gap
(:mod:`hilbin.detect.learning`); :mod:`hilbin.detect.training` has the stages. The threshold, and
probabilities, are found by folds over images (:mod:`hilbin.detect.calibration`).

**References.** P. Felzenszwalb, R. Girshick, D. McAllester and D. Ramanan, *Object Detection with
Discriminatively Trained Part-Based Models*, 2010. A. Vedaldi and A. Zisserman, *Sparse Kernel
Approximations for Efficient Classification and Detection*, CVPR 2012, section 5.2.
"""

from dataclasses import KW_ONLY
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from hilbin import parallel
from hilbin._arrays import Array
from hilbin._parameters import estimator, require_positive, require_whole
from hilbin._state import require, require_attributes
from hilbin.detect.boxes import Boxes
from hilbin.detect.finding import LOW, Found, all_scores, find
from hilbin.detect.learning import MAX_ITER
from hilbin.detect.matching import average_precision
from hilbin.detect.pyramid import CellPyramid
from hilbin.detect.template import Template, smallest_object
from hilbin.detect.training import Callback, Training
from hilbin.detect.training_images import Pyramid, TrainingImages, warn_unreadable
from hilbin.estimators import ScoreCalibration
from hilbin.images import ImageError, read_image
from hilbin.images.read import as_sources, source_name

MOST_WORDS = 256


@estimator
class DeformableDetector(BaseEstimator):
    """Find objects in images, after learning from images with boxes around them.

    Parameters
    ----------
    n_components : int, default=1
        Number of templates, for runs of boxes by aspect; fewer if there are not 20 boxes for each.
    n_parts : int, default=0
        Number of parts of every template, which may move a little.
    n_words : int, optional
        If given, cells of training images are kept as numbers of the nearest of so many words, up
        to 256, found by k-means, in a hundredth of the memory. Which windows are hard is learned
        from the words, and the template from the numbers of these.
    area : float, default=6400
        Area of the object in the template in pixels; less if small boxes need it.
    upsample : "auto" or int, default="auto"
        How often images are doubled first, so that smaller objects are found, or halved if it is
        negative; "auto" takes the least with which 95 % of the boxes are as large as the template.
    C : float, default=0.02
        Weight of the loss of every window.
    mirror : bool, default=True
        Whether to learn from mirror images as well.
    threshold : "auto" or float, default="auto"
        Least score of what is found; "auto" is that of best F1, smoothed, in images that
        were left out.
    overlap : "auto" or float, default="auto"
        If two windows overlap with a larger IoU, only the better one is kept. "auto" is the IoU
        that 95 % of the training boxes do not exceed with any other box, from 0.3 to 0.5.
    tol : float, default=0.03
        Largest gap of the objective to its lower bound, relative to the objective.
    max_iter : int, default=500
        Largest number of passes over all windows.
    max_time : float, optional
        Seconds after which training is cut short.
    verbose : int, default=0
        Prints the end of every training with 1, and every pass with 2.
    cache : path, optional
        Folder in which the fit keeps its progress. The same fit resumes from there after an
        interrupt, and gives the same detector; delete the folder in the end.
    n_jobs : int, optional
        Number of threads, as in joblib.
    random_state : int, RandomState or None, default=None
        Seed of words and folds.

    Attributes
    ----------
    templates_ : list of Template
        What it looks for.
    threshold_ : float
        Least score of what is found.
    calibration_ : ScoreCalibration or None
        Map of scores to probabilities; None if all or none of the detections in images that were
        left out were true.
    upsample_ : int
        How often images are doubled.
    overlap_ : float
        Largest IoU of two windows that are both kept.
    words_ : float32 array of shape (n_words, 32) or None
        Words of cells; :func:`~hilbin.detect.run_all` uses them.
    unreachable_ : list of dict
        Boxes that no window meets at an IoU of 0.5, which were ignored: "image", the name or the
        place of the image, "box", its place among the boxes of the image, and "iou", the best there
        is.
    memory_ : int
        Bytes of the cells of all images while learning.
    n_iter_, converged_, objective_, gap_
        Passes, whether the gap is below ``tol``, and the objective and the gap of every template.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.detect import DeformableDetector
    >>> rng = np.random.default_rng(0)
    >>> images = rng.integers(0, 80, (6, 96, 128), np.uint8)
    >>> boxes = []
    >>> for image in images:  # a bright square in each
    ...     x, y = rng.integers(8, 60), rng.integers(8, 40)
    ...     image[y : y + 40, x : x + 40] += 120
    ...     boxes.append([[x, y, x + 40, y + 40]])
    >>> detector = DeformableDetector(area=1600, random_state=0).fit(images[:4], boxes[:4])
    >>> float(detector.score(images[4:], boxes[4:]))
    1.0
    >>> found = detector.predict(images[4:])[0]
    >>> bool(abs(found.coordinates[0] - boxes[4]).max() < 8)
    True
    """

    # images are what others call X, not metadata to be routed
    __metadata_request__fit: ClassVar[dict[str, str]] = dict.fromkeys(
        ("images", "boxes", "ignore", "callback"), UNUSED
    )
    __metadata_request__predict: ClassVar[dict[str, str]] = {"images": UNUSED, "threshold": UNUSED}
    __metadata_request__score: ClassVar[dict[str, str]] = dict.fromkeys(
        ("images", "boxes", "ignore"), UNUSED
    )

    n_components: int = 1
    n_parts: int = 0
    n_words: int | None = None
    area: float = 6400.0
    upsample: int | Literal["auto"] = "auto"
    C: float = 0.02
    mirror: bool = True
    threshold: float | Literal["auto"] = "auto"
    _: KW_ONLY
    overlap: float | Literal["auto"] = "auto"
    tol: float = 0.03
    max_iter: int = MAX_ITER
    max_time: float | None = None
    verbose: int = 0
    cache: Any = None
    n_jobs: int | None = None
    random_state: Any = None

    def fit(
        self, images: Any, boxes: Any, ignore: Any = None, *, callback: Callback | None = None
    ) -> Self:
        """Learn what is in the boxes.

        Parameters
        ----------
        images : sequence of paths or arrays
            Images; those without an object are useful, too.
        boxes : sequence of Boxes or array-likes of shape (n_i, 4)
            ``[x0, y0, x1, y1)`` of all objects of every image, in pixels.
        ignore : sequence of array-likes of shape (n_i,), optional
            Which boxes are neither objects nor background, such as hidden or blurred ones.
        callback : callable, optional
            Called with the name of a stage, how much of it is done, and how much there is. A
            stage that resumes begins with something done.

        Returns
        -------
        self
        """
        self._check_parameters()
        data = TrainingImages(images, boxes, ignore)
        training = Training(self, data, callback or (lambda stage, done, total: None))
        self.upsample_: int = training.upsample
        self.overlap_: float = training.overlap
        training.read()
        self.words_: Array | None = training.words
        self.memory_: int = training.memory
        self.unreachable_: list[dict[str, Any]] = training.unreachable
        templates, hard = training.refine(training.learn())
        found = training.calibrate(templates, hard)
        self.templates_, self.threshold_, self.calibration_ = found
        return self

    @property
    def filters_(self) -> list[Array]:
        """Root filters (rows, 32, columns) of all templates."""
        check_is_fitted(self)
        return [template.root for template in self.templates_]

    def pyramid(self, image: Any) -> CellPyramid:
        """Return the pyramid of one image as the detector sees it.

        Parameters
        ----------
        image : path or array
        """
        check_is_fitted(self)
        return CellPyramid.of(
            read_image(image, color=True),
            smallest=smallest_object([template.shape for template in self.templates_]),
            upsample=self.upsample_,
            nodes=any(template.n_parts for template in self.templates_),
        )

    def find(
        self, pyramid: Pyramid, threshold: float | None = None, *, exact: bool = False
    ) -> Found:
        """Return the windows that are found in one pyramid.

        Parameters
        ----------
        pyramid : CellPyramid
            What :meth:`pyramid` returns.
        threshold : float, optional
            Least score, ``threshold_`` by default.
        exact : bool, default=False
            Whether to compute parts everywhere, not only where the root has a score that a
            training object had.
        """
        least = self.threshold_ if threshold is None else threshold
        scores = all_scores(self.templates_, pyramid, exact=exact)
        return find(scores, self.templates_, pyramid, least, self.overlap_)

    def predict(self, images: Any, threshold: float | None = None) -> list[Boxes]:
        """Find objects in images.

        Parameters
        ----------
        images : sequence of paths or arrays
            An image that cannot be read has no boxes, and a warning names it.
        threshold : float, optional
            Minimum score of a detection, by default ``threshold_``. Lower thresholds find more,
            including more false alarms.

        Returns
        -------
        boxes : list of Boxes
            The boxes, scores and, if known, probabilities of each image, by decreasing score.
        """
        check_is_fitted(self)
        sources = as_sources(images)
        found: list[Boxes] = [Boxes(np.empty((0, 4)), scores=np.empty(0))] * len(sources)
        errors: dict[int, ImageError] = {}

        def task(begin: int, end: int) -> None:
            for i in range(begin, end):
                try:
                    pyramid = self.pyramid(sources[i])
                except ImageError as error:
                    errors[i] = ImageError(source_name(sources[i], i), error.reason)
                    continue
                found[i] = self.find(pyramid, threshold).boxes

        parallel.run(task, parallel.ranges(len(sources), 1), self.n_jobs)
        if errors:
            warn_unreadable(dict(sorted(errors.items())), len(sources) + 1)
        return [with_probabilities(boxes, self.calibration_) for boxes in found]

    def score(self, images: Any, boxes: Any, ignore: Any = None) -> float:
        """Return the average precision of what is found at a low threshold.

        Parameters
        ----------
        images, boxes, ignore
            As for :meth:`fit`.
        """
        data = TrainingImages(images, boxes, ignore)
        return average_precision(self.predict(images, LOW), data.truths(), data.others())

    def _check_parameters(self) -> None:
        require_whole("n_components", self.n_components, 1, 100)
        require_whole("n_parts", self.n_parts, 0, 100)
        if self.n_words is not None:
            require_whole("n_words", self.n_words, 2, MOST_WORDS)
        require_positive("area", self.area, most=1e6)
        if self.upsample != "auto":
            require_whole("upsample", self.upsample, -8, 3)
        require_positive("C", self.C)
        if self.threshold != "auto" and not np.isfinite(self.threshold):
            raise ValueError(f'threshold must be "auto" or a number, got {self.threshold!r}')
        if self.overlap != "auto":
            require_positive('overlap, if not "auto",', self.overlap, or_zero=True, most=1)
        require_positive("tol", self.tol)
        require_whole("max_iter", self.max_iter, 1)
        if self.max_time is not None:
            require_positive("max_time", self.max_time)

    def _check_state(self) -> None:
        fitted = require_attributes(
            self,
            templates_="list",
            upsample_="int",
            overlap_="float",
            words_="float32[words, 32]?",
            threshold_="float",
            unreachable_="list",
            memory_="int",
            n_iter_="int",
            converged_="bool",
            objective_="float64[k]",
            gap_="float64[k]",
        )
        if not fitted:
            return
        self._check_parameters()
        templates = self.templates_
        require(
            templates and all(isinstance(t, Template) for t in templates), "templates_ is wrong"
        )
        require(-8 <= self.upsample_ <= 3, "upsample_ is out of range")
        require(0 <= self.overlap_ <= 1, "overlap_ is out of range")
        require(fitted.get("words", 1) <= MOST_WORDS, "there are too many words")
        calibration = self.calibration_
        fits = calibration is None or isinstance(calibration, ScoreCalibration)
        require(fits, "calibration_ is no ScoreCalibration")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.input_tags.string = True
        tags.no_validation = True
        return tags


def with_probabilities(boxes: Boxes, calibration: ScoreCalibration | None) -> Boxes:
    """Return boxes with the probabilities that belong to their scores."""
    if calibration is None or boxes.scores is None:
        return boxes
    probabilities = calibration.predict_proba(boxes.scores)[:, 1] if len(boxes) else np.empty(0)
    return Boxes(boxes.coordinates, scores=boxes.scores, probabilities=probabilities)
