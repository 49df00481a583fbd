"""Functions of values as cubics on cells of the line, which the compiled core evaluates.

Values that are never negative have 64 cells per octave, from 2^-10 of the smallest value to 2^4 of
the largest, so that the leading bits of a value are the number of its cell, and one cell down to 0,
where functions are lines; all cells are within the range of float32. Other values have 2048 equal
cells between the ends. A cubic goes through Chebyshev's points of its cell. Beyond the last cell
functions stay as they are at the end.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hilbin._arrays import Array, Function
from hilbin._core import core
from hilbin._state import stored
from hilbin.maps._expand import Fill

PER_OCTAVE = 64
OCTAVES_BELOW, OCTAVES_ABOVE = 10, 4
LOWEST, HIGHEST = -126, 126  # octaves of float32
EVEN = 2048
POINTS = (1 - np.cos(np.pi * (np.arange(4) + 0.5) / 4)) / 2
TO_POWERS = np.linalg.inv(np.vander(POINTS, 4, increasing=True))


def cubics(features: Function, start: Array, width: Array) -> Array:
    """Coefficients of the cubics on the cells: cells x powers x features."""
    at = start[:, None] + width[:, None] * POINTS
    values = features(at.ravel()).reshape(*at.shape, -1)
    return np.einsum("pn,inf->ipf", TO_POWERS, values)


@stored
@dataclass(frozen=True)
class Cells:
    """Starts and widths of cells; ``by_bits`` if leading bits lead to them, else equal steps."""

    start: Array
    width: Array
    by_bits: bool

    def cubics(self, features: Function) -> Array:
        """Coefficients, the first cell of values >= 0 a line to 0."""
        coefficients = cubics(features, self.start, self.width)
        if self.by_bits:
            coefficients[0] = 0
            coefficients[0, 1] = coefficients[1, 0]
        return coefficients

    def arguments(self, dtype: npt.DTypeLike) -> tuple[bool, Array]:
        """What the core's functions take first."""
        if not self.by_bits:
            return False, np.array([self.start[0], 1 / self.width[0], 0.0])
        integer, mantissa = ("int32", 23) if dtype == np.float32 else ("int64", 52)
        shift = mantissa - int(np.log2(PER_OCTAVE))
        bits = int(self.start[1:2].astype(dtype).view(integer)[0]) >> shift
        return True, np.array([shift, bits, self.start[1]], np.float64)


def make_cells(low: float, high: float, *, nonnegative: bool) -> Cells:
    """Cells for values between the ends."""
    if not nonnegative:
        step = (high - low) / EVEN or 1.0
        return Cells(low + step * np.arange(EVEN), np.full(EVEN, step), False)
    last = np.floor(np.log2(high)) + OCTAVES_ABOVE
    first = max(np.floor(np.log2(low)) - OCTAVES_BELOW, LOWEST)
    if not LOWEST < last <= HIGHEST:
        raise ValueError(
            f"the largest value, {high:g}, is outside the range of float32, within which features "
            "are tabulated: scale the data"
        )
    powers = 2.0 ** np.arange(first, last + 1)
    start = np.multiply.outer(powers, 1 + np.arange(PER_OCTAVE) / PER_OCTAVE).ravel()
    width = np.repeat(powers / PER_OCTAVE, PER_OCTAVE)
    return Cells(np.append(0, start), np.append(start[0], width), True)


@stored
class Cubics:
    """Features as cubics on cells.

    Parameters
    ----------
    cells : Cells
    coefficients : ndarray
        Cells x powers x features.
    """

    def __init__(self, cells: Cells, coefficients: Array) -> None:
        self.cells = cells
        self.coefficients = coefficients

    @cached_property
    def _arguments(self) -> dict[str, tuple[Any, ...]]:
        """Arguments of the core for every dtype; not saved, as they depend on the machine."""
        return {}

    @property
    def n_components(self) -> int:
        """Features per value."""
        return int(self.coefficients.shape[2])

    def prepare(self, dtype: npt.DTypeLike) -> Fill:
        """See :class:`hilbin.maps._expand.Expansion`."""
        name = np.dtype(dtype).name
        if name not in self._arguments:
            n = self.n_components
            lanes = core.vector_bytes // np.dtype(dtype).itemsize
            padded = np.pad(self.coefficients, ((0, 0), (0, 0), (0, -n % lanes)))
            self._arguments[name] = (*self.cells.arguments(dtype), padded.astype(dtype).ravel(), n)
        arguments = self._arguments[name]
        return lambda x, out, begin, end: core.cubics(*arguments, x, out, begin, end)
