r"""Kernel principal components, and the way back to rows.

The centered Gram matrix :math:`K_c = U\,\mathrm{diag}(\mu)\,U^\top` gives the coordinates
:math:`\sqrt{\mu_k} U_{ik}` of training rows and :math:`\sum_i k_c(x, x_i) U_{ik} / \sqrt{\mu_k}` of
new ones: those of the principal components of the images :math:`\phi(x)`. Eigenvalues below
:math:`10^{-12} \mu_1` are rounding and are left out. Features of a map are decomposed as they are;
:class:`~hilbin.estimators.StreamPCA` does so out of core.

**Back to rows.** The projection of :math:`x` with coordinates :math:`t` is :math:`\sum_i g_i
\phi(x_i)` with :math:`g = a t + 1 / n` and the coefficients :math:`a`, which sum to 0: the mean is
put back, and :math:`g` sums to 1. Three ways lead from there to a row: a fixed point or distances
(:mod:`hilbin.estimators.reduction.preimages`), or ridge regression from coordinates to rows, with a
Gaussian of median width and the penalty of least leave-one-out error.

**References.** B. Schölkopf, A. Smola and K.-R. Müller, *Nonlinear Component Analysis as a Kernel
Eigenvalue Problem*, 1998. G. Bakır, J. Weston and B. Schölkopf, *Learning to Find Pre-Images*,
2003. Chapter 7 of C. Lampert, *Kernel Methods in Computer Vision*.
"""

from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from hilbin._arrays import Array, Matrix, check_rows, to_dense
from hilbin._parameters import estimator, require_choice, require_positive, require_whole
from hilbin._state import require, require_attributes
from hilbin.estimators._fit import checked_weights
from hilbin.estimators.kernel.ridge import KernelRidge
from hilbin.estimators.reduction.base import KernelTransformer
from hilbin.estimators.reduction.preimages import (
    by_distances,
    by_fixed_point,
    has_distances,
    has_fixed_point,
)
from hilbin.kernels import Gaussian
from hilbin.parallel import blas_threads

ROUNDING = 1e-12  # eigenvalues below, over the largest, are rounding
PREIMAGES = ("auto", "fixed_point", "distances", "ridge")
KNOWN = {"fixed_point": has_fixed_point, "distances": has_distances}
PENALTIES = np.logspace(-3, 0, 7)  # of the ridge regression back to rows


@estimator
class KernelPCA(KernelTransformer):
    r"""Principal components in the feature space of any kernel, with pre-images.

    Coordinates equal those of :class:`sklearn.decomposition.KernelPCA`, up to their signs: the
    largest entry of an eigenvector is positive.

    Parameters
    ----------
    n_components : int, optional
        Number of components; by default all that have a variance above rounding. More than the
        rank of the centered matrix is an error.
    preimage : {"auto", "fixed_point", "distances", "ridge"} or None, default="auto"
        How ``inverse_transform`` and ``denoise`` find rows. ``"fixed_point"`` minimizes the
        distance in the feature space, for Gaussian, linear and additive kernels and exponentials
        of them; the bins of histogram kernels stay non-negative. ``"distances"`` locates rows by
        their distances to ten neighbors, for Gaussian and Euclidean Laplace kernels. ``"ridge"`` is
        a regression from coordinates to rows, for any kernel or map, and takes :math:`O(n^3)` time
        in ``fit``. ``"auto"`` is a fixed point if there is one for the kernel, else a regression
        on dense rows. ``None``, and a precomputed kernel, have no way back.
    preimage_alpha : float or "auto", default="auto"
        Penalty of that regression. ``"auto"`` is the one of least leave-one-out error on the
        training rows; noise that they do not have may ask for a larger one.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Eigenvalues :math:`\mu` of the centered Gram matrix, falling: variances times the number
        of rows.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Shares of the variance in the feature space.
    n_components_ : int
        Number of components.
    preimage_ : str or None
        The way back to rows that is in use.
    mean_coef_ : ndarray of shape (n_samples,)
        Coefficients of the mean of the images: shares of the rows in all weight.

    See Also
    --------
    StreamPCA : the same with an explicit map, out of core.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hilbin.estimators import KernelPCA
    >>> from hilbin.kernels import Chi2
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = KernelPCA(Chi2(), 20).fit(X[:500])
    >>> model.transform(X[500:]).shape
    (1297, 20)
    >>> rows = model.denoise(X[500:505])
    >>> rows.shape, bool(rows.min() >= 0)
    ((5, 64), True)
    """

    n_components: int | None = None
    _: KW_ONLY
    preimage: str | None = "auto"
    preimage_alpha: Any = "auto"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.n_components is not None:
            require_whole("n_components, if not None,", self.n_components, 1)
        if self.preimage is not None:
            require_choice("preimage, if not None,", self.preimage, PREIMAGES)
        if isinstance(self.preimage_alpha, str):
            require_choice("preimage_alpha, if not a number,", self.preimage_alpha, ("auto",))
        else:
            require_positive("preimage_alpha", self.preimage_alpha)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the components.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features) or (n_samples, n_samples)
            Samples, or their Gram matrix.
        y : None
            Not used.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice.

        Returns
        -------
        self : KernelPCA
        """
        self._fit(X, sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Find the components, and return the coordinates of the same rows.

        Parameters
        ----------
        X, y, sample_weight : as in ``fit``

        Returns
        -------
        coordinates : ndarray of shape (n_samples, n_components)
        """
        coordinates = self._fit(X, sample_weight)
        return coordinates if sample_weight is None else self.transform(X)

    def _fit(self, X: Any, sample_weight: Any, *, fewer: bool = False) -> Array:
        """Find the components; return coordinates of the rows that weigh more than 0.

        ``fewer`` allows a rank below ``n_components``.
        """
        rows, _ = self._checked(X)
        weights = None if sample_weight is None else checked_weights(sample_weight, rows)
        found = self._center(rows, weights)
        spectrum = self._spectrum(found, self.n_components, ROUNDING)
        rank = spectrum.eigenvalues.size
        if self.n_components is not None and rank < self.n_components and not fewer:
            raise ValueError(
                f"n_components={self.n_components} is more than {rank}, the rank of "
                f"{rows.shape[0]} centered rows in the feature space"
            )
        self.n_components_ = rank
        self.eigenvalues_ = spectrum.eigenvalues.copy()
        self.explained_variance_ratio_ = self.eigenvalues_ / found.total
        self._keep(found, spectrum.coef)
        self.mean_coef_ = found.weights / found.weights.sum()
        self.preimage_ = self._way(rows)
        coordinates = found.unweighted(spectrum.coordinates)
        self._ridge: Any = None
        if self.preimage_ == "ridge":
            alpha = PENALTIES if isinstance(self.preimage_alpha, str) else self.preimage_alpha
            self._ridge = KernelRidge(Gaussian("median"), alpha, n_jobs=self.n_jobs)
            self._ridge.fit(coordinates, to_dense(rows), weights)
        return coordinates

    def _way(self, rows: Matrix) -> str | None:
        """Return how rows are found; refuse what the kernel does not have."""
        if self.preimage != "auto":
            if self.preimage in KNOWN and not self._knows(self.preimage):
                what = "an explicit map" if self._explicit else f"the kernel {self.kernel_!r}"
                raise ValueError(f"preimage={self.preimage!r} is not for {what}: take 'ridge'")
            if self._precomputed and self.preimage is not None:
                raise ValueError(
                    f'preimage={self.preimage!r} needs rows, but kernel="precomputed" has none: '
                    "take None"
                )
            return self.preimage
        if self._knows("fixed_point"):
            return "fixed_point"
        return None if self._precomputed or sp.issparse(rows) else "ridge"

    def _knows(self, way: str) -> bool:
        """Tell whether there is such a way back for the kernel; a map has none."""
        return way in KNOWN and not self._explicit and KNOWN[way](self.kernel_)

    def inverse_transform(self, X: Any) -> Array:
        """Find rows whose images are near given coordinates.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Coordinates.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features)
        """
        return self._back(X, None)

    def denoise(self, X: Any) -> Array:
        """Project rows on the components, and find rows near the projections.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Samples. A fixed point is searched from them on.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self, "coef_")
        T = self._project(X)
        return self._back(T, to_dense(self._new_rows(X)).astype(np.float64))

    def _back(self, T: Any, start: Array | None) -> Array:
        check_is_fitted(self, "coef_")
        T = np.asarray(to_dense(check_rows(T, "X")), np.float64)
        if T.shape[1] != self.n_components_:
            raise ValueError(
                f"X has {T.shape[1]} columns, but there are {self.n_components_} components"
            )
        if self.preimage_ is None:
            raise ValueError("this model has no way back to rows: set preimage before fit")
        with blas_threads(self.n_jobs):
            if self.preimage_ == "ridge":
                found = np.asarray(self._ridge.predict(T)).reshape(len(T), -1)
                return np.maximum(found, 0) if self._demand() else found
            rows = to_dense(self.X_fit_).astype(np.float64)
            G = T @ self.coef_.T
            G += self.mean_coef_
            if self.preimage_ == "distances":
                return by_distances(self.kernel_, G, rows)
            return by_fixed_point(self.kernel_, G, rows, start)

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the arrays of a loaded model do not fit together."""
        super()._check_state()
        found = require_attributes(
            self,
            coef_="float64[*, m]" if self._explicit else "float64[n, m]",
            mean_coef_="float64[*]" if self._explicit else "float64[n]",
            eigenvalues_="float64[m]",
            explained_variance_ratio_="float64[m]",
            n_components_="=m",
            preimage_="str?",
        )
        if found and self.preimage_ == "ridge":
            require(isinstance(self._ridge, KernelRidge), "there is no regression back to rows")
        elif found:
            known = self.preimage_ is None or self._knows(self.preimage_)
            require(known, f"preimage_={self.preimage_!r} is not for the kernel")
