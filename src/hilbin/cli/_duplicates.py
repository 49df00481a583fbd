"""Doubts about the data: near duplicates between training and held-out images, odd labels.

Two images are nearly the same if few bits of their difference hashes differ. The hash of an image
without contrast, or of a plain gradient, has nearly no ones or nearly no zeros; many images share
it, so that it proves nothing.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilbin import parallel
from hilbin.cli._answers import Answers
from hilbin.cli._hashes import SIDE, hash_distances
from hilbin.cli._models import Model
from hilbin.images import ImageError, read_image
from hilbin.report import Duplicate, Suspicion

BITS = SIDE * SIDE
MOST_DIFFERENT = 20  # bits of those that are nearly the same; other pairs have around 128
LEAST_VARIED = 32  # ones and zeros of a hash that says something
BLOCK = 256
MOST_PICTURES = 24
PICTURE_SIDE = 256

Array = NDArray[Any]
Pair = tuple[int, int, int]


def near_pairs(hashes: list[str], others: list[str]) -> list[Pair]:
    """For each hash the nearest of the others, if it is near: place, other's place, bits apart.

    Parameters
    ----------
    hashes, others : lists of str
        As :func:`hilbin.cli._hashes.difference_hash` gives them.

    Examples
    --------
    >>> from hilbin.cli._duplicates import near_pairs
    >>> half, same, flat = "0f" * 32, "0f" * 31 + "0e", "00" * 32
    >>> near_pairs([half, flat], ["f0" * 32, same, flat])
    [(0, 1, 1)]
    """
    mine, theirs = _telling(hashes), _telling(others)
    pairs: list[Pair] = []
    for begin, end in parallel.ranges(len(mine) if theirs else 0, BLOCK):
        here = mine[begin:end]
        apart = hash_distances([hashes[i] for i in here], [others[j] for j in theirs])
        nearest = apart.argmin(axis=1)
        for i, at, bits in zip(here, nearest, apart[np.arange(len(here)), nearest], strict=True):
            if bits <= MOST_DIFFERENT:
                pairs.append((i, theirs[at], int(bits)))
    return sorted(pairs, key=lambda pair: pair[2])


def _telling(hashes: list[str]) -> list[int]:
    ones = [int(h, 16).bit_count() for h in hashes]
    return [i for i, n in enumerate(ones) if LEAST_VARIED <= n <= BITS - LEAST_VARIED]


def duplicates(model: Model, found: Answers) -> list[Duplicate]:
    """Held-out images that are nearly training images, the nearest first."""
    train = model.metadata["train"]
    pairs = near_pairs(found.hashes, train["hashes"])
    return [
        Duplicate(
            train["names"][j],
            found.names[i],
            1 - bits / BITS,
            train["labels"][j],
            model.classes[found.truth[i]],
            training_picture(model, train["names"][j]) if at < MOST_PICTURES else None,
            picture(found.paths[i]) if at < MOST_PICTURES else None,
        )
        for at, (i, j, bits) in enumerate(pairs)
    ]


def suspicions(model: Model) -> list[Suspicion]:
    """Training examples whose labels looked wrong when the model was made."""
    return [
        Suspicion(
            one["name"],
            one["label"],
            one["suggested"],
            one["margin"],
            training_picture(model, one["name"]) if at < MOST_PICTURES else None,
        )
        for at, one in enumerate(model.metadata["suspicious"])
    ]


def training_picture(model: Model, name: str) -> Array | None:
    """A training image, if it is still where it was."""
    if not model.of_images:
        return None
    source = Path(model.metadata["data"]["source"])
    return picture((source if source.is_dir() else source.parent) / name)


def picture(path: Path) -> Array | None:
    """An image to be shown, if it can be read."""
    try:
        return read_image(path, max_side=PICTURE_SIDE, color=True)
    except ImageError:
        return None
