"""Learning on a cluster of processes gives the model of one process."""

import numpy as np
import pytest
from sklearn.base import clone

from hilbin.estimators import MapRidge, MapRidgeClassifier, MapSVC, StreamPCA, stream_landmarks
from hilbin.kernels import Chi2, Exponential, Hellinger
from hilbin.maps import AdditiveMap, FourierMap, ProductQuantizer, SparseMap
from hilbin.stream import as_chunks

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

N, D = 300, 6
FOURIER = FourierMap(Exponential(Chi2(), gamma="median"), 40)
GROUPS = [("left", slice(0, 3), AdditiveMap(Hellinger())), ("right", slice(3, 6), FOURIER)]
MODELS = {
    "ridge": MapRidge(alpha="auto", alpha_selection="loo"),
    "classifier": MapRidgeClassifier(FOURIER, n_components=15, calibrate_rank=20),
    "groups": MapRidgeClassifier(column_groups=GROUPS, n_components={"right": 9}),
    "components": StreamPCA(5, feature_map=FOURIER),
}


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", processes=True
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.gamma(0.5, size=(N, D))
    return X, np.floor(3 * X[:, 0] + X[:, 4]) % 3, rng.uniform(0.5, 2, N)


def answers(model, X):
    if isinstance(model, StreamPCA):
        return model.transform(X)
    return getattr(model, "decision_function", model.predict)(X)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("given", ["Dask arrays", "Dask arrays, no client", "shards"])
def test_as_one_process(data, client, tmp_path, kind, given):
    X, y, weight = data
    local = clone(MODELS[kind]).fit(X, y, sample_weight=weight)
    found, passes = clone(MODELS[kind]), []
    options = {"callback": lambda name, done, rows: passes.append((name, done, rows))}
    if given != "Dask arrays, no client":
        options["client"] = client
    if given == "shards":
        for shard, part in enumerate(np.array_split(np.arange(N), 4)):
            for name, column in (("X", X), ("y", y), ("weight", weight)):
                np.save(tmp_path / f"{name}_{shard}.npy", column[part])
        rows = tmp_path
        found.fit(as_chunks(tmp_path, rows=40), **options)
    else:
        rows = da.from_array(X, chunks=(70, 4))
        found.fit(rows, da.from_array(y, 70), sample_weight=da.from_array(weight, 45), **options)
    wanted = answers(local, X)
    scale = np.abs(wanted).max()
    np.testing.assert_allclose(answers(found, X), wanted, rtol=1e-10, atol=1e-10 * scale)
    np.testing.assert_allclose(answers(found, rows), answers(found, X), rtol=1e-12, atol=1e-12)
    assert passes[-1][1:] == (N, N)


@pytest.mark.parametrize("feature_map", [SparseMap(Chi2(), 8), ProductQuantizer(2, n_words=16)])
def test_cutting_planes(data, client, feature_map):
    X, y, weight = data
    model = MapSVC(feature_map, C=0.01, tol=1e-3, random_state=0)
    local = clone(model).fit(X, y, sample_weight=weight)
    rows, labels = da.from_array(X, chunks=(70, 4)), da.from_array(y, 70)
    model.fit(rows, labels, sample_weight=da.from_array(weight, 45), client=client)
    assert model.converged_
    np.testing.assert_allclose(model.objective_, local.objective_, rtol=1e-3)
    scores = local.decision_function(X)
    scale = np.abs(scores).max()
    np.testing.assert_allclose(model.decision_function(rows), scores, rtol=0, atol=0.05 * scale)


def test_a_fit_on_a_cluster_is_resumed(data, client, tmp_path):
    X, y, _ = data
    rows, labels = da.from_array(X, chunks=(10, -1)), da.from_array(y, 10)
    model = MapRidgeClassifier(FOURIER, checkpoint=tmp_path / "where")

    def stop(name, done, n_rows):
        if name == "sums":
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        model.fit(rows, labels, client=client, callback=stop)
    said = []
    model.fit(rows, labels, client=client, callback=lambda *what: said.append(what))
    assert [what for what in said if what[0] == "survey"] == [("survey", N, N)]
    assert 0 < next(done for name, done, _ in said if name == "sums") < N
    assert not (tmp_path / "where").exists()
    wanted = MapRidgeClassifier(FOURIER).fit(X, y).decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), wanted, rtol=1e-10, atol=1e-10)


def test_landmarks(data, client):
    X, _, weight = data
    whole = stream_landmarks(X, 8, sample_weight=weight)
    for rows in (da.from_array(X, chunks=(70, 4)), X):
        found = stream_landmarks(rows, 8, sample_weight=weight, client=client)
        np.testing.assert_allclose(found, whole, rtol=1e-10, atol=1e-12)
