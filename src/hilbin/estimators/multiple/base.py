"""What estimators with several kernels share: kernels on rows, scales, weights, contributions."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted

from hilbin import parallel
from hilbin._arrays import ACCEPTED, Array, Matrix, check_rows, to_dense, validate_data
from hilbin._parameters import estimator, require_norm, require_positive, require_whole
from hilbin._state import require, require_attributes
from hilbin.estimators._fit import (
    SMALL,
    CallbackSupportMixin,
    check_classes,
    check_labels,
    checked_weights,
    class_factors,
    class_numbers,
)
from hilbin.estimators._sizes import check_kernel_values, finite_scores, without_warnings
from hilbin.estimators.kernel.gram import MOST_WHOLE, check_gram, resolved
from hilbin.estimators.kernel.machine import BAND, FLOAT32_TOL, SHARE, is_varied
from hilbin.estimators.multiple.aligned import QUANTILES
from hilbin.estimators.multiple.grams import (
    TiledGrams,
    grams_of,
    variances,
    warn_if_indefinite,
    weighted_sum,
)
from hilbin.estimators.probability import ProbabilityClassifier
from hilbin.kernels import Gaussian, Kernel, Quantile
from hilbin.solvers.multiple_machines import Grams, StoredGrams


@dataclass(frozen=True)
class Training:
    """The rows of one fit, those of weight 0 left out; ``index`` are their places in ``X``."""

    X: Any
    grams: Grams
    index: Array
    targets: Array
    weights: Array
    seed: int


@estimator
class MultipleKernelModel(CallbackSupportMixin, BaseEstimator):
    """Base of the estimators with several kernels.

    Parameters
    ----------
    kernels : list or dict of kernels, "precomputed" or None, default=None
        Kernels of :mod:`hilbin.kernels`, or functions ``(X, Y) -> matrix``, each applied to ``X``;
        rules (``gamma="median"``) are resolved on the training rows. A dict names them. With
        ``"precomputed"``, ``X`` is a list of Gram matrices in ``fit``, and of the kernels between
        new and training rows in ``predict``. ``None`` is three Gaussians, with
        widths at the 0.1, 0.5 and 0.9 quantiles of the distances.
    tol : float, default=1e-3
        Duality gap over the objective at which training stops.
    max_iter : int, default=100
        Largest number of rounds, each a machine for given weights.
    max_time : float, optional
        Seconds after which training stops, with a usable model.
    memory : float, default=2048
        MiB for the Gram matrices: all are kept if they and their sum fit, in single precision if
        rows are many. Otherwise they are computed in every round.
    n_jobs : int, optional
        Number of threads that compute kernel values and train machines. ``None`` is 1, -1 all
        processors.
    random_state : int, RandomState or None, default=0
        Random seed of the sample that rules look at.
    verbose : int, default=0
        1 prints how training ended, 2 its progress.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
        Weights of the kernels, after every kernel was divided by its scale.
    scales_ : ndarray of shape (n_kernels,)
        What kernels are divided by.
    kernel_names_ : list of str
        Names of the kernels.
    kernels_ : list of kernels or None
        The kernels with rules resolved; None if they were precomputed.
    kernel_ : Kernel or None
        The weighted sum, in which kernels of weight 0 are left out; None if precomputed.
    support_ : ndarray of shape (n_support,)
        Indices of the training rows that have a coefficient.
    support_vectors_ : ndarray or CSR array of shape (n_support, n_features)
        These rows; None if the kernels were precomputed.
    dual_coef_ : ndarray of shape (n_support, n_scores)
        Their coefficients.
    intercept_ : ndarray of shape (n_scores,)
        Constant part of every score.
    history_ : ndarray of shape (n_iter, 2)
        Best objective and best lower bound after every round.
    n_iter_ : int
        Number of rounds.
    converged_ : bool
        Whether the tolerance was reached.
    objective_, gap_ : ndarray of shape (1,)
        Value of the problem, and how far it can be above the optimum.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray
        Their names, if ``X`` has some.
    """

    kernels: Any = None
    _: KW_ONLY
    tol: float = 1e-3
    max_iter: int = 100
    max_time: float | None = None
    memory: float = 2048
    n_jobs: int | None = None
    random_state: Any = 0
    verbose: int = 0

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernels, str) and self.kernels == "precomputed"

    def _check_parameters(self) -> None:
        require_positive("tol", self.tol)
        require_whole("max_iter", self.max_iter, 1)
        require_positive("memory", self.memory)
        if self.max_time is not None:
            require_positive("max_time, if not None,", self.max_time)
        if self.kernels is None or self._precomputed:
            return
        if not isinstance(self.kernels, list | tuple | dict) or not self.kernels:
            raise ValueError(
                "kernels must be a list or dict of kernels, 'precomputed' or None, got "
                f"{self.kernels!r}"
            )
        for name, kernel in self._named():
            if isinstance(kernel, type) or not callable(kernel):
                raise ValueError(f"kernels[{name!r}] must be a kernel, got {kernel!r}")

    def _named(self) -> list[tuple[Any, Any]]:
        """Return places or names of kernels, and the kernels, if some are given."""
        if self.kernels is None or self._precomputed:
            return []
        given = self.kernels
        return [*given.items()] if isinstance(given, dict) else [*enumerate(given)]

    def _demand(self) -> str | None:
        demands = (k._demand() for _, k in self._named() if isinstance(k, Kernel))
        return next((demand for demand in demands if demand is not None), None)

    # fit
    def _checked(self, X: Any, y: Any, **options: Any) -> tuple[Any, Any]:
        """Check the parameters, the rows or matrices, and their targets."""
        self._check_parameters()
        if not self._precomputed:
            rows, y = validate_data(self, X, y, **ACCEPTED, **options)
            return check_rows(rows, "X", nonnegative=self._demand()), y
        matrices = self._matrices(X)
        n = matrices[0].shape[0]
        for j, K in enumerate(matrices):
            if K.shape != (n, n):
                raise ValueError(
                    f"X[{j}] has the shape {K.shape}: matrices must all be square and of the same "
                    f"rows, and X[0] has {n}"
                )
            check_gram(K, f"X[{j}]", MOST_WHOLE / len(matrices) ** 0.5)
            warn_if_indefinite(K, f"X[{j}]")
        _, y = validate_data(self, matrices[0], y, **ACCEPTED, **options)
        return matrices, y

    def _matrices(self, X: Any) -> list[Array]:
        """Return given matrices as a list of arrays."""
        if sp.issparse(X) or not (isinstance(X, list | tuple) or np.ndim(X) == 3) or not len(X):
            raise ValueError(
                'with kernels="precomputed", X must be a list of matrices or an array of shape '
                f"(n_kernels, n_rows, n_training_rows), got {type(X).__name__} of shape "
                f"{np.shape(X)}"
            )
        accepted = ACCEPTED | {"accept_sparse": True}
        return [to_dense(check_array(K, input_name=f"X[{j}]", **accepted)) for j, K in enumerate(X)]

    @without_warnings()
    def _train_on(self, X: Any, targets: Array, weights: Array, *, normalize: bool) -> Training:
        """Compute the matrices of the rows of weight above 0, and keep kernels and scales.

        ``targets`` are theirs alone.
        """
        index = np.flatnonzero(weights)
        random = check_random_state(self.random_state)
        memory = int(self.memory * 2**20)
        if self._precomputed:
            self.kernels_: Any = None
            self.kernel_names_ = [f"kernel {j}" for j in range(len(X))]
            dtype = np.result_type(*X) if self._may_round(index.size) else np.float64
            whole, some = index.size == len(X[0]), np.ix_(index, index)
            parts = (K if whole else K[some] for K in X)
            grams: Grams = StoredGrams([K.astype(dtype, copy=False) for K in parts])
            diagonals = [K.diagonal()[index] for K in X]
        else:
            rows = X if index.size == X.shape[0] else X[index]
            self._resolve(rows, random)
            grams = grams_of(self.kernels_, rows, self._dtype(rows), memory, self.n_jobs)
            diagonals = [kernel._diag(rows) for kernel in self.kernels_]
        check_kernel_values(np.array(diagonals))
        self.scales_ = np.ones(len(diagonals))
        if normalize:
            grams = self._normalized(grams, diagonals, weights[index])
        seed = int(random.randint(np.iinfo(np.int32).max))
        return Training(X, grams, index, targets, weights[index], seed)

    def _may_round(self, n: int) -> bool:
        return self.tol >= FLOAT32_TOL and n > SMALL

    def _dtype(self, rows: Matrix) -> Any:
        """Return the type of the matrices: single precision where that is far below ``tol``."""
        rounded = self._may_round(rows.shape[0])
        rounded = rounded and all(is_varied(kernel, rows) for kernel in self.kernels_)
        return np.float32 if rounded else np.float64

    def _resolve(self, rows: Matrix, random: Any) -> None:
        """Keep the kernels with numbers for rules, and their names."""
        columns = getattr(self, "feature_names_in_", None)
        given = self._named() or [*enumerate(Gaussian(Quantile(q)) for q in QUANTILES)]
        self.kernels_ = [resolved(kernel, rows, random, columns) for _, kernel in given]
        names = self.kernels if isinstance(self.kernels, dict) else self.kernels_
        self.kernel_names_ = [str(name) for name in names]

    def _normalized(self, grams: Grams, diagonals: list[Array], weights: Array) -> Grams:
        """Return the matrices over their scales, which are kept."""
        scales = variances(grams, diagonals, weights)
        if not scales.all():
            name = self.kernel_names_[int(np.argmin(scales))]
            raise ValueError(
                f"kernels: {name} has the same value for all training rows (n_samples = "
                f"{weights.size}), so that it tells nothing about them: leave it out, or set "
                "normalize=False"
            )
        self.scales_ = scales
        if isinstance(grams, TiledGrams):
            scaled = [k * (1 / float(s)) for k, s in zip(grams.kernels, scales, strict=True)]
            return TiledGrams(scaled, grams.X, grams.dtype, grams.memory, grams.n_jobs)
        stored: Any = grams
        return StoredGrams([rows.gram for rows in stored.rows], 1 / scales)

    # keep
    def _keep_machine(self, training: Training, coef: Array, intercept: Array) -> None:
        """Store the rows that have a coefficient; ``coef`` has a column per score."""
        support = np.flatnonzero(coef.any(axis=1))
        self.support_ = training.index[support]
        self.dual_coef_ = np.ascontiguousarray(coef[support])
        self.support_vectors_ = None if self._precomputed else training.X[self.support_]
        self.intercept_ = np.asarray(intercept, np.float64)
        if not (np.isfinite(self.dual_coef_).all() and np.isfinite(self.intercept_).all()):
            for j, K in enumerate(training.X if self._precomputed else ()):
                check_rows(K, f"X[{j}]")  # not all of it may have been read before
            raise ValueError(
                "the solution is not finite: kernel values, C, alpha or the weights are too far "
                "from 1 to compute with"
            )

    @property
    def kernel_(self) -> Any:
        """The weighted sum of the kernels, in which those of weight 0 are left out."""
        check_is_fitted(self, "weights_")
        if self.kernels_ is None:
            return None
        each = [weighted_sum(self.kernels_, w) for w in np.atleast_2d(self.weights_ / self.scales_)]
        return each[0] if self.weights_.ndim == 1 else each

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the arrays of a loaded model do not fit together."""
        self._check_parameters()
        rows = "matrix[n, d]?" if self._precomputed else "matrix[n, d]"
        found = require_attributes(
            self,
            weights_="float[m]|float[s, m]",
            scales_="float[m]",
            kernel_names_="list",
            kernels_="list?",
            support_="int64[n]",
            dual_coef_="float[n, s]",
            support_vectors_=rows,
            intercept_="float[s]",
            n_features_in_="=d",
            feature_names_in_="labels[d]?",
        )
        if not found:
            return
        require(len(self.kernel_names_) == found["m"], "kernel_names_ are not those of weights_")
        positive = bool((self.weights_ >= 0).all() and (self.scales_ > 0).all())
        require(positive, "weights_ or scales_ are out of range")
        if self._precomputed:
            inside = self.support_.min(initial=0) >= 0
            require(inside and self.support_.max(initial=-1) < found["d"], "support_ out of range")
            return
        known = self.kernels_ is not None and len(self.kernels_) == found["m"]
        require(known and all(isinstance(k, Kernel) for k in self.kernels_), "kernels_ are none")

    # predict
    def _new_rows(self, X: Any) -> Any:
        """Check rows to predict, or matrices."""
        check_is_fitted(self, "weights_")
        if not self._precomputed:
            rows = validate_data(self, X, reset=False, **ACCEPTED)
            return check_rows(rows, "X", nonnegative=self._demand())
        matrices, m = self._matrices(X), self.scales_.size
        if len(matrices) != m:
            raise ValueError(f"X has {len(matrices)} matrices, but there were {m} in fit")
        for j, K in enumerate(matrices):
            check_rows(K, f"X[{j}]")
            if K.shape != (matrices[0].shape[0], self.n_features_in_):
                raise ValueError(
                    f"X[{j}] has the shape {K.shape}, but must have a row for each of the "
                    f"{matrices[0].shape[0]} new rows and a column for each of the "
                    f"{self.n_features_in_} training rows"
                )
        return matrices

    def _bands(self, X: Any, j: int) -> Iterator[tuple[slice, Any]]:
        """Give the values of a kernel between rows and support vectors, a band at a time."""
        memory = min(BAND, self.memory, SHARE * get_config()["working_memory"])
        if not self._precomputed:
            kernel = self.kernels_[j]
            return kernel.tiles(X, self.support_vectors_, memory=memory, n_jobs=self.n_jobs)
        K = X[j]
        height = max(1, int(memory * 2**20 / (8 * max(1, self.support_.size))))
        parts = (slice(b, e) for b, e in parallel.ranges(K.shape[0], height))
        return ((part, K[part][:, self.support_]) for part in parts)

    def _shares(self, X: Any) -> Iterator[tuple[int, Array]]:
        """Give every kernel in use and what it adds to the scores, of shape (n, n_scores)."""
        rows = self._new_rows(X)
        n = rows[0].shape[0] if self._precomputed else rows.shape[0]
        factors = np.atleast_2d(self.weights_ / self.scales_)
        for j in np.flatnonzero(factors.any(axis=0)):
            share = np.zeros((n, self.intercept_.size))
            coef = self.dual_coef_ * factors[:, j]
            if self.support_.size:
                for part, K in self._bands(rows, int(j)):
                    share[part] = K @ coef
            yield int(j), finite_scores(share)
        if not factors.any():
            yield 0, np.zeros((n, self.intercept_.size))

    @without_warnings()
    def _scores(self, X: Any) -> Array:
        """Return the scores of rows: the shares of all kernels, and the intercept."""
        return np.asarray(sum(share for _, share in self._shares(X)) + self.intercept_)

    @without_warnings()
    def contributions(self, X: Any) -> Array:
        r"""Compute what every kernel contributes to the scores of samples.

        It is :math:`\beta_j \sum_i a_i k_j(x_i, x)`. Scores are the sums over the kernels plus
        ``intercept_``, which belongs to no kernel.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Samples, or a list of matrices of kernels between them and the training rows.

        Returns
        -------
        contributions : ndarray of shape (n_samples, n_kernels) or (n_samples, n_kernels, n_scores)
            Without the last axis if there is one score.
        """
        parts = dict(self._shares(X))
        shape = next(iter(parts.values())).shape
        found = np.zeros((shape[0], self.scales_.size, shape[1]))
        for j, share in parts.items():
            found[:, j] = share
        return found[:, :, 0] if shape[1] == 1 else found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._precomputed
        tags.input_tags.positive_only = self._demand() is not None
        tags.input_tags.two_d_array = not self._precomputed
        tags.input_tags.three_d_array = self._precomputed
        return tags


@estimator
class NormedModel(MultipleKernelModel):
    """Base of the estimators whose weights have a norm of 1.

    Parameters
    ----------
    norm : float, default=1.0
        The norm of the weights that is 1, from 1 on: 1 makes many weights 0, large ones make
        weights more equal, and ``numpy.inf`` makes all 1, the plain sum of the kernels.
    normalize : bool, default=True
        Whether every kernel is divided by its scale, the variance of the training rows in its
        feature space, first; otherwise a kernel of larger values counts more.
    """

    _: KW_ONLY
    norm: float = 1.0
    normalize: bool = True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_norm(self.norm)


@estimator
class MultipleKernelClassifier(ProbabilityClassifier, MultipleKernelModel):
    """Base of the classifiers with several kernels.

    Parameters
    ----------
    class_weight : dict or "balanced", optional
        Factor of the weights of the rows of each class.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels.
    """

    _: KW_ONLY
    class_weight: Any = None

    def _labeled(self, X: Any, y: Any, sample_weight: Any, *, normalize: bool) -> Training:
        """Check and prepare rows with labels, which become places in ``classes_``."""
        rows, y = self._checked(X, y)
        check_labels(y)
        weights = checked_weights(sample_weight, rows[0] if self._precomputed else rows)
        classes, labels = class_numbers(y[weights > 0])
        self.classes_ = check_classes(classes, sample_weight)
        self._forget_calibration()
        return self._train_on(rows, labels, weights, normalize=normalize)

    def _weighted(self, training: Training) -> Array:
        """Return the weights of rows times those of their classes."""
        labels, weights = training.targets, training.weights
        return weights * class_factors(self.class_weight, self.classes_, labels, weights)

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the arrays of a loaded classifier do not fit together."""
        if "support_" in vars(self):
            found = require_attributes(self, classes_="labels[k]", intercept_="float[s]")
            scores = 1 if found["k"] == 2 else found["k"]
            require(found["s"] == scores, "intercept_ is not one for every class")
