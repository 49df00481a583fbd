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
        ratio = np.divide(a + b, a, out=np.ones_like(a), where=a > 0)
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
