"""On a cluster of processes: the sum is that of one process, whoever dies."""

import os
import signal
import threading
import time
import warnings

import numpy as np
import pytest

from hilbin.stream import CheckpointError, ChunkError, as_chunks, dask, fold

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

N, D = 400, 5


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", processes=True
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(N, D)), rng.integers(0, 3, N), rng.uniform(0.5, 2, N)


@pytest.fixture
def shards(data, tmp_path):
    for i, rows in enumerate(np.split(data[0], 8)):
        np.save(tmp_path / f"X_{i}.npy", rows)
    return tmp_path


def make_of(sleep=0.0):
    """A function that is sent by value: workers do not know this module."""

    def of(chunk):
        import time

        time.sleep(sleep)
        w = 1 if chunk.weight is None else chunk.weight[:, None]
        t = 0 if chunk.y is None else chunk.y.sum()
        return (chunk.X * w).T @ chunk.X + t

    return of


def oracle(X, y=0, weight=1):
    return (X * np.reshape(weight, (-1, 1))).T @ X + np.sum(y)


def assert_near(total, wanted):
    np.testing.assert_allclose(total, wanted, rtol=1e-10, atol=1e-10)


def collections(data):
    import pandas as pd

    X, y, weight = data
    names = [f"f{j}" for j in range(D)]
    frame = dd.from_pandas(pd.DataFrame(X, columns=names).assign(t=y, w=weight), npartitions=5)
    array = da.from_array(X, chunks=(90, 2))
    unknown = array[array[:, 0] > -np.inf]
    return {
        "array": (array, y, weight),
        "arrays": (array, da.from_array(y, 70), da.from_array(weight, 33)),
        "unknown": (unknown, y, weight),
        "frame": (frame[names], frame["t"], frame["w"]),
    }, frame


@pytest.mark.parametrize("kind", ["array", "arrays", "unknown", "frame"])
@pytest.mark.parametrize("where", ["here", "cluster"])
def test_collections(data, client, kind, where):
    chunks = as_chunks(*collections(data)[0][kind])
    assert (chunks.n_rows, chunks.n_features) == (N, D)
    parts = list(chunks)
    for got, wanted in zip(zip(*(c[:3] for c in parts), strict=True), data, strict=True):
        np.testing.assert_array_equal(np.concatenate(got), wanted)
    np.testing.assert_array_equal(next(chunks.unread(1)).read().X, parts[1].X)
    done = []
    total = fold(
        chunks,
        make_of(),
        client=client if where == "cluster" else None,
        callback=lambda *rows: done.append(rows),
    )
    assert_near(total, oracle(*data))
    assert done[-1] == (N, N)


def test_columns_of_a_frame(data):
    _, frame = collections(data)
    chunks = as_chunks(frame, target="t", weight="w")
    assert_near(fold(chunks, make_of()), oracle(*data))
    chunks = as_chunks(frame, features=["f1"])
    assert_near(fold(chunks, make_of()), oracle(data[0][:, [1]]))


def test_the_client_in_use_is_found(data, client):
    def of(chunk):
        import os

        return np.array([float(os.getpid() == here)])

    here = os.getpid()
    with client.as_current():
        assert fold(as_chunks(da.from_array(data[0], chunks=(100, -1))), of) == 0


def test_files_arrays_and_iterables_on_a_cluster(data, shards, client):
    X, y, weight = data
    total = fold(as_chunks(shards, y, weight, rows=30), make_of(), client=client)
    assert_near(total, oracle(*data))
    assert_near(total, fold(as_chunks(shards, y, weight, rows=30), make_of()))
    assert_near(fold(as_chunks(X, y, rows=30), make_of(), client=client), oracle(X, y))
    assert_near(fold([X[:100], X[100:]], make_of(), client=client), oracle(X))


def test_faults_are_named_and_work_is_kept(data, shards, client, tmp_path_factory):
    where = tmp_path_factory.mktemp("checkpoint")
    X = np.load(shards / "X_6.npy")
    bad = X.copy()
    bad[3, 1] = np.nan
    np.save(shards / "X_6.npy", bad)
    options = {"client": client, "checkpoint": where, "key": {}}
    with pytest.raises(ChunkError, match=r"X_6\.npy, rows 0 to 9: feature 1 of row 3 is nan"):
        fold(as_chunks(shards, rows=10), make_of(), **options)
    np.save(shards / "X_6.npy", X)
    with pytest.raises(CheckpointError, match="rows per chunk"):
        fold(as_chunks(shards, rows=20), make_of(), **options)
    done = []
    total = fold(
        as_chunks(shards, rows=10), make_of(), **options, callback=lambda *r: done.append(r)
    )
    assert done[0][0] > 0
    assert_near(total, oracle(data[0]))


def test_faults_of_collections(data, client):
    X, y, _ = data
    bad = X.copy()
    bad[150, 2] = np.inf
    for where in (client, None):
        with pytest.raises(ChunkError, match="Dask chunk 1, rows 0 to 99: feature 2 of row 50"):
            fold(as_chunks(da.from_array(bad, chunks=(100, -1))), make_of(), client=where)
    array = da.from_array(X, chunks=(100, -1))
    for labels in (y[1:], da.from_array(y[1:])):
        with pytest.raises(ValueError, match="399 targets or weights for 400 rows"):
            as_chunks(array, labels)
    with pytest.raises(ValueError, match="two-dimensional"):
        as_chunks(array[0])


def test_collections_resume(data, tmp_path):
    chunks = as_chunks(da.from_array(data[0], chunks=(10, -1)))

    def stop(rows, n_rows):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        fold(chunks, make_of(), checkpoint=tmp_path, callback=stop)
    again = as_chunks(da.from_array(data[0], chunks=(10, -1)))
    done = []
    total = fold(again, make_of(), checkpoint=tmp_path, callback=lambda *rows: done.append(rows))
    assert_near(total, oracle(data[0]))
    assert 0 < done[0][0] < N
    other = as_chunks(da.from_array(data[0] + 1, chunks=(10, -1)))
    assert other.fingerprint() != chunks.fingerprint() == again.fingerprint()


def test_a_worker_dies_in_the_middle(data, shards, client):
    pids = sorted(client.run(os.getpid).values())
    killed = []

    def kill_one(rows, n_rows):
        if not killed:
            os.kill(pids[0], signal.SIGKILL)
            killed.append(rows)

    total = fold(as_chunks(shards, rows=10), make_of(0.02), client=client, callback=kill_one)
    assert 0 < killed[0] < N
    assert_near(total, oracle(data[0]))
    deadline = time.monotonic() + 20
    while len(client.nthreads()) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert pids[0] not in client.run(os.getpid).values()


@pytest.fixture
def few(monkeypatch):
    """A cluster in this process, of one worker, and less patience."""
    monkeypatch.setattr(dask, "LOOK", 0.05)
    monkeypatch.setattr(dask, "PATIENCE", 0.5)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=":0", processes=False
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def once(action):
    """A callback that does something after the first sum."""
    left = [action]

    def callback(rows, n_rows):
        if left:
            assert rows < n_rows
            left.pop()()

    return callback


@pytest.mark.parametrize("kind", ["shards", "array"])
def test_waves_that_the_cluster_drops_are_sent_again(data, shards, client, kind):
    source = as_chunks(shards if kind == "shards" else da.from_array(data[0], (5, -1)), rows=5)
    total = fold(source, make_of(), client=client, callback=once(client.restart))
    assert_near(total, oracle(data[0]))


def test_a_sum_that_is_lost_after_its_end(data, shards, few, monkeypatch):
    """A worker may go between the end of a task and the call for its result."""
    lose = once(lambda: few.cluster.scale(0))
    monkeypatch.setattr(distributed.Future, "done", lambda self: True)
    with pytest.warns(RuntimeWarning, match="in this process"):
        total = fold(as_chunks(shards, rows=5), make_of(), client=few, callback=lose)
    assert_near(total, oracle(data[0]))


def test_nothing_is_fetched_that_is_under_way(data, shards, few, monkeypatch):
    """If a fetch is cut short, ``distributed`` may fail in all that follow."""
    result, ended = distributed.Future.result, []

    def asked(self, timeout=None):
        ended.append(self.done())
        return result(self, timeout)

    monkeypatch.setattr(distributed.Future, "result", asked)
    assert_near(fold(as_chunks(shards, rows=5), make_of(), client=few), oracle(data[0]))
    assert ended
    assert all(ended)


def test_a_wait_that_ends_without_a_result_is_repeated(data, shards, few, monkeypatch):
    """On a busy machine ``distributed`` may return from a wait without result and without error."""
    result, failed = distributed.Future.result, []

    def unbound(self, timeout=None):
        if not failed:
            failed.append(timeout)
            raise UnboundLocalError("cannot access local variable 'result'")
        return result(self, timeout)

    monkeypatch.setattr(distributed.Future, "result", unbound)
    assert_near(fold(as_chunks(shards, rows=5), make_of(), client=few), oracle(data[0]))
    assert failed


def test_a_wave_that_is_always_dropped_is_an_error(shards, few, monkeypatch):
    tree = dask._Cluster.tree

    def dropped(self, wave):
        task = tree(self, wave)
        few.cancel(task)
        return task

    monkeypatch.setattr(dask._Cluster, "tree", dropped)
    with pytest.raises(distributed.CancelledError, match="cancelled"):
        fold(as_chunks(shards, rows=5), make_of(), client=few)


@pytest.mark.parametrize("kind", ["shards", "array"])
def test_without_workers_waves_are_summed_here(data, shards, few, kind):
    """The client is the default one, to which Dask would send what is computed here."""
    source = as_chunks(shards if kind == "shards" else da.from_array(data[0], (5, -1)), rows=5)
    lose, lost = once(lambda: few.cluster.scale(0)), "no worker for 0.5 seconds: .* in this process"
    with pytest.warns(RuntimeWarning, match=lost):
        assert_near(fold(source, make_of(), client=few, callback=lose), oracle(data[0]))
    with pytest.warns(RuntimeWarning, match=lost):  # the next pass of a fit has no workers at all
        assert_near(fold(source, make_of(), client=few), oracle(data[0]))
    few.cluster.scale(1)
    few.wait_for_workers(1, timeout=20)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert_near(fold(source, make_of(), client=few), oracle(data[0]))


def test_workers_may_leave_between_two_sums(data, shards, few):
    fold(as_chunks(shards, rows=5), make_of(), client=few)
    few.cluster.scale(0)
    with pytest.warns(RuntimeWarning, match="summed in this process"):
        total = fold(as_chunks(shards, rows=5), make_of(), client=few)
    assert_near(total, oracle(data[0]))


def test_a_cluster_that_has_no_workers_yet_is_waited_for(data, shards, few, recwarn):
    few.cluster.scale(0)
    deadline = time.monotonic() + 20
    while few.nthreads() and time.monotonic() < deadline:
        time.sleep(0.05)
    start = threading.Timer(1.5, lambda: few.cluster.scale(1))
    start.start()
    total = fold(as_chunks(shards, rows=5), make_of(), client=few)
    start.join()
    assert_near(total, oracle(data[0]))
    assert not [w for w in recwarn if w.category is RuntimeWarning]
