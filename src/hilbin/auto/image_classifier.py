"""Images and labels in, a classifier with probabilities and reasons out.

``fit`` looks at a sample of the images and takes the features that suit them, describes every image
by one row, and chooses a machine on the weighted channels of these rows by cross-validation
(:mod:`hilbin.auto.image_candidates`). Probabilities are calibrated on the scores of images that
were left out, which the choice has computed anyway.
"""

import hashlib
import os
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import KW_ONLY
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from hilbin import persist
from hilbin._arrays import Array
from hilbin._parameters import estimator, require_choice
from hilbin.auto.choice import PREFER, Choice, choose, class_scores
from hilbin.auto.image_candidates import ImageRows, SquareRoots, forget, image_candidates
from hilbin.auto.image_data import (
    AUTO,
    NETWORK,
    Cache,
    Described,
    ImageSet,
    channels_of,
    check_features,
    described,
    files,
    fitted,
    open_images,
    resolve,
    transformer,
)
from hilbin.estimators import ScoreCalibration
from hilbin.images import ImageError, UnreadableImageWarning, find_images
from hilbin.images.augment import parse_transforms
from hilbin.images.descriptors import ImageSample
from hilbin.inspection import (
    Duplicate,
    Explanation,
    collect_evidence,
    difference_hash,
    explain_image,
    find_duplicates,
    suspicious_labels,
)
from hilbin.report import write_report

KERNELS = ("auto", "chi2", "intersection", "exp-chi2", "hellinger")
PACKAGES = ("hilbin", "numpy", "scipy", "scikit-learn", "Pillow")
FOLDS = 3
SAMPLE = 2000  # images that candidates are compared on if there are too many
NAMES_SHOWN = 10
ROWS_AT_ONCE = 256

Callback = Callable[[str, int, int], object]


@estimator
class ImageClassifier(ClassifierMixin, BaseEstimator):
    """A classifier of images that chooses its features, kernel and parameters.

    Parameters
    ----------
    features : str, default="auto"
        Names of features joined by ``+``, such as ``"sift+color"``, ``"onnx:network.onnx"`` or
        ``"auto+hog"``. ``"auto"`` takes those that suit the images; a network that is named alone
        is combined with them.
    network : path-like, optional
        ONNX file of a network whose maps are channels too; the same as ``onnx:FILE`` in
        ``features``.
    kernel : {"auto", "chi2", "intersection", "exp-chi2", "hellinger"}, default="auto"
        Kernel of the machine; ``"auto"`` chooses by cross-validation.
    prefer : {"explainable", "accurate"}, default="explainable"
        Whether a machine with exact heat maps is taken unless another is better by more than one
        standard error.
    virtual : str, optional
        Distortions of the training images that are learned too, such as ``"shift,rotate=15,flip"``.
    max_side : int or None, default=256
        Larger images are reduced so that the longer side has this many pixels.
    class_weight : dict or "balanced", optional
        Factor of the weight of each class.
    random_state : int, default=0
        Random seed.
    cache : path-like, optional
        Folder that keeps the rows of images, so that a fit that was interrupted resumes.
    n_jobs : int, optional
        Threads, as in joblib.
    verbose : int, default=0
        1 prints every stage and the outcome.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels.
    model_ : Pipeline
        The steps ``features``, from images to rows, and ``classifier``.
    choice_ : Choice
        What was compared, and how good it was.
    calibration_ : ScoreCalibration or None
        From scores to probabilities; None if every class has a single image.
    metadata_ : dict
        How the model was made, as it is saved with it.

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
    __metadata_request__predict: ClassVar[dict[str, str]] = {"images": UNUSED}
    __metadata_request__predict_proba: ClassVar[dict[str, str]] = {"images": UNUSED}
    __metadata_request__decision_function: ClassVar[dict[str, str]] = {"images": UNUSED}

    features: str = AUTO
    _: KW_ONLY
    network: Any = None
    kernel: str = "auto"
    prefer: str = "explainable"
    virtual: str | None = None
    max_side: int | None = 256
    class_weight: Any = None
    random_state: int = 0
    cache: Any = None
    n_jobs: int | None = None
    verbose: int = 0

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
        data = open_images(images, labels)
        if data.labels is None:
            raise ValueError("labels are missing; a folder of folders or a CSV file has its own")
        _require_two(data.source, data.labels)
        watch = Stopwatch(callback, self.verbose)
        features, found = self._described(data, names, watch)
        _warn_of_unreadable(data, found)
        rows = self._rows(data, features, found)
        y = rows.labels[~rows.is_copy]
        with watch.stage("choosing"):
            choice = self._chosen(rows, y, watch)
        with watch.stage("training"):
            classifier = self._trained(choice, rows)
        forget(choice.best)
        self.classes_, self.choice_ = rows.classes, choice
        self.model_ = Pipeline([("features", features), ("classifier", classifier)])
        scores = _held_out(choice, classifier, rows)
        self.calibration_ = None
        if not np.isnan(scores).any(axis=1).all():
            self.calibration_ = ScoreCalibration().fit(scores, y, classes=self.classes_)
        self.metadata_ = self._about(data, found, scores, y, watch)
        if self.verbose:
            print(self.summary())
        return self

    def _check_parameters(self) -> str:
        """Return the names of all features; raise for parameters that are not valid."""
        require_choice("kernel", self.kernel, KERNELS)
        require_choice("prefer", self.prefer, PREFER)
        if not 0 <= self.random_state < 2**32:
            raise ValueError(
                f"random_state must be from 0 to {2**32 - 1}, got {self.random_state!r}"
            )
        if self.virtual is not None:
            parse_transforms(self.virtual)
        names = self.features
        if self.network is not None:
            names = f"{NETWORK}:{os.fspath(self.network)}+{names}"
        check_features(names)
        return names

    def _described(self, data: ImageSet, names: str, watch: "Stopwatch") -> tuple[Any, Described]:
        """Return the fitted features and the rows of the images."""
        cache = None if self.cache is None else Cache(self.cache)
        sample = ImageSample.read(data.images, self.max_side)
        names = resolve(names, sample)
        made = transformer(names, sample, seed=self.random_state, max_side=self.max_side)
        made.set_params(n_jobs=self.n_jobs)
        with watch.stage("learning features"):
            features = fitted(made, data.images, cache, files=files(names))
        virtual = None if self.virtual is None else parse_transforms(self.virtual)
        with watch.stage("describing images"):
            found = described(
                features, data.images, cache, virtual=virtual, seed=self.random_state,
                n_jobs=self.n_jobs, callback=watch.callback,
            )  # fmt: skip
        self.features_ = names
        return features, found

    def _rows(self, data: ImageSet, features: Any, found: Described) -> ImageRows:
        assert data.labels is not None
        labels = np.asarray(data.labels)[found.origin]
        _require_two(f"{data.source}, images that can be read", labels.tolist())
        origin = np.unique(found.origin, return_inverse=True)[1]
        return ImageRows(
            found.rows, labels, origin, found.is_copy, channels_of(features),
            self.class_weight, self.random_state, self.n_jobs,
        )  # fmt: skip

    def _chosen(self, rows: ImageRows, y: Array, watch: "Stopwatch") -> Choice:
        """Return the best candidate; the baseline is compared even if it cannot be chosen."""
        how: dict[str, Any] = {
            "seed": self.random_state,
            "max_rows": None if rows.complete else SAMPLE,
            "n_folds": FOLDS,
            "callback": watch.of_choice,
        }
        numbers = np.arange(int(rows.origin.max()) + 1)
        candidates = image_candidates(rows, self.kernel)
        choice = choose(candidates, numbers, y, prefer=self.prefer, **how)
        if self.kernel != AUTO:
            choice.baselines |= choose([SquareRoots(rows)], numbers, y, **how).baselines
        return choice

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
            listed = _listed([str(error) for error in unreadable.values()])
            warnings.warn(
                f"{len(unreadable)} of {len(scores)} images cannot be read, their rows are zero: "
                f"{listed}",
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
        sources = _listed_images(images)
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

    def predict(self, images: Any) -> Array:
        """Predict the class of the highest score.

        Parameters
        ----------
        images : sequence of paths or arrays, or a folder
            The images.

        Returns
        -------
        labels : ndarray of shape (n_images,)
        """
        scores = self.decision_function(images)
        best = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[best.astype(np.intp)]

    def predict_proba(self, images: Any) -> Array:
        """Compute the probabilities of the classes.

        Parameters
        ----------
        images : sequence of paths or arrays, or a folder
            The images.

        Returns
        -------
        probabilities : ndarray of shape (n_images, n_classes)
        """
        return self._probabilities(self.decision_function(images))

    def _probabilities(self, scores: Array) -> Array:
        if self.calibration_ is None:
            raise AttributeError(
                "there are no probabilities: every class has a single image, so that no image "
                "could be left out"
            )
        return self.calibration_.predict_proba(scores)

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
        known = self.calibration_ is not None
        probabilities = self._probabilities(class_scores(classifier, row))[0] if known else None
        return explain_image(
            features, classifier, image, class_=class_, versus=versus, name=name,
            probabilities=probabilities,
        )  # fmt: skip

    def report(
        self,
        images: Any,
        labels: Any = None,
        path: Any = "report.html",
        *,
        callback: Callback | None = None,
    ) -> Path:
        """Write a page on how good the model is on labeled images, and why it decides so.

        Parameters
        ----------
        images, labels
            Images that the model was not trained on, as in :meth:`fit`. Those of classes that it
            does not know are left out.
        path : path-like, default="report.html"
            The HTML file.
        callback : callable, optional
            Called with the name of a stage, how much of it is done, and how much there is.

        Returns
        -------
        path : Path
        """
        check_is_fitted(self)
        evidence = self.evidence(images, labels, callback=callback)
        write_report(evidence, path)
        return Path(path)

    def evidence(self, images: Any, labels: Any = None, *, callback: Callback | None = None) -> Any:
        """Collect what :meth:`report` shows, as :class:`hilbin.inspection.Evidence`.

        Parameters
        ----------
        images, labels, callback
            As in :meth:`report`.
        """
        data = open_images(images, labels)
        if data.labels is None:
            raise ValueError("labels are missing; a folder of folders or a CSV file has its own")
        known = [i for i, label in enumerate(data.labels) if label in self.classes_]
        if not known:
            raise ValueError(
                "no image of a class that the model knows; it knows "
                f"{', '.join(map(str, self.classes_))}"
            )
        scores, unreadable = self.scores_with_errors(
            [data.images[i] for i in known], callback=callback
        )
        kept = [place for place in range(len(known)) if place not in unreadable]
        if not kept:
            raise ValueError(f"none of the {len(known)} images of {data.source} can be read")
        chosen = [data.images[known[place]] for place in kept]
        names = [data.names[known[place]] for place in kept]
        truth = [data.labels[known[place]] for place in kept]
        scores = scores[kept]
        left_out = [(data.names[known[i]], error.reason) for i, error in unreadable.items()]
        trained = [(one["name"], one["reason"]) for one in self.metadata_["unreadable"]]
        return collect_evidence(
            self.model_[1],
            chosen,
            truth,
            features=self.model_[0],
            title=f"{self.features_}, {self.choice_.best.name}",
            names=names,
            scores=scores,
            probabilities=None if self.calibration_ is None else self._probabilities(scores),
            baselines=self._baselines(),
            suspicious=None,
            duplicates=self._duplicates(chosen, names, truth),
            unreadable=left_out + trained,
            provenance={"classifier": repr(self), "trained on": self.metadata_["data"]["source"]},
            callback=None if callback is None else lambda stage: callback(stage, 0, 1),
        )

    def _baselines(self) -> dict[str, float]:
        cv = self.metadata_["cv"]
        found = {} if cv is None else {"this model, cross-validated": cv["accuracy"]}
        plain = self.choice_.baselines.items()
        return found | {f"{name}, cross-validated": value for name, value in plain}

    def _duplicates(self, images: list[Any], names: list[str], truth: list[Any]) -> list[Duplicate]:
        train, source = self.metadata_["train"], Path(self.metadata_["data"]["source"])
        root = source if source.is_dir() else source.parent
        return find_duplicates(
            images, truth, [root / name for name in train["names"]], train["labels"],
            test_names=names, train_names=train["names"],
            hashes=([difference_hash(image) for image in images], train["hashes"]),
        )  # fmt: skip

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that :func:`hilbin.load` reads.

        Parameters
        ----------
        path : path-like
            The file.
        """
        check_is_fitted(self)
        persist.save(self, path, metadata=self.metadata_)

    def summary(self) -> str:
        """Return what was chosen, how good it is, and what it was compared with."""
        check_is_fitted(self)
        about, cv = self.metadata_, self.metadata_["cv"]
        lines = [
            f"{len(self.classes_)} classes, {about['data']['n']} images, {self.features_}, "
            f"{self.choice_.best.name}"
        ]
        if cv is None:
            lines.append("accuracy not known: every class has a single image")
        else:
            lines.append(
                f"accuracy {cv['accuracy']:.1%} by cross-validation, mean per class "
                f"{cv['mean_class_accuracy']:.1%}"
            )
        lines += [
            f"compared: {one['name']}: {one['mean']:.1%} ± {one['standard_error']:.1%}"
            for one in self.choice_.table
        ]
        lines += [f"baseline: {k}: {v:.1%}" for k, v in self.choice_.baselines.items()]
        if self.choice_.cost_of_preference > 0:
            lines.append(
                f"the preference for exact reasons costs {self.choice_.cost_of_preference:.1%}"
            )
        return "\n".join(lines)

    # what a model says about itself
    def _about(
        self,
        data: ImageSet,
        found: Described,
        scores: Array,
        y: Array,
        watch: "Stopwatch",
    ) -> dict[str, Any]:
        assert data.labels is not None
        read = sorted(found.hashes)
        classes = [str(c) for c in self.classes_]
        suspicions = suspicious_labels(
            scores, y, self.classes_, names=[data.names[i] for i in read]
        )
        wanted = ("name", "given", "suggested", "margin")
        return {
            "kind": "images",
            "classes": classes,
            "seed": self.random_state,
            "features": self.features_,
            "kernel": self.choice_.best.name,
            "max_side": self.max_side,
            "virtual": self.virtual,
            "cv": self._cross_validated(scores, y),
            "choice": self.choice_.table,
            "baselines": self.choice_.baselines,
            "cost_of_preference": self.choice_.cost_of_preference,
            "suspicious": [{k: getattr(one, k) for k in wanted} for one in suspicions],
            "unreadable": [
                {"name": data.names[i], "reason": reason} for i, reason in found.unreadable.items()
            ],
            "data": _about_data(data, found),
            "train": {
                "names": [data.names[i] for i in read],
                "labels": [str(data.labels[i]) for i in read],
                "hashes": [found.hashes[i] for i in read],
            },
            "versions": _versions(),
            "seconds": watch.seconds,
        }

    def _cross_validated(self, scores: Array, y: Array) -> dict[str, Any] | None:
        known = ~np.isnan(scores).any(axis=1)
        if not known.any():
            return None
        truth = np.searchsorted(self.classes_, y[known])
        right = scores[known].argmax(axis=1) == truth
        winning = scores[known].max(axis=1)[right]
        plain = [v for name, v in self.choice_.baselines.items() if name != "majority"]
        return {
            "n": int(known.sum()),
            "accuracy": float(right.mean()),
            "mean_class_accuracy": float(np.mean([right[truth == k].mean() for k in set(truth)])),
            "linear_accuracy": max(plain) if plain else None,
            "majority_accuracy": self.choice_.baselines["majority"],
            "winning_quantiles": np.percentile(winning, np.arange(101)).tolist()
            if winning.size
            else None,
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.input_tags.string = True
        tags.no_validation = True
        return tags


class Stopwatch:
    """Stages of a fit: tells the callback, and keeps the seconds that they took."""

    def __init__(self, callback: Callback | None, verbose: int = 0):
        self.callback, self.verbose = callback, verbose
        self.seconds: dict[str, float] = {}

    def stage(self, name: str) -> "Stage":
        """Return a context whose time is kept."""
        if self.callback is not None:
            self.callback(name, 0, 1)
        return Stage(self, name)

    def of_choice(self, name: str, done: int, total: int) -> None:
        """Tell of a candidate."""
        if self.callback is not None:
            self.callback("choosing", done, total)


class Stage:
    """A stage of a fit, as a context."""

    def __init__(self, watch: Stopwatch, name: str):
        self.watch, self.name = watch, name

    def __enter__(self) -> None:
        self.begin = time.monotonic()

    def __exit__(self, *error: object) -> None:
        self.watch.seconds[self.name] = round(time.monotonic() - self.begin, 3)
        if self.watch.verbose:
            print(f"{self.name}: {self.watch.seconds[self.name]:.1f} s", flush=True)
        if self.watch.callback is not None and error[0] is None:
            self.watch.callback(self.name, 1, 1)


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


def _listed_images(images: Any) -> Any:
    """Return the images of a folder, or the images themselves."""
    if not isinstance(images, str | os.PathLike):
        return images if isinstance(images, np.ndarray) else list(images)
    return find_images(images) if Path(images).is_dir() else [Path(images)]


def _require_two(source: object, labels: list[Any]) -> None:
    classes = sorted(set(labels))
    if len(classes) < 2:
        found = f"only the class {classes[0]!r}" if classes else "no class"
        raise ValueError(f"{source}: {found}; a classifier needs two")


def _listed(texts: list[str]) -> str:
    more = len(texts) - NAMES_SHOWN
    return "; ".join(texts[:NAMES_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def _warn_of_unreadable(data: ImageSet, found: Described) -> None:
    if found.unreadable:
        texts = [f"{data.names[i]}: {reason}" for i, reason in found.unreadable.items()]
        warnings.warn(
            f"{len(texts)} of {len(data.images)} images cannot be read and are left out: "
            f"{_listed(texts)}",
            UnreadableImageWarning,
            stacklevel=3,
        )


def _about_data(data: ImageSet, found: Described) -> dict[str, Any]:
    assert data.labels is not None
    listing = hashlib.sha256()
    for i, (name, label) in enumerate(zip(data.names, data.labels, strict=True)):
        line = [name, str(label), found.digests.get(i, "unreadable")]
        listing.update("\0".join(line).encode(errors="surrogateescape") + b"\n")
    labels = [str(data.labels[i]) for i in sorted(found.hashes)]
    return {
        "source": data.source,
        "n": len(labels),
        "per_class": dict(sorted(Counter(labels).items())),
        "sha256": listing.hexdigest(),
    }


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
