"""The two-neighbor map: its coordinates, its inner product, and its manners."""

import pickle
from dataclasses import dataclass

import numpy as np
import oracles
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import LinearOperator
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from hilbin.kernels import (
    Chi2,
    Gaussian,
    Hellinger,
    Intersection,
    JensenShannon,
    StationaryKernel,
    check_kernel,
)
from hilbin.maps import NodeInner, SparseMap
from hilbin.maps.series import terms, zolotarev

KERNELS = [Intersection(), Chi2(), JensenShannon(), Intersection(beta=0.5), Hellinger()]
FUNCTIONS = {
    Intersection(): oracles.minimum,
    Chi2(): oracles.harmonic,
    JensenShannon(): oracles.jensen_shannon,
    Hellinger(): oracles.hellinger,
}


@dataclass(frozen=True, repr=False)
class Tent(StationaryKernel):
    """Compact support: max(0, 1 - |a - b|)."""

    def profile(self, t):
        return np.maximum(0, 1 - t)


def product(feature_map, X, Y=None):
    A = feature_map.transform(X)
    B = A if Y is None else feature_map.transform(Y)
    return A @ (feature_map.inner_ @ B.T.toarray())


@pytest.mark.parametrize(
    ("kernel", "x", "nodes", "expected"),
    [
        (Chi2(), 3.3, [3.0, 4.0], [0.7031963470, 0.3013698630]),
        (JensenShannon(), 3.3, [3.0, 4.0], [0.7021683740, 0.3011167548]),
        (Intersection(), 3.3, [3.0, 4.0], [0.7, 0.3]),
        (Hellinger(), 3.3, [3.0, 4.0], [0.44948951, 0.51902577]),
        (Intersection(), 0.3, [1.0, 2.0], [0.3, 0.0]),
        (Chi2(), 0.3, [1.0, 2.0], [0.4615384615, 0.0]),
        (Chi2(), 1.0, [1.0, 2.0], [1.0, 0.0]),
        (Chi2(), 2.0, [1.0, 2.0], [0.0, 1.0]),
        (Intersection(), 7.0, [1.0, 2.0], [0.0, 1.0]),
        (Chi2(), 6.0, [1.0, 2.0], [0.0, 1.5]),
    ],
)
def test_values(kernel, x, nodes, expected):
    feature_map = SparseMap(kernel, spacing=nodes).fit([[x]])
    np.testing.assert_allclose(feature_map.transform([[x]]).toarray()[0], expected, atol=2e-9)


@pytest.mark.parametrize(
    ("kernel", "residual", "tolerance"),
    [
        (Chi2(), 6.8805904798e-5, 1e-8),
        (JensenShannon(), 1.38774e-5, 1e-8),
        (Intersection(), 0.21, 1e-9),
    ],
)
def test_residuals(kernel, residual, tolerance):
    feature_map = SparseMap(kernel, spacing=[3.0, 4.0]).fit([[3.3]])
    assert 3.3 - product(feature_map, [[3.3]])[0, 0] == pytest.approx(residual, abs=tolerance)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", FUNCTIONS, ids=repr)
@given(
    nodes=st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=30, unique=True),
    x=st.lists(st.just(0.0) | st.floats(1e-4, 1e4), min_size=1, max_size=20),
)
def test_coordinates(kernel, dtype, nodes, x):
    z = np.sort(np.array(nodes))
    z = z[np.append(True, np.diff(z) > 1e-3 * z[1:])]
    if z.size < 2:
        return
    x = np.array(x, dtype)[:, None]
    found = SparseMap(kernel, spacing=z).fit(x).transform(x)
    assert found.dtype == dtype
    if dtype == np.float32:  # a value may change sides of a node by rounding, but not far
        K = FUNCTIONS[kernel](z[:, None], z)
        expected = np.array(
            [oracles.two_nodes(FUNCTIONS[kernel], v, z) for v in x[:, 0].astype(float)]
        )
        A, B = (P @ K @ P.T for P in (found.toarray().astype(float), expected))
        np.testing.assert_allclose(A, B, rtol=1e-4, atol=1e-5 * min(z[-1], x.max()))
        return
    expected = np.array([oracles.two_nodes(FUNCTIONS[kernel], v, z) for v in x[:, 0]])
    np.testing.assert_allclose(found.toarray(), expected, atol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_more_nodes_are_more_accurate_and_no_denser(kernel, histograms):
    K = kernel.gram(histograms)
    errors, counts = [], []
    for n in (10, 40, 160):
        feature_map = SparseMap(kernel, n).fit(histograms)
        errors.append(np.linalg.norm(product(feature_map, histograms) - K) / np.linalg.norm(K))
        counts.append(feature_map.transform(histograms).nnz)
    assert counts == [2 * np.count_nonzero(histograms)] * 3
    assert errors[2] < 1e-2
    assert errors[2] < errors[0] / 5 or errors[0] < 1e-9


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("orthonormal", [False, True])
def test_the_law_of_kernels_with_their_map(kernel, orthonormal):
    check_kernel(kernel, feature_map=SparseMap(kernel, 30, orthonormal=orthonormal))


@given(st.integers(0, 10_000), st.integers(2, 30), st.sampled_from([0.5, 1.0, 2.0]))
def test_the_error_of_interpolation_is_guaranteed(seed, n, beta):
    rng = np.random.default_rng(seed)
    x = rng.gamma(0.3, size=(60, 1)) + 1e-9
    kernel = Intersection(beta)
    feature_map = SparseMap(kernel, n).fit(x)
    assert feature_map.error_.kind == "guaranteed"
    low, high = feature_map.domain_
    y = np.concatenate([x, rng.uniform(low, high, size=(60, 1)), feature_map.nodes_[:, None]])
    y = y[(y >= low) & (y <= high)][:, None]
    E = np.abs(product(feature_map, y) - kernel.gram(y))
    size = np.sqrt(np.outer(kernel.diag(y), kernel.diag(y)))
    assert E.max() <= feature_map.error_.worst * (1 + 1e-6)
    assert np.max(E / size) <= feature_map.error_.worst_relative + 1e-6


@settings(deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(2, 30),
    st.sampled_from([0.5, 1.0, 2.0, 3.0]),
    st.floats(-12, -1),
    st.booleans(),
)
def test_the_guarantee_holds_for_values_of_all_sizes(seed, n, beta, decades, orthonormal):
    """The relative one too: no small value is rounded away beside a large one."""
    rng = np.random.default_rng(seed)
    x = 10.0 ** rng.uniform(decades, 0, size=(60, 1))
    kernel, nodes = Intersection(beta), np.geomspace(x.min(), x.max(), n)
    feature_map = SparseMap(kernel, spacing=nodes, orthonormal=orthonormal).fit(x)
    Z = feature_map.transform(x)
    K = Z @ Z.T if orthonormal else product(feature_map, x)
    relative = np.abs(K - kernel.gram(x)) / np.sqrt(np.outer(kernel.diag(x), kernel.diag(x)))
    assert relative.max() <= feature_map.error_.worst_relative + 1e-6


def test_errors_by_spacing():
    """The figures of the specification: values log-uniform on [1e-3, 1], log or uniform nodes."""
    x = np.geomspace(1e-3, 1, 150)[:, None]
    expected = {
        (Chi2(), 10): (1.3e-3, 7.2e-3),
        (Chi2(), 20): (3.2e-4, 4.7e-3),
        (Chi2(), 40): (7.8e-5, 2.9e-3),
        (JensenShannon(), 20): (1.1e-4, 4.7e-3),
        (Intersection(), 20): (2.4e-3, 2.2e-3),
    }
    for (kernel, n), figures in expected.items():
        nodes = (np.geomspace(1e-3, 1, n), np.linspace(1 / n, 1, n))
        for z, figure in zip(nodes, figures, strict=True):
            found = SparseMap(kernel, spacing=z).fit(x).error_.expected
            assert found == pytest.approx(figure, rel=0.05)


def test_log_nodes_relative_residual():
    nodes = np.geomspace(1e-3, 1, 12)
    q = np.sqrt(nodes[1] / nodes[0])
    x = np.geomspace(1e-3, 1, 4001)[:, None]
    for kernel, largest in (
        (Chi2(), ((q - 1) / (q + 1)) ** 4),
        (Intersection(), (q - 1) / (q + 1)),
    ):
        feature_map = SparseMap(kernel, spacing=nodes).fit(x)
        Z = feature_map.transform(x)
        diagonal = (Z.multiply((feature_map.inner_ @ Z.T.toarray()).T)).sum(axis=1)
        assert np.max(1 - np.asarray(diagonal) / x[:, 0]) == pytest.approx(largest, rel=1e-3)


def test_auto_takes_the_best_spacing(histograms):
    for kernel in (Chi2(), Intersection()):
        errors = {
            s: SparseMap(kernel, 12, s).fit(histograms).error_.expected
            for s in ("auto", "log", "uniform", "quantile")
        }
        assert errors["auto"] == min(errors.values())
    assert errors["log"] != errors["uniform"] != errors["quantile"]


@pytest.mark.parametrize(
    ("kernel", "nodes", "structure"),
    [
        (Intersection(), np.sort(np.random.default_rng(0).uniform(size=50)), "cumulative"),
        (Intersection(beta=2.0), np.geomspace(1e-4, 1, 300), "cumulative"),
        (Chi2(), np.geomspace(1e-4, 1, 40), "dense"),
        (Chi2(), np.sort(np.random.default_rng(0).uniform(1e-4, 1, 400)), "low rank"),
        (JensenShannon(), np.geomspace(1e-4, 1, 2100), "toeplitz"),
        (JensenShannon(), np.linspace(0.1, 1, 150), "dense"),
        (Tent(), np.linspace(-3, 3, 2100), "toeplitz"),
    ],
)
def test_structures_of_the_inner_product(kernel, nodes, structure):
    inner = NodeInner(kernel, nodes, n_columns=2)
    assert isinstance(inner, LinearOperator)
    assert inner.structure == structure
    K = oracles.additive(kernel)(nodes[:, None], nodes)
    C = np.random.default_rng(1).normal(size=(2 * nodes.size, 3))
    expected = np.concatenate([K @ C[: nodes.size], K @ C[nodes.size :]])
    tolerance = 1e-12 * np.abs(K).sum(axis=1).max()
    np.testing.assert_allclose(inner @ C, expected, atol=tolerance)
    np.testing.assert_allclose(inner.T @ C[:, 0], expected[:, 0], atol=tolerance)


def test_inverse_of_intersection_is_tridiagonal():
    z = np.sort(np.random.default_rng(0).uniform(size=30))
    inverse = np.linalg.inv(NodeInner(Intersection(), z, 1).matrix())
    assert np.abs(np.triu(inverse, 2)).max() < 1e-10 * np.abs(inverse).max()
    v = np.random.default_rng(1).normal(size=30)
    steps = np.diff(v, prepend=0.0) ** 2 / np.diff(z, prepend=0.0)
    assert v @ inverse @ v == pytest.approx(steps.sum(), rel=1e-6)


@pytest.mark.parametrize(
    ("n", "error"), [(10, 3.6e-4), (15, 3.4e-6), (20, 3.3e-8), (30, 2.9e-12), (40, 1e-15)]
)
def test_rank_of_chi2(n, error):
    z = np.geomspace(1e-4, 1, 1000)
    K, F = oracles.harmonic(z[:, None], z), terms(z, zolotarev(1e-4, 1.0, n))
    assert np.abs(F @ F.T - K).max() / K.max() == pytest.approx(error, rel=0.6, abs=3e-15)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_orthonormal_features(kernel, histograms):
    nodes = SparseMap(kernel, 25).fit(histograms)
    features = SparseMap(kernel, 25, orthonormal=True).fit(histograms)
    Z = features.transform(histograms)
    assert isinstance(Z, np.ndarray)
    np.testing.assert_allclose(Z @ Z.T, product(nodes, histograms), atol=1e-9)
    S = features.transform(sp.csr_array(histograms))
    assert sp.issparse(S)
    np.testing.assert_allclose(S.toarray(), Z, atol=1e-15)
    assert Z.shape[1] == features.get_feature_names_out().size


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_dense_csr_rows_and_threads(kernel, histograms):
    feature_map = SparseMap(kernel, 15).fit(histograms)
    Z = feature_map.transform(histograms)
    assert isinstance(Z, sp.csr_array)
    assert Z.has_canonical_format
    S = feature_map.transform(sp.csr_matrix(histograms))
    assert sp.isspmatrix_csr(S)
    np.testing.assert_array_equal(S.toarray(), Z.toarray())
    full = histograms + 0.01  # without zeros, another way through the core
    np.testing.assert_array_equal(
        feature_map.transform(full).toarray(), feature_map.transform(sp.csr_array(full)).toarray()
    )
    np.testing.assert_array_equal(
        feature_map.transform(histograms[3:9]).toarray(), Z[3:9].toarray()
    )
    np.testing.assert_array_equal(
        feature_map.transform(np.asfortranarray(histograms)).toarray(), Z.toarray()
    )
    threaded = SparseMap(kernel, 15, n_jobs=2).fit(histograms)
    many = np.tile(histograms, (40, 1))
    assert (threaded.transform(many) != sp.vstack([Z] * 40)).nnz == 0


def test_a_kernel_of_neither_sign():
    X = np.random.default_rng(0).normal(size=(50, 2))
    feature_map = SparseMap(Tent(), 60).fit(X)
    K = oracles.pairwise(oracles.additive(Tent()), X)
    np.testing.assert_allclose(product(feature_map, X), K, atol=0.2)
    zeros = X * (X > 0)
    np.testing.assert_array_equal(
        feature_map.transform(sp.csr_array(zeros)).toarray(), feature_map.transform(zeros).toarray()
    )
    with pytest.raises(ValueError, match='spacing="log" is for values > 0'):
        SparseMap(Tent(), spacing="log").fit(X)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_poor_data(kernel):
    for X in (np.zeros((3, 2)), np.array([[0.0, 2.0]]), sp.csr_array((2, 3))):
        feature_map = SparseMap(kernel, 5).fit(X)
        np.testing.assert_allclose(product(feature_map, X), kernel.gram(X), atol=1e-9)


def test_very_many_nodes():
    x = np.geomspace(1e-3, 1, 300)[:, None]
    feature_map = SparseMap(JensenShannon(), 50_000).fit(x)
    assert feature_map.inner_.structure == "toeplitz"  # never a matrix of all pairs of nodes
    assert feature_map.error_.expected < 1e-10
    np.testing.assert_allclose(
        product(feature_map, x[::50]), JensenShannon().gram(x[::50]), atol=1e-9
    )


def test_many_nodes_as_an_exact_machine():
    """With a node at every value the intersection SVM is the exact one."""
    X, y = load_digits(n_class=3, return_X_y=True)
    feature_map = SparseMap(Intersection(), spacing=np.arange(1.0, 17.0)).fit(X)
    K = product(feature_map, X)
    np.testing.assert_allclose(K, Intersection().gram(X), atol=1e-9)
    exact = SVC(kernel=Intersection()).fit(X[::2], y[::2])
    by_map = SVC(kernel="precomputed").fit(K[::2, ::2], y[::2])
    np.testing.assert_array_equal(exact.predict(X[1::2]), by_map.predict(K[1::2, ::2]))


def test_in_a_pipeline():
    X, y = load_digits(return_X_y=True)
    model = make_pipeline(SparseMap(Chi2(), 12, orthonormal=True), LinearSVC(C=0.01))
    assert model.fit(X[:600], y[:600]).score(X[600:900], y[600:900]) > 0.9


def test_names_and_pickle(histograms):
    frame = pd.DataFrame(histograms[:, :2], columns=["a", "b"])
    feature_map = SparseMap(Intersection(), 3).fit(frame)
    names = ["a_0", "a_1", "a_2", "b_0", "b_1", "b_2"]
    assert list(feature_map.get_feature_names_out()) == names
    again = pickle.loads(pickle.dumps(feature_map))
    assert (again.transform(frame) != feature_map.transform(frame)).nnz == 0


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"kernel": Gaussian()}, TypeError, "takes an additive kernel.*SparseProjectionMap"),
        ({"n_nodes": 1}, ValueError, "n_nodes must be a whole number >= 2, got 1"),
        ({"n_nodes": 2.5}, ValueError, "n_nodes must be a whole number"),
        ({"spacing": "random"}, ValueError, "spacing must be one of"),
        ({"spacing": [1.0, 0.5]}, ValueError, "two or more ascending numbers > 0"),
        ({"spacing": [0.0, 0.5]}, ValueError, "two or more ascending numbers > 0"),
        ({"domain": (2.0, 1.0)}, ValueError, "domain must be"),
    ],
)
def test_bad_parameters(parameters, error, message, histograms):
    with pytest.raises(error, match=message):
        SparseMap(**({"kernel": Chi2()} | parameters)).fit(histograms)


def test_negative_values_are_named(histograms):
    feature_map = SparseMap(Chi2()).fit(histograms)
    bad = histograms.copy()
    bad[7, 1] = -1
    with pytest.raises(ValueError, match=r"X\[7, 1\] = -1.0 is negative"):
        feature_map.transform(bad)


@parametrize_with_checks(
    [
        SparseMap(Intersection(), 6),
        SparseMap(Chi2(), 6, orthonormal=True),
        SparseMap(JensenShannon(), 4, "log"),
        SparseMap(Tent(), 5),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)
