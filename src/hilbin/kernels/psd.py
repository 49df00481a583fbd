"""Positive semi-definite matrices: test and repair."""

from typing import Literal

import numpy as np
import scipy.linalg

from hilbin._arrays import Array, to_dense


def is_psd(K: object, *, rtol: float = 1e-8) -> bool:
    """Return whether ``K`` is symmetric (to 1e-10) with eigenvalues >= ``-rtol`` times the largest.

    Parameters
    ----------
    K : array-like or sparse of shape (n, n)
        Gram matrix.
    rtol : float, default 1e-8
        Tolerance, relative to the largest eigenvalue.

    Examples
    --------
    >>> from hilbin.kernels import is_psd
    >>> is_psd([[1, 2], [2, 1]])
    False
    """
    K = np.asarray(to_dense(K), dtype=np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"K must be square, got shape {K.shape}")
    if np.max(np.abs(K - K.T), initial=0) > 1e-10 * max(1.0, np.max(np.abs(K), initial=0)):
        return False
    values = scipy.linalg.eigvalsh(K)
    return bool(values[0] >= -rtol * max(values[-1], 0))


def repair_psd(K: object, how: Literal["clip", "shift"] = "clip") -> Array:
    """Make the Gram matrix of a kernel that is not positive definite positive semi-definite.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Symmetric matrix.
    how : {"clip", "shift"}
        ``"clip"`` sets negative eigenvalues to 0, the nearest such matrix; ``"shift"`` adds the
        size of the most negative one to the diagonal and leaves the rest alone.

    Examples
    --------
    >>> from hilbin.kernels import repair_psd
    >>> repair_psd([[1.0, 2.0], [2.0, 1.0]])
    array([[1.5, 1.5],
           [1.5, 1.5]])
    """
    K = np.array(to_dense(K), dtype=np.float64)
    values, vectors = scipy.linalg.eigh(K)
    if how == "shift":
        K[np.diag_indices_from(K)] += max(0.0, -values[0])
        return K
    if how != "clip":
        raise ValueError(f"how must be 'clip' or 'shift', got {how!r}")
    repaired: Array = (vectors * np.maximum(values, 0)) @ vectors.T
    return (repaired + repaired.T) / 2
