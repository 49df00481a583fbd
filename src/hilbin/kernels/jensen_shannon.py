"""The Jensen-Shannon kernel."""

from dataclasses import dataclass

import numpy as np

from hilbin._arrays import Array
from hilbin.kernels.additive import HomogeneousKernel
from hilbin.kernels.pairwise import Op


def _planes(x: Array) -> tuple[Array, Array, Array]:
    """Return ``x``, ``1 / x`` and ``log2 x``, finite where ``x`` is 0."""
    positive = np.maximum(x, np.finfo(x.dtype).tiny)
    return x, 1 / positive, np.log2(positive)


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

    op = Op("jensen_shannon", _planes)

    def profile(self, t: Array) -> Array:
        """Return half the sum of both sides, with ``log(1 + e^t) = t + log(1 + e^-t)``."""
        t = np.minimum(t, 1000.0)  # the profile is 0 long before exp overflows
        small = np.log1p(np.exp(-t))
        return (np.exp(t / 2) * small + np.exp(-t / 2) * (t + small)) / (2 * np.log(2))
