r"""Linear machines with more columns than rows, solved by the Gram matrix of the rows.

With rows :math:`Z` of an explicit map of few features per value, many more columns than rows, the
ridge is solved in its dual form, :math:`K = Z Z^\top`:

.. math:: (K + \alpha W^{-1})\, c + b 1 = t, \quad 1^\top c = 0, \qquad c = G t, \quad
    G = B^{-1} - \frac{B^{-1} 1 1^\top B^{-1}}{1^\top B^{-1} 1}, \quad B = K + \alpha W^{-1},

with the weights :math:`W` of the rows. Rows :math:`F` that are left out together get the scores
:math:`t_F - G_{FF}^{-1} c_F`, exactly, for one inverse of :math:`B`; so the penalty, the weights of
channels and all held-out scores need no second fit.

**Reference.** R. Rifkin and R. Lippert, *Notes on Regularized Least Squares*, 2007.
"""

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg import lapack
from sklearn.base import BaseEstimator
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from hilbin import parallel
from hilbin._arrays import Array, to_dense
from hilbin._parameters import estimator, require_positive
from hilbin._state import require
from hilbin.estimators import KernelSVC, MultipleKernelRidgeClassifier
from hilbin.estimators._fit import check_classes, checked_weights, class_factors
from hilbin.kernels import align_weights

MOST_ROWS = 8000  # whose Gram matrix is inverted
ALPHAS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # in units of the mean square of the centered rows
CHANNEL_ALPHAS = (0.03, 0.3)  # for the accuracy of a single channel
MULTIPLE_ALPHA = 0.1  # where weights are learned with the classifier
RULES = ("accuracy", "average", "alignment", "multiple")  # for the weights of channels


def require_rows(n_rows: int) -> int:
    """Return the number of rows if their Gram matrix is not too large."""
    if n_rows > MOST_ROWS:
        raise ValueError(
            f"at most {MOST_ROWS} rows have a Gram matrix of moderate size, got {n_rows}; "
            "MapRidgeClassifier and IntersectionSVC take any number"
        )
    return n_rows


@dataclass(frozen=True)
class Dual:
    """The dual solution of a ridge regression, and what it says about rows that are left out.

    Parameters
    ----------
    inverse : ndarray of shape (n, n)
        The matrix ``G`` of the module.
    coef : ndarray of shape (n, n_targets)
        Dual coefficients.
    targets : ndarray of shape (n, n_targets)
        Targets.
    """

    inverse: Array
    coef: Array
    targets: Array

    @classmethod
    def solve(cls, gram: Array, targets: Array, alpha: float, weights: Array | None = None) -> Self:
        """Solve the ridge regression with a Gram matrix for one penalty.

        Parameters
        ----------
        gram : ndarray of shape (n, n)
            Gram matrix.
        targets : ndarray of shape (n, n_targets)
            Targets.
        alpha : float
            Penalty, above 0.
        weights : ndarray of shape (n,), optional
            Weights of the rows, above 0.
        """
        B = np.array(gram, np.float64, order="F")
        B[np.diag_indices_from(B)] += alpha if weights is None else alpha / weights
        with parallel.blas_threads(1):
            factor, failed = lapack.dpotrf(B, lower=1, overwrite_a=1)
            if failed:
                raise ValueError("the Gram matrix is not positive semi-definite")
            inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
            inverse = np.tril(inverse)
            inverse += np.tril(inverse, -1).T
            sums = inverse.sum(axis=0)
            inverse -= np.outer(sums, sums / sums.sum())
            return cls(inverse, inverse @ targets, targets)

    def held_out(self, groups: Array) -> Array:
        """Return the scores of rows by the fit without the rows of the same group.

        Parameters
        ----------
        groups : int array of shape (n,)
            Group of every row; rows of a negative number are never left out.

        Returns
        -------
        scores : ndarray of shape (n, n_targets)
            NaN in rows that are never left out.
        """
        scores = np.full(self.targets.shape, np.nan)
        order = np.argsort(groups, kind="stable")
        numbers, starts = np.unique(groups[order], return_index=True)
        blocks = [b for k, b in zip(numbers, np.split(order, starts[1:]), strict=True) if k >= 0]
        single = np.array([b[0] for b in blocks if b.size == 1], int)
        diagonal = np.diag(self.inverse)[single, None]
        scores[single] = self.targets[single] - self.coef[single] / diagonal
        with parallel.blas_threads(1):
            for rows in (b for b in blocks if b.size > 1):
                miss = np.linalg.solve(self.inverse[np.ix_(rows, rows)], self.coef[rows])
                scores[rows] = self.targets[rows] - miss
        return scores


def class_targets(codes: Array, n_classes: int) -> Array:
    """Return 1 for the class of a row and -1 for others; one column for two classes."""
    if n_classes == 2:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    return np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)


def _accuracy(scores: Array, targets: Array, weights: Array) -> float:
    """Return the weighted share of rows whose highest score is that of their class."""
    if targets.shape[1] == 1:
        right = (scores[:, 0] > 0) == (targets[:, 0] > 0)
    else:
        right = scores.argmax(axis=1) == targets.argmax(axis=1)
    known = ~np.isnan(scores).any(axis=1)
    return float(np.average(right[known], weights=weights[known])) if known.any() else 0.0


@dataclass
class ChannelGrams:
    """Gram matrices of the channels of training rows, from which everything is chosen.

    Parameters
    ----------
    grams : list of ndarray of shape (n, n)
        Gram matrix of every channel, of total variance 1.
    targets : ndarray of shape (n, n_targets)
        Targets.
    weights : ndarray of shape (n,)
        Weights of the rows.
    groups : int array of shape (n,)
        Rows that are left out together; negative for rows that are never left out.
    """

    grams: list[Array]
    targets: Array
    weights: Array
    groups: Array

    def accuracies(self) -> Array:
        """Return the leave-one-out accuracy of every channel alone."""
        return np.array([self.accuracy(K) for K in self.grams])

    def accuracy(self, K: Array) -> float:
        """Return the leave-one-out accuracy of a Gram matrix, the better of two penalties."""
        return max(self._accuracy_at(K, alpha) for alpha in CHANNEL_ALPHAS)

    def _accuracy_at(self, K: Array, alpha: float) -> float:
        scores = Dual.solve(K, self.targets, alpha, self.weights).held_out(self.groups)
        return _accuracy(scores, self.targets, self.weights)

    def channel_weights(self, rule: str, accuracies: Array) -> Array:
        """Return the weights of the channels by a rule of ``RULES``, over their sum.

        Parameters
        ----------
        rule : str
            ``"accuracy"``: ``a / (1 - a)`` of every channel; ``"average"``: the same for all;
            ``"alignment"``: those of the sum that agrees best with the labels; ``"multiple"``:
            learned together with a ridge classifier, of length 1.
        accuracies : array of shape (n_channels,)
            Leave-one-out accuracy ``a`` of every channel alone.
        """
        n = np.unique(self.groups[self.groups >= 0]).size
        a = (accuracies * n + 0.5) / (n + 1)  # neither 0 nor 1
        weights: Array = np.ones(len(self.grams))
        if rule == "accuracy":
            weights = a / (1 - a)
        elif rule == "alignment":
            weights = align_weights(self.grams, self._labels)
        elif rule == "multiple":
            model = MultipleKernelRidgeClassifier("precomputed", MULTIPLE_ALPHA, norm=2)
            weights = model.fit(self.grams, self._labels, self.weights).weights_
        return np.asarray(weights / weights.sum())

    @property
    def _labels(self) -> Array:
        """Numbers of the classes."""
        T = self.targets
        return (T[:, 0] > 0).astype(int) if T.shape[1] == 1 else T.argmax(axis=1)

    def sharper(self, weights: Array, power: float) -> Array:
        """Return a power of the weights, over their sum."""
        raised = weights**power
        return np.asarray(raised / raised.sum())

    def combined(self, weights: Array) -> Array:
        """Return the weighted sum of the Gram matrices."""
        return sum(w * K for w, K in zip(weights, self.grams, strict=True))

    def best(self, gram: Array, alphas: Sequence[float]) -> tuple[float, Dual]:
        """Return the penalty of highest leave-one-out accuracy, and its solution.

        Among equals the one of least squared leave-one-out error is taken.
        """
        return max(self._solutions(gram, alphas), key=lambda found: found[0])[1:]

    def best_power(
        self, weights: Array, powers: Sequence[float], alphas: Sequence[float]
    ) -> tuple[float, float]:
        """Return the power of the weights and the penalty that :meth:`best` would prefer."""
        tried = powers if len(self.grams) > 1 else powers[:1]
        found = [
            (quality, power, alpha)
            for power in tried
            for quality, alpha, _ in self._solutions(
                self.combined(self.sharper(weights, power)), alphas
            )
        ]
        return max(found, key=lambda each: each[0])[1:]

    def _solutions(
        self, gram: Array, alphas: Sequence[float]
    ) -> Iterator[tuple[tuple[float, float], float, Dual]]:
        """Yield the leave-one-out accuracy and error, the penalty and the solution."""
        for alpha in alphas:
            dual = Dual.solve(gram, self.targets, alpha, self.weights)
            scores = dual.held_out(self.groups)
            error = float(np.nanmean(np.square(scores - self.targets)))
            yield (_accuracy(scores, self.targets, self.weights), -error), alpha, dual


@estimator
class DualRidgeClassifier(LinearClassifierMixin, BaseEstimator):
    r"""Ridge classifier for more features than rows, with its penalty by leave-one-out accuracy.

    It minimizes :math:`\sum_i w_i (t_i - f(x_i))^2 + \alpha \|w\|^2` for the targets
    :math:`t_i = \pm 1` of every class, in the dual form.

    Parameters
    ----------
    alphas : sequence of float
        Penalties to choose from, in units of the total variance of the features.
    class_weight : dict or "balanced", optional
        Factor of the weights of the rows of each class.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels.
    alpha_ : float
        The penalty, in the same units.
    coef_ : ndarray of shape (1 or n_classes, n_features)
        Weights of the features.
    intercept_ : ndarray of shape (1 or n_classes,)
        Intercept of every score.
    held_out_scores_ : ndarray of shape (n_samples, n_classes)
        Scores of all classes for the training rows by the model without them.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> from hilbin.auto import ChannelMap, DualRidgeClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> halves = [("upper", 0, 32), ("lower", 32, 64)]
    >>> model = make_pipeline(ChannelMap(halves), DualRidgeClassifier())
    >>> bool(model.fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.93)
    True
    """

    _rounded = ("coef_",)  # in compact files
    alphas: Any = ALPHAS
    _: KW_ONLY
    class_weight: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Learn.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows; rows of weight 0 do not count.
        groups : int array-like of shape (n_samples,), optional
            Rows of the same group are left out together, such as distorted copies of an image.

        Returns
        -------
        self : DualRidgeClassifier
        """
        X, y = validate_data(self, X, y, dtype=(np.float32, np.float64))
        check_classification_targets(y)
        weights = checked_weights(sample_weight, X)
        kept = np.flatnonzero(weights > 0)
        X, y, weights = X[kept], y[kept], weights[kept]
        numbers = kept if groups is None else np.asarray(groups)[kept]
        require_rows(len(X))
        with parallel.blas_threads(1):
            Z = X - np.average(X, axis=0, weights=weights).astype(X.dtype)
            gram = np.asarray(Z @ Z.T, np.float64)
            unit = float(np.average(np.diag(gram), weights=weights)) or 1.0
            dual, weights = self.fit_gram(gram / unit, y, weights, numbers)
            self.coef_ = dual.coef.T @ X / unit
            rest = dual.targets - X @ self.coef_.T
            self.intercept_ = np.average(rest, axis=0, weights=weights)
        return self

    def fit_gram(
        self, gram: Array, y: Array, weights: Array, groups: Array
    ) -> tuple["Dual", Array]:
        """Solve the dual problem for a Gram matrix; return its solution and the rows' weights.

        Parameters
        ----------
        gram : array of shape (n_samples, n_samples)
            Gram matrix of centered rows; the mean of its diagonal is 1.
        y : array of shape (n_samples,)
            Labels.
        weights, groups : arrays of shape (n_samples,)
            As in :meth:`fit`, weights above 0.
        """
        for alpha in self.alphas:
            require_positive("alphas", alpha)
        classes, codes = np.unique(y, return_inverse=True)
        self.classes_ = check_classes(classes)
        weights = weights * class_factors(self.class_weight, classes, codes, weights)
        data = ChannelGrams([gram], class_targets(codes, classes.size), weights, groups)
        self.alpha_, dual = data.best(gram, self.alphas)
        scores = dual.held_out(groups)
        self.held_out_scores_ = np.hstack([-scores, scores]) if classes.size == 2 else scores
        return dual, weights

    def _check_state(self) -> None:
        if hasattr(self, "coef_"):
            n = self.classes_.size if self.classes_.size > 2 else 1
            require(np.shape(self.coef_)[:1] == (n,), "coef_ has the wrong shape")
            require(np.shape(self.intercept_) == (n,), "intercept_ has the wrong shape")


@estimator
class DualSVC(LinearClassifierMixin, BaseEstimator):
    r"""Linear support vector machine for more features than rows, one class against the rest.

    It minimizes :math:`\tfrac12 \|w\|^2 + C \sum_i \max(0, 1 - t_i f(x_i))` by the Gram matrix of
    centered rows, divided by their total variance.

    Parameters
    ----------
    C : float, default=10.0
        Weight of the loss.
    class_weight : dict or "balanced", optional
        Factor of ``C`` for the rows of each class.
    n_jobs : int, optional
        Threads, as in joblib.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels.
    coef_ : ndarray of shape (1 or n_classes, n_features)
        Weights of the features.
    intercept_ : ndarray of shape (1 or n_classes,)
        Intercept of every score.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> from hilbin.auto import ChannelMap, DualSVC
    >>> X, y = load_digits(return_X_y=True)
    >>> model = make_pipeline(ChannelMap(), DualSVC()).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.94)
    True
    """

    _rounded = ("coef_",)  # in compact files
    C: float = 10.0
    _: KW_ONLY
    class_weight: Any = None
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any) -> Self:
        """Learn.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        self : DualSVC
        """
        X, y = validate_data(self, X, y, dtype=(np.float32, np.float64))
        check_classification_targets(y)
        require_rows(len(X))
        with parallel.blas_threads(1):
            mean = X.mean(axis=0, dtype=np.float64).astype(X.dtype)
            Z = X - mean
            gram = np.asarray(Z @ Z.T, np.float64)
            unit = float(np.trace(gram)) / len(gram) or 1.0
            coef, intercept = self.fit_gram(gram / unit, y)
            self.coef_ = coef.T @ Z / unit
            self.intercept_ = intercept - self.coef_ @ mean
        return self

    def fit_gram(self, gram: Array, y: Array) -> tuple[Array, Array]:
        """Solve the dual problem for a Gram matrix of centered rows.

        Returns
        -------
        coef : ndarray of shape (n_samples, n_scores)
            Dual coefficients.
        intercept : ndarray of shape (n_scores,)
            Intercept of the scores of centered rows.
        """
        machine = KernelSVC(
            "precomputed", C=self.C, class_weight=self.class_weight, n_jobs=self.n_jobs
        ).fit(gram, y)
        self.classes_ = machine.classes_
        intercept = np.asarray(machine.intercept_, np.float64)
        coef = np.zeros((len(gram), intercept.size))
        coef[machine.support_] = to_dense(machine.dual_coef_)
        return coef, intercept

    def _check_state(self) -> None:
        if hasattr(self, "coef_"):
            n = self.classes_.size if self.classes_.size > 2 else 1
            require(np.shape(self.coef_)[:1] == (n,), "coef_ has the wrong shape")
            require(np.shape(self.intercept_) == (n,), "intercept_ has the wrong shape")
