"""Look-ups of words, node pairs and k-means against plain NumPy, at every instruction level."""

import importlib

import numpy as np
import oracles
import pytest
import scipy.sparse as sp

from hilbin._core import LEVELS

TOLERANCE = {np.float32: 2e-5, np.float64: 1e-12}


@pytest.fixture(params=LEVELS)
def core(request):
    return importlib.import_module(f"hilbin._core._{request.param}")


def widths(core, dtype):
    """One task, or whole vectors."""
    lanes = core.vector_bytes // np.dtype(dtype).itemsize
    return [1, *(v * lanes for v in range(1, core.most_vectors + 1))]


def made_codes(n, blocks, words, kind, seed=0):
    """Codes as a matrix, and in chunks."""
    codes = np.random.default_rng(seed).integers(0, words, (n, blocks)).astype(kind)
    chunks = np.zeros((-(-blocks // 32), n, 32), kind)
    for b in range(blocks):
        chunks[b // 32, :, b % 32] = codes[:, b]
    return codes, chunks


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("n", "blocks", "words", "kind"),
    [
        (1, 1, 1, np.uint8),
        (7, 5, 3, np.uint8),
        (19, 33, 256, np.uint8),
        (40, 32, 256, np.uint16),
        (23, 70, 1000, np.uint16),
        (0, 40, 4, np.uint8),
    ],
)
def test_look_ups(core, dtype, n, blocks, words, kind):
    rng = np.random.default_rng(1)
    codes, chunks = made_codes(n, blocks, words, kind)
    for width in widths(core, dtype):
        tables = rng.normal(size=(blocks, words, width)).astype(dtype)
        before = rng.normal(size=(n, width)).astype(dtype)
        out = before.copy()
        core.word_scores(chunks, tables, out)
        expected = before + tables[np.arange(blocks), codes].sum(axis=1)
        np.testing.assert_allclose(out, expected, rtol=0, atol=TOLERANCE[dtype] * blocks)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("n", "blocks", "words", "size", "kind"),
    [
        (1, 1, 1, 1, np.uint8),
        (7, 5, 3, 3, np.uint8),
        (300, 65, 256, 8, np.uint8),
        (40, 32, 67, 5, np.uint16),
        (23, 70, 1000, 2, np.uint16),
        (0, 40, 4, 21, np.uint8),
    ],
)
def test_scores_and_sums_of_coded_rows(core, dtype, n, blocks, words, size, kind):
    rng = np.random.default_rng(2)
    codes, chunks = made_codes(n, blocks, words, kind)
    book = rng.normal(size=(blocks, words, size)).astype(dtype)
    X = book[np.arange(blocks), codes].reshape(n, blocks * size)
    columns = np.ascontiguousarray(book.swapaxes(1, 2))
    for width in widths(core, dtype):
        weights = rng.normal(size=(blocks, size, width)).astype(dtype)
        before = rng.normal(size=(n, width)).astype(dtype)
        out = before.copy()
        core.coded_scores(chunks, columns, weights, out)
        expected = before + X @ weights.reshape(-1, width)
        np.testing.assert_allclose(out, expected, rtol=0, atol=TOLERANCE[dtype] * X.shape[1])

        slopes = rng.normal(size=(n, width)).astype(dtype)
        slopes[::3] = 0
        sums = weights.copy()
        core.coded_sums(chunks, slopes, columns, sums)
        expected = weights + (X.T @ slopes).reshape(sums.shape)
        np.testing.assert_allclose(sums, expected, rtol=0, atol=TOLERANCE[dtype] * (10 + n))


def test_rows_of_chunks_may_be_a_part(core):
    codes, chunks = made_codes(50, 64, 16, np.uint8)
    tables = np.random.default_rng(1).normal(size=(64, 16, 1)).astype(np.float32)
    out = np.zeros((11, 1), np.float32)
    core.word_scores(chunks[:, 20:31], tables, out)
    expected = tables[np.arange(64), codes[20:31]].sum(axis=1)
    np.testing.assert_allclose(out, expected, atol=1e-4)
    with pytest.raises(ValueError, match="rows of 32"):
        core.word_scores(chunks[:, ::2], tables, np.zeros((25, 1), np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("words", "size"), [(1, 1), (5, 3), (67, 8), (256, 8), (9, 21)])
def test_expansion(core, dtype, words, size):
    rng = np.random.default_rng(2)
    book = rng.normal(size=(3, words, size)).astype(dtype)
    columns = np.ascontiguousarray(book.swapaxes(1, 2))
    for width in widths(core, dtype):
        weights = rng.normal(size=(3, size, width)).astype(dtype)
        tables = np.full((3, words, width), np.nan, dtype)
        core.expand_words(columns, weights, tables)
        np.testing.assert_allclose(tables, book @ weights, rtol=0, atol=TOLERANCE[dtype] * size)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
@pytest.mark.parametrize("size", [1, 8, 11])
def test_decoding(core, kind, size):
    codes, chunks = made_codes(9, 45, 12, kind)
    words = np.random.default_rng(3).normal(size=(45, 12, size)).astype(np.float32)
    out = np.full((9, 45 * size + 2), np.nan, np.float32)
    core.decode_words(chunks, words, out[:, 1:-1])
    expected = words[np.arange(45), codes].reshape(9, -1)
    np.testing.assert_array_equal(out[:, 1:-1], expected)
    assert np.isnan(out[:, [0, -1]]).all()  # nothing is written outside


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
@pytest.mark.parametrize(
    ("n", "columns", "size", "words"), [(70, 37, 8, 21), (1, 1, 1, 1), (33, 9, 3, 256)]
)
def test_codes_are_the_nearest_words(core, kind, n, columns, size, words):
    rng = np.random.default_rng(4)
    X = (100 + rng.normal(size=(n, columns + 3))).astype(np.float32)[:, 2:-1]
    blocks = -(-columns // size)
    book = (100 + rng.normal(size=(blocks, words, size))).astype(np.float32)
    padded = np.zeros((n, blocks * size), np.float32)
    padded[:, :columns] = X
    book.reshape(blocks, words, size)[-1, :, size - (blocks * size - columns) :] = 0
    chunks = np.zeros((-(-blocks // 32), n, 32), kind)
    core.encode_words(X, book, chunks)
    points = padded.reshape(n, blocks, 1, size).astype(float)
    distances = np.square(points - book).sum(axis=3)
    found = np.stack([chunks[b // 32, :, b % 32] for b in range(blocks)], axis=1)
    chosen = np.take_along_axis(distances, found[..., None].astype(int), axis=2)[..., 0]
    np.testing.assert_allclose(chosen, distances.min(axis=2), rtol=1e-4, atol=1e-5)


def lloyd(X, words, rounds):
    """k-means, plainly; the points are such that no word loses all of them."""
    for _ in range(rounds):
        nearest = np.square(X[:, None] - words).sum(axis=2).argmin(axis=1)
        words = np.stack([X[nearest == w].mean(axis=0) for w in range(len(words))])
    return words, np.square(X[:, None] - words).sum(axis=2).min(axis=1).sum()


def test_training_is_lloyds_algorithm(core):
    X = np.random.default_rng(5).normal(size=(300, 10)).astype(np.float32)
    seeds = np.stack([np.arange(6), np.arange(50, 56), np.arange(100, 106)])
    words, course = np.zeros((3, 6, 4), np.float32), np.empty((3, 3))
    core.train_words(X, seeds, 4, -1.0, words, course)
    for b, first in enumerate((0, 4, 8)):
        block = X[:, first : first + 4].astype(float)
        expected, inertia = lloyd(block, block[seeds[b]], 4)
        np.testing.assert_allclose(words[b, :, : block.shape[1]], expected, atol=1e-5)
        assert not words[b, :, block.shape[1] :].any()
        assert course[b, 0] == pytest.approx(inertia, rel=1e-4)
        assert course[b, 1] == pytest.approx(np.square(block - block.mean(axis=0)).sum(), rel=1e-4)
        assert course[b, 2] == 4


def test_words_without_points_go_where_they_are_needed(core):
    distinct = np.random.default_rng(6).normal(size=(8, 4)).astype(np.float32)
    X = np.concatenate([np.repeat(distinct[:1], 90, axis=0), distinct[1:]])
    words, course = np.zeros((1, 8, 4), np.float32), np.empty((1, 3))
    core.train_words(X, np.arange(8)[None], 20, 1e-3, words, course)  # 8 times the same word
    assert course[0, 0] == pytest.approx(0, abs=1e-4)
    order = np.lexsort(distinct.T), np.lexsort(words[0].T)
    np.testing.assert_allclose(words[0][order[1]], distinct[order[0]], atol=1e-5)


def pairs(n, nodes, density, seed=0):
    """A CSR matrix whose entries are pairs of neighbors, with empty rows."""
    rng = np.random.default_rng(seed)
    rows, columns, values = [], [], []
    for i in range(n):
        taken = np.flatnonzero(rng.random(nodes // 2) < density * (i % 5 > 0))
        for first in 2 * taken:
            rows += [i, i]
            columns += [first, first + 1]
            values += list(rng.normal(size=2))
    return sp.csr_array((values, (rows, columns)), shape=(n, nodes))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pairs(core, dtype):
    Z = pairs(31, 40, 0.4).astype(dtype)
    unit = np.abs(Z.data).max() / 32767
    indptr = Z.indptr.astype(np.int64)
    given = (Z.indices.astype(np.int32), Z.data, indptr)
    cursor, groups = indptr[:-1].copy(), np.empty(32, np.int64)
    core.count_pairs(*given, cursor, 24, groups)
    np.testing.assert_array_equal(cursor, indptr[:-1])
    half = Z[:, :24]
    np.testing.assert_array_equal(np.diff(groups), -(-np.diff(half.indptr) // 8))
    node, weights = np.empty(4 * groups[-1], np.uint16), np.empty((4 * groups[-1], 2), np.int16)
    core.take_pairs(*given, cursor, 0, 24, 1 / unit, groups, node, weights)
    np.testing.assert_array_equal(cursor, indptr[:-1] + np.diff(half.indptr))
    rng = np.random.default_rng(7)
    for width in widths(core, np.float32):
        table = rng.normal(size=(24, width)).astype(np.float32)
        out = np.zeros((31, width), np.float32)
        core.pair_scores(groups, node, weights, table, out, 3, 29)
        expected = half.toarray() @ table
        expected[:3], expected[29:] = 0, 0
        np.testing.assert_allclose(unit * out, expected, atol=2e-3)
        slopes = rng.normal(size=(31, width)).astype(np.float32)
        slopes[::4] = 0
        sums = table.copy()
        core.pair_sums(groups, node, weights, slopes, sums)
        np.testing.assert_allclose(unit * (sums - table), half.toarray().T @ slopes, atol=2e-3)


@pytest.mark.parametrize(("fresh", "size"), [(0, 20), (21, 20), (21, 2), (40, 5)])
def test_kernel_matrix_of_pairs(core, fresh, size):
    Z = pairs(50, 40, 0.4)
    Z.data[:] = np.rint(1000 * Z.data)
    inner = np.random.default_rng(1).random((size, size))
    inner = (inner + inner.T).astype(np.float32)
    apart = (Z.indices[::2] + 1) % size == 0  # pairs that lie in two columns
    Z.data[np.repeat(apart, 2)] = 0
    indptr = Z.indptr.astype(np.int64)
    given = (Z.indices.astype(np.int32), Z.data, indptr)
    groups, cursor = np.empty(51, np.int64), indptr[:-1].copy()
    core.count_pairs(*given, cursor, 40, groups)
    node, weights = np.empty(4 * groups[-1], np.uint16), np.empty((4 * groups[-1], 2), np.int16)
    core.take_pairs(*given, cursor, 0, 40, 1.0, groups, node, weights)
    which = np.random.default_rng(2).permutation(50)[:40]
    out = np.zeros((40, 40), np.float32)
    core.pair_gram(groups, node, weights, which, fresh, inner, 40, out)
    expected = np.tril(oracles.pair_gram(Z[which].toarray(), inner))
    expected[:, fresh:] = 0
    np.testing.assert_allclose(np.tril(out), expected, rtol=1e-5, atol=30)
    np.testing.assert_array_equal(out[:, fresh:], 0)
    with pytest.raises(ValueError, match="a node is out of range"):
        core.pair_gram(groups, node, weights, which, fresh, inner, 20, out)
    with pytest.raises(ValueError, match="which is out of range"):
        core.pair_gram(groups, node, weights, which + 30, fresh, inner, 40, out)


def test_wrong_shapes_are_refused(core):
    codes, tables = np.zeros((1, 4, 32), np.uint8), np.zeros((5, 3, 1), np.float32)
    with pytest.raises(ValueError, match="out has the wrong shape"):
        core.word_scores(codes, tables, np.zeros((3, 1), np.float32))
    with pytest.raises(ValueError, match="vectors wide"):
        core.word_scores(codes, np.zeros((5, 3, 5), np.float32), np.zeros((4, 5), np.float32))
    with pytest.raises(ValueError, match="more blocks than codes"):
        core.word_scores(codes, np.zeros((33, 3, 1), np.float32), np.zeros((4, 1), np.float32))
    columns, weights = np.zeros((5, 2, 3), np.float32), np.zeros((5, 2, 1), np.float32)
    with pytest.raises(ValueError, match="weights have the wrong shape"):
        core.coded_scores(codes, columns, weights[:4], np.zeros((4, 1), np.float32))
    with pytest.raises(ValueError, match="slopes have the wrong shape"):
        core.coded_sums(codes, np.zeros((3, 1), np.float32), columns, weights)
    with pytest.raises(ValueError, match="tables have the wrong shape"):
        core.expand_words(columns, weights, tables[:, :2].copy())
    with pytest.raises(ValueError, match="too short"):
        core.encode_words(np.zeros((4, 2), np.float32), np.zeros((1, 300, 2), np.float32), codes)
    words, course = np.zeros((1, 2, 2), np.float32), np.zeros((1, 3))
    with pytest.raises(ValueError, match="range"):
        core.train_words(np.zeros((4, 2), np.float32), np.array([[0, 4]]), 1, 0.0, words, course)
