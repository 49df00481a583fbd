"""Support vector machines on codes and sparse maps: the optimum of the decoded features."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from hilbin.estimators import MapSVC, MapSVR
from hilbin.kernels import Chi2, Intersection
from hilbin.maps import AdditiveMap, ProductQuantizer, SparseMap
from hilbin.persist import load, save

EXACT = {"tol": 1e-7, "max_iter": 100_000}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return (X[:600] / 16).astype(np.float32), y[:600]


@pytest.fixture(scope="module")
def quantizer(digits):
    return ProductQuantizer(5, n_words=16, random_state=0).fit(digits[0])  # 64 = 12 * 5 + 4


@pytest.mark.parametrize("expansion", ["delayed", "immediate"])
def test_codes_train_as_decoded_rows(digits, quantizer, expansion):
    codes, y = quantizer.transform(digits[0]), digits[1]
    on_codes = MapSVC(C=0.1, expansion=expansion, **EXACT).fit(codes, y)
    decoded = MapSVC(C=0.1, **EXACT).fit(codes.decode().astype(np.float64), y)
    np.testing.assert_allclose(on_codes.objective_, decoded.objective_, rtol=1e-6)
    assert (on_codes.gap_ <= 1e-7 * on_codes.objective_).all()
    rows = codes.decode()
    scores = on_codes.decision_function(codes)
    np.testing.assert_allclose(scores, decoded.decision_function(rows), atol=1e-3)
    np.testing.assert_allclose(scores, on_codes.decision_function(rows), atol=1e-5)


def test_regression_on_codes(digits, quantizer):
    codes, t = quantizer.transform(digits[0]), digits[1].astype(float)
    on_codes = MapSVR(C=0.1).fit(codes, t)
    decoded = MapSVR(C=0.1).fit(codes.decode(), t)
    assert on_codes.objective_ == pytest.approx(decoded.objective_, rel=2e-3)
    assert on_codes.predict(codes).shape == t.shape


def test_a_quantizer_is_a_map(digits, quantizer):
    X, y = digits
    frozen = MapSVC(FrozenEstimator(quantizer), C=0.1).fit(X, y)
    coded = MapSVC(C=0.1).fit(quantizer.transform(X), y)
    np.testing.assert_allclose(frozen.coef_, coded.coef_, atol=1e-6)
    own = ProductQuantizer(4, n_words=32)
    model = MapSVC(make_pipeline(MinMaxScaler(), own), C=0.1)
    assert cross_val_score(model, X, y, cv=3).mean() > 0.8


@pytest.mark.parametrize("metric", [None, Chi2()])
def test_rows_are_scored_as_they_are(digits, metric):
    X, y = digits
    model = MapSVC(ProductQuantizer(4, n_words=32, metric=metric, random_state=0)).fit(X, y)
    features = X if metric is None else model.feature_map_.feature_map_.transform(X)
    expected = features @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-5, atol=1e-5)
    piped = MapSVC(make_pipeline(MinMaxScaler(), clone_of(model.feature_map_))).fit(X, y)
    assert piped.score(X, y) > 0.95


def clone_of(quantizer):
    return ProductQuantizer(**quantizer.get_params())


def test_chunks_are_kept_as_codes(digits, quantizer, tmp_path):
    X, y = digits
    for i, rows in enumerate(np.array_split(np.arange(len(y)), 4)):
        np.save(tmp_path / f"X_{i}.npy", X[rows])
        np.save(tmp_path / f"y_{i}.npy", y[rows])
    frozen = FrozenEstimator(quantizer)
    streamed = MapSVC(frozen, C=0.1).fit(tmp_path)
    whole = MapSVC(frozen, C=0.1).fit(X, y)
    np.testing.assert_allclose(streamed.objective_, whole.objective_, rtol=2e-3)
    np.testing.assert_allclose(streamed.decision_function(X), whole.decision_function(X), atol=0.05)


def test_weights_are_repetitions_of_codes(digits, quantizer):
    codes, y = quantizer.transform(digits[0])[:200], digits[1][:200]
    times = np.random.default_rng(0).integers(0, 3, 200)
    rows = np.repeat(np.arange(200), times)
    weighted = MapSVC(C=0.1, **EXACT).fit(codes, y, sample_weight=times)
    repeated = MapSVC(C=0.1, **EXACT).fit(codes[rows], y[rows])
    np.testing.assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-6)


def test_codes_that_do_not_belong_are_refused(digits, quantizer):
    X, y = digits
    codes = quantizer.transform(X)
    others = ProductQuantizer(5, n_words=16, random_state=1).fit_transform(X)
    model = MapSVC(C=0.1).fit(codes, y)
    with pytest.raises(ValueError, match="another quantizer"):
        model.predict(others)
    with pytest.raises(ValueError, match="another quantizer"):
        MapSVC(FrozenEstimator(quantizer)).fit(X, y).predict(others)
    with pytest.raises(ValueError, match="coded already"):
        MapSVC(SparseMap(Chi2())).fit(codes, y)
    with pytest.raises(ValueError, match="features of its map"):
        MapSVC(SparseMap(Chi2()), max_iter=3000).fit(X, y).predict(codes)
    with pytest.raises(ValueError, match="requires y"):
        MapSVC().fit(codes)
    with pytest.raises(ValueError, match="inconsistent"):
        MapSVC().fit(codes, y[:-1])
    with pytest.raises(ValueError, match="32 features, but MapSVC is expecting 64"):
        MapSVC().fit(X, y).predict(ProductQuantizer(4, n_words=4).fit_transform(X[:, :32]))


def test_models_on_codes_are_saved(digits, quantizer, tmp_path):
    codes, y = quantizer.transform(digits[0]), digits[1]
    for model in (MapSVC().fit(codes, y), MapSVC(quantizer).fit(digits[0], y)):
        save(model, tmp_path / "model.hilbin")
        loaded = load(tmp_path / "model.hilbin")
        np.testing.assert_array_equal(loaded.predict(digits[0]), model.predict(digits[0]))


@pytest.mark.parametrize("kernel", [Chi2(), Intersection()])
def test_sparse_maps_train_as_their_orthonormal_features(digits, kernel):
    X, y = digits
    sparse = MapSVC(SparseMap(kernel, 10), C=0.05).fit(X, y)  # rounded, in float32
    dense = MapSVC(SparseMap(kernel, 10, orthonormal=True), C=0.05).fit(X.astype(float), y)
    np.testing.assert_allclose(sparse.objective_, dense.objective_, rtol=2e-3)
    exact = MapSVC(SparseMap(kernel, 10), C=0.05, **EXACT).fit(X.astype(float), y)
    assert exact.objective_ == pytest.approx(sparse.objective_, rel=1.1e-3)
    near = np.abs(exact.decision_function(X) - sparse.decision_function(X))
    assert near.mean() < 0.05


def test_a_sparse_map_is_as_good_as_a_dense_one(digits):
    X, y = digits
    sparse, dense = SparseMap(Chi2(), 20), AdditiveMap(Chi2(), 8)
    scores = [
        MapSVC(m, C=0.05).fit(X[:400], y[:400]).score(X[400:], y[400:]) for m in (sparse, dense)
    ]
    assert scores[0] == pytest.approx(scores[1], abs=0.02)
