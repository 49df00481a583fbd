"""What a model says about labeled images or rows that are held out.

The names of the classes live in the model. A class of the model may be missing from the data; what
is of a class that the model does not know cannot come out right, says nothing about the rest, and
is left out: it is counted and named, neither right nor wrong.
"""

import hashlib
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilbin import parallel
from hilbin.cli._console import Console
from hilbin.cli._models import Model
from hilbin.cli._outcome import InputError
from hilbin.cli._sources import Images
from hilbin.images import ImageError, labeled_images
from hilbin.inspection import AdditiveModel, class_scores, difference_hash

BLOCK = 64
Array = NDArray[Any]


@dataclass(frozen=True)
class Answers:
    """Scores of examples with labels that the model knows.

    Parameters
    ----------
    names : list of str
        What to call the examples.
    paths : list of Path
        The images, or the table of each row.
    truth : int array of shape (n,)
        Indices of the classes of the model.
    scores : array of shape (n, n_classes)
    sha256 : str
        Of the data.
    hashes : list of str
        Difference hashes of the images.
    rows : array or CSR of shape (n, d), or None
        Of a table; images are described anew when their row is asked for.
    unreadable : list of dict
        ``path`` and ``reason``.
    unknown : dict from str to int
        Classes that the model does not know, and how many examples of them were left out.
    """

    names: list[str]
    paths: list[Path]
    truth: Array
    scores: Array
    sha256: str
    hashes: list[str] = field(default_factory=list)
    rows: Any = None
    unreadable: list[dict[str, str]] = field(default_factory=list)
    unknown: dict[str, int] = field(default_factory=dict)


def answers(
    model: Model, parts: AdditiveModel | None, source: str | os.PathLike[str], console: Console
) -> Answers:
    """Scores of all examples of a source.

    Parameters
    ----------
    model : Model
    parts : AdditiveModel or None
        Its classifier, if that is additive: scores in double precision, for sums that are checked.
    source : path
        As in training.
    console : Console
    """
    path = Path(source)
    if not path.exists():
        raise InputError(f"{path}: there is no such file or folder")
    if model.of_images:
        return _of_images(model, parts, path, console)
    return _of_table(model, parts, path)


def _of_images(model: Model, parts: AdditiveModel | None, path: Path, console: Console) -> Answers:
    images, unknown = _known(model, path)
    numbers = {label: k for k, label in enumerate(model.classes)}
    blocks: list[Array] = []
    kept: list[int] = []
    hashes: list[str] = []
    unreadable = []
    listing = hashlib.sha256()
    with console.stage("describing images", len(images.paths)) as advance:
        for begin, end in parallel.ranges(len(images.paths), BLOCK):
            read = _described(model.features, images.paths[begin:end])
            for i, one in enumerate(read, begin):
                if isinstance(one, ImageError):
                    unreadable.append({"path": str(images.paths[i]), "reason": one.reason})
                    digest = "unreadable"
                else:
                    kept.append(i)
                    hashes.append(one[1])
                    digest = one[2]
                line = "\0".join([images.names[i], images.labels[i], digest])
                listing.update(line.encode(errors="surrogateescape") + b"\n")
            rows = [one[0] for one in read if not isinstance(one, ImageError)]
            if rows:
                blocks.append(_scores(model, parts, np.array(rows)))
            advance(end - begin)
    _require_readable(kept, unreadable)
    return Answers(
        [images.names[i] for i in kept],
        [images.paths[i] for i in kept],
        np.array([numbers[images.labels[i]] for i in kept]),
        np.concatenate(blocks),
        listing.hexdigest(),
        hashes,
        unreadable=unreadable,
        unknown=unknown,
    )


def _known(model: Model, path: Path) -> tuple[Images, dict[str, int]]:
    """The images of classes that the model knows, and how many there are of others."""
    try:
        paths, labels = labeled_images(path)
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a CSV file in UTF-8; this model is of images") from None
    except ValueError as error:
        raise InputError(f"{error}; this model is of images") from None
    root = path if path.is_dir() else path.parent
    known = [i for i, label in enumerate(labels) if label in model.classes]
    unknown = Counter(label for label in labels if label not in model.classes)
    _require_some(model, known, unknown)
    names = [
        paths[i].relative_to(root).as_posix() if paths[i].is_relative_to(root) else str(paths[i])
        for i in known
    ]
    images = Images([paths[i] for i in known], names, [labels[i] for i in known])
    return images, dict(sorted(unknown.items()))


def _require_some(model: Model, known: Any, unknown: dict[str, int]) -> None:
    if len(known) == 0:
        raise InputError(
            f"no example of a class that the model knows; it knows {', '.join(model.classes)}, "
            f"found were {', '.join(sorted(unknown))}"
        )


def _require_readable(kept: list[int], unreadable: list[dict[str, str]]) -> None:
    if not kept:
        first = unreadable[0]
        raise InputError(
            f"none of the {len(unreadable)} images can be read, for example {first['path']}: "
            f"{first['reason']}"
        )


Described = tuple[Array, str, str] | ImageError


def _described(features: Any, paths: list[Path]) -> list[Described]:
    """Row, difference hash and digest of every image, or why there are none."""
    found: list[Any] = [None] * len(paths)

    def task(begin: int, end: int) -> None:
        for i in range(begin, end):
            try:
                image = features.read(paths[i])
            except ImageError as error:
                found[i] = error
                continue
            digest = hashlib.sha256(paths[i].read_bytes()).hexdigest()
            found[i] = features.transform_image(image), difference_hash(image), digest

    parallel.run(task, parallel.ranges(len(paths), 4), None)
    return found


def _of_table(model: Model, parts: AdditiveModel | None, path: Path) -> Answers:
    target = model.metadata["table"]["target"]
    table = model.table(path)
    if table.labels is None:
        raise InputError(f"{path}: no column {target!r} with the labels to compare with")
    numbers = {label: k for k, label in enumerate(model.classes)}
    known = np.array([i for i, label in enumerate(table.labels) if label in numbers], int)
    unknown = dict(sorted(Counter(label for label in table.labels if label not in numbers).items()))
    _require_some(model, known, unknown)
    rows = table.rows[known]
    return Answers(
        [f"{path.name}:{i + 1}" for i in known],
        [path] * known.size,
        np.array([numbers[table.labels[i]] for i in known]),
        _scores(model, parts, rows),
        hashlib.sha256(path.read_bytes()).hexdigest(),
        rows=rows,
        unknown=unknown,
    )


def _scores(model: Model, parts: AdditiveModel | None, rows: Any) -> Array:
    return class_scores(model.classifier, rows) if parts is None else parts.scores(rows)
