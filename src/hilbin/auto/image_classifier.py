"""Images and labels in, a classifier with probabilities and reasons out.

``fit`` looks at a sample of the images and takes the features that suit them, describes every image
by one row, and chooses a machine on the weighted channels of these rows by cross-validation
(:mod:`hilbin.auto.image_candidates`). Probabilities are calibrated on the scores of images that
were left out, which the choice has computed anyway.
"""

import hashlib
import warnings
from dataclasses import KW_ONLY
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from hilbin import parallel
from hilbin._arrays import Array
from hilbin._parameters import estimator, require_choice
from hilbin._state import require
from hilbin.auto.base import AutoClassifier, Callback, Stopwatch
from hilbin.auto.choice import Choice, choose, few_per_class
from hilbin.auto.describing import (
    checked_seed,
    feature_names,
    learn_features,
    listed,
    listed_images,
    warn_of_unreadable,
)
from hilbin.auto.dual import RULES
from hilbin.auto.evaluation import Tested, known_labels
from hilbin.auto.image_candidates import (
    KERNELS,
    PLAIN,
    SquareRoots,
    forget,
    image_candidates,
)
from hilbin.auto.image_data import (
    AUTO,
    Cache,
    Described,
    ImageSet,
    channels_of,
    described,
    open_images,
)
from hilbin.auto.image_rows import ImageRows
from hilbin.estimators import ScoreCalibration
from hilbin.images import ImageError, UnreadableImageWarning
from hilbin.images.augment import parse_transforms
from hilbin.inspection import (
    Explanation,
    Suspicion,
    additive,
    class_scores,
    explain_image,
    find_duplicates,
)
from hilbin.inspection.duplicates import MOST_PICTURES, shown_picture

FOLDS = 3
SAMPLE = 2000  # images that candidates are compared on if there are too many
ROWS_AT_ONCE = 256


@estimator
class ImageClassifier(AutoClassifier):
    """A classifier of images that chooses its features, kernel and parameters.

    Parameters
    ----------
    features : str, default="auto"
        Names of features joined by ``+``, such as ``"sift+color"``, ``"onnx:network.onnx"`` or
        ``"auto+hog"``. ``"auto"`` uses those that suit the images; a network named without others
        is combined with them.
    network : path-like, optional
        ONNX file of a neural network whose maps are used as further channels; the same as
        ``onnx:FILE`` in ``features``.
    kernel : str, default="auto"
        Kernel of the model: ``"chi2"``, ``"intersection"``, ``"js"`` (Jensen-Shannon),
        ``"hellinger"``, ``"linear"`` or ``"exp-chi2"``; ``"auto"`` chooses.
    combine : str, default="accuracy"
        How the weights of several features are found: from the leave-one-out accuracy of each
        (``"accuracy"``), from how well their sum agrees with the labels (``"alignment"``), together
        with a classifier (``"multiple"``), or none (``"average"``); ``"auto"`` takes the rule of
        highest leave-one-out accuracy. The plain average is always shown beside it.
    virtual : str, optional
        Data augmentation: distortions of the training images to learn from too, such as
        ``"shift,rotate=15,flip"``.
    max_side : int or None, default=256
        Larger images are reduced so that the longer side has this many pixels.
    cache : path-like, optional
        Folder in which extracted features are kept, so that an interrupted fit can resume.

    Attributes
    ----------
    model_ : Pipeline
        The steps ``features``, from images to rows, and ``classifier``.
    features_ : str
        Names of the features in use.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin import ImageClassifier
    >>> rng = np.random.default_rng(0)
    >>> dark, bright = rng.integers(0, 99, (8, 32, 32)), rng.integers(99, 255, (8, 32, 32))
    >>> images = np.concatenate([dark, bright]).astype(np.uint8)
    >>> model = ImageClassifier("centrist").fit(images, ["dark"] * 8 + ["bright"] * 8)
    >>> model.predict_proba(images[:3]).shape
    (3, 2)
    """

    # images are what others call X, not metadata to be routed
    __metadata_request__fit: ClassVar[dict[str, str]] = {
        "images": UNUSED, "labels": UNUSED, "callback": UNUSED,
    }  # fmt: skip
    __metadata_request__decision_function: ClassVar[dict[str, str]] = {"images": UNUSED}

    features: str = AUTO
    _: KW_ONLY
    network: Any = None
    kernel: str = "auto"
    combine: str = "accuracy"
    virtual: str | None = None
    max_side: int | None = 256
    cache: Any = None

    @few_per_class()
    def fit(self, images: Any, labels: Any = None, *, callback: Callback | None = None) -> Self:
        """Learn from labeled images.

        Images that cannot be read are left out, and a warning names them.

        Parameters
        ----------
        images : path, or sequence of paths or arrays
            A folder with a folder of images for every class, a CSV file with the columns ``path``
            and ``label``, or the images themselves.
        labels : sequence, optional
            Labels of a sequence of images.
        callback : callable, optional
            Called with the name of a stage, how much of it is done, and how much there is.

        Returns
        -------
        self : ImageClassifier
        """
        names = self._check_parameters()
        seed = checked_seed(self.random_state)
        data = open_images(images, labels)
        if data.labels is None:
            raise ValueError("labels are missing; a folder of folders or a CSV file has its own")
        _require_two(data.source, data.labels)
        watch = Stopwatch(callback, self.verbose)
        names, features, found = self._described(data, names, seed, watch)
        warn_of_unreadable(
            [f"{data.names[i]}: {reason}" for i, reason in found.unreadable.items()],
            len(data.images),
        )
        rows = self._rows(data, features, found, seed)
        y = rows.labels[~rows.is_copy]
        choice = self._chosen(rows, y, seed, watch)
        with watch.timed_stage("training", choice.expected_seconds(FOLDS)):
            classifier = self._trained(choice, rows)
        forget(choice.best)
        scores = _held_out(choice, classifier, rows)
        calibration = ScoreCalibration().fit(
            scores[:, 1] if rows.classes.size == 2 else scores, y, classes=rows.classes
        )
        # kept together at the end: an interrupt before leaves the estimator as it was
        self.features_, self.classes_, self.choice_ = names, rows.classes, choice
        self.calibration_ = calibration
        self.model_ = Pipeline([("features", features), ("classifier", classifier)])
        self.metadata_ = self._about_images(data, found, scores, y, watch, rows)
        watch.say(self.summary())
        return self

    def _check_parameters(self) -> str:
        """Return the names of all features; raise for parameters that are not valid."""
        self._check_choice(KERNELS, self.kernel)
        require_choice("combine", self.combine, (AUTO, *RULES))
        if self.virtual is not None:
            parse_transforms(self.virtual)
        return feature_names(self.features, self.network)

    def _described(
        self, data: ImageSet, names: str, seed: int, watch: Stopwatch
    ) -> tuple[str, Any, Described]:
        """Return the names of the features, the fitted features, and the rows of the images."""
        cache = None if self.cache is None else Cache(self.cache)
        names, features, images = learn_features(
            names, data.images, cache, watch,
            seed=seed, max_side=self.max_side, n_jobs=self.n_jobs,
        )  # fmt: skip
        virtual = None if self.virtual is None else parse_transforms(self.virtual)
        with watch.stage("describing images", len(data.images)) as tell:
            found = described(
                features, images, cache, virtual=virtual, seed=seed,
                n_jobs=self.n_jobs, callback=tell,
            )  # fmt: skip
        if found.n_resumed and watch.callback is not None:
            watch.callback("resumed", found.n_resumed, len(data.images))
        return names, features, found

    def _rows(self, data: ImageSet, features: Any, found: Described, seed: int) -> ImageRows:
        assert data.labels is not None
        labels = np.asarray(data.labels)[found.origin]
        _require_two(f"{data.source}, images that can be read", labels.tolist())
        origin = np.unique(found.origin, return_inverse=True)[1]
        return ImageRows(
            found.rows, labels, origin, found.is_copy, channels_of(features),
            self.class_weight, seed, self.n_jobs, self.combine,
        )  # fmt: skip

    def _chosen(self, rows: ImageRows, y: Array, seed: int, watch: Stopwatch) -> Choice:
        """Return the best candidate; the baseline is compared even if it cannot be chosen."""
        candidates = image_candidates(rows, self.kernel)
        plain = [] if self.kernel == AUTO or not rows.nonnegative else [SquareRoots(PLAIN, rows)]
        first = y.size if rows.complete else min(y.size, SAMPLE)
        limit = "" if self.max_time is None else f", in at most {self.max_time:g} s"
        total = len(candidates) + len(plain)
        watch.say(
            f"choosing among {total} candidates by {FOLDS}-fold cross-validation on {first:,} of "
            f"{y.size:,} images{limit}"
        )
        with watch.stage("choosing", total) as tell:

            def told(name: str, done: int, of: int) -> None:
                watch.say(f"[{done + 1}/{of}] {name}")
                tell(total * done // of)

            return choose(
                candidates, np.arange(int(rows.origin.max()) + 1), y,
                prefer=self.prefer, seed=seed, max_rows=None if rows.complete else SAMPLE,
                n_folds=FOLDS, max_time=self.max_time, baselines=plain, callback=told,
            )  # fmt: skip

    def _trained(self, choice: Choice, rows: ImageRows) -> Any:
        train = getattr(choice.best, "train", None)
        if train is not None:
            return train()
        return choice.best.make().fit(rows.rows, rows.labels)

    # use
    def decision_function(self, images: Any) -> Array:
        """Compute the scores of images.

        Parameters
        ----------
        images : sequence of paths or arrays, or a folder
            The images. Those that cannot be read are described by zeros, and a warning names them;
            :meth:`scores_with_errors` returns the errors instead.

        Returns
        -------
        scores : ndarray of shape (n_images,) or (n_images, n_classes)
            Score of ``classes_[1]`` for two classes, else of every class.
        """
        scores, unreadable = self.scores_with_errors(images)
        if unreadable:
            texts = listed([str(error) for error in unreadable.values()])
            warnings.warn(
                f"{len(unreadable)} of {len(scores)} images cannot be read, their rows are zero: "
                f"{texts}",
                UnreadableImageWarning,
                stacklevel=2,
            )
        return scores[:, 1] if self.classes_.size == 2 else scores

    def scores_with_errors(
        self, images: Any, *, callback: Callback | None = None
    ) -> tuple[Array, dict[int, ImageError]]:
        """Compute the scores of all classes, and the errors of images that cannot be read.

        Parameters
        ----------
        images : sequence of paths or arrays, or a folder
            The images.
        callback : callable, optional
            Called with the name of the stage, how many images are done, and how many there are.

        Returns
        -------
        scores : ndarray of shape (n_images, n_classes)
            Scores; those of images that cannot be read say nothing.
        unreadable : dict from place to ImageError
        """
        check_is_fitted(self)
        sources = listed_images(images)
        features, classifier = self.model_[0], self.model_[1]
        scores = np.zeros((len(sources), self.classes_.size))
        unreadable: dict[int, ImageError] = {}
        for begin in range(0, len(sources), ROWS_AT_ONCE):
            if callback is not None:
                callback("describing images", begin, len(sources))
            rows, wrong = features.transform_with_errors(sources[begin : begin + ROWS_AT_ONCE])
            scores[begin : begin + ROWS_AT_ONCE] = class_scores(classifier, rows)
            unreadable |= {begin + i: error for i, error in wrong.items()}
        if callback is not None:
            callback("describing images", len(sources), len(sources))
        return scores, unreadable

    def explain(
        self, image: Any, *, class_: Any = None, versus: Any = None, name: str | None = None
    ) -> Explanation:
        """Explain the score of one image: features and places that add most, and a heat map.

        Parameters
        ----------
        image : path or uint8 array
            The image.
        class_ : label, optional
            Class whose score is explained; the predicted one by default.
        versus : label, optional
            Class whose score is subtracted.
        name : str, optional
            Name of the image; its path by default.

        Returns
        -------
        explanation : Explanation
        """
        check_is_fitted(self)
        features, classifier = self.model_[0], self.model_[1]
        row = features.transform_image(features.read(image))[None]
        return explain_image(
            features, classifier, image, class_=class_, versus=versus, name=name,
            feature_name=self.features_,
            probabilities=self.class_probabilities(class_scores(classifier, row))[0],
        )  # fmt: skip

    # evaluation
    @property
    def _classifier(self) -> Any:
        return self.model_[1]

    @property
    def _input(self) -> str:
        return self.features_

    def _tested(self, X: Any, y: Any, watch: Stopwatch) -> Tested:
        check_is_fitted(self)
        data = open_images(X, y)
        if data.labels is None:
            raise ValueError("labels are missing; a folder of folders or a CSV file has its own")
        kept, truth, unknown = known_labels(data.labels, self.classes_, data.source)
        images = [data.images[i] for i in kept]
        names = [data.names[i] for i in kept]
        labels = [data.labels[i] for i in kept]
        seen, scores = Described.empty(), [np.empty((0, self.classes_.size))]
        parts = additive(self._classifier)
        score = partial(class_scores, self._classifier) if parts is None else parts.scores
        with watch.stage("describing images", len(images)) as tell:
            for begin, end in parallel.ranges(len(images), ROWS_AT_ONCE):
                found = described(self.model_[0], images[begin:end], n_jobs=self.n_jobs)
                if len(found.rows):
                    scores.append(score(found.rows))
                seen.note(found, begin)
                tell(end)
        paths = [str(image) if isinstance(image, Path) else name
                 for image, name in zip(images, names, strict=True)]  # fmt: skip
        good = sorted(seen.hashes)
        if not good:
            first = f"{paths[0]}: {seen.unreadable[0]}"
            raise ValueError(f"none of the {len(images)} images can be read, for example {first}")
        return Tested(
            [images[i] for i in good], [names[i] for i in good], [paths[i] for i in good],
            truth[good], np.concatenate(scores), data.source, _digest(names, labels, seen.digests),
            unknown,
            [seen.hashes[i] for i in good],
            [{"path": paths[i], "reason": r} for i, r in seen.unreadable.items()],
        )  # fmt: skip

    def _shown(self, tested: Tested) -> dict[str, Any]:
        about = self.metadata_
        train = about["train"]
        duplicates = find_duplicates(
            tested.examples, [self._names[k] for k in tested.truth],
            [self._training_path(name) for name in train["names"]], train["labels"],
            test_names=tested.names, train_names=train["names"],
            hashes=(tested.hashes, train["hashes"]),
        )  # fmt: skip
        unreadable = [(one["path"], one["reason"]) for one in tested.unreadable]
        unreadable += [(one["name"], one["reason"]) for one in about["unreadable"]]
        return {
            "features": self.model_[0],
            "feature_name": self.features_,
            "duplicates": duplicates,
            "channels": about["channels"],
            "unreadable": unreadable,
        }

    def _suspicions(self) -> list[Suspicion]:
        """Return the suspicious training images, the first ones with their pictures."""
        return [
            Suspicion(
                one.name, one.given, one.suggested, one.margin,
                shown_picture(self._training_path(one.name)) if at < MOST_PICTURES else None,
            )
            for at, one in enumerate(super()._suspicions())
        ]  # fmt: skip

    def _training_path(self, name: str) -> Path:
        source = Path(self.metadata_["data"]["source"])
        return (source if source.is_dir() else source.parent) / name

    def _about_images(
        self,
        data: ImageSet,
        found: Described,
        scores: Array,
        y: Array,
        watch: Stopwatch,
        rows: ImageRows,
    ) -> dict[str, Any]:
        assert data.labels is not None
        read = sorted(found.hashes)
        names = [data.names[i] for i in read]
        digest = _digest(data.names, data.labels, found.digests)
        return self._about(
            "images", y, scores, names, {"source": data.source, "sha256": digest}, watch,
            features=self.features_, max_side=self.max_side, virtual=self.virtual,
            channels=rows.about_channels(),
            unreadable=[
                {"name": data.names[i], "reason": reason} for i, reason in found.unreadable.items()
            ],
            train={
                "names": names,
                "labels": [str(data.labels[i]) for i in read],
                "hashes": [found.hashes[i] for i in read],
            },
        )  # fmt: skip

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the attributes of a loaded classifier do not fit together."""
        if not hasattr(self, "model_"):
            return
        steps = isinstance(self.model_, Pipeline) and len(self.model_.steps) == 2
        require(steps, "model_ is not a pipeline of features and a classifier")
        require(hasattr(self.model_[-1], "decision_function"), "model_ gives no scores")
        require(isinstance(self.calibration_, ScoreCalibration), "calibration_ is not one")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.input_tags.string = True
        tags.no_validation = True
        return tags


def _held_out(choice: Choice, classifier: Any, rows: ImageRows) -> Array:
    """Return scores of images that were left out: one by one if the ridge has them."""
    ridge = classifier[-1]
    found = getattr(ridge, "held_out_scores_", None)
    if found is None:
        return choice.scores
    del ridge.held_out_scores_  # known here; as large as the training data, not part of the model
    scores: Array = found[~rows.is_copy]
    alone = np.bincount(rows.codes[~rows.is_copy])[rows.codes[~rows.is_copy]] == 1
    scores[alone] = np.nan  # a model without them does not know their class
    return scores


def _require_two(source: object, labels: list[Any]) -> None:
    classes = sorted(set(labels))
    if len(classes) < 2:
        found = f"only the class {classes[0]!r}" if classes else "no class"
        raise ValueError(f"{source}: {found}; a classifier needs two")


def _digest(names: list[str], labels: list[Any], digests: dict[int, str]) -> str:
    """Return the SHA-256 of names, labels and contents of images."""
    listing = hashlib.sha256()
    for i, (name, label) in enumerate(zip(names, labels, strict=True)):
        line = [name, str(label), digests.get(i, "unreadable")]
        listing.update("\0".join(line).encode(errors="surrogateescape") + b"\n")
    return listing.hexdigest()
