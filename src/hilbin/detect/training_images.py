"""Images to learn from, their boxes, and their pyramids.

Boxes that cannot be used are left out with a warning, and images that cannot be read are collected
and named in one. Words of cells are found by k-means on cells of some of the images; one word is
kept for cells outside an image, or borders would blur.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hilbin import parallel
from hilbin._arrays import Array
from hilbin.detect.boxes import as_raw_coordinates, sound_boxes
from hilbin.detect.pyramid import CHANNELS, CellPyramid, CodedPyramid, Shape
from hilbin.images import Codebook, ImageError, UnreadableImageWarning, read_image
from hilbin.images.read import as_sources, source_name

CELLS_FOR_WORDS, IMAGES_FOR_WORDS = 20_000, 100
NAMES_SHOWN = 5
OUTSIDE = np.eye(CHANNELS, dtype=np.float32)[-1:]  # the word of a cell outside the image

Pyramid = CellPyramid | CodedPyramid


class TrainingImages:
    """Images with boxes.

    Parameters
    ----------
    images : sequence of paths or arrays
    boxes : sequence of Boxes or array-likes of shape (n_i, 4)
        Boxes of every image.
    ignore : sequence of array-likes of shape (n_i,), optional
        Which boxes do not count.

    Attributes
    ----------
    names : list of str
        Names of the images for messages.
    boxes, ignored, numbers, component : lists of arrays
        For every image the boxes that can be used, whether each is ignored, its place among all
        boxes of the image, and the template that is to find it; -1 for ignored boxes.
    """

    def __init__(self, images: Any, boxes: Any, ignore: Any = None) -> None:
        self.sources = as_sources(images)
        self.names = [source_name(source, i) for i, source in enumerate(self.sources)]
        given = [as_raw_coordinates(b, f"boxes[{i}]") for i, b in enumerate(boxes)]
        if len(given) != len(self.sources):
            raise ValueError(f"boxes has {len(given)} entries for {len(self.sources)} images")
        flags = _flags(given, ignore)
        sound = [
            sound_boxes(b, None, name) if len(b) else np.empty(0, bool)
            for b, name in zip(given, self.names, strict=True)
        ]
        self.numbers = [np.flatnonzero(s) for s in sound]
        self.boxes = [b[s] for b, s in zip(given, sound, strict=True)]
        self.ignored = [f[s] for f, s in zip(flags, sound, strict=True)]
        self.component = [np.where(f, -1, 0) for f in self.ignored]

    def truths(self) -> list[Array]:
        """Return the boxes of every image that count."""
        return [b[~skip] for b, skip in zip(self.boxes, self.ignored, strict=True)]

    def others(self) -> list[Array]:
        """Return the boxes of every image that are ignored."""
        return [b[skip] for b, skip in zip(self.boxes, self.ignored, strict=True)]

    def assign(self, component: Array) -> None:
        """Enter the template of every box that counts."""
        counts = np.cumsum([(~skip).sum() for skip in self.ignored])[:-1]
        for own, skip, found in zip(
            self.component, self.ignored, np.split(component, counts), strict=True
        ):
            own[~skip] = found

    def read(self, place: int) -> Array:
        """Return the pixels of one image."""
        try:
            return read_image(self.sources[place], color=True)
        except ImageError as error:
            raise ImageError(self.names[place], error.reason) from None

    def pyramid(
        self, place: int, smallest: Shape, upsample: int, words: Array | None, nodes: bool = False
    ) -> Pyramid:
        """Return the pyramid of one image, in codes if there are words."""
        image = self.read(place)
        pyramid = CellPyramid.of(image, smallest=smallest, upsample=upsample, nodes=nodes)
        return pyramid if words is None else pyramid.encoded(words)

    def keep(self, places: Sequence[int]) -> None:
        """Forget all other images."""
        for name in ("sources", "names", "boxes", "ignored", "numbers", "component"):
            values = getattr(self, name)
            setattr(self, name, [values[i] for i in places])

    def leave_out_boxes_outside(self, pyramids: Sequence[Pyramid]) -> None:
        """Ignore boxes outside of their images, with a warning for each."""
        for i, pyramid in enumerate(pyramids):
            if len(self.boxes[i]):
                height, width = pyramid.size
                self.ignored[i] |= ~sound_boxes(self.boxes[i], (width, height), self.names[i])


def _flags(boxes: Sequence[Array], ignore: Any) -> list[Array]:
    if ignore is None:
        return [np.zeros(len(b), bool) for b in boxes]
    flags = [np.asarray(given).astype(bool).reshape(-1) for given in ignore]
    if len(flags) != len(boxes):
        raise ValueError(f"ignore has {len(flags)} entries for {len(boxes)} images")
    for i, (own, b) in enumerate(zip(flags, boxes, strict=True)):
        if len(own) != len(b):
            raise ValueError(f"ignore[{i}] has {len(own)} values for {len(b)} boxes")
    return flags


def read_all(
    count: int,
    make: Callable[[int], Pyramid],
    *,
    n_jobs: int | None = None,
    tell: Callable[[int], object] = lambda done: None,
) -> tuple[dict[int, Pyramid], dict[int, ImageError]]:
    """Return ``make(place)`` of all images, and the errors of those that cannot be read."""
    made: dict[int, Pyramid] = {}
    errors: dict[int, ImageError] = {}

    def task(begin: int, end: int) -> None:
        for place in range(begin, end):
            try:
                made[place] = make(place)
            except ImageError as error:
                errors[place] = error
            tell(len(made) + len(errors))

    parallel.run(task, parallel.ranges(count, 4), n_jobs)
    return dict(sorted(made.items())), dict(sorted(errors.items()))


def warn_unreadable(errors: dict[int, ImageError], count: int, stacklevel: int = 3) -> None:
    """Warn of images that cannot be read; if none can, raise ``ValueError``."""
    if not errors:
        return
    listed = "; ".join(str(error) for error in list(errors.values())[:NAMES_SHOWN])
    more = len(errors) - NAMES_SHOWN
    text = f"{listed}{f'; and {more} more' if more > 0 else ''}"
    if len(errors) == count:
        raise ValueError(f"none of the {count} images can be read: {text}")
    message = f"{len(errors)} of {count} images cannot be read and are left out: {text}"
    warnings.warn(message, UnreadableImageWarning, stacklevel=stacklevel)


def learn_words(
    data: TrainingImages, n_words: int, smallest: Shape, upsample: int, rng: Any
) -> Array:
    """Return words of cells: means of k-means on cells within images, and the outside."""
    places = rng.permutation(len(data.sources))[:IMAGES_FOR_WORDS]
    share = -(-CELLS_FOR_WORDS // len(places))
    sample = []
    for place in places:
        try:
            image = data.read(int(place))
        except ImageError:
            continue
        cells = _inner_cells(CellPyramid.of(image, smallest=smallest, upsample=upsample))
        sample.append(cells[rng.permutation(len(cells))[:share]])
    points = np.concatenate([np.empty((0, CHANNELS), np.float32), *sample])
    count = min(n_words - 1, len(points))
    if count < 1:
        return OUTSIDE.copy()
    book = Codebook(count, random_state=rng.randint(2**31 - 1)).fit(points)
    return np.concatenate([book.words_, OUTSIDE]).astype(np.float32)


def _inner_cells(pyramid: CellPyramid) -> Array:
    levels = [pyramid.level(i).swapaxes(1, 2) for i in range(len(pyramid.shapes))]
    cells = np.concatenate(
        [np.empty((0, CHANNELS)), *(level.reshape(-1, CHANNELS) for level in levels)]
    )
    return cells[cells[:, -1] == 0]
