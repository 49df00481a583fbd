"""Rows to features: groups of columns, each with a transformer of its own.

A transformer is a tuple ``(name, columns, map)``. Its ``columns`` are None for all of them, and its
``map`` is None for the columns as they are. Fitted models keep a list of such tuples, whose
features stand side by side.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import has_fit_parameter

from hilbin._arrays import Array, Matrix, to_dense
from hilbin.stats import DistinctSample

Transformer = tuple[str, Array | None, Any]
Projections = Sequence[Array | None]  # the principal components of every group, if it has some

TALL = 8192  # rows at a time, if features are few


def checked_groups(groups: Any, names: Array | None, width: int) -> list[Transformer]:
    """Return transformers, not fitted yet, of the parameter ``column_groups``."""
    found: list[Transformer] = []
    for group in groups:
        if not (isinstance(group, tuple) and len(group) == 3 and isinstance(group[0], str)):
            raise ValueError(f"column_groups must be tuples (name, columns, map), got {group!r}")
        if group[0] in [name for name, _, _ in found]:
            raise ValueError(f"column_groups has two of the name {group[0]!r}")
        found.append((group[0], _columns(group[0], group[1], names, width), group[2]))
    if not found:
        raise ValueError("column_groups is empty")
    return found


def _columns(name: str, columns: Any, names: Array | None, width: int) -> Array:
    """Return the numbers of columns that are given as a slice, numbers or names."""
    try:
        if isinstance(columns, slice):
            found = np.arange(width)[columns]
        else:
            listed = np.atleast_1d(np.asarray(columns))
            listed = listed if listed.size else np.empty(0, np.intp)
            if listed.dtype.kind in "UO":
                places = {} if names is None else {n: i for i, n in enumerate(names.tolist())}
                listed = np.array([places[column] for column in listed.tolist()])
            found = np.arange(width)[listed]
    except (KeyError, IndexError) as error:
        raise ValueError(
            f"column_groups: columns {columns!r} of {name!r} are not among the {width} columns of X"
        ) from error
    if not found.size:
        raise ValueError(f"column_groups: {name!r} has no columns")
    return found


def need_rows(transformers: Sequence[Transformer]) -> bool:
    """Tell whether some map has to be fitted to rows."""
    return any(m is not None and not isinstance(m, FrozenEstimator) for _, _, m in transformers)


def fitted(
    transformers: Sequence[Transformer], sample: DistinctSample | None, seed: int
) -> list[Transformer]:
    """Return transformers whose maps are clones, fitted to a sample of the rows.

    A map without a ``random_state`` gets one, and one whose ``fit`` takes weights gets those of the
    rows, if they differ; a frozen map is used as it is.
    """
    done: list[Transformer] = []
    for place, (name, columns, feature_map) in enumerate(transformers):
        if feature_map is not None:
            feature_map = clone(feature_map)
            if not isinstance(feature_map, FrozenEstimator):
                unset = {
                    key: (seed + place) % 2**32
                    for key, value in feature_map.get_params().items()
                    if key.split("__")[-1] == "random_state" and value is None
                }
                assert sample is not None
                weighted = np.ptp(sample.weight) > 0 and has_fit_parameter(
                    feature_map, "sample_weight"
                )
                given = {"sample_weight": sample.weight} if weighted else {}
                feature_map.set_params(**unset).fit(_taken(sample.rows, columns), **given)
        done.append((name, columns, feature_map))
    return done


def require_plain_inner_product(feature_map: Any) -> None:
    """Refuse a map whose features have an inner product other than the ordinary one."""
    if hasattr(feature_map, "inner_") and not getattr(feature_map, "orthonormal", False):
        inner = getattr(feature_map, "estimator", feature_map)
        raise ValueError(
            f"{type(inner).__name__} gives coordinates whose inner product is inner_, not the "
            "ordinary one that is penalized here: set orthonormal=True"
        )


def _taken(X: Matrix, columns: Array | None) -> Matrix:
    return X if columns is None else X[:, columns]


def group_features(
    transformers: Sequence[Transformer], X: Matrix, projections: Projections | None = None
) -> list[Matrix]:
    """Return the features of every group, or their principal components if there are some."""
    found = []
    for place, (_, columns, feature_map) in enumerate(transformers):
        Z = _taken(X, columns)
        Z = Z if feature_map is None else feature_map.transform(Z)
        Z = sp.csr_array(Z) if sp.issparse(Z) else np.asarray(Z)
        components = None if projections is None else projections[place]
        found.append(Z if components is None else Z @ components.T)
    return found


def joint_features(
    transformers: Sequence[Transformer], X: Matrix, projections: Projections | None = None
) -> Matrix:
    """Return the features of all groups side by side."""
    parts = group_features(transformers, X, projections)
    if len(parts) == 1:
        return parts[0]
    if all(sp.issparse(part) for part in parts):
        return sp.csr_array(sp.hstack(parts))
    return np.hstack([to_dense(part) for part in parts])


def row_slices(transformers: Sequence[Transformer], X: Matrix, budget: float) -> Iterator[slice]:
    """Yield slices of rows whose features take about ``budget`` bytes, in double precision."""
    if all(feature_map is None for _, _, feature_map in transformers):
        width = X.shape[1]
    else:
        width = sum(Z.shape[1] for Z in group_features(transformers, X[:1]))
    height = int(min(max(1, budget // (8 * max(width, 1))), max(width - 1, TALL)))
    for begin in range(0, X.shape[0], height):
        yield slice(begin, min(begin + height, X.shape[0]))
