"""Fisher vector: how the descriptors of an image would change a mixture of Gaussians.

For weights ``w_k``, means ``m_k`` and deviations ``s_k`` learned from many images, and ``q_ik`` the
share of Gaussian ``k`` in descriptor ``x_i`` of ``n``, the row has for every ``k``
``sum_i q_ik (x_i - m_k) / s_k / (n sqrt(w_k))`` and
``sum_i q_ik (((x_i - m_k) / s_k)^2 - 1) / (n sqrt(2 w_k))``,
then signed square roots and length 1 (Perronnin, Sánchez & Mensink, ECCV 2010). Such a row has
negative values and is meant for linear models. With ``parts=True`` the positive and the negative
parts of the sums stand side by side instead, and sum to 1: a histogram, for any kernel on
histograms. The Hellinger kernel of two such rows is the inner product of the signed square roots,
but for values of opposite sign; chi-squared does better still.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture
from sklearn.utils import check_random_state

from hilbin import parallel
from hilbin._arrays import Array
from hilbin._parameters import estimator
from hilbin._state import require, require_attributes
from hilbin.images.bag import DescriptorTransformer, count_points
from hilbin.images.descriptors import ImageSample
from hilbin.images.local import LocalDescriptor
from hilbin.images.read import Pixels
from hilbin.images.sift import DenseSIFT
from hilbin.images.words import paint

POINTS_PER_COMPONENT = 1000
MOST_COMPONENTS = 64  # in a mixture that suits the images
FAINT = 1e-3  # share of a Gaussian, over its largest, in descriptors that say nothing of it


@estimator
class FisherVector(DescriptorTransformer):
    """Fisher vectors of local descriptors.

    Parameters
    ----------
    n_components : int, default=64
        Number of Gaussians of the mixture.
    n_dimensions : int, default=64
        Number of principal components of the descriptors; fewer if they have fewer dimensions.
    parts : bool, default=False
        Whether a row holds the positive parts of all sums and then the negative ones, for kernels
        on histograms, instead of signed square roots.
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
    parts: bool = False

    @staticmethod
    def n_components_for(sample: ImageSample) -> int:
        """Return the number of Gaussians that the descriptors of the images suffice for."""
        found = count_points(DenseSIFT.for_sample(sample), sample) / POINTS_PER_COMPONENT
        return min(MOST_COMPONENTS, int(found))

    @classmethod
    def for_sample(cls, sample: ImageSample, random_state: Any = None) -> Self:
        """Return histograms of parts that suit the size and the number of the images."""
        n_components = cls.n_components_for(sample)
        if n_components < 1:
            raise ValueError("the images are too small or too few for fisher; try centrist")
        return cls(
            DenseSIFT.for_sample(sample), n_components, parts=True, random_state=random_state
        )

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
        with parallel.single_thread():  # equal images and seeds give equal bits
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
        row = self._sums(*self._shares(self.descriptor_.points(image)))
        if self.parts:
            row = np.concatenate([np.maximum(row, 0), np.maximum(-row, 0)])
            length = row.sum()
        else:
            row = np.sign(row) * np.sqrt(np.abs(row))
            length = np.linalg.norm(row)
        unit: Array = row / length if length > 0 else row
        return unit.astype(np.float32)

    def _shares(self, points: Array) -> tuple[Array, Array]:
        """Return the components of descriptors, and the shares of the Gaussians in them."""
        x = ((points - self.center_) @ self.components_.T).astype(np.float64)
        w, mu, sigma = self.weights_, self.means_.astype(np.float64), self.deviations_
        precision = 1.0 / sigma.astype(np.float64) ** 2
        # squares multiplied out: matrix products, no array of points x Gaussians x numbers
        constant = np.log(w) - np.log(sigma).sum(axis=1) - 0.5 * (mu**2 * precision).sum(axis=1)
        shares = x @ (mu * precision).T
        shares += x**2 @ (-0.5 * precision).T
        shares += constant
        shares -= shares.max(axis=1, keepdims=True)
        np.exp(shares, out=shares)
        shares /= shares.sum(axis=1, keepdims=True)
        return x, shares

    def _sums(self, x: Array, shares: Array) -> Array:
        """Return the sums over all descriptors, the first moments before the second."""
        w, mu, sigma = self.weights_, self.means_.astype(np.float64), self.deviations_
        shares = shares / max(len(x), 1)
        count, total, squares = shares.sum(axis=0)[:, None], shares.T @ x, shares.T @ x**2
        first = (total - count * mu) / sigma / np.sqrt(w)[:, None]
        second = (squares - 2 * mu * total + count * mu**2) / sigma.astype(np.float64) ** 2 - count
        second /= np.sqrt(2 * w)[:, None]
        return np.concatenate([first.ravel(), second.ravel()])

    def to_pixels(self, image: Pixels, contributions: Array) -> Array:
        """Distribute the contributions of the features over the descriptors that they come from.

        A feature is a sum over the descriptors. Those whose terms have the sign of the sum share
        its contribution in proportion to their terms, but for descriptors in which the Gaussian
        has hardly a share; what a feature contributes by being 0 is spread evenly over the image.
        """
        grids, amounts = self.descriptor_.grids(image), np.asarray(contributions, np.float64)
        flat = [grid.features.reshape(-1, grid.features.shape[2]) for grid in grids]
        evenly = np.full(image.shape[:2], 1 / (image.shape[0] * image.shape[1]))
        if not flat:
            return amounts.sum() * evenly
        x, shares = self._shares(np.concatenate(flat))
        sums = self._sums(x, shares)
        plus, minus = np.split(amounts, 2) if self.parts else (amounts, amounts)
        given = np.where(sums > 0, plus, np.where(sums < 0, minus, 0.0))
        each = self._over_descriptors(x, shares, np.sign(sums), given)
        ends = np.cumsum([len(part) for part in flat])[:-1]
        painted = [
            part.reshape(grid.features.shape[:2])
            for part, grid in zip(np.split(each, ends), grids, strict=True)
        ]
        return (amounts.sum() - each.sum()) * evenly + paint(image.shape, grids, painted)

    def _over_descriptors(self, x: Array, shares: Array, sign: Array, given: Array) -> Array:
        """Distribute amounts of the features over descriptors whose terms have their signs."""
        K, d = self.means_.shape
        signs, amounts = (a.reshape(2, K, d) for a in (sign, given))
        each = np.zeros(len(x))
        for k in range(K):
            near = np.flatnonzero(shares[:, k] > FAINT * shares[:, k].max())
            u = (x[near] - self.means_[k]) / self.deviations_[k]
            for order, terms in enumerate((u, u**2 - 1)):
                agreeing = np.maximum(signs[order, k] * terms, 0) * shares[near, k][:, None]
                total = agreeing.sum(axis=0)
                rate = np.divide(amounts[order, k], total, out=np.zeros(d), where=total > 0)
                each[near] += agreeing @ rate
        return each

    @property
    def _n_features_out(self) -> int:
        return (4 if self.parts else 2) * int(self.means_.size)
