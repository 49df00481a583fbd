r"""What the reductions share: centered kernel values, and functions that are linear in them.

With :math:`H = I - 11^\top/n` the centered Gram matrix is :math:`K_c = HKH`, the inner products of
the images :math:`\phi(x_i)` minus their mean. A coordinate of a new row is
:math:`\sum_i a_i \langle \phi(x_i) - \bar\phi, \phi(x) - \bar\phi \rangle`; with coefficients of
sum 0 that is :math:`\sum_i a_i k(x_i, x) + b`, where :math:`b = -\sum_i a_i \bar k_i` and
:math:`\bar k_i` is the mean of column :math:`i` of :math:`K`. An explicit map :math:`z` has
:math:`w^\top z(x) - w^\top \bar z` instead. So every reduction is a matrix of coefficients and an
intercept.

**Weights.** With weights :math:`w_i` of sum :math:`W` the mean is :math:`\sum_i w_i \phi(x_i) / W`,
and the matrix that is decomposed is :math:`\sqrt{w_i w_j}` times the inner products: a weight of 2
is the row twice.

**Spectrum.** :math:`K_c = U\,\mathrm{diag}(\mu)\,U^\top`, or :math:`Z_c = U\,\mathrm{diag}(\mu)^{
1/2}\,W^\top` for features. The coordinates of the training rows are :math:`U
\mathrm{diag}(\mu)^{1/2}`, and the coefficients :math:`U \mathrm{diag}(\mu)^{-1/2}`, or :math:`W`.
Few eigenvalues of a large matrix are found by block Lanczos (:mod:`hilbin.solvers.lanczos`), else
all or some by LAPACK.
"""

import warnings
from dataclasses import KW_ONLY
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh, svd
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from hilbin._arrays import Array, Matrix, check_rows, to_dense
from hilbin._parameters import estimator
from hilbin._state import require, require_attributes
from hilbin.estimators._fit import outer_level, random_seed
from hilbin.estimators._sizes import (
    LEAST,
    MOST,
    finite_scores,
    require_finite,
    without_warnings,
)
from hilbin.estimators.kernel.machine import KernelEstimator
from hilbin.estimators.linear.transformers import fitted, require_plain_inner_product
from hilbin.estimators.probability import row_keys
from hilbin.kernels import Kernel, NotPositiveDefiniteWarning
from hilbin.parallel import blas_threads, ranges
from hilbin.solvers.lanczos import lanczos
from hilbin.stats import DistinctSample

LEAST_SPREAD = 1e-12  # variance of rows over their mean square that is more than rounding
FEW_ROWS = 3000  # up to so many, LAPACK finds some eigenvalues as fast
FEW_SHARE = 1 / 20  # of all eigenvalues: so many are few
NEGATIVE = 1e-8  # eigenvalues below minus this, over the largest, are those of no kernel
CHUNK = 4096  # rows whose features are computed at a time


class Centered(NamedTuple):
    """A centered Gram matrix, or centered features, and the means that were subtracted.

    Rows, and columns of a matrix, are multiplied by the roots of their weights.
    """

    values: Array  # (n, n), or (n, n_features)
    means: Array  # of the columns before
    total: float  # weighted sum of the squared distances of the images from their mean
    weights: Array  # (n,)

    def unweighted(self, T: Array) -> Array:
        """Return coordinates of the training rows without the roots of their weights."""
        roots = np.sqrt(self.weights)[:, None]
        return np.divide(T, roots, out=np.zeros_like(T), where=roots > 0)


class Spectrum(NamedTuple):
    """Eigenvalues, falling, eigenvectors, and the coefficients of coordinates."""

    eigenvalues: Array  # (m,)
    vectors: Array  # (n, m)
    coef: Array  # (n, m), or (n_features, m)

    @property
    def coordinates(self) -> Array:
        """The coordinates of the training rows."""
        return self.vectors * np.sqrt(self.eigenvalues)


def signs(T: Array) -> Array:
    """Return factors of -1 and 1 that make the entry of largest size in every column positive."""
    largest = T[np.abs(T).argmax(axis=0), np.arange(T.shape[1])]
    return np.where(largest < 0, -1.0, 1.0)


@estimator
class KernelProjection(KernelEstimator):
    """Base of the estimators that give coordinates, linear in centered kernel values or features.

    Parameters
    ----------
    feature_map : transformer, optional
        A map of :mod:`hilbin.maps` that is fitted and takes the place of ``kernel``: coordinates
        are those of its features, at a cost that grows with the number of rows and not with its
        square. :class:`~hilbin.maps.NystroemMap` makes it the Nyström method.

    Attributes
    ----------
    coef_ : ndarray of shape (n_samples, n_components) or (n_map_features, n_components)
        Coefficients of the kernel values to the training rows, or of the features.
    intercept_ : ndarray of shape (n_components,)
        Constant part of every coordinate.
    X_fit_ : ndarray or CSR of shape (n_samples, n_features)
        The training rows; None if the kernel is precomputed or there is a map.
    feature_map_ : transformer
        The fitted map, if there is one.
    """

    _: KW_ONLY
    feature_map: Any = None

    @property
    def _explicit(self) -> bool:
        return self.feature_map is not None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self._explicit and self.kernel is not None:
            raise ValueError(
                "kernel and feature_map are given, but a map has its own kernel: leave one out"
            )
        if self._explicit and not hasattr(self.feature_map, "transform"):
            raise ValueError(f"feature_map must be a transformer, got {self.feature_map!r}")

    def _demand(self) -> str | None:
        kernel = getattr(self.feature_map, "kernel", None) if self._explicit else self.kernel
        return kernel._demand() if isinstance(kernel, Kernel) else None

    @without_warnings()
    def _center(self, rows: Matrix, weights: Array | None = None) -> Centered:
        """Keep the kernel, or the map; return what they say about the rows, centered."""
        w = np.ones(rows.shape[0]) if weights is None else weights
        if self._explicit:
            self._fit_map(rows, w)
            M = self._features(rows)
        else:
            K = to_dense(self._gram(rows, weights))
            ours = self.kernel is None or isinstance(self.kernel, Kernel)  # else it is the user's
            M = np.asarray(K, np.float64) if ours else np.array(K, np.float64)
        self.X_fit_ = None if self._explicit or self._precomputed else rows.copy()
        shares, size = w / w.sum(), self._squares(M, w)
        means = shares @ M
        M -= means
        if not self._explicit:
            M -= (M @ shares)[:, None]
        total = self._squares(M, w)
        _check_spread(total, size, rows.shape[0], w.sum())
        if weights is not None:
            roots = np.sqrt(w)
            M *= roots[:, None]
            M *= 1.0 if self._explicit else roots
        return Centered(M, means, total, w)

    def _fit_map(self, rows: Matrix, weights: Array) -> None:
        """Fit the map to the different rows of weight above 0."""
        seed, n = random_seed(self.random_state), rows.shape[0]
        sample = DistinctSample.of(rows, n, numbers=row_keys(rows), seed=seed, weight=weights)
        self.feature_map_ = fitted([("all", None, self.feature_map)], sample, seed)[0][2]
        require_plain_inner_product(self.feature_map_)

    def _squares(self, M: Array, weights: Array) -> float:
        """Return the weighted sum of squared norms of features, or from their Gram matrix."""
        norms = np.einsum("ij,ij->i", M, M) if self._explicit else M.diagonal()
        return float(weights @ norms)

    def _features(self, rows: Matrix) -> Array:
        """Return the features of rows, dense and in double precision."""
        parts = (self.feature_map_.transform(rows[b:e]) for b, e in ranges(rows.shape[0], CHUNK))
        return np.concatenate([to_dense(part).astype(np.float64, copy=False) for part in parts])

    def _spectrum(self, found: Centered, count: int | None, cut: float) -> Spectrum:
        """Return the ``count`` largest eigenvalues, or all, that are above ``cut`` of the first."""
        with blas_threads(self.n_jobs):
            if self._explicit:
                U, roots, Wt = svd(found.values, full_matrices=False, check_finite=False)
                mu, coef = roots**2, Wt.T
            else:
                mu, U = largest_eigenpairs(found.values, count)
                warn_if_negative(mu)
                with np.errstate(divide="ignore", invalid="ignore"):  # those are cut
                    coef = U / np.sqrt(mu)
        kept = int(np.count_nonzero(mu > cut * mu[0]))
        kept = kept if count is None else min(kept, count)
        sign = signs(found.unweighted(U[:, :kept]))
        return Spectrum(mu[:kept], U[:, :kept] * sign, coef[:, :kept] * sign)

    def _keep(self, found: Centered, coef: Array) -> None:
        """Store the coefficients; those of a kernel are made to sum to 0."""
        if not self._explicit:
            coef = coef * np.sqrt(found.weights)[:, None]
            coef -= np.outer(found.weights / found.weights.sum(), coef.sum(axis=0))
        self.coef_ = coef
        self.intercept_ = -(found.means @ self.coef_)
        require_finite(self, "coef_", "intercept_")

    @without_warnings()
    def _project(self, X: Any) -> Array:
        """Return the coordinates of new rows, a band of kernel values or features at a time."""
        rows = self._new_rows(X)
        T = np.empty((rows.shape[0], self.coef_.shape[1]))
        if self._explicit:
            check_rows(rows, "X", nonnegative=self._demand())
            for b, e in ranges(rows.shape[0], CHUNK):
                T[b:e] = self._features(rows[b:e]) @ self.coef_
        else:
            for part, K in self._bands(rows, self.X_fit_):
                T[part] = K @ self.coef_
        return finite_scores(T + self.intercept_)

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the arrays of a loaded model do not fit together."""
        self._check_parameters()
        known = not (self._explicit or self._precomputed)
        found = require_attributes(
            self,
            coef_="float64[d, m]" if self._precomputed else "float64[n, m]",
            intercept_="float64[m]",
            X_fit_="matrix[n, d]" if known else "matrix[n, d]?",
            n_features_in_="=d",
            feature_names_in_="labels[d]?",
        )
        if found and known:
            require(isinstance(self.kernel_, Kernel), "kernel_ is no kernel")
        if found and self._explicit:
            require(hasattr(vars(self).get("feature_map_"), "transform"), "feature_map_ is no map")


@estimator
class KernelTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelProjection):
    """Base of the transformers of one view."""

    def transform(self, X: Any) -> Array:
        """Compute the coordinates of rows.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Samples, or the kernel between them and the training rows.

        Returns
        -------
        coordinates : ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self, "coef_")
        return self._project(X)[:, : self._n_features_out]

    @property
    def _n_features_out(self) -> int:
        """The number of coordinates; there may be more, for prediction."""
        return int(self.coef_.shape[1])


def _check_spread(total: float, size: float, n: int, weight: float) -> None:
    """Refuse rows that are all equal, or too large or small to compute with."""
    if not (total > LEAST_SPREAD * size or np.isnan(total)):
        what = "all rows are equal" if n > 1 else "X has 1 sample"
        raise ValueError(f"X has no variance in the feature space: {what}")
    if not LEAST <= total <= MOST:
        raise ValueError(
            f"the variance of X in the feature space is {total / weight:.3g}, too far from 1 to "
            "compute with: scale X or the kernel"
        )


def largest_eigenpairs(K: Array, count: int | None) -> tuple[Array, Array]:
    """Return the largest eigenvalues of a symmetric matrix, falling, and their vectors."""
    n = len(K)
    if count is not None and n > FEW_ROWS and count < FEW_SHARE * n:
        found = lanczos(K, count)
        if found is not None:
            return found
    if count is None or count >= n:
        values, vectors = eigh(K, driver="evd", check_finite=False)
    else:
        values, vectors = eigh(K, subset_by_index=(n - count, n - 1), check_finite=False)
    return values[::-1], vectors[:, ::-1]


def warn_if_negative(eigenvalues: Array) -> None:
    """Warn of eigenvalues, falling, that no positive definite kernel has."""
    if eigenvalues[-1] < -NEGATIVE * eigenvalues[0]:
        warnings.warn(
            "the kernel is not positive definite: the smallest eigenvalue of the centered Gram "
            f"matrix is {eigenvalues[-1]:.3g}. Negative ones are left out",
            NotPositiveDefiniteWarning,
            stacklevel=outer_level(),
        )
