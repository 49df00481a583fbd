"""Rows of numbers, dense or CSR.

Rows are checked once, where they come in; everything behind that relies on them. Errors name the
argument, the row, the column and the value.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_array

from hilbin._core import core

Array: TypeAlias = npt.NDArray[Any]
Matrix: TypeAlias = Any  # a dense 2-D array or a CSR matrix of float32 or float64
Function: TypeAlias = Callable[[Array], Array]
# For scikit-learn's checks of rows; values are checked here, with a message that names the place.
ACCEPTED: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": (np.float64, np.float32),
    "ensure_all_finite": False,
}


def check_rows(X: object, name: str, *, nonnegative: str | None = None) -> Matrix:
    """Return ``X`` as float32 or float64 rows, dense in any memory order or canonical CSR.

    NaN, infinities and, where ``nonnegative`` names who asks for it, negative values raise an
    error that names the argument and the first offending row and column.
    """
    return check_rows_and_least(X, name, nonnegative=nonnegative)[0]


def check_rows_and_least(
    X: object, name: str, *, nonnegative: str | None = None, otherwise: str = ""
) -> tuple[Matrix, float]:
    """Return the rows of :func:`check_rows` and the smallest stored value, infinity for none.

    ``otherwise`` ends the message about a negative value: it says what the caller can do.
    """
    rows = check_array(X, input_name=name, **ACCEPTED)
    if sp.issparse(rows):
        rows = _canonical(rows, name)
    elif not (rows.flags.aligned and rows.dtype.isnative):
        rows = np.array(rows, dtype=rows.dtype.newbyteorder("="))
    values = rows.data if sp.issparse(rows) else rows
    low, finite = _least_and_finite(values) if values.size else (np.inf, True)
    if not finite:
        _refuse(rows, ~np.isfinite(values), name, "is not finite: NaN and inf are refused")
    if nonnegative is not None and low < 0:
        needs = f"is negative, but {nonnegative} needs values >= 0{otherwise}"
        _refuse(rows, values < 0, f"Negative values in data: {name}", needs)
    return rows, low


def check_pair(
    X: object, Y: object | None, *, nonnegative: str | None = None
) -> tuple[Matrix, Matrix | None]:
    """Return ``X`` and ``Y`` as rows of one dtype and storage; None for a ``Y`` that is ``X``."""
    x = check_rows(X, "X", nonnegative=nonnegative)
    if Y is None or Y is X:
        return x, None
    y = check_rows(Y, "Y", nonnegative=nonnegative)
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"X has {x.shape[1]} columns, but Y has {y.shape[1]}")
    if x.dtype != y.dtype:
        x, y = x.astype(np.float64), y.astype(np.float64)
    if sp.issparse(x) != sp.issparse(y):
        x, y = _canonical(sp.csr_array(x), "X"), _canonical(sp.csr_array(y), "Y")
    return x, y


def to_dense(X: Any) -> Array:
    """Return a dense or sparse matrix as an array."""
    return X.toarray() if sp.issparse(X) else np.asarray(X)


def apply(X: Matrix, function: Function) -> Matrix:
    """Apply ``function`` to every value, or every stored value of CSR, and keep the dtype."""
    if not sp.issparse(X):
        return np.asarray(function(X), dtype=X.dtype)
    data = np.asarray(function(X.data), dtype=X.dtype)
    return type(X)((data, X.indices, X.indptr), shape=X.shape)


def row_sums(X: Matrix, function: Function) -> Array:
    """Return ``sum_d function(x_d)`` of every row, in float64."""
    if not sp.issparse(X):
        sums: Array = function(X).sum(axis=1, dtype=np.float64)
        return sums
    zero = float(function(np.zeros(1, X.dtype))[0])
    stored = sp.csr_array(
        (function(X.data).astype(np.float64) - zero, X.indices, X.indptr), X.shape
    )
    return np.asarray(stored.sum(axis=1)).ravel() + zero * X.shape[1]


def _least_and_finite(values: Array) -> tuple[float, bool]:
    if values.flags.forc:
        least, finite = core.least_and_finite(values.ravel(order="K"))
        return least, finite
    low, high = values.min(), values.max()  # NaN propagates
    return low, bool(np.isfinite(low) and np.isfinite(high))


def _canonical(X: Matrix, name: str) -> Matrix:
    """Sort the columns of every row and add up duplicates, in a copy if something changes."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if X.nnz and not (X.indices.min() >= 0 and X.indices.max() < X.shape[1]):
        raise ValueError(f"{name} is a broken CSR matrix: a column index is out of range")
    return X


def _refuse(X: Matrix, bad: Array, name: str, complaint: str) -> None:
    """Raise an error that names the row, the column and the value of the first bad one."""
    first = int(np.argmax(bad))
    if sp.issparse(X):
        row = int(np.searchsorted(X.indptr, first, side="right")) - 1
        column, value = int(X.indices[first]), X.data[first]
    else:
        row, column = divmod(first, X.shape[1])
        value = X[row, column]
    raise ValueError(f"{name}[{row}, {column}] = {value} {complaint}")
