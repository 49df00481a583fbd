"""Bad input gets an error that names the argument, and the row and column where there is one."""

from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp

from hilbin.kernels import (
    GCS,
    Chi2,
    Exponential,
    Gaussian,
    Intersection,
    JensenShannon,
    Laplace,
    Linear,
    Polynomial,
    Power,
    PValue,
    Quantile,
    StationaryKernel,
    SymmetricKL,
    is_psd,
    kernel_alignment,
    repair_psd,
)

GOOD = np.ones((3, 4))


def spoiled(value, form):
    X = np.ones((3, 4))
    X[1, 2] = value
    return form(X)


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sp.csr_array])
@pytest.mark.parametrize("name", ["X", "Y"])
@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (-0.5, r"= -0.5 is negative, but \w+ needs values >= 0"),
        (np.nan, "= nan is not finite"),
        (np.inf, "= inf is not finite"),
    ],
)
@pytest.mark.parametrize(
    "kernel",
    [
        Chi2(),
        Intersection(),
        JensenShannon(),
        Exponential(Chi2()),
        Power(Linear(), 0.5),
        Chi2() + Linear(),
    ],
    ids=repr,
)
def test_first_offender_is_named(kernel, form, name, value, complaint):
    bad = spoiled(value, form)
    arguments = (bad,) if name == "X" else (form(GOOD), bad)
    with pytest.raises(ValueError, match=rf"{name}\[1, 2\] {complaint}"):
        kernel.gram(*arguments)
    with pytest.raises(ValueError, match=r"X\[1, 2\]"):
        kernel.diag(bad)
    with pytest.raises(ValueError, match=r"X\[1, 2\]"):
        kernel.tiles(bad)
    with pytest.raises(ValueError, match=r"X\[1, 2\]"):
        kernel.lazy(bad)
    with pytest.raises(ValueError, match=r"X\[1, 2\]"):
        kernel.resolve(bad)


@pytest.mark.parametrize(
    "kernel", [Linear(), Gaussian(), Laplace(), GCS(radius=1.0), Power(Linear(), 1.0)], ids=repr
)
def test_negative_values_are_fine_elsewhere(kernel):
    assert np.isfinite(kernel(spoiled(-0.5, np.asarray))).all()


def test_columns_must_match():
    with pytest.raises(ValueError, match="X has 4 columns, but Y has 5"):
        Chi2().gram(GOOD, np.ones((2, 5)))


@pytest.mark.parametrize(
    "bad",
    [np.ones(3), np.ones((2, 2, 2)), np.ones((0, 3)), [["a"]]],
    ids=["1-D", "3-D", "no rows", "text"],
)
def test_shapes_and_types(bad):
    with pytest.raises(ValueError):  # noqa: PT011 - scikit-learn's own messages
        Chi2().gram(bad)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GCS(radius=0), "radius of GCS must be a number > 0, got 0"),
        (lambda: GCS(radius=-1.0), "radius of GCS"),
        (lambda: GCS(radius=float("nan")), "radius of GCS"),
        (lambda: GCS(radius="largest"), "radius of GCS must be a number > 0, got 'largest'"),
        (lambda: GCS(radius=1.0, dim=0), "dim of GCS must be >= 1, got 0"),
        (lambda: Gaussian(gamma=-1), "gamma of Gaussian"),
        (lambda: Laplace(gamma=1, p=3), "p of Laplace must be 1 or 2, got 3"),
        (lambda: Exponential(Chi2(), 0), "gamma of Exponential"),
        (lambda: PValue(dof=0), "dof of PValue"),
        (lambda: Intersection(beta=0), "beta of Intersection"),
        (lambda: Polynomial(degree=1.5), "degree of Polynomial"),
        (lambda: Polynomial(offset=-1), "offset of Polynomial"),
        (lambda: -1 * Chi2(), "factor of Scaled"),
        (lambda: Power(Chi2(), 0), "exponent of Power"),
        (lambda: Quantile(1.5), r"q of Quantile must be in \(0, 1\), got 1.5"),
    ],
)
def test_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_smoothing():
    with pytest.raises(ValueError, match="smoothing of SymmetricKL"):
        SymmetricKL(smoothing=0)


def test_gcs_dimension():
    X = np.random.default_rng(0).dirichlet(np.ones(5), 20)
    with pytest.raises(ValueError, match=r"dim=3 of GCS is too small for 5 columns"):
        GCS(radius=1.0, dim=3).gram(X)
    assert GCS(radius=1.0, dim=4).gram(X).shape == (20, 20)  # rows of one sum live in 4 dimensions
    with pytest.raises(ValueError, match="dim=4"):
        GCS(radius=1.0, dim=4).gram(X, 2 * X)
    with pytest.raises(ValueError, match="dim=4"):
        GCS(radius=1.0, dim=4).diag(X**0.5)
    with pytest.warns(UserWarning, match="whole dimensions"):
        GCS(radius=1.0, dim=5.5)


def test_rules_must_be_resolved():
    kernel = 2 * Exponential(Chi2(), "median") + Linear()
    for use in (kernel.gram, kernel.diag, kernel.tiles, kernel.lazy, kernel):
        with pytest.raises(ValueError, match=r"gamma='median'.*take kernel.resolve\(X\)"):
            use(GOOD)
    with pytest.raises(ValueError, match="radius="):
        GCS("median").gram(GOOD)


def test_numpy_numbers_are_numbers():
    assert Gaussian(np.float32(0.5)).gram(GOOD).shape == (3, 3)
    assert GCS(np.int64(2)).gram(GOOD).shape == (3, 3)


def test_memory():
    with pytest.raises(ValueError, match="memory must be a number of MiB > 0, got 0"):
        Chi2().tiles(GOOD, memory=0)


def test_rules_without_distances():
    with pytest.raises(ValueError, match="gamma='median' is 0 on this data"):
        Gaussian("median").resolve(GOOD)
    with pytest.raises(ValueError, match="needs at least two rows"):
        GCS("mean").resolve(GOOD[:1])


def test_broken_csr():
    X = sp.csr_array(GOOD)
    X.indices[-1] = 99
    with pytest.raises(ValueError, match="X is a broken CSR matrix"):
        Chi2().gram(X)


def test_a_profile_that_is_not_finite():
    @dataclass(frozen=True, repr=False)
    class Broken(StationaryKernel):
        def profile(self, t):
            return np.where(t > 0.5, np.nan, 1.0)

    with pytest.raises(ValueError, match="profile is not finite"):
        Broken().gram([[0.0], [1.0]])


def test_square_matrices():
    for use in (is_psd, lambda K: kernel_alignment(K, [0, 1])):
        with pytest.raises(ValueError, match="K must be square"):
            use(np.ones((2, 3)))
    with pytest.raises(ValueError, match="one class only"):
        kernel_alignment(np.eye(2), [1, 1])
    with pytest.raises(ValueError, match="inconsistent"):
        kernel_alignment(np.eye(2), [1, 2, 3])
    with pytest.raises(ValueError, match="how must be"):
        repair_psd(np.eye(2), "hope")


def test_sums_of_other_things():
    with pytest.raises(TypeError):
        Chi2() + 1
    with pytest.raises(TypeError):
        Chi2() * "2"
