"""Images as chunks of rows; a transformer makes the rows when they are wanted."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from hilbin._arrays import Array
from hilbin.stream.sources import Joined, Rows, Source, SourceChunks, file_mark, mark_of

IMAGES_PER_CHUNK = 1024


class _ImageSource(Source):
    """Rows that a transformer makes of images; those that cannot be read are left out."""

    def __init__(
        self, images: Sequence[Any], labels: Array | None, weight: Array | None, transformer: Any
    ):
        self.images, self.labels, self.weight = images, labels, weight
        self.transformer = transformer
        self.name = f"images ({type(transformer).__name__})"
        self.n_rows, self.width = len(images), int(transformer._n_features_out)
        self.dtype = np.dtype(np.float32)
        self.sparse = bool(transformer.sparse_output)
        self.row_bytes = 4 * self.width

    def read(self, begin: int, end: int) -> Rows:
        X, unreadable = self.transformer.transform_with_errors(self.images[begin:end])
        kept = np.setdiff1d(np.arange(end - begin), [*unreadable])
        y, weight = (
            None if values is None else values[begin:end][kept]
            for values in (self.labels, self.weight)
        )
        notes = tuple(str(error) for error in unreadable.values())
        return Rows(X[kept] if notes else X, y, weight, notes)

    def cut(self, begin: int, end: int) -> tuple[Source, int, int]:
        y, weight = (None if v is None else v[begin:end] for v in (self.labels, self.weight))
        return _ImageSource(self.images[begin:end], y, weight, self.transformer), 0, end - begin

    def mark(self) -> dict[str, Any]:
        marks = [
            mark_of(image) if isinstance(image, np.ndarray) else _file_or_none(Path(image))
            for image in self.images
        ]
        labels = [None if v is None else mark_of(v) for v in (self.labels, self.weight)]
        return {
            "images": len(marks),
            "files": joblib.hash(marks),
            "labels": labels,
            "transformer": joblib.hash(self.transformer),
        }


def _file_or_none(path: Path) -> dict[str, Any] | None:
    return file_mark(path) if path.is_file() else None


class ImageChunks(SourceChunks):
    """Images as chunks of rows, through a fitted transformer of :mod:`hilbin.images`.

    Images that cannot be read are left out; :func:`fold` names them in a warning. The number of
    rows is therefore not known beforehand, and ``begin`` of a chunk counts images.

    Parameters
    ----------
    images : sequence of paths or arrays
    labels : array-like of shape (n_images,), optional
    transformer : ImageTransformer
        A fitted one. Its ``n_jobs`` says how many images are transformed at a time.
    sample_weight : array-like of shape (n_images,), optional
    rows : int, default=1024
        Number of images of a chunk.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images import HOG
    >>> from hilbin.stream import ImageChunks, fold
    >>> images = [np.full((32, 32), gray, np.uint8) for gray in range(5)]
    >>> chunks = ImageChunks(images, transformer=HOG().fit(images), rows=2)
    >>> fold(chunks, lambda chunk: len(chunk.X))
    5
    """

    def __init__(
        self,
        images: Sequence[Any],
        labels: Any = None,
        transformer: Any = None,
        *,
        sample_weight: Any = None,
        rows: int = IMAGES_PER_CHUNK,
    ):
        if transformer is None:
            raise ValueError("transformer is needed: it makes rows of images")
        y, weight = (None if v is None else np.asarray(v) for v in (labels, sample_weight))
        for values, what in ((y, "labels"), (weight, "sample_weight")):
            if values is not None and len(values) != len(images):
                raise ValueError(f"{what}: {len(values)} for {len(images)} images")
        table = Joined([_ImageSource(images, y, weight, transformer)])
        super().__init__(table, None, None, rows)
        self.n_rows = None
