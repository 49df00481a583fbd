"""Named features: what a name such as ``sift`` or ``color`` stands for, in sizes that suit images.

A :class:`NamedFeatures` makes the transformer of a name for a :class:`ImageSample`, which says how
large the images are, how many, and whether they have color. ``hilbin.images.DESCRIPTORS`` lists
them all.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hilbin.images._base import ImageTransformer
from hilbin.images.read import ImageError, Pixels, read_image

SAMPLE = 24
COLORFUL = 6.0  # mean distance of the channels of an image that has color, of 255


@dataclass(frozen=True)
class ImageSample:
    """A sample of the images that features are made for.

    Parameters
    ----------
    images : list of uint8 arrays of shape (height, width, 3)
    n_images : int
        Number of images the sample was drawn from.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images.descriptors import ImageSample
    >>> sample = ImageSample([np.zeros((40, 30, 3), np.uint8)], n_images=100)
    >>> sample.side, sample.colorful
    (40, False)
    """

    images: list[Pixels]
    n_images: int

    @classmethod
    def read(cls, sources: Sequence[Any], max_side: int | None = None) -> "ImageSample":
        """Read a sample of images, evenly over the list; those that cannot be read are left out."""
        chosen = np.linspace(0, len(sources) - 1, min(SAMPLE, len(sources))).astype(int)
        images = _readable([sources[i] for i in np.unique(chosen)], max_side, SAMPLE)
        images = images or _readable(sources, max_side, 1)
        if not images:
            example = f", for example {sources[0]}" if len(sources) else ""
            raise ValueError(f"none of the {len(sources)} images can be read{example}")
        return cls(images, len(sources))

    @property
    def side(self) -> int:
        """Median of the longer sides, in pixels."""
        return int(np.median([max(image.shape) for image in self.images]))

    @property
    def colorful(self) -> bool:
        """Whether most images have color."""
        distances = [np.ptp(image.astype(np.int16), axis=2).mean() for image in self.images]
        return float(np.mean(np.array(distances) > COLORFUL)) > 0.5


def _readable(sources: Sequence[Any], max_side: int | None, most: int) -> list[Pixels]:
    images: list[Pixels] = []
    for source in sources:
        try:
            images.append(read_image(source, max_side=max_side, color=True))
        except ImageError:
            continue
        if len(images) == most:
            break
    return images


@dataclass(frozen=True)
class NamedFeatures:
    """An entry of ``DESCRIPTORS``: features that can be asked for by name.

    Parameters
    ----------
    about : str
        A line for help texts.
    make : callable
        ``make(sample, seed)`` returns an unfitted transformer for images like those of the
        :class:`ImageSample`; ``make(sample, seed, argument)`` if there is an argument.
    suits : callable, optional
        ``suits(sample)`` says whether ``auto`` takes these features for such images. Features
        without it are tried when there is time to compare.
    argument : str, optional
        What follows the name and a colon, such as ``FILE`` in ``onnx:FILE``. Options may follow
        the file, as in ``onnx:FILE,levels=1``.

    Examples
    --------
    >>> from hilbin.images import DESCRIPTORS
    >>> print(DESCRIPTORS["centrist"].about)
    census transform, spatial pyramid of 3 levels
    """

    about: str
    make: Callable[..., ImageTransformer]
    suits: Callable[[ImageSample], bool] | None = None
    argument: str | None = None

    def file(self, argument: str) -> str:
        """Return the file that the argument names."""
        return file_and_options(argument)[0]


def file_and_options(argument: str) -> tuple[str, list[tuple[str, str]]]:
    """Split ``FILE,option=value,...`` into the file and the options; a file may have commas.

    Examples
    --------
    >>> from hilbin.images.descriptors import file_and_options
    >>> file_and_options("net.onnx,levels=1")
    ('net.onnx', [('levels', '1')])
    """
    words = argument.split(",")
    end = len(words)
    while end > 1 and "=" in words[end - 1]:
        end -= 1
    options = [word.partition("=")[::2] for word in words[end:]]
    return ",".join(words[:end]), options
