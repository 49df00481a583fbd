"""What a fit will cost: known without reading all rows, and by the passes that a fit makes."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from hilbin.estimators import CostEstimate, MapRidge, MapRidgeClassifier, StreamPCA
from hilbin.estimators.linear import cost as cost_module
from hilbin.estimators.linear import progress as progress_module
from hilbin.estimators.linear.cost import FirstRows, Measured, Plan, estimated
from hilbin.estimators.linear.passes import Passes
from hilbin.estimators.linear.progress import Progress
from hilbin.kernels import Chi2, Gaussian
from hilbin.maps import AdditiveMap, FourierMap
from hilbin.stream import ChunkError, as_chunks

N, WIDTH = 600, 8
GROUPS = [("one", slice(0, 3), AdditiveMap(Chi2())), ("two", slice(3, 8), None)]


@pytest.fixture
def data():
    random = np.random.default_rng(0)
    X = random.random((N, WIDTH))
    return X, (X[:, 0] + X[:, 1] > 1).astype(int) + (X[:, 2] > 0.8)


@pytest.fixture
def shards(data, tmp_path):
    for i, (rows, labels) in enumerate(zip(*(np.split(a, 6) for a in data), strict=True)):
        np.save(tmp_path / f"X_{i}.npy", rows)
        np.save(tmp_path / f"y_{i}.npy", labels)
    return tmp_path


@pytest.mark.parametrize(
    "model",
    [
        MapRidge(),
        MapRidge(FourierMap(Gaussian(), 100), alpha=1.0),
        MapRidgeClassifier(AdditiveMap(Chi2()), probability=True),
        MapRidge(column_groups=GROUPS, n_components=2),
        StreamPCA(2, feature_map=AdditiveMap(Chi2())),
    ],
    ids=repr,
)
def test_the_same_size_wherever_the_rows_lie(model, data, shards):
    X, y = data
    da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(WIDTH)])
    unknown = dd.from_pandas(frame, npartitions=4).to_dask_array()
    assert np.isnan(unknown.shape[0])
    sources = [
        X, X.tolist(), frame, sp.csr_array(X), np.load(shards / "X_0.npy", mmap_mode="r"), shards,
        as_chunks(X, y, rows=50), [(X[:200], y[:200]), (X[200:], y[200:])],
        da.from_array(X, (100, WIDTH)), dd.from_pandas(frame, npartitions=4), unknown,
    ]  # fmt: skip
    features = clone(model).fit(X, y)
    width = features.mean_.size if isinstance(model, StreamPCA) else features.coef_.shape[-1]
    for source in sources:
        found = clone(model).estimate_cost(source)
        assert isinstance(found, CostEstimate)
        assert found.n_rows == (100 if isinstance(source, np.memmap) else N)
        assert found.n_features_out == width
        assert found.seconds == pytest.approx(sum(found.parts.values()))
        assert min(found.parts.values()) >= 0 < found.bytes
        assert "measured on the first" in found.model


def test_what_is_behind_the_first_rows_is_not_read(data, shards, monkeypatch):
    monkeypatch.setattr("hilbin.estimators.linear.base.FIRST_ROWS", 100)
    rows = data[0][:100].copy()
    rows[7, 3] = np.nan
    np.save(shards / "X_5.npy", rows)
    model = MapRidgeClassifier(AdditiveMap(Chi2()), n_fit_samples=200)
    assert model.estimate_cost(shards).n_rows == N
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    with pytest.raises(ChunkError, match="row 7 is nan"):
        model.fit(shards)


def test_one_partition_of_dask_is_computed(data, monkeypatch):
    da = pytest.importorskip("dask.array")
    monkeypatch.setattr("hilbin.estimators.linear.base.FIRST_ROWS", 100)
    computed = set()

    def note(block, block_info=None):
        computed.add(block_info[0]["chunk-location"][0])
        return block

    X = da.from_array(data[0], (200, WIDTH)).map_blocks(note, dtype=float, meta=np.empty((0, 0)))
    assert MapRidge(n_fit_samples=100).estimate_cost(X).n_rows == N
    assert computed == {0}


@pytest.mark.parametrize(
    ("model", "given"),
    [
        (MapRidge(), True),
        (MapRidge(AdditiveMap(Chi2())), False),
        (MapRidge(FrozenEstimator(AdditiveMap(Chi2()).fit(np.ones((2, WIDTH))))), False),
        (MapRidge(alpha_selection="loo"), False),
        (MapRidge(column_groups=GROUPS, n_components=2), False),
        (MapRidge(FourierMap(Gaussian(), 1000)), False),
        (MapRidgeClassifier(), True),
        (MapRidgeClassifier(), False),
        (MapRidgeClassifier(probability=True, calibrate_rank=5), False),
        (StreamPCA(), False),
        (StreamPCA(3, feature_map=AdditiveMap(Chi2())), False),
    ],
    ids=repr,
)
def test_as_many_passes_as_the_fit_makes(model, given, data, shards, monkeypatch):
    X, y = data
    made, plans = [], []
    fold = Passes.fold
    monkeypatch.setattr(Passes, "fold", lambda *a, **k: made.append(a[1]) or fold(*a, **k))
    monkeypatch.setattr(
        "hilbin.estimators.linear.base.estimated", lambda plan, *a: plans.append(plan)
    )
    arguments = (X, y) if given else (shards,)
    model.estimate_cost(*arguments)
    assert not made
    model.fit(*arguments)
    (plan,) = plans
    assert plan.read + len(plan.sums) + len(plan.scored) == len(made)
    assert plan.few_rows == ("rows" in made)
    if isinstance(model, MapRidgeClassifier):
        assert plan.targets == 3


def measured(n, widths, held=0):
    return Measured(FirstRows(np.empty((1, 1)), None, n, held, 1e-6), widths, 0.5, 1e-5, None)


@given(st.integers(1000, 10**7), st.integers(1, 500), st.integers(1, 100), st.integers(1, 64))
def test_laws(n, width, targets, workers):
    plan = Plan(1, ((width,),), (), "eigen", width, targets)
    one, two = (estimated(plan, measured(m, (width,)), 1e8, 1, workers) for m in (n, 2 * n))
    for part in ("read", "map", "product"):  # proportional to the rows
        assert two.parts[part] == pytest.approx(2 * one.parts[part])
        assert one.parts[part] > 0
    assert one.parts["solve"] == two.parts["solve"]
    assert one.bytes <= two.bytes
    wider = plan._replace(sums=((width + 1,),), size=width + 1)
    more = estimated(wider, measured(n, (width + 1,)), 1e8, 1, workers)
    assert more.parts["product"] > one.parts["product"]
    assert more.parts["solve"] > one.parts["solve"]
    assert more.bytes > one.bytes
    many = estimated(plan, measured(n, (width,)), 1e8, 2, workers)
    assert many.parts["map"] == pytest.approx(one.parts["map"] / 2)
    assert ("merge" in one.parts) == (workers > 1)


@pytest.mark.parametrize("alpha", [1.0, "auto"])
@pytest.mark.parametrize(("n", "width"), [(4000, 300), (300, 900), (20000, 30)])
def test_memory_is_not_more_than_estimated(n, width, alpha):
    X = np.random.default_rng(0).random((n, width))
    y = X[:, :3]
    model = MapRidge(alpha=alpha)
    found = model.estimate_cost(X, y)
    model.fit(X[:50], y[:50])  # whatever is imported late
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.1 * found.bytes
    assert found.bytes < 12 * peak


def test_a_penalty_that_is_given_costs_less(data):
    fixed, free = (MapRidge(alpha=alpha).estimate_cost(*data) for alpha in (1.0, "auto"))
    assert fixed.parts["solve"] < free.parts["solve"]
    lasso = MapRidge(penalty="lasso").estimate_cost(*data)
    assert lasso.parts["solve"] == 0
    assert "not counted" in lasso.model


def test_sparse_rows_have_a_cheaper_product():
    X = sp.random_array((2000, 400), density=0.002, rng=0, format="csr")
    thin = MapRidge().estimate_cost(X)
    assert thin.n_features_out == 400
    assert thin.parts["product"] > 0


def test_rows_that_nobody_counts(data):
    class Again:
        def __iter__(self):
            return iter([data])

    with pytest.raises(ValueError, match="pass n_rows"):
        MapRidge().estimate_cost(Again())
    assert MapRidge().estimate_cost(Again(), n_rows=10**6).n_rows == 10**6
    with pytest.raises(ValueError, match="n_workers"):
        MapRidge().estimate_cost(*data, n_workers=0)
    with pytest.raises(ValueError, match="n_rows"):
        MapRidge().estimate_cost(*data, n_rows=-1)


def test_in_words(data):
    text = str(MapRidge().estimate_cost(*data))
    assert "600 rows, 8 features" in text
    assert "product" in text


# progress
@pytest.mark.parametrize("model", [MapRidge(), MapRidgeClassifier(), StreamPCA()], ids=repr)
def test_slow_passes_are_told(model, shards, capsys, monkeypatch):
    model = clone(model).set_params(verbose=1, memory=0.02)
    model.fit(shards)
    assert "%" not in capsys.readouterr().out  # quick ones are not
    monkeypatch.setattr(progress_module, "AFTER", 0.0)
    seen = []
    model.fit(shards, callback=lambda *told: seen.append(told))
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("[sums] ") and "% of 600 rows, " in line for line in lines)
    assert any(line.startswith("[sums] 600 rows in ") for line in lines)
    assert any(line.startswith("[solution] ") for line in lines)
    assert ("sums", N, N) in seen
    clone(model).set_params(verbose=0).fit(shards)
    assert not capsys.readouterr().out


def told(capsys, times, calls):
    clock = iter(times)
    progress = Progress("sums", clock=lambda: next(clock))
    for done, rows in calls:
        progress(done, rows)
    progress.end()
    return capsys.readouterr().out.splitlines()


def test_time_left(capsys):
    calls = [(10, 100), (20, 100), (60, 100), (100, 100)]
    lines = told(capsys, [0, 3, 4, 8, 12, 12], calls)
    # from the first call on: 50 rows in 5 s
    assert lines == [
        "[sums] 10% of 100 rows, 27 s left",
        "[sums] 60% of 100 rows, 4 s left",
        "[sums] 100 rows in 12 s",
    ]


def test_rows_of_an_earlier_job_say_nothing_of_the_speed(capsys):
    lines = told(capsys, [0, 0, 10, 20], [(900, 1000), (950, 1000)])
    assert lines[0] == "[sums] 95% of 1,000 rows, 10 s left"


def test_unknown_numbers_of_rows(capsys):
    lines = told(capsys, [0, 5, 6], [(700, None)])
    assert lines == ["[sums] 700 rows after 5 s", "[sums] 700 rows in 6 s"]


def test_speeds_are_measured_once():
    assert cost_module.speeds(1) is cost_module.speeds(1)
    assert min(cost_module.speeds(1)) > 0
