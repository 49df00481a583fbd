r"""Arrays of compact files: rounded where a class allows it, and packed without further loss.

**Rounding.** A class names in ``_rounded`` the attributes whose numbers are added up in one unit,
such as the contributions of features to a score: sums of many change little if each number is
rounded to a multiple of the same step. The step is at most 1/512 of the root mean square of the
array, and smaller as long as the packed array is less than a quarter of what it is in memory. It
has three significant bits, so that its multiples are exact. Each number changes by at most half a
step. Arrays of few numbers are not rounded, as they take no room.

**Packing.** The first bytes of all numbers stand side by side, then the second bytes, and so on,
the longest axis of the array running fastest: bytes of the same meaning repeat each other, and
deflate finds it. Rounded numbers are written as whole ones, multiples :math:`k` of the step, or as
the differences of these along the longest axis if they are smaller, as those of a shape function at
consecutive levels are. :math:`k \ge 0` is written as :math:`2k`, others as :math:`-2k - 1`, so
that few bytes differ.
"""

import math
import zlib
from typing import Any

import numpy as np

from hilbin._arrays import Array

PARTS = 512  # of the root mean square that a step has at most
SHARE = 0.24  # of the bytes in memory that packed ones may be if the step is smaller
FINEST = 2**-8  # smallest step, in largest ones
LARGEST = {4: 2**21, 8: 2**30}  # largest multiple of a step, by bytes of a number: exact
SAMPLE = 2**18  # numbers of which the size is found
FEW = 2**14  # numbers, below which arrays are not rounded
CODES = np.dtype("<u4")  # the largest of n numbers is at most sqrt(n) root mean squares
MULTIPLES, DIFFERENCES = "multiples", "differences"
MOST_RATIO, ROOM = 32, 2**26  # bytes that a file may unpack to: per byte of it, and besides


def step_of(values: Any) -> float | None:
    """Return the step to which an array may be rounded; None if it is left as it is."""
    if not isinstance(values, np.ndarray) or values.size < FEW:
        return None
    if values.dtype.kind != "f" or values.itemsize not in LARGEST:
        return None
    with np.errstate(over="ignore"):
        size = math.sqrt(float(np.square(values, dtype=np.float64).mean()))
    if not (math.isfinite(size) and size / PARTS > np.finfo(values.dtype).tiny):
        return None
    return _finer(values, math.ldexp(0.5, math.frexp(size / PARTS)[1]))


def _finer(values: Array, step: float) -> float:
    """Return the smallest step for which the array is small enough, or the given one."""
    turned = _turned(values)
    width = max(1, SAMPLE * turned.shape[-1] // turned.size)
    begin = (turned.shape[-1] - width) // 2
    sample = np.ascontiguousarray(turned[..., max(0, begin) :][..., :width])
    least = max(FINEST * step, float(np.abs(values).max()) / LARGEST[values.itemsize])
    while (finer := _next(step)) >= least and not np.array_equal(rounded(sample, step), sample):
        packed, _ = pack(rounded(sample, finer), finer)
        if len(packed) > SHARE * sample.nbytes:
            break
        step = finer
    return step


def _next(step: float) -> float:
    """Return the next smaller step of three significant bits."""
    mantissa, exponent = math.frexp(step)
    return math.ldexp(mantissa - 1 / 8 if mantissa > 1 / 2 else 7 / 16, exponent)


def rounded(values: Array, step: float) -> Array:
    """Return an array of multiples of the step, in the same dtype."""
    return (np.rint(values / step) * step).astype(values.dtype)


def pack(array: Array, step: float | None) -> tuple[bytes, Any]:
    """Return the bytes of an array, and how they are to be read.

    With a step the numbers must be multiples of it.
    """
    turned, coding = np.ascontiguousarray(_turned(array)), None
    if step is not None:
        turned, coding = _whole_numbers(turned, step)
    flat = turned.reshape(-1)
    planes = flat.view(np.uint8).reshape(flat.size, -1).T if flat.size else flat
    return zlib.compress(np.ascontiguousarray(planes).data), coding


def unpack(content: bytes, dtype: Any, shape: list[int], order: Any, coding: Any) -> Array:
    """Return the array of packed bytes, or raise ``ValueError`` if they are not its bytes."""
    kind = np.dtype(dtype)
    stored = kind if coding is None else CODES
    planes = _inflated(content, stored.itemsize * math.prod(shape))
    array = np.empty(shape, kind, order=order)
    turned = _turned(array)
    if coding is None:
        turned[...] = _joined(planes.reshape(stored.itemsize, -1), stored).reshape(turned.shape)
        return array
    name, step = coding
    known = name in (MULTIPLES, DIFFERENCES) and type(step) is float and 0 < step < math.inf
    if not known or kind.kind != "f":
        raise ValueError(f"{coding!r} is no coding of an array of {kind}")
    planes = planes.reshape(stored.itemsize, *turned.shape)
    for run in np.ndindex(turned.shape[:-1]):  # few numbers at a time stay in the cache
        numbers = _joined(planes[:, *run].reshape(stored.itemsize, -1), stored)
        k = (numbers >> 1 ^ np.negative(numbers & 1)).view(np.int32)
        if name == DIFFERENCES:
            k = np.cumsum(k, dtype=np.int32)  # modulo 2^32, as the differences
        with np.errstate(over="ignore"):
            turned[run] = k * step
    return array


def _joined(planes: Array, dtype: Any) -> Array:
    """Return numbers whose first, second, ... bytes are the rows of ``planes``."""
    return np.ascontiguousarray(planes.T).view(dtype).reshape(-1)


def _whole_numbers(values: Array, step: float) -> tuple[Array, Any]:
    """Return multiples of the step as whole numbers >= 0, and what they are."""
    k, coding = np.rint(values / step).astype(np.int32), MULTIPLES
    differences = np.diff(k, axis=-1, prepend=np.int32(0))
    if np.abs(differences).sum(dtype=np.float64) < np.abs(k).sum(dtype=np.float64):
        k, coding = differences, DIFFERENCES
    return (k << 1 ^ k >> 31).view(np.uint32).astype(CODES, copy=False), [coding, step]


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
