"""What all that takes images does first: names of features, features that suit the images, seeds.

:class:`~hilbin.auto.ImageClassifier` and :class:`~hilbin.auto.ImageCollection` find the same
features for the same images.
"""

import os
import warnings
from collections.abc import Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

from hilbin.auto.base import Stopwatch
from hilbin.auto.image_data import (
    NETWORK,
    Cache,
    ImageSet,
    check_features,
    files,
    fitted,
    open_images,
    resolve,
    transformer,
)
from hilbin.estimators._fit import random_seed
from hilbin.images import ImageFeatures, UnreadableImageWarning, find_images
from hilbin.images.descriptors import ImageSample
from hilbin.images.kept import keep_pixels

NAMES_SHOWN = 10


def feature_names(features: str, network: Any) -> str:
    """Return the names of all features, that of a network first; raise for unknown ones."""
    names = features if network is None else f"{NETWORK}:{os.fspath(network)}+{features}"
    check_features(names)
    return names


def checked_seed(random_state: Any) -> int:
    """Return a seed for ``random_state``."""
    if not isinstance(random_state, Integral):
        try:
            return random_seed(random_state)
        except ValueError as error:
            raise ValueError(f"random_state: {error}") from None
    seed = int(random_state)
    if not 0 <= seed < 2**32:
        raise ValueError(f"random_state must be from 0 to {2**32 - 1}, got {seed}")
    return seed


def learn_features(
    names: str,
    images: Sequence[Any],
    cache: Cache | None,
    watch: Stopwatch,
    *,
    seed: int,
    max_side: int | None,
    n_jobs: int | None,
) -> tuple[str, ImageFeatures, list[Any]]:
    """Return the names of the features that were taken, the features, learned from images, and
    the images, which need not be read again while their pixels fit in memory.
    """
    sample = ImageSample.read(images, max_side)
    names = resolve(names, sample)
    made = transformer(names, sample, seed=seed, max_side=max_side)
    made.set_params(n_jobs=n_jobs)
    with watch.stage("learning features", len(made.parts)) as tell:
        kept = keep_pixels(images, max_side, made._uses_color)
        return names, fitted(made, kept, cache, files=files(names), callback=tell), kept


def listed_images(images: Any) -> Any:
    """Return the images of a folder, or the images themselves."""
    if not isinstance(images, str | os.PathLike):
        return images if hasattr(images, "dtype") else list(images)
    return find_images(images) if Path(images).is_dir() else [Path(images)]


def unlabeled_images(images: Any) -> tuple[ImageSet, str]:
    """Return the images of a folder, or of a sequence, and the folder that names are below."""
    if not isinstance(images, str | os.PathLike):
        return open_images(images), ""
    folder = Path(images)
    paths = find_images(folder)
    names = [path.relative_to(folder).as_posix() for path in paths]
    return ImageSet(list(paths), names, None, str(images)), str(folder.absolute())


def listed(texts: list[str]) -> str:
    """Return the first few texts, and how many there are more."""
    more = len(texts) - NAMES_SHOWN
    return "; ".join(texts[:NAMES_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def warn_of_unreadable(texts: list[str], n_images: int) -> None:
    """Warn of images that are left out, if there are some."""
    if texts:
        warnings.warn(
            f"{len(texts)} of {n_images} images cannot be read and are left out: {listed(texts)}",
            UnreadableImageWarning,
            stacklevel=3,
        )
