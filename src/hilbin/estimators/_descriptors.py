"""Rows as features: descriptors, each some columns and the map of a kernel.

A descriptor is a tuple ``(name, columns, map)``; ``columns`` is None for all of them,
``map`` None for the columns as they are. Models keep the fitted ones as such tuples.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from hilbin._arrays import Array, Matrix

Descriptor = tuple[str, Array | None, Any]
Projections = Sequence[Array | None]  # of every descriptor, its components

TALL = 8192  # rows at a time, if features are few


def described(map: Any, blocks: Any, names: Array | None, width: int) -> list[Descriptor]:
    """The descriptors of the parameters ``feature_map`` and ``blocks``, not fitted yet."""
    if blocks is None:
        return [("all", None, map)]
    if map is not None:
        raise ValueError("give feature_map or blocks, not both: every block has its own map")
    found: list[Descriptor] = []
    for block in blocks:
        if not (isinstance(block, tuple) and len(block) == 3 and isinstance(block[0], str)):
            raise ValueError(f"blocks must be tuples (name, columns, map), got {block!r}")
        if block[0] in [name for name, _, _ in found]:
            raise ValueError(f"blocks has two of the name {block[0]!r}")
        found.append((block[0], _columns(block[0], block[1], names, width), block[2]))
    if not found:
        raise ValueError("blocks is empty")
    return found


def _columns(name: str, columns: Any, names: Array | None, width: int) -> Array:
    """Numbers of the columns of a block, given as a slice, numbers or names."""
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
            f"blocks: columns {columns!r} of {name!r} are not among the {width} columns of X"
        ) from error
    if not found.size:
        raise ValueError(f"blocks: {name!r} has no columns")
    return found


def to_fit(descriptors: Sequence[Descriptor]) -> bool:
    """Whether some map has to see rows first."""
    return any(m is not None and not isinstance(m, FrozenEstimator) for _, _, m in descriptors)


def fitted(descriptors: Sequence[Descriptor], sample: Matrix, seed: int) -> list[Descriptor]:
    """Clones of the maps, fitted to the sample; maps without a ``random_state`` get one."""
    done: list[Descriptor] = []
    for place, (name, columns, feature_map) in enumerate(descriptors):
        if feature_map is not None:
            feature_map = clone(feature_map)
            if not isinstance(feature_map, FrozenEstimator):
                chance = {
                    key: (seed + place) % 2**32
                    for key, value in feature_map.get_params().items()
                    if key.split("__")[-1] == "random_state" and value is None
                }
                feature_map.set_params(**chance).fit(taken(sample, columns))
            _require_plain_inner_product(feature_map)
        done.append((name, columns, feature_map))
    return done


def _require_plain_inner_product(feature_map: Any) -> None:
    if hasattr(feature_map, "inner_") and not getattr(feature_map, "orthonormal", False):
        inner = getattr(feature_map, "estimator", feature_map)
        raise ValueError(
            f"{type(inner).__name__} gives coordinates whose inner product is inner_, not the "
            "ordinary one that is penalized here: set orthonormal=True"
        )


def taken(X: Matrix, columns: Array | None) -> Matrix:
    """Some columns."""
    return X if columns is None else X[:, columns]


def features_of(
    descriptors: Sequence[Descriptor], X: Matrix, projections: Projections | None = None
) -> list[Matrix]:
    """Features of every descriptor, on its components if there are some."""
    found = []
    for place, (_, columns, feature_map) in enumerate(descriptors):
        Z = taken(X, columns)
        Z = Z if feature_map is None else feature_map.transform(Z)
        Z = sp.csr_array(Z) if sp.issparse(Z) else np.asarray(Z)
        components = None if projections is None else projections[place]
        found.append(Z if components is None else Z @ components.T)
    return found


def side_by_side(parts: Sequence[Matrix]) -> Matrix:
    """Features of all descriptors as one matrix."""
    if len(parts) == 1:
        return parts[0]
    if all(sp.issparse(part) for part in parts):
        return sp.csr_array(sp.hstack(parts))
    return np.hstack([part.toarray() if sp.issparse(part) else part for part in parts])


def strips(descriptors: Sequence[Descriptor], X: Matrix, budget: float) -> Iterator[slice]:
    """Ranges of rows whose features take about ``budget`` bytes, in double precision."""
    if all(feature_map is None for _, _, feature_map in descriptors):
        width = X.shape[1]
    else:
        width = sum(Z.shape[1] for Z in features_of(descriptors, X[:1]))
    height = int(min(max(1, budget // (8 * max(width, 1))), max(width - 1, TALL)))
    for begin in range(0, X.shape[0], height):
        yield slice(begin, min(begin + height, X.shape[0]))
