r"""The size of a kernel, so that kernels can be added on equal terms.

Kernels of different descriptors differ in size by their units alone, and weights that are learned
for them would, too. Three rules give the factor that makes a kernel as large as any other:

- ``"diagonal"``: the mean of :math:`k(x, x)` is 1;
- ``"variance"``: the variance of the images :math:`\phi(x)` is 1, :math:`\mathrm{tr}(HKH) = n`
  with :math:`H = I - 11^T/n`, which a constant added to the kernel does not change (Zien and Ong,
  *Multiclass Multiple Kernel Learning*, 2007);
- ``"norm"``: the centered matrix has norm 1, :math:`\|HKH\|_F = 1`, as alignment has it.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from hilbin._arrays import Array, check_rows, to_dense
from hilbin._parameters import require_choice
from hilbin.kernels.base import Kernel

RULES = ("diagonal", "variance", "norm")
CONSTANT = 1e-12  # variance, in units of the mean of k(x, x), that is rounding


def kernel_scale(kernel: Any, X: object | None = None, rule: str = "variance") -> float:
    r"""Compute the factor that normalizes a kernel, or a Gram matrix, to size 1.

    Parameters
    ----------
    kernel : Kernel or array-like of shape (n, n)
        A kernel with numbers for its parameters, or the Gram matrix itself.
    X : array-like or CSR of shape (n, d), optional
        The rows, if ``kernel`` is a kernel.
    rule : {"variance", "diagonal", "norm"}, default "variance"
        What becomes 1: the variance of the images, :math:`\mathrm{tr}(HKH) / n`; the mean of
        :math:`k(x, x)`; or the norm of the centered matrix, :math:`\|HKH\|_F`.

    Returns
    -------
    factor : float
        ``factor * kernel`` has size 1 on these rows.

    Examples
    --------
    >>> from hilbin.kernels import Linear, kernel_scale
    >>> X = [[2.0], [4.0], [6.0]]
    >>> kernel_scale(Linear(), X, "variance").__round__(6)
    0.375
    >>> kernel_scale(Linear(), X, "diagonal").__round__(6)
    0.053571
    """
    require_choice("rule", rule, RULES)
    if not isinstance(kernel, Kernel):
        return 1 / _size(square(kernel), rule)
    if X is None:
        raise ValueError("X is missing: the size of a kernel is its size on rows")
    if rule == "diagonal":
        return 1 / _above_zero(float(kernel.diag(X).mean()))
    return 1 / _size(square(kernel.gram(X)), rule)


def square(K: Any, name: str = "K") -> Array:
    """Return a Gram matrix as a dense one in float64; it must be square and finite."""
    K = check_rows(K, name)
    if K.shape[0] != K.shape[1]:
        raise ValueError(f"{name} must be square, got shape {K.shape}")
    return np.asarray(to_dense(K) if sp.issparse(K) else K, np.float64)


def centered(K: Array) -> Array:
    """Return ``HKH``, whose rows and columns sum to 0."""
    found: Array = K - K.mean(axis=0)
    found -= found.mean(axis=1)[:, None]
    return found


def _size(K: Array, rule: str) -> float:
    diagonal = _above_zero(float(np.trace(K)) / len(K))
    if rule == "diagonal":
        return diagonal
    variance = diagonal - float(K.mean())
    if variance <= CONSTANT * diagonal:
        raise ValueError("the kernel has no variance: it is the same for all pairs of rows")
    return variance if rule == "variance" else float(np.linalg.norm(centered(K)))


def _above_zero(diagonal: float) -> float:
    if diagonal > 0:
        return diagonal
    raise ValueError(f"the mean of k(x, x) must be above 0, got {diagonal:g}")
