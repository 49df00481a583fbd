"""How well a Gram matrix agrees with labels."""

import numpy as np
from sklearn.utils import check_consistent_length, column_or_1d

from hilbin._arrays import Array, to_dense


def kernel_alignment(K: object, y: object) -> float:
    r"""Compute the centered kernel target alignment, between -1 and 1.

    It is :math:`\langle HKH, L \rangle_F / (\|HKH\|_F \|L\|_F)` with :math:`H = I - 11^T/n` and
    :math:`L` the centered Gram matrix of the one-hot labels (Cristianini et al., 2001; centered by
    Cortes, Mohri and Rostamizadeh, 2012).

    Parameters
    ----------
    K : array-like or sparse of shape (n, n)
        Gram matrix.
    y : array-like of shape (n,)
        Class labels, at least two classes.

    Examples
    --------
    >>> from hilbin.kernels import kernel_alignment
    >>> kernel_alignment([[1, 1, 0], [1, 1, 0], [0, 0, 1]], [0, 0, 1]).__round__(6)
    1.0
    """
    K = np.asarray(to_dense(K), dtype=np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"K must be square, got shape {K.shape}")
    labels: Array = column_or_1d(y)
    check_consistent_length(K, labels)
    classes = np.unique(labels)
    if classes.size < 2:
        raise ValueError(f"y has one class only, {classes[0]!r}: alignment needs two")
    onehot = (labels[:, None] == classes).astype(np.float64)
    onehot -= onehot.mean(axis=0)
    means = K.mean(axis=0)
    centered = K - means - means[:, None] + means.mean()
    target_norm = np.linalg.norm(onehot.T @ onehot)
    norm = np.linalg.norm(centered)
    # A constant matrix has nothing to agree with.
    return float(np.sum(onehot * (centered @ onehot)) / (norm * target_norm)) if norm > 0 else 0.0
