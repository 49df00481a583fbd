r"""Arrays of compact files: rounded where a class allows it, and packed without further loss.

**Rounding.** A class names in ``_rounded`` the attributes whose numbers are added up in one unit,
such as the contributions of features to a score: sums of many change little if each number is
rounded to a multiple of the same step. The step is the power of two that is at most 1/1024 of the
root mean square of the array; each number changes by at most half of it. Arrays of few numbers are
not rounded, as they take no room.

**Packing.** Rounded numbers are written as whole ones, multiples :math:`k` of the step:
:math:`2k` if :math:`k \ge 0`, else :math:`-2k - 1`, so that few bytes differ. The first bytes of
all numbers stand side by side, then the second bytes, and so on, the longest axis of the array
running fastest: bytes of the same meaning repeat each other, and deflate finds it.
"""

import math
import zlib
from typing import Any

import numpy as np

from hilbin._arrays import Array

PARTS = 512  # of the root mean square that a step has at most
FEW = 2**14  # numbers, below which arrays are not rounded
CODES = np.dtype("<u4")  # the largest of n numbers is at most sqrt(n) root mean squares
MOST_RATIO, ROOM = 32, 2**26  # bytes that a file may unpack to: per byte of it, and besides


def step_of(values: Any) -> float | None:
    """Return the step to which an array may be rounded; None if it is left as it is."""
    if not isinstance(values, np.ndarray) or values.dtype.kind != "f" or values.size < FEW:
        return None
    with np.errstate(over="ignore"):
        size = math.sqrt(float(np.square(values, dtype=np.float64).mean()))
    if not (math.isfinite(size) and size / PARTS > np.finfo(values.dtype).tiny):
        return None
    return math.ldexp(0.5, math.frexp(size / PARTS)[1])


def rounded(values: Array, step: float) -> Array:
    """Return an array of multiples of the step, in the same dtype."""
    return (np.rint(values / step) * step).astype(values.dtype)


def pack(array: Array, step: float | None) -> bytes:
    """Return the bytes of an array; with a step its numbers are multiples of that."""
    numbers = array if step is None else _without_signs(np.rint(array / step).astype(np.int32))
    flat = np.ascontiguousarray(_turned(numbers)).reshape(-1)
    planes = flat.view(np.uint8).reshape(flat.size, -1).T if flat.size else flat
    return zlib.compress(np.ascontiguousarray(planes).data)


def unpack(content: bytes, dtype: Any, shape: list[int], order: Any, step: Any) -> Array:
    """Return the array of packed bytes, or raise ``ValueError`` if they are not its bytes."""
    if step is not None and not (type(step) is float and 0 < step < math.inf):
        raise ValueError(f"{step!r} is no step of an array")
    kind = np.dtype(dtype)
    if step is not None and kind.kind != "f":
        raise ValueError(f"an array of {kind} has a step")
    stored = kind if step is None else CODES
    planes = _inflated(content, stored.itemsize * math.prod(shape))
    flat = np.ascontiguousarray(planes.reshape(stored.itemsize, -1).T).view(stored)
    numbers = np.empty(shape, stored, order=order)
    turned = _turned(numbers)
    turned[...] = flat.reshape(turned.shape)
    if step is None:
        return numbers
    with np.errstate(over="ignore"):
        return (_with_signs(numbers) * step).astype(kind, order="K")


def _without_signs(k: Array) -> Array:
    return ((k << 1) ^ (k >> 31)).view(np.uint32).astype(CODES, copy=False)


def _with_signs(codes: Array) -> Array:
    return np.where(codes & 1, -1 - (codes >> 1).astype(np.int64), codes >> 1)


def _turned(array: Array) -> Array:
    """Return a view whose last axis is the longest."""
    return array if array.ndim < 2 else np.moveaxis(array, int(np.argmax(array.shape)), -1)


def _inflated(content: bytes, n_bytes: int) -> Array:
    """Return so many bytes; neither more nor fewer must come out."""
    stream = zlib.decompressobj()
    try:
        found = stream.decompress(content, n_bytes + 1)
    except zlib.error as error:
        raise ValueError(f"a packed array cannot be unpacked: {error}") from None
    if len(found) != n_bytes or not stream.eof or stream.unused_data:
        raise ValueError("a packed array is not as long as its header says")
    return np.frombuffer(found, np.uint8)
