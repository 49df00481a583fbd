"""Histograms made comparable: binarized, damped, weighted by rarity, scaled.

Images have different numbers of words, a word that repeats says less every time, and a word that
every image has says nothing. The remedies, each a step that can be left out (Lampert, *Kernel
Methods in Computer Vision*, section 3.3.5 and its footnote): presence instead of counts, powers
``x^p`` (``p = 1/2`` is the square root), the weights of text retrieval (tf-idf), and division by
the norm.
"""

from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from hilbin._arrays import Array, apply, check_rows, validate_data
from hilbin._parameters import estimator, require_positive
from hilbin._state import require_attributes


@estimator
class HistogramNormalizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Normalize rows of non-negative values.

    The steps, in this order:

    1. ``binarize``: 1 where a value is above the threshold, else 0;
    2. ``power``: :math:`x^p`;
    3. ``tfidf``: every column times :math:`\\ln\\frac{1 + n}{1 + n_j} + 1`, where :math:`n_j` of
       the :math:`n` rows of ``fit`` have something in column :math:`j` (scikit-learn's smooth
       idf);
    4. ``norm``: every row divided by its norm. A row of zeros stays zero.

    Scaling rows before the power would change nothing, since they are scaled after it:
    ``power=0.5, norm="l2"`` is the square root of rows that sum to 1.

    Parameters
    ----------
    norm : {"l1", "l2"} or None, default="l1"
        ``"l1"`` makes rows sum to 1, ``"l2"`` their squares.
    power : float > 0, default=1
        Exponent.
    tfidf : bool, default=False
        Whether rare columns weigh more.
    binarize : float >= 0, optional
        Threshold.

    Attributes
    ----------
    idf_ : ndarray of shape (n_features,)
        Weights of the columns; only with ``tfidf``.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if ``X`` has some.

    Examples
    --------
    >>> from hilbin.images import HistogramNormalizer
    >>> HistogramNormalizer(power=0.5, norm="l2").fit_transform([[9, 16], [0, 0]])
    array([[0.6, 0.8],
           [0. , 0. ]])
    """

    norm: str | None = "l1"
    _: KW_ONLY
    power: float = 1.0
    tfidf: bool = False
    binarize: float | None = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameters, and learn the weights of the columns if ``tfidf`` is wanted.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows of values >= 0.
        y : ignored

        Returns
        -------
        self : HistogramNormalizer
        """
        self._check_parameters()
        rows = self._rows(X, reset=True)
        if self.tfidf:
            present = apply(rows, lambda x: x > (self.binarize or 0))
            frequency = np.asarray(present.sum(axis=0), np.float64).ravel()
            self.idf_ = np.log((1 + rows.shape[0]) / (1 + frequency)) + 1
        return self

    def transform(self, X: Any) -> Any:
        """Return the normalized rows.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows of values >= 0.

        Returns
        -------
        rows : ndarray or CSR of shape (n_samples, n_features)
            float32 if ``X`` is, else float64.
        """
        check_is_fitted(self)
        rows = self._rows(X)
        if self.binarize is not None:
            rows = apply(rows, lambda x: x > self.binarize)
        if self.norm is not None:
            rows = _near_one(rows)
        if self.power != 1:
            rows = apply(rows, lambda x: np.power(x, self.power))
        if self.tfidf:
            rows = _by_columns(rows, self.idf_)
        if self.norm is not None:
            rows = _by_rows(rows, np.divide, _norms(rows, self.norm))
        if sp.issparse(rows):
            rows.eliminate_zeros()
        return rows

    def _check_state(self) -> None:
        """Raise ``ValueError`` if loaded weights are not those of the columns."""
        self._check_parameters()
        idf = "float[d]" if self.tfidf else "float[d]?"
        if "n_features_in_" in vars(self):
            require_attributes(self, n_features_in_="=d", idf_=idf)

    def _rows(self, X: Any, *, reset: bool = False) -> Any:
        rows = validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=(np.float64, np.float32),
            ensure_all_finite=False,
        )
        rows = check_rows(rows, "X", nonnegative=type(self).__name__)
        return rows.copy()  # every step may work in place

    def _check_parameters(self) -> None:
        if self.norm not in ("l1", "l2", None):
            raise ValueError(f"norm must be 'l1', 'l2' or None, got {self.norm!r}")
        require_positive("power", self.power)
        if self.binarize is not None:
            require_positive("binarize", self.binarize, or_zero=True)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _near_one(X: Any) -> Any:
    """Multiply rows by powers of two, which is exact, so that no power or square overflows."""
    largest = X.max(axis=1)
    largest = largest.toarray() if sp.issparse(largest) else largest
    return _by_rows(X, np.ldexp, -np.frexp(np.ravel(largest))[1])


def _norms(X: Any, norm: str) -> Array:
    values = apply(X, np.square) if norm == "l2" else X
    sums = np.asarray(values.sum(axis=1, dtype=np.float64)).ravel()
    norms = np.sqrt(sums) if norm == "l2" else sums
    norms[norms == 0] = 1
    return norms.astype(X.dtype)


def _by_rows(X: Any, function: Any, numbers: Array) -> Any:
    """Return ``function(values, number)`` of the values of every row."""
    if not sp.issparse(X):
        return function(X, numbers[:, None])
    data = function(X.data, np.repeat(numbers, np.diff(X.indptr)))
    return type(X)((data, X.indices, X.indptr), shape=X.shape)


def _by_columns(X: Any, factors: Array) -> Any:
    factors = factors.astype(X.dtype)
    if not sp.issparse(X):
        return X * factors
    return type(X)((X.data * factors[X.indices], X.indices, X.indptr), shape=X.shape)
