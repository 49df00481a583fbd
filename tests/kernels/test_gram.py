"""Every form of input, and every form of the matrix."""

import itertools
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from catalogue import KERNELS
from scipy.sparse.linalg import eigsh

from hilbin.kernels import (
    GCS,
    Chi2,
    Exponential,
    Gaussian,
    Intersection,
    JensenShannon,
    Kernel,
    Laplace,
    Quantile,
    Sparsity,
)
from hilbin.kernels.pairwise import ROWS_PER_PACKING

# Values are what counts here, not whether one could learn from the matrix.
pytestmark = pytest.mark.filterwarnings("ignore:the Gram matrix of")

ADDITIVE = [Intersection(), Chi2(), JensenShannon()]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_dtypes(kernel, histograms):
    for dtype, expected in (
        (np.float32, np.float32),
        (np.float64, np.float64),
        (np.uint8, np.float64),
    ):
        X = (10 * histograms).astype(dtype)
        assert kernel.gram(X).dtype == expected
        assert kernel.gram(sp.csr_array(X)).dtype == expected
        assert kernel.diag(X).dtype == np.float64
    mixed = kernel.gram(histograms.astype(np.float32), histograms[:3])
    assert mixed.dtype == np.float64


def test_memory_map_read_only_and_byte_order(tmp_path, histograms):
    np.save(tmp_path / "x.npy", histograms)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    K = Chi2().gram(histograms)
    np.testing.assert_array_equal(Chi2().gram(mapped), K)
    np.testing.assert_array_equal(Chi2().gram(histograms.astype(">f8")), K)
    packed = np.zeros(70, dtype=[("flag", "u1"), ("x", "f8", 33)])  # unaligned
    packed["x"] = histograms
    np.testing.assert_array_equal(Chi2().gram(packed["x"]), K)


def test_lists_and_frames(histograms):
    K = Chi2().gram(histograms)
    np.testing.assert_array_equal(Chi2().gram(histograms.tolist()), K)
    np.testing.assert_array_equal(Chi2().gram(pd.DataFrame(histograms)), K)


@pytest.mark.parametrize("kernel", ADDITIVE, ids=repr)
@pytest.mark.parametrize("form", [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array])
def test_sparse_forms(kernel, form, histograms):
    X = form(histograms)
    before = X.copy()
    np.testing.assert_allclose(kernel.gram(X), kernel.gram(histograms), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(
        kernel.gram(X, histograms[:5]), kernel.gram(histograms, histograms[:5]), atol=1e-14
    )
    assert (before != X).nnz == 0


def test_sparse_duplicates_and_unsorted_indices_are_summed():
    X = sp.csr_matrix(([1.0, 2.0, 4.0], [1, 0, 1], [0, 3]), shape=(1, 3))
    assert Intersection().gram(X, [[9.0, 4.5, 1.0]])[0, 0] == 2 + 4.5
    assert X.nnz == 3  # the caller's matrix is as it was


def test_wide_sparse_rows_are_never_densified():
    """A million columns: dense or packed rows would take 3 GB of NumPy's memory."""
    rng = np.random.default_rng(0)
    columns = rng.integers(100, size=4000) * 10_000
    X = sp.csr_array((rng.uniform(size=4000), columns, np.arange(0, 4001, 10)), (400, 1_000_000))
    X.sum_duplicates()
    for kernel in (*ADDITIVE, Laplace(0.1), Gaussian(0.1)):
        tracemalloc.start()
        K = kernel.gram(X)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 50e6
        np.testing.assert_allclose(np.diag(K), kernel.diag(X), rtol=1e-9)
    assert Intersection().gram(X)[0, 1] == pytest.approx(X[[0]].minimum(X[[1]]).sum())


@pytest.mark.parametrize("kernel", [Chi2(), Exponential(Chi2()), GCS(radius=0.2)], ids=repr)
def test_tiles_keep_to_the_memory(kernel, histograms):
    bands = list(kernel.tiles(histograms, memory=2 * 70 * 8 * 12 / 2**20))
    assert [rows.stop - rows.start for rows, _ in bands] == [12] * 5 + [10]
    assert all(sp.issparse(K) == kernel.compact for _, K in bands)


def test_tiles_default_to_scikit_learns_setting(histograms):
    from sklearn import config_context

    with config_context(working_memory=2 * 70 * 8 * 35 / 2**20):
        assert len(list(Chi2().tiles(histograms))) == 2
    assert len(list(Chi2().tiles(histograms))) == 1


def test_lazy_serves_an_eigensolver(histograms):
    K = Chi2().gram(histograms)
    operator = Chi2().lazy(histograms, memory=0.01)
    assert operator.shape == (70, 70)
    values = eigsh(operator, k=3, return_eigenvectors=False, v0=np.ones(70))
    np.testing.assert_allclose(values, np.linalg.eigvalsh(K)[-3:], rtol=1e-9)
    np.testing.assert_allclose(operator @ histograms, K @ histograms, rtol=1e-10, atol=1e-13)
    part = Chi2().lazy(histograms, histograms[:9])
    np.testing.assert_allclose(part.T @ np.ones(70), K[:, :9].sum(axis=0), rtol=1e-10)


@pytest.mark.parametrize(
    ("kernel", "distance", "statistic"),
    [
        (Gaussian("median"), lambda x, y: np.sum((x - y) ** 2), np.median),
        (Gaussian("mean"), lambda x, y: np.sum((x - y) ** 2), np.mean),
        (Laplace(Quantile(0.2)), lambda x, y: np.abs(x - y).sum(), lambda d: np.quantile(d, 0.2)),
        (Laplace("median", p=2), lambda x, y: np.linalg.norm(x - y), np.median),
    ],
    ids=lambda value: repr(value) if isinstance(value, Kernel) else "",
)
def test_rules(kernel, distance, statistic, histograms):
    pairs = [distance(x, y) for x, y in itertools.combinations(histograms, 2)]
    before = repr(kernel)
    assert kernel.resolve(histograms).gamma == pytest.approx(1 / statistic(pairs), rel=1e-9)
    assert repr(kernel) == before  # the kernel itself is left alone


def test_rules_reach_inner_kernels(histograms):
    kernel = 2 * Exponential(Chi2(), "mean") + Gaussian("median")
    resolved = kernel.resolve(histograms)
    half = histograms.sum(axis=1) / 2
    distances = (half[:, None] + half - Chi2().gram(histograms))[np.triu_indices(70, 1)]
    assert resolved.left.kernel.gamma == pytest.approx(1 / distances.mean())
    assert resolved.resolve(histograms) == resolved
    assert resolved.gram(histograms).shape == (70, 70)


def test_power_resolves_on_powers(histograms):
    from hilbin.kernels import Power

    inner = Gaussian("median").resolve(histograms**0.5)
    assert Power(Gaussian("median"), 0.5).resolve(histograms).kernel == inner


def test_radius_rule_sets_the_sparsity():
    X = np.random.default_rng(0).uniform(size=(3000, 6))
    a, b = (GCS(Sparsity(0.9)).resolve(X, random_state=s) for s in (0, 0))
    assert a == b
    K = a.gram(X)
    assert 1 - K.nnz / 3000**2 == pytest.approx(0.9, abs=0.03)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_gcs_in_many_bands(n_jobs, monkeypatch, histograms):
    whole = GCS(radius=0.2).gram(histograms)
    monkeypatch.setattr("hilbin.kernels.gcs.BAND_ENTRIES", 200)
    banded = GCS(radius=0.2).gram(histograms, n_jobs=n_jobs)
    assert (whole != banded).nnz == 0
    assert (banded != banded.T).nnz == 0
    np.testing.assert_array_equal(banded.diagonal(), 1)


def test_gcs_far_from_the_origin_and_huge_values():
    """Where float32 cannot tell the rows apart the exact distances still decide."""
    X = np.random.default_rng(0).uniform(size=(50, 3))
    K = GCS(radius=0.3).gram(X).toarray()
    np.testing.assert_allclose(GCS(radius=0.3).gram(X + 1e6).toarray(), K, atol=1e-8)
    np.testing.assert_allclose(GCS(radius=0.3e100).gram(1e100 * X).toarray(), K, atol=1e-12)
    S = sp.csr_array(X + 1e6)
    np.testing.assert_allclose(GCS(radius=0.3).gram(S).toarray(), K, atol=1e-8)


def test_one_row_and_one_column():
    for kernel in KERNELS:
        K = kernel.gram([[0.25]])
        assert K.shape == (1, 1)
        assert kernel([0.25], [0.25]) == pytest.approx(kernel.diag([[0.25]])[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [*ADDITIVE, Gaussian(), Exponential(Chi2())], ids=repr)
def test_more_rows_than_are_packed_at_a_time(kernel, dtype):
    rng = np.random.default_rng(0)
    X = rng.dirichlet([0.5] * 3, ROWS_PER_PACKING + 100).astype(dtype)
    whole = kernel.gram(X[:2], X)
    np.testing.assert_allclose(whole[:, -200:], kernel.gram(X[:2], X[-200:]), rtol=1e-5)
