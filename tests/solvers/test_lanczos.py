"""A few large eigenvalues against LAPACK's, whatever the spectrum looks like."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilbin.solvers.lanczos import lanczos


def with_spectrum(values, seed=0):
    Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values),) * 2))
    return (Q * values) @ Q.T


@given(
    seed=st.integers(0, 10**6),
    count=st.integers(1, 20),
    spectrum=st.sampled_from(["dense", "falling", "low rank", "indefinite"]),
)
@settings(max_examples=20)
def test_as_lapack(seed, count, spectrum):
    rng = np.random.default_rng(seed)
    n = 600
    values = {
        "dense": lambda: np.linspace(0, 1, n) ** 400,
        "falling": lambda: 1 / np.arange(1, n + 1) ** 2,
        "low rank": lambda: np.r_[rng.uniform(1, 2, 30), np.zeros(n - 30)],
        "indefinite": lambda: np.r_[np.linspace(50, 90, 20), -rng.uniform(0, 4, n - 20)],
    }[spectrum]()
    A = with_spectrum(values, seed)
    found = lanczos(A, count)
    assert found is not None
    theta, V = found
    wanted = np.sort(values)[::-1][:count]
    np.testing.assert_allclose(theta, wanted, atol=1e-12 * wanted[0])
    np.testing.assert_allclose(V.T @ V, np.eye(count), atol=1e-12)
    np.testing.assert_allclose(A @ V, V * theta, atol=1e-12 * wanted[0])


def test_more_equal_eigenvalues_than_columns():
    A = np.kron(np.eye(40), np.ones((20, 20)))
    found = lanczos(A, 45)
    assert found is not None
    np.testing.assert_allclose(found[0], np.r_[np.full(40, 20.0), np.zeros(5)], atol=1e-10)


@pytest.mark.parametrize("n", [60, 300])
def test_it_gives_up_rather_than_be_wrong(n):
    A = with_spectrum(1 + 1e-3 * np.sort(np.random.default_rng(0).uniform(size=n)))
    assert lanczos(A, n // 8) is None
