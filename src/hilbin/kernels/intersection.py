"""The histogram intersection kernel."""

from dataclasses import dataclass

import numpy as np

from hilbin._arrays import Array
from hilbin.kernels.additive import HomogeneousKernel
from hilbin.kernels.base import require_positive
from hilbin.kernels.pairwise import Op


@dataclass(frozen=True, repr=False)
class Intersection(HomogeneousKernel):
    r"""Histogram intersection, :math:`K(x, y) = \sum_d \min(x_d^\beta, y_d^\beta)`.

    Positive definite on non-negative rows (Swain and Ballard, 1991; generalized by Boughorbel,
    Tarel and Boujemaa, 2005). Homogeneous of degree :math:`\beta`; profile
    :math:`e^{-\beta t / 2}`.

    Parameters
    ----------
    beta : float > 0, default 1
        Power of the values.

    Examples
    --------
    >>> from hilbin.kernels import Intersection
    >>> Intersection().gram([[1, 2], [3, 0]])
    array([[3., 1.],
           [1., 3.]])
    """

    beta: float = 1.0

    def __post_init__(self) -> None:
        require_positive(self, "beta")

    @property
    def degree(self) -> float:
        """The degree, ``beta``."""
        return self.beta

    def profile(self, t: Array) -> Array:
        """Return ``exp(-beta t / 2)``."""
        return np.exp(-self.beta / 2 * t)

    def _compiled(self) -> Op:
        return Op("minimum", None if self.beta == 1 else lambda x: (np.power(x, self.beta),))

    def _distance_terms(self) -> Op:
        return Op("absolute", lambda x: (np.power(x, self.beta) / 2,), vanishes=False)
