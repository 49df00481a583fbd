"""What models consist of comes back as it was: plain values, arrays, sparse matrices."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hilbin.kernels import (
    Chi2,
)
from hilbin.persist import load, save


def again(model, path, **given):
    save(model, path, **given)
    return load(path, **given)


PLAIN = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False),
        st.text(st.characters()),
        st.binary(),
        st.integers(-9, 9).map(np.int16),
        st.floats(width=32, allow_nan=False).map(np.float32),
        st.sampled_from([np.dtype("f4"), np.float64, np.int8, Path("a/b.onnx"), Chi2()]),
        st.slices(9),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.text() | st.integers() | st.tuples(st.text()), inner, max_size=4),
        st.sets(st.text() | st.integers(), max_size=4),
        st.frozensets(st.integers(), max_size=4),
    ),
    max_leaves=12,
)


def kinds(value):
    """The types of a value and its parts."""
    if isinstance(value, dict):
        return [dict, *([type(k), kinds(v)] for k, v in value.items())]
    if isinstance(value, (list, tuple)):
        return [type(value), *map(kinds, value)]
    return [type(value)]


@given(PLAIN)
def test_plain_values(tmp_path_factory, value):
    loaded = again(value, tmp_path_factory.getbasetemp() / "plain.hilbin")
    assert loaded == value
    assert kinds(loaded) == kinds(value)


def test_floats_that_json_lacks(tmp_path):
    values = [float("inf"), -float("inf"), float("nan"), -0.0, 5e-324, 0.1 + 0.2]
    loaded = again(values, tmp_path / "floats.hilbin")
    np.testing.assert_array_equal(loaded, values)
    assert np.signbit(loaded[3])


DTYPES = st.one_of(
    hnp.integer_dtypes(endianness="?"),
    hnp.unsigned_integer_dtypes(endianness="?"),
    hnp.floating_dtypes(endianness="?", sizes=(16, 32, 64)),
    hnp.complex_number_dtypes(sizes=(64, 128)),
    hnp.boolean_dtypes(),
    hnp.unicode_string_dtypes(min_len=1),
    hnp.byte_string_dtypes(min_len=1),
)


@given(
    hnp.arrays(DTYPES, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)),
    st.sampled_from(["C", "F", "K"]),
    st.booleans(),
)
def test_arrays(tmp_path_factory, array, order, reverse):
    array = np.asarray(array, order=order)
    array = array[::-1] if reverse and array.ndim else array
    loaded = again(array, tmp_path_factory.getbasetemp() / "array.hilbin")
    assert loaded.dtype == array.dtype.newbyteorder("=")
    np.testing.assert_array_equal(loaded, array)
    assert loaded.flags.writeable
    assert loaded.flags.owndata
    assert loaded.flags.f_contiguous >= array.flags.f_contiguous


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.csr_matrix, sp.csc_matrix])
def test_sparse(kind, histograms, tmp_path):
    matrix = kind(histograms * (histograms > 0.05))
    loaded = again(matrix, tmp_path / "matrix.hilbin")
    assert type(loaded) is kind
    assert (loaded != matrix).nnz == 0


def test_random_states(tmp_path):
    state = np.random.RandomState(5)
    state.normal(size=3)
    loaded = again(state, tmp_path / "state.hilbin")
    np.testing.assert_array_equal(loaded.normal(size=700), state.normal(size=700))


def test_memory_maps_are_arrays(tmp_path):
    mapped = np.memmap(tmp_path / "numbers", np.float32, "w+", shape=(3, 4))
    mapped[:] = np.arange(12).reshape(3, 4)
    loaded = again(mapped, tmp_path / "array.hilbin")
    assert type(loaded) is np.ndarray
    np.testing.assert_array_equal(loaded, mapped)
