"""Images without labels: the most similar ones, duplicates, clusters, a montage."""

import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from hilbin import parallel
from hilbin._arrays import Array
from hilbin._parameters import estimator
from hilbin._state import require
from hilbin.auto.base import Callback, Stopwatch, counted
from hilbin.auto.collection import (
    KERNELS,
    Clustering,
    Collection,
    Difference,
    exact_among,
    require_texts,
    require_two,
    sampled,
)
from hilbin.auto.describing import (
    checked_seed,
    feature_names,
    learn_features,
    listed_images,
    unlabeled_images,
    warn_of_unreadable,
)
from hilbin.auto.image_classifier import ImageClassifier
from hilbin.auto.image_data import (
    AUTO,
    Cache,
    Described,
    ImageSet,
    channels_of,
    described,
)
from hilbin.auto.row_index import RowIndex
from hilbin.images import ImageError, ImageFeatures
from hilbin.inspection import duplicate_groups, image_column
from hilbin.inspection.duplicates import is_hash, shown_picture
from hilbin.inspection.words import best_place, cut_out, whole_image_words
from hilbin.report import ClusterCard, write_montage

AT_ONCE = 512  # images whose rows are in memory together
WORDS_SHOWN = 4  # that set a cluster apart, one of each kind
PATCHES = 5
PICTURES = 12  # of a cluster on the page


@estimator
class ImageCollection(Collection):
    """Images without labels: find similar ones, duplicates, clusters, and sort them on a page.

    Parameters
    ----------
    features : str, default="auto"
        Names of features joined by ``+``, as in :class:`ImageClassifier`.
    network : path-like, optional
        ONNX file of a neural network whose maps are used as further channels.
    kernel : {"hellinger", "chi2", "intersection", "js", "linear"}, default="hellinger"
        Kernel whose feature space images are compared in. The features of ``"hellinger"`` are
        square roots: exact, and no more than there are columns.
    max_side : int or None, default=256
        Larger images are reduced so that the longer side has this many pixels.
    cache : path-like, optional
        Folder in which extracted features are kept, so that an interrupted fit can resume.

    Attributes
    ----------
    model_ : ImageFeatures
        From images to rows.
    features_ : str
        Names of the features in use.
    folder_ : str
        The folder that ``names_`` are below; empty if they are paths by themselves.
    images_ : list or None
        The images, if they were given as arrays.
    hashes_ : list of str
        Difference hashes of the images.
    digests_ : list of str
        SHA-256 of the files, or of the pixels.
    unreadable_ : list of dict
        Images that were left out: ``name`` and ``reason``.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin import ImageCollection
    >>> rng = np.random.default_rng(0)
    >>> dark, bright = rng.integers(0, 99, (8, 32, 32)), rng.integers(99, 255, (8, 32, 32))
    >>> images = np.concatenate([dark, bright]).astype(np.uint8)
    >>> collection = ImageCollection("centrist").fit(images)
    >>> [one.name for one in collection.similar(images[3:4], 1)[0]]
    ['image 4']
    >>> collection.cluster(2).labels.shape
    (16,)
    """

    __metadata_request__fit: ClassVar[dict[str, str]] = {
        "images": UNUSED, "model": UNUSED, "callback": UNUSED,
    }  # fmt: skip

    features: str = AUTO
    _: KW_ONLY
    network: Any = None
    kernel: str = "hellinger"
    max_side: int | None = 256
    cache: Any = None

    def fit(
        self, images: Any, y: Any = None, *, model: Any = None, callback: Callback | None = None
    ) -> Self:
        """Describe the images and keep codes of them.

        Images that cannot be read are left out, and a warning names them. A few hundred images are
        in memory at a time.

        Parameters
        ----------
        images : path, or sequence of paths or arrays
            A folder, all images below which are taken, or the images themselves.
        y : ignored
        model : ImageClassifier, optional
            A fitted classifier whose features are taken, as they are, instead of ``features``.
        callback : callable, optional
            Called with the name of a stage, how much of it is done, and how much there is.

        Returns
        -------
        self : ImageCollection
        """
        self._check_parameters()
        names, seed = feature_names(self.features, self.network), self._seed()
        data, folder = unlabeled_images(images)
        require_two(len(data.images), data.source, "image")
        cache = None if self.cache is None else Cache(self.cache)
        watch = Stopwatch(callback, self.verbose)
        images = data.images
        if model is not None:
            names, features = _features_of(model)
        else:
            names, features, images = learn_features(
                names, images, cache, watch,
                seed=seed, max_side=self.max_side, n_jobs=self.n_jobs,
            )  # fmt: skip
        seen, index = self._indexed(replace(data, images=images), features, cache, seed, watch)
        unreadable = [
            {"name": data.names[i], "reason": reason}
            for i, reason in sorted(seen.unreadable.items())
        ]
        warn_of_unreadable([f"{u['name']}: {u['reason']}" for u in unreadable], len(data.images))
        # kept together at the end: an interrupt before leaves the collection as it was
        good = sorted(seen.hashes)
        self.model_, self.features_, self.folder_, self.index_ = features, names, folder, index
        self.names_ = [data.names[i] for i in good]
        arrays = any(not isinstance(image, Path) for image in data.images)
        given = [data.images[i] for i in good]
        self.images_ = [str(i) if isinstance(i, Path) else i for i in given] if arrays else None
        self.hashes_ = [seen.hashes[i] for i in good]
        self.digests_ = [seen.digests[i] for i in good]
        self.unreadable_ = unreadable
        self.metadata_ = self._about(data.source, watch, features=names, unreadable=unreadable)
        return self

    def _indexed(
        self, data: ImageSet, model: ImageFeatures, cache: Cache | None, seed: int, watch: Stopwatch
    ) -> tuple[Described, RowIndex]:
        """Return what is known of all images but their rows, and their codes."""
        first = sampled(len(data.images))
        rest = np.setdiff1d(np.arange(len(data.images)), first)
        seen, resumed = Described.empty(), 0
        with watch.stage("describing images", len(data.images)) as tell:

            def describe(numbers: Array, done: int) -> Described:
                found = described(
                    model, [data.images[i] for i in numbers], cache, seed=seed,
                    n_jobs=self.n_jobs, callback=lambda n: tell(done + n),
                )  # fmt: skip
                for kind in ("hashes", "digests", "unreadable"):
                    known = {int(numbers[i]): text for i, text in getattr(found, kind).items()}
                    getattr(seen, kind).update(known)
                return found

            sample = describe(first, 0)
            _require_readable(data, seen)
            resumed += sample.n_resumed
            index = RowIndex(
                sample.rows, channels_of(model), KERNELS[self.kernel], self.n_components, seed,
                self.n_jobs,
            )  # fmt: skip
            parts = [(first[sample.origin], *index.embed(index.features(sample.rows)))]
            del sample
            for begin, end in parallel.ranges(len(rest), AT_ONCE):
                found = describe(rest[begin:end], len(first) + begin)
                resumed += found.n_resumed
                if len(found.rows):
                    numbers = rest[begin:end][found.origin]
                    parts.append((numbers, *index.embed(index.features(found.rows))))
        if resumed and watch.callback is not None:
            watch.callback("resumed", resumed, len(data.images))
        numbers, embedded, left = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.argsort(numbers)
        with watch.stage("making codes"):
            return seen, index.keep(embedded[order], left[order], seed, self.n_jobs)

    # use
    def duplicates(self) -> list[list[str]]:
        """Find images that are nearly the same, by their difference hashes, or the same.

        Returns
        -------
        groups : list of lists of str
            Names of images that belong together; the largest groups first.
        """
        check_is_fitted(self)
        groups = duplicate_groups(self.hashes_, self.digests_)
        return [[self.names_[i] for i in group] for group in groups]

    def montage(self, path: str | os.PathLike[str], *, callback: Callback | None = None) -> Any:
        """Write a page with all images, sorted so that neighbors are alike; it can be zoomed.

        Parameters
        ----------
        path : path
            The HTML file; it is written whole or not at all, and needs no other file.
        callback : callable, optional
            Called with the name of a stage, how much of it is done, and how much there is.

        Returns
        -------
        sorting : hilbin.dependence.GridSorting
            The cells of the images.
        """
        sorting = self.arrange(callback=callback)
        watch = Stopwatch(callback, self.verbose)
        with watch.stage("writing the montage", len(self.names_)) as tell:
            write_montage(
                self._picture, sorting.cells, path, shape=sorting.shape, names=self.names_,
                links=self._links(Path(path)), title=self._title, callback=tell,
            )  # fmt: skip
        return sorting

    @property
    def _title(self) -> str:
        return Path(self.folder_).name if self.folder_ else self._counted(len(self.names_))

    @property
    def _lead(self) -> str:
        return f"{self._counted(len(self.names_))} by {self.features_}"

    def path_of(self, number: int) -> Path | None:
        """Return the file of an image; None if it was given as an array.

        Parameters
        ----------
        number : int
            Its place in the collection.
        """
        return None if self.images_ is not None else Path(self.folder_, self.names_[number])

    def _source(self, number: int) -> Any:
        return self.path_of(number) if self.images_ is None else self.images_[number]

    def _picture(self, number: int) -> Array | None:
        """Return an image to be shown, or None if it is gone."""
        return shown_picture(self._source(number))

    def _links(self, page: Path) -> list[str] | None:
        """Return the addresses of the images from the folder of a page."""
        if self.images_ is not None:
            return None
        folder = os.path.abspath(page.parent)
        return [os.path.relpath(os.path.abspath(str(self.path_of(i))), folder)
                for i in range(len(self.names_))]  # fmt: skip

    def _card(self, found: Clustering, cluster: int) -> ClusterCard:
        """Return what the page shows of a cluster."""
        members = found.members[cluster]
        pictures = [(self.names_[i], self._picture(i)) for i in members[:PICTURES]]
        words = [
            (one.name, one.effect, self._patches(one.column, members[:PATCHES]))
            for one in found.differences[cluster]
        ]
        return ClusterCard(
            f"Cluster {cluster + 1}", len(members),
            [(name, picture) for name, picture in pictures if picture is not None], words,
        )  # fmt: skip

    def _patches(self, column: int, numbers: Sequence[int]) -> list[Array]:
        """Cut patches with a word from some images."""
        what = image_column(self.model_, column)
        found = []
        for i in numbers if what.words is not None else ():
            try:
                image = self.model_.read(self._source(i))
            except ImageError:
                continue
            place = best_place(what, image)
            if place is not None:
                found.append(cut_out(image, *place))
        return found

    def _differences(self, inside: Array) -> list[Difference]:
        """Return the visual words that some images have more of, one of each kind of features."""
        effects, columns = self._effects(inside), self.index_.input_columns
        words = whole_image_words(self.model_)
        if words.any():
            effects = np.where(words[columns], effects, 0)
        found: dict[str, Difference] = {}
        for j in np.argsort(-effects, kind="stable"):
            if effects[j] <= 0 or len(found) == WORDS_SHOWN:
                break
            group = next(n for n, b, e in channels_of(self.model_) if b <= columns[j] < e)
            if group not in found:
                name = str(image_column(self.model_, int(columns[j])))
                found[group] = Difference(name, int(columns[j]), float(effects[j]))
        return list(found.values())

    # of the base
    def _new_rows(self, X: Any) -> Array:
        rows, wrong = self.model_.transform_with_errors(listed_images(X))
        for error in wrong.values():
            raise error
        return np.asarray(rows)

    def _exact_distances(self, features: Array, numbers: Array, known: Array) -> Array:
        """Return the distances of images, which are described again; ``known`` if one is gone."""
        rows, gone = self.model_.transform_with_errors([self._source(int(i)) for i in numbers])
        apart = exact_among(self.index_, features, np.asarray(rows))
        places = list(gone)
        apart[places] = known[places]
        return apart

    def _counted(self, n: int) -> str:
        return counted(n, "image")

    def _seed(self) -> int:
        return checked_seed(self.random_state)

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the attributes of a loaded collection do not fit together."""
        if not hasattr(self, "index_"):
            return
        require(isinstance(self.model_, ImageFeatures), "model_ is not ImageFeatures")
        n = len(self.names_)
        for name in ("hashes_", "digests_"):
            require_texts(getattr(self, name, None), n, name)
        require(all(map(is_hash, self.hashes_)), "hashes_ are no difference hashes")
        given = self.images_
        require(
            given is None or (isinstance(given, list) and len(given) == n), "images_ do not fit"
        )
        require(isinstance(self.folder_, str), "folder_ is no text")
        width = self.index_.channel_map.n_features_in_
        require(self.model_._n_features_out == width, "model_ is not that of index_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.input_tags.string = True
        tags.no_validation = True
        return tags


def _features_of(model: Any) -> tuple[str, ImageFeatures]:
    """Return the features of a fitted classifier of images, and their names."""
    if not isinstance(model, ImageClassifier):
        raise ValueError(f"model must be an ImageClassifier, got {type(model).__name__}")
    check_is_fitted(model)
    return model.features_, model.model_["features"]


def _require_readable(data: ImageSet, seen: Described) -> None:
    """Raise unless two images of the sample can be read."""
    if len(seen.hashes) < 2:
        first = next((f"; {data.names[i]}: {r}" for i, r in seen.unreadable.items()), "")
        n = len(seen.hashes)
        raise ValueError(
            f"{data.source}: {counted(n, 'image')} can be read, and a collection needs two{first}"
        )
