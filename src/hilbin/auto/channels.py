r"""Channels: groups of columns with a scale and a weight of their own, in one ridge classifier.

A channel is what one descriptor says about an image: counts of visual words, colors, the maps of a
network. Channels differ in scale, in their number of columns and in what they are worth. The kernel
of an image is a weighted sum of the kernels of the channels,

.. math:: K = \sum_c \frac{a_c}{1 - a_c}\, \frac{K_c}{v_c},

where :math:`v_c` is the total variance of channel :math:`c` in the feature space of its kernel, and
:math:`a_c` the leave-one-out accuracy of a ridge classifier on this channel alone. Every
:math:`K_c` is additive, so the score is a sum over single features, and explanations are exact.

**Algorithm.** With rows :math:`Z` of an explicit map of few features per value, many more columns
than rows, the ridge is solved in its dual form, :math:`K = Z Z^\top`:

.. math:: (K + \alpha W^{-1})\, c + b 1 = t, \quad 1^\top c = 0, \qquad c = G t, \quad
    G = B^{-1} - \frac{B^{-1} 1 1^\top B^{-1}}{1^\top B^{-1} 1}, \quad B = K + \alpha W^{-1},

with the weights :math:`W` of the rows. Rows :math:`F` that are left out together get the scores
:math:`t_F - G_{FF}^{-1} c_F`, exactly, for one inverse of :math:`B`; so the penalty, the weights of
the channels and all held-out scores need no second fit.

**References.** R. Rifkin and R. Lippert, *Notes on Regularized Least Squares*, 2007. A. Vedaldi
and A. Zisserman, *Efficient Additive Kernels via Explicit Feature Maps*, 2012. P. Gehler and
S. Nowozin, *On Feature Combination for Multiclass Object Classification*, 2009.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg import lapack
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from hilbin import parallel
from hilbin._arrays import Array, to_dense
from hilbin._parameters import estimator, require_positive, require_whole
from hilbin._state import require
from hilbin.estimators import KernelSVC
from hilbin.estimators._fit import check_classes, checked_weights, class_factors
from hilbin.kernels import AdditiveKernel, Chi2
from hilbin.maps import AdditiveMap

Channel = tuple[str, int, int]  # name, first column, one past the last

MOST_ROWS = 8000  # whose Gram matrix is inverted
ALPHAS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # in units of the mean square of the centered rows
CHANNEL_ALPHAS = (0.03, 0.3)  # for the accuracy of a single channel
MAP_ROWS = 128  # from which the values of a channel are known
CELLS = 2**24  # features that are computed together


def require_rows(n_rows: int) -> int:
    """Return the number of rows if their Gram matrix is not too large."""
    if n_rows > MOST_ROWS:
        raise ValueError(
            f"at most {MOST_ROWS} rows have a Gram matrix of moderate size, got {n_rows}; "
            "MapRidgeClassifier and IntersectionSVC take any number"
        )
    return n_rows


def check_channels(channels: Sequence[Channel], n_columns: int) -> list[Channel]:
    """Return the channels if they have different names and follow each other over all columns.

    Parameters
    ----------
    channels : sequence of (str, int, int)
        Name, first column, and one past the last column of every channel.
    n_columns : int
        Number of columns.

    Examples
    --------
    >>> from hilbin.auto.channels import check_channels
    >>> check_channels([("words", 0, 4), ("colors", 4, 6)], 6)
    [('words', 0, 4), ('colors', 4, 6)]
    """
    found = [(str(name), int(begin), int(end)) for name, begin, end in channels]
    names = [name for name, _, _ in found]
    if len(set(names)) < len(names):
        raise ValueError(f"two channels have the same name: {', '.join(names)}")
    ends = [0, *(end for _, _, end in found)]
    joined = all(begin == at < end for (_, begin, end), at in zip(found, ends, strict=False))
    if not (found and joined and ends[-1] == n_columns):
        raise ValueError(
            f"channels must follow each other over all {n_columns} columns, got {found}"
        )
    return found


@estimator
class ChannelMap(TransformerMixin, BaseEstimator):
    """Features of an additive kernel for every channel, each of the variance that it deserves.

    With labels the total variance of a channel becomes ``a / (1 - a)`` over the sum of these, where
    ``a`` is the leave-one-out accuracy of a ridge classifier on this channel alone; without, all
    channels get the same. A channel with negative values keeps its values as they are: its kernel
    is linear.

    Parameters
    ----------
    channels : list of (str, int, int), optional
        Name, first column, and one past the last column of every channel; by default all columns
        are one channel.
    kernel : AdditiveKernel or None, default=Chi2()
        Kernel of the values; None is linear.
    n_components : int, default=3
        Features per value.
    power : float, default=1.0
        Power of ``a / (1 - a)``; above 1 the best channels count for more.
    n_jobs : int, optional
        Threads, as in joblib.

    Attributes
    ----------
    channels_ : list of (str, int, int)
        The channels.
    maps_ : list of AdditiveMap or None
        The map of every channel; None if it is linear.
    weights_ : ndarray of shape (n_channels,)
        Total variance of the features of every channel; they sum to 1.
    factors_ : ndarray of shape (n_channels,)
        What the features of every channel are multiplied by.
    input_columns_ : ndarray of shape (n_features_out,)
        The column that every feature is made from.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.auto import ChannelMap
    >>> X = np.random.default_rng(0).dirichlet(np.ones(6), 50)
    >>> features = ChannelMap([("words", 0, 4), ("colors", 4, 6)])
    >>> features.fit_transform(X).shape
    (50, 18)
    """

    channels: Any = None
    _: KW_ONLY
    kernel: AdditiveKernel | None = Chi2()
    n_components: int = 3
    power: float = 1.0
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the values of every channel and, from labels, what it is worth.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,), optional
            Labels.

        Returns
        -------
        self : ChannelMap
        """
        if y is None:
            X = validate_data(self, X, dtype=(np.float32, np.float64))
        else:
            X, y = validate_data(self, X, y, dtype=(np.float32, np.float64))
        self.fit_values(X)
        if y is not None and len(self.channels_) > 1:
            classes, codes = np.unique(y, return_inverse=True)
            targets = class_targets(codes, check_classes(classes).size)
            n = require_rows(len(X))
            data = ChannelGrams(self.grams(X), targets, np.ones(n), np.arange(n))
            self.set_weights(data.sharper(data.channel_weights(), self.power))
        return self

    def fit_values(self, X: Array) -> Self:
        """Learn the values of every channel; all get the same total variance."""
        require_whole("n_components", self.n_components, 1)
        require_positive("power", self.power, or_zero=True)
        named = [("all", 0, X.shape[1])] if self.channels is None else self.channels
        self.channels_ = check_channels(named, X.shape[1])
        some = X[np.unique(np.linspace(0, len(X) - 1, min(len(X), MAP_ROWS)).astype(int))]
        self.maps_ = [self._map(X[:, b:e], some[:, b:e]) for _, b, e in self.channels_]
        self.n_features_in_ = X.shape[1]
        sizes = [end - begin for _, begin, end in self.channels_]
        self.input_columns_ = np.repeat(np.arange(X.shape[1]), np.repeat(self.widths, sizes))
        self.factors_ = np.ones(len(self.channels_))
        variances = np.zeros(len(self.channels_))
        for c, variance in self.each(X, lambda Z: Z.var(axis=0, dtype=np.float64).sum()):
            variances[c] += variance
        self.factors_ = np.sqrt(np.divide(1, variances, out=0 * variances, where=variances > 0))
        self.weights_ = np.ones(len(self.channels_))
        return self.set_weights(np.full(len(self.channels_), 1 / len(self.channels_)))

    def set_weights(self, weights: Array) -> Self:
        """Give every channel a total variance."""
        self.factors_ = self.factors_ * np.sqrt(weights / self.weights_)
        self.weights_ = weights
        return self

    def _map(self, values: Array, some: Array) -> AdditiveMap | None:
        if self.kernel is None or values.min() < 0 or not values.any():
            return None
        made = AdditiveMap(self.kernel, self.n_components, n_jobs=1)
        return made.fit(some if some.any() else values)

    @property
    def widths(self) -> list[int]:
        """Features per value of every channel."""
        return [1 if m is None else m.n_components_ for m in self.maps_]

    def each(self, X: Array, function: Callable[[Array], Any]) -> Iterator[tuple[int, Any]]:
        """Yield, in order, ``function`` of the features of a run of columns, with its channel."""
        parts = [
            (c, begin + low, begin + high)
            for c, (_, begin, end) in enumerate(self.channels_)
            for low, high in parallel.ranges(
                end - begin, max(1, CELLS // (max(len(X), 1) * self.widths[c]))
            )
        ]

        def task(at: int, _: int) -> tuple[int, Any]:
            c, begin, end = parts[at]
            return c, function(self._features(X[:, begin:end], c))

        return parallel.stream(task, parallel.ranges(len(parts), 1), self.n_jobs, calls_blas=True)

    def _features(self, values: Array, channel: int) -> Array:
        made = self.maps_[channel]
        values = np.ascontiguousarray(values)
        features: Array = values if made is None else made._features(values)
        return features * features.dtype.type(self.factors_[channel])

    def transform(self, X: Any) -> Array:
        """Return the features of all channels side by side.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_features_out)
            The features of a value stand side by side.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=(np.float32, np.float64), reset=False)
        return np.hstack([Z for _, Z in self.each(X, lambda Z: Z)])

    def grams(self, X: Array) -> list[Array]:
        """Return the Gram matrix of every channel, of features measured from their mean.

        Whatever the weights of the channels are, the mean of the diagonal is 1.
        """

        def product(Z: Array) -> Array:
            Z = Z - Z.mean(axis=0, dtype=np.float64).astype(Z.dtype)
            return Z @ Z.T

        found = [np.zeros((len(X), len(X))) for _ in self.channels_]
        with parallel.blas_threads(1):  # the sums of BLAS depend on its number of threads
            for c, K in self.each(X, product):
                found[c] += K / self.weights_[c]
        return found

    def combination(self, X: Array, coef: Array) -> tuple[Array, Array]:
        """Return the weights ``coef.T @ Z`` of the features ``Z`` of rows, and their scores.

        The weights are in float32, the scores of the rows in float64.
        """
        with parallel.blas_threads(1):
            each = self.each(X, lambda Z: coef.T @ Z.astype(np.float64))
            weights = np.hstack([W for _, W in each]).astype(np.float32)
            scores, begin = np.zeros(coef.shape), 0
            for _, Z in self.each(X, lambda Z: Z.astype(np.float64)):
                scores += Z @ weights[:, begin : begin + Z.shape[1]].T.astype(np.float64)
                begin += Z.shape[1]
        return weights, scores

    def _check_state(self) -> None:
        if hasattr(self, "channels_"):
            check_channels(self.channels_, self.n_features_in_)
            n = len(self.channels_)
            require(len(self.maps_) == n, "maps_ are not one for every channel")
            require(np.shape(self.factors_) == (n,), "factors_ are not one for every channel")
            require(np.shape(self.weights_) == (n,), "weights_ are not one for every channel")


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
        return np.array([max(self._accuracy_at(K, a) for a in CHANNEL_ALPHAS) for K in self.grams])

    def _accuracy_at(self, K: Array, alpha: float) -> float:
        scores = Dual.solve(K, self.targets, alpha, self.weights).held_out(self.groups)
        return _accuracy(scores, self.targets, self.weights)

    def channel_weights(self) -> Array:
        """Return ``a / (1 - a)`` of every channel, over their sum."""
        if len(self.grams) == 1:
            return np.ones(1)
        n = np.unique(self.groups[self.groups >= 0]).size
        a = (self.accuracies() * n + 0.5) / (n + 1)  # neither 0 nor 1
        odds = a / (1 - a)
        weights: Array = odds / odds.sum()
        return weights

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
        found: tuple[tuple[float, float], float, Dual] | None = None
        for alpha in alphas:
            dual = Dual.solve(gram, self.targets, alpha, self.weights)
            scores = dual.held_out(self.groups)
            error = float(np.nanmean(np.square(scores - self.targets)))
            quality = _accuracy(scores, self.targets, self.weights), -error
            if found is None or quality > found[0]:
                found = quality, alpha, dual
        assert found is not None
        return found[1], found[2]


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


@estimator
class ChannelWeights(TransformerMixin, BaseEstimator):
    """Multiply the columns of every channel by a factor.

    Homogeneous kernels of the rows, such as intersection or chi-squared, are then the weighted sum
    of the kernels of the channels.

    Parameters
    ----------
    channels : list of (str, int, int)
        Name, first column, and one past the last column of every channel.
    factors : sequence of float
        Factor of every channel.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.auto import ChannelWeights
    >>> ChannelWeights([("a", 0, 1), ("b", 1, 3)], [2.0, 0.5]).fit_transform(np.ones((1, 3)))
    array([[2. , 0.5, 0.5]])
    """

    channels: Any
    factors: Any

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check that the channels fit the columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : ignored

        Returns
        -------
        self : ChannelWeights
        """
        X = validate_data(self, X, dtype=(np.float32, np.float64))
        channels = check_channels(self.channels, X.shape[1])
        self.column_factors_ = np.repeat(
            np.asarray(self.factors, np.float64), [end - begin for _, begin, end in channels]
        )
        return self

    def transform(self, X: Any) -> Array:
        """Return the columns times their factors.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=(np.float32, np.float64), reset=False)
        return X * self.column_factors_.astype(X.dtype)

    def _check_state(self) -> None:
        if hasattr(self, "column_factors_"):
            right = np.shape(self.column_factors_) == (self.n_features_in_,)
            require(right, "column_factors_ are not one for every column")
