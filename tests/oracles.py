"""Slow, obvious versions of every fast thing, in float64."""

import numpy as np
from scipy.integrate import quad


def pairwise(function, X, Y=None):
    """K_ij = sum_d function(x_id, y_jd), one pair of rows at a time."""
    X = np.asarray(X, dtype=np.float64)
    Y = X if Y is None else np.asarray(Y, dtype=np.float64)
    return np.array([[np.sum(function(x, y)) for y in Y] for x in X])


def minimum(x, y):
    return np.minimum(x, y)


def harmonic(x, y):
    total = x + y
    return np.divide(2 * x * y, total, out=np.zeros_like(total), where=total > 0)


def harmonic_difference(x, y):
    return (x + y) / 2 - harmonic(x, y)


def jensen_shannon(x, y):
    def side(a, b):
        total = a + b
        ratio = np.divide(total, a, out=np.ones_like(total), where=a > 0)
        return a * np.log2(ratio) / 2

    return side(x, y) + side(y, x)


def hellinger(x, y):
    return np.sqrt(x * y)


def squared(x, y):
    return (x - y) ** 2


def absolute(x, y):
    return np.abs(x - y)


def log_difference(x, y):
    return (x - y) * (np.log(x) - np.log(y))


def additive(kernel):
    """The one-dimensional function of an additive kernel, from its three parts."""

    def function(x, y):
        weight = kernel.weight(x) * kernel.weight(y)
        with np.errstate(all="ignore"):
            t = np.abs(kernel.coordinate(x) - kernel.coordinate(y))
        return np.where(weight == 0, 0, weight * kernel.profile(np.where(weight == 0, 0, t)))

    return function


def ball_overlap(u, n):
    """Share of the volume two n-balls have in common, by quadrature of cos^n."""
    if u >= 1:
        return 0.0
    whole = quad(lambda t: np.cos(t) ** n, 0, np.pi / 2, epsabs=0, epsrel=1e-12)[0]
    return (
        quad(lambda t: np.cos(t) ** n, np.arcsin(u), np.pi / 2, epsabs=0, epsrel=1e-12)[0] / whole
    )


def gcs(X, Y, radius, dim):
    return np.array(
        [[ball_overlap(np.linalg.norm(x - y) / (2 * radius), dim) for y in Y] for x in X]
    )


def centred_alignment(K, y):
    """<HKH, HLH> / (|HKH| |HLH|), L the one-hot Gram matrix, with H written out."""
    n = len(y)
    H = np.eye(n) - 1 / n
    L = (np.asarray(y)[:, None] == np.asarray(y)[None]).astype(float)
    A, B = H @ K @ H, H @ L @ H
    return np.sum(A * B) / np.linalg.norm(A) / np.linalg.norm(B)


def chi2_series(x, k):
    """c_j(x) = 2 sqrt(k_j) x / (x + k_j) prod_{l<j} (x - k_l) / (x + k_l), one number at a time."""
    out = np.zeros((len(x), len(k)))
    for i, value in enumerate(x):
        product = 1.0
        for j, parameter in enumerate(k):
            out[i, j] = 2 * np.sqrt(parameter) * value / (value + parameter) * product
            product *= (value - parameter) / (value + parameter)
    return out


def greedy_parameters(x, share, n):
    """Algorithm 1: always the value with the largest remaining error; values are at most 1."""
    error, k = x / (x + 1) * share, []
    for _ in range(n):
        k.append(x[np.argmax(np.abs(error))])
        error = error * (x - k[-1]) / (x + k[-1])
    return np.array(k)


def two_nodes(function, x, nodes):
    """Coordinates of a value on its two neighbouring nodes, by the pseudo-inverse."""
    phi = np.zeros(len(nodes))
    if x == 0:
        return phi
    upper = int(np.searchsorted(nodes, x, side="right"))
    chosen = [i for i in (upper - 1, upper) if 0 <= i < len(nodes)]
    z = nodes[chosen]
    phi[chosen] = np.linalg.pinv(function(z[:, None], z), rcond=1e-14) @ function(
        z, np.full_like(z, x)
    )
    return phi
