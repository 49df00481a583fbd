"""Principal components from sums are scikit-learn's from rows."""

import numpy as np
import pytest
from sklearn.decomposition import PCA, TruncatedSVD

from hilbin.solvers import pca
from hilbin.stats import Moments


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(80, 6)) @ rng.normal(size=(6, 6)) + 1e3


@pytest.mark.parametrize("k", [1, 3, 6, None])
def test_as_scikit_learn(rows, k):
    theirs = PCA(k, svd_solver="full").fit(rows)
    found = pca(Moments.of(rows[:30]) + Moments.of(rows[30:]), k)
    signs = np.sign(np.sum(found.components * theirs.components_, axis=1))
    np.testing.assert_allclose(found.components, signs[:, None] * theirs.components_, atol=1e-8)
    np.testing.assert_allclose(found.eigenvalues / 79, theirs.explained_variance_, rtol=1e-8)
    np.testing.assert_allclose(found.mean, theirs.mean_)
    np.testing.assert_allclose(
        found.eigenvalues / found.total, theirs.explained_variance_ratio_, rtol=1e-8
    )
    assert found.residual < 1e-12
    largest = np.abs(found.components).argmax(axis=1)
    assert (found.components[np.arange(len(largest)), largest] > 0).all()


@pytest.mark.parametrize("share", [0.5, 0.9, 0.999])
def test_share_of_the_variance(rows, share):
    found = pca(Moments.of(rows), share)
    assert found.components.shape[0] == PCA(share, svd_solver="full").fit(rows).n_components_


def test_from_zero(rows):
    found = pca(Moments.of(rows), 2, center=False)
    theirs = TruncatedSVD(2, algorithm="arpack", random_state=0).fit(rows)
    np.testing.assert_allclose(
        np.abs(np.vecdot(found.components, theirs.components_)), 1, rtol=1e-10
    )
    assert not found.mean.any()


def test_rows_that_are_all_the_same():
    found = pca(Moments.of(np.ones((4, 3))), 2)
    assert not found.eigenvalues.any()
    assert found.residual == 0


@pytest.mark.parametrize("bad", [0, 7, 1.5, True, "all"])
def test_bad_counts(rows, bad):
    with pytest.raises(ValueError, match="n_components must be a whole number from 1 to 6"):
        pca(Moments.of(rows), bad)
