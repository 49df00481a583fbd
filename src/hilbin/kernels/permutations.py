"""Transformations of images that only move values: shifts, mirrors, turns.

A row is an image, value by value; a transformation ``J`` is a permutation of the values,
``(Jx)_i = x_(J_i)``, so that ``X[:, J]`` transforms rows and a set of transformations is a
whole-number array of shape (g, d). All products of two sets are ``a[:, b].reshape(-1, d)``.
"""

from collections.abc import Sequence

import numpy as np

from hilbin._arrays import Array


def shifts(shape: Sequence[int], reach: int | None = None) -> Array:
    """Return the cyclic shifts of an image by up to ``reach`` pixels along each axis.

    Parameters
    ----------
    shape : (height, width) or (height, width, channels)
    reach : int >= 0, optional
        All shifts by default: a group. A smaller reach gives no group, but nearly invariant
        kernels of images whose border is empty.

    Returns
    -------
    permutations : ndarray of shape (g, d)
        The identity comes first.

    Examples
    --------
    >>> from hilbin.kernels import shifts
    >>> shifts((1, 3))
    array([[0, 1, 2],
           [2, 0, 1],
           [1, 2, 0]])
    """
    places = _places(shape)
    if reach is not None and not (isinstance(reach, (int, np.integer)) and reach >= 0):
        raise ValueError(f"reach must be a whole number >= 0 or None, got {reach!r}")
    moves = []
    for side in places.shape[:2]:
        near = range(side) if reach is None else range(-reach, reach + 1)
        moves.append(sorted({move % side for move in near}))
    return np.stack([np.roll(places, (i, j), (0, 1)).ravel() for i in moves[0] for j in moves[1]])


def flips(shape: Sequence[int], *, vertical: bool = False) -> Array:
    """Return the identity and the mirror from left to right.

    Parameters
    ----------
    shape : (height, width) or (height, width, channels)
    vertical : bool, default False
        Whether the mirror from top to bottom, and with it the half turn, belong to the group.

    Returns
    -------
    permutations : ndarray of shape (2, d) or (4, d)

    Examples
    --------
    >>> from hilbin.kernels import flips
    >>> flips((2, 2))
    array([[0, 1, 2, 3],
           [1, 0, 3, 2]])
    """
    places = _places(shape)
    both = [places, places[:, ::-1]]
    return np.stack([p.ravel() for p in both + [p[::-1] for p in both if vertical]])


def rotations90(shape: Sequence[int]) -> Array:
    """Return the four turns of a square image by multiples of 90 degrees.

    Parameters
    ----------
    shape : (side, side) or (side, side, channels)

    Returns
    -------
    permutations : ndarray of shape (4, d)

    Examples
    --------
    >>> from hilbin.kernels import rotations90
    >>> rotations90((2, 2))[1]
    array([1, 3, 0, 2])
    """
    places = _places(shape)
    if places.shape[0] != places.shape[1]:
        raise ValueError(
            f"shape must be square for turns by 90 degrees, got {tuple(shape)}; "
            "flips(shape, vertical=True) has the half turn"
        )
    return np.stack([np.rot90(places, turns).ravel() for turns in range(4)])


def _places(shape: Sequence[int]) -> Array:
    """Return the place of every value in a row, in the form of the image."""
    sides = [int(side) for side in shape]
    if len(sides) not in (2, 3) or min(sides) < 1:
        raise ValueError(f"shape must be (height, width[, channels]), got {tuple(shape)!r}")
    return np.arange(np.prod(sides)).reshape(sides)
