"""Kernels of sets: the formulas point by point, definiteness, complaints, use with models."""

import pickle
import warnings
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from hilbin._arrays import to_dense
from hilbin.estimators import IntersectionSVC
from hilbin.kernels import (
    GCS,
    Chi2,
    Gaussian,
    Intersection,
    Linear,
    NotPositiveDefiniteWarning,
    is_psd,
)
from hilbin.kernels.sets import MaxMatch, PyramidMatch, PyramidMatchMap, SumMatch
from hilbin.maps import AdditiveMap, SparseMap


def max_match(kernel):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPositiveDefiniteWarning)
        return MaxMatch(kernel)


def random_sets(seed, n=12, d=3, most=7, scale=1.0):
    rng = np.random.default_rng(seed)
    return [scale * rng.uniform(size=(rng.integers(1, most + 1), d)) for _ in range(n)]


def by_pairs(value, sets, others):
    return np.array([[value(a, b) for b in others] for a in sets])


def cells_in_common(x, y, side):
    """Points in common when counted by cells."""
    a, b = (Counter(map(tuple, np.floor(s / side).astype(int))) for s in (x, y))
    return sum((a & b).values())


def new_matches(x, y, levels, side=1.0):
    """The kernel as Grauman and Darrell write it: points that meet first at a level."""
    total, before = 0.0, 0
    for i in range(levels):
        now = cells_in_common(x, y, side * 2.0**i)
        total += 2.0**-i * (now - before)
        before = now
    return total


# sums and maxima
@pytest.mark.parametrize("kernel", [Linear(), Gaussian(2.0), Chi2(), GCS(0.7)], ids=repr)
def test_sum_match(kernel):
    sets, others = random_sets(0), random_sets(1, n=5)
    made = SumMatch(kernel)
    slow = by_pairs(lambda a, b: to_dense(kernel.gram(a, b)).mean(), sets, others)
    np.testing.assert_allclose(made.gram(sets, others), slow, rtol=1e-12)
    K = made(sets)
    np.testing.assert_allclose(
        K, by_pairs(lambda a, b: to_dense(kernel.gram(a, b)).mean(), sets, sets), rtol=1e-12
    )
    assert (K == K.T).all()
    assert made.psd
    assert is_psd(K)
    np.testing.assert_allclose(made.diag(sets), np.diag(K), rtol=1e-12)


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(2.0), GCS(0.7)], ids=repr)
def test_max_match(kernel):
    sets, others = random_sets(0), random_sets(1, n=5)
    made = max_match(kernel)

    def value(a, b):
        K = to_dense(kernel.gram(a, b))
        return K.max(axis=1).mean() + K.max(axis=0).mean()

    np.testing.assert_allclose(made.gram(sets, others), by_pairs(value, sets, others), rtol=1e-12)
    K = made(sets)
    np.testing.assert_allclose(K, by_pairs(value, sets, sets), rtol=1e-12)
    np.testing.assert_allclose(made.diag(sets), np.diag(K), rtol=1e-12)


@pytest.mark.parametrize("tile", [1, 3, 8])
@pytest.mark.parametrize("make", [SumMatch, max_match])
def test_tiles_do_not_change_the_values(make, tile, monkeypatch):
    sets, others = random_sets(0), random_sets(1, n=5)
    kernel = make(Gaussian())
    whole = kernel.gram(sets), kernel.gram(sets, others), kernel.diag(sets)
    monkeypatch.setattr("hilbin.kernels.sets.matching.TILE", tile)
    again = kernel.gram(sets), kernel.gram(sets, others), kernel.diag(sets)
    for a, b in zip(again, whole, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_max_match_is_not_positive_definite():
    with pytest.warns(NotPositiveDefiniteWarning, match="MaxMatch is not positive") as caught:
        kernel = MaxMatch(Gaussian(1.0))
    assert caught[0].filename == __file__
    assert not kernel.psd
    grams = (kernel.gram(random_sets(s, n=12, d=2, most=5, scale=3)) for s in range(40))
    assert min(np.linalg.eigvalsh(K)[0] for K in grams) < -1e-2


def test_sum_match_with_a_map(monkeypatch):
    monkeypatch.setattr("hilbin.kernels.sets.matching.TILE", 16)
    sets = random_sets(0, n=20)
    exact = SumMatch(Chi2()).gram(sets)
    points = np.concatenate(sets)
    made = SumMatch(Chi2(), AdditiveMap(Chi2(), n_components=13).fit(points))
    np.testing.assert_allclose(made.gram(sets), exact, rtol=1e-3)
    np.testing.assert_allclose(made.diag(sets), np.diag(exact), rtol=1e-3)
    Z = made.features(sets)
    np.testing.assert_allclose(Z @ Z.T, made.gram(sets), rtol=1e-12)
    for orthonormal in (False, True):
        nodes = SparseMap(Intersection(), n_nodes=200, orthonormal=orthonormal).fit(points)
        made = SumMatch(Intersection(), nodes)
        exact_min = SumMatch(Intersection()).gram(sets)
        np.testing.assert_allclose(made.gram(sets, sets[:3]), exact_min[:, :3], atol=1e-2)
        np.testing.assert_allclose(made.diag(sets), np.diag(exact_min), atol=1e-2)
    with_empty = made.features([sets[0], np.empty((0, 3)), sets[1]])
    np.testing.assert_allclose(with_empty[[0, 2]], made.features(sets[:2]))
    assert (with_empty[1] == 0).all()
    with pytest.raises(ValueError, match="no points at all"):
        made.features([np.empty((0, 3))])
    with pytest.raises(ValueError, match="features with a map only"):
        SumMatch(Chi2()).features(sets)


# the pyramid
@given(seed=st.integers(0, 2**32 - 1), d=st.integers(1, 3), levels=st.integers(1, 6))
def test_pyramid_counts_new_matches(seed, d, levels):
    rng = np.random.default_rng(seed)
    x, y = (rng.uniform(-40, 40, size=(rng.integers(1, 40), d)) for _ in range(2))
    k = PyramidMatch(levels=levels, normalize=None)([x], [y])[0, 0]
    assert k == pytest.approx(new_matches(x, y, levels), rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_telescoped_sum(seed):
    """Six levels, random points: the weights, the new matches and the kernel are one number."""
    x, y = np.random.default_rng(seed).uniform(0, 32, size=(2, 60, 2))
    common = [cells_in_common(x, y, 2.0**i) for i in range(6)]
    kernel = PyramidMatch(levels=6, normalize=None)
    telescoped = kernel.weights @ common
    assert kernel.weights.sum() == 1
    assert telescoped == pytest.approx(new_matches(x, y, 6), rel=1e-12)
    assert kernel([x], [y])[0, 0] == pytest.approx(telescoped, rel=1e-12)


def test_normalizations():
    sets = random_sets(3, most=30, scale=16)
    sizes = np.array([len(s) for s in sets])
    raw = PyramidMatch(normalize=None)
    np.testing.assert_allclose(raw.diag(sets), sizes)
    np.testing.assert_allclose(np.diag(raw(sets)), sizes, rtol=1e-12)
    cosine = PyramidMatch()
    np.testing.assert_allclose(
        cosine(sets), raw(sets) / np.sqrt(np.outer(sizes, sizes)), rtol=1e-12
    )
    for kernel in (cosine, PyramidMatch(normalize="size"), PyramidMatch(shifts=4)):
        K = kernel(sets)
        assert is_psd(K)
        assert (K == K.T).all()
        np.testing.assert_allclose(kernel.diag(sets), 1)
        np.testing.assert_allclose(np.diag(K), 1, rtol=1e-12)
        np.testing.assert_allclose(kernel.gram(sets, sets[:4]), K[:, :4], rtol=1e-12)


def test_shifts_are_averaged():
    """A sum over grids that were moved, each by its own offset."""
    kernel = PyramidMatch(levels=3, shifts=3, normalize=None, random_state=5)
    x, y = np.random.default_rng(0).uniform(0, 8, size=(2, 30, 2))
    offsets = np.random.default_rng(5).uniform(0, 4, size=(3, 2))
    offsets[0] = 0
    mean = np.mean([new_matches(x + o, y + o, 3) for o in offsets])
    assert kernel([x], [y])[0, 0] == pytest.approx(mean, rel=1e-12)
    assert kernel([x], [y]) != PyramidMatch(levels=3, shifts=3, normalize=None)([x], [y])


def test_side_is_a_unit():
    sets = random_sets(0, scale=8)
    K = PyramidMatch(side=0.25).gram([s / 4 for s in sets])
    np.testing.assert_allclose(K, PyramidMatch().gram(sets), rtol=1e-12)


@pytest.mark.parametrize("normalize", ["size", None])
def test_rows_of_the_map_intersect_to_the_kernel(normalize):
    kernel = PyramidMatch(shifts=2, normalize=normalize)
    train, test = random_sets(0, scale=16), random_sets(1, n=5, scale=40)
    fitted = PyramidMatchMap(kernel).fit(train)
    rows, others = fitted.transform(train), fitted.transform(test)
    np.testing.assert_allclose(Intersection().gram(rows), kernel(train), rtol=1e-12)
    np.testing.assert_allclose(Intersection().gram(others, rows), kernel(test, train), rtol=1e-12)
    assert rows.shape == (12, fitted.cells_.size)
    assert clone(fitted).get_params() == fitted.get_params()


# use
@pytest.fixture
def two_classes():
    """Sets of the same mean: on a circle, or in a blob."""
    rng = np.random.default_rng(0)
    sets, y = [], rng.integers(0, 2, 80)
    for label in y:
        angle = rng.uniform(0, 2 * np.pi, size=rng.integers(5, 20))
        radius = 4 + 0.3 * rng.standard_normal(angle.size)
        ring = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
        sets.append(ring if label else rng.normal(0, 3, size=ring.shape))
    return sets[:50], y[:50], sets[50:], y[50:]


@pytest.mark.parametrize(
    "kernel", [SumMatch(Gaussian(0.5)), PyramidMatch(levels=4, shifts=3)], ids=["sum", "pyramid"]
)
def test_svc_learns_from_sets(kernel, two_classes):
    train, y, test, y_test = two_classes
    model = SVC(kernel="precomputed", C=100).fit(kernel.gram(train), y)
    assert model.score(kernel.gram(test, train), y_test) >= 0.8


def test_intersection_svc_learns_from_the_rows(two_classes):
    train, y, test, y_test = two_classes
    pyramid = PyramidMatchMap(PyramidMatch(levels=4, shifts=3, normalize="size"))
    model = make_pipeline(pyramid, IntersectionSVC(n_bins=None)).fit(train, y)
    assert model.score(test, y_test) >= 0.8


# odd input
KERNELS = [
    SumMatch(Linear()),
    SumMatch(Gaussian()),
    max_match(Gaussian()),
    PyramidMatch(),
    PyramidMatch(normalize="size"),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_an_empty_set_has_the_image_zero(kernel):
    sets = [np.ones((2, 3)), np.empty((0, 3)), np.zeros((1, 3)), np.empty((0, 3))]
    K = kernel.gram(sets)
    assert (K[[1, 3]] == 0).all()
    assert (K[:, [1, 3]] == 0).all()
    full = kernel.gram([sets[0], sets[2]])
    np.testing.assert_array_equal(K[np.ix_([0, 2], [0, 2])], full)
    np.testing.assert_allclose(kernel.diag(sets), np.diag(K))
    assert (kernel.gram(sets[1:2], sets) == 0).all()


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_kernel_is_a_value(kernel):
    again = pickle.loads(pickle.dumps(kernel))
    assert again == kernel
    assert hash(again) == hash(kernel)
    with pytest.raises(AttributeError):
        kernel.kernel = None


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_float32_and_whole_numbers(kernel):
    sets = [np.round(10 * s) for s in random_sets(0)]
    K = kernel.gram(sets)
    np.testing.assert_allclose(kernel.gram([s.astype(np.float32) for s in sets]), K, rtol=1e-5)
    np.testing.assert_allclose(kernel.gram([s.astype(int).tolist() for s in sets]), K, rtol=1e-12)
    mixed = kernel.gram([s.astype(np.float32) for s in sets], sets)
    np.testing.assert_allclose(mixed, K, rtol=1e-5)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda k: k.gram([]), "sets is empty"),
        (lambda k: k.gram(np.ones((3, 2))), r"sets\[0\] must be an array of shape \(m, d\)"),
        (lambda k: k.gram([np.ones((2, 3)), np.ones((2, 4))]), r"sets\[1\] has points of 4 values"),
        (lambda k: k.gram([np.ones((2, 3))], [np.ones((2, 4))]), "3 values, .* others have 4"),
        (lambda k: k.gram([[[0, 1]], [[2, np.nan]]]), r"sets\[1\]\[0, 1\] = nan is not finite"),
        (lambda k: k.diag([[1, 2]]), r"sets\[0\] must be"),
    ],
)
@pytest.mark.parametrize("kernel", KERNELS[1:4], ids=repr)
def test_complaints(kernel, act, message):
    with pytest.raises(ValueError, match=message):
        act(kernel)


def test_complaints_of_single_kernels():
    with pytest.raises(ValueError, match=r"sets\[0\]\[0, 1\] = -1.0 is negative, but Chi2"):
        SumMatch(Chi2()).gram([[[0, -1]]])
    with pytest.raises(ValueError, match="is a rule"):
        SumMatch(Gaussian("median")).gram([[[0, 1]]])
    with pytest.raises(TypeError, match="sets must be a sequence"):
        PyramidMatch().gram(3)
    with pytest.raises(ValueError, match="too far from 0"):
        PyramidMatch().gram([[[1e300]]])
    with pytest.raises(ValueError, match="normalize='size' or None"):
        PyramidMatchMap(PyramidMatch()).fit([[[1.0]]])
    with pytest.raises(ValueError, match="2 values, but those of fit had 1"):
        PyramidMatchMap().fit([[[1.0]]]).transform([[[1.0, 2.0]]])


@pytest.mark.parametrize(
    "bad",
    [
        {"levels": 0},
        {"levels": 49},
        {"levels": 2.0},
        {"side": 0},
        {"shifts": 0},
        {"random_state": None},
        {"normalize": "l1"},
    ],
    ids=repr,
)
def test_parameters_of_the_pyramid(bad):
    with pytest.raises(ValueError, match=f"{next(iter(bad))} of PyramidMatch must be"):
        PyramidMatch(**bad)
