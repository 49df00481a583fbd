"""Whatever the data lie in, their chunks are the whole."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file

from hilbin.images import HOG
from hilbin.stream import ChunkError, ImageChunks, as_chunks, fold
from hilbin.stream.sources import ArraySource, Joined

N, D = 53, 6


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)).astype(np.float32) * (rng.uniform(size=(N, D)) < 0.6)
    X[:, 0] = np.arange(N)
    return X.astype(np.float32), rng.integers(0, 3, N), rng.uniform(0.5, 2, N)


def whole(chunks):
    """All chunks as three arrays, after looking at how they follow each other."""
    parts = list(chunks)
    begins = np.cumsum([0, *(chunk.X.shape[0] for chunk in parts)])
    assert [chunk.begin for chunk in parts] == begins[:-1].tolist()
    assert chunks.n_rows in (None, begins[-1])
    assert all(chunk.X.dtype == chunks.dtype and chunk.source for chunk in parts)
    X = [c.X.toarray() if sp.issparse(c.X) else c.X for c in parts]
    others = ([getattr(c, name) for c in parts] for name in ("y", "weight"))
    return np.concatenate(X), *(None if v[0] is None else np.concatenate(v) for v in others)


def assert_same(chunks, X, y=None, weight=None):
    assert chunks.n_features == X.shape[1]
    for _ in range(2):  # again and again
        for got, wanted in zip(whole(chunks), (X, y, weight), strict=True):
            if wanted is None:
                assert got is None
            else:
                np.testing.assert_array_equal(got, wanted)
    later = next(chunks.unread(1)).read()
    assert later.begin == next(iter(chunks)).X.shape[0]
    first = later.X[[0]].toarray() if sp.issparse(later.X) else later.X[:1]
    np.testing.assert_array_equal(first[0], X[later.begin])


@pytest.mark.parametrize("rows", [1, 7, 52])
def test_arrays(data, rows):
    X, y, weight = data
    assert_same(as_chunks(X, y, weight, rows=rows), X, y, weight)
    assert_same(as_chunks(X.tolist(), rows=rows), X)
    assert_same(as_chunks(sp.csc_matrix(X), y, rows=rows), X, y)


def test_labels_may_be_text_or_many(data):
    X, y, _ = data
    names = np.array(["cat", "dog", "axolotl"])[y]
    assert_same(as_chunks(X, list(names), rows=9), X, names)
    assert_same(as_chunks(X, np.c_[y, y], rows=9), X, np.c_[y, y])


def test_a_memory_map_is_copied(data, tmp_path):
    X, *_ = data
    np.save(tmp_path / "X.npy", X)
    chunks = as_chunks(np.load(tmp_path / "X.npy", mmap_mode="r"), rows=9)
    assert_same(chunks, X)
    assert not isinstance(next(iter(chunks)).X, np.memmap)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f4", ">f8", "u1", "?"])
def test_npy(data, tmp_path, order, dtype):
    X = np.abs(data[0]).astype(dtype, order=order)
    np.save(tmp_path / "rows.npy", X)
    assert_same(as_chunks(tmp_path / "rows.npy", rows=10), X)
    assert as_chunks(tmp_path / "rows.npy").dtype.isnative
    assert_same(as_chunks(str(tmp_path / "rows.npy"), data[1], rows=10), X, data[1])


def test_targets_in_files(data, tmp_path):
    X, y, weight = data
    for name, values in (("rows", X), ("labels", y), ("w", weight)):
        np.save(tmp_path / f"{name}.npy", values)
    paths = [tmp_path / f"{name}.npy" for name in ("rows", "labels", "w")]
    assert_same(as_chunks(*paths, rows=10), X, y, weight)


def write_shards(folder, X, y=None, cuts=(5, 6, 30)):
    for i, (rows, labels) in enumerate(
        zip(np.split(X, cuts), np.split(X[:, 0] if y is None else y, cuts), strict=True)
    ):
        np.save(folder / f"X_{i + 8}.npy", rows)
        if y is not None:
            np.save(folder / f"y_{i + 8}.npy", labels)


def test_shards_are_one_table_in_the_order_of_their_numbers(data, tmp_path):
    X, y, weight = data
    write_shards(tmp_path, X, y)  # X_8 to X_11
    np.save(tmp_path / "weight.npy", weight)
    chunks = as_chunks(tmp_path, rows=10)
    assert_same(chunks, X, y, weight)
    assert [chunk.X.shape[0] for chunk in chunks] == [10] * 5 + [3]
    files = sorted(tmp_path.glob("X*"), key=lambda p: int(p.stem[2:]))
    assert_same(as_chunks(files, y, rows=10), X, y)


def test_one_file_of_targets_for_all_shards(data, tmp_path):
    X, y, _ = data
    write_shards(tmp_path, X)
    np.save(tmp_path / "y.npy", y)
    assert_same(as_chunks(tmp_path, rows=10), X, y)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(data, tmp_path, save):
    X, y, weight = data
    save(tmp_path / "all.npz", X=X, y=y, sample_weight=weight)
    assert_same(as_chunks(tmp_path / "all.npz", rows=10), X, y, weight)
    save(tmp_path / "all.npz", X)
    assert_same(as_chunks(tmp_path, rows=10), X)
    (tmp_path / "all.npz").unlink()
    save(tmp_path / "a.npz", X=X[:20], y=y[:20])
    save(tmp_path / "b.npz", X=X[20:], y=y[20:])
    assert_same(as_chunks(tmp_path, rows=12), X, y)


@pytest.mark.parametrize("compressed", [True, False])
def test_sparse_npz(data, tmp_path, compressed):
    X, y, _ = data
    for i, rows in enumerate(np.split(X, [11])):
        sp.save_npz(tmp_path / f"X_{i}.npz", sp.csr_array(rows), compressed=compressed)
    np.save(tmp_path / "y.npy", y)
    chunks = as_chunks(tmp_path, rows=10)
    assert_same(chunks, X, y)
    assert all(chunk.X.format == "csr" for chunk in chunks)


def test_zarr(data, tmp_path):
    zarr = pytest.importorskip("zarr")
    X, y, weight = data
    group = zarr.open_group(tmp_path / "all.zarr", mode="w")
    for name, values in (("X", X), ("y", y), ("weight", weight)):
        group.create_array(name, data=values, chunks=(8, *values.shape[1:]))
    for source in (tmp_path / "all.zarr", group):
        assert_same(as_chunks(source, rows=10), X, y, weight)
    assert_same(as_chunks(group["X"], y, rows=10), X, y)
    memory = 4 * 20 * X[0].nbytes / 2**20
    assert next(iter(as_chunks(group["X"], memory=memory))).X.shape[0] == 16  # whole chunks


def write_parquet(path, X, y, *, row_group_size=None, **columns):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    table = {f"f{j}": X[:, j] for j in range(X.shape[1])} | {"label": y} | columns
    pq.write_table(pa.table(table), path, row_group_size=row_group_size)


@pytest.mark.parametrize("row_group_size", [4, 100])
def test_parquet(data, tmp_path, row_group_size):
    X, y, weight = data
    names = np.array(["cat", "dog", "axolotl"])[y]
    for i, part in enumerate((slice(0, 17), slice(17, N))):
        path = tmp_path / f"part-{i}.parquet"
        write_parquet(path, X[part], names[part], w=weight[part], row_group_size=row_group_size)
    options = {"target": "label", "weight": "w", "rows": 10}
    assert_same(as_chunks(tmp_path, **options), X, names, weight)
    assert_same(
        as_chunks([tmp_path / "part-1.parquet"], **options), X[17:], names[17:], weight[17:]
    )
    assert_same(as_chunks(tmp_path, features=["f2", "f0"], rows=10), X[:, [2, 0]])


def test_parquet_in_folders_of_classes(data, tmp_path):
    X, *_ = data
    for name, part in (("cat", slice(0, 17)), ("dog", slice(17, N))):
        (tmp_path / f"kind={name}").mkdir()
        write_parquet(tmp_path / f"kind={name}" / "0.parquet", X[part], X[part, 0])
    wanted = np.repeat(["cat", "dog"], [17, N - 17])
    assert_same(
        as_chunks(tmp_path, target="kind", features=["f0", "f1"], rows=10), X[:, :2], wanted
    )


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("name", ["data.svm", "no_extension"])
def test_svmlight(data, tmp_path, zero_based, name):
    X, y, _ = data
    X = X.astype(np.float64).round(3)  # the file has fewer digits than doubles
    path = tmp_path / name
    dump_svmlight_file(X, y, str(path), zero_based=zero_based, comment="one\ntwo")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:9], "\n", "# a remark\n", *lines[9:]]))
    assert_same(as_chunks(path, rows=10), X, y.astype(float))


def test_svmlight_many_lines_and_files(tmp_path):
    X = np.arange(1, 1801.0)[:, None] * [1, 0, 1]
    for i, rows in enumerate(np.split(X, [700])):
        dump_svmlight_file(
            rows[:, : 3 - i], rows[:, 0], str(tmp_path / f"{i}.svm"), zero_based=False
        )
    X[700:, 2] = 0
    assert_same(as_chunks(tmp_path, rows=300), X, X[:, 0])
    wide = as_chunks(tmp_path / "1.svm", n_features=5, rows=300)
    assert_same(wide, np.pad(X[700:], ((0, 0), (0, 2))), X[700:, 0])


class Iterable:
    def __init__(self, chunks):
        self.chunks = chunks

    def __iter__(self):
        return iter(self.chunks)


def test_iterables(data):
    X, y, weight = data
    cuts = [(X[i : i + 20], y[i : i + 20], weight[i : i + 20]) for i in range(0, N, 20)]
    assert_same(as_chunks(cuts), X, y, weight)
    assert_same(as_chunks(Iterable([chunk[:2] for chunk in cuts])), X, y)
    assert_same(as_chunks(Iterable([sp.csr_array(chunk[0]) for chunk in cuts])), X)
    assert as_chunks(cuts).n_rows is None
    with pytest.raises(ValueError, match="only once"):
        as_chunks(chunk for chunk in cuts)


def test_images(tmp_path):
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    paths, pictures = [], rng.integers(0, 256, (7, 32, 32), dtype=np.uint8)
    for i, picture in enumerate(pictures):
        paths.append(tmp_path / f"{i}.png")
        image.fromarray(picture).save(paths[-1])
    paths[3].write_bytes(b"no image")
    kept = [0, 1, 2, 4, 5, 6]
    transformer = HOG().fit(pictures)
    chunks = ImageChunks(paths, list("abcdefg"), transformer, rows=2)
    parts = list(chunks)
    np.testing.assert_array_equal(
        np.concatenate([c.X for c in parts]), transformer.transform(pictures[kept])
    )
    assert "".join(np.concatenate([c.y for c in parts])) == "abcefg"
    assert [c.begin for c in parts] == [0, 2, 4, 6]
    assert chunks.n_rows is None
    before = chunks.fingerprint()
    assert chunks.fingerprint() == before
    done = []
    with pytest.warns(UserWarning, match=r"1 of 7 rows are not in the sum: .*3\.png"):
        count = fold(chunks, lambda c: c.X.shape[0], callback=lambda *rows: done.append(rows))
    assert count == 6
    assert done[-1] == (7, 7)
    paths[0].write_bytes(b"another")
    assert chunks.fingerprint() != before


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6), st.data())
def test_any_range_of_joined_sources_is_that_of_the_whole(sizes, draw):
    parts = [np.arange(n)[:, None] + 100 * i for i, n in enumerate(sizes)]
    table = Joined([ArraySource(part) for part in parts])
    rows = np.concatenate(parts)
    begin = draw.draw(st.integers(0, len(rows)))
    end = draw.draw(st.integers(begin, len(rows)))
    got = [piece.read().X for piece in table.pieces(begin, end)]
    np.testing.assert_array_equal(np.concatenate([rows[:0], *got]), rows[begin:end])


def test_chunks_fit_the_memory(data):
    X, *_ = data
    memory = 4 * 10 * X[0].nbytes / 2**20
    assert [c.X.shape[0] for c in as_chunks(X, memory=memory)] == [10] * 5 + [3]
    assert [c.X.shape[0] for c in as_chunks(X, memory=1e-9)] == [1] * N
    assert len(list(as_chunks(X))) == 1
    for wrong in ({"memory": 0}, {"rows": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            as_chunks(X, **wrong)


def test_fingerprints_tell_data_apart(data, tmp_path):
    X, y, _ = data
    np.save(tmp_path / "X.npy", X)
    seen = [as_chunks(*source).fingerprint() for source in ((X,), (X, y), (X + 1,), (X[:9],))]
    seen += [as_chunks(X, rows=7).fingerprint(), as_chunks(tmp_path / "X.npy").fingerprint()]
    seen += [as_chunks(sp.csr_array(X)).fingerprint(), as_chunks([X]).fingerprint()]
    assert all(a != b for i, a in enumerate(seen) for b in seen[:i])
    assert as_chunks(X, y).fingerprint() == as_chunks(X.copy(), y).fingerprint()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (np.zeros(3), "two-dimensional"),
        (np.zeros((2, 2), complex), "not numbers"),
        ([], "two-dimensional"),
        ("no/such/place", "there is no such file"),
        (iter([]), "only once"),
        (Iterable([]), "no chunks"),
        ([(np.eye(2), [1])], "2 rows and 1 targets"),
        ([(np.eye(2), [1, 2], [1], 3)], "tuple of 4"),
    ],
)
def test_what_is_no_data(source, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        as_chunks(source)


def test_lengths_must_agree(data, tmp_path):
    X, y, weight = data
    with pytest.raises(ValueError, match="y: has 52 rows, while X has 53"):
        as_chunks(X, y[1:])
    with pytest.raises(ValueError, match="own targets"):
        as_chunks(as_chunks(X), y)
    with pytest.raises(ValueError, match="bring their targets"):
        as_chunks([X], y)
    with pytest.raises(ChunkError, match="is -1"):
        list(as_chunks(X, y, -(weight > 0).astype(int)))
    (tmp_path / "notes.txt").write_text("hello, world")
    for where in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(ValueError, match=str(where)):
            as_chunks(where)


@pytest.mark.parametrize("module", ["zarr", "pyarrow"])
def test_a_missing_package_is_named(tmp_path, monkeypatch, module):
    paths = {"zarr": tmp_path / "x.zarr", "pyarrow": tmp_path / "x.parquet"}
    paths["zarr"].mkdir()
    (paths["zarr"] / "zarr.json").write_text("{}")
    paths["pyarrow"].write_text("")
    for name in [n for n in sys.modules if n.partition(".")[0] == module]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf'needs {module}: pip install "hilbin\[stream\]"'):
        as_chunks(paths[module])
