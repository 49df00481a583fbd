"""The exponential of the symmetric Kullback-Leibler divergence."""

from dataclasses import dataclass

import numpy as np

from hilbin._arrays import Array, Matrix
from hilbin.kernels.bandwidth import Rule
from hilbin.kernels.base import require_positive, warn_not_psd
from hilbin.kernels.pairwise import Op, pairwise_sum
from hilbin.kernels.radial import RadialKernel


@dataclass(frozen=True, repr=False)
class SymmetricKL(RadialKernel):
    r"""Symmetric Kullback-Leibler kernel,
    :math:`K(x, y) = e^{-\frac{\gamma}{2} \sum_d (x_d - y_d)(\ln x_d - \ln y_d)}`.

    Not positive definite: the form :math:`(x - y)(\ln x - \ln y)` has an indefinite cross term.
    Prefer :class:`JensenShannon`, or repair the Gram matrix by
    :func:`~hilbin.kernels.repair_psd`.

    Parameters
    ----------
    gamma : float > 0, or "median", "mean", Quantile; default 1
    smoothing : float > 0, default 1e-6
        Added to every value; the divergence is infinite where one row has a zero.

    Examples
    --------
    >>> import warnings
    >>> from hilbin.kernels import NotPositiveDefiniteWarning, SymmetricKL
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", NotPositiveDefiniteWarning)
    ...     kernel = SymmetricKL()
    >>> kernel.gram([[0.5, 0.5]], [[0.25, 0.75]]).round(4)
    array([[0.8717]])
    """

    gamma: float | Rule = 1.0
    smoothing: float = 1e-6
    psd = False
    nonnegative = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "smoothing")
        warn_not_psd(self, "exp(-KL) fails Schoenberg's condition; JensenShannon is the sound kin")

    def _distances(self, X: Matrix, Y: Matrix | None, n_jobs: int | None) -> Array:
        def with_log(x: Array) -> tuple[Array, Array]:
            smooth = x + self.smoothing
            return smooth, np.log(smooth)

        D = pairwise_sum(Op("log_difference", with_log, vanishes=False), X, Y, n_jobs)
        D *= 0.5
        return np.maximum(D, 0, out=D)
