r"""Pre-images: rows whose image is near a point of the feature space.

The point is :math:`p = \sum_i g_i \phi(x_i)` with :math:`\sum_i g_i = 1`, such as the projection of
a row on principal components. A pre-image minimizes

.. math:: \|p - \phi(z)\|^2 = k(z, z) - 2 \sum_i g_i k(x_i, z) + \mathrm{const} .

**In one step.** The linear kernel has :math:`z = \sum_i g_i x_i`. For an additive kernel the
problem is a sum over bins, and every bin is minimized alone, over a table of values and by a
parabola through the best three, so the minimum is global; bins of histogram kernels are tried from
0 on, so that they stay non-negative. Hellinger's kernel has
:math:`z_j = \max(0, \sum_i g_i \sqrt{x_{ij}})^2`.

**By a fixed point.** Kernels :math:`e^{-\gamma d}` of the distance :math:`d` of such a kernel, the
Gaussian among them, repeat that step with weights :math:`w_i = g_i k(x_i, z)` over their sum, which
is :math:`\langle p, \phi(z) \rangle` and is to be large; the best row is kept. It stops when rows
change by less than 1e-6 standard deviations of the data, or after 60 steps. Where the sum is not
above 0, the row starts again from the training row that agrees with it next best, three times, and
ends at the mean of the ten best.

**From distances.** For a function of the Euclidean distance, the distances of :math:`p` to the
training rows give those of :math:`z`; the ten nearest rows then locate it, in their span.

**References.** S. Mika et al., *Kernel PCA and De-Noising in Feature Spaces*, 1998. J. Kwok and
I. Tsang, *The Pre-Image Problem in Kernel Methods*, 2004.
"""

from functools import singledispatch
from typing import Any

import numpy as np
from scipy.linalg import svd

from hilbin._arrays import Array
from hilbin.kernels import AdditiveKernel, Exponential, Gaussian, Hellinger, Kernel, Laplace, Linear

STEPS, CHANGE = 60, 1e-6  # at most so many, or a change below, in standard deviations
RESTARTS, NEIGHBORS = 3, 10
VANISHING = 1e-12  # sum of weights over the sum of their sizes
TABLE = 401  # values that are tried in a bin
BEYOND = 1.25  # times the largest value of a bin is the largest that is tried
LEAST_SPREAD = 1e-9  # of neighbors in a direction, over the largest
INSIDE: dict[type, Any] = {Gaussian: lambda kernel: Linear(), Exponential: lambda k: k.kernel}


def has_fixed_point(kernel: Any) -> bool:
    """Tell whether :func:`by_fixed_point` knows the kernel."""
    known: Any = best_rows.dispatch(type(_stepped(kernel)))
    return known is not best_rows.dispatch(object)


def has_distances(kernel: Any) -> bool:
    """Tell whether :func:`by_distances` knows the kernel."""
    known: Any = squared_distances.dispatch(type(kernel))
    if known is squared_distances.dispatch(object):
        return False
    return getattr(kernel, "p", 2) == 2


def by_fixed_point(kernel: Kernel, G: Array, X: Array, start: Array | None = None) -> Array:
    """Return pre-images of the points ``G @ phi(X)``; rows of ``G`` sum to 1.

    Parameters
    ----------
    kernel : Kernel
        A kernel of which :func:`has_fixed_point` is true.
    G : array of shape (r, n)
        Coefficients of the training rows.
    X : array of shape (n, d)
        The training rows.
    start : array of shape (r, d), optional
        Rows to start from; by default the training rows that agree best.
    """
    inner = _stepped(kernel)
    if inner is kernel:
        return best_rows(kernel, G, X)
    Z = X[_agreeing(kernel, G, X)[:, 0]] if start is None else start
    best, agreement = Z.copy(), np.full(len(Z), -np.inf)
    restarts = np.full(len(Z), int(start is None))  # training rows that were tried
    least = CHANGE * float(np.sqrt(X.var(axis=0).mean()))
    for _ in range(STEPS):
        W = G * kernel._gram(Z, X, None)
        total = W.sum(axis=1)
        better = total > agreement
        best[better], agreement[better] = Z[better], total[better]
        lost = total <= VANISHING * np.abs(W).sum(axis=1)
        restarts[lost] += 1
        new = np.empty_like(Z)
        new[~lost] = best_rows(inner, W[~lost] / total[~lost, None], X)
        if lost.any():
            new[lost] = _other_starts(_agreeing(kernel, G[lost], X), restarts[lost], X)
        if np.sqrt(np.mean((new - Z) ** 2, axis=1)).max(initial=0) <= least:
            break
        Z = new
    return best


def _agreeing(kernel: Kernel, G: Array, X: Array) -> Array:
    """Return the places of the training rows that agree best with every point, the best first."""
    agreement = G @ kernel._gram(X, None, None)
    return np.argsort(-agreement, axis=1)[:, :NEIGHBORS]


def _other_starts(places: Array, restarts: Array, X: Array) -> Array:
    """Return the next best rows, or after too many restarts the mean of the best."""
    next_best = np.minimum(restarts, places.shape[1]) - 1
    rows = X[np.take_along_axis(places, next_best[:, None], axis=1)[:, 0]]
    means = X[places].mean(axis=1)
    return np.where(restarts[:, None] > RESTARTS, means, rows)


def _stepped(kernel: Any) -> Any:
    """Return the kernel whose pre-image is one step; that of an exponential is inside of it."""
    return INSIDE.get(type(kernel), lambda kernel: kernel)(kernel)


@singledispatch
def best_rows(kernel: Any, G: Array, X: Array) -> Array:
    """Return the rows ``z`` of least ``k(z, z) - 2 sum_i g_i k(x_i, z)``."""
    raise NotImplementedError


@best_rows.register(Linear)
def _mean_rows(kernel: Linear, G: Array, X: Array) -> Array:
    found: Array = G @ X
    return found


@best_rows.register(Hellinger)
def _squared_means(kernel: Hellinger, G: Array, X: Array) -> Array:
    found: Array = np.maximum(G @ np.sqrt(X), 0) ** 2
    return found


@best_rows.register(AdditiveKernel)
def _bin_by_bin(kernel: AdditiveKernel, G: Array, X: Array) -> Array:
    Z = np.empty((len(G), X.shape[1]))
    for j, column in enumerate(np.ascontiguousarray(X.T)):
        low, high = (0.0, column.max()) if kernel.nonnegative else (column.min(), column.max())
        power = 2 if kernel.nonnegative else 1  # small values of histograms are tried closely
        t = np.linspace(0 if kernel.nonnegative else 1 - BEYOND, BEYOND, TABLE)
        values = low + (high - low) * np.sign(t) * np.abs(t) ** power
        known = kernel._gram(column[:, None], values[:, None], None)
        best = _lowest(t, kernel._diag(values[:, None]) - 2 * (G @ known))
        Z[:, j] = low + (high - low) * np.sign(best) * np.abs(best) ** power
    return Z


def _lowest(t: Array, values: Array) -> Array:
    """Return where parabolas through the least values of every row, and their neighbors, end."""
    every = np.arange(len(values))
    i = values.argmin(axis=1)
    inside = np.clip(i, 1, t.size - 2)
    before, at, after = (values[every, inside + step] for step in (-1, 0, 1))
    bend = before - 2 * at + after
    shift = np.divide(before - after, 2 * bend, out=np.zeros_like(bend), where=bend > 0)
    moved = np.where(i == inside, np.clip(shift, -0.5, 0.5), 0.0)
    best: Array = t[i] + (t[1] - t[0]) * moved
    return best


def by_distances(kernel: Kernel, G: Array, X: Array) -> Array:
    """Return pre-images of ``G @ phi(X)`` from their distances to the ten nearest rows.

    The parameters are those of :func:`by_fixed_point`; :func:`has_distances` is true of the kernel.
    """
    products = G @ kernel._gram(X, None, None)
    apart = np.sum(products * G, axis=1)[:, None] + kernel._diag(X) - 2 * products
    count = min(NEIGHBORS, len(X))
    nearest = np.argpartition(apart, count - 1, axis=1)[:, :count]
    squares = squared_distances(kernel, np.take_along_axis(apart, nearest, axis=1))
    return np.array([_located(X[some], d2) for some, d2 in zip(nearest, squares, strict=True)])


@singledispatch
def squared_distances(kernel: Any, apart: Array) -> Array:
    """Return squared Euclidean distances from squared distances in the feature space."""
    raise NotImplementedError


@squared_distances.register(Gaussian)
def _of_gaussian(kernel: Gaussian, apart: Array) -> Array:
    return -np.log(np.maximum(1 - apart / 2, VANISHING)) / float(kernel.gamma)  # type: ignore[arg-type]


@squared_distances.register(Laplace)
def _of_laplace(kernel: Laplace, apart: Array) -> Array:
    distances = -np.log(np.maximum(1 - apart / 2, VANISHING)) / float(kernel.gamma)  # type: ignore[arg-type]
    return np.square(np.maximum(distances, 0))


def _located(rows: Array, squares: Array) -> Array:
    """Return the point at given squared distances from rows, in their span."""
    center = rows.mean(axis=0)
    E, roots, Vt = svd((rows - center).T, full_matrices=False)
    kept = roots > LEAST_SPREAD * roots[0] if roots[0] > 0 else np.zeros(roots.size, bool)
    E, roots, Vt = E[:, kept], roots[kept], Vt[kept]
    own = np.square(roots[:, None] * Vt).sum(axis=0)
    found: Array = center - E @ (Vt @ (squares - own) / roots) / 2
    return found
