"""The same kernels as other libraries, or NumPy, compute them."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from data import Array
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import (
    additive_chi2_kernel,
    chi2_kernel,
    laplacian_kernel,
    manhattan_distances,
    rbf_kernel,
)

from hilbin.kernels import (
    Chi2,
    Exponential,
    Gaussian,
    Intersection,
    JensenShannon,
    Kernel,
    Laplace,
)

Y_BLOCK = 128  # rows: with 512 bins the temporaries stay in the second cache


def scipy_intersection(X: Array, Y: Array) -> Array:
    """``min(a, b) = (a + b - |a - b|) / 2``: the fastest way through SciPy, in float64."""
    return 0.5 * (X.sum(axis=1)[:, None] + Y.sum(axis=1) - cdist(X, Y, "cityblock"))


def sklearn_intersection(X: Array, Y: Array) -> Array:
    """The same through scikit-learn, which keeps float32."""
    return 0.5 * (X.sum(axis=1)[:, None] + Y.sum(axis=1) - manhattan_distances(X, Y))


def scipy_jensen_shannon(X: Array, Y: Array) -> Array:
    """``K = 1 - d^2`` for rows that sum to 1: SciPy's distance is the root of the divergence."""
    return 1 - np.square(cdist(X, Y, "jensenshannon")) / np.log(2)


def sklearn_exp_chi2(X: Array, Y: Array) -> Array:
    """As ``Exponential(Chi2(), gamma=1)``."""
    return chi2_kernel(X, Y, gamma=0.5)


def sklearn_gaussian(X: Array, Y: Array) -> Array:
    """As ``Gaussian(gamma=1)``."""
    return rbf_kernel(X, Y, gamma=1.0)


def sklearn_laplace(X: Array, Y: Array) -> Array:
    """As ``Laplace(gamma=1)``."""
    return laplacian_kernel(X, Y, gamma=1.0)


def numpy_jensen_shannon(X: Array, Y: Array) -> Array:
    """One logarithm per pair: ``K = (sum s log2 s - sum x log2 x - sum y log2 y) / 2``."""
    return _jensen_shannon(X, Y, np.log2, 1.0)


def numpy_jensen_shannon_natural(X: Array, Y: Array) -> Array:
    """The same by the natural logarithm, which NumPy vectorizes on more processors."""
    return _jensen_shannon(X, Y, np.log, np.log(2))


def _jensen_shannon(X: Array, Y: Array, log: np.ufunc, unit: float) -> Array:
    out = np.empty((len(X), len(Y)), dtype=X.dtype)
    for begin in range(0, len(Y), Y_BLOCK):
        y = Y[begin : begin + Y_BLOCK]
        sums, logs = np.empty_like(y), np.empty_like(y)
        for i, x in enumerate(X):
            np.add(x, y, out=sums)
            _entropies(sums, log, logs, out[i, begin : begin + Y_BLOCK])
    for Z, shape in ((X, (-1, 1)), (Y, (1, -1))):
        out -= _entropies(Z.copy(), log, np.empty_like(Z), np.empty(len(Z), Z.dtype)).reshape(shape)
    out *= out.dtype.type(0.5 / unit)
    return out


def _entropies(Z: Array, log: np.ufunc, logs: Array, out: Array) -> Array:
    np.maximum(Z, np.finfo(Z.dtype).tiny, out=Z)  # 0 log 0 = 0
    return np.vecdot(Z, log(Z, out=logs), out=out)


def numpy_jensen_shannon_definition(X: Array, Y: Array) -> Array:
    """The definition as one writes it, a row at a time: two divisions and two logarithms."""
    out = np.empty((len(X), len(Y)), dtype=X.dtype)
    for i, x in enumerate(X):
        s = x + Y
        with np.errstate(divide="ignore", invalid="ignore"):
            left = np.where(x > 0, x * np.log2(s / x), 0)
            right = np.where(Y > 0, Y * np.log2(s / Y), 0)
        out[i] = (left + right).sum(axis=1) / 2
    return out


def numpy_jensen_shannon_blocked(X: Array, Y: Array) -> Array:
    """The definition again, in blocks of Y that stay in the cache and without temporaries of 0."""
    out = np.empty((len(X), len(Y)), dtype=X.dtype)
    tiny = np.finfo(X.dtype).tiny
    for begin in range(0, len(Y), Y_BLOCK):
        y = Y[begin : begin + Y_BLOCK]
        y_safe = np.maximum(y, tiny)
        for i, x in enumerate(X):
            s = np.maximum(x + y, tiny)
            sides = np.vecdot(np.log2(s / np.maximum(x, tiny)), x)
            sides += np.vecdot(np.log2(s / y_safe), y)
            out[i, begin : begin + Y_BLOCK] = sides / 2
    return out


class Peer(NamedTuple):
    """A way to compute ``kernel`` without hilbin; ``same`` turns its result into the kernel's."""

    label: str
    kernel: Kernel
    call: Callable[[Array, Array], Array]
    required: float | None = None
    dtype: type = np.float32
    numpy: bool = False
    same: Callable[[Array, Array, Array], Array] = lambda K, X, Y: K


ADDITIVE = {
    "Intersection": [
        Peer(
            "SciPy cdist cityblock",
            Intersection(),
            scipy_intersection,
            required=14,
            dtype=np.float64,
        )
    ],
    "Chi2": [
        Peer(
            "scikit-learn additive_chi2_kernel",
            Chi2(),
            additive_chi2_kernel,
            required=12,
            same=lambda K, X, Y: (K + X.sum(axis=1)[:, None] + Y.sum(axis=1)) / 2,
        ),
        Peer("scikit-learn chi2_kernel", Exponential(Chi2()), sklearn_exp_chi2, required=10),
    ],
    "JensenShannon": [
        Peer(
            "NumPy, the definition",
            JensenShannon(),
            numpy_jensen_shannon_definition,
            required=30,
            numpy=True,
        ),
        Peer(
            "SciPy cdist jensenshannon",
            JensenShannon(),
            scipy_jensen_shannon,
            dtype=np.float64,
            numpy=True,
        ),
        Peer("NumPy, in cache blocks", JensenShannon(), numpy_jensen_shannon_blocked, numpy=True),
        Peer("NumPy, tuned, log2", JensenShannon(), numpy_jensen_shannon, numpy=True),
        Peer("NumPy, tuned, log", JensenShannon(), numpy_jensen_shannon_natural, numpy=True),
    ],
}
RADIAL = [
    Peer("scikit-learn rbf_kernel", Gaussian(), sklearn_gaussian),
    Peer("scikit-learn laplacian_kernel", Laplace(), sklearn_laplace),
]
