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
from dataclasses import KW_ONLY
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator
from sklearn import get_config

from hilbin._arrays import Array, Matrix, to_dense
from hilbin._parameters import estimator, require_choice, require_whole
from hilbin._state import require, require_attributes, stored
from hilbin.maps.landmarks import LandmarkMap, choose_landmarks, spectrum
from hilbin.parallel import blas_threads


@estimator
class SparseProjectionMap(LandmarkMap):
    r"""Sparse coordinates :math:`K_{BB}^+ K_{Bx}` in a few landmarks ``B`` chosen for every row.

    The kernel is approximated by :math:`\Phi(x)^T K_{ZZ} \Phi(y)`, with ``inner_`` for
    :math:`K_{ZZ}`, or with ``orthonormal=True`` by ordinary inner products of dense features. A
    landmark reproduces itself, and the norm of a row is never overestimated.

    ``transform`` returns CSR of shape ``(n, D)`` with ``n_nonzero`` entries in every row, some of
    which may be 0, or an array of shape ``(n, rank)``. Besides it, about as much memory is used as
    scikit-learn's ``working_memory`` setting.

    Parameters
    ----------
    landmarks : int, default 100, or array-like or CSR of shape (D, d)
        Number of landmarks, chosen from ``X``; or the rows themselves.
    n_nonzero : int, default 5
        Number of landmarks that represent one row.
    landmark_selection : {"uniform", "kmeans++", "leverage"}
        How landmarks are chosen, if ``landmarks`` is their number: at random, far from each other,
        or by their approximate ridge leverage scores.
    selection : {"nearest", "pursuit"}
        Which of the landmarks represent a row: the nearest, or those that orthogonal matching
        pursuit finds. Pursuit is more accurate and ``n_nonzero`` times the work.
    orthonormal : bool, default False
        Whether features are dense, :math:`L^T \Phi(x)` with :math:`K_{ZZ} = L L^T`.

    Attributes
    ----------
    inner_ : LinearOperator of shape (D, D)
        The Gram matrix :math:`K_{ZZ}` in float64.
    factor_ : ndarray of shape (D, rank of :math:`K_{ZZ}`)
        The factor :math:`L`, by falling eigenvalue of :math:`K_{ZZ}`; only with
        ``orthonormal=True``.

    Examples
    --------
    >>> from hilbin.kernels import Intersection
    >>> from hilbin.maps import SparseProjectionMap
    >>> Z = [[3.0], [4.0], [8.0]]
    >>> sparse = SparseProjectionMap(Intersection(), Z, n_nonzero=2).fit([[3.3]])
    >>> sparse.transform([[3.3]]).toarray().round(6)
    array([[0.7, 0.3, 0. ]])
    """

    landmarks: Any = 100
    n_nonzero: int = 5
    _: KW_ONLY
    landmark_selection: Literal["uniform", "kmeans++", "leverage"] = "uniform"
    selection: Literal["nearest", "pursuit"] = "nearest"
    orthonormal: bool = False

    def _check_state(self) -> None:
        """Raise ``ValueError`` if loaded arrays are not those of the landmarks."""
        found = require_attributes(
            self, landmarks_="matrix[m, d]", _K="float[m, m]", _spans=_Spans, factor_="float[m, *]?"
        )
        if found:
            require(self._spans.scale.size == found["m"], "_spans are not those of the landmarks")
            factor = not self.orthonormal or vars(self).get("factor_") is not None
            require(factor, "factor_ is missing")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_choice("selection", self.selection, (*SELECTIONS,))
        require_whole("n_nonzero", self.n_nonzero, 1)
        if np.ndim(self.landmarks) == 0:
            require_whole("landmarks", self.landmarks, 1)
            if self.n_nonzero > self.landmarks:
                raise ValueError(
                    f"n_nonzero={self.n_nonzero} is more than landmarks={self.landmarks}"
                )

    def _find_landmarks(self, rows: Matrix, rng: Any) -> Matrix:
        by_number = np.ndim(self.landmarks) == 0
        count = int(self.landmarks) if by_number else 0
        name = "landmark_selection" if by_number else "landmarks"
        how = getattr(self, name)
        Z = choose_landmarks(self.kernel_, rows, how, count, rng, self.n_jobs, name=name)
        found, n_rows = Z.shape[0], rows.shape[0]
        if self.n_nonzero > found:
            whence = f"landmarks found in {n_rows} sample(s)" if by_number else "rows of landmarks"
            raise ValueError(f"n_nonzero={self.n_nonzero} is more than the {found} {whence}")
        if found < count:
            what = "rows" if found == n_rows else f"landmarks found in {n_rows} rows"
            message = f"landmarks={count} is more than the {found} {what}: the map has {found}"
            warnings.warn(message, UserWarning, stacklevel=4)
        return Z

    def _decompose(self, K: Array, rows: Matrix) -> None:
        self._K = K
        self._spans = _Spans(K)
        self.inner_ = aslinearoperator(K)
        if self.orthonormal:
            values, vectors = spectrum(K)
            self.factor_ = vectors * np.sqrt(values)

    def _approximation(self, rows: Matrix) -> Array:
        Phi = self._coordinates(rows)
        return Phi @ (Phi @ self._K).T

    def _features(self, rows: Matrix) -> Any:
        Phi = self._coordinates(rows)
        return Phi @ self.factor_.astype(Phi.dtype) if self.orthonormal else Phi

    def _coordinates(self, X: Matrix) -> sp.csr_array:
        """Return ``Phi`` in CSR, band by band."""
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

    def _check_state(self) -> None:
        """Raise ``ValueError`` if loaded arrays do not fit together."""
        vectors = dict.fromkeys(("squared_norms", "scale"), "float64[m]")
        more = {"unused": "bool[m]", "cosines": "float64[m, m]", "indefiniteness": "float"}
        require("scale" in vars(self), "scale is missing")
        require_attributes(self, **vectors, **more)

    def weights(self, K: Array, subsets: Array) -> Array:
        """Return ``K_BB^+ K_Bx`` for kernel values of shape (n, D) and subsets of shape (n, P)."""
        return self._unit_weights(K, subsets) * self.scale[subsets]

    def _unit_weights(self, K: Array, subsets: Array) -> Array:
        """Return the same for landmarks of norm 1."""
        size = subsets.shape[1]
        A = self.cosines[subsets[:, :, None], subsets[:, None, :]]
        rounding = 16 * size * float(np.finfo(K.dtype).eps)
        A[:, np.arange(size), np.arange(size)] += max(rounding, 2 * self.indefiniteness)
        b = np.take_along_axis(K, subsets, axis=1) * self.scale[subsets]
        return np.linalg.solve(A, b[:, :, None])[:, :, 0]

    def nearest(self, K: Array, size: int) -> Array:
        """Return the ``size`` landmarks nearest to every row: ``k(x, x)`` is the same for all."""
        distances = self.squared_norms - 2 * K
        distances[:, self.unused] = np.inf
        return np.argpartition(distances, size - 1, axis=1)[:, :size]

    def pursuit(self, K: Array, size: int) -> Array:
        """Return the ``size`` landmarks that orthogonal matching pursuit takes for every row."""
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
