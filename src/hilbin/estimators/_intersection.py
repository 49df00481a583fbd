"""What the intersection SVMs share: rows to codes, the choice of solver, the model of tables."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from hilbin._arrays import Array, Matrix
from hilbin._parameters import require_choice, require_positive, require_whole
from hilbin.estimators._encoding import BadValueError
from hilbin.estimators._progress import CallbackSupportMixin, Watch
from hilbin.estimators._rows import BinnedRows
from hilbin.estimators._shapes import ShapeFunction, ShapeTables
from hilbin.estimators.binner import HistogramBinner
from hilbin.kernels import Intersection
from hilbin.solvers import GramRows, Levels, Result, TableRows, drop_unused, rank_values

SOLVERS = ("auto", "tables", "gram")
SMALL = 256  # rows: so few are solved to rounding, which takes no time
SMALL_TOL = 1e-10
SMALL_SWEEPS = 3000
MOST_GRAM_ROWS = 6000
# rough costs in nanoseconds, for the choice between tables and a Gram matrix
SWEEPS, PER_GRAM_VALUE, PER_GRAM_ENTRY, PER_CODE = 8, 0.03, 0.1, 2.5
BIAS_SHARE = 0.1  # of a typical row's norm
# (features, bins) of n_bins="auto". What rounding does to a sum of d features is as 1 / sqrt(d) of
# what it does to one; the tables of 31 and 15 bins fill two cache lines and one.
AUTO_BINS = ((2000, 15), (500, 31), (0, 100))


@dataclass(frozen=True)
class Training:
    """The rows of one fit, ready for a solver."""

    binner: HistogramBinner
    codes: Levels
    rows: TableRows | GramRows
    bias: float
    weights: Array
    seed: int


class IntersectionModel(BinnedRows, CallbackSupportMixin, BaseEstimator):
    """Base of the SVMs whose kernel is a histogram intersection."""

    C: float
    n_bins: int | str | None
    strategy: str
    scope: str
    bias: Any
    solver: str
    tol: float
    max_iter: int
    max_time: float | None
    n_jobs: int | None
    random_state: Any
    verbose: int
    warm_start: bool

    def _check_parameters(self) -> None:
        require_positive("C", self.C)
        require_positive("tol", self.tol)
        require_choice("solver", self.solver, SOLVERS)
        if not (isinstance(self.bias, str) and self.bias == "auto"):
            require_positive("bias, if not 'auto',", self.bias, or_zero=True)
        require_whole("max_iter", self.max_iter, 1)
        if self.max_time is not None:
            require_positive("max_time, if not None,", self.max_time)

    def _train_on(self, X: Matrix, weights: Array, problems: int) -> Training:
        """Codes of the rows, and the solver's view of them."""
        binner = HistogramBinner(
            self._bins(X.shape[1]),
            strategy=self.strategy,
            scope=self.scope,
            negative=self.negative,
            n_jobs=self.n_jobs,
        )
        binner._check_parameters()
        plain = bool((weights == weights[0]).all())
        binner._fit_rows(X, None if plain else weights)
        codes = self._codes(binner, X)
        small = X.shape[0] <= SMALL
        rows = self._solver_rows(codes, problems, exact=small)
        bias = self.bias
        if bias == "auto":  # features that are all constant leave the bias alone
            bias = BIAS_SHARE * float(np.average(rows.norms, weights=weights)) or 1.0
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        return Training(binner, codes, rows, float(bias), weights, seed)

    def _bins(self, n_features: int) -> Any:
        if self.n_bins != "auto":
            return self.n_bins
        return next(bins for features, bins in AUTO_BINS if n_features >= features)

    def _codes(self, binner: HistogramBinner, X: Matrix) -> Levels:
        encoded = binner._encode(X, n_jobs=self.n_jobs)
        if binner.n_bins is None:
            return rank_values(encoded, self.n_jobs)
        offsets = np.concatenate(([0], np.cumsum(binner.last_ + 1)))
        levels = np.arange(offsets[-1], dtype=np.float64)
        levels = (levels - np.repeat(offsets[:-1], binner.last_ + 1)) * binner.step_
        codes = Levels(encoded, offsets, levels, binner.step_)
        stored = encoded.nnz if sp.issparse(encoded) else encoded.size
        return drop_unused(codes) if stored < offsets[-1] else codes

    def _solver_rows(self, codes: Levels, problems: int, *, exact: bool) -> TableRows | GramRows:
        n, d = codes.shape
        per_row = codes.parts[0].size / n
        gram_cost = n * (d * PER_GRAM_VALUE + problems * SWEEPS * PER_GRAM_ENTRY)
        cheaper = gram_cost < problems * SWEEPS * per_row * PER_CODE and n <= MOST_GRAM_ROWS
        if self.solver == "tables" or (self.solver == "auto" and not cheaper):
            return TableRows(codes)
        values = codes.values()
        if not (exact or self.tol < 1e-3):
            values = values.astype(np.float32)
        return GramRows(Intersection().gram(values, n_jobs=self.n_jobs))

    def _run(
        self, solve: Callable[..., Result], names: list[str], data: tuple[Any, Any]
    ) -> tuple[list[Result], Watch]:
        """Solve the problems side by side, watched."""
        watch = Watch(self, *data, len(names))

        def task(k: int, callback: Any) -> Result:
            result = solve(k, tol=self.tol, max_iter=self.max_iter, callback=callback)
            if result.converged and len(result.coef) <= SMALL:
                exact = solve(k, tol=SMALL_TOL, max_iter=SMALL_SWEEPS, dual=result.dual)
                result = replace(exact, converged=True, n_iter=result.n_iter)
            if self.verbose:
                print(
                    f"[{names[k]}] {result.n_iter} sweeps, objective {result.objective:.6g}, "
                    f"gap {result.gap:.2g}"
                )
            return result

        return watch.solve(task, names, self.n_jobs), watch

    def _keep(
        self, training: Training, results: list[Result], coef: Array, intercept: Array, watch: Watch
    ) -> Array:
        """Store the model, and warn if it is not the optimum; returns the dual variables."""
        self.binner_ = training.binner
        self._tables = ShapeTables(training.binner, training.codes, training.codes.tables(coef))
        self.intercept_ = intercept
        self.n_iter_ = max(r.n_iter for r in results)
        self.converged_ = all(r.converged for r in results)
        self.objective_ = np.array([r.objective for r in results])
        self.gap_ = np.array([r.gap for r in results])
        duals = np.column_stack([r.dual for r in results])
        if self.warm_start:
            self._duals = duals
        if watch.interrupted:
            raise KeyboardInterrupt
        if not self.converged_:
            reason = watch.reason or f"max_iter={self.max_iter} sweeps did not suffice"
            gap = np.max(self.gap_ / np.maximum(self.objective_, 1e-300))
            warnings.warn(
                f"{type(self).__name__} has not converged: {reason}. The model is usable; its "
                f"duality gap is {gap:.2g} of the objective.",
                ConvergenceWarning,
                stacklevel=5,
            )
        return duals

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self, "_tables")
        quantized = self.binner_.n_bins is not None
        rows = self._rows(X, scan=not quantized)
        try:
            return self._tables.scores(rows, self.n_jobs) + self.intercept_
        except BadValueError:
            self._refuse_bad_values(rows)
            raise

    @property
    def model_bytes_(self) -> int:
        """Bytes of what prediction needs."""
        check_is_fitted(self, "_tables")
        return self._tables.nbytes

    @property
    def shape_functions_(self) -> list[ShapeFunction]:
        """What every feature contributes to the score, as a function of its value."""
        check_is_fitted(self, "_tables")
        names = _check_feature_names_in(self)
        return [self._tables.shape(j, str(name)) for j, name in enumerate(names)]

    def explain(self, X: Any) -> Any:
        """Contribution of every feature to the score of every row.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        contributions : ndarray, or CSR array
            Of shape (n_samples, n_features), or (n_samples, n_features, n_classes) if there are
            several scores. Summed over the features they are the score without ``intercept_``.
            Sparse rows with one score get a CSR array: what is zero contributes nothing.
        """
        check_is_fitted(self, "_tables")
        rows = self._rows(X)
        each = self._tables.contributions(rows)
        if not sp.issparse(rows):
            each = each.reshape(*rows.shape, -1)
            return each[:, :, 0] if each.shape[2] == 1 else each
        if each.shape[1] == 1:
            return sp.csr_array((each[:, 0], rows.indices, rows.indptr), shape=rows.shape)
        full = np.zeros((*rows.shape, each.shape[1]))
        full[np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr)), rows.indices] = each
        return full
