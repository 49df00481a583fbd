r"""Sparse projections: every row by its own few landmarks.

Of the landmarks :math:`Z = (z_1, \dots, z_D)` a row uses :math:`P`, the subset :math:`B`, and is
projected onto their span alone:

.. math:: \Phi_B(x) = K_{BB}^+ K_{Bx}, \qquad \Phi_i(x) = 0 \text{ for } i \notin B.

The subsets of two rows differ, so the inner product keeps the Gram matrix of all landmarks:

.. math:: \hat K(x, y) = \Phi(x)^T K_{ZZ} \Phi(y)

(Vedaldi and Zisserman, *Sparse Kernel Approximations for Efficient Classification and Detection*,
2012). With :math:`P = D` this is the Nyström map. The subset is either the :math:`P` landmarks
nearest to :math:`\phi(x)`, or the result of orthogonal matching pursuit: the landmark that
correlates most with what is not yet represented, :math:`|\langle r, \phi(z) \rangle| / |\phi(z)|`,
then a new projection, :math:`P` times (Pati, Rezaiifar and Krishnaprasad, 1993).
"""

import warnings
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator
from sklearn import get_config
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hilbin._arrays import Array, Matrix, to_dense
from hilbin._state import stored
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


class SparseProjectionMap(ClassNamePrefixFeaturesOutMixin, KernelMap):
    r"""Sparse coordinates :math:`K_{BB}^+ K_{Bx}` in a few landmarks ``B`` chosen for every row.

    The kernel is approximated by :math:`\Phi(x)^T K_{ZZ} \Phi(y)`, with ``inner_`` for
    :math:`K_{ZZ}`, or with ``orthonormal=True`` by ordinary inner products of dense features. A
    landmark reproduces itself, and the norm of a row is never overestimated.

    Parameters
    ----------
    kernel : Kernel
        A positive definite one; rules such as ``gamma="median"`` are resolved on the data of
        ``fit``.
    landmarks : int, default 100, or array-like or CSR of shape (D, d)
        Number of landmarks, chosen from ``X``; or the rows themselves.
    n_nonzero : int, default 5
        Number of landmarks that represent one row.
    choose : {"uniform", "kmeans++", "leverage"}
        How landmarks are chosen, if ``landmarks`` is their number: at random, far from each other,
        or by their approximate ridge leverage scores.
    selection : {"nearest", "pursuit"}
        Which of the landmarks represent a row: the nearest, or those that orthogonal matching
        pursuit finds. Pursuit is more accurate and ``n_nonzero`` times the work.
    orthonormal : bool, default False
        Whether features are dense, :math:`L^T \Phi(x)` with :math:`K_{ZZ} = L L^T`.
    n_jobs : int, optional
        Threads for kernel values, as in joblib.
    random_state : int, RandomState or None
        Chooses the landmarks and the rows on which rules and the error are measured.

    Attributes
    ----------
    kernel_ : Kernel
        ``kernel`` without rules.
    landmarks_ : ndarray or CSR of shape (D, d)
        The landmarks, in the dtype and the storage of the data of ``fit``.
    inner_ : LinearOperator of shape (D, D)
        :math:`K_{ZZ}` in float64.
    factor_ : ndarray of shape (D, rank of :math:`K_{ZZ}`)
        :math:`L`, by falling eigenvalue of :math:`K_{ZZ}`; only with ``orthonormal=True``.
    error_ : MapError
        Measured on at most 500 rows of the data of ``fit``.
    n_features_in_ : int
        Number of columns of the data of ``fit``.
    feature_names_in_ : ndarray of str
        Their names, if they are strings.

    Examples
    --------
    >>> from hilbin.kernels import Intersection
    >>> from hilbin.maps import SparseProjectionMap
    >>> Z = [[3.0], [4.0], [8.0]]
    >>> sparse = SparseProjectionMap(Intersection(), Z, n_nonzero=2).fit([[3.3]])
    >>> sparse.transform([[3.3]]).toarray().round(6)
    array([[0.7, 0.3, 0. ]])
    """

    def __init__(
        self,
        kernel: Kernel,
        landmarks: Any = 100,
        n_nonzero: int = 5,
        *,
        choose: Literal["uniform", "kmeans++", "leverage"] = "uniform",
        selection: Literal["nearest", "pursuit"] = "nearest",
        orthonormal: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.landmarks = landmarks
        self.n_nonzero = n_nonzero
        self.choose = choose
        self.selection = selection
        self.orthonormal = orthonormal
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: object, y: object = None) -> Self:
        """Choose the landmarks and compute their Gram matrix.

        Parameters
        ----------
        X : array-like or CSR of shape (n, d)
        y : ignored

        Returns
        -------
        self : SparseProjectionMap
        """
        require_positive_definite(self._checked_kernel(), self)
        if self.selection not in SELECTIONS:
            raise ValueError(f'selection must be "nearest" or "pursuit", got {self.selection!r}')
        rows = self._rows(X, reset=True)
        # One generator: the same seed again would measure the error on the landmarks.
        rng = check_random_state(self.random_state)
        self.kernel_ = self.kernel.resolve(rows, rng)
        self.landmarks_ = self._find_landmarks(rows, rng)
        self._K = landmark_gram(self.kernel_, self.landmarks_, self.n_jobs)
        self._spans = _Spans(self._K)
        self.inner_ = aslinearoperator(self._K)
        if self.orthonormal:
            values, vectors = spectrum(self._K)
            self.factor_ = vectors * np.sqrt(values)
        sample = no_landmarks(self.kernel_, sample_rows(rows, rng), self.landmarks_, self.n_jobs)
        Phi = self._coordinates(sample)
        approximation = Phi @ (Phi @ self._K).T
        self.error_ = measured(to_dense(self.kernel_.gram(sample)), approximation, per="row")
        return self

    def transform(self, X: object) -> Any:
        """Coordinates of ``X``, or features with ``orthonormal=True``.

        Parameters
        ----------
        X : array-like or CSR of shape (n, d)

        Returns
        -------
        Phi : csr_array of shape (n, D), or ndarray of shape (n, rank)
            float32 if ``X`` is float32, else float64; the CSR has ``n_nonzero`` entries in every
            row, some of which may be 0. Besides it, about as much memory is used as scikit-learn's
            ``working_memory`` setting.
        """
        check_is_fitted(self)
        Phi = self._coordinates(self._rows(X))
        return Phi @ self.factor_.astype(Phi.dtype) if self.orthonormal else Phi

    def _find_landmarks(self, X: Matrix, rng: Any) -> Matrix:
        n_nonzero = require_count("n_nonzero", self.n_nonzero)
        by_number = np.ndim(self.landmarks) == 0
        count = require_count("landmarks", self.landmarks) if by_number else 0
        if by_number and n_nonzero > count:
            raise ValueError(f"n_nonzero={n_nonzero} is more than landmarks={count}")
        how, name = (self.choose, "choose") if by_number else (self.landmarks, "landmarks")
        Z = choose_landmarks(self.kernel_, X, how, count, rng, self.n_jobs, name=name)
        found, n_rows = Z.shape[0], X.shape[0]
        if n_nonzero > found:
            whence = f"landmarks found in {n_rows} sample(s)" if by_number else "rows of landmarks"
            raise ValueError(f"n_nonzero={n_nonzero} is more than the {found} {whence}")
        if found < count:
            what = "rows" if found == n_rows else f"landmarks found in {n_rows} rows"
            message = f"landmarks={count} is more than the {found} {what}: the map has {found}"
            warnings.warn(message, UserWarning, stacklevel=3)
        return Z

    def _coordinates(self, X: Matrix) -> sp.csr_array:
        """``Phi`` in CSR, band by band."""
        D, P = len(self._K), self.n_nonzero
        select = SELECTIONS[self.selection]
        chosen, weights = np.empty((X.shape[0], P), np.int32), np.empty((X.shape[0], P), X.dtype)
        # A few bands of D and of P * P numbers in float64 are alive at a time.
        share = self.landmarks_.dtype.itemsize * D / (32 * (D + P * P))
        memory = get_config()["working_memory"] * share
        tiles = self.kernel_.tiles(X, self.landmarks_, memory=memory, n_jobs=self.n_jobs)
        with blas_threads(self.n_jobs):
            for rows, K in tiles:
                subsets = np.sort(select(self._spans, to_dense(K), P), axis=1)
                chosen[rows] = subsets
                weights[rows] = self._spans.weights(to_dense(K), subsets)
        starts = np.arange(0, chosen.size + 1, P)
        return sp.csr_array((weights.ravel(), chosen.ravel(), starts), shape=(X.shape[0], D))

    @property
    def _n_features_out(self) -> int:
        return self.factor_.shape[1] if self.orthonormal else len(self._K)


@stored
class _Spans:
    """Projections onto the spans of subsets of the landmarks.

    Landmarks are scaled to norm 1, those of norm 0 stay 0: then one ridge suits all subsets. It is
    as small as the rounding of the kernel allows, and lets no subset be singular: the lowest
    eigenvalue of a principal submatrix is not below that of the matrix.
    """

    def __init__(self, K: Array) -> None:
        self.squared_norms = np.diagonal(K).copy()
        used = self.squared_norms > 0
        self.unused = ~used
        self.scale = np.zeros(len(K))
        self.scale[used] = 1 / np.sqrt(self.squared_norms[used])
        self.cosines = K * self.scale * self.scale[:, None]
        self.indefiniteness = max(0.0, -float(np.linalg.eigvalsh(self.cosines)[0]))

    def weights(self, K: Array, subsets: Array) -> Array:
        """``K_BB^+ K_Bx`` for kernel values ``K`` of shape (n, D) and subsets of shape (n, P)."""
        return self._unit_weights(K, subsets) * self.scale[subsets]

    def _unit_weights(self, K: Array, subsets: Array) -> Array:
        """The same for landmarks of norm 1."""
        size = subsets.shape[1]
        A = self.cosines[subsets[:, :, None], subsets[:, None, :]]
        rounding = 16 * size * float(np.finfo(K.dtype).eps)
        A[:, np.arange(size), np.arange(size)] += max(rounding, 2 * self.indefiniteness)
        b = np.take_along_axis(K, subsets, axis=1) * self.scale[subsets]
        return np.linalg.solve(A, b[:, :, None])[:, :, 0]

    def nearest(self, K: Array, size: int) -> Array:
        """The ``size`` landmarks nearest to every row: ``k(x, x)`` is the same for all."""
        distances = self.squared_norms - 2 * K
        distances[:, self.unused] = np.inf
        return np.argpartition(distances, size - 1, axis=1)[:, :size]

    def pursuit(self, K: Array, size: int) -> Array:
        """The ``size`` landmarks that orthogonal matching pursuit takes for every row."""
        n, D = K.shape
        each = np.arange(n)
        subsets = np.empty((n, size), np.int32)
        residual = K * self.scale
        for step in range(size):
            score = np.abs(residual)
            score[:, self.unused] = -1
            score[each[:, None], subsets[:, :step]] = -2
            subsets[:, step] = score.argmax(axis=1)
            if step + 1 < size:
                taken = subsets[:, : step + 1]
                weights = self._unit_weights(K, taken)
                starts = np.arange(0, taken.size + 1, step + 1)
                Phi = sp.csr_array((weights.ravel(), taken.ravel(), starts), shape=(n, D))
                residual = K * self.scale - Phi @ self.cosines
        return subsets


SELECTIONS = {"nearest": _Spans.nearest, "pursuit": _Spans.pursuit}
