"""Machines for many classes: what they learn, and how their scores become a class."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from hilbin.estimators import KernelSVC
from hilbin.estimators.kernel import multiclass
from hilbin.kernels import Gaussian

INTERCEPT = {
    "free": {},
    "penalized": {"penalize_intercept": True},
    0.5: {"penalize_intercept": True, "intercept_scaling": np.sqrt(0.5)},
    0.3: {"penalize_intercept": True, "intercept_scaling": np.sqrt(0.3)},
    0: {"fit_intercept": False},
}

DIGITS, LABELS = load_digits(return_X_y=True)
X = DIGITS[:300] / DIGITS[:300].sum(axis=1, keepdims=True)  # more rows than are solved to rounding
NEW = DIGITS[300:420] / DIGITS[300:420].sum(axis=1, keepdims=True)
Y = LABELS[:300]
TWO = (Y > 4).astype(int)
FEW = LABELS[:300] % 4  # four classes
KERNEL = Gaussian(20.0)
TIGHT = {"tol": 1e-7}


def assert_same(one, other, rows=NEW, atol=1e-5):
    np.testing.assert_allclose(
        one.decision_function(rows), other.decision_function(rows), atol=atol
    )


def test_crammer_and_singer_for_two_classes_is_the_machine_of_twice_c():
    for intercept in (0, 0.3, "penalized"):
        together = KernelSVC(
            KERNEL, 1.5, multi_class="crammer_singer", **INTERCEPT[intercept], **TIGHT
        )
        binary = KernelSVC(KERNEL, 3.0, **INTERCEPT[intercept], **TIGHT).fit(X, TWO)
        assert_same(together.fit(X, TWO), binary)
        assert together.decision_function(NEW).ndim == 1


@pytest.mark.parametrize("multi_class", ["ovr", "ovo", "dag", "ecoc"])
def test_two_classes_are_one_machine(multi_class):
    model = KernelSVC(KERNEL, multi_class=multi_class).fit(X, TWO)
    assert model.code_book_.tolist() == [[-1], [1]]
    assert_same(model, KernelSVC(KERNEL).fit(X, TWO), atol=0)


def test_machines_learn_what_their_code_book_says():
    for multi_class in ("ovr", "ovo", "ecoc"):
        model = KernelSVC(KERNEL, multi_class=multi_class, **TIGHT).fit(X, FEW)
        scores = model.machine_scores(NEW)
        assert scores.shape == (120, model.code_book_.shape[1])
        for code, found in zip(model.code_book_.T, scores.T, strict=True):
            seen = code[FEW] != 0
            alone = KernelSVC(KERNEL, **TIGHT).fit(X[seen], code[FEW[seen]])
            np.testing.assert_allclose(found, alone.decision_function(NEW), atol=1e-5)


def test_pairs_of_libsvm():
    model = KernelSVC(KERNEL, 5.0, multi_class="ovo", **TIGHT).fit(X, Y)
    theirs = SVC(gamma=20.0, C=5.0, decision_function_shape="ovo", **TIGHT).fit(X, Y)
    np.testing.assert_allclose(-model.machine_scores(NEW), theirs.decision_function(NEW), atol=1e-4)
    assert sp.issparse(model.dual_coef_) == (model.dual_coef_.nnz < 0.1 * 45 * model.support_.size)
    assert model.score(NEW, LABELS[300:420]) > 0.85


def winner_of_votes(scores, classes):
    votes, sums = np.zeros(classes), np.zeros(classes)
    for (a, b), score in zip(itertools.combinations(range(classes), 2), scores, strict=True):
        votes[b if score > 0 else a] += 1
        sums[b] += score
        sums[a] -= score
    return max(range(classes), key=lambda c: (votes[c], sums[c]))


def winner_of_dag(scores, classes):
    by_pair = dict(zip(itertools.combinations(range(classes), 2), scores, strict=True))
    left = list(range(classes))
    while len(left) > 1:
        left.pop(0 if by_pair[left[0], left[-1]] > 0 else -1)
    return left[0]


@given(st.integers(3, 7), st.integers(0, 2**32 - 1))
def test_votes_and_dag_by_hand(classes, seed):
    codes = multiclass.pairs(classes)
    scores = np.random.default_rng(seed).normal(size=(30, codes.shape[1]))
    for decode, by_hand in (
        (multiclass.by_votes, winner_of_votes),
        (multiclass.by_dag, winner_of_dag),
    ):
        decoded = decode(scores, codes)
        assert decoded.argmax(axis=1).tolist() == [by_hand(row, classes) for row in scores]
    whole = np.round(multiclass.by_dag(scores, codes))
    assert (np.sort(whole, axis=1) == np.r_[: classes - 1, classes - 1]).all()


@settings(max_examples=20)
@given(st.integers(2, 12), st.integers(0, 1000))
def test_error_correcting_codes(classes, seed):
    codes = multiclass.error_correcting(classes, np.random.RandomState(seed))
    assert set(np.unique(codes)) == {-1, 1}
    assert (np.abs(codes.sum(axis=0)) < classes).all()
    signed = {tuple(column * column[0]) for column in codes.T}
    assert len(signed) == codes.shape[1]
    apart = [np.sum(a != b) for a, b in itertools.combinations(codes, 2)]
    assert multiclass.least_distance(codes) == min(apart)
    if classes <= 7:
        assert codes.shape[1] == 2 ** (classes - 1) - 1
        assert set(apart) == {2 ** (classes - 2)}
    else:
        assert min(apart) >= 0.2 * codes.shape[1]
    scores = codes + np.random.default_rng(seed).normal(0, 0.1, codes.shape)
    scores[:, : (min(apart) - 1) // 2] *= -1  # that many mistakes are corrected
    losses = [
        [sum(max(0, 1 - m * s) for m, s in zip(c, row, strict=True)) for c in codes]
        for row in scores
    ]
    decoded = multiclass.by_losses(scores, codes)
    np.testing.assert_allclose(decoded, -np.array(losses))
    assert decoded.argmax(axis=1).tolist() == list(range(classes))


def test_code_book_of_a_user():
    codes = np.array([[1, 1, 0], [1, -1, -1], [-1, 0, 1], [-1, 1, -1]])
    model = KernelSVC(KERNEL, 10.0, multi_class="ecoc", code_book=codes).fit(X, FEW)
    assert model.machine_scores(NEW).shape == (120, 3)
    assert model.score(X, FEW) > 0.9
    two = KernelSVC(KERNEL, multi_class="ecoc", code_book=[[1, -1, 1], [-1, 1, -1]]).fit(X, TWO)
    assert two.decision_function(NEW).ndim == 1
    np.testing.assert_array_equal(two.predict(NEW), KernelSVC(KERNEL).fit(X, TWO).predict(NEW))


@pytest.mark.parametrize(
    ("codes", "match"),
    [
        (np.ones((3, 2)), "row for each of the 4 classes"),
        (np.full((4, 2), 2), "-1, 0 or 1"),
        ([[1, 1], [-1, 1], [0, 0], [1, 1]], r"code_book\[:, 1\] must have a 1 and a -1"),
        ([[1, 1], [-1, 1], [1, -1], [1, 1]], "tells a from d"),
    ],
)
def test_bad_codes(codes, match):
    with pytest.raises(ValueError, match=match):
        KernelSVC(KERNEL, multi_class="ecoc", code_book=codes).fit(X, np.array(list("abcd"))[FEW])
