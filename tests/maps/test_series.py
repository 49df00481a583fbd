"""The chi-squared series: its identities, its parameters, and the errors it promises."""

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilbin.kernels import Chi2
from hilbin.maps import AdditiveMap, series
from hilbin.maps.density import density

UNIVERSAL = {  # spec: sup of x R(x)^2 on [0, 1] and the parameters
    1: (5.5728e-2, [0.61803399]),
    2: (1.0205e-2, [0.76732699, 0.1316525]),
    3: (2.6583e-3, [0.83184516, 0.24854765, 0.03454466]),
    4: (8.4194e-4, [0.86817586, 0.33893507, 0.0803144, 0.01094746]),
    5: (3.0339e-4, [0.8915371, 0.4101862, 0.12627972, 0.02900625, 0.00394514]),
    6: (1.2003e-4, [0.90783912, 0.46760941, 0.1698941, 0.05019932, 0.01147925, 0.00156082]),
    7: (5.1015e-5, [0.919868282, 0.514822471, 0.210410192, 0.0727794716, 0.0213526316]),
    8: (2.2960e-5, [0.929112851, 0.554311953, 0.247742241, 0.0957720145, 0.0328040401]),
    9: (1.0831e-5, [0.936440914, 0.587826908, 0.282051036, 0.118623627, 0.0452896129]),
}
positive = st.floats(1e-6, 1e6)


def mapped(x, k):
    """Through the public map, with parameters given."""
    feature_map = AdditiveMap(Chi2(), parameters=k).fit(np.ones((1, 1)))
    return feature_map.transform(np.asarray(x, float)[:, None])


@given(st.lists(positive, min_size=1, max_size=6), st.lists(positive, min_size=1, max_size=9))
def test_identities(x, k):
    x, k = np.array(x), np.array(k)
    c = mapped(x, k)
    np.testing.assert_allclose(c, oracles.chi2_series(x, k), rtol=1e-11, atol=0)
    R = series.residual(k, x)
    K = oracles.harmonic(x[:, None], x)
    size = np.sqrt(np.outer(x, x))
    assert np.all(np.abs(K - c @ c.T - np.outer(R, R) * K) <= 1e-13 * size)
    np.testing.assert_allclose(
        np.sum(c**2, axis=1), x * (1 - R**2), rtol=1e-9, atol=1e-14 * x.max()
    )


def test_features_of_the_parameters_are_their_cholesky_factor():
    k = np.geomspace(1, 1e-4, 7)
    L = mapped(k, k)
    assert np.allclose(np.triu(L, 1), 0, atol=1e-15)
    np.testing.assert_allclose(L @ L.T, oracles.harmonic(k[:, None], k), atol=1e-14)


def test_series_is_the_projection_on_its_parameters():
    x, k = np.geomspace(1e-4, 2, 50), series.zolotarev(1e-3, 1.0, 5)
    c = mapped(x, k)
    cross = oracles.harmonic(x[:, None], k)
    projected = cross @ np.linalg.solve(oracles.harmonic(k[:, None], k), cross.T)
    np.testing.assert_allclose(c @ c.T, projected, atol=1e-6)


def test_order_of_parameters_does_not_matter():
    x, k = np.geomspace(1e-3, 1, 20), series.universal(1.0, 5)
    a, b = mapped(x, k), mapped(x, k[[3, 0, 4, 1, 2]])
    np.testing.assert_allclose(a @ a.T, b @ b.T, atol=1e-15)


def test_zolotarev_values():
    expected = [6.18817200e-1, 8.31113303e-2, 1e-2, 1.20320538e-3, 1.61598611e-4]
    np.testing.assert_allclose(series.zolotarev(1e-4, 1.0, 5), expected, rtol=1e-8)
    expected = [0.64878087, 0.1, 0.01541352]
    np.testing.assert_allclose(series.zolotarev(1e-2, 1.0, 3), expected, rtol=1e-7, atol=5e-9)


@pytest.mark.parametrize(
    ("low", "n", "expected"),
    [
        (1e-2, 5, 3.254721e-2),
        (1e-4, 9, 3.025451e-2),
        (1e-8, 9, 2.123734e-1),
        (1e-12, 9, 4.309334e-1),
    ],
)
def test_zolotarev_error(low, n, expected):
    k = series.zolotarev(low, 1.0, n)
    worst = np.sqrt(series.worst_case(k, low, 1.0)[1])
    assert worst == pytest.approx(expected, rel=1e-5)
    assert abs(series.residual(k, np.ones(1))[0]) == pytest.approx(expected, rel=1e-5)
    assert worst <= 2 * np.exp(-(np.pi**2) * n / (2 * np.log(4 / low)))


@given(st.floats(1e-12, 0.999), st.integers(1, 40), positive)
def test_zolotarev_equioscillates(ratio, n, high):
    k = series.zolotarev(ratio * high, high, n)
    assert np.all(np.diff(k) < 0)
    assert ratio * high <= k[-1] * (1 + 1e-9)
    assert k[0] <= high * (1 + 1e-9)
    inner = series._maxima(np.sort(np.log(k)), 0.0, np.log(high))[1][:-1]
    ends = 2 * np.log(np.abs(series.residual(k, np.array([ratio * high, high]))))
    peaks = np.exp(np.append(inner, ends) / 2)
    if peaks.max() > 1e-9:
        assert np.ptp(peaks) <= 1e-6 * peaks.max()


@given(st.floats(-307, 0), st.floats(-307, 308), st.integers(1, 40))
def test_zolotarev_of_any_floats(log_ratio, log_high, n):
    """Parameters scale with the values, and are symmetric about the geometric mean."""
    log_low = max(log_high + 2 * log_ratio, -307)  # ratios down to 1e-600
    low, high = 10.0 ** min(log_low, log_high), 10.0**log_high
    k = series.zolotarev(low, high, n)
    assert np.all(np.isfinite(k))
    assert np.all((low * (1 - 1e-9) <= k) & (k <= high * (1 + 1e-9)))
    assert np.all(np.diff(k) <= 0)
    middle = np.log(low) + np.log(high)
    np.testing.assert_allclose(np.log(k) + np.log(k[::-1]), middle, atol=1e-9 * (1 + abs(middle)))
    if low / high > 1e-150:
        scaled = high * series.zolotarev(low / high, 1.0, n)
        np.testing.assert_allclose(k, scaled, rtol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_zolotarev_is_continuous_where_the_square_of_the_ratio_underflows(n):
    """In log k the parameters are nearly lines in the logarithm of the ratio."""
    exponents = np.arange(100.0, 301, 20)
    logs = np.log([series.zolotarev(10.0**-e, 1.0, n) for e in exponents])
    assert np.abs(np.diff(logs, 2, axis=0)).max() < 1e-9 * np.abs(logs).max()


@pytest.mark.parametrize("n", UNIVERSAL)
def test_universal_values(n):
    error, k = UNIVERSAL[n]
    found = series.universal(1.0, n)
    np.testing.assert_allclose(found[: len(k)], k, rtol=1e-8, atol=5.1e-9)
    assert series.worst_case(found, 1e-3, 1.0)[0] == pytest.approx(error, rel=1e-4)
    grid = np.geomspace(1e-9, 1, 20_001)
    assert np.max(grid * series.residual(found, grid) ** 2) == pytest.approx(error, rel=1e-3)


@pytest.mark.parametrize("n", [1, 12, 16, 33, 64])
def test_universal_is_minimax(n):
    k = series.universal(1.0, n)
    peaks = series._maxima(np.sort(np.log(k)), 1.0, 0.0)[1]
    assert np.ptp(peaks) < 1e-9
    assert 0.59 <= np.exp(peaks[0]) / (8 * np.exp(-np.pi * np.sqrt(2 * n))) <= 1


@given(st.lists(positive, min_size=1, max_size=9, unique=True), positive, st.floats(1e-6, 1))
def test_worst_case_is_the_supremum(k, high, ratio):
    k, low = np.array(k), ratio * high
    absolute, relative = series.worst_case(k, low, high)
    grid = np.concatenate([np.geomspace(1e-9 * high, high, 5001), k[k <= high]])
    near = np.concatenate([grid, *(k * (1 + e) for e in (-0.3, -0.1, 0.1, 0.3))])
    near = near[near <= high]
    found = near * series.residual(k, near) ** 2
    assert found.max() <= absolute * (1 + 1e-9)
    assert found.max() >= absolute * 0.99
    inside = near[near >= low]
    assert np.max(series.residual(k, np.append(inside, low)) ** 2) <= relative * (1 + 1e-9) + 1e-15


def test_parameters_scale_with_the_values():
    x = np.random.default_rng(0).gamma(0.3, size=(100, 5)) + 1e-6
    once = AdditiveMap(Chi2(), method="series").fit(x)
    scaled = AdditiveMap(Chi2(), method="series").fit(1000 * x)
    np.testing.assert_allclose(scaled.parameters_, 1000 * once.parameters_, rtol=1e-4)


@given(st.integers(0, 100), st.integers(1, 12))
def test_fitted_is_no_worse_than_its_starts(seed, n):
    x = np.random.default_rng(seed).gamma(0.2, size=(200, 3)) + 1e-7
    values = density(Chi2(), x)
    objective = values.with_floor(series.FLOOR) * values.x

    def trace(k):
        return objective @ series.residual(k, values.x) ** 2

    fitted = trace(series.fitted(values, n))
    assert fitted <= trace(series.zolotarev(values.low, values.high, n)) * (1 + 1e-9)
    assert fitted <= trace(series.universal(values.high, n)) * (1 + 1e-9)


def test_gradient_of_the_trace():
    s, mass = np.linspace(-8, 0, 40), np.linspace(1, 2, 40)
    t = np.array([-6.0, -3.0, -2.9, -0.5])
    value, gradient = series._log_trace(t, s, mass)
    for j in range(t.size):
        moved = t + 1e-6 * (np.arange(t.size) == j)
        slope = (series._log_trace(moved, s, mass)[0] - value) / 1e-6
        assert gradient[j] == pytest.approx(slope, abs=1e-4)


def test_greedy_follows_the_paper():
    x = np.geomspace(1e-3, 1, 60)[:, None]
    values = density(Chi2(), x)
    for by, share in (("mass", values.mass), ("density", values.mass / values.x)):
        expected = oracles.greedy_parameters(values.x, share, 6)
        np.testing.assert_allclose(series.greedy(values, 6, by), expected, rtol=1e-9)
