"""Slow, obvious versions of every fast thing, in float64."""

import itertools

import numpy as np
import scipy.sparse as sp
from scipy.integrate import quad
from scipy.linalg import eigh as scipy_eigh
from scipy.optimize import minimize


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


def centered_alignment(K, y):
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
    """Coordinates of a value on its two neighboring nodes, by the pseudo-inverse."""
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


def intersection(X, Y=None):
    """K_ij = sum_d min(x_id, y_jd), all pairs at once."""
    X = np.asarray(X, dtype=np.float64)
    Y = X if Y is None else np.asarray(Y, dtype=np.float64)
    return np.minimum(X[:, None], Y[None]).sum(axis=2)


def sums_of_minima(c, x, levels):
    """T(r) = sum_i c_i min(x_i, v_r), one level at a time."""
    return np.array([np.sum(c * np.minimum(x, v)) for v in levels])


def sums_of_hinges(c, x, levels):
    """H(r) = sum_i c_i max(x_i - v_r, 0), one level at a time."""
    return np.array([np.sum(c * np.maximum(x - v, 0)) for v in levels])


def unary(X, most):
    """B(x)_t = 1[t <= x] for t = 1, ..., most of every feature: whole numbers as bits."""
    return (np.arange(1, most + 1) <= np.asarray(X)[:, :, None]).reshape(len(X), -1).astype(float)


class FenwickPair:
    """Sums of c and of c x over ranks in two binary indexed trees: T(x) in log(m) steps."""

    def __init__(self, values):
        self.values = np.unique(values[values > 0])
        self.c, self.cx = np.zeros((2, self.values.size + 1))
        self.total = 0.0

    def add(self, x, c):
        if x <= 0:
            return
        self.total += c
        r = int(np.searchsorted(self.values, x)) + 1
        while r <= self.values.size:
            self.c[r] += c
            self.cx[r] += c * x
            r += r & -r

    def at(self, x):
        """The sum of c_i min(x_i, x)."""
        r = int(np.searchsorted(self.values, x, side="right"))
        below = weighted = 0.0
        while r > 0:
            below += self.c[r]
            weighted += self.cx[r]
            r -= r & -r
        return weighted + x * (self.total - below)


def quantile(values, q):
    """The least value that a share q of the values do not exceed."""
    values = np.sort(values)
    return values[max(int(np.ceil(q * values.size)), 1) - 1]


def quantize(x, bins, q):
    """Equation 13 for one feature, repaired: a range between quantiles, clipped to 0, ..., bins."""
    low = quantile(x, round(1 - q, 12))
    above = x[x > low]
    if not above.size:
        return np.zeros(x.shape, int)
    high = quantile(above, q)
    return np.clip(np.floor(bins * (x - low) / (high - low) * (1 + 1e-14)), 0, bins).astype(int)


def hinge_objective(squared_norm, margins, C, power):
    """1/2 |w|^2 + sum_i C_i max(0, 1 - margin_i)^power, the margins being y f(x)."""
    return 0.5 * squared_norm + np.sum(C * np.maximum(0, 1 - margins) ** power)


def insensitive_objective(squared_norm, residuals, C, epsilon, power):
    """1/2 |w|^2 + sum_i C_i max(0, |residual_i| - epsilon)^power."""
    return 0.5 * squared_norm + np.sum(C * np.maximum(0, np.abs(residuals) - epsilon) ** power)


def crammer_singer_objective(squared_norm, scores, labels, C):
    """1/2 sum_k |w_k|^2 + sum_i C_i max_k (1[k is not y_i] + f_k(x_i) - f_y(x_i))."""
    own = scores[np.arange(labels.size), labels]
    other = np.arange(scores.shape[1]) != labels[:, None]
    return 0.5 * squared_norm + np.sum(C * (scores + other - own[:, None]).max(axis=1))


def box_qp(Q, p, high):
    """The minimum of a'Qa / 2 - p'a over 0 <= a <= high, by a general minimizer."""
    found = minimize(
        lambda a: (0.5 * a @ Q @ a - p @ a, Q @ a - p),
        np.zeros(len(p)),
        jac=True,
        bounds=list(zip(np.zeros(len(p)), high, strict=True)),
        method="L-BFGS-B",
        options={"maxiter": 50_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-10, "maxcor": 50},
    )
    return found.x


def coordinate_descent(K, y, C, power, sweeps=3000):
    """Coefficients of a classifier by its dual, every row in turn, none ever left out."""
    diagonal, high = (0.5 / C, np.inf) if power == 2 else (0, C)
    a, f = np.zeros(y.size), np.zeros(y.size)
    for _ in range(sweeps):
        before = a.copy()
        for i in np.flatnonzero(np.diag(K) + diagonal > 0):
            gradient = y[i] * f[i] - 1 + diagonal * a[i]
            best = np.clip(a[i] - gradient / (K[i, i] + diagonal), 0, high)
            f += (best - a[i]) * y[i] * K[i]
            a[i] = best
        if np.abs(a - before).max() < 1e-9 * C:
            break
    return a * y


def census(image):
    """Bit by bit, neighbors in reading order: is the center not below the neighbor?"""
    image = np.asarray(image, dtype=int)
    out = np.zeros(np.maximum(np.subtract(image.shape, 2), 0), np.uint8)
    for y, x in np.ndindex(out.shape):
        around = np.delete(image[y : y + 3, x : x + 3].ravel(), 4)
        out[y, x] = sum(1 << (7 - i) for i in range(8) if image[y + 1, x + 1] >= around[i])
    return out


def local_binary_pattern(image):
    """Eight points of the circle of radius 1, against the clock from the right neighbor.

    Points are interpolated with four pixels; one within rounding of the center counts as equal.
    """
    image = np.asarray(image, dtype=float)
    out = np.zeros(np.maximum(np.subtract(image.shape, 2), 0), np.uint8)
    for y, x in np.ndindex(out.shape):
        for i in range(8):
            row, column = y + 1 - np.sin(np.pi * i / 4), x + 1 + np.cos(np.pi * i / 4)
            value = sum(
                image[r, c] * max(0, 1 - abs(row - r)) * max(0, 1 - abs(column - c))
                for r in range(y, y + 3)
                for c in range(x, x + 3)
            )
            out[y, x] |= (value >= image[y + 1, x + 1] - 1e-9) << i
    return out


def uniform_pattern(pattern):
    """The number of an eight-bit pattern among the 59 of at most two changes, and the others.

    Patterns of as many ones are numbered by how often their ones, from the lowest bits up, were
    rotated downwards.
    """
    bits = [pattern >> i & 1 for i in range(8)]
    if sum(bits[i] != bits[i - 1] for i in range(8)) > 2:
        return 58
    ones = sum(bits)
    if ones in (0, 8):
        return 57 if ones else 0
    start = (1 << ones) - 1
    rotated = [(start >> r | start << (8 - r)) & 255 for r in range(8)]
    return 1 + 8 * (ones - 1) + rotated.index(pattern)


def count_cells(words, row_cell, col_cell, grid_cols, n_words, n_cells):
    out = np.zeros((n_cells, n_words))
    for y, x in np.ndindex(words.shape):
        out[row_cell[y] * grid_cols + col_cell[x], words[y, x]] += 1
    return out


def nearest_scores(points, centers, half_norms):
    return np.asarray(points, float) @ np.asarray(centers, float).T - np.asarray(half_norms, float)


def triangle(size, width):
    """The matrix of a triangle filter; beyond the border is as the border."""
    filter_ = np.zeros((size, size))
    for i in range(size):
        for u in range(1 - width, width):
            filter_[i, min(max(i + u, 0), size - 1)] += 1 - abs(u) / width
    return filter_


def orientation_maps(image):
    """The length of the gradient, shared between the two nearest of eight orientations."""
    down, right = np.gradient(image)
    at = np.mod(np.arctan2(down, right), 2 * np.pi) / (np.pi / 4)
    distance = np.abs(at - np.arange(9)[:, None, None])
    shares = np.maximum(0, 1 - distance) * np.hypot(down, right)
    shares[0] += shares[8]
    return shares[:8]


def dense_sift(image, bin_size, step):
    """Descriptors and norms of dense SIFT with a flat window, a frame at a time."""
    image = np.asarray(image, dtype=float)
    places = [
        [range(at, at + 4 * bin_size, bin_size) for at in range(0, size - 3 * bin_size, step)]
        for size in image.shape
    ]
    if not (places[0] and places[1]):
        return np.empty((0, 128)), np.empty(0)
    down, across = (triangle(size, bin_size) for size in image.shape)
    filtered = np.einsum("yi,kij,xj->yxk", down, orientation_maps(image), across)
    inside = np.arange(1 - bin_size, bin_size) / bin_size
    window = [np.exp(-((inside + 1.5 - b) ** 2) / 8).mean() for b in range(4)]
    weight = np.multiply.outer(window, window)[:, :, None]
    raw = np.array(
        [(weight * filtered[np.ix_(y, x)]).ravel() for y in places[0] for x in places[1]]
    )
    norms = raw.sum(axis=1) / (3 * bin_size + 1) ** 2
    return unit_rows(np.minimum(unit_rows(raw), 0.2)), norms


def unit_rows(X):
    length = np.linalg.norm(X, axis=1, keepdims=True)
    return np.divide(X, length, out=np.zeros_like(X), where=length > 0)


def hog_cells(image, cell, between=False):
    """Histograms of 18 orientations in cells, a pixel at a time.

    A pixel counts for the nearest orientation, or for the two ``between`` which it lies.
    """
    image = np.atleast_3d(np.asarray(image, dtype=float))
    rows, columns = ((size + cell // 2) // cell for size in image.shape[:2])
    cells = np.zeros((rows, columns, 18))
    angles = np.arange(9) * np.pi / 9
    for y in range(1, image.shape[0] - 1):
        for x in range(1, image.shape[1] - 1):
            right, down = image[y, x + 1] - image[y, x - 1], image[y + 1, x] - image[y - 1, x]
            channel = np.argmax(right**2 + down**2)
            along = right[channel] * np.cos(angles) + down[channel] * np.sin(angles)
            # rounding must not decide between the orientations beside a vertical gradient
            k = np.argmax(np.round(np.abs(along), 9))
            length = np.hypot(right[channel], down[channel])
            near_y = np.maximum(0, 1 - np.abs((y + 0.5) / cell - 0.5 - np.arange(rows)))
            near_x = np.maximum(0, 1 - np.abs((x + 0.5) / cell - 0.5 - np.arange(columns)))
            share = length * np.outer(near_y, near_x)
            if between:
                at = np.arctan2(down[channel], right[channel]) % (2 * np.pi) / (np.pi / 9)
                first, part = int(at) % 18, at - int(at)
                cells[..., first] += (1 - part) * share
                cells[..., (first + 1) % 18] += part * share
            else:
                cells[..., k + 9 * (along[k] < 0)] += share
    return cells


def fhog(image, cell):
    """Felzenszwalb's 31 numbers per cell."""
    cells = hog_cells(image, cell)
    folded = cells[..., :9] + cells[..., 9:]
    every = np.concatenate([cells, folded], axis=2)
    out = np.zeros((*cells.shape[:2], 31))
    if out.size == 0:
        return out
    energy = np.pad((folded**2).sum(axis=2), 1, mode="edge")
    for y, x in np.ndindex(cells.shape[:2]):
        for b, (i, j) in enumerate(np.ndindex(2, 2)):
            block = energy[y + i : y + i + 2, x + j : x + j + 2].sum()
            cut = np.minimum(every[y, x] / np.sqrt(block + 1e-4), 0.2)
            out[y, x, :27] += cut / 2
            out[y, x, 27 + b] = cut[18:].sum() / np.sqrt(18)
    return out


def hog(image, cell):
    """Dalal and Triggs' blocks of 2 x 2 cells of 9 orientations."""
    cells = hog_cells(image, cell, between=True)
    folded = cells[..., :9] + cells[..., 9:]
    rows, columns = np.maximum(np.subtract(folded.shape[:2], 1), 0)
    out = np.zeros((rows, columns, 36))
    for y, x in np.ndindex(rows, columns):
        block = folded[y : y + 2, x : x + 2].ravel()
        block = np.minimum(block / np.sqrt((block**2).sum() + 1e-4), 0.2)
        out[y, x] = block / np.sqrt((block**2).sum() + 1e-4)
    return out


def pair_descent(K, linear, low, high, total=0.0, epsilon=0.0, tol=1e-9, steps=200_000):
    """Coefficients of a kernel machine of given sum, the worst pair of rows at a time.

    Each has two variables, what it is above zero and what it is below.
    """
    n = linear.size
    c = np.concatenate([np.zeros(n), np.zeros(n)])
    bottom, top = (
        np.concatenate([np.maximum(low, 0), np.minimum(low, 0)]),
        np.concatenate([np.maximum(high, 0), np.minimum(high, 0)]),
    )
    missing = total
    for i in range(n):  # the first rows take what the sum demands
        c[i] = np.clip(missing, bottom[i], top[i])
        missing -= c[i]
    slope = np.concatenate([linear - epsilon, linear + epsilon])
    for _ in range(steps):
        gradient = np.tile(K @ (c[:n] + c[n:]), 2) - slope
        up = np.where(c < top, -gradient, -np.inf)
        down = np.where(c > bottom, -gradient, np.inf)
        i, j = np.argmax(up), np.argmin(down)
        if up[i] - down[j] <= tol:
            break
        a = max(K[i % n, i % n] + K[j % n, j % n] - 2 * K[i % n, j % n], 1e-12)
        step = min((up[i] - down[j]) / a, top[i] - c[i], c[j] - bottom[j])
        c[i], c[j] = c[i] + step, c[j] - step
    return c[:n] + c[n:]


def machine_objective(K, c, linear, epsilon=0.0):
    """1/2 c'Kc - t'c + eps |c|_1."""
    return 0.5 * c @ K @ c - linear @ c + epsilon * np.abs(c).sum()


def sparse_fault(X):
    """What is wrong with a sparse matrix, found slowly, or an empty text."""
    if not sp.issparse(X):
        return ""
    if X.format == "coo":
        row, column = (np.asarray(c).tolist() for c in X.coords)
        lengths = {len(row), len(column), len(X.data)}
        inside = all(0 <= i < X.shape[0] for i in row) and all(0 <= j < X.shape[1] for j in column)
        return "" if len(lengths) == 1 and inside else "a place is out of range"
    blocks = X.blocksize if X.format == "bsr" else (1, 1)
    height, width = X.shape[0] // blocks[0], X.shape[1] // blocks[1]
    if X.format == "csc":
        height, width = width, height
    starts, indices = X.indptr.tolist(), X.indices.tolist()
    if len(indices) != len(X.data):
        return "indices and values differ in length"
    if len(starts) != height + 1 or starts[0] != 0:
        return "indptr has the wrong length"
    for i in range(height):
        if not starts[i] <= starts[i + 1] <= len(indices):
            return f"row {i} is not in the arrays"
        part = indices[int(starts[i]) : int(starts[i + 1])]
        if not all(0 <= j < width for j in part):
            return f"row {i} has a column out of range"
        if getattr(X, "_has_canonical_format", False) and part != sorted(set(part)):
            return f"row {i} is not in order"
    return ""


def block_norm_optimum(features, T, alpha, norm):
    """min 1/2 |(|v_1|, ..., |v_m|)|_r^2 + sum r^2 / 2 alpha, r = 2p / (p + 1), by BFGS.

    It is multiple kernel learning with the weights gone: the best ones for given norms are put in.
    """
    r = 2.0 if norm == np.inf else 2 * norm / (norm + 1)
    Z = [z - z.mean(axis=0) for z in features]
    T = T - T.mean(axis=0)
    ends = np.cumsum([z.shape[1] for z in Z])[:-1]
    together = np.hstack(Z)

    def value(flat):
        W = flat.reshape(together.shape[1], T.shape[1])
        misses = together @ W - T
        sizes = np.array([np.square(part).sum() + 1e-14 for part in np.split(W, ends)])
        total = np.sum(sizes ** (r / 2))
        slope = total ** (2 / r - 1) * sizes ** (r / 2 - 1)
        factors = np.repeat(slope, [z.shape[1] for z in Z])[:, None]
        gradient = factors * W + together.T @ misses / alpha
        return 0.5 * total ** (2 / r) + np.square(misses).sum() / (2 * alpha), gradient.ravel()

    start = np.full(together.shape[1] * T.shape[1], 0.01)
    limits = {"maxiter": 20_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-9}
    found = minimize(value, start, jac=True, method="L-BFGS-B", options=limits)
    return found.fun, found.x.reshape(together.shape[1], T.shape[1])


def svm_optimum(K, signs, cost):
    """The optimum of a support vector machine with a free intercept, by its dual."""
    low, high = np.minimum(0, cost * signs), np.maximum(0, cost * signs)
    c = pair_descent(K, signs, low, high)
    return -machine_objective(K, c, signs)


def centering(n):
    return np.eye(n) - np.full((n, n), 1 / n)


def hsic(K, L, biased=True):
    """HSIC from its definitions: by traces, or by sums over different rows."""
    n = len(K)
    if biased:
        return np.trace(K @ centering(n) @ L @ centering(n)) / (n - 1) ** 2
    K, L = K - np.diag(np.diag(K)), L - np.diag(np.diag(L))
    ones = np.ones(n)
    middle = (ones @ K @ ones) * (ones @ L @ ones) / ((n - 1) * (n - 2))
    return (np.trace(K @ L) + middle - 2 / (n - 2) * (ones @ K @ L @ ones)) / (n * (n - 3))


def permuted_products(K, L):
    """The sum of products of both centered matrices, for every permutation of the second."""
    H = centering(len(K))
    A, B = H @ K @ H, H @ L @ H
    orders = map(list, itertools.permutations(range(len(K))))
    return np.array([np.sum(A * B[np.ix_(p, p)]) for p in orders])


def best_sorting(K, L):
    """The largest objective of kernelized sorting, over all ways to place rows."""
    A = centering(len(K)) @ K @ centering(len(K))
    ways = map(list, itertools.permutations(range(len(L)), len(K)))
    return max(np.sum(A * L[np.ix_(p, p)]) for p in ways)


def kmeans_inertia(K, labels, weights):
    """Weighted squared distances from the centers of clusters, pair by pair of rows."""
    total = 0.0
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        w = weights[own] / weights[own].sum()
        inside = K[np.ix_(own, own)]
        center = w @ inside @ w
        total += sum(weights[i] * (K[i, i] - 2 * K[i, own] @ w + center) for i in own)
    return total


def best_kmeans(K, n_clusters, weights):
    """The smallest inertia of all ways to split rows into so many clusters."""
    ways = itertools.product(range(n_clusters), repeat=len(K))
    whole = (np.array(way) for way in ways if len({*way}) == n_clusters)
    return min(kmeans_inertia(K, labels, weights) for labels in whole)


def cover_size(near):
    """The fewest rows of which one is near every row."""
    for size in range(1, len(near) + 1):
        ways = itertools.combinations(range(len(near)), size)
        if any(near[list(way)].any(axis=0).all() for way in ways):
            return size
    raise AssertionError("no row is near itself")


def upto_signs(A, B, **tolerance):
    """Assert that matrices are equal up to the signs of their columns."""
    sign = np.sign(np.sum(A * B, axis=0))
    np.testing.assert_allclose(A * sign, B, **tolerance)


def centered_by_matrix(K):
    """H K H with the whole matrix H."""
    H = np.eye(len(K)) - 1 / len(K)
    return H @ K @ H


def preimage_distance(model, t):
    """The squared distance of a row's image to the projection of coordinates t, up to a constant,
    from the whole matrix of eigenvectors."""
    X, kernel = model.X_fit_, model.kernel_
    Kc = centered_by_matrix(kernel.gram(X))
    values, vectors = np.linalg.eigh(Kc)
    m = len(t)
    values, vectors = values[::-1][:m], vectors[:, ::-1][:, :m]
    training = model.transform(X)
    vectors = vectors * np.sign(np.sum(vectors * training, axis=0))
    g = vectors @ (t / np.sqrt(values))
    g = g - g.mean() + 1 / len(g)

    def distance(z):
        z = np.atleast_2d(z)
        return float(kernel.diag(z)[0] - 2 * kernel.gram(z, X)[0] @ g)

    return distance


def kernel_scatters(K, y):
    """The scatters of coefficients within and between classes, N and M, class by class."""
    mean = K.mean(axis=1)
    N, M = np.zeros_like(K), np.zeros_like(K)
    for c in np.unique(y):
        part = K[:, y == c]
        own = part.mean(axis=1)
        N += (part - own[:, None]) @ (part - own[:, None]).T
        M += part.shape[1] * np.outer(own - mean, own - mean)
    return N, M


def regularized_correlations(grams, penalties):
    """Kernel canonical correlations of centered matrices from the generalized eigenproblem:
    products of different views over penalized variances."""
    parts = []
    for M in grams:  # coordinates in which the matrix is M = Z Z^T
        values, vectors = np.linalg.eigh(M)
        kept = values > 1e-10 * values[-1]
        parts.append(vectors[:, kept] * np.sqrt(values[kept]))
    ends = np.cumsum([0] + [Z.shape[1] for Z in parts])
    left, right = np.zeros((2, ends[-1], ends[-1]))
    for i, Z in enumerate(parts):
        here = slice(ends[i], ends[i + 1])
        for j, W in enumerate(parts):
            there = slice(ends[j], ends[j + 1])
            (right if i == j else left)[here, there] = Z.T @ W
        right[here, here] += penalties[i] * np.eye(Z.shape[1])
    values = scipy_eigh(left, right, eigvals_only=True)[::-1]
    return values / (len(parts) - 1)


def iou_by_counting(a, b, step=0.25):
    """Intersection over union of boxes on a grid of ``step``, by counting its cells."""
    centers = np.arange(-4, 10, step) + step / 2
    x, y = np.meshgrid(centers, centers)
    inside = [
        [(x >= x0) & (x < x1) & (y >= y0) & (y < y1) for x0, y0, x1, y1 in boxes]
        for boxes in (a, b)
    ]
    overlap = np.zeros((len(a), len(b)))
    for i, one in enumerate(inside[0]):
        for j, other in enumerate(inside[1]):
            if (one & other).any():
                overlap[i, j] = (one & other).sum() / (one | other).sum()
    return overlap


def suppress(boxes, scores, limit):
    """Greedy non-maximum suppression, pair by pair."""
    kept = []
    for at in sorted(range(len(boxes)), key=lambda i: (-scores[i], i)):
        overlap = iou_by_counting(boxes[[at]], boxes[kept]) if kept else np.zeros((1, 0))
        if (overlap <= limit).all():
            kept.append(at)
    return kept


def average_precision(found, truths, ignored, limit=0.5):
    """Area under precision over recall for boxes of one size in a row, detection by detection."""

    def overlap(one, other):
        common = max(0, 10 - abs(one[0] - other[0]))
        return common / (20 - common)

    free = [list(boxes) for boxes in truths]
    n = sum(map(len, free))
    if n == 0:
        return np.nan
    scored = [(-s, i, k) for i, boxes in enumerate(found) for k, s in enumerate(boxes.scores)]
    counted = []
    for minus, i, k in sorted(scored):
        box = found[i].coordinates[k]
        best = max(free[i], key=lambda t: overlap(t, box), default=None)
        if best is not None and overlap(best, box) >= limit:
            free[i].remove(best)
            counted.append((minus, True))
        elif not any(overlap(other, box) >= limit for other in ignored[i]):
            counted.append((minus, False))
    counted.sort()
    right = [sum(true for _, true in counted[: k + 1]) for k in range(len(counted))]
    area = 0.0
    for k, (_, true) in enumerate(counted):
        if true:
            area += max(right[j] / (j + 1) for j in range(k, len(counted))) / n
    return area


def all_boxes(rows, columns):
    """Every box ``[x0, y0, x1, y1)`` of whole cells that is not empty."""
    return [
        (x0, y0, x1, y1)
        for y0 in range(rows)
        for y1 in range(y0 + 1, rows + 1)
        for x0 in range(columns)
        for x1 in range(x0 + 1, columns + 1)
    ]


def box_iou(a, b):
    """Intersection over union of two boxes, one number at a time."""
    width = max(0, min(a[2], b[2]) - max(a[0], b[0]))
    height = max(0, min(a[3], b[3]) - max(a[1], b[1]))
    common = width * height
    return common / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common)


def box_parts(box, levels):
    """The box, its quarters, the quarters of these, and so on; whole numbers are cut downward."""
    x0, y0, x1, y1 = box
    for side in 2 ** np.arange(levels):
        ys, xs = (
            [a + (b - a) * i // side for i in range(side + 1)] for a, b in ((y0, y1), (x0, x1))
        )
        yield from ((xs[j], ys[i], xs[j + 1], ys[i + 1]) for i in range(side) for j in range(side))


def box_score(cells, box, tables=None, max_density=None, levels=1):
    """Score of one box: a sum over cells, or of functions of counts of words (H, W, J)."""
    x0, y0, x1, y1 = box
    if tables is None:
        return np.asarray(cells)[y0:y1, x0:x1].sum()
    total, parts = 0.0, [*box_parts(box, levels)]
    for (left, top, right, bottom), own in zip(parts, np.split(tables, len(parts)), strict=True):
        counts = np.asarray(cells)[top:bottom, left:right].sum(axis=(0, 1))
        if max_density is None:
            total += sum(row[min(c, len(row) - 1)] for row, c in zip(own, counts, strict=True))
        else:
            nodes = np.linspace(0, max_density, np.shape(own)[1])
            densities = counts / ((x1 - x0) * (y1 - y0))
            total += sum(np.interp(d, nodes, row) for row, d in zip(own, densities, strict=True))
    return total


def augmented_score(cells, box, truth=None, reference=None, **score):
    """Score of one box with the loss of a true one, added or multiplied."""
    value = box_score(cells, box, **score)
    if truth is None:
        return value
    loss = 1 - box_iou(box, truth)
    return value + loss if reference is None else loss * (1 + value - reference)


def best_boxes(cells, k=1, limit=0.0, **score):
    """The best of all boxes, then the best of those that overlap no better one too much."""
    scored = [(augmented_score(cells, b, **score), b) for b in all_boxes(*np.shape(cells)[:2])]
    found = []
    for value, box in sorted(scored, reverse=True):
        if len(found) < k and all(box_iou(box, other) <= limit for _, other in found):
            found.append((value, box))
    return found


def best_labels(score, shape, n_labels):
    """The labels of all places that have the highest score, among all labellings."""
    every = itertools.product(range(n_labels), repeat=int(np.prod(shape)))
    return max((np.reshape(labels, shape) for labels in every), key=score)


def resized(image, size):
    """Bilinear interpolation of (channels, height, width) at the centers of new pixels."""

    def between(values, count):
        at = np.clip((np.arange(count) + 0.5) * len(values) / count - 0.5, 0, len(values) - 1)
        return np.array(
            [np.interp(at, np.arange(len(values)), column) for column in values.T]
        ).T.reshape(count, -1)

    rows = np.stack([between(plane, size[0]) for plane in image.astype(np.float64)])
    return np.stack([between(plane.T, size[1]).T for plane in rows])


def filter_scores(cells, filters):
    """Scores of filters (k, h, c, w) at all places of cells (rows, c, columns)."""
    k, h, _, w = filters.shape
    grid = cells.shape[0] - h + 1, cells.shape[2] - w + 1
    if min(grid) < 1:
        return np.zeros((k, 0))
    out = np.empty((k, *grid))
    for y, x in np.ndindex(grid):
        window = cells[y : y + h, :, x : x + w].astype(np.float64)
        out[:, y, x] = (filters * window).sum(axis=(1, 2, 3))
    return out


def deformed(scores, d, reach):
    """The best score within reach of every place, less the cost of the way, and the way."""
    rows, columns = scores.shape
    best = np.full(scores.shape, -np.inf)
    way = np.zeros((*scores.shape, 2), int)
    steps = range(-reach, reach + 1)
    for y, x, dy, dx in itertools.product(range(rows), range(columns), steps, steps):
        if 0 <= y + dy < rows and 0 <= x + dx < columns:
            value = scores[y + dy, x + dx] - (d[0] * dx**2 + d[1] * dx + d[2] * dy**2 + d[3] * dy)
            if value > best[y, x]:
                best[y, x], way[y, x] = value, (dy, dx)
    return best, way


def template_scores(template, cells, nodes):
    """Scores of a template with parts at all places of one level, part by part."""
    root = filter_scores(cells, template.root[None])[0] + template.bias
    for part, anchor, d in zip(template.parts, template.anchors, template.deformation, strict=True):
        best = deformed(filter_scores(nodes, part[None])[0], d, 4)[0]
        for y, x in np.ndindex(root.shape):
            root[y, x] += best[2 * y + anchor[0], 2 * x + anchor[1]]
    return root


def cie_lab(rgb):
    """CIE L*a*b* of sRGB bytes under D65: L* times 2.55, a* and b* shifted by 128."""
    v = np.asarray(rgb, np.float64) / 255
    light = np.where(v <= 0.04045, v / 12.92, ((v + 0.055) / 1.055) ** 2.4)
    to_xyz = [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
    t = light @ np.transpose(to_xyz) / [0.95047, 1.0, 1.08883]
    f = np.where(t > (6 / 29) ** 3, np.cbrt(t), t * 841 / 108 + 4 / 29)
    x, y, z = f[..., 0], f[..., 1], f[..., 2]
    lab = [(116 * y - 16) * 2.55, 500 * (x - y) + 128, 200 * (y - z) + 128]
    return np.clip(np.stack(lab, axis=-1), 0, 255)


def k_means_plus_plus(points, n, random_state):
    """Points drawn one after the other in proportion to their squared distance to those before."""
    from sklearn.cluster import kmeans_plusplus

    return kmeans_plusplus(points, n, random_state=random_state, n_local_trials=1)[1]


def pair_gram(Z, inner):
    """Products of rows in the inner product of their columns, pair by pair of rows."""
    size = len(inner)
    return np.array(
        [
            [
                sum(x[c : c + size] @ inner @ y[c : c + size] for c in range(0, len(x), size))
                for y in Z
            ]
            for x in Z
        ]
    )
