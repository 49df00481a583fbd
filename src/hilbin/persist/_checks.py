"""Loaded objects whose arrays compiled code reads by are checked to fit together.

The core trusts the tables of a model, and LIBSVM its support vectors: a forged file with a place
beyond the end of a table would have them read memory that is not the model's. A checksum does not
help, as a forger can compute it.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.svm import SVC, SVR, NuSVC, NuSVR

from hilbin.estimators import HistogramBinner
from hilbin.estimators._intersection import IntersectionModel
from hilbin.estimators._shapes import ShapeTables
from hilbin.persist._container import Array


def check(value: Any) -> None:
    """Raise ``ValueError`` if the parts of a loaded object do not fit together."""
    if isinstance(value, HistogramBinner) and hasattr(value, "low_"):
        _check_binner(value)
    elif isinstance(value, ShapeTables):
        _check_tables(value)
    elif isinstance(value, IntersectionModel) and hasattr(value, "_tables"):
        d = value._tables.offsets.size - 1
        _require(value.binner_ is value._tables.binner, "a model has two binners")
        _require(value.n_features_in_ == d, "a model has not as many tables as features")
    elif isinstance(value, SVC | NuSVC | SVR | NuSVR) and hasattr(value, "support_"):
        _check_svm(value)


def _check_binner(binner: HistogramBinner) -> None:
    d = _vector(binner.low_, np.float64, "low_").size
    for name in ("_origin", "_scale", "high_"):
        _require(_vector(getattr(binner, name), np.float64, name).size == d, f"{name} is not {d}")
    if binner.n_bins is None:
        return
    last = _vector(binner.last_, np.int64, "last_")
    _require(last.size == d and last.min(initial=0) >= 0, "last_ is out of range")
    _require(last.max(initial=0) <= 65535, "last_ is out of range")
    if hasattr(binner, "_edges"):
        edges = _vector(binner._edges, np.float64, "_edges")
        _check_offsets(binner._offsets, edges.size, d)
        _require(bool((np.diff(binner._offsets) <= last).all()), "a feature has too many edges")


def _check_tables(tables: ShapeTables) -> None:
    _require(isinstance(tables.binner, HistogramBinner), "tables have no binner")
    table, d = tables.table, tables.binner.low_.size
    flat = isinstance(table, np.ndarray) and table.dtype.kind == "f" and table.ndim == 2
    _require(flat and table.flags.c_contiguous, "a table has the wrong form")
    _check_offsets(tables.offsets, table.shape[0], d)
    sizes = np.diff(tables.offsets)
    _require(bool((sizes >= 1).all()), "a feature has no table")
    if tables.levels is not None:
        levels = _vector(tables.levels, np.float64, "levels")
        _require(levels.size == table.shape[0], "levels are not as many as the rows of the table")
    else:
        _require(tables.binner.n_bins is not None, "a table without levels needs bins")
        _require(bool((tables.binner.last_ < sizes).all()), "a code is beyond its table")


def _check_svm(model: Any) -> None:
    support = _vector(model.support_, np.int32, "support_")
    counts = _vector(model._n_support, np.int32, "_n_support")
    n, (n_fit, n_columns) = support.size, model.shape_fit_
    classifies = isinstance(model, SVC | NuSVC)
    k = counts.size if classifies else 2
    dual = model._dual_coef_
    stored = dual.data.size if sp.issparse(dual) else dual.size
    _require(dual.shape == (k - 1, n) and stored == (k - 1) * n, "_dual_coef_ has the wrong form")
    whole = counts.min(initial=0) >= 0 and counts.sum() == n
    _require(not classifies or (k >= 2 and whole), "_n_support is out of range")
    pairs = k * (k - 1) // 2
    _require(_vector(model._intercept_, np.float64, "_intercept_").size == pairs, "_intercept_")
    for name in ("_probA", "_probB"):
        _require(_vector(getattr(model, name), np.float64, name).size in (0, pairs), name)
    by_rows = not isinstance(model.kernel, str) or model.kernel == "precomputed"
    if by_rows:
        rows = getattr(model, "_BaseLibSVM__Xfit", None)
        _require(support.min(initial=0) >= 0 and support.max(initial=-1) < n_fit, "support_")
        _require(rows is None or rows.shape[0] == n_fit, "a model has lost rows of its kernel")
    else:
        _require(model.support_vectors_.shape == (n, n_columns), "support_vectors_")
        _require(model.n_features_in_ == n_columns, "n_features_in_ is not that of the fit")


def _check_offsets(offsets: Any, end: int, count: int) -> None:
    _vector(offsets, np.int64, "offsets")
    _require(offsets.size == count + 1 and offsets[0] == 0, "offsets have the wrong form")
    _require(bool((np.diff(offsets) >= 0).all()) and offsets[-1] == end, "offsets are out of range")


def _vector(array: Any, dtype: Any, name: str) -> Array:
    fits = isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype == dtype
    _require(fits, f"{name} has the wrong form")
    return array


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message if " " in message else f"{message} is out of range")
