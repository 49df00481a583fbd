"""A profile, given as a function, made into numbers that the compiled core reads.

Two forms. A profile that falls off like ``exp(-rate t)``, as those of homogeneous kernels do, is
often a polynomial of low degree in ``q = exp(-rate t)``; then no look-up is needed, since for two
values ``q`` is the smaller of ``exp(rate (u - v))`` and ``exp(rate (v - u))``. Any other profile is
a table: with ``v = 1 + scale * t`` every octave of ``v`` has the same number of cells, so that
cells are fine near 0 and widen with the distance.
"""

import warnings
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from numpy.polynomial import Chebyshev, Polynomial

from hilbin._arrays import Array, Function
from hilbin._core import core
from hilbin.kernels._pairwise import Op

DEGREES = (2, 6, 10)  # of the polynomials that are compiled
MOST_OCTAVES = 14
TINY = np.finfo(np.float64).tiny
TOLERANCE = {"float32": 1e-6, "float64": 1e-12}  # of a polynomial; a table's error is like it


def profile_op(
    profile: Function,
    parts: Callable[[Array], tuple[Array, Array]],
    span: float,
    dtype: npt.DTypeLike,
    vanishes: bool,
) -> Op:
    """The op for ``r(x) r(y) P(|u(x) - u(y)|)``; ``parts`` gives ``u`` and ``r`` of values."""
    powers = fit_powers(profile, span, np.dtype(dtype))
    if powers is None:
        scale, cells = tabulate(profile, span, np.dtype(dtype))

        def positions(x: Array) -> tuple[Array, Array]:
            u, r = parts(x)
            return scale * u, r

        return Op("table", positions, vanishes, cells)
    rate, coefficients = powers

    def exponentials(x: Array) -> tuple[Array, Array, Array]:
        u, r = parts(x)
        rise = np.exp(rate * u)
        return rise, 1 / rise, r

    return Op(f"powers{coefficients.size - 1}", exponentials, vanishes, coefficients)


def fit_powers(profile: Function, span: float, dtype: np.dtype) -> tuple[float, Array] | None:
    """Rate and coefficients of the polynomial in ``exp(-rate t)``, or None if there is none.

    The rate is that at which the profile falls off at the far end. The error is measured with the
    arithmetic of ``dtype``.
    """
    near, far = profile(np.array([0.9 * span, span]))
    rate = np.log(near / far) / (0.1 * span) if near > far > 0 else 0.0
    if not 1 < rate * span < np.log(np.finfo(dtype).max):
        return None  # over so short a span coefficients grow huge, over so long a one exp overflows
    t = np.linspace(0, span, 4096)
    exact, q = profile(t), np.exp(-rate * t).astype(dtype)
    for degree in DEGREES:
        domain = [np.exp(-rate * span), 1]
        series = Chebyshev.interpolate(lambda q: profile(-np.log(q) / rate), degree, domain)
        coefficients = series.convert(kind=Polynomial).coef.astype(dtype)
        fitted = np.polynomial.polynomial.polyval(q, coefficients)
        if np.max(np.abs(fitted - exact)) <= TOLERANCE[dtype.name] * np.max(np.abs(exact)):
            return rate, np.pad(coefficients, (0, degree + 1 - coefficients.size))
    return None


def tabulate(profile: Function, span: float, dtype: np.dtype) -> tuple[float, Array]:
    """Scale of the coordinate and coefficients of the cells on ``[0, span]``.

    A cell is a line in ``v`` (float32) or a cubic in ``v - start`` (float64) through values inside
    it; the number of octaves is the one with the least error measured between those values. A
    profile with a kink, or very narrow for the span, warns of the error that is left.
    """
    candidates = [_table(profile, span, octaves, dtype) for octaves in range(1, MOST_OCTAVES + 1)]
    error, scale, cells = min(candidates, key=lambda candidate: candidate[0])
    if not np.isfinite(error):
        raise ValueError(f"the profile is not finite on [0, {span:g}]")
    if error > 10 * TOLERANCE[dtype.name]:
        warnings.warn(
            f"the profile is tabulated with an error of {error:.1e} on [0, {span:g}]: it has a "
            "kink or is narrow there; a compiled op of its own would be exact",
            UserWarning,
            stacklevel=2,
        )
    return scale, cells


def _table(
    profile: Function, span: float, octaves: int, dtype: np.dtype
) -> tuple[float, float, Array]:
    # The last cell begins at 2^octaves, so that rounding at the far end stays inside the table.
    scale = (2.0**octaves - 1) / span if span > 0 else 1.0
    per_octave = core.table_cells_per_octave
    steps = np.arange(octaves * per_octave + 1)
    size = 2.0 ** (steps // per_octave) / per_octave
    start = 2.0 ** (steps // per_octave) + (steps % per_octave) * size

    degree = 1 if dtype == np.float32 else 3
    nodes = (1 - np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))) / 2  # Chebyshev's
    between = np.linspace(0, 1, 2 * degree + 1)

    def values(at: Array) -> Array:
        return profile((start[:, None] + size[:, None] * at - 1) / scale).astype(np.float64)

    cells = values(nodes) @ np.linalg.inv(np.vander(nodes, increasing=True)).T
    fitted = cells @ np.vander(between, degree + 1, increasing=True).T
    exact = values(between)
    error = float(np.max(np.abs(fitted - exact)) / max(np.max(np.abs(exact)), TINY))
    cells /= size[:, None] ** np.arange(degree + 1)
    if degree == 1:
        cells[:, 0] -= cells[:, 1] * start
    return error, scale, cells.ravel()
