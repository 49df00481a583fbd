"""Codes: rows that behave like an array of their decoded numbers."""

import io
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import train_test_split
from sklearn.utils import resample

from hilbin.maps import PQCodes, ProductQuantizer


def made(n=20, parts=5, words=7, size=3, short=0, kind=np.uint8, seed=0):
    rng = np.random.default_rng(seed)
    groups = np.zeros((-(-parts // 32), n, 32), kind)
    for b in range(parts):
        groups[b // 32, :, b % 32] = rng.integers(0, words, n)
    book = rng.normal(size=(parts, words, size)).astype(np.float32)
    book[-1, :, size - short :] = 0
    return PQCodes(groups, book, parts * size - short)


def decoded(codes):
    """Decode part by part, plainly."""
    parts = [codes.words[b][codes.groups[b // 32, :, b % 32]] for b in range(len(codes.words))]
    return np.concatenate(parts, axis=1)[:, : codes.n_features]


@pytest.mark.parametrize("parts", [1, 5, 32, 70])
@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
def test_decoding(parts, kind):
    codes = made(300, parts, 200, short=1, kind=kind)
    Z = codes.decode()
    np.testing.assert_array_equal(Z, decoded(codes))
    assert Z.dtype == codes.dtype == np.float32
    assert Z.shape == codes.shape == (300, 3 * parts - 1)
    assert Z.flags.c_contiguous
    assert len(codes) == 300
    assert codes.ndim == 2
    assert codes.nbytes == codes.groups.nbytes


rows = st.one_of(
    st.slices(12),
    st.lists(st.integers(-12, 11), max_size=9),
    st.lists(st.booleans(), min_size=12, max_size=12).map(np.array),
    st.lists(st.integers(-12, 11), max_size=9).map(lambda a: np.array(a, int)),
)


@given(index=rows)
def test_an_index_of_rows_is_that_of_the_array(index):
    codes = made(12, 40)
    some = codes[index]
    expected = codes.decode()[np.array(index, int) if isinstance(index, list) else index]
    np.testing.assert_array_equal(np.asarray(some), expected)
    assert some.fingerprint == codes.fingerprint
    np.testing.assert_array_equal(np.asarray(codes[index, ...]), expected)


@given(index=rows, again=rows)
def test_an_index_of_an_index(index, again):
    codes = made(12, 3)
    some = codes[index]
    try:
        expected = np.asarray(some)[np.array(again, int) if isinstance(again, list) else again]
    except IndexError:
        with pytest.raises(IndexError):
            some[again]
    else:
        np.testing.assert_array_equal(np.asarray(some[again]), expected)


@pytest.mark.parametrize("number", [0, 7, -1, np.int64(3)])
def test_one_row_is_decoded(number):
    codes = made()
    np.testing.assert_array_equal(codes[number], codes.decode()[number])


def test_bad_indices():
    codes = made()
    for index in (20, -21):
        with pytest.raises(IndexError):
            codes[index]
    for index in ((0, 1), (slice(None), np.arange(2)), (0, slice(None), 0)):
        with pytest.raises(IndexError, match="rows alone"):
            codes[index]
    with pytest.raises(IndexError, match="2 axes"):
        codes[np.zeros((2, 2), int)]
    with pytest.raises(IndexError):
        codes[[20]]
    with pytest.raises(IndexError):
        codes[[True, False]]


@given(cut=st.integers(0, 12))
def test_parts_appended_are_the_whole(cut):
    codes = made(12, 33)
    whole = codes[:cut].append(codes[cut:])
    np.testing.assert_array_equal(whole.groups, codes.groups)
    assert whole.words is codes.words


def test_append_refuses_what_does_not_belong():
    codes = made()
    with pytest.raises(ValueError, match="codes from another quantizer"):
        codes.append(made(seed=1))
    with pytest.raises(TypeError, match="others must be PQCodes"):
        codes.append(codes.decode())


def test_as_an_array():
    codes = made()
    np.testing.assert_array_equal(np.asarray(codes), codes.decode())
    assert np.asarray(codes, np.float64).dtype == np.float64
    assert np.array(codes).shape == codes.shape
    with pytest.raises(ValueError, match="without a copy"):
        np.asarray(codes, copy=False)
    np.testing.assert_array_equal(np.stack(list(codes)), codes.decode())


def test_scikit_learn_can_split_them():
    codes = made(30)
    train, test, y, _ = train_test_split(codes, np.arange(30), random_state=0)
    assert isinstance(train, PQCodes)
    assert len(train) + len(test) == 30
    np.testing.assert_array_equal(train.decode(), codes.decode()[y])
    assert isinstance(resample(codes, random_state=0), PQCodes)


def test_saving_and_loading(tmp_path):
    codes = made(9, 40, short=2, kind=np.uint16)
    path = tmp_path / "rows.codes"
    codes[2:7].save(path)
    again = PQCodes.load(path)
    np.testing.assert_array_equal(again.groups, codes.groups[:, 2:7])
    np.testing.assert_array_equal(again.words, codes.words)
    assert again.n_features == codes.n_features
    assert again.fingerprint == codes.fingerprint
    np.testing.assert_array_equal(again.append(codes).decode()[5:], codes.decode())
    assert [p.name for p in tmp_path.iterdir()] == ["rows.codes"]


def test_a_saved_quantizer_knows_saved_codes(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 6))
    quantizer = ProductQuantizer(3, n_words=5, random_state=0).fit(X)
    quantizer.transform(X).save(tmp_path / "codes.npz")
    other = pickle.loads(pickle.dumps(quantizer))
    np.testing.assert_array_equal(
        other.decode(PQCodes.load(tmp_path / "codes.npz")), quantizer.transform(X).decode()
    )


def _array_file():
    file = io.BytesIO()
    np.save(file, np.zeros(3))
    return file.getvalue()


def test_files_that_are_no_codes(tmp_path):
    path = tmp_path / "file.npz"
    path.write_bytes(b"no archive")
    with pytest.raises(ValueError, match=r"file\.npz is no file of codes"):
        PQCodes.load(path)
    path.write_bytes(_array_file())
    with pytest.raises(ValueError, match="is no file of codes"):
        PQCodes.load(path)
    np.savez(path, groups=np.zeros(3))
    with pytest.raises(ValueError, match="is no file of codes"):
        PQCodes.load(path)
    with pytest.raises(FileNotFoundError):
        PQCodes.load(tmp_path / "none")
    codes = made()
    codes.save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="is no file of codes"):
        PQCodes.load(path)


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("format", "hilbin codes 99", "another format"),
        ("words", np.zeros((5, 7, 3), np.float32), "is damaged"),
        ("words", np.zeros((5, 3, 3), np.float32), "has the code"),
        ("groups", np.zeros((2, 20, 32), np.uint8), "do not hold"),
        ("groups", np.full((1, 20, 32), 9, np.uint8), "has the code 9"),
        ("n_features", 3, "n_features=3"),
    ],
)
def test_forged_files(tmp_path, part, value, message):
    path = tmp_path / "file.npz"
    made().save(path)
    with np.load(path) as file:
        parts = dict(file)
    np.savez(path, **(parts | {part: value}))
    with pytest.raises(ValueError, match=message):
        PQCodes.load(path)


def test_a_pickle_in_a_file_is_refused(tmp_path):
    path = tmp_path / "file.npz"
    np.savez(path, format=np.array([object()]), allow_pickle=True)
    with pytest.raises(ValueError, match="is no file of codes"):
        PQCodes.load(path)


def test_pickling():
    codes = made()
    again = pickle.loads(pickle.dumps(codes[:4]))
    np.testing.assert_array_equal(again.decode(), codes.decode()[:4])
    assert again.fingerprint == codes.fingerprint


@pytest.mark.parametrize(
    ("groups", "words", "n_features", "message"),
    [
        (np.zeros((1, 4, 32), np.int64), np.zeros((2, 3, 4), np.float32), 8, "uint8 or uint16"),
        (np.zeros((1, 4, 31), np.uint8), np.zeros((2, 3, 4), np.float32), 8, "do not hold"),
        (np.zeros((1, 4, 32), np.uint8), np.zeros((40, 3, 4), np.float32), 8, "do not hold"),
        (np.zeros((1, 8, 32), np.uint8)[:, ::2], np.zeros((2, 3, 4), np.float32), 8, "follow"),
        (np.zeros((1, 4, 32), np.uint8), np.zeros((2, 3, 4)), 8, "float32"),
        (np.zeros((1, 4, 32), np.uint8), np.zeros((2, 3, 4), np.float32), 4, "n_features=4"),
        (np.ones((1, 4, 32), np.uint8), np.zeros((2, 1, 4), np.float32), 8, "has the code 1"),
    ],
)
def test_parts_that_do_not_fit(groups, words, n_features, message):
    with pytest.raises(ValueError, match=message):
        PQCodes(groups, words, n_features)


def test_repr():
    assert repr(made()) == "PQCodes(20 rows of 15 numbers: 5 parts of 7 words, 0.6 kB)"
    big = made(40000, 1)
    assert repr(big) == "PQCodes(40000 rows of 3 numbers: 1 part of 7 words, 1.3 MB)"
