"""The Jensen-Shannon kernel."""

from dataclasses import dataclass

import numpy as np

from hilbin.kernels._arrays import Array
from hilbin.kernels._pairwise import Op
from hilbin.kernels.additive import HomogeneousKernel


def _with_log2(x: Array) -> tuple[Array, Array]:
    return x, np.log2(x, out=np.zeros_like(x), where=x > 0)


@dataclass(frozen=True, repr=False)
class JensenShannon(HomogeneousKernel):
    r"""Jensen-Shannon kernel,
    :math:`K(x, y) = \tfrac12 \sum_d x_d \log_2 \frac{x_d + y_d}{x_d}
    + y_d \log_2 \frac{x_d + y_d}{y_d}`.

    For rows that sum to 1 it is 1 minus the Jensen-Shannon divergence in bits
    (:math:`0 \log 0 = 0`), and ``Exponential(JensenShannon(), gamma)`` is
    :math:`e^{-\gamma\,\mathrm{JS}}`. Profile
    :math:`\tfrac12 [e^{t/2} \log_2(1 + e^{-t}) + e^{-t/2} \log_2(1 + e^t)]`.

    Examples
    --------
    >>> from hilbin.kernels import JensenShannon
    >>> JensenShannon().gram([[0.5, 0.5], [1.0, 0.0]]).round(4)
    array([[1.    , 0.6887],
           [0.6887, 1.    ]])
    """

    op = Op("jensen_shannon", _with_log2)

    def profile(self, t: Array) -> Array:
        """Half the sum of both sides, with ``log(1 + e^t) = t + log(1 + e^-t)``."""
        small = np.log1p(np.exp(-t))
        return (np.exp(t / 2) * small + np.exp(-t / 2) * (t + small)) / (2 * np.log(2))
