"""The Nyström map."""

import pickle
import tracemalloc

import numpy as np
import oracles_rows
import pytest
import scipy.sparse as sp
from catalogue import KERNELS
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from hilbin.kernels import (
    GCS,
    Chi2,
    Exponential,
    Gaussian,
    Intersection,
    Linear,
    NotPositiveDefiniteWarning,
    SymmetricKL,
)
from hilbin.maps import landmarks as module
from hilbin.maps.nystroem import NystroemMap
from hilbin.maps.projection import SparseProjectionMap

# Values are what counts here, not whether one could learn from the matrix.
pytestmark = pytest.mark.filterwarnings("ignore:the Gram matrix of")

SOME = [Chi2(), Exponential(Chi2(), gamma=2.0), Gaussian(0.5), GCS(radius=1.0), Intersection()]
ROWS = arrays(
    np.float64, st.tuples(st.integers(1, 12), st.just(3)), elements=st.integers(0, 8).map(float)
)


# The data of some checks has fewer independent rows than any map has landmarks.
@pytest.mark.filterwarnings("ignore:n_components=.* is more than the")
@parametrize_with_checks(
    [
        NystroemMap(Chi2(), n_components=5),
        NystroemMap(Chi2()),
        NystroemMap(Gaussian(gamma=0.1), n_components=5, landmarks="kmeans++"),
        NystroemMap(GCS(radius=2.0), n_components=5, landmarks="leverage"),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kernel", [k for k in KERNELS if k.psd], ids=repr)
def test_all_rows_as_landmarks_reproduce_the_gram_matrix(kernel, histograms):
    nystroem = NystroemMap(kernel, landmarks=histograms).fit(histograms)
    F = nystroem.transform(histograms)
    K = kernel(histograms)
    np.testing.assert_allclose(F @ F.T, K, atol=1e-7 * K.max())
    assert nystroem.error_.worst <= 1e-7 * K.max()
    assert nystroem.n_components_ == F.shape[1] < len(histograms)  # a duplicate row


@given(Z=ROWS, Y=ROWS, kernel=st.sampled_from(SOME))
def test_residual_is_positive_semidefinite(Z, Y, kernel):
    assume(kernel.diag(Z).max() > 0)
    F = NystroemMap(kernel, landmarks=Z).fit(Z).transform(Y)
    K = kernel(Y)
    E = K - F @ F.T
    tiny = 1e-6 * K.max()
    e = np.diag(E)
    assert e.min() >= -tiny
    assert (e <= np.diag(K) + tiny).all()
    limit = np.sqrt(np.outer(np.maximum(e, 0), np.maximum(e, 0)))
    assert (np.abs(E) <= limit + tiny).all()
    assert np.linalg.eigvalsh(E)[0] >= -len(E) * tiny


@given(Z=ROWS, Y=ROWS, kernel=st.sampled_from(SOME))
def test_features_are_the_projection(Z, Y, kernel):
    assume(kernel.diag(Z).max() > 0)
    nystroem = NystroemMap(kernel, landmarks=Z).fit(Y)
    F, G = nystroem.transform(Y), nystroem.transform(Z)
    np.testing.assert_allclose(
        F @ F.T, oracles_rows.projected_kernel(kernel, Y, Y, Z), atol=1e-6 * kernel.diag(Y).max()
    )
    limit = np.sqrt(kernel.diag(Y).max() * kernel.diag(Z).max())
    np.testing.assert_allclose(F @ G.T, kernel(Y, Z), atol=1e-6 * limit)


@pytest.mark.parametrize("kernel", SOME, ids=repr)
def test_rows_do_not_see_each_other(kernel, histograms):
    nystroem = NystroemMap(kernel, 20, random_state=0).fit(histograms)
    whole = nystroem.transform(histograms)
    np.testing.assert_allclose(nystroem.transform(histograms[7:19]), whole[7:19], atol=1e-9)
    with config_context(working_memory=0.001):  # bands of three rows
        np.testing.assert_allclose(nystroem.transform(histograms), whole, atol=1e-9)
    np.testing.assert_allclose(
        nystroem.set_params(n_jobs=2).transform(histograms), whole, atol=1e-9
    )


def test_memory_is_bounded():
    X = np.random.default_rng(0).gamma(1.0, size=(6000, 8))
    nystroem = NystroemMap(Chi2(), 100, random_state=0).fit(X)
    with config_context(working_memory=1):
        tracemalloc.start()
        size = nystroem.transform(X).nbytes
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert size > 4 * 2**20
    assert peak - size < 1.5 * 2**20


@pytest.mark.parametrize("kernel", SOME, ids=repr)
@pytest.mark.parametrize("landmarks", ["uniform", "kmeans++", "leverage"])
def test_sparse_is_dense(kernel, landmarks, histograms):
    dense = NystroemMap(kernel, 15, landmarks=landmarks, random_state=0)
    sparse = clone(dense).fit(sp.csr_array(histograms))
    F = dense.fit_transform(histograms)
    G = sparse.transform(sp.csr_matrix(histograms))
    assert isinstance(G, np.ndarray)
    np.testing.assert_allclose(G @ G.T, F @ F.T, atol=1e-9)
    np.testing.assert_allclose(dense.transform(sp.csr_array(histograms)), F, atol=1e-9)
    np.testing.assert_allclose(sparse.transform(histograms), G, atol=1e-9)


@pytest.mark.parametrize("kernel", [*SOME, Gaussian(1e-4), Gaussian(1e-6)], ids=repr)
def test_float32(kernel):
    X = load_digits(return_X_y=True)[0][:300] / 16
    double = NystroemMap(kernel, landmarks=X[:80]).fit(X)
    single = NystroemMap(kernel, landmarks=X[:80]).fit(X.astype(np.float32))
    F, G = double.transform(X), single.transform(X.astype(np.float32))
    assert F.dtype == single.transform(X).dtype == single.projection_.dtype == np.float64
    assert G.dtype == double.transform(X.astype(np.float32)).dtype == np.float32
    G = G.astype(np.float64)
    np.testing.assert_allclose(G @ G.T, F @ F.T, atol=3e-5 * kernel.diag(X).max())


def test_fewer_columns_than_asked_for(histograms):
    with pytest.warns(UserWarning, match=r"n_components=100 is more than the 37 rows.* 37 columns"):
        few = NystroemMap(Gaussian(5.0)).fit(histograms[10:47])
    assert few.transform(histograms).shape == (70, 37)
    message = r"n_components=40 is more than the 33 linearly independent landmarks .* 70 rows"
    with pytest.warns(UserWarning, match=message):
        assert NystroemMap(Linear(), 40, random_state=0).fit(histograms).n_components_ == 33
    X = np.repeat(histograms[:3], 9, axis=0)
    with pytest.warns(UserWarning, match="n_components=5 is more than the 3 "):
        assert len(NystroemMap(Chi2(), 5, landmarks="kmeans++").fit(X).landmarks_) == 3


def test_rules_become_numbers(histograms):
    kernel = Exponential(Chi2(), gamma="median")
    nystroem = NystroemMap(kernel, 10, random_state=0).fit(histograms)
    assert nystroem.kernel is kernel
    assert nystroem.kernel_ == kernel.resolve(histograms)


def test_error_is_what_it_says(histograms):
    nystroem = NystroemMap(Chi2(), 12, random_state=0).fit(histograms)
    landmarks = {row.tobytes() for row in nystroem.landmarks_}
    others = histograms[[row.tobytes() not in landmarks for row in histograms]]
    F, K = nystroem.transform(others), Chi2()(others)
    E = np.abs(K - F @ F.T)
    error = nystroem.error_
    assert (error.kind, error.per) == ("measured", "row")
    assert error.worst == pytest.approx(E.max())
    assert error.expected == pytest.approx(np.sqrt(np.mean(E**2)))
    assert error.expected_relative == pytest.approx(np.linalg.norm(E) / np.linalg.norm(K))


def test_error_is_not_measured_on_the_landmarks(monkeypatch):
    X = np.random.default_rng(0).uniform(size=(2000, 3))
    seen = []
    sample_rows = module.sample_rows
    monkeypatch.setattr(
        module, "sample_rows", lambda *given: seen.append(sample_rows(*given)) or seen[-1]
    )
    Z = NystroemMap(Gaussian(), 100, random_state=0).fit(X).landmarks_
    assert len(seen[0]) == 500
    shared = len(Z) + 500 - len(np.unique(np.vstack([Z, seen[0]]), axis=0))
    assert 10 <= shared <= 45  # 25 by chance


def test_more_landmarks_less_error(histograms):
    errors = [
        NystroemMap(Chi2(), landmarks=histograms[:n]).fit(histograms).error_ for n in (5, 15, 40)
    ]
    assert errors[0].expected > errors[1].expected > errors[2].expected > 0


def test_columns_have_names_and_travel(histograms):
    nystroem = NystroemMap(Chi2(), 4, random_state=0).fit(histograms)
    names = [f"nystroemmap{i}" for i in range(4)]
    assert nystroem.get_feature_names_out().tolist() == names
    copy = pickle.loads(pickle.dumps(nystroem))
    np.testing.assert_array_equal(copy.transform(histograms), nystroem.transform(histograms))
    frame = copy.set_output(transform="pandas").transform(histograms)
    assert frame.columns.tolist() == names


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components must be a whole number >= 1, got 0"),
        ({"n_components": 2.0}, "n_components must be a whole number >= 1, got 2.0"),
        ({"landmarks": "far"}, r'landmarks must be one of "uniform".*got \'far\''),
        ({"landmarks": [[1.0]]}, "landmarks has 1 columns, but X has 33"),
        ({"landmarks": np.zeros((2, 33))}, r"k\(z, z\) of Chi2\(\) is 0 for all 2 landmarks"),
    ],
)
def test_errors(parameters, message, histograms):
    with pytest.raises(ValueError, match=message):
        NystroemMap(Chi2(), **parameters).fit(histograms)


def test_kernel_must_fit(histograms):
    with pytest.raises(TypeError, match=r"kernel must be a kernel of hilbin\.kernels, got 'rbf'"):
        NystroemMap("rbf").fit(histograms)
    with pytest.warns(NotPositiveDefiniteWarning):
        kernel = SymmetricKL(smoothing=1e-3)
    message = r"NystroemMap needs a positive definite kernel, and SymmetricKL\(.*\) is not"
    with pytest.raises(ValueError, match=message):
        NystroemMap(kernel).fit(histograms)


def test_search_over_kernels_and_maps():
    X, y = load_digits(return_X_y=True)
    X, y = X[:400], y[:400]
    steps = [("unit", Normalizer("l1")), ("map", None), ("svm", LinearSVC(C=10, dual=False))]
    maps = [
        NystroemMap(Chi2(), 60, random_state=0),
        SparseProjectionMap(Chi2(), 60, selection="pursuit", orthonormal=True, random_state=0),
    ]
    kernels = [Intersection(), Exponential(Chi2(), "median"), Gaussian("median")]
    search = GridSearchCV(Pipeline(steps), {"map": maps, "map__kernel": kernels}, cv=2).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert len(scores) == 6
    assert scores.min() > 0.8
    assert scores.max() > 0.9
    best = search.best_estimator_["map"]
    assert best.kernel == search.best_params_["map__kernel"]
