r"""Channels: groups of columns with a scale and a weight of their own.

A channel is what one descriptor says about an image: counts of visual words, colors, the maps of a
network. Channels differ in scale, in their number of columns and in what they are worth. The kernel
of an image is a weighted sum of the kernels of the channels,

.. math:: K = \sum_c \frac{a_c}{1 - a_c}\, \frac{K_c}{v_c},

where :math:`v_c` is the total variance of channel :math:`c` in the feature space of its kernel, and
:math:`a_c` the leave-one-out accuracy of a ridge classifier on this channel alone
(:mod:`hilbin.auto.dual`). Every :math:`K_c` is additive, so the score is a sum over single
features, and explanations are exact.

**References.** A. Vedaldi and A. Zisserman, *Efficient Additive Kernels via Explicit Feature Maps*,
2012. P. Gehler and S. Nowozin, *On Feature Combination for Multiclass Object Classification*, 2009.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from hilbin import parallel
from hilbin._arrays import Array
from hilbin._parameters import estimator, require_positive, require_whole
from hilbin._state import require
from hilbin.auto.dual import ChannelGrams, class_targets, require_rows
from hilbin.estimators._fit import check_classes
from hilbin.kernels import AdditiveKernel, Chi2
from hilbin.maps import AdditiveMap

Channel = tuple[str, int, int]  # name, first column, one past the last

MAP_ROWS = 128  # from which the values of a channel are known
CELLS = 2**24  # features that are computed together


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
    """Features of an additive kernel for every channel, weighted by how useful it is.

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
            weights = data.channel_weights("accuracy", data.accuracies())
            self.set_weights(data.sharper(weights, self.power))
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
            whole = all(type(place) is int for _, *places in self.channels_ for place in places)
            require(whole, "channels_ have no whole numbers of columns")
            check_channels(self.channels_, self.n_features_in_)
            n = len(self.channels_)
            maps = all(made is None or isinstance(made, AdditiveMap) for made in self.maps_)
            require(maps and len(self.maps_) == n, "maps_ are not one for every channel")
            require(np.shape(self.factors_) == (n,), "factors_ are not one for every channel")
            require(np.shape(self.weights_) == (n,), "weights_ are not one for every channel")
            sizes = [end - begin for _, begin, end in self.channels_]
            made = np.repeat(np.arange(self.n_features_in_), np.repeat(self.widths, sizes))
            require(np.array_equal(self.input_columns_, made), "input_columns_ are others")
            require(self.input_columns_.dtype.kind == "i", "input_columns_ are no whole numbers")


@estimator
class ChannelWeights(TransformerMixin, BaseEstimator):
    """Multiply the columns of every channel by a factor.

    Homogeneous kernels of the rows, such as intersection or chi-squared, are then the weighted sum
    of the kernels of the channels.

    Parameters
    ----------
    channels : list of (str, int, int)
        Name, first column, and one past the last column of every channel.
    factors : sequence of float, optional
        Factor of every channel; by default one over the mean sum of its columns.

    Attributes
    ----------
    column_factors_ : ndarray of shape (n_features,)
        Factor of every column.
    input_columns_ : ndarray of shape (n_features,)
        The column that every feature is made from.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.auto import ChannelWeights
    >>> ChannelWeights([("a", 0, 1), ("b", 1, 3)]).fit_transform(np.ones((1, 3)))
    array([[1. , 0.5, 0.5]])
    """

    channels: Any
    factors: Any = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check that the channels fit the columns, and learn factors that are not given.

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
        factors = self.factors
        if factors is None:
            means = [X[:, b:e].sum(dtype=np.float64) / len(X) for _, b, e in channels]
            factors = [1 / mean if mean > 0 else 1.0 for mean in means]
        self.column_factors_ = np.repeat(
            np.asarray(factors, np.float64), [end - begin for _, begin, end in channels]
        )
        self.input_columns_ = np.arange(X.shape[1])  # explanations are exact
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
