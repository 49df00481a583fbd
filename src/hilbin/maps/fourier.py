r"""Random Fourier features.

A Gaussian kernel is the mean of waves,
:math:`e^{-\gamma \|x - y\|^2} = \mathbb E \cos(w^\top (x - y))` over
:math:`w \sim N(0, 2 \gamma I)`, and :math:`\cos(a - b) = \cos a \cos b + \sin a \sin b`. With
:math:`m` frequencies in the rows of :math:`W` the features

.. math:: z(x) = \tfrac{1}{\sqrt m}\,[\cos W x,\; \sin W x]

have inner products that are the kernel in expectation, and :math:`\langle z(x), z(x) \rangle = 1`
always (Rahimi and Recht, *Random Features for Large-Scale Kernel Machines*, 2007). The error falls
as :math:`1 / \sqrt m`, and is smaller if the frequencies are orthogonal (Yu, Suresh, Choromanski,
Holtmann-Rice and Kumar, *Orthogonal Random Features*, 2016), the more so if they are that in the
directions in which the data differs.

The exponential of an additive kernel is a Gaussian too, on the kernel's own map :math:`\varphi`:
:math:`d(x, y) = \tfrac12 \|\varphi(x) - \varphi(y)\|^2`, so :math:`e^{-\gamma d}` takes
:math:`w \sim N(0, \gamma I)` on :math:`\varphi(x)` (Li, Lebanon and Sminchisescu, *A Linear
Approximation to the χ² Kernel with Geometric Convergence*, 2012). An explicit map is a little
short; :math:`\varphi(x)` is stretched to its exact length :math:`\sqrt{k(x, x)}`.
"""

import math
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hilbin._arrays import Array, Matrix, row_sums
from hilbin._core import core
from hilbin.kernels import AdditiveKernel, Exponential, Gaussian, Kernel
from hilbin.maps._base import KernelMap, measured, require_count, sample_rows, to_dense
from hilbin.maps._frequencies import (
    KINDS,
    Projection,
    dense_projection,
    gaussian,
    orthogonal_along,
    sobol,
    structured,
    structured_projection,
)
from hilbin.maps.additive import AdditiveMap
from hilbin.parallel import blas_threads, ranges, stream

SAMPLE_VALUES = 1 << 21  # mapped, in which principal directions are found
BLOCK_ROWS = 512  # a product of fewer rows is slower
BLOCK_BYTES = 1 << 24
STRUCTURED_BLOCK_BYTES = 1 << 20  # rows stay in the cache from the padding to the cosines


class FourierMap(ClassNamePrefixFeaturesOutMixin, KernelMap):
    r"""Random Fourier features of a Gaussian kernel, or of an additive kernel's exponential.

    Rows become ``n_components`` dense features of inner products near the kernel's values, whatever
    the data: only the scale ``gamma="median"``, the additive map's parameters and the directions in
    which frequencies are orthogonal are learnt.
    :class:`~hilbin.maps.NystroemMap` learns from the data, takes any kernel, and needs fewer
    features where the kernel matrix is near a low rank; it costs more per row.

    Parameters
    ----------
    kernel : Gaussian, or Exponential of an additive kernel
    n_components : int, default 1024
        Features: cosines and sines in pairs, so that every row has length 1. If odd, the last
        frequency has one feature, a cosine with a random phase.
    kind : {"orthogonal", "gaussian", "qmc", "structured"}, default "orthogonal"
        How frequencies are drawn. Orthogonal ones err little more than half as much as independent
        (gaussian) ones, but cost decompositions in ``fit``, seconds from a few thousand inputs on.
        Structured ones err about as little, take no memory and :math:`O(p \log p)` per row, and are
        the choice for many inputs, that is, bins times components of the additive map. Evenly
        spread (qmc) ones err least, by up to ten times, for fewer than about ten inputs.
    feature_map : transformer, optional
        Map of the additive kernel; cloned, then fitted. By default
        ``AdditiveMap(kernel.kernel)``, whose 5 components are few for ``Intersection``. Only for
        ``Exponential``.
    n_jobs : int, optional
        Threads, as in joblib.
    random_state : int, RandomState or None
        Draws the frequencies, and the rows that ``gamma="median"`` and ``error_`` look at.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with its scale as a number.
    feature_map_ : transformer or None
        The fitted map of the additive kernel; None for ``Gaussian``.
    frequencies_ : ndarray of shape (n_components / 2, n_mapped), or None
        :math:`W`, in the precision of the training data; None if structured.
    signs_ : ndarray of shape (n_blocks, 3, p), or None
        Random signs of the structured frequencies, :math:`D_3, D_2, D_1` of each block.
    rows_ : ndarray of shape (n_components / 2,), or None
        Rows kept of the structured blocks, one block of ``p`` after the other.
    error_ : MapError
        Measured on at most 500 of the training rows.
    n_features_in_ : int
        Columns of the training data.

    Examples
    --------
    >>> from hilbin.kernels import Chi2, Exponential
    >>> from hilbin.maps import FourierMap
    >>> X = [[0.5, 0.5], [1.0, 0.0]]
    >>> kernel = Exponential(Chi2(), gamma=2.0)
    >>> kernel.gram(X).round(2)
    array([[1.  , 0.51],
           [0.51, 1.  ]])
    >>> Z = FourierMap(kernel, n_components=4096, random_state=0).fit_transform(X)
    >>> (Z @ Z.T).round(2)
    array([[1.  , 0.51],
           [0.51, 1.  ]])
    """

    def __init__(
        self,
        kernel: Kernel,
        n_components: int = 1024,
        *,
        kind: str = "orthogonal",
        feature_map: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.kind = kind
        self.feature_map = feature_map
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: object, y: object = None) -> Self:
        """Draw the frequencies.

        Parameters
        ----------
        X : array-like or CSR of shape (n, d)
        y : ignored
        """
        pairs = self._checked_pairs()
        rows = self._rows(X, reset=True)
        rng = check_random_state(self.random_state)
        self.kernel_: Any = self.kernel._resolve(rows, rng)
        self.feature_map_ = self._fitted_map(rows)
        width = self._mapped(rows[:1])[0].shape[1]
        self.frequencies_: Any = None
        self.signs_: Any = None
        self.rows_: Any = None
        if self.kind == "structured":
            self.signs_, self.rows_ = structured(pairs, width, rng)
        else:
            # QR calls BLAS very often on little data: threads that nobody asked for wait more than
            # they work.
            with blas_threads(self.n_jobs or 1):
                W = self._drawn(pairs, width, rows, rng)
            self.frequencies_ = (self._scale() * W).astype(rows.dtype, order="F")
        self._phase = rng.uniform(0, 2 * np.pi)
        self._n_features_out = int(self.n_components)
        some = sample_rows(rows, rng)
        Z = self._features(some)
        self.error_ = measured(self.kernel_._gram(some, None, self.n_jobs), Z @ Z.T, per="row")
        return self

    def transform(self, X: object) -> Array:
        """Features of the rows.

        Parameters
        ----------
        X : array-like or CSR of shape (n, d)

        Returns
        -------
        Z : ndarray of shape (n, n_components)
            float32 if the data is float32, else float64.
        """
        check_is_fitted(self)
        return self._features(self._rows(X))

    def _checked_pairs(self) -> int:
        """Half of ``n_components``, rounded up, once all parameters are in order."""
        kernel = self._checked_kernel()
        of_additive = isinstance(kernel, Exponential) and isinstance(kernel.kernel, AdditiveKernel)
        if not (of_additive or isinstance(kernel, Gaussian)):
            raise TypeError(
                "FourierMap takes Gaussian or Exponential(additive kernel), got "
                f"{kernel!r}; NystroemMap takes any kernel"
            )
        if self.feature_map is not None and not of_additive:
            raise ValueError(
                "feature_map is for Exponential(additive kernel); Gaussian takes rows as is"
            )
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {self.kind!r}")
        return (require_count("n_components", self.n_components) + 1) // 2

    def _drawn(self, pairs: int, width: int, rows: Matrix, rng: Any) -> Array:
        if self.kind != "orthogonal":
            return (gaussian if self.kind == "gaussian" else sobol)(pairs, width, rng)
        mapped, factors = self._mapped(sample_rows(rows, rng, max(2, SAMPLE_VALUES // width)))
        stretch = 1.0 if factors is None else factors[:, None]
        return orthogonal_along(to_dense(mapped) * stretch, pairs, rng)

    def _fitted_map(self, rows: Matrix) -> Any:
        if isinstance(self.kernel_, Gaussian):
            return None
        given = (
            AdditiveMap(self.kernel_.kernel)
            if self.feature_map is None
            else clone(self.feature_map)
        )
        return given.fit(rows)

    def _scale(self) -> float:
        """Standard deviation of the frequencies."""
        return math.sqrt(self.kernel_.gamma * (2 if self.feature_map_ is None else 1))

    def _features(self, rows: Matrix) -> Array:
        pairs = (self._n_features_out + 1) // 2
        out = np.empty((rows.shape[0], 2 * pairs), rows.dtype)
        project, height = self._projection(rows.dtype)
        scale = math.sqrt(1 / pairs)

        def task(begin: int, end: int) -> None:
            mapped, factors = self._mapped(rows[begin:end])
            products = project(mapped)
            if factors is not None:
                products *= factors[:, None].astype(rows.dtype)
            core.cosines_sines(products, out[begin:end], scale, 0, end - begin)

        for _ in stream(task, ranges(rows.shape[0], height), self.n_jobs, calls_blas=True):
            pass
        return out if self._n_features_out % 2 == 0 else self._with_phase(out)

    def _with_phase(self, pairs: Array) -> Array:
        """The last cosine and sine as one cosine with a phase, of the same mean square."""
        last = pairs.shape[1] // 2 - 1
        turn = np.array([math.cos(self._phase), -math.sin(self._phase)]) * math.sqrt(2)
        pairs[:, last] = pairs[:, [last, -1]] @ turn.astype(pairs.dtype)
        return np.ascontiguousarray(pairs[:, :-1])

    def _projection(self, dtype: Any) -> tuple[Projection, int]:
        """The product with the frequencies, and of how many rows at a time."""
        if self.frequencies_ is None:
            row_bytes = dtype.itemsize * max(self.signs_.shape[-1], self.rows_.size)
            project = structured_projection(self.signs_, self.rows_, self._scale(), dtype)
            return project, max(8, STRUCTURED_BLOCK_BYTES // row_bytes)
        height = 2 * BLOCK_BYTES // (dtype.itemsize * self._n_features_out)
        return dense_projection(self.frequencies_, dtype), min(max(64, height), BLOCK_ROWS)

    def _mapped(self, rows: Matrix) -> tuple[Matrix, Array | None]:
        """What the frequencies are multiplied with, and the stretch of the products of each row."""
        if self.feature_map_ is None:
            return rows, None
        mapped = getattr(self.feature_map_, "_features", self.feature_map_.transform)(rows)
        if sp.issparse(mapped):
            mapped = mapped.tocsr().astype(rows.dtype, copy=False)
            norms = row_sums(mapped, np.square)
        else:
            mapped = np.asarray(mapped, dtype=rows.dtype)
            norms = np.vecdot(mapped, mapped)
        exact = self.kernel_.kernel._diag(rows)
        return mapped, np.sqrt(np.divide(exact, norms, out=np.ones_like(exact), where=norms > 0))
