"""Labeled images to rows, in chunks that a cache on the disk keeps.

A chunk is known by the fitted transformer and by the names, sizes and times of its files (or by the
pixels of images that are given as arrays), so that a run that was interrupted finds what the last
one has done, and nothing else. Rows do not depend on how the images are divided into chunks or
threads.
"""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hilbin import parallel, persist
from hilbin._arrays import Array
from hilbin.auto.channels import Channel
from hilbin.cache import ArrayCache, Arrays, digest, fingerprint, image_marks
from hilbin.images import (
    DESCRIPTORS,
    ImageError,
    ImageFeatures,
    labeled_images,
)
from hilbin.images._base import FeatureError
from hilbin.images.augment import distort
from hilbin.images.descriptors import ImageSample, NamedFeatures
from hilbin.images.kept import file_of
from hilbin.inspection import difference_hash

AUTO = "auto"
NETWORK = "onnx"
CHUNK = 64
LARGE_ENOUGH, LARGE = 64, 160  # pixels of the longer side
MANY = 1000  # images that suffice for twice as many words
VERSION = 3
NAMES = {f"{name}:{d.argument}" if d.argument else name: d for name, d in DESCRIPTORS.items()}


@dataclass(frozen=True)
class ImageSet:
    """Images, with labels or without.

    Parameters
    ----------
    images : list of Path or uint8 array
        The images.
    names : list of str
        Their names: paths below the folder, as a list of images has them, or ``image 1``.
    labels : list, optional
        Their labels.
    source : str
        Where they come from.
    """

    images: list[Any]
    names: list[str]
    labels: list[Any] | None
    source: str


def open_images(images: Any, labels: Any = None) -> ImageSet:
    """Return the images of a folder, of a CSV file or of a sequence.

    Parameters
    ----------
    images : path, or sequence of paths or arrays
        A folder with a folder of images for every class; a CSV file with the columns ``path`` and
        ``label``; or, with ``labels`` or for images without, the images themselves.
    labels : sequence, optional
        Labels of a sequence of images.

    Examples
    --------
    >>> from hilbin.auto.image_data import open_images
    >>> open_images(["cats/1.jpg", "dogs/2.jpg"], ["cat", "dog"]).names
    ['cats/1.jpg', 'dogs/2.jpg']
    """
    if isinstance(images, str | os.PathLike):
        if labels is not None:
            raise ValueError(
                f"{images}: a folder or a CSV file has its own labels; labels are for a list of "
                "images"
            )
        path = Path(images)
        paths, found = labeled_images(path)
        root = path if path.is_dir() else path.parent
        return ImageSet(list(paths), [_name(p, root) for p in paths], list(found), str(images))
    given = [Path(i) if isinstance(i, str | os.PathLike) else np.asarray(i) for i in images]
    names = [str(i) if isinstance(i, Path) else f"image {n}" for n, i in enumerate(given, 1)]
    if labels is not None and len(labels) != len(given):
        raise ValueError(f"there are {len(given)} images but {len(labels)} labels")
    listed = None if labels is None else np.asarray(labels).tolist()
    return ImageSet(given, names, listed, f"{len(given)} images")


def _name(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


# names of features
def check_features(features: str) -> None:
    """Raise ``ValueError`` for names that are not known, and for files that do not exist.

    Parameters
    ----------
    features : str
        Names of ``hilbin.images.DESCRIPTORS`` joined by ``+``; ``"auto"`` may be one of them.

    Examples
    --------
    >>> from hilbin.auto.image_data import check_features
    >>> check_features("sift+color")
    """
    names = features.split("+")
    for name in names:
        kind, colon, argument = name.partition(":")
        known = DESCRIPTORS.get(kind)
        if name != AUTO and (known is None or bool(colon) != bool(known.argument)):
            listed = ", ".join((*NAMES, AUTO))
            raise ValueError(f"features: {name!r} is not known; known are {listed}")
        if known is not None and colon and not Path(known.file(argument)).is_file():
            raise ValueError(f"features: there is no file {known.file(argument)!r}")
    if len(set(names)) < len(names):
        raise ValueError(f"features: {features!r} names the same features twice")


def resolve(features: str, sample: ImageSample) -> str:
    """Replace ``auto`` by the names of what suits the images.

    A network alone is joined by them too.
    """
    names: list[str] = []
    given = features.split("+")
    if all(name.startswith(f"{NETWORK}:") for name in given):
        given = [*given, AUTO]
    for name in given:
        suited = [n for n, d in DESCRIPTORS.items() if _suits(d, sample)]
        names += suited if name == AUTO else [name]
    return "+".join(dict.fromkeys(names))


def _suits(entry: NamedFeatures, sample: ImageSample) -> bool:
    """Tell whether features are a channel of such images; weights tell what each is worth."""
    return entry.argument is None and (entry.suits is None or entry.suits(sample))


def _finer(made: Any, sample: ImageSample) -> Any:
    """Return SIFT at three scales, and twice as many words if there are many images."""
    known = made.get_params()
    for name in ("descriptor__bin_sizes", "words__descriptor__bin_sizes"):
        if name in known and sample.side >= LARGE_ENOUGH:
            made.set_params(**{name: (4, 6, 8) if sample.side >= LARGE else (3, 4, 6)})
    if "words__n_words" in known and sample.n_images >= MANY:
        made.set_params(words__n_words=2 * known["words__n_words"])
    return made


def transformer(features: str, sample: ImageSample, *, seed: int, max_side: int | None) -> Any:
    """Return the unfitted transformer of names joined by ``+``, a part for every name."""
    parts, counts = [], dict[str, int]()
    for name in features.split("+"):
        kind, colon, argument = name.partition(":")
        counts[kind] = counts.get(kind, 0) + 1
        label = kind if counts[kind] == 1 else f"{kind}{counts[kind]}"
        try:
            made = DESCRIPTORS[kind].make(sample, seed, *([argument] if colon else []))
        except ValueError as error:
            raise ValueError(f"features: {error}") from None
        parts.append((label, _finer(made, sample) if kind in ("sift", "fisher") else made))
    return ImageFeatures(parts, max_side=max_side)


def files(features: str) -> list[Path]:
    """Return the files that features are read from, such as networks."""
    parts = [name.partition(":") for name in features.split("+")]
    return [Path(DESCRIPTORS[kind].file(text)) for kind, colon, text in parts if colon]


def channels_of(features: ImageFeatures) -> list[Channel]:
    """Return the channels of fitted features: name, first column, one past the last."""
    return [(name, part.start, part.stop) for name, part in features.column_groups_.items()]


# the cache
class Cache(ArrayCache):
    """A folder of arrays and models.

    Parameters
    ----------
    folder : path
        Made when it is needed.
    """

    def load_model(self, name: str) -> Any:
        """Return a model, or None if there is none that is whole."""
        try:
            return persist.load(self.folder / f"hilbin-{name}.model")
        except (OSError, persist.ModelFileError):
            return None

    def store_model(self, name: str, model: Any) -> None:
        """Keep a model under a name."""
        persist.save(model, self._made() / f"hilbin-{name}.model")

    def fingerprint_of(self, model: Any) -> str:
        """Return the name of what depends on this model, its parameters and what it has learned."""
        scratch = self._made() / f"hilbin-{os.getpid()}.model"
        persist.save(model, scratch)
        found = hashlib.sha256(scratch.read_bytes()).hexdigest()
        scratch.unlink()
        return found


def fitted(
    transformer: Any,
    images: Sequence[Any],
    cache: Cache | None = None,
    *,
    files: Sequence[Path] = (),
    callback: Callable[[int], None] | None = None,
) -> Any:
    """Return the transformer fitted to the images, from the cache if it is there.

    Parameters
    ----------
    transformer : ImageFeatures
        Not fitted.
    images : sequence of Path or array
        The images.
    cache : Cache, optional
        Where to look for it, and to keep it.
    files : sequence of Path
        Other files that the transformer reads.
    callback : callable, optional
        Called with the number of parts that are fitted, after each.
    """
    if cache is None:
        return transformer.fit(images, callback=callback)
    name = fingerprint(VERSION, cache.fingerprint_of(transformer), image_marks([*images, *files]))
    known = cache.load_model(name)
    if known is None:
        known = transformer.fit(images, callback=callback)
        cache.store_model(name, known)
    return known


@dataclass
class Described:
    """Rows of images and of distorted copies of them.

    Parameters
    ----------
    rows : float32 array of shape (n_rows, n_features)
        The rows; copies of an image follow it.
    origin : int array of shape (n_rows,)
        Number of the image that each row describes.
    is_copy : bool array of shape (n_rows,)
        Whether the row is that of a distorted copy.
    hashes, digests : dict from number to str
        Difference hash, and SHA-256 of the file.
    unreadable : dict from number to str
        Reasons.
    n_resumed : int
        Number of images whose rows were in the cache.
    """

    rows: Array
    origin: Array
    is_copy: Array
    hashes: dict[int, str]
    digests: dict[int, str]
    unreadable: dict[int, str]
    n_resumed: int = 0

    @classmethod
    def empty(cls) -> "Described":
        """Return what is known of no image."""
        nothing = np.empty(0, np.int64)
        return cls(np.empty((0, 0), np.float32), nothing, nothing.astype(bool), {}, {}, {})

    def note(self, other: "Described", begin: int) -> None:
        """Add what is known of further images, from number ``begin`` on, but not their rows."""
        for kind in ("hashes", "digests", "unreadable"):
            found = {begin + i: text for i, text in getattr(other, kind).items()}
            getattr(self, kind).update(found)


@dataclass
class _Chunk:
    rows: list[list[Any]]
    hashes: dict[int, str] = field(default_factory=dict)
    digests: dict[int, str] = field(default_factory=dict)
    unreadable: dict[int, str] = field(default_factory=dict)


def described(
    transformer: Any,
    images: Sequence[Any],
    cache: Cache | None = None,
    *,
    virtual: dict[str, Any] | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    callback: Callable[[int], object] | None = None,
) -> Described:
    """Return the rows of all images that can be read, those in the cache from there.

    Parameters
    ----------
    transformer : ImageTransformer
        Fitted.
    images : sequence of Path or array
        The images.
    cache : Cache, optional
        Where rows are kept.
    virtual : dict, optional
        Distortions, as :func:`hilbin.images.parse_transforms` gives them.
    seed : int, default=0
        Random seed of the distortions.
    n_jobs : int, optional
        Threads, as in joblib.
    callback : callable, optional
        Called with the number of images that are done.
    """
    made_by = "" if cache is None else cache.fingerprint_of(transformer)
    marks = [] if cache is None else image_marks(images)
    found = _Collected(len(images) * (1 + copies_of(virtual)), transformer._n_features_out)
    for begin, end in parallel.ranges(len(images), CHUNK):
        if callback is not None:
            callback(begin)
        name = fingerprint(VERSION, made_by, virtual, seed, begin, marks[begin:end])
        chunk = None if cache is None else cache.load(name)
        if chunk is not None:
            found.n_resumed += end - begin
        else:
            chunk = _chunk(transformer, images[begin:end], virtual, (seed, begin), n_jobs)
            if cache is not None:
                cache.store(name, chunk)
        found.add(chunk, begin)
    return found.described()


def copies_of(virtual: dict[str, Any] | None) -> int:
    """Return how many distorted copies there are of every image."""
    return int(virtual.get("copies", 1)) if virtual else 0


def _chunk(
    transformer: Any,
    images: Sequence[Any],
    virtual: dict[str, Any] | None,
    seeds: tuple[int, int],
    n_jobs: int | None,
) -> Arrays:
    how = {name: amount for name, amount in (virtual or {}).items() if name != "copies"}
    copies = copies_of(virtual)
    chunk = _Chunk([[] for _ in images])

    def task(begin: int, end: int) -> None:
        for i in range(begin, end):
            try:
                image = transformer.read(images[i])
                chunk.digests[i] = digest(images[i])
            except ImageError as error:
                chunk.unreadable[i] = error.reason
                continue
            chunk.hashes[i] = difference_hash(image)
            chunk.rows[i].append(_row(transformer, image, images[i]))
            for copy in range(copies):
                rng = np.random.RandomState([seeds[0], seeds[1] + i, copy])
                distorted = distort(image, **how, random_state=rng)
                chunk.rows[i].append(_row(transformer, distorted, images[i]))

    with parallel.blas_threads(1):  # rows depend on no number of threads
        parallel.run(task, parallel.ranges(len(images), 4), n_jobs)
    counts = [len(rows) for rows in chunk.rows]
    all_rows = [row for rows in chunk.rows for row in rows]
    notes = {k: dict(sorted(vars(chunk)[k].items())) for k in ("hashes", "digests", "unreadable")}
    return {
        "rows": np.array(all_rows, np.float32).reshape(len(all_rows), transformer._n_features_out),
        "counts": np.array(counts, np.int64),
        "notes": np.frombuffer(json.dumps(notes).encode(), np.uint8),
    }


def _row(transformer: Any, image: Any, source: Any) -> Any:
    """Return the row of an image; an error names it."""
    try:
        return transformer.transform_image(image)
    except FeatureError as error:
        raise error.named(str(file_of(source) or "an image")) from None


class _Collected:
    """Chunks, joined as they come."""

    def __init__(self, most_rows: int, n_features: int):
        self.rows = np.empty((most_rows, n_features), np.float32)
        self.origin: list[int] = []
        self.is_copy: list[bool] = []
        self.notes: dict[str, dict[int, str]] = {"hashes": {}, "digests": {}, "unreadable": {}}
        self.n_resumed = 0

    def add(self, chunk: Arrays, begin: int) -> None:
        at = len(self.origin)
        self.rows[at : at + len(chunk["rows"])] = chunk["rows"]
        for i, count in enumerate(chunk["counts"].tolist(), begin):
            self.origin += [i] * count
            self.is_copy += [copy > 0 for copy in range(count)]
        for kind, found in json.loads(chunk["notes"].tobytes()).items():
            self.notes[kind] |= {begin + int(i): text for i, text in found.items()}

    def described(self) -> Described:
        origin, is_copy = np.array(self.origin, np.int64), np.array(self.is_copy, bool)
        return Described(
            self.rows[: origin.size], origin, is_copy, **self.notes, n_resumed=self.n_resumed
        )
