"""The training examples in the form that the chosen features give them."""

import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from hilbin.auto.image_data import Cache, Described
from hilbin.cli import _features
from hilbin.cli._console import Console
from hilbin.cli._cross import Examples
from hilbin.cli._options import TrainOptions
from hilbin.cli._rows import described, fitted
from hilbin.cli._sources import Images, require_two_classes
from hilbin.cli._tables import Table
from hilbin.images.augment import parse_transforms


class TableMaterial:
    """Rows of a table, which need no features.

    Parameters
    ----------
    options : TrainOptions
    table : Table
        With labels.
    """

    kind = "table"
    features = ""
    of_images = False

    def __init__(self, options: TrainOptions, table: Table):
        self._options = options
        self._table = table
        self._labels = table.labels or []
        self.unreadable: list[dict[str, str]] = []

    def examples(self, features: str) -> Examples:
        """The rows and their labels."""
        return Examples.plain(self._table.rows, self._labels)

    def steps(self, features: str) -> list[tuple[str, Any]]:
        """What comes before the classifier: nothing."""
        return []

    def name(self, origin: int) -> str:
        """What to call an example."""
        return f"row {origin + 1}"

    def about(self) -> dict[str, Any]:
        """What a model file says about the data."""
        content = Path(self._options.source).read_bytes()
        return {
            "data": _about_data(self._options, self._labels, hashlib.sha256(content).hexdigest()),
            "table": {
                "columns": self._table.columns,
                "target": self._options.target,
                "id": self._options.id,
                "n_features": int(self._table.rows.shape[1]),
            },
        }


class ImageMaterial:
    """Images, described by one set of features at a time.

    Parameters
    ----------
    options : TrainOptions
    images : Images
    cache : Cache
    console : Console
    """

    kind = "images"
    of_images = True

    def __init__(self, options: TrainOptions, images: Images, cache: Cache, console: Console):
        self._options = options
        self._images = images
        self._cache = cache
        self._console = console
        self._virtual = parse_transforms(options.virtual) if options.virtual else None
        self._sample = _features.look(images.paths, options.max_side)
        self.features = _features.resolve(options.features, self._sample)
        self._now: tuple[str, Any, Described] | None = None

    def examples(self, features: str) -> Examples:
        """Rows of all images that can be read, and of distorted copies of them."""
        rows = self._described(features)[1]
        labels = np.array(self._images.labels)[rows.origin]
        require_two_classes(f"{self._options.source}, readable images", labels.tolist())
        return Examples(rows.rows, labels, rows.origin, rows.is_copy)

    def steps(self, features: str) -> list[tuple[str, Any]]:
        """What comes before the classifier: the fitted features."""
        return [("features", self._described(features)[0])]

    def name(self, origin: int) -> str:
        """What to call an example."""
        return self._images.names[origin]

    @property
    def unreadable(self) -> list[dict[str, str]]:
        """Images that cannot be read, with reasons."""
        found = self._now[2].unreadable if self._now else {}
        return [{"name": self.name(i), "reason": reason} for i, reason in found.items()]

    def about(self) -> dict[str, Any]:
        """What a model file says about the data."""
        assert self._now is not None
        rows = self._now[2]
        names, labels = self._images.names, self._images.labels
        listing = hashlib.sha256()
        for i, (name, label) in enumerate(zip(names, labels, strict=True)):
            line = [name, label, rows.digests.get(i, "unreadable")]
            listing.update("\0".join(line).encode(errors="surrogateescape") + b"\n")
        read = sorted(rows.hashes)
        return {
            "data": _about_data(self._options, [labels[i] for i in read], listing.hexdigest()),
            "train": {
                "names": [names[i] for i in read],
                "labels": [labels[i] for i in read],
                "hashes": [rows.hashes[i] for i in read],
            },
        }

    def _described(self, features: str) -> tuple[Any, Described]:
        if self._now is None or self._now[0] != features:
            self._now = None  # the rows of one set of features at a time
            options, paths = self._options, self._images.paths
            transformer = _features.transformer(
                features, self._sample, seed=options.seed, max_side=options.max_side
            )
            files = [Path(name) for name in _features.files(features)]
            transformer = fitted(transformer, paths, self._cache, self._console, files=files)
            rows = described(
                transformer,
                paths,
                self._cache,
                self._console,
                virtual=self._virtual,
                seed=options.seed,
            )
            self._now = features, transformer, rows
        return self._now[1], self._now[2]


def _about_data(options: TrainOptions, labels: list[str], digest: str) -> dict[str, Any]:
    return {
        "source": str(options.source),
        "n": len(labels),
        "per_class": dict(sorted(Counter(labels).items())),
        "sha256": digest,
    }
