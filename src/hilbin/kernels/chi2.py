"""The additive chi-squared kernel."""

from dataclasses import dataclass

import numpy as np

from hilbin._arrays import Array
from hilbin.kernels.additive import HomogeneousKernel
from hilbin.kernels.pairwise import Op
from hilbin.kernels.radial import CHI2_DISTANCE


@dataclass(frozen=True, repr=False)
class Chi2(HomogeneousKernel):
    r"""Additive chi-squared kernel, :math:`K(x, y) = \sum_d 2 x_d y_d / (x_d + y_d)`.

    Bins empty in both rows count 0. Related to the chi-squared distance by
    :math:`\tfrac12 \sum_d (x_d - y_d)^2 / (x_d + y_d) = \tfrac12 \sum_d (x_d + y_d) - K(x, y)`,
    so ``Exponential(Chi2(), gamma)`` is the exp-chi2 kernel. Profile
    :math:`1 / \cosh(t / 2)`.

    Examples
    --------
    >>> from hilbin.kernels import Chi2
    >>> Chi2().gram([[1, 3], [1, 0]])
    array([[4., 1.],
           [1., 1.]])
    """

    op = Op("harmonic")

    def _distance_terms(self) -> Op:
        return CHI2_DISTANCE

    def profile(self, t: Array) -> Array:
        """Return ``1 / cosh(t / 2)``, written so that it cannot overflow."""
        return 2 * np.exp(-t / 2) / (1 + np.exp(-t))
