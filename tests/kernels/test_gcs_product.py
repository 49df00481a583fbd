"""Products with a compact kernel: entry by entry, CSR, and from the product of the profiles."""

import numpy as np
import pytest
import scipy.sparse as sp

from hilbin.kernels import GCS, Chi2, Exponential, Gaussian, Laplace, Power, Sparsity
from hilbin.kernels.gcs import STEEPEST

# Values are what counts here, not whether one could learn from the matrix.
pytestmark = pytest.mark.filterwarnings("ignore:the Gram matrix of")

OTHERS = [
    Laplace(0.7, p=2),
    Laplace(400.0, p=2),  # too steep for the table
    Laplace(0.7, p=1),
    Gaussian(0.3),
    Gaussian(1e5),
    Exponential(Chi2(), 2.0),
    GCS(0.4),
]


def rows(n=90, columns=5, seed=0):
    X = np.random.default_rng(seed).gamma(0.6, size=(n, columns))
    X /= X.sum(axis=1, keepdims=True)
    X[7] = X[3]
    X[8] = X[3] * (1 + 1e-9)
    return X


@pytest.mark.parametrize("other", OTHERS, ids=repr)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_entry_by_entry(other, dtype, form):
    X, compact = rows().astype(dtype), GCS(0.2)
    tolerance = 1e-12 if dtype == np.float64 else 2e-6
    if dtype == np.float64 and form is sp.csr_array:
        tolerance = 1e-5  # distances of sparse rows by the other kernel round near 0
    for kernel in (compact * other, other * compact):
        for Y in (None, X[:20]):
            given = (form(X),) if Y is None else (form(X), form(Y))
            K = kernel.gram(*given)
            wide = [np.float64(A) for A in (X, X if Y is None else Y)]
            expected = compact.gram(*wide).toarray() * other(*wide)
            assert isinstance(K, sp.csr_array)
            assert K.dtype == dtype
            np.testing.assert_allclose(K.toarray(), expected, atol=tolerance)
            if other != GCS(0.4):
                assert K.nnz == compact.gram(*given).nnz


@pytest.mark.parametrize("other", [Laplace(0.7, p=2), Gaussian(0.3)], ids=repr)
def test_the_diagonal_is_one_and_the_matrix_symmetric(other):
    for form in (np.asarray, sp.csr_array):
        K = (GCS(0.2) * other).gram(form(rows()))
        np.testing.assert_array_equal(K.diagonal(), 1)
        assert abs(K - K.T).max() == 0
        assert K[3, 7] == 1
        assert K[3, 8] < 1


@pytest.mark.parametrize("slope", [0.5, 0.99, 1.01])
def test_steep_factors_are_as_exact(slope):
    """On both sides of the slope up to which the table is trusted."""
    X = rows(columns=2)
    other = Laplace(slope * STEEPEST / 0.4, p=2)
    K = (GCS(0.2) * other).gram(X).toarray()
    np.testing.assert_allclose(K, GCS(0.2).gram(X).toarray() * other.gram(X), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_the_kernel_of_the_paper_by_rules(dtype, form):
    """Radius by the share of zeros, width by the median, on fourth roots of counts."""
    X = form(np.random.default_rng(0).poisson(3, size=(300, 16)).astype(dtype))
    kernel = Power(GCS(Sparsity(0.9)) * Laplace("median", p=2), 0.25).resolve(X)
    K = kernel.gram(X)
    assert isinstance(K, sp.csr_array)
    assert K.dtype == dtype
    assert 1 - K.nnz / 300**2 == pytest.approx(0.9, abs=0.01)
    dense = np.asarray(X.toarray() if sp.issparse(X) else X, np.float64) ** 0.25
    D = np.sqrt(np.square(dense[:, None] - dense).sum(axis=2))
    apart = D[np.triu_indices(300, 1)]
    assert kernel.kernel.right.gamma == pytest.approx(1 / np.median(apart), rel=1e-5)
    assert 2 * kernel.kernel.left.radius == pytest.approx(np.quantile(apart, 0.1), rel=1e-5)
    expected = GCS(kernel.kernel.left.radius).gram(dense).toarray()
    expected *= np.exp(-kernel.kernel.right.gamma * D)
    np.testing.assert_allclose(K.toarray(), expected, atol=1e-6)
