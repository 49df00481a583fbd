"""Sparse projections onto landmarks."""

import pickle
import tracemalloc

import numpy as np
import oracles_rows
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.utils.estimator_checks import parametrize_with_checks

from hilbin.kernels import (
    GCS,
    Chi2,
    Exponential,
    Gaussian,
    Intersection,
    JensenShannon,
    NotPositiveDefiniteWarning,
    SymmetricKL,
)
from hilbin.maps.nystroem import NystroemMap
from hilbin.maps.projection import SparseProjectionMap

# Values are what counts here, not whether one could learn from the matrix.
pytestmark = pytest.mark.filterwarnings("ignore:the Gram matrix of")

SOME = [Chi2(), Exponential(Chi2(), gamma=2.0), Gaussian(0.5), GCS(radius=1.0), Intersection()]
SELECTIONS = ["nearest", "pursuit"]
ROWS = arrays(
    np.float64, st.tuples(st.integers(1, 12), st.just(3)), elements=st.integers(0, 8).map(float)
)
every_selection = pytest.mark.parametrize("selection", SELECTIONS)


@pytest.mark.filterwarnings("ignore:landmarks=.* is more than the")
@parametrize_with_checks(
    [
        SparseProjectionMap(Chi2(), 5, 2),
        SparseProjectionMap(Chi2()),
        SparseProjectionMap(
            Gaussian(gamma=0.1), 6, 3, selection="pursuit", landmark_selection="leverage"
        ),
        SparseProjectionMap(Intersection(), 6, 2, landmark_selection="kmeans++", orthonormal=True),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("kernel", "x", "Z", "expected", "residual"),
    [
        (Chi2(), 3.3, [3, 4], [0.7031963470, 0.3013698630], 6.8805904798e-5),
        (JensenShannon(), 3.3, [3, 4], [0.7021683740, 0.3011167548], 1.38774e-5),
        (Intersection(), 3.3, [3, 4], [0.7, 0.3], 0.21),
        (Intersection(), 0.3, [0, 1], [0, 0.3], 0.21),
        (Chi2(), 0.3, [0, 1], [0, 0.4615384615], 0.3 - 0.4615384615**2),
    ],
)
def test_two_neighbors(kernel, x, Z, expected, residual):
    sparse = SparseProjectionMap(kernel, np.reshape(Z, (2, 1)), 2).fit([[x]])
    np.testing.assert_allclose(sparse.transform([[x]]).toarray()[0], expected, atol=1e-9)
    assert sparse.error_.worst == pytest.approx(residual, rel=1e-5)


@every_selection
@pytest.mark.parametrize("kernel", SOME, ids=repr)
def test_row_by_row(kernel, selection):
    rng = np.random.default_rng(0)
    Z, X = rng.gamma(1.0, size=(30, 4)), rng.gamma(1.0, size=(25, 4))
    sparse = SparseProjectionMap(kernel, Z, 4, selection=selection).fit(X)
    slow = oracles_rows.sparse_coordinates(kernel, X, Z, 4, getattr(oracles_rows, selection))
    np.testing.assert_allclose(sparse.transform(X).toarray(), slow, atol=1e-8)


@given(Z=ROWS, Y=ROWS, kernel=st.sampled_from(SOME), selection=st.sampled_from(SELECTIONS))
def test_all_landmarks_are_the_nystroem_map(Z, Y, kernel, selection):
    assume(kernel.diag(Z).max() > 0)
    sparse = SparseProjectionMap(kernel, Z, len(Z), selection=selection).fit(Y)
    Phi = sparse.transform(Y)
    F = NystroemMap(kernel, landmarks=Z).fit(Y).transform(Y)
    approximation = Phi @ sparse.inner_.matmat(Phi.toarray().T)
    np.testing.assert_allclose(approximation, F @ F.T, atol=1e-5 * kernel.diag(Y).max())


@given(Z=ROWS, Y=ROWS, kernel=st.sampled_from(SOME))
def test_pursuit_only_gains(Z, Y, kernel):
    assume(kernel.diag(Z).max() > 0)
    tiny = 1e-7 * kernel.diag(Y).max()
    before = np.zeros(len(Y))
    for size in range(1, len(Z) + 1):
        sparse = SparseProjectionMap(kernel, Z, size, selection="pursuit").fit(Y)
        Phi = sparse.transform(Y).toarray()
        norms = np.einsum("nd,nd->n", Phi, sparse.inner_.matmat(Phi.T).T)
        assert (norms >= before - tiny).all()
        assert (norms <= kernel.diag(Y) + tiny).all()
        before = norms


@every_selection
@pytest.mark.parametrize("kernel", SOME, ids=repr)
@pytest.mark.parametrize("size", [1, 3])
def test_landmarks_reproduce_themselves(kernel, selection, size, histograms):
    Z = histograms[7:37]
    sparse = SparseProjectionMap(kernel, Z, size, selection=selection).fit(histograms)
    np.testing.assert_allclose(sparse.transform(Z).toarray(), np.eye(30), atol=1e-9)


@every_selection
def test_form(selection, histograms):
    sparse = SparseProjectionMap(Chi2(), 30, 4, selection=selection, random_state=0)
    Phi = sparse.fit_transform(histograms)  # an empty row and a duplicate among them
    assert isinstance(Phi, sp.csr_array)
    assert Phi.shape == (70, 30)
    assert (np.diff(Phi.indptr) == 4).all()
    assert Phi.has_canonical_format
    assert np.isfinite(Phi.data).all()
    assert not Phi.toarray()[6].any()
    np.testing.assert_allclose(sparse.inner_ @ np.eye(30), Chi2()(sparse.landmarks_))


@every_selection
@pytest.mark.parametrize(
    ("dtype", "shift", "limit"), [(np.float64, 1e-9, 1e-6), (np.float32, 1e-4, 1e-3)]
)
def test_duplicates_among_the_landmarks(selection, dtype, shift, limit, histograms):
    Z = np.vstack([histograms[7:12]] * 4 + [histograms[7:12] * (1 + shift)]).astype(dtype)
    kernel = Exponential(Chi2())
    K = kernel(Z.astype(np.float64))
    sparse = SparseProjectionMap(kernel, Z, 12, selection=selection).fit(Z)
    Phi = sparse.transform(Z)
    assert np.abs(Phi.data).max() < 2
    np.testing.assert_allclose(Phi @ (Phi @ K).T, K, atol=limit)


@every_selection
def test_landmarks_of_norm_zero_are_never_used(selection, histograms):
    Z = np.vstack([np.zeros((5, 33)), histograms[10:14]])
    sparse = SparseProjectionMap(Intersection(), Z, 3, selection=selection).fit(histograms)
    assert sparse.transform(histograms).indices.min() == 5
    crowded = SparseProjectionMap(Intersection(), Z, 7, selection=selection).fit(histograms)
    Phi = crowded.transform(histograms).toarray()
    assert not Phi[:, :5].any()
    F = NystroemMap(Intersection(), landmarks=Z[5:]).fit(histograms).transform(histograms)
    np.testing.assert_allclose(Phi @ Intersection()(Z) @ Phi.T, F @ F.T, atol=1e-10)


@every_selection
@pytest.mark.parametrize("kernel", SOME, ids=repr)
def test_rows_do_not_see_each_other(kernel, selection, histograms):
    sparse = SparseProjectionMap(kernel, histograms[10:40], 4, selection=selection).fit(histograms)
    whole = sparse.transform(histograms).toarray()
    part = sparse.transform(histograms[7:19]).toarray()
    np.testing.assert_allclose(part, whole[7:19], atol=1e-9)
    with config_context(working_memory=0.003):  # bands of two rows
        np.testing.assert_allclose(sparse.transform(histograms).toarray(), whole, atol=1e-9)
    sparse.set_params(n_jobs=2)
    np.testing.assert_allclose(sparse.transform(histograms).toarray(), whole, atol=1e-9)


@every_selection
@pytest.mark.parametrize("size", [2, 16])
def test_memory_is_bounded(selection, size):
    X = np.random.default_rng(0).gamma(1.0, size=(6000, 8))
    sparse = SparseProjectionMap(Chi2(), 100, size, selection=selection, random_state=0).fit(X)
    with config_context(working_memory=1):
        tracemalloc.start()
        Phi = sparse.transform(X)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    # The result, its row starts in int64 before they shrink, and the bands.
    assert peak - Phi.data.nbytes - Phi.indices.nbytes < 1.75 * 2**20


@every_selection
@pytest.mark.parametrize("kernel", SOME, ids=repr)
def test_sparse_is_dense(kernel, selection, histograms):
    histograms = np.delete(histograms, 6, axis=0)  # all landmarks are as far from an empty row
    dense = SparseProjectionMap(kernel, 15, 3, selection=selection, random_state=0)
    sparse = clone(dense).fit(sp.csr_array(histograms))
    Phi = dense.fit_transform(histograms).toarray()
    for fitted, X in (
        (sparse, histograms),
        (sparse, sp.csr_matrix(histograms)),
        (dense, sp.csr_array(histograms)),
    ):
        np.testing.assert_allclose(fitted.transform(X).toarray(), Phi, atol=1e-9)


@every_selection
@pytest.mark.parametrize("kernel", [*SOME, Gaussian(1e-4)], ids=repr)
def test_float32(kernel, selection):
    X = load_digits(return_X_y=True)[0][:300] / 16
    Z, X = X[:80], X[80:]
    double = SparseProjectionMap(kernel, Z, selection=selection).fit(X)
    single = clone(double).fit(X.astype(np.float32))
    Phi, Psi = double.transform(X), single.transform(X.astype(np.float32))
    assert Phi.dtype == single.transform(X).dtype == np.float64
    assert Psi.dtype == double.transform(X.astype(np.float32)).dtype == np.float32
    # Rounding may decide between two landmarks that suit a row equally.
    same = (Phi.indices == Psi.indices).reshape(-1, 5).all(axis=1)
    assert same.mean() > 0.9
    Phi, Psi = Phi[same], Psi[same].astype(np.float64)
    limit = 1e-4 * kernel.diag(X).max()
    K = Phi @ (Phi @ kernel(Z)).T
    np.testing.assert_allclose(Psi @ (Psi @ kernel(Z)).T, K, atol=limit)
    F = clone(single).set_params(orthonormal=True).fit_transform(X.astype(np.float32))
    assert F.dtype == np.float32
    F = F[same].astype(np.float64)
    np.testing.assert_allclose(F @ F.T, K, atol=limit)


@every_selection
def test_orthonormal_features_have_ordinary_inner_products(selection, histograms):
    Z = np.vstack([histograms[10:40], histograms[10:15]])
    sparse = SparseProjectionMap(Chi2(), Z, 4, selection=selection).fit(histograms)
    plain = clone(sparse).set_params(orthonormal=True).fit(histograms)
    Phi, F = sparse.transform(histograms), plain.transform(histograms)
    assert isinstance(F, np.ndarray)
    assert F.shape == (70, 30)  # five landmarks are there twice
    np.testing.assert_allclose(F @ F.T, Phi @ (Phi @ Chi2()(Z)).T, atol=1e-10)
    assert plain.error_.worst == pytest.approx(np.abs(Chi2()(histograms) - F @ F.T).max())


@every_selection
def test_error_falls_with_the_number_of_landmarks_in_use(selection):
    X = load_digits(return_X_y=True)[0][:400]
    kernel = Exponential(Chi2(), "median")
    errors = [
        SparseProjectionMap(kernel, 80, size, selection=selection, random_state=0).fit(X).error_
        for size in (1, 4, 16)
    ]
    assert errors[0].expected > errors[1].expected > errors[2].expected > 0
    assert (errors[0].kind, errors[0].per) == ("measured", "row")


def test_pursuit_is_closer_than_the_nearest():
    X = load_digits(return_X_y=True)[0][:400]
    kernel = Exponential(Chi2(), "median")
    nearest, pursuit = (
        SparseProjectionMap(kernel, 80, 5, selection=s, random_state=0).fit(X).error_.expected
        for s in SELECTIONS
    )
    assert pursuit < nearest


def test_rules_become_numbers(histograms):
    sparse = SparseProjectionMap(GCS("median"), 10, random_state=0).fit(histograms)
    assert sparse.kernel_ == GCS("median").resolve(histograms)


def test_columns_have_names_and_travel(histograms):
    sparse = SparseProjectionMap(Chi2(), 6, 2, random_state=0).fit(histograms)
    names = [f"sparseprojectionmap{i}" for i in range(6)]
    assert sparse.get_feature_names_out().tolist() == names
    copy = pickle.loads(pickle.dumps(sparse))
    assert (copy.transform(histograms) != sparse.transform(histograms)).nnz == 0
    np.testing.assert_array_equal(copy.inner_ @ np.ones(6), sparse.inner_ @ np.ones(6))
    dense = clone(sparse).set_params(orthonormal=True).set_output(transform="pandas")
    assert dense.fit_transform(histograms).columns.tolist() == names


def test_fewer_landmarks_than_asked_for(histograms):
    with pytest.warns(UserWarning, match="landmarks=100 is more than the 37 rows: the map has 37"):
        SparseProjectionMap(Chi2()).fit(histograms[:37])
    X = np.repeat(histograms[:3], 9, axis=0)
    with pytest.warns(UserWarning, match="landmarks=9 is more than the 3 landmarks found in 27"):
        SparseProjectionMap(Chi2(), 9, 2, landmark_selection="kmeans++").fit(X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"landmarks": 4, "n_nonzero": 5}, "n_nonzero=5 is more than landmarks=4"),
        ({"landmarks": np.ones((3, 33))}, "n_nonzero=5 is more than the 3 rows of landmarks"),
        ({"landmarks": 0}, "landmarks must be a whole number >= 1, got 0"),
        ({"landmarks": "uniform"}, "landmarks must be a whole number >= 1, got 'uniform'"),
        ({"landmarks": np.ones((9, 2))}, "landmarks has 2 columns, but X has 33"),
        ({"n_nonzero": 0}, "n_nonzero must be a whole number >= 1, got 0"),
        (
            {"landmark_selection": "best"},
            r'landmark_selection must be one of "uniform", .* "leverage", got \'best\'',
        ),
        ({"selection": "best"}, r"selection must be one of \('nearest', 'pursuit'\), got 'best'"),
    ],
)
def test_errors(parameters, message, histograms):
    with pytest.raises(ValueError, match=message):
        SparseProjectionMap(Chi2(), **parameters).fit(histograms)


def test_too_few_rows(histograms):
    with pytest.raises(ValueError, match=r"n_nonzero=5 is more than the 3 landmarks found in 3 "):
        SparseProjectionMap(Chi2()).fit(histograms[:3])


def test_kernel_must_be_positive_definite(histograms):
    with pytest.warns(NotPositiveDefiniteWarning):
        kernel = SymmetricKL(smoothing=1e-3)
    with pytest.raises(ValueError, match="SparseProjectionMap needs a positive definite kernel"):
        SparseProjectionMap(kernel).fit(histograms)
