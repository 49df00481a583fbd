"""Probabilities: of every classifier, calibrated on rows left out, and usable in scikit-learn."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.ensemble import VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_predict, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from hilbin.estimators import (
    IntersectionSVC,
    KernelDiscriminant,
    KernelSVC,
    MapRidgeClassifier,
    MapSVC,
    ScoreCalibration,
)
from hilbin.estimators.probability import parts_left_out, row_keys, separate_keys
from hilbin.kernels import Chi2, Gaussian
from hilbin.maps import AdditiveMap, FourierMap, ProductQuantizer, SparseMap
from hilbin.stream import as_chunks

IRIS = load_iris(return_X_y=True)
MODELS = [
    IntersectionSVC(probability=True),
    IntersectionSVC(probability=True, multi_class="crammer_singer"),
    IntersectionSVC(probability=True, loss="hinge", C=1e-2, solver="lookup"),
    KernelSVC(probability=True),
    KernelSVC(probability=True, multi_class="ovo"),
    KernelSVC(probability=True, multi_class="ecoc", penalize_intercept=True),
    KernelSVC(probability=True, multi_class="crammer_singer"),
    MapSVC(probability=True),
    MapSVC(SparseMap(Chi2(), 6), probability=True, C=0.1, loss="squared_hinge"),
    MapRidgeClassifier(probability=True),
    MapRidgeClassifier(probability=True, class_weight="balanced"),
    KernelDiscriminant(Gaussian("median"), probability=True),
    KernelDiscriminant(feature_map=AdditiveMap(Chi2()), probability=True),
]


CHECKED = [
    m
    for m in MODELS
    if getattr(m, "feature_map", None) is None and getattr(m, "class_weight", None) is None
]


@parametrize_with_checks(CHECKED)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("two", [False, True])
def test_probabilities_are_probabilities(model, two):
    X, y = IRIS
    y = np.array(["a", "b", "c"])[y] if not two else np.where(y == 1, "yes", "no")
    model = clone(model).fit(X, y)
    found = model.predict_proba(X)
    assert found.shape == (150, model.classes_.size)
    assert found.min() >= 0
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_array_equal(model.classes_[found.argmax(axis=1)], model.predict(X))
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(found))
    prior = log_loss(y, np.tile(np.unique(y, return_counts=True)[1] / 150, (150, 1)))
    assert log_loss(y, found) < 0.9 * prior
    same = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(same.predict_proba(X), found)


def test_only_where_it_was_asked_for():
    X, y = IRIS
    model = IntersectionSVC().fit(X, y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError) as caught:
        model.predict_proba(X)
    assert "probability=True" in str(caught.value.__cause__)
    model.set_params(probability=True)
    with pytest.raises(NotFittedError):
        model.predict_proba(X)
    model.fit(X, y).set_params(probability=False)
    assert hasattr(model, "predict_proba")
    assert not hasattr(model.fit(X, y), "calibration_")


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_the_scores_stay_what_they_are(model):
    X, y = IRIS
    plain = clone(model).set_params(probability=False).fit(X, y)
    model = clone(model).fit(X, y)
    np.testing.assert_array_equal(plain.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(plain.predict(X), model.predict(X))


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_a_weight_of_two_is_the_row_twice(model):
    X, y = IRIS
    weight = np.random.default_rng(0).integers(0, 3, 150)
    order = np.random.default_rng(1).permutation(weight.sum())
    twice = clone(model).fit(np.repeat(X, weight, axis=0)[order], np.repeat(y, weight)[order])
    weighted = clone(model).fit(X, y, sample_weight=weight)
    found, expected = weighted.predict_proba(X), twice.predict_proba(X)
    rounded = isinstance(model, MapSVC) or getattr(model, "penalize_intercept", False)
    np.testing.assert_allclose(found, expected, atol=1e-3 if rounded else 1e-6)


def test_a_calibrated_model_is_as_good_as_scikit_learns():
    X, y = load_digits(return_X_y=True)
    kernel = Gaussian(gamma="median")
    for model in (IntersectionSVC(), KernelSVC(kernel, C=10), KernelDiscriminant(kernel)):
        ours = clone(model).set_params(probability=True).fit(X[:500], y[:500])
        theirs = CalibratedClassifierCV(model, cv=5).fit(X[:500], y[:500])
        found, peer = (log_loss(y[500:], m.predict_proba(X[500:])) for m in (ours, theirs))
        assert found <= peer


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_rare_classes(model):
    X, y = IRIS
    y = y.copy()
    y[0] = 7  # a class of one row, which is missing where it is left out
    y[50:52] = 8
    found = clone(model).fit(X, y).predict_proba(X)
    assert found.shape == (150, 5)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1)


@pytest.mark.parametrize(
    "model",
    [IntersectionSVC(), KernelSVC(), MapSVC(), MapRidgeClassifier(), KernelDiscriminant()],
    ids=repr,
)
def test_in_scikit_learn(model):
    X, y = IRIS
    model = clone(model).set_params(probability=True)
    assert cross_val_score(model, X, y, scoring="roc_auc_ovr", cv=3).mean() > 0.85
    found = cross_val_predict(model, X, y, cv=3, method="predict_proba")
    assert log_loss(y, found) < 0.6
    pair = [("one", model), ("two", LogisticRegression(max_iter=1000))]
    voting = VotingClassifier(pair, voting="soft").fit(X, y)
    mean = (voting.estimators_[0].predict_proba(X) + voting.estimators_[1].predict_proba(X)) / 2
    np.testing.assert_allclose(voting.predict_proba(X), mean)


@pytest.mark.parametrize(
    "model",
    [IntersectionSVC(probability=True), KernelSVC(probability=True), MapSVC(probability=True)],
    ids=repr,
)
def test_sparse_rows(model):
    X, y = IRIS
    dense, sparse = clone(model).fit(X, y), clone(model).fit(sp.csr_array(X), y)
    expected, found = dense.predict_proba(X), sparse.predict_proba(sp.csr_array(X))
    np.testing.assert_allclose(found, expected, atol=0.05)


def test_a_given_gram_matrix():
    X, y = IRIS
    K = Gaussian().gram(X)
    for model in (KernelSVC("precomputed"), KernelDiscriminant("precomputed", reg=0.1)):
        found = model.set_params(probability=True).fit(K, y).predict_proba(K)
        assert log_loss(y, found) < 0.2


def test_rows_of_the_gram_matrix_are_computed_as_they_are_needed():
    X, y = load_breast_cancer(return_X_y=True)
    X = X / X.max(axis=0)
    lazy, whole = (
        KernelSVC(Gaussian(), probability=True, memory=memory).fit(X, y).predict_proba(X)
        for memory in (0.5, 100)
    )
    np.testing.assert_allclose(lazy, whole, atol=0.01)


def test_paths_and_cross_validation():
    X, y = IRIS
    models = KernelSVC(probability=True).path(X, y, [0.1, 10])
    assert all(np.isfinite(model.predict_proba(X)).all() for model in models)
    assert KernelSVC(probability=True).cross_validate(X, y, cv=3).mean() > 0.9
    models = IntersectionSVC(probability=True).path(X, y, [1e-4, 1e-3])
    assert log_loss(y, models[1].predict_proba(X)) < log_loss(y, models[0].predict_proba(X))


@pytest.mark.parametrize(
    "model", [MapSVC(C=1e-3, tol=0.01), MapRidgeClassifier(AdditiveMap(Chi2()))], ids=repr
)
def test_chunks(model):
    X, y = load_digits(return_X_y=True)
    model = clone(model).set_params(probability=True)
    memory = clone(model).fit(X[:1200], y[:1200]).predict_proba(X[1200:])
    chunks = [(X[b : b + 400], y[b : b + 400]) for b in range(0, 1200, 400)]
    streamed = clone(model).fit(as_chunks(chunks)).predict_proba(as_chunks([X[1200:]]))
    there, here = log_loss(y[1200:], streamed), log_loss(y[1200:], memory)
    assert there < here + 0.02


def test_codes():
    X, y = load_digits(return_X_y=True)
    model = MapSVC(ProductQuantizer(n_words=16, random_state=0), C=1e-3, probability=True)
    assert log_loss(y[1200:], model.fit(X[:1200], y[:1200]).predict_proba(X[1200:])) < 1


def test_partial_fit_of_a_ridge():
    X, y = IRIS
    model = MapRidgeClassifier(probability=True, keep_sums=True)
    model.partial_fit(X[::2], y[::2], classes=[0, 1, 2]).partial_fit(X[1::2], y[1::2])
    assert log_loss(y, model.predict_proba(X)) < 0.5


@pytest.mark.parametrize("options", [{}, {"class_weight": {0: 1.0, 1: 2.0, 2: 3.0}}], ids=str)
@pytest.mark.parametrize("wide", [False, True])
def test_rows_of_a_ridge_are_left_out_one_by_one(options, wide, monkeypatch):
    X, y = IRIS
    if wide:  # more features than rows
        X = FourierMap(Gaussian(), 200, random_state=0).fit_transform(X)
    kept = {}

    def spy(model, scores, labels, weights):
        kept["scores"] = scores

    monkeypatch.setattr(MapRidgeClassifier, "_keep_calibration", spy)
    model = MapRidgeClassifier(alpha=0.5, **options)
    clone(model).set_params(probability=True).fit(X, y)
    for i in (0, 70, 149):
        without = clone(model).fit(np.delete(X, i, axis=0), np.delete(y, i))
        expected = without.decision_function(X[i : i + 1])[0]
        np.testing.assert_allclose(kept["scores"][i], expected, rtol=1e-6)


@pytest.mark.parametrize("class_weight", [None, {0: 1.0, 1: 2.0, 2: 3.0}])
def test_weights_of_fewer_rows_than_features(class_weight):
    X, y = IRIS
    X = FourierMap(Gaussian(), 400, random_state=0).fit_transform(X)
    weight = np.random.default_rng(0).integers(0, 3, 150)
    options = {"alpha": 0.5, "class_weight": class_weight, "probability": True}
    weighted = MapRidgeClassifier(**options).fit(X, y, sample_weight=weight)
    twice = MapRidgeClassifier(**options).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    found, expected = (m.predict_proba(X) for m in (weighted, twice))
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_of_many_rows_a_ridge_leaves_out_a_tenth(monkeypatch):
    X = np.random.default_rng(0).random((9000, 2))
    kept = []
    monkeypatch.setattr(
        MapRidgeClassifier, "_keep_calibration", lambda *given: kept.append(given[1].shape)
    )
    MapRidgeClassifier(probability=True).fit(X, X[:, 0] > X[:, 1])
    MapRidgeClassifier(probability=True).fit(X[:700], X[:700, 0] > X[:700, 1])
    assert kept == [(900, 1), (700, 1)]


def test_shifted_scores_of_a_ridge_keep_their_probabilities():
    X, y = IRIS
    options = {"alpha": 1.0, "probability": True}
    plain, shifted = (
        MapRidgeClassifier(**options, calibrate_rank=rank).fit(X, y) for rank in (None, 50)
    )
    assert not np.allclose(plain.intercept_, shifted.intercept_)
    before, after = (m.calibration_.predict_proba(m.decision_function(X)) for m in (plain, shifted))
    np.testing.assert_allclose(before, after)


def test_lasso_has_probabilities():
    X, y = IRIS
    model = MapRidgeClassifier(penalty="lasso", probability=True).fit(X, y)
    assert log_loss(y, model.predict_proba(X)) < 0.5


# the calibration by itself
def two_classes(n=4000, seed=0):
    random = np.random.default_rng(seed)
    scores = random.normal(size=n)
    p = 1 / (1 + np.exp(-(3 * scores - 1)))
    return scores, (random.random(n) < p).astype(int), p


def test_a_sigmoid_is_found():
    scores, y, p = two_classes()
    calibration = ScoreCalibration().fit(scores, y)
    assert calibration.method_ == "sigmoid"
    np.testing.assert_allclose(calibration.coef_, 3, atol=0.2)
    np.testing.assert_allclose(calibration.intercept_, -1, atol=0.15)
    np.testing.assert_allclose(calibration.predict_proba(scores)[:, 1], p, atol=0.03)
    pair = np.column_stack([-scores / 2, scores / 2])
    both = ScoreCalibration().fit(pair, y)
    np.testing.assert_allclose(both.predict_proba(pair), calibration.predict_proba(scores))


def test_a_softmax_is_found():
    random = np.random.default_rng(0)
    scores = random.normal(size=(6000, 4))
    logits = 2 * scores + np.array([0, 0.5, -0.5, 0])
    y = (logits + random.gumbel(size=logits.shape)).argmax(axis=1)
    calibration = ScoreCalibration().fit(scores, y)
    assert calibration.method_ == "softmax"
    np.testing.assert_allclose(calibration.coef_, 2, atol=0.1)
    centered = calibration.intercept_ - calibration.intercept_.mean()
    np.testing.assert_allclose(centered, [0, 0.5, -0.5, 0], atol=0.1)
    each = ScoreCalibration("sigmoid").fit(scores, y)
    assert each.method_ == "sigmoid"
    np.testing.assert_allclose(each.predict_proba(scores).sum(axis=1), 1)
    assert log_loss(y, calibration.predict_proba(scores)) < log_loss(y, each.predict_proba(scores))


def test_isotonic_needs_rows():
    scores, y, p = two_classes(8000)
    calibration = ScoreCalibration("isotonic").fit(scores, y)
    assert calibration.method_ == "isotonic"
    found = calibration.predict_proba(scores)
    peer = IsotonicRegression(out_of_bounds="clip").fit(scores, y).predict(scores)
    np.testing.assert_allclose(found[:, 1], peer)
    assert np.abs(found[:, 1] - p).mean() < 0.03
    assert ScoreCalibration("isotonic").fit(scores[:500], y[:500]).method_ == "sigmoid"


def test_isotonic_of_several_classes():
    random = np.random.default_rng(0)
    scores = random.normal(size=(6000, 3))
    y = (3 * scores + random.gumbel(size=scores.shape)).argmax(axis=1)
    calibration = ScoreCalibration("isotonic").fit(scores, y)
    found = calibration.predict_proba(np.vstack([scores, np.full((1, 3), -99.0)]))
    assert calibration.method_ == "isotonic"
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert np.mean(-np.log(np.maximum(found[np.arange(6000), y], 1e-6))) < 0.7


def test_scores_that_say_nothing_or_the_contrary():
    y = np.array([0, 1] * 20)
    for scores in (np.zeros(40), -y.astype(float)):
        found = ScoreCalibration().fit(scores, y).predict_proba(scores)
        np.testing.assert_allclose(found, 0.5, atol=1e-6)
    found = ScoreCalibration().fit(np.where(y, 1e8, -1e8), y).predict_proba([1e8])
    assert 0.9 < found[0, 1] < 1


def test_rows_that_were_never_left_out_do_not_count():
    scores, y, _ = two_classes(500)
    some = ScoreCalibration().fit(scores[:300], y[:300])
    scores[300:] = np.nan
    every = ScoreCalibration().fit(scores, y)
    np.testing.assert_array_equal(some.coef_, every.coef_)


def test_weights_of_a_calibration():
    scores, y, _ = two_classes(300)
    weight = np.random.default_rng(2).integers(0, 3, 300)
    twice = ScoreCalibration().fit(np.repeat(scores, weight), np.repeat(y, weight))
    weighted = ScoreCalibration().fit(scores, y, weight)
    np.testing.assert_allclose(weighted.coef_, twice.coef_, rtol=1e-8)
    np.testing.assert_allclose(weighted.intercept_, twice.intercept_, rtol=1e-8)


def test_errors():
    with pytest.raises(ValueError, match="method"):
        ScoreCalibration("platt").fit([0.0, 1.0], [0, 1])
    with pytest.raises(ValueError, match="shape"):
        ScoreCalibration().fit(np.zeros((4, 3)), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="label"):
        ScoreCalibration().fit([0.0, 1.0], [0, 2], classes=[0, 1])
    assert repr(ScoreCalibration("sigmoid")) == "ScoreCalibration(method='sigmoid')"


# rows left out
def test_copies_are_left_out_together():
    random = np.random.default_rng(0)
    X, y = random.integers(0, 3, (400, 3)).astype(float), random.integers(0, 3, 400)
    parts = list(parts_left_out(row_keys(X), y))
    assert len(parts) == 5  # of few rows, all
    assert (np.sum(parts, axis=0) == 1).all()
    for part in parts:
        ours = {(*row, label) for row, label in zip(X[part], y[part], strict=True)}
        others = {(*row, label) for row, label in zip(X[~part], y[~part], strict=True)}
        assert not ours & others


def test_many_rows_are_not_all_left_out():
    random = np.random.default_rng(0)
    X, y = random.random((20_000, 2)), random.integers(0, 4, 20_000)
    parts = list(parts_left_out(row_keys(X), y))
    assert 1500 <= np.sum(parts) < 4000
    assert len(parts) == 1
    assert np.unique(y[parts[0]]).size == 4
    few = list(parts_left_out(row_keys(X), y, 1000, 3, 16))
    assert [int(part.sum()) for part in few] == [pytest.approx(20_000 / 16, abs=4)]


def test_keys_of_whole_numbers():
    X = np.random.default_rng(0).integers(0, 3, (300, 5)).astype(np.uint8)
    keys = row_keys(X)
    assert np.unique(keys).size == np.unique(X, axis=0).shape[0]
    for same in (sp.csr_array(X), X.astype(np.int32), X[:, ::-1][:, ::-1]):
        np.testing.assert_array_equal(row_keys(same), keys)


def test_rows_of_the_same_values_can_count_as_different():
    y = np.repeat([0, 1, 2], 100)
    parts = list(parts_left_out(separate_keys(300), y))
    assert [part.sum() for part in parts] == [60] * 5


def test_keys_of_sparse_rows():
    X = sp.random_array((50, 20), density=0.2, rng=np.random.default_rng(0), format="csr")
    keys = row_keys(X)
    assert np.unique(keys).size == np.unique(X.toarray(), axis=0).shape[0]
    np.testing.assert_array_equal(keys[::-1], row_keys(X[::-1].tocsr()))
