r"""Rows as codes of their kernel components, for search, clusters and montages.

A row has features :math:`z` of an additive kernel (:class:`~hilbin.auto.ChannelMap`). Their first
principal components, learned from a sample of rows,

.. math:: e = V (z - \bar z) ,

hold most of the variance in a few hundred numbers. They are product-quantized: four components are
one byte. Of what is left, :math:`\|z - \bar z\|^2 - \|e\|^2` is kept. So an index has a thousandth
of the features of a photograph.
Components are divided so that every four have about the same product of variances, which lets all
bytes say as much (T. Ge, K. He, Q. Ke and J. Sun, *Optimized Product Quantization*, 2014).

**Search.** Squared distances are those of the components, from look-ups of products of :math:`e`
with the words (H. Jégou, M. Douze and C. Schmid, *Product Quantization for Nearest Neighbor
Search*, 2011), plus what is left of both rows, as if that were orthogonal: far rows are then known
as far, which neighbors in thousands of dimensions depend on. The distances of the nearest ones are
computed again from all features :math:`z`, wherever the owner of the index has them from.

**Differences.** The mean features of some rows are :math:`\bar z + V^T` times their mean
components, so that codes alone tell which columns set a cluster apart.
"""

from functools import cached_property
from typing import Self

import numpy as np
from sklearn.decomposition import PCA

from hilbin._arrays import Array
from hilbin._state import require, require_attributes, stored
from hilbin.auto.channels import Channel, ChannelMap
from hilbin.kernels import AdditiveKernel
from hilbin.maps import ProductQuantizer
from hilbin.maps.pq import PQCodes
from hilbin.solvers.coded import PQRows

PART = 4  # components of a byte
WORDS = 256
SAME = 1e-12  # share of the squared features that is no variance


@stored
class RowIndex:
    """Rows as codes of their kernel components.

    Parameters
    ----------
    sample : array of shape (n_sample, n_columns)
        Rows that components are learned from.
    channels : list of (str, int, int)
        Channels of the columns.
    kernel : AdditiveKernel or None
        Kernel of the values; None is linear.
    n_components : int
        Most components.
    seed : int
        Random seed.
    n_jobs : int, optional
        Threads.

    Attributes
    ----------
    channel_map : ChannelMap
        From rows to features.
    mean, deviations : float32 array of shape (n_features,)
        Of the features of the sample.
    components : float16 array of shape (n_components, n_features)
        Directions, in the order of the parts.
    codes : PQCodes
        Codes of the rows that :meth:`keep` was given.
    residuals : float32 array of shape (n_rows,)
        Squared norms of what their components leave.
    """

    def __init__(
        self,
        sample: Array,
        channels: list[Channel],
        kernel: AdditiveKernel | None,
        n_components: int,
        seed: int,
        n_jobs: int | None = None,
    ) -> None:
        self.channel_map = ChannelMap(channels, kernel=kernel, n_jobs=n_jobs).fit_values(sample)
        Z = self.channel_map.transform(sample)
        self.mean = Z.mean(axis=0, dtype=np.float64).astype(np.float32)
        self.deviations = Z.std(axis=0, dtype=np.float64).astype(np.float32)
        self.components = np.zeros((1, Z.shape[1]), np.float16)
        if np.square(Z - Z[0]).sum(dtype=np.float64) > SAME * np.square(Z).sum(dtype=np.float64):
            pca = PCA(min(n_components, *Z.shape), random_state=seed).fit(Z)
            kept = np.flatnonzero(pca.explained_variance_ > 0)
            order = kept[_balanced(pca.explained_variance_[kept])]
            self.components = pca.components_[order].astype(np.float16)

    def keep(self, embedded: Array, residuals: Array, seed: int, n_jobs: int | None = None) -> Self:
        """Keep the codes of rows, as :meth:`embed` has computed their components."""
        words = min(WORDS, len(embedded))
        quantizer = ProductQuantizer(PART, n_words=words, random_state=seed, n_jobs=n_jobs)
        self.codes = quantizer.fit(embedded).transform(embedded)
        self.residuals = residuals
        return self

    def __len__(self) -> int:
        return len(self.codes)

    def features(self, rows: Array) -> Array:
        """Return the features of rows."""
        return self.channel_map.transform(rows)

    def embed(self, features: Array) -> tuple[Array, Array]:
        """Return the components of features, and the squared norms of what they leave."""
        centered = features.astype(np.float32, copy=False) - self.mean
        found = centered @ self._directions.T
        left = np.einsum("ij,ij->i", centered, centered) - np.einsum("ij,ij->i", found, found)
        return found, np.maximum(left, 0)

    def decoded(self) -> Array:
        """Return the components of all rows, as far as their codes tell."""
        return self.codes.decode()

    def nearest(self, features: Array, n: int) -> tuple[Array, Array]:
        """Return the numbers of the rows nearest to the features of one, and their distances."""
        (embedded,), (left,) = self.embed(features[None])
        products = self._scored.scores(embedded[None])[:, 0]
        squared = self._norms - 2 * products + (embedded @ embedded + left)
        n = min(n, len(squared))
        best = np.argpartition(squared, n - 1)[:n]
        best = best[np.argsort(squared[best], kind="stable")]
        return best, np.sqrt(np.maximum(squared[best], 0))

    def effects(self, inside: Array) -> Array:
        """Return by how many standard deviations the features of some rows exceed the others'."""
        E = self.decoded()
        difference = E[inside].mean(axis=0) - E[~inside].mean(axis=0)
        scale = np.where(self.deviations > 0, self.deviations, np.inf)
        found: Array = (difference @ self._directions) / scale
        return found

    @property
    def input_columns(self) -> Array:
        """The column that every feature is made from."""
        return self.channel_map.input_columns_

    @cached_property
    def _directions(self) -> Array:
        return self.components.astype(np.float32)

    @cached_property
    def _scored(self) -> PQRows:
        return PQRows(self.codes.groups, self.codes.words, self.codes.n_features)

    @cached_property
    def _norms(self) -> Array:
        """Squared norms of the rows, as far as their codes tell."""
        E = self.decoded()
        return np.einsum("ij,ij->i", E, E) + self.residuals

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the attributes of a loaded index do not fit together."""
        require_attributes(
            self,
            channel_map=ChannelMap,
            mean="float32[d]",
            deviations="float32[d]",
            components="float16[q, d]",
            codes=PQCodes,
            residuals="float32[n]",
        )
        names = ("channel_map", "mean", "deviations", "components", "codes", "residuals")
        require(all(hasattr(self, name) for name in names), "an attribute is missing")
        width = len(self.channel_map.input_columns_)
        require(self.mean.size == width, "mean is not that of the features")
        require(self.codes.n_features == len(self.components), "codes are of other components")
        require(len(self.codes) == len(self.residuals), "residuals are not one for every row")


def _balanced(variances: Array) -> Array:
    """Return an order of components in which every part has about the same product of variances.

    Components, the largest first, go to the part whose product is smallest, if it has room.
    """
    n_parts = -(-len(variances) // PART)
    sizes = np.full(n_parts, PART)
    sizes[-1] -= n_parts * PART - len(variances)
    logs = np.log(variances / variances.max())
    sums, members = np.zeros(n_parts), [list[int]() for _ in range(n_parts)]
    for component in np.argsort(-variances, kind="stable"):
        # fewer members first: a sum of few logarithms, all below 0, is not yet comparable
        open_parts = [p for p in range(n_parts) if len(members[p]) < sizes[p]]
        part = min(open_parts, key=lambda p: (len(members[p]), sums[p]))
        members[part].append(int(component))
        sums[part] += logs[component]
    return np.array([component for part in members for component in part])


def kernel_distances(features: Array, others: Array) -> Array:
    """Return the distances of features from those of one row."""
    difference = others - features
    return np.sqrt(np.einsum("ij,ij->i", difference, difference))
