"""Kernel classifiers: LIBSVM's optimum, however the matrix is held and the classes are split."""

import pickle
import sys
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from hilbin.estimators import KernelSVC
from hilbin.estimators.kernel import gram as kernel_gram
from hilbin.estimators.kernel import svc
from hilbin.kernels import (
    GCS,
    Chi2,
    Exponential,
    Gaussian,
    Intersection,
    Laplace,
    Polynomial,
    Sparsity,
)
from hilbin.kernels import base as kernel_base
from hilbin.persist import UnsupportedModelError, load, save

INTERCEPT = {
    "free": {},
    "penalized": {"penalize_intercept": True},
    0.5: {"penalize_intercept": True, "intercept_scaling": np.sqrt(0.5)},
    0.3: {"penalize_intercept": True, "intercept_scaling": np.sqrt(0.3)},
    0: {"fit_intercept": False},
}

DIGITS, LABELS = load_digits(return_X_y=True)
X = DIGITS[:300] / DIGITS[:300].sum(axis=1, keepdims=True)  # more rows than are solved to rounding
NEW = DIGITS[300:420] / DIGITS[300:420].sum(axis=1, keepdims=True)
Y = LABELS[:300]
TWO = (Y > 4).astype(int)
FEW = LABELS[:300] % 4  # four classes
KERNEL = Gaussian(20.0)
TIGHT = {"tol": 1e-7}
KERNELS = [
    KERNEL,
    Laplace(gamma="median"),
    Exponential(Chi2(), gamma="mean"),
    20.0 * Intersection(),
    Polynomial(2, 1.0),
]
SCHEMES = ["ovr", "ovo", "dag", "ecoc", "crammer_singer"]
MACHINES = [(scheme, "free") for scheme in SCHEMES] + [("ovr", "penalized")]
WEIGHTS = np.random.default_rng(3).integers(0, 4, 300)


def assert_same(one, other, rows=NEW, atol=1e-5):
    np.testing.assert_allclose(
        one.decision_function(rows), other.decision_function(rows), atol=atol
    )


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_optimum_of_libsvm(kernel, C):
    kernel = kernel.resolve(X)
    K, signs = kernel.gram(X), np.where(TWO, 1.0, -1.0)
    model = KernelSVC(kernel, C, **TIGHT).fit(X, TWO)
    theirs = SVC(kernel="precomputed", C=C, **TIGHT).fit(K, TWO)
    coef = np.zeros(300)
    coef[theirs.support_] = theirs.dual_coef_[0]
    np.testing.assert_allclose(model.objective_, signs @ coef - 0.5 * coef @ K @ coef, rtol=1e-6)
    assert abs(model.gap_[0]) < 1e-5 * model.objective_[0]
    expected = theirs.decision_function(kernel.gram(NEW, X))
    np.testing.assert_allclose(model.decision_function(NEW), expected, atol=1e-4)


@pytest.mark.parametrize("intercept", ["free", "penalized", 0.5])
def test_optimality_conditions(intercept):
    model = KernelSVC(KERNEL, 3.0, **INTERCEPT[intercept], **TIGHT).fit(X, TWO)
    coef, signs = np.zeros(300), np.where(TWO, 1.0, -1.0)
    coef[model.support_] = model.dual_coef_[:, 0]
    alpha, margins = coef * signs, signs * model.decision_function(X)
    assert alpha.min() >= 0
    assert alpha.max() <= 3.0
    assert (margins[alpha == 0] >= 1 - 1e-5).all()
    assert (margins[alpha == 3.0] <= 1 + 1e-5).all()
    inside = (alpha > 0) & (alpha < 3.0)
    np.testing.assert_allclose(margins[inside], 1, atol=1e-5)
    if intercept == "free":
        np.testing.assert_allclose(coef.sum(), 0, atol=1e-10)
    else:
        constant = 1.0 if intercept == "penalized" else intercept
        np.testing.assert_allclose(model.intercept_, constant * coef.sum())


@pytest.mark.parametrize(("multi_class", "intercept"), MACHINES)
def test_a_weight_is_a_repetition(multi_class, intercept):
    common = {
        "multi_class": multi_class,
        **INTERCEPT[intercept],
        "class_weight": "balanced",
        **TIGHT,
    }
    model = KernelSVC(Laplace(gamma="median"), 2.0, **common)
    weighted = clone(model).fit(X, FEW, sample_weight=WEIGHTS)
    repeated = clone(model).fit(np.repeat(X, WEIGHTS, axis=0), np.repeat(FEW, WEIGHTS))
    assert weighted.kernel_ == repeated.kernel_
    assert_same(weighted, repeated)
    assert (WEIGHTS[weighted.support_] > 0).all()


@pytest.mark.parametrize("multi_class", SCHEMES)
def test_ways_to_give_the_kernel(multi_class):
    model = KernelSVC(KERNEL, multi_class=multi_class, **TIGHT).fit(X, FEW, WEIGHTS)
    expected = model.decision_function(NEW)
    K, cross = KERNEL.gram(X), KERNEL.gram(NEW, X)
    given = clone(model).set_params(kernel="precomputed")
    for change in (np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array):
        fitted = given.fit(change(K), FEW, WEIGHTS)
        np.testing.assert_allclose(fitted.decision_function(change(cross)), expected, atol=1e-5)
    spoilt = cross.copy()
    spoilt[:, np.setdiff1d(np.arange(300), fitted.support_)] = 1e9
    np.testing.assert_allclose(fitted.decision_function(spoilt), expected, atol=1e-5)
    for function in (lambda A, B: KERNEL(A, B), lambda A, B: sp.csr_array(KERNEL(A, B))):
        called = clone(model).set_params(kernel=function).fit(X, FEW, WEIGHTS)
        np.testing.assert_allclose(called.decision_function(NEW), expected, atol=1e-5)


@pytest.mark.parametrize("multi_class", SCHEMES)
def test_sparse_rows_equal_dense_rows(multi_class):
    model = KernelSVC(KERNEL, multi_class=multi_class, **TIGHT)
    dense, sparse = clone(model).fit(X, FEW), model.fit(sp.csr_array(X), FEW)
    assert sp.issparse(sparse.support_vectors_)
    np.testing.assert_allclose(
        sparse.decision_function(sp.csr_array(NEW)), dense.decision_function(NEW), atol=1e-5
    )


@pytest.mark.parametrize(("multi_class", "intercept"), MACHINES)
def test_compact_kernels_are_never_dense(multi_class, intercept, monkeypatch):
    kernel = GCS(radius=Sparsity(0.7)).resolve(X[:, :5])
    rows, new = X[:, :5], NEW[:, :5]
    model = KernelSVC(kernel, multi_class=multi_class, **INTERCEPT[intercept], tol=1e-5)
    K, cross = kernel.gram(rows), kernel.gram(new, rows)
    assert K.nnz < 0.5 * 300**2
    dense = clone(model).set_params(kernel="precomputed").fit(K.toarray(), FEW)
    expected = dense.decision_function(cross.toarray())
    monkeypatch.setattr("hilbin.solvers.gram.GramRows", None)
    computed = clone(model).fit(rows, FEW)
    np.testing.assert_allclose(computed.decision_function(new), expected, atol=1e-3)
    given = clone(model).set_params(kernel="precomputed").fit(K, FEW)
    np.testing.assert_allclose(given.decision_function(cross), expected, atol=1e-3)


def test_memory_of_a_sparse_matrix():
    n = 1500
    near = sp.diags_array([0.5, 0.5], offsets=[-1, 1], shape=(n, n), format="csr")
    K = sp.csr_array(near + sp.eye_array(n))
    tracemalloc.start()
    model = KernelSVC("precomputed").fit(K, np.arange(n) // 7 % 2)
    model.predict(K)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.25 * 8 * n * n
    assert model.score(K, np.arange(n) // 7 % 2) > 0.9


@pytest.mark.parametrize(
    ("multi_class", "intercept"), [m for m in MACHINES if m[0] != "crammer_singer"]
)
def test_rows_on_demand_equal_the_whole_matrix(multi_class, intercept):
    model = KernelSVC(KERNEL, 5.0, multi_class=multi_class, **INTERCEPT[intercept])
    whole, by_rows = clone(model).fit(X, FEW), model.set_params(memory=0.3).fit(X, FEW)
    np.testing.assert_allclose(by_rows.objective_, whole.objective_, rtol=1e-3)
    assert_same(whole, by_rows, atol=0.02)
    called = clone(model).set_params(kernel=lambda A, B: KERNEL(A, B)).fit(X, FEW)
    assert_same(by_rows, called, atol=2e-3)  # values differ by rounding, and tol is 1e-3


def test_room_for_two_rows():
    model = KernelSVC(KERNEL).fit(X, TWO)
    assert_same(model, clone(model).set_params(memory=1e-3).fit(X, TWO), atol=0.02)


def test_what_needs_the_whole_matrix_says_so():
    with pytest.raises(ValueError, match=r"needs the whole Gram matrix, 0.3 MiB: memory=0.2"):
        KernelSVC(memory=0.2, multi_class="crammer_singer").fit(X, FEW)


@pytest.mark.parametrize("kernel", [Laplace(20.0), Polynomial(2)])
def test_single_precision_is_rounded_in_blocks(kernel, monkeypatch):
    monkeypatch.setattr(kernel_base, "BLOCK", 70)
    gram = kernel_gram.Gram.of_rows(kernel, X, np.float32, 10**9, None)
    np.testing.assert_allclose(gram.K, kernel.gram(X).astype(np.float32), rtol=2e-7)


@pytest.mark.parametrize("memory", [10**9, 10**5], ids=["whole", "row by row"])
def test_gaussian_values_from_rows_in_single_precision(memory):
    rows = np.vstack([X, X[:20] + 1e-9])  # and near-duplicates
    gram = kernel_gram.Gram.of_rows(KERNEL, rows, np.float32, memory, None)
    assert gram.source.dtype == np.float32
    assert gram.X is rows
    every = np.eye(len(rows))
    np.testing.assert_allclose(gram.rows.scores(every), KERNEL.gram(rows), atol=1e-6)


@pytest.mark.parametrize("kernel", [Exponential(Chi2(), 2.0), Exponential(Intersection(0.5))])
@pytest.mark.parametrize("memory", [10**9, 10**5], ids=["whole", "row by row"])
def test_exponential_values_from_rows_in_single_precision(kernel, memory):
    rows = np.abs(np.vstack([X, X[:20] * (1 + 1e-9)]))
    gram = kernel_gram.Gram.of_rows(kernel, rows, np.float32, memory, None)
    assert gram.source.dtype == np.float32
    every = np.eye(len(rows))
    np.testing.assert_allclose(gram.rows.scores(every), kernel.gram(rows), atol=1e-5)


@pytest.mark.parametrize("rows", [np.abs(X) + 1000, np.abs(X) * 1e-35], ids=["far", "tiny"])
def test_exponential_values_of_rows_that_single_precision_cannot_tell_apart(rows):
    kernel = Exponential(Chi2(), "mean").resolve(rows)
    gram = kernel_gram.Gram.of_rows(kernel, rows, np.float32, 10**9, None)
    assert gram.source is rows
    np.testing.assert_allclose(gram.K, kernel.gram(rows), rtol=2e-7)


def test_gaussian_values_of_rows_that_single_precision_cannot_tell_apart():
    rows = X + 1000
    gram = kernel_gram.Gram.of_rows(KERNEL, rows, np.float32, 10**9, None)
    assert gram.source is rows
    np.testing.assert_allclose(gram.K, KERNEL.gram(rows), rtol=2e-7)


def test_rounding_spares_rows_far_from_the_origin():
    model = KernelSVC(Polynomial(1, 0.0), 100.0)
    near, far = clone(model).fit(X, TWO), model.fit(X + 1000, TWO)
    np.testing.assert_allclose(
        far.decision_function(NEW + 1000), near.decision_function(NEW), atol=0.05
    )


@pytest.mark.parametrize(("multi_class", "intercept"), MACHINES)
def test_path(multi_class, intercept):
    model = KernelSVC(KERNEL, multi_class=multi_class, **INTERCEPT[intercept], **TIGHT)
    Cs = [10.0, 0.1, 1.0]
    models = model.path(X, FEW, Cs, WEIGHTS)
    assert vars(model) == vars(clone(model))
    for C, found in zip(Cs, models, strict=True):
        alone = clone(model).set_params(C=C).fit(X, FEW, WEIGHTS)
        assert found.C == C
        np.testing.assert_allclose(found.objective_, alone.objective_, rtol=1e-6)
        assert_same(found, alone)


@pytest.mark.parametrize("memory", [2048, 0.2])
@pytest.mark.parametrize("multi_class", ["ovr", "ovo", "ecoc"])
def test_cross_validation_by_hand(multi_class, memory):
    model = KernelSVC(KERNEL, multi_class=multi_class, memory=memory)
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    weights = WEIGHTS.astype(float)
    found = model.cross_validate(X, FEW, cv, Cs=[1.0, 30.0], sample_weight=weights)
    assert found.shape == (3, 2)
    for row, (train, test) in zip(found, cv.split(X, FEW), strict=True):
        for accuracy, C in zip(row, [1.0, 30.0], strict=True):
            alone = clone(model).set_params(C=C).fit(X[train], FEW[train], weights[train])
            expected = accuracy_score(
                FEW[test], alone.predict(X[test]), sample_weight=weights[test]
            )
            assert accuracy == pytest.approx(expected, abs=0.02 if memory < 1 else 1e-12)
    assert model.cross_validate(X, FEW, 3).shape == (3,)
    assert vars(model) == vars(clone(model))


def test_cross_validation_of_given_matrices():
    K = KERNEL.gram(X)
    expected = KernelSVC(KERNEL).cross_validate(X, FEW, 3)
    for matrix in (K, sp.csr_array(K)):
        found = KernelSVC("precomputed").cross_validate(matrix, FEW, 3)
        np.testing.assert_allclose(found, expected)
    search = GridSearchCV(KernelSVC("precomputed"), {"C": [1.0]}, cv=3).fit(K, FEW)
    np.testing.assert_allclose(search.best_score_, expected.mean())


def test_limits_leave_a_usable_model():
    for limit, match in (({"max_iter": 3}, "3 steps"), ({"max_time": 1e-9}, "max_time=1e-09")):
        with pytest.warns(ConvergenceWarning, match=match):
            model = KernelSVC(KERNEL, 1000.0, tol=1e-9, **limit).fit(X, TWO)
        assert not model.converged_
        assert model.gap_ > 0
        assert model.score(X, TWO) > 0.4


class Interrupt:
    """Presses Ctrl-C when the second problem begins."""

    def setup(self, estimator, context): ...
    def teardown(self, estimator, context): ...
    def on_fit_task_end(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context):
        if context.task_name == "1":
            raise KeyboardInterrupt


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_leaves_a_usable_model(n_jobs):
    pytest.importorskip("sklearn.callback")
    model = KernelSVC(KERNEL, 10.0, n_jobs=n_jobs).set_callbacks(Interrupt())
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, FEW)
    assert model.score(X, FEW) > 0.5


@pytest.mark.parametrize("multi_class", SCHEMES)
def test_a_fit_goes_on_where_it_ended(multi_class, tmp_path):
    model = KernelSVC(KERNEL, 100.0, multi_class=multi_class, warm_start=True, max_iter=3)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, FEW)
    save(model, tmp_path / "model.hilbin")
    model = load(tmp_path / "model.hilbin")
    begun = model.objective_.copy()
    model.set_params(max_iter=None).fit(X, FEW)
    assert model.converged_
    assert (model.objective_ <= begun).all()
    first = model.n_iter_
    assert model.fit(X, FEW).n_iter_ < first / 4
    fresh = clone(model).fit(X, FEW)
    np.testing.assert_allclose(model.objective_, fresh.objective_, rtol=0.01)
    model.fit(X[:200], FEW[:200])  # other rows: from the beginning
    assert_same(model, clone(model).fit(X[:200], FEW[:200]), atol=1e-12)


def test_threads_change_nothing(capsys):
    for multi_class in SCHEMES:
        model = KernelSVC(KERNEL, multi_class=multi_class, verbose=2)
        assert_same(clone(model).fit(X, FEW), model.set_params(n_jobs=2).fit(X, FEW), atol=1e-12)
    said = capsys.readouterr().out
    assert "[0 or 3] step " in said
    assert "[machine 6] " in said
    assert "[all classes] " in said


def test_models_are_values(tmp_path):
    models = [
        KernelSVC(Exponential(Chi2(), gamma="median"), multi_class=m).fit(X, Y) for m in SCHEMES
    ]
    models.append(KernelSVC(GCS("median")).fit(sp.csr_array(X), FEW))
    for model in models:
        save(model, tmp_path / "model.hilbin")
        for copy in (load(tmp_path / "model.hilbin"), pickle.loads(pickle.dumps(model))):
            assert_same(model, copy, atol=0)
    called = KernelSVC(np.dot).set_params(kernel=lambda A, B: A @ B.T).fit(X, FEW)
    with pytest.raises(UnsupportedModelError, match=r"model\.kernel is the function .*lambda"):
        save(called, tmp_path / "model.hilbin")


def test_rows_at_prediction_do_not_meet():
    model = KernelSVC(KERNEL).fit(X.astype(np.float32), FEW)
    assert model.support_vectors_.dtype == np.float32
    whole = model.decision_function(NEW)
    np.testing.assert_allclose(whole[:1], model.decision_function(NEW[:1]), atol=1e-12)
    np.testing.assert_allclose(model.decision_function(NEW.astype(np.float32)), whole, atol=1e-4)


def test_tags():
    assert KernelSVC("precomputed").__sklearn_tags__().input_tags.pairwise
    assert not KernelSVC().__sklearn_tags__().input_tags.pairwise
    assert KernelSVC(Chi2()).__sklearn_tags__().input_tags.positive_only
    assert not KernelSVC(KERNEL).__sklearn_tags__().input_tags.positive_only
    assert KernelSVC(KERNEL).__sklearn_tags__().input_tags.sparse


@pytest.mark.parametrize("multi_class", ["ovr", "ovo", "dag", "ecoc"])
def test_machines_that_begin_together_end_where_they_do_alone(multi_class, monkeypatch):
    model = KernelSVC(KERNEL, 10.0, multi_class=multi_class)
    together = clone(model).fit(X, LABELS[:300])
    monkeypatch.setattr(svc, "MOST_TOGETHER", 0)
    alone = clone(model).fit(X, LABELS[:300])
    np.testing.assert_allclose(together.objective_, alone.objective_, rtol=1e-6)
    np.testing.assert_allclose(together.gap_, alone.gap_, atol=1e-6 * alone.objective_.max())
    np.testing.assert_allclose(together.machine_scores(NEW), alone.machine_scores(NEW), atol=1e-5)
    assert together.n_iter_ == alone.n_iter_


def test_machines_go_on_after_they_began_together(monkeypatch):
    model = KernelSVC(KERNEL, 10.0, multi_class="ovo")
    whole = clone(model).fit(X, LABELS[:300])
    for name in ("ROUND", "ROUNDS_OF_FEW"):
        monkeypatch.setattr(sys.modules["hilbin.solvers.smo"], name, 2)
    parts = clone(model).fit(X, LABELS[:300])
    assert parts.converged_
    np.testing.assert_allclose(parts.machine_scores(NEW), whole.machine_scores(NEW), atol=0.02)


def test_an_interrupt_while_machines_begin_leaves_a_model(monkeypatch):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(svc, "smo_blocks", interrupted)
    model = KernelSVC(KERNEL)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, LABELS[:300])
    assert model.predict(NEW).shape == (len(NEW),)
