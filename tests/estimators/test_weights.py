"""A weight is a number of copies, also for maps and kernels that are fitted to the rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from hilbin.estimators import (
    HistogramBinner,
    KernelRidge,
    KernelSVC,
    MapRidge,
    MapRidgeClassifier,
    MapSVC,
    MapSVR,
    StreamPCA,
    stream_landmarks,
)
from hilbin.estimators.intersection.quantiles import comparable
from hilbin.kernels import Chi2, Exponential, Gaussian, Intersection, Laplace
from hilbin.maps import AdditiveMap, FourierMap, NystroemMap, SparseMap

MAPS = {
    "none": None,
    "fourier": FourierMap(Gaussian(gamma="median"), 30),
    "fourier of a kernel": FourierMap(Exponential(Chi2(), gamma="mean"), 30),
    "nystroem": NystroemMap(Laplace(gamma="median"), 15, landmarks="kmeans++"),
    "nodes": SparseMap(Intersection(), 6, spacing="quantile", orthonormal=True),
    "additive": AdditiveMap(Chi2(), 3),
    "scaler": StandardScaler(),
    "bins": HistogramBinner(10),
}
TIGHT = {"tol": 1e-9, "max_iter": 100_000}


def copies(seed, n=60, d=4):
    """Return rows, weights, and the rows with copies, in another order."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(0.5, size=(n, d)).round(2)
    weights = rng.integers(0, 4, n)
    weights[:4] = 1, 2, 3, 1
    many = rng.permutation(np.repeat(np.arange(n), weights))
    return rng, X, weights.astype(float), many


@pytest.mark.parametrize("name", MAPS)
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 1000), csr=st.booleans())
def test_maps_see_copies_as_weights(name, seed, csr):
    rng, X, weights, many = copies(seed)
    rows = sp.csr_array(X) if csr and name not in ("scaler",) else X
    y = rng.normal(size=len(X))
    model = MapRidge(MAPS[name], alpha=1e-3)
    a = clone(model).fit(rows, y, sample_weight=weights).predict(rows)
    b = clone(model).fit(rows[many], y[many]).predict(rows)
    np.testing.assert_allclose(a, b, atol=1e-6 * np.abs(b).max())


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 1000))
def test_so_do_the_others(seed):
    rng, X, weights, many = copies(seed)
    labels = (X[:, 0] + 0.3 * rng.normal(size=len(X)) > X[:, 1]).astype(int)
    labels[:2] = 0, 1
    nodes = SparseMap(Chi2(), 5)
    for model in (
        MapSVC(nodes, loss="squared_hinge", **TIGHT),
        MapSVR(nodes, loss="squared_epsilon_insensitive", **TIGHT),
        MapRidgeClassifier(MAPS["fourier"], alpha=1e-2),
        KernelRidge(Gaussian(gamma="mean"), alpha=0.1),
        KernelSVC(Laplace(gamma="median")),
    ):
        a = clone(model).fit(X, labels, sample_weight=weights)
        b = clone(model).fit(X[many], labels[many])
        found = [getattr(m, "decision_function", m.predict)(X) for m in (a, b)]
        np.testing.assert_allclose(*found, atol=1e-4 * np.abs(found[1]).max())
    pca = StreamPCA(2, feature_map=MAPS["nystroem"])
    a = clone(pca).fit(X, sample_weight=weights).explained_variance_
    np.testing.assert_allclose(a, clone(pca).fit(X[many]).explained_variance_, rtol=1e-8)
    landmarks = stream_landmarks(X, 5, sample_weight=weights)
    np.testing.assert_allclose(landmarks, stream_landmarks(X[many], 5), atol=1e-8)


def test_many_rows():
    """Rules and decisions that look at some of the rows look at the same ones."""
    _, X, weights, many = copies(0, 4000, 9)
    some = weights > 0
    small = KernelSVC(Gaussian(gamma="median"), max_iter=1, memory=1)
    kernels = []
    for rows, weight in ((X, weights), (X[many], None)):
        model = clone(small)
        model._checked(rows, rows[:, 0] > 0.1)
        weight = np.ones(len(rows)) if weight is None else weight
        kernels.append(model._train_on(rows, rows[weight > 0, 0], weight).gram.kernel)
    assert kernels[0] == kernels[1]
    assert comparable(X[some], X.min(axis=0), weights[some], None) == comparable(
        X[many], X.min(axis=0), None, None
    )
    feature_map = FourierMap(Gaussian(gamma="median"), 10)
    model = MapRidge(feature_map, n_fit_samples=500)
    a = clone(model).fit(X, X[:, 0], sample_weight=weights)
    b = clone(model).fit([(X[part], X[part, 0]) for part in np.array_split(many, 7)])
    np.testing.assert_allclose(a.predict(X), b.predict(X), atol=1e-7)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), single=st.booleans())
def test_the_score_of_a_row_does_not_depend_on_the_batch(seed, single):
    rng = np.random.default_rng(seed)
    X = rng.gamma(1.0, size=(80, 3)).astype(np.float32 if single else np.float64)
    y = (X[:, 0] > X[:, 1]).astype(int)
    y[:2] = 0, 1
    for model in (MapSVC(SparseMap(Chi2(), 8)), MapSVR(SparseMap(Intersection(), 8))):
        model.fit(X, y)
        assert model.coef_.dtype == X.dtype
        score = getattr(model, "decision_function", model.predict)
        alone = np.array([score(row[None])[0] for row in X])
        np.testing.assert_allclose(alone, score(X), rtol=0, atol=1e-5 if single else 1e-12)
