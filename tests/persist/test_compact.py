"""Compact files: what is rounded, how far, and that nothing else changes."""

import contextlib
import math
import zlib

import numpy as np
import pytest
from forging import pack
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hilbin.auto import DualRidgeClassifier, DualSVC
from hilbin.estimators import IntersectionSVC, KernelSVC, MapRidgeClassifier
from hilbin.kernels import Chi2
from hilbin.maps import AdditiveMap
from hilbin.persist import ModelFileError, container, info, load, packing, save

DTYPES = ("<f4", "<f8", "<i8", "|u1", "|b1", "<U3", "<c16")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.hilbin"


def histograms(n=400, d=600, classes=5):
    """Rows that sum to 1, some of whose columns depend on the class."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % classes
    rates = np.where(rng.random((classes, d)) < 0.1, 0.6, 0.2)
    X = rng.gamma(rates[y])
    X[rng.random(X.shape) < 0.5] = 0
    return X / X.sum(axis=1, keepdims=True), y


def wide_models():
    return [
        IntersectionSVC(n_bins=31),
        IntersectionSVC(n_bins=None),
        DualSVC(),
        DualRidgeClassifier(),
    ]


@given(st.data())
def test_packing_loses_nothing(data):
    dtype = np.dtype(data.draw(st.sampled_from(DTYPES)))
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6))
    array = data.draw(hnp.arrays(dtype, shape))
    order = data.draw(st.sampled_from("CF"))
    array = np.array(array, order=order)
    content, coding = packing.pack(array, None)
    assert coding is None
    found = packing.unpack(content, dtype.str, list(shape), order, None)
    assert found.dtype == array.dtype
    assert found.shape == array.shape
    assert found.tobytes() == array.tobytes()
    assert found.flags.f_contiguous == array.flags.f_contiguous


@given(st.integers(0, 2**32 - 1), st.sampled_from(["<f4", "<f8"]), st.integers(-30, 30))
def test_rounding(seed, dtype, exponent):
    """Numbers change by half a step at most; multiples of it, and zeros, do not change."""
    rng = np.random.default_rng(seed)
    values = np.ldexp(rng.standard_cauchy((packing.FEW // 4, 4)), exponent).astype(dtype)
    values[rng.random(values.shape) < 0.3] = 0
    size = math.sqrt(np.square(values, dtype=np.float64).mean())
    step = packing.step_of(values)
    assert 8 * math.frexp(step)[0] in (4, 5, 6, 7)  # three significant bits
    assert packing.FINEST * size / packing.PARTS / 2 < step <= size / packing.PARTS
    found = packing.rounded(values, step)
    assert found.dtype == values.dtype
    assert np.abs(found.astype(float) - values).max() <= step / 2
    assert not found[values == 0].any()
    np.testing.assert_array_equal(found / step, np.rint(found / step))
    np.testing.assert_array_equal(packing.rounded(found, step), found)
    for array in (found, np.sort(found, axis=None).reshape(found.shape, order="F")):
        content, coding = packing.pack(array, step)
        again = packing.unpack(content, dtype, [*found.shape], "C", coding)
        np.testing.assert_array_equal(again, array)
        assert coding[1] == step


def test_steps_are_as_small_as_a_quarter_of_the_size_allows():
    """Numbers that have few digits keep them; double precision has room for more than single."""
    values = np.random.default_rng(0).normal(size=(4, packing.FEW))
    coarse = packing.step_of(values.astype(np.float32))
    fine = packing.step_of(values)
    assert fine <= coarse / 8
    for array, step in ((values.astype(np.float32), coarse), (values, fine)):
        assert step == coarse or len(packing.pack(array, step)[0]) < array.nbytes / 4
        again = packing.rounded(array, step)
        assert packing.step_of(again) == step
    whole = np.rint(1000 * values)
    np.testing.assert_array_equal(packing.rounded(whole, packing.step_of(whole)), whole)


@pytest.mark.parametrize(
    "values",
    [
        np.zeros(packing.FEW),
        np.ones(packing.FEW - 1),
        np.full(packing.FEW, np.nan),
        np.full(packing.FEW, 1e-310),
        np.full(packing.FEW, 1e300),
        np.ones(packing.FEW, int),
        None,
    ],
    ids=lambda v: str(v)[:20],
)
def test_what_is_not_rounded(values):
    assert packing.step_of(values) is None


@pytest.mark.parametrize("model", wide_models(), ids=repr)
def test_scores_change_little(model, path):
    """By less than a thousandth of their standard deviation, of every class."""
    X, y = histograms(300, 4000)
    model.fit(X[::2], y[::2])
    save(model, path)
    plain = path.stat().st_size
    save(model, path, compact=True)
    expected, found = (m.decision_function(X[1::2]) for m in (model, load(path)))
    change = np.abs(found - expected).max(axis=0)
    assert (change > 0).any()
    assert (change < 1e-3 * expected.std(axis=0)).all()
    assert path.stat().st_size < plain / 2  # a quarter of large models: benchmarks/files.py
    said = info(path)
    assert said.format == container.COMPACT_VERSION
    assert [*said.rounded] in (["model._lookup.lookup"], ["model.coef_"])


def test_everything_else_is_kept_to_the_last_bit(path):
    X, y = histograms(200, 100)
    models = [
        KernelSVC(Chi2(), probability=True),
        MapRidgeClassifier(AdditiveMap(Chi2())),
        IntersectionSVC(n_bins=5),
    ]
    for model in models:
        save(model.fit(X, y), path, compact=True)
        np.testing.assert_array_equal(load(path).decision_function(X), model.decision_function(X))
        assert info(path).rounded == {}


def test_a_compact_file_of_a_compact_file_is_the_same(path, tmp_path):
    X, y = histograms()
    model = IntersectionSVC(n_bins=31).fit(X, y)
    save(model, path, compact=True)
    before = model._lookup.lookup.copy()
    save(load(path), tmp_path / "again.hilbin", compact=True)
    assert path.read_bytes() == (tmp_path / "again.hilbin").read_bytes()
    np.testing.assert_array_equal(model._lookup.lookup, before)


def test_files_that_would_unpack_to_too_much_are_not_packed(path, monkeypatch):
    monkeypatch.setattr(packing, "ROOM", 0)
    zeros = np.zeros(100_000)
    save([zeros], path, compact=True)
    assert info(path).format == container.VERSION
    np.testing.assert_array_equal(load(path)[0], zeros)


# files that are not as they were written
def forged(path, *said, content=b"", version=container.COMPACT_VERSION, **more):
    """A file with one array."""
    header = {"class": "x", "versions": {"scikit-learn": "1.9"}, "metadata": {}, "arrays": [said]}
    header |= {"nodes": [["array", 0]], "model": [0], **more}
    pack(path, header, content + bytes(-len(content) % container.ALIGN), version=version)


def test_every_flipped_byte_is_noticed(path):
    save([np.arange(300.0), np.eye(3)], path, compact=True)
    content = path.read_bytes()
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1 << place % 8
        path.write_bytes(changed)
        with pytest.raises(ModelFileError):
            load(path)


def test_right_files_are_read(path):
    values = np.arange(-4.0, 4.0)
    packed, coding = packing.pack(values, 0.5)
    forged(path, "<f8", [8], "C", len(packed), coding, content=packed)
    np.testing.assert_array_equal(load(path), values)


GOOD, CODING = packing.pack(np.array([5.0, -3, 7, 2, -8, 1, 0, 4]), 1.0)


@pytest.mark.parametrize(
    "said",
    [
        ["<f8", [8], "C", len(GOOD), ["multiples", 0.0]],
        ["<f8", [8], "C", len(GOOD), ["multiples", -1.0]],
        ["<f8", [8], "C", len(GOOD), ["multiples", "1"]],
        ["<f8", [8], "C", len(GOOD), ["differences", True]],
        ["<f8", [8], "C", len(GOOD), ["multiples", 1]],
        ["<f8", [8], "C", len(GOOD), ["others", 1.0]],
        ["<f8", [8], "C", len(GOOD), ["multiples"]],
        ["<f8", [8], "C", len(GOOD), 1.0],
        ["<i8", [8], "C", len(GOOD), CODING],
        ["<U8", [8], "C", len(GOOD), CODING],
        ["<f8", [9], "C", len(GOOD), CODING],
        ["<f8", [7], "C", len(GOOD), CODING],
        ["<f8", [8], "C", len(GOOD), None],
        ["<f8", [8], "C", len(GOOD) - 1, CODING],
        ["<f8", [8], "C", len(GOOD) + 1, CODING],
        ["<f8", [8], "C", -1, CODING],
        ["<f8", [8], "C", None, None],
        ["<f8", [8], "C"],
        ["<f8", [8], "C", len(GOOD), CODING, 0],
        ["<f8", [2**60], "C", len(GOOD), CODING],
        ["<f8", [0, 2**62], "C", len(GOOD), CODING],
        ["<f8", [1] * 70, "C", len(GOOD), CODING],
    ],
    ids=repr,
)
def test_forged_arrays_are_refused(path, said):
    forged(path, *said, content=GOOD)
    with pytest.raises(ModelFileError, match="malformed"):
        load(path)


@pytest.mark.parametrize("said", [7, ["model"], {"model": "little"}, {"model": None}], ids=repr)
def test_forged_changes_are_refused(path, said):
    forged(path, "<f8", [8], "C", len(GOOD), CODING, content=GOOD, rounded=said)
    with pytest.raises(ModelFileError, match="does not say what is rounded"):
        info(path)


def test_steps_in_plain_files_are_refused(path):
    forged(path, "<f8", [8], "C", 64, None, content=bytes(64), version=container.VERSION)
    with pytest.raises(ModelFileError, match="malformed"):
        load(path)


def test_small_files_do_not_take_all_memory(path):
    bomb = zlib.compress(bytes(2**28))
    forged(path, "|u1", [2**28], "C", len(bomb), None, content=bomb)
    with pytest.raises(ModelFileError, match="far more than the file holds"):
        load(path)
    forged(path, "|u1", [1000], "C", len(bomb), None, content=bomb)
    with pytest.raises(ModelFileError, match="not as long"):
        load(path)


def test_steps_that_overflow_are_no_crash(path):
    forged(path, "<f4", [8], "C", len(GOOD), ["multiples", 1e300], content=GOOD)
    found = load(path)
    assert found.dtype == np.float32
    assert not np.isfinite(found[:6]).any()


@given(st.integers(0, 2**32 - 1))
def test_damaged_streams_are_refused_or_read(tmp_path_factory, seed):
    rng = np.random.default_rng(seed)
    path = tmp_path_factory.getbasetemp() / "damaged.hilbin"
    content = bytearray(GOOD)
    for place in rng.integers(len(content), size=rng.integers(1, 4)):
        content[place] = rng.integers(256)
    forged(path, "<f8", [8], "C", len(content), CODING, content=bytes(content))
    found = None
    with contextlib.suppress(ModelFileError):
        found = load(path)
    assert found is None or found.shape == (8,)
