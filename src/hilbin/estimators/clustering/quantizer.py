"""A codebook of training rows with a guarantee: kernel vector quantization."""

from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np

from hilbin._arrays import Array, Matrix, to_dense
from hilbin._parameters import estimator, require_positive, require_whole
from hilbin._state import require, require_attributes
from hilbin.estimators.clustering.base import CenterClustering
from hilbin.estimators.clustering.cover import smallest_cover
from hilbin.kernels import Kernel, Quantile
from hilbin.kernels.graph import squared_distances

WITHIN = 1e-12  # share of theta by which a distance may be above it
DEFAULT = Quantile(0.05)


@estimator
class KernelQuantizer(CenterClustering):
    r"""Chooses few training rows so that every row is guaranteed to be near one of them.

    Every row is within :math:`\theta` of its prototype, :math:`\|\phi(x) - \phi(p)\| \le \theta`,
    and ``bound_`` says how few prototypes could do that: a cover by the fewest rows is rounded from
    the linear program that bounds it from below.

    Parameters
    ----------
    theta : float >= 0, Quantile or None, default=None
        Largest distance in feature space from a row to its prototype; 0 keeps all different rows. A
        rule takes it from the distances of all pairs. ``None`` is ``Quantile(0.05)``, or, with
        ``n_clusters``, the smallest distance that suffices.
    n_clusters : int, optional
        Most prototypes, instead of ``theta``, which is then found by bisection.

    Attributes
    ----------
    prototypes_ : ndarray of shape (n_prototypes,)
        Indices of the prototypes among the training rows, ascending.
    X_fit_ : ndarray or CSR array of shape (n_prototypes, n_features)
        These rows; None if the kernel was precomputed.
    norms_ : ndarray of shape (n_prototypes,)
        Their :math:`k(x, x)`.
    theta_ : float
        The distance that is guaranteed.
    bound_ : int
        No fewer rows are within ``theta_`` of all.

    References
    ----------
    M. Tipping and B. Schölkopf, *A Kernel Approach for Vector Quantization with Guaranteed
    Distortion Bounds*, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.estimators import KernelQuantizer
    >>> from hilbin.kernels import Linear
    >>> X = np.arange(10.0).reshape(-1, 1)
    >>> codebook = KernelQuantizer(1.5, kernel=Linear()).fit(X)
    >>> codebook.prototypes_.size, codebook.bound_
    (4, 4)
    """

    theta: Any = None
    n_clusters: int | None = None
    _: KW_ONLY
    kernel: Any = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.n_clusters is not None:
            require_whole("n_clusters, if not None,", self.n_clusters, 1)
        if self.theta is not None and self.n_clusters is not None:
            raise ValueError("theta and n_clusters exclude each other: give one of them")
        if self.theta is not None and not isinstance(self.theta, Quantile):
            require_positive("theta, if not None or a Quantile,", self.theta, or_zero=True)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the prototypes.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows, or their Gram matrix with ``kernel="precomputed"``.
        y : ignored

        Returns
        -------
        self : KernelQuantizer
        """
        rows = self._rows(X, self.n_clusters)
        self._resolve_kernel(rows)
        K = self._gram_of(rows)
        distances = np.sqrt(squared_distances(K))
        if self.n_clusters is None:
            self.theta_ = self._resolved_theta(distances)
            self.prototypes_, self.bound_ = _cover(distances, self.theta_)
        else:
            self.theta_, self.prototypes_, self.bound_ = _search(distances, self.n_clusters)
        self.X_fit_ = None if self._precomputed else rows[self.prototypes_]
        self.norms_ = np.asarray(K.diagonal(), np.float64)[self.prototypes_]
        self.labels_ = distances[:, self.prototypes_].argmin(axis=1)
        return self

    def _nearest(self, rows: Matrix) -> Array:
        labels = np.empty(rows.shape[0], np.int64)
        for part, K in self._bands(rows, self.X_fit_, self.prototypes_):
            labels[part] = np.argmin(self.norms_ - 2 * to_dense(K), axis=1)
        return labels

    def _resolved_theta(self, distances: Array) -> float:
        rule = DEFAULT if self.theta is None else self.theta
        if not isinstance(rule, Quantile):
            return float(rule)
        pairs = distances[np.triu_indices(len(distances), 1)]
        return float(np.quantile(pairs, rule.q)) if pairs.size else 0.0

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the arrays of a loaded model do not fit together."""
        self._check_parameters()
        found = require_attributes(
            self,
            prototypes_="int64[p]",
            X_fit_="matrix[p, d]?" if self._precomputed else "matrix[p, d]",
            norms_="float64[p]",
            labels_="int64[n]",
            theta_="float",
            bound_="int",
            n_features_in_="=d",
            feature_names_in_="labels[d]?",
        )
        if not found:
            return
        inside = self.prototypes_.min() >= 0 and self.prototypes_.max() < found["n"]
        require(inside, "prototypes_ is out of range")
        require(self._precomputed or isinstance(self.kernel_, Kernel), "kernel_ is no kernel")


def _cover(distances: Array, theta: float) -> tuple[Array, int]:
    return smallest_cover(distances <= theta * (1 + WITHIN))


def _search(distances: Array, most: int) -> tuple[float, Array, int]:
    """Return the smallest distance, found by bisection, whose cover has few enough rows."""
    values = np.unique(distances)
    low, high = 0, values.size - 1  # one row is within the largest distance of all
    best = values[high], *_cover(distances, values[high])
    while low < high:
        middle = (low + high) // 2
        chosen, bound = _cover(distances, values[middle])
        if chosen.size <= most:
            high, best = middle, (values[middle], chosen, bound)
        else:
            low = middle + 1
    return float(best[0]), best[1], best[2]
