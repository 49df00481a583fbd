"""Landmarks in passes are those of k-means in memory, however the rows come."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from hilbin.estimators import stream_landmarks
from hilbin.kernels import Gaussian
from hilbin.maps import NystroemMap
from hilbin.stream import ChunkError, as_chunks


@pytest.fixture(scope="module")
def rows():
    return load_digits().data[:700]


def lloyd(X, centers, rounds, weight=None):
    """k-means by its definition; a center without rows stays."""
    weight = np.ones(len(X)) if weight is None else weight
    for _ in range(rounds):
        nearest = np.square(X[:, None] - centers).sum(axis=2).argmin(axis=1)
        centers = np.array(
            [
                np.average(X[nearest == j], axis=0, weights=weight[nearest == j])
                if weight[nearest == j].sum() > 0
                else center
                for j, center in enumerate(centers)
            ]
        )
    return centers


def inertia(X, centers):
    return np.square(X[:, None] - centers).sum(axis=2).min(axis=1).sum()


def test_rounds_of_k_means(rows):
    start = stream_landmarks(rows, 12, rounds=0)
    assert all((row == rows).all(axis=1).any() for row in start)
    assert len(np.unique(start, axis=0)) == 12
    before = inertia(rows, start)
    for rounds in (1, 2, 6):
        found = stream_landmarks(rows, 12, rounds=rounds)
        np.testing.assert_allclose(found, lloyd(rows, start, rounds), atol=1e-9)
        assert inertia(rows, found) < before
        before = inertia(rows, found)


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(1, 9), min_size=1, max_size=8),
    st.integers(1, 3),
    st.booleans(),
)
def test_chunks_change_nothing(seed, heights, n_landmarks, weighted):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(sum(heights) + 2, 3))
    weight = rng.integers(1, 4, len(X)).astype(float) if weighted else None
    parts = np.split(np.arange(len(X)), np.cumsum(heights))
    chunks = [(X[p], None, None if weight is None else weight[p]) for p in parts]
    whole = stream_landmarks(X, n_landmarks, sample_weight=weight, rounds=2, random_state=seed)
    found = stream_landmarks(chunks, n_landmarks, rounds=2, random_state=seed)
    np.testing.assert_allclose(found, whole, rtol=1e-8, atol=1e-10)
    assert (whole.min(axis=0) >= X.min(axis=0) - 1e-12).all()
    assert (whole.max(axis=0) <= X.max(axis=0) + 1e-12).all()
    start = stream_landmarks(X, n_landmarks, sample_weight=weight, rounds=0, random_state=seed)
    np.testing.assert_allclose(whole, lloyd(X, start, 2, weight), rtol=1e-8, atol=1e-10)


def test_kinds_of_rows_and_ways_to_compute(rows, tmp_path):
    whole = stream_landmarks(rows, 9)
    for shard, part in enumerate(np.array_split(rows, 3)):
        np.save(tmp_path / f"X_{shard}.npy", part)
    for found in (
        stream_landmarks(sp.csr_array(rows), 9),
        stream_landmarks(rows.astype(np.float32), 9),
        stream_landmarks(tmp_path, 9, memory=0.1),
        stream_landmarks(as_chunks(tmp_path, rows=50), 9, n_jobs=2),
    ):
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, whole, rtol=1e-8, atol=1e-9)
    dask = pytest.importorskip("dask.array")
    found = stream_landmarks(dask.from_array(rows, chunks=(90, 20)), 9)
    np.testing.assert_allclose(found, whole, rtol=1e-8, atol=1e-9)
    assert not np.allclose(stream_landmarks(rows, 9, random_state=1), whole)


def test_rows_of_weight_0_do_not_count(rows):
    weight = np.where(np.arange(700) < 300, 0.0, 2.0)
    far = np.where(weight[:, None] > 0, rows, 1e6)
    found = stream_landmarks(far, 5, sample_weight=weight)
    assert found.max() <= rows.max()
    with pytest.raises(ValueError, match="n_landmarks=401 is more than the 400 different rows"):
        stream_landmarks(far, 401, sample_weight=weight)


def test_an_interrupted_search_goes_on(rows, tmp_path):
    chunks, where, said = as_chunks(rows, rows=100), tmp_path / "where", []

    def stop(name, done, n_rows):
        if (name, done) == ("round 2", 300):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stream_landmarks(chunks, 6, rounds=3, checkpoint=where, callback=stop)
    found = stream_landmarks(
        chunks, 6, rounds=3, checkpoint=where, callback=lambda *what: said.append(what[:2])
    )
    begun = ["survey", "round 1"]
    assert said[:3] == [*((name, 700) for name in begun), ("round 2", 300)]
    np.testing.assert_array_equal(found, stream_landmarks(chunks, 6, rounds=3))
    assert not where.exists()


def test_they_serve_a_nystroem_map_better_than_random_rows(rows):
    kernel = Gaussian(1e-3)
    landmarks = stream_landmarks([rows[:200], rows[200:]], 60)
    theirs = NystroemMap(kernel, landmarks=landmarks, random_state=0).fit(rows)
    assert theirs.n_components_ == 60
    errors = [
        NystroemMap(kernel, 60, random_state=seed).fit(rows).error_.expected_relative
        for seed in range(5)
    ]
    assert theirs.error_.expected_relative < min(errors)


def test_bad_parameters(rows, tmp_path):
    for arguments, message in (
        ({"n_landmarks": 0}, "n_landmarks must be a whole number >= 1, got 0"),
        ({"n_landmarks": 2.5}, "n_landmarks must be a whole number >= 1, got 2.5"),
        ({"n_landmarks": 2, "rounds": -1}, "rounds must be a whole number >= 0, got -1"),
        ({"n_landmarks": 2, "memory": 0}, "memory, if not None, must be a number > 0"),
        ({"n_landmarks": 701}, "n_landmarks=701 is more than the 700 different rows"),
    ):
        with pytest.raises(ValueError, match=message):
            stream_landmarks(rows, **arguments)
    bad = rows.copy()
    bad[650, 3] = np.nan
    np.save(tmp_path / "X.npy", bad)
    with pytest.raises(ChunkError, match=r"X\.npy, rows .*: feature 3 of row 650 is nan"):
        stream_landmarks(tmp_path, 5)
