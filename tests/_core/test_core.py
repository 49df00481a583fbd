"""The compiled loops against the oracles, at every instruction level this machine runs.

Built with sanitizers (`make sanitize`) these tests also show that no loop leaves its arrays.
"""

import importlib

import numpy as np
import oracles
import pytest
import scipy.sparse as sp

from hilbin._core import LEVELS

OPS = {
    "minimum": (oracles.minimum, True),
    "harmonic": (oracles.harmonic, True),
    "jensen_shannon": (oracles.jensen_shannon, True),
    "harmonic_difference": (oracles.harmonic_difference, False),
    "absolute": (oracles.absolute, False),
    "squared": (oracles.squared, False),
    "log_difference": (oracles.log_difference, False),
}
TOLERANCE = {np.float32: 2e-6, np.float64: 1e-13}
EMPTY = {np.float32: np.empty(0, np.float32), np.float64: np.empty(0)}


@pytest.fixture(params=LEVELS)
def core(request):
    return importlib.import_module(f"hilbin._core._{request.param}")


def planes(op, X):
    if op == "jensen_shannon":
        reciprocal = np.divide(1, X, out=np.zeros_like(X), where=X > 0)
        return [X, reciprocal, np.log2(X, out=np.zeros_like(X), where=X > 0)]
    return [X, np.log(X)] if op == "log_difference" else [X]


def rows(n, d, dtype, positive, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.gamma(0.5, size=(n, d)) * (rng.uniform(size=(n, d)) < 0.7)
    return (X + 0.01 * positive).astype(dtype)


def dense(core, op, X, Y, table, symmetric=False):
    dtype = X[0].dtype
    n, (m, d) = X[0].shape[0], Y[0].shape
    width = getattr(core, f"panel_rows_{dtype.name}")(op)
    packed = np.full(-(-m // width) * width * d * len(Y), np.nan, dtype)
    cut = m // 2 // width * width
    core.pack(op, Y, packed, cut, m)
    core.pack(op, Y, packed, 0, cut)
    out = np.full((n, m), np.nan, dtype)
    cut = n // 3 // width * width
    for begin, end in ((cut, n), (0, cut)):
        core.band(op, table, X, packed, out, begin, end, symmetric)
    return out


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 17, 5), (100, 35, 300), (13, 130, 3)])
def test_dense(core, op, shape, dtype):
    function, _ = OPS[op]
    n, m, d = shape
    X, Y = rows(n, d, dtype, op == "log_difference"), rows(m, d, dtype, op == "log_difference", 1)
    out = dense(core, op, planes(op, X), planes(op, Y), EMPTY[dtype])
    np.testing.assert_allclose(
        out, oracles.pairwise(function, X, Y), rtol=TOLERANCE[dtype], atol=1e-7
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["F", "reversed", "strided", "read-only"])
def test_any_memory_order(core, order, dtype):
    X = rows(20, 30, dtype, False)
    view = {
        "F": lambda: np.asfortranarray(X),
        "reversed": lambda: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
        "strided": lambda: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
        "read-only": lambda: np.frombuffer(X.tobytes(), dtype).reshape(X.shape),
    }[order]()
    np.testing.assert_array_equal(view, X)
    np.testing.assert_array_equal(
        dense(core, "minimum", [view], [view], EMPTY[dtype]),
        dense(core, "minimum", [X], [X], EMPTY[dtype]),
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 5, 97, 200])
def test_symmetric(core, n, dtype):
    X = [rows(n, 11, dtype, False)]
    out = dense(core, "harmonic", X, X, EMPTY[dtype], symmetric=True)
    np.testing.assert_array_equal(out, out.T)
    np.testing.assert_allclose(
        out, oracles.pairwise(oracles.harmonic, X[0]), rtol=TOLERANCE[dtype], atol=1e-7
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("upper", [False, True])
def test_sparse(core, op, upper, dtype):
    function, vanishes = OPS[op]
    shift = 0.01 * (op == "log_difference")
    X, Y = (sp.csr_array(rows(n, 40, dtype, False, seed)) for n, seed in ((30, 0), (75, 1)))
    if upper:
        X = Y

    def parts(Z):
        values = planes(op, (Z.data + shift).astype(dtype))
        return values, Z.indices.astype(np.int32), Z.indptr.astype(np.int64)

    zero = np.array([p[0] for p in planes(op, np.full(1, shift, dtype))], dtype)
    out = np.full((X.shape[0], Y.shape[0]), np.nan, dtype)
    arguments = (op, EMPTY[dtype], zero, 40, *parts(X), *parts(Y), vanishes, out)
    core.columns(*arguments, 10, 75, upper)
    core.columns(*arguments, 0, 10, upper)
    if upper:
        core.mirror(out, 0, 75)
    expected = oracles.pairwise(function, X.toarray() + shift, Y.toarray() + shift)
    tolerance = 10 * TOLERANCE[dtype]
    np.testing.assert_allclose(
        out, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max()
    )


def test_no_columns(core):
    X = np.empty((3, 0))
    np.testing.assert_array_equal(
        dense(core, "minimum", [X], [X], EMPTY[np.float64]), np.zeros((3, 3))
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_table_reads_every_cell(core, dtype):
    """A table of the identity reads back |u - v|, from the first cell to the guard at the end."""
    octaves, per_octave = 3, core.table_cells_per_octave
    steps = np.arange(octaves * per_octave + 1)
    start = 2.0 ** (steps // per_octave) * (1 + (steps % per_octave) / per_octave)
    ones = np.ones_like(start)
    cells = [-ones, ones] if dtype == np.float32 else [start - 1, ones, 0 * ones, 0 * ones]
    table = np.stack(cells, axis=1).astype(dtype).ravel()
    u = np.linspace(0, 2.0**octaves - 1, 5000).astype(dtype)[:, None]
    X, origin = [u, np.ones_like(u)], [np.zeros((1, 1), dtype), np.full((1, 1), 2, dtype)]
    out = dense(core, "table", X, origin, table)
    np.testing.assert_allclose(out, 2 * u, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("degree", [2, 6, 10])
def test_powers(core, degree, dtype):
    rng = np.random.default_rng(degree)
    coefficients = rng.standard_normal(degree + 1).astype(dtype)
    u, r = rng.uniform(-3, 3, size=(2, 40, 7)).astype(dtype)
    planes = [np.exp(u), np.exp(-u), r]
    out = dense(core, f"powers{degree}", planes, planes, coefficients)
    q = np.exp(-np.abs(u[:, None] - u[None]).astype(np.float64))
    terms = r[:, None] * r[None] * np.polynomial.polynomial.polyval(q, coefficients)
    np.testing.assert_allclose(
        out, terms.sum(axis=-1), atol=20 * TOLERANCE[dtype] * np.abs(terms).sum(axis=-1).max()
    )
    with pytest.raises(ValueError, match="too few numbers"):
        dense(core, f"powers{degree}", planes, planes, coefficients[:-1])


def test_bad_arguments_are_refused(core):
    X, out = np.ones((4, 3)), np.empty((4, 4))
    packed = np.empty(16 * 3)
    with pytest.raises(ValueError, match="unknown op: maximum"):
        core.band("maximum", EMPTY[np.float64], [X], packed, out, 0, 4, False)
    with pytest.raises(ValueError, match="out of bounds"):
        core.band("minimum", EMPTY[np.float64], [X], packed, out, 0, 5, False)
    with pytest.raises(ValueError, match="planes"):
        core.band("jensen_shannon", EMPTY[np.float64], [X], packed, out, 0, 4, False)
    with pytest.raises(ValueError, match="too small"):
        core.band("minimum", EMPTY[np.float64], [X], packed[:5], out, 0, 4, False)
    with pytest.raises(ValueError, match="begins at a panel"):
        core.band("minimum", EMPTY[np.float64], [X], packed, out, 1, 4, True)
    with pytest.raises(ValueError, match="start of a panel"):
        core.pack("minimum", [X], packed, 1, 4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_compact_support(core, dtype, storage):
    """A linear profile 1 - u in place of the kernel's: the entries are 1 - distance / support."""
    rng = np.random.default_rng(0)
    X = (rng.uniform(size=(50, 9)) * (rng.uniform(size=(50, 9)) < 0.6)).astype(dtype)
    X[3] = X[2]
    cross = (X @ X.T).astype(np.float32)
    norms = np.square(X).sum(axis=1).astype(np.float32)
    support, cells = 0.81, 4
    start = np.arange(cells) / cells
    table = np.stack([1 - start, -np.ones(cells), np.zeros(cells), np.zeros(cells)], 1).ravel()
    near = (cross, norms, norms, support, 1e-5)
    size = 50 * 50
    indices, values, counts = (
        np.empty(size, np.int32),
        np.empty(size, dtype),
        np.empty(50, np.int64),
    )
    if storage == "dense":
        filled = core.fill_dense(*near, table, X, X, 0, indices, values, counts)
    else:
        S = sp.csr_array(X)
        part = (S.data, S.indices.astype(np.int32), S.indptr.astype(np.int64))
        filled = core.fill_csr(*near, table, 9, *part, *part, 0, indices, values, counts)
    K = sp.csr_array(
        (values[:filled], indices[:filled], np.append(0, np.cumsum(counts))), shape=(50, 50)
    )
    D = np.sqrt(oracles.pairwise(oracles.squared, X))
    np.testing.assert_allclose(
        K.toarray(), np.maximum(1 - D / 0.9, 0), atol=1e-6 if dtype == np.float32 else 1e-12
    )
    with pytest.raises(ValueError, match="no room"):
        core.fill_dense(*near, table, X, X, 0, indices[:9], values, counts)
    assert K.nnz < 2500
