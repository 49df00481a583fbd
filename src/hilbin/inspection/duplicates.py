"""Near-duplicates: images that are nearly the same, in one set or between two.

Test images that are nearly training images make accuracy look better. Two images are compared by
their difference hashes: an image becomes 16 rows of 17 gray values, and every bit says whether a
value is larger than the one to its left. These 256 bits hardly change when an image is scaled,
compressed again or brightened. Two photographs of which few bits differ are nearly the same. The
hash of an image without contrast, or of a plain gradient, has nearly no ones or nearly no zeros;
many images share it, so that it proves nothing.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from hilbin import parallel
from hilbin._arrays import Array
from hilbin.images import ImageError, gray, read_image, resized
from hilbin.inspection.evidence import Duplicate

SIDE = 16
BITS = SIDE * SIDE
MOST_DIFFERENT = 20  # bits of those that are nearly the same; other pairs have around 128
LEAST_VARIED = 32  # ones and zeros of a hash that says something
CHUNK = 256
READ_SIDE = 256  # pixels of the longer side of files to hash, and of pictures to show
MOST_PICTURES = 24

Pair = tuple[int, int, int]


def difference_hash(image: Any) -> str:
    """Return the difference hash of an image: 256 bits as 64 hexadecimal digits.

    Parameters
    ----------
    image : path or uint8 array of shape (h, w) or (h, w, 3)
        The image.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.inspection import difference_hash
    >>> brighter_to_the_right = np.tile(np.arange(0, 255, 5, np.uint8), (51, 1))
    >>> set(difference_hash(brighter_to_the_right))
    {'f'}
    """
    if not isinstance(image, np.ndarray):
        image = read_image(image, max_side=READ_SIDE)
    small = resized(gray(image), (SIDE, SIDE + 1))
    return np.packbits(small[:, 1:] > small[:, :-1]).tobytes().hex()


def hash_distances(hashes: Sequence[str], others: Sequence[str]) -> Array:
    """Count the bits, of 256, in which hashes differ.

    Parameters
    ----------
    hashes, others : sequences of str
        Hashes as :func:`difference_hash` returns them.

    Returns
    -------
    distances : int array of shape (n_hashes, n_others)

    Examples
    --------
    >>> from hilbin.inspection import hash_distances
    >>> hash_distances(["00" * 32], ["00" * 32, "03" + "00" * 31])
    array([[0, 2]])
    """
    first, second = _words(hashes), _words(others)
    differing = np.empty((len(first), len(second)), np.int64)
    for i, row in enumerate(first):
        differing[i] = np.bitwise_count(row ^ second).sum(axis=1)
    return differing


def _words(hashes: Sequence[str]) -> Array:
    joined = bytes.fromhex("".join(hashes))
    return np.frombuffer(joined, np.uint64).reshape(-1, BITS // 64)


def near_duplicates(test: Sequence[Any], train: Sequence[Any]) -> list[Pair]:
    """Find for each test image the nearest training image, if they are nearly identical.

    Parameters
    ----------
    test, train : sequences of paths or uint8 arrays, or of hashes
        Images, or their hashes: strings of 64 hexadecimal digits as :func:`difference_hash`
        returns them.

    Returns
    -------
    pairs : list of (int, int, int)
        Place in ``test``, place in ``train``, and the number of bits in which their hashes differ
        (at most 20 of 256); the nearest first.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.inspection import near_duplicates
    >>> images = np.random.default_rng(0).integers(0, 256, (4, 17, 17), np.uint8)
    >>> darker = [(0.8 * images[2]).astype(np.uint8)]
    >>> [pair[:2] for pair in near_duplicates(darker, images)]
    [(0, 2)]
    """
    hashes, others = _hashes(test), _hashes(train)
    mine, theirs = _telling(hashes), _telling(others)
    pairs: list[Pair] = []
    for begin, end in parallel.ranges(len(mine) if theirs else 0, CHUNK):
        here = mine[begin:end]
        apart = hash_distances([hashes[i] for i in here], [others[j] for j in theirs])
        nearest = apart.argmin(axis=1)
        for i, at, bits in zip(here, nearest, apart[np.arange(len(here)), nearest], strict=True):
            if bits <= MOST_DIFFERENT:
                pairs.append((i, theirs[at], int(bits)))
    return sorted(pairs, key=lambda pair: pair[2])


def duplicate_groups(
    images: Sequence[Any], digests: Sequence[str] | None = None
) -> list[list[int]]:
    """Find identical and nearly identical images within one set.

    Images of which few bits of the difference hashes differ belong together, and so do those that
    others connect.

    Parameters
    ----------
    images : sequence of paths or uint8 arrays, or of hashes
        As in :func:`near_duplicates`.
    digests : sequence of str, optional
        What is the same for two images if they are equal, such as a digest of the file. Images
        without contrast, whose hashes prove nothing, are found by this alone.

    Returns
    -------
    groups : list of lists of int
        Places of images that belong together, two at least; the largest groups first.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.inspection import duplicate_groups
    >>> images = np.random.default_rng(0).integers(0, 256, (4, 17, 17), np.uint8)
    >>> darker = (0.8 * images[2]).astype(np.uint8)
    >>> duplicate_groups([*images, darker])
    [[2, 4]]
    """
    hashes = _hashes(images)
    telling = np.array(_telling(hashes), int)
    pairs = [np.empty((2, 0), int)]
    for begin, end in parallel.ranges(len(telling), CHUNK):
        here, there = telling[begin:end], telling[begin:]
        apart = hash_distances([hashes[i] for i in here], [hashes[j] for j in there])
        i, j = np.nonzero(apart <= MOST_DIFFERENT)
        pairs.append(np.array([here[i], there[j]]))
    if digests is not None:
        _, first, place = np.unique(list(digests), return_index=True, return_inverse=True)
        pairs.append(np.array([np.arange(len(hashes)), first[place]]))
    i, j = np.concatenate(pairs, axis=1)
    linked = sp.coo_array((np.ones(i.size), (i, j)), shape=(len(hashes), len(hashes)))
    _, labels = connected_components(linked, directed=False)
    found: dict[int, list[int]] = {}
    for at, label in enumerate(labels.tolist()):
        found.setdefault(label, []).append(at)
    return sorted((g for g in found.values() if len(g) > 1), key=len, reverse=True)


def _hashes(images: Sequence[Any]) -> list[str]:
    return [one if is_hash(one) else difference_hash(one) for one in images]


def is_hash(one: Any) -> bool:
    """Tell whether this is a hash, not the name of a file."""
    return isinstance(one, str) and len(one) == BITS // 4 and not set(one) - set("0123456789abcdef")


def _telling(hashes: list[str]) -> list[int]:
    """Return the places of the hashes that say something."""
    ones = [int(h, 16).bit_count() for h in hashes]
    return [i for i, n in enumerate(ones) if LEAST_VARIED <= n <= BITS - LEAST_VARIED]


def find_duplicates(
    test: Sequence[Any],
    test_labels: Sequence[Any],
    train: Sequence[Any],
    train_labels: Sequence[Any],
    *,
    test_names: Sequence[str] | None = None,
    train_names: Sequence[str] | None = None,
    hashes: tuple[Sequence[str], Sequence[str]] | None = None,
) -> list[Duplicate]:
    """Find test images that are nearly training images, with their labels and pictures.

    Parameters
    ----------
    test, train : sequences of paths or uint8 arrays
        The images. A file that is gone has no picture, if ``hashes`` are given.
    test_labels, train_labels : sequences of labels
        Their labels.
    test_names, train_names : sequences of str, optional
        Their names; by default their paths, or ``image 1``, ``image 2``, ... Those of the test
        images must be the names in :class:`Evidence`, so that a report can leave them out.
    hashes : pair of sequences of str, optional
        Difference hashes of the test and of the training images, if they are known already.

    Returns
    -------
    duplicates : list of Duplicate
        The nearest first, those up to the 24th with pictures.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.inspection import find_duplicates
    >>> images = np.random.default_rng(0).integers(0, 256, (4, 17, 17), np.uint8)
    >>> (pair,) = find_duplicates(images[2:3], ["cat"], images, ["cat", "cat", "dog", "dog"])
    >>> pair.train, pair.train_label, pair.test_label, pair.similarity
    ('image 3', 'dog', 'cat', 1.0)
    """
    first, second = (test, train) if hashes is None else hashes
    names = names_of_images(test, test_names), names_of_images(train, train_names)
    return [
        Duplicate(
            names[1][j],
            names[0][i],
            1 - bits / BITS,
            str(train_labels[j]),
            str(test_labels[i]),
            shown_picture(train[j]) if at < MOST_PICTURES else None,
            shown_picture(test[i]) if at < MOST_PICTURES else None,
        )
        for at, (i, j, bits) in enumerate(near_duplicates(first, second))
    ]


def names_of_images(images: Sequence[Any], given: Sequence[str] | None = None) -> list[str]:
    """Return the names of images: as given, their paths, or ``image 1``, ``image 2``, ..."""
    if given is not None:
        return [str(name) for name in given]
    return [
        f"image {i + 1}" if isinstance(one, np.ndarray) else str(one)
        for i, one in enumerate(images)
    ]


def shown_picture(image: Any) -> Array | None:
    """Return an image to be shown, or None if it cannot be read."""
    try:
        return read_image(image, max_side=READ_SIDE, color=True)
    except ImageError:
        return None
