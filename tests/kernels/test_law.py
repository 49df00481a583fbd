"""The law on every kernel, on a kernel written here, and on kernels that break it."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from catalogue import KERNELS, public_kernels
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone

from hilbin.kernels import (
    AdditiveKernel,
    Chi2,
    HomogeneousKernel,
    Intersection,
    JensenShannon,
    Kernel,
    StationaryKernel,
    check_kernel,
    is_psd,
)


@dataclass(frozen=True, repr=False)
class SquaredSech(HomogeneousKernel):
    """A newcomer's kernel: P(t) = 1 / cosh(t / 2)^2, whose spectrum w / sinh(pi w) is positive."""

    def profile(self, t):
        return (2 * np.exp(-t / 2) / (1 + np.exp(-t))) ** 2


@dataclass(frozen=True, repr=False)
class Triangle(StationaryKernel):
    """Compact support and a kink: what a table finds hardest."""

    width: float = 1.0

    def profile(self, t):
        return np.maximum(0, 1 - t / self.width)


def test_every_public_kernel_is_in_the_catalogue():
    assert {type(k) for k in KERNELS} == public_kernels()


@dataclass(frozen=True, repr=False)
class Cauchy(StationaryKernel):
    """A smooth bell of any width."""

    scale: float = 5.0

    def profile(self, t):
        return 1 / (1 + (t / self.scale) ** 2)


def test_law_on_a_stationary_kernel():
    check_kernel(Cauchy())


def test_a_narrow_profile_is_resolved():
    X = np.random.default_rng(0).uniform(0, 500, size=(40, 3))
    K = Cauchy(scale=0.1).gram(X)
    exact = (1 / (1 + ((X[:, None] - X[None]) / 0.1) ** 2)).sum(axis=-1)
    np.testing.assert_allclose(K, exact, atol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_law(kernel):
    check_kernel(kernel)


@pytest.mark.parametrize("seed", range(3))
def test_law_on_a_new_kernel(seed):
    check_kernel(SquaredSech(), random_state=seed)


def test_a_kink_costs_accuracy_but_not_the_law():
    X = np.random.default_rng(0).uniform(size=(30, 4))
    with pytest.warns(UserWarning, match="has a kink"):
        K = Triangle(0.5).gram(X)
    exact = np.maximum(0, 1 - np.abs(X[:, None] - X[None]) / 0.5).sum(axis=-1)
    np.testing.assert_allclose(K, exact, atol=1e-3)
    assert is_psd(K, rtol=1e-3)


@pytest.mark.filterwarnings("ignore::hilbin.kernels.NotPositiveDefiniteWarning")
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_kernel_is_a_value(kernel):
    assert clone(kernel) == kernel
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    assert hash(clone(kernel)) == hash(kernel)
    assert kernel.replace() == kernel
    assert set(kernel.get_params(deep=False)) <= set(kernel.get_params())
    with pytest.raises(AttributeError):
        kernel.gamma = 3
    with pytest.raises(TypeError, match="immutable"):
        kernel.set_params(gamma=2)
    assert kernel.set_params() is kernel


@dataclass(frozen=True, repr=False)
class Lopsided(Kernel):
    def _gram(self, X, Y, n_jobs):
        Y = X if Y is None else Y
        return X @ Y.T + X[:, :1]

    def _diag(self, X):
        return np.square(X).sum(axis=1) + X[:, 0]


@dataclass(frozen=True, repr=False)
class Drifted(Chi2):
    """Its profile is not what its compiled function computes."""

    def profile(self, t):
        return np.exp(-t / 2)


@dataclass(frozen=True, repr=False)
class Indefinite(StationaryKernel):
    def profile(self, t):
        return 1 / (1 + (t / 50) ** 4)


@pytest.mark.parametrize(
    ("kernel", "law"),
    [
        (Lopsided(), "symmetry"),
        (Drifted(), "function = profile"),
        (Indefinite(), "positive definiteness"),
    ],
    ids=["lopsided", "drifted", "indefinite"],
)
def test_the_law_catches_offenders(kernel, law):
    with pytest.raises(AssertionError, match=law):
        check_kernel(kernel)


def test_a_forgotten_dataclass():
    class Forgotten(StationaryKernel):
        def profile(self, t):
            return np.exp(-t)

    with pytest.raises(TypeError, match=r"Forgotten is not a dataclass: put @dataclass"):
        Forgotten().gram([[1.0]])


values = st.one_of(st.just(0.0), st.floats(1e-6, 1e4))
rows = arrays(np.float64, st.tuples(st.integers(1, 8), st.integers(1, 9)), elements=values)


@pytest.mark.parametrize(
    "kernel", [Intersection(), Intersection(0.3), Chi2(), JensenShannon(), SquaredSech()], ids=repr
)
@given(X=rows, factor=st.floats(1e-3, 1e3))
def test_homogeneous_on_any_rows(kernel, X, factor):
    K = kernel.gram(X)
    size = np.sqrt(np.outer(kernel.diag(X), kernel.diag(X)))
    difference = np.abs(kernel.gram(factor * X) / factor**kernel.degree - K)
    assert (difference <= 1e-9 * size).all()
    assert (np.abs(K) <= size * (1 + 1e-9)).all()  # Cauchy and Schwarz
    assert is_psd(K)


@pytest.mark.parametrize("kernel", [k for k in KERNELS if isinstance(k, AdditiveKernel)], ids=repr)
@given(X=rows)
def test_float32_stays_close(kernel, X):
    size = np.sqrt(np.outer(kernel.diag(X), kernel.diag(X)))
    single = kernel.gram(X.astype(np.float32))
    assert single.dtype == np.float32
    assert (np.abs(single - kernel.gram(X)) <= 1e-5 * size).all()
