"""What estimators with any kernel share: rows to a Gram matrix, support vectors, prediction."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hilbin import parallel
from hilbin._arrays import ACCEPTED, Array, Matrix, check_rows, to_dense, validate_data
from hilbin._parameters import estimator, require_choice, require_positive, require_whole
from hilbin._state import require, require_attributes
from hilbin.estimators._fit import (
    SMALL,
    CallbackSupportMixin,
    CostPath,
    Fit,
    last_duals,
    with_callbacks,
)
from hilbin.estimators._sizes import (
    check_kernel_values,
    finite_scores,
    weighted_mean,
    without_warnings,
)
from hilbin.estimators.kernel.gram import CallableKernel, Gram, check_gram, resolved
from hilbin.kernels import Kernel
from hilbin.solvers import Result

EXACT_TOL = 1e-12  # of few rows
FLOAT32_TOL = 1e-3  # from here on single precision is far below the tolerance, as in LIBSVM
STEPS, SWEEPS = (10_000_000, 200_000), (100_000, 3_000)  # limits; and for few rows to rounding
STEPS_PER_ROW = 100  # if that is more
FEWEST_SWEEPS, ENTRIES = 1000, 4e9  # sweeps read so many entries of the matrix, or are few
VARIED = 0.01  # share of k(x, x) that is more than the mean of all k(x, y), to be rounded
LOOKED_AT = 64  # rows from which that is seen
SINGLE = 1e30  # largest kernel value in single precision; its inverse is the smallest
BAND = 32  # MiB of kernel values at a time in prediction
SHARE = 1 / 3  # of the working memory for a band of float32, and two for its copy in float64
FEW = 0.1  # share of coefficients below which those that are not zero are listed


@estimator
class KernelEstimator(BaseEstimator):
    """Base of the estimators with any kernel.

    Parameters
    ----------
    kernel : Kernel, callable, "precomputed" or None, default=None
        A kernel of :mod:`hilbin.kernels`, whose rules (``gamma="median"``) are resolved on the
        training rows; a function ``(X, Y) -> matrix``; or ``"precomputed"``: ``X`` is the Gram
        matrix in ``fit``, and the kernel between new and training rows in ``predict``, dense or
        sparse. ``None`` is ``Gaussian(gamma="median")``.
    n_jobs : int, optional
        Number of threads that compute kernel values. ``None`` is 1, -1 all processors.
    random_state : int, RandomState or None, default=0
        Random seed of the sample that rules are computed from, and of the order in which rows are
        visited.

    Attributes
    ----------
    kernel_ : Kernel or "precomputed"
        The kernel with rules resolved.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray
        Their names, if ``X`` has some.
    """

    kernel: Any = None
    _: KW_ONLY
    n_jobs: int | None = None
    random_state: Any = 0

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _check_parameters(self) -> None:
        kernel = self.kernel
        if isinstance(kernel, type):
            raise ValueError(
                f"kernel is the class {kernel.__name__}: make one, {kernel.__name__}()"
            )
        if not (kernel is None or self._precomputed or callable(kernel)):
            raise ValueError(
                "kernel must be a kernel of hilbin.kernels, 'precomputed', a callable or None, "
                f"got {kernel!r}"
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.positive_only = self._demand() is not None
        return tags

    @property
    def _names(self) -> Any:
        """The names of the columns in ``fit``, if they have some."""
        return getattr(self, "feature_names_in_", None)

    def _demand(self) -> str | None:
        return self.kernel._demand() if isinstance(self.kernel, Kernel) else None

    def _checked(self, X: Any, y: Any = "no_validation", **options: Any) -> tuple[Matrix, Any]:
        """Check the parameters, the rows, and their targets, if there are any."""
        self._check_parameters()
        found = validate_data(self, X, y, **ACCEPTED, **options)
        rows, y = found if isinstance(found, tuple) else (found, None)
        if not self._precomputed:  # else check_gram looks at the values
            rows = check_rows(rows, "X", nonnegative=self._demand())
        return rows, y

    @without_warnings()
    def _gram(self, rows: Matrix, weights: Array | None = None) -> Any:
        """Return the Gram matrix; keep ``kernel_``, whose rules look at rows of weight above 0."""
        if self._precomputed:
            check_gram(check_rows(rows, "X"))
            self.kernel_: Any = self.kernel
            return rows
        counted = rows if weights is None or weights.all() else rows[weights > 0]
        random = check_random_state(self.random_state)
        self.kernel_ = resolved(self.kernel, counted, random, self._names)
        K = self.kernel_.gram(rows, n_jobs=self.n_jobs)
        if isinstance(self.kernel_, CallableKernel):
            check_gram(K)
        check_kernel_values(K.diagonal())
        return K

    def _new_rows(self, X: Any) -> Matrix:
        """Check rows to predict."""
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

    def _bands(
        self, rows: Matrix, known: Matrix, columns: Array | None = None
    ) -> Iterator[tuple[slice, Any]]:
        """Give the kernel between rows and the ``known`` ones, a band of rows at a time.

        A precomputed ``rows`` holds it, in these ``columns``, or in all.
        """
        memory = min(BAND, getattr(self, "memory", SHARE * get_config()["working_memory"]))
        if not self._precomputed:
            return self.kernel_.tiles(rows, known, memory=memory, n_jobs=self.n_jobs)
        width = rows.shape[1] if columns is None else columns.size
        height = max(1, int(memory * 2**20 / (8 * max(1, width))))
        parts = (slice(b, e) for b, e in parallel.ranges(rows.shape[0], height))
        if columns is None:
            return ((part, rows[part]) for part in parts)
        return ((part, rows[part][:, columns]) for part in parts)


@dataclass(frozen=True)
class Training:
    """The rows of one fit, ready for a solver; ``index`` are their places in ``X``."""

    X: Matrix
    gram: Gram
    index: Array
    targets: Array
    weights: Array
    seed: int


@estimator
class KernelMachine(CallbackSupportMixin, KernelEstimator):
    """Base of the estimators that are sums of kernel values to support vectors.

    Parameters
    ----------
    tol : float, default=1e-3
        Tolerance on the gradient of the dual, as in LIBSVM. Problems of up to 256 rows are solved
        to machine precision. Below 1e-3, kernel values are not rounded to single precision.
    max_iter : int, optional
        Limit of the solver: pairs of rows, by default 10 million or 100 times the rows, as in
        LIBSVM, or with a penalized intercept sweeps over all rows, by default 1000 and up to
        100 000 where rows are few.
    max_time : float, optional
        Seconds after which training stops, with a usable model.
    memory : float, default=2048
        MiB for the Gram matrix. One that does not fit is computed row by row, and as much of it
        kept; so is that of two classes, of which few rows are needed if few are support vectors.
        Machines that see a part of the rows take a copy of their part; sparse matrices, and that of
        Crammer and Singer's machine, are always whole.
    verbose : int, default=0
        1 prints how each problem ended, 2 its progress.

    Attributes
    ----------
    support_ : ndarray of shape (n_support,)
        Indices of the rows that have a coefficient.
    support_vectors_ : ndarray or CSR array of shape (n_support, n_features)
        These rows; None if the kernel was precomputed.
    dual_coef_ : ndarray of shape (n_support, n_machines), or CSR array if most are zero
        Their coefficients.
    intercept_ : ndarray of shape (n_machines,)
        Constant part of the score of every machine.
    n_iter_ : int
        Steps of the solver; the most of any machine.
    converged_ : bool
        Whether every machine reached the tolerance.
    objective_, gap_ : ndarray of shape (n_machines,)
        Value of every primal problem, and how far it can be above the optimum.
    """

    _: KW_ONLY
    tol: float = 1e-3
    max_iter: int | None = None
    max_time: float | None = None
    memory: float = 2048
    verbose: int = 0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_positive("tol", self.tol)
        require_positive("memory", self.memory)
        if self.max_iter is not None:
            require_whole("max_iter, if not None,", self.max_iter, 1)
        if self.max_time is not None:
            require_positive("max_time, if not None,", self.max_time)

    @without_warnings()
    def _train_on(
        self, X: Matrix, targets: Array, weights: Array, *, few: bool = False
    ) -> Training:
        """Compute the Gram matrix of the rows of weight above 0, and keep ``kernel_``.

        ``targets`` are theirs alone; ``few`` says that maybe few rows of the matrix are needed.
        """
        index = np.flatnonzero(weights)
        random = check_random_state(self.random_state)
        rows = X
        if index.size < X.shape[0]:
            rows = X[index][:, index] if self._precomputed else X[index]
        may_round = self.tol >= FLOAT32_TOL and rows.shape[0] > SMALL
        if self._precomputed:
            diagonal = check_gram(X)[index]
            self.kernel_ = "precomputed"
            gram = Gram.of_matrix(rows, rows.dtype if may_round else np.float64, diagonal)
        else:
            self.kernel_ = resolved(self.kernel, rows, random, self._names)
            rounded = may_round and is_varied(self.kernel_, rows)
            dtype = np.float32 if rounded else np.float64
            limits = int(self.memory * 2**20), self.n_jobs
            gram = Gram.of_rows(self.kernel_, rows, dtype, *limits, few=few)
            if isinstance(self.kernel_, CallableKernel) and not gram.is_lazy:
                check_gram(gram.K, "the matrix that kernel returned")
        check_kernel_values(gram.rows.norms)
        seed = int(random.randint(np.iinfo(np.int32).max))
        return Training(X, gram, index, targets, weights[index], seed)

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the arrays of a loaded machine do not fit together."""
        self._check_parameters()
        rows = "matrix[n, d]?" if self._precomputed else "matrix[n, d]"
        found = require_attributes(
            self,
            support_="int64[n]",
            dual_coef_="matrix[n, s]",
            support_vectors_=rows,
            intercept_="float[s]",
            n_features_in_="=d",
            feature_names_in_="labels[d]?",
        )
        if found and self._precomputed:
            last = self.support_.max(initial=-1)
            inside = self.support_.min(initial=0) >= 0 and last < found["d"]
            require(inside, "support_ is out of range")
        elif found:
            require(isinstance(self.kernel_, Kernel), "kernel_ is no kernel")

    def _course(self, gram: Gram, limits: tuple[int, int]) -> dict[str, Any]:
        """Return how problems on a Gram matrix are solved: lazy rows share a cache."""
        n = len(gram.rows.norms)
        exact = n <= SMALL and gram.dtype == np.float64 and not gram.is_lazy
        most = max(limits[0], STEPS_PER_ROW * n)
        if limits is SWEEPS:
            most = min(limits[0], max(FEWEST_SWEEPS, int(ENTRIES / n**2)))
        return {
            "tol": self.tol,
            "max_iter": most if self.max_iter is None else self.max_iter,
            "exact": (EXACT_TOL, limits[1]) if exact else None,
            "n_jobs": 1 if gram.is_lazy else effective_n_jobs(self.n_jobs),
        }

    def _keep(
        self, fit: Fit, training: Training, coef: Any, intercept: Array, results: list[Result]
    ) -> None:
        """Store the model; ``coef`` has a column per machine."""
        if not np.isfinite([r.gap for r in results]).all():
            check_rows(training.X, "X")  # a given matrix may not have been read before
            raise ValueError(
                "the solution is not finite: kernel returned values that are not, or C, the "
                "weights or the values of X are too far from 1 to compute with"
            )
        support = np.flatnonzero(np.diff(coef.indptr) if sp.issparse(coef) else coef.any(axis=1))
        self.support_ = training.index[support]
        self.dual_coef_ = _listed(coef[support])
        self.support_vectors_ = None if self._precomputed else training.X[self.support_]
        self.intercept_ = intercept
        fit.keep(results)

    def _machine_scores(self, X: Any) -> Array:
        """Return the score of every machine, for bands of rows, from the support vectors alone."""
        check_is_fitted(self, "support_")
        rows = self._new_rows(X)
        if not self.support_.size:
            return np.tile(self.intercept_.astype(np.float64), (rows.shape[0], 1))
        return self._sums(self._bands(rows, self.support_vectors_, self.support_), rows.shape[0])

    @without_warnings()
    def _sums(self, bands: Iterator[tuple[slice, Any]], n: int) -> Array:
        """Turn the kernel values of bands of rows into the scores of all machines."""
        coef = self.dual_coef_
        fits = abs(coef).max() <= SINGLE
        scores = np.empty((n, self.intercept_.size))
        for part, K in bands:
            K = K if fits else K.astype(np.float64, copy=False)
            coef = coef.astype(K.dtype, copy=False)
            scores[part] = K @ coef + self.intercept_
        return finite_scores(scores)


@estimator
class LossMachine(CostPath, KernelMachine):
    r"""Base of the machines that minimize :math:`\tfrac12 \|w\|^2 + \sum_i C_i \ell_i(f(x_i))`.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss.
    fit_intercept : bool, default=True
        Whether scores have a constant part.
    penalize_intercept : bool, default=False
        Whether the intercept is penalized like the weights, or free, as in LIBSVM. Without the
        constraint of a free one training is coordinate descent, which takes long where ``C`` is
        large.
    intercept_scaling : "auto" or float, default="auto"
        A penalized intercept is the weight of a constant feature of this value, whose square is
        added to the kernel. "auto" makes the square the mean of :math:`k(x, x)`.
    warm_start : bool, default=False
        Whether to start from the solution of the last ``fit``, even if it was interrupted, provided
        that it had as many rows (of every class).
    """

    C: float = 1.0
    _: KW_ONLY
    fit_intercept: bool = True
    penalize_intercept: bool = False
    intercept_scaling: Any = "auto"
    warm_start: bool = False

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_positive("C", self.C)
        if isinstance(self.intercept_scaling, str):
            require_choice("intercept_scaling, if not a number,", self.intercept_scaling, ("auto",))
        else:
            require_positive("intercept_scaling", self.intercept_scaling)

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the model. An interrupt (Ctrl-C) leaves a usable one, marked as not converged.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features) or (n_samples, n_samples)
            Samples, or their Gram matrix.
        y : array-like of shape (n_samples,)
            Labels of a classifier, targets of a regression.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of ``C``; a weight of 2 is the sample twice, one of 0 no sample.

        Returns
        -------
        self : estimator
        """
        training = self._prepare(X, y, sample_weight, once=True)
        self._solve(training, last_duals(self, training), (X, y))
        return self

    def _prepare(self, X: Any, y: Any, sample_weight: Any, *, once: bool = False) -> Training:
        """Check and prepare the rows; ``once`` if the Gram matrix will serve one fit only."""
        raise NotImplementedError

    def _shapes(self, training: Training) -> list[tuple[int, ...]]:
        """Return the shapes of the dual variables of every machine."""
        raise NotImplementedError

    @property
    def _is_free(self) -> bool:
        return self.fit_intercept and not self.penalize_intercept

    def _constant(self, training: Training) -> float:
        """Return what is added to the kernel, for an intercept that is penalized."""
        if not self.fit_intercept:
            return 0.0
        if not isinstance(self.intercept_scaling, str):
            return float(self.intercept_scaling) ** 2
        norms = training.gram.rows.norms
        return weighted_mean(norms, training.weights) or 1.0

    def _intercept(self, training: Training) -> dict[str, float]:
        """Return the fields of a problem that are about the intercept."""
        return {"total": 0.0} if self._is_free else {"constant": self._constant(training)}


def is_varied(kernel: Kernel, X: Matrix) -> bool:
    """Tell whether rounding to single precision leaves the differences between rows alone."""
    some = np.linspace(0, X.shape[0] - 1, LOOKED_AT).astype(np.intp)
    K = kernel._gram(X[some], None, None)
    with np.errstate(over="ignore", invalid="ignore"):
        size, mean = K.diagonal().mean(), K.mean()
        return bool(1 / SINGLE <= K.diagonal().max() <= SINGLE and size - mean >= VARIED * size)


def _listed(coef: Any) -> Any:
    """Return coefficients as an array, or as CSR if few are not zero."""
    stored = coef.nnz if sp.issparse(coef) else np.count_nonzero(coef)
    if stored < FEW * coef.shape[0] * coef.shape[1]:
        return sp.csr_array(coef)
    return to_dense(coef)
