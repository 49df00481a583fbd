r"""What every feature adds to every score.

A classifier is additive if its scores are sums of functions of one feature each,
:math:`f_k(x) = b_k + \sum_j g_{jk}(x_j)`: the intersection machine, whose functions are tables; a
linear model, :math:`g_{jk}(x) = w_{kj} x`; a linear model of additive features :math:`\varphi`,
:math:`g_{jk}(x) = \langle w_{kj}, \varphi(x) \rangle`; and any of these after every column was
scaled by itself. Then the contributions and the intercept sum to the score, up to rounding.
Exponentials of kernels have no such functions.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from hilbin import parallel
from hilbin._arrays import to_dense
from hilbin.estimators import IntersectionSVC, MapRidgeClassifier, ShapeFunction
from hilbin.maps import AdditiveMap

BLOCK = 1024
POINTS = 129  # at which a function is shown
LINEAR_MODELS = (MapRidgeClassifier, RidgeClassifier)
COLUMN_BY_COLUMN = (AdditiveMap, MaxAbsScaler, MinMaxScaler, StandardScaler)

Array = NDArray[Any]


class Additive(Protocol):
    """A classifier whose scores are sums over the features."""

    @property
    def intercept(self) -> Array:
        """What the scores have beside the contributions, shape (n_classes,)."""

    def contributions(self, row: Any) -> Array:
        """What every feature of one row, of shape (1, d), adds to the scores: (d, n_classes)."""

    def scores(self, rows: Any) -> Array:
        """Scores in double precision, shape (n, n_classes)."""


def additive(classifier: Any) -> Additive | None:
    """The classifier as a sum over the features; None if it is not one.

    Parameters
    ----------
    classifier : fitted classifier of rows
        As :func:`hilbin.cli._classifiers.classifier` makes them.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from hilbin.cli._contributions import additive
    >>> X = np.array([[0.0, 2.0], [1.0, 2.0]])
    >>> parts = additive(RidgeClassifier(alpha=0.5).fit(X, ["no", "yes"]))
    >>> parts.contributions(X[1:]).round(3)
    array([[-1.,  1.],
           [-0.,  0.]])
    >>> parts.intercept.round(3)
    array([ 0.5, -0.5])
    """
    if isinstance(classifier, IntersectionSVC):
        return OfTables(classifier)
    steps = classifier.steps if isinstance(classifier, Pipeline) else [("linear", classifier)]
    model = steps[-1][1]
    before = [step for _, step in steps[:-1]]
    if isinstance(model, LINEAR_MODELS) and all(isinstance(s, COLUMN_BY_COLUMN) for s in before):
        return OfLinear(before, model)
    return None


class OfTables:
    """An intersection machine.

    Parameters
    ----------
    model : IntersectionSVC
    """

    def __init__(self, model: IntersectionSVC):
        self._model = model
        self.intercept = _both(np.atleast_2d(model.intercept_))[0]

    def contributions(self, row: Any) -> Array:
        """What every feature of one row adds to the scores."""
        found = self._model.explain(row)
        found = to_dense(found)
        return _both(found[0].reshape(row.shape[1], -1))

    def scores(self, rows: Any) -> Array:
        """Scores of rows; the tables are summed in double precision."""
        return _both(self._model.decision_function(rows).reshape(rows.shape[0], -1))


class OfLinear:
    """A linear model after steps that act on every column by itself.

    Parameters
    ----------
    steps : sequence of transformers
    model : RidgeClassifier or MapRidgeClassifier
        The latter without a map.
    """

    def __init__(self, steps: Sequence[Any], model: Any):
        self._steps = steps
        self._weights = np.atleast_2d(model.coef_).astype(np.float64)
        self._intercept = np.atleast_1d(model.intercept_).astype(np.float64)
        self.intercept = _both(self._intercept[None])[0]

    def contributions(self, row: Any) -> Array:
        """What every feature of one row adds to the scores."""
        mapped = self._mapped(row)
        mapped = to_dense(mapped)
        mapped = mapped.reshape(row.shape[1], -1)
        weights = self._weights.reshape(-1, *mapped.shape)
        return _both(np.einsum("jm,kjm->jk", mapped, weights))

    def scores(self, rows: Any) -> Array:
        """Scores of rows."""
        blocks = [
            self._mapped(rows[begin:end]) @ self._weights.T
            for begin, end in parallel.ranges(rows.shape[0], BLOCK)
        ]
        return _both(np.concatenate(blocks) + self._intercept)

    def _mapped(self, rows: Any) -> Any:
        for step in self._steps:
            rows = step.transform(rows)
        return rows.astype(np.float64, copy=False)


def _both(values: Array) -> Array:
    """Of two classes, where there is one score."""
    return np.hstack([-values, values]) if values.shape[1] == 1 else values


def shapes(
    parts: Additive, features: Sequence[int], names: Sequence[str], low: Array, high: Array
) -> list[ShapeFunction]:
    """What some features add to the scores, as functions of their values.

    Parameters
    ----------
    parts : Additive
    features : sequence of int
    names : sequence of str
        Of these features.
    low, high : arrays of shape (d,)
        Ends of the values of all features.
    """
    columns = list(features)
    steps = np.linspace(0, 1, POINTS)
    points = low + steps[:, None] * (high - low)
    curves = np.stack([parts.contributions(point[None])[columns] for point in points])
    one = curves.shape[2] == 2  # of two classes, the second
    return [
        ShapeFunction(name, points[:, j], curves[:, at, 1] if one else curves[:, at], False)
        for at, (j, name) in enumerate(zip(columns, names, strict=True))
    ]
