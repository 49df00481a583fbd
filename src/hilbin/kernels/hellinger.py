"""Hellinger's (Bhattacharyya's) kernel."""

from dataclasses import dataclass

import numpy as np

from hilbin._arrays import Array, Matrix, apply
from hilbin.kernels.additive import HomogeneousKernel
from hilbin.kernels.linear import inner_products


@dataclass(frozen=True, repr=False)
class Hellinger(HomogeneousKernel):
    r"""Hellinger or Bhattacharyya kernel, :math:`K(x, y) = \sum_d \sqrt{x_d y_d}`.

    It is the linear kernel on square roots, and its profile is 1.

    Examples
    --------
    >>> from hilbin.kernels import Hellinger
    >>> Hellinger().gram([[4, 1], [1, 0]])
    array([[5., 2.],
           [2., 1.]])
    """

    def profile(self, t: Array) -> Array:
        """Return 1."""
        return np.ones_like(t)

    def _gram(self, X: Matrix, Y: Matrix | None, n_jobs: int | None) -> Array:
        return inner_products(apply(X, np.sqrt), None if Y is None else apply(Y, np.sqrt), n_jobs)
