"""Importances: mean absolute contributions; and columns that are left out."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from hilbin.estimators import IntersectionSVC
from hilbin.inspection import contributions, importances, leave_column_out


class Product:
    """A classifier whose score is not a sum."""

    def decision_function(self, rows):
        rows = rows.toarray() if sp.issparse(rows) else np.asarray(rows, float)
        return np.column_stack([rows[:, 0] * rows[:, 1], rows[:, 2]])


ROWS = np.array([[3.0, 5.0, 1.0], [1.0, 2.0, 1.0], [1.0, 2.0, 1.0]])
EXPECTED = [[15 - 1 * 5, 0], [15 - 3 * 2, 0], [0, 0]]  # medians are 1, 2, 1


def test_what_is_lost_without_a_column():
    assert leave_column_out(Product(), ROWS[:1], background=ROWS)[0].tolist() == EXPECTED
    whole = leave_column_out(Product(), ROWS)
    assert whole.shape == (3, 3, 2)
    assert whole[0].tolist() == EXPECTED
    assert not whole[1:].any()
    frame = pd.DataFrame(ROWS, columns=list("abc"))
    assert leave_column_out(Product(), frame).tolist() == whole.tolist()


def test_sparse_rows_lose_to_zero():
    found = leave_column_out(Product(), sp.csr_array(ROWS[:1]))
    assert found[0].tolist() == [[15, 0], [15, 0], [0, 1]]


def test_categories_become_the_most_frequent_one():
    frame = pd.DataFrame({"kind": ["a", "a", "a", "b", "b"] * 4, "n": np.arange(20.0)})
    frame["kind"] = frame["kind"].astype("category")
    y = frame["kind"] == "b"
    model = make_pipeline(OrdinalEncoder(), RandomForestClassifier(10, random_state=0))
    model.fit(frame, y)
    lost = leave_column_out(model, frame)
    b = np.flatnonzero(y)
    assert (lost[b, 0, 1] > lost[b, 1, 1]).all()
    assert not lost[np.flatnonzero(~y), 0].any()


def test_mean_absolute_contribution():
    rng = np.random.default_rng(0)
    X = rng.gamma(0.5, size=(50, 4))
    y = np.arange(50) % 3
    model = IntersectionSVC().fit(X, y)
    found = importances(model, X)
    each = contributions(model, X).values
    assert found.by_class == pytest.approx(np.abs(each - each.mean(axis=0)).mean(axis=0))
    assert found.values == pytest.approx(found.by_class.mean(axis=1))
    assert (found.low == X.min(axis=0)).all()
    assert (found.high == X.max(axis=0)).all()
    assert found.names == ["x0", "x1", "x2", "x3"]
    assert (np.diff(found.values[found.order]) <= 0).all()


def test_rare_and_constant_features_do_not_count():
    """The range of a rare feature is large, but it hardly ever makes a difference."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(size=200), np.zeros(200), np.full(200, 7.0)])
    X[0, 1] = 50
    model = LogisticRegression()
    model.fit(X, X[:, 0] > 0.5)
    model.coef_ = np.array([[1.0, 1.0, 1.0]])
    found = importances(model, X, feature_names=["usual", "rare", "constant"])
    assert [name for name, _ in found.top()] == ["rare", "usual"] or found.values[0] > 0.2
    assert found.values[2] == 0
    assert found.values[1] < 50 / 100


def test_few_rows_of_many():
    X = np.random.default_rng(0).normal(size=(1000, 3))
    model = LogisticRegression().fit(X, X[:, 0] > 0)
    few, many = importances(model, X, max_rows=50), importances(model, X, max_rows=1000)
    assert few.values != pytest.approx(many.values, rel=1e-6)
    assert few.values == pytest.approx(many.values, rel=0.4, abs=0.05)


def test_any_model():
    X = np.random.default_rng(0).normal(size=(120, 3))
    forest = RandomForestClassifier(30, random_state=0).fit(X, X[:, 1] > 0)
    found = importances(forest, X, feature_names=["a", "b", "c"])
    assert not found.exact
    assert found.top(1)[0][0] == "b"
    with pytest.raises(ValueError, match="feature_names must be 3"):
        importances(forest, X, feature_names=["a"])
