"""Explanations of single rows and images, in numbers and in words."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from hilbin.estimators import IntersectionSVC
from hilbin.inspection import explain_image, explain_row


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(size=(60, 3)), columns=["good", "noise", "more"])
    y = np.array(["a", "b", "c"])[np.arange(60) % 3]
    X["good"] += np.arange(60) % 3
    return X, y


@pytest.mark.parametrize("model", [IntersectionSVC(), LinearSVC(), LogisticRegression()])
def test_rows(table, model):
    X, y = table
    model.fit(X, y)
    scores = model.decision_function(X)[5]
    why = explain_row(model, X, 5)
    assert why.exact
    assert why.name == "row 6"
    assert why.predicted == model.predict(X)[5] == why.label
    assert list(why.scores.values()) == pytest.approx(scores)
    assert why.shares + why.intercept == pytest.approx(why.score)
    assert sum(f["adds"] for f in why.features) == pytest.approx(why.shares)
    assert why.features[0]["feature"] == "good"
    assert why.features[0]["value"] == X["good"][5]
    lead = explain_row(model, X, 5, class_="c", versus="a")
    assert lead.score == pytest.approx(scores[2] - scores[0])
    assert lead.shares + lead.intercept == pytest.approx(lead.score)
    assert "Why c rather than a?" in lead.caption()[0]


def test_per_cent_where_there_are_probabilities(table):
    X, y = table
    model = LogisticRegression().fit(X, y)
    why = explain_row(model, X, 5)
    expected = dict(zip("abc", model.predict_proba(X)[5], strict=True))
    assert why.probabilities == pytest.approx(expected)
    assert f"c: {100 * expected['c']:.0f} %, score " in why.summary()
    other = explain_row(model, X, 5, class_="a")
    assert f"The prediction is c ({100 * expected['c']:.0f} %)." in other.summary()
    svm = LinearSVC().fit(X, y)
    assert explain_row(svm, X, 5).probabilities is None
    assert "%" not in explain_row(svm, X, 5).summary()
    given = explain_row(svm, X, 5, probabilities=[0.1, 0.7, 0.2])
    assert given.probabilities == {"a": 0.1, "b": 0.7, "c": 0.2}


def test_rows_of_models_that_are_no_sums(table):
    X, y = table
    why = explain_row(RandomForestClassifier(30, random_state=0).fit(X, y), X, 5)
    assert not why.exact
    assert why.intercept is None
    assert why.shares is None
    assert why.features[0]["feature"] == "good"
    assert "Not exact." in why.summary()


def test_bad_rows(table):
    X, y = table
    model = LinearSVC().fit(X, y)
    with pytest.raises(ValueError, match="row must be from 0 to 59, got 60"):
        explain_row(model, X, 60)
    with pytest.raises(ValueError, match="does not know 'z'"):
        explain_row(model, X, 0, class_="z")
    with pytest.raises(ValueError, match="feature_names must be 3"):
        explain_row(model, X, 0, feature_names=["one"])


def test_images(features, photos):
    paths = sorted(photos.rglob("*.png"))
    X, y = features.transform(paths), [p.parent.name for p in paths]
    model = IntersectionSVC().fit(X, y)
    why = explain_image(features, model, paths[7])
    assert why.name == str(paths[7])
    assert why.exact
    assert why.heat.sum() == pytest.approx(why.shares)
    assert why.shares + why.intercept == pytest.approx(why.score)
    assert all(f["feature"].split(" word ")[0] in ("sift", "color") for f in why.features)
    sizes = [abs(place["adds"]) for place in why.places]
    assert sizes == sorted(sizes, reverse=True)
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    why = explain_image(features, forest, paths[7])
    assert not why.exact
    assert why.features == []
    assert len(why.places) == 8
    assert why.probabilities[why.predicted] == pytest.approx(why.score)
