"""Kernel ridge regression: scikit-learn's where that has it, and what it has not."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.kernel_ridge import KernelRidge as TheirRidge
from sklearn.linear_model import RidgeCV
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_predict

from hilbin.estimators import KernelRidge
from hilbin.kernels import (
    GCS,
    Chi2,
    Exponential,
    Gaussian,
    Intersection,
    Linear,
    NotPositiveDefiniteWarning,
    Sparsity,
)
from hilbin.persist import load, save

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(120, 3))
Y = np.column_stack([np.sin(6 * X[:, 0]) + 20, X[:, 1] * X[:, 2]]) + 0.05 * RNG.normal(
    size=(120, 2)
)
NEW = RNG.uniform(size=(30, 3))
KERNELS = [Gaussian(2.0), Intersection(), Exponential(Chi2(), 3.0), GCS(0.4)]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("y", [Y[:, 0], Y, Y[:, :1]], ids=["one", "two", "column"])
def test_without_intercept_as_scikit_learn(kernel, y):
    weight = RNG.integers(0, 3, 120).astype(float)
    ours = KernelRidge(kernel, 0.3, fit_intercept=False).fit(X, y, weight)
    theirs = TheirRidge(0.3, kernel="precomputed").fit(kernel(X), y, weight)
    assert ours.dual_coef_.shape == theirs.dual_coef_.shape
    expected = theirs.predict(kernel(NEW, X))
    np.testing.assert_allclose(ours.predict(NEW), expected, rtol=1e-6, atol=1e-7)
    assert np.all(np.asarray(ours.intercept_) == 0)
    assert ours.converged_
    assert np.all(ours.gap_ <= 1e-15 * np.asarray(ours.objective_))


def test_the_linear_kernel_is_ridge_regression():
    alphas = np.logspace(-3, 2, 11)
    theirs = RidgeCV(alphas, store_cv_results=True).fit(X, Y)
    ours = KernelRidge(Linear(), alphas).fit(X, Y)
    assert ours.alpha_ == theirs.alpha_
    np.testing.assert_allclose(ours.intercept_ + NEW @ (X.T @ ours.dual_coef_), theirs.predict(NEW))
    np.testing.assert_allclose(ours.predict(NEW), theirs.predict(NEW))
    np.testing.assert_allclose(ours.loo_errors_, theirs.cv_results_.mean(axis=0).T)
    each = RidgeCV(alphas, alpha_per_target=True).fit(X, Y)
    ours = KernelRidge(Linear(), alphas, alpha_per_target=True).fit(X, Y)
    np.testing.assert_array_equal(ours.alpha_, each.alpha_)
    np.testing.assert_allclose(ours.predict(NEW), each.predict(NEW))


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_leave_one_out_is_cross_validation(fit_intercept):
    model = KernelRidge(Gaussian(2.0), [1e-3, 0.1, 10.0], fit_intercept=fit_intercept)
    model.fit(X, Y[:, 0])
    assert model.alpha_ == model.alphas_[np.argmin(model.loo_errors_)]
    one = KernelRidge(Gaussian(2.0), model.alpha_, fit_intercept=fit_intercept)
    expected = cross_val_predict(one, X, Y[:, 0], cv=len(X))
    np.testing.assert_allclose(model.loo_predictions_, expected, rtol=1e-8)
    np.testing.assert_allclose(
        np.mean((model.loo_predictions_ - Y[:, 0]) ** 2), model.loo_errors_.min()
    )
    np.testing.assert_allclose(one.fit(X, Y[:, 0]).predict(NEW), model.predict(NEW))
    assert one.loo_errors_ is one.alphas_ is one.loo_predictions_ is None


@pytest.mark.parametrize("alpha", [0.1, [0.01, 1.0], "auto"], ids=str)
@pytest.mark.parametrize("kernel", [None, Gaussian("median"), Intersection()], ids=repr)
def test_weights_are_repetitions(kernel, alpha):
    weight = np.arange(120) % 4
    again = np.repeat(np.arange(120), weight)
    model = KernelRidge(kernel, alpha)
    one, whole = clone(model).fit(X, Y, weight), clone(model).fit(X[again], Y[again])
    assert one.kernel_ == whole.kernel_
    assert one.alpha_ == pytest.approx(whole.alpha_)
    np.testing.assert_allclose(one.predict(NEW), whole.predict(NEW), rtol=1e-7)
    if alpha != 0.1:
        np.testing.assert_allclose(one.loo_errors_, whole.loo_errors_, rtol=1e-5)
        np.testing.assert_allclose(one.loo_predictions_[again], whole.loo_predictions_, rtol=1e-6)


@settings(max_examples=20, deadline=None)
@given(shift=st.floats(-1e6, 1e6), scale=st.floats(1e-3, 1e6))
def test_targets_may_be_moved_and_scaled(shift, scale):
    plain = KernelRidge(Gaussian(2.0), 0.1).fit(X, Y)
    moved = KernelRidge(Gaussian(2.0), 0.1).fit(X, scale * Y + shift)
    unit = 1e-9 * (scale + abs(shift))
    np.testing.assert_allclose(
        moved.predict(NEW), scale * plain.predict(NEW) + shift, rtol=1e-9, atol=unit
    )


@pytest.mark.parametrize("kernel", [Gaussian(2.0), GCS(0.4)], ids=repr)
def test_every_way_to_give_a_kernel(kernel):
    expected = KernelRidge(kernel, 0.2).fit(X, Y).predict(NEW)
    given, new = kernel.gram(X), kernel.gram(NEW, X)
    tables = [(X, NEW, kernel), (sp.csr_array(X), sp.csr_array(NEW), kernel)]
    tables += [(given, new, "precomputed"), (X, NEW, lambda A, B: kernel.gram(A, B))]
    for rows, others, form in tables:
        found = KernelRidge(form, 0.2).fit(rows, Y).predict(others)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    theirs = KernelRidge(lambda A, B: rbf_kernel(A, B, gamma=2.0), 0.2).fit(X, Y).predict(NEW)
    if kernel == Gaussian(2.0):
        np.testing.assert_allclose(theirs, expected, rtol=1e-6)


def test_single_precision():
    wide = KernelRidge(Gaussian(2.0), [1e-3, 0.1]).fit(X, Y)
    narrow = KernelRidge(Gaussian(2.0), [1e-3, 0.1]).fit(X.astype(np.float32), Y)
    assert narrow.X_fit_.dtype == np.float32
    assert narrow.dual_coef_.dtype == np.float64
    np.testing.assert_allclose(narrow.predict(NEW.astype(np.float32)), wide.predict(NEW), atol=1e-3)


def test_a_compact_kernel_is_never_dense(monkeypatch):
    monkeypatch.setattr(sp.csr_array, "toarray", None)
    monkeypatch.setattr(sp.csr_array, "todense", None)
    model = KernelRidge(GCS(Sparsity(0.9)), 0.05).fit(X, Y)
    assert model.kernel_.gram(X).nnz < 0.2 * X.shape[0] ** 2
    assert model.n_iter_ > 1
    assert np.isfinite(model.predict(NEW)).all()


def test_prediction_by_bands():
    model = KernelRidge(Gaussian(2.0), 0.1).fit(X, Y[:, 0])
    given = KernelRidge("precomputed", 0.1).fit(Gaussian(2.0).gram(X), Y[:, 0])
    called = KernelRidge(Gaussian(2.0).gram, 0.1).fit(X, Y[:, 0])
    expected = model.predict(NEW)
    cross = Gaussian(2.0).gram(NEW, X)
    with config_context(working_memory=2 * 8 * 120 * 7 / 2**20):  # two rows at a time
        heights = [
            K.shape[0] for _, K in model.kernel_.tiles(NEW, X, memory=2 * 8 * 120 * 7 / 3 / 2**20)
        ]
        assert max(heights) == 2
        for found in (model.predict(NEW), given.predict(cross), called.predict(NEW)):
            np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_rows_are_the_models_own():
    rows = X.copy()
    model = KernelRidge(Gaussian(2.0)).fit(rows, Y)
    expected = model.predict(NEW)
    rows[:] = 0
    np.testing.assert_array_equal(model.predict(NEW), expected)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_grid_search_on_a_given_matrix(form):
    K = GCS(0.4).gram(X).toarray()
    search = GridSearchCV(KernelRidge("precomputed"), {"alpha": [0.01, 100.0]}, cv=3)
    search.fit(form(K), Y)
    assert search.best_params_ == {"alpha": 0.01}
    assert search.score(form(K), Y) > 0.8


def test_a_kernel_given_by_rules():
    model = KernelRidge().fit(X, Y)
    assert model.kernel_.gamma == pytest.approx(Gaussian("median").resolve(X).gamma)
    assert model.get_params()["kernel"] is None
    assert KernelRidge().fit(np.ones((5, 2)), np.arange(5.0)).predict([[1.0, 1.0]]) == 2


def test_no_penalty_interpolates():
    model = KernelRidge(Gaussian(20.0), 0.0).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), Y, rtol=1e-5)


@pytest.mark.parametrize(
    "model",
    [
        KernelRidge(GCS(Sparsity(0.8)), 0.1),
        KernelRidge("precomputed", [0.1, 1.0]),
        KernelRidge(Exponential(Chi2(), gamma="mean"), "auto", alpha_per_target=True),
    ],
    ids=repr,
)
def test_saved_and_loaded(model, tmp_path):
    rows, new = X, NEW
    if model.kernel == "precomputed":
        rows, new = Gaussian(2.0).gram(X), Gaussian(2.0).gram(NEW, X)
    model.fit(rows, Y)
    save(model, tmp_path / "model.hilbin")
    loaded = load(tmp_path / "model.hilbin")
    np.testing.assert_array_equal(loaded.predict(new), model.predict(new))
    np.testing.assert_array_equal(loaded.alpha_, model.alpha_)


@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        ({"alpha": -1.0}, "alpha must be a number >= 0"),
        ({"alpha": [1.0, 0.0]}, "each of several alpha must be a number > 0"),
        ({"alpha": []}, "alpha is empty"),
        ({"alpha": "best"}, "alpha, if not numbers, must be one of"),
        ({"kernel": "rbf"}, "kernel must be a kernel of"),
        ({"kernel": Gaussian}, "kernel is the class"),
        ({"tol": 0.0}, "tol must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"kernel": GCS(0.4), "alpha": [0.1, 1.0]}, "needs the eigenvalues.*sparse"),
        ({"kernel": GCS(0.4), "alpha": 0}, "needs the eigenvalues.*sparse"),
        ({"kernel": lambda A, B: np.ones((2, 2))}, r"shape \(2, 2\)"),
        ({"kernel": "precomputed"}, "square"),
    ],
)
def test_bad_parameters(parameters, complaint):
    model = KernelRidge(**parameters)
    with pytest.raises(ValueError, match=complaint):
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_bad_input():
    K = Gaussian(2.0).gram(X)
    model = KernelRidge("precomputed").fit(K, Y)
    with pytest.raises(ValueError, match="119 features"):
        model.predict(K[:, :-1])
    with pytest.raises(ValueError, match=r"X\[0, 1\] = nan"):
        model.predict(np.where(K[0, 1] == K, np.nan, K))
    lopsided = K.copy()
    lopsided[3, 5] += 0.5
    with pytest.raises(ValueError, match="not symmetric"):
        KernelRidge("precomputed").fit(lopsided, Y)
    with pytest.raises(ValueError, match=r"X\[0, 0\] is 0"):
        KernelRidge("precomputed").fit(sp.csr_array(K - np.diag(np.diag(K))), Y)
    with pytest.raises(ValueError, match=r"sample_weight\[1\] = -1"):
        KernelRidge().fit(X, Y, np.where(np.arange(120) == 1, -1, 1))
    with pytest.raises(ValueError, match="zero"):
        KernelRidge().fit(X, Y, np.zeros(120))
    with pytest.raises(ValueError, match="Negative values in data"):
        KernelRidge(Intersection()).fit(-X, Y)
    with pytest.raises(ValueError, match="1 sample"):
        KernelRidge(Gaussian(), "auto").fit(X[:1], Y[:1])


def test_an_indefinite_matrix_is_warned_of():
    K = np.minimum(Gaussian(2.0).gram(X), 0.2)  # no pair of rows tells
    assert np.linalg.eigvalsh(K)[0] < -0.05
    for alpha in (0.01, [0.01, 0.02]):
        with pytest.warns(NotPositiveDefiniteWarning, match="not a minimum"):
            model = KernelRidge("precomputed", alpha).fit(K, Y)
        assert np.isinf(model.gap_).all()
        assert not model.converged_
    with pytest.raises(ValueError, match="not positive semi-definite"):
        KernelRidge("precomputed", 0.01).fit(sp.csr_array(K), Y)


def test_too_few_iterations():
    with pytest.warns(ConvergenceWarning, match=r"max_iter=2 products did not suffice.*gap"):
        model = KernelRidge(GCS(0.5), 1e-3, max_iter=2).fit(X, Y)
    assert not model.converged_
    assert np.isfinite(model.predict(NEW)).all()
