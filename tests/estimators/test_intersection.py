"""The intersection SVMs: the exact machine, sums of shape functions, and their manners."""

import pickle
from itertools import count
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import oracles
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from hilbin.estimators import IntersectionSVC, IntersectionSVR, ShapeFunction
from hilbin.solvers.lookup import LookupRows

TIGHT = {"tol": 1e-6, "max_iter": 50_000}
N = 300  # more than are solved to rounding whatever tol is
RNG = np.random.default_rng(0)
X = RNG.gamma(1.0, size=(N, 6)) * (RNG.random((N, 6)) < [1, 0.9, 0.7, 0.5, 0.3, 0.1])
FAR = np.abs(X[:, 0] - 1) + 0.3 * X[:, 1]  # nothing a linear machine can see
Y = (FAR + 0.2 * RNG.normal(size=N) > 0.8).astype(int)
NAMES = np.where(X[:, 2] > 1, "high", np.where(Y, "far", "near"))
COUNTS = RNG.integers(0, 10, (N, 5)).astype(float)  # no weights move their quantiles
KINDS = {
    "uniform": {},
    "sqrt": {"strategy": "sqrt"},
    "quantile": {"strategy": "quantile"},
    "pooled": {"scope": "all"},
    "exact": {"n_bins": None},
    "dropped": {"n_bins": 5000},  # more bins than values
}
BOTH = pytest.mark.parametrize("estimator", [IntersectionSVC, IntersectionSVR])


def scores(model, rows):
    return model.decision_function(rows) if hasattr(model, "classes_") else model.predict(rows)


@pytest.mark.parametrize("solver", ["lookup", "gram"])
def test_exact_mode_is_the_exact_machine(solver):
    given = {
        "loss": "hinge",
        "n_bins": None,
        "scope": "all",
        "fit_intercept": False,
        "solver": solver,
    }
    model = IntersectionSVC(1e-3, **given, **TIGHT).fit(X[:100], Y[:100])
    measured, signs = model.binner_.transform(X), 2.0 * Y[:100] - 1
    K = oracles.intersection(measured, measured[:100])
    Q = np.outer(signs, signs) * K[:100]
    a = oracles.box_qp(Q, np.ones(100), np.full(100, 1e-3))
    np.testing.assert_allclose(model.objective_, a.sum() - 0.5 * a @ Q @ a, rtol=1e-7)
    np.testing.assert_allclose(model.decision_function(X), K @ (a * signs), atol=1e-4)


@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
@pytest.mark.parametrize("kind", KINDS)
def test_lookups_equal_gram(kind, multi_class):
    model = IntersectionSVC(1e-4, multi_class=multi_class, **KINDS[kind], **TIGHT)
    a, b = (clone(model).set_params(solver=s).fit(X, NAMES) for s in ("lookup", "gram"))
    np.testing.assert_allclose(a.objective_, b.objective_, rtol=1e-6)
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("target", [Y, NAMES, FAR], ids=["two", "three", "value"])
@pytest.mark.parametrize("kind", KINDS)
def test_explanations_sum_to_the_score(kind, target):
    model = (IntersectionSVR if target is FAR else IntersectionSVC)(**KINDS[kind]).fit(X, target)
    new = np.vstack([X, 1.3 * X[:20], np.zeros(6)])
    each, total = model.explain(new), scores(model, new)
    assert each.shape == new.shape + total.shape[1:]
    np.testing.assert_allclose(each.sum(axis=1) + model.intercept_, total, atol=1e-10)
    assert (each[new == 0] == 0).all()
    sparse = model.explain(sp.csr_array(new))
    np.testing.assert_array_equal(sparse.toarray() if total.ndim == 1 else sparse, each)
    np.testing.assert_allclose(scores(model, sp.csr_array(new)), total, atol=1e-12)
    for j, shape in enumerate(model.shape_functions_):
        assert shape.stepped == (kind != "exact")
        np.testing.assert_allclose(shape(new[:, j]), each[:, j], atol=1e-10)
        assert shape.range >= np.ptp(each[:, j], axis=0).max() - 1e-12


def test_shape_functions():
    x = np.array([0.0, 1.0, 3.0])
    stepped = ShapeFunction("a", x, np.array([0.0, 2.0, 1.0]), stepped=True)
    assert stepped([-1, 0.5, 1.0, 2.9, 9]).tolist() == [0, 0, 2, 2, 1]
    assert (stepped.trend, stepped.range) == ("mixed", 2.0)
    linear = ShapeFunction("a", x, np.array([0.0, -2.0, -3.0]), stepped=False)
    assert linear([-1, 0.5, 2.0, 9]).tolist() == [0, -1, -2.5, -3]
    assert (linear.trend, linear.range) == ("falling", 3.0)
    two = ShapeFunction("a", x, np.array([[0, 0], [0.1, 5], [0, 6]]), stepped=False)
    assert two([2.0]).tolist() == [[0.05, 5.5]]
    assert (two.trend, two.range) == ("rising", 6.0)
    learned = IntersectionSVC(1e-4).fit(np.column_stack([X, np.ones(N)]), Y).shape_functions_
    assert (learned[0].trend, learned[6].trend) == ("mixed", "flat")


def test_the_same_c_suits_any_scale_and_any_bins():
    def fitted(rows, **given):
        return IntersectionSVC(1e-4, **given, **TIGHT).fit(rows, Y).decision_function(rows)

    base, fine, finer, exact = (fitted(X, n_bins=n) for n in (100, 200, 20_000, None))
    np.testing.assert_array_equal(fitted(8 * X), base)
    np.testing.assert_allclose(fitted(10 * X), base, atol=1e-2)
    assert np.abs(fine - base).max() < 0.1
    np.testing.assert_allclose(finer, exact, atol=1e-3)


@pytest.mark.parametrize("n_bins", [100, None])
def test_types_of_rows_and_threads(n_bins):
    model = IntersectionSVC(1e-4, n_bins=n_bins, **TIGHT).fit(X, NAMES)
    base = model.decision_function(X)
    sparse = clone(model).fit(sp.csr_matrix(X), NAMES)
    np.testing.assert_allclose(sparse.decision_function(X), base, atol=1e-6)
    single = clone(model).fit(X.astype("f4"), NAMES).decision_function(X.astype("f4"))
    np.testing.assert_allclose(single, base, atol=0.02)
    threads = clone(model).set_params(n_jobs=2).fit(X, NAMES)
    np.testing.assert_array_equal(threads.decision_function(X), base)


def test_class_weights_are_sample_weights():
    model, y = IntersectionSVC(1e-4, intercept_scaling=np.sqrt(5.0)), COUNTS.argmax(axis=1) % 3
    balanced = N / (3 * np.bincount(y))
    for given, factors in (({0: 3.0, 1: 0.5}, np.array([3.0, 0.5, 1.0])), ("balanced", balanced)):
        a = clone(model).set_params(class_weight=given).fit(COUNTS, y).decision_function(COUNTS)
        b = clone(model).fit(COUNTS, y, sample_weight=factors[y]).decision_function(COUNTS)
        np.testing.assert_allclose(a, b, atol=1e-12)
        assert (a != clone(model).fit(COUNTS, y).decision_function(COUNTS)).any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", [Y, NAMES, FAR], ids=["two", "crammer_singer", "value"])
def test_a_weight_is_repetition(kind, target):
    weights = np.random.default_rng(0).integers(0, 4, N)
    weights[:270] += weights[:270] == 0  # more than 256 rows are left
    given = {"multi_class": "crammer_singer"} if target is NAMES else {}
    estimator = IntersectionSVR if target is FAR else IntersectionSVC
    model = estimator(1e-4, tol=1e-8, max_iter=200_000, **KINDS[kind], **given)
    a = clone(model).fit(X, target, sample_weight=weights)
    b = clone(model).fit(np.repeat(X, weights, axis=0), np.repeat(target, weights))
    np.testing.assert_allclose(scores(a, X), scores(b, X), atol=1e-6)
    np.testing.assert_allclose(a.objective_, b.objective_, rtol=1e-8)


@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
def test_labels_and_shapes(multi_class):
    model = IntersectionSVC(1e-2, multi_class=multi_class).fit(X, NAMES)
    assert model.classes_.tolist() == ["far", "high", "near"]
    assert model.decision_function(X).shape == (N, 3)
    assert model.score(X, NAMES) > 0.9
    for labels in (Y, Y.astype(bool), np.where(Y, "yes", "no")):
        binary = clone(model).fit(X, labels)
        above = binary.decision_function(X) > 0
        assert above.shape == (N,)
        np.testing.assert_array_equal(binary.predict(X), binary.classes_[above.astype(int)])
        assert binary.score(X, labels) > 0.8


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_path_equals_separate_fits(loss):
    weights, Cs = np.random.default_rng(0).uniform(0.5, 2, N), [1e-3, 1e-5, 1e-4, 1e-5]
    models = IntersectionSVC(loss=loss, **TIGHT).path(X, NAMES, Cs, sample_weight=weights)
    assert [m.C for m in models] == Cs
    for m in models:
        alone = clone(m).fit(X, NAMES, sample_weight=weights)
        np.testing.assert_allclose(m.objective_, alone.objective_, rtol=1e-6)


@pytest.mark.parametrize("data", ["digits", "noise"])
def test_a_path_converges_for_any_c(data):
    """Where no function separates the rows, a descent would take thousands of sweeps."""
    rows, y = load_digits(return_X_y=True) if data == "digits" else (X, Y ^ (RNG.random(N) < 0.2))
    models = IntersectionSVC().path(rows, y, np.logspace(-4, 2, 7))
    assert all(m.converged_ for m in models)
    assert max(m.n_iter_ for m in models) < 300
    assert max((m.gap_ / m.objective_).max() for m in models) <= 0.1
    assert models[-1].score(rows, y) >= models[0].score(rows, y)


@BOTH
def test_c_in_units_of_the_kernel(estimator):
    """Few features have a small kernel, and get a larger C; many get the paper's."""
    model = estimator().fit(X, Y)
    mean = 100 * np.minimum(X / model.binner_.high_, 1).sum(axis=1).mean()
    np.testing.assert_allclose(model.C_, 2 / mean, rtol=0.05)
    wide = np.random.default_rng(0).random((40, 100))
    assert estimator().fit(wide, np.arange(40) % 2).C_ == 1e-3
    assert estimator(0.25).fit(X, Y).C_ == 0.25


@pytest.mark.parametrize(
    "given", [{}, {"loss": "hinge"}, {"multi_class": "crammer_singer"}], ids=str
)
def test_c_by_rows_left_out(given):
    rng = np.random.default_rng(0)
    rows = rng.random((N, 10))
    clean, noisy = rows[:, 0] > 0.5, (rows[:, 0] > 0.5) ^ (rng.random(N) < 0.4)
    few, many = (IntersectionSVC("auto", **given).fit(rows, y).C_ for y in (noisy, clean))
    assert few < many
    if "multi_class" in given:
        return  # its descents end at a tolerance that weights and copies reach differently
    model = IntersectionSVC("auto", **given)
    weights = rng.integers(0, 3, N)
    a = clone(model).fit(rows, noisy, sample_weight=weights)
    b = clone(model).fit(np.repeat(rows, weights, axis=0), np.repeat(noisy, weights))
    np.testing.assert_allclose(a.C_, b.C_)


def test_c_of_a_regression_by_rows_left_out():
    rng = np.random.default_rng(0)
    few, many = (IntersectionSVR("auto").fit(X, FAR + s * rng.normal(size=N)).C_ for s in (3, 0.01))
    assert few < many


def test_scope_follows_the_rows():
    rng = np.random.default_rng(0)
    words = rng.gamma(0.2, size=(N, 40)) * rng.gamma(0.5, size=40)
    words /= words.sum(axis=1, keepdims=True)
    table = rng.random((N, 40)) * np.logspace(-3, 3, 40)
    for rows, scope in (
        (words, "all"),
        (table, "feature"),
        (X, "feature"),
        (rng.random((N, 9)), "all"),
    ):
        assert IntersectionSVC().fit(rows, Y).binner_.scope_ == scope
        assert IntersectionSVC().fit(sp.csr_array(rows), Y).binner_.scope_ == scope
        for asked in ("feature", "all"):
            assert IntersectionSVC(scope=asked).fit(rows, Y).binner_.scope_ == asked


def test_path_of_crammer_singer():
    y, model = np.arange(N) % 3, IntersectionSVC(multi_class="crammer_singer")
    assert all(m.converged_ for m in model.path(COUNTS, y, [1e-6, 3e-6, 7e-6, 1e-5]))


@pytest.mark.parametrize(("features", "bins"), [(499, 100), (500, 31), (1999, 31), (2000, 15)])
def test_many_features_get_fewer_bins(features, bins):
    X = np.random.default_rng(0).random((20, features))
    for model in (IntersectionSVC(), IntersectionSVR()):
        assert model.fit(X, np.arange(20) % 2).binner_.n_bins == bins
        assert model.n_bins == "auto"


@BOTH
def test_warm_start(estimator):
    model = estimator(1e-2, warm_start=True, **TIGHT).fit(X, Y)
    first, objective = model.n_iter_, model.objective_
    assert model.fit(X, Y).n_iter_ <= 2 < first
    np.testing.assert_allclose(model.objective_, objective, rtol=1e-6)
    fewer, cold = model.fit(X[:280], Y[:280]), clone(model).fit(X[:280], Y[:280])
    np.testing.assert_array_equal(scores(fewer, X), scores(cold, X))


def test_warm_start_of_crammer_singer_with_a_smaller_c():
    y = np.random.default_rng(0).integers(0, 2, N)
    model = IntersectionSVC(1e-2, multi_class="crammer_singer", warm_start=True, **TIGHT)
    model.fit(COUNTS[:, :3], y).set_params(C=1e-4).fit(COUNTS[:, :3], y)
    cold = clone(model).fit(COUNTS[:, :3], y).objective_
    np.testing.assert_allclose(model.objective_, cold, rtol=1e-6)


def test_warm_start_of_crammer_singer_with_corrected_labels():
    rows = np.random.default_rng(0).random((N, 3))
    y, wrong = (rows[:, 0] > 0.5).astype(int), np.arange(N) < 20
    model = IntersectionSVC(1e-2, multi_class="crammer_singer", warm_start=True, **TIGHT)
    warm, cold = model.fit(rows, y ^ wrong).fit(rows, y), clone(model).fit(rows, y)
    np.testing.assert_allclose(warm.objective_, cold.objective_, rtol=1e-6)


@pytest.mark.parametrize("limit", [{"max_iter": 2}, {"max_time": 1e-9}], ids=str)
@BOTH
def test_limits_leave_a_usable_model(estimator, limit):
    model = estimator(0.1, tol=1e-4, **limit)
    with pytest.warns(ConvergenceWarning, match=f"not converged: {next(iter(limit))}="):
        model.fit(X, Y)
    assert not model.converged_
    assert (model.gap_ > 0).all()
    assert np.isfinite(scores(model, X)).all()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_interrupt_leaves_a_usable_model(monkeypatch, n_jobs):
    start, problem = LookupRows.start, count()

    def interrupted(*given):  # the second problem in its first sweep
        return Mock(side_effect=KeyboardInterrupt) if next(problem) == 1 else start(*given)

    monkeypatch.setattr(LookupRows, "start", interrupted)
    model = IntersectionSVC(1e-2, solver="lookup", n_jobs=n_jobs)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, NAMES)
    assert not model.converged_
    assert model.score(X, NAMES) > 0.5


def test_callbacks():
    pytest.importorskip("sklearn.callback")
    hooks = ("setup", "teardown", "on_fit_task_begin", "on_fit_task_end")
    seen = SimpleNamespace(**{hook: Mock() for hook in hooks})  # Mock has them when asked only
    seen.on_fit_task_end.return_value = False
    model = IntersectionSVC(1e-2, tol=1e-3).set_callbacks(seen).fit(X, NAMES)
    calls = seen.on_fit_task_begin.call_args_list, seen.on_fit_task_end.call_args_list
    begun, ended = ([call.args[1].task_name for call in part] for part in calls)
    assert {*begun} == {"fit", "sweep", *model.classes_}
    assert sorted(begun) == sorted(ended)
    assert begun.count("sweep") >= model.n_iter_ > 1
    seen.on_fit_task_end.return_value = True
    with pytest.warns(ConvergenceWarning, match="a callback asked to stop"):
        model.fit(X, NAMES)
    assert model.n_iter_ == 1


def test_pickle_clone_and_names():
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = IntersectionSVC(strategy="sqrt").fit(frame, NAMES)
    assert [shape.name for shape in model.shape_functions_] == list("abcdef")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(frame), model.decision_function(frame))
    with pytest.raises(NotFittedError):
        clone(model).predict(frame)


def test_poor_data():
    for lonely in (np.arange(N) == 0, np.arange(20)):  # a class of one row, and every row a class
        given = X[: lonely.size], lonely
        assert IntersectionSVC(1.0, class_weight="balanced").fit(*given).score(*given) > 0.9
    nothing = IntersectionSVC().fit(np.full((N, 2), 1.5), Y)
    assert (nothing.explain(np.ones((3, 2))) == 0).all()
    shifted = IntersectionSVC(1e-2).fit(X - 7, Y)
    assert shifted.score(X - 7, Y) > 0.9
    np.testing.assert_array_equal(shifted.predict(sp.csr_array(X)), shifted.predict(X))


def test_model_bytes():
    rows = sp.random_array((100, 500), density=0.02, rng=np.random.default_rng(0), format="csr")
    wanted = IntersectionSVC(n_bins=100)
    few, every = (clone(wanted).fit(r, np.arange(100) % 2) for r in (rows, rows.toarray()))
    for model in (few, every):
        parts = (model._lookup.lookup, model._lookup.offsets, model._lookup.levels)
        stored = sum(part.nbytes for part in parts if part is not None)
        assert stored < model.model_bytes_ < stored + 100 * 500 < len(pickle.dumps(model)) + 50_000
    assert 5 * few.model_bytes_ < every.model_bytes_


@BOTH
def test_bad_data(estimator):
    bad = X.copy()
    bad[7, 1] = np.nan
    with pytest.raises(ValueError, match=r"X\[7, 1\] = nan is not finite"):
        estimator().fit(bad, Y)
    bad[7, 1] = -1
    with pytest.raises(ValueError, match=r"X\[7, 1\] = -1.0 is negative.*negative='shift'"):
        estimator(negative="error").fit(bad, Y)
    with pytest.raises(ValueError, match="pass a dense X"):
        estimator().fit(sp.csr_array(bad), Y)
    with pytest.raises(ValueError, match=r"sample_weight\[7\] = -1.0"):
        estimator().fit(X, Y, sample_weight=bad[:, 1])


def test_one_class_is_refused():
    for given, message in (((X, Y * 0), "y has 1 class"), ((X, Y, Y), "sample_weight is not 0")):
        with pytest.raises(ValueError, match=f"at least two classes.*{message}"):
            IntersectionSVC().fit(*given)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("C", 0),
        ("C", "1"),
        ("tol", -1),
        ("intercept_scaling", -1.0),
        ("intercept_scaling", "none"),
        ("max_iter", 0),
    ]
    + [("max_iter", 2.5), ("max_time", 0), ("n_bins", 0), ("class_weight", "equal")]
    + [("class_weight", {7: 1.0}), ("class_weight", {0: -1.0})]
    + [(name, "?") for name in ("loss", "multi_class", "solver", "strategy", "scope", "negative")],
)
def test_bad_parameters(name, wrong):
    with pytest.raises(ValueError, match=f"^{name}"):
        IntersectionSVC(**{name: wrong}).fit(X, Y)


def test_large_lookups_are_halved(monkeypatch):
    whole = IntersectionSVC().fit(X, Y)
    monkeypatch.setattr("hilbin.estimators.intersection.shapes.LARGE", 0)
    halved = IntersectionSVC().fit(X, Y)
    assert 2 * halved._lookup.lookup.nbytes == whole._lookup.lookup.nbytes
    scores = halved.decision_function(X)
    np.testing.assert_allclose(scores, whole.decision_function(X), atol=1e-5)
    np.testing.assert_allclose(
        halved.explain(X).sum(axis=1) + halved.intercept_, scores, atol=1e-12
    )
