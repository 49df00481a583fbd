"""Components from sums are scikit-learn's, in memory or not, of rows or of kernel features."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA, KernelPCA
from sklearn.utils.estimator_checks import parametrize_with_checks

from hilbin.estimators import StreamPCA
from hilbin.kernels import Hellinger
from hilbin.maps import AdditiveMap


@parametrize_with_checks(
    [
        StreamPCA(),
        StreamPCA(1, whiten=True, keep_sums=True),
        StreamPCA(0.9),
        StreamPCA(feature_map=AdditiveMap(Hellinger())),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def rows():
    return load_digits().data[:500] + 100


def signs(ours, theirs):
    return np.sign(np.sum(ours * theirs, axis=1))


@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("k", [3, 0.8])
def test_as_scikit_learn(rows, k, whiten):
    theirs = PCA(k, whiten=whiten, svd_solver="full").fit(rows)
    for data in (rows, sp.csr_array(rows), [rows[:99], rows[99:110], rows[110:]]):
        found = StreamPCA(k, whiten=whiten).fit(data)
        turn = signs(found.components_, theirs.components_)
        np.testing.assert_allclose(found.transform(rows) * turn, theirs.transform(rows), atol=1e-8)
        for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_"):
            np.testing.assert_allclose(getattr(found, name), getattr(theirs, name), rtol=1e-8)
        again = found.inverse_transform(found.transform(rows))
        np.testing.assert_allclose(
            again, theirs.inverse_transform(theirs.transform(rows)), rtol=1e-8
        )


def test_weights_are_copies(rows):
    weight = np.arange(500) % 3
    one = StreamPCA(4).fit(rows, sample_weight=weight)
    other = StreamPCA(4).fit(np.repeat(rows, weight, axis=0))
    np.testing.assert_allclose(one.components_, other.components_, atol=1e-8)
    np.testing.assert_allclose(one.explained_variance_, other.explained_variance_)


def test_partial_fit_adds_rows(rows):
    found = StreamPCA(5, keep_sums=True)
    for part in np.array_split(rows, 4):
        found.partial_fit(part)
    whole = StreamPCA(5).fit(rows)
    np.testing.assert_allclose(found.components_, whole.components_, atol=1e-8)
    assert found.n_samples_seen_ == 500
    again = StreamPCA(5, keep_sums=True).fit(rows[:100]).partial_fit(rows[100:])
    np.testing.assert_allclose(again.components_, whole.components_, atol=1e-8)
    assert not hasattr(whole, "partial_fit")


def test_of_features_it_is_kernel_pca(rows):
    """Of an exact map, so the two agree to rounding."""
    found = StreamPCA(4, feature_map=AdditiveMap(Hellinger())).fit(rows)
    theirs = KernelPCA(4, kernel="precomputed", eigen_solver="dense")
    Z = theirs.fit_transform(Hellinger().gram(rows))
    ours = found.transform(rows)
    np.testing.assert_allclose(ours * signs(ours.T, Z.T), Z, atol=1e-7)
    with pytest.raises(ValueError, match="feature_map must be None"):
        found.inverse_transform(ours)


def test_manners(rows):
    frame = pd.DataFrame(rows[:, 2:6], columns=list("abcd"))
    model = StreamPCA(2).set_output(transform="pandas").fit(frame)
    assert list(model.transform(frame).columns) == ["streampca0", "streampca1"]
    assert model.feature_names_in_.tolist() == list("abcd")
    assert StreamPCA(2).fit(np.float32(rows)).transform(np.float32(rows)).dtype == np.float32
    with pytest.raises(ValueError, match="n_components must be a whole number from 1 to 64"):
        StreamPCA(65).fit(rows)
    with pytest.raises(ValueError, match=r"(?i)sample.weight"):
        StreamPCA(2).fit(rows, sample_weight=np.zeros(500))
    assert clone(model).get_params()["n_components"] == 2
