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
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from sklearn import get_config

from hilbin._arrays import Array, Matrix, to_dense
from hilbin._parameters import estimator, require_whole
from hilbin._state import require_attributes
from hilbin.maps.landmarks import LandmarkMap, choose_landmarks, spectrum
from hilbin.parallel import blas_threads


@estimator
class NystroemMap(LandmarkMap):
    r"""Features :math:`\Lambda^{-1/2} U^T K_{Zx}` of any positive definite kernel, from landmarks.

    With :math:`K_{ZZ} = U \Lambda U^T` the Gram matrix of the landmarks, inner products of the
    features are :math:`K_{xZ} K_{ZZ}^+ K_{Zy}`. The error is positive semi-definite: it is 0 for a
    landmark, and the norm of a row is never overestimated. Besides its features, ``transform``
    uses about as much memory as scikit-learn's ``working_memory`` setting.

    Parameters
    ----------
    n_components : int, default 100
        Number of landmarks, and of columns unless the landmarks are linearly dependent. Ignored
        when ``landmarks`` gives the rows.
    landmarks : {"uniform", "kmeans++", "leverage"} or array-like or CSR of shape (D, d)
        How to choose rows of ``X``: at random, far from each other (``n_components`` passes over
        at most ``max(20 n_components, 10000)`` rows), or by their approximate ridge leverage
        scores; or the rows themselves.

    Attributes
    ----------
    projection_ : ndarray
        The matrix :math:`U \Lambda^{-1/2}` of shape ``(D, n_components_)``, by falling eigenvalue;
        eigenvalues that may be rounding are left out.
    n_components_ : int
        Number of columns.

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

    n_components: int = 100
    _: KW_ONLY
    landmarks: Any = "uniform"

    def _check_state(self) -> None:
        """Raise ``ValueError`` if a loaded projection is not one of the landmarks."""
        require_attributes(
            self, landmarks_="matrix[m, d]", projection_="float[m, c]", n_components_="=c"
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_whole("n_components", self.n_components, 1)

    def _find_landmarks(self, rows: Matrix, rng: Any) -> Matrix:
        count = int(self.n_components)
        return choose_landmarks(self.kernel_, rows, self.landmarks, count, rng, self.n_jobs)

    def _decompose(self, K: Array, rows: Matrix) -> None:
        values, vectors = spectrum(K, rows.dtype)
        self.projection_ = vectors / np.sqrt(values)
        self.n_components_ = len(values)
        if isinstance(self.landmarks, str) and self.n_components_ < self.n_components:
            self._warn_fewer(rows.shape[0])

    def _approximation(self, rows: Matrix) -> Array:
        F = self._features(rows)
        return F @ F.T

    def _features(self, X: Matrix) -> Array:
        F = np.empty((X.shape[0], self.n_components_), X.dtype)
        memory = get_config()["working_memory"] / 2  # a band and its product, or the next band
        Z = self.landmarks_
        with blas_threads(self.n_jobs):
            for rows, K in self.kernel_.tiles(X, Z, memory=memory, n_jobs=self.n_jobs):
                F[rows] = to_dense(K) @ self.projection_.astype(K.dtype)
        return F

    def _warn_fewer(self, n_rows: int) -> None:
        count, found = self.n_components, self.n_components_
        what = (
            "rows" if found == n_rows else f"linearly independent landmarks found in {n_rows} rows"
        )
        warnings.warn(
            f"n_components={count} is more than the {found} {what}: the map has {found} columns",
            UserWarning,
            stacklevel=5,
        )

    @property
    def _n_features_out(self) -> int:
        return self.n_components_
