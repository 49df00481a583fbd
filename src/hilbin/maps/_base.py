"""What every map shares: checked rows, tags, and the statement of its error."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_feature_names_in, validate_data

from hilbin._arrays import Array, Matrix, check_rows_and_least
from hilbin.kernels import Kernel

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
    """The error of a square matrix; ``mass`` weighs its rows and columns in the expectation."""
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


class KernelMap(TransformerMixin, BaseEstimator):
    """A transformer whose inner products approximate a kernel's.

    A subclass has a parameter ``kernel``, checks rows by ``_rows`` and sets ``error_`` in ``fit``.
    """

    kernel: Kernel

    def _rows(self, X: object, *, reset: bool = False) -> Matrix:
        """``X`` as float32 or float64 rows that the kernel accepts; ``reset`` in ``fit``."""
        return self._rows_and_least(X, reset=reset)[0]

    def _rows_and_least(self, X: object, *, reset: bool = False) -> tuple[Matrix, float]:
        """The rows, and the smallest of their stored values."""
        kernel = self._checked_kernel()
        rows = validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=(np.float64, np.float32),
            ensure_all_finite=False,
        )
        return check_rows_and_least(rows, "X", nonnegative=kernel._demand())

    def _checked_kernel(self) -> Kernel:
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"kernel must be a kernel of hilbin.kernels, got {self.kernel!r}")
        return self.kernel

    def _check_domain(self) -> None:
        """For maps of single values, which have a parameter ``domain``."""
        domain = self.get_params(deep=False)["domain"]
        if domain is None:
            return
        ends = np.asarray(domain)
        least = 0 if self.kernel.nonnegative else -np.inf
        numbers = ends.shape == (2,) and ends.dtype.kind in "fiu"
        if not (numbers and least < ends[0] <= ends[1] < np.inf):
            raise ValueError(f"domain must be (low, high) with 0 < low <= high, got {domain!r}")

    def _names_per_value(self, input_features: object, width: int) -> Array:
        """``<name>_0, <name>_1, ...``, ``width`` of them for every feature that came in."""
        names = _check_feature_names_in(self, input_features)
        return np.array([f"{name}_{j}" for name in names for j in range(width)], object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self.kernel.nonnegative
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def sample_rows(X: Matrix, random_state: Any, size: int = ERROR_ROWS) -> Matrix:
    """At most ``size`` rows of ``X``, for measuring an error; in float64."""
    if X.shape[0] > size:
        chosen = check_random_state(random_state).choice(X.shape[0], size, replace=False)
        X = X[np.sort(chosen)]
    return X.astype(np.float64)


def to_dense(Z: Any) -> Array:
    """``Z`` as an array."""
    return Z.toarray() if sp.issparse(Z) else np.asarray(Z)


def require_count(name: str, value: object) -> int:
    """``value`` as an int >= 1, or an error that names the parameter."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{name} must be a whole number >= 1, got {value!r}")
    return int(value)
