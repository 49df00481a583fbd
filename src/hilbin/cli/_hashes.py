"""Difference hash: 256 bits that hardly change when an image is scaled, recoded or brightened.

The image becomes 16 rows of 17 gray values; every bit says whether a value is larger than the one
to its left. Two photographs that share most bits are nearly the same photograph.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hilbin.images import gray, resized

SIDE = 16


def difference_hash(image: NDArray[np.uint8]) -> str:
    """The hash of an image as :func:`hilbin.images.read_image` gives it, in 64 hex digits.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.cli._hashes import difference_hash
    >>> brighter_to_the_right = np.tile(np.arange(0, 255, 5, np.uint8), (51, 1))
    >>> set(difference_hash(brighter_to_the_right))
    {'f'}
    """
    small = resized(gray(image), (SIDE, SIDE + 1))
    return np.packbits(small[:, 1:] > small[:, :-1]).tobytes().hex()


def hash_distances(hashes: Sequence[str], others: Sequence[str]) -> NDArray[np.int64]:
    """Number of bits, of 256, in which hashes differ, shape (n_hashes, n_others).

    Examples
    --------
    >>> from hilbin.cli._hashes import hash_distances
    >>> hash_distances(["00" * 32], ["00" * 32, "03" + "00" * 31])
    array([[0, 2]])
    """
    first, second = _bytes(hashes), _bytes(others)
    differing = np.empty((len(first), len(second)), np.int64)
    for i, row in enumerate(first):
        differing[i] = np.bitwise_count(row ^ second).sum(axis=1)
    return differing


def _bytes(hashes: Sequence[str]) -> NDArray[np.uint8]:
    joined = bytes.fromhex("".join(hashes))
    return np.frombuffer(joined, np.uint8).reshape(-1, SIDE * SIDE // 8)
