"""Kernel principal components against scikit-learn's, and pre-images against independent minima."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import centered_by_matrix, preimage_distance, upto_signs
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as Peer

import hilbin
from hilbin.estimators import KernelPCA, KernelRidge, StreamPCA
from hilbin.estimators.reduction import base
from hilbin.kernels import (
    Chi2,
    Exponential,
    Gaussian,
    Hellinger,
    Intersection,
    JensenShannon,
    Laplace,
    Linear,
    NotPositiveDefiniteWarning,
    Polynomial,
)
from hilbin.maps import AdditiveMap, NystroemMap, SparseMap

DIGITS = load_digits(return_X_y=True)[0]
IRIS = load_iris(return_X_y=True)[0]
FEW, NEW = DIGITS[:100], DIGITS[100:120]


def test_check_values():
    model = KernelPCA(Gaussian(1e-3), 3).fit(FEW)
    np.testing.assert_allclose(model.eigenvalues_, [6.985019, 6.227519, 4.971618], atol=1e-6)


@pytest.mark.parametrize(
    "kernel",
    [Gaussian(1e-3), Chi2(), Exponential(Chi2(), 0.01), Linear(), Polynomial(2)],
    ids=repr,
)
@pytest.mark.parametrize("count", [5, None])
def test_it_is_scikit_learns(kernel, count):
    model = KernelPCA(kernel, count, preimage=None).fit(FEW)
    peer = Peer(count, kernel="precomputed", eigen_solver="dense").fit(kernel.gram(FEW))
    m = 5 if count else np.count_nonzero(model.eigenvalues_ > 1e-6 * model.eigenvalues_[0])
    sizes = np.sqrt(model.eigenvalues_[0])
    np.testing.assert_allclose(model.eigenvalues_[:m], peer.eigenvalues_[:m], rtol=1e-8)
    upto_signs(
        model.transform(NEW)[:, :m] / sizes,
        peer.transform(kernel.gram(NEW, FEW))[:, :m] / sizes,
        atol=1e-10 if count else 1e-7,
    )
    T = model.fit_transform(FEW)
    np.testing.assert_allclose(T / sizes, model.transform(FEW) / sizes, atol=1e-8)


def test_signs_and_variances():
    model = KernelPCA(Gaussian("median")).fit(IRIS)
    T = model.transform(IRIS)
    assert (T[np.abs(T).argmax(axis=0), np.arange(T.shape[1])] > 0).all()
    np.testing.assert_allclose(T.sum(axis=0), 0, atol=1e-7)
    np.testing.assert_allclose(T.T @ T, np.diag(model.eigenvalues_), atol=1e-8)
    assert model.explained_variance_ratio_.sum() == pytest.approx(1)
    Kc = centered_by_matrix(model.kernel_.gram(IRIS))
    np.testing.assert_allclose(T @ T.T, Kc, atol=1e-8)


def test_lanczos_finds_what_lapack_does(monkeypatch):
    exact = KernelPCA(Chi2(), 4).fit(DIGITS[:200])
    monkeypatch.setattr(base, "FEW_ROWS", 50)
    lanczos = KernelPCA(Chi2(), 4).fit(DIGITS[:200])
    np.testing.assert_allclose(lanczos.eigenvalues_, exact.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(lanczos.transform(NEW), exact.transform(NEW), rtol=1e-6, atol=1e-8)


def test_a_given_matrix_sparse_rows_and_float32():
    kernel = Chi2()
    plain = KernelPCA(kernel, 5).fit(FEW)
    matrix = KernelPCA("precomputed", 5).fit(kernel.gram(FEW))
    np.testing.assert_allclose(matrix.transform(kernel.gram(NEW, FEW)), plain.transform(NEW))
    sparse = KernelPCA(kernel, 5).fit(sp.csr_array(FEW))
    np.testing.assert_allclose(sparse.transform(sp.csr_array(NEW)), plain.transform(NEW), atol=1e-9)
    single = KernelPCA(kernel, 5).fit(FEW.astype(np.float32))
    np.testing.assert_allclose(single.transform(NEW), plain.transform(NEW), atol=1e-3)
    function = KernelPCA(lambda A, B: A @ B.T, 5).fit(FEW)
    linear = KernelPCA(Linear(), 5).fit(FEW)
    np.testing.assert_allclose(function.transform(NEW), linear.transform(NEW), atol=1e-9)


def test_features_of_a_finite_map_give_the_exact_components():
    exact = KernelPCA(Hellinger(), 8).fit(FEW)
    features = KernelPCA(n_components=8, feature_map=AdditiveMap(Hellinger())).fit(FEW)
    np.testing.assert_allclose(features.eigenvalues_, exact.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(features.transform(NEW), exact.transform(NEW), atol=1e-8)
    streamed = StreamPCA(8, feature_map=AdditiveMap(Hellinger())).fit(FEW)
    upto_signs(streamed.transform(NEW), exact.transform(NEW), atol=1e-8)


@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(["kernel", "rule", "map", "landmarks", "precomputed"]),
)
@settings(max_examples=25)
def test_weights_are_copies(seed, kind):
    rng = np.random.default_rng(seed)
    rows = rng.gamma(1.0, size=(30, 4)).round(2)
    weights = rng.integers(0, 4, 30)
    weights[:6] = 1, 2, 3, 1, 2, 1
    many = rng.permutation(np.repeat(np.arange(30), weights))
    options = {
        "kernel": {"kernel": Chi2()},
        "rule": {"kernel": Gaussian("median")},
        "map": {"feature_map": AdditiveMap(Chi2(), 2)},
        "landmarks": {"feature_map": NystroemMap(Gaussian(0.5), 5)},
        "precomputed": {"kernel": "precomputed", "preimage": None},
    }[kind]
    model = KernelPCA(n_components=3, **options)
    K = Chi2().gram(rows)
    first, new = (K, K[many]) if kind == "precomputed" else (rows, rows[many])
    second = K[np.ix_(many, many)] if kind == "precomputed" else new
    a = clone(model).fit(first, sample_weight=weights)
    b = clone(model).fit(second)
    np.testing.assert_allclose(a.eigenvalues_, b.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(a.explained_variance_ratio_, b.explained_variance_ratio_, rtol=1e-8)
    np.testing.assert_allclose(a.transform(new), b.transform(second), atol=1e-6)
    T = clone(model).fit_transform(first, sample_weight=weights)
    np.testing.assert_allclose(T, a.transform(first), atol=1e-10)
    if a.preimage_ == "fixed_point":
        np.testing.assert_allclose(
            a.inverse_transform(T[:5]), b.inverse_transform(T[:5]), atol=1e-4 * rows.max()
        )


def test_sums_have_the_same_weights():
    weights = np.arange(100) % 4
    exact = KernelPCA(Hellinger(), 5).fit(FEW, sample_weight=weights)
    streamed = StreamPCA(5, feature_map=AdditiveMap(Hellinger())).fit(FEW, sample_weight=weights)
    upto_signs(streamed.transform(NEW), exact.transform(NEW), atol=1e-8)


def test_a_map_with_another_inner_product_is_refused():
    with pytest.raises(ValueError, match="orthonormal=True"):
        KernelPCA(feature_map=SparseMap(Chi2(), 5)).fit(FEW)


def test_landmarks_never_overestimate():
    kernel = Gaussian(1e-3)
    exact = KernelPCA(kernel, 10).fit(DIGITS[:400])
    found = [
        KernelPCA(n_components=10, feature_map=NystroemMap(kernel, m, random_state=0))
        .fit(DIGITS[:400])
        .eigenvalues_
        for m in (50, 150, 400)
    ]
    assert (found[0] < exact.eigenvalues_).all()
    assert (found[0] < found[1]).all()
    np.testing.assert_allclose(found[2], exact.eigenvalues_, rtol=1e-8)


# pre-images
@pytest.mark.parametrize(
    ("kernel", "preimage", "tolerance"),
    [
        (Gaussian(1e-3), "fixed_point", 1e-12),
        (Gaussian(1e-3), "distances", 1e-9),
        (Laplace(0.05, p=2), "distances", 1e-6),
        (Hellinger(), "auto", 1e-6),
        (Linear(), "auto", 1e-9),
        (Chi2(), "auto", 1e-3),
        (JensenShannon(), "fixed_point", 1e-3),
        (Exponential(Chi2(), 0.01), "auto", 1e-3),
    ],
    ids=str,
)
def test_with_all_components_training_rows_come_back(kernel, preimage, tolerance):
    model = KernelPCA(kernel, preimage=preimage).fit(FEW)
    back = model.inverse_transform(model.transform(FEW))
    np.testing.assert_allclose(back, FEW, atol=tolerance * FEW.max())


def test_linear_pre_images_are_those_of_pca():
    peer = PCA(3).fit(IRIS)
    model = KernelPCA(Linear(), 3).fit(IRIS)
    noisy = IRIS + 0.1
    np.testing.assert_allclose(
        model.denoise(noisy), peer.inverse_transform(peer.transform(noisy)), atol=1e-9
    )


@pytest.mark.parametrize("kernel", [Chi2(), Hellinger(), JensenShannon()], ids=repr)
def test_no_row_is_nearer_than_that_of_additive_kernels(kernel):
    rows = FEW[:, 18:24] / 16
    model = KernelPCA(kernel, 3).fit(rows)
    T = model.transform(NEW[:4, 18:24] / 16)
    for t, z in zip(T, model.inverse_transform(T[:]), strict=True):
        distance = preimage_distance(model, t)
        own = distance(z)
        for start in rows[::25]:
            other = minimize(distance, start, bounds=[(0, 2)] * 6, method="L-BFGS-B")
            assert own <= other.fun + 1e-4


@given(seed=st.integers(0, 10**6), gamma=st.floats(0.2, 3), m=st.integers(1, 6))
@settings(max_examples=25)
def test_a_fixed_point_is_no_worse_than_its_start(seed, gamma, m):
    rng = np.random.default_rng(seed)
    rows, new = rng.normal(size=(30, 3)), rng.normal(size=(4, 3))
    model = KernelPCA(Gaussian(gamma), m).fit(rows)
    for x, t, z in zip(new, model.transform(new), model.denoise(new), strict=True):
        distance = preimage_distance(model, t)
        assert distance(z) <= distance(x) + 1e-9


@given(seed=st.integers(0, 10**6), m=st.integers(1, 8))
@settings(max_examples=25)
def test_pre_images_of_histogram_kernels_are_non_negative(seed, m):
    rng = np.random.default_rng(seed)
    rows = rng.gamma(0.3, size=(25, 6))
    T = rng.normal(size=(3, m))
    for kernel in (Chi2(), Intersection(), Exponential(Chi2())):
        model = KernelPCA(kernel, m).fit(rows)
        assert model.preimage_ == "fixed_point"
        assert (model.inverse_transform(T) >= 0).all()
    ridge = KernelPCA(Chi2(), m, preimage="ridge").fit(rows)
    assert (ridge.inverse_transform(T) >= 0).all()


def test_a_lost_row_starts_again_from_training_rows():
    model = KernelPCA(Gaussian(50.0), 2).fit(IRIS)
    far = model.denoise(IRIS[:3] + 100)
    assert np.isfinite(far).all()
    low, high = IRIS.min(axis=0), IRIS.max(axis=0)
    assert ((far >= low - 1) & (far <= high + 1)).all()


def test_regression_brings_rows_back_for_any_kernel():
    model = KernelPCA(Laplace(0.01), 60).fit(FEW)
    assert model.preimage_ == "ridge"
    error = np.mean((model.inverse_transform(model.transform(FEW)) - FEW) ** 2)
    assert error < 0.1 * FEW.var()
    landmarks = KernelPCA(n_components=40, feature_map=NystroemMap(Chi2(), 80, random_state=0)).fit(
        FEW
    )
    assert np.mean((landmarks.denoise(FEW) - FEW) ** 2) < 0.2 * FEW.var()


def test_the_penalty_of_the_regression():
    T = KernelPCA(Laplace(0.01), 10).fit(FEW).transform(FEW)
    given = KernelPCA(Laplace(0.01), 10, preimage_alpha=0.1).fit(FEW)
    peer = KernelRidge(Gaussian("median"), 0.1).fit(T, FEW)
    np.testing.assert_allclose(given.inverse_transform(T), peer.predict(T), atol=1e-6)
    flat = KernelPCA(Laplace(0.01), 10, preimage_alpha=1e9).fit(FEW).inverse_transform(T)
    np.testing.assert_allclose(flat, np.tile(FEW.mean(axis=0), (100, 1)), atol=1e-4)


def test_denoising_beats_pca():
    rng = np.random.default_rng(0)
    X = DIGITS / 8 - 1
    train, clean = X[:600], X[600:700]
    noisy = clean + 0.5 * rng.normal(size=clean.shape)
    ours = KernelPCA(Gaussian("median"), 60).fit(train).denoise(noisy)
    peers = (PCA(m).fit(train) for m in (5, 10, 20, 30, 40))
    linear = min(np.mean((p.inverse_transform(p.transform(noisy)) - clean) ** 2) for p in peers)
    assert np.mean((ours - clean) ** 2) < 0.8 * linear


# what a model is
def test_files(tmp_path):
    for number, model in enumerate(
        [
            KernelPCA(Chi2(), 4),
            KernelPCA(Laplace(0.01), 4),
            KernelPCA(n_components=4, feature_map=AdditiveMap(Chi2())),
        ]
    ):
        path = tmp_path / str(number)
        hilbin.save(model.fit(FEW), path)
        loaded = hilbin.load(path)
        np.testing.assert_array_equal(loaded.transform(NEW), model.transform(NEW))
        np.testing.assert_array_equal(loaded.denoise(NEW), model.denoise(NEW))
    model.coef_ = model.coef_[:, :2]
    hilbin.save(model, tmp_path / "forged")
    with pytest.raises(ValueError, match="intercept_"):
        hilbin.load(tmp_path / "forged")


def test_names_of_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(IRIS, columns=list("abcd"))
    model = KernelPCA(n_components=2).fit(frame).set_output(transform="pandas")
    assert [*model.transform(frame).columns] == ["kernelpca0", "kernelpca1"]
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame[list("dcba")])


@pytest.mark.parametrize(
    ("given_", "rows", "complaint"),
    [
        ({"n_components": 5, "kernel": Linear()}, IRIS, "more than 4, the rank of 150"),
        ({"n_components": 3}, IRIS[:3], "more than 2, the rank of 3"),
        ({"n_components": 0}, IRIS, "n_components, if not None, must be a whole number"),
        ({}, np.ones((9, 3)), "no variance"),
        ({"feature_map": AdditiveMap(Chi2())}, np.ones((9, 3)), "no variance"),
        ({}, IRIS[:1], "no variance in the feature space: X has 1 sample"),
        ({"preimage": "best"}, IRIS, "preimage, if not None, must be one of"),
        ({"preimage_alpha": 0.0}, IRIS, "preimage_alpha must be a number > 0"),
        ({"preimage_alpha": "best"}, IRIS, "preimage_alpha, if not a number, must be one of"),
        ({"preimage": "distances", "kernel": Chi2()}, IRIS, "is not for the kernel"),
        ({"preimage": "fixed_point", "kernel": Laplace()}, IRIS, "is not for the kernel"),
        ({"kernel": "precomputed", "preimage": "ridge"}, IRIS @ IRIS.T, "needs rows"),
        ({"kernel": Linear(), "feature_map": AdditiveMap(Chi2())}, IRIS, "leave one out"),
        ({"feature_map": 3}, IRIS, "feature_map must be a transformer"),
        ({"kernel": Chi2()}, IRIS - 3, r"X\[0, 1\] = 0.5 is|is negative, but Chi2"),
    ],
)
def test_bad_input(given_, rows, complaint):
    with pytest.raises(ValueError, match=complaint):
        KernelPCA(**given_).fit(rows)


@pytest.mark.parametrize("size", [1e-100, 1e100])
def test_units_do_not_matter(size):
    one = KernelPCA(Linear(), 3).fit(IRIS)
    other = KernelPCA(Linear(), 3).fit(size * IRIS)
    np.testing.assert_allclose(other.transform(size * IRIS) / size, one.transform(IRIS), atol=1e-9)
    np.testing.assert_allclose(other.denoise(size * IRIS) / size, one.denoise(IRIS), atol=1e-9)


@pytest.mark.parametrize("size", [1e-160, 1e160])
def test_numbers_too_far_from_one_are_refused(size):
    with pytest.raises(ValueError, match="to compute with: scale X or the kernel"):
        KernelPCA(Linear(), 3).fit(size * IRIS)


def test_bad_coordinates_and_no_way_back():
    model = KernelPCA(n_components=2).fit(IRIS)
    with pytest.raises(ValueError, match="X has 3 columns, but there are 2 components"):
        model.inverse_transform(np.zeros((1, 3)))
    with pytest.raises(ValueError, match="set preimage before fit"):
        KernelPCA(preimage=None, n_components=1).fit(IRIS).inverse_transform([[0.0]])


def test_an_indefinite_matrix_warns():
    K = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])
    with pytest.warns(NotPositiveDefiniteWarning, match="smallest eigenvalue"):
        model = KernelPCA("precomputed").fit(K)
    assert (model.eigenvalues_ > 0).all()
