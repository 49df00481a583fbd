"""Support vector machines on maps: scikit-learn's optima, however the rows come."""

from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_diabetes, load_digits
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import LinearSVC, LinearSVR
from sklearn.utils.estimator_checks import parametrize_with_checks

from hilbin.estimators import MapSVC, MapSVR
from hilbin.estimators.linear import risk
from hilbin.kernels import Chi2, Gaussian, Intersection
from hilbin.maps import FourierMap, SparseMap, SparseProjectionMap
from hilbin.persist import load, save
from hilbin.solvers import Hinge, Logistic
from hilbin.solvers.risk import MatrixRows

FOURIER = FourierMap(Gaussian(0.1), 30, kind="gaussian", random_state=1)
LOSSES = {"hinge": Hinge(), "squared_hinge": Hinge(squared=True), "logistic": Logistic()}
TIGHT = {"tol": 1e-8, "max_iter": 1_000_000}


@parametrize_with_checks(
    [
        MapSVC(),
        MapSVC(loss="squared_hinge", intercept_scaling=10.0),
        MapSVC(loss="logistic"),
        MapSVC(FOURIER),
        MapSVR(),
        MapSVR(FOURIER, loss="squared_epsilon_insensitive", epsilon=0.1),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:500] / 16, y[:500]


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return 20 * X, (y - y.mean()) / y.std()


def objective(model, Z, t, loss, C, scaling=1.0):
    """Of every task, from the weights alone."""
    W, b = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    constant = 0 if scaling == 0 else (b / scaling) ** 2
    scores = Z @ W.T + b
    return 0.5 * (np.sum(W * W, axis=1) + constant) + C * loss.value(t, scores).sum(axis=0)


def signs(y, classes):
    return np.where(y[:, None] == classes, 1.0, -1.0)


def split(X, y, size):
    return [(X[i : i + size], y[i : i + size]) for i in range(0, X.shape[0], size)]


@pytest.mark.parametrize("scaling", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_equals_scikit_learn(digits, loss, scaling):
    X, y = digits
    fit_intercept = {"fit_intercept": scaling > 0, "intercept_scaling": scaling or 1.0}
    found = MapSVC(C=0.05, loss=loss, tol=1e-5, **fit_intercept).fit(X, y)
    T, own = signs(y, found.classes_), (X, signs(y, found.classes_), LOSSES[loss], 0.05, scaling)
    if loss != "logistic":
        theirs = LinearSVC(C=0.05, loss=loss, random_state=0, **fit_intercept, **TIGHT).fit(X, y)
        expected = objective(theirs, *own)
    else:
        settings = {"C": 0.05, "solver": "liblinear", "dual": True, "random_state": 0, **TIGHT}
        each = [LogisticRegression(**settings, **fit_intercept).fit(X, t) for t in T.T]
        expected = [
            objective(one, X, T[:, k : k + 1], LOSSES[loss], 0.05, scaling)[0]
            for k, one in enumerate(each)
        ]
    np.testing.assert_allclose(found.objective_, expected, rtol=2e-5)
    np.testing.assert_allclose(found.objective_, objective(found, *own), rtol=1e-9)
    assert found.converged_
    assert (found.gap_ <= 1e-5 * found.objective_).all()
    assert found.coef_.shape == (10, 64)
    assert found.intercept_.shape == (10,)
    assert found.decision_function(X).shape == (500, 10)


def test_two_classes_have_one_score(digits):
    X, y = digits
    labels = np.where(y < 5, "low", "high")
    found = MapSVC(C=0.1).fit(X, labels)
    assert found.coef_.shape == (1, 64)
    scores = found.decision_function(X)
    assert scores.shape == (500,)
    assert found.classes_.tolist() == ["high", "low"]
    np.testing.assert_array_equal(found.predict(X), np.where(scores > 0, "low", "high"))
    assert found.score(X, labels) > 0.85


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_equals_linear_svr(diabetes, loss):
    X, y = diabetes
    settings = {"C": 0.1, "loss": loss, "epsilon": 0.2}
    found = MapSVR(**settings, tol=1e-6).fit(X, y)
    theirs = LinearSVR(**settings, dual=True, random_state=0, **TIGHT).fit(X, y)
    np.testing.assert_allclose(found.predict(X), theirs.predict(X), atol=5e-3)
    assert found.coef_.shape == (10,)
    assert isinstance(found.intercept_, float)


def test_several_targets(diabetes):
    X, y = diabetes
    Y = np.column_stack([y, X[:, 2] + y])
    found = MapSVR().fit(X, Y)
    for k in range(2):
        one = MapSVR().fit(X, Y[:, k])
        np.testing.assert_allclose(found.predict(X)[:, k], one.predict(X), atol=1e-7)
    assert MapSVR().fit(X, Y[:, :1]).predict(X).shape == (len(X), 1)


@pytest.mark.parametrize("kernel", [Intersection(), Chi2()])
def test_sparse_maps_train_with_their_own_inner_product(digits, kernel):
    X, y = digits
    found = MapSVC(SparseMap(kernel, 8), C=0.02, tol=1e-5).fit(X, y)
    nodes = found.feature_map_.nodes_
    explicit = SparseMap(kernel, spacing=nodes, orthonormal=True).fit_transform(X)
    theirs = LinearSVC(C=0.02, loss="hinge", random_state=0, **TIGHT).fit(explicit, y)
    T = signs(y, found.classes_)
    np.testing.assert_allclose(
        found.objective_, objective(theirs, explicit, T, Hinge(), 0.02), rtol=2e-5
    )
    scores = theirs.decision_function(explicit)
    np.testing.assert_allclose(found.decision_function(X), scores, atol=0.03)
    assert found.coef_.shape == (10, 64 * len(nodes))
    inside = make_pipeline(MinMaxScaler((0, 1)), SparseMap(kernel, spacing=nodes))
    piped = MapSVC(inside, C=0.02, tol=1e-5).fit(X * 7, y)
    scaled = MapSVC(SparseMap(kernel, spacing=nodes), C=0.02, tol=1e-5).fit(
        MinMaxScaler().fit_transform(X), y
    )
    np.testing.assert_allclose(piped.objective_, scaled.objective_, rtol=2e-5)


def test_sparse_projections(digits):
    X, y = digits
    settings = {"landmarks": 40, "n_nonzero": 6, "random_state": 0}
    sparse = MapSVC(SparseProjectionMap(Chi2(), **settings), tol=1e-5).fit(X, y)
    feature_map = SparseProjectionMap(Chi2(), **settings, orthonormal=True)
    explicit = MapSVC(feature_map, tol=1e-5).fit(X, y)
    np.testing.assert_allclose(sparse.objective_, explicit.objective_, rtol=2e-5)


def test_a_frozen_map_is_used_as_it_is(digits):
    X, y = digits
    fitted = SparseMap(Chi2(), 8).fit(X[:50])
    model = MapSVC(FrozenEstimator(fitted)).fit(X, y)
    np.testing.assert_array_equal(model.feature_map_.nodes_, fitted.nodes_)
    seeded = MapSVC(FourierMap(Gaussian(0.1), 20)).fit(X, y)
    again = MapSVC(FourierMap(Gaussian(0.1), 20)).fit(X, y)
    np.testing.assert_array_equal(seeded.coef_, again.coef_)


@pytest.mark.parametrize("size", [70, 1000])
@pytest.mark.parametrize("feature_map", [None, SparseMap(Chi2(), 8)])
def test_chunks_are_the_whole(digits, size, feature_map):
    X, y = digits
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    chunks = [
        (X[i : i + size], y[i : i + size], weights[i : i + size]) for i in range(0, 500, size)
    ]
    settings = {"C": 0.05, "tol": 1e-4, "class_weight": "balanced"}
    found = MapSVC(feature_map, **settings, memory=0.5).fit(chunks)
    whole = MapSVC(feature_map, **settings).fit(X, y, weights)
    np.testing.assert_allclose(found.objective_, whole.objective_, rtol=2e-4)
    np.testing.assert_allclose(found.decision_function(X), whole.decision_function(X), atol=0.1)
    np.testing.assert_array_equal(found.predict([X]), found.predict(X))
    threads = MapSVC(feature_map, **settings, n_jobs=2).fit(chunks)
    np.testing.assert_allclose(threads.objective_, whole.objective_, rtol=2e-4)


def test_files(diabetes, tmp_path):
    X, y = diabetes
    for k, (rows, targets) in enumerate(split(X, y, 100)):
        np.save(tmp_path / f"X_{k}.npy", rows)
        np.save(tmp_path / f"y_{k}.npy", targets)
    found = MapSVR(memory=0.01).fit(tmp_path)
    whole = MapSVR().fit(X, y)
    np.testing.assert_allclose(found.objective_, whole.objective_, rtol=1e-3)
    assert found.predict(tmp_path).shape == (len(X),)
    assert isinstance(found.intercept_, float)
    with pytest.raises(ValueError, match="has 3 features, but MapSVR is expecting 10"):
        found.predict([X[:5, :3]])


def test_dask(digits):
    da = pytest.importorskip("dask.array")
    X, y = digits
    settings = {"C": 0.05, "tol": 1e-4}
    found = MapSVC(**settings).fit(da.from_array(X, (100, 64)), da.from_array(y, 100))
    whole = MapSVC(**settings).fit(X, y)
    np.testing.assert_allclose(found.objective_, whole.objective_, rtol=2e-4)


@pytest.mark.parametrize(
    "convert", [np.float32, sp.csr_array, lambda X: sp.csr_array(np.float32(X))]
)
def test_rows_are_used_as_they_are(digits, convert, monkeypatch):
    X, y = digits
    rows, seen = convert(X), []

    class Seen(MatrixRows):
        def __init__(self, Z):
            super().__init__(Z)
            seen.append(self.Z)

    monkeypatch.setattr(risk, "MatrixRows", Seen)
    found = MapSVC(C=0.05).fit(rows, y)
    stored = (lambda Z: Z.data) if sp.issparse(rows) else (lambda Z: Z)
    assert np.shares_memory(stored(seen[0]), stored(rows))
    assert seen[0].dtype == rows.dtype == found.coef_.dtype
    whole = MapSVC(C=0.05).fit(X, y)
    np.testing.assert_allclose(found.objective_, whole.objective_, rtol=1e-3)
    np.testing.assert_allclose(found.decision_function(rows), found.decision_function(X), atol=1e-4)


def test_class_weights_are_weights_of_rows(digits):
    X, y = digits
    factors = {3: 2.0, 5: 0.5}
    by_class = MapSVC(class_weight=factors).fit(X, y)
    by_row = MapSVC().fit(X, y, [factors.get(label, 1.0) for label in y])
    np.testing.assert_allclose(by_class.coef_, by_row.coef_, atol=1e-8)


def test_limits_of_passes_and_time(digits):
    X, y = digits
    with pytest.warns(ConvergenceWarning, match="max_iter=3 passes did not suffice"):
        short = MapSVC(max_iter=3).fit(X, y)
    assert (short.n_iter_, short.converged_) == (3, False)
    assert short.score(X, y) > 0.5
    slow = FourierMap(Gaussian(0.1), 20, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"max_time=1e-09 seconds are over"):
        timed = MapSVC(slow, max_time=1e-9).fit(X, y)
    assert timed.n_iter_ == 1


def test_verbose(digits, capsys):
    X, y = digits
    model = MapSVC(SparseMap(Chi2(), 8), verbose=2).fit(X, y)
    *passes, end = capsys.readouterr().out.splitlines()
    assert len(passes) == model.n_iter_
    assert all("violation" in line for line in passes)
    assert f"pass {model.n_iter_}: objective" in end
    assert "duality gap" in end


def test_callbacks(digits):
    pytest.importorskip("sklearn.callback")
    X, y = digits
    hooks = ("setup", "teardown", "on_fit_task_begin", "on_fit_task_end")
    seen = SimpleNamespace(**{hook: Mock() for hook in hooks})  # Mock has them when asked only
    seen.on_fit_task_end.return_value = False
    model = MapSVC(SparseMap(Chi2(), 8), loss="logistic").set_callbacks(seen).fit(X, y)
    begun = [call.args[1].task_name for call in seen.on_fit_task_begin.call_args_list]
    assert begun.count("pass") == model.n_iter_ > 1
    seen.on_fit_task_end.return_value = True
    with pytest.warns(ConvergenceWarning, match="a callback asked to stop"):
        model.fit(X, y)
    assert model.n_iter_ == 1


@pytest.mark.parametrize(
    "model", [MapSVC(SparseMap(Chi2(), 8)), MapSVR(SparseMap(Intersection(), 8), C=0.1)]
)
def test_saved_models_say_the_same(digits, model, tmp_path):
    X, y = digits
    model.fit(X, y)
    save(model, tmp_path / "model.hilbin")
    again = load(tmp_path / "model.hilbin")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.coef_, model.coef_)


SPARSE = {"feature_map": SparseMap(Intersection(), 4), "tol": 1e-5}  # planes, in matrices


@pytest.mark.parametrize("model", [MapSVC(C=0.1, **SPARSE), MapSVR(**SPARSE)])
def test_an_interrupt_keeps_what_was_learned(digits, model, monkeypatch):
    X, y = digits
    passes = []

    class Interrupted(MatrixRows):
        def gradient(self, S):
            passes.append(len(S))
            if len(passes) > 5:
                raise KeyboardInterrupt
            return super().gradient(S)

    monkeypatch.setattr(risk, "MatrixRows", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert not model.converged_
    assert model.n_iter_ == 5
    assert model.predict(X).shape == (500,)
    assert (model.gap_ > 1e-3 * model.objective_).all()
    loss = Hinge().value(1.0, np.zeros(500)) if isinstance(model, MapSVC) else y
    assert (model.objective_ < model.C * loss.sum()).all()  # of no weights


@pytest.mark.parametrize("loss", LOSSES)
def test_interrupts_of_other_solvers(digits, loss, monkeypatch):
    X, y = digits
    model = MapSVC(loss=loss, tol=1e-9, verbose=2)

    def interrupt(text):
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.print", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert not model.converged_
    assert model.predict(X).shape == (500,)


def test_bad_input(digits):
    X, y = digits
    bad = X.copy()
    bad[7, 3] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        MapSVC().fit(bad, y)
    with pytest.raises(ValueError, match="chunk 1, rows 0 to 4: feature 3 of row 2 is nan"):
        MapSVC().fit(split(bad, y, 5))
    with pytest.raises(ValueError, match="at least two classes"):
        MapSVC().fit(X, np.zeros(500))
    with pytest.raises(ValueError, match=r"(?i)sample.weight"):
        MapSVC().fit(X, y, np.zeros(500))
    with pytest.raises(ValueError, match="there are no targets"):
        MapSVC().fit([X[:9], X[9:]])
    with pytest.raises(ValueError, match="class_weight names 99"):
        MapSVC(class_weight={99: 1.0}).fit(X, y)
    for name, value in [
        ("C", 0),
        ("tol", -1.0),
        ("max_iter", 0),
        ("max_time", 0),
        ("loss", "log"),
        ("expansion", "late"),
        ("intercept_scaling", 0),
        ("intercept_scaling", -1),
        ("n_fit_samples", 0),
        ("memory", 0),
    ]:
        with pytest.raises(ValueError, match=name):
            MapSVC(**{name: value}).fit(X, y)
    with pytest.raises(ValueError, match="epsilon must be a number >= 0"):
        MapSVR(epsilon=-0.1).fit(X, y)
    with pytest.raises(NotFittedError):
        MapSVC().predict(X)


def test_orthonormal_features_of_sparse_rows_are_no_pairs(digits):
    X, y = digits
    model = MapSVC(SparseMap(Chi2(), 8, orthonormal=True), C=0.02, tol=1e-6)
    dense = model.fit(X, y).decision_function(X)
    sparse = model.fit(sp.csr_array(X), y).decision_function(X)
    np.testing.assert_allclose(sparse, dense, atol=1e-3 * np.abs(dense).max())
