"""Names of features to transformers, in sizes that suit the images.

``hilbin.images.DESCRIPTORS`` lists the names. Several are joined by ``+``. ``auto`` is those that
suit the images: ``sift+centrist``, and ``color`` if the images have some.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hilbin.cli._options import AUTO
from hilbin.cli._outcome import InputError
from hilbin.images import DESCRIPTORS, ImageFeatures, SpatialPyramid
from hilbin.images.descriptors import ImageSample
from hilbin.images.words import WordSource

NAMES = {f"{name}:{d.argument}" if d.argument else name: d for name, d in DESCRIPTORS.items()}
HELP = f"auto, or joined by +: {'; '.join(f'{name} ({d.about})' for name, d in NAMES.items())}."
# tried one by one when there is time
MORE = tuple(name for name, d in DESCRIPTORS.items() if d.suits is None and not d.argument)


def look(paths: Sequence[Path], max_side: int) -> ImageSample:
    """Read a sample of the images, evenly over the list."""
    try:
        return ImageSample.read(paths, max_side)
    except ValueError as error:
        raise InputError(str(error)) from None


def check_features(features: str) -> None:
    """Raise for names that are not known, and for files that do not exist."""
    names = features.split("+")
    for name in names if features != AUTO else ():
        kind, colon, argument = name.partition(":")
        known = DESCRIPTORS.get(kind)
        if known is None or bool(colon) != bool(known.argument):
            listed = ", ".join((*NAMES, AUTO))
            raise InputError(f"--features: {name!r} is not known; known are {listed}")
        if known.argument and not Path(known.file(argument)).is_file():
            raise InputError(f"--features: there is no file {known.file(argument)!r}")
    if len(set(names)) < len(names):
        raise InputError(f"--features: {features!r} names the same features twice")


def resolve(features: str, sample: ImageSample) -> str:
    """Replace ``auto`` by the names of what suits the images."""
    if features != AUTO:
        return features
    return "+".join(name for name, d in DESCRIPTORS.items() if d.suits and d.suits(sample))


def transformer(features: str, sample: ImageSample, *, seed: int, max_side: int) -> Any:
    """Return the unfitted transformer of one or several names joined by ``+``."""
    parts = [_part(name, sample, seed) for name in features.split("+")]
    if len(parts) == 1:
        return parts[0][1].set_params(max_side=max_side)
    # shares of words sum to 1; others are brought to that scale, for kernels that add up the parts
    weights = {
        name: _weight(part, sample)
        for name, part in parts
        if not isinstance(part, SpatialPyramid | WordSource)
    }
    return ImageFeatures(parts, weights or None, max_side=max_side)


def _part(name: str, sample: ImageSample, seed: int) -> tuple[str, Any]:
    kind, colon, argument = name.partition(":")
    try:
        return kind, DESCRIPTORS[kind].make(sample, seed, *([argument] if colon else []))
    except ValueError as error:
        raise InputError(f"--features: {error}") from None


def _weight(part: Any, sample: ImageSample) -> float:
    """Return one over the mean sum of the rows of a sample."""
    mean = float(np.mean(part.fit(sample.images).transform(sample.images).sum(axis=1)))
    return 1 / mean if mean > 0 else 1.0


def files(features: str) -> list[str]:
    """Return the files that features are read from, such as networks."""
    named = (name.partition(":") for name in features.split("+"))
    return [DESCRIPTORS[kind].file(argument) for kind, _, argument in named if argument]
