"""Evidence of any classifier, and the report that is made from it."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from hilbin.estimators import IntersectionSVC, KernelSVC, MapRidgeClassifier
from hilbin.inspection import (
    class_scores,
    collect_evidence,
    contributions,
    find_duplicates,
    suspicious_labels,
)
from hilbin.kernels import Chi2, Exponential
from hilbin.report import write_report

MODELS = [
    make_pipeline(StandardScaler(), LogisticRegression()),
    RandomForestClassifier(20, random_state=0),
    HistGradientBoostingClassifier(max_iter=10),
    KNeighborsClassifier(),
    GaussianNB(),
    LinearSVC(),
    SVC(),
    IntersectionSVC(),
    KernelSVC(Exponential(Chi2(), gamma=1.0)),
    MapRidgeClassifier(),
]


@pytest.mark.parametrize("frame", [False, True])
@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_a_report_of_any_classifier(model, frame, tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=frame)
    y = np.array(["setosa", "versicolor", "virginica"])[y]
    model.fit(X[::2], y[::2])
    found = collect_evidence(model, X[1::2], y[1::2])
    assert found.classes == ["setosa", "versicolor", "virginica"]
    assert found.scores == pytest.approx(class_scores(model, X[1::2]), abs=1e-5)
    right = found.scores.argmax(axis=1) == found.truth
    assert right.mean() == pytest.approx(model.score(X[1::2], y[1::2]))
    has = hasattr(model, "predict_proba")
    assert (found.probabilities is not None) == has
    assert found.importances is not None
    assert bool(found.features) == found.importances.exact
    page = write_report(found, tmp_path / "page.html").read_text(encoding="utf-8")
    assert ("Reliability of the probabilities" in page) == has
    assert "Most important features" in page
    assert ("petal width (cm)" if frame else "x3") in page
    for i in (0, 40, 74):
        assert_reasons(model, found, X[1::2], i)
    assert page.count('class="plain reasons"') >= 4


def assert_reasons(model, found, X, i):
    """All four columns are named: they sum to the lead, or are what it loses without each."""
    a, b = np.argsort(-found.scores[i])[:2]
    told = {one["feature"]: one for one in found.reasons(i, a, b)}
    names = list(getattr(X, "columns", [f"x{j}" for j in range(4)]))
    values = np.asarray(X)
    direction = np.eye(3)[a] - np.eye(3)[b]
    if found.exact:
        adds = contributions(model, X[i : i + 1]).values[0] @ direction
    else:
        adds = np.empty(4)
        for j in range(4):
            without = X[i : i + 1].copy()
            without[names[j] if hasattr(X, "columns") else (0, j)] = np.median(values[:, j])
            adds[j] = (class_scores(model, X[i : i + 1]) - class_scores(model, without))[
                0
            ] @ direction
    for j, name in enumerate(names):
        assert told.get(name, {"adds": 0})["adds"] == pytest.approx(adds[j], abs=1e-9)
        assert told.get(name, {"value": values[i, j]})["value"] == values[i, j]
    assert found.exact == found.importances.exact


def test_two_classes_and_sparse_rows(tmp_path):
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.poisson(0.3, size=(80, 40)).astype(float))
    y = np.asarray(X.sum(axis=1)).ravel() > 12
    for model in (LogisticRegression(), RandomForestClassifier(10, random_state=0)):
        found = collect_evidence(model.fit(X, y), X, y, feature_names=[f"w{j}" for j in range(40)])
        assert found.classes == ["False", "True"]
        assert found.importances.names[3] == "w3"
        assert write_report(found, tmp_path / "page.html").stat().st_size < 1_000_000


def test_frames_with_text_columns(tmp_path):
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder

    rng = np.random.default_rng(0)
    X = pd.DataFrame({"n": rng.normal(size=60), "kind": rng.choice(["a", "b"], 60)})
    y = (X["kind"] == "a") & (X["n"] > 0)
    encode = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    for last in (LogisticRegression(), RandomForestClassifier(10, random_state=0)):
        found = collect_evidence(make_pipeline(encode, last).fit(X, y), X, y)
        assert {name for name, _ in found.importances.top()} == {"n", "kind"}
        write_report(found, tmp_path / "page.html")


def test_wide_tables_of_other_models_have_no_importances():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 5000)), np.arange(20) % 2
    found = collect_evidence(KNeighborsClassifier(3).fit(X, y), X, y)
    assert found.importances is None


def test_unknown_labels():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="not classes of the model: 7"):
        collect_evidence(GaussianNB().fit(X, y), X[:2], [0, 7])


@pytest.mark.parametrize("model", [IntersectionSVC(), RandomForestClassifier(10, random_state=0)])
def test_images(model, features, photos, tmp_path):
    paths = sorted(photos.rglob("*.png"))
    y = [p.parent.name for p in paths]
    (tmp_path / "bad.png").write_text("no image")
    whole = make_pipeline(features, model).fit(paths, y)
    stages = []
    found = collect_evidence(
        whole,
        [*paths, tmp_path / "bad.png"],
        [*y, "down"],
        title="Waves",
        names=[*(p.name for p in paths), "bad.png"],
        suspicious=suspicious_labels(class_scores(model, features.transform(paths)), y),
        duplicates=find_duplicates(paths[:3], y[:3], paths, y, test_names=["pic 0.png"] * 3),
        callback=stages.append,
    )
    assert len(stages) == 2
    assert found.truth.size == 18
    assert [name for name, _ in found.unreadable] == ["bad.png"]
    assert found.exact == isinstance(model, IntersectionSVC)
    assert bool(found.words) == found.exact
    if found.exact:
        heat = found.heat(5, 2)
        assert heat.sum() + found.intercept[2] == pytest.approx(found.scores[5, 2], abs=1e-6)
    page = write_report(found, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Waves" in page
    assert "Heat map for" in page
    with pytest.raises(ValueError, match="none of the 1 images"):
        collect_evidence(whole, [tmp_path / "bad.png"], ["down"])
