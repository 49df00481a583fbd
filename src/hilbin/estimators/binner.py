r"""Values to bins: the quantizer of ICD, repaired.

Wu (ECCV 2010, equation 13) maps a value to :math:`\lfloor V (x - a) / (b - a) \rfloor`, with
:math:`a` the least training value and :math:`b` the 97.5th percentile. Here the result is clipped
to :math:`[0, V]`; ``a`` is the 2.5th percentile, which a few outliers do not move, and is zero
where zeros are common; ``b`` is the percentile of the values *above* ``a``, so that it exists where
most values are zero; the range is per feature or common to all; and whole numbers are kept.

One unit of length serves all bins and features: a bin is ``step_`` wide, with ``V * step_ = 100``.
The intersection kernel in this unit is the same, up to rounding, whatever the number of bins is,
and so is what the ``C`` of an SVM means.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import (
    _check_feature_names_in,
    check_is_fitted,
)

from hilbin._arrays import Array, Matrix
from hilbin._core import core
from hilbin._parameters import require_choice, require_positive, require_whole
from hilbin.estimators._encoding import encode, measure
from hilbin.estimators._ranges import extremes, low_quantiles, quantile_edges, quantiles_above
from hilbin.estimators._rows import BinnedRows

RANGE = 100.0  # length of the range of a feature, in the kernel's unit
MOST_INTEGER = 1023
MOST_BINS = 65535
# a little more than 1, so that rounding does not keep the high end from its code
STRETCH, STRETCH_32 = (float(1 + 4 * np.finfo(dtype).eps) for dtype in (np.float64, np.float32))
STRATEGIES = ("uniform", "sqrt", "quantile")


class HistogramBinner(BinnedRows, TransformerMixin, BaseEstimator):
    r"""Quantize features to the codes 0 to ``n_bins``, for the intersection kernel.

    With ``a`` the low and ``b`` the high end of a feature's range,

    - ``"uniform"``: :math:`\lfloor V (x - a) / (b - a) \rfloor`,
    - ``"sqrt"``: :math:`\lfloor V \sqrt{(x - a) / (b - a)} \rfloor`, finer for small values,
    - ``"quantile"``: how many of the ``V`` quantiles of the values above ``a`` are at most ``x``;
      every bin gets as many rows,

    clipped to the codes seen in ``fit``. The high end is the given quantile of the values above the
    low end, which is the quantile as far from the other side: zero, in a feature that often is. The
    zeros of a histogram stay zero.

    Parameters
    ----------
    n_bins : int or None, default=100
        ``V``, at most 65535. ``None`` does not quantize: values are only measured in hundredths of
        the range.
    strategy : {"uniform", "sqrt", "quantile"}, default="uniform"
        How bins are spaced.
    scope : {"feature", "all"}, default="feature"
        Whether every feature has its own range, or all have one, as suits histograms whose bins
        are comparable.
    quantile : float, default=0.975
        Which quantile is the high end of the range; ``1 - quantile`` is the low end.
    keep_integers : bool, default=True
        Leave the values as they are if all are whole numbers from 0 to 1023: a histogram of counts
        needs no quantization. Has no effect if ``n_bins`` is ``None``.
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
        Largest code of each feature, if quantized.
    step_ : float
        Width of a bin in hundredths of the range.
    integers_ : bool
        Whether values were kept because they are whole numbers.
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

    def __init__(
        self,
        n_bins: int | None = 100,
        *,
        strategy: str = "uniform",
        scope: str = "feature",
        quantile: float = 0.975,
        keep_integers: bool = True,
        negative: str = "error",
        n_jobs: int | None = None,
    ):
        self.n_bins = n_bins
        self.strategy = strategy
        self.scope = scope
        self.quantile = quantile
        self.keep_integers = keep_integers
        self.negative = negative
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "HistogramBinner":
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
            weights = self._weights(sample_weight, rows)
            if not (weights > 0).all():
                rows, weights = rows[weights > 0], weights[weights > 0]
            if rows.shape[0] == 0:
                raise ValueError("sample_weight is zero for every row")
        self._fit_rows(rows, weights)
        return self

    def transform(self, X: Any) -> Any:
        """The code of every value.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows of values.

        Returns
        -------
        codes : ndarray or CSR array of shape (n_samples, n_features)
            uint8, or uint16 if there are more than 255; floating point if ``n_bins`` is ``None``.
        """
        check_is_fitted(self)
        return self._encode(self._rows(X), n_jobs=self.n_jobs)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """The names of the features that came in.

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
        """The smallest value that gets code ``0, 1, ..., last_[feature]``.

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
        codes = np.arange(int(self.last_[feature]) + 1, dtype=np.float64)
        low = float(self.low_[feature])
        if self.integers_ or self.last_[feature] == 0:
            return low + codes
        if self.strategy == "quantile":
            begin, end = self._offsets[feature], self._offsets[feature + 1]
            return np.concatenate(([low], self._edges[begin:end]))
        scale = self._scale[feature] * STRETCH
        values = low + (codes**2 if self.strategy == "sqrt" else codes) / scale
        for _ in range(8):  # by the roundings of x - low, to where the code changes
            x = np.maximum((values - low) * scale, 0)
            code = np.floor(np.sqrt(x) if self.strategy == "sqrt" else x)
            step = np.spacing(np.maximum(np.abs(values), abs(low)))
            values = np.where(code < codes, values + step, values)
        return values

    def _check_parameters(self) -> None:
        if self.n_bins is not None:
            require_whole("n_bins, if not None,", self.n_bins, 1, MOST_BINS)
        require_choice("strategy", self.strategy, STRATEGIES)
        require_choice("scope", self.scope, ("feature", "all"))
        require_choice("negative", self.negative, ("error", "shift"))
        require_positive("quantile", self.quantile)
        if self.quantile > 1:
            raise ValueError(f"quantile must be at most 1, got {self.quantile!r}")

    def _fit_rows(self, X: Matrix, weights: Array | None) -> None:
        d = X.shape[1]
        least, greatest = extremes(X)
        self.integers_ = self.n_bins is not None and self.keep_integers and _are_counts(X, greatest)
        if self.scope == "all" or self.integers_:
            low, top = least.min(keepdims=True), greatest.max(keepdims=True)
        else:
            low, top = least, greatest
        self._origin = np.broadcast_to(low, d).astype(np.float64)
        if self.integers_:
            low = np.zeros(1, X.dtype)
        else:
            low = low_quantiles(X, low, round(1 - self.quantile, 12), weights, self.n_jobs)
        high = quantiles_above(X, low, self.quantile, weights, self.n_jobs)
        high = np.where(high > low, high, top)
        if self.strategy == "quantile" and self.n_bins is not None and not self.integers_:
            self._edges, self._offsets = quantile_edges(X, low, int(self.n_bins), weights)
        self.low_ = np.broadcast_to(low, d).astype(np.float64)
        self.high_ = np.broadcast_to(high, d).astype(np.float64)
        self._set_scale(greatest)

    @property
    def _shifted(self) -> bool:
        """Whether zero is not the least value."""
        return bool((self._origin < 0).any())

    def _set_scale(self, greatest: Array) -> None:
        """Codes per unit of a feature, the width of a code, and the largest codes."""
        span = self.high_ / 2 - self.low_ / 2  # the difference of huge values is not finite
        with np.errstate(divide="ignore", over="ignore"):
            per_unit = np.where(span > 0, 0.5 / span, 0)
        per_unit[~np.isfinite(per_unit)] = 0
        if self.n_bins is None:
            self.step_, self._scale = 1.0, RANGE * per_unit
            return
        if self.integers_:
            self.step_ = RANGE * float(per_unit[0]) if per_unit[0] > 0 else RANGE
            self._scale = np.ones(per_unit.size)
        else:
            power = 2 if self.strategy == "sqrt" else 1
            self.step_, self._scale = RANGE / self.n_bins, float(self.n_bins) ** power * per_unit
        bins = MOST_INTEGER if self.integers_ else self.n_bins
        self.last_ = np.where(per_unit > 0, bins, 0).astype(np.int64)
        self.last_ = self._encode(greatest[None, :])[0].astype(np.int64)

    def _encode(self, X: Matrix, *, check: bool = False, n_jobs: int | None = 1) -> Any:
        """Codes of ``X``; ``check`` refuses what is not finite or must not be negative."""
        dtype = X.dtype
        if self.n_bins is None:
            scale = np.minimum(self._scale, np.finfo(dtype).max)
            return measure(X, self._origin.astype(dtype), scale.astype(dtype))
        if self.strategy == "quantile" and not self.integers_:
            run = core.bin_edges
            given: list[Any] = [self._edges.astype(dtype), self._offsets]
        else:
            root = self.strategy == "sqrt" and not self.integers_
            scale = self._scale * (STRETCH if dtype == np.float64 else STRETCH_32)
            scale = np.minimum(scale, np.finfo(dtype).max)
            run = core.bin_even
            given = [*(a.astype(dtype) for a in (self.low_, scale, self.last_)), root]
        codes = np.uint8 if self.last_.max(initial=0) < 256 else np.uint16
        least = 0.0 if self.negative == "error" else -np.inf
        return encode(X, run, given, codes, n_jobs, least if check else None)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags


def _are_counts(X: Matrix, greatest: Array) -> bool:
    values = X.data if sp.issparse(X) else X
    if greatest.max(initial=0) > MOST_INTEGER or (values.size and values.min() < 0):
        return False
    head = values[: 1 << 10]
    return bool((head == np.floor(head)).all() and (values == np.floor(values)).all())
