r"""Landmarks: the few rows :math:`z_1, \dots, z_D` whose images span what a map can represent.

Projecting :math:`\phi(x)` onto the span of the landmarks leaves
:math:`k(x, x) - K_{xZ} K_{ZZ}^+ K_{Zx}`, so good landmarks are those to which few rows are far.

- *uniform*: rows at random.
- *kmeans++*: one at a time, a row with a chance in proportion to its squared distance
  :math:`k(x, x) + k(c, c) - 2 k(x, c)` to the nearest one already chosen (Arthur and Vassilvitskii,
  *k-means++*, 2007; for landmarks, Oglic and Gärtner, *Nyström Method with Kernel K-means++
  Samples as Landmarks*, 2017). The origin counts as chosen: every span contains it.
- *leverage*: with a chance in proportion to the ridge leverage score
  :math:`\ell_i = (K (K + \lambda I)^{-1})_{ii}`, how much row :math:`i` adds to the others (Alaoui
  and Mahoney, *Fast Randomized Kernel Ridge Regression with Statistical Guarantees*, 2015). A
  uniform pilot of :math:`2D` rows gives features :math:`b_i`, and
  :math:`\ell_i \approx b_i^T (B^T B + \lambda I)^{-1} b_i + (k_{ii} - |b_i|^2) / \lambda`;
  :math:`\lambda` is such that the scores add up to :math:`D`.

The last two look at no more than ``max(20 D, 10000)`` rows, drawn uniformly.
"""

from dataclasses import KW_ONLY
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import brentq
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils import check_random_state

from hilbin._arrays import Array, Matrix, check_rows, to_dense
from hilbin._parameters import estimator
from hilbin._state import require_attributes
from hilbin.kernels import Kernel
from hilbin.maps.base import KernelMap, measured, sample_rows

CANDIDATES, CANDIDATES_PER_LANDMARK = 10_000, 20
PILOT_PER_LANDMARK = 2


@estimator
class LandmarkMap(ClassNamePrefixFeaturesOutMixin, KernelMap):
    """A map onto the span of landmarks.

    A subclass finds the landmarks (``_find_landmarks``), prepares their Gram matrix
    (``_decompose``) and says what kernel values its features give (``_approximation``).

    Parameters
    ----------
    kernel : Kernel
        A positive definite one; rules such as ``gamma="median"`` are resolved on the data of
        ``fit``.
    random_state : int, RandomState or None
        Random seed of the landmarks and of the rows on which rules and the error are measured.

    Attributes
    ----------
    kernel_ : Kernel
        ``kernel`` without rules.
    landmarks_ : ndarray or CSR of shape (D, d)
        The landmarks, in the dtype and the storage of the data of ``fit``.
    error_ : MapError
        The error measured on at most 500 rows of the data of ``fit`` that are no landmarks, or on
        landmarks if there are no others. Rows unlike these may be off by up to
        ``sqrt(k(x, x) k(y, y))``.
    """

    _: KW_ONLY
    random_state: Any = None

    def _fit(self, rows: Matrix) -> None:
        # One generator: the same seed again would measure the error on the landmarks.
        rng = check_random_state(self.random_state)
        self.kernel_ = self._with_names(self.kernel).resolve(rows, rng)
        self.landmarks_ = self._find_landmarks(rows, rng)
        self._decompose(landmark_gram(self.kernel_, self.landmarks_, self.n_jobs), rows)
        sample = self._no_landmarks(sample_rows(rows, rng))
        K = to_dense(self.kernel_._gram(sample, None, self.n_jobs))
        self.error_ = measured(K, self._approximation(sample), per="row")

    def _find_landmarks(self, rows: Matrix, rng: Any) -> Matrix:
        raise NotImplementedError

    def _decompose(self, K: Array, rows: Matrix) -> None:
        raise NotImplementedError

    def _approximation(self, rows: Matrix) -> Array:
        raise NotImplementedError

    def _check_state(self) -> None:
        """Raise ``ValueError`` if loaded landmarks have other columns than the rows of ``fit``."""
        require_attributes(self, landmarks_="matrix[m, d]", kernel_=Kernel, n_features_in_="=d")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not self.kernel.psd:
            raise ValueError(
                f"{type(self).__name__} needs a positive definite kernel, and {self.kernel!r} is "
                "not: no features have it as their inner products"
            )

    def _no_landmarks(self, sample: Matrix) -> Matrix:
        """Return the rows of ``sample`` that are no landmarks; all if none is left."""
        kernel, Z = self.kernel_, self.landmarks_.astype(np.float64)
        norms = kernel._diag(sample)
        gaps = norms[:, None] + kernel._diag(Z) - 2 * to_dense(kernel._gram(sample, Z, self.n_jobs))
        others = gaps.min(axis=1) > 1e-9 * norms
        return sample[others] if others.any() else sample


def choose_landmarks(
    kernel: Kernel,
    X: Matrix,
    landmarks: Any,
    count: int,
    random_state: Any,
    n_jobs: int | None,
    *,
    name: str = "landmarks",
) -> Matrix:
    """Return at most ``count`` different rows of ``X``, or the rows that ``landmarks`` gives.

    Fewer come back when ``X`` has no more, or, unless they are uniform, when the others add
    nothing. ``kernel`` is resolved; given rows take the dtype and the storage of ``X``; ``name``
    is the parameter that errors speak of.
    """
    if not isinstance(landmarks, str) and np.ndim(landmarks) > 0:
        return _given(kernel, X, landmarks)
    if not isinstance(landmarks, str) or landmarks not in CHOICES:
        choices = ", ".join(f'"{choice}"' for choice in CHOICES)
        rows = ", or rows" if name == "landmarks" else ""
        raise ValueError(f"{name} must be one of {choices}{rows}, got {landmarks!r}")
    rng = check_random_state(random_state)
    if landmarks != "uniform":
        X = _some(X, max(CANDIDATES_PER_LANDMARK * count, CANDIDATES), rng)
    return X[CHOICES[landmarks](kernel, X, min(count, X.shape[0]), rng, n_jobs)]


def landmark_gram(kernel: Kernel, Z: Matrix, n_jobs: int | None) -> Array:
    """Return the Gram matrix of the landmarks, dense and in float64; raise if it is 0."""
    K = to_dense(kernel._gram(Z.astype(np.float64), None, n_jobs))
    if not np.diagonal(K).max() > 0:
        raise ValueError(
            f"k(z, z) of {kernel!r} is 0 for all {len(K)} landmarks: they span nothing"
        )
    return K


def spectrum(K: Array, dtype: Any = np.float64) -> tuple[Array, Array]:
    """Return eigenvalues, the largest first, and eigenvectors, without those that are rounding.

    ``dtype`` is that of the kernel values to be multiplied by ``U / sqrt(l)``: their rounding is
    what a small ``l`` magnifies.
    """
    values, vectors = np.linalg.eigh(K)
    relative = max(len(K) * np.finfo(np.float64).eps, np.finfo(dtype).eps)
    kept = np.flatnonzero(values > relative * values[-1])[::-1]
    return values[kept], vectors[:, kept]


def _given(kernel: Kernel, X: Matrix, landmarks: Any) -> Matrix:
    """Check landmarks that the user gives."""
    Z = check_rows(landmarks, "landmarks", nonnegative=kernel._demand())
    if Z.shape[1] != X.shape[1]:
        raise ValueError(f"landmarks has {Z.shape[1]} columns, but X has {X.shape[1]}")
    if sp.issparse(X):
        return sp.csr_array(Z, dtype=X.dtype)
    return np.array(to_dense(Z), dtype=X.dtype)


def _some(X: Matrix, size: int, rng: Any) -> Matrix:
    return X if X.shape[0] <= size else X[np.sort(rng.choice(X.shape[0], size, replace=False))]


def _squared_norms(kernel: Kernel, X: Matrix) -> Array:
    norms = np.maximum(kernel._diag(X), 0)
    if not norms.max() > 0:
        raise ValueError(f"k(x, x) of {kernel!r} is 0 for all {len(norms)} rows: they span nothing")
    return norms


def _uniform(kernel: Kernel, X: Matrix, count: int, rng: Any, n_jobs: int | None) -> Array:
    return rng.choice(X.shape[0], count, replace=False)


def _kmeans_plus_plus(kernel: Kernel, X: Matrix, count: int, rng: Any, n_jobs: int | None) -> Array:
    norms = _squared_norms(kernel, X)
    rounding = 16 * np.finfo(X.dtype).eps
    nearest = norms.copy()
    chosen: list[int] = []
    while len(chosen) < count and nearest.max() > 0:
        c = int(rng.choice(len(nearest), p=nearest / nearest.sum()))
        chosen.append(c)
        column = to_dense(kernel._gram(X, X[c : c + 1], n_jobs)).ravel().astype(np.float64)
        distance = norms + norms[c] - 2 * column
        distance[distance <= rounding * (norms + norms[c])] = 0
        distance[c] = 0
        np.minimum(nearest, distance, out=nearest)
    return np.array(chosen, dtype=np.intp)


def _leverage(kernel: Kernel, X: Matrix, count: int, rng: Any, n_jobs: int | None) -> Array:
    scores = leverage_scores(kernel, X, count, rng, n_jobs)
    chances = scores / scores.sum()
    size = min(count, np.count_nonzero(chances))
    return rng.choice(len(chances), size, replace=False, p=chances)


def leverage_scores(kernel: Kernel, X: Matrix, count: int, rng: Any, n_jobs: int | None) -> Array:
    """Return ridge leverage scores, at most 1, that add up to about ``count``."""
    norms = _squared_norms(kernel, X)
    pilot = _some(X[np.flatnonzero(norms)], PILOT_PER_LANDMARK * count, rng)
    values, vectors = spectrum(landmark_gram(kernel, pilot, n_jobs), X.dtype)
    B = to_dense(kernel._gram(X, pilot, n_jobs)) @ (vectors / np.sqrt(values))
    missing = np.maximum(norms - np.square(B).sum(axis=1), 0)
    # In the eigenbasis of B^T B the sum of the scores needs no matrix for another lambda.
    values, vectors = np.linalg.eigh(B.T @ B)
    values = np.maximum(values, 0)
    ridge = _ridge(values, missing.sum(), count)
    scores = np.square(B @ vectors) @ (1 / (values + ridge)) + missing / ridge
    return np.minimum(scores, 1)


def _ridge(values: Array, missing: float, count: int) -> float:
    """Return the lambda whose scores add up to ``count``, or the smallest sensible one."""

    def excess(log_ridge: float) -> float:
        ridge = np.exp(log_ridge)
        return float(np.sum(values / (values + ridge)) + missing / ridge - count)

    # At the trace over the count the sum is below the count already, but for rounding.
    high = np.log(2 * (values.sum() + missing) / count)
    low = high + np.log(np.finfo(np.float64).eps)
    return float(np.exp(brentq(excess, low, high) if excess(low) > 0 else low))


CHOICES = {"uniform": _uniform, "kmeans++": _kmeans_plus_plus, "leverage": _leverage}
