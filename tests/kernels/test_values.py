"""Values that can be looked up: the specification's and those of other libraries."""

import itertools

import numpy as np
import oracles
import pytest
from scipy.linalg import eigvalsh
from scipy.special import beta
from sklearn.metrics.pairwise import (
    additive_chi2_kernel,
    chi2_kernel,
    laplacian_kernel,
    polynomial_kernel,
    rbf_kernel,
)

from hilbin.kernels import (
    GCS,
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
    Power,
    PValue,
    Sparsity,
    SymmetricKL,
    geometric_profile,
    is_psd,
    kernel_alignment,
    repair_psd,
)

# Values are what counts here, not whether one could learn from the matrix.
pytestmark = pytest.mark.filterwarnings("ignore:the Gram matrix of")

U = [0.01, 0.1, 0.25, 0.5, 0.9]
KAPPA = {
    2: [0.987267816762, 0.87288857157, 0.685037642474, 0.391002218956, 0.0373860734685],
    3: [0.9850005, 0.8505, 0.6328125, 0.3125, 0.0145],
    4: [0.98302432155, 0.831082278972, 0.58872444809, 0.2531699951, 0.0057515151819],
    5: [0.981251249963, 0.81374625, 0.550415039062, 0.20703125, 0.00231625],
    64: [0.935986641856, 0.420731755716, 0.0413153545748, 1.64682786888e-05, 3.95871993409e-25],
    4096: [0.52213680035, 1.39461993222e-10, 1.90250269533e-59, 2.87999250469e-258, 0],
}


@pytest.mark.parametrize("n", KAPPA)
def test_geometric_profile(n):
    np.testing.assert_allclose(geometric_profile(U, n), KAPPA[n], rtol=1e-10)
    np.testing.assert_array_equal(geometric_profile([0, 1, 1.5], n), [1, 0, 0])


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_geometric_profile_is_the_overlap_of_balls(n):
    u = np.linspace(0, 1.1, 23)
    np.testing.assert_allclose(
        geometric_profile(u, n), [oracles.ball_overlap(v, n) for v in u], rtol=1e-9, atol=1e-14
    )


def test_closed_cases_and_the_limit():
    u = np.linspace(0, 1, 50)
    np.testing.assert_allclose(geometric_profile(u, 1), 1 - u, atol=1e-14)
    np.testing.assert_allclose(geometric_profile(u, 3), 1 - 1.5 * u + 0.5 * u**3, atol=1e-14)
    from scipy.special import erfc

    for n, error in ((64, 5.1e-3), (4096, 7.8e-5)):
        difference = np.abs(
            geometric_profile(np.linspace(0, 1, 4001), n)
            - erfc(np.linspace(0, 1, 4001) * np.sqrt(n / 2))
        )
        assert 0.5 * error < difference.max() <= error


def test_near_duplicates():
    slope = 2 / beta(32.5, 0.5)
    assert 1 - geometric_profile(1e-9, 64) == pytest.approx(6.408058e-09, rel=1e-6)
    assert slope * 1e-9 == pytest.approx(6.408058e-09, rel=1e-6)
    X = np.full((2, 64), 5.0)
    X[1, 0] += 2e-9  # u = 1e-9 for radius 1
    K = GCS(radius=1.0).gram(X).toarray()
    assert 1 - K[0, 1] == pytest.approx(slope * (X[1, 0] - 5) / 2, rel=1e-4)


def test_grid_of_alternating_signs():
    grid = np.sqrt(2) * np.array(list(itertools.product(range(8), repeat=2)), dtype=float)
    signs = (-1.0) ** np.array([i + j for i, j in itertools.product(range(8), repeat=2)])
    distances = np.sqrt(oracles.pairwise(oracles.squared, grid))
    triangular = np.maximum(0, 1 - distances / 2)
    assert signs @ triangular @ signs == pytest.approx(-1.6080810142, rel=1e-9)
    assert eigvalsh(triangular)[0] == pytest.approx(-0.100918, abs=1e-6)
    K = GCS(radius=1.0).gram(grid).toarray()
    assert signs @ K @ signs == pytest.approx(23.3014145052, rel=1e-9)
    assert eigvalsh(K)[0] == pytest.approx(0.3170686, abs=1e-6)
    with pytest.raises(ValueError, match="dim=1"):  # the triangular kernel is GCS of dimension 1
        GCS(radius=1.0, dim=1).gram(grid)


def printed_recursion(u, n):
    """The recursion of the paper for even n, its base twice what it should be."""
    phi = np.arccos(u) - u * np.sqrt(1 - u * u)
    for k in range(4, n + 1, 2):
        phi = (k - 1) / k * phi - u / k * (1 - u * u) ** ((k - 1) / 2)
    return phi


def test_the_printed_recursion_is_not_positive_definite():
    m, spacing = 8, 0.4
    t = (-1.0) ** np.arange(m) * np.sin(np.pi * np.arange(1, m + 1) / (m + 1))
    a = np.correlate(t, t, "full")[m - 1 :]
    a /= a[0]
    offsets = np.array(list(itertools.product(range(-3, 4), repeat=4)))
    u = spacing * np.linalg.norm(offsets, axis=1)
    offsets, u = offsets[u < 1], u[u < 1]
    weights = np.prod(a[np.abs(offsets)], axis=1)
    printed = printed_recursion(u, 4) / printed_recursion(np.zeros(1), 4)
    assert weights @ printed == pytest.approx(-0.100988, abs=1e-5)
    assert weights @ geometric_profile(u, 4) == pytest.approx(0.232569, abs=1e-5)


@pytest.mark.parametrize("n", [2, 3, 4, 6, 8])
def test_gcs_is_positive_definite(n):
    X = np.random.default_rng(n).uniform(size=(1200, n))
    K = GCS(Sparsity(0.7)).resolve(X, random_state=0).gram(X)
    assert 0.5 < 1 - K.nnz / 1200**2 < 0.9
    assert eigvalsh(K.toarray())[0] > -1e-10


@pytest.mark.parametrize("csr", [False, True])
def test_gcs_entries(csr, histograms):
    import scipy.sparse as sp

    X = histograms[:40]
    rows = sp.csr_array(X) if csr else X
    K = GCS(radius=0.15, dim=40).gram(rows, rows[:9])
    np.testing.assert_allclose(K.toarray(), oracles.gcs(X, X[:9], 0.15, 40), rtol=1e-9, atol=1e-13)
    assert 0 < K.nnz < 200


def test_additive_kernels_against_oracles(histograms):
    X, Y = histograms, histograms[10:25] * 3
    for kernel, function in (
        (Intersection(), oracles.minimum),
        (Intersection(0.5), lambda x, y: np.minimum(np.sqrt(x), np.sqrt(y))),
        (Chi2(), oracles.harmonic),
        (JensenShannon(), oracles.jensen_shannon),
        (Hellinger(), oracles.hellinger),
    ):
        expected = oracles.pairwise(function, X, Y)
        np.testing.assert_allclose(kernel.gram(X, Y), expected, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(
            oracles.pairwise(oracles.additive(kernel), X, Y), expected, rtol=1e-11, atol=1e-14
        )
        np.testing.assert_allclose(
            kernel.diag(X), np.diag(oracles.pairwise(function, X)), rtol=1e-12
        )


def test_as_scikit_learn_has_them(histograms):
    X, Y = histograms, histograms[:11] * 2
    sums = (X.sum(1)[:, None] + Y.sum(1)) / 2
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(
            Chi2().gram(X, Y), sums + additive_chi2_kernel(X, Y) / 2, atol=1e-12
        )
        np.testing.assert_allclose(
            Exponential(Chi2(), 3.0).gram(X, Y), chi2_kernel(X, Y, gamma=1.5), atol=1e-12
        )
    np.testing.assert_allclose(Gaussian(2.0).gram(X, Y), rbf_kernel(X, Y, gamma=2.0), atol=1e-12)
    np.testing.assert_allclose(
        Laplace(2.0).gram(X, Y), laplacian_kernel(X, Y, gamma=2.0), atol=1e-12
    )
    np.testing.assert_allclose(
        Polynomial(3, 0.5).gram(X, Y),
        polynomial_kernel(X, Y, degree=3, gamma=1, coef0=0.5),
        atol=1e-12,
    )
    np.testing.assert_allclose(Linear().gram(X, Y), X @ Y.T, atol=1e-14)


def test_exponential_of_jensen_shannon(histograms):
    from scipy.spatial.distance import jensenshannon

    X = np.delete(histograms, 6, axis=0)[:20]
    divergence = np.array([[jensenshannon(x, y, base=2) ** 2 for y in X] for x in X])
    np.testing.assert_allclose(
        Exponential(JensenShannon(), 2.0).gram(X), np.exp(-2 * divergence), atol=1e-7
    )


def test_p_values(histograms):
    x, y = [[0.5, 0.5]], [[1.0, 0.0]]  # chi2 distance 1/3
    assert PValue(1, gamma=1.95).gram(x, y)[0, 0] == pytest.approx(
        0.25421322, rel=1e-7
    )  # erfc(sqrt(.65))
    np.testing.assert_allclose(
        PValue(2, 3.0).gram(histograms), Exponential(Chi2(), 3.0).gram(histograms), rtol=1e-12
    )


def test_symmetric_kl_is_not_positive_definite():
    X = np.random.default_rng(0).dirichlet(np.full(8, 0.3), 60)
    with pytest.warns(NotPositiveDefiniteWarning, match="SymmetricKL is not positive definite"):
        kernel = SymmetricKL(smoothing=1e-9)
    K = kernel.gram(X)
    expected = np.exp(-0.5 * oracles.pairwise(oracles.log_difference, X + 1e-9))
    np.testing.assert_allclose(K, expected, rtol=1e-9, atol=1e-300)
    assert eigvalsh(K)[0] < -0.05
    assert not is_psd(K)
    for how in ("clip", "shift"):
        assert is_psd(repair_psd(K, how))
    np.testing.assert_allclose(repair_psd(K, "shift") - K, -eigvalsh(K)[0] * np.eye(60), atol=1e-12)


def test_p_value_of_more_than_two_degrees_warns_and_fails():
    with pytest.warns(NotPositiveDefiniteWarning, match="dof is 6"):
        kernel = PValue(dof=6, gamma=4.0)
    assert not kernel.psd
    X = np.random.default_rng(0).dirichlet(np.full(3, 0.5), 150)
    assert eigvalsh(kernel.gram(X))[0] < -1e-3
    assert eigvalsh(PValue(dof=1, gamma=4.0).gram(X))[0] > -1e-10


def test_exponential_of_a_metric_need_not_be_positive_definite():
    """Why `psd` asks for more than a metric: graph distances of complete bipartite graphs."""

    def bipartite(a, b, edge):
        side = np.repeat([0, 1], [a, b])
        return edge * (2 - (side[:, None] != side) - 2 * np.eye(a + b))

    for (a, b, edge), eigenvalue in (
        ((4, 4, 1), -0.06551),
        ((3, 3, 0.25), -0.12334),
        ((2, 3, 0.1), -0.02578),
    ):
        K = np.exp(-bipartite(a, b, edge))
        assert eigvalsh(K)[0] == pytest.approx(eigenvalue, abs=1e-5)
        assert not is_psd(K)


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, start=1):
            change = previous + (x != y)
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, change)
    return row[-1]


@pytest.mark.parametrize(("t", "eigenvalue"), [(1.0, -0.0429), (0.5, -0.2263)])
def test_exponential_of_the_edit_distance_is_not_positive_definite(t, eigenvalue):
    strings = [s for n in range(5) for s in itertools.product("01", repeat=n)]
    assert len(strings) == 31
    D = np.array([[edit_distance(a, b) for b in strings] for a in strings])
    assert eigvalsh(np.exp(-t * D))[0] == pytest.approx(eigenvalue, abs=1e-4)


def test_the_kernel_of_the_gcs_paper(histograms):
    kernel = Power(GCS(radius=0.9) * Laplace(gamma=0.5, p=2), 0.25)
    K = kernel.gram(histograms)
    Z = histograms**0.25
    D = np.sqrt(oracles.pairwise(oracles.squared, Z))
    expected = geometric_profile(D / 1.8, 33) * np.exp(-0.5 * D)
    np.testing.assert_allclose(K.toarray(), expected, atol=1e-12)
    assert K.nnz == (D < 1.8).sum()


def test_alignment(histograms):
    y = np.arange(70) % 4
    K = Chi2().gram(histograms)
    assert kernel_alignment(K, y) == pytest.approx(oracles.centered_alignment(K, y), abs=1e-12)
    binary = np.where(y < 2, -1.0, 1.0)
    H = np.eye(70) - 1 / 70
    Kc, target = H @ K @ H, np.outer(binary, binary)
    two_forms = np.sum(Kc * target) / np.linalg.norm(Kc) / np.linalg.norm(H @ target @ H)
    assert kernel_alignment(K, binary) == pytest.approx(two_forms, abs=1e-12)
    ideal = (y[:, None] == y).astype(float)
    assert kernel_alignment(ideal, y) == pytest.approx(1)
    assert kernel_alignment(np.ones((70, 70)), y) == 0
