r"""Which features a model uses: how much they change the scores of the rows that there are.

The importance of column :math:`j` for class :math:`k` is the mean absolute contribution over the
rows, measured from its mean: :math:`\frac1n \sum_i |g_{jk}(x_{ij}) - \bar g_{jk}|`. So a feature
counts as often as it makes a difference: one that is large for a single row is not important, and
one that is the same for all rows has an importance of zero. The range of a function does not tell
that.

Where scores are not sums, a column is left out instead: it takes its median (zero in sparse rows,
the most frequent value of a categorical column), and what the scores lose is its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import _safe_indexing

from hilbin import parallel
from hilbin._arrays import Array, to_dense
from hilbin.inspection.additive import AdditiveModel, additive
from hilbin.inspection.scores import class_scores

MOST_VALUES = 1 << 22  # of changed rows, or contributions, held at a time


def leave_column_out(model: Any, X: Any, *, background: Any = None) -> Array:
    """Compute how much the scores of rows drop when one column at a time is replaced by its median.

    It is for classifiers whose scores are not sums over the columns, and works for any.

    Parameters
    ----------
    model : fitted classifier
    X : array-like, sparse or data frame of shape (n_samples, n_features)
        Samples.
    background : like X, optional
        Rows from which the median of every column is taken (the most frequent value if it is not
        numeric), which replaces the column; ``X`` by default. In sparse rows zero does.

    Returns
    -------
    losses : ndarray of shape (n_samples, n_features, n_classes)
        Scores minus scores without the column.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from hilbin.inspection import leave_column_out
    >>> X = np.array([[0.0, 2.0], [1.0, 2.0], [0.0, 2.0]])
    >>> model = RidgeClassifier(alpha=0.5).fit(X, ["no", "yes", "no"])
    >>> leave_column_out(model, X[1:2], background=X).round(3)
    array([[[-1.143,  1.143],
            [ 0.   ,  0.   ]]])
    """
    if hasattr(X, "iloc"):
        return _without_columns_of_frame(model, X, X if background is None else background)
    X = X if sp.issparse(X) else np.asarray(X)
    if sp.issparse(X):
        usual = np.zeros(X.shape[1], X.dtype)
        rows, columns = sp.csr_array(X).nonzero()
    else:
        usual = _median(np.asarray(X if background is None else background))
        rows, columns = np.nonzero(usual != X)
    whole = class_scores(model, X)
    losses = np.zeros((*X.shape, whole.shape[1]))
    step = max(1, MOST_VALUES // max(1, X.shape[1]))
    for begin, end in parallel.ranges(rows.size, step):
        some, which = rows[begin:end], columns[begin:end]
        changed = to_dense(X[some]).copy()
        changed[np.arange(some.size), which] = usual[which]
        changed = sp.csr_array(changed) if sp.issparse(X) else changed
        losses[some, which] = whole[some] - class_scores(model, changed)
    return losses


def _without_columns_of_frame(model: Any, X: Any, background: Any) -> Array:
    whole = class_scores(model, X)
    losses = np.zeros((*X.shape, whole.shape[1]))
    for j, name in enumerate(X.columns):
        column = background[name]
        numeric = column.dtype.kind in "fiu"
        usual = _median(column.to_numpy()) if numeric else column.mode(dropna=False).iloc[0]
        changed = X.copy()
        changed[name] = type(column)([usual] * len(X), index=X.index, dtype=column.dtype)
        losses[:, j] = whole - class_scores(model, changed)
    return losses


def _median(values: Array) -> Array:
    """Return the lower median of every column, which is a value that occurs."""
    return np.asarray(np.nanquantile(values, 0.5, axis=0, method="lower"))


@dataclass(frozen=True, eq=False)
class Importances:
    """How much every feature matters to the scores.

    Parameters
    ----------
    names : list of str
        Names of the features.
    by_class : ndarray of shape (n_features, n_classes)
        Mean absolute contribution to the score of every class, in units of the score.
    exact : bool
        Whether the model is a sum over the features; otherwise each was left out in turn.
    low, high : ndarray of shape (n_features,), optional
        Smallest and largest value of every numeric feature.

    Attributes
    ----------
    values : ndarray of shape (n_features,)
        Mean over the classes of ``by_class``.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.inspection import Importances
    >>> found = Importances(["size", "age"], np.array([[0.1, 0.3], [1.0, 0.0]]), exact=True)
    >>> found.values, found.top(1)
    (array([0.2, 0.5]), [('age', 0.5)])
    """

    names: list[str]
    by_class: Array
    exact: bool
    low: Array | None = None
    high: Array | None = None

    @cached_property
    def values(self) -> Array:
        """Importance of every feature: the mean over the classes."""
        return np.asarray(self.by_class.mean(axis=1))

    @cached_property
    def order(self) -> Array:
        """Numbers of the features, the most important first."""
        return np.argsort(-self.values, kind="stable")

    def top(self, n: int = 12) -> list[tuple[str, float]]:
        """Return names and importances of the first ``n`` features that matter at all."""
        return [
            (self.names[j], float(self.values[j])) for j in self.order[:n] if self.values[j] > 0
        ]


def importances(
    model: Any, X: Any, *, feature_names: Sequence[str] | None = None, max_rows: int = 300
) -> Importances:
    """Compute how much every feature matters: its mean absolute contribution to the scores.

    Contributions are measured from their mean over the rows. If the scores are not sums, each
    column is left out in turn (:func:`leave_column_out`).

    Parameters
    ----------
    model : fitted classifier
    X : array-like, sparse or data frame of shape (n_samples, n_features)
        Samples; those of a test set tell what matters there.
    feature_names : sequence of str, optional
        Names of the columns; by default those of the data frame, or ``x0``, ``x1``, ...
    max_rows : int, default=300
        Largest number of rows that are looked at, evenly spread.

    Returns
    -------
    importances : Importances

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from hilbin.estimators import IntersectionSVC
    >>> from hilbin.inspection import importances
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> found = importances(IntersectionSVC().fit(X, y), X)
    >>> found.exact, found.names[found.order[0]]
    (True, 'petal width (cm)')
    >>> forest = RandomForestClassifier(20, random_state=0).fit(X, y)
    >>> importances(forest, X).exact
    False
    """
    X = X if hasattr(X, "shape") else np.asarray(X)
    names = names_of_columns(X, feature_names)
    some = _safe_indexing(X, spread_places(X.shape[0], max_rows))
    parts = additive(model)
    if parts is None:
        by_class = np.abs(leave_column_out(model, some, background=X)).mean(axis=0)
    else:
        by_class = _mean_deviation(parts, some)
    low, high = _ends(some)
    return Importances(names, by_class, parts is not None, low, high)


def names_of_columns(X: Any, given: Sequence[str] | None) -> list[str]:
    """Return the names of the columns: as given, those of a data frame, or ``x0``, ``x1``, ..."""
    if given is None:
        given = getattr(X, "columns", None)
    if given is None:
        given = [f"x{j}" for j in range(X.shape[1])]
    names = [str(name) for name in given]
    if len(names) != X.shape[1]:
        raise ValueError(f"feature_names must be {X.shape[1]}, one per column; got {len(names)}")
    return names


def spread_places(n: int, most: int) -> Array:
    """Return the places of at most so many of ``n`` rows, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))


def _mean_deviation(parts: AdditiveModel, X: Any) -> Array:
    """Return the mean absolute distance of contributions from their mean, in two passes."""
    n, n_columns = X.shape
    step = max(1, MOST_VALUES // max(1, n_columns * parts.intercept.size))
    ranges = [np.arange(*ends) for ends in parallel.ranges(n, step)]
    mean = sum(parts.contributions(_safe_indexing(X, rows)).sum(axis=0) for rows in ranges) / n
    away = sum(
        np.abs(parts.contributions(_safe_indexing(X, rows)) - mean).sum(axis=0) for rows in ranges
    )
    return np.asarray(away / n)


def _ends(X: Any) -> tuple[Array | None, Array | None]:
    """Return the smallest and the largest value of every column, if all are numeric."""
    if sp.issparse(X):
        return to_dense(X.min(axis=0)).ravel(), to_dense(X.max(axis=0)).ravel()
    values = np.asarray(X)
    if values.dtype.kind not in "fiub":
        return None, None
    return values.min(axis=0), values.max(axis=0)
