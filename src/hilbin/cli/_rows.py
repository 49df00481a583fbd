"""Images to rows, in blocks that are kept on the disk until the model is there.

A block is known by the fitted transformer and by the names, sizes and times of its files, so that
a run that was interrupted finds what the last one has done, and nothing else. Rows do not depend
on how the images are divided into blocks or threads.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilbin import parallel
from hilbin.cli._cache import Arrays, Cache, fingerprint
from hilbin.cli._console import Console
from hilbin.images import ImageError
from hilbin.images._base import FeatureError
from hilbin.images.augment import distort
from hilbin.inspection import difference_hash

BLOCK = 64
VERSION = 1


@dataclass
class Described:
    """Rows of images and of distorted copies of them.

    Parameters
    ----------
    rows : float32 array of shape (n_rows, n_features)
    origin : int array of shape (n_rows,)
        Which image each row is of.
    is_copy : bool array of shape (n_rows,)
        Whether the row is of a distorted copy.
    hashes, digests : dict from image to str
        Difference hash, and SHA-256 of the file.
    unreadable : dict from image to str
        Reasons.
    """

    rows: NDArray[np.float32]
    origin: NDArray[np.int64]
    is_copy: NDArray[np.bool_]
    hashes: dict[int, str]
    digests: dict[int, str]
    unreadable: dict[int, str]


@dataclass
class _Block:
    rows: list[list[Any]]
    hashes: dict[int, str] = field(default_factory=dict)
    digests: dict[int, str] = field(default_factory=dict)
    unreadable: dict[int, str] = field(default_factory=dict)


def file_marks(paths: Sequence[Path]) -> list[tuple[str, int, int]]:
    """Name, size and time of every file; what tells that it is still the same."""
    marks = []
    for path in paths:
        try:
            status = path.stat()
            marks.append((str(path.absolute()), status.st_size, status.st_mtime_ns))
        except OSError:
            marks.append((str(path.absolute()), -1, -1))
    return marks


def fitted(
    transformer: Any,
    paths: Sequence[Path],
    cache: Cache,
    console: Console,
    *,
    files: Sequence[Path] = (),
) -> Any:
    """The transformer fitted to the images, from the cache if it is there.

    Parameters
    ----------
    transformer : ImageTransformer
    paths : sequence of Path
        The images.
    cache : Cache
    console : Console
    files : sequence of Path
        Other files that the transformer reads.
    """
    name = fingerprint(VERSION, cache.fingerprint_of(transformer), file_marks([*paths, *files]))
    with console.stage("learning features"):
        known = cache.load_model(name)
        if known is None:
            known = transformer.fit(paths)
            cache.store_model(name, known)
    return known


def described(
    transformer: Any,
    paths: Sequence[Path],
    cache: Cache,
    console: Console,
    *,
    virtual: dict[str, Any] | None = None,
    seed: int = 0,
) -> Described:
    """Rows of all images that can be read, block by block, those in the cache from there.

    Parameters
    ----------
    transformer : ImageTransformer
        Fitted.
    paths : sequence of Path
    cache : Cache
    console : Console
    virtual : dict, optional
        Distortions, as :func:`hilbin.images.parse_transforms` gives them.
    seed : int, default=0
        Of the distortions.
    """
    made_by = cache.fingerprint_of(transformer)
    marks = file_marks(paths)
    parts = parallel.ranges(len(paths), BLOCK)
    found = _Collected(len(paths) * (1 + copies_of(virtual)), transformer._n_features_out)
    resumed = 0
    with console.stage("describing images", len(paths)) as advance:
        for begin, end in parts:
            name = fingerprint(VERSION, made_by, virtual, seed, begin, marks[begin:end])
            block = cache.load(name)
            resumed += block is not None
            if block is None:
                block = _block(transformer, paths[begin:end], virtual, (seed, begin))
                cache.store(name, block)
            found.add(block, begin)
            advance(end - begin)
    if resumed:
        console.say(f"continued: {resumed} of {len(parts)} blocks of images were done before")
    return found.described()


def copies_of(virtual: dict[str, Any] | None) -> int:
    """How many distorted copies there are of every image."""
    return int(virtual.get("copies", 1)) if virtual else 0


def _block(
    transformer: Any, paths: Sequence[Path], virtual: dict[str, Any] | None, seeds: tuple[int, int]
) -> Arrays:
    how = {name: amount for name, amount in (virtual or {}).items() if name != "copies"}
    copies = copies_of(virtual)
    block = _Block([[] for _ in paths])

    def task(begin: int, end: int) -> None:
        for i in range(begin, end):
            try:
                image = transformer.read(paths[i])
                block.digests[i] = hashlib.sha256(paths[i].read_bytes()).hexdigest()
            except ImageError as error:
                block.unreadable[i] = error.reason
                continue
            block.hashes[i] = difference_hash(image)
            block.rows[i].append(_row(transformer, image, paths[i]))
            for copy in range(copies):
                rng = np.random.RandomState([seeds[0], seeds[1] + i, copy])
                distorted = distort(image, **how, random_state=rng)
                block.rows[i].append(_row(transformer, distorted, paths[i]))

    parallel.run(task, parallel.ranges(len(paths), 4), None)
    counts = [len(rows) for rows in block.rows]
    all_rows = [row for rows in block.rows for row in rows]
    notes = {k: dict(sorted(vars(block)[k].items())) for k in ("hashes", "digests", "unreadable")}
    return {
        "rows": np.array(all_rows, np.float32).reshape(len(all_rows), transformer._n_features_out),
        "counts": np.array(counts, np.int64),
        "notes": np.frombuffer(json.dumps(notes).encode(), np.uint8),
    }


def _row(transformer: Any, image: Any, path: Path) -> Any:
    """Return the row of an image; an error names the file."""
    try:
        return transformer.transform_image(image)
    except FeatureError as error:
        raise error.named(str(path)) from None


class _Collected:
    """Blocks, joined as they come."""

    def __init__(self, most_rows: int, n_features: int):
        self.rows = np.empty((most_rows, n_features), np.float32)
        self.origin: list[int] = []
        self.is_copy: list[bool] = []
        self.notes: dict[str, dict[int, str]] = {"hashes": {}, "digests": {}, "unreadable": {}}

    def add(self, block: Arrays, begin: int) -> None:
        at = len(self.origin)
        self.rows[at : at + len(block["rows"])] = block["rows"]
        for i, count in enumerate(block["counts"].tolist(), begin):
            self.origin += [i] * count
            self.is_copy += [copy > 0 for copy in range(count)]
        for kind, found in json.loads(block["notes"].tobytes()).items():
            self.notes[kind] |= {begin + int(i): text for i, text in found.items()}

    def described(self) -> Described:
        origin, is_copy = np.array(self.origin, np.int64), np.array(self.is_copy, bool)
        return Described(self.rows[: origin.size], origin, is_copy, **self.notes)
