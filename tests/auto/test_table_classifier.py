"""TableClassifier: scikit-learn's checks, tables of all kinds, probabilities, reasons, files."""

import json
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import VotingClassifier
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.utils.estimator_checks import parametrize_with_checks

import hilbin
from hilbin.auto import TableClassifier, row_candidates
from hilbin.auto.table_encoder import column_groups
from hilbin.inspection import contributions
from hilbin.kernels import Chi2, Exponential, OnColumns
from hilbin.persist import info, load, save


@parametrize_with_checks([TableClassifier(max_rows=60, n_folds=2)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def wine():
    X, y = load_wine(return_X_y=True, as_frame=True)
    return X, y.map({0: "barolo", 1: "grignolino", 2: "barbera"})


@pytest.fixture(scope="module")
def model():
    X, y = wine()
    return TableClassifier().fit(X[::2], y[::2])


def mixed(n=90, seed=0):
    """A table with all there can be, and labels that its columns tell."""
    rng = np.random.default_rng(seed)
    y = rng.choice(["left", "right"], n)
    frame = pd.DataFrame(
        {
            "": np.arange(n),
            "height": np.where(y == "left", 1.0, 2.0) + rng.normal(size=n) * 0.6,
            "color": np.where((y == "left") ^ (rng.random(n) < 0.2), "red", "blue"),
            "unit": "cm",
            "maybe": np.where(rng.random(n) < 0.3, np.nan, rng.random(n)),
        }
    )
    return frame, y


# tables
def test_a_mixed_table_is_learned_and_the_index_left_out():
    X, y = mixed()
    with pytest.warns(UserWarning, match="is left out: an index"):
        model = TableClassifier().fit(X, y)
    assert model.model_[0].left_out_ == {"": "an index: it numbers the rows", "unit": "constant"}
    other, truth = mixed(seed=1)
    assert model.score(other, truth) > 0.8
    assert "left out: 'unit': constant" in model.summary()


def test_files_frames_and_arrays_give_the_same_model(tmp_path):
    X, y = wine()
    file = tmp_path / "wine.csv"
    X.assign(kind=y).to_csv(file, index=False, sep=";", decimal=",")
    by_file = TableClassifier(max_rows=60).fit(file, target="kind")
    by_frame = TableClassifier(max_rows=60).fit(X.assign(kind=y), target="kind")
    by_array = TableClassifier(max_rows=60).fit(X.to_numpy(), y)
    scores = by_array.decision_function(X.to_numpy())
    np.testing.assert_array_equal(by_file.decision_function(file), scores)
    np.testing.assert_array_equal(by_file.decision_function(X), scores)
    np.testing.assert_array_equal(by_frame.decision_function(X.assign(kind=y)), scores)
    assert by_file.feature_names_in_.tolist() == [*X.columns]
    assert by_file.metadata_["table"]["target"] == "kind"
    assert by_file.n_features_in_ == 13


def test_sparse_counts():
    X, y = load_digits(n_class=4, return_X_y=True)
    X = sp.csr_array(np.where(X > 8, X, 0))
    model = TableClassifier(max_rows=200).fit(X[::2], y[::2])
    assert "tf-idf + LinearSVC" in model.choice_.baselines
    assert model.score(X[1::2], y[1::2]) > 0.93
    np.testing.assert_allclose(
        model.decision_function(X[400:410]), model.decision_function(X[400:410].toarray())
    )


def test_negative_values():
    X, y = load_breast_cancer(return_X_y=True)
    X = X - X.mean(axis=0)
    model = TableClassifier(max_rows=200).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.93


def test_large_tables_are_chosen_on_samples():
    X, y = load_digits(return_X_y=True)
    model = TableClassifier(max_rows=200).fit(X[:1000], y[:1000])
    assert model.choice_.table[0]["n_rows"] >= 590
    assert model.choice_.table[-1]["n_rows"] <= 210
    assert model.score(X[1000:], y[1000:]) > 0.92


def test_histograms_side_by_side_are_groups():
    """One histogram has a thousand times the values of the other, and the weights of bins count."""
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b"], 300)
    hue = rng.dirichlet(np.where((y == "a")[:, None], [3, 1, 1, 1.0], [1, 1, 1, 3.0]).mean(0), 300)
    edge = np.array([rng.dirichlet([4, 2, 2] if label == "a" else [2, 2, 4]) for label in y])
    names = [*(f"hue {i}" for i in range(4)), "e_1", "e_2", "e_3"]
    X = pd.DataFrame(np.hstack([1000 * hue, edge]), columns=names)
    model = TableClassifier().fit(X, y)
    names = {one["name"]: one["mean"] for one in model.choice_.table}
    assert names["intersection, group, uniform bins"] > names["intersection, all, uniform bins"]
    plain = TableClassifier().fit(X.to_numpy(), y)
    assert not any("group" in one["name"] for one in plain.choice_.table)
    candidates = row_candidates(X.to_numpy(), y, groups=column_groups([*X.columns]))
    by_group = next(c for c in candidates if "group" in c.name)
    chosen = by_group.make().fit(X.to_numpy(), y)
    parts = contributions(chosen, X.to_numpy())
    total = (parts.values.sum(axis=1) + parts.intercept)[:, 1]
    np.testing.assert_allclose(total, chosen.decision_function(X.to_numpy()), atol=1e-8)
    product = next(c for c in candidates if "product" in c.name)
    product.held_out(X.to_numpy(), (y == "b").astype(int), np.arange(300) % 3, 0)
    steps = product.make().fit(X.to_numpy(), y)
    means = [X.to_numpy()[:, :4].sum() / 300, X.to_numpy()[:, 4:].sum() / 300]
    kernel = OnColumns(Exponential(Chi2(), product.gamma / means[0]), slice(0, 4)) * OnColumns(
        Exponential(Chi2(), product.gamma / means[1]), slice(4, 7)
    )
    np.testing.assert_allclose(
        steps[-1].kernel_.gram(steps[:-1].transform(X.to_numpy())), kernel.gram(X.to_numpy()),
        rtol=1e-9,
    )  # fmt: skip


# the choice
def test_the_choice_is_told(model, capsys):
    about, text = model.metadata_, model.summary()
    assert json.loads(json.dumps(about)) == about
    assert about["model"] == model.choice_.best.name == about["choice"][0]["name"]
    assert {"scaled LinearSVC", "square roots + LinearSVC", "majority"} == {*about["baselines"]}
    assert about["cv"]["accuracy"] > 0.95
    assert about["data"]["per_class"] == {"barbera": 24, "barolo": 30, "grignolino": 35}
    for one in about["choice"]:
        assert one["name"] in text
    X, y = wine()
    TableClassifier(verbose=1, max_rows=60).fit(X, y)
    out = capsys.readouterr().out
    assert "3-fold cross-validation on 60 of 178 rows, then the best three on more" in out
    assert "[1/14] intersection" in out


def test_the_accuracy_is_that_of_the_list():
    """Not of the first division into folds alone, on which parameters were settled."""
    X, y = load_wine(return_X_y=True)
    model = TableClassifier().fit(X, y)
    chosen = next(c for c in model.choice_.table if c["name"] == model.choice_.best.name)
    assert model.metadata_["cv"]["accuracy"] == pytest.approx(chosen["mean"])
    assert f"accuracy {chosen['mean']:.1%} by cross-validation" in model.summary()


def test_the_cost_of_the_preference_is_told():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (300, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")  # no sum of functions tells it
    model = TableClassifier().fit(X, y)
    assert not model.choice_.best.explainable
    assert model.metadata_["cost_of_preference"] == 0
    assert model.score(X, y) > 0.93


def test_class_weights():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] + rng.normal(size=300) > 1.5).astype(int)
    plain = TableClassifier().fit(X, y)
    balanced = TableClassifier(class_weight="balanced").fit(X, y)
    heavy = TableClassifier(class_weight={1: 20.0}).fit(X, y)
    shares = [model.predict(X).mean() for model in (plain, balanced, heavy)]
    assert shares[0] < shares[1] <= shares[2] + 0.1
    with pytest.raises(ValueError, match="class_weight names 7"):
        TableClassifier(class_weight={7: 2.0}).fit(X, y)


def test_a_class_of_one_row_is_learned():
    X, y = load_iris(return_X_y=True)
    rows = [*range(40), *range(50, 90), 120]
    model = TableClassifier().fit(X[rows], y[rows])
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.predict_proba(X[rows]).shape == (81, 3)
    assert np.isnan(model.choice_.scores[80]).all()


def test_every_class_of_one_row():
    model = TableClassifier().fit([[0.0, 1.0], [1.0, 0.0]], ["a", "b"])
    assert model.predict([[0.0, 0.9]]).tolist() == ["a"]
    np.testing.assert_allclose(model.predict_proba([[0.0, 0.9]]), [[0.5, 0.5]])
    assert "accuracy not known" in model.summary()


# probabilities
def test_probabilities_are_calibrated():
    X, y = load_breast_cancer(return_X_y=True)
    model = TableClassifier().fit(X[::2], y[::2])
    probabilities = model.predict_proba(X[1::2])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert log_loss(y[1::2], probabilities) < 0.15
    assert roc_auc_score(y[1::2], probabilities[:, 1]) > 0.98


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
def test_the_most_probable_class_is_predicted_and_has_the_highest_score(load):
    X, y = load(return_X_y=True)
    model = TableClassifier().fit(X[::2], y[::2])
    probabilities = model.predict_proba(X)
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X))
    tested = model.choice_.scores
    shown = model.calibration_.predict_proba(tested[:, 1] if tested.shape[1] == 2 else tested)
    assert abs(shown[:, 1].mean() - (y[::2] == model.classes_[1]).mean()) < 0.02


def test_scikit_learn_uses_the_probabilities(model):
    X, y = wine()
    small = TableClassifier(max_rows=60)
    found = cross_val_predict(small, X, y, method="predict_proba", cv=3)
    assert roc_auc_score(y, found, multi_class="ovr") > 0.98
    voting = VotingClassifier(
        [("a", small), ("b", TableClassifier(prefer="accurate"))], voting="soft"
    )
    assert voting.fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.93


# reasons, report, files
def test_reasons_sum_to_the_score(model):
    X, _ = wine()
    why = model.explain(X, 3)
    assert why.exact
    assert why.intercept + why.shares == pytest.approx(why.score)
    assert why.predicted == model.predict(X[3:4])[0]
    assert why.features[0]["feature"] in X.columns
    assert why.probabilities[why.predicted] == pytest.approx(model.predict_proba(X[3:4]).max())
    parts = contributions(model.model_[1:], model.model_[0].transform(X))
    total = parts.values.sum(axis=1) + parts.intercept
    np.testing.assert_allclose(total, model.decision_function(X), atol=1e-8)
    with pytest.raises(ValueError, match="row must be one of 178"):
        model.explain(X, 500)


def test_reasons_of_models_that_are_no_sums():
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.uniform(-1, 1, (300, 2)), rng.random(300)])
    model = TableClassifier().fit(X, np.where(X[:, 0] * X[:, 1] > 0, "same", "other"))
    why = model.explain([[0.9, 0.8, 0.5]])
    assert not why.exact
    assert {one["feature"] for one in why.features[:2]} == {"column 1", "column 2"}


def test_the_report(model, tmp_path):
    X, y = wine()
    page = model.report(X[1::2], y[1::2], tmp_path / "page.html")
    text = page.read_text(encoding="utf-8")
    assert "scaled LinearSVC" in text
    assert model.metadata_["model"] in text


def test_saved_models_predict_the_same(model, tmp_path):
    X, _ = wine()
    model.save(tmp_path / "a.hilbin")
    save(model, tmp_path / "b.hilbin")
    assert info(tmp_path / "a.hilbin").metadata == model.metadata_
    for name in ("a.hilbin", "b.hilbin"):
        loaded = load(tmp_path / name)
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
        assert loaded.summary() == model.summary()
        assert loaded.explain(X, 1).summary() == model.explain(X, 1).summary()


@pytest.mark.parametrize("prefer", ["explainable", "accurate"])
def test_all_chosen_kinds_are_saved(prefer, tmp_path):
    X, y = mixed(60)
    model = TableClassifier(prefer=prefer, id="").fit(X, y)
    for candidate in [model.choice_.best]:
        assert candidate.name
    model.save(tmp_path / "m.hilbin")
    np.testing.assert_array_equal(load(tmp_path / "m.hilbin").predict(X), model.predict(X))


def test_an_interrupt_leaves_the_model_as_it_was(monkeypatch, model):
    X, y = wine()
    before = model.decision_function(X)

    def interrupt(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("hilbin.auto.table_classifier.choose", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), before)
    fresh = TableClassifier()
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(X, y)
    assert not hasattr(fresh, "model_")


def test_the_same_seed_gives_the_same_model():
    X, y = wine()
    scores = [TableClassifier(max_rows=60).fit(X, y).decision_function(X) for _ in range(2)]
    np.testing.assert_array_equal(*scores)


def test_hilbin_has_the_classifier():
    assert hilbin.TableClassifier is TableClassifier


# errors
@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1.0], [2.0]], ["a", "a"], "two classes, but y has 1 class"),
        ([[1.0], [2.0]], ["a", None], "row 2: there is no label"),
        ([[1.0], [2.0]], [0.5, 1.7], "Unknown label type"),
        ([[1.0], [2.0]], None, "requires y"),
        ([[1.0], [np.inf], [2.0]], ["a", "b", "a"], "row 2: inf"),
    ],
)
def test_bad_input(X, y, message):
    with pytest.raises(ValueError, match=message):
        TableClassifier().fit(X, y)


@pytest.mark.parametrize("wrong", [{"prefer": "best"}, {"n_folds": 1}, {"max_rows": 0}])
def test_bad_parameters(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        TableClassifier(**wrong).fit([[1.0], [2.0]], ["a", "b"])


def test_y_and_target_exclude_each_other():
    X, y = wine()
    with pytest.raises(ValueError, match="y or target="):
        TableClassifier().fit(X, y, target="ash")


@pytest.mark.parametrize("given", [{"drop": "kind"}, {"drop": ["ash", "kind"]}, {"id": "kind"}])
def test_the_labels_are_neither_dropped_nor_names(given, tmp_path):
    (tmp_path / "t.csv").write_text("ash,kind\n1,a\n2,b\n")
    with pytest.raises(ValueError, match="'kind', which holds the labels"):
        TableClassifier(**given).fit(tmp_path / "t.csv", target="kind")


def test_classes_of_a_single_row_are_named_and_many_classes_warned_of_once():
    rng = np.random.default_rng(0)
    y = np.array(["a", "b"] * 19 + ["c", "d"])
    said = TableClassifier().fit(rng.random((40, 3)), y).summary()
    assert (
        "\nThe accuracy does not count the classes 'c', 'd', each with a single example.\n" in said
    )
    frame = pd.DataFrame(rng.random((30, 2)), columns=["u", "v"]).assign(y=[*"aabb", *range(26)])
    with pytest.warns(UserWarning, match="unique classes") as caught:
        model = TableClassifier().fit(frame, target="y")
    assert len(caught) == 1
    names = r"classes '0', '1', '10', '11', '12' and 21 more, each with a single example\."
    assert re.search(names, model.summary())
