"""The exponential of a kernel's distance."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from hilbin._arrays import Array, Matrix, to_dense
from hilbin.kernels.bandwidth import Rule, is_rule, sample, statistic
from hilbin.kernels.base import Kernel, require_positive
from hilbin.kernels.pairwise import (
    Op,
    finished_sums,
    fold_upper,
    pairwise_sum,
    rowwise,
    sums_against,
    upper_sums,
)
from hilbin.kernels.radial import HALF_UNIT, SINGLE_ERROR, by_rule
from hilbin.kernels.wrap import WrapperKernel
from hilbin.parallel import ranges

VALUES_AT_A_TIME = 1 << 20
LEAST_SINGLE = 2.0**-100  # smaller positive values may have no precision left, or no power


@dataclass(frozen=True, repr=False)
class Exponential(WrapperKernel):
    r"""Exponential of a kernel's distance, :math:`e^{-\gamma\,d(x, y)}` with
    :math:`d(x, y) = \tfrac12 (k(x, x) + k(y, y)) - k(x, y)`.

    For :class:`Chi2` the distance is :math:`\tfrac12 \sum_d (x_d - y_d)^2 / (x_d + y_d)`;
    scikit-learn's ``chi2_kernel(gamma=g)`` leaves out the half, so it is ``gamma = 2 g`` here. For
    :class:`JensenShannon` on rows that sum to 1 it is the Jensen-Shannon divergence. Positive
    definite if ``kernel`` is (Schoenberg).

    Parameters
    ----------
    kernel : Kernel
        The kernel whose distance it is.
    gamma : float > 0, or "median", "mean", Quantile; default 1
        A rule takes :math:`1 / \gamma` from the distances.

    Examples
    --------
    >>> from hilbin.kernels import Chi2, Exponential
    >>> Exponential(Chi2(), gamma=2.0).gram([[0.5, 0.5], [1.0, 0.0]]).round(4)
    array([[1.    , 0.5134],
           [0.5134, 1.    ]])
    """

    kernel: Kernel
    gamma: float | Rule = 1.0
    compact = False
    _exponential = True

    def __post_init__(self) -> None:
        if not is_rule(self.gamma):
            require_positive(self, "gamma")

    def _gram(self, X: Matrix, Y: Matrix | None, n_jobs: int | None) -> Array:
        op = self._direct(X)
        if op is None:
            return rowwise(self._distances(X, Y, n_jobs), self._fall, n_jobs)
        return finished_sums(op, X, Y, self._fall, n_jobs)

    def _gram_into(self, X: Matrix, Y: Matrix | None, n_jobs: int | None, out: Array) -> None:
        op = self._direct(X)
        if op is None:
            super()._gram_into(X, Y, n_jobs, out)
        else:
            finished_sums(op, X, Y, self._fall, n_jobs, out=out)

    def _gram_as(self, X: Matrix, dtype: Any, n_jobs: int | None) -> Array:
        op = self._direct(X)
        if op is None:
            return super()._gram_as(X, dtype, n_jobs)
        return finished_sums(op, X, None, self._fall, n_jobs, dtype=dtype)

    def _single(self, X: Array) -> Array | None:
        r"""Return the rows in single precision, if that changes kernel values by less than 1e-5.

        A distance of degree :math:`\beta` changes by at most :math:`2 \beta u \max_x k(x, x)` when
        values are rounded, :math:`u = 2^{-24}`, and the kernel by :math:`\gamma` times that. The
        sum of :math:`d` terms changes it by :math:`1.48 \sqrt d\,u`, see :class:`Gaussian`, and
        the rounding of a term by some :math:`u`.
        """
        if self._direct(X) is None or np.min(X, where=X > 0, initial=1.0) < LEAST_SINGLE:
            return None
        with np.errstate(over="ignore"):
            size = float(self.gamma) * np.max(self.kernel._diag(X), initial=0.0)  # type: ignore[arg-type]
            error = 2 * self.kernel.degree * size + 1.48 * np.sqrt(X.shape[1]) + 3  # type: ignore[attr-defined]
        return X.astype(np.float32) if HALF_UNIT * error < SINGLE_ERROR else None

    def _against(self, Y: Matrix, n_jobs: int | None) -> Callable[[Matrix], Array]:
        op = self._direct(Y)
        if op is not None:
            sums = sums_against(op, Y, n_jobs)
            return lambda X: rowwise(sums(X), self._fall, n_jobs)
        inner, y, known = self.kernel._against(Y, n_jobs), self.kernel._diag(Y), EqualRows(Y)

        def gram(X: Matrix) -> Array:
            D = _subtracted(to_dense(inner(X)), self.kernel._diag(X), y, n_jobs)
            known.set_zero(D, EqualRows(X))
            return rowwise(D, self._fall, n_jobs)

        return gram

    def _direct(self, X: Matrix) -> Op | None:
        """Return the terms of the distance, if the kernel has them compiled for such rows."""
        return None if sp.issparse(X) else self.kernel._distance_terms()

    def _distances(self, X: Matrix, Y: Matrix | None, n_jobs: int | None) -> Array:
        op = self._direct(X)
        if op is not None:
            return pairwise_sum(op, X, Y, n_jobs)
        K, x = to_dense(self.kernel._gram(X, Y, n_jobs)), self.kernel._diag(X)
        D = _subtracted(K, x, x if Y is None else self.kernel._diag(Y), n_jobs)
        rows = EqualRows(X)
        (rows if Y is None else EqualRows(Y)).set_zero(D, rows)
        return D

    def _pair_distances(self, X: Matrix) -> Array:
        """Return the distances of all pairs of rows."""
        op = self._direct(X)
        if op is None:
            return fold_upper(self._distances(X, None, None))
        return upper_sums(op, X, None)

    def _fall(self, part: Array, _: slice) -> None:
        """Replace distances ``d`` by ``exp(-gamma d)``."""
        part *= part.dtype.type(-float(self.gamma))  # type: ignore[arg-type]
        np.exp(part, out=part)

    def _diag(self, X: Matrix) -> Array:
        return np.ones(X.shape[0])

    def _resolve(self, X: Matrix, random_state: Any) -> Self:
        resolved = self.replace(kernel=self.kernel._resolve(X, random_state))
        rule = self.gamma
        if not is_rule(rule):
            return resolved

        def ruled(X: Matrix) -> Any:
            distances = resolved._pair_distances(X)
            return resolved.replace(gamma=1 / statistic(rule, distances, "gamma"))  # type: ignore[arg-type]

        return by_rule(ruled, sample(X, random_state))


def _subtracted(K: Array, x: Array, y: Array, n_jobs: int | None) -> Array:
    """Replace ``K`` by the distances; ``x``, ``y`` are the diagonals."""
    left, right = (0.5 * x).astype(K.dtype), (0.5 * y).astype(K.dtype)

    def subtract(part: Array, rows: slice) -> None:
        sums = left[rows, None] + right  # first: the result is symmetric to the last bit
        np.subtract(sums, part, out=part)
        np.maximum(part, 0, out=part)

    return rowwise(K, subtract, n_jobs)


class EqualRows:
    """Rows that can be found again: the distance of equal ones is 0, not the rounding of norms."""

    def __init__(self, rows: Matrix) -> None:
        self.places: dict[tuple[int, int], list[int]] = {}
        for i, key in enumerate(zip(*_keys(rows).tolist(), strict=True)):
            self.places.setdefault(key, []).append(i)

    def set_zero(self, D: Array, others: "EqualRows") -> None:
        """Set ``D[i, j]`` to 0 where row ``i`` of the others is row ``j`` of these."""
        single: list[tuple[int, int]] = []
        for key, rows in others.places.items():
            columns = self.places.get(key, [])
            if len(rows) == len(columns) == 1:
                single.append((rows[0], columns[0]))
            elif columns:
                D[np.ix_(rows, columns)] = 0
        i, j = np.array(single, np.intp).reshape(-1, 2).T
        D[i, j] = 0


def _keys(X: Matrix) -> Array:
    """Return two 64-bit numbers for every row, the same for equal rows.

    They are sums of random multiples of the bits of the values, which 0 adds nothing to. Two rows
    that differ have the same ones by a chance of about 1 in 2^128.
    """
    factors = np.random.default_rng(0).integers(2**64, size=(2, X.shape[1]), dtype=np.uint64)
    some = ranges(X.shape[0], max(1, VALUES_AT_A_TIME // X.shape[1]))
    return np.concatenate([_sums(X[begin:end], factors) for begin, end in some], axis=1)


def _sums(X: Matrix, factors: Array) -> Array:
    if not sp.issparse(X):
        bits = _mixed(X)
        return np.stack([np.vecdot(bits, factor) for factor in factors])
    bits = _mixed(X.data)
    sums = np.zeros((2, X.nnz + 1), np.uint64)
    np.cumsum(bits * factors[:, X.indices], axis=1, out=sums[:, 1:])  # modulo 2^64
    return sums[:, X.indptr[1:]] - sums[:, X.indptr[:-1]]


def _mixed(values: Array) -> Array:
    """Return the bits of values so that those that differ, differ in their lower bits; 0 for 0."""
    bits = np.ascontiguousarray(values + 0, np.float64).view(np.uint64)  # -0 is 0
    bits = (bits ^ (bits >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
    return bits ^ (bits >> np.uint64(29))
