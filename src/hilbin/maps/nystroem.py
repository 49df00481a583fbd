r"""The Nyström map: project onto the span of a few landmark rows.

For landmarks :math:`Z = (z_1, \dots, z_D)` with Gram matrix :math:`K_{ZZ} = U \Lambda U^T`, the
features

.. math:: f(x) = \Lambda^{-1/2} U^T K_{Zx}

are the coordinates of the orthogonal projection of :math:`\phi(x)` onto the span of the
:math:`\phi(z_i)`, and :math:`\langle f(x), f(y) \rangle = K_{xZ} K_{ZZ}^+ K_{Zy}`. What is lost,

.. math:: e(x, y) = k(x, y) - K_{xZ} K_{ZZ}^+ K_{Zy},

is the inner product of two residuals and therefore itself a positive definite kernel: the diagonal
is never overestimated, :math:`0 \le e(x, x) \le k(x, x)`, and :math:`|e(x, y)| \le \sqrt{e(x, x)
e(y, y)}`; it vanishes where ``x`` or ``y`` is a landmark (Williams and Seeger, *Using the Nyström
Method to Speed Up Kernel Machines*, 2001). Any positive definite kernel will do, at the price of
:math:`D` kernel values and :math:`D^2` products for a row.
"""

import warnings
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hilbin._arrays import Array, Matrix, to_dense
from hilbin.kernels import Kernel
from hilbin.maps._base import KernelMap, measured, require_count, sample_rows
from hilbin.maps._landmarks import (
    choose_landmarks,
    landmark_gram,
    no_landmarks,
    require_positive_definite,
    spectrum,
)
from hilbin.parallel import blas_threads


class NystroemMap(ClassNamePrefixFeaturesOutMixin, KernelMap):
    r"""Features :math:`\Lambda^{-1/2} U^T K_{Zx}` of any positive definite kernel, from landmarks.

    With :math:`K_{ZZ} = U \Lambda U^T` the Gram matrix of the landmarks, inner products of the
    features are :math:`K_{xZ} K_{ZZ}^+ K_{Zy}`. The error is positive semi-definite: it is 0 for a
    landmark, and the norm of a row is never overestimated.

    Parameters
    ----------
    kernel : Kernel
        A positive definite one; rules such as ``gamma="median"`` are resolved on the data of
        ``fit``.
    n_components : int, default 100
        Number of landmarks, and of columns unless the landmarks are linearly dependent. Ignored
        when ``landmarks`` gives the rows.
    landmarks : {"uniform", "kmeans++", "leverage"} or array-like or CSR of shape (D, d)
        How to choose rows of ``X``: at random, far from each other (``n_components`` passes over
        at most ``max(20 n_components, 10000)`` rows), or by their approximate ridge leverage
        scores; or the rows themselves.
    n_jobs : int, optional
        Threads, as in joblib.
    random_state : int, RandomState or None
        Chooses the landmarks and the rows on which rules and the error are measured.

    Attributes
    ----------
    kernel_ : Kernel
        ``kernel`` without rules.
    landmarks_ : ndarray or CSR of shape (D, d)
        The landmarks, in the dtype and the storage of the data of ``fit``.
    projection_ : ndarray
        Of shape ``(D, n_components_)``: :math:`U \Lambda^{-1/2}`, by falling eigenvalue;
        eigenvalues that may be rounding are left out.
    n_components_ : int
        Number of columns.
    error_ : MapError
        Measured on at most 500 rows of the data of ``fit`` that are no landmarks.
    n_features_in_ : int
        Number of columns of the data of ``fit``.
    feature_names_in_ : ndarray of str
        Their names, if they are strings.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hilbin.kernels import Chi2, Exponential
    >>> from hilbin.maps import NystroemMap
    >>> X, _ = load_digits(return_X_y=True)
    >>> kernel = Exponential(Chi2(), gamma="median")
    >>> nystroem = NystroemMap(kernel, n_components=200, random_state=0).fit(X)
    >>> nystroem.transform(X).shape
    (1797, 200)
    >>> nystroem.error_.expected_relative < 0.05
    True
    """

    def __init__(
        self,
        kernel: Kernel,
        n_components: int = 100,
        *,
        landmarks: Any = "uniform",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.landmarks = landmarks
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: object, y: object = None) -> Self:
        """Choose the landmarks and decompose their Gram matrix.

        Parameters
        ----------
        X : array-like or CSR of shape (n, d)
        y : ignored

        Returns
        -------
        self : NystroemMap
        """
        count = require_count("n_components", self.n_components)
        require_positive_definite(self._checked_kernel(), self)
        rows = self._rows(X, reset=True)
        # One generator: the same seed again would measure the error on the landmarks.
        rng = check_random_state(self.random_state)
        self.kernel_ = self.kernel.resolve(rows, rng)
        self.landmarks_ = choose_landmarks(
            self.kernel_, rows, self.landmarks, count, rng, self.n_jobs
        )
        K = landmark_gram(self.kernel_, self.landmarks_, self.n_jobs)
        values, vectors = spectrum(K, rows.dtype)
        self.projection_ = vectors / np.sqrt(values)
        self.n_components_ = len(values)
        if isinstance(self.landmarks, str) and self.n_components_ < count:
            self._warn_fewer(count, rows.shape[0])
        sample = no_landmarks(self.kernel_, sample_rows(rows, rng), self.landmarks_, self.n_jobs)
        F = self._features(sample)
        self.error_ = measured(to_dense(self.kernel_.gram(sample)), F @ F.T, per="row")
        return self

    def transform(self, X: object) -> Array:
        """Features of ``X``.

        Parameters
        ----------
        X : array-like or CSR of shape (n, d)

        Returns
        -------
        F : ndarray
            Of shape ``(n, n_components_)``; float32 if ``X`` is float32, else float64. Besides
            it, about as much memory is used as scikit-learn's ``working_memory`` setting.
        """
        check_is_fitted(self)
        return self._features(self._rows(X))

    def _features(self, X: Matrix) -> Array:
        F = np.empty((X.shape[0], self.n_components_), X.dtype)
        memory = get_config()["working_memory"] / 2  # a band and its product, or the next band
        Z = self.landmarks_
        with blas_threads(self.n_jobs):
            for rows, K in self.kernel_.tiles(X, Z, memory=memory, n_jobs=self.n_jobs):
                F[rows] = to_dense(K) @ self.projection_.astype(K.dtype)
        return F

    def _warn_fewer(self, count: int, n_rows: int) -> None:
        found = self.n_components_
        what = (
            "rows" if found == n_rows else f"linearly independent landmarks found in {n_rows} rows"
        )
        warnings.warn(
            f"n_components={count} is more than the {found} {what}: the map has {found} columns",
            UserWarning,
            stacklevel=3,
        )

    @property
    def _n_features_out(self) -> int:
        return self.n_components_
