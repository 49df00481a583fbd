"""Kernels that do not see transformations: values, invariance, definiteness, complaints."""

import pickle
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage
from sklearn.base import clone

from hilbin._arrays import to_dense
from hilbin.kernels import (
    GCS,
    Chi2,
    Exponential,
    Gaussian,
    Intersection,
    Kernel,
    Laplace,
    Linear,
    NotPositiveDefiniteWarning,
    Polynomial,
    check_kernel,
    is_psd,
)
from hilbin.kernels.permutations import flips, rotations90, shifts
from hilbin.kernels.tangent import TANGENTS, TangentDistance, tangent_vectors
from hilbin.kernels.transforms import MatchDistance, TransformIntegration
from hilbin.maps import AdditiveMap

SHAPE = (3, 4)
GROUPS = {"shifts": shifts(SHAPE), "flips": flips(SHAPE), "four": flips(SHAPE, vertical=True)}


@dataclass(frozen=True, repr=False)
class FirstColumn(Kernel):
    """A kernel that does care for the order of columns."""

    def _gram(self, X, Y, n_jobs):
        X, Y = (Z if Z is None or not sp.issparse(Z) else Z.toarray() for Z in (X, Y))
        Y = X if Y is None else Y
        return np.exp(-((X[:, :1] - Y[:, :1].T) ** 2)) + X[:, 1:] @ Y[:, 1:].T

    def _diag(self, X):
        return 1 + np.square(X.toarray() if sp.issparse(X) else X)[:, 1:].sum(axis=1)


def quiet(make, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPositiveDefiniteWarning)
        return make(*args, **kwargs)


def integrated(kernel, J, X, Y):
    """The double sum as it is written."""
    return sum(kernel.gram(X[:, a], Y[:, b]) for a in J for b in J) / len(J) ** 2


def matched(J, x, y):
    there = min(((x - y[j]) ** 2).sum() for j in J)
    back = min(((y - x[j]) ** 2).sum() for j in J)
    return (there + back) / 2


def tangent(kernel, x, y):
    """One side of the distance, by least squares."""
    T = tangent_vectors(y[None], kernel.shape, kernel.tangents)[0].T
    delta = np.linalg.lstsq(T, x - y, rcond=1e-10)[0]
    return ((x - y - T @ delta) ** 2).sum()


@pytest.fixture
def rows():
    return np.random.default_rng(0).gamma(0.5, size=(15, 12))


# permutations
def test_permutations_move_images():
    image = np.arange(12).reshape(SHAPE)
    row = image.ravel()
    assert {tuple(row[j]) for j in shifts(SHAPE, 1)} == {
        tuple(np.roll(image, (a, b), (0, 1)).ravel()) for a in (-1, 0, 1) for b in (-1, 0, 1)
    }
    assert len(shifts(SHAPE)) == 12
    assert len(shifts(SHAPE, 2)) == 3 * 4  # no shift twice
    np.testing.assert_array_equal(row[flips(SHAPE)[1]].reshape(SHAPE), image[:, ::-1])
    np.testing.assert_array_equal(row[flips(SHAPE, vertical=True)[3]], row[::-1])
    square = np.arange(27).reshape(3, 3, 3)
    for turns, j in enumerate(rotations90((3, 3, 3))):
        np.testing.assert_array_equal(square.ravel()[j].reshape(3, 3, 3), np.rot90(square, turns))
    for J in (shifts(SHAPE), flips(SHAPE), rotations90((2, 2))):
        assert (J[0] == np.arange(J.shape[1])).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: shifts((3,)), r"shape must be \(height, width"),
        (lambda: flips((0, 3)), r"shape must be"),
        (lambda: shifts(SHAPE, -1), "reach must be a whole number >= 0"),
        (lambda: rotations90(SHAPE), r"square.*flips\(shape, vertical=True\)"),
        (lambda: TransformIntegration(Linear(), [[0, 0]]), r"transforms\[0\] .*permutation"),
        (lambda: TransformIntegration(Linear(), ((0, 1), (0, 2))), r"transforms\[1\]"),
        (lambda: TransformIntegration(Linear(), []), r"shape \(g, d\)"),
        (lambda: TransformIntegration(Linear(), [[0.0, 1.0]]), "whole-number"),
        (
            lambda: TransformIntegration(Linear(), [[0, 1]]).gram([[1, 2, 3]]),
            "3 columns.*permute 2",
        ),
        (lambda: MatchDistance([[1, 0]]), "must hold the identity"),
        (lambda: MatchDistance([[0, 1]], gamma=0), "gamma of MatchDistance"),
        (lambda: TangentDistance((1, 4)), "at least 2 pixels"),
        (lambda: TangentDistance(SHAPE, tangents=("up",)), "must be some of"),
        (lambda: quiet(TangentDistance, SHAPE).gram([[1, 2]]), "2 columns"),
    ],
)
def test_complaints(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# integration
BASES = [
    Linear(),
    Gaussian(0.3),
    Chi2(),
    Exponential(Intersection(), 0.5),
    Chi2() * Gaussian() + 2.0 * Polynomial(),
    GCS(2.0),
    FirstColumn(),
    TransformIntegration(Gaussian(), flips(SHAPE)),
]


@pytest.mark.parametrize("kernel", BASES, ids=repr)
def test_law_of_integration(kernel):
    check_kernel(TransformIntegration(kernel, shifts(SHAPE, 1)))


@pytest.mark.parametrize("kernel", BASES, ids=repr)
@pytest.mark.parametrize("J", [shifts(SHAPE, 1), flips(SHAPE)], ids=["shifts", "flips"])
def test_integration_is_the_double_average(kernel, J, rows):
    made = TransformIntegration(kernel, J)
    slow = to_dense(integrated(kernel, J, rows, rows[:4]))
    np.testing.assert_allclose(made(rows, rows[:4]), slow, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(made(rows)[:, :4], slow, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("J", GROUPS.values(), ids=GROUPS)
@pytest.mark.parametrize("kernel", [Linear(), Laplace(), Intersection()], ids=repr)
def test_integration_over_a_group_is_invariant(kernel, J, rows):
    made = TransformIntegration(kernel, J)
    K = made.gram(rows)
    assert is_psd(K)
    for j in J:
        np.testing.assert_allclose(made.gram(rows[:, j], rows), K, rtol=1e-12)
    assert np.abs(kernel.gram(rows[:, J[1]], rows) - kernel.gram(rows)).max() > 1e-3


@given(seed=st.integers(0, 2**32 - 1), g=st.integers(1, 5))
def test_any_permutations_give_a_kernel(seed, g):
    rng = np.random.default_rng(seed)
    J = np.argsort(rng.uniform(size=(g, 6)), axis=1)
    X = rng.gamma(0.5, size=(8, 6))
    for kernel in (Gaussian(), Intersection()):
        made = TransformIntegration(kernel, J)
        assert is_psd(made.gram(X))
        np.testing.assert_allclose(made.gram(X), integrated(kernel, J, X, X), rtol=1e-11)


def test_integrated_features(rows):
    J = flips(SHAPE)
    made = TransformIntegration(Chi2(), J)
    feature_map = AdditiveMap(Chi2(), n_components=13).fit(rows)
    Z = made.features(rows, feature_map)
    np.testing.assert_allclose(Z @ Z.T, made.gram(rows), rtol=1e-3)
    Z_sparse = made.features(sp.csr_array(rows), feature_map)
    np.testing.assert_allclose(np.asarray(Z_sparse.toarray()), Z, rtol=1e-12)


def test_integration_keeps_rules_and_warnings():
    made = TransformIntegration(Gaussian("median"), flips(SHAPE))
    with pytest.raises(ValueError, match="is a rule"):
        made.gram(np.eye(12))
    assert made.resolve(np.eye(12)).kernel.gamma == pytest.approx(0.5)
    assert TransformIntegration(GCS(1.0), flips(SHAPE)).compact
    assert not TransformIntegration(quiet(MatchDistance, flips(SHAPE)), flips(SHAPE)).psd


# match
def test_match_distance(rows):
    J = shifts(SHAPE, 1)
    kernel = quiet(MatchDistance, J, gamma=0.7)
    check_kernel(kernel)
    slow = [[np.exp(-0.7 * matched(J, x, y)) for y in rows[:6]] for x in rows]
    np.testing.assert_allclose(kernel.gram(rows, rows[:6]), slow, rtol=1e-12)
    np.testing.assert_allclose(kernel.gram(rows)[:, :6], slow, rtol=1e-12)


def test_match_over_a_group_is_invariant(rows):
    kernel = quiet(MatchDistance, shifts(SHAPE))
    K = kernel.gram(rows)
    for j in shifts(SHAPE)[::5]:
        np.testing.assert_allclose(kernel.gram(rows[:, j], rows), K, rtol=1e-12)


def test_match_with_the_identity_alone_is_gaussian(rows):
    kernel = quiet(MatchDistance, [np.arange(12)], gamma=0.4)
    np.testing.assert_allclose(kernel.gram(rows), Gaussian(0.4).gram(rows), rtol=1e-14)
    rule = quiet(MatchDistance, [np.arange(12)], gamma="median")
    resolved = quiet(rule.resolve, rows)
    assert resolved.gamma == pytest.approx(Gaussian("median").resolve(rows).gamma)


def test_match_is_not_positive_definite():
    lowest = []
    for seed in range(20):
        X = np.random.default_rng(seed).standard_normal((30, 6))
        K = quiet(MatchDistance, shifts((1, 6)), gamma=0.1).gram(X)
        lowest.append(np.linalg.eigvalsh(K)[0])
    assert min(lowest) < -1e-3


# tangents
@pytest.mark.parametrize("shape", [SHAPE, (2, 2, 3)], ids=repr)
@pytest.mark.parametrize("tangents", [TANGENTS, ("across",), ("rotation", "scale")], ids=repr)
def test_tangent_distance(shape, tangents, rows):
    kernel = quiet(TangentDistance, shape, gamma=0.3, tangents=tangents)
    check_kernel(kernel)
    rows[3] = 2.0  # flat: no tangents
    slow = [
        [np.exp(-0.15 * (tangent(kernel, x, y) + tangent(kernel, y, x))) for y in rows[:6]]
        for x in rows
    ]
    np.testing.assert_allclose(kernel.gram(rows, rows[:6]), slow, rtol=1e-9)
    np.testing.assert_allclose(kernel.gram(rows)[:, :6], slow, rtol=1e-9)


def test_tangent_distance_in_blocks(rows, monkeypatch):
    kernel = quiet(TangentDistance, SHAPE)
    whole = kernel.gram(rows)
    monkeypatch.setattr("hilbin.kernels.tangent.CACHED_VALUES", 200)
    np.testing.assert_allclose(kernel.gram(rows), whole, rtol=1e-12)


def blob(across=0.0, down=0.0, angle=0.0, size=1.0):
    """A smooth image, and what small transformations make of it, exactly."""
    i, j = np.indices((17, 17)) - 8.0
    i, j = i - down, j - across
    c, s = np.cos(angle), np.sin(angle)
    i, j = (c * i + s * j) / size, (c * j - s * i) / size
    image = np.exp(-(i**2 / 18 + j**2 / 8)) + 0.5 * np.exp(-((i - 2) ** 2 + (j - 1) ** 2) / 6)
    return image.ravel()


@pytest.mark.parametrize("name", ["across", "down", "angle", "size"])
def test_tangent_distance_is_of_second_order(name):
    """A transformation by t moves the image by t, and its distance from the tangent by t^2."""
    kernel = quiet(TangentDistance, (17, 17))
    base = 1.0 if name == "size" else 0.0
    plain, along = [], []
    for t in (0.02, 0.04):
        moved = blob(**{name: base + t * (1 if name in ("across", "down") else 0.2)})
        plain.append(((moved - blob()) ** 2).sum())
        along.append(kernel._distances(moved[None], blob()[None], None)[0, 0])
    assert plain[1] / plain[0] == pytest.approx(4, rel=0.1)
    assert along[0] < 0.02 * plain[0]
    others = blob()[::-1]
    assert kernel._distances(others[None], blob()[None], None)[0, 0] > 0.1


def test_tangents_are_derivatives():
    T = tangent_vectors(blob()[None], (17, 17), TANGENTS)[0]
    step = 1e-4
    moves = [{"across": step}, {"down": step}, {"angle": step}, {"size": 1 + step}]
    for t, move in zip(T, moves, strict=True):
        exact = (blob(**move) - blob()) / step
        cosine = t @ exact / np.linalg.norm(t) / np.linalg.norm(exact)
        assert abs(cosine) > 0.99


def test_tangent_distance_beats_the_plain_one_on_shifted_images():
    rng = np.random.default_rng(0)
    images = ndimage.gaussian_filter(rng.standard_normal((6, 17, 17)), (0, 2, 2))
    moved = ndimage.shift(images, (0, 0.4, -0.3), order=3, mode="nearest")
    X, Y = images.reshape(6, -1), moved.reshape(6, -1)
    kernel = quiet(TangentDistance, (17, 17), gamma=1.0)
    K = kernel.gram(Y, X)
    assert (K.argmax(axis=1) == np.arange(6)).all()
    assert (np.diag(K) > np.diag(Gaussian(1.0).gram(Y, X))).all()


# values
KERNELS = [
    TransformIntegration(Gaussian(), flips(SHAPE)),
    quiet(MatchDistance, flips(SHAPE), gamma=0.5),
    quiet(TangentDistance, SHAPE),
]


@pytest.mark.filterwarnings("ignore::hilbin.kernels.NotPositiveDefiniteWarning")
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_kernel_is_a_value(kernel):
    for other in (clone(kernel), pickle.loads(pickle.dumps(kernel)), kernel.replace()):
        assert other == kernel
        assert hash(other) == hash(kernel)
    assert kernel != kernel.replace(**OTHER[type(kernel)])
    assert len(repr(kernel)) < 100


OTHER = {
    TransformIntegration: {"transforms": flips(SHAPE)[:1]},
    MatchDistance: {"transforms": shifts(SHAPE)},
    TangentDistance: {"shape": [4, 3]},
}


@pytest.mark.parametrize(
    "make", [lambda: MatchDistance(flips(SHAPE)), lambda: TangentDistance(SHAPE)]
)
def test_warning_names_the_caller(make):
    with pytest.warns(NotPositiveDefiniteWarning, match="not positive definite") as caught:
        make()
    assert caught[0].filename == __file__
