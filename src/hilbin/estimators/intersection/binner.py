r"""Values to bins: the quantizer of ICD, repaired.

Wu (ECCV 2010, equation 13) maps a value to :math:`\lfloor V (x - a) / (b - a) \rfloor`, with
:math:`a` the least training value and :math:`b` the 97.5th percentile. Here the result is clipped
to :math:`[0, V]`; ``a`` is the 2.5th percentile, which a few outliers do not move, and is zero
where zeros are common; ``b`` is the percentile of the values *above* ``a``, so that it exists where
most values are zero; the range is per feature or common to all, as the data ask for; and the bins
of a common range of whole numbers are these numbers.

One unit of length serves all bins and features: a bin is ``step_`` wide, with ``V * step_ = 100``.
The intersection kernel in this unit is the same, up to rounding, whatever the number of bins is,
and so is what the ``C`` of an SVM means. Values that are not binned (``n_bins=None``) are measured
by the same rule, :math:`100 (x - a) / (b - a)` clipped to :math:`[0, 100]`: they are the limit of
many bins.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from hilbin import parallel
from hilbin._arrays import (
    ACCEPTED,
    Array,
    Matrix,
    apply,
    check_values_and_least,
    validate_data,
)
from hilbin._core import core
from hilbin._parameters import estimator, require_choice, require_positive, require_whole
from hilbin._state import require, require_attributes, require_offsets, require_vector
from hilbin.estimators._fit import checked_weights
from hilbin.estimators.intersection.quantiles import (
    comparable,
    extremes,
    quantile_edges,
    quantile_range,
)
from hilbin.solvers.lookup import Levels

OFFER = (
    "; if the values are not counts or frequencies, negative='shift' measures every feature from "
    "its low end"
)
RANGE = 100.0  # length of the range of a feature, in the kernel's unit
MOST_INTEGER = 1023
MOST_BINS = 65535
# a little more than 1, so that rounding does not keep the high end from its level
STRETCH, STRETCH_32 = (float(1 + 4 * np.finfo(dtype).eps) for dtype in (np.float64, np.float32))
STRATEGIES = ("uniform", "sqrt", "quantile")
SCOPES = ("auto", "feature", "all")
VALUES_PER_TASK = 1 << 18


class BadValueError(ValueError):
    """A value that is not finite, or smaller than it may be."""


class BinnedRows:
    """An estimator on rows that a binner takes; it has a parameter ``negative``."""

    negative: str

    def _rows(self, X: Any, *, reset: bool = False, scan: bool = True) -> Matrix:
        """Check rows; without ``scan``, the values are looked at by whoever encodes them."""
        rows = validate_data(self, X, reset=reset, **ACCEPTED)
        if scan:
            rows = self._refuse_bad_values(rows, reset=reset)
        binner: Any = getattr(self, "binner_", self)
        if sp.issparse(rows) and not reset and binner.shifted_:
            return rows.toarray()  # what is not stored is not the least value
        return rows

    def _refuse_bad_values(self, rows: Any, *, reset: bool = False) -> Matrix:
        who = type(self).__name__ if self.negative == "error" else None
        rows, least = check_values_and_least(rows, "X", nonnegative=who, otherwise=OFFER)
        if reset and least < 0 and sp.issparse(rows):
            raise ValueError(
                "X is sparse and has negative values: shifting them would fill it; pass a dense X"
            )
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self.negative == "error"
        return tags


@estimator
class HistogramBinner(BinnedRows, TransformerMixin, BaseEstimator):
    r"""Quantize features to the levels 0 to ``n_bins``, for the intersection kernel.

    With ``a`` the low and ``b`` the high end of a feature's range,

    - ``"uniform"``: :math:`\lfloor V (x - a) / (b - a) \rfloor`,
    - ``"sqrt"``: :math:`\lfloor V \sqrt{(x - a) / (b - a)} \rfloor`, finer for small values,
    - ``"quantile"``: how many of the ``V`` quantiles of the values above ``a`` are at most ``x``;
      every bin gets as many rows,

    clipped to the levels seen in ``fit``. The high end is the given quantile of the values above
    the low end, which is the quantile as far from the other side: zero, in a feature that often is.
    The zeros of a histogram stay zero.

    Parameters
    ----------
    n_bins : int or None, default=100
        ``V``, at most 65535. ``None`` does not round: values are measured in hundredths of the same
        range, :math:`100 (x - a) / (b - a)`, and clipped to its ends like those that are binned,
        which is the limit of many bins of ``"uniform"``, the only strategy it allows.
    strategy : {"uniform", "sqrt", "quantile"}, default="uniform"
        How bins are spaced.
    scope : {"auto", "feature", "all"}, default="auto"
        Whether every feature has its own range, as suits columns of different units, or all have
        one, as suits histograms, whose bins are comparable: a rare bin weighs less than a common
        one. "auto" decides by the rows alone; ``scope_`` says how.
    quantile : float, default=0.975
        Which quantile is the high end of the range; ``1 - quantile`` is the low end.
    keep_integers : bool, default=True
        Make whole numbers the bins, instead of ``n_bins`` even ones, if all features share a range
        of at most 1023 of them: a histogram of counts needs no rounding. The ends of the range
        are the same either way. Has no effect if ``n_bins`` is ``None`` or ``strategy`` is not
        "uniform".
    negative : {"error", "shift"}, default="error"
        What to do with negative values: complain, or measure every feature from the low end of its
        range, as suits data that are no histograms. A sparse ``X`` cannot be shifted.
    n_jobs : int, optional
        Threads; ``None`` is 1, -1 all processors.

    Attributes
    ----------
    low_, high_ : ndarray of shape (n_features,)
        Ends of the ranges.
    last_ : ndarray of shape (n_features,)
        Largest level of each feature, if quantized.
    step_ : float
        Width of a bin in hundredths of the range.
    scope_ : str
        "feature" or "all".
    integers_ : bool
        Whether the bins are whole numbers.
    shifted_ : bool
        Whether zero is not the least value.
    origin_ : ndarray of shape (n_features,)
        Least value of each feature, or of all.
    scale_ : ndarray of shape (n_features,)
        Levels per unit of each feature (of its square root, for ``"sqrt"``).
    edges_, offsets_ : ndarray
        For ``"quantile"``: the least values of the levels from 1 on, feature after feature, and
        where each feature begins.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if ``X`` has some.

    References
    ----------
    J. Wu, *A Fast Dual Method for HIK SVM Learning*, ECCV 2010, section 3.5.

    Examples
    --------
    >>> from hilbin.estimators import HistogramBinner
    >>> X = [[0.0, 0.1], [0.25, 0.3], [0.5, 0.2], [1.0, 0.2]]
    >>> HistogramBinner(n_bins=4, quantile=1.0).fit_transform(X)
    array([[0, 0],
           [1, 4],
           [2, 2],
           [4, 2]], dtype=uint8)
    """

    n_bins: int | None = 100
    _: KW_ONLY
    strategy: str = "uniform"
    scope: str = "auto"
    quantile: float = 0.975
    keep_integers: bool = True
    negative: str = "error"
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the range of every feature.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows of values.
        y : ignored
            For pipelines.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts in the quantiles.

        Returns
        -------
        self : HistogramBinner
        """
        self._check_parameters()
        rows = self._rows(X, reset=True)
        weights = None
        if sample_weight is not None:
            weights = checked_weights(sample_weight, rows)
            if not weights.all():
                rows, weights = rows[weights > 0], weights[weights > 0]
        return self.fit_rows(rows, weights)

    def transform(self, X: Any) -> Any:
        """Quantize every value.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows of values.

        Returns
        -------
        levels : ndarray or CSR array of shape (n_samples, n_features)
            uint8, or uint16 if there are more than 255; floating point if ``n_bins`` is ``None``.
        """
        check_is_fitted(self)
        return self.encode(self._rows(X), n_jobs=self.n_jobs)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the features that came in.

        Parameters
        ----------
        input_features : array-like of str, optional
            The names, if ``fit`` did not see them.

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self)
        return _check_feature_names_in(self, input_features)

    def boundaries(self, feature: int) -> Array:
        """Return the smallest value that gets level ``0, 1, ..., last_[feature]``.

        Parameters
        ----------
        feature : int
            Which feature.

        Returns
        -------
        values : ndarray of shape (last_[feature] + 1,)
        """
        check_is_fitted(self)
        if self.n_bins is None:
            raise ValueError("n_bins=None makes no bins")
        levels = np.arange(int(self.last_[feature]) + 1, dtype=np.float64)
        low = float(self.low_[feature])
        if self.integers_ or self.last_[feature] == 0:
            return low + levels
        if self.strategy == "quantile":
            begin, end = self.offsets_[feature], self.offsets_[feature + 1]
            return np.concatenate(([low], self.edges_[begin:end]))
        scale = self.scale_[feature] * STRETCH
        values = low + (levels**2 if self.strategy == "sqrt" else levels) / scale
        for _ in range(8):  # by the roundings of x - low, to where the level changes
            x = np.maximum((values - low) * scale, 0)
            found = np.floor(np.sqrt(x) if self.strategy == "sqrt" else x)
            step = np.spacing(np.maximum(np.abs(values), abs(low)))
            values = np.where(found < levels, values + step, values)
        return values

    def _check_parameters(self) -> None:
        if self.n_bins is not None:
            require_whole("n_bins, if not None,", self.n_bins, 1, MOST_BINS)
        require_choice("strategy", self.strategy, STRATEGIES)
        require_choice("scope", self.scope, SCOPES)
        require_choice("negative", self.negative, ("error", "shift"))
        require_positive("quantile", self.quantile, most=1)
        if self.n_bins is None and self.strategy != "uniform":
            raise ValueError(
                f"strategy={self.strategy!r} spaces bins, and n_bins=None makes none: give a "
                "number of bins, or strategy='uniform'"
            )

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the arrays of a loaded binner do not fit together."""
        self._check_parameters()
        vectors = dict.fromkeys(("low_", "high_", "origin_", "scale_"), "float64[d]")
        more = {"last_": "int64[d]?", "edges_": "float64[e]?", "n_features_in_": "=d?"}
        flags = {"scope_": "str", "integers_": "bool", "shifted_": "bool", "step_": "float"}
        d = require_attributes(self, **vectors, **flags, **more).get("d")
        if d is None or self.n_bins is None:
            return
        last = require_vector(getattr(self, "last_", None), np.int64, "last_")
        inside = last.min(initial=0) >= 0 and last.max(initial=0) <= MOST_BINS
        require(inside, "last_ is out of range")
        if self.strategy == "quantile" and not self.integers_:
            edges = require_vector(getattr(self, "edges_", None), np.float64, "edges_")
            require_offsets(getattr(self, "offsets_", None), d, edges.size, "offsets_")
            require((np.diff(self.offsets_) <= last).all(), "a feature has too many edges")

    def fit_rows(self, X: Matrix, weights: Array | None = None) -> Self:
        """Find the range of every feature of rows that are checked already.

        Parameters
        ----------
        X : array or CSR array of shape (n_samples, n_features)
            Finite rows, float32 or float64, that are not negative unless they may be.
        weights : array of shape (n_samples,), optional
            Weights above 0.

        Returns
        -------
        self : HistogramBinner
        """
        self._check_parameters()
        d = X.shape[1]
        if weights is not None:  # of size 1, and rounded as they were
            weights = np.ldexp(weights, -int(np.frexp(weights.max())[1]))
        least, greatest = extremes(X)
        self.scope_ = self.scope
        if self.scope == "auto":
            self.scope_ = "all" if comparable(X, least, weights, self.n_jobs) else "feature"
        low, top = least, greatest
        if self.scope_ == "all":
            low, top = least.min(keepdims=True), greatest.max(keepdims=True)
        self.origin_ = np.broadcast_to(low, d).astype(np.float64)
        low, high = quantile_range(X, low, self.quantile, weights, self.n_jobs)
        high = np.where(high > low, high, top)
        if self.strategy == "quantile" and self.n_bins is not None:
            self.edges_, self.offsets_ = quantile_edges(X, low, int(self.n_bins), weights)
        even = self.n_bins is not None and self.strategy == "uniform" and self.scope_ == "all"
        few = float(high.max(initial=0)) - float(low.min(initial=0)) <= MOST_INTEGER
        self.integers_ = even and self.keep_integers and few and _are_whole(X)
        self.low_ = np.broadcast_to(low, d).astype(np.float64)
        self.high_ = np.broadcast_to(high, d).astype(np.float64)
        self.shifted_ = bool((self.origin_ < 0).any())
        self._set_scale(greatest)
        return self

    def _set_scale(self, greatest: Array) -> None:
        """Find the levels per unit of a feature, the width of a level, and the largest levels."""
        span = self.high_ / 2 - self.low_ / 2  # the difference of huge values is not finite
        levels = RANGE if self.n_bins is None else float(self.n_bins)
        power = 2 if self.strategy == "sqrt" else 1
        with np.errstate(divide="ignore", over="ignore"):
            per_unit = np.where(span > 0, 0.5 / span, 0)
            finite = np.isfinite(2 * levels**power * per_unit)
        per_unit[~finite] = 0  # a range of next to nothing is that of a constant
        self.step_, self.scale_ = RANGE / levels, levels**power * per_unit
        if self.n_bins is None:
            return
        if self.integers_:
            self.step_ = RANGE * float(per_unit[0]) if per_unit[0] > 0 else RANGE
            self.scale_ = np.ones(per_unit.size)
        bins = self.high_ - self.low_ if self.integers_ else self.n_bins
        self.last_ = np.where(per_unit > 0, bins, 0).astype(np.int64)
        self.last_ = self.encode(greatest[None, :])[0].astype(np.int64)
        if self.strategy == "quantile":  # of all values: some are beyond those of a feature
            sizes = np.diff(self.offsets_)
            nth = np.arange(self.edges_.size) - np.repeat(self.offsets_[:-1], sizes)
            self.edges_ = self.edges_[nth < np.repeat(self.last_, sizes)]
            self.offsets_ = np.concatenate(([0], np.cumsum(self.last_)))

    def encode(self, X: Matrix, *, check: bool = False, n_jobs: int | None = 1) -> Any:
        """Quantize rows that are checked already; what ``transform`` does.

        Parameters
        ----------
        X : array or CSR array of shape (n_samples, n_features)
            Rows, float32 or float64.
        check : bool, default=False
            Whether a value that is not finite, or must not be negative, raises ``BadValueError``.
        n_jobs : int, default=1
            Threads.

        Returns
        -------
        levels : ndarray or CSR array of shape (n_samples, n_features)
        """
        if X.shape[1] != self.low_.size:
            raise ValueError(
                f"X has {X.shape[1]} columns, but the bins are those of {self.low_.size} columns"
            )
        dtype = X.dtype
        if self.n_bins is None:
            scale = np.minimum(self.scale_, np.finfo(dtype).max / 2)
            return _measured(X, *(a.astype(dtype) for a in (self.low_, self.high_, scale)))
        if self.strategy == "quantile" and not self.integers_:
            run = core.bin_edges
            given: list[Any] = [self.edges_.astype(dtype), self.offsets_]
        else:
            root = self.strategy == "sqrt" and not self.integers_
            scale = self.scale_ * (STRETCH if dtype == np.float64 else STRETCH_32)
            scale = np.minimum(scale, np.finfo(dtype).max)
            run = core.bin_even
            given = [*(a.astype(dtype) for a in (self.low_, scale, self.last_)), root]
        levels = np.uint8 if self.last_.max(initial=0) < 256 else np.uint16
        least = 0.0 if self.negative == "error" else -np.inf
        return _encoded(X, run, given, levels, n_jobs, least if check else None)

    def levels(self, X: Matrix) -> Levels:
        """Quantize rows that are checked already, for the solvers on look-up tables.

        Parameters
        ----------
        X : array or CSR array of shape (n_samples, n_features)
            Rows, float32 or float64.

        Returns
        -------
        levels : hilbin.solvers.lookup.Levels
            The levels, in hundredths of the range; only those that occur if most do not.
        """
        encoded = self.encode(X, n_jobs=self.n_jobs)
        if self.n_bins is None:
            return Levels.from_values(encoded, self.n_jobs)
        offsets = np.concatenate(([0], np.cumsum(self.last_ + 1)))
        values = np.arange(offsets[-1], dtype=np.float64)
        values = (values - np.repeat(offsets[:-1], self.last_ + 1)) * self.step_
        levels = Levels(encoded, offsets, values, self.step_)
        stored = encoded.nnz if sp.issparse(encoded) else encoded.size
        return levels.without_unused() if stored < offsets[-1] else levels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags


def _are_whole(X: Matrix) -> bool:
    values = X.data if sp.issparse(X) else X.ravel(order="K")
    return bool(core.all_whole(values))


def _encoded(
    X: Matrix,
    run: Callable[..., bool],
    given: list[Any],
    dtype: Any,
    n_jobs: int | None,
    least_allowed: float | None,
) -> Any:
    """Return levels of the values of ``X``, as ``run`` of the core makes them of what is ``given``.

    With ``least_allowed``, a value below it or one that is not finite raises ``BadValueError``.
    """
    stored = sp.issparse(X)
    values = X.data if stored else np.ascontiguousarray(X).ravel()
    indices = X.indices.astype(np.int32, copy=False) if stored else np.empty(0, np.int32)
    levels = np.empty(values.size, dtype)
    width = 1 if stored else X.shape[1]
    least = np.nan if least_allowed is None else least_allowed

    def task(begin: int, end: int) -> None:
        if not run(values, indices, *given, levels, begin, end, least):
            raise BadValueError

    per_task = max(1, VALUES_PER_TASK // width) * width
    parallel.run(task, parallel.ranges(values.size, per_task), n_jobs)
    if stored:
        return sp.csr_array((levels, X.indices, X.indptr), shape=X.shape)
    return levels.reshape(X.shape)


def _measured(X: Matrix, low: Array, high: Array, scale: Array) -> Any:
    """Return values between ``low`` and ``high``, from ``low`` on, in units of ``1 / scale``."""
    if sp.issparse(X):
        low, high, scale = (a[X.indices] for a in (low, high, scale))

    def measure(x: Array) -> Array:  # by halves: the difference of huge values is not finite
        return (np.clip(x, low, high) / 2 - low / 2) * (2 * scale)

    return apply(X, measure)
