"""A job that is killed goes on, whatever pass it was in; what is wrong is said by file and rows."""

import errno
import functools
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone

from hilbin import files
from hilbin.estimators import MapRidge, MapRidgeClassifier, StreamPCA
from hilbin.estimators.linear import passes
from hilbin.kernels import Gaussian, Hellinger
from hilbin.maps import AdditiveMap, FourierMap
from hilbin.stream import CheckpointError, ChunkError, as_chunks, fold

SHARDS, PER_SHARD, WIDTH = 8, 42, 6
N = SHARDS * PER_SHARD
ROWS = 7  # of a chunk, so that there are many
CHUNKS = N // ROWS
KILLS = 10

MODELS = {
    "regression": MapRidge(
        FourierMap(Gaussian(0.5), 24),
        alpha=[0.1, 1.0, 10.0],
        alpha_selection="loo",
        n_components=12,
    ),
    "classification": MapRidgeClassifier(
        column_groups=[
            ("left", slice(0, 3), AdditiveMap(Hellinger())),
            ("right", slice(3, 6), FourierMap(Gaussian(0.5), 16)),
        ],
        n_components={"right": 8},
        alpha=[0.1, 1.0, 10.0],
        alpha_selection="loo",
        calibrate_rank=20,
    ),
}
PASSES = {
    "regression": ["survey", "sums", "choice"],
    "classification": ["survey", "components", "sums", "choice", "calibration"],
}

# Checkpoints are written after every chunk instead of every minute. The job runs in children that
# are forked, so that hilbin is imported once; what they report goes into a file at once. A child is
# killed a random time after a random number of reports: so it gets on, however slow the machine is.
KILLED = """
import functools, json, os, pickle, random, signal, sys, time
import numpy as np
from hilbin.estimators.linear import passes
from hilbin.stream import as_chunks

passes.fold = functools.partial(passes.fold, every=0)
folder, where, model, result, rows, kills, most = sys.argv[1:]
rng = random.Random(0)

def job(log):
    def tell(name, done, all_rows):
        os.write(log, (json.dumps([name, done]) + "\\n").encode())
    with open(model, "rb") as file:
        estimator = pickle.load(file).set_params(checkpoint=where)
    estimator.fit(as_chunks(folder, rows=int(rows)), callback=tell)
    np.savez(result, coef=estimator.coef_, intercept=estimator.intercept_)

def attempt(reports):
    log = os.open(where + ".log", os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
    child = os.fork()
    if child == 0:
        job(log)
        os._exit(0)
    if reports is not None:
        while os.pread(log, 1 << 20, 0).count(b"\\n") < reports:
            assert os.waitpid(child, os.WNOHANG) == (0, 0)
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.005))
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert status == (0 if reports is None else signal.SIGKILL), status
    lines = os.pread(log, 1 << 20, 0).decode().splitlines()
    os.close(log)
    return [json.loads(line) for line in lines]

said = [attempt(rng.randrange(int(most))) for _ in range(int(kills))]
print(json.dumps([*said, attempt(None)]))
"""


@pytest.fixture
def shards(tmp_path):
    rng = np.random.default_rng(0)
    folder = tmp_path / "shards"
    folder.mkdir()
    for i in range(SHARDS):
        X = rng.uniform(size=(PER_SHARD, WIDTH))
        np.save(folder / f"X_{i}.npy", X)
        np.save(folder / f"y_{i}.npy", np.floor(3 * X[:, 0] * (1 + X[:, 4]) % 3))
    return folder


@pytest.mark.parametrize("kind", MODELS)
def test_killed_ten_times(shards, tmp_path, kind):
    where, model, result = tmp_path / "where", tmp_path / "model", tmp_path / "result.npz"
    model.write_bytes(pickle.dumps(MODELS[kind]))
    most = len(PASSES[kind]) * CHUNKS // (2 * KILLS)  # so that it is not done before
    arguments = [shards, where, model, result, ROWS, KILLS, most]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert not where.exists()
    wanted = MODELS[kind].fit(as_chunks(shards, rows=ROWS))
    with np.load(result) as found:
        np.testing.assert_allclose(found["coef"], wanted.coef_, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(found["intercept"], wanted.intercept_, rtol=1e-12, atol=1e-12)
    attempts = json.loads(done.stdout)
    assert len(attempts) == KILLS + 1
    resumed_inside = 0
    for name in PASSES[kind]:
        reports = [[rows for n, rows in said if n == name] for said in attempts]
        rows = [r for said in reports for r in said]
        assert rows == sorted(rows)  # no chunk that was reported is summed again
        assert set(rows) == set(range(ROWS, N + 1, ROWS))
        begun = [said[0] for said in reports if said]
        resumed_inside += sum(0 < first < N for first in begun[1:])
    assert resumed_inside > 0


def passes_of(model, chunks):
    """Fit, and the rows that every pass has reported."""
    said = []
    model.fit(chunks, callback=lambda name, done, rows: said.append((name, done)))
    return said


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_value_that_is_not_finite(shards, tmp_path, n_jobs):
    wanted = MapRidge(alpha=2.0).fit(as_chunks(shards, rows=ROWS)).coef_
    where, good = tmp_path / "where", np.load(shards / "X_7.npy")
    bad = good.copy()
    bad[3, 4] = np.nan
    np.save(shards / "X_7.npy", bad)
    model = MapRidge(alpha=2.0, checkpoint=where, n_jobs=n_jobs)
    with pytest.raises(ChunkError, match=r"X_7\.npy, rows 0 to 6: feature 4 of row 3 is nan"):
        model.fit(as_chunks(shards, rows=ROWS))
    np.save(shards / "X_7.npy", good)
    said = passes_of(model, as_chunks(shards, rows=ROWS))
    assert said[0] == ("sums", 7 * PER_SHARD)
    np.testing.assert_allclose(model.coef_, wanted, rtol=1e-12)
    assert not where.exists()


def test_a_shard_that_shrinks_keeps_the_passes_before(shards, tmp_path):
    model = MapRidgeClassifier(FourierMap(Gaussian(0.5), 24), n_components=9)
    wanted = clone(model).fit(as_chunks(shards, rows=ROWS))
    model.set_params(checkpoint=tmp_path / "where")
    shard, chunks = shards / "X_6.npy", as_chunks(shards, rows=ROWS)
    good, times = shard.read_bytes(), os.stat(shard)

    def cut(name, done, rows):
        if name == "sums" and done == 2 * PER_SHARD:
            shard.write_bytes(good[: -PER_SHARD * WIDTH * 8])

    with pytest.raises(ChunkError, match=r"X_6\.npy, rows 0 to 6: cannot be read: .* too early"):
        model.fit(chunks, callback=cut)
    with pytest.raises(ChunkError, match=r"X_6\.npy: is truncated: 2016 of .* bytes are missing"):
        model.fit(shards)
    shard.write_bytes(good)
    with pytest.raises(CheckpointError, match=r"data\.X\[6\]\.time was"):  # the map has seen it
        model.fit(as_chunks(shards, rows=ROWS))
    os.utime(shard, ns=(times.st_atime_ns, times.st_mtime_ns))
    said = passes_of(model, as_chunks(shards, rows=ROWS))
    assert [done for name, done in said if name == "survey"] == [N]
    assert next(done for name, done in said if name == "sums") == 6 * PER_SHARD
    np.testing.assert_allclose(model.coef_, wanted.coef_, rtol=1e-12, atol=1e-12)


def test_a_full_disk_leaves_the_earlier_checkpoint(shards, tmp_path, monkeypatch):
    where = tmp_path / "where"
    model = StreamPCA(3, feature_map=FourierMap(Gaussian(0.5), 24), checkpoint=where)
    wanted = StreamPCA(3, feature_map=FourierMap(Gaussian(0.5), 24)).fit(
        as_chunks(shards, rows=ROWS)
    )
    sync, written = files.os.fsync, []

    def full(number):
        if len(written) == CHUNKS + 10:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(number)
        sync(number)

    monkeypatch.setattr(files.os, "fsync", full)
    monkeypatch.setattr(passes, "fold", functools.partial(fold, every=0))
    message = r"checkpoint of 10 chunks cannot be written \(that of 9 chunks is kept\): No space"
    with pytest.raises(OSError, match=message) as caught:
        model.fit(as_chunks(shards, rows=ROWS))
    assert caught.value.filename == str(where / "sums" / "sum.npz")
    monkeypatch.undo()
    said = passes_of(model, as_chunks(shards, rows=ROWS))
    assert next(done for name, done in said if name == "sums") == 9 * ROWS
    np.testing.assert_allclose(model.components_, wanted.components_, atol=1e-12)
    assert not where.exists()
