r"""The tangent distance: images compared up to small shifts, turns and changes of size.

Where an image :math:`y` moves under a transformation it leaves a curve of images, whose tangent
:math:`t` at :math:`y` is a derivative of the image. The distance of :math:`x` to the plane through
:math:`y` along the tangents :math:`t_1, \dots, t_k`,

.. math:: d(x, y) = \min_{\delta} \Big\|x - y - \sum_k \delta_k t_k\Big\|^2
                  = \|x - y\|^2 - \|Q^T (x - y)\|^2,

:math:`Q` an orthonormal basis of the tangents at :math:`y`, is a linear approximation of the
distance of the best match (Simard, LeCun, Denker and Victorri; Lampert, *Kernel Methods in Computer
Vision*, (3.6), which leaves out the sum). Derivatives are differences of neighboring pixels: small
steps are meant, and images with sharp edges do well to be smoothed first.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hilbin._arrays import Array, Matrix, to_dense
from hilbin.kernels.bandwidth import Rule
from hilbin.kernels.base import warn_not_psd
from hilbin.kernels.pairwise import pairwise_sum
from hilbin.kernels.radial import SQUARED, RadialKernel
from hilbin.parallel import blas_threads, ranges

TANGENTS = ("across", "down", "rotation", "scale")
CACHED_VALUES = 1 << 21
DEPENDENT = 1e-10  # tangents this much shorter than the longest are no direction


@dataclass(frozen=True, repr=False)
class TangentDistance(RadialKernel):
    r"""Tangent distance, :math:`K(x, y) = e^{-\frac{\gamma}{2} (d(x, y) + d(y, x))}` with
    :math:`d(x, y) = \|(I - QQ^T)(x - y)\|^2`.

    :math:`Q` is an orthonormal basis of the tangents at :math:`y`. Not positive definite.

    Parameters
    ----------
    shape : (height, width) or (height, width, channels)
        Shape of the image that a row is, at least 2 pixels high and wide.
    gamma : float > 0, or "median", "mean", Quantile; default 1
        A rule takes :math:`1 / \gamma` from the distances.
    tangents : tuple of {"across", "down", "rotation", "scale"}
        Transformations: shifts along the width and the height, turns and changes of size about the
        middle; all by default.

    Examples
    --------
    >>> import warnings
    >>> from hilbin.kernels import NotPositiveDefiniteWarning, TangentDistance
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", NotPositiveDefiniteWarning)
    ...     kernel = TangentDistance((2, 3), tangents=("across",))
    >>> ramp, shifted, step = [0, 1, 2, 0, 1, 2], [1, 2, 3, 1, 2, 3], [0, 0, 1, 0, 0, 1]
    >>> kernel.gram([ramp], [shifted, step]).round(3)  # a shifted ramp stays on its tangent
    array([[1.  , 0.42]])
    """

    shape: tuple[int, ...]
    gamma: float | Rule = 1.0
    tangents: tuple[str, ...] = TANGENTS
    psd = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("shape", "tangents"):
            if not isinstance(getattr(self, name), tuple):
                object.__setattr__(self, name, tuple(getattr(self, name)))
        if len(self.shape) not in (2, 3) or min(self.shape[:2]) < 2 or min(self.shape) < 1:
            raise ValueError(
                "shape of TangentDistance must be (height, width[, channels]), at least 2 pixels "
                f"high and wide, got {self.shape!r}"
            )
        if not self.tangents or not set(self.tangents) <= set(TANGENTS):
            raise ValueError(
                f"tangents of TangentDistance must be some of {TANGENTS}, got {self.tangents!r}"
            )
        warn_not_psd(self, "the tangent distance fails Schoenberg's condition")

    def _distances(self, X: Matrix, Y: Matrix | None, n_jobs: int | None) -> Array:
        x = self._dense(X)
        y = x if Y is None else self._dense(Y)
        D = pairwise_sum(SQUARED, x, None if Y is None else y, n_jobs)
        with blas_threads(n_jobs):
            there = self._along_tangents(x, y)
            back = there.T if Y is None else self._along_tangents(y, x).T
        D -= (there + back) / 2
        return np.maximum(D, 0).astype(X.dtype)

    def _dense(self, X: Matrix) -> Array:
        """Return rows in float64: the distance is a small difference of large numbers."""
        if X.shape[1] != np.prod(self.shape):
            raise ValueError(f"X has {X.shape[1]} columns, but an image of {self.shape} does not")
        return np.ascontiguousarray(to_dense(X), dtype=np.float64)

    def _along_tangents(self, X: Array, Y: Array) -> Array:
        """Compute ``||Q^T (x - y)||^2`` for all pairs, with the ``Q`` of ``y``."""
        out = np.empty((X.shape[0], Y.shape[0]))
        k = len(self.tangents)
        height = max(1, CACHED_VALUES // (k * max(X.shape)))
        for begin, end in ranges(Y.shape[0], height):
            y = Y[begin:end]
            Q = self._basis(y)  # (rows, k, d)
            own = np.einsum("rkd,rd->rk", Q, y)
            parts = (X @ Q.reshape(-1, X.shape[1]).T).reshape(len(X), end - begin, k) - own
            out[:, begin:end] = np.einsum("nrk,nrk->nr", parts, parts)
        return out

    def _basis(self, Y: Array) -> Array:
        """Return orthonormal rows that span the tangents of every image; zero where they are fewer.

        They are singular vectors: a QR of dependent tangents (a flat image has none) would make up
        directions.
        """
        T = tangent_vectors(Y, self.shape, self.tangents)
        _, sizes, Q = np.linalg.svd(T, full_matrices=False)
        Q *= (sizes > DEPENDENT * sizes[:, :1])[:, :, None]
        if Q.shape[1] < len(self.tangents):  # fewer pixels than tangents
            Q = np.pad(Q, ((0, 0), (0, len(self.tangents) - Q.shape[1]), (0, 0)))
        return Q


def tangent_vectors(Y: Array, shape: tuple[int, ...], tangents: tuple[str, ...]) -> Array:
    """Return derivatives of images along transformations, of shape (n, len(tangents), d)."""
    images = Y.reshape(len(Y), *shape[:2], -1)
    down, across = np.gradient(images, axis=(1, 2))
    i, j = (np.arange(side) - (side - 1) / 2 for side in shape[:2])
    i, j = i[:, None, None], j[None, :, None]
    made: dict[str, Any] = {
        "across": lambda: across,
        "down": lambda: down,
        "rotation": lambda: j * down - i * across,
        "scale": lambda: i * down + j * across,
    }
    return np.stack([made[name]().reshape(len(Y), -1) for name in tangents], axis=1)
