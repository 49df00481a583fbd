"""What the kernel machines share: rows to a Gram matrix, watched solvers, support vectors."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from hilbin import parallel
from hilbin._arrays import Array, Matrix, check_rows
from hilbin._parameters import require_positive, require_whole
from hilbin.estimators._kernel_checks import check_gram
from hilbin.estimators._kernel_gram import CallableKernel, Gram, resolved
from hilbin.estimators._progress import CallbackSupportMixin, Watch
from hilbin.kernels import Kernel
from hilbin.solvers import Result

ACCEPTED: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": (np.float64, np.float32),
    "ensure_all_finite": False,
}
SMALL = 256  # rows: so few are solved to rounding, which takes no time
SMALL_TOL = 1e-12
FLOAT32_TOL = 1e-3  # from here on single precision is far below the tolerance, as in LIBSVM
STEPS, SWEEPS = (100_000_000, 200_000), (100_000, 3_000)  # at most; and of few rows to rounding
VARIED = 0.01  # share of k(x, x) that is more than the mean of all k(x, y), to be rounded
BAND = 32  # MiB of kernel values at a time in prediction
FEW = 0.1  # share of coefficients below which those that are not zero are listed
Pair = tuple[Any, Any]
Bands = Iterator[tuple[slice, Any]]
SAYS = "after {} steps: violation {:.3g}"


@dataclass(frozen=True)
class Training:
    """The rows of one fit, ready for a solver; ``index`` are their places in ``X``."""

    X: Matrix
    gram: Gram
    index: Array
    targets: Array
    weights: Array
    seed: int


class KernelMachine(CallbackSupportMixin, BaseEstimator):
    """Base of the estimators that are sums of kernel values to support vectors."""

    kernel: Any
    tol: float
    max_iter: int | None
    max_time: float | None
    memory: float
    n_jobs: int | None
    random_state: Any
    verbose: int

    def _check_parameters(self) -> None:
        kernel = self.kernel
        given = isinstance(kernel, str) and kernel == "precomputed"
        if isinstance(kernel, type):
            raise ValueError(
                f"kernel is the class {kernel.__name__}: make one, {kernel.__name__}()"
            )
        if not (kernel is None or given or callable(kernel)):
            raise ValueError(
                "kernel must be a kernel of hilbin.kernels, 'precomputed', a callable or None, "
                f"got {kernel!r}"
            )
        require_positive("tol", self.tol)
        require_positive("memory", self.memory)
        if self.max_iter is not None:
            require_whole("max_iter, if not None,", self.max_iter, 1)
        if self.max_time is not None:
            require_positive("max_time, if not None,", self.max_time)

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.positive_only = isinstance(self.kernel, Kernel) and self.kernel.nonnegative
        return tags

    # rows
    def _examples(
        self, X: Any, y: Any, sample_weight: Any, **options: Any
    ) -> tuple[Matrix, Array, Array, Array]:
        """Checked rows; targets, weights and places of those that count."""
        self._check_parameters()
        rows, y = validate_data(self, X, y, **ACCEPTED, **options)
        return self._counted(rows, y, sample_weight)

    def _counted(
        self, rows: Matrix, y: Array, sample_weight: Any
    ) -> tuple[Matrix, Array, Array, Array]:
        demand = self.kernel._demand() if isinstance(self.kernel, Kernel) else None
        if not self._precomputed:  # else check_gram looks at the values
            rows = check_rows(rows, "X", nonnegative=demand)
        weights = _check_sample_weight(sample_weight, rows, dtype=np.float64)
        if not np.isfinite(weights).all() or (weights < 0).any():
            bad = int(np.argmax(~np.isfinite(weights) | (weights < 0)))
            raise ValueError(f"sample_weight[{bad}] = {weights[bad]} is not a number >= 0")
        index = np.flatnonzero(weights)
        if not index.size:
            raise ValueError("sample_weight is zero for every row")
        return rows, y[index], weights[index], index

    def _train_on(
        self, X: Matrix, targets: Array, weights: Array, index: Array, *, few: bool = False
    ) -> Training:
        """The Gram matrix of the rows, and ``kernel_``; maybe ``few`` rows of it are needed."""
        random = check_random_state(self.random_state)
        rows = X
        if index.size < X.shape[0]:
            rows = X[index][:, index] if self._precomputed else X[index]
        if self._precomputed:
            check_gram(X)
            self.kernel_: Any = "precomputed"
            gram = Gram.of_matrix(rows, rows.dtype if self._may_round(rows) else np.float64)
        else:
            self.kernel_ = resolved(self.kernel, rows, random)
            dtype = (
                np.float32
                if self._may_round(rows) and _is_varied(self.kernel_, rows)
                else np.float64
            )
            limits = int(self.memory * 2**20), self.n_jobs
            gram = Gram.of_rows(self.kernel_, rows, dtype, *limits, few=few)
            if isinstance(self.kernel_, CallableKernel) and not gram.is_lazy:
                check_gram(gram.K, "the matrix that kernel returned")
        seed = int(random.randint(np.iinfo(np.int32).max))
        return Training(X, gram, index, targets, weights, seed)

    def _may_round(self, rows: Matrix) -> bool:
        """Whether kernel values may be of single precision."""
        return self.tol >= FLOAT32_TOL and rows.shape[0] > SMALL

    # solvers
    def _run(
        self,
        solve: Callable[..., Result],
        names: Sequence[str],
        data: Pair,
        limits: tuple[int, int],
        gram: Gram,
    ) -> tuple[list[Result], Watch]:
        """Solve the problems side by side, watched; one after the other if they share a cache."""
        watch = Watch(self, *data, len(names), says=SAYS)
        limit = limits[0] if self.max_iter is None else self.max_iter
        exact = gram.dtype == np.float64 and not gram.is_lazy

        def task(k: int, callback: Any) -> Result:
            result = solve(k, tol=self.tol, max_iter=limit, callback=callback)
            if result.converged and exact and len(result.coef) <= SMALL:
                found = solve(k, tol=SMALL_TOL, max_iter=limits[1], dual=result.dual)
                result = replace(found, converged=True, n_iter=result.n_iter)
            if self.verbose:
                print(
                    f"[{names[k]}] {result.n_iter} steps, objective {result.objective:.6g}, "
                    f"gap {result.gap:.2g}"
                )
            return result

        jobs = 1 if gram.is_lazy else min(effective_n_jobs(self.n_jobs), len(names))
        with parallel.blas_threads(1 if jobs > 1 else None):
            return watch.solve(task, list(names), jobs), watch

    def _keep(
        self,
        training: Training,
        coef: Any,
        intercept: Array,
        results: list[Result],
        watch: Watch,
    ) -> None:
        """Store the model, and warn if it is not the optimum; ``coef`` has a column per machine."""
        if np.isnan([r.gap for r in results]).any():
            check_rows(training.X, "X")  # a given matrix may not have been read before
            raise ValueError("kernel returned values that are not finite")
        support = np.flatnonzero(np.diff(coef.indptr) if sp.issparse(coef) else coef.any(axis=1))
        self.support_ = training.index[support]
        self.dual_coef_ = _listed(coef[support])
        self.support_vectors_ = None if self._precomputed else training.X[self.support_]
        self.intercept_ = intercept
        self.n_iter_ = max(r.n_iter for r in results)
        self.converged_ = all(r.converged for r in results)
        self.objective_ = np.array([r.objective for r in results])
        self.gap_ = np.array([r.gap for r in results])
        if getattr(self, "warm_start", False):
            self._duals = [r.dual for r in results]
        if watch.interrupted:
            raise KeyboardInterrupt
        if not self.converged_:
            reason = watch.reason or f"{self.n_iter_} steps did not suffice"
            gap = np.max(self.gap_ / np.maximum(np.abs(self.objective_), 1e-300))
            warnings.warn(
                f"{type(self).__name__} has not converged: {reason}. The model is usable; its "
                f"duality gap is {gap:.2g} of the objective.",
                ConvergenceWarning,
                stacklevel=5,
            )

    # prediction
    def _machine_scores(self, X: Any) -> Array:
        """Score of every machine, for bands of rows, from the support vectors alone."""
        check_is_fitted(self, "support_")
        rows = self._new_rows(X)
        n = rows.shape[0]
        if self._precomputed:
            height = self._band_height()
            parts = (slice(b, e) for b, e in parallel.ranges(n, height))
            bands: Bands = ((part, rows[part][:, self.support_]) for part in parts)
        elif not self.support_.size:
            bands = iter([(slice(0, n), np.empty((n, 0)))])
        else:
            bands = self.kernel_.tiles(
                rows, self.support_vectors_, memory=min(BAND, self.memory), n_jobs=self.n_jobs
            )
        return self._sums(bands, n)

    def _band_height(self) -> int:
        """So many rows have their kernel values in a band."""
        return max(1, BAND * 2**20 // (8 * max(1, self.support_.size)))

    def _sums(self, bands: Bands, n: int) -> Array:
        """The kernel values of bands of rows as the scores of all machines."""
        coef = self.dual_coef_
        scores = np.empty((n, self.intercept_.size))
        for part, K in bands:
            coef = coef.astype(K.dtype, copy=False)
            scores[part] = K @ coef + self.intercept_
        return scores

    def _new_rows(self, X: Any) -> Matrix:
        if not self._precomputed:
            return validate_data(self, X, reset=False, **ACCEPTED)
        rows = check_rows(X, "X")
        if rows.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {rows.shape[1]} features, but {type(self).__name__} is expecting "
                f'{self.n_features_in_} features as input: with kernel="precomputed", the kernel '
                "between new rows and every row of fit"
            )
        validate_data(self, X, reset=False, skip_check_array=True)
        return rows


def _is_varied(kernel: Kernel, X: Matrix) -> bool:
    """Whether rounding leaves the differences between rows alone."""
    some = np.linspace(0, X.shape[0] - 1, SMALL).astype(np.intp)
    K = kernel._gram(X[some], None, None)
    size = K.diagonal().mean()
    return bool(size - K.mean() >= VARIED * size)


def _listed(coef: Any) -> Any:
    """Dense, or CSR if few coefficients are not zero."""
    stored = coef.nnz if sp.issparse(coef) else np.count_nonzero(coef)
    if stored < FEW * coef.shape[0] * coef.shape[1]:
        return sp.csr_array(coef)
    return coef.toarray() if sp.issparse(coef) else coef
