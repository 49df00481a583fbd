"""Sums over chunks: the same whatever the chunks, the threads and the interruptions."""

import json
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilbin.stream import CheckpointError, as_chunks, fold
from hilbin.stream.parts import read_ahead


class Sums:
    """Rows and their sum, in two fields that must never come apart."""

    def __init__(self, n, total):
        self.n, self.total = n, total

    @classmethod
    def of(cls, chunk):
        return cls(chunk.X.shape[0], chunk.X.sum(axis=0))

    def __add__(self, other):
        return Sums(self.n + other.n, self.total + other.total)

    def __iadd__(self, other):
        self.n += other.n
        self.total += other.total
        return self

    def state(self):
        return {"n": np.array(self.n), "file": self.total}

    @classmethod
    def from_state(cls, state):
        return cls(int(state["n"]), state["file"])


def gram(chunk):
    return chunk.X.T @ chunk.X


@given(st.integers(1, 40), st.integers(1, 50), st.sampled_from([1, 2, 5]))
def test_chunks_and_threads_change_rounding_at_most(n, rows, n_jobs):
    X = np.random.default_rng(n).normal(size=(n, 3))
    total = fold(as_chunks(X, rows=rows), gram, n_jobs=n_jobs)
    np.testing.assert_allclose(total, X.T @ X, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(total, fold(as_chunks(X, rows=rows), gram, n_jobs=n_jobs))


def test_threads_change_nothing(monkeypatch):
    X = np.random.default_rng(0).normal(size=(500, 8))
    chunks = as_chunks(X, rows=7)
    wanted = sum((gram(chunk) for chunk in chunks), np.zeros((8, 8)))
    for n_jobs in (1, 2, 4):
        np.testing.assert_array_equal(fold(chunks, gram, n_jobs=n_jobs), wanted)


def test_what_is_summed_is_left_alone():
    X = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(fold(as_chunks(X, rows=1), lambda c: c.X), [[6, 9]])
    np.testing.assert_array_equal(X, np.arange(6.0).reshape(3, 2))


def test_numbers_arrays_and_objects():
    X = np.arange(10.0).reshape(5, 2)
    assert fold(X, lambda c: c.X.shape[0]) == 5
    assert fold(X, lambda c: {*c.X[:, 0]} and float(c.X.sum())) == 45
    sums = fold(as_chunks(X, rows=2), Sums.of)
    assert (sums.n, sums.total.tolist()) == (5, [20, 25])
    with pytest.raises(ValueError, match="no rows"):
        fold(X[:0], Sums.of)


def test_progress():
    done = []
    fold(as_chunks(np.ones((5, 1)), rows=2), Sums.of, callback=lambda *rows: done.append(rows))
    assert done == [(2, 5), (4, 5), (5, 5)]
    done.clear()
    fold([np.ones((2, 1)), np.ones((3, 1))], Sums.of, callback=lambda *rows: done.append(rows))
    assert done == [(2, None), (5, None)]


def test_reading_is_ahead_and_bounded():
    read, threads = [], set()

    def items():
        for i in range(20):
            threads.add(threading.current_thread())
            read.append(i)
            yield i

    for i in read_ahead(items()):
        assert len(read) <= i + 3
    assert read == list(range(20))
    assert threading.current_thread() not in threads
    assert not any(thread.is_alive() for thread in threads)


def test_few_chunks_are_alive_at_a_time():
    alive = []

    class Big(np.ndarray):
        def __del__(self):
            alive.remove(id(self))

    class Iterable:
        def __iter__(self):
            for _ in range(30):
                chunk = np.ones((2, 2)).view(Big)
                alive.append(id(chunk))
                yield chunk
                del chunk

    most = []

    def count(chunk):
        most.append(len(alive))
        return 1

    assert fold(Iterable(), count) == 30
    assert max(most) <= 5


def test_an_error_of_the_summand_ends_it():
    def fail(chunk):
        if chunk.begin == 6:
            raise RuntimeError("at row 6")
        return 1

    for n_jobs in (1, 2):
        with pytest.raises(RuntimeError, match="at row 6"):
            fold(as_chunks(np.ones((100, 1)), rows=2), fail, n_jobs=n_jobs)
    names = {thread.name for thread in threading.enumerate()}
    assert not any(name.startswith("hilbin") for name in names)


class StoppedError(RuntimeError):
    pass


def stop_at(row):
    def callback(rows, n_rows):
        if rows >= row:
            raise StoppedError

    return callback


@pytest.mark.parametrize("of", [Sums.of, gram, lambda c: float(c.X.sum())])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_resumed_is_the_same_to_the_last_bit(tmp_path, of, n_jobs):
    chunks = as_chunks(np.random.default_rng(0).normal(size=(100, 3)), rows=7)
    wanted = fold(chunks, of)
    for row in (1, 8, 50, 90):
        with pytest.raises(StoppedError):
            fold(chunks, of, checkpoint=tmp_path / "c", n_jobs=n_jobs, callback=stop_at(row))
    seen = []

    def counting(chunk):
        seen.append(chunk.begin)
        return of(chunk)

    total = fold(chunks, counting, key={"of": of.__qualname__}, checkpoint=tmp_path / "c")
    assert seen == [91, 98]
    got, want = (v.state() if isinstance(v, Sums) else {"": v} for v in (total, wanted))
    for name in want:
        np.testing.assert_array_equal(got[name], want[name])
    assert not (tmp_path / "c").exists()


def test_a_kept_sum_is_not_computed_again(tmp_path):
    X = np.arange(10.0).reshape(5, 2)
    (tmp_path / "other").touch()
    first = fold(as_chunks(X, rows=2), Sums.of, checkpoint=tmp_path, keep=True)
    calls = []

    def of(chunk):
        calls.append(chunk)
        return Sums.of(chunk)

    chunks = as_chunks(X, rows=2)
    again = fold(chunks, of, key={"of": Sums.of.__qualname__}, checkpoint=tmp_path, keep=True)
    assert again.total.tolist() == first.total.tolist()
    assert len(calls) == 1  # to know what kind of sum it is
    assert sorted(p.name for p in tmp_path.iterdir()) == ["other", "sum.npz"]


def test_stopped_after_the_last_chunk(tmp_path):
    chunks = as_chunks(np.ones((6, 2)), rows=2)
    with pytest.raises(StoppedError):
        fold(chunks, Sums.of, checkpoint=tmp_path, callback=stop_at(6))
    assert fold(chunks, Sums.of, checkpoint=tmp_path).n == 6
    for number in (2.0, 2, np.float32(2)):
        with pytest.raises(StoppedError):
            fold(chunks, lambda c, n=number: n, key={}, checkpoint=tmp_path, callback=stop_at(6))
        total = fold(chunks, lambda c, n=number: n, key={}, checkpoint=tmp_path)
        assert (total, type(total)) == (6, type(number))


def test_iterables_resume_too(tmp_path):
    chunks = [np.full((i + 1, 2), float(i)) for i in range(6)]
    with pytest.raises(StoppedError):
        fold(chunks, Sums.of, checkpoint=tmp_path, callback=stop_at(6))
    done = []
    total = fold(chunks, Sums.of, checkpoint=tmp_path, callback=lambda *r: done.append(r[0]))
    assert (total.n, done) == (21, [6, 10, 15, 21])


def test_ctrl_c_never_leaves_half_an_addition(tmp_path):
    class Fragile(Sums):
        def __iadd__(self, other):
            self.n += other.n
            if self.n == 6:
                signal.raise_signal(signal.SIGINT)
            self.total = self.total + other.total
            return self

    chunks = as_chunks(np.ones((10, 2)), rows=2)
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        fold(chunks, Fragile.of, checkpoint=tmp_path, key={})
    assert signal.getsignal(signal.SIGINT) is handler
    with np.load(tmp_path / "sum.npz") as saved:
        assert (saved["=n"], saved["=file"].tolist()) == (6, [6, 6])
    total = fold(chunks, Sums.of, checkpoint=tmp_path, key={})
    assert (total.n, total.total.tolist()) == (10, [10, 10])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.ones((10, 3))}, r"data\.X\[0\]\.digest was"),
        ({"X": np.zeros((10, 2))}, r"data\.n_features was 3 and is 2"),
        ({"rows": 3}, "rows per chunk was 2 and is 3"),
        ({"y": np.zeros(10)}, r"data\.y was None"),
        ({"key": {"gamma": 2.0, "map": np.arange(3)}}, r"key\.gamma was 1\.0 and is 2\.0"),
        ({"key": {"gamma": 1.0, "map": np.arange(4)}}, r"key\.map was 'ndarray .* and is 'ndarray"),
        ({"key": None}, r"key\.of was None and is 'Sums\.of'"),
    ],
)
def test_another_sum_is_refused(tmp_path, change, message):
    given = {"X": np.zeros((10, 3)), "y": None, "rows": 2}
    key = {"gamma": 1.0, "map": np.arange(3)}
    options = {"of": Sums.of, "checkpoint": tmp_path}

    def chunks(X, y, rows):
        return as_chunks(X, y, rows=rows)

    with pytest.raises(StoppedError):
        fold(chunks(**given), **options, key=key, callback=stop_at(4))
    before = (tmp_path / "sum.npz").read_bytes()
    key = change.pop("key", key)
    with pytest.raises(CheckpointError, match=message):
        fold(chunks(**given | change), **options, key=key)
    assert (tmp_path / "sum.npz").read_bytes() == before


def test_a_damaged_checkpoint_is_named(tmp_path):
    for content in (b"", b"PK nothing", b"\x80\x04."):
        (tmp_path / "sum.npz").write_bytes(content)
        with pytest.raises(CheckpointError, match=r"sum\.npz is damaged"):
            fold(np.ones((3, 1)), Sums.of, checkpoint=tmp_path)


KILLED = """
import json, os, random, signal, sys, time
import numpy as np
from hilbin.stream import as_chunks, fold

folder, where, result = sys.argv[1:]

def gram(chunk):
    time.sleep(0.004)
    return chunk.X.T @ chunk.X

def job():
    total = fold(as_chunks(folder, rows=5), gram, checkpoint=where, every=0)
    np.save(result, total)

reached = []
for _ in range(10):
    child = os.fork()
    if child == 0:
        job()
        os._exit(0)
    time.sleep(random.uniform(0.02, 0.15))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL, status
    if os.path.exists(where + "/sum.npz"):
        with np.load(where + "/sum.npz") as saved:
            reached.append(json.loads(saved["about"].tobytes())["progress"][0])
job()
print(json.dumps(reached))
"""


def test_killed_ten_times(tmp_path):
    rng = np.random.default_rng(0)
    folder = tmp_path / "shards"
    folder.mkdir()
    for i in range(20):
        np.save(folder / f"X_{i}.npy", rng.normal(size=(50, 16)))
    paths = [str(folder), str(tmp_path / "where"), str(tmp_path / "result.npy")]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, *paths],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    reached = json.loads(done.stdout)
    assert reached == sorted(reached)
    assert 0 < reached[-1] < 200
    wanted = fold(as_chunks(folder, rows=5), gram)
    np.testing.assert_array_equal(np.load(tmp_path / "result.npy"), wanted)
    assert not (tmp_path / "where").exists()


def test_importing_needs_no_extras():
    missing = ("dask", "distributed", "zarr", "pyarrow", "PIL")
    code = f"import sys; sys.modules.update(dict.fromkeys({missing}))\n"
    code += "from hilbin.stream import fold; print(fold([[1.0], [2.0]], lambda c: c.X.sum()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "3.0"


def test_without_dask_the_extra_is_named(monkeypatch):
    for name in [n for n in sys.modules if n.partition(".")[0] == "dask"] + ["dask"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r'needs dask: pip install "hilbin\[stream\]"'):
        fold(np.ones((3, 1)), Sums.of, client=object())
