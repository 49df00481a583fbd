"""The compiled loops of explicit maps against plain NumPy, at every instruction level."""

import importlib

import numpy as np
import oracles
import pytest

from hilbin._core import LEVELS

SHIFT = {np.float32: 23 - 2, np.float64: 52 - 2}  # four cells per octave
EMPTY = np.empty(0, np.int32)


@pytest.fixture(params=LEVELS)
def core(request):
    return importlib.import_module(f"hilbin._core._{request.param}")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("terms", [1, 2, 3, 4, 5, 6, 7, 9, 64])
@pytest.mark.parametrize("count", [0, 1, 7, 8, 29])
def test_series(core, dtype, terms, count):
    x = np.geomspace(1e-5, 1e4, count + 1)[:count].astype(dtype)
    x[:1] = 0
    k = np.geomspace(10, 1e-3, terms).astype(dtype)
    out = np.full((count + 2) * terms, np.nan, dtype)
    inner = out[terms:-terms]
    core.series(x, k, (2 * np.sqrt(k)), inner, 0, count)
    expected = oracles.chi2_series(x.astype(float), k.astype(float))
    tolerance = 50 * np.finfo(dtype).eps
    np.testing.assert_allclose(
        inner.reshape(count, terms), expected, rtol=tolerance * terms, atol=1e-6
    )
    assert np.isnan(out[:terms]).all()  # nothing is written outside
    assert np.isnan(out[-terms:]).all()


def cubic_of_bits(coefficients, x, dtype, start):
    """Cells 0 = [0, start) and four per octave from there, found by logarithms."""
    last = coefficients.shape[0] - 1
    out = []
    for v in x.astype(float):
        octave = np.floor(np.log2(max(v, 1e-300) / start))
        quarter = np.floor((v / (start * 2.0**octave) - 1) * 4)
        cell, t = 1 + 4 * octave + quarter, (v / (start * 2.0**octave) - 1) * 4 - quarter
        if v < start:
            cell, t = 0, v / start
        if cell > last:
            cell, t = last, 1.0
        out.append(np.polynomial.polynomial.polyval(t, coefficients[int(cell)]))
    return np.array(out)


def padded(coefficients, core, dtype):
    lanes = core.short_vector_bytes // np.dtype(dtype).itemsize
    short = -coefficients.shape[2] % lanes
    return (
        np.pad(coefficients, ((0, 0), (0, 0), (0, short)), constant_values=9).astype(dtype).ravel()
    )


def bit_cells(start, dtype):
    integer = np.int32 if dtype == np.float32 else np.int64
    bits = np.array([start], dtype).view(integer)[0] >> SHIFT[dtype]
    return np.array([SHIFT[dtype], bits, start], float)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("functions", [1, 3, 4, 5, 8, 9, 16, 17, 40])
@pytest.mark.parametrize("count", [0, 1, 5, 8, 33])
def test_cubics_by_bits(core, dtype, functions, count):
    rng = np.random.default_rng(functions)
    start = 2.0**-6
    coefficients = rng.normal(size=(1 + 4 * 8, 4, functions))
    x = np.concatenate([[0.0, start, start / 3, 4.0, 1e9], rng.gamma(0.3, size=28)])[:count]
    x = x.astype(dtype)
    out = np.full((count + 2) * functions, np.nan, dtype)
    inner = out[functions:-functions]
    core.cubics(
        True,
        bit_cells(start, dtype),
        padded(coefficients, core, dtype),
        functions,
        x,
        inner,
        0,
        count,
    )
    expected = cubic_of_bits(coefficients, x, dtype, start)
    tolerance = 1e-4 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(
        inner.reshape(count, functions), expected.reshape(count, functions), atol=tolerance
    )
    assert np.isnan(out[:functions]).all()
    assert np.isnan(out[-functions:]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cubics_by_equal_steps(core, dtype):
    rng = np.random.default_rng(0)
    coefficients = rng.normal(size=(6, 4, 3))
    x = np.concatenate([[-5.0, -1.0, 2.0, 9.0], rng.uniform(-1, 2, size=20)]).astype(dtype)
    out = np.empty(x.size * 3, dtype)
    cells = np.array([-1.0, 2.0, 0.0])
    core.cubics(False, cells, padded(coefficients, core, dtype), 3, x, out, 0, x.size)
    at = np.clip((x.astype(float) + 1) * 2, 0, 6)
    cell = np.minimum(at.astype(int), 5)
    polynomials = zip(at - cell, coefficients[cell], strict=True)
    expected = np.array([np.polynomial.polynomial.polyval(t, c) for t, c in polynomials])
    np.testing.assert_allclose(
        out.reshape(-1, 3), expected, atol=1e-4 if dtype == np.float32 else 1e-12
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("zeros", [False, True])
def test_two_nodes(core, dtype, stored, zeros):
    """Linear interpolation between nodes 1, 1.4 and 2 on the cells [0, 1), [1, 1.25), ..."""
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 2, size=(9, 13)) * (rng.uniform(size=(9, 13)) < 0.6 if zeros else 1)
    X = X.astype(dtype)
    keep = X != 0
    counts = keep.sum(axis=1)
    indptr = np.append(0, np.cumsum(2 * counts))
    start, width = np.array([0, 1, 1.25, 1.5, 1.75]), np.array([1, 0.25, 0.25, 0.25, 0.25])
    node = np.array([0, 0, -1, 1, 1, 0, 1], np.int32)  # cell 2 is divided at 1.4, in parts 0 and 1
    starts, widths = np.append(start, [1.25, 1.4]), np.append(width, [0.15, 0.1])
    lower = np.where(node == 1, 1.4, 1.0)
    gap = np.where(node == 1, 0.6, 0.4)
    rise = np.stack([(starts - lower) / gap, widths / gap, 0 * gap, 0 * gap], axis=1)
    pairs = np.stack([[1, 0, 0, 0] - rise, rise], axis=2).astype(dtype).ravel()
    parts = np.array([1.25, 1.4, np.inf], dtype), (1 / np.array([0.15, 0.1])).astype(dtype)
    indices, weights = np.full(indptr[-1], -1, np.int32), np.full(indptr[-1], np.nan, dtype)
    values, columns = (
        (X[keep], np.nonzero(keep)[1].astype(np.int32)) if stored else (X.ravel(), EMPTY)
    )
    for begin, end in ((4, 9), (0, 4)):
        core.two_nodes(
            True, bit_cells(1.0, dtype), node, pairs, *parts, 3, values, columns, 13, True,
            indptr, indices, weights, begin, end,
        )  # fmt: skip
    x, column = X[keep].astype(float), np.nonzero(keep)[1]
    upper = x >= dtype(1.4)
    share = np.where(upper, (x - 1.4) / 0.6, (x - 1) / 0.4)
    np.testing.assert_array_equal(indices[::2], 3 * column + upper)
    np.testing.assert_array_equal(indices[1::2], 3 * column + upper + 1)
    tolerance = 20 * np.finfo(dtype).eps
    np.testing.assert_allclose(weights[::2], 1 - share, atol=tolerance)
    np.testing.assert_allclose(weights[1::2], share, atol=tolerance)


def test_spread_indices(core):
    out = np.empty(12, np.int32)
    core.spread_indices(np.array([0, 2, 5, 1], np.int32), 3, out, 0, 4)
    np.testing.assert_array_equal(out, [0, 1, 2, 6, 7, 8, 15, 16, 17, 3, 4, 5])


def test_wrong_shapes_are_refused(core):
    x, k = np.ones(4), np.ones(2)
    with pytest.raises(ValueError, match="out has the wrong length"):
        core.series(x, k, k, np.empty(7), 0, 4)
    with pytest.raises(ValueError, match="range out of bounds"):
        core.series(x, k, k, np.empty(8), 0, 5)
    with pytest.raises(ValueError, match="wrong number of terms"):
        core.series(x, np.ones(65), np.ones(65), np.empty(4 * 65), 0, 4)
    with pytest.raises(ValueError, match="wrong number of coefficients"):
        core.cubics(True, np.array([50.0, 0, 1]), np.ones(3), 1, x, np.empty(4), 0, 4)
    with pytest.raises(ValueError, match="three numbers"):
        core.cubics(True, np.ones(2), np.ones(16), 1, x, np.empty(4), 0, 4)
    with pytest.raises(ValueError, match="out has the wrong length"):
        core.spread_indices(EMPTY, 3, np.empty(1, np.int32), 0, 0)
