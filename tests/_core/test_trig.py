"""The compiled loops of random features against NumPy, at every instruction level."""

import importlib

import numpy as np
import pytest
from scipy.linalg import hadamard

from hilbin._core import LEVELS


@pytest.fixture(params=LEVELS)
def core(request):
    return importlib.import_module(f"hilbin._core._{request.param}")


@pytest.mark.parametrize(("dtype", "largest"), [(np.float32, 1e4), (np.float64, 1e6)])
def test_cosines_and_sines(core, dtype, largest):
    rng = np.random.default_rng(0)
    magnitudes = np.geomspace(1e-6, largest, 1000)[:, None]
    P = (magnitudes * rng.uniform(-1, 1, size=(1000, 37))).astype(dtype)
    P[0, :3] = 0, np.pi / 4, -np.pi / 2
    P[1] = largest
    out = np.full((1000, 74), np.nan, dtype)
    core.cosines_sines(P, out, 0.5, 0, 1000)
    x = P.astype(np.longdouble)
    expected = np.hstack([np.cos(x), np.sin(x)]) / 2
    np.testing.assert_allclose(out, expected.astype(np.float64), rtol=0, atol=np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_multiples_of_a_right_angle(core, dtype):
    P = (np.pi / 2 * np.arange(-4000, 4000)[:, None] * np.ones(16)).astype(dtype)
    out = np.empty((8000, 32), dtype)
    core.cosines_sines(P, out, 1.0, 0, 8000)
    x = P.astype(np.longdouble)
    expected = np.hstack([np.cos(x), np.sin(x)]).astype(np.float64)
    np.testing.assert_allclose(out, expected, rtol=0, atol=np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 3, 4, 8, 17])
def test_only_the_range_is_written(core, columns, dtype):
    P = np.random.default_rng(1).uniform(-9, 9, size=(6, columns)).astype(dtype)
    out = np.full((6, 2 * columns), 7, dtype)
    core.cosines_sines(P, out, 2.0, 1, 4)
    expected = 2 * np.hstack([np.cos(P), np.sin(P)])
    np.testing.assert_allclose(out[1:4], expected[1:4], rtol=0, atol=4 * np.finfo(dtype).eps)
    assert np.all(out[[0, 4, 5]] == 7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("p", [2**k for k in range(13)])
def test_hadamard(core, p, dtype):
    rng = np.random.default_rng(p)
    X = rng.standard_normal((4, p)).astype(dtype)
    signs = rng.choice([-1.0, 1.0], (3, p)).astype(dtype)
    rows = X.copy()
    core.hadamard(rows, signs / dtype(p) ** dtype(0.5), 1, 3)
    H, expected = hadamard(p) / np.sqrt(p), X[1:3].astype(np.float64)
    for sign in signs:
        expected = (expected * sign) @ H  # H is symmetric
    np.testing.assert_allclose(rows[1:3], expected, rtol=0, atol=40 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(rows[[0, 3]], X[[0, 3]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_hadamard_of_whole_numbers_is_exact(core, dtype):
    rows = np.eye(64, dtype=dtype)
    core.hadamard(rows, np.ones((1, 64), dtype), 0, 64)
    np.testing.assert_array_equal(rows, hadamard(64))


def test_bad_arguments_are_refused(core):
    P, out = np.ones((4, 3)), np.empty((4, 6))
    with pytest.raises(ValueError, match="out of bounds"):
        core.cosines_sines(P, out, 1.0, 0, 5)
    with pytest.raises(ValueError, match="shape"):
        core.cosines_sines(P, out[:, :5].copy(), 1.0, 0, 4)
    with pytest.raises(ValueError, match="power of two"):
        core.hadamard(P, np.ones((3, 3)), 0, 4)
    with pytest.raises(ValueError, match="out of bounds"):
        core.hadamard(np.ones((4, 4)), np.ones((3, 4)), 0, 5)
    with pytest.raises(ValueError, match="signs"):
        core.hadamard(np.ones((4, 4)), np.ones((3, 2)), 0, 4)
