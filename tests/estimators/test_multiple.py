"""Estimators with several kernels: check values, laws, prediction, and what they refuse."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score

import hilbin
from hilbin.estimators import (
    InfiniteKernelSVC,
    KernelSVC,
    MapRidge,
    MapRidgeClassifier,
    MultipleKernelRidge,
    MultipleKernelRidgeClassifier,
    MultipleKernelSVC,
)
from hilbin.kernels import (
    Chi2,
    Exponential,
    Gaussian,
    Hellinger,
    Linear,
    NotPositiveDefiniteWarning,
    OnColumns,
)
from hilbin.maps import AdditiveMap

X, Y = load_iris(return_X_y=True)
COLUMNS = [OnColumns(Gaussian("median"), [j]) for j in range(4)]
GRAMS = [kernel.resolve(X).gram(X) for kernel in COLUMNS]
SIGNS = 2.0 * (Y[:, None] == np.arange(3)) - 1
CLASSIFIERS = [MultipleKernelSVC, MultipleKernelRidgeClassifier]


# values
@pytest.mark.parametrize(("norm", "value"), [(1, 43.851), (2, 37.130)])
def test_values_of_the_machine(norm, value):
    model = MultipleKernelSVC(COLUMNS, norm=norm, normalize=False, tol=1e-4).fit(X, Y)
    np.testing.assert_allclose(model.objective_, value, rtol=1e-3)
    assert (model.history_[:, 1] <= model.history_[:, 0]).all()
    assert model.gap_ <= 1e-4 * model.objective_
    if norm == 2:
        np.testing.assert_allclose(model.weights_, [0.189, 0.220, 0.665, 0.688], atol=0.01)


@pytest.mark.parametrize(("norm", "value"), [(1, 25.24518), (2, 21.91539)])
def test_values_of_the_ridge(norm, value):
    model = MultipleKernelRidge(COLUMNS, norm=norm, normalize=False, tol=1e-6).fit(X, SIGNS)
    np.testing.assert_allclose(model.objective_ / 2, value, rtol=1e-5)
    if norm == 2:
        np.testing.assert_allclose(model.weights_, [0.18611, 0.21256, 0.67067, 0.68585], atol=1e-4)


def test_values_of_infinitely_many_kernels():
    D, y = load_digits(return_X_y=True)
    some = np.flatnonzero(np.isin(y, [3, 8, 9]))[:240]
    model = InfiniteKernelSVC().fit(D[some], y[some] == 8)
    values = [23.6, 20.958, 20.366, 20.107, 20.097]
    np.testing.assert_allclose(model.objectives_, values, rtol=2e-3)
    assert model.family_gap_ <= 1e-3 * model.objective_[0]
    assert model.converged_
    assert model.weights_.size == model.gammas_.size == 2
    fixed = MultipleKernelSVC([Gaussian(g) for g in np.geomspace(1e-5, 1e-1, 60)], normalize=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some are almost the identity
        fixed.fit(D[some], y[some] == 8)
    assert model.objective_[0] <= fixed.objective_[0] * (1 + 1e-3)


# laws
@pytest.mark.parametrize("cls", CLASSIFIERS)
@pytest.mark.parametrize("norm", [1, 2, np.inf])
def test_the_scale_of_a_kernel_changes_nothing(cls, norm):
    other = [COLUMNS[0] * 100.0, COLUMNS[1], COLUMNS[2] * 0.01, COLUMNS[3]]
    models = [cls(kernels, norm=norm).fit(X, Y) for kernels in (COLUMNS, other)]
    np.testing.assert_allclose(models[0].weights_, models[1].weights_, atol=1e-8)
    scores = [model.decision_function(X) for model in models]
    np.testing.assert_allclose(*scores, atol=1e-6)
    np.testing.assert_allclose(models[1].scales_ / models[0].scales_, [100, 1, 0.01, 1])


@pytest.mark.parametrize("cls", CLASSIFIERS)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("options", [{}, {"norm": 2.0}])
def test_contributions_sum_to_the_score(cls, classes, options):
    some = classes > Y
    model = cls(COLUMNS, **options).fit(X[some], Y[some])
    parts = model.contributions(X)
    assert parts.shape == ((150, 4) if classes == 2 else (150, 4, 3))
    scores = model.decision_function(X)
    intercept = model.intercept_[0] if classes == 2 else model.intercept_
    np.testing.assert_allclose(parts.sum(axis=1) + intercept, scores, atol=1e-12)


@pytest.mark.parametrize("cls", [*CLASSIFIERS, MultipleKernelRidge])
def test_given_matrices_say_the_same(cls):
    train, test = np.arange(0, 150, 2), np.arange(1, 150, 2)
    model = cls(COLUMNS).fit(X[train], Y[train])
    kernels = model.kernels_
    known, new = ([k.gram(rows, X[train]) for k in kernels] for rows in (X[train], X[test]))
    given = cls("precomputed").fit(known, Y[train])
    np.testing.assert_allclose(given.weights_, model.weights_, atol=1e-8)
    np.testing.assert_array_equal(given.predict(new).round(6), model.predict(X[test]).round(6))
    np.testing.assert_allclose(given.contributions(new), model.contributions(X[test]), atol=1e-6)
    assert given.kernel_ is None
    stacked = cls("precomputed").fit(np.array(known), Y[train])
    np.testing.assert_array_equal(stacked.weights_, given.weights_)


def test_the_learned_kernel_makes_the_same_machine():
    model = MultipleKernelSVC(COLUMNS, tol=1e-6).fit(X, Y)
    plain = KernelSVC(model.kernel_, tol=1e-9).fit(X, Y)
    np.testing.assert_allclose(plain.decision_function(X), model.decision_function(X), atol=1e-5)


def test_kernels_of_weight_0_are_not_evaluated():
    calls = []

    def noise(A, B):
        calls.append(len(A))
        return np.exp(-np.square(A[:, None, 0] - B[None, :, 0]))

    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=120), rng.normal(size=(120, 2))])
    y = rows[:, 1] > 0
    model = MultipleKernelSVC([noise, OnColumns(Linear(), [1])], C=0.1).fit(rows, y)
    assert model.weights_[0] == 0
    calls.clear()
    model.decision_function(rows)
    assert not calls
    assert len(model.kernel_.kernels) == 1


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_two_equal_runs_are_equal(cls):
    scores = [cls().fit(X, Y).decision_function(X) for _ in range(2)]
    np.testing.assert_array_equal(*scores)


@pytest.mark.parametrize("options", [{}, {"weights": "per_class"}, {"memory": 0.5}])
def test_threads_change_nothing_but_rounding(options):
    D, y = load_digits(return_X_y=True)
    models = [MultipleKernelSVC(n_jobs=n, **options).fit(D[:600], y[:600]) for n in (1, 2)]
    np.testing.assert_allclose(models[0].objective_, models[1].objective_, rtol=1e-3)
    same = models[0].predict(D[600:]) == models[1].predict(D[600:])
    assert same.mean() > 0.99


@pytest.mark.parametrize("cls", [*CLASSIFIERS, InfiniteKernelSVC])
def test_little_memory_changes_nothing_but_rounding(cls):
    D, y = load_digits(return_X_y=True)
    D, y = D[:300], y[:300] % 2
    whole, tiled = (cls(memory=memory, tol=1e-4).fit(D, y) for memory in (2048, 0.05))
    np.testing.assert_allclose(tiled.objective_, whole.objective_, rtol=3e-4)
    np.testing.assert_allclose(tiled.weights_, whole.weights_, atol=0.05)


@pytest.mark.parametrize("precomputed", [False, True])
def test_weights_of_rows_are_copies(precomputed):
    copies = np.arange(150) % 3
    twice = np.repeat(np.arange(150), copies)
    kernels = [kernel.resolve(X) for kernel in COLUMNS]
    if precomputed:
        one = MultipleKernelSVC("precomputed").fit(GRAMS, Y, copies)
        many = MultipleKernelSVC("precomputed").fit(
            [K[np.ix_(twice, twice)] for K in GRAMS], Y[twice]
        )
    else:
        one = MultipleKernelSVC(kernels).fit(X, Y, copies)
        many = MultipleKernelSVC(kernels).fit(X[twice], Y[twice])
    np.testing.assert_allclose(one.objective_, many.objective_, rtol=1e-6)
    np.testing.assert_allclose(one.weights_, many.weights_, atol=1e-5)
    np.testing.assert_allclose(one.scales_, many.scales_)


def test_weights_of_their_own_for_every_class():
    shared = MultipleKernelSVC(COLUMNS).fit(X, Y)
    own = MultipleKernelSVC(COLUMNS, weights="per_class").fit(X, Y)
    assert own.weights_.shape == (3, 4)
    assert own.objective_.sum() <= shared.objective_[0] * (1 + 1e-3)
    for k in range(3):
        alone = MultipleKernelSVC(COLUMNS).fit(X, k == Y)
        np.testing.assert_allclose(own.weights_[k], alone.weights_, atol=1e-6)
        scores = own.decision_function(X)[:, k]
        np.testing.assert_allclose(scores, alone.decision_function(X), atol=1e-5)
    assert len(own.kernel_) == 3


def test_all_classes_in_one_problem():
    model = MultipleKernelSVC(COLUMNS, multi_class="crammer_singer").fit(X, Y)
    assert model.score(X, Y) > 0.94
    assert model.gap_ <= 1e-3 * model.objective_
    two = MultipleKernelSVC(COLUMNS, multi_class="crammer_singer").fit(X, Y == 1)
    assert two.decision_function(X).shape == (150,)


def test_path_starts_from_the_last_solution():
    model = MultipleKernelSVC(COLUMNS)
    for fitted in model.path(X, Y, [10.0, 0.1, 1.0]):
        alone = clone(model).set_params(C=fitted.C).fit(X, Y)
        np.testing.assert_allclose(fitted.objective_, alone.objective_, rtol=2e-3)
        assert fitted.converged_


def test_warm_start_over_norms():
    model = MultipleKernelSVC(COLUMNS, norm=2, warm_start=True).fit(X, Y)
    again = model.set_params(norm=2.1).fit(X, Y)
    cold = MultipleKernelSVC(COLUMNS, norm=2.1).fit(X, Y)
    assert again.n_iter_ <= cold.n_iter_
    np.testing.assert_allclose(again.objective_, cold.objective_, rtol=2e-3)


@pytest.mark.parametrize("cls", [*CLASSIFIERS, InfiniteKernelSVC])
def test_probabilities(cls):
    model = cls(probability=True).fit(X, Y)
    P = model.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(X))
    plain = cls().fit(X, Y)
    np.testing.assert_array_equal(plain.decision_function(X), model.decision_function(X))


def test_names_and_columns_by_name():
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    kernels = {
        "sepal": OnColumns(Gaussian("median"), ["a", "b"]),
        "petal": OnColumns(Linear(), ["c"]),
    }
    model = MultipleKernelSVC(kernels).fit(frame, Y)
    assert model.kernel_names_ == ["sepal", "petal"]
    numbers = [OnColumns(Gaussian("median"), [0, 1]), OnColumns(Linear(), [2])]
    same = MultipleKernelSVC(numbers).fit(X, Y)
    np.testing.assert_array_equal(model.decision_function(frame), same.decision_function(X))
    assert cross_val_score(MultipleKernelSVC(kernels), frame, Y, cv=3).mean() > 0.8


def test_sparse_rows():
    dense = MultipleKernelSVC([Linear(), Gaussian(0.1)]).fit(X, Y)
    sparse = MultipleKernelSVC([Linear(), Gaussian(0.1)]).fit(sp.csr_array(X), Y)
    np.testing.assert_allclose(sparse.weights_, dense.weights_, atol=1e-6)


def test_families_on_columns():
    rng = np.random.default_rng(0)
    rows = rng.uniform(size=(150, 2))
    y = np.sin(25 * rows[:, 0]) > 0
    families = {"signal": OnColumns(Gaussian(), [0]), "noise": OnColumns(Gaussian(), [1])}
    model = InfiniteKernelSVC(families, C=10.0).fit(rows, y)
    of = np.array([name == "signal" for name in model.kernel_names_])
    assert model.weights_[of].sum() > 0.6
    assert (np.diff(model.objectives_) <= 1e-6).all()
    assert model.family_gap_ <= 2e-3 * model.objective_[0]


def test_targets_of_several_columns_share_weights():
    rng = np.random.default_rng(0)
    T = np.column_stack([np.sin(X[:, 0]), X[:, 2], rng.normal(size=150)])
    model = MultipleKernelRidge(COLUMNS, alpha=0.1).fit(X, T)
    assert model.predict(X).shape == (150, 3)
    assert model.weights_.shape == (4,)
    single = MultipleKernelRidge(COLUMNS, alpha=0.1).fit(X, T[:, 0])
    assert single.predict(X).shape == (150,)
    column = MultipleKernelRidge(COLUMNS, alpha=0.1).fit(X, T[:, :1])
    np.testing.assert_array_equal(column.predict(X)[:, 0], single.predict(X))


# maps
@pytest.mark.parametrize("norm", [1.0, 2.0, np.inf])
def test_explicit_maps_say_the_same_as_kernels(norm):
    groups = [("a", [0, 1], None), ("b", [2, 3], AdditiveMap(Hellinger()))]
    kernels = [OnColumns(Linear(), [0, 1]), OnColumns(Hellinger(), [2, 3])]
    course = {"norm": norm, "alpha": 0.3, "tol": 1e-6}
    maps = MapRidge(column_groups=groups, penalty="multiple", **course).fit(X, SIGNS)
    gram = MultipleKernelRidge(kernels, **course).fit(X, SIGNS)
    np.testing.assert_allclose(maps.predict(X), gram.predict(X), atol=1e-8)
    np.testing.assert_allclose(maps.weights_, gram.weights_, atol=1e-8)
    np.testing.assert_allclose(maps.scales_, gram.scales_, rtol=1e-9)
    np.testing.assert_allclose(maps.objective_, gram.objective_[0], rtol=1e-9)


def test_chunks_say_the_same_as_all_rows():
    groups = [("a", [0, 1], None), ("b", [2, 3], AdditiveMap(Chi2()))]
    model = MapRidge(column_groups=groups, penalty="multiple", alpha=0.3)
    whole = clone(model).fit(X, SIGNS)
    chunks = [(X[b : b + 40], SIGNS[b : b + 40]) for b in range(0, 150, 40)]
    parts = clone(model).fit(chunks)
    np.testing.assert_allclose(parts.weights_, whole.weights_, atol=1e-8)
    np.testing.assert_allclose(parts.predict(X), whole.predict(X), atol=1e-8)


def test_a_classifier_on_maps():
    rng = np.random.default_rng(0)
    rows = np.hstack([X, rng.normal(size=(150, 4))])
    groups = [("sepal", [0, 1], None), ("petal", [2, 3], None), ("noise", [4, 5, 6, 7], None)]
    model = MapRidgeClassifier(column_groups=groups, penalty="multiple", probability=True)
    model.fit(rows, Y)
    assert model.weights_.argmin() == 2
    np.testing.assert_allclose(model.predict_proba(rows).sum(axis=1), 1)
    several = clone(model).set_params(alpha=[0.1, 1.0, 10.0]).fit(rows, Y)
    assert several.alpha_ in (0.1, 1.0, 10.0)
    flat = clone(model).set_params(column_groups=[*groups[:2], ("flat", [4], None)])
    rows[:, 4] = 1.0
    with pytest.raises(ValueError, match="'flat' are constant"):
        flat.fit(rows, Y)


# life of a fit
def test_a_fit_that_is_cut_short_is_usable():
    with pytest.warns(ConvergenceWarning, match="max_iter=1 rounds did not suffice"):
        model = MultipleKernelSVC(COLUMNS, max_iter=1).fit(X, Y)
    assert not model.converged_
    assert model.gap_ > 0
    assert model.score(X, Y) > 0.9
    with pytest.warns(ConvergenceWarning, match="max_time"):
        MultipleKernelSVC(COLUMNS, max_time=1e-9).fit(X, Y)


def test_saved_and_loaded(tmp_path):
    for model in (
        MultipleKernelSVC(dict(zip("abcd", COLUMNS, strict=True)), weights="per_class").fit(X, Y),
        MultipleKernelSVC("precomputed").fit(GRAMS, Y),
        MultipleKernelRidgeClassifier(COLUMNS, probability=True).fit(X, Y),
        InfiniteKernelSVC([Exponential(Chi2())]).fit(X, Y),
    ):
        hilbin.save(model, tmp_path / "model.hilbin")
        again = hilbin.load(tmp_path / "model.hilbin")
        rows = GRAMS if model.kernels == "precomputed" else X
        np.testing.assert_array_equal(again.decision_function(rows), model.decision_function(rows))


# what is refused
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"norm": 0.5}, "norm must be a number >= 1"),
        ({"norm": np.nan}, "norm must be a number >= 1"),
        ({"kernels": []}, "kernels must be a list or dict"),
        ({"kernels": Gaussian()}, "kernels must be a list or dict"),
        ({"kernels": [Gaussian]}, r"kernels\[0\] must be a kernel"),
        ({"kernels": {"a": 3}}, r"kernels\['a'\] must be a kernel"),
        ({"kernels": [OnColumns(Gaussian(), [7])]}, "7"),
        ({"kernels": [lambda A, B: np.ones((len(A), len(B)))]}, "same value for all training rows"),
        ({"weights": "mine"}, "weights must be one of"),
        ({"multi_class": "ovo"}, "multi_class must be one of"),
        ({"multi_class": "crammer_singer", "weights": "per_class"}, "one for all"),
        ({"multi_class": "crammer_singer", "probability": True}, "probability=True is not for"),
        ({"C": -1}, "C must be a number > 0"),
        ({"kernels": [Chi2()]}, "Negative values"),
    ],
)
def test_bad_parameters(options, message):
    rows = X - 3 if options.get("kernels") == [Chi2()] else X
    with pytest.raises(ValueError, match=message):
        MultipleKernelSVC(**options).fit(rows, Y)


def test_bad_matrices():
    model = MultipleKernelSVC("precomputed")
    with pytest.raises(ValueError, match=r"X\[1\] has the shape \(149, 149\)"):
        model.fit([GRAMS[0], GRAMS[1][1:, 1:]], Y)
    with pytest.raises(ValueError, match=r"X\[0\] has the shape \(150, 4\)"):
        model.fit([X], Y)
    with pytest.raises(ValueError, match="must be a list of matrices"):
        model.fit(GRAMS[0], Y)
    with pytest.raises(ValueError, match=r"X\[1\] is not symmetric"):
        model.fit([GRAMS[0], np.triu(GRAMS[1])], Y)
    bad = GRAMS[1].copy()
    bad[3, 5] = np.nan
    with pytest.raises(ValueError, match=r"X\[1\]\[3, 5\] = nan"):
        model.fit([GRAMS[0], bad], Y)
    with pytest.raises(ValueError, match="same value for all training rows"):
        model.fit([GRAMS[0], np.zeros((150, 150))], Y)
    ring = np.eye(150)
    ring[:3, :3] = [[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]]
    with pytest.warns(NotPositiveDefiniteWarning, match=r"X\[1\].*smallest eigenvalue is -0\.8"):
        model.fit([GRAMS[0], ring], Y)
    model.fit(GRAMS, Y)
    with pytest.raises(ValueError, match="X has 2 matrices, but there were 4"):
        model.predict(GRAMS[:2])
    with pytest.raises(ValueError, match=r"X\[0\] has the shape \(150, 149\)"):
        model.predict([K[:, 1:] for K in GRAMS])


def test_one_class_and_other_labels():
    for cls in CLASSIFIERS:
        with pytest.raises(ValueError, match="two classes"):
            cls(COLUMNS).fit(X, np.zeros(150))


def test_kernels_that_are_no_families():
    with pytest.raises(ValueError, match="has no gamma"):
        InfiniteKernelSVC([Linear()]).fit(X, Y)
    with pytest.raises(ValueError, match="not a family"):
        InfiniteKernelSVC("precomputed").fit(GRAMS, Y)


def test_a_zero_kernel_that_is_not_normalized_gets_no_weight():
    zeros = np.zeros((150, 150))
    for norm in (1, 2):
        model = MultipleKernelSVC("precomputed", norm=norm, normalize=False)
        model.fit([GRAMS[3], zeros], Y)
        assert model.weights_[1] < (1e-6 if norm == 1 else 0.05)
