"""Random features written out."""

import numpy as np
from scipy.linalg import hadamard
from sklearn.preprocessing import FunctionTransformer

from hilbin._arrays import apply


def features(P):
    """[cos P, sin P] / sqrt(m)."""
    return np.hstack([np.cos(P), np.sin(P)]) / np.sqrt(P.shape[1])


def structured_matrix(signs, kept, width, scale):
    """The kept rows of scale sqrt(p) H D1 H D2 H D3, block by block."""
    p = signs.shape[-1]
    H = hadamard(p) / np.sqrt(p)
    blocks = [
        scale * np.sqrt(p) * H @ np.diag(D1) @ H @ np.diag(D2) @ H @ np.diag(D3)
        for D3, D2, D1 in signs.astype(float)
    ]
    rows = [blocks[i // p][row] for i, row in enumerate(kept)]
    return np.array(rows)[:, :width]


def square_roots(X):
    return apply(X, np.sqrt)


def exact_map():
    """The map of Hellinger's kernel."""
    return FunctionTransformer(square_roots, accept_sparse=True)


def shortened(X):
    return apply(X, lambda x: 0.9 * np.sqrt(x))


def short_map():
    """The same with a tenth of every length missing."""
    return FunctionTransformer(shortened, accept_sparse=True)
