"""What the intersection SVMs share: rows to levels, the choice of rows, the model of look-ups."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from hilbin._arrays import ACCEPTED, Array, Matrix, validate_data
from hilbin._parameters import estimator, require_choice, require_positive, require_whole
from hilbin._state import require, require_attributes
from hilbin.estimators._fit import (
    SMALL,
    CallbackSupportMixin,
    CostPath,
    Fit,
    checked_weights,
    last_duals,
    random_seed,
    solve_again,
    with_callbacks,
)
from hilbin.estimators._sizes import require_finite, weighted_mean
from hilbin.estimators.intersection.binner import (
    BadValueError,
    BinnedRows,
    HistogramBinner,
)
from hilbin.estimators.intersection.shapes import ShapeFunction, ShapeLookup
from hilbin.estimators.probability import parts_left_out, row_keys
from hilbin.kernels import Intersection
from hilbin.solvers import Problem, Result, gram_rows, icd
from hilbin.solvers.lookup import Levels, LookupRows
from hilbin.solvers.newton import newton

SOLVERS = ("auto", "lookup", "gram")
EXACT = (1e-10, 3000)  # tolerance and sweeps of few rows
MOST_GRAM_ROWS = 6000
# rough costs in nanoseconds, for the choice between look-ups and a Gram matrix
SWEEPS, PER_GRAM_VALUE, PER_GRAM_ENTRY, PER_LEVEL = 8, 0.03, 0.1, 2.5
INTERCEPT_SHARE = 0.1  # of a typical row's norm
# (features, bins) of n_bins="auto". What rounding does to a sum of d features is as 1 / sqrt(d) of
# what it does to one; the look-ups of 31 and 15 bins fill two cache lines and one.
AUTO_BINS = ((2000, 15), (500, 31), (0, 100))
# A descent of few rows that has not converged after so many sweeps, or has by its gradient but not
# by its gap, is finished by Newton's method.
SLOW_SWEEPS, MOST_NEWTON_ROWS, WIDE_GAP = 200, 2000, 0.1
# C="scale" is the second over the mean of k(x, x), at least the first; C="auto" tries the others.
LEAST_COST, SCALE_COST = 1e-3, 2.0
COSTS = np.array([0.3, 1.0, 3.0, 10.0, 30.0, 100.0])
SWEEPS_OF_CHOICE = 50


@dataclass(frozen=True)
class Training:
    """The rows of one fit, ready for a solver."""

    binner: HistogramBinner
    levels: Levels
    rows: Any
    constant: float
    targets: Array
    weights: Array
    seed: int
    n_jobs: int | None = None

    @cached_property
    def gram(self) -> Array:
        """The Gram matrix, in float64."""
        return Intersection().gram(self.levels.values(), n_jobs=self.n_jobs)

    def solve(
        self,
        problem: Problem,
        *,
        max_iter: int,
        callback: Any = None,
        rows: Any = None,
        **course: Any,
    ) -> Result:
        """Descend; where that is slow and rows are few, finish by Newton's method.

        ``rows`` are others than those of this fit, of the same values.

        The descent takes more sweeps the larger ``C`` is, if no function separates the rows.
        """
        few = problem.linear.size <= MOST_NEWTON_ROWS
        squared = few and not problem.epsilon and bool((problem.diagonal > 0).all())
        most = min(max_iter, SLOW_SWEEPS) if squared else max_iter
        given: dict[str, Any] = {"seed": self.seed, "callback": callback, **course}
        result = icd(self.rows if rows is None else rows, problem, max_iter=most, **given)
        stopped = not result.converged and result.n_iter < most
        wide = result.converged and result.gap > WIDE_GAP * abs(result.objective)
        if stopped or not squared or max_iter <= SLOW_SWEEPS or (result.converged and not wide):
            return result

        def count_on(n_iter: int, violation: float) -> bool:
            return callback is None or callback(most + n_iter, violation)

        watched = None if callback is None else count_on
        end = newton(self.gram, problem, start=result.coef, callback=watched)
        return replace(end, n_iter=result.n_iter + end.n_iter)


@estimator
class IntersectionModel(BinnedRows, CallbackSupportMixin, CostPath, BaseEstimator):
    """Base of the SVMs whose kernel is a histogram intersection.

    Parameters
    ----------
    n_bins : "auto", int or None, default="auto"
        Bins per feature; ``None`` does not round values: they are measured in hundredths of the
        same range as those that are binned, and clipped to its ends, so the model is the limit of
        many bins. "auto" is 100, but 31 from 500 features on and 15 from 2000, where rounding
        averages out and short look-ups are faster.
    strategy : {"uniform", "sqrt", "quantile"}, default="uniform"
        How bins are spaced, as in :class:`HistogramBinner`.
    scope : {"auto", "feature", "all"}, default="auto"
        Whether every feature has a range of its own, as suits tables, or all have one, as suits
        histograms. "auto" decides by the rows, as in :class:`HistogramBinner`.
    negative : {"shift", "error"}, default="shift"
        What to do with negative values: measure every feature from its low end, or raise an error,
        as suits histograms. See :class:`HistogramBinner`.
    fit_intercept : bool, default=True
        Whether scores have a constant part. It is penalized like the weights.
    intercept_scaling : "auto" or float, default="auto"
        The intercept is the weight of a constant feature of this value, whose square ``B`` is added
        to the kernel. "auto" makes ``B`` a tenth of the mean :math:`k(x, x)`.
    solver : {"auto", "lookup", "gram"}, default="auto"
        Train on look-up tables, or on the Gram matrix, which is cheaper for few rows of many
        features. Both solve the same problem.
    tol : float, default=0.1
        Tolerance on the gradient of the dual, as in LIBLINEAR. Training also ends when the duality
        gap is at most the share ``tol**2`` of the objective, unless ``tol`` is below 1e-3. Problems
        of up to 256 rows are solved to machine precision.
    max_iter : int, default=1000
        Limit of the sweeps over the data.
    max_time : float, optional
        Seconds after which training stops, with a usable model.
    warm_start : bool, default=False
        Whether to start from the solution of the last ``fit``, if it had as many rows and the same
        classes.
    n_jobs : int, optional
        Number of threads: classes are trained side by side. ``None`` is 1, -1 all processors.
    random_state : int, RandomState or None, default=0
        Random seed of the order in which rows are visited.
    verbose : int, default=0
        1 prints the outcome of each problem, 2 every sweep.

    Attributes
    ----------
    C_ : float
        The weight of the loss in use.
    intercept_ : ndarray of shape (n_scores,)
        Constant part of the scores.
    shape_functions_ : list of ShapeFunction
        What every feature contributes, as a function of its value.
    binner_ : HistogramBinner
        How values become levels.
    n_iter_ : int
        Sweeps over the data; the most of any class.
    converged_ : bool
        Whether every problem reached the tolerance.
    objective_, gap_ : ndarray of shape (n_problems,)
        Value of the primal problems, and how far it can be above the optimum.
    model_bytes_ : int
        Number of bytes that prediction needs.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if ``X`` has some.
    """

    C: Any = "scale"
    _: KW_ONLY
    n_bins: int | str | None = "auto"
    strategy: str = "uniform"
    scope: str = "auto"
    negative: str = "shift"
    fit_intercept: bool = True
    intercept_scaling: Any = "auto"
    solver: str = "auto"
    tol: float = 0.1
    max_iter: int = 1000
    max_time: float | None = None
    warm_start: bool = False
    n_jobs: int | None = None
    random_state: Any = 0
    verbose: int = 0

    def _check_parameters(self) -> None:
        if isinstance(self.C, str):
            require_choice("C, if not a number,", self.C, ("scale", "auto"))
        else:
            require_positive("C", self.C)
        require_positive("tol", self.tol)
        require_choice("solver", self.solver, SOLVERS)
        if isinstance(self.intercept_scaling, str):
            require_choice("intercept_scaling, if not a number,", self.intercept_scaling, ("auto",))
        else:
            require_positive("intercept_scaling", self.intercept_scaling)
        require_whole("max_iter", self.max_iter, 1)
        if self.max_time is not None:
            require_positive("max_time, if not None,", self.max_time)

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the parts of a loaded model do not fit together."""
        self._check_parameters()
        found = require_attributes(
            self,
            binner_=HistogramBinner,
            _lookup=ShapeLookup,
            intercept_="float64[s]",
            classes_="labels[k]?",
            n_features_in_="=d",
            feature_names_in_="labels[d]?",
        )
        if found:
            require(self.binner_ is self._lookup.binner, "a model has two binners")
            require(self._lookup.offsets.size == found["d"] + 1, "n_features_in_ is wrong")
            require(self._lookup.n_outputs == found["s"], "intercept_ is not one for every score")
            k = found.get("k", 2)
            require(found["s"] == (1 if k == 2 else k), "classes_ are not one for every score")

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the model. An interrupt (Ctrl-C) leaves a usable one, marked as not converged.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Labels of a classifier, targets of a regression.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of ``C``; a weight of 2 is the sample twice, one of 0 no sample.

        Returns
        -------
        self : estimator
        """
        training = self._prepare(X, y, sample_weight)
        self._solve(training, last_duals(self, training), (X, y))
        return self

    def _shapes(self, training: Training) -> list[tuple[int, ...]]:
        """Return the shapes of the dual variables of every problem."""
        raise NotImplementedError

    def _examples(
        self, X: Any, y: Any, sample_weight: Any, **options: Any
    ) -> tuple[Matrix, Array, Array]:
        """Check the parameters and the data; return rows, targets and weights above 0."""
        self._check_parameters()
        rows, y = validate_data(self, X, y, **ACCEPTED, **options)
        rows = self._refuse_bad_values(rows, reset=True)
        weights = checked_weights(sample_weight, rows)
        if weights.all():
            return rows, y, weights
        used = weights > 0
        return rows[used], y[used], weights[used]

    def _train_on(self, X: Matrix, targets: Array, weights: Array, problems: int) -> Training:
        """Make levels of the rows, and choose what the solver works on."""
        n_bins: Any = self.n_bins
        if n_bins == "auto":
            n_bins = next(bins for features, bins in AUTO_BINS if X.shape[1] >= features)
        options = {name: getattr(self, name) for name in ("strategy", "scope", "negative")}
        binner = HistogramBinner(n_bins, **options, n_jobs=self.n_jobs)
        plain = bool((weights == weights[0]).all())
        levels = binner.fit_rows(X, None if plain else weights).levels(X)
        rows = self._solver_rows(levels, problems)
        constant = 0.0
        if self.fit_intercept and self.intercept_scaling == "auto":
            # features that are all constant leave the intercept alone
            constant = INTERCEPT_SHARE * weighted_mean(rows.norms, weights) or 1.0
        elif self.fit_intercept:
            constant = float(self.intercept_scaling) ** 2
        seed = random_seed(self.random_state)
        return Training(binner, levels, rows, constant, targets, weights, seed, self.n_jobs)

    def _solver_rows(self, levels: Levels, problems: int) -> Any:
        n, d = levels.shape
        per_row = levels.parts[0].size / n
        gram_cost = n * (d * PER_GRAM_VALUE + problems * SWEEPS * PER_GRAM_ENTRY)
        cheaper = gram_cost < problems * SWEEPS * per_row * PER_LEVEL and n <= MOST_GRAM_ROWS
        if self.solver == "lookup" or (self.solver == "auto" and not cheaper):
            return LookupRows(levels)
        values = levels.values()
        if n > SMALL and self.tol >= 1e-3:
            values = values.astype(np.float32)
        return gram_rows(Intersection().gram(values, n_jobs=self.n_jobs))

    def _course(self, starts: Sequence[Any] | None) -> dict[str, Any]:
        """Return how the problems are solved."""
        limits: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter, "exact": EXACT}
        return {**limits, "starts": starts, "n_jobs": self.n_jobs}

    def _cost(self, training: Training, solver: Callable[..., Result]) -> float:
        """Return ``C``, in units of the mean of k(x, x), or the best of some for rows left out.

        ``solver(k, cost=, left_out=, ...)`` solves a problem of the fit. Errors of every part of
        the rows are added up. Each solution starts from that of the next smaller ``C``; without a
        certificate a descent ends by its gradients, whose tolerance is the tighter one.
        """
        if not isinstance(self.C, str):
            return float(self.C)
        unit = 1 / (weighted_mean(training.rows.norms, training.weights) or 1.0)
        if self.C == "scale":
            return max(LEAST_COST, SCALE_COST * unit)
        costs = COSTS * unit
        groups = training.targets if hasattr(self, "classes_") else np.zeros(training.weights.size)
        keys, errors = row_keys(training.levels.rows), np.zeros(costs.size)
        course: dict[str, Any] = {"tol": self.tol, "max_iter": SWEEPS_OF_CHOICE}
        most = training.weights.max()
        for left_out in parts_left_out(keys, groups.astype(np.intp)):
            weights = training.weights[left_out]
            levels = replace(training.levels, rows=training.levels.rows[left_out])
            duals = [np.zeros(shape) for shape in self._shapes(training)]
            for i, cost in enumerate(costs):
                at = partial(solver, cost=cost, certify=False)
                results = solve_again(at, duals, left_out, n_jobs=self.n_jobs, **course)
                duals = [r.dual for r in results]
                coef, intercept = columns(results)
                scores = levels.scores(training.levels.lookup(coef), self.n_jobs) + intercept
                errors[i] += (weights / most) @ self._errors(training, left_out, scores)
        return float(costs[np.argmin(errors)])

    def _errors(self, training: Training, rows: Array, scores: Array) -> Array:
        """Return how wrong the scores of some rows are."""
        raise NotImplementedError

    def _keep(
        self, fit: Fit, training: Training, coef: Array, intercept: Array, results: list[Result]
    ) -> list[Array]:
        """Store the model; return the dual variables."""
        self.binner_ = training.binner
        lookup = training.levels.lookup(coef)
        self._lookup = ShapeLookup(training.binner, training.levels, lookup)
        self.intercept_ = intercept
        fit.keep(results)
        require_finite(self, "intercept_", "objective_")
        return [r.dual for r in results]

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self, "_lookup")
        quantized = self.binner_.n_bins is not None
        rows = self._rows(X, scan=not quantized)
        try:
            scores = self._lookup.scores(rows, self.n_jobs)
            same = scores if scores.flags.c_contiguous else None  # not part of a wider array
            return np.add(scores, self.intercept_, out=same)
        except BadValueError:
            self._refuse_bad_values(rows)
            raise

    @property
    def model_bytes_(self) -> int:
        """Number of bytes that prediction needs."""
        check_is_fitted(self, "_lookup")
        return self._lookup.nbytes

    @property
    def shape_functions_(self) -> list[ShapeFunction]:
        """What every feature contributes to the score, as a function of its value."""
        check_is_fitted(self, "_lookup")
        names = _check_feature_names_in(self)
        return [self._lookup.shape(j, str(name)) for j, name in enumerate(names)]

    def explain(self, X: Any) -> Any:
        """Compute the contribution of every feature to the score of every sample.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        contributions : ndarray, or CSR array
            An array of shape (n_samples, n_features), or (n_samples, n_features, n_classes) if
            there are several scores. Summed over the features they are the score without
            ``intercept_``. Sparse rows with one score get a CSR array: what is zero contributes
            nothing.
        """
        check_is_fitted(self, "_lookup")
        rows = self._rows(X)
        each = self._lookup.contributions(rows)
        if not sp.issparse(rows):
            each = each.reshape(*rows.shape, -1)
            return each[:, :, 0] if each.shape[2] == 1 else each
        if each.shape[1] == 1:
            return sp.csr_array((each[:, 0], rows.indices, rows.indptr), shape=rows.shape)
        full = np.zeros((*rows.shape, each.shape[1]))
        full[np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr)), rows.indices] = each
        return full


def columns(results: Sequence[Result]) -> tuple[Array, Array]:
    """Return coefficients, a column for every score, and intercepts."""
    coef = np.column_stack([r.coef for r in results])
    intercept = np.hstack([r.intercept for r in results])
    if coef.shape[1] == 2:  # the difference of two scores is one score
        return coef[:, 1:] - coef[:, :1], intercept[1:] - intercept[:1]
    return coef, intercept
