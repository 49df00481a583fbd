"""What every map shares: parameters, checked rows, and the statement of its error."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from hilbin._arrays import ACCEPTED, Array, Matrix, check_rows_and_least, validate_data
from hilbin._parameters import estimator
from hilbin._state import require_attributes
from hilbin.kernels import AdditiveKernel, Kernel

ERROR_ROWS = 500


@dataclass(frozen=True)
class MapError:
    """How far a map's inner products are from its kernel, ``e(x, y) = k(x, y) - <f(x), f(y)>``.

    Parameters
    ----------
    expected : float
        Root mean square of ``e`` over independent pairs of the data the map was fitted to.
    expected_relative : float
        The same over the root mean square of ``k``.
    worst : float
        Largest ``|e|``.
    worst_relative : float
        Largest ``|e| / sqrt(k(x, x) k(y, y))``.
    kind : {"guaranteed", "measured"}
        Whether the two worst figures hold for all values in the map's domain, up to rounding, or
        were measured on the data. The expected ones are always measured.
    per : {"value", "row"}
        What ``x`` and ``y`` are: single values of an additive kernel, whose errors add up over the
        bins that are non-zero in both rows, or whole rows.

    Examples
    --------
    >>> from hilbin.kernels import Hellinger
    >>> from hilbin.maps import AdditiveMap
    >>> AdditiveMap(Hellinger()).fit([[1.0, 4.0]]).error_.worst
    0.0
    """

    expected: float
    expected_relative: float
    worst: float
    worst_relative: float
    kind: Literal["guaranteed", "measured"]
    per: Literal["value", "row"]


def measured(
    K: Array, approximation: Array, mass: Array | None = None, *, per: Literal["value", "row"]
) -> MapError:
    """Measure the error of a square matrix; ``mass`` weighs its rows and columns on average."""
    E = np.abs(K - approximation)
    w = np.full(len(K), 1 / len(K)) if mass is None else mass
    unit = float(np.abs(K).max()) or 1.0  # squares of huge values are not finite
    expected, size = (unit * np.sqrt(w @ np.square(M / unit) @ w) for M in (E, K))
    norms = np.sqrt(np.maximum(np.diag(K), 0))
    limit = np.outer(norms, norms)
    relative = np.divide(E, limit, out=np.zeros_like(E), where=limit > 0)
    return MapError(
        float(expected),
        float(expected / size) if size > 0 else 0.0,
        float(E.max()),
        float(relative.max()),
        "measured",
        per,
    )


def sample_rows(X: Matrix, random_state: Any, size: int = ERROR_ROWS) -> Matrix:
    """Return at most ``size`` random rows of ``X`` in float64, to measure an error on."""
    if X.shape[0] > size:
        chosen = check_random_state(random_state).choice(X.shape[0], size, replace=False)
        X = X[np.sort(chosen)]
    return X.astype(np.float64)


@estimator
class KernelMap(TransformerMixin, BaseEstimator):
    """A transformer whose inner products approximate a kernel's.

    A subclass learns from checked rows in ``_fit``, where it sets ``error_``, and computes the
    features of checked rows in ``_features``.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    n_jobs : int, optional
        Threads, as in joblib.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns of the data of ``fit``.
    feature_names_in_ : ndarray of str
        Their names, if they are strings.
    """

    kernel: Kernel
    _: KW_ONLY
    n_jobs: int | None = None

    def fit(self, X: object, y: object = None) -> Self:
        """Fit the map to the rows of ``X``.

        Parameters
        ----------
        X : array-like or CSR of shape (n, d)
            Rows.
        y : None
            Ignored.

        Returns
        -------
        self : KernelMap
            The fitted map.
        """
        self._check_parameters()
        self._fit(self._rows_and_least(X, reset=True)[0])
        return self

    def transform(self, X: object) -> Any:
        """Return the features of ``X``.

        Parameters
        ----------
        X : array-like or CSR of shape (n, d)
            Rows.

        Returns
        -------
        Z : ndarray or CSR of shape (n, number of features)
            The features, in float32 if ``X`` is float32, else in float64.
        """
        check_is_fitted(self)
        return self._features(self._rows_and_least(X)[0])

    def _fit(self, rows: Matrix) -> None:
        raise NotImplementedError

    def _features(self, rows: Matrix) -> Any:
        raise NotImplementedError

    def _check_state(self) -> None:
        """Raise ``ValueError`` if a loaded map does not say what it was fitted to."""
        self._check_parameters()
        require_attributes(
            self, error_=MapError, n_features_in_="=d", feature_names_in_="labels[d]?"
        )

    def _check_parameters(self) -> None:
        """Raise if a parameter is not what it should be."""
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"kernel must be a kernel of hilbin.kernels, got {self.kernel!r}")

    def _rows_and_least(self, X: object, *, reset: bool = False) -> tuple[Matrix, float]:
        """Return ``X`` as rows that the kernel accepts, and the smallest of their stored values."""
        rows = validate_data(self, X, reset=reset, **ACCEPTED)
        return check_rows_and_least(rows, "X", nonnegative=self.kernel._demand())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self.kernel.nonnegative
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@estimator
class ValueMap(KernelMap):
    """A map of an additive kernel, which gives every single value features of its own.

    Parameters
    ----------
    kernel : AdditiveKernel
        The kernel.
    domain : (low, high), optional
        Smallest and largest value to serve; by default those that count in the data.

    Attributes
    ----------
    domain_ : (float, float)
        The smallest and the largest value that the map serves.
    """

    kernel: AdditiveKernel
    _: KW_ONLY
    domain: tuple[float, float] | None = None

    @property
    def _features_per_value(self) -> int:
        raise NotImplementedError

    def get_feature_names_out(self, input_features: object = None) -> Array:
        """Return the names ``<name>_0, <name>_1, ...`` for every feature that came in.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns; by default those of ``fit``.

        Returns
        -------
        names : ndarray of str
            Names of the features.
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        each = range(self._features_per_value)
        return np.array([f"{name}_{j}" for name in names for j in each], object)

    def _check_domain(self) -> None:
        if self.domain is None:
            return
        ends = np.asarray(self.domain)
        least = 0 if self.kernel.nonnegative else -np.inf
        numbers = ends.shape == (2,) and ends.dtype.kind in "fiu"
        if not (numbers and least < ends[0] <= ends[1] < np.inf):
            raise ValueError(
                f"domain must be (low, high) with 0 < low <= high, got {self.domain!r}"
            )
