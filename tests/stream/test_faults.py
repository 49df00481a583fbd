"""What is wrong with data is said with the name of the file and of the rows."""

import errno

import numpy as np
import pytest
import scipy.sparse as sp

from hilbin import files
from hilbin.stream import ChunkError, as_chunks, fold


def gram(chunk):
    return chunk.X.T.astype(float) @ chunk.X.astype(float)


@pytest.fixture
def shards(tmp_path):
    rng = np.random.default_rng(0)
    folder = tmp_path / "shards"
    folder.mkdir()
    for i in range(5):
        np.save(folder / f"X_{i}.npy", rng.normal(size=(20, 4)))
    return folder


def of_all(shards):
    return fold(as_chunks(shards, rows=10), gram)


def truncate(path, n_bytes):
    path.write_bytes(path.read_bytes()[:-n_bytes])


def test_a_truncated_shard_is_found_before_any_work(shards):
    truncate(shards / "X_3.npy", 33)
    with pytest.raises(ChunkError, match=r"X_3\.npy: is truncated: 33 of 768 bytes are missing"):
        as_chunks(shards)


def test_a_header_cut_off(shards):
    (shards / "X_2.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(ChunkError, match=r"X_2\.npy: is no array of NumPy"):
        as_chunks(shards)


def test_work_before_a_shard_that_shrinks_is_kept_until_it_is_mended(shards, tmp_path):
    wanted = fold(as_chunks(shards, rows=20), gram)
    good = (shards / "X_3.npy").read_bytes()
    chunks = as_chunks(shards, rows=20)
    truncate(shards / "X_3.npy", 33)
    where = tmp_path / "checkpoint"
    with pytest.raises(ChunkError, match=r"X_3\.npy, rows 0 to 19: cannot be read.*33 bytes"):
        fold(chunks, gram, checkpoint=where)
    (shards / "X_3.npy").write_bytes(good)
    done = []
    total = fold(
        as_chunks(shards, rows=20), gram, checkpoint=where, callback=lambda *r: done.append(r)
    )
    np.testing.assert_array_equal(total, wanted)
    assert done[0] == (60, 100)
    assert done[-1] == (100, 100)


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite(shards, tmp_path, value, n_jobs):
    wanted, X = of_all(shards), np.load(shards / "X_4.npy")
    bad = X.copy()
    bad[13, 2] = value
    np.save(shards / "X_4.npy", bad)
    where = tmp_path / "checkpoint"
    message = rf"X_4\.npy, rows 10 to 19: feature 2 of row 13 is {value}"
    with pytest.raises(ChunkError, match=message):
        fold(as_chunks(shards, rows=10), gram, checkpoint=where, n_jobs=n_jobs)
    assert (where / "sum.npz").exists()
    (shards / "X_4.npy").unlink()
    with pytest.raises(ValueError, match="X was"):  # chunks of this file are in the sum
        fold(as_chunks(shards, rows=10), gram, checkpoint=where)
    np.save(shards / "X_4.npy", X)
    np.testing.assert_array_equal(of_all(shards), wanted)


def test_large_finite_values_are_no_fault():
    X = np.full((4, 3), np.finfo(np.float32).max)
    assert fold(as_chunks(X.astype(np.float32)), lambda c: c.X.shape[0]) == 4


def test_sparse_values_and_targets_that_are_not_finite():
    X = sp.random_array((30, 5), density=0.5, format="csr", rng=0)
    y = np.zeros(30)
    place = int(X.indptr[17])
    X.data[place] = np.nan
    with pytest.raises(ChunkError, match=f"rows 10 to 19: feature {X.indices[place]} of row 17"):
        list(as_chunks(X, rows=10))
    y[21] = np.nan
    with pytest.raises(ChunkError, match="y, rows 20 to 29: value of row 21 is nan"):
        list(as_chunks(np.ones((30, 2)), y, rows=10))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (np.ones((20, 5)), r"X_4\.npy: has 5 columns, while .*X_0\.npy has 4"),
        (
            np.ones((20, 4), int),
            r"X_4\.npy: has values of type int64, while .*X_0\.npy has float64",
        ),
        (np.ones(20), r"X_4\.npy: has one value a row"),
        (np.ones((20, 2, 2)), r"X_4\.npy: has shape"),
        (np.full((20, 4), "a"), r"X_4\.npy: has values of type <U1, not numbers"),
        (np.full((20, 4), None), r"X_4\.npy: holds Python objects"),
    ],
)
def test_a_shard_unlike_the_others(shards, other, message):
    np.save(shards / "X_4.npy", other, allow_pickle=True)
    with pytest.raises(ChunkError, match=message):
        as_chunks(shards)


def test_single_among_double_precision_is_taken(shards):
    np.save(shards / "X_4.npy", np.load(shards / "X_4.npy").astype(np.float32))
    assert as_chunks(shards).dtype == np.float64
    assert {chunk.X.dtype for chunk in as_chunks(shards, rows=10)} == {np.dtype(float)}


def test_targets_that_do_not_fit_their_shard(shards):
    for i in range(5):
        np.save(shards / f"y_{i}.npy", np.zeros(20 - (i == 2)))
    with pytest.raises(ChunkError, match=r"y_2\.npy: has 19 rows, while .*X_2\.npy has 20"):
        as_chunks(shards)
    (shards / "y_2.npy").unlink()
    with pytest.raises(ChunkError, match="5 files of rows and 4 of targets"):
        as_chunks(shards)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_damaged_npz(tmp_path, save):
    path = tmp_path / "a.npz"
    save(path, X=np.random.default_rng(0).normal(size=(5000, 3)), y=np.zeros(5000))
    whole = path.read_bytes()
    if save is np.savez_compressed:
        middle = len(whole) // 2
        path.write_bytes(whole[:middle] + bytes(99) + whole[middle + 99 :])
        with pytest.raises(ChunkError, match=r"a\.npz\[X\], rows 0 to 4999: cannot be read"):
            list(as_chunks(path))
    path.write_bytes(whole[:-40])
    with pytest.raises(ChunkError, match=r"a\.npz: is no whole \.npz file"):
        as_chunks(path)
    save(path, Z=np.zeros((3, 3)), W=np.zeros(3))
    with pytest.raises(ChunkError, match=r"has no array X; it has Z, W"):
        as_chunks(path)


def test_damaged_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    def write(name, **columns):
        pq.write_table(pa.table(columns), tmp_path / name)

    write("0.parquet", a=[1.0, 2.0], b=[1.0, 2.0])
    write("1.parquet", a=[1.0, 2.0])
    with pytest.raises(ChunkError, match=r"1\.parquet: has no column b"):
        as_chunks(tmp_path)
    write("1.parquet", a=[1.0, 2.0], b=[1.0, 2.0], c=[1.0, 2.0])
    with pytest.raises(ChunkError, match=r"1\.parquet: has a column c"):
        as_chunks(tmp_path)
    write("1.parquet", a=[1, 2], b=[1.0, 2.0])
    with pytest.raises(ChunkError, match=r"1\.parquet: column a has values of type int64"):
        as_chunks(tmp_path)
    write("1.parquet", a=[1.0, None], b=[1.0, 2.0])
    with pytest.raises(ChunkError, match=r"1\.parquet: column a of row 1 has no value"):
        list(as_chunks(tmp_path))
    truncate(tmp_path / "1.parquet", 5)
    with pytest.raises(ChunkError, match=r"1\.parquet.*is no "):
        as_chunks(tmp_path)
    write("1.parquet", a=["x", "y"], b=[1.0, 2.0])
    with pytest.raises(ChunkError, match=r"column a holds .*string, not numbers: name the target"):
        as_chunks(tmp_path / "1.parquet")
    with pytest.raises(ChunkError, match="has no column 'z'; it has a, b"):
        as_chunks(tmp_path / "1.parquet", target="z")


def test_damaged_svmlight(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:2\n" * 25 + "1 2:two\n")
    with pytest.raises(ChunkError, match=r"a\.svm, rows 20 to 25: cannot be read"):
        list(as_chunks(path, rows=20))
    path.write_text("1 1:2\n" * 25 + "1 2:nan\n")
    with pytest.raises(ChunkError, match=r"a\.svm, rows 20 to 25: feature 1 of row 25 is nan"):
        list(as_chunks(path, rows=20))
    with pytest.raises(ChunkError, match=r"a\.svm: has 2 features, but n_features is 1"):
        as_chunks(path, n_features=1)
    chunks = as_chunks(path, rows=20)
    truncate(path, 20)
    with pytest.raises(ChunkError, match=r"a\.svm, rows 0 to 19: .* 20 bytes too early"):
        list(chunks)


def test_chunks_of_an_iterable_are_numbered():
    for bad, message in (
        (np.ones((2, 4)), "chunk 1: has 4 columns, while chunk 0 has 3"),
        (np.ones((2, 3), int), "chunk 1: has values of type int64"),
        (np.array([[0, np.nan, 0.0]]), "chunk 1, rows 0 to 0: feature 1 of row 0 is nan"),
        ((np.ones((2, 3)), None, [1, -1.0]), "chunk 1: the weight of its row 1 is -1.0"),
    ):
        with pytest.raises(ChunkError, match=message):
            fold([np.ones((2, 3)), bad], gram)


def test_a_full_disk_leaves_the_earlier_checkpoint(shards, tmp_path, monkeypatch):
    wanted, where = of_all(shards), tmp_path / "checkpoint"
    written = []
    sync = files.os.fsync

    def full(number):
        if len(written) >= 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(number)
        sync(number)

    monkeypatch.setattr(files.os, "fsync", full)
    message = r"checkpoint of 4 chunks cannot be written \(that of 3 chunks is kept\): No space"
    with pytest.raises(OSError, match=message) as caught:
        fold(as_chunks(shards, rows=10), gram, checkpoint=where, every=0)
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(where / "sum.npz")
    assert [path.name for path in where.iterdir()] == ["sum.npz"]
    monkeypatch.undo()
    done = []
    total = fold(
        as_chunks(shards, rows=10), gram, checkpoint=where, callback=lambda *r: done.append(r)
    )
    np.testing.assert_array_equal(total, wanted)
    assert done[0] == (30, 100)
