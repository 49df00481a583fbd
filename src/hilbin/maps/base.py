"""What every map shares: parameters, checked rows, and the statement of its error."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from hilbin._arrays import ACCEPTED, Array, Matrix, check_rows_and_least, validate_data
from hilbin._parameters import estimator
from hilbin._state import require_attributes
from hilbin.kernels import AdditiveKernel, Kernel, OnColumns
from hilbin.maps.density import Density

ERROR_ROWS = 500
PAIR_VALUES, SINGLE_VALUES = 300, 6000  # of the domain, on which errors are measured

Approximation: TypeAlias = Callable[[Array, bool], Array]


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
        Largest ``|e|``: for single values over all of the map's domain, also between the values of
        the data; for rows over the rows that ``error_`` names.
    worst_relative : float
        Largest ``|e| / sqrt(k(x, x) k(y, y))``, over the same pairs.
    worst_on_data : float
        Largest ``|e|`` over pairs of the data the map was fitted to, of which single values are
        taken from each of 300 bins.
    worst_relative_on_data : float
        Largest ``|e| / sqrt(k(x, x) k(y, y))`` over pairs of that data.
    kind : {"guaranteed", "measured"}
        Whether ``worst`` and ``worst_relative`` are proven, up to rounding, or measured, for single
        values on a grid of the domain. The other figures are always measured.
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
    worst_on_data: float
    worst_relative_on_data: float
    kind: Literal["guaranteed", "measured"]
    per: Literal["value", "row"]


def root_mean_square(M: Array, mass: Array) -> float:
    """Return the root of the mean square of a matrix, ``mass`` the weights of rows and columns."""
    unit = float(np.abs(M).max()) or 1.0  # squares of huge values are not finite
    return float(unit * np.sqrt(mass @ np.square(M / unit) @ mass))


def measured(
    K: Array, approximation: Array, mass: Array | None = None, *, per: Literal["value", "row"]
) -> MapError:
    """Measure the error of a square matrix; ``mass`` weighs its rows and columns on average."""
    E = np.abs(K - approximation)
    w = np.full(len(K), 1 / len(K)) if mass is None else mass
    expected, size = root_mean_square(E, w), root_mean_square(K, w)
    norms = np.sqrt(np.maximum(np.diag(K), 0))
    limit = np.outer(norms, norms)
    relative = np.divide(E, limit, out=np.zeros_like(E), where=limit > 0)
    worst = (float(E.max()), float(relative.max()))
    return MapError(expected, expected / size if size > 0 else 0.0, *worst, *worst, "measured", per)


def over_domain(error: MapError, values: Density, approximation: Approximation) -> MapError:
    """Return the error on data with the worst figures those over all of the domain.

    ``approximation(x, pairs)`` is the matrix of what the map gives for all pairs of ``x``, or its
    diagonal alone, which is where the error of a projection is largest.
    """
    pairs, single = values.grid(PAIR_VALUES), values.grid(SINGLE_VALUES)
    K = float(values.kernel.profile(np.zeros(1))[0]) * single.weight**2
    E = np.abs(K - approximation(single.x, False))
    relative = np.divide(E, K, out=np.zeros_like(E), where=K > 0)
    both = measured(pairs.kernel_matrix(), approximation(pairs.x, True), per="value")
    return replace(
        error,
        worst=max(error.worst, both.worst, float(E.max())),
        worst_relative=max(error.worst_relative, both.worst_relative, float(relative.max())),
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

    def _with_names(self, kernel: Any) -> Any:
        """Return the kernel with numbers for the names of columns in ``fit``."""
        return kernel._with_names(getattr(self, "feature_names_in_", None))

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
    kernel : AdditiveKernel, or OnColumns of one
        The kernel. On some columns, the others have no features.
    domain : (low, high), optional
        Smallest and largest value to serve; by default those that count in the data.

    Attributes
    ----------
    domain_ : (float, float)
        The smallest and the largest value that the map serves.
    """

    kernel: AdditiveKernel | OnColumns
    _: KW_ONLY
    domain: tuple[float, float] | None = None

    @property
    def _additive(self) -> AdditiveKernel:
        """The kernel of single values, whatever the columns."""
        inner: Any = self.kernel.kernel if isinstance(self.kernel, OnColumns) else self.kernel
        return inner

    @property
    def _columns(self) -> Array:
        """The numbers of the columns that have features."""
        if not isinstance(self.kernel, OnColumns):
            return np.arange(self.n_features_in_)
        return self._with_names(self.kernel).numbers(self.n_features_in_)

    @property
    def input_columns_(self) -> Array:
        """The number of the column that each feature is made from."""
        check_is_fitted(self)
        return np.repeat(self._columns, self._features_per_value)

    def _rows_and_least(self, X: object, *, reset: bool = False) -> tuple[Matrix, float]:
        rows, least = super()._rows_and_least(X, reset=reset)
        if isinstance(self.kernel, OnColumns):
            rows = self._with_names(self.kernel)._taken(rows)
        return rows, least

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
        return np.array([f"{name}_{j}" for name in names[self._columns] for j in each], object)

    def _check_domain(self) -> None:
        if self.domain is None:
            return
        ends = np.asarray(self.domain)
        least = 0 if self._additive.nonnegative else -np.inf
        numbers = ends.shape == (2,) and ends.dtype.kind in "fiu"
        if not (numbers and least < ends[0] <= ends[1] < np.inf):
            raise ValueError(
                f"domain must be (low, high) with 0 < low <= high, got {self.domain!r}"
            )
