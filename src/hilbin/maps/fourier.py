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

Frequencies, the rows of a matrix whose rows are each drawn from :math:`N(0, I)`, are drawn
independently or, for a smaller error, not:

- *gaussian*: independent;
- *orthogonal*: :math:`S Q^T`, the columns of :math:`Q` a uniformly random orthonormal system,
  :math:`S` diagonal with lengths of Gaussian vectors, so that no two rows repeat each other. The
  gain is that of the share of all directions that a group of rows fills, and in few directions most
  of the data differs: rows are orthogonal within :math:`r` principal directions of the data,
  :math:`r` such that groups are full, and independent across them;
- *qmc*: normal quantiles of a scrambled Sobol sequence, which fills the unit cube evenly;
- *structured*: :math:`\sqrt p\, H D_1 H D_2 H D_3`, :math:`H` the orthonormal Walsh-Hadamard matrix
  of a size :math:`p` that is a power of two, :math:`D_r` diagonals of random signs. These are
  orthogonal rows that are never stored, at :math:`O(p \log p)` additions per product. All have
  length :math:`\sqrt p`: the mean is off by up to :math:`0.55 / p`.
"""

import math
from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtri
from scipy.stats import qmc
from sklearn.base import ClassNamePrefixFeaturesOutMixin, clone
from sklearn.utils import check_random_state

from hilbin._arrays import Array, Matrix, row_sums, to_dense
from hilbin._core import core
from hilbin._parameters import estimator, require_choice, require_whole
from hilbin._state import require, require_attributes, require_vector
from hilbin.kernels import AdditiveKernel, Exponential, Gaussian, Kernel
from hilbin.maps.additive import AdditiveMap
from hilbin.maps.base import KernelMap, measured, sample_rows
from hilbin.parallel import blas_threads, ranges, stream

Projection: TypeAlias = Callable[[Matrix], Array]

KINDS = ("orthogonal", "gaussian", "qmc", "structured")
SPARSE_DENSITY = 0.1  # from here on a dense product is faster than a sparse one
ROUNDS = 3
LEAST_WIDTHS = (64, 256)
LEAST_SAMPLE = 64  # rows from which principal directions can be told
SAMPLE_VALUES = 1 << 21  # mapped, in which principal directions are found
ROWS_PER_TASK = 512  # a product of fewer rows is slower
BYTES_PER_TASK = 1 << 24
STRUCTURED_BYTES_PER_TASK = 1 << 20  # rows stay in the cache from the padding to the cosines


@estimator
class FourierMap(ClassNamePrefixFeaturesOutMixin, KernelMap):
    r"""Random Fourier features of a Gaussian kernel, or of an additive kernel's exponential.

    Rows become ``n_components`` dense features of inner products near the kernel's values, whatever
    the data: only the scale ``gamma="median"``, the additive map's parameters and the directions in
    which frequencies are orthogonal are learned.
    :class:`~hilbin.maps.NystroemMap` learns from the data, takes any kernel, and needs fewer
    features where the kernel matrix is near a low rank; it costs more per row.

    Parameters
    ----------
    kernel : Gaussian, or Exponential of an additive kernel
        The kernel; a rule such as ``gamma="median"`` is resolved on the data of ``fit``.
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
        A map of the additive kernel; cloned, then fitted. By default
        ``AdditiveMap(kernel.kernel)``, whose 5 components are few for ``Intersection``. Only for
        ``Exponential``.
    random_state : int, RandomState or None
        Random seed of the frequencies, and of the rows that ``gamma="median"`` and ``error_`` look
        at.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with its scale as a number.
    feature_map_ : transformer or None
        The fitted map of the additive kernel; None for ``Gaussian``.
    frequencies_ : ndarray of shape (n_components / 2, n_mapped), or None
        The matrix :math:`W`, in the precision of the training data; None if structured.
    signs_ : ndarray of shape (n_groups, 3, p), or None
        Random signs of the structured frequencies, :math:`D_3, D_2, D_1` of each group.
    rows_ : ndarray of shape (n_components / 2,), or None
        Rows kept of the structured groups, one group of ``p`` after the other.
    error_ : MapError
        The error measured on at most 500 of the training rows.

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

    n_components: int = 1024
    _: KW_ONLY
    kind: str = "orthogonal"
    feature_map: Any = None
    random_state: Any = None

    def _fit(self, rows: Matrix) -> None:
        pairs = (int(self.n_components) + 1) // 2
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

    def _check_state(self) -> None:
        """Raise ``ValueError`` if loaded frequencies do not fit together."""
        found = require_attributes(
            self,
            kernel_=Kernel,
            frequencies_="float[p, w]?",
            signs_="int8[g, 3, l]?",
            rows_="int64[p]?",
            _phase="float",
            _n_features_out="int",
            n_features_in_="int",
        )
        if not found:
            return
        inner = vars(self).get("feature_map_")
        require(inner is None or hasattr(inner, "transform"), "feature_map_ does not transform")
        drawn = self.frequencies_ is not None
        require(drawn or self.signs_ is not None, "frequencies_ are missing")
        if not drawn:
            rows, count = require_vector(self.rows_, np.int64, "rows_"), found["g"] * found["l"]
            inside = rows.min(initial=0) >= 0 and rows.max(initial=-1) < count
            require(inside and found["l"] & (found["l"] - 1) == 0, "rows_ are out of range")
        even = self._n_features_out in (2 * found["p"], 2 * found["p"] - 1)
        require(even, "_n_features_out is not that of the frequencies")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        kernel = self.kernel
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
        require_choice("kind", self.kind, KINDS)
        require_whole("n_components", self.n_components, 1)

    def _drawn(self, pairs: int, width: int, rows: Matrix, rng: Any) -> Array:
        if self.kind != "orthogonal":
            return (gaussian if self.kind == "gaussian" else sobol)(pairs, width, rng)
        mapped, factors = self._mapped(sample_rows(rows, rng, max(2, SAMPLE_VALUES // width)))
        stretch = 1.0 if factors is None else factors[:, None]
        return orthogonal_along(to_dense(mapped) * stretch, pairs, rng)

    def _fitted_map(self, rows: Matrix) -> Any:
        if isinstance(self.kernel_, Gaussian):
            return None
        given = self.feature_map
        return (AdditiveMap(self.kernel_.kernel) if given is None else clone(given)).fit(rows)

    def _scale(self) -> float:
        """Return the standard deviation of the frequencies."""
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
        """Make the last cosine and sine one cosine with a phase, of the same mean square."""
        last = pairs.shape[1] // 2 - 1
        turn = np.array([math.cos(self._phase), -math.sin(self._phase)]) * math.sqrt(2)
        pairs[:, last] = pairs[:, [last, -1]] @ turn.astype(pairs.dtype)
        return np.ascontiguousarray(pairs[:, :-1])

    def _projection(self, dtype: Any) -> tuple[Projection, int]:
        """Return the product with the frequencies, and how many rows it takes at a time."""
        if self.frequencies_ is None:
            row_bytes = dtype.itemsize * max(self.signs_.shape[-1], self.rows_.size)
            project = structured_projection(self.signs_, self.rows_, self._scale(), dtype)
            return project, max(8, STRUCTURED_BYTES_PER_TASK // row_bytes)
        height = 2 * BYTES_PER_TASK // (dtype.itemsize * self._n_features_out)
        return dense_projection(self.frequencies_, dtype), min(max(64, height), ROWS_PER_TASK)

    def _mapped(self, rows: Matrix) -> tuple[Matrix, Array | None]:
        """Return what frequencies are multiplied with, and the stretch of every row's products."""
        if self.feature_map_ is None:
            return rows, None
        own = isinstance(self.feature_map_, KernelMap)  # which need not check rows again
        mapped = (self.feature_map_._features if own else self.feature_map_.transform)(rows)
        if sp.issparse(mapped):
            mapped = mapped.tocsr().astype(rows.dtype, copy=False)
            norms = row_sums(mapped, np.square)
        else:
            mapped = np.asarray(mapped, dtype=rows.dtype)
            norms = np.vecdot(mapped, mapped)
        exact = self.kernel_.kernel._diag(rows)
        return mapped, np.sqrt(np.divide(exact, norms, out=np.ones_like(exact), where=norms > 0))


def gaussian(count: int, width: int, rng: np.random.RandomState) -> Array:
    """Draw independent rows, of shape (count, width)."""
    return rng.standard_normal((count, width))


def orthogonal(count: int, width: int, rng: np.random.RandomState) -> Array:
    """Draw rows of which every ``width`` are orthogonal."""
    groups = []
    for begin in range(0, count, width):
        size = min(width, count - begin)
        Q, R = np.linalg.qr(rng.standard_normal((width, size)))
        # QR leaves signs open; this choice makes Q uniform.
        lengths = np.copysign(np.sqrt(rng.chisquare(width, size)), np.diag(R))
        groups.append((Q * lengths).T)
    return np.concatenate(groups)


def orthogonal_along(sample: Array, count: int, rng: np.random.RandomState) -> Array:
    """Draw rows that are orthogonal within leading principal directions of ``sample``."""
    n, width = sample.shape
    groups = -(-count // max(1, min(width, n - 1)))
    rank = -(-count // groups)
    if rank == width or n < LEAST_SAMPLE:
        return orthogonal(count, width, rng)
    V = np.linalg.svd(sample - sample.mean(axis=0), full_matrices=False)[2][:rank]
    across = gaussian(count, width, rng)
    return orthogonal(count, rank, rng) @ V + (across - (across @ V.T) @ V)


def sobol(count: int, width: int, rng: np.random.RandomState) -> Array:
    """Draw rows whose quantiles fill the unit cube evenly."""
    if width > qmc.Sobol.MAXDIM:
        raise ValueError(
            f'kind="qmc" takes rows of at most {qmc.Sobol.MAXDIM} values after the map, got '
            f'{width}; take kind="structured"'
        )
    sequence = qmc.Sobol(
        width, scramble=True, seed=np.random.default_rng(rng.randint(2**31, size=4))
    )
    # The sequence is even over powers of two.
    points = sequence.random_base2((count - 1).bit_length())[:count]
    half_step = 2.0 ** -(sequence.bits + 1)
    return ndtri(np.clip(points, half_step, 1 - half_step))


def structured(count: int, width: int, rng: np.random.RandomState) -> tuple[Array, Array]:
    """Draw signs of shape (groups, ROUNDS, p), and which ``count`` rows of the groups are kept."""
    # A matrix as narrow as few inputs has too few signs to be random, one much wider than there
    # are rows to keep has few orthogonal ones among them.
    least, enough = LEAST_WIDTHS
    p = max(least, min(1 << count.bit_length() - 1, enough), 1 << (width - 1).bit_length())
    groups = -(-count // p)
    signs = rng.choice(np.array([-1, 1], np.int8), (groups, ROUNDS, p))
    last = np.sort(rng.choice(p, count - (groups - 1) * p, replace=False))
    return signs, np.concatenate([*[np.arange(p)] * (groups - 1), last])


def dense_projection(frequencies: Array, dtype: Any) -> Projection:
    """Return the product of rows with a matrix of frequencies, as a function."""
    # Stored in Fortran order, the transpose is what sparse rows are multiplied by without a copy.
    W = frequencies.astype(dtype, order="F", copy=False).T

    def project(rows: Matrix) -> Array:
        if sp.issparse(rows) and rows.nnz >= SPARSE_DENSITY * rows.shape[0] * rows.shape[1]:
            rows = rows.toarray()
        if rows.shape[1] != W.shape[0]:
            raise ValueError(f"frequencies_ are for {W.shape[0]} features, not {rows.shape[1]}")
        product: Array = rows @ W
        return product

    return project


def structured_projection(signs: Array, kept: Array, scale: float, dtype: Any) -> Projection:
    """Return the product of padded rows with ``scale`` times the structured frequencies."""
    p = signs.shape[-1]
    # sqrt(p) and the norms of three Hadamard matrices leave 1 / p.
    factors = signs * np.array([scale, p**-0.5, p**-0.5])[:, None]
    factors = factors.astype(dtype)

    def project(rows: Matrix) -> Array:
        rows = to_dense(rows)
        n, width = rows.shape
        if width > p:
            raise ValueError(f"signs_ are for at most {p} features, not {width}")
        padded = np.empty((n, p), dtype)
        products = np.empty((n, len(kept)), dtype)
        for group, group_factors in enumerate(factors):
            padded[:, :width] = rows
            padded[:, width:] = 0
            core.hadamard(padded, group_factors, 0, n)
            columns = slice(group * p, (group + 1) * p)
            np.take(padded, kept[columns], axis=1, out=products[:, columns], mode="clip")
        return products

    return project
