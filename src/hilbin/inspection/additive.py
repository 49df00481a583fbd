r"""What every feature adds to every score, exactly, where scores are sums over the features.

A classifier is additive if :math:`f_k(x) = b_k + \sum_j g_{jk}(x_j)`: the intersection SVM, whose
functions are look-up tables; a linear model, :math:`g_{jk}(x) = w_{kj} x`; a linear model on the
features :math:`\varphi` of an additive map, :math:`g_{jk}(x) = \langle w_{kj}, \varphi(x) \rangle`;
and any of these after steps that make each of their columns from one input column. The
contributions :math:`g_{jk}(x_j)` and the intercept :math:`b_k` sum to the score, up to rounding.
Kernels that are exponentials, and forests, have no such functions.

Steps that also scale each row as a whole (``Normalizer``, ``TfidfTransformer``) keep the sum, but
what a column adds then depends on the rest of its row, so that it cannot be drawn as a function.

A transformer of your own takes part if it has an attribute ``input_columns_``: for each output
column the number of the input column that it is made from.
"""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)
from sklearn.utils import _safe_indexing

from hilbin import parallel
from hilbin._arrays import Array, to_dense
from hilbin.estimators import IntersectionSVC, MapRidgeClassifier, MapSVC, ShapeFunction
from hilbin.estimators.linear.risk import uncoded
from hilbin.estimators.linear.transformers import joint_features
from hilbin.images import HistogramNormalizer
from hilbin.inspection.scores import both_classes

CHUNK = 1024  # rows whose features are held at a time
POINTS = 129  # at which a shape function is given


# Which input column every output column of a step is made from; None if it is made from several.
def input_columns(step: Any, n_columns: int) -> Array | None:
    """Return for each output column of a fitted step the number of its input column, or None."""
    if step is None or isinstance(step, str):  # "passthrough"
        return np.arange(n_columns) if step != "drop" else np.arange(0)
    given = getattr(step, "input_columns_", None)
    if given is not None:
        return np.asarray(given, np.intp)
    for kind in type(step).__mro__:
        if kind in RULES:
            return RULES[kind](step, n_columns)
    return None


def _same(step: Any, n_columns: int) -> Array | None:
    return np.arange(n_columns)


def _equal_groups(step: Any, n_columns: int) -> Array | None:
    width = len(step.get_feature_names_out()) // n_columns
    return np.repeat(np.arange(n_columns), width)


def _of_function(step: Any, n_columns: int) -> Array | None:
    return np.arange(n_columns) if step.func is None or isinstance(step.func, np.ufunc) else None


def _of_imputer(step: Any, n_columns: int) -> Array | None:
    kept = len(step.get_feature_names_out()) == n_columns
    return np.arange(n_columns) if kept and not step.add_indicator else None


def _of_encoder(step: Any, n_columns: int) -> Array | None:
    return np.repeat(np.arange(n_columns), step._n_features_outs)


def _of_bins(step: Any, n_columns: int) -> Array | None:
    if step.encode == "ordinal":
        return np.arange(n_columns)
    return np.repeat(np.arange(n_columns), step.n_bins_)


def _of_selection(step: Any, n_columns: int) -> Array | None:
    return np.asarray(step.get_support(indices=True))


def _of_column_transformer(step: Any, n_columns: int) -> Array | None:
    places = {str(name): j for j, name in enumerate(getattr(step, "feature_names_in_", ()))}
    found = np.empty(sum(s.stop - s.start for s in step.output_indices_.values()), np.intp)
    for name, transformer, columns in step.transformers_:
        if isinstance(columns, slice):
            taken = np.arange(n_columns)[columns]
        else:
            listed = np.atleast_1d(np.asarray(columns))
            if listed.dtype.kind in "UO":
                listed = np.array([places[str(column)] for column in listed], np.intp)
            taken = np.arange(n_columns)[listed if listed.size else np.empty(0, np.intp)]
        inner = input_columns(transformer, taken.size)
        if inner is None:
            return None
        found[step.output_indices_[name]] = taken[inner]
    return found


def _of_union(step: Any, n_columns: int) -> Array | None:
    parts: list[Array] = []
    for _, transformer in step.transformer_list:
        found = input_columns(transformer, n_columns)
        if found is None:
            return None
        parts.append(found)
    return np.concatenate(parts)


def _of_pipeline(step: Any, n_columns: int) -> Array | None:
    return _composed([inner for _, inner in step.steps], n_columns)


def _composed(steps: Sequence[Any], n_columns: int) -> Array | None:
    columns = np.arange(n_columns)
    for step in steps:
        found = input_columns(step, columns.size)
        if found is None:
            return None
        columns = columns[found]
    return columns


RULES: dict[type, Callable[[Any, int], Array | None]] = {
    **dict.fromkeys((MaxAbsScaler, MinMaxScaler, StandardScaler, RobustScaler, Binarizer), _same),
    **dict.fromkeys((PowerTransformer, QuantileTransformer, OrdinalEncoder), _same),
    **dict.fromkeys((Normalizer, TfidfTransformer, HistogramNormalizer), _same),
    SplineTransformer: _equal_groups,
    FunctionTransformer: _of_function,
    SimpleImputer: _of_imputer,
    OneHotEncoder: _of_encoder,
    KBinsDiscretizer: _of_bins,
    SelectorMixin: _of_selection,
    ColumnTransformer: _of_column_transformer,
    FeatureUnion: _of_union,
    Pipeline: _of_pipeline,
    FrozenEstimator: lambda step, n_columns: input_columns(step.estimator, n_columns),
}
SCALES_ROWS = (Normalizer, TfidfTransformer, HistogramNormalizer)


def _scales_rows(step: Any) -> bool:
    """Tell whether a step, or one inside it, divides every row by its norm."""
    inner = [part[1] for part in getattr(step, "transformers_", ())]
    inner += [part for _, part in getattr(step, "steps", ())]
    inner += [part for _, part in getattr(step, "transformer_list", ())]
    own = isinstance(step, SCALES_ROWS) and getattr(step, "norm", None) is not None
    return own or any(_scales_rows(part) for part in inner)


# The last step: from columns to contributions.
class _Lookup:
    """An intersection SVM: what a column adds is looked up."""

    def __init__(self, model: IntersectionSVC):
        self._model = model
        self.intercept = both_classes(np.atleast_2d(model.intercept_).astype(np.float64))[0]

    def contributions(self, Z: Any, owners: Array, n_columns: int) -> Array:
        each = to_dense(self._model.explain(Z))
        each = both_classes(each.reshape(*Z.shape, -1))
        return _summed(each, owners, n_columns)

    def scores(self, Z: Any) -> Array:
        return both_classes(self._model.decision_function(Z).reshape(Z.shape[0], -1))


class _Linear:
    """A linear model: a column adds its value times its weight."""

    def __init__(self, coef: Any, intercept: Any):
        self._coef = np.atleast_2d(coef).astype(np.float64)
        self._intercept = np.zeros(len(self._coef)) + np.asarray(intercept, np.float64)
        self.intercept = both_classes(self._intercept[None])[0]

    def contributions(self, Z: Any, owners: Array, n_columns: int) -> Array:
        Z = _double(Z)
        to_owner = sp.csr_array(
            (np.ones(owners.size), (np.arange(owners.size), owners)), (owners.size, n_columns)
        )
        each = [to_dense((Z * weights[None]) @ to_owner) for weights in self._coef]
        return both_classes(np.stack(each, axis=-1))

    def scores(self, Z: Any) -> Array:
        return both_classes(np.asarray(_double(Z) @ self._coef.T) + self._intercept)


def _double(Z: Any) -> Any:
    return sp.csr_array(Z, dtype=np.float64) if sp.issparse(Z) else np.asarray(Z, np.float64)


def _summed(each: Array, owners: Array, n_columns: int) -> Array:
    """Sum what columns add over those that are made from the same input column."""
    if owners.size == n_columns and (owners == np.arange(n_columns)).all():
        return each
    found = np.zeros((n_columns, each.shape[0], each.shape[2]))
    np.add.at(found, owners, each.swapaxes(0, 1))
    return found.swapaxes(0, 1)


class _Joint(BaseEstimator):
    """The maps inside a model, each on its group of columns, as one step."""

    def __init__(self, transformers: Any):
        self.transformers = transformers

    def transform(self, X: Any) -> Any:
        return joint_features(self.transformers, X)


def _of_groups(step: Any, n_columns: int) -> Array | None:
    parts = []
    for _, columns, feature_map in step.transformers:
        taken = np.arange(n_columns) if columns is None else np.asarray(columns)
        inner = input_columns(feature_map, taken.size)
        if inner is None:
            return None
        parts.append(taken[inner])
    return np.concatenate(parts)


RULES[_Joint] = _of_groups


def _last_step(model: Any) -> tuple[list[Any], Any] | None:
    """Return the steps inside a classifier and what scores their columns, or None."""
    if isinstance(model, IntersectionSVC):
        return [], _Lookup(model)
    if isinstance(model, MapSVC):
        inside = uncoded(model.feature_map_)
        return ([] if inside is None else [inside]), _Linear(model.coef_, model.intercept_)
    if isinstance(model, MapRidgeClassifier):
        return [_Joint(model.transformers_)], _Linear(model.coef_, model.intercept_)
    if isinstance(model, LinearClassifierMixin):
        return [], _Linear(to_dense(model.coef_), model.intercept_)
    return None


class AdditiveModel:
    """A fitted classifier whose scores are sums over the columns of its input.

    It is made by :func:`additive`.

    Parameters
    ----------
    steps : sequence of fitted transformers
        Steps before the last, each column of which is made from one input column.
    last : object
        What adds up the columns behind them.

    Attributes
    ----------
    intercept : ndarray of shape (n_classes,)
        What the scores have beside the contributions.
    has_shapes : bool
        Whether what a column adds depends on its value alone, not on the rest of the row.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from hilbin.inspection import additive
    >>> X = np.array([[0.0, 2.0], [1.0, 2.0]])
    >>> parts = additive(RidgeClassifier(alpha=0.5).fit(X, ["no", "yes"]))
    >>> parts.contributions(X[1:]).round(3)
    array([[[-1.,  1.],
            [-0.,  0.]]])
    >>> parts.intercept.round(3), parts.scores(X[1:]).round(3)
    (array([ 0.5, -0.5]), array([[-0.5,  0.5]]))
    """

    def __init__(self, steps: Sequence[Any], last: Any):
        self._steps, self._last = steps, last
        self.intercept: Array = last.intercept
        self.has_shapes = not any(_scales_rows(step) for step in steps)

    def contributions(self, X: Any) -> Array:
        """Return what every column adds to every score: (n_samples, n_features, n_classes)."""
        n_columns = X.shape[1]
        owners = _composed(self._steps, n_columns)
        assert owners is not None
        found: Array = self._last.contributions(self._transformed(X), owners, n_columns)
        return found

    def scores(self, X: Any) -> Array:
        """Return scores in double precision, of shape (n_samples, n_classes)."""
        chunks = [
            self._last.scores(self._transformed(_safe_indexing(X, np.arange(begin, end))))
            for begin, end in parallel.ranges(X.shape[0], CHUNK)
        ]
        return np.concatenate(chunks)

    def _transformed(self, X: Any) -> Any:
        for step in self._steps:
            X = step.transform(X)
        return X


def additive(model: Any) -> AdditiveModel | None:
    """Return a fitted classifier as a sum over its columns, or None if it is not such a sum.

    Parameters
    ----------
    model : fitted classifier
        Additive are ``IntersectionSVC``, ``MapSVC`` and ``MapRidgeClassifier`` with additive maps,
        linear classifiers of scikit-learn (``LogisticRegression``, ``LinearSVC``,
        ``RidgeClassifier``, ...), pipelines that end with one of these after steps that make each
        column from one input column, and searches (``GridSearchCV``) over any of them.

    Returns
    -------
    parts : AdditiveModel or None

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from hilbin.inspection import additive
    >>> X, y = load_iris(return_X_y=True)
    >>> parts = additive(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y))
    >>> parts.contributions(X[:10]).shape
    (10, 4, 3)
    >>> additive(RandomForestClassifier(10).fit(X, y)) is None
    True
    """
    if isinstance(model, AdditiveModel):
        return model
    if isinstance(model, BaseSearchCV):
        return additive(model.best_estimator_)
    if isinstance(model, FrozenEstimator):
        return additive(model.estimator)
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    if isinstance(model, Pipeline) and isinstance(steps[-1], Pipeline):
        steps = [*steps[:-1], *(step for _, step in steps[-1].steps)]
    found = _last_step(steps[-1])
    if found is None:
        return None
    before = [step for step in [*steps[:-1], *found[0]] if step not in (None, "passthrough")]
    known = (getattr(step, "n_features_in_", None) for step in [model, *steps])
    width = next((n for n in known if n is not None), None)
    if width is None or _composed(before, width) is None:
        return None
    return AdditiveModel(before, found[1])


@dataclass(frozen=True, eq=False)
class Contributions:
    """What every column adds to every score; the sums are exact.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_features, n_classes)
        The contributions.
    intercept : ndarray of shape (n_classes,)
        What the scores have beside them.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.inspection import Contributions
    >>> Contributions(np.ones((1, 3, 2)), np.array([0.5, -0.5])).scores
    array([[3.5, 2.5]])
    """

    values: Array
    intercept: Array

    @property
    def scores(self) -> Array:
        """The scores: the sums over the columns, and the intercept."""
        return np.asarray(self.values.sum(axis=1) + self.intercept)


def contributions(model: Any, X: Any) -> Contributions:
    """Compute what every column adds to every score of an additive model.

    Parameters
    ----------
    model : fitted classifier
        An additive one; see :func:`additive`. For others, see :func:`leave_column_out`.
    X : array-like, sparse or data frame of shape (n_samples, n_features)
        Samples.

    Returns
    -------
    contributions : Contributions
        Its ``values`` of shape (n_samples, n_features, n_classes) sum over the features to the
        scores minus the ``intercept``. Of two classes, the second has the decision function and
        the first its negative.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from hilbin.inspection import contributions
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=1000).fit(X, y)
    >>> found = contributions(model, X)
    >>> found.values.shape
    (150, 4, 3)
    >>> bool(np.allclose(found.scores, model.decision_function(X)))
    True
    """
    parts = additive(model)
    if parts is None:
        raise TypeError(
            f"the scores of {type(model).__name__} are not sums over the columns; "
            "leave_column_out tells what they lose without each column"
        )
    return Contributions(parts.contributions(_rows(X)), parts.intercept)


def _rows(X: Any) -> Any:
    return X if hasattr(X, "shape") else np.asarray(X)


def shape_functions(
    model: Any,
    features: Sequence[int],
    names: Sequence[str],
    low: Any,
    high: Any,
    *,
    columns: Sequence[str] | None = None,
) -> list[ShapeFunction]:
    """Compute what some columns add to the scores, as functions of their values.

    Parameters
    ----------
    model : fitted classifier
        An additive one, of numeric columns, whose ``has_shapes`` is True; see :func:`additive`.
    features : sequence of int
        Numbers of the columns.
    names : sequence of str
        Names of these columns.
    low, high : arrays of shape (n_features,)
        Smallest and largest value of every column of the input.
    columns : sequence of str, optional
        Names of all columns, if the model was fitted to a data frame.

    Returns
    -------
    shapes : list of ShapeFunction
        Given at 129 values each; of two classes, the function of the second.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from hilbin.inspection import shape_functions
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=1000).fit(X, y == 2)
    >>> (width,) = shape_functions(model, [3], ["petal width"], X.min(axis=0), X.max(axis=0))
    >>> width.trend
    'rising'
    """
    parts = additive(model)
    if parts is None or not parts.has_shapes:
        raise TypeError(f"{type(model).__name__} is not a sum of functions of one column each")
    chosen = list(features)
    low, high = np.asarray(low), np.asarray(high)
    points = low + np.linspace(0, 1, POINTS)[:, None] * (high - low)
    rows = (_as_frame(point[None], columns) for point in points)
    curves = np.stack([parts.contributions(row)[0, chosen] for row in rows])
    one = curves.shape[2] == 2  # of two classes, the second
    return [
        ShapeFunction(name, points[:, j], curves[:, at, 1] if one else curves[:, at], False)
        for at, (j, name) in enumerate(zip(chosen, names, strict=True))
    ]


def _as_frame(rows: Array, columns: Sequence[str] | None) -> Any:
    if columns is None:
        return rows
    pandas = importlib.import_module("pandas")
    return pandas.DataFrame(rows, columns=list(columns))
