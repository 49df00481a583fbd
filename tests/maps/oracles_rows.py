"""Slow, obvious versions of the maps that work on whole rows, in float64."""

import numpy as np


def projected_kernel(kernel, X, Y, Z):
    """K_XZ K_ZZ^+ K_ZY."""
    return kernel(X, Z) @ np.linalg.pinv(kernel(Z), rcond=1e-13, hermitian=True) @ kernel(Z, Y)


def nearest(kernel, x, Z, size):
    """The landmarks nearest to x in feature space, one distance at a time."""
    distances = [kernel(x, x) + kernel(z, z) - 2 * kernel(x, z) for z in Z]
    return np.argsort(distances, kind="stable")[:size]


def pursuit(kernel, x, Z, size):
    """Orthogonal matching pursuit in feature space, for one row."""
    K = kernel(Z)
    k = kernel(x[None], Z)[0]
    chosen = []
    for _ in range(size):
        residual = k - K[:, chosen] @ coefficients(K, k, chosen)
        score = np.abs(residual) / np.sqrt(np.diag(K))
        score[chosen] = -1
        chosen.append(int(np.argmax(score)))
    return np.array(chosen)


def coefficients(K, k, chosen):
    """K_BB^+ K_Bx."""
    return np.linalg.pinv(K[np.ix_(chosen, chosen)], hermitian=True) @ k[chosen]


def sparse_coordinates(kernel, X, Z, size, select):
    """Phi, row by row."""
    K = kernel(Z)
    Phi = np.zeros((len(X), len(Z)))
    for x, phi in zip(X, Phi, strict=True):
        chosen = select(kernel, x, Z, size)
        phi[chosen] = coefficients(K, kernel(x[None], Z)[0], chosen)
    return Phi


def leverage_scores(K, total):
    """Diagonal of K (K + ridge)^-1 for the ridge whose scores add up to the total, by halving."""

    def scores(ridge):
        return np.diag(K @ np.linalg.inv(K + ridge * np.eye(len(K))))

    low, high = 1e-12, 1e12
    for _ in range(200):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if scores(middle).sum() > total else (low, middle)
    return scores(low)
