"""A profile made into numbers: which form it takes, and how exact it is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilbin.kernels import Chi2, Hellinger, Intersection, JensenShannon
from hilbin.kernels.additive import TOLERANCE, fit_powers, tabulate
from hilbin.kernels.pairwise import pairwise_sum


@pytest.mark.parametrize(
    ("kernel", "dtype", "form"),
    [
        (Intersection(), np.float32, "powers2"),
        (Intersection(0.3), np.float64, "powers2"),
        (Chi2(), np.float32, "powers10"),
        (Chi2(), np.float64, "table"),
        (JensenShannon(), np.float32, "table"),
        (Hellinger(), np.float32, "table"),  # a constant does not fall off
    ],
)
def test_form(kernel, dtype, form):
    x = np.geomspace(1e-6, 1, 50).astype(dtype)[:, None]
    assert kernel.tabulated(x).name == form


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [Intersection(), Chi2(), JensenShannon()], ids=repr)
@given(low=st.floats(-14, 0), width=st.floats(1e-6, 18))
def test_error_over_any_range(kernel, dtype, low, width):
    """Relative to sqrt(x y), for the whole range and both forms."""
    x = np.geomspace(10**low, 10 ** (low + width), 60).astype(dtype)[:, None]
    exact = kernel.gram(x.astype(np.float64))
    by_profile = pairwise_sum(kernel.tabulated(x), x, None, None)
    size = np.sqrt(x * x.T.astype(np.float64))
    limit = 5e-6 if dtype == np.float32 else 1e-10
    assert np.max(np.abs(by_profile - exact) / size) <= limit


@pytest.mark.parametrize("rate", [0.01, 1.0, 300.0])
def test_exponentials_are_found_at_any_scale(rate):
    found = fit_powers(lambda t: np.exp(-rate * t), 20 / rate, np.dtype(np.float64))
    assert found is not None
    assert found[0] == pytest.approx(rate)
    np.testing.assert_allclose(found[1], [0, 1, 0], atol=1e-12)


@pytest.mark.parametrize(
    "profile",
    [
        lambda t: np.maximum(0, 1 - t),
        lambda t: np.cos(9 * t),
        lambda t: np.exp(-np.square(t) * 40),
        np.ones_like,
    ],
    ids=["kink", "wave", "bell", "constant"],
)
@pytest.mark.filterwarnings("ignore:the profile is tabulated with an error")
def test_other_profiles_take_the_table(profile):
    assert fit_powers(profile, 1.5, np.dtype(np.float32)) is None
    scale, cells = tabulate(profile, 1.5, np.dtype(np.float32))
    assert np.isfinite(cells).all()
    assert scale > 0


def test_tolerances_are_kept():
    span = 30.0
    for dtype in (np.float32, np.float64):
        found = fit_powers(Intersection().profile, span, np.dtype(dtype))
        assert found is not None
        t = np.linspace(0, span, 999)
        values = np.polynomial.polynomial.polyval(np.exp(-found[0] * t), found[1])
        assert np.abs(values - np.exp(-t / 2)).max() <= TOLERANCE[np.dtype(dtype).name]
