r"""Parameters of the chi-squared series.

With :math:`R(x) = \prod_j (x - k_j) / (x + k_j)` the series
:math:`c_j(x) = 2 \sqrt{k_j}\, x / (x + k_j) \prod_{l<j} (x - k_l) / (x + k_l)` leaves exactly
:math:`k(x, y) - \langle c(x), c(y) \rangle = R(x) R(y) k(x, y)`, itself a kernel. Its largest value
on :math:`[0, b]` is therefore :math:`\sup x R(x)^2`. In :math:`s = \log x`, with
:math:`t_j = \log k_j`, :math:`R = \prod_j \tanh((s - t_j) / 2)`, and the slope of
:math:`\log(x R^2)`, :math:`1 + \sum_j 2 / \sinh(s - t_j)`, falls between neighboring :math:`t_j`:
there is one maximum per gap, so the supremum is found with certainty.

Li, Lebanon and Sminchisescu, *A Linear Approximation to the chi-squared Kernel with Geometric
Convergence*; the minimax parameters solve Zolotarev's third problem.
"""

import functools

import numpy as np
from scipy.optimize import minimize
from scipy.special import ellipj, ellipk, ellipkm1

from hilbin._arrays import Array
from hilbin.maps.density import Density

FLOOR = 0.05  # share of the mass spread evenly, so that rare values are not given up


def residual(k: Array, x: Array) -> Array:
    """Return ``R(x)``."""
    return np.prod((x[:, None] - k) / (x[:, None] + k), axis=1)


def terms(x: Array, k: Array) -> Array:
    """Return ``c_j(x)``: values x terms."""
    factors = (x[:, None] - k) / (x[:, None] + k)
    before = np.cumprod(np.hstack([np.ones((x.size, 1)), factors[:, :-1]]), axis=1)
    return 2 * np.sqrt(k) * (x[:, None] / (x[:, None] + k)) * before


def worst_case(k: Array, low: float, high: float) -> tuple[float, float]:
    """Return ``sup x R(x)^2`` on ``[0, high]`` and ``sup R(x)^2`` on ``[low, high]``."""
    t = np.sort(np.log(k))
    absolute = _maxima(t, 1.0, np.log(high))[1]
    inner, peaks = _maxima(t, 0.0, np.log(high))
    ends = 2 * np.log(np.abs(residual(k, np.array([low, high]))) + 1e-300)
    inside = peaks[inner >= np.log(low)]
    return float(np.exp(absolute.max())), float(np.exp(max([*ends, *inside])))


def zolotarev(low: float, high: float, n: int) -> Array:
    """Return the ``k`` that minimize ``max |R|`` on ``[low, high]``, descending.

    ``k_j = high dn((2j - 1) K / (2n))`` of Jacobi's elliptic function; where the modulus rounds to
    1 by theta functions of the complementary nome, half of them, and the rest by symmetry.
    """
    log_ratio = np.log(low) - np.log(high)  # the ratio itself, or its square, may be no float
    if log_ratio == 0:
        return np.full(n, high)
    small = np.exp(2 * log_ratio)  # the complement of the squared modulus
    period = ellipkm1(small) if small > 1e-20 else np.log(4) - log_ratio
    other = ellipk(small)
    u = (2 * np.arange(1, n + 1) - 1) * period / (2 * n)
    if log_ratio > np.log(0.6):
        return high * ellipj(u, 1 - small)[2]
    half = n // 2
    log_nome, w = -np.pi * period / other, (np.pi * u[:half] / (2 * other))[:, None]
    m = np.arange(40)

    def pairs(log_size: Array, times: Array) -> Array:
        # cosh alone, or the power of the nome alone, may leave the range of floats
        return np.exp(log_size + times * w) + np.exp(log_size - times * w)

    even = pairs(log_nome * m**2, 2 * m).sum(axis=1) - 1  # m = 0 once
    odd = pairs(log_nome * (m + 0.5) ** 2, 2 * m + 1).sum(axis=1)
    middle = np.sqrt(low) * np.sqrt(high)
    above = even / odd  # over the middle
    return np.concatenate([middle * above, [middle] * (n % 2), (middle / above)[::-1]])


def universal(high: float, n: int) -> Array:
    """Return the ``k`` that minimize ``sup x R(x)^2`` on ``[0, high]``, descending."""
    return high * np.exp(_equioscillating(n))


@functools.cache
def _equioscillating(n: int) -> Array:
    """Return ``log k`` on [0, 1], by Newton's method on the differences of neighboring maxima."""
    t = np.sort(np.log(zolotarev(8 * np.exp(-np.pi * np.sqrt(2 * n)), 1.0, n)))
    for _ in range(100):
        at, peaks = _maxima(t, 1.0, 0.0)
        uneven = np.diff(peaks)
        if np.max(np.abs(uneven)) < 1e-13 * n:
            break
        slopes = np.diff(-2 / np.sinh(at[:, None] - t), axis=0)
        step = np.linalg.solve(slopes, uneven)
        # no parameter may pass its neighbor, nor leave [0, 1]
        room = np.diff(np.append(t, 0.0))
        t = t - step * min(1.0, 0.4 * float(np.min(room / np.maximum(np.abs(step), 1e-300))))
    return t[::-1]


def _maxima(t: Array, power: float, end: float) -> tuple[Array, Array]:
    """Return where ``power s + log R(s)^2`` has maxima, one per gap of ``t``, and how large.

    With ``power`` 1 there is one left of the first ``t``, too, and always one at ``end``.
    """
    low, high = t[:-1], t[1:]
    if power:
        low, high = np.append(t[0] - 40, low), np.append(t[0], high)
    low, high = low.copy(), high.copy()
    with np.errstate(all="ignore"):
        for _ in range(60):
            middle = (low + high) / 2
            rising = power + np.sum(2 / np.sinh(middle[:, None] - t), axis=1) > 0
            low, high = np.where(rising, middle, low), np.where(rising, high, middle)
        at = np.minimum(np.append(middle if t.size > 1 or power else low, end), end)
        R = np.tanh((at[:, None] - t) / 2)
        return at, power * at + 2 * np.sum(np.log(np.abs(R) + 1e-300), axis=1)


def fitted(values: Density, n: int) -> Array:
    """Return the ``k`` that minimize the expected ``x R(x)^2``, descending."""
    return np.exp(landmarks(values, n))


def landmarks(values: Density, n: int, scale: float = 1.0) -> Array:
    """Return ``log k`` of the fitted parameters, descending.

    They are good landmarks for another kernel, too: ``scale`` is then the ratio of the widths of
    the chi-squared profile and the kernel's, ``log x`` is ``scale u`` and ``x`` is ``r^2``.
    """
    s, mass = scale * values.u, values.with_floor(FLOOR) * values.weight**2
    if s.size <= n:
        return _filled(s, n)
    starts = [np.linspace(s[0], s[-1], 2 * n + 1)[1::2]]
    if s[-1] - s[0] < 300:  # beyond, exp() leaves the range of floats
        ends = np.exp(s[[0, -1]] - s[-1])
        starts = [np.log(zolotarev(ends[0], 1.0, n)) + s[-1], _equioscillating(n) + s[-1]]
    bounds = [(s[0] - 3, s[-1] + 3)] * n
    options = {"maxiter": 500, "ftol": 1e-14, "gtol": 1e-9}
    found = [
        minimize(_log_trace, t, (s, mass), "L-BFGS-B", jac=True, bounds=bounds, options=options)
        for t in starts
    ]
    return np.sort(min(found, key=lambda f: f.fun).x)[::-1]


def _filled(s: Array, n: int) -> Array:
    """Return ``n`` parameters: all of ``s`` and the universal ones that are farthest from any."""
    others = _equioscillating(n) + s[-1]
    apart = np.abs(others[:, None] - s).min(axis=1)
    return np.sort(np.append(s, others[np.argsort(-apart)[: n - s.size]]))[::-1]


def _log_trace(t: Array, s: Array, mass: Array) -> tuple[float, Array]:
    """Return ``log sum mass R(s)^2`` and its gradient."""
    factors = np.tanh((s[:, None] - t) / 2)
    ones = np.ones((s.size, 1))
    before = np.cumprod(np.hstack([ones, factors[:, :-1]]), axis=1)
    after = np.cumprod(np.hstack([ones, factors[:, :0:-1]]), axis=1)[:, ::-1]
    without = before * after
    R = without[:, 0] * factors[:, 0]
    total = max(float(mass @ R**2), 1e-300)
    gradient = (2 * mass * R) @ (without * (factors**2 - 1) / 2)
    return float(np.log(total)), gradient / total


def greedy(values: Density, n: int, by: str = "mass") -> Array:
    """Choose one ``k`` after the other where most of the error is: Algorithm 1 of the paper.

    Values are taken relative to the largest; ``by`` says whether a bin counts by its mass or by its
    mass per unit of ``x``.
    """
    x = values.x / values.high
    share = values.mass if by == "mass" else values.mass / x
    error, k = x / (x + 1) * share, []
    for _ in range(min(n, x.size)):
        k.append(x[np.argmax(np.abs(error))])
        error = error * (x - k[-1]) / (x + k[-1])
    return np.array(k) * values.high
