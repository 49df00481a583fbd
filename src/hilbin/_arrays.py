"""Rows of numbers, dense or CSR.

Rows are checked once, where they come in; everything behind that relies on them. Errors name the
argument, the row, the column and the value.
"""

from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_array
from sklearn.utils import validation as sklearn_validation

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
NEEDS = " needs values >= 0"
# Options of scikit-learn's checks that change nothing about rows of the right type.
PLAIN = {"accept_sparse", "dtype", "ensure_all_finite", "multi_output", "reset", "y_numeric", "y"}


def validate_data(estimator: Any, X: Any = "no_validation", *args: Any, **options: Any) -> Any:
    """Return what scikit-learn's ``validate_data`` does, after a check of sparse arrays.

    SciPy's conversions, which scikit-learn calls, trust the arrays of a sparse matrix.
    """
    ascending = check_sparse(X, "X")
    y = args[0] if args else options.get("y")
    if y is not None and not isinstance(y, str):
        if ascending and _is_checked(X, y, options) and not hasattr(estimator, "feature_names_in_"):
            return _keep_width(estimator, X, options), y
        _check_targets(y, numeric=bool(options.get("y_numeric")))
    return sklearn_validation.validate_data(estimator, X, *args, **options)


def _is_checked(X: Any, y: Any, options: dict[str, Any]) -> bool:
    """Tell whether scikit-learn would return sparse rows and whole numbers as they are.

    Its own way to that takes as long as training on short texts.
    """
    kinds = options.get("dtype") if options.get("accept_sparse") == "csr" else None
    if X.format != "csr" or not PLAIN.issuperset(options) or not isinstance(kinds, tuple):
        return False
    labels = type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biu"
    if not labels or not 0 < y.size == X.shape[0] or not X.shape[1]:
        return False
    return X.dtype in kinds and (X.data.size == 0 or bool(_least_and_finite(X.data)[1]))


def _keep_width(estimator: Any, X: Any, options: dict[str, Any]) -> Any:
    """Return ``X``, after scikit-learn's check of its number of columns."""
    sklearn_validation._check_n_features(estimator, X, reset=options.get("reset", True))
    return X


def _check_targets(y: Any, *, numeric: bool) -> None:
    """Refuse targets that are no numbers, or labels of which none is the smallest."""
    if sp.issparse(y) or not hasattr(y, "__len__"):
        return
    kinds = getattr(getattr(y, "dtype", None), "kind", "O")
    if kinds in "biufc" or (kinds in "US" and not numeric):
        return
    try:
        values = np.asarray(y)
        if numeric and values.dtype.kind in "OUS":
            values.astype(np.float64)
        elif values.dtype.kind == "O" and values.ndim == 1:
            sorted({*values.tolist()})
    except (TypeError, ValueError) as error:
        what = "is not numbers" if numeric else "has labels that cannot be compared"
        raise ValueError(f"y {what}: {error}") from error


def check_sparse(X: Any, name: str) -> bool:
    """Say whether the indices of a sparse ``X`` are ascending; refuse arrays that make no matrix.

    Row pointers and indices of CSR, CSC and BSR are looked at one by one, in compiled code, and so
    are the places of COO. The error names the row. Indices that are not ascending are no error,
    unless ``X`` claims that they are.
    """
    if not sp.issparse(X) or X.ndim != 2:
        return False
    if X.format == "coo":
        lengths = {*map(len, X.coords), len(X.data)}
        if len(lengths) > 1:
            _refuse_sparse(X, name, f"values, rows and columns differ in length: {sorted(lengths)}")
        for axis, (places, size) in enumerate(zip(X.coords, X.shape, strict=True)):
            if places.size and not (places.min() >= 0 and places.max() < size):
                at = int(np.argmax((places < 0) | (places >= size)))
                line = ("row", "column")[axis]
                _refuse_sparse(X, name, f"value {at} is in {line} {places[at]} of {size}")
    if X.format not in ("csr", "csc", "bsr"):
        return False
    number = _line_out_of_order(X, name)
    if number is not None and getattr(X, "_has_canonical_format", False):
        _refuse_sparse(
            X,
            name,
            f"the indices of {_lines(X)} {number} do not ascend, but it claims to be canonical; "
            f"set has_canonical_format and has_sorted_indices of {name} to False",
        )
    return number is None


def _line_out_of_order(X: Any, name: str) -> int | None:
    """Check the arrays of CSR, or alike; return the first row whose indices are not ascending."""
    indices, indptr, data = X.indices, X.indptr, X.data
    blocks = X.blocksize if X.format == "bsr" else (1, 1)
    height, width = (n // b for n, b in zip(X.shape, blocks, strict=True))
    if X.format == "csc":
        height, width = width, height
    vectors = all(isinstance(a, np.ndarray) and a.ndim == 1 for a in (indices, indptr))
    if not vectors or indices.dtype.kind != "i" or indptr.dtype.kind != "i":
        _refuse_sparse(X, name, "indices and indptr must be vectors of whole numbers")
    if indptr.size != height + 1:
        _refuse_sparse(X, name, f"indptr has {indptr.size} numbers for {height} {_lines(X)}s")
    if data.ndim != (3 if X.format == "bsr" else 1) or len(data) != indices.size:
        _refuse_sparse(X, name, f"there are {indices.size} indices for {len(data)} values of rows")
    kind = np.int32 if indices.dtype == indptr.dtype == np.int32 else np.int64
    line, fault = core.check_csr(
        np.ascontiguousarray(indices, kind), np.ascontiguousarray(indptr, kind), width
    )
    if fault == "pointer":
        run = " to ".join(str(n) for n in indptr[line : line + 2])
        told = f"{_lines(X)} {line} is from {run}, and there are {indices.size} indices"
        _refuse_sparse(X, name, f"by indptr, {told}")
    if fault == "index":
        _refuse_sparse(X, name, f"{_lines(X)} {line} has an index that is not in [0, {width})")
    return line if fault == "order" else None


def _lines(X: Any) -> str:
    return "column" if X.format == "csc" else "row"


def _refuse_sparse(X: Any, name: str, what: str) -> NoReturn:
    raise ValueError(f"{name} is a broken {X.format.upper()} matrix: {what}")


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
    ascending = check_sparse(X, name)
    rows: Any = X if _is_accepted(X) else check_array(X, input_name=name, **ACCEPTED)
    ascending = ascending if rows is X else check_sparse(rows, name)
    return _checked_values(rows, name, ascending, nonnegative, otherwise)


def check_values_and_least(
    rows: Matrix, name: str, *, nonnegative: str | None = None, otherwise: str = ""
) -> tuple[Matrix, float]:
    """Return the same of rows that :func:`validate_data` has let through."""
    return _checked_values(rows, name, check_sparse(rows, name), nonnegative, otherwise)


def _checked_values(
    rows: Matrix, name: str, ascending: bool, nonnegative: str | None, otherwise: str
) -> tuple[Matrix, float]:
    if sp.issparse(rows):
        rows = _canonical(rows, ascending)
    elif not (rows.flags.aligned and rows.dtype.isnative):
        rows = np.array(rows, dtype=rows.dtype.newbyteorder("="))
    values = rows.data if sp.issparse(rows) else rows
    low, finite = _least_and_finite(values) if values.size else (np.inf, True)
    if not finite:
        _refuse(rows, ~np.isfinite(values), name, "is not finite: NaN and inf are refused")
    if nonnegative is not None and low < 0:
        _refuse_negative(rows, values, name, nonnegative + NEEDS + otherwise)
    return rows, low


def _is_accepted(X: Any) -> bool:
    """Tell whether scikit-learn would return dense rows as they are; its own checks take longer."""
    return type(X) is np.ndarray and X.ndim == 2 and X.size > 0 and X.dtype in ACCEPTED["dtype"]


def require_nonnegative(X: Matrix, name: str, who: str, columns: Array) -> None:
    """Raise if rows that are otherwise checked have negative values; ``columns`` are their numbers.

    ``who`` asks for it.
    """
    values = X.data if sp.issparse(X) else X
    if values.size and _least_and_finite(values)[0] < 0:
        _refuse_negative(X, values, name, who + NEEDS, columns)


def _refuse_negative(
    X: Matrix, values: Array, name: str, needs: str, columns: Array | None = None
) -> None:
    complaint = f"is negative, but {needs}"
    _refuse(X, values < 0, f"Negative values in data: {name}", complaint, columns)


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
        x, y = sp.csr_array(x), sp.csr_array(y)
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


def _canonical(X: Matrix, ascending: bool) -> Matrix:
    """Sort the columns of every row and add up duplicates, in a copy if something changes."""
    count = int(X.indptr[-1])
    alike = X.indices.dtype == X.indptr.dtype and X.data.size == X.indices.size == count
    if ascending and alike:
        return X
    arrays = (X.data[:count].copy(), X.indices[:count].copy(), X.indptr.copy())
    X = type(X)(arrays, shape=X.shape)
    X.sum_duplicates()
    return X


def _refuse(X: Matrix, bad: Array, name: str, complaint: str, columns: Array | None = None) -> None:
    """Raise an error that names the row, the column and the value of the first bad one."""
    first = int(np.argmax(bad))
    if sp.issparse(X):
        row = int(np.searchsorted(X.indptr, first, side="right")) - 1
        column, value = int(X.indices[first]), X.data[first]
    else:
        row, column = divmod(first, X.shape[1])
        value = X[row, column]
    column = column if columns is None else int(columns[column])
    raise ValueError(f"{name}[{row}, {column}] = {value} {complaint}")
