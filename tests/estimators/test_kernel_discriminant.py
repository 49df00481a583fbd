"""Kernel discriminants against the generalized eigenproblem and scikit-learn's linear ones."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import centered_by_matrix, kernel_scatters, upto_signs
from scipy.linalg import eigh
from sklearn.datasets import load_digits, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.preprocessing import FunctionTransformer

import hilbin
from hilbin.estimators import KernelDiscriminant
from hilbin.kernels import (
    Chi2,
    Exponential,
    Gaussian,
    Hellinger,
    Linear,
    NotPositiveDefiniteWarning,
    repair_psd,
)
from hilbin.maps import AdditiveMap

X, Y = load_iris(return_X_y=True)
DIGITS, LABELS = load_digits(return_X_y=True)
WIDE = Gaussian(1 / np.median(np.sum((X[:, None] - X) ** 2, axis=2)[np.triu_indices(150, 1)]))


def test_check_values():
    model = KernelDiscriminant(WIDE).fit(X, Y)
    np.testing.assert_allclose(model.eigenvalues_, [3291.857, 9.553054], rtol=1e-5)
    assert model.reg_ == pytest.approx(5.562054e-4, rel=1e-6)
    K = WIDE.gram(X)
    within, _ = kernel_scatters(K, Y)
    assert np.linalg.matrix_rank(within, tol=1e-9) <= 147
    A = model.coef_  # sums to 0
    Kc = centered_by_matrix(K)
    np.testing.assert_allclose(A.T @ (within + model.reg_ * Kc) @ A, 150 * np.eye(2), atol=1e-5)


@given(seed=st.integers(0, 10**6), classes=st.integers(2, 4), reg=st.floats(1e-2, 1.0))
@settings(max_examples=25)
def test_it_is_the_generalized_eigenproblem(seed, classes, reg):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(classes), rng.integers(classes, size=20)])
    rows = rng.normal(size=(len(y), 3)) + y[:, None]
    model = KernelDiscriminant(Gaussian(0.3), reg).fit(rows, y)
    within, between = kernel_scatters(Gaussian(0.3).gram(rows), y)
    Kc = centered_by_matrix(Gaussian(0.3).gram(rows))
    values, U = np.linalg.eigh(Kc)
    U = U[:, values > 1e-9] / np.sqrt(values[values > 1e-9])  # an orthonormal basis of the span
    penalty = model.reg_ * np.eye(U.shape[1])
    ratios = eigh(U.T @ between @ U, U.T @ within @ U + penalty, eigvals_only=True)[::-1]
    found = model.eigenvalues_
    np.testing.assert_allclose(ratios[: found.size], found, rtol=1e-4, atol=1e-8)


def test_linear_discriminants_are_scikit_learns():
    peer = LinearDiscriminantAnalysis().fit(X, Y)
    theirs = peer.transform(X)
    means = np.array([theirs[k == Y].mean(axis=0) for k in range(3)])
    theirs /= (theirs - means[Y]).std(axis=0)  # older versions make it 147 / 150
    model = KernelDiscriminant(Linear(), 1e-6).fit(X, Y)
    upto_signs(model.transform(X), theirs, atol=1e-4)
    assert np.array_equal(model.predict(X), peer.predict(X))
    explicit = KernelDiscriminant(reg=0, feature_map=FunctionTransformer()).fit(X, Y)
    upto_signs(explicit.transform(X), theirs, atol=1e-9)
    assert np.array_equal(explicit.predict(X), peer.predict(X))


@pytest.mark.parametrize(("reg", "tolerance"), [(1e-6, 1e-6), (1e-3, 1e-8), (1e-2, 1e-9)])
def test_features_give_the_same_numbers(reg, tolerance):
    few, y = DIGITS[:200], LABELS[:200]
    exact = KernelDiscriminant(Hellinger(), reg).fit(few, y)
    features = KernelDiscriminant(reg=reg, feature_map=AdditiveMap(Hellinger())).fit(few, y)
    assert features.reg_ == pytest.approx(exact.reg_)
    np.testing.assert_allclose(features.eigenvalues_, exact.eigenvalues_, rtol=100 * tolerance)
    new = DIGITS[200:300]
    np.testing.assert_allclose(features.transform(new), exact.transform(new), atol=tolerance)


def test_it_classifies():
    kernel = Exponential(Chi2(), "mean")
    model = KernelDiscriminant(kernel).fit(DIGITS[:1000], LABELS[:1000])
    peer = LinearDiscriminantAnalysis().fit(DIGITS[:1000], LABELS[:1000])
    score = model.score(DIGITS[1000:], LABELS[1000:])
    assert score > 0.95
    assert score > peer.score(DIGITS[1000:], LABELS[1000:])


def test_prediction_is_the_nearest_mean_with_priors():
    y = np.where(Y == 0, 0, 1)
    for labels in (Y, y):
        model = KernelDiscriminant(WIDE, 0.1).fit(X, labels)
        T = model.transform(X)
        assert T.shape[1] == len(model.classes_) - 1
        means = np.array([T[labels == c].mean(axis=0) for c in model.classes_])
        np.testing.assert_allclose(model.means_, means, atol=1e-8)
        scores = np.log(model.priors_) - np.sum((T[:, None] - means) ** 2, axis=2) / 2
        assert np.array_equal(model.predict(X), scores.argmax(axis=1))


def test_a_class_of_one_row_given_matrices_and_sparse_rows():
    y = Y.copy()
    y[0] = 7
    model = KernelDiscriminant(WIDE, 1e-2).fit(X, y)
    assert model.transform(X).shape == (150, 3)
    K = WIDE.gram(X)
    matrix = KernelDiscriminant("precomputed", 1e-2).fit(K, y)
    np.testing.assert_allclose(matrix.transform(K), model.transform(X), atol=1e-8)
    sparse = KernelDiscriminant(WIDE, 1e-2).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.transform(sp.csr_array(X)), model.transform(X), atol=1e-6)


def test_an_indefinite_matrix_is_taken_without_its_negative_part():
    H = np.eye(150) - 1 / 150
    K = H @ (WIDE.gram(X) - 0.02 * np.eye(150)) @ H
    with pytest.warns(NotPositiveDefiniteWarning):
        model = KernelDiscriminant("precomputed").fit(K, Y)
    repaired = repair_psd(K)
    peer = KernelDiscriminant("precomputed", model.reg_ / np.trace(repaired) * 150)
    np.testing.assert_allclose(model.eigenvalues_, peer.fit(repaired, Y).eigenvalues_, rtol=1e-6)


def test_fewer_coordinates_and_files(tmp_path):
    names = np.array(["setosa", "versicolor", "virginica"])[Y]
    model = KernelDiscriminant(WIDE, n_components=1).fit(X, names)
    whole = KernelDiscriminant(WIDE).fit(X, names)
    np.testing.assert_array_equal(model.transform(X), whole.transform(X)[:, :1])
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))
    assert [*model.get_feature_names_out()] == ["kerneldiscriminant0"]
    hilbin.save(model, tmp_path / "model")
    loaded = hilbin.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    model.means_ = model.means_[:2]
    hilbin.save(model, tmp_path / "forged")
    with pytest.raises(ValueError, match=r"priors_|classes_|means_"):
        hilbin.load(tmp_path / "forged")


@pytest.mark.parametrize(
    ("given_", "rows", "labels", "complaint"),
    [
        ({"reg": -1}, X, Y, "reg must be a number >= 0"),
        ({"reg": 1e-9}, X, Y, "reg must be at least 1e-08 for a kernel"),
        ({"n_components": 3}, X, Y, "more than 2, the rank of the means of 3 classes"),
        ({"n_components": 0}, X, Y, "n_components, if not None, must be"),
        ({}, X, np.zeros(150), "y has 1 class"),
        ({}, X, X[:, 0] + 0.01, "Unknown label type"),
        ({}, np.ones((150, 2)), Y, "no variance"),
        ({}, np.tile([[0.0], [1.0]], (4, 1)), np.repeat([0, 1], 4), "means of all classes"),
        (
            {"reg": 0, "feature_map": FunctionTransformer()},
            np.array([[0.0, 1.0], [0.0, 2.0], [1.0, 1.0], [1.0, 3.0]]),
            [0, 0, 1, 1],
            "the scatter within classes is singular",
        ),
    ],
)
def test_bad_input(given_, rows, labels, complaint):
    with pytest.raises(ValueError, match=complaint):
        KernelDiscriminant(**given_).fit(rows, labels)


@given(seed=st.integers(0, 10**6), kind=st.sampled_from(["kernel", "map", "precomputed"]))
@settings(max_examples=20)
def test_weights_are_copies(seed, kind):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(30, 3)).round(2)
    labels = rng.integers(0, 3, 30)
    rows[labels == 1] += 2
    weights = rng.integers(0, 4, 30)
    weights[labels == 2] = rng.integers(0, 2)  # a class may be of no weight
    weights[:6], labels[:6] = (1, 2, 3, 1, 2, 1), (0, 1, 0, 1, 0, 1)
    many = rng.permutation(np.repeat(np.arange(30), weights))
    K = Gaussian(0.5).gram(rows)
    options = {
        "kernel": {"kernel": Gaussian("median")},
        "map": {"feature_map": FunctionTransformer()},
        "precomputed": {"kernel": "precomputed"},
    }[kind]
    given_ = K if kind == "precomputed" else rows
    copied = K[np.ix_(many, many)] if kind == "precomputed" else rows[many]
    new = K[:, many] if kind == "precomputed" else rows
    a = KernelDiscriminant(reg=0.1, **options).fit(given_, labels, sample_weight=weights)
    b = KernelDiscriminant(reg=0.1, **options).fit(copied, labels[many])
    np.testing.assert_array_equal(a.classes_, b.classes_)
    np.testing.assert_allclose(a.eigenvalues_, b.eigenvalues_, rtol=1e-7)
    np.testing.assert_allclose(a.priors_, b.priors_)
    np.testing.assert_allclose(a.transform(given_), b.transform(new), atol=1e-6)
    np.testing.assert_allclose(a.decision_function(given_), b.decision_function(new), atol=1e-5)
