"""Names of features to transformers, in sizes that suit the images.

====================  ==============================================================
``sift``              dense SIFT quantized by a codebook, spatial pyramid of 3 levels
``centrist``          census transform, spatial pyramid of 3 levels
``lbp``               local binary patterns, spatial pyramid of 3 levels
``color``             color histogram, spatial pyramid of 2 levels
``hog``               histograms of oriented gradients over the whole image
``onnx:FILE``         output of your own network
====================  ==============================================================

Several are joined by ``+``. ``auto`` is ``sift+centrist``, and ``color`` if the images have some.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hilbin.cli._outcome import InputError
from hilbin.images import (
    FHOG,
    LBP,
    BagOfWords,
    Centrist,
    ColorHistogram,
    DenseSIFT,
    ImageError,
    ImageFeatures,
    OnnxFeatures,
    SpatialPyramid,
    read_image,
)

SAMPLE = 24
MOST_WORDS = 512
POINTS_PER_WORD = 20
POINTS_ALONG_A_SIDE = 32
COLOURFUL = 6.0  # mean distance of the channels of an image that has color, of 255
ONNX = "onnx:"


@dataclass(frozen=True)
class Look:
    """What a sample of the images looks like.

    Parameters
    ----------
    images : list of uint8 arrays
        The sample, in color.
    n_images : int
        How many images there are altogether.
    """

    images: list[Any]
    n_images: int

    @property
    def side(self) -> int:
        """Median of the longer sides."""
        return int(np.median([max(image.shape) for image in self.images]))

    @property
    def colorful(self) -> bool:
        """Whether most images have color."""
        distances = [np.ptp(image.astype(np.int16), axis=2).mean() for image in self.images]
        return float(np.mean(np.array(distances) > COLOURFUL)) > 0.5

    def sift(self) -> DenseSIFT:
        """SIFT on a grid that suits the size."""
        step = int(np.clip(round(self.side / POINTS_ALONG_A_SIDE), 2, 8))
        return DenseSIFT(step, (4, 8) if self.side >= 64 else (2, 4))

    def words(self) -> int:
        """How many words of SIFT the images suffice for."""
        points = float(np.mean([len(self.sift().points(image)) for image in self.images]))
        return min(MOST_WORDS, int(points * self.n_images / POINTS_PER_WORD))

    def hog(self) -> FHOG:
        """HOG of a size that suits the images."""
        side = 128 if self.side >= 128 else 64 if self.side >= 48 else 32
        return FHOG(cell=4 if side == 32 else 8, size=(side, side))


def look(paths: Sequence[Path], max_side: int) -> Look:
    """Read a sample of the images, evenly over the list."""
    images = []
    for i in np.unique(np.linspace(0, len(paths) - 1, min(SAMPLE, len(paths))).astype(int)):
        try:
            images.append(read_image(paths[i], max_side=max_side, color=True))
        except ImageError:
            continue
    for path in () if images else paths:
        try:
            return Look([read_image(path, max_side=max_side, color=True)], len(paths))
        except ImageError:
            continue
    if not images:
        raise InputError(f"none of the {len(paths)} images can be read, for example {paths[0]}")
    return Look(images, len(paths))


def _sift(seen: Look, seed: int) -> SpatialPyramid:
    n_words = seen.words()
    if n_words < 2:
        raise InputError("the images are too small for sift; try --features centrist or hog")
    return SpatialPyramid(BagOfWords(seen.sift(), n_words, random_state=seed), 3)


MAKERS: dict[str, Callable[[Look, int], Any]] = {
    "sift": _sift,
    "centrist": lambda seen, seed: SpatialPyramid(Centrist(), 3),
    "lbp": lambda seen, seed: SpatialPyramid(LBP(), 3),
    "color": lambda seen, seed: SpatialPyramid(ColorHistogram(), 2),
    "hog": lambda seen, seed: seen.hog(),
}


def check_features(features: str) -> None:
    """Complain about names that are not known, and about networks that are not there."""
    names = features.split("+")
    for name in names:
        if name.startswith(ONNX):
            if not Path(name.removeprefix(ONNX)).is_file():
                raise InputError(f"--features: there is no file {name.removeprefix(ONNX)!r}")
        elif name not in MAKERS and features != "auto":
            known = ", ".join((*MAKERS, f"{ONNX}FILE", "auto"))
            raise InputError(f"--features: {name!r} is not known; known are {known}")
    if len(set(names)) < len(names):
        raise InputError(f"--features: {features!r} names the same features twice")


def resolve(features: str, seen: Look) -> str:
    """``auto`` replaced by the names of what suits the images."""
    if features != "auto":
        return features
    names = ["sift"] if seen.words() >= 2 else []
    return "+".join([*names, "centrist", *(["color"] if seen.colorful else [])])


def transformer(features: str, seen: Look, *, seed: int, max_side: int) -> Any:
    """The transformer of one or several names joined by ``+``, not fitted yet."""
    parts = []
    for name in features.split("+"):
        if name.startswith(ONNX):
            parts.append(("onnx", OnnxFeatures(name.removeprefix(ONNX))))
        else:
            parts.append((name, MAKERS[name](seen, seed)))
    if len(parts) == 1:
        return parts[0][1].set_params(max_side=max_side)
    # pyramids sum to 1; what does not is brought to that scale, for kernels that add up the parts
    weights = {name: _weight(part, seen) for name, part in parts if name in ("hog", "onnx")}
    return ImageFeatures(parts, weights or None, max_side=max_side)


def _weight(part: Any, seen: Look) -> float:
    """One over the mean sum of the rows of a sample."""
    mean = float(np.mean(part.fit([]).transform(seen.images).sum(axis=1)))
    return 1 / mean if mean > 0 else 1.0


def networks(features: str) -> list[str]:
    """Files of the networks among the features."""
    return [name.removeprefix(ONNX) for name in features.split("+") if name.startswith(ONNX)]
