"""Fisher vector: how the descriptors of an image would change a mixture of Gaussians.

For weights ``w_k``, means ``m_k`` and deviations ``s_k`` learned from many images, and ``q_ik`` the
share of Gaussian ``k`` in descriptor ``x_i`` of ``n``, the row has for every ``k``
``sum_i q_ik (x_i - m_k) / s_k / (n sqrt(w_k))`` and
``sum_i q_ik (((x_i - m_k) / s_k)^2 - 1) / (n sqrt(2 w_k))``,
then signed square roots and length 1 (Perronnin, Sánchez & Mensink, ECCV 2010). The row has
negative values: it is meant for linear models, not for kernels on histograms.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture
from sklearn.utils import check_random_state

from hilbin import parallel
from hilbin._arrays import Array
from hilbin._parameters import estimator
from hilbin._state import require, require_attributes
from hilbin.images.bag import DescriptorTransformer
from hilbin.images.local import LocalDescriptor
from hilbin.images.read import Pixels

POINTS_PER_COMPONENT = 1000


@estimator
class FisherVector(DescriptorTransformer):
    """Fisher vectors of local descriptors.

    Parameters
    ----------
    n_components : int, default=64
        Number of Gaussians of the mixture.
    n_dimensions : int, default=64
        Number of principal components of the descriptors; fewer if they have fewer dimensions.
    n_samples : int, optional
        Number of descriptors the mixture is learned from; 1000 for every Gaussian by default.

    Attributes
    ----------
    means_, deviations_ : arrays of shape (n_components, n_dimensions)
    weights_ : array of shape (n_components,)
    components_ : array of shape (n_dimensions, d)
        Principal components of the descriptors.
    center_ : array of shape (d,)
        Mean of the descriptors.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images import DenseSIFT, FisherVector
    >>> images = np.random.default_rng(0).integers(0, 256, (6, 64, 64), np.uint8)
    >>> fisher = FisherVector(DenseSIFT(4), n_components=3, n_dimensions=8, random_state=0)
    >>> fisher.fit_transform(images).shape  # 2 * 3 * 8
    (6, 48)
    """

    n_components: int = 64
    _: KW_ONLY
    n_dimensions: int = 64

    def _learn(self, sources: Sequence[Any], y: Any) -> None:
        rng = check_random_state(self.random_state)
        descriptor = self._descriptor()
        points = self._draw(descriptor, sources, POINTS_PER_COMPONENT * self.n_components, rng)
        if points.shape[0] <= self.n_components:
            raise ValueError(
                f"n_components={self.n_components} Gaussians need more descriptors than the "
                f"{points.shape[0]} that the images give"
            )
        kept = min(self.n_dimensions, *points.shape)
        with parallel.blas_threads(self.n_jobs):
            pca = PCA(kept, random_state=rng, svd_solver="covariance_eigh").fit(points)
            mixture = GaussianMixture(
                self.n_components,
                covariance_type="diag",
                random_state=rng,
                reg_covar=1e-5,
                tol=1e-2,
            ).fit(pca.transform(points))
        self.descriptor_ = descriptor
        self.center_, self.components_ = pca.mean_, pca.components_
        self.weights_, self.means_ = mixture.weights_, mixture.means_
        self.deviations_ = np.sqrt(mixture.covariances_)

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the arrays of a loaded transformer do not fit together."""
        found = require_attributes(
            self,
            center_="float[f]",
            components_="float[d, f]",
            weights_="float[k]",
            means_="float[k, d]",
            deviations_="float[k, d]",
        )
        if found:
            require(isinstance(vars(self).get("descriptor_"), LocalDescriptor), "no descriptor_")
            right = found["f"] == self.descriptor_.n_dimensions
            require(right, "components_ are not those of these descriptors")

    def transform_image(self, image: Pixels) -> Array:
        """Return the Fisher vector of one image."""
        points = self.descriptor_.points(image)
        if len(points) == 0:
            return np.zeros(self._n_features_out, np.float32)
        x = ((points - self.center_) @ self.components_.T).astype(np.float64)
        w, mu, sigma = self.weights_, self.means_.astype(np.float64), self.deviations_
        precision = 1.0 / sigma.astype(np.float64) ** 2
        # squares multiplied out: matrix products, no array of points x Gaussians x numbers
        log_density = np.log(w) - np.log(sigma).sum(axis=1) - 0.5 * (mu**2 * precision).sum(axis=1)
        log_density = log_density + x @ (mu * precision).T - 0.5 * x**2 @ precision.T
        shares = np.exp(log_density - logsumexp(log_density, axis=1, keepdims=True)) / len(x)
        count, total, squares = shares.sum(axis=0)[:, None], shares.T @ x, shares.T @ x**2
        first = (total - count * mu) / sigma / np.sqrt(w)[:, None]
        second = (squares - 2 * mu * total + count * mu**2) * precision - count
        second /= np.sqrt(2 * w)[:, None]
        row = np.concatenate([first.ravel(), second.ravel()])
        row = np.sign(row) * np.sqrt(np.abs(row))
        length = np.linalg.norm(row)
        unit: Array = row / length if length > 0 else row
        return unit.astype(np.float32)

    @property
    def _n_features_out(self) -> int:
        return 2 * int(self.means_.size)
