"""Learning from sums: scikit-learn's answers, however the rows are cut into chunks."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Lasso, Ridge, RidgeClassifier, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from hilbin.estimators import MapRidge, MapRidgeClassifier
from hilbin.kernels import Chi2, Exponential, Gaussian, Hellinger, Intersection
from hilbin.maps import AdditiveMap, FourierMap, SparseMap
from hilbin.stream import as_chunks

FOURIER = FourierMap(Gaussian(0.1), 30, kind="gaussian", random_state=1)


@parametrize_with_checks(
    [
        MapRidge(),
        MapRidge(n_components=0.99, keep_sums=True),
        MapRidge(alpha="auto"),
        MapRidge(alpha=0.01, penalty="lasso"),
        MapRidge(alpha=[0.1, 1.0], alpha_selection="loo"),
        MapRidge(FOURIER),
        MapRidgeClassifier(),
        MapRidgeClassifier(alpha="auto", n_components=0.99, keep_sums=True),
        MapRidgeClassifier(alpha=0.01, penalty="lasso"),
        MapRidgeClassifier(FOURIER, alpha=[0.1, 1.0], alpha_selection="loo"),
        MapRidgeClassifier(column_groups=[("all", slice(None), None)], keep_sums=True),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return 10 * X + 3, np.column_stack([y, y**0.5])


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:600], y[:600]


def split(X, y, size):
    return [(X[i : i + size], y[i : i + size]) for i in range(0, len(X), size)]


@pytest.mark.parametrize("size", [7, 100, 1000])
@pytest.mark.parametrize("k", [None, 4])
def test_chunks_are_principal_components_and_ridge(diabetes, size, k):
    X, Y = diabetes
    theirs = make_pipeline(*([PCA(k, svd_solver="full")] if k else []), Ridge(2.0)).fit(X, Y)
    found = MapRidge(alpha=2.0, n_components=k).fit(split(X, Y, size))
    np.testing.assert_allclose(found.predict(X), theirs.predict(X), rtol=1e-8)
    assert found.coef_.shape == (2, 10)
    assert found.gap_ < 1e-8 * found.objective_
    whole = MapRidge(alpha=2.0, n_components=k).fit(X, Y)
    np.testing.assert_allclose(found.coef_, whole.coef_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.intercept_, whole.intercept_, rtol=1e-8)


def test_one_target_has_one_dimension(diabetes):
    X, Y = diabetes
    found = MapRidge().fit(X, Y[:, 0])
    assert found.coef_.shape == (10,)
    assert isinstance(found.intercept_, float)
    assert found.predict(X).shape == (len(X),)
    assert MapRidge().fit(split(X, Y[:, 0], 50)).predict(X).shape == (len(X),)
    assert MapRidge().fit(X, Y[:, :1]).predict(X).shape == (len(X), 1)


@pytest.mark.parametrize("convert", [sp.csr_array, sp.csr_matrix, np.float32, pd.DataFrame])
def test_kinds_of_rows(diabetes, convert):
    X, Y = diabetes
    X = np.float32(X)
    plain, found = MapRidge().fit(np.float64(X), Y), MapRidge().fit(convert(X), Y)
    np.testing.assert_allclose(found.coef_, plain.coef_, rtol=1e-8)
    np.testing.assert_allclose(found.predict(convert(X)), plain.predict(np.float64(X)), rtol=1e-6)


def test_files(diabetes, tmp_path):
    X, Y = diabetes
    for k, (rows, targets) in enumerate(split(X, Y[:, 0], 100)):
        np.save(tmp_path / f"X_{k}.npy", rows)
        np.save(tmp_path / f"y_{k}.npy", targets)
    found = MapRidge(memory=0.01).fit(tmp_path)
    whole = MapRidge().fit(X, Y[:, 0])
    np.testing.assert_allclose(found.coef_, whole.coef_, rtol=1e-8)
    np.testing.assert_allclose(found.predict(tmp_path), whole.predict(X), rtol=1e-8)
    with pytest.raises(ValueError, match="has 3 features, but MapRidge is expecting 10"):
        found.predict([X[:5, :3]])


@pytest.mark.parametrize("alpha_selection", ["gcv", "loo"])
def test_the_best_penalty(diabetes, alpha_selection):
    X, Y = diabetes
    alphas = np.logspace(-3, 4, 8)
    found = MapRidge(alpha=alphas, alpha_selection=alpha_selection).fit(split(X, Y, 90))
    assert found.alpha_ == found.alphas_[found.errors_.argmin()]
    np.testing.assert_allclose(found.coef_, Ridge(found.alpha_).fit(X, Y).coef_, rtol=1e-8)
    if alpha_selection == "loo":
        theirs = RidgeCV(alphas, store_cv_results=True).fit(X, Y)
        np.testing.assert_allclose(
            found.errors_, theirs.cv_results_.mean(axis=0).sum(axis=0), rtol=1e-8
        )
        assert found.alpha_ == theirs.alpha_


@pytest.mark.parametrize("alpha_selection", ["gcv", "loo"])
@pytest.mark.parametrize("alpha", ["auto", 3.0])
def test_fewer_rows_than_features(digits, alpha, alpha_selection, monkeypatch):
    """The dual gives the model of the sums, in chunks, with weights and in files alike."""
    X, y = digits[0][:150], digits[1][:150]
    weight = np.random.default_rng(0).integers(0, 3, 150).astype(float)
    feature_map = FrozenEstimator(AdditiveMap(Chi2(), 3).fit(X))
    model = MapRidgeClassifier(feature_map, alpha, alpha_selection=alpha_selection)
    dual = clone(model).fit(X, y, sample_weight=weight)
    chunks = [(X[i : i + 40], y[i : i + 40], weight[i : i + 40]) for i in range(0, 150, 40)]
    parts = clone(model).fit(as_chunks(chunks))
    sparse = clone(model).fit(sp.csr_array(X), y, sample_weight=weight)
    monkeypatch.setattr(MapRidgeClassifier, "_has_few_rows", lambda *_: False)
    primal = clone(model).fit(X, y, sample_weight=weight)
    for found in (dual, parts, sparse):
        assert found.alpha_ == pytest.approx(primal.alpha_)
        assert found.n_components_ == primal.n_components_ == 192
        np.testing.assert_allclose(
            found.decision_function(X), primal.decision_function(X), rtol=1e-6, atol=1e-6
        )
        if alpha == "auto" and alpha_selection == "loo":
            np.testing.assert_allclose(found.errors_, primal.errors_, rtol=1e-4)


def test_fewer_rows_than_features_make_no_matrix_of_features():
    """Of 20,000 features it would have 3 GB."""
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 20_000)), rng.random(60)
    assert MapRidge().fit(X, y).coef_.shape == (20_000,)


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_the_default_penalty_follows_the_scale(digits, scale):
    X, y = digits
    for rows in (X, X[:50]):
        labels = y[: len(rows)]
        plain = MapRidgeClassifier().fit(rows, labels)
        found = MapRidgeClassifier().fit(scale * rows, labels)
        np.testing.assert_allclose(found.alpha_, scale**2 * plain.alpha_, rtol=1e-8)
        np.testing.assert_array_equal(found.predict(scale * X), plain.predict(X))


def test_leaving_out_rows_on_components(digits):
    X, y = digits
    found = MapRidgeClassifier(alpha=[1.0, 1e3], alpha_selection="loo", n_components=9).fit(X, y)
    Z = PCA(9, svd_solver="full").fit_transform(X)
    T = np.where(y[:, None] == np.arange(10), 1.0, -1.0)
    theirs = RidgeCV([1.0, 1e3], store_cv_results=True).fit(Z, T)
    np.testing.assert_allclose(
        found.errors_, theirs.cv_results_.mean(axis=0).sum(axis=0), rtol=1e-8
    )


def test_lasso(diabetes):
    X, Y = diabetes
    found = MapRidge(alpha=1.0, penalty="lasso", tol=1e-13).fit(split(X, Y[:, 0], 90))
    theirs = Lasso(1.0, tol=1e-12).fit(X, Y[:, 0])
    np.testing.assert_allclose(found.coef_, theirs.coef_, atol=1e-6)
    chosen = MapRidge(alpha="auto", penalty="lasso").fit(X, Y[:, 0])
    assert chosen.alphas_.min() < chosen.alpha_ < chosen.alphas_.max()
    assert (
        not MapRidge(alpha=chosen.alphas_.max() * 1.01, penalty="lasso").fit(X, Y[:, 0]).coef_.any()
    )
    with pytest.warns(ConvergenceWarning, match="max_iter=1 rounds"):
        MapRidge(alpha=1e-5, penalty="lasso", tol=1e-15, max_iter=1).fit(X, Y)


def test_group_lasso_leaves_out_a_group(diabetes):
    X, Y = diabetes
    noise = np.random.default_rng(0).normal(size=(len(X), 5))
    groups = [("real", slice(0, 10), None), ("noise", slice(10, 15), None)]
    model = MapRidge(alpha=3.0, penalty="group_lasso", column_groups=groups)
    for k in (None, 4):
        found = clone(model).set_params(n_components=k).fit(np.hstack([X, noise]), Y[:, 0])
        assert found.widths_ == [10, 5]
        assert found.coef_[:10].any()
        assert not found.coef_[10:].any()


def test_groups_with_their_own_kernels_and_components(digits):
    """Two passes equal maps, a PCA of each, and ridge on them side by side."""
    X, y = digits
    groups = [
        ("top", slice(0, 32), AdditiveMap(Hellinger())),
        ("bottom", np.arange(32, 64), AdditiveMap(Chi2(), 2, parameters="universal")),
        ("ends", [0, 5, -1], None),
    ]
    wanted = {"top": 6, "bottom": 9}
    found = MapRidge(column_groups=groups, n_components=wanted, alpha=0.5)
    found.fit(split(X, y.astype(float), 170))
    parts = [
        PCA(6, svd_solver="full").fit_transform(groups[0][2].fit_transform(X[:, :32])),
        PCA(9, svd_solver="full").fit_transform(groups[1][2].fit_transform(X[:, 32:])),
        X[:, [0, 5, -1]],
    ]
    Z = np.hstack(parts)
    np.testing.assert_allclose(
        found.predict(X), Ridge(0.5).fit(Z, y.astype(float)).predict(Z), rtol=1e-7, atol=1e-7
    )
    assert found.coef_.shape == (32 + 64 + 3,)
    assert found.n_components_ == 18


def test_columns_by_name(diabetes):
    X, Y = diabetes
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(10)])
    groups = [("a", ["c3", "c1"], None), ("b", "c7", None)]
    found = MapRidge(column_groups=groups).fit(frame, Y)
    np.testing.assert_allclose(found.coef_, Ridge().fit(X[:, [3, 1, 7]], Y).coef_)


def test_maps_are_fitted_to_a_sample_that_chunks_do_not_change(digits):
    X, y = digits
    kernel = Exponential(Chi2(), gamma="median")
    model = MapRidgeClassifier(FourierMap(kernel, 60), n_fit_samples=100)
    one = clone(model).fit(X, y)
    many = clone(model).fit(split(X, y, 71))
    np.testing.assert_allclose(one.decision_function(X), many.decision_function(X), atol=1e-8)
    other = clone(model).set_params(random_state=1).fit(X, y)
    assert not np.allclose(one.decision_function(X), other.decision_function(X))


def test_a_frozen_map_is_not_fitted(digits):
    X, y = digits
    ready = FourierMap(Gaussian(1e-3), 40, random_state=0).fit(X[:50])
    passes = []
    found = MapRidge(FrozenEstimator(ready), alpha=1.0).fit(
        as_chunks(X, y, rows=100), callback=lambda name, done, rows: passes.append((name, done))
    )
    assert passes == [("sums", k * 100) for k in range(1, 7)]
    expected = Ridge().fit(ready.transform(X), y).predict(ready.transform(X))
    np.testing.assert_allclose(found.predict(X), expected, rtol=1e-7)


def test_maps_with_an_inner_product_of_their_own(digits):
    X, y = digits
    feature_map = SparseMap(Intersection(), 5)
    with pytest.raises(ValueError, match=r"SparseMap gives coordinates.*orthonormal=True"):
        MapRidgeClassifier(feature_map).fit(X, y)
    with pytest.raises(ValueError, match=r"SparseMap gives coordinates.*orthonormal=True"):
        MapRidgeClassifier(FrozenEstimator(feature_map.fit(X))).fit(X, y)
    feature_map.set_params(orthonormal=True)
    assert MapRidgeClassifier(feature_map).fit(X, y).score(X, y) > 0.95


@pytest.mark.parametrize("size", [50, 1000])
@pytest.mark.parametrize("weights", [None, "balanced", {3: 5.0}])
@pytest.mark.parametrize("n_classes", [2, 10])
def test_classifier_as_scikit_learn(digits, size, weights, n_classes):
    X, y = digits
    X, y = X[(y < n_classes) | (y == 3)], y[(y < n_classes) | (y == 3)]
    if n_classes == 2:
        y = np.where(y == 3, 3, 0)
    names = np.array([f"digit {k}" for k in range(10)])
    if isinstance(weights, dict):
        weights = {"digit 3": 5.0}
    theirs = RidgeClassifier(5.0, class_weight=weights).fit(X, names[y])
    found = MapRidgeClassifier(alpha=5.0, class_weight=weights)
    found.fit(split(X, names[y], size))
    np.testing.assert_allclose(
        found.decision_function(X), theirs.decision_function(X), rtol=1e-8, atol=1e-8
    )
    np.testing.assert_array_equal(found.predict(X), theirs.predict(X))
    assert found.classes_.tolist() == theirs.classes_.tolist()


def test_unlabeled_rows_join_the_components(digits):
    X, y = digits
    everything = PCA(12, svd_solver="full").fit(X)
    theirs = RidgeClassifier(1.0).fit(everything.transform(X[:200]), y[:200])
    expected = theirs.decision_function(everything.transform(X))
    partly = np.where(np.arange(600) < 200, y, -1)
    model = MapRidgeClassifier(alpha=1.0, n_components=12)
    fits = [
        clone(model).fit(X[:200], y[:200], unlabeled=X[200:]),
        clone(model).fit(X[:200], y[:200], unlabeled=[X[200:310], X[310:]]),
        clone(model).fit(X, partly, unlabeled=True),
        clone(model).fit(split(X, partly, 90), unlabeled=True),
        clone(model).fit(X[:500], partly[:500], unlabeled=True, sample_weight=np.ones(500)),
    ]
    for found in fits[:4]:
        np.testing.assert_allclose(found.decision_function(X), expected, rtol=1e-8, atol=1e-8)
        assert found.classes_.tolist() == list(range(10))
    assert not np.allclose(fits[4].coef_, fits[0].coef_)
    assert -1 in clone(model).fit(X, partly).classes_


def test_unlabeled_rows_join_the_components_of_groups(digits):
    X, y = digits
    groups = [("top", slice(0, 32), None), ("bottom", slice(32, 64), None)]
    model = MapRidgeClassifier(alpha=1.0, column_groups=groups, n_components=7)
    parts = [PCA(7, svd_solver="full").fit(X[:, :32]), PCA(7, svd_solver="full").fit(X[:, 32:])]
    Z = np.hstack([parts[0].transform(X[:, :32]), parts[1].transform(X[:, 32:])])
    expected = RidgeClassifier(1.0).fit(Z[:200], y[:200]).decision_function(Z)
    partly = np.where(np.arange(600) < 200, y, -1)
    for found in (
        clone(model).fit(X[:200], y[:200], unlabeled=X[200:]),
        clone(model).fit(X, partly, unlabeled=True),
    ):
        np.testing.assert_allclose(found.decision_function(X), expected, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("k", [None, 9])
def test_partial_fit_adds_rows(digits, k):
    X, y = digits
    weight = np.random.default_rng(0).random(600)
    whole = MapRidgeClassifier(n_components=k).fit(X, y, sample_weight=weight)
    found = MapRidgeClassifier(n_components=k, keep_sums=True)
    for part in (slice(0, 100), slice(100, 130), slice(130, 600)):
        found.partial_fit(X[part], y[part], classes=range(10), sample_weight=weight[part])
    np.testing.assert_allclose(found.coef_, whole.coef_, rtol=1e-7, atol=1e-9)
    regression = MapRidge(n_components=k, keep_sums=True).fit(X[:90], y[:90])
    regression.partial_fit(X[90:], y[90:])
    np.testing.assert_allclose(
        regression.coef_, MapRidge(n_components=k).fit(X, y).coef_, rtol=1e-7, atol=1e-9
    )


@pytest.mark.parametrize("n_classes", [2, 10])
def test_calibration_by_rank(digits, n_classes):
    X, y = digits
    y = np.minimum(y, n_classes - 1)
    plain = MapRidgeClassifier(alpha=1.0).fit(X, y)
    found = MapRidgeClassifier(alpha=1.0, calibrate_rank=30).fit(split(X, y, 77))
    scores, before = found.decision_function(X), plain.decision_function(X)
    if n_classes > 2:
        np.testing.assert_allclose(np.sort(scores, axis=0)[-30], 0, atol=1e-9)
    else:
        high, low = np.sort(before)[-30], np.sort(-before)[-30]
        np.testing.assert_allclose(scores, before - (high - low) / 2, atol=1e-9)
    np.testing.assert_allclose(found.coef_, plain.coef_)
    weight = np.arange(600) % 3
    weighted = MapRidgeClassifier(alpha=1.0, calibrate_rank=30).fit(X, y, sample_weight=weight)
    repeated = MapRidgeClassifier(alpha=1.0, calibrate_rank=30).fit(
        np.repeat(X, weight, axis=0), np.repeat(y, weight)
    )
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, rtol=1e-8)
    with pytest.raises(ValueError, match="fewer rows than the rank, 1000"):
        MapRidgeClassifier(alpha=1.0, calibrate_rank=1000).fit(X, y)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupted_fit_goes_on(digits, tmp_path, n_jobs):
    X, y = digits
    kernel = Exponential(Chi2(), gamma="median")
    model = MapRidgeClassifier(FourierMap(kernel, 30), checkpoint=tmp_path / "work", n_jobs=n_jobs)
    chunks = as_chunks(X, y, rows=100)
    seen = []

    def stop(name, done, rows):
        seen.append((name, done))
        if name == "sums" and done == 300:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        clone(model).fit(chunks, callback=stop)
    begun = len(seen)
    found = clone(model).fit(chunks, callback=lambda name, done, rows: seen.append((name, done)))
    assert [done for name, done in seen[begun:] if name == "sums"] == [300, 400, 500, 600]
    assert {done for name, done in seen[begun:] if name == "survey"} <= {600}
    np.testing.assert_allclose(
        found.coef_, clone(model).set_params(checkpoint=None).fit(X, y).coef_, rtol=1e-8, atol=1e-9
    )
    assert not (tmp_path / "work").exists()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": -1}, "alpha must be a number >= 0, got -1"),
        ({"alpha": 0, "penalty": "lasso"}, "alpha must be a number > 0, got 0"),
        ({"alpha": [1, "x"]}, "alpha must be a number >= 0, got 'x'"),
        ({"alpha": "best"}, "alpha, if not numbers, must be one of"),
        ({"penalty": "l2"}, "penalty must be one of"),
        ({"alpha_selection": "cv"}, "alpha_selection must be one of"),
        (
            {"alpha_selection": "loo", "penalty": "lasso"},
            'alpha_selection="loo" is for penalty="ridge"',
        ),
        ({"penalty": "group_lasso"}, "give column_groups"),
        ({"n_components": 11}, "n_components must be a whole number from 1 to 10"),
        ({"n_components": {"x": 2}}, "n_components names 'x'"),
        ({"n_fit_samples": 0}, "n_fit_samples must be a whole number >= 1"),
        ({"memory": -1}, "memory, if not None, must be"),
        ({"tol": 0}, "tol must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"column_groups": []}, "column_groups is empty"),
        ({"column_groups": [3]}, r"column_groups must be tuples \(name, columns, map\), got 3"),
        ({"column_groups": [("a", 0)]}, r"column_groups must be tuples \(name, columns, map\)"),
        ({"column_groups": [("a", 0, None)] * 2}, "two of the name 'a'"),
        ({"column_groups": [("a", 10, None)]}, "columns 10 of 'a' are not among the 10 columns"),
        ({"column_groups": [("a", "c", None)]}, "columns 'c' of 'a' are not among"),
        ({"column_groups": [("a", [], None)]}, "'a' has no columns"),
        (
            {"column_groups": [("a", 0, None)], "feature_map": FOURIER},
            "give feature_map or column_groups, not both",
        ),
    ],
)
def test_bad_parameters(diabetes, parameters, message):
    with pytest.raises(ValueError, match=message):
        MapRidge(**parameters).fit(*diabetes)


def test_what_cannot_be_learned(diabetes, digits):
    X, y = digits
    model = MapRidgeClassifier(keep_sums=True)
    with pytest.raises(ValueError, match="unlabeled rows count for the components alone"):
        model.fit(X, y, unlabeled=X)
    with pytest.raises(ValueError, match="unlabeled rows count for the components alone"):
        model.fit(X, y, unlabeled=True)
    with pytest.raises(ValueError, match=r"at least two classes.*1 class: \[7\]"):
        model.fit([(X, np.full(600, 7))])
    with pytest.raises(ValueError, match="chunk 0: there are no targets"):
        model.fit([X])
    with pytest.raises(ValueError, match=r"(?i)sample.weight"):
        model.fit(X, y, sample_weight=np.zeros(600))
    with pytest.raises(ValueError, match="classes must be given"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match=r"y has the label .*9.*, not one of"):
        model.partial_fit(X, y, classes=range(9))
    with pytest.raises(AttributeError, match="partial_fit"):
        MapRidge().fit(*diabetes).partial_fit(*diabetes)
    with pytest.raises(ValueError, match="the sums of fit were not kept"):
        MapRidge().fit(*diabetes).set_params(keep_sums=True).partial_fit(*diabetes)
    with pytest.raises(ValueError, match="need all rows"):
        MapRidgeClassifier(calibrate_rank=2, keep_sums=True).partial_fit(X, y, classes=range(10))
    for parameters, message in (
        ({"alpha": [1, 2], "alpha_selection": "loo"}, "needs all rows again"),
        ({"column_groups": [("a", 0, None), ("b", 1, None)], "n_components": 1}, "take two passes"),
    ):
        with pytest.raises(ValueError, match=message):
            MapRidge(keep_sums=True, **parameters).partial_fit(*diabetes)
